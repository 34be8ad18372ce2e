//! Network interfaces of a node. Changes wait until they are applied.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::review::{Review, WayIn};
use crate::{
    Code, Error, Result,
    pve::{ApiPath, NodeName, Params, loose},
    render::{Answer, Page, Table},
    safety::Method,
    tools::{
        Ctx,
        across::{members, named, unchanged},
        change::{Asked, AskedTask},
        outcome::{Did, operation, switch, told},
    },
};

/// Types by which interfaces are listed.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Listed {
    Bridge,
    Bond,
    Eth,
    Alias,
    Vlan,
    #[serde(rename = "any_bridge")]
    AnyBridge,
}

impl Listed {
    const fn as_str(self) -> &'static str {
        match self {
            Listed::Bridge => "bridge",
            Listed::Bond => "bond",
            Listed::Eth => "eth",
            Listed::Alias => "alias",
            Listed::Vlan => "vlan",
            Listed::AnyBridge => "any_bridge",
        }
    }
}

/// Arguments of `pve_list_interfaces`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct List {
    node: Option<NodeName>,
    r#type: Option<Listed>,
}

/// A node's configuration as it would be, with what is pending.
struct Network {
    rows: Vec<Value>,
    diff: Option<String>,
    way: WayIn,
    review: Review,
}

impl Network {
    async fn of(ctx: Ctx<'_>, node: &str) -> Result<Self> {
        let path = ApiPath::of(&["nodes", node, "network"])?;
        let answer = ctx.app.pve.answer(&path, &Params::new()).await?;
        let rows = loose::rows(&answer.data).to_vec();
        let addresses = addresses(ctx, node).await;
        let way = WayIn::of(&rows, addresses);
        let diff = answer.changes.map(|c| c.to_string()).filter(|c| !c.trim().is_empty());
        let review = diff.as_deref().map(|d| Review::of(d, &rows, &way)).unwrap_or_default();
        Ok(Self { rows, diff, way, review })
    }

    fn row(&self, iface: &str) -> Option<&Value> {
        self.rows.iter().find(|r| loose::str(r, "iface") == Some(iface))
    }

    /// Adds what is pending to an answer.
    fn told(&self, answer: Answer) -> Answer {
        let mut answer = answer;
        if let Some(diff) = &self.diff {
            answer = answer
                .with("pending", self.review.to_json(&self.way))
                .with("may_cut", self.review.may_cut.clone())
                .with("diff", diff.clone());
        }
        answer
    }
}

/// The addresses by which a node is reached: its own in the cluster, and for
/// the connected one that of the configuration.
async fn addresses(ctx: Ctx<'_>, node: &str) -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = Vec::new();
    let Ok(status) = ctx.get(&["cluster", "status"]).await else { return found };
    let mut connected = false;
    for row in loose::rows(&status) {
        let local = loose::flag(row, "local");
        let meant = loose::str(row, "name") == Some(node) || (node == "localhost" && local);
        if loose::str(row, "type") == Some("node") && meant {
            connected = local;
            found.extend(loose::text(row, "ip").and_then(|ip| ip.parse::<IpAddr>().ok()));
        }
    }
    if let (true, Some(host)) = (connected, ctx.app.pve.host()) {
        match host.host.parse() {
            Ok(ip) => found.push(ip),
            Err(_) => {
                if let Ok(resolved) = tokio::net::lookup_host((host.host.as_str(), host.port)).await
                {
                    found.extend(resolved.map(|a| a.ip()));
                }
            }
        }
    }
    // A loopback address is a tunnel's end, which says nothing of the node.
    found.retain(|ip| !ip.is_loopback());
    found.sort();
    found.dedup();
    found
}

