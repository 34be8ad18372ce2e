use serde_json::json;

use super::*;
use crate::{
    config::VmidSet,
    safety::{
        facts::Table,
        testing::{config, identity, outcome},
    },
};

#[test]
fn every_way_to_lock_the_server_out_is_refused() {
    let config = config();
    let state = identity(Table::new())
        .with("/cluster/jobs/realm-sync/own", json!({"realm": "pve"}))
        .with("/cluster/jobs/realm-sync/ldap", json!({"realm": "ldap"}))
        .with("/pools", json!([{"poolid": "prod"}, {"poolid": "prod/web"}, {"poolid": "test"}]));
    for (call, params) in [
        ("PUT /access/users/mcp@pve", json!({"enable": 0})),
        ("PUT /access/users/mcp%40pve", json!({"expire": 1})),
        ("PUT /access/users/MCP@PVE", json!({"comment": "x"})),
        ("PUT /access/users/mcp@pve", json!({"groups": "", "append": 0})),
        ("DELETE /access/users/mcp@pve", json!({})),
        ("POST /access/users", json!({"userid": "mcp@pve"})),
        ("DELETE /access/users/root@pam", json!({})),
        ("PUT /access/users/root%40pam", json!({"enable": 0})),
        ("PUT /access/users/mcp@pve/token/full", json!({"privsep": 1})),
        ("PUT /access/users/mcp@pve/token/other", json!({"regenerate": 1})),
        ("POST /access/users/mcp@pve/token/new", json!({})),
        ("DELETE /access/users/mcp%40pve/token/full", json!({})),
        ("POST /access/users/root@pam/token/x", json!({"privsep": 0})),
        ("PUT /access/users/mcp@pve/unlock-tfa", json!({})),
        ("POST /access/tfa/mcp@pve", json!({"type": "totp"})),
        ("DELETE /access/tfa/root@pam/totp", json!({})),
        ("PUT /access/password", json!({"userid": "mcp@pve", "password": "12345678"})),
        ("PUT /access/password", json!({"userid": "root@pam", "password": "12345678"})),
        ("PUT /access/password", json!({"password": "12345678"})),
        ("DELETE /access/groups/ops", json!({})),
        ("PUT /access/groups/OPS", json!({"comment": "x"})),
        ("PUT /access/roles/Ops", json!({"privs": "VM.Audit"})),
        ("PUT /access/roles/Ops", json!({"privs": "VM.Audit", "append": 1})),
        ("DELETE /access/roles/PoolAdmin", json!({})),
        ("PUT /access/acl", json!({"path": "/", "roles": "NoAccess", "users": "mcp@pve"})),
        (
            "PUT /access/acl",
            json!({"path": "/vms/9", "roles": "NoAccess", "users": "alice@pve,mcp@pve", "propagate": 0}),
        ),
        (
            "PUT /access/acl",
            json!({"path": "//vms//100/", "roles": "NoAccess", "users": "alice@pve; MCP@pve"}),
        ),
        (
            "PUT /access/acl",
            json!({"path": "/vms", "roles": "X", "users": ["alice@pve", "root@pam"]}),
        ),
        (
            "PUT /access/acl",
            json!({"path": "/vms", "roles": "X", "users": "alice@pve\u{0}mcp@pve"}),
        ),
        (
            "PUT /access/acl",
            json!({"path": "/storage/s", "roles": "NoAccess", "tokens": "mcp@pve!full"}),
        ),
        (
            "PUT /access/acl",
            json!({"path": "/storage/s", "roles": "NoAccess", "tokens": "mcp@pve!other"}),
        ),
        ("PUT /access/acl", json!({"path": "/", "roles": "Ops", "groups": "ops", "delete": "yes"})),
        ("PUT /access/acl", json!({"path": "/vms/100", "roles": "Ops", "groups": "web,ops"})),
        (
            "PUT /access/acl",
            json!({"path": "//", "roles": "PVEAdmin", "users": "alice@pve", "delete": 1}),
        ),
        ("PUT /access/domains/pve", json!({"comment": "x"})),
        ("PUT /access/domains/pam", json!({"comment": "x"})),
        ("DELETE /access/domains/PVE", json!({})),
        ("POST /access/domains/pve/sync", json!({"remove-vanished": "acl;entry"})),
        ("PUT /cluster/jobs/realm-sync/own", json!({"enabled": 1})),
        ("DELETE /cluster/jobs/realm-sync/own", json!({})),
        ("POST /cluster/jobs/realm-sync/new", json!({"realm": "pve", "schedule": "daily"})),
        ("PUT /cluster/jobs/realm-sync/unseen", json!({"enabled": 1})),
        ("PUT /cluster/options", json!({"webauthn": "id=x"})),
        ("PUT /cluster/options", json!({"delete": "keyboard,u2f"})),
        ("DELETE /pools/prod", json!({})),
        ("DELETE /pools", json!({"poolid": "prod"})),
        ("DELETE /pools", json!({"poolid": "prod/web"})),
        ("PUT /pools", json!({"poolid": "prod", "vms": 100, "delete": "True"})),
        ("PUT /pools/prod", json!({"vms": 100, "allow-move": 1})),
    ] {
        assert_eq!(
            outcome(&config, &state, call, params.clone()),
            "self_lockout",
            "{call} {params}"
        );
    }
}

