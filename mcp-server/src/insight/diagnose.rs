//! Why a guest is slow, or down: statements, the likeliest cause first, each with its numbers.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::estate::{Guest, GuestStatus, Setup, Storage, Task};
use crate::pve::{Vmid, loose};

/// A pressure above this is felt: percent of time in which something waited.
const PRESSURE: f64 = 10.0;
const CPU_BUSY: f64 = 0.9;
const MEMORY_FULL: f64 = 0.95;
const NODE_BUSY: f64 = 0.9;
const STORAGE_FULL: f64 = 0.95;
/// A neighbour that does this share of a storage's traffic keeps it busy.
const NEIGHBOUR_SHARE: f64 = 0.5;
/// And at least this much, in bytes a second.
const NEIGHBOUR_LEAST: f64 = 10.0 * 1024.0 * 1024.0;

/// What a guest does to a storage that it shares with the one in question.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbour {
    /// Its number.
    pub vmid: Vmid,
    /// Its name.
    pub name: String,
    /// The storage both use.
    pub storage: String,
    /// Bytes a second, read and written.
    pub bytes_per_s: f64,
}

/// Everything that was read of the guest and around it; what is `None` was not seen.
#[derive(Debug, Clone, Copy)]
pub struct Patient<'a> {
    /// The guest.
    pub guest: &'a Guest,
    /// `GET …/status/current`.
    pub status: Option<&'a Value>,
    /// Its configuration.
    pub setup: Option<&'a Setup>,
    /// Its own traffic to storages, bytes a second.
    pub bytes_per_s: Option<f64>,
    /// Whether its agent answers; `None` where that was not asked.
    pub agent_answers: Option<bool>,
    /// `GET /nodes/{node}/status`; the node is offline when this says so.
    pub node: Option<&'a Value>,
    /// Whether the node is reachable.
    pub node_online: bool,
    /// The storages it uses.
    pub storages: &'a [&'a Storage],
    /// Other guests on them.
    pub neighbours: &'a [Neighbour],
    /// Recent tasks about it, newest first.
    pub tasks: &'a [&'a Task],
}

/// One cause or observation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statement {
    /// What it is about: `io`, `cpu`, `memory`, `disk`, `lock`, `task`, `storage`,
    /// `network`, `agent`, `node`, `state`.
    pub area: &'static str,
    /// How much it explains, 0 to 100.
    pub weight: u8,
    /// In plain words, with the numbers.
    pub says: String,
    /// The numbers.
    pub evidence: Map<String, Value>,
}

/// The statements, and what was not seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The likeliest cause first.
    pub statements: Vec<Statement>,
    /// What could not be seen.
    pub unknown: Vec<&'static str>,
}

/// Looks at a guest.
#[must_use]
pub fn diagnose(patient: &Patient<'_>) -> Diagnosis {
    let mut found = Vec::new();
    state(patient, &mut found);
    pressure(patient, &mut found);
    load(patient, &mut found);
    node(patient, &mut found);
    storages(patient, &mut found);
    tasks(patient, &mut found);
    network(patient, &mut found);
    agent(patient, &mut found);
    found.sort_by_key(|statement| std::cmp::Reverse(statement.weight));
    if found.is_empty() {
        let guest = patient.guest;
        found.push(statement(
            "state",
            0,
            format!(
                "{} is {} and nothing that was seen stands out",
                guest.title(),
                guest.status.as_str()
            ),
            json!({"status": guest.status.as_str(), "uptime_s": guest.uptime}),
        ));
    }
    let missing = [
        (patient.status.is_none(), "status"),
        (patient.setup.is_none(), "configuration"),
        (patient.node.is_none() && patient.node_online, "node"),
        (patient.storages.is_empty(), "storages"),
    ];
    let unknown = missing.iter().filter(|(missing, _)| *missing).map(|(_, what)| *what).collect();
    Diagnosis { statements: found, unknown }
}

fn statement(area: &'static str, weight: u8, says: String, evidence: Value) -> Statement {
    let evidence = match evidence {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    Statement { area, weight, says, evidence }
}

/// A percentage as a weight.
fn weight(base: f64, percent: f64) -> u8 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let weight = (base + percent.clamp(0.0, 100.0) * (100.0 - base) / 100.0).round() as u8;
    weight.min(100)
}

fn state(patient: &Patient<'_>, found: &mut Vec<Statement>) {
    let guest = patient.guest;
    let title = guest.title();
    if !patient.node_online {
        let says = format!("{title} is down because its node {} is offline", guest.node);
        return found.push(statement(
            "node",
            100,
            says,
            json!({"node": &*guest.node, "online": 0}),
        ));
    }
    if let Some(lock) = &guest.lock {
        let says = format!("{title} is locked ({lock}): most actions are refused until that ends");
        found.push(statement("lock", 70, says, json!({"lock": lock})));
    }
    if !matches!(guest.status, GuestStatus::Running | GuestStatus::Unknown) {
        let status = guest.status.as_str();
        let says = format!("{title} is {status}");
        let onboot = patient.setup.map(|setup| setup.onboot);
        found.push(statement("state", 90, says, json!({"status": status, "onboot": onboot})));
    }
}

