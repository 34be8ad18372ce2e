//! Zones.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    ROOT,
    object::{Object, Wish, checked, put, remove},
};
use crate::{
    Code, Error, Result,
    pve::{Params, loose},
    render::Answer,
    tools::{Ctx, change::Asked},
};

/// Types of zones.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    Simple,
    Vlan,
    Qinq,
    Vxlan,
    Evpn,
}

impl Type {
    const fn as_str(self) -> &'static str {
        match self {
            Type::Simple => "simple",
            Type::Vlan => "vlan",
            Type::Qinq => "qinq",
            Type::Vxlan => "vxlan",
            Type::Evpn => "evpn",
        }
    }
}

/// Arguments of `pve_sdn_zone_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
    zone: String,
    r#type: Option<Type>,
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

fn zone(zone: &str) -> Result<Object<'static>> {
    let id = checked("zone", zone)?.to_owned();
    let what = format!("zone {id}");
    Ok(Object { list: [ROOT.as_slice(), &["zones"]].concat(), key: "zone", id, what })
}

/// `pve_sdn_zone_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    let object = zone(&args.zone)?;
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
pub struct Delete {
    zone: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_sdn_zone_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let object = zone(&args.zone)?;
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
