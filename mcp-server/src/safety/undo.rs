//! The state that a change replaced, kept so that it can be put back.
//!
//! Changes of guest configuration (tags and notes are part of it) and snapshot
//! texts are kept in the state directory under the id of the call. The inverse
//! is a call like any other and goes through the whole gate; it is refused when
//! the object has changed since.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Method, Operation, files, volume};
use crate::{
    Code, Error, Result,
    pve::{ApiPath, ParamValue, Params, loose},
};

/// Parameters of a configuration change that are no options.
const NOT_OPTIONS: [&str; 8] = [
    "delete",
    "revert",
    "digest",
    "skiplock",
    "force",
    "background_delay",
    "lock",
    "import-working-storage",
];

/// Options whose value is never given back by Proxmox, so that it cannot be put back.
const UNREADABLE: [&str; 1] = ["cipassword"];

/// What is kept of one change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The id of the call in the audit log.
    pub id: u64,
    /// The path of the object.
    pub path: String,
    /// The former values of the options that were changed.
    pub set: Map<String, Value>,
    /// The options that the object did not have.
    pub unset: Vec<String>,
    /// The object's digest after the change, once it is known.
    pub digest: Option<String>,
}

/// Keeps and finds former states.
#[derive(Debug, Clone)]
pub struct Undo {
    dir: PathBuf,
}

/// What a change replaces; `None` where there is no undo. `before` is the
/// object as it was read right before the change.
#[must_use]
pub fn replaced(id: u64, op: &Operation, before: &Value) -> Option<Kept> {
    if !matches!(op.method, Method::Put | Method::Post) || !covers(&op.path) || !before.is_object()
    {
        return None;
    }
    let given = op.params.iter().map(|(name, _)| name).filter(|n| !NOT_OPTIONS.contains(n));
    let deleted = op.params.members("delete");
    // What takes a volume away cannot be put back by an option.
    if op.params.members("delete").any(|name| super::api::indexed(name) == Some("unused")) {
        return None;
    }
    let mut kept =
        Kept { id, path: op.path.to_string(), set: Map::new(), unset: Vec::new(), digest: None };
    for name in given.chain(deleted) {
        if UNREADABLE.contains(&name) {
            return None;
        }
        match loose::text(before, name) {
            Some(value) => {
                kept.set.insert(name.to_owned(), value.into());
            }
            None => kept.unset.push(name.to_owned()),
        }
    }
    (!kept.set.is_empty() || !kept.unset.is_empty()).then_some(kept)
}

/// Whether an object's former state is kept.
fn covers(path: &ApiPath) -> bool {
    let segments: Vec<&str> = path.segments().collect();
    matches!(
        segments.as_slice(),
        ["nodes", _, "qemu" | "lxc", _, "config"]
            | ["nodes", _, "qemu" | "lxc", _, "snapshot", _, "config"]
    )
}

impl Kept {
    /// The call that puts the former state back.
    ///
    /// # Errors
    /// `digest_changed` when the object has changed since; `now` is the object as it is.
    pub fn inverse(&self, now: &Value) -> Result<Operation> {
        let path = ApiPath::parse(&self.path)?;
        if let Some(after) = &self.digest
            && loose::str(now, "digest") != Some(after)
        {
            return Err(Error::new(Code::DigestChanged, format!("{path} has changed since"))
                .hint("look at it and set the former values by hand; the audit record has them"));
        }
        let mut params = Params::new();
        for (name, value) in &self.set {
            if let Some(text) = value.as_str() {
                params.set(name, ParamValue::One(text.to_owned()));
            }
        }
        let gone: Vec<&str> = self
            .unset
            .iter()
            .map(String::as_str)
            .filter(|n| loose::some(now, n).is_some())
            .collect();
        if !gone.is_empty() {
            params = params.with("delete", gone.join(","));
        }
        if let Some(digest) = loose::str(now, "digest") {
            params = params.with("digest", digest);
        }
        Ok(Operation { method: Method::Put, path, params })
    }

