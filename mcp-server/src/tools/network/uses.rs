//! Which rules and IP sets use an alias, an IP set or a security group.

use std::time::Duration;

use futures::{
    StreamExt,
    future::{BoxFuture, FutureExt},
    stream,
};
use serde_json::{Value, json};

use super::place::Place;
use crate::{
    Result,
    pve::{Params, Vmid, loose},
    tools::Ctx,
};

/// Reads under way at once.
const AT_ONCE: usize = 16;
/// What is not read by then is told as not seen.
const DEADLINE: Duration = Duration::from_secs(20);

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Alias,
    IpSet,
    Group,
}

/// The uses of a name, and what could not be looked at.
#[derive(Debug, Default)]
pub struct Uses {
    /// Each with the firewall, the place and what it is.
    pub found: Vec<Value>,
    /// What could not be looked at.
    pub missing: Vec<String>,
}

impl Uses {
    /// As a member of an answer: nothing is said only where all was seen.
    pub fn to_json(&self) -> Value {
        let mut value = json!({"count": self.found.len(), "rules": self.found});
        if let (Value::Object(map), false) = (&mut value, self.missing.is_empty()) {
            map.insert("partial".into(), true.into());
            map.insert("missing".into(), self.missing.clone().into());
        }
        value
    }
}

/// One firewall and what of it uses the name.
type Read<'p> = BoxFuture<'p, (&'p Place, Result<Vec<Value>>)>;

/// Looks a name up in every firewall that can name it: for one of the cluster
/// in all, for one of a guest in that guest's.
///
/// # Errors
/// What the lists of guests, nodes and groups answer.
pub async fn of(ctx: Ctx<'_>, what: What, name: &str, guest: Option<Vmid>) -> Result<Uses> {
    let mut uses = Uses::default();
    let mut places = Vec::new();
    if let Some(vmid) = guest {
        places.push(Place::of_guest(&ctx.guest(vmid).await?));
    } else {
        places.push(Place::cluster());
        let (groups, nodes, vnets, guests) = futures::join!(
            ctx.get(&["cluster", "firewall", "groups"]),
            ctx.node_names(),
            ctx.get(&["cluster", "sdn", "vnets"]),
            ctx.guests(),
        );
        match groups {
            Ok(rows) => places.extend(
                loose::rows(&rows)
                    .iter()
                    .filter_map(|g| loose::str(g, "group"))
                    .map(Place::of_group),
            ),
            Err(e) => uses.missing.push(format!("groups: {}", e.message)),
        }
        match nodes {
            Ok(names) => places.extend(names.iter().map(|n| Place::of_node(n))),
            Err(e) => uses.missing.push(format!("nodes: {}", e.message)),
        }
        // Where there is no SDN there are no vnets.
        if let Ok(rows) = vnets {
            places.extend(
                loose::rows(&rows).iter().filter_map(|v| loose::str(v, "vnet")).map(Place::of_vnet),
            );
        }
        match guests {
            Ok(guests) => places.extend(guests.iter().map(Place::of_guest)),
            Err(e) => uses.missing.push(format!("guests: {}", e.message)),
        }
    }
    let total = places.len();
    let mut seen = 0_usize;
    let end = tokio::time::sleep(DEADLINE);
    tokio::pin!(end);
    let mut reads: Vec<Read<'_>> = Vec::with_capacity(total);
    for place in &places {
        reads.push(async move { (place, in_place(ctx, what, name, place).await) }.boxed());
    }
    let mut reads = stream::iter(reads).buffer_unordered(AT_ONCE);
    loop {
        tokio::select! {
            next = reads.next() => match next {
                Some((_, Ok(found))) => { seen += 1; uses.found.extend(found); }
                Some((place, Err(error))) => {
                    seen += 1;
                    uses.missing.push(format!("{}: {}", place.name, error.message));
                }
                None => break,
            },
            () = &mut end => {
                uses.missing.push(format!("{} of {total} firewalls were not read in time", total - seen));
                break;
            }
        }
    }
    drop(reads);
    uses.found.sort_by_key(|u| (loose::text(u, "firewall"), loose::int(u, "pos")));
    Ok(uses)
}

async fn in_place(ctx: Ctx<'_>, what: What, name: &str, place: &Place) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    let rules = ctx.get_with(&place.rules(None), Params::new()).await?;
    for rule in loose::rows(&rules) {
        if rule_uses(rule, what, name) {
            found.push(json!({
                "firewall": place.name,
                "pos": loose::int(rule, "pos"),
                "enable": loose::flag(rule, "enable"),
                "rule": in_words(rule),
            }));
        }
    }
    // An alias may stand in an IP set too.
    let has_sets = place.vmid.is_some() || place.name == "cluster";
    if what == What::Alias && has_sets {
        let sets = ctx.get(&place.below(&["ipset"])).await?;
        for set in loose::rows(&sets).iter().filter_map(|s| loose::str(s, "name")) {
            let entries = ctx.get(&place.below(&["ipset", set])).await?;
            let held = loose::rows(&entries).iter().any(|e| {
                loose::str(e, "cidr")
                    .is_some_and(|cidr| names(cidr.trim_start_matches('!'), what, name))
            });
            if held {
                found.push(json!({"firewall": place.name, "pos": null, "enable": true, "rule": format!("IP set {set}")}));
            }
        }
    }
    Ok(found)
}

fn rule_uses(rule: &Value, what: What, name: &str) -> bool {
    if what == What::Group {
        return loose::str(rule, "type") == Some("group")
            && loose::str(rule, "action").is_some_and(|a| a.eq_ignore_ascii_case(name));
    }
    ["source", "dest"]
        .iter()
        .filter_map(|key| loose::str(rule, key))
        .flat_map(|text| text.split(','))
        .any(|part| names(part.trim(), what, name))
}

/// Whether one address of a rule is the name: `lan`, `dc/lan`, `+set`, `+dc/set`, `+guest/set`.
fn names(part: &str, what: What, name: &str) -> bool {
    let bare = match (what, part.strip_prefix('+')) {
        (What::IpSet, Some(set)) => set,
        (What::Alias, None) => part,
        _ => return false,
    };
    let bare = bare.strip_prefix("dc/").or_else(|| bare.strip_prefix("guest/")).unwrap_or(bare);
    bare.eq_ignore_ascii_case(name)
}

/// `in ACCEPT tcp 22 from +management`.
pub fn in_words(rule: &Value) -> String {
    let mut words = Vec::new();
    for (key, before) in [
        ("type", ""),
        ("action", ""),
        ("macro", ""),
        ("proto", ""),
        ("dport", "port "),
        ("source", "from "),
        ("dest", "to "),
        ("iface", "on "),
    ] {
        if let Some(value) = loose::text(rule, key) {
            words.push(format!("{before}{value}"));
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_every_spelling_and_nowhere_else() {
        for (part, what, name, want) in [
            ("lan", What::Alias, "lan", true),
            ("LAN", What::Alias, "lan", true),
            ("dc/lan", What::Alias, "lan", true),
            ("guest/lan", What::Alias, "lan", true),
            ("+lan", What::Alias, "lan", false),
            ("lan2", What::Alias, "lan", false),
            ("10.0.0.0/8", What::Alias, "lan", false),
            ("+set", What::IpSet, "set", true),
            ("+dc/set", What::IpSet, "set", true),
            ("+guest/set", What::IpSet, "set", true),
            ("set", What::IpSet, "set", false),
            ("+set-v4", What::IpSet, "set", false),
        ] {
            assert_eq!(names(part, what, name), want, "{part}");
        }
    }

    #[test]
    fn lists_of_addresses_are_looked_through() {
        let rule =
            json!({"type": "in", "action": "ACCEPT", "source": "10.0.0.1, dc/lan", "dest": "+web"});
        assert!(rule_uses(&rule, What::Alias, "lan"));
        assert!(rule_uses(&rule, What::IpSet, "web"));
        assert!(!rule_uses(&rule, What::Group, "ACCEPT"));
        let group = json!({"type": "group", "action": "web"});
        assert!(rule_uses(&group, What::Group, "web"));
    }
}
