//! Firewalls of the cluster, nodes, guests, security groups and vnets: one code for all scopes.

use serde_json::{Map, Value, json};

use super::Route;
use crate::api::call::{Answer, Call, Reply, done};
use crate::api::failure::Failure;
use crate::api::params;
use crate::state::config::digest_of;
use crate::state::firewall::Firewall;

macro_rules! scope_routes {
    ($($base:literal)+) => { &[$(
        ("GET", concat!($base, "/rules"), rules),
        ("POST", concat!($base, "/rules"), add_rule),
        ("GET", concat!($base, "/rules/{pos}"), rule),
        ("PUT", concat!($base, "/rules/{pos}"), set_rule),
        ("DELETE", concat!($base, "/rules/{pos}"), delete_rule),
        ("GET", concat!($base, "/options"), options),
        ("PUT", concat!($base, "/options"), set_options),
    )+] };
}

/// Rules and options of every scope.
pub(crate) const ROUTES: &[Route] = scope_routes!(
    "/cluster/firewall"
    "/nodes/{node}/firewall"
    "/nodes/{node}/qemu/{vmid}/firewall"
    "/nodes/{node}/lxc/{vmid}/firewall"
    "/cluster/sdn/vnets/{vnet}/firewall"
);

/// Security groups, macros and logs.
pub(crate) const OTHERS: &[Route] = &[
    ("GET", "/cluster/firewall/groups", groups),
    ("POST", "/cluster/firewall/groups", add_group),
    ("GET", "/cluster/firewall/groups/{group}", rules),
    ("POST", "/cluster/firewall/groups/{group}", add_rule),
    ("DELETE", "/cluster/firewall/groups/{group}", delete_group),
    ("GET", "/cluster/firewall/groups/{group}/{pos}", rule),
    ("PUT", "/cluster/firewall/groups/{group}/{pos}", set_rule),
    ("DELETE", "/cluster/firewall/groups/{group}/{pos}", delete_rule),
    ("GET", "/cluster/firewall/macros", macros),
    ("GET", "/nodes/{node}/firewall/log", node_log),
    ("GET", "/nodes/{node}/qemu/{vmid}/firewall/log", no_log),
    ("GET", "/nodes/{node}/lxc/{vmid}/firewall/log", no_log),
];

const MODIFIED: &str = "detected modified configuration - file changed by other user? Try again.";
/// Parameters that are part of the path or of the call, not of a rule.
const NOT_RULE: [&str; 9] =
    ["node", "vmid", "group", "vnet", "pos", "moveto", "digest", "delete", "rename"];

/// The firewall that a call is about.
fn scope(c: &Call<'_>) -> String {
    for (name, prefix) in
        [("vmid", "guest"), ("group", "group"), ("vnet", "vnet"), ("node", "node")]
    {
        if let Some(value) = c.text(name) {
            return format!("{prefix}/{value}");
        }
    }
    "cluster".to_owned()
}

pub(super) fn firewall(c: &Call<'_>) -> Firewall {
    c.state.firewalls.get(&scope(c)).cloned().unwrap_or_default()
}

pub(super) fn firewall_mut<'a>(c: &'a mut Call<'_>) -> &'a mut Firewall {
    let scope = scope(c);
    c.state.firewalls.entry(scope).or_default()
}

fn position(c: &Call<'_>) -> usize {
    c.int("pos").and_then(|p| usize::try_from(p).ok()).unwrap_or(usize::MAX)
}

pub(super) fn check_digest(c: &Call<'_>, part: &str) -> Result<(), Failure> {
    match c.text("digest") {
        Some(given) if given != firewall(c).digest(part) => Err(Failure::died(MODIFIED)),
        _ => Ok(()),
    }
}

fn show_rule(fw: &Firewall, at: usize, pos: Value) -> Value {
    let mut row = fw.rules.get(at).cloned().unwrap_or_default();
    row.insert("pos".to_owned(), pos);
    row.insert("digest".to_owned(), json!(fw.digest("rules")));
    Value::Object(row)
}

/// A security group has to be there; the other scopes always are.
fn known(c: &Call<'_>) -> Result<(), Failure> {
    match c.text("group") {
        Some(group) if !c.state.firewalls.contains_key(&format!("group/{group}")) => {
            Err(Failure::died(format!("no such security group '{group}'")))
        }
        _ => Ok(()),
    }
}

fn rules(c: &mut Call<'_>) -> Answer {
    known(c)?;
    let fw = firewall(c);
    let rows = (0..fw.rules.len()).map(|n| show_rule(&fw, n, json!(n))).collect();
    Ok(Value::Array(rows).into())
}

