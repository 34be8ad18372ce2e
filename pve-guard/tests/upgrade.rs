//! Upgrades, with stand-ins for apt-get and systemd. What apt, dpkg and
//! systemd really do is tried on the booted node.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test code")]

mod support;

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{Answer, Node, PACKAGES, verb, with};

const APT_GET: &str = r#"#!/bin/sh
root=${0%/usr/bin/apt-get}
printf '%s\n' "$*" >>"$root/apt-calls"
env >>"$root/apt-environment"
case " $* " in
*" update "*) cat "$root/apt-update" >&2 2>/dev/null; exit $(cat "$root/apt-update-status" 2>/dev/null || echo 0) ;;
*" --simulate "*) cat "$root/apt-simulate"; exit $(cat "$root/apt-simulate-status" 2>/dev/null || echo 0) ;;
*" --print-uris "*) cat "$root/apt-uris" ;;
*) cat "$root/apt-run" 2>/dev/null; exit $(cat "$root/apt-run-status" 2>/dev/null || echo 0) ;;
esac
"#;
const SYSTEMCTL: &str = r#"#!/bin/sh
root=${0%/usr/bin/systemctl}
printf '%s\n' "$*" >>"$root/systemctl-calls"
case "$*" in
*Version*) echo "257.8-1~deb13u2" ;;
show*)
  cat "$root/systemctl-show"
  # What happens right after systemd has answered.
  for next in systemctl-show var/lib/pve-guard/upgrade.json; do
    [ ! -e "$root/$next.next" ] || mv "$root/$next.next" "$root/$next"
  done
  ;;
esac
"#;
const SYSTEMD_RUN: &str = r#"#!/bin/sh
root=${0%/usr/bin/systemd-run}
printf '%s\n' "$@" >"$root/systemd-run-args"
cp "$root/systemctl-show-running" "$root/systemctl-show"
"#;
const JOURNALCTL: &str = r#"#!/bin/sh
root=${0%/usr/bin/journalctl}
printf '%s\n' "$@" >"$root/journalctl-args"
cat "$root/journal"
"#;
const SIMULATION: &str = "\
Reading package lists...
The following packages have been kept back:
  held
Inst tnew (1.0 Test:1/stable [all])
Inst proxmox-kernel-7.0.6-2-pve-signed (7.0.6-2 Proxmox:13/stable [amd64])
Inst bash [5.2-1] (5.2-2 Debian:13.3/stable [amd64])
Remv libold1 [1.0]
Conf tnew (1.0 Test:1/stable [all])
";
const URIS: &str = "After this operation, 102 kB of additional disk space will be used.\n\
    'http://x/a.deb' a.deb 1000 SHA256:0\n'http://x/b.deb' b.deb 234 SHA256:0\n";
const UNKNOWN_UNIT: &str = "LoadState=not-found\nActiveState=inactive\nSubState=dead\n\
    Result=success\nExecMainStatus=0\nInvocationID=\n";
const RUNNING_UNIT: &str = "LoadState=loaded\nActiveState=active\nSubState=running\n\
    Result=success\nExecMainStatus=0\nInvocationID=0123456789abcdef0123456789abcdef\n";
const INVOCATION: &str = "0123456789abcdef0123456789abcdef";

fn node() -> Node {
    let node = Node::new();
    node.program("usr/bin/apt-get", APT_GET);
    node.program("usr/bin/systemctl", SYSTEMCTL);
    node.program("usr/bin/systemd-run", SYSTEMD_RUN);
    node.program("usr/bin/journalctl", JOURNALCTL);
    node.program("usr/sbin/proxmox-boot-tool", include_str!("stand-ins/proxmox-boot-tool"));
    node.write("boot/vmlinuz-7.0.2-6-pve", "kernel");
    node.write("apt-simulate", SIMULATION);
    node.write("apt-uris", URIS);
    node.write("systemctl-show", UNKNOWN_UNIT);
    node.write("systemctl-show-running", RUNNING_UNIT);
    node.write("var/lib/apt/lists/x_Packages", "lists");
    node
}

fn plan(node: &Node) -> Value {
    node.done(&verb("upgrade-simulate"))
}

fn start(node: &Node, plan: &Value) -> Answer {
    node.ask(&with(verb("upgrade-start"), "plan", plan["plan"].clone()))
}

