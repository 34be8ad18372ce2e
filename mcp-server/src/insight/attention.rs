//! What needs attention: findings with evidence and the next step, worst first.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::estate::{Estate, Guest, Storage};
use crate::pve::Vmid;

mod backups;
mod guests;
mod nodes;
mod storages;

/// Findings in one answer, unless more are asked for.
pub const MOST: usize = 15;

/// How bad a finding is, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Service or data is lost now, or will be very soon.
    Critical,
    /// It will become a loss if nobody acts.
    Warning,
    /// Worth knowing.
    Info,
}

/// One thing that needs attention.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Stable name of the kind of finding, for example `backup_overdue`.
    pub code: &'static str,
    /// The guest it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vmid: Option<Vmid>,
    /// The node it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The storage it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// In plain words.
    pub what: String,
    /// The numbers behind it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub evidence: Map<String, Value>,
    /// A tool or command, or what to look at.
    pub next: String,
}

impl Finding {
    fn new(severity: Severity, code: &'static str, what: String) -> Self {
        Self {
            severity,
            code,
            vmid: None,
            node: None,
            storage: None,
            what,
            evidence: Map::new(),
            next: String::new(),
        }
    }

    fn critical(code: &'static str, what: String) -> Self {
        Self::new(Severity::Critical, code, what)
    }

    fn warning(code: &'static str, what: String) -> Self {
        Self::new(Severity::Warning, code, what)
    }

    fn info(code: &'static str, what: String) -> Self {
        Self::new(Severity::Info, code, what)
    }

    fn of_guest(mut self, guest: &Guest) -> Self {
        self.vmid = Some(guest.vmid);
        self.node = Some(guest.node.to_string());
        self
    }

    fn of_node(mut self, node: &str) -> Self {
        self.node = Some(node.to_owned());
        self
    }

    fn of_storage(mut self, storage: &Storage) -> Self {
        self.node = (!storage.shared).then(|| storage.node.clone());
        self.storage = Some(storage.id.clone());
        self
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.evidence.insert(name.to_owned(), value.into());
        self
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }
}

/// Something that could not be judged, because it could not be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// How many findings of each severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Critical ones.
    pub critical: usize,
    /// Warnings.
    pub warning: usize,
    /// Others.
    pub info: usize,
}

/// The answer: the worst findings and the count of the rest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attention {
    /// All findings by severity, also those left out.
    pub counts: Counts,
    /// Worst first, then by VMID; what is about no guest comes before guests.
    pub findings: Vec<Finding>,
    /// Findings that are not listed.
    pub more: usize,
    /// Those by code.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub more_by_code: BTreeMap<&'static str, usize>,
    /// What could not be seen. A finding may be missing because of it.
    pub unknown: Vec<Unseen>,
}

/// Judges a snapshot and lists at most `limit` findings ([`MOST`] by default).
#[must_use]
pub fn attention(estate: &Estate, limit: usize) -> Attention {
    let mut look = Look { estate, findings: Vec::new(), unseen: BTreeMap::new() };
    nodes::look(&mut look);
    storages::look(&mut look);
    guests::look(&mut look);
    backups::look(&mut look);
    let Look { mut findings, unseen, .. } = look;
    findings.sort_by(|a, b| {
        let key = |f: &Finding| (f.severity, f.vmid, f.node.clone(), f.storage.clone(), f.code);
        key(a).cmp(&key(b))
    });
    let mut counts = Counts::default();
    for finding in &findings {
        match finding.severity {
            Severity::Critical => counts.critical += 1,
            Severity::Warning => counts.warning += 1,
            Severity::Info => counts.info += 1,
        }
    }
    let rest = findings.split_off(limit.min(findings.len()));
    let mut more_by_code = BTreeMap::new();
    for finding in &rest {
        *more_by_code.entry(finding.code).or_insert(0) += 1;
    }
    let unknown = unseen.into_iter().map(Unseen::from).collect();
    Attention { counts, findings, more: rest.len(), more_by_code, unknown }
}

/// What is being looked at and what was found so far.
struct Look<'a> {
    estate: &'a Estate,
    findings: Vec<Finding>,
    /// By subject and reason, the guests or nodes concerned.
    unseen: BTreeMap<(String, String), Vec<String>>,
}

impl Look<'_> {
    fn found(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn cannot_see(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.unseen.entry((what.into(), why.into())).or_default();
    }

    /// One of many of the same kind: `whose` is counted, or named when there are few.
    fn cannot_see_of(&mut self, what: &str, whose: String, why: impl Into<String>) {
        let key = (what.to_owned(), general(&why.into()));
        self.unseen.entry(key).or_default().push(whose);
    }
}

/// A reason without the object's own name in its paths, so that the same reason
/// for many objects is one line: `/vms/105` becomes `/vms/{vmid}`.
fn general(why: &str) -> String {
    let path = |path: &str| {
        let mut before = "";
        let mut parts = Vec::new();
        for segment in path.split('/') {
            parts.push(match before {
                "nodes" => "{node}",
                "qemu" | "lxc" | "vms" => "{vmid}",
                _ => segment,
            });
            before = segment;
        }
        parts.join("/")
    };
    let word = |word: &str| if word.starts_with('/') { path(word) } else { word.to_owned() };
    why.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Names up to this many are listed, more are counted.
const NAMED: usize = 4;

impl From<((String, String), Vec<String>)> for Unseen {
    fn from(((what, why), whose): ((String, String), Vec<String>)) -> Self {
        let what = match whose.len() {
            0 => what,
            1..=NAMED => format!("{what} of {}", whose.join(", ")),
            n => format!("{what} of {n} (first {})", whose.first().map_or("", String::as_str)),
        };
        Self { what, why }
    }
}

/// Whole tenths of days, so that it never says more than [`age`].
fn days(seconds: i64) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let tenths = (seconds / 8640) as f64;
    tenths / 10.0
}

/// A share as percent with one decimal.
fn percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

/// `3 days`, `1 day`, `5 hours`: an age for a sentence.
fn age(seconds: i64) -> String {
    let (n, unit) = match seconds {
        s if s >= 86_400 => (s / 86_400, "day"),
        s if s >= 3600 => (s / 3600, "hour"),
        s if s >= 60 => (s / 60, "minute"),
        _ => return "less than a minute".to_owned(),
    };
    format!("{n} {unit}{}", if n == 1 { "" } else { "s" })
}

/// A moment in RFC 3339, in the node's zone.
fn moment(estate: &Estate, node: &str, epoch: i64) -> String {
    match jiff::Timestamp::from_second(epoch) {
        Ok(at) => {
            let offset = estate.zone(node).to_offset(at);
            at.display_with_offset(offset).to_string()
        }
        Err(_) => epoch.to_string(),
    }
}

#[cfg(test)]
mod tests;
