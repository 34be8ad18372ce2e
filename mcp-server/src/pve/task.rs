//! Temporary: replaced by the client's task room.
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Client, Vmid};
use crate::{Error, Result};

/// A task's id.
#[derive(Debug, Clone)]
pub struct Upid(String);

#[allow(missing_docs)]
impl Upid {
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Self(text.to_owned()))
    }
    fn part(&self, n: usize) -> &str {
        self.0.split(':').nth(n).unwrap_or_default()
    }
    pub fn node(&self) -> &str {
        self.part(1)
    }
    pub fn kind(&self) -> &str {
        self.part(5)
    }
    pub fn id(&self) -> &str {
        self.part(6)
    }
    pub fn user(&self) -> &str {
        self.part(7)
    }
    pub fn start(&self) -> i64 {
        i64::from_str_radix(self.part(4), 16).unwrap_or(0)
    }
    pub fn vmid(&self) -> Option<Vmid> {
        Vmid::parse(self.id()).ok()
    }
}

impl std::fmt::Display for Upid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A task's state.
#[derive(Debug, Clone, Default)]
pub struct TaskStatus {}

#[allow(missing_docs)]
impl TaskStatus {
    pub fn done(&self) -> bool {
        false
    }
    pub fn ok(&self) -> bool {
        false
    }
    pub fn exitstatus(&self) -> &str {
        ""
    }
    pub fn to_json(&self) -> Value {
        json!({})
    }
}

/// Log lines.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct TaskLog {
    pub lines: Vec<String>,
    pub start: usize,
    pub total: usize,
}

#[allow(missing_docs)]
pub async fn status(_: &Client, _: &Upid) -> Result<TaskStatus> {
    Err(Error::internal("not connected yet"))
}

#[allow(missing_docs)]
pub async fn wait(
    _: &Client,
    _: &Upid,
    _: Duration,
    _: impl Fn(&str, Option<f64>),
    _: CancellationToken,
) -> Result<TaskStatus> {
    Err(Error::internal("not connected yet"))
}

#[allow(missing_docs)]
pub async fn log(_: &Client, _: &Upid, _: Option<usize>, _: usize) -> Result<TaskLog> {
    Err(Error::internal("not connected yet"))
}
