//! Deleting, cloning and templating guests.

use serde_json::{Value, json};

use super::Route;
use super::create::{fresh_uuid, renewed_nic, reserving};
use super::disks::{self, Owner};
use super::guests::{find, lease};
use super::power::{lock_error, unlocked};
use crate::api::call::{Answer, Call};
use crate::api::failure::Failure;
use crate::api::params;
use crate::state::State;
use crate::state::guest::{Guest, Kind, disk_size, indexed};

pub(crate) const ROUTES: &[Route] = &[
    ("DELETE", "/nodes/{node}/qemu/{vmid}", |c| destroy(c, Kind::Qemu)),
    ("DELETE", "/nodes/{node}/lxc/{vmid}", |c| destroy(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/qemu/{vmid}/clone", |c| clone(c, Kind::Qemu)),
    ("POST", "/nodes/{node}/lxc/{vmid}/clone", |c| clone(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/qemu/{vmid}/template", |c| template(c, Kind::Qemu)),
    ("POST", "/nodes/{node}/lxc/{vmid}/template", |c| template(c, Kind::Lxc)),
];

/// A guest's id in HA, e.g. `vm:100`.
pub(super) fn sid(guest: &Guest) -> String {
    format!("{}:{}", guest.kind.short().to_lowercase(), guest.vmid)
}

fn destroy(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid) = (c.node(), c.vmid());
    let (purge, others, force) =
        (c.flag("purge"), c.flag("destroy-unreferenced-disks"), c.flag("force"));
    let guest = find(c.state, &node, vmid, kind)?;
    let noun = kind.short();
    if guest.config.on("protection") {
        return Err(Failure::died(format!("can't remove {noun} {vmid} - protection mode enabled")));
    }
    if guest.running() && !(force && kind == Kind::Lxc) {
        return Err(Failure::died(match kind {
            Kind::Qemu => format!("VM {vmid} is running - destroy failed"),
            Kind::Lxc => format!("unable to destroy CT {vmid} - container is running"),
        }));
    }
    if !purge && c.state.ha_resources.contains_key(&sid(guest)) {
        return Err(Failure::died(format!(
            "unable to remove {noun} {vmid} - used in HA resources and purge parameter not set."
        )));
    }
    if !purge && let Some(id) = replicated(c.state, vmid) {
        return Err(Failure::died(format!(
            "unable to remove {noun} {vmid} - used in replication job '{id}'"
        )));
    }
    c.spawn(&kind.task("destroy"), &vmid.to_string(), 300, move |state, _| {
        let guest = unlocked(state, &node, vmid, kind)?.clone();
        let disks: Vec<String> = guest.disks().iter().map(|(_, v)| disks::volume_of(v)).collect();
        let child = state.volumes.iter().find(|v| {
            v.parent.as_ref().is_some_and(|p| disks.iter().any(|d| d.ends_with(p.as_str())))
        });
        if let Some(child) = child {
            let base = child.parent.clone().unwrap_or_default();
            return Err(format!("base volume '{base}' is still in use by linked cloned"));
        }
        for volume in &disks {
            disks::drop_volume(state, &node, volume);
        }
        if others {
            state.volumes.retain(|v| {
                !(v.vmid == Some(vmid)
                    && matches!(v.content.as_str(), "images" | "rootdir")
                    && v.seen_from(&node))
            });
        }
        forget(state, &guest, purge);
        Ok(if purge {
            vec![format!("purging {noun} {vmid} from related configurations..")]
        } else {
            Vec::new()
        })
    })
}

fn replicated(state: &State, vmid: u32) -> Option<String> {
    state
        .replication
        .iter()
        .find(|(_, j)| j.get("guest").is_some_and(|g| *g == vmid))
        .map(|(id, _)| id.clone())
}

/// Removes a guest from everything that names it; jobs, HA and replication only when purging.
fn forget(state: &mut State, guest: &Guest, purge: bool) {
    let vmid = guest.vmid;
    state.guests.remove(&vmid);
    for pool in state.pools.values_mut() {
        pool.guests.retain(|g| *g != vmid);
    }
    let path = format!("/vms/{vmid}");
    state.access.rules.retain(|r| r.path != path);
    state.firewalls.remove(&format!("guest/{vmid}"));
    if !purge {
        return;
    }
    state.ha_resources.remove(&sid(guest));
    state.replication.retain(|_, j| j.get("guest").is_none_or(|g| *g != vmid));
    for job in state.backup_jobs.values_mut() {
        if let Some(list) = job.get("vmid").map(params::text) {
            let left: Vec<String> =
                params::split_list(&list).into_iter().filter(|v| *v != vmid.to_string()).collect();
            job.insert("vmid".to_owned(), json!(left.join(",")));
        }
    }
}

fn clone(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid) = (c.node(), c.vmid());
    let new: u32 = c.need("newid").parse().unwrap_or(0);
    let target = c.text("target").unwrap_or_else(|| node.clone());
    let (storage, name, description) =
        (c.text("storage"), c.text("name").or_else(|| c.text("hostname")), c.text("description"));
    let (pool, snapname) = (c.text("pool"), c.text("snapname"));
    let by_pool = pool.as_ref().is_some_and(|p| c.may(&format!("/pool/{p}"), &["VM.Allocate"]));
    if !by_pool {
        c.demand(&format!("/vms/{new}"), &["VM.Allocate"])?;
    }
    let source = find(c.state, &node, vmid, kind)?;
    if c.state.guests.contains_key(&new) {
        return Err(Failure::died(match kind {
            Kind::Qemu => format!("unable to create VM {new}: config file already exists"),
            Kind::Lxc => format!(
                "CT {new} already exists on node '{}'",
                c.state.guests.get(&new).map_or("", |g| &g.node)
            ),
        }));
    }
    if !c.state.nodes.contains_key(&target) {
        return Err(Failure::died(format!("no such cluster node '{target}'")));
    }
    if let Some(text) = lock_error(source) {
        return Err(Failure::died(text));
    }
    let full = c.switch("full").unwrap_or(!source.template());
    if !full && !source.template() {
        let drive = source.disks().first().map(|(k, _)| k.clone()).unwrap_or_default();
        return Err(Failure::died(format!(
            "Linked clone feature is not supported for drive '{drive}'"
        )));
    }
    let config = match &snapname {
        Some(s) if s != "current" => {
            let snapshot = source.snapshots.iter().find(|x| x.name == *s);
            snapshot
                .ok_or_else(|| Failure::died(format!("snapshot '{s}' does not exist")))?
                .config
                .clone()
        }
        _ => source.config.clone(),
    };
    let local = source.disks().iter().any(|(_, v)| {
        let volume = disks::volume_of(v);
        let owner =
            storage.as_deref().filter(|_| full).or_else(|| volume.split(':').next()).unwrap_or("");
        !c.state.storages.get(owner).is_some_and(|s| s.shared)
    });
    if target != node && local {
        return Err(Failure::died(
            "Can't clone VM to node '".to_owned() + &target + "' (VM uses local storage)",
        ));
    }
    if let Some(storage) = &storage {
        disks::check_storage(c.state, storage, &target, disks::content_of(kind))
            .map_err(Failure::died)?;
    }
    let takes = if full { 2000 } else { 500 };
    let place = target.clone();
    let owner = Owner { node: &place, vmid: new, kind };
    let work = reserving(c, owner, "clone", move |state, end| {
        let now = end.div_euclid(1000);
        let mut next = config;
        for key in ["template", "lock", "parent", "onboot", "protection"] {
            if key != "onboot" {
                next.remove(key);
            }
        }
        let owner = Owner { node: &target, vmid: new, kind };
        let mut log = Vec::new();
        let pairs: Vec<(String, String)> =
            next.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        for (key, value) in pairs {
            if key.starts_with("unused") {
                next.remove(&key);
            } else if disks::is_disk_key(kind, &key)
                && value.contains(':')
                && (!value.contains("media=cdrom") || value.contains("cloudinit"))
            {
                let copy = copy_disk(state, owner, &value, storage.as_deref(), full, now);
                log.push(format!(
                    "create {} clone of drive {key} ({})",
                    if full { "full" } else { "linked" },
                    disks::volume_of(&value)
                ));
                next.set(&key, copy);
            } else if indexed(&key, "net") {
                next.set(&key, renewed_nic(kind, new, &key, &value, end));
            }
        }
        if kind == Kind::Qemu {
            next.set("smbios1", format!("uuid={}", fresh_uuid(new, "smbios", end)));
            next.set("vmgenid", fresh_uuid(new, "gen", end));
            next.set("meta", format!("creation-qemu=10.0.13,ctime={now}"));
        }
        let key = if kind == Kind::Qemu { "name" } else { "hostname" };
        let old = next.get(key).map_or_else(|| format!("{}{vmid}", kind.short()), str::to_owned);
        next.set(key, name.unwrap_or_else(|| format!("Copy-of-{}-{old}", kind.short())));
        if let Some(text) = description {
            next.set("description", text);
        }
        let mut guest = Guest::new(new, kind, &target, next, now);
        if let Some(source) = state.guests.get(&vmid) {
            guest.load = source.load;
            guest.agent = source.agent.clone().map(|mut a| {
                a.addresses = vec![lease(new)];
                a
            });
        }
        state.guests.insert(new, guest);
        if let Some(pool) = pool.and_then(|p| state.pools.get_mut(&p)) {
            pool.guests.push(new);
        }
        Ok(log)
    });
    c.spawn(&kind.task("clone"), &vmid.to_string(), takes, work)
}

fn copy_disk(
    state: &mut State,
    owner: Owner<'_>,
    value: &str,
    storage: Option<&str>,
    full: bool,
    now: i64,
) -> String {
    let volume = disks::volume_of(value);
    let (own, base) = volume.split_once(':').unwrap_or(("", &volume));
    let target = storage.filter(|_| full).unwrap_or(own).to_owned();
    let size = disk_size(value).unwrap_or(4 << 20);
    let format = base.rsplit_once('.').map(|(_, e)| e.to_owned());
    let made = disks::make_volume(state, &target, owner, size, format.as_deref(), now);
    let mut id = made.clone();
    if !full
        && let Some(v) =
            state.volumes.iter_mut().find(|v| v.volid() == made && v.seen_from(owner.node))
    {
        // A linked clone names the volume it hangs on.
        let name = v.name.clone();
        v.parent = Some(base.rsplit('/').next().unwrap_or(base).to_owned());
        v.name = format!("{base}/{name}");
        id = v.volid();
    }
    let tail = value.split_once(',').map_or("", |(_, t)| t);
    format!("{id},{tail}").trim_end_matches(',').to_owned()
}

fn template(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid) = (c.node(), c.vmid());
    let guest = find(c.state, &node, vmid, kind)?;
    let article = if kind == Kind::Qemu { "VM" } else { "CT" };
    if guest.template() {
        return Err(Failure::died(format!(
            "you can't convert a template to a template - {article} {vmid} is one"
        )));
    }
    if !guest.snapshots.is_empty() {
        return Err(Failure::died(format!(
            "unable to create template, because {article} contains snapshots"
        )));
    }
    if guest.running() {
        return Err(Failure::died(format!(
            "you can't convert a {article} to template if {article} is running"
        )));
    }
    let work = move |state: &mut State, _: i64| {
        let guest = unlocked(state, &node, vmid, kind)?;
        let mut renamed = Vec::new();
        for (key, value) in guest.disks() {
            let old = disks::volume_of(&value);
            let new = old
                .replace(&format!("vm-{vmid}-"), &format!("base-{vmid}-"))
                .replace("subvol-", "basevol-");
            guest.config.set(&key, value.replace(&old, &new));
            renamed.push((old, new));
        }
        guest.config.set("template", "1");
        for (old, new) in renamed {
            if let Some(v) =
                state.volumes.iter_mut().find(|v| v.volid() == old && v.seen_from(&node))
            {
                v.name = new.split_once(':').map_or(new.clone(), |(_, n)| n.to_owned());
            }
        }
        Ok(Vec::new())
    };
    if kind == Kind::Lxc {
        // For containers the call does it itself.
        return work(c.state, c.now_ms).map(|_| Value::Null.into()).map_err(Failure::died);
    }
    c.spawn("qmtemplate", &vmid.to_string(), 300, work)
}
