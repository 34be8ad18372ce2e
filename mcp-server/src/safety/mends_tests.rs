//! Ways around the checks that were found once, in further spellings: each stays shut.

use serde_json::{Value, json};

use super::{
    Facts,
    class::classify,
    facts::Table,
    testing::{config, identity, operation, outcome},
};
use crate::{
    Code,
    config::{Config, VmidSet},
    pve::{ApiPath, Params},
};

/// Class, categories and refusal of a call, with a table of answers to ask.
fn told(state: &Table, call: &str, params: Value) -> String {
    let op = operation(call, params);
    let mut facts = Facts::default();
    let found = futures::executor::block_on(facts.settle(state, |facts| classify(&op, facts)));
    if let Some(never) = &found.never {
        return never.code.as_str().to_owned();
    }
    let categories: Vec<_> = found.categories.iter().map(|f| f.category()).collect();
    format!("{} {}", found.class_text(), categories.join(" ")).trim().to_owned()
}

fn only_100() -> Config {
    let mut config = config();
    config.allowed_vmids = Some(VmidSet::parse("100").unwrap());
    config
}

#[test]
fn a_guest_is_not_moved_out_of_the_pool_that_gives_us_rights() {
    let state = identity(Table::new())
        .with("/pools", json!([{"poolid": "prod"}, {"poolid": "prod/web"}, {"poolid": "test"}]))
        .with(
            "/cluster/resources",
            json!([
                {"vmid": 100, "type": "qemu", "node": "pve1", "pool": "prod"},
                {"vmid": 101, "type": "lxc", "node": "pve1", "pool": "prod/web"},
                {"vmid": 102, "type": "qemu", "node": "pve1", "pool": "test"},
                {"vmid": 103, "type": "qemu", "node": "pve1"},
            ]),
        );
    let config = config();
    for (call, params, want) in [
        ("PUT /pools/test", json!({"vms": 100, "allow-move": 1}), "self_lockout"),
        ("PUT /pools/test", json!({"vms": "0100", "allow-move": "on"}), "self_lockout"),
        ("PUT /pools/test", json!({"vms": "103;101", "allow-move": "YES"}), "self_lockout"),
        ("PUT /pools/test", json!({"vms": ["102", "100"], "allow-move": true}), "self_lockout"),
        ("PUT /pools/test", json!({"storage": "s", "vms": "100", "allow-move": 1}), "self_lockout"),
        (
            "PUT /pools",
            json!({"poolid": "test", "storage": "s,t", "vms": "103\u{0}100", "allow-move": 1}),
            "self_lockout",
        ),
        // Where it is now cannot be seen.
        ("PUT /pools/test", json!({"vms": 999, "allow-move": 1}), "self_lockout"),
        ("PUT /pools/test", json!({"vms": "103,102", "allow-move": 1}), "allowed"),
        ("PUT /pools/test", json!({"storage": "s", "vms": 103, "allow-move": 1}), "allowed"),
        // Without it Proxmox refuses to take a guest out of its pool.
        ("PUT /pools/test", json!({"vms": 100, "allow-move": 0}), "allowed"),
    ] {
        assert_eq!(outcome(&config, &state, call, params.clone()), want, "{call} {params}");
    }
}

#[test]
fn encoded_names_of_our_user_are_our_user() {
    let state = identity(Table::new());
    let config = config();
    for (call, params) in [
        ("PUT /access/users/mcp%40pve", json!({"enable": 0})),
        ("PUT /access/users/%6dcp%40pv%65", json!({"enable": 0})),
        ("DELETE /access/users/mcp%40pve/token/full", json!({})),
        ("PUT /access/password", json!({"userid": "mcp%40pve", "password": "12345678"})),
        ("PUT /access/password", json!({"userid": " MCP@pve ", "password": "12345678"})),
        ("POST /access/users", json!({"userid": "root%40pam"})),
        (
            "PUT /access/acl",
            json!({"path": "/vms/1", "roles": "NoAccess", "users": "a@pve,mcp%40pve"}),
        ),
        (
            "PUT /access/acl",
            json!({"path": "/vms/1", "roles": "NoAccess", "tokens": "mcp%40pve%21full"}),
        ),
        ("PUT /access/acl", json!({"path": "/", "roles": "X", "tokens": ["mcp@pve%21full"]})),
    ] {
        let found = outcome(&config, &state, call, params.clone());
        assert_eq!(found, "self_lockout", "{call} {params}");
    }
    for path in [
        "/access/users/mcp%2540pve",
        "/access/users/mcp%25%34%30pve",
        "/access/users/mcp%2540pve/token/full",
        "/access/users/mcp%252540pve",
    ] {
        let refused = ApiPath::parse(path).unwrap_err();
        assert_eq!(refused.code, Code::PathRefused, "{path}");
    }
}

