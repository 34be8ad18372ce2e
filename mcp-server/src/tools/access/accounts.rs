//! Users, groups, roles, realms and access control entries, as they are.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Code, Error, Result,
    pve::{Params, loose},
    render::{Answer, Page, Table, units},
    tools::{Ctx, args::None as NoArgs},
};

/// A time of expiry; 0 is never.
pub fn expiry(value: &Value) -> Value {
    match loose::int(value, "expire") {
        None | Some(0) => Value::Null,
        Some(at) => units::time(at).into(),
    }
}

fn is_expired(value: &Value) -> bool {
    loose::int(value, "expire").is_some_and(|at| at > 0 && at < units::now())
}

/// Arguments of `pve_list_users`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Users {
    realm: Option<String>,
    group: Option<String>,
    enabled: Option<bool>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
    #[schemars(range(min = 0))]
    offset: Option<usize>,
}

/// Groups as text or list, whichever the call gives.
pub fn groups_of(user: &Value) -> Vec<String> {
    match user.get("groups") {
        Some(Value::Array(list)) => {
            list.iter().filter_map(|g| g.as_str().map(str::to_owned)).collect()
        }
        Some(Value::String(text)) => {
            crate::pve::params::split_list(text).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a user may log in; what does not say is on.
fn is_enabled(user: &Value) -> bool {
    user.get("enable").is_none() || loose::flag(user, "enable")
}

fn realm_of(userid: &str) -> &str {
    userid.rsplit_once('@').map_or("", |(_, realm)| realm)
}

/// `pve_list_users`
pub async fn users(ctx: Ctx<'_>, args: Users) -> Result<Answer> {
    let all = ctx.get_with(&["access", "users"], Params::new().with("full", 1)).await?;
    let mut rows: Vec<&Value> = loose::rows(&all)
        .iter()
        .filter(|u| {
            let id = loose::str(u, "userid").unwrap_or_default();
            args.realm.as_deref().is_none_or(|r| realm_of(id) == r)
                && args.group.as_ref().is_none_or(|g| groups_of(u).contains(g))
                && args.enabled.is_none_or(|e| is_enabled(u) == e)
        })
        .collect();
    rows.sort_by_key(|u| loose::text(u, "userid"));
    let columns =
        ["userid", "enabled", "expires", "expired", "groups", "tokens", "name", "email", "comment"];
    let table = Table::new(columns).fill(rows.iter(), Page::new(args.limit, args.offset), |u| {
        let name = [loose::text(u, "firstname"), loose::text(u, "lastname")];
        let name = name.into_iter().flatten().collect::<Vec<_>>().join(" ");
        vec![
            loose::text(u, "userid").into(),
            is_enabled(u).into(),
            expiry(u),
            is_expired(u).into(),
            groups_of(u).join(" ").into(),
            loose::rows(u.get("tokens").unwrap_or(&Value::Null)).len().into(),
            Some(name).filter(|n| !n.is_empty()).into(),
            loose::text(u, "email").into(),
            loose::text(u, "comment").into(),
        ]
    });
    Ok(table.into_answer("users").untrusted(&["rows"]))
}

/// Arguments of `pve_list_tokens`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Tokens {
    userid: Option<String>,
}

/// `pve_list_tokens`
pub async fn tokens(ctx: Ctx<'_>, args: Tokens) -> Result<Answer> {
    let all = ctx.get_with(&["access", "users"], Params::new().with("full", 1)).await?;
    if let Some(userid) = &args.userid
        && !loose::rows(&all).iter().any(|u| loose::str(u, "userid") == Some(userid))
    {
        return Err(no_user(userid));
    }
    let mut rows: Vec<(String, &Value)> = Vec::new();
    for user in loose::rows(&all) {
        let id = loose::text(user, "userid").unwrap_or_default();
        if args.userid.as_ref().is_none_or(|wanted| *wanted == id) {
            let tokens = loose::rows(user.get("tokens").unwrap_or(&Value::Null));
            rows.extend(tokens.iter().map(|t| (id.clone(), t)));
        }
    }
    rows.sort_by_key(|(user, t)| (user.clone(), loose::text(t, "tokenid")));
    let table = Table::new(["token", "privsep", "expires", "expired", "comment"]).fill(
        rows.iter(),
        Page::new(None, None),
        |(user, t)| {
            let name = loose::text(t, "tokenid").unwrap_or_default();
            vec![
                format!("{user}!{name}").into(),
                (t.get("privsep").is_none() || loose::flag(t, "privsep")).into(),
                expiry(t),
                is_expired(t).into(),
                loose::text(t, "comment").into(),
            ]
        },
    );
    Ok(table
        .into_answer("tokens")
        .with("note", "a token with privsep has only what is given to the token itself, and never more than its user")
        .untrusted(&["rows"]))
}

/// A user that the list does not show.
pub fn no_user(userid: &str) -> Error {
    Error::new(Code::NotFound, format!("there is no user {userid:?}"))
        .hint("a user is named with its realm, as anna@pve; pve_list_users lists those that this token can see")
        .with("userid", userid)
}

/// `pve_list_groups`
pub async fn groups(ctx: Ctx<'_>, _: NoArgs) -> Result<Answer> {
    let all = ctx.get(&["access", "groups"]).await?;
    let mut rows: Vec<&Value> = loose::rows(&all).iter().collect();
    rows.sort_by_key(|g| loose::text(g, "groupid"));
    let table =
        Table::new(["group", "users", "comment"]).fill(rows.iter(), Page::new(None, None), |g| {
            let users = loose::text(g, "users").unwrap_or_default();
            let users: Vec<&str> = crate::pve::params::split_list(&users).collect();
            vec![
                loose::text(g, "groupid").into(),
                users.join(" ").into(),
                loose::text(g, "comment").into(),
            ]
        });
    Ok(table.into_answer("groups").untrusted(&["rows"]))
}

/// Arguments of `pve_list_roles`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Roles {
    role: Option<String>,
    privilege: Option<String>,
}

/// The privileges of a row of roles.
pub fn privileges_of(role: &Value) -> Vec<String> {
    let text = loose::text(role, "privs").unwrap_or_default();
    let mut all: Vec<String> = crate::pve::params::split_list(&text).map(str::to_owned).collect();
    all.sort();
    all
}

/// `pve_list_roles`
pub async fn roles(ctx: Ctx<'_>, args: Roles) -> Result<Answer> {
    let all = ctx.get(&["access", "roles"]).await?;
    if let Some(name) = &args.role {
        let role = find_role(&all, name)?;
        let privileges = privileges_of(role);
        let heading = format!("role {name}: {} privileges", privileges.len());
        return Ok(Answer::new(json!({
            "role": name, "built_in": loose::flag(role, "special"), "privileges": privileges,
        }))
        .heading(heading));
    }
    let mut rows: Vec<&Value> = loose::rows(&all)
        .iter()
        .filter(|r| args.privilege.as_ref().is_none_or(|p| privileges_of(r).contains(p)))
        .collect();
    rows.sort_by_key(|r| (!loose::flag(r, "special"), loose::text(r, "roleid")));
    let table = Table::new(["role", "built_in", "privileges"]).fill(
        rows.iter(),
        Page::new(None, None),
        |r| {
            vec![
                loose::text(r, "roleid").into(),
                loose::flag(r, "special").into(),
                privileges_of(r).len().into(),
            ]
        },
    );
    Ok(table.into_answer("roles; `role` shows the privileges of one"))
}

/// A role by its name.
///
/// # Errors
/// `not_found` with the nearest name.
pub fn find_role<'v>(all: &'v Value, name: &str) -> Result<&'v Value> {
    crate::tools::across::named(all, "roleid", name).ok_or_else(|| {
        let names = loose::rows(all).iter().filter_map(|r| loose::str(r, "roleid"));
        let error = Error::new(Code::NotFound, format!("there is no role {name:?}"));
        match crate::tools::validate::nearest(name, names) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error.hint("pve_list_roles lists them"),
        }
    })
}

