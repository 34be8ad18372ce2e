//! Which guests and nodes a change touches, in all the places where a call
//! carries them, and the lists of the configuration that limit both.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Method,
    api::Kind,
    conditions::{Call, Param, access::folded, restore},
    volume,
};
use crate::{
    Code, Error, Result,
    config::Config,
    pve::{Params, Vmid, loose, params::split_list},
};

/// The guests that a change touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// Those that are known.
    pub vmids: BTreeSet<Vmid>,
    /// Why there are more that cannot be known.
    pub open: Option<String>,
    /// Whether those are acted on themselves (every guest of a node), and not
    /// only affected.
    pub acts_on_all: bool,
    /// Those that are named so that nothing is done to them.
    pub spared: BTreeSet<Vmid>,
}

impl Touched {
    fn add(&mut self, text: &str) {
        match Vmid::parse(text.trim()) {
            Ok(vmid) => {
                self.vmids.insert(vmid);
            }
            Err(_) => self.open(format!("{text:?} is not a VMID")),
        }
    }

    fn add_all<'t>(&mut self, texts: impl Iterator<Item = &'t str>) {
        texts.for_each(|text| self.add(text));
    }

    fn volume(&mut self, text: &str) {
        self.vmids.extend(volume::owners(text));
    }

    fn open(&mut self, why: impl Into<String>) {
        if self.open.is_none() {
            self.open = Some(why.into());
        }
    }

    fn every(&mut self, why: impl Into<String>) {
        self.open(why);
        self.acts_on_all = true;
    }

    /// An HA id: `vm:100`, `ct:200` or a bare number.
    fn sid(&mut self, sid: &str) {
        self.add(sid.rsplit(':').next().unwrap_or_default());
    }
}

/// Options that hold a volume id as plain text.
const VOLUME_TEXTS: [&str; 7] =
    ["archive", "ostemplate", "volume", "filename", "base", "hookscript", "vmstate"];

/// The guests that a change touches. A read touches none. With `limited` the volumes of other
/// guests count that the named ones hold.
#[must_use]
pub fn touched(call: &Call<'_>, limited: bool) -> Touched {
    let mut t = named(call);
    // Whose volumes a guest holds is asked where lists have to know it.
    if limited && t.open.is_none() {
        of_named_guests(call, &mut t);
    }
    t
}

/// The guests that a call names, and what the object in its path holds.
fn named(call: &Call<'_>) -> Touched {
    let mut t = Touched::default();
    if call.action.rule.is_none() {
        return t;
    }
    let template = call.endpoint.template;
    for name in ["vmid", "newid", "target-vmid"] {
        if let Some(value) = call.variable(name) {
            t.add(value);
        }
        t.add_all(call.params.members(name));
    }
    if let Some(rest) = template.strip_prefix("/nodes/{node}/") {
        below_node(call, rest, &mut t);
    } else if let Some(rest) = template.strip_prefix("/cluster/") {
        of_cluster(call, rest, &mut t);
    } else if template.starts_with("/pools") {
        of_pools(call, &mut t);
    } else if template.starts_with("/storage") {
        volumes_in_params(call, &mut t);
        t.open("a storage holds volumes of guests");
    } else if template == "/access/acl" {
        of_acl(call, &mut t);
    }
    t
}

fn below_node(call: &Call<'_>, rest: &str, t: &mut Touched) {
    let mut parts = rest.split('/');
    match parts.next().unwrap_or_default() {
        "qemu" | "lxc" => {
            volumes_in_params(call, t);
            if call.method == Method::Post && matches!(rest, "qemu" | "lxc") {
                of_new_guest(call, t);
            }
            if call.variable("vmid").is_some() {
                of_present_disks(call, t);
                if rest.ends_with("/migrate") {
                    companions(call, t);
                }
            }
        }
        "vzdump" => of_backup(call, t),
        "startall" | "stopall" | "suspendall" | "migrateall" => of_vms(call, t),
        "status" => t.every("every guest of the node"),
        "storage" => {
            volumes_in_params(call, t);
            if let Some(volume) = call.variable("volume") {
                t.volume(volume);
            }
            if rest.ends_with("/prunebackups") && call.params.members("vmid").next().is_none() {
                t.every("without vmid every guest's backups are pruned");
            }
        }
        "replication" => of_replication(call, t),
        "tasks" => of_task(call, t),
        "network" | "services" | "disks" | "ceph" => t.open("every guest of the node needs this"),
        // The node's own: name resolution, certificates, packages, its firewall.
        _ => {}
    }
}