fn rule(c: &mut Call<'_>) -> Answer {
    known(c)?;
    let (fw, at) = (firewall(c), position(c));
    if at >= fw.rules.len() {
        return Err(Failure::died(format!("no rule at position {}", c.need("pos"))));
    }
    // The single call gives the position as text.
    Ok(show_rule(&fw, at, json!(at.to_string())).into())
}

/// The rule that the parameters describe, on top of another one.
fn merged(c: &Call<'_>, base: Map<String, Value>) -> Map<String, Value> {
    let mut rule = base;
    for name in c.list("delete") {
        rule.remove(&name);
    }
    for (name, value) in c.params.iter().filter(|(n, _)| !NOT_RULE.contains(&n.as_str())) {
        let text = params::text(value);
        let value = if name == "enable" {
            json!(text.parse::<i64>().unwrap_or(0))
        } else {
            Value::String(text)
        };
        rule.insert(name.clone(), value);
    }
    rule.entry("enable").or_insert(json!(0));
    rule
}

/// Checks that need the state: action, addresses, macro.
fn verify(c: &Call<'_>, rule: &Map<String, Value>) -> Result<(), Failure> {
    let get = |name: &str| rule.get(name).map(params::text);
    let action = get("action").unwrap_or_default();
    if get("type").as_deref() == Some("group") {
        if !c.state.firewalls.contains_key(&format!("group/{action}")) {
            return Err(Failure::parameter("action", format!("no such security group '{action}'")));
        }
    } else if !["ACCEPT", "DROP", "REJECT"].contains(&action.as_str()) {
        return Err(Failure::parameter("action", format!("unknown action '{action}'")));
    }
    for name in ["source", "dest"] {
        for part in get(name).map(|t| params::split_list(&t)).unwrap_or_default() {
            address(c, &part).map_err(|text| Failure::parameter(name, text))?;
        }
    }
    if let Some(name) = get("macro")
        && !MACROS.iter().any(|(m, _)| m.eq_ignore_ascii_case(&name))
    {
        return Err(Failure::parameter("macro", format!("unknown macro '{name}'")));
    }
    if (get("dport").is_some() || get("sport").is_some()) && get("proto").is_none() {
        return Err(Failure::parameter(
            "proto",
            "missing property - 'dport' or 'sport' requires this property",
        ));
    }
    Ok(())
}

/// An address, a range, a network, an IP set or an alias.
pub(super) fn address(c: &Call<'_>, text: &str) -> Result<(), String> {
    let cluster = c.state.firewalls.get("cluster").cloned().unwrap_or_default();
    let own = firewall(c);
    if let Some(set) = text.strip_prefix('+') {
        let set = set.trim_start_matches("dc/").trim_start_matches("guest/");
        let found = cluster.ipsets.contains_key(set) || own.ipsets.contains_key(set);
        return if found { Ok(()) } else { Err(format!("no such ipset '{set}'")) };
    }
    let plain = |t: &str| {
        let ip = t.split('/').next().unwrap_or("");
        ip.parse::<std::net::IpAddr>().is_ok()
    };
    if text.split('-').all(plain) {
        return Ok(());
    }
    let name = text.trim_start_matches("dc/").trim_start_matches("guest/");
    let found = cluster.aliases.contains_key(name) || own.aliases.contains_key(name);
    if found { Ok(()) } else { Err(format!("no such alias '{text}'")) }
}

fn add_rule(c: &mut Call<'_>) -> Answer {
    known(c)?;
    check_digest(c, "rules")?;
    let rule = merged(c, Map::new());
    verify(c, &rule)?;
    let at = c.int("pos").and_then(|p| usize::try_from(p).ok()).unwrap_or(0);
    let fw = firewall_mut(c);
    fw.rules.insert(at.min(fw.rules.len()), rule);
    done()
}

fn set_rule(c: &mut Call<'_>) -> Answer {
    known(c)?;
    check_digest(c, "rules")?;
    let (at, target) = (position(c), c.int("moveto").and_then(|p| usize::try_from(p).ok()));
    let Some(base) = firewall(c).rules.get(at).cloned() else {
        return Err(Failure::died(format!("no rule at position {}", c.need("pos"))));
    };
    if let Some(target) = target {
        // Moving ignores what else was given, as the real one does.
        let fw = firewall_mut(c);
        let rule = fw.rules.remove(at);
        let target = if target > at { target - 1 } else { target };
        fw.rules.insert(target.min(fw.rules.len()), rule);
        return done();
    }
    let rule = merged(c, base);
    verify(c, &rule)?;
    if let Some(place) = firewall_mut(c).rules.get_mut(at) {
        *place = rule;
    }
    done()
}

fn delete_rule(c: &mut Call<'_>) -> Answer {
    known(c)?;
    check_digest(c, "rules")?;
    let at = position(c);
    if at >= firewall(c).rules.len() {
        return Err(Failure::died(format!("no rule at position {}", c.need("pos"))));
    }
    firewall_mut(c).rules.remove(at);
    done()
}

