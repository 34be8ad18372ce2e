use serde_json::json;

use crate::safety::{facts::Table, testing::impact};

#[test]
fn the_guests_that_a_job_alone_backs_up_are_told() {
    let table = Table::new()
        .with(
            "/cluster/resources?type=vm",
            json!([
                {"type": "qemu", "vmid": 100, "node": "a", "pool": "p"},
                {"type": "lxc", "vmid": 101, "node": "a"},
                {"type": "lxc", "vmid": 102, "node": "b"},
            ]),
        )
        .with(
            "/cluster/backup",
            json!([
                {"id": "all", "all": 1, "exclude": "102"},
                {"id": "pool", "pool": "p"},
                {"id": "off", "vmid": "101", "enabled": 0},
                {"id": "elsewhere", "vmid": "101,102", "node": "b"},
            ]),
        );
    for (job, want) in [
        ("all", &["it backs up 2 guests: 100, 101", "in no other backup job: 101"][..]),
        ("pool", &["it backs up 1 guests: 100"]),
        ("elsewhere", &["it backs up 1 guests: 102", "in no other backup job: 102"]),
        ("off", &["it backs up no guest that can be seen"]),
    ] {
        assert_eq!(
            impact(&table, &format!("DELETE /cluster/backup/{job}"), json!({})),
            want,
            "{job}"
        );
    }
    let told = impact(&Table::new(), "DELETE /cluster/backup/x", json!({}));
    assert_eq!(told, ["the guests of the job: cannot be seen"]);
}
