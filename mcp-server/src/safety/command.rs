//! What a command in a guest does, as far as its text tells.
//!
//! The text is read by a shell parser and followed through wrappers, pipes,
//! substitutions and here-documents; the riskiest things in it are named by the
//! `EXEC_*` flags. This catches mistakes. It is no boundary: who wants to hide
//! what a command does can, and the boundaries are the switch for commands, the
//! flags, the VMID lists, the guard's policy on the node and a person's yes.

use std::{
    collections::BTreeSet,
    sync::{
        Condvar, Mutex, PoisonError,
        mpsc::{RecvTimeoutError, channel},
    },
    time::Duration,
};

use super::Flag;

mod awk;
mod builtins;
mod containers;
mod databases;
mod disks;
mod editors;
mod files;
mod git;
mod leaks;
mod managed;
mod management;
mod network;
mod output;
mod outputs;
mod packages;
mod parameters;
mod paths;
mod programs;
mod reads;
mod redirects;
mod run;
mod search;
mod secrets;
mod sed;
mod sql;
mod stores;
mod tangle;
mod variables;
mod verbs;
mod walk;
mod windows;
mod winpaths;
mod words;
mod wrappers;
mod wraps;

pub use paths::secret_path;
pub use windows::list as windows_list;
pub use winpaths::{canonical as windows_path, is_windows, written as windows_written};

/// Longest command that is looked into, in bytes; a longer one counts as code
/// that cannot be looked into.
const LONGEST: usize = 128 * 1024;

/// Stack of the thread that looks into a command, in bytes; only what is used of it is taken.
const STACK: usize = 256 * 1024 * 1024;

/// Longest that a command is looked into; a usual one takes a tenth of a millisecond.
const LONGEST_TIME: Duration = Duration::from_secs(2);
/// Most commands that are looked into at once.
const MOST_READERS: usize = 8;

/// What is told where the parser broke on a text, which is a fault to be mended.
pub(super) const BROKEN: &str = "it could not be looked into: its reader broke";

/// The shell that reads a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// `/bin/sh -c`.
    Sh,
    /// `cmd /c` of Windows.
    Cmd,
    /// PowerShell.
    PowerShell,
}

/// A command as it is given.
#[derive(Debug, Clone, Copy)]
pub enum Command<'a> {
    /// A program with its arguments, run as it is.
    Argv(&'a [String]),
    /// A text for a shell.
    Text {
        /// The text.
        text: &'a str,
        /// The shell.
        shell: Shell,
    },
}

/// What was found in a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finding {
    /// The `EXEC_*` categories; none for what only looks or changes nothing of note.
    pub categories: BTreeSet<Flag>,
    /// Why, one line for each thing that was found.
    pub reasons: Vec<String>,
    /// A file with secrets that it reads; such a command is refused.
    pub secret: Option<String>,
}

impl Finding {
    fn add(&mut self, flag: Flag, why: &str) {
        if self.categories.insert(flag) {
            let why: String = why.chars().filter(|c| !c.is_control()).take(80).collect();
            self.reasons.push(format!("{why} ({})", flag.category()));
        }
    }
}

/// Finds what a command does. `cwd` is where it runs, `stdin` what it reads.
///
/// The parser follows nested text by recursion and goes back where it guessed
/// wrong, so it gets a stack and a time of its own: no text can take the server
/// down. What is not understood by then is code that cannot be looked into.
#[must_use]
pub fn classify(command: &Command<'_>, cwd: Option<&str>, stdin: Option<&[u8]>) -> Finding {
    let unread = |why: &str| {
        let mut found = Finding::default();
        found.add(Flag::ExecShell, why);
        found
    };
    let late = "it could not be looked into in time";
    let Some(place) = Place::take() else { return unread(late) };
    let (program, cwd) = (Owned::of(command), cwd.map(str::to_owned));
    let stdin = stdin.map(<[u8]>::to_vec);
    let (tell, told) = channel();
    let reader =
        std::thread::Builder::new().name("command".to_owned()).stack_size(STACK).spawn(move || {
            let found = look_into(&program.command(), cwd.as_deref(), stdin.as_deref());
            // Free before it is told, so that who asks again finds it free.
            drop(place);
            // Nobody waits any more where the time was over.
            let _ = tell.send(found);
        });
    match reader.map(|_| told.recv_timeout(LONGEST_TIME)) {
        Ok(Ok(found)) => found,
        Ok(Err(RecvTimeoutError::Disconnected)) => unread(BROKEN),
        Ok(Err(RecvTimeoutError::Timeout)) | Err(_) => unread(late),
    }
}

/// One of the few places of readers: what never ends must not fill the machine.
struct Place;

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

impl Place {
    /// Waits for a free place, as long as a command is looked into at most.
    fn take() -> Option<Self> {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut taken, _) = FREED
            .wait_timeout_while(taken, LONGEST_TIME, |taken| *taken >= MOST_READERS)
            .unwrap_or_else(PoisonError::into_inner);
        if *taken >= MOST_READERS {
            return None;
        }
        *taken += 1;
        Some(Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(1);
        FREED.notify_one();
    }
}

/// A command that a reader can keep.
enum Owned {
    Argv(Vec<String>),
    Text(String, Shell),
}

impl Owned {
    fn of(command: &Command<'_>) -> Self {
        match command {
            Command::Argv(argv) => Self::Argv(argv.to_vec()),
            Command::Text { text, shell } => Self::Text((*text).to_owned(), *shell),
        }
    }

    fn command(&self) -> Command<'_> {
        match self {
            Self::Argv(argv) => Command::Argv(argv),
            Self::Text(text, shell) => Command::Text { text, shell: *shell },
        }
    }
}

fn look_into(command: &Command<'_>, cwd: Option<&str>, stdin: Option<&[u8]>) -> Finding {
    let mut found = Finding::default();
    let length = match command {
        Command::Argv(argv) => argv.iter().map(String::len).sum(),
        Command::Text { text, .. } => text.len(),
    };
    if length > LONGEST {
        found.add(Flag::ExecShell, "too long to be looked into");
        return found;
    }
    let input = match stdin {
        None => walk::Input::Nothing,
        Some(bytes) if bytes.len() > LONGEST => walk::Input::Unknown,
        Some(bytes) => walk::Input::Text(String::from_utf8_lossy(bytes).into_owned()),
    };
    match command {
        Command::Argv(argv) => {
            let words: Vec<words::Arg> = argv.iter().map(|a| words::Arg::literal(a)).collect();
            walk::Walk::new(&mut found, cwd).run(&words, &input);
        }
        Command::Text { text, shell: Shell::Sh } => {
            walk::Walk::new(&mut found, cwd).text(text, &input);
        }
        Command::Text { text, .. } => windows::text(text, cwd, stdin, &mut found),
    }
    found
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
