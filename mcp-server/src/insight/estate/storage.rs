//! Storages, what lies on them, and snapshots of guests.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Backup, guest::share};
use crate::pve::{Vmid, loose};

/// A storage on one node. Sizes are bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Storage {
    /// Node.
    pub node: String,
    /// Storage id; the same id on two nodes is two storages unless shared.
    pub id: String,
    /// Type, for example `dir`, `lvmthin`, `nfs`, `pbs`.
    pub plugin: String,
    /// Whether all nodes see the same data.
    pub shared: bool,
    /// Kinds of content it takes, for example `backup`.
    pub content: Vec<String>,
    /// Whether it is enabled; none where the node was not asked.
    pub enabled: Option<bool>,
    /// Whether it answers.
    pub active: bool,
    /// In use.
    pub used: Option<u64>,
    /// Size.
    pub total: Option<u64>,
}

impl Storage {
    /// The storages among the rows of `GET /cluster/resources`.
    #[must_use]
    pub fn list(resources: &Value) -> Vec<Self> {
        let mut storages: Vec<Self> = loose::rows(resources)
            .iter()
            .filter(|row| loose::str(row, "type") == Some("storage"))
            .filter_map(|row| {
                Some(Self {
                    node: loose::text(row, "node")?,
                    id: loose::text(row, "storage")?,
                    plugin: loose::text(row, "plugintype").unwrap_or_default(),
                    shared: loose::flag(row, "shared"),
                    content: list(loose::str(row, "content")),
                    enabled: None,
                    active: loose::str(row, "status") == Some("available"),
                    used: loose::uint(row, "disk"),
                    total: loose::uint(row, "maxdisk"),
                })
            })
            .collect();
        storages.sort_by(|a, b| (&a.id, &a.node).cmp(&(&b.id, &b.node)));
        storages
    }

    /// A row of `GET /nodes/{node}/storage`.
    pub(super) fn of_node(node: &str, row: &Value) -> Option<Self> {
        let mut storage = Self {
            node: node.to_owned(),
            id: loose::text(row, "storage")?,
            plugin: loose::text(row, "type").unwrap_or_default(),
            shared: loose::flag(row, "shared"),
            content: list(loose::str(row, "content")),
            enabled: None,
            active: false,
            used: None,
            total: None,
        };
        storage.add_state(row);
        Some(storage)
    }

    /// Adds what a row of `GET /nodes/{node}/storage` knows better.
    pub(super) fn add_state(&mut self, row: &Value) {
        self.enabled = loose::some(row, "enabled").map(|_| loose::flag(row, "enabled"));
        if loose::some(row, "active").is_some() {
            self.active = loose::flag(row, "active");
        }
        self.used = loose::uint(row, "used").or(self.used);
        self.total = loose::uint(row, "total").or(self.total);
    }

    /// Whether it is switched on and answers.
    #[must_use]
    pub fn usable(&self) -> bool {
        self.active && self.enabled != Some(false)
    }

    /// Whether it takes a kind of content.
    #[must_use]
    pub fn holds(&self, content: &str) -> bool {
        self.content.iter().any(|c| c == content)
    }

    /// In use of its size, 0 to 1.
    #[must_use]
    pub fn fill(&self) -> Option<f64> {
        if !self.usable() {
            return None;
        }
        share(self.used?, self.total?)
    }

    /// `nfs-backup` for a shared storage, `local on pve1` for one of a node.
    #[must_use]
    pub fn title(&self) -> String {
        if self.shared { self.id.clone() } else { format!("{} on {}", self.id, self.node) }
    }
}

/// Each storage once: a shared one stands for all its nodes, by one on which it answers.
#[must_use]
pub fn unique(storages: &[Storage]) -> Vec<&Storage> {
    let mut shared: BTreeMap<&str, &Storage> = BTreeMap::new();
    let mut found = Vec::new();
    for storage in storages {
        if !storage.shared {
            found.push(storage);
            continue;
        }
        let kept = shared.entry(&storage.id).or_insert(storage);
        if !kept.usable() && storage.usable() {
            *kept = storage;
        }
    }
    found.extend(shared.into_values());
    found.sort_by(|a, b| (&a.id, &a.node).cmp(&(&b.id, &b.node)));
    found
}

/// A list as Proxmox writes it: parted by commas, semicolons or blanks.
pub(super) fn list(text: Option<&str>) -> Vec<String> {
    text.unwrap_or_default()
        .split([',', ';', ' ', '\t', '\n'])
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// What lies on a storage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    /// Disk images and container volumes.
    pub volumes: Vec<Volume>,
    /// Backups.
    pub backups: Vec<Backup>,
}

/// A disk image or container volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Volume id, for example `local-lvm:vm-100-disk-0`.
    pub volid: String,
    /// The guest it was made for.
    pub owner: Option<Vmid>,
    /// Size in bytes.
    pub size: u64,
    /// When it was made, seconds since 1970.
    pub ctime: Option<i64>,
}

impl Content {
    pub(super) fn read(value: &Value) -> Self {
        let mut content = Self::default();
        for row in loose::rows(value) {
            match loose::str(row, "content") {
                Some("images" | "rootdir") => content.volumes.extend(Volume::read(row)),
                Some("backup") => content.backups.extend(Backup::read(row)),
                _ => {}
            }
        }
        content
    }
}

impl Volume {
    fn read(row: &Value) -> Option<Self> {
        let owner = loose::uint(row, "vmid").and_then(|n| Vmid::new(n).ok());
        Some(Self {
            volid: loose::text(row, "volid")?,
            owner,
            size: loose::uint(row, "size").unwrap_or(0),
            ctime: loose::int(row, "ctime"),
        })
    }
}

/// A snapshot of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestSnapshot {
    /// Name.
    pub name: String,
    /// When it was taken, seconds since 1970.
    pub time: Option<i64>,
    /// The snapshot it was taken on top of.
    pub parent: Option<String>,
    /// Whether it holds the VM's memory.
    pub vmstate: bool,
    /// What its maker wrote.
    pub description: String,
}

impl GuestSnapshot {
    /// The real snapshots: the API adds an entry `current` for the present state.
    #[must_use]
    pub fn list(value: &Value) -> Vec<Self> {
        loose::rows(value)
            .iter()
            .filter_map(|row| {
                let name = loose::text(row, "name").filter(|n| n != "current")?;
                Some(Self {
                    name,
                    time: loose::int(row, "snaptime"),
                    parent: loose::text(row, "parent"),
                    vmstate: loose::flag(row, "vmstate"),
                    description: loose::text(row, "description").unwrap_or_default(),
                })
            })
            .collect()
    }
}
