//! The group `guests`: power, snapshots, configuration, life and death.

mod config;
mod delete;
pub(super) mod new_id;
mod power;
mod snapshots;
mod task_stop;

use super::registry::*;

/// The tools of this group, in the order in which they are listed.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool!(Guests Write power::start, power::Plain, "pve_guest_start", "Start guest",
            "Starts a guest.", idempotent),
        tool!(Guests Write power::shutdown, power::Shutdown, "pve_guest_shutdown", "Shut down guest",
            "Asks a guest to shut down; pve_guest_stop cuts its power.", destructive, idempotent),
        tool!(Guests Write power::stop, power::Plain, "pve_guest_stop", "Stop guest",
            "Cuts a guest's power: unsaved data is lost. Take pve_guest_shutdown first.", destructive, idempotent),
        tool!(Guests Write power::reboot, power::Plain, "pve_guest_reboot", "Reboot guest",
            "Shuts a guest down and starts it again, which applies pending changes.", destructive),
        tool!(Guests Write power::reset, power::Plain, "pve_guest_reset", "Reset VM",
            "Resets a VM as its button would: unsaved data is lost.", destructive),
        tool!(Guests Write power::suspend, power::Suspend, "pve_guest_suspend", "Suspend guest",
            "Pauses a guest, or suspends a VM to disk.", destructive, idempotent),
        tool!(Guests Write power::resume, power::Plain, "pve_guest_resume", "Resume guest",
            "Resumes a paused or suspended guest.", idempotent),
        tool!(Guests Write snapshots::create, snapshots::Create, "pve_snapshot_create", "Create snapshot",
            "Takes a snapshot of a guest."),
        tool!(Guests Write snapshots::update, snapshots::Update, "pve_snapshot_update", "Update snapshot",
            "Changes a snapshot's description.", idempotent),
        tool!(Guests Write snapshots::delete, snapshots::Delete, "pve_snapshot_delete", "Delete snapshot",
            "Deletes a snapshot.", destructive),
        tool!(Guests Write snapshots::rollback, snapshots::Rollback, "pve_snapshot_rollback", "Roll back",
            "Returns a guest to a snapshot: everything since is lost.", destructive),
        tool!(Guests Write config::set, config::Set, "pve_guest_config_set", "Set guest options",
            "Sets, deletes or reverts any option of a guest; for disks, NICs, tags and cloud-init take their own tools.", destructive, idempotent),
        tool!(Guests Write config::tags, config::Tags, "pve_guest_tags_set", "Set guest tags",
            "Sets, adds or removes a guest's tags.", idempotent),
        tool!(Guests Write delete::delete, delete::Delete, "pve_guest_delete", "Delete guest",
            "Destroys a guest with its disks. Cannot be undone.", destructive),
        tool!(Guests Write task_stop::stop, task_stop::Stop, "pve_task_stop", "Stop task",
            "Stops a running task, which can leave locks and half-done work.", destructive, idempotent),
    ]
}
