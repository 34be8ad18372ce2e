//! The client of one cluster: cached, shared and retried reads; changes sent once.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::sync::OnceCell;

use super::{
    ApiPath, Params, Upload,
    cache::{Cache, is_kept},
    error::{self, Call},
    hosts::Hosts,
    schema::Schema,
    transport::{Reply, Request, Transport},
};
use crate::{
    Code, Error, Result,
    config::{Config, HostPort},
    safety::{self, Class, Facts, Method, Operation, Permit},
};

/// One connection pool to one cluster; a clone shares it.
#[derive(Clone)]
pub struct Client {
    pub(super) inner: Arc<Inner>,
}

/// What an answer of the API holds.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The member `data`.
    pub data: Arc<Value>,
    /// How many rows there are in all, where the API counts (tasks, logs).
    pub total: Option<u64>,
    /// Pending changes as a diff, where the API shows them (network).
    pub changes: Option<Arc<str>>,
}

pub(super) struct Inner {
    pub config: Config,
    pub hosts: Hosts,
    pub cache: Cache<Answer>,
    /// Nodes that were there once; Proxmox itself says when one is gone.
    pub known_nodes: Mutex<HashSet<String>>,
    transport: OnceCell<Transport>,
    schema: OnceCell<Arc<Schema>>,
}

impl Client {
    /// Makes a client. Nothing is read or connected yet: the CA file or system
    /// store is loaded by the first call, which answers `config` when it cannot be.
    ///
    /// # Errors
    /// `config` when there is no host or no token.
    pub fn new(config: &Config) -> Result<Self> {
        if config.hosts.is_empty() {
            return Err(Error::new(Code::Config, "PROXMOX_HOST is not set")
                .hint("`proxmox-mcp init` makes the files and says what to put into them"));
        }
        if config.token.is_none() {
            return Err(Error::new(
                Code::Config,
                "PROXMOX_TOKEN_ID and PROXMOX_TOKEN_SECRET are not set",
            )
            .hint("`proxmox-mcp init` prints the commands that make a token"));
        }
        let inner = Inner {
            hosts: Hosts::new(config.hosts.clone()),
            cache: Cache::new(config.cache_ttl),
            known_nodes: Mutex::default(),
            config: config.clone(),
            transport: OnceCell::new(),
            schema: OnceCell::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A read (GET, class READ): kept for a few seconds where many tools ask
    /// for it, shared with identical reads in flight, retried.
    ///
    /// # Errors
    /// What the node or the way to it answered, and `internal` for a GET that is not READ.
    pub async fn get(&self, path: &ApiPath, params: &Params) -> Result<Arc<Value>> {
        Ok(self.answer(path, params).await?.data)
    }

    /// As [`Client::get`], but never from the kept answers: for decisions.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn get_fresh(&self, path: &ApiPath, params: &Params) -> Result<Arc<Value>> {
        Ok(self.read(path, params, true).await?.data)
    }

    /// As [`Client::get`], with what stands beside `data`.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn answer(&self, path: &ApiPath, params: &Params) -> Result<Answer> {
        self.read(path, params, false).await
    }

