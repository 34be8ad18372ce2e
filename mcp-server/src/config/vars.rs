//! What a variable is. The table of them is `table.rs`.

use std::path::PathBuf;

use super::{Config, table::VARIABLES, token};
use crate::{Result, safety::Flag, tools::validate::nearest};

/// What a variable is about; the parts of `.env`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// The node and the way to it.
    Connection,
    /// What the server may do.
    Limits,
    /// Who has to agree.
    Approval,
    /// Commands in guests.
    Exec,
    /// pve-guard on the nodes.
    Ssh,
    /// Records.
    Audit,
    /// Time-outs and other figures.
    Tuning,
    /// The shared HTTP service.
    Http,
}

impl Section {
    /// Every section, in the order of `.env`.
    pub const ALL: [Section; 8] = [
        Section::Connection,
        Section::Limits,
        Section::Approval,
        Section::Exec,
        Section::Ssh,
        Section::Audit,
        Section::Tuning,
        Section::Http,
    ];

    /// The heading.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Section::Connection => "Connection",
            Section::Limits => "What the server may do",
            Section::Approval => "Who has to agree to a change",
            Section::Exec => "Commands inside guests",
            Section::Ssh => "SSH to the nodes (pve-guard)",
            Section::Audit => "Audit log and logs",
            Section::Tuning => "Time-outs, retries, files",
            Section::Http => "Shared HTTP service",
        }
    }
}

/// One variable.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Where it belongs.
    pub section: Section,
    /// What holds when it is not set, as it would be written; empty for nothing.
    pub default: &'static str,
    /// Whether its value is never shown.
    pub secret: bool,
    /// What it is for: one or two sentences.
    pub about: &'static str,
    /// What may stand there.
    pub allowed: &'static str,
    /// A value as an example, where the default is none.
    pub example: &'static str,
    /// Puts a value, never empty, into the configuration.
    pub(super) apply: fn(&mut Draft<'_>, &str) -> Result<()>,
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A configuration that is being put together.
pub(super) struct Draft<'a> {
    pub config: Config,
    pub token: token::Parts,
    pub secret_file: Option<PathBuf>,
    /// Makes a path as written absolute: `~/` is the home directory, and what is relative
    /// starts in the configuration directory.
    pub resolve: &'a dyn Fn(&str) -> PathBuf,
}

/// The variable of a name.
#[must_use]
pub fn variable(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|v| v.name == name)
}

/// The variable or flag whose name is most like what was written, if one is like it at all.
#[must_use]
pub fn nearest_variable(written: &str) -> Option<&'static str> {
    let flags = Flag::ALL.iter().map(|f| f.variable());
    nearest(written, VARIABLES.iter().map(|v| v.name).chain(flags))
}
