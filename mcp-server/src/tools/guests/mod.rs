//! The group `guests`: life and death, power, snapshots, configuration, disks,
//! network, pools, high availability.

pub(super) mod agent;
mod clone;
mod cloudinit;
mod config;
mod create_ct;
mod create_vm;
mod delete;
mod disk;
mod disk_move;
mod ha;
mod migrate;
pub(super) mod new_id;
mod nic;
mod pool;
mod power;
mod snapshots;
mod steps;
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
        tool!(Guests Write create_vm::create, create_vm::Create, "pve_vm_create", "Create VM",
            "Makes a VM, and where asked starts it and waits for its address; to copy one take pve_guest_clone."),
        tool!(Guests Write create_ct::create, create_ct::Create, "pve_ct_create", "Create container",
            "Makes an unprivileged container from a template, and where asked starts it and waits for its address."),
        tool!(Guests Write clone::clone, clone::Clone, "pve_guest_clone", "Clone guest",
            "Clones a guest or template, and where asked sets cloud-init, starts it and waits for its address."),
        tool!(Guests Write delete::delete, delete::Delete, "pve_guest_delete", "Delete guest",
            "Destroys a guest with its disks. Cannot be undone.", destructive),
        tool!(Guests Write migrate::template, migrate::Template, "pve_guest_template", "Make template",
            "Turns a stopped guest into a template. Cannot be undone.", destructive, idempotent),
        tool!(Guests Write config::set, config::Set, "pve_guest_config_set", "Set guest options",
            "Sets, deletes or reverts any option of a guest; for disks, NICs, tags and cloud-init take their own tools.", destructive, idempotent),
        tool!(Guests Write config::tags, config::Tags, "pve_guest_tags_set", "Set guest tags",
            "Sets, adds or removes a guest's tags.", idempotent),
        tool!(Guests Write disk::add, disk::Add, "pve_disk_add", "Add disk",
            "Gives a guest a new disk or mount point, or attaches a volume that it has."),
        tool!(Guests Write disk::resize, disk::Resize, "pve_disk_resize", "Resize disk",
            "Makes a disk or mount point larger."),
        tool!(Guests Write disk_move::move_disk, disk_move::Move, "pve_disk_move", "Move disk",
            "Moves a disk to another storage, or to another guest.", destructive),
        tool!(Guests Write disk_move::detach, disk_move::Detach, "pve_disk_detach", "Detach disk",
            "Takes a disk out of a guest and keeps its volume, or destroys it with `delete`.", destructive, idempotent),
        tool!(Guests Write nic::set, nic::Set, "pve_nic_set", "Set network interface",
            "Adds or changes a network interface; what is not named stays, its MAC too.", destructive),
        tool!(Guests Write nic::delete, nic::Delete, "pve_nic_delete", "Delete network interface",
            "Takes a network interface out of a guest.", destructive, idempotent),
        tool!(Guests Write cloudinit::set, cloudinit::Set, "pve_cloudinit_set", "Set cloud-init",
            "Sets a VM's cloud-init user, keys, addresses and DNS.", destructive, idempotent),
        tool!(Guests Write migrate::migrate, migrate::Migrate, "pve_guest_migrate", "Migrate guest",
            "Moves a guest to another node, a running VM without a stop.", destructive, idempotent),
        tool!(Guests Read agent::status, super::args::OneGuest, "pve_vm_agent_status", "Guest agent status",
            "Whether a VM's agent answers, and what it tells: system, file systems, users."),
        tool!(Guests Write agent::command, agent::Run, "pve_vm_agent_command", "Guest agent command",
            "Has a VM's agent answer, trim, freeze, thaw, shut down or suspend.", destructive),
        tool!(Guests Write pool::create, pool::Create, "pve_pool_create", "Create pool",
            "Makes a resource pool."),
        tool!(Guests Write pool::update, pool::Update, "pve_pool_update", "Update pool",
            "Changes a pool's comment or members, which changes who may use them.", destructive, idempotent),
        tool!(Guests Write pool::delete, pool::Delete, "pve_pool_delete", "Delete pool",
            "Deletes an empty pool.", destructive, idempotent),
        tool!(Guests Write ha::set, ha::Set, "pve_ha_resource_set", "Set HA resource",
            "Puts a guest under high availability, or changes how.", destructive, idempotent),
        tool!(Guests Write ha::delete, ha::Delete, "pve_ha_resource_delete", "Delete HA resource",
            "Takes a guest out of high availability; it keeps running.", destructive, idempotent),
        tool!(Guests Write ha::set_replication, ha::SetReplication, "pve_replication_set", "Set replication",
            "Makes or updates a job that replicates a guest's disks to another node.", idempotent),
        tool!(Guests Write ha::delete_replication, ha::DeleteReplication, "pve_replication_delete", "Delete replication",
            "Deletes a replication job, and the replica unless `keep`.", destructive, idempotent),
        tool!(Guests Write crate::tools::core::undo, crate::tools::core::Undo, "pve_undo", "Undo",
            "Puts back the state that an earlier change of this server replaced, by its audit id.", destructive),
        tool!(Guests Write task_stop::stop, task_stop::Stop, "pve_task_stop", "Stop task",
            "Stops a running task, which can leave locks and half-done work.", destructive, idempotent),
    ]
}
