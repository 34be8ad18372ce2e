//! Programs in a container, through the guard of its node.

use std::time::{Duration, Instant};

use pve_guard::protocol::{PctExec, Verb};
use tokio_util::sync::CancellationToken;

use super::{Given, Ran, output::Stream};
use crate::{
    Code, Error, Result,
    node::GuardPermit,
    node::{Event, Io},
    pve::{ApiPath, Params, loose},
    render::clean,
    safety::deed::{Limits, Place, Run, Step},
    tools::{Ctx, Progress, deeds::Doing},
};

/// How often a caller hears what a command says.
const TELL: Duration = Duration::from_millis(250);
/// Longest text of one such message, in characters.
const TOLD: usize = 500;

/// Whether a guard can be reached at all.
///
/// # Errors
/// `ssh_failed` where SSH is not set up.
fn ready(ctx: Ctx<'_>) -> Result<()> {
    if ctx.app.config.ssh.is_set_up() {
        return Ok(());
    }
    Err(Error::new(
        Code::SshFailed,
        "commands in containers need SSH to pve-guard, which is not set up",
    )
    .hint("proxmox-mcp ssh-setup begins it; proxmox-mcp check says what is missing")
    .with("step", "reach"))
}

/// Runs a command, tells what it says as it says it, and ends it when the
/// caller no longer waits.
pub(in crate::tools::exec) async fn run(
    ctx: Ctx<'_>,
    place: &Place,
    doing: &Doing,
    run: &Run,
) -> Result<Ran> {
    let exec = PctExec {
        vmid: i64::from(place.vmid.get()),
        // A VMID can be given to another container at any time.
        hostname: (!place.name.is_empty()).then(|| place.name.clone()),
        argv: run.argv(false)?,
        timeout_s: run.timeout_s,
        max_output: run.max_output,
        stdin: run.stdin.is_some(),
    };
    let permit = doing.guard(Verb::PctExec(exec))?;
    let teller = Some(Teller::new(ctx));
    let (ran, cancelled) = send(ctx, permit, run.max_output, run.stdin.as_deref(), teller).await?;
    if cancelled {
        return Err(Error::new(
            Code::Cancelled,
            format!("the command in container {} was cancelled and has been ended", place.vmid),
        )
        .hint("what it did before stays done"));
    }
    let killed = ran.signal.is_some() || matches!(ran.exit_code, Some(129..=255));
    if killed && !ran.timed_out && is_down(ctx, place).await {
        return Ok(Ran { guest_down: Some("the guest went down"), ..ran });
    }
    Ok(ran)
}

/// Does a step.
pub(super) async fn step(
    ctx: Ctx<'_>,
    doing: &Doing,
    step: &Step<'_>,
    given: Given,
) -> Result<Ran> {
    let limits =
        Limits { timeout_s: given.timeout_s, max_output: given.room, stdin: given.stdin.is_some() };
    let permit = doing.leave().guard_step(step, limits)?;
    let (ran, cancelled) = send(ctx, permit, given.room, given.stdin.as_deref(), None).await?;
    if cancelled {
        return Err(Error::new(Code::Cancelled, format!("{} was cancelled", step.name())));
    }
    Ok(ran)
}

async fn send(
    ctx: Ctx<'_>,
    permit: GuardPermit,
    limit: u64,
    stdin: Option<&[u8]>,
    mut teller: Option<Teller<'_>>,
) -> Result<(Ran, bool)> {
    ready(ctx)?;
    let mut ran = Ran::default();
    let (out, err) = (&mut ran.stdout, &mut ran.stderr);
    let cancel = either(ctx);
    let _watch = cancel.clone().drop_guard();
    let io = Io {
        stdin: stdin.map(|bytes| Box::pin(bytes) as _),
        on_event: Some(Box::new(|event: Event<'_>| {
            let bytes = match event {
                Event::Stdout(bytes) => {
                    out.take(bytes, limit);
                    bytes
                }
                Event::Stderr(bytes) => {
                    err.take(bytes, limit);
                    bytes
                }
                Event::Progress(_) => return,
            };
            if let Some(teller) = &mut teller {
                teller.hear(bytes);
            }
        })),
        cancel: cancel.clone(),
    };
    let done = ctx.app.guard.pct_exec(permit, io).await?;
    let counted = |stream: &mut Stream, total: u64| {
        stream.total = total.max(stream.total);
        stream.cut = stream.total > stream.bytes.len() as u64;
    };
    counted(&mut ran.stdout, done.stdout_bytes);
    counted(&mut ran.stderr, done.stderr_bytes);
    ran.exit_code = done.exit_code.map(i64::from);
    ran.signal = done.signal.map(i64::from);
    ran.timed_out = done.timed_out;
    ran.duration_ms = done.duration_ms;
    ran.background = Some(done.background);
    ran.notes = done.notes;
    Ok((ran, done.cancelled))
}

/// Fires when the caller goes away or the server ends; its own end stops the watch.
fn either(ctx: Ctx<'_>) -> CancellationToken {
    let token = CancellationToken::new();
    let (mine, caller, closing) = (token.clone(), ctx.session.cancelled(), ctx.app.closing.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = caller.cancelled() => mine.cancel(),
            () = closing.cancelled() => mine.cancel(),
            () = mine.cancelled() => {}
        }
    });
    token
}

/// Whether the guest does not run any more.
pub(in crate::tools::exec) async fn is_down(ctx: Ctx<'_>, place: &Place) -> bool {
    let vmid = place.vmid.to_string();
    let kind = place.kind.as_str();
    let path = ApiPath::of(&["nodes", place.node.as_str(), kind, &vmid, "status", "current"]);
    let Ok(path) = path else { return false };
    match ctx.app.pve.get_fresh(&path, &Params::new()).await {
        Ok(now) => loose::str(&now, "status") == Some("stopped"),
        Err(_) => false,
    }
}

/// Passes lines on to the caller, not more often than it can read them.
struct Teller<'a> {
    ctx: Ctx<'a>,
    line: Vec<u8>,
    waiting: String,
    last: Option<Instant>,
}

impl<'a> Teller<'a> {
    fn new(ctx: Ctx<'a>) -> Self {
        Self { ctx, line: Vec::new(), waiting: String::new(), last: None }
    }

    fn hear(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            if self.line.len() < TOLD {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let text = String::from_utf8_lossy(&line);
                let text = text.trim_end();
                if !text.is_empty() {
                    if !self.waiting.is_empty() {
                        self.waiting.push('\n');
                    }
                    self.waiting.push_str(text);
                }
            }
        }
        let due = self.last.is_none_or(|last| last.elapsed() >= TELL);
        if self.waiting.is_empty() || !due {
            return;
        }
        self.last = Some(Instant::now());
        let said = std::mem::take(&mut self.waiting);
        let said = self.ctx.app.redactor().text(&said).unwrap_or(said);
        // The newest is what matters.
        let skip = said.chars().count().saturating_sub(TOLD);
        let said: String = said.chars().skip(skip).collect();
        self.ctx.session.progress(Progress { message: clean(&said).into_owned(), percent: None });
    }
}
