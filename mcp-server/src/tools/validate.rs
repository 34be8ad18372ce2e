//! Arguments against a tool's schema, before the tool sees them: unknown names,
//! wrong types and values out of range are errors that name the argument.
//! Numbers and switches that a model wrote as text are taken as what they mean.

use serde_json::{Map, Value};

use crate::{Error, Result};

/// Checks and evens out the arguments of a call; `null` members are dropped.
///
/// # Errors
/// `invalid_argument`, naming the argument, and for an unknown one the nearest known.
pub fn arguments(schema: &Map<String, Value>, arguments: Value) -> Result<Value> {
    let given = match arguments {
        Value::Null => Map::new(),
        Value::Object(map) => map,
        other => {
            return Err(Error::argument(format!(
                "arguments must be an object, not {}",
                kind(&other)
            )));
        }
    };
    object("", schema, given).map(Value::Object)
}

fn object(
    at: &str,
    schema: &Map<String, Value>,
    given: Map<String, Value>,
) -> Result<Map<String, Value>> {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let open = schema.get("additionalProperties") != Some(&Value::Bool(false));
    let mut taken = Map::new();
    for (name, value) in given {
        let path = join(at, &name);
        match properties.get(&name) {
            Some(_) if value.is_null() => {}
            Some(Value::Object(property)) => {
                taken.insert(name, one(&path, property, value)?);
            }
            Some(_) => {
                taken.insert(name, value);
            }
            None if open => {
                taken.insert(name, value);
            }
            None => return Err(unknown(&path, &name, properties)),
        }
    }
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = name.as_str() else { continue };
        if !taken.contains_key(name) {
            return Err(Error::argument(format!("argument `{}` is missing", join(at, name)))
                .with("argument", join(at, name)));
        }
    }
    Ok(taken)
}

fn one(at: &str, schema: &Map<String, Value>, value: Value) -> Result<Value> {
    let value = match schema.get("type").and_then(Value::as_str) {
        Some("integer") => integer(at, schema, &value)?,
        Some("number") => number(at, &value)?,
        Some("boolean") => Value::Bool(boolean(at, &value)?),
        Some("string") => text(at, value)?,
        Some("array") => array(at, schema, value)?,
        Some("object") => match value {
            Value::Object(map) => Value::Object(object(at, schema, map)?),
            Value::String(s) => match serde_json::from_str(&s) {
                Ok(Value::Object(map)) => Value::Object(object(at, schema, map)?),
                _ => return Err(wrong(at, "an object", &Value::String(s))),
            },
            other => return Err(wrong(at, "an object", &other)),
        },
        _ => value,
    };
    if let Some(Value::Array(allowed)) = schema.get("enum")
        && !allowed.contains(&value)
    {
        let names: Vec<String> = allowed.iter().map(plain).collect();
        return Err(Error::argument(format!("argument `{at}` cannot be {}", shown(&value)))
            .hint(format!("allowed: {}", names.join(", ")))
            .with("argument", at));
    }
    Ok(value)
}

fn integer(at: &str, schema: &Map<String, Value>, value: &Value) -> Result<Value> {
    let n = match value {
        Value::Number(n) => n.as_i64().or_else(|| whole(n.as_f64()?)),
        Value::String(s) => decimal(s),
        _ => None,
    };
    let Some(n) = n else { return Err(wrong(at, "a whole number", value)) };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    #[allow(clippy::cast_precision_loss)]
    let low = bound("minimum").is_some_and(|m| (n as f64) < m);
    #[allow(clippy::cast_precision_loss)]
    let high = bound("maximum").is_some_and(|m| (n as f64) > m);
    if low || high {
        let text = |key: &str| schema.get(key).map(plain).unwrap_or_default();
        let range = match (text("minimum"), text("maximum")) {
            (min, max) if max.is_empty() => format!("at least {min}"),
            (min, max) if min.is_empty() => format!("at most {max}"),
            (min, max) => format!("{min} to {max}"),
        };
        return Err(Error::argument(format!("argument `{at}` cannot be {n}"))
            .hint(format!("allowed: {range}"))
            .with("argument", at));
    }
    Ok(Value::from(n))
}

/// 7.0 is 7; 7.5 and 1e300 are nothing.
#[allow(clippy::cast_possible_truncation)]
fn whole(f: f64) -> Option<i64> {
    (f.fract() == 0.0 && f.abs() < 9e15).then_some(f as i64)
}

/// Plain decimal digits, with a minus at most: not `1e2`, ` 7`, `+7` or ``.
fn decimal(s: &str) -> Option<i64> {
    let digits = s.strip_prefix('-').unwrap_or(s);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if plain { s.parse().ok() } else { None }
}

fn number(at: &str, value: &Value) -> Result<Value> {
    match value {
        Value::Number(_) => Ok(value.clone()),
        Value::String(s) => s
            .parse::<f64>()
            .ok()
            .filter(|f| f.is_finite())
            .map(Value::from)
            .ok_or_else(|| wrong(at, "a number", value)),
        _ => Err(wrong(at, "a number", value)),
    }
}

/// As Proxmox reads switches: `1 on yes true` and `0 off no false` in any case.
fn boolean(at: &str, value: &Value) -> Result<bool> {
    let text = match value {
        Value::Bool(b) => return Ok(*b),
        Value::Number(n) => n.to_string(),
        Value::String(s) => s.to_ascii_lowercase(),
        _ => return Err(wrong(at, "true or false", value)),
    };
    match text.as_str() {
        "1" | "on" | "yes" | "true" => Ok(true),
        "0" | "off" | "no" | "false" => Ok(false),
        _ => Err(wrong(at, "true or false", value)),
    }
}

