//! Firewall rules, services, and a node's options.

use super::{Call, Param};
use crate::safety::api::indexed;

pub use super::target::{bad as bad_target, inner as inner_target};

/// A rule that accepts inward traffic from everywhere to every port.
pub fn accepts_everything(call: &Call<'_>, param: &Param<'_>) -> bool {
    let inward = call.params.text("type").is_none_or(|t| t.eq_ignore_ascii_case("in"));
    let given = |name: &str, all: &[&str]| {
        let text = call.params.text(name).map(str::trim).unwrap_or_default();
        // What names everything says as little as nothing.
        !text.is_empty() && !text.split(',').any(|part| all.contains(&part.trim()))
    };
    let everywhere = ["0.0.0.0/0", "::/0", "0/0", "0.0.0.0-255.255.255.255"];
    let every_port = ["0:65535", "1:65535"];
    param.is("ACCEPT") && inward && !given("source", &everywhere) && !given("dport", &every_port)
}

/// The IP set that holds a guest to its own addresses.
pub fn is_ipfilter(call: &Call<'_>) -> bool {
    call.variable("name").is_some_and(holds_addresses)
}

/// Such a set is renamed away, or another takes its place.
pub fn renames_ipfilter(call: &Call<'_>) -> bool {
    let names = ["name", "rename"].into_iter().filter_map(|p| call.params.text(p));
    call.params.has("rename") && names.into_iter().any(holds_addresses)
}

fn holds_addresses(set: &str) -> bool {
    set.trim().to_ascii_lowercase().starts_with("ipfilter-")
}

const VITAL: [&str; 15] = [
    "pveproxy",
    "pvedaemon",
    "pve-cluster",
    "corosync",
    "sshd",
    "ssh",
    "pve-firewall",
    "proxmox-firewall",
    "pve-ha-lrm",
    "pve-ha-crm",
    "watchdog-mux",
    "pvescheduler",
    "qmeventd",
    "lxcfs",
    "networking",
];

/// A service that is the way in, or that every guest needs.
pub fn vital_service(call: &Call<'_>) -> bool {
    call.service_is(&VITAL) || call.variable("service").is_some_and(|s| s.starts_with("systemd-"))
}

/// `delete` names the ACME settings of a node.
pub fn deletes_acme(_call: &Call<'_>, param: &Param<'_>) -> bool {
    param.value.members().any(|m| m == "acme" || indexed(m) == Some("acmedomain"))
}
