//! Software-defined networks: zones, vnets, subnets. Changes wait until they
//! are applied to the whole cluster.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Code, Error, Result,
    pve::{Params, loose},
    render::{Answer, Page, Table},
    safety::Method,
    tools::{
        Ctx,
        across::{members, named, same, same_digest, unchanged},
        args::None as NoArgs,
        change::{Asked, AskedTask},
        outcome::{Did, operation, switch, told},
    },
};

const ROOT: [&str; 2] = ["cluster", "sdn"];

fn pending() -> Params {
    Params::new().with("pending", 1)
}

fn everything() -> Page {
    Page { limit: usize::MAX, ..Page::new(None, None) }
}

/// The value that an object has after applying: the pending one where there is one.
fn next(row: &Value, key: &str) -> Option<String> {
    let waiting = row.get("pending").and_then(|p| loose::text(p, key));
    match waiting.as_deref() {
        Some("deleted") => None,
        Some(_) => waiting,
        None => loose::text(row, key),
    }
}

/// `new`, `changed`, `deleted`, or nothing where nothing is pending.
fn state(row: &Value) -> Value {
    loose::text(row, "state").into()
}

/// The settings of an object after applying, but for those with a column.
fn others(row: &Value, columns: &[&str]) -> Value {
    let mut all = Map::new();
    let waiting = row.get("pending").unwrap_or(&Value::Null);
    for (key, value) in [row, waiting].into_iter().filter_map(Value::as_object).flatten() {
        let told = columns.contains(&key.as_str())
            || matches!(key.as_str(), "digest" | "pending" | "state" | "type");
        if !told && !value.is_null() {
            all.insert(key.clone(), value.clone());
        }
    }
    all.retain(|_, v| v != "deleted");
    if all.is_empty() { Value::Null } else { Value::Object(all) }
}

/// `pve_sdn_status`
pub async fn status(ctx: Ctx<'_>, _: NoArgs) -> Result<Answer> {
    let (zones, vnets, controllers, ipams, nodes) = futures::join!(
        ctx.get_with(&["cluster", "sdn", "zones"], pending()),
        ctx.get_with(&["cluster", "sdn", "vnets"], pending()),
        ctx.get_with(&["cluster", "sdn", "controllers"], pending()),
        ctx.get(&["cluster", "sdn", "ipams"]),
        ctx.get_with(&["cluster", "resources"], Params::new().with("type", "sdn")),
    );
    let (zones, vnets) = (zones?, vnets?);
    let mut missing = Vec::new();
    let mut waiting = 0;
    let mut count = |rows: &Value| {
        waiting += loose::rows(rows).iter().filter(|r| loose::some(r, "state").is_some()).count();
    };
    count(&zones);
    count(&vnets);
    let names: Vec<&str> =
        loose::rows(&vnets).iter().filter_map(|v| loose::str(v, "vnet")).collect();
    let reads = names.iter().map(|vnet| async move {
        (*vnet, ctx.get_with(&["cluster", "sdn", "vnets", vnet, "subnets"], pending()).await)
    });
    let mut subnets = Vec::new();
    for (vnet, rows) in futures::future::join_all(reads).await {
        match rows {
            Ok(rows) => {
                count(&rows);
                subnets.extend(loose::rows(&rows).iter().map(|s| (vnet, s.clone())));
            }
            Err(error) => missing.push(format!("subnets of {vnet}: {}", error.message)),
        }
    }
    if let Ok(rows) = &controllers {
        count(rows);
    }
    let zone_rows = Table::new(["zone", "type", "pending", "settings"]).fill(
        loose::rows(&zones).iter(),
        everything(),
        |z| {
            vec![
                loose::text(z, "zone").into(),
                loose::text(z, "type").into(),
                state(z),
                others(z, &["zone"]),
            ]
        },
    );
    let vnet_rows = Table::new(["vnet", "zone", "tag", "alias", "pending", "settings"]).fill(
        loose::rows(&vnets).iter(),
        everything(),
        |v| {
            vec![
                loose::text(v, "vnet").into(),
                next(v, "zone").into(),
                next(v, "tag").into(),
                next(v, "alias").into(),
                state(v),
                others(v, &["vnet", "zone", "tag", "alias"]),
            ]
        },
    );
    let subnet_rows = Table::new(["subnet", "vnet", "gateway", "pending", "settings"]).fill(
        subnets.iter(),
        everything(),
        |(vnet, s)| {
            let known = ["subnet", "cidr", "vnet", "gateway", "id", "network", "mask", "zone"];
            let cidr = next(s, "cidr").or_else(|| loose::text(s, "subnet"));
            vec![
                cidr.into(),
                (*vnet).into(),
                next(s, "gateway").into(),
                state(s),
                others(s, &known),
            ]
        },
    );
    let broken: Vec<Value> = nodes
        .iter()
        .flat_map(|rows| loose::rows(rows))
        .filter(|r| loose::str(r, "status").is_some_and(|s| !matches!(s, "ok" | "available")))
        .map(|r| json!({"node": loose::text(r, "node"), "sdn": loose::text(r, "sdn"), "status": loose::text(r, "status")}))
        .collect();
    let listed = |rows: &Result<std::sync::Arc<Value>>| {
        rows.as_ref().map_or(Value::Null, |rows| {
            loose::rows(rows).iter().map(|r| members(r, &["digest"])).collect()
        })
    };
    let mut out = json!({
        "zones": zone_rows.into_value(),
        "vnets": vnet_rows.into_value(),
        "subnets": subnet_rows.into_value(),
        "controllers": listed(&controllers),
        "ipams": listed(&ipams),
        "pending": waiting,
        "not_well": broken,
    });
    if let (Value::Object(map), false) = (&mut out, missing.is_empty()) {
        map.insert("partial".into(), true.into());
        map.insert("missing".into(), missing.into());
    }
    let heading = match waiting {
        0 => "nothing is pending".to_owned(),
        n => format!("{n} objects wait for pve_sdn_apply"),
    };
    Ok(Answer::new(out).heading(heading).untrusted(&["vnets", "controllers"]))
}

