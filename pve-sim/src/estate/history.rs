//! What happened: backups, jobs, failures, replication, HA, tasks, the cluster log.

use serde_json::{Map, Value, json};

use super::build::{DAY, GIB, HOUR, map};
use crate::handlers::{backup, calendar};
use crate::state::State;
use crate::state::firewall::Firewall;
use crate::state::guest::{Guest, Kind};
use crate::state::rrd::noise;
use crate::state::storage::Volume;
use crate::state::task::Past;

pub(super) fn fill(state: &mut State) {
    jobs(state);
    backups(state);
    job_tasks(state);
    tasks(state);
    high_availability(state);
    network(state);
    log(state);
}

fn jobs(state: &mut State) {
    for (id, job) in [
        (
            "prod-nightly",
            json!({"schedule": "02:00", "storage": "pbs-main", "pool": "produktion", "mode": "snapshot",
            "enabled": 1, "notes-template": "{{guestname}}", "comment": "Produktion, jede Nacht"}),
        ),
        (
            "office-evening",
            json!({"schedule": "mon..fri 22:30", "storage": "nfs-backup", "pool": "buero", "mode": "snapshot",
            "compress": "zstd", "enabled": 1, "prune-backups": {"keep-daily": "7", "keep-weekly": "4"}}),
        ),
        (
            "dev-weekly",
            json!({"schedule": "sat 03:00", "storage": "nfs-backup", "vmid": "118,120,121,215", "mode": "snapshot",
            "compress": "zstd", "enabled": 1}),
        ),
        (
            "dev-old",
            json!({"schedule": "sun 01:00", "storage": "nfs-backup", "vmid": "122,123", "mode": "stop",
            "enabled": 0, "comment": "ausgesetzt, bis der Speicher wächst"}),
        ),
    ] {
        let mut job = map(job);
        job.insert("id".to_owned(), json!(id));
        job.insert("type".to_owned(), json!("vzdump"));
        state.backup_jobs.insert(id.to_owned(), job);
    }
}

/// How long one run of a job takes, seconds.
const RUN: i64 = 2700;
/// The backups of this guest fail since so many runs.
const FAILING: (u32, usize) = (106, 6);

/// The runs of a job that are over, newest first, and its guests.
fn runs(state: &State, job: &Map<String, Value>) -> (Vec<i64>, Vec<u32>) {
    let schedule = job.get("schedule").and_then(Value::as_str).unwrap_or("");
    let over = calendar::runs_before(schedule, state.born - RUN, 30);
    (over, backup::guests_of(state, job).iter().map(|g| g.vmid).collect())
}

fn backups(state: &mut State) {
    let mut made = Vec::new();
    for job in state.backup_jobs.values().filter(|j| j.get("enabled").is_some_and(|e| *e == 1)) {
        let storage = job.get("storage").and_then(Value::as_str).unwrap_or("");
        let (times, ids) = runs(state, job);
        for guest in ids.iter().filter_map(|id| state.guests.get(id)) {
            let skip = if guest.vmid == FAILING.0 { FAILING.1 } else { 0 };
            for (n, run) in times.iter().skip(skip).take(4).enumerate() {
                let time = run + i64::from(guest.vmid % 45) * 60;
                let mut v = backup_of(guest, storage, time);
                v.protected = guest.vmid == 109 && n == 3;
                made.push(v);
            }
        }
    }
    state.volumes.extend(made);
}

fn backup_of(guest: &Guest, storage: &str, time: i64) -> Volume {
    let stamp = jiff::Timestamp::from_second(time).unwrap_or_default();
    let size = guest.max_disk() / 3 + (noise(&guest.name(), time) * GIB as f64) as u64;
    let pbs = storage.starts_with("pbs");
    let (short, ext) = if guest.kind == Kind::Qemu { ("vm", "vma.zst") } else { ("ct", "tar.zst") };
    let (name, format) = if pbs {
        let time = stamp.strftime("%Y-%m-%dT%H:%M:%SZ");
        (format!("backup/{short}/{}/{time}", guest.vmid), format!("pbs-{short}"))
    } else {
        let time = stamp.strftime("%Y_%m_%d-%H_%M_%S");
        (format!("backup/vzdump-{}-{}-{time}.{ext}", guest.kind.name(), guest.vmid), ext.to_owned())
    };
    let mut v = Volume::new(storage, &name, "backup", &format, size, time);
    v.vmid = Some(guest.vmid);
    v.subtype = Some(guest.kind.name());
    v.notes = Some(guest.name());
    v.verification = pbs.then(|| "ok".to_owned());
    v.config = Some(guest.config.iter().map(|(k, v)| format!("{k}: {v}\n")).collect());
    v
}

