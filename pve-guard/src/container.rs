//! What a container is, from its configuration file.

use std::fs;
use std::io;

use crate::node;
use crate::policy::Containers;
use crate::protocol::{Code, Refused};

/// The parts of a container's configuration that the guard looks at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    hostname: Option<String>,
    unprivileged: bool,
    template: bool,
    raw_lxc_key: Option<String>,
    bind_mount: Option<String>,
    unconfined: bool,
}

impl Config {
    /// Reads the current section: what comes first, up to the first snapshot
    /// or the pending changes.
    fn parse(text: &str) -> Self {
        let mut config = Self::default();
        let current = text.lines().map(str::trim).take_while(|line| !is_section(line));
        for line in current.filter(|line| !line.starts_with('#')) {
            let Some((key, value)) = line.split_once([':', '=']) else { continue };
            let (key, value) = (key.trim(), value.trim());
            match key {
                "hostname" => config.hostname = Some(value.to_owned()),
                "unprivileged" => config.unprivileged = is_true(value),
                "template" => config.template = is_true(value),
                _ if key.starts_with("lxc.") => config.raw_key(key, value),
                _ if is_mount_point(key) && volume(value).starts_with('/') => {
                    config.bind_mount = Some(key.to_owned());
                }
                _ => {}
            }
        }
        config
    }

    fn raw_key(&mut self, key: &str, value: &str) {
        let names_profile = matches!(key, "lxc.apparmor.profile" | "lxc.aa_profile");
        self.unconfined |= names_profile && value.contains("unconfined");
        self.raw_lxc_key = Some(key.to_owned());
    }

    /// The name that a command in the container sees.
    fn hostname(&self, vmid: i64) -> String {
        self.hostname.clone().unwrap_or_else(|| format!("CT{vmid}"))
    }

    /// Why the policy refuses this kind of container, if it does.
    fn refused_by(&self, policy: &Containers) -> Option<(String, &'static str)> {
        if !self.unprivileged && !policy.privileged {
            return Some(("is privileged: its root is root of the node".into(), "privileged"));
        }
        if self.unconfined && !policy.unconfined {
            return Some(("has an unconfined AppArmor profile".into(), "unconfined"));
        }
        if let (Some(key), false) = (&self.raw_lxc_key, policy.raw_lxc_keys) {
            return Some((format!("has the raw key {key}"), "raw_lxc_keys"));
        }
        if let (Some(key), false) = (&self.bind_mount, policy.bind_mounts) {
            return Some((format!("sees a path of the node ({key})"), "bind_mounts"));
        }
        None
    }
}

/// The head of a snapshot's section, or that of the pending changes. Proxmox
/// skips other lines in brackets, so what follows them counts.
fn is_section(line: &str) -> bool {
    let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    name.is_some_and(|name| {
        name.eq_ignore_ascii_case("pve:pending")
            || name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    })
}

