//! The whole estate in one small answer.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    attention::{Attention, Severity, attention},
    coverage::{Cover, coverage},
    estate::{Estate, Guest, GuestKind, GuestStatus, Node, Part, Storage, Task, unique},
};
use crate::pve::Vmid;

/// Guests, storages and tasks that are named; the others are counted.
const BUSIEST: usize = 3;
const STORAGES: usize = 6;
const TASKS: usize = 3;
const UNKNOWN: usize = 3;
/// Failed tasks of this long are recent.
const RECENT: i64 = 24 * 3600;
/// Characters of a cause, and of a sentence.
const CAUSE: usize = 60;
const SENTENCE: usize = 110;

/// The estate at a glance. What is absent was not seen; `unknown` says why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// Name of the cluster; absent for a node that stands alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Whether the cluster has quorum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quorate: Option<bool>,
    /// What is wrong, in one line.
    pub attention: String,
    /// The state of backups, in one line.
    pub backups: String,
    /// Nodes by name.
    pub nodes: Vec<NodeLine>,
    /// Guests by kind and state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guests: Option<GuestCounts>,
    /// The guests that use most cores.
    pub busiest: Vec<BusyGuest>,
    /// The fullest storages, shared ones once.
    pub storages: Vec<StorageLine>,
    /// Storages that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_storages: usize,
    /// Tasks that run now, newest first.
    pub running_tasks: Vec<TaskLine>,
    /// Running tasks that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_running_tasks: usize,
    /// Tasks that failed within a day, newest first.
    pub recent_failures: Vec<TaskLine>,
    /// Failures that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_failures: usize,
    /// What could not be seen.
    pub unknown: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// A node in one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeLine {
    /// Name.
    pub node: String,
    /// `online` or `offline`.
    pub state: &'static str,
    /// Share of all cores in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u64>,
    /// Share of memory in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mem_percent: Option<u64>,
    /// Seconds since it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime_s: Option<u64>,
    /// Version of Proxmox VE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Guests by kind and state; templates are counted apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GuestCounts {
    /// All but templates.
    pub total: usize,
    /// Virtual machines by state.
    pub vms: BTreeMap<&'static str, usize>,
    /// Containers by state.
    pub containers: BTreeMap<&'static str, usize>,
    /// Templates of both kinds.
    pub templates: usize,
}

/// A guest that is busy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BusyGuest {
    /// Number.
    pub vmid: Vmid,
    /// Name.
    pub name: String,
    /// Share of its own cores in use.
    pub cpu_percent: u64,
    /// Share of its memory in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mem_percent: Option<u64>,
}

/// A storage in one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StorageLine {
    /// Storage id.
    pub storage: String,
    /// Node; absent for a shared storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Share in use; absent when it cannot be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<u64>,
    /// Free space in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// `disabled` or `offline`; absent when it is in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
}

/// A task in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskLine {
    /// Type, for example `vzdump`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is about, mostly a VMID.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Node.
    pub node: String,
    /// Minutes since it started, or since it ended when it did.
    pub minutes_ago: i64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// Makes the overview of a snapshot.
#[must_use]
pub fn overview(estate: &Estate) -> Overview {
    let judged = attention(estate, usize::MAX);
    let cluster = estate.cluster.known();
    let mut storages = unique(estate.storages.rows());
    storages.sort_by(|a, b| {
        let fill = |s: &Storage| s.fill().unwrap_or(0.0);
        fill(b).total_cmp(&fill(a))
    });
    let tasks = estate.tasks.rows();
    let running: Vec<&Task> = tasks.iter().filter(|task| task.running()).collect();
    let failed: Vec<&Task> = tasks
        .iter()
        .filter(|t| t.failure().is_some() && estate.now - t.end.unwrap_or(t.start) <= RECENT)
        .collect();
    Overview {
        cluster: cluster.and_then(|c| c.name.clone()),
        quorate: cluster.and_then(|c| c.quorate),
        attention: attention_line(&judged),
        backups: backup_line(estate, &judged),
        nodes: estate.nodes.rows().iter().map(node_line).collect(),
        guests: estate.guests.known().map(|guests| count(guests)),
        busiest: busiest(estate.guests.rows()),
        storages: storages.iter().take(STORAGES).map(|s| storage_line(s)).collect(),
        more_storages: storages.len().saturating_sub(STORAGES),
        running_tasks: running.iter().take(TASKS).map(|t| task_line(estate, t)).collect(),
        more_running_tasks: running.len().saturating_sub(TASKS),
        recent_failures: failed.iter().take(TASKS).map(|t| task_line(estate, t)).collect(),
        more_failures: failed.len().saturating_sub(TASKS),
        unknown: unknown(&judged),
    }
}

fn to_percent(share: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let percent = (share * 100.0).round().clamp(0.0, 1e6) as u64;
    percent
}

fn share(used: Option<u64>, total: Option<u64>) -> Option<u64> {
    let (used, total) = (used?, total?);
    #[allow(clippy::cast_precision_loss)]
    (total > 0).then(|| to_percent(used as f64 / total as f64))
}

