//! Vnets.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    ROOT,
    object::{Object, Wish, checked, put, remove},
};
use crate::{
    Code, Error, Result,
    pve::{Params, loose},
    render::Answer,
    tools::{Ctx, change::Asked, outcome::switch},
};

/// Arguments of `pve_sdn_vnet_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
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

fn vnet(vnet: &str) -> Result<Object<'static>> {
    let id = checked("vnet", vnet)?.to_owned();
    let what = format!("vnet {id}");
    Ok(Object { list: [ROOT.as_slice(), &["vnets"]].concat(), key: "vnet", id, what })
}

/// `pve_sdn_vnet_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    let object = vnet(&args.vnet)?;
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
pub struct Delete {
    vnet: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_sdn_vnet_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let object = vnet(&args.vnet)?;
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
