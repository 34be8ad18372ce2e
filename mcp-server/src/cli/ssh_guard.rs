//! `ssh-guard`: the guard's package, its checksum, and the steps on the node.

use std::{fs, path::PathBuf};

use clap::Args;
use serde_json::json;

use super::{
    Global,
    out::{Exit, Ran},
    setup,
};
use crate::{Code, Error, config::Config, node::package::PACKAGE};

/// Arguments of `ssh-guard`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp ssh-guard --output .")]
pub struct SshGuard {
    /// Write the package into this directory
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl SshGuard {
    /// Safe to repeat: the same package is written over itself.
    ///
    /// # Errors
    /// `not_found` when this build carries no package, `config` when it cannot be written.
    pub fn run(&self, global: &Global) -> Ran {
        let Some(package) = PACKAGE else {
            return Err(Error::new(Code::NotFound, "this build carries no package of pve-guard")
                .hint(
                    "build it with scripts/package-guard and install that .deb on the node, or \
                     build proxmox-mcp with scripts/package, which puts it inside",
                )
                .into());
        };
        let loaded = setup::load(global.variables()?)?;
        let file = match &self.output {
            Some(folder) => {
                let file = folder.join(package.name);
                let fault = |e: std::io::Error| {
                    Error::new(Code::Config, format!("{} cannot be written: {e}", file.display()))
                };
                fs::create_dir_all(folder).map_err(fault)?;
                fs::write(&file, package.bytes).map_err(fault)?;
                Some(file)
            }
            None => None,
        };
        let (sha256, steps) = (package.sha256(), steps(&loaded.config, package.name));
        let out = global.out();
        if out.json {
            out.value(&json!({
                "package": package.name,
                "file": file.map(|file| file.display().to_string()),
                "bytes": package.bytes.len(),
                "sha256": sha256,
                "steps": steps,
            }))?;
            return Ok(Exit::Well);
        }
        let place = file.map_or_else(
            || format!("{} (inside this program; --output DIR writes it)", package.name),
            |file| file.display().to_string(),
        );
        let mut text = format!("Package      {place}\nSHA-256      {sha256}\n\nOn each node:\n");
        for (number, step) in (1..).zip(&steps) {
            text.push_str(&format!("  {number}. {step}\n"));
        }
        out.text(&text)?;
        Ok(Exit::Well)
    }
}

/// What a person does with it, each a line for a shell.
fn steps(config: &Config, name: &str) -> Vec<String> {
    let node = config.hosts.first().map_or("NODE", |host| host.host.as_str());
    let copy = if node.contains(':') { format!("[{node}]") } else { node.to_owned() };
    vec![
        format!("scp {name} root@{copy}:/root/"),
        format!("ssh root@{node} sha256sum /root/{name}"),
        format!("ssh root@{node} apt-get install -y /root/{name}"),
        format!("ssh root@{node} pve-guard policy check"),
        "proxmox-mcp ssh-account > account.sh   (read it)".to_owned(),
        format!("ssh root@{node} sh -s < account.sh"),
        "proxmox-mcp check".to_owned(),
    ]
}
