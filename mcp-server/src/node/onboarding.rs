//! What `ssh-setup` does: a key of our own, the node's host key, and the
//! address that we come from.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

use super::{HostKey, Step, files, key_file, known_hosts, known_hosts::Pins, ssh, target};
use crate::{
    Code, Error, Result,
    config::{Config, HostPort},
    pve::NodeName,
};

/// What was found on the way to a node.
#[derive(Debug, Clone)]
pub struct Found {
    /// Private key file of this machine.
    pub key: PathBuf,
    /// Whether the key was made just now.
    pub key_made: bool,
    /// The node, where it is not the API's first host.
    pub node: Option<NodeName>,
    /// Where its sshd is.
    pub address: HostPort,
    /// The host key that it shows.
    pub shown: HostKey,
    /// The address that this machine comes from.
    pub from: IpAddr,
    pins: Pins,
}

/// How the shown key stands to what is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Nothing is pinned for this address yet.
    New,
    /// It is pinned already.
    Pinned,
    /// Another key is pinned, or this one is revoked.
    Changed,
}

/// Makes the key where there is none, and asks the node for its host key.
/// Nothing is pinned. Blocks.
///
/// # Errors
/// `config` without a host or a usable key, `ssh_failed` when the node cannot
/// be asked.
pub fn look(config: &Config, node: Option<(NodeName, HostPort)>) -> Result<Found> {
    let address = match &node {
        Some((_, address)) => address.clone(),
        None => target::main_address(config).ok_or_else(|| {
            Error::new(Code::Config, "PROXMOX_HOST is not set")
                .hint("set it, or name the node: --node NAME --host ADDRESS")
        })?,
    };
    let key = config.ssh.key.clone();
    let key_made = key_file::make(&key)?;
    let ssh::Shown { key: shown, local } = ssh::show_host_key(&address)?;
    let pins = target::pins_of(config, &address)?;
    let (node, from) = (node.map(|(node, _)| node), local.ip().to_canonical());
    Ok(Found { key, key_made, node, address, shown, from, pins })
}

impl Found {
    /// How the shown key stands to what is pinned.
    #[must_use]
    pub fn known(&self) -> Known {
        if self.pins.revoked.contains(&self.shown) {
            Known::Changed
        } else if self.pins.keys.contains(&self.shown) {
            Known::Pinned
        } else if self.pins.keys.is_empty() {
            Known::New
        } else {
            Known::Changed
        }
    }

    /// Compares with what a person read on the node's own console: the key, or
    /// its fingerprint.
    ///
    /// # Errors
    /// `ssh_failed` at `host key` when it is another one.
    pub fn must_be(&self, expected: &str) -> Result<()> {
        let expected = expected.trim();
        let fingerprint = match HostKey::parse(expected) {
            Ok(key) => key.fingerprint(),
            Err(_) if expected.starts_with("SHA256:") => expected.trim_end_matches('=').to_owned(),
            Err(error) => return Err(error),
        };
        if fingerprint == self.shown.fingerprint() {
            return Ok(());
        }
        Err(Step::HostKey
            .failed(format!(
                "{} shows {} {}, which is not {fingerprint}; nothing was pinned",
                known_hosts::name_of(&self.address),
                self.shown.kind(),
                self.shown.fingerprint(),
            ))
            .hint(
                "somebody may stand between, or the fingerprint is that of another of the node's \
                 keys",
            ))
    }

    /// Why a key that is not the pinned one is not pinned just like that.
    #[must_use]
    pub fn changed(&self) -> Error {
        ssh::wrong_host_key(
            &known_hosts::name_of(&self.address),
            &self.pins,
            "PROXMOX_SSH_HOST_KEY (.env) or ssh/known_hosts",
            &self.shown,
        )
    }

    /// Pins the key of a further node in `ssh/known_hosts`; `true` when that
    /// changed the file. The first host's key stands in the environment.
    ///
    /// # Errors
    /// `config` when the file cannot be written.
    pub fn pin(&self, config: &Config) -> Result<bool> {
        if self.node.is_none() || self.known() == Known::Pinned {
            return Ok(false);
        }
        let path = target::known_hosts_file(config);
        let mut text = read_or_empty(&path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&known_hosts::line_for(&self.address, &self.shown));
        files::write_private(&path, &text)?;
        Ok(true)
    }

    /// What the environment has to say, beyond what it says already.
    #[must_use]
    pub fn variables(&self, config: &Config) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let ssh = &config.ssh;
        match &self.node {
            None if ssh.host_key.as_deref() != Some(&self.shown.to_string()) => {
                lines.push(("PROXMOX_SSH_HOST_KEY", self.shown.to_string()));
            }
            Some(node) if !ssh.nodes.contains(&(node.clone(), self.address.clone())) => {
                let others = ssh.nodes.iter().filter(|(name, _)| name != node);
                let mut all: Vec<_> = others.map(|(n, a)| format!("{n}={a}")).collect();
                all.push(format!("{node}={}", self.address));
                lines.push(("PROXMOX_SSH_NODES", all.join(",")));
            }
            _ => {}
        }
        // What a person put there (a network, or the address behind a NAT) stays.
        if ssh.allowed_ip.is_none() {
            lines.push(("PROXMOX_SSH_ALLOWED_IP", self.from.to_string()));
        }
        lines
    }
}

