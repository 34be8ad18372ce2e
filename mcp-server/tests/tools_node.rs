//! Services, packages, repositories, settings, hardware and power against the simulated estate.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, dead_code)] // helpers of tests count as no tests

mod estate;

use estate::{Estate, cell};
use proxmox_mcp::config::Mode;
use pve_sim::{Effect, Fault};
use serde_json::{Value, json};

#[tokio::test]
async fn what_nodes_say_of_themselves() {
    let e = Estate::new().await;
    let services = e.ok("pve_list_services", json!({"node": "pve1"})).await;
    assert_eq!(cell(&services, "service", "pveproxy", "state"), "running");
    let updates = e.ok("pve_list_updates", json!({})).await;
    assert_eq!(cell(&updates, "package", "openssl", "security"), true);
    assert_eq!(cell(&updates, "package", "openssl", "node"), "pve3");
    assert_eq!((&updates["security"], &updates["new_kernel_on"]), (&json!(2), &json!(["pve3"])));
    assert_eq!(updates["rows"][0][5], true, "security first");
    let versions = e.ok("pve_package_versions", json!({"package": "kernel"})).await;
    assert!(versions["running"].to_string().contains("pve3"), "{versions}");
    assert!(
        versions["rows"]
            .as_array()
            .unwrap()
            .iter()
            .all(|r| r[0].as_str().unwrap().contains("kernel"))
    );
    let certificates = e.ok("pve_list_certificates", json!({})).await;
    assert_eq!(certificates["rows"][0][1], "pveproxy-ssl.pem", "what ends first stands first");
    let days = certificates["rows"][0][2].as_i64().unwrap();
    assert!((0..30).contains(&days), "{days}");
    let disks = e.ok("pve_list_disks", json!({"node": "pve3"})).await;
    assert_eq!(cell(&disks, "disk", "/dev/nvme0n1", "life_left_percent"), 9.0);
    let smart = e.ok("pve_list_disks", json!({"node": "pve3", "disk": "/dev/sda"})).await;
    assert_eq!(smart["health"], "PASSED");
    assert_eq!(smart["attributes"][0]["name"], "Reallocated_Sector_Ct", "{smart}");
    let nvme = e.ok("pve_list_disks", json!({"node": "pve1", "disk": "/dev/nvme0n1"})).await;
    assert_eq!((&nvme["type"], &nvme["attributes"]), (&json!("text"), &json!([])));
    assert!(nvme["text"].as_str().unwrap().contains("Percentage Used:"), "{nvme}");
    let hardware = e.ok("pve_list_hardware", json!({"node": "pve1"})).await;
    assert_eq!(cell(&hardware["pci"], "id", "0000:17:00.0", "iommu_group"), 41);
    assert_eq!(cell(&hardware["usb"], "id", "0557:2419", "manufacturer"), "ATEN");
    let settings = e.ok("pve_node_settings", json!({"node": "pve1"})).await;
    assert_eq!(settings["dns"]["servers"], json!(["10.20.10.53", "10.20.10.54"]));
    assert_eq!(settings["subscription"]["status"], "active");
    assert!(
        !settings.to_string().contains("pve2c-"),
        "the key of the subscription stays where it is"
    );
    assert!(settings["untrusted"].as_array().unwrap().contains(&json!("hosts")));
}

#[tokio::test]
async fn a_node_that_does_not_answer_is_missing_and_no_error() {
    let e = Estate::new().await;
    for tool in ["pve_list_services", "pve_list_updates", "pve_list_certificates", "pve_list_disks"]
    {
        e.sim.clear_faults();
        e.sim.inject(Fault::new(Effect::no_route()).method("GET").path("/nodes/pve3/").always());
        let answer = e.ok(tool, json!({})).await;
        assert_eq!(answer["partial"], true, "{tool}");
        assert!(answer["missing"][0].as_str().unwrap().starts_with("node pve3"), "{answer}");
        let (code, _) = e.refused(tool, json!({"node": "pve3"})).await;
        assert_eq!(code, "proxy_failed", "{tool}: the one that was asked for");
    }
}

