//! Snapshots: list, configuration, make, change, delete, roll back.

use serde_json::{Map, Value, json};

use super::Route;
use super::guests::{can_snapshot, find, missing, snapshot_config};
use super::power::lock_error;
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;
use crate::state::State;
use crate::state::guest::{Guest, Kind, Snapshot};

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/nodes/{node}/qemu/{vmid}/snapshot", |c| list(c, Kind::Qemu)),
    ("GET", "/nodes/{node}/lxc/{vmid}/snapshot", |c| list(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/qemu/{vmid}/snapshot", |c| create(c, Kind::Qemu)),
    ("POST", "/nodes/{node}/lxc/{vmid}/snapshot", |c| create(c, Kind::Lxc)),
    ("GET", "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}", index),
    ("GET", "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}", index),
    ("DELETE", "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}", |c| delete(c, Kind::Qemu)),
    ("DELETE", "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}", |c| delete(c, Kind::Lxc)),
    ("GET", "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config", |c| config(c, Kind::Qemu)),
    ("GET", "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}/config", |c| config(c, Kind::Lxc)),
    ("PUT", "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config", |c| update(c, Kind::Qemu)),
    ("PUT", "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}/config", |c| update(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}/rollback", |c| rollback(c, Kind::Qemu)),
    ("POST", "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}/rollback", |c| rollback(c, Kind::Lxc)),
];

const TAKES: i64 = 700;

fn index(_: &mut Call<'_>) -> Answer {
    Ok(json!([{"cmd": "rollback"}, {"cmd": "config"}]).into())
}

fn list(c: &mut Call<'_>, kind: Kind) -> Answer {
    let guest = find(c.state, &c.node(), c.vmid(), kind)?;
    let mut rows = Vec::new();
    for s in &guest.snapshots {
        let mut row = Map::new();
        row.insert("name".to_owned(), json!(s.name));
        row.insert("snaptime".to_owned(), json!(s.time));
        row.insert("description".to_owned(), json!(s.description));
        if kind == Kind::Qemu {
            row.insert("vmstate".to_owned(), json!(u8::from(s.vmstate)));
        }
        if let Some(parent) = &s.parent {
            row.insert("parent".to_owned(), json!(parent));
        }
        rows.push(Value::Object(row));
    }
    let mut current = Map::new();
    current.insert("name".to_owned(), json!("current"));
    current.insert("description".to_owned(), json!("You are here!"));
    current.insert("digest".to_owned(), json!(guest.digest()));
    current.insert("running".to_owned(), json!(u8::from(guest.running())));
    if let Some(parent) = &guest.parent {
        current.insert("parent".to_owned(), json!(parent));
    }
    rows.push(Value::Object(current));
    Ok(Value::Array(rows).into())
}

fn gone(name: &str) -> String {
    format!("snapshot '{name}' does not exist")
}

fn config(c: &mut Call<'_>, kind: Kind) -> Answer {
    let guest = find(c.state, &c.node(), c.vmid(), kind)?;
    let name = c.need("snapname");
    let snapshot = guest.snapshots.iter().find(|s| s.name == name);
    let snapshot = snapshot.ok_or_else(|| Failure::died(gone(&name)))?;
    Ok(Value::Object(snapshot_config(snapshot, kind)).into())
}

fn guest_mut<'a>(
    state: &'a mut State,
    node: &str,
    vmid: u32,
    kind: Kind,
) -> Result<&'a mut Guest, String> {
    let found = state.guests.get_mut(&vmid).filter(|g| g.kind == kind && g.node == node);
    found.ok_or_else(|| missing(kind, node, vmid))
}

fn update(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid, name) = (c.node(), c.vmid(), c.need("snapname"));
    let description = c.text("description");
    let guest = guest_mut(c.state, &node, vmid, kind).map_err(Failure::died)?;
    if let Some(text) = lock_error(guest) {
        return Err(Failure::died(text));
    }
    let snapshot = guest.snapshots.iter_mut().find(|s| s.name == name);
    let snapshot = snapshot.ok_or_else(|| Failure::died(gone(&name)))?;
    if let Some(description) = description {
        snapshot.description = description;
    }
    done()
}

