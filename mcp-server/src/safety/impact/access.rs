//! Who has rights by an object, and what it holds: members of a pool, rights of a user, group or role.

use serde_json::Value;

use super::list;
use crate::{
    pve::{Params, loose},
    safety::{Method, conditions::Call, shown::quoted},
};

pub(super) fn lines(call: &Call<'_>, out: &mut Vec<String>) {
    let variable = |name: &str| call.variable(name).unwrap_or_default();
    match call.endpoint.template {
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

/// A pool, and those that are nested in it: a right on a pool holds for them too.
fn of_pool(call: &Call<'_>, pool: &str, out: &mut Vec<String>) {
    let below = format!("{pool}/");
    let inside = |id: &str| id == pool || id.starts_with(&below);
    match list(call, &["pools"]) {
        Some(pools) => {
            let ids = pools.iter().filter_map(|p| loose::str(p, "poolid"));
            let nested: Vec<&str> = ids.filter(|id| id.starts_with(&below)).collect();
            members(call, pool, "", out);
            for id in nested {
                members(call, id, &format!("pool {} in it: ", quoted(id)), out);
            }
        }
        None => out.push("pools nested in it: cannot be seen".to_owned()),
    }
    let of_pools = |row: &Value| {
        loose::str(row, "path").and_then(|path| path.strip_prefix("/pool/")).is_some_and(inside)
    };
    acl(call, of_pools, out);
    match list(call, &["cluster", "backup"]) {
        Some(jobs) => {
            for job in jobs.iter().filter(|job| loose::str(job, "pool").is_some_and(inside)) {
                let id = loose::text(job, "id").unwrap_or_default();
                out.push(format!("backed up as a pool by {}", quoted(&id)));
            }
        }
        None => out.push("backup jobs: cannot be seen".to_owned()),
    }
}

fn members(call: &Call<'_>, pool: &str, which: &str, out: &mut Vec<String>) {
    let answer = call.facts.look(&["pools"], Params::new().with("poolid", pool));
    let found = answer.ok().map(loose::rows).and_then(|rows| rows.first());
    match found.and_then(|p| p.get("members")).and_then(Value::as_array) {
        Some(members) if members.is_empty() => {
            out.push(format!("{which}no member of the pool can be seen"))
        }
        Some(members) => {
            let ids: Vec<String> = members
                .iter()
                .filter_map(|m| {
                    loose::text(m, "vmid").or_else(|| loose::str(m, "storage").map(quoted))
                })
                .collect();
            out.push(format!("{which}{} members: {}", ids.len(), ids.join(", ")));
        }
        None => out.push(format!("{which}members of the pool: cannot be seen")),
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
    let answer = call.facts.look(&["access", "groups", group], Params::new());
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
pub(super) fn acl(call: &Call<'_>, fits: impl Fn(&Value) -> bool, out: &mut Vec<String>) {
    let Some(rows) = list(call, &["access", "acl"]) else {
        out.push("rights: cannot be seen".to_owned());
        return;
    };
    for row in rows.iter().filter(|row| fits(row)) {
        let text = |key: &str| quoted(loose::str(row, key).unwrap_or_default());
        out.push(format!("role {} of {} on {}", text("roleid"), text("ugid"), text("path")));
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
