//! Restoring a guest: to a new VMID, or over an existing guest when that is asked for.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::contents::configuration;
use crate::{
    Code, Error, Result,
    insight::estate::GuestStatus,
    pve::{GuestConfig, GuestKind, NodeName, Params, Vmid, config_line::DiskRole, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::{AskedTask, Submitted},
        guests::new_id::{NewId, with_new_id},
        outcome::{operation, switch},
        storage::place::{self, Volume},
    },
};

/// Arguments of `pve_backup_restore`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Restore {
    volid: String,
    vmid: Option<Vmid>,
    node: Option<NodeName>,
    /// For all disks.
    storage: Option<String>,
    /// Overwrites `vmid`.
    force: Option<bool>,
    /// New MAC addresses; on for a new VMID.
    unique: Option<bool>,
    name: Option<String>,
    pool: Option<String>,
    start: Option<bool>,
    unprivileged: Option<bool>,
    live_restore: Option<bool>,
    #[schemars(range(min = 0))]
    bwlimit: Option<u64>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// The kind of guest in a backup, by its name, else by what the storage says.
fn kind_of(backup: &Volume) -> Result<GuestKind> {
    let name = backup.volid.split_once(':').map_or("", |(_, name)| name);
    let file = name.rsplit('/').next().unwrap_or_default();
    if file.starts_with("vzdump-qemu-") || name.starts_with("backup/vm/") {
        return Ok(GuestKind::Qemu);
    }
    if file.starts_with("vzdump-lxc-") || name.starts_with("backup/ct/") {
        return Ok(GuestKind::Lxc);
    }
    let listed = loose::str(&backup.row, "subtype").and_then(GuestKind::of);
    listed.ok_or_else(|| {
        Error::argument(format!("{} does not say which kind of guest it holds", backup.volid))
    })
}

/// Options of a backup that reach for the host (no token can restore some of them).
fn reaches_host(key: &str, value: &Value) -> bool {
    let bare = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let text = value.as_str().unwrap_or_default();
    match bare {
        "args" | "hookscript" | "hostpci" | "virtiofs" | "dev" | "parallel" => true,
        "usb" => !text.contains("spice"),
        "serial" => text != "socket",
        "mp" | "rootfs" => text.starts_with('/'),
        _ => key.starts_with("lxc."),
    }
}

/// What the backup would bring, told before it does.
fn brings(kind: GuestKind, config: &Map<String, Value>, here: &[String]) -> Value {
    let raw = Value::Object(config.clone());
    let typed = GuestConfig::new(kind, &raw);
    let mut host: Vec<&String> =
        config.iter().filter(|(k, v)| reaches_host(k, v)).map(|(k, _)| k).collect();
    let disks = typed.disks();
    let own = disks.iter().filter(|d| !matches!(d.role, DiskRole::CdRom | DiskRole::Unused));
    let mut missing: Vec<String> = own
        .filter_map(|d| Some(d.source.volume_id()?.split_once(':')?.0.to_owned()))
        .filter(|storage| !here.contains(storage))
        .collect();
    missing.sort();
    missing.dedup();
    let mut out = json!({"type": kind.as_str(), "name": typed.name()});
    if let Value::Object(map) = &mut out {
        if kind == GuestKind::Lxc {
            map.insert("unprivileged".into(), loose::flag(&raw, "unprivileged").into());
        }
        if !host.is_empty() {
            host.sort_unstable();
            map.insert("host_access".into(), json!(host));
        }
        if !missing.is_empty() {
            map.insert("storages_not_on_node".into(), missing.into());
        }
        if typed.protected() {
            map.insert("protection".into(), true.into());
        }
        if typed.onboot() {
            map.insert("onboot".into(), true.into());
        }
    }
    out
}

/// The backup, on the node that is meant where it is there, else where it is.
async fn found(ctx: Ctx<'_>, volid: &str, node: Option<&NodeName>) -> Result<Volume> {
    if let Some(node) = node {
        match Volume::find(ctx, volid, Some(node)).await {
            Err(error) if error.code == Code::NotFound => {}
            other => return other,
        }
    }
    Volume::find(ctx, volid, None).await
}

/// The same backup as the node sees it that restores it.
async fn reachable(ctx: Ctx<'_>, backup: Volume, node: &str) -> Result<Volume> {
    if backup.node == node {
        return Ok(backup);
    }
    let here = Volume::find(ctx, &backup.volid, Some(&NodeName::parse(node)?)).await;
    here.map_err(|_| {
        Error::new(
            Code::Conflict,
            format!("{} is on {}, and cannot be reached from {node}", backup.volid, backup.node),
        )
        .hint("restore it on that node, and migrate the guest afterwards")
    })
}

