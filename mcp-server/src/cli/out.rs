//! What a command prints and how it ends.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::{Code, Error};

/// How a command ended, as an exit code tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: well.
    Well,
    /// 1: failed, or a node is offline.
    Failed,
    /// 2: the command line cannot be meant.
    Usage,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(match exit {
            Exit::Well => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
        })
    }
}

/// Why a command could not do what it is for.
#[derive(Debug)]
pub enum Failure {
    /// Something is wrong, and the text says what to do.
    Error(Error),
    /// Standard output is gone; where a reader such as `head` has left, that is no failure.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// What a command answers.
pub type Ran = Result<Exit, Failure>;

/// Standard output, and what it is connected to.
#[derive(Debug, Clone, Copy)]
pub struct Out {
    /// Print the structured answer as JSON.
    pub json: bool,
    /// Whether a person looks at it.
    pub terminal: bool,
    /// Columns of the terminal, where it is one.
    pub width: Option<u16>,
    /// Whether colours may be used.
    pub colour: bool,
}

impl Out {
    /// Looks at standard output and at `NO_COLOR`.
    #[must_use]
    pub fn of_process(json: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let width = terminal_size::terminal_size().map(|(width, _)| width.0);
        Self { json, terminal, width, colour: terminal && colours_wanted() }
    }

    /// Prints text; a line feed is added where it has none at its end.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn text(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()
    }

    /// Prints JSON, indented: a person may read it, and every program can.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn value(&self, value: &Value) -> io::Result<()> {
        self.text(&format!("{value:#}"))
    }

    /// Text in a colour, where colours are used.
    #[must_use]
    pub fn paint(&self, style: anstyle::Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// `NO_COLOR` with anything in it, and a terminal that has none.
#[must_use]
pub fn colours_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|v| v != "dumb")
}

/// Tells on standard error why a command failed, and as JSON on standard output where that was
/// asked for.
pub fn report(failure: &Failure, out: Out) -> Exit {
    match failure {
        Failure::Output(e) if e.kind() == io::ErrorKind::BrokenPipe => Exit::Well,
        Failure::Output(e) => {
            say(&format!("standard output cannot be written: {e}"));
            Exit::Failed
        }
        Failure::Error(error) => {
            if out.json && out.value(&error.to_json()).is_err() {
                return Exit::Failed;
            }
            say(&error.to_string());
            if error.code == Code::InvalidArgument { Exit::Usage } else { Exit::Failed }
        }
    }
}

/// One line on standard error; nothing can be done where that is gone.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "proxmox-mcp: {line}");
}
