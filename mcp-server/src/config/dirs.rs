//! Where configuration and state live on each system.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use super::{Dirs, Sources};
use crate::{Code, Error, Result};

/// The variable that names the configuration directory on every system.
pub const CONFIG_DIR: &str = "PROXMOX_MCP_CONFIG_DIR";

/// The family of operating systems that decides where files live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux and everything else that follows the XDG base directories.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl System {
    /// The system that this program was built for.
    #[must_use]
    pub const fn current() -> Self {
        if cfg!(windows) {
            System::Windows
        } else if cfg!(target_os = "macos") {
            System::MacOs
        } else {
            System::Linux
        }
    }

    /// Whether a path names one place whatever the working directory is.
    fn is_absolute(self, path: &OsStr) -> bool {
        let text = path.as_encoded_bytes();
        match self {
            System::Linux | System::MacOs => text.starts_with(b"/"),
            System::Windows => {
                text.starts_with(b"\\\\") || matches!(text, [_, b':', b'\\' | b'/', ..])
            }
        }
    }

    /// Puts parts behind a path with the system's own separator.
    fn join(self, base: &OsStr, parts: &[&str]) -> PathBuf {
        let separator = if self == System::Windows { "\\" } else { "/" };
        let mut path = OsString::from(base);
        for part in parts {
            if !path.as_encoded_bytes().ends_with(separator.as_bytes()) {
                path.push(separator);
            }
            path.push(part);
        }
        path.into()
    }
}

/// Finds the directories; reads nothing but `sources`.
///
/// # Errors
/// `config` when neither `PROXMOX_MCP_CONFIG_DIR` nor the home directory is known.
pub fn directories(sources: &Sources) -> Result<Dirs> {
    let system = sources.system;
    if let Some(chosen) = sources.lookup(CONFIG_DIR) {
        let config = expand(sources, &chosen);
        return Ok(Dirs { state: system.join(config.as_os_str(), &["state"]), config });
    }
    let xdg = |name: &str, fallback: &[&str]| -> Result<PathBuf> {
        match sources.lookup(name).filter(|dir| system.is_absolute(dir)) {
            Some(dir) => Ok(system.join(&dir, &["proxmox-mcp"])),
            None => {
                let base = system.join(home(sources)?.as_os_str(), fallback);
                Ok(system.join(base.as_os_str(), &["proxmox-mcp"]))
            }
        }
    };
    match system {
        System::Linux => Ok(Dirs {
            config: xdg("XDG_CONFIG_HOME", &[".config"])?,
            state: xdg("XDG_STATE_HOME", &[".local", "state"])?,
        }),
        System::MacOs => {
            let home = home(sources)?;
            let library = |name| system.join(home.as_os_str(), &["Library", name, "proxmox-mcp"]);
            Ok(Dirs { config: library("Application Support"), state: library("Logs") })
        }
        System::Windows => {
            let config = system.join(home(sources)?.as_os_str(), &[".proxmox-mcp"]);
            Ok(Dirs { state: system.join(config.as_os_str(), &["state"]), config })
        }
    }
}

/// The home directory: the system's variable, else what the user database says.
fn home(sources: &Sources) -> Result<PathBuf> {
    let name = if sources.system == System::Windows { "USERPROFILE" } else { "HOME" };
    sources
        .lookup(name)
        .filter(|dir| sources.system.is_absolute(dir))
        .map(PathBuf::from)
        .or_else(|| sources.home.clone())
        .ok_or_else(|| {
            Error::new(
                Code::Config,
                format!("{name} is not set, so the configuration directory is not known"),
            )
            .hint(format!("set {CONFIG_DIR} to the directory that holds .env, or set {name}"))
            .with("variable", name)
        })
}

/// A directory as a person names it: `~/` is the home directory, and what is relative starts
/// at the working directory.
fn expand(sources: &Sources, text: &OsStr) -> PathBuf {
    if let Some(path) = below_home(sources, Path::new(text)) {
        return path;
    }
    match &sources.cwd {
        Some(cwd) if !sources.system.is_absolute(text) => cwd.join(text),
        _ => text.into(),
    }
}

