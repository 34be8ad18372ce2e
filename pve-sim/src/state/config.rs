//! Configuration files as ordered `key: value` pairs, with a digest.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::api::{params, verify};

/// An ordered configuration; values are text, as they stand in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config(Vec<(String, String)>);

impl Config {
    /// A configuration from pairs.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(pairs.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
    }

    /// The value of an option.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Whether an option is there.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Whether a boolean option is on.
    pub fn on(&self, key: &str) -> bool {
        self.get(key) == Some("1")
    }

    /// An option as a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(|v| v.parse().ok())
    }

    /// Sets an option, at its place when it is there already.
    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        let value = value.into();
        match self.0.iter_mut().find(|(k, _)| k == key) {
            Some((_, v)) => *v = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Removes an option.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        let at = self.0.iter().position(|(k, _)| k == key)?;
        Some(self.0.remove(at).1)
    }

    /// What a snapshot keeps of it: neither unused disks nor the guest's
    /// description, which has none of its own there, nor a lock.
    pub(crate) fn for_snapshot(&self) -> Self {
        let kept = |(k, _): &&(String, String)| !stays(k) && k != "lock";
        Self(self.0.iter().filter(kept).cloned().collect())
    }

    /// The configuration after a rollback to a snapshot's: the description and
    /// the unused disks stay those of now.
    pub(crate) fn rolled_back(&self, snapshot: &Self) -> Self {
        let mut config = snapshot.for_snapshot();
        for (key, value) in self.0.iter().filter(|(k, _)| stays(k)) {
            config.set(key, value.clone());
        }
        config
    }

    /// All options in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// The options as JSON, with the types that the schema of the endpoint gives them.
    pub(crate) fn typed(&self, schema: &Map<String, Value>) -> Map<String, Value> {
        self.iter().map(|(k, v)| (k.to_owned(), typed(schema, k, v))).collect()
    }
}

/// Whether an option is the guest's whatever snapshot it goes back to.
fn stays(key: &str) -> bool {
    key == "description"
        || key
            .strip_prefix("unused")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// A stored value as the API shows it: integers and booleans as numbers, all else as text.
pub(crate) fn typed(schema: &Map<String, Value>, key: &str, value: &str) -> Value {
    let kind = verify::property(schema, key).and_then(|r| r.get("type")).and_then(Value::as_str);
    let number =
        matches!(kind, Some("integer" | "boolean")) || key == "template" || key == "snaptime";
    match value.parse::<i64>() {
        Ok(n) if number => Value::from(n),
        _ => Value::String(value.to_owned()),
    }
}

/// A digest of anything that can be printed: 40 hex digits, as the real ones.
pub(crate) fn digest(parts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_ref());
        hash.update([0]);
    }
    hash.finalize().iter().take(20).map(|b| format!("{b:02x}")).collect()
}

/// The digest of a JSON document.
pub(crate) fn digest_of(value: &Value) -> String {
    digest([params::text(value)])
}