#[test]
fn a_set_that_nobody_named_is_refused_while_a_list_is_set() {
    let config = only_100();
    let state = Table::new()
        .with("/cluster/resources", json!([{"vmid": 100, "type": "qemu", "node": "pve1"}]))
        .with("/nodes/pve1/qemu/100/config", json!({"scsi0": "a:vm-100-disk-0"}))
        .with("/nodes/pve1/lxc/100/config", json!({"rootfs": "a:vm-100-disk-0"}));
    for (call, params) in [
        ("POST /nodes/pve1/vzdump", json!({})),
        ("POST /nodes/pve1/vzdump", json!({"vmid": ""})),
        ("POST /nodes/pve1/vzdump", json!({"vmid": " ,; "})),
        ("POST /nodes/pve1/vzdump", json!({"vmid": "", "storage": "s"})),
        ("POST /nodes/pve1/vzdump", json!({"vmid": "hundred"})),
        ("POST /cluster/backup", json!({"vmid": "", "storage": "s"})),
        ("POST /nodes/pve1/qemu", json!({"vmid": 100, "archive": "s:backup/mine.vma", "force": 1})),
        ("POST /nodes/pve1/qemu", json!({"vmid": 100, "archive": "/mnt/x.vma.zst", "force": 1})),
        (
            "POST /nodes/pve1/lxc",
            json!({"vmid": 100, "ostemplate": "s:backup/copy.tar", "restore": 1, "force": 1}),
        ),
    ] {
        assert_eq!(
            outcome(&config, &state, call, params.clone()),
            "vmid_denied",
            "{call} {params}"
        );
    }
    // An empty array is not sent at all.
    assert!(Params::from_json(&json!({"vmid": []})).is_err());
    let named = json!({"vmid": 100, "archive": "s:backup/vzdump-qemu-100-x.vma", "force": 1});
    assert_eq!(outcome(&config, &state, "POST /nodes/pve1/qemu", named), "allowed");
}

#[test]
fn a_retention_that_removes_backups_raises_the_class() {
    let state = Table::new()
        .with("/nodes/pve1/vzdump/defaults?storage=prune", json!({"prune-backups": "keep-last=1"}))
        .with("/nodes/pve1/vzdump/defaults?storage=zero", json!({"prune-backups": {"keep-all": 0}}))
        .with("/nodes/pve1/vzdump/defaults?storage=keep", json!({"prune-backups": "keep-all=1"}))
        .with("/storage/keep", json!({"prune-backups": "keep-all=1"}))
        .with("/storage/prune", json!({"prune-backups": "keep-last=1"}));
    let call = "POST /nodes/pve1/vzdump";
    let raised = "CRITICAL VOLUME_DELETE";
    for (params, removes) in [
        (json!({"vmid": 100, "storage": "prune"}), true),
        (json!({"vmid": 100, "storage": "prune", "remove": "TRUE"}), true),
        (json!({"vmid": 100, "storage": "unreadable"}), true),
        (json!({"vmid": 100, "storage": "keep", "prune-backups": "keep-last=1"}), true),
        (json!({"vmid": 100, "storage": "keep", "maxfiles": 1}), true),
        (json!({"vmid": 100, "storage": "prune", "remove": "no"}), false),
        (json!({"vmid": 100, "storage": "keep"}), false),
    ] {
        let found = told(&state, call, params.clone());
        assert_eq!(found.contains(raised), removes, "{params}: {found}");
    }
}

