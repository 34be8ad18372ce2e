//! A simulated Proxmox VE in this process, and a configuration that points at it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pve_sim::{Options, Seen, Sim};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::binaries::built;

/// A running simulator, the runtime that it lives on, and a private home with
/// the configuration of a server for it.
pub struct Estate {
    sim: Sim,
    home: TempDir,
    connection: Vec<(&'static str, String)>,
    _runtime: Runtime,
}

impl Estate {
    /// The sample estate.
    pub fn sample() -> Self {
        Self::start(Options::default())
    }

    /// An estate as given; the configuration uses the token `admin` and pins the certificate.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(options: Options) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let sim = runtime.block_on(Sim::start(options)).expect("the simulator starts");
        let (id, secret) = sim.token("admin").expect("a token");
        let connection = vec![
            ("PROXMOX_HOST", sim.addr().to_string()),
            ("PROXMOX_TOKEN_ID", id),
            ("PROXMOX_TOKEN_SECRET", secret),
            ("PROXMOX_TLS_FINGERPRINT", sim.fingerprint()),
        ];
        let home = tempfile::tempdir().expect("a folder");
        let estate = Self { sim, home, connection, _runtime: runtime };
        estate.configure(&[]);
        estate
    }

    /// Writes `.env` anew: the connection, and these variables over it. An empty value takes
    /// a variable out.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn configure(&self, variables: &[(&str, &str)]) {
        let dir = self.config_dir();
        fs::create_dir_all(&dir).expect("the configuration directory");
        private(&dir, 0o700);
        let given = |name: &str| variables.iter().any(|(n, _)| *n == name);
        let ours = self.connection.iter().map(|(n, v)| (*n, v.as_str())).filter(|(n, _)| !given(n));
        let text: String = ours
            .chain(variables.iter().copied().filter(|(_, v)| !v.is_empty()))
            .map(|(name, value)| format!("{name}={value}\n"))
            .collect();
        fs::write(dir.join(".env"), text).expect(".env");
        private(&dir.join(".env"), 0o600);
    }

    /// The secret of the token that the server uses.
    pub fn secret(&self) -> &str {
        self.connection.iter().find(|(n, _)| *n == "PROXMOX_TOKEN_SECRET").map_or("", |(_, v)| v)
    }

    /// The configuration directory.
    pub fn config_dir(&self) -> PathBuf {
        self.home.path().join("config")
    }

    /// Everything that the server wrote: state, audit log, configuration.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The simulator.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// `proxmox-mcp` with this estate's configuration and nothing else of the environment.
    pub fn command(&self) -> Command {
        let mut command = Command::new(built("proxmox-mcp"));
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env("XDG_STATE_HOME", self.home.path().join("state"))
            .env("PROXMOX_MCP_CONFIG_DIR", self.config_dir());
        command
    }

    /// The requests that arrived, as `METHOD target`.
    pub fn arrived(&self) -> Vec<String> {
        let line = |seen: Seen| format!("{} {}", seen.method, seen.target);
        self.sim.requests().into_iter().map(line).collect()
    }
}

#[cfg(unix)]
fn private(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
}

#[cfg(not(unix))]
fn private(_path: &Path, _mode: u32) {}
