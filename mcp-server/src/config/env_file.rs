//! The format of `.env` and `critical.env`: one `NAME=value` a line.
//!
//! The library reads keys, quotes and escapes. Three of its habits do not suit
//! a file that holds secrets, so each line is prepared before it sees it: `$`
//! stands for itself (nothing is substituted from the process's environment),
//! a value without quotes is taken as it is written up to ` #`, and errors
//! carry the line's number instead of its text.

use std::borrow::Cow;

/// One assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name before `=`.
    pub name: String,
    /// The value without its quotes.
    pub value: String,
    /// What stands after `=` in the file, quotes and comment and all.
    pub written: String,
    /// Line in the file, from 1.
    pub line: u32,
}

/// A line that cannot be read; its text is not repeated, it may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Line in the file, from 1; 0 for the file as a whole.
    pub line: u32,
    /// What is wrong.
    pub message: &'static str,
    /// What to write instead.
    pub hint: &'static str,
}

/// Reads a whole file.
///
/// # Errors
/// The first line that is not an assignment, a comment or blank.
pub fn parse(bytes: &[u8]) -> Result<Vec<Entry>, BadLine> {
    let mut entries = Vec::new();
    for (index, line) in lines(bytes)?.iter().enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let prepared = prepare(line);
        for item in dotenvy::from_read_iter(prepared.as_bytes()) {
            let (name, value) = item.map_err(|_| explain(line, number))?;
            let written = line.split_once('=').map_or("", |(_, after)| after).to_owned();
            entries.push(Entry { name, value, written, line: number });
        }
    }
    Ok(entries)
}

fn lines(bytes: &[u8]) -> Result<Vec<&str>, BadLine> {
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        let (message, hint) = ("the file is saved as UTF-16", "save it as UTF-8");
        return Err(BadLine { line: 0, message, hint });
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let before = bytes.get(..e.valid_up_to()).unwrap_or_default();
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        BadLine {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            message: "the line is not UTF-8",
            hint: "save the file as UTF-8",
        }
    })?;
    Ok(text.strip_prefix('\u{FEFF}').unwrap_or(text).lines().collect())
}

/// Makes the library read a line as this file's rules say: whatever the value
/// is, it arrives between double quotes, with what is special there escaped.
fn prepare(line: &str) -> Cow<'_, str> {
    let line = line.trim();
    match line.split_once('=') {
        _ if line.starts_with('#') => "".into(),
        None => line.into(),
        Some((name, value)) => format!("{name}={}", requote(value.trim_start())).into(),
    }
}

fn requote(value: &str) -> String {
    let bare = value.get(..comment_start(value).unwrap_or(value.len())).unwrap_or(value);
    if !bare.contains(['\'', '"']) {
        let mut plain = String::from('"');
        bare.trim_end().chars().for_each(|c| push_literal(&mut plain, c));
        plain.push('"');
        return plain;
    }
    let mut text = String::with_capacity(value.len() + 8);
    let (mut quote, mut escaped, mut before) = (None, false, ' ');
    for c in value.chars() {
        match (quote, c) {
            (_, c) if escaped => {
                text.push(c);
                escaped = false;
            }
            (Some('\''), '\'') => {
                text.push('"');
                quote = None;
            }
            (Some('\''), c) => push_literal(&mut text, c),
            (None, '\'') => {
                text.push('"');
                quote = Some('\'');
            }
            (None, '#') if before.is_whitespace() => break,
            (_, '$') => text.push_str("\\$"),
            (_, c) => {
                if c == '"' {
                    quote = if quote.is_some() { None } else { Some('"') };
                }
                escaped = c == '\\';
                text.push(c);
            }
        }
        before = c;
    }
    text.trim_end().to_owned()
}

/// A character that stands for itself between double quotes.
fn push_literal(text: &mut String, c: char) {
    if matches!(c, '\\' | '"' | '$') {
        text.push('\\');
    }
    text.push(c);
}

/// Where ` #` begins a comment in a value without quotes.
fn comment_start(value: &str) -> Option<usize> {
    let mut before = ' ';
    for (at, c) in value.char_indices() {
        if c == '#' && before.is_whitespace() {
            return Some(at);
        }
        before = c;
    }
    None
}

fn explain(line: &str, number: u32) -> BadLine {
    let name = line.split_once('=').map(|(name, _)| name.trim());
    let (message, hint) = match name {
        None => ("the line has no `=`", "write NAME=value, or # in front of a comment"),
        Some(name) if !is_name(name) => {
            ("what stands before `=` is not a name", "write NAME=value")
        }
        Some(_) => (
            "the value's quotes or backslashes do not work out",
            "put the whole value between single quotes; one that has a single quote itself goes \
             between double quotes, with \\ before each \", \\ and $ in it",
        ),
    };
    BadLine { line: number, message, hint }
}

