//! Where things are: the cluster's nodes, and the node a guest is on.

use std::{
    collections::HashSet,
    sync::{Arc, MutexGuard, PoisonError},
    time::Instant,
};

use serde_json::Value;

use super::{
    ApiPath, NodeName, Params, Vmid,
    cache::is_kept,
    client::{Answer, Client, Inner},
    guest::{GuestKind, GuestRef},
    loose,
};
use crate::{Code, Error, Result};

impl Client {
    /// The names of the cluster's nodes, offline ones too.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn nodes(&self) -> Result<Vec<NodeName>> {
        self.inner.nodes(false, self.inner.end_of_list()).await
    }

    /// Checks a node's name before anything is sent to it; `localhost` is the
    /// node that we are connected to.
    ///
    /// # Errors
    /// `not_found` with the nearest name and the known ones.
    pub async fn node(&self, name: &str) -> Result<NodeName> {
        self.inner.check_node(name, self.inner.end_of_list()).await?;
        NodeName::parse(name)
    }

    /// Finds a guest by its number.
    ///
    /// # Errors
    /// `not_found` when there is none, or the token cannot see it.
    pub async fn guest(&self, vmid: Vmid) -> Result<GuestRef> {
        let end = self.inner.end_of_list();
        if let Some(found) = self.inner.locate(vmid, false, end).await? {
            return Ok(found);
        }
        // It may have been made since the list was kept.
        self.inner.locate(vmid, true, end).await?.ok_or_else(|| no_guest(vmid))
    }

    /// Reads `/nodes/{node}/{kind}/{vmid}/{tail}` of a guest wherever it is now.
    ///
    /// # Errors
    /// As [`Client::get`] and [`Client::guest`].
    pub async fn get_of_guest(
        &self,
        guest: &GuestRef,
        tail: &[&str],
        params: &Params,
    ) -> Result<Arc<Value>> {
        self.get(&guest.path(tail)?, params).await
    }
}

fn no_guest(vmid: Vmid) -> Error {
    Error::new(Code::NotFound, format!("there is no guest {vmid}, or the token cannot see it"))
        .hint("pve_list_vms lists the guests that this token can see")
}

/// Node, kind and number of the guest that a path is about.
fn guest_of(path: &ApiPath) -> Option<(&str, GuestKind, Vmid)> {
    let mut segments = path.segments();
    if segments.next() != Some("nodes") {
        return None;
    }
    let node = segments.next()?;
    let kind = GuestKind::of(segments.next()?)?;
    Some((node, kind, Vmid::parse(segments.next()?).ok()?))
}

/// Whether an error says that the guest's configuration is not on that node.
fn says_missing(error: &Error) -> bool {
    error.code == Code::NotFound && error.details.contains_key("vmid")
}

impl Inner {
    /// A list that everything else leans on, without the checks that lean on it.
    async fn list(
        self: &Arc<Self>,
        path: &str,
        params: Params,
        fresh: bool,
        end: Instant,
    ) -> Result<Answer> {
        let key = (ApiPath::parse(path)?, params);
        if !fresh && let Some(kept) = self.cache.fresh(&key) {
            return Ok(kept);
        }
        let inner = Arc::clone(self);
        let (path, params) = key.clone();
        let keep = is_kept(path.as_str());
        self.cache.share(&key, keep, async move { inner.fetch(&path, &params, end).await }).await
    }

    fn end_of_list(&self) -> Instant {
        Instant::now() + self.config.timeout * 2
    }

    fn known(&self) -> MutexGuard<'_, HashSet<String>> {
        self.known_nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn nodes(self: &Arc<Self>, fresh: bool, end: Instant) -> Result<Vec<NodeName>> {
        let answer = self.list("/nodes", Params::new(), fresh, end).await?;
        let names = loose::rows(&answer.data).iter().filter_map(|row| loose::str(row, "node"));
        let names: Vec<NodeName> = names.filter_map(|name| NodeName::parse(name).ok()).collect();
        self.known().extend(names.iter().map(|n| n.as_str().to_owned()));
        Ok(names)
    }

