//! Making guests: new ones, and from backups.

use super::Route;
use super::disks::{self, Owner, is_disk_key};
use super::options::{Wanted, nic, wanted};
use crate::api::call::{Answer, Call};
use crate::api::failure::Failure;
use crate::state::State;
use crate::state::access::uuid;
use crate::state::config::{Config, digest};
use crate::state::guest::{Guest, Kind, indexed};

pub(crate) const ROUTES: &[Route] =
    &[("POST", "/nodes/{node}/qemu", create_vm), ("POST", "/nodes/{node}/lxc", create_ct)];

const CREATE_MS: i64 = 900;
const RESTORE_MS: i64 = 2500;

/// A UUID that nobody else has.
pub(super) fn fresh_uuid(vmid: u32, what: &str, now: i64) -> String {
    let hex = digest([format!("{vmid}{what}{now}")]);
    let byte = |n: usize| hex.get(n * 2..n * 2 + 2).and_then(|h| u8::from_str_radix(h, 16).ok());
    let bytes: Vec<u8> = (0..16).filter_map(byte).collect();
    uuid(&bytes)
}

/// Whether the caller may make this guest: on its number, or in a pool.
fn may_create(c: &Call<'_>, vmid: u32) -> Result<(), Failure> {
    let pool = c.text("pool");
    let by_pool = pool.as_ref().is_some_and(|p| c.may(&format!("/pool/{p}"), &["VM.Allocate"]));
    if by_pool || c.may(&format!("/vms/{vmid}"), &["VM.Allocate"]) {
        Ok(())
    } else {
        Err(Failure::forbidden(""))
    }
}

