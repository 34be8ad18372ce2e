//! Reading access: users, tokens, groups, roles, rules, realms, privileges; and logging in.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Route;
use crate::api::call::{Answer, Call};
use crate::api::failure::Failure;
use crate::api::login::Login;
use crate::state::access::{Access, Token, User, secret};

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/access/users", users),
    ("GET", "/access/users/{userid}", user),
    ("GET", "/access/users/{userid}/token", tokens),
    ("GET", "/access/users/{userid}/token/{tokenid}", token),
    ("GET", "/access/groups", groups),
    ("GET", "/access/groups/{groupid}", group),
    ("GET", "/access/roles", roles),
    ("GET", "/access/roles/{roleid}", role),
    ("GET", "/access/acl", rules),
    ("GET", "/access/domains", realms),
    ("GET", "/access/domains/{realm}", realm),
    ("GET", "/access/permissions", permissions),
    ("GET", "/access/tfa", |_| Ok(json!([]).into())),
    ("GET", "/access/tfa/{userid}", |_| Ok(json!([]).into())),
    ("POST", "/access/ticket", ticket),
    ("PUT", "/access/password", password),
];

fn put_texts(map: &mut Map<String, Value>, user: &User) {
    for (name, value) in &user.texts {
        map.insert(name.clone(), json!(value));
    }
}

pub(super) fn show_token(t: &Token) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("expire".to_owned(), json!(t.expire));
    map.insert("privsep".to_owned(), json!(u8::from(t.privsep)));
    if !t.comment.is_empty() {
        map.insert("comment".to_owned(), json!(t.comment));
    }
    map
}

fn token_row(id: &str, t: &Token) -> Value {
    let mut row = show_token(t);
    row.insert("tokenid".to_owned(), json!(id));
    Value::Object(row)
}

fn realm_type(user: &str) -> &str {
    match user.rsplit_once('@').map(|(_, r)| r) {
        Some("pam") => "pam",
        Some("pve") => "pve",
        _ => "openid",
    }
}

fn users(c: &mut Call<'_>) -> Answer {
    let full = c.flag("full");
    let enabled = c.switch("enabled");
    let all = c.may("/access/groups", &["User.Modify", "Sys.Audit"]);
    let mut rows = Vec::new();
    for (id, user) in &c.state.access.users {
        let own = *id == c.login.user && c.login.token.is_none();
        if !(all || own) || enabled.is_some_and(|e| e != user.enable) {
            continue;
        }
        let mut row = Map::new();
        row.insert("userid".to_owned(), json!(id));
        row.insert("enable".to_owned(), json!(u8::from(user.enable)));
        row.insert("expire".to_owned(), json!(user.expire));
        row.insert("realm-type".to_owned(), json!(realm_type(id)));
        put_texts(&mut row, user);
        if full {
            row.insert("groups".to_owned(), json!(c.state.access.groups_of(id).join(",")));
            row.insert(
                "tokens".to_owned(),
                user.tokens.iter().map(|(n, t)| token_row(n, t)).collect(),
            );
        }
        rows.push(Value::Object(row));
    }
    Ok(Value::Array(rows).into())
}

pub(super) fn find<'a>(access: &'a Access, id: &str) -> Result<&'a User, Failure> {
    access.users.get(id).ok_or_else(|| Failure::died(format!("no such user ('{id}')")))
}

fn user(c: &mut Call<'_>) -> Answer {
    let id = c.need("userid");
    let user = find(&c.state.access, &id)?;
    let mut map = Map::new();
    map.insert("enable".to_owned(), json!(u8::from(user.enable)));
    map.insert("expire".to_owned(), json!(user.expire));
    map.insert("groups".to_owned(), json!(c.state.access.groups_of(&id)));
    put_texts(&mut map, user);
    if !user.tokens.is_empty() {
        let tokens: Map<String, Value> =
            user.tokens.iter().map(|(n, t)| (n.clone(), Value::Object(show_token(t)))).collect();
        map.insert("tokens".to_owned(), Value::Object(tokens));
    }
    Ok(Value::Object(map).into())
}

