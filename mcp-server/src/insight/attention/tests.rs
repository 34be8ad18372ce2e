use serde_json::{Value, json};

use super::{Attention, Finding, MOST, attention};
use crate::insight::{
    estate::{Estate, Storage, unique},
    fixture::{DAY, GIB, HOUR, NOW, build, healthy, vmid},
};

mod unseen;

/// The healthy estate after a change to its answers.
fn judged(change: impl FnOnce(&mut Value)) -> Attention {
    let mut api = healthy();
    change(&mut api);
    attention(&build(&api), MOST)
}

fn guest_row(api: &mut Value, n: u64) -> &mut Value {
    let rows = api["resources"].as_array_mut().unwrap();
    let text = n.to_string();
    rows.iter_mut().find(|r| r["vmid"] == n || r["vmid"] == text.as_str()).unwrap()
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
            &["warning backup_failed: A backup job on pve1 failed 2 hours ago"],
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
    assert_eq!(found.findings[0].evidence["age_days"], 2.0);
    // An older task of its own tells more than a later job over all guests.
    let found = judged(|api| {
        guest_row(api, 100)["lock"] = json!("backup");
        let mut job = task("vzdump", "", HOUR, Some(HOUR / 2));
        (job["status"], job["upid"]) = (json!("OK"), json!("UPID:job"));
        api["tasks"] = json!([job, task("vzdump", "100", 2 * DAY, Some(DAY))]);
        api["content"]["pve1/nas"][0]["ctime"] = json!(NOW - HOUR);
    });
    assert_eq!(
        lines(&found),
        ["warning guest_locked: VM 100 db is locked (backup) and no task works on it"]
    );
    let evidence = &found.findings[0].evidence;
    assert_eq!((&evidence["lock"], &evidence["age_days"]), (&json!("backup"), &json!(2.0)));
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

#[test]
fn content_is_read_once_where_it_can_be() {
    let mut api = healthy();
    // On pve1 the share is not mounted, on pve2 it is.
    api["resources"][7]["status"] = json!("unknown");
    api["node_storage"]["pve2"] = json!([
        {"storage": "local-lvm", "active": "1", "enabled": 0, "content": "images"},
        {"storage": "iso", "active": 1, "enabled": 1, "content": "iso,vztmpl", "type": "dir"},
        {"storage": "dump", "active": 1, "enabled": 1, "content": "iso,backup", "type": "dir"},
    ]);
    let keys: Vec<String> =
        build(&api).content_to_read().iter().map(|k| format!("{}/{}", k.node, k.storage)).collect();
    assert_eq!(keys, ["pve2/dump", "pve1/local-lvm", "pve2/nas"]);
}
