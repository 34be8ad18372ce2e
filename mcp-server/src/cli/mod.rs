//! The command line: one file a command; arguments in, text and exit codes out.

mod approve;
mod audit;
mod call;
mod check;
mod completions;
mod config;
mod demo;
mod fingerprint;
mod init;
mod log;
mod man;
pub mod out;
mod pveum;
mod reference;
mod serve;
mod setup;
mod show;
mod ssh_account;
mod ssh_guard;
mod ssh_setup;
mod terminal;
mod tool_args;
mod tools;
mod views;

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::{Error, Result, config as configuration, safety::Flag};
use out::{Exit, Out, Ran};
use views::{VIEWS, View};

/// The program's name.
const NAME: &str = "proxmox-mcp";

/// Lets an AI assistant operate Proxmox VE, safely. Without a command it serves MCP on standard
/// input and output.
#[derive(Debug, Parser)]
#[command(
    name = NAME,
    version,
    max_term_width = 100,
    after_help = "Examples:
  proxmox-mcp demo                 a tour of a made-up estate, nothing to set up
  proxmox-mcp init                 makes the configuration, and says how to make a token
  proxmox-mcp check                tries everything out
  claude mcp add proxmox -- proxmox-mcp

Exit codes: 0 well, 1 failed or a node is offline, 2 the command line cannot be meant."
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The heading in `--help` of what every command takes.
const COMMON: &str = "Common options";

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// The configuration directory (PROXMOX_MCP_CONFIG_DIR)
    #[arg(long, global = true, value_name = "DIR", help_heading = COMMON)]
    config_dir: Option<PathBuf>,
    /// Sets a variable for this run; wins over the environment and .env
    #[arg(long = "set", global = true, value_name = "NAME=VALUE", help_heading = COMMON)]
    set: Vec<String>,
    /// Print the structured answer as JSON
    #[arg(long, global = true, help_heading = COMMON)]
    json: bool,
}

impl Global {
    /// The variables that the command line sets.
    ///
    /// # Errors
    /// `invalid_argument` for a name that is none, and for a secret.
    fn variables(&self) -> Result<BTreeMap<String, String>> {
        let mut variables = BTreeMap::new();
        for text in &self.set {
            let (name, value) = assignment(text)?;
            variables.insert(name.to_owned(), value.to_owned());
        }
        if let Some(dir) = &self.config_dir {
            let dir = dir.to_string_lossy().into_owned();
            variables.insert(configuration::CONFIG_DIR.to_owned(), dir);
        }
        Ok(variables)
    }

    fn out(&self) -> Out {
        Out::of_process(self.json)
    }
}

/// `NAME=VALUE` of `--set`. A value is never repeated in an error: it may be a secret that was
/// put where every process can read it.
fn assignment(text: &str) -> Result<(&str, &str)> {
    let bad = |message: String, hint: String| Err(Error::argument(message).hint(hint));
    let Some((name, value)) = text.split_once('=') else {
        return bad(
            "--set takes NAME=VALUE".to_owned(),
            "for example --set PROXMOX_MODE=write".to_owned(),
        );
    };
    let variable = configuration::variable(name);
    if variable.is_some_and(|v| v.secret) || name == "PROXMOX_TOKEN_ID" {
        let hint = format!("set {name} in .env or the environment");
        return bad(format!("{name} is not taken from the command line, others can see it"), hint);
    }
    if variable.is_none() && Flag::of_variable(name).is_none() {
        let near = configuration::nearest_variable(name);
        let hint = near
            .map_or("`proxmox-mcp config` lists them".to_owned(), |n| format!("did you mean {n}?"));
        return bad(format!("--set: {name} is not a variable of this server"), hint);
    }
    Ok((name, value))
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve MCP on standard input and output (also without a command)
    Serve(serve::Serve),
    /// A short tour of a made-up estate; nothing to set up
    Demo(demo::Demo),
    /// Make the configuration directory, and print the commands that make a token
    Init(init::Init),
    /// Where everything is, and which value came from where
    Config(config::ShowConfig),
    /// The node certificate's SHA-256, and the line for .env
    Fingerprint(fingerprint::Fingerprint),
    /// Try everything out: connection, TLS, token, privileges, clock, file modes
    Check(check::Check),
    /// Make this machine's SSH key, pin the node's, find out where we come from
    SshSetup(ssh_setup::SshSetup),
    /// The package of pve-guard for the nodes, and the steps there
    SshGuard(ssh_guard::SshGuard),
    /// Print the script that makes the account on a node
    SshAccount(ssh_account::SshAccount),
    /// The registered tools with their size in tokens
    Tools(tools::Tools),
    /// Call any tool
    Call(call::Call),
    /// What waits for a person: shows it whole, and takes yes or no
    Approve(approve::Approve),
    /// The audit log: tail, search, verify
    Audit(audit::Audit),
    /// Print what a shell needs to complete this command line
    Completions(completions::Completions),
    /// Print a page of the manual, or write them all
    Man(man::Man),
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    run(std::env::args_os()).into()
}

fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return usage(&error).unwrap_or(Exit::Usage),
    };
    let global = match Global::from_arg_matches(&matches) {
        Ok(global) => global,
        Err(error) => return usage(&error).unwrap_or(Exit::Usage),
    };
    let view = matches.subcommand().and_then(|(name, m)| Some((View::of(name)?, m)));
    let ran = match view {
        Some((view, matches)) => view.run(matches, &global),
        None => match Cli::from_arg_matches(&matches) {
            Ok(cli) => cli.run(),
            Err(error) => usage(&error),
        },
    };
    ran.unwrap_or_else(|failure| out::report(&failure, global.out()))
}

/// The whole command line, views included.
fn command() -> clap::Command {
    Cli::command().subcommands(VIEWS.iter().map(View::command))
}

impl Cli {
    fn run(self) -> Ran {
        let global = &self.global;
        match self.command {
            None => serve::Serve::default().run(global),
            Some(Command::Serve(c)) => c.run(global),
            Some(Command::Demo(c)) => c.run(global),
            Some(Command::Init(c)) => c.run(global),
            Some(Command::Config(c)) => c.run(global),
            Some(Command::Fingerprint(c)) => c.run(global),
            Some(Command::Check(c)) => c.run(global),
            Some(Command::SshSetup(c)) => c.run(global),
            Some(Command::SshGuard(c)) => c.run(global),
            Some(Command::SshAccount(c)) => c.run(global),
            Some(Command::Tools(c)) => c.run(global),
            Some(Command::Call(c)) => c.run(global),
            Some(Command::Approve(c)) => c.run(global),
            Some(Command::Audit(c)) => c.run(global),
            Some(Command::Completions(c)) => c.run(global),
            Some(Command::Man(c)) => c.run(global),
        }
    }
}

/// Prints what clap says: help and version on standard output, the rest on standard error.
fn usage(error: &clap::Error) -> Ran {
    let _ = error.print();
    Ok(if error.use_stderr() { Exit::Usage } else { Exit::Well })
}
