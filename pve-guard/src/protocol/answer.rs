//! What stands in `done`, one type a verb.
//!
//! A reader of these takes no offence at fields that it does not know: a
//! newer guard may say more.

use serde::{Deserialize, Serialize};

/// Answer of `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the guard.
    pub version: String,
    /// Protocol versions that it speaks.
    pub protocols: Vec<u64>,
    /// SHA-256 of the guard's own file, lower-case hexadecimal.
    pub sha256: String,
    /// Name of this node, as Proxmox has it.
    pub node: String,
    /// SHA-256 of the policy file.
    pub policy_sha256: String,
    /// Verbs that the policy allows.
    pub verbs: Vec<String>,
    /// Installed version of the package pve-manager.
    pub pve_manager: Option<String>,
    /// Release of the running kernel.
    pub kernel: String,
    /// True in a build whose programs can be replaced: never trust one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub test_programs: bool,
}

/// Answer of `pct-exec`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecDone {
    /// Exit code, absent when the process was ended by a signal or never ran.
    /// A command in the container that a signal ended shows as 128 + signal.
    pub exit_code: Option<i32>,
    /// Number of the signal that ended the process.
    pub signal: Option<i32>,
    /// The time was over; everything that was started has been ended.
    pub timed_out: bool,
    /// The client asked for the end, or went away.
    pub cancelled: bool,
    /// Bytes written to standard output, also those not sent.
    pub stdout_bytes: u64,
    /// Bytes written to standard error, also those not sent.
    pub stderr_bytes: u64,
    /// Some output was not sent.
    pub truncated: bool,
    /// Processes that the command left running.
    pub background: u32,
    /// Milliseconds from start to end.
    pub duration_ms: u64,
    /// What the reader should know about this run, for example that the audit
    /// session was not to be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Answer of `upgrade-simulate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// SHA-256 of the transaction: what `upgrade-start` must be given.
    pub plan: String,
    /// New packages.
    pub install: Vec<Change>,
    /// Packages that get a newer version.
    pub upgrade: Vec<Change>,
    /// Packages that would get an older version.
    pub downgrade: Vec<Change>,
    /// Packages that go.
    pub remove: Vec<Removal>,
    /// Packages that stay as they are although there is a newer version.
    pub kept_back: Vec<String>,
    /// Bytes to download.
    pub download_bytes: Option<u64>,
    /// Bytes of disk used afterwards, less than nothing when space is freed.
    pub disk_bytes: Option<i64>,
    /// The kernel before and after.
    pub kernel: KernelChange,
    /// Whether the package `proxmox-ve` is installed and stays so.
    pub proxmox_ve_stays: bool,
    /// Whether the node has to be booted for the newest kernel, once this is done.
    pub reboot_needed: bool,
    /// Services of the packages that get another version; those that run restart.
    #[serde(default)]
    pub services: Vec<String>,
    /// Seconds since the package lists were fetched.
    pub lists_age_s: Option<u64>,
    /// What `upgrade-start` would refuse this plan for.
    pub problems: Vec<Problem>,
}

/// A package that comes or changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Change {
    /// Name of the package.
    pub name: String,
    /// Architecture, for example `amd64` or `all`.
    pub arch: String,
    /// Installed version; absent for a new package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The version that comes.
    pub to: String,
    /// Where from, for example `Proxmox:13/stable`.
    pub origin: String,
}

/// A package that goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Removal {
    /// Name of the package.
    pub name: String,
    /// Installed version.
    pub version: String,
}

/// The kernel before and after an upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelChange {
    /// Release that runs now.
    pub running: String,
    /// Newest one installed now.
    pub newest: Option<String>,
    /// Newest one once the upgrade is done.
    pub after: Option<String>,
}

/// Why an upgrade would be refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Short stable word: `vital_removed`, `downgrade`, `half_configured`,
    /// `space`, `lock`, `nothing`.
    pub kind: String,
    /// The cause in plain words.
    pub message: String,
    /// What to do next; may be empty.
    #[serde(default)]
    pub hint: String,
}

/// Answer of `upgrade-start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpgradeStarted {
    /// Name of the transient unit.
    pub unit: String,
    /// Its invocation, 32 hexadecimal digits.
    pub invocation_id: String,
}

/// How an upgrade stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// No upgrade was ever started through the guard.
    Never,
    /// It runs.
    Running,
    /// It ended well.
    Succeeded,
    /// It ended, and not well.
    Failed,
    /// It began, does not run now and left no result: the node was perhaps
    /// restarted in the middle. Never read as success.
    Unknown,
}

/// Answer of `upgrade-status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpgradeStatus {
    /// How it stands.
    pub state: RunState,
    /// Name of the unit.
    pub unit: String,
    /// Invocation of the run that this is about.
    pub invocation_id: Option<String>,
    /// The plan that was run.
    pub plan: Option<String>,
    /// `ActiveState` of the unit, absent when systemd does not know it.
    pub active_state: Option<String>,
    /// One word on the end: `success`, or what stopped it, such as
    /// `plan_changed`, `lock`, `exit-code`.
    pub result: Option<String>,
    /// Exit code of `apt-get`, once it has ended.
    pub exit_code: Option<i32>,
    /// What happened, in plain words.
    pub message: Option<String>,
    /// Unix seconds of the start.
    pub started: Option<u64>,
    /// Unix seconds of the end.
    pub finished: Option<u64>,
    /// Local configuration files that were kept where the package brought another.
    pub kept_conffiles: Vec<String>,
    /// New lines of the unit's journal, oldest first.
    pub lines: Vec<String>,
    /// What to ask with next time to get only newer lines.
    pub cursor: Option<String>,
    /// The running kernel is not the newest installed one.
    pub reboot_needed: bool,
    /// The kernel that runs and the newest installed one.
    pub kernel: KernelChange,
}

/// Answer of the three `kernel-` verbs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernels {
    /// Installed releases, oldest first.
    pub installed: Vec<String>,
    /// Release that every boot takes, where one is pinned.
    pub pinned: Option<String>,
    /// Release that the next boot alone takes.
    pub next_boot: Option<String>,
    /// Release that runs now.
    pub running: String,
    /// Newest installed release.
    pub newest: Option<String>,
}

/// A word while a longer verb runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Short stable word for what is being done.
    pub phase: String,
    /// The same for a person.
    pub message: String,
}
