//! Network interfaces of a node: running, and with changes that wait to be applied.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Route;
use crate::api::call::{Answer, Call, Reply, done};
use crate::api::failure::Failure;
use crate::api::params;
use crate::state::node::Node;

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/nodes/{node}/network", list),
    ("POST", "/nodes/{node}/network", create),
    ("PUT", "/nodes/{node}/network", apply),
    ("DELETE", "/nodes/{node}/network", revert),
    ("GET", "/nodes/{node}/network/{iface}", read),
    ("PUT", "/nodes/{node}/network/{iface}", update),
    ("DELETE", "/nodes/{node}/network/{iface}", delete),
];

type Interfaces = BTreeMap<String, Map<String, Value>>;

fn node<'a>(c: &'a Call<'_>) -> Result<&'a Node, Failure> {
    let name = c.node();
    c.state.nodes.get(&name).ok_or_else(|| Failure::died(format!("no such cluster node '{name}'")))
}

/// The configuration as it would be after applying.
fn configured(node: &Node) -> &Interfaces {
    node.network_pending.as_ref().unwrap_or(&node.network)
}

fn change(c: &mut Call<'_>, f: impl FnOnce(&mut Interfaces) -> Result<(), Failure>) -> Answer {
    let name = c.node();
    let Some(node) = c.state.nodes.get_mut(&name) else { return done() };
    let mut next = configured(node).clone();
    f(&mut next)?;
    node.network_pending = Some(next);
    done()
}

fn list(c: &mut Call<'_>) -> Answer {
    let n = node(c)?;
    let kind = c.text("type");
    let fits = |i: &Map<String, Value>| {
        let own = i.get("type").and_then(Value::as_str).unwrap_or("");
        match kind.as_deref() {
            None | Some("include_sdn") => true,
            Some("any_bridge" | "any_local_bridge") => own == "bridge" || own == "OVSBridge",
            Some(k) => own == k,
        }
    };
    let auditor = c.may(&format!("/nodes/{}", n.name), &["Sys.Audit", "Sys.Modify"]);
    let bridges = |i: &Map<String, Value>| {
        let bridge = i.get("type").is_some_and(|t| t == "bridge" || t == "OVSBridge");
        let name = i.get("iface").map(params::text).unwrap_or_default();
        let zone = format!("/sdn/zones/localnetwork/{name}");
        !bridge || auditor || c.may(&zone, &["SDN.Audit", "SDN.Use"])
    };
    let rows = configured(n)
        .values()
        .filter(|i| fits(i) && bridges(i))
        .cloned()
        .map(Value::Object)
        .collect();
    let reply = Reply::from(Value::Array(rows));
    let diff = n.network_pending.as_ref().and_then(|p| diff(&n.network, p));
    Ok(match diff {
        Some(text) => reply.with("changes", text),
        None => reply,
    })
}

fn missing() -> Failure {
    Failure::parameter("iface", "interface does not exist")
}

fn read(c: &mut Call<'_>) -> Answer {
    let mut found = configured(node(c)?).get(&c.need("iface")).cloned().ok_or_else(missing)?;
    // The single call leaves the name out.
    found.remove("iface");
    Ok(Value::Object(found).into())
}

/// What the parameters make of an interface.
fn interface(c: &Call<'_>, base: Map<String, Value>) -> Map<String, Value> {
    let mut map = base;
    for name in c.list("delete") {
        map.remove(&name);
    }
    for (name, value) in &c.params {
        if matches!(name.as_str(), "node" | "delete") {
            continue;
        }
        let text = params::text(value);
        let number = matches!(name.as_str(), "autostart" | "bridge_vlan_aware" | "mtu" | "vlan-id");
        let value =
            text.parse::<i64>().ok().filter(|_| number).map_or(Value::String(text), Value::from);
        map.insert(name.clone(), value);
    }
    if let Some((address, bits)) = c.need("cidr").split_once('/') {
        map.insert("address".to_owned(), json!(address));
        map.insert("netmask".to_owned(), json!(bits));
    }
    let fixed = map.contains_key("address");
    map.insert("method".to_owned(), json!(if fixed { "static" } else { "manual" }));
    map.entry("method6").or_insert(json!("manual"));
    map.insert("families".to_owned(), json!(["inet"]));
    if map.get("type").is_some_and(|t| t == "bridge") {
        for (name, value) in [("bridge_ports", ""), ("bridge_stp", "off"), ("bridge_fd", "0")] {
            map.entry(name).or_insert(json!(value));
        }
    }
    map
}

fn create(c: &mut Call<'_>) -> Answer {
    let name = c.need("iface");
    let mut made = interface(c, Map::new());
    change(c, |all| {
        if all.contains_key(&name) {
            return Err(Failure::parameter("iface", "interface already exists"));
        }
        made.insert("priority".to_owned(), json!(all.len() + 3));
        all.insert(name, made);
        Ok(())
    })
}

fn update(c: &mut Call<'_>) -> Answer {
    let name = c.need("iface");
    let base = configured(node(c)?).get(&name).cloned().ok_or_else(missing)?;
    // An update replaces the interface, but for what the system adds.
    let kept = base
        .into_iter()
        .filter(|(k, _)| matches!(k.as_str(), "priority" | "active" | "exists"))
        .collect();
    let made = interface(c, kept);
    change(c, |all| {
        all.insert(name, made);
        Ok(())
    })
}

