//! What runs inside a guest, whichever way leads there.

use serde_json::{Map, Value, json};

use super::{agent, container};
use crate::{
    Code, Error, Result,
    pve::GuestKind,
    safety::deed::Place,
    tools::{Ctx, deeds::Doing},
};

/// Seconds that a step of a file tool may take.
const STEP_S: u64 = 120;

/// A program with what it is given.
pub(super) struct Job {
    pub argv: Vec<String>,
    pub stdin: Option<Vec<u8>>,
    pub timeout_s: u64,
    pub max_output: u64,
    /// Whether its lines are told while it runs.
    pub tells: bool,
}

/// How a program ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub exit_code: Option<i64>,
    pub signal: Option<i64>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub timed_out: bool,
    pub truncated: bool,
    pub duration_ms: u64,
    /// Anything else that the answer says: `pid`, `background`, `notes`.
    pub more: Map<String, Value>,
}

impl Ended {
    /// The fields of the answer.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut out = Map::new();
        out.insert("exit_code".into(), self.exit_code.into());
        out.insert("signal".into(), self.signal.into());
        put_bytes(&mut out, "stdout", &self.stdout);
        put_bytes(&mut out, "stderr", &self.stderr);
        out.insert("timed_out".into(), self.timed_out.into());
        out.insert("truncated".into(), self.truncated.into());
        out.insert("stdout_bytes".into(), self.stdout_bytes.into());
        out.insert("stderr_bytes".into(), self.stderr_bytes.into());
        out.insert("duration_ms".into(), self.duration_ms.into());
        out.extend(self.more.clone());
        out
    }

    /// For the record: how it ended, without what it printed.
    pub fn record(&self) -> Value {
        json!({"exit_code": self.exit_code, "signal": self.signal, "timed_out": self.timed_out})
    }
}

/// Bytes as text, or as base64 where they are none.
pub(super) fn put_bytes(out: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => out.insert(name.to_owned(), text.into()),
        Err(_) => {
            use base64::{Engine as _, engine::general_purpose::STANDARD};
            out.insert(format!("{name}_base64"), STANDARD.encode(bytes).into())
        }
    };
}

/// Runs a program in the guest of a deed.
pub(super) async fn run(ctx: Ctx<'_>, doing: &Doing, place: &Place, job: Job) -> Result<Ended> {
    match place.kind {
        GuestKind::Lxc => container::run(ctx, doing, place, job).await,
        GuestKind::Qemu => agent::run(ctx, doing, place, job).await,
    }
}

/// Runs one of our own scripts, whose values are arguments and never text of it.
pub(super) async fn script(
    ctx: Ctx<'_>,
    doing: &Doing,
    place: &Place,
    text: &str,
    values: &[&str],
    stdin: Option<Vec<u8>>,
    max_output: u64,
) -> Result<Ended> {
    let mut argv: Vec<String> = ["/bin/sh", "-c", text, "sh"].map(str::to_owned).to_vec();
    argv.extend(values.iter().map(ToString::to_string));
    let job = Job { argv, stdin, timeout_s: STEP_S, max_output, tells: false };
    let ended = run(ctx, doing, place, job).await?;
    if ended.timed_out {
        return Err(Error::new(Code::Timeout, "the guest did not answer in time"));
    }
    Ok(ended)
}

/// Exit codes of our scripts.
pub(super) const MISSING: i64 = 41;
pub(super) const DIRECTORY: i64 = 42;
pub(super) const NO_FILE: i64 = 43;
pub(super) const NOT_ALLOWED: i64 = 44;
pub(super) const LINK: i64 = 45;
pub(super) const OTHER_CONTENT: i64 = 46;
pub(super) const NO_DIRECTORY: i64 = 47;
pub(super) const EXISTS: i64 = 48;

/// The error that an exit code of our scripts stands for.
pub(super) fn failed(ended: &Ended, path: &str) -> Error {
    let said = String::from_utf8_lossy(&ended.stderr);
    let said = said.lines().last().unwrap_or_default().trim().to_owned();
    let error = match ended.exit_code {
        Some(MISSING) => Error::new(Code::NotFound, format!("there is no {path:?} in the guest")),
        Some(DIRECTORY) => {
            Error::argument(format!("{path:?} is a directory")).hint("pve_guest_file_list lists it")
        }
        Some(NO_FILE) => {
            Error::argument(format!("{path:?} is a device, a pipe or a socket, and no plain file"))
        }
        Some(NOT_ALLOWED) => {
            Error::new(Code::Forbidden, format!("the guest does not let root read {path:?}"))
                .hint("the file system of the guest decides, not the token")
        }
        Some(LINK) => Error::argument(format!("{path:?} is a symbolic link"))
            .hint("give the path that it leads to, or set follow"),
        Some(OTHER_CONTENT) => Error::new(
            Code::DigestChanged,
            format!("{path:?} has other content than if_sha256 says"),
        )
        .hint("read it again"),
        Some(NO_DIRECTORY) => Error::new(Code::NotFound, format!("{path:?} has no directory"))
            .hint("set create_dirs to make it"),
        Some(EXISTS) => {
            Error::new(Code::Conflict, "a temporary file of that name is there").hint("call again")
        }
        _ if said.contains("No space left") => {
            Error::new(Code::Conflict, format!("the file system of {path:?} is full"))
                .hint("the old content is untouched")
        }
        _ if said.contains("Read-only file system") => {
            Error::new(Code::Conflict, format!("the file system of {path:?} is read-only"))
                .hint("nothing was written; why it is mounted so, the guest's log tells")
        }
        code => Error::new(
            Code::TaskFailed,
            match code {
                Some(code) => format!("the guest could not do it (exit code {code}): {said}"),
                None => format!("the guest could not do it: {said}"),
            },
        )
        .hint("the message is that of the guest's own programs"),
    };
    error.with("path", path)
}

/// A path that a file tool takes.
pub(super) fn absolute(path: &str) -> Result<()> {
    if path.starts_with('/') && !path.contains('\0') && path.len() <= 4096 {
        return Ok(());
    }
    Err(Error::argument(format!("{path:?} is not an absolute path"))
        .hint("file tools are for guests with a POSIX shell; on Windows take pve_vm_exec"))
}
