use serde_json::json;

use super::*;
use crate::{
    config::VmidSet,
    pve::NodeName,
    safety::{
        facts::{Nobody, Table},
        testing::{config, judged, outcome},
    },
};

fn estate() -> Table {
    Table::new()
        .with("/cluster/resources", json!([]))
        .with("/nodes/pve1/qemu/100/config", json!({"scsi0": "local-lvm:vm-100-disk-0,size=32G"}))
        .with("/nodes/pve1/qemu/102/config", json!({"scsi0": "local-lvm:vm-102-disk-0", "scsi1": "local-lvm:vm-999-disk-3,size=1G"}))
        .with("/nodes/pve1/qemu/103/config", json!({"scsi0": "local-zfs:base-9000-disk-0/vm-103-disk-0"}))
        .with("/cluster/backup/j1", json!({"vmid": "100,999"}))
        .with("/cluster/backup/j2", json!({"vmid": "100"}))
        .with("/cluster/backup/j3", json!({"all": 1}))
        .with("/cluster/ha/rules/r1", json!({"resources": "vm:100,ct:999"}))
        .with("/cluster/ha/rules", json!([{"type": "resource-affinity", "affinity": "positive", "resources": "vm:100,vm:999"}]))
        .with("/pools", json!([{"poolid": "p"}, {"poolid": "p/q"}, {"poolid": "ok"}]))
        .with("/pools?poolid=p", json!([{"poolid": "p", "members": [{"vmid": 100}]}]))
        .with("/pools?poolid=p%2Fq", json!([{"poolid": "p/q", "members": [{"vmid": 999}]}]))
        .with("/pools?poolid=ok", json!([{"poolid": "ok", "members": [{"vmid": 100}, {"id": "storage/pve1/s"}]}]))
        .with("/access/acl", json!([{"path": "/vms/5", "ugid": "mcp@pve", "type": "user", "roleid": "X"}]))
        .with("/access/users/mcp@pve", json!({}))
        .with("/access/permissions", json!({"/": {"Sys.Audit": 1}}))
        .with("/cluster/status", json!([{"type": "node", "name": "pve1", "local": 1}, {"type": "node", "name": "pve2", "local": 0}]))
}

