//! Changes that could lock this server's own identity out: always refused, in
//! a dry run too. Who we are is the token's; our groups, roles and access
//! control entries are asked of Proxmox, and where they cannot be read every
//! change to any of those is refused.

use std::{collections::BTreeSet, path::Path, sync::LazyLock};

use serde_json::Value;

use super::{
    Class, Method, Operation,
    conditions::{Call, access},
    guests::Touched,
    nodes,
};
use crate::{
    Code, Error, Result,
    config::{ApiToken, Config},
    pve::{Params, Vmid, loose, params::split_list},
};

/// Most ids of `PROXMOX_SELF_VMIDS` that are looked through.
const MOST_OWN: usize = 1_000;

/// The administrator that must stay as it is, whoever we are.
const ROOT: &str = "root@pam";

/// Who this server is to Proxmox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `user@realm`.
    pub user: String,
    /// The token's name.
    pub token: String,
}

impl Identity {
    /// From a token id, `user@realm!name`.
    #[must_use]
    pub fn of(token: &ApiToken) -> Self {
        let (user, name) = token.id.split_once('!').unwrap_or((&token.id, ""));
        Self { user: user.to_owned(), token: name.to_owned() }
    }

    fn realm(&self) -> &str {
        self.user.rsplit_once('@').map_or("", |(_, realm)| realm)
    }

    /// Whether a user id is ours or the administrator's, in any case.
    fn is_user(&self, id: &str) -> bool {
        let id = decoded(id);
        [self.user.as_str(), ROOT].iter().any(|own| own.eq_ignore_ascii_case(&id))
    }

    /// Whether a full token id belongs to us or the administrator.
    fn is_token(&self, id: &str) -> bool {
        self.is_user(decoded(id).split('!').next().unwrap_or_default())
    }

    fn is_realm(&self, realm: &str) -> bool {
        let realm = realm.trim();
        realm.eq_ignore_ascii_case(self.realm()) || realm.eq_ignore_ascii_case("pam")
    }
}

/// What is ours by way of others.
struct Standing<'a> {
    groups: BTreeSet<String>,
    /// The entries that name us, our token or a group of ours.
    entries: Vec<&'a Value>,
}

impl Standing<'_> {
    fn roles(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|e| loose::str(e, "roleid"))
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|e| loose::str(e, "path"))
    }
}

/// Asks Proxmox for our groups and entries; `None` where the token may not read them all.
fn standing<'a>(call: &Call<'a>, own: &Identity) -> Option<Standing<'a>> {
    let user = call.facts.ask(&["access", "users", &own.user], Params::new());
    let rows = call.facts.ask(&["access", "acl"], Params::new());
    let permissions = call.facts.ask(&["access", "permissions"], Params::new());
    let user = user.ok().filter(|u| u.is_object())?;
    let groups: BTreeSet<String> = match user.get("groups") {
        Some(Value::Array(groups)) => {
            groups.iter().filter_map(|g| g.as_str().map(str::to_owned)).collect()
        }
        Some(Value::String(groups)) => split_list(groups).map(str::to_owned).collect(),
        _ => BTreeSet::new(),
    };
    // Without the right to audit /access the list shows a part, which proves nothing.
    let permissions = permissions.ok()?;
    let audits = ["/access", "/"].iter().any(|path| {
        permissions
            .get(path)
            .is_some_and(|p| p.get("Sys.Audit").is_some() || p.get("Permissions.Modify").is_some())
    });
    let rows = loose::rows(rows.ok().filter(|_| audits)?);
    let ours = |entry: &&Value| {
        let id = loose::str(entry, "ugid").unwrap_or_default();
        match loose::str(entry, "type") {
            Some("group") => groups.contains(id),
            Some("token") => own.is_token(id),
            _ => own.is_user(id),
        }
    };
    let entries: Vec<&Value> = rows.iter().filter(ours).collect();
    // Nobody but root@pam can ask without an entry: a list without ours is not the whole.
    (!entries.is_empty() || own.user == ROOT).then_some(Standing { groups, entries })
}

