//! A small estate in which all is well, for the tests of this room.

use serde_json::{Value, json};

use super::estate::{Estate, GuestKind};
use crate::{Code, Error, pve::Vmid};

/// Monday 30 November 2026, 12:00 UTC.
pub const NOW: i64 = 1_796_040_000;
/// Seconds.
pub const HOUR: i64 = 3600;
/// Seconds.
pub const DAY: i64 = 24 * HOUR;
/// Bytes.
pub const GIB: u64 = 1 << 30;

/// A VMID known to be good.
pub fn vmid(n: u64) -> Vmid {
    Vmid::new(n).unwrap()
}

/// What the API says of a small estate in which all is well. Numbers come as
/// numbers and as text, as they do.
pub fn healthy() -> Value {
    json!({
        "rights": {
            "/": {"Sys.Audit": 1, "VM.Audit": 1, "VM.Backup": "1", "Datastore.Allocate": 1, "Datastore.Audit": 1},
        },
        "resources": [
            {"type": "node", "node": "pve1", "status": "online", "cpu": 0.2, "maxcpu": 8,
             "mem": 8 * GIB, "maxmem": 32 * GIB, "disk": 10 * GIB, "maxdisk": 100 * GIB, "uptime": 90_000},
            {"type": "node", "node": "pve2", "status": "online", "cpu": 0.1, "maxcpu": 8,
             "mem": 4 * GIB, "maxmem": 32 * GIB, "disk": 10 * GIB, "maxdisk": 100 * GIB, "uptime": 90_000},
            {"type": "qemu", "vmid": 100, "node": "pve1", "name": "db", "status": "running", "tags": "DB;Prod",
             "mem": 2 * GIB, "maxmem": 4 * GIB, "cpu": 0.5, "maxcpu": 4, "uptime": 80_000, "template": 0},
            {"type": "lxc", "vmid": "101", "node": "pve2", "name": "dns", "status": "running",
             "mem": 100 << 20, "maxmem": 512 << 20, "cpu": "0.01", "maxcpu": 1, "uptime": "80000", "template": ""},
            {"type": "qemu", "vmid": 900, "node": "pve1", "name": "tmpl", "status": "stopped", "template": 1, "tags": "prod"},
            {"type": "storage", "storage": "local-lvm", "node": "pve1", "plugintype": "lvmthin", "shared": 0,
             "status": "available", "content": "images,rootdir", "disk": 100 * GIB, "maxdisk": 289 * GIB},
            {"type": "storage", "storage": "local-lvm", "node": "pve2", "plugintype": "lvmthin", "shared": 0,
             "status": "available", "content": "rootdir,images", "disk": 200 * GIB, "maxdisk": 1760 * GIB},
            {"type": "storage", "storage": "nas", "node": "pve1", "plugintype": "nfs", "shared": "1",
             "status": "available", "content": "backup", "disk": 500 * GIB, "maxdisk": 1000 * GIB},
            {"type": "storage", "storage": "nas", "node": "pve2", "plugintype": "nfs", "shared": 1,
             "status": "available", "content": "backup", "disk": 500 * GIB, "maxdisk": 1000 * GIB},
        ],
        "status": [
            {"type": "cluster", "id": "cluster", "name": "acme", "quorate": 1, "nodes": 2},
            {"type": "node", "id": "node/pve1", "name": "pve1", "online": 1},
            {"type": "node", "id": "node/pve2", "name": "pve2", "online": "1"},
        ],
        "node_storage": {},
        "jobs": [
            {"id": "nightly", "enabled": 1, "all": 1, "schedule": "21:00", "storage": "nas", "type": "vzdump"},
        ],
        "tasks": [
            {"upid": "UPID:pve1:00000001:00000001:6B0D0000:vzdump::root@pam:", "node": "pve1", "type": "vzdump",
             "id": "", "user": "root@pam", "starttime": NOW - 15 * HOUR, "endtime": NOW - 14 * HOUR, "status": "OK"},
        ],
        "content": {
            "pve1/nas": [
                {"volid": "nas:backup/vzdump-qemu-100-2026_11_29-21_00_00.vma.zst", "content": "backup",
                 "vmid": 100, "ctime": NOW - 15 * HOUR, "size": GIB},
                {"volid": "nas:backup/vzdump-lxc-101-2026_11_29-21_10_00.tar.zst", "content": "backup",
                 "ctime": (NOW - 15 * HOUR).to_string(), "size": GIB},
            ],
            "pve1/local-lvm": [
                {"volid": "local-lvm:vm-100-disk-0", "content": "images", "vmid": 100, "size": 8 * GIB},
                {"volid": "local-lvm:base-900-disk-0", "content": "images", "vmid": 900, "size": 8 * GIB},
            ],
            "pve2/local-lvm": [
                {"volid": "local-lvm:vm-101-disk-0", "content": "rootdir", "vmid": "101", "size": 4 * GIB},
            ],
        },
        "snapshots": {
            "100": [
                {"name": "before", "snaptime": NOW - 3 * DAY},
                {"name": "current", "running": 1, "parent": "before", "snaptime": NOW - 300 * DAY},
            ],
            "101": [{"name": "current"}],
            "900": [{"name": "current"}],
        },
        "configs": {
            "100": {"scsi0": "local-lvm:vm-100-disk-0,size=8G", "onboot": 1, "memory": "4096", "agent": "1"},
            "101": {"rootfs": "local-lvm:vm-101-disk-0,size=4G", "onboot": "1", "memory": 512},
            "900": {"scsi0": "local-lvm:base-900-disk-0,size=8G", "template": 1, "onboot": 0},
        },
        "replication": {"pve1": [], "pve2": []},
        "certificates": {
            "pve1": [{"filename": "pve-ssl.pem", "notafter": NOW + 400 * DAY}],
            "pve2": [{"filename": "pve-ssl.pem", "notafter": NOW + 400 * DAY}],
        },
        "disks": {
            "pve1": [{"devpath": "/dev/sda", "health": "PASSED", "wearout": 97}],
            "pve2": [{"devpath": "/dev/sda", "health": "UNKNOWN", "wearout": "N/A"}],
        },
        "thin_pools": {
            "pve1": [{"vg": "pve", "lv": "data", "used": 100 * GIB, "lv_size": 289 * GIB,
                      "metadata_used": 10, "metadata_size": 100}],
            "pve2": [],
        },
        "updates": {"pve1": [], "pve2": []},
        "versions": {
            "pve1": [{"Package": "proxmox-ve", "RunningKernel": "6.17.2-1-pve", "CurrentState": "Installed"},
                     {"Package": "proxmox-kernel-6.17.2-1-pve-signed", "CurrentState": "Installed"}],
            "pve2": [{"Package": "proxmox-ve", "RunningKernel": "6.17.10-1-pve", "CurrentState": "Installed"},
                     {"Package": "proxmox-kernel-6.17.2-1-pve-signed", "CurrentState": "Installed"}],
        },
        "ha": [
            {"id": "quorum", "type": "quorum", "node": "pve1", "status": "OK", "quorate": 1},
            {"id": "service:vm:100", "sid": "vm:100", "type": "service", "node": "pve1",
             "state": "started", "status": "vm:100 (pve1, started)"},
        ],
    })
}

