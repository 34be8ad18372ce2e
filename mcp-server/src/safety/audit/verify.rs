//! Whether the chain of records is whole.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use super::{FIRST, Record, files, head, sha256};

/// What is wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A line is no record: torn, or written by someone else.
    Torn {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A record does not follow from the one before it: that was changed or
    /// removed, or this one was put in.
    Broken {
        /// The file.
        file: PathBuf,
        /// The record that does not follow.
        seq: u64,
    },
    /// What tells the newest record is missing.
    Head,
    /// The newest records are missing.
    End {
        /// The newest record that there was.
        wanted: u64,
        /// The newest that there is.
        found: u64,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Torn { file, line } => {
                write!(f, "{} line {line}: not a whole record", file.display())
            }
            Fault::Broken { file, seq } => write!(
                f,
                "{} record {seq}: does not follow from the one before it, which was changed or removed",
                file.display()
            ),
            Fault::Head => write!(
                f,
                "the file that tells the newest record is missing: whether records are missing at the end cannot be told"
            ),
            Fault::End { wanted, found } => {
                write!(
                    f,
                    "the newest records are missing: {wanted} were written, {found} are there"
                )
            }
        }
    }
}

/// What a look through the whole log found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Whole records.
    pub records: u64,
    /// What is wrong.
    pub faults: Vec<Fault>,
}

/// Looks through all files of a log.
///
/// # Errors
/// A file that cannot be read.
pub fn verify(path: &Path) -> io::Result<Report> {
    let mut report = Report::default();
    let mut before = (0_u64, FIRST.to_owned());
    for file in files(path) {
        let mut reader = BufReader::new(File::open(&file)?);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let bytes = line.strip_suffix(b"\n").unwrap_or(&line);
            let Ok(record) = serde_json::from_slice::<Record>(bytes) else {
                report.faults.push(Fault::Torn { file: file.clone(), line: number });
                continue;
            };
            if record.prev != before.1 || record.seq != before.0 + 1 {
                report.faults.push(Fault::Broken { file: file.clone(), seq: record.seq });
            }
            before = (record.seq, sha256(bytes));
            report.records += 1;
        }
    }
    match head(path) {
        Some((seq, hash)) if seq > before.0 || (seq == before.0 && hash != before.1) => {
            report.faults.push(Fault::End { wanted: seq, found: before.0 });
        }
        // Every record sets it, so it was taken away, and what else with it cannot be told.
        None if report.records > 0 => report.faults.push(Fault::Head),
        _ => {}
    }
    Ok(report)
}
