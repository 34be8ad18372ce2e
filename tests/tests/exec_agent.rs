//! What is told of an agent that does not do what is asked of it, and of a
//! guest that goes away while it does.

use e2e::{Estate, Server};
use pve_sim::{Effect, Fault, state::guest::Agent};
use serde_json::{Value, json};

const VM: u32 = 100;

fn server(estate: &Estate, more: &[(&str, &str)]) -> Server {
    let always = [("PROXMOX_MODE", "write"), ("PROXMOX_EXEC", "enabled")];
    let variables = always.into_iter().chain(more.iter().copied());
    Server::open(estate.command().envs(variables).arg("serve"))
}

fn agent(estate: &Estate, change: impl FnOnce(&mut Agent)) {
    estate.sim().with_state(|state| {
        change(state.guests.get_mut(&VM).unwrap().agent.as_mut().unwrap());
    });
}

fn code(error: &Value) -> &str {
    error["code"].as_str().unwrap_or_default()
}

fn commands(estate: &Estate) -> usize {
    let is_start = |line: &&String| line.starts_with("POST") && line.contains("/agent/exec");
    estate.arrived().iter().filter(is_start).count()
}

/// How the estate is made to be, what is told, and what mends it.
type Trouble = (fn(&Estate), &'static str, &'static str);

/// F05, F12, F14: each state of a VM in which no command runs is told before
/// anybody is asked to approve, with what mends it, and nothing is sent.
#[test]
fn f05_f12_f14_why_no_command_runs_is_told() {
    let all: [Trouble; 5] = [
        (
            |e| e.sim().with_state(|s| s.guests.get_mut(&VM).unwrap().config.set("agent", "0")),
            "not enabled",
            "pve_guest_config_set",
        ),
        (
            |e| e.sim().with_state(|s| s.guests.get_mut(&VM).unwrap().stop()),
            "stopped",
            "pve_guest_start",
        ),
        (
            |e| e.sim().with_state(|s| s.guests.get_mut(&VM).unwrap().agent = None),
            "does not answer",
            "install and start qemu-guest-agent",
        ),
        (
            |e| agent(e, |a| a.off = vec!["guest-exec".into(), "guest-exec-status".into()]),
            "switched off",
            "/etc/sysconfig/qemu-ga",
        ),
        (|e| agent(e, |a| a.frozen = true), "frozen", "pve_vm_agent_command thaw"),
    ];
    for (break_it, why, mend) in all {
        let estate = Estate::sample();
        let mut server = server(&estate, &[("PROXMOX_ALLOW_EXEC_DELETE", "enabled")]);
        break_it(&estate);
        for (tool, arguments) in [
            ("pve_vm_exec", json!({"vmid": VM, "command": "rm /srv/x"})),
            ("pve_vm_exec", json!({"vmid": VM, "command": ["id"]})),
            ("pve_guest_file_write", json!({"vmid": VM, "path": "/srv/x", "content": "x"})),
            ("pve_guest_file_list", json!({"vmid": VM, "path": "/srv"})),
            ("pve_guest_service", json!({"vmid": VM, "service": "web", "action": "status"})),
        ] {
            let refused = server.refused(tool, arguments.clone());
            assert_eq!(code(&refused), "agent_unavailable", "{tool} {arguments}: {refused}");
            let text = refused.to_string();
            assert!(text.contains(why), "{why}: {text}");
            assert!(text.contains(mend), "{mend}: {text}");
        }
        assert_eq!(commands(&estate), 0, "{:?}", estate.arrived());
        // A command whose category is off hears of that, and not of the agent.
        let refused = server.refused("pve_vm_exec", json!({"vmid": VM, "command": "reboot"}));
        assert_eq!(code(&refused), "flag_disabled", "{refused}");
    }
}

/// F05, F06, F07, F12: what an agent cannot tell is named, and the rest is shown.
#[test]
fn f05_f06_f07_f12_the_rest_is_shown() {
    let estate = Estate::sample();
    let mut server = server(&estate, &[]);
    let mut told = || {
        let status = server.ok("pve_vm_agent_status", json!({"vmid": VM}));
        assert_eq!(status["name"], "web-01", "{status}");
        let details = server.ok("pve_guest_details", json!({"vmid": VM}));
        assert!(details.to_string().contains("web-01"));
        status
    };
    let status = told();
    assert_eq!((&status["answers"], status.get("unknown")), (&json!(true), None), "{status}");

    let broken = Effect::Error(500, "Agent error: failed to stat".to_owned());
    estate.sim().inject(Fault::new(broken).path("*/agent/get-fsinfo"));
    let status = told();
    assert!(
        status["unknown"]["filesystems"].as_str().unwrap().contains("failed to stat"),
        "{status}"
    );
    assert_eq!(status["hostname"], "web-01");
    assert!(status["os"].as_str().unwrap().contains("Debian"));

    agent(&estate, |a| a.off = vec!["guest-get-fsinfo".into()]);
    let status = told();
    assert_eq!(status["unknown"], json!({"filesystems": "not supported by this agent"}));
    assert_eq!(status["disabled_commands"], json!(["guest-get-fsinfo"]));

    agent(&estate, |a| (a.off, a.frozen) = (Vec::new(), true));
    let status = told();
    assert_eq!(status["frozen"], true, "{status}");
    assert!(status["note"].as_str().unwrap().contains("thaw"));
    agent(&estate, |a| a.frozen = false);

    type Change = fn(&mut pve_sim::state::guest::Guest);
    let states: [(Change, &str); 3] = [
        (|guest| guest.agent = None, "agent not running"),
        (|guest| guest.config.set("agent", "0"), "agent disabled"),
        (
            |guest| {
                guest.config.set("agent", "1");
                guest.stop();
            },
            "vm stopped",
        ),
    ];
    for (change, why) in states {
        estate.sim().with_state(|state| change(state.guests.get_mut(&VM).unwrap()));
        let status = told();
        assert_eq!(status["answers"], false);
        assert!(status["why"].as_str().unwrap().starts_with(why), "{why}: {status}");
    }
}

