//! What goes to a program's standard input.

use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::process::ChildStdin;

/// What surely fits when a pipe is said to have room.
const ROOM: usize = 4096;

/// The pipe, and what still has to go into it.
pub(super) struct Feed {
    pipe: Option<ChildStdin>,
    waiting: Vec<u8>,
    written: usize,
    taken: u64,
    complete: bool,
}

impl Feed {
    pub(super) const fn new(pipe: Option<ChildStdin>) -> Self {
        Self { pipe, waiting: Vec::new(), written: 0, taken: 0, complete: false }
    }

    /// Takes bytes from the client; says how many it has given in all.
    pub(super) fn add(&mut self, data: &[u8]) -> u64 {
        self.taken += data.len() as u64;
        if self.pipe.is_some() {
            self.waiting.extend_from_slice(data);
        }
        self.taken
    }

    /// The pipe, if there is something for it.
    pub(super) fn wants_room(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| !self.waiting.is_empty()).map(|pipe| pipe.as_fd())
    }

    /// One write; only when `poll` says that there is room.
    pub(super) fn write_some(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let rest = self.waiting.get(self.written..).unwrap_or_default();
        match pipe.write(rest.get(..ROOM).unwrap_or(rest)) {
            Ok(length) => self.written += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The program reads no more; what it does not want is dropped.
            Err(_) => self.close(),
        }
        if self.written >= self.waiting.len() {
            self.waiting.clear();
            self.written = 0;
            if self.complete {
                self.close();
            }
        }
    }

    /// Nothing more comes from the client.
    pub(super) fn finish(&mut self) {
        self.complete = true;
        if self.waiting.is_empty() {
            self.close();
        }
    }

    /// Whether the client has said that nothing more comes.
    pub(super) const fn is_complete(&self) -> bool {
        self.complete
    }

    /// The program sees the end of its input now.
    pub(super) fn close(&mut self) {
        self.pipe = None;
        self.waiting = Vec::new();
        self.written = 0;
    }
}
