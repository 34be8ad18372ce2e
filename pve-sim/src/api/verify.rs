//! Parameters against the schema of an endpoint, with the texts of the real one.

use regex_lite::Regex;
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::schema::Endpoint;
use super::{formats, params, propstring};

const UNKNOWN: &str =
    "property is not defined in schema and the schema does not allow additional properties";

/// Checks all parameters of a call; values keep their form.
pub(crate) fn check(endpoint: &Endpoint, data: &mut Map<String, Value>) -> Result<(), Failure> {
    let errors = object(&endpoint.parameters, data, endpoint.strict, "");
    if errors.is_empty() { Ok(()) } else { Err(Failure::parameters(errors)) }
}

/// Checks an object against its properties; the messages by name, `prefix` before each.
pub(crate) fn object(
    schema: &Map<String, Value>,
    data: &Map<String, Value>,
    strict: bool,
    prefix: &str,
) -> Map<String, Value> {
    let mut errors = Map::new();
    let mut fail = |name: &str, text: String| {
        errors.entry(format!("{prefix}{name}")).or_insert(Value::String(text));
    };
    for (name, value) in data {
        match property(schema, name) {
            None if strict => fail(name, UNKNOWN.to_owned()),
            None => {}
            Some(rule) => {
                if let Err(text) = one(rule, value, &format!("{prefix}{name}")) {
                    fail(name, text);
                }
                if let Some(other) = rule.get("requires").and_then(Value::as_str)
                    && !data.contains_key(other)
                {
                    fail(other, format!("missing property required by '{name}'"));
                }
            }
        }
    }
    for (name, rule) in schema {
        let optional = rule.get("optional").is_some_and(truthy) || rule.get("alias").is_some();
        if !optional && !name.contains('[') && !data.contains_key(name) {
            fail(name, "property is missing and it is not optional".to_owned());
        }
    }
    errors
}

/// The rule of a parameter; `net3` is looked up as `net[n]`.
pub(crate) fn property<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let alias = |rule: &'a Value| match rule.get("alias").and_then(Value::as_str) {
        Some(other) => schema.get(other),
        None => Some(rule),
    };
    if let Some(rule) = schema.get(name) {
        return alias(rule);
    }
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let index = name.get(stem.len()..)?;
    if index.is_empty() || (index.len() > 1 && index.starts_with('0')) || index.len() > 3 {
        return None;
    }
    schema.get(&format!("{stem}[n]"))
}

fn truthy(v: &Value) -> bool {
    v.as_i64().is_some_and(|n| n != 0) || v == &Value::Bool(true)
}

fn one(rule: &Value, value: &Value, name: &str) -> Result<(), String> {
    let kind = rule.get("type").and_then(Value::as_str).unwrap_or("string");
    if value.is_null() {
        return Ok(());
    }
    if kind == "array" {
        return array(rule, value, name);
    }
    let list_format =
        rule.get("format").and_then(Value::as_str).is_some_and(|f| f.ends_with("-list"));
    let text = match value {
        // A list in a string may also come as an array.
        Value::Array(items) if kind == "string" && list_format => {
            items.iter().map(params::text).collect::<Vec<_>>().join(",")
        }
        Value::Array(_) => return Err(format!("type check ('{kind}') failed - got ARRAY")),
        Value::Object(_) => return Err(format!("type check ('{kind}') failed - got HASH")),
        Value::Bool(b) if kind != "boolean" => {
            let shown = u8::from(*b);
            return Err(format!("type check ('{kind}') failed - got '{shown}'"));
        }
        other => params::text(other),
    };
    of_type(kind, &text)?;
    constraints(rule, kind, &text, name)
}

fn of_type(kind: &str, text: &str) -> Result<(), String> {
    let fits = match kind {
        "boolean" => matches!(text, "0" | "1"),
        "integer" => is_integer(text),
        "number" => is_number(text),
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("type check ('{kind}') failed - got '{text}'")) }
}

