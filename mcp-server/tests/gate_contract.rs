//! What holds for every change, whatever the tool: nothing is sent by a read-only server, by a
//! dry run, or without its flag; what is hidden stays hidden; secrets and records.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod world;

use std::sync::Arc;

use proxmox_mcp::{config::VmidSet, safety::Flags};
use pve_sim::{Effect, Fault};
use serde_json::{Value, json};
use world::World;

/// One call of every category that the simulator or a blind node can judge.
fn critical() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let q = "/nodes/pve1/qemu/100";
    vec![
        ("NODE_POWER", "POST", "/nodes/pve1/status", json!({"command": "reboot"})),
        ("NODE_STOPALL", "POST", "/nodes/pve1/stopall", json!({})),
        ("NODE_SUSPENDALL", "POST", "/nodes/pve1/suspendall", json!({})),
        ("NODE_MIGRATEALL", "POST", "/nodes/pve1/migrateall", json!({"target": "pve2"})),
        (
            "CLUSTER_BULK_ACTIONS",
            "POST",
            "/cluster/bulk-action/guest/shutdown",
            json!({"vms": [100]}),
        ),
        ("CLUSTER_CONFIG", "DELETE", "/cluster/config/nodes/pve2", json!({})),
        ("CLUSTER_OPTIONS", "PUT", "/cluster/options", json!({"keyboard": "de"})),
        ("NODE_CONFIG", "PUT", "/nodes/pve1/config", json!({"description": "x"})),
        ("CRITICAL_SERVICES", "POST", "/nodes/pve1/services/pveproxy/stop", json!({})),
        ("HA", "DELETE", "/cluster/ha/resources/vm:100", json!({})),
        ("NODE_DISKS", "PUT", "/nodes/pve1/disks/wipedisk", json!({"disk": "/dev/sdb"})),
        ("NODE_NETWORK", "PUT", "/nodes/pve1/network", json!({})),
        ("NODE_HOSTS", "POST", "/nodes/pve1/hosts", json!({"data": "127.0.0.1 localhost"})),
        ("NODE_DNS", "PUT", "/nodes/pve1/dns", json!({"search": "example.test"})),
        ("NODE_CERTIFICATES", "DELETE", "/nodes/pve1/certificates/custom", json!({})),
        (
            "APT_REPOSITORIES",
            "PUT",
            "/nodes/pve1/apt/repositories",
            json!({"handle": "no-subscription"}),
        ),
        ("SDN_APPLY", "PUT", "/cluster/sdn", json!({})),
        ("CLUSTER_FIREWALL", "PUT", "/cluster/firewall/options", json!({"enable": 1})),
        ("NODE_FIREWALL", "PUT", "/nodes/pve1/firewall/options", json!({"enable": 1})),
        ("CEPH", "DELETE", "/nodes/pve1/ceph/osd/0", json!({})),
        ("STORAGE_DEFINITIONS", "DELETE", "/storage/local", json!({})),
        (
            "VOLUME_DELETE",
            "DELETE",
            "/nodes/pve1/storage/local/content/local:iso%2Fx.iso",
            json!({}),
        ),
        ("ACCESS_CONTROL", "DELETE", "/access/users/aweiss@pve", json!({})),
        ("GUEST_DELETE", "DELETE", q, json!({})),
        ("GUEST_TEMPLATE", "POST", "/nodes/pve1/qemu/100/template", json!({})),
        (
            "GUEST_CREDENTIALS",
            "PUT",
            "/nodes/pve1/qemu/100/config",
            json!({"sshkeys": "ssh-ed25519%20A"}),
        ),
        ("GUEST_HOST_ACCESS", "PUT", "/nodes/pve1/qemu/100/config", json!({"args": "-x"})),
        ("JOBS_AND_NOTIFICATIONS", "DELETE", "/cluster/notifications/targets", json!({})),
        ("CLUSTER_MAPPING", "DELETE", "/cluster/mapping/pci/x", json!({})),
        (
            "PRIVILEGED_CONTAINER",
            "POST",
            "/nodes/pve1/lxc",
            json!({"vmid": 990, "ostemplate": "local:vztmpl/a.tar.zst", "storage": "local-lvm",
                   "unprivileged": "off"}),
        ),
        (
            "GUEST_RESTORE_OVERWRITE",
            "POST",
            "/nodes/pve1/qemu",
            json!({"vmid": 100, "archive": "pbs-main:backup/vm/100/2026-11-30T02:00:00Z", "force": "yes"}),
        ),
        ("REPLICATION_DELETE", "DELETE", "/cluster/replication/100-0", json!({})),
        ("UNKNOWN", "POST", "/nodes/pve1/something/new", json!({})),
    ]
}

