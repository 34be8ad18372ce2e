//! Snapshots.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Code, Error, Result,
    insight::estate::{Guest, GuestKind},
    pve::{Params, Vmid, loose},
    render::{Answer, units},
    safety::Method,
    tools::{
        Ctx,
        change::{Asked, AskedTask, Submitted, on_guest},
        core::{real_snapshots, title},
    },
};

/// Arguments of `pve_snapshot_create`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Create {
    vmid: Vmid,
    /// Letters, digits, `-` and `_`, a letter first.
    name: String,
    description: Option<String>,
    memory: Option<bool>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// Arguments of `pve_snapshot_update`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Update {
    vmid: Vmid,
    name: String,
    description: String,
    #[serde(flatten)]
    asked: Asked,
}

/// Arguments of `pve_snapshot_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Delete {
    vmid: Vmid,
    name: String,
    /// Also where disk snapshots cannot be removed.
    force: Option<bool>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// Arguments of `pve_snapshot_rollback`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Rollback {
    vmid: Vmid,
    name: String,
    start: Option<bool>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// A name that can be a snapshot's: `pve-configid`, at most 40 characters, and
/// not `current`, which is the entry for the guest as it is now.
fn checked(name: &str) -> Result<&str> {
    let form = name.len() <= 40
        && name.len() >= 2
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if name == "current" {
        return Err(Error::argument("`current` is the guest as it is now, not a snapshot")
            .with("argument", "name"));
    }
    if !form {
        return Err(Error::argument(format!("{name:?} cannot be a snapshot's name"))
            .hint("2 to 40 letters, digits, `-` and `_`, a letter first")
            .with("argument", "name"));
    }
    Ok(name)
}

/// What the list of snapshots says of one, and the names of all.
async fn find(ctx: Ctx<'_>, guest: &Guest, name: &str) -> Result<(Option<Value>, Vec<String>)> {
    let rows = ctx.get_below(guest, &["snapshot"], Params::new()).await?;
    let names = real_snapshots(&rows).filter_map(|s| loose::text(s, "name")).collect();
    let found = real_snapshots(&rows).find(|s| loose::str(s, "name") == Some(name)).map(|s| {
        json!({
            "name": name,
            "time": loose::int(s, "snaptime").map(units::time),
            "description": loose::text(s, "description"),
            "parent": loose::text(s, "parent"),
        })
    });
    Ok((found, names))
}

/// A snapshot that is there.
async fn existing(ctx: Ctx<'_>, guest: &Guest, name: &str) -> Result<Value> {
    match find(ctx, guest, name).await? {
        (Some(found), _) => Ok(found),
        (None, names) => Err(Error::new(
            Code::NotFound,
            format!("guest {} has no snapshot {name:?}", guest.vmid),
        )
        .hint(format!(
            "snapshots: {}",
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        ))),
    }
}

/// `pve_snapshot_create`
pub async fn create(ctx: Ctx<'_>, args: Create) -> Result<Answer> {
    let name = checked(&args.name)?;
    let guest = ctx.guest_now(args.vmid).await?;
    if let (Some(_), _) = find(ctx, &guest, name).await? {
        return Err(Error::new(
            Code::Conflict,
            format!("guest {} has a snapshot {name:?} already", guest.vmid),
        ));
    }
    let mut params =
        Params::new().with("snapname", name).with_some("description", args.description.as_deref());
    if args.memory == Some(true) {
        if guest.kind == GuestKind::Lxc {
            return Err(
                Error::argument("a container's snapshot has no memory").with("argument", "memory")
            );
        }
        params = params.with("vmstate", 1);
    }
    let operation = on_guest(Method::Post, &guest, &["snapshot"], params)?;
    match ctx.run(operation, &args.asked).await? {
        Submitted::DryRun(answer) => Ok(answer),
        Submitted::Sent(sent) => {
            ctx.app.pve.forget();
            let after = find(ctx, &guest, name).await.ok().and_then(|(found, _)| found);
            Ok(sent
                .with("after", after)
                .into_answer(format!("snapshot {name} of {}", title(&guest))))
        }
    }
}

/// `pve_snapshot_update`
pub async fn update(ctx: Ctx<'_>, args: Update) -> Result<Answer> {
    let name = checked(&args.name)?;
    let guest = ctx.guest_now(args.vmid).await?;
    let before = existing(ctx, &guest, name).await?;
    let params = Params::new().with("description", &args.description);
    let operation = on_guest(Method::Put, &guest, &["snapshot", name, "config"], params)?;
    match ctx.submit(operation, &args.asked).await? {
        Submitted::DryRun(answer) => Ok(answer.with("before", before)),
        Submitted::Sent(sent) => {
            let after = existing(ctx, &guest, name).await.unwrap_or(Value::Null);
            Ok(sent
                .with("before", before)
                .with("after", after)
                .into_answer(format!("snapshot {name}")))
        }
    }
}

/// `pve_snapshot_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let name = checked(&args.name)?;
    let guest = ctx.guest_now(args.vmid).await?;
    let before = existing(ctx, &guest, name).await?;
    let mut params = Params::new();
    if args.force == Some(true) {
        params = params.with("force", 1);
    }
    let operation = on_guest(Method::Delete, &guest, &["snapshot", name], params)?;
    match ctx.run(operation, &args.asked).await? {
        Submitted::DryRun(answer) => Ok(answer.with("before", before)),
        Submitted::Sent(sent) => {
            let after = find(ctx, &guest, name).await.map(|(_, names)| json!({"snapshots": names}));
            let sent = sent.with("before", before).with("after", after.unwrap_or(Value::Null));
            Ok(sent.into_answer(format!("snapshot {name} of {}", title(&guest))))
        }
    }
}

/// `pve_snapshot_rollback`
pub async fn rollback(ctx: Ctx<'_>, args: Rollback) -> Result<Answer> {
    let name = checked(&args.name)?;
    let guest = ctx.guest_now(args.vmid).await?;
    let target = existing(ctx, &guest, name).await?;
    let mut params = Params::new();
    if let Some(start) = args.start {
        params = params.with("start", u8::from(start));
    }
    let operation = on_guest(Method::Post, &guest, &["snapshot", name, "rollback"], params)?;
    match ctx.run(operation, &args.asked).await? {
        Submitted::DryRun(answer) => Ok(answer.with("to", target)),
        Submitted::Sent(sent) => {
            let now = ctx.get_below(&guest, &["status", "current"], Params::new()).await;
            let after = now.ok().map(|n| json!({"status": loose::text(&n, "status")}));
            Ok(sent
                .with("to", target)
                .with("after", after)
                .into_answer(format!("rolled {} back to {name}", title(&guest))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn names() {
        for good in ["a1", "before-upgrade", "Snap_1", &"a".repeat(40)] {
            assert!(checked(good).is_ok(), "{good}");
        }
        for bad in
            ["", "a", "current", "..", "1a", "a/b", "a b", "-a", "a\n", "ä1", &"a".repeat(41)]
        {
            assert!(checked(bad).is_err(), "{bad:?}");
        }
    }
}
