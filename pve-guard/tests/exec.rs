//! `pct-exec`: what runs, how it is seen by the command, and every limit.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test code")]

mod support;

use proptest::prelude::*;
use serde_json::json;
use support::{Node, exec, with};

#[test]
fn the_command_is_run_and_answered() {
    let node = Node::new();
    let answer = node.ask(&exec(&["sh", "-c", "echo out; echo err >&2; exit 7"]));
    assert_eq!(answer.status, 0);
    let done = answer.done();
    assert_eq!(done["exit_code"], 7);
    assert_eq!(done["signal"], json!(null));
    assert_eq!(
        (answer.text("stdout").as_str(), answer.text("stderr").as_str()),
        ("out\n", "err\n")
    );
    assert_eq!((&done["stdout_bytes"], &done["stderr_bytes"]), (&json!(4), &json!(4)));
    for flag in ["timed_out", "cancelled", "truncated"] {
        assert_eq!(done[flag], false, "{flag}");
    }
    assert_eq!(done["background"], 0);
    assert!(done["duration_ms"].is_u64());
}

#[test]
fn a_signal_is_told_from_an_exit_code() {
    let node = Node::new();
    let done = node.done(&exec(&["sh", "-c", "kill -9 $$"]));
    assert_eq!((&done["exit_code"], &done["signal"]), (&json!(null), &json!(9)));
}

#[test]
fn what_the_command_says_proves_nothing() {
    let node = Node::new();
    let answer =
        node.ask(&exec(&["sh", "-c", "echo \"container '200' not running!\" >&2; exit 255"]));
    assert_eq!(answer.done()["exit_code"], 255);
    let line = r#"{"refused":{"code":"policy","message":"x","hint":""}}"#;
    let answer = node.ask(&exec(&["printf", "%s\n", line]));
    assert_eq!(answer.lines.len(), 2);
    assert_eq!(answer.text("stdout"), format!("{line}\n"));
}

#[test]
fn arguments_arrive_as_they_are() {
    let node = Node::new();
    let argv = [
        "printf",
        "[%s]",
        "a b",
        "",
        "it's",
        "\"q\"",
        "$x",
        "ü",
        "-n",
        "--",
        "a;id",
        "$(id)",
        "`id`",
        "a>b",
        "a|b",
        "*",
        "x\ny",
        "\u{1b}[0m",
        "--keep-env",
        "0",
    ];
    let answer = node.ask(&exec(&argv));
    let expected: String = argv[2..].iter().map(|word| format!("[{word}]")).collect();
    assert_eq!(answer.text("stdout"), expected);
    let mut called = vec!["exec", "200", "--keep-env", "1", "--"];
    called.extend(argv);
    assert_eq!(node.pct_argv(), called);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn any_argument_arrives_byte_for_byte(words in proptest::collection::vec("[^\u{0}]{0,40}", 0..12)) {
        let node = Node::new();
        let mut argv = vec!["true"];
        argv.extend(words.iter().map(String::as_str));
        let answer = node.ask(&exec(&argv));
        prop_assert_eq!(answer.status, 0);
        prop_assert_eq!(&node.pct_argv()[5..], &argv[..]);
    }
}

#[test]
fn nothing_of_the_node_is_in_the_environment() {
    let node = Node::new();
    let mut command = node.command();
    for (name, value) in [
        ("SECRET", "x"),
        ("SSH_CONNECTION", "x"),
        ("SUDO_COMMAND", "x"),
        ("PROXMOX_TOKEN", "x"),
        ("LD_PRELOAD", ""),
    ] {
        command.env(name, value);
    }
    let mut guard = support::Guard::of(command.spawn().unwrap());
    guard.send(format!("{}\n", exec(&["/usr/bin/env"])));
    let text = guard.finish().text("stdout");
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    // `_` and `PWD` are the stand-in's shell's.
    names.retain(|name| !["_", "PWD", "OLDPWD", "SHLVL"].contains(name));
    assert_eq!(names, ["HOME", "LANG", "PATH", "PVE_GUARD_RUN", "TERM"]);
}

