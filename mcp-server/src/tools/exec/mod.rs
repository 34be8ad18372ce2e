//! The group `exec`: commands, files and services inside guests.

mod ct_exec;
mod file_list;
mod file_read;
mod file_write;
mod inside;
mod service;
mod told;
mod vm_exec;

use serde::Deserialize;
use serde_json::Value;

use self::inside::Way;
use super::registry::*;
use crate::{
    Code, Error, Result,
    safety::{
        Deed, command,
        deed::{Place, Program, Shell},
    },
    tools::{Ctx, change::Asked, deeds::Allowed},
};

/// The tools of this group, in the order in which they are listed.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool!(Exec Exec ct_exec::exec, ct_exec::Exec, "pve_ct_exec", "Run in container",
            "Runs a command in a container: a text by its shell, a list as it is.", destructive),
        tool!(Exec Exec vm_exec::exec, vm_exec::Exec, "pve_vm_exec", "Run in VM",
            "Runs a command in a VM by its guest agent: a text by its shell, a list as it is; `pid` asks for one that was left running.", destructive),
        tool!(Exec Exec file_read::read, file_read::Read, "pve_guest_file_read", "Read guest file",
            "Reads a file in a guest, the first 64 KiB unless told otherwise.", idempotent),
        tool!(Exec Exec file_write::write, file_write::Write, "pve_guest_file_write", "Write guest file",
            "Writes a file in a guest in one step: the whole of it is replaced, or nothing.", destructive, idempotent),
        tool!(Exec Exec file_list::list, file_list::List, "pve_guest_file_list", "List guest directory",
            "Lists a directory in a guest, hidden entries too.", idempotent),
        tool!(Exec Exec service::control, service::Control, "pve_guest_service", "Guest service",
            "Shows, starts, stops or restarts a service in a guest: systemd, OpenRC or Windows.", destructive),
    ]
}

/// Longest path that a guest takes, in bytes.
const MAX_PATH: usize = 4096;
/// Longest command, in bytes: a kernel takes no longer argument.
const MAX_COMMAND: usize = inside::agent::MAX_ARG;

/// A command: a text for a shell, or a program with its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "`command` is a text for the shell, or a list of texts")]
pub(super) enum Command {
    Text(String),
    List(Vec<String>),
}

impl Command {
    /// What is run, by the shell for a text.
    fn program(self, shell: Shell) -> Result<Program> {
        let bad = |why: &str| Err(Error::argument(why).with("argument", "command"));
        let size = match &self {
            Self::Text(text) if text.trim().is_empty() => return bad("`command` is empty"),
            Self::Text(text) => text.len(),
            Self::List(list) => match list.first() {
                None => return bad("`command` is an empty list"),
                Some(first) if first.is_empty() => return bad("`command` names no program"),
                Some(first) if first.starts_with('-') => {
                    return bad("`command` begins with an option instead of a program");
                }
                Some(_) => list.iter().map(String::len).max().unwrap_or_default(),
            },
        };
        let nul = match &self {
            Self::Text(text) => text.contains('\0'),
            Self::List(list) => list.iter().any(|word| word.contains('\0')),
        };
        if nul {
            return bad("`command` has a NUL character");
        }
        if size > MAX_COMMAND {
            return Err(Error::argument(format!(
                "`command` has {size} bytes in one argument, and a guest takes {MAX_COMMAND}"
            ))
            .hint("pass the larger part as `stdin`, or write it with pve_guest_file_write first")
            .with("argument", "command"));
        }
        Ok(match self {
            Self::Text(text) => Program::Text { text, shell },
            Self::List(list) => Program::Argv(list),
        })
    }
}

/// A directory to run in.
fn directory(cwd: Option<String>, windows: bool) -> Result<Option<String>> {
    let Some(cwd) = cwd else { return Ok(None) };
    if windows {
        return match command::windows_path(&cwd) {
            Ok(cwd) => Ok(Some(cwd)),
            Err(why) => Err(Error::argument(format!("{cwd:?} {why}")).with("argument", "cwd")),
        };
    }
    absolute(&cwd, "cwd")?;
    Ok(Some(cwd))
}

/// A path as it is worked with, and what is wrong with it, which is told only
/// to whom the gate lets through. Where the guest did not say what runs in it,
/// the path itself tells for which system it is meant.
fn place_of(path: &str, argument: &str, way: &Result<Way>) -> (String, Result<()>) {
    let windows = match way {
        Ok(way) => way.windows(),
        Err(_) => !path.starts_with('/') && command::is_windows(path),
    };
    if !windows {
        return (path.to_owned(), absolute(path, argument));
    }
    match command::windows_path(path) {
        Ok(path) => (path, Ok(())),
        Err(why) => {
            let error = Error::argument(format!("{path:?} {why}"))
                .hint(r"give the path from its drive on, for example C:\app\app.ini")
                .with("argument", argument);
            (path.to_owned(), Err(error))
        }
    }
}

/// A path of a guest with a shell: absolute, and nothing that cannot be one.
fn absolute(path: &str, argument: &str) -> Result<()> {
    let why = if path.contains('\0') {
        "has a NUL character"
    } else if !path.starts_with('/') {
        "is not absolute"
    } else if path.len() > MAX_PATH {
        "is longer than 4096 bytes"
    } else {
        return Ok(());
    };
    Err(Error::argument(format!("{path:?} {why}"))
        .hint("give the path from `/` on, as the guest sees it")
        .with("argument", argument))
}

/// Puts a deed before the gate. What is wrong with the guest is told only to
/// whom the gate lets through, and nobody is asked to approve what cannot be done.
async fn allow(ctx: Ctx<'_>, deed: Deed, asked: &Asked, able: Result<()>) -> Result<Allowed> {
    let place = deed.place().cloned();
    let allowed = match able {
        Ok(()) => ctx.allow(deed, asked).await,
        Err(error) => {
            let tried = Asked { dry_run: Some(true), confirm: None, approval_code: None };
            ctx.allow(deed, &tried).await.and(Err(error))
        }
    };
    allowed.map_err(|error| not_running(place.as_ref(), error))
}

/// A VM that does not run has no agent either.
fn not_running(place: Option<&Place>, mut error: Error) -> Error {
    let status = error.details.get("status").and_then(Value::as_str);
    let vm = place.is_some_and(|p| p.kind == crate::pve::GuestKind::Qemu);
    if error.code == Code::Conflict
        && vm
        && matches!(status, Some("stopped" | "paused" | "suspended"))
    {
        error.code = Code::AgentUnavailable;
    }
    error
}

/// A tool for the other kind of guest.
fn only(place: &Place, kind: crate::pve::GuestKind, other: &str) -> Result<()> {
    if place.kind == kind {
        return Ok(());
    }
    let what = place.kind.noun();
    Err(Error::argument(format!("guest {} is a {what}", place.vmid)).hint(format!("take {other}")))
}
