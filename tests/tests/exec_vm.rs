//! Commands, files and services in a VM by a real QEMU guest agent.
#![cfg(target_os = "linux")]

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use e2e::{Estate, Server, guest::Guest};
use pve_sim::{Effect, Fault};
use serde_json::{Value, json};

struct World {
    estate: Estate,
    guest: Guest,
}

impl World {
    fn new() -> Option<Self> {
        Self::with(&[])
    }

    fn with(options: &[&str]) -> Option<Self> {
        let guest = Guest::start(options)?;
        Some(Self { estate: guest.estate(), guest })
    }

    fn server(&self, more: &[(&str, &str)]) -> Server {
        server(&self.estate, more)
    }
}

fn server(estate: &Estate, more: &[(&str, &str)]) -> Server {
    let always = [("PROXMOX_MODE", "write"), ("PROXMOX_EXEC", "enabled")];
    let variables = always.into_iter().chain(more.iter().copied());
    Server::open(estate.command().envs(variables).arg("serve"))
}

fn code(error: &Value) -> &str {
    error["code"].as_str().unwrap_or_default()
}

/// Bytes of every value, and no repetition within a piece.
fn bytes(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    };
    (0..count).map(|_| next()).collect()
}

fn run_log(server: &mut Server) -> String {
    server.ok("pve_audit_log", json!({"tool": "pve_vm_exec"})).to_string()
}

/// F08, F10, F17: exit code, signal and both streams; no shell unless asked for.
#[test]
fn f08_f10_a_command_tells_how_it_ended() {
    let Some(world) = World::new() else { return };
    let mut server = world.server(&[]);
    let mut run = |arguments: Value| {
        let mut all = json!({"vmid": 100});
        all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        server.ok("pve_vm_exec", all)
    };
    let ran = run(json!({"command": "echo out; echo err >&2; exit 7", "cwd": "/usr"}));
    for (field, want) in [
        ("exit_code", json!(7)),
        ("signal", Value::Null),
        ("stdout", json!("out\n")),
        ("stderr", json!("err\n")),
        ("stdout_bytes", json!(4)),
        ("stderr_bytes", json!(4)),
        ("timed_out", json!(false)),
        ("truncated", json!(false)),
    ] {
        assert_eq!(ran[field], want, "{field}: {ran}");
    }
    let ran = run(json!({"command": ["printf", "%s|", "*.txt", "a b", "$x", "ü"]}));
    assert_eq!(ran["stdout"], "*.txt|a b|$x|ü|");
    let ran = run(json!({"command": "pwd; cat; echo ✓日", "cwd": "/usr/lib", "stdin": "ü✓"}));
    assert_eq!(ran["stdout"], "/usr/lib\nü✓✓日\n", "{ran}");
    world.guest.program("dies", "#!/bin/sh\nkill -9 $$\n");
    let ran = run(json!({"command": ["dies"]}));
    assert_eq!((&ran["exit_code"], &ran["signal"]), (&Value::Null, &json!(9)), "{ran}");
    let ran = run(json!({"command": "printf '\\377\\376'"}));
    assert_eq!(ran["stdout_base64"], "//4=");
    let many = "head -c 5000 /dev/zero | tr '\\0' x";
    let ran = run(json!({"command": many, "max_output": 1024}));
    assert_eq!((&ran["truncated"], &ran["stdout_bytes"]), (&json!(true), &json!(5000)));
    assert_eq!(ran["stdout"].as_str().unwrap().len(), 1024);

    // What was run stands in the record as it was given.
    let records = run_log(&mut server);
    assert!(records.contains("*.txt") && records.contains("exit 7"), "{records}");
    let mut run = |arguments: Value| {
        let mut all = json!({"vmid": 100});
        all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        server.ok("pve_vm_exec", all)
    };

    // One that goes on: its number, and how to ask for it.
    world
        .guest
        .program("waits", "#!/bin/sh\nwhile ! [ -e /srv/go ]; do sleep 0.05; done\necho end\n");
    let ran = run(json!({"command": ["waits"], "timeout_s": 1}));
    assert_eq!((&ran["status"], &ran["timed_out"]), (&json!("running"), &json!(true)), "{ran}");
    assert!(ran["notes"].to_string().contains("still running"), "{ran}");
    let pid = ran["pid"].clone();
    assert_eq!(run(json!({"pid": pid, "timeout_s": 1}))["status"], "running");
    fs::write(world.guest.path("/srv/go"), "").unwrap();
    let ran = run(json!({"pid": pid, "timeout_s": 20}));
    assert_eq!((&ran["exit_code"], &ran["stdout"]), (&json!(0), &json!("end\n")), "{ran}");

    for (arguments, want) in [
        // The agent tells an end once.
        (json!({"pid": pid}), "outcome_unknown"),
        (json!({"pid": pid, "command": "ls"}), "invalid_argument"),
        (json!({}), "invalid_argument"),
        (json!({"command": ["no-such-program"]}), "outcome_unknown"),
        (json!({"command": ["echo", "日"]}), "invalid_argument"),
        (json!({"command": "cat", "stdin": "x".repeat(65_537)}), "invalid_argument"),
    ] {
        let mut all = json!({"vmid": 100});
        all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        let refused = server.refused("pve_vm_exec", all);
        assert_eq!(code(&refused), want, "{arguments}: {refused}");
    }
}

