//! What a user or token may do, and why not more.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::accounts::{find_role, groups_of, no_user, privileges_of, propagates, reaches};
use crate::{
    Error, Result,
    pve::{ApiPath, Params, loose},
    render::{Answer, units},
    safety::Method,
    tools::Ctx,
};

/// Arguments of `pve_permissions`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Permissions {
    /// User or token (anna@pve!ci); our own unless said.
    userid: Option<String>,
    /// Instead of a user.
    role: Option<String>,
    /// As /vms/100, /storage/local, /nodes/pve1.
    path: Option<String>,
    privileges: Option<Vec<String>>,
    /// As `POST /nodes/pve1/qemu/100/status/start`.
    call: Option<String>,
}

/// One thing that is needed: all, or any, of some privileges on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Need {
    privileges: Vec<String>,
    any: bool,
    path: String,
}

impl Need {
    fn met_by(&self, held: &BTreeSet<String>) -> bool {
        if self.any {
            self.privileges.iter().any(|p| held.contains(p))
        } else {
            self.privileges.iter().all(|p| held.contains(p))
        }
    }

    fn lacking(&self, held: &BTreeSet<String>) -> Vec<String> {
        if self.met_by(held) {
            return Vec::new();
        }
        self.privileges.iter().filter(|p| !held.contains(*p)).cloned().collect()
    }
}

/// The needs of an API call, and how they go together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Question {
    needs: Vec<Need>,
    /// One of the needs is enough.
    either: bool,
    /// As the node writes it.
    text: Option<String>,
}

/// `pve_permissions`
pub async fn show(ctx: Ctx<'_>, args: Permissions) -> Result<Answer> {
    let question = question(ctx, &args).await?;
    if let Some(role) = &args.role {
        if args.userid.is_some() {
            return Err(Error::argument("only one of `userid` and `role` can be meant"));
        }
        return of_role(ctx, role, &question).await;
    }
    let own = ctx.app.config.token.as_ref().map(|t| t.id.clone()).unwrap_or_default();
    let who = args.userid.clone().unwrap_or_else(|| own.clone());
    if !who.contains('@') {
        return Err(no_user(&who));
    }
    if let Some(question) = question {
        return explain(ctx, &who, who == own, question).await;
    }
    let held = held_by(ctx, &who, who == own, args.path.as_deref()).await?;
    Ok(effective(&who, &held))
}

/// What is asked about; nothing where only the list is wanted.
async fn question(ctx: Ctx<'_>, args: &Permissions) -> Result<Option<Question>> {
    if let Some(call) = &args.call {
        if args.privileges.is_some() || args.path.is_some() {
            return Err(Error::argument("`call` says itself which privileges it needs, and where")
                .with("argument", "call"));
        }
        return of_call(ctx, call).await.map(Some);
    }
    let Some(privileges) = args.privileges.clone().filter(|p| !p.is_empty()) else {
        return Ok(None);
    };
    let known = known_privileges(ctx).await;
    if let Some(odd) = privileges.iter().find(|p| !known.is_empty() && !known.contains(*p)) {
        let error = Error::argument(format!("this release knows no privilege {odd:?}"))
            .with("argument", "privileges");
        return Err(match crate::tools::validate::nearest(odd, known.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error.hint("pve_list_roles with role=Administrator lists all"),
        });
    }
    let path = match (&args.path, &args.role) {
        (Some(path), _) => canonical(path)?,
        (None, Some(_)) => "/".to_owned(),
        (None, None) => {
            return Err(Error::argument("`privileges` are held on a path: give `path`")
                .with("argument", "path"));
        }
    };
    Ok(Some(Question {
        needs: vec![Need { privileges, any: false, path }],
        either: false,
        text: None,
    }))
}

