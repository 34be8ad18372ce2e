//! `config`: where everything is, and which value came from where.

use std::{path::Path, process::Stdio};

use clap::Args;
use serde_json::{Value, json};

use super::{
    Global,
    out::{Exit, Ran},
    show,
};
use crate::{
    Code, Error,
    config::{Loaded, Origin, Sources, VARIABLES, directories, load},
    safety::Flag,
};

/// Arguments of `config`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp config
  proxmox-mcp config --open            opens the directory in the system's file manager
  proxmox-mcp config --json | jq '.variables[] | select(.origin != \"default\")'")]
pub struct ShowConfig {
    /// Open the configuration directory
    #[arg(long)]
    open: bool,
}

impl ShowConfig {
    /// Shows the configuration, secrets masked.
    ///
    /// # Errors
    /// `config` for one that cannot be loaded; where it is looked for is shown before.
    pub fn run(&self, global: &Global) -> Ran {
        let out = global.out();
        let sources = Sources::of_process(global.variables()?);
        let dirs = directories(&sources)?;
        if self.open {
            open(&dirs.config)?;
        }
        let loaded = match load(&sources) {
            Ok(loaded) => loaded,
            Err(error) if out.json => {
                return Err(error.with("directory", dirs.config.display().to_string()).into());
            }
            Err(error) => {
                out.text(&format!("directory: {}", dirs.config.display()))?;
                return Err(error.into());
            }
        };
        let value = describe(&loaded);
        if out.json {
            out.value(&value)?;
        } else {
            out.text(&show::for_person(out, "", &value))?;
        }
        Ok(Exit::Well)
    }
}

fn describe(loaded: &Loaded) -> Value {
    let config = &loaded.config;
    let file = |path: &Path, sha256: Option<&String>| {
        json!({
            "path": path.display().to_string(),
            "exists": path.exists(),
            "mode": mode(path),
            "sha256": sha256,
        })
    };
    let env = file(&config.dirs.config.join(".env"), None);
    let critical = file(&config.critical_file, config.critical_sha256.as_ref());
    let origin = |name: &str| loaded.origin.get(name).unwrap_or(&Origin::Default).to_string();
    let variables: Vec<Value> = VARIABLES
        .iter()
        .map(|v| {
            let value = loaded.written.get(v.name).map_or(v.default, String::as_str);
            json!({"name": v.name, "value": value, "origin": origin(v.name)})
        })
        .collect();
    let flags: Vec<Value> = Flag::ALL
        .iter()
        .map(|f| (f, loaded.origin.contains_key(f.variable())))
        .filter(|(f, set)| *set && config.flags.is_on(**f))
        .map(|(f, _)| json!({"name": f.variable(), "origin": origin(f.variable())}))
        .collect();
    json!({
        "directory": config.dirs.config.display().to_string(),
        "state": config.dirs.state.display().to_string(),
        "audit_log": config.audit.path.display().to_string(),
        "files": [env, critical],
        "variables": variables,
        "flags_on": flags,
        "warnings": loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// The permission bits as `ls` would count them; nothing where a system has none.
fn mode(path: &Path) -> Option<String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = path.metadata().ok()?.permissions().mode();
        Some(format!("{:04o}", mode & 0o7777))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Opens a directory with what the system has for it.
fn open(path: &Path) -> Result<(), Error> {
    let program = if cfg!(windows) {
        "explorer"
    } else if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let started = std::process::Command::new(program)
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.map(drop).map_err(|e| {
        Error::new(Code::Config, format!("{program} does not start: {e}"))
            .hint(format!("the directory is {}", path.display()))
    })
}