fn node_line(node: &Node) -> NodeLine {
    let online = |value| if node.online { value } else { None };
    NodeLine {
        node: node.name.clone(),
        state: if node.online { "online" } else { "offline" },
        cpu_percent: online(node.cpu.map(to_percent)),
        mem_percent: online(share(node.mem, node.maxmem)),
        uptime_s: online(node.uptime),
        version: node.version.clone(),
    }
}

fn count(guests: &[Guest]) -> GuestCounts {
    let mut counts = GuestCounts::default();
    for guest in guests {
        if guest.template {
            counts.templates += 1;
            continue;
        }
        counts.total += 1;
        let of_kind = match guest.kind {
            GuestKind::Qemu => &mut counts.vms,
            GuestKind::Lxc => &mut counts.containers,
        };
        *of_kind.entry(guest.status.as_str()).or_insert(0) += 1;
    }
    counts
}

fn busiest(guests: &[Guest]) -> Vec<BusyGuest> {
    let mut busy: Vec<(f64, &Guest, f64)> = guests
        .iter()
        .filter(|guest| guest.status == GuestStatus::Running)
        .filter_map(|guest| {
            let cpu = guest.cpu?;
            Some((cpu * guest.maxcpu.unwrap_or(1.0), guest, cpu))
        })
        .collect();
    busy.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.vmid.cmp(&b.1.vmid)));
    let line = |(_, guest, cpu): &(f64, &Guest, f64)| BusyGuest {
        vmid: guest.vmid,
        name: guest.name.clone(),
        cpu_percent: to_percent(*cpu),
        mem_percent: guest.memory_share().map(to_percent),
    };
    busy.iter().take(BUSIEST).map(line).collect()
}

fn storage_line(storage: &Storage) -> StorageLine {
    let state = match storage.enabled {
        Some(false) => Some("disabled"),
        _ if !storage.active => Some("offline"),
        _ => None,
    };
    let (used, total) = if state.is_none() { (storage.used, storage.total) } else { (None, None) };
    StorageLine {
        storage: storage.id.clone(),
        node: (!storage.shared).then(|| storage.node.clone()),
        used_percent: share(used, total),
        free_bytes: used.and_then(|used| total?.checked_sub(used)),
        state,
    }
}

fn task_line(estate: &Estate, task: &Task) -> TaskLine {
    TaskLine {
        kind: task.kind.clone(),
        id: task.id.clone(),
        node: task.node.clone(),
        minutes_ago: (estate.now - task.end.unwrap_or(task.start)).max(0) / 60,
        cause: task.failure().map(|cause| cut(cause, CAUSE)),
    }
}

/// The first line, and not too much of it.
fn cut(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(line)),
        None => line.to_owned(),
    }
}

fn attention_line(judged: &Attention) -> String {
    let counts = &judged.counts;
    let parts: Vec<String> = [
        (counts.critical, "critical", "critical"),
        (counts.warning, "warning", "warnings"),
        (counts.info, "note", "notes"),
    ]
    .iter()
    .filter(|(n, ..)| *n > 0)
    .map(|(n, one, many)| format!("{n} {}", if *n == 1 { one } else { many }))
    .collect();
    let worst = judged.findings.iter().find(|f| f.severity != Severity::Info);
    let mut line = match (parts.is_empty(), judged.unknown.is_empty()) {
        (true, true) => "nothing found".to_owned(),
        (true, false) => "nothing found in what could be seen".to_owned(),
        _ => parts.join(", "),
    };
    if let Some(worst) = worst {
        line.push_str("; first: ");
        line.push_str(&cut(&worst.what, SENTENCE));
    }
    line
}

fn backup_line(estate: &Estate, judged: &Attention) -> String {
    let rows = match (coverage(estate), &estate.jobs) {
        (Part::Known(rows), Part::Known(_)) => rows,
        (_, Part::Unknown(why)) => return cut(&format!("unknown: {why}"), SENTENCE),
        (Part::Unknown(why), _) => return cut(&format!("unknown: {why}"), SENTENCE),
    };
    let guests = estate.guests.rows();
    let wanted: Vec<_> = rows
        .iter()
        .filter(|row| guests.iter().any(|guest| guest.vmid == row.vmid && !guest.template))
        .collect();
    let taken = wanted.iter().filter(|r| matches!(r.cover, Cover::Covered | Cover::Partly)).count();
    let mut line = format!("{taken} of {} guests in a job", wanted.len());
    for (code, words) in [
        ("backup_overdue", "overdue"),
        ("never_backed_up", "never backed up"),
        ("backup_failed", "failed"),
    ] {
        let n = judged.findings.iter().filter(|f| f.code == code).count();
        if n > 0 {
            line.push_str(&format!(", {n} {words}"));
        }
    }
    if judged.unknown.iter().any(|unseen| unseen.what.starts_with("backups of")) {
        line.push_str("; not all backups can be seen");
    }
    line
}

fn unknown(judged: &Attention) -> Vec<String> {
    let line = |u: &super::attention::Unseen| cut(&format!("{}: {}", u.what, u.why), SENTENCE);
    let mut lines: Vec<String> = judged.unknown.iter().take(UNKNOWN).map(line).collect();
    let more = judged.unknown.len().saturating_sub(UNKNOWN);
    if more > 0 {
        lines.push(format!("{more} more (pve_needs_attention lists them)"));
    }
    lines
}

#[cfg(test)]
mod tests;
