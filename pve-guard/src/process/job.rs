//! What is run, and how it ended.

use std::path::PathBuf;
use std::time::Duration;

use crate::client::Client;
use crate::protocol::{Code, Refused};

/// Bytes of a stream that the verbs keep for themselves.
const KEPT: u64 = 8 * 1024 * 1024;

/// What is to be run.
pub(crate) struct Job {
    /// Absolute path.
    pub(crate) program: &'static str,
    pub(crate) args: Vec<String>,
    /// Beside `PATH` and the tree's mark.
    pub(crate) env: Vec<(&'static str, String)>,
    pub(crate) timeout: Duration,
    pub(crate) output: Output,
    /// Bytes of each stream that are kept or sent; the rest is counted.
    pub(crate) max_output: u64,
    pub(crate) input: InputRule,
    /// The cgroup of the container that the program enters.
    pub(crate) cgroup: Option<PathBuf>,
}

/// Where the output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// To the client as it comes.
    Client,
    /// Into [`Ended`].
    Kept,
}

/// What the client's input means to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputRule {
    /// Nothing that the client does or suffers ends the job: it must not be
    /// left half done.
    Detached,
    /// `cancel` ends the job, the end of input does not.
    Ignored,
    /// `cancel` and the end of input end the job.
    Watched,
    /// As `Watched`, and so many bytes of data go to the program.
    Passed(u64),
}

/// How it ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) timed_out: bool,
    pub(crate) cancelled: bool,
    /// The client broke a rule; the job was ended for it.
    pub(super) violation: Option<Refused>,
    pub(crate) stdout: Stream,
    pub(crate) stderr: Stream,
    pub(crate) background: u32,
    pub(crate) duration: Duration,
    pub(crate) notes: Vec<String>,
}

/// One output stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// What was kept, with [`Output::Kept`].
    pub(crate) kept: Vec<u8>,
    /// All bytes that came.
    pub(crate) bytes: u64,
    /// Some of them were neither kept nor sent.
    pub(crate) cut: bool,
}

impl Stream {
    /// The kept bytes as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

impl Ended {
    /// Whether it ran to its own end, and well.
    pub(crate) fn well(&self) -> bool {
        self.exit_code == Some(0) && !self.timed_out && !self.cancelled
    }

    /// How it ended, for a message.
    pub(crate) fn how(&self) -> String {
        match (self.timed_out, self.cancelled, self.exit_code, self.signal) {
            (true, ..) => "took too long and was ended".into(),
            (_, true, ..) => "was cancelled".into(),
            (.., Some(code), _) => format!("ended with status {code}"),
            (.., Some(signal)) => format!("was ended by signal {signal}"),
            _ => "did not end".into(),
        }
    }
}

impl Job {
    /// A program whose output is kept, as the verbs need it for themselves.
    pub(crate) fn kept(program: &'static str, args: &[&str], timeout_s: u64) -> Self {
        Self {
            program,
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: vec![("HOME", "/root".into()), ("LC_ALL", "C.UTF-8".into())],
            timeout: Duration::from_secs(timeout_s),
            output: Output::Kept,
            max_output: KEPT,
            input: InputRule::Ignored,
            cgroup: None,
        }
    }

    /// The same, and not to be left half done.
    pub(crate) fn detached(mut self) -> Self {
        self.input = InputRule::Detached;
        self
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// `internal`: it could not be started. Or the client broke a rule, and
    /// it was ended for that.
    pub(crate) fn run(&self, client: &mut Client) -> Result<Ended, Refused> {
        let mut ended = super::run(self, client).map_err(|error| {
            Refused::new(Code::Internal, format!("cannot run {}: {error}", self.program))
        })?;
        ended.violation.take().map_or(Ok(ended), Err)
    }
}

impl Stream {
    /// Counts these bytes and keeps what there is room for; says what of them
    /// is to be sent.
    pub(super) fn take(&mut self, mut bytes: Vec<u8>, job: &Job) -> Option<Vec<u8>> {
        let room = job.max_output.saturating_sub(self.bytes);
        self.bytes += bytes.len() as u64;
        if bytes.len() as u64 > room {
            self.cut = true;
            bytes.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        }
        match job.output {
            Output::Kept => self.kept.append(&mut bytes),
            Output::Client if !bytes.is_empty() => return Some(bytes),
            Output::Client => {}
        }
        None
    }
}
