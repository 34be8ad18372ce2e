//! `audit tail`, `audit search`, `audit verify`: the audit log.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{
    Global,
    out::{Exit, Ran},
    setup, show,
};
use crate::{
    Code, Error, Result,
    render::Answer,
    safety::audit::{self, Query, Record},
    tools::{core::audit_table, core::epoch},
};

/// Arguments of `audit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp audit tail
  proxmox-mcp audit search --vmid 100 --outcome refused
  proxmox-mcp audit verify")]
pub struct Audit {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The newest records
    #[command(after_help = "Example:\n  proxmox-mcp audit tail --limit 50")]
    Tail {
        /// How many
        #[arg(long, short = 'n', default_value_t = 20)]
        limit: usize,
    },
    /// Records that fit, newest first
    #[command(
        after_help = "Example:\n  proxmox-mcp audit search --since 2026-11-30T00:00:00Z --class CRITICAL"
    )]
    Search(Search),
    /// Whether the chain of records is whole; exit 1 when it is not
    #[command(after_help = "Example:\n  proxmox-mcp audit verify")]
    Verify,
}

#[derive(Debug, Args)]
struct Search {
    /// Part of anything in the record
    text: Option<String>,
    /// Not before: RFC 3339, or seconds since 1970
    #[arg(long)]
    since: Option<String>,
    /// The tool
    #[arg(long)]
    tool: Option<String>,
    /// READ, WRITE, DESTRUCTIVE or CRITICAL
    #[arg(long)]
    class: Option<String>,
    /// A guest that was touched
    #[arg(long)]
    vmid: Option<u32>,
    /// The step, as refused, dry_run, sending, sent, unknown
    #[arg(long)]
    outcome: Option<String>,
    /// How many
    #[arg(long, short = 'n', default_value_t = 100)]
    limit: usize,
}

impl Audit {
    /// Reads the log; nothing is written.
    ///
    /// # Errors
    /// `config`, and a log that cannot be read.
    pub fn run(&self, global: &Global) -> Ran {
        let loaded = setup::load(global.variables()?)?;
        let path = &loaded.config.audit.path;
        let out = global.out();
        let query = match &self.what {
            What::Tail { limit } => Query { limit: *limit, ..Query::default() },
            What::Search(search) => search.query()?,
            What::Verify => {
                let report = audit::verify(path).map_err(unreadable)?;
                let faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
                let whole = faults.is_empty();
                let value = json!({
                    "whole": whole, "records": report.records, "faults": faults,
                    "file": path.display().to_string(),
                });
                let heading =
                    if whole { "the audit log is whole" } else { "the audit log is NOT whole" };
                show::answer(out, &Answer::new(value).heading(heading))?;
                return Ok(if whole { Exit::Well } else { Exit::Failed });
            }
        };
        let found = audit::search(path, &query).map_err(unreadable)?;
        if out.json {
            out.value(&serde_json::to_value::<&[Record]>(&found).unwrap_or(Value::Null))?;
        } else {
            show::answer(out, &audit_table(&found))?;
        }
        Ok(Exit::Well)
    }
}

impl Search {
    fn query(&self) -> Result<Query> {
        Ok(Query {
            since: self.since.as_deref().map(epoch).transpose()?,
            tool: self.tool.clone(),
            class: self.class.clone(),
            vmid: self.vmid,
            outcome: self.outcome.clone(),
            text: self.text.clone(),
            limit: self.limit,
        })
    }
}

fn unreadable(error: std::io::Error) -> Error {
    Error::new(Code::Config, format!("the audit log cannot be read: {error}"))
        .hint("`proxmox-mcp config` says where it is")
}
