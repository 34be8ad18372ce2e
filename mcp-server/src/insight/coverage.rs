//! Which backup jobs take which guests and disks, as vzdump chooses them.

use serde::Serialize;

use super::estate::{BackupJob, Estate, Guest, Part, Selection};
use crate::pve::Vmid;

/// How far a guest or disk is in backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cover {
    /// An enabled job takes all of it.
    Covered,
    /// An enabled job takes the guest, but not all of its disks.
    Partly,
    /// No enabled job takes it.
    Not,
    /// It cannot be seen.
    Unknown,
}

/// A guest and the jobs that take it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuestCover {
    /// The guest.
    pub vmid: Vmid,
    /// How far it is covered.
    pub cover: Cover,
    /// The enabled jobs that take it.
    pub jobs: Vec<String>,
    /// Why it is not, or not all, covered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its disks; empty where its configuration cannot be seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskCover>,
}

/// A disk or mount point of a guest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiskCover {
    /// Name in the configuration, for example `scsi0`.
    pub disk: String,
    /// Whether it is covered.
    pub cover: Cover,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Every guest that is visible, by VMID.
#[must_use]
pub fn coverage(estate: &Estate) -> Part<Vec<GuestCover>> {
    match &estate.guests {
        Part::Known(guests) => {
            let mut rows: Vec<_> = guests.iter().map(|guest| guest_cover(estate, guest)).collect();
            rows.sort_by_key(|row| row.vmid);
            Part::Known(rows)
        }
        Part::Unknown(why) => Part::Unknown(why.clone()),
    }
}

/// One guest.
#[must_use]
pub fn guest_cover(estate: &Estate, guest: &Guest) -> GuestCover {
    let jobs = match &estate.jobs {
        Part::Known(jobs) => jobs,
        Part::Unknown(why) => {
            return GuestCover {
                vmid: guest.vmid,
                cover: Cover::Unknown,
                jobs: Vec::new(),
                reason: Some(format!("backup jobs cannot be seen: {why}")),
                disks: Vec::new(),
            };
        }
    };
    let taking: Vec<String> = covering(jobs, guest).map(|job| job.id.clone()).collect();
    let missed = taking.is_empty().then(|| near_misses(jobs, guest));
    let asked = estate.configs.get(&guest.vmid);
    let config = asked.and_then(Part::known);
    let disks: Vec<DiskCover> = config
        .iter()
        .flat_map(|setup| setup.disks.iter().map(|disk| (disk, setup.left_out(disk))))
        .map(|(disk, left_out)| {
            let taken = !taking.is_empty() && left_out.is_none();
            let cover = if taken { Cover::Covered } else { Cover::Not };
            let reason = left_out.map(str::to_owned).or_else(|| missed.clone());
            DiskCover { disk: disk.slot.clone(), cover, reason }
        })
        .collect();
    let left_out: Vec<&str> =
        disks.iter().filter(|d| d.cover == Cover::Not).map(|d| d.disk.as_str()).collect();
    let (cover, reason) = if taking.is_empty() {
        (Cover::Not, missed)
    } else if let Some(Part::Unknown(why)) = asked {
        // One of them may have backup=0.
        (Cover::Unknown, Some(format!("its disks cannot be seen: {why}")))
    } else if left_out.is_empty() {
        (Cover::Covered, config.is_none().then(|| "its disks cannot be seen".to_owned()))
    } else {
        (Cover::Partly, Some(format!("not in the backup: {}", left_out.join(", "))))
    };
    GuestCover { vmid: guest.vmid, cover, jobs: taking, reason, disks }
}

/// The enabled jobs that take a guest.
pub fn covering<'a>(
    jobs: &'a [BackupJob],
    guest: &'a Guest,
) -> impl Iterator<Item = &'a BackupJob> {
    jobs.iter().filter(|job| job.enabled && selects(job, guest) && on_its_node(job, guest))
}

fn selects(job: &BackupJob, guest: &Guest) -> bool {
    match &job.selection {
        Selection::Pool(pool) => guest.pool.as_deref() == Some(pool),
        Selection::Guests(vmids) => vmids.contains(&guest.vmid),
        Selection::AllBut(vmids) => !vmids.contains(&guest.vmid),
        Selection::Nothing => false,
    }
}

