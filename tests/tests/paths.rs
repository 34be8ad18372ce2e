//! Hostile spellings in every text argument of every read tool: what left the
//! process is looked at, not what the server says about it.

use e2e::{Estate, Server, listed, name};
use serde_json::{Value, json};

/// Values that make another call of a path when they are put into it carelessly.
const HOSTILE: &[&str] = &[
    "..",
    ".",
    "../..",
    "../../../access/users#",
    "../../../access/users?x=",
    "../access/users?x=",
    "../access/users",
    "x/../../access/users?a=",
    "x/../../access/users",
    "%2e%2e",
    "%2E%2E/%2e%2e/access/users",
    "..%2f..%2faccess%2fusers",
    "%252e%252e%252faccess%252fusers",
    "..\\..\\access\\users",
    "/access/users",
    "//access/users",
    "pve1/../../access/users",
    "\u{ff0e}\u{ff0e}/access/users",
    "..;/access/users",
    "..\u{0}/access/users",
    "\r\nGET /api2/json/access/users HTTP/1.1\r\n\r\n",
    " ../access/users",
    "https://127.0.0.1:1/access/users",
    "access/users/../../access/users",
    "?",
    "#",
    "a?b=c",
    "",
];

/// The path of a request target, decoded once as Proxmox does it, in segments.
fn segments(target: &str) -> Vec<String> {
    let path = target.split('?').next().unwrap_or_default();
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|h| std::str::from_utf8(h).ok());
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).split('/').skip(1).map(str::to_owned).collect()
}

/// Fails when a request is none that a tool would make on purpose.
fn assert_harmless(estate: &Estate, what: &str) {
    for seen in estate.sim().requests() {
        let line = format!("{what} sent {} {}", seen.method, seen.target);
        assert_eq!(seen.method, "GET", "{line}");
        let parts = segments(&seen.target);
        assert!(parts.iter().all(|p| p != ".." && p != "." && !p.is_empty()), "{line}");
        assert!(!seen.target.contains('#'), "{line}");
        assert!(seen.target.matches('?').count() <= 1, "{line}");
        let control = |p: &String| p.chars().any(|c| c.is_control() || c == '\\');
        assert!(!parts.iter().any(control), "{line}");
        // A token may always read its own rights; others are read by the tools that are
        // about them, and by nothing else on the way.
        let rights = parts.iter().any(|p| p == "access");
        let about_rights =
            ["user", "token", "group", "role", "acl", "realm", "permission", "whoami", "classify"];
        let meant = about_rights
            .iter()
            .any(|word| what.split(' ').next().is_some_and(|t| t.contains(word)));
        assert!(!rights || meant || parts[2..] == ["access", "permissions"], "{line}");
    }
}

#[test]
fn no_argument_becomes_another_path() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    let mut tried = 0;
    for tool in listed(&mut server) {
        // Reads the access rules on purpose, and has no arguments.
        if ["pve_whoami", "pve_check_connection"].contains(&name(&tool)) {
            continue;
        }
        let properties = tool["inputSchema"]["properties"].as_object().cloned().unwrap_or_default();
        for (argument, schema) in properties {
            if schema["type"] != "string" && argument != "vmid" {
                continue;
            }
            // The path of an API tool is a path: its own table is below.
            if argument == "path" {
                continue;
            }
            for hostile in HOSTILE {
                estate.sim().clear_requests();
                let mut arguments = e2e::least(&estate, &tool);
                arguments[&argument] = json!(hostile);
                let what = format!("{} {argument}={hostile:?}", name(&tool));
                let result = server.call(name(&tool), arguments);
                assert!(!result.to_string().contains("panicked"), "{what}: {result}");
                assert_harmless(&estate, &what);
                tried += 1;
            }
        }
    }
    assert!(tried > 10 * HOSTILE.len(), "the tools have text arguments: {tried}");
}

#[test]
fn paths_that_are_none_are_refused_before_anything_is_sent() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    estate.sim().clear_requests();
    for path in [
        "/nodes/../access/users",
        "/nodes/pve1/../../access/users",
        "/nodes/./pve1",
        "/nodes//status",
        "/nodes/pve1/",
        "/",
        "",
        "/nodes/%2e%2e/access/users",
        "/nodes/pve1%2F..%2Faccess",
        "/nodes/pve1/%252e%252e/status",
        "/nodes/pve1/status?command=reboot",
        "/nodes/pve1/status#x",
        "/nodes/pve1%3Fx/status",
        "/nodes/pve1\\..\\access",
        "/nodes/pve1\u{0}/status",
        "/nodes/pve1\r\n/status",
        "/nodes/%00/status",
        "/nodes/%ff/status",
        "/nodes/%zz/status",
        "/nodes/%2",
        "/api2/extjs/nodes",
        "/api2/html/nodes",
        "/api2/json/api2/json/nodes",
        "/api2/jsonx/nodes",
        "https://192.0.2.1/nodes",
        "//192.0.2.1/nodes",
    ] {
        let error = server.refused("pve_api_call", json!({ "method": "GET", "path": path }));
        assert_eq!(error["code"], "path_refused", "{path:?}");
        let class = server.ok("pve_classify_operation", json!({ "method": "GET", "path": path }));
        assert_eq!(class["class"], Value::Null, "{path:?}: {class}");
        assert_eq!(class["allowed"], json!(false), "{path:?}: {class}");
        assert_eq!(class["refusal"]["code"], "path_refused", "{path:?}: {class}");
    }
    let long = format!("/nodes/{}", "a".repeat(1100));
    let error = server.refused("pve_api_call", json!({ "method": "GET", "path": long }));
    assert_eq!(error["code"], "path_refused");
    assert_eq!(estate.arrived(), Vec::<String>::new());

    // A look-alike is a name that no node has, not a way up.
    let alike = "/nodes/\u{2025}/status";
    server.call("pve_api_call", json!({ "method": "GET", "path": alike }));
    assert_harmless(&estate, alike);
}