/// F01, F03, F19: what is written arrives byte by byte, in pieces, and is read back in parts.
#[test]
fn f01_f03_f19_files_arrive_whole() {
    let Some(world) = World::new() else { return };
    let mut server = world.server(&[]);
    // 46,080 bytes are one piece; 61,441 are more characters than one call takes.
    for count in [0, 4, 46_079, 46_080, 46_081, 61_441, 1 << 20] {
        let content = if count == 4 { b"a=1\n".to_vec() } else { bytes(count) };
        let coded = STANDARD.encode(&content);
        let wrote = server.ok(
            "pve_guest_file_write",
            json!({"vmid": 100, "path": "/srv/file", "content_base64": coded}),
        );
        assert_eq!(wrote["bytes"], count, "{wrote}");
        assert_eq!(wrote["created"], count == 0);
        assert!(fs::read(world.guest.path("/srv/file")).unwrap() == content, "{count} bytes");
        let read = server.ok(
            "pve_guest_file_read",
            json!({"vmid": 100, "path": "/srv/file", "length": 2 << 20}),
        );
        assert_eq!(read["sha256"], wrote["sha256"], "{count}");
        assert_eq!((&read["size"], &read["truncated"]), (&json!(count), &json!(false)));
        assert_eq!(read["next_offset"], Value::Null);
        let back = match read["content_base64"].as_str() {
            Some(coded) => STANDARD.decode(coded).unwrap(),
            None => read["content"].as_str().unwrap().as_bytes().to_vec(),
        };
        assert!(back == content, "{count} bytes");
    }
    assert_eq!(fs::read_dir(world.guest.path("/tmp")).unwrap().count(), 0, "pieces are left");

    // A large one comes in parts, and says so.
    let large = bytes(20 << 20);
    fs::write(world.guest.path("/srv/large"), &large).unwrap();
    let read = server.ok("pve_guest_file_read", json!({"vmid": 100, "path": "/srv/large"}));
    assert_eq!((&read["size"], &read["truncated"]), (&json!(20 << 20), &json!(true)), "");
    assert_eq!((&read["next_offset"], &read["bytes"]), (&json!(65_536), &json!(65_536)));
    assert_eq!(read.get("sha256"), None);
    let from = (20 << 20) - 3;
    let read = server
        .ok("pve_guest_file_read", json!({"vmid": 100, "path": "/srv/large", "offset": from}));
    assert_eq!(read["content_base64"], STANDARD.encode(&large[from..]));
    assert_eq!(read["truncated"], false);
    // A file that says that it has no size.
    let read = server.ok("pve_guest_file_read", json!({"vmid": 100, "path": "/proc/version"}));
    assert!(read["content"].as_str().unwrap().contains("Linux version"), "{read}");
}

