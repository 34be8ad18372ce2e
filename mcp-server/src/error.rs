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
    /// What to do next; may be empty.
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
        if !self.hint.is_empty() {
            inner.insert("hint".into(), self.hint.clone().into());
        }
        inner.extend(self.details.iter().map(|(k, v)| (k.clone(), v.clone())));
        json!({ "error": inner })
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}.", self.code.as_str(), self.message.trim_end_matches('.'))?;
        if self.hint.is_empty() {
            return Ok(());
        }
        write!(f, " {}.", self.hint.trim_end_matches('.'))
    }
}

impl std::error::Error for Error {}
