//! Changes of access: users, tokens, groups, roles, rules.

use serde_json::{Map, Value, json};

use super::Route;
use super::access::{find, show_token};
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;
use crate::state::access::{Group, Role, Rule, Token, User, secret};

pub(crate) const ROUTES: &[Route] = &[
    ("POST", "/access/users", add_user),
    ("PUT", "/access/users/{userid}", set_user),
    ("DELETE", "/access/users/{userid}", delete_user),
    ("POST", "/access/users/{userid}/token/{tokenid}", add_token),
    ("PUT", "/access/users/{userid}/token/{tokenid}", set_token),
    ("DELETE", "/access/users/{userid}/token/{tokenid}", delete_token),
    ("POST", "/access/groups", add_group),
    ("PUT", "/access/groups/{groupid}", set_group),
    ("DELETE", "/access/groups/{groupid}", delete_group),
    ("POST", "/access/roles", add_role),
    ("PUT", "/access/roles/{roleid}", set_role),
    ("DELETE", "/access/roles/{roleid}", delete_role),
    ("PUT", "/access/acl", set_rules),
];

/// `name@realm`, or the error that the real one dies with.
fn check_user(id: &str) -> Result<(), Failure> {
    let good = id.split_once('@').is_some_and(|(name, realm)| {
        let plain = |c: char| !c.is_whitespace() && c != ':' && c != '/';
        !name.is_empty()
            && name.chars().all(plain)
            && realm.starts_with(|c: char| c.is_ascii_alphabetic())
    });
    if good {
        Ok(())
    } else {
        Err(Failure::died(format!("value '{id}' does not look like a valid user name")))
    }
}

/// Puts the given fields into a user, and it into its groups.
fn fill(c: &mut Call<'_>, id: &str, mut user: User) {
    for name in ["comment", "email", "firstname", "lastname", "keys"] {
        if let Some(text) = c.text(name) {
            user.texts.insert(name.to_owned(), text);
        }
    }
    if let Some(enable) = c.switch("enable") {
        user.enable = enable;
    }
    if let Some(expire) = c.int("expire") {
        user.expire = expire;
    }
    if let Some(password) = c.text("password") {
        user.password = Some(password);
    }
    if c.params.contains_key("groups") {
        let groups = c.list("groups");
        let append = c.flag("append");
        for (name, group) in &mut c.state.access.groups {
            let wanted = groups.contains(name);
            if !append {
                group.users.retain(|u| u != id);
            }
            if wanted && !group.users.iter().any(|u| u == id) {
                group.users.push(id.to_owned());
            }
        }
    }
    c.state.access.users.insert(id.to_owned(), user);
}

fn add_user(c: &mut Call<'_>) -> Answer {
    let id = c.need("userid");
    check_user(&id)?;
    if c.state.access.users.contains_key(&id) {
        return Err(Failure::died(format!("create user failed: user '{id}' already exists")));
    }
    fill(c, &id, User::default());
    done()
}

fn set_user(c: &mut Call<'_>) -> Answer {
    let id = c.need("userid");
    let user = find(&c.state.access, &id)?.clone();
    fill(c, &id, user);
    done()
}

fn delete_user(c: &mut Call<'_>) -> Answer {
    let id = c.need("userid");
    find(&c.state.access, &id)?;
    let access = &mut c.state.access;
    access.users.remove(&id);
    let tokens = format!("{id}!");
    access.rules.retain(|r| r.who != id && !r.who.starts_with(&tokens));
    for group in access.groups.values_mut() {
        group.users.retain(|u| *u != id);
    }
    done()
}

fn add_token(c: &mut Call<'_>) -> Answer {
    let (user, id) = (c.need("userid"), c.need("tokenid"));
    let token = Token {
        secret: secret(),
        privsep: c.switch("privsep").unwrap_or(true),
        expire: c.int("expire").unwrap_or(0),
        comment: c.text("comment").unwrap_or_default(),
    };
    if find(&c.state.access, &user)?.tokens.contains_key(&id) {
        return Err(Failure::parameter("tokenid", "Token already exists."));
    }
    // Here, and only here, what was given comes back as text.
    let mut info = Map::new();
    for name in ["comment", "expire", "privsep"] {
        if let Some(text) = c.text(name) {
            info.insert(name.to_owned(), json!(text));
        }
    }
    info.entry("privsep").or_insert(json!(1));
    let reply =
        json!({"full-tokenid": format!("{user}!{id}"), "value": token.secret, "info": info});
    if let Some(user) = c.state.access.users.get_mut(&user) {
        user.tokens.insert(id, token);
    }
    Ok(reply.into())
}

fn token_mut<'a>(c: &'a mut Call<'_>) -> Result<&'a mut Token, Failure> {
    let (user, id) = (c.need("userid"), c.need("tokenid"));
    find(&c.state.access, &user)?;
    let token = c.state.access.users.get_mut(&user).and_then(|u| u.tokens.get_mut(&id));
    token.ok_or_else(|| Failure::died(format!("no such token '{id}' for user '{user}'")))
}

fn set_token(c: &mut Call<'_>) -> Answer {
    let full = format!("{}!{}", c.need("userid"), c.need("tokenid"));
    let (privsep, expire, comment) = (c.text("privsep"), c.text("expire"), c.text("comment"));
    let regenerate = c.flag("regenerate");
    let token = token_mut(c)?;
    if let Some(p) = &privsep {
        token.privsep = p == "1";
    }
    if let Some(e) = expire.as_ref().and_then(|e| e.parse().ok()) {
        token.expire = e;
    }
    if let Some(text) = comment {
        token.comment = text;
    }
    let mut map = show_token(token);
    for (name, given) in [("privsep", privsep), ("expire", expire)] {
        if let Some(text) = given {
            map.insert(name.to_owned(), json!(text));
        }
    }
    if regenerate {
        token.secret = secret();
        map.insert("full-tokenid".to_owned(), json!(full));
        map.insert("value".to_owned(), json!(token.secret));
    }
    Ok(Value::Object(map).into())
}