fn delete(c: &mut Call<'_>) -> Answer {
    let name = c.need("iface");
    change(c, |all| all.remove(&name).map(|_| ()).ok_or_else(missing))
}

fn revert(c: &mut Call<'_>) -> Answer {
    let name = c.node();
    if let Some(node) = c.state.nodes.get_mut(&name) {
        node.network_pending = None;
    }
    done()
}

fn apply(c: &mut Call<'_>) -> Answer {
    let name = c.node();
    c.spawn("srvreload", "networking", 800, move |state, _| {
        if let Some(node) = state.nodes.get_mut(&name)
            && let Some(mut next) = node.network_pending.take()
        {
            for interface in next.values_mut() {
                interface.insert("active".to_owned(), json!(1));
            }
            node.network = next;
        }
        Ok(Vec::new())
    })
}

/// The lines of an interface in `/etc/network/interfaces`.
fn stanza(name: &str, i: &Map<String, Value>) -> Vec<String> {
    let get = |key: &str| i.get(key).map(params::text).filter(|v| !v.is_empty());
    let mut lines = Vec::new();
    if get("autostart").as_deref() == Some("1") {
        lines.push(format!("auto {name}"));
    }
    lines.push(format!(
        "iface {name} inet {}",
        get("method").unwrap_or_else(|| "manual".to_owned())
    ));
    if let Some(cidr) = get("cidr") {
        lines.push(format!("\taddress {cidr}"));
    }
    for (key, label) in [
        ("gateway", "gateway"),
        ("mtu", "mtu"),
        ("slaves", "bond-slaves"),
        ("bond_mode", "bond-mode"),
    ] {
        if let Some(value) = get(key) {
            lines.push(format!("\t{label} {value}"));
        }
    }
    if i.get("type").is_some_and(|t| t == "bridge") {
        lines.push(format!(
            "\tbridge-ports {}",
            get("bridge_ports").unwrap_or_else(|| "none".to_owned())
        ));
        lines.push(format!(
            "\tbridge-stp {}",
            get("bridge_stp").unwrap_or_else(|| "off".to_owned())
        ));
        lines.push(format!("\tbridge-fd {}", get("bridge_fd").unwrap_or_else(|| "0".to_owned())));
        if get("bridge_vlan_aware").as_deref() == Some("1") {
            lines.push("\tbridge-vlan-aware yes".to_owned());
        }
    }
    if let Some(comment) = get("comments") {
        lines.extend(comment.lines().map(|l| format!("#{l}")));
    }
    lines
}

/// A unified diff of the two configurations; `None` when they say the same.
fn diff(old: &Interfaces, new: &Interfaces) -> Option<String> {
    let mut body = String::new();
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let before = old.get(name).map(|i| stanza(name, i)).unwrap_or_default();
        let after = new.get(name).map(|i| stanza(name, i)).unwrap_or_default();
        if before == after {
            continue;
        }
        body.push_str(&format!("@@ -1,{} +1,{} @@\n", before.len() + 1, after.len() + 1));
        for (mark, line) in edits(&before, &after) {
            body.push_str(&format!("{mark}{line}\n"));
        }
    }
    (!body.is_empty())
        .then(|| format!("--- /etc/network/interfaces\n+++ /etc/network/interfaces.new\n{body}"))
}

/// The fewest lines to take out (`-`) and put in (`+`), in place among those that stay.
fn edits<'l>(before: &'l [String], after: &'l [String]) -> Vec<(char, &'l str)> {
    match (before.split_first(), after.split_first()) {
        (Some((old, before)), Some((new, after))) if old == new => {
            let mut all = vec![(' ', old.as_str())];
            all.extend(edits(before, after));
            all
        }
        (Some((old, rest)), _)
            if after.is_empty()
                || kept(rest, after) >= kept(before, after.get(1..).unwrap_or(&[])) =>
        {
            let mut all = vec![('-', old.as_str())];
            all.extend(edits(rest, after));
            all
        }
        (_, Some((new, rest))) => {
            let mut all = vec![('+', new.as_str())];
            all.extend(edits(before, rest));
            all
        }
        (_, None) => Vec::new(),
    }
}

/// How many lines two texts have in common, in order.
fn kept(before: &[String], after: &[String]) -> usize {
    let mut row = vec![0; after.len() + 1];
    for old in before {
        let mut corner = 0;
        for (at, new) in after.iter().enumerate() {
            let above = row.get(at + 1).copied().unwrap_or(0);
            let left = row.get(at).copied().unwrap_or(0);
            let best = if old == new { corner + 1 } else { above.max(left) };
            if let Some(cell) = row.get_mut(at + 1) {
                *cell = best;
            }
            corner = above;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_told_where_it_stands() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        for (before, after, want) in [
            ("iface\nold\ngw", "iface\nnew\ngw", " iface|-old|+new| gw"),
            ("", "a\nb", "+a|+b"),
            ("a\nb", "", "-a|-b"),
            ("a\nb\nc", "a\nc\nd", " a|-b| c|+d"),
            ("a", "a", " a"),
        ] {
            let (before, after) = (lines(before), lines(after));
            let told: Vec<String> =
                edits(&before, &after).into_iter().map(|(mark, l)| format!("{mark}{l}")).collect();
            assert_eq!(told.join("|"), want);
        }
    }
}
