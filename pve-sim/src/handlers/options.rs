//! Changing a guest's configuration: at once, or pending until the next start.

use serde_json::{Map, Value};

use super::Route;
use super::disks::{self, Owner, is_disk_key};
use super::guests::{find, options};
use super::power::{lock_error, unlocked};
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;
use crate::api::{params, propstring, verify};
use crate::state::State;
use crate::state::config::digest;
use crate::state::guest::{Kind, indexed};

pub(crate) const ROUTES: &[Route] = &[
    ("PUT", "/nodes/{node}/qemu/{vmid}/config", |c| change(c, Kind::Qemu, false)),
    ("POST", "/nodes/{node}/qemu/{vmid}/config", |c| change(c, Kind::Qemu, true)),
    ("PUT", "/nodes/{node}/lxc/{vmid}/config", |c| change(c, Kind::Lxc, false)),
];

/// Parameters of the call that are no options of the guest.
const CALL: [&str; 14] = [
    "node",
    "vmid",
    "digest",
    "delete",
    "revert",
    "force",
    "skiplock",
    "background_delay",
    "import-working-storage",
    "lock",
    "archive",
    "pool",
    "storage",
    "start",
];

/// What a call wants of a configuration.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub(super) set: Vec<(String, String)>,
    pub(super) delete: Vec<String>,
    pub(super) revert: Vec<String>,
    pub(super) force: bool,
}

/// The privilege that an option needs.
pub(super) fn privilege(kind: Kind, key: &str, value: &str) -> &'static str {
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    if is_disk_key(kind, key) {
        return if value.contains("media=cdrom") { "VM.Config.CDROM" } else { "VM.Config.Disk" };
    }
    match (kind, stem) {
        (
            _,
            "cores" | "sockets" | "cpu" | "cpulimit" | "cpuunits" | "vcpus" | "numa" | "affinity",
        ) => "VM.Config.CPU",
        (_, "memory" | "balloon" | "shares" | "swap") => "VM.Config.Memory",
        (Kind::Lxc, "net" | "nameserver" | "searchdomain" | "hostname") | (Kind::Qemu, "net") => {
            "VM.Config.Network"
        }
        (
            Kind::Qemu,
            "ipconfig" | "nameserver" | "searchdomain" | "cicustom" | "cipassword" | "citype"
            | "ciupgrade" | "ciuser" | "sshkeys",
        ) => "VM.Config.Cloudinit",
        (
            Kind::Qemu,
            "acpi" | "hotplug" | "kvm" | "machine" | "scsihw" | "smbios" | "tablet" | "vga"
            | "watchdog" | "audio" | "rng" | "serial" | "usb" | "hostpci" | "virtiofs" | "arch",
        ) => "VM.Config.HWType",
        _ => "VM.Config.Options",
    }
}

/// Options that no token may set, and the error for each.
fn root_only(kind: Kind, key: &str, value: &str) -> Option<Failure> {
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let only_root = |text: String| Some(Failure::died(text));
    let forbidden = |text: &str| Some(Failure::forbidden_as(text));
    let mapped = value.contains("mapping=");
    match (kind, stem) {
        (_, "lock") => only_root("only root can set 'lock' config".to_owned()),
        (Kind::Qemu, "args" | "hookscript" | "parallel") => {
            only_root(format!("only root can set '{key}' config"))
        }
        (Kind::Qemu, "usb" | "hostpci") if !mapped && !value.contains("spice") => {
            only_root(format!("only root can set '{key}' config for non-mapped devices"))
        }
        (Kind::Qemu, "serial") if value != "socket" => {
            only_root(format!("only root can set '{key}' config for real devices"))
        }
        (Kind::Lxc, "dev" | "hookscript") => {
            forbidden("configuring device passthrough is only allowed for root@pam")
        }
        (Kind::Lxc, "mp" | "rootfs") if disks::volume_of(value).starts_with('/') => {
            forbidden("mount point type bind is only allowed for root@pam")
        }
        (Kind::Lxc, "features") if propstring::parts(value).iter().any(|(k, _)| k != "nesting") => {
            forbidden("changing feature flags (except nesting) is only allowed for root@pam")
        }
        _ => None,
    }
}

