//! Property strings (`local-lvm:8,iothread=1`), read with their default key,
//! their aliases and in any order, as Proxmox does it.

use super::api::{API, Format, Key, Kind};
use crate::pve::params::boolean;

/// A property string, taken apart. Aliases stand under the key that they mean,
/// booleans as 1 and 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PropString(Vec<(String, String)>);

impl PropString {
    /// Takes a text apart.
    ///
    /// # Errors
    /// Words for a person: an empty value, a key twice (an alias too), a value
    /// without key where there is no default key, a bad boolean, a control character.
    pub fn parse(format: &Format, text: &str) -> Result<Self, String> {
        if text.chars().any(char::is_control) {
            return Err("it has a control character".to_owned());
        }
        let mut out = Self::default();
        for part in text.split(',').filter(|p| !p.trim().is_empty()) {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) if !key.is_empty() && !value.is_empty() => (key, value),
                Some(_) => return Err(format!("{part:?} lacks a key or a value")),
                None => match format.default_key {
                    Some(key) => (key, part),
                    None => {
                        return Err(format!("{part:?} has no key, and there is no default one"));
                    }
                },
            };
            let (key, kind) = match format.key(key) {
                Some(Key::Alias(of)) => (of, format.key(of)),
                found => (key, found),
            };
            let value = match kind {
                Some(Key::Is(Kind::Boolean)) => match boolean(value) {
                    Some(on) => u8::from(on).to_string(),
                    None => return Err(format!("{key}={value:?} is not a boolean (1 or 0)")),
                },
                _ => value.to_owned(),
            };
            if out.get(key).is_some() {
                return Err(format!("the key {key} is there twice"));
            }
            out.0.push((key.to_owned(), value));
        }
        Ok(out)
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Whether a key has this value.
    #[must_use]
    pub fn is(&self, key: &str, value: &str) -> bool {
        self.get(key) == Some(value)
    }

    /// Keys and values in the order they were written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// The keys that no property string of the API has.
    pub fn unknown_keys<'a>(&'a self, format: &'a Format) -> impl Iterator<Item = &'a str> {
        self.iter().map(|(k, _)| k).filter(|k| format.key(k).is_none() && !API.any_format_has(k))
    }

    /// The volume of a drive or mount point, whatever its key is called.
    #[must_use]
    pub fn volume(&self) -> Option<&str> {
        self.get("file").or_else(|| self.get("volume"))
    }
}
