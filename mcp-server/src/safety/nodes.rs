//! Which nodes a change names, and `PROXMOX_ALLOWED_NODES`.

use std::collections::BTreeSet;

use super::{api::Kind, conditions::Call};
use crate::{
    Code, Error, Result,
    config::Config,
    pve::{ApiPath, Params, Vmid, loose},
};

/// Parameters that name a node, whatever the endpoint.
const NODE_PARAMS: [&str; 7] =
    ["node", "nodes", "target_node", "node_id", "exitnodes", "exitnodes-primary", "source-node"];

/// The nodes that a change names, `localhost` as the node that we are connected to.
fn named(call: &Call<'_>) -> BTreeSet<String> {
    let mut nodes = BTreeSet::new();
    let mut add = |name: &str| {
        // HA lists carry priorities: `pve1:2`.
        let name = name.split(':').next().unwrap_or_default();
        nodes.insert(resolve(call, name));
    };
    for name in ["node", "node_id"] {
        call.variable(name).into_iter().for_each(&mut add);
    }
    for name in NODE_PARAMS {
        call.params.members(name).for_each(&mut add);
    }
    let template = call.endpoint.template;
    let moves =
        ["/migrate", "/clone", "/migrateall", "/replication"].iter().any(|e| template.ends_with(e));
    if moves {
        call.params.members("target").for_each(&mut add);
    }
    if template.starts_with("/cluster/replication") {
        call.params.members("source").for_each(&mut add);
    }
    // An HA resource acts on the node where its guest is now.
    if template.starts_with("/cluster/ha/resources/{sid}") {
        let vmid = call.variable("sid").and_then(|sid| sid.rsplit(':').next());
        let row = vmid.and_then(|v| Vmid::parse(v).ok()).and_then(|v| call.facts.guest(v));
        row.and_then(|row| loose::str(row, "node")).into_iter().for_each(&mut add);
    }
    if let Some(node) = call.variable("upid").and_then(|upid| upid.split(':').nth(1)) {
        add(node);
    }
    if let Some(value) = call.params.get("map")
        && let Some(Kind::Array(Some(_))) = call.action.kind("map")
    {
        for item in value.values() {
            let node = item.split(',').find_map(|part| part.trim().strip_prefix("node="));
            node.into_iter().for_each(&mut add);
        }
    }
    nodes
}

/// A node's own name; `localhost` stays where it cannot be found out.
pub(super) fn resolve(call: &Call<'_>, name: &str) -> String {
    if name != "localhost" {
        return name.to_owned();
    }
    let status = call.facts.ask(&["cluster", "status"], Params::new());
    status
        .ok()
        .and_then(|rows| {
            let local = loose::rows(rows).iter().find(|row| loose::flag(row, "local"))?;
            loose::text(local, "name")
        })
        .unwrap_or_else(|| name.to_owned())
}

/// Refuses a change that names a node outside the list, or none.
///
/// # Errors
/// `node_denied`.
pub fn check(config: &Config, call: &Call<'_>) -> Result<()> {
    if config.allowed_nodes.is_none() {
        return Ok(());
    }
    let nodes = named(call);
    if nodes.is_empty() {
        return Err(Error::new(Code::NodeDenied, "this changes the whole cluster, not one node")
            .hint(
                "while PROXMOX_ALLOWED_NODES is set, only changes on the nodes that it names pass",
            ));
    }
    nodes.iter().try_for_each(|node| check_one(config, node))
}

/// Refuses what is done on one node outside the list.
///
/// # Errors
/// `node_denied`.
pub fn check_one(config: &Config, node: &str) -> Result<()> {
    let Some(allowed) = &config.allowed_nodes else { return Ok(()) };
    if allowed.iter().any(|a| a.as_str() == node) {
        return Ok(());
    }
    Err(Error::new(Code::NodeDenied, format!("the node {node:?} is not in PROXMOX_ALLOWED_NODES"))
        .hint("the list is set by the owner of this server, in .env")
        .with("node", node))
}

/// As [`check`], for an endpoint that this version does not know.
///
/// # Errors
/// `node_denied`.
pub fn check_unknown(config: &Config, path: &ApiPath) -> Result<()> {
    let Some(allowed) = &config.allowed_nodes else { return Ok(()) };
    let segments: Vec<&str> = path.segments().collect();
    match segments.as_slice() {
        ["nodes", node, ..] if allowed.iter().any(|a| a.as_str() == *node) => Ok(()),
        _ => Err(Error::new(
            Code::NodeDenied,
            "the endpoint is not known, and neither are its nodes",
        )
        .hint("while PROXMOX_ALLOWED_NODES is set, only changes on the nodes that it names pass")),
    }
}
