//! Words of a shell text: what they become, as far as that can be known.

use brush_parser::{
    ParserOptions,
    word::{self, BraceExpressionMember, BraceExpressionOrText, TildeExpr, WordPiece},
};

use super::walk::{Input, Walk};
use crate::safety::Flag;

/// Stands for a part of a word that cannot be known.
pub(super) const UNKNOWN: char = '\u{fffd}';
/// Most words that one pattern of braces may become.
const MOST: usize = 64;

/// One argument of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// The text; parts that cannot be known are U+FFFD.
    pub text: String,
    /// Whether a part of it cannot be known.
    pub unknown: bool,
}

impl Arg {
    /// Exactly this text.
    pub fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), unknown: false }
    }

    /// Something that cannot be known.
    pub fn unknown() -> Self {
        Self { text: UNKNOWN.to_string(), unknown: true }
    }

    /// Whether it is an option.
    pub fn is_option(&self) -> bool {
        self.text.len() > 1 && self.text.starts_with('-')
    }
}

/// The fields that a word becomes while it is expanded.
pub(super) struct Fields {
    done: Vec<Arg>,
    open: Option<Arg>,
}

impl Fields {
    fn push(&mut self, text: &str) {
        self.open.get_or_insert_with(|| Arg::literal("")).text.push_str(text);
    }

    pub(super) fn push_unknown(&mut self) {
        let open = self.open.get_or_insert_with(|| Arg::literal(""));
        open.text.push(UNKNOWN);
        open.unknown = true;
    }

    /// A value, of which a part may be unknown.
    pub(super) fn push_arg(&mut self, value: &Arg, quoted: bool) {
        if quoted {
            self.push(&value.text)
        } else {
            self.push_split(&value.text)
        }
        if value.unknown {
            self.open.get_or_insert_with(|| Arg::literal("")).unknown = true;
        }
    }

    /// What a substitution printed.
    fn push_printed(&mut self, printed: &Input, quoted: bool) {
        match printed {
            Input::Text(text) => self.push_arg(&Arg::literal(text.trim_end_matches('\n')), quoted),
            Input::Nothing | Input::Unknown => self.push_unknown(),
        }
    }

    /// Ends a word.
    pub(super) fn part(&mut self) {
        self.done.extend(self.open.take());
    }

    /// A value that was not in quotes: blanks in it part words.
    fn push_split(&mut self, value: &str) {
        for (place, part) in value.split([' ', '\t', '\n']).enumerate() {
            if place > 0 {
                self.done.extend(self.open.take().filter(|a| !a.text.is_empty()));
            }
            if !part.is_empty() {
                self.push(part);
            }
        }
    }
}

impl Walk<'_> {
    /// What a word becomes; commands in it are walked.
    pub(super) fn expand(&mut self, word: &str) -> Vec<Arg> {
        let options = ParserOptions::default();
        let Some(alternatives) = braces(word, &options) else {
            self.found.add(Flag::ExecShell, "a pattern of braces with very many words");
            return vec![Arg::unknown()];
        };
        let mut all = Vec::new();
        for word in alternatives {
            let Ok(pieces) = word::parse(&word, &options) else {
                self.found.add(Flag::ExecShell, "a word that cannot be read");
                all.push(Arg::unknown());
                continue;
            };
            let mut fields = Fields { done: Vec::new(), open: None };
            for piece in pieces {
                let raw = word.get(piece.start_index..piece.end_index).unwrap_or_default();
                self.piece(&piece.piece, raw, false, &mut fields);
            }
            all.extend(fields.done);
            all.extend(fields.open);
        }
        all
    }

    /// A word that is one text, as an assignment or a redirection has it.
    pub(super) fn expand_one(&mut self, word: &str) -> Arg {
        let mut words = self.expand(word).into_iter();
        let Some(mut first) = words.next() else { return Arg::literal("") };
        for next in words {
            first.text.push(' ');
            first.text.push_str(&next.text);
            first.unknown |= next.unknown;
        }
        first
    }

    /// A here-document whose text the shell expands.
    pub(super) fn expand_document(&mut self, text: &str) -> Arg {
        let options = ParserOptions::default();
        let mut fields = Fields { done: Vec::new(), open: Some(Arg::literal("")) };
        match word::parse_heredoc(text, &options) {
            Ok(pieces) => {
                for piece in pieces {
                    let raw = text.get(piece.start_index..piece.end_index).unwrap_or_default();
                    self.piece(&piece.piece, raw, true, &mut fields);
                }
            }
            Err(_) => {
                self.found.add(Flag::ExecShell, "a here-document that cannot be read");
                fields.push_unknown();
            }
        }
        fields.open.unwrap_or_else(|| Arg::literal(""))
    }

    fn piece(&mut self, piece: &WordPiece, raw: &str, quoted: bool, into: &mut Fields) {
        match piece {
            WordPiece::Text(text) | WordPiece::SingleQuotedText(text) => into.push(text),
            WordPiece::AnsiCQuotedText(text) => {
                // A plain shell ends the quotes there and goes on.
                if text.contains("\\'") {
                    self.found.add(Flag::ExecShell, "quotes that shells read in different ways");
                }
                into.push(&ansi_c(text));
            }
            WordPiece::EscapeSequence(text) => {
                let text = text.strip_prefix('\\').unwrap_or(text);
                // A line that goes on.
                if text != "\n" {
                    into.push(text);
                }
            }
            WordPiece::DoubleQuotedSequence(pieces)
            | WordPiece::GettextDoubleQuotedSequence(pieces) => {
                into.push("");
                for inner in pieces {
                    self.piece(&inner.piece, raw, true, into);
                }
            }
            WordPiece::TildeExpansion(TildeExpr::Home) => match self.variable("HOME") {
                Some(home) => into.push(&home),
                None => into.push_unknown(),
            },
            WordPiece::TildeExpansion(TildeExpr::UserHome(user)) if user == "root" => {
                into.push("/root");
            }
            WordPiece::TildeExpansion(TildeExpr::UserHome(user)) => {
                into.push("/home/");
                into.push(user);
            }
            WordPiece::TildeExpansion(_) => into.push_unknown(),
            WordPiece::ParameterExpansion(expr) => self.parameter(expr, raw, quoted, into),
            WordPiece::CommandSubstitution(text) => {
                let printed = self.inner(text);
                into.push_printed(&printed, quoted);
            }
            WordPiece::BackquotedCommandSubstitution(text) => {
                let text = text.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\");
                let printed = self.inner(&text);
                into.push_printed(&printed, quoted);
            }
            WordPiece::ArithmeticExpression(expression) => {
                if expression.value.contains("$(") || expression.value.contains('`') {
                    self.found.add(Flag::ExecShell, "a command inside arithmetic");
                }
                into.push_unknown();
            }
        }
    }
}

