//! A snapshot of the estate: what the API answered, typed, with every part
//! marked as seen or not seen. "Not seen" is never "none".

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;

use crate::{
    Error,
    pve::{Vmid, loose},
};

mod backup;
mod config;
mod guest;
mod health;
mod node;
mod rights;
mod storage;

pub use backup::{Backup, BackupJob, Selection};
pub use config::Setup;
pub use guest::{Guest, GuestKind, GuestStatus};
pub(crate) use health::release_numbers;
pub use health::{
    Certificate, HaEntry, Kernels, NodeDisk, Replication, Task, ThinPool, Updates, Zone,
};
pub use node::{Cluster, Node};
pub use rights::Rights;
pub use storage::{Content, GuestSnapshot, Storage, Volume, unique};

/// What one request came back with; `Result::as_ref` and `Result::as_deref` make one.
pub type Answer<'a> = std::result::Result<&'a Value, &'a Error>;

/// One part of the estate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<T> {
    /// It was seen.
    Known(T),
    /// It could not be seen; says why, without a trailing full stop.
    Unknown(String),
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self::Unknown("not read".to_owned())
    }
}

impl<T> Part<T> {
    /// From an answer, read by `read`.
    pub fn of(answer: Answer<'_>, read: impl FnOnce(&Value) -> T) -> Self {
        match answer {
            Ok(value) => Self::Known(read(value)),
            Err(error) => Self::Unknown(error.message.clone()),
        }
    }

    /// The value, when it was seen.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// Why it was not seen.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(why) => Some(why),
        }
    }
}

impl<T> Part<Vec<T>> {
    /// The rows; none when they were not seen, so ask [`Part::why`] too.
    pub fn rows(&self) -> &[T] {
        self.known().map_or(&[], Vec::as_slice)
    }
}

/// A storage on one node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct StorageKey {
    /// Node name.
    pub node: String,
    /// Storage id.
    pub storage: String,
}

/// Everything that was read, keyed by what it was asked for. Whoever reads
/// the API fills it; what is not filled counts as not seen.
#[derive(Debug, Default)]
pub struct Estate {
    /// The moment of the snapshot, seconds since 1970.
    pub now: i64,
    /// Name, quorum and members.
    pub cluster: Part<Cluster>,
    /// Nodes.
    pub nodes: Part<Vec<Node>>,
    /// Guests of both kinds, templates too.
    pub guests: Part<Vec<Guest>>,
    /// Storages of each node; a shared one stands here once for each.
    pub storages: Part<Vec<Storage>>,
    /// Backup jobs.
    pub jobs: Part<Vec<BackupJob>>,
    /// Recent tasks of all nodes, newest first.
    pub tasks: Part<Vec<Task>>,
    /// State of high availability.
    pub ha: Part<Vec<HaEntry>>,
    /// What the token may do.
    pub rights: Part<Rights>,
    /// Volumes and backups on a storage; a shared one is asked on one node.
    pub content: BTreeMap<StorageKey, Part<Content>>,
    /// Snapshots of a guest, without the entry `current`.
    pub snapshots: BTreeMap<Vmid, Part<Vec<GuestSnapshot>>>,
    /// Configuration of a guest.
    pub configs: BTreeMap<Vmid, Part<Setup>>,
    /// Replication jobs that run on a node.
    pub replication: BTreeMap<String, Part<Vec<Replication>>>,
    /// Certificates of a node.
    pub certificates: BTreeMap<String, Part<Vec<Certificate>>>,
    /// Disks of a node.
    pub disks: BTreeMap<String, Part<Vec<NodeDisk>>>,
    /// LVM thin pools of a node.
    pub thin_pools: BTreeMap<String, Part<Vec<ThinPool>>>,
    /// Packages and kernels of a node.
    pub updates: BTreeMap<String, Part<Updates>>,
    /// The time zone of a node; UTC where it is not known.
    pub zones: BTreeMap<String, Part<Zone>>,
}

impl Estate {
    /// An estate of which nothing is known yet.
    #[must_use]
    pub fn new(now: i64) -> Self {
        Self { now, ..Self::default() }
    }

    /// `GET /access/permissions`.
    pub fn read_rights(&mut self, answer: Answer<'_>) {
        self.rights = Part::of(answer, Rights::read);
        self.tell_empty_from_hidden();
    }

    /// `GET /cluster/resources`: guests, nodes and storages.
    pub fn read_resources(&mut self, answer: Answer<'_>) {
        self.guests = Part::of(answer, Guest::list);
        self.nodes = Part::of(answer, Node::list);
        self.storages = Part::of(answer, Storage::list);
        self.tell_empty_from_hidden();
    }

    /// The API leaves out what a token may not see; an empty list may mean that.
    fn tell_empty_from_hidden(&mut self) {
        let Part::Known(rights) = &self.rights else { return };
        if self.guests.known().is_some_and(Vec::is_empty) && !rights.anywhere("/vms", "VM.Audit") {
            self.guests = Part::Unknown(
                "0 guests visible: the token lacks VM.Audit on /vms (a token with privilege \
                 separation has only the rights given to itself)"
                    .to_owned(),
            );
        }
        if self.storages.known().is_some_and(Vec::is_empty)
            && !rights.anywhere("/storage", "Datastore.Audit")
        {
            self.storages = Part::Unknown(
                "0 storages visible: the token lacks Datastore.Audit on /storage".to_owned(),
            );
        }
    }

    /// `GET /cluster/status`. After [`Estate::read_resources`].
    pub fn read_cluster_status(&mut self, answer: Answer<'_>) {
        self.cluster = Part::of(answer, Cluster::read);
    }

