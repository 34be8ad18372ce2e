//! Classification: what a call can do to the estate, by method, path and parameters.

use std::collections::BTreeSet;

use super::{
    Class, Flag, Method, Operation,
    api::{API, Kind},
    conditions::{Call, Param},
    facts::Facts,
    normal,
    redact::is_secret,
    rules::{Effect, ParamRule, When},
};
use crate::{
    Code, Error, Result,
    pve::{Params, loose},
};

/// What the rules make of a call.
#[derive(Debug, Clone)]
pub struct Classification {
    /// The highest class of any rule that spoke.
    pub class: Class,
    /// Why the call is never sent, where it is not.
    pub never: Option<Error>,
    /// The categories of CRITICAL, in order of precedence.
    pub categories: BTreeSet<Flag>,
    /// What each rule that spoke says.
    pub reasons: Vec<String>,
    /// Whether the change can cut the way to the node.
    pub may_cut_access: bool,
    /// The endpoint; `None` when this version does not know it.
    pub template: Option<&'static str>,
    /// The parameters as they are judged and sent, or why they cannot be read.
    pub params: Result<Params>,
}

impl Classification {
    /// A read without a rule.
    pub(super) fn none() -> Self {
        Self {
            class: Class::Read,
            never: None,
            categories: BTreeSet::new(),
            reasons: Vec::new(),
            may_cut_access: false,
            template: None,
            params: Ok(Params::new()),
        }
    }

    /// The class as it is told: `NEVER` for what is never sent.
    #[must_use]
    pub fn class_text(&self) -> &'static str {
        if self.never.is_some() { "NEVER" } else { self.class.as_str() }
    }

    /// The first category in order of precedence.
    #[must_use]
    pub fn category(&self) -> Option<Flag> {
        self.categories.first().copied()
    }

    fn raise(&mut self, class: Class) {
        self.class = self.class.max(class);
    }

    /// Adds a category, and with it CRITICAL.
    pub fn critical(&mut self, flag: Flag, reason: String) {
        self.raise(Class::Critical);
        self.categories.insert(flag);
        self.reasons.push(format!("{reason} (CRITICAL/{})", flag.category()));
    }

    fn apply(&mut self, effect: Effect, reason: String) {
        match effect {
            Effect::Class(class) => {
                self.raise(class);
                self.reasons.push(format!("{reason} ({})", class.as_str()));
            }
            Effect::Critical(flag) => self.critical(flag, reason),
            Effect::OfPath => self.reasons.push(reason),
            Effect::Never => self.refuse(Code::EndpointRefused, reason),
            Effect::NeverTarget => self.refuse(Code::TargetRefused, reason),
        }
    }

    fn refuse(&mut self, code: Code, reason: String) {
        self.raise(Class::Critical);
        self.reasons.push(format!("{reason} (NEVER)"));
        if self.never.is_none() {
            let hint = match code {
                Code::TargetRefused => {
                    "give an address outside the node; a name is resolved by the node itself"
                }
                _ => instead(self.template.unwrap_or_default()),
            };
            self.never = Some(Error::new(code, format!("this is never sent: {reason}")).hint(hint));
        }
    }
}

/// What to take instead of an endpoint that is never sent.
fn instead(template: &str) -> &'static str {
    let last = template.rsplit('/').next().unwrap_or_default();
    match last {
        "exec" | "exec-status" => "take pve_vm_exec",
        "file-read" => "take pve_guest_file_read",
        "file-write" => "take pve_guest_file_write",
        "agent" => "take pve_vm_exec, pve_guest_file_read or pve_guest_file_write",
        "set-user-password" => {
            "set a password inside the guest by hand, or cipassword by pve_cloudinit_set"
        }
        "sendkey" | "monitor" => "take the power tools of pve_guest_*, or a console by hand",
        "remote_migrate" => "within the cluster, take pve_guest_migrate",
        "ticket" | "vncticket" | "auth-url" | "login" => {
            "this server signs in by its API token alone"
        }
        "start" | "stop" | "shutdown" | "resume" => {
            "leave the parameter out; it belongs to migration"
        }
        "download" => "take pve_backup_restore to get files back",
        "vzdump" => "leave stdout out: the backup goes to a storage",
        _ => "open it by hand in the web interface of Proxmox",
    }
}

/// Last names of paths that open a console, run code or take over a login, wherever a release puts them.
const NEVER_NAMES: [&str; 17] = [
    "termproxy",
    "vncshell",
    "vncproxy",
    "spiceshell",
    "spiceproxy",
    "vncwebsocket",
    "mtunnel",
    "mtunnelwebsocket",
    "monitor",
    "execute",
    "exec",
    "exec-status",
    "file-read",
    "file-write",
    "set-user-password",
    "sendkey",
    "dbus-vmstate",
];

/// Classifies a call. Answers that are missing from `facts` count as the worse ones.
#[must_use]
pub fn classify(op: &Operation, facts: &Facts) -> Classification {
    let endpoint = API.find(&op.path);
    let mut found = Classification {
        template: endpoint.map(|e| e.template),
        params: Ok(op.params.clone()),
        ..Classification::none()
    };
    let known = endpoint.and_then(|e| e.action(op.method).map(|a| (e, a)));
    let Some((endpoint, action)) = known else {
        unknown(op, &mut found);
        return found;
    };
    found.params = normal::normalise(&op.path, endpoint, action, &op.params);
    let params = found.params.clone().unwrap_or_else(|_| op.params.clone());
    let call = Call { method: op.method, path: &op.path, endpoint, action, params: &params, facts };
    if let Some(rule) = action.rule {
        let place = format!("{} {}", op.method.as_str(), endpoint.template);
        let reason = if rule.why.is_empty() { place } else { format!("{place}: {}", rule.why) };
        found.apply(rule.effect, reason);
    }
    for rule in &action.param_rules {
        speak(rule, &call, &mut found);
    }
    unknown_options(&call, &mut found);
    found.may_cut_access = found.class > Class::Read && may_cut_access(&call);
    found
}