/// A guest that is made has to be named, and so has the one whose backup it is made of.
fn of_new_guest(call: &Call<'_>, t: &mut Touched) {
    if call.params.members("vmid").next().is_none() {
        t.open("the new guest is not named");
    }
    let restored = call.params.flag("restore") == Some(true);
    let archive =
        call.params.text("archive").or_else(|| call.params.text("ostemplate").filter(|_| restored));
    if archive.is_some_and(|archive| archive != "-" && volume::owners(archive).is_empty()) {
        t.open("whose backup the archive is cannot be told from its name");
    }
}

fn of_cluster(call: &Call<'_>, rest: &str, t: &mut Touched) {
    let mut parts = rest.split('/');
    match (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) {
        ("backup", _) => {
            of_backup(call, t);
            if let Some(id) = call.variable("id") {
                stored(call, &["cluster", "backup", id], t, |job, t| selection(call, job, t));
            }
        }
        ("bulk-action", _) => of_vms(call, t),
        ("replication", _) => of_replication(call, t),
        ("ha", "resources") => {
            if let Some(sid) = call.variable("sid").or_else(|| call.params.text("sid")) {
                t.sid(sid);
            }
            if rest.ends_with("/migrate") || rest.ends_with("/relocate") {
                companions(call, t);
            }
        }
        ("ha", "rules") => {
            call.params.members("resources").for_each(|sid| t.sid(sid));
            if let Some(rule) = call.variable("rule") {
                stored(call, &["cluster", "ha", "rules", rule], t, |rule, t| {
                    restore::members(rule).iter().for_each(|sid| t.sid(sid));
                });
            }
        }
        ("sdn", _) if rest.ends_with("/ips") => {
            if !call.params.has("vmid") {
                t.open("the guest that holds the address is not named");
            }
        }
        // Where messages, metrics and certificates go, and who may sign in.
        ("acme" | "notifications" | "metrics" | "jobs", _) => {}
        _ => t.open("it acts on the whole cluster"),
    }
}

/// Volumes that parameters name, in every form.
fn volumes_in_params(call: &Call<'_>, t: &mut Touched) {
    for (name, value) in call.params.iter() {
        if VOLUME_TEXTS.contains(&name) {
            value.values().iter().for_each(|v| t.volume(v));
        }
        let Some(Kind::Property(_)) = call.action.kind(name) else { continue };
        let parts = Param { name, value }.parts(call);
        for key in ["file", "volume", "import-from", "meta", "network", "user", "vendor"] {
            if let Some(volume) = parts.get(key) {
                t.volume(volume);
            }
        }
    }
}

/// Calls on a guest that act on the disks that it has now: all but those on its firewall, its
/// agent, and options that are none of its disks.
fn acts_on_disks(call: &Call<'_>) -> bool {
    let below = call.endpoint.template.splitn(6, '/').nth(5).unwrap_or_default();
    match below.split('/').next().unwrap_or_default() {
        "firewall" | "agent" | "cloudinit" | "feature" => false,
        "config" => {
            let names = call.params.iter().map(|(name, _)| name);
            let taken = ["delete", "revert"].iter().flat_map(|list| call.params.members(list));
            names.chain(taken).any(|name| is_disk(name) || name == "template")
        }
        _ => true,
    }
}

/// The volumes of others that guests hold which are named elsewhere than in the path: in a list,
/// by an HA id, by a replication job.
fn of_named_guests(call: &Call<'_>, t: &mut Touched) {
    let in_path = call.variable("vmid").and_then(|v| Vmid::parse(v).ok());
    for vmid in t.vmids.clone().into_iter().filter(|vmid| Some(*vmid) != in_path) {
        if call.facts.guests().is_err() {
            return t.open("the guests cannot be listed");
        }
        // What does not exist yet holds nothing.
        let Some(row) = call.facts.guest(vmid) else { continue };
        let (Some(node), Some(kind)) = (loose::str(row, "node"), loose::str(row, "type")) else {
            continue;
        };
        match call.facts.guest_config(node, kind, &vmid.to_string()) {
            Ok(config) => foreign_volumes(config, Some(vmid), t),
            Err(_) => t.open(format!("the disks of guest {vmid} cannot be read")),
        }
    }
}

/// Whose volumes the guest's present configuration holds: a snapshot, rollback
/// or start acts on those too.
fn of_present_disks(call: &Call<'_>, t: &mut Touched) {
    let own = call.vmid();
    match call.config() {
        Some(config) => foreign_volumes(config, own, t),
        None if acts_on_disks(call) && !is_gone(call) => {
            t.open("the guest's present disks cannot be read");
        }
        None => {}
    }
    if let (Some(node), Some(kind), Some(vmid), Some(snapshot)) =
        (call.variable("node"), call.kind(), call.variable("vmid"), call.variable("snapname"))
    {
        let path = ["nodes", node, kind, vmid, "snapshot", snapshot, "config"];
        if let Ok(config) = call.facts.ask(&path, Params::new()) {
            foreign_volumes(config, own, t);
        }
    }
}

