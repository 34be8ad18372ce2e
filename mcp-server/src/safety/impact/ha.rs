//! High availability: resources, and the rules (before release 9 the groups) that name them or a node.

use serde_json::Value;

use super::{guest::Guest, list};
use crate::{
    pve::{Params, loose, params::split_list},
    safety::{
        conditions::{Call, restore},
        facts::no_such_endpoint,
        shown::quoted,
    },
};

/// What hangs on an HA resource, rule or group itself.
pub(super) fn lines(call: &Call<'_>, out: &mut Vec<String>) {
    match call.endpoint.template {
        "/cluster/ha/resources/{sid}" => {
            of_rules(call, number(call.variable("sid").unwrap_or_default()), out);
        }
        "/cluster/ha/rules/{rule}" => match rules(call) {
            Ok(rules) => {
                let is_it = |rule: &&Value| loose::str(rule, "rule") == call.variable("rule");
                out.extend(rules.iter().filter(is_it).map(in_words));
            }
            Err(_) => out.push("HA rules: cannot be seen".to_owned()),
        },
        "/cluster/ha/groups/{group}" => match list(call, &["cluster", "ha", "resources"]) {
            Some(rows) => {
                let sids: Vec<String> = rows
                    .iter()
                    .filter(|row| loose::str(row, "group") == call.variable("group"))
                    .map(|row| quoted(loose::str(row, "sid").unwrap_or_default()))
                    .collect();
                out.push(match sids.as_slice() {
                    [] => "no HA resource is in it".to_owned(),
                    sids => format!("HA resources in it: {}", sids.join(", ")),
                });
            }
            None => out.push("HA: cannot be seen".to_owned()),
        },
        _ => {}
    }
}

/// Whether the row of an HA resource is about a guest.
pub(super) fn is_of(row: &Value, vmid: &str) -> bool {
    loose::str(row, "sid").is_some_and(|sid| number(sid) == vmid)
}

fn number(sid: &str) -> &str {
    sid.rsplit(':').next().unwrap_or(sid)
}

pub(super) fn of_guest(call: &Call<'_>, guest: &Guest<'_>, out: &mut Vec<String>) {
    let Some(rows) = list(call, &["cluster", "ha", "resources"]) else {
        out.push("HA: cannot be seen".to_owned());
        return;
    };
    for row in rows.iter().filter(|row| is_of(row, &guest.number)) {
        let state = loose::str(row, "state").unwrap_or("started");
        out.push(format!("managed by HA, wanted state {}", quoted(state)));
        if let Some(group) = loose::str(row, "group") {
            out.push(format!("in the HA group {}", quoted(group)));
        }
    }
    of_rules(call, &guest.number, out);
}

/// The rules that name a guest.
fn of_rules(call: &Call<'_>, vmid: &str, out: &mut Vec<String>) {
    match rules(call) {
        Ok(rules) => {
            let names =
                |rule: &&Value| restore::members(rule).iter().any(|sid| number(sid) == vmid);
            out.extend(rules.iter().filter(names).map(in_words));
        }
        Err(Unseen::Groups) => {}
        Err(Unseen::Refused) => out.push("HA rules: cannot be seen".to_owned()),
    }
}

/// The rules and groups that name a node.
pub(super) fn of_node(call: &Call<'_>, node: &str, out: &mut Vec<String>) {
    match rules(call) {
        Ok(rules) => out.extend(rules.iter().filter(|r| names_node(r, node)).map(in_words)),
        Err(Unseen::Groups) => match list(call, &["cluster", "ha", "groups"]) {
            Some(groups) => {
                out.extend(groups.iter().filter(|g| names_node(g, node)).map(|group| {
                    let text = |key: &str| quoted(loose::str(group, key).unwrap_or_default());
                    let only = if loose::flag(group, "restricted") { " alone" } else { "" };
                    format!("HA group {} is for the nodes {}{only}", text("group"), text("nodes"))
                }))
            }
            None => out.push("HA groups: cannot be seen".to_owned()),
        },
        Err(Unseen::Refused) => out.push("HA rules: cannot be seen".to_owned()),
    }
}

enum Unseen {
    /// Releases before 9 have groups, and no rules.
    Groups,
    Refused,
}

fn rules<'a>(call: &Call<'a>) -> Result<&'a [Value], Unseen> {
    match call.facts.look(&["cluster", "ha", "rules"], Params::new()) {
        Ok(rules) => Ok(loose::rows(rules)),
        Err(error) if no_such_endpoint(&error) => Err(Unseen::Groups),
        Err(_) => Err(Unseen::Refused),
    }
}

/// Whether a rule or a group names a node: `pve1:2,pve2`, the number being a priority.
fn names_node(row: &Value, node: &str) -> bool {
    let nodes = loose::str(row, "nodes").unwrap_or_default();
    split_list(nodes).any(|item| item.split(':').next() == Some(node))
}

fn in_words(rule: &Value) -> String {
    let text = |key: &str| loose::str(rule, key).map(quoted);
    let members: Vec<String> = restore::members(rule).iter().map(|sid| quoted(sid)).collect();
    let mut line = format!(
        "HA rule {}, {}: {}",
        text("rule").unwrap_or_default(),
        text("type").unwrap_or_default(),
        members.join(", ")
    );
    if let Some(nodes) = text("nodes") {
        let only = if loose::flag(rule, "strict") { " alone" } else { "" };
        line.push_str(&format!(" on {nodes}{only}"));
    }
    match loose::str(rule, "affinity") {
        Some("negative") => line.push_str(", kept apart"),
        Some(_) => line.push_str(", kept together"),
        None => {}
    }
    if loose::flag(rule, "disable") {
        line.push_str(", which is off");
    }
    line
}
