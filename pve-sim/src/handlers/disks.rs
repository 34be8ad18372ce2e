//! Disks of guests: made, given back, resized, moved, unlinked.

use serde_json::{Value, json};

use super::Route;
use super::guests::{find, missing};
use super::power::unlocked;
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;
use crate::api::propstring;
use crate::state::State;
use crate::state::guest::{Guest, Kind, disk_size, indexed, parse_size, size_text};
use crate::state::storage::Volume;

pub(crate) const ROUTES: &[Route] = &[
    ("PUT", "/nodes/{node}/qemu/{vmid}/resize", |c| resize(c, Kind::Qemu)),
    ("PUT", "/nodes/{node}/lxc/{vmid}/resize", |c| resize(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/qemu/{vmid}/move_disk", |c| move_disk(c, Kind::Qemu)),
    ("POST", "/nodes/{node}/lxc/{vmid}/move_volume", |c| move_disk(c, Kind::Lxc)),
    ("PUT", "/nodes/{node}/qemu/{vmid}/unlink", unlink),
];

/// Whether an option holds a disk, a mount point or a CD-ROM.
pub(super) fn is_disk_key(kind: Kind, key: &str) -> bool {
    match kind {
        Kind::Qemu => ["scsi", "virtio", "sata", "ide", "efidisk", "tpmstate", "unused"]
            .iter()
            .any(|p| indexed(key, p)),
        Kind::Lxc => key == "rootfs" || ["mp", "unused"].iter().any(|p| indexed(key, p)),
    }
}

/// The volume of a disk value, also of `file=` and `volume=`.
pub(super) fn volume_of(value: &str) -> String {
    let named = propstring::get(value, "file").or_else(|| propstring::get(value, "volume"));
    named.or_else(|| propstring::get(value, "")).unwrap_or_default()
}

/// A storage that can hold a guest's disks on a node; the error is what the API dies with.
pub(super) fn check_storage(
    state: &State,
    id: &str,
    node: &str,
    content: &str,
) -> Result<(), String> {
    let storage = state.storages.get(id).ok_or_else(|| format!("storage '{id}' does not exist"))?;
    if storage.disabled {
        return Err(format!("storage '{id}' is disabled"));
    }
    if !storage.on(node) {
        return Err(format!("storage '{id}' is not available on node '{node}'"));
    }
    if storage.takes(content) {
        Ok(())
    } else {
        Err(format!("storage '{id}' does not support content-type '{content}'"))
    }
}

pub(super) fn content_of(kind: Kind) -> &'static str {
    if kind == Kind::Qemu { "images" } else { "rootdir" }
}

/// A name for a new volume of a guest.
fn new_name(
    state: &State,
    storage: &str,
    vmid: u32,
    kind: Kind,
    format: Option<&str>,
) -> (String, String) {
    let info = state.storages.get(storage);
    let files = info.is_some_and(|s| s.files());
    let zfs = info.is_some_and(|s| s.kind == "zfspool");
    let format = if files {
        format.unwrap_or("raw").to_owned()
    } else if zfs && kind == Kind::Lxc {
        "subvol".to_owned()
    } else {
        "raw".to_owned()
    };
    let name = |n: u32| match (files, format.as_str()) {
        (true, _) => format!("{vmid}/vm-{vmid}-disk-{n}.{format}"),
        (false, "subvol") => format!("subvol-{vmid}-disk-{n}"),
        (false, _) => format!("vm-{vmid}-disk-{n}"),
    };
    let stem = |v: &str| v.rsplit_once('.').map_or(v.to_owned(), |(s, _)| s.to_owned());
    let taken = |n: u32| {
        let wanted = stem(&name(n));
        state
            .volumes
            .iter()
            .any(|v| v.storage == storage && stem(&v.name).replace("base-", "vm-") == wanted)
    };
    let free = (0..).find(|n| !taken(*n)).unwrap_or(0);
    (name(free), format)
}

/// The guest that a disk is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) node: &'a str,
    pub(super) vmid: u32,
    pub(super) kind: Kind,
}

/// Makes a volume and gives its id.
pub(super) fn make_volume(
    state: &mut State,
    storage: &str,
    owner: Owner<'_>,
    size: u64,
    format: Option<&str>,
    now: i64,
) -> String {
    let Owner { node, vmid, kind } = owner;
    let (name, format) = new_name(state, storage, vmid, kind, format);
    let mut v = Volume::new(storage, &name, content_of(kind), &format, size, now);
    v.node = state.volume_node(storage, node);
    v.vmid = Some(vmid);
    v.used = (format == "qcow2").then_some(331_776);
    let id = v.volid();
    state.volumes.push(v);
    state.use_space(storage, node, i64::try_from(size / 20).unwrap_or(0));
    id
}

