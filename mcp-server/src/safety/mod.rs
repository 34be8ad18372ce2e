//! What stands between a caller and the estate: classification, gate, approval, audit.

pub mod audit;
pub mod flags;
pub mod redact;

pub use flags::{Flag, Flags};

use crate::pve::{ApiPath, Params};

/// What a request can do to the estate, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Changes nothing, and runs nothing that reaches outside the estate.
    Read,
    /// A change to one object that can be undone from the estate alone.
    Write,
    /// Loses data or service of one object, or cannot be undone.
    Destructive,
    /// Can lose many guests, the node, the way in, or the safeguards themselves.
    Critical,
}

impl Class {
    /// The class as it is written in answers: `READ`, `WRITE`, `DESTRUCTIVE`, `CRITICAL`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Class::Read => "READ",
            Class::Write => "WRITE",
            Class::Destructive => "DESTRUCTIVE",
            Class::Critical => "CRITICAL",
        }
    }
}

/// HTTP methods of the Proxmox API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates or acts.
    Post,
    /// Changes.
    Put,
    /// Removes.
    Delete,
}

impl Method {
    /// The method's name in upper case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }
}

/// What a tool wants to do, before anyone judged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// HTTP method.
    pub method: Method,
    /// Canonical path.
    pub path: ApiPath,
    /// Parameters.
    pub params: Params,
}

/// Leave to send one operation once. Only the gate makes one.
#[derive(Debug)]
pub struct Permit {
    operation: Operation,
}

impl Permit {
    /// What may be sent.
    #[must_use]
    pub fn operation(&self) -> &Operation {
        &self.operation
    }
}
