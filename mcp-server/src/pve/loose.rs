//! The one place that evens out how Proxmox types its answers: numbers come as
//! numbers or strings, booleans as 0, 1, "0", "1" or absent, and "nothing" as
//! an absent key, `null` or an empty string.

use serde_json::Value;

/// A member that says something: absent, `null` and `""` are `None`.
#[must_use]
pub fn some<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|v| !v.is_null() && v.as_str() != Some(""))
}

/// Text; a number is written out.
#[must_use]
pub fn text(object: &Value, key: &str) -> Option<String> {
    match some(object, key)? {
        Value::String(s) => Some(s.clone()),
        Value::Number(n) => Some(n.to_string()),
        Value::Bool(b) => Some(i32::from(*b).to_string()),
        _ => None,
    }
}

/// Borrowed text, `None` for anything but a non-empty string.
#[must_use]
pub fn str<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    some(object, key)?.as_str()
}

/// A whole number, from a number or its text.
#[must_use]
pub fn int(object: &Value, key: &str) -> Option<i64> {
    as_int(some(object, key)?)
}

/// A whole number that cannot be negative.
#[must_use]
pub fn uint(object: &Value, key: &str) -> Option<u64> {
    int(object, key).and_then(|n| u64::try_from(n).ok())
}

/// A number, from a number or its text.
#[must_use]
pub fn float(object: &Value, key: &str) -> Option<f64> {
    as_float(some(object, key)?)
}

/// A number from a bare value.
#[must_use]
pub fn as_float(value: &Value) -> Option<f64> {
    match value {
        Value::Number(n) => n.as_f64(),
        Value::String(s) => s.trim().parse().ok().filter(|f: &f64| f.is_finite()),
        _ => None,
    }
}

/// A switch: absent is `false`.
#[must_use]
pub fn flag(object: &Value, key: &str) -> bool {
    match some(object, key) {
        Some(Value::Bool(b)) => *b,
        Some(Value::Number(n)) => n.as_f64() != Some(0.0),
        Some(Value::String(s)) => {
            matches!(s.to_ascii_lowercase().as_str(), "1" | "yes" | "on" | "true")
        }
        _ => false,
    }
}

/// A whole number from a bare value.
#[must_use]
pub fn as_int(value: &Value) -> Option<i64> {
    match value {
        #[allow(clippy::cast_possible_truncation)]
        Value::Number(n) => n.as_i64().or_else(|| {
            n.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15).map(|f| f as i64)
        }),
        Value::String(s) => s.trim().parse().ok(),
        Value::Bool(b) => Some(i64::from(*b)),
        _ => None,
    }
}

/// The rows of a list answer; anything but an array is an empty list.
#[must_use]
pub fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A guest's tags: parted by `;`, `,` or blanks, case folded, sorted, unique.
#[must_use]
pub fn tags(text: &str) -> Vec<String> {
    let mut tags: Vec<String> = text
        .split([';', ',', ' ', '\t'])
        .filter(|t| !t.is_empty())
        .map(str::to_lowercase)
        .collect();
    tags.sort();
    tags.dedup();
    tags
}