fn text(at: &str, value: Value) -> Result<Value> {
    match value {
        Value::String(_) => Ok(value),
        Value::Number(n) => Ok(Value::String(n.to_string())),
        other => Err(wrong(at, "text", &other)),
    }
}

fn array(at: &str, schema: &Map<String, Value>, value: Value) -> Result<Value> {
    let items = match value {
        Value::Array(items) => items,
        // A model that means a list of one often writes the one, or a list as text.
        Value::String(s) => match serde_json::from_str(&s) {
            Ok(Value::Array(items)) => items,
            _ => s.split(',').map(str::trim).filter(|p| !p.is_empty()).map(Value::from).collect(),
        },
        Value::Number(_) => vec![value],
        other => return Err(wrong(at, "a list", &other)),
    };
    let Some(Value::Object(inner)) = schema.get("items") else { return Ok(Value::Array(items)) };
    items
        .into_iter()
        .enumerate()
        .map(|(i, item)| one(&format!("{at}[{i}]"), inner, item))
        .collect::<Result<Vec<_>>>()
        .map(Value::Array)
}

fn unknown(path: &str, name: &str, properties: &Map<String, Value>) -> Error {
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    let near = nearest(name, names.iter().copied());
    let hint = match near {
        Some(near) => format!("did you mean `{near}`? Known: {}", names.join(", ")),
        None if names.is_empty() => "this takes no arguments".to_owned(),
        None => format!("known: {}", names.join(", ")),
    };
    Error::argument(format!("unknown argument `{path}`")).hint(hint).with("argument", path)
}

/// The name most like a given one, when it is like it at all.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |s: &str| s.to_lowercase().replace(['_', '-'], "");
    let wanted = plain(name);
    known
        .map(|k| (strsim::jaro_winkler(&wanted, &plain(k)), k))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}

fn wrong(at: &str, want: &str, got: &Value) -> Error {
    Error::argument(format!("argument `{at}` must be {want}, not {}", shown(got)))
        .with("argument", at)
}

/// A value as it is quoted in an error: its kind where it could be long.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= 60 && !value.is_object() && !value.is_array() {
        text
    } else {
        kind(value).to_owned()
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Map<String, Value> {
        let schema = json!({
            "type": "object",
            "properties": {
                "vmid": {"type": "integer", "minimum": 100, "maximum": 999_999_999},
                "dry_run": {"type": "boolean"},
                "name": {"type": "string"},
                "kind": {"type": "string", "enum": ["qemu", "lxc"]},
                "fields": {"type": "array", "items": {"type": "string"}},
                "params": {"type": "object"},
            },
            "required": ["vmid"],
            "additionalProperties": false,
        });
        schema.as_object().unwrap().clone()
    }

    #[test]
    fn what_a_model_writes_is_taken_as_meant() {
        for (given, want) in [
            (json!({"vmid": "100"}), json!({"vmid": 100})),
            (json!({"vmid": 100.0}), json!({"vmid": 100})),
            (
                json!({"vmid": 100, "dry_run": "TRUE", "name": null}),
                json!({"vmid": 100, "dry_run": true}),
            ),
            (json!({"vmid": 100, "dry_run": 0}), json!({"vmid": 100, "dry_run": false})),
            (json!({"vmid": 100, "name": 7}), json!({"vmid": 100, "name": "7"})),
            (json!({"vmid": 100, "fields": "a, b"}), json!({"vmid": 100, "fields": ["a", "b"]})),
            (json!({"vmid": 100, "fields": ["a"]}), json!({"vmid": 100, "fields": ["a"]})),
            (json!({"vmid": 100, "params": "{\"a\":1}"}), json!({"vmid": 100, "params": {"a": 1}})),
        ] {
            assert_eq!(arguments(&schema(), given.clone()).unwrap(), want, "{given}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_an_error_that_names_the_argument() {
        for (given, words) in [
            (json!({}), "`vmid` is missing"),
            (json!(null), "`vmid` is missing"),
            (json!([]), "must be an object"),
            (json!("x"), "must be an object"),
            (json!({"vmid": "12px"}), "`vmid` must be a whole number"),
            (json!({"vmid": "1e2"}), "`vmid` must be a whole number"),
            (json!({"vmid": ""}), "`vmid` must be a whole number"),
            (json!({"vmid": " 100"}), "`vmid` must be a whole number"),
            (json!({"vmid": "100.5"}), "`vmid` must be a whole number"),
            (json!({"vmid": 100.5}), "`vmid` must be a whole number"),
            (json!({"vmid": true}), "`vmid` must be a whole number"),
            (json!({"vmid": 99}), "100 to 999999999"),
            (json!({"vmid": 1_000_000_000}), "100 to 999999999"),
            (json!({"vmid": 100, "dry_run": "maybe"}), "`dry_run` must be true or false"),
            (json!({"vmid": 100, "dry_run": 2}), "`dry_run` must be true or false"),
            (json!({"vmid": 100, "dryrun": true}), "did you mean `dry_run`"),
            (json!({"vmid": 100, "kind": "vm"}), "allowed: qemu, lxc"),
            (json!({"vmid": 100, "params": [1]}), "`params` must be an object"),
            (json!({"vmid": 100, "fields": [{}]}), "`fields[0]` must be text"),
        ] {
            let error = arguments(&schema(), given.clone()).unwrap_err().to_string();
            assert!(error.contains(words), "{given}: {error}");
        }
    }
}
