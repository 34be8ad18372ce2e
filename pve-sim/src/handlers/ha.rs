//! High availability and replication.

use serde_json::{Map, Value, json};

use super::{Route, migrate as moving};
use crate::api::call::{Answer, Call, Reply, done};
use crate::api::failure::Failure;
use crate::api::params::{self, split_list};
use crate::state::State;
use crate::state::config::digest_of;
use crate::state::guest::Guest;
use crate::state::task;

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/cluster/ha/status", |_| {
        Ok(json!([{"name": "current"}, {"name": "manager_status"}]).into())
    }),
    ("GET", "/cluster/ha/status/current", current),
    ("GET", "/cluster/ha/status/manager_status", manager),
    ("GET", "/cluster/ha/resources", resources),
    ("POST", "/cluster/ha/resources", add_resource),
    ("GET", "/cluster/ha/resources/{sid}", resource),
    ("PUT", "/cluster/ha/resources/{sid}", set_resource),
    ("DELETE", "/cluster/ha/resources/{sid}", delete_resource),
    ("POST", "/cluster/ha/resources/{sid}/migrate", migrate),
    ("POST", "/cluster/ha/resources/{sid}/relocate", migrate),
    ("GET", "/cluster/ha/groups", groups),
    ("GET", "/cluster/ha/rules", rules),
    ("POST", "/cluster/ha/rules", add_rule),
    ("GET", "/cluster/ha/rules/{rule}", rule),
    ("PUT", "/cluster/ha/rules/{rule}", set_rule),
    ("DELETE", "/cluster/ha/rules/{rule}", delete_rule),
    ("GET", "/cluster/replication", jobs),
    ("POST", "/cluster/replication", add_job),
    ("GET", "/cluster/replication/{id}", job),
    ("PUT", "/cluster/replication/{id}", set_job),
    ("DELETE", "/cluster/replication/{id}", delete_job),
    ("GET", "/nodes/{node}/replication", on_node),
    ("GET", "/nodes/{node}/replication/{id}", |_| {
        Ok(json!([{"id": "schedule_now"}, {"id": "log"}, {"id": "status"}]).into())
    }),
    ("GET", "/nodes/{node}/replication/{id}/status", status),
    ("GET", "/nodes/{node}/replication/{id}/log", log),
    ("POST", "/nodes/{node}/replication/{id}/schedule_now", schedule_now),
];

type Doc = Map<String, Value>;

/// `vm:100`, also from `100`.
fn sid(state: &State, text: &str) -> String {
    if text.contains(':') {
        return text.to_owned();
    }
    let guest = text.parse().ok().and_then(|id: u32| state.guests.get(&id));
    guest.map_or_else(
        || text.to_owned(),
        |g| format!("{}:{}", g.kind.short().to_lowercase(), g.vmid),
    )
}

fn guest_of<'a>(state: &'a State, sid: &str) -> Option<&'a Guest> {
    let (kind, id) = sid.split_once(':')?;
    let guest = state.guests.get(&id.parse().ok()?)?;
    (guest.kind.short().to_lowercase() == kind).then_some(guest)
}

fn current(c: &mut Call<'_>) -> Answer {
    let state = &*c.state;
    let online = state.nodes.values().filter(|n| n.online).count();
    let quorate = online * 2 > state.nodes.len();
    let mut rows = vec![
        json!({"id": "quorum", "type": "quorum", "node": state.local, "quorate": u8::from(quorate),
        "status": if quorate { "OK" } else { "No quorum on node" }}),
    ];
    let idle = state.ha_resources.is_empty() || state.cluster.is_none();
    if idle {
        rows.push(json!({"id": "fencing", "type": "fencing", "node": state.local, "armed-state": "standby",
            "status": "standby (CRM watchdog standby)"}));
    } else {
        let master = state.nodes.values().find(|n| n.online).map_or("", |n| n.name.as_str());
        rows.push(json!({"id": "master", "type": "master", "node": master, "status": format!("{master} (active)"),
            "timestamp": c.now()}));
        for node in state.nodes.values() {
            let busy = state
                .ha_resources
                .keys()
                .any(|s| guest_of(state, s).is_some_and(|g| g.node == node.name));
            let what = if !node.online {
                "old timestamp - dead?"
            } else if busy {
                "active"
            } else {
                "idle"
            };
            rows.push(json!({"id": format!("lrm:{}", node.name), "type": "lrm", "node": node.name,
                "status": format!("{} ({what})", node.name), "timestamp": c.now()}));
        }
    }
    for (sid, resource) in &state.ha_resources {
        let Some(guest) = guest_of(state, sid) else { continue };
        let wanted = resource.get("state").and_then(Value::as_str).unwrap_or("started");
        let now =
            if idle { "queued".to_owned() } else { state.ha_state(guest).unwrap_or_default() };
        let number = |name: &str| {
            resource.get(name).and_then(|v| params::text(v).parse::<i64>().ok()).unwrap_or(1)
        };
        rows.push(json!({"id": format!("service:{sid}"), "type": "service", "sid": sid, "node": guest.node, "state": now,
            "request_state": wanted, "status": format!("{sid} ({}, {now})", guest.node), "failback": number("failback"),
            "max_restart": number("max_restart"), "max_relocate": number("max_relocate")}));
    }
    Ok(Value::Array(rows).into())
}

