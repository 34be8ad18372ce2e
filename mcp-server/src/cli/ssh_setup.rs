//! `ssh-setup`: this machine's key, the node's host key pinned, the address we come from.

use std::io::{self, IsTerminal, Write};

use clap::Args;
use serde_json::{Map, Value, json};

use super::{
    Global,
    out::{Exit, Failure, Out, Ran},
    setup,
};
use crate::{
    Code, Error, Result,
    config::{self, Config, HostPort},
    node::onboarding::{self, Found, Known},
    pve::NodeName,
};

/// Arguments of `ssh-setup`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp ssh-setup --append-env
  proxmox-mcp ssh-setup --node pve2 --host 192.0.2.12:2222 --append-env
  proxmox-mcp ssh-setup --host-key 'SHA256:…' --append-env   (read on the node's console)")]
pub struct SshSetup {
    /// A further node, by its name in the cluster; without it the host of PROXMOX_HOST
    #[arg(long, value_name = "NAME", requires = "host")]
    node: Option<String>,
    /// Where that node's sshd is: address or address:port
    #[arg(long, value_name = "ADDR", requires = "node")]
    host: Option<String>,
    /// Write the variables into .env; without it they are printed
    #[arg(long)]
    append_env: bool,
    /// Pin whatever key is shown
    #[arg(long, conflicts_with = "host_key")]
    yes: bool,
    /// Pin the shown key if it is this one: a key, or its SHA256 fingerprint
    #[arg(long, value_name = "KEY")]
    host_key: Option<String>,
}

impl SshSetup {
    /// Safe to repeat: what is there already stays.
    ///
    /// # Errors
    /// `config` and `ssh_failed`; `confirm_required` when nobody says that the key is the node's.
    pub fn run(&self, global: &Global) -> Ran {
        let loaded = setup::load(global.variables()?)?;
        let config = &loaded.config;
        let out = global.out();
        let found = onboarding::look(config, self.target(config)?)?;
        if !out.json {
            out.text(&facts(&found))?;
        }
        self.agree(&found, out)?;
        let variables = found.variables(config);
        let mut written = Vec::new();
        if found.pin(config)? {
            written.push(config.dirs.config.join("ssh/known_hosts"));
        }
        if self.append_env && !variables.is_empty() {
            let file = config.dirs.config.join(".env");
            onboarding::set_in_env(&file, &variables)?;
            written.push(file);
        }
        let files: Vec<_> = written.iter().map(|file| file.display().to_string()).collect();
        if out.json {
            out.value(&structured(&found, &variables, &files))?;
        } else {
            out.text(&self.rest(&variables, &files))?;
        }
        Ok(Exit::Well)
    }

    fn target(&self, config: &Config) -> Result<Option<(NodeName, HostPort)>> {
        let (Some(node), Some(host)) = (&self.node, &self.host) else { return Ok(None) };
        let pair = config::node_addresses(&format!("{node}={host}"), config.ssh.port);
        let mut pairs = pair.map_err(|e| Error { code: Code::InvalidArgument, ..e })?.into_iter();
        match (pairs.next(), pairs.next()) {
            (Some(pair), None) => Ok(Some(pair)),
            _ => Err(Error::argument("--node and --host name one node")),
        }
    }

    /// Finds out whether the shown key is the node's own.
    fn agree(&self, found: &Found, out: Out) -> Result<(), Failure> {
        if let Some(expected) = &self.host_key {
            found.must_be(expected)?;
        }
        match found.known() {
            Known::Pinned => return Ok(()),
            Known::Changed => return Err(found.changed().into()),
            Known::New if self.yes || self.host_key.is_some() => return Ok(()),
            Known::New => {}
        }
        if out.json || !io::stdin().is_terminal() {
            return Err(Error::new(
                Code::ConfirmRequired,
                "nobody said that the shown key is the node's own; nothing was pinned",
            )
            .hint("compare it on the node's console, then give it: --host-key SHA256:… (or --yes)")
            .with("fingerprint", found.shown.fingerprint())
            .into());
        }
        write!(io::stderr().lock(), "Does the node's console print the same? [yes/no] ")?;
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        if line.trim().eq_ignore_ascii_case("yes") {
            return Ok(());
        }
        Err(Error::new(Code::ApprovalDeclined, "the host key was not pinned")
            .hint("find out who answers at that address")
            .into())
    }

    fn rest(&self, variables: &[(&str, String)], files: &[String]) -> String {
        let mut text = String::new();
        for file in files {
            text.push_str(&format!("Written      {file}\n"));
        }
        if !variables.is_empty() {
            text.push_str(if self.append_env {
                "\n"
            } else {
                "\nPut this into .env (--append-env does):\n"
            });
            for (name, value) in variables {
                text.push_str(&format!("  {name}={value}\n"));
            }
        } else if files.is_empty() {
            text.push_str("Nothing to write: all of it is there.\n");
        }
        text.push_str("\nNext: proxmox-mcp ssh-guard\n");
        text
    }
}

fn facts(found: &Found) -> String {
    let made = if found.key_made { "made" } else { "is there" };
    let node = found.node.as_ref().map(|n| format!("{n} at ")).unwrap_or_default();
    let mut text = format!(
        "Key          {} ({made})\nNode         {node}{}\nHost key     {} {}\n\
         Seen from    {} (the node may see another address behind a NAT)\n",
        found.key.display(),
        found.address,
        found.shown.kind(),
        found.shown.fingerprint(),
        found.from,
    );
    if found.known() == Known::Pinned {
        text.push_str("             this host key is pinned already\n");
    } else {
        text.push_str(&format!(
            "\nOn the node's own console (not over the network) this prints the same:\n  \
             ssh-keygen -lf {}\n",
            found.shown.usual_file(),
        ));
    }
    text
}

fn structured(found: &Found, variables: &[(&str, String)], files: &[String]) -> Value {
    let env: Map<String, Value> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into())).collect();
    json!({
        "key": found.key.display().to_string(),
        "key_made": found.key_made,
        "node": found.node,
        "address": found.address.to_string(),
        "host_key": found.shown.to_string(),
        "fingerprint": found.shown.fingerprint(),
        "pinned_before": found.known() == Known::Pinned,
        "from": found.from.to_string(),
        "env": env,
        "written": files,
    })
}