/// Removes a volume and gives its space back.
pub(super) fn drop_volume(state: &mut State, node: &str, volid: &str) {
    if let Some(at) = state.volumes.iter().position(|v| v.seen_from(node) && v.volid() == volid) {
        let v = state.volumes.remove(at);
        state.use_space(&v.storage, node, -i64::try_from(v.size / 20).unwrap_or(0));
    }
}

/// The value that goes into the configuration for a disk value that was given:
/// `local-lvm:32` makes a volume of 32 GiB, everything else has to be there.
pub(super) fn settle(
    state: &mut State,
    owner: Owner<'_>,
    value: &str,
    now: i64,
) -> Result<String, String> {
    let Owner { node, kind, .. } = owner;
    let volume = volume_of(value);
    let rest: Vec<String> = propstring::parts(value)
        .into_iter()
        .filter(|(k, _)| {
            !matches!(k.as_str(), "" | "file" | "volume" | "size" | "format" | "import-from")
        })
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    let join = |id: &str, size: Option<u64>| {
        let mut parts = vec![id.to_owned()];
        parts.extend(rest.clone());
        parts.extend(size.map(|s| format!("size={}", size_text(s))));
        parts.join(",")
    };
    if matches!(volume.as_str(), "none" | "cdrom") || volume.starts_with('/') {
        return Ok(join(&volume, None));
    }
    let Some((storage, name)) = volume.split_once(':') else {
        return Err(format!("unable to parse volume ID '{volume}'"));
    };
    if name == "cloudinit" {
        check_storage(state, storage, node, "images")?;
        let id = make_volume(state, storage, owner, 4 << 20, Some("qcow2"), now);
        return Ok(join(&id, Some(4 << 20)));
    }
    if let Ok(gib) = name.parse::<f64>() {
        check_storage(state, storage, node, content_of(kind))?;
        let source = propstring::get(value, "import-from");
        let size = match &source {
            Some(id) => state
                .volume(node, id)
                .map(|v| v.size)
                .ok_or_else(|| format!("volume '{id}' does not exist"))?,
            None => (gib * f64::from(1 << 30)) as u64,
        };
        let format = propstring::get(value, "format");
        let id = make_volume(state, storage, owner, size, format.as_deref(), now);
        return Ok(join(&id, Some(size)));
    }
    if !state.storages.contains_key(storage) {
        return Err(format!("storage '{storage}' does not exist"));
    }
    let found = state.volume(node, &volume).map(|v| (v.size, v.content.clone()));
    let (size, content) = found.ok_or_else(|| format!("volume '{volume}' does not exist"))?;
    Ok(join(&volume, Some(size).filter(|_| content != "iso" || value.contains("media=cdrom"))))
}

/// The first free `unusedN`.
pub(super) fn unused_key(guest: &Guest) -> String {
    let free = (0..256).find(|n| !guest.config.has(&format!("unused{n}"))).unwrap_or(0);
    format!("unused{free}")
}

fn guest_mut<'a>(
    state: &'a mut State,
    node: &str,
    vmid: u32,
    kind: Kind,
) -> Result<&'a mut Guest, String> {
    unlocked(state, node, vmid, kind)
}

fn resize(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid, disk, size) = (c.node(), c.vmid(), c.need("disk"), c.need("size"));
    let given = c.text("digest");
    find(c.state, &node, vmid, kind)?;
    c.spawn("resize", &vmid.to_string(), 200, move |state, _| {
        let guest = guest_mut(state, &node, vmid, kind)?;
        if given.is_some_and(|g| g != guest.digest()) {
            return Err("checksum mismatch (file change by other user?)".to_owned());
        }
        let Some(value) = guest.config.get(&disk).map(str::to_owned) else {
            return Err(format!("disk '{disk}' does not exist"));
        };
        let old = disk_size(&value).unwrap_or(0);
        let new = match size.strip_prefix('+') {
            Some(more) => old + parse_size(more).unwrap_or(0),
            None => parse_size(&size).unwrap_or(0),
        };
        if new < old {
            return Err("shrinking disks is not supported".to_owned());
        }
        let next = propstring::with(&value, "size", Some(&size_text(new)));
        guest.config.set(&disk, next.clone());
        if let Some(run) = guest.run.as_mut() {
            run.config.set(&disk, next);
        }
        let volid = volume_of(&value);
        if let Some(v) = state.volumes.iter_mut().find(|v| v.volid() == volid && v.seen_from(&node))
        {
            v.size = new;
        }
        Ok(Vec::new())
    })
}

