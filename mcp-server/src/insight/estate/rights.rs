//! What the token may do, from `GET /access/permissions`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Guest, Storage};

/// Privileges by path. The answer lists effective privileges at every path
/// that an access rule or a pool names; below those, what propagates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights(BTreeMap<String, Held>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Held {
    here: BTreeSet<String>,
    below: BTreeSet<String>,
}

impl Rights {
    pub(super) fn read(value: &Value) -> Self {
        let mut rights = Self::default();
        for (path, privileges) in value.as_object().into_iter().flatten() {
            let held = rights.0.entry(path.clone()).or_default();
            for (privilege, propagate) in privileges.as_object().into_iter().flatten() {
                held.here.insert(privilege.clone());
                // The value says whether it propagates; 0 still grants it here.
                if crate::pve::loose::as_int(propagate) != Some(0) {
                    held.below.insert(privilege.clone());
                }
            }
        }
        rights
    }

    /// Whether the token holds a privilege at a path.
    #[must_use]
    pub fn has(&self, path: &str, privilege: &str) -> bool {
        if let Some(held) = self.0.get(path) {
            return held.here.contains(privilege);
        }
        let mut path = path;
        while let Some((parent, _)) = path.rsplit_once('/') {
            let parent = if parent.is_empty() { "/" } else { parent };
            if let Some(held) = self.0.get(parent) {
                return held.below.contains(privilege);
            }
            if parent == "/" {
                break;
            }
            path = parent;
        }
        false
    }

    /// Whether the token holds a privilege at a path and all that is below it by
    /// propagation, so that a list of what is there is whole.
    #[must_use]
    pub fn throughout(&self, path: &str, privilege: &str) -> bool {
        let own = match self.0.get(path) {
            Some(held) => held.below.contains(privilege),
            None => self.has(path, privilege),
        };
        let prefix = format!("{}/", path.trim_end_matches('/'));
        own && self
            .0
            .iter()
            .filter(|(below, _)| below.starts_with(&prefix))
            .all(|(_, held)| held.here.contains(privilege))
    }

    /// Whether the token holds a privilege at a path or anywhere below.
    #[must_use]
    pub fn anywhere(&self, path: &str, privilege: &str) -> bool {
        let prefix = format!("{}/", path.trim_end_matches('/'));
        self.has(path, privilege)
            || self
                .0
                .iter()
                .any(|(below, held)| below.starts_with(&prefix) && held.here.contains(privilege))
            // A pool gives its members' privileges.
            || (path == "/vms" && self.anywhere("/pool", privilege))
    }

    fn has_on_guest(&self, guest: &Guest, privilege: &str) -> bool {
        self.has(&format!("/vms/{}", guest.vmid), privilege)
            || guest.pool.as_ref().is_some_and(|pool| self.has(&format!("/pool/{pool}"), privilege))
    }

    /// Why the token does not see a guest's backups on a storage: the list leaves
    /// them out silently.
    #[must_use]
    pub fn hides_backups(&self, guest: &Guest, storage: &str) -> Option<String> {
        let path = format!("/storage/{storage}");
        if self.has(&path, "Datastore.Allocate") {
            return None;
        }
        let mut missing = Vec::new();
        if !self.has(&path, "Datastore.AllocateSpace") {
            missing.push(format!("Datastore.AllocateSpace on {path}"));
        }
        if !self.has_on_guest(guest, "VM.Backup") {
            // Without the VMID, so that many guests make one line.
            missing.push("VM.Backup on the guest".to_owned());
        }
        (!missing.is_empty()).then(|| format!("the token lacks {}", missing.join(" and ")))
    }

    /// Why the token does not see the disk images on a storage.
    #[must_use]
    pub fn hides_volumes(&self, storage: &Storage) -> Option<String> {
        let path = format!("/storage/{}", storage.id);
        (!self.has(&path, "Datastore.Allocate"))
            .then(|| format!("the token lacks Datastore.Allocate on {path}"))
    }
}
