//! Which firewall the arguments of a tool mean.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Error, Result,
    insight::estate::Guest,
    pve::{ApiPath, NodeName, Params, Vmid},
    safety::{Method, Operation},
    tools::Ctx,
};

pub use crate::safety::impact::Place;

/// Arguments that name a firewall with rules; none of them is the cluster's.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Scope {
    pub node: Option<NodeName>,
    pub vmid: Option<Vmid>,
    pub group: Option<String>,
    pub vnet: Option<String>,
}

/// Arguments that name a firewall with aliases and IP sets.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct ClusterOrGuest {
    pub vmid: Option<Vmid>,
}

impl Place {
    /// The one that the arguments name. A guest is looked up afresh.
    ///
    /// # Errors
    /// `invalid_argument` where two are named, `not_found`.
    pub async fn of(ctx: Ctx<'_>, scope: &Scope) -> Result<Self> {
        let named = [
            scope.node.is_some(),
            scope.vmid.is_some(),
            scope.group.is_some(),
            scope.vnet.is_some(),
        ];
        if named.iter().filter(|n| **n).count() > 1 {
            return Err(Error::argument(
                "only one of `node`, `vmid`, `group`, `vnet` can be meant",
            )
            .hint("without any of them it is the cluster's firewall"));
        }
        if let Some(node) = &scope.node {
            return Ok(Self::of_node(&ctx.node(node.as_str()).await?));
        }
        if let Some(vmid) = scope.vmid {
            return Ok(guest_place(&ctx.guest_now(vmid).await?));
        }
        if let Some(group) = &scope.group {
            return Ok(Self::of_group(group));
        }
        Ok(scope.vnet.as_deref().map_or_else(Self::cluster, Self::of_vnet))
    }

    /// The cluster's or a guest's.
    ///
    /// # Errors
    /// `not_found`.
    pub async fn cluster_or_guest(ctx: Ctx<'_>, scope: &ClusterOrGuest) -> Result<Self> {
        match scope.vmid {
            Some(vmid) => Ok(guest_place(&ctx.guest_now(vmid).await?)),
            None => Ok(Self::cluster()),
        }
    }

    /// A change below this firewall.
    ///
    /// # Errors
    /// `path_refused`.
    pub fn operation(&self, method: Method, below: &[&str], params: Params) -> Result<Operation> {
        Ok(Operation { method, path: ApiPath::of(&self.below(below))?, params })
    }
}

/// The firewall of a guest that was looked up.
pub fn guest_place(guest: &Guest) -> Place {
    Place::of_guest(&guest.node, guest.kind, guest.vmid)
}

/// A name as the firewall takes it: `[A-Za-z][A-Za-z0-9\-_]+`.
///
/// # Errors
/// `invalid_argument`.
pub fn checked<'n>(argument: &str, name: &'n str, most: usize) -> Result<&'n str> {
    let form = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && (2..=most).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    if form {
        return Ok(name);
    }
    Err(Error::argument(format!("argument `{argument}` cannot be {name:?}"))
        .hint(format!("2 to {most} letters, digits, `-` and `_`, a letter first"))
        .with("argument", argument))
}
