//! The privilege a method checks, by the rules that stand in the schema.

use serde_json::{Map, Value};

use super::failure::Failure;
use super::login::Login;
use super::params;
use super::schema::Endpoint;
use crate::state::State;

/// Whether the caller has any of these privileges there.
pub(crate) fn any(state: &State, login: &Login, path: &str, privileges: &[&str]) -> bool {
    login.is_root_ticket() || state.holds(login, path, privileges)
}

/// Checks the endpoint's permission rule.
pub(crate) fn check(
    state: &State,
    login: &Login,
    endpoint: &Endpoint,
    data: &Map<String, Value>,
) -> Result<(), Failure> {
    if login.is_root_ticket() {
        return Ok(());
    }
    let Some(rule) = &endpoint.permissions else {
        return Err(Failure::forbidden("user != root@pam"));
    };
    if let Some(user) = rule.get("user").and_then(Value::as_str)
        && (user == "all" || user == "world")
    {
        return Ok(());
    }
    match rule.get("check") {
        Some(rule) => Check { state, login, data }.rule(rule),
        None => Err(Failure::forbidden("user != root@pam")),
    }
}

struct Check<'a> {
    state: &'a State,
    login: &'a Login,
    data: &'a Map<String, Value>,
}

impl Check<'_> {
    fn rule(&self, rule: &Value) -> Result<(), Failure> {
        let Value::Array(parts) = rule else { return Err(Failure::forbidden("")) };
        let (kind, rest) = match parts.split_first() {
            Some((Value::String(kind), rest)) => (kind.as_str(), rest),
            _ => return Err(Failure::forbidden("")),
        };
        match kind {
            "and" => rest.iter().try_for_each(|r| self.rule(r)),
            "or" if rest.iter().any(|r| self.rule(r).is_ok()) => Ok(()),
            "perm" => self.perm(rest),
            "userid-param" => self.userid_param(rest),
            "userid-group" => self.userid_group(rest),
            "perm-modify" => self.modify(rest),
            _ => Err(Failure::forbidden("")),
        }
    }

    fn perm(&self, rest: &[Value]) -> Result<(), Failure> {
        let [Value::String(template), Value::Array(wanted), options @ ..] = rest else {
            return Err(Failure::forbidden(""));
        };
        let option = |name: &str| {
            let at = options.iter().position(|o| o == name)?;
            options.get(at + 1)
        };
        if let Some(needed) = option("require_param").and_then(Value::as_str)
            && !self.data.contains_key(needed)
        {
            return Ok(());
        }
        let path = self.fill(template);
        let wanted: Vec<&str> = wanted.iter().filter_map(Value::as_str).collect();
        // A path that no ACL could name is checked as nothing, and refused.
        let held = |p: &str| !path.is_empty() && any(self.state, self.login, &path, &[p]);
        if option("any").is_some() {
            if wanted.iter().any(|p| held(p)) {
                return Ok(());
            }
            return Err(Failure::forbidden(&format!("{path}, {}", wanted.join("|"))));
        }
        match wanted.iter().find(|p| !held(p)) {
            Some(p) => Err(Failure::forbidden(&format!("{path}, {p}"))),
            None => Ok(()),
        }
    }

    /// The ACL path of a rule; empty when a parameter does not fit into one.
    fn fill(&self, template: &str) -> String {
        let mut path = String::new();
        for segment in template.split('/').filter(|s| !s.is_empty()) {
            path.push('/');
            match segment.strip_prefix('{').and_then(|s| s.strip_suffix('}')) {
                Some(name) => {
                    path.push_str(&self.data.get(name).map(params::text).unwrap_or_default())
                }
                None => path.push_str(segment),
            }
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || "/.-_:@".contains(c);
        match path.as_str() {
            "" => "/".to_owned(),
            p if p.chars().all(fits) => self.local(path),
            _ => String::new(),
        }
    }

    /// `localhost` is checked as the node it stands for.
    fn local(&self, path: String) -> String {
        match path.strip_prefix("/nodes/localhost") {
            Some(rest) => format!("/nodes/{}{rest}", self.state.local_node()),
            None => path,
        }
    }

    fn userid(&self) -> String {
        self.data.get("userid").map(params::text).unwrap_or_default()
    }

    fn userid_param(&self, rest: &[Value]) -> Result<(), Failure> {
        let user = self.userid();
        match rest.first().and_then(Value::as_str) {
            // A token is not the user itself.
            Some("self") if user == self.login.user && self.login.token.is_none() => Ok(()),
            Some(privilege) if privilege != "self" => {
                let realm = user.rsplit_once('@').map_or("", |(_, r)| r);
                let path = format!("/access/realm/{realm}");
                if any(self.state, self.login, &path, &[privilege]) {
                    Ok(())
                } else {
                    Err(Failure::forbidden(&format!("{path}, {privilege}")))
                }
            }
            _ => Err(Failure::forbidden("")),
        }
    }

    fn userid_group(&self, rest: &[Value]) -> Result<(), Failure> {
        let wanted: Vec<&str> = match rest.first() {
            Some(Value::Array(w)) => w.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if any(self.state, self.login, "/access/groups", &wanted) {
            return Ok(());
        }
        let groups = self.state.access.groups_of(&self.userid());
        let held = groups
            .iter()
            .any(|g| any(self.state, self.login, &format!("/access/groups/{g}"), &wanted));
        if held { Ok(()) } else { Err(Failure::forbidden("")) }
    }

    /// Who may change an access rule: with the right to give rights, or who
    /// owns what the path stands for.
    fn modify(&self, rest: &[Value]) -> Result<(), Failure> {
        let path =
            rest.first().and_then(Value::as_str).map(|t| self.fill_raw(t)).unwrap_or_default();
        let mut wanted = vec!["Permissions.Modify"];
        for (start, privilege) in [
            ("/storage", "Datastore.Allocate"),
            ("/vms", "VM.Allocate"),
            ("/pool", "Pool.Allocate"),
        ] {
            if path.starts_with(start) {
                wanted.push(privilege);
            }
        }
        if any(self.state, self.login, &path, &wanted) {
            Ok(())
        } else {
            Err(Failure::forbidden(&format!("{path}, {}", wanted.join("|"))))
        }
    }

    fn fill_raw(&self, template: &str) -> String {
        let name = template.trim_matches(['{', '}']);
        self.data.get(name).map(params::text).unwrap_or_default()
    }
}