/// Storages named by new disks, checked before the task starts.
fn check_storages(c: &Call<'_>, kind: Kind, wanted: &Wanted) -> Result<(), Failure> {
    for (_, value) in wanted.set.iter().filter(|(k, _)| is_disk_key(kind, k)) {
        let volume = disks::volume_of(value);
        let Some((storage, name)) = volume.split_once(':') else { continue };
        if !c.state.storages.contains_key(storage) {
            return Err(Failure::died(format!("storage '{storage}' does not exist")));
        }
        if name.parse::<f64>().is_ok() {
            c.demand(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
            disks::check_storage(c.state, storage, &c.node(), disks::content_of(kind))
                .map_err(Failure::died)?;
        }
    }
    Ok(())
}

fn exists(c: &Call<'_>, vmid: u32) -> Option<String> {
    c.state.guests.get(&vmid).map(|g| g.node.clone())
}

/// Puts what was wanted into a configuration; makes the disks.
fn fill(
    state: &mut State,
    config: &mut Config,
    owner: Owner<'_>,
    wanted: Vec<(String, String)>,
    now: i64,
) -> Result<Vec<String>, String> {
    let mut log = Vec::new();
    for (key, value) in wanted {
        let value = if is_disk_key(owner.kind, &key) {
            let settled = disks::settle(state, owner, &value, now)?;
            log.push(format!("{key}: successfully created disk '{settled}'"));
            settled
        } else if indexed(&key, "net") {
            nic(owner.kind, owner.vmid, &key, &value, now)
        } else {
            value
        };
        config.set(&key, value);
    }
    Ok(log)
}

/// What a task does, as [`Call::spawn`] takes it.
type Outcome = Result<Vec<String>, String>;

/// Takes the number of a guest that is being made, as the real one does by
/// writing a locked configuration; the work's failure gives it back.
pub(super) fn reserving<W>(
    c: &mut Call<'_>,
    owner: Owner<'_>,
    lock: &str,
    work: W,
) -> impl FnOnce(&mut State, i64) -> Outcome + Send + 'static + use<W>
where
    W: FnOnce(&mut State, i64) -> Outcome + Send + 'static,
{
    let Owner { node, vmid, kind } = owner;
    let now = c.now();
    let fresh = !c.state.guests.contains_key(&vmid);
    if fresh {
        let mut guest = Guest::new(vmid, kind, node, Config::default(), now);
        guest.set_lock(lock, now);
        c.state.guests.insert(vmid, guest);
    }
    move |state, end| {
        let result = work(state, end);
        if fresh && result.is_err() {
            state.guests.remove(&vmid);
        }
        result
    }
}

/// Adds a guest to the estate, to its pool, and starts it when asked to.
fn add(state: &mut State, guest: Guest, pool: Option<String>, start: bool, now: i64) {
    let vmid = guest.vmid;
    let pid = state.tasks.pid();
    state.guests.insert(vmid, guest);
    if let Some(pool) = pool.and_then(|p| state.pools.get_mut(&p)) {
        pool.guests.push(vmid);
    }
    if start && let Some(guest) = state.guests.get_mut(&vmid) {
        guest.start(now, pid);
    }
}

fn create_vm(c: &mut Call<'_>) -> Answer {
    let (node, vmid) = (c.node(), c.vmid());
    may_create(c, vmid)?;
    if let Some(archive) = c.text("archive") {
        return restore(c, Kind::Qemu, archive);
    }
    let wanted = wanted(c, Kind::Qemu, &format!("/vms/{vmid}"))?;
    check_storages(c, Kind::Qemu, &wanted)?;
    if let Some(there) = exists(c, vmid) {
        return Err(Failure::died(format!(
            "unable to create VM {vmid} - VM {vmid} already exists on node '{there}'"
        )));
    }
    let (pool, start) = (c.text("pool"), c.flag("start"));
    let place = node.clone();
    let owner = Owner { node: &place, vmid, kind: Kind::Qemu };
    let work = reserving(c, owner, "create", move |state, end| {
        let now = end.div_euclid(1000);
        let mut config = Config::default();
        let log = fill(
            state,
            &mut config,
            Owner { node: &node, vmid, kind: Kind::Qemu },
            wanted.set,
            now,
        )
        .map_err(|e| format!("unable to create VM {vmid} - {e}"))?;
        if !config.has("boot") {
            let disk = config.iter().find(|(k, v)| {
                is_disk_key(Kind::Qemu, k) && !v.contains("media=cdrom") && *k != "efidisk0"
            });
            let mut order: Vec<String> = disk.map(|(k, _)| k.to_owned()).into_iter().collect();
            order.extend(
                config.iter().filter(|(k, _)| indexed(k, "net")).map(|(k, _)| k.to_owned()),
            );
            if !order.is_empty() {
                config.set("boot", format!("order={}", order.join(";")));
            }
        }
        if !config.has("smbios1") {
            config.set("smbios1", format!("uuid={}", fresh_uuid(vmid, "smbios", end)));
        }
        if !config.has("vmgenid") {
            config.set("vmgenid", fresh_uuid(vmid, "gen", end));
        }
        config.set("meta", format!("creation-qemu=10.0.13,ctime={now}"));
        add(state, Guest::new(vmid, Kind::Qemu, &node, config, now), pool, start, now);
        Ok(log)
    });
    c.spawn("qmcreate", &vmid.to_string(), CREATE_MS, work)
}

/// The operating system of a template by its file's name.
fn os_of(template: &str) -> &'static str {
    const KNOWN: [&str; 9] = [
        "debian",
        "ubuntu",
        "alpine",
        "centos",
        "fedora",
        "archlinux",
        "opensuse",
        "gentoo",
        "devuan",
    ];
    KNOWN.into_iter().find(|k| template.contains(k)).unwrap_or("unmanaged")
}

