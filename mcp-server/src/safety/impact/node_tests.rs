use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    Code, Error, Result,
    pve::{ApiPath, Params},
    safety::{
        State,
        facts::Table,
        impact::of,
        testing::{impact, operation},
    },
};

/// Nodes as `name`, whether it is on, votes.
fn cluster(nodes: &[(&str, bool, u32)]) -> Table {
    let mut status: Vec<Value> = vec![json!({"type": "cluster", "name": "c", "quorate": 1})];
    status.extend(nodes.iter().map(
        |(name, on, _)| json!({"type": "node", "name": name, "online": u8::from(*on), "local": u8::from(*name == "a")}),
    ));
    // The votes come as text.
    let votes: Vec<Value> = nodes
        .iter()
        .map(|(name, _, votes)| json!({"node": name, "quorum_votes": votes.to_string()}))
        .collect();
    Table::new()
        .with("/cluster/status", status.into())
        .with("/cluster/config/nodes", votes.into())
        .with("/cluster/config/qdevice", json!({}))
}

fn down(table: &Table, node: &str) -> String {
    let path = format!("POST /nodes/{node}/status");
    impact(table, &path, json!({"command": "shutdown"})).join("\n")
}

#[test]
fn quorum_is_counted_in_votes() {
    let keeps = "the cluster keeps its quorum";
    let loses = "the cluster LOSES ITS QUORUM";
    for (nodes, word) in [
        (&[("a", true, 1), ("b", true, 1), ("c", true, 1)][..], keeps),
        (&[("a", true, 1), ("b", true, 1), ("c", false, 1)], loses),
        (&[("a", true, 1), ("b", true, 1)], loses),
        // Two votes of four are no majority, though two of three nodes stay.
        (&[("a", true, 2), ("b", true, 1), ("c", true, 1)], loses),
        (&[("a", true, 1), ("b", true, 2)], keeps),
        (&[("a", true, 1), ("b", true, 1), ("c", true, 1), ("d", true, 1)], keeps),
        (&[("a", true, 0), ("b", true, 1)], keeps),
    ] {
        for name in ["a", "localhost"] {
            let told = down(&cluster(nodes), name);
            assert!(told.contains(word), "{nodes:?}: {told}");
        }
    }
    let alone = down(&cluster(&[("a", true, 1)]), "a");
    assert!(!alone.contains("QUORUM") && !alone.contains("quorum"), "{alone}");
}

#[test]
fn a_qdevice_counts() {
    let two = || cluster(&[("a", true, 1), ("b", true, 1)]);
    for (status, word) in [
        (json!({"State": "Connected", "Algorithm": "Fifty-Fifty split"}), "keeps its quorum"),
        (json!({"State": "Connected"}), "keeps its quorum"),
        (json!({"State": "Disconnected", "Algorithm": "ffsplit"}), "LOSES ITS QUORUM"),
    ] {
        let told = down(&two().with("/cluster/config/qdevice", status.clone()), "a");
        assert!(told.contains(word) && told.contains("QDevice"), "{status}: {told}");
    }
    // The last man standing outvotes the others.
    let three = cluster(&[("a", true, 1), ("b", true, 1), ("c", false, 1)]).with(
        "/cluster/config/qdevice",
        json!({"State": "Connected", "Algorithm": "Last man standing"}),
    );
    let told = down(&three, "a");
    assert!(
        told.contains("counts for 2 of the votes") && told.contains("keeps its quorum"),
        "{told}"
    );
    let told = down(&three.with("/cluster/config/qdevice", json!({"State": "Connecting"})), "a");
    assert!(told.contains("IS NOT CONNECTED") && told.contains("LOSES ITS QUORUM"), "{told}");
}

#[test]
fn a_node_that_is_off_takes_no_votes_along() {
    let table = cluster(&[("a", true, 1), ("b", true, 1), ("c", false, 1)]);
    let told = down(&table, "c");
    assert!(told.contains("off already") && told.contains("2 of 3"), "{told}");
    assert!(!told.contains("LOSES"), "{told}");
    // Taken out of the cluster it is not missed in the count either.
    let told = impact(&table, "DELETE /cluster/config/nodes/c", json!({})).join("\n");
    assert!(told.contains("the cluster has its quorum"), "{told}");
    let half = cluster(&[("a", true, 1), ("b", false, 1)]);
    let told = impact(&half, "DELETE /cluster/config/nodes/b", json!({})).join("\n");
    assert!(told.contains("the cluster has its quorum"), "{told}");
}

