//! The client at the other end of standard input and output.
//!
//! Descriptors stay blocking, since sshd and sudo share them: nothing is read
//! before `poll` says that there is something, nor written before it says that
//! there is room, and then at most [`ROOM`] bytes.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::protocol::{BadLine, Code, Input, MAX_LINE, REQUEST_WAIT_S, Refused, Reply};

/// What surely fits when a pipe or socket is said to have room.
const ROOM: usize = 4096;
/// How long the end of an answer may stand unread.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lines from and to the client.
#[derive(Default)]
pub(crate) struct Client {
    input: Vec<u8>,
    /// So many bytes of `input` hold no line feed.
    searched: usize,
    input_ended: bool,
    output: Vec<u8>,
    written: usize,
    gone: bool,
}

impl Client {
    /// Waits for the request line.
    ///
    /// # Errors
    /// `bad_request`: none came in time, or it is too long.
    pub(crate) fn request_line(&mut self) -> Result<Vec<u8>, Refused> {
        let bad = |message: String| Refused::new(Code::BadRequest, message);
        let deadline = Instant::now() + Duration::from_secs(REQUEST_WAIT_S);
        loop {
            if let Some(line) = self.next_line().map_err(|error| bad(error.0))? {
                return Ok(line);
            }
            if self.input_ended {
                // A last line may lack its line feed.
                if self.input.is_empty() {
                    return Err(bad("no request came".into()));
                }
                return Ok(std::mem::take(&mut self.input));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(bad(format!("no request line came within {REQUEST_WAIT_S} s")));
            }
            if self.input_ready(left) {
                self.read_some();
            }
        }
    }

    /// Whether the client sent nothing at all before it closed.
    pub(crate) fn said_nothing(&self) -> bool {
        self.input_ended && self.input.is_empty()
    }

    /// Takes up what has come by now, without waiting.
    pub(crate) fn read_waiting(&mut self) {
        while !self.input_ended && self.input.len() <= MAX_LINE && self.input_ready(Duration::ZERO)
        {
            self.read_some();
        }
    }

    fn input_ready(&self, wait: Duration) -> bool {
        let stdin = io::stdin();
        let mut set = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        // Rounded up, so that a wait below one millisecond is none.
        let wait = PollTimeout::try_from(wait + Duration::from_micros(999));
        matches!(poll(&mut set, wait.unwrap_or(PollTimeout::MAX)), Ok(n) if n > 0)
    }

    /// One read; only when `poll` says that it will not wait.
    pub(crate) fn read_some(&mut self) {
        let mut chunk = [0; 16 * 1024];
        match nix::unistd::read(io::stdin(), &mut chunk) {
            Ok(0) => self.input_ended = true,
            Ok(length) => self.input.extend_from_slice(chunk.get(..length).unwrap_or_default()),
            Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => {}
            Err(_) => self.input_ended = true,
        }
    }

    /// The next whole line, without its line feed.
    ///
    /// # Errors
    /// There is none yet, and what is there is too long for one.
    pub(crate) fn next_line(&mut self) -> Result<Option<Vec<u8>>, BadLine> {
        let unsearched = self.input.get(self.searched..).unwrap_or_default();
        let found = memchr::memchr(b'\n', unsearched).map(|at| at + self.searched);
        if found.unwrap_or(self.input.len()) > MAX_LINE {
            return Err(BadLine(format!("a line is longer than {MAX_LINE} bytes")));
        }
        let Some(end) = found else {
            self.searched = self.input.len();
            return Ok(None);
        };
        let rest = self.input.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.input, rest);
        line.pop();
        self.searched = 0;
        Ok(Some(line))
    }

    /// What was read and is not yet taken.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.input
    }

    /// Whether the client wants no answer any more: it said so, or has gone.
    pub(crate) fn gives_up(&mut self) -> bool {
        self.read_waiting();
        let said = self.next_line().ok().flatten();
        self.gone || said.is_some_and(|line| Input::parse(&line) == Ok(Input::Cancel))
    }

    /// Whether nothing more will come.
    pub(crate) const fn input_ended(&self) -> bool {
        self.input_ended
    }

    /// Whether nobody can read what is written any more.
    pub(crate) const fn is_gone(&self) -> bool {
        self.gone
    }

    /// `poll` said so of standard output.
    pub(crate) fn set_gone(&mut self) {
        self.gone = true;
        self.output.clear();
        self.written = 0;
    }

    /// Whether there is something to write.
    pub(crate) const fn has_output(&self) -> bool {
        self.written < self.output.len()
    }

    /// Puts a reply behind what is not yet written.
    pub(crate) fn queue(&mut self, reply: &Reply) {
        if !self.gone {
            self.output.extend_from_slice(reply.to_line().as_bytes());
        }
    }

    /// One write; only when `poll` says that there is room.
    pub(crate) fn write_some(&mut self) {
        let rest = self.output.get(self.written..).unwrap_or_default();
        let piece = rest.get(..ROOM).unwrap_or(rest);
        match nix::unistd::write(io::stdout(), piece) {
            Ok(length) => self.written += length,
            Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => {}
            Err(_) => self.set_gone(),
        }
        if self.written >= self.output.len() {
            self.output.clear();
            self.written = 0;
        } else if self.written >= 1024 * 1024 {
            self.output.drain(..self.written);
            self.written = 0;
        }
    }

    /// Writes everything, as long as somebody reads.
    pub(crate) fn flush(&mut self) {
        while self.has_output() && !self.gone {
            let stdout = io::stdout();
            let mut set = [PollFd::new(stdout.as_fd(), PollFlags::POLLOUT)];
            let wait = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::MAX);
            match poll(&mut set, wait) {
                Ok(0) => self.set_gone(),
                Ok(_) => self.write_some(),
                Err(nix::errno::Errno::EINTR) => {}
                Err(_) => self.set_gone(),
            }
        }
    }
}

/// A line for a person on standard error; a closed one is no fault.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
