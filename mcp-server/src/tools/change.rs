//! A change on its way: through the gate, sent once, waited for, told truly.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Ctx, core::wait_for_task};
use crate::{
    Code, Error, Result,
    insight::estate::Guest,
    pve::{ApiPath, Params, Upid},
    render::Answer,
    safety::{Method, Operation},
};

/// How long a wait lasts unless asked otherwise: shorter than the time-out of
/// common clients, which give up at 60 s.
pub const WAIT: Duration = Duration::from_secs(45);

/// Arguments of every change.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Asked {
    pub dry_run: Option<bool>,
    pub confirm: Option<String>,
    pub approval_code: Option<String>,
}

/// Arguments of a change that runs as a task.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct AskedTask {
    pub dry_run: Option<bool>,
    pub confirm: Option<String>,
    pub approval_code: Option<String>,
    pub wait: Option<bool>,
    #[schemars(range(min = 1, max = 86_400))]
    pub timeout_s: Option<u64>,
}

impl AskedTask {
    /// The part that every change has.
    pub fn asked(&self) -> Asked {
        Asked {
            dry_run: self.dry_run,
            confirm: self.confirm.clone(),
            approval_code: self.approval_code.clone(),
        }
    }

    /// How long to wait; nothing where the caller does not want to.
    pub fn patience(&self) -> Option<Duration> {
        (self.wait != Some(false)).then(|| self.timeout_s.map_or(WAIT, Duration::from_secs))
    }
}

/// What became of a change at the gate.
pub enum Submitted {
    /// Nothing was sent: what would be.
    DryRun(Answer),
    /// It was sent, and Proxmox took it.
    Sent(Sent),
}

/// A change that Proxmox took.
pub struct Sent {
    /// The answer so far: status, class, request.
    pub answer: Map<String, Value>,
    /// What Proxmox answered.
    pub data: Value,
}

impl Sent {
    /// The task that Proxmox started, where it started one.
    pub fn upid(&self) -> Option<Upid> {
        Upid::of_answer(&self.data)
    }

    /// Adds a member that says something.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        if !value.is_null() {
            self.answer.insert(key.to_owned(), value);
        }
        self
    }

    /// The finished answer.
    pub fn into_answer(self, heading: impl Into<String>) -> Answer {
        Answer::new(self.answer).heading(heading)
    }
}

/// An operation on a guest, by the segments below it.
///
/// # Errors
/// `path_refused` for a segment that cannot stand in a path.
pub fn on_guest(
    method: Method,
    guest: &Guest,
    below: &[&str],
    params: Params,
) -> Result<Operation> {
    let vmid = guest.vmid.to_string();
    let mut segments = vec!["nodes", &*guest.node, guest.kind.as_str(), vmid.as_str()];
    segments.extend(below);
    Ok(Operation { method, path: ApiPath::of(&segments)?, params })
}

impl Ctx<'_> {
    /// Puts a change before the gate and, with its permit, sends it.
    ///
    /// # Errors
    /// The gate's refusal, or what the sender met.
    pub async fn submit(self, operation: Operation, asked: &Asked) -> Result<Submitted> {
        let _ = (operation, asked);
        Err(Error::new(Code::ReadOnly, "this server is read-only"))
    }

    /// Waits for the task of a change that was sent. A failed task is an error
    /// that carries the end of its log.
    ///
    /// # Errors
    /// `task_failed`.
    pub async fn finish(self, mut sent: Sent, patience: Option<Duration>) -> Result<Sent> {
        let Some(upid) = sent.upid() else { return Ok(sent) };
        let Some(patience) = patience else {
            sent.answer.insert("status".into(), "started".into());
            return Ok(sent.with("task", json!({"upid": upid.to_string()})));
        };
        let ended = wait_for_task(self, &upid, patience).await?;
        let mut task = json!({"upid": upid.as_str()});
        if let (Value::Object(map), Value::Object(state)) = (&mut task, ended.to_json()) {
            map.extend(state);
        }
        if !ended.done() {
            sent.answer.insert("status".into(), "started".into());
            let note = "the task goes on; pve_task_status with `wait` follows it";
            return Ok(sent.with("task", task).with("note", note));
        }
        if ended.ok() {
            return Ok(sent.with("task", task));
        }
        let request = sent.answer.get("request").cloned().unwrap_or(Value::Null);
        Err(Error::new(Code::TaskFailed, format!("the task ended with: {}", ended.exitstatus()))
            .hint("the end of its log is in `task`; pve_task_log shows all of it")
            .with("task", task)
            .with("request", request))
    }

    /// Submits, and waits where Proxmox started a task.
    ///
    /// # Errors
    /// As [`Ctx::submit`] and [`Ctx::finish`].
    pub async fn run(self, operation: Operation, asked: &AskedTask) -> Result<Submitted> {
        match self.submit(operation, &asked.asked()).await? {
            Submitted::Sent(sent) => self.finish(sent, asked.patience()).await.map(Submitted::Sent),
            dry => Ok(dry),
        }
    }
}