fn manager(c: &mut Call<'_>) -> Answer {
    let state = &*c.state;
    let quorum = json!({"node": state.local, "quorate": "1"});
    if state.ha_resources.is_empty() {
        return Ok(json!({"manager_status": {"node_status": {}}, "quorum": quorum}).into());
    }
    let nodes: Doc = state
        .nodes
        .values()
        .map(|n| (n.name.clone(), json!(if n.online { "online" } else { "unknown" })))
        .collect();
    let services: Doc = state
        .ha_resources
        .keys()
        .filter_map(|sid| {
            let guest = guest_of(state, sid)?;
            let value = json!({"node": guest.node, "state": state.ha_state(guest), "running": u8::from(guest.running()),
                "uid": crate::state::config::digest([sid])});
            Some((sid.clone(), value))
        })
        .collect();
    let master = state.nodes.values().find(|n| n.online).map_or("", |n| n.name.as_str());
    Ok(json!({"manager_status": {"master_node": master, "node_status": nodes, "service_status": services,
        "timestamp": c.now()}, "quorum": quorum, "lrm_status": {}})
    .into())
}

fn show(doc: &Doc, state: &State) -> Value {
    let all = Value::Array(state.ha_resources.values().cloned().map(Value::Object).collect());
    let mut row = doc.clone();
    row.insert("digest".to_owned(), json!(digest_of(&all)));
    Value::Object(row)
}

fn resources(c: &mut Call<'_>) -> Answer {
    let kind = c.text("type");
    let rows = c.state.ha_resources.values().filter(|r| match kind.as_deref() {
        None => true,
        Some(k) => r.get("type").is_some_and(|t| t == k),
    });
    Ok(Value::Array(rows.map(|r| show(r, c.state)).collect()).into())
}

fn no_resource(sid: &str) -> Failure {
    Failure::died(format!("no such resource '{sid}'"))
}

fn resource(c: &mut Call<'_>) -> Answer {
    let id = sid(c.state, &c.need("sid"));
    let doc = c.state.ha_resources.get(&id).ok_or_else(|| no_resource(&id))?;
    Ok(show(doc, c.state).into())
}

/// The given options on top of a document; integers as numbers.
fn merge(doc: &mut Doc, c: &Call<'_>, skip: &[&str]) {
    for name in c.list("delete") {
        doc.remove(&name);
    }
    for (name, value) in
        c.params.iter().filter(|(n, _)| !skip.contains(&n.as_str()) && *n != "delete")
    {
        let text = params::text(value);
        let number = ["max_restart", "max_relocate", "failback", "disable", "rate", "strict"]
            .contains(&name.as_str());
        let value =
            text.parse::<i64>().ok().filter(|_| number).map_or(Value::String(text), Value::from);
        doc.insert(name.clone(), value);
    }
}

fn add_resource(c: &mut Call<'_>) -> Answer {
    let id = sid(c.state, &c.need("sid"));
    if guest_of(c.state, &id).is_none() {
        return Err(Failure::died(format!("resource '{id}' does not exist in cluster")));
    }
    if c.state.ha_resources.contains_key(&id) {
        return Err(Failure::died(format!(
            "create ha resource failed: resource ID '{id}' already defined"
        )));
    }
    let mut doc = Doc::new();
    doc.insert("sid".to_owned(), json!(id));
    doc.insert("type".to_owned(), json!(id.split(':').next().unwrap_or("vm")));
    merge(&mut doc, c, &["sid", "type"]);
    doc.entry("state").or_insert(json!("started"));
    c.state.ha_resources.insert(id, doc);
    done()
}

fn set_resource(c: &mut Call<'_>) -> Answer {
    let id = sid(c.state, &c.need("sid"));
    let mut doc = c.state.ha_resources.get(&id).cloned().ok_or_else(|| no_resource(&id))?;
    merge(&mut doc, c, &["sid", "type", "digest"]);
    c.state.ha_resources.insert(id, doc);
    done()
}

