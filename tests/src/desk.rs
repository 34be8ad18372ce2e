//! The person's machine: a configuration directory, the built `proxmox-mcp`,
//! and an ordinary SSH client with the same key.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use proxmox_mcp::config::{self, Config, Sources};
use tempfile::TempDir;

use crate::{
    built,
    node::{Node, Sshd, finish},
};

/// A configuration directory that points at a node's sshd.
pub struct Desk {
    folder: TempDir,
    port: u16,
}

impl Desk {
    /// Nothing but the address is set.
    pub fn new(sshd: &Sshd) -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap(), port: sshd.port };
        desk.set(&format!("PROXMOX_HOST=127.0.0.1\nPROXMOX_SSH_PORT={}\n", sshd.port));
        desk
    }

    /// One that has gone through the onboarding with a node.
    pub fn joined(node: &Node, sshd: &Sshd) -> Self {
        let desk = Self::new(sshd);
        desk.told(&["ssh-setup", "--yes", "--append-env"]);
        let script = desk.told(&["ssh-account"]);
        let output = node.script(&script, &[]);
        assert!(output.status.success(), "{output:?}");
        desk
    }

    /// A file of the configuration directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The text of a file of the configuration directory; empty without one.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Adds lines to `.env`.
    pub fn set(&self, lines: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(".env");
        fs::write(&path, self.read(".env") + lines).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Runs `proxmox-mcp` without a terminal.
    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(built("proxmox-mcp"));
        command.args(args).env_clear().env("PROXMOX_MCP_CONFIG_DIR", self.folder.path());
        command.env("HOME", self.folder.path()).env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// What `proxmox-mcp` prints.
    ///
    /// # Panics
    /// When it fails.
    pub fn told(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The configuration as it stands now.
    pub fn config(&self) -> Config {
        let folder = self.folder.path().to_str().unwrap().to_owned();
        let args = BTreeMap::from([("PROXMOX_MCP_CONFIG_DIR".to_owned(), folder)]);
        config::load(&Sources::of_process(args)).unwrap().config
    }

    /// OpenSSH's own client with the key of this machine.
    pub fn ssh(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.folder.path());
        let key = self.path("ssh/id_ed25519");
        for option in [
            "BatchMode=yes".to_owned(),
            "StrictHostKeyChecking=no".to_owned(),
            "UserKnownHostsFile=/dev/null".to_owned(),
            "IdentitiesOnly=yes".to_owned(),
            "LogLevel=ERROR".to_owned(),
            format!("IdentityFile={}", key.display()),
            format!("Port={}", self.port),
        ] {
            command.args(["-o", &option]);
        }
        command
    }

    /// Runs `ssh ARGS` with this input.
    pub fn ssh_with(&self, args: &[&str], input: &str) -> Output {
        let mut command = self.ssh("ssh");
        command.args(args);
        finish(command, input.as_bytes())
    }
}
