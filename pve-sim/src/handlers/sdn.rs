//! Software-defined network: zones, vnets, subnets and the like, pending until applied.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Route;
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;
use crate::api::params;
use crate::state::config::digest_of;
use crate::state::task::Plan;

macro_rules! kind_routes {
    ($($path:literal $id:literal $kind:literal;)+) => { &[$(
        ("GET", concat!("/cluster/sdn/", $path), |c| list(c, $kind)),
        ("POST", concat!("/cluster/sdn/", $path), |c| create(c, $kind, $id)),
        ("GET", concat!("/cluster/sdn/", $path, "/{", $id, "}"), |c| read(c, $kind, $id)),
        ("PUT", concat!("/cluster/sdn/", $path, "/{", $id, "}"), |c| update(c, $kind, $id)),
        ("DELETE", concat!("/cluster/sdn/", $path, "/{", $id, "}"), |c| delete(c, $kind, $id)),
    )+] };
}

/// The objects that are kept alike.
pub(crate) const ROUTES: &[Route] = kind_routes!(
    "zones" "zone" "zones";
    "vnets" "vnet" "vnets";
    "controllers" "controller" "controllers";
    "dns" "dns" "dns";
    "vnets/{vnet}/subnets" "subnet" "subnets";
);

/// What stands around them.
pub(crate) const OTHERS: &[Route] = &[
    ("PUT", "/cluster/sdn", apply),
    ("GET", "/cluster/sdn/ipams", ipams),
    ("GET", "/cluster/sdn/ipams/{ipam}", ipam),
    ("GET", "/cluster/sdn/ipams/{ipam}/status", |_| Ok(json!([]).into())),
    ("GET", "/cluster/sdn/fabrics", |_| {
        Ok(json!([{"subdir": "fabric"}, {"subdir": "node"}, {"subdir": "all"}]).into())
    }),
    ("GET", "/cluster/sdn/fabrics/all", |_| Ok(json!({"fabrics": [], "nodes": []}).into())),
    ("GET", "/cluster/sdn/vnets/{vnet}/firewall", |_| {
        Ok(json!([{"name": "rules"}, {"name": "options"}]).into())
    }),
    ("POST", "/cluster/sdn/rollback", rollback),
    ("GET", "/nodes/{node}/sdn", |_| {
        Ok(json!([{"id": "fabrics"}, {"id": "vnets"}, {"id": "zones"}]).into())
    }),
    ("GET", "/nodes/{node}/sdn/zones", node_zones),
    ("GET", "/nodes/{node}/sdn/zones/{zone}", |_| {
        Ok(json!([{"subdir": "content"}, {"subdir": "bridges"}]).into())
    }),
    ("GET", "/nodes/{node}/sdn/zones/{zone}/content", zone_content),
];

type Objects = BTreeMap<String, Map<String, Value>>;

/// Where a kind of objects is kept: subnets by their vnet.
fn key(c: &Call<'_>, kind: &str) -> String {
    if kind == "subnets" { format!("subnets/{}", c.need("vnet")) } else { kind.to_owned() }
}

fn configured(c: &Call<'_>, kind: &str) -> Objects {
    c.state.sdn.config.get(&key(c, kind)).cloned().unwrap_or_default()
}

fn running(c: &Call<'_>, kind: &str) -> Objects {
    c.state.sdn.running.get(&key(c, kind)).cloned().unwrap_or_default()
}

/// Whether the caller sees an object.
fn sees(c: &Call<'_>, kind: &str, id: &str, object: &Map<String, Value>) -> bool {
    const ANY: [&str; 3] = ["SDN.Audit", "SDN.Use", "SDN.Allocate"];
    let zone = object.get("zone").map(params::text).unwrap_or_default();
    match kind {
        "zones" => c.may(&format!("/sdn/zones/{id}"), &ANY),
        "vnets" => c.may(&format!("/sdn/zones/{zone}/{id}"), &ANY),
        _ => c.may("/sdn", &ANY),
    }
}

/// A member that names or sorts an object; the others are its settings.
fn is_identity(kind: &str, name: &str) -> bool {
    name == "type"
        || matches!(
            (kind, name),
            ("zones", "zone") | ("vnets", "vnet") | ("subnets", "subnet" | "vnet")
        )
}

