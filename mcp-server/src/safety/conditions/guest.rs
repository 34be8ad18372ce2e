//! Options of one guest: devices, features, network, agent.

use super::{Call, Now, Param, restore};
use crate::safety::api::indexed;

/// A USB device that is the host's: anything but a spice channel.
pub fn host_usb(call: &Call<'_>, param: &Param<'_>) -> bool {
    let parts = param.parts(call);
    parts.get("mapping").is_some()
        || !parts.get("host").is_some_and(|h| h.eq_ignore_ascii_case("spice"))
}

/// A serial port that is a device of the host: anything but a socket.
pub fn host_serial(_call: &Call<'_>, param: &Param<'_>) -> bool {
    !param.value.values().iter().all(|v| v == "socket")
}

/// A source of randomness other than the kernel's own.
pub fn host_rng(call: &Call<'_>, param: &Param<'_>) -> bool {
    !matches!(param.parts(call).get("source"), Some("/dev/urandom" | "/dev/random"))
}

/// A container feature other than nesting is turned on.
pub fn features_beyond_nesting(call: &Call<'_>, param: &Param<'_>) -> bool {
    param.parts(call).iter().any(|(key, value)| key != "nesting" && value != "0")
}

/// Nesting in a container that is not known to be unprivileged.
pub fn nesting_privileged(call: &Call<'_>, param: &Param<'_>) -> bool {
    if !param.parts(call).is("nesting", "1") {
        return false;
    }
    if call.variable("vmid").is_some() {
        return call.now("unprivileged") != Now::Is("1".to_owned());
    }
    match call.params.flag("unprivileged") {
        Some(unprivileged) => !unprivileged,
        None if restore::is_restore(call) => !restore::archive_is_unprivileged(call),
        None => true,
    }
}

/// Whether a list names one of these options, a number after a base counting too.
fn names_any(param: &Param<'_>, options: &[&str], bases: &[&str]) -> bool {
    param
        .value
        .members()
        .any(|m| options.contains(&m) || indexed(m).is_some_and(|base| bases.contains(&base)))
}

/// `revert` brings a host device, directory or script back.
pub fn reverts_host_access(_call: &Call<'_>, param: &Param<'_>) -> bool {
    let bases = ["hostpci", "usb", "serial", "parallel", "virtiofs", "rng", "dev", "mp"];
    names_any(param, &["args", "hookscript", "features"], &bases)
}

/// `revert` brings a login, code at boot or a medium back.
pub fn reverts_credentials(_call: &Call<'_>, param: &Param<'_>) -> bool {
    let options = [
        "smbios1",
        "sshkeys",
        "cipassword",
        "cicustom",
        "ciuser",
        "boot",
        "entrypoint",
        "env",
        "cmode",
        // Another name of ide2.
        "cdrom",
    ];
    names_any(param, &options, &["ide"])
}

const DISKS: [&str; 5] = ["ide", "sata", "scsi", "virtio", "mp"];

/// `delete` names a disk, a mount point or a network interface.
pub fn deletes_device(_call: &Call<'_>, param: &Param<'_>) -> bool {
    names_any(param, &["efidisk0", "tpmstate0", "rootfs", "cdrom"], &DISKS)
        || names_any(param, &[], &["net"])
}

/// `delete` names a volume that goes at once, or a disk together with `force`.
pub fn destroys_volume(call: &Call<'_>, param: &Param<'_>) -> bool {
    names_any(param, &["vmstate"], &["unused"])
        || (call.params.flag("force") == Some(true)
            && names_any(param, &["efidisk0", "tpmstate0", "rootfs", "cdrom"], &DISKS))
}

/// The value is not what the guest has now, or that cannot be known.
pub fn differs(call: &Call<'_>, param: &Param<'_>) -> bool {
    match call.now(param.name) {
        Now::Is(now) => param.text() != Some(now.as_str()),
        Now::Unknown | Now::Absent => true,
    }
}

/// The agent is turned off, freezes no longer, or is reached another way.
pub fn weakens_agent(call: &Call<'_>, param: &Param<'_>) -> bool {
    let parts = param.parts(call);
    // Without `enabled` the agent is off.
    if !parts.is("enabled", "1") || parts.is("freeze-fs", "0") {
        return true;
    }
    let Some(wanted) = parts.get("type") else { return false };
    match call.now("agent") {
        Now::Unknown => true,
        Now::Absent => wanted != "virtio",
        Now::Is(now) => call.parts("agent", &now).get("type").unwrap_or("virtio") != wanted,
    }
}

/// Longest pause at start or shutdown that holds nobody up, in seconds.
const LONGEST_PAUSE: u64 = 3600;

/// A pause at start or shutdown that holds up the other guests.
pub fn long_startup(call: &Call<'_>, param: &Param<'_>) -> bool {
    let parts = param.parts(call);
    ["up", "down"].iter().any(|key| {
        parts.get(key).is_some_and(|v| v.parse::<u64>().map_or(true, |s| s > LONGEST_PAUSE))
    })
}

/// An interface loses its firewall, or lets trunks through.
pub fn opens_network(call: &Call<'_>, param: &Param<'_>) -> bool {
    let parts = param.parts(call);
    if parts.get("trunks").is_some() {
        return true;
    }
    if parts.is("firewall", "1") {
        return false;
    }
    match call.now(param.name) {
        Now::Unknown => true,
        Now::Absent => false,
        Now::Is(now) => call.parts(param.name, &now).is("firewall", "1"),
    }
}

/// An interface goes to another network, gets another address, or is unplugged.
pub fn moves_network(call: &Call<'_>, param: &Param<'_>) -> bool {
    let parts = param.parts(call);
    if parts.is("link_down", "1") {
        return true;
    }
    match call.now(param.name) {
        Now::Unknown => true,
        Now::Absent => false,
        Now::Is(now) => {
            let now = call.parts(param.name, &now);
            // An address that is left out is made anew.
            ["bridge", "tag", "macaddr", "hwaddr", "ip", "ip6", "gw", "gw6"].iter().any(|key| {
                let text = |p: Option<&str>| p.unwrap_or_default().to_ascii_lowercase();
                text(parts.get(key)) != text(now.get(key))
            })
        }
    }
}

/// Commands of the guest agent that change nothing, or only what the guest does itself.
const AGENT_HARMLESS: [&str; 15] = [
    "fsfreeze-status",
    "fsfreeze-thaw",
    "fstrim",
    "get-fsinfo",
    "get-host-name",
    "get-memory-block-info",
    "get-memory-blocks",
    "get-osinfo",
    "get-time",
    "get-timezone",
    "get-users",
    "get-vcpus",
    "info",
    "network-get-interfaces",
    "ping",
];

/// The legacy `command` shuts down, suspends or freezes, or is not known.
pub fn agent_acts(call: &Call<'_>) -> bool {
    !call.params.text("command").is_some_and(|c| AGENT_HARMLESS.contains(&c))
}

/// The legacy `command` would run code or touch files.
pub fn agent_execs(_call: &Call<'_>, param: &Param<'_>) -> bool {
    ["exec", "exec-status", "file-read", "file-write", "set-user-password"]
        .iter()
        .any(|c| param.is(c))
}