/// `pve_list_interfaces`
pub async fn list(ctx: Ctx<'_>, args: List) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let network = Network::of(ctx, &node).await?;
    let fits = |row: &&Value| {
        let own = loose::str(row, "type").unwrap_or_default();
        match args.r#type {
            None => true,
            Some(Listed::AnyBridge) => matches!(own, "bridge" | "OVSBridge"),
            Some(kind) => own == kind.as_str(),
        }
    };
    let mut rows: Vec<&Value> = network.rows.iter().filter(fits).collect();
    rows.sort_by_key(|r| loose::text(r, "iface"));
    let columns = [
        "iface",
        "type",
        "active",
        "autostart",
        "cidr",
        "cidr6",
        "gateway",
        "ports",
        "vlan",
        "mtu",
        "way_in",
        "comment",
    ];
    let table = Table::new(columns).fill(
        rows.into_iter(),
        Page { limit: usize::MAX, ..Page::new(None, None) },
        |row| {
            let first = |keys: &[&str]| keys.iter().find_map(|k| loose::text(row, k));
            let iface = loose::text(row, "iface");
            let vlan = match (first(&["vlan-id", "ovs_tag"]), loose::flag(row, "bridge_vlan_aware"))
            {
                (Some(id), _) => Some(id),
                (None, true) => Some(
                    format!("aware {}", first(&["bridge_vids"]).unwrap_or_default())
                        .trim()
                        .to_owned(),
                ),
                _ => None,
            };
            vec![
                iface.clone().into(),
                loose::text(row, "type").into(),
                loose::flag(row, "active").into(),
                loose::flag(row, "autostart").into(),
                first(&["cidr", "address"]).into(),
                first(&["cidr6", "address6"]).into(),
                first(&["gateway", "gateway6"]).into(),
                first(&["bridge_ports", "slaves", "ovs_ports", "ovs_bonds", "vlan-raw-device"])
                    .into(),
                vlan.into(),
                loose::int(row, "mtu").into(),
                iface.is_some_and(|i| network.way.interfaces.contains(&i)).into(),
                first(&["comments", "comments6"]).map(|c| c.trim().to_owned()).into(),
            ]
        },
    );
    let waiting = match network.review.changes.len() {
        0 if network.diff.is_none() => "nothing is pending".to_owned(),
        n => format!("{n} changes wait to be applied"),
    };
    let answer = table.into_answer(&format!("interfaces of {node}; {waiting}"));
    let answer = answer.with("reached_by", network.way.to_json());
    Ok(network.told(answer).untrusted(&["rows", "pending", "diff"]))
}

/// Types of interfaces that can be made.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
pub enum Kind {
    #[serde(rename = "bridge")]
    Bridge,
    #[serde(rename = "bond")]
    Bond,
    #[serde(rename = "eth")]
    Eth,
    #[serde(rename = "vlan")]
    Vlan,
    #[serde(rename = "alias")]
    Alias,
    OVSBridge,
    OVSBond,
    OVSPort,
    OVSIntPort,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Kind::Bridge => "bridge",
            Kind::Bond => "bond",
            Kind::Eth => "eth",
            Kind::Vlan => "vlan",
            Kind::Alias => "alias",
            Kind::OVSBridge => "OVSBridge",
            Kind::OVSBond => "OVSBond",
            Kind::OVSPort => "OVSPort",
            Kind::OVSIntPort => "OVSIntPort",
        }
    }
}

/// Arguments of `pve_interface_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
    node: Option<NodeName>,
    iface: String,
    r#type: Option<Kind>,
    /// As 192.0.2.7/24.
    cidr: Option<String>,
    gateway: Option<String>,
    cidr6: Option<String>,
    gateway6: Option<String>,
    bridge_ports: Option<Vec<String>>,
    bridge_vlan_aware: Option<bool>,
    /// As `2-4094` or `10 20`.
    bridge_vids: Option<String>,
    slaves: Option<Vec<String>>,
    bond_mode: Option<String>,
    #[schemars(range(min = 1, max = 4094))]
    vlan_id: Option<u16>,
    vlan_raw_device: Option<String>,
    #[schemars(range(min = 1280, max = 65_520))]
    mtu: Option<u32>,
    autostart: Option<bool>,
    comments: Option<String>,
    set: Option<Map<String, Value>>,
    delete: Option<Vec<String>>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// What an update of an interface takes. What is left out of an update is kept,
