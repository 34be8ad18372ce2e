//! Users, tokens, groups, roles and access rules, and the privileges they give.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::api::login::Login;

/// All privileges of the release.
pub(crate) const PRIVILEGES: [&str; 47] = [
    "Datastore.Allocate",
    "Datastore.AllocateSpace",
    "Datastore.AllocateTemplate",
    "Datastore.Audit",
    "Group.Allocate",
    "Mapping.Audit",
    "Mapping.Modify",
    "Mapping.Use",
    "Permissions.Modify",
    "Pool.Allocate",
    "Pool.Audit",
    "Realm.Allocate",
    "Realm.AllocateUser",
    "SDN.Allocate",
    "SDN.Audit",
    "SDN.Use",
    "Sys.AccessNetwork",
    "Sys.Audit",
    "Sys.Console",
    "Sys.Incoming",
    "Sys.Modify",
    "Sys.PowerMgmt",
    "Sys.Syslog",
    "User.Modify",
    "VM.Allocate",
    "VM.Audit",
    "VM.Backup",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Cloudinit",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.Console",
    "VM.GuestAgent.Audit",
    "VM.GuestAgent.FileRead",
    "VM.GuestAgent.FileSystemMgmt",
    "VM.GuestAgent.FileWrite",
    "VM.GuestAgent.Unrestricted",
    "VM.Migrate",
    "VM.PowerMgmt",
    "VM.Replicate",
    "VM.Snapshot",
    "VM.Snapshot.Rollback",
];

/// Privileges that PVEAdmin lacks.
const NOT_ADMIN: [&str; 7] = [
    "Mapping.Modify",
    "Permissions.Modify",
    "Realm.Allocate",
    "Sys.AccessNetwork",
    "Sys.Incoming",
    "Sys.Modify",
    "Sys.PowerMgmt",
];

const SMALL_ROLES: [(&str, &str); 14] = [
    ("NoAccess", ""),
    (
        "PVEAuditor",
        "Datastore.Audit,Mapping.Audit,Pool.Audit,SDN.Audit,Sys.Audit,VM.Audit,VM.GuestAgent.Audit",
    ),
    (
        "PVEDatastoreAdmin",
        "Datastore.Allocate,Datastore.AllocateSpace,Datastore.AllocateTemplate,Datastore.Audit",
    ),
    ("PVEDatastoreUser", "Datastore.AllocateSpace,Datastore.Audit"),
    ("PVEMappingAdmin", "Mapping.Audit,Mapping.Modify,Mapping.Use"),
    ("PVEMappingUser", "Mapping.Audit,Mapping.Use"),
    ("PVEPoolAdmin", "Pool.Allocate,Pool.Audit"),
    ("PVEPoolUser", "Pool.Audit"),
    ("PVESDNAdmin", "SDN.Allocate,SDN.Audit,SDN.Use"),
    ("PVESDNUser", "SDN.Audit,SDN.Use"),
    ("PVESysAdmin", "Sys.Audit,Sys.Console,Sys.Syslog"),
    ("PVETemplateUser", "VM.Audit,VM.Clone"),
    ("PVEUserAdmin", "Group.Allocate,Realm.AllocateUser,User.Modify"),
    (
        "PVEVMUser",
        "VM.Audit,VM.Backup,VM.Config.CDROM,VM.Config.Cloudinit,VM.Console,VM.GuestAgent.Audit,\
         VM.GuestAgent.FileRead,VM.GuestAgent.FileSystemMgmt,VM.GuestAgent.FileWrite,VM.PowerMgmt",
    ),
];

/// An API token.
#[derive(Debug, Clone, Default)]
pub struct Token {
    /// Its secret.
    pub secret: String,
    /// Has only the privileges of its own access rules.
    pub privsep: bool,
    /// Unix seconds, 0 for never.
    pub expire: i64,
    /// The comment, empty for none.
    pub comment: String,
}

/// A user.
#[derive(Debug, Clone)]
pub struct User {
    /// Whether it may log in.
    pub enable: bool,
    /// Unix seconds, 0 for never.
    pub expire: i64,
    /// `comment`, `email`, `firstname`, `lastname`.
    pub texts: BTreeMap<String, String>,
    /// Its tokens by name.
    pub tokens: BTreeMap<String, Token>,
    /// Its password, where the estate knows one.
    pub password: Option<String>,
}

impl Default for User {
    fn default() -> Self {
        Self {
            enable: true,
            expire: 0,
            texts: BTreeMap::new(),
            tokens: BTreeMap::new(),
            password: None,
        }
    }
}

/// A group.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// The comment, empty for none.
    pub comment: String,
    /// Its users.
    pub users: Vec<String>,
}

/// A role.
#[derive(Debug, Clone, Default)]
pub struct Role {
    /// Its privileges.
    pub privileges: Vec<String>,
    /// Comes with the system.
    pub special: bool,
}

