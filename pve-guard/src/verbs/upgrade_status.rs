//! `upgrade-status`: how the upgrade stands, also after a restart.

use crate::apt::record::{End, Record};
use crate::apt::status::{self, Unit};
use crate::apt::unit::UNIT;
use crate::client::Client;
use crate::kernels;
use crate::node;
use crate::protocol::{Code, Refused, RunState, UpgradeStatus};

pub(super) fn run(cursor: Option<&str>, client: &mut Client) -> Result<UpgradeStatus, Refused> {
    let internal = |error: std::io::Error| Refused::new(Code::Internal, error.to_string());
    if cursor.is_some_and(|cursor| !cursor.chars().all(is_cursor_char)) {
        return Err(Refused::new(Code::Argument, "cursor is not what upgrade-status gives"));
    }
    // The unit writes its result before it ends: what is read after its end was seen is whole.
    let mut unit = status::show(client)?;
    let record = Record::read().map_err(internal)?;
    if !unit.is_running() && record.as_ref().is_some_and(|record| record.end.is_none()) {
        // Another run may have begun in between.
        unit = status::show(client)?;
    }
    let (state, record) = judge(&unit, record);
    let invocation_id = match (&record, &unit.invocation_id) {
        (Some(record), _) => Some(record.invocation_id.clone()),
        (None, id) => id.clone().filter(|_| unit.loaded),
    };
    let (lines, cursor) = match &invocation_id {
        Some(id) => status::lines(id, cursor, client)?,
        None => (Vec::new(), cursor.map(str::to_owned)),
    };
    let kernel = kernels::change(&[]).map_err(internal)?;
    let end = record.as_ref().and_then(|record| record.end.clone());
    let failed_by_systemd = state == RunState::Failed && end.is_none();
    let of_systemd = |value: String| failed_by_systemd.then_some(value);
    Ok(UpgradeStatus {
        state,
        unit: UNIT.into(),
        invocation_id,
        plan: record.as_ref().map(|record| record.plan.clone()),
        active_state: unit.loaded.then(|| unit.active.clone()),
        result: match &end {
            Some(End { result, .. }) => Some(result.clone()),
            None => of_systemd(unit.result.clone()),
        },
        exit_code: end.as_ref().and_then(|end| end.exit_code),
        message: match (&end, state) {
            (Some(end), _) => Some(end.message.clone()),
            (None, RunState::Unknown) => Some(cut_off(record.as_ref())),
            _ => None,
        },
        started: record.as_ref().map(|record| record.started),
        finished: end.as_ref().map(|end| end.finished),
        kept_conffiles: end.map(|end| end.kept_conffiles).unwrap_or_default(),
        lines,
        cursor,
        reboot_needed: kernels::reboot_needed(&kernel),
        kernel,
    })
}

/// What journalctl puts into cursors.
const fn is_cursor_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '=' | ';' | '-' | '_')
}

/// Brings together what the file and what systemd say. A unit that systemd
/// runs now and of which the file does not know yet is the newer run.
fn judge(unit: &Unit, record: Option<Record>) -> (RunState, Option<Record>) {
    let is_of_unit = |record: &Record| {
        unit.loaded && unit.invocation_id.as_deref() == Some(record.invocation_id.as_str())
    };
    let record = record.filter(|record| !unit.is_running() || is_of_unit(record));
    let state = match &record {
        _ if unit.is_running() && record.as_ref().is_none_or(|record| record.end.is_none()) => {
            RunState::Running
        }
        Some(Record { end: Some(end), .. }) if end.result == "success" => RunState::Succeeded,
        Some(Record { end: Some(_), .. }) => RunState::Failed,
        Some(record) if is_of_unit(record) && unit.active == "failed" => RunState::Failed,
        Some(_) => RunState::Unknown,
        None if unit.loaded && unit.active == "failed" => RunState::Failed,
        None if unit.loaded && unit.active != "inactive" => RunState::Unknown,
        None => RunState::Never,
    };
    (state, record)
}

fn cut_off(record: Option<&Record>) -> String {
    let restarted =
        record.is_some_and(|record| node::boot_id().is_ok_and(|now| now != record.boot_id));
    if restarted {
        "the node was restarted before the upgrade had ended; look at dpkg --audit".into()
    } else {
        "the upgrade ended without a result; look at dpkg --audit".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, result: Option<&str>) -> Record {
        Record {
            invocation_id: id.into(),
            plan: "p".into(),
            boot_id: "b".into(),
            started: 1,
            end: result.map(|result| End {
                finished: 2,
                result: result.into(),
                exit_code: Some(0),
                message: String::new(),
                kept_conffiles: Vec::new(),
            }),
        }
    }

    fn unit(loaded: bool, active: &str, sub: &str, id: &str) -> Unit {
        Unit {
            loaded,
            active: active.into(),
            sub: sub.into(),
            result: "success".into(),
            exit_code: Some(0),
            invocation_id: Some(id.to_owned()).filter(|id| !id.is_empty()),
        }
    }

    #[test]
    fn success_is_only_what_the_run_itself_wrote() {
        let gone = unit(false, "inactive", "dead", "");
        let cases = [
            (gone.clone(), None, RunState::Never),
            (gone.clone(), Some(record("a", None)), RunState::Unknown),
            (gone.clone(), Some(record("a", Some("success"))), RunState::Succeeded),
            (gone, Some(record("a", Some("exit-code"))), RunState::Failed),
            (
                unit(true, "active", "running", "b"),
                Some(record("a", Some("success"))),
                RunState::Running,
            ),
            (unit(true, "active", "running", "a"), Some(record("a", None)), RunState::Running),
            (unit(true, "active", "exited", "a"), Some(record("a", None)), RunState::Unknown),
            (unit(true, "failed", "failed", "a"), Some(record("a", None)), RunState::Failed),
            (unit(true, "active", "running", "a"), None, RunState::Running),
        ];
        for (unit, record, expected) in cases {
            assert_eq!(judge(&unit, record.clone()).0, expected, "{unit:?} {record:?}");
        }
    }
}
