//! The texts that are made from the tables: `.env`, `critical.env` and the reference.

use std::fmt::Write as _;

use super::{
    table::VARIABLES,
    vars::{Section, Variable},
};
use crate::safety::Flag;

/// How wide the comments of the files are.
const WIDTH: usize = 88;

/// The `.env` that `init` writes: every variable with its explanation. What a start needs
/// stands open and empty, the rest is commented out.
#[must_use]
pub fn env_file() -> String {
    let mut text = String::from(
        "# Settings of proxmox-mcp. The environment and the command line win over this file.\n\
         # NAME=value; what stands after = is taken as it is written, up to a blank and #.\n\
         # Single quotes around a value keep everything in it.\n",
    );
    for section in Section::ALL {
        let _ = write!(text, "\n# --- {} ---\n", section.title());
        for variable in VARIABLES.iter().filter(|v| v.section == section) {
            text.push('\n');
            comment(&mut text, variable.about);
            comment(&mut text, &format!("Allowed: {}.", variable.allowed));
            let _ = writeln!(text, "{}", assignment(variable));
        }
    }
    text
}

fn assignment(variable: &Variable) -> String {
    let Variable { name, default, example, .. } = variable;
    let needed =
        ["PROXMOX_HOST", "PROXMOX_TOKEN_ID", "PROXMOX_TOKEN_SECRET", "PROXMOX_TLS_FINGERPRINT"];
    if needed.contains(name) {
        return format!("{name}=");
    }
    if *name == "PROXMOX_MODE" {
        return format!("{name}={default}");
    }
    format!("#{name}={}", if default.is_empty() { example } else { default })
}

/// The `critical.env` that `init` writes: every flag with its explanation, all off or all on.
#[must_use]
pub fn critical_file(enable_all: bool) -> String {
    let mut text = String::from(
        "# Categories of CRITICAL changes: those that can lose many guests, the node, the way in,\n\
         # or the safeguards themselves. A change passes only where its flag is on: enabled, 1,\n\
         # true, yes, on, without quotes and with nothing after it. Read once at the start.\n",
    );
    let value = if enable_all { "enabled" } else { "disabled" };
    for flag in Flag::ALL {
        text.push('\n');
        comment(&mut text, flag.explanation());
        let _ = writeln!(text, "{}={value}", flag.variable());
    }
    text
}

/// The tables of `docs/configuration.md`, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut text = String::new();
    for section in Section::ALL {
        let _ = write!(
            text,
            "### {}\n\n| variable | default | allowed | what it is for |\n|---|---|---|---|\n",
            section.title()
        );
        for v in VARIABLES.iter().filter(|v| v.section == section) {
            let default =
                if v.default.is_empty() { "none".to_owned() } else { format!("`{}`", v.default) };
            let _ = writeln!(text, "| `{}` | {default} | {} | {} |", v.name, v.allowed, v.about);
        }
        text.push('\n');
    }
    text.push_str("### Flags of critical.env\n\n| flag | lets through |\n|---|---|\n");
    for flag in Flag::ALL {
        let _ = writeln!(text, "| `{}` | {} |", flag.variable(), flag.explanation());
    }
    text
}

/// A comment, wrapped at blanks.
fn comment(text: &mut String, words: &str) {
    let mut width = 0;
    for word in words.split(' ') {
        let length = word.chars().count() + 1;
        if width == 0 || width + length > WIDTH {
            text.push_str(if width == 0 { "# " } else { "\n# " });
            width = 1;
        } else {
            text.push(' ');
        }
        text.push_str(word);
        width += length;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::env_file::parse;

    #[test]
    fn what_init_writes_can_be_read_again() {
        let entries = parse(env_file().as_bytes()).unwrap();
        let open: Vec<_> = entries.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(
            open,
            [
                "PROXMOX_HOST",
                "PROXMOX_TOKEN_ID",
                "PROXMOX_TOKEN_SECRET",
                "PROXMOX_TLS_FINGERPRINT",
                "PROXMOX_MODE"
            ]
        );
        // With the comment signs taken away, every variable stands there once.
        let text = env_file().replace("\n#PROXMOX", "\nPROXMOX").replace("\n#LOG", "\nLOG");
        let mut names: Vec<_> =
            parse(text.as_bytes()).unwrap().into_iter().map(|e| e.name).collect();
        names.sort();
        let mut all: Vec<_> = VARIABLES.iter().map(|v| v.name.to_owned()).collect();
        all.sort();
        assert_eq!(names, all);
        assert!(env_file().lines().all(|line| line.chars().count() <= 96));
    }

    #[test]
    fn flags_are_off_unless_all_are_asked_for() {
        for (all, value) in [(false, "disabled"), (true, "enabled")] {
            let entries = parse(critical_file(all).as_bytes()).unwrap();
            assert_eq!(entries.len(), Flag::ALL.len());
            for (entry, flag) in entries.iter().zip(Flag::ALL) {
                assert_eq!((entry.name.as_str(), entry.value.as_str()), (flag.variable(), value));
            }
        }
    }

    #[test]
    fn the_documentation_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (begin, end) = ("<!-- variables: begin -->\n", "<!-- variables: end -->");
        let (head, rest) = text.split_once(begin).unwrap();
        let (found, tail) = rest.split_once(end).unwrap();
        if found == reference() {
            return;
        }
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let text = format!("{head}{begin}{}{end}{tail}", reference());
            std::fs::write(path, text).unwrap();
            return;
        }
        panic!(
            "docs/configuration.md is behind the table: UPDATE_DOCS=1 cargo test -p proxmox-mcp --lib config::template"
        );
    }
}
