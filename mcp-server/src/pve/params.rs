//! Parameters of an API call, and how they are written on the wire.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::{Error, Result};

/// Everything but the unreserved characters: the server cuts a value at a raw
/// `=`, and takes `;` for `&`.
const ENCODE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Longest name of a parameter, in bytes.
const MAX_NAME: usize = 128;

/// One parameter: a single value, or the members of an array (sent as a repeated key).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ParamValue {
    /// A single value in the text form that is sent.
    One(String),
    /// An array.
    Many(Vec<String>),
}

impl ParamValue {
    /// The values, one or many.
    #[must_use]
    pub fn values(&self) -> &[String] {
        match self {
            ParamValue::One(value) => std::slice::from_ref(value),
            ParamValue::Many(values) => values,
        }
    }

    /// The members of a list: an array's, or those parted by comma, semicolon,
    /// blanks or NUL in a string. Empty members are left out, as the server does.
    pub fn members(&self) -> impl Iterator<Item = &str> {
        self.values().iter().flat_map(|v| split_list(v))
    }
}

/// The members of a `-list` string: parted by comma, semicolon, blanks or NUL.
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| matches!(c, ',' | ';' | '\0') || c.is_ascii_whitespace() || c == '\x0b')
        .filter(|m| !m.is_empty())
}

/// What a text means as a boolean of Proxmox: `1 on yes true` and `0 off no false`, in any case.
#[must_use]
pub fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" => Some(true),
        "0" | "off" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// Parameters by name, in a fixed order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Params(BTreeMap<String, ParamValue>);

impl Params {
    /// No parameters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From a JSON object as a model writes it: text, numbers, booleans (sent
    /// as 1 and 0) and arrays of those; `null` is absence.
    ///
    /// # Errors
    /// `invalid_argument` for anything nested, an empty array, a bad name, and
    /// names that other servers take for another method.
    pub fn from_json(value: &Value) -> Result<Self> {
        let object = match value {
            Value::Null => return Ok(Self::default()),
            Value::Object(object) => object,
            _ => return Err(Error::argument("params is not an object of names and values")),
        };
        let mut params = Self::default();
        for (name, value) in object {
            check_name(name)?;
            let value = match value {
                Value::Null => continue,
                Value::Array(items) if items.is_empty() => {
                    return Err(Error::argument(format!("the parameter {name:?} is an empty list"))
                        .hint("an empty list cannot be sent, and its absence often means everything; leave it out to mean that"));
                }
                Value::Array(items) => ParamValue::Many(
                    items.iter().map(|item| scalar(name, item)).collect::<Result<_>>()?,
                ),
                single => ParamValue::One(scalar(name, single)?),
            };
            params.0.insert(name.clone(), value);
        }
        Ok(params)
    }

    /// Sets a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.set(name, ParamValue::One(value.to_string()));
        self
    }

    /// Sets a parameter when there is a value.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Sets a switch, written as Proxmox wants it: 1 or 0.
    #[must_use]
    pub fn with_bool(self, name: &str, value: bool) -> Self {
        self.with(name, u8::from(value))
    }

    /// Sets an array; one without members is absent.
    #[must_use]
    pub fn with_many(
        mut self,
        name: &str,
        values: impl IntoIterator<Item = impl ToString>,
    ) -> Self {
        let values: Vec<String> = values.into_iter().map(|v| v.to_string()).collect();
        if !values.is_empty() {
            self.set(name, ParamValue::Many(values));
        }
        self
    }

    /// Puts a value in the place of another.
    pub fn set(&mut self, name: &str, value: ParamValue) {
        self.0.insert(name.to_owned(), value);
    }

    /// Takes a parameter out.
    pub fn remove(&mut self, name: &str) -> Option<ParamValue> {
        self.0.remove(name)
    }

    /// Looks a parameter up.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ParamValue> {
        self.0.get(name)
    }

    /// Whether a parameter is given.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A single value as text; `None` when absent or an array.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            ParamValue::One(value) => Some(value),
            ParamValue::Many(_) => None,
        }
    }

    /// A single value as a switch; `None` when absent or not a boolean of Proxmox.
    #[must_use]
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).and_then(boolean)
    }

    /// A single value as a whole number; `None` when absent or none.
    #[must_use]
    pub fn uint(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// The members of a list in any of its forms; empty when absent.
    pub fn members(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.get(name).into_iter().flat_map(ParamValue::members)
    }

    /// All parameters in order of name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ParamValue)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// `application/x-www-form-urlencoded`, every reserved character encoded;
    /// an array as a repeated key.
    #[must_use]
    pub fn encoded(&self) -> String {
        let mut out = String::new();
        for (name, value) in &self.0 {
            for value in value.values() {
                if !out.is_empty() {
                    out.push('&');
                }
                out.extend(utf8_percent_encode(name, ENCODE));
                out.push('=');
                out.extend(utf8_percent_encode(value, ENCODE));
            }
        }
        out
    }

    /// As JSON, for answers and records.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let object: Map<String, Value> = self
            .0
            .iter()
            .map(|(name, value)| {
                let value = match value {
                    ParamValue::One(text) => Value::from(text.as_str()),
                    ParamValue::Many(items) => Value::from(items.clone()),
                };
                (name.clone(), value)
            })
            .collect();
        Value::Object(object)
    }
}

