//! The estate: what the API reads and changes. Typed where behaviour matters
//! (guests, tasks, storages, access), JSON documents where it is only data.

pub mod access;
pub mod config;
pub mod firewall;
pub mod guest;
pub mod node;
pub mod rrd;
pub mod storage;
pub mod task;
pub mod windows;

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use crate::api::failure::Failure;
use crate::api::login::Login;
use access::Access;
use firewall::Firewall;
use guest::Guest;
use node::Node;
use storage::{Storage, Volume};
use task::Tasks;

/// A pool of guests and storages.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    /// The comment, empty for none.
    pub comment: String,
    /// Guests by number.
    pub guests: Vec<u32>,
    /// Storage ids.
    pub storages: Vec<String>,
}

/// One line of the cluster log.
#[derive(Debug, Clone)]
pub struct LogLine {
    /// Unix seconds.
    pub time: i64,
    /// The node it came from.
    pub node: String,
    /// Who, e.g. `root@pam`.
    pub user: String,
    /// The program, e.g. `pvedaemon`.
    pub tag: String,
    /// Syslog priority.
    pub pri: u8,
    /// The text.
    pub msg: String,
}

/// The whole estate.
#[derive(Debug)]
pub struct State {
    /// Version and release, e.g. `9.2.11` and `9.2`.
    pub version: (String, String),
    /// The cluster's name; `None` for a single node without a cluster.
    pub cluster: Option<String>,
    /// Nodes by name.
    pub nodes: BTreeMap<String, Node>,
    /// The node that answers.
    pub local: String,
    /// Guests by number.
    pub guests: BTreeMap<u32, Guest>,
    /// Storage definitions by id.
    pub storages: BTreeMap<String, Storage>,
    /// Everything on the storages.
    pub volumes: Vec<Volume>,
    /// Running and finished tasks.
    pub tasks: Tasks,
    /// Users, tokens, groups, roles, access rules.
    pub access: Access,
    /// Pools by id.
    pub pools: BTreeMap<String, Pool>,
    /// Backup jobs by id, as the API shows them without `next-run`.
    pub backup_jobs: BTreeMap<String, Map<String, Value>>,
    /// Replication jobs by id, with the state that `/nodes/{node}/replication` shows under `_state`.
    pub replication: BTreeMap<String, Map<String, Value>>,
    /// HA resources by `vm:100`.
    pub ha_resources: BTreeMap<String, Map<String, Value>>,
    /// HA rules by id.
    pub ha_rules: BTreeMap<String, Map<String, Value>>,
    /// Firewalls by scope: `cluster`, `node/NAME`, `guest/VMID`, `group/NAME`, `vnet/NAME`.
    pub firewalls: BTreeMap<String, Firewall>,
    /// SDN objects: running configuration and pending changes, by kind.
    pub sdn: node::Sdn,
    /// Datacenter options.
    pub options: Map<String, Value>,
    /// Other documents by the path of the call that reads them.
    pub documents: BTreeMap<String, Value>,
    /// The cluster log, oldest first.
    pub log: Vec<LogLine>,
    /// What the agents' commands left: pid to exec-status answer, by guest.
    pub agent_runs: HashMap<(u32, u32), Value>,
    /// When the estate was built, Unix seconds.
    pub born: i64,
}

impl State {
    /// An empty estate of this moment.
    pub(crate) fn new(now_ms: i64, local: &str) -> Self {
        Self {
            version: ("9.2.11".to_owned(), "9.2".to_owned()),
            cluster: None,
            nodes: BTreeMap::new(),
            local: local.to_owned(),
            guests: BTreeMap::new(),
            storages: BTreeMap::new(),
            volumes: Vec::new(),
            tasks: Tasks::default(),
            access: Access::default(),
            pools: BTreeMap::new(),
            backup_jobs: BTreeMap::new(),
            replication: BTreeMap::new(),
            ha_resources: BTreeMap::new(),
            ha_rules: BTreeMap::new(),
            firewalls: BTreeMap::new(),
            sdn: node::Sdn::default(),
            options: Map::new(),
            documents: BTreeMap::new(),
            log: Vec::new(),
            agent_runs: HashMap::new(),
            born: now_ms.div_euclid(1000),
        }
    }

    pub(crate) fn local_node(&self) -> &str {
        &self.local
    }

    /// The node a request is meant for, as the proxy finds it.
    pub(crate) fn resolve_node(&self, name: &str) -> Result<String, Failure> {
        if name == "localhost" {
            return Ok(self.local.clone());
        }
        if let Some(node) = self.nodes.get(name) {
            if node.online {
                return Ok(name.to_owned());
            }
            return Err(Failure::proxy(595, "No route to host"));
        }
        let known = |n: &String| n.eq_ignore_ascii_case(name) || name.starts_with(&format!("{n}."));
        if self.nodes.keys().any(known) {
            return Err(Failure::proxy(
                596,
                "error:0A000086:SSL routines::certificate verify failed",
            ));
        }
        if name.parse::<std::net::IpAddr>().is_ok() {
            return Err(Failure::died(format!(
                "address lookup for '{name}' did not find any IP address"
            )));
        }
        let why = if name.contains("..") {
            "Name or service not known"
        } else {
            "Temporary failure in name resolution"
        };
        Err(Failure::died(format!(
            "hostname lookup '{name}' failed - failed to get address info for: {name}: {why}"
        )))
    }

