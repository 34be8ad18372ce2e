//! Parameters: from query, form and JSON, and as text.

use percent_encoding::percent_decode;
use serde_json::{Map, Value};

use super::path;

/// A value as the text that Perl would see.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Bool(b) => u8::from(*b).to_string(),
        Value::Number(n) => number_text(n),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// `2.0` is 2, as in Perl.
fn number_text(n: &serde_json::Number) -> String {
    match n.as_f64() {
        Some(f) if !n.is_i64() && !n.is_u64() && f.fract() == 0.0 && f.abs() < 1e15 => {
            format!("{f:.0}")
        }
        _ => n.to_string(),
    }
}

/// Lists in strings are parted by comma, semicolon, blanks or NUL.
pub(crate) fn split_list(list: &str) -> Vec<String> {
    list.split([',', ';', ' ', '\t', '\n', '\0'])
        .filter(|s| !s.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Parameters of a query string, which holds one character per byte.
pub(crate) fn from_query(query: &str) -> Map<String, Value> {
    pairs(&path::bytes(query))
}

/// Parameters of a body, or the Perl text with which the real one dies.
pub(crate) fn from_body(
    content_type: Option<&str>,
    body: &[u8],
) -> Result<Map<String, Value>, String> {
    let kind = content_type.unwrap_or("");
    let base = kind.split(';').next().unwrap_or("").trim_end();
    if base == "application/json" {
        return from_json(body);
    }
    if body.is_empty() || base.is_empty() || base == "application/x-www-form-urlencoded" {
        return Ok(pairs(body));
    }
    Err(format!("upload 'Content-Type '{kind}' not implemented"))
}

fn from_json(body: &[u8]) -> Result<Map<String, Value>, String> {
    const AT: &str = "at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line";
    if body.is_empty() {
        return Err(format!(
            "malformed JSON string, neither tag, array, object, number, string or atom, at character offset 0 \
             (before \"(end of string)\") {AT} 934.\n"
        ));
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(Value::Array(_)) => Err(format!("Not a HASH reference {AT} 978.\n")),
        Ok(scalar) => Err(format!(
            "Can't use string (\"{}\") as a HASH ref while \"strict refs\" in use {AT} 978.\n",
            text(&scalar)
        )),
        Err(_) => {
            let all = String::from_utf8_lossy(body);
            let rest = all.get(1..).unwrap_or("");
            let rest = if rest.is_empty() { "(end of string)" } else { rest };
            Err(format!("'\"' expected, at character offset 1 (before \"{rest}\") {AT} 934.\n"))
        }
    }
}

/// `a=1&b=2`, also parted by `;`. A raw `=` in a value cuts it there, `_dc` is
/// dropped, and a name that comes twice makes an array.
fn pairs(text: &[u8]) -> Map<String, Value> {
    let mut out = Map::new();
    for pair in text.split(|b| matches!(b, b'&' | b';')).filter(|p| !p.is_empty()) {
        let mut parts = pair.split(|b| *b == b'=');
        let name = decode(parts.next().unwrap_or(&[]));
        let value = Value::String(decode(parts.next().unwrap_or(&[])));
        if name == "_dc" {
            continue;
        }
        match out.get_mut(&name) {
            None => {
                out.insert(name, value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    out
}

fn decode(text: &[u8]) -> String {
    let spaced: Vec<u8> = text.iter().map(|b| if *b == b'+' { b' ' } else { *b }).collect();
    percent_decode(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn forms() {
        for (form, expected) in [
            ("a=1&b=2", json!({"a": "1", "b": "2"})),
            ("a=1;b=2", json!({"a": "1", "b": "2"})),
            ("a=b=c", json!({"a": "b"})),
            ("vms=1&vms=2", json!({"vms": ["1", "2"]})),
            ("_dc=123&x=y", json!({"x": "y"})),
            ("d=h%C3%A9+x", json!({"d": "hé x"})),
            ("d=%FF", json!({"d": "\u{FFFD}"})),
        ] {
            assert_eq!(Value::Object(pairs(form.as_bytes())), expected, "{form}");
        }
    }
}
