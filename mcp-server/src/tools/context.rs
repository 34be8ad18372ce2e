//! What a tool works with: reads, and finding guests and nodes by what people call them.

use std::sync::Arc;

use serde_json::Value;

use super::{Session, validate};
use crate::{
    Code, Error, Result,
    app::App,
    insight::estate::Guest,
    pve::{ApiPath, NodeName, Params, Vmid, loose, params::split_list},
    safety::{Caller, Method, Operation, PATIENCE, State, volume},
};

/// One call of one tool.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    /// What every call shares.
    pub app: &'a Arc<App>,
    /// Who is calling.
    pub session: &'a dyn Session,
    /// The tool that is called.
    pub tool: &'static str,
}

impl<'a> Ctx<'a> {
    /// A call's context.
    pub fn new(app: &'a Arc<App>, session: &'a dyn Session, tool: &'static str) -> Self {
        Self { app, session, tool }
    }

    /// Reads a path made of segments.
    ///
    /// # Errors
    /// `path_refused` for a segment that cannot stand in a path, and what the read answers.
    pub async fn get(self, segments: &[&str]) -> Result<Arc<Value>> {
        self.get_with(segments, Params::new()).await
    }

    /// Reads a path with parameters.
    ///
    /// # Errors
    /// As [`Ctx::get`].
    pub async fn get_with(self, segments: &[&str], params: Params) -> Result<Arc<Value>> {
        let path = ApiPath::of(segments)?;
        self.read(&path, &params).await
    }

    /// Reads a canonical path; a guest that is hidden from reads cannot be read.
    ///
    /// # Errors
    /// `vmid_denied` for a hidden guest, and what the read answers.
    pub async fn read(self, path: &ApiPath, params: &Params) -> Result<Arc<Value>> {
        let segments: Vec<&str> = path.segments().collect();
        if let ["nodes", _, "qemu" | "lxc", vmid, ..] = segments.as_slice()
            && let Ok(vmid) = Vmid::parse(vmid)
        {
            self.may_see(vmid)?;
        }
        if self.app.config.read_allowed_only {
            let named = ["volume", "volid"].iter().filter_map(|name| params.text(name));
            for vmid in named.flat_map(volume::owners) {
                self.may_see(vmid)?;
            }
        }
        if !self.app.config.audit.reads {
            return self.app.pve.get(path, params).await;
        }
        let from = std::time::Instant::now();
        let read = self.app.pve.get(path, params).await;
        if read.is_ok() {
            let client = self.session.client();
            let caller = Caller { tool: self.tool, client: &client, ..Caller::default() };
            let operation =
                Operation { method: Method::Get, path: path.clone(), params: params.clone() };
            self.app.gate.read(&operation, &caller, from.elapsed());
        }
        read
    }

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

    /// Takes the rows of hidden guests out of an answer, wherever they stand in it.
    pub fn hide(self, value: &mut Value) {
        if !self.app.config.read_allowed_only {
            return;
        }
        match value {
            Value::Array(rows) => {
                rows.retain(|row| owners(row).into_iter().all(|vmid| self.sees(vmid)));
                rows.iter_mut().for_each(|row| self.hide(row));
            }
            Value::Object(map) => map.values_mut().for_each(|v| self.hide(v)),
            _ => {}
        }
    }

    /// All guests of the cluster that may be read.
    ///
    /// # Errors
    /// What the read answers.
    pub async fn guests(self) -> Result<Arc<Vec<Guest>>> {
        let resources =
            self.get_with(&["cluster", "resources"], Params::new().with("type", "vm")).await?;
        let guests = self.app.guests_of(&resources);
        if !self.app.config.read_allowed_only {
            return Ok(guests);
        }
        Ok(Arc::new(guests.iter().filter(|g| self.sees(g.vmid)).cloned().collect()))
    }

    /// A guest by its VMID, wherever it is now.
    ///
    /// # Errors
    /// `not_found`, with why it may be invisible.
    pub async fn guest(self, vmid: Vmid) -> Result<Guest> {
        self.may_see(vmid)?;
        let guests = self.guests().await?;
        match guests.iter().find(|g| g.vmid == vmid) {
            Some(guest) => Ok(guest.clone()),
            None if guests.is_empty() => Err(self.nothing_visible().await),
            None => Err(Error::new(Code::NotFound, format!("there is no guest {vmid}"))
                .hint("pve_list_vms lists the guests that this token can see")
                .with("vmid", vmid.get())),
        }
    }

    /// A guest for a change: looked up afresh, since it may have moved.
    ///
    /// # Errors
    /// As [`Ctx::guest`].
    pub async fn guest_now(self, vmid: Vmid) -> Result<Guest> {
        self.app.pve.forget();
        self.guest(vmid).await
    }

    /// Reads below a guest. A guest that has moved in between is looked up
    /// again, once.
    ///
    /// # Errors
    /// `not_found`, and what the read answers.
    pub async fn guest_get(
        self,
        vmid: Vmid,
        below: &[&str],
        params: Params,
    ) -> Result<(Guest, Arc<Value>)> {
        let guest = self.guest(vmid).await?;
        match self.get_below(&guest, below, params.clone()).await {
            Err(error) if error.code == Code::NotFound => {
                self.app.pve.forget();
                let now = self.guest(vmid).await?;
                if now.node == guest.node {
                    return Err(error);
                }
                let value = self.get_below(&now, below, params).await?;
                Ok((now, value))
            }
            other => other.map(|value| (guest, value)),
        }
    }

