use serde_json::json;

use super::*;
use crate::config::VmidSet;
use crate::safety::{Nobody, facts::Table, testing::config as plain};

fn place(kind: GuestKind) -> Place {
    Place {
        node: NodeName::parse("pve1").unwrap(),
        kind,
        vmid: Vmid::new(101).unwrap(),
        name: "web".to_owned(),
    }
}

fn run(text: &str) -> Run {
    Run {
        program: Program::Text { text: text.to_owned(), shell: Shell::Sh },
        cwd: None,
        windows: false,
        stdin: None,
        timeout_s: 10,
        max_output: 1024,
    }
}

fn command(text: &str) -> Deed {
    Deed::Command { place: place(GuestKind::Lxc), run: run(text) }
}

fn write(path: &str) -> Deed {
    let file = NewFile {
        path: path.to_owned(),
        sha256: "0".repeat(64),
        bytes: 1,
        append: false,
        mode: None,
        owner: None,
        create_dirs: false,
        if_sha256: None,
    };
    Deed::FileWrite { place: place(GuestKind::Lxc), file }
}

fn judged(deed: &Deed, config: &Config) -> Judged {
    let table = Table::new().with(
        "/cluster/resources",
        json!([{"vmid": 101, "name": "web", "node": "pve1", "type": "lxc", "status": "running"}]),
    );
    let mut facts = Facts::default();
    futures::executor::block_on(facts.settle(&table, |facts| deed.judge(config, facts)))
}

fn open() -> Config {
    Config { mode: Mode::Write, exec: true, flags: crate::safety::Flags::default(), ..plain() }
}

fn code(deed: &Deed, config: &Config) -> Option<Code> {
    judged(deed, config).judgement.refusal.map(|e| e.code)
}

#[test]
fn commands_need_both_switches_and_the_lists() {
    let ls = command("ls");
    assert_eq!(code(&ls, &open()), None);
    assert_eq!(code(&ls, &Config { mode: Mode::ReadOnly, ..open() }), Some(Code::ReadOnly));
    assert_eq!(code(&ls, &Config { exec: false, ..open() }), Some(Code::FlagDisabled));
    let denied = Config { denied_vmids: VmidSet::parse("101").unwrap(), ..open() };
    let own = Config { self_vmids: VmidSet::parse("100-110").unwrap(), ..open() };
    let nodes = Config { allowed_nodes: Some(vec![NodeName::parse("pve2").unwrap()]), ..open() };
    for deed in [
        command("ls"),
        Deed::FileRead { place: place(GuestKind::Lxc), path: "/etc/hosts".to_owned() },
        Deed::FileList { place: place(GuestKind::Lxc), path: "/".to_owned() },
        write("/srv/x"),
        Deed::Service { place: place(GuestKind::Lxc), service: "x".to_owned(), action: "status" },
    ] {
        assert_eq!(code(&deed, &denied), Some(Code::VmidDenied), "{deed:?}");
        assert_eq!(code(&deed, &own), Some(Code::SelfLockout), "{deed:?}");
        assert_eq!(code(&deed, &nodes), Some(Code::NodeDenied), "{deed:?}");
    }
}

#[test]
fn what_is_flagged_needs_its_flag_and_its_own_text() {
    let deed = command("rm -rf /srv/x");
    let found = judged(&deed, &open());
    assert_eq!(found.judgement.class.class, Class::Critical);
    assert_eq!(found.confirm.as_deref(), Some("rm -rf /srv/x"));
    assert_eq!(found.judgement.refusal.map(|e| e.code), Some(Code::FlagDisabled));
    let argv = Deed::Command {
        place: place(GuestKind::Lxc),
        run: Run {
            program: Program::Argv(vec!["rm".into(), "-rf".into(), "/srv/ü".into()]),
            ..run("")
        },
    };
    assert_eq!(judged(&argv, &open()).confirm.as_deref(), Some("[\"rm\",\"-rf\",\"/srv/ü\"]"));
    assert_eq!(judged(&write("/etc/cron.d/x"), &open()).confirm.as_deref(), Some("/etc/cron.d/x"));
    assert_eq!(judged(&write("/srv/app/x"), &open()).judgement.class.class, Class::Write);
    let restart =
        Deed::Service { place: place(GuestKind::Qemu), service: "nginx".into(), action: "restart" };
    assert_eq!(judged(&restart, &open()).confirm.as_deref(), Some("restart nginx"));
    let node = NodeName::parse("pve1").unwrap();
    for (deed, confirm) in [
        (Deed::UpgradeStart { node: node.clone(), plan: "ab".into(), details: vec![] }, "ab"),
        (Deed::KernelPin { node: node.clone(), version: "6.8".into(), next_boot: false }, "6.8"),
        (Deed::KernelUnpin { node, next_boot: false }, "pve1"),
    ] {
        assert_eq!(judged(&deed, &open()).confirm.as_deref(), Some(confirm));
        assert_eq!(code(&deed, &open()), Some(Code::FlagDisabled), "{deed:?}");
    }
}

#[test]
fn secret_files_are_not_read() {
    for deed in [
        command("cat /etc/shadow"),
        Deed::FileRead { place: place(GuestKind::Lxc), path: "/etc/../etc//shadow".to_owned() },
        Deed::FileRead { place: place(GuestKind::Qemu), path: "/root/.ssh/id_ed25519".to_owned() },
    ] {
        assert_eq!(code(&deed, &open()), Some(Code::EndpointRefused), "{deed:?}");
    }
}

