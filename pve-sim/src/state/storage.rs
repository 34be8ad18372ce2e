//! Storages and what lies on them.

use serde_json::{Map, Value};

use super::State;

/// A storage definition, and how full it is on each node.
#[derive(Debug, Clone, Default)]
pub struct Storage {
    /// Its id.
    pub id: String,
    /// `dir`, `nfs`, `lvmthin`, `zfspool`, `pbs`, …
    pub kind: String,
    /// Content kinds it may hold.
    pub content: Vec<String>,
    /// One storage for all nodes.
    pub shared: bool,
    /// Switched off.
    pub disabled: bool,
    /// Nodes it is on; empty for all.
    pub nodes: Vec<String>,
    /// The other options of its definition, as the API shows them.
    pub options: Map<String, Value>,
    /// Space by node; one entry `*` for a shared storage.
    pub space: Vec<(String, Space)>,
}

/// Space of a storage on a node.
#[derive(Debug, Clone, Copy, Default)]
pub struct Space {
    /// Bytes.
    pub total: u64,
    /// Bytes in use when the estate was built.
    pub used: u64,
    /// Bytes more every second.
    pub growth: f64,
    /// Cannot be reached.
    pub offline: bool,
}

impl Storage {
    /// Whether a node has it.
    pub fn on(&self, node: &str) -> bool {
        self.nodes.is_empty() || self.nodes.iter().any(|n| n == node)
    }

    /// Whether it may hold this kind of content.
    pub fn takes(&self, content: &str) -> bool {
        self.content.iter().any(|c| c == content)
    }

    /// Its space on a node.
    pub fn space_on(&self, node: &str) -> Space {
        let found = self.space.iter().find(|(n, _)| n == node || n == "*");
        found.map(|(_, s)| *s).unwrap_or_default()
    }

    /// Its space on a node, to change.
    pub fn space_mut(&mut self, node: &str) -> Option<&mut Space> {
        self.space.iter_mut().find(|(n, _)| n == node || n == "*").map(|(_, s)| s)
    }

    /// Whether its volumes are files below a path.
    pub fn files(&self) -> bool {
        matches!(self.kind.as_str(), "dir" | "nfs" | "cifs" | "btrfs" | "cephfs")
    }
}

impl Space {
    /// Bytes in use at a moment.
    pub fn used_at(&self, born: i64, now: i64) -> u64 {
        let more = self.growth * (now - born).max(0) as f64;
        self.used.saturating_add(more.max(0.0) as u64).min(self.total)
    }
}

/// A volume: a disk image, a backup, an ISO image, a template.
#[derive(Debug, Clone)]
pub struct Volume {
    /// Its storage.
    pub storage: String,
    /// The node for storages that are not shared.
    pub node: Option<String>,
    /// Without the storage: `100/vm-100-disk-0.qcow2`, `iso/x.iso`.
    pub name: String,
    /// `images`, `rootdir`, `backup`, `iso`, `vztmpl`, `snippets`, `import`.
    pub content: String,
    /// `raw`, `qcow2`, `iso`, `tzst`, `tar.zst`, `vma.zst`, `subvol`, `pbs-vm`, `pbs-ct`.
    pub format: String,
    /// Bytes.
    pub size: u64,
    /// Bytes in use, where the storage can tell.
    pub used: Option<u64>,
    /// The guest it belongs to.
    pub vmid: Option<u32>,
    /// Unix seconds.
    pub ctime: i64,
    /// The image it is a clone of.
    pub parent: Option<String>,
    /// Notes of a backup.
    pub notes: Option<String>,
    /// Protected from pruning and deletion.
    pub protected: bool,
    /// `qemu` or `lxc` of a backup.
    pub subtype: Option<&'static str>,
    /// Verification of a backup on a PBS: its state.
    pub verification: Option<String>,
    /// The guest's configuration in a backup.
    pub config: Option<String>,
}

impl Volume {
    /// A volume of a storage.
    pub fn new(
        storage: &str,
        name: &str,
        content: &str,
        format: &str,
        size: u64,
        ctime: i64,
    ) -> Self {
        Self {
            storage: storage.to_owned(),
            node: None,
            name: name.to_owned(),
            content: content.to_owned(),
            format: format.to_owned(),
            size,
            used: None,
            vmid: None,
            ctime,
            parent: None,
            notes: None,
            protected: false,
            subtype: None,
            verification: None,
            config: None,
        }
    }

    /// `storage:name`.
    pub fn volid(&self) -> String {
        format!("{}:{}", self.storage, self.name)
    }

    /// Whether a node sees it.
    pub fn seen_from(&self, node: &str) -> bool {
        self.node.as_deref().is_none_or(|n| n == node)
    }
}

impl State {
    /// A volume by id, as a node sees it.
    pub fn volume(&self, node: &str, volid: &str) -> Option<&Volume> {
        self.volumes.iter().find(|v| v.seen_from(node) && v.volid() == volid)
    }

    /// Whether volumes of a storage belong to one node.
    pub(crate) fn volume_node(&self, storage: &str, node: &str) -> Option<String> {
        let shared = self.storages.get(storage).is_some_and(|s| s.shared);
        (!shared).then(|| node.to_owned())
    }

    /// Takes up or gives back space on a storage.
    pub(crate) fn use_space(&mut self, storage: &str, node: &str, bytes: i64) {
        if let Some(space) = self.storages.get_mut(storage).and_then(|s| s.space_mut(node)) {
            space.used = space.used.saturating_add_signed(bytes).min(space.total);
        }
    }
}