#[test]
fn changes_of_others_pass() {
    let config = config();
    let state =
        identity(Table::new()).with("/cluster/jobs/realm-sync/ldap", json!({"realm": "ldap"}));
    for (call, params) in [
        ("PUT /access/users/alice@pve", json!({"enable": 0})),
        ("POST /access/users", json!({"userid": "bob@pve"})),
        ("PUT /access/users/mcp@pve2", json!({"comment": "x"})),
        ("POST /access/users/alice@pve/token/t", json!({})),
        ("PUT /access/password", json!({"userid": "alice@pve", "password": "12345678"})),
        ("PUT /access/groups/web", json!({"comment": "x"})),
        ("PUT /access/roles/Web", json!({"privs": "VM.Audit"})),
        ("PUT /access/acl", json!({"path": "/vms/100", "roles": "Ops", "users": "alice@pve"})),
        (
            "PUT /access/acl",
            json!({"path": "/vms/100", "roles": "Web", "groups": "web", "delete": 1}),
        ),
        ("PUT /access/domains/ldap", json!({"comment": "x"})),
        ("PUT /cluster/jobs/realm-sync/ldap", json!({"enabled": 1})),
        ("PUT /cluster/options", json!({"keyboard": "de"})),
        ("DELETE /pools/test", json!({})),
        ("PUT /pools", json!({"poolid": "prod", "vms": 100})),
    ] {
        assert_eq!(outcome(&config, &state, call, params.clone()), "allowed", "{call} {params}");
    }
}

#[test]
fn what_cannot_be_read_counts_as_ours() {
    let config = config();
    let blind = Table::new().with("/access/acl", json!([]));
    let part = identity(Table::new()).with("/access/permissions", json!({"/vms": {"VM.Audit": 1}}));
    for state in [&blind, &part] {
        for (call, params) in [
            ("PUT /access/groups/web", json!({"comment": "x"})),
            ("PUT /access/roles/Web", json!({"privs": "VM.Audit"})),
            ("PUT /access/acl", json!({"path": "/vms/100", "roles": "X", "users": "alice@pve"})),
            ("PUT /access/domains/ldap", json!({"comment": "x"})),
            ("DELETE /pools/test", json!({})),
        ] {
            assert_eq!(outcome(&config, state, call, params), "self_lockout", "{call}");
        }
        assert_eq!(
            outcome(&config, state, "PUT /access/users/alice@pve", json!({"comment": "x"})),
            "allowed"
        );
    }
}

#[test]
fn the_guest_in_which_the_server_runs_is_left_alone() {
    let mut config = config();
    config.self_vmids = VmidSet::parse("150").unwrap();
    let state = Table::new();
    for (call, params) in [
        ("POST /nodes/pve1/qemu/150/status/stop", json!({})),
        ("PUT /nodes/pve1/qemu/150/config", json!({"description": "x"})),
        ("POST /nodes/pve1/qemu/100/clone", json!({"newid": 150})),
        ("POST /nodes/pve1/vzdump", json!({"vmid": "100, 150"})),
        ("POST /nodes/pve1/stopall", json!({})),
        ("POST /nodes/pve1/stopall", json!({"vms": "150"})),
        ("POST /cluster/bulk-action/guest/shutdown", json!({"vms": [100, 150]})),
        ("POST /nodes/pve1/status", json!({"command": "reboot"})),
        ("DELETE /nodes/pve1/storage/s/content/s:vm-150-disk-0", json!({})),
    ] {
        assert_eq!(
            outcome(&config, &state, call, params.clone()),
            "self_lockout",
            "{call} {params}"
        );
    }
    assert_eq!(
        outcome(&config, &state, "POST /nodes/pve1/qemu/100/status/stop", json!({})),
        "allowed"
    );
    assert_eq!(outcome(&config, &state, "GET /nodes/pve1/qemu/150/config", json!({})), "allowed");
    // Of a node only where it runs there.
    let on = |node: &str| {
        Table::new()
            .with("/cluster/resources", json!([{"vmid": 150, "type": "qemu", "node": node}]))
    };
    for (call, params) in [
        ("POST /nodes/pve1/stopall", json!({})),
        ("POST /nodes/pve1/status", json!({"command": "reboot"})),
        ("POST /nodes/pve1/vzdump", json!({"all": 1, "mode": "stop"})),
    ] {
        assert_eq!(outcome(&config, &on("pve1"), call, params.clone()), "self_lockout", "{call}");
        assert_eq!(outcome(&config, &on("pve2"), call, params.clone()), "allowed", "{call}");
    }
    // One of two that cannot be seen may be here.
    config.self_vmids = VmidSet::parse("150,151").unwrap();
    assert_eq!(
        outcome(&config, &on("pve2"), "POST /nodes/pve1/stopall", json!({})),
        "self_lockout"
    );
    let bulk = "POST /cluster/bulk-action/guest/shutdown";
    assert_eq!(outcome(&config, &on("pve2"), bulk, json!({})), "self_lockout");
}

#[test]
fn a_mac_address_gives_the_guest_away() {
    let dir = tempfile::tempdir().unwrap();
    for (name, mac) in
        [("lo", "00:00:00:00:00:00\n"), ("eth0", "BC:24:11:aa:bb:cc\n"), ("tun0", "")]
    {
        std::fs::create_dir(dir.path().join(name)).unwrap();
        std::fs::write(dir.path().join(name).join("address"), mac).unwrap();
    }
    let macs = macs_below(dir.path());
    assert_eq!(macs.iter().collect::<Vec<_>>(), ["bc:24:11:aa:bb:cc"]);
    assert!(config_has_mac(&json!({"net3": "virtio=BC:24:11:AA:BB:CC,bridge=vmbr0"}), &macs));
    assert!(config_has_mac(&json!({"net0": "name=eth0,hwaddr=BC:24:11:AA:BB:CC"}), &macs));
    assert!(!config_has_mac(
        &json!({"net0": "virtio=BC:24:11:AA:BB:CD", "name": "bc:24:11:aa:bb:cc"}),
        &macs
    ));
}
