//! What the state of the object itself forbids: its protection, its lock, that it runs or is managed by HA.

use serde_json::Value;

use super::{
    Method,
    conditions::{Call, Now, guest},
    volume,
};
use crate::{
    Code, Error, Result,
    pve::{Params, Vmid, loose, params::split_list},
};

/// Refuses what Proxmox would refuse, or carry out half.
///
/// # Errors
/// `protected`, `locked`, `conflict`, `not_found`.
pub fn check(call: &Call<'_>) -> Result<()> {
    let template = call.endpoint.template;
    if let Some(below) = of_guest(template) {
        return guest_state(call, below);
    }
    if template == "/nodes/{node}/storage/{storage}/content/{volume}"
        && call.method == Method::Delete
    {
        return volume_state(call);
    }
    if call.method == Method::Post && matches!(template, "/nodes/{node}/qemu" | "/nodes/{node}/lxc")
    {
        return replaced_guest(call);
    }
    Ok(())
}

/// What stands below the guest in a template; empty for the guest itself.
fn of_guest(template: &str) -> Option<&str> {
    ["/nodes/{node}/qemu/{vmid}", "/nodes/{node}/lxc/{vmid}"]
        .iter()
        .find_map(|start| template.strip_prefix(start))
}

fn guest_state(call: &Call<'_>, below: &str) -> Result<()> {
    let vmid = call.variable("vmid").unwrap_or_default();
    if call.variable("snapname") == Some("current") {
        return Err(Error::new(
            Code::Conflict,
            "current is no snapshot but the present state of the guest",
        )
        .hint("pve_list_snapshots names the snapshots"));
    }
    let Some(config) = call.config() else {
        let gone = known_gone(call);
        if !gone && destroys(call, below) {
            return Err(Error::new(
                Code::Conflict,
                format!("whether guest {vmid} is protected cannot be read"),
            )
            .hint("try again when its node answers")
            .with("vmid", vmid));
        }
        return Ok(());
    };
    if destroys(call, below) && loose::flag(config, "protection") {
        return Err(Error::new(
            Code::Protected,
            format!("guest {vmid} is protected against removal"),
        )
        .hint("its owner turned protection on; it is turned off with pve_guest_config_set first")
        .with("vmid", vmid));
    }
    locked(call, below, config, vmid)?;
    if below.is_empty() && call.method == Method::Delete {
        if running(call) {
            return Err(Error::new(Code::Conflict, format!("guest {vmid} is running"))
                .hint("stop it first with pve_guest_shutdown")
                .with("vmid", vmid));
        }
        if in_ha(call) && call.params.flag("purge") != Some(true) {
            return Err(Error::new(Code::Conflict, format!("guest {vmid} is managed by HA"))
                .hint("take it out of HA first with pve_ha_resource_delete, or set purge")
                .with("vmid", vmid));
        }
    }
    if below == "/template" && running(call) {
        return Err(Error::new(Code::Conflict, format!("guest {vmid} is running"))
            .hint("a template is made of a stopped guest")
            .with("vmid", vmid));
    }
    Ok(())
}

/// Whether the guest in the path is known not to be there.
fn known_gone(call: &Call<'_>) -> bool {
    let (Some(node), Some(kind), Some(vmid)) =
        (call.variable("node"), call.kind(), call.variable("vmid"))
    else {
        return true;
    };
    matches!(call.facts.guest_config(node, kind, vmid), Err(error) if error.code == Code::NotFound)
}

/// Whether a call takes the guest or one of its disks away.
fn destroys(call: &Call<'_>, below: &str) -> bool {
    match below {
        "" => call.method == Method::Delete,
        "/unlink" => true,
        "/move_disk" | "/move_volume" => {
            call.params.flag("delete") == Some(true) || call.params.has("target-vmid")
        }
        "/config" => call
            .given("delete")
            .any(|p| guest::destroys_volume(call, &p) || p.value.members().any(is_disk)),
        _ => false,
    }
}

fn is_disk(option: &str) -> bool {
    let base = super::api::indexed(option).unwrap_or(option);
    matches!(
        base,
        "ide" | "sata" | "scsi" | "virtio" | "mp" | "rootfs" | "efidisk" | "tpmstate" | "cdrom"
    )
}

/// Calls that a lock does not stand against, or that only some locks do.
fn locked(call: &Call<'_>, below: &str, config: &Value, vmid: &str) -> Result<()> {
    let Some(lock) = loose::str(config, "lock") else { return Ok(()) };
    let free = below.starts_with("/firewall")
        || below.starts_with("/agent")
        || below == "/config" && call.params.members("delete").any(|d| d == "lock");
    let wakes =
        matches!(below, "/status/start" | "/status/resume" | "/status/stop") && lock == "suspended";
    if free || wakes || call.params.flag("skiplock") == Some(true) {
        return Ok(());
    }
    Err(Error::new(Code::Locked, format!("guest {vmid} is locked by another operation ({lock})"))
        .hint("wait for the task that holds the lock (pve_list_tasks), or look at what became of it; nothing here unlocks a guest by itself")
        .with("vmid", vmid)
        .with("lock", lock))
}

/// Whether the guest runs, as far as it can be known.
fn running(call: &Call<'_>) -> bool {
    let Some(row) = vmid_of(call).and_then(|v| call.facts.guest(v)) else { return false };
    loose::str(row, "status") == Some("running")
}

fn vmid_of(call: &Call<'_>) -> Option<Vmid> {
    Vmid::parse(call.variable("vmid")?).ok()
}

