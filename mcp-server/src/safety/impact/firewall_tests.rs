use serde_json::json;

use super::*;
use crate::safety::facts::Table;

fn found(table: &Table, what: What, name: &str, guest: Option<u64>) -> (Vec<String>, Vec<String>) {
    let guest = guest.map(|n| Vmid::new(n).unwrap());
    let uses = futures::executor::block_on(uses_of(table, Object { what, name, guest }));
    let found = uses.found.iter().map(|u| {
        let what =
            if u.in_set { format!("set {}", u.words) } else { format!("{}", u.pos.unwrap()) };
        format!("{} {what}", u.place.name)
    });
    (found.collect(), uses.missing())
}

/// A rule from a source.
fn rule(pos: u32, source: &str) -> Value {
    json!({"pos": pos, "type": "in", "action": "ACCEPT", "enable": 1, "source": source})
}

/// One group, one vnet, two nodes of which one is off, three guests of which one is on that.
fn estate() -> Table {
    Table::new()
        .with(
            "/nodes",
            json!([{"node": "pve1", "status": "online"}, {"node": "pve2", "status": "offline"}]),
        )
        .with(
            "/cluster/resources?type=vm",
            json!([
                {"type": "qemu", "vmid": 100, "node": "pve1"},
                {"type": "lxc", "vmid": 101, "node": "pve1"},
                {"type": "qemu", "vmid": 102, "node": "pve2"},
            ]),
        )
        .with("/cluster/firewall/groups", json!([{"group": "web"}]))
        .with("/cluster/sdn/vnets", json!([{"vnet": "v1"}]))
        .with("/cluster/firewall/rules", json!([rule(0, "10.0.0.1,dc/LAN"), rule(1, "+dc/Set")]))
        .with(
            "/cluster/firewall/groups/web",
            json!([rule(0, "+lan"), rule(1, "lan"), rule(2, "+set")]),
        )
        .with(
            "/nodes/pve1/firewall/rules",
            json!([rule(0, "lan2"), {"pos": 1, "type": "group", "action": "WEB"}]),
        )
        .with(
            "/cluster/sdn/vnets/v1/firewall/rules",
            json!([{"pos": 0, "type": "forward", "dest": "lan"}]),
        )
        .with("/cluster/firewall/ipset", json!([{"name": "office"}]))
        .with(
            "/cluster/firewall/ipset/office",
            json!([{"cidr": "! DC/lan", "nomatch": 1}, {"cidr": "10.1.0.0/16"}]),
        )
        // 100 has an alias and a set of these names itself, so a bare name means its own.
        .with(
            "/nodes/pve1/qemu/100/firewall/rules",
            json!([
                rule(0, "lan"),
                rule(1, "dc/lan"),
                rule(2, "guest/lan"),
                rule(3, "+set"),
                rule(4, "+DC/set"),
                rule(5, "+guest/SET"),
            ]),
        )
        .with("/nodes/pve1/qemu/100/firewall/aliases", json!([{"name": "Lan", "cidr": "10.9.0.1"}]))
        .with("/nodes/pve1/qemu/100/firewall/ipset", json!([{"name": "set"}]))
        .with("/nodes/pve1/qemu/100/firewall/ipset/set", json!([{"cidr": "guest/lan"}]))
        // 101 has none.
        .with(
            "/nodes/pve1/lxc/101/firewall/rules",
            json!([rule(0, "Lan"), rule(1, "+SET"), rule(2, "guest/lan")]),
        )
        .with("/nodes/pve1/lxc/101/firewall/aliases", json!([]))
        .with("/nodes/pve1/lxc/101/firewall/ipset", json!([]))
}

const OFF: &str = "guest 102, node \"pve2\": the node is offline";

#[test]
fn an_alias_is_found_wherever_it_is_meant_and_nowhere_else() {
    let (found, missing) = found(&estate(), What::Alias, "lan", None);
    assert_eq!(
        found,
        [
            "cluster set office",
            "cluster 0",
            "group web 1",
            "guest 100 1",
            "guest 101 0",
            "vnet v1 0",
        ]
    );
    assert_eq!(missing, [OFF]);
}

#[test]
fn a_set_is_found_wherever_it_is_meant_and_nowhere_else() {
    let (found, missing) = found(&estate(), What::IpSet, "SET", None);
    assert_eq!(found, ["cluster 1", "group web 2", "guest 100 4", "guest 101 1"]);
    assert_eq!(missing, [OFF]);
}

#[test]
fn a_group_is_found_by_its_name_alone() {
    assert_eq!(found(&estate(), What::Group, "web", None).0, ["node pve1 1"]);
    assert_eq!(found(&estate(), What::Group, "ACCEPT", None).0, Vec::<String>::new());
}

#[test]
fn an_object_of_a_guest_is_looked_for_in_that_guest_alone() {
    let none = Vec::<String>::new();
    let all = found(&estate(), What::Alias, "lan", Some(100));
    assert_eq!(
        all,
        (
            vec!["guest 100 set set".into(), "guest 100 0".into(), "guest 100 2".into()],
            none.clone()
        )
    );
    let all = found(&estate(), What::IpSet, "set", Some(100));
    assert_eq!(all, (vec!["guest 100 3".into(), "guest 100 5".into()], none.clone()));
    let all = found(&estate(), What::Alias, "lan", Some(102));
    assert_eq!(all, (none.clone(), vec!["guest 102: the node is offline".into()]));
    let all = found(&estate(), What::Alias, "lan", Some(999));
    assert_eq!(all, (none, vec!["guest 999: it is not in the list of guests".into()]));
}

