//! Who is calling, as far as a tool needs to know.

use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// One step of long work.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is going on now, for example the newest line of a task's log.
    pub message: String,
    /// How far it is, 0 to 100, where that is known.
    pub percent: Option<f64>,
}

/// A question to a person: whether a change may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// What happens, to what, what hangs on it, how to undo it: plain words.
    pub text: String,
    /// Digest of the request and of the object as it is now, in hexadecimal. A
    /// yes holds for this and nothing else.
    pub digest: String,
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The person said yes to exactly this.
    Yes,
    /// The person said no.
    No,
    /// The form was closed, or the client went away.
    Cancelled,
    /// The answer came too late, or was for something else.
    Expired,
    /// The client shows no forms.
    Unable,
    /// The client shows the form by itself and calls again with the answer.
    Later,
}

/// Where a call begins that the client may have repeated to answer a form.
#[derive(Debug, Clone, PartialEq)]
pub enum Round {
    /// At its beginning.
    First,
    /// After what an earlier round did, as its form carried it along.
    From(Value),
    /// Unknown: what the client brought back is too old, altered, or of another call.
    Lost,
}

/// The caller of a tool: a client over the protocol, or a person at a terminal.
pub trait Session: Send + Sync {
    /// Tells the caller how far long work is, if it wants to know.
    fn progress(&self, _progress: Progress) {}

    /// Fires when the caller no longer waits for the answer.
    fn cancelled(&self) -> CancellationToken {
        CancellationToken::new()
    }

    /// Asks the person who sits at the client.
    fn ask<'a>(&'a self, _form: &'a Form) -> BoxFuture<'a, Asked> {
        Box::pin(std::future::ready(Asked::Unable))
    }

    /// Whether the client shows forms to the person.
    fn can_ask(&self) -> bool {
        false
    }

    /// Asks within a call that has changed something already. Where the client
    /// repeats the call with the answer, `done` comes back by [`Session::round`].
    fn ask_after<'a>(&'a self, form: &'a Form, _done: Value) -> BoxFuture<'a, Asked> {
        self.ask(form)
    }

    /// Where this call begins.
    fn round(&self) -> Round {
        Round::First
    }

    /// Whether this call brings the answer to a form that was shown before.
    fn is_answering(&self) -> bool {
        false
    }

    /// The client's name for records, for example `claude-code 2.1`.
    fn client(&self) -> String;
}

/// A caller within a call that has changed something already. Where a form ends
/// the call and the client repeats it, the repeated one goes on from what was
/// told here, as doing all of it again would make the same thing twice.
pub struct Underway<'a> {
    session: &'a dyn Session,
    done: Mutex<Value>,
}

impl<'a> Underway<'a> {
    /// With what has been done so far.
    pub fn new(session: &'a dyn Session, done: Value) -> Self {
        Self { session, done: Mutex::new(done) }
    }

    /// Says what has been done by now.
    pub fn did(&self, done: Value) {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = done;
    }
}

impl Session for Underway<'_> {
    fn progress(&self, progress: Progress) {
        self.session.progress(progress);
    }

    fn cancelled(&self) -> CancellationToken {
        self.session.cancelled()
    }

    fn ask<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Asked> {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.session.ask_after(form, done)
    }

    fn can_ask(&self) -> bool {
        self.session.can_ask()
    }

    fn is_answering(&self) -> bool {
        self.session.is_answering()
    }

    fn client(&self) -> String {
        self.session.client()
    }
}

/// A caller that hears nothing in between.
#[derive(Debug)]
pub struct Silent(pub &'static str);

impl Session for Silent {
    fn client(&self) -> String {
        self.0.to_owned()
    }
}
