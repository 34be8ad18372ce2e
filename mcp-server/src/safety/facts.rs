//! What has been asked of Proxmox while a call is judged.
//!
//! The checks are plain functions over [`Facts`]: a check that needs an answer
//! asks for it, and goes on as if it could not be had. Whoever runs the checks
//! fetches what was asked and runs them again, until nothing new is asked, so
//! that every question goes out once.
//!
//! What is only told, and not decided on, is looked up in the same way by
//! [`Facts::look`]: after what decides, and no longer than whoever answers has
//! patience, since it can be a question to every guest of a cluster.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    future::{self, Future},
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::{Either, FusedFuture, select},
    stream,
};
use serde_json::Value;

use crate::{
    Code, Error, Result,
    pve::{ApiPath, Client, Params, Vmid, loose},
};

/// Who answers questions about the estate.
pub trait State: Send + Sync {
    /// A read of class READ.
    fn get(
        &self,
        path: &ApiPath,
        params: &Params,
    ) -> impl Future<Output = Result<Arc<Value>>> + Send;

    /// What stands as `changes` beside the data of a read: a diff, or null.
    fn changes(&self, path: &ApiPath) -> impl Future<Output = Result<Arc<Value>>> + Send {
        let path = path.clone();
        async move { Err(Error::new(Code::Unreachable, format!("changes of {path} were not asked"))) }
    }

    /// Ends when what is only told is waited for no longer.
    fn patience(&self) -> impl Future<Output = ()> + Send {
        future::pending()
    }
}

/// How long one call waits for what is only told: a client waits for 60 s, and a tool that
/// tells the same beside its plan waits as long once more.
pub const PATIENCE: Duration = Duration::from_secs(15);

fn diff(answer: &crate::pve::Answer) -> Arc<Value> {
    Arc::new(answer.changes.as_deref().map_or(Value::Null, Value::from))
}

impl State for Client {
    async fn get(&self, path: &ApiPath, params: &Params) -> Result<Arc<Value>> {
        Client::get(self, path, params).await
    }

    async fn changes(&self, path: &ApiPath) -> Result<Arc<Value>> {
        Ok(diff(&self.answer(path, &Params::new()).await?))
    }

    async fn patience(&self) {
        tokio::time::sleep(PATIENCE).await;
    }
}

/// The same, but never from answers that were kept: what a change is decided on.
#[derive(Clone, Copy)]
pub struct Fresh<'a>(pub &'a Client);

impl State for Fresh<'_> {
    async fn get(&self, path: &ApiPath, params: &Params) -> Result<Arc<Value>> {
        self.0.get_fresh(path, params).await
    }

    async fn changes(&self, path: &ApiPath) -> Result<Arc<Value>> {
        Ok(diff(&self.0.answer_fresh(path, &Params::new()).await?))
    }

    async fn patience(&self) {
        tokio::time::sleep(PATIENCE).await;
    }
}

/// Nobody to ask: every question stays open, and the higher class holds.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl State for Nobody {
    async fn get(&self, path: &ApiPath, _params: &Params) -> Result<Arc<Value>> {
        Err(Error::new(Code::Unreachable, format!("{path} was not asked")))
    }
}

/// A question: a path and the text of its parameters, or [`CHANGES`].
type Question = (ApiPath, String);

/// Asks for what stands beside the data; no encoded parameters look like it.
const CHANGES: &str = " changes";

/// A question that was not asked yet.
#[derive(Debug, Default)]
struct Open {
    params: Params,
    /// Whether something is decided on the answer.
    decides: bool,
}

type Answers = BTreeMap<Question, Result<Arc<Value>, Error>>;

/// Answers, and the questions that are still open.
#[derive(Debug, Default)]
pub struct Facts {
    answers: Answers,
    open: RefCell<BTreeMap<Question, Open>>,
    /// Whether something that is only told was not read in time.
    late: bool,
    /// Why nobody answers, once that is known: further questions are not waited for.
    down: Option<Error>,
}

