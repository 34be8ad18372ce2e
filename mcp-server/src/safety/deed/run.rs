//! A command, and how exactly it is handed to a guest.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::windows;
pub use crate::safety::command::Shell;
use crate::{
    Error, Result,
    safety::{command::Command, files::sha256_of},
};

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A text for the guest's shell.
    Text {
        /// The text.
        text: String,
        /// The shell that reads it.
        shell: Shell,
    },
    /// A program with its arguments, run as it is.
    Argv(Vec<String>),
}

/// A command with everything that it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What is run.
    pub program: Program,
    /// The directory in which it is run.
    pub cwd: Option<String>,
    /// Whether a list runs in Windows.
    pub windows: bool,
    /// Its input.
    pub stdin: Option<Vec<u8>>,
    /// Seconds until it is ended, where that is possible.
    pub timeout_s: u64,
    /// Most bytes of each of its two outputs that are kept.
    pub max_output: u64,
}

impl Run {
    /// The command as the classifier takes it.
    #[must_use]
    pub fn command(&self) -> Command<'_> {
        match &self.program {
            Program::Text { text, shell } => Command::Text { text, shell: *shell },
            Program::Argv(argv) => Command::Argv(argv),
        }
    }

    /// The exact text that confirms it: the command, or its array as compact JSON.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.program {
            Program::Text { text, .. } => text.clone(),
            Program::Argv(argv) => Value::from(argv.clone()).to_string(),
        }
    }

    /// How it is run, in a word or two.
    #[must_use]
    pub const fn how(&self) -> &'static str {
        match &self.program {
            Program::Argv(_) => "run as it is",
            Program::Text { shell: Shell::Sh, .. } => "by /bin/sh",
            Program::Text { shell: Shell::Cmd, .. } => "by cmd",
            Program::Text { shell: Shell::PowerShell, .. } => "by PowerShell",
        }
    }

    /// As it stands in records; of the input only its length and hash.
    #[must_use]
    pub fn params(&self) -> Value {
        let mut params = json!({
            "command": match &self.program {
                Program::Text { text, .. } => Value::from(text.clone()),
                Program::Argv(argv) => Value::from(argv.clone()),
            },
            "how": self.how(),
            "timeout_s": self.timeout_s,
        });
        if let Value::Object(map) = &mut params {
            if let Some(cwd) = &self.cwd {
                map.insert("cwd".into(), cwd.clone().into());
            }
            if let Some(stdin) = &self.stdin {
                map.insert("stdin_bytes".into(), stdin.len().into());
                map.insert("stdin_sha256".into(), sha256_of(stdin).into());
            }
        }
        params
    }

    /// Program and arguments as the guest gets them. `plain` is for the guest
    /// agent, which breaks on characters above U+00FF in an argument.
    ///
    /// # Errors
    /// `invalid_argument` for what cannot be handed over.
    pub fn argv(&self, plain: bool) -> Result<Vec<String>> {
        let cwd = self.cwd.as_deref();
        let argv = match (&self.program, cwd) {
            (Program::Argv(argv), cwd) if self.windows => return windows::list(argv, cwd),
            (Program::Text { text, shell: Shell::Cmd }, cwd) => return windows::cmd(text, cwd),
            (Program::Text { text, shell: Shell::PowerShell }, cwd) => {
                return windows::powershell(text, cwd);
            }
            (Program::Argv(argv), None) => argv.clone(),
            (Program::Argv(argv), Some(cwd)) => in_directory(cwd, argv),
            (Program::Text { text, shell: Shell::Sh }, cwd) => {
                let text = if plain { readable(text) } else { text.clone() };
                let sh = vec!["/bin/sh".to_owned(), "-c".to_owned(), text];
                cwd.map_or_else(|| sh.clone(), |cwd| in_directory(cwd, &sh))
            }
        };
        let bad = |c: char| u32::from(c) > 0xff;
        if plain && argv.iter().any(|a| a.contains(bad)) {
            return Err(Error::argument(
                "an argument has a character above U+00FF, which would stop the guest agent",
            )
            .hint("give the command as one text for /bin/sh, or pass the text as stdin"));
        }
        Ok(argv)
    }
}

/// A command in a directory: both reach the shell as arguments, never as text of its own.
fn in_directory(cwd: &str, argv: &[String]) -> Vec<String> {
    let mut all: Vec<String> =
        ["/bin/sh", "-c", "cd -- \"$1\" || exit 126; shift; exec \"$@\"", "sh", cwd]
            .map(str::to_owned)
            .to_vec();
    all.extend(argv.iter().cloned());
    all
}

/// A text for a shell without any character above U+00FF: the whole of it as
/// octal escapes that the shell itself turns back.
fn readable(text: &str) -> String {
    if text.chars().all(|c| u32::from(c) <= 0xff) {
        return text.to_owned();
    }
    let mut out = String::from("eval \"$(printf '");
    for byte in text.bytes() {
        let _ = write!(out, "\\{byte:03o}");
    }
    out.push_str("')\"");
    out
}
