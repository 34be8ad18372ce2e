//! Runs one program of the node: with pipes of its own, a limit on time, input
//! and output, and an end for the whole tree.

mod feed;
mod job;
mod ready;

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::PollFlags;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::client::Client;
use crate::protocol::{Code, Input, MAX_CHUNK, Refused, Reply};
use crate::tree::Tree;
use crate::{node, sys};
use feed::Feed;
pub(crate) use job::{Ended, InputRule, Job, Output};
use ready::{Set, Source};

/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);
/// How long what is left in the pipes is taken after the end.
const DRAIN: Duration = Duration::from_millis(250);
/// How often the tree is looked at while it is asked to end.
const GLANCE: Duration = Duration::from_millis(100);

/// Runs the job to its end.
///
/// # Errors
/// It could not be started.
fn run(job: &Job, client: &mut Client) -> io::Result<Ended> {
    let signals = watch_signals()?;
    let started = Instant::now();
    let tree = Tree::begin(job.cgroup.clone())?;
    let mut ended = Ended::default();
    if !tree.has_session() {
        ended.notes.push(
            "the kernel gave no audit session: what cleared its environment is not found".into(),
        );
    }
    let mut child = spawn(job, &tree)?;
    let mut run = Run {
        feed: Feed::new(child.stdin.take()),
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
        job,
        client,
        tree,
        ended,
        started,
    };
    let status = run.until_end(&mut child, &signals)?;
    let mut ended = run.ended;
    ended.exit_code = status.and_then(|status| status.code());
    ended.signal = status.and_then(|status| status.signal());
    ended.duration = started.elapsed();
    Ok(ended)
}

