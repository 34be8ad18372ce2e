//! What stands between a caller and the estate: classification, gate, approval, audit.

pub mod api;
pub mod approval;
pub mod audit;
pub mod binding;
pub mod class;
pub mod command;
pub mod conditions;
pub mod deed;
pub mod facts;
pub mod files;
pub mod flags;
#[doc(hidden)]
pub mod fuzzing;
pub mod gate;
pub mod guests;
pub mod impact;
pub mod judge;
pub mod live;
pub mod lockout;
#[cfg(test)]
mod mends_tests;
pub mod nodes;
pub mod normal;
#[cfg(test)]
mod property_tests;
pub mod propstring;
pub mod redact;
pub mod rules;
pub mod shown;
pub mod subject;
#[cfg(test)]
mod testing;
pub mod undo;
pub mod volume;

pub use class::{Classification, classify};
pub use deed::{Deed, Leave};
pub use facts::{Facts, Fresh, Nobody, PATIENCE, State};
pub use flags::{Flag, Flags};
pub use gate::{Caller, Gate, Outcome, Pending, Permit, Plan, Said, Trail};
pub use judge::{Explanation, Judgement, explain};

use crate::{
    Error, Result,
    pve::{ApiPath, Params},
};

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
    /// Every method.
    pub const ALL: [Method; 4] = [Method::Get, Method::Post, Method::Put, Method::Delete];

    /// Reads a method's name, in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|m| text.eq_ignore_ascii_case(m.as_str()))
    }

    /// As [`Method::parse`], for an argument of a tool.
    ///
    /// # Errors
    /// `invalid_argument` for everything but GET, POST, PUT and DELETE.
    pub fn read(text: &str) -> Result<Method> {
        Method::parse(text).ok_or_else(|| {
            let shown: String = text.chars().take(20).collect();
            Error::argument(format!("{shown:?} is not a method of the Proxmox API"))
                .hint("GET, POST, PUT and DELETE are spoken, and nothing stands for another")
        })
    }
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
