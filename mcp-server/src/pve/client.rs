//! The HTTP client.

use std::sync::Arc;

use serde_json::Value;

use super::{ApiPath, Params};
use crate::{Result, config::Config, safety::Permit};

/// One connection pool to one cluster.
pub struct Client {}

impl Client {
    /// Makes a client; nothing is connected yet.
    ///
    /// # Errors
    /// `config` when there is no host or token, or a TLS file cannot be read.
    pub fn new(_config: &Config) -> Result<Self> {
        Ok(Self {})
    }

    /// A read (GET, class READ): cached, shared with identical reads in flight, retried.
    ///
    /// # Errors
    /// What the node or the way to it answered, and `internal` for a GET that is not READ.
    pub async fn get(&self, _path: &ApiPath, _params: &Params) -> Result<Arc<Value>> {
        Ok(Arc::new(Value::Null))
    }

    /// Drops what is cached.
    pub fn forget(&self) {}

    /// A change: sent once.
    ///
    /// # Errors
    /// As [`Client::get`], and `outcome_unknown`.
    pub async fn send(&self, _permit: Permit) -> Result<Value> {
        Ok(Value::Null)
    }
}
