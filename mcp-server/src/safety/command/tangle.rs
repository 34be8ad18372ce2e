//! Texts that the parser would take too long for, since its time doubles with each level of some,
//! and those that it breaks on.

/// Most opening signs of a text that is given to the parser, and how deep they
/// may stand in each other.
const MOST_OPENINGS: usize = 150;
const DEEPEST_OPENINGS: usize = 10;
/// Most `case` of a text, for the same reason.
const MOST_CASES: usize = 10;

/// Digits of a number that the parser reads without asking whether it can hold it: that of a
/// descriptor before `<` or `>`, and those of `~1` and `{1..9}`.
const MOST_DIGITS_OF_DESCRIPTOR: usize = 9;
const MOST_DIGITS: usize = 18;

/// Whether the parser would take too long for a text, or break on it.
pub(super) fn is_tangled(text: &str) -> bool {
    is_deep(text) || has_huge_number(text)
}

fn has_huge_number(text: &str) -> bool {
    // A line that goes on parts no number.
    let text = text.replace("\\\n", "");
    let (mut digits, mut before, mut last) = (0_usize, ' ', ' ');
    for c in text.chars() {
        if c.is_ascii_digit() {
            if digits == 0 {
                before = last;
            }
            digits += 1;
            if digits > MOST_DIGITS && matches!(before, '~' | '+' | '-' | '.' | '{') {
                return true;
            }
        } else {
            if digits > MOST_DIGITS_OF_DESCRIPTOR && matches!(c, '<' | '>') {
                return true;
            }
            digits = 0;
        }
        last = c;
    }
    false
}

fn is_deep(text: &str) -> bool {
    let (mut all, mut depth, mut before) = (0_usize, 0_usize, ' ');
    // Signs of an index inside `${` cost as much as several others.
    let mut inside_parameter = 0_usize;
    for c in text.chars() {
        match c {
            '(' | '{' | '`' | '<' => {
                all += 1;
                // A backquote closes what the one before opened.
                depth += usize::from(!matches!(c, '<' | '`'));
                inside_parameter += usize::from(c == '{' && before == '$');
            }
            '[' => {
                all += 1;
                depth += if inside_parameter > 0 { 3 } else { 1 };
            }
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if all > MOST_OPENINGS || depth > DEEPEST_OPENINGS {
            return true;
        }
        if c == '}' {
            inside_parameter = inside_parameter.saturating_sub(1);
        }
        before = c;
    }
    text.split_whitespace().filter(|word| word.ends_with("case")).count() > MOST_CASES
}
