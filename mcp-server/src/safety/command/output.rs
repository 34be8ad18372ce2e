//! What a command prints, where its text tells: it may be what a shell runs next.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    walk::Input,
    words::{Arg, ansi_c},
};

/// What a program prints when it reads this.
pub(super) fn of(words: &[Arg], input: &Input) -> Input {
    let Some((name, args)) = words.split_first() else { return Input::Unknown };
    match name.text.as_str() {
        "echo" => echo(args),
        "printf" => printf(args),
        "cat" if args.is_empty() => input.clone(),
        "tee" => input.clone(),
        // Names that go through unchanged, as far as that matters.
        "ls" | "realpath" | "readlink" if args.iter().any(|a| !a.is_option()) => {
            known(&args.iter().filter(|a| !a.is_option()).cloned().collect::<Vec<_>>())
        }
        "dirname" => match known(args) {
            Input::Text(path) => Input::Text(
                path.rsplit_once('/')
                    .map_or(".", |(dir, _)| if dir.is_empty() { "/" } else { dir })
                    .to_owned(),
            ),
            other => other,
        },
        "basename" if args.len() == 1 => match known(args) {
            Input::Text(path) => {
                Input::Text(path.rsplit('/').next().unwrap_or_default().to_owned())
            }
            other => other,
        },
        "rev" if args.is_empty() => match input {
            Input::Text(text) => {
                let lines = text.lines().map(|l| l.chars().rev().collect::<String>());
                Input::Text(lines.collect::<Vec<_>>().join("\n"))
            }
            _ => Input::Unknown,
        },
        "base64" if matches!(args, [d] if matches!(d.text.as_str(), "-d" | "--decode" | "-D")) => {
            match input {
                Input::Text(text) => {
                    let packed: String = text.split_whitespace().collect();
                    let plain =
                        STANDARD.decode(packed).ok().and_then(|b| String::from_utf8(b).ok());
                    plain.map_or(Input::Unknown, Input::Text)
                }
                _ => Input::Unknown,
            }
        }
        ":" | "true" | "false" => Input::Text(String::new()),
        // Nobody else's file is there.
        "mktemp" if args.iter().all(|a| matches!(a.text.as_str(), "-d" | "-q" | "-u" | "-t")) => {
            Input::Text("/tmp/tmp.0".to_owned())
        }
        "which" if args.len() == 1 => known(args),
        "command" if args.first().is_some_and(|a| a.text == "-v") => {
            known(args.get(1..).unwrap_or_default())
        }
        _ => Input::Unknown,
    }
}

fn known(args: &[Arg]) -> Input {
    if args.iter().any(|a| a.unknown) {
        return Input::Unknown;
    }
    let texts: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
    Input::Text(texts.join(" "))
}

fn echo(args: &[Arg]) -> Input {
    let flags = args
        .iter()
        .take_while(|a| a.is_option() && a.text.chars().skip(1).all(|c| "neE".contains(c)))
        .count();
    let (flags, texts) = args.split_at(flags);
    let Input::Text(text) = known(texts) else { return Input::Unknown };
    let reads_escapes = flags.iter().any(|f| f.text.contains('e'));
    if reads_escapes {
        return Input::Text(escapes(&text));
    }
    // Whether escapes mean something depends on the shell; to a shell that reads what is printed a
    // backslash before a letter means that letter either way.
    Input::Text(escapes(&text))
}

fn printf(args: &[Arg]) -> Input {
    let Some((format, values)) = args.split_first().filter(|(f, _)| !f.is_option()) else {
        return Input::Unknown;
    };
    if format.unknown || values.iter().any(|a| a.unknown) {
        return Input::Unknown;
    }
    let format = escapes(&format.text);
    let between = if format.ends_with('\n') { "\n" } else { "" };
    let simple = matches!(format.trim_end_matches('\n'), "%s" | "%b");
    let values: Vec<&str> = values.iter().map(|a| a.text.as_str()).collect();
    let values = values.join(if simple { between } else { "\u{0}" });
    match format.trim_end_matches('\n') {
        "%s" => Input::Text(values),
        "%b" => Input::Text(escapes(&values)),
        text if !text.contains('%') => Input::Text(format),
        _ => put_in(&format, values.split('\u{0}')).map_or(Input::Unknown, Input::Text),
    }
}

/// A format with its values in place; `None` for one that needs more than texts.
fn put_in<'v>(format: &str, mut values: impl Iterator<Item = &'v str>) -> Option<String> {
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => match chars.next()? {
                '%' => out.push('%'),
                's' | 'd' | 'i' | 'u' => out.push_str(values.next().unwrap_or_default()),
                'b' => out.push_str(&escapes(values.next().unwrap_or_default())),
                _ => return None,
            },
            c => out.push(c),
        }
    }
    // More values begin the format anew.
    values.next().is_none().then_some(out)
}

/// Escapes as `echo -e` and `printf` read them: an octal number may begin with a nought of its own.
fn escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        plain.push(c);
        if c != '\\' {
            continue;
        }
        let Some(next) = chars.next() else { break };
        let octal = chars.peek().is_some_and(|c| c.is_digit(8));
        if next != '0' || !octal {
            plain.push(next);
        }
    }
    ansi_c(&plain)
}
