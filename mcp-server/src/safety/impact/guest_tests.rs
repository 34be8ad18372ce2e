use serde_json::json;

use crate::safety::{facts::Table, testing::impact};

fn estate() -> Table {
    Table::new()
        .with(
            "/cluster/resources?type=vm",
            json!([{"type": "qemu", "vmid": 100, "node": "pve1", "pool": "a/b"}]),
        )
        .with(
            "/cluster/ha/resources",
            json!([{"sid": "vm:100", "state": "stopped", "group": "g1"}]),
        )
        .with(
            "/cluster/backup",
            json!([
                {"id": "all", "all": 1, "exclude": "101"},
                {"id": "without", "all": 1, "exclude": "100 101"},
                {"id": "here", "vmid": "99,100", "node": "pve1"},
                {"id": "there", "vmid": "100", "node": "pve2"},
                {"id": "off", "vmid": "100", "enabled": 0},
                {"id": "pool", "pool": "a/b"},
                {"id": "parent", "pool": "a"},
            ]),
        )
        .with(
            "/access/acl",
            json!([
                {"path": "/vms/100", "roleid": "PVEVMUser", "ugid": "alice@pve", "type": "user"},
                {"path": "/vms/1000", "roleid": "PVEVMUser", "ugid": "bob@pve", "type": "user"},
            ]),
        )
}

#[test]
fn a_backup_job_of_another_node_backs_nothing_up_here() {
    let told = impact(&estate(), "DELETE /nodes/pve1/qemu/100", json!({})).join("\n");
    for line in [
        "managed by HA, wanted state \"stopped\"",
        "in the HA group \"g1\"",
        "backed up by \"all\", \"here\", \"pool\"",
        "named by backup jobs that run on another node alone: \"there\" on \"pve2\"",
        "member of the pool \"a/b\"",
        "role \"PVEVMUser\" of \"alice@pve\" on \"/vms/100\"",
    ] {
        assert!(told.lines().any(|l| l == line), "{line} is not in\n{told}");
    }
    assert!(!told.contains("bob"), "{told}");
}

#[test]
fn an_object_of_a_guests_firewall_is_not_the_guest() {
    let table = estate()
        .with("/nodes", json!([{"node": "pve1", "status": "online"}]))
        .with(
            "/nodes/pve1/qemu/100/firewall/rules",
            json!([
                {"pos": 2, "type": "in", "action": "DROP", "source": "guest/lan", "enable": 0},
            ]),
        )
        .with("/nodes/pve1/qemu/100/firewall/ipset", json!([]));
    let told = impact(&table, "DELETE /nodes/pve1/qemu/100/firewall/aliases/lan", json!({}));
    assert_eq!(told, ["used by rule 2 of guest 100, which is off: \"in DROP from guest/lan\""]);
    let told = impact(&table, "PUT /nodes/pve1/qemu/100/firewall/ipset/x/10.0.0.1", json!({}));
    assert_eq!(told, ["no rule and no IP set names it"]);
    let told =
        impact(&table, "DELETE /nodes/pve1/qemu/100/firewall/ipset/ipfilter-net0", json!({}));
    assert!(told.iter().any(|l| l.contains("send from these addresses alone")), "{told:?}");
    // Under a new name the old one is looked for.
    let rename = json!({"name": "new", "rename": "lan"});
    let told = impact(&table, "POST /nodes/pve1/qemu/100/firewall/ipset", rename);
    assert_eq!(told, ["no rule and no IP set names it"]);
    let told = impact(&table, "POST /nodes/pve1/qemu/100/firewall/ipset", json!({"name": "new"}));
    assert_eq!(told, Vec::<String>::new());
}

#[test]
fn a_rollback_tells_what_becomes_of_a_guest_that_runs() {
    let table = |status: &str| {
        Table::new()
            .with(
                "/cluster/resources",
                json!([{"vmid": 100, "type": "qemu", "node": "pve1", "status": status}]),
            )
            .with(
                "/nodes/pve1/qemu/100/snapshot",
                json!([{"name": "cold", "snaptime": 1}, {"name": "warm", "snaptime": 2, "vmstate": 1}]),
            )
    };
    for (status, name, params, want) in [
        ("running", "cold", json!({}), Some("stays off")),
        ("running", "cold", json!({"start": "yes"}), Some("started again")),
        ("running", "warm", json!({}), Some("from the memory")),
        ("stopped", "cold", json!({}), None),
    ] {
        let call = format!("POST /nodes/pve1/qemu/100/snapshot/{name}/rollback");
        let lines = impact(&table(status), &call, params);
        let told = lines.iter().find(|line| line.starts_with("it runs now"));
        assert_eq!(told.is_some(), want.is_some(), "{lines:?}");
        assert!(want.is_none_or(|want| told.is_some_and(|t| t.contains(want))), "{lines:?}");
    }
}
