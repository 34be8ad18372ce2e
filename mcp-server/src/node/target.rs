//! Which address, account and keys belong to which node.

use std::path::PathBuf;

use super::{
    host_key::HostKey,
    known_hosts::{self, Pins},
};
use crate::{
    Code, Error, Result,
    config::{Config, HostPort},
    pve::NodeName,
};

/// One SSH server, and what is trusted there.
#[derive(Debug, Clone)]
pub struct Target {
    /// Host and port of its sshd.
    pub address: HostPort,
    /// The account.
    pub user: String,
    /// Private key file.
    pub key: PathBuf,
    /// Host keys that are accepted.
    pub pins: Pins,
    /// Where they are pinned, for error texts.
    pub pinned_in: String,
}

impl Target {
    /// The address as it is written in known_hosts.
    #[must_use]
    pub fn place(&self) -> String {
        known_hosts::name_of(&self.address)
    }
}

/// Where pins of further nodes stand.
#[must_use]
pub fn known_hosts_file(config: &Config) -> PathBuf {
    config.dirs.config.join("ssh").join("known_hosts")
}

/// The SSH server of a node: what `PROXMOX_SSH_NODES` says, else the host of
/// the API. Whether that is the node meant, the guard tells.
///
/// # Errors
/// `config` when there is no host, or a pinned key cannot be read.
pub fn of_node(config: &Config, node: Option<&NodeName>) -> Result<Target> {
    let ssh = &config.ssh;
    let named = node.and_then(|node| ssh.nodes.iter().find(|(name, _)| name == node));
    let main = main_address(config);
    let address = match (named, &main) {
        (Some((_, address)), _) => address.clone(),
        (None, Some(main)) => main.clone(),
        (None, None) => {
            return Err(Error::new(Code::Config, "no host is configured for SSH")
                .hint("set PROXMOX_HOST, or PROXMOX_SSH_NODES"));
        }
    };
    let pins = pins_of(config, &address)?;
    let file = known_hosts_file(config).display().to_string();
    let pinned_in = match main.as_ref() == Some(&address) {
        true => format!("PROXMOX_SSH_HOST_KEY (.env) or {file}"),
        false => file,
    };
    Ok(Target { address, user: ssh.user.clone(), key: ssh.key.clone(), pins, pinned_in })
}

/// The keys pinned for an address: in `ssh/known_hosts`, and for the API's
/// first host in `PROXMOX_SSH_HOST_KEY`.
///
/// # Errors
/// `config` when one of them cannot be read.
pub fn pins_of(config: &Config, address: &HostPort) -> Result<Pins> {
    let mut pins = known_hosts::read(&known_hosts_file(config), address)?;
    if main_address(config).as_ref() == Some(address)
        && let Some(text) = &config.ssh.host_key
    {
        let key = HostKey::parse(text).map_err(|e| Error {
            code: Code::Config,
            message: format!("PROXMOX_SSH_HOST_KEY: {}", e.message),
            ..e
        })?;
        if !pins.keys.contains(&key) {
            pins.keys.push(key);
        }
    }
    Ok(pins)
}

/// The SSH server on the first host of the API.
#[must_use]
pub fn main_address(config: &Config) -> Option<HostPort> {
    let host = config.hosts.first()?.host.clone();
    Some(HostPort { host, port: config.ssh.port })
}
