//! Kernel pins, in both worlds: with a list of EFI partitions and without.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test code")]

mod support;

use serde_json::{Value, json};
use support::{Node, verb, with};

const OLD: &str = "6.8.12-9-pve";
const NEW: &str = "6.8.12-10-pve";

fn node(with_esps: bool) -> Node {
    let node = Node::new();
    node.program("usr/sbin/proxmox-boot-tool", include_str!("stand-ins/proxmox-boot-tool"));
    for release in [OLD, NEW] {
        node.write(&format!("boot/vmlinuz-{release}"), "kernel");
    }
    if with_esps {
        node.write("etc/kernel/proxmox-boot-uuids", "1111-AAAA\n");
    }
    node
}

fn pin(release: &str, next_boot: bool) -> Value {
    with(with(verb("kernel-pin"), "version", release), "next_boot", next_boot)
}

fn unpin(next_boot: bool) -> Value {
    with(verb("kernel-unpin"), "next_boot", next_boot)
}

/// What will boot, as the boot loader's own file has it.
fn boots(node: &Node) -> String {
    if node.path("etc/kernel/proxmox-boot-uuids").exists() {
        node.read("esp-loader.conf")
    } else {
        node.read("etc/default/grub.d/proxmox-kernel-pin.cfg")
    }
}

#[test]
fn the_list_names_everything() {
    let node = node(false);
    let done = node.done(&verb("kernel-list"));
    assert_eq!(
        done,
        json!({
            "installed": [OLD, NEW], "pinned": null, "next_boot": null,
            "running": "7.0.2-6-pve", "newest": NEW,
        })
    );
}

#[test]
fn a_pin_reaches_the_boot_loader_in_both_worlds() {
    for esps in [true, false] {
        let node = node(esps);
        let done = node.done(&pin(OLD, false));
        assert_eq!((&done["pinned"], &done["next_boot"]), (&json!(OLD), &json!(null)));
        assert!(boots(&node).contains(OLD), "{esps}");
        let done = node.done(&pin(NEW, true));
        assert_eq!((&done["pinned"], &done["next_boot"]), (&json!(OLD), &json!(NEW)));
        assert!(boots(&node).contains(NEW), "{esps}: the one-time pin wins");
        let done = node.done(&unpin(true));
        assert_eq!((&done["pinned"], &done["next_boot"]), (&json!(OLD), &json!(null)));
        let done = node.done(&unpin(false));
        assert_eq!((&done["pinned"], &done["next_boot"]), (&json!(null), &json!(null)));
        assert!(!boots(&node).contains(OLD), "{esps}");
        assert_eq!(node.ask(&unpin(false)).status, 0, "{esps}: nothing pinned is no fault");
    }
}

#[test]
fn a_kernel_that_is_not_installed_is_refused() {
    let node = node(true);
    for release in
        ["9.9.9-1-pve", "-h", "--next-boot", "6.8.12", "6.8.12-9-pve ", "../vmlinuz", "*"]
    {
        let answer = node.ask(&pin(release, false));
        assert_eq!((answer.refused(), answer.status), ("not_found", 1), "{release}");
        assert!(answer.hint().contains(OLD) && answer.hint().contains(NEW));
    }
    let answer = node.ask(&pin("6.8.12-9-pve\n", false));
    assert_eq!((answer.refused(), answer.status), ("bad_request", 2));
    assert_eq!(node.read("boot-tool-calls"), "", "nothing was run");
}

#[test]
fn when_it_does_not_take_effect_the_old_pins_are_back() {
    for (esps, fault) in [
        (false, "fail-update-grub"),
        (false, "lame-pin"),
        (true, "fail-refresh"),
        (true, "skip-refresh"),
        (true, "lame-pin"),
    ] {
        let node = node(esps);
        node.done(&pin(OLD, false));
        node.write(fault, "");
        let answer = node.ask(&pin(NEW, false));
        assert_eq!((answer.refused(), answer.status), ("internal", 3), "{fault}");
        let pinned = node.read("etc/kernel/proxmox-boot-pin");
        if fault == "lame-pin" {
            // The tool does nothing at all, so the way back is unpin alone.
            assert!(answer.hint().contains("could NOT be put back"), "{answer:?}");
        } else {
            assert_eq!(pinned.trim(), OLD, "{fault}");
        }
        // Once the fault is mended the node is as it was.
        std::fs::remove_file(node.path(fault)).unwrap();
        assert_eq!(node.ask(&pin(NEW, false)).status, 0, "{fault}");
        assert!(boots(&node).contains(NEW), "{fault}");
    }
}

#[test]
fn a_fault_that_goes_away_leaves_nothing_behind() {
    let node = node(false);
    // update-grub fails once: the pin is written before it.
    node.program(
        "usr/sbin/proxmox-boot-tool",
        &include_str!("stand-ins/proxmox-boot-tool").replace(
            "then fail \"update-grub: cannot write\" 2; fi",
            "then rm \"$root/fail-update-grub\"; fail \"update-grub: cannot write\" 2; fi",
        ),
    );
    node.write("fail-update-grub", "");
    let answer = node.ask(&pin(OLD, false));
    assert_eq!(answer.refused(), "internal");
    assert_eq!(answer.hint(), "the pins are as they were before");
    assert_eq!(node.read("etc/kernel/proxmox-boot-pin"), "");
    assert_eq!(boots(&node), "");
}

#[test]
fn a_client_that_goes_away_leaves_no_half_pin() {
    let node = node(true);
    let mut guard = node.start();
    guard.send(format!("{}\n", pin(OLD, false)));
    guard.close_input();
    guard.close_output();
    guard.finish();
    assert_eq!(node.read("etc/kernel/proxmox-boot-pin").trim(), OLD);
    assert!(boots(&node).contains(OLD));
}
