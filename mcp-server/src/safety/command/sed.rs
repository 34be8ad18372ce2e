//! Scripts for sed: which of their commands run a program, write or read a file.

use super::{
    walk::{Input, Walk},
    words::Arg,
};
use crate::safety::Flag;

/// What a script does beyond changing text.
#[derive(Debug, Default)]
struct Deeds {
    /// Commands of a shell; an empty one runs what the text has become.
    runs: Vec<String>,
    writes: Vec<String>,
    reads: Vec<String>,
}

impl Walk<'_> {
    pub(super) fn sed(&mut self, args: &[Arg]) {
        let (mut scripts, mut plain) = (Vec::new(), Vec::new());
        let (mut explicit, mut in_place) = (false, false);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let text = arg.text.as_str();
            if let Some(long) = text.strip_prefix("--") {
                let (name, value) = long.split_once('=').unwrap_or((long, ""));
                in_place |= name.starts_with("in");
                if name.starts_with("ex") || name.starts_with("fi") {
                    explicit = true;
                    let value = match long.contains('=') {
                        true => Some(Arg { text: value.to_owned(), unknown: arg.unknown }),
                        false => args.next().cloned(),
                    };
                    match value {
                        Some(value) if name.starts_with("ex") => scripts.push(value),
                        _ => self.found.add(Flag::ExecShell, "a script for sed"),
                    }
                }
                continue;
            }
            if !arg.is_option() {
                plain.push(arg.clone());
                continue;
            }
            // A cluster of letters, of which some take the rest or the next word.
            let letters = text.get(1..).unwrap_or_default();
            for (at, letter) in letters.char_indices() {
                let rest = letters.get(at + letter.len_utf8()..).unwrap_or_default();
                match letter {
                    'i' => {
                        in_place = true;
                        break;
                    }
                    'e' | 'f' => {
                        explicit = true;
                        let value = if rest.is_empty() {
                            args.next().cloned()
                        } else {
                            Some(Arg { text: rest.to_owned(), unknown: arg.unknown })
                        };
                        match value {
                            Some(value) if letter == 'e' => scripts.push(value),
                            _ => self.found.add(Flag::ExecShell, "a script for sed"),
                        }
                        break;
                    }
                    'l' if rest.is_empty() => {
                        args.next();
                        break;
                    }
                    _ => {}
                }
            }
        }
        if !explicit && !plain.is_empty() {
            scripts.push(plain.remove(0));
        }
        let unknown = scripts.iter().any(|s| s.unknown);
        let script: Vec<&str> = scripts.iter().map(|s| s.text.as_str()).collect();
        self.sed_script(&script.join("\n"), unknown);
        if in_place {
            for file in &plain {
                self.writes(file);
            }
        }
    }

    fn sed_script(&mut self, script: &str, unknown: bool) {
        let Some(deeds) = deeds(script) else {
            // Where a value stands in it, what was read wrong is most often that.
            if !unknown || script.chars().count() == 1 {
                self.found.add(Flag::ExecShell, "a script for sed that cannot be read");
            }
            return;
        };
        for text in deeds.runs {
            if text.is_empty() {
                self.found.add(Flag::ExecShell, "sed that runs what it reads");
            } else {
                self.found.add(Flag::ExecShell, "sed that runs a program");
                self.text(&text, &Input::Unknown);
            }
        }
        for path in deeds.writes {
            self.writes(&Arg::literal(&path));
        }
        for path in deeds.reads {
            self.reads(&Arg::literal(&path));
        }
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Reads a script; `None` for what is none.
fn deeds(script: &str) -> Option<Deeds> {
    let mut deeds = Deeds::default();
    let mut chars = script.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace() || matches!(c, ';' | '{' | '}')).is_some() {}
        if chars.peek().is_none() {
            return Some(deeds);
        }
        if address(&mut chars)? && chars.next_if_eq(&',').is_some() {
            blanks(&mut chars);
            chars.next_if(|c| matches!(c, '+' | '~'));
            address(&mut chars)?;
        }
        while chars.next_if(|c| *c == '!' || *c == ' ').is_some() {}
        match chars.next()? {
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x'
            | 'z' | 'F' | '\u{fffd}' => {}
            '#' => drop(line(&mut chars)),
            'a' | 'i' | 'c' => {
                let mut text = line(&mut chars);
                while text.ends_with('\\') && chars.peek().is_some() {
                    text = line(&mut chars);
                }
            }
            'b' | 't' | 'T' | ':' | 'l' | 'L' | 'q' | 'Q' | 'v' => {
                while chars.next_if(|c| !matches!(c, ';' | '\n' | '}')).is_some() {}
            }
            'e' => deeds.runs.push(line(&mut chars)),
            'r' | 'R' => deeds.reads.push(line(&mut chars)),
            'w' | 'W' => deeds.writes.push(line(&mut chars)),
            'y' => {
                let end = chars.next()?;
                part(&mut chars, end, false)?;
                part(&mut chars, end, false)?;
            }
            's' => {
                let end = chars.next()?;
                part(&mut chars, end, true)?;
                part(&mut chars, end, false)?;
                while let Some(flag) = chars.next_if(|c| c.is_ascii_alphanumeric()) {
                    match flag {
                        'e' => deeds.runs.push(String::new()),
                        'w' => {
                            deeds.writes.push(line(&mut chars));
                            break;
                        }
                        _ => {}
                    }
                }
            }
            _ => return None,
        }
    }
}

/// Reads an address, where one stands here; answers whether one did.
fn address(chars: &mut Chars<'_>) -> Option<bool> {
    let number = |c: &char| c.is_ascii_digit() || matches!(c, '$' | '~' | '\u{fffd}');
    let any = match chars.peek() {
        Some('/') => {
            chars.next();
            part(chars, '/', true)?;
            true
        }
        Some('\\') => {
            chars.next();
            let end = chars.next()?;
            part(chars, end, true)?;
            true
        }
        Some(c) if number(c) => {
            while chars.next_if(number).is_some() {}
            true
        }
        _ => false,
    };
    if any {
        while chars.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
        blanks(chars);
    }
    Some(any)
}

/// Reads up to a delimiter; one behind a backslash, or inside a set of characters of a pattern, is
/// none.
fn part(chars: &mut Chars<'_>, end: char, pattern: bool) -> Option<()> {
    loop {
        match chars.next()? {
            '\\' => drop(chars.next()?),
            c if c == end => return Some(()),
            '[' if pattern => {
                chars.next_if_eq(&'^');
                chars.next_if_eq(&']');
                while chars.next()? != ']' {}
            }
            _ => {}
        }
    }
}

fn line(chars: &mut Chars<'_>) -> String {
    let mut text = String::new();
    for c in chars.by_ref() {
        if c == '\n' {
            break;
        }
        text.push(c);
    }
    text.trim().to_owned()
}

fn blanks(chars: &mut Chars<'_>) {
    while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
}
