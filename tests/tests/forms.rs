//! Forms in the eras where the server asks while the call waits (`elicitation/create`): only a
//! yes that a person gave, in time, to this call sends anything.

use e2e::{Estate, LEGACY, Server, eventually};
use pve_sim::Options;
use serde_json::{Value, json};

const TOOL: &str = "pve_guest_stop";

fn asking() -> (Estate, Server) {
    let estate = Estate::start(Options { task_pace: 0.0, ..Options::default() });
    estate.configure(&[
        ("PROXMOX_MODE", "write"),
        ("PROXMOX_APPROVAL", "human"),
        ("PROXMOX_APPROVAL_SCOPE", "write"),
    ]);
    let mut server = Server::start(estate.command().arg("serve"));
    let opened = server.request(
        "initialize",
        json!({
            "protocolVersion": LEGACY,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "e2e", "version": "1"},
        }),
    );
    assert!(opened["result"].is_object(), "{opened}");
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    (estate, server)
}

/// The next question of the server: its id and text.
fn question(server: &mut Server) -> (Value, String) {
    loop {
        let message = server.next().expect("a question");
        if message["method"] == "elicitation/create" {
            let text = message["params"]["message"].as_str().expect("a text").to_owned();
            return (message["id"].clone(), text);
        }
    }
}

fn changes(estate: &Estate) -> Vec<String> {
    let arrived = estate.arrived().into_iter().filter(|line| !line.starts_with("GET "));
    arrived.map(|line| line.replace("/api2/json", "")).collect()
}

fn reply(server: &mut Server, id: &Value, result: Value) {
    server.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

#[test]
fn a_yes_sends_exactly_once() {
    let (estate, mut server) = asking();
    let call = server.send_call(TOOL, json!({"vmid": 100}));
    let (id, text) = question(&mut server);
    assert!(text.contains("web-01") && text.contains("/nodes/pve1/qemu/100/status/stop"), "{text}");
    assert_eq!(changes(&estate), Vec::<String>::new(), "nothing before the answer");
    let yes = json!({"action": "accept", "content": {"approve": true}});
    reply(&mut server, &id, yes.clone());
    let done = server.result(call);
    assert_eq!(done["structuredContent"]["status"], "done", "{done}");
    // The same answer once more means nothing.
    reply(&mut server, &id, yes);
    server.ok("pve_list_vms", json!({}));
    assert_eq!(changes(&estate), ["POST /nodes/pve1/qemu/100/status/stop"]);
}

#[test]
fn whatever_is_no_yes_sends_nothing() {
    let (mut estate, mut server) = asking();
    let answers = [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept", "content": {"approve": false}}),
        json!({"action": "accept", "content": {"approve": "true"}}),
        json!({"action": "accept", "content": {"approve": 1}}),
        json!({"action": "accept", "content": {"Approve": true}}),
        json!({"action": "decline", "content": {"approve": true}}),
    ];
    for (count, answer) in answers.into_iter().enumerate() {
        if count % 5 == 0 {
            // No more forms come in a minute than a person can read.
            (estate, server) = asking();
        }
        let call = server.send_call(TOOL, json!({"vmid": 100}));
        let (id, _) = question(&mut server);
        reply(&mut server, &id, answer.clone());
        let refused = server.result(call);
        assert_eq!(refused["isError"], true, "{answer}: {refused}");
        let code = refused["structuredContent"]["error"]["code"].as_str().unwrap_or_default();
        assert!(["approval_declined", "approval_required"].contains(&code), "{answer}: {refused}");
        assert_eq!(changes(&estate), Vec::<String>::new(), "{answer}");
    }
}

#[test]
fn a_yes_that_comes_after_the_call_was_cancelled_sends_nothing() {
    let (estate, mut server) = asking();
    let call = server.send_call(TOOL, json!({"vmid": 100}));
    let (id, _) = question(&mut server);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": call, "reason": "no longer wanted"}}));
    reply(&mut server, &id, json!({"action": "accept", "content": {"approve": true}}));
    // A whole change that is asked for later has long gone out.
    let later = server.send_call(TOOL, json!({"vmid": 102}));
    let (id, _) = question(&mut server);
    reply(&mut server, &id, json!({"action": "accept", "content": {"approve": true}}));
    assert_eq!(server.result(later)["structuredContent"]["status"], "done");
    assert_eq!(changes(&estate), ["POST /nodes/pve1/qemu/102/status/stop"]);
    assert!(
        server.finish().iter().all(|m| m["id"] != json!(call)),
        "a cancelled call is not answered"
    );
}

#[test]
fn a_client_that_goes_away_while_asked_has_not_agreed() {
    let (estate, mut server) = asking();
    server.send_call(TOOL, json!({"vmid": 100}));
    question(&mut server);
    server.close_stdin();
    eventually("it ends", || server.exit(e2e::LIMIT).success());
    assert_eq!(changes(&estate), Vec::<String>::new());
}

#[test]
fn an_answer_to_one_question_is_none_to_another() {
    let (estate, mut server) = asking();
    let first = server.send_call(TOOL, json!({"vmid": 100}));
    let (one, text) = question(&mut server);
    assert!(text.contains("web-01"), "{text}");
    let second = server.send_call(TOOL, json!({"vmid": 102}));
    let (two, text) = question(&mut server);
    assert!(text.contains("db-01"), "{text}");
    assert_ne!(one, two);
    reply(
        &mut server,
        &json!("made-up"),
        json!({"action": "accept", "content": {"approve": true}}),
    );
    reply(&mut server, &two, json!({"action": "accept", "content": {"approve": true}}));
    assert_eq!(server.result(second)["structuredContent"]["status"], "done");
    reply(&mut server, &one, json!({"action": "decline"}));
    assert_eq!(server.result(first)["isError"], true);
    assert_eq!(changes(&estate), ["POST /nodes/pve1/qemu/102/status/stop"]);
}
