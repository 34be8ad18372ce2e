//! What only the guard of a node can do: upgrades and kernels.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use pve_guard::protocol::{Change, Plan, Verb};

use crate::{
    Code, Error, Result,
    node::{Event, Io},
    pve::NodeName,
    render::{Answer, units},
    safety::Deed,
    tools::{
        Ctx, Progress,
        change::Asked,
        deeds::{Allowed, Doing},
    },
};

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Simulate {
    node: Option<NodeName>,
    refresh: Option<bool>,
    dry_run: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Start {
    node: NodeName,
    plan: String,
    dry_run: Option<bool>,
    confirm: Option<String>,
    approval_code: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Status {
    node: Option<NodeName>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Pin {
    node: NodeName,
    version: String,
    next_boot: Option<bool>,
    dry_run: Option<bool>,
    confirm: Option<String>,
    approval_code: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Unpin {
    node: NodeName,
    next_boot: Option<bool>,
    dry_run: Option<bool>,
    confirm: Option<String>,
    approval_code: Option<String>,
}

async fn node_of(ctx: Ctx<'_>, name: Option<&NodeName>) -> Result<NodeName> {
    let name = ctx.node_or_only(name).await?;
    NodeName::parse(&name)
}

/// Progress of the guard, told on.
fn telling(ctx: Ctx<'_>) -> Io<'_> {
    let session = ctx.session;
    Io {
        on_event: Some(Box::new(move |event| {
            if let Event::Progress(progress) = event {
                let message = format!("{}: {}", progress.phase, progress.message);
                session.progress(Progress { message, percent: None });
            }
        })),
        cancel: ctx.session.cancelled(),
        ..Io::default()
    }
}

/// `pve_upgrade_simulate`
pub async fn simulate(ctx: Ctx<'_>, args: Simulate) -> Result<Answer> {
    let node = node_of(ctx, args.node.as_ref()).await?;
    if args.refresh != Some(true) {
        let plan = ctx.app.guard.upgrade_simulate(&node, telling(ctx)).await?;
        return Ok(told(&node, &plan));
    }
    let asked = Asked { dry_run: args.dry_run, ..Asked::default() };
    let doing = match ctx.allow(Deed::UpgradeRefresh { node: node.clone() }, &asked).await? {
        Allowed::DryRun(answer) => return Ok(answer),
        Allowed::Leave(doing) => doing,
    };
    let permit = doing.guard(Verb::UpgradeSimulate { refresh: true })?;
    let plan = ctx.app.guard.upgrade_refresh(permit, telling(ctx)).await;
    doing.finish(&plan.as_ref().map(|p| json!({"plan": p.plan})).map_err(Clone::clone));
    Ok(told(&node, &plan?))
}

fn told(node: &NodeName, plan: &Plan) -> Answer {
    let mut out = match serde_json::to_value(plan) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    out.insert("node".into(), node.as_str().into());
    out.insert("summary".into(), words(plan).into());
    Answer::new(out).heading(format!("upgrade of {node}"))
}

/// A plan in words, a line for each thing to know.
fn words(plan: &Plan) -> Vec<String> {
    let names = |changes: &[Change]| {
        changes
            .iter()
            .map(|c| match &c.from {
                Some(from) => format!("{} {from} -> {} ({})", c.name, c.to, c.origin),
                None => format!("{} {} ({})", c.name, c.to, c.origin),
            })
            .collect::<Vec<_>>()
    };
    let mut lines = Vec::new();
    for (what, changes) in [
        ("upgraded", &plan.upgrade),
        ("newly installed", &plan.install),
        ("downgraded", &plan.downgrade),
    ] {
        if !changes.is_empty() {
            lines.push(format!("{} {what}: {}", changes.len(), names(changes).join(", ")));
        }
    }
    if !plan.remove.is_empty() {
        let removed: Vec<String> = plan.remove.iter().map(|r| r.name.clone()).collect();
        lines.push(format!("{} removed: {}", removed.len(), removed.join(", ")));
    }
    if !plan.kept_back.is_empty() {
        lines.push(format!("kept back: {}", plan.kept_back.join(", ")));
    }
    if let Some(bytes) = plan.download_bytes.filter(|bytes| *bytes > 0) {
        lines.push(format!("{} to download", units::bytes(bytes)));
    }
    if plan.remove.iter().any(|removal| removal.name == "proxmox-ve") {
        lines.push("proxmox-ve, and with it Proxmox VE, would be REMOVED".to_owned());
    }
    if !plan.services.is_empty() {
        lines.push(format!("services that restart, where they run: {}", plan.services.join(", ")));
    }
    if let Some(after) = &plan.kernel.after
        && plan.kernel.newest.as_ref() != Some(after)
    {
        lines.push(format!("kernel {after} comes; {} runs now", plan.kernel.running));
    }
    let changes = [&plan.upgrade, &plan.install, &plan.downgrade].iter().any(|c| !c.is_empty());
    if plan.reboot_needed {
        lines.push("a reboot is needed afterwards".to_owned());
    } else if changes {
        lines.push("no reboot is needed for the kernel".to_owned());
    }
    for problem in &plan.problems {
        lines.push(format!("problem: {}", problem.message));
    }
    if lines.is_empty() {
        lines.push("nothing to do".to_owned());
    }
    lines
}

/// `pve_upgrade_start`
pub async fn start(ctx: Ctx<'_>, args: Start) -> Result<Answer> {
    let node = node_of(ctx, Some(&args.node)).await?;
    // What is shown to the person is what the node would do now.
    let plan = ctx.app.guard.upgrade_simulate(&node, telling(ctx)).await?;
    if plan.plan != args.plan {
        return Err(Error::new(Code::DigestChanged, "the upgrade would now be another one")
            .hint("look at pve_upgrade_simulate again, and start that plan")
            .with("plan", plan.plan.clone())
            .with("summary", words(&plan)));
    }
    let asked =
        Asked { dry_run: args.dry_run, confirm: args.confirm, approval_code: args.approval_code };
    let details = words(&plan);
    let deed = Deed::UpgradeStart { node: node.clone(), plan: args.plan.clone(), details };
    let doing = match ctx.allow(deed, &asked).await? {
        Allowed::DryRun(answer) => return Ok(answer.with("summary", words(&plan))),
        Allowed::Leave(doing) => doing,
    };
    let mut answer = doing.told();
    let permit = doing.guard(Verb::UpgradeStart { plan: args.plan })?;
    let started = ctx.app.guard.upgrade_start(permit, telling(ctx)).await;
    doing.finish(&started.as_ref().map(|s| json!({"unit": s.unit})).map_err(Clone::clone));
    let started = started?;
    answer.insert("status".into(), "started".into());
    answer.insert("node".into(), node.as_str().into());
    answer.insert("unit".into(), started.unit.into());
    answer.insert("invocation_id".into(), started.invocation_id.into());
    answer.insert("note".into(), "pve_upgrade_status follows it, also after a reconnect".into());
    Ok(Answer::new(answer).heading(format!("upgrade of {node}")))
}

/// `pve_upgrade_status`
pub async fn status(ctx: Ctx<'_>, args: Status) -> Result<Answer> {
    let node = node_of(ctx, args.node.as_ref()).await?;
    let status = ctx.app.guard.upgrade_status(&node, args.cursor).await?;
    Ok(Answer::new(&status).heading(format!("upgrade of {node}")).with("node", node.as_str()))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Kernels {
    node: Option<NodeName>,
}

/// `pve_kernel_list`
pub async fn kernels(ctx: Ctx<'_>, args: Kernels) -> Result<Answer> {
    let node = node_of(ctx, args.node.as_ref()).await?;
    let kernels = ctx.app.guard.kernel_list(&node).await?;
    Ok(Answer::new(&kernels).heading(format!("kernels of {node}")).with("node", node.as_str()))
}

/// `pve_kernel_pin`
pub async fn pin(ctx: Ctx<'_>, args: Pin) -> Result<Answer> {
    let node = node_of(ctx, Some(&args.node)).await?;
    let next_boot = args.next_boot == Some(true);
    let deed = Deed::KernelPin { node: node.clone(), version: args.version.clone(), next_boot };
    let verb = Verb::KernelPin { version: args.version, next_boot };
    let asked =
        Asked { dry_run: args.dry_run, confirm: args.confirm, approval_code: args.approval_code };
    change(ctx, &node, deed, verb, &asked).await
}

/// `pve_kernel_unpin`
pub async fn unpin(ctx: Ctx<'_>, args: Unpin) -> Result<Answer> {
    let node = node_of(ctx, Some(&args.node)).await?;
    let next_boot = args.next_boot == Some(true);
    let deed = Deed::KernelUnpin { node: node.clone(), next_boot };
    let asked =
        Asked { dry_run: args.dry_run, confirm: args.confirm, approval_code: args.approval_code };
    change(ctx, &node, deed, Verb::KernelUnpin { next_boot }, &asked).await
}

async fn change(
    ctx: Ctx<'_>,
    node: &NodeName,
    deed: Deed,
    verb: Verb,
    asked: &Asked,
) -> Result<Answer> {
    let doing: Box<Doing> = match ctx.allow(deed, asked).await? {
        Allowed::DryRun(answer) => return Ok(answer),
        Allowed::Leave(doing) => doing,
    };
    let mut answer = doing.told();
    let before = ctx.app.guard.kernel_list(node).await.ok();
    let permit = doing.guard(verb)?;
    let after = ctx.app.guard.kernel_change(permit).await;
    doing.finish(&after.as_ref().map(|k| json!({"pinned": k.pinned})).map_err(Clone::clone));
    answer.insert("status".into(), "done".into());
    answer.insert("node".into(), node.as_str().into());
    answer.insert("before".into(), serde_json::to_value(before).unwrap_or_default());
    answer.insert("after".into(), serde_json::to_value(after?).unwrap_or_default());
    Ok(Answer::new(answer).heading(format!("kernels of {node}")))
}
