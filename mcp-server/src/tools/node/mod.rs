//! The group `node`: services, packages, repositories, settings, hardware, power.

mod guarded;
mod hardware;
mod journal;
mod packages;
mod power;
mod repositories;
mod services;
mod settings;

use super::{args, registry::*};

/// The tools of this group, in the order in which they are listed.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool!(Node Read services::list, args::MaybeNode, "pve_list_services", "List services",
            "Services of one node or all, what is not well first."),
        tool!(Node Read packages::updates, packages::Updates, "pve_list_updates", "List updates",
            "Packages that can be updated, on one node or all, security first."),
        tool!(Node Read packages::versions, packages::Versions, "pve_package_versions", "Package versions",
            "Installed Proxmox packages, and how nodes differ."),
        tool!(Node Read repositories::list, args::MaybeNode, "pve_apt_repositories", "APT repositories",
            "A node's package repositories, and what is odd about them."),
        tool!(Node Read hardware::certificates, args::MaybeNode, "pve_list_certificates", "List certificates",
            "Certificates of one node or all, with the days left."),
        tool!(Node Read hardware::disks, hardware::Disks, "pve_list_disks", "List disks",
            "Physical disks with health and wear, or one disk's SMART values."),
        tool!(Node Read journal::journal, journal::Journal, "pve_node_journal", "Node journal",
            "Newest lines of a node's journal, by time, unit or text."),
        tool!(Node Read hardware::settings, args::MaybeNode, "pve_node_settings", "Node settings",
            "A node's DNS, hosts file, time zone, subscription and options."),
        tool!(Node Read hardware::devices, args::MaybeNode, "pve_list_hardware", "List hardware",
            "A node's PCI and USB devices."),
        tool!(Node Write services::control, services::Control, "pve_service_control", "Control service",
            "Starts, stops, restarts or reloads a service of a node.", destructive),
        tool!(Node Write packages::refresh, packages::Refresh, "pve_apt_refresh", "Refresh package lists",
            "Fetches the lists of packages anew; installs nothing.", idempotent),
        tool!(Node Write repositories::set, repositories::Set, "pve_apt_repository_set", "Set repository",
            "Adds a standard repository, or turns one on or off.", idempotent),
        tool!(Node Write settings::dns, settings::Dns, "pve_dns_set", "Set DNS",
            "Sets a node's search domain and name servers.", idempotent),
        tool!(Node Write settings::hosts, settings::Hosts, "pve_hosts_set", "Set hosts file",
            "Replaces a node's /etc/hosts.", destructive, idempotent),
        tool!(Node Write settings::time_zone, settings::TimeZone, "pve_time_zone_set", "Set time zone",
            "Sets a node's time zone.", idempotent),
        tool!(Node Write power::power, power::Power, "pve_node_power", "Node power",
            "Reboots or shuts down a node; dry_run shows what goes with it.", destructive),
        tool!(Node Write power::wake, power::Wake, "pve_node_wake", "Wake node",
            "Starts a node by wake on LAN.", idempotent),
        tool!(Node GuardRead guarded::simulate, guarded::Simulate, "pve_upgrade_simulate", "Simulate upgrade",
            "What an upgrade of a node would do, and the plan's hash to start it by."),
        tool!(Node GuardRead guarded::status, guarded::Status, "pve_upgrade_status", "Upgrade status",
            "How a node's upgrade stands, with the newest lines of its log."),
        tool!(Node GuardRead guarded::kernels, guarded::Kernels, "pve_kernel_list", "List kernels",
            "A node's kernels: installed, pinned, running, next to boot."),
        tool!(Node GuardWrite guarded::start, guarded::Start, "pve_upgrade_start", "Start upgrade",
            "Upgrades a node by the plan of pve_upgrade_simulate.", destructive),
        tool!(Node GuardWrite guarded::pin, guarded::Pin, "pve_kernel_pin", "Pin kernel",
            "Makes a node boot one kernel, always or once.", destructive, idempotent),
        tool!(Node GuardWrite guarded::unpin, guarded::Unpin, "pve_kernel_unpin", "Unpin kernel",
            "Takes a node's kernel pin away.", destructive, idempotent),
    ]
}
