//! Forms in the 2026-07-28 era, where a form ends the call and the client repeats
//! it with the answer: what a call had made before its form is not made again.

use e2e::{Estate, LATEST, Server};
use pve_sim::Options;
use serde_json::{Value, json};

/// A server whose changes of this scope need a person.
fn asking(scope: &str) -> (Estate, Server) {
    let estate = Estate::start(Options { task_pace: 0.0, ..Options::default() });
    estate.configure(&[
        ("PROXMOX_MODE", "write"),
        ("PROXMOX_APPROVAL", "human"),
        ("PROXMOX_APPROVAL_SCOPE", scope),
    ]);
    let mut command = estate.command();
    command.arg("serve").env("PROXMOX_ALLOW_GUEST_CREDENTIALS", "enabled");
    let server = Server::start(&mut command);
    (estate, server)
}

/// One round of a call by a client that shows forms; with an answer when there is one.
fn round(server: &mut Server, tool: &str, arguments: &Value, answer: Option<Value>) -> Value {
    let mut params = json!({
        "name": tool,
        "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": LATEST,
            "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        },
    });
    if let Some(Value::Object(answer)) = answer {
        params.as_object_mut().expect("an object").extend(answer);
    }
    let answer = server.request("tools/call", params);
    answer.get("result").unwrap_or_else(|| panic!("{tool}: {answer}")).clone()
}

/// The form of a result that asks for one.
fn form(result: &Value) -> &str {
    assert_eq!(result["resultType"], json!("input_required"), "{result}");
    let form = &result["inputRequests"]["approval"]["params"]["message"];
    form.as_str().unwrap_or_else(|| panic!("no form: {result}"))
}

/// What the person says to the form of a result.
fn said(result: &Value, yes: bool) -> Value {
    json!({
        "requestState": result["requestState"],
        "inputResponses": {"approval": {"action": "accept", "content": {"approve": yes}}},
    })
}

/// The changes that reached Proxmox, in order.
fn changes(estate: &Estate) -> Vec<String> {
    let arrived = estate.arrived().into_iter().filter(|line| !line.starts_with("GET "));
    arrived.map(|line| line.replace("/api2/json", "")).collect()
}

/// The structured part of a call that was carried out.
fn done(result: &Value) -> &Value {
    let answer = &result["structuredContent"];
    assert_eq!(
        (&result["isError"], &answer["status"]),
        (&json!(false), &json!("done")),
        "{result}"
    );
    answer
}