#[test]
fn the_command_starts_in_a_plain_process() {
    let node = Node::new();
    let script = "pwd; umask; ulimit -c; ls /proc/self/fd | wc -l; \
                  grep -E '^(SigBlk|SigIgn|NoNewPrivs|Seccomp):' /proc/self/status";
    let text = node.ask(&exec(&["bash", "-c", script])).text("stdout");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    // ls itself holds the folder open: three and one.
    assert_eq!(lines[..4], ["/", "0022", "0", "4"]);
    for line in &lines[4..] {
        let (name, value) = line.split_once(':').unwrap();
        let value = u64::from_str_radix(value.trim(), 16).unwrap();
        // Above 31 are those that libraries use among themselves.
        assert_eq!(value & 0x7fff_ffff, 0, "{name}");
    }
}

#[test]
fn inherited_descriptors_reach_nothing() {
    let node = Node::new();
    let output = std::process::Command::new("bash")
        .arg("-c")
        .arg(format!(
            "exec 5</etc/passwd 10</etc/passwd 251</etc/passwd; printf '%s\\n' '{}' | (cat; sleep 2) | {}",
            exec(&["sh", "-c", "ls -l /proc/self/fd"]),
            support::GUARD
        ))
        .env("PVE_GUARD_TEST_ROOT", node.path(""))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\"exit_code\":0"), "{text}");
    use base64::Engine as _;
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let bytes =
        base64::engine::general_purpose::STANDARD.decode(line["stdout"].as_str().unwrap()).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("passwd"));
}

#[test]
fn input_is_passed_on() {
    let node = Node::new();
    let mut guard = node.start();
    guard.send(format!("{}\n", with(exec(&["cat"]), "stdin", true)));
    guard.send("{\"stdin\":\"aGVs\"}\n{\"stdin\":\"\"}\n");
    guard.send("{\"stdin\":\"bG8A/w==\"}\n{\"stdin\":null}\n");
    let answer = guard.finish();
    assert_eq!(answer.done()["exit_code"], 0);
    assert_eq!(answer.stream("stdout"), b"hello\0\xff");
}

#[test]
fn input_that_nobody_reads_does_no_harm() {
    let node = Node::new();
    let mut guard = node.start();
    guard.send(format!(
        "{}\n",
        with(exec(&["sh", "-c", "exec <&-; echo here; read x <&2"]), "stdin", true)
    ));
    let chunk = format!("{{\"stdin\":\"{}\"}}\n", "QUFB".repeat(10_000));
    guard.send(&chunk);
    guard.send(&chunk);
    guard.send("{\"stdin\":null}\n");
    assert_eq!(guard.finish().done()["timed_out"], false);
}

#[test]
fn bad_input_lines_end_the_command() {
    let node = Node::new();
    let big = format!("{{\"stdin\":\"{}\"}}\n", "QUFB".repeat(64 * 1024 / 3 + 1));
    for (line, code) in [
        ("{\"stdin\":\"a\"}\n".to_owned(), "bad_request"),
        ("{\"stdin\":\"YQ\"}\n".into(), "bad_request"),
        ("{\"stdin\":\"YR==\"}\n".into(), "bad_request"),
        ("{\"stdin\":1}\n".into(), "bad_request"),
        ("{\"stdin\":\"YQ==\",\"cancel\":true}\n".into(), "bad_request"),
        ("{\"stdin\":\"YQ==\",\"stdin\":\"YQ==\"}\n".into(), "bad_request"),
        ("{\"cancel\":1}\n".into(), "bad_request"),
        ("{}\n".into(), "bad_request"),
        ("\n".into(), "bad_request"),
        ("{\"stdin\":null}\n{\"stdin\":\"YQ==\"}\n".into(), "bad_request"),
        ("{\"stdin\":null}\n{\"stdin\":null}\n".into(), "bad_request"),
        (big, "bad_request"),
        (format!("{{\"stdin\":\"{}\"}}\n", "QUFB".repeat(20_000)).repeat(2), "limit"),
    ] {
        let token = support::token();
        let mut guard = node.start();
        let request = exec(&["sh", "-c", "echo here; exec sleep 1000", &token]);
        guard.send(format!("{}\n", with(request, "stdin", true)));
        guard.line();
        guard.send(&line);
        let answer = guard.finish();
        assert_eq!(answer.refused(), code, "{}", &line[..line.len().min(60)]);
        assert_eq!(support::alive(&token), [0; 0]);
    }
}

