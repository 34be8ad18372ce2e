//! Destroying a guest.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    Code, Error, Result,
    insight::estate::Guest,
    pve::{GuestConfig, GuestKind, Params, Vmid},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::{AskedTask, Submitted, on_guest},
        core::title,
    },
};

/// Arguments of `pve_guest_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Delete {
    vmid: Vmid,
    /// The guest's present name.
    expect_name: String,
    /// Also from jobs, HA, replication, permissions.
    purge: Option<bool>,
    /// Also its disks that no option names.
    unreferenced_disks: Option<bool>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_guest_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let mut guest = ctx.guest_now(args.vmid).await?;
    if guest.name.is_empty() {
        guest.name = name_now(ctx, &guest).await?;
    }
    if guest.name != args.expect_name {
        return Err(Error::new(
            Code::Conflict,
            format!("guest {} is named {:?}, not {:?}", guest.vmid, guest.name, args.expect_name),
        )
        .hint("look again which guest is meant")
        .with("name", guest.name.clone()));
    }
    let mut params = Params::new();
    if let Some(purge) = args.purge {
        params = params.with("purge", u8::from(purge));
    }
    if let Some(all) = args.unreferenced_disks {
        params = params.with("destroy-unreferenced-disks", u8::from(all));
    }
    let operation = on_guest(Method::Delete, &guest, &[], params)?;
    let before = json!({"name": guest.name, "type": guest.kind.as_str(), "node": &*guest.node, "status": guest.status.as_str()});
    match ctx.run(operation, &args.asked).await? {
        Submitted::DryRun(answer) => Ok(answer.with("before", before)),
        Submitted::Sent(sent) => {
            ctx.app.pve.forget();
            let gone = ctx.guests().await.map(|all| !all.iter().any(|g| g.vmid == guest.vmid));
            let after = gone.ok().map(|gone| json!({"exists": !gone}));
            let heading = format!("deleted {}", title(&guest));
            Ok(sent.with("before", before).with("after", after).into_answer(heading))
        }
    }
}

/// The name of a guest that the list shows without one, as it does while its node is off.
async fn name_now(ctx: Ctx<'_>, guest: &Guest) -> Result<String> {
    let config = ctx.get_below(guest, &["config"], Params::new()).await.map_err(|error| {
        let (vmid, node) = (guest.vmid, &guest.node);
        Error::new(
            Code::Conflict,
            format!("the name of guest {vmid} is not known now: its node {node} does not answer"),
        )
        .hint(format!(
            "nothing was sent: a guest is deleted by its own node, so bring {node} back first \
             (pve_cluster_status shows it), then look at the guest's name and call again"
        ))
        .with("vmid", vmid.get())
        .with("node", node.as_ref())
        .with("cause", error.message)
    })?;
    let name = GuestConfig::new(guest.kind, &config).name().map(str::to_owned);
    // As the list calls a guest that was given none.
    Ok(name.unwrap_or_else(|| match guest.kind {
        GuestKind::Qemu => format!("VM {}", guest.vmid),
        GuestKind::Lxc => format!("CT{}", guest.vmid),
    }))
}
