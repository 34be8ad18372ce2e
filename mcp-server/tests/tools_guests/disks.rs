//! Disks that move, change hands, and go.

use crate::world::World;
use serde_json::json;

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

/// C11: a detached volume is destroyed for good, and only with its confirmation;
/// one that a snapshot needs is not, which only the task says.
#[tokio::test]
async fn destroying_volumes() {
    let world = World::new().await;
    let there =
        |volid: &str| world.sim.with_state(|s| s.volumes.iter().any(|v| v.volid() == volid));
    let volid = world.option(118, "unused0").unwrap();
    let ask = json!({"vmid": 118, "disk": "unused0", "delete": true});
    let error = world.call("pve_disk_detach", ask.clone()).await.unwrap_err();
    assert_eq!(error.details["category"], "VOLUME_DELETE", "{error:?}");
    assert!(there(&volid), "nothing was sent");
    let done = world.confirmed("pve_disk_detach", ask).await.unwrap();
    assert_eq!((&done["class"], &done["after"]["unused0"]), (&"CRITICAL".into(), &json!(null)));
    assert!(!there(&volid) && world.option(118, "unused0").is_none(), "{done}");

    let held = "local-lvm:vm-118-disk-1";
    let ask = json!({"vmid": 118, "disk": "scsi1", "delete": true});
    let error = world.confirmed("pve_disk_detach", ask).await.unwrap_err();
    assert_eq!(error.code.as_str(), "task_failed", "{error:?}");
    assert!(error.to_string().contains("still in use (snapshot?)"), "{error}");
    assert!(there(held), "a snapshot needs it");
}