fn is_true(value: &str) -> bool {
    ["1", "yes", "on", "true"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

fn is_mount_point(key: &str) -> bool {
    key == "rootfs"
        || key
            .strip_prefix("mp")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// The volume of a mount point: the part without a key, or that of `volume=`.
fn volume(value: &str) -> &str {
    let mut found = "";
    for part in value.split(',').map(str::trim) {
        match part.split_once('=') {
            None => found = part,
            Some((key, volume)) if key.trim() == "volume" => found = volume.trim(),
            Some(_) => {}
        }
    }
    found
}

/// Checks that the container is here, is the one that is meant, and of a kind
/// that the policy permits.
///
/// # Errors
/// `vmid_denied`, `not_found`, `policy`, `not_running` (a template).
pub(crate) fn check(
    vmid: i64,
    expected_hostname: Option<&str>,
    policy: &Containers,
) -> Result<(), Refused> {
    if !policy.allow.contains(vmid) || policy.deny.contains(vmid) {
        return Err(Refused::new(Code::VmidDenied, format!("the policy does not allow {vmid}"))
            .hint(format!("the node's administrator allows VMIDs in {}", crate::policy::FILE)));
    }
    let config = Config::parse(&read(vmid)?);
    let hostname = config.hostname(vmid);
    if expected_hostname.is_some_and(|expected| expected != hostname) {
        return Err(Refused::new(
            Code::NotFound,
            format!(
                "container {vmid} is {hostname:?} and not {:?}",
                expected_hostname.unwrap_or_default()
            ),
        )
        .hint("a VMID can be given to another container; look which one is meant"));
    }
    if let Some((cause, line)) = config.refused_by(policy) {
        return Err(Refused::new(Code::Policy, format!("container {vmid} {cause}")).hint(format!(
            "the node's administrator can set containers.{line} = true in {}",
            crate::policy::FILE
        )));
    }
    if config.template {
        return Err(Refused::new(Code::NotRunning, format!("container {vmid} is a template")));
    }
    Ok(())
}

/// The container's configuration: that of this node, nobody else's.
fn read(vmid: i64) -> Result<String, Refused> {
    let internal = |error: io::Error| Refused::new(Code::Internal, error.to_string());
    let node = node::name().map_err(internal)?;
    let places = [format!("/etc/pve/nodes/{node}/lxc"), "/etc/pve/lxc".to_owned()];
    for place in places {
        match fs::read_to_string(node::at(&format!("{place}/{vmid}.conf"))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other.map_err(internal),
        }
    }
    let message = format!("there is no container {vmid} on {node}");
    if node::at("/etc/pve/qemu-server").join(format!("{vmid}.conf")).exists() {
        return Err(Refused::new(Code::NotFound, message)
            .hint(format!("{vmid} is a virtual machine; the guest agent runs commands in it")));
    }
    Err(Refused::new(Code::NotFound, message).hint(match other_node(vmid) {
        Some(other) => format!("it is on {other} now"),
        None => String::new(),
    }))
}

fn other_node(vmid: i64) -> Option<String> {
    let nodes = fs::read_dir(node::at("/etc/pve/nodes")).ok()?;
    nodes
        .flatten()
        .find(|entry| entry.path().join(format!("lxc/{vmid}.conf")).exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// Whether its command socket is there, as every running container has one.
pub(crate) fn has_command_socket(vmid: i64) -> bool {
    let socket = format!("@/var/lib/lxc/{vmid}/command");
    fs::read_to_string(node::at("/proc/net/unix"))
        .is_ok_and(|table| table.lines().any(|line| line.split(' ').next_back() == Some(&socket)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "arch: amd64\nhostname: web\nunprivileged: 1\n\
                         rootfs: local-lvm:vm-200-disk-0,size=8G\n";
    const STRICT: &str = "allow = \"100-999999999\"";

    fn refused(config: &str, policy: &str) -> Option<&'static str> {
        let policy: Containers = toml::from_str(policy).unwrap();
        Config::parse(config).refused_by(&policy).map(|(_, line)| line)
    }

    #[test]
    fn kinds_that_reach_the_node_are_refused() {
        let cases = [
            ("", None),
            ("mp0: local-lvm:vm-200-disk-1,mp=/data\n", None),
            ("#lxc.mount.entry: /x\n", None),
            ("description: lxc.mount\n", None),
            ("unprivileged: 0\n", Some("privileged")),
            ("unprivileged: 2\n", Some("privileged")),
            ("lxc.mount.entry: /srv srv none bind 0 0\n", Some("raw_lxc_keys")),
            ("lxc.mount.entry = /srv srv none bind 0 0\n", Some("raw_lxc_keys")),
            ("  lxc.idmap: u 0 0 1\n", Some("raw_lxc_keys")),
            ("lxc.apparmor.profile: unconfined\n", Some("unconfined")),
            ("lxc.aa_profile = unconfined\n", Some("unconfined")),
            ("mp0: /srv,mp=/srv\n", Some("bind_mounts")),
            ("mp10: mp=/srv,volume=/srv\n", Some("bind_mounts")),
            ("mp3: volume=/dev/sdb1,mp=/x\n", Some("bind_mounts")),
            ("rootfs: /srv/root\n", Some("bind_mounts")),
        ];
        for (extra, expected) in cases {
            assert_eq!(refused(&format!("{PLAIN}{extra}"), STRICT), expected, "{extra}");
        }
    }

    #[test]
    fn without_a_word_on_privileges_a_container_is_privileged() {
        assert_eq!(refused("hostname: a\n", STRICT), Some("privileged"));
    }

    #[test]
    fn each_kind_has_its_line() {
        let all = format!(
            "{STRICT}\nprivileged = true\nunconfined = true\nraw_lxc_keys = true\nbind_mounts = true"
        );
        let config = "mp0: /srv,mp=/srv\nlxc.apparmor.profile: unconfined\n";
        assert_eq!(refused(config, &all), None);
        for line in ["privileged", "unconfined", "raw_lxc_keys", "bind_mounts"] {
            let without = all.replace(&format!("{line} = true"), "");
            assert_eq!(refused(config, &without), Some(line));
        }
    }

    #[test]
    fn snapshots_and_pending_changes_are_not_the_container() {
        let text = format!(
            "{PLAIN}\n[pve:pending]\nunprivileged: 0\nhostname: other\n\n[before]\nmp0: /x,mp=/x\n"
        );
        assert_eq!(refused(&text, STRICT), None);
        assert_eq!(Config::parse(&text).hostname(200), "web");
        let late = "hostname: web\n[before]\nunprivileged: 1\n";
        assert_eq!(refused(late, STRICT), Some("privileged"));
        let odd = format!("{PLAIN}[not a section]\nlxc.include: /x\n");
        assert_eq!(refused(&odd, STRICT), Some("raw_lxc_keys"));
    }

    #[test]
    fn a_container_without_a_name_has_the_one_that_proxmox_gives() {
        assert_eq!(Config::parse("unprivileged: 1\n").hostname(200), "CT200");
    }
}
