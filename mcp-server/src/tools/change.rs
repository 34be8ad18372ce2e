//! A change on its way: through the gate, sent once, waited for, told truly.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Ctx, core::wait_for_task, session};
use crate::{
    Code, Error, Result,
    insight::estate::Guest,
    pve::{ApiPath, Params, TaskStatus, Upid, Upload, loose},
    render::{Answer, units},
    safety::{
        Caller, Fresh, Method, Operation, Outcome, Permit, Plan, Said, Trail,
        audit::Step,
        undo::{self, Kept},
    },
    tools::{Form, Progress},
};

/// How long a wait lasts unless asked otherwise: shorter than the time-out of
/// common clients, which give up at 60 s.
pub const WAIT: Duration = Duration::from_secs(45);
/// How often a caller hears how far an upload is.
const TELL: Duration = Duration::from_millis(500);

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
    Sent(Box<Sent>),
}

/// A change that Proxmox took.
pub struct Sent {
    /// The answer so far: status, class, request.
    pub answer: Map<String, Value>,
    /// What Proxmox answered.
    pub data: Value,
    trail: Option<Trail>,
    replaced: Option<Kept>,
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

/// What would be sent, as an answer.
pub(super) fn dry_run(plan: Plan) -> Answer {
    let mut answer = Map::new();
    answer.insert("status".into(), "dry_run".into());
    if let Value::Object(plan) = plan.json {
        answer.extend(plan);
    }
    Answer::new(answer).heading("nothing was sent")
}

/// How a task ended, with the first error of its log where the end does not say
/// it: the text of an answer has no more of the log than that.
fn failure(ended: &TaskStatus) -> String {
    let exit = ended.exitstatus();
    let said = |line: &str| line.trim_start_matches("TASK ERROR:").trim() == exit.trim();
    match ended.first_error.as_deref().filter(|line| !said(line)) {
        Some(line) => format!("the task ended with: {exit}; its log has {line:?}"),
        None => format!("the task ended with: {exit}"),
    }
}

/// The client shows the form by itself; this answer is never seen.
fn asked_later() -> Error {
    Error::new(Code::ApprovalRequired, "the person is being asked")
}

impl Ctx<'_> {
    /// Puts a change before the gate and, with its permit, sends it.
    ///
    /// # Errors
    /// The gate's refusal, or what the sender met.
    pub async fn submit(self, operation: Operation, asked: &Asked) -> Result<Submitted> {
        self.submit_with(operation, asked, None).await
    }

    /// Puts an upload before the gate and, with its permit, streams the file.
    ///
    /// # Errors
    /// As [`Ctx::submit`].
    pub async fn submit_file(
        self,
        operation: Operation,
        asked: &Asked,
        file: Arc<Upload>,
    ) -> Result<Submitted> {
        self.submit_with(operation, asked, Some(file)).await
    }

    async fn submit_with(
        self,
        operation: Operation,
        asked: &Asked,
        file: Option<Arc<Upload>>,
    ) -> Result<Submitted> {
        let client = self.session.client();
        let caller = self.caller(&client, asked);
        let app = self.app;
        let state = Fresh(&app.pve);
        let permit = match app.gate.check(operation, &caller, &state).await? {
            Outcome::Permit(permit) => *permit,
            Outcome::DryRun(plan) => {
                let answer = dry_run(*plan);
                return Ok(Submitted::DryRun(self.warned(answer)));
            }
            Outcome::Read(operation) => return self.read_instead(operation, asked).await,
            Outcome::Ask(pending) => {
                let said = self.ask(&pending.text, &pending.digest).await?;
                app.gate.answer(*pending, said, &state).await?
            }
        };
        self.send(permit, file).await
    }

    /// An answer with the warning that the flags have changed, where they have.
    pub(super) fn warned(self, answer: Answer) -> Answer {
        match self.app.flags_changed() {
            Some(warning) => answer.with("warnings", vec![warning]),
            None => answer,
        }
    }