/// The tasks of the backup jobs: one for each node that has guests of the job.
fn job_tasks(state: &mut State) {
    let mut all = Vec::new();
    for job in state.backup_jobs.values().filter(|j| j.get("enabled").is_some_and(|e| *e == 1)) {
        let get = |name: &str| job.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
        let (times, ids) = runs(state, job);
        for (n, start) in times.into_iter().take(7).enumerate() {
            for node in state.nodes.keys() {
                let own: Vec<u32> = ids
                    .iter()
                    .copied()
                    .filter(|id| state.guests.get(id).is_some_and(|g| g.node == *node))
                    .collect();
                if own.is_empty() {
                    continue;
                }
                let failed = n < FAILING.1 && own.contains(&FAILING.0);
                all.push((start, node.clone(), job_log(&get("storage"), &own, failed), failed));
            }
        }
    }
    all.sort_by_key(|(start, ..)| *start);
    for (start, node, log, failed) in all {
        let exit = if failed { "job errors" } else { "OK" };
        state.tasks.past(Past {
            node: &node,
            kind: "vzdump",
            id: "",
            user: "root@pam",
            start,
            seconds: RUN - 60,
            exit,
            log,
        });
    }
}

fn job_log(storage: &str, ids: &[u32], failed: bool) -> Vec<String> {
    let mut log = vec![format!(
        "INFO: starting new backup job: vzdump --storage {storage} --mode snapshot --quiet 1"
    )];
    for id in ids {
        log.push(format!("INFO: Starting Backup of VM {id}"));
        if failed && *id == FAILING.0 {
            let why = "backup connect failed: command error: http upgrade request timed out";
            log.push(format!(
                "ERROR: Backup of VM {id} failed - VM {id} qmp command 'backup' failed - {why}"
            ));
        } else {
            log.push(format!("INFO: Finished Backup of VM {id} (00:03:21)"));
        }
    }
    log.push(format!(
        "INFO: Backup job finished {}",
        if failed { "with errors" } else { "successfully" }
    ));
    log
}

fn tasks(state: &mut State) {
    let now = state.born;
    let mut past = |node: &str,
                    kind: &str,
                    id: &str,
                    user: &str,
                    ago: i64,
                    seconds: i64,
                    exit: &str,
                    log: &[&str]| {
        let log = log.iter().map(|l| (*l).to_owned()).collect();
        state.tasks.past(Past { node, kind, id, user, start: now - ago, seconds, exit, log });
    };
    past(
        "pve1",
        "qmsnapshot",
        "118",
        "jmueller@pve",
        96 * DAY,
        4,
        "OK",
        &["snapshotting 'drive-scsi0' (local-lvm:vm-118-disk-0)"],
    );
    past("pve2", "qmdestroy", "131", "jmueller@pve", 143 * DAY, 2, "OK", &[]);
    past(
        "pve3",
        "qmstart",
        "112",
        "root@pam",
        31 * HOUR,
        11,
        "start failed: QEMU exited with code 1",
        &["kvm: -device virtio-net-pci: no memory for rx queue"],
    );
    past("pve3", "qmshutdown", "112", "aweiss@pve", 31 * HOUR + 300, 35, "OK", &[]);
    past(
        "pve2",
        "qmigrate",
        "101",
        "jmueller@pve",
        12 * DAY,
        74,
        "OK",
        &[
            "starting migration of VM 101 to node 'pve2' (10.20.1.12)",
            "migration finished successfully (duration 00:01:14)",
        ],
    );
    past("pve1", "aptupdate", "", "root@pam", 7 * HOUR, 9, "OK", &["starting apt-get update"]);
    past("pve2", "aptupdate", "", "root@pam", 7 * HOUR, 8, "OK", &["starting apt-get update"]);
    past("pve3", "aptupdate", "", "root@pam", 7 * HOUR, 12, "OK", &["starting apt-get update"]);
    past(
        "pve1",
        "vzcreate",
        "214",
        "aweiss@pve",
        60 * DAY,
        21,
        "WARNINGS: 1",
        &["WARN: Systemd 257 detected. You may need to enable nesting."],
    );
    past("pve2", "vncproxy", "104", "jmueller@pve", 3 * HOUR, 412, "OK", &[]);
    past("pve1", "qmreboot", "117", "jmueller@pve", 20 * DAY, 31, "OK", &[]);
    past(
        "pve2",
        "vzdump",
        "116",
        "root@pam",
        9 * HOUR + 1200,
        900,
        "interrupted by signal",
        &["INFO: Starting Backup of VM 116 (qemu)", "INFO: status: 41% (382.1 GiB of 932.0 GiB)"],
    );
}

