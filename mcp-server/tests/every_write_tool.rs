//! What holds for every tool that changes something, tool by tool: none is listed or runs in
//! read-only mode, a dry run sends nothing, a critical one needs its flag (in a dry run too) and
//! then the exact text to confirm. A new tool without a row here fails.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod world;

use std::{collections::BTreeSet, sync::Arc};

use proxmox_mcp::{
    Error,
    app::App,
    config::{Approval, Config, Mode},
    safety::Flags,
    tools::{self, Access, Silent},
};
use serde_json::{Value, json};
use world::World;

/// One call of each tool that the sample estate can take.
fn calls(backup: &str, task: &str, change: u64) -> Vec<(&'static str, Value)> {
    vec![
        (
            "pve_api_call",
            json!({"method": "PUT", "path": "/cluster/options", "params": {"keyboard": "de"}}),
        ),
        ("pve_guest_start", json!({"vmid": 104})),
        ("pve_guest_shutdown", json!({"vmid": 100})),
        ("pve_guest_stop", json!({"vmid": 100})),
        ("pve_guest_reboot", json!({"vmid": 100})),
        ("pve_guest_reset", json!({"vmid": 100})),
        ("pve_guest_suspend", json!({"vmid": 100})),
        ("pve_guest_resume", json!({"vmid": 100})),
        ("pve_snapshot_create", json!({"vmid": 100, "name": "s1"})),
        ("pve_snapshot_update", json!({"vmid": 117, "name": "before", "description": "d"})),
        ("pve_snapshot_delete", json!({"vmid": 117, "name": "before"})),
        ("pve_snapshot_rollback", json!({"vmid": 117, "name": "before"})),
        ("pve_vm_create", json!({"node": "pve1", "name": "n1", "storage": "local-lvm"})),
        (
            "pve_ct_create",
            json!({"node": "pve1", "template": "nfs-images:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst", "storage": "local-lvm"}),
        ),
        ("pve_guest_clone", json!({"vmid": 900})),
        ("pve_guest_delete", json!({"vmid": 112, "expect_name": "shop-frontend"})),
        ("pve_guest_template", json!({"vmid": 112})),
        ("pve_guest_config_set", json!({"vmid": 100, "set": {"args": "-x"}})),
        ("pve_guest_tags_set", json!({"vmid": 100, "add": ["t1"]})),
        ("pve_disk_add", json!({"vmid": 100, "storage": "local-lvm", "size": "1G"})),
        ("pve_disk_resize", json!({"vmid": 100, "disk": "scsi0", "size": "+1G"})),
        ("pve_disk_move", json!({"vmid": 100, "disk": "scsi0", "storage": "nfs-images"})),
        ("pve_disk_detach", json!({"vmid": 100, "disk": "scsi0"})),
        ("pve_nic_set", json!({"vmid": 100, "slot": "net0", "tag": 7})),
        ("pve_nic_delete", json!({"vmid": 100, "slot": "net0"})),
        ("pve_cloudinit_set", json!({"vmid": 100, "user": "u"})),
        ("pve_guest_migrate", json!({"vmid": 105, "target": "pve2", "with_local_disks": true})),
        ("pve_vm_agent_command", json!({"vmid": 100, "command": "trim"})),
        ("pve_pool_create", json!({"pool": "p1"})),
        ("pve_pool_update", json!({"pool": "buero", "comment": "c"})),
        ("pve_pool_delete", json!({"pool": "p9"})),
        ("pve_ha_resource_set", json!({"vmid": 100, "state": "started"})),
        ("pve_ha_resource_delete", json!({"vmid": 100})),
        ("pve_replication_set", json!({"vmid": 100, "target": "pve2"})),
        ("pve_replication_delete", json!({"id": "102-0"})),
        ("pve_undo", json!({"audit_id": change})),
        ("pve_task_stop", json!({"upid": task})),
        ("pve_backup_create", json!({"vmid": 100, "storage": "pbs-main"})),
        ("pve_backup_job_set", json!({"schedule": "daily", "storage": "local", "vmids": [100]})),
        ("pve_backup_job_delete", json!({"id": "dev-old"})),
        ("pve_backup_job_run", json!({"id": "dev-old"})),
        ("pve_backup_restore", json!({"volid": backup})),
        ("pve_backup_delete", json!({"volid": backup})),
        ("pve_backup_protect", json!({"volid": backup})),
        ("pve_backup_prune", json!({"storage": "nfs-backup", "node": "pve1", "keep_last": 1})),
        (
            "pve_storage_set",
            json!({"storage": "new1", "type": "dir", "options": {"path": "/srv/x"}, "content": ["iso"]}),
        ),
        ("pve_storage_delete", json!({"storage": "nfs-images"})),
        (
            "pve_download_url",
            json!({"node": "pve1", "url": "https://example.test/x.iso", "storage": "local", "content": "iso"}),
        ),
        (
            "pve_upload",
            json!({"node": "pve1", "file": "x.iso", "storage": "local", "content": "iso"}),
        ),
        (
            "pve_appliance_download",
            json!({"node": "pve1", "template": "alpine-3.22-default_20250617_amd64.tar.xz", "storage": "local"}),
        ),
        (
            "pve_volume_delete",
            json!({"node": "pve1", "volid": "nfs-images:iso/virtio-win-0.1.271.iso"}),
        ),
        ("pve_volume_update", json!({"volid": backup, "notes": "n"})),
        ("pve_interface_set", json!({"node": "pve1", "iface": "vmbr7", "type": "bridge"})),
        ("pve_interface_delete", json!({"node": "pve1", "iface": "vmbr9"})),
        ("pve_network_apply", json!({"node": "pve1"})),
        ("pve_network_revert", json!({"node": "pve1"})),
        ("pve_firewall_rule_set", json!({"vmid": 100, "type": "in", "action": "ACCEPT"})),
        ("pve_firewall_rule_delete", json!({"vmid": 100, "pos": 0})),
        ("pve_firewall_options_set", json!({"enable": false})),
        ("pve_firewall_alias_set", json!({"name": "a1", "cidr": "192.0.2.1"})),
        ("pve_firewall_alias_delete", json!({"name": "admin-netz"})),
        ("pve_firewall_ipset_set", json!({"name": "i1"})),
        ("pve_firewall_ipset_delete", json!({"name": "i9"})),
        ("pve_firewall_group_set", json!({"group": "g1"})),
        ("pve_firewall_group_delete", json!({"group": "g9"})),
        ("pve_sdn_zone_set", json!({"zone": "z1", "type": "simple"})),
        ("pve_sdn_zone_delete", json!({"zone": "z9"})),
        ("pve_sdn_vnet_set", json!({"vnet": "v1", "zone": "lan"})),
        ("pve_sdn_vnet_delete", json!({"vnet": "labor"})),
        ("pve_sdn_subnet_set", json!({"vnet": "gaeste", "subnet": "10.8.0.0/24"})),
        ("pve_sdn_subnet_delete", json!({"vnet": "gaeste", "subnet": "10.9.0.0/24"})),
        ("pve_sdn_apply", json!({})),
        (
            "pve_service_control",
            json!({"node": "pve1", "service": "pveproxy", "action": "restart"}),
        ),
        ("pve_apt_refresh", json!({"node": "pve1"})),
        ("pve_apt_repository_set", json!({"node": "pve1", "handle": "no-subscription"})),
        ("pve_dns_set", json!({"node": "pve1", "search": "example.test"})),
        ("pve_hosts_set", json!({"node": "pve1", "data": "127.0.0.1 localhost\n"})),
        ("pve_time_zone_set", json!({"node": "pve1", "time_zone": "Europe/Berlin"})),
        ("pve_node_power", json!({"node": "pve2", "command": "reboot"})),
        ("pve_node_wake", json!({"node": "pve3"})),
        ("pve_user_set", json!({"userid": "new1@pve"})),
        ("pve_user_delete", json!({"userid": "aweiss@pve"})),
        ("pve_token_set", json!({"userid": "aweiss@pve", "token": "t1"})),
        ("pve_token_delete", json!({"userid": "aweiss@pve", "token": "t9"})),
        ("pve_group_set", json!({"group": "g1"})),
        ("pve_group_delete", json!({"group": "g9"})),
        ("pve_role_set", json!({"role": "R1", "privileges": ["VM.Audit"]})),
        ("pve_role_delete", json!({"role": "R9"})),
        (
            "pve_acl_set",
            json!({"path": "/pool/x", "roles": ["PVEAuditor"], "users": ["aweiss@pve"]}),
        ),
        ("pve_ct_exec", json!({"vmid": 200, "command": "rm -rf /srv/x"})),
        ("pve_vm_exec", json!({"vmid": 100, "command": "reboot"})),
        ("pve_guest_file_write", json!({"vmid": 200, "path": "/etc/passwd", "content": "x"})),
        ("pve_guest_service", json!({"vmid": 200, "service": "nginx", "action": "restart"})),
    ]
}

