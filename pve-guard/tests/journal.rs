//! Every request is on record, and what cannot be recorded is not done.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test code")]

mod support;

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use support::{Node, exec, verb, with};

#[test]
fn a_command_is_recorded_before_and_after() {
    let node = Node::new();
    let mut command = node.command();
    command.env("SUDO_USER", "proxmox-mcp");
    let mut guard = support::Guard::of(command.spawn().unwrap());
    guard.send(format!("{}\n", exec(&["sh", "-c", "exit 3", "x\ny"])));
    assert_eq!(guard.finish().status, 0);
    let log = node.log();
    assert_eq!(log.len(), 2);
    for record in &log {
        for (field, value) in [
            ("account", json!("proxmox-mcp")),
            ("address", json!("unknown")),
            ("id", json!("test")),
            ("verb", json!("pct-exec")),
            ("vmid", json!(200)),
            ("argv", json!(["sh", "-c", "exit 3", "x\ny"])),
        ] {
            assert_eq!(record[field], value, "{field}");
        }
    }
    assert_eq!((&log[0]["event"], &log[1]["event"]), (&json!("request"), &json!("outcome")));
    assert_eq!((&log[1]["outcome"], &log[1]["exit_code"]), (&json!("done"), &json!(3)));
    let journal = node.journaled(2);
    assert_eq!(journal.len(), 2);
    assert!(journal[0].contains("PVE_GUARD_VERB\n") && journal[0].contains("MESSAGE\n"));
    let file = std::fs::metadata(node.path("var/log/pve-guard/guard.log")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

#[test]
fn refused_requests_are_recorded_too() {
    let node = Node::new();
    for (bytes, code) in [
        ("nonsense\n".to_owned(), "bad_request"),
        (format!("{}\n", verb("shell")), "verb_denied"),
        (format!("{}\n", with(exec(&["true"]), "vmid", 666)), "vmid_denied"),
        (format!("{}\n", with(exec(&["true"]), "node", "pve2")), "wrong_node"),
    ] {
        let before = node.log().len();
        assert_eq!(node.send(bytes).refused(), code);
        let log = node.log();
        assert!(log.len() > before);
        let last = log.last().unwrap();
        assert_eq!((&last["outcome"], &last["code"]), (&json!("refused"), &json!(code)));
    }
    let refused = node.journaled(4);
    assert!(refused.iter().all(|record| record.contains("PRIORITY\n")));
}

#[test]
fn a_long_command_is_whole_in_the_file() {
    let node = Node::new();
    let long = "x".repeat(100_000);
    assert_eq!(node.ask(&exec(&["true", &long])).status, 0);
    assert_eq!(node.log()[0]["argv"][1], json!(long));
    assert!(node.journaled(1)[0].len() < 60_000);
}

#[test]
fn without_the_system_journal_nothing_is_changed() {
    let node = Node::new();
    node.close_journal();
    check_refusals(&node);
}

#[test]
fn without_the_own_file_nothing_is_changed() {
    let node = Node::new();
    // A folder in its place.
    std::fs::create_dir_all(node.path("var/log/pve-guard/guard.log")).unwrap();
    check_refusals(&node);
}

fn check_refusals(node: &Node) {
    let pin = with(verb("kernel-pin"), "version", "7.0.2-6-pve");
    let start = with(verb("upgrade-start"), "plan", "0".repeat(64));
    let refresh = with(verb("upgrade-simulate"), "refresh", true);
    for request in [exec(&["true"]), pin, verb("kernel-unpin"), start, refresh] {
        let answer = node.ask(&request);
        assert_eq!((answer.refused(), answer.status), ("journal_unavailable", 1), "{request}");
    }
    assert_eq!(node.runs(), 0);
    // What only reads is answered.
    assert_eq!(node.ask(&json!({ "v": 1, "id": "a", "verb": "hello" })).status, 0);
}