/// Arguments of `pve_list_acl`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Acl {
    /// With the entries above it.
    path: Option<String>,
    who: Option<String>,
    role: Option<String>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
    #[schemars(range(min = 0))]
    offset: Option<usize>,
}

/// Whether an entry on `above` reaches `path`.
pub fn reaches(above: &str, propagate: bool, path: &str) -> bool {
    if above == path {
        return true;
    }
    let inside = above == "/" || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
    inside && propagate
}

/// Whether an entry is handed on to what lies below; what does not say so is.
pub fn propagates(entry: &Value) -> bool {
    entry.get("propagate").is_none() || loose::flag(entry, "propagate")
}

/// `pve_list_acl`
pub async fn acl(ctx: Ctx<'_>, args: Acl) -> Result<Answer> {
    let all = ctx.get(&["access", "acl"]).await?;
    let who = args.who.as_deref().map(|w| w.trim_start_matches('@'));
    let mut rows: Vec<&Value> = loose::rows(&all)
        .iter()
        .filter(|e| {
            let path = loose::str(e, "path").unwrap_or_default();
            args.path.as_deref().is_none_or(|wanted| reaches(path, propagates(e), wanted))
                && who.is_none_or(|w| loose::str(e, "ugid") == Some(w))
                && args.role.as_deref().is_none_or(|r| loose::str(e, "roleid") == Some(r))
        })
        .collect();
    rows.sort_by_key(|e| (loose::text(e, "path"), loose::text(e, "type"), loose::text(e, "ugid")));
    let table = Table::new(["path", "type", "who", "role", "propagate"]).fill(
        rows.iter(),
        Page::new(args.limit, args.offset),
        |e| {
            vec![
                loose::text(e, "path").into(),
                loose::text(e, "type").into(),
                loose::text(e, "ugid").into(),
                loose::text(e, "roleid").into(),
                propagates(e).into(),
            ]
        },
    );
    let answer = table.into_answer("entries");
    if loose::rows(&all).is_empty() {
        return Ok(answer.with(
            "note",
            "this token sees no entry: it may lack Sys.Audit or Permissions.Modify on /access",
        ));
    }
    Ok(answer)
}

/// `pve_list_realms`
pub async fn realms(ctx: Ctx<'_>, _: NoArgs) -> Result<Answer> {
    let all = ctx.get(&["access", "domains"]).await?;
    let mut rows: Vec<&Value> = loose::rows(&all).iter().collect();
    rows.sort_by_key(|r| loose::text(r, "realm"));
    let table = Table::new(["realm", "type", "default", "tfa", "comment"]).fill(
        rows.iter(),
        Page::new(None, None),
        |r| {
            vec![
                loose::text(r, "realm").into(),
                loose::text(r, "type").into(),
                loose::flag(r, "default").into(),
                loose::text(r, "tfa").into(),
                loose::text(r, "comment").into(),
            ]
        },
    );
    Ok(table.into_answer("realms").untrusted(&["rows"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_reach_down_the_tree() {
        for (above, propagate, path, want) in [
            ("/", true, "/vms/100", true),
            ("/", false, "/vms/100", false),
            ("/", false, "/", true),
            ("/vms", true, "/vms/100", true),
            ("/vms/10", true, "/vms/100", false),
            ("/vms/100", false, "/vms/100", true),
            ("/vms/100", true, "/vms", false),
        ] {
            assert_eq!(reaches(above, propagate, path), want, "{above} {path}");
        }
    }
}
