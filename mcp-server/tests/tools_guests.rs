//! Tools of the group guests against the simulated cluster.

#![allow(clippy::unwrap_used)]

mod world;

use pve_sim::{Effect, Fault};
use serde_json::{Value, json};
use world::{World, all_bad, all_good, good};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+a/b= eva@home";

#[tokio::test]
async fn what_is_sent() {
    all_good(vec![
        good(
            "pve_disk_add",
            json!({"vmid": 120, "storage": "local-lvm", "size": "32G", "iothread": true, "discard": true}),
            r#"POST /nodes/pve1/qemu/120/config {"scsi1":"local-lvm:32,discard=on,iothread=1"}"#,
        ),
        good(
            "pve_disk_add",
            json!({"vmid": 213, "storage": "local-lvm", "size": "512M", "mount": "/data", "backup": true}),
            r#"PUT /nodes/pve3/lxc/213/config {"mp0":"local-lvm:0.5,mp=/data,backup=1"}"#,
        ),
        good(
            "pve_disk_resize",
            json!({"vmid": 100, "disk": "scsi0", "size": "+8G"}),
            r#"PUT /nodes/pve1/qemu/100/resize {"disk":"scsi0","size":"+8G"}"#,
        ),
        good(
            "pve_disk_resize",
            json!({"vmid": 200, "disk": "rootfs", "size": "12G"}),
            r#"PUT /nodes/pve1/lxc/200/resize {"disk":"rootfs","size":"12G"}"#,
        ),
        good(
            "pve_disk_move",
            json!({"vmid": 122, "disk": "scsi0", "storage": "nfs-images", "format": "qcow2"}),
            r#"POST /nodes/pve3/qemu/122/move_disk {"disk":"scsi0","format":"qcow2","storage":"nfs-images"}"#,
        ),
        good(
            "pve_disk_detach",
            json!({"vmid": 106, "disk": "scsi1"}),
            r#"POST /nodes/pve3/qemu/106/config {"delete":"scsi1"}"#,
        ),
        good(
            "pve_disk_detach",
            json!({"vmid": 118, "disk": "unused0", "delete": true}),
            r#"POST /nodes/pve1/qemu/118/config {"delete":"unused0"}"#,
        ),
        good(
            "pve_nic_set",
            json!({"vmid": 213, "bridge": "vmbr0", "tag": 7, "ip": "dhcp"}),
            r#"PUT /nodes/pve3/lxc/213/config {"net1":"name=eth1,bridge=vmbr0,firewall=1,ip=dhcp,tag=7"}"#,
        ),
        good(
            "pve_nic_delete",
            json!({"vmid": 114, "slot": "net1"}),
            r#"POST /nodes/pve1/qemu/114/config {"delete":"net1"}"#,
        ),
        good(
            "pve_guest_template",
            json!({"vmid": 122}),
            "POST /nodes/pve3/qemu/122/template {}",
        ),
        good(
            "pve_vm_agent_command",
            json!({"vmid": 100, "command": "ping"}),
            "POST /nodes/pve1/qemu/100/agent/ping {}",
        ),
        good(
            "pve_vm_agent_command",
            json!({"vmid": 100, "command": "trim"}),
            "POST /nodes/pve1/qemu/100/agent/fstrim {}",
        ),
        good(
            "pve_pool_create",
            json!({"pool": "kunden", "comment": "Kunden & Co"}),
            r#"POST /pools {"comment":"Kunden & Co","poolid":"kunden"}"#,
        ),
        good(
            "pve_pool_update",
            json!({"pool": "buero", "add_vmids": [115]}),
            r#"PUT /pools {"poolid":"buero","vms":"115"}"#,
        ),
        good(
            "pve_pool_update",
            json!({"pool": "buero", "remove_vmids": [117]}),
            r#"PUT /pools {"delete":"1","poolid":"buero","vms":"117"}"#,
        ),
        good(
            "pve_ha_resource_set",
            json!({"vmid": 213, "state": "stopped", "max_restart": 2}),
            r#"POST /cluster/ha/resources {"max_restart":"2","sid":"ct:213","state":"stopped"}"#,
        ),
    ])
    .await;
}

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
async fn one_key_of_an_interface_changes_and_the_digest_goes_along() {
    let world = World::new().await;
    let old = world.option(100, "net0").unwrap();
    let ask = json!({"vmid": 100, "slot": "net0", "tag": 10});
    let done = world.call("pve_nic_set", ask.clone()).await.unwrap();
    assert!(world.with_digest());
    let want = old.replace("tag=20", "tag=10");
    assert_eq!(world.sent(), [format!(r#"POST /nodes/pve1/qemu/100/config {{"net0":"{want}"}}"#)]);
    assert_eq!((&done["before"]["net0"], &done["did"]), (&old.into(), &"updated".into()));
    assert_eq!(world.call("pve_nic_set", ask).await.unwrap()["status"], "no_change");

    // The configuration changes between the read and the write.
    world.sim.inject(
        Fault::new(Effect::Error(500, "checksum mismatch (file change by other user?)\n".into()))
            .method("POST")
            .path("/nodes/pve1/qemu/100/config"),
    );
    let error = world.call("pve_nic_set", json!({"vmid": 100, "slot": "net0", "tag": 11})).await;
    let error = error.unwrap_err();
    assert_eq!(error.code.as_str(), "digest_changed", "{error}");
    assert_eq!(world.sent().len(), 1, "it is not tried again");
}

#[tokio::test]
async fn keys_are_sent_encoded_and_read_back_as_lines() {
    let world = World::new().await;
    let keys = [KEY, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+c/d= two words"];
    let ask = json!({"vmid": 120, "ssh_keys": keys, "addresses": [{"ip": "10.20.40.31/24", "gw": "10.20.40.1"}], "drive_storage": "local-lvm"});
    let done = world.confirmed("pve_cloudinit_set", ask).await.unwrap();
    assert_eq!(done["category"], "GUEST_CREDENTIALS");
    let encoded = "ssh-ed25519%20AAAAC3NzaC1lZDI1NTE5AAAAIJ%2Ba%2Fb%3D%20eva%40home%0Assh-ed25519%20AAAAC3NzaC1lZDI1NTE5AAAAIJ%2Bc%2Fd%3D%20two%20words";
    assert_eq!(
        world.sent(),
        [format!(
            r#"POST /nodes/pve1/qemu/120/config {{"ide2":"local-lvm:cloudinit","ipconfig0":"ip=10.20.40.31/24,gw=10.20.40.1","sshkeys":"{encoded}"}}"#
        )]
    );
    assert_eq!(done["after"]["sshkeys"], json!(keys), "{done}");
    let more = json!({"vmid": 120, "addresses": [{"ip6": "auto"}]});
    world.call("pve_cloudinit_set", more).await.unwrap();
    let sent = world.sent();
    let line = r#""ipconfig0":"ip=10.20.40.31/24,gw=10.20.40.1,ip6=auto""#;
    assert!(sent.last().unwrap().contains(line), "{sent:?}");
}

#[tokio::test]
async fn a_password_is_shown_nowhere() {
    let world = World::new().await;
    let ask = json!({"vmid": 120, "password": "s3cr3t-Passw0rd", "dry_run": true});
    let shown = world.call("pve_cloudinit_set", ask).await.unwrap();
    assert!(!shown.to_string().contains("s3cr3t-Passw0rd"), "{shown}");
    let then = json!({"vmid": 900, "cloudinit": {"password": "s3cr3t-Passw0rd"}, "dry_run": true});
    let shown = world.call("pve_guest_clone", then).await.unwrap();
    assert!(!shown.to_string().contains("s3cr3t-Passw0rd"), "{shown}");
}

#[tokio::test]
async fn from_a_template_to_an_address() {
    let world = World::new().await;
    world.sim.with_state(|s| {
        let agent = s.guests.get(&120).unwrap().agent.clone();
        s.guests.get_mut(&900).unwrap().agent = agent;
    });
    let ask = json!({
        "vmid": 900, "newid": 950, "name": "web-03", "start": true, "wait_address": true, "memory_mib": 4096,
        "cloudinit": {"ssh_keys": [KEY], "addresses": [{"ip": "10.20.40.50/24", "gw": "10.20.40.1"}]},
    });
    let mut dry = ask.clone();
    dry["dry_run"] = json!(true);
    let shown = world.call("pve_guest_clone", dry).await.unwrap();
    let steps: Vec<&str> =
        shown["then"].as_array().unwrap().iter().map(|s| s["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["configure", "start"], "{shown}");
    assert_eq!(shown["then"][0]["class"], "CRITICAL", "{shown}");

    // The login has to be confirmed, and is asked for before anything is made.
    let error = world.call("pve_guest_clone", ask.clone()).await.unwrap_err();
    assert_eq!(error.code.as_str(), "confirm_required", "{error}");
    assert_eq!(error.details["confirm"], "/nodes/pve1/qemu/950/config");
    assert!(world.sent().is_empty());

    let done = world.confirmed("pve_guest_clone", ask).await.unwrap();
    let sent = world.sent();
    assert_eq!(sent[0], r#"POST /nodes/pve1/qemu/900/clone {"name":"web-03","newid":"950"}"#);
    assert!(sent[1].starts_with("POST /nodes/pve1/qemu/950/config {\"ipconfig0\":\"ip=10.20.40.50/24,gw=10.20.40.1\",\"memory\":\"4096\",\"sshkeys\":"), "{sent:?}");
    assert_eq!(sent[2], "POST /nodes/pve1/qemu/950/status/start {}");
    assert_eq!(sent.len(), 3);
    assert_eq!(done["status"], "done", "{done}");
    assert_eq!((&done["vmid"], &done["after"]["status"]), (&950.into(), &"running".into()));
    assert!(!done["addresses"].as_array().unwrap().is_empty(), "{done}");
    assert_eq!(done["steps"].as_array().unwrap().len(), 4, "{done}");
}

#[tokio::test]
async fn the_step_that_failed_and_what_stands() {
    let world = World::new().await;
    world.sim.inject(
        Fault::new(Effect::Error(500, "start failed: no such bridge\n".into()))
            .method("POST")
            .path("/nodes/pve1/qemu/*/status/start"),
    );
    let error =
        world.call("pve_guest_clone", json!({"vmid": 900, "start": true})).await.unwrap_err();
    assert_eq!(error.details["step"], "start", "{error:?}");
    assert_eq!(error.details["after"]["status"], "stopped", "{error:?}");
    let vmid = error.details["vmid"].as_u64().unwrap();
    assert!(world.sim.with_state(|s| s.guests.contains_key(&u32::try_from(vmid).unwrap())));
}

#[tokio::test]
async fn a_new_vmid_is_tried_once_when_it_was_taken() {
    let taken = |times| {
        Fault::new(Effect::Error(
            500,
            "unable to create VM 124: config file already exists\n".into(),
        ))
        .method("POST")
        .path("/nodes/pve1/qemu/900/clone")
        .times(times)
    };
    let world = World::new().await;
    let first = world.sim.with_state(|s| s.next_id());
    assert_eq!(first, 124, "the fault below names it");
    world.sim.inject(taken(1));
    let done = world.call("pve_guest_clone", json!({"vmid": 900})).await.unwrap();
    assert_eq!(done["vmid"], 125, "{done}");
    let sent = world.sent();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!(sent[1], r#"POST /nodes/pve1/qemu/900/clone {"newid":"125"}"#);
    // A VMID that was named is never replaced by another.
    world.sim.inject(taken(1));
    let error =
        world.call("pve_guest_clone", json!({"vmid": 900, "newid": 124})).await.unwrap_err();
    assert_eq!(error.code.as_str(), "conflict", "{error}");
    assert_eq!(world.sent().len(), 1);
    let error =
        world.call("pve_guest_clone", json!({"vmid": 900, "newid": 100})).await.unwrap_err();
    assert_eq!(error.code.as_str(), "conflict", "{error}");
    assert_eq!(world.option(100, "name").as_deref(), Some("web-01"), "nothing was overwritten");
}

#[tokio::test]
async fn clones_at_once_get_vmids_of_their_own() {
    let world = World::new().await;
    let one = || world.call("pve_guest_clone", json!({"vmid": 900}));
    let (a, b, c) = futures::join!(one(), one(), one());
    let mut ids: Vec<u64> =
        [a, b, c].into_iter().map(|r| r.unwrap()["vmid"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
}

#[tokio::test]
async fn the_next_vmid_is_one_that_may_be_used() {
    let world = World::with(|c| {
        c.allowed_vmids = Some(proxmox_mcp::config::VmidSet::parse("900,700-720").unwrap());
    })
    .await;
    let done = world.call("pve_guest_clone", json!({"vmid": 900})).await.unwrap();
    assert_eq!(done["vmid"], 700, "{done}");
    let error =
        world.call("pve_guest_clone", json!({"vmid": 900, "newid": 950})).await.unwrap_err();
    assert_eq!(error.code.as_str(), "vmid_denied", "{error}");
}

#[tokio::test]
async fn a_vm_is_made_with_everything() {
    let world = World::new().await;
    let done = world
        .confirmed(
            "pve_vm_create",
            json!({
                "node": "pve1", "vmid": 960, "name": "neu", "cores": 2, "memory_mib": 2048, "storage": "local-lvm",
                "disks": [{"size": "20G", "discard": true}, {"size": "5G", "bus": "virtio"}],
                "nics": [{"bridge": "vmbr0", "tag": 40}], "agent": true, "tags": ["dev", "neu"],
                "cloudinit": {"user": "admin", "addresses": [{"ip": "dhcp"}]}, "start": true,
            }),
        )
        .await
        .unwrap();
    let sent = world.sent();
    assert_eq!(
        sent,
        [
            r#"POST /nodes/pve1/qemu {"agent":"1","boot":"order=scsi0","ciuser":"admin","cores":"2","ide2":"local-lvm:cloudinit","ipconfig0":"ip=dhcp","memory":"2048","name":"neu","net0":"virtio,bridge=vmbr0,firewall=1,tag=40","ostype":"l26","scsi0":"local-lvm:20,discard=on","scsihw":"virtio-scsi-single","tags":"dev;neu","virtio0":"local-lvm:5","vmid":"960"}"#,
            "POST /nodes/pve1/qemu/960/status/start {}",
        ]
    );
    assert_eq!(
        (&done["class"], &done["after"]["status"]),
        (&"WRITE".into(), &"running".into()),
        "{done}"
    );
    let error =
        world.call("pve_vm_create", json!({"node": "pve1", "vmid": 960})).await.unwrap_err();
    assert_eq!(error.code.as_str(), "conflict", "{error}");
}

#[tokio::test]
async fn a_container_is_unprivileged_and_the_request_says_so() {
    let world = World::new().await;
    let template = world.sim.with_state(|s| {
        s.volumes
            .iter()
            .find(|v| v.content == "vztmpl" && v.storage == "nfs-images")
            .unwrap()
            .volid()
    });
    let ask = json!({
        "node": "pve2", "vmid": 961, "template": template, "hostname": "neu", "storage": "local-lvm", "size": "10G",
        "nics": [{"bridge": "vmbr0", "ip": "10.20.40.9/24", "gw": "10.20.40.1"}], "ssh_keys": [KEY],
        "mounts": [{"size": "2G", "path": "/data", "backup": true}],
    });
    let done = world.call("pve_ct_create", ask).await.unwrap();
    assert_eq!(done["class"], "WRITE", "{done}");
    assert_eq!(done["after"]["status"], "stopped", "not started unless asked");
    assert_eq!(
        world.sent(),
        [format!(
            r#"POST /nodes/pve2/lxc {{"hostname":"neu","mp0":"local-lvm:2,mp=/data,backup=1","net0":"name=eth0,bridge=vmbr0,firewall=1,ip=10.20.40.9/24,gw=10.20.40.1","ostemplate":"{template}","rootfs":"local-lvm:10","ssh-public-keys":"{KEY}","unprivileged":"1","vmid":"961"}}"#
        )]
    );
    let ask = json!({"node": "pve2", "template": template, "storage": "local-lvm", "unprivileged": false});
    let error = world.call("pve_ct_create", ask).await.unwrap_err();
    assert_eq!(error.details["category"], "PRIVILEGED_CONTAINER", "{error:?}");
    assert!(world.sent().is_empty());
}

#[tokio::test]
async fn moving_and_handing_over_disks() {
    let world = World::new().await;
    let done = world
        .call("pve_disk_move", json!({"vmid": 122, "disk": "scsi0", "storage": "nfs-images"}))
        .await;
    let done = done.unwrap();
    assert_eq!(done["class"], "WRITE", "{done}");
    assert!(done["after"]["disks"]["scsi0"].as_str().unwrap().starts_with("nfs-images:"), "{done}");
    assert_eq!(done["after"]["disks"]["unused0"], done["before"]["volume"], "the old volume stays");
    world.sent();
    let over = json!({"vmid": 122, "disk": "unused0", "target_vmid": 106, "target_disk": "scsi5"});
    let over = world.confirmed("pve_disk_move", over).await;
    let over = over.unwrap();
    assert!(over["after"]["target_disks"]["scsi5"].is_string(), "{over}");
}

#[tokio::test]
async fn migrating() {
    let world = World::new().await;
    // Managed by HA: the call only asks the manager, and the answer waits for the guest itself.
    let done = world
        .call("pve_guest_migrate", json!({"vmid": 100, "target": "pve2", "with_local_disks": true}))
        .await;
    let done = done.unwrap();
    assert!(done["task"]["upid"].as_str().unwrap().contains(":hamigrate:"), "{done}");
    assert_eq!(
        world.sent(),
        [
            r#"POST /nodes/pve1/qemu/100/migrate {"online":"1","target":"pve2","with-local-disks":"1"}"#
        ]
    );
    assert_eq!(
        (&done["before"]["node"], &done["after"]["node"]),
        (&"pve1".into(), &"pve2".into()),
        "{done}"
    );
    let again =
        world.call("pve_guest_migrate", json!({"vmid": 100, "target": "pve2"})).await.unwrap();
    assert_eq!(again["status"], "no_change");
    let ct = world
        .confirmed("pve_guest_migrate", json!({"vmid": 200, "target": "pve3", "restart": true}))
        .await
        .unwrap();
    assert_eq!(
        (&ct["class"], &ct["after"]["node"]),
        (&"DESTRUCTIVE".into(), &"pve3".into()),
        "{ct}"
    );
    let stopped = world
        .call("pve_guest_migrate", json!({"vmid": 213, "target": "pve1", "restart": true}))
        .await
        .unwrap();
    assert_eq!(stopped["class"], "WRITE", "nothing stops that does not run: {stopped}");
}

#[tokio::test]
async fn agents() {
    let world = World::new().await;
    let well = world.call("pve_vm_agent_status", json!({"vmid": 100})).await.unwrap();
    assert_eq!((&well["configured"], &well["answers"]), (&true.into(), &true.into()), "{well}");
    assert!(well["os"].is_string() && well["hostname"].is_string(), "{well}");
    assert!(well["filesystems"][0]["total_bytes"].as_u64().unwrap() > 0, "{well}");
    for (vmid, words) in [(110, "set `agent` to 1"), (111, "does not answer"), (112, "agent")] {
        let ill = world.call("pve_vm_agent_status", json!({"vmid": vmid})).await.unwrap();
        assert_eq!(ill["answers"], false, "{ill}");
        assert!(ill["why"].as_str().unwrap().contains(words), "{ill}");
    }
    assert!(world.sent().is_empty(), "a read changes nothing");
    let frozen = world
        .call("pve_vm_agent_command", json!({"vmid": 100, "command": "freeze"}))
        .await
        .unwrap();
    assert_eq!(frozen["class"], "DESTRUCTIVE");
    assert!(frozen["note"].as_str().unwrap().contains("thaw"), "{frozen}");
    let silent = world
        .call("pve_vm_agent_command", json!({"vmid": 111, "command": "ping"}))
        .await
        .unwrap_err();
    assert_eq!(silent.code.as_str(), "agent_unavailable", "{silent}");
}

#[tokio::test]
async fn pools_ha_and_replication_from_beginning_to_end() {
    let world = World::new().await;
    let call = async |tool: &str, arguments: Value| {
        let name = format!("{tool} {arguments}");
        world
            .confirmed(tool, arguments)
            .await
            .unwrap_or_else(|e| panic!("{name}: {e} {:?}", e.details))
    };
    let made = call("pve_pool_create", json!({"pool": "neu", "comment": "Neues"})).await;
    assert_eq!(made["after"]["comment"], "Neues", "{made}");
    let set = call(
        "pve_pool_update",
        json!({"pool": "neu", "add_vmids": [115, 122], "allow_move": true}),
    )
    .await;
    assert_eq!(set["after"]["vmids"], json!([115, 122]), "{set}");
    let out = call("pve_pool_update", json!({"pool": "neu", "remove_vmids": [115, 122]})).await;
    assert_eq!(
        (&out["class"], &out["after"]["vmids"]),
        (&"DESTRUCTIVE".into(), &json!([])),
        "{out}"
    );
    let gone = call("pve_pool_delete", json!({"pool": "neu"})).await;
    assert_eq!(gone["after"], json!({"exists": false}));

    let ha = call("pve_ha_resource_set", json!({"vmid": 213, "state": "stopped"})).await;
    assert_eq!(
        (&ha["did"], &ha["category"], &ha["after"]["state"]),
        (&"created".into(), &"HA".into(), &"stopped".into()),
        "{ha}"
    );
    let ha = call("pve_ha_resource_set", json!({"vmid": 213, "max_restart": 3})).await;
    assert_eq!((&ha["did"], &ha["after"]["max_restart"]), (&"updated".into(), &3.into()), "{ha}");
    let ha = call("pve_ha_resource_delete", json!({"vmid": 213})).await;
    assert_eq!(ha["after"], json!({"exists": false}), "{ha}");

    world.sent();
    let job =
        call("pve_replication_set", json!({"vmid": 213, "target": "pve1", "schedule": "*/30"}))
            .await;
    assert_eq!((&job["did"], &job["id"]), (&"created".into(), &"213-0".into()), "{job}");
    assert_eq!(
        world.sent(),
        [
            r#"POST /cluster/replication {"id":"213-0","schedule":"*/30","target":"pve1","type":"local"}"#
        ]
    );
    let job =
        call("pve_replication_set", json!({"vmid": 213, "target": "pve1", "schedule": "02:00"}))
            .await;
    assert_eq!(
        (&job["did"], &job["after"]["schedule"]),
        (&"updated".into(), &"02:00".into()),
        "{job}"
    );
    let next = call("pve_replication_set", json!({"vmid": 213, "target": "pve2"})).await;
    assert_eq!(next["id"], "213-1", "{next}");
    let gone = call("pve_replication_delete", json!({"id": "213-0", "keep": true})).await;
    assert_eq!(
        (&gone["category"], &gone["request"]["params"]),
        (&"REPLICATION_DELETE".into(), &json!({"keep": "1"})),
        "{gone}"
    );
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
