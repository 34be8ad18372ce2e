//! The policy file: root's alone, understood wholly, and enforced.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test code")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use support::{Node, POLICY, exec, verb, with};

const FILE: &str = "etc/pve-guard/policy.toml";

fn refuses(node: &Node, what: &str) {
    for request in [json!({ "v": 1, "id": "a", "verb": "hello" }), exec(&["true"])] {
        let answer = node.ask(&request);
        assert_eq!((answer.refused(), answer.status), ("policy", 1), "{what}");
    }
    assert_eq!(node.runs(), 0, "{what}");
}

#[test]
fn a_file_that_others_could_have_written_permits_nothing() {
    let node = Node::new();
    let mode = |path: &str, mode| {
        fs::set_permissions(node.path(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    for bits in [0o666, 0o664, 0o646, 0o622] {
        mode(FILE, bits);
        refuses(&node, &format!("{bits:o}"));
    }
    mode(FILE, 0o644);
    mode("etc/pve-guard", 0o777);
    refuses(&node, "its directory");
    mode("etc/pve-guard", 0o755);
    assert_eq!(node.ask(&exec(&["true"])).status, 0);
}

#[test]
fn a_file_of_somebody_else_permits_nothing() {
    let node = Node::new();
    if std::os::unix::fs::chown(node.path(FILE), Some(65534), None).is_err() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    refuses(&node, "owner");
}

#[test]
fn a_file_that_is_none_permits_nothing() {
    let node = Node::new();
    fs::rename(node.path(FILE), node.path("elsewhere")).unwrap();
    refuses(&node, "missing");
    std::os::unix::fs::symlink(node.path("elsewhere"), node.path(FILE)).unwrap();
    refuses(&node, "a link");
    fs::remove_file(node.path(FILE)).unwrap();
    fs::create_dir(node.path(FILE)).unwrap();
    refuses(&node, "a folder");
}

#[test]
fn a_file_with_a_fault_permits_nothing() {
    let node = Node::new();
    for (what, text) in [
        ("empty", String::new()),
        ("not TOML", "verbs = [".into()),
        ("unknown key", format!("extra = 1\n{POLICY}")),
        ("unknown verb", POLICY.replace("\"hello\"", "\"shell\"")),
        ("wrong type", POLICY.replace("timeout_s = 100", "timeout_s = \"100\"")),
        ("key twice", POLICY.replace("timeout_s = 100", "timeout_s = 100\ntimeout_s = 9")),
        ("bad range", POLICY.replace("100-999", "999-100")),
        ("no containers", "verbs = [\"hello\"]\n".into()),
        ("too long", format!("{POLICY}#{}\n", "x".repeat(70_000))),
    ] {
        node.write(FILE, &text);
        refuses(&node, what);
    }
}

#[test]
fn verbs_that_are_not_allowed_are_denied() {
    let node = Node::new();
    node.write(FILE, include_str!("../../packaging/deb/policy.toml"));
    let denied = [
        with(verb("kernel-pin"), "version", "7.0.2-6-pve"),
        verb("kernel-unpin"),
        with(verb("upgrade-start"), "plan", "0".repeat(64)),
        with(verb("upgrade-simulate"), "refresh", true),
    ];
    for request in denied {
        let answer = node.ask(&request);
        assert_eq!((answer.refused(), answer.status), ("verb_denied", 1), "{request}");
        assert!(answer.hint().contains("/etc/pve-guard/policy.toml"));
    }
    assert_eq!(node.ask(&exec(&["true"])).status, 0, "the shipped policy allows commands");
    let verbs = node.done(&json!({ "v": 1, "id": "a", "verb": "hello" }))["verbs"].clone();
    assert_eq!(
        verbs,
        json!(["hello", "pct-exec", "upgrade-simulate", "upgrade-status", "kernel-list"])
    );
}

#[test]
fn check_says_what_it_means() {
    let node = Node::new();
    let check = || node.command().args(["policy", "check"]).output().unwrap();
    let output = check();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "kernel-pin        allowed",
        "containers        100-999",
        "never run         reboot, /usr/bin/forbidden",
    ] {
        assert!(text.contains(line), "{text}");
    }
    node.write(FILE, &POLICY.replace("\"hello\"", "\"helo\""));
    let output = check();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("helo") && text.contains("policy.toml"), "{text}");
}
