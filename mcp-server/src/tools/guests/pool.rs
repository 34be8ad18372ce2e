//! Resource pools.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Code, Error, Result,
    pve::{ApiPath, Params, Vmid, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::Asked,
        outcome::{list, operation, switch, told},
    },
};

/// Arguments of `pve_pool_create`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Create {
    pool: String,
    comment: Option<String>,
    #[serde(flatten)]
    asked: Asked,
}

/// Arguments of `pve_pool_update`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Update {
    pool: String,
    comment: Option<String>,
    add_vmids: Option<Vec<Vmid>>,
    add_storages: Option<Vec<String>>,
    remove_vmids: Option<Vec<Vmid>>,
    remove_storages: Option<Vec<String>>,
    /// Out of the pool that they are in.
    allow_move: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// Arguments of `pve_pool_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Delete {
    pool: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve-poolid`: up to three names parted by slashes.
fn checked(pool: &str) -> Result<&str> {
    let word = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    let parts: Vec<&str> = pool.split('/').collect();
    if parts.len() <= 3 && parts.iter().all(|p| word(p)) {
        return Ok(pool);
    }
    Err(Error::argument(format!("{pool:?} cannot be a pool's name"))
        .hint("letters, digits, `-`, `_`, `.`; nested as parent/child, three deep at most")
        .with("argument", "pool"))
}

/// A pool with its members; nothing where it is not there.
async fn find(ctx: Ctx<'_>, pool: &str) -> Result<Option<Value>> {
    let path = ApiPath::of(&["pools"])?;
    let all = ctx.app.pve.get_fresh(&path, &Params::new()).await?;
    if !loose::rows(&all).iter().any(|p| loose::str(p, "poolid") == Some(pool)) {
        return Ok(None);
    }
    // The path form takes no nested pool (`a/b`), the parameter does.
    let rows = ctx.app.pve.get_fresh(&path, &Params::new().with("poolid", pool)).await?;
    let found = rows.get(0).cloned().unwrap_or(Value::Null);
    let members = found.get("members").cloned().unwrap_or(Value::Null);
    let mut vmids: Vec<u64> =
        ctx.visible(&members).filter_map(|m| loose::uint(m, "vmid")).collect();
    vmids.sort_unstable();
    let mut storages: Vec<String> = loose::rows(&members)
        .iter()
        .filter(|m| loose::str(m, "type") == Some("storage"))
        .filter_map(|m| loose::text(m, "storage"))
        .collect();
    storages.sort();
    storages.dedup();
    Ok(Some(json!({
        "pool": pool, "comment": loose::text(&found, "comment"), "vmids": vmids, "storages": storages,
    })))
}

async fn existing(ctx: Ctx<'_>, pool: &str) -> Result<Value> {
    find(ctx, checked(pool)?).await?.ok_or_else(|| {
        Error::new(Code::NotFound, format!("there is no pool {pool:?}"))
            .hint("pve_list_pools lists them")
    })
}

/// The pool as it is now; `exists` is false where it is gone.
async fn now(ctx: Ctx<'_>, pool: &str) -> Value {
    ctx.app.pve.forget();
    match find(ctx, pool).await {
        Ok(Some(pool)) => pool,
        Ok(None) => json!({"exists": false}),
        Err(_) => Value::Null,
    }
}

/// `pve_pool_create`
pub async fn create(ctx: Ctx<'_>, args: Create) -> Result<Answer> {
    let pool = checked(&args.pool)?;
    if find(ctx, pool).await?.is_some() {
        return Err(Error::new(Code::Conflict, format!("pool {pool:?} exists already")));
    }
    let params = Params::new().with("poolid", pool).with_some("comment", args.comment.as_deref());
    let done = ctx.submit(operation(Method::Post, &["pools"], params)?, &args.asked).await?;
    Ok(told(done, Value::Null, now(ctx, pool), format!("pool {pool} created")).await)
}

/// `pve_pool_update`
pub async fn update(ctx: Ctx<'_>, args: Update) -> Result<Answer> {
    let before = existing(ctx, &args.pool).await?;
    let adds = args.add_vmids.is_some() || args.add_storages.is_some();
    let removes = args.remove_vmids.is_some() || args.remove_storages.is_some();
    if adds && removes {
        return Err(Error::argument("adding and removing members are two calls"));
    }
    if !adds && !removes && args.comment.is_none() {
        return Err(Error::argument(
            "nothing to change: give `comment`, or members to add or to remove",
        ));
    }
    if args.allow_move.is_some() && args.add_vmids.is_none() {
        return Err(Error::argument("`allow_move` goes with `add_vmids`"));
    }
    let mut params =
        Params::new().with("poolid", &args.pool).with_some("comment", args.comment.as_deref());
    params = list(params, "vms", args.add_vmids.as_ref().or(args.remove_vmids.as_ref()));
    params = list(params, "storage", args.add_storages.as_ref().or(args.remove_storages.as_ref()));
    params = switch(params, "delete", removes.then_some(true));
    params = switch(params, "allow-move", args.allow_move);
    let done = ctx.submit(operation(Method::Put, &["pools"], params)?, &args.asked).await?;
    let heading = format!("pool {} updated", args.pool);
    Ok(told(done, before, now(ctx, &args.pool), heading).await)
}

/// `pve_pool_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let before = existing(ctx, &args.pool).await?;
    let count = |key: &str| before.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    if count("vmids") + count("storages") > 0 {
        return Err(Error::new(Code::Conflict, format!("pool {:?} has members", args.pool))
            .hint("pve_pool_update takes them out first")
            .with("before", before));
    }
    let params = Params::new().with("poolid", &args.pool);
    let done = ctx.submit(operation(Method::Delete, &["pools"], params)?, &args.asked).await?;
    let heading = format!("pool {} deleted", args.pool);
    Ok(told(done, before, now(ctx, &args.pool), heading).await)
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn names_of_pools() {
        for good in ["produktion", "a/b", "a/b/c", "x-1_2.3"] {
            assert!(checked(good).is_ok(), "{good}");
        }
        for bad in
            ["", "/", "a/", "/a", "..", "a/..", "a//b", "a/b/c/d", "a b", "a\n", "a%2fb", "ä"]
        {
            assert!(checked(bad).is_err(), "{bad:?}");
        }
    }
}
