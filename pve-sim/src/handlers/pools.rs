//! Pools and their members.

use serde_json::{Map, Value, json};

use super::{Route, guests, storages};
use crate::api::call::{Answer, Call, Reply, done};
use crate::api::failure::Failure;
use crate::state::Pool;

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/pools", list),
    ("POST", "/pools", create),
    ("PUT", "/pools", update),
    ("DELETE", "/pools", delete),
    ("GET", "/pools/{poolid}", |c| Ok(Value::Object(details(c, &c.need("poolid"))?).into())),
    ("PUT", "/pools/{poolid}", update),
    ("DELETE", "/pools/{poolid}", delete),
];

fn list(c: &mut Call<'_>) -> Answer {
    if let Some(id) = c.text("poolid") {
        return Ok(json!([details(c, &id)?]).into());
    }
    let mut rows = Vec::new();
    for (id, pool) in &c.state.pools {
        if !c.may(&format!("/pool/{id}"), &["Pool.Audit"]) {
            continue;
        }
        let mut row = Map::new();
        row.insert("poolid".to_owned(), json!(id));
        if !pool.comment.is_empty() {
            row.insert("comment".to_owned(), json!(pool.comment));
        }
        rows.push(Value::Object(row));
    }
    Ok(Reply::from(Value::Array(rows)))
}

fn missing(id: &str) -> Failure {
    Failure::died(format!("pool '{id}' does not exist"))
}

fn details(c: &Call<'_>, id: &str) -> Result<Map<String, Value>, Failure> {
    c.demand(&format!("/pool/{id}"), &["Pool.Audit"])?;
    let pool = c.state.pools.get(id).ok_or_else(|| missing(id))?;
    let wanted = c.text("type");
    let is = |kind: &str| wanted.as_deref().is_none_or(|w| w == kind);
    let mut members: Vec<Value> = pool
        .guests
        .iter()
        .filter_map(|vmid| c.state.guests.get(vmid))
        .filter(|g| is(g.kind.name()))
        .map(|g| guests::resource(c, g))
        .collect();
    if is("storage") {
        let rows = storages::resources(c).into_iter();
        members.extend(rows.filter(|r| {
            let storage = r.get("storage").and_then(Value::as_str);
            pool.storages.iter().any(|s| Some(s.as_str()) == storage)
        }));
    }
    let mut map = Map::new();
    map.insert("poolid".to_owned(), json!(id));
    if !pool.comment.is_empty() {
        map.insert("comment".to_owned(), json!(pool.comment));
    }
    map.insert("members".to_owned(), Value::Array(members));
    Ok(map)
}

fn create(c: &mut Call<'_>) -> Answer {
    let id = c.need("poolid");
    if c.state.pools.contains_key(&id) {
        return Err(Failure::died(format!("create pool failed: pool '{id}' already exists")));
    }
    let comment = c.text("comment").unwrap_or_default();
    c.state.pools.insert(id, Pool { comment, ..Pool::default() });
    done()
}

fn update(c: &mut Call<'_>) -> Answer {
    let id = c.need("poolid");
    let (vms, stores) = (c.list("vms"), c.list("storage"));
    let (remove, moving) = (c.flag("delete"), c.flag("allow-move"));
    let comment = c.text("comment");
    let fail = |text: String| Failure::died(format!("update pools failed: {text}"));
    for vmid in &vms {
        c.demand(&format!("/vms/{vmid}"), &["Permissions.Modify"])?;
    }
    if !c.state.pools.contains_key(&id) {
        return Err(fail(format!("pool '{id}' does not exist")));
    }
    for vmid in vms.iter().filter_map(|v| v.parse::<u32>().ok()) {
        let there = c.state.pool_of(vmid).map(str::to_owned);
        if remove {
            if there.as_deref() != Some(id.as_str()) {
                return Err(fail(format!("VM {vmid} is not a pool member")));
            }
        } else if let Some(other) = there.filter(|_| !moving) {
            return Err(fail(format!("VM {vmid} is already a pool member of '{other}'")));
        }
        for pool in c.state.pools.values_mut() {
            pool.guests.retain(|g| *g != vmid);
        }
        if !remove && let Some(pool) = c.state.pools.get_mut(&id) {
            pool.guests.push(vmid);
        }
    }
    let Some(pool) = c.state.pools.get_mut(&id) else { return done() };
    for storage in stores {
        pool.storages.retain(|s| *s != storage);
        if !remove {
            pool.storages.push(storage);
        }
    }
    if let Some(comment) = comment {
        pool.comment = comment;
    }
    done()
}

fn delete(c: &mut Call<'_>) -> Answer {
    let id = c.need("poolid");
    let fail = |text: String| Failure::died(format!("delete pool failed: {text}"));
    let pool = c.state.pools.get(&id).ok_or_else(|| fail(format!("pool '{id}' does not exist")))?;
    if let Some(vmid) = pool.guests.first() {
        return Err(fail(format!("pool '{id}' is not empty (contains VM {vmid})")));
    }
    if let Some(storage) = pool.storages.first() {
        return Err(fail(format!("pool '{id}' is not empty (contains storage '{storage}')")));
    }
    c.state.pools.remove(&id);
    done()
}
