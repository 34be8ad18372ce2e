//! What the token, a dead node or a dead storage hides is unknown, never none.

use serde_json::{Value, json};

use super::{guest_row, judged, lines, unknown};
use crate::insight::{estate::Estate, fixture::GIB};

#[test]
fn a_node_that_is_down_does_not_spoil_the_rest() {
    let found = judged(|api| {
        api["resources"][1] = json!({"type": "node", "node": "pve2", "status": "offline"});
        api["resources"][6] = json!({"type": "storage", "storage": "local-lvm", "node": "pve2", "plugintype": "lvmthin",
            "status": "unknown", "content": "images"});
        api["resources"][8]["status"] = json!("unknown");
        guest_row(api, 101)["status"] = json!("unknown");
        let gone = json!({"error": "node pve2 cannot be reached (595)"});
        for part in ["certificates", "disks", "thin_pools", "updates", "replication"] {
            api[part]["pve2"] = gone.clone();
        }
        api["content"]["pve2/local-lvm"] = gone.clone();
        api["snapshots"]["101"] = gone.clone();
        api["configs"]["101"] = gone;
    });
    assert_eq!(lines(&found), ["critical node_offline: Node pve2 is offline"]);
    assert_eq!(found.findings[0].evidence["guests"], 1);
    assert_eq!(
        unknown(&found),
        [
            "everything on node pve2: the node is offline",
            "volumes of local-lvm on pve2: storage local-lvm on pve2 does not answer",
        ]
    );
}

#[test]
fn an_auditor_sees_no_backups_and_is_told_so() {
    let found = judged(|api| {
        api["rights"] = json!({"/": {"Sys.Audit": 1, "VM.Audit": 1, "Datastore.Audit": 1}});
        // What the node answers: 200 and empty lists.
        for storage in ["pve1/nas", "pve1/local-lvm", "pve2/local-lvm"] {
            api["content"][storage] = json!([]);
        }
    });
    assert_eq!(lines(&found), Vec::<String>::new());
    assert_eq!(
        unknown(&found),
        [
            "backups of 100, 101: the token lacks Datastore.AllocateSpace on /storage/nas and VM.Backup on the guest",
            "volumes of local-lvm on pve1, local-lvm on pve2: the token lacks Datastore.Allocate on /storage/local-lvm",
        ]
    );
}

#[test]
fn a_token_without_rights_sees_nothing_and_nothing_is_called_well() {
    let denied = || json!({"error": "the token lacks Sys.Audit on /"});
    let found = judged(|api| {
        *api = json!({
            "rights": {}, "resources": [{"type": "node", "node": "pve1", "status": "online"}], "status": denied(),
            "jobs": denied(), "tasks": [], "ha": denied(),
        });
    });
    assert_eq!(lines(&found), Vec::<String>::new());
    let unknown = unknown(&found);
    let expected = [
        "backup jobs: the token lacks Sys.Audit on /",
        "guests: 0 guests visible: the token lacks VM.Audit on /vms",
        "high availability: the token lacks Sys.Audit on /",
        "quorum: the token lacks Sys.Audit on /",
        "storages: 0 storages visible: the token lacks Datastore.Audit on /storage",
        "certificates of pve1: not read",
    ];
    for start in expected {
        assert!(unknown.iter().any(|u| u.starts_with(start)), "{start:?} is not in {unknown:#?}");
    }
}

#[test]
fn a_token_for_one_guest_does_not_call_other_volumes_orphans() {
    let found = judged(|api| {
        api["rights"] = json!({
            "/vms/100": {"VM.Audit": 1, "VM.Backup": 1},
            "/storage": {"Datastore.Allocate": 1, "Datastore.Audit": 1}, "/nodes": {"Sys.Audit": 1},
        });
        let rows = api["resources"].as_array_mut().unwrap();
        rows.retain(|r| r.get("vmid").is_none_or(|v| v == 100));
    });
    assert_eq!(lines(&found), Vec::<String>::new());
    let unknown = unknown(&found);
    assert!(
        unknown.contains(&"further guests: the token lacks VM.Audit on all of /vms".to_owned()),
        "{unknown:#?}"
    );
    assert!(
        unknown.iter().any(|u| u.starts_with("orphaned volumes of local-lvm on pve1")),
        "{unknown:#?}"
    );
}

#[test]
fn a_dead_storage_spoils_only_what_lies_on_it() {
    let found = judged(|api| {
        for row in [7, 8] {
            api["resources"][row]["status"] = json!("unknown");
            api["resources"][row]["disk"] = json!(0);
        }
        api["content"]["pve1/nas"] = json!({"error": "no answer in time"});
        let push = json!({"volid": "local-lvm:vm-555-disk-0", "content": "images", "vmid": 555, "size": GIB});
        api["content"]["pve1/local-lvm"].as_array_mut().unwrap().push(push);
    });
    assert_eq!(
        lines(&found),
        [
            "warning storage_offline: Storage nas does not answer",
            "warning orphaned_disk: local-lvm:vm-555-disk-0 belongs to guest 555, which does not exist",
        ]
    );
    assert_eq!(unknown(&found), ["backups of 100, 101: storage nas does not answer"]);

    // Disabled by its owner: no alarm, but the backups are still not seen.
    let found = judged(|api| {
        for node in ["pve1", "pve2"] {
            api["node_storage"][node] =
                json!([{"storage": "nas", "enabled": 0, "active": 0, "shared": 1}]);
        }
    });
    assert_eq!(lines(&found), Vec::<String>::new());
    // The last backups that were read are fresh, so nothing is unknown of them.
    assert_eq!(unknown(&found), Vec::<String>::new());
}

#[test]
fn rights_may_be_read_before_or_after_what_they_explain() {
    let (rights, rows) = (json!({}), json!([{"type": "node", "node": "pve1", "status": "online"}]));
    let why = |first: fn(&mut Estate, &Value, &Value)| {
        let mut estate = Estate::new(0);
        first(&mut estate, &rights, &rows);
        let why = estate.guests.why().map(str::to_owned);
        (why, estate.storages.why().map(str::to_owned))
    };
    let before = why(|estate, rights, rows| {
        estate.read_rights(Ok(rights));
        estate.read_resources(Ok(rows));
    });
    let after = why(|estate, rights, rows| {
        estate.read_resources(Ok(rows));
        estate.read_rights(Ok(rights));
    });
    assert_eq!(before, after);
    assert!(before.0.unwrap().starts_with("0 guests visible: the token lacks VM.Audit on /vms"));
}

#[test]
fn the_same_reason_for_many_is_one_line() {
    let found = judged(|api| {
        for n in 100..=101 {
            let denied = format!("the token lacks VM.Audit on /vms/{n}");
            api["snapshots"][n.to_string()] = json!({"error": denied});
        }
        for node in ["pve1", "pve2"] {
            api["disks"][node] =
                json!({"error": format!("GET /nodes/{node}/disks/list: no answer in time")});
        }
    });
    assert_eq!(lines(&found), Vec::<String>::new());
    assert_eq!(
        unknown(&found),
        [
            "disk health of pve1, pve2: GET /nodes/{node}/disks/list: no answer in time",
            "snapshots of 100, 101: the token lacks VM.Audit on /vms/{vmid}",
        ]
    );
}
