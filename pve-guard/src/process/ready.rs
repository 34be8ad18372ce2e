//! What is ready to be read or written.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// The longest single wait; a longer one is a loop.
const LONGEST: Duration = Duration::from_secs(3600);

/// What a descriptor is to a running job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Signal,
    Stdout,
    Stderr,
    Feed,
    ClientIn,
    ClientOut,
}

/// The descriptors that are waited for.
#[derive(Default)]
pub(super) struct Set<'fd> {
    fds: Vec<PollFd<'fd>>,
    sources: Vec<Source>,
}

impl<'fd> Set<'fd> {
    /// Adds a descriptor, if there is one.
    pub(super) fn add(&mut self, source: Source, fd: Option<BorrowedFd<'fd>>, flags: PollFlags) {
        if let Some(fd) = fd {
            self.fds.push(PollFd::new(fd, flags));
            self.sources.push(source);
        }
    }

    /// Waits, and says which are ready and what for.
    pub(super) fn wait(mut self, wait: Duration) -> io::Result<Vec<(Source, PollFlags)>> {
        // Rounded up: a wait below one millisecond would be none, and a loop.
        let wait = wait.min(LONGEST) + Duration::from_micros(999);
        let timeout = PollTimeout::try_from(wait).map_err(io::Error::other)?;
        match poll(&mut self.fds, timeout) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Vec::new()),
            Err(errno) => return Err(errno.into()),
        }
        Ok(self
            .sources
            .into_iter()
            .zip(self.fds.iter().map(|fd| fd.revents().unwrap_or(PollFlags::empty())))
            .filter(|(_, flags)| !flags.is_empty())
            .collect())
    }
}