/// The options of a call, checked for who may set them.
pub(super) fn wanted(c: &Call<'_>, kind: Kind, path: &str) -> Result<Wanted, Failure> {
    let root = c.login.is_root_ticket();
    let schema = options(kind);
    let mut w = Wanted {
        delete: c.list("delete"),
        revert: c.list("revert"),
        force: c.flag("force"),
        ..Wanted::default()
    };
    for key in w.delete.iter().chain(&w.revert) {
        if verify::property(schema, key).is_none() && key != "lock" {
            let name = if w.delete.contains(key) { "delete" } else { "revert" };
            return Err(Failure::parameter(name, format!("unknown option '{key}'")));
        }
    }
    let known =
        |n: &str| verify::property(schema, n).is_some() && (!CALL.contains(&n) || n == "lock");
    for (key, value) in c.params.iter().filter(|(n, _)| known(n)) {
        if value.is_null() {
            match kind_of(schema, key) {
                "string" => w.delete.push(key.clone()),
                _ => {
                    return Err(Failure::died(format!(
                        "unable to parse value of '{key}' - got undefined value"
                    )));
                }
            }
            continue;
        }
        w.set.push((key.clone(), plain(schema, key, value)?));
    }
    for (key, value) in &w.set {
        if let Some(failure) = root_only(kind, key, value).filter(|_| !root) {
            return Err(failure);
        }
        if !root {
            c.demand(path, &[privilege(kind, key, value)])?;
        }
    }
    for key in w.delete.iter().chain(&w.revert).filter(|_| !root) {
        if let Some(failure) = root_only(kind, key, "") {
            return Err(failure);
        }
        c.demand(path, &[privilege(kind, key, "")])?;
    }
    Ok(w)
}

fn kind_of<'a>(schema: &'a Map<String, Value>, key: &str) -> &'a str {
    verify::property(schema, key)
        .and_then(|r| r.get("type"))
        .and_then(Value::as_str)
        .unwrap_or("string")
}

/// A value as it goes into the file. What the schema lets pass and the file's
/// own reader does not is an error of its own.
fn plain(schema: &Map<String, Value>, key: &str, value: &Value) -> Result<String, Failure> {
    let text = match value {
        Value::Array(items) => items.iter().map(params::text).collect::<Vec<_>>().join(";"),
        other => params::text(other),
    };
    let kind = kind_of(schema, key);
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let fits = match kind {
        "integer" => digits(text.strip_prefix('-').unwrap_or(&text)),
        "number" => text.split_once('.').map_or(digits(&text), |(a, b)| digits(a) && digits(b)),
        _ => true,
    };
    if !fits {
        let why = format!("type check ('{kind}') failed - got '{text}'");
        return Err(Failure::died(format!("unable to parse value of '{key}' - {why}")));
    }
    Ok(match key {
        "tags" => {
            let mut tags = params::split_list(&text);
            tags.dedup();
            tags.join(";")
        }
        _ => text,
    })
}

/// A MAC address that is free: from the owner and the option.
pub(super) fn fresh_mac(vmid: u32, key: &str, now: i64) -> String {
    let hex = digest([format!("{vmid}/{key}/{now}")]).to_uppercase();
    let byte = |n: usize| hex.get(n..n + 2).unwrap_or("00").to_owned();
    format!("BC:24:11:{}:{}:{}", byte(0), byte(2), byte(4))
}

