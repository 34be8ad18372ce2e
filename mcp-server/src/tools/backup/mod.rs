//! The group `backup`: backups, the jobs that make them, and what they cover.

mod contents;
mod coverage;
mod create;
mod history;
mod job_run;
mod jobs;
mod keep;
mod restore;

use super::registry::*;

/// The tools of this group, in the order in which they are listed.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool!(Backup Read jobs::list, super::args::None, "pve_list_backup_jobs", "List backup jobs",
            "Backup jobs: guests, schedule, next run, storage, retention."),
        tool!(Backup Read coverage::coverage, coverage::Coverage, "pve_backup_coverage", "Backup coverage",
            "Which guests and disks are in no backup job, overdue or never backed up, and why."),
        tool!(Backup Read contents::contents, contents::Contents, "pve_backup_contents", "Backup contents",
            "What a backup holds: the guest's configuration, and its files where the storage can tell."),
        tool!(Backup Write create::create, create::Create, "pve_backup_create", "Back up guest",
            "Backs one guest up now; older backups stay unless `remove` is asked for."),
        tool!(Backup Write jobs::set, jobs::Set, "pve_backup_job_set", "Set backup job",
            "Makes or updates a backup job.", idempotent),
        tool!(Backup Write jobs::delete, jobs::Delete, "pve_backup_job_delete", "Delete backup job",
            "Deletes a backup job; its backups stay.", destructive, idempotent),
        tool!(Backup Write job_run::run, job_run::Run, "pve_backup_job_run", "Run backup job",
            "Runs a backup job now, on each node that has its guests."),
        tool!(Backup Write restore::restore, restore::Restore, "pve_backup_restore", "Restore backup",
            "Restores a guest from a backup, to a new VMID unless `force` names one to overwrite.", destructive),
        tool!(Backup Write keep::delete, keep::One, "pve_backup_delete", "Delete backup",
            "Deletes one backup for good.", destructive, idempotent),
        tool!(Backup Write keep::protect, keep::Protect, "pve_backup_protect", "Protect backup",
            "Protects a backup from deletion and pruning, or lifts that.", idempotent),
        tool!(Backup Write keep::prune, keep::Prune, "pve_backup_prune", "Prune backups",
            "Deletes a storage's old backups by a retention; shows first which would go.", destructive),
    ]
}