#[tokio::test]
async fn a_full_host_name_is_answered_with_a_node_that_there_is() {
    let e = Estate::new().await;
    for (given, hint) in [
        ("pve1.example.com", "did you mean pve1?"),
        ("PVE2.lan.", "did you mean pve2?"),
        ("pve9.example.com", "nodes: pve1, pve2, pve3"),
        ("192.0.2.10", "nodes: pve1, pve2, pve3"),
        ("pve1/../x.y", "nodes: pve1, pve2, pve3"),
    ] {
        for tool in ["pve_list_services", "pve_node_status", "pve_node_power"] {
            let arguments = json!({"node": given, "command": "reboot"});
            let arguments =
                if tool == "pve_node_power" { arguments } else { json!({"node": given}) };
            let (code, error) = e.refused(tool, arguments).await;
            assert_eq!(code, "invalid_argument", "{tool} {given}: {error}");
            assert!(error.contains(&format!("\"hint\":\"{hint}")), "{tool} {given}: {error}");
        }
    }
    // Where the cluster cannot be asked, the form alone is told of.
    let e = Estate::new().await;
    e.sim.inject(Fault::new(Effect::unauthorized()).path("/nodes").always());
    let (_, error) = e.refused("pve_list_services", json!({"node": "pve9.example.com"})).await;
    assert!(error.contains("did you mean pve9?"), "{error}");
}

#[tokio::test]
async fn the_journal_by_unit_text_and_time() {
    let e = Estate::new().await;
    let all = e.ok("pve_node_journal", json!({"node": "pve1"})).await;
    assert_eq!((&all["found"], &all["shown"]), (&json!(8), &json!(8)), "{all}");
    assert!(all["untrusted"].as_array().unwrap().contains(&json!("lines")));
    let times: Vec<i64> =
        e.sim.with_state(|s| s.nodes["pve1"].journal.iter().map(|line| line.time).collect());
    let asked = async |filters: Value| {
        let mut arguments = filters;
        arguments["node"] = json!("pve1");
        e.ok("pve_node_journal", arguments).await
    };
    for (filters, found, last) in [
        (json!({"unit": "corosync"}), 2, "is up"),
        (json!({"unit": "corosync.service"}), 2, "is up"),
        (json!({"unit": "kernel"}), 1, "frozen"),
        (json!({"unit": "pve*"}), 0, ""),
        (json!({"contains": "IS DOWN"}), 1, "is down"),
        (json!({"unit": "corosync", "contains": "down"}), 1, "is down"),
        (json!({"priority": 3}), 1, "frozen"),
        (json!({"priority": 4}), 2, "frozen"),
        (json!({"priority": 4, "unit": "pvestatd"}), 1, "6.214"),
        (json!({"since": times[2].to_string()}), 6, "update finished"),
        (json!({"until": times[1].to_string()}), 2, "6.214"),
        (json!({"until": times[5].to_string(), "limit": 1}), 6, "jmueller"),
        (json!({"since": times[2].to_string(), "until": times[3].to_string()}), 2, "is up"),
        (json!({"since": times[0].to_string(), "unit": "pvestatd"}), 2, "update finished"),
        (json!({"limit": 1}), 1, "update finished"),
    ] {
        e.sim.clear_requests();
        let answer = asked(filters.clone()).await;
        let lines = answer["lines"].as_array().unwrap();
        let newest = lines.last().and_then(Value::as_str).unwrap_or_default();
        assert!(newest.contains(last), "{filters}: {answer}");
        if filters.get("limit").is_some() {
            assert_eq!(lines.len(), 1, "{filters}: {answer}");
        } else {
            assert_eq!(answer["found"], found, "{filters}: {answer}");
        }
        for seen in e.sim.requests().iter().filter(|seen| seen.target.contains("/journal")) {
            let both = seen.target.contains("lastentries")
                && (seen.target.contains("since") || seen.target.contains("until"));
            assert!(!both, "the newest lines and a range exclude each other: {}", seen.target);
        }
    }
    // Nodes before these parameters: the program is looked for here, a priority cannot be.
    let old = Estate::new().await;
    let gone = Effect::Status(404, "Not Found".to_owned());
    old.sim.inject(Fault::new(gone).path("/pve-docs").always());
    let corosync = old.ok("pve_node_journal", json!({"node": "pve1", "unit": "corosync"})).await;
    assert_eq!((&corosync["found"], &corosync["looked_at"]), (&json!(2), &json!(8)));
    old.refused("pve_node_journal", json!({"node": "pve1", "priority": 3})).await;
    for arguments in [
        json!({"node": "pve1", "since": "yesterday"}),
        json!({"node": "pve1", "since": "200", "until": "100"}),
        json!({"node": "pve1", "limit": 0}),
        json!({"node": "pve1", "priority": 8}),
    ] {
        assert_eq!(e.refused("pve_node_journal", arguments).await.0, "invalid_argument");
    }
}