/// Whether the guest in the path is known not to exist.
fn is_gone(call: &Call<'_>) -> bool {
    let (Some(node), Some(kind), Some(vmid)) =
        (call.variable("node"), call.kind(), call.variable("vmid"))
    else {
        return false;
    };
    matches!(call.facts.guest_config(node, kind, vmid), Err(error) if error.code == Code::NotFound)
}

fn foreign_volumes(config: &Value, own: Option<Vmid>, t: &mut Touched) {
    for (key, value) in config.as_object().into_iter().flatten() {
        let Some(text) = value.as_str().filter(|_| is_disk(key)) else { continue };
        for part in text.split(',') {
            let volume =
                part.strip_prefix("file=").or(part.strip_prefix("volume=")).unwrap_or(part);
            if volume.contains('=') && volume == part {
                continue;
            }
            let owners = volume::owners(volume);
            // The base of an own linked clone is only read.
            if owners.last().copied() == own {
                continue;
            }
            t.vmids.extend(owners);
        }
    }
}

/// Whether an option of a guest holds a volume.
fn is_disk(option: &str) -> bool {
    matches!(
        super::api::indexed(option).unwrap_or(option),
        "ide"
            | "sata"
            | "scsi"
            | "virtio"
            | "efidisk"
            | "tpmstate"
            | "mp"
            | "rootfs"
            | "unused"
            | "vmstate"
    )
}

fn companions(call: &Call<'_>, t: &mut Touched) {
    match restore::companions(call) {
        Some(sids) => sids.iter().for_each(|sid| t.sid(sid)),
        None => t.open("the rules that move other guests along cannot be read"),
    }
}

/// `vms` of a bulk action; without it every guest.
fn of_vms(call: &Call<'_>, t: &mut Touched) {
    if call.params.has("vms") {
        t.add_all(call.params.members("vms"));
        let template = call.endpoint.template;
        if template.ends_with("/migrateall") || template.ends_with("/migrate") {
            for guest in call.params.members("vms") {
                match restore::companions_of(call, guest) {
                    Some(sids) => sids.iter().for_each(|sid| t.sid(sid)),
                    None => t.open("the rules that move other guests along cannot be read"),
                }
            }
        }
    } else {
        t.every("without vms it means every guest");
    }
}

/// The guests that a backup call or job names.
fn of_backup(call: &Call<'_>, t: &mut Touched) {
    t.add_all(call.params.members("exclude"));
    if call.params.flag("stop") == Some(true) {
        t.open("every running backup of the node ends");
    }
    if call.params.flag("all") == Some(true) {
        t.open("all means every guest");
        if halts(call.params.text("mode")) {
            t.acts_on_all = true;
        }
        if !names_guests(call) {
            t.spared.extend(call.params.members("exclude").filter_map(|id| Vmid::parse(id).ok()));
        }
    }
    if let Some(pool) = call.params.text("pool") {
        pool_members(call, pool, t);
    }
    let names = call.params.members("vmid").next().is_some()
        || call.params.has("pool")
        || call.params.flag("all") == Some(true);
    if call.method == Method::Post && !names {
        t.open("no guest is named");
    }
}

/// Whether a backup call or job names guests beside all or a stored selection.
fn names_guests(call: &Call<'_>) -> bool {
    call.params.has("vmid") || call.params.has("pool")
}

/// Whether a backup in this mode stops or suspends the guest.
fn halts(mode: Option<&str>) -> bool {
    mode.is_some_and(|mode| matches!(mode, "stop" | "suspend"))
}

/// The guests of a stored backup job.
fn selection(call: &Call<'_>, job: &Value, t: &mut Touched) {
    for key in ["vmid", "exclude"] {
        if let Some(list) = loose::text(job, key) {
            t.add_all(split_list(&list));
        }
    }
    let params = call.params;
    let stays = |name: &str| !params.has(name) && !params.members("delete").any(|d| d == name);
    if let Some(pool) = loose::str(job, "pool").filter(|_| stays("pool")) {
        pool_members(call, pool, t);
    }
    let all = loose::flag(job, "all") && stays("all");
    let mode = params.text("mode").or_else(|| loose::str(job, "mode").filter(|_| stays("mode")));
    if all && call.method != Method::Delete && halts(mode) {
        t.acts_on_all = true;
    }
    if all && stays("exclude") && !names_guests(call) {
        let spared = loose::text(job, "exclude").unwrap_or_default();
        t.spared.extend(split_list(&spared).filter_map(|id| Vmid::parse(id).ok()));
    }
    if loose::flag(job, "all") || loose::str(job, "pool").is_some() {
        t.open("the stored job names no single guests");
    }
}