/// An access rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The path.
    pub path: String,
    /// `user`, `group` or `token`.
    pub kind: &'static str,
    /// The user, group or token.
    pub who: String,
    /// The role.
    pub role: String,
    /// Holds below the path, too.
    pub propagate: bool,
}

/// Everything about access.
#[derive(Debug, Clone)]
pub struct Access {
    /// All privileges of the release.
    pub all: Vec<String>,
    /// Users by `name@realm`.
    pub users: BTreeMap<String, User>,
    /// Groups by id.
    pub groups: BTreeMap<String, Group>,
    /// Roles by id.
    pub roles: BTreeMap<String, Role>,
    /// Access rules.
    pub rules: Vec<Rule>,
    /// Tickets that were given out, with their users.
    pub tickets: BTreeMap<String, String>,
    /// The identities that [`crate::Sim::token`] knows: name to user and token name.
    pub known: BTreeMap<String, (String, String)>,
}

impl Default for Access {
    fn default() -> Self {
        let role = |list: &str| Role {
            privileges: list.split(',').filter(|p| !p.is_empty()).map(str::to_owned).collect(),
            special: true,
        };
        let mut roles: BTreeMap<String, Role> =
            SMALL_ROLES.iter().map(|(id, list)| ((*id).to_owned(), role(list))).collect();
        let of = |filter: &dyn Fn(&&str) -> bool| Role {
            privileges: PRIVILEGES.iter().filter(|p| filter(p)).map(|p| (*p).to_owned()).collect(),
            special: true,
        };
        roles.insert("Administrator".to_owned(), of(&|_| true));
        roles.insert("PVEAdmin".to_owned(), of(&|p| !NOT_ADMIN.contains(p)));
        roles.insert("PVEVMAdmin".to_owned(), of(&|p| p.starts_with("VM.")));
        let mut users = BTreeMap::new();
        users.insert("root@pam".to_owned(), User::default());
        Self {
            all: PRIVILEGES.iter().map(|p| (*p).to_owned()).collect(),
            users,
            groups: BTreeMap::new(),
            roles,
            rules: Vec::new(),
            tickets: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }
}

/// Whether a privilege of this name exists.
pub(crate) fn is_privilege(name: &str) -> bool {
    PRIVILEGES.contains(&name)
}

/// A secret in the form of a UUID that nobody can guess from another run.
pub(crate) fn secret() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let hash = Sha256::new()
        .chain_update(now.as_nanos().to_le_bytes())
        .chain_update(std::process::id().to_le_bytes())
        .chain_update(COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes())
        .finalize();
    uuid(&hash)
}

