//! Who is calling, as far as a tool needs to know.

use futures::future::BoxFuture;
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

    /// Whether a form ends the call, and the client repeats the whole of it with the answer.
    fn asks_by_repeating(&self) -> bool {
        false
    }

    /// Whether this call brings the answer to a form that was shown before.
    fn is_answering(&self) -> bool {
        false
    }

    /// The client's name for records, for example `claude-code 2.1`.
    fn client(&self) -> String;
}

/// A caller within a call that has changed something already. Such a call must
/// not be repeated from its beginning, as it would make the same thing twice:
/// a form that needs that is not shown.
pub struct Underway<'a>(pub &'a dyn Session);

impl Session for Underway<'_> {
    fn progress(&self, progress: Progress) {
        self.0.progress(progress);
    }

    fn cancelled(&self) -> CancellationToken {
        self.0.cancelled()
    }

    fn ask<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Asked> {
        if self.asks_by_repeating() {
            return Box::pin(std::future::ready(Asked::Expired));
        }
        self.0.ask(form)
    }

    fn can_ask(&self) -> bool {
        self.0.can_ask()
    }

    fn asks_by_repeating(&self) -> bool {
        self.0.asks_by_repeating()
    }

    fn is_answering(&self) -> bool {
        self.0.is_answering()
    }

    fn client(&self) -> String {
        self.0.client()
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
