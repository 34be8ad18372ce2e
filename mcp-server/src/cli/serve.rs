//! `serve`: the MCP server on standard input and output.

use std::collections::BTreeMap;

use clap::Args;

use super::{
    Global, log,
    out::{Exit, Failure, Ran},
    setup,
};
use crate::{
    Error, Result,
    app::App,
    config::{self, Config, Sources},
    mcp,
};

/// Arguments of `serve`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  proxmox-mcp serve
  proxmox-mcp serve --demo                 on a made-up estate, nothing to set up
  claude mcp add proxmox -- proxmox-mcp    connects Claude Code")]
pub struct Serve {
    /// Serve a made-up estate that lives in this process
    #[arg(long)]
    demo: bool,
}

impl Serve {
    /// Serves until the client leaves or a signal arrives. Standard output is the protocol's.
    ///
    /// # Errors
    /// `config`, before anything is served.
    pub fn run(&self, global: &Global) -> Ran {
        if self.demo {
            return super::demo::serve(global.variables()?).map_err(Failure::Error);
        }
        let config = load(global.variables()?)?;
        let app = App::new(config)?;
        runtime()?.block_on(mcp::serve_stdio(app))?;
        Ok(Exit::Well)
    }
}

/// Loads a configuration that can serve, and starts logging.
pub(super) fn load(args: BTreeMap<String, String>) -> Result<Config> {
    let loaded = config::load(&Sources::of_process(args))?;
    log::start(&loaded.config, loaded.origin.contains_key("LOG_LEVEL"), false);
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    setup::complete(&loaded.config)?;
    Ok(loaded.config)
}

/// Two threads: one call's parsing does not hold up another's, and more would only cost memory.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::internal(format!("the runtime does not start: {e}")))
}