fn spawn(job: &Job, tree: &Tree) -> io::Result<Child> {
    let (name, value) = tree.variable();
    let mut command = Command::new(node::at(job.program));
    command
        .args(&job.args)
        .current_dir("/")
        .env_clear()
        .env("PATH", node::PATH)
        .env(name, value)
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .stdin(match job.input {
            InputRule::Passed(_) => Stdio::piped(),
            _ => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    sys::unblock_signals(&mut command).spawn()
}

/// From here on the end of a child and the wish to end this process are
/// things to read, and interrupt nothing.
fn watch_signals() -> io::Result<SignalFd> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        set.add(signal);
    }
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

/// A job that runs.
struct Run<'a> {
    job: &'a Job,
    client: &'a mut Client,
    tree: Tree,
    ended: Ended,
    started: Instant,
    feed: Feed,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl Run<'_> {
    /// Until the program has ended, and the whole tree where it has to.
    fn until_end(
        &mut self,
        child: &mut Child,
        signals: &SignalFd,
    ) -> io::Result<Option<ExitStatus>> {
        let mut status = None;
        let mut kill_at: Option<Instant> = None;
        let listens = self.job.input != InputRule::Detached;
        if listens {
            // What has come with the request is not waited for.
            self.read_client();
        }
        loop {
            if status.is_none() {
                status = child.try_wait()?;
            }
            match kill_at {
                None if status.is_some() => break,
                None if self.must_end() => {
                    self.tree.terminate();
                    self.feed.close();
                    kill_at = Some(Instant::now() + GRACE);
                    continue;
                }
                Some(_) if status.is_some() && self.tree.count() == 0 => break,
                Some(at) if Instant::now() >= at => break,
                _ => {}
            }
            let wait = match kill_at {
                Some(at) => GLANCE.min(at.saturating_duration_since(Instant::now())),
                None => self.job.timeout.saturating_sub(self.started.elapsed()),
            };
            self.turn(wait, signals, listens && kill_at.is_none())?;
        }
        if kill_at.is_some() {
            self.kill(child, &mut status)?;
        }
        self.drain()?;
        if kill_at.is_none() {
            self.ended.background = self.tree.count();
        }
        Ok(status)
    }

    /// Whether it has to end, and why.
    fn must_end(&mut self) -> bool {
        self.ended.timed_out |= self.started.elapsed() >= self.job.timeout;
        self.ended.cancelled |= self.client.is_gone();
        self.ended.cancelled &= self.job.input != InputRule::Detached;
        self.ended.timed_out || self.ended.cancelled || self.ended.violation.is_some()
    }

    /// Waits for what comes first, and deals with everything that has come.
    fn turn(&mut self, wait: Duration, signals: &SignalFd, listen: bool) -> io::Result<()> {
        let (client_in, client_out) = (io::stdin(), io::stdout());
        let mut set = Set::default();
        set.add(Source::Signal, Some(signals.as_fd()), PollFlags::POLLIN);
        set.add(Source::Stdout, self.stdout.as_ref().map(|fd| fd.as_fd()), PollFlags::POLLIN);
        set.add(Source::Stderr, self.stderr.as_ref().map(|fd| fd.as_fd()), PollFlags::POLLIN);
        set.add(Source::Feed, self.feed.wants_room(), PollFlags::POLLOUT);
        if listen && !self.client.input_ended() {
            set.add(Source::ClientIn, Some(client_in.as_fd()), PollFlags::POLLIN);
        }
        if !self.client.is_gone() {
            // Without POLLOUT it still tells that the other end was closed.
            let room = self.client.has_output().then_some(PollFlags::POLLOUT);
            let flags = room.unwrap_or(PollFlags::empty());
            set.add(Source::ClientOut, Some(client_out.as_fd()), flags);
        }
        for (source, flags) in set.wait(wait)? {
            match source {
                Source::Signal => self.read_signals(signals)?,
                Source::Stdout => self.read_stdout(),
                Source::Stderr => self.read_stderr(),
                Source::Feed => self.feed.write_some(),
                Source::ClientIn => {
                    self.client.read_some();
                }
                Source::ClientOut if flags.contains(PollFlags::POLLOUT) => {
                    self.client.write_some();
                }
                Source::ClientOut => self.client.set_gone(),
            }
        }
        if listen {
            self.read_client();
        }
        Ok(())
    }

    fn read_signals(&mut self, signals: &SignalFd) -> io::Result<()> {
        while let Some(info) = signals.read_signal()? {
            if info.ssi_signo != Signal::SIGCHLD as u32 {
                self.ended.cancelled = true;
            }
        }
        Ok(())
    }

    /// Deals with every whole line that the client has sent.
    fn read_client(&mut self) {
        while self.ended.violation.is_none() && !self.ended.cancelled {
            match self.client.next_line() {
                Ok(Some(line)) => match Input::parse(&line) {
                    Ok(input) => self.obey(input),
                    Err(bad) => self.violate(Code::BadRequest, bad.0),
                },
                Ok(None) => break,
                Err(bad) => self.violate(Code::BadRequest, bad.0),
            }
        }
        if self.client.input_ended() && self.job.input != InputRule::Ignored {
            self.ended.cancelled = true;
        }
    }

    fn obey(&mut self, input: Input) {
        match (input, self.job.input) {
            (Input::Cancel, _) => self.ended.cancelled = true,
            (_, InputRule::Passed(_)) if self.feed.is_complete() => {
                self.violate(Code::BadRequest, "input came after its end".into());
            }
            (Input::Data(data), InputRule::Passed(most)) => {
                if self.feed.add(&data) > most {
                    self.violate(Code::Limit, format!("the policy allows {most} bytes of input"));
                }
            }
            (Input::End, InputRule::Passed(_)) => self.feed.finish(),
            _ => self.violate(Code::BadRequest, "this request has no input".into()),
        }
    }

    fn violate(&mut self, code: Code, cause: String) {
        let message = format!("{cause}; what was running has been ended");
        self.ended.violation = Some(Refused::new(code, message));
    }

    fn read_stdout(&mut self) {
        let mut chunk = vec![0; MAX_CHUNK];
        let length = self.stdout.as_mut().map_or(0, |pipe| read_once(pipe, &mut chunk));
        if length == 0 {
            self.stdout = None;
        }
        chunk.truncate(length);
        let taken = self.ended.stdout.take(chunk, self.job);
        if let Some(bytes) = taken {
            self.client.queue(&Reply::Stdout(bytes));
        }
    }

    fn read_stderr(&mut self) {
        let mut chunk = vec![0; MAX_CHUNK];
        let length = self.stderr.as_mut().map_or(0, |pipe| read_once(pipe, &mut chunk));
        if length == 0 {
            self.stderr = None;
        }
        chunk.truncate(length);
        let taken = self.ended.stderr.take(chunk, self.job);
        if let Some(bytes) = taken {
            self.client.queue(&Reply::Stderr(bytes));
        }
    }

    fn kill(&mut self, child: &mut Child, status: &mut Option<ExitStatus>) -> io::Result<()> {
        let left = self.tree.kill();
        if left > 0 {
            self.ended.notes.push(format!("{left} processes could not be ended"));
        }
        let deadline = Instant::now() + GRACE;
        while status.is_none() && Instant::now() < deadline {
            *status = child.try_wait()?;
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Takes what the program left in its pipes. Their end is not waited for:
    /// a background process may hold them for ever.
    fn drain(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + DRAIN;
        while Instant::now() < deadline {
            let mut set = Set::default();
            set.add(Source::Stdout, self.stdout.as_ref().map(|fd| fd.as_fd()), PollFlags::POLLIN);
            set.add(Source::Stderr, self.stderr.as_ref().map(|fd| fd.as_fd()), PollFlags::POLLIN);
            let ready = set.wait(Duration::ZERO)?;
            if ready.is_empty() {
                break;
            }
            for (source, _) in ready {
                match source {
                    Source::Stdout => self.read_stdout(),
                    _ => self.read_stderr(),
                }
            }
        }
        Ok(())
    }
}

/// One read; 0 at the end, also when the pipe is broken.
fn read_once(pipe: &mut impl io::Read, chunk: &mut [u8]) -> usize {
    loop {
        match pipe.read(chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.unwrap_or(0),
        }
    }
}
