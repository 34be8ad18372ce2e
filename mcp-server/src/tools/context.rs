//! What a tool works with: reads, and finding guests and nodes by what people call them.

use std::sync::Arc;

use serde_json::Value;

use super::{Session, validate};
use crate::{
    Code, Error, Result,
    app::App,
    insight::estate::Guest,
    pve::{ApiPath, NodeName, Params, Vmid, loose},
    safety::{Caller, Method, Operation},
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
        self.may_read(path, params)?;
        if !self.app.config.audit.reads {
            return self.shown(path, self.app.pve.get(path, params).await?).await;
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
        self.shown(path, read?).await
    }

    /// All guests of the cluster that may be read.
    ///
    /// # Errors
    /// What the read answers.
    pub async fn guests(self) -> Result<Arc<Vec<Guest>>> {
        let resources =
            self.get_with(&["cluster", "resources"], Params::new().with("type", "vm")).await?;
        Ok(self.app.guests_of(&resources))
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