#[test]
fn guests_outside_the_lists_are_found_in_every_form() {
    let mut config = config();
    config.allowed_vmids = Some(VmidSet::parse("100-199").unwrap());
    let q = "/nodes/pve1/qemu/100";
    for (call, params) in [
        ("POST /nodes/pve1/qemu/999/status/start".to_owned(), json!({})),
        ("POST /nodes/pve1/qemu/0100/status/start".to_owned(), json!({})),
        (format!("POST {q}/clone"), json!({"newid": 999})),
        (format!("POST {q}/move_disk"), json!({"disk": "scsi0", "target-vmid": "999"})),
        (format!("PUT {q}/config"), json!({"scsi1": "local-lvm:vm-999-disk-0"})),
        (
            format!("PUT {q}/config"),
            json!({"scsi1": "import-from=local-lvm:vm-999-disk-0,file=local-lvm:0"}),
        ),
        (format!("PUT {q}/config"), json!({"scsi1": "local-zfs:base-999-disk-0/vm-100-disk-1"})),
        (format!("PUT {q}/config"), json!({"cdrom": "local:999/vm-100-disk-0.raw"})),
        (format!("PUT {q}/config"), json!({"efidisk0": "local-lvm:vm-999-disk-1"})),
        (format!("PUT {q}/config"), json!({"unused3": "file=local-lvm:vm-999-disk-1"})),
        (format!("PUT {q}/config"), json!({"cicustom": "user=local:999/vm-100-x.raw"})),
        ("POST /nodes/pve1/qemu".to_owned(), json!({"vmid": 999})),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 100, "archive": "local:backup/vzdump-qemu-999-x.vma"}),
        ),
        (
            "POST /nodes/pve1/lxc".to_owned(),
            json!({"vmid": 101, "unprivileged": 1, "ostemplate": "pbs:backup/ct/999/2026-01-01T00:00:00Z"}),
        ),
        // The guest holds a disk of another one.
        ("POST /nodes/pve1/qemu/102/snapshot".to_owned(), json!({"snapname": "s"})),
        ("POST /nodes/pve1/qemu/102/status/start".to_owned(), json!({})),
        ("POST /nodes/pve1/qemu/102/snapshot/s/rollback".to_owned(), json!({})),
        ("POST /nodes/pve1/vzdump".to_owned(), json!({"vmid": "100;999"})),
        ("POST /nodes/pve1/vzdump".to_owned(), json!({"vmid": ["100", "999"]})),
        ("POST /nodes/pve1/vzdump".to_owned(), json!({"vmid": "100\u{0}999"})),
        ("POST /nodes/pve1/vzdump".to_owned(), json!({"all": "on"})),
        ("POST /nodes/pve1/vzdump".to_owned(), json!({"all": 0, "pool": "p"})),
        ("POST /nodes/pve1/vzdump".to_owned(), json!({"vmid": 100, "stop": 1})),
        ("POST /nodes/pve1/vzdump".to_owned(), json!({})),
        ("POST /cluster/backup".to_owned(), json!({"vmid": "100", "exclude": "999"})),
        ("PUT /cluster/backup/j1".to_owned(), json!({"comment": "x"})),
        ("DELETE /cluster/backup/j3".to_owned(), json!({})),
        ("PUT /cluster/backup/unseen%20x".to_owned(), json!({"vmid": "999"})),
        ("POST /nodes/pve1/startall".to_owned(), json!({})),
        ("POST /nodes/pve1/stopall".to_owned(), json!({"vms": "100 999"})),
        ("POST /nodes/pve1/suspendall".to_owned(), json!({"vms": "100,,999"})),
        ("POST /nodes/pve1/migrateall".to_owned(), json!({"target": "pve2"})),
        ("POST /cluster/bulk-action/guest/start".to_owned(), json!({})),
        ("POST /cluster/bulk-action/guest/shutdown".to_owned(), json!({"vms": [100, 999]})),
        (
            "POST /cluster/bulk-action/guest/migrate".to_owned(),
            json!({"vms": "100,999", "target": "pve2"}),
        ),
        (
            "POST /cluster/replication".to_owned(),
            json!({"id": "999-0", "type": "local", "target": "pve2"}),
        ),
        ("DELETE /cluster/replication/999-0".to_owned(), json!({})),
        ("POST /nodes/pve1/replication/999-1/schedule_now".to_owned(), json!({})),
        ("POST /cluster/ha/resources".to_owned(), json!({"sid": "vm:999"})),
        ("POST /cluster/ha/resources".to_owned(), json!({"sid": "999"})),
        ("DELETE /cluster/ha/resources/ct:999".to_owned(), json!({})),
        ("POST /cluster/ha/resources/vm:100/migrate".to_owned(), json!({"node": "pve2"})),
        (format!("POST {q}/migrate"), json!({"target": "pve2"})),
        (
            "POST /cluster/ha/rules".to_owned(),
            json!({"resources": "vm:100,999", "rule": "x", "type": "node-affinity"}),
        ),
        ("DELETE /cluster/ha/rules/r1".to_owned(), json!({})),
        ("POST /cluster/ha/status/disarm-ha".to_owned(), json!({})),
        ("DELETE /nodes/pve1/storage/s/content/s:vm-999-disk-0".to_owned(), json!({})),
        ("DELETE /nodes/pve1/storage/s/content/vm-999-disk-0".to_owned(), json!({})),
        (
            "DELETE /nodes/pve1/storage/s/content/s:backup%2fvzdump-lxc-999-x.tar".to_owned(),
            json!({}),
        ),
        (
            "PUT /nodes/pve1/storage/s/content/s:999/vm-999-disk-0.raw".to_owned(),
            json!({"notes": "x"}),
        ),
        (
            "POST /nodes/pve1/storage/s/content".to_owned(),
            json!({"vmid": 999, "filename": "vm-999-disk-1", "size": "1G"}),
        ),
        (
            "POST /nodes/pve1/storage/s/content".to_owned(),
            json!({"vmid": 100, "filename": "vm-999-disk-1", "size": "1G"}),
        ),
        ("DELETE /nodes/pve1/storage/s/prunebackups".to_owned(), json!({})),
        ("DELETE /nodes/pve1/storage/s/prunebackups".to_owned(), json!({"vmid": 999})),
        ("PUT /pools".to_owned(), json!({"poolid": "ok", "vms": "999"})),
        ("DELETE /pools".to_owned(), json!({"poolid": "p"})),
        ("PUT /pools/p".to_owned(), json!({"comment": "x"})),
        (
            "PUT /access/acl".to_owned(),
            json!({"path": "//vms//999/", "roles": "X", "users": "alice@pve"}),
        ),
        (
            "PUT /access/acl".to_owned(),
            json!({"path": "/pool/p", "roles": "X", "users": "alice@pve"}),
        ),
        ("PUT /access/acl".to_owned(), json!({"path": "/", "roles": "X", "users": "alice@pve"})),
        (
            "DELETE /nodes/pve1/tasks/UPID:pve1:0001:0001:0001:qmstart:999:root@pam:".to_owned(),
            json!({}),
        ),
        (
            "DELETE /nodes/pve1/tasks/UPID:pve1:0001:0001:0001:imgdel:999@local:root@pam:"
                .to_owned(),
            json!({}),
        ),
        (
            "DELETE /nodes/pve1/tasks/UPID:pve1:0001:0001:0001:vzdump::root@pam:".to_owned(),
            json!({}),
        ),
        (
            "PUT /cluster/sdn/vnets/v/ips".to_owned(),
            json!({"vmid": 999, "zone": "z", "ip": "192.0.2.1"}),
        ),
        ("PUT /cluster/sdn/vnets/v/ips".to_owned(), json!({"zone": "z", "ip": "192.0.2.1"})),
        ("PUT /cluster/sdn".to_owned(), json!({})),
        ("POST /cluster/mapping/pci".to_owned(), json!({"id": "x"})),
        ("POST /cluster/firewall/aliases".to_owned(), json!({"name": "x", "cidr": "192.0.2.1"})),
        ("PUT /storage/s".to_owned(), json!({"disable": 1})),
        ("POST /nodes/pve1/status".to_owned(), json!({"command": "reboot"})),
        ("POST /nodes/pve1/services/pveproxy/restart".to_owned(), json!({})),
        ("POST /nodes/pve1/something/new".to_owned(), json!({})),
    ] {
        assert_eq!(
            outcome(&config, &estate(), &call, params.clone()),
            "vmid_denied",
            "{call} {params}"
        );
    }
    for (call, params) in [
        (format!("POST {q}/status/start"), json!({})),
        (format!("POST {q}/clone"), json!({"newid": 150})),
        (format!("PUT {q}/config"), json!({"scsi1": "local-lvm:8"})),
        ("POST /nodes/pve1/qemu/103/snapshot".to_owned(), json!({"snapname": "s"})),
        ("POST /nodes/pve1/vzdump".to_owned(), json!({"vmid": "100, 101"})),
        ("POST /nodes/pve1/vzdump".to_owned(), json!({"pool": "ok"})),
        ("PUT /cluster/backup/j2".to_owned(), json!({"comment": "x"})),
        ("POST /cluster/bulk-action/guest/shutdown".to_owned(), json!({"vms": [100, "101"]})),
        ("DELETE /nodes/pve1/storage/s/content/s:iso/x.iso".to_owned(), json!({})),
        ("PUT /pools".to_owned(), json!({"poolid": "ok", "vms": "100"})),
        (
            "PUT /access/acl".to_owned(),
            json!({"path": "/vms/100", "roles": "X", "users": "alice@pve"}),
        ),
        (
            "DELETE /nodes/pve1/tasks/UPID:pve1:0001:0001:0001:qmstart:100:root@pam:".to_owned(),
            json!({}),
        ),
        ("PUT /nodes/pve1/dns".to_owned(), json!({"search": "x"})),
        ("GET /nodes/pve1/qemu/999/config".to_owned(), json!({})),
    ] {
        let found = judged(&config, &estate(), &call, params.clone());
        assert_eq!(found.refusal, None, "{call} {params}");
    }
}

