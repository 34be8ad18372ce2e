//! What decides the configuration, and the words for where a value came from.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf};

use super::System;

/// Everything that decides the configuration, beside the files that it names.
#[derive(Clone)]
pub struct Sources {
    /// Which system's directories hold.
    pub system: System,
    /// Variables set on the command line; they win over the environment.
    pub args: BTreeMap<String, String>,
    /// The environment.
    pub env: BTreeMap<String, OsString>,
    /// The home directory of the user database, where the environment names none.
    pub home: Option<PathBuf>,
    /// The working directory, for a relative `PROXMOX_MCP_CONFIG_DIR`.
    pub cwd: Option<PathBuf>,
}

impl Sources {
    /// No variables, no home.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            system: System::current(),
            args: BTreeMap::new(),
            env: BTreeMap::new(),
            home: None,
            cwd: None,
        }
    }

    /// Those of this process.
    #[must_use]
    pub fn of_process(args: BTreeMap<String, String>) -> Self {
        Self {
            system: System::current(),
            args,
            env: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .collect(),
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            cwd: std::env::current_dir().ok(),
        }
    }

    /// A variable of command line or environment that is not empty.
    pub(super) fn lookup(&self, name: &str) -> Option<OsString> {
        self.args
            .get(name)
            .map(OsString::from)
            .or_else(|| self.env_value(name).cloned())
            .filter(|value| !value.is_empty())
    }

    /// Names are compared without case on Windows, as the system does.
    pub(super) fn env_value(&self, name: &str) -> Option<&OsString> {
        self.env.get(name).or_else(|| {
            let mut all = self.env.iter().filter(|_| self.system == System::Windows);
            all.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        })
    }
}

impl std::fmt::Debug for Sources {
    /// Without values: they hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").field("system", &self.system).finish_non_exhaustive()
    }
}

/// Where a value came from; the greater one wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of `.env` or `critical.env`.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u32,
    },
    /// The environment.
    Environment,
    /// The command line.
    CommandLine,
}

impl Origin {
    pub(super) fn rank(&self) -> u8 {
        match self {
            Origin::Default => 0,
            Origin::File { .. } => 1,
            Origin::Environment => 2,
            Origin::CommandLine => 3,
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Environment => f.write_str("environment"),
            Origin::CommandLine => f.write_str("command line"),
        }
    }
}

/// Something that does not stop the start but should be mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What is the matter.
    pub message: String,
    /// What to do; may be empty.
    pub hint: String,
    /// Where.
    pub origin: Option<Origin>,
}

impl Warning {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: String::new(), origin: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    pub(super) fn at(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        f.write_str(&self.message)?;
        if !self.hint.is_empty() {
            write!(f, "; {}", self.hint)?;
        }
        Ok(())
    }
}
