//! Texts that the parser would take too long for: its time doubles with each level of some.

/// Most opening signs of a text that is given to the parser, and how deep they
/// may stand in each other.
const MOST_OPENINGS: usize = 150;
const DEEPEST_OPENINGS: usize = 10;
/// Most `case` of a text, for the same reason.
const MOST_CASES: usize = 10;

/// Whether the parser would take too long for a text.
pub(super) fn is_tangled(text: &str) -> bool {
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