/// Things that the sample estate lacks, made by the tools themselves.
fn made() -> Vec<(&'static str, Value)> {
    vec![
        ("pve_snapshot_create", json!({"vmid": 117, "name": "before"})),
        ("pve_pool_create", json!({"pool": "p9"})),
        ("pve_interface_set", json!({"node": "pve1", "iface": "vmbr9", "type": "bridge"})),
        ("pve_firewall_rule_set", json!({"vmid": 100, "type": "in", "action": "ACCEPT"})),
        ("pve_firewall_ipset_set", json!({"name": "i9"})),
        ("pve_firewall_group_set", json!({"group": "g9"})),
        ("pve_sdn_zone_set", json!({"zone": "z9", "type": "simple"})),
        ("pve_sdn_subnet_set", json!({"vnet": "gaeste", "subnet": "10.9.0.0/24"})),
        ("pve_token_set", json!({"userid": "aweiss@pve", "token": "t9"})),
        ("pve_group_set", json!({"group": "g9"})),
        ("pve_role_set", json!({"role": "R9", "privileges": ["VM.Audit"]})),
        ("pve_guest_tags_set", json!({"vmid": 101, "add": ["t1"]})),
    ]
}

/// The sample estate with what the calls below need, exec on, and the calls.
async fn prepared() -> (World, Vec<(&'static str, Value)>) {
    let world = World::with(|config| {
        config.exec = true;
        config.approval = Approval::Confirm;
        let uploads = config.dirs.state.join("uploads");
        std::fs::create_dir_all(&uploads).unwrap();
        std::fs::write(uploads.join("x.iso"), "iso").unwrap();
        config.upload_dir = Some(uploads);
    })
    .await;
    let mut change = 0;
    for (tool, arguments) in made() {
        let done = world.confirmed(tool, arguments.clone()).await;
        let done = done.unwrap_or_else(|e| panic!("{tool} {arguments}: {e} {:?}", e.details));
        change = done["audit_id"].as_u64().unwrap_or(change);
    }
    let backup = world.sim.with_state(|s| {
        let found = s.volumes.iter().find(|v| v.content == "backup" && v.storage == "nfs-backup");
        found.map(|v| format!("{}:{}", v.storage, v.name)).unwrap()
    });
    world.sim.with_state(|s| s.tasks.pace = 1e6);
    let started = world.call("pve_apt_refresh", json!({"node": "pve3", "wait": false})).await;
    let started = started.unwrap();
    let task = started["task"]["upid"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    world.sim.with_state(|s| s.tasks.pace = 0.0);
    world.sent();
    let calls = calls(&backup, &task, change);
    (world, calls)
}

/// A server for the same estate under another configuration.
fn beside(world: &World, change: impl FnOnce(&mut Config)) -> Arc<App> {
    let mut config = world.app.config.clone();
    change(&mut config);
    App::new(config).unwrap()
}

async fn refused(app: &Arc<App>, tool: &str, arguments: &Value) -> Error {
    let name = format!("{tool} {arguments}");
    match tools::call(app, tool, arguments.clone(), &Silent("test")).await {
        Ok(answer) => panic!("{name} was taken: {}", answer.structured),
        Err(error) => error,
    }
}

fn with(arguments: &Value, name: &str, value: Value) -> Value {
    let mut arguments = arguments.clone();
    arguments[name] = value;
    arguments
}

/// The tools of a configuration that can change something, but for those that go by pve-guard to
/// the node itself: they have a test with a node of their own.
fn writing(app: &App) -> BTreeSet<&'static str> {
    let writes = |t: &&tools::Tool| matches!(t.access, Access::Write | Access::Exec);
    tools::registered(&app.config).filter(writes).map(|t| t.name).collect()
}

/// Exec tools that only read; they need exec all the same.
const READS: &[&str] = &["pve_guest_file_read", "pve_guest_file_list"];

#[tokio::test]
async fn a_dry_run_of_any_tool_sends_nothing_and_a_critical_one_needs_its_flags_and_confirm() {
    let (world, calls) = prepared().await;
    let named: BTreeSet<&str> = calls.iter().map(|(tool, _)| *tool).chain(READS.to_vec()).collect();
    let missing: Vec<_> = writing(&world.app).difference(&named).copied().collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
    let off = beside(&world, |config| config.flags = Flags::default());
    let mut critical = 0;
    for (tool, arguments) in calls {
        let dry = with(&arguments, "dry_run", json!(true));
        let name = format!("{tool} {arguments}");
        let off_line = tool == "pve_node_wake";
        world.sim.with_state(|s| s.nodes.get_mut("pve3").unwrap().online = !off_line);
        let plan = world.call(tool, dry.clone()).await;
        let plan = plan.unwrap_or_else(|e| panic!("{name}: {e} {:?}", e.details));
        assert_eq!(plan["status"], "dry_run", "{name}: {plan}");
        assert_ne!(plan["class"], "READ", "{name}: {plan}");
        assert_eq!(world.sent(), Vec::<String>::new(), "{name}: a dry run");
        if plan["class"] != "CRITICAL" {
            continue;
        }
        critical += 1;
        for arguments in [&dry, &arguments] {
            let error = refused(&off, tool, arguments).await;
            assert_eq!(error.code.as_str(), "flag_disabled", "{name}: {error}");
            assert_eq!(error.details["category"], plan["category"], "{name}");
            let flags: Vec<Value> = plan["categories"].as_array().unwrap().clone();
            for flag in flags {
                let flag = format!("PROXMOX_ALLOW_{}", flag.as_str().unwrap());
                let told = error.details["flags"].as_array().unwrap();
                assert!(told.contains(&json!(flag)), "{name}: {flag} in {told:?}");
            }
        }
        let error = refused(&world.app, tool, &arguments).await;
        assert_eq!(error.code.as_str(), "confirm_required", "{name}: {error}");
        let confirm = error.details["confirm"].as_str().unwrap();
        match plan["request"]["method"].as_str().unwrap() {
            "EXEC" => assert_eq!(confirm, arguments["command"], "{name}"),
            "FILE-WRITE" => assert_eq!(confirm, arguments["path"], "{name}"),
            "SERVICE" => {
                assert!(confirm.contains("nginx") && confirm.contains("restart"), "{name}")
            }
            _ => assert_eq!(confirm, plan["request"]["path"], "{name}"),
        }
        for near in [format!("{confirm}/"), format!(" {confirm}"), confirm.to_uppercase()] {
            let error = refused(&world.app, tool, &with(&arguments, "confirm", json!(near))).await;
            assert_eq!(error.code.as_str(), "confirm_required", "{name} {near:?}: {error}");
        }
        assert_eq!(world.sent(), Vec::<String>::new(), "{name}: without flag or confirm");
    }
    assert!(critical > 30, "{critical} critical tools");
}

#[tokio::test]
async fn in_read_only_mode_no_tool_that_changes_is_listed_or_runs() {
    let (world, calls) = prepared().await;
    let app = beside(&world, |config| config.mode = Mode::ReadOnly);
    assert_eq!(writing(&app), BTreeSet::new());
    for (tool, arguments) in calls {
        for arguments in [with(&arguments, "dry_run", json!(true)), arguments] {
            let error = refused(&app, tool, &arguments).await;
            let said = format!("{} {error}", error.code.as_str());
            let read_only = match tool {
                "pve_api_call" => said.starts_with("read_only"),
                _ => said.contains("not registered") && said.contains("PROXMOX_MODE=write"),
            };
            assert!(read_only, "{tool} {arguments}: {said}");
        }
    }
    assert_eq!(world.sent(), Vec::<String>::new());
}