    /// Reads below a guest where it is said to be.
    ///
    /// # Errors
    /// What the read answers.
    pub async fn get_below(
        self,
        guest: &Guest,
        below: &[&str],
        params: Params,
    ) -> Result<Arc<Value>> {
        let vmid = guest.vmid.to_string();
        let mut segments = vec!["nodes", &*guest.node, guest.kind.as_str(), vmid.as_str()];
        segments.extend(below);
        self.get_with(&segments, params).await
    }

    /// The names of all nodes.
    ///
    /// # Errors
    /// What the read answers.
    pub async fn node_names(self) -> Result<Vec<String>> {
        let nodes = self.get(&["nodes"]).await?;
        Ok(loose::rows(&nodes).iter().filter_map(|n| loose::text(n, "node")).collect())
    }

    /// A node as it is named in the cluster; `localhost` is the connected one.
    ///
    /// # Errors
    /// `not_found` with the nearest name, before anything is sent to it.
    pub async fn node(self, name: &str) -> Result<String> {
        if name == "localhost" {
            return Ok(name.to_owned());
        }
        let names = self.node_names().await?;
        if names.iter().any(|n| n == name) {
            return Ok(name.to_owned());
        }
        let short = name.split('.').next().unwrap_or(name);
        let near = names
            .iter()
            .find(|n| n.eq_ignore_ascii_case(short))
            .map(String::as_str)
            .or_else(|| validate::nearest(name, names.iter().map(String::as_str)));
        let error = Error::new(Code::NotFound, format!("there is no node {name:?}"))
            .with("nodes", names.clone());
        Err(match near {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error.hint(format!("nodes: {}", names.join(", "))),
        })
    }

    /// The node meant: the one named, or the only one there is.
    ///
    /// # Errors
    /// `invalid_argument` where several could be meant.
    pub async fn node_or_only(self, name: Option<&NodeName>) -> Result<String> {
        if let Some(name) = name {
            return self.node(name.as_str()).await;
        }
        let names = self.node_names().await?;
        match names.as_slice() {
            [only] => Ok(only.clone()),
            _ => Err(Error::argument("argument `node` is missing")
                .hint(format!("nodes: {}", names.join(", ")))
                .with("argument", "node")),
        }
    }

    /// Why no guest is visible: nothing there, or nothing that this token may see.
    pub async fn nothing_visible(self) -> Error {
        if self.may_audit_guests().await == Some(false) {
            return Error::new(Code::Forbidden, "0 guests visible: token lacks VM.Audit on /vms")
                .hint(
                    "a token with privilege separation (privsep=1) has only the permissions \
                     given to it: pveum acl modify /vms --tokens 'ID' --roles PVEAuditor",
                )
                .with("privilege", "VM.Audit")
                .with("path", "/vms");
        }
        Error::new(Code::NotFound, "there are no guests")
    }

    /// Whether this token has VM.Audit anywhere that matters for guests.
    pub async fn may_audit_guests(self) -> Option<bool> {
        let permissions = self.get(&["access", "permissions"]).await.ok()?;
        let paths = permissions.as_object()?;
        Some(paths.iter().any(|(path, privileges)| {
            (path == "/" || path.starts_with("/vms") || path.starts_with("/pool"))
                && privileges.get("VM.Audit").is_some()
        }))
    }
}

/// What the caller may see, hidden guests left out, from answers that may have been kept.
impl State for Ctx<'_> {
    async fn get(&self, path: &ApiPath, params: &Params) -> Result<Arc<Value>> {
        let answer = self.read(path, params).await?;
        if !self.app.config.read_allowed_only {
            return Ok(answer);
        }
        let mut answer = Value::clone(&answer);
        self.hide(&mut answer);
        Ok(Arc::new(answer))
    }

    async fn changes(&self, path: &ApiPath) -> Result<Arc<Value>> {
        State::changes(&self.app.pve, path).await
    }

    async fn patience(&self) {
        tokio::time::sleep(PATIENCE).await;
    }
}

/// The guests that a row of a list is about, by whatever names them.
fn owners(row: &Value) -> Vec<Vmid> {
    let mut found: Vec<Vmid> = ["vmid", "guest"]
        .iter()
        .filter_map(|key| loose::uint(row, key).and_then(|n| Vmid::new(n).ok()))
        .collect();
    // `vm:100` of HA, several of them in its rules, `qemu/100` of the resources.
    let sids = ["sid", "id", "resources"].iter().filter_map(|key| loose::str(row, key));
    found.extend(sids.flat_map(split_list).filter_map(|text| {
        let number = ["vm:", "ct:", "service:vm:", "service:ct:", "qemu/", "lxc/"]
            .iter()
            .find_map(|prefix| text.strip_prefix(prefix))?;
        Vmid::parse(number).ok()
    }));
    for key in ["volid", "volume"] {
        found.extend(loose::str(row, key).into_iter().flat_map(volume::owners));
    }
    // A backup job names several; a task names its guest inside its id.
    let several = loose::str(row, "vmid").into_iter().flat_map(split_list);
    let of_task = loose::str(row, "upid").and_then(|upid| upid.split(':').nth(6));
    found.extend(several.chain(of_task).filter_map(|text| Vmid::parse(text).ok()));
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::owners;

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
            (json!({"rule": "r", "resources": "vm:105,ct:106"}), vec![105, 106]),
            (json!({"id": "lxc/106"}), vec![106]),
            (json!({"volid": "local:107/vm-107-disk-0.raw"}), vec![107]),
            (json!({"node": "pve1"}), vec![]),
        ] {
            let mut found: Vec<u32> = owners(&row).iter().map(|v| v.get()).collect();
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, want, "{row}");
        }
    }
}