#[test]
fn what_cannot_be_seen_is_told() {
    let bare = Table::new().with("/nodes", json!([{"node": "pve1"}]));
    let (found, missing) = found(&bare, What::Alias, "lan", None);
    assert_eq!(found, Vec::<String>::new());
    let told = missing.join("\n");
    for part in
        ["the security groups: ", "the vnets: ", "the guests: ", "the cluster: ", "node \"pve1\": "]
    {
        assert!(told.contains(part), "{part} in {told}");
    }
    // A list that the token's rights make shorter.
    for (rights, short) in [
        (json!({"/": {"VM.Audit": 1}}), false),
        (json!({"/": {"VM.Audit": 0}}), true),
        (json!({"/vms": {"VM.Audit": 1}}), false),
        (json!({"/": {"VM.Audit": 1}, "/vms": {}}), true),
        (json!({"/": {"VM.Audit": 1}, "/vms/7": {"VM.PowerMgmt": 1}}), true),
        (json!({"/vms/100": {"VM.Audit": 1}}), true),
    ] {
        let missing = super::super::unseen_guests;
        let table = estate().with("/access/permissions", rights.clone());
        let mut facts = Facts::default();
        let told =
            futures::executor::block_on(facts.settle(&table, |facts| missing(facts).is_some()));
        assert_eq!(told, short, "{rights}");
    }
}

#[test]
fn whether_a_guest_means_its_own_is_unknown_where_its_objects_cannot_be_read() {
    let table = Table::new()
        .with("/cluster/resources?type=vm", json!([{"type": "qemu", "vmid": 100, "node": "pve1"}]))
        .with("/nodes/pve1/qemu/100/firewall/rules", json!([rule(0, "+set")]));
    let (found, missing) = found(&table, What::IpSet, "set", None);
    assert_eq!(found, ["guest 100 0"], "counted, since it may be");
    assert!(missing.iter().any(|m| m.starts_with("guest 100: ")), "{missing:?}");
}

#[test]
fn every_spelling_and_nothing_else() {
    use Scope::{Cluster, Guest, Nearest};
    for (part, what, name, want) in [
        ("lan", What::Alias, "lan", Some(Nearest)),
        ("LAN", What::Alias, "lan", Some(Nearest)),
        ("lan", What::Alias, "LAN", Some(Nearest)),
        ("dc/lan", What::Alias, "lan", Some(Cluster)),
        ("DC/lan", What::Alias, "lan", Some(Cluster)),
        ("guest/lan", What::Alias, "lan", Some(Guest)),
        ("!lan", What::Alias, "lan", Some(Nearest)),
        ("! dc/Lan", What::Alias, "lan", Some(Cluster)),
        ("+lan", What::Alias, "lan", None),
        ("lan2", What::Alias, "lan", None),
        ("sdn/lan", What::Alias, "lan", None),
        ("10.0.0.0/8", What::Alias, "lan", None),
        ("+set", What::IpSet, "set", Some(Nearest)),
        ("+dc/set", What::IpSet, "set", Some(Cluster)),
        ("+guest/set", What::IpSet, "set", Some(Guest)),
        ("!+dc/SET", What::IpSet, "set", Some(Cluster)),
        ("+sdn/set", What::IpSet, "set", None),
        ("set", What::IpSet, "set", None),
        ("+set-v4", What::IpSet, "set", None),
    ] {
        assert_eq!(scope(part, what, name), want, "{part}");
    }
}

/// Answers what a table has, and never the paths that hold a word.
struct Slow(Table, &'static str);

impl State for Slow {
    async fn get(
        &self,
        path: &crate::pve::ApiPath,
        params: &Params,
    ) -> crate::Result<std::sync::Arc<Value>> {
        if path.as_str().contains(self.1) {
            std::future::pending::<()>().await;
        }
        self.0.answer(path, params)
    }

    async fn patience(&self) {}
}

#[test]
fn a_firewall_that_does_not_answer_in_time_is_told_and_keeps_nobody() {
    let slow = Slow(estate(), "/qemu/100/");
    let object = Object { what: What::Alias, name: "lan", guest: None };
    let uses = futures::executor::block_on(uses_of(&slow, object));
    let missing = uses.missing().join("\n");
    assert!(missing.contains("guest 100") && missing.contains("not read in time"), "{missing}");
    assert!(uses.lines().iter().any(|l| l.contains("not read in time")), "{:?}", uses.lines());
}

#[test]
fn a_yes_holds_for_what_was_read_in_time_and_for_what_waits_and_goes() {
    use crate::safety::{
        binding::call_of,
        impact::{agreed, lines},
        testing::operation,
    };
    let staged = json!([{"key": "cores", "value": 1, "pending": 2}]);
    for (call, slow, held) in [
        // All of it, where nothing was late.
        ("DELETE /cluster/firewall/aliases/lan", "/none/", 7),
        // Nothing of a search that did not end, since it may find more the next time.
        ("DELETE /cluster/firewall/aliases/lan", "/qemu/100/", 0),
        // What is staged was waited for.
        ("POST /nodes/pve1/qemu/100/status/stop", "/ha/", 1),
    ] {
        let table = estate().with("/nodes/pve1/qemu/100/pending", staged.clone());
        let op = operation(call, json!({}));
        let agreed =
            futures::executor::block_on(Facts::default().settle(&Slow(table, slow), |facts| {
                let call = call_of(&op, &op.params, facts).unwrap();
                agreed(&call, &lines(&call))
            }));
        assert_eq!(agreed.len(), held, "{call} {slow}: {agreed:#?}");
    }
}