#[test]
fn a_leave_gives_out_nothing_else() {
    use pve_guard::protocol::{PctExec, Verb};
    let gate_says = |deed: Deed| {
        let dir = tempfile::tempdir().unwrap();
        let mut config = open();
        config.dirs.state = dir.path().to_owned();
        config.audit.path = dir.path().join("audit.jsonl");
        config.approval = crate::config::Approval::Confirm;
        let gate = crate::safety::Gate::new(&config);
        let caller = crate::safety::Caller::default();
        match futures::executor::block_on(gate.check(deed, &caller, &Nobody)).unwrap() {
            crate::safety::Outcome::Permit(leave) => *leave,
            other => panic!("{other:?}"),
        }
    };
    let exec = |vmid, argv: &[&str]| {
        Verb::PctExec(PctExec {
            vmid,
            hostname: None,
            argv: argv.iter().map(ToString::to_string).collect(),
            timeout_s: 10,
            max_output: 1024,
            stdin: false,
        })
    };
    let leave = gate_says(command("ls"));
    assert!(leave.guard(exec(101, &["/bin/sh", "-c", "ls"])).is_ok());
    for other in [
        exec(102, &["/bin/sh", "-c", "ls"]),
        exec(101, &["/bin/sh", "-c", "ls; id"]),
        Verb::KernelUnpin { next_boot: false },
    ] {
        assert!(leave.guard(other).is_err());
    }
    assert!(leave.agent_exec().is_err(), "a container has no agent");
    let limits = Limits { timeout_s: 10, max_output: 1024, stdin: false };
    assert!(leave.guard_step(&Step::State, limits).is_err());

    // Leave for a file or a service gives out its own fixed steps, and no command.
    let node = NodeName::parse("pve1").unwrap();
    let shell = exec(101, &["/bin/sh", "-c", "ls"]);
    let read = |kind, path: &str| Deed::FileRead { place: place(kind), path: path.to_owned() };
    let status =
        Deed::Service { place: place(GuestKind::Lxc), service: "nginx".into(), action: "status" };
    let read_step = Step::Read { path: "/srv/x", follow: false, offset: 0, count: 1 };
    for (deed, own) in [
        (read(GuestKind::Lxc, "/srv/x"), read_step),
        (write("/srv/x"), Step::Write { name: "ab12", pieces: false }),
        (status, Step::Service),
    ] {
        let leave = gate_says(deed);
        assert!(leave.guard_step(&own, limits).is_ok(), "{own:?}");
        assert!(leave.guard(shell.clone()).is_err(), "{own:?}");
        assert!(leave.agent_exec().is_err() && leave.agent_status(&node, 1).is_err(), "{own:?}");
        for other in [
            read_step,
            Step::List { path: "/srv", follow: false, mark: "x" },
            Step::Place { path: "/srv/x", follow: false, make: false },
            Step::Write { name: "ab12", pieces: false },
            Step::Write { name: "../etc", pieces: true },
            Step::Clear { name: "x; id" },
            Step::Service,
        ] {
            if std::mem::discriminant(&other) == std::mem::discriminant(&own) {
                continue;
            }
            assert!(leave.guard_step(&other, limits).is_err(), "{own:?}: {other:?}");
        }
    }
    assert!(gate_says(write("/srv/x")).guard_step(&Step::Clear { name: "x; id" }, limits).is_err());
    // What is read is what was judged, whatever the step says of the way there.
    let deed = read(GuestKind::Lxc, "/srv/x");
    let argv = Step::Read { path: "/etc/shadow", follow: true, offset: 0, count: 1 };
    assert_eq!(argv.argv(&deed, System::Container).unwrap()[5], "/srv/x");
    let leave = gate_says(read(GuestKind::Qemu, "/srv/x"));
    assert!(leave.agent_step(&read_step, false).is_ok() && leave.agent_read(0, 1).is_ok());
    assert!(leave.agent_piece("ab12", None, 0, b"x").is_err());
    assert!(leave.agent_exec().is_err());
}

/// A step reaches the agent without characters that stop it, whatever the file is called.
#[test]
fn names_of_any_kind_reach_the_agent() {
    let deed = Deed::FileRead { place: place(GuestKind::Qemu), path: "/srv/日 'x'".to_owned() };
    let step = Step::Read { path: "/srv/日 'x'", follow: false, offset: 0, count: 1 };
    let argv = step.argv(&deed, System::Vm).unwrap();
    assert!(argv.iter().all(|a| a.is_ascii()), "{argv:?}");
    assert!(step.argv(&deed, System::Container).unwrap().contains(&"/srv/日 'x'".to_owned()));
}

#[test]
fn the_form_shows_a_command_to_its_end() {
    let text = format!("echo {} \u{202e}x", "a".repeat(400));
    let deed = command(&text);
    let config = open();
    let lines = deed.lines(&Redactor::new(&config));
    assert!(lines[0].contains(&"a".repeat(400)) && lines[0].contains("\\u{202e}"), "{lines:?}");
}

#[test]
fn a_text_reaches_the_agent_without_characters_that_stop_it() {
    let argv = run("echo 日").argv(true).unwrap();
    assert!(argv.iter().all(|a| a.is_ascii()), "{argv:?}");
    assert_eq!(run("echo ü").argv(true).unwrap()[2], "echo ü");
    let bad = Run { program: Program::Argv(vec!["echo".into(), "日".into()]), ..run("") };
    assert!(bad.argv(true).is_err() && bad.argv(false).is_ok());
}
