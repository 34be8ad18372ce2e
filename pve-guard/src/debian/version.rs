//! The order of Debian version numbers (deb-version(7)).

use std::cmp::Ordering;

/// Compares two versions: epoch, upstream part, revision.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (a_epoch, a_upstream, a_revision) = split(a);
    let (b_epoch, b_upstream, b_revision) = split(b);
    a_epoch
        .cmp(&b_epoch)
        .then_with(|| compare_part(a_upstream.as_bytes(), b_upstream.as_bytes()))
        .then_with(|| compare_part(a_revision.as_bytes(), b_revision.as_bytes()))
}

fn split(version: &str) -> (u64, &str, &str) {
    let (epoch, rest) = match version.split_once(':') {
        Some((epoch, rest)) => (epoch.parse().unwrap_or(0), rest),
        None => (0, version),
    };
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, "0"));
    (epoch, upstream, revision)
}

/// Text and numbers in turn: text by letters before signs and `~` before the
/// end, numbers by their value.
fn compare_part(mut a: &[u8], mut b: &[u8]) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (a_text, a_rest) = a.split_at(count(a, |byte| !byte.is_ascii_digit()));
        let (b_text, b_rest) = b.split_at(count(b, |byte| !byte.is_ascii_digit()));
        let order = compare_text(a_text, b_text);
        if order != Ordering::Equal {
            return order;
        }
        let (a_digits, a_rest) = a_rest.split_at(count(a_rest, |byte| byte.is_ascii_digit()));
        let (b_digits, b_rest) = b_rest.split_at(count(b_rest, |byte| byte.is_ascii_digit()));
        let (a_digits, b_digits) = (without_zeros(a_digits), without_zeros(b_digits));
        let order = a_digits.len().cmp(&b_digits.len()).then_with(|| a_digits.cmp(b_digits));
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (a_rest, b_rest);
    }
    Ordering::Equal
}

fn compare_text(a: &[u8], b: &[u8]) -> Ordering {
    let length = a.len().max(b.len());
    let weights =
        |text: &[u8]| -> Vec<i32> { (0..length).map(|at| weight(text.get(at).copied())).collect() };
    weights(a).cmp(&weights(b))
}

fn weight(byte: Option<u8>) -> i32 {
    match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(byte),
        Some(byte) => i32::from(byte) + 256,
    }
}

fn count(bytes: &[u8], belongs: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| belongs(byte)).count()
}

fn without_zeros(digits: &[u8]) -> &[u8] {
    digits.get(count(digits, |byte| *byte == b'0')..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_dpkg_does() {
        let pairs = [
            ("6.8.12-9-pve", "6.8.12-10-pve"),
            ("7.0.2-6-pve", "7.0.6-2-pve"),
            ("1.0~rc1", "1.0"),
            ("1.0", "1.0a"),
            ("1.0a", "1.0+b"),
            ("1.0-1", "1.0-1+deb13u1"),
            ("1.0-1~bpo12+1", "1.0-1"),
            ("9.9", "1:0.1"),
            ("2.9", "2.10"),
            ("1.2.3", "1.2.3.1"),
            ("1.0~~", "1.0~"),
        ];
        for (older, newer) in pairs {
            assert_eq!(compare(older, newer), Ordering::Less, "{older} {newer}");
            assert_eq!(compare(newer, older), Ordering::Greater, "{newer} {older}");
        }
        for (a, b) in [("1.0", "1.0"), ("1.0", "1.0-0"), ("0:1.0", "1.0"), ("1.00", "1.0")] {
            assert_eq!(compare(a, b), Ordering::Equal, "{a} {b}");
        }
    }
}