/// An object with what applying would change.
fn with_pending(
    kind: &str,
    now: Option<&Map<String, Value>>,
    next: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    let mut pending = Map::new();
    let (base, state) = match (now, next) {
        (None, Some(next)) => {
            let own = next.iter().filter(|(n, _)| !is_identity(kind, n));
            pending.extend(own.map(|(n, v)| (n.clone(), v.clone())));
            (
                next.iter()
                    .filter(|(n, _)| is_identity(kind, n))
                    .map(|(n, v)| (n.clone(), v.clone()))
                    .collect(),
                Some("new"),
            )
        }
        (Some(now), None) => (now.clone(), Some("deleted")),
        (Some(now), Some(next)) => {
            for (name, value) in next.iter().filter(|(n, v)| now.get(*n) != Some(v)) {
                pending.insert(name.clone(), value.clone());
            }
            for name in now.keys().filter(|n| !next.contains_key(*n)) {
                pending.insert(name.clone(), json!("deleted"));
            }
            (now.clone(), (!pending.is_empty()).then_some("changed"))
        }
        (None, None) => (Map::new(), None),
    };
    let mut row: Map<String, Value> = base;
    if let Some(state) = state {
        row.insert("state".to_owned(), json!(state));
        row.insert("pending".to_owned(), Value::Object(pending));
        row.insert("digest".to_owned(), Value::Null);
    }
    row
}

fn rows(c: &Call<'_>, kind: &str) -> Objects {
    let (now, next) = (running(c, kind), configured(c, kind));
    if c.flag("running") {
        return now;
    }
    if !c.flag("pending") {
        return next;
    }
    let ids: std::collections::BTreeSet<&String> = now.keys().chain(next.keys()).collect();
    ids.into_iter().map(|id| (id.clone(), with_pending(kind, now.get(id), next.get(id)))).collect()
}

fn list(c: &mut Call<'_>, kind: &str) -> Answer {
    let digest = digest_of(&json!(configured(c, kind)));
    let wanted = c.text("type");
    let mut all = Vec::new();
    for (id, mut row) in rows(c, kind) {
        let fits = wanted.as_deref().is_none_or(|w| row.get("type").is_some_and(|t| t == w));
        if fits && sees(c, kind, &id, &row) {
            row.entry("digest").or_insert(json!(digest));
            all.push(Value::Object(row));
        }
    }
    Ok(Value::Array(all).into())
}

/// What messages call one of a kind.
fn noun(kind: &str) -> &str {
    kind.strip_suffix('s').filter(|_| kind != "dns").unwrap_or(kind)
}

fn missing(kind: &str, id: &str) -> Failure {
    Failure::died(
        format!("sdn '{id}' does not exist")
            .replace("sdn", if kind == "dns" { "dns" } else { "sdn" }),
    )
}

fn read(c: &mut Call<'_>, kind: &str, id: &str) -> Answer {
    let id = c.need(id);
    let mut row = rows(c, kind).remove(&id).ok_or_else(|| missing(kind, &id))?;
    row.entry("digest").or_insert(json!(digest_of(&json!(configured(c, kind)))));
    Ok(Value::Object(row).into())
}

/// The settings that were given.
fn given(c: &Call<'_>) -> Map<String, Value> {
    const CALL: [&str; 4] = ["lock-token", "digest", "delete", "pending"];
    let number = |n: &str| {
        matches!(n, "tag" | "mtu" | "vlanaware" | "snat" | "isolate-ports" | "asn" | "vxlan-port")
    };
    c.params
        .iter()
        .filter(|(n, _)| !CALL.contains(&n.as_str()))
        .map(|(n, v)| {
            let text = params::text(v);
            let value = text
                .parse::<i64>()
                .ok()
                .filter(|_| number(n))
                .map_or(Value::String(text), Value::from);
            (n.clone(), value)
        })
        .collect()
}

/// The zone of an object has to be there.
fn check_zone(c: &Call<'_>, kind: &str, object: &Map<String, Value>) -> Result<(), Failure> {
    if kind != "vnets" {
        return Ok(());
    }
    let zone = object.get("zone").map(params::text).unwrap_or_default();
    if configured(c, "zones").contains_key(&zone) {
        return Ok(());
    }
    Err(Failure::died(format!("can't find zone {zone} in configuration")))
}

