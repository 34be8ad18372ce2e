//! Backup jobs: listed, made, changed, deleted.

use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::create::{Compress, Mode, template, word};
use crate::{
    Code, Error, Result,
    insight::{
        calendar::Calendar,
        estate::{BackupJob, Selection},
    },
    pve::{NodeName, Params, Vmid, loose},
    render::{Answer, Page, Table, units},
    safety::Method,
    tools::{
        Ctx,
        args::None as NoArgs,
        change::{Asked, Submitted},
        outcome::{Did, list as list_of, operation, switch, told},
    },
};

/// The guests that a job takes, as a person says it.
pub fn selected(selection: &Selection) -> String {
    let ids = |vmids: &[Vmid]| vmids.iter().map(Vmid::to_string).collect::<Vec<_>>().join(", ");
    match selection {
        Selection::Pool(pool) => format!("pool {pool}"),
        Selection::Guests(vmids) => ids(vmids),
        Selection::AllBut(vmids) if vmids.is_empty() => "all".to_owned(),
        Selection::AllBut(vmids) => format!("all but {}", ids(vmids)),
        Selection::Nothing => "none".to_owned(),
    }
}

/// A retention, which the API writes as an object or as text.
fn retention(row: &Value, key: &str) -> Option<String> {
    match row.get(key)? {
        Value::Object(map) => {
            let part =
                |(k, _): (&String, &Value)| Some(format!("{k}={}", loose::text(row.get(key)?, k)?));
            Some(map.iter().filter_map(part).collect::<Vec<_>>().join(","))
        }
        _ => loose::text(row, key),
    }
}

/// `pve_list_backup_jobs`
pub async fn list(ctx: Ctx<'_>, _: NoArgs) -> Result<Answer> {
    let rows = ctx.get(&["cluster", "backup"]).await?;
    let jobs = BackupJob::list(&rows);
    let raw = |id: &str| loose::rows(&rows).iter().find(|r| loose::str(r, "id") == Some(id));
    let zone =
        if jobs.iter().any(|j| j.enabled && j.next_run.is_none()) { zone(ctx).await } else { None };
    let now = units::now();
    let columns = [
        "id", "enabled", "schedule", "next_run", "guests", "storage", "node", "mode", "keep",
        "comment",
    ];
    let table = Table::new(columns).fill(jobs.iter(), Page::new(None, None), |job| {
        let row = raw(&job.id).unwrap_or(&Value::Null);
        let computed = || job.calendar()?.next_after(now, zone.as_ref()?);
        let next = job.next_run.or_else(computed).filter(|_| job.enabled);
        vec![
            job.id.clone().into(),
            job.enabled.into(),
            job.schedule.clone().into(),
            next.map(units::time).into(),
            selected(&job.selection).into(),
            job.storage.clone().into(),
            job.node.clone().into(),
            loose::text(row, "mode").into(),
            retention(row, "prune-backups").into(),
            Some(job.comment.clone()).filter(|c| !c.is_empty()).into(),
        ]
    });
    Ok(table.into_answer("backup jobs"))
}

/// The zone of the node that we speak to.
async fn zone(ctx: Ctx<'_>) -> Option<TimeZone> {
    let time = ctx.get(&["nodes", "localhost", "time"]).await.ok()?;
    TimeZone::get(loose::str(&time, "timezone")?).ok()
}

/// Arguments of `pve_backup_job_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
    id: Option<String>,
    /// As 21:00, mon..fri 22:30, sat 03:00.
    schedule: Option<String>,
    storage: Option<String>,
    vmids: Option<Vec<Vmid>>,
    pool: Option<String>,
    all: Option<bool>,
    exclude: Option<Vec<Vmid>>,
    node: Option<NodeName>,
    enabled: Option<bool>,
    mode: Option<Mode>,
    compress: Option<Compress>,
    /// As keep-last=3,keep-daily=7.
    prune_backups: Option<String>,
    remove: Option<bool>,
    notes: Option<String>,
    protected: Option<bool>,
    repeat_missed: Option<bool>,
    comment: Option<String>,
    #[schemars(range(min = 0))]
    bwlimit: Option<u64>,
    delete: Option<Vec<String>>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

impl Set {
    fn params(&self) -> Result<Params> {
        let notes = self.notes.as_deref().map(template).transpose()?;
        let mut params = Params::new()
            .with_some("schedule", self.schedule.as_deref())
            .with_some("storage", self.storage.as_deref())
            .with_some("pool", self.pool.as_deref())
            .with_some("node", self.node.as_ref())
            .with_some("mode", self.mode.and_then(word))
            .with_some("compress", self.compress.and_then(word))
            .with_some("prune-backups", self.prune_backups.as_deref())
            .with_some("notes-template", notes)
            .with_some("comment", self.comment.as_deref())
            .with_some("bwlimit", self.bwlimit);
        for (name, value) in [
            ("all", self.all),
            ("enabled", self.enabled),
            ("remove", self.remove),
            ("protected", self.protected),
            ("repeat-missed", self.repeat_missed),
        ] {
            params = switch(params, name, value);
        }
        params = list_of(params, "vmid", self.vmids.as_ref());
        params = list_of(params, "exclude", self.exclude.as_ref());
        Ok(list_of(params, "delete", self.delete.as_ref()))
    }