/// A path of the tree of permissions, without what Proxmox would fold.
fn canonical(path: &str) -> Result<String> {
    if !path.starts_with('/') {
        return Err(Error::argument(format!("argument `path` cannot be {path:?}"))
            .hint("a path as /, /vms/100, /storage/local, /nodes/pve1, /pool/web, /access")
            .with("argument", "path"));
    }
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    Ok(format!("/{}", parts.join("/")))
}

/// Every privilege of the release: the Administrator has all.
async fn known_privileges(ctx: Ctx<'_>) -> BTreeSet<String> {
    let Ok(roles) = ctx.get(&["access", "roles"]).await else { return BTreeSet::new() };
    loose::rows(&roles).iter().flat_map(privileges_of).collect()
}

async fn of_call(ctx: Ctx<'_>, call: &str) -> Result<Question> {
    let bad = || {
        Error::argument(format!("argument `call` cannot be {call:?}"))
            .hint("a method and a path, as `POST /nodes/pve1/qemu/100/status/start`")
            .with("argument", "call")
    };
    let (method, path) = call.trim().split_once(char::is_whitespace).ok_or_else(bad)?;
    let (method, path) = (Method::read(method)?, ApiPath::parse(path.trim())?);
    let schema = ctx.app.pve.schema().await?;
    let (node, info) = schema.method(path.as_str(), method)?;
    let mut question = needs_of(&info.permissions);
    let values: BTreeMap<&str, &str> = node
        .path()
        .split('/')
        .skip(1)
        .zip(path.segments())
        .filter(|(name, _)| name.starts_with('{'))
        .collect();
    for need in &mut question.needs {
        for (name, value) in &values {
            need.path = need.path.replace(name, value);
        }
    }
    Ok(question)
}

/// Reads `VM.PowerMgmt on /vms/{vmid}`, and several of them.
fn needs_of(text: &str) -> Question {
    let mut needs = Vec::new();
    let mut pending: Vec<String> = Vec::new();
    let mut any = false;
    let clean = text.replace(['(', ')', ';'], " ");
    let mut words = clean.split_whitespace().peekable();
    while let Some(word) = words.next() {
        match word {
            "on" if !pending.is_empty() => {
                if let Some(path) = words.next_if(|p| p.starts_with('/')) {
                    let privileges = std::mem::take(&mut pending);
                    needs.push(Need { privileges, any, path: path.to_owned() });
                }
                any = false;
            }
            "or" if !pending.is_empty() => any = true,
            "and" => {}
            name if is_privilege(name) => pending.push(name.to_owned()),
            _ => pending.clear(),
        }
    }
    let either = needs.len() > 1
        && text.starts_with('(')
        && text.contains(" or ")
        && !text.contains(" and ");
    Question { needs, either, text: Some(text.to_owned()) }
}

fn is_privilege(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.contains('.')
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.')
}

/// Who holds what: privileges by path.
type Held = BTreeMap<String, BTreeSet<String>>;

async fn held_by(ctx: Ctx<'_>, who: &str, own: bool, path: Option<&str>) -> Result<Held> {
    let path = path.map(canonical).transpose()?;
    let params =
        Params::new().with_some("userid", (!own).then_some(who)).with_some("path", path.as_deref());
    let answer = ctx
        .fresh(&["access", "permissions"], params)
        .await
        .map_err(|e| if e.message.contains("no such user") { no_user(who) } else { e })?;
    Ok(read_held(&answer))
}

fn read_held(answer: &Value) -> Held {
    let Some(paths) = answer.as_object() else { return Held::new() };
    paths
        .iter()
        .map(|(path, held)| {
            // The value is the propagate bit: a privilege with 0 is held all the same.
            let names = held.as_object().map(|h| h.keys().cloned().collect()).unwrap_or_default();
            (path.clone(), names)
        })
        .collect()
}