    /// What the inverse cannot bring back, in plain words.
    #[must_use]
    pub fn limits(&self, now: &Value) -> Vec<String> {
        let made = |name: &String| {
            let text = loose::text(now, name)?;
            let volume = text.split(',').next()?.to_owned();
            volume::owner(&volume)
                .map(|_| format!("the disk {volume} of {name} is detached, not deleted"))
        };
        self.unset.iter().filter_map(made).collect()
    }
}

impl Undo {
    /// In the state directory of the server.
    #[must_use]
    pub fn new(state: &Path) -> Self {
        Self { dir: state.join("undo") }
    }

    /// Keeps a former state.
    ///
    /// # Errors
    /// `internal` where the state directory cannot be written.
    pub fn keep(&self, kept: &Kept) -> Result<()> {
        let unusable = |e: std::io::Error| {
            Error::internal(format!("{} cannot be written: {e}", self.dir.display()))
        };
        files::private_dir(&self.dir).map_err(unusable)?;
        let text = serde_json::to_string(kept).map_err(|e| Error::internal(e.to_string()))?;
        files::replace(&self.file(kept.id), text.as_bytes()).map_err(unusable)
    }

    /// Finds what is kept of a call.
    ///
    /// # Errors
    /// `not_found` where nothing is.
    pub fn find(&self, id: u64) -> Result<Kept> {
        std::fs::read_to_string(self.file(id))
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .ok_or_else(|| {
                Error::new(Code::NotFound, format!("nothing is kept of the change {id}"))
                    .hint("changes of guest options, tags, notes and snapshot texts can be undone; pve_audit_log names their ids")
            })
    }

    fn file(&self, id: u64) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::safety::testing::operation;

    const CONFIG: &str = "PUT /nodes/pve1/qemu/100/config";

    #[test]
    fn a_volume_that_goes_is_not_put_back() {
        let before = json!({"unused0": "a:vm-100-disk-1", "tags": "a"});
        for gone in ["unused0", "tags,unused0", "tags; unused0"] {
            let op = operation(CONFIG, json!({"delete": gone}));
            assert!(replaced(1, &op, &before).is_none(), "{gone}");
        }
    }

    #[test]
    fn the_inverse_puts_the_former_state_back() {
        let before = json!({"cores": 2, "tags": "a;b", "description": "old", "digest": "d0"});
        let op = operation(
            CONFIG,
            json!({"cores": 4, "onboot": 1, "delete": "tags,balloon", "digest": "d0"}),
        );
        let mut kept = replaced(12, &op, &before).unwrap();
        kept.digest = Some("d1".to_owned());
        let now = json!({"cores": 4, "onboot": 1, "description": "old", "digest": "d1"});
        let inverse = kept.inverse(&now).unwrap();
        assert_eq!(inverse.path.as_str(), "/nodes/pve1/qemu/100/config");
        assert_eq!(
            inverse.params.to_json(),
            json!({"cores": "2", "tags": "a;b", "delete": "onboot", "digest": "d1"})
        );
        let changed = json!({"cores": 4, "digest": "d2"});
        assert_eq!(kept.inverse(&changed).unwrap_err().code, Code::DigestChanged);
    }

    #[test]
    fn what_cannot_be_undone_is_not_kept() {
        let before = json!({"cores": 2});
        for (call, params) in [
            ("DELETE /nodes/pve1/qemu/100", json!({})),
            ("POST /nodes/pve1/qemu/100/status/stop", json!({})),
            (CONFIG, json!({"cipassword": "x"})),
            (CONFIG, json!({"digest": "x"})),
        ] {
            assert_eq!(replaced(1, &operation(call, params), &before), None, "{call}");
        }
        assert_eq!(replaced(1, &operation(CONFIG, json!({"cores": 1})), &Value::Null), None);
    }

    #[test]
    fn states_are_found_by_their_id_alone() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::new(dir.path());
        let kept =
            replaced(12, &operation(CONFIG, json!({"cores": 1})), &json!({"cores": 2})).unwrap();
        undo.keep(&kept).unwrap();
        assert_eq!(undo.find(12).unwrap(), kept);
        assert_eq!(undo.find(13).unwrap_err().code, Code::NotFound);
    }
}
