//! High availability of a guest, and its replication to another node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::disk::word;
use crate::{
    Code, Error, Result,
    insight::{
        calendar::Calendar,
        estate::{Guest, GuestKind},
    },
    pve::{ApiPath, NodeName, Params, Vmid, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::Asked,
        core::title,
        outcome::{Did, list, operation, switch, told},
    },
};

/// What the manager is to keep a guest in.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Started,
    Stopped,
    Disabled,
    Ignored,
}

/// Arguments of `pve_ha_resource_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
    vmid: Vmid,
    state: Option<State>,
    #[schemars(range(min = 0))]
    max_restart: Option<u32>,
    #[schemars(range(min = 0))]
    max_relocate: Option<u32>,
    failback: Option<bool>,
    group: Option<String>,
    comment: Option<String>,
    delete: Option<Vec<String>>,
    digest: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// Arguments of `pve_ha_resource_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Delete {
    vmid: Vmid,
    /// Also out of HA rules; on unless said.
    purge: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// `vm:100` or `ct:200`.
fn sid(guest: &Guest) -> String {
    let kind = if guest.kind == GuestKind::Qemu { "vm" } else { "ct" };
    format!("{kind}:{}", guest.vmid)
}

/// A row of a list read afresh, and with it the digest where the single one has it.
async fn row(ctx: Ctx<'_>, list: &[&str], key: &str, id: &str) -> Result<Option<Value>> {
    let rows = ctx.app.pve.get_fresh(&ApiPath::of(list)?, &Params::new()).await?;
    let Some(found) = loose::rows(&rows).iter().find(|r| loose::str(r, key) == Some(id)) else {
        return Ok(None);
    };
    let one: Vec<&str> = list.iter().copied().chain([id]).collect();
    let single = ctx.get(&one).await.ok();
    Ok(Some(single.map_or_else(|| found.clone(), |one| (*one).clone())))
}

/// The digest to send with an update.
fn digest(given: Option<String>, now: &Value) -> Result<Option<String>> {
    match (given, loose::text(now, "digest")) {
        (Some(given), Some(current)) if given != current => {
            Err(Error::new(Code::DigestChanged, "it has changed since it was read")
                .with("digest", current))
        }
        (given, current) => Ok(given.or(current)),
    }
}

/// What is there now; `exists` is false where it is gone.
async fn now(ctx: Ctx<'_>, list: &[&str], key: &str, id: &str) -> Value {
    ctx.app.pve.forget();
    match row(ctx, list, key, id).await {
        Ok(Some(row)) => row,
        Ok(None) => json!({"exists": false}),
        Err(_) => Value::Null,
    }
}

const RESOURCES: [&str; 3] = ["cluster", "ha", "resources"];

/// `pve_ha_resource_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    let guest = ctx.guest_now(args.vmid).await?;
    let sid = sid(&guest);
    let before = row(ctx, &RESOURCES, "sid", &sid).await?;
    let what = format!("HA resource {sid}");
    let did = Did::of(before.is_some(), args.must_exist, args.must_not_exist, &what)?;
    let mut params = Params::new()
        .with_some("state", args.state.and_then(word))
        .with_some("max_restart", args.max_restart)
        .with_some("max_relocate", args.max_relocate)
        .with_some("group", args.group.as_deref())
        .with_some("comment", args.comment.as_deref());
    params = switch(params, "failback", args.failback);
    let mut path = RESOURCES.to_vec();
    match &before {
        None if args.delete.is_some() || args.digest.is_some() => {
            return Err(Error::argument(format!("{what} is not there: nothing to delete from it")));
        }
        None => params = params.with("sid", &sid),
        Some(now) => {
            params = list(params, "delete", args.delete.as_ref());
            if params.is_empty() {
                return Err(Error::argument("nothing to change"));
            }
            params = params.with_some("digest", digest(args.digest, now)?);
            path.push(&sid);
        }
    }
    let done = ctx.submit(operation(did.method(), &path, params)?, &args.asked).await?;
    let after = now(ctx, &RESOURCES, "sid", &sid);
    let answer = told(done, before.into(), after, format!("HA of {}", title(&guest))).await;
    Ok(did.tell(answer))
}

