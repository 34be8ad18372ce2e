//! Changes of users, groups, roles and access control entries. Whether one
//! could lock this server out is the gate's question, whatever the tool.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::accounts::{expiry, find_role, groups_of, no_user, privileges_of, propagates};
use crate::{
    Code, Error, Result,
    pve::{Params, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        across::{members, named, same, unchanged},
        change::Asked,
        outcome::{Did, operation, switch, told},
    },
};

/// Seconds since 1970 of an expiry; `never` is 0.
pub fn expires(text: &str) -> Result<i64> {
    let bad = || {
        Error::argument(format!("argument `expires` is no time: {text:?}"))
            .hint("as 2027-01-31, 2027-01-31T12:00:00+01:00, or never")
            .with("argument", "expires")
    };
    if matches!(text, "never" | "0") {
        return Ok(0);
    }
    if let Ok(seconds) = text.parse::<i64>() {
        return if seconds > 0 { Ok(seconds) } else { Err(bad()) };
    }
    if let Ok(date) = text.parse::<jiff::civil::Date>()
        && text.len() == "2027-01-31".len()
    {
        let day = jiff::tz::TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).map_err(|_| bad())?;
        return Ok(day.as_second());
    }
    text.parse::<jiff::Timestamp>().map(|t| t.as_second()).map_err(|_| bad())
}

/// A user id, `name@realm`.
pub fn checked_user(userid: &str) -> Result<&str> {
    let parts = userid.rsplit_once('@');
    let form = parts.is_some_and(|(name, realm)| {
        !name.is_empty()
            && !realm.is_empty()
            && !name.contains(|c: char| c.is_whitespace() || matches!(c, ':' | '/' | '!'))
            && realm.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
    });
    if form && userid.len() <= 64 {
        return Ok(userid);
    }
    Err(Error::argument(format!("argument `userid` cannot be {userid:?}"))
        .hint("a user is named with its realm, as anna@pve")
        .with("argument", "userid"))
}

/// Names of groups and roles: `[A-Za-z0-9.\-_]+`.
fn checked_name<'n>(argument: &str, name: &'n str) -> Result<&'n str> {
    let form = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    if form {
        return Ok(name);
    }
    Err(Error::argument(format!("argument `{argument}` cannot be {name:?}"))
        .hint("letters, digits, `.`, `-` and `_`")
        .with("argument", argument))
}

/// Arguments of `pve_user_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct UserSet {
    userid: String,
    enable: Option<bool>,
    /// As 2027-01-31, or never.
    expires: Option<String>,
    groups: Option<Vec<String>>,
    append: Option<bool>,
    firstname: Option<String>,
    lastname: Option<String>,
    email: Option<String>,
    comment: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

fn shown_user(user: &Value) -> Value {
    let mut value = members(user, &["keys", "tokens", "digest", "expire", "userid", "realm-type"]);
    if let Value::Object(map) = &mut value {
        map.insert("groups".into(), json!(groups_of(user)));
        map.insert("expires".into(), expiry(user));
    }
    value
}

async fn user_now(ctx: Ctx<'_>, userid: &str) -> Result<Option<Value>> {
    let params = Params::new().with("full", 1);
    let all = ctx.fresh(&["access", "users"], params).await?;
    Ok(named(&all, "userid", userid).cloned())
}