fn is_name(text: &str) -> bool {
    let name = text.strip_prefix("export ").unwrap_or(text).trim_start();
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> String {
        let entries = parse(line.as_bytes()).unwrap_or_else(|e| panic!("{line}: {e:?}"));
        assert_eq!(entries.len(), 1, "{line}");
        assert_eq!(entries[0].name, "KEY", "{line}");
        entries[0].value.clone()
    }

    #[test]
    fn what_stands_after_the_sign_is_the_value() {
        for (line, value) in [
            ("KEY=plain", "plain"),
            ("  KEY = blanks around \t", "blanks around"),
            ("export KEY=exported", "exported"),
            ("KEY=", ""),
            ("KEY=   # nothing", ""),
            ("KEY=#nothing", ""),
            ("KEY=''", ""),
            // Nothing is substituted, from nowhere.
            ("KEY=$HOME", "$HOME"),
            ("KEY=a$HOME${PATH}b$", "a$HOME${PATH}b$"),
            ("KEY='a$HOME'", "a$HOME"),
            (r#"KEY="a$HOME${PATH}$""#, "a$HOME${PATH}$"),
            (r#"KEY="a\$HOME""#, "a$HOME"),
            (r#"KEY="a\\$HOME""#, r"a\$HOME"),
            ("KEY=mcp@pve!full", "mcp@pve!full"),
            ("KEY=!!$!%&()*;<>?[]^`{|}~", "!!$!%&()*;<>?[]^`{|}~"),
            ("KEY=a=b==", "a=b=="),
            ("KEY=a#b", "a#b"),
            ("KEY=a #b", "a"),
            ("KEY=a\t# it's", "a"),
            ("KEY='a #b' # c", "a #b"),
            (r#"KEY="it's" # c"#, "it's"),
            (r#"KEY="x" # it's "so""#, "x"),
            ("KEY='x'   ", "x"),
            (r"KEY='C:\dir\'", r"C:\dir\"),
            (r"KEY=C:\dir\", r"C:\dir\"),
            (r#"KEY='a'"b"c"#, "abc"),
            (r#"KEY='say "x"'"#, r#"say "x""#),
            // Backslashes are literal where there are no quotes: Windows paths.
            (r"KEY=C:\new\table", r"C:\new\table"),
            (r"KEY=\\server\share", r"\\server\share"),
            (r"KEY='C:\new'", r"C:\new"),
            (r#"KEY="C:\\new""#, r"C:\new"),
            ("KEY=100-199, 250", "100-199, 250"),
            ("KEY=ssh-ed25519 AAAA+/=", "ssh-ed25519 AAAA+/="),
            ("KEY=ümlaut 日本", "ümlaut 日本"),
            ("\u{FEFF}KEY=bom", "bom"),
            ("KEY=crlf\r\n", "crlf"),
            ("KEY='crlf'\r\n", "crlf"),
        ] {
            assert_eq!(one(line), value, "{line}");
        }
    }

    #[test]
    fn entries_know_their_lines() {
        let entries = parse(b"# one\r\n  \t\r\nA=1\r\n  # it's a=b\nB='2'\n\nA=3").unwrap();
        let seen: Vec<_> = entries.iter().map(|e| (e.name.as_str(), e.line)).collect();
        assert_eq!(seen, [("A", 3), ("B", 5), ("A", 7)]);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named_and_not_repeated() {
        let cases: &[(&[u8], u32, &str)] = &[
            (b"A=1\nhunter2\n", 2, "no `=`"),
            (b"A=1\n\nB='hunter2\nC=2\n", 3, "quotes"),
            (b"B=hunter2's\n", 1, "quotes"),
            (b"B=\"hunter2\\x\"\n", 1, "quotes"),
            (b"B='hunter2' 'x'\n", 1, "quotes"),
            (b"very bacon = hunter2\n", 1, "not a name"),
            (b"=hunter2\n", 1, "not a name"),
            (b"A'B=hunter2\n", 1, "not a name"),
            (b"1A=hunter2\n", 1, "not a name"),
            (b"A=1\nB=\xff\xfe\n", 2, "UTF-8"),
            (b"\xff\xfeA\0=\0", 0, "UTF-16"),
        ];
        for (bytes, line, message) in cases {
            let bad = parse(bytes).unwrap_err();
            assert_eq!(bad.line, *line, "{bad:?}");
            assert!(bad.message.contains(message), "{bad:?}");
            assert!(!bad.message.contains("hunter2") && !bad.hint.is_empty());
        }
    }

    proptest::proptest! {
        /// Whatever single-quoted text a person writes comes out as it was.
        #[test]
        fn single_quotes_keep_everything(value in "[^'\\r\\n\\x00]{0,40}") {
            let entries = parse(format!("KEY='{value}'").as_bytes()).unwrap();
            proptest::prop_assert_eq!(&entries[0].value, &value);
        }

        /// No file makes the reader panic.
        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn never_panics_on_likely_text(text in "[A-C='\"\\\\$#{} \n]{0,40}") {
            let _ = parse(text.as_bytes());
        }
    }
}
