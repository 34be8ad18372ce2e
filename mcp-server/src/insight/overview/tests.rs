use serde_json::{Value, json};

use super::*;
use crate::insight::fixture::{DAY, GIB, HOUR, NOW, build, healthy};

#[test]
fn a_healthy_estate() {
    let mut estate = build(&healthy());
    let status =
        json!({"pveversion": "pve-manager/9.2.11/14a22df3", "kversion": "Linux 6.17.2-1-pve #1"});
    estate.read_node_status("pve1", Ok(&status));
    assert_eq!(
        serde_json::to_value(overview(&estate)).unwrap(),
        json!({
            "cluster": "acme", "quorate": true,
            "attention": "nothing found",
            "backups": "2 of 2 guests in a job",
            "nodes": [
                {"node": "pve1", "state": "online", "cpu_percent": 20, "mem_percent": 25, "uptime_s": 90000,
                 "version": "9.2.11"},
                {"node": "pve2", "state": "online", "cpu_percent": 10, "mem_percent": 13, "uptime_s": 90000},
            ],
            "guests": {"total": 2, "vms": {"running": 1}, "containers": {"running": 1}, "templates": 1},
            "busiest": [
                {"vmid": 100, "name": "db", "cpu_percent": 50, "mem_percent": 50},
                {"vmid": 101, "name": "dns", "cpu_percent": 1, "mem_percent": 20},
            ],
            "storages": [
                {"storage": "nas", "used_percent": 50, "free_bytes": 500 * GIB},
                {"storage": "local-lvm", "node": "pve1", "used_percent": 35, "free_bytes": 189 * GIB},
                {"storage": "local-lvm", "node": "pve2", "used_percent": 11, "free_bytes": 1560 * GIB},
            ],
            "running_tasks": [], "recent_failures": [], "unknown": [],
        })
    );
    let node = &estate.nodes.rows()[0];
    assert_eq!(node.kernel.as_deref(), Some("6.17.2-1-pve"));
}

#[test]
fn troubles_are_told_in_one_line_each() {
    let mut api = healthy();
    api["resources"][2]["status"] = json!("stopped");
    api["jobs"][0]["exclude"] = json!("101");
    api["content"]["pve1/nas"][0]["ctime"] = json!(NOW - 9 * DAY);
    let long = "command failed: ".to_owned() + &"ü".repeat(80) + "\nsecond line";
    api["tasks"] = json!([
        {"upid": "a", "node": "pve1", "type": "vzdump", "id": "", "starttime": NOW - 2 * HOUR,
         "endtime": NOW - HOUR, "status": long},
        {"upid": "b", "node": "pve2", "type": "qmigrate", "id": "100", "starttime": NOW - 120},
        {"upid": "c", "node": "pve2", "type": "qmstart", "id": "100", "starttime": NOW - 3 * DAY,
         "endtime": NOW - 3 * DAY, "status": "old trouble"},
    ]);
    let found = overview(&build(&api));
    assert_eq!(
        found.attention,
        "1 critical, 3 warnings; first: VM 100 db is tagged as production and is stopped"
    );
    assert_eq!(found.backups, "1 of 2 guests in a job, 1 overdue, 1 failed");
    assert_eq!(
        json!(found.running_tasks),
        json!([{"type": "qmigrate", "id": "100", "node": "pve2", "minutes_ago": 2}])
    );
    let cause = format!("command failed: {}…", "ü".repeat(44));
    assert_eq!(
        json!(found.recent_failures),
        json!([{"type": "vzdump", "node": "pve1", "minutes_ago": 60, "cause": cause}])
    );
}

#[test]
fn what_is_not_seen_is_not_called_well() {
    let denied = crate::Error::new(crate::Code::Forbidden, "the token lacks Sys.Audit on /");
    let mut estate = Estate::new(NOW);
    estate.read_rights(Ok(&json!({})));
    estate.read_resources(Ok(&json!([{"type": "node", "node": "pve1", "status": "online"}])));
    estate.read_cluster_status(Err(&denied));
    estate.read_jobs(Err(&denied));
    let found = serde_json::to_value(overview(&estate)).unwrap();
    assert_eq!(found["attention"], "nothing found in what could be seen");
    assert_eq!(found["backups"], "unknown: the token lacks Sys.Audit on /");
    assert_eq!(found["nodes"], json!([{"node": "pve1", "state": "online"}]));
    assert_eq!(found.get("guests"), None);
    assert_eq!(found.get("quorate"), None);
    let unknown = found["unknown"].as_array().unwrap();
    assert_eq!(unknown.len(), UNKNOWN + 1);
}

/// Three nodes, forty guests, eight storages and troubles: the size that people see.
fn busy() -> Value {
    let mut api = healthy();
    let rows = api["resources"].as_array_mut().unwrap();
    rows.push(json!({"type": "node", "node": "pve3", "status": "offline"}));
    for n in 0..38 {
        rows.push(json!({
                "type": if n % 3 == 0 { "lxc" } else { "qemu" }, "vmid": 200 + n, "node": "pve2",
                "name": format!("customer-portal-{n}"), "status": if n % 5 == 0 { "stopped" } else { "running" },
                "cpu": f64::from(n) / 40.0, "maxcpu": 4, "mem": GIB, "maxmem": 2 * GIB, "uptime": 90_000,
            }));
    }
    for n in 0..5_u64 {
        rows.push(json!({
                "type": "storage", "storage": format!("ceph-{n}"), "node": "pve1", "plugintype": "rbd", "shared": 1,
                "status": "available", "content": "images", "disk": (85 + n) * GIB, "maxdisk": 100 * GIB,
            }));
    }
    let tasks = api["tasks"].as_array_mut().unwrap();
    for n in 0..9 {
        let status =
            "unable to create VM 100: volume 'local-lvm:vm-100-disk-0' does not exist on this node";
        tasks
            .push(json!({"upid": format!("f{n}"), "node": "pve2", "type": "qmcreate", "id": "230",
                "starttime": NOW - 600, "endtime": NOW - 590, "status": status}));
        tasks
            .push(json!({"upid": format!("r{n}"), "node": "pve2", "type": "qmigrate", "id": "231",
                "starttime": NOW - 600}));
    }
    api
}

#[test]
fn the_answer_is_small_and_counts_what_it_leaves_out() {
    let found = overview(&build(&busy()));
    let text = serde_json::to_string(&found).unwrap();
    assert!(text.len() < 2048, "{} bytes: {text}", text.len());
    assert_eq!(found.guests.as_ref().unwrap().total, 40);
    assert_eq!((found.storages.len(), found.more_storages), (6, 2));
    assert_eq!((found.running_tasks.len(), found.more_running_tasks), (3, 6));
    assert_eq!((found.recent_failures.len(), found.more_failures), (3, 6));
    let busiest: Vec<u32> = found.busiest.iter().map(|g| g.vmid.get()).collect();
    assert_eq!(busiest, [237, 236, 234]);
    assert_eq!(found.nodes[2].state, "offline");
}