/// The first 16 bytes as a UUID.
pub(crate) fn uuid(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().take(16).map(|b| format!("{b:02x}")).collect();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or("").to_owned();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

impl Access {
    /// Adds a user with a token, known to [`crate::Sim::token`] by `who`.
    pub(crate) fn add_token(&mut self, who: &str, user: &str, token: &str, privsep: bool) {
        let made = Token { secret: secret(), privsep, ..Token::default() };
        self.users.entry(user.to_owned()).or_default().tokens.insert(token.to_owned(), made);
        self.known.insert(who.to_owned(), (user.to_owned(), token.to_owned()));
    }

    /// Adds an access rule for a user (or `user!token`, or `@group`).
    pub(crate) fn grant(&mut self, path: &str, who: &str, role: &str) {
        let (kind, who) = match who.strip_prefix('@') {
            Some(group) => ("group", group),
            None if who.contains('!') => ("token", who),
            None => ("user", who),
        };
        let (path, who, role) = (path.to_owned(), who.to_owned(), role.to_owned());
        self.rules.push(Rule { path, kind, who, role, propagate: true });
    }

    pub(crate) fn known_token(&self, who: &str) -> Option<(String, String)> {
        let (user, token) = self.known.get(who)?;
        let secret = self.users.get(user)?.tokens.get(token)?.secret.clone();
        Some((format!("{user}!{token}"), secret))
    }

    /// The identity of `user@realm!name=secret`, if it is right.
    pub(crate) fn token_login(&self, text: &str, now: i64) -> Option<Login> {
        let (full, secret) = text.split_once('=')?;
        let (user, name) = full.split_once('!')?;
        let lives = |expire: i64| expire == 0 || expire > now;
        let account = self.users.get(user).filter(|u| u.enable && lives(u.expire))?;
        let token = account.tokens.get(name).filter(|t| lives(t.expire))?;
        (token.secret == secret)
            .then(|| Login { user: user.to_owned(), token: Some(name.to_owned()) })
    }

    pub(crate) fn ticket_user(&self, ticket: &str) -> Option<String> {
        self.tickets.get(ticket).cloned()
    }

    /// The token against cross-site requests that belongs to a user's tickets.
    pub(crate) fn csrf(user: &str) -> String {
        let hash = Sha256::digest(format!("csrf {user}"));
        format!("6B0CBD8F:{}", hash.iter().map(|b| format!("{b:02x}")).collect::<String>())
    }

    pub(crate) fn csrf_fits(&self, user: &str, given: &str) -> bool {
        Self::csrf(user) == given
    }

    /// The groups of a user.
    pub(crate) fn groups_of(&self, user: &str) -> Vec<String> {
        let has = |g: &&Group| g.users.iter().any(|u| u == user);
        self.groups.iter().filter(|(_, g)| has(g)).map(|(id, _)| id.clone()).collect()
    }

    /// Whether an identity has any of these privileges at a path: the quick
    /// form of [`Access::privileges`], which lists ask for every row.
    pub(crate) fn holds(&self, login: &Login, path: &str, wanted: &[&str]) -> bool {
        let by_roles = |kind: &str, who: &str, privilege: &str| {
            let has = |(role, _): &(String, bool)| {
                self.roles.get(role).is_some_and(|r| r.privileges.iter().any(|p| p == privilege))
            };
            self.roles_at(path, kind, who).iter().any(has)
        };
        let user_has = |p: &str| {
            if login.user == "root@pam" {
                self.all.iter().any(|a| a == p)
            } else {
                by_roles("user", &login.user, p)
            }
        };
        match self.separate(login) {
            true => wanted.iter().any(|p| by_roles("token", &login.full(), p) && user_has(p)),
            false => wanted.iter().any(|p| user_has(p)),
        }
    }

    /// Whether a token has only the privileges of its own rules.
    fn separate(&self, login: &Login) -> bool {
        let token = login.token.as_ref().and_then(|t| self.users.get(&login.user)?.tokens.get(t));
        token.is_some_and(|t| t.privsep)
    }

    /// Privileges of an identity at a path, with whether they propagate.
    pub(crate) fn privileges(&self, login: &Login, path: &str) -> BTreeMap<String, bool> {
        let of_user = || {
            if login.user == "root@pam" {
                return self.all.iter().map(|p| (p.clone(), true)).collect();
            }
            self.expand(&self.roles_at(path, "user", &login.user))
        };
        if !self.separate(login) {
            return of_user();
        }
        let mut held = self.expand(&self.roles_at(path, "token", &login.full()));
        let limit: BTreeMap<String, bool> = of_user();
        held.retain(|p, _| limit.contains_key(p));
        held
    }

    /// The roles at a path: the deepest rule that speaks wins, and at one path
    /// a user's own rules win over those of its groups.
    fn roles_at(&self, path: &str, kind: &str, who: &str) -> Vec<(String, bool)> {
        let groups = if kind == "user" { self.groups_of(who) } else { Vec::new() };
        let mut found: Vec<(String, bool)> = Vec::new();
        for place in prefixes(path) {
            let here = place == path;
            let speaks = |r: &&Rule| r.path == place && (here || r.propagate);
            let pick = |f: &dyn Fn(&Rule) -> bool| -> Vec<(String, bool)> {
                self.rules
                    .iter()
                    .filter(speaks)
                    .filter(|r| f(r))
                    .map(|r| (r.role.clone(), r.propagate))
                    .collect()
            };
            let own = pick(&|r| r.kind == kind && r.who == who);
            let by_group = pick(&|r| r.kind == "group" && groups.contains(&r.who));
            if !own.is_empty() {
                found = own;
            } else if !by_group.is_empty() {
                found = by_group;
            }
        }
        if found.iter().any(|(r, _)| r == "NoAccess") { Vec::new() } else { found }
    }

    fn expand(&self, roles: &[(String, bool)]) -> BTreeMap<String, bool> {
        let mut held = BTreeMap::new();
        for (role, propagate) in roles {
            for privilege in
                self.roles.get(role).map(|r| r.privileges.as_slice()).unwrap_or_default()
            {
                let entry = held.entry(privilege.clone()).or_insert(*propagate);
                *entry |= *propagate;
            }
        }
        held
    }
}

/// `/`, `/vms`, `/vms/100`.
fn prefixes(path: &str) -> Vec<String> {
    let mut all = vec!["/".to_owned()];
    let mut so_far = String::new();
    for segment in path.split('/').filter(|s| !s.is_empty()) {
        so_far.push('/');
        so_far.push_str(segment);
        all.push(so_far.clone());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(user: &str, token: Option<&str>) -> Login {
        Login { user: user.to_owned(), token: token.map(str::to_owned) }
    }

    #[test]
    fn the_deepest_rule_wins_and_tokens_are_limited() {
        let mut access = Access::default();
        access.add_token("t", "a@pve", "sep", true);
        access.grant("/", "a@pve", "PVEAdmin");
        access.grant("/vms/100", "a@pve", "NoAccess");
        access.grant("/", "a@pve!sep", "Administrator");
        let user = login("a@pve", None);
        assert!(access.privileges(&user, "/vms/101").contains_key("VM.PowerMgmt"));
        assert!(access.privileges(&user, "/vms/100").is_empty());
        let token = login("a@pve", Some("sep"));
        let held = access.privileges(&token, "/vms/101");
        assert!(held.contains_key("VM.PowerMgmt"));
        assert!(!held.contains_key("Permissions.Modify"), "the user lacks it");
    }
}
