//! What reads show where `PROXMOX_READ_VMIDS=allowed` hides guests: nothing of those, whichever
//! way an answer names them.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value};

use super::Ctx;
use crate::{
    Code, Error, Result,
    pve::{ApiPath, Params, Vmid, loose, params::split_list},
    safety::{Fresh, PATIENCE, State, volume},
};

/// Tasks that are about several guests and tell so in their logs alone.
const OF_SEVERAL: [&str; 8] = [
    "vzdump",
    "startall",
    "stopall",
    "suspendall",
    "migrateall",
    "bulkstart",
    "bulkshutdown",
    "bulkmigrate",
];
/// Before the VMID in ids of HA, of the resources and of permissions.
const PREFIXES: [&str; 9] =
    ["vm:", "ct:", "service:vm:", "service:ct:", "qemu/", "lxc/", "/vms/", "fa:vm:", "fa:ct:"];

impl<'a> Ctx<'a> {
    /// Whether a guest may be read (`PROXMOX_READ_VMIDS=allowed`).
    ///
    /// # Errors
    /// `vmid_denied`.
    pub fn may_see(self, vmid: Vmid) -> Result<()> {
        if self.sees(vmid) {
            return Ok(());
        }
        Err(Error::new(Code::VmidDenied, format!("guest {vmid} is hidden from reads"))
            .hint("PROXMOX_READ_VMIDS=allowed shows only the guests of PROXMOX_ALLOWED_VMIDS")
            .with("vmid", vmid.get()))
    }

    /// Whether a guest may be read, as a yes or no for filters.
    #[must_use]
    pub fn sees(self, vmid: Vmid) -> bool {
        let config = &self.app.config;
        !config.read_allowed_only
            || (config.allowed_vmids.as_ref().is_none_or(|set| set.contains(vmid))
                && !config.denied_vmids.contains(vmid))
    }