    /// Shows a form to the person at the client.
    ///
    /// # Errors
    /// `approval_required` where the client shows it by itself and calls again.
    pub(super) async fn ask(self, text: &str, digest: &str) -> Result<Said> {
        let form = Form { text: text.to_owned(), digest: digest.to_owned() };
        let said = match self.session.ask(&form).await {
            session::Asked::Yes => Said::Yes,
            session::Asked::No => Said::No,
            session::Asked::Cancelled => Said::Cancelled,
            session::Asked::Expired => Said::Expired,
            session::Asked::Unable => Said::Unable,
            session::Asked::Later => return Err(asked_later()),
        };
        // Who no longer waits for the call has not agreed to it either.
        let gone = self.session.cancelled().is_cancelled() || self.app.closing.is_cancelled();
        Ok(if gone { Said::Cancelled } else { said })
    }

    /// Records a call whose method, path or parameters cannot be read.
    pub fn refused(self, method: &str, path: &str, asked: &Asked, error: &Error) {
        let client = self.session.client();
        self.app.gate.refused(method, path, &self.caller(&client, asked), error);
    }

    /// Who calls, as the gate and its records need it.
    pub(super) fn caller<'c>(&'c self, client: &'c str, asked: &'c Asked) -> Caller<'c> {
        Caller {
            dry_run: asked.dry_run == Some(true),
            confirm: asked.confirm.as_deref(),
            approval_code: asked.approval_code.as_deref(),
            tool: self.tool,
            purpose: purpose(self.tool),
            client,
            can_ask: self.session.can_ask(),
            answering: self.session.is_answering(),
        }
    }

    /// Sends with a permit and records what became of it. The state that is
    /// replaced is kept where it can be put back.
    async fn send(self, permit: Permit, file: Option<Arc<Upload>>) -> Result<Submitted> {
        let trail = permit.trail();
        let replaced = self.replaced(&trail, permit.operation()).await;
        // A caller who goes away stops nothing that is on its way: what was
        // sent is recorded whoever still listens.
        let (app, record) = (self.app.clone(), trail.clone());
        let watched = file.clone();
        app.sending(&trail);
        let sending = tokio::spawn(async move {
            let result = match file {
                Some(file) => app.pve.send_file(permit, file).await,
                None => app.pve.send(permit).await,
            };
            let recorded = app.sent(&record, &result);
            (result, recorded)
        });
        if let Some(file) = watched {
            self.tell_upload(&file, &sending).await;
        }
        let (result, recorded) = sending.await.map_err(|_| {
            Error::new(Code::OutcomeUnknown, "the sender failed in a way it should not")
        })?;
        let data = result.map_err(|e| e.with("request", trail.request.clone()))?;
        let mut answer = Map::new();
        answer.insert("status".into(), "done".into());
        answer.insert("class".into(), trail.class.into());
        answer.insert("category".into(), trail.category.into());
        answer.insert("request".into(), trail.request.clone());
        if trail.id > 0 {
            answer.insert("audit_id".into(), trail.id.into());
        }
        let warnings: Vec<String> =
            recorded.err().map(|e| e.message).into_iter().chain(self.app.flags_changed()).collect();
        if !warnings.is_empty() {
            answer.insert("warnings".into(), warnings.into());
        }
        let mut sent = Sent { answer, data, trail: Some(trail), replaced };
        if sent.upid().is_none() {
            self.keep(&mut sent).await;
        }
        Ok(Submitted::Sent(Box::new(sent)))
    }

    /// Tells how far an upload is until it has been sent.
    async fn tell_upload<T>(self, file: &Upload, sending: &tokio::task::JoinHandle<T>) {
        while !sending.is_finished() && file.sent() < file.length() {
            #[allow(clippy::cast_precision_loss)]
            let percent = file.sent() as f64 / file.length().max(1) as f64 * 100.0;
            let message =
                format!("{} of {} sent", units::bytes(file.sent()), units::bytes(file.length()));
            self.session.progress(Progress { message, percent: Some(percent) });
            tokio::time::sleep(TELL).await;
        }
    }

    /// What a change replaces, read right before it is sent.
    async fn replaced(self, trail: &Trail, operation: &Operation) -> Option<Kept> {
        if trail.id == 0 {
            return None;
        }
        let object = ApiPath::parse(operation.path.as_str()).ok()?;
        // Only what has an undo is read; the question itself is cheap.
        undo::replaced(trail.id, operation, &json!({}))?;
        let before = self.app.pve.get_fresh(&object, &Params::new()).await.ok()?;
        undo::replaced(trail.id, operation, &before)
    }

    /// A call that turned out to be a read.
    async fn read_instead(self, operation: Operation, asked: &Asked) -> Result<Submitted> {
        let dry = asked.dry_run == Some(true);
        let mut answer = Map::new();
        answer.insert("status".into(), if dry { "dry_run" } else { "done" }.into());
        answer.insert("class".into(), "READ".into());
        answer.insert("category".into(), Value::Null);
        let params = operation.params.to_json();
        let request = json!({
            "method": operation.method.as_str(), "path": operation.path.as_str(), "params": params,
        });
        answer.insert("request".into(), request);
        if dry {
            return Ok(Submitted::DryRun(Answer::new(answer).heading("nothing was sent")));
        }
        let data = self.read(&operation.path, &operation.params).await?;
        let data = (*data).clone();
        Ok(Submitted::Sent(Box::new(Sent { answer, data, trail: None, replaced: None })))
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
        let ended = match wait_for_task(self, &upid, patience).await {
            Ok(ended) => ended,
            Err(error) => {
                if error.code == Code::Cancelled {
                    self.later(&sent, Step::WaitCancelled, &upid, "wait cancelled, task continues");
                }
                return Err(error);
            }
        };
        let mut task = json!({"upid": upid.as_str()});
        if let (Value::Object(map), Value::Object(state)) = (&mut task, ended.to_json()) {
            map.extend(state);
        }
        if !ended.done() {
            sent.answer.insert("status".into(), "started".into());
            let note = "the task goes on; pve_task_status with `wait` follows it";
            return Ok(sent.with("task", task).with("note", note));
        }
        self.later(&sent, Step::Ended, &upid, ended.exitstatus());
        if ended.ok() {
            self.keep(&mut sent).await;
            return Ok(sent.with("task", task));
        }
        let request = sent.answer.get("request").cloned().unwrap_or(Value::Null);
        Err(Error::new(Code::TaskFailed, failure(&ended))
            .hint("the end of its log is in `task`; pve_task_log shows all of it")
            .with("task", task)
            .with("request", request))
    }

    /// Records what became of a change after it was sent. The change is made;
    /// a log that cannot be written now refuses the next one.
    fn later(self, sent: &Sent, step: Step, upid: &Upid, what: &str) {
        if let Some(trail) = &sent.trail
            && let Err(error) = self.app.gate.later(trail, step, upid.as_str(), Some(what))
        {
            tracing::warn!(%error, "the end of a task was not recorded");
        }
    }

    /// Keeps the replaced state, with the digest that the object has now.
    async fn keep(self, sent: &mut Sent) {
        let Some(mut kept) = sent.replaced.take() else { return };
        let Ok(path) = ApiPath::parse(&kept.path) else { return };
        if let Ok(now) = self.app.pve.get_fresh(&path, &Params::new()).await {
            kept.digest = loose::text(&now, "digest");
        }
        match self.app.undo.keep(&kept) {
            Ok(()) => {
                sent.answer.insert("undo".into(), json!({"audit_id": kept.id}));
            }
            Err(error) => {
                sent.answer.insert("undo".into(), json!({"unavailable": error.message}));
            }
        }
    }

    /// Submits, and waits where Proxmox started a task.
    ///
    /// # Errors
    /// As [`Ctx::submit`] and [`Ctx::finish`].
    pub async fn run(self, operation: Operation, asked: &AskedTask) -> Result<Submitted> {
        match self.submit(operation, &asked.asked()).await? {
            Submitted::Sent(sent) => {
                let sent = self.finish(*sent, asked.patience()).await?;
                Ok(Submitted::Sent(Box::new(sent)))
            }
            dry => Ok(dry),
        }
    }
}

/// What a tool is for, as its description begins; nothing for a raw call, which can be anything.
fn purpose(tool: &str) -> &'static str {
    if tool == "pve_api_call" {
        return "";
    }
    let found = super::registry::all().iter().find(|t| t.name == tool);
    let sentence = found.map_or("", |t| t.description);
    sentence.split_once(". ").map_or(sentence, |(first, _)| first)
}
