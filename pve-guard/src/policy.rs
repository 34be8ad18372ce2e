//! The policy of this node: `/etc/pve-guard/policy.toml`.
//!
//! It belongs to root alone; a file that others could have written, or that
//! cannot be understood wholly, permits nothing.

mod vmids;

use std::fmt::Write as _;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use serde::Deserialize;

use crate::protocol::{Code, Refused, VerbName};
use crate::{caller, node};

pub(crate) use vmids::Vmids;

/// Where the policy is.
pub(crate) const FILE: &str = "/etc/pve-guard/policy.toml";
/// A policy longer than this is not read.
const MAX_BYTES: u64 = 64 * 1024;

/// What the administrator of this node permits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    pub(crate) verbs: Vec<VerbName>,
    pub(crate) containers: Containers,
    #[serde(default)]
    pub(crate) limits: Limits,
    #[serde(default)]
    pub(crate) programs: Programs,
    #[serde(default)]
    pub(crate) upgrade: Upgrade,
    /// SHA-256 of the file.
    #[serde(skip)]
    pub(crate) sha256: String,
}

/// In which containers commands may run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Containers {
    pub(crate) allow: Vmids,
    #[serde(default)]
    pub(crate) deny: Vmids,
    /// Containers whose root is the node's root.
    #[serde(default)]
    pub(crate) privileged: bool,
    /// Containers with raw `lxc.` keys.
    #[serde(default)]
    pub(crate) raw_lxc_keys: bool,
    /// Containers that see a directory or device of the node.
    #[serde(default)]
    pub(crate) bind_mounts: bool,
    /// Containers whose `AppArmor` profile is `unconfined`.
    #[serde(default)]
    pub(crate) unconfined: bool,
}

/// The most that one request may ask for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Seconds.
    pub(crate) timeout_s: u64,
    /// Bytes of each output stream that are sent back.
    pub(crate) max_output: u64,
    /// Bytes of input.
    pub(crate) max_input: u64,
    /// Commands at one time.
    pub(crate) commands: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout_s: 3600,
            max_output: 16 * 1024 * 1024,
            max_input: 16 * 1024 * 1024,
            commands: 64,
        }
    }
}

/// Programs that are never run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Programs {
    pub(crate) never: Vec<String>,
}

/// How upgrades are done.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Upgrade {
    /// Whether `upgrade-simulate` may fetch package lists.
    pub(crate) refresh: bool,
    /// Seconds to wait for another package manager.
    pub(crate) lock_wait_s: u64,
}

impl Default for Upgrade {
    fn default() -> Self {
        Self { refresh: false, lock_wait_s: 60 }
    }
}

impl Policy {
    /// Reads and checks the file.
    ///
    /// # Errors
    /// `policy`: it is not there, others could have written it, or a line of
    /// it is not understood.
    pub(crate) fn load() -> Result<Self, Refused> {
        let path = node::at(FILE);
        Self::load_from(&path).map_err(|cause| {
            Refused::new(Code::Policy, format!("{}: {cause}", path.display()))
                .hint("on the node, as root: pve-guard policy check")
        })
    }

    fn load_from(path: &Path) -> Result<Self, String> {
        let text = read_owned(path)?;
        let mut policy: Policy =
            toml::from_str(&text).map_err(|error| error.to_string().trim_end().to_owned())?;
        policy.check()?;
        policy.sha256 = node::sha256(text.as_bytes());
        Ok(policy)
    }

    fn check(&self) -> Result<(), String> {
        let limits = &self.limits;
        if limits.timeout_s == 0 || limits.commands == 0 {
            return Err("limits: timeout_s and commands must be at least 1".into());
        }
        if limits.commands > 1024 {
            return Err("limits: commands must be at most 1024".into());
        }
        if self.programs.never.iter().any(String::is_empty) {
            return Err("programs: never holds an empty name".into());
        }
        Ok(())
    }

    /// Whether requests with this verb are answered.
    pub(crate) fn allows(&self, verb: VerbName) -> bool {
        self.verbs.contains(&verb)
    }

    /// Whether this program is never run. A name without `/` means every
    /// program of that name, one with `/` that file alone.
    pub(crate) fn forbids_program(&self, program: &str) -> bool {
        let last = program.rsplit('/').next().unwrap_or(program);
        self.programs
            .never
            .iter()
            .any(|never| if never.contains('/') { never == program } else { never == last })
    }

