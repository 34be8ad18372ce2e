//! The one error type: a stable code, the cause in plain words, and a hint.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Result with the product's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Stable error codes, as they stand in `error.code` of an answer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code there is, for documentation and tests.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The code as it is written in answers, for example `vmid_denied`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }
        }
    };
}

codes! {
    /// A tool argument or API parameter is missing, unknown or malformed.
    InvalidArgument = "invalid_argument",
    /// The object does not exist, or the token cannot see it.
    NotFound = "not_found",
    /// The API token was not accepted (HTTP 401).
    Unauthorized = "unauthorized",
    /// The token lacks a privilege (HTTP 403); `privilege` and `path` name it.
    Forbidden = "forbidden",
    /// The node's certificate is not trusted by the CA file or system store.
    TlsUntrusted = "tls_untrusted",
    /// The node's certificate is not the pinned one.
    TlsPinMismatch = "tls_pin_mismatch",
    /// No connection could be made.
    Unreachable = "unreachable",
    /// No answer within the time-out.
    Timeout = "timeout",
    /// The node we are connected to could not reach the other node (595, 596).
    ProxyFailed = "proxy_failed",
    /// What came back is not an answer of the Proxmox API.
    BadAnswer = "bad_answer",
    /// Proxmox refused the call for a reason that has no code of its own.
    ApiError = "api_error",
    /// A task ended with something other than OK or WARNINGS.
    TaskFailed = "task_failed",
    /// The guest is on another node than the call names.
    GuestMoved = "guest_moved",
    /// The object changed between reading and writing.
    DigestChanged = "digest_changed",
    /// The QEMU guest agent cannot do this now.
    AgentUnavailable = "agent_unavailable",
    /// The file cannot be uploaded.
    UploadRefused = "upload_refused",
    /// The SSH way to the node failed; `step` names where.
    SshFailed = "ssh_failed",
    /// pve-guard refused; `guard_code` is its own code.
    GuardRefused = "guard_refused",
    /// A fault of this server.
    Internal = "internal",
    /// The path is not canonical and cannot be made so.
    PathRefused = "path_refused",
    /// This endpoint is never sent.
    EndpointRefused = "endpoint_refused",
    /// The call would make the node speak to itself or its link.
    TargetRefused = "target_refused",
    /// A change while the server is in read-only mode.
    ReadOnly = "read_only",
    /// The change could lock this server's own identity out.
    SelfLockout = "self_lockout",
    /// A guest outside the VMID lists is touched.
    VmidDenied = "vmid_denied",
    /// The category's flag in critical.env is off.
    FlagDisabled = "flag_disabled",
    /// A node outside `PROXMOX_ALLOWED_NODES` is touched.
    NodeDenied = "node_denied",
    /// The guest's protection flag is set.
    Protected = "protected",
    /// The guest is locked by another operation.
    Locked = "locked",
    /// The object's state does not allow the change.
    Conflict = "conflict",
    /// `confirm` is missing or not the exact text.
    ConfirmRequired = "confirm_required",
    /// A person has to say yes first.
    ApprovalRequired = "approval_required",
    /// A person said no, or the form was cancelled.
    ApprovalDeclined = "approval_declined",
    /// The approval came too late, or for something else.
    ApprovalExpired = "approval_expired",
    /// The audit log cannot be written, so nothing is changed.
    AuditUnavailable = "audit_unavailable",
    /// The change may or may not have been made.
    OutcomeUnknown = "outcome_unknown",
    /// The configuration is not usable.
    Config = "config",
    /// The caller cancelled the call.
    Cancelled = "cancelled",
}