fn read_pressure(status: &Value, kind: &str) -> Option<(f64, f64)> {
    let of = |grade: &str| loose::float(status, &format!("pressure{kind}{grade}"));
    Some((of("some")?, of("full").unwrap_or(0.0)))
}

fn pressure(patient: &Patient<'_>, found: &mut Vec<Statement>) {
    let Some(status) = patient.status else { return };
    if let Some((some, full)) = read_pressure(status, "io").filter(|(some, _)| *some >= PRESSURE) {
        let mut says = format!("I/O pressure: it waited for its disks {some} % of the time");
        let mut evidence = json!({"pressureiosome": some, "pressureiofull": full});
        if let Some((busy, share)) = busiest_neighbour(patient) {
            let rate = mib(busy.bytes_per_s);
            says.push_str(&format!(
                "; storage {} is kept busy by guest {} {} ({rate} MiB/s, {:.0} % of its traffic)",
                busy.storage,
                busy.vmid,
                busy.name,
                share * 100.0
            ));
            evidence = json!({
                "pressureiosome": some, "pressureiofull": full, "neighbour": busy.vmid,
                "neighbour_mib_per_s": rate, "storage": busy.storage,
            });
        }
        found.push(statement("io", weight(50.0, some), says, evidence));
    }
    if let Some((some, full)) = read_pressure(status, "cpu").filter(|(some, _)| *some >= PRESSURE) {
        let says = format!("CPU pressure: it waited for a processor {some} % of the time");
        let evidence = json!({"pressurecpusome": some, "pressurecpufull": full});
        found.push(statement("cpu", weight(45.0, some), says, evidence));
    }
    if let Some((some, full)) =
        read_pressure(status, "memory").filter(|(some, _)| *some >= PRESSURE)
    {
        let says = format!("Memory pressure: it waited for memory {some} % of the time");
        let evidence = json!({"pressurememorysome": some, "pressurememoryfull": full});
        found.push(statement("memory", weight(50.0, some), says, evidence));
    }
}

/// The neighbour that does most of what happens on a storage the guest uses.
fn busiest_neighbour<'a>(patient: &Patient<'a>) -> Option<(&'a Neighbour, f64)> {
    let busiest = patient
        .neighbours
        .iter()
        .filter(|n| n.vmid != patient.guest.vmid && n.bytes_per_s >= NEIGHBOUR_LEAST)
        .max_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s).then(b.vmid.cmp(&a.vmid)))?;
    let others: f64 = patient
        .neighbours
        .iter()
        .filter(|n| n.storage == busiest.storage && n.vmid != patient.guest.vmid)
        .map(|n| n.bytes_per_s)
        .sum();
    let share = busiest.bytes_per_s / (others + patient.bytes_per_s.unwrap_or(0.0));
    (share >= NEIGHBOUR_SHARE).then_some((busiest, share))
}

fn mib(bytes: f64) -> f64 {
    (bytes / 1_048_576.0 * 10.0).round() / 10.0
}

fn load(patient: &Patient<'_>, found: &mut Vec<Statement>) {
    let guest = patient.guest;
    if guest.status != GuestStatus::Running {
        return;
    }
    if let Some(cpu) = guest.cpu.filter(|cpu| *cpu >= CPU_BUSY) {
        let cores = guest.maxcpu.unwrap_or(1.0);
        let shown = (cpu * 1000.0).round() / 10.0;
        let says = format!("It uses {shown} % of its {cores} cores: it has too few, or runs wild");
        found.push(statement("cpu", 60, says, json!({"cpu_percent": shown, "cores": cores})));
    }
    if let Some(share) = guest.memory_share().filter(|share| *share >= MEMORY_FULL) {
        let shown = (share * 1000.0).round() / 10.0;
        let says = format!("{shown} % of its memory is in use");
        let evidence =
            json!({"mem_bytes": guest.mem, "maxmem_bytes": guest.maxmem, "percent": shown});
        found.push(statement("memory", 55, says, evidence));
    }
    let disk = guest.disk.zip(guest.maxdisk).filter(|(used, total)| *used > 0 && *total > 0);
    if let Some((used, total)) = disk {
        #[allow(clippy::cast_precision_loss)]
        let share = used as f64 / total as f64;
        if share >= STORAGE_FULL {
            let shown = (share * 1000.0).round() / 10.0;
            let says = format!("Its root disk is {shown} % full");
            let evidence = json!({"disk_bytes": used, "maxdisk_bytes": total, "percent": shown});
            found.push(statement("disk", 75, says, evidence));
        }
    }
}