fn delete_token(c: &mut Call<'_>) -> Answer {
    token_mut(c)?;
    let (user, id) = (c.need("userid"), c.need("tokenid"));
    let full = format!("{user}!{id}");
    if let Some(user) = c.state.access.users.get_mut(&user) {
        user.tokens.remove(&id);
    }
    c.state.access.rules.retain(|r| r.who != full);
    done()
}

fn add_group(c: &mut Call<'_>) -> Answer {
    let (id, comment) = (c.need("groupid"), c.text("comment").unwrap_or_default());
    if c.state.access.groups.contains_key(&id) {
        return Err(Failure::died(format!("create group failed: group '{id}' already exists")));
    }
    c.state.access.groups.insert(id, Group { comment, users: Vec::new() });
    done()
}

fn no_group(id: &str) -> Failure {
    Failure::died(format!("group '{id}' does not exist"))
}

fn set_group(c: &mut Call<'_>) -> Answer {
    let (id, comment) = (c.need("groupid"), c.text("comment"));
    let group = c.state.access.groups.get_mut(&id).ok_or_else(|| no_group(&id))?;
    if let Some(comment) = comment {
        group.comment = comment;
    }
    done()
}

fn delete_group(c: &mut Call<'_>) -> Answer {
    let id = c.need("groupid");
    c.state.access.groups.remove(&id).ok_or_else(|| no_group(&id))?;
    c.state.access.rules.retain(|r| !(r.kind == "group" && r.who == id));
    done()
}

fn privileges(c: &Call<'_>) -> Vec<String> {
    let mut list = c.list("privs");
    list.sort();
    list.dedup();
    list
}

fn add_role(c: &mut Call<'_>) -> Answer {
    let (id, privileges) = (c.need("roleid"), privileges(c));
    if c.state.access.roles.contains_key(&id) {
        return Err(Failure::died(format!("create role failed: role '{id}' already exists")));
    }
    c.state.access.roles.insert(id, Role { privileges, special: false });
    done()
}

fn role_mut<'a>(c: &'a mut Call<'_>, verb: &str) -> Result<&'a mut Role, Failure> {
    let id = c.need("roleid");
    let role = c.state.access.roles.get_mut(&id);
    let role = role.ok_or_else(|| Failure::died(format!("role '{id}' does not exist")))?;
    if role.special {
        return Err(Failure::died(format!("auto-generated role '{id}' cannot be {verb}")));
    }
    Ok(role)
}

fn set_role(c: &mut Call<'_>) -> Answer {
    let (mut next, append) = (privileges(c), c.flag("append"));
    let role = role_mut(c, "modified")?;
    if append {
        next.extend(role.privileges.clone());
        next.sort();
        next.dedup();
    }
    role.privileges = next;
    done()
}

fn delete_role(c: &mut Call<'_>) -> Answer {
    role_mut(c, "deleted")?;
    let id = c.need("roleid");
    c.state.access.roles.remove(&id);
    c.state.access.rules.retain(|r| r.role != id);
    done()
}

/// Whether an access rule may name this path.
fn is_path(path: &str) -> bool {
    const ROOTS: [&str; 7] = ["access", "mapping", "nodes", "pool", "sdn", "storage", "vms"];
    let mut parts = path.split('/').filter(|p| !p.is_empty());
    path.starts_with('/') && parts.next().is_none_or(|first| ROOTS.contains(&first))
}

fn set_rules(c: &mut Call<'_>) -> Answer {
    let (path, delete) = (c.need("path"), c.flag("delete"));
    let propagate = c.switch("propagate").unwrap_or(true);
    let fail = |text: String| Failure::died(format!("ACL update failed: {text}"));
    if !is_path(&path) {
        return Err(Failure::parameter("path", format!("invalid ACL path '{path}'")));
    }
    let path = if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path };
    let access = &c.state.access;
    let mut who: Vec<(&'static str, String)> = Vec::new();
    for role in c.list("roles") {
        if !access.roles.contains_key(&role) {
            return Err(fail(format!("role '{role}' does not exist")));
        }
    }
    for (name, kind) in [("users", "user"), ("groups", "group"), ("tokens", "token")] {
        for id in c.list(name) {
            let there = match kind {
                "user" => access.users.contains_key(&id),
                "group" => access.groups.contains_key(&id),
                _ => id.split_once('!').is_some_and(|(u, t)| {
                    access.users.get(u).is_some_and(|u| u.tokens.contains_key(t))
                }),
            };
            if !there {
                return Err(fail(format!("{kind} '{id}' does not exist")));
            }
            who.push((kind, id));
        }
    }
    if who.is_empty() {
        return Err(Failure::parameter(
            "users",
            "property is missing - either 'users', 'groups' or 'tokens' is required",
        ));
    }
    let roles = c.list("roles");
    for (kind, id) in who {
        for role in &roles {
            c.state
                .access
                .rules
                .retain(|r| !(r.path == path && r.kind == kind && r.who == id && r.role == *role));
            if !delete {
                let rule = Rule {
                    path: path.clone(),
                    kind,
                    who: id.clone(),
                    role: role.clone(),
                    propagate,
                };
                c.state.access.rules.push(rule);
            }
        }
    }
    done()
}
