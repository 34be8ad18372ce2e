//! Tasks, high availability, replication, and the health of nodes.

use jiff::tz::{Offset, TimeZone};
use serde_json::Value;

use super::{Answer, Part};
use crate::pve::{Vmid, loose};

/// A task of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its id, the UPID.
    pub upid: String,
    /// Node.
    pub node: String,
    /// Type, for example `vzdump` or `qmstart`.
    pub kind: String,
    /// What it is about: mostly a VMID, empty for a job over several guests.
    pub id: String,
    /// Who started it.
    pub user: String,
    /// Seconds since 1970.
    pub start: i64,
    /// Seconds since 1970; none while it runs.
    pub end: Option<i64>,
    /// How it ended: `OK`, `WARNINGS: n`, or the cause of the failure.
    pub status: Option<String>,
}

impl Task {
    /// The rows of `GET /cluster/tasks` or `GET /nodes/{node}/tasks`, newest first.
    #[must_use]
    pub fn list(value: &Value) -> Vec<Self> {
        let mut tasks: Vec<Self> = loose::rows(value)
            .iter()
            .filter_map(|row| {
                Some(Self {
                    upid: loose::text(row, "upid")?,
                    node: loose::text(row, "node")?,
                    kind: loose::text(row, "type").unwrap_or_default(),
                    id: loose::text(row, "id").unwrap_or_default(),
                    user: loose::text(row, "user").unwrap_or_default(),
                    start: loose::int(row, "starttime").unwrap_or(0),
                    end: loose::int(row, "endtime"),
                    // The list says RUNNING where a task has no end yet.
                    status: loose::text(row, "status")
                        .filter(|s| !s.eq_ignore_ascii_case("running")),
                })
            })
            .collect();
        Self::tidy(&mut tasks);
        tasks
    }

    /// Newest first, each once.
    pub(super) fn tidy(tasks: &mut Vec<Self>) {
        tasks.sort_by(|a, b| (b.start, &b.upid).cmp(&(a.start, &a.upid)));
        tasks.dedup_by(|a, b| a.upid == b.upid);
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn running(&self) -> bool {
        self.end.is_none() && self.status.is_none()
    }

    /// The cause, when it ended with something other than OK or warnings. An
    /// ended task without a status did not say that it was well.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        if self.running() {
            return None;
        }
        match self.status.as_deref() {
            None => Some("ended without a status"),
            Some("OK") => None,
            Some(status) if status.starts_with("WARNINGS") => None,
            Some(status) => Some(status.trim_end()),
        }
    }

    /// The guest it is about.
    #[must_use]
    pub fn vmid(&self) -> Option<Vmid> {
        Vmid::parse(&self.id).ok()
    }
}

/// A line of `GET /cluster/ha/status/current`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HaEntry {
    /// `quorum`, `master`, `lrm`, `service` or `fencing`.
    pub kind: String,
    /// `vm:100`, `ct:200`; or the node's name for its own line.
    pub id: String,
    /// Node.
    pub node: String,
    /// State of a service: `started`, `error`, `fence` …
    pub state: String,
    /// The whole line as the node words it.
    pub status: String,
}

impl HaEntry {
    /// The rows.
    #[must_use]
    pub fn list(value: &Value) -> Vec<Self> {
        loose::rows(value)
            .iter()
            .filter_map(|row| {
                Some(Self {
                    kind: loose::text(row, "type")?,
                    id: loose::text(row, "sid").or_else(|| loose::text(row, "id"))?,
                    node: loose::text(row, "node").unwrap_or_default(),
                    state: loose::text(row, "state").unwrap_or_default(),
                    status: loose::text(row, "status").unwrap_or_default(),
                })
            })
            .collect()
    }

    /// The guest of a service.
    #[must_use]
    pub fn vmid(&self) -> Option<Vmid> {
        let id = self.id.strip_prefix("service:").unwrap_or(&self.id);
        Vmid::parse(id.strip_prefix("vm:").or_else(|| id.strip_prefix("ct:"))?).ok()
    }
}

/// A replication job and its last run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replication {
    /// Job id, for example `100-0`.
    pub id: String,
    /// The guest.
    pub guest: Option<Vmid>,
    /// The node it goes to.
    pub target: String,
    /// Whether it is switched off.
    pub disabled: bool,
    /// Why the last run failed.
    pub error: Option<String>,
    /// Failed runs in a row.
    pub fail_count: u64,
    /// The last good run, seconds since 1970; none when there was none.
    pub last_sync: Option<i64>,
}

impl Replication {
    /// The rows of `GET /nodes/{node}/replication`.
    #[must_use]
    pub fn list(value: &Value) -> Vec<Self> {
        loose::rows(value)
            .iter()
            .filter_map(|row| {
                let id = loose::text(row, "id")?;
                let guest = loose::uint(row, "guest")
                    .and_then(|n| Vmid::new(n).ok())
                    .or_else(|| Vmid::parse(id.split('-').next()?).ok());
                Some(Self {
                    guest,
                    target: loose::text(row, "target").unwrap_or_default(),
                    disabled: loose::flag(row, "disable"),
                    error: loose::text(row, "error"),
                    fail_count: loose::uint(row, "fail_count").unwrap_or(0),
                    last_sync: loose::int(row, "last_sync").filter(|at| *at > 0),
                    id,
                })
            })
            .collect()
    }
}

