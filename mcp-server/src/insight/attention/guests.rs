//! Guests: stopped though they should run, short of memory, locked, old snapshots.

use super::{Finding, Look, age, days, moment, percent};
use crate::insight::estate::{Guest, GuestKind, GuestStatus, Part, Task};

const MEMORY_SHARE: f64 = 0.95;
/// Snapshots older than this are reported.
const SNAPSHOT_DAYS: i64 = 30;
const DAY: i64 = 86_400;
/// A task that runs this long no longer explains a lock.
const LONG_TASK: i64 = 24 * 3600;

pub(super) fn look(look: &mut Look<'_>) {
    let guests = match &look.estate.guests {
        Part::Known(guests) => guests,
        Part::Unknown(why) => return look.cannot_see("guests", why.clone()),
    };
    if let Some(rights) = look.estate.rights.known()
        && !rights.throughout("/vms", "VM.Audit")
    {
        look.cannot_see("further guests", "the token lacks VM.Audit on all of /vms");
    }
    for guest in guests {
        stopped(look, guest);
        memory(look, guest);
        locked(look, guest);
        snapshots(look, guest);
        unused(look, guest);
    }
}

fn unused(look: &mut Look<'_>, guest: &Guest) {
    let Some(config) = look.estate.configs.get(&guest.vmid).and_then(Part::known) else { return };
    if config.unused.is_empty() {
        return;
    }
    let what = format!("{} has disks that it does not use", guest.title());
    look.found(
        Finding::info("unused_disk", what)
            .of_guest(guest)
            .with("volumes", config.unused.clone())
            .next(format!("Attach or delete them: pve_vm_config vmid={}", guest.vmid)),
    );
}

fn stopped(look: &mut Look<'_>, guest: &Guest) {
    let down = match guest.status {
        GuestStatus::Stopped | GuestStatus::Paused | GuestStatus::Suspended => {
            guest.status.as_str()
        }
        GuestStatus::Running | GuestStatus::Unknown => return,
    };
    if guest.template {
        return;
    }
    let title = guest.title();
    let next =
        format!("Find out why: pve_list_tasks vmid={0}; then pve_guest_start vmid={0}", guest.vmid);
    if guest.has_tag("prod") || guest.has_tag("production") {
        let what = format!("{title} is tagged as production and is {down}");
        look.found(
            Finding::critical("production_stopped", what)
                .of_guest(guest)
                .with("status", down)
                .with("tags", guest.tags())
                .next(next),
        );
        return;
    }
    match look.estate.configs.get(&guest.vmid) {
        Some(Part::Known(config)) if config.onboot => {
            let what = format!("{title} is to start with its node (onboot) and is {down}");
            look.found(
                Finding::warning("onboot_stopped", what)
                    .of_guest(guest)
                    .with("status", down)
                    .with("onboot", 1)
                    .next(next),
            );
        }
        Some(Part::Known(_)) => {}
        other if !look.estate.is_offline(&guest.node) => {
            let why = other.and_then(Part::why).unwrap_or("not read").to_owned();
            look.cannot_see_of("onboot setting", guest.vmid.to_string(), why);
        }
        _ => {}
    }
}

fn memory(look: &mut Look<'_>, guest: &Guest) {
    let Some(share) = guest.memory_share().filter(|share| *share >= MEMORY_SHARE) else { return };
    let config = look.estate.configs.get(&guest.vmid).and_then(Part::known);
    let title = guest.title();
    let shown = percent(share);
    let caveat = match (guest.kind, config) {
        (GuestKind::Lxc, _) => "",
        (GuestKind::Qemu, Some(config)) if config.ballooning => {
            " (the VM may have given memory back by its balloon)"
        }
        (GuestKind::Qemu, _) => " (a VM's figure can hold its file cache: look inside)",
    };
    let what = format!("{title} is short of memory: {shown} % in use{caveat}");
    let mut finding = Finding::warning("guest_memory", what)
        .of_guest(guest)
        .with("percent", shown)
        .with("mem_bytes", guest.mem)
        .with("maxmem_bytes", guest.maxmem)
        .next(format!("pve_vm_metrics vmid={}; give it more memory if it stays so", guest.vmid));
    if guest.kind == GuestKind::Qemu
        && let Some(config) = config
    {
        finding = finding.with("agent", config.agent).with("ballooning", config.ballooning);
    }
    look.found(finding);
}