    /// `GET /nodes/{node}/status`: versions and available memory. After [`Estate::read_resources`].
    pub fn read_node_status(&mut self, node: &str, answer: Answer<'_>) {
        if let (Part::Known(nodes), Ok(value)) = (&mut self.nodes, answer)
            && let Some(found) = nodes.iter_mut().find(|n| n.name == node)
        {
            found.add_status(value);
        }
    }

    /// `GET /nodes/{node}/storage`: which are enabled and active. After [`Estate::read_resources`].
    pub fn read_node_storage(&mut self, node: &str, answer: Answer<'_>) {
        if let (Part::Known(storages), Ok(value)) = (&mut self.storages, answer) {
            for row in loose::rows(value) {
                let found = storages
                    .iter_mut()
                    .find(|s| s.node == node && Some(s.id.as_str()) == loose::str(row, "storage"));
                match found {
                    Some(found) => found.add_state(row),
                    None => storages.extend(Storage::of_node(node, row)),
                }
            }
        }
    }

    /// `GET /cluster/backup`.
    pub fn read_jobs(&mut self, answer: Answer<'_>) {
        self.jobs = Part::of(answer, BackupJob::list);
    }

    /// `GET /cluster/tasks`, or the tasks of one node added to those of others.
    pub fn read_tasks(&mut self, answer: Answer<'_>) {
        let more = Part::of(answer, Task::list);
        match (&mut self.tasks, more) {
            (Part::Known(tasks), Part::Known(more)) => {
                tasks.extend(more);
                Task::tidy(tasks);
            }
            (tasks @ Part::Unknown(_), more) => *tasks = more,
            (Part::Known(_), Part::Unknown(_)) => {}
        }
    }

    /// `GET /cluster/ha/status/current`.
    pub fn read_ha(&mut self, answer: Answer<'_>) {
        self.ha = Part::of(answer, HaEntry::list);
    }

    /// `GET /nodes/{node}/storage/{storage}/content`.
    pub fn read_content(&mut self, node: &str, storage: &str, answer: Answer<'_>) {
        let key = StorageKey { node: node.to_owned(), storage: storage.to_owned() };
        self.content.insert(key, Part::of(answer, Content::read));
    }

    /// `GET /nodes/{node}/{qemu|lxc}/{vmid}/snapshot`.
    pub fn read_snapshots(&mut self, vmid: Vmid, answer: Answer<'_>) {
        self.snapshots.insert(vmid, Part::of(answer, GuestSnapshot::list));
    }

    /// `GET /nodes/{node}/{qemu|lxc}/{vmid}/config`.
    pub fn read_config(&mut self, vmid: Vmid, kind: GuestKind, answer: Answer<'_>) {
        self.configs.insert(vmid, Part::of(answer, |v| Setup::read(kind, v)));
    }

    /// `GET /nodes/{node}/replication`.
    pub fn read_replication(&mut self, node: &str, answer: Answer<'_>) {
        self.replication.insert(node.to_owned(), Part::of(answer, Replication::list));
    }

    /// `GET /nodes/{node}/certificates/info`.
    pub fn read_certificates(&mut self, node: &str, answer: Answer<'_>) {
        self.certificates.insert(node.to_owned(), Part::of(answer, Certificate::list));
    }

    /// `GET /nodes/{node}/disks/list`.
    pub fn read_disks(&mut self, node: &str, answer: Answer<'_>) {
        self.disks.insert(node.to_owned(), Part::of(answer, NodeDisk::list));
    }

    /// `GET /nodes/{node}/disks/lvmthin`.
    pub fn read_thin_pools(&mut self, node: &str, answer: Answer<'_>) {
        self.thin_pools.insert(node.to_owned(), Part::of(answer, ThinPool::list));
    }

    /// `GET /nodes/{node}/apt/update` and `GET /nodes/{node}/apt/versions`.
    pub fn read_updates(&mut self, node: &str, pending: Answer<'_>, versions: Answer<'_>) {
        self.updates.insert(node.to_owned(), Part::Known(Updates::read(pending, versions)));
    }

    /// `GET /nodes/{node}/time`.
    pub fn read_time(&mut self, node: &str, answer: Answer<'_>) {
        self.zones.insert(node.to_owned(), Part::of(answer, Zone::read));
    }

    /// The storages whose content is worth reading, a shared one once. After
    /// [`Estate::read_node_storage`] of all nodes.
    #[must_use]
    pub fn content_to_read(&self) -> Vec<StorageKey> {
        unique(self.storages.rows())
            .into_iter()
            .filter(|s| s.usable() && ["backup", "images", "rootdir"].iter().any(|c| s.holds(c)))
            .map(|s| StorageKey { node: s.node.clone(), storage: s.id.clone() })
            .collect()
    }

    /// The zone in which a node reads its schedules.
    #[must_use]
    pub fn zone(&self, node: &str) -> TimeZone {
        let known = self.zones.get(node).and_then(Part::known);
        // Jobs of a cluster run on every node; any node's zone is better than none.
        known
            .or_else(|| self.zones.values().find_map(Part::known))
            .map_or(TimeZone::UTC, |zone| zone.zone.clone())
    }

    /// A guest by number.
    #[must_use]
    pub fn guest(&self, vmid: Vmid) -> Option<&Guest> {
        self.guests.rows().iter().find(|g| g.vmid == vmid)
    }

    /// Nodes that are not reachable now.
    pub fn offline(&self) -> impl Iterator<Item = &str> {
        self.nodes.rows().iter().filter(|n| !n.online).map(|n| n.name.as_str())
    }

    /// The node's name is that of a node that is not reachable now.
    #[must_use]
    pub fn is_offline(&self, node: &str) -> bool {
        self.offline().any(|n| n == node)
    }
}
