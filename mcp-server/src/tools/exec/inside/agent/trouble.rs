//! Why an agent cannot do what is asked of it, and what mends that.

use serde_json::Value;

use crate::{Code, Error, pve::loose, safety::deed::Place};

fn unavailable(place: &Place, why: &str) -> Error {
    Error::new(Code::AgentUnavailable, format!("VM {}: {why}", place.vmid))
        .with("vmid", place.vmid.get())
}

pub(super) fn not_enabled(place: &Place) -> Error {
    unavailable(place, "the guest agent is not enabled in its configuration").hint(
        "set `agent` to 1 (pve_guest_config_set), stop and start the VM, and install \
         qemu-guest-agent in it",
    )
}

/// Whether a VM runs.
pub(super) fn running(place: &Place, now: &Value) -> Result<(), Error> {
    if loose::str(now, "status") == Some("stopped") {
        return Err(unavailable(place, "it does not run").hint("pve_guest_start starts it"));
    }
    match loose::str(now, "qmpstatus") {
        Some(state @ ("paused" | "suspended" | "prelaunch" | "io-error" | "internal-error")) => {
            Err(unavailable(place, &format!("it is {state}, so nothing runs in it"))
                .hint("pve_guest_resume lets a paused VM go on"))
        }
        _ => Ok(()),
    }
}

pub(super) fn frozen(place: &Place) -> Error {
    unavailable(place, "its file systems are frozen, so the agent runs nothing").hint(
        "a backup or snapshot thaws them when it ends; if none runs, pve_vm_agent_command thaw does",
    )
}

pub(super) fn switched_off(command: &str) -> Error {
    Error::new(
        Code::AgentUnavailable,
        format!("the agent in the guest has {command} switched off"),
    )
    .hint(format!(
        "its owner allows it in the guest: on RHEL and its like in /etc/sysconfig/qemu-ga, where \
         the line BLACKLIST_RPC= (BLOCK_RPCS=) must not name {command} and guest-exec-status, or \
         the list --allow-rpcs= in the line FILTER_RPC_ARGS= must name both; elsewhere in \
         /etc/qemu/qemu-ga.conf the line block-rpcs= (blacklist=) or allow-rpcs=; then systemctl \
         restart qemu-guest-agent"
    ))
    .with("command", command)
}

/// An error of an agent call, with what is known of it.
pub(in crate::tools::exec) fn explain(place: &Place, error: Error) -> Error {
    let text = error.message.to_lowercase();
    if text.contains("frozen") {
        return frozen(place);
    }
    let named = ["guest-exec-status", "guest-exec", "guest-file-open", "guest-file-write"];
    let off =
        ["has been disabled", "is disabled", "not allowed", "commandnotfound", "not been found"];
    if off.iter().any(|word| text.contains(word)) {
        let command = named.iter().find(|name| text.contains(**name)).unwrap_or(&"guest-exec");
        return switched_off(command);
    }
    if text.contains("no qemu guest agent configured") {
        return not_enabled(place);
    }
    if text.contains("got timeout") {
        return Error::new(
            Code::OutcomeUnknown,
            format!("VM {}: the agent did not answer in time; what it was told may be done yet", place.vmid),
        )
        .hint("look into the guest before anything is repeated; pve_vm_agent_status shows whether the agent answers");
    }
    if text.contains("guest agent is not running") {
        return unavailable(place, "the guest agent does not answer")
            .hint("install and start qemu-guest-agent in the guest: systemctl enable --now qemu-guest-agent");
    }
    if error.code == Code::AgentUnavailable && text.contains("is not running") {
        return unavailable(place, "it does not run").hint("pve_guest_start starts it");
    }
    error
}

/// The node's answer breaks off when the agent cannot start a program.
pub(in crate::tools::exec) fn may_be_missing(error: &Error) -> bool {
    error.code == Code::OutcomeUnknown
        && error.details.get("http_status").is_some_and(|s| *s == 596)
}

pub(super) fn missing(place: &Place, program: &str, error: Error) -> Error {
    let mut told = Error::new(
        Code::OutcomeUnknown,
        format!(
            "the node's answer to the start of {program:?} in VM {} broke off: that is what it \
             does when the guest has no such program or may not run it",
            place.vmid
        ),
    )
    .hint("see that the program is there, with its whole path; a command given as text tells by itself what it did not find");
    told.details = error.details;
    told
}

pub(super) fn unknown_process(error: &Error) -> bool {
    let text = &error.message;
    text.contains("PID ") && text.contains("does not exist")
        || text.contains("Invalid parameter 'pid'")
}

/// Faults on the way that say nothing about the process.
pub(super) fn passes(error: &Error) -> bool {
    matches!(error.code, Code::Unreachable | Code::Timeout | Code::ProxyFailed | Code::BadAnswer)
        || error.message.contains("got timeout")
}

fn about(place: &Place, pid: i64, why: String, code: Code) -> Error {
    Error::new(code, format!("process {pid} in VM {}: {why}", place.vmid)).with("pid", pid)
}

pub(super) fn left(place: &Place, pid: i64, why: &str) -> Error {
    about(place, pid, format!("the call {why}, the process goes on"), Code::Cancelled).hint(format!(
        "the guest agent cannot end a process: pve_vm_exec with `pid` {pid} asks how it stands, \
         and `kill` in the guest ends it"
    ))
}

pub(super) fn forgotten(place: &Place, pid: i64, error: &Error) -> Error {
    about(
        place,
        pid,
        format!("the agent does not know it any more: {}", error.message),
        Code::OutcomeUnknown,
    )
    .hint(
        "an agent tells the end of a process once, and forgets all when it starts anew; look into \
         the guest for what the command did",
    )
}

pub(super) fn silent(place: &Place, pid: i64, error: &Error) -> Error {
    about(
        place,
        pid,
        format!("the guest runs, and its agent has fallen silent: {}", error.message),
        Code::OutcomeUnknown,
    )
    .hint(format!("when the agent answers again, pve_vm_exec with `pid` {pid} asks how it ended"))
}

pub(super) fn lost(place: &Place, pid: i64, error: &Error) -> Error {
    about(
        place,
        pid,
        format!("how it stands is not known: {}", error.message),
        Code::OutcomeUnknown,
    )
    .hint(format!("pve_vm_exec with `pid` {pid} asks again"))
}