fn create(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid, name) = (c.node(), c.vmid(), c.need("snapname"));
    if name == "current" {
        return Err(Failure::died(format!("unable to use snapshot name '{name}' (reserved name)")));
    }
    if name == "vzdump" && kind == Kind::Lxc {
        return Err(Failure::died(format!("unable to use snapshot name '{name}' (reserved name)")));
    }
    let description = c.text("description").unwrap_or_default();
    let memory = c.flag("vmstate");
    let id = vmid.to_string();
    let type_name = kind.task("snapshot");
    // What the task finds wrong at its beginning.
    let check = |state: &State| -> Result<(), String> {
        let guest = state.guests.get(&vmid).filter(|g| g.kind == kind && g.node == node);
        let guest = guest.ok_or_else(|| missing(kind, &node, vmid))?;
        if let Some(text) = lock_error(guest) {
            return Err(text);
        }
        if guest.template() {
            return Err("can't take a snapshot if it's a template".to_owned());
        }
        if guest.snapshots.iter().any(|s| s.name == name) {
            return Err(format!("snapshot name '{name}' already used"));
        }
        if can_snapshot(state, guest) {
            Ok(())
        } else {
            Err("snapshot feature is not available".to_owned())
        }
    };
    if let Err(text) = check(c.state) {
        return c.spawn_failing(&type_name, &id, text);
    }
    let now = c.now();
    if let Some(guest) = c.state.guests.get_mut(&vmid) {
        guest.set_lock("snapshot", now);
    }
    let plan_node = node.clone();
    let takes = if memory { TAKES * 3 } else { TAKES };
    let plan =
        crate::state::task::Plan::new(&plan_node, &type_name, &id, takes, move |state, end| {
            let guest = guest_mut(state, &node, vmid, kind)?;
            let line = |(key, value): (String, String)| {
                let volid = value.split(',').next().unwrap_or("").to_owned();
                format!("snapshotting 'drive-{key}' ({volid})")
            };
            let log = guest.disks().into_iter().map(line).collect();
            let snapshot = Snapshot {
                name: name.clone(),
                parent: guest.parent.clone(),
                time: end.div_euclid(1000),
                description,
                vmstate: memory && guest.running(),
                config: guest.config.for_snapshot(),
            };
            guest.snapshots.push(snapshot);
            guest.parent = Some(name);
            Ok(log)
        });
    c.start(plan.holding([vmid]))
}

fn delete(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid, name) = (c.node(), c.vmid(), c.need("snapname"));
    let force = c.flag("force");
    c.spawn(&kind.task("delsnapshot"), &vmid.to_string(), TAKES, move |state, _| {
        let guest = guest_mut(state, &node, vmid, kind)?;
        if let Some(text) = lock_error(guest).filter(|_| !force) {
            return Err(text);
        }
        let at = guest.snapshots.iter().position(|s| s.name == name).ok_or_else(|| gone(&name))?;
        let removed = guest.snapshots.remove(at);
        // Its children take its place in the tree.
        for s in guest.snapshots.iter_mut().filter(|s| s.parent.as_deref() == Some(name.as_str())) {
            s.parent.clone_from(&removed.parent);
        }
        if guest.parent.as_deref() == Some(name.as_str()) {
            guest.parent = removed.parent;
        }
        Ok(Vec::new())
    })
}

fn rollback(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid, name) = (c.node(), c.vmid(), c.need("snapname"));
    let start = c.flag("start");
    c.spawn(&kind.task("rollback"), &vmid.to_string(), TAKES, move |state, now| {
        let pid = state.tasks.pid();
        let guest = guest_mut(state, &node, vmid, kind)?;
        if let Some(text) = lock_error(guest) {
            return Err(text);
        }
        let snapshot =
            guest.snapshots.iter().find(|s| s.name == name).cloned().ok_or_else(|| gone(&name))?;
        guest.run = None;
        guest.pending.clear();
        guest.config = guest.config.rolled_back(&snapshot.config);
        guest.parent = Some(name);
        if snapshot.vmstate || start {
            guest.start(now.div_euclid(1000), pid);
        }
        Ok(Vec::new())
    })
}
