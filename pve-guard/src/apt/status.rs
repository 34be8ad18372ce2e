//! What systemd and its journal say of the upgrade's unit.

use serde_json::Value;

use super::unit::UNIT;
use crate::client::Client;
use crate::node::program;
use crate::process::Job;
use crate::protocol::{Code, Refused};

const TIMEOUT_S: u64 = 30;
const PROPERTIES: &str =
    "--property=LoadState,ActiveState,SubState,Result,ExecMainStatus,InvocationID";
/// Most lines and bytes of the journal in one answer.
const MAX_LINES: usize = 500;
const MAX_BYTES: usize = 256 * 1024;

/// The unit as systemd shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Whether systemd knows it. For a unit that it does not know it would
    /// show success.
    pub(crate) loaded: bool,
    pub(crate) active: String,
    pub(crate) sub: String,
    pub(crate) result: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) invocation_id: Option<String>,
}

impl Unit {
    /// Whether its process is at work.
    pub(crate) fn is_running(&self) -> bool {
        self.loaded
            && (matches!(self.active.as_str(), "activating" | "deactivating" | "reloading")
                || self.active == "active" && self.sub != "exited")
    }
}

/// Asks systemd for the unit.
pub(crate) fn show(client: &mut Client) -> Result<Unit, Refused> {
    let ended =
        Job::kept(program::SYSTEMCTL, &["show", UNIT, PROPERTIES], TIMEOUT_S).run(client)?;
    if !ended.well() {
        return Err(Refused::new(
            Code::Internal,
            format!("systemctl show {}: {}", ended.how(), crate::kernels::last_line(&ended)),
        ));
    }
    Ok(parse(&ended.stdout.text()))
}

fn parse(text: &str) -> Unit {
    let mut unit = Unit::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once('=') else { continue };
        match key {
            "LoadState" => unit.loaded = value == "loaded",
            "ActiveState" => unit.active = value.to_owned(),
            "SubState" => unit.sub = value.to_owned(),
            "Result" => unit.result = value.to_owned(),
            "ExecMainStatus" => unit.exit_code = value.parse().ok(),
            "InvocationID" => {
                unit.invocation_id = Some(value.to_owned()).filter(|id| !id.is_empty());
            }
            _ => {}
        }
    }
    unit
}

/// New lines of one run's journal, oldest first, and where they end.
pub(crate) fn lines(
    invocation_id: &str,
    cursor: Option<&str>,
    client: &mut Client,
) -> Result<(Vec<String>, Option<String>), Refused> {
    let run = format!("_SYSTEMD_INVOCATION_ID={invocation_id}");
    let after = cursor.map(|cursor| format!("--after-cursor={cursor}"));
    let mut args = vec!["--quiet", "--no-pager", "--output=json", "--output-fields=MESSAGE"];
    args.extend(after.as_deref());
    args.push(&run);
    let ended = Job::kept(program::JOURNALCTL, &args, TIMEOUT_S).run(client)?;
    if !ended.well() {
        let message = format!("journalctl {}: {}", ended.how(), crate::kernels::last_line(&ended));
        let code = if cursor.is_some() { Code::Argument } else { Code::Internal };
        return Err(Refused::new(code, message));
    }
    Ok(take(&ended.stdout.text(), cursor))
}

fn take(text: &str, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
    let mut last = cursor.map(str::to_owned);
    let mut lines = Vec::new();
    let mut bytes = 0;
    for line in text.lines() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        let message = message(&entry);
        bytes += message.len();
        if lines.len() == MAX_LINES || bytes > MAX_BYTES && !lines.is_empty() {
            break;
        }
        lines.push(message);
        last = entry.get("__CURSOR").and_then(Value::as_str).map(str::to_owned).or(last);
    }
    (lines, last)
}

/// A message that is not UTF-8 comes as an array of bytes.
fn message(entry: &Value) -> String {
    match entry.get("MESSAGE") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(bytes)) => {
            let bytes: Vec<u8> = bytes
                .iter()
                .filter_map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok()))
                .collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_unit_is_not_a_success() {
        let unit = parse(
            "LoadState=not-found\nActiveState=inactive\nSubState=dead\nResult=success\n\
             ExecMainStatus=0\nInvocationID=\n",
        );
        assert!(!unit.loaded && !unit.is_running());
        assert_eq!(unit.invocation_id, None);
    }

    #[test]
    fn a_unit_that_stays_after_its_end_does_not_run() {
        let unit = |active: &str, sub: &str| {
            parse(&format!("LoadState=loaded\nActiveState={active}\nSubState={sub}\n"))
        };
        for (active, sub, running) in [
            ("active", "running", true),
            ("active", "exited", false),
            ("activating", "start", true),
            ("deactivating", "stop-sigterm", true),
            ("failed", "failed", false),
            ("inactive", "dead", false),
        ] {
            assert_eq!(unit(active, sub).is_running(), running, "{active} {sub}");
        }
    }

    #[test]
    fn lines_are_taken_in_portions() {
        let entry = |n: usize| format!("{{\"__CURSOR\":\"c{n}\",\"MESSAGE\":\"line {n}\"}}\n");
        let text: String = (0..700).map(entry).collect();
        let (lines, cursor) = take(&text, None);
        assert_eq!((lines.len(), cursor.as_deref()), (500, Some("c499")));
        assert_eq!(take("", Some("c9")), (Vec::new(), Some("c9".into())));
        let odd = "{\"__CURSOR\":\"c\",\"MESSAGE\":[104,105,255]}\n";
        assert_eq!(take(odd, None).0, ["hi\u{fffd}"]);
    }
}
