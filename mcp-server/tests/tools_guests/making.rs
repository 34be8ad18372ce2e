//! New guests: clones, VMs and containers, up to the point where they can be reached.

use crate::{KEY, world::World};
use pve_sim::{Effect, Fault};
use serde_json::json;

#[tokio::test]
async fn from_a_template_to_an_address() {
    let world = World::new().await;
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
    assert_eq!(done["addresses"], json!(["10.20.40.50"]), "{done}");
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

/// A15.
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
    assert_eq!(
        sent,
        [
            r#"POST /nodes/pve1/qemu/900/clone {"newid":"124"}"#,
            r#"POST /nodes/pve1/qemu/900/clone {"newid":"125"}"#,
        ]
    );
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

/// A15.
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

/// W17, W18: one call is one write, also when its answer is lost.
#[tokio::test]
async fn a_clone_whose_answer_is_lost_is_not_sent_again() {
    let world = World::new().await;
    for effect in [Effect::CutInAnswer, Effect::StatusAfter(502, "Bad Gateway".into())] {
        world
            .sim
            .inject(Fault::new(effect).method("POST").path("/nodes/pve1/qemu/900/clone").times(1));
        let error =
            world.call("pve_guest_clone", json!({"vmid": 900, "start": true})).await.unwrap_err();
        assert_eq!(error.code.as_str(), "outcome_unknown", "{error:?}");
        let sent = world.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert!(sent[0].starts_with("POST /nodes/pve1/qemu/900/clone "), "{sent:?}");
    }
}

/// A container on DHCP is told with the address that it got.
#[tokio::test]
async fn a_container_is_waited_for() {
    let world = World::new().await;
    let ask = json!({
        "node": "pve1", "vmid": 962, "template": "nfs-images:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst",
        "storage": "local-lvm", "nics": [{"bridge": "vmbr0", "ip": "dhcp"}], "start": true, "wait_address": true,
    });
    let done = world.call("pve_ct_create", ask).await.unwrap();
    assert_eq!(done["status"], "done", "{done}");
    assert_eq!(done["addresses"], json!(["10.20.40.162"]), "{done}");
    assert_eq!(done["request"]["params"]["unprivileged"], "1", "{done}");
}
