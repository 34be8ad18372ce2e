//! Commands in containers, by the guard of the node where the container is.

use std::io::Cursor;

use pve_guard::protocol::{PctExec, Verb};
use serde_json::Map;

use super::inside::{Ended, Job};
use crate::{
    Error, Result,
    node::{Event, Io},
    safety::deed::Place,
    tools::{Ctx, Progress, deeds::Doing},
};

/// Longest line that is told while a command runs, in characters.
const LINE: usize = 200;

pub(super) async fn run(ctx: Ctx<'_>, doing: &Doing, place: &Place, job: Job) -> Result<Ended> {
    if !ctx.app.config.ssh.is_set_up() {
        return Err(Error::new(
            crate::Code::SshFailed,
            "commands in containers need SSH to pve-guard, which is not set up",
        )
        .hint("proxmox-mcp ssh-setup begins it; proxmox-mcp check says what is missing")
        .with("step", "reach"));
    }
    let exec = PctExec {
        vmid: i64::from(place.vmid.get()),
        hostname: (!place.name.is_empty()).then(|| place.name.clone()),
        argv: job.argv,
        timeout_s: job.timeout_s,
        max_output: job.max_output,
        stdin: job.stdin.is_some(),
    };
    let permit = doing.guard(Verb::PctExec(exec))?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let done = {
        let session = ctx.session;
        let mut open = String::new();
        let io = Io {
            stdin: job.stdin.map(|bytes| Box::pin(Cursor::new(bytes)) as _),
            on_event: Some(Box::new(|event| {
                let bytes = match event {
                    Event::Stdout(bytes) => {
                        stdout.extend_from_slice(bytes);
                        bytes
                    }
                    Event::Stderr(bytes) => {
                        stderr.extend_from_slice(bytes);
                        bytes
                    }
                    Event::Progress(_) => return,
                };
                if job.tells {
                    open.push_str(&String::from_utf8_lossy(bytes));
                    while let Some((line, rest)) = open.split_once('\n') {
                        let message: String = line.chars().take(LINE).collect();
                        let rest = rest.to_owned();
                        session.progress(Progress { message, percent: None });
                        open = rest;
                    }
                }
            })),
            cancel: ctx.session.cancelled(),
        };
        ctx.app.guard.pct_exec(permit, io).await?
    };
    let mut more = Map::new();
    if done.cancelled {
        more.insert("cancelled".into(), true.into());
    }
    if done.background > 0 {
        more.insert("background".into(), done.background.into());
    }
    if !done.notes.is_empty() {
        more.insert("notes".into(), done.notes.clone().into());
    }
    Ok(Ended {
        exit_code: done.exit_code.map(i64::from),
        signal: done.signal.map(i64::from),
        stdout,
        stderr,
        stdout_bytes: done.stdout_bytes,
        stderr_bytes: done.stderr_bytes,
        timed_out: done.timed_out,
        truncated: done.truncated,
        duration_ms: done.duration_ms,
        more,
    })
}
