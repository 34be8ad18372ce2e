//! What hangs on a node: its guests, the cluster's quorum, HA, and the jobs and storages that name it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ha, ids, list, unseen_guests};
use crate::{
    Result,
    pve::{Params, loose, params::split_list},
    safety::{Method, conditions::Call, facts::no_such_endpoint, nodes::resolve, shown::quoted},
};

/// What becomes of the node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It goes down, or restarts.
    Down,
    /// It leaves the cluster for good.
    Leaves,
    /// It stays, and something is done to all of its guests.
    Stays,
}

pub(super) fn lines(call: &Call<'_>, out: &mut Vec<String>) {
    let fate = match (call.method, call.endpoint.template) {
        (Method::Post, "/nodes/{node}/status") => Fate::Down,
        (Method::Delete, "/cluster/config/nodes/{node}") => Fate::Leaves,
        (Method::Post, path) if path.starts_with("/nodes/{node}/") && path.ends_with("all") => {
            Fate::Stays
        }
        _ => return,
    };
    let node = resolve(call, call.variable("node").unwrap_or_default());
    guests(call, &node, fate, out);
    if fate != Fate::Stays {
        quorum(call, &node, fate, out);
        ha::of_node(call, &node, out);
        jobs(call, &node, out);
        storages(call, &node, out);
    }
}

fn guests(call: &Call<'_>, node: &str, fate: Fate, out: &mut Vec<String>) {
    let Ok(rows) = call.facts.guests() else {
        out.push("guests of the node: cannot be seen".to_owned());
        return;
    };
    let on = |r: &&Value| node == "localhost" || loose::str(r, "node") == Some(node);
    // Of several that are named only those are meant.
    let named: BTreeSet<u64> =
        call.params.members("vms").filter_map(|vmid| vmid.trim().parse().ok()).collect();
    let meant = |r: &&Value| {
        named.is_empty() || loose::uint(r, "vmid").is_some_and(|vmid| named.contains(&vmid))
    };
    let here: BTreeSet<u64> =
        rows.iter().filter(on).filter_map(|r| loose::uint(r, "vmid")).collect();
    let running: BTreeSet<u64> = rows
        .iter()
        .filter(on)
        .filter(meant)
        .filter(|r| loose::str(r, "status") == Some("running"))
        .filter_map(|r| loose::uint(r, "vmid"))
        .collect();
    if running.is_empty() {
        out.push("no running guest on the node can be seen".to_owned());
    } else {
        out.push(format!("{} running guests: {}", running.len(), ids(&running)));
    }
    if fate == Fate::Leaves && !here.is_empty() {
        out.push(format!("{} guests are on the node: {}", here.len(), ids(&here)));
    }
    if let Some(what) = unseen_guests(call.facts) {
        out.push(format!("{what} are not counted"));
    }
    if fate == Fate::Stays {
        return;
    }
    match list(call, &["cluster", "ha", "resources"]) {
        Some(resources) => {
            let managed = |vmid: &&u64| resources.iter().any(|r| ha::is_of(r, &vmid.to_string()));
            let managed: Vec<&u64> = running.iter().filter(managed).collect();
            if !managed.is_empty() {
                out.push(format!(
                    "managed by HA, which moves them as the shutdown policy says: {}",
                    ids(managed)
                ));
            }
        }
        None => out.push("HA: cannot be seen".to_owned()),
    }
}

