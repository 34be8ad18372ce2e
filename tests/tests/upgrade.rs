//! Upgrades and kernels through the tools, really done on a node by its own
//! apt and dpkg, from a repository of its own. What stands in is systemd, and
//! proxmox-boot-tool.
#![cfg(target_os = "linux")]

use std::fs;

use e2e::{Server, eventually, world::World};
use serde_json::{Value, json};

/// Makes a package in two versions, the newer of which brings a kernel, and a
/// repository with the newer ones; installs the older.
const PACKAGES: &str = r#"set -eu
package() { # FOLDER NAME VERSION FIELDS
  rm -rf /tmp/p
  mkdir -p /tmp/p/DEBIAN /tmp/p/usr/lib/systemd/system /tmp/p/usr/share/$2 "$1"
  echo "$3" >/tmp/p/usr/share/$2/version
  case $2 in
    tweb) echo >/tmp/p/usr/lib/systemd/system/tweb.service ;;
    proxmox-kernel-*) mkdir /tmp/p/boot; echo >/tmp/p/boot/vmlinuz-99.0.1-1-pve ;;
  esac
  printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: T <t@example.test>\nDescription: t\n%s' \
    "$2" "$3" "$4" >/tmp/p/DEBIAN/control
  dpkg-deb --root-owner-group --build /tmp/p "$1/$2_$3_all.deb" >/dev/null
}
package /tmp/old tweb 1.0 ''
package /tmp/old proxmox-ve 9.2.0 ''
dpkg -i /tmp/old/*.deb >/dev/null 2>&1
package /srv/good tweb 1.1 'Depends: proxmox-kernel-99.0.1-1-pve-signed
'
package /srv/good proxmox-kernel-99.0.1-1-pve-signed 99.0.1-1 ''
cd /srv/good
for deb in *.deb; do
  dpkg-deb -f "$deb"
  printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$deb" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d' ' -f1)"
done >Packages
printf 'Origin: Test\nLabel: Test\nSuite: local\nDate: Mon, 30 Nov 2026 00:00:00 UTC\nSHA256:\n %s %s Packages\n' \
  "$(sha256sum Packages | cut -d' ' -f1)" "$(stat -c %s Packages)" >Release
rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/srv/good ./' >/etc/apt/sources.list.d/local.list
rm -rf /tmp/p /tmp/old /var/lib/apt/lists/*
"#;
const INVOCATION: &str = "0123456789abcdef0123456789abcdef";
/// Runs the unit as a process of its own; it waits for a sign to begin.
const SYSTEMD_RUN: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
: >/run/unit-log
echo running >/run/unit-state
setsid sh -c '
  while ! [ -e /run/go ]; do sleep 0.05; done
  INVOCATION_ID=0123456789abcdef0123456789abcdef "$@" >/run/unit-log 2>&1
  echo $? >/run/unit-code
  echo exited >/run/unit-state
' sh "$@" >/dev/null 2>&1 </dev/null &
"#;
const SYSTEMCTL: &str = r#"#!/bin/sh
case "$*" in
*Version*) echo '257.8-1~deb13u2' ;;
show*)
  if ! [ -e /run/unit-state ]; then
    printf 'LoadState=not-found\nActiveState=inactive\nSubState=dead\nResult=success\nExecMainStatus=0\nInvocationID=\n'
    exit 0
  fi
  printf 'LoadState=loaded\nActiveState=active\nSubState=%s\nResult=success\nExecMainStatus=%s\n' \
    "$(cat /run/unit-state)" "$(cat /run/unit-code 2>/dev/null || echo 0)"
  echo InvocationID=0123456789abcdef0123456789abcdef
  ;;
esac
"#;
/// Each line of the log, numbered; only those behind the cursor.
const JOURNALCTL: &str = r#"#!/bin/sh
after=0
for word; do
  case $word in --after-cursor=*) after=${word#*=} ;; esac
done
n=0
while IFS= read -r line; do
  n=$((n + 1))
  if [ "$n" -gt "$after" ]; then
    printf '{"MESSAGE":"%s","__CURSOR":"%s"}\n' "$(printf %s "$line" | tr -d '"\\')" "$n"
  fi
done </run/unit-log
"#;

/// A node on which upgrades and pins are allowed, with something to upgrade.
fn world() -> Option<World> {
    let world = World::new()?;
    let node = &world.node;
    for (path, text) in [
        ("/usr/bin/systemd-run", SYSTEMD_RUN),
        ("/usr/bin/systemctl", SYSTEMCTL),
        ("/usr/bin/journalctl", JOURNALCTL),
        (
            "/usr/sbin/proxmox-boot-tool",
            include_str!("../../pve-guard/tests/stand-ins/proxmox-boot-tool"),
        ),
    ] {
        node.write(path, text, 0o755);
    }
    let policy = fs::read_to_string(node.path("/etc/pve-guard/policy.toml")).unwrap();
    let policy = ["upgrade-start", "kernel-pin", "kernel-unpin"]
        .iter()
        .fold(policy, |all, verb| all.replace(&format!("# \"{verb}\""), &format!("\"{verb}\"")))
        .replace("refresh = false", "refresh = true");
    node.write("/etc/pve-guard/policy.toml", &policy, 0o644);
    node.sh(PACKAGES);
    Some(world)
}

fn server(world: &World) -> Server {
    world.server(&[
        ("PROXMOX_ALLOW_NODE_BOOT_CONFIG", "on"),
        ("PROXMOX_ALLOW_NODE_UPGRADE", "enabled"),
    ])
}

#[test]
fn a_node_is_upgraded_as_it_was_agreed_to() {
    let Some(world) = world() else { return };
    let installed = || world.node.sh("dpkg-query -W -f '${Version}' tweb");
    let mut mcp = server(&world);
    assert_eq!(mcp.ok("pve_upgrade_status", json!({"node": "pve1"}))["state"], "never");
    let plan = mcp.ok("pve_upgrade_simulate", json!({"node": "pve1", "refresh": true}));
    let words = plan["summary"].to_string();
    for word in [
        "1 upgraded: tweb 1.0 -> 1.1",
        "1 newly installed: proxmox-kernel-99.0.1-1-pve-signed",
        "services that restart, where they run: tweb.service",
        "kernel 99.0.1-1-pve comes",
        "a reboot is needed afterwards",
    ] {
        assert!(words.contains(word), "{word}: {words}");
    }
    assert_eq!((&plan["reboot_needed"], &plan["problems"]), (&json!(true), &json!([])), "{plan}");
    let hash = plan["plan"].as_str().unwrap();
    let start = |confirm: &str| json!({"node": "pve1", "plan": hash, "confirm": confirm});

    let refused = mcp.refused("pve_upgrade_start", start("yes"));
    assert_eq!((&refused["code"], &refused["confirm"]), (&json!("confirm_required"), &json!(hash)));
    let dry = mcp.ok("pve_upgrade_start", json!({"node": "pve1", "plan": hash, "dry_run": true}));
    assert!(dry["summary"].to_string().contains("tweb"), "{dry}");
    assert_eq!(installed(), "1.0");

    let started = mcp.ok("pve_upgrade_start", start(hash));
    assert_eq!(
        (&started["status"], &started["invocation_id"]),
        (&json!("started"), &json!(INVOCATION))
    );
    let refused = mcp.refused("pve_upgrade_start", start(hash));
    assert_eq!(refused["guard_code"], "busy", "one at a time: {refused}");
    // The unit goes on without the connection by which it was begun.
    drop(mcp);
    let mut mcp = server(&world);
    let status = mcp.ok("pve_upgrade_status", json!({"node": "pve1"}));
    assert_eq!(status["state"], "running", "{status}");
    world.node.write("/run/go", "", 0o644);
    let mut status = Value::Null;
    eventually("the upgrade has ended", || {
        status = mcp.ok("pve_upgrade_status", json!({"node": "pve1"}));
        status["state"] != "running"
    });
    assert_eq!(
        (&status["state"], &status["exit_code"]),
        (&json!("succeeded"), &json!(0)),
        "{status}"
    );
    assert_eq!((&status["plan"], &status["reboot_needed"]), (&json!(hash), &json!(true)));
    assert_eq!(status["kernel"]["newest"], "99.0.1-1-pve");
    assert!(status["lines"].to_string().contains("Setting up tweb (1.1)"), "{status}");
    assert_eq!(installed(), "1.1");
    let later = json!({"node": "pve1", "cursor": status["cursor"]});
    assert_eq!(mcp.ok("pve_upgrade_status", later)["lines"], json!([]));

    // What was agreed to has been done, and is no plan any more.
    let refused = mcp.refused("pve_upgrade_start", start(hash));
    assert_eq!(refused["code"], "digest_changed", "{refused}");
}

#[test]
fn a_kernel_is_pinned_and_unpinned() {
    let Some(world) = world() else { return };
    for kernel in ["6.8.12-9-pve", "7.0.6-2-pve"] {
        world.node.write(&format!("/boot/vmlinuz-{kernel}"), "kernel", 0o644);
    }
    let pinned = || fs::read_to_string(world.node.path("/etc/kernel/proxmox-boot-pin"));
    let mut mcp = server(&world);
    let list = mcp.ok("pve_kernel_list", json!({"node": "pve1"}));
    assert_eq!(list["installed"], json!(["6.8.12-9-pve", "7.0.6-2-pve"]), "{list}");
    assert_eq!((&list["pinned"], &list["newest"]), (&Value::Null, &json!("7.0.6-2-pve")));

    let pin = |version: &str, more: Value| {
        let mut all = json!({"node": "pve1", "version": version, "confirm": version});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let refused = mcp.refused("pve_kernel_pin", pin("1.2.3-4-pve", json!({})));
    assert_eq!(refused["code"], "guard_refused", "{refused}");
    mcp.ok("pve_kernel_pin", pin("6.8.12-9-pve", json!({"dry_run": true})));
    assert!(pinned().is_err());
    let done = mcp.ok("pve_kernel_pin", pin("6.8.12-9-pve", json!({})));
    assert_eq!(
        (&done["before"]["pinned"], &done["after"]["pinned"]),
        (&Value::Null, &json!("6.8.12-9-pve"))
    );
    assert_eq!(pinned().unwrap().trim(), "6.8.12-9-pve");
    let done = mcp.ok("pve_kernel_pin", pin("7.0.6-2-pve", json!({"next_boot": true})));
    assert_eq!(done["after"]["next_boot"], "7.0.6-2-pve", "{done}");
    let grub = fs::read_to_string(world.node.path("/etc/default/grub.d/proxmox-kernel-pin.cfg"));
    assert!(grub.unwrap().contains("7.0.6-2-pve"), "the next boot comes first");
    let done = mcp.ok("pve_kernel_unpin", json!({"node": "pve1", "confirm": "pve1"}));
    assert_eq!(
        (&done["after"]["pinned"], &done["after"]["next_boot"]),
        (&Value::Null, &Value::Null)
    );
    assert!(pinned().is_err());
}