fn options(c: &mut Call<'_>) -> Answer {
    let fw = firewall(c);
    let mut map = fw.options.clone();
    map.insert("digest".to_owned(), json!(fw.digest("options")));
    Ok(Value::Object(map).into())
}

fn set_options(c: &mut Call<'_>) -> Answer {
    check_digest(c, "options")?;
    let delete = c.list("delete");
    let given: Vec<(String, Value)> = c
        .params
        .iter()
        .filter(|(n, _)| !NOT_RULE.contains(&n.as_str()))
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect();
    let fw = firewall_mut(c);
    for name in delete {
        fw.options.remove(&name);
    }
    for (name, value) in given {
        let text = params::text(&value);
        let value = text.parse::<i64>().map_or(Value::String(text), Value::from);
        fw.options.insert(name, value);
    }
    done()
}

fn groups(c: &mut Call<'_>) -> Answer {
    let names: Vec<Value> = c.state.firewalls.keys().map(|k| json!(k)).collect();
    let digest = digest_of(&Value::Array(names));
    let mut rows = Vec::new();
    for (scope, fw) in &c.state.firewalls {
        let Some(group) = scope.strip_prefix("group/") else { continue };
        let mut row = Map::new();
        row.insert("group".to_owned(), json!(group));
        row.insert("digest".to_owned(), json!(digest));
        if !fw.comment.is_empty() {
            row.insert("comment".to_owned(), json!(fw.comment));
        }
        rows.push(Value::Object(row));
    }
    Ok(Value::Array(rows).into())
}

fn add_group(c: &mut Call<'_>) -> Answer {
    let (name, comment) = (c.need("group"), c.text("comment").unwrap_or_default());
    let key = format!("group/{name}");
    if c.state.firewalls.contains_key(&key) && c.text("rename").is_none() {
        return Err(Failure::parameter("group", format!("Security group '{name}' already exists")));
    }
    c.state.firewalls.insert(key, Firewall { comment, ..Firewall::default() });
    done()
}

fn delete_group(c: &mut Call<'_>) -> Answer {
    known(c)?;
    let name = c.need("group");
    if !firewall(c).rules.is_empty() {
        return Err(Failure::died(format!("Security group '{name}' is not empty")));
    }
    c.state.firewalls.remove(&format!("group/{name}"));
    done()
}

const MACROS: &[(&str, &str)] = &[
    ("Ceph", "Ceph Storage Cluster traffic (Ceph Monitors, OSD & MDS Daemons)"),
    ("DHCPv6", "DHCPv6 traffic"),
    ("DNS", "Domain Name System traffic (upd and tcp)"),
    ("FTP", "File Transfer Protocol"),
    ("HTTP", "Hypertext Transfer Protocol (WWW)"),
    ("HTTPS", "Hypertext Transfer Protocol (WWW) over SSL"),
    ("IMAP", "Internet Message Access Protocol"),
    ("IMAPS", "Internet Message Access Protocol over SSL"),
    ("LDAP", "Lightweight Directory Access Protocol traffic"),
    ("LDAPS", "Secure Lightweight Directory Access Protocol traffic"),
    ("MySQL", "MySQL server"),
    ("NTP", "Network Time Protocol (ntpd)"),
    ("OpenVPN", "OpenVPN traffic"),
    ("Ping", "ICMP echo request"),
    ("PostgreSQL", "PostgreSQL server"),
    ("RDP", "Microsoft Remote Desktop Protocol traffic"),
    ("SMB", "Microsoft SMB traffic"),
    ("SMTP", "Simple Mail Transfer Protocol"),
    ("SNMP", "Simple Network Management Protocol"),
    ("SPICEproxy", "Proxmox VE SPICE display proxy traffic"),
    ("SSH", "Secure shell traffic"),
    ("Syslog", "Syslog protocol (RFC 5424) traffic"),
    ("Trcrt", "Traceroute (for up to 30 hops) traffic"),
    ("VNC", "VNC traffic for VNC display's 0 - 99"),
    ("Web", "WWW traffic (HTTP and HTTPS)"),
];

fn macros(_: &mut Call<'_>) -> Answer {
    let row = |(name, descr): &(&str, &str)| json!({"macro": name, "descr": descr});
    Ok(MACROS.iter().map(row).collect::<Value>().into())
}

fn node_log(_: &mut Call<'_>) -> Answer {
    Ok(Reply::from(json!([{"n": 1, "t": "0 5 - starting pvefw logger"}])).with("total", 1))
}

fn no_log(_: &mut Call<'_>) -> Answer {
    Ok(Reply::from(json!([{"n": 1, "t": "no content"}])).with("total", 1))
}