#[tokio::test]
async fn services_are_controlled_by_their_names() {
    let e = Estate::new().await;
    let done = e
        .change(
            "pve_service_control",
            json!({"node": "pve1", "service": "cron.service", "action": "restart"}),
        )
        .await;
    assert_eq!((&done["status"], &done["task"]["ok"]), (&json!("done"), &json!(true)), "{done}");
    assert_eq!(e.sent(), [json!(["POST", "/nodes/pve1/services/cron/restart", {}])]);
    let stopped = e
        .change("pve_service_control", json!({"node": "pve1", "service": "cron", "action": "stop"}))
        .await;
    assert_eq!(
        (&stopped["before"]["state"], &stopped["after"]["state"]),
        (&json!("running"), &json!("dead"))
    );
    let again = e
        .ok("pve_service_control", json!({"node": "pve1", "service": "cron", "action": "stop"}))
        .await;
    assert_eq!(again["status"], "no_change");
    let list = e.ok("pve_list_services", json!({"node": "pve1"})).await;
    assert_eq!(list["rows"][0][1], "cron", "what is not well stands first: {list}");
    e.sent();
    for (arguments, code, words) in [
        (
            json!({"node": "pve1", "service": "pveprox", "action": "restart"}),
            "not_found",
            "did you mean pveproxy",
        ),
        (json!({"node": "pve1", "service": "cron", "action": "kill"}), "invalid_argument", "start"),
        (json!({"node": "pve1", "service": "../x", "action": "restart"}), "not_found", "there are"),
    ] {
        let (found, text) = e.refused("pve_service_control", arguments.clone()).await;
        assert_eq!(found, code, "{arguments}: {text}");
        assert!(text.contains(words), "{arguments}: {text}");
    }
    assert_eq!(e.sent(), Vec::<Value>::new());
}

#[tokio::test]
async fn package_lists_are_fetched_anew() {
    let e = Estate::new().await;
    let done = e.change("pve_apt_refresh", json!({"node": "pve3"})).await;
    assert_eq!(
        (&done["task"]["ok"], &done["after"]["updates"]),
        (&json!(true), &json!(6)),
        "{done}"
    );
    assert_eq!(e.sent(), [json!(["POST", "/nodes/pve3/apt/update", {}])]);
}

