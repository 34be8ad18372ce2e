//! `approve`: a person answers what waits, outside the conversation.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use serde_json::json;

use super::{
    Global,
    out::{Exit, Ran, say},
    setup,
};
use crate::{
    Code, Error, Result,
    safety::approval::{Approvals, Request},
};

/// Arguments of `approve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp approve            lists what waits, and asks about each
  proxmox-mcp approve 1f2e3d4c   shows one, and asks")]
pub struct Approve {
    /// The request's id
    id: Option<String>,
}

impl Approve {
    /// Shows each request whole and takes yes or no from the terminal.
    ///
    /// # Errors
    /// `config` where the state directory cannot be read, `not_found` for an id
    /// that does not wait, `approval_required` where no person can answer.
    pub fn run(&self, global: &Global) -> Ran {
        let loaded = setup::load(global.variables()?)?;
        let approvals = Approvals::new(&loaded.config.dirs.state);
        let mut waiting = approvals.waiting()?;
        if let Some(id) = &self.id {
            waiting.retain(|r| r.id == *id);
            if waiting.is_empty() {
                return Err(Error::new(
                    Code::NotFound,
                    format!("nothing with the id {id:?} waits"),
                )
                .hint("`proxmox-mcp approve` lists what waits; a request waits for 10 minutes")
                .into());
            }
        }
        let out = global.out();
        if out.json {
            let rows: Vec<_> = waiting
                .iter()
                .map(|r| json!({"id": r.id, "asked": r.asked.to_string(), "client": r.client, "text": r.text}))
                .collect();
            out.value(&json!({"waiting": rows}))?;
            return Ok(Exit::Well);
        }
        if waiting.is_empty() {
            out.text("nothing waits for approval")?;
            return Ok(Exit::Well);
        }
        for request in &waiting {
            out.text(&shown(request))?;
        }
        if !io::stdin().is_terminal() {
            return Err(Error::new(
                Code::ApprovalRequired,
                "only a person at a terminal can answer",
            )
            .hint("run `proxmox-mcp approve` in a terminal of your own, not through a program")
            .into());
        }
        for request in waiting {
            answer(&approvals, &request)?;
        }
        Ok(Exit::Well)
    }
}

fn shown(request: &Request) -> String {
    format!(
        "── request {} · asked {} by {} ──\n{}\n",
        request.id, request.asked, request.client, request.text
    )
}

/// Asks until the answer is plain; no answer leaves the request waiting.
fn answer(approvals: &Approvals, request: &Request) -> Result<()> {
    let mut stdin = io::stdin().lock();
    loop {
        let mut stderr = io::stderr();
        let _ = write!(stderr, "Send request {}? [yes/no] ", request.id);
        let _ = stderr.flush();
        let mut line = String::new();
        if stdin.read_line(&mut line).unwrap_or(0) == 0 {
            return Ok(());
        }
        let yes = match line.trim().to_ascii_lowercase().as_str() {
            "yes" | "y" => true,
            "no" | "n" => false,
            _ => continue,
        };
        approvals.decide(&request.id, yes, &account())?;
        say(if yes {
            "approved: the same call, repeated within 10 minutes, runs once"
        } else {
            "declined: nothing is sent"
        });
        return Ok(());
    }
}

/// Who answers, for the record.
fn account() -> String {
    ["SUDO_USER", "USER", "LOGNAME", "USERNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
        .unwrap_or_else(|| "unknown".to_owned())
}
