//! The few programs inside a simulated guest, and a shell that runs them:
//! quotes, `;`, `&&`, `|`, `>`, `>&2`. What it does not know is "not found".

use crate::state::guest::{Agent, Guest};

/// What a program gives back.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Ran {
    pub(super) code: i64,
    pub(super) signal: Option<i64>,
    pub(super) out: Vec<u8>,
    pub(super) err: Vec<u8>,
    /// Goes on for so many seconds.
    pub(super) seconds: i64,
    /// The guest goes down with it.
    pub(super) down: bool,
}

impl Ran {
    fn ok(out: impl Into<Vec<u8>>) -> Self {
        Self { out: out.into(), ..Self::default() }
    }

    fn failed(code: i64, err: String) -> Self {
        Self { code, err: err.into_bytes(), ..Self::default() }
    }
}

/// Where programs run: a guest and its files, which they may change.
pub(super) struct Machine<'a> {
    pub(super) guest: &'a Guest,
    pub(super) agent: Agent,
}

/// `head -c` makes at most this much of nothing.
const MAX_ZEROS: usize = 32 << 20;

impl Machine<'_> {
    /// Runs a program. `None`: there is no such program.
    pub(super) fn run(&mut self, argv: &[String], input: &[u8]) -> Option<Ran> {
        let (program, args) = argv.split_first()?;
        let folders = ["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"];
        let name = folders.iter().find_map(|f| program.strip_prefix(f)).unwrap_or(program);
        let arg = |n: usize| args.get(n).map_or("", String::as_str);
        Some(match name {
            "true" => Ran::ok(""),
            "false" => Ran { code: 1, ..Ran::default() },
            "echo" => Ran::ok(format!("{}\n", args.join(" "))),
            "printf" => Ran::ok(printf(args)),
            "hostname" => Ran::ok(format!("{}\n", self.guest.name())),
            "id" => Ran::ok("uid=0(root) gid=0(root) groups=0(root)\n"),
            "whoami" => Ran::ok("root\n"),
            "uname" => Ran::ok(format!(
                "Linux {} {} x86_64 GNU/Linux\n",
                self.guest.name(),
                self.agent.kernel
            )),
            "sleep" => Ran { seconds: arg(0).parse().unwrap_or(1), ..Ran::default() },
            "cat" => self.on_files(name, args, input, <[u8]>::to_vec),
            "od" => self.on_files(name, args.get(1..).unwrap_or(&[]), input, octal),
            "wc" => {
                let files = args.get(1..).unwrap_or(&[]);
                self.on_files(name, files, input, |b| format!("{}\n", b.len()).into_bytes())
            }
            "head" => {
                let count = arg(1).parse::<usize>().unwrap_or(0).min(MAX_ZEROS);
                if arg(2) == "/dev/zero" {
                    return Some(Ran::ok(vec![0; count]));
                }
                self.on_files(name, args.get(2..).unwrap_or(&[]), input, |b| {
                    b.get(..count).unwrap_or(b).to_vec()
                })
            }
            "tr" => {
                let (from, to) = (unescape(arg(0)), unescape(arg(1)));
                let swap = |b: &u8| {
                    from.iter()
                        .position(|f| f == b)
                        .and_then(|at| to.get(at))
                        .copied()
                        .unwrap_or(*b)
                };
                Ran::ok(input.iter().map(swap).collect::<Vec<u8>>())
            }
            "ls" => self.list(
                args.iter()
                    .filter(|a| !a.starts_with('-'))
                    .map(String::as_str)
                    .next()
                    .unwrap_or("/"),
            ),
            "poweroff" | "halt" => Ran { down: true, ..Ran::default() },
            "systemctl" => systemctl(args),
            "sh" | "bash" if arg(0) == "-c" => self.shell(arg(1), input),
            _ => return None,
        })
    }

    fn on_files(
        &self,
        name: &str,
        files: &[String],
        input: &[u8],
        f: impl Fn(&[u8]) -> Vec<u8>,
    ) -> Ran {
        if files.is_empty() {
            return Ran::ok(f(input));
        }
        let mut all = Vec::new();
        for path in files {
            match self.agent.files.get(path) {
                Some(bytes) => all.extend_from_slice(bytes),
                None => {
                    return Ran::failed(1, format!("{name}: {path}: No such file or directory\n"));
                }
            }
        }
        Ran::ok(f(&all))
    }

    fn list(&self, path: &str) -> Ran {
        if let Some(bytes) = self.agent.files.get(path) {
            return Ran::ok(format!("-rw-r--r-- 1 root root {} {path}\n", bytes.len()));
        }
        let folder = format!("{}/", path.trim_end_matches('/'));
        let names: Vec<&str> =
            self.agent.files.keys().filter_map(|k| k.strip_prefix(&folder)).collect();
        if names.is_empty() && path != "/" {
            return Ran::failed(
                2,
                format!("ls: cannot access '{path}': No such file or directory\n"),
            );
        }
        Ran::ok(names.iter().map(|n| format!("{n}\n")).collect::<String>())
    }

    fn shell(&mut self, script: &str, input: &[u8]) -> Ran {
        // Half of a script would do something else than the whole.
        let known = |line: &str| {
            let first = line.split_whitespace().next().unwrap_or_default();
            !["if", "for", "while", "case", "{", "(", "set", "trap"].contains(&first)
                && !first.ends_with("()")
        };
        if !script.lines().all(known) {
            return Ran::failed(2, "sh: 1: Syntax error: too much for this shell\n".to_owned());
        }
        let mut all = Ran::default();
        for (pipeline, needs_success) in commands(&words(script)) {
            if needs_success && all.code != 0 {
                continue;
            }
            if let [word, code] = pipeline.as_slice()
                && word == "exit"
            {
                all.code = code.parse().unwrap_or(2);
                return all;
            }
            if pipeline.join(" ") == "kill -9 $$" {
                all.signal = Some(9);
                return all;
            }
            let ran = self.pipeline(&pipeline, input);
            all.out.extend(ran.out);
            all.err.extend(ran.err);
            all.code = ran.code;
            all.seconds += ran.seconds;
            all.down |= ran.down;
        }
        all
    }

    fn pipeline(&mut self, words: &[String], input: &[u8]) -> Ran {
        let mut all = Ran::ok(input);
        for part in words.split(|w| w == "|") {
            let mut argv = Vec::new();
            let (mut file, mut to_err) = (None, false);
            let mut rest = part.iter();
            while let Some(word) = rest.next() {
                match word.as_str() {
                    ">" => file = rest.next().cloned(),
                    ">&2" => to_err = true,
                    _ => argv.push(word.clone()),
                }
            }
            let stdin = std::mem::take(&mut all.out);
            let ran = self.run(&argv, &stdin).unwrap_or_else(|| {
                let name = argv.first().cloned().unwrap_or_default();
                Ran::failed(127, format!("sh: 1: {name}: not found\n"))
            });
            all.code = ran.code;
            all.seconds += ran.seconds;
            all.down |= ran.down;
            all.err.extend(ran.err);
            match file {
                Some(path) => {
                    self.agent.files.insert(path, ran.out);
                }
                None if to_err => all.err.extend(ran.out),
                None => all.out = ran.out,
            }
        }
        all
    }
}

