//! What most commands begin with: configuration, logs, the application, a runtime.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use serde_json::Value;

use super::{log, out::say, terminal::Terminal};
use crate::{
    Code, Error, Result,
    app::App,
    config::{self, Config, Loaded, Sources},
    render::Answer,
    tools,
};

/// Loads the configuration and starts logging; what should be mended is told once.
///
/// # Errors
/// `config`.
pub fn load(args: BTreeMap<String, String>) -> Result<Loaded> {
    let loaded = config::load(&Sources::of_process(args))?;
    log::start(&loaded.config, loaded.origin.contains_key("LOG_LEVEL"), true);
    for warning in &loaded.warnings {
        say(&format!("warning: {warning}"));
    }
    Ok(loaded)
}

/// The application of a command that talks to the node.
///
/// # Errors
/// `config`, also when there is nothing to talk to.
pub fn app(args: BTreeMap<String, String>) -> Result<Arc<App>> {
    let loaded = load(args)?;
    complete(&loaded.config)?;
    App::new(loaded.config)
}

/// Names the first variable without which nothing can be reached.
///
/// # Errors
/// `config`.
pub fn complete(config: &Config) -> Result<()> {
    let missing = if config.hosts.is_empty() {
        "PROXMOX_HOST"
    } else if config.token.is_none() {
        "PROXMOX_TOKEN_ID"
    } else {
        return Ok(());
    };
    let file = config.dirs.config.join(".env");
    let hint = if file.exists() {
        format!("set it in {} or in the environment", file.display())
    } else {
        format!(
            "`proxmox-mcp init` writes {} and says how to make a token; `proxmox-mcp demo` needs \
             neither",
            file.display()
        )
    };
    Err(Error::new(Code::Config, format!("{missing} is not set"))
        .hint(hint)
        .with("variable", missing))
}

/// Runs a future on this thread alone: a command makes one or a few calls and ends.
///
/// # Errors
/// `internal` when the system refuses a runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::internal(format!("the runtime does not start: {e}")))?;
    Ok(runtime.block_on(future))
}

/// Calls one tool for a person at a terminal.
///
/// # Errors
/// What the configuration or the tool says.
pub fn call(app: &Arc<App>, tool: &str, arguments: Value) -> Result<Answer> {
    block_on(async {
        let session = Terminal::new();
        tools::call(app, tool, arguments, &session).await
    })?
}