/// `pve_user_set`
pub async fn user_set(ctx: Ctx<'_>, args: UserSet) -> Result<Answer> {
    let userid = checked_user(&args.userid)?;
    let now = user_now(ctx, userid).await?;
    let what = format!("user {userid}");
    let did = Did::of(now.is_some(), args.must_exist, args.must_not_exist, &what)?;
    if args.append.is_some() && args.groups.is_none() {
        return Err(Error::argument("`append` goes with `groups`").with("argument", "append"));
    }
    if let Some(groups) = &args.groups {
        let known = ctx.fresh(&["access", "groups"], Params::new()).await?;
        if let Some(odd) = groups.iter().find(|g| named(&known, "groupid", g).is_none()) {
            return Err(Error::new(Code::NotFound, format!("there is no group {odd:?}"))
                .hint("pve_list_groups lists them; pve_group_set makes one"));
        }
    }
    let expire = args.expires.as_deref().map(expires).transpose()?;
    let params = Params::new()
        .with_some("expire", expire)
        .with_some("groups", args.groups.as_ref().map(|g| g.join(",")))
        .with_some("firstname", args.firstname.as_deref())
        .with_some("lastname", args.lastname.as_deref())
        .with_some("email", args.email.as_deref())
        .with_some("comment", args.comment.as_deref());
    let params = switch(params, "enable", args.enable);
    let before = now.as_ref().map_or(Value::Null, shown_user);
    let operation = match &now {
        None => {
            let realm = userid.rsplit_once('@').map_or("", |(_, realm)| realm);
            let realms = ctx.fresh(&["access", "domains"], Params::new()).await?;
            if named(&realms, "realm", realm).is_none() {
                return Err(Error::new(Code::NotFound, format!("there is no realm {realm:?}"))
                    .hint("pve_list_realms lists them"));
            }
            operation(Method::Post, &["access", "users"], params.with("userid", userid))?
        }
        Some(now) => {
            if params.is_empty() {
                return Err(Error::argument("nothing to change"));
            }
            let groups = groups_of(now);
            let idle = params.iter().all(|(key, value)| match key {
                "groups" => {
                    let wanted: Vec<String> = args.groups.clone().unwrap_or_default();
                    let within = wanted.iter().all(|g| groups.contains(g));
                    within && (args.append == Some(true) || wanted.len() == groups.len())
                }
                "enable" => {
                    let on = now.get("enable").is_none() || loose::flag(now, "enable");
                    value.values().join("") == u8::from(on).to_string()
                }
                "expire" => loose::int(now, "expire").unwrap_or(0) == expire.unwrap_or(0),
                _ => same(now.get(key), &value.values().join(",")),
            });
            if idle {
                return Ok(unchanged(before));
            }
            let params = switch(params, "append", args.append);
            operation(Method::Put, &["access", "users", userid], params)?
        }
    };
    let made = now.is_none();
    let done = ctx.submit(operation, &args.asked).await?;
    let after = async {
        user_now(ctx, userid).await.ok().flatten().map_or(Value::Null, |u| shown_user(&u))
    };
    let answer = told(done, before, after, what).await.with("did", did.as_str());
    Ok(if made {
        answer.with("note", "its password is set by a person, this server takes none. It may do nothing until pve_acl_set or a group gives it a role")
    } else {
        answer
    })
}

