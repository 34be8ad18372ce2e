//! Moving guests between nodes: one, many, by themselves or by the HA manager.

use serde_json::json;

use super::Route;
use super::disks;
use super::guests::find;
use super::lifecycle::sid;
use super::power::unlocked;
use crate::api::call::{Answer, Call};
use crate::api::failure::Failure;
use crate::state::State;
use crate::state::guest::{Guest, Kind, indexed};
use crate::state::task::Plan;

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/nodes/{node}/qemu/{vmid}/migrate", |c| precondition(c, Kind::Qemu)),
    ("GET", "/nodes/{node}/lxc/{vmid}/migrate", |c| precondition(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/qemu/{vmid}/migrate", |c| migrate(c, Kind::Qemu)),
    ("POST", "/nodes/{node}/lxc/{vmid}/migrate", |c| migrate(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/migrateall", migrate_all),
    ("POST", "/cluster/bulk-action/guest/migrate", bulk_migrate),
];

const MIGRATE_MS: i64 = 2500;

fn precondition(c: &mut Call<'_>, kind: Kind) -> Answer {
    let guest = find(c.state, &c.node(), c.vmid(), kind)?;
    let others: Vec<&String> = c
        .state
        .nodes
        .iter()
        .filter(|(n, i)| **n != guest.node && i.online)
        .map(|(n, _)| n)
        .collect();
    let passed: Vec<String> = guest
        .config
        .iter()
        .filter(|(k, _)| indexed(k, "hostpci") || indexed(k, "usb"))
        .map(|(k, _)| k.to_owned())
        .collect();
    let running = u8::from(guest.running());
    if kind == Kind::Lxc {
        return Ok(
            json!({"running": running, "allowed-nodes": others, "not-allowed-nodes": {}}).into()
        );
    }
    let mapped: Vec<&String> = passed
        .iter()
        .filter(|k| guest.config.get(k).is_some_and(|v| v.contains("mapping=")))
        .collect();
    Ok(json!({"running": running, "allowed_nodes": if passed.is_empty() { others } else { Vec::new() },
        "not_allowed_nodes": {}, "local_disks": disks::local_disks(c.state, guest), "local_resources": passed,
        "mapped-resources": mapped, "mapped-resource-info": {}, "has-dbus-vmstate": 1})
    .into())
}

fn migrate(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid, target) = (c.node(), c.vmid(), c.need("target"));
    if !c.state.nodes.contains_key(&target) {
        return Err(Failure::died(format!("no such cluster node '{target}'")));
    }
    if target == node {
        return Err(Failure::parameter("target", "target is local node."));
    }
    let guest = find(c.state, &node, vmid, kind)?;
    let (online, restart) = (c.flag("online"), c.flag("restart"));
    if guest.running() && kind == Kind::Qemu && !online {
        return Err(Failure::died("can't migrate running VM without --online"));
    }
    if guest.running() && kind == Kind::Lxc && !restart {
        return Err(Failure::died(
            "can't migrate running container without restart option or online option",
        ));
    }
    if c.state.ha_resources.contains_key(&sid(guest)) {
        return ask_ha(c, kind, node, vmid, target);
    }
    let local = kind == Kind::Qemu && !c.flag("with-local-disks") && guest.running();
    let plan = Plan::new(
        &node.clone(),
        migrate_type(kind),
        &vmid.to_string(),
        MIGRATE_MS,
        move |s, now| moved(s, &node, vmid, kind, &target, local, now),
    );
    c.start(plan)
}

/// The task that moves a guest whatever its disks are.
pub(super) fn move_plan(kind: Kind, vmid: u32, node: &str, target: &str) -> Plan {
    let (from, to) = (node.to_owned(), target.to_owned());
    Plan::new(node, migrate_type(kind), &vmid.to_string(), MIGRATE_MS, move |s, now| {
        moved(s, &from, vmid, kind, &to, false, now)
    })
}

fn migrate_type(kind: Kind) -> &'static str {
    if kind == Kind::Qemu { "qmigrate" } else { "vzmigrate" }
}

/// The HA manager moves its guests itself, a little later.
fn ask_ha(c: &mut Call<'_>, kind: Kind, node: String, vmid: u32, target: String) -> Answer {
    c.spawn("hamigrate", &vmid.to_string(), 200, move |state, now| {
        let plan = move_plan(kind, vmid, &node, &target);
        crate::state::task::start(state, "root@pam", now, plan);
        Ok(vec![format!("requesting HA migration for {} {vmid} to node {target}", kind.short())])
    })
}

/// Moves all guests of a node, or those named.
fn migrate_all(c: &mut Call<'_>) -> Answer {
    let (node, target) = (c.node(), c.need("target"));
    let only: Vec<u32> = c.list("vms").iter().filter_map(|v| v.parse().ok()).collect();
    if only.is_empty() {
        c.demand("/", &["VM.Migrate"])?;
    }
    for vmid in &only {
        c.demand(&format!("/vms/{vmid}"), &["VM.Migrate"])?;
    }
    if !c.state.nodes.contains_key(&target) {
        return Err(Failure::died(format!("no such cluster node '{target}'")));
    }
    if target == node {
        return Err(Failure::parameter("target", "target is local node."));
    }
    let local = !c.flag("with-local-disks");
    c.spawn("migrateall", "", MIGRATE_MS, move |state, now| {
        Ok(move_many(state, Some(&node), &only, &target, local, now))
    })
}

/// Moves guests one after the other; what cannot move is said and left.
fn move_many(
    state: &mut State,
    node: Option<&str>,
    only: &[u32],
    target: &str,
    only_shared: bool,
    now: i64,
) -> Vec<String> {
    let concerned = |g: &&Guest| {
        node.is_none_or(|n| g.node == n)
            && g.node != target
            && (only.is_empty() || only.contains(&g.vmid))
    };
    let all: Vec<(u32, Kind, String)> =
        state.guests.values().filter(concerned).map(|g| (g.vmid, g.kind, g.node.clone())).collect();
    let mut lines = Vec::new();
    for (vmid, kind, from) in all {
        lines.push(format!("Migrating {} {vmid}", kind.short()));
        lines.extend(moved(state, &from, vmid, kind, target, only_shared, now).err());
    }
    lines
}

fn bulk_migrate(c: &mut Call<'_>) -> Answer {
    let target = c.need("target");
    let only: Vec<u32> = c.list("vms").iter().filter_map(|v| v.parse().ok()).collect();
    for vmid in &only {
        c.demand(&format!("/vms/{vmid}"), &["VM.Migrate"])?;
    }
    if !c.state.nodes.contains_key(&target) {
        return Err(Failure::died(format!("no such cluster node '{target}'")));
    }
    let node = c.state.local.clone();
    let local = !c.flag("with-local-disks");
    c.start(Plan::new(&node, "bulk-migrate", "", MIGRATE_MS, move |state, now| {
        Ok(move_many(state, None, &only, &target, local, now))
    }))
}

fn moved(
    state: &mut State,
    node: &str,
    vmid: u32,
    kind: Kind,
    target: &str,
    only_shared: bool,
    now: i64,
) -> Result<Vec<String>, String> {
    if !state.nodes.get(target).is_some_and(|n| n.online) {
        return Err(format!("migration aborted: node '{target}' is not online"));
    }
    let pid = state.tasks.pid();
    let guest = unlocked(state, node, vmid, kind)?.clone();
    let passed = guest.config.iter().any(|(k, _)| indexed(k, "hostpci"));
    if passed && kind == Kind::Qemu {
        return Err(
            "migration aborted: can't migrate VM which uses local devices: hostpci0".to_owned()
        );
    }
    let mut log = vec![format!("starting migration of {} {vmid} to node '{target}'", kind.short())];
    for (key, value) in guest.disks() {
        let volume = disks::volume_of(&value);
        let Some(storage) = volume.split(':').next().and_then(|s| state.storages.get(s)) else {
            continue;
        };
        if storage.shared {
            continue;
        }
        if only_shared {
            return Err(format!(
                "migration aborted: can't live migrate attached local disks without with-local-disks option\n- {key} ({volume})"
            ));
        }
        if !storage.on(target) {
            return Err(format!(
                "migration aborted: storage '{}' is not available on node '{target}'",
                storage.id
            ));
        }
        log.push(format!("found local disk '{volume}' ({key})"));
        if let Some(v) = state.volumes.iter_mut().find(|v| v.volid() == volume && v.seen_from(node))
        {
            v.node = Some(target.to_owned());
        }
    }
    if let Some(guest) = state.guests.get_mut(&vmid) {
        guest.node = target.to_owned();
        if kind == Kind::Lxc && guest.running() {
            guest.start(now.div_euclid(1000), pid);
        }
    }
    log.push("migration finished successfully (duration 00:00:02)".to_owned());
    Ok(log)
}
