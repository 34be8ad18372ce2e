//! What hangs on the object of a change, and how to undo it, in plain words.

mod prune;
mod staged;
mod uses;

use serde_json::Value;

pub use self::staged::place;
use super::{
    Facts, Method, Operation, State,
    api::API,
    binding::call_of,
    conditions::{Call, restore},
    shown::quoted,
};
use crate::pve::{ApiPath, Params, Vmid, loose, params::split_list};

/// What hangs on the object, one line each. A part that cannot be seen is said to be unknown.
#[must_use]
pub fn lines(call: &Call<'_>) -> Vec<String> {
    let template = call.endpoint.template;
    let mut out = Vec::new();
    if let Some(vmid) = call.variable("vmid").and_then(|v| Vmid::parse(v).ok()) {
        of_guest(call, vmid, &mut out);
    } else if template == "/nodes/{node}/status"
        || template.ends_with("all") && template.starts_with("/nodes/{node}/")
    {
        of_node(call, &mut out);
    } else if template == "/storage/{storage}" {
        of_storage(call, &mut out);
    }
    prune::lines(call, &mut out);
    staged::lines(call, &mut out);
    uses::lines(call, &mut out);
    out
}

fn of_guest(call: &Call<'_>, vmid: Vmid, out: &mut Vec<String>) {
    let number = vmid.to_string();
    match list(call, &["cluster", "ha", "resources"]) {
        Some(rows) => {
            for row in rows.iter().filter(|r| sid_is(r, &number)) {
                let state = loose::str(row, "state").unwrap_or("started");
                out.push(format!("managed by HA, wanted state {}", quoted(state)));
            }
        }
        None => out.push("HA: cannot be seen".to_owned()),
    }
    match list(call, &["cluster", "replication"]) {
        Some(rows) => {
            let jobs: Vec<String> = rows
                .iter()
                .filter(|r| loose::text(r, "guest").as_deref() == Some(&number))
                .filter_map(|r| loose::text(r, "id"))
                .collect();
            if !jobs.is_empty() {
                out.push(format!("replicated by {}", jobs.join(", ")));
            }
        }
        None => out.push("replication: cannot be seen".to_owned()),
    }
    match list(call, &["cluster", "backup"]) {
        Some(rows) => {
            let pool = call.facts.guest(vmid).and_then(|g| loose::text(g, "pool"));
            let jobs: Vec<String> = rows
                .iter()
                .filter(|job| backs_up(job, &number, pool.as_deref()))
                .filter_map(|job| loose::text(job, "id"))
                .collect();
            match jobs.as_slice() {
                [] => out.push("in no backup job".to_owned()),
                jobs => out.push(format!(
                    "backed up by {}",
                    jobs.iter().map(|j| quoted(j)).collect::<Vec<_>>().join(", ")
                )),
            }
        }
        None => out.push("backup jobs: cannot be seen".to_owned()),
    }
    snapshots(call, &number, out);
    if call.endpoint.template.ends_with("/migrate")
        && let Some(others) = restore::companions(call).filter(|o| !o.is_empty())
    {
        out.push(format!("takes along {}", others.join(", ")));
    }
}

fn snapshots(call: &Call<'_>, vmid: &str, out: &mut Vec<String>) {
    let (Some(node), Some(kind)) = (call.variable("node"), call.kind()) else { return };
    let Some(rows) = list(call, &["nodes", node, kind, vmid, "snapshot"]) else { return };
    let names: Vec<(&str, Option<i64>)> = rows
        .iter()
        .filter_map(|r| Some((loose::str(r, "name")?, loose::int(r, "snaptime"))))
        .filter(|(name, _)| *name != "current")
        .collect();
    let all = || names.iter().map(|(n, _)| quoted(n)).collect::<Vec<_>>().join(", ");
    let template = call.endpoint.template;
    let goes = call.method == Method::Delete && template.ends_with("/{vmid}");
    if goes && !names.is_empty() {
        out.push(format!("{} snapshots go with it: {}", names.len(), all()));
    }
    if template.ends_with("/rollback") {
        let name = call.variable("snapname").unwrap_or_default();
        let Some((_, time)) = names.iter().find(|(n, _)| *n == name) else { return };
        let when = time.and_then(|t| jiff::Timestamp::from_second(t).ok()).map(|t| t.to_string());
        out.push(format!(
            "everything written since {} is lost",
            when.unwrap_or_else(|| "the snapshot".to_owned())
        ));
        let later: Vec<String> =
            names.iter().filter(|(_, t)| t > time).map(|(n, _)| quoted(n)).collect();
        if !later.is_empty() {
            out.push(format!("later snapshots: {}", later.join(", ")));
        }
    }
}

fn of_node(call: &Call<'_>, out: &mut Vec<String>) {
    let node = call.variable("node").unwrap_or_default();
    match call.facts.guests() {
        Ok(rows) => {
            let on = |r: &&Value| node == "localhost" || loose::str(r, "node") == Some(node);
            let running: Vec<String> = rows
                .iter()
                .filter(on)
                .filter(|r| loose::str(r, "status") == Some("running"))
                .filter_map(|r| loose::text(r, "vmid"))
                .collect();
            out.push(match running.as_slice() {
                [] => "no running guest on the node can be seen".to_owned(),
                ids => format!("{} running guests: {}", ids.len(), ids.join(", ")),
            });
        }
        Err(_) => out.push("guests of the node: cannot be seen".to_owned()),
    }
    if let Some(rows) = list(call, &["cluster", "status"]) {
        let nodes: Vec<&Value> =
            rows.iter().filter(|r| loose::str(r, "type") == Some("node")).collect();
        let online = nodes.iter().filter(|r| loose::flag(r, "online")).count();
        if nodes.len() > 1 {
            let left = online.saturating_sub(1);
            let quorum =
                if left * 2 > nodes.len() { "keeps its quorum" } else { "LOSES ITS QUORUM" };
            out.push(format!(
                "{online} of {} nodes are online; without this one the cluster {quorum}",
                nodes.len()
            ));
        }
    }
}

