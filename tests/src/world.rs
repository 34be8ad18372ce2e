//! All that a call through the guard needs: the simulated API, and a node with
//! real sshd, sudo and the guard.

use std::{fs, process::Command};

use crate::{
    Estate, Server, built,
    desk::Desk,
    node::{Node, Sshd},
};

/// The sample estate's first container, on pve1.
const CONTAINER: &str =
    "arch: amd64\nhostname: dns-01\nunprivileged: 1\nrootfs: local-lvm:vm-200-disk-0,size=8G\n";

/// A node, a desk that is joined with it, and an estate that says what it holds.
pub struct World {
    /// The node.
    pub node: Node,
    /// Where the server runs.
    pub desk: Desk,
    /// The API.
    pub estate: Estate,
    _sshd: Sshd,
}

impl World {
    /// `None` where a node cannot be made and nothing insists.
    ///
    /// # Panics
    /// When it cannot be made although it must.
    pub fn new() -> Option<Self> {
        let node = Node::start("pve1")?;
        node.write("/etc/pve/nodes/pve1/lxc/200.conf", CONTAINER, 0o640);
        let sshd = node.sshd(&["ed25519"], &[]);
        let desk = Desk::joined(&node, &sshd);
        let estate = Estate::sample();
        // The desk points at the node's sshd; where the API is, is said by the environment.
        for line in fs::read_to_string(estate.config_dir().join(".env")).unwrap().lines() {
            if !line.starts_with("PROXMOX_HOST=") {
                desk.set(&format!("{line}\n"));
            }
        }
        Some(Self { node, desk, estate, _sshd: sshd })
    }

    /// A server that may change things, with these variables.
    pub fn server(&self, more: &[(&str, &str)]) -> Server {
        let mut command = Command::new(built("proxmox-mcp"));
        command
            .arg("serve")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.desk.path("home"))
            .env("PROXMOX_MCP_CONFIG_DIR", self.desk.path(""))
            .env("PROXMOX_HOST", self.estate.sim().addr().to_string())
            .env("PROXMOX_MODE", "write")
            .env("PROXMOX_EXEC", "enabled")
            .envs(more.iter().copied());
        let mut server = Server::start(&mut command);
        server.initialize("2025-06-18");
        server
    }
}