#[test]
fn methods_that_are_none_are_refused() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    estate.sim().clear_requests();
    for method in [
        "HEAD",
        "OPTIONS",
        "PATCH",
        "TRACE",
        "CONNECT",
        " GET",
        "GET ",
        "GET\r\nX: y",
        "",
        "G\u{0}ET",
    ] {
        let error = server.refused("pve_api_call", json!({ "method": method, "path": "/version" }));
        let code = error["code"].as_str().unwrap_or_default();
        assert!(["invalid_argument", "endpoint_refused"].contains(&code), "{method:?}: {error}");
    }
    assert_eq!(estate.arrived(), Vec::<String>::new());
    server.ok("pve_api_call", json!({ "method": "get", "path": "/version" }));
    assert_eq!(estate.arrived(), ["GET /api2/json/version"]);
}

/// A path in another spelling is the same call: same canonical path, same class, same gate.
#[test]
fn a_spelling_changes_neither_class_nor_target() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    let (node, vmid) = estate.sim().with_state(|s| {
        let guest = s.guests.values().find(|g| g.kind == pve_sim::state::guest::Kind::Qemu);
        guest.map(|g| (g.node.clone(), g.vmid)).expect("a VM")
    });
    for (method, plain) in [
        ("GET", format!("/nodes/{node}/qemu/{vmid}/config")),
        ("PUT", format!("/nodes/{node}/qemu/{vmid}/config")),
        ("GET", format!("/nodes/{node}/qemu/{vmid}/agent/get-users")),
        ("GET", format!("/nodes/{node}/qemu/{vmid}/agent/file-read")),
        ("POST", format!("/nodes/{node}/status")),
        ("DELETE", format!("/nodes/{node}/qemu/{vmid}")),
    ] {
        let straight =
            server.ok("pve_classify_operation", json!({ "method": method, "path": plain }));
        assert_eq!(straight["path"], json!(plain));
        let first = plain.find('/').map_or(0, |i| i + 1);
        for spelling in [
            plain.replacen(&format!("{node}/"), &format!("{node}%2F"), 1),
            plain.replace('/', "%2f").replacen("%2f", "/", 1),
            format!("/{}", percent_all(&plain[first..])),
            format!("/api2/json{plain}"),
            plain[first..].to_owned(),
        ] {
            let other =
                server.ok("pve_classify_operation", json!({ "method": method, "path": spelling }));
            assert_eq!(other, straight, "{method} {spelling}");
        }
    }
    // And what is sent is the canonical path, whatever was written.
    let version = server.ok("pve_api_call", json!({ "method": "GET", "path": "/%76ersion" }));
    assert!(version["data"]["version"].is_string(), "{version}");
    estate.sim().clear_requests();
    server.ok(
        "pve_api_call",
        json!({ "method": "GET", "path": format!("nodes%2F{node}/qemu%2F{vmid}%2Fconfig") }),
    );
    let sent = estate.arrived();
    assert!(sent.contains(&format!("GET /api2/json/nodes/{node}/qemu/{vmid}/config")), "{sent:?}");
}

fn percent_all(text: &str) -> String {
    text.bytes().map(|b| if b == b'/' { "/".to_owned() } else { format!("%{b:02x}") }).collect()
}

/// Read-only means that whatever a tool is given, only GETs leave.
#[test]
fn read_only_mode_sends_no_change() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    let (node, vmid) = estate.sim().with_state(|s| {
        let guest = s.guests.values().next().expect("a guest");
        (guest.node.clone(), guest.vmid)
    });
    estate.sim().clear_requests();
    for (method, path) in [
        ("POST", format!("/nodes/{node}/qemu/{vmid}/status/start")),
        ("PUT", format!("/nodes/{node}/qemu/{vmid}/config")),
        ("DELETE", format!("/nodes/{node}/qemu/{vmid}")),
        ("POST", format!("/nodes/{node}/qemu/{vmid}/snapshot")),
        ("PUT", format!("/nodes/{node}/network")),
    ] {
        for extra in [json!({}), json!({ "dry_run": true }), json!({ "confirm": path })] {
            let mut arguments = json!({ "method": method, "path": path });
            for (key, value) in extra.as_object().into_iter().flatten() {
                arguments[key] = value.clone();
            }
            let error = server.refused("pve_api_call", arguments);
            assert_eq!(error["code"], "read_only", "{method} {path} {extra}");
        }
    }
    assert!(estate.sim().requests().iter().all(|seen| seen.method == "GET"));
}
