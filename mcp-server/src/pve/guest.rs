//! Guests: virtual machines and containers, where they are and how they are set up.

use serde::Serialize;
use serde_json::Value;

use super::{
    ApiPath, NodeName, Vmid,
    config_line::{Disk, Nic},
    loose,
};
use crate::Result;

/// The two kinds of guests, named as in API paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GuestKind {
    /// A virtual machine.
    Qemu,
    /// A container.
    Lxc,
}

impl GuestKind {
    /// From `qemu` or `lxc`.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        match text {
            "qemu" => Some(Self::Qemu),
            "lxc" => Some(Self::Lxc),
            _ => None,
        }
    }

    /// `qemu` or `lxc`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Lxc => "lxc",
        }
    }

    /// How a person says it: `VM` or `container`.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Qemu => "VM",
            Self::Lxc => "container",
        }
    }

    /// The command of the node for it: `qm` or `pct`.
    #[must_use]
    pub const fn command(self) -> &'static str {
        match self {
            Self::Qemu => "qm",
            Self::Lxc => "pct",
        }
    }

    /// `a VM` or `a container`, for sentences.
    #[must_use]
    pub const fn article(self) -> &'static str {
        match self {
            Self::Qemu => "a VM",
            Self::Lxc => "a container",
        }
    }
}

impl std::fmt::Display for GuestKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A guest and where it is, as the cluster's resource list has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuestRef {
    /// Number.
    pub vmid: Vmid,
    /// Virtual machine or container.
    pub kind: GuestKind,
    /// The node it is on now.
    pub node: NodeName,
    /// Name, where it has one.
    pub name: Option<String>,
    /// `running`, `stopped`, `paused`, `unknown` …
    pub status: String,
    /// Whether it is a template.
    pub template: bool,
    /// What locks it (`backup`, `snapshot` …).
    pub lock: Option<String>,
}

impl GuestRef {
    /// Reads a row of `/cluster/resources`, when it is a guest.
    #[must_use]
    pub fn from_row(row: &Value) -> Option<Self> {
        let kind = GuestKind::of(loose::str(row, "type")?)?;
        Some(Self {
            vmid: Vmid::new(loose::uint(row, "vmid")?).ok()?,
            kind,
            node: NodeName::parse(loose::str(row, "node")?).ok()?,
            name: loose::text(row, "name"),
            status: loose::text(row, "status").unwrap_or_else(|| "unknown".to_owned()),
            template: loose::flag(row, "template"),
            lock: loose::text(row, "lock"),
        })
    }

    /// Reads a row only when it is this guest's.
    pub(crate) fn of_row(row: &Value, vmid: Vmid) -> Option<Self> {
        if loose::uint(row, "vmid") != Some(u64::from(vmid.get())) {
            return None;
        }
        Self::from_row(row)
    }

    /// `/nodes/{node}/{kind}/{vmid}` with further segments.
    ///
    /// # Errors
    /// `path_refused` for a segment that cannot stand in a path.
    pub fn path(&self, tail: &[&str]) -> Result<ApiPath> {
        let vmid = self.vmid.to_string();
        let mut segments = vec!["nodes", self.node.as_str(), self.kind.as_str(), &vmid];
        segments.extend_from_slice(tail);
        ApiPath::of(&segments)
    }
}

/// A guest's configuration, read through types; it borrows the API's answer.
#[derive(Debug, Clone, Copy)]
pub struct GuestConfig<'a> {
    kind: GuestKind,
    raw: &'a Value,
}

impl<'a> GuestConfig<'a> {
    /// Wraps the answer of `…/config`.
    #[must_use]
    pub const fn new(kind: GuestKind, raw: &'a Value) -> Self {
        Self { kind, raw }
    }

    /// The answer itself.
    #[must_use]
    pub const fn raw(&self) -> &'a Value {
        self.raw
    }

    /// The guest's kind.
    #[must_use]
    pub const fn kind(&self) -> GuestKind {
        self.kind
    }

    /// SHA-1 of the configuration, to be sent along with a change.
    #[must_use]
    pub fn digest(&self) -> Option<&'a str> {
        loose::str(self.raw, "digest")
    }

    /// `name` of a VM, `hostname` of a container.
    #[must_use]
    pub fn name(&self) -> Option<&'a str> {
        let key = if self.kind == GuestKind::Qemu { "name" } else { "hostname" };
        loose::str(self.raw, key)
    }

    /// Tags: case folded, sorted, unique.
    #[must_use]
    pub fn tags(&self) -> Vec<String> {
        loose::tags(loose::str(self.raw, "tags").unwrap_or_default())
    }

    /// Memory in bytes. `memory` is MiB, for a VM as a number, as text, or as
    /// the property string `current=…`.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        let text = loose::text(self.raw, "memory");
        let mib = match &text {
            Some(text) => super::config_line::Line::parse(text, Some("current"))
                .get("current")
                .and_then(|t| t.parse::<u64>().ok())?,
            None => 512,
        };
        mib.checked_mul(1 << 20)
    }

    /// Virtual CPUs: cores times sockets of a VM; of a container its cores, `None` for all.
    #[must_use]
    pub fn cpus(&self) -> Option<u64> {
        match self.kind {
            GuestKind::Qemu => {
                let of = |key| loose::uint(self.raw, key).unwrap_or(1);
                of("cores").checked_mul(of("sockets"))
            }
            GuestKind::Lxc => loose::uint(self.raw, "cores"),
        }
    }

    /// Whether the protection flag is set.
    #[must_use]
    pub fn protected(&self) -> bool {
        loose::flag(self.raw, "protection")
    }

    /// What locks the guest.
    #[must_use]
    pub fn lock(&self) -> Option<&'a str> {
        loose::str(self.raw, "lock")
    }

    /// Whether it starts with its node.
    #[must_use]
    pub fn onboot(&self) -> bool {
        loose::flag(self.raw, "onboot")
    }

    /// Whether it is a template.
    #[must_use]
    pub fn template(&self) -> bool {
        loose::flag(self.raw, "template")
    }

    /// Whether the QEMU guest agent is enabled (`1`, or `enabled=1,…`).
    #[must_use]
    pub fn agent(&self) -> bool {
        loose::text(self.raw, "agent").is_some_and(|text| {
            let line = super::config_line::Line::parse(&text, Some("enabled"));
            matches!(line.get("enabled"), Some("1" | "on" | "yes" | "true"))
        })
    }

    /// Disks and mount points, CD-ROM drives and unused volumes, by slot.
    #[must_use]
    pub fn disks(&self) -> Vec<Disk> {
        self.lines().filter_map(|(slot, text)| Disk::parse(self.kind, slot, &text)).collect()
    }

    /// Network interfaces, by slot.
    #[must_use]
    pub fn nics(&self) -> Vec<Nic> {
        self.lines().filter_map(|(slot, text)| Nic::parse(self.kind, slot, &text)).collect()
    }

    fn lines(&self) -> impl Iterator<Item = (&'a str, String)> {
        let mut keys: Vec<&str> =
            self.raw.as_object().into_iter().flatten().map(|(k, _)| k.as_str()).collect();
        keys.sort_by_key(|key| slot_order(key));
        let raw = self.raw;
        keys.into_iter().filter_map(move |key| Some((key, loose::text(raw, key)?)))
    }
}

/// `scsi2` before `scsi10`.
fn slot_order(key: &str) -> (&str, u32) {
    let name = key.trim_end_matches(|c: char| c.is_ascii_digit());
    (name, key.get(name.len()..).and_then(|n| n.parse().ok()).unwrap_or(0))
}