#[tokio::test]
async fn without_its_flag_no_critical_category_passes_not_even_in_a_dry_run() {
    let off = World::with(|config| config.flags = Flags::default()).await;
    for (category, method, path, params) in critical() {
        for dry_run in [true, false] {
            let arguments = json!({
                "method": method, "path": path, "params": params, "dry_run": dry_run,
            });
            let name = format!("{method} {path} dry_run={dry_run}");
            let refused = off.call("pve_api_call", arguments).await;
            let error = refused.expect_err(&name);
            assert_eq!(error.code.as_str(), "flag_disabled", "{name}: {error}");
            if category != "JOBS_AND_NOTIFICATIONS" {
                let flag = format!("PROXMOX_ALLOW_{category}");
                assert_eq!(error.details["flag"], flag.as_str(), "{name}: {error}");
            }
            assert_eq!(off.sent(), Vec::<String>::new(), "{name}");
        }
    }
}

#[tokio::test]
async fn read_only_lets_no_change_out() {
    let world = World::with(|config| config.mode = proxmox_mcp::config::Mode::ReadOnly).await;
    for (_, method, path, params) in critical() {
        for dry_run in [true, false] {
            let arguments = json!({
                "method": method, "path": path, "params": params, "dry_run": dry_run,
                "confirm": path,
            });
            let error = world.call("pve_api_call", arguments).await.unwrap_err();
            assert_eq!(error.code.as_str(), "read_only", "{method} {path}");
        }
    }
    assert_eq!(world.sent(), Vec::<String>::new());
}

/// Every number and text inside a value.
fn leaves(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|v| leaves(v, found)),
        Value::Object(map) => map.values().for_each(|v| leaves(v, found)),
        other => found.push(other.as_str().map_or_else(|| other.to_string(), str::to_owned)),
    }
}

#[tokio::test]
async fn hidden_guests_do_not_show_in_raw_reads() {
    let open = World::new().await;
    let guests: Vec<u32> = open.sim.with_state(|s| s.guests.keys().copied().collect());
    let seen = guests[0];
    let world = World::with(|config| {
        config.allowed_vmids = Some(VmidSet::parse(&seen.to_string()).unwrap());
        config.read_allowed_only = true;
    })
    .await;
    let hidden: Vec<String> =
        guests.iter().filter(|v| **v != seen).map(ToString::to_string).collect();
    let get = |path: &'static str, params: Value| json!({"method": "GET", "path": path, "params": params});
    for (path, params) in [
        ("/cluster/resources", json!({})),
        ("/cluster/resources", json!({"type": "vm"})),
        ("/api2/json/cluster/%72esources", json!({})),
        ("/nodes/pve1/qemu", json!({})),
        ("/nodes/pve1/lxc", json!({})),
        ("/cluster/ha/resources", json!({})),
    ] {
        let name = format!("{path} {params}");
        let Ok(answer) = world.call("pve_api_call", get(path, params)).await else {
            panic!("{name} was refused")
        };
        let rows = &answer["data"];
        let text = rows.to_string();
        for vmid in &hidden {
            for shape in [
                format!("\"vmid\":{vmid},"),
                format!("\"vmid\":\"{vmid}\""),
                format!("qemu/{vmid}\""),
                format!("lxc/{vmid}\""),
                format!("vm:{vmid}\""),
                format!("ct:{vmid}\""),
            ] {
                assert!(!text.contains(&shape), "{name} shows {shape}");
            }
        }
    }
    // Members of a pool stand in an array inside a row.
    let pools: Vec<String> =
        open.call("pve_api_call", get("/pools", json!({}))).await.unwrap()["data"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|pool| pool["poolid"].as_str().map(str::to_owned))
            .collect();
    assert!(!pools.is_empty());
    let mut shown_open = Vec::new();
    for pool in pools {
        for arguments in [
            json!({"method": "GET", "path": "/pools", "params": {"poolid": pool}}),
            json!({"method": "GET", "path": format!("/pools/{pool}")}),
        ] {
            if let Ok(all) = open.call("pve_api_call", arguments.clone()).await {
                leaves(&all["data"], &mut shown_open);
            }
            let Ok(answer) = world.call("pve_api_call", arguments.clone()).await else { continue };
            let mut shown = Vec::new();
            leaves(&answer["data"], &mut shown);
            for vmid in &hidden {
                let named = [vmid.clone(), format!("qemu/{vmid}"), format!("lxc/{vmid}")];
                assert!(!shown.iter().any(|s| named.contains(s)), "{arguments} shows {vmid}");
            }
        }
    }
    assert!(shown_open.iter().any(|s| hidden.contains(s)), "the pools have such members");
    for path in [
        format!("/nodes/pve1/qemu/{}/config", hidden[0]),
        format!("nodes/pve1/%71emu/{}/status/current", hidden[0]),
    ] {
        let refused = world.call("pve_api_call", json!({"method": "GET", "path": path})).await;
        assert_eq!(refused.unwrap_err().code.as_str(), "vmid_denied", "{path}");
    }
}

