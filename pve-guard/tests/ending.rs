//! However a command ends, nothing of it stays that must not.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test code")]

mod support;

use std::process::Command;

use serde_json::json;
use support::{Node, alive, eventually, exec, token, with};

/// A tree that scatters: TERM and HUP are ignored, and children leave by a
/// double fork, by `setsid`, and with an environment of their own.
const SCATTER: &str = "
trap '' TERM HUP
t=$0
sh -c 'trap \"\" TERM; (exec sleep 1000) & exec sleep 1000' $t &
(setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' $t &)
(env -i setsid /bin/sh -c 'trap \"\" TERM; while :; do /bin/sleep 1; done' $t &)
(sh -c '(setsid sh -c \"trap : TERM; while :; do sleep 1; done\" '$t' &)')
echo ready
while :; do sleep 1; done
";

/// Whether this kernel gives audit sessions; without, what cleared its
/// environment is out of reach, and the answer says so.
fn has_sessions(done: &serde_json::Value) -> bool {
    done.get("notes").is_none()
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_it_started() {
    let node = Node::new();
    let token = token();
    let answer = node.ask(&with(exec(&["sh", "-c", SCATTER, &token]), "timeout_s", 1));
    assert_eq!(answer.status, 0);
    let done = answer.done();
    assert_eq!((&done["timed_out"], &done["cancelled"]), (&json!(true), &json!(false)));
    assert_eq!(done["signal"], 9);
    assert_eq!(answer.text("stdout"), "ready\n");
    // TERM first, KILL only after the grace.
    assert!(done["duration_ms"].as_u64().unwrap() >= 6000, "{done}");
    if has_sessions(&done) {
        assert_eq!(alive(&token), [0; 0]);
    }
    support::end(&token);
}

#[test]
fn term_comes_first_and_is_enough_for_the_willing() {
    let node = Node::new();
    let script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.1; done";
    let done = node.ask(&with(exec(&["sh", "-c", script]), "timeout_s", 1));
    assert_eq!(done.text("stdout"), "ready\nbye\n");
    let done = done.done();
    assert_eq!((&done["exit_code"], &done["timed_out"]), (&json!(3), &json!(true)));
    assert!(done["duration_ms"].as_u64().unwrap() < 5000, "{done}");
}

/// Ends a running scattered tree in one way; says how the guard answered.
fn ended_by(end: impl FnOnce(&mut support::Guard)) -> support::Answer {
    let node = Node::new();
    let token = token();
    let mut guard = node.start();
    guard.send(format!("{}\n", exec(&["sh", "-c", SCATTER, &token])));
    guard.line();
    end(&mut guard);
    let answer = guard.finish();
    let log = node.log();
    let last = log.last().unwrap();
    assert_eq!((&last["event"], &last["cancelled"]), (&json!("outcome"), &json!(true)));
    if std::fs::read_to_string("/proc/self/loginuid").is_ok() {
        assert_eq!(alive(&token), [0; 0]);
    }
    support::end(&token);
    answer
}

#[test]
fn cancel_ends_it() {
    let answer = ended_by(|guard| guard.send("{\"cancel\":true}\n"));
    assert_eq!(answer.done()["cancelled"], true);
}

#[test]
fn the_end_of_input_ends_it() {
    let answer = ended_by(support::Guard::close_input);
    assert_eq!(answer.done()["cancelled"], true);
}

#[test]
fn a_closed_pipe_ends_it_although_nothing_is_written() {
    ended_by(support::Guard::close_output);
}

#[test]
fn hang_up_and_term_end_it() {
    for signal in ["-HUP", "-TERM"] {
        let answer = ended_by(|guard| {
            let pid = guard.child.id().to_string();
            assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        });
        assert_eq!(answer.done()["cancelled"], true, "{signal}");
    }
}

#[test]
fn cancel_is_heard_behind_input_that_nobody_reads() {
    let node = Node::new();
    let mut guard = node.start();
    guard.send(format!(
        "{}\n",
        with(exec(&["sh", "-c", "echo here; exec sleep 1000"]), "stdin", true)
    ));
    guard.line();
    guard.send(format!("{{\"stdin\":\"{}\"}}\n", "QUFB".repeat(20_000)));
    guard.send("{\"cancel\":true}\n");
    assert_eq!(guard.finish().done()["cancelled"], true);
}

#[test]
fn a_client_that_has_gone_before_the_start_starts_nothing() {
    let node = Node::new();
    let mut guard = node.start();
    guard.send(format!("{}\n", exec(&["true"])));
    guard.close_input();
    let answer = guard.finish();
    // The end of input may be seen before or after the start.
    let done = answer.done();
    assert!(done["cancelled"] == true || done["exit_code"] == 0, "{done}");
}

#[test]
fn a_flood_of_output_is_ended_in_time() {
    let node = Node::new();
    let token = token();
    let request = exec(&["sh", "-c", "yes & yes", &token]);
    let answer = node.ask(&with(with(request, "timeout_s", 2), "max_output", 1000));
    let done = answer.done();
    assert_eq!((&done["truncated"], &done["timed_out"]), (&json!(true), &json!(true)));
    assert_eq!(answer.stream("stdout").len(), 1000);
    assert!(done["stdout_bytes"].as_u64().unwrap() > 1000);
    assert_eq!(alive(&token), [0; 0]);
}

#[test]
fn a_fork_bomb_that_is_not_frozen_is_ended_too() {
    let node = Node::new();
    let token = token();
    // Ten chains, each link of which leaves its parent and starts the next.
    let script = r#"export t="$0" b='setsid sh -c "sleep 0.02; eval \"\$b\"" "$t" &'
                    for n in 1 2 3 4 5 6 7 8 9 10; do eval "$b"; done; echo ready; exec sleep 1000"#;
    let mut guard = node.start();
    guard.send(format!("{}\n", exec(&["sh", "-c", script, &token])));
    guard.line();
    eventually("it multiplies", || alive(&token).len() >= 5);
    guard.send("{\"cancel\":true}\n");
    assert_eq!(guard.finish().done()["cancelled"], true);
    assert_eq!(alive(&token), [0; 0]);
}

#[test]
fn after_a_normal_end_the_background_stays_and_is_counted() {
    let node = Node::new();
    let token = token();
    let script = "(setsid sh -c 'while :; do sleep 1; done' $0 >&- 2>&- &) ; \
                  setsid sh -c 'while :; do sleep 1; done' $0 & echo done";
    let answer = node.ask(&exec(&["sh", "-c", script, &token]));
    let done = answer.done();
    // The end of the command is not the end of the pipe that one of them holds.
    assert_eq!((&done["exit_code"], &done["timed_out"]), (&json!(0), &json!(false)));
    assert_eq!(answer.text("stdout"), "done\n");
    // Two shells, each with a sleep or between two.
    let background = done["background"].as_u64().unwrap();
    assert!((2..=4).contains(&background), "{done}");
    eventually("both are at work", || alive(&token).len() == 2);
    support::end(&token);
}

#[test]
fn what_another_command_started_is_left_alone() {
    let node = Node::new();
    let (mine, other) = (token(), token());
    let mut first = node.start();
    first
        .send(format!("{}\n", exec(&["sh", "-c", "echo here; while :; do sleep 1; done", &other])));
    first.line();
    let request = exec(&["sh", "-c", "trap '' TERM; while :; do sleep 1; done", &mine]);
    assert_eq!(node.done(&with(request, "timeout_s", 1))["timed_out"], true);
    assert_eq!(alive(&mine), [0; 0]);
    assert_eq!(alive(&other).len(), 1);
    first.send("{\"cancel\":true}\n");
    first.finish();
    eventually("the other one has ended", || alive(&other).is_empty());
}
