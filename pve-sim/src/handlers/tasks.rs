//! Tasks of a node: list, status, log, stop.

use serde_json::{Map, Value, json};

use super::Route;
use crate::api::call::{Answer, Call, Reply, done};
use crate::api::failure::Failure;
use crate::state::task::{self, Task};

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/nodes/{node}/tasks", list),
    ("GET", "/nodes/{node}/tasks/{upid}/status", status),
    ("GET", "/nodes/{node}/tasks/{upid}/log", log),
    ("DELETE", "/nodes/{node}/tasks/{upid}", stop),
];

/// The tasks the caller may see, newest first: all of a node with Sys.Audit
/// there, otherwise its own.
pub(super) fn visible<'a>(c: &'a Call<'_>, node: Option<&str>) -> Vec<&'a Task> {
    let me = c.login.full();
    let mut all: Vec<&Task> = c
        .state
        .tasks
        .all
        .iter()
        .filter(|t| node.is_none_or(|n| t.node == n))
        .filter(|t| t.user == me || c.may(&format!("/nodes/{}", t.node), &["Sys.Audit"]))
        .collect();
    all.sort_by_key(|t| std::cmp::Reverse((t.exit.is_none(), t.start_ms)));
    all
}

/// A task as lists show it.
pub(super) fn row(t: &Task) -> Map<String, Value> {
    let mut map = Map::new();
    let (user, token) =
        t.user.split_once('!').map_or((t.user.as_str(), None), |(u, k)| (u, Some(k)));
    for (name, value) in [
        ("upid", json!(t.upid())),
        ("node", json!(t.node)),
        ("pid", json!(t.pid)),
        ("pstart", json!(t.pstart)),
        ("starttime", json!(t.start())),
        ("type", json!(t.kind)),
        ("id", json!(t.id)),
        ("user", json!(user)),
    ] {
        map.insert(name.to_owned(), value);
    }
    if let Some(token) = token {
        map.insert("tokenid".to_owned(), json!(token));
    }
    match &t.exit {
        Some(exit) => {
            map.insert("endtime".to_owned(), json!(t.end()));
            map.insert("status".to_owned(), json!(exit));
        }
        None => {
            map.insert("status".to_owned(), json!("RUNNING"));
        }
    }
    map
}

fn list(c: &mut Call<'_>) -> Answer {
    let source = c.text("source").unwrap_or_else(|| "archive".to_owned());
    let (vmid, kind, user) = (c.text("vmid"), c.text("typefilter"), c.text("userfilter"));
    let (since, until) = (c.int("since"), c.int("until"));
    let errors = c.flag("errors");
    let states = c.list("statusfilter");
    let keep = |t: &&Task| {
        let running = t.exit.is_none();
        let by_source = match source.as_str() {
            "active" => running,
            "archive" => !running,
            _ => true,
        };
        by_source
            && vmid.as_deref().is_none_or(|v| t.id == v)
            && kind.as_deref().is_none_or(|k| t.kind == k)
            && user.as_deref().is_none_or(|u| t.user.to_lowercase().contains(&u.to_lowercase()))
            && since.is_none_or(|s| t.start() >= s)
            && until.is_none_or(|u| t.start() <= u)
            && (!errors || (!running && !t.succeeded()))
            && (states.is_empty() || states.iter().any(|s| s == state(t)))
    };
    let node = c.node();
    let found: Vec<&Task> = visible(c, Some(&node)).into_iter().filter(keep).collect();
    let total = found.len();
    let start = usize::try_from(c.int("start").unwrap_or(0)).unwrap_or(0);
    let limit = usize::try_from(c.int("limit").unwrap_or(50)).unwrap_or(50);
    let rows = found.into_iter().skip(start).take(limit).map(|t| Value::Object(row(t))).collect();
    let reply = Reply::from(Value::Array(rows));
    // The real one leaves a total of zero out.
    Ok(if total == 0 { reply } else { reply.with("total", total) })
}

/// `ok`, `warning`, `error` or `unknown`, as the filter names them.
fn state(t: &Task) -> &'static str {
    match t.exit.as_deref() {
        Some("OK") => "ok",
        Some(e) if e.starts_with("WARNINGS") => "warning",
        Some("unexpected status") | None => "unknown",
        Some(_) => "error",
    }
}

/// The task of the path, if it is one and the caller may see it.
fn find<'a>(c: &'a Call<'_>, privilege: &str) -> Result<&'a Task, Failure> {
    let upid = c.need("upid");
    if !well_formed(&upid) {
        return Err(Failure::parameter("upid", "unable to parse worker upid"));
    }
    let owner = upid.rsplit(':').nth(1) == Some(c.login.full().as_str());
    if !owner {
        c.demand(&format!("/nodes/{}", c.node()), &[privilege])?;
    }
    c.state.tasks.get(&upid).ok_or_else(|| Failure::parameter("upid", "no such task"))
}

fn well_formed(upid: &str) -> bool {
    let parts: Vec<&str> = upid.split(':').collect();
    let [head, node, pid, pstart, start, kind, _id, user, end] = parts.as_slice() else {
        return false;
    };
    let hex = |s: &str, lengths: &[usize]| {
        lengths.contains(&s.len()) && s.bytes().all(|b| b.is_ascii_hexdigit())
    };
    *head == "UPID"
        && !node.is_empty()
        && hex(pid, &[8])
        && hex(pstart, &[8, 9])
        && hex(start, &[8])
        && !kind.is_empty()
        && !user.is_empty()
        && end.is_empty()
}

fn status(c: &mut Call<'_>) -> Answer {
    let task = find(c, "Sys.Audit")?;
    let mut map = row(task);
    map.remove("endtime");
    match &task.exit {
        Some(exit) => {
            map.insert("exitstatus".to_owned(), json!(exit));
            map.insert("status".to_owned(), json!("stopped"));
        }
        None => {
            map.insert("status".to_owned(), json!("running"));
        }
    }
    Ok(Value::Object(map).into())
}

fn log(c: &mut Call<'_>) -> Answer {
    let start = usize::try_from(c.int("start").unwrap_or(0)).unwrap_or(0);
    let limit = usize::try_from(c.int("limit").unwrap_or(50)).unwrap_or(50);
    let task = find(c, "Sys.Audit")?;
    let count = task.log.len();
    let limit = if limit == 0 { count } else { limit };
    let lines = task.log.iter().enumerate().skip(start).take(limit);
    let rows: Vec<Value> = lines.map(|(n, t)| json!({"n": n + 1, "t": t})).collect();
    if count == 0 {
        return Ok(Reply::from(json!([{"n": 1, "t": "no content"}])).with("total", 1));
    }
    Ok(Reply::from(Value::Array(rows)).with("total", count))
}

fn stop(c: &mut Call<'_>) -> Answer {
    let upid = find(c, "Sys.Modify")?.upid();
    task::stop(c.state, &upid, c.now_ms);
    done()
}
