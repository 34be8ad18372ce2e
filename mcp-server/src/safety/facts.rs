//! What has been asked of Proxmox while a call is judged.
//!
//! The checks are plain functions over [`Facts`]: a check that needs an answer
//! asks for it, and goes on as if it could not be had. Whoever runs the checks
//! fetches what was asked and runs them again, until nothing new is asked, so
//! that every question goes out once.

use std::{cell::RefCell, collections::BTreeMap, future::Future, sync::Arc};

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
}

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

/// Answers, and the questions that are still open.
#[derive(Debug, Default)]
pub struct Facts {
    answers: BTreeMap<Question, Result<Arc<Value>, Error>>,
    open: RefCell<BTreeMap<Question, Params>>,
    /// Why nobody answers, once that is known: further questions are not waited for.
    down: Option<Error>,
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

/// Most rounds of questions: an answer can raise one more question, and no check goes deeper.
const ROUNDS: usize = 6;

impl Facts {
    /// Runs a check until it has no open questions, asking `state` each of them once.
    pub async fn settle<T>(&mut self, state: &impl State, check: impl Fn(&Facts) -> T) -> T {
        let mut result = check(self);
        for _ in 0..ROUNDS {
            let open = self.open.take();
            if open.is_empty() {
                break;
            }
            let asked = open.into_iter().map(|(question, params)| async move {
                let answer = match question.1.as_str() {
                    CHANGES => state.changes(&question.0).await,
                    _ => state.get(&question.0, &params).await,
                };
                (question, answer)
            });
            let answers = futures::future::join_all(asked).await;
            self.down = answers
                .iter()
                .find_map(|(_, answer)| answer.as_ref().err().filter(|e| is_down(e)).cloned());
            self.answers.extend(answers);
            result = check(self);
        }
        self.open.take();
        result
    }

    /// The answer to a read. An unanswered question is noted and is an error until it was asked.
    ///
    /// # Errors
    /// What the node answered, or `unreachable` while nobody was asked.
    pub fn ask(&self, segments: &[&str], params: Params) -> Result<&Value> {
        let question = (ApiPath::of(segments)?, params.encoded());
        self.answered(question, params)
    }

    /// The diff that a read shows beside its data, as text; null where nothing is staged.
    ///
    /// # Errors
    /// As [`Facts::ask`].
    pub fn changes(&self, segments: &[&str]) -> Result<&Value> {
        self.answered((ApiPath::of(segments)?, CHANGES.to_owned()), Params::new())
    }

    fn answered(&self, question: Question, params: Params) -> Result<&Value> {
        match self.answers.get(&question) {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(error.clone()),
            None => {
                if let Some(down) = &self.down {
                    return Err(down.clone());
                }
                let text = question.0.to_string();
                self.open.borrow_mut().insert(question, params);
                Err(Error::new(Code::Unreachable, format!("{text} was not asked")))
            }
        }
    }

    /// Forgets every answer, so that the state is asked anew.
    pub fn clear(&mut self) {
        self.answers.clear();
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
