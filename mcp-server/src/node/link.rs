//! The seam between the guard's client and whatever carries its lines.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use crate::{Code, Error, Result};

/// Where on the way to a verb's answer something failed, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// TCP connection to the node.
    Reach,
    /// The SSH versions and algorithms agree.
    KeyExchange,
    /// The node shows the pinned key.
    HostKey,
    /// The node accepts our key for the account.
    Login,
    /// The account's key is bound to the guard.
    ForcedCommand,
    /// sudo runs the guard as root.
    Sudo,
    /// The guard is there and speaks our protocol.
    Guard,
    /// The guard's policy allows the verb.
    Policy,
    /// The node's own programs do their part.
    Program,
}

impl Step {
    /// Every step, in order.
    pub const ALL: [Step; 9] = [
        Step::Reach,
        Step::KeyExchange,
        Step::HostKey,
        Step::Login,
        Step::ForcedCommand,
        Step::Sudo,
        Step::Guard,
        Step::Policy,
        Step::Program,
    ];

    /// The step as it stands in `error.step`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Step::Reach => "reach",
            Step::KeyExchange => "key exchange",
            Step::HostKey => "host key",
            Step::Login => "login",
            Step::ForcedCommand => "forced command",
            Step::Sudo => "sudo",
            Step::Guard => "guard",
            Step::Policy => "policy",
            Step::Program => "program",
        }
    }

    /// `ssh_failed` at this step.
    #[must_use]
    pub fn failed(self, message: impl Into<String>) -> Error {
        Error::new(Code::SshFailed, message).with("step", self.as_str())
    }
}

impl Error {
    /// The step of the way to the guard that failed, where there was one.
    #[must_use]
    pub fn ssh_step(&self) -> Option<Step> {
        let step = self.details.get("step")?.as_str()?;
        Step::ALL.into_iter().find(|known| known.as_str() == step)
    }
}

/// Makes links to one node.
pub trait Connector: Send + Sync + 'static {
    /// Reaches the node, checks its host key and logs in. Blocks.
    ///
    /// # Errors
    /// `ssh_failed` with the step, `config` for an unusable key file.
    fn connect(&self) -> Result<Box<dyn Link>>;
}

/// A connection that has logged in; it stays on the thread that made it.
pub trait Link {
    /// Runs the one command that the account is bound to, from its start to
    /// its end. Blocks.
    ///
    /// # Errors
    /// The command's end was not seen: see [`Failure`]. The link is then not
    /// to be used again.
    fn exec(&mut self, streams: &mut Streams) -> Result<Exit, Failure>;

    /// Says a word so that nothing between takes the connection for dead, and
    /// tells whether it still lives.
    fn keep_alive(&mut self) -> bool;
}

/// What a running command is connected to.
#[derive(Debug)]
pub struct Streams {
    /// Its standard input; closed means end of input.
    pub input: mpsc::Receiver<Vec<u8>>,
    /// Its output. A full channel holds the command back; a closed one means
    /// that nobody waits any more, and the command is left to end by itself
    /// with its input closed.
    pub output: mpsc::Sender<Output>,
    /// Longest time from start to end.
    pub limit: Duration,
    /// A job that has not begun by then is not begun.
    pub start_by: Instant,
    /// To be asked before the first input is taken.
    pub start: Start,
}

/// Who comes first: the link that begins to send, or the caller who takes the
/// job back. Only one of them succeeds.
#[derive(Debug, Clone, Default)]
pub struct Start(Arc<AtomicU8>);

impl Start {
    const BEGUN: u8 = 1;
    const WITHDRAWN: u8 = 2;

    /// The link is about to send; `false` when it must not any more.
    #[must_use]
    pub fn begin(&self) -> bool {
        self.0.compare_exchange(0, Self::BEGUN, SeqCst, SeqCst) != Err(Self::WITHDRAWN)
    }

    /// The caller takes the job back; `false` when it may have been sent.
    pub fn withdraw(&self) -> bool {
        self.0.compare_exchange(0, Self::WITHDRAWN, SeqCst, SeqCst) != Err(Self::BEGUN)
    }

    /// Whether anything may have been sent.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.0.load(SeqCst) == Self::BEGUN
    }
}

/// One piece of what a command has to say.
#[derive(Debug)]
pub enum Output {
    /// Bytes of its standard output.
    Stdout(Vec<u8>),
    /// Bytes of its standard error.
    Stderr(Vec<u8>),
    /// It is over; nothing follows.
    End(Result<Exit, Failure>),
}

/// How the far side says a command ended. Only good for explaining: libssh2
/// shows 0 for success, for a signal and for «never told».
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    /// Exit status.
    pub status: i32,
    /// Name of the signal, without `SIG`.
    pub signal: Option<String>,
}

/// Why the end of a command was not seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The cause.
    pub error: Error,
    /// Whether any input may have reached the command.
    pub sent: bool,
}