const WAITS: &str = "waits until pve_sdn_apply; pve_sdn_status shows what is pending";

/// What a `_set` of any of the three goes through.
struct Object<'o> {
    /// Segments of the list.
    list: Vec<&'o str>,
    /// The member by which a row is known.
    key: &'static str,
    /// The name.
    id: String,
    /// In words, for answers.
    what: String,
}

impl Object<'_> {
    async fn rows(&self, ctx: Ctx<'_>) -> Result<std::sync::Arc<Value>> {
        ctx.fresh(&self.list, Params::new()).await
    }

    fn row<'v>(&self, rows: &'v Value) -> Option<&'v Value> {
        // A subnet's id is `ZONE-ADDRESS-PREFIX`.
        let id = self.id.replace('/', "-");
        named(rows, self.key, &self.id).or_else(|| {
            loose::rows(rows).iter().filter(|_| self.key == "cidr").find(|row| {
                let own = loose::str(row, "subnet");
                own.and_then(|s| s.strip_suffix(id.as_str()))
                    .is_some_and(|zone| zone.ends_with('-'))
            })
        })
    }

    /// The path of the object itself.
    fn own<'s>(&'s self, id: &'s str) -> Vec<&'s str> {
        self.list.iter().copied().chain([id]).collect()
    }

    async fn now(&self, ctx: Ctx<'_>) -> Value {
        let rows = self.rows(ctx).await;
        rows.ok()
            .and_then(|rows| self.row(&rows).map(|r| members(r, &["digest"])))
            .unwrap_or(Value::Null)
    }
}

/// The arguments that the three have in common.
struct Wish {
    params: Params,
    delete: Vec<String>,
    digest: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    asked: Asked,
}

/// Makes the object with `create` added, or updates it.
async fn put(
    ctx: Ctx<'_>,
    object: Object<'_>,
    wish: Wish,
    create: Result<Params>,
) -> Result<Answer> {
    if let Some(odd) = wish.delete.iter().find(|d| wish.params.has(d)) {
        return Err(Error::argument(format!("option {odd} is both set and deleted")));
    }
    let rows = object.rows(ctx).await?;
    let now = object.row(&rows);
    let did = Did::of(now.is_some(), wish.must_exist, wish.must_not_exist, &object.what)?;
    let before = now.map_or(Value::Null, |n| members(n, &["digest"]));
    let operation = match now {
        None => {
            if !wish.delete.is_empty() {
                return Err(Error::argument(format!(
                    "{} is new and has nothing to delete",
                    object.what
                )));
            }
            let mut params = wish.params;
            for (name, value) in create?.iter() {
                params.set(name, value.clone());
            }
            operation(Method::Post, &object.list, params)?
        }
        Some(now) => {
            let idle = wish.params.iter().all(|(k, v)| same(now.get(k), &v.values().join(",")))
                && wish.delete.iter().all(|d| loose::some(now, d).is_none());
            if idle {
                return Ok(unchanged(before));
            }
            let digest = same_digest(
                wish.digest,
                loose::text(now, "digest"),
                &object.what,
                "pve_sdn_status",
            )?;
            let mut params = wish.params.with_some("digest", digest);
            if !wish.delete.is_empty() {
                params = params.with("delete", wish.delete.join(","));
            }
            // A subnet's own name is another than its network.
            let id = loose::text(now, "subnet").unwrap_or_else(|| object.id.clone());
            operation(Method::Put, &object.own(&id), params)?
        }
    };
    let done = ctx.submit(operation, &wish.asked).await?;
    let answer = told(done, before, object.now(ctx), object.what.clone()).await;
    Ok(answer.with("did", did.as_str()).with("note", WAITS))
}

