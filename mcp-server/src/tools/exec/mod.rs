//! The group `exec`: commands, files and services inside guests.

mod agent;
mod command;
mod container;
mod inside;
mod list;
mod read;
mod service;
mod write;

use super::registry::*;

/// The tools of this group, in the order in which they are listed.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool!(Exec Exec command::in_container, command::Exec, "pve_ct_exec", "Run in container",
            "Runs a command in a container: a text by its shell, an array as it is.", destructive),
        tool!(Exec Exec command::in_vm, command::Exec, "pve_vm_exec", "Run in VM",
            "Runs a command in a VM by its guest agent: a text by its shell, an array as it is.", destructive),
        tool!(Exec Exec read::read, read::Read, "pve_guest_file_read", "Read guest file",
            "Reads a file in a guest."),
        tool!(Exec Exec write::write, write::Write, "pve_guest_file_write", "Write guest file",
            "Writes a file in a guest, whole or not at all.", destructive),
        tool!(Exec Exec list::list, list::List, "pve_guest_file_list", "List guest directory",
            "Lists a directory in a guest."),
        tool!(Exec Exec service::service, service::Service, "pve_guest_service", "Guest service",
            "Shows, starts, stops or restarts a service in a guest.", destructive),
    ]
}