fn list<'a>(call: &Call<'a>, path: &[&str]) -> Option<&'a [Value]> {
    list_with(call, path, Params::new())
}

fn list_with<'a>(call: &Call<'a>, path: &[&str], params: Params) -> Option<&'a [Value]> {
    call.facts.ask(path, params).ok().and_then(Value::as_array).map(Vec::as_slice)
}

fn sid_is(row: &Value, vmid: &str) -> bool {
    loose::str(row, "sid").and_then(|s| s.rsplit(':').next()) == Some(vmid)
}

fn backs_up(job: &Value, vmid: &str, pool: Option<&str>) -> bool {
    let names =
        |key: &str| loose::text(job, key).is_some_and(|l| split_list(&l).any(|m| m == vmid));
    if job.get("enabled").is_some() && !loose::flag(job, "enabled") {
        return false;
    }
    names("vmid")
        || (loose::flag(job, "all") && !names("exclude"))
        || loose::str(job, "pool").is_some_and(|p| Some(p) == pool)
}

/// What hangs on the object of an operation, asked of `state`.
pub async fn of(op: &Operation, state: &impl State) -> Vec<String> {
    let mut facts = Facts::default();
    facts
        .settle(state, |facts| {
            call_of(op, &op.params, facts).as_ref().map(lines).unwrap_or_default()
        })
        .await
}

/// What comes nearest to undoing a call of which no former state is kept.
#[must_use]
pub fn nearest(method: Method, path: &ApiPath) -> &'static str {
    undo_hint(method, API.find(path).map_or("", |e| e.template))
}

fn of_storage(call: &Call<'_>, out: &mut Vec<String>) {
    let storage = call.variable("storage").unwrap_or_default();
    let resources =
        call.facts.ask(&["cluster", "resources"], Params::new().with("type", "storage"));
    let places: Vec<&Value> = resources
        .map(loose::rows)
        .unwrap_or_default()
        .iter()
        .filter(|r| loose::str(r, "storage") == Some(storage))
        .collect();
    if places.is_empty() {
        out.push("what is on it: cannot be seen".to_owned());
    }
    let shared = places.iter().any(|r| loose::flag(r, "shared"));
    let (mut guests, mut backups) = (std::collections::BTreeSet::new(), 0_usize);
    for place in places.iter().take(if shared { 1 } else { usize::MAX }) {
        let Some(node) = loose::str(place, "node") else { continue };
        match list(call, &["nodes", node, "storage", storage, "content"]) {
            Some(rows) => {
                for row in rows {
                    match loose::str(row, "content") {
                        Some("backup") => backups += 1,
                        Some("images" | "rootdir") => guests.extend(loose::uint(row, "vmid")),
                        _ => {}
                    }
                }
            }
            None => out.push(format!("what is on it on {}: cannot be seen", quoted(node))),
        }
    }
    if !guests.is_empty() {
        let ids: Vec<String> = guests.iter().map(ToString::to_string).collect();
        out.push(format!("disks of {} guests: {}", ids.len(), ids.join(", ")));
    }
    if backups > 0 {
        out.push(format!("{backups} backups are on it"));
    }
    match list(call, &["cluster", "backup"]) {
        Some(rows) => {
            let jobs: Vec<String> = rows
                .iter()
                .filter(|job| loose::str(job, "storage") == Some(storage))
                .filter_map(|job| loose::text(job, "id"))
                .collect();
            if !jobs.is_empty() {
                out.push(format!("backup jobs write to it: {}", jobs.join(", ")));
            }
        }
        None => out.push("backup jobs: cannot be seen".to_owned()),
    }
}

/// How to undo a change, or that there is no undo.
#[must_use]
pub fn undo_hint(method: Method, template: &str) -> &'static str {
    let last = template.rsplit('/').next().unwrap_or_default();
    match (method, last) {
        (Method::Delete, "{vmid}") => "no undo: only a backup brings the guest back",
        (Method::Delete, "{volume}" | "prunebackups") => "no undo: the data is gone",
        (Method::Delete, "{snapname}") => "no undo: the snapshot is gone, the guest stays as it is",
        (_, "rollback") => "no undo: take a snapshot of the present state first",
        (_, "stop" | "shutdown" | "suspend") => "start the guest again; unsaved data is lost",
        (_, "reset" | "reboot") => "the guest starts again by itself; unsaved data is lost",
        (_, "start" | "resume") => "shut the guest down again",
        (Method::Post, "snapshot") => "delete the snapshot",
        (_, "clone" | "qemu" | "lxc") => "delete the new guest",
        (Method::Put | Method::Post, "config") => {
            "pve_undo with the audit id puts the former options back"
        }
        (_, "stopall" | "suspendall") => "start the guests again; unsaved data is lost",
        (_, "startall") => "shut the guests down again",
        (_, "migrateall") => "migrate the guests back",
        (_, "template") => "no undo: clone the template back into a guest",
        (_, "migrate" | "relocate") => "migrate it back",
        (_, "vzdump") => "delete the new backup",
        (_, "status") => "the node has to be started again by hand or by wake-on-LAN",
        (Method::Delete, _) => "no undo: make it anew with the values shown here",
        _ => "set the former values again",
    }
}
