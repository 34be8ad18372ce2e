//! Where guests run and who looks after them: migration, agents, pools, HA, replication.

use crate::world::World;
use serde_json::{Value, json};

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

/// A13: a read finds a guest that has moved; a write to its old node says where it is.
#[tokio::test]
async fn guests_that_moved() {
    let world = World::new().await;
    world.call("pve_list_vms", json!({})).await.unwrap();
    world.sim.with_state(|s| s.guests.get_mut(&123).unwrap().node = "pve2".to_owned());
    let read = world.call("pve_vm_config", json!({"vmid": 123})).await.unwrap();
    assert_eq!(read["config"]["name"], "ml-experimente", "{read}");

    world.sim.clear_requests();
    let ask = json!({"method": "PUT", "path": "/nodes/pve1/qemu/123/config", "params": {"description": "x"}});
    let error = world.call("pve_api_call", ask).await.unwrap_err();
    assert_eq!(error.code.as_str(), "guest_moved", "{error:?}");
    assert!(error.to_string().contains("pve2"), "{error}");
    assert!(world.sent().len() <= 1, "nothing goes to the new node by itself");
    assert_eq!(world.option(123, "description"), None);
}
