//! Guests: configuration, pending changes, snapshots, and what runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::config::{Config, digest};
use super::rrd;
use crate::api::propstring;

/// A virtual machine or a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A QEMU virtual machine.
    Qemu,
    /// An LXC container.
    Lxc,
}

impl Kind {
    /// `qemu` or `lxc`.
    pub fn name(self) -> &'static str {
        if self == Self::Qemu { "qemu" } else { "lxc" }
    }

    /// `VM` or `CT`, as messages say it.
    pub fn short(self) -> &'static str {
        if self == Self::Qemu { "VM" } else { "CT" }
    }

    /// The prefix of its task types: `qm` or `vz`.
    pub fn task(self, what: &str) -> String {
        format!("{}{what}", if self == Self::Qemu { "qm" } else { "vz" })
    }

    /// The folder of its configuration file.
    pub fn folder(self) -> &'static str {
        if self == Self::Qemu { "qemu-server" } else { "lxc" }
    }
}

/// A running guest.
#[derive(Debug, Clone)]
pub struct Run {
    /// When it started, Unix seconds.
    pub since: i64,
    /// Its process.
    pub pid: u32,
    /// Suspended in memory.
    pub paused: bool,
    /// Its agent got something that it does not recover from.
    pub agent_stuck: bool,
    /// The disks, NICs and the rest as they were when it started.
    pub config: Config,
}

/// What a guest does when it runs.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Mean use of its own CPUs, 0 to 1.
    pub cpu: f64,
    /// Use of its memory, 0 to 1.
    pub mem: f64,
    /// Use of its root disk, 0 to 1 (containers show it).
    pub disk: f64,
    /// Bytes a second, in and out.
    pub net: (f64, f64),
    /// Bytes a second, read and written.
    pub io: (f64, f64),
    /// Memory pressure in percent of time.
    pub pressure: f64,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            cpu: 0.04,
            mem: 0.45,
            disk: 0.3,
            net: (9_000.0, 14_000.0),
            io: (20_000.0, 60_000.0),
            pressure: 0.0,
        }
    }
}

/// A snapshot; the tree is by `parent`.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// The snapshot it was made from.
    pub parent: Option<String>,
    /// Unix seconds.
    pub time: i64,
    /// The description, empty for none.
    pub description: String,
    /// Whether memory was saved, too.
    pub vmstate: bool,
    /// The configuration of that time, without what a snapshot leaves out.
    pub config: Config,
}

/// What a guest's agent knows.
#[derive(Debug, Clone, Default)]
pub struct Agent {
    /// The operating system's pretty name, e.g. `Debian GNU/Linux 13 (trixie)`.
    pub os: String,
    /// The kernel's release.
    pub kernel: String,
    /// Addresses with prefix of the first NIC.
    pub addresses: Vec<String>,
    /// File systems: mount point, device, total and used bytes.
    pub filesystems: Vec<(String, String, u64, u64)>,
    /// Files by path, for file-read and file-write.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Runs Windows.
    pub windows: bool,
    /// What it has beside files, where it is Windows.
    pub win: super::windows::Windows,
    /// Commands that its owner has switched off, e.g. `guest-exec`.
    pub off: Vec<String>,
    /// Its file systems are frozen.
    pub frozen: bool,
    /// The socket of a real `qemu-ga` that stands in for it.
    pub socket: Option<PathBuf>,
}

/// A guest.
#[derive(Debug, Clone)]
pub struct Guest {
    /// Its number.
    pub vmid: u32,
    /// VM or container.
    pub kind: Kind,
    /// The node it is on.
    pub node: String,
    /// Its configuration, with `lock` and `template` where set.
    pub config: Config,
    /// Values that wait for the next start; `None` deletes.
    pub pending: Vec<(String, Option<String>)>,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<Snapshot>,
    /// The snapshot that the present state was made from.
    pub parent: Option<String>,
    /// Set while it runs.
    pub run: Option<Run>,
    /// What it does when it runs.
    pub load: Load,
    /// The agent inside; `None` when none answers.
    pub agent: Option<Agent>,
    /// Ignores a request to shut down.
    pub stubborn: bool,
    /// When it was made, Unix seconds: its statistics begin there.
    pub created: i64,
    /// When the lock was set, Unix seconds.
    pub locked_since: Option<i64>,
}

impl Guest {
    /// A stopped guest.
    pub fn new(vmid: u32, kind: Kind, node: &str, config: Config, created: i64) -> Self {
        Self {
            vmid,
            kind,
            node: node.to_owned(),
            config,
            pending: Vec::new(),
            snapshots: Vec::new(),
            parent: None,
            run: None,
            load: Load::default(),
            agent: None,
            stubborn: false,
            created,
            locked_since: None,
        }
    }

    /// The configured name, if any.
    pub fn own_name(&self) -> Option<&str> {
        self.config.get(if self.kind == Kind::Qemu { "name" } else { "hostname" })
    }

    /// The name that lists show.
    pub fn name(&self) -> String {
        self.own_name()
            .map_or_else(|| format!("{} {}", self.kind.short(), self.vmid), str::to_owned)
    }

    /// Whether it runs.
    pub fn running(&self) -> bool {
        self.run.is_some()
    }

