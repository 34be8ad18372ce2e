//! Linked clones: guests whose disks read from a base volume of another guest.

use std::collections::{BTreeMap, BTreeSet};

use super::{guest::Guest, ids, list};
use crate::{
    pve::{Vmid, loose},
    safety::{Method, conditions::Call, shown::quoted, volume},
};

/// What is linked to the disks that a call on a guest takes away, and what its own are linked to.
pub(super) fn of_guest(call: &Call<'_>, guest: &Guest<'_>, out: &mut Vec<String>) {
    let template = call.endpoint.template;
    let takes = guest.goes || takes_disks(call);
    if !takes && !template.ends_with("/template") {
        return;
    }
    let Some(config) = guest.config(call) else {
        out.push("linked clones: cannot be seen".to_owned());
        return;
    };
    let own = Some(guest.vmid);
    let (mut bases, mut read_from) = (BTreeSet::new(), BTreeSet::new());
    for disk in config.disks() {
        let Some(volid) = disk.source.volume_id() else { continue };
        let names_it = guest.goes || template.ends_with("/template") || named(call, &disk.slot);
        let owners = volume::owners(&volid);
        if names_it && owners.last() == own.as_ref() {
            if let Some(base) = owners.first().filter(|o| Some(**o) != own) {
                read_from.insert(*base);
            }
            if takes && is_base(&volid) {
                bases.insert(volid);
            }
        }
    }
    linked(call, guest.node, &bases, out);
    if !read_from.is_empty() {
        out.push(format!("is itself a linked clone of guest {}", ids(&read_from)));
    }
}

/// What is linked to the volume that a call deletes.
pub(super) fn of_volume(call: &Call<'_>, out: &mut Vec<String>) {
    let path = "/nodes/{node}/storage/{storage}/content/{volume}";
    if call.endpoint.template != path || call.method != Method::Delete {
        return;
    }
    let variable = |name: &str| call.variable(name).unwrap_or_default();
    let (storage, volume) = (variable("storage"), variable("volume"));
    // A name without its storage is one of the storage in the path.
    let volid =
        if volume.starts_with('/') || volume.split('/').next().is_some_and(|n| n.contains(':')) {
            volume.to_owned()
        } else {
            format!("{storage}:{volume}")
        };
    if is_base(&volid) {
        linked(call, variable("node"), &BTreeSet::from([volid]), out);
    }
}

/// Whether a call takes disks away from the guest in its path.
fn takes_disks(call: &Call<'_>) -> bool {
    let template = call.endpoint.template;
    let flag = |name: &str| call.params.flag(name) == Some(true);
    match template.rsplit('/').next().unwrap_or_default() {
        "config" => call.params.has("delete"),
        "unlink" => true,
        "move_disk" | "move_volume" => flag("delete") || call.params.has("target-vmid"),
        _ => false,
    }
}

/// Whether a call names a disk by its slot.
fn named(call: &Call<'_>, slot: &str) -> bool {
    ["delete", "idlist", "disk", "volume"]
        .iter()
        .any(|name| call.params.members(name).any(|item| item == slot))
}

/// The last part of a volume's name: `base-100-disk-0.qcow2` of `local:100/base-100-disk-0.qcow2`.
fn last(name: &str) -> &str {
    name.rsplit(['/', ':']).next().unwrap_or(name)
}

/// Whether a volume is one that others can be linked to.
fn is_base(volid: &str) -> bool {
    ["base-", "basevol-"].iter().any(|prefix| last(volid).starts_with(prefix))
}

fn linked(call: &Call<'_>, node: &str, bases: &BTreeSet<String>, out: &mut Vec<String>) {
    let mut clones: BTreeMap<Vmid, BTreeSet<&str>> = BTreeMap::new();
    let mut unseen = BTreeSet::new();
    for base in bases {
        let Some((storage, name)) = base.split_once(':') else { continue };
        let Some(rows) = list(call, &["nodes", node, "storage", storage, "content"]) else {
            unseen.insert(quoted(storage));
            continue;
        };
        let base = last(name);
        for row in rows {
            let volid = loose::str(row, "volid").unwrap_or_default();
            // `base-100-disk-0@__base__` on a storage with snapshots of its own.
            let parent = loose::str(row, "parent").unwrap_or_default();
            let parent = last(parent.split('@').next().unwrap_or_default());
            let mut on_the_way = volid.rsplit(['/', ':']).skip(1);
            if parent != base && on_the_way.all(|part| part != base) {
                continue;
            }
            let row_owner = || Vmid::new(loose::uint(row, "vmid")?).ok();
            if let Some(vmid) = volume::owner(volid).or_else(row_owner) {
                clones.entry(vmid).or_default().insert(volid);
            }
        }
    }
    if !clones.is_empty() {
        out.push(format!("linked clones that cannot do without it: guests {}", ids(clones.keys())));
        for (vmid, volumes) in &clones {
            let volumes: Vec<String> = volumes.iter().map(|v| quoted(v)).collect();
            out.push(format!("guest {vmid} is linked by {}", volumes.join(", ")));
        }
    } else if !bases.is_empty() && unseen.is_empty() {
        out.push("no linked clone of it".to_owned());
    }
    if !unseen.is_empty() {
        let storages: Vec<&str> = unseen.iter().map(String::as_str).collect();
        out.push(format!("linked clones on the storage {}: cannot be seen", storages.join(", ")));
    }
}

#[cfg(test)]
#[path = "clones_tests.rs"]
mod tests;
