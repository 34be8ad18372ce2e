//! A node that the sample estate knows as well: the same container by the API
//! of the simulator and by SSH, and a server that reaches both.

use std::{fs, process::Command};

use crate::{
    Estate, Server, built,
    desk::Desk,
    node::{Node, Sshd},
};

/// The sample estate's first container, on pve1.
const CONTAINER: &str =
    "arch: amd64\nhostname: dns-01\nunprivileged: 1\nrootfs: local-lvm:vm-200-disk-0,size=8G\n";

/// A node that the sample estate knows as well, and its sshd.
pub struct World {
    /// The node, pve1 of the sample estate, with container 200.
    pub node: Node,
    /// The configuration that points at it.
    pub desk: Desk,
    /// The simulated estate.
    pub estate: Estate,
    /// How the node is reached.
    pub sshd: Sshd,
}

impl World {
    /// The node, joined; `None` where none can be made and nothing insists.
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
        Some(Self { node, desk, estate, sshd })
    }

    /// A server in write mode with exec, and these variables.
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
