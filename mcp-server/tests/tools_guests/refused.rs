//! What is refused before anything is sent.

use crate::world::{World, all_bad};
use pve_sim::{Effect, Fault};
use serde_json::json;

#[tokio::test]
async fn what_is_refused_here() {
    let world = World::new().await;
    world.sim.with_state(|s| {
        let guest = s.guests.get_mut(&120).unwrap();
        guest.config.set("unused0", "local-lvm:vm-100-disk-0");
    });
    all_bad(
        &world,
        &[
            ("pve_list_vms", json!({"status": "stoped"}), "invalid_argument", "stopped"),
            ("pve_list_vms", json!({"node": "pve9"}), "not_found", "pve9"),
            ("pve_list_vms", json!({"pool": "nope"}), "not_found", "produktion"),
            ("pve_list_backups", json!({"storage": "nope"}), "not_found", "nfs-backup"),
            (
                "pve_disk_add",
                json!({"vmid": 120, "storage": "local-lvm"}),
                "invalid_argument",
                "`size` is missing",
            ),
            (
                "pve_disk_add",
                json!({"vmid": 120, "storage": "local-lvm", "size": "lots"}),
                "invalid_argument",
                "no size",
            ),
            (
                "pve_disk_add",
                json!({"vmid": 120, "storage": "pbs-main", "size": "8G"}),
                "invalid_argument",
                "does not hold images",
            ),
            (
                "pve_disk_add",
                json!({"vmid": 120, "storage": "local-lvm", "size": "8G", "slot": "scsi0"}),
                "conflict",
                "taken",
            ),
            (
                "pve_disk_add",
                json!({"vmid": 120, "storage": "local-lvm", "size": "8G", "slot": "hostpci0"}),
                "invalid_argument",
                "no slot",
            ),
            (
                "pve_disk_add",
                json!({"vmid": 120, "storage": "local-lvm", "size": "8G", "mount": "/x"}),
                "invalid_argument",
                "has no `mount`",
            ),
            (
                "pve_disk_add",
                json!({"vmid": 213, "storage": "local-lvm", "size": "8G"}),
                "invalid_argument",
                "needs `mount`",
            ),
            (
                "pve_disk_add",
                json!({"vmid": 213, "storage": "local-lvm", "size": "8G", "mount": "/a/../.."}),
                "invalid_argument",
                "no place",
            ),
            (
                "pve_disk_add",
                json!({"vmid": 120, "volume": "local-lvm:vm-101-disk-0"}),
                "conflict",
                "belongs to guest 101",
            ),
            (
                "pve_disk_add",
                json!({"vmid": 120, "volume": "/dev/sda"}),
                "invalid_argument",
                "no volume",
            ),
            (
                "pve_disk_add",
                json!({"vmid": 120, "volume": "nfs-images:iso/virtio-win-0.1.271.iso"}),
                "invalid_argument",
                "no disk",
            ),
            (
                "pve_disk_resize",
                json!({"vmid": 100, "disk": "scsi0", "size": "10G"}),
                "conflict",
                "40 GiB, and cannot shrink to 10 GiB",
            ),
            (
                "pve_disk_resize",
                json!({"vmid": 100, "disk": "scsi9", "size": "10G"}),
                "not_found",
                "disks: scsi0",
            ),
            (
                "pve_disk_resize",
                json!({"vmid": 100, "disk": "scsi0", "size": "-1G"}),
                "invalid_argument",
                "no size",
            ),
            (
                "pve_disk_resize",
                json!({"vmid": 118, "disk": "unused0", "size": "+1G"}),
                "invalid_argument",
                "not attached",
            ),
            (
                "pve_disk_resize",
                json!({"vmid": 100, "disk": "scsi0", "size": "+1G", "digest": "0".repeat(40)}),
                "digest_changed",
                "changed",
            ),
            (
                "pve_disk_move",
                json!({"vmid": 100, "disk": "scsi0", "storage": "local-lvm"}),
                "conflict",
                "already",
            ),
            ("pve_disk_move", json!({"vmid": 100, "disk": "scsi0"}), "invalid_argument", "either"),
            (
                "pve_disk_move",
                json!({"vmid": 100, "disk": "scsi0", "target_vmid": 200}),
                "conflict",
                "cannot take",
            ),
            (
                "pve_disk_move",
                json!({"vmid": 100, "disk": "scsi0", "target_vmid": 100}),
                "invalid_argument",
                "already",
            ),
            (
                "pve_disk_move",
                json!({"vmid": 100, "disk": "scsi0", "target_vmid": 101}),
                "conflict",
                "pve2",
            ),
            (
                "pve_disk_detach",
                json!({"vmid": 200, "disk": "rootfs"}),
                "invalid_argument",
                "root file system",
            ),
            (
                "pve_disk_detach",
                json!({"vmid": 118, "disk": "unused0"}),
                "invalid_argument",
                "detached already",
            ),
            (
                "pve_disk_detach",
                json!({"vmid": 120, "disk": "unused0", "delete": true}),
                "conflict",
                "belongs to guest 100",
            ),
            (
                "pve_disk_detach",
                json!({"vmid": 208, "disk": "mp0", "delete": true}),
                "invalid_argument",
                "detached first",
            ),
            ("pve_disk_detach", json!({"vmid": 109, "disk": "scsi1"}), "protected", "109"),
            (
                "pve_nic_set",
                json!({"vmid": 100, "slot": "net0", "bridge": "vmbr0,firewall=0"}),
                "invalid_argument",
                "bridge",
            ),
            (
                "pve_nic_set",
                json!({"vmid": 100, "slot": "args", "bridge": "vmbr0"}),
                "invalid_argument",
                "no slot",
            ),
            (
                "pve_nic_set",
                json!({"vmid": 100, "slot": "net32", "bridge": "vmbr0"}),
                "invalid_argument",
                "no slot",
            ),
            (
                "pve_nic_set",
                json!({"vmid": 100, "slot": "net5", "tag": 5}),
                "invalid_argument",
                "needs `bridge`",
            ),
            (
                "pve_nic_set",
                json!({"vmid": 100, "slot": "net0", "tag": 5000}),
                "invalid_argument",
                "4094",
            ),
            (
                "pve_nic_set",
                json!({"vmid": 100, "slot": "net5", "bridge": "vmbr0", "must_exist": true}),
                "not_found",
                "net5",
            ),
            (
                "pve_nic_set",
                json!({"vmid": 100, "slot": "net0", "tag": 5, "must_not_exist": true}),
                "conflict",
                "exists",
            ),
            (
                "pve_nic_delete",
                json!({"vmid": 100, "slot": "net7"}),
                "not_found",
                "interfaces: net0",
            ),
            ("pve_nic_delete", json!({"vmid": 100, "slot": "scsi0"}), "not_found", "interfaces"),
            (
                "pve_cloudinit_set",
                json!({"vmid": 200, "user": "x"}),
                "invalid_argument",
                "container",
            ),
            ("pve_cloudinit_set", json!({"vmid": 120}), "invalid_argument", "nothing"),
            (
                "pve_cloudinit_set",
                json!({"vmid": 120, "ssh_keys": ["-----BEGIN OPENSSH PRIVATE KEY-----"]}),
                "invalid_argument",
                "private key",
            ),
            (
                "pve_cloudinit_set",
                json!({"vmid": 120, "delete": ["scsi0"]}),
                "invalid_argument",
                "no option of cloud-init",
            ),
            (
                "pve_cloudinit_set",
                json!({"vmid": 120, "nameservers": ["ns1.example.test"]}),
                "invalid_argument",
                "no address",
            ),
            (
                "pve_guest_clone",
                json!({"vmid": 100, "full": false}),
                "invalid_argument",
                "no template",
            ),
            (
                "pve_guest_clone",
                json!({"vmid": 900, "storage": "local-lvm"}),
                "invalid_argument",
                "linked clone",
            ),
            ("pve_guest_clone", json!({"vmid": 100, "name": "a_b"}), "invalid_argument", "name"),
            (
                "pve_guest_clone",
                json!({"vmid": 118, "snapname": "nope"}),
                "not_found",
                "nach-upgrade",
            ),
            (
                "pve_guest_clone",
                json!({"vmid": 900, "wait_address": true}),
                "invalid_argument",
                "needs `start`",
            ),
            (
                "pve_guest_clone",
                json!({"vmid": 900, "start": true, "wait": false}),
                "invalid_argument",
                "needs `wait`",
            ),
            (
                "pve_guest_clone",
                json!({"vmid": 910, "cloudinit": {"user": "x"}}),
                "invalid_argument",
                "no cloud-init",
            ),
            ("pve_guest_migrate", json!({"vmid": 100, "target": "pve9"}), "not_found", "pve9"),
            ("pve_guest_migrate", json!({"vmid": 200, "target": "pve2"}), "conflict", "`restart`"),
            (
                "pve_guest_migrate",
                json!({"vmid": 100, "target": "pve2"}),
                "conflict",
                "local disks",
            ),
            ("pve_guest_migrate", json!({"vmid": 123, "target": "pve2"}), "conflict", "hostpci0"),
            ("pve_guest_template", json!({"vmid": 100}), "conflict", "running"),
            (
                "pve_vm_agent_command",
                json!({"vmid": 110, "command": "ping"}),
                "agent_unavailable",
                "not enabled",
            ),
            (
                "pve_vm_agent_command",
                json!({"vmid": 200, "command": "ping"}),
                "invalid_argument",
                "container",
            ),
            (
                "pve_vm_agent_command",
                json!({"vmid": 100, "command": "exec"}),
                "invalid_argument",
                "freeze",
            ),
            ("pve_pool_create", json!({"pool": "buero"}), "conflict", "exists"),
            ("pve_pool_create", json!({"pool": ".."}), "invalid_argument", "pool"),
            ("pve_pool_update", json!({"pool": "nope", "comment": "x"}), "not_found", "nope"),
            (
                "pve_pool_update",
                json!({"pool": "buero", "add_vmids": [115], "remove_vmids": [117]}),
                "invalid_argument",
                "two calls",
            ),
            ("pve_pool_delete", json!({"pool": "buero"}), "conflict", "members"),
            ("pve_ha_resource_delete", json!({"vmid": 213}), "not_found", "not managed"),
            (
                "pve_ha_resource_set",
                json!({"vmid": 213, "state": "asleep"}),
                "invalid_argument",
                "started",
            ),
            ("pve_replication_set", json!({"vmid": 213}), "invalid_argument", "target"),
            (
                "pve_replication_set",
                json!({"vmid": 213, "target": "pve3"}),
                "invalid_argument",
                "itself",
            ),
            (
                "pve_replication_set",
                json!({"vmid": 213, "id": "214-0", "target": "pve1"}),
                "invalid_argument",
                "not guest 213",
            ),
            (
                "pve_replication_set",
                json!({"vmid": 213, "target": "pve1", "schedule": "never"}),
                "invalid_argument",
                "schedule",
            ),
            (
                "pve_replication_delete",
                json!({"id": ".."}),
                "invalid_argument",
                "no replication job",
            ),
            ("pve_replication_delete", json!({"id": "213-9"}), "not_found", "213-9"),
            ("pve_vm_create", json!({"name": "x"}), "invalid_argument", "`node` is missing"),
            (
                "pve_vm_create",
                json!({"node": "pve1", "disks": [{"size": "8G", "storage": "pbs-main"}]}),
                "invalid_argument",
                "does not hold images",
            ),
            (
                "pve_vm_create",
                json!({"node": "pve1", "disks": [{"storage": "local-lvm"}]}),
                "invalid_argument",
                "size",
            ),
            (
                "pve_vm_create",
                json!({"node": "pve1", "options": {"vmid": 100}}),
                "invalid_argument",
                "of its own",
            ),
            (
                "pve_vm_create",
                json!({"node": "pve1", "iso": "nfs-images:iso/nope.iso"}),
                "not_found",
                "nope",
            ),
            (
                "pve_ct_create",
                json!({"node": "pve1", "template": "nfs-images:iso/virtio-win-0.1.271.iso"}),
                "invalid_argument",
                "no container template",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn guests_in_no_state_for_a_change_are_left_alone() {
    let world = World::new().await;
    // Locked since a backup; the gate says so before anything is sent.
    all_bad(
        &world,
        &[
            (
                "pve_disk_resize",
                json!({"vmid": 116, "disk": "scsi0", "size": "+1G"}),
                "locked",
                "backup",
            ),
            ("pve_nic_set", json!({"vmid": 116, "slot": "net0", "tag": 31}), "locked", "backup"),
            ("pve_disk_detach", json!({"vmid": 116, "disk": "scsi1"}), "locked", "backup"),
        ],
    )
    .await;
    let hidden = World::with(|c| {
        c.denied_vmids = proxmox_mcp::config::VmidSet::parse("100-110").unwrap();
    })
    .await;
    all_bad(
        &hidden,
        &[
            (
                "pve_disk_resize",
                json!({"vmid": 100, "disk": "scsi0", "size": "+1G"}),
                "vmid_denied",
                "100",
            ),
            ("pve_guest_clone", json!({"vmid": 100}), "vmid_denied", "100"),
            (
                "pve_backup_create",
                json!({"vmid": 102, "storage": "pbs-main"}),
                "vmid_denied",
                "102",
            ),
            (
                "pve_disk_move",
                json!({"vmid": 120, "disk": "scsi0", "target_vmid": 105, "dry_run": true}),
                "vmid_denied",
                "105",
            ),
        ],
    )
    .await;
}

/// W1 to W3, A36: a name cannot turn a call into one on its parent.
#[tokio::test]
async fn names_that_would_reach_the_parent() {
    let world = World::new().await;
    for name in ["..", ".", "", "../..", "%2e%2e", "a/b", "current"] {
        for tool in ["pve_snapshot_delete", "pve_snapshot_rollback"] {
            let error = world.confirmed(tool, json!({"vmid": 118, "name": name})).await;
            let error = error.unwrap_err();
            let refused = ["invalid_argument", "path_refused", "not_found"];
            assert!(refused.contains(&error.code.as_str()), "{tool} {name:?}: {error}");
            assert_eq!(world.sent(), Vec::<String>::new(), "{tool} {name:?}");
        }
    }
    assert!(world.sim.with_state(|s| s.guests.contains_key(&118)));
}

#[tokio::test]
async fn a_guest_whose_name_is_not_known_now_is_not_deleted() {
    let world = World::new().await;
    world.sim.with_state(|s| s.nodes.get_mut("pve3").unwrap().online = false);
    // Not even where the caller names it "", which is what the list has.
    for name in ["shop-frontend", ""] {
        let arguments = json!({"vmid": 112, "expect_name": name});
        let error = world.confirmed("pve_guest_delete", arguments).await.unwrap_err();
        let text = format!("{error} {}", error.hint);
        assert_eq!(error.code.as_str(), "conflict", "{text}");
        for part in
            ["name of guest 112 is not known now", "pve3 does not answer", "pve_cluster_status"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("\"\""), "{text}");
    }
    assert_eq!(world.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn a_guest_that_the_list_has_no_name_for_is_asked_for_it() {
    let world = World::new().await;
    // The node answers again, and the list does not show the name yet.
    let rows = json!([{"id": "qemu/112", "type": "qemu", "vmid": 112, "node": "pve3", "status": "unknown"}]);
    let list = Effect::Answer(json!({"data": rows}).to_string());
    world.sim.inject(Fault::new(list).path("/cluster/resources").always());
    let wrong = json!({"vmid": 112, "expect_name": "shop", "dry_run": true});
    let error = world.call("pve_guest_delete", wrong).await.unwrap_err();
    assert!(error.message.contains("is named \"shop-frontend\""), "{error}");
    let right = json!({"vmid": 112, "expect_name": "shop-frontend", "dry_run": true});
    // It runs, which the gate says; the name was right.
    let error = world.call("pve_guest_delete", right).await;
    assert!(!format!("{error:?}").contains("is named"), "{error:?}");
}