/// The words that braces make of a word; `None` for too many.
fn braces(word: &str, options: &ParserOptions) -> Option<Vec<String>> {
    if !word.contains('{') {
        return Some(vec![word.to_owned()]);
    }
    match word::parse_brace_expansions(word, options) {
        Ok(Some(parts)) => expanded(&parts),
        _ => Some(vec![word.to_owned()]),
    }
}

fn expanded(parts: &[BraceExpressionOrText]) -> Option<Vec<String>> {
    let mut all = vec![String::new()];
    for part in parts {
        let choices = match part {
            BraceExpressionOrText::Text(text) => vec![text.clone()],
            BraceExpressionOrText::Expr(members) => {
                let mut choices = Vec::new();
                for member in members {
                    choices.extend(of_member(member)?);
                }
                choices
            }
        };
        if all.len() * choices.len() > MOST {
            return None;
        }
        all =
            all.iter().flat_map(|head| choices.iter().map(move |c| format!("{head}{c}"))).collect();
    }
    Some(all)
}

fn of_member(member: &BraceExpressionMember) -> Option<Vec<String>> {
    match member {
        BraceExpressionMember::Child(parts) => expanded(parts),
        BraceExpressionMember::NumberSequence { start, end, .. } => {
            let (low, high) = (start.min(end), start.max(end));
            let count = usize::try_from(high.checked_sub(*low)?).ok()?;
            (count < MOST).then(|| (*low..=*high).map(|n| n.to_string()).collect())
        }
        BraceExpressionMember::CharSequence { start, end, .. } => {
            let (low, high) = (start.min(end), start.max(end));
            let all: Vec<String> = (*low..=*high).take(MOST).map(|c| c.to_string()).collect();
            (all.len() < MOST).then_some(all)
        }
    }
}

/// The text of `$'…'`.
pub(super) fn ansi_c(text: &str) -> String {
    let mut out: Vec<u8> = Vec::new();
    let mut chars = text.chars().peekable();
    let mut buffer = [0; 4];
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend(c.encode_utf8(&mut buffer).bytes());
            continue;
        }
        let low = |value: u32| u8::try_from(value & 0xff).unwrap_or(0);
        match chars.next() {
            Some('n') => out.push(b'\n'),
            Some('t') => out.push(b'\t'),
            Some('r') => out.push(b'\r'),
            Some('a') => out.push(7),
            Some('b') => out.push(8),
            Some('e' | 'E') => out.push(27),
            Some('x') => {
                let value = number(&mut chars, 16, 2, None);
                out.push(low(value));
            }
            Some('u') => {
                let c = char::from_u32(number(&mut chars, 16, 4, None)).unwrap_or(UNKNOWN);
                out.extend(c.encode_utf8(&mut buffer).bytes());
            }
            Some('U') => {
                let c = char::from_u32(number(&mut chars, 16, 8, None)).unwrap_or(UNKNOWN);
                out.extend(c.encode_utf8(&mut buffer).bytes());
            }
            Some(c @ '0'..='7') => {
                let value = number(&mut chars, 8, 2, Some(c));
                out.push(low(value));
            }
            Some(c) => out.extend(c.encode_utf8(&mut buffer).bytes()),
            None => out.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The number that follows, of at most so many digits.
fn number(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    radix: u32,
    most: usize,
    first: Option<char>,
) -> u32 {
    let mut value = first.and_then(|c| c.to_digit(radix)).unwrap_or(0);
    for _ in 0..most {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else { break };
        value = value.wrapping_mul(radix).wrapping_add(digit);
        chars.next();
    }
    value
}