/// Puts variables into an environment file: over the line that sets them now,
/// or at its end.
///
/// # Errors
/// `config` when the file cannot be read or written.
pub fn set_in_env(path: &Path, variables: &[(&str, String)]) -> Result<()> {
    // Through a link, and not in its place.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let text = read_or_empty(&path)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (name, value) in variables {
        let line = format!("{name}={value}");
        match lines.iter_mut().rev().find(|line| sets(line, name)) {
            Some(old) => *old = line,
            None => lines.push(line),
        }
    }
    files::write_private(&path, &(lines.join("\n") + "\n"))
}

fn sets(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
}

fn read_or_empty(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        other => other.map_err(|e| {
            Error::new(Code::Config, format!("{} cannot be read: {e}", path.display()))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Dirs;

    const A: &str = "ssh-ed25519 \
        AAAAC3NzaC1lZDI1NTE5AAAAIKKaf1FbaEtrwOUqhbZd8iTXpvZTnBLsW3c64OoGIGUX";
    const B: &str = "ssh-ed25519 \
        AAAAC3NzaC1lZDI1NTE5AAAAIGxCLesF5PaKEwvv9UGrtrpw4oEdzEndDIgQzVMLXRTQ";

    fn config(folder: &Path) -> Config {
        Config::minimal(Dirs { config: folder.to_owned(), state: folder.to_owned() })
    }

    fn found(node: Option<&str>, pinned: &[&str]) -> Found {
        let keys = pinned.iter().map(|key| HostKey::parse(key).unwrap()).collect();
        Found {
            key: PathBuf::new(),
            key_made: false,
            node: node.map(|n| NodeName::parse(n).unwrap()),
            address: HostPort { host: "192.0.2.12".into(), port: 2222 },
            shown: HostKey::parse(A).unwrap(),
            from: "192.0.2.10".parse().unwrap(),
            pins: Pins { keys, revoked: Vec::new() },
        }
    }

    #[test]
    fn a_pinned_key_is_known_and_another_is_not_pinned_over_it() {
        assert_eq!(found(None, &[]).known(), Known::New);
        assert_eq!(found(None, &[B, A]).known(), Known::Pinned);
        assert_eq!(found(None, &[B]).known(), Known::Changed);
        let mut revoked = found(None, &[A]);
        revoked.pins.revoked.push(HostKey::parse(A).unwrap());
        assert_eq!(revoked.known(), Known::Changed);
        let error = found(None, &[B]).changed();
        assert_eq!(error.ssh_step(), Some(Step::HostKey));
        for key in [A, B] {
            let fingerprint = HostKey::parse(key).unwrap().fingerprint();
            assert!(error.message.contains(&fingerprint), "{error}");
        }
    }

    #[test]
    fn what_a_person_read_on_the_console_decides() {
        let found = found(None, &[]);
        let print = found.shown.fingerprint();
        for same in [A, &format!("{A} root@pve"), &print, &format!(" {print}\n")] {
            found.must_be(same).unwrap();
        }
        assert_eq!(found.must_be(B).unwrap_err().ssh_step(), Some(Step::HostKey));
        assert!(found.must_be("SHA256:AAAA").is_err());
        assert!(found.must_be("yes").is_err());
    }

    #[test]
    fn the_environment_gets_what_it_lacks_and_keeps_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        let lines = found(None, &[]).variables(&config);
        let wanted =
            [("PROXMOX_SSH_HOST_KEY", A.into()), ("PROXMOX_SSH_ALLOWED_IP", "192.0.2.10".into())];
        assert_eq!(lines, wanted);
        config.ssh.host_key = Some(A.into());
        config.ssh.allowed_ip = Some("198.51.100.0/24".into());
        assert_eq!(found(None, &[A]).variables(&config), []);
        let other = HostPort { host: "2001:db8::1".into(), port: 22 };
        config.ssh.nodes = vec![(NodeName::parse("pve1").unwrap(), other)];
        let nodes = "pve1=[2001:db8::1]:22,pve2=192.0.2.12:2222".to_owned();
        let lines = found(Some("pve2"), &[]).variables(&config);
        assert_eq!(lines, [("PROXMOX_SSH_NODES", nodes)]);
    }

    #[test]
    fn a_further_node_is_pinned_once() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let file = target::known_hosts_file(&config);
        files::write_private(&file, "pve1 ssh-ed25519 AAAA").unwrap();
        assert!(found(Some("pve2"), &[]).pin(&config).unwrap());
        assert!(!found(Some("pve2"), &[A]).pin(&config).unwrap());
        assert!(!found(None, &[]).pin(&config).unwrap());
        let text = fs::read_to_string(file).unwrap();
        assert_eq!(text, format!("pve1 ssh-ed25519 AAAA\n[192.0.2.12]:2222 {A}\n"));
    }

    #[test]
    fn an_environment_file_keeps_its_other_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".env");
        let variables = [("A", "new".to_owned()), ("B", "two words".to_owned())];
        for (before, after) in [
            ("", "A=new\nB=two words\n"),
            ("# A=1\nX='y'", "# A=1\nX='y'\nA=new\nB=two words\n"),
            ("A=1\n\nexport A = 2\nAB=3\n", "A=1\n\nA=new\nAB=3\nB=two words\n"),
        ] {
            fs::write(&path, before).unwrap();
            for _ in 0..2 {
                set_in_env(&path, &variables).unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), after, "{before:?}");
            }
        }
    }
}
