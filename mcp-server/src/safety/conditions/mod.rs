//! The conditions of the rule table, by subject. Each is a plain function of the
//! call and of what was asked; what cannot be known counts as the worse answer.

pub mod access;
pub mod backup;
pub mod boot;
pub mod disk;
pub mod guest;
pub mod network;
pub mod restore;
pub mod target;

use serde_json::Value;

use super::{
    Method,
    api::{API, Action, Endpoint, Kind, indexed},
    facts::Facts,
    propstring::PropString,
};
use crate::pve::{ApiPath, ParamValue, Params, Vmid, loose};

/// A call as it is judged: its place in the API, its normalised parameters,
/// and what is known of the estate.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// HTTP method.
    pub method: Method,
    /// Canonical path.
    pub path: &'a ApiPath,
    /// The endpoint that the path is routed to.
    pub endpoint: &'a Endpoint,
    /// The method there.
    pub action: &'a Action,
    /// Normalised parameters.
    pub params: &'a Params,
    /// Answers of the estate.
    pub facts: &'a Facts,
}

/// What a guest has now under a key of its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// It cannot be known.
    Unknown,
    /// The guest does not have the key.
    Absent,
    /// The value.
    Is(String),
}

impl<'a> Call<'a> {
    /// A variable of the path.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&'a str> {
        self.endpoint.variable(name, self.path)
    }

    /// `qemu` or `lxc` on a path below a node's guests.
    #[must_use]
    pub fn kind(&self) -> Option<&'a str> {
        self.path.segments().nth(2).filter(|kind| matches!(*kind, "qemu" | "lxc"))
    }

    /// The guest that the call is about: of its path, or the one it makes.
    #[must_use]
    pub fn vmid(&self) -> Option<Vmid> {
        let text = self.variable("vmid").or_else(|| self.params.text("vmid"))?;
        Vmid::parse(text).ok()
    }

    /// The present configuration of the guest in the path.
    #[must_use]
    pub fn config(&self) -> Option<&'a Value> {
        let (node, vmid) = (self.variable("node")?, self.variable("vmid")?);
        self.facts.guest_config(node, self.kind()?, vmid).ok().filter(|v| v.is_object())
    }

    /// What the guest has now under a key; `cdrom` is another name of `ide2`.
    #[must_use]
    pub fn now(&self, key: &str) -> Now {
        let key = if key == "cdrom" { "ide2" } else { key };
        match self.config() {
            None => Now::Unknown,
            Some(config) => loose::text(config, key).map_or(Now::Absent, Now::Is),
        }
    }

    /// What the guest has now under a key, as the property string that the parameter would be.
    #[must_use]
    pub fn now_parts(&self, key: &str) -> Option<PropString> {
        match self.now(key) {
            Now::Is(text) => Some(self.parts(key, &text)),
            Now::Unknown | Now::Absent => None,
        }
    }

    /// A text as the property string of a parameter; empty when it is none.
    #[must_use]
    pub fn parts(&self, name: &str, text: &str) -> PropString {
        let Some(Kind::Property(number)) = self.action.kind(name) else {
            return PropString::default();
        };
        API.format(number).and_then(|f| PropString::parse(f, text).ok()).unwrap_or_default()
    }

    /// Whether the path is about one of these services.
    #[must_use]
    pub fn service_is(&self, names: &[&str]) -> bool {
        self.variable("service").is_some_and(|s| names.contains(&s.trim_end_matches(".service")))
    }

    /// The parameters whose name fits, `[n]` standing for a number.
    pub fn given<'s>(&'s self, base: &'s str) -> impl Iterator<Item = Param<'s>> {
        self.params
            .iter()
            .filter(move |(name, _)| *name == base || indexed(name) == Some(base))
            .map(|(name, value)| Param { name, value })
    }
}

/// A given parameter.
#[derive(Debug, Clone, Copy)]
pub struct Param<'a> {
    /// Its name, with its number.
    pub name: &'a str,
    /// Its value.
    pub value: &'a ParamValue,
}

impl Param<'_> {
    /// The value, when it is a single one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self.value {
            ParamValue::One(text) => Some(text),
            ParamValue::Many(_) => None,
        }
    }

    /// Whether the value is this word, in any case.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        self.value.values().iter().any(|v| v.trim().eq_ignore_ascii_case(word))
    }

    /// Whether a list names one of these options.
    #[must_use]
    pub fn names(&self, options: &[&str]) -> bool {
        self.value.members().any(|m| options.contains(&m))
    }

    /// The value as a property string.
    #[must_use]
    pub fn parts(&self, call: &Call<'_>) -> PropString {
        self.text().map(|text| call.parts(self.name, text)).unwrap_or_default()
    }

    /// Whether a key of the property string has this value.
    #[must_use]
    pub fn key_is(&self, call: &Call<'_>, key: &str, value: &str) -> bool {
        self.parts(call).get(key).is_some_and(|v| v.eq_ignore_ascii_case(value))
    }
}

/// Whether a plain value is a place on the host.
#[must_use]
pub fn text_on_host(_call: &Call<'_>, param: &Param<'_>) -> bool {
    param.value.values().iter().any(|v| super::volume::on_host(v))
}
