//! What a command prints, where its text tells: it may be what a shell runs next.

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
    // Whether the other escapes mean something depends on the shell.
    let lines = text.replace("\\n", "\n");
    if lines.contains('\\') { Input::Unknown } else { Input::Text(lines) }
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
    let values: Vec<&str> = values.iter().map(|a| a.text.as_str()).collect();
    let values = values.join(between);
    match format.trim_end_matches('\n') {
        "%s" => Input::Text(values),
        "%b" => Input::Text(escapes(&values)),
        text if !text.contains('%') => Input::Text(format),
        _ => Input::Unknown,
    }
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