/// A service that is known by its name: everything is active.
fn systemctl(args: &[String]) -> Ran {
    let words: Vec<&str> =
        args.iter().map(String::as_str).filter(|a| !a.starts_with('-')).collect();
    match words.as_slice() {
        ["status", unit] => Ran::ok(format!("● {unit} - loaded\n     Active: active (running)\n")),
        ["is-active", _] => Ran::ok("active\n"),
        ["start" | "stop" | "restart" | "reload", _] => Ran::ok(""),
        _ => Ran::failed(1, "Unknown command verb.\n".to_owned()),
    }
}

/// Words of a script; separators are words of their own.
fn words(script: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    let mut chars = script.chars().peekable();
    let push = |word: &mut String, quoted: &mut bool, all: &mut Vec<String>| {
        if !word.is_empty() || *quoted {
            all.push(std::mem::take(word));
        }
        *quoted = false;
    };
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                quoted = true;
                while let Some(inner) = chars.next() {
                    match inner {
                        _ if inner == c => break,
                        '\\' if c == '"' && chars.peek().is_some_and(|n| "\"\\$`".contains(*n)) => {
                            word.extend(chars.next());
                        }
                        _ => word.push(inner),
                    }
                }
            }
            ' ' | '\t' | '\n' => push(&mut word, &mut quoted, &mut all),
            ';' | '|' | '>' | '&' => {
                push(&mut word, &mut quoted, &mut all);
                let mut mark = c.to_string();
                if c == '>' && chars.peek() == Some(&'&') {
                    mark.extend(chars.next());
                    mark.extend(chars.next());
                } else if c == '&' && chars.peek() == Some(&'&') {
                    mark.extend(chars.next());
                }
                all.push(mark);
            }
            _ => word.push(c),
        }
    }
    push(&mut word, &mut quoted, &mut all);
    all
}

