//! What hangs on a network: the interfaces above one, the node's addresses, vnets, and guests' NICs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ids, list, unseen_guests};
use crate::{
    pve::{GuestKind, GuestRef, Params, config_line::Nic, loose, params::split_list},
    safety::{conditions::Call, facts::no_such_endpoint, nodes::resolve, shown::quoted},
};

pub(super) fn lines(call: &Call<'_>, out: &mut Vec<String>) {
    let variable = |name: &str| call.variable(name).unwrap_or_default();
    let template = call.endpoint.template;
    if template == "/nodes/{node}/network/{iface}" {
        of_interface(call, variable("iface"), out);
    } else if template.starts_with("/cluster/sdn/vnets/{vnet}") && !template.contains("/ips") {
        let vnet = variable("vnet");
        guests_on(call, None, |bridge| bridge == vnet, out);
    } else if template == "/cluster/sdn/zones/{zone}" {
        of_zones(call, &[variable("zone")], out);
    } else {
        for (path, variable_name, keys) in BEHIND {
            if template == *path {
                behind(call, variable(variable_name), keys, out);
            }
        }
    }
}

/// What zones name by one of their options.
const BEHIND: &[(&str, &str, &[&str])] = &[
    ("/cluster/sdn/controllers/{controller}", "controller", &["controller"]),
    ("/cluster/sdn/ipams/{ipam}", "ipam", &["ipam"]),
    ("/cluster/sdn/dns/{dns}", "dns", &["dns", "reversedns"]),
    ("/cluster/sdn/fabrics/fabric/{id}", "id", &["fabric"]),
];

fn behind(call: &Call<'_>, name: &str, keys: &[&str], out: &mut Vec<String>) {
    let Some(zones) = list(call, &["cluster", "sdn", "zones"]) else {
        out.push("zones that use it: cannot be seen".to_owned());
        return;
    };
    let using: Vec<&str> = zones
        .iter()
        .filter(|zone| keys.iter().any(|key| loose::str(zone, key) == Some(name)))
        .filter_map(|zone| loose::str(zone, "zone"))
        .collect();
    if using.is_empty() {
        out.push("no zone uses it".to_owned());
    } else {
        out.push(format!("zones that use it: {}", all_quoted(&using)));
        of_zones(call, &using, out);
    }
}

fn all_quoted(names: &[&str]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

fn of_zones(call: &Call<'_>, zones: &[&str], out: &mut Vec<String>) {
    match vnets_of(call, zones) {
        None => out.push("vnets of the zone: cannot be seen".to_owned()),
        Some(inside) if inside.is_empty() => out.push("no vnet is in it".to_owned()),
        Some(inside) => {
            out.push(format!("vnets in it: {}", all_quoted(&inside)));
            guests_on(call, None, |bridge| inside.contains(&bridge), out);
        }
    }
}

fn vnets_of<'a>(call: &Call<'a>, zones: &[&str]) -> Option<Vec<&'a str>> {
    let vnets = list(call, &["cluster", "sdn", "vnets"])?;
    let inside = |v: &&Value| loose::str(v, "zone").is_some_and(|zone| zones.contains(&zone));
    Some(vnets.iter().filter(inside).filter_map(|v| loose::str(v, "vnet")).collect())
}

fn of_interface(call: &Call<'_>, iface: &str, out: &mut Vec<String>) {
    let node = resolve(call, call.variable("node").unwrap_or_default());
    let rows = list(call, &["nodes", &node, "network"]);
    if rows.is_none() {
        out.push("interfaces that hang on it: cannot be seen".to_owned());
    }
    let rows = rows.unwrap_or_default();
    let above = above(rows, iface);
    let of_kind = |name: &str| {
        let row = rows.iter().find(|row| loose::str(row, "iface") == Some(name));
        let kind = row.and_then(|row| loose::str(row, "type")).unwrap_or("unknown");
        format!("{} ({kind})", quoted(name))
    };
    if let [_, more @ ..] = above.as_slice()
        && !more.is_empty()
    {
        let shown: Vec<String> = more.iter().map(|name| of_kind(name)).collect();
        out.push(format!("interfaces that hang on it: {}", shown.join(", ")));
    }
    addresses(call, &node, rows, &above, out);
    let vnets = vnets_on(call, &node, &above, out);
    let known = |name: &str| rows.iter().any(|row| loose::str(row, "iface") == Some(name));
    let on = |bridge: &str| {
        above.contains(&bridge)
            || vnets.contains(&bridge)
            || !known(bridge) && vlan_of(bridge).is_some_and(|base| above.contains(&base))
    };
    guests_on(call, Some(&node), on, out);
}

