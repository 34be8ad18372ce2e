//! Interfaces, firewall and SDN against the simulated estate.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, dead_code)] // helpers of tests count as no tests

mod estate;

use estate::{Estate, cell};
use serde_json::{Value, json};

#[tokio::test]
async fn interfaces_with_what_is_pending_and_the_way_in() {
    let e = Estate::new().await;
    let before = e.ok("pve_list_interfaces", json!({"node": "pve1"})).await;
    assert_eq!(cell(&before, "iface", "vmbr0", "way_in"), true);
    assert_eq!(cell(&before, "iface", "bond0", "way_in"), true, "what the bridge stands on");
    assert_eq!(cell(&before, "iface", "vmbr1", "way_in"), false);
    assert_eq!(before.get("pending"), None);
    // A bridge beside the way in.
    let made = e
        .change(
            "pve_interface_set",
            json!({"node": "pve1", "iface": "vmbr7", "type": "bridge",
            "bridge_vlan_aware": true, "autostart": true, "cidr": "10.77.0.1/24"}),
        )
        .await;
    assert_eq!((&made["status"], &made["did"]), (&json!("done"), &json!("created")));
    assert_eq!(
        e.sent(),
        [
            json!(["POST", "/nodes/pve1/network", {"iface": "vmbr7", "type": "bridge", "cidr": "10.77.0.1/24",
            "bridge_vlan_aware": "1", "autostart": "1"}])
        ]
    );
    let pending = e.ok("pve_list_interfaces", json!({"node": "pve1"})).await;
    assert_eq!(pending["pending"][0]["iface"], "vmbr7");
    assert_eq!(pending["pending"][0]["change"], "new");
    assert_eq!(pending["may_cut"], json!([]));
    // A change of the way in keeps what it does not name, and is told.
    let changed = e
        .change(
            "pve_interface_set",
            json!({"node": "pve1", "iface": "vmbr0", "gateway": "10.20.0.254"}),
        )
        .await;
    assert_eq!(changed["did"], "updated");
    assert!(changed["may_cut"][0].as_str().unwrap().contains("vmbr0"), "{changed}");
    let sent = e.sent();
    assert_eq!(sent[0][0], "PUT");
    for kept in ["cidr", "bridge_ports", "bridge_vids", "type"] {
        assert!(sent[0][2].get(kept).is_some(), "{kept}: {sent:?}");
    }
    assert_eq!(sent[0][2]["gateway"], "10.20.0.254");
    let pending = e.ok("pve_list_interfaces", json!({"node": "pve1"})).await;
    assert!(pending["may_cut"].to_string().contains("loses the gateway 10.20.0.1"), "{pending}");
    let row = |pending: &Value, iface: &str| {
        let rows = pending["pending"].as_array().unwrap();
        rows.iter().find(|row| row["iface"] == iface).cloned().unwrap_or_default()
    };
    let own = row(&pending, "vmbr0");
    assert_eq!(own["way_in"], true, "{pending}");
    for (member, line) in [("removed", "gateway 10.20.0.1"), ("added", "gateway 10.20.0.254")] {
        assert!(own[member].to_string().contains(line), "{member}: {pending}");
    }
    assert_eq!(row(&pending, "?"), Value::Null, "every line has its interface: {pending}");
    // A dry run of applying shows it too, and sends nothing.
    let dry = e.ok("pve_network_apply", json!({"node": "pve1", "dry_run": true})).await;
    assert_eq!(dry["status"], "dry_run");
    assert!(dry["may_cut"].to_string().contains("10.20.0.1"), "{dry}");
    assert_eq!(e.sent(), Vec::<Value>::new());
    let reverted = e.change("pve_network_revert", json!({"node": "pve1"})).await;
    assert_eq!(reverted["status"], "done");
    let again = e.ok("pve_network_revert", json!({"node": "pve1"})).await;
    assert_eq!(again["status"], "no_change");
    let nothing = e.ok("pve_network_apply", json!({"node": "pve1"})).await;
    assert_eq!(nothing["status"], "no_change");
}