#[test]
fn every_spelling_of_a_list_of_disks_is_read() {
    let call = "PUT /nodes/pve1/qemu/100/unlink";
    for idlist in [
        json!("unused0"),
        json!("scsi1;unused0"),
        json!("scsi1; unused0"),
        json!("scsi1 unused0"),
        json!("scsi1\u{0}unused0"),
        json!("scsi1\tunused0"),
        json!(",,unused0,"),
        json!(["unused0"]),
        json!(["scsi1", "unused12"]),
        json!(["scsi1,unused0"]),
    ] {
        let found = told(&Table::new(), call, json!({"idlist": idlist}));
        assert_eq!(found, "CRITICAL VOLUME_DELETE", "{idlist}");
    }
    let found = told(&Table::new(), call, json!({"idlist": ["scsi1", "scsi2"]}));
    assert_eq!(found, "DESTRUCTIVE");
}

#[test]
fn no_spelling_of_a_host_makes_the_node_fetch_from_itself() {
    let state = Table::new()
        .with("/cluster/status", json!([{"type": "node", "name": "pve1", "ip": "192.0.2.1"}]));
    for url in [
        "http://127.0.0.1/x.iso",
        "https://127.0.0.1:8006/api2/json",
        "https://localhost:8006/",
        "http://user:pw@127.0.0.1/x",
        "http://example.com@127.0.0.1:80/x",
        "http://example.com%40@[::1]/x",
        "http://2130706433/x",
        "http://0x7f000001/x",
        "http://0x7f.1/x",
        "http://017700000001/x",
        "http://127.1:65535/x",
        "http://[::1]/x",
        "http://[::ffff:127.0.0.1]/x",
        "http://[::ffff:7f00:1]/x",
        "http://[0:0:0:0:0:ffff:7f00:0001]:8006/x",
        "http://169.254.169.254/latest/meta-data",
        "http://[fe80::1%25eth0]/x",
        "http://0/x",
        "http://127.0.0.1.:80/x",
        "HTTP://LOCALHOST./x",
    ] {
        for (call, params) in [
            (
                "POST /nodes/pve1/storage/s/download-url",
                json!({"url": url, "content": "iso", "filename": "x.iso"}),
            ),
            ("GET /nodes/pve1/query-url-metadata", json!({"url": url})),
        ] {
            assert_eq!(told(&state, call, params), "target_refused", "{call} {url}");
        }
    }
    // Text after the host cannot pose as one.
    for url in [
        "https://example.com:443/127.0.0.1",
        "https://example.com/x?u=http://127.0.0.1/",
        "https://example.com/@127.0.0.1",
    ] {
        let found = told(
            &state,
            "POST /nodes/pve1/storage/s/download-url",
            json!({"url": url, "content": "iso", "filename": "x.iso"}),
        );
        assert_ne!(found, "target_refused", "{url}");
    }
}

#[test]
fn cdrom_is_ide2_in_every_list() {
    let config = json!({
        "ide2": "local:iso/d.iso,media=cdrom", "scsi0": "local-lvm:vm-100-disk-0,size=32G",
        "boot": "order=scsi0;ide2",
    });
    let state = Table::new().with("/nodes/pve1/qemu/100/config", config);
    for state in [&Table::new(), &state] {
        for name in ["revert", "delete"] {
            for spelling in ["ide2", "tags,ide2", "ide2;tags"] {
                let ask = |text: String| {
                    told(state, "PUT /nodes/pve1/qemu/100/config", json!({name: text}))
                };
                let (ide2, cdrom) =
                    (ask(spelling.to_owned()), ask(spelling.replace("ide2", "cdrom")));
                assert_eq!(ide2, cdrom, "{name}={spelling}");
                assert_ne!(ide2, "WRITE", "{name}={spelling}");
            }
        }
    }
}

