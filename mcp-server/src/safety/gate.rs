//! The gate: every change passes here, in the order of the checks, or is refused.
//!
//! A [`Permit`] is made here and nowhere else, and the sender takes nothing but
//! a permit for a change, so a tool cannot send by itself:
//!
//! ```compile_fail
//! use proxmox_mcp::safety::{Operation, Permit};
//!
//! fn a_tool_that_sends_by_itself(operation: Operation) -> Permit {
//!     Permit { operation }
//! }
//! ```
//!
//! ```compile_fail
//! use proxmox_mcp::{pve::Client, safety::Operation};
//!
//! async fn a_tool_that_sends_without_a_permit(client: &Client, operation: Operation) {
//!     let _ = client.send(operation).await;
//! }
//! ```
//!
//! The way of a change through it:
//!
//! 1. [`Gate::check`] with the operation and the [`Caller`]; `state` is
//!    [`super::Fresh`] over the client, so that nothing is decided on kept answers.
//! 2. [`Outcome::Ask`]: the session shows [`Pending::text`]; what the person
//!    said goes to [`Gate::answer`], which judges anew and makes the permit.
//! 3. The permit goes to the sender, and its outcome with [`Permit::trail`] to [`Gate::sent`].

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    Class, Facts, Operation, State,
    approval::{Approvals, Outside},
    audit::{Audit, Entry, Step},
    binding::needs_approval,
    redact::Redactor,
    shown::quoted,
    subject::{Judged, Seal, Shown, Subject},
};
use crate::{
    Code, Error, Result,
    config::{Approval, Config},
    pve::Params,
};

mod form;
mod staged;
use form::View;

/// Leave to send one operation once. Only the gate makes one.
#[derive(Debug)]
pub struct Permit {
    operation: Operation,
    trail: Trail,
}

impl Permit {
    pub(super) fn new(operation: Operation, trail: Trail) -> Self {
        Self { operation, trail }
    }

    /// What may be sent: the parameters are those that were judged.
    #[must_use]
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// What the record of the outcome hangs on.
    #[must_use]
    pub fn trail(&self) -> Trail {
        self.trail.clone()
    }
}

/// Who wants a change, and how.
#[derive(Debug, Clone, Default)]
pub struct Caller<'a> {
    /// Only show what would be sent.
    pub dry_run: bool,
    /// The exact text of a CRITICAL change.
    pub confirm: Option<&'a str>,
    /// A one-time code.
    pub approval_code: Option<&'a str>,
    /// The tool.
    pub tool: &'a str,
    /// What the tool is for, in one sentence of ours; empty for a raw call.
    pub purpose: &'a str,
    /// The client.
    pub client: &'a str,
    /// Whether the client shows forms to a person.
    pub can_ask: bool,
    /// Whether this call brings the answer to a form that was shown before.
    pub answering: bool,
}

/// What the gate makes of an operation, or of another subject.
#[derive(Debug)]
pub enum Outcome<S: Subject = Operation> {
    /// A read: it goes without a permit.
    Read(S),
    /// Nothing is sent: what would be.
    DryRun(Box<Plan>),
    /// A person has to answer a form first: [`Gate::answer`].
    Ask(Box<Pending<S>>),
    /// It may be sent.
    Permit(Box<S::Leave>),
}

/// What would be sent, and what it would do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The class, as text.
    pub class: &'static str,
    /// The first category.
    pub category: Option<&'static str>,
    /// The whole plan: class, category, categories, flags, confirm, request,
    /// reasons, guests, state, impact, undo, needs_approval.
    pub json: Value,
}

/// A change that waits for a person.
#[derive(Debug)]
pub struct Pending<S = Operation> {
    /// The whole form in plain words.
    pub text: String,
    /// What a yes holds for, in hexadecimal.
    pub digest: String,
    subject: S,
    trail: Trail,
}

/// What a person said to a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// Yes, to exactly this.
    Yes,
    /// No.
    No,
    /// The form was closed, or the client went away.
    Cancelled,
    /// Too late, or for something else.
    Expired,
    /// The client shows no forms after all.
    Unable,
}

/// What the records of one call have in common.
#[derive(Debug, Clone)]
pub struct Trail {
    /// The number of the record that says `sending`: the id by which the change
    /// is undone. 0 before it, and where no log is kept.
    pub id: u64,
    /// Class, as answers tell it.
    pub class: &'static str,
    /// The first category.
    pub category: Option<&'static str>,
    /// Method, path and masked parameters, as answers tell them.
    pub request: Value,
    entry: Entry,
    started: Instant,
}

/// The gate of one server.
#[derive(Debug)]
pub struct Gate {
    config: Config,
    approvals: Approvals,
    audit: Audit,
    redactor: Redactor,
}