/// What a file is, who owns it, where it leads, and why it cannot be written.
#[test]
fn files_keep_what_they_are() {
    let Some(world) = World::new() else { return };
    let mut server = world.server(&[]);
    let guest = &world.guest;
    let put = |server: &mut Server, path: &str, more: Value| {
        let mut all = json!({"vmid": 100, "path": path, "content": "new\n"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = server.call("pve_guest_file_write", all);
        let content = answer["structuredContent"].clone();
        content.get("error").cloned().unwrap_or(content)
    };
    let mode = |path: &str| fs::metadata(guest.path(path)).unwrap().permissions().mode() & 0o7777;
    fs::write(guest.path("/srv/日 \"a\""), "old\n").unwrap();
    fs::set_permissions(guest.path("/srv/日 \"a\""), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::chown(guest.path("/srv/日 \"a\""), Some(33), Some(34)).unwrap();
    let wrote = put(&mut server, "/srv/日 \"a\"", json!({"append": true}));
    assert_eq!((&wrote["bytes"], &wrote["created"]), (&json!(8), &json!(false)), "{wrote}");
    assert_eq!(fs::read(guest.path("/srv/日 \"a\"")).unwrap(), b"old\nnew\n");
    let meta = fs::metadata(guest.path("/srv/日 \"a\"")).unwrap();
    use std::os::unix::fs::MetadataExt;
    assert_eq!((mode("/srv/日 \"a\""), meta.uid(), meta.gid()), (0o640, 33, 34));
    let wrote =
        put(&mut server, "/srv/d/e/f", json!({"create_dirs": true, "mode": "600", "owner": "7:8"}));
    assert_eq!(wrote["created"], true, "{wrote}");
    let meta = fs::metadata(guest.path("/srv/d/e/f")).unwrap();
    assert_eq!((mode("/srv/d/e/f"), meta.uid(), meta.gid()), (0o600, 7, 8));
    let made = wrote["sha256"].clone();
    assert_eq!(put(&mut server, "/srv/d/e/f", json!({"if_sha256": made}))["created"], false);

    std::os::unix::fs::symlink("d/e/f", guest.path("/srv/link")).unwrap();
    std::os::unix::fs::symlink("nowhere", guest.path("/srv/dangling")).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", guest.path("/srv/hidden")).unwrap();
    std::os::unix::fs::symlink("d", guest.path("/srv/dir")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(guest.path("/srv/fifo")).status().unwrap();
    assert!(made.success());
    fs::write(guest.path("/srv/small/file"), "old\n").unwrap();
    let large = "x".repeat(300 << 10);
    for (path, more, want) in [
        ("/srv/link", json!({}), "invalid_argument"),
        ("/srv/dangling", json!({}), "invalid_argument"),
        ("/srv/dir/x", json!({}), "invalid_argument"),
        ("/srv/d", json!({}), "invalid_argument"),
        ("/srv/fifo", json!({}), "invalid_argument"),
        ("/srv/no/x", json!({}), "not_found"),
        ("/srv/d/e/f/g", json!({}), "invalid_argument"),
        ("/srv/fixed/file", json!({}), "conflict"),
        ("/srv/small/file", json!({"content": large}), "conflict"),
        ("/srv/d/e/f", json!({"owner": "nobody-here"}), "invalid_argument"),
        ("/srv/d/e/f", json!({"if_sha256": "0".repeat(64)}), "digest_changed"),
        ("/srv/none", json!({"if_sha256": "0".repeat(64)}), "digest_changed"),
    ] {
        let refused = put(&mut server, path, more.clone());
        assert_eq!(code(&refused), want, "{path} {more}: {refused}");
    }
    assert_eq!(fs::read(guest.path("/srv/small/file")).unwrap(), b"old\n");
    assert_eq!(fs::read(guest.path("/srv/fixed/file")).unwrap(), b"old\n");
    assert_eq!(fs::read_dir(guest.path("/srv/small")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(guest.path("/tmp")).unwrap().count(), 0);
    let wrote = put(&mut server, "/srv/link", json!({"follow": true}));
    assert_eq!(wrote["real_path"], "/srv/d/e/f", "{wrote}");

    for (path, follow, want) in [
        ("/srv/link", false, "invalid_argument"),
        ("/srv/hidden", false, "invalid_argument"),
        ("/srv/hidden", true, "endpoint_refused"),
        ("/srv/d", false, "invalid_argument"),
        ("/srv/fifo", false, "invalid_argument"),
        ("/srv/none", false, "not_found"),
        ("/etc/../etc/shadow", false, "endpoint_refused"),
        ("etc/hosts", false, "invalid_argument"),
    ] {
        let refused = server
            .refused("pve_guest_file_read", json!({"vmid": 100, "path": path, "follow": follow}));
        assert_eq!(code(&refused), want, "{path}: {refused}");
    }
    let read = server
        .ok("pve_guest_file_read", json!({"vmid": 100, "path": "/srv/dir/e/f", "follow": false}));
    assert_eq!((&read["content"], &read["real_path"]), (&json!("new\n"), &json!("/srv/d/e/f")));
}

/// Names of any kind stay apart in a list.
#[test]
fn a_directory_is_listed_with_names_of_any_kind() {
    use std::os::unix::ffi::OsStrExt;
    let Some(world) = World::new() else { return };
    let mut server = world.server(&[]);
    let folder = world.guest.path("/srv/list");
    fs::create_dir(&folder).unwrap();
    for name in [&b"a\nb"[..], b".hidden", b"-rf", b"\xff", "ü".as_bytes(), b"*"] {
        fs::write(folder.join(std::ffi::OsStr::from_bytes(name)), "12").unwrap();
    }
    fs::create_dir(folder.join("dir")).unwrap();
    std::os::unix::fs::symlink("../x\ny", folder.join("link")).unwrap();
    std::os::unix::fs::symlink("list", world.guest.path("/srv/to")).unwrap();
    let list = server.ok("pve_guest_file_list", json!({"vmid": 100, "path": "/srv/list"}));
    let rows: BTreeMap<&str, &Value> =
        list["rows"].as_array().unwrap().iter().map(|r| (r[0].as_str().unwrap(), r)).collect();
    let names: Vec<&str> = rows.keys().copied().collect();
    assert_eq!(names, ["*", "-rf", ".hidden", "\\xff", "a\nb", "dir", "link", "ü"], "{list}");
    assert_eq!((&rows["-rf"][1], &rows["-rf"][2]), (&json!("file"), &json!(2)), "{list}");
    assert_eq!(rows["dir"][1], "directory");
    assert_eq!(rows["link"][1], "link");
    for (path, want) in [
        ("/srv/to", "invalid_argument"),
        ("/srv/no", "not_found"),
        ("/srv/list/*", "invalid_argument"),
    ] {
        let refused = server.refused("pve_guest_file_list", json!({"vmid": 100, "path": path}));
        assert_eq!(code(&refused), want, "{path}: {refused}");
    }
    let list =
        server.ok("pve_guest_file_list", json!({"vmid": 100, "path": "/srv/to", "follow": true}));
    assert_eq!((&list["total"], &list["real_path"]), (&json!(8), &json!("/srv/list")));
}

/// A write that is cut at any call of it leaves the old file, or the new one, whole.
#[test]
fn a_write_that_is_cut_leaves_the_old_file_whole() {
    let Some(mut world) = World::new() else { return };
    let (old, new) = (bytes(70_000), bytes(100_000));
    let file = world.guest.path("/srv/file");
    let coded = STANDARD.encode(&new);
    let write = json!({"vmid": 100, "path": "/srv/file", "content_base64": coded});
    let mut server = world.server(&[]);
    fs::write(&file, &old).unwrap();
    world.estate.sim().clear_requests();
    server.ok("pve_guest_file_write", write.clone());
    let posts = ["/agent/exec", "/agent/file-write"];
    let is_post = |line: &str| {
        line.starts_with("POST")
            && posts.iter().any(|p| line.split('?').next().unwrap().ends_with(p))
    };
    let calls = world.estate.arrived().iter().filter(|line| is_post(line)).count();
    assert!(calls >= 6, "place, room, three pieces, write: {:?}", world.estate.arrived());

    let effects = [
        Effect::CutBeforeBody,
        Effect::CutAfterBody { apply: false },
        Effect::CutAfterBody { apply: true },
        Effect::Error(500, "VM 100 qga command 'guest-exec' failed - got timeout".to_owned()),
        Effect::broken_pipe(),
    ];
    let mut survived = [0, 0];
    for at in 0..calls {
        for effect in &effects {
            fs::write(&file, &old).unwrap();
            // Those before pass, this one is hit.
            for _ in 0..at {
                let nothing = Effect::Latency(std::time::Duration::ZERO);
                world.estate.sim().inject(Fault::new(nothing).method("POST").path("*/agent/*"));
            }
            let fault = Fault::new(effect.clone()).method("POST").path("*/agent/*");
            world.estate.sim().inject(fault);
            let answer = server.call("pve_guest_file_write", write.clone());
            world.estate.sim().clear_faults();
            let now = fs::read(&file).unwrap();
            let done = answer["isError"] != json!(true);
            let what = format!("call {at}, {effect:?}: {}", answer["structuredContent"]);
            assert!(now == old || now == new, "torn: {what}");
            if done {
                assert!(now == new, "{what}");
            } else if answer["structuredContent"]["error"]["unchanged"] == json!(true) {
                assert!(now == old, "{what}");
            }
            survived[usize::from(now == new)] += 1;
        }
    }
    assert!(survived[0] > 0 && survived[1] > 0, "both ends are seen: {survived:?}");

    // The agent ends with everything that it runs, after each piece and in the last step.
    world.guest.program("mv", "#!/bin/sh\ntouch /srv/reached\nexec sleep 30\n");
    for pieces in 0..=3 {
        fs::write(&file, &old).unwrap();
        let reached = world.guest.path("/srv/reached");
        let _ = fs::remove_file(&reached);
        world.estate.sim().clear_requests();
        if pieces < 3 {
            for _ in 0..pieces {
                let nothing = Effect::Latency(std::time::Duration::ZERO);
                world.estate.sim().inject(Fault::new(nothing).path("*/agent/file-write"));
            }
            let slow = Effect::NeverAnswer { apply: true };
            world.estate.sim().inject(Fault::new(slow).path("*/agent/file-write"));
        }
        server.send_call("pve_guest_file_write", write.clone());
        e2e::eventually("the write is under way", || {
            let sent = world.estate.arrived();
            let sent = sent.iter().filter(|line| line.contains("/agent/file-write")).count();
            if pieces < 3 { sent > pieces } else { reached.exists() }
        });
        world.guest.kill();
        assert!(fs::read(&file).unwrap() == old, "after {pieces} pieces");
        world.estate.sim().clear_faults();
        drop(server);
        world.guest.restart();
        world.guest.program("mv", "#!/bin/sh\ntouch /srv/reached\nexec sleep 30\n");
        server = world.server(&[]);
    }
    // Nothing that was left stands in the way of the next.
    fs::remove_file(world.guest.path("/usr/local/bin/mv")).unwrap();
    server.ok("pve_guest_file_write", write);
    assert!(fs::read(&file).unwrap() == new);
}

const SYSTEMCTL: &str = r#"#!/bin/sh
# Stands in for systemd's: web runs, bad fails, others are not there.
for word; do unit=$word; done
unit=${unit%.service}
case $unit in web | bad) loaded=loaded ;; *) loaded=not-found ;; esac
state=$(cat /srv/state-$unit 2>/dev/null || echo active)
case $1 in
  show) printf 'LoadState=%s\nActiveState=%s\nSubState=running\nUnitFileState=enabled\nMainPID=42\n' \
    "$loaded" "$state" ;;
  is-active) echo "$state" ;;
  start | restart) [ $unit = web ] || { echo 'Job failed.' >&2; exit 1; }
    echo active >/srv/state-$unit ;;
  stop) echo inactive >/srv/state-$unit ;;