fn refused(what: impl Into<String>) -> Error {
    Error::new(Code::SelfLockout, what)
        .hint("this could end the access of this server or of root@pam; a person has to do it in the web interface of Proxmox")
}

/// Refuses what could lock the server out.
///
/// # Errors
/// `self_lockout`.
pub fn check(config: &Config, call: &Call<'_>, class: Class, touched: &Touched) -> Result<()> {
    if class == Class::Read {
        return Ok(());
    }
    own_guest(config, call, touched)?;
    let Some(token) = &config.token else { return Ok(()) };
    let own = Identity::of(token);
    let template = call.endpoint.template;
    if template.starts_with("/access/") {
        return of_access(call, &own);
    }
    if template.starts_with("/cluster/jobs/realm-sync") {
        return of_realm_job(call, &own);
    }
    if template.starts_with("/pools") {
        return of_pool(call, &own);
    }
    let factors = ["webauthn", "u2f"];
    if template == "/cluster/options"
        && (factors.iter().any(|f| call.params.has(f))
            || call.params.members("delete").any(|d| factors.contains(&d)))
    {
        return Err(refused(
            "the second factor settings of the datacenter are part of every login",
        ));
    }
    Ok(())
}

/// As [`check`], for an endpoint that this version does not know: what names
/// our user or a token of it is refused.
///
/// # Errors
/// `self_lockout`.
pub fn check_unknown(config: &Config, op: &Operation) -> Result<()> {
    let Some(token) = &config.token else { return Ok(()) };
    let own = Identity::of(token);
    let first = op.path.segments().next();
    let named = op.path.segments().any(|s| own.is_token(s))
        || op.params.iter().any(|(_, v)| v.members().any(|m| own.is_token(m)));
    if first == Some("access") && named {
        return Err(refused("it names this server's own user or root@pam"));
    }
    Ok(())
}

fn of_access(call: &Call<'_>, own: &Identity) -> Result<()> {
    let rest = call.endpoint.template.trim_start_matches("/access/");
    let params = call.params;
    match rest.split('/').next().unwrap_or_default() {
        "users" | "tfa" => {
            let id = call.variable("userid").or_else(|| params.text("userid"));
            if id.is_none_or(|id| own.is_user(id)) {
                return Err(refused(
                    "it changes this server's own user or root@pam, or their tokens",
                ));
            }
            // Who joins a group changes the group.
            if params.members("groups").next().is_some() {
                let standing = known(call, own, "group")?;
                let joins =
                    |id: &str| standing.groups.iter().any(|g| g.eq_ignore_ascii_case(id.trim()));
                if params.members("groups").any(joins) {
                    return Err(refused("this server's own user is in the group that is joined"));
                }
            }
        }
        "password" if params.text("userid").is_none_or(|id| own.is_user(id)) => {
            return Err(refused("it sets the password of this server's own user or root@pam"));
        }
        "domains" => {
            let realm = call.variable("realm").or_else(|| params.text("realm"));
            if realm.is_none_or(|realm| own.is_realm(realm)) {
                return Err(refused(
                    "it changes the realm by which this server or root@pam signs in",
                ));
            }
            known(call, own, "realm")?;
        }
        "groups" => {
            let id = call.variable("groupid").or_else(|| params.text("groupid"));
            let standing = known(call, own, "group")?;
            if id.is_none_or(|id| standing.groups.iter().any(|g| g.eq_ignore_ascii_case(id.trim())))
            {
                return Err(refused("this server's own user is in the group"));
            }
        }
        "roles" => {
            let id = call.variable("roleid").or_else(|| params.text("roleid"));
            let standing = known(call, own, "role")?;
            if id.is_none_or(|id| standing.roles().any(|r| r.eq_ignore_ascii_case(id.trim()))) {
                return Err(refused("this server holds the role"));
            }
        }
        "acl" => return of_acl(call, own),
        _ => {}
    }
    Ok(())
}

/// What is ours, or the refusal where it cannot be read.
fn known<'a>(call: &Call<'a>, own: &Identity, kind: &str) -> Result<Standing<'a>> {
    standing(call, own).ok_or_else(|| {
        refused(format!("whether this {kind} is this server's own cannot be read"))
            .hint("give the token Sys.Audit on /access, so that its own groups and entries can be told from others")
    })
}

