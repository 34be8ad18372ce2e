//! Firewall options, and whether a firewall is in force at all.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::place::{Place, Scope};
use crate::{
    Error, Result,
    pve::{Params, config_line::Line, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        across::{members, same, same_digest, unchanged},
        change::Asked,
        outcome::told,
        validate,
    },
};

/// Levels of a firewall's log.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Emerg,
    Alert,
    Crit,
    Err,
    Warning,
    Notice,
    Info,
    Debug,
    Nolog,
}

impl Level {
    /// As Proxmox names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Emerg => "emerg",
            Level::Alert => "alert",
            Level::Crit => "crit",
            Level::Err => "err",
            Level::Warning => "warning",
            Level::Notice => "notice",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Nolog => "nolog",
        }
    }
}

/// Arguments of `pve_firewall_options`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Show {
    #[serde(flatten)]
    scope: Scope,
}

/// `pve_firewall_options`
pub async fn show(ctx: Ctx<'_>, args: Show) -> Result<Answer> {
    let place = Place::of(ctx, &args.scope).await?;
    if place.is_group() {
        return Err(Error::argument("a security group has no options")
            .hint("pve_firewall_rules with `group` shows its rules")
            .with("argument", "group"));
    }
    let options = ctx.get(&place.below(&["options"])).await?;
    let mut out = Map::new();
    out.insert("firewall".into(), place.name.clone().into());
    out.insert("options".into(), members(&options, &["digest"]));
    let (in_force, because) = in_force(ctx, &place, &args.scope, &options).await;
    out.insert("in_force".into(), in_force.into());
    if !because.is_empty() {
        out.insert("because".into(), because.into());
    }
    if named_nothing(&args.scope) {
        let groups = ctx.get(&["cluster", "firewall", "groups"]).await.ok();
        let groups = groups.as_deref().map(|rows| {
            let group = |g: &Value| json!({"group": loose::text(g, "group"), "comment": loose::text(g, "comment")});
            loose::rows(rows).iter().map(group).collect::<Vec<_>>()
        });
        out.insert("groups".into(), json!(groups));
    }
    out.insert("digest".into(), loose::text(&options, "digest").into());
    let heading = match in_force {
        Some(true) => format!("firewall of {}: in force", place.name),
        Some(false) => format!("firewall of {}: not in force", place.name),
        None => format!("firewall of {}", place.name),
    };
    Ok(Answer::new(out).heading(heading).untrusted(&["groups"]))
}

fn named_nothing(scope: &Scope) -> bool {
    scope.node.is_none() && scope.vmid.is_none() && scope.group.is_none() && scope.vnet.is_none()
}

/// Whether rules here do anything, and why not. The cluster's switch rules all;
/// a node's is on unless told off; a guest's is off unless told on, and each of
/// its network devices has one more.
async fn in_force(
    ctx: Ctx<'_>,
    place: &Place,
    scope: &Scope,
    options: &Value,
) -> (Option<bool>, Vec<String>) {
    let mut why = Vec::new();
    let cluster = if named_nothing(scope) {
        Some(loose::flag(options, "enable"))
    } else {
        let cluster = ctx.get(&["cluster", "firewall", "options"]).await.ok();
        cluster.map(|c| loose::flag(&c, "enable"))
    };
    match cluster {
        Some(true) => {}
        Some(false) => {
            why.push("the firewall of the cluster is off: no rule is in force anywhere".to_owned())
        }
        None => return (None, vec!["the cluster's options cannot be read".to_owned()]),
    }
    let given = loose::some(options, "enable").is_some();
    if scope.node.is_some() && given && !loose::flag(options, "enable") {
        why.push("this node's firewall is off".to_owned());
    }
    if (scope.vmid.is_some() || scope.vnet.is_some()) && !loose::flag(options, "enable") {
        why.push(format!("the firewall of {} is off", place.name));
    }
    if let Some(vmid) = place.vmid
        && let Ok((_, config)) = ctx.guest_get(vmid, &["config"], Params::new()).await
    {
        for nic in open_nics(&config) {
            why.push(format!("{nic} has firewall=0: its traffic passes unseen"));
        }
    }
    let off = why.iter().any(|w| w.contains(" is off"));
    (Some(!off), why)
}

