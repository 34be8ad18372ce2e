//! The storages of the sample company, and what lies on them besides disks.

use serde_json::json;

use super::build::{DAY, GIB, HOUR, TIB, space, storage};
use crate::state::State;
use crate::state::storage::Volume;

/// `nfs-backup` is full in about nine days.
const FULL_IN_DAYS: u64 = 9;
const GROWS_A_DAY: u64 = 45 * GIB;

pub(super) fn fill(state: &mut State) {
    storage(
        state,
        "local",
        "dir",
        "iso,vztmpl,snippets,import",
        json!({"path": "/var/lib/vz"}),
        false,
    );
    storage(
        state,
        "local-lvm",
        "lvmthin",
        "images,rootdir",
        json!({"thinpool": "data", "vgname": "pve"}),
        false,
    );
    storage(
        state,
        "nfs-images",
        "nfs",
        "images,iso,vztmpl",
        json!({"path": "/mnt/pve/nfs-images", "server": "10.20.1.40",
        "export": "/tank/images", "options": "vers=4.2"}),
        true,
    );
    storage(
        state,
        "nfs-backup",
        "nfs",
        "backup",
        json!({"path": "/mnt/pve/nfs-backup", "server": "10.20.1.40",
        "export": "/tank/backup", "prune-backups": "keep-daily=7,keep-weekly=4"}),
        true,
    );
    storage(
        state,
        "pbs-main",
        "pbs",
        "backup",
        json!({"server": "10.20.1.50", "datastore": "haupt", "username": "backup@pbs",
        "fingerprint": "64:D3:FF:3A:50:38:53:5A:9B:F7:50:2E:41:14:06:6A:59:1B:12:7D:07:C4:95:E2:43:0B:29:31:28:44:5D:0F",
        "prune-backups": "keep-all=1"}),
        true,
    );
    let root = [13, 15, 17];
    let thin = [(3300, 2010), (3300, 2450), (3300, 1180)];
    for (n, node) in ["pve1", "pve2", "pve3"].into_iter().enumerate() {
        let used = root.get(n).copied().unwrap_or(10);
        space(state, "local", node, 94 * GIB, used * GIB, 0.0);
        let (total, used) = thin.get(n).copied().unwrap_or((3300, 1000));
        space(state, "local-lvm", node, total * GIB, used * GIB, 9_000.0);
    }
    space(state, "nfs-images", "*", 12 * TIB, 5 * TIB + 300 * GIB, 20_000.0);
    let total = 4 * TIB;
    space(
        state,
        "nfs-backup",
        "*",
        total,
        total - FULL_IN_DAYS * GROWS_A_DAY,
        GROWS_A_DAY as f64 / DAY as f64,
    );
    space(state, "pbs-main", "*", 40 * TIB, 17 * TIB, 300_000.0);
    images(state);
}

fn images(state: &mut State) {
    let born = state.born;
    let mut add = |storage: &str, name: &str, content: &str, format: &str, size: u64, days: i64| {
        state.volumes.push(Volume::new(
            storage,
            name,
            content,
            format,
            size,
            born - days * DAY - 3 * HOUR,
        ));
    };
    add("nfs-images", "iso/debian-13.1.0-amd64-netinst.iso", "iso", "iso", 784 << 20, 70);
    add("nfs-images", "iso/ubuntu-24.04.3-live-server-amd64.iso", "iso", "iso", 3200 << 20, 88);
    add("nfs-images", "iso/virtio-win-0.1.271.iso", "iso", "iso", 709 << 20, 120);
    add("nfs-images", "iso/windows-server-2025.iso", "iso", "iso", 5600 << 20, 300);
    add(
        "nfs-images",
        "vztmpl/debian-13-standard_13.1-2_amd64.tar.zst",
        "vztmpl",
        "tzst",
        123_731_847,
        60,
    );
    add(
        "nfs-images",
        "vztmpl/ubuntu-24.04-standard_24.04-2_amd64.tar.zst",
        "vztmpl",
        "tzst",
        141_597_491,
        200,
    );
    for node in ["pve1", "pve2", "pve3"] {
        let name = "vztmpl/debian-13-standard_13.1-2_amd64.tar.zst";
        let mut v = Volume::new("local", name, "vztmpl", "tzst", 123_731_847, born - 60 * DAY);
        v.node = Some(node.to_owned());
        state.volumes.push(v);
    }
    // What was left when VM 131 was removed without its disk.
    let mut orphan =
        Volume::new("local-lvm", "vm-131-disk-0", "images", "raw", 220 * GIB, born - 143 * DAY);
    orphan.node = Some("pve2".to_owned());
    orphan.vmid = Some(131);
    state.volumes.push(orphan);
    // What guest 118 no longer uses, and still holds.
    let mut unused =
        Volume::new("local-lvm", "vm-118-disk-2", "images", "raw", 64 * GIB, born - 40 * DAY);
    unused.node = Some("pve1".to_owned());
    unused.vmid = Some(118);
    state.volumes.push(unused);
}
