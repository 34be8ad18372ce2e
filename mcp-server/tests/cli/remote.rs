//! Commands against the sample estate.

use serde_json::Value;

use crate::place::{Place, sim};

fn column(table: &Value, name: &str) -> Vec<Value> {
    let at = table["columns"].as_array().unwrap().iter().position(|c| c == name).unwrap();
    table["rows"].as_array().unwrap().iter().map(|row| row[at].clone()).collect()
}

#[test]
fn views_are_text_in_a_pipe_and_json_when_asked() {
    let place = Place::connected();
    for (view, word) in [
        ("status", "nodes"),
        ("attention", "critical"),
        ("guests", "vmid"),
        ("nodes", "pve1"),
        ("storage", "local-lvm"),
        ("backups", "volid"),
        ("tasks", "upid"),
        ("firewall", "rules of cluster"),
        ("services", "pveproxy"),
        ("updates", "package"),
        ("permissions", "privileges"),
    ] {
        let run = place.run(&[view]);
        assert!(run.code == 0 && run.stderr.is_empty(), "{view}: {run:?}");
        assert!(run.stdout.contains(word), "{view}: {}", run.stdout);
        assert!(!run.stdout.contains('\u{1b}'), "{view}: no colours in a pipe");
        let (code, value) = place.json(&[view]);
        assert!(code == 0 && value.is_object() && value.get("error").is_none(), "{view}: {value}");
    }
}