/// A certificate of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// File name.
    pub file: String,
    /// Who it is for.
    pub subject: String,
    /// Its end, seconds since 1970.
    pub not_after: Option<i64>,
}

impl Certificate {
    pub(super) fn list(value: &Value) -> Vec<Self> {
        let read = |row: &Value| Self {
            file: loose::text(row, "filename").unwrap_or_default(),
            subject: loose::text(row, "subject").unwrap_or_default(),
            not_after: loose::int(row, "notafter"),
        };
        loose::rows(value).iter().map(read).collect()
    }
}

/// A disk of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeDisk {
    /// Device, for example `/dev/sda`.
    pub device: String,
    /// Model.
    pub model: String,
    /// What the disk says of itself: `PASSED`, `OK`, `FAILED`, `UNKNOWN` …
    pub health: String,
    /// Life left of a solid-state disk, in percent; Proxmox calls it wearout.
    pub life_left: Option<f64>,
}

impl NodeDisk {
    pub(super) fn list(value: &Value) -> Vec<Self> {
        loose::rows(value)
            .iter()
            .filter_map(|row| {
                Some(Self {
                    device: loose::text(row, "devpath")?,
                    model: loose::text(row, "model").unwrap_or_default(),
                    health: loose::text(row, "health").unwrap_or_default(),
                    life_left: loose::float(row, "wearout"),
                })
            })
            .collect()
    }
}

/// An LVM thin pool of a node. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThinPool {
    /// Volume group and pool: `pve/data`.
    pub name: String,
    /// Data in use.
    pub used: u64,
    /// Size for data.
    pub size: u64,
    /// Metadata in use.
    pub metadata_used: u64,
    /// Size for metadata.
    pub metadata_size: u64,
}

impl ThinPool {
    pub(super) fn list(value: &Value) -> Vec<Self> {
        loose::rows(value)
            .iter()
            .filter_map(|row| {
                let group = loose::text(row, "vg").unwrap_or_default();
                Some(Self {
                    name: format!("{group}/{}", loose::text(row, "lv")?),
                    used: loose::uint(row, "used").unwrap_or(0),
                    size: loose::uint(row, "lv_size").unwrap_or(0),
                    metadata_used: loose::uint(row, "metadata_used").unwrap_or(0),
                    metadata_size: loose::uint(row, "metadata_size").unwrap_or(0),
                })
            })
            .collect()
    }
}

/// Packages and kernels of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Updates {
    /// Packages for which there is a newer version.
    pub pending: Part<Vec<String>>,
    /// The kernel that runs and the newest that is installed.
    pub kernels: Part<Kernels>,
}

/// The kernel that runs and the newest that is installed, for example `6.17.2-1-pve`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernels {
    /// Runs now.
    pub running: String,
    /// Newest on disk.
    pub newest: Option<String>,
}

impl Updates {
    pub(super) fn read(pending: Answer<'_>, versions: Answer<'_>) -> Self {
        let pending = Part::of(pending, |value| {
            loose::rows(value).iter().filter_map(|row| loose::text(row, "Package")).collect()
        });
        let kernels = match versions.map(kernels) {
            Ok(Some(kernels)) => Part::Known(kernels),
            Ok(None) => Part::Unknown("the package list does not name the running kernel".into()),
            Err(error) => Part::Unknown(error.message.clone()),
        };
        Self { pending, kernels }
    }
}

fn kernels(versions: &Value) -> Option<Kernels> {
    let rows = loose::rows(versions);
    let running = rows.iter().find_map(|row| loose::text(row, "RunningKernel"))?;
    let newest = rows
        .iter()
        .filter(|row| loose::str(row, "CurrentState") == Some("Installed"))
        .filter_map(|row| {
            let package = loose::str(row, "Package")?;
            let release = package
                .strip_prefix("proxmox-kernel-")
                .or_else(|| package.strip_prefix("pve-kernel-"))?
                .trim_end_matches("-signed");
            // Packages such as proxmox-kernel-6.17 only point to one of these.
            release.ends_with("-pve").then(|| release.to_owned())
        })
        .max_by_key(|release| release_numbers(release));
    Some(Kernels { running, newest })
}

/// `6.17.2-1-pve` as numbers, to compare by.
#[must_use]
pub(crate) fn release_numbers(release: &str) -> Vec<u64> {
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

/// The time zone of a node.
#[derive(Debug, Clone)]
pub struct Zone {
    /// Name as the node says it.
    pub name: String,
    /// The zone; the node's present offset where this machine does not know the name.
    pub zone: TimeZone,
}

impl Zone {
    pub(super) fn read(value: &Value) -> Self {
        let name = loose::text(value, "timezone").unwrap_or_default();
        let offset = || {
            let shift = loose::int(value, "localtime")? - loose::int(value, "time")?;
            Some(TimeZone::fixed(Offset::from_seconds(i32::try_from(shift).ok()?).ok()?))
        };
        let zone = TimeZone::get(&name).ok().or_else(offset).unwrap_or(TimeZone::UTC);
        Self { name, zone }
    }
}
