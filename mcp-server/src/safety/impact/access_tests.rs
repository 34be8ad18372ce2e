use serde_json::json;

use crate::safety::{facts::Table, testing::impact};

#[test]
fn a_pool_holds_what_is_nested_in_it() {
    let table = Table::new()
        .with("/pools", json!([{"poolid": "a"}, {"poolid": "a/b"}, {"poolid": "ab"}]))
        .with("/pools?poolid=a", json!([{"poolid": "a", "members": []}]))
        .with("/pools?poolid=a%2Fb", json!([{"poolid": "a/b", "members": [{"vmid": 100, "type": "qemu"}, {"storage": "s1", "type": "storage"}]}]))
        .with("/access/acl", json!([
            {"path": "/pool/a/b", "roleid": "R", "ugid": "alice@pve", "type": "user"},
            {"path": "/pool/ab", "roleid": "R", "ugid": "bob@pve", "type": "user"},
        ]))
        .with("/cluster/backup", json!([{"id": "j1", "pool": "a/b"}, {"id": "j2", "pool": "ab"}]));
    let told = impact(&table, "DELETE /pools", json!({"poolid": "a"})).join("\n");
    for line in [
        "no member of the pool can be seen",
        "pool \"a/b\" in it: 2 members: 100, \"s1\"",
        "role \"R\" of \"alice@pve\" on \"/pool/a/b\"",
        "backed up as a pool by \"j1\"",
    ] {
        assert!(told.lines().any(|l| l == line), "{line} is not in\n{told}");
    }
    assert!(!told.contains("bob") && !told.contains("j2"), "{told}");
}
