//! `PROXMOX_READ_VMIDS=allowed`: nothing that reads shows a guest that is not on the list, by its
//! number, its name, its disks or its log, and what is hidden is not taken for missing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod world;

use proxmox_mcp::config::VmidSet;
use serde_json::{Value, json};
use world::World;

/// Guests that may be seen.
const SEEN: [u32; 2] = [100, 200];

async fn world() -> World {
    World::with(|config| {
        let list = SEEN.map(|vmid| vmid.to_string()).join(",");
        config.allowed_vmids = Some(VmidSet::parse(&list).unwrap());
        config.read_allowed_only = true;
    })
    .await
}

/// The number and name of every guest that is hidden.
fn hidden(world: &World) -> Vec<(u32, String)> {
    let all = world.sim.with_state(|s| {
        s.guests.iter().map(|(vmid, guest)| (*vmid, guest.name())).collect::<Vec<_>>()
    });
    all.into_iter().filter(|(vmid, _)| !SEEN.contains(vmid)).collect()
}

/// Where a text names a hidden guest.
fn shown(text: &str, hidden: &[(u32, String)]) -> Option<String> {
    hidden.iter().find_map(|(vmid, name)| {
        let marks = [
            format!("\"vmid\":{vmid},"),
            format!("\"vmid\":{vmid}}}"),
            format!("\"{vmid}\""),
            format!("[{vmid},"),
            format!("qemu/{vmid}\""),
            format!("lxc/{vmid}\""),
            format!("vm:{vmid}"),
            format!("ct:{vmid}"),
            format!("vm-{vmid}-"),
            format!("subvol-{vmid}-"),
            format!("base-{vmid}-"),
            format!("qemu-{vmid}-"),
            format!("lxc-{vmid}-"),
            format!("VM {vmid}"),
            format!("CT {vmid}"),
            format!("guest {vmid}"),
            format!("/vms/{vmid}\""),
            format!("job {vmid}-"),
            format!(":{vmid}:"),
            format!("\"{name}\""),
            format!(" {name} "),
            format!("({name})"),
        ];
        marks.into_iter().find(|mark| text.contains(mark))
    })
}

#[tokio::test]
async fn no_tool_shows_a_hidden_guest() {
    let world = world().await;
    let hidden = hidden(&world);
    assert!(hidden.len() > 30, "{hidden:?}");
    let mut answered = 0;
    for (tool, arguments) in [
        ("pve_overview", json!({})),
        ("pve_needs_attention", json!({})),
        ("pve_list_vms", json!({"limit": 500})),
        ("pve_cluster_resources", json!({"limit": 500})),
        ("pve_cluster_log", json!({})),
        ("pve_list_pools", json!({})),
        ("pve_storage_content", json!({"storage": "local-lvm", "limit": 500})),
        ("pve_list_backups", json!({"limit": 500})),
        ("pve_list_templates", json!({})),
        ("pve_list_tasks", json!({"limit": 500})),
        ("pve_ha_status", json!({})),
        ("pve_replication_status", json!({})),
        ("pve_list_backup_jobs", json!({})),
        ("pve_backup_coverage", json!({})),
        ("pve_impact", json!({"node": "pve1"})),
        ("pve_impact", json!({"storage": "local-lvm"})),
        ("pve_list_acl", json!({})),
        ("pve_permissions", json!({})),
        ("pve_whoami", json!({})),
        ("pve_node_journal", json!({"node": "pve1"})),
    ] {
        let answer = world.call(tool, arguments.clone()).await;
        answered += usize::from(answer.is_ok());
        let text = answer.map_or_else(|e| e.to_json().to_string(), |a| a.to_string());
        assert_eq!(shown(&text, &hidden), None, "{tool} {arguments}: {text}");
    }
    assert!(answered >= 18, "{answered}");
}

