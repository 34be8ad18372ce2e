//! How the server ends, and what it does while a call takes long.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::{Estate, Server, built, initialize};
use pve_sim::{Effect, Fault};
use serde_json::json;

/// The design says two seconds; the rest is for a busy machine, and well under the
/// five seconds that the protocol library alone would take.
const TWO_SECONDS: Duration = Duration::from_secs(4);

/// A server with a call under way that Proxmox never answers, and the call's id.
fn stuck(estate: &Estate) -> (Server, u64) {
    estate
        .sim()
        .inject(Fault::new(Effect::NeverAnswer { apply: false }).path("/nodes/*/status").always());
    estate.configure(&[("PROXMOX_TIMEOUT", "300")]);
    let mut server = Server::open(estate.command().arg("serve"));
    let node = first_node(&mut server);
    let id = server.send_call("pve_node_status", json!({ "node": node }));
    e2e::eventually("the request arrives", || {
        estate.arrived().iter().any(|line| line.contains("/status"))
    });
    (server, id)
}

fn first_node(server: &mut Server) -> String {
    let nodes = server.ok("pve_list_nodes", json!({}));
    let at =
        nodes["columns"].as_array().and_then(|c| c.iter().position(|c| c == "node")).expect("node");
    nodes["rows"][0][at].as_str().expect("a name").to_owned()
}

#[cfg(unix)]
fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status().expect("kill");
    assert!(status.success());
}

#[test]
fn a_slow_call_holds_up_nothing() {
    let estate = Estate::sample();
    let (mut server, slow) = stuck(&estate);
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    for tool in ["pve_list_vms", "pve_list_storage"] {
        server.ok(tool, json!({}));
    }
    assert!(server.unasked().iter().all(|m| m["id"] != json!(slow)), "the slow one still runs");
}

#[test]
fn a_cancelled_call_is_not_answered() {
    let estate = Estate::sample();
    let (mut server, slow) = stuck(&estate);
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": slow, "reason": "no longer wanted" } }));
    server.ok("pve_list_vms", json!({}));
    let rest = server.finish();
    assert!(rest.iter().all(|m| m["id"] != json!(slow)), "answered: {rest:?}");
}

#[test]
fn it_ends_when_its_input_ends() {
    let estate = Estate::sample();
    let mut idle = Server::open(estate.command().arg("serve"));
    idle.close_stdin();
    assert!(idle.exit(TWO_SECONDS).success());

    let mut unopened = Server::start(estate.command().arg("serve"));
    unopened.close_stdin();
    assert!(unopened.exit(TWO_SECONDS).success());

    let (mut busy, _) = stuck(&estate);
    busy.close_stdin();
    assert!(busy.exit(TWO_SECONDS).success());

    let status = estate.command().arg("serve").stdin(Stdio::null()).stdout(Stdio::null()).status();
    assert!(status.expect("it starts").success(), "input from nowhere");

    // A last line without its line end is a message all the same, or an error; not a hang.
    let mut cut = Server::open(estate.command().arg("serve"));
    cut.send_raw(br#"{"jsonrpc":"2.0","id":99,"method":"ping"}"#);
    cut.finish();
}

/// A client that has asked for more than the pipe holds, reads nothing and goes away.
#[test]
fn it_ends_when_answers_cannot_be_written() {
    let estate = Estate::sample();
    let mut child = estate
        .command()
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize("2025-11-25") });
    writeln!(stdin, "{open}").expect("initialize");
    for id in 2..60 {
        let list = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
        writeln!(stdin, "{list}").expect("a request");
    }
    drop(stdin);
    e2e::eventually("it ends", || child.try_wait().expect("wait").is_some());
}

#[test]
fn what_was_asked_before_the_end_of_input_is_answered() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    let ids: Vec<u64> =
        (1..=5).map(|n| server.send_call("pve_list_vms", json!({ "limit": n }))).collect();
    let rest = server.finish();
    for id in ids {
        assert!(rest.iter().any(|m| m["id"] == json!(id)), "no answer to {id}: {rest:?}");
    }
}

#[test]
#[cfg(unix)]
fn signals_end_it_cleanly() {
    let estate = Estate::sample();
    for name in ["-TERM", "-INT"] {
        let mut idle = Server::open(estate.command().arg("serve"));
        signal(name, idle.pid());
        assert!(idle.exit(TWO_SECONDS).success(), "{name}");

        let (mut busy, _) = stuck(&estate);
        signal(name, busy.pid());
        assert!(busy.exit(TWO_SECONDS).success(), "{name} during a call");
    }
}

#[test]
fn it_ends_when_nobody_reads_its_output() {
    let estate = Estate::sample();
    let mut child = estate
        .command()
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("stdin");
    let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize("2025-11-25") });
    writeln!(stdin, "{open}").expect("the first line is taken");
    let mut ended = None;
    e2e::eventually("it ends", || {
        ended = child.try_wait().expect("wait");
        ended.is_some()
    });
    let output = child.wait_with_output().expect("stderr");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_ne!(output.status.code(), Some(101), "{stderr}");
}

/// A client that is killed closes nothing in an orderly way.
#[test]
#[cfg(target_os = "linux")]
fn it_does_not_outlive_a_killed_client() {
    use std::io::{BufRead, BufReader};

    let estate = Estate::sample();
    let environment: Vec<_> = estate
        .command()
        .get_envs()
        .filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned())))
        .collect();
    let mut client = Command::new("bash")
        .args(["-c", r#"coproc S { exec "$0" serve; }; echo "$S_PID"; read -r"#])
        .arg(built("proxmox-mcp"))
        .envs(environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash");
    let mut pid = String::new();
    BufReader::new(client.stdout.take().expect("stdout")).read_line(&mut pid).expect("a pid");
    let stat = format!("/proc/{}/stat", pid.trim());
    let lives = || std::fs::read_to_string(&stat).is_ok_and(|s| !s.contains(") Z "));
    assert!(lives(), "the server runs");
    client.kill().expect("SIGKILL");
    client.wait().expect("the client is gone");
    e2e::eventually("the server ends too", || !lives());
}

#[test]
fn a_bare_environment_is_enough() {
    let estate = Estate::sample();
    // Nothing but our own variable: no HOME, no PATH.
    let mut command = Command::new(built("proxmox-mcp"));
    command.env_clear().env("PROXMOX_MCP_CONFIG_DIR", estate.config_dir()).arg("serve");
    let mut server = Server::open(&mut command);
    server.ok("pve_list_vms", json!({}));
    server.finish();

    // And nothing at all: one line says what is missing, nobody panics.
    let output = Command::new(built("proxmox-mcp"))
        .env_clear()
        .arg("serve")
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(stderr.contains("HOME") || stderr.contains("PROXMOX_"), "names the variable: {stderr}");
    assert!(output.stdout.is_empty());
}