#[test]
fn views_take_the_arguments_of_their_tool() {
    let place = Place::connected();
    let (_, all) = place.json(&["guests"]);
    let (_, running) = place.json(&["guests", "--status", "running", "--limit", "3"]);
    assert_eq!(running["shown"], 3);
    assert!(running["total"].as_u64() < all["total"].as_u64());
    assert!(column(&running, "status").iter().all(|s| s == "running"));
    let (_, called) =
        place.json(&["call", "pve_list_vms", r#"{"status":"running","limit":9}"#, "--limit=3"]);
    assert_eq!(called, running);
    let run = place.run(&["guests", "--limit", "0"]);
    assert!(run.code == 2 && run.stderr.contains("limit"), "{run:?}");
}

#[test]
fn views_of_one_subject() {
    let place = Place::connected();
    let with_snapshots = sim().with_state(|state| {
        let found = state.guests.iter().find(|(_, guest)| !guest.snapshots.is_empty());
        *found.expect("a guest with snapshots").0
    });
    let (code, list) = place.json(&["snapshots", &with_snapshots.to_string()]);
    assert_eq!(code, 0, "{list}");
    assert!(list["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{list}");
    let run = place.run(&["snapshots", "99999"]);
    assert!(run.code == 1 && run.stderr.contains("not_found"), "{run:?}");

    let (_, all) = place.json(&["services"]);
    let (_, one) = place.json(&["services", "--node", "pve1"]);
    assert!(column(&one, "node").iter().all(|node| node == "pve1"), "{one}");
    assert!(one["shown"].as_u64() < all["shown"].as_u64(), "{one}");
    let (_, updates) = place.json(&["updates", "--node", "pve1"]);
    assert!(column(&updates, "node").iter().all(|node| node == "pve1"), "{updates}");

    let (code, rules) = place.json(&["firewall", "--vmid", &with_snapshots.to_string()]);
    assert_eq!(code, 0, "{rules}");
    let run = place.run(&["firewall", "--vmid", &with_snapshots.to_string(), "--node", "pve1"]);
    assert!(run.code == 2 && run.stderr.contains("only one of"), "{run:?}");

    let (code, may) = place.json(&["permissions", "--userid", "ghost@pve"]);
    assert!(code == 1 && may["error"]["code"] == "not_found", "{may}");
}

#[test]
fn one_task_by_its_upid() {
    let place = Place::connected();
    let (_, tasks) = place.json(&["tasks", "--limit", "50"]);
    let upids = column(&tasks, "upid");
    let results = column(&tasks, "status");
    let (mut well, mut failed) = (0, 0);
    for (upid, result) in upids.iter().zip(&results) {
        let upid = upid.as_str().unwrap();
        let (code, task) = place.json(&["task", upid]);
        if result == "OK" {
            assert_eq!((code, &task["ok"]), (0, &true.into()), "{task}");
            well += 1;
        } else if task["done"] == true && task["ok"] == false {
            assert_eq!(code, 1, "{task}");
            failed += 1;
        }
    }
    assert!(well > 0 && failed > 0, "{results:?}");
    let run = place.run(&["task", "UPID:nonsense"]);
    assert!(run.code == 2 && run.stderr.contains("UPID"), "{run:?}");
}

#[test]
fn fingerprint_is_the_line_for_env() {
    let host = sim().addr().to_string();
    let place = Place::empty();
    let run = place.run(&["fingerprint", &host]);
    assert_eq!(run.code, 0, "{run:?}");
    let line = format!("PROXMOX_TLS_FINGERPRINT={}", sim().fingerprint());
    assert_eq!(run.stdout.trim_end().lines().last(), Some(line.as_str()));
    let (code, value) = Place::connected().json(&["fingerprint"]);
    assert_eq!((code, &value["env"]), (0, &line.into()));
    assert_eq!(value["hosts"][0]["pinned"], true);
    // The token stays at home.
    assert!(run.stderr.is_empty());

    let other = ["AB"; 32].join(":");
    let place = Place::connected().env("PROXMOX_TLS_FINGERPRINT", &other);
    let run = place.run(&["fingerprint"]);
    assert!(run.code == 1 && run.stderr.starts_with("proxmox-mcp: tls_pin_mismatch"), "{run:?}");
    assert!(run.stdout.contains(&sim().fingerprint()));
    let run = place.run(&["guests"]);
    assert!(run.code == 1 && run.stderr.starts_with("proxmox-mcp: tls_pin_mismatch"), "{run:?}");

    let run = Place::empty().run(&["fingerprint"]);
    assert!(run.code == 1 && run.stderr.contains("PROXMOX_HOST is not set"), "{run:?}");
    let run = Place::empty().run(&["fingerprint", "127.0.0.1:1"]);
    assert!(run.code == 1 && run.stderr.contains("127.0.0.1:1"), "{run:?}");
}

#[test]
fn check_takes_every_step() {
    let (code, value) = Place::connected().json(&["check"]);
    assert_eq!((code, &value["ok"]), (0, &true.into()), "{value:#}");
    let steps: Vec<&str> =
        value["steps"].as_array().unwrap().iter().map(|s| s["step"].as_str().unwrap()).collect();
    for step in ["configuration", "connection", "token", "privileges", "nodes", "clock", "ssh"] {
        assert!(steps.contains(&step), "{step} in {steps:?}");
    }
    let text = Place::connected().run(&["check"]).stdout;
    assert!(text.lines().all(|l| l.starts_with("ok ")), "{text}");

    for (name, value, code) in [
        ("PROXMOX_TOKEN_SECRET", "00000000-0000-4000-8000-000000000000", "unauthorized"),
        ("PROXMOX_HOST", "127.0.0.1:1", "unreachable"),
    ] {
        let place = Place::connected().env(name, value);
        let (exit, answer) = place.json(&["check"]);
        assert_eq!((exit, &answer["ok"]), (1, &false.into()), "{answer:#}");
        let steps = answer["steps"].as_array().unwrap();
        let failed = steps.iter().find(|s| s["ok"] == false).unwrap();
        assert_eq!(failed["code"], code, "{failed}");
        assert!(!failed["hint"].as_str().unwrap().is_empty(), "{failed}");
        let text = place.run(&["check"]).stdout;
        assert!(text.contains("FAIL") && text.contains("-> "), "{text}");
    }
    let place = Place::connected().file("critical.env", "PROXMOX_ALLOW_CEHP=on\n");
    let (exit, answer) = place.json(&["check"]);
    assert_eq!(exit, 1);
    assert!(answer["steps"][0]["hint"].as_str().unwrap().contains("PROXMOX_ALLOW_CEPH"));
}

#[test]
fn errors_say_what_to_do_next() {
    let place = Place::connected();
    for (args, code, text) in [
        (&["call", "pve_guest_details", "--vmid", "4711"] as &[&str], 1, "not_found"),
        (&["call", "pve_guest_details", "--vmid", "12px"], 2, "vmid"),
        (&["call", "pve_guest_details"], 2, "vmid"),
    ] {
        let run = place.run(args);
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{args:?}: {run:?}");
        assert!(run.stderr.contains(text), "{args:?}: {run:?}");
    }
    let (code, value) = place.json(&["call", "pve_guest_details", "--vmid", "4711"]);
    assert_eq!((code, &value["error"]["code"]), (1, &"not_found".into()));
    assert!(!value["error"]["hint"].as_str().unwrap().is_empty());
}

#[test]
fn demo_is_a_tour_that_needs_nothing() {
    let run = Place::empty().run(&["demo"]);
    assert!(run.code == 0 && run.stderr.is_empty(), "{run:?}");
    for part in [
        "pve_overview",
        "pve_needs_attention",
        "pve_guest_details",
        "refused: flag_disabled",
        "status: dry_run",
        "> yes",
        "status: done",
        "serve --demo",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    let (code, value) = Place::empty().json(&["demo"]);
    assert_eq!((code, &value["refused"]["answer"]["error"]["code"]), (0, &"flag_disabled".into()));
    assert_eq!(value["dry_run"]["status"], "dry_run");
    assert_eq!(value["approved"]["status"], "done");
    assert_eq!(value["approved"]["after"]["status"], "running");
}

#[test]
fn serve_demo_speaks_the_protocol_and_nothing_else() {
    use std::io::Write;
    let mut child = Place::empty()
        .env("LOG_LEVEL", "trace")
        .command(&["serve", "--demo"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pve_list_nodes","arguments":{}}}"#,
    ] {
        writeln!(stdin, "{line}").unwrap();
    }
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let mut line = String::new();
        assert!(std::io::BufRead::read_line(&mut stdout, &mut line).unwrap() > 0, "{answers:?}");
        let value: Value = serde_json::from_str(&line).unwrap();
        if value.get("id").is_some() {
            answers.push(value);
        }
    }
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "proxmox-mcp");
    let nodes = &answers[1]["result"]["structuredContent"];
    assert_eq!(nodes["total"], 3, "{nodes}");
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!output.stderr.is_empty(), "logs go to standard error");
}