#[tokio::test]
async fn a_raw_call_gives_a_new_secret_to_a_file_and_not_to_the_model() {
    let world = World::new().await;
    let mut seen = Vec::new();
    for (path, method, params) in [
        ("/access/users/aweiss@pve/token/raw1", "POST", json!({})),
        ("api2/json/access/users/aweiss%40pve/token/raw2", "post", json!({"privsep": "no"})),
        ("/access/%75sers/aweiss@pve%2Ftoken/raw3", "POST", json!({})),
        ("/access/users/aweiss@pve/token/raw1", "PUT", json!({"regenerate": "on"})),
        ("access/users/aweiss%40pve/token/%72aw2", "put", json!({"regenerate": true})),
    ] {
        let name = format!("{method} {path}");
        let arguments = json!({"method": method, "path": path, "params": params});
        let made = world.confirmed("pve_api_call", arguments).await;
        let made = made.unwrap_or_else(|e| panic!("{name}: {e} {:?}", e.details));
        let file = made["secret_file"].as_str().unwrap_or_else(|| panic!("{name}: {made}"));
        let text = std::fs::read_to_string(file).unwrap();
        let secret = text.lines().find_map(|l| l.strip_prefix("PROXMOX_TOKEN_SECRET=")).unwrap();
        assert_eq!(secret.len(), 36, "{name}");
        assert!(!made.to_string().contains(secret), "{name}: {made}");
        seen.push(secret.to_owned());
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 5, "each has a secret of its own");
    let log = std::fs::read_to_string(&world.app.config.audit.path).unwrap();
    assert!(seen.iter().all(|secret| !log.contains(secret.as_str())));
}

#[tokio::test]
async fn a_changed_file_of_flags_is_told() {
    let world = World::new().await;
    assert_eq!(world.app.flags_changed(), None);
    let file = &world.app.config.critical_file;
    std::fs::write(file, "PROXMOX_ALLOW_HA=enabled\n").unwrap();
    let told = world.app.flags_changed().unwrap();
    assert!(told.contains("has changed since the start"), "{told}");
    std::fs::remove_file(file).unwrap();
    assert_eq!(world.app.flags_changed(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_on_its_way_when_the_server_ends_is_recorded_as_unknown() {
    let world = Arc::new(World::new().await);
    let fault = Fault::new(Effect::NeverAnswer { apply: true }).method("POST").always();
    world.sim.inject(fault);
    let caller = Arc::clone(&world);
    let call = tokio::spawn(async move {
        let path = "/nodes/pve1/vzdump";
        let params = json!({"vmid": 100, "storage": "local", "remove": 0});
        caller.call("pve_api_call", json!({"method": "POST", "path": path, "params": params})).await
    });
    while !world.sim.requests().iter().any(|r| r.method == "POST") {
        assert!(!call.is_finished(), "{:?}", call.await);
        tokio::task::yield_now().await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    world.app.abandon();
    // Once, however often the end is told.
    world.app.abandon();
    let log = std::fs::read_to_string(&world.app.config.audit.path).unwrap();
    let records: Vec<Value> = log.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let outcomes: Vec<&str> = records.iter().filter_map(|r| r["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["sending", "unknown"], "{log}");
    assert_eq!(world.sent().len(), 1, "sent once");
}