/// Arguments of `pve_user_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct UserDelete {
    userid: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_user_delete`
pub async fn user_delete(ctx: Ctx<'_>, args: UserDelete) -> Result<Answer> {
    let userid = checked_user(&args.userid)?;
    let now = user_now(ctx, userid).await?.ok_or_else(|| no_user(userid))?;
    let tokens = loose::rows(now.get("tokens").unwrap_or(&Value::Null)).len();
    let mut before = shown_user(&now);
    if let Value::Object(map) = &mut before {
        map.insert("tokens_lost".into(), tokens.into());
        map.insert("entries_lost".into(), json!(entries_of(ctx, "user", userid).await));
    }
    let operation = operation(Method::Delete, &["access", "users", userid], Params::new())?;
    let done = ctx.submit(operation, &args.asked).await?;
    Ok(told(done, before, async { Value::Null }, format!("user {userid}")).await)
}

/// The entries that name someone, as `ROLE on PATH`.
pub async fn entries_of(ctx: Ctx<'_>, kind: &str, id: &str) -> Vec<String> {
    let Ok(all) = ctx.fresh(&["access", "acl"], Params::new()).await else { return Vec::new() };
    loose::rows(&all)
        .iter()
        .filter(|e| loose::str(e, "type") == Some(kind) && loose::str(e, "ugid") == Some(id))
        .map(|e| {
            let part = |key: &str| loose::text(e, key).unwrap_or_default();
            format!("{} on {}", part("roleid"), part("path"))
        })
        .collect()
}

/// Arguments of `pve_group_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct GroupSet {
    group: String,
    comment: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

async fn group_now(ctx: Ctx<'_>, group: &str) -> Result<Option<Value>> {
    let all = ctx.fresh(&["access", "groups"], Params::new()).await?;
    Ok(named(&all, "groupid", group).cloned())
}

/// `pve_group_set`
pub async fn group_set(ctx: Ctx<'_>, args: GroupSet) -> Result<Answer> {
    let group = checked_name("group", &args.group)?;
    let now = group_now(ctx, group).await?;
    let what = format!("group {group}");
    let did = Did::of(now.is_some(), args.must_exist, args.must_not_exist, &what)?;
    let before = now.as_ref().map_or(Value::Null, |g| members(g, &[]));
    let params = Params::new().with_some("comment", args.comment.as_deref());
    let operation = match &now {
        None => operation(Method::Post, &["access", "groups"], params.with("groupid", group))?,
        Some(now) => {
            if args.comment.as_deref().is_none_or(|c| same(now.get("comment"), c)) {
                return Ok(unchanged(before));
            }
            operation(Method::Put, &["access", "groups", group], params)?
        }
    };
    let done = ctx.submit(operation, &args.asked).await?;
    let after = async {
        group_now(ctx, group).await.ok().flatten().map_or(Value::Null, |g| members(&g, &[]))
    };
    let answer = told(done, before, after, what).await.with("did", did.as_str());
    Ok(answer.with("note", "members are set on the user: pve_user_set with `groups`"))
}

/// Arguments of `pve_group_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct GroupDelete {
    group: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_group_delete`
pub async fn group_delete(ctx: Ctx<'_>, args: GroupDelete) -> Result<Answer> {
    let group = checked_name("group", &args.group)?;
    let now = group_now(ctx, group).await?.ok_or_else(|| {
        Error::new(Code::NotFound, format!("there is no group {group:?}"))
            .hint("pve_list_groups lists them")
    })?;
    let mut before = members(&now, &[]);
    if let Value::Object(map) = &mut before {
        map.insert("entries_lost".into(), json!(entries_of(ctx, "group", group).await));
    }
    let operation = operation(Method::Delete, &["access", "groups", group], Params::new())?;
    let done = ctx.submit(operation, &args.asked).await?;
    Ok(told(done, before, async { Value::Null }, format!("group {group}")).await)
}

/// Arguments of `pve_role_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct RoleSet {
    role: String,
    privileges: Vec<String>,
    append: Option<bool>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

async fn role_now(ctx: Ctx<'_>, role: &str) -> Result<(Option<Value>, Vec<String>)> {
    let all = ctx.fresh(&["access", "roles"], Params::new()).await?;
    let mut known: Vec<String> = loose::rows(&all).iter().flat_map(privileges_of).collect();
    known.sort();
    known.dedup();
    Ok((named(&all, "roleid", role).cloned(), known))
}

/// `pve_role_set`
pub async fn role_set(ctx: Ctx<'_>, args: RoleSet) -> Result<Answer> {
    let role = checked_name("role", &args.role)?;
    let (now, known) = role_now(ctx, role).await?;
    let what = format!("role {role}");
    let did = Did::of(now.is_some(), args.must_exist, args.must_not_exist, &what)?;
    if let Some(odd) = args.privileges.iter().find(|p| !known.contains(p)) {
        let error = Error::argument(format!("this release knows no privilege {odd:?}"))
            .with("argument", "privileges");
        return Err(match crate::tools::validate::nearest(odd, known.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error.hint("pve_list_roles with role=Administrator lists all"),
        });
    }
    if now.as_ref().is_some_and(|r| loose::flag(r, "special")) {
        return Err(Error::new(
            Code::Conflict,
            format!("{what} is built in and cannot be changed"),
        )
        .hint("make a role of your own"));
    }
    let held = now.as_ref().map(privileges_of).unwrap_or_default();
    let before = now.as_ref().map_or(Value::Null, |_| json!({"privileges": held}));
    let params = Params::new().with("privs", args.privileges.join(","));
    let operation = if now.is_none() {
        operation(Method::Post, &["access", "roles"], params.with("roleid", role))?
    } else {
        let within = args.privileges.iter().all(|p| held.contains(p));
        let mut wanted = args.privileges.clone();
        wanted.sort();
        wanted.dedup();
        if within && (args.append == Some(true) || wanted.len() == held.len()) {
            return Ok(unchanged(before));
        }
        operation(Method::Put, &["access", "roles", role], switch(params, "append", args.append))?
    };
    let done = ctx.submit(operation, &args.asked).await?;
    let after = async {
        let now = role_now(ctx, role).await.ok().and_then(|(now, _)| now);
        now.map_or(Value::Null, |r| json!({"privileges": privileges_of(&r)}))
    };
    let holders = if before.is_null() { Vec::new() } else { holders(ctx, role).await };
    let answer = told(done, before, after, what).await.with("did", did.as_str());
    Ok(if holders.is_empty() { answer } else { answer.with("held_by", holders) })
}

/// Who holds a role, as `anna@pve on /vms`.
async fn holders(ctx: Ctx<'_>, role: &str) -> Vec<String> {
    let Ok(all) = ctx.fresh(&["access", "acl"], Params::new()).await else { return Vec::new() };
    loose::rows(&all)
        .iter()
        .filter(|e| loose::str(e, "roleid") == Some(role))
        .map(|e| {
            let part = |key: &str| loose::text(e, key).unwrap_or_default();
            format!("{} {} on {}", part("type"), part("ugid"), part("path"))
        })
        .collect()
}

/// Arguments of `pve_role_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct RoleDelete {
    role: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_role_delete`
pub async fn role_delete(ctx: Ctx<'_>, args: RoleDelete) -> Result<Answer> {
    let role = checked_name("role", &args.role)?;
    let all = ctx.fresh(&["access", "roles"], Params::new()).await?;
    let now = find_role(&all, role)?;
    if loose::flag(now, "special") {
        return Err(Error::new(
            Code::Conflict,
            format!("role {role} is built in and cannot be deleted"),
        ));
    }
    let before = json!({"privileges": privileges_of(now), "held_by": holders(ctx, role).await});
    let operation = operation(Method::Delete, &["access", "roles", role], Params::new())?;
    let done = ctx.submit(operation, &args.asked).await?;
    Ok(told(done, before, async { Value::Null }, format!("role {role}")).await)
}

/// Arguments of `pve_acl_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AclSet {
    /// As /vms/100, /pool/web, /storage/local.
    path: String,
    roles: Vec<String>,
    users: Option<Vec<String>>,
    groups: Option<Vec<String>>,
    tokens: Option<Vec<String>>,
    /// On unless said.
    propagate: Option<bool>,
    delete: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_acl_set`
pub async fn acl_set(ctx: Ctx<'_>, args: AclSet) -> Result<Answer> {
    if !args.path.starts_with('/') {
        return Err(Error::argument(format!("argument `path` cannot be {:?}", args.path))
            .hint("a path as /, /vms/100, /storage/local, /pool/web")
            .with("argument", "path"));
    }
    let mut named_ids: Vec<(&str, &String)> = Vec::new();
    for (kind, ids) in [("user", &args.users), ("group", &args.groups), ("token", &args.tokens)] {
        named_ids.extend(ids.iter().flatten().map(|id| (kind, id)));
    }
    if named_ids.is_empty() || args.roles.is_empty() {
        return Err(Error::argument(
            "give `roles`, and whom they are for: `users`, `groups` or `tokens`",
        ));
    }
    if let Some((_, odd)) =
        named_ids.iter().find(|(kind, id)| *kind == "token" && !id.contains('!'))
    {
        return Err(Error::argument(format!("argument `tokens` holds no token: {odd:?}"))
            .hint("a token is named in full, as anna@pve!ci")
            .with("argument", "tokens"));
    }
    let roles = ctx.fresh(&["access", "roles"], Params::new()).await?;
    for role in &args.roles {
        find_role(&roles, role)?;
    }
    let all = ctx.fresh(&["access", "acl"], Params::new()).await?;
    let before = entries_at(&all, &args.path, &named_ids);
    let delete = args.delete == Some(true);
    let idle = is_idle(&all, &args, &named_ids);
    // A list that shows nothing proves nothing: this token may see a part.
    if idle && (!delete || !loose::rows(&all).is_empty()) {
        return Ok(unchanged(Value::Array(before)));
    }
    let join =
        |list: &Option<Vec<String>>| list.as_ref().filter(|l| !l.is_empty()).map(|l| l.join(","));
    let params = Params::new()
        .with("path", &args.path)
        .with("roles", args.roles.join(","))
        .with_some("users", join(&args.users))
        .with_some("groups", join(&args.groups))
        .with_some("tokens", join(&args.tokens));
    let params = if delete {
        params.with_bool("delete", true)
    } else {
        switch(params, "propagate", args.propagate)
    };
    let operation = operation(Method::Put, &["access", "acl"], params)?;
    let done = ctx.submit(operation, &args.asked).await?;
    let after = async {
        let all = ctx.fresh(&["access", "acl"], Params::new()).await;
        all.map_or(Value::Null, |all| Value::Array(entries_at(&all, &args.path, &named_ids)))
    };
    let answer = told(done, Value::Array(before), after, format!("entries on {}", args.path)).await;
    Ok(answer.with("did", if delete { "deleted" } else { "set" }))
}

/// Whether all that is wished stands there already, or nothing of what is to go.
fn is_idle(all: &Value, args: &AclSet, ids: &[(&str, &String)]) -> bool {
    let delete = args.delete == Some(true);
    let propagate = args.propagate.unwrap_or(true);
    let there = |kind: &str, id: &str, role: &str| {
        loose::rows(all).iter().any(|e| {
            loose::str(e, "path") == Some(&args.path)
                && loose::str(e, "type") == Some(kind)
                && loose::str(e, "ugid") == Some(id)
                && loose::str(e, "roleid") == Some(role)
                && (delete || propagates(e) == propagate)
        })
    };
    ids.iter().all(|(kind, id)| args.roles.iter().all(|role| there(kind, id, role) != delete))
}

/// What stands on a path for some users, groups and tokens.
fn entries_at(all: &Value, path: &str, ids: &[(&str, &String)]) -> Vec<Value> {
    loose::rows(all)
        .iter()
        .filter(|e| {
            loose::str(e, "path") == Some(path)
                && ids.iter().any(|(kind, id)| {
                    loose::str(e, "type") == Some(kind) && loose::str(e, "ugid") == Some(id)
                })
        })
        .map(|e| json!({"who": loose::text(e, "ugid"), "role": loose::text(e, "roleid"), "propagate": propagates(e)}))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_expiry() {
        for (text, want) in [
            ("never", Some(0)),
            ("0", Some(0)),
            ("2000000000", Some(2_000_000_000)),
            ("2027-01-31", Some(1_801_353_600)),
            ("2027-01-31T01:00:00+01:00", Some(1_801_353_600)),
            ("-5", None),
            ("soon", None),
            ("2027-13-01", None),
            ("", None),
        ] {
            assert_eq!(expires(text).ok(), want, "{text}");
        }
    }

    #[test]
    fn users_carry_their_realm() {
        for (text, good) in [
            ("anna@pve", true),
            ("anna@corp.example", true),
            ("a@b@pve", true),
            ("anna", false),
            ("@pve", false),
            ("anna@", false),
            ("an na@pve", false),
            ("anna@pve!ci", false),
            ("anna/x@pve", false),
        ] {
            assert_eq!(checked_user(text).is_ok(), good, "{text}");
        }
    }
}