/// Paths with the same privileges stand together.
fn effective(who: &str, held: &Held) -> Answer {
    let mut sets: Vec<(&BTreeSet<String>, Vec<&String>)> = Vec::new();
    for (path, names) in held {
        if names.is_empty() {
            continue;
        }
        match sets.iter_mut().find(|(set, _)| *set == names) {
            Some((_, paths)) => paths.push(path),
            None => sets.push((names, vec![path])),
        }
    }
    let rows: Vec<Value> =
        sets.iter().map(|(names, paths)| json!({"paths": paths, "privileges": names})).collect();
    let heading = match held.values().filter(|n| !n.is_empty()).count() {
        0 => format!("{who} holds nothing"),
        n => format!("{who} holds privileges on {n} paths"),
    };
    let mut answer = Answer::new(json!({"who": who, "held": rows})).heading(heading);
    if rows.is_empty() {
        answer = answer.with(
            "note",
            if who.contains('!') {
                "a token with privilege separation has only what is given to the token itself \
                 (pve_acl_set with `tokens`)"
            } else {
                "no entry gives it or its groups a role (pve_acl_set), or it is disabled or expired"
            },
        );
    }
    answer
}

/// Whether a user or token may, and why.
async fn explain(ctx: Ctx<'_>, who: &str, own: bool, question: Question) -> Result<Answer> {
    let mut checks = Vec::new();
    let mut results = Vec::new();
    let mut lacking: Vec<(String, Vec<String>)> = Vec::new();
    for need in &question.needs {
        let held = held_by(ctx, who, own, Some(&need.path)).await?;
        let held = held.get(&need.path).cloned().unwrap_or_default();
        let lacks = need.lacking(&held);
        results.push(lacks.is_empty());
        checks.push(json!({
            "path": need.path, "needs": need.privileges, "any_of_them": need.any, "lacks": lacks,
        }));
        if !lacks.is_empty() {
            lacking.push((need.path.clone(), lacks));
        }
    }
    let allowed = match (results.is_empty(), question.either) {
        (true, _) => None,
        (false, true) => Some(results.contains(&true)),
        (false, false) => Some(!results.contains(&false)),
    };
    let mut out = Map::new();
    out.insert("who".into(), who.into());
    out.insert("allowed".into(), allowed.into());
    out.insert("checks".into(), checks.into());
    if let Some(text) = &question.text {
        out.insert("as_published".into(), text.clone().into());
    }
    if allowed == Some(false) {
        let standing = Standing::of(ctx, who).await;
        let mut because = standing.because();
        let mut entries = Vec::new();
        let mut roles = Vec::new();
        for (path, lacks) in &lacking {
            because.extend(standing.on(ctx, path, lacks).await);
            entries.extend(standing.entries_on(path));
            roles.push(json!({"path": path, "roles": roles_with(ctx, lacks).await}));
        }
        out.insert("because".into(), because.into());
        out.insert("entries".into(), entries.into());
        out.insert("roles_that_would_do".into(), roles.into());
        if let Some((path, _)) = lacking.first() {
            let list = if who.contains('!') { "tokens" } else { "users" };
            out.insert(
                "how".into(),
                format!("pve_acl_set path={path} {list}={who} roles=ROLE").into(),
            );
        }
    }
    let verdict = match allowed {
        Some(true) => "may",
        Some(false) => "may not",
        None => "cannot be told from privileges alone",
    };
    Ok(Answer::new(out).heading(format!("{who}: {verdict}")))
}

/// A user or token with its groups and entries.
struct Standing {
    who: String,
    user: String,
    is_token: bool,
    privsep: bool,
    groups: Vec<String>,
    disabled: bool,
    expired: bool,
    entries: Option<Vec<Value>>,
}