#[test]
fn disks_that_cannot_be_read_count_where_the_call_acts_on_them() {
    let mut config = config();
    config.allowed_vmids = Some(VmidSet::parse("100").unwrap());
    let ask = |call: &str, params| {
        let op = crate::safety::testing::operation(call, params);
        let judgement = judge(&op, &config, &Facts::default());
        judgement.refusal.map(|e| e.code)
    };
    for call in [
        "POST /nodes/pve1/qemu/100/snapshot",
        "DELETE /nodes/pve1/qemu/100",
        "PUT /nodes/pve1/qemu/100/resize",
    ] {
        assert_eq!(ask(call, json!({})), Some(Code::VmidDenied), "{call}");
    }
    for (call, params) in [
        ("POST /nodes/pve1/qemu/100/status/start", json!({})),
        ("POST /nodes/pve1/lxc/100/status/stop", json!({})),
        ("PUT /nodes/pve1/qemu/100/config", json!({"delete": "scsi0"})),
        ("PUT /nodes/pve1/qemu/100/config", json!({"delete": "tags, unused1"})),
        ("PUT /nodes/pve1/qemu/100/config", json!({"revert": "virtio3"})),
        ("PUT /nodes/pve1/qemu/100/config", json!({"scsi1": "a:8"})),
        ("PUT /nodes/pve1/qemu/100/config", json!({"template": 1})),
        ("PUT /nodes/pve1/lxc/100/config", json!({"mp0": "a:8,mp=/x"})),
    ] {
        assert_eq!(ask(call, params.clone()), Some(Code::VmidDenied), "{call} {params}");
    }
    for (call, params) in [
        ("PUT /nodes/pve1/qemu/100/config", json!({"description": "x", "tags": "a"})),
        ("PUT /nodes/pve1/qemu/100/firewall/options", json!({"dhcp": 1})),
        ("POST /nodes/pve1/qemu/100/agent/ping", json!({})),
    ] {
        assert_eq!(ask(call, params.clone()), None, "{call} {params}");
    }
}

