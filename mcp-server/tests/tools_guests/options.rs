//! Options, interfaces and cloud-init: what was not named stays.

use crate::{
    KEY,
    world::{World, all_bad},
};
use pve_sim::{Effect, Fault};
use serde_json::json;

/// A41, A46.
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

/// A17.
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
    assert_eq!(sent, [format!("POST /nodes/pve1/qemu/120/config {{{line}}}")]);
    // What is stored has the old address and the new one: it waits for the next
    // start of the running VM, and then it is there.
    let stored = "ip=10.20.40.31/24,gw=10.20.40.1,ip6=auto";
    let waits = world.call("pve_vm_config", json!({"vmid": 120, "view": "pending"})).await.unwrap();
    assert!(waits["pending"].to_string().contains(stored), "{waits}");
    world.confirmed("pve_guest_reboot", json!({"vmid": 120})).await.unwrap();
    assert_eq!(world.option(120, "ipconfig0").as_deref(), Some(stored));
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

/// A41: a part of a line changes, and the rest of the line stays.
#[tokio::test]
async fn parts_of_lines_change_and_no_size_is_written() {
    let world = World::new().await;
    let ask = json!({"vmid": 120, "set": {"scsi0": {"backup": false}, "agent": {"fstrim_cloned_disks": true}}});
    let done = world.call("pve_guest_config_set", ask).await.unwrap();
    assert!(world.with_digest());
    assert_eq!(
        world.sent(),
        [
            r#"POST /nodes/pve1/qemu/120/config {"agent":"1,fstrim_cloned_disks=1","scsi0":"local-lvm:vm-120-disk-0,discard=on,iothread=1,backup=0"}"#
        ]
    );
    let stored = world.option(120, "scsi0").unwrap();
    assert!(stored.contains("iothread=1") && stored.contains("size=40G"), "{stored}");
    assert!(done["before"]["scsi0"].is_string(), "{done}");

    // A line as pve_vm_config shows it goes back without its size; another size is a resize.
    let line = "local-lvm:vm-120-disk-0,discard=on,iothread=1,size=40G";
    let ask = json!({"vmid": 120, "set": {"scsi0": line}});
    world.call("pve_guest_config_set", ask).await.unwrap();
    let sent = world.sent();
    assert_eq!(
        sent,
        [
            r#"POST /nodes/pve1/qemu/120/config {"scsi0":"local-lvm:vm-120-disk-0,discard=on,iothread=1"}"#
        ]
    );
    all_bad(
        &world,
        &[
            (
                "pve_guest_config_set",
                json!({"vmid": 120, "set": {"scsi0": line.replace("40G", "64G")}}),
                "invalid_argument",
                "pve_disk_resize",
            ),
            (
                "pve_guest_config_set",
                json!({"vmid": 120, "set": {"scsi0": {"size": "64G"}}}),
                "invalid_argument",
                "pve_disk_resize",
            ),
            (
                "pve_guest_config_set",
                json!({"vmid": 120, "set": {"net0": {"bridge": "vmbr0,firewall=0"}}}),
                "invalid_argument",
                "comma",
            ),
        ],
    )
    .await;
}

/// A46: each update carries the digest of what was read, and stops at a stale one.
#[tokio::test]
async fn every_update_carries_a_digest() {
    for (tool, arguments) in [
        ("pve_guest_config_set", json!({"vmid": 120, "set": {"cores": 3}})),
        ("pve_guest_tags_set", json!({"vmid": 120, "add": ["neu"]})),
        ("pve_disk_add", json!({"vmid": 120, "storage": "local-lvm", "size": "8G"})),
        ("pve_disk_resize", json!({"vmid": 120, "disk": "scsi0", "size": "+1G"})),
        ("pve_disk_move", json!({"vmid": 122, "disk": "scsi0", "storage": "nfs-images"})),
        ("pve_disk_detach", json!({"vmid": 106, "disk": "scsi1"})),
        ("pve_nic_set", json!({"vmid": 120, "slot": "net0", "tag": 41})),
        ("pve_nic_delete", json!({"vmid": 114, "slot": "net1"})),
        ("pve_cloudinit_set", json!({"vmid": 120, "nameservers": ["10.20.10.53"]})),
        ("pve_guest_config_set", json!({"vmid": 213, "set": {"memory": 1024}})),
        ("pve_nic_set", json!({"vmid": 213, "slot": "net0", "tag": 41})),
        ("pve_disk_resize", json!({"vmid": 213, "disk": "rootfs", "size": "+1G"})),
    ] {
        let world = World::new().await;
        let vmid = u32::try_from(arguments["vmid"].as_u64().unwrap()).unwrap();
        let want = world.call("pve_vm_config", json!({"vmid": vmid})).await.unwrap();
        world.confirmed(tool, arguments.clone()).await.unwrap();
        let seen = world.sim.requests();
        let sent = seen.iter().find(|r| r.method != "GET").unwrap();
        assert_eq!(sent.param("digest").as_deref(), want["digest"].as_str(), "{tool}");
        if tool == "pve_guest_tags_set" {
            continue;
        }
        world.sim.clear_requests();
        let mut stale = arguments.clone();
        stale["digest"] = json!("0".repeat(40));
        // What is done already is no change, whatever the digest.
        match world.confirmed(tool, stale).await {
            Ok(answer) => assert_eq!(answer["status"], "no_change", "{tool}: {answer}"),
            Err(error) => {
                let stops = ["digest_changed", "conflict", "not_found"];
                assert!(stops.contains(&error.code.as_str()), "{tool}: {error}");
            }
        }
        assert_eq!(world.sent(), Vec::<String>::new(), "{tool}: a stale digest is not sent");
    }
}

#[tokio::test]
async fn a_mask_is_not_written_back_over_what_it_hides() {
    let world = World::new().await;
    let set = |text: &str| json!({"vmid": 120, "set": {"description": text}});
    world.call("pve_guest_config_set", set("root password: hunter22")).await.unwrap();
    let shown = world.call("pve_vm_config", json!({"vmid": 120})).await.unwrap().to_string();
    assert!(shown.contains("password: ***") && !shown.contains("hunter22"), "{shown}");
    let error = world.call("pve_guest_config_set", set("root password: ***")).await.unwrap_err();
    assert_eq!(error.code.as_str(), "invalid_argument", "{error}");
    assert_eq!(world.option(120, "description").as_deref(), Some("root password: hunter22"));
    // Where nothing is hidden three stars are three stars.
    world.call("pve_guest_config_set", set("a note")).await.unwrap();
    world.call("pve_guest_config_set", set("*** important ***")).await.unwrap();
}
