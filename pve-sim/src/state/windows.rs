//! What a simulated Windows guest has beside its files.

use std::collections::{BTreeMap, BTreeSet};

/// Directories, links, services and faults of a Windows guest. Paths are
/// spelled `C:\a\b`; upper and lower case are the same.
#[derive(Debug, Clone, Default)]
pub struct Windows {
    /// Directories; those above files and directories need not be named.
    pub dirs: BTreeSet<String>,
    /// Symbolic links and junctions, and where they lead.
    pub links: BTreeMap<String, String>,
    /// Files with the attribute read-only.
    pub read_only: BTreeSet<String>,
    /// Files and directories that not even the system's account may open.
    pub denied: BTreeSet<String>,
    /// Bytes that are free; without limit when unset.
    pub free: Option<usize>,
    /// Its services.
    pub services: Vec<Service>,
    /// It has no PowerShell.
    pub no_powershell: bool,
    /// Its agent quotes as those before GLib 2.66 did.
    pub old_agent: bool,
}

/// A service.
#[derive(Debug, Clone)]
pub struct Service {
    /// Its name, e.g. `wuauserv`.
    pub name: String,
    /// The name that is shown, e.g. `Windows Update`.
    pub shown: String,
    /// Whether it runs.
    pub running: bool,
    /// Why it cannot be started or stopped.
    pub broken: Option<String>,
}