fn on_its_node(job: &BackupJob, guest: &Guest) -> bool {
    job.node.as_deref().is_none_or(|node| node == &*guest.node)
}

/// Why no job takes a guest: the jobs that nearly do, or that there is none.
fn near_misses(jobs: &[BackupJob], guest: &Guest) -> String {
    let misses: Vec<String> = jobs.iter().filter_map(|job| near_miss(job, guest)).collect();
    if misses.is_empty() { "in no backup job".to_owned() } else { misses.join("; ") }
}

fn near_miss(job: &BackupJob, guest: &Guest) -> Option<String> {
    let id = &job.id;
    if selects(job, guest) {
        return if !job.enabled {
            Some(format!("job {id} is disabled"))
        } else {
            let only = job.node.as_deref().unwrap_or_default();
            Some(format!("job {id} takes only guests on {only}, this one is on {}", guest.node))
        };
    }
    match &job.selection {
        Selection::AllBut(_) => Some(format!("job {id} excludes it")),
        Selection::Pool(pool) => guest
            .pool
            .as_deref()
            .and_then(|own| own.strip_prefix(pool.as_str())?.strip_prefix('/'))
            .map(|_| format!("job {id} takes the members of pool {pool}, not of pools below it")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::insight::estate::GuestKind;

    fn estate(guests: Value, jobs: Value, configs: &[(u64, GuestKind, Value)]) -> Estate {
        let mut estate = Estate::new(0);
        estate.read_resources(Ok(&guests));
        estate.read_jobs(Ok(&jobs));
        for (vmid, kind, config) in configs {
            estate.read_config(Vmid::new(*vmid).unwrap(), *kind, Ok(config));
        }
        estate
    }

    fn table(estate: &Estate) -> Vec<String> {
        coverage(estate)
            .rows()
            .iter()
            .map(|row| {
                let cover = serde_json::to_value(row.cover).unwrap();
                let reason = row.reason.as_deref().unwrap_or("-");
                format!(
                    "{} {} [{}] {reason}",
                    row.vmid,
                    cover.as_str().unwrap(),
                    row.jobs.join(" ")
                )
            })
            .collect()
    }

    fn guests() -> Value {
        json!([
            {"type": "node", "node": "pve1", "status": "online"},
            {"type": "qemu", "vmid": 100, "node": "pve1", "name": "db", "status": "running"},
            {"type": "qemu", "vmid": "101", "node": "pve1", "name": "web", "pool": "prod"},
            {"type": "lxc", "vmid": 102, "node": "pve2", "name": "mail", "pool": "prod/mail"},
            {"type": "lxc", "vmid": 103, "node": "pve2", "name": "dns"},
            {"type": "qemu", "vmid": 104, "node": "pve2", "name": "build"},
            {"type": "qemu", "vmid": 105, "node": "pve1", "name": "scratch"},
        ])
    }

    #[test]
    fn six_guests_and_three_jobs() {
        let jobs = json!([
            {"id": "nightly", "enabled": "1", "schedule": "21:00", "vmid": "100,103", "storage": "nas"},
            {"id": "pool", "enabled": 1, "schedule": "sat 03:00", "pool": "prod"},
            {"id": "old", "enabled": 0, "schedule": "daily", "vmid": "104"},
        ]);
        let configs = [
            (
                100,
                GuestKind::Qemu,
                json!({"scsi0": "a:vm-100-disk-0,size=8G", "scsi1": "a:vm-100-disk-1,backup=0"}),
            ),
            (101, GuestKind::Qemu, json!({"scsi0": "a:vm-101-disk-0", "ide2": "none,media=cdrom"})),
            (
                103,
                GuestKind::Lxc,
                json!({"rootfs": "a:vm-103-disk-0", "mp0": "a:vm-103-disk-1,mp=/data"}),
            ),
        ];
        assert_eq!(
            table(&estate(guests(), jobs, &configs)),
            [
                "100 partly [nightly] not in the backup: scsi1",
                "101 covered [pool] -",
                "102 not [] job pool takes the members of pool prod, not of pools below it",
                "103 partly [nightly] not in the backup: mp0",
                "104 not [] job old is disabled",
                "105 not [] in no backup job",
            ]
        );
    }

    #[test]
    fn all_exclude_and_node() {
        let jobs = json!([
            {"id": "all", "all": 1, "exclude": "105", "node": "pve1", "schedule": "daily"},
            // `enabled` absent is on; an exclude list alone means all others.
            {"id": "rest", "exclude": "100,101;102 103,105", "schedule": "daily"},
            {"id": "none", "schedule": "daily"},
        ]);
        assert_eq!(
            table(&estate(guests(), jobs, &[])),
            [
                "100 covered [all] its disks cannot be seen",
                "101 covered [all] its disks cannot be seen",
                "102 not [] job all takes only guests on pve1, this one is on pve2; job rest excludes it",
                "103 not [] job all takes only guests on pve1, this one is on pve2; job rest excludes it",
                "104 covered [rest] its disks cannot be seen",
                "105 not [] job all excludes it; job rest excludes it",
            ]
        );
    }

    #[test]
    fn disks_have_their_own_reasons() {
        let jobs = json!([{"id": "j", "all": "1", "schedule": "daily"}]);
        let configs = [
            (
                100,
                GuestKind::Qemu,
                json!({
                    "scsi10": "a:vm-100-disk-3", "scsi2": "a:vm-100-disk-2,backup=no",
                    "efidisk0": "a:vm-100-disk-0,size=4M", "tpmstate0": "a:vm-100-disk-1",
                    "ide2": "a:vm-100-cloudinit,media=cdrom", "unused0": "a:vm-100-disk-9",
                    "scsihw": "virtio-scsi-single",
                }),
            ),
            (
                103,
                GuestKind::Lxc,
                json!({
                    "rootfs": "volume=a:vm-103-disk-0,size=8G", "mp0": "a:vm-103-disk-1,mp=/a,backup=1",
                    "mp1": "/mnt/host,mp=/b,backup=1", "mp2": "a:vm-103-disk-2,mp=/c",
                }),
            ),
        ];
        let found = coverage(&estate(guests(), jobs, &configs));
        let disks = |vmid| -> Vec<String> {
            let row = found.rows().iter().find(|r| r.vmid.get() == vmid).unwrap();
            row.disks
                .iter()
                .map(|d| format!("{} {:?} {}", d.disk, d.cover, d.reason.as_deref().unwrap_or("-")))
                .collect()
        };
        assert_eq!(
            disks(100),
            [
                "efidisk0 Not EFI disk of a VM without OVMF",
                "scsi2 Not backup=0",
                "scsi10 Covered -",
                "tpmstate0 Covered -",
            ]
        );
        assert_eq!(
            disks(103),
            [
                "mp0 Covered -",
                "mp1 Not bind mounts and devices are never in a backup",
                "mp2 Not mount point without backup=1",
                "rootfs Covered -",
            ]
        );
    }

    #[test]
    fn disks_that_cannot_be_seen_are_not_covered() {
        let jobs = json!([{"id": "j", "vmid": "100,101", "schedule": "daily"}]);
        let mut estate = estate(guests(), jobs, &[]);
        let error = crate::Error::new(crate::Code::Forbidden, "the token lacks VM.Audit");
        for vmid in [100, 102] {
            estate.read_config(Vmid::new(vmid).unwrap(), GuestKind::Qemu, Err(&error));
        }
        let found = table(&estate);
        assert_eq!(found[0], "100 unknown [j] its disks cannot be seen: the token lacks VM.Audit");
        assert!(found[1].starts_with("101 covered [j]"), "{found:?}");
        assert!(found[2].starts_with("102 not []"), "{found:?}");
    }

    #[test]
    fn jobs_that_cannot_be_seen_are_not_none() {
        let mut estate = Estate::new(0);
        let error = crate::Error::new(crate::Code::Forbidden, "the token lacks Sys.Audit on /");
        estate.read_resources(Ok(&guests()));
        estate.read_jobs(Err(&error));
        let rows = coverage(&estate);
        assert_eq!(rows.rows().len(), 6);
        for row in rows.rows() {
            assert_eq!(row.cover, Cover::Unknown);
            let reason = row.reason.as_deref().unwrap();
            assert_eq!(reason, "backup jobs cannot be seen: the token lacks Sys.Audit on /");
        }
    }
}
