//! Disks and mount points.

use super::{Call, Now, Param};
use crate::{pve::Vmid, safety::volume};

/// A volume, or what is imported into it, is a place on the host.
pub fn on_host(call: &Call<'_>, param: &Param<'_>) -> bool {
    let parts = param.parts(call);
    parts.volume().is_some_and(volume::on_host)
        || parts.get("import-from").is_some_and(volume::on_host)
}

/// The mount point maps ids.
pub fn has_idmap(call: &Call<'_>, param: &Param<'_>) -> bool {
    param.parts(call).get("idmap").is_some()
}

/// The volume is another guest's, by either half of a linked name. The base of
/// a linked clone that stands there already is no news.
pub fn foreign(call: &Call<'_>, param: &Param<'_>) -> bool {
    let parts = param.parts(call);
    let Some(volume) = parts.volume() else { return false };
    let owners = volume::owners(volume);
    let others = |owner: &Vmid| Some(*owner) != call.vmid();
    if owners.last().is_some_and(others) {
        return true;
    }
    let there = call.now_parts(param.name).is_some_and(|now| now.volume() == Some(volume));
    owners.iter().any(others) && !there
}

/// A list that names a volume which the guest no longer uses.
pub fn unused(_call: &Call<'_>, param: &Param<'_>) -> bool {
    param.value.members().any(|name| name.to_ascii_lowercase().starts_with("unused"))
}

/// The content comes from a volume of another guest.
pub fn imports_foreign(call: &Call<'_>, param: &Param<'_>) -> bool {
    let parts = param.parts(call);
    let source = parts.get("import-from").unwrap_or_default();
    volume::owners(source).into_iter().any(|owner| Some(owner) != call.vmid())
}

/// Whether a volume is the guest's own cloud-init drive, to be made or made already.
fn cloudinit(volume: &str) -> bool {
    volume == "cloudinit"
        || volume.ends_with(":cloudinit")
        || (volume.ends_with("-cloudinit") && volume::owner(volume).is_some())
}

/// A medium (an ISO image, or anything in a drive for media) that is not in this drive now.
pub fn new_medium(call: &Call<'_>, param: &Param<'_>) -> bool {
    let parts = param.parts(call);
    let Some(volume) = parts.volume() else { return false };
    let medium = param.name == "cdrom"
        || parts.get("media").is_some_and(|m| m.eq_ignore_ascii_case("cdrom"))
        || volume.contains(":iso/");
    if !medium || volume == "none" || cloudinit(volume) {
        return false;
    }
    match call.now(param.name) {
        Now::Unknown => true,
        Now::Absent => true,
        Now::Is(now) => call.parts(param.name, &now).volume() != Some(volume),
    }
}

/// Whether the guest has another volume there; `None` when it cannot be known.
fn another_there(call: &Call<'_>, param: &Param<'_>) -> Option<bool> {
    let parts = param.parts(call);
    match call.now(param.name) {
        Now::Unknown => None,
        Now::Absent => Some(false),
        Now::Is(now) => {
            let now = call.parts(param.name, &now);
            let now = now.volume().unwrap_or_default();
            let wanted = parts.volume().unwrap_or_default();
            let same = now == wanted || (cloudinit(now) && cloudinit(wanted));
            Some(now != "none" && !same)
        }
    }
}

/// The disk that is there now would be detached, or that cannot be ruled out.
pub fn replaces(call: &Call<'_>, param: &Param<'_>) -> bool {
    another_there(call, param).unwrap_or(true)
}

/// The volume that is there now would be detached.
pub fn surely_replaces(call: &Call<'_>, param: &Param<'_>) -> bool {
    another_there(call, param).unwrap_or(false)
}

/// A mount point leaves the backups or the replication.
pub fn mount_loses_protection(call: &Call<'_>, param: &Param<'_>) -> bool {
    let parts = param.parts(call);
    if parts.is("replicate", "0") {
        return true;
    }
    if param.name == "rootfs" || call.variable("vmid").is_none() {
        return false;
    }
    match call.now(param.name) {
        Now::Unknown => parts.is("backup", "0"),
        Now::Absent => false,
        Now::Is(now) => {
            parts.is("backup", "0")
                || (call.parts(param.name, &now).is("backup", "1") && !parts.is("backup", "1"))
        }
    }
}

/// Errors of writing are swallowed, or writes are not kept.
pub fn risky_cache(call: &Call<'_>, param: &Param<'_>) -> bool {
    param.key_is(call, "cache", "unsafe")
        || param.key_is(call, "werror", "ignore")
        || param.key_is(call, "rerror", "ignore")
}