/// Pipelines, and whether each needs the one before to have gone well.
fn commands(words: &[String]) -> Vec<(Vec<String>, bool)> {
    let mut all = vec![(Vec::new(), false)];
    for word in words {
        match word.as_str() {
            ";" => all.push((Vec::new(), false)),
            "&&" => all.push((Vec::new(), true)),
            _ => {
                if let Some(last) = all.last_mut() {
                    last.0.push(word.clone());
                }
            }
        }
    }
    all.retain(|(w, _)| !w.is_empty());
    all
}

/// Octal and letter escapes.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        at += 1;
        if b != b'\\' {
            out.push(b);
            continue;
        }
        let digits: String = bytes
            .iter()
            .skip(at)
            .take(3)
            .take_while(|d| (b'0'..=b'7').contains(*d))
            .map(|d| char::from(*d))
            .collect();
        if digits.is_empty() {
            out.push(match bytes.get(at) {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(other) => *other,
                None => b'\\',
            });
            at += 1;
        } else {
            at += digits.len();
            out.push(u8::from_str_radix(&digits, 8).unwrap_or(0));
        }
    }
    out
}

fn printf(args: &[String]) -> Vec<u8> {
    let mut rest = args.iter();
    let format = rest.next().map_or("", String::as_str);
    let mut out = Vec::new();
    let mut parts = format.split("%s");
    out.extend(unescape(parts.next().unwrap_or("")));
    for part in parts {
        out.extend(rest.next().map(|a| a.clone().into_bytes()).unwrap_or_default());
        out.extend(unescape(part));
    }
    out
}

/// As `od -c` shows bytes.
fn octal(bytes: &[u8]) -> Vec<u8> {
    let mut out = String::new();
    for (n, line) in bytes.chunks(16).enumerate() {
        out.push_str(&format!("{:07o}", n * 16));
        for b in line {
            match *b {
                b'\n' => out.push_str("  \\n"),
                0 => out.push_str("  \\0"),
                b if b.is_ascii_graphic() || b == b' ' => {
                    out.push_str(&format!("   {}", char::from(b)))
                }
                b => out.push_str(&format!(" {b:03o}")),
            }
        }
        out.push('\n');
    }
    out.push_str(&format!("{:07o}\n", bytes.len()));
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::config::Config;
    use crate::state::guest::Kind;

    fn run(script: &str) -> Ran {
        let guest = Guest::new(100, Kind::Qemu, "pve1", Config::from_pairs([("name", "web")]), 0);
        let mut machine = Machine { guest: &guest, agent: Agent::default() };
        machine.run(&["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()], b"").unwrap()
    }

    #[test]
    fn scripts() {
        for (script, code, out, err) in [
            ("echo out; echo err >&2; exit 3", 3, "out\n", "err\n"),
            ("echo 'a  b' | wc -c", 0, "5\n", ""),
            ("printf '\\303\\274'", 0, "ü", ""),
            ("head -c 3 /dev/zero | tr '\\0' 'x'", 0, "xxx", ""),
            ("echo hi > /tmp/a && cat /tmp/a", 0, "hi\n", ""),
            ("false && echo no", 1, "", ""),
            ("nosuch", 127, "", "sh: 1: nosuch: not found\n"),
            ("hostname", 0, "web\n", ""),
        ] {
            let ran = run(script);
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            assert_eq!(
                (ran.code, text(&ran.out), text(&ran.err)),
                (code, out.to_owned(), err.to_owned()),
                "{script}"
            );
        }
        assert_eq!(run("kill -9 $$").signal, Some(9));
        assert_eq!(run("sleep 5").seconds, 5);
    }
}