#[tokio::test]
async fn repositories_are_switched_with_the_digest_that_was_seen() {
    let e = Estate::new().await;
    let path = "/etc/apt/sources.list.d/pve-enterprise.sources";
    let list = e.ok("pve_apt_repositories", json!({"node": "pve1"})).await;
    assert_eq!(cell(&list, "path", path, "enabled"), true);
    assert_eq!(list["remarks"], json!([]), "{list}");
    let off = e
        .change(
            "pve_apt_repository_set",
            json!({"node": "pve1", "path": path, "index": 0, "enabled": false}),
        )
        .await;
    assert_eq!(
        (&off["before"]["enabled"], &off["after"]["enabled"]),
        (&json!(true), &json!(false)),
        "{off}"
    );
    let sent = e.sent();
    assert_eq!(
        sent[0],
        json!(["POST", "/nodes/pve1/apt/repositories",
        {"path": path, "index": "0", "enabled": "0", "digest": list["digest"]}])
    );
    let now = e.ok("pve_apt_repositories", json!({"node": "pve1"})).await;
    assert!(now["remarks"].to_string().contains("no Proxmox VE repository"), "{now}");
    let (code, _) = e
        .refused(
            "pve_apt_repository_set",
            json!({"node": "pve1", "handle": "no-subscription", "digest": list["digest"]}),
        )
        .await;
    assert_eq!(code, "digest_changed");
    let added = e
        .change("pve_apt_repository_set", json!({"node": "pve1", "handle": "no-subscription"}))
        .await;
    assert_eq!(
        (&added["before"]["state"], &added["after"]["state"]),
        (&json!("absent"), &json!("on")),
        "{added}"
    );
    for (arguments, code) in [
        (json!({"node": "pve1", "handle": "no-subscripton"}), "not_found"),
        (json!({"node": "pve1", "path": path}), "invalid_argument"),
        (json!({"node": "pve1", "path": path, "index": 9, "enabled": true}), "not_found"),
        (json!({"node": "pve1", "path": "/etc/shadow", "index": 0, "enabled": true}), "not_found"),
        (json!({"node": "pve1", "handle": "test", "path": path}), "invalid_argument"),
    ] {
        assert_eq!(
            e.refused("pve_apt_repository_set", arguments.clone()).await.0,
            code,
            "{arguments}"
        );
    }
    // A node without subscription is told what that means.
    e.sim.with_state(|state| {
        let node = state.nodes.get_mut("pve2").unwrap();
        node.subscription.insert("status".to_owned(), json!("notfound"));
    });
    let list = e.ok("pve_apt_repositories", json!({"node": "pve2"})).await;
    assert!(list["remarks"].to_string().contains("no active subscription"), "{list}");
}

