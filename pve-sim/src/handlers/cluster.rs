//! The cluster: version, resources, status, log, tasks, options.

use serde_json::{Map, Value, json};

use super::calendar;
use super::{Route, guests, storages};
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;
use crate::api::params::split_list;
use crate::state::rrd::noise;

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/version", version),
    ("GET", "/cluster/resources", resources),
    ("GET", "/cluster/status", status),
    ("GET", "/cluster/nextid", next_id),
    ("GET", "/cluster/options", options),
    ("PUT", "/cluster/options", set_options),
    ("GET", "/cluster/log", log),
    ("GET", "/cluster/tasks", tasks),
    ("GET", "/cluster/jobs/schedule-analyze", calendar::analyze),
    ("GET", "/cluster/jobs/realm-sync", |_| Ok(json!([]).into())),
    ("GET", "/cluster/mapping/pci", |c| document(c, "/cluster/mapping/pci")),
    ("GET", "/cluster/mapping/usb", |c| document(c, "/cluster/mapping/usb")),
    ("GET", "/cluster/mapping/dir", |c| document(c, "/cluster/mapping/dir")),
    ("GET", "/cluster/metrics/server", |c| document(c, "/cluster/metrics/server")),
    ("GET", "/cluster/notifications/targets", |c| document(c, "/cluster/notifications/targets")),
    ("GET", "/cluster/notifications/matchers", |c| document(c, "/cluster/notifications/matchers")),
    ("GET", "/cluster/acme/plugins", |c| document(c, "/cluster/acme/plugins")),
    ("GET", "/cluster/acme/account", |c| document(c, "/cluster/acme/account")),
    ("GET", "/cluster/config/nodes", config_nodes),
    ("GET", "/cluster/config/join", config_join),
    // An empty object where there is none.
    ("GET", "/cluster/config/qdevice", |c| {
        let found = c.state.documents.get("/cluster/config/qdevice").cloned();
        Ok(found.unwrap_or_else(|| json!({})).into())
    }),
    ("GET", "/cluster/config/totem", |c| {
        Ok(c.state.documents.get("/cluster/config/totem").cloned().unwrap_or_default().into())
    }),
    ("GET", "/cluster/ceph/status", no_ceph),
];

fn version(c: &mut Call<'_>) -> Answer {
    let (version, release) = &c.state.version;
    Ok(json!({"release": release, "version": version, "repoid": "14a22df3a1b2c3d4"}).into())
}

/// A stored document; an empty list when there is none.
fn document(c: &mut Call<'_>, path: &str) -> Answer {
    Ok(c.state.documents.get(path).cloned().unwrap_or_else(|| json!([])).into())
}

pub(super) fn no_ceph(_: &mut Call<'_>) -> Answer {
    Err(Failure::died("binary not installed: /usr/bin/ceph-mon"))
}

fn resources(c: &mut Call<'_>) -> Answer {
    let wanted = c.text("type");
    let is = |kind: &str| wanted.as_deref().is_none_or(|w| w == kind);
    let mut all = Vec::new();
    if is("vm") {
        for guest in c.state.guests.values() {
            if c.may(&format!("/vms/{}", guest.vmid), &["VM.Audit"]) {
                all.push(guests::resource(c, guest));
            }
        }
    }
    if is("node") {
        for node in c.state.nodes.values() {
            let mut row = super::nodes::row(c, node);
            row.remove("ssl_fingerprint");
            if node.online {
                row.insert("cgroup-mode".to_owned(), json!(2));
            }
            all.push(Value::Object(row));
        }
    }
    if is("storage") {
        all.extend(storages::resources(c));
    }
    if is("sdn") {
        all.extend(sdn(c));
    }
    if wanted.is_none() {
        for id in c.state.pools.keys() {
            if c.may(&format!("/pool/{id}"), &["Pool.Audit"]) {
                all.push(json!({"id": format!("/pool/{id}"), "pool": id, "type": "pool"}));
            }
        }
    }
    Ok(Value::Array(all).into())
}

fn sdn(c: &Call<'_>) -> Vec<Value> {
    let zones = c.state.sdn.running.get("zones").cloned().unwrap_or_default();
    let mut rows = Vec::new();
    for (node, _) in c.state.nodes.iter().filter(|(_, n)| n.online) {
        for (zone, config) in &zones {
            if c.may(&format!("/sdn/zones/{zone}"), &["SDN.Audit"]) {
                let kind = config.get("type").cloned().unwrap_or_default();
                rows.push(json!({"id": format!("sdn/{node}/{zone}"), "network": zone, "network-type": "zone",
                    "node": node, "sdn": zone, "status": "ok", "type": "sdn", "zone-type": kind}));
            }
        }
    }
    rows
}