#[tokio::test]
async fn a_pending_bridge_is_applied() {
    let e = Estate::new().await;
    e.change("pve_interface_set", json!({"node": "pve2", "iface": "vmbr9", "type": "bridge"}))
        .await;
    let done = e.change("pve_network_apply", json!({"node": "pve2"})).await;
    assert_eq!((&done["status"], &done["task"]["ok"]), (&json!("done"), &json!(true)), "{done}");
    let now = e.ok("pve_list_interfaces", json!({"node": "pve2", "type": "bridge"})).await;
    assert_eq!(cell(&now, "iface", "vmbr9", "active"), true);
    let gone = e.change("pve_interface_delete", json!({"node": "pve2", "iface": "vmbr0"})).await;
    assert!(gone["may_cut"].to_string().contains("vmbr0"), "{gone}");
}

#[tokio::test]
async fn interfaces_that_cannot_be_meant() {
    let e = Estate::new().await;
    for (tool, arguments, code, words) in [
        (
            "pve_interface_set",
            json!({"node": "pve1", "iface": "vmbr8"}),
            "invalid_argument",
            "type",
        ),
        (
            "pve_interface_set",
            json!({"node": "pve1", "iface": "../x", "type": "bridge"}),
            "invalid_argument",
            "iface",
        ),
        (
            "pve_interface_set",
            json!({"node": "pve1", "iface": "vmbr8", "type": "bridge", "cidr": "10.0.0.1"}),
            "invalid_argument",
            "192.0.2.7/24",
        ),
        (
            "pve_interface_set",
            json!({"node": "pve1", "iface": "vmbr8", "type": "bridge", "mtu": 100}),
            "invalid_argument",
            "1280",
        ),
        (
            "pve_interface_set",
            json!({"node": "pve1", "iface": "vmbr0", "type": "bond"}),
            "conflict",
            "is a bridge",
        ),
        (
            "pve_interface_set",
            json!({"node": "pve1", "iface": "vmbr0", "must_not_exist": true, "mtu": 9000}),
            "conflict",
            "exists",
        ),
        (
            "pve_interface_set",
            json!({"node": "pve1", "iface": "vmbr8", "type": "bridge", "must_exist": true}),
            "not_found",
            "vmbr8",
        ),
        (
            "pve_interface_set",
            json!({"node": "pve1", "iface": "vmbr1", "set": {"bridge_prots": "x"}}),
            "invalid_argument",
            "bridge_prots",
        ),
        ("pve_interface_delete", json!({"node": "pve1", "iface": "vmbr8"}), "not_found", "vmbr1"),
        ("pve_list_interfaces", json!({"node": "PVE1"}), "not_found", "did you mean pve1"),
        ("pve_list_interfaces", json!({}), "invalid_argument", "pve1, pve2"),
    ] {
        let (found, text) = e.refused(tool, arguments.clone()).await;
        assert_eq!(found, code, "{arguments}: {text}");
        assert!(text.contains(words), "{arguments}: {text}");
    }
    assert_eq!(e.sent(), Vec::<Value>::new());
    let same = e
        .ok("pve_interface_set", json!({"node": "pve1", "iface": "vmbr1", "autostart": true}))
        .await;
    assert_eq!(same["status"], "no_change");
}