fn create_ct(c: &mut Call<'_>) -> Answer {
    let (node, vmid) = (c.node(), c.vmid());
    may_create(c, vmid)?;
    let template = c.need("ostemplate");
    if c.flag("restore") {
        return restore(c, Kind::Lxc, template);
    }
    if let Some(there) = exists(c, vmid) {
        let noun = c.state.guests.get(&vmid).map_or("CT", |g| g.kind.short());
        return Err(Failure::died(format!("{noun} {vmid} already exists on node '{there}'")));
    }
    let mut wanted = wanted(c, Kind::Lxc, &format!("/vms/{vmid}"))?;
    check_storages(c, Kind::Lxc, &wanted)?;
    if !wanted.set.iter().any(|(k, _)| k == "rootfs") {
        let storage = c.text("storage").unwrap_or_else(|| "local".to_owned());
        disks::check_storage(c.state, &storage, &node, "rootdir").map_err(Failure::died)?;
        wanted.set.push(("rootfs".to_owned(), format!("{storage}:4")));
    }
    let (pool, start) = (c.text("pool"), c.flag("start"));
    let place = node.clone();
    let owner = Owner { node: &place, vmid, kind: Kind::Lxc };
    let work = reserving(c, owner, "create", move |state, end| {
        let now = end.div_euclid(1000);
        let fail = |e: String| format!("unable to create CT {vmid} - {e}");
        let found = state.volume(&node, &template).is_some_and(|v| v.content == "vztmpl");
        if !found {
            let lines = [
                format!(
                    "Formatting '/var/lib/vz/images/{vmid}/vm-{vmid}-disk-0.raw', fmt=raw size=1073741824 preallocation=off"
                ),
                "Creating filesystem with 262144 4k blocks and 65536 inodes".to_owned(),
                format!("Filesystem UUID: {}", fresh_uuid(vmid, "fs", end)),
                fail(format!("volume '{template}' does not exist")),
            ];
            return Err(lines.join("\n"));
        }
        let mut config = Config::from_pairs([("arch", "amd64"), ("ostype", os_of(&template))]);
        let mut log =
            fill(state, &mut config, Owner { node: &node, vmid, kind: Kind::Lxc }, wanted.set, now)
                .map_err(fail)?;
        for (key, value) in [
            ("hostname", format!("CT{vmid}")),
            ("memory", "512".to_owned()),
            ("swap", "512".to_owned()),
            ("unprivileged", "1".to_owned()),
        ] {
            if !config.has(key) {
                config.set(key, value);
            }
        }
        // As the release does: the option's absence stands for a privileged one.
        if config.get("unprivileged") == Some("0") {
            config.remove("unprivileged");
        }
        for (key, _) in [("password", ()), ("ssh-public-keys", ())] {
            config.remove(key);
        }
        log.insert(
            0,
            format!(
                "extracting archive '/var/lib/vz/template/cache/{}'",
                template.rsplit('/').next().unwrap_or("")
            ),
        );
        let nested = config.get("features").is_some_and(|f| f.contains("nesting=1"));
        if template.contains("debian-13") && !nested {
            log.push("WARN: Systemd 257 detected. You may need to enable nesting.".to_owned());
        }
        add(state, Guest::new(vmid, Kind::Lxc, &node, config, now), pool, start, now);
        Ok(log)
    });
    c.spawn("vzcreate", &vmid.to_string(), CREATE_MS, work)
}

/// The configuration in a backup.
fn backed_up(text: &str) -> Vec<(String, String)> {
    let pair = |l: &str| l.split_once(": ").map(|(k, v)| (k.to_owned(), v.to_owned()));
    text.lines().filter_map(pair).filter(|(k, _)| k != "lock" && k != "parent").collect()
}