    /// What the policy means, for a person.
    pub(crate) fn meaning(&self) -> String {
        let yes = |allowed: bool| if allowed { "allowed" } else { "refused" };
        let limits = &self.limits;
        let mut text = String::new();
        for verb in VerbName::ALL {
            let _ = writeln!(text, "{:18}{}", verb.as_str(), yes(self.allows(verb)));
        }
        let containers = &self.containers;
        let rows = [
            ("fetching lists", yes(self.upgrade.refresh).to_owned()),
            ("containers", containers.allow.to_string()),
            ("  but not", containers.deny.to_string()),
            ("  privileged", yes(containers.privileged).to_owned()),
            ("  raw lxc. keys", yes(containers.raw_lxc_keys).to_owned()),
            ("  bind mounts", yes(containers.bind_mounts).to_owned()),
            ("  unconfined", yes(containers.unconfined).to_owned()),
            ("never run", join(&self.programs.never)),
            ("longest command", format!("{} s", limits.timeout_s)),
            ("largest output", format!("{} bytes of each stream", limits.max_output)),
            ("largest input", format!("{} bytes", limits.max_input)),
            ("at one time", format!("{} commands", limits.commands)),
            ("wait for apt", format!("{} s", self.upgrade.lock_wait_s)),
        ];
        for (what, value) in rows {
            let _ = writeln!(text, "{what:18}{value}");
        }
        text
    }
}

fn join(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// Reads a file that only its owner, root, can have written.
fn read_owned(path: &Path) -> Result<String, String> {
    let explain = |error: io::Error| error.to_string();
    if let Some(dir) = path.parent() {
        check_owner(&fs::symlink_metadata(dir).map_err(explain)?)
            .map_err(|fault| format!("its directory {fault}"))?;
    }
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .map_err(explain)?;
    let metadata = file.metadata().map_err(explain)?;
    if !metadata.is_file() {
        return Err("it is not a plain file".into());
    }
    check_owner(&metadata).map_err(|fault| format!("it {fault}"))?;
    let mut text = String::new();
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(explain)?;
    if read as u64 > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    Ok(text)
}

fn check_owner(metadata: &Metadata) -> Result<(), String> {
    if metadata.uid() != caller::owner() {
        return Err(format!("belongs to user {} and not to root", metadata.uid()));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(format!("can be written by others (mode {:04o})", metadata.mode() & 0o7777));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: &str = include_str!("../../packaging/deb/policy.toml");

    #[test]
    fn the_shipped_policy_permits_what_the_manual_says() {
        let policy: Policy = toml::from_str(SHIPPED).unwrap();
        policy.check().unwrap();
        let allowed: Vec<_> =
            VerbName::ALL.into_iter().filter(|verb| policy.allows(*verb)).collect();
        assert_eq!(
            allowed,
            [
                VerbName::Hello,
                VerbName::PctExec,
                VerbName::UpgradeSimulate,
                VerbName::UpgradeStatus,
                VerbName::KernelList
            ]
        );
        assert!(!policy.upgrade.refresh);
        let containers = &policy.containers;
        assert!(!containers.privileged && !containers.raw_lxc_keys);
        assert!(!containers.bind_mounts && !containers.unconfined);
    }

    #[test]
    fn one_line_each_enables_the_other_verbs() {
        let mut text = SHIPPED.to_owned();
        for verb in ["upgrade-start", "kernel-pin", "kernel-unpin"] {
            let commented = format!("# \"{verb}\",");
            assert_eq!(text.matches(&commented).count(), 1, "{verb}");
            text = text.replace(&commented, &format!("\"{verb}\","));
        }
        let policy: Policy = toml::from_str(&text).unwrap();
        assert!(VerbName::ALL.into_iter().all(|verb| policy.allows(verb)));
    }

    #[test]
    fn what_is_not_understood_permits_nothing() {
        let good = "verbs = [\"hello\"]\n[containers]\nallow = \"100-199\"\n";
        toml::from_str::<Policy>(good).unwrap();
        for bad in [
            "",
            "verbs = [\"hello\"]\n",
            "verbs = [\"helo\"]\n[containers]\nallow = \"100\"\n",
            "verbs = [\"hello\"]\n[containers]\nallow = \"100\"\nprivilegd = true\n",
            "verbs = [\"hello\"]\n[containers]\nallow = \"100\"\nprivileged = \"no\"\n",
            "verbs = [\"hello\"]\n[containers]\nallow = \"100-\"\n",
            "verbs = [\"hello\"]\nverbs = [\"pct-exec\"]\n[containers]\nallow = \"100\"\n",
            "verbs = [\"hello\"]\n[containers]\nallow = \"100\"\n[limit]\ntimeout_s = 1\n",
            "verbs = [\"hello\"]\n[containers]\nallow = \"100\"\n[limits]\ntimeout_s = -1\n",
        ] {
            assert!(toml::from_str::<Policy>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn programs_are_forbidden_by_name_or_by_path() {
        let text = "verbs = []\n[containers]\nallow = \"\"\n\
                    [programs]\nnever = [\"reboot\", \"/usr/bin/dd\"]\n";
        let policy: Policy = toml::from_str(text).unwrap();
        for (program, forbidden) in [
            ("reboot", true),
            ("/sbin/reboot", true),
            ("reboots", false),
            ("/usr/bin/dd", true),
            ("dd", false),
        ] {
            assert_eq!(policy.forbids_program(program), forbidden, "{program}");
        }
    }
}
