//! Pools as a way to rights.

use serde_json::Value;

use super::{Call, Param};
use crate::pve::{Params, loose};

/// Every entry of the access control list that can be seen.
pub fn acl<'a>(call: &Call<'a>) -> Option<&'a [Value]> {
    let answer = call.facts.ask(&["access", "acl"], Params::new()).ok()?;
    // A token without the right to look gets an empty list, and nobody without
    // an entry could have asked: nothing seen is nothing known.
    Some(loose::rows(answer)).filter(|rows| !rows.is_empty())
}

/// An ACL path as the server folds it: one slash each, none at the end.
pub fn folded(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    format!("/{}", parts.join("/"))
}

/// Whether an ACL path covers a pool: the pool, one that it is nested in, or all pools.
pub fn covers_pool(acl_path: &str, pool: &str) -> bool {
    let (above, pool) = (folded(acl_path), folded(&format!("/pool/{pool}")));
    above != "/" && (pool == above || pool.starts_with(&format!("{above}/")))
}

/// Whether an ACL entry stands on a pool or a parent; unknown counts.
fn entry_on(call: &Call<'_>, pool: &str) -> bool {
    acl(call).is_none_or(|rows| {
        rows.iter().filter_map(|r| loose::str(r, "path")).any(|path| covers_pool(path, pool))
    })
}

/// The pool that the guest would join gives rights to somebody.
pub fn pool_grants(call: &Call<'_>, param: &Param<'_>) -> bool {
    param.text().is_none_or(|pool| entry_on(call, pool))
}

/// The pool whose members change gives rights to somebody.
pub fn pool_has_acl(call: &Call<'_>) -> bool {
    let pool = call.variable("poolid").or_else(|| call.params.text("poolid"));
    pool.is_none_or(|pool| entry_on(call, pool))
}