fn status(c: &mut Call<'_>) -> Answer {
    let mut all = Vec::new();
    let online = c.state.nodes.values().filter(|n| n.online).count();
    if let Some(name) = &c.state.cluster {
        let count = c.state.nodes.len();
        all.push(json!({"type": "cluster", "id": "cluster", "name": name, "nodes": count,
            "quorate": u8::from(online * 2 > count), "version": count}));
    }
    for node in c.state.nodes.values() {
        all.push(json!({"type": "node", "id": format!("node/{}", node.name), "name": node.name, "nodeid": node.id,
            "ip": node.ip, "level": node.level, "online": u8::from(node.online),
            "local": u8::from(node.name == c.state.local)}));
    }
    Ok(Value::Array(all).into())
}

fn next_id(c: &mut Call<'_>) -> Answer {
    match c.int("vmid") {
        Some(id) if c.state.guests.contains_key(&u32::try_from(id).unwrap_or(0)) => {
            Err(Failure::parameter("vmid", format!("VM {id} already exists")))
        }
        Some(id) => Ok(json!(id.to_string()).into()),
        None => Ok(json!(c.state.next_id().to_string()).into()),
    }
}

/// The tags that the caller's guests carry.
fn tags(c: &Call<'_>) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for guest in c.state.guests.values() {
        if c.may(&format!("/vms/{}", guest.vmid), &["VM.Audit"]) {
            tags.extend(guest.tags().into_iter().map(str::to_owned));
        }
    }
    tags.sort();
    tags.dedup();
    tags
}

fn options(c: &mut Call<'_>) -> Answer {
    let mut map = Map::new();
    if c.may("/", &["Sys.Audit"]) {
        map = c.state.options.clone();
        map.entry("mac_prefix").or_insert_with(|| json!("BC:24:11"));
    }
    map.insert("allowed-tags".to_owned(), json!(tags(c)));
    Ok(Value::Object(map).into())
}

fn set_options(c: &mut Call<'_>) -> Answer {
    for name in split_list(&c.need("delete")) {
        c.state.options.remove(&name);
    }
    for (name, value) in c.params.clone() {
        match name.as_str() {
            "delete" => {}
            // Notes end in a line end.
            "description" => {
                let text = crate::api::params::text(&value);
                c.state.options.insert(name, json!(format!("{text}\n")));
            }
            _ => {
                c.state.options.insert(name, value);
            }
        }
    }
    done()
}

fn log(c: &mut Call<'_>) -> Answer {
    let all = c.may("/", &["Sys.Syslog"]);
    let user = c.login.full();
    let max = usize::try_from(c.int("max").unwrap_or(50)).unwrap_or(50);
    let rows: Vec<Value> = c
        .state
        .log
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, l)| all || l.user == user)
        .take(max)
        .map(|(n, l)| {
            let uid = (n + 1).to_string();
            let pid = 400 + (noise(&l.msg, l.time) * 4000.0) as u32;
            json!({"uid": uid, "id": format!("{uid}:{}", l.node), "time": l.time, "node": l.node, "user": l.user,
                "tag": l.tag, "pri": l.pri, "pid": pid, "msg": l.msg})
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn tasks(c: &mut Call<'_>) -> Answer {
    let rows = super::tasks::visible(c, None);
    let rows: Vec<Value> = rows
        .into_iter()
        .take(25 * c.state.nodes.len())
        .map(|t| {
            let mut row = super::tasks::row(t);
            row.remove("pid");
            row.remove("pstart");
            if t.exit.is_some() {
                row.insert("saved".to_owned(), json!("1"));
            } else {
                row.remove("status");
            }
            Value::Object(row)
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn config_nodes(c: &mut Call<'_>) -> Answer {
    if c.state.cluster.is_none() {
        return Ok(json!([]).into());
    }
    let row = |n: &crate::state::node::Node| json!({"name": n.name, "node": n.name, "nodeid": n.id.to_string(), "quorum_votes": "1", "ring0_addr": n.ip});
    Ok(Value::Array(c.state.nodes.values().map(row).collect()).into())
}

fn config_join(c: &mut Call<'_>) -> Answer {
    if c.state.cluster.is_none() {
        let text = "node is not in a cluster, no join info available!";
        return Err(Failure { newline: false, ..Failure::new(424, text) });
    }
    let nodes: Vec<Value> = c
        .state
        .nodes
        .values()
        .map(|n| {
            json!({"name": n.name, "nodeid": n.id.to_string(), "quorum_votes": "1", "ring0_addr": n.ip, "pve_addr": n.ip,
                "pve_fp": n.fingerprint})
        })
        .collect();
    let totem = c.state.documents.get("/cluster/config/totem").cloned().unwrap_or_default();
    Ok(json!({"nodelist": nodes, "preferred_node": c.state.local, "totem": totem, "config_digest":
        crate::state::config::digest(c.state.nodes.keys())})
    .into())
}