/// Network devices of a guest that its firewall does not see.
fn open_nics(config: &Value) -> Vec<String> {
    let Some(map) = config.as_object() else { return Vec::new() };
    let is_nic = |key: &str| {
        key.strip_prefix("net")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut open: Vec<String> = map
        .iter()
        .filter(|(key, value)| {
            is_nic(key) && value.as_str().is_some_and(|line| !has_firewall(line))
        })
        .map(|(key, _)| key.clone())
        .collect();
    open.sort();
    open
}

fn has_firewall(line: &str) -> bool {
    Line::parse(line, None).flag("firewall") == Some(true)
}

const CLUSTER: [&str; 6] =
    ["ebtables", "enable", "log_ratelimit", "policy_forward", "policy_in", "policy_out"];
const NODE: [&str; 19] = [
    "enable",
    "log_level_forward",
    "log_level_in",
    "log_level_out",
    "log_nf_conntrack",
    "ndp",
    "nf_conntrack_allow_invalid",
    "nf_conntrack_helpers",
    "nf_conntrack_max",
    "nf_conntrack_tcp_timeout_established",
    "nf_conntrack_tcp_timeout_syn_recv",
    "nftables",
    "nosmurfs",
    "protection_synflood",
    "protection_synflood_burst",
    "protection_synflood_rate",
    "smurf_log_level",
    "tcp_flags_log_level",
    "tcpflags",
];
const GUEST: [&str; 10] = [
    "dhcp",
    "enable",
    "ipfilter",
    "log_level_in",
    "log_level_out",
    "macfilter",
    "ndp",
    "policy_in",
    "policy_out",
    "radv",
];
const VNET: [&str; 3] = ["enable", "log_level_forward", "policy_forward"];

fn known(scope: &Scope) -> &'static [&'static str] {
    if scope.node.is_some() {
        &NODE
    } else if scope.vmid.is_some() {
        &GUEST
    } else if scope.vnet.is_some() {
        &VNET
    } else {
        &CLUSTER
    }
}

/// Policies.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Policy {
    Accept,
    Reject,
    Drop,
}

impl Policy {
    const fn as_str(self) -> &'static str {
        match self {
            Policy::Accept => "ACCEPT",
            Policy::Reject => "REJECT",
            Policy::Drop => "DROP",
        }
    }
}

/// Arguments of `pve_firewall_options_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
    #[serde(flatten)]
    scope: Scope,
    enable: Option<bool>,
    policy_in: Option<Policy>,
    policy_out: Option<Policy>,
    /// As {"macfilter": true}.
    set: Option<Map<String, Value>>,
    delete: Option<Vec<String>>,
    digest: Option<String>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_firewall_options_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    let place = Place::of(ctx, &args.scope).await?;
    if place.is_group() {
        return Err(Error::argument("a security group has no options").with("argument", "group"));
    }
    let mut given = args.set.unwrap_or_default();
    let words = [
        ("enable", args.enable.map(Value::from)),
        ("policy_in", args.policy_in.map(|p| p.as_str().into())),
        ("policy_out", args.policy_out.map(|p| p.as_str().into())),
    ];
    for (name, value) in words {
        if let Some(value) = value
            && given.insert(name.to_owned(), value).is_some()
        {
            return Err(Error::argument(format!("option {name} is given twice")));
        }
    }
    let delete = args.delete.unwrap_or_default();
    let known = known(&args.scope);
    for name in given.keys().chain(&delete) {
        if !known.contains(&name.as_str()) {
            let error = Error::argument(format!("{} has no firewall option {name:?}", place.name))
                .with("argument", name.clone());
            return Err(match validate::nearest(name, known.iter().copied()) {
                Some(near) => error.hint(format!("did you mean {near}?")),
                None => error.hint(format!("known: {}", known.join(", "))),
            });
        }
    }
    if given.is_empty() && delete.is_empty() {
        return Err(Error::argument("nothing to change: give an option, `set` or `delete`"));
    }
    if let Some(both) = delete.iter().find(|d| given.contains_key(*d)) {
        return Err(Error::argument(format!("option {both} is both set and deleted")));
    }
    let keys: Vec<String> = given.keys().chain(&delete).cloned().collect();
    let mut params = Params::from_json(&Value::Object(given))?;
    let now = ctx.fresh(&place.below(&["options"]), Params::new()).await?;
    let before = pick(&now, &keys);
    let idle = params.iter().all(|(k, v)| same(now.get(k), &v.values().join(",")))
        && delete.iter().all(|d| now.get(d).is_none());
    if idle {
        return Ok(unchanged(before));
    }
    if !delete.is_empty() {
        params = params.with("delete", delete.join(","));
    }
    let what = format!("the firewall of {}", place.name);
    let digest =
        same_digest(args.digest, loose::text(&now, "digest"), &what, "pve_firewall_options")?;
    let params = params.with_some("digest", digest);
    let operation = place.operation(Method::Put, &["options"], params)?;
    let done = ctx.submit(operation, &args.asked).await?;
    let after = async {
        let now = ctx.fresh(&place.below(&["options"]), Params::new()).await;
        now.map_or(Value::Null, |now| pick(&now, &keys))
    };
    Ok(told(done, before, after, format!("firewall options of {}", place.name)).await)
}

/// The named options; one that is not set is `null`.
fn pick(options: &Value, keys: &[String]) -> Value {
    keys.iter()
        .map(|k| (k.clone(), options.get(k).cloned().unwrap_or(Value::Null)))
        .collect::<Map<_, _>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_the_firewall_does_not_see() {
        let config = json!({
            "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1",
            "net1": "virtio=BC:24:11:00:00:02,bridge=vmbr0",
            "net2": "name=eth0,bridge=vmbr0,firewall=0",
            "nets": "firewall=0", "network": "x", "net10": "firewall=on,bridge=vmbr0",
        });
        assert_eq!(open_nics(&config), ["net1", "net2"]);
    }
}
