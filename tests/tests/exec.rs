//! The exec tools of the built server, over real sshd, sudo and the guard, in
//! a container whose `pct` is a stand-in that runs things on the node itself.
#![cfg(target_os = "linux")]

use std::fs;

use e2e::{Estate, Server, world::World};
use serde_json::{Value, json};

/// The structured part of an answer.
fn content(answer: &Value) -> &Value {
    answer.get("structuredContent").unwrap_or(answer)
}

/// The code of a refusal.
fn code(answer: &Value) -> &str {
    let error = content(answer);
    error.get("error").unwrap_or(error)["code"].as_str().unwrap_or_default()
}

#[test]
fn commands_run_as_they_are_given() {
    let Some(world) = World::new() else { return };
    let mut server = world.server(&[]);
    let ran = server.ok(
        "pve_ct_exec",
        json!({"vmid": 200, "command": "echo out; echo err >&2; (exit 7)", "cwd": "/tmp"}),
    );
    let ran = content(&ran);
    for (field, want) in [
        ("exit_code", json!(7)),
        ("signal", Value::Null),
        ("stdout", json!("out\n")),
        ("stderr", json!("err\n")),
        ("timed_out", json!(false)),
        ("truncated", json!(false)),
        ("stdout_bytes", json!(4)),
        ("stderr_bytes", json!(4)),
    ] {
        assert_eq!(ran[field], want, "{field}: {ran}");
    }
    assert!(ran["duration_ms"].is_u64());
    // An array is no shell text, a directory is where it runs, input arrives.
    let ran = server.ok(
        "pve_ct_exec",
        json!({"vmid": "200", "command": ["printf", "%s|", "*.txt", "a b", "$x"], "cwd": "/usr"}),
    );
    assert_eq!(content(&ran)["stdout"], "*.txt|a b|$x|");
    let ran = server.ok(
        "pve_ct_exec",
        json!({"vmid": 200, "command": "pwd; cat", "cwd": "/usr/lib", "stdin": "ü✓"}),
    );
    assert_eq!(content(&ran)["stdout"], "/usr/lib\nü✓");
    // What is no text comes as base64, what is too long is counted.
    let ran = server.ok("pve_ct_exec", json!({"vmid": 200, "command": "printf '\\377\\376'"}));
    assert_eq!(content(&ran)["stdout_base64"], "//4=");
    let ran = server.ok(
        "pve_ct_exec",
        json!({"vmid": 200, "command": "head -c 5000 /dev/zero | tr '\\0' x", "max_output": 1024}),
    );
    assert_eq!(content(&ran)["truncated"], true);
    assert_eq!(content(&ran)["stdout_bytes"], 5000);
    let ran = server.ok("pve_ct_exec", json!({"vmid": 200, "command": "sleep 30", "timeout_s": 1}));
    assert_eq!(content(&ran)["timed_out"], true, "{ran}");
}

#[test]
fn the_gate_stands_before_every_command() {
    let Some(world) = World::new() else { return };
    let mut server = world.server(&[]);
    for (tool, arguments, want) in [
        ("pve_ct_exec", json!({"vmid": 200, "command": "rm -rf /srv/x"}), "flag_disabled"),
        ("pve_ct_exec", json!({"vmid": 200, "command": ["busybox", "rm", "x"]}), "flag_disabled"),
        ("pve_ct_exec", json!({"vmid": 200, "command": "cat /etc/shadow"}), "endpoint_refused"),
        ("pve_guest_file_read", json!({"vmid": 200, "path": "/etc//shadow"}), "endpoint_refused"),
        ("pve_ct_exec", json!({"vmid": 100, "command": "ls"}), "invalid_argument"),
        ("pve_vm_exec", json!({"vmid": 200, "command": "ls"}), "invalid_argument"),
        ("pve_ct_exec", json!({"vmid": 200, "command": ""}), "invalid_argument"),
    ] {
        let refused = server.refused(tool, arguments.clone());
        assert_eq!(code(&refused), want, "{tool} {arguments}: {refused}");
    }
    assert_eq!(world.node.count("pct-exec"), 0, "{}", world.node.journal());
    drop(server);
    let allowed = [("PROXMOX_ALLOW_EXEC_DELETE", "enabled")];
    let mut server = world.server(&allowed);
    let target = world.node.path("/srv/x");
    fs::create_dir_all(world.node.path("/srv")).unwrap();
    fs::write(&target, "x").unwrap();
    let command = "rm /srv/x";
    let refused = server.refused("pve_ct_exec", json!({"vmid": 200, "command": command}));
    assert_eq!(code(&refused), "confirm_required");
    assert_eq!(content(&refused)["confirm"], command);
    let dry = server.ok("pve_ct_exec", json!({"vmid": 200, "command": command, "dry_run": true}));
    assert_eq!(content(&dry)["status"], "dry_run");
    assert!(target.exists());
    server.ok("pve_ct_exec", json!({"vmid": 200, "command": command, "confirm": command}));
    assert!(!target.exists());
    drop(server);
    let mut server = world.server(&[("PROXMOX_DENIED_VMIDS", "200")]);
    let refused = server.refused("pve_ct_exec", json!({"vmid": 200, "command": "ls"}));
    assert_eq!(code(&refused), "vmid_denied");
}