    /// `running` or `stopped`.
    pub fn status(&self) -> &'static str {
        if self.running() { "running" } else { "stopped" }
    }

    /// Whether it is a template.
    pub fn template(&self) -> bool {
        self.config.on("template")
    }

    /// The lock, if any.
    pub fn lock(&self) -> Option<&str> {
        self.config.get("lock")
    }

    /// Sets a lock.
    pub fn set_lock(&mut self, lock: &str, now: i64) {
        self.config.set("lock", lock);
        self.locked_since = Some(now);
    }

    /// Removes the lock.
    pub fn unlock(&mut self) {
        self.config.remove("lock");
        self.locked_since = None;
    }

    /// The digest of its configuration.
    pub fn digest(&self) -> String {
        let current = self.config.iter().flat_map(|(k, v)| [k.to_owned(), v.to_owned()]);
        let pending =
            self.pending.iter().flat_map(|(k, v)| [k.clone(), v.clone().unwrap_or_default()]);
        let snapshots = self.snapshots.iter().flat_map(|s| [s.name.clone(), s.description.clone()]);
        digest(current.chain(pending).chain(snapshots))
    }

    /// CPUs it may use.
    pub fn cpus(&self, node_cpus: u64) -> u64 {
        match self.kind {
            Kind::Qemu => {
                let cores = self.config.number("cores").unwrap_or(1);
                cores * self.config.number("sockets").unwrap_or(1)
            }
            Kind::Lxc => self.config.number("cores").unwrap_or(node_cpus),
        }
    }

    /// Memory in bytes.
    pub fn max_mem(&self) -> u64 {
        let text = self.config.get("memory").unwrap_or("512");
        let mib = propstring::parts(text).first().and_then(|(_, v)| v.parse::<u64>().ok());
        mib.unwrap_or(512) << 20
    }

    /// Swap in bytes (containers).
    pub fn max_swap(&self) -> u64 {
        self.config.number("swap").unwrap_or(512) << 20
    }

    /// Disks and mount points: option name and value, CD-ROMs left out.
    pub fn disks(&self) -> Vec<(String, String)> {
        let is_disk = |k: &str| match self.kind {
            Kind::Qemu => ["scsi", "virtio", "sata", "ide", "efidisk", "tpmstate"]
                .iter()
                .any(|p| indexed(k, p)),
            Kind::Lxc => k == "rootfs" || indexed(k, "mp"),
        };
        self.config
            .iter()
            .filter(|(k, v)| is_disk(k) && !v.contains("media=cdrom") && !v.starts_with("none"))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect()
    }

    /// NICs: option name and value.
    pub fn nics(&self) -> Vec<(String, String)> {
        self.config
            .iter()
            .filter(|(k, _)| indexed(k, "net"))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect()
    }

    /// The size of the boot disk or root file system in bytes.
    pub fn max_disk(&self) -> u64 {
        let disks = self.disks();
        let boot = match self.kind {
            Kind::Lxc => Some("rootfs".to_owned()),
            Kind::Qemu => self
                .config
                .get("boot")
                .and_then(|b| propstring::get(b, "order"))
                .and_then(|o| {
                    o.split(';').find(|d| disks.iter().any(|(k, _)| k == d)).map(str::to_owned)
                })
                .or_else(|| {
                    disks
                        .iter()
                        .find(|(k, _)| k != "efidisk0" && k != "tpmstate0")
                        .map(|(k, _)| k.clone())
                }),
        };
        disks
            .iter()
            .find(|(k, _)| Some(k) == boot.as_ref())
            .and_then(|(_, v)| disk_size(v))
            .unwrap_or(0)
    }

    /// The MAC address of a NIC value.
    pub fn mac(nic: &str) -> Option<String> {
        propstring::get(nic, "hwaddr").or_else(|| {
            propstring::parts(nic)
                .into_iter()
                .map(|(_, v)| v)
                .find(|v| v.len() == 17 && v.contains(':'))
        })
    }

    /// Its live figures at a moment.
    pub fn live(&self, now: i64) -> Option<rrd::Figures> {
        let run = self.run.as_ref()?;
        let uptime = (now - run.since).max(0);
        Some(rrd::guest_figures(self, now, uptime))
    }

    /// Starts it: pending changes become the configuration.
    pub fn start(&mut self, now: i64, pid: u32) {
        self.apply_pending();
        self.run = Some(Run {
            since: now,
            pid,
            paused: false,
            agent_stuck: false,
            config: self.config.clone(),
        });
    }

    /// Stops it: pending changes become the configuration.
    pub fn stop(&mut self) {
        self.run = None;
        self.apply_pending();
    }

    /// Makes the pending changes the configuration.
    pub fn apply_pending(&mut self) {
        for (key, value) in std::mem::take(&mut self.pending) {
            match value {
                Some(value) => self.config.set(&key, value),
                None => {
                    self.config.remove(&key);
                }
            }
        }
    }

    /// Tags, in the order of the configuration.
    pub fn tags(&self) -> Vec<&str> {
        self.config.get("tags").map(|t| t.split(';').collect()).unwrap_or_default()
    }
}

/// `scsi0` is an indexed `scsi`.
pub(crate) fn indexed(key: &str, stem: &str) -> bool {
    key.strip_prefix(stem).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// The `size=` of a disk value in bytes.
pub(crate) fn disk_size(value: &str) -> Option<u64> {
    propstring::get(value, "size").and_then(|s| parse_size(&s))
}

/// `32G`, `512M`, `4194304K` or bytes.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let unit = text.chars().last()?;
    let shift = match unit {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => return text.parse().ok(),
    };
    let number: f64 = text.get(..text.len() - 1)?.parse().ok()?;
    Some((number * (1_u64 << shift) as f64) as u64)
}

/// A size as configurations write it.
pub(crate) fn size_text(bytes: u64) -> String {
    for (shift, unit) in [(40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}
