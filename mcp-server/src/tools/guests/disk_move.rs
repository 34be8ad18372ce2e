//! Disks that leave their place: moved to another storage or guest, detached.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    config::change,
    disk::{Attached, Format, word},
};
use crate::{
    Code, Error, Result,
    insight::estate::{Guest, GuestKind},
    pve::{GuestConfig, Params, Vmid, config_line::DiskRole, loose},
    render::Answer,
    safety::{Method, volume},
    tools::{
        Ctx,
        change::{AskedTask, on_guest},
        core::title,
        outcome::{switch, told},
        storage::place,
    },
};

/// Arguments of `pve_disk_move`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Move {
    vmid: Vmid,
    disk: String,
    storage: Option<String>,
    target_vmid: Option<Vmid>,
    /// Its slot there; the same unless said.
    target_disk: Option<String>,
    format: Option<Format>,
    /// The old volume, which else stays as unusedN.
    delete: Option<bool>,
    #[schemars(range(min = 0))]
    bwlimit: Option<u64>,
    digest: Option<String>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_disk_move`
pub async fn move_disk(ctx: Ctx<'_>, args: Move) -> Result<Answer> {
    let found = Attached::find(ctx, args.vmid, &args.disk).await?;
    let volume = found.volume("moved")?;
    let guest = &found.guest;
    let digest = found.digest(args.digest.as_ref())?;
    let (last, own, other) = match guest.kind {
        GuestKind::Qemu => ("move_disk", "disk", "target-disk"),
        GuestKind::Lxc => ("move_volume", "volume", "target-volume"),
    };
    let mut params = Params::new().with(own, &args.disk).with_some("digest", digest);
    let mut target = None;
    match (&args.storage, args.target_vmid) {
        (Some(_), Some(_)) | (None, None) => {
            return Err(Error::argument("give either `storage` or `target_vmid`"));
        }
        (Some(storage), None) => {
            if args.target_disk.is_some() {
                return Err(Error::argument("`target_disk` goes with `target_vmid`"));
            }
            if guest.kind == GuestKind::Lxc && args.format.is_some() {
                return Err(Error::argument("a container's volume has no `format`"));
            }
            let here = volume.split_once(':').map(|(storage, _)| storage);
            if here == Some(storage.as_str()) && args.format.is_none() {
                return Err(Error::new(
                    Code::Conflict,
                    format!("{} is on {storage} already", args.disk),
                )
                .hint("another `format` would rewrite it there"));
            }
            let content = if guest.kind == GuestKind::Qemu { "images" } else { "rootdir" };
            place::holding(ctx, &guest.node, storage, content).await?;
            params = params
                .with("storage", storage)
                .with_some("format", args.format.and_then(word))
                .with_some("bwlimit", args.bwlimit);
            params = switch(params, "delete", args.delete);
        }
        (None, Some(to)) => {
            if args.delete.is_some() || args.format.is_some() {
                return Err(Error::argument("`delete` and `format` go with `storage`"));
            }
            let there = receiver(ctx, guest, to).await?;
            params = params
                .with("target-vmid", to)
                .with_some(other, args.target_disk.as_deref())
                .with_some("target-digest", there.1);
            target = Some(there.0);
        }
    }
    let before = json!({"disk": args.disk, "volume": volume, "size_bytes": found.disk.size});
    let call = on_guest(Method::Post, guest, &[last], params)?;
    let done = ctx.run(call, &args.asked).await?;
    let after = async {
        ctx.app.pve.forget();
        let mut out = Map::new();
        out.insert("vmid".into(), guest.vmid.get().into());
        out.insert("disks".into(), disks(ctx, guest).await);
        if let Some(target) = &target {
            out.insert("target_vmid".into(), target.vmid.get().into());
            out.insert("target_disks".into(), disks(ctx, target).await);
        }
        Value::Object(out)
    };
    let heading = format!("moved {} of {}", args.disk, title(guest));
    Ok(told(done, before, after, heading).await)
}

/// The guest that takes a disk over, with the digest of its configuration.
async fn receiver(ctx: Ctx<'_>, from: &Guest, to: Vmid) -> Result<(Guest, Option<String>)> {
    if to == from.vmid {
        return Err(Error::argument(format!("the disk is guest {to}'s already"))
            .with("argument", "target_vmid"));
    }
    let there = ctx.guest(to).await?;
    if there.kind != from.kind {
        return Err(Error::new(
            Code::Conflict,
            format!(
                "guest {to} is {}, and cannot take a disk of {}",
                there.kind.article(),
                from.kind.article()
            ),
        ));
    }
    if there.node != from.node {
        return Err(Error::new(
            Code::Conflict,
            format!("guest {to} is on {}, guest {} on {}", there.node, from.vmid, from.node),
        )
        .hint("pve_guest_migrate brings them to one node"));
    }
    let config = ctx.get_below(&there, &["config"], Params::new()).await?;
    let digest = loose::text(&config, "digest");
    Ok((there, digest))
}

/// A guest's volumes by slot.
async fn disks(ctx: Ctx<'_>, guest: &Guest) -> Value {
    let Ok(config) = ctx.get_below(guest, &["config"], Params::new()).await else {
        return Value::Null;
    };
    let disks = GuestConfig::new(guest.kind, &config).disks();
    let volumes = disks.into_iter().filter_map(|d| Some((d.source.volume_id()?, d.slot)));
    volumes.map(|(volume, slot)| (slot, volume.into())).collect::<Map<_, _>>().into()
}

/// Arguments of `pve_disk_detach`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Detach {
    vmid: Vmid,
    /// As scsi1, mp0 or unused0.
    disk: String,
    /// Destroys the volume, which else stays as unusedN.
    delete: Option<bool>,
    digest: Option<String>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_disk_detach`