#[test]
fn the_deny_list_wins() {
    let mut config = config();
    config.allowed_vmids = Some(VmidSet::parse("100-199").unwrap());
    config.denied_vmids = VmidSet::parse("150").unwrap();
    let found = judged(&config, &estate(), "POST /nodes/pve1/qemu/150/status/start", json!({}));
    let error = found.refusal.unwrap();
    assert_eq!(error.code, Code::VmidDenied);
    assert!(
        error.message.contains("150") && error.message.contains("PROXMOX_DENIED_VMIDS"),
        "{error}"
    );
    config.allowed_vmids = None;
    assert_eq!(outcome(&config, &estate(), "POST /nodes/pve1/startall", json!({})), "vmid_denied");
}

#[test]
fn nodes_outside_the_list_are_found_in_every_form() {
    let mut config = config();
    config.allowed_nodes = Some(vec![NodeName::parse("pve1").unwrap()]);
    for (call, params) in [
        ("POST /nodes/pve2/qemu/100/status/start", json!({})),
        ("POST /nodes/PVE1/qemu/100/status/start", json!({})),
        ("POST /nodes/pve1/qemu/100/migrate", json!({"target": "pve2"})),
        ("POST /nodes/pve1/qemu/100/clone", json!({"newid": 150, "target": "pve2"})),
        ("POST /cluster/backup", json!({"node": "pve2", "vmid": 100})),
        ("POST /cluster/backup", json!({"vmid": 100})),
        ("POST /cluster/ha/resources/vm:100/migrate", json!({"node": "pve2"})),
        ("POST /cluster/ha/groups", json!({"group": "g", "nodes": "pve1:2,pve2:1"})),
        ("POST /storage", json!({"storage": "x", "type": "dir", "nodes": "pve1,pve2"})),
        (
            "POST /cluster/mapping/pci",
            json!({"id": "x", "map": ["id=1234:5678,node=pve2,path=0000:01:00"]}),
        ),
        ("POST /cluster/replication", json!({"id": "100-0", "target": "pve2", "source": "pve1"})),
        ("POST /cluster/sdn/zones", json!({"zone": "z", "type": "evpn", "exitnodes": "pve1;pve2"})),
        ("DELETE /cluster/config/nodes/pve2", json!({})),
        ("DELETE /nodes/pve1/tasks/UPID:pve2:0001:0001:0001:qmstart:100:root@pam:", json!({})),
        ("PUT /access/users/alice@pve", json!({"enable": 0})),
        ("PUT /cluster/options", json!({"keyboard": "de"})),
        ("POST /nodes/pve2/something/new", json!({})),
        ("POST /something/new", json!({})),
    ] {
        assert_eq!(
            outcome(&config, &estate(), call, params.clone()),
            "node_denied",
            "{call} {params}"
        );
    }
    for (call, params) in [
        ("POST /nodes/pve1/qemu/100/status/start", json!({})),
        ("POST /nodes/localhost/qemu/100/status/start", json!({})),
        (
            "POST /nodes/pve1/qemu/100/firewall/rules",
            json!({"type": "in", "action": "DROP", "source": "192.0.2.1"}),
        ),
        ("POST /cluster/backup", json!({"node": "pve1", "vmid": 100})),
        ("GET /nodes/pve2/status", json!({})),
    ] {
        assert_eq!(outcome(&config, &estate(), call, params.clone()), "allowed", "{call} {params}");
    }
    let unknown = Table::new();
    assert_eq!(
        outcome(&config, &unknown, "POST /nodes/localhost/qemu/100/status/start", json!({})),
        "node_denied"
    );
}