    /// The rows of a list without those of hidden guests.
    pub fn visible<'v>(self, rows: &'v Value) -> impl Iterator<Item = &'v Value> + use<'v, 'a> {
        let all = !self.app.config.read_allowed_only;
        loose::rows(rows)
            .iter()
            .filter(move |row| all || owners(row).into_iter().all(|vmid| self.sees(vmid)))
    }

    /// Whether a path or its parameters name a guest that is hidden.
    ///
    /// # Errors
    /// `vmid_denied`.
    pub(super) fn may_read(self, path: &ApiPath, params: &Params) -> Result<()> {
        if !self.app.config.read_allowed_only {
            return Ok(());
        }
        let segments: Vec<&str> = path.segments().collect();
        if let ["nodes", _, "qemu" | "lxc", vmid, ..] = segments.as_slice()
            && let Ok(vmid) = Vmid::parse(vmid)
        {
            self.may_see(vmid)?;
        }
        let replication = segments.contains(&"replication");
        for segment in &segments {
            let job = segment.split_once('-').map(|(id, _)| id).filter(|_| replication);
            let named =
                numbered(segment).into_iter().chain(job.and_then(|id| Vmid::parse(id).ok()));
            for vmid in named.chain(of_upid(segment)) {
                self.may_see(vmid)?;
            }
        }
        let of_several = segments.iter().any(|s| {
            let mut fields = s.split(':').skip(5);
            s.starts_with("UPID:")
                && fields.next().is_some_and(|kind| OF_SEVERAL.contains(&kind))
                && fields.next() == Some("")
        });
        if of_several && segments.last() == Some(&"log") {
            return Err(Error::new(
                Code::VmidDenied,
                "the log is about several guests, of which some are hidden from reads",
            )
            .hint("PROXMOX_READ_VMIDS=allowed shows only the guests of PROXMOX_ALLOWED_VMIDS"));
        }
        // A volume is named with its storage or without.
        let below = segments.iter().position(|s| *s == "content").map_or(usize::MAX, |at| at + 1);
        let volumes = segments
            .iter()
            .enumerate()
            .filter(|(at, s)| *at >= below || s.contains(':') && !s.starts_with("UPID:"))
            .map(|(_, s)| *s);
        let given = ["volume", "volid"].iter().filter_map(|name| params.text(name));
        for vmid in volumes.chain(given).flat_map(volume::owners) {
            self.may_see(vmid)?;
        }
        Ok(())
    }

    /// An answer without what it says of hidden guests.
    ///
    /// # Errors
    /// `vmid_denied` for an object that belongs to one.
    pub(super) async fn shown(self, path: &ApiPath, answer: Arc<Value>) -> Result<Arc<Value>> {
        if !self.app.config.read_allowed_only {
            return Ok(answer);
        }
        let mut value = (*answer).clone();
        if value.is_object() {
            self.narrow(&mut value);
            for vmid in owners(&value) {
                self.may_see(vmid)?;
            }
        }
        self.hide(&mut value);
        if is_text(path) {
            let hidden = self.hidden().await?;
            hide_lines(&mut value, &hidden);
        }
        Ok(Arc::new(value))
    }

    /// The guests that exist and are hidden.
    async fn hidden(self) -> Result<BTreeSet<Vmid>> {
        let path = ApiPath::of(&["cluster", "resources"])?;
        let all = self.app.pve.get(&path, &Params::new().with("type", "vm")).await?;
        let ids = loose::rows(&all).iter().filter_map(|row| loose::uint(row, "vmid"));
        Ok(ids.filter_map(|n| Vmid::new(n).ok()).filter(|vmid| !self.sees(*vmid)).collect())
    }

    /// Takes hidden guests out of the lists of a row that names others too: what stays is true of
    /// those. A list of hidden ones alone stays, and with it the row goes.
    fn narrow(self, row: &mut Value) {
        let Value::Object(map) = row else { return };
        for key in ["vmid", "vms", "exclude", "resources"] {
            let Some(Value::String(list)) = map.get_mut(key) else { continue };
            let guest = |text: &str| Vmid::parse(text).ok().or_else(|| numbered(text));
            let all: Vec<&str> = split_list(list).collect();
            let shown: Vec<&str> = all
                .iter()
                .copied()
                .filter(|text| guest(text).is_none_or(|vmid| self.sees(vmid)))
                .collect();
            if shown.len() < all.len() && (!shown.is_empty() || key == "exclude") {
                *list = shown.join(",");
            }
        }
    }

    /// Takes what belongs to hidden guests out of an answer, wherever it stands in it.
    fn hide(self, value: &mut Value) {
        match value {
            Value::Array(rows) => {
                rows.iter_mut().for_each(|row| self.narrow(row));
                rows.retain(|row| owners(row).into_iter().all(|vmid| self.sees(vmid)));
                rows.iter_mut().for_each(|row| self.hide(row));
            }
            Value::Object(map) => {
                let shown = |name: &String| numbered(name).is_none_or(|vmid| self.sees(vmid));
                let all = std::mem::take(map);
                *map = all.into_iter().filter(|(name, _)| shown(name)).collect::<Map<_, _>>();
                map.values_mut().for_each(|v| self.hide(v));
            }
            _ => {}
        }
    }
}

/// The estate as the caller may see it, for what is told but not decided on.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a>(pub Ctx<'a>);

impl State for Shown<'_> {
    async fn get(&self, path: &ApiPath, params: &Params) -> Result<Arc<Value>> {
        self.0.may_read(path, params)?;
        let answer = self.0.app.pve.get_fresh(path, params).await?;
        self.0.shown(path, answer).await
    }

    async fn changes(&self, path: &ApiPath) -> Result<Arc<Value>> {
        self.0.may_read(path, &Params::new())?;
        State::changes(&Fresh(&self.0.app.pve), path).await
    }

    async fn patience(&self) {
        tokio::time::sleep(PATIENCE).await;
    }
}

/// Whether an answer is lines of text in which guests are named by their number.
fn is_text(path: &ApiPath) -> bool {
    let last = path.segments().last();
    matches!(last, Some("log" | "journal" | "syslog"))
}

/// Takes lines that name one of these guests out.
fn hide_lines(value: &mut Value, hidden: &BTreeSet<Vmid>) {
    let Value::Array(lines) = value else { return };
    lines.retain(|line| {
        let text = match line {
            Value::String(text) => Some(text.as_str()),
            line => ["msg", "t"].iter().find_map(|key| loose::str(line, key)),
        };
        !text.is_some_and(|text| mentions(text, hidden))
    });
}

/// Whether a text has the number of one of these guests as a word.
fn mentions(text: &str, hidden: &BTreeSet<Vmid>) -> bool {
    text.split(|c: char| !c.is_ascii_digit())
        .any(|number| Vmid::parse(number).is_ok_and(|vmid| hidden.contains(&vmid)))
}