/// As Perl's `^[+-]?\d+$`, where `\d` is any digit of any script.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.chars().all(char::is_numeric)
}

fn is_number(text: &str) -> bool {
    let t = text.strip_prefix(['+', '-']).unwrap_or(text);
    t.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && t.chars().all(|c| c.is_ascii_digit() || "eE+-.".contains(c))
        && t.parse::<f64>().is_ok()
}

/// The number that Perl would compute with.
fn numeric(text: &str) -> f64 {
    text.parse().unwrap_or(0.0)
}

fn constraints(rule: &Value, kind: &str, text: &str, name: &str) -> Result<(), String> {
    match rule.get("format") {
        Some(Value::String(format)) => {
            formats::check(format, text).map_err(|e| format!("invalid format - {e}\n"))?;
        }
        Some(Value::Object(schema)) => {
            let errors = propstring::check(schema, text, name);
            if !errors.is_empty() {
                let lines: Vec<String> =
                    errors.iter().map(|(k, v)| format!("{k}: {}", params::text(v))).collect();
                return Err(format!("invalid format - format error\n{}\n", lines.join("\n")));
            }
        }
        _ => {}
    }
    let limit = |name: &str| rule.get(name).and_then(Value::as_f64);
    let length = text.chars().count();
    if kind == "string" || kind.is_empty() {
        if let Some(max) = limit("maxLength").filter(|m| length as f64 > *m) {
            return Err(format!("value may only be {max} characters long"));
        }
        if let Some(min) = limit("minLength").filter(|m| (length as f64) < *m) {
            return Err(format!("value must be at least {min} characters long"));
        }
    }
    if kind == "integer" || kind == "number" {
        if let Some(max) = limit("maximum").filter(|m| numeric(text) > *m) {
            return Err(format!("value must have a maximum value of {max}"));
        }
        if let Some(min) = limit("minimum").filter(|m| numeric(text) < *m) {
            return Err(format!("value must have a minimum value of {min}"));
        }
    }
    if let Some(Value::Array(allowed)) = rule.get("enum") {
        let names: Vec<String> = allowed.iter().map(params::text).collect();
        if !names.iter().any(|n| n == text) {
            let all = names.join(", ");
            return Err(format!("value '{text}' does not have a value in the enumeration '{all}'"));
        }
    }
    if let Some(pattern) = rule.get("pattern").and_then(Value::as_str)
        && !pattern_matches(pattern, text)
    {
        return Err("value does not match the regex pattern".to_owned());
    }
    Ok(())
}

/// A pattern of the schema, which is Perl and must match the whole value.
/// A pattern that this engine cannot read lets everything pass.
fn pattern_matches(pattern: &str, text: &str) -> bool {
    let plain = pattern.replace("(?^:", "(?:").replace("(?^i:", "(?i:").replace("(?^u:", "(?:");
    Regex::new(&format!("^(?:{plain})$")).map_or(true, |r| r.is_match(text))
}

fn array(rule: &Value, value: &Value, name: &str) -> Result<(), String> {
    let empty = json!({});
    let items = rule.get("items").unwrap_or(&empty);
    let values = match value {
        Value::Array(values) => values.clone(),
        Value::Object(_) => return Err("type check ('array') failed - got HASH".to_owned()),
        // A single value of a form.
        single => vec![single.clone()],
    };
    values.iter().enumerate().try_for_each(|(n, v)| one(items, v, &format!("{name}[{n}]")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_as_perl_sees_them() {
        for (text, fits) in [
            ("2", true),
            ("02", true),
            ("+2", true),
            ("-1", true),
            ("\u{FF19}", true),
            ("2.0", false),
        ] {
            assert_eq!(is_integer(text), fits, "{text}");
        }
        for text in [" 2", "2 ", "0x2", "1_0", "2e0", ""] {
            assert!(!is_integer(text), "{text}");
        }
    }
}
