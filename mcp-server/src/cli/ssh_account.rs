//! `ssh-account`: prints the script that makes the account on a node, or undoes it.

use clap::Args;
use serde_json::json;

use super::{
    Global,
    out::{Exit, Ran},
    setup,
};
use crate::node::account::{self, Action};

/// Arguments of `ssh-account`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp ssh-account > account.sh     (read it, then)  ssh root@pve1 sh -s < account.sh
  proxmox-mcp ssh-account --remove | ssh root@pve1 sh -s")]
pub struct SshAccount {
    /// Another name than PROXMOX_SSH_USER
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The script takes everything away that it made
    #[arg(long)]
    remove: bool,
}

impl SshAccount {
    /// Only prints; nothing is sent to the node.
    ///
    /// # Errors
    /// `config` when `ssh-setup` was not run yet.
    pub fn run(&self, global: &Global) -> Ran {
        let loaded = setup::load(global.variables()?)?;
        let action = if self.remove { Action::Remove } else { Action::Make };
        let script = account::script(&loaded.config, self.name.as_deref(), action)?;
        let out = global.out();
        if out.json {
            out.value(&json!({ "script": script }))?;
        } else {
            out.text(&script)?;
        }
        Ok(Exit::Well)
    }
}
