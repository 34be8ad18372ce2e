//! Text from the estate is data: what could disguise it is made visible.

use std::borrow::Cow;

use serde_json::Value;

/// Makes control, bidirectional and invisible characters visible as `⟨U+202E⟩`;
/// line feed and tab stay.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|b| (0x20..0x7f).contains(&b) || b == b'\n' || b == b'\t') {
        return Cow::Borrowed(text);
    }
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// [`clean`] for every string and member name inside a value, in place.
pub fn clean_value(value: &mut Value) {
    match value {
        Value::String(s) => {
            if let Cow::Owned(cleaned) = clean(s) {
                *s = cleaned;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(clean_value),
        Value::Object(map) => {
            if map.keys().any(|k| matches!(clean(k), Cow::Owned(_))) {
                let old = std::mem::take(map);
                map.extend(old.into_iter().map(|(k, v)| (clean(&k).into_owned(), v)));
            }
            map.values_mut().for_each(clean_value);
        }
        _ => {}
    }
}

/// Characters that a reader cannot see, or that change how others are seen:
/// C0 and C1 controls, zero-width, bidirectional controls, line and paragraph
/// separators, variation selectors, tag characters and other fillers.
fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => {
            true
        }
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_become_visible() {
        for (input, want) in [
            ("plain", "plain"),
            ("Prüf-Öl-日本 🙂", "Prüf-Öl-日本 🙂"),
            ("a\nb\tc", "a\nb\tc"),
            ("a\u{202e}b", "a⟨U+202E⟩b"),
            ("a\u{200b}b", "a⟨U+200B⟩b"),
            ("\u{1b}[31m", "⟨U+001B⟩[31m"),
            ("a\rb", "a⟨U+000D⟩b"),
            ("\u{e0041}", "⟨U+E0041⟩"),
        ] {
            assert_eq!(clean(input), want);
        }
    }

    #[test]
    fn names_and_values_of_objects_are_cleaned() {
        let mut value = serde_json::json!({"a\u{202e}": ["x\u{7}"]});
        clean_value(&mut value);
        assert_eq!(value, serde_json::json!({"a⟨U+202E⟩": ["x⟨U+0007⟩"]}));
    }
}
