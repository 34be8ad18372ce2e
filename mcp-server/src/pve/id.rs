//! Identifiers that Proxmox gives to nodes and guests.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A guest's number: 100 to 999,999,999 (`pve-vmid` of the API schema).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Vmid(u32);

impl Vmid {
    /// Smallest VMID that Proxmox hands out.
    pub const MIN: u32 = 100;
    /// Largest VMID of the API schema.
    pub const MAX: u32 = 999_999_999;

    /// Checks the range.
    ///
    /// # Errors
    /// `invalid_argument` outside 100 to 999999999.
    pub fn new(n: u64) -> Result<Self> {
        u32::try_from(n)
            .ok()
            .filter(|n| (Self::MIN..=Self::MAX).contains(n))
            .map(Self)
            .ok_or_else(|| Error::argument(format!("VMID {n} is not within 100 to 999999999")))
    }

    /// Reads plain decimal digits: no sign, blanks, exponent or leading zero.
    ///
    /// # Errors
    /// `invalid_argument` for anything else.
    pub fn parse(text: &str) -> Result<Self> {
        let digits = !text.is_empty()
            && text.len() <= 9
            && text.bytes().all(|b| b.is_ascii_digit())
            && !text.starts_with('0');
        match text.parse::<u64>() {
            Ok(n) if digits => Self::new(n),
            _ => Err(Error::argument(format!("{text:?} is not a VMID (100 to 999999999)"))),
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl std::fmt::Display for Vmid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Vmid {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(d)?;
        let found = match &value {
            serde_json::Value::Number(n) => n
                .as_u64()
                .ok_or_else(|| Error::argument(format!("{n} is not a VMID (100 to 999999999)")))
                .and_then(Vmid::new),
            serde_json::Value::String(s) => Vmid::parse(s),
            other => Err(Error::argument(format!("{other} is not a VMID (100 to 999999999)"))),
        };
        found.map_err(|e| serde::de::Error::custom(e.message))
    }
}

/// A node's name as the cluster knows it: one DNS label (`pve-node`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct NodeName(String);

impl NodeName {
    /// How a node is named, for hints.
    pub(crate) const RULE: &str =
        "a node is named by its short host name, not by its address or full name";

    /// Checks the form: letters, digits and inner dashes, at most 63.
    ///
    /// # Errors
    /// `invalid_argument` for anything else, with a hint for a host name.
    pub fn parse(text: &str) -> Result<Self> {
        let ok = !text.is_empty()
            && text.len() <= 63
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !text.starts_with('-')
            && !text.ends_with('-');
        if ok {
            return Ok(Self(text.to_owned()));
        }
        let rule = Self::RULE;
        let error = Error::argument(format!("{text:?} is not a node name"));
        Err(match Self::short(text) {
            Some(short) => error.hint(format!("did you mean {short}? {rule}")),
            None => error.hint(rule),
        })
    }

    /// The node that a full host name begins with; nothing for an address.
    fn short(text: &str) -> Option<Self> {
        let address = text.parse::<std::net::IpAddr>().is_ok();
        let (short, domain) = text.split_once('.').filter(|_| !address)?;
        let plain = domain.trim_end_matches('.').split('.').all(|label| Self::parse(label).is_ok());
        if plain { Self::parse(short).ok() } else { None }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for NodeName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for NodeName {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::parse(&text).map_err(|e| serde::de::Error::custom(e.message))
    }
}

impl schemars::JsonSchema for Vmid {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Vmid".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "integer", "minimum": Vmid::MIN, "maximum": Vmid::MAX})
    }
}

impl schemars::JsonSchema for NodeName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NodeName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string"})
    }
}
