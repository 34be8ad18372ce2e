//! Guest power: one function for all, since only the word differs.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Error, Result,
    insight::estate::{Guest, GuestKind},
    pve::{Params, Vmid, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::{AskedTask, Submitted, on_guest},
    },
};

/// Arguments of most power tools.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Plain {
    vmid: Vmid,
    #[serde(flatten)]
    asked: AskedTask,
}

/// Arguments of `pve_guest_shutdown`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Shutdown {
    vmid: Vmid,
    /// Cuts the power if that fails.
    force_stop: Option<bool>,
    /// Time that the guest gets.
    #[schemars(range(min = 1, max = 86_400))]
    grace_s: Option<u64>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// Arguments of `pve_guest_suspend`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Suspend {
    vmid: Vmid,
    to_disk: Option<bool>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// What is asked for.
struct Power {
    /// The last segment of the path.
    word: &'static str,
    params: Params,
    /// The state that a guest is in afterwards; `None` where that does not tell.
    goal: Option<&'static str>,
}

/// `pve_guest_start`
pub async fn start(ctx: Ctx<'_>, args: Plain) -> Result<Answer> {
    run(
        ctx,
        args.vmid,
        Power { word: "start", params: Params::new(), goal: Some("running") },
        args.asked,
    )
    .await
}

/// `pve_guest_shutdown`
pub async fn shutdown(ctx: Ctx<'_>, args: Shutdown) -> Result<Answer> {
    let mut params = Params::new().with_some("timeout", args.grace_s);
    if let Some(force) = args.force_stop {
        params = params.with("forceStop", u8::from(force));
    }
    run(ctx, args.vmid, Power { word: "shutdown", params, goal: Some("stopped") }, args.asked).await
}

/// `pve_guest_stop`
pub async fn stop(ctx: Ctx<'_>, args: Plain) -> Result<Answer> {
    run(
        ctx,
        args.vmid,
        Power { word: "stop", params: Params::new(), goal: Some("stopped") },
        args.asked,
    )
    .await
}

/// `pve_guest_reboot`
pub async fn reboot(ctx: Ctx<'_>, args: Plain) -> Result<Answer> {
    run(ctx, args.vmid, Power { word: "reboot", params: Params::new(), goal: None }, args.asked)
        .await
}

/// `pve_guest_reset`
pub async fn reset(ctx: Ctx<'_>, args: Plain) -> Result<Answer> {
    let guest = ctx.guest(args.vmid).await?;
    if guest.kind == GuestKind::Lxc {
        return Err(Error::argument(format!(
            "guest {} is a container: only VMs have a reset",
            guest.vmid
        ))
        .hint("pve_guest_stop and pve_guest_start do the same"));
    }
    run(ctx, args.vmid, Power { word: "reset", params: Params::new(), goal: None }, args.asked)
        .await
}

/// `pve_guest_suspend`
pub async fn suspend(ctx: Ctx<'_>, args: Suspend) -> Result<Answer> {
    let mut params = Params::new();
    if let Some(to_disk) = args.to_disk {
        if ctx.guest(args.vmid).await?.kind == GuestKind::Lxc {
            return Err(Error::argument("only VMs can be suspended to disk"));
        }
        params = params.with("todisk", u8::from(to_disk));
    }
    run(ctx, args.vmid, Power { word: "suspend", params, goal: None }, args.asked).await
}

/// `pve_guest_resume`
pub async fn resume(ctx: Ctx<'_>, args: Plain) -> Result<Answer> {
    run(
        ctx,
        args.vmid,
        Power { word: "resume", params: Params::new(), goal: Some("running") },
        args.asked,
    )
    .await
}

async fn run(ctx: Ctx<'_>, vmid: Vmid, power: Power, asked: AskedTask) -> Result<Answer> {
    let guest = ctx.guest_now(vmid).await?;
    let before = state(ctx, &guest).await?;
    let paused =
        loose::str(&before, "qmp_status").is_some_and(|s| s != "running" && s != "stopped");
    let there = power.goal.is_some() && loose::str(&before, "status") == power.goal && !paused;
    if there && asked.dry_run != Some(true) {
        return Ok(Answer::new(json!({
            "status": "no_change", "vmid": vmid, "before": before,
            "note": format!("the guest is {} already", power.goal.unwrap_or_default()),
        })));
    }
    let operation = on_guest(Method::Post, &guest, &["status", power.word], power.params)?;
    let sent = match ctx.run(operation, &asked).await? {
        Submitted::DryRun(answer) => return Ok(answer.with("before", before)),
        Submitted::Sent(sent) => sent,
    };
    let waited = asked.patience();
    let mut after = state(ctx, &guest).await.unwrap_or(Value::Null);
    // A guest under HA is only asked of the manager, which acts on its own time.
    if let (Some(goal), Some(patience)) = (power.goal, waited)
        && loose::str(&before, "ha").is_some()
    {
        let end = Instant::now() + patience;
        while loose::str(&after, "status") != Some(goal) && Instant::now() < end {
            let cancelled = ctx.session.cancelled();
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(2)) => {}
                () = cancelled.cancelled() => break,
            }
            ctx.app.pve.forget();
            after = state(ctx, &guest).await.unwrap_or(Value::Null);
        }
    }
    let mut sent = sent.with("before", before).with("after", after.clone());
    if let Some(goal) = power.goal
        && loose::str(&after, "status").is_some_and(|s| s != goal)
        && waited.is_some()
    {
        sent = sent.with("note", format!("the guest is not {goal} yet"));
        sent.answer.insert("status".into(), "started".into());
    }
    let heading = format!("{} of {}", power.word, crate::tools::core::title(&guest));
    Ok(sent.into_answer(heading))
}

/// A guest's state in three words, read fresh.
async fn state(ctx: Ctx<'_>, guest: &Guest) -> Result<Value> {
    let now = ctx.get_below(guest, &["status", "current"], Params::new()).await?;
    let mut out = json!({"status": loose::text(&now, "status")});
    if let Value::Object(map) = &mut out {
        for (key, value) in [
            ("qmp_status", loose::text(&now, "qmpstatus")),
            ("lock", loose::text(&now, "lock")),
            (
                "ha",
                now.get("ha")
                    .filter(|h| loose::flag(h, "managed"))
                    .and_then(|h| loose::text(h, "state")),
            ),
        ] {
            if let Some(value) = value {
                map.insert(key.to_owned(), value.into());
            }
        }
        if let Some(uptime) = loose::uint(&now, "uptime") {
            map.insert("uptime_s".to_owned(), uptime.into());
        }
    }
    Ok(out)
}