#[test]
fn the_first_check_that_refuses_speaks() {
    let mut config = config();
    let never = "POST /nodes/pve1/termproxy";
    assert_eq!(outcome(&config, &estate(), never, json!({})), "endpoint_refused");
    config.mode = Mode::ReadOnly;
    assert_eq!(outcome(&config, &estate(), never, json!({})), "endpoint_refused");
    assert_eq!(
        outcome(&config, &estate(), "POST /nodes/pve1/status", json!({"command": "reboot"})),
        "read_only"
    );
    assert_eq!(
        outcome(&config, &estate(), "PUT /access/users/mcp@pve", json!({"enable": 0})),
        "read_only"
    );
    assert_eq!(
        outcome(
            &config,
            &estate(),
            "GET /nodes/pve1/query-url-metadata",
            json!({"url": "https://example.test/"})
        ),
        "read_only"
    );
    assert_eq!(outcome(&config, &estate(), "GET /nodes/pve1/unknown", json!({})), "read_only");
    assert_eq!(outcome(&config, &estate(), "GET /nodes/pve1/status", json!({})), "allowed");
    config.mode = Mode::Write;
    config.flags = Default::default();
    config.allowed_vmids = Some(VmidSet::parse("100").unwrap());
    config.allowed_nodes = Some(vec![NodeName::parse("pve1").unwrap()]);
    assert_eq!(outcome(&config, &estate(), "PUT /access/users/mcp@pve", json!({})), "self_lockout");
    assert_eq!(
        outcome(&config, &estate(), "DELETE /nodes/pve2/qemu/101", json!({})),
        "vmid_denied"
    );
    assert_eq!(
        outcome(&config, &estate(), "DELETE /nodes/pve1/qemu/100", json!({})),
        "flag_disabled"
    );
    config.flags.set(Flag::GuestDelete, "enabled");
    assert_eq!(outcome(&config, &estate(), "DELETE /nodes/pve1/qemu/100", json!({})), "allowed");
}

#[test]
fn every_category_needs_its_flag() {
    let mut config = config();
    config.flags = Default::default();
    config.flags.set(Flag::GuestHostAccess, "on");
    let found = judged(
        &config,
        &estate(),
        "PUT /nodes/pve1/qemu/100/config",
        json!({"args": "x", "sshkeys": "k"}),
    );
    let error = found.refusal.unwrap();
    assert_eq!(error.code, Code::FlagDisabled);
    assert_eq!(error.details["flag"], "PROXMOX_ALLOW_GUEST_CREDENTIALS");
    assert!(error.hint.contains("critical.env"), "{error}");
    config.flags.set(Flag::GuestCredentials, " Yes ");
    assert_eq!(
        outcome(
            &config,
            &estate(),
            "PUT /nodes/pve1/qemu/100/config",
            json!({"args": "x", "sshkeys": "k"})
        ),
        "allowed"
    );
}