/// The tasks that hold a lock of this name.
fn holds(lock: &str, kind: &str) -> bool {
    match lock {
        "backup" => kind == "vzdump",
        "migrate" => matches!(kind, "qmigrate" | "vzmigrate" | "hamigrate"),
        "clone" | "create" => {
            matches!(
                kind,
                "qmclone" | "vzclone" | "qmcreate" | "vzcreate" | "qmrestore" | "vzrestore"
            )
        }
        "disk" => matches!(kind, "qmmove" | "move_volume" | "resize" | "imgcopy"),
        "snapshot" => matches!(kind, "qmsnapshot" | "vzsnapshot"),
        "snapshot-delete" => matches!(kind, "qmdelsnapshot" | "vzdelsnapshot"),
        "rollback" => matches!(kind, "qmrollback" | "vzrollback"),
        "suspending" => kind == "qmsuspend",
        "destroyed" => matches!(kind, "qmdestroy" | "vzdestroy"),
        _ => false,
    }
}

fn locked(look: &mut Look<'_>, guest: &Guest) {
    // A VM that is suspended to disk keeps its lock until it is resumed.
    let Some(lock) = guest.lock.as_deref().filter(|lock| *lock != "suspended") else { return };
    let estate = look.estate;
    let (title, number) = (guest.title(), guest.vmid);
    let whole_job = |task: &Task| task.id.is_empty() && task.kind == "vzdump" && lock == "backup";
    let tasks: Vec<&Task> = estate
        .tasks
        .rows()
        .iter()
        .filter(|task| *task.node == *guest.node && holds(lock, &task.kind))
        .filter(|task| task.vmid() == Some(number) || whole_job(task))
        .collect();
    // What still runs explains the lock best, then what was about this guest alone.
    let running = tasks.iter().find(|task| task.running());
    let own = tasks.iter().find(|task| task.vmid() == Some(number));
    let task = running.or(own).or(tasks.first()).copied();
    let since = task.map(|task| estate.now - task.start);
    let runs = task.is_some_and(Task::running);
    if runs && since.is_some_and(|since| since < LONG_TASK) {
        return;
    }
    let (what, next) = if runs {
        let long = age(since.unwrap_or(0));
        (
            format!("{title} has been locked ({lock}) by a running task for {long}"),
            format!("pve_task_log upid={}", task.map_or("", |t| t.upid.as_str())),
        )
    } else if let Part::Unknown(why) = &estate.tasks {
        look.cannot_see_of("the task behind the lock", number.to_string(), why.clone());
        (
            format!("{title} is locked ({lock}); whether a task still works on it cannot be seen"),
            format!("pve_list_tasks vmid={number}"),
        )
    } else {
        (
            format!("{title} is locked ({lock}) and no task works on it"),
            format!(
                "If pve_list_tasks vmid={number} shows nothing running: `{} unlock {number}` on {}",
                guest.kind.command(),
                guest.node
            ),
        )
    };
    let mut finding =
        Finding::warning("guest_locked", what).of_guest(guest).with("lock", lock).next(next);
    if let (Some(task), Some(since)) = (task, since) {
        finding = finding.with("age_days", days(since)).with("task", task.upid.as_str());
    }
    look.found(finding);
}

fn snapshots(look: &mut Look<'_>, guest: &Guest) {
    let estate = look.estate;
    let snapshots = match estate.snapshots.get(&guest.vmid) {
        Some(Part::Known(snapshots)) => snapshots,
        _ if guest.template || estate.is_offline(&guest.node) => return,
        other => {
            let why = other.and_then(Part::why).unwrap_or("not read").to_owned();
            return look.cannot_see_of("snapshots", guest.vmid.to_string(), why);
        }
    };
    let old: Vec<(&str, i64)> = snapshots
        .iter()
        .filter_map(|s| Some((s.name.as_str(), s.time?)))
        .filter(|(_, time)| estate.now - time > SNAPSHOT_DAYS * DAY)
        .collect();
    let Some((name, time)) = old.iter().min_by_key(|(_, time)| time).copied() else { return };
    let since = estate.now - time;
    let title = guest.title();
    let what = match old.len() {
        1 => format!("{title} has a snapshot that is {} old: {name}", age(since)),
        n => format!("{title} has {n} old snapshots, the oldest {} old: {name}", age(since)),
    };
    look.found(
        Finding::warning("old_snapshot", what)
            .of_guest(guest)
            .with("age_days", since / DAY)
            .with("taken", moment(estate, &guest.node, time))
            .with("old_snapshots", old.len())
            .with("snapshots", snapshots.len())
            .next(format!(
                "If nobody needs it: pve_snapshot_delete vmid={} name={name}",
                guest.vmid
            )),
    );
}
