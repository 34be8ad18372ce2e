//! How a command ended, as an answer.

use serde_json::{Map, Value, json};

use super::inside::Ran;
use crate::{
    Result,
    render::Answer,
    safety::deed::Place,
    tools::{Ctx, deeds::Doing},
};

/// What the record of a command keeps of its end.
pub(super) fn record(ran: &Ran) -> Value {
    json!({
        "exit_code": ran.exit_code, "signal": ran.signal, "timed_out": ran.timed_out,
        "stdout_bytes": ran.stdout.total, "stderr_bytes": ran.stderr.total,
    })
}

/// Ends a deed with what came of it, and turns that into the answer. A
/// command that fails is no error: its exit code tells.
pub(super) fn answer(
    ctx: Ctx<'_>,
    place: &Place,
    doing: Box<Doing>,
    ran: Result<Ran>,
) -> Result<Answer> {
    let mut out = doing.told();
    let ended = ran.as_ref().map(record).map_err(Clone::clone);
    let warning = doing.finish(&ended);
    let ran = ran?;
    let mut told = Map::new();
    let left = ran.timed_out && ran.pid.is_some();
    told.insert("status".into(), if left { "running" } else { "done" }.into());
    told.insert("vmid".into(), place.vmid.get().into());
    told.insert("name".into(), place.name.clone().into());
    told.append(&mut out);
    told.insert("exit_code".into(), ran.exit_code.into());
    told.insert("signal".into(), ran.signal.into());
    ran.stdout.put("stdout", &mut told, ctx.app.redactor());
    ran.stderr.put("stderr", &mut told, ctx.app.redactor());
    told.insert("timed_out".into(), ran.timed_out.into());
    told.insert("truncated".into(), (ran.stdout.cut || ran.stderr.cut).into());
    told.insert("duration_ms".into(), ran.duration_ms.into());
    if let Some(count) = ran.background.filter(|n| *n > 0) {
        told.insert("background".into(), count.into());
    }
    let mut notes = ran.notes;
    if let Some(how) = ran.guest_down {
        told.insert("guest_went_down".into(), true.into());
        notes.push(how.to_owned());
    }
    if let Some(pid) = ran.pid.filter(|_| left) {
        told.insert("pid".into(), pid.into());
        told.insert("still_running".into(), true.into());
        notes.push(format!(
            "still running in the guest as process {pid} of its agent, which cannot end it: \
             pve_vm_exec with `vmid` and `pid` {pid} asks how it stands"
        ));
    }
    if ran.timed_out && ran.pid.is_none() {
        notes.push("the time was over, and everything that the command started was ended".into());
    }
    notes.extend(warning);
    if !notes.is_empty() {
        told.insert("notes".into(), notes.into());
    }
    let heading = match (ran.exit_code, ran.signal, ran.guest_down) {
        (_, _, Some(how)) => how.to_owned(),
        (Some(code), ..) => format!("exit code {code}"),
        (None, Some(signal), _) => format!("ended by signal {signal}"),
        (None, None, _) if left => "still running".to_owned(),
        (None, None, _) => "ended".to_owned(),
    };
    let what = format!("{heading} in {} {} ({})", place.kind.noun(), place.vmid, place.name);
    Ok(Answer::new(told).heading(what).untrusted(&[
        "stdout",
        "stderr",
        "stdout_base64",
        "stderr_base64",
    ]))
}
