//! The audit log: one JSON line for each step of each change, chained so that a
//! changed, missing or torn record is found.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Code, Error, Result, config};

mod search;
mod verify;

pub use search::{Query, search};
pub use verify::{Fault, Report, verify};

/// A file larger than this is put aside before the next record, in bytes.
const ROTATE_AT: u64 = 16 * 1024 * 1024;
/// What the first record names as the one before it.
const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// Longest record that is looked for at the end of the file, in bytes.
const LONGEST: u64 = 4 * 1024 * 1024;

/// What a record says happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The server started; the flags that are on stand in `params`.
    Started,
    /// The gate said no.
    Refused,
    /// Shown, not sent.
    DryRun,
    /// A person was asked, or a code was given out.
    Asked,
    /// About to be sent; nothing after it means that it may have been.
    Sending,
    /// Proxmox took it.
    Sent,
    /// The task that it started ended, well or not.
    Ended,
    /// Proxmox refused it, or the way to it failed before it arrived.
    Failed,
    /// It may or may not have arrived.
    Unknown,
    /// The caller stopped waiting; the task goes on.
    WaitCancelled,
    /// A read (only with `PROXMOX_AUDIT_READS=on`, or one that failed).
    Read,
}

impl Step {
    /// The step as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Step::Started => "started",
            Step::Refused => "refused",
            Step::DryRun => "dry_run",
            Step::Asked => "asked",
            Step::Sending => "sending",
            Step::Sent => "sent",
            Step::Ended => "ended",
            Step::Failed => "failed",
            Step::Unknown => "unknown",
            Step::WaitCancelled => "wait_cancelled",
            Step::Read => "read",
        }
    }
}

/// What is recorded. Parameters are masked before they come here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// What happened.
    pub outcome: Step,
    /// The client, as it names itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// The tool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// READ, WRITE, DESTRUCTIVE or CRITICAL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Category of a CRITICAL change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// HTTP method, or the verb of pve-guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Canonical path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Masked parameters.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub params: Value,
    /// Guests that it touches, where they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vmids: Vec<u32>,
    /// Code of a refusal or error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who agreed, and how: `form`, `terminal`, `code`, `confirm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upid: Option<String>,
    /// From the call to this record, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The record of the `sending` step that this one belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

impl Entry {
    /// An entry of one step, everything else empty.
    #[must_use]
    pub fn new(outcome: Step) -> Self {
        Self {
            outcome,
            client: String::new(),
            tool: String::new(),
            class: None,
            category: None,
            method: None,
            path: None,
            params: Value::Null,
            vmids: Vec::new(),
            code: None,
            reason: None,
            approval: None,
            upid: None,
            duration_ms: None,
            of: None,
        }
    }
}

/// A record as it stands in the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Number in the chain, from 1; the id by which `pve_undo` names it.
    pub seq: u64,
    /// RFC 3339.
    pub time: String,
    /// The run of the server that wrote it.
    pub session: String,
    /// What was recorded.
    #[serde(flatten)]
    pub entry: Entry,
    /// SHA-256 of the record before, in hexadecimal.
    pub prev: String,
}

/// The log, open for writing.
#[derive(Debug)]
pub struct Audit {
    path: Option<PathBuf>,
    session: String,
    rotate_at: u64,
}

impl Audit {
    /// Makes the directory where there is none; writes nothing yet.
    ///
    /// # Errors
    /// None: what cannot be written is told when a record is to be written.
    #[must_use]
    pub fn open(config: &config::Audit) -> Self {
        let path = config.enabled.then(|| config.path.clone());
        if let Some(dir) = path.as_deref().and_then(Path::parent) {
            let _ = make_private(dir);
        }
        let mut id = [0_u8; 6];
        // Without randomness the session is told by the process alone.
        let _ = getrandom::fill(&mut id);
        Self { path, session: format!("{}-{}", std::process::id(), hex(&id)), rotate_at: ROTATE_AT }
    }

    /// Whether records are written at all.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.path.is_some()
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Writes a record; one that says `sending` is on disk when this returns.
    /// Answers its number, 0 where no log is kept.
    ///
    /// # Errors
    /// `audit_unavailable`.
    pub fn record(&self, entry: &Entry) -> Result<u64> {
        let Some(path) = &self.path else { return Ok(0) };
        self.write(path, entry).map_err(|error| {
            Error::new(
                Code::AuditUnavailable,
                format!("the audit log {} cannot be written: {error}", path.display()),
            )
            .hint(
                "nothing is changed without its record: make room or the directory writable, or \
                 name another file in PROXMOX_AUDIT_LOG",
            )
        })
    }