#[test]
fn a_cluster_without_quorum_and_votes_that_cannot_be_seen_are_told() {
    let table = Table::new().with(
        "/cluster/status",
        json!([
            {"type": "cluster", "quorate": 0},
            {"type": "node", "name": "a", "online": 1},
            {"type": "node", "name": "b", "online": 0},
        ]),
    );
    let told = down(&table, "a");
    for part in [
        "HAS NO QUORUM now",
        "the votes of the nodes cannot be seen",
        "whether there is a QDevice cannot be seen",
        "LOSES ITS QUORUM",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// What names node `a`, and what names others alone.
fn named() -> Table {
    cluster(&[("a", true, 1), ("b", true, 1), ("c", true, 1)])
        .with("/cluster/resources?type=vm", json!([
            {"type": "qemu", "vmid": 100, "node": "a", "status": "running"},
            {"type": "lxc", "vmid": 101, "node": "a", "status": "running"},
            {"type": "lxc", "vmid": 102, "node": "a", "status": "stopped"},
            {"type": "lxc", "vmid": 103, "node": "b", "status": "running"},
        ]))
        .with("/cluster/ha/resources", json!([{"sid": "vm:100"}, {"sid": "ct:102"}, {"sid": "ct:103"}]))
        .with("/cluster/ha/rules", json!([
            {"rule": "r1", "type": "node-affinity", "resources": "vm:100,ct:103", "nodes": "b:1,a:2", "strict": 1},
            {"rule": "r2", "type": "node-affinity", "resources": "ct:103", "nodes": "b,aa"},
            {"rule": "r3", "type": "resource-affinity", "resources": "vm:100,ct:103", "affinity": "negative"},
        ]))
        .with("/cluster/backup", json!([{"id": "b1", "node": "a", "all": 1}, {"id": "b2", "all": 1}, {"id": "b3", "node": "b"}]))
        .with("/cluster/replication", json!([
            {"id": "100-0", "guest": 100, "source": "a", "target": "b"}, {"id": "103-0", "guest": 103, "source": "b", "target": "a"},
        ]))
        .with("/storage", json!([{"storage": "own", "nodes": "a"}, {"storage": "both", "nodes": "a,b"}, {"storage": "all"}]))
}

#[test]
fn what_names_the_node_is_told() {
    let told = down(&named(), "a");
    for line in [
        "2 running guests: 100, 101",
        "managed by HA, which moves them as the shutdown policy says: 100",
        "HA rule \"r1\", \"node-affinity\": \"vm:100\", \"ct:103\" on \"b:1,a:2\" alone",
        "backup jobs that run on it alone: \"b1\"",
        "replicated to it: 103-0",
        "replicated from it: 100-0",
        "storages that only this node has: \"own\"",
    ] {
        assert!(told.lines().any(|l| l == line), "{line} is not in\n{told}");
    }
    assert!(!told.contains("r2") && !told.contains("r3"), "{told}");
    // Stopping all guests takes neither votes nor jobs.
    let told = impact(&named(), "POST /nodes/a/stopall", json!({})).join("\n");
    assert!(told.contains("2 running guests: 100, 101") && !told.contains("quorum"), "{told}");
}

#[test]
fn what_names_the_guest_in_ha_is_told() {
    let told = impact(&named(), "DELETE /nodes/a/qemu/100", json!({})).join("\n");
    for part in [
        "HA rule \"r1\"",
        "HA rule \"r3\", \"resource-affinity\": \"vm:100\", \"ct:103\", kept apart",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("r2"), "{told}");
}

/// A node of release 8: it has HA groups and neither rules nor a QDevice to ask for.
struct Release8(Table);

impl State for Release8 {
    async fn get(&self, path: &ApiPath, params: &Params) -> Result<Arc<Value>> {
        if matches!(path.as_str(), "/cluster/ha/rules" | "/cluster/config/qdevice") {
            return Err(Error::new(Code::NotFound, "no such endpoint").with("http_status", 501));
        }
        self.0.answer(path, params)
    }
}

#[test]
fn release_8_has_groups_in_place_of_rules() {
    let table = cluster(&[("a", true, 1), ("b", true, 1), ("c", true, 1)])
        .with(
            "/cluster/ha/groups",
            json!([
                {"group": "g1", "nodes": "b,a:2", "restricted": 1}, {"group": "g2", "nodes": "b"},
            ]),
        )
        .with("/cluster/ha/resources", json!([{"sid": "vm:100", "group": "g1"}]));
    let state = Release8(table);
    let told = |call: &str| {
        let told = futures::executor::block_on(of(&operation(call, json!({})), &state));
        told.join("\n")
    };
    let node = told("POST /nodes/a/status");
    assert!(node.contains("HA group \"g1\" is for the nodes \"b,a:2\" alone"), "{node}");
    assert!(
        !node.contains("g2") && !node.contains("QDevice") && !node.contains("HA rules"),
        "{node}"
    );
    let guest = told("DELETE /nodes/a/qemu/100");
    assert!(guest.contains("in the HA group \"g1\""), "{guest}");
    assert!(!guest.contains("HA rules"), "{guest}");
}

#[test]
fn what_hangs_on_an_ha_object_itself_is_told() {
    let told = impact(&named(), "DELETE /cluster/ha/resources/vm:100", json!({})).join("\n");
    assert!(told.contains("\"r1\"") && told.contains("\"r3\"") && !told.contains("r2"), "{told}");
    let told = impact(&named(), "DELETE /cluster/ha/rules/r2", json!({}));
    assert_eq!(told, ["HA rule \"r2\", \"node-affinity\": \"ct:103\" on \"b,aa\""]);
    let groups = Table::new().with(
        "/cluster/ha/resources",
        json!([{"sid": "vm:100", "group": "g1"}, {"sid": "vm:101"}]),
    );
    let told =
        |group: &str| impact(&groups, &format!("DELETE /cluster/ha/groups/{group}"), json!({}));
    assert_eq!(told("g1"), ["HA resources in it: \"vm:100\""]);
    assert_eq!(told("g2"), ["no HA resource is in it"]);
}
