//! Programs in a simulated Windows guest, started as its agent starts them: the
//! agent glues a command line together, and each program takes it apart by its
//! own rules.
//!
//! No PowerShell is here. The fixed scripts by which the server works in Windows
//! are not interpreted: each carries the name of what it does and its arguments
//! in base64, and that is done to the guest's files as the script would do it.
//! So this tests what is sent, and what is made of the answers, not the scripts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::shell::Ran;
use super::windows_files::Disk;
use crate::state::guest::{Agent, Guest};

/// Runs a program. `None`: there is no such program.
pub(super) fn run(guest: &Guest, agent: &mut Agent, argv: &[String], input: &[u8]) -> Option<Ran> {
    let program = argv.first()?.clone();
    let line = command_line(argv, agent.win.old_agent);
    start(
        &mut Machine { guest, agent, cwd: "C:\\Windows\\system32".to_owned() },
        &program,
        &line,
        input,
    )
}

struct Machine<'a> {
    guest: &'a Guest,
    agent: &'a mut Agent,
    cwd: String,
}

/// The command line that GLib makes of arguments.
fn command_line(argv: &[String], old: bool) -> String {
    argv.iter().map(|arg| protect(arg, old)).collect::<Vec<_>>().join(" ")
}

fn protect(arg: &str, old: bool) -> String {
    let quotes = arg.contains([' ', '\t']);
    let mut out = String::new();
    let mut slashes = 0;
    for c in arg.chars() {
        match c {
            '\\' => slashes += 1,
            '"' => {
                out.push_str(&"\\".repeat(slashes + 1));
                slashes = 0;
            }
            _ => slashes = 0,
        }
        out.push(c);
    }
    if quotes && !old {
        out.push_str(&"\\".repeat(slashes));
    }
    if quotes { format!("\"{out}\"") } else { out }
}

/// Arguments as a program of C finds them in its command line.
fn arguments(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let (mut quoted, mut slashes) = (false, 0_usize);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\\' {
            slashes += 1;
            continue;
        }
        let count = std::mem::take(&mut slashes);
        let keep = if c == '"' { count / 2 } else { count };
        if keep > 0 {
            word.get_or_insert_default().push_str(&"\\".repeat(keep));
        }
        match c {
            '"' if count % 2 == 1 => word.get_or_insert_default().push('"'),
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                word.get_or_insert_default().push('"');
            }
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' | '\t' if !quoted => all.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    if slashes > 0 {
        word.get_or_insert_default().push_str(&"\\".repeat(slashes));
    }
    all.extend(word);
    all
}

fn said(out: impl Into<Vec<u8>>) -> Ran {
    Ran { out: out.into(), ..Ran::default() }
}

fn failed(code: i64, err: &str) -> Ran {
    Ran { code, err: format!("{err}\r\n").into_bytes(), ..Ran::default() }
}

/// Starts a program by its whole command line.
fn start(machine: &mut Machine<'_>, program: &str, line: &str, input: &[u8]) -> Option<Ran> {
    let name = program.rsplit(['\\', '/']).next().unwrap_or(program).to_ascii_lowercase();
    match name.strip_suffix(".exe").unwrap_or(&name) {
        "cmd" => {
            // Its own reading begins behind its name.
            let skip = if line.starts_with('"') { program.len() + 2 } else { program.len() };
            Some(cmd(machine, line.get(skip..).unwrap_or_default(), input))
        }
        "powershell" if !machine.agent.win.no_powershell => {
            powershell(machine, &arguments(line), input)
        }
        "hostname" => Some(said(format!("{}\r\n", machine.guest.name()))),
        // Shows what it was given, as the tool of that name does.
        "echoargs" => {
            let args = arguments(line);
            Some(said(args.iter().skip(1).map(|a| format!("<{a}>\r\n")).collect::<String>()))
        }
        "more" => Some(said(input)),
        _ => None,
    }
}

