//! What is not a request is refused with a code, and nothing is run.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test code")]

mod support;

use serde_json::{Value, json};
use support::{Node, exec, verb, with};

/// A request of `hello` as text, to be spoilt.
const HELLO: &str = r#"{"v":1,"id":"a","verb":"hello"}"#;

#[test]
fn what_is_not_a_request_is_refused() {
    let node = Node::new();
    let exec_line = exec(&["true"]).to_string();
    let spoilt = |from: &str, to: &str| {
        assert!(exec_line.contains(from), "{from}");
        exec_line.replacen(from, to, 1)
    };
    let deep =
        format!(r#"{{"v":1,"id":"a","verb":"hello","x":{}1{}}}"#, "[".repeat(500), "]".repeat(500));
    let cases: Vec<(&str, String)> = vec![
        ("empty line", String::new()),
        ("not JSON", "hello".into()),
        ("an array", format!("[{HELLO}]")),
        ("a string", "\"hello\"".into()),
        ("trailing bytes", format!("{HELLO} x")),
        ("two objects in a line", format!("{HELLO}{HELLO}")),
        ("a comma at the end", r#"{"v":1,"id":"a","verb":"hello",}"#.into()),
        ("a comment", format!("{HELLO} // x")),
        ("too deep", deep),
        ("v missing", r#"{"id":"a","verb":"hello"}"#.into()),
        ("v a string", r#"{"v":"1","id":"a","verb":"hello"}"#.into()),
        ("v a fraction", r#"{"v":1.5,"id":"a","verb":"hello"}"#.into()),
        ("v null", r#"{"v":null,"id":"a","verb":"hello"}"#.into()),
        ("id missing", r#"{"v":1,"verb":"hello"}"#.into()),
        ("id empty", r#"{"v":1,"id":"","verb":"hello"}"#.into()),
        ("id a number", r#"{"v":1,"id":7,"verb":"hello"}"#.into()),
        ("id with a line feed", r#"{"v":1,"id":"a\nb","verb":"hello"}"#.into()),
        ("verb missing", r#"{"v":1,"id":"a"}"#.into()),
        ("verb with a line feed", r#"{"v":1,"id":"a","verb":"hello\nid"}"#.into()),
        ("verb with a NUL", r#"{"v":1,"id":"a","verb":"hello\u0000"}"#.into()),
        ("an unknown key", r#"{"v":1,"id":"a","verb":"hello","shell":true}"#.into()),
        ("a field of another verb", r#"{"v":1,"id":"a","verb":"hello","vmid":200}"#.into()),
        ("a key twice", r#"{"v":1,"v":1,"id":"a","verb":"hello"}"#.into()),
        (
            "a key twice, differently",
            r#"{"v":1,"id":"a","verb":"hello","verb":"kernel-list"}"#.into(),
        ),
        ("an escaped key twice", r#"{"v":1,"id":"a","verb":"hello","\u0076erb":"hello"}"#.into()),
        ("a key twice inside", r#"{"v":1,"id":"a","verb":"hello","x":{"y":1,"y":2}}"#.into()),
        ("node missing", spoilt(r#""node":"pve1","#, "")),
        ("node null", spoilt(r#""node":"pve1""#, r#""node":null"#)),
        ("vmid missing", spoilt(r#""vmid":200,"#, "")),
        ("vmid a string", spoilt(r#""vmid":200"#, r#""vmid":"200""#)),
        ("vmid a fraction", spoilt(r#""vmid":200"#, r#""vmid":200.0"#)),
        ("vmid an exponent", spoilt(r#""vmid":200"#, r#""vmid":2e2"#)),
        ("vmid a list", spoilt(r#""vmid":200"#, r#""vmid":[200]"#)),
        ("vmid beyond 64 bits", spoilt(r#""vmid":200"#, r#""vmid":99999999999999999999"#)),
        ("vmid twice", spoilt(r#""vmid":200"#, r#""vmid":200,"vmid":201"#)),
        ("argv a string", spoilt(r#"["true"]"#, r#""true""#)),
        ("argv of numbers", spoilt(r#"["true"]"#, "[1]")),
        ("argv with null", spoilt(r#"["true"]"#, r#"["true",null]"#)),
        ("argv nested", spoilt(r#"["true"]"#, r#"[["true"]]"#)),
        ("timeout negative", spoilt(r#""timeout_s":50"#, r#""timeout_s":-1"#)),
        ("timeout a string", spoilt(r#""timeout_s":50"#, r#""timeout_s":"50""#)),
        ("stdin a number", spoilt(r#""stdin":false"#, r#""stdin":0"#)),
        ("hostname with a line feed", spoilt(r#""argv""#, r#""hostname":"web\n","argv""#)),
        ("hostname a number", spoilt(r#""argv""#, r#""hostname":1,"argv""#)),
        ("unpaired surrogate", spoilt(r#"["true"]"#, r#"["\ud800"]"#)),
    ];
    for (what, line) in cases {
        let answer = node.send(format!("{line}\n"));
        assert_eq!((answer.refused(), answer.status), ("bad_request", 2), "{what}: {answer:?}");
        assert_eq!(answer.lines.len(), 1, "{what}");
    }
    assert_eq!(node.runs(), 0);
}

#[test]
fn bytes_that_are_not_utf8_are_refused() {
    let node = Node::new();
    for bytes in [&b"{\"v\":1,\"id\":\"\xff\",\"verb\":\"hello\"}\n"[..], b"\xff\xfe{\n", b"\x00\n"]
    {
        let answer = node.send(bytes);
        assert_eq!((answer.refused(), answer.status), ("bad_request", 2));
    }
}

#[test]
fn other_protocol_versions_are_told_apart() {
    let node = Node::new();
    for v in ["0", "2", "-1", "18446744073709551615"] {
        let answer = node.send(format!("{}\n", HELLO.replace(":1", &format!(":{v}"))));
        assert_eq!((answer.refused(), answer.status), ("protocol_unsupported", 2), "{v}");
    }
}

#[test]
fn one_request_a_process() {
    let node = Node::new();
    let exec = exec(&["true"]);
    for second in [
        format!("{HELLO}\n"),
        format!("{exec}\n"),
        "x\n".into(),
        "x".into(),
        "{\"stdin\":\"YQ==\"}\n".into(),
        "{\"stdin\":null}\n".into(),
        "{\"cancel\":false}\n".into(),
        "{\"cancel\":true,\"cancel\":true}\n".into(),
        "\n".into(),
    ] {
        for first in [HELLO.to_owned(), exec.to_string()] {
            let answer = node.send(format!("{first}\n{second}"));
            assert_eq!((answer.refused(), answer.status), ("bad_request", 2), "{second:?}");
        }
    }
    assert_eq!(node.runs(), 0);
}

#[test]
fn a_second_request_while_a_command_runs_ends_it() {
    let node = Node::new();
    let token = support::token();
    let mut guard = node.start();
    guard.send(format!("{}\n", exec(&["sh", "-c", "echo here; exec sleep 1000", &token])));
    guard.line();
    guard.send(format!("{HELLO}\n"));
    let answer = guard.finish();
    assert_eq!((answer.refused(), answer.status), ("bad_request", 2));
    assert!(answer.message().contains("has been ended"), "{answer:?}");
    assert_eq!(support::alive(&token), [0; 0]);
}

#[test]
fn lines_are_at_most_a_mebibyte() {
    let node = Node::new();
    let mut fits = HELLO.as_bytes().to_vec();
    fits.resize(1024 * 1024, b' ');
    fits.push(b'\n');
    assert_eq!(node.send(&fits).status, 0);
    fits.insert(0, b' ');
    let answer = node.send(&fits);
    assert_eq!((answer.refused(), answer.status), ("bad_request", 2));
    // Without an end it is refused as soon as it is too long.
    let answer = node.send(vec![b' '; 1024 * 1024 + 1]);
    assert_eq!(answer.refused(), "bad_request");
}

#[test]
fn without_a_request_there_is_a_usage_line_and_status_2() {
    let node = Node::new();
    let mut guard = node.start();
    guard.close_input();
    let answer = guard.finish();
    assert_eq!((answer.refused(), answer.status), ("bad_request", 2));
    assert!(answer.stderr.starts_with("usage: pve-guard"), "{answer:?}");
    assert_eq!(answer.stderr.lines().count(), 1);
}

#[test]
fn a_request_that_does_not_come_is_not_waited_for() {
    let node = Node::new();
    let mut guard = node.start();
    guard.send("{\"v\":1,");
    let answer = guard.finish();
    assert_eq!((answer.refused(), answer.status), ("bad_request", 2));
    assert!(answer.message().contains("10 s"), "{answer:?}");
}

#[test]
fn a_request_may_come_in_pieces_and_without_its_last_line_feed() {
    let node = Node::new();
    let mut guard = node.start();
    for byte in HELLO.as_bytes() {
        guard.send([*byte]);
    }
    guard.close_input();
    assert_eq!(guard.finish().status, 0);
}

#[test]
fn verbs_that_there_are_not_are_denied() {
    let node = Node::new();
    for name in ["shell", "pct-create", "HELLO", "hello ", "pct_exec", "execute", "--help"] {
        let answer = node.ask(&verb(name));
        assert_eq!((answer.refused(), answer.status), ("verb_denied", 1), "{name}");
    }
}

#[test]
fn another_node_is_refused_and_both_are_named() {
    let node = Node::new();
    for name in ["pve2", "PVE1", "pve1.example.test", "localhost", "pve1 "] {
        let answer = node.ask(&with(exec(&["true"]), "node", name));
        assert_eq!((answer.refused(), answer.status), ("wrong_node", 1), "{name}");
        assert!(answer.message().contains("pve1") && answer.message().contains(name));
    }
    assert_eq!(node.runs(), 0);
}

#[test]
fn hello_says_what_this_is() {
    let node = Node::new();
    let done = node.done(&json!({ "v": 1, "id": "a", "verb": "hello" }));
    let text = |field: &str| done[field].as_str().unwrap().to_owned();
    assert_eq!(text("version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(done["protocols"], json!([1]));
    assert_eq!(text("node"), "pve1");
    assert_eq!(text("pve_manager"), "9.2.11");
    assert_eq!(text("kernel"), "7.0.2-6-pve");
    assert_eq!(done["verbs"].as_array().unwrap().len(), 8);
    assert_eq!(done["test_programs"], Value::Bool(true), "a build for tests says so");
    let sum = |path: &str| {
        let output = std::process::Command::new("sha256sum").arg(path).output().unwrap();
        String::from_utf8(output.stdout).unwrap()[..64].to_owned()
    };
    assert_eq!(text("sha256"), sum(support::GUARD));
    assert_eq!(
        text("policy_sha256"),
        sum(node.path("etc/pve-guard/policy.toml").to_str().unwrap())
    );
}

#[test]
fn arguments_are_for_root_on_the_node() {
    let node = Node::new();
    let run = |args: &[&str], sudo: bool| {
        let mut command = node.command();
        command.args(args).stdin(std::process::Stdio::null());
        if sudo {
            command.env("SUDO_USER", "proxmox-mcp");
        }
        command.output().unwrap()
    };
    for args in [
        &["--extra"][..],
        &["policy"],
        &["policy", "check", "x"],
        &["--upgrade-unit"],
        &["--upgrade-unit", "x"],
        &[""],
    ] {
        for sudo in [false, true] {
            let output = run(args, sudo);
            assert_eq!(output.status.code(), Some(2), "{args:?}");
            assert!(output.stdout.is_empty(), "{args:?}");
            assert!(!output.stderr.is_empty(), "{args:?}");
        }
    }
    for args in [&["--version"][..], &["--help"], &["policy", "check"]] {
        assert_eq!(run(args, false).status.code(), Some(0), "{args:?}");
        assert_eq!(run(args, true).status.code(), Some(2), "{args:?}");
    }
}