/// F12: a freeze by this server says that it lasts, until the thaw.
#[test]
fn f12_a_freeze_is_told_until_it_ends() {
    let estate = Estate::sample();
    let mut server = server(&estate, &[]);
    let mut send = |command: &str| {
        server.call("pve_vm_agent_command", json!({"vmid": VM, "command": command}))
    };
    let frozen = send("freeze");
    assert!(frozen["structuredContent"]["note"].as_str().unwrap().contains("thaw"), "{frozen}");
    assert_eq!(send("freeze-status")["structuredContent"]["result"], "frozen");
    send("thaw");
    assert_eq!(send("freeze-status")["structuredContent"]["result"], "thawed");
}

/// F23: a command that takes the guest down is no fault of the agent.
#[test]
fn f23_a_guest_that_goes_down_is_told() {
    for (command, category) in [(json!("poweroff"), true), (json!(["sleep", "20"]), false)] {
        let estate = Estate::sample();
        let flags = [("PROXMOX_ALLOW_EXEC_POWER", "enabled")];
        let mut server = server(&estate, &flags);
        let mut arguments = json!({"vmid": VM, "command": command, "timeout_s": 20});
        if category {
            let refused = server.refused("pve_vm_exec", arguments.clone());
            assert_eq!(refused["category"], "EXEC_POWER", "{refused}");
            arguments["confirm"] = command;
        }
        let id = server.send_call("pve_vm_exec", arguments);
        e2e::eventually("the command has begun", || commands(&estate) == 1);
        if !category {
            estate.sim().with_state(|state| state.guests.get_mut(&VM).unwrap().stop());
        }
        let ran = server.result(id)["structuredContent"].clone();
        assert_eq!(
            (&ran["guest_went_down"], &ran["exit_code"]),
            (&json!(true), &Value::Null),
            "{ran}"
        );
        assert!(ran["notes"].to_string().contains("guest went down"), "{ran}");
    }
}

/// An agent that falls silent or answers with a fault: what is known is told,
/// the command is sent once, and its number asks again.
#[test]
fn an_agent_that_falls_silent_is_asked_again() {
    let estate = Estate::sample();
    let mut server = server(&estate, &[]);
    let timeout =
        || Effect::Error(500, "VM 100 qga command 'guest-exec' failed - got timeout".to_owned());
    let exec = json!({"vmid": VM, "command": "echo hi"});

    // At the start: it may have been started.
    estate.sim().inject(Fault::new(timeout()).path("*/agent/exec").method("POST"));
    let refused = server.refused("pve_vm_exec", exec.clone());
    assert_eq!(code(&refused), "outcome_unknown", "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("before anything is repeated"), "{refused}");
    assert_eq!(commands(&estate), 1, "sent once");

    // While it runs: faults that pass are waited out.
    for effect in [timeout(), Effect::broken_pipe(), Effect::Html(502), Effect::CutBeforeBody] {
        estate.sim().inject(Fault::new(effect).path("*/agent/exec-status").times(2));
        let ran = server.ok("pve_vm_exec", exec.clone());
        assert_eq!((&ran["exit_code"], &ran["stdout"]), (&json!(0), &json!("hi\n")), "{ran}");
    }

    // Those that do not pass within the time leave the number to ask with.
    estate.sim().inject(Fault::new(timeout()).path("*/agent/exec-status").always());
    let before = commands(&estate);
    let mut short = exec.clone();
    short["timeout_s"] = 1.into();
    let refused = server.refused("pve_vm_exec", short);
    assert_eq!(code(&refused), "outcome_unknown", "{refused}");
    assert_eq!(commands(&estate), before + 1);
    let pid = refused["pid"].clone();
    assert!(pid.is_u64(), "{refused}");
    estate.sim().clear_faults();
    let ran = server.ok("pve_vm_exec", json!({"vmid": VM, "pid": pid}));
    assert_eq!(ran["stdout"], "hi\n", "{ran}");
    let refused = server.refused("pve_vm_exec", json!({"vmid": VM, "pid": 4242}));
    assert_eq!(code(&refused), "outcome_unknown", "{refused}");
}

/// F21: a lock is told with its kind, nothing unlocks by itself, and commands run under it.
#[test]
fn f21_a_lock_is_told_and_stays() {
    let estate = Estate::sample();
    let mut server = server(&estate, &[]);
    let lock = |state: &mut pve_sim::State| {
        state.guests.get_mut(&VM).unwrap().config.set("lock", "backup")
    };
    estate.sim().with_state(lock);
    let refused =
        server.refused("pve_guest_config_set", json!({"vmid": VM, "set": {"cores": "2"}}));
    assert_eq!(code(&refused), "locked", "{refused}");
    assert!(refused.to_string().contains("backup"), "{refused}");
    let ran = server.ok("pve_vm_exec", json!({"vmid": VM, "command": "echo hi"}));
    assert_eq!(ran["exit_code"], 0);
    let still =
        |state: &mut pve_sim::State| state.guests[&VM].config.get("lock").map(str::to_owned);
    assert_eq!(estate.sim().with_state(still).as_deref(), Some("backup"));
}
