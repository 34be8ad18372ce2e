//! Storages: fill, thin pools, offline, volumes without an owner.

use std::collections::BTreeMap;

use super::{Finding, Look, nodes::per_node, percent};
use crate::{
    insight::estate::{
        Content, Estate, Guest, Part, Storage, StorageKey, ThinPool, Volume, unique,
    },
    pve::Vmid,
};

const FILLING: f64 = 0.85;
const FULL: f64 = 0.95;

pub(super) fn look(look: &mut Look<'_>) {
    let estate = look.estate;
    match &estate.storages {
        Part::Known(storages) => {
            for storage in unique(storages) {
                one_storage(look, storage);
                orphans(look, storage);
            }
        }
        Part::Unknown(why) => look.cannot_see("storages", why.clone()),
    }
    for node in estate.nodes.rows().iter().filter(|node| node.online) {
        per_node(
            look,
            &node.name,
            "thin pools",
            |e| &e.thin_pools,
            |look, node, pools| {
                pools.iter().for_each(|pool| thin_pool(look, node, pool));
            },
        );
        if let (Some(used), Some(total)) = (node.disk, node.maxdisk) {
            let what = format!("the root file system of {}", node.name);
            if let Some(finding) = filling("root", &what, used, total) {
                look.found(
                    finding.of_node(&node.name).next("Free space in /; `du -xh --max-depth=2 /`"),
                );
            }
        }
    }
}

fn one_storage(look: &mut Look<'_>, storage: &Storage) {
    if look.estate.is_offline(&storage.node) && !storage.usable() {
        return;
    }
    let title = storage.title();
    if !storage.active && storage.enabled != Some(false) {
        look.found(
            Finding::warning("storage_offline", format!("Storage {title} does not answer"))
                .of_storage(storage)
                .with("type", storage.plugin.as_str())
                .next("Check its server or disk; pve_list_storage"),
        );
        return;
    }
    if let (true, Some(used), Some(total)) = (storage.usable(), storage.used, storage.total) {
        let kind = if storage.plugin == "lvmthin" { "thin pool storage" } else { "storage" };
        if let Some(finding) = filling("storage", &format!("{kind} {title}"), used, total) {
            let next = format!("Free or add space; pve_storage_content storage={}", storage.id);
            look.found(finding.of_storage(storage).next(next));
        }
    }
}

/// A finding when `used` is near `total`. `what` is the subject of its sentence.
fn filling(kind: &str, what: &str, used: u64, total: u64) -> Option<Finding> {
    if total == 0 {
        return None;
    }
    #[allow(clippy::cast_precision_loss)]
    let share = used as f64 / total as f64;
    let (full, near) = match kind {
        "root" => ("root_full", "root_filling"),
        "metadata" => ("thin_metadata_full", "thin_metadata_filling"),
        _ => ("storage_full", "storage_filling"),
    };
    let shown = percent(share);
    let mut subject = what.to_owned();
    if let Some(first) = subject.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let finding = if share >= FULL {
        Finding::critical(full, format!("{subject} is full: {shown} % in use"))
    } else if share >= FILLING {
        Finding::warning(near, format!("{subject} is nearly full: {shown} % in use"))
    } else {
        return None;
    };
    Some(
        finding
            .with("percent", shown)
            .with("used_bytes", used)
            .with("total_bytes", total)
            .with("free_bytes", total.saturating_sub(used)),
    )
}

fn thin_pool(look: &mut Look<'_>, node: &str, pool: &ThinPool) {
    let name = &pool.name;
    let next =
        format!("Grow it with `lvextend` on {node}; guests stop with I/O errors when it is full");
    let metadata = format!("the metadata of thin pool {name} on {node}");
    if let Some(finding) = filling("metadata", &metadata, pool.metadata_used, pool.metadata_size) {
        look.found(finding.of_node(node).with("pool", name.as_str()).next(next.clone()));
    }
    // Its data is the storage's fill; say it here only where no storage stands for the pool.
    let stands = look.estate.storages.rows().iter().any(|s| {
        s.node == node && s.plugin == "lvmthin" && s.usable() && s.total == Some(pool.size)
    });
    let data = format!("thin pool {name} on {node}");
    if let (false, Some(finding)) = (stands, filling("pool", &data, pool.used, pool.size)) {
        look.found(finding.of_node(node).with("pool", name.as_str()).next(next));
    }
}