#[test]
fn protected_paths_are_critical_in_addition() {
    let mut config = config();
    config.flags = Default::default();
    config.extra_protected = vec![
        "/nodes/pve1/qemu/100/**".into(),
        "pools/*".into(),
        "/nodes/*/storage/s/content/s:iso/*".into(),
    ];
    for (call, want) in [
        ("POST /nodes/pve1/qemu/100/status/start", true),
        ("POST /nodes/localhost/qemu/100/status/start", true),
        ("POST /nodes/pve1%2fqemu/100/status/start", true),
        ("POST /nodes/pve1/qemu/101/status/start", false),
        ("PUT /pools/x", true),
        ("PUT /nodes/pve1/storage/s/content/s:iso/x.iso", true),
        ("GET /nodes/pve1/qemu/100/config", false),
    ] {
        let found = judged(&config, &estate(), call, json!({}));
        assert_eq!(found.class.categories.contains(&Flag::CustomProtected), want, "{call}");
        assert_eq!(found.class.class == Class::Critical, want, "{call}");
    }
}

#[test]
fn hidden_guests_are_hidden() {
    let mut config = config();
    config.allowed_vmids = Some(VmidSet::parse("100").unwrap());
    config.read_allowed_only = true;
    assert_eq!(
        outcome(&config, &estate(), "GET /nodes/pve1/qemu/101/config", json!({})),
        "vmid_denied"
    );
    assert_eq!(
        outcome(&config, &estate(), "GET /nodes/pve1/qemu/100/config", json!({})),
        "allowed"
    );
}

#[test]
fn the_explanation_has_every_field_for_any_input() {
    let mut config = config();
    config.flags = Default::default();
    let ask = |method: &str, path: &str, params: Value| {
        futures::executor::block_on(explain(method, path, &params, &config, &Nobody)).to_json()
    };
    let told = ask("post", "api2/json/nodes/pve1/%73tatus", json!({"command": "reboot"}));
    assert_eq!(told["path"], "/nodes/pve1/status");
    assert_eq!(
        (&told["class"], &told["category"], &told["flag"]),
        (&json!("CRITICAL"), &json!("NODE_POWER"), &json!("PROXMOX_ALLOW_NODE_POWER"))
    );
    assert_eq!(
        (&told["categories"], &told["flags"]),
        (&json!(["NODE_POWER"]), &json!(["PROXMOX_ALLOW_NODE_POWER"]))
    );
    assert_eq!((&told["allowed"], &told["confirm"]), (&json!(false), &json!("/nodes/pve1/status")));
    assert_eq!(told["refusal"]["code"], "flag_disabled");
    assert!(told["refusal"]["message"].is_string() && told["refusal"]["hint"].is_string());
    assert!(!told["reasons"].as_array().unwrap().is_empty());

    let told = ask("GET", "/nodes/pve1/qemu/100/config", json!(null));
    assert_eq!(
        (&told["class"], &told["category"], &told["allowed"], &told["confirm"], &told["refusal"]),
        (&json!("READ"), &json!(null), &json!(true), &json!(null), &json!(null))
    );
    let told = ask("GET", "/nodes/../access", json!({}));
    assert_eq!(
        (&told["class"], &told["allowed"], &told["refusal"]["code"]),
        (&json!(null), &json!(false), &json!("path_refused"))
    );
    let told = ask("POST", "/nodes/pve1/vncshell", json!({}));
    assert_eq!(
        (&told["class"], &told["confirm"], &told["refusal"]["code"]),
        (&json!("NEVER"), &json!(null), &json!("endpoint_refused"))
    );
    for (method, params) in [
        ("PATCH", json!({})),
        ("HEAD", json!({})),
        (" GET", json!({})),
        ("GET\r\nX:", json!({})),
        ("PUT", json!({"a": {}})),
        ("PUT", json!({"_method": "DELETE"})),
        ("PUT", json!({"onboot": "maybe"})),
        ("PUT", json!("x")),
    ] {
        let told = ask(method, "/nodes/pve1/qemu/100/config", params.clone());
        assert_eq!(
            (&told["allowed"], &told["refusal"]["code"]),
            (&json!(false), &json!("invalid_argument")),
            "{method:?} {params}"
        );
    }
}
