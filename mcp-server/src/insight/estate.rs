//! Temporary: replaced by the snapshot types.
use serde_json::Value;

use crate::pve::{Vmid, loose};

/// Kind of guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestKind {
    /// VM.
    Qemu,
    /// Container.
    Lxc,
}

impl GuestKind {
    /// `qemu` or `lxc`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            GuestKind::Qemu => "qemu",
            GuestKind::Lxc => "lxc",
        }
    }
}

/// A guest.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Guest {
    pub vmid: Vmid,
    pub name: String,
    pub kind: GuestKind,
    pub node: String,
    pub status: String,
    pub template: bool,
    pub tags: Vec<String>,
    pub pool: Option<String>,
    pub cpu: f64,
    pub maxcpu: u64,
    pub mem: u64,
    pub maxmem: u64,
    pub disk: u64,
    pub maxdisk: u64,
    pub uptime: u64,
    pub lock: Option<String>,
    pub hastate: Option<String>,
}

impl Guest {
    /// All guests of an answer of `cluster/resources`.
    #[must_use]
    pub fn all(resources: &Value) -> Vec<Guest> {
        loose::rows(resources)
            .iter()
            .filter_map(|r| {
                Some(Guest {
                    vmid: Vmid::new(loose::uint(r, "vmid")?).ok()?,
                    name: loose::text(r, "name").unwrap_or_default(),
                    kind: if loose::str(r, "type") == Some("lxc") {
                        GuestKind::Lxc
                    } else {
                        GuestKind::Qemu
                    },
                    node: loose::text(r, "node")?,
                    status: loose::text(r, "status").unwrap_or_default(),
                    template: loose::flag(r, "template"),
                    tags: loose::str(r, "tags").map(loose::tags).unwrap_or_default(),
                    pool: loose::text(r, "pool"),
                    cpu: loose::float(r, "cpu").unwrap_or(0.0),
                    maxcpu: loose::uint(r, "maxcpu").unwrap_or(0),
                    mem: loose::uint(r, "mem").unwrap_or(0),
                    maxmem: loose::uint(r, "maxmem").unwrap_or(0),
                    disk: loose::uint(r, "disk").unwrap_or(0),
                    maxdisk: loose::uint(r, "maxdisk").unwrap_or(0),
                    uptime: loose::uint(r, "uptime").unwrap_or(0),
                    lock: loose::text(r, "lock"),
                    hastate: loose::text(r, "hastate"),
                })
            })
            .collect()
    }
}
