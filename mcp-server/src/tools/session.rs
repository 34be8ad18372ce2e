//! Who is calling, as far as a tool needs to know.

use tokio_util::sync::CancellationToken;

/// One step of long work.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is going on now, for example the newest line of a task's log.
    pub message: String,
    /// How far it is, 0 to 100, where that is known.
    pub percent: Option<f64>,
}

/// The caller of a tool: a client over the protocol, or a person at a terminal.
pub trait Session: Send + Sync {
    /// Tells the caller how far long work is, if it wants to know.
    fn progress(&self, _progress: Progress) {}

    /// Fires when the caller no longer waits for the answer.
    fn cancelled(&self) -> CancellationToken {
        CancellationToken::new()
    }

    /// The client's name for records, for example `claude-code 2.1`.
    fn client(&self) -> String;
}

/// A caller that hears nothing in between.
#[derive(Debug)]
pub struct Silent(pub &'static str);

impl Session for Silent {
    fn client(&self) -> String {
        self.0.to_owned()
    }
}