fn unknown(op: &Operation, found: &mut Classification) {
    let last = op.path.segments().last().unwrap_or_default();
    if NEVER_NAMES.contains(&last) {
        found.apply(Effect::Never, format!("{last}: a console, a shell or code in a guest"));
    }
    let what = if found.template.is_some() { "the method of this path" } else { "this path" };
    found.critical(
        Flag::Unknown,
        format!(
            "{} {}: {what} is not in the API that this version knows",
            op.method.as_str(),
            op.path
        ),
    );
}

fn speak(rule: &ParamRule, call: &Call<'_>, found: &mut Classification) {
    if let When::Once(holds) = rule.when {
        if holds(call) {
            let given = call.params.iter().map(|(name, _)| name).find(|name| rule.names(name));
            let about = given.unwrap_or(rule.about());
            found.apply(rule.effect, format!("{about}: {}", rule.why));
        }
        return;
    }
    for (name, value) in call.params.iter().filter(|(name, _)| rule.names(name)) {
        let switch = |wanted: bool| {
            // What is no boolean was refused already; until then it counts as the worse.
            value
                .values()
                .iter()
                .any(|v| crate::pve::params::boolean(v).is_none_or(|on| on == wanted))
        };
        let speaks = match rule.when {
            When::Given => true,
            When::True => switch(true),
            When::False => switch(false),
            When::Each(holds) => holds(call, &Param { name, value }),
            When::Once(_) => false,
        };
        if speaks {
            // What follows the name of a secret and a colon is masked as its value.
            let about = if is_secret("", name) { format!("{name} given") } else { name.to_owned() };
            found.apply(rule.effect, format!("{about}: {}", rule.why));
        }
    }
}

/// Options of guests that this version does not know could open the host, so
/// they count as unknown; elsewhere the server refuses an unknown parameter.
fn unknown_options(call: &Call<'_>, found: &mut Classification) {
    let config = matches!(
        call.endpoint.template,
        "/nodes/{node}/qemu/{vmid}/config" | "/nodes/{node}/lxc/{vmid}/config"
    );
    let create = matches!(call.endpoint.template, "/nodes/{node}/qemu" | "/nodes/{node}/lxc");
    if call.method == Method::Get || !(config || create) {
        return;
    }
    for (name, value) in call.params.iter() {
        match call.action.kind(name) {
            None if config && !call.action.param_rules.iter().any(|r| r.names(name)) => {
                let near = call.action.nearest(name);
                let near = near.map(|n| format!("; the nearest is {n}")).unwrap_or_default();
                found.critical(
                    Flag::Unknown,
                    format!("{name}: not an option of this API version{near}"),
                );
            }
            Some(Kind::Property(number)) => {
                let Some(format) = API.format(number) else { continue };
                let parts = Param { name, value }.parts(call);
                for key in parts.unknown_keys(format) {
                    found.critical(Flag::Unknown, format!("{name}: the key {key} is not known"));
                }
            }
            _ => {}
        }
    }
}

/// Whether a change can cut the way to the node without touching an identity.
fn may_cut_access(call: &Call<'_>) -> bool {
    let template = call.endpoint.template;
    let named = |name: &str| {
        let wanted = |v: &str| v.eq_ignore_ascii_case(name);
        call.variable("name").is_some_and(wanted)
            || ["name", "rename"].iter().any(|p| call.params.text(p).is_some_and(wanted))
    };
    if let Some(rest) = template.strip_prefix("/cluster/firewall/") {
        return match rest.split('/').next() {
            Some("options" | "rules" | "groups") => true,
            Some("ipset") => named("management"),
            Some("aliases") => named("local_network"),
            _ => false,
        };
    }
    if template.starts_with("/cluster/config") {
        return true;
    }
    let Some(rest) = template.strip_prefix("/nodes/{node}/") else { return false };
    match rest.split('/').next() {
        Some("firewall" | "certificates" | "hosts") => true,
        Some("status") => power_cuts_access(call),
        // Taking pending changes back leaves the network as it is.
        Some("network") => !(call.method == Method::Delete && rest == "network"),
        Some("services") => call.service_is(&[
            "pveproxy",
            "pvedaemon",
            "pve-cluster",
            "corosync",
            "sshd",
            "ssh",
            "networking",
            "pve-firewall",
            "proxmox-firewall",
        ]),
        _ => false,
    }
}

/// A cluster that loses its quorum answers no change any more, and a node that
/// stands alone does not come back from a shutdown by itself. A node that
/// reboots in a cluster that keeps its quorum cuts nothing.
fn power_cuts_access(call: &Call<'_>) -> bool {
    let Ok(rows) = call.facts.ask(&["cluster", "status"], Params::new()) else { return true };
    let rows = loose::rows(rows);
    let nodes = rows.iter().filter(|r| loose::str(r, "type") == Some("node"));
    let online = nodes.clone().filter(|r| loose::flag(r, "online")).count();
    let nodes = nodes.count();
    if nodes <= 1 {
        return call.params.text("command") != Some("reboot");
    }
    online.saturating_sub(1) * 2 <= nodes
}

#[cfg(test)]
#[path = "class_tests.rs"]
mod tests;