/// A path that starts with `~/`, seen from the home directory.
pub(super) fn below_home(sources: &Sources, path: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix("~").ok()?;
    Some(home(sources).ok()?.join(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs(system: System, env: &[(&str, &str)], home: Option<&str>) -> Result<(String, String)> {
        let sources = Sources {
            system,
            env: env.iter().map(|(k, v)| ((*k).to_owned(), OsString::from(v))).collect(),
            home: home.map(PathBuf::from),
            cwd: Some("/work-dir".into()),
            ..Sources::empty()
        };
        directories(&sources)
            .map(|d| (d.config.display().to_string(), d.state.display().to_string()))
    }

    #[test]
    fn each_system_has_its_own_places() {
        use System::{Linux, MacOs, Windows};
        type Case<'a> = (System, &'a [(&'a str, &'a str)], &'a str, &'a str);
        let cases: &[Case<'_>] = &[
            (
                Linux,
                &[("HOME", "/home/eva")],
                "/home/eva/.config/proxmox-mcp",
                "/home/eva/.local/state/proxmox-mcp",
            ),
            (
                Linux,
                &[("HOME", "/home/eva"), ("XDG_CONFIG_HOME", "/x/c"), ("XDG_STATE_HOME", "/x/s/")],
                "/x/c/proxmox-mcp",
                "/x/s/proxmox-mcp",
            ),
            // The XDG rules: a relative or empty value counts as not set.
            (
                Linux,
                &[("HOME", "/home/eva"), ("XDG_CONFIG_HOME", "conf"), ("XDG_STATE_HOME", "")],
                "/home/eva/.config/proxmox-mcp",
                "/home/eva/.local/state/proxmox-mcp",
            ),
            (
                MacOs,
                &[("HOME", "/Users/eva"), ("XDG_CONFIG_HOME", "/x/c")],
                "/Users/eva/Library/Application Support/proxmox-mcp",
                "/Users/eva/Library/Logs/proxmox-mcp",
            ),
            (
                Windows,
                &[("USERPROFILE", r"C:\Users\eva"), ("HOME", "/home/eva")],
                r"C:\Users\eva\.proxmox-mcp",
                r"C:\Users\eva\.proxmox-mcp\state",
            ),
            (
                Windows,
                &[("UserProfile", r"\\server\home\eva")],
                r"\\server\home\eva\.proxmox-mcp",
                r"\\server\home\eva\.proxmox-mcp\state",
            ),
            (
                Windows,
                &[(CONFIG_DIR, r"D:\pve"), ("USERPROFILE", r"C:\Users\eva")],
                r"D:\pve",
                r"D:\pve\state",
            ),
            (
                Linux,
                &[(CONFIG_DIR, "/etc/pm"), ("XDG_STATE_HOME", "/x")],
                "/etc/pm",
                "/etc/pm/state",
            ),
            (MacOs, &[(CONFIG_DIR, "/etc/pm")], "/etc/pm", "/etc/pm/state"),
            (Linux, &[(CONFIG_DIR, "conf")], "/work-dir/conf", "/work-dir/conf/state"),
            (
                Linux,
                &[(CONFIG_DIR, "~/pm"), ("HOME", "/home/eva")],
                "/home/eva/pm",
                "/home/eva/pm/state",
            ),
        ];
        for (system, env, config, state) in cases {
            let found = dirs(*system, env, None).unwrap();
            assert_eq!(found, ((*config).to_owned(), (*state).to_owned()), "{system:?} {env:?}");
        }
    }

    #[test]
    fn without_home_the_user_database_helps_and_else_the_missing_variable_is_named() {
        let (config, _) = dirs(System::Linux, &[], Some("/root")).unwrap();
        assert_eq!(config, "/root/.config/proxmox-mcp");
        for (system, name) in
            [(System::Linux, "HOME"), (System::MacOs, "HOME"), (System::Windows, "USERPROFILE")]
        {
            let error = dirs(system, &[("PATH", "/bin")], None).unwrap_err();
            assert_eq!(error.code, Code::Config);
            let line = error.to_string();
            assert!(line.contains(name) && line.contains(CONFIG_DIR), "{line}");
            assert!(!line.contains('\n'));
        }
    }
}
