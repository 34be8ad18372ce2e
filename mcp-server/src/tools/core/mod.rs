//! The group `core`: always registered.

mod api;
mod audit;
mod cluster;
mod connection;
mod estate;
mod guest_views;
mod guests;
mod nodes;
mod privileges;
mod storage;
mod tasks;

use super::{args, registry::*};

pub use self::{
    audit::{Undo, table as audit_table, undo},
    guest_views::real_snapshots,
    guests::title,
    tasks::{epoch, wait as wait_for_task},
};

/// The tools of this group, in the order in which they are listed.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool!(Core Read estate::overview, args::None, "pve_overview", "Overview",
            "The whole estate in one answer: nodes, guests by state, storage, tasks, backups, what is wrong. Start here."),
        tool!(Core Read estate::needs_attention, args::None, "pve_needs_attention", "Needs attention",
            "What needs a person's attention, worst first, each with evidence and the next step."),
        tool!(Core Read guests::list, guests::List, "pve_list_vms", "List guests",
            "Guests (VMs and containers) by name, id, tag, pool, node, state or type."),
        tool!(Core Read guests::details, args::OneGuest, "pve_guest_details", "Guest details",
            "Everything about one guest in short: state, usage, disks, network, snapshots, HA, pending changes."),
        tool!(Core Read guests::status, args::OneGuest, "pve_vm_status", "Guest status",
            "One guest's state and usage now."),
        tool!(Core Read guests::config, guests::Config, "pve_vm_config", "Guest configuration",
            "A guest's configuration: current, with pending changes, or of a snapshot."),
        tool!(Core Read guest_views::metrics, guest_views::Metrics, "pve_vm_metrics", "Guest metrics",
            "A guest's CPU, memory, disk, network and pressure over time."),
        tool!(Core Read guest_views::network, args::OneGuest, "pve_guest_network", "Guest addresses",
            "A guest's network interfaces and IP addresses: by the agent for VMs, directly for containers."),
        tool!(Core Read guest_views::snapshots, args::OneGuest, "pve_list_snapshots", "List snapshots",
            "A guest's snapshots as a tree, with ages."),
        tool!(Core Read cluster::resources, cluster::Resources, "pve_cluster_resources", "Cluster resources",
            "Raw rows of the cluster's resources by type; for guests take pve_list_vms."),
        tool!(Core Read cluster::status, args::None, "pve_cluster_status", "Cluster status",
            "Quorum, and which nodes are online."),
        tool!(Core Read cluster::log, args::Paged, "pve_cluster_log", "Cluster log",
            "The newest entries of the cluster's log."),
        tool!(Core Read nodes::list, args::None, "pve_list_nodes", "List nodes",
            "Nodes with state, load and uptime."),
        tool!(Core Read nodes::status, args::MaybeNode, "pve_node_status", "Node status",
            "One node's CPU, memory, root disk, kernel, boot mode, version."),
        tool!(Core Read nodes::metrics, nodes::Metrics, "pve_node_metrics", "Node metrics",
            "A node's CPU, I/O wait, memory, network and pressure over time."),
        tool!(Core Read cluster::pools, cluster::Pools, "pve_list_pools", "List pools",
            "Resource pools, or the members of one."),
        tool!(Core Read storage::list, storage::List, "pve_list_storage", "List storages",
            "Storages with fill, type and content, for each node."),
        tool!(Core Read storage::content, storage::Content, "pve_storage_content", "Storage content",
            "Volumes on a storage: disks, ISOs, templates, backups."),
        tool!(Core Read storage::backups, storage::Backups, "pve_list_backups", "List backups",
            "Backups on all storages, newest first, by guest, storage or node."),
        tool!(Core Read storage::templates, storage::Templates, "pve_list_templates", "List templates",
            "What new guests can be made from: guest templates, container templates, ISO images."),
        tool!(Core Read tasks::list, tasks::List, "pve_list_tasks", "List tasks",
            "Tasks by node, guest, type, user or result, newest first."),
        tool!(Core Read tasks::status, tasks::Status, "pve_task_status", "Task status",
            "A task's state; with `wait`, until it has ended."),
        tool!(Core Read tasks::log, tasks::Log, "pve_task_log", "Task log",
            "A task's log lines."),
        tool!(Core Read cluster::next_vmid, cluster::NextVmid, "pve_next_vmid", "Next free VMID",
            "A VMID that is free now; it is not reserved."),
        tool!(Core Read cluster::ha_status, args::None, "pve_ha_status", "HA status",
            "High availability: manager, resources, rules, errors."),
        tool!(Core Read cluster::replication_status, args::MaybeNode, "pve_replication_status", "Replication status",
            "Replication jobs with last run, next run and errors."),
        tool!(Core Read connection::check, args::None, "pve_check_connection", "Check connection",
            "Each step of the way to Proxmox, with what to do where it fails."),
        tool!(Core Read connection::whoami, args::None, "pve_whoami", "Who am I",
            "This server's own user, token, privileges and limits."),
        tool!(Core Read api::classify, api::Classify, "pve_classify_operation", "Classify operation",
            "What a call would be (class, category, flag, confirm) and whether it is allowed now; sends nothing."),
        tool!(Core Read api::explore, api::Explore, "pve_api_explore", "Explore API",
            "API endpoints below a path, with methods and classes."),
        tool!(Core Read api::schema, api::Schema, "pve_api_schema", "API schema",
            "Parameters and privileges of one endpoint, as the node publishes them."),
        tool!(Core Read audit::log, audit::Log, "pve_audit_log", "Audit log",
            "What this server was asked to change: sent, refused, dry runs; newest first."),
        tool!(Core Read audit::impact, audit::Impact, "pve_impact", "Impact",
            "What hangs on a guest, node, storage or other object: HA, replication, backup jobs, clones, rights, rules, NICs."),
        tool!(Core ByMode api::call, api::Call, "pve_api_call", "API call",
            "Any API endpoint, where no other tool fits; changes only in write mode, through every check.", destructive),
    ]
}