async fn remove(ctx: Ctx<'_>, object: Object<'_>, asked: &Asked) -> Result<Answer> {
    let rows = object.rows(ctx).await?;
    let now = object.row(&rows).ok_or_else(|| {
        let names: Vec<String> =
            loose::rows(&rows).iter().filter_map(|r| loose::text(r, object.key)).collect();
        Error::new(Code::NotFound, format!("there is no {}", object.what)).hint(
            if names.is_empty() {
                "there is none".to_owned()
            } else {
                format!("there are: {}", names.join(", "))
            },
        )
    })?;
    let id = loose::text(now, "subnet").unwrap_or_else(|| object.id.clone());
    let operation = operation(Method::Delete, &object.own(&id), Params::new())?;
    let before = members(now, &["digest"]);
    let done = ctx.submit(operation, asked).await?;
    let answer = told(done, before, async { Value::Null }, object.what.clone()).await;
    Ok(answer.with("note", WAITS))
}

/// A name of a zone or vnet: it becomes part of device names.
fn checked<'n>(argument: &str, name: &'n str) -> Result<&'n str> {
    let form = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && (2..=8).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric());
    if form {
        return Ok(name);
    }
    Err(Error::argument(format!("argument `{argument}` cannot be {name:?}"))
        .hint("2 to 8 letters and digits, a letter first")
        .with("argument", argument))
}

/// Types of zones.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ZoneType {
    Simple,
    Vlan,
    Qinq,
    Vxlan,
    Evpn,
}

impl ZoneType {
    const fn as_str(self) -> &'static str {
        match self {
            ZoneType::Simple => "simple",
            ZoneType::Vlan => "vlan",
            ZoneType::Qinq => "qinq",
            ZoneType::Vxlan => "vxlan",
            ZoneType::Evpn => "evpn",
        }
    }
}

/// Arguments of `pve_sdn_zone_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ZoneSet {
    zone: String,
    r#type: Option<ZoneType>,
    bridge: Option<String>,
    tag: Option<u32>,
    peers: Option<Vec<String>>,
    controller: Option<String>,
    #[schemars(range(min = 1, max = 16_777_215))]
    vrf_vxlan: Option<u32>,
    mtu: Option<u32>,
    nodes: Option<Vec<String>>,
    ipam: Option<String>,
    set: Option<Map<String, Value>>,
    delete: Option<Vec<String>>,
    digest: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

fn zone_object(zone: &str) -> Result<Object<'static>> {
    let id = checked("zone", zone)?.to_owned();
    let what = format!("zone {id}");
    Ok(Object { list: [ROOT.as_slice(), &["zones"]].concat(), key: "zone", id, what })
}

/// `pve_sdn_zone_set`
pub async fn zone_set(ctx: Ctx<'_>, args: ZoneSet) -> Result<Answer> {
    let object = zone_object(&args.zone)?;
    let params = Params::from_json(&Value::Object(args.set.unwrap_or_default()))?
        .with_some("bridge", args.bridge)
        .with_some("tag", args.tag)
        .with_some("peers", args.peers.map(|p| p.join(",")))
        .with_some("controller", args.controller)
        .with_some("vrf-vxlan", args.vrf_vxlan)
        .with_some("mtu", args.mtu)
        .with_some("nodes", args.nodes.map(|n| n.join(",")))
        .with_some("ipam", args.ipam);
    let create = match args.r#type {
        Some(kind) => Ok(Params::new().with("zone", &object.id).with("type", kind.as_str())),
        None => Err(Error::argument("a new zone needs `type`").with("argument", "type")),
    };
    if let Some(kind) = args.r#type {
        let rows = object.rows(ctx).await?;
        if let Some(own) = object.row(&rows).and_then(|r| loose::text(r, "type"))
            && own != kind.as_str()
        {
            return Err(Error::new(Code::Conflict, format!("{} is of type {own}", object.what))
                .hint("a zone keeps its type: delete it and make it anew"));
        }
    }
    let wish = Wish {
        params,
        delete: args.delete.unwrap_or_default(),
        digest: args.digest,
        must_exist: args.must_exist,
        must_not_exist: args.must_not_exist,
        asked: args.asked,
    };
    put(ctx, object, wish, create).await
}