impl Code {
    /// What to do next where the place that raised the error knows nothing closer.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Code::InvalidArgument => "correct the argument; the tool's schema says what it takes",
            Code::NotFound => "list what there is first; what the token cannot see looks the same",
            Code::Unauthorized => "check token id and secret; `proxmox-mcp check` goes through it",
            Code::Forbidden => "pve_whoami shows what the token may do; its owner can grant more",
            Code::TlsUntrusted | Code::TlsPinMismatch => {
                "`proxmox-mcp fingerprint` shows the node's certificate; compare it on the node before you trust it"
            }
            Code::Unreachable => {
                "check host, port, network and firewall; `proxmox-mcp check` goes through it"
            }
            Code::Timeout => "try again, ask for less, or set PROXMOX_TIMEOUT higher",
            Code::ProxyFailed => "pve_cluster_status shows which node is down or cut off",
            Code::BadAnswer => "check that host and port are those of a Proxmox VE node",
            Code::ApiError => {
                "the message is Proxmox's own; pve_api_schema shows what the call takes"
            }
            Code::TaskFailed => "pve_task_log has the whole log of the task",
            Code::GuestMoved => "look the guest up again and repeat the call",
            Code::DigestChanged => "read the object again and look at what changed",
            Code::AgentUnavailable => {
                "install and start qemu-guest-agent in the guest, and set `agent: 1`"
            }
            Code::UploadRefused => "put the file into PROXMOX_UPLOAD_DIR",
            Code::SshFailed => "`proxmox-mcp check` goes through the steps of the connection",
            Code::GuardRefused => {
                "the message is pve-guard's own; where its policy decides, the owner of the node can change it there"
            }
            Code::Internal => "this is a fault of proxmox-mcp; please report it with the log",
            Code::PathRefused => {
                "give the path as `/nodes/{node}/…`, without a query, a fragment or empty parts"
            }
            Code::EndpointRefused => {
                "this endpoint is never sent; take the tool that fits, or do it by hand"
            }
            Code::TargetRefused => "name an address outside the node and its link",
            Code::ReadOnly => "its owner sets PROXMOX_MODE=write to allow changes",
            Code::SelfLockout => "this is never done from here: a person has to do it on the node",
            Code::VmidDenied => {
                "PROXMOX_ALLOWED_VMIDS and PROXMOX_DENIED_VMIDS say which guests may be changed"
            }
            Code::FlagDisabled => "only the owner of this server switches the flag on",
            Code::NodeDenied => "PROXMOX_ALLOWED_NODES says which nodes may be changed",
            Code::Protected => "it was protected on purpose: ask its owner first",
            Code::Locked => "wait for the operation that holds it; pve_list_tasks shows which",
            Code::Conflict => "look at the object's present state and decide anew",
            Code::ConfirmRequired => {
                "repeat the call with `confirm` set to the text that the error names"
            }
            Code::ApprovalRequired => "a person has to approve it; never do that for them",
            Code::ApprovalDeclined => "do not ask again unless the person says so",
            Code::ApprovalExpired => "ask for approval anew",
            Code::AuditUnavailable => {
                "make the audit log writable: `proxmox-mcp config` says where it is"
            }
            Code::OutcomeUnknown => {
                "look at the object and its newest tasks before anything is repeated"
            }
            Code::Config => "`proxmox-mcp config` shows every value and where it came from",
            Code::Cancelled => "nothing more is waited for; a task that was started goes on",
        }
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.serialize_str(self.as_str())
    }
}

/// What went wrong, for a person and for a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// Stable code.
    pub code: Code,
    /// The cause in plain words, without a trailing full stop.
    pub message: String,
    /// What to do next; where it is empty, that of the code holds ([`Error::advice`]).
    pub hint: String,
    /// Further fields of `error`, such as `flag`, `confirm` or `privilege`.
    pub details: Box<Map<String, Value>>,
}

impl Error {
    /// An error with code and cause.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: String::new(), details: Box::default() }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Adds a field to the structured form.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// What to do next, never empty.
    #[must_use]
    pub fn advice(&self) -> &str {
        if self.hint.is_empty() { self.code.hint() } else { &self.hint }
    }

    /// Shorthand for a bad argument.
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// Shorthand for a fault of ours.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    /// The structured form: `{"error":{"code","message","hint",…}}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut inner = Map::new();
        inner.insert("code".into(), self.code.as_str().into());
        inner.insert("message".into(), self.message.clone().into());
        inner.insert("hint".into(), self.advice().into());
        inner.extend(self.details.iter().map(|(k, v)| (k.clone(), v.clone())));
        json!({ "error": inner })
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A sentence keeps the end that it has; what ends in a quoted `..` does not lose it.
        let stop = |text: &str| if text.ends_with(['.', '?', '!']) { "" } else { "." };
        let (message, advice) = (&self.message, self.advice());
        let code = self.code.as_str();
        write!(f, "{code}: {message}{} {advice}{}", stop(message), stop(advice))
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_what_to_do_next() {
        for code in Code::ALL {
            let error = Error::new(*code, "it went wrong");
            let text = error.to_string();
            assert!(code.hint().len() > 20 && !code.hint().ends_with('.'), "{text}");
            assert_eq!(text, format!("{}: it went wrong. {}.", code.as_str(), code.hint()));
            assert_eq!(error.to_json()["error"]["hint"], code.hint());
        }
        let own = Error::argument("is it?").hint("do this.");
        assert_eq!(own.to_string(), "invalid_argument: is it? do this.");
        assert_eq!(own.to_json()["error"]["hint"], "do this.");
    }
}