esac
"#;

/// Services, by what the guest has.
#[test]
fn services_are_shown_and_changed() {
    let Some(world) = World::new() else { return };
    let guest = &world.guest;
    let mut server = world.server(&[("PROXMOX_ALLOW_EXEC_SERVICES", "enabled")]);
    let ask = |action: &str, service: &str| {
        json!({"vmid": 100, "service": service, "action": action,
            "confirm": format!("{action} {service}")})
    };
    let refused = server.refused("pve_guest_service", ask("status", "web"));
    assert_eq!(code(&refused), "not_found", "{refused}");

    guest.program("systemctl", SYSTEMCTL);
    fs::create_dir_all(guest.path("/run/systemd/system")).unwrap();
    for (action, active) in
        [("status", "active"), ("stop", "inactive"), ("start", "active"), ("restart", "active")]
    {
        let told = server.ok("pve_guest_service", ask(action, "web"));
        assert_eq!(
            (&told["active"], &told["manager"]),
            (&json!(active), &json!("systemd")),
            "{told}"
        );
        assert_eq!((&told["main_pid"], &told["enabled"]), (&json!(42), &json!("enabled")));
    }
    for (service, want) in
        [("bad", "task_failed"), ("none", "not_found"), ("-H", "invalid_argument")]
    {
        let refused = server.refused("pve_guest_service", ask("restart", service));
        assert_eq!(code(&refused), want, "{service}: {refused}");
    }
    let unsure = json!({"vmid": 100, "service": "web", "action": "stop"});
    let refused = server.refused("pve_guest_service", unsure);
    assert_eq!(
        (code(&refused), &refused["confirm"]),
        ("confirm_required", &json!("stop web")),
        "{refused}"
    );

    fs::remove_dir_all(guest.path("/run/systemd")).unwrap();
    guest.program(
        "rc-service",
        "#!/bin/sh\ncase \"$*\" in '-e web') ;; -e*) exit 1 ;; 'web status') exit 3 ;; esac\n",
    );
    let told = server.ok("pve_guest_service", ask("status", "web"));
    assert_eq!(
        (&told["active"], &told["manager"]),
        (&json!("inactive"), &json!("openrc")),
        "{told}"
    );
    let refused = server.refused("pve_guest_service", ask("status", "none"));
    assert_eq!(code(&refused), "not_found", "{refused}");
}

