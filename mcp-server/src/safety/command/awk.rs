//! Programs for awk: what they run, write and read.

use super::{
    walk::{Input, Walk},
    words::Arg,
    wrappers::{after_options, has_long},
};
use crate::safety::Flag;

/// A piece of a program.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    /// A string, without its quotes.
    Text(String),
    /// A name, a number, or a field.
    Name(String),
    Regex,
    Sign(char),
    Line,
}

impl Walk<'_> {
    pub(super) fn awk(&mut self, args: &[Arg]) {
        let long = ["field-separator", "assign", "file", "include", "source", "load", "exec"];
        let at = after_options(args, "Fvfiel", &long);
        let options = args.get(..at).unwrap_or_default();
        let short = |c: &str| options.iter().any(|a| a.text.starts_with(c));
        let mut program = args.get(at).cloned();
        if short("-f")
            || short("-i")
            || short("-l")
            || short("-E")
            || ["file", "include", "load", "exec"].iter().any(|l| has_long(options, l))
        {
            self.found.add(Flag::ExecShell, "a script for awk");
            program = None;
        }
        if short("-e") || has_long(options, "source") {
            // It may be any of the words: all of them are read as one.
            let all: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
            program = Some(Arg { text: all.join("\n"), unknown: false });
        }
        let Some(program) = program else { return };
        if program.unknown && program.text.chars().count() == 1 {
            self.found.add(Flag::ExecShell, "a program for awk that is put together");
        }
        self.awk_program(&program.text);
    }

    fn awk_program(&mut self, program: &str) {
        let Some(tokens) = tokens(program) else {
            self.found.add(Flag::ExecShell, "a program for awk that cannot be read");
            return;
        };
        let sign = |at: Option<&Token>, c: char| at == Some(&Token::Sign(c));
        let at = |at: usize| tokens.get(at);
        // A string alone, not put together with what stands beside it.
        let ends = |at: Option<&Token>| {
            matches!(at, None | Some(Token::Line | Token::Sign(';' | '}' | ')' | '|')))
        };
        let begins = |at: Option<&Token>| {
            matches!(at, None | Some(Token::Line | Token::Sign(';' | '{' | '(' | '&' | '|' | '!')))
        };
        for (place, token) in tokens.iter().enumerate() {
            let before = place.checked_sub(1).and_then(at);
            match token {
                Token::Name(name) if name == "system" && sign(at(place + 1), '(') => {
                    match (at(place + 2), at(place + 3)) {
                        (Some(Token::Text(text)), Some(Token::Sign(')'))) => self.awk_runs(text),
                        (Some(Token::Sign(')')), _) => {}
                        _ => self.found.add(Flag::ExecShell, "awk that runs a program"),
                    }
                }
                // A call by a name that is not known, and code that is loaded.
                Token::Sign('@') => self.found.add(Flag::ExecShell, "awk that runs other code"),
                Token::Sign('|') if sign(at(place + 1), '|') || sign(before, '|') => {}
                Token::Sign('|') => match (before, at(place + 1)) {
                    (_, Some(Token::Text(text))) if ends(at(place + 2)) => self.awk_runs(text),
                    (Some(Token::Text(text)), Some(Token::Name(get)))
                        if get == "getline" && begins(place.checked_sub(2).and_then(at)) =>
                    {
                        self.awk_runs(text);
                    }
                    _ => self.found.add(Flag::ExecShell, "awk that runs a program"),
                },
                Token::Sign('>') => {
                    if let Some(Token::Text(path)) = at(place + 1) {
                        self.writes(&Arg::literal(path));
                    }
                }
                Token::Sign('<') => {
                    if let Some(Token::Text(path)) = at(place + 1) {
                        self.reads(&Arg::literal(path));
                    }
                }
                _ => {}
            }
        }
    }

    fn awk_runs(&mut self, text: &str) {
        self.found.add(Flag::ExecShell, "awk that runs a program");
        self.text(text, &Input::Unknown);
    }
}

/// The pieces of a program; `None` for a string or pattern that does not end.
fn tokens(program: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut chars = program.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => tokens.push(Token::Line),
            c if c.is_whitespace() => {}
            '#' => while chars.next_if(|c| *c != '\n').is_some() {},
            '"' => tokens.push(Token::Text(until(&mut chars, '"')?)),
            // Behind a value it divides.
            '/' if !matches!(
                tokens.last(),
                Some(Token::Name(_) | Token::Text(_) | Token::Sign(')' | ']' | '$'))
            ) =>
            {
                until(&mut chars, '/')?;
                tokens.push(Token::Regex);
            }
            c if c.is_alphanumeric() || matches!(c, '_' | '\u{fffd}') => {
                let mut name = c.to_string();
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                let keyword =
                    matches!(name.as_str(), "print" | "printf" | "return" | "in" | "getline");
                // A pattern may follow these, and no division.
                tokens.push(Token::Name(name));
                if keyword && matches!(chars.peek(), Some('/')) {
                    tokens.push(Token::Line);
                }
            }
            '\\' => {}
            // `>>` is one.
            '>' if tokens.last() == Some(&Token::Sign('>')) => {}
            c => tokens.push(Token::Sign(c)),
        }
    }
    Some(tokens)
}

/// The text up to a sign that is not behind a backslash; a line's end ends nothing.
fn until(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, end: char) -> Option<String> {
    let mut text = String::new();
    let mut set = false;
    loop {
        match chars.next()? {
            '\\' => {
                let next = chars.next()?;
                match (next, end) {
                    ('n', '"') => text.push('\n'),
                    ('t', '"') => text.push('\t'),
                    // Octal and hexadecimal escapes spell what is not read here.
                    ('0'..='9' | 'x', '"') => return None,
                    (next, _) => text.push(next),
                }
            }
            c if c == end && !set => return Some(text),
            c => {
                // Inside a set of characters a slash is one of them.
                set = end == '/'
                    && match c {
                        '[' => true,
                        ']' => false,
                        _ => set,
                    };
                text.push(c);
            }
        }
    }
}