#[tokio::test]
async fn dns_hosts_and_time_zone() {
    let e = Estate::new().await;
    let dns = e.change("pve_dns_set", json!({"node": "pve1", "servers": ["192.0.2.53"]})).await;
    assert_eq!(
        dns["after"],
        json!({"search": "blaufeld.example", "servers": ["192.0.2.53"]}),
        "{dns}"
    );
    assert_eq!(e.sent()[0][2], json!({"search": "blaufeld.example", "dns1": "192.0.2.53"}));
    e.change("pve_dns_set", json!({"node": "pve1", "search": "example.org"})).await;
    assert_eq!(
        e.sent()[0][2],
        json!({"search": "example.org", "dns1": "192.0.2.53"}),
        "servers stay"
    );
    let hosts = e.ok("pve_node_settings", json!({"node": "pve1"})).await;
    let text = hosts["hosts"].as_str().unwrap();
    let data = format!("{text}10.20.0.50 nas.blaufeld.example nas\n");
    let done = e
        .change(
            "pve_hosts_set",
            json!({"node": "pve1", "data": data, "digest": hosts["hosts_digest"]}),
        )
        .await;
    assert_eq!(
        done["changes"],
        json!({"removed": [], "added": ["10.20.0.50 nas.blaufeld.example nas"]})
    );
    assert_eq!(done.get("may_cut"), None);
    let stale =
        json!({"node": "pve1", "data": "127.0.0.1 localhost\n", "digest": hosts["hosts_digest"]});
    assert_eq!(e.refused("pve_hosts_set", stale).await.0, "digest_changed");
    let dry = e
        .ok(
            "pve_hosts_set",
            json!({"node": "pve1", "data": "127.0.0.1 localhost\n", "dry_run": true}),
        )
        .await;
    assert!(dry["may_cut"].to_string().contains("pve1"), "{dry}");
    e.sent();
    let zone =
        e.change("pve_time_zone_set", json!({"node": "pve1", "time_zone": "Europe/Berlin"})).await;
    assert_eq!(
        (&zone["before"]["timezone"], &zone["after"]["timezone"]),
        (&json!("UTC"), &json!("Europe/Berlin"))
    );
    assert_eq!(e.sent(), [json!(["PUT", "/nodes/pve1/time", {"timezone": "Europe/Berlin"}])]);
    for (tool, arguments) in [
        ("pve_dns_set", json!({"node": "pve1"})),
        ("pve_dns_set", json!({"node": "pve1", "servers": []})),
        ("pve_dns_set", json!({"node": "pve1", "servers": ["dns.example.org"]})),
        (
            "pve_dns_set",
            json!({"node": "pve1", "servers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}),
        ),
        ("pve_hosts_set", json!({"node": "pve1", "data": "localhost\n"})),
        ("pve_hosts_set", json!({"node": "pve1", "data": "10.0.0.1\n"})),
        ("pve_time_zone_set", json!({"node": "pve1", "time_zone": "../etc/passwd"})),
        ("pve_time_zone_set", json!({"node": "pve1", "time_zone": ""})),
    ] {
        assert_eq!(
            e.refused(tool, arguments.clone()).await.0,
            "invalid_argument",
            "{tool} {arguments}"
        );
    }
    assert_eq!(e.sent(), Vec::<Value>::new());
}

#[tokio::test]
async fn a_node_goes_down_only_after_it_is_said_what_goes_with_it() {
    let e = Estate::new().await;
    let dry =
        e.ok("pve_node_power", json!({"node": "pve1", "command": "reboot", "dry_run": true})).await;
    let flight = &dry["preflight"];
    assert_eq!(
        (&dry["status"], &dry["class"], &flight["connected_to_it"]),
        (&json!("dry_run"), &json!("CRITICAL"), &json!(true))
    );
    assert!(!flight["running_guests"].as_array().unwrap().is_empty(), "{flight}");
    assert_eq!(flight["quorum_after"]["quorate"], true);
    assert_eq!(e.sent(), Vec::<Value>::new());
    let (code, text) =
        e.refused("pve_node_power", json!({"node": "pve3", "command": "shutdown"})).await;
    assert_eq!(code, "confirm_required");
    assert!(text.contains("/nodes/pve3/status"), "{text}");
    let done = e
        .ok(
            "pve_node_power",
            json!({"node": "pve3", "command": "shutdown", "confirm": "/nodes/pve3/status"}),
        )
        .await;
    assert_eq!(done["status"], "done");
    assert_eq!(e.sent(), [json!(["POST", "/nodes/pve3/status", {"command": "shutdown"}])]);
    // One of three is off: the next one costs the quorum.
    let dry =
        e.ok("pve_node_power", json!({"node": "pve2", "command": "reboot", "dry_run": true})).await;
    assert_eq!(dry["preflight"]["quorum_after"]["quorate"], false, "{dry}");
    assert!(dry["preflight"]["warnings"].to_string().contains("quorum"));
    assert_eq!(
        e.refused(
            "pve_node_power",
            json!({"node": "pve3", "command": "reboot", "confirm": "/nodes/pve3/status"})
        )
        .await
        .0,
        "conflict"
    );
    let awake = e.change("pve_node_wake", json!({"node": "pve3"})).await;
    assert_eq!(awake["status"], "done");
    assert_eq!(e.sent(), [json!(["POST", "/nodes/pve3/wakeonlan", {}])]);
    assert_eq!(e.ok("pve_node_wake", json!({"node": "pve3"})).await["status"], "no_change");
    assert_eq!(e.refused("pve_node_wake", json!({"node": "pve1"})).await.0, "conflict");
}

#[tokio::test]
async fn without_write_mode_there_is_no_change() {
    let e = Estate::with(|config| config.mode = Mode::ReadOnly).await;
    for (tool, arguments) in [
        ("pve_node_power", json!({"node": "pve1", "command": "reboot"})),
        ("pve_network_apply", json!({"node": "pve1"})),
        ("pve_user_set", json!({"userid": "x@pve"})),
    ] {
        let (_, text) = e.refused(tool, arguments).await;
        assert!(text.contains("PROXMOX_MODE=write"), "{text}");
    }
    assert!(
        e.ok("pve_list_services", json!({"node": "pve1"})).await["total"].as_u64().unwrap() > 5
    );
}
