//! Text from outside inside a form: one line, quoted, nothing hidden in it.

/// Most characters of a value that are shown; longer ones are cut in the middle.
const MOST: usize = 160;

/// A value on one line in quotes, cut in the middle with its length, with
/// blanks at the edges and invisible, bidirectional and look-alike characters
/// made visible.
#[must_use]
pub fn quoted(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let length = chars.len();
    if length <= MOST {
        return format!("\"{}\"", visible(&chars, true, true));
    }
    let half = MOST / 2;
    let head = visible(chars.get(..half).unwrap_or_default(), true, false);
    let tail = visible(chars.get(length - half..).unwrap_or_default(), false, true);
    format!("\"{head}\" … {} characters left out of {length} … \"{tail}\"", length - 2 * half)
}

/// As [`quoted`], but never cut: for what a person has to see to the end.
#[must_use]
pub fn whole(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    format!("\"{}\"", visible(&chars, true, true))
}

fn visible(chars: &[char], begins: bool, ends: bool) -> String {
    let mut out = String::with_capacity(chars.len() + 8);
    // Letters of another script inside a Latin word are there to deceive.
    let latin = chars.iter().any(char::is_ascii_alphabetic);
    for (place, c) in chars.iter().enumerate() {
        let edge = (place == 0 && begins) || (place + 1 == chars.len() && ends);
        let beside = place.checked_sub(1).and_then(|p| chars.get(p)) == Some(&' ');
        match c {
            ' ' if edge || beside => out.push('␣'),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if hidden(*c) || (latin && look_alike(*c)) => {
                out.push_str(&format!("\\u{{{:04x}}}", u32::from(*c)));
            }
            c => out.push(*c),
        }
    }
    out
}

/// Characters that cannot be seen, that change how others are seen, or that are blanks of another kind.
fn hidden(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Letters and signs of other scripts that look like ASCII ones.
fn look_alike(c: char) -> bool {
    matches!(c,
        '\u{370}'..='\u{58f}'       // Greek, Cyrillic, Armenian
        | '\u{13a0}'..='\u{13ff}'   // Cherokee
        | '\u{250}'..='\u{2ff}'     // phonetic letters, modifiers
        | '\u{300}'..='\u{36f}'     // combining marks
        | '\u{1d00}'..='\u{1dbf}' | '\u{2000}'..='\u{206f}' | '\u{2070}'..='\u{209f}'
        | '\u{2100}'..='\u{218f}' | '\u{2215}' | '\u{2236}' | '\u{2c60}'..='\u{2c7f}'
        | '\u{2460}'..='\u{24ff}' | '\u{a4d0}'..='\u{a4ff}' | '\u{a700}'..='\u{a7ff}'
        | '\u{ab70}'..='\u{abbf}' | '\u{ff00}'..='\u{ffef}' | '\u{1d400}'..='\u{1d7ff}'
        | '\u{1f100}'..='\u{1f1ff}')
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn nothing_hides_in_a_value() {
        for (text, want) in [
            ("web", "\"web\""),
            ("Prüf-Öl", "\"Prüf-Öl\""),
            ("日本", "\"日本\""),
            ("Москва", "\"Москва\""),
            ("p\u{430}y", "\"p\\u{0430}y\""),
            ("a\u{202e}b", "\"a\\u{202e}b\""),
            ("a\u{200b}b", "\"a\\u{200b}b\""),
            ("a\u{a0}b", "\"a\\u{00a0}b\""),
            (" a  b ", "\"␣a ␣b␣\""),
            ("a\nYes: send\t", "\"a\\nYes: send\\t\""),
            ("say \"yes\" \\", "\"say \\\"yes\\\" \\\\\""),
            ("", "\"\""),
        ] {
            assert_eq!(quoted(text), want, "{text:?}");
        }
        let long = format!("{}{}", "a".repeat(500), "b".repeat(500));
        let shown = quoted(&long);
        assert!(
            shown.starts_with("\"aaa")
                && shown.ends_with("bbb\"")
                && shown.contains("840 characters left out of 1000"),
            "{shown}"
        );
        assert_eq!(shown.lines().count(), 1);
    }
}