/// `pve_backup_restore`
pub async fn restore(ctx: Ctx<'_>, args: Restore) -> Result<Answer> {
    let backup = found(ctx, &args.volid, args.node.as_ref()).await?.backup()?;
    let kind = kind_of(&backup)?;
    let force = args.force == Some(true);
    if force && args.vmid.is_none() {
        return Err(Error::argument("`force` overwrites a guest: say which with `vmid`")
            .with("argument", "vmid"));
    }
    let over = match args.vmid {
        Some(vmid) => {
            ctx.app.pve.forget();
            ctx.may_see(vmid)?;
            ctx.guests().await?.iter().find(|g| g.vmid == vmid).cloned()
        }
        None => None,
    };
    if let Some(there) = &over {
        if !force {
            return Err(Error::new(
                Code::Conflict,
                match there.name.as_str() {
                    "" => format!(
                        "guest {} exists already; its name is not known while its node is off",
                        there.vmid
                    ),
                    name => format!("guest {} {name:?} exists already", there.vmid),
                },
            )
            .hint("leave `vmid` out for a new one; `force` would overwrite this guest and all its disks"));
        }
        if there.kind != kind {
            return Err(Error::new(
                Code::Conflict,
                format!(
                    "guest {} is {}, the backup is of {}",
                    there.vmid,
                    there.kind.article(),
                    kind.article()
                ),
            ));
        }
        if there.status != GuestStatus::Stopped {
            return Err(Error::new(
                Code::Conflict,
                format!("guest {} is {}", there.vmid, there.status.as_str()),
            )
            .hint("only a stopped guest can be overwritten; pve_guest_shutdown first"));
        }
    }
    let node = match (&args.node, &over) {
        (Some(node), Some(there)) if node.as_str() != &*there.node => {
            return Err(Error::new(
                Code::Conflict,
                format!("guest {} is on {}, not on {node}", there.vmid, there.node),
            ));
        }
        (_, Some(there)) => there.node.to_string(),
        (Some(node), None) => ctx.node(node.as_str()).await?,
        (None, None) => backup.node.clone(),
    };
    let backup = reachable(ctx, backup, &node).await?;
    let content = if kind == GuestKind::Qemu { "images" } else { "rootdir" };
    if let Some(storage) = &args.storage {
        place::holding(ctx, &node, storage, content).await?;
    }
    let rows = ctx.get(&["nodes", &node, "storage"]).await?;
    let here: Vec<String> =
        loose::rows(&rows).iter().filter_map(|r| loose::text(r, "storage")).collect();
    let archive = match configuration(ctx, &backup).await {
        Ok(config) => brings(kind, &config, &here),
        Err(e) => json!({"type": kind.as_str(), "unknown": e.message}),
    };
    let before = over.as_ref().map(|g| {
        json!({"vmid": g.vmid, "name": g.name, "node": &*g.node, "status": g.status.as_str(),
            "disk_bytes": g.maxdisk, "note": "will be overwritten"})
    });
    let id = NewId::of(args.vmid);
    let (vmid, done) = with_new_id(ctx, id, |vmid| {
        let params = params(&args, kind, &backup, vmid, over.is_some());
        let call = operation(Method::Post, &["nodes", &node, kind.as_str()], params);
        async { ctx.run(call?, &args.asked).await }
    })
    .await
    .map_err(|e| e.with("archive", archive.clone()))?;
    Ok(match done {
        Submitted::DryRun(answer) => {
            let answer = answer.with("vmid", vmid.get()).with("archive", archive);
            match before {
                Some(before) => answer.with("before", before),
                None => answer,
            }
        }
        Submitted::Sent(sent) => {
            ctx.app.pve.forget();
            let after = ctx.guest(vmid).await.ok().map(|g| {
                json!({"vmid": g.vmid, "name": g.name, "node": &*g.node, "status": g.status.as_str()})
            });
            sent.with("vmid", vmid.get())
                .with("archive", archive)
                .with("before", before)
                .with("after", after)
                .into_answer(format!("restored {} as guest {vmid} on {node}", backup.volid))
        }
    }
    .untrusted(&["archive", "before", "after"]))
}

fn params(args: &Restore, kind: GuestKind, backup: &Volume, vmid: Vmid, over: bool) -> Params {
    let unique = args.unique.unwrap_or(backup.owner() != Some(vmid));
    let params = Params::new()
        .with("vmid", vmid)
        .with_some("storage", args.storage.as_deref())
        .with_some("pool", args.pool.as_deref())
        .with_some("bwlimit", args.bwlimit);
    // A `force` that overwrites nothing is not sent.
    let params = switch(params, "force", over.then_some(true));
    let params = switch(params, "unique", unique.then_some(true));
    let params = switch(params, "start", args.start);
    match kind {
        GuestKind::Qemu => switch(params, "live-restore", args.live_restore)
            .with("archive", &backup.volid)
            .with_some("name", args.name.as_deref()),
        GuestKind::Lxc => switch(params, "unprivileged", args.unprivileged)
            .with("ostemplate", &backup.volid)
            .with("restore", 1)
            .with_some("hostname", args.name.as_deref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_backup_brings_is_told() {
        let config = super::super::contents::options(
            "hostname: web\nonboot: 1\nrootfs: old-nas:vm-200-disk-0,size=8G\nmp0: /srv,mp=/srv\n\
             lxc.apparmor.profile: unconfined\nnet0: name=eth0\ndev0: /dev/kvm\n",
        );
        assert_eq!(
            brings(GuestKind::Lxc, &config, &["local-lvm".to_owned()]),
            json!({
                "type": "lxc", "name": "web", "unprivileged": false, "onboot": true,
                "host_access": ["dev0", "lxc.apparmor.profile", "mp0"],
                "storages_not_on_node": ["old-nas"],
            })
        );
        for (key, value, host) in [
            ("usb0", "spice", false),
            ("usb0", "host=1234:5678", true),
            ("serial0", "socket", false),
            ("serial1", "/dev/ttyS0", true),
            ("mp1", "local-lvm:vm-1-disk-1,mp=/x", false),
            ("description", "/etc", false),
        ] {
            assert_eq!(reaches_host(key, &json!(value)), host, "{key}: {value}");
        }
    }
}
