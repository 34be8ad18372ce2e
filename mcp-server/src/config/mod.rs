//! Everything that can be set, read once at the start into one typed value.

use std::{path::PathBuf, time::Duration};

use secrecy::SecretString;

use crate::{
    pve::NodeName,
    safety::{Class, Flags},
};

mod dirs;
mod env_file;
mod files;
mod host;
mod load;
mod parse;
mod pin;
mod sources;
mod table;
mod template;
mod token;
mod vars;
mod vmid_set;

#[cfg(test)]
mod tests;

pub use dirs::{CONFIG_DIR, System, directories};
pub(crate) use host::same_host;
pub use load::{Loaded, load};
pub(crate) use parse::node_addresses;
pub use sources::{Origin, Sources, Warning};
pub use table::VARIABLES;
pub use template::{critical_file, env_file, reference};
pub use vars::{Section, Variable, nearest_variable, variable};
pub use vmid_set::VmidSet;

/// The whole configuration (variables of `docs/configuration.md`).
#[derive(Debug, Clone)]
pub struct Config {
    /// Where configuration and state live.
    pub dirs: Dirs,
    /// The hosts of one cluster, in order of preference.
    pub hosts: Vec<HostPort>,
    /// The API token; absent until `init` was followed.
    pub token: Option<ApiToken>,
    /// How the node's certificate is trusted.
    pub tls: Tls,
    /// Read-only, or write.
    pub mode: Mode,
    /// Whether commands may run inside guests (`PROXMOX_EXEC=enabled`).
    pub exec: bool,
    /// The tool groups that are registered beside `core`; `None` means all.
    pub toolsets: Option<Vec<String>>,
    /// Start with few tools and a search.
    pub deferred_tools: bool,
    /// Guests that may be changed; `None` means all.
    pub allowed_vmids: Option<VmidSet>,
    /// Guests that may never be changed.
    pub denied_vmids: VmidSet,
    /// Hide guests outside `allowed_vmids` from reads (`PROXMOX_READ_VMIDS=allowed`).
    pub read_allowed_only: bool,
    /// Guests in which this server itself runs.
    pub self_vmids: VmidSet,
    /// Nodes that may be changed; `None` means all.
    pub allowed_nodes: Option<Vec<NodeName>>,
    /// Path patterns whose changes are CRITICAL in addition.
    pub extra_protected: Vec<String>,
    /// Flags of `critical.env` and the environment.
    pub flags: Flags,
    /// `critical.env`, wherever it is.
    pub critical_file: PathBuf,
    /// SHA-256 of `critical.env` as it was read, in hexadecimal; `None` when there is none.
    pub critical_sha256: Option<String>,
    /// Who has to agree.
    pub approval: Approval,
    /// The lowest class that needs approval.
    pub approval_scope: Class,
    /// The way to pve-guard.
    pub ssh: Ssh,
    /// Longest guest command.
    pub exec_timeout: Duration,
    /// Most output of a guest command, in bytes.
    pub exec_max_output: usize,
    /// The audit log.
    pub audit: Audit,
    /// Longest attempt of an API call; some calls have their own.
    pub timeout: Duration,
    /// Further attempts of a read after the first.
    pub max_retries: u32,
    /// How long answers of the estate lists are kept.
    pub cache_ttl: Duration,
    /// Where uploads may come from.
    pub upload_dir: Option<PathBuf>,
    /// The shared HTTP service.
    pub http: Http,
    /// Log level of standard error.
    pub log_level: tracing::Level,
}

/// Directories of this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// `.env`, `critical.env`, `ssh/`.
    pub config: PathBuf,
    /// Audit log, undo states, cache.
    pub state: PathBuf,
}

/// A host and port; an IPv6 address is kept without brackets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// Name or address.
    pub host: String,
    /// TCP port, 8006 unless said otherwise.
    pub port: u16,
}

/// An API token.
#[derive(Debug, Clone)]
pub struct ApiToken {
    /// `user@realm!name`.
    pub id: String,
    /// The secret (a UUID).
    pub secret: SecretString,
}

/// How the node's certificate is trusted; the first that is set holds.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Pinned SHA-256 fingerprints of the leaf certificate.
    pub fingerprints: Vec<Pin>,
    /// PEM file of trusted CAs.
    pub ca_file: Option<PathBuf>,
    /// Trust anything.
    pub insecure: bool,
}

/// A pinned certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Only for this host, when said.
    pub host: Option<String>,
    /// SHA-256 of the certificate in DER.
    pub sha256: [u8; 32],
}

/// What the server may do at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only READ.
    ReadOnly,
    /// Changes through the gate.
    Write,
}

/// Who has to agree to a change (`PROXMOX_APPROVAL`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// A form where the client has one, else `confirm` alone.
    Auto,
    /// A person, always.
    Human,
    /// A one-time code.
    Code,
    /// `confirm` alone.
    Confirm,
}

/// The way to pve-guard.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// Account on the nodes.
    pub user: String,
    /// TCP port.
    pub port: u16,
    /// Private key file.
    pub key: PathBuf,
    /// Pinned host key (`type base64`), for the first host.
    pub host_key: Option<String>,
    /// The address this machine comes from, for `from=`.
    pub allowed_ip: Option<String>,
    /// Node name to address, where they differ from the API host.
    pub nodes: Vec<(NodeName, HostPort)>,
}

/// The audit log.
#[derive(Debug, Clone)]
pub struct Audit {
    /// Whether it is written.
    pub enabled: bool,
    /// The file.
    pub path: PathBuf,
    /// Whether successful reads are recorded too.
    pub reads: bool,
}

/// The shared HTTP service.
#[derive(Debug, Clone, Default)]
pub struct Http {
    /// Bearer token.
    pub token: Option<SecretString>,
    /// File of named clients.
    pub clients: Option<PathBuf>,
    /// Accepted Host headers.
    pub allowed_hosts: Vec<String>,
    /// Accepted Origin headers.
    pub allowed_origins: Vec<String>,
}

impl Ssh {
    /// Whether the way to pve-guard was set up: a key and a pinned host key are there.
    #[must_use]
    pub fn is_set_up(&self) -> bool {
        self.key.is_file() && (self.host_key.is_some() || !self.nodes.is_empty())
    }
}

impl Config {
    /// Every default, with nothing to connect to: what holds when no variable is set.
    #[must_use]
    pub fn minimal(dirs: Dirs) -> Self {
        Self {
            hosts: Vec::new(),
            token: None,
            tls: Tls::default(),
            mode: Mode::ReadOnly,
            exec: false,
            toolsets: None,
            deferred_tools: false,
            allowed_vmids: None,
            denied_vmids: VmidSet::default(),
            read_allowed_only: false,
            self_vmids: VmidSet::default(),
            allowed_nodes: None,
            extra_protected: Vec::new(),
            flags: Flags::default(),
            critical_file: dirs.config.join("critical.env"),
            critical_sha256: None,
            approval: Approval::Auto,
            approval_scope: Class::Critical,
            ssh: Ssh {
                user: "proxmox-mcp".to_owned(),
                port: 22,
                key: dirs.config.join("ssh/id_ed25519"),
                host_key: None,
                allowed_ip: None,
                nodes: Vec::new(),
            },
            exec_timeout: Duration::from_secs(60),
            exec_max_output: 64 * 1024,
            audit: Audit { enabled: true, path: dirs.state.join("audit.jsonl"), reads: false },
            timeout: Duration::from_secs(15),
            max_retries: 2,
            cache_ttl: Duration::from_secs(5),
            upload_dir: None,
            http: Http::default(),
            log_level: tracing::Level::INFO,
            dirs,
        }
    }
}
