//! Reading the audit log: the whole chain checked, the newest records, a search.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{Head, lock_path};
use crate::{Code, Error, Result, safety::files};

/// Something that is wrong with the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, in plain words.
    pub what: String,
}

/// What a check of the whole chain found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Records that were read.
    pub records: usize,
    /// Files that were read, oldest first.
    pub files: Vec<PathBuf>,
    /// Everything that is wrong; empty when all is well.
    pub faults: Vec<Fault>,
}

/// The files of a log, oldest first, the current one last.
fn all_files(path: &Path) -> Result<Vec<PathBuf>> {
    let dir = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => return Err(unreadable(dir, &error)),
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| {
            let ending = file.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_prefix(name));
            ending.is_some_and(|e| e.strip_prefix('.').is_some_and(|e| e.starts_with(|c: char| c.is_ascii_digit())))
        })
        .collect();
    files.sort();
    if path.exists() {
        files.push(path.to_owned());
    }
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::AuditUnavailable, format!("{} cannot be read: {error}", path.display()))
        .hint("PROXMOX_AUDIT_LOG says where the audit log is")
}

/// Checks the chain from the oldest file that is there to the newest record.
///
/// # Errors
/// `audit_unavailable` where a file cannot be read.
pub fn verify(path: &Path) -> Result<Verified> {
    let mut found = Verified { files: all_files(path)?, ..Verified::default() };
    let mut head: Option<Head> = None;
    for file in &found.files {
        let bytes = fs::read(file).map_err(|e| unreadable(file, &e))?;
        let text = String::from_utf8_lossy(&bytes);
        for (number, line) in text.lines().enumerate() {
            let mut fault = |what: String| {
                found.faults.push(Fault { file: file.clone(), line: number + 1, what });
            };
            found.records += 1;
            let record: Option<Value> = serde_json::from_str(line).ok();
            let seq = record.as_ref().and_then(|r| r.get("seq")?.as_u64());
            let prev = record.as_ref().and_then(|r| r.get("prev")?.as_str());
            let (Some(seq), Some(prev)) = (seq, prev) else {
                fault("the record is torn or no record".to_owned());
                continue;
            };
            if let Some(before) = &head {
                if seq != before.seq + 1 {
                    fault(format!("record {} is followed by {seq}: some are missing", before.seq));
                } else if prev != before.hash {
                    fault(format!("record {} was changed after it was written", before.seq));
                }
            } else if seq != 1 {
                fault(format!("the log begins with record {seq}: older files are missing"));
            }
            head = Some(Head { seq, hash: files::sha256(line) });
        }
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            let line = text.lines().count();
            found.faults.push(Fault { file: file.clone(), line, what: "the last record is torn".to_owned() });
        }
    }
    let kept = fs::read_to_string(lock_path(path)).ok().and_then(|text| Head::parse(&text));
    match (kept, head) {
        (Some(kept), Some(head)) if kept.seq > head.seq => found.faults.push(Fault {
            file: path.to_owned(),
            line: 0,
            what: format!("the log ends with record {}, and {} were written", head.seq, kept.seq),
        }),
        (Some(kept), Some(head)) if kept != head => found.faults.push(Fault {
            file: path.to_owned(),
            line: 0,
            what: format!("record {} was changed after it was written", head.seq),
        }),
        (Some(kept), None) if kept.seq > 0 => found.faults.push(Fault {
            file: path.to_owned(),
            line: 0,
            what: format!("the log is empty or gone, and {} records were written", kept.seq),
        }),
        _ => {}
    }
    Ok(found)
}

/// Which records are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only records at or after this time (RFC 3339; compared as instants).
    pub since: Option<jiff::Timestamp>,
    /// The tool's name.
    pub tool: Option<String>,
    /// The class.
    pub class: Option<String>,
    /// A guest that was touched.
    pub vmid: Option<u32>,
    /// The event: `refused`, `done`, `failed`, `outcome_unknown`, …, or an error code.
    pub outcome: Option<String>,
    /// Text anywhere in the record, in any case.
    pub text: Option<String>,
}

impl Filter {
    fn wants(&self, record: &Value, line: &str) -> bool {
        let text = |key: &str| record.get(key).and_then(Value::as_str);
        let is = |wanted: &Option<String>, key: &str| {
            wanted.as_deref().is_none_or(|w| text(key).is_some_and(|t| t.eq_ignore_ascii_case(w)))
        };
        let since = self.since.is_none_or(|since| {
            text("time").and_then(|t| t.parse::<jiff::Timestamp>().ok()).is_some_and(|t| t >= since)
        });
        let vmid = self.vmid.is_none_or(|wanted| {
            let vmids = record.get("vmids").and_then(Value::as_array);
            vmids.is_some_and(|list| list.iter().any(|v| v.as_u64() == Some(u64::from(wanted))))
        });
        let outcome = self.outcome.as_deref().is_none_or(|wanted| {
            ["event", "code", "outcome"].iter().any(|k| text(k).is_some_and(|t| t.eq_ignore_ascii_case(wanted)))
        });
        let anywhere = self
            .text
            .as_deref()
            .is_none_or(|wanted| line.to_lowercase().contains(&wanted.to_lowercase()));
        since && is(&self.tool, "tool") && is(&self.class, "class") && vmid && outcome && anywhere
    }
}

/// The newest records that a filter wants, newest first, and how many there are in all.
///
/// # Errors
/// `audit_unavailable` where a file cannot be read.
pub fn search(path: &Path, filter: &Filter, limit: usize) -> Result<(Vec<Value>, usize)> {
    let mut found = Vec::new();
    let mut total = 0;
    for file in all_files(path)?.iter().rev() {
        let bytes = fs::read(file).map_err(|e| unreadable(file, &e))?;
        for line in String::from_utf8_lossy(&bytes).lines().rev() {
            let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
            if filter.wants(&record, line) {
                total += 1;
                if found.len() < limit {
                    found.push(record);
                }
            }
        }
    }
    Ok((found, total))
}
