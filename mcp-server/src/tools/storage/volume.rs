//! Volumes: deleted, annotated.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::place::Volume;
use crate::{
    Code, Error, Result,
    insight::estate::{Guest, Setup},
    pve::{NodeName, Params, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::{Asked, AskedTask},
        outcome::{operation, switch, told},
    },
};

/// Arguments of `pve_volume_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Delete {
    volid: String,
    node: Option<NodeName>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// The guest whose configuration names a volume.
async fn user(ctx: Ctx<'_>, volume: &Volume) -> Result<Option<Guest>> {
    let Some(owner) = volume.owner() else { return Ok(None) };
    let guests = ctx.guests().await?;
    let Some(guest) = guests.iter().find(|g| g.vmid == owner) else { return Ok(None) };
    let config = ctx.get_below(guest, &["config"], Params::new()).await?;
    let named = Setup::read(guest.kind, &config).volumes.contains(&volume.volid);
    Ok(named.then(|| guest.clone()))
}

/// `pve_volume_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let volume = Volume::find(ctx, &args.volid, args.node.as_ref()).await?;
    if volume.is_backup() {
        return Err(Error::argument(format!("{} is a backup", volume.volid))
            .hint("take pve_backup_delete")
            .with("argument", "volid"));
    }
    if let Some(guest) = user(ctx, &volume).await? {
        return Err(Error::new(
            Code::Conflict,
            format!("guest {} {:?} uses {}", guest.vmid, guest.name, volume.volid),
        )
        .hint("pve_disk_detach takes it out of the guest first")
        .with("vmid", guest.vmid.get()));
    }
    let call = operation(Method::Delete, &volume.segments(), Params::new())?;
    let done = ctx.run(call, &args.asked).await?;
    let heading = format!("deleted {}", volume.volid);
    Ok(told(done, volume.to_json(), volume.now(ctx), heading).await)
}

/// Arguments of `pve_volume_update`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Update {
    volid: String,
    node: Option<NodeName>,
    notes: Option<String>,
    protected: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_volume_update`
pub async fn update(ctx: Ctx<'_>, args: Update) -> Result<Answer> {
    if args.notes.is_none() && args.protected.is_none() {
        return Err(Error::argument("nothing to change: give `notes` or `protected`"));
    }
    let volume = Volume::find(ctx, &args.volid, args.node.as_ref()).await?;
    if !volume.is_backup() {
        return Err(Error::argument(format!(
            "{} is {}: Proxmox keeps notes and protection for backups only",
            volume.volid,
            volume.content()
        ))
        .with("argument", "volid"));
    }
    let notes = loose::str(&volume.row, "notes").unwrap_or_default().trim_end();
    let same = args.notes.as_deref().is_none_or(|n| n.trim_end() == notes)
        && args.protected.is_none_or(|p| p == loose::flag(&volume.row, "protected"));
    if same && args.asked.dry_run != Some(true) {
        return Ok(Answer::new(json!({"status": "no_change", "before": volume.to_json()}))
            .untrusted(&["before"]));
    }
    let params = Params::new().with_some("notes", args.notes.as_deref());
    let params = switch(params, "protected", args.protected);
    let call = operation(Method::Put, &volume.segments(), params)?;
    let done = ctx.submit(call, &args.asked).await?;
    let heading = format!("updated {}", volume.volid);
    Ok(told(done, volume.to_json(), volume.now(ctx), heading).await)
}