/// Runs what the unit runs.
fn unit(node: &Node, plan: &Value) -> i32 {
    let output = Command::new(support::GUARD)
        .args(["--upgrade-unit", plan["plan"].as_str().unwrap()])
        .env_clear()
        .env("PVE_GUARD_TEST_ROOT", node.path(""))
        .env("INVOCATION_ID", INVOCATION)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    node.write("unit-output", &String::from_utf8_lossy(&output.stdout));
    output.status.code().unwrap()
}

fn status(node: &Node) -> Value {
    node.write("journal", "");
    node.done(&verb("upgrade-status"))
}

fn kinds(plan: &Value) -> Vec<&str> {
    let problems = plan["problems"].as_array().unwrap();
    problems.iter().map(|problem| problem["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_simulation_says_all_that_would_be_done() {
    let node = node();
    let plan = plan(&node);
    assert_eq!(plan["install"][1]["name"], "tnew");
    assert_eq!(
        plan["upgrade"],
        json!([{ "name": "bash", "arch": "amd64", "from": "5.2-1", "to": "5.2-2",
                 "origin": "Debian:13.3/stable" }])
    );
    assert_eq!(plan["remove"], json!([{ "name": "libold1", "version": "1.0" }]));
    assert_eq!(plan["kept_back"], json!(["held"]));
    assert_eq!((&plan["download_bytes"], &plan["disk_bytes"]), (&json!(1234), &json!(102_000)));
    assert_eq!(
        plan["kernel"],
        json!({ "running": "7.0.2-6-pve", "newest": "7.0.2-6-pve", "after": "7.0.6-2-pve" })
    );
    assert_eq!((&plan["proxmox_ve_stays"], &plan["reboot_needed"]), (&json!(true), &json!(true)));
    assert_eq!(plan["problems"], json!([]));
    assert_eq!(plan["plan"].as_str().unwrap().len(), 64);
    let calls = node.read("apt-calls");
    assert!(
        calls.lines().all(|call| call.contains("dist-upgrade") && !call.contains("autoremove"))
    );
    assert!(calls.lines().all(|call| call.contains("APT::Get::AutomaticRemove=false")));
}

#[test]
fn what_speaks_against_an_upgrade_is_found_and_the_start_refused() {
    let half = PACKAGES.replace(
        "Version: 9.2.11",
        "Version: 9.2.11\n\nPackage: broken\nStatus: install ok half-configured\nVersion: 1",
    );
    let cases: [(&str, &str, String); 6] = [
        ("vital_removed", "apt-simulate", format!("{SIMULATION}Remv proxmox-ve [9.2.0]\n")),
        ("vital_removed", "apt-simulate", format!("{SIMULATION}Remv bash [5.2-1]\n")),
        (
            "vital_removed",
            "apt-simulate",
            format!("{SIMULATION}Remv proxmox-kernel-7.0.2-6-pve-signed [7.0.2-6]\n"),
        ),
        (
            "downgrade",
            "apt-simulate",
            format!("{SIMULATION}Inst tp [1.1] (1.0 Test:1/stable [all])\n"),
        ),
        ("half_configured", "var/lib/dpkg/status", half),
        ("nothing", "apt-simulate", String::new()),
    ];
    for (kind, file, text) in cases {
        let node = node();
        node.write(file, &text);
        let plan = plan(&node);
        assert_eq!(kinds(&plan), [kind]);
        let answer = start(&node, &plan);
        assert_eq!((answer.refused(), answer.status), ("preflight", 1), "{kind}");
        assert!(!node.path("systemd-run-args").exists());
        assert_eq!(unit(&node, &plan), 1, "the unit looks again");
        assert_eq!(status(&node)["result"], "preflight");
    }
    let node = node();
    node.write("apt-simulate", &format!("{SIMULATION}Remv proxmox-ve [9.2.0]\n"));
    let plan = plan(&node);
    assert_eq!(plan["proxmox_ve_stays"], false);
    assert!(start(&node, &plan).message().contains("proxmox-ve"));
}

#[test]
fn a_run_of_dpkg_that_was_cut_off_is_seen() {
    let node = node();
    node.write("var/lib/dpkg/updates/0001", "");
    assert_eq!(kinds(&plan(&node)), ["half_configured"]);
}

#[test]
fn too_little_room_to_boot_from_is_seen() {
    let node = node();
    let mut esp = vec![0_u8; 4096];
    esp[11..13].copy_from_slice(&512_u16.to_le_bytes());
    esp[13] = 1;
    esp[48..50].copy_from_slice(&1_u16.to_le_bytes());
    esp[82..90].copy_from_slice(b"FAT32   ");
    esp[512..516].copy_from_slice(&0x4161_5252_u32.to_le_bytes());
    esp[996..1000].copy_from_slice(&0x6141_7272_u32.to_le_bytes());
    esp[1000..1004].copy_from_slice(&100_u32.to_le_bytes());
    std::fs::create_dir_all(node.path("dev/disk/by-uuid")).unwrap();
    std::fs::write(node.path("dev/disk/by-uuid/1111-AAAA"), &esp).unwrap();
    node.write("etc/kernel/proxmox-boot-uuids", "1111-AAAA\n");
    assert_eq!(plan(&node)["problems"], json!([]), "two small images fit");
    node.write("boot/initrd.img-7.0.2-6-pve", &"x".repeat(60_000));
    assert_eq!(kinds(&plan(&node)), ["space"]);
}

#[test]
fn sources_of_several_releases_are_refused_and_named() {
    let node = node();
    node.write(
        "etc/apt/sources.list.d/pve.sources",
        "Types: deb\nURIs: http://download.proxmox.com/debian/pve\nSuites: bookworm\n",
    );
    let answer = node.ask(&verb("upgrade-simulate"));
    assert_eq!((answer.refused(), answer.status), ("preflight", 1));
    for part in ["/etc/apt/sources.list: trixie", "/etc/apt/sources.list.d/pve.sources: bookworm"] {
        assert!(answer.message().contains(part), "{answer:?}");
    }
    node.write(
        "etc/apt/sources.list.d/pve.sources",
        "Types: deb\nURIs: http://x\nSuites: bookworm\nEnabled: no\n",
    );
    assert_eq!(node.ask(&verb("upgrade-simulate")).status, 0);
    node.write("etc/apt/sources.list", "deb http://deb.debian.org/debian forky main\n");
    assert_eq!(node.ask(&verb("upgrade-simulate")).refused(), "preflight");
}

#[test]
fn a_repository_without_subscription_stops_it_until_that_is_mended() {
    let node = node();
    node.write(
        "etc/apt/sources.list.d/pve-enterprise.sources",
        "Types: deb\nURIs: https://enterprise.proxmox.com/debian/pve\nSuites: trixie\n",
    );
    node.write(
        "apt-update",
        "E: Failed to fetch https://enterprise.proxmox.com/debian/pve/dists/trixie/InRelease  401  Unauthorized [IP: 192.0.2.1 443]\n",
    );
    node.write("apt-update-status", "100");
    let request = with(verb("upgrade-simulate"), "refresh", true);
    let answer = node.ask(&request);
    assert_eq!((answer.refused(), answer.status), ("preflight", 1));
    for part in ["enterprise.proxmox.com", "401", "pve-enterprise.sources", "status 100"] {
        assert!(answer.message().contains(part), "{part}: {answer:?}");
    }
    assert!(answer.hint().contains("no-subscription"));
    let known = plan(&node);
    assert_eq!(kinds(&known), ["repository"]);
    assert_eq!(start(&node, &known).refused(), "preflight");
    node.write("apt-update-status", "0");
    assert_eq!(node.done(&request)["problems"], json!([]));
    assert!(node.read("apt-calls").contains("Acquire::AllowReleaseInfoChange=false"));
}

#[test]
fn a_repository_that_has_become_another_release_stops_it() {
    let node = node();
    node.write("apt-update", "E: Repository 'http://x trixie InRelease' changed its 'Suite' value from 'stable' to 'oldstable'\n");
    node.write("apt-update-status", "100");
    let answer = node.ask(&with(verb("upgrade-simulate"), "refresh", true));
    assert_eq!(answer.refused(), "preflight");
    assert!(answer.message().contains("changed its 'Suite'"));
}

#[test]
fn apt_that_finds_no_way_is_refused_with_its_reason() {
    let node = node();
    node.program(
        "usr/bin/apt-get",
        "#!/bin/sh\necho 'E: dpkg was interrupted, you must manually run dpkg' >&2\nexit 100\n",
    );
    let answer = node.ask(&verb("upgrade-simulate"));
    assert_eq!((answer.refused(), answer.status), ("preflight", 1));
    assert!(answer.message().contains("dpkg was interrupted"), "{answer:?}");
}

#[test]
fn only_the_plan_that_was_agreed_to_is_started() {
    let node = node();
    let agreed = plan(&node);
    for bad in ["", "x", "ABCDEF", "--help", "$HOME", "%n"] {
        let answer = node.ask(&with(verb("upgrade-start"), "plan", bad));
        assert!(["argument", "bad_request"].contains(&answer.refused()), "{bad}");
    }
    node.write("apt-simulate", &SIMULATION.replace("5.2-2", "5.2-3"));
    let answer = start(&node, &agreed);
    assert_eq!((answer.refused(), answer.status), ("plan_changed", 1));
    assert!(!node.path("systemd-run-args").exists());
    assert_eq!(unit(&node, &agreed), 1);
    assert_eq!(status(&node)["result"], "plan_changed");
    assert!(
        !node
            .read("apt-calls")
            .lines()
            .any(|call| call.contains(" -y dist-upgrade") && !call.contains("print-uris"))
    );
}

#[test]
fn it_is_started_in_a_unit_of_its_own() {
    let node = node();
    let agreed = plan(&node);
    let done = start(&node, &agreed).done();
    assert_eq!(done, json!({ "unit": "pve-guard-upgrade.service", "invocation_id": INVOCATION }));
    let args = node.read("systemd-run-args");
    for arg in [
        "--unit=pve-guard-upgrade.service",
        "--property=KillMode=process",
        "--property=RemainAfterExit=yes",
        "--expand-environment=no",
        "--upgrade-unit",
    ] {
        assert!(args.lines().any(|line| line == arg), "{arg}: {args}");
    }
    assert_eq!(args.lines().last(), agreed["plan"].as_str());
    assert!(node.read("systemctl-calls").contains("reset-failed pve-guard-upgrade.service"));
    let answer = start(&node, &agreed);
    assert_eq!((answer.refused(), answer.status), ("busy", 1), "one at a time");
}

#[test]
fn the_unit_upgrades_and_leaves_its_result() {
    let node = node();
    let agreed = plan(&node);
    node.write("apt-run", "Configuration file '/etc/tp.conf'\nSetting up bash\n");
    assert_eq!(status(&node)["state"], "never");
    assert_eq!(unit(&node, &agreed), 0);
    assert!(node.read("unit-output").contains("Setting up bash"), "the journal hears of it");
    let now = status(&node);
    assert_eq!(
        (&now["state"], &now["result"], &now["exit_code"]),
        (&json!("succeeded"), &json!("success"), &json!(0))
    );
    assert_eq!(now["kept_conffiles"], json!(["/etc/tp.conf"]));
    assert_eq!((&now["plan"], &now["invocation_id"]), (&agreed["plan"], &json!(INVOCATION)));
    let call = node.read("apt-calls").lines().last().unwrap().to_owned();
    for part in [
        "--force-confdef",
        "--force-confold",
        "Dpkg::Use-Pty=false",
        "-y dist-upgrade",
        "Dir::State::lists=",
    ] {
        assert!(call.contains(part), "{part}: {call}");
    }
    let environment = node.read("apt-environment");
    for line in [
        "DEBIAN_FRONTEND=noninteractive",
        "UCF_FORCE_CONFFOLD=1",
        "NEEDRESTART_SUSPEND=1",
        "APT_LISTCHANGES_FRONTEND=none",
    ] {
        assert!(environment.contains(line), "{line}");
    }
    assert!(!environment.contains("INVOCATION_ID"));
}

#[test]
fn a_failure_and_a_cut_are_never_success() {
    let node = node();
    let agreed = plan(&node);
    node.write(
        "apt-run",
        "dpkg: error processing package bash\nE: Sub-process dpkg returned an error code (1)\n",
    );
    node.write("apt-run-status", "100");
    assert_eq!(unit(&node, &agreed), 1);
    let now = status(&node);
    assert_eq!((&now["state"], &now["exit_code"]), (&json!("failed"), &json!(100)));
    assert!(now["message"].as_str().unwrap().contains("dpkg: error"));
    // As if the node had been restarted in the middle.
    let mut record: Value =
        serde_json::from_str(&node.read("var/lib/pve-guard/upgrade.json")).unwrap();
    record["end"] = Value::Null;
    node.write("var/lib/pve-guard/upgrade.json", &record.to_string());
    node.write("proc/sys/kernel/random/boot_id", "boot-2\n");
    let now = status(&node);
    assert_eq!(now["state"], "unknown");
    assert!(now["message"].as_str().unwrap().contains("restarted"), "{now}");
}

#[test]
fn a_unit_that_ends_or_begins_while_it_is_asked_about_is_told_truly() {
    const RECORD: &str = "var/lib/pve-guard/upgrade.json";
    let node = node();
    let agreed = plan(&node);
    assert_eq!(unit(&node, &agreed), 0);
    let ended = node.read(RECORD);
    let mut record: Value = serde_json::from_str(&ended).unwrap();
    record["end"] = Value::Null;
    let begun = record.to_string();
    // The result is written and the unit ends after the first look.
    node.write(RECORD, &begun);
    node.write("systemctl-show", RUNNING_UNIT);
    node.write("systemctl-show.next", UNKNOWN_UNIT);
    node.write(&format!("{RECORD}.next"), &ended);
    let state = status(&node)["state"].clone();
    assert!(["running", "succeeded"].map(Value::from).contains(&state), "{state}");
    assert_eq!(status(&node)["state"], "succeeded");
    // It had ended when systemd was asked: what it left is whole.
    node.write(RECORD, &begun);
    node.write(&format!("{RECORD}.next"), &ended);
    assert_eq!(status(&node)["state"], "succeeded");
    // The next one begins after systemd has answered.
    node.write("systemctl-show", UNKNOWN_UNIT);
    node.write("systemctl-show.next", RUNNING_UNIT);
    node.write(&format!("{RECORD}.next"), &begun);
    assert_eq!(status(&node)["state"], "running");
}

#[test]
fn the_journal_is_read_from_where_it_was_left() {
    let node = node();
    unit(&node, &plan(&node));
    let entry = |n: u32| format!("{{\"__CURSOR\":\"s=1;i={n}\",\"MESSAGE\":\"line {n}\"}}\n");
    node.write("journal", &format!("{}{}", entry(1), entry(2)));
    let now = node.done(&verb("upgrade-status"));
    assert_eq!((&now["lines"], &now["cursor"]), (&json!(["line 1", "line 2"]), &json!("s=1;i=2")));
    node.write("journal", "");
    let now = node.done(&with(verb("upgrade-status"), "cursor", "s=1;i=2"));
    assert_eq!((&now["lines"], &now["cursor"]), (&json!([]), &json!("s=1;i=2")));
    let args = node.read("journalctl-args");
    assert!(args.contains("--after-cursor=s=1;i=2"), "{args}");
    assert!(args.contains(&format!("_SYSTEMD_INVOCATION_ID={INVOCATION}")));
    for bad in ["-x y", "a b", "$(id)", "ü"] {
        let answer = node.ask(&with(verb("upgrade-status"), "cursor", bad));
        assert_eq!((answer.refused(), answer.status), ("argument", 1), "{bad}");
    }
}

#[test]
fn a_held_lock_is_waited_for_and_its_holder_named() {
    let node = node();
    let agreed = plan(&node);
    node.write("var/lib/dpkg/lock-frontend", "");
    let holder = |seconds: &str| {
        let path = node.path("var/lib/dpkg/lock-frontend");
        let script = "import fcntl,sys,time\nf=open(sys.argv[1],'a')\nfcntl.lockf(f,fcntl.LOCK_EX)\nprint('held',flush=True)\ntime.sleep(float(sys.argv[2]))";
        let mut child = Command::new("python3")
            .args(["-c", script, path.to_str().unwrap(), seconds])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        use std::io::BufRead as _;
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        child
    };
    let mut child = holder("100");
    let answer = start(&node, &agreed);
    assert_eq!((answer.refused(), answer.status), ("busy", 1));
    let who = format!("process {} (python3)", child.id());
    assert!(answer.message().contains(&who), "{answer:?}");
    assert!(answer.lines[0]["progress"]["message"].as_str().unwrap().contains(&who));
    assert!(child.try_wait().unwrap().is_none(), "the holder is left alone");
    assert!(node.path("var/lib/dpkg/lock-frontend").exists());
    assert_eq!(unit(&node, &agreed), 1);
    assert_eq!(status(&node)["result"], "busy");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut child = holder("0.5");
    assert_eq!(start(&node, &agreed).status, 0, "a lock that goes away in time is no hindrance");
    child.wait().unwrap();
}