/// A value of JSON in the form that is sent.
fn scalar(name: &str, value: &Value) -> Result<String> {
    Ok(match value {
        Value::Bool(b) => u8::from(*b).to_string(),
        Value::String(text) => text.clone(),
        Value::Number(n) => match n.as_f64() {
            // The server takes 2 for an integer, and not 2.0.
            Some(f) if n.is_f64() && f.fract() == 0.0 && f.abs() < 9e15 => format!("{f:.0}"),
            _ => n.to_string(),
        },
        _ => {
            return Err(Error::argument(format!(
                "the parameter {name:?} is neither text, number, boolean nor a list of those"
            ))
            .hint("options like net0 are one text: \"virtio,bridge=vmbr0\""));
        }
    })
}

/// Refuses names that cannot be a parameter, or that some proxies and
/// frameworks take for another method.
fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(|c| c.is_control()) {
        return Err(Error::argument(format!(
            "{:?} is not a parameter name",
            name.chars().take(60).collect::<String>()
        )));
    }
    let folded: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    if name == "_method" || folded.ends_with("methodoverride") || folded == "httpmethod" {
        return Err(Error::argument(format!("the parameter {name:?} asks for another method"))
            .hint("say the method in the argument method: GET, POST, PUT or DELETE"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Code;

    #[test]
    fn json_is_read_as_a_model_writes_it() {
        let params = Params::from_json(&json!({
            "a": true, "b": false, "c": 2, "d": 2.0, "e": "x y=z&;+ü", "f": null,
            "g": [1, "two", true], "h": 0.5, "i": "", "j": -1,
        }))
        .unwrap();
        assert_eq!(
            params.to_json(),
            json!({
                "a": "1", "b": "0", "c": "2", "d": "2", "e": "x y=z&;+ü",
                "g": ["1", "two", "1"], "h": "0.5", "i": "", "j": "-1",
            })
        );
        assert_eq!(
            params.encoded(),
            "a=1&b=0&c=2&d=2&e=x%20y%3Dz%26%3B%2B%C3%BC&g=1&g=two&g=1&h=0.5&i=&j=-1"
        );
        assert!(Params::from_json(&Value::Null).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        for bad in [
            json!([]),
            json!("a=1"),
            json!(1),
            json!({"a": {"b": 1}}),
            json!({"a": [[1]]}),
            json!({"a": [{}]}),
            json!({"a": [null]}),
            json!({"": 1}),
            json!({"a\u{0}": 1}),
            json!({"a\nb": 1}),
            json!({"vms": []}),
            json!({"_method": "POST"}),
            json!({"X-HTTP-Method-Override": "DELETE"}),
            json!({"x_http_method_override": "DELETE"}),
            json!({"X-Method-Override": "PUT"}),
            json!({"k".repeat(200): 1}),
        ] {
            assert_eq!(Params::from_json(&bad).unwrap_err().code, Code::InvalidArgument, "{bad}");
        }
    }

    #[test]
    fn lists_and_switches_are_read_as_proxmox_reads_them() {
        let params = Params::new()
            .with("list", "a,b; c\0d,,\te ")
            .with_many("array", ["a,b", "c"])
            .with("on", "YES");
        assert_eq!(params.members("list").collect::<Vec<_>>(), ["a", "b", "c", "d", "e"]);
        assert_eq!(params.members("array").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(params.members("none").count(), 0);
        assert_eq!(params.flag("on"), Some(true));
        for (text, want) in [
            ("1", Some(true)),
            ("oN", Some(true)),
            ("True", Some(true)),
            ("no", Some(false)),
            ("OFF", Some(false)),
            ("", None),
            ("2", None),
            (" 1", None),
            ("01", None),
            ("enabled", None),
        ] {
            assert_eq!(boolean(text), want, "{text:?}");
        }
    }

    #[test]
    fn an_empty_array_is_absent() {
        assert!(Params::new().with_many("vms", Vec::<u32>::new()).is_empty());
    }
}
