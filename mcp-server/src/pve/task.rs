//! Tasks: their identifiers, how they ended, and what their logs say.

use serde::Serialize;
use serde_json::{Value, json};

pub use super::wait::{LogPage, log, status, wait};
use super::{ApiPath, NodeName, Vmid, loose};
use crate::{Error, Result};

/// Lines of a log shown for a task that failed.
pub const LOG_TAIL: usize = 20;
/// Longest log line that is kept, in characters.
const MAX_LINE: usize = 500;
/// Most warnings that are kept.
const MAX_WARNINGS: usize = 20;

/// A task's identifier: `UPID:node:pid:pstart:starttime:type:id:user:`, the
/// numbers in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Upid {
    text: String,
    node: NodeName,
    start: i64,
    kind: String,
    id: String,
    user: String,
}

impl Upid {
    /// Reads a UPID strictly: what is read prints back the same.
    ///
    /// # Errors
    /// `invalid_argument` for anything that Proxmox would not have made.
    pub fn parse(text: &str) -> Result<Self> {
        Self::read(text).ok_or_else(|| {
            let shown: String = text.chars().take(120).collect();
            Error::argument(format!("{shown:?} is not a UPID")).hint(
                "a UPID looks like UPID:pve1:0000155B:0002C0E9:6B0CBA55:qmstart:100:root@pam:",
            )
        })
    }

    fn read(text: &str) -> Option<Self> {
        if text.len() > 512 || text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '/')
        {
            return None;
        }
        let mut parts = text.split(':');
        if parts.next() != Some("UPID") {
            return None;
        }
        let node = NodeName::parse(parts.next()?).ok()?;
        hex(parts.next()?, 8, 8)?; // process id
        hex(parts.next()?, 8, 9)?; // its start in clock ticks since boot
        let start = i64::try_from(hex(parts.next()?, 8, 8)?).ok()?;
        let kind = parts.next().filter(|k| !k.is_empty())?.to_owned();
        // The id alone may hold colons of its own; user and end come last.
        let rest: Vec<&str> = parts.collect();
        let (id, user) = match rest.as_slice() {
            [id @ .., user, ""] if !id.is_empty() && user.contains('@') => (id.join(":"), *user),
            _ => return None,
        };
        Some(Self { text: text.to_owned(), node, start, kind, id, user: user.to_owned() })
    }

    /// Reads the UPID that a change answered, if it answered one.
    #[must_use]
    pub fn of_answer(data: &Value) -> Option<Self> {
        Self::parse(data.as_str()?).ok()
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The node that runs it.
    #[must_use]
    pub fn node(&self) -> &str {
        self.node.as_str()
    }

    /// Kind of work, for example `qmstart`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What it works on, often a VMID; may be empty.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The guest that it works on: a VMID as the id, or before an `@`.
    #[must_use]
    pub fn vmid(&self) -> Option<Vmid> {
        Vmid::parse(self.id.split('@').next().unwrap_or_default()).ok()
    }

    /// `user@realm`, or `user@realm!token`.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Start in seconds since 1970.
    #[must_use]
    pub const fn start(&self) -> i64 {
        self.start
    }

    /// `/nodes/{node}/tasks/{upid}` with one further segment, or none for `""`.
    ///
    /// # Errors
    /// `path_refused` when the text cannot stand in a path.
    pub fn path(&self, tail: &str) -> Result<ApiPath> {
        let mut segments = vec!["nodes", self.node(), "tasks", self.as_str()];
        if !tail.is_empty() {
            segments.push(tail);
        }
        ApiPath::of(&segments)
    }
}