impl Standing {
    async fn of(ctx: Ctx<'_>, who: &str) -> Self {
        let (user, token) = match who.split_once('!') {
            Some((user, token)) => (user, Some(token)),
            None => (who, None),
        };
        let (account, acl) = (["access", "users", user], ["access", "acl"]);
        let (account, acl) = futures::join!(ctx.get(&account), ctx.get(&acl));
        let account = account.ok();
        let token_row = match token {
            Some(token) => ctx.get(&["access", "users", user, "token", token]).await.ok(),
            None => None,
        };
        let past =
            |v: &Value| loose::int(v, "expire").is_some_and(|at| at > 0 && at < units::now());
        Self {
            who: who.to_owned(),
            user: user.to_owned(),
            is_token: token.is_some(),
            privsep: token_row
                .as_deref()
                .is_some_and(|t| t.get("privsep").is_none() || loose::flag(t, "privsep")),
            groups: account.as_deref().map(groups_of).unwrap_or_default(),
            disabled: account
                .as_deref()
                .is_some_and(|a| a.get("enable").is_some() && !loose::flag(a, "enable")),
            expired: account.as_deref().is_some_and(past) || token_row.as_deref().is_some_and(past),
            entries: acl
                .ok()
                .map(|rows| loose::rows(&rows).to_vec())
                .filter(|rows| !rows.is_empty()),
        }
    }

    fn because(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.disabled {
            found.push(format!("the user {} is disabled", self.user));
        }
        if self.expired {
            found.push("the account or token has expired".to_owned());
        }
        if self.entries.is_none() {
            found.push("this server's token may not see the access control entries".to_owned());
        }
        found
    }

    /// Why privileges are missing on a path.
    async fn on(&self, ctx: Ctx<'_>, path: &str, lacks: &[String]) -> Vec<String> {
        let names = lacks.join(", ");
        let mut found = Vec::new();
        if self.is_token && self.privsep {
            let user = held_by(ctx, &self.user, false, Some(path)).await;
            let user = user.ok().and_then(|h| h.get(path).cloned()).unwrap_or_default();
            if lacks.iter().all(|p| user.contains(p)) {
                found.push(format!("privilege separation: {} has {names} on {path}, the token has its own entries only; give the token a role", self.user));
            } else {
                found.push(format!("privilege separation: a token never has more than its user, and {} lacks {names} on {path} too; both need a role", self.user));
            }
        }
        let entries = self.entries_on(path);
        if self.entries.is_some() && entries.is_empty() {
            found.push(format!(
                "no entry on {path} or above it names {} or a group of it",
                self.who
            ));
        } else if !entries.is_empty() {
            let nearest = entries
                .iter()
                .map(|e| loose::text(e, "path").unwrap_or_default())
                .max_by_key(String::len);
            found.push(format!("the entries that reach {path} give no {names}; where a path has entries of its own, those above it no longer count (the nearest is on {})", nearest.unwrap_or_default()));
        }
        found
    }

    /// The entries that reach a path and name the user, a group of it, or the token.
    fn entries_on(&self, path: &str) -> Vec<Value> {
        let ours = |entry: &&Value| {
            let id = loose::str(entry, "ugid").unwrap_or_default();
            let by_user = !(self.is_token && self.privsep);
            match loose::str(entry, "type") {
                Some("token") => id == self.who,
                Some("group") => by_user && self.groups.iter().any(|g| g == id),
                _ => by_user && id == self.user,
            }
        };
        self.entries
            .iter()
            .flatten()
            .filter(|e| reaches(loose::str(e, "path").unwrap_or_default(), propagates(e), path))
            .filter(ours)
            .map(|e| {
                json!({
                    "path": loose::text(e, "path"), "type": loose::text(e, "type"),
                    "who": loose::text(e, "ugid"), "role": loose::text(e, "roleid"),
                    "propagate": propagates(e),
                })
            })
            .collect()
    }
}

/// Roles that have all of some privileges, the smallest first.
async fn roles_with(ctx: Ctx<'_>, privileges: &[String]) -> Vec<String> {
    let Ok(roles) = ctx.get(&["access", "roles"]).await else { return Vec::new() };
    let mut fit: Vec<(usize, String)> = loose::rows(&roles)
        .iter()
        .filter_map(|r| {
            let has = privileges_of(r);
            let all = privileges.iter().all(|p| has.contains(p));
            all.then(|| (has.len(), loose::text(r, "roleid").unwrap_or_default()))
        })
        .collect();
    fit.sort();
    fit.into_iter().map(|(_, name)| name).collect()
}