/// `pve_ha_resource_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let guest = ctx.guest_now(args.vmid).await?;
    let sid = sid(&guest);
    let Some(before) = row(ctx, &RESOURCES, "sid", &sid).await? else {
        return Err(Error::new(
            Code::NotFound,
            format!("guest {} is not managed by HA", guest.vmid),
        )
        .hint("pve_ha_status lists what is"));
    };
    let params = switch(Params::new(), "purge", args.purge);
    let path = [&RESOURCES[..], &[sid.as_str()]].concat();
    let done = ctx.submit(operation(Method::Delete, &path, params)?, &args.asked).await?;
    let after = now(ctx, &RESOURCES, "sid", &sid);
    Ok(told(done, before, after, format!("HA of {}", title(&guest))).await)
}

/// Arguments of `pve_replication_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SetReplication {
    vmid: Vmid,
    target: Option<NodeName>,
    /// As 100-0; the job to `target` unless said.
    id: Option<String>,
    /// As */15 or 22:00.
    schedule: Option<String>,
    #[schemars(range(min = 1))]
    rate: Option<f64>,
    disable: Option<bool>,
    comment: Option<String>,
    delete: Option<Vec<String>>,
    digest: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// Arguments of `pve_replication_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct DeleteReplication {
    id: String,
    /// Keeps the replica.
    keep: Option<bool>,
    /// Also where the target cannot be reached.
    force: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// The guest's number in `100-0`.
fn guest_of(id: &str) -> Result<Vmid> {
    let odd = || {
        Error::argument(format!("{id:?} is no replication job"))
            .hint("as 100-0: the guest's VMID and a number")
            .with("argument", "id")
    };
    let (vmid, number) = id.split_once('-').ok_or_else(odd)?;
    let digits =
        !number.is_empty() && number.len() <= 9 && number.bytes().all(|b| b.is_ascii_digit());
    if digits { Vmid::parse(vmid).map_err(|_| odd()) } else { Err(odd()) }
}

const REPLICATION: [&str; 2] = ["cluster", "replication"];

/// The job meant, and whether it is there: by its id, by its target, or a new number.
async fn job_id(ctx: Ctx<'_>, args: &SetReplication) -> Result<String> {
    if let Some(id) = &args.id {
        if guest_of(id)? != args.vmid {
            return Err(Error::argument(format!("job {id} is not guest {}'s", args.vmid))
                .with("argument", "id"));
        }
        return Ok(id.clone());
    }
    let rows = ctx.app.pve.get_fresh(&ApiPath::of(&REPLICATION)?, &Params::new()).await?;
    let own: Vec<&Value> = loose::rows(&rows)
        .iter()
        .filter(|r| loose::uint(r, "guest") == Some(u64::from(args.vmid.get())))
        .collect();
    let Some(target) = &args.target else {
        return match own.as_slice() {
            [only] => Ok(loose::text(only, "id").unwrap_or_default()),
            several => {
                let ids: Vec<String> =
                    several.iter().filter_map(|r| loose::text(r, "id")).collect();
                Err(Error::argument("give `target` or `id`")
                    .hint(format!("jobs of guest {}: {}", args.vmid, ids.join(", ")))
                    .with("argument", "target"))
            }
        };
    };
    if let Some(job) = own.iter().find(|r| loose::str(r, "target") == Some(target.as_str())) {
        return Ok(loose::text(job, "id").unwrap_or_default());
    }
    let taken = |n: &u32| {
        let id = format!("{}-{n}", args.vmid);
        own.iter().any(|r| loose::str(r, "id") == Some(id.as_str()))
    };
    let free = (0..1000).find(|n| !taken(n)).unwrap_or(0);
    Ok(format!("{}-{free}", args.vmid))
}