/// F14: an agent without guest-exec names the file, the line, and is not asked again;
/// files are still read by its own calls.
#[test]
fn f14_an_agent_that_blocks_commands_says_where() {
    let Some(world) = World::with(&["--block-rpcs=guest-exec,guest-exec-status"]) else { return };
    let mut server = world.server(&[("PROXMOX_ALLOW_EXEC_DELETE", "enabled")]);
    // Nobody is asked to confirm what cannot be done.
    for command in ["ls", "rm /srv/x"] {
        let refused = server.refused("pve_vm_exec", json!({"vmid": 100, "command": command}));
        assert_eq!(code(&refused), "agent_unavailable", "{refused}");
        let hint = refused["hint"].as_str().unwrap();
        for word in ["/etc/sysconfig/qemu-ga", "BLACKLIST_RPC", "FILTER_RPC_ARGS", "guest-exec"] {
            assert!(hint.contains(word), "{word}: {hint}");
        }
    }
    let sent = world.estate.arrived();
    assert!(!sent.iter().any(|line| line.contains("/agent/exec")), "{sent:?}");
    fs::write(world.guest.path("/srv/x"), "seen\n").unwrap();
    let read = server.ok("pve_guest_file_read", json!({"vmid": 100, "path": "/srv/x"}));
    assert_eq!((&read["content"], &read["size"]), (&json!("seen\n"), &json!(5)), "{read}");
    let refused = server.refused("pve_guest_file_read", json!({"vmid": 100, "path": "/srv/no"}));
    assert_eq!(code(&refused), "not_found", "{refused}");
}