/// A NIC value with its MAC address, in the order of the real one.
pub(super) fn nic(kind: Kind, vmid: u32, key: &str, value: &str, now: i64) -> String {
    let parts = propstring::parts(value);
    let mac = |names: &[&str]| {
        parts.iter().find(|(k, _)| names.contains(&k.as_str())).map(|(_, v)| v.to_uppercase())
    };
    match kind {
        Kind::Qemu => {
            let model = |k: &str| {
                ["virtio", "rtl8139", "vmxnet3", "ne2k_pci", "ne2k_isa", "pcnet"].contains(&k)
                    || k.starts_with("e1000")
                    || k.starts_with("i825")
            };
            let named =
                parts.iter().find(|(k, v)| model(k) || k == "model" || (k.is_empty() && model(v)));
            let (model_name, own_mac) = match named {
                Some((k, v)) if k.is_empty() || k == "model" => (v.clone(), mac(&["macaddr"])),
                Some((k, v)) => (k.clone(), Some(v.to_uppercase())),
                None => ("virtio".to_owned(), mac(&["macaddr"])),
            };
            let own_mac = own_mac.unwrap_or_else(|| fresh_mac(vmid, key, now));
            let mut out = format!("{model_name}={own_mac}");
            for (k, v) in parts.iter().filter(|(k, _)| {
                !k.is_empty() && k != "model" && k != "macaddr" && *k != model_name
            }) {
                out.push_str(&format!(",{k}={v}"));
            }
            out
        }
        Kind::Lxc => {
            let mut rest: Vec<(String, String)> = parts
                .iter()
                .filter(|(k, _)| !matches!(k.as_str(), "name" | "hwaddr" | "type"))
                .cloned()
                .collect();
            rest.push((
                "hwaddr".to_owned(),
                mac(&["hwaddr"]).unwrap_or_else(|| fresh_mac(vmid, key, now)),
            ));
            rest.push(("type".to_owned(), "veth".to_owned()));
            rest.sort();
            let name = parts
                .iter()
                .find(|(k, _)| k == "name")
                .map_or_else(|| "eth0".to_owned(), |(_, v)| v.clone());
            let rest: Vec<String> = rest.into_iter().map(|(k, v)| format!("{k}={v}")).collect();
            format!("name={name},{}", rest.join(","))
        }
    }
}

/// Whether a change takes effect while the guest runs.
fn at_once(kind: Kind, key: &str) -> bool {
    const FAST: [&str; 9] = [
        "name",
        "onboot",
        "shares",
        "startup",
        "description",
        "protection",
        "vmstatestorage",
        "hookscript",
        "tags",
    ];
    match kind {
        Kind::Qemu => {
            let hotplug =
                ["net", "scsi", "virtio", "usb", "unused"].iter().any(|p| indexed(key, p));
            FAST.contains(&key) || hotplug || key == "lock"
        }
        Kind::Lxc => !matches!(
            key,
            "unprivileged"
                | "features"
                | "arch"
                | "ostype"
                | "tty"
                | "console"
                | "cmode"
                | "rootfs"
        ),
    }
}

/// Takes a disk out: it becomes `unusedN`, and with `force` (or from `unusedN`) it is deleted.
pub(super) fn remove_disk(
    state: &mut State,
    owner: Owner<'_>,
    key: &str,
    force: bool,
) -> Result<(), String> {
    let Owner { node, vmid, kind } = owner;
    let guest = unlocked(state, node, vmid, kind)?;
    let Some(value) = guest.config.remove(key) else { return Ok(()) };
    let volid = disks::volume_of(&value);
    let keeps = value.contains("media=cdrom") && !volid.contains("cloudinit")
        || volid.starts_with('/')
        || volid == "none";
    if keeps {
        return Ok(());
    }
    if force || key.starts_with("unused") || value.contains("media=cdrom") {
        let held = guest
            .snapshots
            .iter()
            .any(|s| s.config.iter().any(|(_, v)| disks::volume_of(v) == volid));
        if held {
            return Err(format!("unable to delete '{volid}' - volume is still in use (snapshot?)"));
        }
        disks::drop_volume(state, node, &volid);
    } else {
        let unused = disks::unused_key(guest);
        guest.config.set(&unused, volid);
    }
    Ok(())
}