/// The votes of the cluster with and without a node.
fn quorum(call: &Call<'_>, node: &str, fate: Fate, out: &mut Vec<String>) {
    let Some(rows) = list(call, &["cluster", "status"]) else {
        out.push("quorum: cannot be seen".to_owned());
        return;
    };
    let nodes: Vec<&Value> =
        rows.iter().filter(|r| loose::str(r, "type") == Some("node")).collect();
    if nodes.len() < 2 {
        return;
    }
    let cluster = rows.iter().find(|r| loose::str(r, "type") == Some("cluster"));
    if cluster.is_some_and(|c| c.get("quorate").is_some() && !loose::flag(c, "quorate")) {
        out.push("the cluster HAS NO QUORUM now".to_owned());
    }
    let configured = list(call, &["cluster", "config", "nodes"]);
    if configured.is_none() {
        out.push("the votes of the nodes cannot be seen, each is counted as one".to_owned());
    }
    let votes = |name: &str| {
        let named = |r: &&Value| ["node", "name"].iter().any(|k| loose::str(r, k) == Some(name));
        let row = configured.unwrap_or_default().iter().find(named);
        row.and_then(|r| loose::uint(r, "quorum_votes")).unwrap_or(1)
    };
    let (mut expected, mut online, mut own, mut up) = (0_u64, 0_u64, 0_u64, false);
    for row in &nodes {
        let name = loose::str(row, "name").unwrap_or_default();
        let (count, is_on) = (votes(name), loose::flag(row, "online"));
        expected = count.saturating_add(expected);
        online = online.saturating_add(if is_on { count } else { 0 });
        if name == node {
            (own, up) = (count, is_on);
        }
    }
    match qdevice(call, nodes.len()) {
        Ok(Some(QDevice { votes, connected })) => {
            expected = votes.saturating_add(expected);
            online = online.saturating_add(if connected { votes } else { 0 });
            let state = if connected { "is connected" } else { "IS NOT CONNECTED" };
            out.push(format!("the QDevice {state} and counts for {votes} of the votes"));
        }
        Ok(None) => {}
        Err(error) if no_such_endpoint(&error) => {}
        Err(_) => out.push("whether there is a QDevice cannot be seen".to_owned()),
    }
    let left = online.saturating_sub(if up { own } else { 0 });
    let needed = expected.saturating_sub(if fate == Fate::Leaves { own } else { 0 });
    let stays = left.saturating_mul(2) > needed;
    let keeps = if stays { "keeps its quorum" } else { "LOSES ITS QUORUM" };
    let nodes_on = nodes.iter().filter(|r| loose::flag(r, "online")).count();
    let total = nodes.len();
    if up {
        out.push(format!(
            "{nodes_on} of {total} nodes are online with {online} of {expected} votes; \
             without the {own} of this one the cluster {keeps}"
        ));
    } else if fate == Fate::Leaves {
        out.push(format!(
            "the node is off; {online} of {expected} votes are there, and without its {own} \
             in the count the cluster {}",
            if stays { "has its quorum" } else { "HAS NO QUORUM" }
        ));
    } else {
        out.push(format!(
            "the node is off already and its votes are missing: {online} of {expected} are there"
        ));
    }
}

struct QDevice {
    votes: u64,
    connected: bool,
}

/// The external vote, where there is one: one for an even number of nodes, one less than the nodes
/// for an odd one, which is how `pvecm qdevice setup` sets it up, unless its algorithm is told.
fn qdevice(call: &Call<'_>, nodes: usize) -> Result<Option<QDevice>> {
    let status = call.facts.look(&["cluster", "config", "qdevice"], Params::new())?;
    if status.as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok(None);
    }
    let text = |key: &str| loose::str(status, key).unwrap_or_default().to_lowercase();
    let (algorithm, state) = (text("Algorithm"), text("State"));
    let many = if algorithm.is_empty() {
        nodes % 2 == 1
    } else {
        algorithm.contains("lms") || algorithm.contains("last man standing")
    };
    let votes = if many { u64::try_from(nodes).unwrap_or(1).saturating_sub(1) } else { 1 };
    Ok(Some(QDevice { votes, connected: state.starts_with("connected") }))
}

/// Backup and replication jobs that name the node.
fn jobs(call: &Call<'_>, node: &str, out: &mut Vec<String>) {
    match list(call, &["cluster", "backup"]) {
        Some(jobs) => {
            let only: Vec<String> = jobs
                .iter()
                .filter(|job| loose::str(job, "node") == Some(node))
                .map(|job| quoted(&loose::text(job, "id").unwrap_or_default()))
                .collect();
            if !only.is_empty() {
                out.push(format!("backup jobs that run on it alone: {}", only.join(", ")));
            }
        }
        None => out.push("backup jobs: cannot be seen".to_owned()),
    }
    match list(call, &["cluster", "replication"]) {
        Some(jobs) => {
            for (key, words) in [("target", "replicated to it"), ("source", "replicated from it")] {
                let ids: Vec<String> = jobs
                    .iter()
                    .filter(|job| loose::str(job, key) == Some(node))
                    .filter_map(|job| loose::text(job, "id"))
                    .collect();
                if !ids.is_empty() {
                    out.push(format!("{words}: {}", ids.join(", ")));
                }
            }
        }
        None => out.push("replication: cannot be seen".to_owned()),
    }
}

/// Storages that are there on this node and no other.
fn storages(call: &Call<'_>, node: &str, out: &mut Vec<String>) {
    let Some(rows) = list(call, &["storage"]) else {
        out.push("storages of the node alone: cannot be seen".to_owned());
        return;
    };
    let only: Vec<String> = rows
        .iter()
        .filter(|row| {
            let mut nodes = split_list(loose::str(row, "nodes").unwrap_or_default());
            nodes.next() == Some(node) && nodes.next().is_none()
        })
        .map(|row| quoted(loose::str(row, "storage").unwrap_or_default()))
        .collect();
    if !only.is_empty() {
        out.push(format!("storages that only this node has: {}", only.join(", ")));
    }
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