#[tokio::test]
async fn no_raw_read_shows_a_hidden_guest() {
    let world = world().await;
    let hidden = hidden(&world);
    let get = |path: String| json!({"method": "GET", "path": path});
    for path in [
        "/cluster/resources",
        "/cluster/tasks",
        "/cluster/log",
        "/cluster/backup",
        "/cluster/replication",
        "/cluster/ha/resources",
        "/cluster/ha/rules",
        "/cluster/ha/status/current",
        "/cluster/ha/status/manager_status",
        "/cluster/backup-info/not-backed-up",
        "/access/permissions",
        "/access/acl",
        "/pools",
        "/nodes/pve1/qemu",
        "/nodes/pve1/lxc",
        "/nodes/pve1/tasks",
        "/nodes/pve1/replication",
        "/nodes/pve1/storage/local-lvm/content",
        "/nodes/pve2/journal",
    ] {
        let answer = world.call("pve_api_call", get(path.to_owned())).await;
        let text = answer.map_or_else(|e| e.to_json().to_string(), |a| a.to_string());
        assert_eq!(shown(&text, &hidden), None, "{path}: {text}");
    }
    // What belongs to one of them alone is not there at all.
    for (vmid, _) in &hidden {
        for path in [
            format!("/nodes/pve1/qemu/{vmid}/config"),
            format!("/cluster/ha/resources/vm:{vmid}"),
            format!("/cluster/replication/{vmid}-0"),
            format!("/nodes/pve1/replication/{vmid}-0/log"),
            format!("/nodes/pve1/storage/local-lvm/content/local-lvm:vm-{vmid}-disk-0"),
            format!("/nodes/pve1/storage/local-lvm/content/vm-{vmid}-disk-0"),
            format!("/nodes/pve1/tasks/UPID:pve1:1:1:6B0CC19F:qmstart:{vmid}:root@pam:/log"),
            "/nodes/pve1/tasks/UPID:pve1:1:1:6B0CC19F:vzdump::root@pam:/log".to_owned(),
        ] {
            let error = world.call("pve_api_call", get(path.clone())).await.unwrap_err();
            assert_eq!(error.code.as_str(), "vmid_denied", "{path}");
        }
    }
    let upid = "UPID:pve1:00000001:00000001:6B0CC19F:vzdump::root@pam:";
    let error = world.call("pve_task_log", json!({"upid": upid})).await.unwrap_err();
    assert_eq!(error.code.as_str(), "vmid_denied", "{error}");
    let jobs: Vec<Value> = World::new()
        .await
        .call("pve_api_call", get("/cluster/backup".to_owned()))
        .await
        .unwrap()["data"]
        .as_array()
        .unwrap()
        .clone();
    for job in jobs {
        for below in ["", "/included_volumes"] {
            let path = format!("/cluster/backup/{}{below}", job["id"].as_str().unwrap());
            let answer = world.call("pve_api_call", get(path.clone())).await;
            let text = answer
                .map_or_else(|e| e.to_json()["error"]["message"].to_string(), |a| a.to_string());
            let text = text.replace("is hidden from reads", "");
            let found = shown(&text, &hidden).filter(|mark| !mark.starts_with("guest "));
            assert_eq!(found, None, "{path}: {text}");
        }
    }
}

/// A disk of a guest that is hidden is nobody's orphan.
#[tokio::test]
async fn what_is_hidden_is_not_taken_for_missing() {
    let world = world().await;
    let answer = world.call("pve_needs_attention", json!({})).await.unwrap();
    let open = World::new().await.call("pve_needs_attention", json!({})).await.unwrap();
    let orphans = |answer: &Value| {
        let text = answer.to_string();
        text.matches("orphaned_disk").count()
    };
    assert!(orphans(&answer) <= orphans(&open), "{answer}");
}

/// A job that backs up a guest that may be seen is a job of that guest, whoever else is in it.
#[tokio::test]
async fn what_stays_is_told_of_those_that_may_be_seen() {
    let open = World::new().await;
    let get = json!({"method": "GET", "path": "/cluster/backup"});
    let jobs = open.call("pve_api_call", get.clone()).await.unwrap()["data"].clone();
    let job = jobs.as_array().unwrap().iter().find(|job| {
        job["vmid"].as_str().is_some_and(|list| list.contains(',')) && job["enabled"] != 0
    });
    let job = job.expect("the sample has a job of several guests");
    let first: u32 = job["vmid"].as_str().unwrap().split(',').next().unwrap().parse().unwrap();
    let world = World::with(|config| {
        config.allowed_vmids = Some(VmidSet::parse(&first.to_string()).unwrap());
        config.read_allowed_only = true;
    })
    .await;
    let rows = world.call("pve_api_call", get).await.unwrap()["data"].clone();
    let row = rows.as_array().unwrap().iter().find(|row| row["id"] == job["id"]).unwrap().clone();
    assert_eq!(row["vmid"], first.to_string(), "{row}");
    let coverage = world.call("pve_backup_coverage", json!({})).await.unwrap().to_string();
    assert!(!coverage.contains("in no backup job"), "{coverage}");
}