#[tokio::test]
async fn a_rule_is_changed_only_where_it_is_the_one_that_was_listed() {
    let e = Estate::new().await;
    let scope = |more: Value| {
        let mut arguments = json!({"vmid": 100});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let list = e.ok("pve_firewall_rules", scope(json!({}))).await;
    let digest = list["digest"].as_str().unwrap().to_owned();
    assert_eq!(list["rows"][0][4], "HTTPS");
    // Without the list's digest a place means nothing; the rule there is shown.
    let (code, text) = e.refused("pve_firewall_rule_delete", scope(json!({"pos": 0}))).await;
    assert_eq!(code, "invalid_argument");
    assert!(text.contains("HTTPS") && text.contains(&digest), "{text}");
    let dry = e.ok("pve_firewall_rule_delete", scope(json!({"pos": 0, "dry_run": true}))).await;
    assert_eq!((&dry["status"], &dry["before"]["macro"]), (&json!("dry_run"), &json!("HTTPS")));
    assert_eq!(dry["request"]["params"]["digest"], digest);
    // Someone else puts a rule in front.
    let made = e
        .change("pve_firewall_rule_set", scope(json!({"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "8443", "enable": true})))
        .await;
    assert_eq!(
        (&made["did"], &made["after"]["dport"]),
        (&json!("created"), &json!("8443")),
        "{made}"
    );
    let stale = scope(json!({"pos": 0, "digest": digest}));
    let (code, _) = e.refused("pve_firewall_rule_delete", stale).await;
    assert_eq!(code, "digest_changed");
    let list = e.ok("pve_firewall_rules", scope(json!({}))).await;
    let digest = list["digest"].as_str().unwrap();
    e.sent();
    let changed = e
        .change(
            "pve_firewall_rule_set",
            scope(json!({"pos": 2, "digest": digest, "enable": true, "comment": "web"})),
        )
        .await;
    assert_eq!(
        (&changed["did"], &changed["before"]["enable"], &changed["after"]["enable"]),
        (&json!("updated"), &json!(0), &json!(1))
    );
    let sent = e.sent();
    assert_eq!(sent[0][1], "/nodes/pve1/qemu/100/firewall/rules/2");
    assert_eq!(sent[0][2], json!({"comment": "web", "enable": "1", "digest": digest}));
    let list = e.ok("pve_firewall_rules", scope(json!({}))).await;
    let moved = e
        .change(
            "pve_firewall_rule_set",
            scope(json!({"pos": 2, "digest": list["digest"], "moveto": 0})),
        )
        .await;
    assert_eq!(
        (&moved["did"], &moved["after"]["macro"]),
        (&json!("moved"), &json!("HTTP")),
        "{moved}"
    );
    let list = e.ok("pve_firewall_rules", scope(json!({}))).await;
    let gone = e
        .change("pve_firewall_rule_delete", scope(json!({"pos": 0, "digest": list["digest"]})))
        .await;
    assert_eq!(
        (&gone["before"]["macro"], &gone["after"]["rules_left"]),
        (&json!("HTTP"), &json!(2)),
        "{gone}"
    );
}

#[tokio::test]
async fn rules_that_cannot_be_meant() {
    let e = Estate::new().await;
    let digest = e.ok("pve_firewall_rules", json!({"vmid": 100})).await["digest"].clone();
    for (arguments, code, words) in [
        (json!({"vmid": 100, "node": "pve1"}), "invalid_argument", "only one of"),
        (json!({"vmid": 100, "type": "in"}), "invalid_argument", "`action`"),
        (
            json!({"vmid": 100, "type": "inn", "action": "ACCEPT"}),
            "invalid_argument",
            "in, out, forward, group",
        ),
        (
            json!({"vmid": 100, "pos": 7, "digest": digest, "enable": true}),
            "not_found",
            "no rule at place 7",
        ),
        (json!({"vmid": 100, "pos": 0, "digest": digest}), "invalid_argument", "nothing to change"),
        (
            json!({"vmid": 100, "pos": 0, "digest": digest, "moveto": 1, "enable": false}),
            "invalid_argument",
            "moves a rule",
        ),
        (
            json!({"vmid": 100, "pos": 0, "digest": digest, "delete": ["action"]}),
            "invalid_argument",
            "action",
        ),
        (json!({"vmid": 100, "pos": 0, "enable": true}), "invalid_argument", "`digest` is missing"),
        (json!({"vmid": 99_999, "type": "in", "action": "DROP"}), "not_found", "99999"),
        (json!({"group": "nope", "pos": 0, "digest": "x", "enable": true}), "not_found", "nope"),
    ] {
        let (found, text) = e.refused("pve_firewall_rule_set", arguments.clone()).await;
        assert_eq!(found, code, "{arguments}: {text}");
        assert!(text.contains(words), "{arguments}: {text}");
    }
    assert_eq!(e.sent(), Vec::<Value>::new());
    let off = e
        .change("pve_firewall_rule_set", json!({"vmid": 100, "type": "out", "action": "DROP"}))
        .await;
    assert!(off["note"].as_str().unwrap().contains("off"), "{off}");
}

#[tokio::test]
async fn each_level_has_its_own_path() {
    let e = Estate::new().await;
    for (scope, path) in [
        (json!({}), "/cluster/firewall/rules"),
        (json!({"node": "pve2"}), "/nodes/pve2/firewall/rules"),
        (json!({"group": "verwaltung"}), "/cluster/firewall/groups/verwaltung"),
        (json!({"vmid": 101}), "/nodes/pve2/qemu/101/firewall/rules"),
    ] {
        let mut arguments = scope.clone();
        arguments["type"] = json!("in");
        arguments["action"] = json!("ACCEPT");
        e.change("pve_firewall_rule_set", arguments).await;
        let sent = e.sent();
        assert_eq!((&sent[0][0], &sent[0][1]), (&json!("POST"), &json!(path)), "{scope}");
        let list = e.ok("pve_firewall_rules", scope.clone()).await;
        assert_eq!(list["rows"][0][1], false, "{scope}: {list}");
    }
}

#[tokio::test]
async fn options_say_whether_a_firewall_is_in_force() {
    let e = Estate::new().await;
    let cluster = e.ok("pve_firewall_options", json!({})).await;
    assert_eq!(cluster["in_force"], true);
    assert_eq!(cluster["groups"][0]["group"], "verwaltung");
    let guest = e.ok("pve_firewall_options", json!({"vmid": 100})).await;
    assert_eq!(guest["in_force"], true, "{guest}");
    let set = e
        .change(
            "pve_firewall_options_set",
            json!({"vmid": 100, "enable": false, "set": {"macfilter": true}}),
        )
        .await;
    assert_eq!((&set["before"]["enable"], &set["after"]["enable"]), (&json!(1), &json!(0)));
    let sent = e.sent();
    assert_eq!(sent[0][2]["digest"], guest["digest"]);
    let off = e.ok("pve_firewall_options", json!({"vmid": 100})).await;
    assert_eq!(off["in_force"], false);
    e.change("pve_firewall_options_set", json!({"enable": false})).await;
    let node = e.ok("pve_firewall_options", json!({"node": "pve1"})).await;
    assert_eq!(node["in_force"], false);
    assert!(node["because"].to_string().contains("cluster is off"), "{node}");
    for (arguments, words) in [
        (json!({"vmid": 100}), "nothing to change"),
        (json!({"vmid": 100, "set": {"macfliter": true}}), "did you mean macfilter"),
        (json!({"node": "pve1", "policy_in": "DROP"}), "no firewall option"),
        (json!({"vmid": 100, "policy_in": "MAYBE"}), "ACCEPT, REJECT, DROP"),
        (json!({"vmid": 100, "enable": true, "delete": ["enable"]}), "both"),
        (json!({"group": "verwaltung", "enable": true}), "no options"),
    ] {
        let (code, text) = e.refused("pve_firewall_options_set", arguments.clone()).await;
        assert_eq!(code, "invalid_argument", "{arguments}");
        assert!(text.contains(words), "{arguments}: {text}");
    }
    let (code, _) = e
        .refused("pve_firewall_options_set", json!({"vmid": 100, "enable": true, "digest": "0000"}))
        .await;
    assert_eq!(code, "digest_changed");
}

#[tokio::test]
async fn aliases_and_ip_sets_name_what_uses_them() {
    let e = Estate::new().await;
    let alias = e.ok("pve_firewall_aliases", json!({"name": "admin-netz"})).await;
    assert_eq!(alias["uses"]["count"], 2, "{alias}");
    assert_eq!(alias["uses"]["rules"][0]["firewall"], "group verwaltung");
    let set = e
        .change("pve_firewall_alias_set", json!({"name": "admin-netz", "cidr": "10.20.98.0/24"}))
        .await;
    assert_eq!(
        (&set["did"], &set["before"]["cidr"], &set["after"]["cidr"]),
        (&json!("updated"), &json!("10.20.99.0/24"), &json!("10.20.98.0/24"))
    );
    assert_eq!(set["uses"]["count"], 2);
    let sent = e.sent();
    assert_eq!(sent[0][1], "/cluster/firewall/aliases/admin-netz");
    assert_eq!(sent[0][2]["comment"], "Admin-VLAN", "an update keeps the comment");
    let gone =
        e.ok("pve_firewall_alias_delete", json!({"name": "admin-netz", "dry_run": true})).await;
    assert!(gone["warning"].as_str().unwrap().contains('2'), "{gone}");
    let made = e
        .change(
            "pve_firewall_alias_set",
            json!({"name": "lan", "cidr": "10.0.0.0/8", "must_not_exist": true}),
        )
        .await;
    assert_eq!(made["did"], "created");
    let again = e.ok("pve_firewall_alias_set", json!({"name": "lan", "cidr": "10.0.0.0/8"})).await;
    assert_eq!(again["status"], "no_change");
    let gone = e.change("pve_firewall_alias_delete", json!({"name": "lan"})).await;
    assert_eq!(
        (&gone["status"], &gone["uses"]["count"], gone.get("warning")),
        (&json!("done"), &json!(0), None)
    );

    let set = e.ok("pve_firewall_ipsets", json!({"name": "gesperrt"})).await;
    assert_eq!(
        (&set["entries"][0]["cidr"], &set["uses"]["count"]),
        (&json!("203.0.113.0/24"), &json!(1)),
        "{set}"
    );
    e.sent();
    let entry = e
        .change(
            "pve_firewall_ipset_set",
            json!({"name": "gesperrt", "cidr": "198.51.100.0/24", "comment": "Scan"}),
        )
        .await;
    assert_eq!(
        (&entry["did"], &entry["after"]["comment"]),
        (&json!("created"), &json!("Scan")),
        "{entry}"
    );
    let entry = e
        .change(
            "pve_firewall_ipset_set",
            json!({"name": "gesperrt", "cidr": "198.51.100.0/24", "nomatch": true}),
        )
        .await;
    assert_eq!(entry["did"], "updated");
    let paths: Vec<Value> = e.sent().iter().map(|s| s[1].clone()).collect();
    assert_eq!(
        paths,
        ["/cluster/firewall/ipset/gesperrt", "/cluster/firewall/ipset/gesperrt/198.51.100.0/24"]
    );
    let (code, text) = e.refused("pve_firewall_ipset_delete", json!({"name": "gesperrt"})).await;
    assert_eq!(code, "conflict");
    assert!(text.contains("203.0.113.0/24"), "{text}");
    let gone = e
        .change("pve_firewall_ipset_delete", json!({"name": "gesperrt", "cidr": "198.51.100.0/24"}))
        .await;
    assert_eq!(gone["before"]["cidr"], "198.51.100.0/24");
    let new =
        e.change("pve_firewall_ipset_set", json!({"name": "management", "comment": "us"})).await;
    assert_eq!(new["did"], "created");
    let gone = e.change("pve_firewall_ipset_delete", json!({"name": "management"})).await;
    assert_eq!(gone["status"], "done");
    for (tool, arguments, code) in [
        ("pve_firewall_alias_set", json!({"name": "1x", "cidr": "10.0.0.0/8"}), "invalid_argument"),
        ("pve_firewall_alias_set", json!({"name": "xx", "cidr": "no address"}), "invalid_argument"),
        ("pve_firewall_alias_set", json!({"name": "xx"}), "invalid_argument"),
        (
            "pve_firewall_alias_set",
            json!({"name": "xx", "cidr": "10.0.0.0/8", "must_exist": true}),
            "not_found",
        ),
        ("pve_firewall_alias_delete", json!({"name": "xx"}), "not_found"),
        ("pve_firewall_ipset_set", json!({"name": "nope", "cidr": "10.0.0.0/8"}), "not_found"),
        (
            "pve_firewall_ipset_set",
            json!({"name": "gesperrt", "nomatch": true}),
            "invalid_argument",
        ),
        ("pve_firewall_ipset_delete", json!({"name": "gesperrt", "cidr": "10.9.9.9"}), "not_found"),
        ("pve_firewall_aliases", json!({"name": "nope"}), "not_found"),
    ] {
        assert_eq!(e.refused(tool, arguments.clone()).await.0, code, "{tool} {arguments}");
    }
}

#[tokio::test]
async fn a_security_group_is_made_used_and_deleted() {
    let e = Estate::new().await;
    let made =
        e.change("pve_firewall_group_set", json!({"group": "web", "comment": "Webserver"})).await;
    assert_eq!(
        (&made["did"], &made["after"]["comment"]),
        (&json!("created"), &json!("Webserver")),
        "{made}"
    );
    e.change(
        "pve_firewall_rule_set",
        json!({"group": "web", "type": "in", "action": "ACCEPT", "macro": "HTTPS", "enable": true}),
    )
    .await;
    e.change(
        "pve_firewall_rule_set",
        json!({"vmid": 102, "type": "group", "action": "web", "enable": true}),
    )
    .await;
    let (code, text) = e.refused("pve_firewall_group_delete", json!({"group": "web"})).await;
    assert_eq!(code, "conflict");
    assert!(text.contains("HTTPS"), "{text}");
    let list = e.ok("pve_firewall_rules", json!({"group": "web"})).await;
    e.change(
        "pve_firewall_rule_delete",
        json!({"group": "web", "pos": 0, "digest": list["digest"]}),
    )
    .await;
    let dry = e.ok("pve_firewall_group_delete", json!({"group": "web", "dry_run": true})).await;
    assert_eq!(dry["uses"]["rules"][0]["firewall"], "guest 102", "{dry}");
    let gone = e.change("pve_firewall_group_delete", json!({"group": "web"})).await;
    assert_eq!(gone["status"], "done");
    assert_eq!(
        e.refused("pve_firewall_group_delete", json!({"group": "web"})).await.0,
        "not_found"
    );
}

#[tokio::test]
async fn the_newest_lines_of_the_firewall_log() {
    let e = Estate::new().await;
    let log = e.ok("pve_firewall_log", json!({"node": "pve1"})).await;
    assert!(log["lines"][0].as_str().unwrap().contains("pvefw"), "{log}");
    let none = e.ok("pve_firewall_log", json!({"vmid": 100})).await;
    assert_eq!(none["lines"], json!([]));
    assert_eq!(
        e.refused("pve_firewall_log", json!({"vmid": 100, "node": "pve1"})).await.0,
        "invalid_argument"
    );
    assert_eq!(
        e.refused("pve_firewall_log", json!({"node": "pve1", "since": "yesterday"})).await.0,
        "invalid_argument"
    );
}

#[tokio::test]
async fn a_network_is_made_applied_and_undone() {
    let e = Estate::new().await;
    let zone =
        e.change("pve_sdn_zone_set", json!({"zone": "lab", "type": "simple", "mtu": 1400})).await;
    assert_eq!((&zone["did"], &zone["after"]["mtu"]), (&json!("created"), &json!(1400)), "{zone}");
    e.change("pve_sdn_vnet_set", json!({"vnet": "lab1", "zone": "lab", "alias": "Labor"})).await;
    let subnet = e
        .change(
            "pve_sdn_subnet_set",
            json!({"vnet": "lab1", "subnet": "10.88.0.0/24", "gateway": "10.88.0.1", "snat": true}),
        )
        .await;
    assert_eq!(subnet["did"], "created");
    let sent = e.sent();
    assert_eq!(
        sent[0],
        json!(["POST", "/cluster/sdn/zones", {"zone": "lab", "type": "simple", "mtu": "1400"}])
    );
    assert_eq!(
        sent[1],
        json!(["POST", "/cluster/sdn/vnets", {"vnet": "lab1", "zone": "lab", "alias": "Labor"}])
    );
    assert_eq!(
        sent[2][2],
        json!({"subnet": "10.88.0.0/24", "type": "subnet", "gateway": "10.88.0.1", "snat": "1"})
    );
    let status = e.ok("pve_sdn_status", json!({})).await;
    assert_eq!(cell(&status["zones"], "zone", "lab", "pending"), "new");
    assert_eq!(cell(&status["vnets"], "vnet", "lab1", "zone"), "lab");
    assert!(status["pending"].as_u64().unwrap() >= 3, "{status}");
    let dry = e.ok("pve_sdn_apply", json!({"dry_run": true})).await;
    assert!(dry["before"]["pending"].to_string().contains("lab1"), "{dry}");
    let done = e.change("pve_sdn_apply", json!({})).await;
    assert_eq!((&done["status"], &done["after"]["pending"]), (&json!("done"), &json!(0)), "{done}");
    let changed = e
        .change(
            "pve_sdn_subnet_set",
            json!({"vnet": "lab1", "subnet": "10.88.0.0/24", "gateway": "10.88.0.254"}),
        )
        .await;
    assert_eq!(changed["did"], "updated");
    assert!(e.refused("pve_sdn_zone_delete", json!({"zone": "lab"})).await.1.contains("lab1"));
    assert!(
        e.refused("pve_sdn_vnet_delete", json!({"vnet": "lab1"})).await.1.contains("10.88.0.0")
    );
    e.change("pve_sdn_subnet_delete", json!({"vnet": "lab1", "subnet": "10.88.0.0/24"})).await;
    e.change("pve_sdn_vnet_delete", json!({"vnet": "lab1"})).await;
    e.change("pve_sdn_zone_delete", json!({"zone": "lab"})).await;
    let status = e.ok("pve_sdn_status", json!({})).await;
    assert_eq!(cell(&status["zones"], "zone", "lab", "pending"), "deleted");
}

#[tokio::test]
async fn networks_that_cannot_be_meant() {
    let e = Estate::new().await;
    for (tool, arguments, code, words) in [
        (
            "pve_sdn_zone_set",
            json!({"zone": "toolongname", "type": "simple"}),
            "invalid_argument",
            "2 to 8",
        ),
        ("pve_sdn_zone_set", json!({"zone": "z1"}), "invalid_argument", "type"),
        ("pve_sdn_zone_set", json!({"zone": "lan", "type": "simple"}), "conflict", "vlan"),
        (
            "pve_sdn_zone_set",
            json!({"zone": "lan", "mtu": 1400, "must_not_exist": true}),
            "conflict",
            "exists",
        ),
        ("pve_sdn_vnet_set", json!({"vnet": "v1"}), "invalid_argument", "zone"),
        (
            "pve_sdn_vnet_set",
            json!({"vnet": "v1", "zone": "lan", "tag": 0}),
            "invalid_argument",
            "16777215",
        ),
        (
            "pve_sdn_subnet_set",
            json!({"vnet": "nope", "subnet": "10.0.0.0/24"}),
            "not_found",
            "nope",
        ),
        ("pve_sdn_zone_delete", json!({"zone": "nope"}), "not_found", "nope"),
        ("pve_sdn_vnet_delete", json!({"vnet": "nope"}), "not_found", "nope"),
    ] {
        let (found, text) = e.refused(tool, arguments.clone()).await;
        assert_eq!(found, code, "{tool} {arguments}: {text}");
        assert!(text.contains(words), "{tool} {arguments}: {text}");
    }
    assert_eq!(e.sent(), Vec::<Value>::new());
}