#[test]
fn what_a_guest_holds_of_another_counts_wherever_it_is_named() {
    let config = only_100();
    let estate = |disk: &str| {
        Table::new()
            .with("/cluster/resources", json!([{"vmid": 100, "type": "qemu", "node": "pve1"}]))
            .with("/nodes/pve1/qemu/100/config", json!({"scsi0": "a:vm-100-disk-0", "scsi5": disk}))
            .with("/cluster/backup/j", json!({"id": "j", "vmid": "100"}))
            .with("/cluster/ha/rules", json!([]))
            .with("/cluster/ha/resources", json!([{"sid": "vm:100"}]))
    };
    for (call, params) in [
        ("POST /nodes/pve1/vzdump", json!({"vmid": 100, "remove": 0, "storage": "s"})),
        ("POST /cluster/backup", json!({"vmid": "100", "storage": "s"})),
        ("PUT /cluster/backup/j", json!({"mode": "stop"})),
        ("POST /nodes/pve1/stopall", json!({"vms": "100"})),
        ("POST /nodes/pve1/migrateall", json!({"vms": "100", "target": "pve2"})),
        ("POST /cluster/bulk-action/guest/shutdown", json!({"vms": [100]})),
        ("DELETE /cluster/ha/resources/vm:100", json!({})),
        ("POST /cluster/replication", json!({"id": "100-0", "target": "pve2", "type": "local"})),
        ("POST /nodes/pve1/qemu/100/status/start", json!({})),
    ] {
        let own = outcome(&config, &estate("a:vm-100-disk-1"), call, params.clone());
        assert_eq!(own, "allowed", "{call} {params}");
        let foreign = outcome(&config, &estate("a:vm-102-disk-1"), call, params.clone());
        assert_eq!(foreign, "vmid_denied", "{call} {params}");
    }
}

#[test]
fn a_backup_of_all_stops_the_guest_of_this_server_too() {
    let mut config = config();
    config.self_vmids = VmidSet::parse("113").unwrap();
    let state = identity(Table::new())
        .with("/pools", json!([{"poolid": "prod"}]))
        .with("/pools?poolid=prod", json!([{"poolid": "prod", "members": [{"vmid": 113}]}]))
        .with("/cluster/backup/pool", json!({"id": "pool", "pool": "prod"}))
        .with("/cluster/backup/all", json!({"id": "all", "all": 1, "mode": "stop"}))
        .with("/cluster/backup/quiet", json!({"id": "quiet", "all": 1, "mode": "snapshot"}))
        .with("/cluster/backup/spared", json!({"id": "spared", "all": 1, "exclude": "113"}));
    let call = |call, params: Value| outcome(&config, &state, call, params);
    for (to, params) in [
        ("POST /nodes/pve2/vzdump", json!({"all": 1, "mode": "stop", "remove": 0})),
        ("POST /nodes/pve2/vzdump", json!({"all": "yes", "mode": "suspend", "exclude": "112"})),
        ("POST /cluster/backup", json!({"all": 1, "mode": "stop", "storage": "s"})),
        ("POST /cluster/backup", json!({"all": 1, "mode": "stop", "exclude": "112, 114"})),
        ("PUT /cluster/backup/pool", json!({"mode": "stop"})),
        ("PUT /cluster/backup/all", json!({"comment": "x"})),
        ("PUT /cluster/backup/quiet", json!({"mode": "stop"})),
        ("PUT /cluster/backup/spared", json!({"mode": "stop", "delete": "exclude"})),
        ("PUT /cluster/backup/spared", json!({"mode": "stop", "exclude": "112"})),
        ("PUT /cluster/backup/spared", json!({"mode": "stop", "vmid": "113", "delete": "all"})),
    ] {
        assert_eq!(call(to, params.clone()), "self_lockout", "{to} {params}");
    }
    for (to, params) in [
        ("POST /nodes/pve2/vzdump", json!({"all": 1, "mode": "stop", "exclude": "112;113"})),
        ("POST /cluster/backup", json!({"all": 1, "mode": "stop", "exclude": "113"})),
        ("POST /cluster/backup", json!({"all": 1, "mode": "snapshot", "storage": "s"})),
        ("PUT /cluster/backup/spared", json!({"mode": "stop"})),
        ("PUT /cluster/backup/quiet", json!({"comment": "x"})),
        ("PUT /cluster/backup/all", json!({"mode": "snapshot"})),
        ("DELETE /cluster/backup/all", json!({})),
    ] {
        assert_eq!(call(to, params.clone()), "allowed", "{to} {params}");
    }
}

