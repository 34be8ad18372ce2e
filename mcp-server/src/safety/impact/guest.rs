//! What hangs on a guest: HA, replication, backup jobs, its pool and rights, snapshots, linked clones.

use super::{access, backup, clones, ha, list};
use crate::{
    pve::{GuestConfig, GuestKind, Vmid, loose},
    safety::{
        Method,
        conditions::{Call, restore},
        shown::quoted,
    },
};

/// The guest that a call is about.
pub(super) struct Guest<'a> {
    pub(super) node: &'a str,
    pub(super) kind: GuestKind,
    pub(super) vmid: Vmid,
    /// As it stands in paths.
    pub(super) number: String,
    /// Whether it is gone after the call, with its disks and snapshots.
    pub(super) goes: bool,
}

impl<'a> Guest<'a> {
    /// The guest of the path, or the one that a restore would replace.
    pub(super) fn of(call: &'a Call<'_>) -> Option<Self> {
        let (node, kind) = (call.variable("node")?, GuestKind::of(call.kind()?)?);
        let vmid = call.vmid()?;
        let replaced = call.variable("vmid").is_none();
        if replaced && !(restore::is_restore(call) && call.facts.guest(vmid).is_some()) {
            return None;
        }
        let goes = replaced
            || call.method == Method::Delete && call.endpoint.template.ends_with("/{vmid}");
        Some(Self { node, kind, vmid, number: vmid.to_string(), goes })
    }

    /// Its configuration, where it can be read.
    pub(super) fn config<'c>(&self, call: &Call<'c>) -> Option<GuestConfig<'c>> {
        let answer = call.facts.guest_config(self.node, self.kind.as_str(), &self.number).ok()?;
        answer.is_object().then(|| GuestConfig::new(self.kind, answer))
    }
}

pub(super) fn lines(call: &Call<'_>, out: &mut Vec<String>) {
    if call.endpoint.template.contains("/firewall/") {
        return;
    }
    let Some(guest) = Guest::of(call) else { return };
    taken(call, &guest, out);
    ha::of_guest(call, &guest, out);
    match list(call, &["cluster", "replication"]) {
        Some(rows) => {
            let jobs: Vec<String> = rows
                .iter()
                .filter(|r| loose::text(r, "guest").as_deref() == Some(&guest.number))
                .filter_map(|r| loose::text(r, "id"))
                .collect();
            if !jobs.is_empty() {
                out.push(format!("replicated by {}", jobs.join(", ")));
            }
        }
        None => out.push("replication: cannot be seen".to_owned()),
    }
    let row = call.facts.guest(guest.vmid);
    let pool = row.and_then(|g| loose::text(g, "pool"));
    backup::of_guest(call, &guest, pool.as_deref(), out);
    snapshots(call, &guest, out);
    clones::of_guest(call, &guest, out);
    if guest.goes {
        if let Some(pool) = pool {
            out.push(format!("member of the pool {}", quoted(&pool)));
        }
        let place = format!("/vms/{}", guest.number);
        access::acl(call, |row| loose::str(row, "path") == Some(&place), out);
    }
    if call.endpoint.template.ends_with("/migrate")
        && let Some(others) = restore::companions(call).filter(|o| !o.is_empty())
    {
        out.push(format!("takes along {}", others.join(", ")));
    }
}

/// Options that are taken away, with what they hold now.
fn taken(call: &Call<'_>, guest: &Guest<'_>, out: &mut Vec<String>) {
    let names = ["delete", "idlist"].into_iter().flat_map(|list| call.params.members(list));
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return;
    }
    let config = call.facts.guest_config(guest.node, guest.kind.as_str(), &guest.number);
    let Ok(config) = config else { return };
    for name in names {
        // Values of other options can be long, and are shown by what the call says.
        if let Some(value) = loose::text(config, name).filter(|_| is_device(name)) {
            out.push(format!("{} is {} now", quoted(name), quoted(&value)));
        }
    }
}

/// Whether an option is a disk or a NIC.
fn is_device(name: &str) -> bool {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let devices =
        ["ide", "sata", "scsi", "virtio", "efidisk", "tpmstate", "mp", "rootfs", "unused", "net"];
    devices.contains(&base)
}

fn snapshots(call: &Call<'_>, guest: &Guest<'_>, out: &mut Vec<String>) {
    let path = ["nodes", guest.node, guest.kind.as_str(), &guest.number, "snapshot"];
    let back = call.endpoint.template.ends_with("/rollback");
    if !guest.goes && !back {
        return;
    }
    let Some(rows) = list(call, &path) else {
        out.push("snapshots: cannot be seen".to_owned());
        return;
    };
    let names: Vec<(&str, Option<i64>)> = rows
        .iter()
        .filter_map(|r| Some((loose::str(r, "name")?, loose::int(r, "snaptime"))))
        .filter(|(name, _)| *name != "current")
        .collect();
    if guest.goes && !names.is_empty() {
        let all = names.iter().map(|(n, _)| quoted(n)).collect::<Vec<_>>().join(", ");
        out.push(format!("{} snapshots go with it: {all}", names.len()));
    }
    if back {
        let name = call.variable("snapname").unwrap_or_default();
        let Some((_, time)) = names.iter().find(|(n, _)| *n == name) else { return };
        let when = time.and_then(|t| jiff::Timestamp::from_second(t).ok()).map(|t| t.to_string());
        out.push(format!(
            "everything written since {} is lost",
            when.unwrap_or_else(|| "the snapshot".to_owned())
        ));
        let row = call.facts.guest(guest.vmid);
        if row.and_then(|r| loose::str(r, "status")) == Some("running") {
            let held = rows.iter().find(|r| loose::str(r, "name") == Some(name));
            let wakes = held.is_some_and(|r| loose::flag(r, "vmstate"));
            out.push(
                match (wakes, call.params.flag("start") == Some(true)) {
                    (true, _) => {
                        "it runs now: it is stopped and goes on from the memory of the snapshot"
                    }
                    (false, true) => "it runs now: it is stopped and started again",
                    (false, false) => "it runs now: it is stopped, and stays off",
                }
                .to_owned(),
            );
        }
        let later: Vec<String> =
            names.iter().filter(|(_, t)| t > time).map(|(n, _)| quoted(n)).collect();
        if !later.is_empty() {
            out.push(format!("later snapshots: {}", later.join(", ")));
        }
    }
}

#[cfg(test)]
#[path = "guest_tests.rs"]
mod tests;