fn move_disk(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid, now) = (c.node(), c.vmid(), c.now());
    let disk = c.text("disk").or_else(|| c.text("volume")).unwrap_or_default();
    let (storage, format, remove) = (c.text("storage"), c.text("format"), c.flag("delete"));
    let guest = find(c.state, &node, vmid, kind)?;
    if let Some(target) = c.text("target-vmid").and_then(|t| t.parse::<u32>().ok()) {
        let key = c
            .text("target-disk")
            .or_else(|| c.text("target-volume"))
            .unwrap_or_else(|| disk.clone());
        return reassign(c, kind, &disk, target, key);
    }
    if let Some(given) = c.text("digest")
        && given != guest.digest()
    {
        return Err(Failure::died("checksum mismatch (file change by other user?)"));
    }
    let Some(value) = guest.config.get(&disk).map(str::to_owned) else {
        return Err(Failure::died(format!("disk '{disk}' does not exist")));
    };
    let storage = storage.ok_or_else(|| {
        Failure::parameter("storage", "either storage or target-vmid is required")
    })?;
    check_storage(c.state, &storage, &node, content_of(kind)).map_err(Failure::died)?;
    let volid = volume_of(&value);
    let same = volid.split(':').next() == Some(storage.as_str());
    if same && format.is_none() {
        return Err(Failure::died("you can't move to the same storage with same format"));
    }
    let name = if kind == Kind::Qemu { "qmmove" } else { "move_volume" };
    if let Some(guest) = c.state.guests.get_mut(&vmid) {
        guest.set_lock("disk", now);
    }
    let plan = crate::state::task::Plan::new(
        &node.clone(),
        name,
        &vmid.to_string(),
        1500,
        move |state, end| {
            let size = disk_size(&value).unwrap_or(0);
            let owner = Owner { node: &node, vmid, kind };
            let now = end.div_euclid(1000);
            let new = make_volume(state, &storage, owner, size, format.as_deref(), now);
            let guest = state.guests.get_mut(&vmid).ok_or_else(|| missing(kind, &node, vmid))?;
            let tail = value.split_once(',').map_or("", |(_, t)| t);
            guest.config.set(&disk, format!("{new},{tail}").trim_end_matches(',').to_owned());
            if !remove {
                let key = unused_key(guest);
                guest.config.set(&key, volid.clone());
            } else {
                drop_volume(state, &node, &volid);
            }
            Ok(vec![
                format!("create full clone of drive {disk} ({volid})"),
                "drive mirror is ready: 100%".to_owned(),
            ])
        },
    );
    c.start(plan.holding([vmid]))
}

/// Gives a disk to another guest.
fn reassign(c: &mut Call<'_>, kind: Kind, disk: &str, target: u32, key: String) -> Answer {
    let (node, vmid, disk) = (c.node(), c.vmid(), disk.to_owned());
    c.demand(&format!("/vms/{target}"), &["VM.Config.Disk"])?;
    find(c.state, &node, target, kind)?;
    c.spawn(
        if kind == Kind::Qemu { "qmmove" } else { "move_volume" },
        &format!("{vmid}-{target}"),
        300,
        move |state, _| {
            let guest = guest_mut(state, &node, vmid, kind)?;
            let value = guest
                .config
                .get(&disk)
                .map(str::to_owned)
                .ok_or_else(|| format!("disk '{disk}' does not exist"))?;
            if guest.running() {
                return Err(format!("cannot move disk '{disk}' of a running guest"));
            }
            guest.config.remove(&disk);
            let other = guest_mut(state, &node, target, kind)?;
            if other.config.has(&key) {
                other_taken(&key, target)?;
            }
            other.config.set(&key, value.clone());
            let volid = volume_of(&value);
            if let Some(v) =
                state.volumes.iter_mut().find(|v| v.volid() == volid && v.seen_from(&node))
            {
                v.vmid = Some(target);
            }
            Ok(vec![format!("moving disk '{disk}' from VM '{vmid}' to '{target}'")])
        },
    )
}

fn other_taken(key: &str, target: u32) -> Result<(), String> {
    Err(format!("Target disk key '{key}' is already in use for VM '{target}'"))
}

fn unlink(c: &mut Call<'_>) -> Answer {
    let (node, vmid, force) = (c.node(), c.vmid(), c.flag("force"));
    let owner = Owner { node: &node, vmid, kind: Kind::Qemu };
    for key in c.list("idlist") {
        super::options::remove_disk(c.state, owner, &key, force).map_err(Failure::died)?;
    }
    done()
}

/// A guest's disks as the migration check tells them.
pub(super) fn local_disks(state: &State, guest: &Guest) -> Vec<Value> {
    let shared = |volid: &str| {
        volid.split(':').next().and_then(|s| state.storages.get(s)).is_some_and(|s| s.shared)
    };
    guest
        .disks()
        .iter()
        .map(|(key, value)| (key, volume_of(value), disk_size(value)))
        .filter(|(_, volid, _)| !shared(volid))
        .map(|(key, volid, size)| {
            json!({"volid": volid, "drivename": key, "size": size, "cdrom": 0, "is_attached": 1, "is_unused": 0,
                "is_vmstate": 0, "is_cloudinit": 0, "is_tpmstate": u8::from(key == "tpmstate0"), "replicate": 1, "shared": 0})
        })
        .collect()
}