#[test]
fn host_access_in_a_backup_is_seen_in_every_spelling() {
    let archive = "s:backup/vzdump-qemu-777-2026_01_01-00_00_00.vma.zst";
    let of = |config: &str| {
        let question = Params::new().with("volume", archive).encoded();
        Table::new()
            .with("/cluster/resources", json!([]))
            .with(&format!("/nodes/pve1/vzdump/extractconfig?{question}"), json!(config))
    };
    let restore = json!({"vmid": 777, "archive": archive});
    for config in [
        "scsi0: /dev/sda",
        "scsi0: iothread=1,file=/dev/sda",
        "ide2: media=cdrom,file=cdrom",
        "usb0: spice,host=1-1",
        "usb0: host=1-1,usb3=1",
        "hostpci0: 01:00",
        "garbage",
        "",
    ] {
        let found = told(&of(config), "POST /nodes/pve1/qemu", restore.clone());
        assert!(found.contains("GUEST_HOST_ACCESS"), "{config:?}: {found}");
    }
    for config in
        ["scsi0: a:vm-777-disk-0,size=8G", "usb0: host=spice,usb3=1", "usb0: spice", "cores: 2"]
    {
        let found = told(&of(config), "POST /nodes/pve1/qemu", restore.clone());
        assert!(!found.contains("GUEST_HOST_ACCESS"), "{config:?}: {found}");
    }
    let container = json!({"vmid": 777, "ostemplate": archive, "restore": 1});
    for (config, host, privileged) in [
        ("unprivileged: 1\nmp0: mp=/x,volume=/srv", true, false),
        ("unprivileged: 1\nrootfs: size=8G,volume=/dev/sda", true, false),
        ("unprivileged: 1\nrootfs: a:vm-777-disk-0", false, false),
        ("rootfs: a:vm-777-disk-0\n[s]\nunprivileged: 1", false, true),
        ("unprivileged: 1\nunprivileged: 0", false, true),
    ] {
        let found = told(&of(config), "POST /nodes/pve1/lxc", container.clone());
        assert_eq!(found.contains("GUEST_HOST_ACCESS"), host, "{config:?}: {found}");
        assert_eq!(found.contains("PRIVILEGED_CONTAINER"), privileged, "{config:?}: {found}");
    }
}

#[test]
fn an_object_is_protected_by_whichever_path_it_is_reached() {
    let mut config = config();
    let pattern = |text: &str| vec![text.to_owned()];
    for (protected, call, params, want) in [
        ("/pools/a", "PUT /pools", json!({"poolid": "a", "comment": "x"}), true),
        ("/pools/a", "PUT /pools/a", json!({"comment": "x"}), true),
        ("/pools/a", "PUT /pools", json!({"poolid": "b", "comment": "x"}), false),
        ("/cluster/ha/resources/vm:102", "PUT /cluster/ha/resources/102", json!({}), true),
        ("/cluster/ha/resources/102", "PUT /cluster/ha/resources/vm:102", json!({}), true),
        ("/cluster/ha/resources/vm:102", "PUT /cluster/ha/resources/vm:103", json!({}), false),
        (
            "/nodes/*/storage/s/content/s:vm-9-disk-0",
            "DELETE /nodes/pve1/storage/s/content/vm-9-disk-0",
            json!({}),
            true,
        ),
        (
            "/nodes/*/storage/s/content/vm-9-disk-0",
            "DELETE /nodes/pve1/storage/s/content/s:vm-9-disk-0",
            json!({}),
            true,
        ),
    ] {
        config.extra_protected = pattern(protected);
        let state = identity(Table::new());
        let judged = super::testing::judged(&config, &state, call, params.clone());
        let found = judged.class.categories.iter().any(|f| f.category() == "CUSTOM_PROTECTED");
        assert_eq!(found, want, "{protected}: {call} {params}");
    }
}

#[test]
fn who_is_moved_along_and_who_a_task_is_about_count_too() {
    let config = only_100();
    let rule = json!([{"type": "resource-affinity", "affinity": "positive", "resources": "vm:100,vm:102"}]);
    let rows = json!([{"vmid": 100, "type": "qemu", "node": "pve1"}]);
    let estate = |rules: Value| {
        Table::new()
            .with("/cluster/resources", rows.clone())
            .with("/nodes/pve1/qemu/100/config", json!({}))
            .with("/cluster/ha/rules", rules)
    };
    for (call, params) in [
        ("POST /nodes/pve1/migrateall", json!({"target": "pve2", "vms": "100"})),
        ("POST /cluster/bulk-action/guest/migrate", json!({"target-node": "pve2", "vms": [100]})),
    ] {
        let alone = outcome(&config, &estate(json!([])), call, params.clone());
        assert_eq!(alone, "allowed", "{call}");
        let along = outcome(&config, &estate(rule.clone()), call, params.clone());
        assert_eq!(along, "vmid_denied", "{call}");
    }
    for (id, want) in [("100", "allowed"), ("100,102", "vmid_denied"), ("102", "vmid_denied")] {
        let call = format!("DELETE /nodes/pve1/tasks/UPID:pve1:1:1:1:vzdump:{id}:root@pam:");
        assert_eq!(outcome(&config, &estate(json!([])), &call, json!({})), want, "{id}");
    }
}