pub async fn detach(ctx: Ctx<'_>, args: Detach) -> Result<Answer> {
    let found = Attached::find(ctx, args.vmid, &args.disk).await?;
    let destroys = args.delete == Some(true);
    let role = found.disk.role;
    if role == DiskRole::RootFs {
        return Err(Error::argument("a container cannot be without its root file system")
            .hint("pve_guest_delete destroys the whole container")
            .with("argument", "disk"));
    }
    if role == DiskRole::Unused && !destroys {
        return Err(Error::argument(format!("{} is detached already", args.disk))
            .hint("`delete` destroys its volume for good")
            .with("argument", "disk"));
    }
    if let (Some(id), true) = (found.disk.source.volume_id(), destroys)
        && let Some(owner) = volume::owner(&id).filter(|owner| *owner != args.vmid)
    {
        return Err(Error::new(
            Code::Conflict,
            format!("{id} belongs to guest {owner}, and is not destroyed from here"),
        )
        .hint("without `delete` it is only detached"));
    }
    let mut params = Params::new().with("delete", &args.disk);
    if destroys && role != DiskRole::Unused {
        match found.guest.kind {
            GuestKind::Qemu => params = params.with("force", 1),
            GuestKind::Lxc => {
                return Err(Error::argument(
                    "a container's mount point is detached first, and its volume destroyed after that",
                )
                .hint("call this without `delete`, then with `delete` for the unusedN that it became")
                .with("argument", "delete"));
            }
        }
    }
    let mut keys = vec![args.disk.clone()];
    // Where the volume of a detached disk will stand.
    if !destroys && found.disk.source.volume_id().is_some() {
        let free = (0..256)
            .map(|n| format!("unused{n}"))
            .find(|slot| loose::some(&found.config, slot).is_none());
        keys.extend(free.filter(|_| !matches!(role, DiskRole::CdRom | DiskRole::CloudInit)));
    }
    change(ctx, &found.guest, params, &keys, args.digest, &args.asked).await
}