/// Whether HA manages the guest.
fn in_ha(call: &Call<'_>) -> bool {
    let Some(vmid) = vmid_of(call) else { return false };
    let Ok(resources) = call.facts.ask(&["cluster", "ha", "resources"], Params::new()) else {
        return false;
    };
    let number = vmid.to_string();
    loose::rows(resources)
        .iter()
        .filter_map(|r| loose::str(r, "sid"))
        .any(|sid| sid.rsplit(':').next() == Some(&number))
}

/// A backup that was marked as protected stays.
fn volume_state(call: &Call<'_>) -> Result<()> {
    let (Some(node), Some(storage), Some(volume)) =
        (call.variable("node"), call.variable("storage"), call.variable("volume"))
    else {
        return Ok(());
    };
    // The storage may stand before the name or not.
    let whole = match volume.contains(':') {
        true => volume.to_owned(),
        false => format!("{storage}:{volume}"),
    };
    disk_in_use(call, &whole)?;
    let path = ["nodes", node, "storage", storage, "content", volume];
    match call.facts.ask(&path, Params::new()) {
        Ok(found) if loose::flag(found, "protected") => Err(Error::new(
            Code::Protected,
            format!("the volume {volume} is protected against removal"),
        )
        .hint("pve_backup_protect takes the protection off first")
        .with("volume", volume)),
        _ => Ok(()),
    }
}

/// A disk of a guest goes with the guest or by its options, not from under it.
fn disk_in_use(call: &Call<'_>, volume: &str) -> Result<()> {
    let Some((vmid, config)) = owner_of(call, volume) else { return Ok(()) };
    if loose::flag(config, "protection") {
        return Err(Error::new(
            Code::Protected,
            format!("guest {vmid}, whose disk this is, is protected against removal"),
        )
        .hint("its owner turned protection on; it is turned off with pve_guest_config_set first")
        .with("vmid", vmid.get()));
    }
    let used = config.as_object().into_iter().flatten().find(|(key, value)| {
        let option = super::api::indexed(key).unwrap_or(key);
        let disk = is_disk(option) || matches!(option, "unused" | "vmstate");
        disk && value.as_str().is_some_and(|text| {
            text.split(',').any(|part| {
                part == volume
                    || part.strip_prefix("file=") == Some(volume)
                    || part.strip_prefix("volume=") == Some(volume)
            })
        })
    });
    match used {
        Some((option, _)) => Err(Error::new(
            Code::Conflict,
            format!("the volume {volume} is {option} of guest {vmid}"),
        )
        .hint("pve_disk_detach takes it from the guest first")
        .with("vmid", vmid.get())
        .with("option", option.as_str())),
        None => Ok(()),
    }
}

/// The guest whose disk a volume is, with its configuration; none for a backup.
fn owner_of<'a>(call: &Call<'a>, volume: &str) -> Option<(Vmid, &'a Value)> {
    let name = volume.rsplit(['/', ':']).next().unwrap_or_default();
    let vmid = volume::owner(volume).filter(|_| !name.starts_with("vzdump-"))?;
    let row = call.facts.guest(vmid)?;
    let (node, kind) = (loose::str(row, "node")?, loose::str(row, "type")?);
    Some((vmid, call.facts.guest_config(node, kind, &vmid.to_string()).ok()?))
}

/// A guest that is made over one that is there.
fn replaced_guest(call: &Call<'_>) -> Result<()> {
    let vmid = call.params.text("vmid").and_then(|v| Vmid::parse(v.trim()).ok());
    let force = call.params.flag("force") == Some(true);
    let Some(row) = vmid.filter(|_| force).and_then(|v| call.facts.guest(v)) else { return Ok(()) };
    let vmid = vmid.map_or(0, Vmid::get);
    let found = (loose::str(row, "node"), loose::str(row, "type"));
    if let (Some(node), Some(kind)) = found
        && let Ok(config) = call.facts.guest_config(node, kind, &vmid.to_string())
        && loose::flag(config, "protection")
    {
        return Err(Error::new(
            Code::Protected,
            format!("guest {vmid} is protected against removal"),
        )
        .hint("its owner turned protection on; it is turned off with pve_guest_config_set first")
        .with("vmid", vmid));
    }
    if loose::str(row, "status") == Some("running") {
        return Err(Error::new(Code::Conflict, format!("guest {vmid} is running"))
            .hint("stop it first with pve_guest_shutdown")
            .with("vmid", vmid));
    }
    Ok(())
}

/// The present state of the guest in the path, for plans and forms.
#[must_use]
pub fn describe(call: &Call<'_>) -> Option<Value> {
    let vmid = vmid_of(call)?;
    let row = call.facts.guest(vmid);
    let config = call.config();
    let from = |key: &str| row.and_then(|r| loose::text(r, key));
    let name = from("name").or_else(|| {
        let config = config?;
        loose::text(config, "name").or_else(|| loose::text(config, "hostname"))
    });
    let lock = match call.now("lock") {
        Now::Is(lock) => Some(lock),
        Now::Unknown | Now::Absent => from("lock"),
    };
    let tags: Vec<String> = config
        .and_then(|c| loose::text(c, "tags"))
        .map(|t| split_list(&t).map(str::to_owned).collect())
        .unwrap_or_default();
    Some(serde_json::json!({
        "vmid": vmid.get(),
        "kind": call.kind(),
        "name": name,
        "node": call.variable("node"),
        "status": from("status"),
        "lock": lock,
        "tags": tags,
        "protection": config.map(|c| loose::flag(c, "protection")),
        "template": config.map(|c| loose::flag(c, "template")),
    }))
}
