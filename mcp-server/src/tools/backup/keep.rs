//! Backups that are there: deleted, protected, pruned.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Code, Error, Result,
    pve::{NodeName, Params, Vmid, loose},
    render::{Answer, units},
    safety::Method,
    tools::{
        Ctx,
        change::{Asked, AskedTask},
        outcome::{operation, told},
        storage::place::{self, Volume},
    },
};

/// Arguments of `pve_backup_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct One {
    volid: String,
    node: Option<NodeName>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_backup_delete`
pub async fn delete(ctx: Ctx<'_>, args: One) -> Result<Answer> {
    let backup = Volume::find(ctx, &args.volid, args.node.as_ref()).await?.backup()?;
    if loose::flag(&backup.row, "protected") {
        return Err(Error::new(Code::Protected, format!("{} is protected", backup.volid))
            .hint("it was protected on purpose; pve_backup_protect lifts that"));
    }
    let call = operation(Method::Delete, &backup.segments(), Params::new())?;
    let done = ctx.run(call, &args.asked).await?;
    let heading = format!("deleted {}", backup.volid);
    Ok(told(done, backup.to_json(), backup.now(ctx), heading).await)
}

/// Arguments of `pve_backup_protect`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Protect {
    volid: String,
    node: Option<NodeName>,
    /// False lifts the protection.
    protected: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_backup_protect`
pub async fn protect(ctx: Ctx<'_>, args: Protect) -> Result<Answer> {
    let backup = Volume::find(ctx, &args.volid, args.node.as_ref()).await?.backup()?;
    let wanted = args.protected.unwrap_or(true);
    if loose::flag(&backup.row, "protected") == wanted && args.asked.dry_run != Some(true) {
        return Ok(Answer::new(json!({"status": "no_change", "before": backup.to_json()})));
    }
    let params = Params::new().with_bool("protected", wanted);
    let call = operation(Method::Put, &backup.segments(), params)?;
    let done = ctx.submit(call, &args.asked).await?;
    let word = if wanted { "protected" } else { "no longer protected" };
    let heading = format!("{} is {word}", backup.volid);
    Ok(told(done, backup.to_json(), backup.now(ctx), heading).await)
}

/// The two kinds of guests.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Qemu,
    Lxc,
}

/// Arguments of `pve_backup_prune`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Prune {
    storage: String,
    node: Option<NodeName>,
    vmid: Option<Vmid>,
    r#type: Option<Kind>,
    /// Without any keep the storage's own.
    #[schemars(range(min = 0))]
    keep_last: Option<u32>,
    #[schemars(range(min = 0))]
    keep_hourly: Option<u32>,
    #[schemars(range(min = 0))]
    keep_daily: Option<u32>,
    #[schemars(range(min = 0))]
    keep_weekly: Option<u32>,
    #[schemars(range(min = 0))]
    keep_monthly: Option<u32>,
    #[schemars(range(min = 0))]
    keep_yearly: Option<u32>,
    #[serde(flatten)]
    asked: AskedTask,
}

impl Prune {
    fn params(&self) -> Result<Params> {
        let rules = [
            ("keep-last", self.keep_last),
            ("keep-hourly", self.keep_hourly),
            ("keep-daily", self.keep_daily),
            ("keep-weekly", self.keep_weekly),
            ("keep-monthly", self.keep_monthly),
            ("keep-yearly", self.keep_yearly),
        ];
        let given: Vec<(&str, u32)> =
            rules.into_iter().filter_map(|(name, n)| Some((name, n?))).collect();
        // Proxmox takes nothing but zeros for "keep all", which nobody means who writes them.
        if !given.is_empty() && given.iter().all(|(_, n)| *n == 0) {
            return Err(Error::argument("a retention must keep at least one backup")
                .hint("pve_backup_delete deletes single backups"));
        }
        let kept: Vec<String> = given
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| format!("{name}={n}"))
            .collect();
        let kind = self.r#type.map(|kind| match kind {
            Kind::Qemu => "qemu",
            Kind::Lxc => "lxc",
        });
        Ok(Params::new()
            .with_some("vmid", self.vmid)
            .with_some("type", kind)
            .with_some("prune-backups", (!kept.is_empty()).then(|| kept.join(","))))
    }
}

/// What a retention would do with each backup, as Proxmox itself says.
async fn preview(ctx: Ctx<'_>, path: &[&str], params: &Params) -> Result<Value> {
    let rows = ctx.get_with(path, params.clone()).await?;
    let marked = |mark: &str| -> Vec<Value> {
        let of = loose::rows(&rows).iter().filter(|r| loose::str(r, "mark") == Some(mark));
        of.map(|r| {
            json!({
                "volid": loose::text(r, "volid"),
                "vmid": loose::uint(r, "vmid"),
                "time": loose::int(r, "ctime").map(units::time),
            })
        })
        .collect()
    };
    let (keep, guarded) = (marked("keep"), marked("protected"));
    Ok(json!({
        "would_go": marked("remove"),
        "kept": keep.len(),
        "protected": guarded.len(),
        "not_counted": marked("renamed").len(),
    }))
}

/// `pve_backup_prune`
pub async fn prune(ctx: Ctx<'_>, args: Prune) -> Result<Answer> {
    if let Some(vmid) = args.vmid {
        ctx.may_see(vmid)?;
    }
    let params = args.params()?;
    let node = place::node_of(ctx, &args.storage, args.node.as_ref()).await?;
    place::holding(ctx, &node, &args.storage, "backup").await?;
    let path = ["nodes", node.as_str(), "storage", &args.storage, "prunebackups"];
    let plan = preview(ctx, &path, &params).await?;
    let nothing = plan.get("would_go").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if nothing && args.asked.dry_run != Some(true) {
        return Ok(Answer::new(json!({
            "status": "no_change", "before": plan, "note": "no backup would go by this retention",
        })));
    }
    let call = operation(Method::Delete, &path, params.clone())?;
    // Whoever is asked to confirm sees what would go.
    let done = ctx.run(call, &args.asked).await.map_err(|e| e.with("before", plan.clone()))?;
    let after = async {
        ctx.app.pve.forget();
        preview(ctx, &path, &params).await.unwrap_or(Value::Null)
    };
    Ok(told(done, plan, after, format!("pruned backups on {}", args.storage)).await)
}