    /// Refuses a node that the cluster does not have. When the list cannot be
    /// read for a reason that says nothing about nodes, the call may go on.
    pub async fn check_node(self: &Arc<Self>, name: &str, end: Instant) -> Result<()> {
        if name == "localhost" || self.known().contains(name) {
            return Ok(());
        }
        match self.nodes(true, end).await {
            Ok(known) if known.is_empty() || known.iter().any(|n| n.as_str() == name) => Ok(()),
            Ok(known) => Err(unknown_node(name, &known)),
            Err(e) if matches!(e.code, Code::Forbidden | Code::NotFound | Code::ApiError) => Ok(()),
            Err(e) => Err(e),
        }
    }

    pub async fn check_node_of(self: &Arc<Self>, path: &ApiPath, end: Instant) -> Result<()> {
        let mut segments = path.segments();
        match (segments.next(), segments.next()) {
            (Some("nodes"), Some(name)) => self.check_node(name, end).await,
            _ => Ok(()),
        }
    }

    pub async fn locate(
        self: &Arc<Self>,
        vmid: Vmid,
        fresh: bool,
        end: Instant,
    ) -> Result<Option<GuestRef>> {
        let answer =
            self.list("/cluster/resources", Params::new().with("type", "vm"), fresh, end).await?;
        Ok(loose::rows(&answer.data).iter().find_map(|row| GuestRef::of_row(row, vmid)))
    }

    /// A read; when the guest has moved since its node was looked up, it is
    /// repeated once where the guest is now.
    pub async fn read_guest_where_it_is(
        self: Arc<Self>,
        path: ApiPath,
        params: Params,
    ) -> Result<Answer> {
        let end = self.end_of_read(&path);
        self.check_node_of(&path, end).await?;
        let error = match self.fetch(&path, &params, end).await {
            Err(error) if says_missing(&error) => error,
            other => return other,
        };
        match self.explain_missing(&path, error, end).await {
            (error, Some(now)) if error.code == Code::GuestMoved => {
                let (_, moved_to) = path.as_str().split_once("/nodes/").unwrap_or_default();
                let tail = moved_to.split_once('/').map_or("", |(_, tail)| tail);
                self.fetch(&ApiPath::parse(&format!("/nodes/{}/{tail}", now.node))?, &params, end)
                    .await
            }
            (error, _) => Err(error),
        }
    }

    /// Says why a guest is not where a call looked for it: moved, of the other
    /// kind, or not there at all.
    pub async fn explain_missing(
        self: &Arc<Self>,
        path: &ApiPath,
        error: Error,
        end: Instant,
    ) -> (Error, Option<GuestRef>) {
        let Some((node, kind, vmid)) = guest_of(path).filter(|_| says_missing(&error)) else {
            return (error, None);
        };
        let now = match self.locate(vmid, true, end).await {
            Ok(Some(now)) => now,
            Ok(None) => return (no_guest(vmid), None),
            Err(_) => return (error, None),
        };
        let is = format!("guest {vmid} is {} on {}", now.kind.article(), now.node);
        let told = if now.kind != kind {
            Error::new(Code::NotFound, is)
                .hint(format!("use /nodes/{}/{}/{vmid}", now.node, now.kind))
        } else if node != now.node.as_str() && node != "localhost" {
            Error::new(
                Code::GuestMoved,
                format!("guest {vmid} is now on {}, not on {node}", now.node),
            )
            .hint("nothing was changed; repeat the call with its node of now")
            .with("node", now.node.as_str())
            .with("vmid", vmid.get())
        } else {
            error
        };
        (told, Some(now))
    }
}

fn unknown_node(name: &str, known: &[NodeName]) -> Error {
    let short = name.split('.').next().unwrap_or(name);
    let nearest = known
        .iter()
        .find(|n| n.as_str().eq_ignore_ascii_case(short))
        .or_else(|| {
            let near = |n: &&NodeName| strsim::damerau_levenshtein(n.as_str(), name);
            known.iter().min_by_key(near).filter(|n| near(n) <= 2)
        })
        .map(|n| format!("did you mean {n}? "))
        .unwrap_or_default();
    let list: Vec<&str> = known.iter().take(20).map(NodeName::as_str).collect();
    Error::new(Code::NotFound, format!("the cluster has no node {name:?}"))
        .hint(format!("{nearest}the nodes are {}", list.join(", ")))
        .with("nodes", list)
}
