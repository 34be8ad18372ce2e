//! `init`: the configuration directory, and how to make a token.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write},
    path::Path,
};

use clap::Args;
use serde_json::json;

use super::{
    Global,
    out::{Exit, Ran, say},
    pveum,
};
use crate::{
    Code, Error, Result,
    config::{self, Sources, critical_file, directories, env_file},
};

/// Arguments of `init`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp init
  proxmox-mcp init --enable-all        every category of CRITICAL changes may pass the gate")]
pub struct Init {
    /// Write critical.env with every flag on, instead of off
    #[arg(long)]
    enable_all: bool,
}

impl Init {
    /// Writes what is not there yet, and prints the commands for the node.
    ///
    /// # Errors
    /// `config` when the directory or a file cannot be made.
    pub fn run(&self, global: &Global) -> Ran {
        let sources = Sources::of_process(global.variables()?);
        let dirs = directories(&sources)?;
        make_directory(&dirs.config)?;
        let files = [(".env", env_file()), ("critical.env", critical_file(self.enable_all))];
        let mut lines = Vec::new();
        let mut made = Vec::new();
        for (name, text) in files {
            let path = dirs.config.join(name);
            let written = write_new(&path, &text)?;
            let what = if written { "written" } else { "was there, is kept as it is" };
            lines.push(format!("{}: {what}", path.display()));
            made.push(json!({"path": path.display().to_string(), "written": written}));
        }
        let out = global.out();
        if out.json {
            out.value(&json!({
                "directory": dirs.config.display().to_string(),
                "files": made,
                "commands": pveum::as_json(),
            }))?;
        } else {
            lines.push(String::new());
            lines.push(pveum::text());
            out.text(&lines.join("\n"))?;
        }
        // What was there before may be wrong, or readable by others.
        match config::load(&sources) {
            Ok(loaded) => loaded.warnings.iter().for_each(|w| say(&format!("warning: {w}"))),
            Err(error) => return Err(error.into()),
        }
        Ok(Exit::Well)
    }
}

/// Makes the directory for its owner alone; one that is there stays as it is.
fn make_directory(path: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|e| cannot("made", path, &e))
}

/// Writes a file that is not there, for its owner alone; says whether it did.
fn write_new(path: &Path, text: &str) -> Result<bool> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(mut file) => {
            file.write_all(text.as_bytes()).map_err(|e| cannot("written", path, &e))?;
            Ok(true)
        }
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(cannot("made", path, &e)),
    }
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::Config, format!("{} cannot be {what}: {error}", path.display()))
        .hint("name another directory with --config-dir, or mend this one")
        .with("file", path.display().to_string())
}
