//! Reads the estate for the tools that look at all of it.

use std::{sync::Arc, time::Duration};

use futures::{
    StreamExt,
    future::{BoxFuture, FutureExt},
    stream,
};
use serde_json::Value;

use super::Ctx;
use crate::{
    Error, Result,
    insight::estate::{Estate, Guest, Storage, unique},
    pve::{GuestKind, Params, Vmid},
    render::units,
};

/// How many reads are under way at once.
const AT_ONCE: usize = 16;
/// What is not read by then is told as not seen: a client waits for 60 s.
const DEADLINE: Duration = Duration::from_secs(30);

/// How much is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Nodes and storages; guests one by one only where they are few.
    Overview,
    /// Every node, storage and guest.
    Everything,
}

/// More guests than this are not read one by one for an overview.
const FEW: usize = 200;

type Answer = Result<Arc<Value>>;

/// What a read was for.
enum What {
    NodeStatus(String),
    NodeStorage(String),
    Content(String, String),
    Snapshots(Vmid),
    Config(Vmid, GuestKind),
    Replication(String),
    Certificates(String),
    Disks(String),
    ThinPools(String),
    Updates(String, Box<Answer>),
    Time(String),
}

/// Reads the estate. A part that cannot be read is told as not seen; nothing
/// here fails as a whole but the way to Proxmox itself.
///
/// # Errors
/// What `cluster/resources` answers: without it nothing is known.
pub async fn estate(ctx: Ctx<'_>, depth: Depth) -> Result<Estate> {
    let mut estate = Estate::new(units::now());
    let (resources, rights, status, jobs, tasks, ha) = futures::join!(
        ctx.get(&["cluster", "resources"]),
        ctx.get(&["access", "permissions"]),
        ctx.get(&["cluster", "status"]),
        ctx.get(&["cluster", "backup"]),
        ctx.get(&["cluster", "tasks"]),
        ctx.get(&["cluster", "ha", "status", "current"]),
    );
    let resources = resources?;
    estate.read_resources(Ok(&resources));
    estate.read_rights(borrow(&rights));
    estate.read_cluster_status(borrow(&status));
    estate.read_jobs(borrow(&jobs));
    estate.read_tasks(borrow(&tasks));
    estate.read_ha(borrow(&ha));
    let reads = plan(ctx, &estate, depth);
    let deadline = tokio::time::sleep(DEADLINE);
    tokio::pin!(deadline);
    let mut answers = stream::iter(reads).buffer_unordered(AT_ONCE);
    loop {
        tokio::select! {
            next = answers.next() => match next {
                Some((what, answer)) => take(&mut estate, what, &answer),
                None => break,
            },
            () = &mut deadline => {
                tracing::warn!("the estate was not read whole within {DEADLINE:?}");
                break;
            }
        }
    }
    Ok(estate)
}

fn borrow(answer: &Answer) -> std::result::Result<&Value, &Error> {
    answer.as_deref()
}

type Read<'a> = BoxFuture<'a, (What, Answer)>;

fn plan<'a>(ctx: Ctx<'a>, estate: &Estate, depth: Depth) -> Vec<Read<'a>> {
    let mut reads: Vec<Read<'a>> = Vec::new();
    let storages: Vec<Storage> = estate.storages.rows().to_vec();
    for storage in unique(&storages) {
        if storage.usable() && !estate.is_offline(&storage.node) {
            let (node, name) = (storage.node.to_string(), storage.id.to_string());
            reads.push(
                async move {
                    let answer = ctx.get(&["nodes", &node, "storage", &name, "content"]).await;
                    (What::Content(node, name), answer)
                }
                .boxed(),
            );
        }
    }
    for node in estate.nodes.rows() {
        let node = node.name.to_string();
        if !estate.is_offline(&node) {
            of_node(ctx, &node, &mut reads);
        }
    }
    let guests = estate.guests.rows().len();
    if depth == Depth::Everything || guests <= FEW {
        for guest in estate.guests.rows().iter().filter(|g| !estate.is_offline(&g.node)) {
            of_guest(ctx, guest, &mut reads);
        }
    }
    reads
}

fn of_node<'a>(ctx: Ctx<'a>, node: &str, reads: &mut Vec<Read<'a>>) {
    let mut ask = |below: &'static [&'static str], what: fn(String) -> What| {
        let node = node.to_owned();
        reads.push(
            async move {
                let mut segments = vec!["nodes", node.as_str()];
                segments.extend(below);
                let answer = ctx.get(&segments).await;
                (what(node), answer)
            }
            .boxed(),
        );
    };
    ask(&["status"], What::NodeStatus);
    ask(&["time"], What::Time);
    ask(&["storage"], What::NodeStorage);
    ask(&["replication"], What::Replication);
    ask(&["certificates", "info"], What::Certificates);
    ask(&["disks", "list"], What::Disks);
    ask(&["disks", "lvmthin"], What::ThinPools);
    let node = node.to_owned();
    reads.push(
        async move {
            let (update, versions) =
                (["nodes", &node, "apt", "update"], ["nodes", &node, "apt", "versions"]);
            let (pending, versions) = futures::join!(ctx.get(&update), ctx.get(&versions));
            (What::Updates(node, Box::new(pending)), versions)
        }
        .boxed(),
    );
}

fn of_guest<'a>(ctx: Ctx<'a>, guest: &Guest, reads: &mut Vec<Read<'a>>) {
    let (snapshots, config) = (guest.clone(), guest.clone());
    reads.push(
        async move {
            let answer = ctx.get_below(&snapshots, &["snapshot"], Params::new()).await;
            (What::Snapshots(snapshots.vmid), answer)
        }
        .boxed(),
    );
    reads.push(
        async move {
            let answer = ctx.get_below(&config, &["config"], Params::new()).await;
            (What::Config(config.vmid, config.kind), answer)
        }
        .boxed(),
    );
}

fn take(estate: &mut Estate, what: What, answer: &Answer) {
    let answer = borrow(answer);
    match what {
        What::NodeStatus(node) => estate.read_node_status(&node, answer),
        What::NodeStorage(node) => estate.read_node_storage(&node, answer),
        What::Content(node, storage) => estate.read_content(&node, &storage, answer),
        What::Snapshots(vmid) => estate.read_snapshots(vmid, answer),
        What::Config(vmid, kind) => estate.read_config(vmid, kind, answer),
        What::Replication(node) => estate.read_replication(&node, answer),
        What::Certificates(node) => estate.read_certificates(&node, answer),
        What::Disks(node) => estate.read_disks(&node, answer),
        What::ThinPools(node) => estate.read_thin_pools(&node, answer),
        What::Updates(node, pending) => estate.read_updates(&node, borrow(&pending), answer),
        What::Time(node) => estate.read_time(&node, answer),
    }
}