/// An answer, or the error that stands in its place as `{"error": "…"}`.
fn ask(value: &Value) -> Result<Value, Error> {
    match value.get("error").and_then(Value::as_str) {
        Some(message) => Err(Error::new(Code::Forbidden, message)),
        None => Ok(value.clone()),
    }
}

/// The snapshot that the answers make.
pub fn build(api: &Value) -> Estate {
    let mut estate = Estate::new(NOW);
    let of = |name: &str| ask(&api[name]);
    let each = |name: &str| {
        let map = api[name].as_object().cloned().unwrap_or_default();
        map.into_iter().map(|(key, value)| (key, ask(&value))).collect::<Vec<_>>()
    };
    estate.read_rights(of("rights").as_ref());
    estate.read_resources(of("resources").as_ref());
    estate.read_cluster_status(of("status").as_ref());
    estate.read_jobs(of("jobs").as_ref());
    estate.read_tasks(of("tasks").as_ref());
    estate.read_ha(of("ha").as_ref());
    for (node, answer) in each("node_storage") {
        estate.read_node_storage(&node, answer.as_ref());
    }
    for (key, answer) in each("content") {
        let (node, storage) = key.split_once('/').unwrap();
        estate.read_content(node, storage, answer.as_ref());
    }
    for (key, answer) in each("snapshots") {
        estate.read_snapshots(Vmid::parse(&key).unwrap(), answer.as_ref());
    }
    for (key, answer) in each("configs") {
        let kind = if key == "101" { GuestKind::Lxc } else { GuestKind::Qemu };
        estate.read_config(Vmid::parse(&key).unwrap(), kind, answer.as_ref());
    }
    for (node, answer) in each("replication") {
        estate.read_replication(&node, answer.as_ref());
    }
    for (node, answer) in each("certificates") {
        estate.read_certificates(&node, answer.as_ref());
    }
    for (node, answer) in each("disks") {
        estate.read_disks(&node, answer.as_ref());
    }
    for (node, answer) in each("thin_pools") {
        estate.read_thin_pools(&node, answer.as_ref());
    }
    for (node, answer) in each("updates") {
        let versions = ask(&api["versions"][&node]);
        estate.read_updates(&node, answer.as_ref(), versions.as_ref());
    }
    estate
}
