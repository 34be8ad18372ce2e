use serde_json::{Value, json};

use super::{Attention, Finding, MOST, attention};
use crate::{
    Code, Error,
    insight::estate::{Estate, GuestKind, Storage, unique},
    pve::Vmid,
};

/// Monday 30 November 2026, 12:00 UTC.
const NOW: i64 = 1_796_040_000;
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
const GIB: u64 = 1 << 30;

fn vmid(n: u64) -> Vmid {
    Vmid::new(n).unwrap()
}

/// What the API says of a small estate in which all is well. Numbers come as
/// numbers and as text, as they do.
fn healthy() -> Value {
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

fn build(api: &Value) -> Estate {
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

/// The healthy estate after a change to its answers.
fn judged(change: impl FnOnce(&mut Value)) -> Attention {
    let mut api = healthy();
    change(&mut api);
    attention(&build(&api), MOST)
}

fn guest_row(api: &mut Value, n: u64) -> &mut Value {
    let rows = api["resources"].as_array_mut().unwrap();
    rows.iter_mut().find(|r| r["vmid"] == n || r["vmid"] == n.to_string()).unwrap()
}

fn line(finding: &Finding) -> String {
    let severity = serde_json::to_value(finding.severity).unwrap();
    format!("{} {}: {}", severity.as_str().unwrap(), finding.code, finding.what)
}

fn lines(found: &Attention) -> Vec<String> {
    found.findings.iter().map(line).collect()
}

fn unknown(found: &Attention) -> Vec<String> {
    found.unknown.iter().map(|u| format!("{}: {}", u.what, u.why)).collect()
}

#[test]
fn an_estate_in_which_all_is_well_has_no_findings() {
    let found = judged(|_| {});
    assert_eq!(lines(&found), Vec::<String>::new());
    assert_eq!(unknown(&found), Vec::<String>::new());
    assert_eq!((found.more, found.counts), (0, super::Counts::default()));
}

type Case = (fn(&mut Value), &'static [&'static str]);

fn check(cases: &[Case]) {
    for (i, (change, expected)) in cases.iter().enumerate() {
        let found = judged(*change);
        assert_eq!(lines(&found), *expected, "case {i}");
        for finding in &found.findings {
            assert!(!finding.next.is_empty(), "{}", finding.code);
            assert!(
                !finding.evidence.is_empty() || finding.code == "no_backup_job",
                "{}",
                finding.code
            );
        }
    }
}

#[test]
fn backups() {
    check(&[
        (
            |api| {
                api["jobs"][0] =
                    json!({"id": "nightly", "vmid": "101", "schedule": "21:00", "storage": "nas"})
            },
            &["warning no_backup_job: VM 100 db is in no backup job"],
        ),
        (
            |api| api["jobs"][0]["exclude"] = json!("101"),
            &[
                "warning no_backup_job: container 101 dns is in no backup job that takes it: job nightly excludes it",
            ],
        ),
        (
            |api| api["content"]["pve1/nas"][0]["ctime"] = json!(NOW - 62 * HOUR),
            &[
                "warning backup_overdue: The last good backup of VM 100 db is 2 days old, but job nightly runs 21:00",
            ],
        ),
        // Not older than twice its schedule.
        (|api| api["content"]["pve1/nas"][0]["ctime"] = json!(NOW - 39 * HOUR), &[]),
        // Two nights were missed, but 47 hours are not twice a day.
        (
            |api| {
                api["content"]["pve1/nas"][0]["ctime"] = json!(NOW - 47 * HOUR);
                api["jobs"][0]["schedule"] = json!("11:30");
            },
            &[],
        ),
        // Friday's backup is not late on Monday, last Thursday's on Tuesday's eve is.
        (
            |api| {
                api["jobs"][0]["schedule"] = json!("mon..fri 22:30");
                api["content"]["pve1/nas"][0]["ctime"] = json!(NOW - 61 * HOUR);
            },
            &[],
        ),
        (
            |api| {
                api["jobs"][0]["schedule"] = json!("mon..fri 22:30");
                api["content"]["pve1/nas"][0]["ctime"] = json!(NOW - 5 * DAY);
            },
            &[
                "warning backup_overdue: The last good backup of VM 100 db is 5 days old, but job nightly runs mon..fri 22:30",
            ],
        ),
        // A broken backup does not count.
        (
            |api| api["content"]["pve1/nas"][1]["verification"] = json!({"state": "failed"}),
            &[
                "warning never_backed_up: container 101 dns is in backup job nightly but storage nas holds no backup of it",
            ],
        ),
        (
            |api| api["content"]["pve1/nas"] = json!([]),
            &[
                "warning never_backed_up: VM 100 db is in backup job nightly but storage nas holds no backup of it",
                "warning never_backed_up: container 101 dns is in backup job nightly but storage nas holds no backup of it",
            ],
        ),
        // Made after the last run: not late yet.
        (
            |api| {
                api["content"]["pve1/nas"].as_array_mut().unwrap().remove(0);
                api["configs"]["100"]["meta"] =
                    json!(format!("creation-qemu=10.1.2,ctime={}", NOW - HOUR));
            },
            &[],
        ),
        (
            |api| api["configs"]["100"]["scsi1"] = json!("local-lvm:vm-100-disk-1,backup=0"),
            &["info backup_partial: VM 100 db is not in the backup: scsi1"],
        ),
        (
            |api| api["jobs"][0]["schedule"] = json!("2020-01-01 00:00"),
            &[
                "warning backup_job_never_runs: Backup job nightly never runs again: its schedule is 2020-01-01 00:00",
            ],
        ),
        (
            |api| {
                let gone =
                    json!({"id": "more", "vmid": "100,777", "schedule": "daily", "storage": "nas"});
                api["jobs"].as_array_mut().unwrap().push(gone);
            },
            &["info backup_job_stale: Backup job more names guests that do not exist"],
        ),
    ]);
}

#[test]
fn failed_backup_tasks() {
    fn task(id: &str, ago: i64, status: &str) -> Value {
        json!({
            "upid": format!("UPID:pve1:0000000{}:0:0:vzdump:{id}:root@pam:", ago / HOUR), "node": "pve1",
            "type": "vzdump", "id": id, "starttime": NOW - ago - HOUR, "endtime": NOW - ago, "status": status,
        })
    }
    fn push(api: &mut Value, task: Value) {
        api["tasks"].as_array_mut().unwrap().push(task);
    }
    check(&[
        (
            |api| push(api, task("", 2 * HOUR, "job errors")),
            &["warning backup_failed: A backup on pve1 failed 2 hours ago"],
        ),
        // A good run after it makes it good; an older failure of another guest stays.
        (|api| push(api, task("", 20 * HOUR, "job errors")), &[]),
        (|api| push(api, task("100", 20 * HOUR, "no space left")), &[]),
        (
            |api| push(api, task("100", 10 * HOUR, "no space left")),
            &["warning backup_failed: A backup of VM 100 db on pve1 failed 10 hours ago"],
        ),
        (|api| push(api, task("", HOUR, "WARNINGS: 2")), &[]),
        (|api| push(api, task("999", 8 * DAY, "no such guest")), &[]),
        // It still runs.
        (
            |api| {
                push(
                    api,
                    json!({"upid": "U", "node": "pve1", "type": "vzdump", "id": "", "starttime": NOW - 60}),
                )
            },
            &[],
        ),
    ]);
}

#[test]
fn guests() {
    check(&[
        (
            |api| guest_row(api, 100)["status"] = json!("stopped"),
            &["critical production_stopped: VM 100 db is tagged as production and is stopped"],
        ),
        (
            |api| {
                guest_row(api, 100)["status"] = json!("paused");
                guest_row(api, 100)["tags"] = json!("web Production");
            },
            &["critical production_stopped: VM 100 db is tagged as production and is paused"],
        ),
        // `products` is not `prod`.
        (
            |api| {
                guest_row(api, 100)["status"] = json!("stopped");
                guest_row(api, 100)["tags"] = json!("products,non-prod");
            },
            &[
                "warning onboot_stopped: VM 100 db is to start with its node (onboot) and is stopped",
            ],
        ),
        (
            |api| {
                guest_row(api, 101)["status"] = json!("stopped");
                api["configs"]["101"]["onboot"] = json!("0");
            },
            &[],
        ),
        (
            |api| guest_row(api, 101)["mem"] = json!((500_u64 << 20).to_string()),
            &["warning guest_memory: container 101 dns is short of memory: 97.7 % in use"],
        ),
        (
            |api| guest_row(api, 100)["mem"] = json!(4 * GIB),
            &[
                "warning guest_memory: VM 100 db is short of memory: 100 % in use (a VM's figure can hold its \
               file cache: look inside)",
            ],
        ),
        (
            |api| {
                guest_row(api, 100)["mem"] = json!(4 * GIB);
                api["configs"]["100"]["balloon"] = json!(1024);
            },
            &[
                "warning guest_memory: VM 100 db is short of memory: 100 % in use (the VM may have given \
               memory back by its balloon)",
            ],
        ),
        // A stopped guest uses none, whatever the row says.
        (
            |api| {
                guest_row(api, 101)["mem"] = json!(512 << 20);
                guest_row(api, 101)["status"] = json!("stopped");
                api["configs"]["101"]["onboot"] = json!(0);
            },
            &[],
        ),
        (
            |api| api["snapshots"]["100"][0]["snaptime"] = json!(NOW - 96 * DAY),
            &["warning old_snapshot: VM 100 db has a snapshot that is 96 days old: before"],
        ),
        (|api| api["snapshots"]["100"][0]["snaptime"] = json!(NOW - 30 * DAY), &[]),
        (
            |api| {
                api["snapshots"]["100"][0]["snaptime"] = json!((NOW - 40 * DAY).to_string());
                let older = json!({"name": "first", "snaptime": NOW - 50 * DAY});
                api["snapshots"]["100"].as_array_mut().unwrap().push(older);
            },
            &["warning old_snapshot: VM 100 db has 2 old snapshots, the oldest 50 days old: first"],
        ),
        (
            |api| api["configs"]["100"]["unused0"] = json!("local-lvm:vm-100-disk-7"),
            &["info unused_disk: VM 100 db has disks that it does not use"],
        ),
    ]);
}

#[test]
fn locks() {
    fn task(kind: &str, id: &str, ago: i64, end: Option<i64>) -> Value {
        let mut task = json!({"upid": "UPID:x", "node": "pve1", "type": kind, "id": id, "starttime": NOW - ago});
        if let Some(end) = end {
            task["endtime"] = json!(NOW - end);
            task["status"] = json!("interrupted");
        }
        task
    }
    check(&[
        (
            |api| guest_row(api, 100)["lock"] = json!("migrate"),
            &["warning guest_locked: VM 100 db is locked (migrate) and no task works on it"],
        ),
        // Its own task, and a job over all guests, explain it.
        (
            |api| {
                guest_row(api, 100)["lock"] = json!("migrate");
                api["tasks"] = json!([task("qmigrate", "100", HOUR, None)]);
            },
            &[],
        ),
        (
            |api| {
                guest_row(api, 100)["lock"] = json!("backup");
                api["tasks"] = json!([task("vzdump", "", HOUR, None)]);
            },
            &[],
        ),
        (
            |api| {
                guest_row(api, 100)["lock"] = json!("snapshot");
                api["tasks"] = json!([task("qmsnapshot", "100", 3 * DAY, None)]);
            },
            &[
                "warning guest_locked: VM 100 db has been locked (snapshot) by a running task for 3 days",
            ],
        ),
        (|api| guest_row(api, 100)["lock"] = json!("suspended"), &[]),
    ]);
    let found = judged(|api| {
        guest_row(api, 100)["lock"] = json!("rollback");
        api["tasks"] = json!([task("qmrollback", "100", 2 * DAY, Some(DAY))]);
    });
    let evidence = &found.findings[0].evidence;
    assert_eq!((&evidence["lock"], &evidence["age_days"]), (&json!("rollback"), &json!(2.0)));
    assert!(found.findings[0].next.contains("`qm unlock 100` on pve1"));
}

#[test]
fn storages() {
    check(&[
        (
            |api| api["resources"][7]["disk"] = json!(850 * GIB),
            &["warning storage_filling: Storage nas is nearly full: 85 % in use"],
        ),
        (|api| api["resources"][7]["disk"] = json!(849 * GIB), &[]),
        (
            |api| api["resources"][5]["disk"] = json!((280 * GIB).to_string()),
            &["critical storage_full: Thin pool storage local-lvm on pve1 is full: 96.9 % in use"],
        ),
        (
            |api| api["thin_pools"]["pve1"][0]["metadata_used"] = json!(86),
            &[
                "warning thin_metadata_filling: The metadata of thin pool pve/data on pve1 is nearly full: 86 % in use",
            ],
        ),
        (
            |api| {
                api["thin_pools"]["pve2"] =
                    json!([{"vg": "fast", "lv": "tp", "used": 99, "lv_size": "100"}])
            },
            &["critical storage_full: Thin pool fast/tp on pve2 is full: 99 % in use"],
        ),
        (
            |api| api["resources"][1]["disk"] = json!(90 * GIB),
            &["warning root_filling: The root file system of pve2 is nearly full: 90 % in use"],
        ),
    ]);
}

#[test]
fn orphaned_disks() {
    fn volume(volid: &str, owner: u64) -> Value {
        json!({"volid": volid, "content": "images", "vmid": owner, "size": GIB})
    }
    fn push(api: &mut Value, key: &str, volume: Value) {
        api["content"][key].as_array_mut().unwrap().push(volume);
    }
    check(&[
        (
            |api| push(api, "pve1/local-lvm", volume("local-lvm:vm-555-disk-0", 555)),
            &[
                "warning orphaned_disk: local-lvm:vm-555-disk-0 belongs to guest 555, which does not exist",
            ],
        ),
        (
            |api| push(api, "pve2/local-lvm", volume("local-lvm:vm-101-disk-9", 101)),
            &[
                "warning orphaned_disk: local-lvm:vm-101-disk-9 is used by nobody: container 101 dns does not name it",
            ],
        ),
        // The guest has a snapshot, whose disks its configuration does not show.
        (|api| push(api, "pve1/local-lvm", volume("local-lvm:vm-100-state-before", 100)), &[]),
        // CD drives, unused disks and linked clones are named.
        (
            |api| {
                api["snapshots"]["100"] = json!([]);
                api["configs"]["100"]["ide2"] = json!("local-lvm:vm-100-cloudinit,media=cdrom");
                api["configs"]["100"]["scsi3"] =
                    json!("local-lvm:base-900-disk-0/vm-100-disk-3,size=1G");
                push(api, "pve1/local-lvm", volume("local-lvm:vm-100-cloudinit", 100));
                push(api, "pve1/local-lvm", volume("local-lvm:vm-100-disk-3", 100));
            },
            &[],
        ),
        (
            |api| push(api, "pve2/local-lvm", volume("local-lvm:vm-100-disk-0", 100)),
            &[
                "warning orphaned_disk: local-lvm:vm-100-disk-0 is used by nobody: a copy on pve2, but the guest is on pve1",
            ],
        ),
        // A replica belongs there.
        (
            |api| {
                push(api, "pve2/local-lvm", volume("local-lvm:vm-100-disk-0", 100));
                api["replication"]["pve1"] =
                    json!([{"id": "100-0", "guest": "100", "target": "pve2", "fail_count": 0}]);
            },
            &[],
        ),
    ]);
}

#[test]
fn nodes_and_cluster() {
    check(&[
        (
            |api| api["status"][0]["quorate"] = json!("0"),
            &[
                "critical quorum_lost: The cluster acme has no quorum: nothing can be changed or started",
            ],
        ),
        (
            |api| api["resources"][0]["mem"] = json!(31 * GIB),
            &["warning node_memory: Node pve1 is short of memory: 96.9 % in use"],
        ),
        (
            |api| api["certificates"]["pve2"][0]["notafter"] = json!(NOW + 12 * DAY),
            &["warning certificate_expiring: Certificate pve-ssl.pem of pve2 ends in 12 days"],
        ),
        (
            |api| api["certificates"]["pve2"][0]["notafter"] = json!(NOW - DAY),
            &["critical certificate_expired: Certificate pve-ssl.pem of pve2 ended 1 day ago"],
        ),
        (|api| api["certificates"]["pve2"][0]["notafter"] = json!(NOW + 30 * DAY), &[]),
        (
            |api| api["disks"]["pve1"][0]["health"] = json!("FAILED!"),
            &["critical disk_failing: Disk /dev/sda of pve1 says of itself: FAILED!"],
        ),
        (
            |api| api["disks"]["pve1"][0]["wearout"] = json!("7"),
            &["warning disk_worn: Disk /dev/sda of pve1 is worn: 7 % of its life left"],
        ),
        (
            |api| {
                let newer = json!({"Package": "proxmox-kernel-6.17.10-1-pve-signed", "CurrentState": "Installed"});
                api["versions"]["pve1"].as_array_mut().unwrap().push(newer);
            },
            &[
                "warning kernel_not_booted: Node pve1 has not started its newest kernel 6.17.10-1-pve yet",
            ],
        ),
        (
            |api| api["updates"]["pve1"] = json!([{"Package": "qemu-server"}]),
            &["info updates_pending: Node pve1: 1 package update pending"],
        ),
        (
            |api| {
                api["replication"]["pve1"] = json!([
                    {"id": "100-0", "guest": 100, "target": "pve2", "fail_count": "3", "error": "no route to host\n"},
                    {"id": "101-0", "guest": 101, "target": "pve1", "fail_count": 1, "disable": 1},
                ]);
            },
            &["warning replication_error: Replication 100-0 from pve1 to pve2 fails"],
        ),
        (
            |api| api["ha"][1]["state"] = json!("error"),
            &["critical ha_error: High availability: vm:100 on pve1 is in state error"],
        ),
        (
            |api| {
                let dead = json!({"id": "lrm:pve2", "type": "lrm", "node": "pve2", "status": "pve2 (old timestamp - dead?, Mon)"});
                api["ha"].as_array_mut().unwrap().push(dead);
            },
            &["warning ha_silent: High availability: the lrm of pve2 does not report"],
        ),
    ]);
}

#[test]
fn a_node_that_is_down_does_not_spoil_the_rest() {
    let found = judged(|api| {
        api["resources"][1] = json!({"type": "node", "node": "pve2", "status": "offline"});
        api["resources"][6] = json!({"type": "storage", "storage": "local-lvm", "node": "pve2", "plugintype": "lvmthin",
            "status": "unknown", "content": "images"});
        api["resources"][8]["status"] = json!("unknown");
        guest_row(api, 101)["status"] = json!("unknown");
        let gone = json!({"error": "node pve2 cannot be reached (595)"});
        for part in ["certificates", "disks", "thin_pools", "updates", "replication"] {
            api[part]["pve2"] = gone.clone();
        }
        api["content"]["pve2/local-lvm"] = gone.clone();
        api["snapshots"]["101"] = gone.clone();
        api["configs"]["101"] = gone;
    });
    assert_eq!(lines(&found), ["critical node_offline: Node pve2 is offline"]);
    assert_eq!(found.findings[0].evidence["guests"], 1);
    assert_eq!(
        unknown(&found),
        [
            "everything on node pve2: the node is offline",
            "volumes of local-lvm on pve2: storage local-lvm on pve2 does not answer",
        ]
    );
}

#[test]
fn an_auditor_sees_no_backups_and_is_told_so() {
    let found = judged(|api| {
        api["rights"] = json!({"/": {"Sys.Audit": 1, "VM.Audit": 1, "Datastore.Audit": 1}});
        // What the node answers: 200 and empty lists.
        for storage in ["pve1/nas", "pve1/local-lvm", "pve2/local-lvm"] {
            api["content"][storage] = json!([]);
        }
    });
    assert_eq!(lines(&found), Vec::<String>::new());
    assert_eq!(
        unknown(&found),
        [
            "backups of 100, 101: the token lacks Datastore.AllocateSpace on /storage/nas and VM.Backup on the guest",
            "volumes of local-lvm on pve1, local-lvm on pve2: the token lacks Datastore.Allocate on /storage/local-lvm",
        ]
    );
}

#[test]
fn a_token_without_rights_sees_nothing_and_nothing_is_called_well() {
    let denied = || json!({"error": "the token lacks Sys.Audit on /"});
    let found = judged(|api| {
        *api = json!({
            "rights": {}, "resources": [{"type": "node", "node": "pve1", "status": "online"}], "status": denied(),
            "jobs": denied(), "tasks": [], "ha": denied(),
        });
    });
    assert_eq!(lines(&found), Vec::<String>::new());
    let unknown = unknown(&found);
    let expected = [
        "backup jobs: the token lacks Sys.Audit on /",
        "guests: 0 guests visible: the token lacks VM.Audit on /vms",
        "high availability: the token lacks Sys.Audit on /",
        "quorum: the token lacks Sys.Audit on /",
        "storages: 0 storages visible: the token lacks Datastore.Audit on /storage",
        "certificates of pve1: not read",
    ];
    for start in expected {
        assert!(unknown.iter().any(|u| u.starts_with(start)), "{start:?} is not in {unknown:#?}");
    }
}

#[test]
fn a_token_for_one_guest_does_not_call_other_volumes_orphans() {
    let found = judged(|api| {
        api["rights"] = json!({
            "/vms/100": {"VM.Audit": 1, "VM.Backup": 1},
            "/storage": {"Datastore.Allocate": 1, "Datastore.Audit": 1}, "/nodes": {"Sys.Audit": 1},
        });
        let rows = api["resources"].as_array_mut().unwrap();
        rows.retain(|r| r.get("vmid").is_none_or(|v| v == 100));
    });
    assert_eq!(lines(&found), Vec::<String>::new());
    let unknown = unknown(&found);
    assert!(
        unknown.contains(&"further guests: the token lacks VM.Audit on all of /vms".to_owned()),
        "{unknown:#?}"
    );
    assert!(
        unknown.iter().any(|u| u.starts_with("orphaned volumes of local-lvm on pve1")),
        "{unknown:#?}"
    );
}

#[test]
fn a_dead_storage_spoils_only_what_lies_on_it() {
    let found = judged(|api| {
        for row in [7, 8] {
            api["resources"][row]["status"] = json!("unknown");
            api["resources"][row]["disk"] = json!(0);
        }
        api["content"]["pve1/nas"] = json!({"error": "no answer in time"});
        let push = json!({"volid": "local-lvm:vm-555-disk-0", "content": "images", "vmid": 555, "size": GIB});
        api["content"]["pve1/local-lvm"].as_array_mut().unwrap().push(push);
    });
    assert_eq!(
        lines(&found),
        [
            "warning storage_offline: Storage nas does not answer",
            "warning orphaned_disk: local-lvm:vm-555-disk-0 belongs to guest 555, which does not exist",
        ]
    );
    assert_eq!(unknown(&found), ["backups of 100, 101: storage nas does not answer"]);

    // Disabled by its owner: no alarm, but the backups are still not seen.
    let found = judged(|api| {
        for node in ["pve1", "pve2"] {
            api["node_storage"][node] =
                json!([{"storage": "nas", "enabled": 0, "active": 0, "shared": 1}]);
        }
    });
    assert_eq!(lines(&found), Vec::<String>::new());
    // The last backups that were read are fresh, so nothing is unknown of them.
    assert_eq!(unknown(&found), Vec::<String>::new());
}

#[test]
fn one_storage_id_on_two_nodes_is_two_storages() {
    let estate = build(&healthy());
    let rows: Vec<(String, Option<u64>)> =
        unique(estate.storages.rows()).into_iter().map(|s| (s.title(), s.total)).collect();
    assert_eq!(
        rows,
        [
            ("local-lvm on pve1".to_owned(), Some(289 * GIB)),
            ("local-lvm on pve2".to_owned(), Some(1760 * GIB)),
            ("nas".to_owned(), Some(1000 * GIB)),
        ]
    );
    let sum: u64 = unique(estate.storages.rows()).iter().filter_map(|s: &&Storage| s.total).sum();
    assert_eq!(sum, 3049 * GIB);
}

#[test]
fn tags_are_sets() {
    let mut rows = healthy()["resources"].clone();
    for tags in ["prod;db", "db,prod", "db prod", "DB;prod"] {
        rows[2]["tags"] = json!(tags);
        let mut estate = Estate::new(NOW);
        estate.read_resources(Ok(&rows));
        let guest = estate.guest(vmid(100)).unwrap();
        assert_eq!(guest.tags(), ["db", "prod"], "{tags}");
        assert!(guest.has_tag("prod") && guest.has_tag("Prod") && !guest.has_tag("pro"), "{tags}");
    }
}

#[test]
fn the_worst_come_first_and_the_rest_is_counted() {
    let found = judged(|api| {
        let rows = api["resources"].as_array_mut().unwrap();
        for n in (200..220).rev() {
            rows.push(
                json!({"type": "lxc", "vmid": n, "node": "pve2", "name": "x", "status": "running"}),
            );
        }
        api["jobs"][0]["exclude"] =
            json!((200..220).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
        api["status"][0]["quorate"] = json!(0);
        guest_row(api, 100)["status"] = json!("stopped");
        api["updates"]["pve1"] = json!([{"Package": "qemu-server"}]);
        for n in 200..220 {
            api["configs"][n.to_string()] = json!({});
            api["snapshots"][n.to_string()] = json!([]);
        }
    });
    let order: Vec<_> = found.findings.iter().map(|f| (f.code, f.vmid.map(|v| v.get()))).collect();
    assert_eq!(
        order[..3],
        [("quorum_lost", None), ("production_stopped", Some(100)), ("no_backup_job", Some(200))]
    );
    assert_eq!((order.len(), order[14]), (MOST, ("no_backup_job", Some(212))));
    assert_eq!(found.more, 8);
    assert_eq!(json!(found.more_by_code), json!({"no_backup_job": 7, "updates_pending": 1}));
    assert_eq!(json!(found.counts), json!({"critical": 2, "warning": 20, "info": 1}));
}

#[test]
fn a_finding_says_its_numbers_and_the_next_step() {
    let found = judged(|api| {
        api["content"]["pve1/nas"][0]["ctime"] = json!(NOW - 5 * DAY);
    });
    assert_eq!(
        json!(found.findings[0]),
        json!({
            "severity": "warning", "code": "backup_overdue", "vmid": 100, "node": "pve1", "storage": "nas",
            "what": "The last good backup of VM 100 db is 5 days old, but job nightly runs 21:00",
            "evidence": {
                "age_days": 5.0, "interval_days": 1.0, "last_backup": "2026-11-25T12:00:00+00:00",
                "job": "nightly", "schedule": "21:00",
            },
            "next": "See why it fails: pve_list_tasks type=vzdump; then pve_backup_create vmid=100 storage=nas",
        })
    );
}