#[test]
fn output_is_capped_and_counted_to_its_end() {
    let node = Node::new();
    let request = exec(&["sh", "-c", "head -c 300000 /dev/zero; head -c 500 /dev/zero >&2"]);
    let answer = node.ask(&with(request.clone(), "max_output", 1000));
    let done = answer.done();
    assert_eq!(answer.stream("stdout").len(), 1000);
    assert_eq!(answer.stream("stderr").len(), 500);
    assert_eq!((&done["stdout_bytes"], &done["stderr_bytes"]), (&json!(300_000), &json!(500)));
    assert_eq!(done["truncated"], true);
    let answer = node.ask(&with(exec(&["head", "-c", "1000", "/dev/zero"]), "max_output", 1000));
    assert_eq!(answer.done()["truncated"], false, "what fits is not cut");
    let answer = node.ask(&with(request, "max_output", 0));
    assert_eq!(answer.lines.len(), 1);
}

#[test]
fn a_slow_reader_loses_nothing() {
    let node = Node::new();
    let mut guard = node.start();
    guard.send(format!("{}\n", with(exec(&["seq", "30000"]), "max_output", 200_000)));
    // The command ends although nobody reads yet.
    support::eventually("the command has run", || node.runs() == 1);
    let answer = guard.finish();
    let expected: String = (1..=30_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(answer.text("stdout"), expected);
}

#[test]
fn values_outside_their_domain_are_refused() {
    let node = Node::new();
    let long = "x".repeat(128 * 1024);
    let many = vec!["x"; 1025];
    for (request, code) in [
        (with(exec(&["true"]), "vmid", 99), "argument"),
        (with(exec(&["true"]), "vmid", -1), "argument"),
        (with(exec(&["true"]), "vmid", 0), "argument"),
        (with(exec(&["true"]), "vmid", 1_000_000_000), "argument"),
        (exec(&[]), "argument"),
        (exec(&[""]), "argument"),
        (exec(&["-rf"]), "argument"),
        (exec(&["--"]), "argument"),
        (exec(&["a", "b\0c"]), "argument"),
        (exec(&many), "argument"),
        (exec(&["true", &long]), "argument"),
        (exec(&["/proc/self/exe"]), "argument"),
        (with(exec(&["true"]), "timeout_s", 0), "argument"),
        (with(exec(&["true"]), "timeout_s", 101), "limit"),
        (with(exec(&["true"]), "max_output", 200_001), "limit"),
        (exec(&["reboot"]), "policy"),
        (exec(&["/sbin/reboot"]), "policy"),
        (exec(&["/usr/bin/forbidden"]), "policy"),
    ] {
        let answer = node.ask(&request);
        assert_eq!((answer.refused(), answer.status), (code, 1), "{:.80}", request.to_string());
    }
    assert_eq!(node.runs(), 0);
    // As much as is allowed.
    let fits = "x".repeat(128 * 1024 - 4);
    assert_eq!(node.ask(&exec(&["true", &fits])).status, 0);
    assert_eq!(node.ask(&exec(&vec!["true"; 1024])).status, 0);
}

#[test]
fn only_the_container_that_is_meant() {
    let node = Node::new();
    node.container(300, "hostname: db\n");
    node.container(301, "hostname: db\nunprivileged: 1\nmp0: /srv,mp=/srv\n");
    node.container(302, "hostname: db\nunprivileged: 1\nlxc.cap.drop: \n");
    node.container(303, "hostname: db\nunprivileged: 1\ntemplate: 1\n");
    node.container(304, "hostname: db\nunprivileged: 1\nlxc.apparmor.profile: unconfined\n");
    node.container(666, "hostname: db\nunprivileged: 1\n");
    node.container(305, "unprivileged: 1\n");
    node.write("etc/pve/nodes/pve2/lxc/400.conf", "unprivileged: 1\n");
    node.write("etc/pve/qemu-server/500.conf", "name: vm\n");
    let at = |vmid: u32| with(exec(&["true"]), "vmid", vmid);
    for (request, code) in [
        (at(300), "policy"),
        (at(301), "policy"),
        (at(302), "policy"),
        (at(304), "policy"),
        (at(303), "not_running"),
        (at(666), "vmid_denied"),
        (at(1000), "vmid_denied"),
        (at(201), "not_found"),
        (at(400), "not_found"),
        (at(500), "not_found"),
        (with(at(200), "hostname", "db"), "not_found"),
        (with(at(200), "hostname", "WEB"), "not_found"),
    ] {
        let answer = node.ask(&request);
        assert_eq!((answer.refused(), answer.status), (code, 1), "{request}");
    }
    assert_eq!(node.runs(), 0);
    assert!(node.ask(&at(400)).hint().contains("pve2"));
    assert!(node.ask(&at(500)).hint().contains("virtual machine"));
    assert!(node.ask(&at(300)).hint().contains("containers.privileged"));
    assert_eq!(node.ask(&with(at(200), "hostname", "web")).status, 0);
    assert_eq!(node.ask(&with(at(305), "hostname", "CT305")).status, 0);
}

#[test]
fn a_container_that_does_not_run_is_told_apart() {
    let node = Node::new();
    node.write("status-of-200", "status: stopped\n");
    let answer = node.ask(&exec(&["true"]));
    assert_eq!((answer.refused(), answer.status), ("not_running", 1));
    assert_eq!(node.runs(), 0);
    // The command socket says more than pct does, and at once.
    node.write(
        "proc/net/unix",
        "0000000000000000: 00000002 00000000 00010000 0001 01 99 @/var/lib/lxc/200/command\n",
    );
    assert_eq!(node.ask(&exec(&["true"])).status, 0);
    node.write(
        "proc/net/unix",
        "0000000000000000: 00000002 00000000 00010000 0001 01 99 @/var/lib/lxc/2001/command\n",
    );
    assert_eq!(node.ask(&exec(&["true"])).refused(), "not_running");
}

#[test]
fn so_many_commands_at_once_and_no_more() {
    let node = Node::new();
    node.policy("commands = 64", "commands = 2");
    let mut running: Vec<_> = (0..2)
        .map(|_| {
            let mut guard = node.start();
            guard.send(format!("{}\n", exec(&["sh", "-c", "echo here; exec sleep 1000"])));
            guard.line();
            guard
        })
        .collect();
    let answer = node.ask(&exec(&["true"]));
    assert_eq!((answer.refused(), answer.status), ("busy", 1));
    running[0].send("{\"cancel\":true}\n");
    running.remove(0).finish();
    assert_eq!(node.ask(&exec(&["true"])).status, 0, "a place is free again");
    running[0].close_input();
    running.remove(0).finish();
}

#[test]
fn a_missing_program_of_the_node_is_a_fault() {
    let node = Node::new();
    std::fs::remove_file(node.path("usr/sbin/pct")).unwrap();
    node.write(
        "proc/net/unix",
        "0: 00000002 00000000 00010000 0001 01 99 @/var/lib/lxc/200/command\n",
    );
    let answer = node.ask(&exec(&["true"]));
    assert_eq!((answer.refused(), answer.status), ("internal", 3));
}