/// The line behind `cmd`: its switches, and what of the quotes it takes away.
fn cmd(machine: &mut Machine<'_>, rest: &str, input: &[u8]) -> Ran {
    let (mut rest, mut strip) = (rest.trim_start(), false);
    loop {
        let (switch, after) =
            (rest.get(..2).unwrap_or_default(), rest.get(2..).unwrap_or_default());
        rest = after.trim_start();
        match switch.to_ascii_lowercase().as_str() {
            "/c" => break,
            "/s" => strip = true,
            "/d" | "/q" => {}
            _ => return failed(1, "cmd: no command is given"),
        }
    }
    let inner = rest.strip_prefix('"').and_then(|r| r.strip_suffix('"')).unwrap_or_default();
    let named = !strip
        && rest.matches('"').count() == 2
        && inner.contains(char::is_whitespace)
        && !inner.contains(['&', '<', '>', '(', ')', '@', '^', '|'])
        && Disk::of(machine.agent).is_file(inner);
    let line = match rest.strip_prefix('"').filter(|_| !named) {
        Some(tail) => match tail.rfind('"') {
            Some(last) => format!(
                "{}{}",
                tail.get(..last).unwrap_or_default(),
                tail.get(last + 1..).unwrap_or_default()
            ),
            None => tail.to_owned(),
        },
        None => rest.to_owned(),
    };
    let mut all = Ran::default();
    for (text, needs) in commands(&expanded(machine, &line)) {
        if needs.is_some_and(|good| good != (all.code == 0)) {
            continue;
        }
        let ran = builtin(machine, &text, input);
        all.out.extend(ran.out);
        all.err.extend(ran.err);
        all.code = ran.code;
    }
    all
}

