use serde_json::{Value, json};

use crate::safety::{facts::Table, testing::impact};

fn volume(volid: &str, parent: Option<&str>) -> Value {
    let mut row = json!({"volid": volid, "content": "images", "format": "raw"});
    if let Some(parent) = parent {
        row["parent"] = parent.into();
    }
    row
}

/// 100 is a template with disks on three storages; 101 to 104 are made of it, 105 of another.
fn estate() -> Table {
    Table::new()
        .with("/cluster/resources?type=vm", json!([{"type": "qemu", "vmid": 100, "node": "pve1"}]))
        .with(
            "/nodes/pve1/qemu/100/config",
            json!({
                "template": 1,
                "scsi0": "zfs:base-100-disk-0,size=8G",
                "scsi1": "dir:100/base-100-disk-1.qcow2,size=8G",
                "virtio0": "file=ceph:base-100-disk-2",
                "ide2": "dir:iso/debian.iso,media=cdrom",
            }),
        )
        .with(
            "/nodes/pve1/qemu/101/config",
            json!({"scsi0": "zfs:base-100-disk-0/vm-101-disk-0,size=8G"}),
        )
        .with(
            "/nodes/pve1/storage/zfs/content",
            json!([
                volume("zfs:base-100-disk-0", None),
                volume("zfs:base-100-disk-0/vm-101-disk-0", Some("base-100-disk-0@__base__")),
                volume("zfs:base-1000-disk-0/vm-105-disk-0", Some("base-1000-disk-0@__base__")),
                volume("zfs:vm-106-disk-0", None),
                // A template that is itself linked, and a clone of it.
                volume("zfs:base-1000-disk-0/base-107-disk-0", None),
                volume("zfs:base-107-disk-0/vm-108-disk-0", None),
            ]),
        )
        .with(
            "/nodes/pve1/storage/dir/content",
            json!([
                volume("dir:100/base-100-disk-1.qcow2", None),
                volume(
                    "dir:100/base-100-disk-1.qcow2/102/vm-102-disk-0.qcow2",
                    Some("../100/base-100-disk-1.qcow2")
                ),
            ]),
        )
        // Only `parent` says it.
        .with(
            "/nodes/pve1/storage/ceph/content",
            json!([volume("ceph:vm-103-disk-0", Some("base-100-disk-2@__base__"))]),
        )
}

fn lines(call: &str, params: Value) -> String {
    impact(&estate(), call, params).join("\n")
}

#[test]
fn who_is_linked_to_a_template_is_told_before_it_is_deleted() {
    let told = lines("DELETE /nodes/pve1/qemu/100", json!({}));
    for line in [
        "linked clones that cannot do without it: guests 101, 102, 103",
        "guest 101 is linked by \"zfs:base-100-disk-0/vm-101-disk-0\"",
    ] {
        assert!(told.lines().any(|l| l == line), "{line} is not in\n{told}");
    }
    assert!(!told.contains("105") && !told.contains("106"), "{told}");
    // A restore over it does the same.
    let over = json!({"vmid": 100, "archive": "dir:backup/vzdump-qemu-100-2026_01_01-00_00_00.vma.zst", "force": 1});
    assert!(lines("POST /nodes/pve1/qemu", over).contains("guests 101, 102, 103"));
}

#[test]
fn who_is_linked_to_one_volume_or_disk_is_told() {
    for (call, params, want) in [
        ("DELETE /nodes/pve1/storage/zfs/content/zfs:base-100-disk-0", json!({}), "guests 101"),
        ("DELETE /nodes/pve1/storage/zfs/content/base-100-disk-0", json!({}), "guests 101"),
        (
            "DELETE /nodes/pve1/storage/dir/content/dir:100/base-100-disk-1.qcow2",
            json!({}),
            "guests 102",
        ),
        (
            "DELETE /nodes/pve1/storage/zfs/content/zfs:base-1000-disk-0",
            json!({}),
            "guests 105, 107",
        ),
        (
            "DELETE /nodes/pve1/storage/zfs/content/zfs:base-1000-disk-0/base-107-disk-0",
            json!({}),
            "guests 108",
        ),
        ("DELETE /nodes/pve1/storage/zfs/content/zfs:base-7-disk-0", json!({}), "no linked clone"),
        ("PUT /nodes/pve1/qemu/100/config", json!({"delete": "scsi1"}), "guests 102"),
        ("PUT /nodes/pve1/qemu/100/config", json!({"delete": ["cores", "scsi1"]}), "guests 102"),
        ("PUT /nodes/pve1/qemu/100/unlink", json!({"idlist": "virtio0", "force": 1}), "guests 103"),
        (
            "POST /nodes/pve1/qemu/100/move_disk",
            json!({"disk": "scsi0", "storage": "x", "delete": 1}),
            "guests 101",
        ),
    ] {
        let told = lines(call, params);
        let found = told.lines().any(|l| l.ends_with(want) || l.starts_with(want));
        assert!(found, "{call}: {want} is not in\n{told}");
    }
    for (call, params) in [
        ("DELETE /nodes/pve1/storage/zfs/content/zfs:vm-106-disk-0", json!({})),
        ("PUT /nodes/pve1/qemu/100/config", json!({"cores": 2})),
        ("PUT /nodes/pve1/qemu/100/config", json!({"delete": "ide2"})),
    ] {
        let told = lines(call, params);
        assert!(!told.contains("linked"), "{call}: {told}");
    }
}

#[test]
fn a_linked_clone_says_what_it_reads_from() {
    for call in ["DELETE /nodes/pve1/qemu/101", "POST /nodes/pve1/qemu/101/template"] {
        let told = lines(call, json!({}));
        assert!(told.contains("is itself a linked clone of guest 100"), "{call}: {told}");
    }
}

#[test]
fn a_storage_or_guest_that_cannot_be_read_is_told() {
    let table = Table::new().with(
        "/nodes/pve1/lxc/200/config",
        json!({"template": 1, "rootfs": "zfs:basevol-200-disk-0,size=1G"}),
    );
    let told = impact(&table, "DELETE /nodes/pve1/lxc/200", json!({})).join("\n");
    assert!(told.contains("linked clones on the storage \"zfs\": cannot be seen"), "{told}");
    let told = impact(&table, "DELETE /nodes/pve1/lxc/201", json!({})).join("\n");
    assert!(told.contains("linked clones: cannot be seen"), "{told}");
}