fn of_acl(call: &Call<'_>, own: &Identity) -> Result<()> {
    let params = call.params;
    let path = access::folded(params.text("path").unwrap_or_default());
    if params.members("users").any(|id| own.is_user(id)) {
        return Err(refused("the entry names this server's own user or root@pam"));
    }
    if params.members("tokens").any(|id| own.is_token(id)) {
        return Err(refused("the entry names a token of this server's own user or of root@pam"));
    }
    if path == "/" && params.flag("delete") == Some(true) {
        return Err(refused("it deletes an entry of /"));
    }
    let standing = known(call, own, "entry")?;
    let own_group = |id: &str| standing.groups.iter().any(|g| g.eq_ignore_ascii_case(id));
    if params.members("groups").any(own_group) {
        return Err(refused("the entry names a group that this server's own user is in"));
    }
    Ok(())
}

fn of_realm_job(call: &Call<'_>, own: &Identity) -> Result<()> {
    let stored = call.variable("id").and_then(|id| {
        let job = call.facts.ask(&["cluster", "jobs", "realm-sync", id], Params::new()).ok()?;
        loose::text(job, "realm")
    });
    let given = call.params.text("realm").map(str::to_owned);
    let realms: Vec<String> = given.into_iter().chain(stored).collect();
    if realms.is_empty() || realms.iter().any(|realm| own.is_realm(realm)) {
        return Err(refused(
            "the job synchronises the realm by which this server or root@pam signs in",
        ));
    }
    known(call, own, "realm").map(|_| ())
}

/// An id without blanks around it, and with what was percent-encoded decoded:
/// whoever encodes it means the same user.
fn decoded(id: &str) -> String {
    percent_encoding::percent_decode_str(id.trim()).decode_utf8_lossy().trim().to_owned()
}

/// Pools whose entries give us rights: members may not leave, the pool may not go.
fn of_pool(call: &Call<'_>, own: &Identity) -> Result<()> {
    let removes = call.method == Method::Delete
        || call.params.flag("delete") == Some(true)
        || call.params.flag("allow-move") == Some(true);
    if !removes {
        return Ok(());
    }
    if call.params.flag("allow-move") == Some(true) {
        leave_their_pools(call, own)?;
    }
    let Some(pool) = call.variable("poolid").or_else(|| call.params.text("poolid")) else {
        return Ok(());
    };
    // A pool gives rights by its own entries, and by those of the pools it is in.
    let below = access::folded(&format!("/pool/{pool}"));
    let standing = known(call, own, "pool")?;
    let gives = |path: &str| {
        access::covers_pool(path, pool) || access::folded(path).starts_with(&format!("{below}/"))
    };
    if standing.paths().any(gives) {
        return Err(refused("the pool gives this server its rights on the members"));
    }
    Ok(())
}

/// A guest that is moved into a pool leaves the one that it is in now.
fn leave_their_pools(call: &Call<'_>, own: &Identity) -> Result<()> {
    let standing = known(call, own, "pool")?;
    for member in call.params.members("vms") {
        let row = Vmid::parse(member).ok().and_then(|vmid| call.facts.guest(vmid));
        let Some(row) = row else {
            return Err(refused("the pool that a moved guest is in now cannot be seen"));
        };
        if let Some(pool) = loose::str(row, "pool")
            && standing.paths().any(|path| access::covers_pool(path, pool))
        {
            return Err(refused(
                "the pool that it leaves gives this server its rights on the guest",
            ));
        }
    }
    Ok(())
}

/// The guest in which this server runs.
fn own_guest(config: &Config, call: &Call<'_>, touched: &Touched) -> Result<()> {
    let told = |vmid: &&Vmid| config.self_vmids.contains(**vmid) && !touched.spared.contains(*vmid);
    if let Some(vmid) = touched.vmids.iter().find(told) {
        return Err(runs_here(*vmid));
    }
    // Of those that are told each has to be spared.
    if touched.acts_on_all
        && !config.self_vmids.is_empty()
        && !is_out_of_reach(config, call, touched)
    {
        return Err(refused("it acts on every guest, and this server runs in one of them"));
    }
    let macs = &*OWN_MACS;
    if macs.is_empty() {
        return Ok(());
    }
    for vmid in &touched.vmids {
        if has_mac(call, *vmid, macs) {
            return Err(runs_here(*vmid));
        }
    }
    Ok(())
}

