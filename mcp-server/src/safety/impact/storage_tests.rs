use serde_json::json;

use crate::safety::{facts::Table, testing::impact};

#[test]
fn what_needs_a_storage_is_told() {
    let place = |node: &str, status: &str| json!({"storage": "nfs", "node": node, "shared": 1, "status": status});
    let table = Table::new()
        .with("/cluster/resources?type=storage", json!([place("pve1", "unknown"), place("pve2", "available")]))
        .with("/nodes/pve2/storage/nfs/content", json!([
            {"volid": "nfs:100/vm-100-disk-0.raw", "content": "images", "vmid": 100},
            {"volid": "nfs:101/vm-101-disk-0.raw", "content": "rootdir", "vmid": "101"},
            {"volid": "nfs:backup/vzdump-qemu-9-2026_01_01-00_00_00.vma", "content": "backup", "vmid": 109},
        ]))
        .with("/cluster/ha/resources", json!([{"sid": "vm:100"}, {"sid": "ct:102"}]))
        .with("/cluster/replication", json!([{"id": "101-0", "guest": 101}, {"id": "102-0", "guest": 102}]))
        .with("/cluster/backup", json!([
            {"id": "b1", "storage": "nfs"},
            {"id": "b2", "storage": "x", "fleecing": {"enabled": 1, "storage": "nfs"}},
            {"id": "b3", "storage": "x", "fleecing": "enabled=1,storage=nfs"},
            {"id": "b4", "storage": "nfs2"},
        ]));
    let told = impact(&table, "DELETE /storage/nfs", json!({})).join("\n");
    for line in [
        "disks of 2 guests: 100, 101",
        "managed by HA: 100",
        "replicated by 101-0",
        "1 backups are on it",
        "backup jobs write to it: \"b1\"",
        "backup jobs keep their fleecing images on it: \"b2\", \"b3\"",
    ] {
        assert!(told.lines().any(|l| l == line), "{line} is not in\n{told}");
    }
}
