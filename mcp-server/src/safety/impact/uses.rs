//! Who uses an object: guests on a bridge, vnet or zone, firewall rules of an alias, IP set or
//! group, members of a pool, rights of a user, group or role.

use std::collections::BTreeSet;

use serde_json::Value;

use super::list;
use crate::{
    pve::{Params, loose, params::split_list},
    safety::{Method, conditions::Call, shown::quoted},
};

/// Most guests whose configuration is read for one answer.
const MOST_GUESTS: usize = 500;

/// Who uses the object of a call, one line each.
pub(super) fn lines(call: &Call<'_>, out: &mut Vec<String>) {
    let variable = |name: &str| call.variable(name).unwrap_or_default();
    match call.endpoint.template {
        "/nodes/{node}/network/{iface}" => {
            guests_on(call, Some(variable("node")), &[variable("iface")], out);
        }
        "/cluster/sdn/vnets/{vnet}" => guests_on(call, None, &[variable("vnet")], out),
        "/cluster/sdn/zones/{zone}" => of_zone(call, variable("zone"), out),
        "/cluster/firewall/groups/{group}" if call.method == Method::Delete => {
            of_rules(call, |rule| loose::str(rule, "action") == Some(variable("group")), out);
        }
        "/cluster/firewall/aliases/{name}" => {
            let name = variable("name");
            of_rules(call, |rule| names(rule, &[name, &format!("dc/{name}")]), out);
        }
        "/cluster/firewall/ipset/{name}" | "/cluster/firewall/ipset/{name}/{cidr}" => {
            let name = variable("name");
            of_rules(call, |rule| names(rule, &[&format!("+{name}"), &format!("+dc/{name}")]), out);
        }
        "/pools/{poolid}" => of_pool(call, variable("poolid"), out),
        "/pools" if call.method != Method::Post => {
            of_pool(call, call.params.text("poolid").unwrap_or_default(), out);
        }
        "/access/users/{userid}" => of_user(call, variable("userid"), out),
        "/access/groups/{groupid}" => of_group(call, variable("groupid"), out),
        "/access/roles/{roleid}" => {
            acl(call, |row| loose::str(row, "roleid") == Some(variable("roleid")), out);
        }
        _ => {}
    }
}

fn of_zone(call: &Call<'_>, zone: &str, out: &mut Vec<String>) {
    let Some(vnets) = list(call, &["cluster", "sdn", "vnets"]) else {
        out.push("vnets of the zone: cannot be seen".to_owned());
        return;
    };
    let inside: Vec<&str> = vnets
        .iter()
        .filter(|v| loose::str(v, "zone") == Some(zone))
        .filter_map(|v| loose::str(v, "vnet"))
        .collect();
    if !inside.is_empty() {
        let shown: Vec<String> = inside.iter().map(|v| quoted(v)).collect();
        out.push(format!("vnets in it: {}", shown.join(", ")));
        guests_on(call, None, &inside, out);
    }
}

/// Guests with a NIC on one of these bridges.
fn guests_on(call: &Call<'_>, node: Option<&str>, bridges: &[&str], out: &mut Vec<String>) {
    let Ok(rows) = call.facts.guests() else {
        out.push("guests on it: cannot be seen".to_owned());
        return;
    };
    let here =
        |row: &&Value| node.is_none_or(|n| n == "localhost" || loose::str(row, "node") == Some(n));
    let (mut on, mut unseen) = (BTreeSet::new(), BTreeSet::new());
    for (count, row) in rows.iter().filter(here).enumerate() {
        let (Some(node), Some(kind), Some(vmid)) =
            (loose::str(row, "node"), loose::str(row, "type"), loose::uint(row, "vmid"))
        else {
            continue;
        };
        if count >= MOST_GUESTS {
            unseen.insert(vmid);
            continue;
        }
        match call.facts.guest_config(node, kind, &vmid.to_string()) {
            Ok(config) if has_nic_on(config, bridges) => drop(on.insert(vmid)),
            Ok(_) => {}
            Err(_) => drop(unseen.insert(vmid)),
        }
    }
    let ids = |set: &BTreeSet<u64>| set.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    match on.len() {
        0 if unseen.is_empty() => out.push("no guest has a NIC on it".to_owned()),
        0 => {}
        n => out.push(format!("{n} guests have a NIC on it: {}", ids(&on))),
    }
    if !unseen.is_empty() {
        out.push(format!("guests whose NICs cannot be seen: {}", ids(&unseen)));
    }
}

