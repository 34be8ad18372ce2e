//! The API description's permissions and results, as short text.

use serde_json::Value;

use super::loose;

/// Longest description kept, in characters.
const MAX_DESCRIPTION: usize = 240;

/// A description on one line, cut short.
pub(super) fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_DESCRIPTION) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

/// Who may call a method: `VM.Audit on /vms/{vmid}`.
pub(super) fn check(permissions: &Value) -> String {
    let expression = permissions.get("check").map(expression);
    let user = match loose::str(permissions, "user") {
        Some("all") => Some("any user".to_owned()),
        Some("world") => Some("anyone, without login".to_owned()),
        other => other.map(str::to_owned),
    };
    let note = loose::str(permissions, "description").map(short);
    let parts: Vec<String> = [user, expression, note].into_iter().flatten().collect();
    // A method that names no permission is for root@pam alone.
    if parts.is_empty() { "root@pam only".to_owned() } else { parts.join("; ") }
}

fn expression(check: &Value) -> String {
    let items = check.as_array().map_or(&[][..], Vec::as_slice);
    let (Some(kind), rest) = (items.first().and_then(Value::as_str), items.get(1..)) else {
        return check.to_string();
    };
    let rest = rest.unwrap_or_default();
    match (kind, rest) {
        ("and" | "or", parts) => {
            let parts: Vec<String> = parts.iter().map(expression).collect();
            format!("({})", parts.join(&format!(" {kind} ")))
        }
        ("perm", [Value::String(path), Value::Array(privileges), options @ ..]) => {
            let names: Vec<&str> = privileges.iter().filter_map(Value::as_str).collect();
            let any = options.iter().any(|o| o.as_str() == Some("any"));
            format!("{} on {path}", names.join(if any { " or " } else { " and " }))
        }
        ("perm-modify", [Value::String(path), ..]) => {
            format!("leave to change permissions on {path}")
        }
        ("userid-param", [Value::String(what), ..]) if what == "self" => {
            "the user itself".to_owned()
        }
        _ => check.to_string(),
    }
}

/// What a method answers: `array of {name, vmid, …}`, `string`, `null`.
pub(super) fn outline(returns: &Value) -> String {
    match loose::str(returns, "type") {
        Some("array") => match returns.get("items") {
            Some(items) => format!("array of {}", outline(items)),
            None => "array".to_owned(),
        },
        Some("object") => match returns.get("properties").and_then(Value::as_object) {
            Some(properties) if !properties.is_empty() => {
                let mut names: Vec<&str> = properties.keys().map(String::as_str).collect();
                names.sort_unstable();
                format!("{{{}}}", names.join(", "))
            }
            _ => "object".to_owned(),
        },
        Some(kind) => kind.to_owned(),
        None => "any".to_owned(),
    }
}