    fn check(&self) -> Result<()> {
        if let Some(schedule) = &self.schedule {
            Calendar::parse(schedule).map_err(|e| e.with("argument", "schedule"))?;
        }
        let ways = [self.vmids.is_some(), self.pool.is_some(), self.all == Some(true)];
        if ways.iter().filter(|w| **w).count() > 1 {
            return Err(Error::argument("give one of `vmids`, `pool` and `all`"));
        }
        if self.vmids.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::argument("`vmids` is empty")
                .hint("`all` takes every guest; pve_backup_job_delete ends the job"));
        }
        if self.exclude.is_some() && (self.vmids.is_some() || self.pool.is_some()) {
            return Err(Error::argument("`exclude` goes with `all` only"));
        }
        Ok(())
    }
}

/// A job as it is stored.
async fn job(ctx: Ctx<'_>, id: &str) -> Result<Option<Value>> {
    let rows = ctx.get(&["cluster", "backup"]).await?;
    Ok(loose::rows(&rows).iter().find(|r| loose::str(r, "id") == Some(id)).cloned())
}

async fn ids(ctx: Ctx<'_>) -> Vec<String> {
    let rows = ctx.get(&["cluster", "backup"]).await;
    rows.map(|rows| loose::rows(&rows).iter().filter_map(|r| loose::text(r, "id")).collect())
        .unwrap_or_default()
}

/// `pve_backup_job_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    args.check()?;
    ctx.app.pve.forget();
    let before = match &args.id {
        Some(id) => job(ctx, id).await?,
        None => None,
    };
    let name = args.id.as_deref().unwrap_or("backup job");
    let what = format!("backup job {name:?}");
    let did = Did::of(before.is_some(), args.must_exist, args.must_not_exist, &what)?;
    let mut params = args.params()?;
    if params.is_empty() {
        return Err(Error::argument("nothing to change"));
    }
    let mut path = vec!["cluster", "backup"];
    match (did, &args.id) {
        (Did::Updated, Some(id)) => path.push(id),
        (Did::Created, _) => {
            for (word, missing) in [
                ("schedule", args.schedule.is_none()),
                ("storage", args.storage.is_none()),
                (
                    "vmids` (or `pool` or `all",
                    args.vmids.is_none() && args.pool.is_none() && args.all != Some(true),
                ),
            ] {
                if missing {
                    return Err(Error::argument(format!("a new job needs `{word}`")));
                }
            }
            if args.delete.is_some() {
                return Err(Error::argument("a new job has nothing to delete"));
            }
            params = params.with_some("id", args.id.as_deref());
        }
        (Did::Updated, None) => {}
    }
    let known = if args.id.is_none() { ids(ctx).await } else { Vec::new() };
    let done = ctx.submit(operation(did.method(), &path, params)?, &args.asked).await?;
    let after = async {
        ctx.app.pve.forget();
        let id = match args.id {
            Some(id) => Some(id),
            None => ids(ctx).await.into_iter().find(|id| !known.contains(id)),
        };
        let Some(id) = id else { return Value::Null };
        job(ctx, &id).await.ok().flatten().unwrap_or(Value::Null)
    };
    let heading = format!("{what} {}", did.as_str());
    let answer = told(done, before.into(), after, heading).await;
    Ok(did.tell(answer))
}

/// Arguments of `pve_backup_job_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Delete {
    id: String,
    #[serde(flatten)]
    asked: Asked,
}

/// A job that is there.
///
/// # Errors
/// `not_found`, naming those that are.
pub async fn existing(ctx: Ctx<'_>, id: &str) -> Result<Value> {
    ctx.app.pve.forget();
    match job(ctx, id).await? {
        Some(job) => Ok(job),
        None => Err(Error::new(Code::NotFound, format!("there is no backup job {id:?}"))
            .hint(format!("jobs: {}", ids(ctx).await.join(", ")))),
    }
}

/// `pve_backup_job_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let before = existing(ctx, &args.id).await?;
    let call = operation(Method::Delete, &["cluster", "backup", &args.id], Params::new())?;
    let done: Submitted = ctx.submit(call, &args.asked).await?;
    let after = async {
        ctx.app.pve.forget();
        match job(ctx, &args.id).await {
            Ok(left) => json!({"exists": left.is_some()}),
            Err(_) => Value::Null,
        }
    };
    Ok(told(done, before, after, format!("backup job {} deleted", args.id)).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retentions_of_both_forms() {
        let job = json!({"a": {"keep-last": "3", "keep-daily": 7}, "b": "keep-all=1"});
        assert_eq!(retention(&job, "a").as_deref(), Some("keep-last=3,keep-daily=7"));
        assert_eq!(retention(&job, "b").as_deref(), Some("keep-all=1"));
        assert_eq!(retention(&job, "c"), None);
    }
}
