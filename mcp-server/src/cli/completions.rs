//! `completions SHELL`: what a shell needs to complete this program's command line.

use clap::Args;
use clap_complete::Shell;

use super::{
    Global,
    out::{Exit, Ran},
};
use crate::Error;

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp completions bash > ~/.local/share/bash-completion/completions/proxmox-mcp
  proxmox-mcp completions zsh > \"${fpath[1]}/_proxmox-mcp\"
  proxmox-mcp completions fish > ~/.config/fish/completions/proxmox-mcp.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints the script; nothing is read or connected.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn run(&self, global: &Global) -> Ran {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), super::NAME, &mut script);
        let script = String::from_utf8(script)
            .map_err(|e| Error::internal(format!("the script is not text: {e}")))?;
        // For bash, clap_complete 4.6.12 spells the dash of the program's own name in two ways, and
        // then finds no command below it.
        let script = match self.shell {
            Shell::Bash => script.replace("proxmox__subcmd__mcp", "proxmox__mcp"),
            _ => script,
        };
        global.out().text(&script)?;
        Ok(Exit::Well)
    }
}