#[test]
fn files_are_written_whole_and_read_back() {
    let Some(world) = World::new() else { return };
    fs::create_dir_all(world.node.path("/srv")).unwrap();
    let mut server = world.server(&[]);
    let write = |server: &mut Server, arguments: Value| {
        let mut all = json!({"vmid": 200, "path": "/srv/app/a.conf"});
        all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        server.call("pve_guest_file_write", all)
    };
    let refused = write(&mut server, json!({"content": "a=1\n"}));
    assert_eq!(code(&refused), "not_found", "{refused}");
    let made = write(&mut server, json!({"content": "a=1\n", "create_dirs": true, "mode": "640"}));
    assert_eq!(content(&made)["created"], true, "{made}");
    assert_eq!(content(&made)["bytes"], 4);
    let file = world.node.path("/srv/app/a.conf");
    assert_eq!(fs::read(&file).unwrap(), b"a=1\n");
    let read = server.ok("pve_guest_file_read", json!({"vmid": 200, "path": "/srv/app/a.conf"}));
    assert_eq!(content(&read)["content"], "a=1\n");
    assert_eq!(content(&read)["sha256"], content(&made)["sha256"]);
    assert_eq!(content(&read)["size"], 4);
    assert_eq!(content(&read)["truncated"], false);
    // Appending, only onto what is known; the mode stays.
    let sha = content(&read)["sha256"].clone();
    let longer =
        write(&mut server, json!({"content": "b=2\n", "append": true, "if_sha256": sha.clone()}));
    assert_eq!(content(&longer)["created"], false, "{longer}");
    assert_eq!(fs::read(&file).unwrap(), b"a=1\nb=2\n");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o7777, 0o640);
    let refused = write(&mut server, json!({"content": "c", "if_sha256": sha}));
    assert_eq!(code(&refused), "digest_changed", "{refused}");
    assert_eq!(fs::read(&file).unwrap(), b"a=1\nb=2\n");
    // Bytes, in parts.
    let binary = write(&mut server, json!({"content_base64": "AAH/"}));
    assert_eq!(content(&binary)["bytes"], 3, "{binary}");
    let part = server.ok(
        "pve_guest_file_read",
        json!({"vmid": 200, "path": "/srv/app/a.conf", "offset": 1, "length": 1}),
    );
    assert_eq!(content(&part)["content_base64"], "AQ==");
    assert_eq!(content(&part)["truncated"], true);
    assert_eq!(content(&part)["next_offset"], 2);
    // A link is not followed by itself, and never to a secret.
    std::os::unix::fs::symlink("a.conf", world.node.path("/srv/app/link")).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", world.node.path("/srv/app/hidden")).unwrap();
    let path = |path: &str, follow: bool| json!({"vmid": 200, "path": path, "follow": follow});
    let refused = server.refused("pve_guest_file_read", path("/srv/app/link", false));
    assert_eq!(code(&refused), "invalid_argument");
    server.ok("pve_guest_file_read", path("/srv/app/link", true));
    let refused = server.refused("pve_guest_file_read", path("/srv/app/hidden", true));
    assert_eq!(code(&refused), "endpoint_refused", "{refused}");
    for (path, want) in [("/srv/app", "invalid_argument"), ("/srv/none", "not_found")] {
        let refused = server.refused("pve_guest_file_read", json!({"vmid": 200, "path": path}));
        assert_eq!(code(&refused), want, "{refused}");
    }
    let list = server.ok("pve_guest_file_list", json!({"vmid": 200, "path": "/srv/app"}));
    let names: Vec<&str> =
        content(&list)["rows"].as_array().unwrap().iter().map(|r| r[0].as_str().unwrap()).collect();
    assert_eq!(names, ["a.conf", "hidden", "link"], "{list}");
    // A directory that is a link leads to nothing that the path does not say.
    std::os::unix::fs::symlink("/etc", world.node.path("/srv/etc")).unwrap();
    let refused = server.refused("pve_guest_file_read", path("/srv/etc/shadow", false));
    assert_eq!(code(&refused), "endpoint_refused", "{refused}");
    for follow in [false, true] {
        let refused = server.refused(
            "pve_guest_file_write",
            json!({"vmid": 200, "path": "/srv/etc/motd", "content": "x", "follow": follow}),
        );
        assert_eq!(code(&refused), "invalid_argument", "{refused}");
    }
    let left = fs::read_dir(world.node.path("/srv/app")).unwrap().count();
    assert_eq!(left, 3);
    // A system file needs its flag.
    let refused = server
        .refused("pve_guest_file_write", json!({"vmid": 200, "path": "/etc/motd", "content": "x"}));
    assert_eq!(code(&refused), "flag_disabled");
}

