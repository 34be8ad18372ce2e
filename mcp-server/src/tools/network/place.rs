//! Which firewall is meant: the cluster's, a node's, a guest's, a security
//! group's or a vnet's.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Error, Result,
    pve::{ApiPath, NodeName, Params, Vmid},
    safety::{Method, Operation},
    tools::Ctx,
};

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

/// One firewall.
#[derive(Debug, Clone)]
pub struct Place {
    base: Vec<String>,
    /// Of a security group the rules are the object itself.
    group: bool,
    /// As it is called in answers, for example `guest 100`.
    pub name: String,
    /// The guest, where it is one's.
    pub vmid: Option<Vmid>,
}

impl Place {
    fn new(base: &[&str], name: impl Into<String>) -> Self {
        let base = base.iter().map(|s| (*s).to_owned()).collect();
        Self { base, group: false, name: name.into(), vmid: None }
    }

    /// The cluster's.
    pub fn cluster() -> Self {
        Self::new(&["cluster", "firewall"], "cluster")
    }

    /// A security group's.
    pub fn of_group(group: &str) -> Self {
        let place = Self::new(&["cluster", "firewall", "groups", group], format!("group {group}"));
        Self { group: true, ..place }
    }

    /// A node's.
    pub fn of_node(node: &str) -> Self {
        Self::new(&["nodes", node, "firewall"], format!("node {node}"))
    }

    /// A vnet's.
    pub fn of_vnet(vnet: &str) -> Self {
        Self::new(&["cluster", "sdn", "vnets", vnet, "firewall"], format!("vnet {vnet}"))
    }

    /// A guest's.
    pub fn of_guest(guest: &crate::insight::estate::Guest) -> Self {
        let vmid = guest.vmid.to_string();
        let place = Self::new(
            &["nodes", &guest.node, guest.kind.as_str(), &vmid, "firewall"],
            format!("guest {vmid}"),
        );
        Self { vmid: Some(guest.vmid), ..place }
    }

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
            return Ok(Self::of_guest(&ctx.guest_now(vmid).await?));
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
            Some(vmid) => Ok(Self::of_guest(&ctx.guest_now(vmid).await?)),
            None => Ok(Self::cluster()),
        }
    }

    /// Segments below this firewall.
    pub fn below<'p>(&'p self, below: &[&'p str]) -> Vec<&'p str> {
        self.base.iter().map(String::as_str).chain(below.iter().copied()).collect()
    }

    /// Segments of the rules, or of one of them.
    pub fn rules<'p>(&'p self, pos: Option<&'p str>) -> Vec<&'p str> {
        let mut segments = self.below(if self.group { &[] } else { &["rules"] });
        segments.extend(pos);
        segments
    }

    /// Whether it is a security group's.
    pub const fn is_group(&self) -> bool {
        self.group
    }

    /// A change below this firewall.
    ///
    /// # Errors
    /// `path_refused`.
    pub fn operation(&self, method: Method, below: &[&str], params: Params) -> Result<Operation> {
        Ok(Operation { method, path: ApiPath::of(&self.below(below))?, params })
    }
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
