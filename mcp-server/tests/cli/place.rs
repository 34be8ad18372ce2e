//! A private home for one test, and the program run in it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

use pve_sim::{Options, Sim};
use serde_json::Value;
use tokio::runtime::Runtime;

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_proxmox-mcp");

/// The sample estate, shared by the tests that only read.
pub fn sim() -> &'static Sim {
    static SIM: OnceLock<(Runtime, Sim)> = OnceLock::new();
    let (_, sim) = SIM.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let sim = runtime.block_on(Sim::start(Options::default())).unwrap();
        (runtime, sim)
    });
    sim
}

/// A home with a configuration directory, and the environment of a run.
pub struct Place {
    home: tempfile::TempDir,
    env: Vec<(String, String)>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Seen {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    /// Nothing is configured; the environment names the directory and no home.
    pub fn empty() -> Self {
        let home = tempfile::tempdir().unwrap();
        let place = Self { home, env: Vec::new() };
        let dir = place.config_dir().display().to_string();
        place.env("PROXMOX_MCP_CONFIG_DIR", &dir)
    }

    /// The sample estate is configured in `.env`.
    pub fn connected() -> Self {
        let (id, secret) = sim().token("admin").unwrap();
        let env = format!(
            "PROXMOX_HOST={}\nPROXMOX_TOKEN_ID={id}\nPROXMOX_TOKEN_SECRET={secret}\n\
             PROXMOX_TLS_FINGERPRINT={}\n",
            sim().addr(),
            sim().fingerprint()
        );
        Self::empty().file(".env", &env)
    }

    /// Writes a file into the configuration directory, for its owner alone.
    pub fn file(self, name: &str, text: &str) -> Self {
        let dir = self.config_dir();
        fs::create_dir_all(&dir).unwrap();
        mode(&dir, 0o700);
        fs::write(dir.join(name), text).unwrap();
        mode(&dir.join(name), 0o600);
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn config_dir(&self) -> PathBuf {
        self.home.path().join("config")
    }

    /// The program with this place's environment and nothing else.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args).env_clear().envs(self.env.iter().map(|(k, v)| (k, v)));
        command.stdin(Stdio::null()).current_dir(self.home.path());
        command
    }

    /// Runs it.
    pub fn run(&self, args: &[&str]) -> Seen {
        seen(self.command(args).output().unwrap())
    }

    /// Runs it with `--json`; standard output must be one JSON value.
    pub fn json(&self, args: &[&str]) -> (i32, Value) {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let seen = self.run(&args);
        let value = serde_json::from_str(&seen.stdout);
        (seen.code, value.unwrap_or_else(|e| panic!("{args:?}: {e}: {seen:?}")))
    }
}

/// Texts and exit code of a finished run; a panic of the program fails the test.
pub fn seen(output: Output) -> Seen {
    let seen = Seen {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    assert!(!seen.stderr.contains("panicked"), "{seen:?}");
    seen
}

#[cfg(unix)]
pub fn mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
pub fn mode(_: &Path, _: u32) {}

/// The commands that `--help` lists.
pub fn commands() -> Vec<String> {
    let help = Place::empty().run(&["--help"]).stdout;
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}
