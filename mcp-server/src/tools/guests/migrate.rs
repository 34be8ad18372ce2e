//! Moving a guest to another node, and making a template of it.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Code, Error, Result,
    insight::estate::{Guest, GuestKind, GuestStatus},
    pve::{NodeName, Params, Vmid, loose},
    render::{Answer, units},
    safety::Method,
    tools::{
        Ctx,
        change::{AskedTask, Submitted, on_guest},
        core::{real_snapshots, title},
        outcome::{switch, told},
    },
};

/// Arguments of `pve_guest_migrate`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Migrate {
    vmid: Vmid,
    target: NodeName,
    /// Stops and starts a running container.
    restart: Option<bool>,
    with_local_disks: Option<bool>,
    target_storage: Option<String>,
    #[schemars(range(min = 0))]
    bwlimit: Option<u64>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// A pause between looks at a guest that the HA manager moves.
const LOOK: Duration = Duration::from_secs(2);

/// `pve_guest_migrate`
pub async fn migrate(ctx: Ctx<'_>, args: Migrate) -> Result<Answer> {
    let guest = ctx.guest_now(args.vmid).await?;
    let target = ctx.node(args.target.as_str()).await?;
    if *guest.node == *target && args.asked.dry_run != Some(true) {
        return Ok(Answer::new(json!({
            "status": "no_change", "vmid": args.vmid, "note": format!("the guest is on {target} already"),
        })));
    }
    let asked = Params::new().with("target", &target);
    // Older releases do not check; the migration itself still does.
    let checked = ctx.get_below(&guest, &["migrate"], asked).await.ok();
    let running = guest.status != GuestStatus::Stopped;
    if let Some(checked) = &checked {
        blocked(&guest, &target, checked)?;
        if running && guest.kind == GuestKind::Qemu {
            local_disks(checked, &args)?;
        }
    }
    let mut params = Params::new().with("target", &target).with_some("bwlimit", args.bwlimit);
    match guest.kind {
        GuestKind::Qemu => {
            if args.restart.is_some() {
                return Err(Error::argument("a VM moves while it runs, without `restart`")
                    .with("argument", "restart"));
            }
            params = switch(params, "online", running.then_some(true));
            params = switch(params, "with-local-disks", args.with_local_disks);
            params = params.with_some("targetstorage", args.target_storage.as_deref());
        }
        GuestKind::Lxc => {
            if args.with_local_disks.is_some() {
                return Err(Error::argument("a container's volumes move along by themselves")
                    .with("argument", "with_local_disks"));
            }
            if running && args.restart != Some(true) {
                return Err(Error::new(
                    Code::Conflict,
                    format!(
                        "container {} is running, and containers do not move while they run",
                        guest.vmid
                    ),
                )
                .hint("`restart` stops it, moves it and starts it again"));
            }
            params = switch(params, "restart", args.restart.filter(|_| running));
            params = params.with_some("target-storage", args.target_storage.as_deref());
        }
    }
    let before = json!({"node": &*guest.node, "status": guest.status.as_str()});
    let call = on_guest(Method::Post, &guest, &["migrate"], params)?;
    let sent = match ctx.run(call, &args.asked).await? {
        Submitted::DryRun(answer) => return Ok(answer.with("before", before)),
        Submitted::Sent(sent) => sent,
    };
    let managed = guest.hastate.is_some();
    let now = arrival(ctx, &guest, &target, &args.asked, managed).await;
    let mut sent = sent.with("before", before);
    let heading = format!("migration of {} to {target}", title(&guest));
    if let Some(now) = now {
        let there = *now.node == *target;
        sent = sent.with("after", json!({"node": &*now.node, "status": now.status.as_str()}));
        if !there && args.asked.patience().is_some() {
            sent.answer.insert("status".into(), "started".into());
            let note = if managed {
                "the HA manager moves the guest on its own time; pve_guest_details shows where it is"
            } else {
                "the guest is not on its target yet"
            };
            sent = sent.with("note", note);
        }
    }
    Ok(sent.into_answer(heading))
}