/// so all that is there is sent again.
const SETTINGS: [&str; 26] = [
    "autostart",
    "bond-primary",
    "bond_mode",
    "bond_xmit_hash_policy",
    "bridge_ports",
    "bridge_vids",
    "bridge_vlan_aware",
    "cidr",
    "cidr6",
    "comments",
    "comments6",
    "gateway",
    "gateway6",
    "mtu",
    "ovs_bonds",
    "ovs_bridge",
    "ovs_options",
    "ovs_ports",
    "ovs_tag",
    "slaves",
    "vlan-id",
    "vlan-raw-device",
    "address",
    "address6",
    "netmask",
    "netmask6",
];

impl Set {
    fn settings(&self) -> Result<Params> {
        let set = Value::Object(self.set.clone().unwrap_or_default());
        let params = Params::from_json(&set)?;
        if let Some((odd, _)) = params.iter().find(|(name, _)| !SETTINGS.contains(name)) {
            return Err(Error::argument(format!("argument `set` names no option {odd:?}"))
                .hint(format!("known: {}", SETTINGS.join(", ")))
                .with("argument", "set"));
        }
        for (argument, cidr, six) in [("cidr", &self.cidr, false), ("cidr6", &self.cidr6, true)] {
            let Some(text) = cidr else { continue };
            let net = text.parse::<ipnet::IpNet>().ok();
            if net.is_none_or(|n| n.addr().is_ipv6() != six) {
                let like = if six { "2001:db8::7/64" } else { "192.0.2.7/24" };
                return Err(Error::argument(format!("argument `{argument}` cannot be {text:?}"))
                    .hint(format!("an address with its prefix, as {like}"))
                    .with("argument", argument));
            }
        }
        let join = |list: &Option<Vec<String>>| list.as_ref().map(|l| l.join(" "));
        let params = params
            .with_some("cidr", self.cidr.as_deref())
            .with_some("gateway", self.gateway.as_deref())
            .with_some("cidr6", self.cidr6.as_deref())
            .with_some("gateway6", self.gateway6.as_deref())
            .with_some("bridge_ports", join(&self.bridge_ports))
            .with_some("bridge_vids", self.bridge_vids.as_deref())
            .with_some("slaves", join(&self.slaves))
            .with_some("bond_mode", self.bond_mode.as_deref())
            .with_some("vlan-id", self.vlan_id)
            .with_some("vlan-raw-device", self.vlan_raw_device.as_deref())
            .with_some("mtu", self.mtu)
            .with_some("comments", self.comments.as_deref());
        let params = switch(params, "bridge_vlan_aware", self.bridge_vlan_aware);
        Ok(switch(params, "autostart", self.autostart))
    }
}