fn delete_resource(c: &mut Call<'_>) -> Answer {
    let id = sid(c.state, &c.need("sid"));
    c.state.ha_resources.remove(&id).ok_or_else(|| no_resource(&id))?;
    done()
}

/// Asks the manager to move a guest; it does so a little later.
fn migrate(c: &mut Call<'_>) -> Answer {
    let (id, target) = (sid(c.state, &c.need("sid")), c.need("node"));
    if !c.state.ha_resources.contains_key(&id) {
        return Err(no_resource(&id));
    }
    if !c.state.nodes.contains_key(&target) {
        return Err(Failure::died(format!("no such cluster node '{target}'")));
    }
    let guest = guest_of(c.state, &id).ok_or_else(|| no_resource(&id))?;
    let (kind, vmid, node) = (guest.kind, guest.vmid, guest.node.clone());
    if node != target {
        let plan = moving::move_plan(kind, vmid, &node, &target);
        task::start(c.state, "root@pam", c.now_ms, plan);
    }
    Ok(json!({"sid": id, "requested-node": target}).into())
}

fn groups(_: &mut Call<'_>) -> Answer {
    Err(Failure::died("cannot index groups: ha groups have been migrated to rules"))
}

fn rules(c: &mut Call<'_>) -> Answer {
    Ok(Value::Array(c.state.ha_rules.values().cloned().map(Value::Object).collect()).into())
}

fn rule(c: &mut Call<'_>) -> Answer {
    let id = c.need("rule");
    let found = c.state.ha_rules.get(&id).cloned();
    let found = found.ok_or_else(|| Failure::died(format!("no such ha rule '{id}'")))?;
    Ok(Value::Object(found).into())
}

fn add_rule(c: &mut Call<'_>) -> Answer {
    let id = c.need("rule");
    let fail = |text: String| Failure::died(format!("create ha rule failed: {text}"));
    let wanted: Vec<String> =
        split_list(&c.need("resources")).iter().map(|r| sid(c.state, r)).collect();
    let free: Vec<String> =
        wanted.iter().filter(|r| !c.state.ha_resources.contains_key(*r)).cloned().collect();
    if !free.is_empty() {
        return Err(fail(format!("cannot use unmanaged resource(s) {}.", free.join(", "))));
    }
    if c.state.ha_rules.contains_key(&id) {
        return Err(fail(format!("HA rule '{id}' already defined")));
    }
    let mut doc = Doc::new();
    merge(&mut doc, c, &[]);
    c.state.ha_rules.insert(id, doc);
    done()
}

fn set_rule(c: &mut Call<'_>) -> Answer {
    let id = c.need("rule");
    let found = c.state.ha_rules.get(&id).cloned();
    let mut doc = found.ok_or_else(|| Failure::died(format!("no such ha rule '{id}'")))?;
    merge(&mut doc, c, &["rule", "digest"]);
    c.state.ha_rules.insert(id, doc);
    done()
}

fn delete_rule(c: &mut Call<'_>) -> Answer {
    let id = c.need("rule");
    let gone = c.state.ha_rules.remove(&id);
    gone.ok_or_else(|| Failure::died(format!("no such ha rule '{id}'")))?;
    done()
}

/// A replication job without its state.
fn plain(doc: &Doc) -> Doc {
    let mut row = doc.clone();
    row.remove("_state");
    row
}

fn guest_id(doc: &Doc) -> i64 {
    doc.get("guest").and_then(Value::as_i64).unwrap_or(0)
}

fn jobs(c: &mut Call<'_>) -> Answer {
    let rows = c
        .state
        .replication
        .values()
        .filter(|j| c.may(&format!("/vms/{}", guest_id(j)), &["VM.Audit"]))
        .map(|j| Value::Object(plain(j)))
        .collect();
    Ok(Value::Array(rows).into())
}

fn no_job(id: &str) -> Failure {
    Failure::died(format!("no such replication job '{id}'"))
}

fn find<'a>(c: &'a Call<'_>, privilege: &str) -> Result<&'a Doc, Failure> {
    let id = c.need("id");
    let doc = c.state.replication.get(&id).ok_or_else(|| no_job(&id))?;
    c.demand(&format!("/vms/{}", guest_id(doc)), &[privilege])?;
    Ok(doc)
}

fn job(c: &mut Call<'_>) -> Answer {
    Ok(Value::Object(plain(find(c, "VM.Audit")?)).into())
}