fn create(c: &mut Call<'_>, kind: &str, id_name: &str) -> Answer {
    let mut id = c.need(id_name);
    let mut object = given(c);
    if kind == "subnets" {
        let vnet = c.need("vnet");
        let zone = configured(c, "vnets").get(&vnet).and_then(|v| v.get("zone")).map(params::text);
        let zone = zone.ok_or_else(|| Failure::died(format!("vnet '{vnet}' does not exist")))?;
        object.insert("cidr".to_owned(), json!(id));
        id = format!("{zone}-{}", id.replace('/', "-"));
        object.insert("subnet".to_owned(), json!(id));
    }
    let default = match kind {
        "vnets" => "vnet",
        "subnets" => "subnet",
        _ => "simple",
    };
    object.entry("type").or_insert(json!(default));
    check_zone(c, kind, &object)?;
    if configured(c, kind).contains_key(&id) {
        let text = format!("sdn {} object ID '{id}' already defined", noun(kind));
        return Err(Failure::died(format!("create sdn {} object failed: {text}", noun(kind))));
    }
    let key = key(c, kind);
    c.state.sdn.config.entry(key).or_default().insert(id, object);
    done()
}

fn update(c: &mut Call<'_>, kind: &str, id_name: &str) -> Answer {
    let id = c.need(id_name);
    let mut object = configured(c, kind).remove(&id).ok_or_else(|| missing(kind, &id))?;
    if let Some(given) = c.text("digest")
        && given != digest_of(&json!(configured(c, kind)))
    {
        return Err(Failure::died(
            "detected modified configuration - file changed by other user? Try again.",
        ));
    }
    for name in c.list("delete") {
        object.remove(&name);
    }
    let mut settings = given(c);
    settings.remove(id_name);
    object.extend(settings);
    check_zone(c, kind, &object)?;
    let key = key(c, kind);
    c.state.sdn.config.entry(key).or_default().insert(id, object);
    done()
}

fn delete(c: &mut Call<'_>, kind: &str, id_name: &str) -> Answer {
    let id = c.need(id_name);
    if kind == "zones" {
        let used = configured(c, "vnets")
            .into_iter()
            .find(|(_, v)| v.get("zone").is_some_and(|z| *z == id));
        if let Some((vnet, _)) = used {
            return Err(Failure::died(format!(
                "delete sdn object failed: zone {id} is used by vnet {vnet}"
            )));
        }
    }
    if kind == "vnets" {
        let subnets = c.state.sdn.config.get(&format!("subnets/{id}"));
        if subnets.is_some_and(|s| !s.is_empty()) {
            return Err(Failure::died(format!(
                "delete sdn vnet failed: Can't delete vnet {id} if subnets exists"
            )));
        }
    }
    let key = key(c, kind);
    let gone = c.state.sdn.config.entry(key).or_default().remove(&id);
    gone.ok_or_else(|| missing(kind, &id))?;
    done()
}

fn apply(c: &mut Call<'_>) -> Answer {
    let node = c.state.local.clone();
    c.start(Plan::new(&node, "reloadnetworkall", "", 900, |state, _| {
        state.sdn.running = state.sdn.config.clone();
        let names: Vec<&String> =
            state.nodes.iter().filter(|(_, n)| n.online).map(|(n, _)| n).collect();
        Ok(names.into_iter().map(|n| format!("{n}: reloading network config")).collect())
    }))
}

fn rollback(c: &mut Call<'_>) -> Answer {
    c.state.sdn.config = c.state.sdn.running.clone();
    done()
}

fn ipams(_: &mut Call<'_>) -> Answer {
    Ok(json!([{"ipam": "pve", "type": "pve", "digest": "da39a3ee5e6b4b0d3255bfef95601890afd80709"}]).into())
}

fn ipam(c: &mut Call<'_>) -> Answer {
    let id = c.need("ipam");
    if id != "pve" {
        return Err(missing("ipams", &id));
    }
    Ok(json!({"ipam": "pve", "type": "pve"}).into())
}

fn node_zones(c: &mut Call<'_>) -> Answer {
    let zones = running(c, "zones");
    let rows = zones.iter().filter(|(id, z)| sees(c, "zones", id, z));
    Ok(rows.map(|(id, _)| json!({"zone": id, "status": "available"})).collect::<Value>().into())
}

/// The vnets of a zone as a node has them.
fn zone_content(c: &mut Call<'_>) -> Answer {
    let zone = c.need("zone");
    let vnets = running(c, "vnets");
    let own = vnets.iter().filter(|(_, v)| v.get("zone").is_some_and(|z| *z == zone));
    Ok(own.map(|(id, _)| json!({"vnet": id, "status": "available"})).collect::<Value>().into())
}
