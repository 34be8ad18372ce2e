//! The request and reply types, shared by both ends.
//!
//! JSON lines in both directions, at most [`MAX_LINE`] bytes each, UTF-8. One
//! request a process. Both ends read strictly: a key that is given twice, a
//! key that is not known, a wrong type or bytes after the value are errors.

mod answer;
mod json;
mod line;
mod request;

pub use answer::{
    Change, ExecDone, Hello, KernelChange, Kernels, Plan, Problem, Progress, Removal, RunState,
    UpgradeStarted, UpgradeStatus,
};
pub use line::{BadLine, Input, Reply};
pub use request::{PctExec, Request, Verb, VerbName};

use serde::{Deserialize, Serialize};

/// The one protocol version there is.
pub const VERSION: u64 = 1;
/// Longest line in bytes, without its line feed.
pub const MAX_LINE: usize = 1024 * 1024;
/// Most bytes of input or output in one line, before base64.
pub const MAX_CHUNK: usize = 64 * 1024;
/// Most elements of `argv`.
pub const MAX_ARGS: usize = 1024;
/// Most bytes of all elements of `argv` together.
pub const MAX_ARGV_BYTES: usize = 128 * 1024;
/// Lowest VMID that Proxmox gives out.
pub const VMID_MIN: i64 = 100;
/// Highest VMID that Proxmox accepts.
pub const VMID_MAX: i64 = 999_999_999;
/// Seconds that the guard waits for the request line.
pub const REQUEST_WAIT_S: u64 = 10;
/// Seconds a command may run when the request names no `timeout_s`.
pub const DEFAULT_TIMEOUT_S: u64 = 60;
/// Bytes a stream may send back when the request names no `max_output`.
pub const DEFAULT_MAX_OUTPUT: u64 = 64 * 1024;

/// Why the guard refused, as it stands in `refused.code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The line is not a request of this protocol.
    BadRequest,
    /// A protocol version that this guard does not speak.
    ProtocolUnsupported,
    /// The policy does not allow this verb, or the guard has none of that name.
    VerbDenied,
    /// The policy does not allow this VMID.
    VmidDenied,
    /// The request is meant for another node.
    WrongNode,
    /// No such container here (or not the one that was meant), no such kernel.
    NotFound,
    /// The container is not running.
    NotRunning,
    /// A value outside its domain.
    Argument,
    /// More than the policy allows of time, output or input.
    Limit,
    /// As many commands as the policy allows are running, or an upgrade is.
    Busy,
    /// What would be upgraded is no longer what was agreed to.
    PlanChanged,
    /// A check before an upgrade failed.
    Preflight,
    /// The policy cannot be used, or refuses this kind of container or program.
    Policy,
    /// The request could not be journaled, so nothing was changed.
    JournalUnavailable,
    /// A fault of the guard or of the node's programs.
    Internal,
    /// A code that a newer guard knows; never sent.
    #[serde(other)]
    Unknown,
}

impl Code {
    /// Exit status of the guard's process after a refusal with this code:
    /// 2 not a valid request, 3 a fault, 1 everything else.
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        match self {
            Code::BadRequest | Code::ProtocolUnsupported => 2,
            Code::Internal => 3,
            _ => 1,
        }
    }

    /// The code as it stands in an answer and in the journal.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::BadRequest => "bad_request",
            Code::ProtocolUnsupported => "protocol_unsupported",
            Code::VerbDenied => "verb_denied",
            Code::VmidDenied => "vmid_denied",
            Code::WrongNode => "wrong_node",
            Code::NotFound => "not_found",
            Code::NotRunning => "not_running",
            Code::Argument => "argument",
            Code::Limit => "limit",
            Code::Busy => "busy",
            Code::PlanChanged => "plan_changed",
            Code::Preflight => "preflight",
            Code::Policy => "policy",
            Code::JournalUnavailable => "journal_unavailable",
            Code::Internal => "internal",
            Code::Unknown => "unknown",
        }
    }
}

/// A refusal: nothing was done, or (where the message says so) what was begun
/// was ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Stable code.
    pub code: Code,
    /// The cause in plain words, without a trailing full stop.
    pub message: String,
    /// What to do next; may be empty.
    #[serde(default)]
    pub hint: String,
}

impl Refused {
    /// A refusal without a hint.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: String::new() }
    }

    /// The same refusal with what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}
