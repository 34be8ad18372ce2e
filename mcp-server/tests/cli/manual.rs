//! What documents the program: completions, man pages, the reference of the tools.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::place::{Place, commands};

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// Whether a program is there to be asked.
fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[test]
fn completions_know_every_command_and_its_flags() {
    let place = Place::empty();
    for shell in SHELLS {
        let run = place.run(&["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{shell}");
        for word in commands().iter().map(String::as_str).chain([
            "config-dir", // of every command
            "must-exist", // of none: a tool's, which only `call` takes
            "snapshot",
            "status",
            "qemu",
        ]) {
            let there = run.stdout.contains(word);
            assert_eq!(there, word != "must-exist", "{shell}: {word}");
        }
    }
}

#[test]
fn bash_completes_with_what_is_printed() {
    if !has("bash") {
        eprintln!("skipped: no bash here");
        return;
    }
    let place = Place::empty();
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("proxmox-mcp.bash");
    let text = place.run(&["completions", "bash"]).stdout;
    let function =
        text.split("complete -F ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    fs::write(&script, &text).unwrap();
    for (line, wanted, unwanted) in [
        ("gue", &["guests"] as &[&str], "status"),
        ("guests --st", &["--status"], "--node"),
        ("guests --type ", &["qemu", "lxc"], "guests"),
        ("audit ", &["tail", "search", "verify"], "guests"),
        ("completions z", &["zsh"], "bash"),
    ] {
        let mut words: Vec<&str> = line.split(' ').collect();
        words.insert(0, "proxmox-mcp");
        let last = words.len() - 1;
        let quoted: Vec<String> = words.iter().map(|w| format!("'{w}'")).collect();
        let ask = format!(
            ". {}; COMP_WORDS=({}); COMP_CWORD={last}; \
             {function} proxmox-mcp '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display(),
            quoted.join(" "),
            words[last],
            words[last - 1],
        );
        let output = Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap();
        let found = String::from_utf8(output.stdout).unwrap();
        let found: Vec<&str> = found.lines().collect();
        assert!(wanted.iter().all(|w| found.contains(w)), "{line}: {found:?} {:?}", output.stderr);
        assert!(!found.contains(&unwanted), "{line}: {found:?}");
    }
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let place = Place::empty();
    let run = place.run(&["man"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    for part in [".TH proxmox-mcp 1", ".SH SYNOPSIS", "proxmox\\-mcp\\-guests(1)", "claude mcp add"]
    {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    let page = place.run(&["man", "snapshots"]).stdout;
    for part in [".TH proxmox-mcp-snapshots 1", "VMID", "proxmox\\-mcp snapshots 100"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = place.run(&["man", "audit", "tail"]).stdout;
    assert!(page.contains("proxmox\\-mcp audit tail"), "{page}");

    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("share").join("man1");
    let run = place.run(&["man", "--output", pages.to_str().unwrap()]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let mut names: Vec<String> =
        commands().iter().map(|name| format!("proxmox-mcp-{name}.1")).collect();
    names.extend(["proxmox-mcp.1".to_owned(), "proxmox-mcp-audit-tail.1".to_owned()]);
    for name in &names {
        let text = fs::read_to_string(pages.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{name}: {text}");
        assert!(name.matches('-').count() == 1 || text.contains("xample"), "{name}: {text}");
    }
    if has("man") {
        let page = pages.join("proxmox-mcp-guests.1");
        let man = Command::new("man").arg("--warnings").arg("-l").arg(page).output().unwrap();
        assert!(man.status.success() && man.stderr.is_empty(), "{man:?}");
    }
}

#[test]
fn a_manual_that_cannot_be_written_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let run = Place::empty().run(&["man", "--output", file.join("x").to_str().unwrap()]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("proxmox-mcp.1") && run.stderr.contains("--output"), "{run:?}");
}

/// The copy in the repository is what the program prints.
#[test]
fn the_reference_of_the_tools_is_current() {
    let printed = Place::empty().run(&["tools", "--markdown"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tools.md");
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let differs = printed.stdout.lines().zip(kept.lines()).find(|(new, old)| new != old);
    assert!(
        printed.stdout == kept,
        "docs/tools.md is not current, first at {differs:?}; write it anew with \
         `cargo run -p proxmox-mcp -- tools --markdown > docs/tools.md`"
    );
}

/// What is set does not change the reference, and a group's is a part of it.
#[test]
fn the_reference_is_the_same_everywhere() {
    let whole = Place::empty().run(&["tools", "--markdown"]).stdout;
    let other = Place::empty()
        .env("PROXMOX_MODE", "write")
        .env("PROXMOX_TOOLSETS", "core")
        .env("PROXMOX_EXEC", "enabled")
        .run(&["tools", "--markdown"]);
    assert_eq!(other.stdout, whole);
    for (tool, row) in [
        ("pve_list_vms", "| read |"),
        ("pve_guest_delete", "| destructive | vmid, expect_name,"),
        ("pve_ct_exec", "| exec | vmid, command,"),
        ("pve_kernel_list", "| guard |"),
        ("pve_api_call", "| any |"),
    ] {
        let line = whole.lines().find(|l| l.starts_with(&format!("| `{tool}` "))).unwrap();
        assert!(line.contains(row), "{row}: {line}");
    }
    let group = Place::empty().run(&["tools", "--markdown", "--group", "network"]).stdout;
    assert!(group.contains("## network") && !group.contains("## node"), "{group}");
    let table = group.split("## network").nth(1).unwrap();
    assert!(whole.contains(table.trim_end()), "{table}");
}