fn hex(text: &str, min: usize, max: usize) -> Option<u64> {
    let fits = (min..=max).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    fits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

impl std::fmt::Display for Upid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Upid {
    fn serialize<S: serde::Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

/// How a task stands, and what its log says about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskStatus {
    /// `OK`, `WARNINGS: n`, or what went wrong; `None` while it runs.
    exitstatus: Option<String>,
    ok: bool,
    warnings: u64,
    /// Lines of the log that warn.
    pub warning_lines: Vec<String>,
    /// The first line of a failed task's log that tells an error.
    pub first_error: Option<String>,
    /// The last lines of a failed task's log.
    pub log_tail: Vec<String>,
}

impl TaskStatus {
    /// Reads the answer of `…/tasks/{upid}/status`.
    #[must_use]
    pub fn of(data: &Value) -> Self {
        if loose::str(data, "status") == Some("running") {
            return Self::default();
        }
        // A worker that was killed leaves no exit status behind.
        Self::ended(loose::str(data, "exitstatus").unwrap_or("unexpected status"))
    }

    /// Reads the exit status of an ended task, as task lists show it too.
    #[must_use]
    pub fn ended(exitstatus: &str) -> Self {
        let warnings = exitstatus.strip_prefix("WARNINGS: ").and_then(|n| n.trim().parse().ok());
        Self {
            ok: exitstatus == "OK" || warnings.is_some(),
            exitstatus: Some(super::error::clean(exitstatus)),
            warnings: warnings.unwrap_or(0),
            ..Self::default()
        }
    }

    /// Whether it has ended.
    #[must_use]
    pub const fn done(&self) -> bool {
        self.exitstatus.is_some()
    }

    /// Whether it has ended well, with warnings or without.
    #[must_use]
    pub const fn ok(&self) -> bool {
        self.ok
    }

    /// `OK`, `WARNINGS: n`, or what went wrong; empty while it runs.
    #[must_use]
    pub fn exitstatus(&self) -> &str {
        self.exitstatus.as_deref().unwrap_or_default()
    }

    /// How many warnings it gave.
    #[must_use]
    pub const fn warnings(&self) -> u64 {
        self.warnings
    }

    pub(super) fn with_log(mut self, log: Log) -> Self {
        self.warning_lines = log.warnings;
        if self.done() && !self.ok {
            self.first_error = log.first_error;
            self.log_tail = log.tail.into();
        }
        self
    }

    /// As it stands in answers: `done`, `ok`, `exitstatus`, `warnings`, and of
    /// the log what says something.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut out = json!({"done": self.done()});
        let Some(map) = out.as_object_mut() else { return out };
        if let Some(exitstatus) = &self.exitstatus {
            map.insert("ok".into(), self.ok.into());
            map.insert("exitstatus".into(), exitstatus.as_str().into());
            map.insert("warnings".into(), self.warnings.into());
        }
        for (key, lines) in [("warning_lines", &self.warning_lines), ("log_tail", &self.log_tail)] {
            if !lines.is_empty() {
                map.insert(key.into(), lines.clone().into());
            }
        }
        if let Some(line) = &self.first_error {
            map.insert("first_error".into(), line.as_str().into());
        }
        out
    }
}

/// What has been read of a task's log.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Number of the next line, counted from 0.
    pub next: u64,
    pub warnings: Vec<String>,
    pub first_error: Option<String>,
    pub tail: std::collections::VecDeque<String>,
    pub percent: Option<f64>,
}

impl Log {
    /// Takes the rows of an answer of `…/log`; gives back the new lines.
    pub fn take(&mut self, rows: &[Value]) -> Vec<String> {
        let mut new = Vec::new();
        for row in rows {
            let number = loose::uint(row, "n").unwrap_or(self.next + 1);
            if number <= self.next {
                continue;
            }
            let text = loose::text(row, "t").unwrap_or_default();
            if number == 1 && text == "no content" {
                // What the API says of a log without lines, and it may still get some.
                continue;
            }
            self.next = number;
            let line: String = text.chars().filter(|c| !c.is_control()).take(MAX_LINE).collect();
            self.look_at(&line);
            new.push(line);
        }
        new
    }

    fn look_at(&mut self, line: &str) {
        if let Some(percent) = percent(line) {
            self.percent = Some(percent);
        }
        let upper = line.trim_start().to_ascii_uppercase();
        if upper.starts_with("WARN") && self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(line.to_owned());
        }
        let error = upper.starts_with("ERROR") || upper.starts_with("TASK ERROR");
        if error && self.first_error.is_none() {
            self.first_error = Some(line.to_owned());
        }
        if self.tail.len() == LOG_TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(line.to_owned());
    }
}