/// Whether the guests in which this server runs are spared, or on another node than the one that
/// the call is about. Where they cannot be found they may be anywhere.
fn is_out_of_reach(config: &Config, call: &Call<'_>, touched: &Touched) -> bool {
    let node = call.variable("node").map(|node| nodes::resolve(call, node));
    let Ok(rows) = call.facts.guests() else {
        return config
            .self_vmids
            .at_least(0)
            .take(MOST_OWN)
            .all(|id| Vmid::new(id.into()).is_ok_and(|vmid| touched.spared.contains(&vmid)));
    };
    let own = |row: &&Value| {
        let vmid = loose::uint(row, "vmid").and_then(|n| Vmid::new(n).ok());
        vmid.filter(|vmid| config.self_vmids.contains(*vmid))
    };
    let found: Vec<(Vmid, Option<&str>)> =
        rows.iter().filter_map(|row| Some((own(&row)?, loose::str(row, "node")))).collect();
    let away = |vmid: Vmid| {
        touched.spared.contains(&vmid)
            || found.iter().any(|(own, place)| {
                let place = node.as_deref().zip(*place);
                *own == vmid && place.is_some_and(|(node, place)| node != place)
            })
    };
    // One that this token cannot see may be anywhere.
    config.self_vmids.at_least(0).take(MOST_OWN).all(|id| Vmid::new(id.into()).is_ok_and(away))
}

/// As [`check`], for what is done inside a guest.
///
/// # Errors
/// `self_lockout`.
pub fn check_guest(config: &Config, vmid: Vmid, guest: Option<&Value>) -> Result<()> {
    let here = guest.is_some_and(|guest| config_has_mac(guest, &OWN_MACS));
    if here || config.self_vmids.contains(vmid) {
        return Err(runs_here(vmid));
    }
    Ok(())
}

fn runs_here(vmid: Vmid) -> Error {
    Error::new(Code::SelfLockout, format!("this server itself runs in guest {vmid}"))
        .hint("change that guest by hand, or run this server somewhere else")
        .with("vmid", vmid.get())
}

/// Whether a guest's configuration has one of these MAC addresses.
fn has_mac(call: &Call<'_>, vmid: Vmid, macs: &BTreeSet<String>) -> bool {
    let number = vmid.to_string();
    let here = (call.variable("node"), call.kind(), call.variable("vmid"));
    let config = match here {
        (Some(node), Some(kind), Some(in_path)) if in_path == number => {
            call.facts.guest_config(node, kind, in_path)
        }
        _ => {
            let Some(row) = call.facts.guest(vmid) else { return false };
            let (Some(node), Some(kind)) = (loose::str(row, "node"), loose::str(row, "type"))
            else {
                return false;
            };
            call.facts.guest_config(node, kind, &number)
        }
    };
    config.is_ok_and(|config| config_has_mac(config, macs))
}

fn config_has_mac(config: &Value, macs: &BTreeSet<String>) -> bool {
    config.as_object().into_iter().flatten().any(|(key, value)| {
        super::api::indexed(key) == Some("net")
            && value.as_str().is_some_and(|text| {
                text.split(',')
                    .filter_map(|p| p.split_once('='))
                    .any(|(_, v)| macs.contains(&v.to_ascii_lowercase()))
            })
    })
}

/// The MAC addresses of this machine, in lower case. Only Linux tells them without help.
static OWN_MACS: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| macs_below(Path::new("/sys/class/net")));

fn macs_below(dir: &Path) -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return BTreeSet::new() };
    entries
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("address")).ok())
        .map(|text| text.trim().to_ascii_lowercase())
        .filter(|mac| mac.len() == 17 && mac != "00:00:00:00:00:00")
        .collect()
}

#[cfg(test)]
#[path = "lockout_tests.rs"]
mod tests;