/// Arguments of `pve_sdn_zone_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ZoneDelete {
    zone: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_sdn_zone_delete`
pub async fn zone_delete(ctx: Ctx<'_>, args: ZoneDelete) -> Result<Answer> {
    let object = zone_object(&args.zone)?;
    let vnets = ctx.fresh(&["cluster", "sdn", "vnets"], Params::new()).await?;
    let held: Vec<String> = loose::rows(&vnets)
        .iter()
        .filter(|v| loose::str(v, "zone") == Some(&object.id))
        .filter_map(|v| loose::text(v, "vnet"))
        .collect();
    if !held.is_empty() {
        return Err(Error::new(
            Code::Conflict,
            format!("{} has vnets: {}", object.what, held.join(", ")),
        )
        .hint("delete or move them first")
        .with("vnets", held));
    }
    remove(ctx, object, &args.asked).await
}

/// Arguments of `pve_sdn_vnet_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct VnetSet {
    vnet: String,
    zone: Option<String>,
    #[schemars(range(min = 1, max = 16_777_215))]
    tag: Option<u32>,
    alias: Option<String>,
    vlanaware: Option<bool>,
    isolate_ports: Option<bool>,
    delete: Option<Vec<String>>,
    digest: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

fn vnet_object(vnet: &str) -> Result<Object<'static>> {
    let id = checked("vnet", vnet)?.to_owned();
    let what = format!("vnet {id}");
    Ok(Object { list: [ROOT.as_slice(), &["vnets"]].concat(), key: "vnet", id, what })
}

/// `pve_sdn_vnet_set`
pub async fn vnet_set(ctx: Ctx<'_>, args: VnetSet) -> Result<Answer> {
    let object = vnet_object(&args.vnet)?;
    let create = if args.zone.is_some() {
        Ok(Params::new().with("vnet", &object.id))
    } else {
        Err(Error::argument("a new vnet needs `zone`").with("argument", "zone"))
    };
    let params = Params::new()
        .with_some("zone", args.zone)
        .with_some("tag", args.tag)
        .with_some("alias", args.alias);
    let params =
        switch(switch(params, "vlanaware", args.vlanaware), "isolate-ports", args.isolate_ports);
    let wish = Wish {
        params,
        delete: args.delete.unwrap_or_default(),
        digest: args.digest,
        must_exist: args.must_exist,
        must_not_exist: args.must_not_exist,
        asked: args.asked,
    };
    put(ctx, object, wish, create).await
}

