//! What the findings need of a guest's configuration.

use std::collections::BTreeSet;

use serde_json::Value;

use super::GuestKind;
use crate::pve::loose;

/// A guest's configuration, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestConfig {
    /// Whether it starts with its node.
    pub onboot: bool,
    /// When the VM was made, seconds since 1970; containers do not say.
    pub created: Option<i64>,
    /// Whether the QEMU agent is switched on.
    pub agent: bool,
    /// Whether the VM gives memory back: a balloon device with a smaller minimum.
    pub ballooning: bool,
    /// Disks and mount points, by name; without CD drives.
    pub disks: Vec<Disk>,
    /// Volumes that stand in it as unused.
    pub unused: Vec<String>,
    /// Every volume it names, CD drives and unused disks too.
    pub volumes: BTreeSet<String>,
}

/// A disk or mount point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Name in the configuration, for example `scsi0` or `mp1`.
    pub key: String,
    /// Volume id, path or device.
    pub volume: String,
    /// Whether a backup of the guest holds it.
    pub backup: bool,
    /// Why it does not.
    pub reason: Option<&'static str>,
}

impl GuestConfig {
    /// Reads the answer of `GET …/config`.
    #[must_use]
    pub fn read(kind: GuestKind, value: &Value) -> Self {
        let mut config = Self {
            onboot: loose::flag(value, "onboot"),
            created: loose::text(value, "meta")
                .and_then(|meta| option(&meta, "ctime")?.parse().ok()),
            agent: enabled(loose::text(value, "agent").as_deref()),
            ballooning: ballooning(value),
            ..Self::default()
        };
        let uefi = loose::str(value, "bios") == Some("ovmf");
        for (key, line) in value.as_object().into_iter().flatten() {
            let Some(line) = line.as_str() else { continue };
            let is_disk = match kind {
                GuestKind::Qemu => is_qemu_disk(key),
                GuestKind::Lxc => key == "rootfs" || numbered(key, "mp"),
            };
            if !is_disk && !numbered(key, "unused") && key != "vmstate" {
                continue;
            }
            let Some(volume) = volume(line) else { continue };
            config.volumes.insert(volume.to_owned());
            if numbered(key, "unused") {
                config.unused.push(volume.to_owned());
            }
            if is_disk && !(kind == GuestKind::Qemu && is_cdrom(line)) {
                config.disks.push(match kind {
                    GuestKind::Qemu => qemu_disk(key, volume, line, uefi),
                    GuestKind::Lxc => mount_point(key, volume, line),
                });
            }
        }
        config.disks.sort_by(|a, b| natural(&a.key).cmp(&natural(&b.key)));
        config
    }
}

/// `agent: 1` or `agent: enabled=1,type=virtio`.
fn enabled(text: Option<&str>) -> bool {
    let first = text.unwrap_or_default().split(',').find_map(|part| match part.split_once('=') {
        Some(("enabled", on)) => Some(on),
        Some(_) => None,
        None => Some(part),
    });
    matches!(first, Some("1" | "on" | "yes" | "true"))
}

fn ballooning(value: &Value) -> bool {
    let memory = loose::text(value, "memory").unwrap_or_default();
    let memory =
        memory.split(',').find_map(|p| p.strip_prefix("current=").unwrap_or(p).parse().ok());
    match (loose::uint(value, "balloon"), memory) {
        (Some(least), Some(memory)) => least > 0 && least < memory,
        _ => false,
    }
}

fn is_qemu_disk(key: &str) -> bool {
    ["scsi", "virtio", "sata", "ide", "efidisk", "tpmstate"].iter().any(|bus| numbered(key, bus))
}

fn numbered(key: &str, prefix: &str) -> bool {
    key.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// The volume of a line: its first member, or `file=` or `volume=`.
fn volume(line: &str) -> Option<&str> {
    let found = line.split(',').find_map(|part| match part.split_once('=') {
        Some(("file" | "volume", volume)) => Some(volume),
        Some(_) => None,
        None => Some(part),
    })?;
    (!found.is_empty() && found != "none" && found != "cdrom").then_some(found)
}

fn option<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split(',')
        .find_map(|part| part.split_once('=').filter(|(k, _)| *k == name).map(|(_, v)| v))
}

fn is_cdrom(line: &str) -> bool {
    option(line, "media") == Some("cdrom")
}

fn is_on(text: &str) -> bool {
    matches!(text, "1" | "on" | "yes" | "true")
}

/// A VM's disks are in the backup unless they say no.
fn qemu_disk(key: &str, volume: &str, line: &str, uefi: bool) -> Disk {
    let reason = if option(line, "backup").is_some_and(|b| !is_on(b)) {
        Some("backup=0")
    } else if key.starts_with("efidisk") && !uefi {
        Some("EFI disk of a VM without OVMF")
    } else {
        None
    };
    Disk { key: key.to_owned(), volume: volume.to_owned(), backup: reason.is_none(), reason }
}

/// A container's mount points are in the backup only when they say yes.
fn mount_point(key: &str, volume: &str, line: &str) -> Disk {
    let reason = if key == "rootfs" {
        None
    } else if volume.starts_with('/') {
        Some("bind mounts and devices are never in a backup")
    } else if option(line, "backup").is_some_and(is_on) {
        None
    } else {
        Some("mount point without backup=1")
    };
    Disk { key: key.to_owned(), volume: volume.to_owned(), backup: reason.is_none(), reason }
}

/// `scsi2` before `scsi10`.
fn natural(key: &str) -> (&str, u32) {
    let name = key.trim_end_matches(|c: char| c.is_ascii_digit());
    (name, key.get(name.len()..).and_then(|n| n.parse().ok()).unwrap_or(0))
}
