//! Guests as `GET /cluster/resources` lists them.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

pub use crate::pve::GuestKind;
use crate::pve::{Vmid, loose};

/// What a guest does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GuestStatus {
    /// It runs.
    Running,
    /// It does not run.
    Stopped,
    /// The VM is paused in memory.
    Paused,
    /// The VM is suspended.
    Suspended,
    /// The node does not say, mostly because it is offline.
    Unknown,
}

impl GuestStatus {
    /// The status as the API writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Paused => "paused",
            Self::Suspended => "suspended",
            Self::Unknown => "unknown",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "running" => Self::Running,
            "stopped" => Self::Stopped,
            "paused" => Self::Paused,
            "suspended" => Self::Suspended,
            _ => Self::Unknown,
        }
    }
}

/// A guest and its present load. Sizes are bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Guest {
    /// Number.
    pub vmid: Vmid,
    /// Name; empty where the token sees none.
    pub name: String,
    /// Virtual machine or container.
    pub kind: GuestKind,
    /// The node it is on.
    pub node: Arc<str>,
    /// What it does now.
    pub status: GuestStatus,
    /// Whether it is a template.
    pub template: bool,
    /// Tags as Proxmox writes them; [`Guest::tags`] reads them.
    pub raw_tags: String,
    /// The pool, with its parents: `customer/web`.
    pub pool: Option<Arc<str>>,
    /// Share of its own cores in use, 0 to 1.
    pub cpu: Option<f64>,
    /// Cores; a container's limit may be a fraction.
    pub maxcpu: Option<f64>,
    /// Memory in use.
    pub mem: Option<u64>,
    /// Memory given.
    pub maxmem: Option<u64>,
    /// What the VM takes on its node, with the emulator itself.
    pub memhost: Option<u64>,
    /// Root disk in use; 0 for a VM, of which the node cannot tell.
    pub disk: Option<u64>,
    /// Root disk size.
    pub maxdisk: Option<u64>,
    /// Seconds since it started; 0 when it does not run.
    pub uptime: u64,
    /// Why it is locked: `backup`, `migrate`, `snapshot` …
    pub lock: Option<String>,
    /// State in high availability.
    pub hastate: Option<String>,
}

impl Guest {
    /// The guests among the rows of `GET /cluster/resources`.
    #[must_use]
    pub fn list(resources: &Value) -> Vec<Self> {
        let rows = loose::rows(resources);
        let mut names = Names::default();
        let mut guests = Vec::with_capacity(rows.len());
        guests.extend(rows.iter().filter_map(|row| Self::read(row.as_object()?, &mut names)));
        guests
    }

    /// One pass over the members: this runs a thousand times for one answer.
    fn read(row: &Map<String, Value>, names: &mut Names) -> Option<Self> {
        let (mut vmid, mut kind) = (None, None);
        let mut guest = Self {
            vmid: Vmid::new(u64::from(Vmid::MIN)).ok()?,
            name: String::new(),
            kind: GuestKind::Qemu,
            node: Arc::from(""),
            status: GuestStatus::Unknown,
            template: false,
            raw_tags: String::new(),
            pool: None,
            cpu: None,
            maxcpu: None,
            mem: None,
            maxmem: None,
            memhost: None,
            disk: None,
            maxdisk: None,
            uptime: 0,
            lock: None,
            hastate: None,
        };
        for (key, value) in row {
            let number = || loose::as_int(value).and_then(|n| u64::try_from(n).ok());
            let text = || value.as_str().filter(|s| !s.is_empty());
            match key.as_str() {
                "type" => kind = Some(GuestKind::of(value.as_str()?)?),
                "vmid" => vmid = number().and_then(|n| Vmid::new(n).ok()),
                "name" => guest.name = owned(value),
                "node" => guest.node = names.node.get(text()?),
                "status" => guest.status = text().map_or(GuestStatus::Unknown, GuestStatus::parse),
                "template" => guest.template = number() == Some(1),
                "tags" => guest.raw_tags = owned(value),
                "pool" => guest.pool = text().map(|p| names.pool.get(p)),
                "cpu" => guest.cpu = loose::as_float(value),
                "maxcpu" => guest.maxcpu = loose::as_float(value),
                "mem" => guest.mem = number(),
                "maxmem" => guest.maxmem = number(),
                "memhost" => guest.memhost = number(),
                "disk" => guest.disk = number(),
                "maxdisk" => guest.maxdisk = number(),
                "uptime" => guest.uptime = number().unwrap_or(0),
                "lock" => guest.lock = text().map(str::to_owned),
                "hastate" => guest.hastate = text().map(str::to_owned),
                _ => {}
            }
        }
        guest.kind = kind?;
        guest.vmid = vmid?;
        Some(guest)
    }

    /// The tags: case folded, sorted, unique.
    #[must_use]
    pub fn tags(&self) -> Vec<String> {
        loose::tags(&self.raw_tags)
    }

    /// Whether it has exactly this tag, in any case.
    #[must_use]
    pub fn has_tag(&self, tag: &str) -> bool {
        self.raw_tags.split([';', ',', ' ', '\t']).any(|t| t.eq_ignore_ascii_case(tag))
    }

    /// How a person speaks of it: `VM 105 web-2`.
    #[must_use]
    pub fn title(&self) -> String {
        let title = format!("{} {} {}", self.kind.noun(), self.vmid, self.name);
        title.trim_end().to_owned()
    }

    /// Memory in use of memory given, 0 to 1, while it runs.
    #[must_use]
    pub fn memory_share(&self) -> Option<f64> {
        if self.status != GuestStatus::Running {
            return None;
        }
        share(self.mem?, self.maxmem?)
    }
}

/// `used` of `total` as a fraction; nothing of nothing is not a number.
#[must_use]
pub(super) fn share(used: u64, total: u64) -> Option<f64> {
    #[allow(clippy::cast_precision_loss)]
    (total > 0).then(|| used as f64 / total as f64)
}

fn owned(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

/// Names that repeat from row to row are kept once.
#[derive(Default)]
struct Names {
    node: Shared,
    pool: Shared,
}

#[derive(Default)]
struct Shared(Vec<Arc<str>>);

impl Shared {
    fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.iter().find(|known| ***known == *text) {
            return known.clone();
        }
        let new: Arc<str> = Arc::from(text);
        self.0.push(new.clone());
        new
    }
}