fn tokens(c: &mut Call<'_>) -> Answer {
    let user = find(&c.state.access, &c.need("userid"))?;
    Ok(user.tokens.iter().map(|(n, t)| token_row(n, t)).collect::<Value>().into())
}

fn token(c: &mut Call<'_>) -> Answer {
    let (user, id) = (c.need("userid"), c.need("tokenid"));
    let token = find(&c.state.access, &user)?.tokens.get(&id);
    let token =
        token.ok_or_else(|| Failure::died(format!("no such token '{id}' for user '{user}'")))?;
    Ok(Value::Object(show_token(token)).into())
}

fn groups(c: &mut Call<'_>) -> Answer {
    let mut rows = Vec::new();
    for (id, group) in &c.state.access.groups {
        let see = ["User.Modify", "Sys.Audit", "Group.Allocate"];
        if c.may("/access/groups", &see) || c.may(&format!("/access/groups/{id}"), &see) {
            let mut row = Map::new();
            row.insert("groupid".to_owned(), json!(id));
            row.insert("users".to_owned(), json!(group.users.join(",")));
            if !group.comment.is_empty() {
                row.insert("comment".to_owned(), json!(group.comment));
            }
            rows.push(Value::Object(row));
        }
    }
    Ok(Value::Array(rows).into())
}

fn group(c: &mut Call<'_>) -> Answer {
    let id = c.need("groupid");
    let group = c.state.access.groups.get(&id);
    let group = group.ok_or_else(|| Failure::died(format!("group '{id}' does not exist")))?;
    let mut map = Map::new();
    map.insert("members".to_owned(), json!(group.users));
    if !group.comment.is_empty() {
        map.insert("comment".to_owned(), json!(group.comment));
    }
    Ok(Value::Object(map).into())
}

fn roles(c: &mut Call<'_>) -> Answer {
    let mut rows = Vec::new();
    for (id, role) in &c.state.access.roles {
        let mut row = Map::new();
        row.insert("roleid".to_owned(), json!(id));
        row.insert("privs".to_owned(), json!(role.privileges.join(",")));
        if role.special {
            row.insert("special".to_owned(), json!(1));
        }
        rows.push(Value::Object(row));
    }
    Ok(Value::Array(rows).into())
}

fn role(c: &mut Call<'_>) -> Answer {
    let id = c.need("roleid");
    let role = c.state.access.roles.get(&id);
    let role = role.ok_or_else(|| Failure::died(format!("role '{id}' does not exist")))?;
    let map: Map<String, Value> = role.privileges.iter().map(|p| (p.clone(), json!(1))).collect();
    Ok(Value::Object(map).into())
}

fn rules(c: &mut Call<'_>) -> Answer {
    let rows = c
        .state
        .access
        .rules
        .iter()
        .filter(|r| {
            c.may("/access", &["Sys.Audit", "Permissions.Modify"]) || c.may(&r.path, &["Permissions.Modify"])
        })
        .map(|r| {
            json!({"path": r.path, "type": r.kind, "ugid": r.who, "roleid": r.role, "propagate": u8::from(r.propagate)})
        })
        .collect();
    Ok(Value::Array(rows).into())
}

const REALMS: [(&str, &str); 2] =
    [("pam", "Linux PAM standard authentication"), ("pve", "Proxmox VE authentication server")];

fn realms(_: &mut Call<'_>) -> Answer {
    let row =
        |(realm, comment): (&str, &str)| json!({"realm": realm, "type": realm, "comment": comment});
    Ok(Value::Array(REALMS.into_iter().map(row).collect()).into())
}

fn realm(c: &mut Call<'_>) -> Answer {
    let id = c.need("realm");
    let found = REALMS.into_iter().find(|(r, _)| *r == id);
    let (realm, comment) =
        found.ok_or_else(|| Failure::died(format!("domain '{id}' does not exist")))?;
    Ok(json!({"type": realm, "comment": comment, "plugin": format!("PVE::Auth::{}", realm.to_uppercase()),
        "digest": "da39a3ee5e6b4b0d3255bfef95601890afd80709"})
    .into())
}