/// The VMID behind a prefix that says that it is one.
fn numbered(text: &str) -> Option<Vmid> {
    let number = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix))?;
    Vmid::parse(number.split('/').next().unwrap_or_default()).ok()
}

/// The guest of a task: a VMID, or one with a name behind it (`100@pbs`).
fn of_upid(upid: &str) -> Option<Vmid> {
    let id = upid.strip_prefix("UPID:")?.split(':').nth(5)?;
    Vmid::parse(id.split(['@', '-']).next().unwrap_or_default()).ok()
}

/// The guests that a row of a list is about, by whatever names them.
fn owners(row: &Value) -> Vec<Vmid> {
    let number = |key: &str| loose::uint(row, key).and_then(|n| Vmid::new(n).ok());
    let mut found: Vec<Vmid> = ["vmid", "guest"].into_iter().filter_map(number).collect();
    // What a backup job includes names its guests by a bare `id`.
    if matches!(loose::str(row, "type"), Some("qemu" | "lxc")) {
        found.extend(number("id"));
    }
    for key in ["sid", "id", "path"] {
        let text = loose::str(row, key);
        found.extend(text.and_then(numbered));
        // `100-0` of replication.
        let job = text.filter(|_| key == "id" && row.get("guest").is_some());
        found.extend(job.and_then(|id| Vmid::parse(id.split('-').next()?).ok()));
    }
    for key in ["volid", "volume"] {
        found.extend(loose::str(row, key).into_iter().flat_map(volume::owners));
    }
    // Jobs and rules name several; a task names its guest inside its id.
    let several =
        ["vmid", "vms"].iter().filter_map(|key| loose::str(row, key)).flat_map(split_list);
    found.extend(several.filter_map(|text| Vmid::parse(text).ok()));
    let resources = loose::str(row, "resources").into_iter().flat_map(split_list);
    found.extend(resources.filter_map(numbered));
    found.extend(loose::str(row, "upid").and_then(of_upid));
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_belongs_to_every_guest_that_it_names() {
        for (row, want) in [
            (json!({"vmid": 100}), vec![100]),
            (json!({"vmid": "100"}), vec![100]),
            (json!({"id": "backup-1", "vmid": "100,102; 103"}), vec![100, 102, 103]),
            (
                json!({"upid": "UPID:pve1:00000001:00000001:6B0CC19F:qmstart:104:mcp@pve!full:"}),
                vec![104],
            ),
            (json!({"upid": "UPID:pve1:00000001:00000001:6B0CC19F:aptupdate::root@pam:"}), vec![]),
            (json!({"sid": "vm:105"}), vec![105]),
            (json!({"id": "lxc/106"}), vec![106]),
            (json!({"id": "service:ct:106"}), vec![106]),
            (json!({"id": 108, "type": "qemu", "name": "db"}), vec![108]),
            (json!({"id": 108, "type": "other"}), vec![]),
            (json!({"id": "109-0", "guest": 109}), vec![109]),
            (json!({"rule": "r", "resources": "vm:110,ct:111"}), vec![110, 111]),
            (json!({"path": "/vms/112", "roleid": "PVEVMUser"}), vec![112]),
            (json!({"path": "/mnt/pve/112"}), vec![]),
            (json!({"volid": "local:107/vm-107-disk-0.raw"}), vec![107]),
            (json!({"node": "pve1"}), vec![]),
        ] {
            let mut found: Vec<u32> = owners(&row).iter().map(|v| v.get()).collect();
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, want, "{row}");
        }
    }

    #[test]
    fn lines_that_name_a_hidden_guest_are_gone() {
        let hidden = BTreeSet::from([Vmid::new(102).unwrap()]);
        let mut lines = json!([
            {"n": 1, "t": "start VM 102: UPID"},
            {"n": 2, "t": "start VM 1020"},
            {"msg": "replication job 102-0 failed"},
            {"msg": "all quiet"},
            "tap102i0: link up",
            "tap1i0: link up",
        ]);
        hide_lines(&mut lines, &hidden);
        assert_eq!(
            lines,
            json!([{"n": 2, "t": "start VM 1020"}, {"msg": "all quiet"}, "tap1i0: link up"])
        );
    }
}