/// Asks questions, some at once.
fn asked(
    state: &impl State,
    questions: Vec<(Question, Open)>,
) -> impl stream::Stream<Item = (Question, Result<Arc<Value>>)> {
    let asked = questions.into_iter().map(move |(question, open)| async move {
        let answer = match question.1.as_str() {
            CHANGES => state.changes(&question.0).await,
            _ => state.get(&question.0, &open.params).await,
        };
        (question, answer)
    });
    stream::iter(asked).buffer_unordered(AT_ONCE)
}

/// Whether an error means that the next question would fare no better.
fn is_down(error: &Error) -> bool {
    matches!(
        error.code,
        Code::Unreachable
            | Code::Timeout
            | Code::TlsUntrusted
            | Code::TlsPinMismatch
            | Code::Unauthorized
            | Code::Config
    )
}

/// Whether the node does not have the endpoint at all, as those of an older release.
pub(super) fn no_such_endpoint(error: &Error) -> bool {
    error.details.get("http_status").and_then(Value::as_u64) == Some(501)
}

/// Most rounds of questions: an answer can raise one more question, and no check goes deeper.
const ROUNDS: usize = 10;

/// Reads under way at once.
const AT_ONCE: usize = 16;

impl Facts {
    /// Runs a check until it has no open questions, asking `state` each of them once.
    pub async fn settle<T>(&mut self, state: &impl State, check: impl Fn(&Facts) -> T) -> T {
        let mut result = check(self);
        let mut over = pin!(state.patience().fuse());
        for _ in 0..ROUNDS {
            let open = self.open.take();
            if open.is_empty() {
                break;
            }
            let (deciding, told): (Vec<_>, Vec<_>) =
                open.into_iter().partition(|(_, open)| open.decides);
            let deciding: Answers = asked(state, deciding).collect().await;
            self.down = deciding
                .values()
                .find_map(|answer| answer.as_ref().err().filter(|e| is_down(e)).cloned());
            self.answers.extend(deciding);
            if self.down.is_none() {
                self.look_up(state, told, over.as_mut()).await;
            }
            result = check(self);
        }
        self.open.take();
        result
    }

    /// Asks what is only told, as long as there is patience; the rest is an error from then on.
    async fn look_up(
        &mut self,
        state: &impl State,
        told: Vec<(Question, Open)>,
        mut over: Pin<&mut impl FusedFuture>,
    ) {
        let mut left: BTreeSet<Question> =
            told.iter().map(|(question, _)| question.clone()).collect();
        let mut answers = pin!(asked(state, told));
        while !over.is_terminated() {
            match select(answers.next(), over.as_mut()).await {
                Either::Left((Some((question, answer)), _)) => {
                    left.remove(&question);
                    self.answers.insert(question, answer);
                }
                Either::Left((None, _)) | Either::Right(_) => break,
            }
        }
        self.late |= !left.is_empty();
        self.answers.extend(left.into_iter().map(|question| {
            let late = Error::new(Code::Timeout, format!("{} was not read in time", question.0));
            (question, Err(late))
        }));
    }

    /// The answer to a read. An unanswered question is noted and is an error until it was asked.
    ///
    /// # Errors
    /// What the node answered, or `unreachable` while nobody was asked.
    pub fn ask(&self, segments: &[&str], params: Params) -> Result<&Value> {
        let question = (ApiPath::of(segments)?, params.encoded());
        self.answered(question, params, true)
    }