fn restore(c: &mut Call<'_>, kind: Kind, archive: String) -> Answer {
    let (node, vmid) = (c.node(), c.vmid());
    let (force, unique, start) = (c.flag("force"), c.flag("unique"), c.flag("start"));
    let storage = c.text("storage");
    if let Some(guest) = c.state.guests.get(&vmid) {
        let noun = kind.short();
        if !force {
            let text = format!("{noun} {vmid} already exists on node '{}'", guest.node);
            return Err(Failure::died(if kind == Kind::Qemu {
                format!("unable to restore VM {vmid} - {text}")
            } else {
                text
            }));
        }
        if guest.kind != kind {
            return Err(Failure::died(format!(
                "unable to restore {noun} {vmid} - another kind of guest has this number"
            )));
        }
        if guest.running() {
            return Err(Failure::died(format!(
                "unable to restore {noun} {vmid} - {noun} {vmid} is running"
            )));
        }
        if guest.config.on("protection") {
            return Err(Failure::died(format!(
                "unable to restore {noun} {vmid} - can't remove {noun} {vmid} - protection mode enabled"
            )));
        }
    }
    if let Some(storage) = &storage {
        c.demand(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
        disks::check_storage(c.state, storage, &node, disks::content_of(kind))
            .map_err(Failure::died)?;
    }
    let over = wanted(c, kind, &format!("/vms/{vmid}"))?;
    let (pool, unprivileged) = (c.text("pool"), c.switch("unprivileged"));
    let name = if kind == Kind::Qemu { "qmrestore" } else { "vzrestore" };
    let place = node.clone();
    let work = reserving(c, Owner { node: &place, vmid, kind }, "create", move |state, end| {
        let now = end.div_euclid(1000);
        let fail = |e: String| format!("unable to restore {} {vmid} - {e}", kind.short());
        let found = state.volume(&node, &archive).filter(|v| v.content == "backup");
        let Some(text) = found.and_then(|v| v.config.clone()) else {
            return Err(fail(format!("volume '{archive}' does not exist")));
        };
        if let Some(old) = state.guests.remove(&vmid) {
            for (_, value) in old.disks() {
                disks::drop_volume(state, &node, &disks::volume_of(&value));
            }
        }
        let mut config = Config::default();
        let mut log = vec![format!("restore {} backup '{archive}'", kind.name())];
        for (key, value) in backed_up(&text) {
            let value = if is_disk_key(kind, &key)
                && !key.starts_with("unused")
                && !value.contains("media=cdrom")
            {
                restored_disk(
                    state,
                    Owner { node: &node, vmid, kind },
                    &value,
                    storage.as_deref(),
                    now,
                )
                .map_err(fail)?
            } else if unique && indexed(&key, "net") {
                renewed_nic(kind, vmid, &key, &value, end)
            } else {
                value
            };
            config.set(&key, value);
        }
        if unique && kind == Kind::Qemu {
            config.set("vmgenid", fresh_uuid(vmid, "gen", end));
            config.set("smbios1", format!("uuid={}", fresh_uuid(vmid, "smbios", end)));
        }
        for (key, value) in
            over.set.into_iter().filter(|(k, _)| k != "rootfs" && k != "unprivileged")
        {
            config.set(&key, value);
        }
        match unprivileged {
            Some(true) => config.set("unprivileged", "1"),
            Some(false) => {
                config.remove("unprivileged");
            }
            None => {}
        }
        log.push("restore successful".to_owned());
        add(state, Guest::new(vmid, kind, &node, config, now), pool, start, now);
        Ok(log)
    });
    c.spawn(name, &vmid.to_string(), RESTORE_MS, work)
}

/// A NIC value with a new address.
pub(super) fn renewed_nic(kind: Kind, vmid: u32, key: &str, value: &str, salt: i64) -> String {
    let fresh = super::options::fresh_mac(vmid, key, salt);
    match Guest::mac(value) {
        Some(old) => value.replace(&old, &fresh),
        None => nic(kind, vmid, key, value, salt),
    }
}

fn restored_disk(
    state: &mut State,
    owner: Owner<'_>,
    value: &str,
    storage: Option<&str>,
    now: i64,
) -> Result<String, String> {
    let volume = disks::volume_of(value);
    let Some((old, _)) = volume.split_once(':') else { return Ok(value.to_owned()) };
    let target = storage.unwrap_or(old).to_owned();
    disks::check_storage(state, &target, owner.node, disks::content_of(owner.kind))?;
    let size = crate::state::guest::disk_size(value).unwrap_or(1 << 30);
    let format = volume.rsplit_once('.').map(|(_, e)| e.to_owned());
    let new = disks::make_volume(state, &target, owner, size, format.as_deref(), now);
    let tail = value.split_once(',').map_or("", |(_, t)| t);
    Ok(format!("{new},{tail}").trim_end_matches(',').to_owned())
}
