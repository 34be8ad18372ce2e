//! Property strings (`virtio=BC:24:…,bridge=vmbr0`) against their schema.

use serde_json::{Map, Value};

use super::verify;

/// The messages for a property string, by `name.key`; empty when it is good.
pub(crate) fn check(schema: &Map<String, Value>, text: &str, name: &str) -> Map<String, Value> {
    match parse(schema, text) {
        Ok(data) => verify::object(schema, &data, true, &format!("{name}.")),
        Err(message) => {
            let mut errors = Map::new();
            errors.insert(name.to_owned(), Value::String(message));
            errors
        }
    }
}

fn parse(schema: &Map<String, Value>, text: &str) -> Result<Map<String, Value>, String> {
    let default_key =
        schema.iter().find(|(_, r)| r.get("default_key").is_some()).map(|(k, _)| k.clone());
    let mut data = Map::new();
    for part in text.split(',').filter(|p| !p.is_empty()) {
        let (key, value) = match part.split_once('=') {
            Some((key, value)) if !key.is_empty() && key.chars().all(key_char) => {
                (key.to_owned(), value)
            }
            _ => {
                let Some(key) = default_key.clone() else {
                    return Err(
                        "value without key, but schema does not define a default key".to_owned()
                    );
                };
                if data.contains_key(&key) {
                    return Err(format!("duplicate key in comma-separated list property: {key}"));
                }
                (key, part)
            }
        };
        let rule = schema.get(&key);
        let mut insert = |key: String, value: &str| {
            let twice = data.insert(key.clone(), Value::String(value.to_owned())).is_some();
            if twice {
                Err(format!("duplicate key in comma-separated list property: {key}"))
            } else {
                Ok(())
            }
        };
        // `virtio=MAC`: the key is the value of another property, too.
        match rule.and_then(|r| r.get("alias")).and_then(Value::as_str) {
            Some(alias) => {
                insert(alias.to_owned(), value)?;
                if let Some(other) = default_key.as_ref().filter(|d| allows(schema, d, &key)) {
                    insert(other.clone(), &key)?;
                }
            }
            None => insert(key, value)?,
        }
    }
    Ok(data)
}

/// Whether a property's enumeration has this value.
fn allows(schema: &Map<String, Value>, property: &str, value: &str) -> bool {
    let rule = schema.get(property).and_then(|r| r.get("enum"));
    rule.and_then(Value::as_array).is_some_and(|e| e.iter().any(|v| v == value))
}

fn key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// The parts of a property string in order: key (empty for a bare value) and value.
pub(crate) fn parts(text: &str) -> Vec<(String, String)> {
    text.split(',')
        .filter(|p| !p.is_empty())
        .map(|p| match p.split_once('=') {
            Some((k, v)) => (k.to_owned(), v.to_owned()),
            None => (String::new(), p.to_owned()),
        })
        .collect()
}

/// The value of a key in a property string.
pub(crate) fn get(text: &str, key: &str) -> Option<String> {
    parts(text).into_iter().find(|(k, _)| k == key).map(|(_, v)| v)
}

/// The text with one key set (at its place, or at the end) or removed.
pub(crate) fn with(text: &str, key: &str, value: Option<&str>) -> String {
    let mut all = parts(text);
    match (all.iter().position(|(k, _)| k == key), value) {
        (Some(at), Some(v)) => {
            if let Some(part) = all.get_mut(at) {
                v.clone_into(&mut part.1);
            }
        }
        (Some(at), None) => {
            all.remove(at);
        }
        (None, Some(v)) => all.push((key.to_owned(), v.to_owned())),
        (None, None) => {}
    }
    let join = |(k, v): (String, String)| if k.is_empty() { v } else { format!("{k}={v}") };
    all.into_iter().map(join).collect::<Vec<_>>().join(",")
}
