use serde_json::json;

use crate::safety::{facts::Table, testing::impact};

#[test]
fn staged_fabrics_are_shown_whole() {
    let none = || {
        ["zones", "vnets", "controllers"].iter().fold(Table::new(), |table, what| {
            table.with(&format!("/cluster/sdn/{what}"), json!([]))
        })
    };
    let table = none().with("/cluster/sdn/fabrics/all?pending=1", json!({
        "fabrics": [{"id": "f1", "protocol": "ospf", "state": "changed", "pending": {"area": "0.0.0.9"}}, {"id": "f2"}],
        "nodes": [{"fabric_id": "f1", "node_id": "pve1", "state": "deleted"}],
    }));
    for call in ["PUT /cluster/sdn", "POST /cluster/sdn/rollback"] {
        assert_eq!(
            impact(&table, call, json!({})),
            [
                "staged: fabric \"f1\" \"changed\", \"area\" \"0.0.0.9\"",
                "staged: fabric node \"pve1 of f1\" \"deleted\"",
            ]
        );
    }
    let told = impact(&none(), "PUT /cluster/sdn", json!({}));
    assert_eq!(told, ["staged fabrics: cannot be seen"]);
}
