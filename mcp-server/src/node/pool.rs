//! Warm connections to one node: a few threads, one link each, and a queue.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use super::link::{Connector, Exit, Failure, Link, Output, Start, Streams};
use crate::{Code, Error, Result};

/// Most connections to one node. Each runs one command at a time, because
/// libssh2 has one lock a session; what exceeds them waits.
pub const MAX_LINKS: usize = 4;
/// How often an idle connection says a word.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// When an idle connection is given up.
const IDLE: Duration = Duration::from_secs(600);
/// Longest wait for a free connection.
const QUEUE_WAIT: Duration = Duration::from_secs(60);
/// Pieces of input or output between the caller and the connection's thread.
const PIECES: usize = 8;

/// A command that runs, or waits for a free connection. Dropping it closes the
/// command's input, which ends it.
#[derive(Debug)]
pub struct Exec {
    /// Its standard input; taking it away is the end of input.
    pub input: Option<mpsc::Sender<Vec<u8>>>,
    /// Its output; the last piece is [`Output::End`].
    pub output: mpsc::Receiver<Output>,
    /// Whether it has begun, or is taken back.
    pub start: Start,
}

impl Drop for Exec {
    fn drop(&mut self) {
        self.start.withdraw();
    }
}

/// The connections to one node.
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    connector: Box<dyn Connector>,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Streams>,
    workers: usize,
    idle: usize,
    closed: bool,
}

impl Pool {
    /// A pool without connections yet; `name` names its threads.
    pub fn new(name: impl Into<String>, connector: Box<dyn Connector>) -> Self {
        let name = name.into();
        let shared = Shared { name, connector, state: Mutex::default(), wake: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Starts a command on a free connection, or puts it into the queue.
    ///
    /// # Errors
    /// `internal` when the system gives no thread.
    pub fn exec(&self, limit: Duration) -> Result<Exec> {
        let (input, input_end) = mpsc::channel(PIECES);
        let (output_end, output) = mpsc::channel(PIECES);
        let start_by = Instant::now() + QUEUE_WAIT;
        let start = Start::default();
        let job =
            Streams { input: input_end, output: output_end, limit, start_by, start: start.clone() };
        let mut state = self.shared.lock();
        state.queue.push_back(job);
        if state.idle < state.queue.len() && state.workers < MAX_LINKS {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name(format!("ssh {}", self.shared.name));
            match thread.spawn(move || shared.work()) {
                Ok(_) => state.workers += 1,
                // Those that there are take it, later.
                Err(_) if state.workers > 0 => {}
                Err(e) => {
                    state.queue.pop_back();
                    return Err(Error::internal(format!("no thread for SSH: {e}")));
                }
            }
        }
        drop(state);
        self.shared.wake.notify_one();
        Ok(Exec { input: Some(input), output, start })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of one connection's thread.
    fn work(&self) {
        let _leave = Leave(self);
        let mut link = None;
        while let Some(job) = self.next_job(&mut link) {
            run(&*self.connector, &mut link, job);
        }
    }

    /// Waits for a job, keeping the connection alive; `None` when it is time
    /// to go.
    fn next_job(&self, link: &mut Option<Box<dyn Link>>) -> Option<Streams> {
        let since = Instant::now();
        let mut state = self.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                return Some(job);
            }
            if state.closed || since.elapsed() >= IDLE {
                return None;
            }
            state.idle += 1;
            let (woken, waited) =
                self.wake.wait_timeout(state, KEEP_ALIVE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.queue.is_empty() {
                drop(state);
                if !link.as_mut().is_some_and(|link| link.keep_alive()) {
                    *link = None;
                }
                state = self.lock();
            }
        }
    }
}

/// Takes the thread out of the count also when it ends by a panic.
struct Leave<'a>(&'a Shared);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.lock().workers -= 1;
    }
}

/// Runs one job to its end and tells its caller how it went.
fn run(connector: &dyn Connector, link: &mut Option<Box<dyn Link>>, mut job: Streams) {
    if job.output.is_closed() {
        return;
    }
    let end = if Instant::now() > job.start_by {
        let waited = QUEUE_WAIT.as_secs();
        let error = Error::new(
            Code::Timeout,
            format!("all {MAX_LINKS} connections to the node were busy for {waited} s"),
        )
        .hint("nothing was sent; wait for running commands to end, then try again");
        Err(Failure { error, sent: false })
    } else {
        attempt(connector, link, &mut job)
    };
    // Nobody there to hear it is no fault.
    let _ = job.output.blocking_send(Output::End(end));
}

/// Runs the job on the warm connection, or, where that turns out to be dead
/// before anything was sent, on a new one.
fn attempt(
    connector: &dyn Connector,
    link: &mut Option<Box<dyn Link>>,
    job: &mut Streams,
) -> Result<Exit, Failure> {
    if let Some(warm) = link {
        match warm.exec(job) {
            Err(failure) => {
                *link = None;
                if failure.sent {
                    return Err(failure);
                }
                tracing::debug!("SSH connection was lost, connecting again: {}", failure.error);
            }
            end => return end,
        }
    }
    // Connecting would be for nothing.
    if job.output.is_closed() {
        return Ok(Exit::default());
    }
    let mut fresh = connector.connect().map_err(|error| Failure { error, sent: false })?;
    let end = fresh.exec(job);
    if end.is_ok() {
        *link = Some(fresh);
    }
    end
}

#[cfg(test)]
mod tests;
