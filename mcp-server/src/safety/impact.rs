//! What hangs on the object of a change, and how to undo it, in plain words.

mod access;
mod backup;
mod clones;
pub mod firewall;
mod guest;
mod ha;
mod network;
mod node;
mod place;
mod prune;
mod staged;
mod storage;

use serde_json::Value;

pub use self::{place::Place, staged::place};
use super::{Facts, Method, Operation, State, api::API, binding::call_of, conditions::Call};
use crate::pve::{ApiPath, Params, loose};

/// What hangs on the object, one line each. A part that cannot be seen is said to be unknown.
#[must_use]
pub fn lines(call: &Call<'_>) -> Vec<String> {
    let mut out = Vec::new();
    guest::lines(call, &mut out);
    clones::of_volume(call, &mut out);
    node::lines(call, &mut out);
    storage::lines(call, &mut out);
    backup::lines(call, &mut out);
    ha::lines(call, &mut out);
    prune::lines(call, &mut out);
    staged::lines(call, &mut out);
    network::lines(call, &mut out);
    firewall::lines(call, &mut out);
    access::lines(call, &mut out);
    out
}

/// Of the lines, those that a yes holds for: all, but where something was not read in time, which
/// may be another thing the next time, those that were waited for.
#[must_use]
pub fn agreed(call: &Call<'_>, lines: &[String]) -> Vec<String> {
    if !call.facts.is_late() {
        return lines.to_vec();
    }
    let mut out = Vec::new();
    prune::lines(call, &mut out);
    staged::lines(call, &mut out);
    out
}

/// What hangs on the object of an operation, asked of `state`.
pub async fn of(op: &Operation, state: &impl State) -> Vec<String> {
    let mut facts = Facts::default();
    facts
        .settle(state, |facts| {
            call_of(op, &op.params, facts).as_ref().map(lines).unwrap_or_default()
        })
        .await
}

/// The rows of a list, where it can be read.
fn list<'a>(call: &Call<'a>, path: &[&str]) -> Option<&'a [Value]> {
    rows(call.facts, path, Params::new())
}

fn rows<'a>(facts: &'a Facts, path: &[&str], params: Params) -> Option<&'a [Value]> {
    facts.look(path, params).ok().and_then(Value::as_array).map(Vec::as_slice)
}

/// Which guests a list of guests may lack, as far as the token's rights tell.
fn unseen_guests(facts: &Facts) -> Option<&'static str> {
    let rights = facts.look(&["access", "permissions"], Params::new()).ok()?.as_object()?;
    let audits = |path: &str| rights.get(path).map(|p| p.get("VM.Audit").is_some());
    // The value of a privilege says whether it holds below the path.
    let below = |path: &str| rights.get(path).is_some_and(|p| loose::flag(p, "VM.Audit"));
    let narrowed =
        rights.keys().any(|path| path.starts_with("/vms/") && audits(path) == Some(false));
    let all = match audits("/vms") {
        Some(_) => below("/vms"),
        None => below("/"),
    };
    (!all || narrowed).then_some("guests that the token may not see")
}

/// Numbers as a text: `100, 101`.
fn ids<'i, T: ToString + 'i>(ids: impl IntoIterator<Item = &'i T>) -> String {
    ids.into_iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// What comes nearest to undoing a call of which no former state is kept.
#[must_use]
pub fn nearest(method: Method, path: &ApiPath) -> &'static str {
    undo_hint(method, API.find(path).map_or("", |e| e.template))
}

/// Whether a POST to this path makes an object that DELETE takes away.
fn makes_one(template: &str) -> bool {
    let deleted = |endpoint: &super::api::Endpoint| endpoint.action(Method::Delete).is_some();
    let below = format!("{template}/{{");
    API.endpoints().any(|endpoint| {
        let child = endpoint.template.strip_prefix(below.as_str());
        deleted(endpoint)
            && (endpoint.template == template && template.ends_with('}')
                || child.is_some_and(|name| !name.contains('/')))
    })
}

/// How to undo a change, or that there is no undo.
#[must_use]
pub fn undo_hint(method: Method, template: &str) -> &'static str {
    if let Some((_, action)) = template.split_once("/services/{service}/") {
        return match action {
            "stop" => "start the service again",
            "start" => "stop the service again",
            _ => "none is needed: the service runs on",
        };
    }
    let last = template.rsplit('/').next().unwrap_or_default();
    match (method, last) {
        (Method::Delete, "{vmid}") => "no undo: only a backup brings the guest back",
        (Method::Delete, "{volume}" | "prunebackups") => "no undo: the data is gone",
        (Method::Delete, "{snapname}") => "no undo: the snapshot is gone, the guest stays as it is",
        (_, "rollback") => "no undo: take a snapshot of the present state first",
        (_, "suspend") => "resume the guest",
        (_, "resize") => "no undo: a disk grows and never shrinks",
        (_, "move_disk" | "move_volume") => "move it back",
        (_, "update") if template.ends_with("/apt/update") => "none is needed",
        (_, "download-url" | "oci-registry-pull" | "aplinfo" | "upload") => "delete the file",
        (_, "ping" | "fstrim") => "none is needed",
        (_, "stop" | "shutdown") => "start the guest again; unsaved data is lost",
        (_, "reset" | "reboot") => "the guest starts again by itself; unsaved data is lost",
        (_, "start") => "shut the guest down again",
        (_, "resume") => "suspend the guest again",
        (Method::Post, "snapshot") => "delete the snapshot",
        (_, "clone" | "qemu" | "lxc") => "delete the new guest",
        (Method::Put | Method::Post, "config") => {
            "pve_undo with the audit id puts the former options back"
        }
        (_, "stopall" | "suspendall") => "start the guests again; unsaved data is lost",
        (_, "startall") => "shut the guests down again",
        (_, "migrateall") => "migrate the guests back",
        (_, "template") => "no undo: clone the template back into a guest",
        (_, "migrate" | "relocate") => "migrate it back",
        (_, "vzdump") => "delete the new backup",
        (_, "status") => "the node has to be started again by hand or by wake-on-LAN",
        (Method::Delete, _) => "no undo: it has to be made anew",
        (Method::Post, _) if makes_one(template) => "delete it again",
        _ => "set the former values again",
    }
}