    /// Whether something was not read in time.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.late
    }

    /// As [`Facts::ask`], for what is told and not decided on.
    ///
    /// # Errors
    /// As [`Facts::ask`], and `timeout` for what was not read in time.
    pub fn look(&self, segments: &[&str], params: Params) -> Result<&Value> {
        let question = (ApiPath::of(segments)?, params.encoded());
        self.answered(question, params, false)
    }

    /// The diff that a read shows beside its data, as text; null where nothing is staged.
    ///
    /// # Errors
    /// As [`Facts::ask`].
    pub fn changes(&self, segments: &[&str]) -> Result<&Value> {
        self.answered((ApiPath::of(segments)?, CHANGES.to_owned()), Params::new(), true)
    }

    fn answered(&self, question: Question, params: Params, decides: bool) -> Result<&Value> {
        match self.answers.get(&question) {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(error.clone()),
            None => {
                if let Some(down) = &self.down {
                    return Err(down.clone());
                }
                let text = question.0.to_string();
                let mut open = self.open.borrow_mut();
                let asked = open.entry(question).or_default();
                *asked = Open { params, decides: decides || asked.decides };
                Err(Error::new(Code::Unreachable, format!("{text} was not asked")))
            }
        }
    }

    /// Forgets every answer, so that the state is asked anew.
    pub fn clear(&mut self) {
        self.answers.clear();
        self.late = false;
        self.down = None;
        self.open.take();
    }

    /// A guest's configuration, pending changes merged in.
    ///
    /// # Errors
    /// As [`Facts::ask`].
    pub fn guest_config(&self, node: &str, kind: &str, vmid: &str) -> Result<&Value> {
        self.ask(&["nodes", node, kind, vmid, "config"], Params::new())
    }

    /// The guests of the cluster as `/cluster/resources` lists them.
    ///
    /// # Errors
    /// As [`Facts::ask`].
    pub fn guests(&self) -> Result<&[Value]> {
        let answer = self.ask(&["cluster", "resources"], Params::new().with("type", "vm"))?;
        Ok(loose::rows(answer))
    }

    /// The row of a guest in `/cluster/resources`, where it can be seen.
    #[must_use]
    pub fn guest(&self, vmid: Vmid) -> Option<&Value> {
        let wanted = Some(u64::from(vmid.get()));
        self.guests().ok()?.iter().find(|row| loose::uint(row, "vmid") == wanted)
    }

    /// Whether a VMID is taken; `None` when it cannot be known.
    #[must_use]
    pub fn guest_exists(&self, vmid: Vmid) -> Option<bool> {
        if self.guest(vmid).is_some() {
            return Some(true);
        }
        // The list hides what the token may not see; this does not.
        match self.ask(&["cluster", "nextid"], Params::new().with("vmid", vmid)) {
            Ok(answer) if loose::as_int(answer) == Some(i64::from(vmid.get())) => Some(false),
            Ok(_) => None,
            Err(error) if error.message.contains("already exists") => Some(true),
            Err(error) if error.to_json().to_string().contains("already exists") => Some(true),
            Err(_) => None,
        }
    }
}

/// Answers from a table, for tests and examples.
#[derive(Debug, Default)]
pub struct Table(BTreeMap<String, Value>);

impl Table {
    /// An empty table: everything that is asked is not found.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the answer to a path, with its parameters as `path?a=b` where it has some.
    #[must_use]
    pub fn with(mut self, question: &str, answer: Value) -> Self {
        self.0.insert(question.to_owned(), answer);
        self
    }
}

impl Table {
    /// Looks an answer up, with the parameters first and then without.
    ///
    /// # Errors
    /// `not_found` for what the table does not have.
    pub fn answer(&self, path: &ApiPath, params: &Params) -> Result<Arc<Value>> {
        let query = params.encoded();
        let full = if query.is_empty() { path.to_string() } else { format!("{path}?{query}") };
        self.0
            .get(&full)
            .or_else(|| self.0.get(path.as_str()))
            .map(|v| Arc::new(v.clone()))
            .ok_or_else(|| Error::new(Code::NotFound, format!("{full} is not in the table")))
    }
}

impl State for Table {
    async fn get(&self, path: &ApiPath, params: &Params) -> Result<Arc<Value>> {
        self.answer(path, params)
    }

    async fn changes(&self, path: &ApiPath) -> Result<Arc<Value>> {
        self.answer(path, &Params::new().with("changes", ""))
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
