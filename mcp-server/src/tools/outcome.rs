//! What many changes have in common: the path from its segments, the state
//! before and after, and whether `_set` made something or updated it.

use std::future::Future;

use serde_json::Value;

use super::change::Submitted;
use crate::{
    Code, Error, Result,
    pve::{ApiPath, Params},
    render::Answer,
    safety::{Method, Operation},
};

/// An operation on a path made of segments.
///
/// # Errors
/// `path_refused` for a segment that cannot stand in a path.
pub fn operation(method: Method, segments: &[&str], params: Params) -> Result<Operation> {
    Ok(Operation { method, path: ApiPath::of(segments)?, params })
}

/// The answer of a change: what stood there before, and what stands there now.
/// What a task still works on has no `after` yet.
pub async fn told(
    done: Submitted,
    before: Value,
    after: impl Future<Output = Value>,
    heading: impl Into<String>,
) -> Answer {
    match done {
        Submitted::DryRun(answer) if before.is_null() => answer,
        Submitted::DryRun(answer) => answer.with("before", before).untrusted(&["before"]),
        Submitted::Sent(sent) => {
            let going = sent.answer.get("status").is_some_and(|s| s == "started");
            let after = if going { Value::Null } else { after.await };
            sent.with("before", before)
                .with("after", after)
                .into_answer(heading)
                .untrusted(&["before", "after"])
        }
    }
}

/// What a `_set` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// Makes what was not there.
    Created,
    /// Changes what is there.
    Updated,
}

impl Did {
    /// Which of the two it is, and whether the caller takes that.
    ///
    /// # Errors
    /// `not_found` with `must_exist`, `conflict` with `must_not_exist`.
    pub fn of(
        exists: bool,
        must_exist: Option<bool>,
        must_not_exist: Option<bool>,
        what: &str,
    ) -> Result<Self> {
        match exists {
            true if must_not_exist == Some(true) => {
                Err(Error::new(Code::Conflict, format!("{what} exists already"))
                    .hint("without `must_not_exist` it would be updated"))
            }
            false if must_exist == Some(true) => {
                Err(Error::new(Code::NotFound, format!("there is no {what}"))
                    .hint("without `must_exist` it would be made"))
            }
            true => Ok(Self::Updated),
            false => Ok(Self::Created),
        }
    }

    /// `created` or `updated`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
        }
    }

    /// Says in an answer which of the two was done, or would be.
    pub fn tell(self, answer: Answer) -> Answer {
        let dry = answer.structured.get("status").is_some_and(|s| s == "dry_run");
        match (dry, self) {
            (false, _) => answer.with("did", self.as_str()),
            (true, Self::Created) => answer.with("would", "create"),
            (true, Self::Updated) => answer.with("would", "update"),
        }
    }

    /// POST or PUT.
    pub const fn method(self) -> Method {
        match self {
            Self::Created => Method::Post,
            Self::Updated => Method::Put,
        }
    }
}

/// Adds a switch when it is given.
pub fn switch(params: Params, name: &str, value: Option<bool>) -> Params {
    match value {
        Some(on) => params.with_bool(name, on),
        None => params,
    }
}

/// Adds a list as one text parted by commas when it is given.
pub fn list<T: ToString>(params: Params, name: &str, values: Option<&Vec<T>>) -> Params {
    match values {
        Some(values) => {
            params.with(name, values.iter().map(T::to_string).collect::<Vec<_>>().join(","))
        }
        None => params,
    }
}
