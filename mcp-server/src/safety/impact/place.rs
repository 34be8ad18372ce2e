//! Which firewall is meant: the cluster's, a node's, a guest's, a security group's or a vnet's.

use crate::{
    pve::{GuestKind, Vmid},
    safety::shown::quoted,
};

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
    #[must_use]
    pub fn cluster() -> Self {
        Self::new(&["cluster", "firewall"], "cluster")
    }

    /// A security group's.
    #[must_use]
    pub fn of_group(group: &str) -> Self {
        let place = Self::new(&["cluster", "firewall", "groups", group], format!("group {group}"));
        Self { group: true, ..place }
    }

    /// A node's.
    #[must_use]
    pub fn of_node(node: &str) -> Self {
        Self::new(&["nodes", node, "firewall"], format!("node {node}"))
    }

    /// A vnet's.
    #[must_use]
    pub fn of_vnet(vnet: &str) -> Self {
        Self::new(&["cluster", "sdn", "vnets", vnet, "firewall"], format!("vnet {vnet}"))
    }

    /// A guest's, on the node where it is now.
    #[must_use]
    pub fn of_guest(node: &str, kind: GuestKind, vmid: Vmid) -> Self {
        let number = vmid.to_string();
        let base = ["nodes", node, kind.as_str(), &number, "firewall"];
        Self { vmid: Some(vmid), ..Self::new(&base, format!("guest {number}")) }
    }

    /// Segments below this firewall.
    #[must_use]
    pub fn below<'p>(&'p self, below: &[&'p str]) -> Vec<&'p str> {
        self.base.iter().map(String::as_str).chain(below.iter().copied()).collect()
    }

    /// Segments of the rules, or of one of them.
    #[must_use]
    pub fn rules<'p>(&'p self, pos: Option<&'p str>) -> Vec<&'p str> {
        let mut segments = self.below(if self.group { &[] } else { &["rules"] });
        segments.extend(pos);
        segments
    }

    /// Whether it is a security group's.
    #[must_use]
    pub const fn is_group(&self) -> bool {
        self.group
    }

    /// Whether it has aliases and IP sets of its own.
    #[must_use]
    pub fn has_objects(&self) -> bool {
        self.vmid.is_some() || self.base.len() == 2
    }

    /// As it is called in a sentence, a name of the estate in quotes.
    #[must_use]
    pub fn quoted(&self) -> String {
        match self.name.split_once(' ') {
            None => format!("the {}", self.name),
            Some(_) if self.vmid.is_some() => self.name.clone(),
            Some((kind, name)) => format!("{kind} {}", quoted(name)),
        }
    }
}