fn steps(answer: &Value) -> Vec<&str> {
    let steps = answer["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    steps.iter().filter_map(|s| s["step"].as_str()).collect()
}

fn error(result: &Value) -> &Value {
    assert_eq!(result["isError"], json!(true), "{result}");
    &result["structuredContent"]["error"]
}

/// A clone whose login needs a person, once the clone is there.
fn with_login() -> Value {
    json!({
        "vmid": 900, "newid": 950, "name": "web-03", "start": true,
        "cloudinit": {"user": "kim"}, "confirm": "/nodes/pve1/qemu/950/config",
    })
}

const CLONE: &str = "POST /nodes/pve1/qemu/900/clone";
const CONFIGURE: &str = "POST /nodes/pve1/qemu/950/config";
const START: &str = "POST /nodes/pve1/qemu/950/status/start";

#[test]
fn a_clone_is_sent_once_whatever_form_comes_after_it() {
    let (estate, mut server) = asking("critical");
    let ask = with_login();
    let first = round(&mut server, "pve_guest_clone", &ask, None);
    assert!(form(&first).contains("950"), "{first}");
    assert_eq!(changes(&estate), [CLONE], "the clone needed nobody");

    // A round without an answer shows the form again, and makes nothing.
    let unanswered = json!({"requestState": first["requestState"]});
    let again = round(&mut server, "pve_guest_clone", &ask, Some(unanswered));
    assert_eq!(form(&again), form(&first));
    assert_eq!(changes(&estate), [CLONE]);

    let last = round(&mut server, "pve_guest_clone", &ask, Some(said(&again, true)));
    let answer = done(&last);
    assert_eq!(changes(&estate), [CLONE, CONFIGURE, START]);
    assert_eq!(steps(answer), ["clone", "configure", "start"], "{answer}");
    assert_eq!(
        (&answer["vmid"], &answer["after"]["status"], &answer["from"]["vmid"]),
        (&json!(950), &json!("running"), &json!(900)),
        "{answer}"
    );
    let path = &answer["request"]["path"];
    assert_eq!(path, "/nodes/pve1/qemu/900/clone", "the answer is that of the whole call");

    // The same answer a second time changes nothing.
    let replayed = round(&mut server, "pve_guest_clone", &ask, Some(said(&again, true)));
    assert_eq!(error(&replayed)["code"], json!("approval_expired"), "{replayed}");
    assert_eq!(changes(&estate).len(), 3);
}

#[test]
fn every_step_may_ask_and_none_is_made_twice() {
    let (estate, mut server) = asking("write");
    let ask = with_login();
    let mut result = round(&mut server, "pve_guest_clone", &ask, None);
    for (made, names) in
        [(&[][..], "clone"), (&[CLONE][..], "950"), (&[CLONE, CONFIGURE][..], "start")]
    {
        assert!(form(&result).contains(names), "{names}: {result}");
        assert_eq!(changes(&estate), made);
        result = round(&mut server, "pve_guest_clone", &ask, Some(said(&result, true)));
    }
    assert_eq!(steps(done(&result)), ["clone", "configure", "start"]);
    assert_eq!(changes(&estate), [CLONE, CONFIGURE, START]);
}

#[test]
fn a_no_leaves_the_guest_as_it_was_made() {
    let (estate, mut server) = asking("critical");
    let ask = with_login();
    let first = round(&mut server, "pve_guest_clone", &ask, None);
    let refused = round(&mut server, "pve_guest_clone", &ask, Some(said(&first, false)));
    let error = error(&refused);
    assert_eq!(error["code"], json!("approval_declined"), "{error}");
    assert_eq!((&error["step"], &error["vmid"]), (&json!("configure"), &json!(950)), "{error}");
    assert_eq!(error["after"]["status"], json!("stopped"), "{error}");
    assert_eq!(error["steps_done"][0]["step"], json!("clone"), "{error}");
    assert_eq!(changes(&estate), [CLONE]);
}

#[test]
fn what_was_altered_or_is_of_another_call_begins_nothing_anew() {
    let (estate, mut server) = asking("critical");
    let ask = with_login();
    let first = round(&mut server, "pve_guest_clone", &ask, None);
    let mut altered = said(&first, true);
    let state = altered["requestState"].as_str().expect("a state");
    let last = if state.ends_with('A') { "B" } else { "A" };
    altered["requestState"] = json!(format!("{}{last}", &state[..state.len() - 1]));
    let mut others = with_login();
    others["newid"] = json!(951);
    others["confirm"] = json!("/nodes/pve1/qemu/951/config");
    for (arguments, answer) in [
        (&ask, altered),
        (&others, said(&first, true)),
        (
            &ask,
            json!({"requestState": "made up", "inputResponses": said(&first, true)["inputResponses"]}),
        ),
        (&ask, json!({"requestState": "made up"})),
    ] {
        let refused = round(&mut server, "pve_guest_clone", arguments, Some(answer));
        assert_eq!(error(&refused)["code"], json!("approval_expired"), "{refused}");
        assert_eq!(changes(&estate), [CLONE], "{arguments}");
    }
}

#[test]
fn new_guests_are_made_once_too() {
    let (estate, mut server) = asking("write");
    let template = estate.sim().with_state(|s| {
        let template =
            s.volumes.iter().find(|v| v.content == "vztmpl" && v.storage == "nfs-images");
        template.expect("a template").volid()
    });
    for (tool, kind, ask) in [
        ("pve_vm_create", "qemu", json!({"node": "pve1", "vmid": 960, "start": true})),
        (
            "pve_ct_create",
            "lxc",
            json!({"node": "pve1", "vmid": 961, "template": template, "storage": "local-lvm", "start": true}),
        ),
    ] {
        estate.sim().clear_requests();
        let vmid = ask["vmid"].clone();
        let first = round(&mut server, tool, &ask, None);
        assert!(form(&first).contains(&vmid.to_string()), "{first}");
        assert_eq!(changes(&estate), [""; 0]);
        let second = round(&mut server, tool, &ask, Some(said(&first, true)));
        assert!(form(&second).contains("start"), "{second}");
        let last = round(&mut server, tool, &ask, Some(said(&second, true)));
        assert_eq!(done(&last)["after"]["status"], json!("running"), "{last}");
        let start = format!("POST /nodes/pve1/{kind}/{vmid}/status/start");
        assert_eq!(changes(&estate), [format!("POST /nodes/pve1/{kind}"), start]);
    }
}
