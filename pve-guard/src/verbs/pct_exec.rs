//! `pct-exec`: a command in a container.

use std::time::Duration;

use crate::client::Client;
use crate::node::{self, program};
use crate::policy::Policy;
use crate::process::{InputRule, Job, Output};
use crate::protocol::{Code, ExecDone, PctExec, Refused};
use crate::{container, lock};

/// Seconds that `pct status` may take.
const STATUS_TIMEOUT_S: u64 = 20;

pub(super) fn run(
    exec: &PctExec,
    policy: &Policy,
    client: &mut Client,
) -> Result<ExecDone, Refused> {
    check_limits(exec, policy)?;
    check_program(exec, policy)?;
    container::check(exec.vmid, exec.hostname.as_deref(), &policy.containers)?;
    let place = lock::try_place(policy.limits.commands)
        .map_err(|error| Refused::new(Code::Internal, format!("lock file: {error}")))?;
    let Some(_place) = place else {
        return Err(Refused::new(
            Code::Busy,
            format!(
                "{} commands are running, and the policy allows no more",
                policy.limits.commands
            ),
        )
        .hint("try again when one has ended"));
    };
    check_running(exec.vmid, client)?;
    client.read_waiting();
    if client.input_ended() {
        // The client has gone before anything was started.
        return Ok(ExecDone { cancelled: true, ..ExecDone::default() });
    }
    let ended = job(exec, policy).run(client)?;
    Ok(ExecDone {
        exit_code: ended.exit_code,
        signal: ended.signal,
        timed_out: ended.timed_out,
        cancelled: ended.cancelled,
        stdout_bytes: ended.stdout.bytes,
        stderr_bytes: ended.stderr.bytes,
        truncated: ended.stdout.cut || ended.stderr.cut,
        background: ended.background,
        duration_ms: u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX),
        notes: ended.notes,
    })
}

fn job(exec: &PctExec, policy: &Policy) -> Job {
    // The environment is made here, so `--keep-env 1` lets nothing of the node
    // in, and the mark by which the command's processes are found gets through.
    let mut args: Vec<String> =
        ["exec", &exec.vmid.to_string(), "--keep-env", "1", "--"].map(String::from).to_vec();
    args.extend(exec.argv.iter().cloned());
    Job {
        program: program::PCT,
        args,
        env: [("HOME", "/root"), ("LANG", "C.UTF-8"), ("TERM", "dumb")]
            .map(|(name, value)| (name, value.to_owned()))
            .to_vec(),
        timeout: Duration::from_secs(exec.timeout_s),
        output: Output::Client,
        max_output: exec.max_output,
        input: if exec.stdin {
            InputRule::Passed(policy.limits.max_input)
        } else {
            InputRule::Watched
        },
        cgroup: Some(node::at(&format!("/sys/fs/cgroup/lxc/{}", exec.vmid))),
    }
}

fn check_limits(exec: &PctExec, policy: &Policy) -> Result<(), Refused> {
    let limits = &policy.limits;
    for (field, asked, most) in [
        ("timeout_s", exec.timeout_s, limits.timeout_s),
        ("max_output", exec.max_output, limits.max_output),
    ] {
        if asked > most {
            return Err(Refused::new(
                Code::Limit,
                format!("{field} is {asked}, and the policy allows {most}"),
            ));
        }
    }
    Ok(())
}

fn check_program(exec: &PctExec, policy: &Policy) -> Result<(), Refused> {
    let Some(program) = exec.argv.first() else { return Ok(()) };
    if policy.forbids_program(program) {
        return Err(Refused::new(Code::Policy, format!("the policy never runs {program:?}")));
    }
    if is_below_proc(program) {
        return Err(Refused::new(Code::Argument, "a program below /proc is never run")
            .hint("/proc/self/exe would be a program of the node"));
    }
    Ok(())
}

/// Whether the path, from `/`, leads into `/proc`. A name without a slash is
/// looked for in `PATH` and does not.
fn is_below_proc(program: &str) -> bool {
    let mut place: Vec<&str> = Vec::new();
    for part in program.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                place.pop();
            }
            part => place.push(part),
        }
    }
    program.contains('/') && place.first() == Some(&"proc")
}

/// A running container has a command socket. Where there is none, Proxmox has
/// the last word.
fn check_running(vmid: i64, client: &mut Client) -> Result<(), Refused> {
    if container::has_command_socket(vmid) {
        return Ok(());
    }
    // Detached, since what the client has sent already is for the command.
    let status = Job::kept(program::PCT, &["status", &vmid.to_string()], STATUS_TIMEOUT_S);
    let ended = status.detached().run(client)?;
    let said = ended.stdout.text();
    match said.trim().strip_prefix("status: ") {
        Some(state) if ended.well() && state != "running" => {
            Err(Refused::new(Code::NotRunning, format!("container {vmid} is {state}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_program_below_proc_is_seen() {
        for program in [
            "/proc/self/exe",
            "//proc/1/exe",
            "/./proc/self/exe",
            "/x/../proc/self/exe",
            "proc/x",
            "../proc/self/exe",
        ] {
            assert!(is_below_proc(program), "{program}");
        }
        for program in ["proc", "/usr/bin/proc", "/proctor", "ls", "/x/proc/y", "/proc/../bin/ls"] {
            assert!(!is_below_proc(program), "{program}");
        }
    }
}
