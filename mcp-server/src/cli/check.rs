//! `check`: tries everything out, and says what to do where something is wrong.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Value, json};

use super::{
    Global, log,
    out::{Exit, Out, Ran},
    setup, show,
};
use crate::{
    Error,
    app::App,
    config::{self, Config, Sources},
    node,
};

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp check
  proxmox-mcp check --json | jq '.steps[] | select(.ok | not)'")]
pub struct Check {}

impl Check {
    /// Takes each step; the exit code is 1 when one is not well.
    ///
    /// # Errors
    /// When standard output cannot be written; what is wrong is in the answer.
    pub fn run(&self, global: &Global) -> Ran {
        let out = global.out();
        let steps = steps(global.variables()?);
        let ok = steps.iter().all(is_well);
        if out.json {
            out.value(&json!({"ok": ok, "steps": steps}))?;
        } else {
            out.text(&text(out, &steps))?;
        }
        Ok(if ok { Exit::Well } else { Exit::Failed })
    }
}

fn steps(args: BTreeMap<String, String>) -> Vec<Value> {
    let loaded = match config::load(&Sources::of_process(args)) {
        Ok(loaded) => loaded,
        Err(error) => return vec![failed("configuration", &error)],
    };
    log::start(&loaded.config, loaded.origin.contains_key("LOG_LEVEL"), true);
    let mut steps: Vec<Value> = loaded
        .warnings
        .iter()
        .map(|w| {
            let detail = match &w.origin {
                Some(origin) => format!("{origin}: {}", w.message),
                None => w.message.clone(),
            };
            json!({"step": "configuration", "ok": false, "detail": detail, "hint": w.hint})
        })
        .collect();
    if let Err(error) = setup::complete(&loaded.config) {
        steps.push(failed("configuration", &error));
        return steps;
    }
    if steps.is_empty() {
        let directory = loaded.config.dirs.config.display();
        steps.push(
            json!({"step": "configuration", "ok": true, "detail": format!("in {directory}")}),
        );
    }
    match connection(loaded.config) {
        Ok(more) => steps.extend(more),
        Err(error) => steps.push(failed("connection", &error)),
    }
    steps
}

/// The steps of the tool that looks at the way to Proxmox.
fn connection(config: Config) -> Result<Vec<Value>, Error> {
    let app = App::new(config)?;
    let answer = setup::call(&app, "pve_check_connection", Value::Null)?;
    let mut steps =
        answer.structured.get("steps").and_then(Value::as_array).cloned().unwrap_or_default();
    if app.config.ssh.is_set_up() {
        let way = setup::block_on(node::check(&app.config))?;
        steps.extend(way.into_iter().map(|step| {
            json!({"step": step.name, "ok": step.ok, "detail": step.detail, "hint": step.hint})
        }));
    } else {
        let detail = "not set up; only node upgrades and commands in containers need it";
        steps.push(json!({"step": "ssh", "ok": true, "detail": detail}));
    }
    Ok(steps)
}

fn failed(step: &str, error: &Error) -> Value {
    json!({
        "step": step, "ok": false, "code": error.code.as_str(),
        "detail": error.message, "hint": error.advice(),
    })
}

fn is_well(step: &Value) -> bool {
    step.get("ok").and_then(Value::as_bool) == Some(true)
}

fn text(out: Out, steps: &[Value]) -> String {
    let line = |step: &Value| {
        let part = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default();
        let mark = if is_well(step) { "ok" } else { "FAIL" };
        let what = format!("{:<14}{}", part("step"), part("detail"));
        show::finding(out, mark, &what, "", part("hint"))
    };
    steps.iter().map(line).collect()
}
