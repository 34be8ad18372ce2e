//! Backups: guests in no job, never backed up, overdue; jobs that failed.

use std::collections::BTreeMap;

use super::{Finding, Look, age, days, moment, storages::unusable};
use crate::{
    insight::{
        coverage::{Cover, covering, guest_cover},
        estate::{Backup, BackupJob, Estate, Guest, Part, Selection, Task},
    },
    pve::Vmid,
};

/// A failed job is reported this long.
const FAILURE_DAYS: i64 = 7;
const DAY: i64 = 86_400;

pub(super) fn look(look: &mut Look<'_>) {
    let newest = Newest::of(look.estate);
    failed_tasks(look, &newest);
    let jobs = match &look.estate.jobs {
        Part::Known(jobs) => jobs,
        Part::Unknown(why) => return look.cannot_see("backup jobs", why.clone()),
    };
    jobs.iter().for_each(|job| one_job(look, job));
    for guest in look.estate.guests.rows().iter().filter(|guest| !guest.template) {
        one_guest(look, jobs, &newest, guest);
    }
}

fn one_job(look: &mut Look<'_>, job: &BackupJob) {
    let estate = look.estate;
    let id = &job.id;
    if !job.enabled {
        return;
    }
    let node = job.node.as_deref().unwrap_or_default();
    let schedule = job.schedule.as_deref().unwrap_or("none");
    let ends = match &job.calendar {
        None => Some("has no schedule".to_owned()),
        Some(Err(error)) => Some(format!("has a schedule that cannot be read: {}", error.message)),
        Some(Ok(calendar)) if calendar.next_after(estate.now, &estate.zone(node)).is_none() => {
            Some(format!("never runs again: its schedule is {schedule}"))
        }
        Some(Ok(_)) => None,
    };
    if let Some(ends) = ends {
        look.found(
            Finding::warning("backup_job_never_runs", format!("Backup job {id} {ends}"))
                .with("job", id.as_str())
                .with("schedule", schedule)
                .next("Give it a schedule such as 21:00; pve_list_backup_jobs"),
        );
    }
    if let (Selection::Guests(vmids), Part::Known(guests), Some(rights)) =
        (&job.selection, &estate.guests, estate.rights.known())
        && rights.throughout("/vms", "VM.Audit")
    {
        let gone: Vec<u32> = vmids
            .iter()
            .filter(|vmid| !guests.iter().any(|g| g.vmid == **vmid))
            .map(|vmid| vmid.get())
            .collect();
        if !gone.is_empty() {
            let what = format!("Backup job {id} names guests that do not exist");
            look.found(
                Finding::info("backup_job_stale", what)
                    .with("job", id.as_str())
                    .with("vmids", gone)
                    .next("Take them out of the job; pve_list_backup_jobs"),
            );
        }
    }
}

fn one_guest(look: &mut Look<'_>, jobs: &[BackupJob], newest: &Newest<'_>, guest: &Guest) {
    let estate = look.estate;
    let title = guest.title();
    let cover = guest_cover(estate, guest);
    let reason = cover.reason.unwrap_or_default();
    match cover.cover {
        Cover::Not => {
            let what = if reason == "in no backup job" {
                format!("{title} is in no backup job")
            } else {
                format!("{title} is in no backup job that takes it: {reason}")
            };
            let mut finding = Finding::warning("no_backup_job", what)
                .of_guest(guest)
                .next("Add it to a job; pve_list_backup_jobs shows them");
            if let Some(last) = newest.anywhere(guest.vmid) {
                finding = finding
                    .with("last_backup", moment(estate, &guest.node, last.ctime))
                    .with("last_backup_age_days", days(estate.now - last.ctime));
            }
            return look.found(finding);
        }
        Cover::Partly => look.found(
            Finding::info("backup_partial", format!("{title} is {reason}"))
                .of_guest(guest)
                .with("jobs", cover.jobs.clone())
                .next("If their data matters, include these disks (backup=1)"),
        ),
        Cover::Covered | Cover::Unknown => {}
    }
    freshness(look, jobs, newest, guest);
}

