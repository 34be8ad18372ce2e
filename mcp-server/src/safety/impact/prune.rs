//! Backups that a call to prune deletes, each by its volume id.

use serde_json::Value;

use crate::{
    pve::{Params, loose},
    safety::{Method, conditions::Call, shown::quoted},
};

/// Which backups go, one line each, by the answer of the same path to GET, which only tells.
pub(super) fn lines(call: &Call<'_>, out: &mut Vec<String>) {
    let template = "/nodes/{node}/storage/{storage}/prunebackups";
    if call.method != Method::Delete || call.endpoint.template != template {
        return;
    }
    let (Some(node), Some(storage)) = (call.variable("node"), call.variable("storage")) else {
        return;
    };
    let mut question = Params::new();
    for name in ["prune-backups", "type", "vmid"] {
        question = question.with_some(name, call.params.text(name));
    }
    let path = ["nodes", node, "storage", storage, "prunebackups"];
    // What goes is decided on, not only told.
    let Some(rows) = call.facts.ask(&path, question).ok().and_then(Value::as_array) else {
        out.push("which backups go: cannot be seen".to_owned());
        return;
    };
    let goes = |row: &&Value| loose::str(row, "mark") == Some("remove");
    let gone: Vec<&Value> = rows.iter().filter(goes).collect();
    out.push(match gone.len() {
        0 => "no backup goes".to_owned(),
        count => format!("{count} of {} backups go", rows.len()),
    });
    for row in gone {
        let volume = loose::str(row, "volid").unwrap_or_default();
        let made = loose::int(row, "ctime").and_then(|t| jiff::Timestamp::from_second(t).ok());
        let made = made.map(|t| format!(", made {t}")).unwrap_or_default();
        out.push(format!("backup {} goes{made}", quoted(volume)));
    }
}
