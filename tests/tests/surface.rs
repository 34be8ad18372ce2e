//! What a client sees of the tools before it calls one: names, schemas, hints,
//! size. Checked on the wire, in both modes, because clients refuse a whole list
//! for one bad entry.

use e2e::{Estate, Server, listed, name};
use serde_json::{Value, json};

/// Bytes of `tools/list`: of the core tools, of all tools that read, and of all tools.
const CORE_LIMIT: usize = 18_000;
const READ_LIMIT: usize = 27_000;
const WRITE_LIMIT: usize = 80_000;
/// Bytes of the tool in the middle.
const MEDIAN_LIMIT: usize = 480;
/// Format names of JSON Schema 2020-12.
const FORMATS: &[&str] = &[
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];
/// What clients put before a tool's name.
const PREFIXES: &[&str] = &["mcp__proxmox__", "mcp__Proxmox_VE__", "mcp__plugin_proxmox_proxmox__"];

fn in_mode(mode: &str, check: impl Fn(&str, &[Value], &mut Server)) {
    let estate = Estate::sample();
    estate.configure(&[("PROXMOX_MODE", mode)]);
    let mut server = Server::open(estate.command().arg("serve"));
    let tools = listed(&mut server);
    check(mode, &tools, &mut server);
}

fn in_both_modes(check: impl Fn(&str, &[Value], &mut Server)) {
    in_mode("read-only", &check);
    in_mode("write", &check);
}

/// Calls `visit` for every object inside a value.
fn walk(value: &Value, visit: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            visit(map);
            map.values().for_each(|v| walk(v, visit));
        }
        Value::Array(items) => items.iter().for_each(|v| walk(v, visit)),
        _ => {}
    }
}

#[test]
fn names_fit_every_client() {
    in_both_modes(|mode, tools, _| {
        let mut names: Vec<&str> = tools.iter().map(name).collect();
        assert!(names.contains(&"pve_overview") && names.contains(&"pve_list_vms"), "{names:?}");
        for name in &names {
            for prefix in PREFIXES {
                let full = format!("{prefix}{name}");
                assert!(full.len() <= 64, "{full}");
                let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
                assert!(full.bytes().all(plain), "{full}");
            }
            assert!("proxmox".len() + name.len() <= 59, "{name} is too long for Cursor");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), tools.len(), "{mode}: a name stands twice");
    });
}

#[test]
fn schemas_are_what_every_client_takes() {
    in_both_modes(|_, tools, _| {
        for tool in tools {
            let what = name(tool);
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "{what}");
            assert_eq!(schema["additionalProperties"], false, "{what} is closed");
            for word in ["oneOf", "anyOf", "allOf", "not", "$ref", "$schema", "$defs"] {
                assert!(schema.get(word).is_none(), "{what} has {word} at the top");
            }
            assert!(!schema.to_string().contains("$ref"), "{what} has a reference");
            assert!(tool.get("outputSchema").is_none(), "{what} declares an output schema");
            walk(schema, &mut |map| {
                if let Some(format) = map.get("format").and_then(Value::as_str) {
                    assert!(FORMATS.contains(&format), "{what}: format {format}");
                }
                let typed = map.get("type").is_none_or(|t| t.is_string() || t.is_object());
                assert!(typed, "{what}: a list of types in {map:?}");
            });
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            for argument in required.iter().filter_map(Value::as_str) {
                assert!(schema["properties"][argument].is_object(), "{what}: {argument}");
            }
            assert!(tool["title"].as_str().is_some_and(|t| !t.is_empty()), "{what} has a title");
            let sentence = tool["description"].as_str().unwrap_or_default();
            assert!(sentence.ends_with('.') && sentence.len() <= 300, "{what}: {sentence}");
        }
    });
}

#[test]
fn hints_are_present_and_true() {
    in_mode("read-only", |_, tools, _| {
        for tool in tools {
            assert_eq!(tool["annotations"]["readOnlyHint"], true, "{}", name(tool));
            assert_ne!(tool["annotations"]["destructiveHint"], true, "{}", name(tool));
        }
    });
    in_mode("write", |_, tools, _| {
        let hint = |tool: &str, hint: &str| {
            let found = tools.iter().find(|t| name(t) == tool);
            found.unwrap_or_else(|| panic!("no {tool}"))["annotations"][hint].clone()
        };
        assert!(tools.iter().all(|t| t["annotations"]["readOnlyHint"].is_boolean()));
        for tool in tools.iter().filter(|t| t["annotations"]["readOnlyHint"] == json!(false)) {
            let destructive = &tool["annotations"]["destructiveHint"];
            assert!(destructive.is_boolean(), "{} leaves the hint to a default", name(tool));
        }
        assert_eq!(hint("pve_api_call", "readOnlyHint"), json!(false));
        assert_eq!(hint("pve_api_call", "destructiveHint"), json!(true));
        assert_eq!(hint("pve_list_vms", "readOnlyHint"), json!(true));
        for tool in tools.iter().map(name).filter(|n| {
            ["_delete", "_stop", "_reset", "_rollback", "_shutdown"].iter().any(|e| n.ends_with(e))
        }) {
            assert_eq!(hint(tool, "readOnlyHint"), json!(false), "{tool}");
            assert_eq!(hint(tool, "destructiveHint"), json!(true), "{tool}");
        }
    });
}

#[test]
fn the_list_is_short_and_always_the_same() {
    in_both_modes(|mode, tools, server| {
        let first = server.request("tools/list", json!({}))["result"].clone();
        let second = server.request("tools/list", json!({}))["result"].clone();
        assert_eq!(first.to_string(), second.to_string(), "the same bytes");
        assert!(first.get("nextCursor").is_none(), "one page");
        assert_eq!(first["tools"].as_array().map(Vec::len), Some(tools.len()));
        let size = first.to_string().len();
        let limit = if mode == "read-only" { READ_LIMIT } else { WRITE_LIMIT };
        assert!(size < limit, "{mode}: {size} bytes");
        let mut sizes: Vec<usize> = tools.iter().map(|tool| tool.to_string().len()).collect();
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2];
        assert!(median < MEDIAN_LIMIT, "{mode}: the tool in the middle has {median} bytes");
    });
}