/// Reads a stored object and takes its guests; one that cannot be read is open.
fn stored(call: &Call<'_>, path: &[&str], t: &mut Touched, take: impl Fn(&Value, &mut Touched)) {
    match call.facts.ask(path, Params::new()) {
        Ok(object) if object.is_object() => take(object, t),
        Err(error) if error.code == Code::NotFound => {}
        _ => t.open("the stored object cannot be read"),
    }
}

/// The guest of a replication job: `100-0`.
fn of_replication(call: &Call<'_>, t: &mut Touched) {
    match call.variable("id").or_else(|| call.params.text("id")) {
        Some(id) => t.add(id.split('-').next().unwrap_or_default()),
        None => t.open("no replication job is named"),
    }
}

/// The guest of a task: the seventh field of its UPID.
fn of_task(call: &Call<'_>, t: &mut Touched) {
    let id = call.variable("upid").and_then(|u| u.split(':').nth(6)).unwrap_or_default();
    let id = id.split('@').next().unwrap_or_default();
    if id.is_empty() {
        t.open("the task is about several guests, or none that it names");
    } else if id.starts_with(|c: char| c.is_ascii_digit()) {
        t.add_all(split_list(id));
    }
}

fn of_pools(call: &Call<'_>, t: &mut Touched) {
    t.add_all(call.params.members("vms"));
    let pool = call.variable("poolid").or_else(|| call.params.text("poolid"));
    match pool {
        Some(pool) if call.method != Method::Post => pool_members(call, pool, t),
        _ => {}
    }
}

/// The members of a pool and of the pools that are nested in it.
fn pool_members(call: &Call<'_>, pool: &str, t: &mut Touched) {
    let Ok(pools) = call.facts.ask(&["pools"], Params::new()) else {
        t.open("the members of the pool cannot be read");
        return;
    };
    let below = format!("{pool}/");
    let ids = loose::rows(pools).iter().filter_map(|p| loose::str(p, "poolid"));
    let nested: Vec<&str> = ids.filter(|id| *id == pool || id.starts_with(&below)).collect();
    if !nested.contains(&pool) {
        t.open("the pool cannot be seen");
    }
    for id in nested {
        let answer = call.facts.ask(&["pools"], Params::new().with("poolid", id));
        let found = answer.ok().and_then(|a| a.as_array().map_or(Some(a), |rows| rows.first()));
        let Some(members) = found.and_then(|p| p.get("members")).and_then(Value::as_array) else {
            t.open("the members of the pool cannot be read");
            continue;
        };
        members.iter().filter_map(|m| loose::text(m, "vmid")).for_each(|vmid| t.add(&vmid));
    }
}

/// The guests of an ACL path.
fn of_acl(call: &Call<'_>, t: &mut Touched) {
    let path = folded(call.params.text("path").unwrap_or_default());
    match path.split('/').skip(1).collect::<Vec<_>>().as_slice() {
        ["vms", vmid] => t.add(vmid),
        ["pool", pool @ ..] if !pool.is_empty() => pool_members(call, &pool.join("/"), t),
        [""] | ["vms" | "pool", ..] => t.open("the path covers every guest"),
        _ => {}
    }
}

/// Refuses a change that touches a guest outside the lists.
///
/// # Errors
/// `vmid_denied`.
pub fn check(config: &Config, touched: &Touched) -> Result<()> {
    let denied = |vmid: &Vmid| {
        config.denied_vmids.contains(*vmid)
            || config.allowed_vmids.as_ref().is_some_and(|set| !set.contains(*vmid))
    };
    let lists = config.allowed_vmids.is_some() || !config.denied_vmids.is_empty();
    if let Some(vmid) = touched.vmids.iter().find(|v| denied(v)) {
        let list = if config.denied_vmids.contains(*vmid) {
            "PROXMOX_DENIED_VMIDS names it"
        } else {
            "it is not in PROXMOX_ALLOWED_VMIDS"
        };
        return Err(Error::new(
            Code::VmidDenied,
            format!("guest {vmid} may not be changed: {list}"),
        )
        .hint("the lists are set by the owner of this server, in .env")
        .with("vmid", vmid.get()));
    }
    match &touched.open {
        Some(why) if lists => Err(Error::new(
            Code::VmidDenied,
            format!("which guests this touches cannot be known: {why}"),
        )
        .hint(
            "while PROXMOX_ALLOWED_VMIDS or PROXMOX_DENIED_VMIDS is set, only changes pass whose \
             guests are all known: name single guests where the call takes them",
        )),
        _ => Ok(()),
    }
}