/// One finding a guest: the job that is behind most, of those whose storage can be seen.
fn freshness(look: &mut Look<'_>, jobs: &[BackupJob], newest: &Newest<'_>, guest: &Guest) {
    let estate = look.estate;
    let mut worst: Option<(f64, Finding)> = None;
    for job in covering(jobs, guest) {
        if let Err(why) = can_see(estate, guest, &job.storage) {
            let fresh = |last| overdue(estate, guest, job, last).is_none();
            if !newest.anywhere(guest.vmid).is_some_and(fresh) {
                look.cannot_see_of("backups", guest.vmid.to_string(), why);
            }
            continue;
        }
        let last = newest.on(guest.vmid, &job.storage).or_else(|| newest.anywhere(guest.vmid));
        let Some(last) = last else {
            // A guest that was made after the last run is not late yet.
            let config = estate.configs.get(&guest.vmid).and_then(Part::known);
            let due = config
                .and_then(|c| c.created)
                .is_none_or(|made| runs_since(estate, guest, job, made, 1) > 0);
            if due {
                worst = Some((f64::INFINITY, never(estate, guest, job)));
            }
            continue;
        };
        if let Some((factor, finding)) = overdue(estate, guest, job, last)
            && worst.as_ref().is_none_or(|(most, _)| factor > *most)
        {
            worst = Some((factor, finding));
        }
    }
    if let Some((_, finding)) = worst {
        look.found(finding);
    }
}

fn never(estate: &Estate, guest: &Guest, job: &BackupJob) -> Finding {
    let what = format!(
        "{} is in backup job {} but storage {} holds no backup of it",
        guest.title(),
        job.id,
        job.storage
    );
    let mut finding = Finding::warning("never_backed_up", what)
        .of_guest(guest)
        .with("job", job.id.as_str())
        .with("schedule", job.schedule.as_deref().unwrap_or("none"))
        .with("backups", 0)
        .next(format!("pve_backup_create vmid={} storage={}", guest.vmid, job.storage));
    finding.storage = Some(job.storage.clone());
    let node = job.node.as_deref().unwrap_or(&guest.node);
    let next = job.calendar().and_then(|c| c.next_after(estate.now, &estate.zone(node)));
    if let Some(next) = next {
        finding = finding.with("next_run", moment(estate, node, next));
    }
    finding
}

/// A finding when the last good backup is older than twice the schedule, and by how much.
/// Two runs must have been due since as well: a job for working days is not late on Monday.
fn overdue(
    estate: &Estate,
    guest: &Guest,
    job: &BackupJob,
    last: &Backup,
) -> Option<(f64, Finding)> {
    let interval = job.calendar()?.interval()?;
    let since = estate.now - last.ctime;
    if since <= 2 * interval || runs_since(estate, guest, job, last.ctime, 2) < 2 {
        return None;
    }
    #[allow(clippy::cast_precision_loss)]
    let factor = since as f64 / interval as f64;
    let schedule = job.schedule.as_deref().unwrap_or_default();
    let title = guest.title();
    let what = format!(
        "The last good backup of {title} is {} old, but job {} runs {schedule}",
        age(since),
        job.id
    );
    let mut finding = Finding::warning("backup_overdue", what)
        .of_guest(guest)
        .with("age_days", days(since))
        .with("interval_days", days(interval))
        .with("last_backup", moment(estate, &guest.node, last.ctime))
        .with("job", job.id.as_str())
        .with("schedule", schedule)
        .next(format!(
            "See why it fails: pve_list_tasks type=vzdump; then pve_backup_create vmid={} storage={}",
            guest.vmid, job.storage
        ));
    finding.storage = Some(job.storage.clone());
    Some((factor, finding))
}

fn runs_since(estate: &Estate, guest: &Guest, job: &BackupJob, since: i64, most: usize) -> usize {
    let node = job.node.as_deref().unwrap_or(&guest.node);
    job.calendar().map_or(0, |c| c.runs_between(since, estate.now, most, &estate.zone(node)))
}

/// The newest good backup of each guest on each storage that was seen.
struct Newest<'a>(BTreeMap<Vmid, Vec<(&'a str, &'a Backup)>>);

