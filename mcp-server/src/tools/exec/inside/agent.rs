//! Programs in a VM, by its guest agent: started by one call, asked for by
//! others. The agent can neither be told to end a program nor stream.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Given, Ran, container::is_down, output::Stream};
use crate::{
    Code, Error, Result,
    pve::{GuestConfig, GuestKind, NodeName, Params, loose},
    safety::Permit,
    safety::deed::{Place, Run, Step, exec_params},
    tools::{
        Ctx, Progress,
        deeds::Doing,
        guests::agent::{is_frozen, switched_off},
    },
};

mod trouble;

pub(in crate::tools::exec) use trouble::{explain, may_be_missing};

/// Most bytes of input that the agent call takes.
pub(in crate::tools::exec) const MAX_INPUT: usize = 65_536;
/// Most bytes of one argument that a Linux kernel takes.
pub(in crate::tools::exec) const MAX_ARG: usize = 131_071;
/// Most bytes of a whole call as it is sent; a node takes 512 KiB.
const MAX_CALL: usize = 500_000;
/// Most bytes of output that the agent keeps.
const MAX_OUTPUT: u64 = 16 << 20;
/// How long an agent that has fallen silent is waited for: a guest on its way
/// down loses its agent first.
const SILENT: Duration = Duration::from_secs(30);

/// What an agent tells of itself.
#[derive(Debug, Default)]
pub(in crate::tools::exec) struct Agent {
    /// Whether Windows runs in the guest.
    pub windows: bool,
    /// Commands that are switched off.
    off: Vec<String>,
}

/// How a program that was started ended.
enum Ended {
    Exited(Value),
    Late,
    Down(&'static str),
}

impl Agent {
    /// Finds out whether a VM's agent can be worked with.
    ///
    /// # Errors
    /// `agent_unavailable` with the reason and what mends it.
    pub async fn ready(ctx: Ctx<'_>, place: &Place) -> Result<Self> {
        let guest = ctx.guest(place.vmid).await?;
        let get = async |below: &[&str]| ctx.get_below(&guest, below, Params::new()).await;
        let config = get(&["config"]).await?;
        if !GuestConfig::new(GuestKind::Qemu, &config).agent() {
            return Err(trouble::not_enabled(place));
        }
        let now = get(&["status", "current"]).await?;
        trouble::running(place, &now)?;
        let (info, os) = futures::join!(get(&["agent", "info"]), get(&["agent", "get-osinfo"]));
        let mut agent = Self::default();
        match info {
            Ok(info) => {
                let info = info.get("result").unwrap_or(&info);
                agent.off = switched_off(info);
                if is_frozen(&agent.off) {
                    return Err(trouble::frozen(place));
                }
            }
            // What the token may not ask it may still be allowed to do.
            Err(error) if error.code == Code::Forbidden => {}
            Err(error) => return Err(trouble::explain(place, error)),
        }
        if let Ok(os) = os {
            let os = os.get("result").unwrap_or(&os);
            agent.windows = loose::str(os, "id") == Some("mswindows");
        }
        Ok(agent)
    }

