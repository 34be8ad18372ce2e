//! The fixed scripts by which files and services of guests are reached. They
//! use what busybox has, and nothing of Bash. Whatever varies reaches them as
//! arguments or input, and what of it was judged comes from the deed alone.

use std::fmt::Write as _;

use super::{Deed, windows};
use crate::{Error, Result};

/// What runs in a guest, and the way to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// A container, through the guard.
    Container,
    /// A VM with a shell, through an agent that breaks on characters above U+00FF.
    Vm,
    /// A VM with Windows.
    Windows,
}

/// One step of a deed that is no command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// Bytes of the file that the deed names, where `path` leads to that and nowhere else.
    Read {
        /// The path as it was asked for.
        path: &'a str,
        /// Whether it may be a symbolic link.
        follow: bool,
        /// The first byte, from 0.
        offset: u64,
        /// Most bytes.
        count: u64,
    },
    /// What is in the directory that the deed names, where `path` leads to that.
    List {
        /// The path as it was asked for.
        path: &'a str,
        /// Whether it may be a symbolic link.
        follow: bool,
        /// What stands before each entry.
        mark: &'a str,
    },
    /// Where a file really is whose directory the deed lists.
    Place {
        /// The path of the file.
        path: &'a str,
        /// Whether it may be a symbolic link.
        follow: bool,
        /// Whether its directory may be missing.
        make: bool,
    },
    /// Makes room for the pieces of a file that is written.
    Room {
        /// A name that nothing else has, in hexadecimal.
        name: &'a str,
    },
    /// Takes the pieces away.
    Clear {
        /// As in [`Step::Room`].
        name: &'a str,
    },
    /// Writes the file, from the pieces or from standard input.
    Write {
        /// As in [`Step::Room`].
        name: &'a str,
        /// Whether there are pieces.
        pieces: bool,
    },
    /// Length and hash of the file that was written.
    State,
    /// Shows or changes the service, by systemd, OpenRC, a script of init, or as Windows does.
    Service,
}

/// Where the pieces of a file are put together.
#[must_use]
pub fn room(name: &str) -> String {
    format!("/tmp/.pve-{name}")
}

/// A script with everything that it is given.
#[derive(Debug)]
pub(super) struct Script {
    text: String,
    args: Vec<String>,
}

/// What stands before every script.
const COMMON: &str = include_str!("scripts/common.sh");
const ROOM: &str = "err=$(mkdir -m 700 \"$1\" 2>&1) || refused \"$err\"\nprintf 'OK\\n'\n";
const CLEAR: &str = "rm -rf \"$1\"\nprintf 'OK\\n'\n";
/// Turns arguments that came as octal escapes back into what they mean.
const DECODE: &str = "i=$#\nwhile [ $i -gt 0 ]; do\n  v=$(printf '%bx' \"$1\")\n  shift\n  \
                      set -- \"$@\" \"${v%x}\"\n  i=$((i - 1))\ndone\n";

impl Step<'_> {
    /// What it is for, in a few words.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Step::Read { .. } => "reading a file",
            Step::List { .. } => "reading a directory",
            Step::Place { .. } => "finding the place of a file",
            Step::Room { .. } => "making room for a file",
            Step::Clear { .. } => "clearing up",
            Step::Write { .. } => "writing a file",
            Step::State => "looking at a file",
            Step::Service => "asking for a service",
        }
    }

    /// Program and arguments of this step of a deed.
    ///
    /// # Errors
    /// `internal` for a step that is not part of the deed.
    pub(super) fn argv(&self, deed: &Deed, to: System) -> Result<Vec<String>> {
        let argv = match to {
            System::Windows => windows::step(self, deed),
            to => self.script(deed).map(|script| Ok(script.argv(to == System::Vm))),
        };
        argv.unwrap_or_else(|| {
            let why = format!("{self:?} is not part of {}", deed.verb().to_lowercase());
            Err(Error::internal(why))
        })
    }

    fn script(&self, deed: &Deed) -> Option<Script> {
        let flag = |on: bool| if on { "1" } else { "0" }.to_owned();
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let (script, args) = match (*self, deed) {
            (Step::Read { path, follow, offset, count }, Deed::FileRead { path: real, .. }) => (
                include_str!("scripts/read.sh"),
                vec![
                    path.to_owned(),
                    real.clone(),
                    flag(follow),
                    offset.saturating_add(1).to_string(),
                    count.to_string(),
                ],
            ),
            (Step::List { path, follow, mark }, Deed::FileList { path: real, .. }) => (
                include_str!("scripts/list.sh"),
                vec![path.to_owned(), real.clone(), flag(follow), mark.to_owned()],
            ),
            (Step::Place { path, follow, make }, Deed::FileList { path: directory, .. })
                if directory_of(path) == directory =>
            {
                let args = vec![path.to_owned(), flag(follow), flag(make)];
                (include_str!("scripts/place.sh"), args)
            }
            (Step::Room { name }, Deed::FileWrite { .. }) if is_hex(name) => {
                (ROOM, vec![room(name)])
            }
            (Step::Clear { name }, Deed::FileWrite { .. }) if is_hex(name) => {
                (CLEAR, vec![room(name)])
            }
            (Step::Write { name, pieces }, Deed::FileWrite { file, .. }) if is_hex(name) => (
                include_str!("scripts/write.sh"),
                vec![
                    file.path.clone(),
                    flag(file.create_dirs),
                    flag(file.append),
                    text(&file.if_sha256),
                    file.sha256.clone(),
                    file.bytes.to_string(),
                    text(&file.mode),
                    text(&file.owner),
                    if pieces { room(name) } else { String::new() },
                    name.to_owned(),
                ],
            ),
            (Step::State, Deed::FileWrite { file, .. }) => {
                (include_str!("scripts/state.sh"), vec![file.path.clone()])
            }
            (Step::Service, Deed::Service { service, action, .. }) => {
                (include_str!("scripts/service.sh"), vec![service.clone(), (*action).to_owned()])
            }
            _ => return None,
        };
        Some(Script { text: format!("{COMMON}{script}"), args })
    }
}

/// The directory of a path, as text.
#[must_use]
pub fn directory_of(path: &str) -> &str {
    // Of a path of Windows in its one spelling.
    if path.get(1..3) == Some(":\\") {
        let at = path.rfind('\\').filter(|at| *at > 2).unwrap_or(3);
        return path.get(..at).unwrap_or(path);
    }
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((directory, _)) => directory,
    }
}

pub(super) fn is_hex(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_hexdigit())
}

impl Script {
    fn argv(&self, plain: bool) -> Vec<String> {
        let wide = |arg: &String| arg.chars().any(|c| u32::from(c) > 0xff);
        let coded = plain && self.args.iter().any(wide);
        let text = if coded { format!("{DECODE}{}", self.text) } else { self.text.clone() };
        let mut argv = vec!["/bin/sh".to_owned(), "-c".to_owned(), text, "sh".to_owned()];
        argv.extend(self.args.iter().map(|a| if coded { octal(a) } else { a.clone() }));
        argv
    }
}

fn octal(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "\\0{byte:03o}");
        }
    }
    out
}