/// What is masked says so, and the mask is never written into a file by mistake.
#[test]
fn masked_content_is_told_and_not_written_back() {
    let Some(world) = World::new() else { return };
    let mut server = world.server(&[]);
    let secret = world.estate.secret().to_owned();
    let file = world.guest.path("/srv/app.conf");
    for text in [format!("host=a\ntoken: {secret}\n"), "user=a\npassword=hunter22x\n".to_owned()] {
        fs::write(&file, &text).unwrap();
        let read = server.ok("pve_guest_file_read", json!({"vmid": 100, "path": "/srv/app.conf"}));
        assert_eq!(read["masked"], true, "{read}");
        assert!(read["warnings"].to_string().contains("writing it back"), "{read}");
        assert!(!read.to_string().contains("hunter22x") && !read.to_string().contains(&secret));
        let refused = server.refused(
            "pve_guest_file_write",
            json!({"vmid": 100, "path": "/srv/app.conf", "content": read["content"]}),
        );
        assert_eq!((code(&refused), &refused["argument"]), ("invalid_argument", &json!("content")));
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    fs::write(&file, "a=1\n").unwrap();
    let read = server.ok("pve_guest_file_read", json!({"vmid": 100, "path": "/srv/app.conf"}));
    assert_eq!((read.get("masked"), read.get("warnings")), (None, None), "{read}");
    // Where the characters are meant, there is a way.
    let meant =
        json!({"vmid": 100, "path": "/srv/app.conf", "content_base64": STANDARD.encode("/***/")});
    server.ok("pve_guest_file_write", meant);
    assert_eq!(fs::read_to_string(&file).unwrap(), "/***/");
}
