//! Nodes, and what is configured for the cluster's network.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A node.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its address in the cluster.
    pub ip: String,
    /// Its number in the cluster, 0 without one.
    pub id: u32,
    /// Whether it is up.
    pub online: bool,
    /// Logical CPUs.
    pub cpus: u64,
    /// CPU sockets.
    pub sockets: u64,
    /// The CPU's model name.
    pub cpu_model: String,
    /// Bytes of memory.
    pub mem: u64,
    /// Bytes the node itself uses.
    pub base_mem: u64,
    /// Part of the CPUs the node itself uses.
    pub base_cpu: f64,
    /// Bytes of swap.
    pub swap: u64,
    /// Bytes of swap in use.
    pub swap_used: u64,
    /// Bytes of the root file system.
    pub root: u64,
    /// Bytes of it in use.
    pub root_used: u64,
    /// When it was booted, Unix seconds.
    pub boot: i64,
    /// When it was installed, Unix seconds.
    pub installed: i64,
    /// The running kernel's release.
    pub kernel: String,
    /// Boots with UEFI.
    pub efi: bool,
    /// The version of pve-manager.
    pub version: String,
    /// The subscription's level letter, empty for none.
    pub level: String,
    /// The fingerprint of its certificate.
    pub fingerprint: String,
    /// `/certificates/info`.
    pub certificates: Vec<Map<String, Value>>,
    /// Interfaces by name, running.
    pub network: BTreeMap<String, Map<String, Value>>,
    /// Interfaces with changes that are not applied; `None` when there are none.
    pub network_pending: Option<BTreeMap<String, Map<String, Value>>>,
    /// Services: name to state document.
    pub services: BTreeMap<String, Map<String, Value>>,
    /// `/apt/update`.
    pub updates: Vec<Value>,
    /// `/apt/versions`.
    pub versions: Vec<Value>,
    /// `/apt/repositories`.
    pub repositories: Value,
    /// `/disks/list`.
    pub disks: Vec<Value>,
    /// `/hardware/pci`.
    pub pci: Vec<Value>,
    /// `/hardware/usb`.
    pub usb: Vec<Value>,
    /// `/dns`.
    pub dns: Map<String, Value>,
    /// `/etc/hosts`.
    pub hosts: String,
    /// The time zone.
    pub timezone: String,
    /// `/config`.
    pub config: Map<String, Value>,
    /// `/subscription`.
    pub subscription: Map<String, Value>,
    /// Journal lines, oldest first.
    pub journal: Vec<JournalLine>,
}

/// A line of a node's journal.
#[derive(Debug, Clone)]
pub struct JournalLine {
    /// Unix seconds.
    pub time: i64,
    /// The program with its process id, as `corosync[1602]`; `kernel` has none.
    pub program: String,
    /// From 0 (emerg) to 7 (debug).
    pub priority: u8,
    /// What it says.
    pub text: String,
}

/// SDN objects of the cluster: kind (`zones`, `vnets`, …) to id to configuration.
pub type SdnObjects = BTreeMap<String, BTreeMap<String, Map<String, Value>>>;

/// The SDN: what runs, and what is configured.
#[derive(Debug, Clone, Default)]
pub struct Sdn {
    /// What was applied last.
    pub running: SdnObjects,
    /// What is configured now.
    pub config: SdnObjects,
}