/// Arguments of `pve_sdn_vnet_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct VnetDelete {
    vnet: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_sdn_vnet_delete`
pub async fn vnet_delete(ctx: Ctx<'_>, args: VnetDelete) -> Result<Answer> {
    let object = vnet_object(&args.vnet)?;
    let subnets =
        ctx.fresh(&["cluster", "sdn", "vnets", &object.id, "subnets"], Params::new()).await;
    let held: Vec<String> = subnets
        .iter()
        .flat_map(|rows| loose::rows(rows))
        .filter_map(|s| loose::text(s, "cidr").or_else(|| loose::text(s, "subnet")))
        .collect();
    if !held.is_empty() {
        return Err(Error::new(
            Code::Conflict,
            format!("{} has subnets: {}", object.what, held.join(", ")),
        )
        .hint("delete them first with pve_sdn_subnet_delete")
        .with("subnets", held));
    }
    remove(ctx, object, &args.asked).await
}

/// Arguments of `pve_sdn_subnet_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SubnetSet {
    vnet: String,
    /// As 192.0.2.0/24.
    subnet: String,
    gateway: Option<String>,
    snat: Option<bool>,
    /// As `start-address=192.0.2.10,end-address=192.0.2.99`.
    dhcp_range: Option<Vec<String>>,
    dhcp_dns_server: Option<String>,
    dnszoneprefix: Option<String>,
    delete: Option<Vec<String>>,
    digest: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// A subnet by its network; the host part has to be zero.
fn network(text: &str) -> Result<ipnet::IpNet> {
    let bad = |hint: String| {
        Error::argument(format!("argument `subnet` cannot be {text:?}"))
            .hint(hint)
            .with("argument", "subnet")
    };
    let net: ipnet::IpNet =
        text.parse().map_err(|_| bad("a network, as 192.0.2.0/24".to_owned()))?;
    if net.addr() != net.network() {
        return Err(bad(format!("the network is {}", net.trunc())));
    }
    Ok(net)
}

async fn subnet_object<'o>(ctx: Ctx<'_>, vnet: &'o str, subnet: &str) -> Result<Object<'o>> {
    checked("vnet", vnet)?;
    let net = network(subnet)?;
    let vnets = ctx.fresh(&["cluster", "sdn", "vnets"], Params::new()).await?;
    if named(&vnets, "vnet", vnet).is_none() {
        return Err(Error::new(Code::NotFound, format!("there is no vnet {vnet:?}"))
            .hint("pve_sdn_status lists them"));
    }
    let what = format!("subnet {net} of vnet {vnet}");
    Ok(Object {
        list: vec!["cluster", "sdn", "vnets", vnet, "subnets"],
        key: "cidr",
        id: net.to_string(),
        what,
    })
}

/// `pve_sdn_subnet_set`
pub async fn subnet_set(ctx: Ctx<'_>, args: SubnetSet) -> Result<Answer> {
    let object = subnet_object(ctx, &args.vnet, &args.subnet).await?;
    let net = network(&args.subnet)?;
    if let Some(gateway) = &args.gateway {
        let inside = gateway.parse().is_ok_and(|ip: std::net::IpAddr| net.contains(&ip));
        if !inside {
            return Err(Error::argument(format!("argument `gateway` cannot be {gateway:?}"))
                .hint(format!("an address in {net}"))
                .with("argument", "gateway"));
        }
    }
    let create = Ok(Params::new().with("subnet", &object.id).with("type", "subnet"));
    let params = Params::new()
        .with_some("gateway", args.gateway)
        .with_some("dhcp-dns-server", args.dhcp_dns_server)
        .with_some("dnszoneprefix", args.dnszoneprefix)
        .with_many("dhcp-range", args.dhcp_range.unwrap_or_default());
    let wish = Wish {
        params: switch(params, "snat", args.snat),
        delete: args.delete.unwrap_or_default(),
        digest: args.digest,
        must_exist: args.must_exist,
        must_not_exist: args.must_not_exist,
        asked: args.asked,
    };
    put(ctx, object, wish, create).await
}

/// Arguments of `pve_sdn_subnet_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SubnetDelete {
    vnet: String,
    /// As 192.0.2.0/24.
    subnet: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_sdn_subnet_delete`
pub async fn subnet_delete(ctx: Ctx<'_>, args: SubnetDelete) -> Result<Answer> {
    let object = subnet_object(ctx, &args.vnet, &args.subnet).await?;
    remove(ctx, object, &args.asked).await
}

/// Arguments of `pve_sdn_apply`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Apply {
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_sdn_apply`
pub async fn apply(ctx: Ctx<'_>, args: Apply) -> Result<Answer> {
    let waiting = waiting(ctx).await?;
    let done = ctx.run(operation(Method::Put, &ROOT, Params::new())?, &args.asked).await?;
    let after = async { waiting_left(ctx).await.map_or(Value::Null, |n| json!({"pending": n})) };
    let before = json!({"pending": waiting});
    Ok(told(done, before, after, "networks of the whole cluster").await)
}

async fn waiting_left(ctx: Ctx<'_>) -> Result<usize> {
    Ok(waiting(ctx).await?.len())
}

/// What is pending, whole: applying takes all of it, whoever staged it.
async fn waiting(ctx: Ctx<'_>) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    let mut take = |kind: &str, key: &str, rows: &Value| {
        for row in loose::rows(rows).iter().filter(|r| loose::some(r, "state").is_some()) {
            found.push(json!({
                "kind": kind, "id": loose::text(row, key), "change": loose::text(row, "state"),
                "settings": row.get("pending"),
            }));
        }
    };
    let zones = ctx.fresh(&["cluster", "sdn", "zones"], pending()).await?;
    take("zone", "zone", &zones);
    let vnets = ctx.fresh(&["cluster", "sdn", "vnets"], pending()).await?;
    take("vnet", "vnet", &vnets);
    for vnet in loose::rows(&vnets).iter().filter_map(|v| loose::str(v, "vnet")) {
        if let Ok(rows) = ctx.fresh(&["cluster", "sdn", "vnets", vnet, "subnets"], pending()).await
        {
            take("subnet", "subnet", &rows);
        }
    }
    if let Ok(rows) = ctx.fresh(&["cluster", "sdn", "controllers"], pending()).await {
        take("controller", "controller", &rows);
    }
    Ok(found)
}