/// `pve_interface_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    let iface = checked(&args.iface)?;
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let given = args.settings()?;
    let delete = args.delete.clone().unwrap_or_default();
    if let Some(odd) = delete.iter().find(|d| !SETTINGS.contains(&d.as_str())) {
        return Err(Error::argument(format!("argument `delete` names no option {odd:?}"))
            .with("argument", "delete"));
    }
    if let Some(both) = delete.iter().find(|d| given.has(d)) {
        return Err(Error::argument(format!("option {both} is both set and deleted")));
    }
    let network = Network::of(ctx, &node).await?;
    let now = network.row(iface).cloned();
    let what = format!("interface {iface} of {node}");
    let did = Did::of(now.is_some(), args.must_exist, args.must_not_exist, &what)?;
    let before = now.as_ref().map_or(Value::Null, shown);
    let (segments, params): (Vec<&str>, Params) = match &now {
        None => {
            let kind = args.r#type.ok_or_else(|| {
                Error::argument("a new interface needs `type`").with("argument", "type")
            })?;
            if !delete.is_empty() {
                return Err(Error::argument("a new interface has nothing to delete"));
            }
            (
                vec!["nodes", &node, "network"],
                given.with("iface", iface).with("type", kind.as_str()),
            )
        }
        Some(now) => {
            let own = loose::text(now, "type").unwrap_or_default();
            if let Some(kind) = args.r#type
                && kind.as_str() != own
            {
                return Err(Error::new(Code::Conflict, format!("{what} is a {own}"))
                    .hint("an interface keeps its type: delete it and make it anew"));
            }
            let Some(params) = merged(now, &given, &delete) else { return Ok(unchanged(before)) };
            (vec!["nodes", &node, "network", iface], params.with("type", own))
        }
    };
    let own_way = network.way.interfaces.contains(iface);
    let done = ctx.submit(operation(did.method(), &segments, params)?, &args.asked).await?;
    let after = async {
        let rows = ctx.fresh(&["nodes", &node, "network"], Params::new()).await;
        rows.ok().and_then(|rows| named(&rows, "iface", iface).map(shown)).unwrap_or(Value::Null)
    };
    let answer = told(done, before, after, what).await.with("did", did.as_str());
    let answer = if own_way {
        answer
            .with("may_cut", vec![format!("{iface} is part of the way by which {node} is reached")])
    } else {
        answer
    };
    Ok(answer.with("note", "waits until pve_network_apply; pve_list_interfaces shows what would change, pve_network_revert drops it"))
}

/// All settings that the interface has after the change; `None` where nothing would differ.
fn merged(now: &Value, given: &Params, delete: &[String]) -> Option<Params> {
    let mut all = Params::new();
    for key in SETTINGS {
        // An address is sent once: as CIDR where there is one.
        let twice = match key {
            "address" | "netmask" => loose::some(now, "cidr").is_some() || given.has("cidr"),
            "address6" | "netmask6" => loose::some(now, "cidr6").is_some() || given.has("cidr6"),
            _ => false,
        };
        if !twice && !delete.iter().any(|d| d == key) {
            all = all.with_some(key, loose::text(now, key));
        }
    }
    let before = all.clone();
    for (name, value) in given.iter() {
        all.set(name, value.clone());
    }
    let gone: Vec<&str> =
        delete.iter().map(String::as_str).filter(|d| loose::some(now, d).is_some()).collect();
    let same = all.iter().all(|(k, v)| {
        before
            .get(k)
            .is_some_and(|b| b.values().join(" ").trim_end() == v.values().join(" ").trim_end())
    });
    if same && gone.is_empty() {
        return None;
    }
    Some(if gone.is_empty() { all } else { all.with("delete", gone.join(",")) })
}

fn shown(row: &Value) -> Value {
    members(
        row,
        &["families", "priority", "active", "exists", "method", "method6", "address", "netmask"],
    )
}

/// A name as the kernel and the API take it.
fn checked(iface: &str) -> Result<&str> {
    let form = iface.starts_with(|c: char| c.is_ascii_alphabetic())
        && (2..=20).contains(&iface.len())
        && iface
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-'));
    if form {
        return Ok(iface);
    }
    Err(Error::argument(format!("argument `iface` cannot be {iface:?}"))
        .hint("2 to 20 letters, digits, `_`, `.`, `:`, a letter first, as vmbr1 or bond0.20")
        .with("argument", "iface"))
}

/// Arguments of `pve_interface_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Delete {
    node: Option<NodeName>,
    iface: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_interface_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let iface = checked(&args.iface)?;
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let network = Network::of(ctx, &node).await?;
    let row = network.row(iface).ok_or_else(|| {
        let names: Vec<String> =
            network.rows.iter().filter_map(|r| loose::text(r, "iface")).collect();
        Error::new(Code::NotFound, format!("node {node} has no interface {iface:?}"))
            .hint(format!("there are: {}", names.join(", ")))
    })?;
    let before = shown(row);
    let guests = ctx.guests_on_bridge(&node, iface).await;
    let segments = ["nodes", &node, "network", iface];
    let done =
        ctx.submit(operation(Method::Delete, &segments, Params::new())?, &args.asked).await?;
    let answer =
        told(done, before, async { Value::Null }, format!("interface {iface} of {node}")).await;
    let answer = if network.way.interfaces.contains(iface) {
        answer
            .with("may_cut", vec![format!("{iface} is part of the way by which {node} is reached")])
    } else {
        answer
    };
    let answer = if guests.is_empty() { answer } else { answer.with("guests_on_it", guests) };
    Ok(answer.with("note", "waits until pve_network_apply; pve_network_revert drops it"))
}