fn add_job(c: &mut Call<'_>) -> Answer {
    let id = c.need("id");
    let (guest, number) = id.split_once('-').unwrap_or((id.as_str(), "0"));
    let (vmid, number) = (guest.parse::<u32>().unwrap_or(0), number.parse::<i64>().unwrap_or(0));
    c.demand(&format!("/vms/{vmid}"), &["VM.Replicate"])?;
    let fail = |text: String| Failure::died(format!("create replication job failed: {text}"));
    if c.state.replication.contains_key(&id) {
        return Err(fail(format!("replication job '{id}' already exists")));
    }
    let source = c.state.guests.get(&vmid).map(|g| g.node.clone());
    let source = source.ok_or_else(|| fail(format!("guest '{vmid}' does not exist")))?;
    let target = c.need("target");
    if !c.state.nodes.contains_key(&target) {
        return Err(fail(format!("target '{target}' does not exist")));
    }
    if target == source {
        return Err(fail(format!(
            "Replication job for guest '{vmid}' and target '{target}' - source equals target"
        )));
    }
    let mut doc = Doc::new();
    for (name, value) in [
        ("guest", json!(vmid)),
        ("jobnum", json!(number)),
        ("source", json!(source)),
        ("type", json!("local")),
    ] {
        doc.insert(name.to_owned(), value);
    }
    merge(&mut doc, c, &["source"]);
    doc.entry("schedule").or_insert(json!("*/15"));
    doc.insert(
        "_state".to_owned(),
        json!({"fail_count": 0, "last_sync": 0, "last_try": 0, "next_sync": c.now() + 60}),
    );
    c.state.replication.insert(id, doc);
    done()
}

fn set_job(c: &mut Call<'_>) -> Answer {
    let mut doc = find(c, "VM.Replicate")?.clone();
    merge(&mut doc, c, &["id", "digest", "source"]);
    c.state.replication.insert(c.need("id"), doc);
    done()
}

fn delete_job(c: &mut Call<'_>) -> Answer {
    find(c, "VM.Replicate")?;
    let id = c.need("id");
    c.state.replication.remove(&id);
    done()
}

fn row(doc: &Doc, state: &State, now: i64) -> Doc {
    let mut row = plain(doc);
    if let Some(Value::Object(own)) = doc.get("_state") {
        row.extend(own.clone());
        // Runs that went well while nobody looked.
        let number = |name: &str| own.get(name).and_then(Value::as_i64).unwrap_or(0);
        let (next, failed) = (number("next_sync"), number("fail_count"));
        if failed == 0 && next > 0 && now > next {
            let runs = (now - next) / 900;
            row.insert("last_sync".to_owned(), json!(next + runs * 900));
            row.insert("last_try".to_owned(), json!(next + runs * 900));
            row.insert("next_sync".to_owned(), json!(next + (runs + 1) * 900));
        }
    }
    let kind = u32::try_from(guest_id(doc))
        .ok()
        .and_then(|id| state.guests.get(&id))
        .map_or("qemu", |g| g.kind.name());
    row.insert("vmtype".to_owned(), json!(kind));
    row
}

fn on_node(c: &mut Call<'_>) -> Answer {
    let (node, now, only) = (c.node(), c.now(), c.int("guest"));
    let rows = c
        .state
        .replication
        .values()
        .filter(|j| {
            j.get("source").is_some_and(|s| *s == node) && only.is_none_or(|g| g == guest_id(j))
        })
        .filter(|j| c.may(&format!("/vms/{}", guest_id(j)), &["VM.Audit"]))
        .map(|j| Value::Object(row(j, c.state, now)))
        .collect();
    Ok(Value::Array(rows).into())
}

fn status(c: &mut Call<'_>) -> Answer {
    let now = c.now();
    let doc = find(c, "VM.Audit")?;
    Ok(Value::Object(row(doc, c.state, now)).into())
}

fn log(c: &mut Call<'_>) -> Answer {
    let doc = find(c, "VM.Audit")?;
    let error = doc.get("_state").and_then(|s| s.get("error")).and_then(Value::as_str);
    let mut lines = vec![format!("{}: start replication job", c.need("id"))];
    lines.push(error.map_or_else(
        || "end replication job".to_owned(),
        |e| format!("end replication job with error: {e}"),
    ));
    let count = lines.len();
    let rows: Vec<Value> =
        lines.into_iter().enumerate().map(|(n, t)| json!({"n": n + 1, "t": t})).collect();
    Ok(Reply::from(Value::Array(rows)).with("total", count))
}

fn schedule_now(c: &mut Call<'_>) -> Answer {
    find(c, "VM.Replicate")?;
    let (id, now) = (c.need("id"), c.now());
    if let Some(Value::Object(state)) =
        c.state.replication.get_mut(&id).and_then(|d| d.get_mut("_state"))
    {
        state.insert("next_sync".to_owned(), json!(now));
    }
    done()
}