/// `%NAME%` of what is known; the rest stays as it is.
fn expanded(machine: &Machine<'_>, line: &str) -> String {
    let known = [("os", "Windows_NT"), ("systemroot", "C:\\Windows"), ("cd", machine.cwd.as_str())];
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let value = after.split_once('%').and_then(|(name, tail)| {
            let found = known.iter().find(|(n, _)| name.eq_ignore_ascii_case(n));
            found.map(|(_, value)| (*value, tail))
        });
        match value {
            Some((value, tail)) => {
                out.push_str(value);
                rest = tail;
            }
            None => {
                out.push('%');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The commands of a line, and whether each wants the one before to have gone well, or not.
fn commands(line: &str) -> Vec<(String, Option<bool>)> {
    let mut all = vec![(String::new(), None)];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let mut take = |c: char| {
            if let Some((text, _)) = all.last_mut() {
                text.push(c);
            }
        };
        match c {
            '"' => {
                quoted = !quoted;
                take(c);
            }
            '^' if !quoted => {
                if let Some(next) = chars.next() {
                    take(next);
                }
            }
            '&' | '|' if !quoted => {
                let twice = chars.next_if_eq(&c).is_some();
                all.push((String::new(), twice.then_some(c == '&')));
            }
            _ => take(c),
        }
    }
    all
}

fn builtin(machine: &mut Machine<'_>, text: &str, input: &[u8]) -> Ran {
    let text = text.trim_start();
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match name.to_ascii_lowercase().as_str() {
        "" => Ran::default(),
        "echo" => said(format!("{}\r\n", rest.get(1..).unwrap_or_default())),
        "cd" if rest.trim().is_empty() => said(format!("{}\r\n", machine.cwd)),
        "exit" => Ran { code: rest.trim().parse().unwrap_or(0), ..Ran::default() },
        _ => start(machine, name, text, input).unwrap_or_else(|| {
            failed(1, &format!("'{name}' is not recognized as an internal or external command,\r\noperable program or batch file."))
        }),
    }
}

fn powershell(machine: &mut Machine<'_>, args: &[String], input: &[u8]) -> Option<Ran> {
    let at = |name: &str| args.iter().position(|a| a.eq_ignore_ascii_case(name));
    let script = match (at("-EncodedCommand"), at("-Command")) {
        (Some(at), _) => {
            let bytes = STANDARD.decode(args.get(at + 1)?).ok()?;
            let pairs = bytes.chunks_exact(2);
            let units: Vec<u16> = pairs
                .filter_map(|pair| <[u8; 2]>::try_from(pair).ok())
                .map(u16::from_le_bytes)
                .collect();
            String::from_utf16(&units).ok()?
        }
        (None, Some(at)) => args.get(at + 1..)?.join(" "),
        (None, None) => return Some(failed(1, "no command is given")),
    };
    let coded = script.split("FromBase64String('").nth(1).and_then(|s| s.split('\'').next());
    let Some(data) = coded.and_then(|coded| STANDARD.decode(coded).ok()) else {
        return Some(literal(machine, &script));
    };
    let data = String::from_utf8(data).ok()?;
    let fields: Vec<&str> = data.split('\0').collect();
    if let ["run", program, line, cwd] = fields.as_slice() {
        if !cwd.is_empty() {
            if !Disk::of(machine.agent).is_directory(cwd) {
                return Some(failed(126, &format!("there is no directory {cwd}")));
            }
            machine.cwd = (*cwd).to_owned();
        }
        let whole = format!("{} {line}", protect(program, false));
        let ran = start(machine, program, &whole, input);
        return Some(ran.unwrap_or_else(|| {
            failed(127, &format!("{program}: The system cannot find the file specified"))
        }));
    }
    Some(said(Disk::of(machine.agent).answer(&fields)))
}

/// A script of somebody else: only texts in quotes are known, which it says.
fn literal(machine: &mut Machine<'_>, script: &str) -> Ran {
    let mut all = Ran::default();
    for part in script.split("; ") {
        let inner = |quoted: &str| {
            let text = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
            Some(text.replace("''", "'"))
        };
        if let Some(text) = inner(part) {
            all.out.extend(format!("{text}\r\n").into_bytes());
        } else if let Some(rest) = part.strip_prefix("Set-Location -LiteralPath ") {
            let path = rest.strip_suffix(" -ErrorAction Stop").and_then(inner);
            match path.filter(|path| Disk::of(machine.agent).is_directory(path)) {
                Some(path) => machine.cwd = path,
                None => return failed(1, "Set-Location : Cannot find path"),
            }
        } else if part == "$PWD.Path" {
            all.out.extend(format!("{}\r\n", machine.cwd).into_bytes());
        } else if !part.starts_with("try{[Console]::OutputEncoding=") {
            return failed(1, "this PowerShell knows only texts in quotes");
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of the rules as Microsoft gives them, and what each GLib makes of arguments.
    #[test]
    fn command_lines_are_made_and_read_by_the_rules() {
        for (line, want) in [
            (r#"x "a b c" d e"#, &["x", "a b c", "d", "e"][..]),
            (r#"x "ab\"c" "\\" d"#, &["x", "ab\"c", "\\", "d"]),
            (r#"x a\\\b d"e f"g h"#, &["x", r"a\\\b", "de fg", "h"]),
            (r#"x a\\\"b c d"#, &["x", r#"a\"b"#, "c", "d"]),
            (r#"x a\\\\"b c" d e"#, &["x", r"a\\b c", "d", "e"]),
            (r#"x "a b""c d""#, &["x", "a b\"c d"]),
            (r#"x "" b\"#, &["x", "", "b\\"]),
        ] {
            assert_eq!(arguments(line), want, "{line}");
        }
        let argv = |args: &[&str]| args.iter().map(ToString::to_string).collect::<Vec<_>>();
        let plain = argv(&["x", "a b", r#"a"b"#, r#"a\"b c"#, r"a\b", "c\\"]);
        for old in [false, true] {
            assert_eq!(arguments(&command_line(&plain, old)), plain);
        }
        // What both lose, and what the old one does.
        assert_eq!(arguments(&command_line(&argv(&["x", ""]), false)), ["x"]);
        let blank = argv(&["x", r"a b\", "c"]);
        assert_eq!(arguments(&command_line(&blank, false)), blank);
        assert_eq!(arguments(&command_line(&blank, true)), ["x", "a b\" c"]);
    }
}