fn node(patient: &Patient<'_>, found: &mut Vec<Statement>) {
    let Some(status) = patient.node else { return };
    let node = &patient.guest.node;
    if let Some(wait) = loose::float(status, "wait").filter(|wait| wait * 100.0 >= PRESSURE) {
        let shown = (wait * 1000.0).round() / 10.0;
        let says = format!("Node {node} waits for disks {shown} % of its time");
        found.push(statement(
            "io",
            weight(40.0, shown),
            says,
            json!({"node_iowait_percent": shown}),
        ));
    }
    if let Some(cpu) = loose::float(status, "cpu").filter(|cpu| *cpu >= NODE_BUSY) {
        let shown = (cpu * 1000.0).round() / 10.0;
        let says = format!("Node {node} uses {shown} % of its processors");
        found.push(statement("node", 58, says, json!({"node_cpu_percent": shown})));
    }
    let memory = status.get("memory").and_then(|memory| {
        let total = loose::float(memory, "total").filter(|total| *total > 0.0)?;
        let available = loose::float(memory, "available")
            .or_else(|| Some(total - loose::float(memory, "used")?))?;
        Some((1.0 - available / total, total))
    });
    if let Some((share, total)) = memory.filter(|(share, _)| *share >= NODE_BUSY) {
        let shown = (share * 1000.0).round() / 10.0;
        let says = format!("Node {node} has {shown} % of its memory in use, not counting cache");
        let evidence = json!({"node_mem_percent": shown, "node_mem_total_bytes": total});
        found.push(statement("node", 57, says, evidence));
    }
    let swap = status.get("swap").map(|swap| loose::float(swap, "used").unwrap_or(0.0));
    if let Some(used) = swap.filter(|used| *used >= 1_073_741_824.0) {
        let says = format!("Node {node} has {} MiB swapped out", mib(used));
        found.push(statement("node", 35, says, json!({"node_swap_used_bytes": used})));
    }
}

fn storages(patient: &Patient<'_>, found: &mut Vec<Statement>) {
    for storage in patient.storages {
        let title = storage.title();
        if !storage.usable() {
            let says = format!("Storage {title}, on which it has disks, does not answer");
            let evidence = json!({"storage": storage.id, "active": u8::from(storage.active)});
            found.push(statement("storage", 95, says, evidence));
        } else if let Some(fill) = storage.fill().filter(|fill| *fill >= STORAGE_FULL) {
            let shown = (fill * 1000.0).round() / 10.0;
            let says = format!("Storage {title}, on which it has disks, is {shown} % full");
            let evidence = json!({"storage": storage.id, "percent": shown});
            found.push(statement("storage", 85, says, evidence));
        }
    }
}

fn tasks(patient: &Patient<'_>, found: &mut Vec<Statement>) {
    for task in patient.tasks.iter().filter(|task| task.running()) {
        let says = format!("A task works on it: {} since {}", task.kind, moment(task.start));
        let evidence = json!({"upid": task.upid, "type": task.kind});
        found.push(statement("task", 65, says, evidence));
    }
    // Only the newest that ended: older failures were followed by something.
    let newest = patient.tasks.iter().find(|task| !task.running());
    if let Some((task, cause)) = newest.and_then(|task| Some((task, task.failure()?))) {
        let says = format!("Its last task, {}, failed: {cause}", task.kind);
        let evidence = json!({"upid": task.upid, "status": cause});
        found.push(statement("task", 80, says, evidence));
    }
}

fn moment(epoch: i64) -> String {
    jiff::Timestamp::from_second(epoch).map_or_else(|_| epoch.to_string(), |at| at.to_string())
}

fn network(patient: &Patient<'_>, found: &mut Vec<Statement>) {
    let Some(setup) = patient.setup else { return };
    for nic in setup.nics.iter().filter(|nic| nic.link_down) {
        let says = format!("Its interface {} is unplugged (link_down=1)", nic.slot);
        found.push(statement("network", 72, says, json!({"nic": nic.slot, "bridge": nic.bridge})));
    }
}

fn agent(patient: &Patient<'_>, found: &mut Vec<Statement>) {
    let on = patient.setup.is_some_and(|setup| setup.agent);
    if on && patient.guest.status == GuestStatus::Running && patient.agent_answers == Some(false) {
        let says = "Its guest agent is switched on but does not answer: it may hang inside, or \
                    the agent is not installed"
            .to_owned();
        found.push(statement("agent", 50, says, json!({"agent": 1, "answers": 0})));
    }
}

#[cfg(test)]
mod tests;