    /// As [`Client::answer`], never from an answer that was kept.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn answer_fresh(&self, path: &ApiPath, params: &Params) -> Result<Answer> {
        self.read(path, params, true).await
    }

    async fn read(&self, path: &ApiPath, params: &Params, fresh: bool) -> Result<Answer> {
        let key = (path.clone(), params.clone());
        if !fresh && let Some(kept) = self.inner.cache.fresh(&key) {
            return Ok(kept);
        }
        if !is_plain_read(path, params) {
            return Err(Error::internal(format!("GET {path} is not a plain read")));
        }
        let inner = Arc::clone(&self.inner);
        let read = {
            let (path, params) = key.clone();
            async move { inner.read_guest_where_it_is(path, params).await }
        };
        self.inner.cache.share(&key, is_kept(path.as_str()), read).await
    }

    /// A change, or a GET that is more than a read: sent once. It goes to
    /// another host, or again, only when no connection was made.
    ///
    /// # Errors
    /// As [`Client::get`]; `outcome_unknown` when it may have arrived; `guest_moved`.
    pub async fn send(&self, permit: Permit) -> Result<Value> {
        // On its own: a caller that goes away must not cut a change in half.
        let inner = Arc::clone(&self.inner);
        let sending = tokio::spawn(async move { inner.transmit(permit.operation()).await });
        sending.await.map_err(|e| Error::internal(format!("sending broke off: {e}")))?
    }

    /// An upload: as [`Client::send`], with the file streamed along.
    ///
    /// # Errors
    /// As [`Client::send`]; `upload_refused` when the file cannot be read again.
    pub async fn send_file(&self, permit: Permit, file: Arc<Upload>) -> Result<Value> {
        let inner = Arc::clone(&self.inner);
        let sending =
            tokio::spawn(async move { inner.transmit_file(permit.operation(), file).await });
        sending.await.map_err(|e| Error::internal(format!("sending broke off: {e}")))?
    }

    /// Forgets kept answers, because the estate was changed by other means.
    pub fn forget(&self) {
        self.inner.cache.forget();
    }

    /// The node's own API description, read once.
    ///
    /// # Errors
    /// As [`Client::get`]; `bad_answer` when the node's file is not understood.
    pub async fn schema(&self) -> Result<Arc<Schema>> {
        let schema = self.inner.schema.get_or_try_init(|| self.inner.read_schema()).await?;
        Ok(Arc::clone(schema))
    }

    /// The host that is asked first now.
    #[must_use]
    pub fn host(&self) -> Option<HostPort> {
        self.inner.hosts.in_order().first().map(|(_, host)| (*host).clone())
    }
}

/// Whether a GET is of class READ, as the classifier says.
fn is_plain_read(path: &ApiPath, params: &Params) -> bool {
    let operation = Operation { method: Method::Get, path: path.clone(), params: params.clone() };
    let found = safety::classify(&operation, &Facts::default());
    found.never.is_none() && found.class == Class::Read
}

impl Inner {
    pub async fn transport(&self) -> Result<&Transport> {
        self.transport.get_or_try_init(|| async { Transport::new(&self.config) }).await
    }

    pub fn token_id(&self) -> &str {
        self.config.token.as_ref().map_or("", |token| token.id.as_str())
    }

    pub fn call<'a>(&'a self, method: Method, path: &'a str, host: &'a HostPort) -> Call<'a> {
        Call { method, path, host, token_id: self.token_id() }
    }

    /// A request to the API; parameters go into the query of GET and DELETE
    /// and into the body of POST and PUT.
    pub fn request(
        &self,
        method: Method,
        path: &ApiPath,
        params: &Params,
        timeout: std::time::Duration,
    ) -> Request {
        let mut target = format!("/api2/json{}", path.encoded());
        let in_body = matches!(method, Method::Post | Method::Put);
        let encoded = params.encoded();
        if !in_body && !encoded.is_empty() {
            target.push('?');
            target.push_str(&encoded);
        }
        let body = in_body.then_some(encoded);
        Request { method, target, body, timeout, file: None, authorized: true }
    }
}

/// Reads `{"data":…}`.
pub(super) fn parse(host: &HostPort, reply: &Reply) -> Result<Answer> {
    let bad = |why: &str| error::not_an_answer(host, reply, why);
    let text = String::from_utf8_lossy(&reply.body);
    let value: Value =
        serde_json::from_str(&text).map_err(|e| bad(&format!("it is no JSON ({e})")))?;
    let Value::Object(mut answer) = value else {
        return Err(bad("it is no object"));
    };
    let Some(data) = answer.remove("data") else {
        return Err(bad("it has no `data`"));
    };
    let answer = Value::Object(answer);
    Ok(Answer {
        data: Arc::new(data),
        total: super::loose::uint(&answer, "total"),
        changes: super::loose::str(&answer, "changes").map(Arc::from),
    })
}