/// An interface and all that hang on it, nearest first.
fn above<'a>(rows: &'a [Value], iface: &'a str) -> Vec<&'a str> {
    let mut found = vec![iface];
    let mut at = 0;
    while let Some(below) = found.get(at).copied() {
        for row in rows.iter().filter(|row| hangs_on(rows, row, below)) {
            if let Some(name) = loose::str(row, "iface").filter(|name| !found.contains(name)) {
                found.push(name);
            }
        }
        at += 1;
    }
    found
}

/// Whether an interface is made on top of another.
fn hangs_on(rows: &[Value], row: &Value, below: &str) -> bool {
    // `bridge_ports eno1.20` needs no entry of its own for `eno1.20`.
    let is = |name: &str| name == below || base_of(name) == Some(below);
    let lists = ["bridge_ports", "ovs_ports", "ovs_bonds", "slaves"];
    let name = loose::str(row, "iface").unwrap_or_default();
    lists.iter().filter_map(|key| loose::str(row, key)).any(|names| split_list(names).any(is))
        || ["vlan-raw-device", "vxlan-physdev"]
            .iter()
            .any(|key| loose::str(row, key) == Some(below))
        || base_of(name) == Some(below)
        || open_vswitch(rows, row, below)
}

/// Whether an interface hangs on another by the bridge that Open vSwitch ports name: a bridge on
/// its ports and bonds, and on the bridge the port that it makes for the node itself.
fn open_vswitch(rows: &[Value], row: &Value, below: &str) -> bool {
    let is = |row: &Value, key: &str, what: &str| loose::str(row, key) == Some(what);
    if is(row, "type", "OVSIntPort") {
        return is(row, "ovs_bridge", below);
    }
    let name = loose::str(row, "iface").unwrap_or_default();
    rows.iter()
        .filter(|port| is(port, "iface", below) && is(port, "ovs_bridge", name))
        .any(|port| is(port, "type", "OVSPort") || is(port, "type", "OVSBond"))
}

/// `eno1` of the VLAN interface `eno1.20` or of the further address `eno1:1`.
fn base_of(name: &str) -> Option<&str> {
    let (base, number) = name.rsplit_once(['.', ':'])?;
    is_number(number).then_some(base)
}