    fn write(&self, path: &Path, entry: &Entry) -> io::Result<u64> {
        let _lock = lock(path)?;
        let mut file = private(path)?;
        let mut before = last(&mut file)?;
        let end = file.seek(SeekFrom::End(0))?;
        // Where records are missing at the end, the chain goes on from the one
        // that was written last, and so shows the gap.
        if let Some(newest) = head(path)
            && before.as_ref().is_none_or(|(seq, _)| newest.0 > *seq)
        {
            before = Some(newest);
        }
        let (seq, prev) = before.unwrap_or((0, FIRST.to_owned()));
        let record = Record {
            seq: seq + 1,
            time: crate::render::units::time_ms(),
            session: self.session.clone(),
            entry: entry.clone(),
            prev,
        };
        let mut line = serde_json::to_vec(&record)?;
        let hash = sha256(&line);
        line.push(b'\n');
        if end > 0 && !ends_with_newline(&mut file, end)? {
            // Whoever wrote last was cut off: its half record stays, on a line of its own.
            line.insert(0, b'\n');
        }
        let written = file.write_all(&line).and_then(|()| match entry.outcome {
            Step::Sending => file.sync_data(),
            _ => Ok(()),
        });
        if let Err(error) = written {
            let _ = file.set_len(end);
            return Err(error);
        }
        set_head(path, record.seq, &hash)?;
        if end + line.len() as u64 > self.rotate_at {
            std::fs::rename(path, rotated(path, record.seq))?;
        }
        Ok(record.seq)
    }
}

/// One writer at a time, over all processes: the lock ends with the file.
fn lock(path: &Path) -> io::Result<File> {
    let file = private(&beside(path, "lock"))?;
    file.lock()?;
    Ok(file)
}

/// A file that only its owner can read, made where there is none.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(dir)
}

/// `audit.log` and an ending of ours.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

/// Where a full file goes: named by its last record, so that names sort.
fn rotated(path: &Path, seq: u64) -> PathBuf {
    beside(path, &format!("{seq:012}"))
}

/// Number and hash of the last whole record of a file.
fn last(file: &mut File) -> io::Result<Option<(u64, String)>> {
    let end = file.seek(SeekFrom::End(0))?;
    let start = end.saturating_sub(LONGEST);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.take(LONGEST).read_to_end(&mut tail)?;
    let found = tail
        .rsplit(|b| *b == b'\n')
        .find_map(|line| Some((serde_json::from_slice::<Record>(line).ok()?.seq, sha256(line))));
    Ok(found)
}

fn ends_with_newline(file: &mut File, end: u64) -> io::Result<bool> {
    file.seek(SeekFrom::Start(end - 1))?;
    let mut byte = [0_u8];
    file.read_exact(&mut byte)?;
    Ok(byte == *b"\n")
}

/// The newest record as the head file tells it: what is missing at the end of
/// the chain is found by it, and a new file goes on from it.
fn head(path: &Path) -> Option<(u64, String)> {
    let text = std::fs::read_to_string(beside(path, "head")).ok()?;
    let (seq, hash) = text.trim().split_once(' ')?;
    Some((seq.parse().ok()?, hash.to_owned()))
}

fn set_head(path: &Path, seq: u64, hash: &str) -> io::Result<()> {
    let (new, place) = (beside(path, "head.new"), beside(path, "head"));
    let mut file = private(&new)?;
    file.set_len(0)?;
    file.write_all(format!("{seq} {hash}\n").as_bytes())?;
    std::fs::rename(new, place)
}