/// The paths that are looked at when none is given.
fn paths(c: &Call<'_>) -> Vec<String> {
    let fixed = ["/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms"];
    let mut all: Vec<String> = fixed.iter().map(|p| (*p).to_owned()).collect();
    all.extend(c.state.access.rules.iter().map(|r| r.path.clone()));
    all.extend(c.state.pools.keys().map(|p| format!("/pool/{p}")));
    all.extend(c.state.guests.keys().map(|v| format!("/vms/{v}")));
    all.extend(c.state.storages.keys().map(|s| format!("/storage/{s}")));
    all.extend(c.state.nodes.keys().map(|n| format!("/nodes/{n}")));
    all.push("/sdn/zones/localnetwork".to_owned());
    all.sort();
    all.dedup();
    all
}

fn permissions(c: &mut Call<'_>) -> Answer {
    let login = match c.text("userid") {
        Some(id) => {
            let (user, token) =
                id.split_once('!').map_or((id.as_str(), None), |(u, t)| (u, Some(t.to_owned())));
            let own = *user == c.login.user;
            if !own && !c.may("/access", &["Sys.Audit"]) {
                return Err(Failure::forbidden("/access, Sys.Audit"));
            }
            find(&c.state.access, user)?;
            Login { user: user.to_owned(), token }
        }
        None => c.login.clone(),
    };
    let wanted = c.text("path");
    let mut map = Map::new();
    for path in wanted.clone().map_or_else(|| paths(c), |p| vec![p]) {
        let held: BTreeMap<String, bool> = c.state.privileges(&login, &path);
        if !held.is_empty() || wanted.is_some() {
            let held: Map<String, Value> =
                held.into_iter().map(|(p, on)| (p, json!(u8::from(on)))).collect();
            map.insert(path, Value::Object(held));
        }
    }
    Ok(Value::Object(map).into())
}

fn ticket(c: &mut Call<'_>) -> Answer {
    let name = c.need("username");
    let user = match c.text("realm") {
        Some(realm) => format!("{name}@{realm}"),
        None => name,
    };
    let given = c.text("password");
    let known =
        c.state.access.users.get(&user).filter(|u| u.enable).and_then(|u| u.password.clone());
    if known.is_none() || known != given {
        return Err(Failure::new(401, "authentication failure"));
    }
    let ticket = format!("PVE:{user}:{:08X}::{}", c.now(), secret());
    c.state.access.tickets.insert(ticket.clone(), user.clone());
    let login = Login { user: user.clone(), token: None };
    let mut caps = Map::new();
    for (area, path, prefixes) in [
        ("vms", "/vms", &["VM."][..]),
        ("storage", "/storage", &["Datastore."]),
        ("nodes", "/nodes", &["Sys."]),
        ("dc", "/", &["SDN.", "Sys.Audit", "Sys.Modify"]),
        ("access", "/access", &["User.", "Group."]),
        ("sdn", "/sdn", &["SDN."]),
        ("mapping", "/mapping", &["Mapping."]),
    ] {
        let held = c.state.privileges(&login, path);
        let general = area != "dc";
        let wanted = |p: &&String| {
            prefixes.iter().any(|x| p.starts_with(x)) || general && *p == "Permissions.Modify"
        };
        let own: Map<String, Value> =
            held.keys().filter(wanted).map(|p| (p.clone(), json!(1))).collect();
        caps.insert(area.to_owned(), Value::Object(own));
    }
    Ok(json!({"ticket": ticket, "username": user, "CSRFPreventionToken": Access::csrf(&user), "cap": caps}).into())
}

fn password(c: &mut Call<'_>) -> Answer {
    if c.login.token.is_some() {
        let text = "URI '/access/password' not available with API token, need proper ticket.\n";
        return Err(Failure::forbidden(text));
    }
    let (id, new) = (c.need("userid"), c.need("password"));
    find(&c.state.access, &id)?;
    if let Some(user) = c.state.access.users.get_mut(&id) {
        user.password = Some(new);
    }
    crate::api::call::done()
}