/// Where the guest is now. The HA manager is only asked, and moves it later.
async fn arrival(
    ctx: Ctx<'_>,
    guest: &Guest,
    target: &str,
    asked: &AskedTask,
    managed: bool,
) -> Option<Guest> {
    let end = Instant::now() + asked.patience().filter(|_| managed).unwrap_or_default();
    loop {
        let now = ctx.guest_now(guest.vmid).await.ok()?;
        if *now.node == *target || Instant::now() >= end {
            return Some(now);
        }
        let cancelled = ctx.session.cancelled();
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = cancelled.cancelled() => return Some(now),
        }
    }
}

/// What Proxmox says stands in the way of this target.
fn blocked(guest: &Guest, target: &str, checked: &Value) -> Result<()> {
    let names = |a: &str, b: &str| checked.get(a).or_else(|| checked.get(b)).cloned();
    let not = names("not_allowed_nodes", "not-allowed-nodes").unwrap_or(Value::Null);
    let resources = checked.get("local_resources").cloned().unwrap_or(Value::Null);
    if let Some(why) = not.get(target) {
        return Err(Error::new(
            Code::Conflict,
            format!("guest {} cannot go to {target}", guest.vmid),
        )
        .hint("`why` says what that node lacks; `target_storage` may name another storage")
        .with("why", why.clone()));
    }
    let held: Vec<String> =
        loose::rows(&resources).iter().filter_map(|r| r.as_str().map(str::to_owned)).collect();
    if !held.is_empty() {
        return Err(Error::new(
            Code::Conflict,
            format!("guest {} is tied to {}: {}", guest.vmid, guest.node, held.join(", ")),
        )
        .hint("devices of the host cannot move; take them out of the guest first")
        .with("local_resources", held));
    }
    Ok(())
}

/// A running VM's local disks move only when that is asked for.
fn local_disks(checked: &Value, args: &Migrate) -> Result<()> {
    let disks = checked.get("local_disks").map_or(&[][..], |d| loose::rows(d));
    let attached: Vec<&Value> = disks.iter().filter(|d| !loose::flag(d, "cdrom")).collect();
    if attached.is_empty() || args.with_local_disks == Some(true) {
        return Ok(());
    }
    let size: u64 = attached.iter().filter_map(|d| loose::uint(d, "size")).sum();
    let names: Vec<String> = attached.iter().filter_map(|d| loose::text(d, "volid")).collect();
    Err(Error::new(
        Code::Conflict,
        format!(
            "guest {} has local disks ({}): {}",
            args.vmid,
            units::bytes(size),
            names.join(", ")
        ),
    )
    .hint("`with_local_disks` copies them to the target over the network")
    .with("local_disks", names))
}

/// Arguments of `pve_guest_template`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Template {
    vmid: Vmid,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_guest_template`
pub async fn template(ctx: Ctx<'_>, args: Template) -> Result<Answer> {
    let guest = ctx.guest_now(args.vmid).await?;
    if guest.template && args.asked.dry_run != Some(true) {
        return Ok(Answer::new(json!({
            "status": "no_change", "vmid": args.vmid, "note": "the guest is a template already",
        })));
    }
    if guest.status != GuestStatus::Stopped {
        return Err(Error::new(
            Code::Conflict,
            format!("guest {} is {}", guest.vmid, guest.status.as_str()),
        )
        .hint("only a stopped guest becomes a template; pve_guest_shutdown first"));
    }
    let rows = ctx.get_below(&guest, &["snapshot"], Params::new()).await?;
    let snapshots: Vec<String> =
        real_snapshots(&rows).filter_map(|s| loose::text(s, "name")).collect();
    if !snapshots.is_empty() {
        return Err(Error::new(
            Code::Conflict,
            format!("guest {} has snapshots: {}", guest.vmid, snapshots.join(", ")),
        )
        .hint(
            "a template has none: delete them, or clone the guest and make the clone a template",
        ));
    }
    let call = on_guest(Method::Post, &guest, &["template"], Params::new())?;
    let before = json!({"name": guest.name, "template": guest.template});
    let done = ctx.run(call, &args.asked).await?;
    let after = async {
        match ctx.guest_now(args.vmid).await {
            Ok(now) => json!({"name": now.name, "template": now.template}),
            Err(_) => Value::Null,
        }
    };
    Ok(told(done, before, after, format!("template of {}", title(&guest))).await)
}
