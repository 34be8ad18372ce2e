//! The tools: arguments become operations, and what comes back becomes an answer.
//! A tool never sends a change by itself.

mod access;
mod across;
mod args;
mod backup;
mod change;
pub mod context;
pub mod core;
mod deeds;
mod exec;
mod gather;
mod guests;
mod hidden;
mod network;
mod node;
mod outcome;
pub mod registry;
pub mod schema;
pub mod session;
mod storage;
pub mod validate;

pub use context::Ctx;
pub use registry::{Access, Group, Tool, registered};
pub use session::{Asked, Form, Progress, Round, Session, Silent};

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use serde_json::Value;

use crate::{
    Code, Error, Result,
    app::App,
    render::{Answer, clean_value},
    safety::Caller,
};

/// Calls a tool by name: the one way for the protocol and the command line.
///
/// # Errors
/// `invalid_argument` for an unknown tool or arguments that do not fit, and
/// whatever the tool itself answers.
pub async fn call(
    app: &Arc<App>,
    name: &str,
    arguments: Value,
    session: &dyn Session,
) -> Result<Answer> {
    let tool = find(app, name)?;
    let arguments = validate::arguments(tool.schema(), arguments)?;
    let run = (tool.run)(Ctx::new(app, session, tool.name), arguments);
    let began = std::time::Instant::now();
    let caught = AssertUnwindSafe(run).catch_unwind().await;
    let code = match &caught {
        Ok(Ok(_)) => "ok",
        Ok(Err(error)) => error.code.as_str(),
        Err(_) => "internal",
    };
    // Never the arguments: they can hold passwords.
    tracing::debug!(tool = tool.name, outcome = code, took = ?began.elapsed(), "called");
    let outcome = match caught {
        Ok(outcome) => outcome,
        Err(_) => Err(Error::internal(format!("{name} failed in a way it should not"))
            .hint("the server goes on; please report this with the log on standard error")),
    };
    match outcome {
        Ok(mut answer) => {
            app.redactor().value(None, &mut answer.structured);
            clean_value(&mut answer.structured);
            Ok(answer)
        }
        Err(mut error) => {
            if tool.is_read_only(&app.config) && error.code != Code::InvalidArgument {
                let client = session.client();
                let caller = Caller { tool: tool.name, client: &client, ..Caller::default() };
                app.gate.failed_read(&caller, &error);
            }
            app.redactor().error(&mut error);
            Err(error)
        }
    }
}

/// A registered tool.
///
/// # Errors
/// `invalid_argument` with the nearest name, or with what has to be set for a
/// tool that exists but is not registered now.
pub fn find(app: &App, name: &str) -> Result<&'static Tool> {
    if let Some(tool) = registered(&app.config).find(|t| t.name == name) {
        return Ok(tool);
    }
    if let Some(tool) = registry::all().iter().find(|t| t.name == name) {
        return Err(Error::new(Code::InvalidArgument, format!("tool {name} is not registered"))
            .hint(tool.needs(&app.config)));
    }
    let near = validate::nearest(name, registered(&app.config).map(|t| t.name));
    let error = Error::new(Code::InvalidArgument, format!("there is no tool {name:?}"));
    Err(match near {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint("tools/list names them all"),
    })
}
