//! Commands that need no node.

use std::{fs, io::Read, process::Stdio};

use crate::place::{PROGRAM, Place, commands, mode, seen};

#[test]
fn every_help_has_an_example() {
    let place = Place::empty();
    let all = commands();
    for name in ["serve", "demo", "init", "config", "fingerprint", "check", "tools", "call"] {
        assert!(all.iter().any(|c| c == name), "{name} in {all:?}");
    }
    for name in ["status", "attention", "guests", "nodes", "storage", "backups", "tasks", "task"] {
        assert!(all.iter().any(|c| c == name), "{name} in {all:?}");
    }
    for name in
        ["snapshots", "firewall", "services", "updates", "permissions", "completions", "man"]
    {
        assert!(all.iter().any(|c| c == name), "{name} in {all:?}");
    }
    for name in &all {
        let help = place.run(&[name, "--help"]);
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{name}");
        let example = help.stdout.split("Example").nth(1).unwrap_or_else(|| panic!("{name}"));
        assert!(example.contains(&format!("proxmox-mcp {name}")), "{name}: {example}");
    }
}

#[test]
fn a_command_line_that_cannot_be_meant_ends_with_2() {
    let place = Place::empty();
    for (args, message) in [
        (&["gests"] as &[&str], "guests"),
        (&["guests", "--stat", "x"], "--status"),
        (&["guests", "--type", "vm"], "qemu"),
        (&["tools", "--group", "gests"], "guests"),
        (&["task"], "UPID"),
        (&["snapshots"], "VMID"),
        (&["completions"], "SHELL"),
        (&["completions", "csh"], "bash"),
        (&["man", "gests"], "did you mean guests?"),
        (&["man", "audit", "tial"], "did you mean tail?"),
        (&["man", "guests", "--output", "."], "--output"),
        (&["tools", "--set", "PROXMOX_MOD=write"], "did you mean PROXMOX_MODE?"),
        (&["tools", "--set", "nothing"], "NAME=VALUE"),
        (&["call", "pve_list_vm"], "pve_list_vms"),
        (&["call", "pve_list_vms", "[1]"], "not an object"),
        (&["call", "pve_list_vms", "{vmid: 100}"], "not JSON"),
        (&["call", "pve_list_vms", "--statu", "x"], "--status"),
    ] {
        let run = place.run(args);
        assert_eq!(run.code, 2, "{args:?}: {run:?}");
        assert!(run.stderr.contains(message), "{args:?}: {run:?}");
        assert_eq!(run.stdout, "", "{args:?}");
    }
}

#[test]
fn secrets_are_not_taken_from_the_command_line_and_not_repeated() {
    for name in ["PROXMOX_TOKEN_SECRET", "PROXMOX_TOKEN_ID", "PROXMOX_HTTP_TOKEN"] {
        let run = Place::empty().run(&["config", "--set", &format!("{name}=hunter2-hunter2")]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(name) && run.stderr.contains(".env"), "{run:?}");
        assert!(!run.stderr.contains("hunter2"), "{run:?}");
    }
}