/// Carries a change out.
pub(super) fn apply(
    state: &mut State,
    owner: Owner<'_>,
    wanted: Wanted,
    now: i64,
) -> Result<(), String> {
    let Owner { node, vmid, kind } = owner;
    let running = unlocked_or_unlocking(state, node, vmid, kind, &wanted)?;
    let waits = |key: &str| running && !at_once(kind, key);
    for key in wanted.revert {
        if let Some(guest) = state.guests.get_mut(&vmid) {
            guest.pending.retain(|(k, _)| *k != key);
        }
    }
    for key in wanted.delete {
        if waits(&key) {
            if let Some(guest) = state.guests.get_mut(&vmid) {
                guest.pending.retain(|(k, _)| *k != key);
                if guest.config.has(&key) {
                    guest.pending.push((key, None));
                }
            }
        } else if is_disk_key(kind, &key) {
            remove_disk(state, owner, &key, wanted.force)?;
        } else if let Some(guest) = state.guests.get_mut(&vmid) {
            guest.config.remove(&key);
            guest.pending.retain(|(k, _)| *k != key);
            if key == "lock" {
                guest.unlock();
            }
        }
    }
    for (key, value) in wanted.set {
        let value = if is_disk_key(kind, &key) {
            replace_disk(state, owner, &key, &value, now)?
        } else if indexed(&key, "net") {
            nic(kind, vmid, &key, &value, now)
        } else {
            value
        };
        let Some(guest) = state.guests.get_mut(&vmid) else { continue };
        guest.pending.retain(|(k, _)| *k != key);
        if key == "lock" {
            guest.set_lock(&value, now);
        } else if waits(&key) {
            if guest.config.get(&key) != Some(value.as_str()) {
                guest.pending.push((key, Some(value)));
            }
        } else {
            guest.config.set(&key, value);
        }
    }
    Ok(())
}

/// Whether the guest runs, once it is clear that it may be changed: a lock
/// only lets its own removal pass.
fn unlocked_or_unlocking(
    state: &State,
    node: &str,
    vmid: u32,
    kind: Kind,
    wanted: &Wanted,
) -> Result<bool, String> {
    let guest = find(state, node, vmid, kind).map_err(|f| f.message)?;
    let unlocking = wanted.delete.iter().any(|k| k == "lock");
    match lock_error(guest) {
        Some(text) if !unlocking => Err(text),
        _ => Ok(guest.running()),
    }
}

/// A disk value in place of another one; a different volume that was there becomes unused.
fn replace_disk(
    state: &mut State,
    owner: Owner<'_>,
    key: &str,
    value: &str,
    now: i64,
) -> Result<String, String> {
    let vmid = owner.vmid;
    let next = disks::settle(state, owner, value, now)?;
    let old = state.guests.get(&vmid).and_then(|g| g.config.get(key)).map(str::to_owned);
    let volume = disks::volume_of(&next);
    if let Some(old) = old.filter(|o| disks::volume_of(o) != volume)
        && !old.contains("media=cdrom")
        && let Some(guest) = state.guests.get_mut(&vmid)
    {
        let unused = disks::unused_key(guest);
        guest.config.set(&unused, disks::volume_of(&old));
    }
    // A disk that was unused is used now.
    if let Some(guest) = state.guests.get_mut(&vmid) {
        let same: Vec<String> = guest
            .config
            .iter()
            .filter(|(k, v)| k.starts_with("unused") && *v == volume)
            .map(|(k, _)| k.to_owned())
            .collect();
        for key in same {
            guest.config.remove(&key);
        }
    }
    Ok(next)
}

fn change(c: &mut Call<'_>, kind: Kind, in_task: bool) -> Answer {
    let (node, vmid, now) = (c.node(), c.vmid(), c.now());
    let wanted = wanted(c, kind, &format!("/vms/{vmid}"))?;
    if wanted.set.is_empty() && wanted.delete.is_empty() && wanted.revert.is_empty() {
        return Err(Failure::died("no options specified"));
    }
    let guest = find(c.state, &node, vmid, kind)?;
    if c.text("digest").is_some_and(|given| given != guest.digest()) {
        return Err(Failure::died(match kind {
            Kind::Qemu => "checksum mismatch (file change by other user?)",
            Kind::Lxc => "detected modified configuration - file changed by other user? Try again.",
        }));
    }
    let names: Vec<String> = wanted.set.iter().map(|(k, _)| k.clone()).collect();
    let user = c.login.full();
    c.state.note(
        now,
        &user,
        "pvedaemon",
        format!("update {} {vmid}: {}", kind.short(), names.join(" ")),
    );
    if in_task {
        unlocked_or_unlocking(c.state, &node, vmid, kind, &wanted).map_err(Failure::died)?;
        return c.spawn("qmconfig", &vmid.to_string(), 100, move |s, end| {
            apply(s, Owner { node: &node, vmid, kind }, wanted, end.div_euclid(1000))
                .map(|()| Vec::new())
        });
    }
    apply(c.state, Owner { node: &node, vmid, kind }, wanted, now).map_err(Failure::died)?;
    done()
}