#[test]
fn a_node_list_holds_for_where_the_guest_is_now() {
    let mut config = config();
    config.allowed_nodes = Some(vec![crate::pve::NodeName::parse("pve1").unwrap()]);
    for (node, want) in [("pve1", "allowed"), ("pve2", "node_denied")] {
        let state = Table::new()
            .with("/cluster/resources", json!([{"vmid": 101, "type": "qemu", "node": node}]))
            .with("/cluster/ha/rules", json!([]));
        let call = "POST /cluster/ha/resources/vm:101/migrate";
        assert_eq!(outcome(&config, &state, call, json!({"node": "pve1"})), want, "{node}");
    }
}

#[test]
fn nobody_joins_a_group_of_ours() {
    let config = config();
    let state = identity(Table::new());
    for (call, params) in [
        ("PUT /access/users/a@pve", json!({"groups": "ops", "append": 1})),
        ("PUT /access/users/a@pve", json!({"groups": "web; OPS"})),
        ("POST /access/users", json!({"userid": "new@pve", "groups": ["web", "ops"]})),
    ] {
        assert_eq!(outcome(&config, &state, call, params.clone()), "self_lockout", "{params}");
        let blind = outcome(&config, &Table::new(), call, params.clone());
        assert_eq!(blind, "self_lockout", "{params}");
    }
    for params in [json!({"groups": "web"}), json!({"comment": "ops"})] {
        assert_eq!(outcome(&config, &state, "PUT /access/users/a@pve", params), "allowed");
    }
}

#[test]
fn what_names_everything_says_as_little_as_nothing() {
    let opens = "POST /nodes/pve1/qemu/100/firewall/rules";
    let rename = "POST /nodes/pve1/lxc/100/firewall/ipset";
    let load = "POST /nodes/pve1/storage/s/download-url";
    let url = "https://example.com/a";
    for (call, params, want) in [
        (opens, json!({"type": "in", "action": "ACCEPT"}), "DESTRUCTIVE"),
        (opens, json!({"type": "in", "action": "ACCEPT", "source": "0.0.0.0/0"}), "DESTRUCTIVE"),
        (opens, json!({"type": "IN", "action": "accept", "source": "::/0"}), "DESTRUCTIVE"),
        (
            opens,
            json!({"type": "in", "action": "ACCEPT", "source": "10.0.0.1,0.0.0.0/0"}),
            "DESTRUCTIVE",
        ),
        (opens, json!({"type": "in", "action": "ACCEPT", "dport": "1:65535"}), "DESTRUCTIVE"),
        (opens, json!({"type": "in", "action": "ACCEPT", "dport": "443"}), "WRITE"),
        (opens, json!({"type": "in", "action": "ACCEPT", "source": "10.0.0.0/8"}), "WRITE"),
        (rename, json!({"name": "x", "rename": "ipfilter-net0"}), "DESTRUCTIVE"),
        (rename, json!({"name": "IPFILTER-net0", "rename": "y"}), "DESTRUCTIVE"),
        (rename, json!({"name": "x", "rename": "y"}), "WRITE"),
        (
            load,
            json!({"url": url, "content": "import", "filename": "a.qcow2", "checksum": ""}),
            "DESTRUCTIVE",
        ),
        (
            load,
            json!({"url": url, "content": "vztmpl", "filename": "a.tar", "checksum": "0"}),
            "DESTRUCTIVE",
        ),
    ] {
        assert_eq!(
            told(
                &Table::new().with("/nodes/pve1/storage/s/content", json!([])),
                call,
                params.clone()
            ),
            want,
            "{call} {params}"
        );
    }
}