/// How far a task is, when a line of its log says it: `(37.50%)`, `INFO:  12% (…`.
pub(super) fn percent(line: &str) -> Option<f64> {
    let upper = line.trim_start().to_ascii_uppercase();
    if upper.starts_with("WARN") || upper.starts_with("ERROR") {
        return None;
    }
    let before = line.get(..line.find('%')?)?;
    let number = before.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let value: f64 = before.get(number.len()..)?.parse().ok()?;
    (0.0..=100.0).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::Code;

    #[test]
    fn reads_real_upids() {
        let cases = [
            (
                "UPID:pve:00001553:0002C0B2:6B0CBA55:qmcreate:100:root@pam!full:",
                "100",
                "root@pam!full",
            ),
            ("UPID:pve:0000019D:000599D0:6B0CC19F:startall::root@pam:", "", "root@pam"),
            (
                "UPID:pve1:0000019D:1000599D0:6B0CC19F:imgdel:101@local:a.b@pve!x-1:",
                "101@local",
                "a.b@pve!x-1",
            ),
        ];
        for (text, id, user) in cases {
            let upid = Upid::parse(text).unwrap();
            assert_eq!((upid.id(), upid.user()), (id, user));
            assert_eq!(upid.to_string(), text);
        }
        let upid = Upid::parse(cases[0].0).unwrap();
        assert_eq!((upid.kind(), upid.node(), upid.start()), ("qmcreate", "pve", 1_795_996_245));
        let vmids: Vec<_> = cases.iter().map(|c| Upid::parse(c.0).unwrap().vmid()).collect();
        assert_eq!(vmids, [Vmid::new(100).ok(), None, Vmid::new(101).ok()]);
        assert_eq!(
            upid.path("status").unwrap().as_str(),
            "/nodes/pve/tasks/UPID:pve:00001553:0002C0B2:6B0CBA55:qmcreate:100:root@pam!full:/status"
        );
    }

    #[test]
    fn refuses_what_proxmox_would_not_make() {
        for text in [
            "",
            "UPID",
            "UPID:pve:00001553:0002C0B2:6B0CBA55:qmcreate:100:root@pam",
            "upid:pve:00001553:0002C0B2:6B0CBA55:qmcreate:100:root@pam:",
            "UPID:pve:1553:0002C0B2:6B0CBA55:qmcreate:100:root@pam:",
            "UPID:pve:00001553:0002C0:6B0CBA55:qmcreate:100:root@pam:",
            "UPID:pve:00001553:0002C0B2:+B0CBA55:qmcreate:100:root@pam:",
            "UPID:pve:0000155G:0002C0B2:6B0CBA55:qmcreate:100:root@pam:",
            "UPID:../..:00001553:0002C0B2:6B0CBA55:qmcreate:100:root@pam:",
            "UPID:pve.example.org:00001553:0002C0B2:6B0CBA55:qmcreate:100:root@pam:",
            "UPID:pve:00001553:0002C0B2:6B0CBA55::100:root@pam:",
            "UPID:pve:00001553:0002C0B2:6B0CBA55:qmcreate:100:root:",
            "UPID:pve:00001553:0002C0B2:6B0CBA55:qmcreate:100:root@pam:x",
            "UPID:pve:00001553:0002C0B2:6B0CBA55:qmcreate:../100:root@pam:",
            "UPID:pve:00001553:0002C0B2:6B0CBA55:qmcreate:100:root@pam:\n",
            " UPID:pve:00001553:0002C0B2:6B0CBA55:qmcreate:100:root@pam:",
        ] {
            let error = Upid::parse(text).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{text:?}");
        }
    }

    #[test]
    fn only_ok_and_warnings_are_well() {
        let stopped = |exit: &str| json!({"status": "stopped", "exitstatus": exit});
        let cases = [
            (json!({"status": "running"}), true, false, 0, None),
            (stopped("OK"), false, true, 0, Some("OK")),
            (stopped("WARNINGS: 2"), false, true, 2, Some("WARNINGS: 2")),
            (stopped("WARNINGS: many"), false, false, 0, Some("WARNINGS: many")),
            (stopped("OK?"), false, false, 0, Some("OK?")),
            (stopped("VM is locked (backup)"), false, false, 0, Some("VM is locked (backup)")),
            (stopped(""), false, false, 0, Some("unexpected status")),
            (json!({"status": "stopped"}), false, false, 0, Some("unexpected status")),
        ];
        for (data, running, ok, warnings, exit) in cases {
            let status = TaskStatus::of(&data);
            assert_eq!(
                (!status.done(), status.ok(), status.warnings(), status.exitstatus()),
                (running, ok, warnings, exit.unwrap_or_default()),
                "{data}"
            );
        }
    }

    #[test]
    fn percentages_where_the_log_gives_them() {
        let cases = [
            ("INFO:  12% (1.3 GiB of 10.0 GiB) in 3s, read: 1 MiB/s", Some(12.0)),
            ("drive-scsi0: transferred 1.2 GiB of 32.0 GiB (3.75%) in 12s", Some(3.75)),
            ("100%", Some(100.0)),
            ("WARNING: thin pool is 95% full", None),
            ("ERROR: 5% left", None),
            ("500% faster", None),
            ("%", None),
            ("ü%", None),
            ("creating snapshot", None),
        ];
        for (line, wanted) in cases {
            assert_eq!(percent(line), wanted, "{line}");
        }
    }

    #[test]
    fn a_log_is_read_once_and_keeps_what_matters() {
        let rows = |from: u64, to: u64| -> Vec<Value> {
            (from..=to)
                .map(|n| {
                    let text = match n {
                        3 => "WARN: old".to_owned(),
                        5 => "ERROR: first".to_owned(),
                        6 => "TASK ERROR: second".to_owned(),
                        n => format!("line {n}\u{1b}[0m"),
                    };
                    json!({"n": n, "t": text})
                })
                .collect()
        };
        let mut log = Log::default();
        assert!(log.take(&[json!({"n": 1, "t": "no content"})]).is_empty());
        assert_eq!(log.take(&rows(1, 4)).len(), 4);
        assert_eq!(log.take(&rows(1, 6)), ["ERROR: first", "TASK ERROR: second"]);
        log.take(&rows(7, 40));
        assert_eq!(log.warnings, ["WARN: old"]);
        assert_eq!(log.first_error.as_deref(), Some("ERROR: first"));
        assert_eq!(log.tail.len(), LOG_TAIL);
        assert_eq!(log.tail.back().unwrap(), "line 40[0m");
    }

    proptest! {
        #[test]
        fn never_panics_and_prints_back(text in "(UPID:)?[ -~é:@!\\n]{0,80}") {
            if let Ok(upid) = Upid::parse(&text) {
                prop_assert_eq!(upid.to_string(), text.clone());
            }
            let _ = percent(&text);
        }
    }
}