/// What a role lacks.
async fn of_role(ctx: Ctx<'_>, name: &str, question: &Option<Question>) -> Result<Answer> {
    let roles = ctx.get(&["access", "roles"]).await?;
    let held: BTreeSet<String> = privileges_of(find_role(&roles, name)?).into_iter().collect();
    let Some(question) = question else {
        return Ok(Answer::new(json!({"role": name, "privileges": held}))
            .heading(format!("role {name}: {} privileges", held.len())));
    };
    let mut lacks: Vec<String> = Vec::new();
    for privilege in question.needs.iter().flat_map(|n| n.lacking(&held)) {
        if !lacks.contains(&privilege) {
            lacks.push(privilege);
        }
    }
    let enough = if question.either {
        question.needs.iter().any(|n| n.met_by(&held))
    } else {
        lacks.is_empty()
    };
    let would_do = if enough { Vec::new() } else { roles_with(ctx, &lacks).await };
    let paths: Vec<&str> = question.needs.iter().map(|n| n.path.as_str()).collect();
    let heading = if enough {
        format!("role {name} is enough on {}", paths.join(", "))
    } else {
        format!("role {name} lacks {}", lacks.join(", "))
    };
    Ok(Answer::new(json!({
        "role": name, "enough": enough, "lacks": if enough { Vec::new() } else { lacks },
        "paths": paths, "roles_that_would_do": would_do, "as_published": question.text,
    }))
    .heading(heading))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_read_from_what_the_node_publishes() {
        let need = |privileges: &[&str], any: bool, path: &str| Need {
            privileges: privileges.iter().map(|p| (*p).to_owned()).collect(),
            any,
            path: path.to_owned(),
        };
        for (text, needs, either) in [
            (
                "VM.PowerMgmt on /vms/{vmid}",
                vec![need(&["VM.PowerMgmt"], false, "/vms/{vmid}")],
                false,
            ),
            (
                "Sys.Audit or Sys.Modify on /nodes/{node}",
                vec![need(&["Sys.Audit", "Sys.Modify"], true, "/nodes/{node}")],
                false,
            ),
            (
                "(VM.Backup on /vms/{vmid} and Datastore.AllocateSpace on /storage/{storage})",
                vec![
                    need(&["VM.Backup"], false, "/vms/{vmid}"),
                    need(&["Datastore.AllocateSpace"], false, "/storage/{storage}"),
                ],
                false,
            ),
            (
                "(Sys.Audit on / or Sys.Audit on /nodes/{node})",
                vec![
                    need(&["Sys.Audit"], false, "/"),
                    need(&["Sys.Audit"], false, "/nodes/{node}"),
                ],
                true,
            ),
            ("any user", vec![], false),
            ("root@pam only", vec![], false),
        ] {
            let found = needs_of(text);
            assert_eq!((found.needs, found.either), (needs, either), "{text}");
        }
    }

    #[test]
    fn a_propagate_bit_of_zero_grants_all_the_same() {
        let held = read_held(&json!({"/vms/100": {"VM.Audit": 0, "VM.PowerMgmt": 1}}));
        assert_eq!(held["/vms/100"].len(), 2);
        let need = Need {
            privileges: vec!["VM.Audit".to_owned()],
            any: false,
            path: "/vms/100".to_owned(),
        };
        assert!(need.met_by(&held["/vms/100"]));
        assert_eq!(need.lacking(&BTreeSet::new()), ["VM.Audit"]);
    }

    #[test]
    fn paths_are_folded_as_proxmox_does() {
        for (given, want) in [("/", "/"), ("//vms//100/", "/vms/100"), ("/vms", "/vms")] {
            assert_eq!(canonical(given).unwrap(), want);
        }
        assert!(canonical("vms/100").is_err());
    }
}
