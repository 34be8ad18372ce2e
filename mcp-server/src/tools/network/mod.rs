//! The group `network`: interfaces, firewall, SDN.

mod interfaces;
mod log;
mod objects;
mod options;
mod place;
mod review;
mod rules;
mod sdn;
mod uses;

use super::{args, registry::*};

/// The tools of this group, in the order in which they are listed.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool!(Network Read interfaces::list, interfaces::List, "pve_list_interfaces", "List interfaces",
            "A node's interfaces, what is pending, and what of it could cut the way in."),
        tool!(Network Read rules::list, rules::List, "pve_firewall_rules", "Firewall rules",
            "Rules of the cluster, or of a node, guest, security group or vnet."),
        tool!(Network Read options::show, options::Show, "pve_firewall_options", "Firewall options",
            "Options of a firewall, whether it is in force, and the security groups."),
        tool!(Network Read objects::aliases, objects::List, "pve_firewall_aliases", "Firewall aliases",
            "Aliases of the cluster or a guest."),
        tool!(Network Read objects::ipsets, objects::List, "pve_firewall_ipsets", "Firewall IP sets",
            "IP sets of the cluster or a guest, with their entries."),
        tool!(Network Read log::log, log::Log, "pve_firewall_log", "Firewall log",
            "Newest firewall log lines of a node or guest."),
        tool!(Network Read sdn::status::status, args::None, "pve_sdn_status", "SDN status",
            "Zones, vnets and subnets, with what is pending."),
        tool!(Network Write interfaces::set, interfaces::Set, "pve_interface_set", "Set interface",
            "Makes or changes an interface; waits for pve_network_apply.", idempotent),
        tool!(Network Write interfaces::delete, interfaces::Delete, "pve_interface_delete", "Delete interface",
            "Removes an interface; waits for pve_network_apply.", destructive),
        tool!(Network Write interfaces::apply, interfaces::Apply, "pve_network_apply", "Apply network",
            "Applies a node's pending network changes at once; read pve_list_interfaces first.", destructive),
        tool!(Network Write interfaces::revert, interfaces::Revert, "pve_network_revert", "Revert network",
            "Drops a node's pending network changes.", destructive, idempotent),
        tool!(Network Write rules::set, rules::Set, "pve_firewall_rule_set", "Set firewall rule",
            "Makes, changes or moves a firewall rule.", destructive),
        tool!(Network Write rules::delete, rules::Delete, "pve_firewall_rule_delete", "Delete firewall rule",
            "Deletes a firewall rule.", destructive),
        tool!(Network Write options::set, options::Set, "pve_firewall_options_set", "Set firewall options",
            "Turns a firewall on or off, or sets its options.", destructive, idempotent),
        tool!(Network Write objects::alias_set, objects::AliasSet, "pve_firewall_alias_set", "Set firewall alias",
            "Makes or changes an alias; names what uses it.", idempotent),
        tool!(Network Write objects::alias_delete, objects::AliasDelete, "pve_firewall_alias_delete", "Delete firewall alias",
            "Deletes an alias; names what uses it.", destructive),
        tool!(Network Write objects::ipset_set, objects::IpsetSet, "pve_firewall_ipset_set", "Set IP set",
            "Makes or changes an IP set or one entry of it.", idempotent),
        tool!(Network Write objects::ipset_delete, objects::IpsetDelete, "pve_firewall_ipset_delete", "Delete IP set",
            "Deletes an IP set or one entry of it.", destructive),
        tool!(Network Write objects::group_set, objects::GroupSet, "pve_firewall_group_set", "Set security group",
            "Makes, renames or describes a security group; pve_firewall_rule_set makes its rules.", idempotent),
        tool!(Network Write objects::group_delete, objects::GroupDelete, "pve_firewall_group_delete", "Delete security group",
            "Deletes a security group without rules.", destructive),
        tool!(Network Write sdn::zone::set, sdn::zone::Set, "pve_sdn_zone_set", "Set SDN zone",
            "Makes or changes a zone; waits for pve_sdn_apply.", idempotent),
        tool!(Network Write sdn::zone::delete, sdn::zone::Delete, "pve_sdn_zone_delete", "Delete SDN zone",
            "Deletes a zone without vnets.", destructive),
        tool!(Network Write sdn::vnet::set, sdn::vnet::Set, "pve_sdn_vnet_set", "Set SDN vnet",
            "Makes or changes a vnet; waits for pve_sdn_apply.", idempotent),
        tool!(Network Write sdn::vnet::delete, sdn::vnet::Delete, "pve_sdn_vnet_delete", "Delete SDN vnet",
            "Deletes a vnet without subnets.", destructive),
        tool!(Network Write sdn::subnet::set, sdn::subnet::Set, "pve_sdn_subnet_set", "Set SDN subnet",
            "Makes or changes a subnet of a vnet.", idempotent),
        tool!(Network Write sdn::subnet::delete, sdn::subnet::Delete, "pve_sdn_subnet_delete", "Delete SDN subnet",
            "Deletes a subnet of a vnet.", destructive),
        tool!(Network Write sdn::apply::apply, sdn::apply::Apply, "pve_sdn_apply", "Apply SDN",
            "Applies all pending SDN changes on every node.", destructive),
    ]
}
