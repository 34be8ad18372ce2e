//! Looking things up in the log.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use super::{Record, files};

/// What is looked for; what is not set takes everything.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Not before, in seconds since 1970.
    pub since: Option<i64>,
    /// The tool.
    pub tool: Option<String>,
    /// READ, WRITE, DESTRUCTIVE or CRITICAL, in any case.
    pub class: Option<String>,
    /// A guest that it touched.
    pub vmid: Option<u32>,
    /// The step, such as `refused`.
    pub outcome: Option<String>,
    /// Part of anything in the record.
    pub text: Option<String>,
    /// Most records.
    pub limit: usize,
}

/// The newest records that fit, newest first.
///
/// # Errors
/// A file that cannot be read.
pub fn search(path: &Path, query: &Query) -> io::Result<Vec<Record>> {
    let mut found = Vec::new();
    for file in files(path).into_iter().rev() {
        let reader = BufReader::new(File::open(&file)?);
        let mut here = Vec::new();
        for line in reader.split(b'\n') {
            let line = line?;
            if let Some(text) = &query.text
                && !String::from_utf8_lossy(&line).to_lowercase().contains(&text.to_lowercase())
            {
                continue;
            }
            if let Ok(record) = serde_json::from_slice::<Record>(&line)
                && fits(query, &record)
            {
                here.push(record);
            }
        }
        found.extend(here.into_iter().rev());
        if found.len() >= query.limit {
            break;
        }
    }
    found.truncate(query.limit);
    Ok(found)
}

fn fits(query: &Query, record: &Record) -> bool {
    let entry = &record.entry;
    let since = query.since.is_none_or(|since| {
        record.time.parse::<jiff::Timestamp>().is_ok_and(|t| t.as_second() >= since)
    });
    since
        && query.tool.as_ref().is_none_or(|tool| *tool == entry.tool)
        && query.outcome.as_ref().is_none_or(|o| o == entry.outcome.as_str())
        && query.vmid.is_none_or(|vmid| entry.vmids.contains(&vmid))
        && query
            .class
            .as_ref()
            .is_none_or(|class| entry.class.as_ref().is_some_and(|c| c.eq_ignore_ascii_case(class)))
}
