//! The node's own record of what was asked and how it ended.
//!
//! Twice: to the system journal with structured fields, and to a file of its
//! own that is synced, since the journal drops records under load without an
//! error. A verb that changes something runs only when both have taken it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::caller::Caller;
use crate::node;
use crate::protocol::{Refused, Request, Verb};

const SOCKET: &str = "/run/systemd/journal/socket";
/// What of a long `argv` goes to the system journal; the file has it whole.
const JOURNAL_ARGV: usize = 16 * 1024;
/// How long a full journal is waited for.
const WAIT: Duration = Duration::from_secs(2);

/// Records of one request.
pub(crate) struct Journal {
    known: Map<String, Value>,
    file: Option<File>,
}

impl Journal {
    /// For a request of which nothing is known yet but who sends it.
    pub(crate) fn new(caller: &Caller) -> Self {
        let mut known = Map::new();
        known.insert("account".into(), json!(caller.account));
        known.insert("address".into(), json!(caller.address));
        Self { known, file: None }
    }

    /// What is asked.
    pub(crate) fn learn(&mut self, request: &Request) {
        let mut set = |key: &str, value: Value| self.known.insert(key.into(), value);
        set("id", json!(request.id));
        set("verb", json!(request.verb.name().as_str()));
        match &request.verb {
            Verb::PctExec(exec) => {
                set("vmid", json!(exec.vmid));
                set("argv", json!(exec.argv));
            }
            Verb::UpgradeStart { plan } => {
                set("plan", json!(plan));
            }
            Verb::UpgradeSimulate { refresh } => {
                set("refresh", json!(refresh));
            }
            Verb::KernelPin { version, next_boot } => {
                set("version", json!(version));
                set("next_boot", json!(next_boot));
            }
            Verb::KernelUnpin { next_boot } => {
                set("next_boot", json!(next_boot));
            }
            Verb::Hello | Verb::KernelList | Verb::UpgradeStatus { .. } => {}
        }
    }

    /// What is about to be done; on the disk when this returns.
    ///
    /// # Errors
    /// One of the two records could not be written.
    pub(crate) fn request(&mut self) -> io::Result<()> {
        self.write("request", Map::new())?;
        self.sync()
    }

    /// Puts what was written on the disk.
    ///
    /// # Errors
    /// The disk does not take it.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }

    /// How it ended; on the disk after [`Self::sync`].
    ///
    /// # Errors
    /// One of the two records could not be written.
    pub(crate) fn outcome(&mut self, answer: &Result<Value, Refused>) -> io::Result<()> {
        let mut more = Map::new();
        match answer {
            Ok(done) => {
                more.insert("outcome".into(), json!("done"));
                for key in ["exit_code", "signal", "timed_out", "cancelled", "background"] {
                    if let Some(value) = done.get(key) {
                        more.insert(key.into(), value.clone());
                    }
                }
            }
            Err(refused) => {
                more.insert("outcome".into(), json!("refused"));
                more.insert("code".into(), json!(refused.code.as_str()));
                more.insert("message".into(), json!(refused.message));
            }
        }
        self.write("outcome", more)
    }

    fn write(&mut self, event: &str, more: Map<String, Value>) -> io::Result<()> {
        let mut record = Map::new();
        record.insert("time".into(), json!(timestamp(SystemTime::now())));
        record.insert("event".into(), json!(event));
        record.extend(self.known.clone());
        record.extend(more);
        // Both are tried, whatever becomes of the first.
        let to_journal = send(&datagram(&record));
        let to_file = self.append(&record);
        to_journal.map_err(|error| explain("the system journal", &error))?;
        to_file.map_err(|error| explain(node::LOG_DIR, &error))
    }

    fn append(&mut self, record: &Map<String, Value>) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            empty => empty.insert(open()?),
        };
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        file.write_all(&line)
    }
}

fn explain(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn open() -> io::Result<File> {
    let dir = node::private_dir(node::LOG_DIR)?;
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(dir.join("guard.log"))
}

fn send(datagram: &[u8]) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(WAIT))?;
    socket.send_to(datagram, node::at(SOCKET)).map(|_| ())
}

/// The record in the journal's own format: every value with its length, so
/// that none can be taken for another field.
fn datagram(record: &Map<String, Value>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut field = |name: &str, value: &str| {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'\n');
        bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(b'\n');
    };
    field("SYSLOG_IDENTIFIER", "pve-guard");
    let refused = record.get("outcome").is_some_and(|outcome| outcome == "refused");
    field("PRIORITY", if refused { "4" } else { "6" });
    let mut message = String::new();
    for (key, value) in record.iter().filter(|(key, _)| *key != "time") {
        let text = match value {
            Value::String(text) => text.clone(),
            other => shorten(other.to_string()),
        };
        field(&format!("PVE_GUARD_{}", key.to_ascii_uppercase()), &text);
        message.push_str(&format!("{key}={} ", shorten(value.to_string())));
    }
    field("MESSAGE", message.trim_end());
    bytes
}

fn shorten(mut text: String) -> String {
    if text.len() > JOURNAL_ARGV {
        let end = (0..=JOURNAL_ARGV).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("… (whole in the guard's own file)");
    }
    text
}

/// RFC 3339 in UTC with milliseconds.
fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86400, since.as_secs() % 86400);
    // Days to a date, with years that begin in March (Hinnant's algorithm).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        since.subsec_millis()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_772_323_199, "2026-02-28T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn a_value_cannot_become_a_field() {
        let mut record = Map::new();
        record.insert("argv".into(), json!("x\nPRIORITY=0"));
        let bytes = datagram(&record);
        let mut expected = b"PVE_GUARD_ARGV\n".to_vec();
        expected.extend_from_slice(&12_u64.to_le_bytes());
        expected.extend_from_slice(b"x\nPRIORITY=0\n");
        assert!(bytes.windows(expected.len()).any(|window| window == expected));
    }
}
