//! What the findings need of a guest's configuration.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::pve::{
    GuestConfig, GuestKind,
    config_line::{Disk, DiskRole, Line, Nic},
    loose,
};

/// How a guest is set up, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setup {
    /// Whether it starts with its node.
    pub onboot: bool,
    /// When the VM was made, seconds since 1970; containers do not say.
    pub created: Option<i64>,
    /// Whether the QEMU agent is switched on.
    pub agent: bool,
    /// Whether the VM gives memory back: a balloon device with a smaller minimum.
    pub ballooning: bool,
    /// Disks and mount points with data of the guest, by slot; without drives and unused volumes.
    pub disks: Vec<Disk>,
    /// Network interfaces, by slot.
    pub nics: Vec<Nic>,
    /// Volumes that stand in it as unused.
    pub unused: Vec<String>,
    /// Every volume it names, drives and unused ones too.
    pub volumes: BTreeSet<String>,
    /// Whether the VM boots by UEFI.
    uefi: bool,
}

impl Setup {
    /// Reads the answer of `GET …/config`.
    #[must_use]
    pub fn read(kind: GuestKind, value: &Value) -> Self {
        let config = GuestConfig::new(kind, value);
        let all = config.disks();
        let volumes = all.iter().filter_map(|disk| disk.source.volume_id());
        let unused = all.iter().filter(|disk| disk.role == DiskRole::Unused);
        let unused = unused.filter_map(|disk| disk.source.volume_id()).collect();
        let meta = loose::str(value, "meta").map(|meta| Line::parse(meta, None));
        // `balloon` is the least the VM keeps, in MiB; 0 switches the device off.
        let least = loose::uint(value, "balloon").filter(|least| *least > 0);
        let least = least.and_then(|mib| mib.checked_mul(1 << 20));
        Self {
            onboot: config.onboot(),
            created: meta.and_then(|meta| meta.get("ctime")?.parse().ok()),
            agent: config.agent(),
            ballooning: least.zip(config.memory()).is_some_and(|(least, all)| least < all),
            nics: config.nics(),
            unused,
            volumes: volumes.chain(loose::text(value, "vmstate")).collect(),
            uefi: loose::str(value, "bios") == Some("ovmf"),
            disks: all.into_iter().filter(|disk| holds_data(disk.role)).collect(),
        }
    }

    /// Why a backup of the guest does not hold one of its disks.
    #[must_use]
    pub fn left_out(&self, disk: &Disk) -> Option<&'static str> {
        match disk.role {
            DiskRole::Efi if !self.uefi => Some("EFI disk of a VM without OVMF"),
            _ if disk.backed_up => None,
            DiskRole::MountPoint if disk.source.volume_id().is_none() => {
                Some("bind mounts and devices are never in a backup")
            }
            DiskRole::MountPoint => Some("mount point without backup=1"),
            _ => Some("backup=0"),
        }
    }
}

fn holds_data(role: DiskRole) -> bool {
    !matches!(role, DiskRole::CdRom | DiskRole::CloudInit | DiskRole::Unused)
}
