//! Subnets of a vnet.

use schemars::JsonSchema;
use serde::Deserialize;

use super::object::{Object, Wish, checked, put, remove};
use crate::{
    Code, Error, Result,
    pve::Params,
    render::Answer,
    tools::{Ctx, across::named, change::Asked, outcome::switch},
};

/// Arguments of `pve_sdn_subnet_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
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

async fn subnet<'o>(ctx: Ctx<'_>, vnet: &'o str, subnet: &str) -> Result<Object<'o>> {
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
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    let object = subnet(ctx, &args.vnet, &args.subnet).await?;
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
pub struct Delete {
    vnet: String,
    /// As 192.0.2.0/24.
    subnet: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_sdn_subnet_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let object = subnet(ctx, &args.vnet, &args.subnet).await?;
    remove(ctx, object, &args.asked).await
}
