//! What hangs on a storage: disks and backups on it, and the HA, replication and backup jobs behind them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ha, ids, list, rows};
use crate::{
    pve::{Params, loose},
    safety::{conditions::Call, shown::quoted},
};

pub(super) fn lines(call: &Call<'_>, out: &mut Vec<String>) {
    if call.endpoint.template != "/storage/{storage}" {
        return;
    }
    let storage = call.variable("storage").unwrap_or_default();
    let guests = content(call, storage, out);
    if !guests.is_empty() {
        out.push(format!("disks of {} guests: {}", guests.len(), ids(&guests)));
        behind(call, &guests, out);
    }
    match list(call, &["cluster", "backup"]) {
        Some(jobs) => {
            let ids = |uses: fn(&Value, &str) -> bool| {
                let ids = jobs.iter().filter(|job| uses(job, storage));
                let ids = ids.map(|job| quoted(&loose::text(job, "id").unwrap_or_default()));
                ids.collect::<Vec<_>>().join(", ")
            };
            for (words, found) in [
                ("backup jobs write to it", ids(writes_to)),
                ("backup jobs keep their fleecing images on it", ids(fleeces_on)),
            ] {
                if !found.is_empty() {
                    out.push(format!("{words}: {found}"));
                }
            }
        }
        None => out.push("backup jobs: cannot be seen".to_owned()),
    }
}

fn writes_to(job: &Value, storage: &str) -> bool {
    loose::str(job, "storage") == Some(storage)
}

/// `fleecing` is an object, or the text of one.
fn fleeces_on(job: &Value, storage: &str) -> bool {
    match job.get("fleecing") {
        Some(Value::String(text)) => {
            text.split(',').any(|part| part.trim().strip_prefix("storage=") == Some(storage))
        }
        Some(fleecing) => writes_to(fleecing, storage),
        None => false,
    }
}

/// The guests with disks on it; its backups and what cannot be seen are told.
fn content(call: &Call<'_>, storage: &str, out: &mut Vec<String>) -> BTreeSet<u64> {
    let kind = Params::new().with("type", "storage");
    let places: Vec<&Value> = rows(call.facts, &["cluster", "resources"], kind)
        .unwrap_or_default()
        .iter()
        .filter(|r| loose::str(r, "storage") == Some(storage))
        .collect();
    if places.is_empty() {
        out.push("what is on it: cannot be seen".to_owned());
    }
    // A shared storage shows the same everywhere, as long as the node that is asked has it.
    let shared = places.iter().any(|r| loose::flag(r, "shared"));
    let there = |r: &&&Value| loose::str(r, "status") != Some("unknown");
    let one = places.iter().find(there).or(places.first()).filter(|_| shared);
    let asked = one.map_or(places.as_slice(), std::slice::from_ref);
    let (mut guests, mut backups) = (BTreeSet::new(), 0_usize);
    for node in asked.iter().filter_map(|place| loose::str(place, "node")) {
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
    if backups > 0 {
        out.push(format!("{backups} backups are on it"));
    }
    guests
}

/// What of the guests is managed by HA or replicated, and so needs the storage.
fn behind(call: &Call<'_>, guests: &BTreeSet<u64>, out: &mut Vec<String>) {
    match list(call, &["cluster", "ha", "resources"]) {
        Some(resources) => {
            let managed = |vmid: &&u64| resources.iter().any(|r| ha::is_of(r, &vmid.to_string()));
            let managed: Vec<&u64> = guests.iter().filter(managed).collect();
            if !managed.is_empty() {
                out.push(format!("managed by HA: {}", ids(managed)));
            }
        }
        None => out.push("HA: cannot be seen".to_owned()),
    }
    match list(call, &["cluster", "replication"]) {
        Some(jobs) => {
            let of = |job: &&Value| loose::uint(job, "guest").is_some_and(|g| guests.contains(&g));
            let jobs: Vec<String> =
                jobs.iter().filter(of).filter_map(|job| loose::text(job, "id")).collect();
            if !jobs.is_empty() {
                out.push(format!("replicated by {}", jobs.join(", ")));
            }
        }
        None => out.push("replication: cannot be seen".to_owned()),
    }
}

#[cfg(test)]
#[path = "storage_tests.rs"]
mod tests;