/// The files of a log, oldest first.
fn files(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut found: Vec<PathBuf> = path
        .parent()
        .and_then(|dir| std::fs::read_dir(dir).ok())
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| {
            let file = file.file_name().unwrap_or_default().to_string_lossy();
            file.strip_prefix(&name)
                .and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|seq| seq.len() == 12 && seq.bytes().all(|b| b.is_ascii_digit()))
        })
        .collect();
    found.sort();
    if path.exists() {
        found.push(path.to_owned());
    }
    found
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> (tempfile::TempDir, Audit, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/audit.log");
        let audit = Audit::open(&config::Audit { enabled: true, path: path.clone(), reads: false });
        (dir, audit, path)
    }

    fn entry(step: Step, tool: &str) -> Entry {
        Entry { tool: tool.to_owned(), vmids: vec![100], ..Entry::new(step) }
    }

    #[test]
    fn records_are_numbered_and_chained() {
        let (_dir, audit, path) = log();
        assert_eq!(audit.record(&entry(Step::Sending, "a")).unwrap(), 1);
        assert_eq!(audit.record(&entry(Step::Sent, "a")).unwrap(), 2);
        let report = verify(&path).unwrap();
        assert_eq!((report.records, report.faults.len()), (2, 0));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
                let mode = file.unwrap().metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o077, 0);
            }
        }
    }

    #[test]
    fn what_was_done_to_the_log_is_found() {
        let three = || {
            let (dir, audit, path) = log();
            for tool in ["a", "b", "c"] {
                audit.record(&entry(Step::Sent, tool)).unwrap();
            }
            (dir, audit, path)
        };
        let lines = |path: &Path| -> Vec<String> {
            std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
        };
        let write = |path: &Path, lines: &[String]| {
            std::fs::write(path, lines.iter().map(|l| format!("{l}\n")).collect::<String>())
                .unwrap();
        };
        // Changed.
        let (_dir, _audit, path) = three();
        let mut all = lines(&path);
        all[1] = all[1].replace("\"b\"", "\"x\"");
        write(&path, &all);
        assert!(matches!(verify(&path).unwrap().faults[..], [Fault::Broken { seq: 3, .. }]));
        // Missing in the middle, at the end, at the beginning.
        let (_dir, _audit, path) = three();
        let all = lines(&path);
        write(&path, &[all[0].clone(), all[2].clone()]);
        assert!(!verify(&path).unwrap().faults.is_empty());
        write(&path, &all[..2]);
        assert!(matches!(verify(&path).unwrap().faults[..], [Fault::End { .. }]));
        write(&path, &all[1..]);
        assert!(!verify(&path).unwrap().faults.is_empty());
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(verify(&path).unwrap().faults[..], [Fault::End { .. }]));
        // Missing at the end, and the log goes on: the gap shows.
        let (_dir, audit, path) = three();
        let all = lines(&path);
        write(&path, &all[..2]);
        assert_eq!(audit.record(&entry(Step::Sent, "d")).unwrap(), 4);
        assert!(matches!(verify(&path).unwrap().faults[..], [Fault::Broken { seq: 4, .. }]));
        // Torn, and the log goes on.
        let (_dir, audit, path) = three();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{{\"seq\":4,\"ti")).unwrap();
        assert_eq!(audit.record(&entry(Step::Sent, "d")).unwrap(), 4);
        let report = verify(&path).unwrap();
        assert_eq!(report.records, 4);
        assert!(matches!(report.faults[..], [Fault::Torn { line: 4, .. }]), "{:?}", report.faults);
    }

    #[test]
    fn two_writers_keep_one_chain() {
        let (_dir, audit, path) = log();
        let other = Audit::open(&config::Audit { enabled: true, path: path.clone(), reads: false });
        std::thread::scope(|scope| {
            for audit in [&audit, &other] {
                scope.spawn(move || {
                    for _ in 0..100 {
                        audit.record(&entry(Step::Sent, "t")).unwrap();
                    }
                });
            }
        });
        let report = verify(&path).unwrap();
        assert_eq!((report.records, report.faults.len()), (200, 0));
    }

    #[test]
    fn a_removed_directory_is_an_error_and_not_made_again() {
        let (_dir, audit, path) = log();
        audit.record(&entry(Step::Sent, "a")).unwrap();
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        let error = audit.record(&entry(Step::Sending, "a")).unwrap_err();
        assert_eq!(error.code, Code::AuditUnavailable);
        assert!(!path.parent().unwrap().exists());
    }

    #[test]
    fn a_full_file_is_put_aside_and_the_chain_goes_on() {
        let (_dir, mut audit, path) = log();
        audit.rotate_at = 16_000;
        let big = Entry { reason: Some("x".repeat(3_000)), ..entry(Step::Sent, "big") };
        for _ in 0..8 {
            audit.record(&big).unwrap();
        }
        assert_eq!(files(&path).len(), 2);
        let report = verify(&path).unwrap();
        assert_eq!((report.records, report.faults.len()), (8, 0));
        let found = search(&path, &Query { limit: 100, ..Query::default() }).unwrap();
        assert_eq!(found.len(), 8);
        assert_eq!(found[0].seq, 8);
    }

    #[test]
    fn searching_takes_what_fits() {
        let (_dir, audit, path) = log();
        audit.record(&entry(Step::Sent, "a")).unwrap();
        audit
            .record(&Entry {
                vmids: vec![200],
                class: Some("CRITICAL".into()),
                ..entry(Step::Refused, "b")
            })
            .unwrap();
        let find = |query: Query| -> Vec<u64> {
            search(&path, &query).unwrap().iter().map(|r| r.seq).collect()
        };
        let all = Query { limit: 10, ..Query::default() };
        assert_eq!(find(all.clone()), [2, 1]);
        assert_eq!(find(Query { vmid: Some(200), ..all.clone() }), [2]);
        assert_eq!(find(Query { tool: Some("a".into()), ..all.clone() }), [1]);
        assert_eq!(find(Query { class: Some("critical".into()), ..all.clone() }), [2]);
        assert_eq!(find(Query { outcome: Some("refused".into()), ..all.clone() }), [2]);
        assert_eq!(find(Query { since: Some(i64::MAX), ..all.clone() }), Vec::<u64>::new());
        assert_eq!(find(Query { limit: 1, ..all }), [2]);
    }
}