#[test]
fn init_makes_private_files_and_never_overwrites() {
    let place = Place::empty();
    let dir = place.config_dir();
    let run = place.run(&["init"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    for part in [
        "pveum role add ProxmoxMCPRead --privs '",
        "pveum user add ",
        "pveum acl modify / --users ",
        "pveum user token add ",
        "VM.GuestAgent.Audit",
        "VM.Monitor",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    let critical = fs::read_to_string(dir.join("critical.env")).unwrap();
    assert!(critical.contains("\nPROXMOX_ALLOW_NODE_POWER=disabled\n"));
    assert!(!critical.contains("=enabled"));
    #[cfg(unix)]
    for (path, bits) in
        [(dir.clone(), 0o700), (dir.join(".env"), 0o600), (dir.join("critical.env"), 0o600)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, bits, "{path:?}");
    }
    // What it wrote is a configuration without a fault.
    let config = place.run(&["config"]);
    assert_eq!((config.code, config.stderr.as_str()), (0, ""), "{config:?}");

    fs::write(dir.join(".env"), "PROXMOX_MODE=write\n").unwrap();
    fs::write(dir.join("critical.env"), "# mine\n").unwrap();
    let again = place.run(&["init", "--enable-all"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(again.stdout.matches("kept as it is").count(), 2, "{}", again.stdout);
    assert_eq!(fs::read_to_string(dir.join(".env")).unwrap(), "PROXMOX_MODE=write\n");
    assert_eq!(fs::read_to_string(dir.join("critical.env")).unwrap(), "# mine\n");
}

#[test]
fn init_enable_all_turns_every_flag_on() {
    let place = Place::empty();
    assert_eq!(place.run(&["init", "--enable-all"]).code, 0);
    let (code, config) = place.json(&["config"]);
    assert_eq!(code, 0);
    let on = config["flags_on"].as_array().unwrap().len();
    let critical = fs::read_to_string(place.config_dir().join("critical.env")).unwrap();
    assert_eq!(on, critical.matches("=enabled").count());
    assert!(on > 40 && !critical.contains("=disabled"));
}

#[cfg(unix)]
#[test]
fn init_does_not_follow_a_link_that_is_in_its_way() {
    let place = Place::empty().file("other", "mine");
    let link = place.config_dir().join(".env");
    std::os::unix::fs::symlink(place.config_dir().join("elsewhere"), &link).unwrap();
    assert_eq!(place.run(&["init"]).code, 0);
    assert!(!place.config_dir().join("elsewhere").exists());
}

#[test]
fn config_says_what_holds_and_where_it_came_from() {
    let place = Place::empty()
        .file(".env", "PROXMOX_HOST=pve1\nPROXMOX_TIMEOUT=20\n")
        .file("critical.env", "PROXMOX_ALLOW_CEPH=on\n")
        .env("PROXMOX_TIMEOUT", "30");
    let (code, value) = place.json(&["config", "--set", "PROXMOX_MAX_RETRIES=5"]);
    assert_eq!(code, 0);
    let dir = place.config_dir().display().to_string();
    assert_eq!(value["directory"], dir);
    let variable = |name: &str| {
        let all = value["variables"].as_array().unwrap();
        let found = all.iter().find(|v| v["name"] == name).unwrap();
        format!("{} {}", found["value"].as_str().unwrap(), found["origin"].as_str().unwrap())
    };
    assert_eq!(variable("PROXMOX_HOST"), format!("pve1 {dir}/.env:1"));
    assert_eq!(variable("PROXMOX_TIMEOUT"), "30 environment");
    assert_eq!(variable("PROXMOX_MAX_RETRIES"), "5 command line");
    assert_eq!(variable("PROXMOX_MODE"), "read-only default");
    assert_eq!(value["flags_on"][0]["name"], "PROXMOX_ALLOW_CEPH");
    assert_eq!(value["flags_on"][0]["origin"], format!("{dir}/critical.env:1"));
    let critical = &value["files"][1];
    assert_eq!(critical["sha256"].as_str().unwrap().len(), 64);
    #[cfg(unix)]
    assert_eq!(critical["mode"], "0600");
    let text = place.run(&["config"]).stdout;
    assert!(text.contains("PROXMOX_TIMEOUT") && text.contains("environment"), "{text}");
}

#[test]
fn faults_of_the_configuration_are_one_line_with_file_and_line() {
    let place = Place::empty().file(".env", "\nPROXMOX_MODE=rw\n");
    for args in [&["serve"] as &[&str], &[], &["guests"], &["tools"], &["fingerprint"], &["config"]]
    {
        let run = place.run(args);
        assert_eq!(run.code, 1, "{args:?}: {run:?}");
        let line = run.stderr.trim_end();
        assert!(!line.contains('\n'), "{args:?}: {line}");
        assert!(line.contains(".env:2: PROXMOX_MODE: \"rw\""), "{args:?}: {line}");
        assert!(line.contains("`read-only`, `write`"), "{args:?}: {line}");
    }
    let (code, value) = place.json(&["guests"]);
    assert_eq!((code, &value["error"]["code"]), (1, &"config".into()));
    assert_eq!(value["error"]["line"], 2);
    let (code, value) = place.json(&["check"]);
    assert_eq!((code, &value["ok"]), (1, &false.into()));
    assert_eq!(value["steps"][0]["step"], "configuration");
}

#[test]
fn unknown_names_are_told_and_do_not_stop_anything() {
    let place = Place::empty().file(".env", "PROXMOX_HOTS=pve1\n");
    let run = place.run(&["tools"]);
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains(".env:1: PROXMOX_HOTS"), "{run:?}");
    assert!(run.stderr.contains("did you mean PROXMOX_HOST?"), "{run:?}");
}

#[test]
fn without_a_configuration_the_first_missing_variable_is_named() {
    for args in [&["serve"] as &[&str], &[], &["status"], &["call", "pve_whoami"]] {
        let run = Place::empty().run(args);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{args:?}: {run:?}");
        assert_eq!(run.stderr.trim_end().lines().count(), 1, "{run:?}");
        assert!(run.stderr.contains("PROXMOX_HOST is not set"), "{run:?}");
        assert!(run.stderr.contains("proxmox-mcp init"), "{run:?}");
    }
    let place = Place::empty().env("PROXMOX_HOST", "pve1");
    assert!(place.run(&["serve"]).stderr.contains("PROXMOX_TOKEN_ID is not set"));
}

/// A client may start the server with nothing but its own `env` block, or with nothing at all.
#[test]
fn an_empty_environment_is_a_clear_line() {
    let output = std::process::Command::new(PROGRAM).env_clear().stdin(Stdio::null()).output();
    let run = seen(output.unwrap());
    assert_eq!(run.stdout, "");
    assert!(run.stderr.lines().count() <= 1, "{run:?}");
    assert!(run.code == 0 || run.stderr.contains("PROXMOX_") || run.stderr.contains("HOME"));
}

#[cfg(unix)]
#[test]
fn files_that_others_can_write_stop_the_start() {
    let place = Place::empty().file(".env", "").file("critical.env", "");
    mode(&place.config_dir().join("critical.env"), 0o644);
    let run = place.run(&["tools"]);
    assert!(run.code == 0 && run.stderr.contains("others may read"), "{run:?}");
    mode(&place.config_dir().join("critical.env"), 0o666);
    let run = place.run(&["tools"]);
    assert!(run.code == 1 && run.stderr.contains("everybody may write"), "{run:?}");
}

#[test]
fn tools_lists_what_is_registered() {
    let place = Place::empty();
    let (code, value) = place.json(&["tools"]);
    assert_eq!(code, 0);
    let tools = value["tools"].as_array().unwrap();
    assert_eq!(value["total"], tools.len());
    let sum: u64 = tools.iter().map(|t| t["tokens"].as_u64().unwrap()).sum();
    assert_eq!(value["tokens"], sum);
    for tool in tools {
        assert!(tool["inputSchema"]["type"] == "object" && tool["title"].is_string(), "{tool}");
        assert_eq!(tool["class"], "read", "read-only mode: {tool}");
    }
    let names: Vec<&str> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"pve_overview") && names.contains(&"pve_api_call"));
    let text = place.run(&["tools"]).stdout;
    let markdown = place.run(&["tools", "--markdown"]).stdout;
    for name in &names {
        assert!(text.contains(name) && markdown.contains(&format!("| `{name}` |")), "{name}");
    }
    let (_, core) = place.json(&["tools", "--group", "core"]);
    assert!(core["tools"].as_array().unwrap().iter().all(|t| t["group"] == "core"));
    let writes = Place::empty().env("PROXMOX_MODE", "write").json(&["tools"]).1;
    let call = writes["tools"].as_array().unwrap().iter().find(|t| t["name"] == "pve_api_call");
    assert_eq!(call.unwrap()["class"], "any");
}

#[test]
fn call_explains_a_tool() {
    let run = Place::empty().run(&["call", "pve_list_vms", "--help"]);
    assert_eq!(run.code, 0, "{run:?}");
    for part in ["--status", "--limit", "proxmox-mcp call pve_list_vms", "qemu"] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
}

/// A reader such as `head` that leaves early is no failure.
#[test]
fn a_closed_pipe_is_a_quiet_end() {
    for args in [&["tools", "--json"] as &[&str], &["--help"], &["init", "--json"]] {
        let mut child = Place::empty()
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Gone before the first byte: every write fails.
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}