impl<'a> Newest<'a> {
    fn of(estate: &'a Estate) -> Self {
        let mut newest: BTreeMap<Vmid, Vec<(&str, &Backup)>> = BTreeMap::new();
        for (key, part) in &estate.content {
            let backups = part.known().into_iter().flat_map(|content| &content.backups);
            for backup in backups.filter(|backup| !backup.broken) {
                let of_guest = newest.entry(backup.vmid).or_default();
                match of_guest.iter_mut().find(|(storage, _)| *storage == key.storage) {
                    Some((_, kept)) if kept.ctime < backup.ctime => *kept = backup,
                    Some(_) => {}
                    None => of_guest.push((&key.storage, backup)),
                }
            }
        }
        Self(newest)
    }

    fn anywhere(&self, vmid: Vmid) -> Option<&'a Backup> {
        self.0.get(&vmid)?.iter().map(|(_, backup)| *backup).max_by_key(|backup| backup.ctime)
    }

    fn on(&self, vmid: Vmid, storage: &str) -> Option<&'a Backup> {
        self.0.get(&vmid)?.iter().find(|(id, _)| *id == storage).map(|(_, backup)| *backup)
    }
}

/// Whether the backups of a guest on a storage would be seen if there were any.
fn can_see(estate: &Estate, guest: &Guest, id: &str) -> Result<(), String> {
    let storages: Vec<_> = match &estate.storages {
        Part::Known(storages) => {
            storages.iter().filter(|s| s.id == id && (s.shared || *s.node == *guest.node)).collect()
        }
        Part::Unknown(why) => return Err(why.clone()),
    };
    let Some(first) = storages.first() else {
        return Err(format!("storage {id} is not visible on {}", guest.node));
    };
    if estate.is_offline(&guest.node) && !first.shared {
        return Err(format!("node {} is offline", guest.node));
    }
    if !storages.iter().any(|s| s.usable()) {
        return Err(unusable(first));
    }
    if let Some(why) = estate.rights.known().and_then(|r| r.hides_backups(guest, id)) {
        return Err(why);
    }
    let mut why = format!("storage {id} was not read");
    let of_this = estate
        .content
        .iter()
        .filter(|(key, _)| key.storage == id && (first.shared || key.node == *guest.node));
    for (_, part) in of_this {
        match part {
            // An empty list may be a filtered one when the rights are not known.
            Part::Known(content)
                if estate.rights.known().is_some() || !content.backups.is_empty() =>
            {
                return Ok(());
            }
            Part::Known(_) => why = format!("storage {id} shows no backups, perhaps hidden"),
            Part::Unknown(reason) => why = format!("storage {id}: {reason}"),
        }
    }
    Err(why)
}

/// Backup tasks that failed and were not followed by a good one of the same kind.
fn failed_tasks(look: &mut Look<'_>, newest: &Newest<'_>) {
    let estate = look.estate;
    let tasks = match &estate.tasks {
        Part::Known(tasks) => tasks,
        Part::Unknown(why) => return look.cannot_see("failed backup tasks", why.clone()),
    };
    let mut judged: Vec<(&str, &str)> = Vec::new();
    // Newest first, so the first that ended decides.
    for task in tasks.iter().filter(|task| task.kind == "vzdump" && !task.running()) {
        let key = (task.node.as_str(), task.id.as_str());
        if judged.contains(&key) {
            continue;
        }
        judged.push(key);
        let since = estate.now - task.end.unwrap_or(task.start);
        let Some(cause) = task.failure().filter(|_| since <= FAILURE_DAYS * DAY) else { continue };
        if made_good(newest, task) {
            continue;
        }
        let guest = task.vmid().and_then(|vmid| estate.guest(vmid));
        let run = match guest {
            Some(guest) => format!("A backup of {}", guest.title()),
            None if task.id.is_empty() => "A backup job".to_owned(),
            None => format!("A backup of {}", task.id),
        };
        let what = format!("{run} on {} failed {} ago", task.node, age(since));
        let mut finding = Finding::warning("backup_failed", what)
            .with("status", cause)
            .with("ended", moment(estate, &task.node, task.end.unwrap_or(task.start)))
            .with("upid", task.upid.as_str())
            .next(format!("pve_task_log upid={}", task.upid));
        finding.vmid = task.vmid();
        look.found(finding.of_node(&task.node));
    }
}

/// A newer backup of the same guest makes up for a failed one.
fn made_good(newest: &Newest<'_>, task: &Task) -> bool {
    let backup = task.vmid().and_then(|vmid| newest.anywhere(vmid));
    backup.is_some_and(|backup| backup.ctime > task.start && Some(backup.ctime) > task.end)
}
