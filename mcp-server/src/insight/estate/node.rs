//! The cluster and its nodes.

use serde_json::Value;

use crate::pve::loose;

/// The cluster as `GET /cluster/status` tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Name; none for a node that stands alone.
    pub name: Option<String>,
    /// Whether enough nodes see each other; none for a node that stands alone.
    pub quorate: Option<bool>,
    /// Members that are online.
    pub online: usize,
    /// Members.
    pub members: usize,
}

impl Cluster {
    pub(super) fn read(value: &Value) -> Self {
        let mut cluster = Self::default();
        for row in loose::rows(value) {
            match loose::str(row, "type") {
                Some("cluster") => {
                    cluster.name = loose::text(row, "name");
                    cluster.quorate = Some(loose::flag(row, "quorate"));
                }
                Some("node") => {
                    cluster.members += 1;
                    cluster.online += usize::from(loose::flag(row, "online"));
                }
                _ => {}
            }
        }
        cluster
    }
}

/// A node and its present load. Sizes are bytes. Load is absent where the
/// token lacks Sys.Audit or the node is offline.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Whether the cluster sees it.
    pub online: bool,
    /// Share of all cores in use, 0 to 1.
    pub cpu: Option<f64>,
    /// Cores.
    pub maxcpu: Option<u64>,
    /// Memory in use.
    pub mem: Option<u64>,
    /// Memory that guests could take, cache not counted, where the node was asked.
    pub mem_available: Option<u64>,
    /// Memory.
    pub maxmem: Option<u64>,
    /// Root file system in use.
    pub disk: Option<u64>,
    /// Root file system size.
    pub maxdisk: Option<u64>,
    /// Seconds since it started.
    pub uptime: Option<u64>,
    /// Version of Proxmox VE, for example `9.2.11`.
    pub version: Option<String>,
    /// The kernel it runs, for example `6.17.2-1-pve`.
    pub kernel: Option<String>,
}

impl Node {
    /// The nodes among the rows of `GET /cluster/resources`, by name.
    #[must_use]
    pub fn list(resources: &Value) -> Vec<Self> {
        let mut nodes: Vec<Self> = loose::rows(resources)
            .iter()
            .filter(|row| loose::str(row, "type") == Some("node"))
            .filter_map(|row| {
                Some(Self {
                    name: loose::text(row, "node")?,
                    online: loose::str(row, "status") == Some("online"),
                    cpu: loose::float(row, "cpu"),
                    maxcpu: loose::uint(row, "maxcpu"),
                    mem: loose::uint(row, "mem"),
                    mem_available: None,
                    maxmem: loose::uint(row, "maxmem"),
                    disk: loose::uint(row, "disk"),
                    maxdisk: loose::uint(row, "maxdisk"),
                    uptime: loose::uint(row, "uptime"),
                    version: None,
                    kernel: None,
                })
            })
            .collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        nodes
    }

    /// Adds what `GET /nodes/{node}/status` knows better.
    pub(super) fn add_status(&mut self, status: &Value) {
        self.mem_available =
            status.get("memory").and_then(|memory| loose::uint(memory, "available"));
        // pve-manager/9.2.11/14a22df3a1b2c3d4
        self.version =
            loose::str(status, "pveversion").map(|v| v.split('/').nth(1).unwrap_or(v).to_owned());
        self.kernel = status
            .get("current-kernel")
            .and_then(|kernel| loose::text(kernel, "release"))
            .or_else(|| loose::str(status, "kversion")?.split(' ').nth(1).map(str::to_owned));
    }
}
