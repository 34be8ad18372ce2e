//! The audit log: one JSON line for each step of each change, refusal, dry run
//! and error, each with the SHA-256 of the line before.
//!
//! Every write opens the file anew under a lock that all processes share, so
//! that a log that was removed, or cannot be written any more, is noticed
//! before something is sent. The lock file keeps the head of the chain: a log
//! that lost its end, or was changed, does not fit to it.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::{Timestamp, tz::Offset};
use serde_json::{Map, Value};

use super::files;
use crate::{Code, Error, Result, config::Config};

pub mod reading;

/// Largest size of one file, in bytes, before the next is begun.
const MAX_SIZE: u64 = 10 << 20;

/// Where records go.
#[derive(Debug, Clone)]
pub struct Audit {
    path: Option<PathBuf>,
    max_size: u64,
}

/// A step of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A check refused the call.
    Refused,
    /// The caller asked what would be sent.
    DryRun,
    /// A person or code has to agree first.
    Asked,
    /// It is about to be sent.
    Sending,
    /// Proxmox took it.
    Done,
    /// Proxmox refused it, or it certainly did not arrive.
    Failed,
    /// It may or may not have arrived.
    Unknown,
    /// Something else went wrong, or a note about a call.
    Note,
    /// A read that succeeded, where those are recorded.
    Read,
}

impl Event {
    /// The event as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Event::Refused => "refused",
            Event::DryRun => "dry_run",
            Event::Asked => "asked",
            Event::Sending => "sending",
            Event::Done => "done",
            Event::Failed => "failed",
            Event::Unknown => "outcome_unknown",
            Event::Note => "note",
            Event::Read => "read",
        }
    }
}

/// What a record says beside its place in the chain.
pub type Record = Map<String, Value>;

impl Audit {
    /// From the configuration; a log that is turned off swallows everything.
    /// The directory is made here and not later: one that vanishes while the
    /// server runs is a fault, and ends changes.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let path = config.audit.enabled.then(|| config.audit.path.clone());
        if let Some(dir) = path.as_deref().and_then(Path::parent)
            && let Err(error) = files::private_dir(dir)
        {
            tracing::warn!(dir = %dir.display(), %error, "the directory of the audit log cannot be made");
        }
        Self { path, max_size: MAX_SIZE }
    }

    /// The file, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Writes one record, on disk when this returns.
    ///
    /// # Errors
    /// `audit_unavailable`.
    pub fn write(&self, event: Event, record: Record) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        self.append(path, event, record).map_err(|error| {
            Error::new(
                Code::AuditUnavailable,
                format!("the audit log {} cannot be written: {error}", path.display()),
            )
            .hint("nothing is changed without a record; make room or give the directory back, or set PROXMOX_AUDIT_LOG")
        })
    }

    fn append(&self, path: &Path, event: Event, record: Record) -> io::Result<()> {
        let mut lock = files::locked(&lock_path(path))?;
        let head = Head::read(&mut lock)?;
        let head = match head {
            Some(head) => head,
            None => Head::of_file(path)?,
        };
        let mut file = files::private().append(true).read(true).create(true).open(path)?;
        let size = file.metadata()?.len();
        if size > 0 && !ends_with_newline(&mut file, size)? {
            // A record torn by a crash stays to be seen, on a line of its own.
            file.write_all(b"\n")?;
        }
        let mut line = Map::new();
        line.insert("seq".into(), (head.seq + 1).into());
        line.insert("time".into(), now().into());
        line.insert("event".into(), event.as_str().into());
        line.extend(record);
        line.insert("prev".into(), head.hash.clone().into());
        let text = Value::Object(line).to_string();
        file.write_all(format!("{text}\n").as_bytes())?;
        file.sync_data()?;
        Head { seq: head.seq + 1, hash: files::sha256(&text) }.write(&mut lock)?;
        if size + text.len() as u64 >= self.max_size {
            drop(file);
            fs::rename(path, rotated(path))?;
        }
        Ok(())
    }
}

/// The time now, with offset.
fn now() -> String {
    let now = Timestamp::now();
    let now = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
    now.display_with_offset(Offset::UTC).to_string()
}

/// The lock that all writers share, which keeps the head of the chain.
fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// A free name for a full file, in order of time.
fn rotated(path: &Path) -> PathBuf {
    let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%S").to_string();
    (0..)
        .map(|n| {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{stamp}-{n:03}"));
            PathBuf::from(name)
        })
        .find(|name| !name.exists())
        .unwrap_or_default()
}

fn ends_with_newline(file: &mut File, size: u64) -> io::Result<bool> {
    file.seek(SeekFrom::Start(size - 1))?;
    let mut last = [0; 1];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The newest record: its number and the hash of its line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Head {
    seq: u64,
    hash: String,
}

impl Head {
    fn read(lock: &mut File) -> io::Result<Option<Self>> {
        let mut text = String::new();
        lock.seek(SeekFrom::Start(0))?;
        lock.read_to_string(&mut text)?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Option<Self> {
        let (seq, hash) = text.trim().split_once(' ')?;
        Some(Self { seq: seq.parse().ok()?, hash: hash.to_owned() })
    }

    /// From the last whole line of a log whose lock file is gone.
    fn of_file(path: &Path) -> io::Result<Self> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let last = text.lines().rev().find_map(|line| {
            let seq = serde_json::from_str::<Value>(line).ok()?.get("seq")?.as_u64()?;
            Some(Self { seq, hash: files::sha256(line) })
        });
        Ok(last.unwrap_or_default())
    }

    fn write(&self, lock: &mut File) -> io::Result<()> {
        lock.seek(SeekFrom::Start(0))?;
        let text = format!("{} {}\n", self.seq, self.hash);
        lock.write_all(text.as_bytes())?;
        lock.set_len(text.len() as u64)
    }
}

/// A duration in whole milliseconds, for records.
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