impl Gate {
    /// For a configuration.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            approvals: Approvals::new(&config.dirs.state),
            audit: Audit::open(&config.audit),
            redactor: Redactor::new(config),
            config: config.clone(),
        }
    }

    /// The audit log.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The memory of approvals, for `approve`.
    #[must_use]
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Runs the checks in order. `state` is asked anew for every call.
    ///
    /// # Errors
    /// The refusal of the first check that refuses; it is recorded.
    pub async fn check<S: Subject>(
        &self,
        subject: S,
        caller: &Caller<'_>,
        state: &impl State,
    ) -> Result<Outcome<S>> {
        let mut judged = self.judge(&subject, state).await;
        let shown = subject.shown(&judged, &self.redactor);
        judged.impact.extend(self.who_staged(&judged, &shown));
        let mut trail = trail(&shown, &judged, caller);
        let decided =
            self.decide(subject, &View { judged: &judged, shown: &shown, caller }, &mut trail);
        if let Err(error) = &decided {
            self.record_refusal(&trail, error);
        }
        decided
    }

    async fn judge(&self, subject: &impl Subject, state: &impl State) -> Judged {
        let mut facts = Facts::default();
        facts.settle(state, |facts| subject.judge(&self.config, facts)).await
    }

    fn decide<S: Subject>(
        &self,
        subject: S,
        view: &View<'_>,
        trail: &mut Trail,
    ) -> Result<Outcome<S>> {
        let View { judged, caller, .. } = *view;
        let judgement = &judged.judgement;
        if let Some(refusal) = &judgement.refusal {
            return Err(refusal.clone());
        }
        let subject = subject.settled(judged)?;
        let reads = judgement.class.class == Class::Read;
        if reads && S::READS_PASS {
            return Ok(Outcome::Read(subject));
        }
        judged.live.clone()?;
        if caller.dry_run {
            self.audit.record(&trail.entry(Step::DryRun))?;
            return Ok(Outcome::DryRun(Box::new(view.plan(&self.config))));
        }
        if reads {
            return self.permitted(subject, trail);
        }
        if let Some(text) = judged.confirm.as_deref()
            && caller.confirm != Some(text)
        {
            let given =
                if caller.confirm.is_some() { "is not the exact text" } else { "is missing" };
            return Err(Error::new(
                Code::ConfirmRequired,
                format!("this is {}, and confirm {given}", form::describe(judgement)),
            )
            .hint(format!("after the person has agreed, call again with confirm set to {text}"))
            .with("confirm", text)
            .with("class", judgement.class.class_text())
            .with("category", judgement.class.category().map(|f| f.category()))
            .with("plan", view.plan(&self.config).json));
        }
        self.approve(subject, view, trail)
    }

    /// Check 12: a person, a code, or nobody.
    fn approve<S: Subject>(
        &self,
        subject: S,
        view: &View<'_>,
        trail: &mut Trail,
    ) -> Result<Outcome<S>> {
        let View { judged, caller, .. } = *view;
        let mode = self.config.approval;
        if mode == Approval::Confirm || !needs_approval(&judged.judgement, &self.config) {
            if judged.judgement.class.class == Class::Critical {
                trail.approval("confirm", None);
            }
            return self.permitted(subject, trail);
        }
        let person = mode == Approval::Human || judged.judgement.class.may_cut_access;
        let digest = self.approvals.fresh(&judged.bound)?;
        if mode == Approval::Code && !person {
            self.by_code(view, trail, &digest)?;
            return self.permitted(subject, trail);
        }
        if !caller.can_ask && !person {
            trail.approval("confirm", None);
            return self.permitted(subject, trail);
        }
        match self.approvals.outside(&digest)? {
            Outside::Yes(decision) => {
                self.approvals.claim(&digest)?;
                self.approvals.forget(&digest);
                trail.approval("approve", Some(&decision.by));
                self.permitted(subject, trail)
            }
            Outside::No => {
                self.approvals.forget(&digest);
                Err(declined("a person said no"))
            }
            Outside::Waiting(request) if !caller.can_ask => Err(waits(&request.id, &request.text)),
            Outside::Unasked if !caller.can_ask => {
                let text = view.form();
                let request = self.approvals.wait(&digest, &text, caller.client)?;
                Err(waits(&request.id, &text))
            }
            Outside::Waiting(_) | Outside::Unasked => {
                if !caller.answering {
                    self.approvals.count()?;
                }
                self.audit.record(&trail.entry(Step::Asked))?;
                let (text, trail) = (view.form(), trail.clone());
                Ok(Outcome::Ask(Box::new(Pending { text, digest, subject, trail })))
            }
        }
    }

    fn permitted<S: Subject>(&self, subject: S, trail: &Trail) -> Result<Outcome<S>> {
        Ok(Outcome::Permit(Box::new(self.permit(subject, trail.clone())?)))
    }

    /// Redeems a code, or gives one out, which is an error that carries it.
    fn by_code(&self, view: &View<'_>, trail: &mut Trail, digest: &str) -> Result<()> {
        if let Some(code) = view.caller.approval_code {
            self.approvals.redeem(code, digest)?;
            self.approvals.claim(digest)?;
            trail.approval("code", None);
            return Ok(());
        }
        let code = self.approvals.issue(digest)?;
        Err(Error::new(
            Code::ApprovalRequired,
            "the same call with this one-time code runs it within 10 minutes",
        )
        // The message is recorded, and the code is a secret until it is used.
        .hint(format!(
            "the code is {code}; show this to the person and send the code only when they agree; since you can \
             repeat the code yourself, this is no check by a person:\n{}",
            view.form()
        ))
        .with("approval_code", code)
        .with("expires_s", super::approval::HOLDS.as_secs())
        .with("summary", view.form())
        .with("plan", view.plan(&self.config).json))
    }

    /// Takes what a person said to a form. The request and the object are judged
    /// anew, and a yes to something else is no yes.
    ///
    /// # Errors
    /// `approval_declined`, `approval_expired`, and everything that a check refuses now.
    pub async fn answer<S: Subject>(
        &self,
        pending: Pending<S>,
        said: Said,
        state: &impl State,
    ) -> Result<S::Leave> {
        let Pending { digest, subject, mut trail, .. } = pending;
        let permitted = self.answered(&digest, subject, said, &mut trail, state).await;
        if let Err(error) = &permitted {
            self.record_refusal(&trail, error);
        }
        permitted
    }

    async fn answered<S: Subject>(
        &self,
        digest: &str,
        subject: S,
        said: Said,
        trail: &mut Trail,
        state: &impl State,
    ) -> Result<S::Leave> {
        if matches!(said, Said::No | Said::Cancelled) {
            // What was declined cannot be accepted by an answer that comes later.
            self.approvals.claim(digest)?;
        }
        match said {
            Said::Yes => {}
            Said::No => return Err(declined("the person said no")),
            Said::Cancelled => return Err(declined("the form was closed without an answer")),
            Said::Expired => {
                return Err(expired("the answer came too late, or was for something else"));
            }
            Said::Unable => {
                return Err(Error::new(Code::ApprovalRequired, "the client did not show the form")
                    .hint("PROXMOX_APPROVAL=human lets a person agree with proxmox-mcp approve"));
            }
        }
        let judged = self.judge(&subject, state).await;
        if let Some(refusal) = judged.judgement.refusal {
            return Err(refusal);
        }
        judged.live?;
        if self.approvals.fresh(&judged.bound)? != digest {
            return Err(expired("the object has changed since it was shown, or the yes was used"));
        }
        self.approvals.claim(digest)?;
        trail.approval("form", None);
        self.permit(subject, trail.clone())
    }

    /// Check 13: the record is on disk before the permit is out.
    fn permit<S: Subject>(&self, subject: S, mut trail: Trail) -> Result<S::Leave> {
        trail.id = self.audit.record(&trail.entry(Step::Sending))?;
        Ok(subject.leave(trail, Seal::new()))
    }

    /// Records what became of a change that was sent.
    ///
    /// # Errors
    /// `audit_unavailable`: the change was made all the same, and the caller is told so.
    pub fn sent(&self, trail: &Trail, result: &Result<Value>) -> Result<()> {
        let mut entry = match result {
            Ok(data) => {
                let upid = data.as_str().filter(|t| t.starts_with("UPID:")).map(str::to_owned);
                Entry { upid, ..trail.entry(Step::Sent) }
            }
            Err(error) if error.code == Code::OutcomeUnknown => {
                self.with_error(trail.entry(Step::Unknown), error)
            }
            Err(error) => self.with_error(trail.entry(Step::Failed), error),
        };
        entry.of = (trail.id > 0).then_some(trail.id);
        self.audit.record(&entry).map(|_| ())
    }

    /// Records a later step of a change: how its task ended, or that nobody waits any more.
    ///
    /// # Errors
    /// `audit_unavailable`.
    pub fn later(&self, trail: &Trail, step: Step, upid: &str, reason: Option<&str>) -> Result<()> {
        let entry = Entry {
            upid: Some(upid.to_owned()),
            reason: reason.map(|r| self.redactor.text(r).unwrap_or_else(|| r.to_owned())),
            of: (trail.id > 0).then_some(trail.id),
            ..trail.entry(step)
        };
        self.audit.record(&entry).map(|_| ())
    }

    /// Records an operation that did not come as far as the checks: a path,
    /// method or parameters that could not be read. Failing to is no further error.
    pub fn refused(&self, method: &str, path: &str, caller: &Caller<'_>, error: &Error) {
        let entry =
            Entry { method: Some(quoted(method)), path: Some(quoted(path)), ..entry_of(caller) };
        self.refuse(entry, error);
    }

    /// Records that a server started which may change things: the flags that
    /// are on, and which `critical.env` they come from.
    ///
    /// # Errors
    /// `audit_unavailable`.
    pub fn started(&self) -> Result<()> {
        let flags: Vec<&str> = self.config.flags.iter().map(super::Flag::category).collect();
        let params = json!({
            "critical_env": self.config.critical_file.display().to_string(),
            "critical_env_sha256": self.config.critical_sha256,
            "flags": flags,
        });
        self.audit.record(&Entry { params, ..Entry::new(Step::Started) }).map(|_| ())
    }

    /// Records a read that failed. Failing to is no further error.
    pub fn failed_read(&self, caller: &Caller<'_>, error: &Error) {
        let entry = self.with_error(entry_of(caller), error);
        if let Err(error) = self.audit.record(&Entry { outcome: Step::Failed, ..entry }) {
            tracing::warn!(%error, "a failed read was not recorded");
        }
    }

    /// Records a read that succeeded, where reads are recorded.
    pub fn read(&self, op: &Operation, caller: &Caller<'_>, took: Duration) {
        if !self.config.audit.reads {
            return;
        }
        let entry = Entry {
            class: Some(Class::Read.as_str().to_owned()),
            method: Some(op.method.as_str().to_owned()),
            path: Some(op.path.to_string()),
            params: self.masked(op, &op.params),
            duration_ms: Some(millis(took)),
            ..entry_of(caller)
        };
        if let Err(error) = self.audit.record(&Entry { outcome: Step::Read, ..entry }) {
            tracing::warn!(%error, "a read was not recorded");
        }
    }

    fn record_refusal(&self, trail: &Trail, error: &Error) {
        self.refuse(trail.entry(Step::Refused), error);
    }

    fn refuse(&self, entry: Entry, error: &Error) {
        let step = if error.code == Code::ApprovalRequired { Step::Asked } else { Step::Refused };
        let entry = self.with_error(Entry { outcome: step, ..entry }, error);
        if let Err(error) = self.audit.record(&entry) {
            tracing::warn!(%error, "a refusal was not recorded");
        }
    }

    fn with_error(&self, entry: Entry, error: &Error) -> Entry {
        let mut error = error.clone();
        self.redactor.error(&mut error);
        Entry { code: Some(error.code.as_str().to_owned()), reason: Some(error.message), ..entry }
    }

    /// Parameters as they may be shown and recorded.
    fn masked(&self, op: &Operation, params: &Params) -> Value {
        let mut value = params.to_json();
        self.redactor.value(Some(&op.path), &mut value);
        value
    }
}

