//! Changes that wait for this one: a node's network, SDN, a guest's options. Each is shown, since
//! whoever agrees to apply them agrees to all of them.

use serde_json::Value;

use crate::{
    pve::{Params, loose},
    safety::{Method, conditions::Call, facts::no_such_endpoint, shown::quoted},
};

/// What is staged where a call applies it, one line each, whole.
pub(super) fn lines(call: &Call<'_>, out: &mut Vec<String>) {
    match (call.method, call.endpoint.template) {
        (Method::Put | Method::Delete, "/nodes/{node}/network") => of_network(call, out),
        (Method::Put, "/cluster/sdn") | (Method::Post, "/cluster/sdn/rollback") => {
            of_sdn(call, out)
        }
        (Method::Post, template) if restarts(template) => of_guest(call, out),
        _ => {}
    }
}

/// Below which path the changes are made that a call applies, where Proxmox does not say by whom.
#[must_use]
pub fn place(method: Method, template: &str, path: &str) -> Option<String> {
    let applies = matches!(
        (method, template),
        (Method::Put | Method::Delete, "/nodes/{node}/network") | (Method::Put, "/cluster/sdn")
    );
    applies.then(|| format!("{path}/"))
}

fn restarts(template: &str) -> bool {
    ["/status/reboot", "/status/shutdown", "/status/stop"].iter().any(|end| template.ends_with(end))
}

fn of_network(call: &Call<'_>, out: &mut Vec<String>) {
    let node = call.variable("node").unwrap_or_default();
    match call.facts.changes(&["nodes", node, "network"]).map(Value::as_str) {
        Ok(diff) => {
            // The head of a diff (`---`, `+++`, `@@`) says nothing about the network.
            let changed: Vec<&str> = diff
                .unwrap_or_default()
                .lines()
                .filter(|l| {
                    l.starts_with(['+', '-']) && !l.starts_with("+++") && !l.starts_with("---")
                })
                .collect();
            if changed.is_empty() {
                out.push("no change of the network is staged".to_owned());
            }
            out.extend(changed.iter().map(|line| format!("staged: {}", quoted(line))));
        }
        Err(_) => out.push("staged changes of the network: cannot be seen".to_owned()),
    }
}

fn of_sdn(call: &Call<'_>, out: &mut Vec<String>) {
    let from = out.len();
    let rows = |path: &[&str]| {
        let answer = call.facts.ask(path, Params::new().with("pending", 1));
        answer.ok().map(loose::rows)
    };
    for (what, key) in [("zones", "zone"), ("vnets", "vnet"), ("controllers", "controller")] {
        match rows(&["cluster", "sdn", what]) {
            Some(found) => out.extend(found.iter().filter_map(|row| sdn_line(key, &[key], row))),
            None => out.push(format!("staged {what}: cannot be seen")),
        }
    }
    for vnet in rows(&["cluster", "sdn", "vnets"]).unwrap_or_default() {
        let Some(vnet) = loose::str(vnet, "vnet") else { continue };
        match rows(&["cluster", "sdn", "vnets", vnet, "subnets"]) {
            Some(found) => {
                out.extend(found.iter().filter_map(|row| sdn_line("subnet", &["subnet"], row)))
            }
            None => out.push(format!("staged subnets of {}: cannot be seen", quoted(vnet))),
        }
    }
    fabrics(call, out);
    if out.len() == from {
        out.push("no change of SDN is staged".to_owned());
    }
}

/// Fabrics and the nodes in them; releases before 9 have none.
fn fabrics(call: &Call<'_>, out: &mut Vec<String>) {
    let pending = Params::new().with("pending", 1);
    match call.facts.ask(&["cluster", "sdn", "fabrics", "all"], pending) {
        Ok(all) => {
            let rows = |key: &str| all.get(key).map(loose::rows).unwrap_or_default();
            let fabrics = rows("fabrics").iter().filter_map(|r| sdn_line("fabric", &["id"], r));
            let ids = ["node_id", "fabric_id"];
            let nodes = rows("nodes").iter().filter_map(|r| sdn_line("fabric node", &ids, r));
            out.extend(fabrics.chain(nodes));
        }
        Err(error) if no_such_endpoint(&error) => {}
        Err(_) => out.push("staged fabrics: cannot be seen".to_owned()),
    }
}

/// An object that waits, by the members that name it.
fn sdn_line(what: &str, names: &[&str], row: &Value) -> Option<String> {
    let state = loose::str(row, "state")?;
    let name: Vec<&str> = names.iter().filter_map(|key| loose::str(row, key)).collect();
    let mut line = format!("staged: {what} {} {}", quoted(&name.join(" of ")), quoted(state));
    let pending = row.get("pending").and_then(Value::as_object);
    for (option, value) in pending.into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        line.push_str(&format!(", {} {}", quoted(option), quoted(&value)));
    }
    Some(line)
}

fn of_guest(call: &Call<'_>, out: &mut Vec<String>) {
    let (Some(node), Some(kind), Some(vmid)) =
        (call.variable("node"), call.kind(), call.variable("vmid"))
    else {
        return;
    };
    let path = ["nodes", node, kind, vmid, "pending"];
    let Some(rows) = call.facts.ask(&path, Params::new()).ok().map(loose::rows) else {
        out.push("staged options: cannot be seen".to_owned());
        return;
    };
    for row in rows {
        let key = quoted(loose::str(row, "key").unwrap_or_default());
        let now = loose::text(row, "value").map_or("unset".to_owned(), |v| quoted(&v));
        if loose::int(row, "delete").unwrap_or(0) > 0 {
            out.push(format!("staged: {key} goes from {now} to unset when the guest next starts"));
        } else if let Some(wanted) = loose::text(row, "pending") {
            let wanted = quoted(&wanted);
            out.push(format!(
                "staged: {key} goes from {now} to {wanted} when the guest next starts"
            ));
        }
    }
}

#[cfg(test)]
#[path = "staged_tests.rs"]
mod tests;