fn high_availability(state: &mut State) {
    for (sid, wanted) in
        [("vm:100", "started"), ("vm:102", "started"), ("vm:104", "started"), ("ct:200", "started")]
    {
        let (kind, _) = sid.split_once(':').unwrap_or((sid, ""));
        let resource =
            json!({"sid": sid, "type": kind, "state": wanted, "max_restart": 1, "max_relocate": 1});
        state.ha_resources.insert(sid.to_owned(), map(resource));
    }
    let rule = json!({"rule": "db-auf-pve1", "type": "node-affinity", "resources": "vm:102", "nodes": "pve1:2,pve3:1", "strict": 0});
    state.ha_rules.insert("db-auf-pve1".to_owned(), map(rule));
    let now = state.born;
    for (id, guest, source, target, status) in [
        (
            "102-0",
            102,
            "pve1",
            "pve3",
            json!({"fail_count": 0, "last_sync": now - 412, "last_try": now - 412, "duration": 7.3, "next_sync": now + 488}),
        ),
        (
            "109-0",
            109,
            "pve2",
            "pve1",
            json!({"fail_count": 14, "last_sync": now - 3 * DAY, "last_try": now - 1700, "duration": 2.1,
            "next_sync": now + 1900, "error": "command 'zfs send -Rpv -- rpool/data/vm-109-disk-1@__replicate_109-0' failed: out of space on target"}),
        ),
    ] {
        let job = json!({"id": id, "type": "local", "guest": guest, "jobnum": 0, "source": source, "target": target,
            "schedule": "*/15", "_state": status});
        state.replication.insert(id.to_owned(), map(job));
    }
}

fn network(state: &mut State) {
    let rule = |v: serde_json::Value| map(v);
    let cluster = Firewall {
        rules: vec![
            rule(json!({"type": "group", "action": "verwaltung", "enable": 1})),
            rule(
                json!({"type": "in", "action": "ACCEPT", "macro": "Ping", "enable": 1, "log": "nolog"}),
            ),
            rule(
                json!({"type": "in", "action": "DROP", "source": "+dc/gesperrt", "enable": 1, "comment": "Sperrliste"}),
            ),
        ],
        options: map(json!({"enable": 1, "policy_in": "DROP", "policy_out": "ACCEPT"})),
        ..Firewall::default()
    };
    state.firewalls.insert("cluster".to_owned(), cluster);
    let group = Firewall {
        rules: vec![
            rule(
                json!({"type": "in", "action": "ACCEPT", "macro": "SSH", "source": "dc/admin-netz", "enable": 1}),
            ),
            rule(
                json!({"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "8006", "source": "dc/admin-netz", "enable": 1}),
            ),
        ],
        comment: "Zugriff der Verwaltung".to_owned(),
        ..Firewall::default()
    };
    state.firewalls.insert("group/verwaltung".to_owned(), group);
    if let Some(fw) = state.firewalls.get_mut("cluster") {
        fw.aliases.insert(
            "admin-netz".to_owned(),
            map(json!({"cidr": "10.20.99.0/24", "comment": "Admin-VLAN"})),
        );
        let set = crate::state::firewall::IpSet {
            comment: String::new(),
            entries: vec![map(json!({"cidr": "203.0.113.0/24"}))],
        };
        fw.ipsets.insert("gesperrt".to_owned(), set);
    }
    let web = Firewall {
        rules: vec![
            rule(json!({"type": "in", "action": "ACCEPT", "macro": "HTTPS", "enable": 1})),
            rule(json!({"type": "in", "action": "ACCEPT", "macro": "HTTP", "enable": 0})),
        ],
        options: map(json!({"enable": 1, "dhcp": 1})),
        ..Firewall::default()
    };
    for vmid in [100, 101] {
        state.firewalls.insert(format!("guest/{vmid}"), web.clone());
    }
    for (kind, id, value) in [
        ("zones", "lan", json!({"zone": "lan", "type": "vlan", "bridge": "vmbr0", "ipam": "pve"})),
        (
            "vnets",
            "gaeste",
            json!({"vnet": "gaeste", "zone": "lan", "tag": 60, "alias": "Gäste-WLAN", "type": "vnet"}),
        ),
    ] {
        state
            .sdn
            .running
            .entry(kind.to_owned())
            .or_default()
            .insert(id.to_owned(), map(value.clone()));
        state.sdn.config.entry(kind.to_owned()).or_default().insert(id.to_owned(), map(value));
    }
    let lab = json!({"vnet": "labor", "zone": "lan", "tag": 61, "type": "vnet"});
    state.sdn.config.entry("vnets".to_owned()).or_default().insert("labor".to_owned(), map(lab));
}

fn log(state: &mut State) {
    let now = state.born;
    for (ago, user, tag, msg) in [
        (
            31 * HOUR,
            "root@pam",
            "pvedaemon",
            "end task UPID:pve3:00001A2B:0123ABCD:00000000:qmstart:112:root@pam: start failed: QEMU exited with code 1",
        ),
        (5 * HOUR, "root", "cluster", "member 3 left, rejoined"),
        (2 * HOUR, "jmueller@pve", "pvedaemon", "successful auth for user 'jmueller@pve'"),
        (40, "root@pam", "pvescheduler", "replication job 109-0 failed: out of space on target"),
    ] {
        state.note(now - ago, user, tag, msg.to_owned());
    }
}
