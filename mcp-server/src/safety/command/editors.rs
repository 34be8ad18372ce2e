//! Editors: the commands that they are given, and the files that they write.

use super::{
    walk::{Input, Walk},
    words::Arg,
};
use crate::safety::Flag;

/// Commands of vi that change the text or leave it, and run nothing.
const QUIET: [&str; 25] = [
    "q", "qa", "qall", "quit", "x", "xa", "wq", "wqa", "wa", "s", "d", "g", "v", "set", "se",
    "syntax", "syn", "noh", "retab", "sort", "u", "m", "t", "j", "p",
];

impl Walk<'_> {
    pub(super) fn editor(&mut self, name: &str, args: &[Arg], input: &Input) {
        let vi = matches!(name, "vi" | "vim" | "nvim" | "ex" | "view");
        let mut commands: Vec<String> = Vec::new();
        let mut runs = false;
        for (at, arg) in args.iter().enumerate() {
            let next = || args.get(at + 1).map(|a| a.text.clone());
            let text = arg.text.as_str();
            let short = arg.is_option() && !text.starts_with("--");
            match name {
                _ if vi => {
                    if let Some(command) = text.strip_prefix('+') {
                        commands.push(command.to_owned());
                    } else if text == "--cmd" || short && text.ends_with('c') {
                        commands.extend(next());
                    } else if let Some(glued) = text.strip_prefix("-c") {
                        commands.push(glued.to_owned());
                    }
                    // Keys, commands and settings from a file.
                    runs |= short && text.contains(['S', 'u', 'U', 'l', 'i'])
                        || matches!(text, "-s" | "-w" | "-W");
                }
                "emacs" => {
                    runs |= matches!(
                        text,
                        "-l" | "--load" | "-f" | "--funcall" | "--script" | "-eval" | "-x"
                    ) || text.starts_with("--eval")
                        || text.starts_with("--exec");
                }
                "ed" => runs |= text.starts_with('!'),
                _ => {}
            }
        }
        if name == "ed" || name == "ex" {
            match input {
                Input::Text(text) => commands.extend(text.lines().map(str::to_owned)),
                Input::Unknown => runs = true,
                Input::Nothing => {}
            }
        }
        let appends = name == "ed" && commands.iter().any(|c| matches!(c.trim(), "a" | "i" | "c"));
        for command in &commands {
            runs |= self.vi_command(command) && !appends;
        }
        if runs || appends && commands.iter().any(|c| c.contains('!')) {
            self.found.add(Flag::ExecShell, &format!("{name} runs a program"));
        }
        if name != "view" {
            self.writes_all(args);
        }
    }

    /// Follows a command of vi or ed; answers whether it may run something.
    fn vi_command(&mut self, command: &str) -> bool {
        let range = |c: char| c.is_ascii_digit() || ":%.$,; '\t".contains(c);
        let command = command.trim().trim_start_matches(range);
        let place = command.starts_with(['/', '?']) || command.is_empty();
        let name: String = command.chars().take_while(char::is_ascii_alphabetic).collect();
        let rest = command.get(name.len()..).unwrap_or_default();
        match name.as_str() {
            "w" | "write" | "W" | "sav" | "saveas" | "r" | "read" | "e" | "E" | "edit" | "f" => {
                let path = Arg::literal(rest.trim_start_matches(['!', '>']).trim());
                if rest.trim_start().starts_with('!')
                    && (rest.starts_with(' ') || name != "w" && name != "e")
                {
                    return true;
                }
                if !path.text.is_empty() {
                    self.reads(&path);
                    if name.starts_with(['w', 'W', 's']) {
                        self.writes(&path);
                    }
                }
                path.text.starts_with('!')
            }
            // What is done to lines that are looked for is a command of its own.
            "g" | "v" => {
                let mut parts = rest.chars();
                let Some(end) = parts.next() else { return false };
                let after = parts.as_str().split_once(end).map_or("", |(_, after)| after);
                self.vi_command(after)
            }
            "s" => rest.contains("\\="),
            "" => !place,
            name => !QUIET.contains(&name),
        }
    }
}