    /// Whether a command is switched on.
    ///
    /// # Errors
    /// `agent_unavailable`, naming the list that switches it off.
    pub fn may(&self, command: &str) -> Result<()> {
        match self.off.iter().any(|n| n == command) {
            true => Err(trouble::switched_off(command)),
            false => Ok(()),
        }
    }
}

/// Does a step.
///
/// # Errors
/// As [`run`].
pub(super) async fn step(
    ctx: Ctx<'_>,
    place: &Place,
    doing: &Doing,
    step: &Step<'_>,
    windows: bool,
    given: &Given,
) -> Result<Ran> {
    let pid = start(ctx, place, doing.leave().agent_step(step, windows)?).await?;
    follow(ctx, place, doing, pid, given.timeout_s, given.room).await
}

/// Runs a command.
///
/// # Errors
/// `agent_unavailable`, `outcome_unknown`, `cancelled`.
pub(in crate::tools::exec) async fn run(
    ctx: Ctx<'_>,
    place: &Place,
    doing: &Doing,
    run: &Run,
) -> Result<Ran> {
    let pid = match start(ctx, place, doing.leave().agent_exec()?).await {
        Err(error) if trouble::may_be_missing(&error) => {
            let program = run.argv(true)?.into_iter().next().unwrap_or_default();
            return Err(trouble::missing(place, &program, error));
        }
        other => other?,
    };
    follow(ctx, place, doing, pid, run.timeout_s, run.max_output).await
}

/// Whether the agent takes a command.
///
/// # Errors
/// `invalid_argument` with the limit.
pub(in crate::tools::exec) fn fits(run: &Run) -> Result<()> {
    within_limits(&run.argv(true)?, run.stdin.as_deref())
}

fn within_limits(argv: &[String], stdin: Option<&[u8]>) -> Result<()> {
    if let Some(stdin) = stdin.filter(|bytes| bytes.len() > MAX_INPUT) {
        return Err(Error::argument(format!(
            "`stdin` has {} bytes, and the guest agent takes {MAX_INPUT}",
            stdin.len()
        ))
        .hint("write it with pve_guest_file_write, and let the command read that file"));
    }
    let size = exec_params(argv, stdin).encoded().len();
    if size > MAX_CALL {
        return Err(Error::argument(format!(
            "command and input together are {size} bytes as they are sent, and a node takes {MAX_CALL}"
        ))
        .hint("write the larger part with pve_guest_file_write first"));
    }
    Ok(())
}

/// Starts a program; its number as the agent gives it.
async fn start(ctx: Ctx<'_>, place: &Place, permit: Permit) -> Result<i64> {
    let started = ctx.app.pve.send(permit).await.map_err(|e| trouble::explain(place, e))?;
    // An agent's own refusal can come with HTTP 200.
    if let Some(error) = started.get("result").and_then(|r| r.get("error")) {
        let why = loose::text(error, "desc").unwrap_or_else(|| error.to_string());
        return Err(trouble::explain(place, Error::new(Code::ApiError, why)));
    }
    loose::int(&started, "pid").ok_or_else(|| {
        Error::new(Code::OutcomeUnknown, "the agent did not say which process it started")
            .hint("look into the guest before the command is repeated")
    })
}

/// Follows a process until it ends or the time is over.
pub(in crate::tools::exec) async fn follow(
    ctx: Ctx<'_>,
    place: &Place,
    doing: &Doing,
    pid: i64,
    timeout_s: u64,
    max_output: u64,
) -> Result<Ran> {
    let from = Instant::now();
    let cancelled = ctx.session.cancelled();
    let ended = tokio::select! {
        ended = poll(ctx, place, doing, pid, from + Duration::from_secs(timeout_s)) => ended?,
        () = cancelled.cancelled() => return Err(trouble::left(place, pid, "was cancelled")),
        () = ctx.app.closing.cancelled() => {
            return Err(trouble::left(place, pid, "is not waited for any longer"));
        }
    };
    let duration_ms = u64::try_from(from.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut ran = Ran { pid: Some(pid), duration_ms, ..Ran::default() };
    match ended {
        Ended::Exited(status) => {
            ran.exit_code = loose::int(&status, "exitcode");
            ran.signal = loose::int(&status, "signal");
            let stream = |data: &str, cut: &str| {
                let mut stream = Stream::default();
                stream.take(&bytes(loose::str(&status, data).unwrap_or_default()), max_output);
                if loose::flag(&status, cut) {
                    stream.cut = true;
                    // It kept this much, and does not say how much there was.
                    stream.total = stream.total.max(MAX_OUTPUT);
                }
                stream
            };
            ran.stdout = stream("out-data", "out-truncated");
            ran.stderr = stream("err-data", "err-truncated");
        }
        Ended::Late => ran.timed_out = true,
        Ended::Down(how) => ran.guest_down = Some(how),
    }
    Ok(ran)
}

/// Output comes as one character of U+0000 to U+00FF for each byte.
fn bytes(text: &str) -> Vec<u8> {
    let narrow: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    // What is not of that form was decoded on the way.
    narrow.unwrap_or_else(|| text.as_bytes().to_vec())
}

async fn poll(
    ctx: Ctx<'_>,
    place: &Place,
    doing: &Doing,
    pid: i64,
    until: Instant,
) -> Result<Ended> {
    let mut node = place.node.clone();
    let mut pause = Duration::from_millis(40);
    let mut silent: Option<Instant> = None;
    let mut told = Instant::now();
    loop {
        let asked = doing.leave().agent_status(&node, pid)?;
        let trouble = match ctx.app.pve.send(asked).await {
            Ok(status) if loose::flag(&status, "exited") => return Ok(Ended::Exited(status)),
            Ok(_) => {
                silent = None;
                None
            }
            Err(error) if trouble::unknown_process(&error) => {
                return match silent {
                    Some(_) => Ok(Ended::Down("the guest went down and has started again")),
                    None => Err(trouble::forgotten(place, pid, &error)),
                };
            }
            Err(error) if error.code == Code::NotFound => {
                let now = ctx.guest_now(place.vmid).await?;
                if *now.node == *node.as_str() {
                    return Err(error);
                }
                node = NodeName::parse(&now.node)?;
                continue;
            }
            Err(error) if error.code == Code::AgentUnavailable => {
                if is_down(ctx, place).await {
                    return Ok(Ended::Down("the guest went down"));
                }
                let since = *silent.get_or_insert_with(Instant::now);
                let error = trouble::silent(place, pid, &error);
                if since.elapsed() >= SILENT {
                    return Err(error);
                }
                Some(error)
            }
            Err(error) if trouble::passes(&error) => Some(trouble::lost(place, pid, &error)),
            Err(error) => return Err(trouble::lost(place, pid, &error)),
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return trouble.map_or(Ok(Ended::Late), Err);
        }
        if told.elapsed() >= Duration::from_secs(5) {
            told = Instant::now();
            let message = format!("process {pid} still runs in VM {}", place.vmid);
            ctx.session.progress(Progress { message, percent: None });
        }
        tokio::time::sleep(pause.min(left)).await;
        pause = (pause * 3 / 2).min(Duration::from_secs(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Real code answers the bytes of `ü✓` as these characters.
    #[test]
    fn output_is_turned_back_into_its_bytes() {
        assert_eq!(bytes("Ã¼â\u{9c}\u{93}"), "ü✓".as_bytes());
        assert_eq!(bytes("\u{ff}\u{fe}\0bin"), b"\xff\xfe\0bin");
        assert_eq!(bytes("✓"), "✓".as_bytes());
    }

    /// F17, and the limits of the agent calls.
    #[test]
    fn what_the_agent_does_not_take_is_not_sent() {
        let argv = ["/bin/cat".to_owned()];
        assert!(within_limits(&argv, Some(&[b'x'; MAX_INPUT])).is_ok());
        assert!(within_limits(&argv, Some(&[0xff; MAX_INPUT])).is_ok());
        let error = within_limits(&argv, Some(&[b'x'; MAX_INPUT + 1])).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        assert!(error.hint.contains("pve_guest_file_write"), "{error}");
        let long = vec!["x".repeat(100_000); 6];
        assert!(within_limits(&long, None).unwrap_err().message.contains("together"));
    }
}