/// Stands before a program that a script uses. Armed with a name, `before` or
/// `after`, and a victim, it ends the script (all processes up to the guard), or
/// the guard itself, at that moment; with the victim `nobody` it waits.
const ENDS_IT: &str = r#"#!/bin/sh
me=${0##*/}
armed= when= victim=
read armed when victim </run/armed 2>/dev/null
if [ "$armed" != "$me" ]; then exec /usr/bin/$me "$@"; fi
end() {
  echo "$me" >>/run/hit
  if [ "$victim" = nobody ]; then exec sleep 60; fi
  p=$PPID
  while [ "$p" -gt 1 ]; do
    read comm </proc/$p/comm
    read id name state parent rest </proc/$p/stat
    case $comm in
      pve-guard) if [ "$victim" = guard ]; then kill -9 "$p"; fi; break ;;
      *) if [ "$victim" = script ]; then kill -9 "$p"; fi ;;
    esac
    p=$parent
  done
}
if [ "$when" = before ]; then end; fi
/usr/bin/$me "$@"
code=$?
if [ "$when" = after ]; then end; fi
exit $code
"#;

/// A write that is cut at any program of its script, by the end of the script,
/// of the guard or of the connection, leaves the old file, or the new one, whole.
#[test]
fn a_write_that_is_cut_leaves_the_old_file_whole() {
    let Some(world) = World::new() else { return };
    fs::create_dir_all(world.node.path("/srv")).unwrap();
    let tools = ["cat", "sha256sum", "wc", "stat", "cp", "chmod", "sync", "mv"];
    for tool in tools {
        world.node.write(&format!("/usr/local/bin/{tool}"), ENDS_IT, 0o755);
    }
    let file = world.node.path("/srv/file");
    let (old, new) = ("old\n".repeat(50_000), "new one\n".repeat(130_000));
    let write = json!({"vmid": 200, "path": "/srv/file", "content": new});
    let over = || e2e::eventually("the script is over", || world.node.count("[.]pve-[$]1") == 0);
    let whole = |what: &str| {
        let now = fs::read_to_string(&file).unwrap();
        assert!(now == old || now == new, "torn: {what}, {} bytes", now.len());
        now == new
    };
    let mut server = world.server(&[]);
    let mut seen = [0, 0];
    for tool in tools {
        for when in ["before", "after"] {
            let victims: &[&str] = match tool {
                "cat" | "sha256sum" | "mv" => &["script", "guard"],
                _ => &["script"],
            };
            for victim in victims {
                fs::write(&file, &old).unwrap();
                let hit = world.node.path("/run/hit");
                let _ = fs::remove_file(&hit);
                world.node.write("/run/armed", &format!("{tool} {when} {victim}\n"), 0o644);
                let answer = server.call("pve_guest_file_write", write.clone());
                over();
                let what = format!("{tool} {when} {victim}: {answer}");
                assert!(hit.exists(), "not reached: {what}");
                let is_new = whole(&what);
                seen[usize::from(is_new)] += 1;
                assert!(answer["isError"] == json!(true) || is_new, "{what}");
            }
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "both ends are seen: {seen:?}");

    // The connection ends with the server, and the guard ends what it runs.
    for tool in ["cat", "sha256sum", "mv"] {
        fs::write(&file, &old).unwrap();
        let hit = world.node.path("/run/hit");
        let _ = fs::remove_file(&hit);
        world.node.write("/run/armed", &format!("{tool} before nobody\n"), 0o644);
        server.send_call("pve_guest_file_write", write.clone());
        e2e::eventually("the write is under way", || hit.exists());
        drop(server);
        over();
        assert!(!whole(tool), "{tool}: nothing was put in place");
        server = world.server(&[]);
    }
    // Nothing that was left stands in the way of the next.
    fs::remove_file(world.node.path("/run/armed")).unwrap();
    server.ok("pve_guest_file_write", write);
    assert_eq!(fs::read_to_string(&file).unwrap(), new);
}

/// F15: owners are the container's own, by its names.
#[test]
fn f15_owners_are_those_of_the_container() {
    use std::os::unix::fs::MetadataExt;
    let Some(world) = World::new() else { return };
    fs::create_dir_all(world.node.path("/srv")).unwrap();
    world.node.sh("echo web:x:4711:4712::/:/bin/sh >>/etc/passwd; echo web:x:4712: >>/etc/group");
    let mut server = world.server(&[]);
    let file = world.node.path("/srv/file");
    for (owner, want) in [
        (None, (0, 0)),
        (Some("web"), (4711, 0)),
        (Some("web:web"), (4711, 4712)),
        // What is there keeps its owner.
        (None, (4711, 4712)),
        (Some("0:0"), (0, 0)),
    ] {
        let arguments = json!({"vmid": 200, "path": "/srv/file", "content": "x", "owner": owner});
        server.ok("pve_guest_file_write", arguments);
        let meta = fs::metadata(&file).unwrap();
        assert_eq!((meta.uid(), meta.gid()), want, "{owner:?}");
    }
    let unknown = json!({"vmid": 200, "path": "/srv/file", "content": "y", "owner": "no-one"});
    let refused = server.refused("pve_guest_file_write", unknown);
    assert_eq!((code(&refused), &refused["reason"]), ("invalid_argument", &json!("owner")));
    assert_eq!(fs::read(&file).unwrap(), b"x");
}

/// F17: content is no argument, so that its length is not that of one.
#[test]
fn f17_large_files_go_by_input() {
    let Some(world) = World::new() else { return };
    fs::create_dir_all(world.node.path("/srv")).unwrap();
    let mut server = world.server(&[]);
    let content = "0123456789abcde\n".repeat(1 << 16);
    let file = json!({"vmid": 200, "path": "/srv/file", "content": content});
    let wrote = server.ok("pve_guest_file_write", file);
    assert_eq!(wrote["bytes"], 1 << 20, "{wrote}");
    assert!(fs::read_to_string(world.node.path("/srv/file")).unwrap() == content);
    fs::write(world.node.path("/srv/large"), content.repeat(10)).unwrap();
    let read = server
        .ok("pve_guest_file_read", json!({"vmid": 200, "path": "/srv/large", "length": 11 << 20}));
    assert_eq!((&read["size"], &read["truncated"]), (&json!(10 << 20), &json!(false)));
    assert!(read["content"].as_str().unwrap() == content.repeat(10));
    assert_eq!(read["sha256"].as_str().unwrap().len(), 64);
}

/// F23: a container that goes down takes its command along, and that is told.
#[test]
fn f23_a_container_that_goes_down_is_told() {
    let Some(world) = World::new() else { return };
    let ends =
        "#!/bin/sh\ntouch /run/begun\nwhile ! [ -e /run/go ]; do sleep 0.05; done\nkill -9 $$\n";
    world.node.write("/usr/local/bin/ends", ends, 0o755);
    let mut server = world.server(&[]);
    let id = server.send_call("pve_ct_exec", json!({"vmid": 200, "command": ["ends"]}));
    e2e::eventually("the command has begun", || world.node.path("/run/begun").exists());
    world.estate.sim().with_state(|state| state.guests.get_mut(&200).unwrap().stop());
    world.node.write("/run/go", "", 0o644);
    let ran = server.result(id);
    assert_eq!(content(&ran)["guest_went_down"], true, "{ran}");
    assert!(content(&ran)["notes"].to_string().contains("guest went down"), "{ran}");
}

#[test]
fn commands_and_files_in_a_vm_go_by_its_agent() {
    let estate = Estate::sample();
    estate.configure(&[("PROXMOX_MODE", "write"), ("PROXMOX_EXEC", "enabled")]);
    let mut server = Server::start(estate.command().arg("serve"));
    server.initialize("2025-06-18");
    let ran = server.ok("pve_vm_exec", json!({"vmid": 100, "command": "echo hi; exit 3"}));
    assert_eq!(content(&ran)["exit_code"], 3, "{ran}");
    assert_eq!(content(&ran)["stdout"], "hi\n");
    let read = server.ok("pve_guest_file_read", json!({"vmid": 100, "path": "/etc/hostname"}));
    assert_eq!(content(&read)["content"], "web-01\n", "{read}");
    assert_eq!(content(&read)["size"], 7);
    let refused =
        server.refused("pve_guest_file_read", json!({"vmid": 100, "path": "/etc/nothing"}));
    assert_eq!(code(&refused), "not_found", "{refused}");
    let sent = |what: &str| estate.arrived().iter().filter(|l| l.contains(what)).count();
    let before = sent("/agent/exec");
    let refused = server.refused("pve_vm_exec", json!({"vmid": 100, "command": "reboot"}));
    assert_eq!(code(&refused), "flag_disabled");
    assert_eq!(sent("/agent/exec"), before);
}

#[test]
fn a_node_is_upgraded_and_booted_only_through_the_gate() {
    let Some(world) = World::new() else { return };
    let mut server = world.server(&[]);
    let plan = server.ok("pve_upgrade_simulate", json!({"node": "pve1"}));
    let hash = content(&plan)["plan"].as_str().unwrap().to_owned();
    assert_eq!(hash.len(), 64, "{plan}");
    assert_eq!(content(&plan)["summary"], json!(["problem: there is nothing to upgrade"]));
    let pin = json!({"node": "pve1", "version": "6.8.12-1-pve"});
    let start = |plan: &str| json!({"node": "pve1", "plan": plan});
    for (tool, arguments, want) in [
        ("pve_kernel_pin", pin.clone(), "flag_disabled"),
        ("pve_kernel_unpin", json!({"node": "pve1"}), "flag_disabled"),
        ("pve_upgrade_start", start(&hash), "flag_disabled"),
        ("pve_upgrade_start", start("00"), "digest_changed"),
        ("pve_kernel_list", json!({"node": "pve9"}), "not_found"),
        // The node of these tests has no boot tool, and says so.
        ("pve_kernel_list", json!({"node": "pve1"}), "guard_refused"),
    ] {
        let refused = server.refused(tool, arguments.clone());
        assert_eq!(code(&refused), want, "{tool} {arguments}: {refused}");
    }
    drop(server);
    let flags =
        [("PROXMOX_ALLOW_NODE_BOOT_CONFIG", "on"), ("PROXMOX_ALLOW_NODE_UPGRADE", "enabled")];
    let mut server = world.server(&flags);
    let with = |mut arguments: Value, confirm: &str| {
        arguments["confirm"] = confirm.into();
        arguments
    };
    for (tool, arguments, confirm) in [
        ("pve_kernel_pin", pin, "6.8.12-1-pve"),
        ("pve_kernel_unpin", json!({"node": "pve1"}), "pve1"),
        ("pve_upgrade_start", start(&hash), hash.as_str()),
    ] {
        let refused = server.refused(tool, arguments.clone());
        assert_eq!(code(&refused), "confirm_required", "{tool}: {refused}");
        assert_eq!(content(&refused)["confirm"], confirm, "{tool}");
        // The policy as it is shipped lets no change through, whatever is agreed to here.
        let refused = server.refused(tool, with(arguments, confirm));
        assert_eq!(code(&refused), "guard_refused", "{tool}: {refused}");
        assert_eq!(content(&refused)["guard_code"], "verb_denied", "{tool}: {refused}");
    }
    assert!(world.node.journal().contains("kernel-pin"));
}