/// What the records of one call have in common, before anything came of it.
fn trail(shown: &Shown, judged: &Judged, caller: &Caller<'_>) -> Trail {
    let class = &judged.judgement.class;
    let category = class.category().map(|f| f.category());
    let entry = Entry {
        class: Some(class.class_text().to_owned()),
        category: category.map(str::to_owned),
        method: Some(shown.method.to_owned()),
        path: Some(shown.path.clone()),
        params: shown.params.clone(),
        vmids: judged.judgement.touched.vmids.iter().map(|v| v.get()).collect(),
        ..entry_of(caller)
    };
    Trail {
        id: 0,
        class: class.class_text(),
        category,
        request: shown.request(),
        entry,
        started: Instant::now(),
    }
}

impl Trail {
    fn approval(&mut self, how: &str, who: Option<&str>) {
        self.entry.approval =
            Some(who.map_or_else(|| how.to_owned(), |who| format!("{how} by {who}")));
    }

    fn entry(&self, outcome: Step) -> Entry {
        Entry { outcome, duration_ms: Some(millis(self.started.elapsed())), ..self.entry.clone() }
    }
}

fn entry_of(caller: &Caller<'_>) -> Entry {
    Entry {
        client: caller.client.to_owned(),
        tool: caller.tool.to_owned(),
        ..Entry::new(Step::Refused)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn declined(why: &str) -> Error {
    Error::new(Code::ApprovalDeclined, format!("nothing was sent: {why}"))
        .hint("do not ask for the same again unless the person wants it")
}

fn expired(why: &str) -> Error {
    Error::new(Code::ApprovalExpired, format!("nothing was sent: {why}"))
        .hint("look at the object again, and ask anew")
}

fn waits(id: &str, text: &str) -> Error {
    Error::new(Code::ApprovalRequired, format!("a person has to agree first (request {id})"))
        .hint(format!("the person runs `proxmox-mcp approve {id}` on the machine of this server; then the same call runs within 10 minutes"))
        .with("request_id", id)
        .with("summary", text)
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
