//! Commands in VMs, by the QEMU guest agent. The agent starts a program and
//! tells how it ended; it has no time-out and cannot end what it started.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::inside::{Ended, Job};
use crate::{
    Code, Error, Result,
    pve::{ApiPath, Params, loose},
    safety::deed::{Place, as_code_points},
    tools::{Ctx, deeds::Doing},
};

/// Most characters of `input-data`, as the API's schema says.
pub(super) const MAX_INPUT: usize = 65_536;
/// Most bytes of all arguments together: a body holds 512 KiB, each byte up to three of it.
const MAX_ARGV: usize = 128 * 1024;
/// First and longest pause between two questions.
const FIRST: Duration = Duration::from_millis(30);
const LONGEST: Duration = Duration::from_secs(1);

pub(super) async fn run(ctx: Ctx<'_>, doing: &Doing, place: &Place, job: Job) -> Result<Ended> {
    let input = job.stdin.as_deref().map(as_code_points);
    if input.as_ref().is_some_and(|text| text.chars().count() > MAX_INPUT) {
        return Err(Error::argument(format!("the agent takes at most {MAX_INPUT} bytes of input"))
            .hint("write it to a file with pve_guest_file_write first"));
    }
    if job.argv.iter().map(String::len).sum::<usize>() > MAX_ARGV {
        return Err(Error::argument(format!("the command is longer than {MAX_ARGV} bytes"))
            .hint("write it to a file with pve_guest_file_write first"));
    }
    let params = Params::new().with_many("command", job.argv.iter()).with_some("input-data", input);
    let from = Instant::now();
    let permit = doing.agent("exec", params)?;
    let started = ctx.app.pve.send(permit).await.map_err(|e| explained(e, place))?;
    let pid = loose::uint(&started, "pid")
        .ok_or_else(|| Error::new(Code::BadAnswer, "the agent told no process id"))?;
    let limit = Duration::from_secs(job.timeout_s);
    let cancelled = ctx.session.cancelled();
    let mut pause = FIRST;
    loop {
        let status = ctx.app.pve.send(doing.agent_status(pid)?).await;
        match status {
            Ok(status) if loose::flag(&status, "exited") => {
                return Ok(ended(&status, job.max_output, from));
            }
            Ok(_) => {}
            // A guest that shuts down takes its agent along.
            Err(error) if silent(&error) && !still_runs(ctx, place).await => {
                return Ok(gone(pid, from, &error));
            }
            Err(error) => {
                let message = format!("how the command ended cannot be known: {}", error.message);
                return Err(Error::new(Code::OutcomeUnknown, message)
                    .hint("the command was started; look in the guest at what it did")
                    .with("vmid", place.vmid.get())
                    .with("pid", pid));
            }
        }
        let stopped = cancelled.is_cancelled();
        if stopped || from.elapsed() >= limit {
            let mut more = Map::new();
            more.insert("pid".into(), pid.into());
            more.insert("still_running".into(), true.into());
            if stopped {
                more.insert("cancelled".into(), true.into());
            }
            let note = "the guest agent cannot end what it started: it goes on in the guest";
            more.insert("notes".into(), vec![note].into());
            let duration_ms = millis(from);
            return Ok(Ended { timed_out: !stopped, duration_ms, more, ..Ended::default() });
        }
        tokio::select! {
            () = tokio::time::sleep(pause.min(limit.saturating_sub(from.elapsed()))) => {}
            () = cancelled.cancelled() => {}
        }
        pause = (pause * 2).min(LONGEST);
    }
}

/// Output as the API gives it: each byte one character.
fn bytes(status: &Value, name: &str) -> Vec<u8> {
    let text = loose::text(status, name).unwrap_or_default();
    if text.chars().any(|c| u32::from(c) > 0xff) {
        return text.into_bytes();
    }
    text.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

fn ended(status: &Value, max_output: u64, from: Instant) -> Ended {
    let most = usize::try_from(max_output).unwrap_or(usize::MAX);
    let (mut stdout, mut stderr) = (bytes(status, "out-data"), bytes(status, "err-data"));
    let (stdout_bytes, stderr_bytes) = (stdout.len() as u64, stderr.len() as u64);
    let cut = stdout.len() > most || stderr.len() > most;
    stdout.truncate(most);
    stderr.truncate(most);
    let number = |name: &str| loose::uint(status, name).and_then(|n| i64::try_from(n).ok());
    Ended {
        exit_code: number("exitcode"),
        signal: number("signal"),
        stdout,
        stderr,
        stdout_bytes,
        stderr_bytes,
        timed_out: false,
        truncated: cut
            || loose::flag(status, "out-truncated")
            || loose::flag(status, "err-truncated"),
        duration_ms: millis(from),
        more: Map::new(),
    }
}

/// Whether nobody answered for the agent.
fn silent(error: &Error) -> bool {
    error.message.contains("is not running") || error.message.contains("got timeout")
}

/// Whether the VM runs, as its node says now. What cannot be asked counts as running.
async fn still_runs(ctx: Ctx<'_>, place: &Place) -> bool {
    let vmid = place.vmid.to_string();
    let segments = ["nodes", place.node.as_str(), "qemu", &vmid, "status", "current"];
    let Ok(path) = ApiPath::of(&segments) else { return true };
    let status = ctx.app.pve.get_fresh(&path, &Params::new()).await;
    status.map_or(true, |status| loose::str(&status, "status") != Some("stopped"))
}

fn gone(pid: u64, from: Instant, error: &Error) -> Ended {
    let mut more = Map::new();
    more.insert("pid".into(), pid.into());
    more.insert("guest_went_down".into(), true.into());
    let note = format!("the guest went down while the command ran: {}", error.message);
    more.insert("notes".into(), vec![note].into());
    Ended { duration_ms: millis(from), more, ..Ended::default() }
}

fn millis(from: Instant) -> u64 {
    u64::try_from(from.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Why the agent did not do it, and what mends it.
pub(super) fn explained(error: Error, place: &Place) -> Error {
    let message = error.message.as_str();
    // Whether it was started cannot be told by what the error says.
    if error.code == Code::OutcomeUnknown || message.contains("got timeout") {
        return Error::new(Code::OutcomeUnknown, error.message.clone())
            .hint("it may have been started; a program that the guest does not have shows like this as well. Look in the guest before sending it again")
            .with("vmid", place.vmid.get());
    }
    let (what, hint) = if message.contains("No QEMU guest agent configured") {
        (
            "the agent is not enabled for this VM",
            "set agent to 1 with pve_guest_config_set, stop and start the VM, and install qemu-guest-agent in it",
        )
    } else if message.contains("guest agent is not running") {
        (
            "the agent in the VM does not answer",
            "install and start qemu-guest-agent in the guest; pve_vm_agent_status tells more",
        )
    } else if message.contains("has been disabled")
        || message.contains("CommandNotFound")
        || message.contains("not found: guest-exec")
    {
        (
            "the agent in the VM does not permit commands",
            "on RHEL and its relatives take guest-exec and guest-exec-status out of BLACKLIST_RPC (or add them to FILTER_RPC_ARGS) in /etc/sysconfig/qemu-ga, and restart qemu-guest-agent",
        )
    } else if message.contains("is not running") {
        ("the VM does not run", "start it with pve_guest_start")
    } else if message.contains("No such file or directory") {
        ("the VM could not start the program", "is it installed, and its path right?")
    } else {
        return error;
    };
    Error::new(Code::AgentUnavailable, format!("{what}: {message}"))
        .hint(hint)
        .with("vmid", place.vmid.get())
}