    /// Ends the tasks that are due and lets time pass for the rest.
    pub(crate) fn settle(&mut self, now_ms: i64) {
        while let Some(due) = self.tasks.take_due(now_ms) {
            task::finish(self, due);
        }
    }

    /// Privileges at a path, with whether they propagate.
    pub(crate) fn privileges(&self, login: &Login, path: &str) -> BTreeMap<String, bool> {
        let mut held = self.access.privileges(login, path);
        for pool in self.pools_around(path) {
            held.extend(self.access.privileges(login, &format!("/pool/{pool}")));
        }
        held
    }

    /// Whether an identity has any of these privileges at a path.
    pub(crate) fn holds(&self, login: &Login, path: &str, wanted: &[&str]) -> bool {
        self.access.holds(login, path, wanted)
            || self
                .pools_around(path)
                .any(|p| self.access.holds(login, &format!("/pool/{p}"), wanted))
    }

    /// The pools whose rights reach a path: those that the guest or storage is in.
    fn pools_around(&self, path: &str) -> impl Iterator<Item = &String> {
        let mut parts = path.split('/').skip(1);
        let (kind, id) = (parts.next().unwrap_or(""), parts.next().unwrap_or("").to_owned());
        let vmid = if kind == "vms" { id.parse().ok() } else { None };
        let storage = (kind == "storage").then_some(id);
        let inside = move |pool: &Pool| {
            vmid.is_some_and(|v: u32| pool.guests.contains(&v))
                || storage.as_ref().is_some_and(|s| pool.storages.contains(s))
        };
        self.pools.iter().filter(move |(_, p)| inside(p)).map(|(id, _)| id)
    }

    /// Turns the estate into one of release 8: its version, and its privileges,
    /// which have `VM.Monitor` instead of those of the guest agent.
    pub fn as_release_8(&mut self) {
        self.version = ("8.4.14".to_owned(), "8.4".to_owned());
        let old = |list: &mut Vec<String>| {
            let agent = list.iter().any(|p| p == "VM.GuestAgent.Unrestricted");
            list.retain(|p| !p.starts_with("VM.GuestAgent.") && p != "VM.Replicate");
            if agent {
                list.push("VM.Monitor".to_owned());
            }
        };
        old(&mut self.access.all);
        for role in self.access.roles.values_mut() {
            old(&mut role.privileges);
        }
        for node in self.nodes.values_mut() {
            node.version.clone_from(&self.version.0);
        }
    }

    /// The pool a guest is in.
    pub fn pool_of(&self, vmid: u32) -> Option<&str> {
        self.pools.iter().find(|(_, p)| p.guests.contains(&vmid)).map(|(id, _)| id.as_str())
    }

    /// The lowest free number from 100 on.
    pub fn next_id(&self) -> u32 {
        (100..).find(|id| !self.guests.contains_key(id)).unwrap_or(0)
    }

    /// Adds a line to the cluster log.
    pub(crate) fn note(&mut self, time: i64, user: &str, tag: &str, msg: String) {
        let node = self.local.clone();
        self.log.push(LogLine {
            time,
            node,
            user: user.to_owned(),
            tag: tag.to_owned(),
            pri: 6,
            msg,
        });
    }

    /// Puts the running server's own certificate where the local node shows it.
    pub(crate) fn set_certificate(&mut self, fingerprint: &str, leaf: &str, ca: &str) {
        if let Some(node) = self.nodes.get_mut(&self.local) {
            node.fingerprint = fingerprint.to_owned();
            for cert in &mut node.certificates {
                let own = cert.get("filename").is_some_and(|f| f == "pve-ssl.pem");
                if own {
                    cert.insert("fingerprint".to_owned(), json!(fingerprint));
                    cert.insert("pem".to_owned(), json!(leaf));
                } else if cert.get("filename").is_some_and(|f| f == "pve-root-ca.pem") {
                    cert.insert("pem".to_owned(), json!(ca));
                }
            }
        }
    }
}

impl State {
    /// What the HA manager makes of a guest; `None` when it is not managed.
    pub(crate) fn ha_state(&self, guest: &Guest) -> Option<String> {
        let sid = format!("{}:{}", guest.kind.short().to_lowercase(), guest.vmid);
        let resource = self.ha_resources.get(&sid)?;
        let wanted = resource.get("state").and_then(Value::as_str).unwrap_or("started");
        Some(match wanted {
            "started" | "enabled" if guest.running() => "started".to_owned(),
            "started" | "enabled" => "starting".to_owned(),
            other => other.to_owned(),
        })
    }
}