/// `vmbr0` of `vmbr0.20`, or of `vmbr0v20`, the bridge that Proxmox makes for a VLAN of a bridge.
fn vlan_of(name: &str) -> Option<&str> {
    base_of(name).or_else(|| {
        let (base, number) = name.rsplit_once('v')?;
        is_number(number).then_some(base)
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The node's own addresses on these interfaces, and what goes by them.
fn addresses(call: &Call<'_>, node: &str, rows: &[Value], above: &[&str], out: &mut Vec<String>) {
    let status = list(call, &["cluster", "status"]).unwrap_or_default();
    let is_node = |row: &&Value| {
        loose::str(row, "type") == Some("node") && loose::str(row, "name") == Some(node)
    };
    let known_by = status.iter().find(is_node).and_then(|row| loose::str(row, "ip"));
    for row in rows {
        let name = loose::str(row, "iface").unwrap_or_default();
        if !above.contains(&name) {
            continue;
        }
        for (cidr, address) in [("cidr", "address"), ("cidr6", "address6")] {
            let Some(held) = loose::str(row, cidr).or_else(|| loose::str(row, address)) else {
                continue;
            };
            out.push(format!("the node's address {} is on {}", quoted(held), quoted(name)));
            if held.split('/').next() == known_by {
                out.push("the cluster knows the node by that address".to_owned());
            }
        }
        for key in ["gateway", "gateway6"] {
            if let Some(gateway) = loose::str(row, key) {
                let (gateway, name) = (quoted(gateway), quoted(name));
                out.push(format!("the node's way out to {gateway} is on {name}"));
            }
        }
    }
}

/// The vnets that reach the world by one of these interfaces of a node.
fn vnets_on<'a>(
    call: &Call<'a>,
    node: &str,
    above: &[&str],
    out: &mut Vec<String>,
) -> Vec<&'a str> {
    let zones = match call.facts.look(&["cluster", "sdn", "zones"], Params::new()) {
        Ok(zones) => loose::rows(zones),
        Err(error) => {
            if !no_such_endpoint(&error) {
                out.push("SDN zones on it: cannot be seen".to_owned());
            }
            return Vec::new();
        }
    };
    let here = |zone: &&Value| {
        loose::str(zone, "nodes").is_none_or(|nodes| split_list(nodes).any(|n| n == node))
    };
    let using: Vec<&str> = zones
        .iter()
        .filter(here)
        .filter(|zone| loose::str(zone, "bridge").is_some_and(|bridge| above.contains(&bridge)))
        .filter_map(|zone| loose::str(zone, "zone"))
        .collect();
    if using.is_empty() {
        return Vec::new();
    }
    out.push(format!("SDN zones on it: {}", all_quoted(&using)));
    let Some(vnets) = vnets_of(call, &using) else {
        out.push("vnets of these zones: cannot be seen".to_owned());
        return Vec::new();
    };
    if !vnets.is_empty() {
        out.push(format!("vnets of these zones: {}", all_quoted(&vnets)));
    }
    vnets
}

/// Guests with a NIC on one of these bridges, now or once what is staged for them holds.
fn guests_on(
    call: &Call<'_>,
    node: Option<&str>,
    on: impl Fn(&str) -> bool,
    out: &mut Vec<String>,
) {
    let Ok(rows) = call.facts.guests() else {
        out.push("guests on it: cannot be seen".to_owned());
        return;
    };
    let (mut now, mut staged, mut unseen) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for guest in rows.iter().filter_map(GuestRef::from_row) {
        if node.is_some_and(|node| node != "localhost" && node != guest.node.as_str()) {
            continue;
        }
        let number = guest.vmid.to_string();
        let path = ["nodes", guest.node.as_str(), guest.kind.as_str(), &number, "pending"];
        let Some(options) = list(call, &path) else {
            unseen.insert(guest.vmid);
            continue;
        };
        if options.iter().any(|row| has_nic(row, "value", guest.kind, &on)) {
            now.insert(guest.vmid);
        } else if options.iter().any(|row| has_nic(row, "pending", guest.kind, &on)) {
            staged.insert(guest.vmid);
        }
    }
    if !now.is_empty() {
        out.push(format!("{} guests have a NIC on it: {}", now.len(), ids(&now)));
    }
    if !staged.is_empty() {
        let count = staged.len();
        out.push(format!("{count} guests have a NIC on it once they next start: {}", ids(&staged)));
    }
    if now.is_empty() && staged.is_empty() && unseen.is_empty() {
        out.push("no guest has a NIC on it".to_owned());
    }
    if !unseen.is_empty() {
        out.push(format!("guests whose NICs cannot be seen: {}", ids(&unseen)));
    }
    if let Some(what) = unseen_guests(call.facts) {
        out.push(format!("{what} are not counted"));
    }
}

/// Whether an option of a guest is a NIC on one of the bridges, by its present or its staged value.
fn has_nic(row: &Value, which: &str, kind: GuestKind, on: &impl Fn(&str) -> bool) -> bool {
    let (Some(slot), Some(text)) = (loose::str(row, "key"), loose::str(row, which)) else {
        return false;
    };
    Nic::parse(kind, slot, text).and_then(|nic| nic.bridge).is_some_and(|bridge| on(&bridge))
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
