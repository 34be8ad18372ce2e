//! Retention, storages and what is put on them.

use serde_json::Value;

use super::{Call, Param};
use crate::pve::{Params, loose, params::boolean};

/// Whether a retention deletes nothing: `keep-all=1` alone, or none at all.
fn keeps_all(retention: Option<&Value>) -> bool {
    let keep_all = |key: &str, value: &str| key == "keep-all" && boolean(value) == Some(true);
    match retention {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => {
            let mut parts = text.split(',').filter(|p| !p.is_empty()).peekable();
            parts.peek().is_none()
                || parts
                    .all(|p| p.split_once('=').is_some_and(|(k, v)| keep_all(k.trim(), v.trim())))
        }
        Some(object @ Value::Object(_)) => loose::flag(object, "keep-all"),
        Some(_) => false,
    }
}

/// A backup made now deletes older ones: `remove` is on unless it is 0, and a retention applies.
pub fn prunes_now(call: &Call<'_>) -> bool {
    if call.params.flag("remove") == Some(false) || call.params.has("prune-backups") {
        return false;
    }
    let Some(node) = call.variable("node") else { return true };
    let question = Params::new().with_some("storage", call.params.text("storage"));
    match call.facts.ask(&["nodes", node, "vzdump", "defaults"], question) {
        Ok(defaults) if defaults.is_object() => {
            !keeps_all(defaults.get("prune-backups"))
                || defaults.get("maxfiles").is_some()
                || storage_prunes(call)
        }
        _ => true,
    }
}

/// The storage that is named has a retention of its own; one that cannot be read counts.
fn storage_prunes(call: &Call<'_>) -> bool {
    let Some(storage) = call.params.text("storage") else { return false };
    match call.facts.ask(&["storage", storage], Params::new()) {
        Ok(definition) if definition.is_object() => {
            definition.get("prune-backups").is_some_and(|kept| !keeps_all(Some(kept)))
        }
        _ => true,
    }
}

/// A job deletes older backups by the retention of its storage.
pub fn job_prunes(call: &Call<'_>) -> bool {
    let remove = call.params.flag("remove");
    let asked = match call.variable("id") {
        None => remove != Some(false),
        Some(_) => remove == Some(true),
    };
    if !asked || call.params.has("prune-backups") {
        return false;
    }
    let stored = call.variable("id").and_then(|id| {
        let job = call.facts.ask(&["cluster", "backup", id], Params::new()).ok()?;
        loose::text(job, "storage")
    });
    let Some(storage) = call.params.text("storage").map(str::to_owned).or(stored) else {
        return true;
    };
    match call.facts.ask(&["storage", &storage], Params::new()) {
        Ok(definition) if definition.is_object() => !keeps_all(definition.get("prune-backups")),
        _ => true,
    }
}

/// The retention of a storage lets backups go.
pub fn retention_deletes(call: &Call<'_>, param: &Param<'_>) -> bool {
    let parts = param.parts(call);
    !(parts.is("keep-all", "1") && parts.iter().count() == 1)
}

/// Where directories of storages may be.
const STORAGE_PLACES: [&str; 3] = ["/mnt", "/srv", "/var/lib/vz"];

/// The directory is outside the places where storages usually are.
pub fn path_outside(_call: &Call<'_>, param: &Param<'_>) -> bool {
    !param.value.values().iter().all(|text| {
        let parts: Vec<&str> = text.split('/').filter(|p| !p.is_empty()).collect();
        let folded = format!("/{}/", parts.join("/"));
        text.starts_with('/')
            && !parts.iter().any(|p| matches!(*p, "." | ".."))
            && STORAGE_PLACES.iter().any(|place| folded.starts_with(&format!("{place}/")))
    })
}

/// A template or an image to import comes without a checksum.
pub fn unchecked_download(call: &Call<'_>) -> bool {
    // To Proxmox an empty checksum and 0 are none.
    call.params.text("checksum").is_none_or(|sum| matches!(sum.trim(), "" | "0"))
        && call.params.text("content").is_some_and(|c| matches!(c, "vztmpl" | "import"))
}

/// A file name as the server makes it of a wish: the last part, odd characters as `_`.
fn stored_name(wish: &str) -> String {
    let last = wish.rsplit(['/', '\\']).next().unwrap_or_default();
    last.chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') { c } else { '_' })
        .collect()
}

/// A file of this name is on the storage, or that cannot be known.
pub fn overwrites_file(call: &Call<'_>) -> bool {
    let wish = ["filename", "template", "reference"].iter().find_map(|n| call.params.text(n));
    let storage = call.variable("storage").or_else(|| call.params.text("storage"));
    let (Some(wish), Some(storage), Some(node)) = (wish, storage, call.variable("node")) else {
        return true;
    };
    let question = ["nodes", node, "storage", storage, "content"];
    let Ok(answer) = call.facts.ask(&question, Params::new()) else { return true };
    let Value::Array(rows) = answer else { return true };
    let name = stored_name(wish);
    rows.iter().filter_map(|row| loose::str(row, "volid")).any(|volid| {
        let there = volid.rsplit(['/', ':']).next().unwrap_or_default();
        // An image of a registry is stored under its name with an ending of its own.
        there == name || there.strip_suffix(".tar") == Some(&name)
    })
}
