//! Backup jobs and the backups on storages.

use serde_json::Value;

use super::storage::list;
use crate::{
    Result,
    insight::calendar::Calendar,
    pve::{Vmid, loose},
};

/// Which guests a job takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The direct members of a pool; not those of pools below it.
    Pool(String),
    /// These.
    Guests(Vec<Vmid>),
    /// All but these.
    AllBut(Vec<Vmid>),
    /// None: the job names no guests.
    Nothing,
}

/// A scheduled backup.
#[derive(Debug, Clone)]
pub struct BackupJob {
    /// Job id.
    pub id: String,
    /// Whether it runs at all.
    pub enabled: bool,
    /// When, as it is written.
    pub schedule: Option<String>,
    /// When, as it was read; none where there is no schedule.
    pub calendar: Option<Result<Calendar>>,
    /// Which guests.
    pub selection: Selection,
    /// Only guests on this node.
    pub node: Option<String>,
    /// Where backups go.
    pub storage: String,
    /// What its maker wrote.
    pub comment: String,
    /// The next run as the node computed it, seconds since 1970.
    pub next_run: Option<i64>,
}

impl BackupJob {
    /// The rows of `GET /cluster/backup`.
    #[must_use]
    pub fn list(value: &Value) -> Vec<Self> {
        let mut jobs: Vec<Self> = loose::rows(value)
            .iter()
            .filter_map(|row| {
                let schedule = schedule(row);
                Some(Self {
                    id: loose::text(row, "id")?,
                    enabled: loose::some(row, "enabled").is_none() || loose::flag(row, "enabled"),
                    calendar: schedule.as_deref().map(Calendar::parse),
                    schedule,
                    selection: selection(row),
                    node: loose::text(row, "node"),
                    // What vzdump takes when nothing is said.
                    storage: loose::text(row, "storage").unwrap_or_else(|| "local".to_owned()),
                    comment: loose::text(row, "comment").unwrap_or_default(),
                    next_run: loose::int(row, "next-run"),
                })
            })
            .collect();
        jobs.sort_by(|a, b| a.id.cmp(&b.id));
        jobs
    }

    /// The schedule, when it can be read.
    #[must_use]
    pub fn calendar(&self) -> Option<&Calendar> {
        self.calendar.as_ref()?.as_ref().ok()
    }
}

/// Jobs from before Proxmox VE 7.1 have `dow` and `starttime` instead.
fn schedule(row: &Value) -> Option<String> {
    loose::text(row, "schedule").or_else(|| {
        let time = loose::text(row, "starttime")?;
        Some(match loose::text(row, "dow") {
            Some(days) => format!("{days} {time}"),
            None => time,
        })
    })
}

/// In the order in which vzdump looks: pool, then VMIDs, then all.
fn selection(row: &Value) -> Selection {
    let vmids = |key| {
        let text = loose::text(row, key);
        list(text.as_deref()).iter().filter_map(|v| Vmid::parse(v).ok()).collect::<Vec<_>>()
    };
    if let Some(pool) = loose::text(row, "pool") {
        return Selection::Pool(pool);
    }
    if loose::some(row, "vmid").is_some() {
        return Selection::Guests(vmids("vmid"));
    }
    // An exclude list alone means all others.
    if loose::flag(row, "all") || loose::some(row, "exclude").is_some() {
        return Selection::AllBut(vmids("exclude"));
    }
    Selection::Nothing
}

/// A backup on a storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Volume id.
    pub volid: String,
    /// The guest.
    pub vmid: Vmid,
    /// When it was begun, seconds since 1970.
    pub ctime: i64,
    /// Size in bytes.
    pub size: u64,
    /// Whether it is kept from pruning.
    pub protected: bool,
    /// A backup server checked it and found it broken.
    pub broken: bool,
    /// A backup server checked it and found it whole.
    pub verified: bool,
}

impl Backup {
    pub(super) fn read(row: &Value) -> Option<Self> {
        let volid = loose::text(row, "volid")?;
        let vmid = match loose::uint(row, "vmid") {
            Some(n) => Vmid::new(n).ok()?,
            None => named_vmid(&volid)?,
        };
        let verification = row.get("verification").and_then(|v| loose::str(v, "state"));
        Some(Self {
            vmid,
            ctime: loose::int(row, "ctime")?,
            size: loose::uint(row, "size").unwrap_or(0),
            protected: loose::flag(row, "protected"),
            broken: verification == Some("failed"),
            verified: verification == Some("ok"),
            volid,
        })
    }
}

/// The VMID in `…/vzdump-qemu-100-2026_11_30-…` or `…:backup/vm/100/2026-…`.
fn named_vmid(volid: &str) -> Option<Vmid> {
    let name = volid.rsplit('/').next()?;
    if let Some(rest) = name.strip_prefix("vzdump-") {
        return Vmid::parse(rest.split('-').nth(1)?).ok();
    }
    let mut parts = volid.split('/').skip_while(|p| !matches!(*p, "vm" | "ct"));
    Vmid::parse(parts.nth(1)?).ok()
}