/// Volumes whose guest does not exist, or does not name them.
fn orphans(look: &mut Look<'_>, storage: &Storage) {
    if !storage.holds("images") && !storage.holds("rootdir") {
        return;
    }
    let (node, content) = match volumes(look.estate, storage) {
        Ok(found) => found,
        Err(why) => return look.cannot_see_of("volumes", storage.title(), why),
    };
    let guests = match visible_guests(look.estate) {
        Ok(guests) => guests,
        Err(why) => return look.cannot_see_of("orphaned volumes", storage.title(), why),
    };
    let guests: BTreeMap<Vmid, &Guest> = guests.iter().map(|g| (g.vmid, g)).collect();
    for volume in &content.volumes {
        let Some(owner) = volume.owner else { continue };
        let Some(guest) = guests.get(&owner) else {
            let what = format!("{} belongs to guest {owner}, which does not exist", volume.volid);
            report(look, storage, volume, Some(owner), what);
            continue;
        };
        match reference(look.estate, storage, &node, guest, volume) {
            Reference::Used => {}
            Reference::Unseen(whose) => {
                look.cannot_see_of("orphaned volumes", guest.title(), whose);
            }
            Reference::Not(why) => {
                let what = format!("{} is used by nobody: {why}", volume.volid);
                report(look, storage, volume, Some(owner), what);
            }
        }
    }
}

fn report(
    look: &mut Look<'_>,
    storage: &Storage,
    volume: &Volume,
    owner: Option<Vmid>,
    what: String,
) {
    let mut finding = Finding::warning("orphaned_disk", what)
        .of_storage(storage)
        .with("volid", volume.volid.as_str())
        .with("size_bytes", volume.size);
    finding.vmid = owner;
    look.found(finding.next(
        "Make sure that nothing needs it (another cluster on the same storage?), then \
         pve_volume_delete",
    ));
}

/// The volumes on a storage and the node that was asked, or why they cannot be seen.
fn volumes<'a>(estate: &'a Estate, storage: &Storage) -> Result<(String, &'a Content), String> {
    if !storage.usable() {
        return Err(unusable(storage));
    }
    if let Some(why) = estate.rights.known().and_then(|rights| rights.hides_volumes(storage)) {
        return Err(why);
    }
    let mut why = "not read".to_owned();
    for (key, part) in estate.content.iter().filter(|(key, _)| is(key, storage)) {
        match part {
            Part::Known(content) => return Ok((key.node.clone(), content)),
            Part::Unknown(reason) => why.clone_from(reason),
        }
    }
    Err(why)
}

fn is(key: &StorageKey, storage: &Storage) -> bool {
    key.storage == storage.id && (storage.shared || key.node == storage.node)
}

/// Why a storage cannot be looked into.
pub(super) fn unusable(storage: &Storage) -> String {
    let state = if storage.enabled == Some(false) { "is disabled" } else { "does not answer" };
    format!("storage {} {state}", storage.title())
}

/// All guests there are; a list that may be short proves nothing about owners.
fn visible_guests(estate: &Estate) -> Result<&[Guest], String> {
    if let Part::Unknown(why) = &estate.guests {
        return Err(why.clone());
    }
    match &estate.rights {
        Part::Known(rights) if !rights.throughout("/vms", "VM.Audit") => {
            Err("the token does not see all guests (VM.Audit on /vms)".to_owned())
        }
        Part::Unknown(why) => Err(format!("whether all guests are visible is unknown: {why}")),
        Part::Known(_) => Ok(estate.guests.rows()),
    }
}

enum Reference {
    Used,
    Not(String),
    Unseen(String),
}

fn reference(
    estate: &Estate,
    storage: &Storage,
    node: &str,
    guest: &Guest,
    volume: &Volume,
) -> Reference {
    let unseen = |what: &str, why: Option<&str>| {
        Reference::Unseen(format!("{what}: {}", why.unwrap_or("not read")))
    };
    let config = match estate.configs.get(&guest.vmid) {
        Some(Part::Known(config)) => config,
        other => return unseen("its configuration", other.and_then(Part::why)),
    };
    let named = config.volumes.iter().any(|volid| same(volid, &volume.volid));
    let at_home = storage.shared || *guest.node == *node;
    if named && at_home {
        return Reference::Used;
    }
    if named {
        // The same volume on another node is a replica, or left behind by a move.
        return match estate.replication.get(&*guest.node) {
            Some(Part::Known(jobs)) => {
                let replica = jobs.iter().any(|j| j.guest == Some(guest.vmid) && j.target == node);
                if replica {
                    Reference::Used
                } else {
                    let home = &guest.node;
                    Reference::Not(format!("a copy on {node}, but the guest is on {home}"))
                }
            }
            other => unseen("its replication", other.and_then(Part::why)),
        };
    }
    // Disks and memory of snapshots, and what a running task has just made, stand elsewhere.
    if guest.lock.is_some() {
        return Reference::Used;
    }
    match estate.snapshots.get(&guest.vmid) {
        Some(Part::Known(snapshots)) if snapshots.is_empty() => {
            Reference::Not(format!("{} does not name it", guest.title()))
        }
        Some(Part::Known(_)) => Reference::Used,
        other => unseen("its snapshots", other.and_then(Part::why)),
    }
}

/// The same volume, whether or not the base image stands in its name.
fn same(a: &str, b: &str) -> bool {
    let parts = |volid: &str| {
        let (storage, name) = volid.split_once(':')?;
        Some((storage.to_owned(), name.rsplit('/').next()?.to_owned()))
    };
    a == b || parts(a).is_some_and(|p| Some(p) == parts(b))
}