/// `pve_replication_set`
pub async fn set_replication(ctx: Ctx<'_>, args: SetReplication) -> Result<Answer> {
    if let Some(schedule) = &args.schedule {
        Calendar::parse(schedule).map_err(|e| e.with("argument", "schedule"))?;
    }
    let guest = ctx.guest_now(args.vmid).await?;
    let id = job_id(ctx, &args).await?;
    let before = row(ctx, &REPLICATION, "id", &id).await?;
    let what = format!("replication job {id}");
    let did = Did::of(before.is_some(), args.must_exist, args.must_not_exist, &what)?;
    let mut params = Params::new()
        .with_some("schedule", args.schedule.as_deref())
        .with_some("rate", args.rate)
        .with_some("comment", args.comment.as_deref());
    params = switch(params, "disable", args.disable);
    let mut path = REPLICATION.to_vec();
    match &before {
        None => {
            let Some(target) = &args.target else {
                return Err(Error::argument("a new job needs `target`").with("argument", "target"));
            };
            if args.delete.is_some() || args.digest.is_some() {
                return Err(Error::argument(format!(
                    "{what} is not there: nothing to delete from it"
                )));
            }
            let target = ctx.node(target.as_str()).await?;
            if *guest.node == *target {
                return Err(Error::argument(format!("guest {} is on {target} itself", guest.vmid))
                    .with("argument", "target"));
            }
            params = params.with("id", &id).with("type", "local").with("target", target);
        }
        Some(now) => {
            if let Some(target) = &args.target
                && loose::str(now, "target") != Some(target.as_str())
            {
                return Err(Error::new(
                    Code::Conflict,
                    format!("{what} goes to {}", loose::text(now, "target").unwrap_or_default()),
                )
                .hint("the target of a job cannot be changed: make another and delete this one"));
            }
            params = list(params, "delete", args.delete.as_ref());
            if params.is_empty() {
                return Err(Error::argument("nothing to change"));
            }
            params = params.with_some("digest", digest(args.digest, now)?);
            path.push(&id);
        }
    }
    let done = ctx.submit(operation(did.method(), &path, params)?, &args.asked).await?;
    let after = now(ctx, &REPLICATION, "id", &id);
    let heading = format!("replication of {}", title(&guest));
    let answer = told(done, before.into(), after, heading).await;
    Ok(did.tell(answer.with("id", id)))
}

/// `pve_replication_delete`
pub async fn delete_replication(ctx: Ctx<'_>, args: DeleteReplication) -> Result<Answer> {
    ctx.may_see(guest_of(&args.id)?)?;
    let Some(before) = row(ctx, &REPLICATION, "id", &args.id).await? else {
        return Err(Error::new(
            Code::NotFound,
            format!("there is no replication job {:?}", args.id),
        )
        .hint("pve_replication_status lists them"));
    };
    let params = switch(Params::new(), "keep", args.keep);
    let params = switch(params, "force", args.force);
    let path = [&REPLICATION[..], &[args.id.as_str()]].concat();
    let done = ctx.submit(operation(Method::Delete, &path, params)?, &args.asked).await?;
    // The job is marked, and goes when the replica is removed.
    let after = now(ctx, &REPLICATION, "id", &args.id);
    Ok(told(done, before, after, format!("replication job {}", args.id)).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_replication_jobs() {
        for (id, vmid) in [
            ("100-0", Some(100)),
            ("999999999-12", Some(999_999_999)),
            ("100", None),
            ("100-", None),
            ("-1", None),
            ("99-0", None),
            ("0100-0", None),
            ("100-x", None),
            ("100-0/..", None),
            ("100-0\n", None),
        ] {
            assert_eq!(guest_of(id).ok().map(Vmid::get), vmid, "{id:?}");
        }
    }
}