fn has_nic_on(config: &Value, bridges: &[&str]) -> bool {
    let is_nic = |key: &str| {
        key.strip_prefix("net")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    config.as_object().into_iter().flatten().filter(|(key, _)| is_nic(key)).any(|(_, value)| {
        let parts = value.as_str().unwrap_or_default().split(',');
        parts.filter_map(|part| part.strip_prefix("bridge=")).any(|b| bridges.contains(&b))
    })
}

/// Whether a rule has one of these names among its addresses.
fn names(rule: &Value, wanted: &[&str]) -> bool {
    ["source", "dest"].iter().filter_map(|key| loose::str(rule, key)).any(|list| {
        split_list(list).any(|item| wanted.iter().any(|w| item.eq_ignore_ascii_case(w)))
    })
}

/// Rules of the cluster, its groups, its nodes and its guests that fit.
fn of_rules(call: &Call<'_>, fits: impl Fn(&Value) -> bool, out: &mut Vec<String>) {
    let mut look = |place: String, path: &[&str]| match list(call, path) {
        Some(rules) => {
            for rule in rules.iter().filter(|rule| fits(rule)) {
                let pos = loose::text(rule, "pos").unwrap_or_default();
                out.push(format!("used by rule {pos} of {place}"));
            }
        }
        None => out.push(format!("rules of {place}: cannot be seen")),
    };
    look("the cluster".to_owned(), &["cluster", "firewall", "rules"]);
    for group in list(call, &["cluster", "firewall", "groups"]).unwrap_or_default() {
        let Some(name) = loose::str(group, "group") else { continue };
        look(format!("group {}", quoted(name)), &["cluster", "firewall", "groups", name]);
    }
    for node in list(call, &["nodes"]).unwrap_or_default() {
        let Some(name) = loose::str(node, "node") else { continue };
        look(format!("node {}", quoted(name)), &["nodes", name, "firewall", "rules"]);
    }
    for row in call.facts.guests().unwrap_or_default().iter().take(MOST_GUESTS) {
        let (Some(node), Some(kind), Some(vmid)) =
            (loose::str(row, "node"), loose::str(row, "type"), loose::text(row, "vmid"))
        else {
            continue;
        };
        look(format!("guest {vmid}"), &["nodes", node, kind, &vmid, "firewall", "rules"]);
    }
}

fn of_pool(call: &Call<'_>, pool: &str, out: &mut Vec<String>) {
    let answer = call.facts.ask(&["pools"], Params::new().with("poolid", pool));
    let found = answer.ok().map(loose::rows).and_then(|rows| rows.first());
    match found.and_then(|p| p.get("members")).and_then(Value::as_array) {
        Some(members) if members.is_empty() => out.push("the pool is empty".to_owned()),
        Some(members) => {
            let ids: Vec<String> = members
                .iter()
                .filter_map(|m| {
                    loose::text(m, "vmid").or_else(|| loose::str(m, "storage").map(quoted))
                })
                .collect();
            out.push(format!("{} members: {}", ids.len(), ids.join(", ")));
        }
        None => out.push("members of the pool: cannot be seen".to_owned()),
    }
    let place = format!("/pool/{pool}");
    acl(call, |row| loose::str(row, "path") == Some(&place), out);
    for job in list(call, &["cluster", "backup"]).unwrap_or_default() {
        if loose::str(job, "pool") == Some(pool) {
            let id = loose::text(job, "id").unwrap_or_default();
            out.push(format!("backed up as a pool by {}", quoted(&id)));
        }
    }
}

fn of_user(call: &Call<'_>, user: &str, out: &mut Vec<String>) {
    match list(call, &["access", "users", user, "token"]) {
        Some(tokens) => out.extend(
            tokens
                .iter()
                .filter_map(|t| loose::str(t, "tokenid"))
                .map(|t| format!("its token {}", quoted(t))),
        ),
        None => out.push("tokens of the user: cannot be seen".to_owned()),
    }
    let token = format!("{user}!");
    acl(
        call,
        |row| loose::str(row, "ugid").is_some_and(|id| id == user || id.starts_with(&token)),
        out,
    );
}

fn of_group(call: &Call<'_>, group: &str, out: &mut Vec<String>) {
    let answer = call.facts.ask(&["access", "groups", group], Params::new());
    match answer.ok().and_then(|g| g.get("members")).and_then(Value::as_array) {
        Some(members) => {
            let shown: Vec<String> = members.iter().filter_map(Value::as_str).map(quoted).collect();
            out.push(format!("{} members: {}", shown.len(), shown.join(", ")));
        }
        None => out.push("members of the group: cannot be seen".to_owned()),
    }
    acl(
        call,
        |row| loose::str(row, "type") == Some("group") && loose::str(row, "ugid") == Some(group),
        out,
    );
}

/// Rights that fit.
fn acl(call: &Call<'_>, fits: impl Fn(&Value) -> bool, out: &mut Vec<String>) {
    let Some(rows) = list(call, &["access", "acl"]) else {
        out.push("rights: cannot be seen".to_owned());
        return;
    };
    for row in rows.iter().filter(|row| fits(row)) {
        let text = |key: &str| quoted(loose::str(row, key).unwrap_or_default());
        out.push(format!("role {} of {} on {}", text("roleid"), text("ugid"), text("path")));
    }
}
