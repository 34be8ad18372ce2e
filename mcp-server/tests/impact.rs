//! What a plan says hangs on an object: what is staged, whole, and who uses it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod world;

use proxmox_mcp::config::Approval;
use serde_json::{Value, json};
use world::World;

async fn open() -> World {
    World::with(|config| config.approval = Approval::Confirm).await
}

/// The lines of a plan.
async fn impact(world: &World, tool: &str, arguments: Value) -> Vec<String> {
    let mut dry = arguments.clone();
    dry["dry_run"] = json!(true);
    let plan = world.call(tool, dry).await;
    let plan = plan.unwrap_or_else(|e| panic!("{tool} {arguments}: {e} {:?}", e.details));
    let lines = plan["impact"].as_array().unwrap_or_else(|| panic!("{plan}"));
    lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

async fn done(world: &World, tool: &str, arguments: Value) -> u64 {
    let done = world.confirmed(tool, arguments.clone()).await;
    let done = done.unwrap_or_else(|e| panic!("{tool} {arguments}: {e} {:?}", e.details));
    done["audit_id"].as_u64().unwrap()
}

fn has(lines: &[String], words: &str) -> bool {
    lines.iter().any(|line| line.contains(words))
}

#[tokio::test]
async fn staged_network_changes_are_shown_whole_with_who_staged_them() {
    let world = open().await;
    let bridge = |iface: &str| json!({"node": "pve1", "iface": iface, "type": "bridge", "cidr": "192.0.2.9/24"});
    let first = done(&world, "pve_interface_set", bridge("vmbr8")).await;
    let lines = impact(&world, "pve_network_apply", json!({"node": "pve1"})).await;
    assert!(has(&lines, "staged: \"+iface vmbr8 inet static\""), "{lines:#?}");
    assert!(has(&lines, "192.0.2.9/24"), "{lines:#?}");
    assert!(has(&lines, &format!("audit record {first} at ")), "{lines:#?}");
    // What somebody else staged is no less shown, and not told as ours.
    done(&world, "pve_network_apply", json!({"node": "pve1"})).await;
    let second = done(&world, "pve_interface_set", bridge("vmbr9")).await;
    let lines = impact(&world, "pve_network_apply", json!({"node": "pve1"})).await;
    assert!(!has(&lines, "+iface vmbr8"), "applied already: {lines:#?}");
    assert!(has(&lines, &format!("audit record {second} at ")), "{lines:#?}");
    assert!(!has(&lines, &format!("audit record {first} at ")), "{lines:#?}");
    std::fs::remove_file(&world.app.config.audit.path).unwrap();
    let lines = impact(&world, "pve_network_apply", json!({"node": "pve1"})).await;
    assert!(has(&lines, "none of it was staged through this server"), "{lines:#?}");
}

#[tokio::test]
async fn staged_changes_of_sdn_and_guests_are_shown() {
    let world = open().await;
    let made = done(&world, "pve_sdn_zone_set", json!({"zone": "z9", "type": "simple"})).await;
    let lines = impact(&world, "pve_sdn_apply", json!({})).await;
    assert!(has(&lines, "staged: zone \"z9\" \"new\""), "{lines:#?}");
    // The sample estate has one that this server did not make.
    assert!(has(&lines, "staged: vnet \"labor\" \"new\""), "{lines:#?}");
    assert!(has(&lines, &format!("audit record {made} at ")), "{lines:#?}");
    let cores = json!({"vmid": 100, "set": {"cores": 7}});
    done(&world, "pve_guest_config_set", cores).await;
    let lines = impact(&world, "pve_guest_reboot", json!({"vmid": 100})).await;
    assert!(has(&lines, "staged: \"cores\" goes from"), "{lines:#?}");
    assert!(has(&lines, "to \"7\""), "{lines:#?}");
}

#[tokio::test]
async fn who_uses_an_object_is_named() {
    let world = open().await;
    let raw = |method: &str, path: &str, params: Value| json!({"method": method, "path": path, "params": params});
    // A bridge: its guests on that node alone.
    let lines =
        impact(&world, "pve_api_call", raw("DELETE", "/nodes/pve1/network/vmbr0", json!({}))).await;
    let on = lines
        .iter()
        .find(|l| l.contains("have a NIC on it"))
        .unwrap_or_else(|| panic!("{lines:#?}"));
    let ids: Vec<&str> = on.rsplit(": ").next().unwrap().split(", ").collect();
    assert!(ids.contains(&"100") && !ids.contains(&"101"), "101 is on pve2: {on}");
    let lines =
        impact(&world, "pve_api_call", raw("DELETE", "/nodes/pve1/network/vmbr77", json!({})))
            .await;
    assert!(has(&lines, "no guest has a NIC on it"), "{lines:#?}");
    // A NIC on `gaeste` makes its zone matter.
    done(&world, "pve_nic_set", json!({"vmid": 113, "slot": "net5", "bridge": "gaeste"})).await;
    for (tool, arguments) in [
        ("pve_api_call", raw("DELETE", "/cluster/sdn/zones/lan", json!({}))),
        ("pve_sdn_vnet_delete", json!({"vnet": "gaeste"})),
    ] {
        let Ok(plan) = world
            .call(tool, {
                let mut a = arguments.clone();
                a["dry_run"] = json!(true);
                a
            })
            .await
        else {
            continue;
        };
        if plan["class"] != "WRITE" {
            assert!(plan["impact"].to_string().contains("113"), "{arguments}: {plan}");
        }
    }
    // Firewall objects in rules of the cluster, a group and a guest.
    done(&world, "pve_firewall_alias_set", json!({"name": "a9", "cidr": "192.0.2.1"})).await;
    done(&world, "pve_firewall_group_set", json!({"group": "g9"})).await;
    let rule = |place: Value, source: &str| {
        let mut rule = json!({"type": "in", "action": "ACCEPT", "source": source});
        rule.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        rule
    };
    done(&world, "pve_firewall_rule_set", rule(json!({"group": "g9"}), "dc/a9")).await;
    done(&world, "pve_firewall_rule_set", rule(json!({"vmid": 100}), "a9")).await;
    let lines = impact(&world, "pve_firewall_alias_delete", json!({"name": "a9"})).await;
    assert!(has(&lines, "used by rule 0 of group \"g9\""), "{lines:#?}");
    assert!(has(&lines, "used by rule 0 of guest 100"), "{lines:#?}");
    let group = json!({"vmid": 101, "type": "group", "action": "g9"});
    done(&world, "pve_firewall_rule_set", group).await;
    let path = "/cluster/firewall/groups/g9";
    let lines = impact(&world, "pve_api_call", raw("DELETE", path, json!({}))).await;
    assert!(has(&lines, "used by rule 0 of guest 101"), "{lines:#?}");
    // Rights of a user, a group, a role.
    let acl = json!({"path": "/pool/buero", "roles": ["PVEAuditor"], "users": ["aweiss@pve"]});
    done(&world, "pve_acl_set", acl).await;
    done(&world, "pve_token_set", json!({"userid": "aweiss@pve", "token": "t9"})).await;
    let lines = impact(&world, "pve_user_delete", json!({"userid": "aweiss@pve"})).await;
    assert!(has(&lines, "its token \"t9\""), "{lines:#?}");
    let right = "role \"PVEAuditor\" of \"aweiss@pve\" on \"/pool/buero\"";
    assert!(has(&lines, right), "{lines:#?}");
    let lines =
        impact(&world, "pve_api_call", raw("DELETE", "/pools", json!({"poolid": "buero"}))).await;
    assert!(has(&lines, right) && has(&lines, "members: "), "{lines:#?}");
    let lines = impact(&world, "pve_group_delete", json!({"group": "betrieb"})).await;
    assert!(has(&lines, "jmueller@pve"), "{lines:#?}");
}

#[tokio::test]
async fn the_answer_of_a_tool_and_its_plan_tell_the_same_uses() {
    let world = open().await;
    done(&world, "pve_firewall_alias_set", json!({"name": "a9", "cidr": "192.0.2.1"})).await;
    for rule in [
        json!({"vnet": "gaeste", "type": "forward", "action": "ACCEPT", "source": "a9"}),
        json!({"node": "pve1", "type": "in", "action": "ACCEPT", "source": "dc/a9"}),
        json!({"vmid": 100, "type": "in", "action": "ACCEPT", "source": "a9"}),
    ] {
        done(&world, "pve_firewall_rule_set", rule).await;
    }
    done(
        &world,
        "pve_firewall_ipset_set",
        json!({"name": "gesperrt", "cidr": "dc/a9", "nomatch": true}),
    )
    .await;
    let delete = json!({"name": "a9", "dry_run": true});
    let plan = world.call("pve_firewall_alias_delete", delete.clone()).await.unwrap();
    let lines = plan["impact"].to_string();
    let places = [
        "rule 0 of vnet \\\"gaeste\\\"",
        "of node \\\"pve1\\\"",
        "of guest 100",
        "IP set \\\"gesperrt\\\" of the cluster",
    ];
    for place in places {
        assert!(lines.contains(place), "{place}: {lines}");
    }
    assert_eq!(plan["uses"]["count"], 4, "{plan}");
    // Once the guest has an alias of that name, its rule means that one.
    done(&world, "pve_firewall_alias_set", json!({"vmid": 100, "name": "a9", "cidr": "192.0.2.2"}))
        .await;
    let plan = world.call("pve_firewall_alias_delete", delete).await.unwrap();
    assert_eq!(plan["uses"]["count"], 3, "{plan}");
    assert!(!plan["impact"].to_string().contains("of guest 100"), "{plan}");
    let own = json!({"vmid": 100, "name": "a9", "dry_run": true});
    let plan = world.call("pve_firewall_alias_delete", own).await.unwrap();
    assert_eq!(plan["uses"]["rules"][0]["firewall"], "guest 100", "{plan}");
    let lines: Vec<&str> =
        plan["impact"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(lines.len() == 1 && lines[0].starts_with("used by rule"), "the guest stays: {lines:?}");
}

#[tokio::test]
async fn a_node_that_is_off_is_no_use_that_is_left_out() {
    let world = open().await;
    world.sim.with_state(|s| s.nodes.get_mut("pve3").unwrap().online = false);
    let lines = impact(&world, "pve_firewall_alias_delete", json!({"name": "admin-netz"})).await;
    let off = lines.iter().find(|l| l.contains("the node is offline"));
    assert!(off.is_some_and(|l| l.contains("node \"pve3\"") && l.contains("guest ")), "{lines:#?}");
    let power = json!({"node": "pve1", "command": "shutdown"});
    let lines = impact(&world, "pve_node_power", power).await;
    assert!(has(&lines, "2 of 3 nodes are online with 2 of 3 votes"), "{lines:#?}");
    assert!(has(&lines, "LOSES ITS QUORUM"), "{lines:#?}");
    assert!(has(&lines, "HA rule \"db-auf-pve1\""), "{lines:#?}");
    assert!(has(&lines, "replicated to it: 109-0"), "{lines:#?}");
}

#[tokio::test]
async fn linked_clones_are_named_before_their_template_goes() {
    let world = open().await;
    let clone = json!({"vmid": 900, "newid": 950, "full": false});
    done(&world, "pve_guest_clone", clone).await;
    let delete = json!({"vmid": 900, "expect_name": "tmpl-debian-13"});
    let lines = impact(&world, "pve_guest_delete", delete).await;
    assert!(has(&lines, "linked clones that cannot do without it: guests 950"), "{lines:#?}");
    let told = world.call("pve_impact", json!({"vmid": 900})).await.unwrap();
    assert!(told["depends_on_it"].to_string().contains("guests 950"), "{told}");
    let told = world.call("pve_impact", json!({"vmid": 950})).await.unwrap();
    assert!(told["depends_on_it"].to_string().contains("linked clone of guest 900"), "{told}");
}

#[tokio::test]
async fn pve_impact_names_no_hidden_guest() {
    let world = World::with(|config| {
        config.allowed_vmids = Some(proxmox_mcp::config::VmidSet::parse("100").unwrap());
        config.read_allowed_only = true;
    })
    .await;
    for object in [json!({"node": "pve1"}), json!({"storage": "nfs-images"}), json!({"vmid": 100})]
    {
        let told = world.call("pve_impact", object.clone()).await.unwrap();
        let told = told["depends_on_it"].to_string();
        assert!(told.contains("PROXMOX_READ_VMIDS hides are not counted"), "{told}");
        for hidden in world.sim.with_state(|s| s.guests.keys().copied().collect::<Vec<u32>>()) {
            let shown = told.split(|c: char| !c.is_ascii_digit()).any(|n| n == hidden.to_string());
            assert!(hidden == 100 || !shown, "{hidden} for {object}: {told}");
        }
    }
    let guest = json!({"path": "/nodes/pve1/qemu/102"});
    assert_eq!(world.call("pve_impact", guest).await.unwrap_err().code.as_str(), "vmid_denied");
    let alias = world.call("pve_firewall_aliases", json!({"name": "admin-netz"})).await.unwrap();
    assert!(alias["uses"]["missing"].to_string().contains("PROXMOX_READ_VMIDS hides"), "{alias}");
}

#[tokio::test]
async fn pve_impact_takes_the_path_of_any_object() {
    let world = open().await;
    for (path, words) in [
        ("/nodes/pve1/network/vmbr0", "have a NIC on it: "),
        ("/api2/json/cluster/firewall/aliases/admin-netz", "of group \\\"verwaltung\\\""),
        ("/pools/buero", "members: "),
        ("/cluster/sdn/zones/lan", "vnets in it: \\\"gaeste\\\""),
        ("/cluster/sdn", "staged: vnet \\\"labor\\\""),
        ("/nodes/pve1/network", "no change of the network is staged"),
        ("/cluster/ha/rules/db-auf-pve1", "vm:102"),
        ("/cluster/options", "nothing is known to hang on it"),
    ] {
        let told = world.call("pve_impact", json!({"path": path})).await;
        let told = told.unwrap_or_else(|e| panic!("{path}: {e}"))["depends_on_it"].to_string();
        assert!(told.contains(words), "{path}: {words} is not in {told}");
    }
    assert_eq!(world.sent(), Vec::<String>::new(), "it only reads");
    for (arguments, code) in [
        (json!({}), "invalid_argument"),
        (json!({"path": "/cluster/options", "vmid": 100}), "invalid_argument"),
        (json!({"path": "/cluster/../access"}), "path_refused"),
        (json!({"path": "/cluster/nothing"}), "not_found"),
        (json!({"path": "/version"}), "not_found"),
    ] {
        let error = world.call("pve_impact", arguments.clone()).await.unwrap_err();
        assert_eq!(error.code.as_str(), code, "{arguments}: {error}");
    }
}
