//! What zones, vnets and subnets have in common when they are made, changed or deleted.

use serde_json::Value;

use crate::{
    Code, Error, Result,
    pve::{Params, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        across::{members, named, same, same_digest, unchanged},
        change::Asked,
        outcome::{Did, operation, told},
    },
};

const WAITS: &str = "waits until pve_sdn_apply; pve_sdn_status shows what is pending";

/// What a `_set` of any of the three goes through.
pub(super) struct Object<'o> {
    /// Segments of the list.
    pub(super) list: Vec<&'o str>,
    /// The member by which a row is known.
    pub(super) key: &'static str,
    /// The name.
    pub(super) id: String,
    /// In words, for answers.
    pub(super) what: String,
}

impl Object<'_> {
    pub(super) async fn rows(&self, ctx: Ctx<'_>) -> Result<std::sync::Arc<Value>> {
        ctx.fresh(&self.list, Params::new()).await
    }

    pub(super) fn row<'v>(&self, rows: &'v Value) -> Option<&'v Value> {
        // A subnet's id is `ZONE-ADDRESS-PREFIX`.
        let id = self.id.replace('/', "-");
        named(rows, self.key, &self.id).or_else(|| {
            loose::rows(rows).iter().filter(|_| self.key == "cidr").find(|row| {
                let own = loose::str(row, "subnet");
                own.and_then(|s| s.strip_suffix(id.as_str()))
                    .is_some_and(|zone| zone.ends_with('-'))
            })
        })
    }

    /// The path of the object itself.
    fn own<'s>(&'s self, id: &'s str) -> Vec<&'s str> {
        self.list.iter().copied().chain([id]).collect()
    }

    async fn now(&self, ctx: Ctx<'_>) -> Value {
        let rows = self.rows(ctx).await;
        rows.ok()
            .and_then(|rows| self.row(&rows).map(|r| members(r, &["digest"])))
            .unwrap_or(Value::Null)
    }
}

/// The arguments that the three have in common.
pub(super) struct Wish {
    pub(super) params: Params,
    pub(super) delete: Vec<String>,
    pub(super) digest: Option<String>,
    pub(super) must_exist: Option<bool>,
    pub(super) must_not_exist: Option<bool>,
    pub(super) asked: Asked,
}

/// Makes the object with `create` added, or updates it.
pub(super) async fn put(
    ctx: Ctx<'_>,
    object: Object<'_>,
    wish: Wish,
    create: Result<Params>,
) -> Result<Answer> {
    if let Some(odd) = wish.delete.iter().find(|d| wish.params.has(d)) {
        return Err(Error::argument(format!("option {odd} is both set and deleted")));
    }
    let rows = object.rows(ctx).await?;
    let now = object.row(&rows);
    let did = Did::of(now.is_some(), wish.must_exist, wish.must_not_exist, &object.what)?;
    let before = now.map_or(Value::Null, |n| members(n, &["digest"]));
    let operation = match now {
        None => {
            if !wish.delete.is_empty() {
                return Err(Error::argument(format!(
                    "{} is new and has nothing to delete",
                    object.what
                )));
            }
            let mut params = wish.params;
            for (name, value) in create?.iter() {
                params.set(name, value.clone());
            }
            operation(Method::Post, &object.list, params)?
        }
        Some(now) => {
            let idle = wish.params.iter().all(|(k, v)| same(now.get(k), &v.values().join(",")))
                && wish.delete.iter().all(|d| loose::some(now, d).is_none());
            if idle {
                return Ok(unchanged(before));
            }
            let digest = same_digest(
                wish.digest,
                loose::text(now, "digest"),
                &object.what,
                "pve_sdn_status",
            )?;
            let mut params = wish.params.with_some("digest", digest);
            if !wish.delete.is_empty() {
                params = params.with("delete", wish.delete.join(","));
            }
            // A subnet's own name is another than its network.
            let id = loose::text(now, "subnet").unwrap_or_else(|| object.id.clone());
            operation(Method::Put, &object.own(&id), params)?
        }
    };
    let done = ctx.submit(operation, &wish.asked).await?;
    let answer = told(done, before, object.now(ctx), object.what.clone()).await;
    Ok(answer.with("did", did.as_str()).with("note", WAITS))
}

pub(super) async fn remove(ctx: Ctx<'_>, object: Object<'_>, asked: &Asked) -> Result<Answer> {
    let rows = object.rows(ctx).await?;
    let now = object.row(&rows).ok_or_else(|| {
        let names: Vec<String> =
            loose::rows(&rows).iter().filter_map(|r| loose::text(r, object.key)).collect();
        Error::new(Code::NotFound, format!("there is no {}", object.what)).hint(
            if names.is_empty() {
                "there is none".to_owned()
            } else {
                format!("there are: {}", names.join(", "))
            },
        )
    })?;
    let id = loose::text(now, "subnet").unwrap_or_else(|| object.id.clone());
    let operation = operation(Method::Delete, &object.own(&id), Params::new())?;
    let before = members(now, &["digest"]);
    let done = ctx.submit(operation, asked).await?;
    let answer = told(done, before, async { Value::Null }, object.what.clone()).await;
    Ok(answer.with("note", WAITS))
}

/// A name of a zone or vnet: it becomes part of device names.
pub(super) fn checked<'n>(argument: &str, name: &'n str) -> Result<&'n str> {
    let form = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && (2..=8).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric());
    if form {
        return Ok(name);
    }
    Err(Error::argument(format!("argument `{argument}` cannot be {name:?}"))
        .hint("2 to 8 letters and digits, a letter first")
        .with("argument", argument))
}
