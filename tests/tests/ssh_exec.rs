//! Commands through real sshd, sudo and the guard.
#![cfg(target_os = "linux")]

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use e2e::{
    desk::Desk,
    eventually,
    node::{Node, Sshd},
};
use proxmox_mcp::{
    Code, Result,
    node::{Event, Guard, GuardPermit, Io, MAX_LINKS},
    pve::NodeName,
};
use pve_guard::protocol::{ExecDone, PctExec, Verb};

struct Place {
    node: Node,
    sshd: Sshd,
    guard: Arc<Guard>,
    _desk: Desk,
}

impl Place {
    fn new() -> Option<Self> {
        let node = Node::start("pve1")?;
        let sshd = node.sshd(&["ed25519"], &[]);
        let desk = Desk::joined(&node, &sshd);
        let guard = Arc::new(Guard::new(&desk.config()));
        Some(Self { node, sshd, guard, _desk: desk })
    }

    fn logins(&self) -> usize {
        self.sshd.log().matches("Accepted publickey for proxmox-mcp").count()
    }

    /// Ends every connection as a network does that goes away.
    fn cut(&self) {
        self.node.sh("pkill -KILL -f '^sshd-session: proxmox-mcp|^sshd: proxmox-mcp' || true");
    }
}

/// What a command said, and how it ended.
#[derive(Debug, Default)]
struct Ran {
    done: ExecDone,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

fn sh(script: &str) -> PctExec {
    command(&["sh", "-c", script])
}

fn command(argv: &[&str]) -> PctExec {
    PctExec {
        vmid: 200,
        hostname: Some("web".into()),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        timeout_s: 60,
        max_output: 64 * 1024,
        stdin: false,
    }
}

fn permit(exec: PctExec) -> GuardPermit {
    GuardPermit::for_test(NodeName::parse("pve1").unwrap(), Verb::PctExec(exec)).unwrap()
}

async fn run(guard: &Guard, exec: PctExec) -> Result<Ran> {
    run_with(guard, exec, Io::default()).await
}

async fn run_with(guard: &Guard, exec: PctExec, io: Io<'_>) -> Result<Ran> {
    let heard = Mutex::new(Ran::default());
    let on_event = Box::new(|event: Event<'_>| {
        let mut heard = heard.lock().unwrap();
        match event {
            Event::Stdout(bytes) => heard.stdout.extend_from_slice(bytes),
            Event::Stderr(bytes) => heard.stderr.extend_from_slice(bytes),
            Event::Progress(_) => {}
        }
    });
    let io = Io { on_event: Some(on_event), ..io };
    let done = guard.pct_exec(permit(exec), io).await?;
    Ok(Ran { done, ..heard.into_inner().unwrap() })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_arrives_byte_for_byte() {
    let Some(place) = Place::new() else { return };
    let guard = &place.guard;

    let args = [
        "a b",
        "",
        "it's",
        "\"q\"",
        "$x",
        "ü✓",
        "-n",
        "--",
        "a;id",
        "$(touch /tmp/m)",
        "`id`",
        "a>b",
        "a|b",
        "*",
        "\\",
        "line\nfeed\ttab\r",
        "status\nid",
        "-rf",
        "\u{1}\u{7f}",
        "%s",
    ];
    let mut argv = vec!["printf", "[%s]"];
    argv.extend(args);
    let ran = run(guard, command(&argv)).await.unwrap();
    let wanted: String = args.iter().map(|arg| format!("[{arg}]")).collect();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), wanted);
    assert!(!place.node.path("/tmp/m").exists() && !place.node.path("/b").exists());

    // Nothing of the node or of the way there is in the environment.
    let ran = run(guard, command(&["env"])).await.unwrap();
    let env = String::from_utf8(ran.stdout).unwrap();
    for name in ["SSH_", "SUDO_", "PROXMOX_", "LOGNAME", "MAIL", "LD_"] {
        assert!(!env.lines().any(|line| line.starts_with(name)), "{env}");
    }

    // Input with every byte, more than any buffer holds, and both streams back.
    let input: Vec<u8> = (0..3 << 20).map(|i: u32| (i % 251) as u8).collect();
    let exec = PctExec { stdin: true, max_output: 16 << 20, ..sh("tee /dev/stderr") };
    let io = Io { stdin: Some(Box::pin(&input[..])), ..Io::default() };
    let ran = run_with(guard, exec, io).await.unwrap();
    assert_eq!(ran.done.exit_code, Some(0));
    assert!(ran.stdout == input && ran.stderr == input, "{:?}", ran.done);

    // Input that ends at once, and a command that does not want it.
    let empty = Io { stdin: Some(Box::pin(&b""[..])), ..Io::default() };
    let ran = run_with(guard, PctExec { stdin: true, ..command(&["cat"]) }, empty).await.unwrap();
    assert_eq!((ran.done.exit_code, ran.stdout.len()), (Some(0), 0));
    let unread = Io { stdin: Some(Box::pin(&input[..])), ..Io::default() };
    let ran = run_with(guard, PctExec { stdin: true, ..command(&["true"]) }, unread).await.unwrap();
    assert_eq!(ran.done.exit_code, Some(0));

    // Ten MiB.
    let exec =
        PctExec { max_output: 16 << 20, ..command(&["head", "-c", "10485760", "/dev/zero"]) };
    let ran = run(guard, exec).await.unwrap();
    assert_eq!((ran.stdout.len(), ran.done.truncated), (10 << 20, false));

    // How it ended is the command's own affair, and no error.
    for (script, code) in [("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137)] {
        let done = run(guard, sh(script)).await.unwrap().done;
        let code_or_signal = done.exit_code.or(done.signal.map(|signal| 128 + signal));
        assert_eq!(code_or_signal, Some(code), "{script}: {done:?}");
    }
    assert_eq!(place.logins(), 1, "one connection was enough");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_guard_refuses_is_said_with_its_code() {
    let Some(place) = Place::new() else { return };
    let guard = &place.guard;
    for (exec, code, word) in [
        (PctExec { vmid: 999, ..sh("true") }, "not_found", "999"),
        (PctExec { hostname: Some("db".into()), ..sh("true") }, "not_found", "db"),
        (PctExec { timeout_s: 999_999, ..sh("true") }, "limit", "timeout_s"),
        (command(&["/proc/self/exe"]), "argument", "/proc"),
    ] {
        let error = run(guard, exec).await.unwrap_err();
        assert_eq!(error.code, Code::GuardRefused, "{error}");
        assert_eq!(error.details["guard_code"], code, "{error}");
        assert!(error.message.contains(word), "{error}");
    }
    // What the guard would refuse as malformed does not leave this machine.
    let lines = place.node.journal().lines().count();
    for argv in [&[][..], &[""], &["-c"], &["a\0b"]] {
        let error = run(guard, command(argv)).await.unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{argv:?}: {error}");
    }
    for hostname in ["web\nid", ""] {
        let exec = PctExec { hostname: Some(hostname.into()), ..sh("true") };
        assert_eq!(run(guard, exec).await.unwrap_err().code, Code::InvalidArgument);
    }
    assert_eq!(place.node.journal().lines().count(), lines);
    // A verb that the shipped policy does not allow.
    let verb = Verb::KernelPin { version: "6.14.8-2-pve".into(), next_boot: false };
    let permit = GuardPermit::for_test(NodeName::parse("pve1").unwrap(), verb).unwrap();
    let id = permit.id().to_owned();
    let error = guard.kernel_change(permit).await.unwrap_err();
    assert_eq!(error.details["guard_code"], "verb_denied", "{error}");
    assert!(error.hint.contains("policy.toml"), "{error}");
    assert!(place.node.journal().contains(&id), "the node's journal has our name for it");
    assert!(place.node.journal().contains("127.0.0.1"), "and where it came from");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_when_it_should() {
    let Some(place) = Place::new() else { return };
    let guard = &place.guard;

    // Without end: cut, and ended when its time is over.
    let exec = PctExec { timeout_s: 1, ..command(&["yes", "marker-flood"]) };
    let ran = run(guard, exec).await.unwrap();
    assert!(ran.done.timed_out && ran.done.truncated, "{:?}", ran.done);
    assert_eq!(ran.stdout.len(), 64 * 1024);
    eventually("the flood is gone", || place.node.count("marker-flood") == 0);

    // Cancelled, once it has said that it runs.
    let io = Io::default();
    let cancel = io.cancel.clone();
    let io = Io {
        on_event: Some(Box::new(move |event| {
            if matches!(event, Event::Stdout(_)) {
                cancel.cancel();
            }
        })),
        ..io
    };
    let exec = sh("echo runs; exec sleep 614");
    let done = guard.pct_exec(permit(exec), io).await.unwrap();
    assert!(done.cancelled, "{done:?}");
    assert_eq!(place.node.count("sleep 614"), 0);

    // Cancelled while its input stands before it.
    let input = vec![b'x'; 8 << 20];
    let io = Io { stdin: Some(Box::pin(&input[..])), ..Io::default() };
    let cancel = io.cancel.clone();
    let exec = PctExec { stdin: true, ..sh("exec sleep 618") };
    let (done, ()) = tokio::join!(guard.pct_exec(permit(exec), io), async {
        while place.node.count("sleep 618") == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert!(done.unwrap().cancelled);
    assert_eq!(place.node.count("sleep 618"), 0);

    // Its caller goes away.
    let task = {
        let guard = guard.clone();
        tokio::spawn(async move { run(&guard, sh("exec sleep 615")).await.map(drop) })
    };
    eventually("the command runs", || place.node.count("sleep 615") > 0);
    task.abort();
    eventually("the command is gone", || place.node.count("sleep 615") == 0);
    let ran = run(guard, sh("echo well")).await.unwrap();
    assert_eq!(ran.stdout, b"well\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_told_and_made_again() {
    let Some(place) = Place::new() else { return };
    let guard = &place.guard;
    run(guard, sh("true")).await.unwrap();

    // While a command runs: its outcome is unknown, and it ends on the node.
    let task = {
        let guard = guard.clone();
        tokio::spawn(async move { run(&guard, sh("exec sleep 616")).await })
    };
    eventually("the command runs", || place.node.count("sleep 616") > 0);
    place.cut();
    let error = task.await.unwrap().unwrap_err();
    assert_eq!(error.code, Code::OutcomeUnknown, "{error}");
    assert!(error.hint.contains("200"), "{error}");
    eventually("the command is gone", || place.node.count("sleep 616") == 0);

    // While nothing runs: nobody hears of it.
    let ran = run(guard, sh("echo again")).await.unwrap();
    assert_eq!(ran.stdout, b"again\n");
    let before = place.logins();
    place.cut();
    let ran = run(guard, sh("echo again")).await.unwrap();
    assert_eq!((ran.stdout.as_slice(), place.logins()), (&b"again\n"[..], before + 1));

    // The guard itself is killed: no last line, so nothing is claimed.
    let task = {
        let guard = guard.clone();
        tokio::spawn(async move { run(&guard, sh("exec sleep 617")).await })
    };
    eventually("the command runs", || place.node.count("sleep 617") > 0);
    place.node.sh("pkill -KILL -x pve-guard");
    let error = task.await.unwrap().unwrap_err();
    assert_eq!(error.code, Code::OutcomeUnknown, "{error}");

    // The server is gone altogether: said, and surely nothing was sent.
    let Place { node, sshd, guard, .. } = place;
    drop(sshd);
    node.sh("pkill -KILL sshd || true");
    let error = run(&guard, sh("true")).await.unwrap_err();
    // A listener that was just killed may still take the connection before it is gone.
    let step = error.details["step"].as_str().unwrap_or_default().to_owned();
    assert_eq!(error.code, Code::SshFailed, "{error}");
    assert!(["reach", "key exchange"].contains(&step.as_str()), "{step}: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_at_once_share_a_few_connections() {
    let Some(place) = Place::new() else { return };
    let tasks: Vec<_> = (0..64)
        .map(|number| {
            let guard = place.guard.clone();
            tokio::spawn(async move {
                let script = format!("echo {number}; echo {number} >&2; exit {number}");
                run(&guard, sh(&script)).await
            })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        let ran = task.await.unwrap().unwrap();
        let line = format!("{number}\n").into_bytes();
        assert_eq!((&ran.stdout, &ran.stderr), (&line, &line));
        assert_eq!(ran.done.exit_code, i32::try_from(number).ok());
    }
    assert!((1..=MAX_LINKS).contains(&place.logins()), "{} connections", place.logins());
}

/// No time is asserted here, a busy machine would break it; the figures are for
/// the reader, and `scripts/bench` measures at rest.
#[tokio::test(flavor = "multi_thread")]
async fn a_warm_connection_is_faster_than_a_new_one() {
    let Some(place) = Place::new() else { return };
    let guard = &place.guard;
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let mut warm = Vec::new();
    run(guard, sh("true")).await.unwrap();
    for _ in 0..21 {
        let from = Instant::now();
        run(guard, command(&["true"])).await.unwrap();
        warm.push(from.elapsed());
    }
    let mut fresh = Vec::new();
    let config = place._desk.config();
    for _ in 0..7 {
        let from = Instant::now();
        Guard::new(&config).hello(None).await.unwrap();
        fresh.push(from.elapsed());
    }
    let (warm, fresh) = (median(warm), median(fresh));
    println!("a command on a warm connection: {warm:?}, a new connection and hello: {fresh:?}");
    assert_eq!(place.logins(), 1 + 7);
}
