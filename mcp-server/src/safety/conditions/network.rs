//! Firewall rules, services, and a node's options.

use super::{Call, Param};
use crate::safety::api::indexed;

pub use super::target::{bad as bad_target, inner as inner_target};

/// A rule that accepts inward traffic from everywhere to every port.
pub fn accepts_everything(call: &Call<'_>, param: &Param<'_>) -> bool {
    let inward = call.params.text("type").is_none_or(|t| t.eq_ignore_ascii_case("in"));
    let given = |name: &str| call.params.text(name).is_some_and(|v| !v.trim().is_empty());
    param.is("ACCEPT") && inward && !given("source") && !given("dport")
}

/// The IP set that holds a guest to its own addresses.
pub fn is_ipfilter(call: &Call<'_>) -> bool {
    call.variable("name").is_some_and(|n| n.to_ascii_lowercase().starts_with("ipfilter-"))
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