/// Arguments of `pve_network_apply`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Apply {
    node: Option<NodeName>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_network_apply`
pub async fn apply(ctx: Ctx<'_>, args: Apply) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let network = Network::of(ctx, &node).await?;
    if network.diff.is_none() {
        return Ok(Answer::new(json!({"status": "no_change", "node": node}))
            .heading(format!("nothing is pending on {node}")));
    }
    let segments = ["nodes", &node, "network"];
    let done = ctx.run(operation(Method::Put, &segments, Params::new())?, &args.asked).await?;
    let answer = told(done, Value::Null, async { Value::Null }, format!("network of {node}")).await;
    Ok(network.told(answer).untrusted(&["pending", "diff"]))
}

/// Arguments of `pve_network_revert`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Revert {
    node: Option<NodeName>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_network_revert`
pub async fn revert(ctx: Ctx<'_>, args: Revert) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let network = Network::of(ctx, &node).await?;
    if network.diff.is_none() {
        return Ok(Answer::new(json!({"status": "no_change", "node": node}))
            .heading(format!("nothing is pending on {node}")));
    }
    let segments = ["nodes", &node, "network"];
    let done =
        ctx.submit(operation(Method::Delete, &segments, Params::new())?, &args.asked).await?;
    let before = network.review.to_json(&network.way);
    Ok(told(done, before, async { Value::Null }, format!("pending network changes of {node}"))
        .await)
}

impl Ctx<'_> {
    /// The guests of a node with a network device on a bridge, by VMID; empty
    /// also where their configurations cannot be read.
    async fn guests_on_bridge(self, node: &str, bridge: &str) -> Vec<u32> {
        let Ok(guests) = self.guests().await else { return Vec::new() };
        let here = guests.iter().filter(|g| &*g.node == node);
        let reads = here
            .map(|g| async move { (g.vmid, self.get_below(g, &["config"], Params::new()).await) });
        let mut found = Vec::new();
        for (vmid, config) in futures::future::join_all(reads).await {
            let Ok(config) = config else { continue };
            let on_it = config.as_object().into_iter().flatten().any(|(key, value)| {
                key.starts_with("net")
                    && value.as_str().is_some_and(|line| {
                        line.split(',').any(|part| part.strip_prefix("bridge=") == Some(bridge))
                    })
            });
            if on_it {
                found.push(vmid.get());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_keeps_what_is_not_named() {
        let now = json!({"iface": "vmbr1", "type": "bridge", "cidr": "10.20.1.11/24", "address": "10.20.1.11",
            "netmask": "24", "bridge_ports": "eno3", "comments": "Replikation\n", "autostart": 1, "active": 1});
        let given = Params::new().with("mtu", 9000);
        let all = merged(&now, &given, &[]).unwrap();
        assert_eq!(
            all.to_json(),
            json!({"autostart": "1", "bridge_ports": "eno3", "cidr": "10.20.1.11/24", "comments": "Replikation\n", "mtu": "9000"})
        );
        let all = merged(&now, &Params::new(), &["comments".to_owned()]).unwrap();
        assert_eq!(all.text("delete"), Some("comments"));
        assert!(!all.has("comments"));
        assert!(
            merged(&now, &Params::new().with("cidr", "10.20.1.11/24"), &["mtu".to_owned()])
                .is_none()
        );
        assert!(merged(&now, &Params::new().with("comments", "Replikation"), &[]).is_none());
    }
}