#[test]
fn the_core_list_alone_is_shorter_still() {
    let estate = Estate::sample();
    estate.configure(&[("PROXMOX_TOOLSETS", "core")]);
    let mut server = Server::open(estate.command().arg("serve"));
    let list = server.request("tools/list", json!({}))["result"].clone();
    assert!(list["tools"].as_array().is_some_and(|tools| tools.len() > 30), "{list}");
    let size = list.to_string().len();
    assert!(size < CORE_LIMIT, "{size} bytes");
}

#[test]
fn arguments_are_taken_as_models_write_them() {
    let estate = Estate::sample();
    let vmid = estate.sim().with_state(|s| *s.guests.keys().next().expect("a guest"));
    let mut server = Server::open(estate.command().arg("serve"));
    for good in [json!(vmid), json!(vmid.to_string())] {
        let found = server.ok("pve_guest_details", json!({ "vmid": good }));
        assert!(found.to_string().contains(&vmid.to_string()), "{found}");
    }
    let signed = json!(f64::from(vmid) + 0.5);
    for bad in [
        json!("12px"),
        json!("1e2"),
        json!(""),
        json!("100.5"),
        json!(true),
        json!(-1),
        json!(0),
        json!("-100"),
        json!("0x64"),
        json!("١٠٠"),
        json!([vmid]),
        json!({ "vmid": vmid }),
        json!(4_294_967_297_u64),
        signed,
    ] {
        let error = server.refused("pve_guest_details", json!({ "vmid": bad }));
        assert_eq!(error["code"], "invalid_argument", "{bad}");
        assert!(error["message"].as_str().is_some_and(|m| m.contains("vmid")), "{bad}: {error}");
    }
    let missing = server.refused("pve_guest_details", json!({}));
    assert_eq!(missing["code"], "invalid_argument");
    assert!(missing["message"].as_str().is_some_and(|m| m.contains("vmid")), "{missing}");
    // Nothing and nothing in it are the same; null is absence.
    let none = server.request("tools/call", json!({ "name": "pve_list_vms" }));
    let empty = server.call("pve_list_vms", json!({}));
    let nulls = server.call("pve_list_vms", json!({ "name": null, "limit": null, "fields": null }));
    for result in [&none["result"], &empty, &nulls] {
        assert_ne!(result["isError"], json!(true), "{result}");
        let total = &result["structuredContent"]["total"];
        assert_eq!(total, &empty["structuredContent"]["total"], "{result}");
    }
}

#[test]
fn what_the_list_leaves_out_is_checked_all_the_same() {
    let estate = Estate::sample();
    estate.configure(&[("PROXMOX_MODE", "write")]);
    let mut server = Server::open(estate.command().arg("serve"));
    for (tool, arguments, named) in [
        ("pve_guest_start", json!({ "vmid": 99 }), "vmid"),
        ("pve_guest_start", json!({ "vmid": 1_000_000_000 }), "vmid"),
        ("pve_guest_start", json!({ "vmid": 100, "timeout_s": 0 }), "timeout_s"),
        ("pve_guest_start", json!({ "vmid": 100, "timeout_s": 86_401 }), "timeout_s"),
        ("pve_list_vms", json!({ "limit": 0 }), "limit"),
        ("pve_vm_create", json!({ "nics": [{ "bridg": "vmbr0" }] }), "did you mean `bridge`"),
        ("pve_vm_create", json!({ "nics": [{ "tag": 4095 }] }), "tag"),
        ("pve_vm_create", json!({ "nics": [{ "model": "ne2k" }] }), "rtl8139"),
        ("pve_vm_create", json!({ "cloudinit": { "usr": "a" } }), "did you mean `user`"),
        ("pve_vm_create", json!({ "cloudinit": { "addresses": [{ "gateway": "x" }] } }), "gateway"),
        ("pve_vm_create", json!({ "disks": [{ "sise": "8G" }] }), "did you mean `size`"),
    ] {
        let error = server.refused(tool, arguments.clone());
        assert_eq!(error["code"], "invalid_argument", "{tool} {arguments}: {error}");
        assert!(error.to_string().contains(named), "{tool} {arguments}: {error}");
    }
    assert!(estate.arrived().iter().all(|line| !line.starts_with("POST")), "nothing was sent");
}

#[test]
fn an_unknown_argument_is_an_error_that_names_the_nearest() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    let tools = listed(&mut server);
    for tool in &tools {
        let mut arguments = e2e::least(&estate, tool);
        arguments["no_such_argument"] = json!(1);
        let error = server.refused(name(tool), arguments);
        assert_eq!(error["code"], "invalid_argument", "{}", name(tool));
        assert!(error.to_string().contains("no_such_argument"), "{}: {error}", name(tool));
    }
    for (tool, typo, meant) in [
        ("pve_list_vms", json!({ "nam": "web" }), "name"),
        ("pve_list_vms", json!({ "Limit": 5 }), "limit"),
        ("pve_list_vms", json!({ "statuss": "running" }), "status"),
        ("pve_api_call", json!({ "method": "GET", "path": "/version", "dryrun": true }), "dry_run"),
    ] {
        let error = server.refused(tool, typo);
        assert!(error.to_string().contains(meant), "{tool}: {error}");
    }
    assert!(estate.arrived().iter().all(|line| !line.contains("/version")), "nothing was sent");
}
