//! One firewall: rules, options, aliases, IP sets.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::config::digest_of;

/// The firewall of the cluster, a node, a guest, a security group or a vnet.
#[derive(Debug, Clone, Default)]
pub struct Firewall {
    /// Rules in order, without `pos` and `digest`.
    pub rules: Vec<Map<String, Value>>,
    /// Options.
    pub options: Map<String, Value>,
    /// Aliases by name: `cidr`, `comment`.
    pub aliases: BTreeMap<String, Map<String, Value>>,
    /// IP sets: comment and entries.
    pub ipsets: BTreeMap<String, IpSet>,
    /// The comment of a security group.
    pub comment: String,
}

/// An IP set.
#[derive(Debug, Clone, Default)]
pub struct IpSet {
    /// The comment, empty for none.
    pub comment: String,
    /// Entries: `cidr`, `nomatch`, `comment`.
    pub entries: Vec<Map<String, Value>>,
}

impl Firewall {
    /// The digest of a part of it.
    pub fn digest(&self, part: &str) -> String {
        let value = match part {
            "rules" => Value::Array(self.rules.iter().cloned().map(Value::Object).collect()),
            "options" => Value::Object(self.options.clone()),
            "aliases" => Value::Array(self.aliases.values().cloned().map(Value::Object).collect()),
            name => {
                let entries = self.ipsets.get(name).map(|s| s.entries.clone()).unwrap_or_default();
                Value::Array(entries.into_iter().map(Value::Object).collect())
            }
        };
        digest_of(&value)
    }
}
