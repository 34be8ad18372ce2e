//! The errors of the API, with the exact shapes of the real one.

use serde_json::{Map, Value};

/// An error that ends a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    /// The message without its line end; its first line is the reason phrase.
    pub(crate) message: String,
    /// Per-parameter messages.
    pub(crate) errors: Map<String, Value>,
    /// No body at all: the reason phrase is the only text.
    pub(crate) bare: bool,
    /// Whether the message ends in a line end, as Perl's `die` makes it.
    pub(crate) newline: bool,
}

impl Failure {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), errors: Map::new(), bare: false, newline: true }
    }

    /// A plain 500: the call died.
    pub(crate) fn died(message: impl Into<String>) -> Self {
        Self::new(500, message)
    }

    /// 400 with one parameter's message.
    pub(crate) fn parameter(name: &str, message: impl Into<String>) -> Self {
        let mut errors = Map::new();
        errors.insert(name.to_owned(), Value::String(message.into()));
        Self::parameters(errors)
    }

    /// 400 with several parameters' messages.
    pub(crate) fn parameters(errors: Map<String, Value>) -> Self {
        Self { errors, ..Self::new(400, "Parameter verification failed.") }
    }

    /// 403; `what` is what stands in the brackets, empty for none.
    pub(crate) fn forbidden(what: &str) -> Self {
        let detail = if what.is_empty() { String::new() } else { format!(" ({what})") };
        Self::new(403, format!("Permission check failed{detail}"))
    }

    /// 403 with a text of its own.
    pub(crate) fn forbidden_as(text: &str) -> Self {
        Self::new(403, text)
    }

    /// 401 without a body.
    pub(crate) fn unauthorized(reason: &str) -> Self {
        Self { bare: true, ..Self::new(401, reason) }
    }

    /// 596: the proxy lost its worker. No body.
    pub(crate) fn proxy(status: u16, reason: &str) -> Self {
        Self { bare: true, ..Self::new(status, reason) }
    }

    pub(crate) fn not_implemented(method: &str, path: &str) -> Self {
        Self {
            newline: false,
            ..Self::new(501, format!("Method '{method} {path}' not implemented"))
        }
    }

    /// What the proxy makes of an error of its worker: a message with a
    /// character above U+00FF kills the worker's reply.
    pub(crate) fn through_worker(self, protected: bool) -> Self {
        let wide = self.message.chars().any(|c| u32::from(c) > 0xFF);
        if protected && wide { Self::proxy(596, "Broken pipe") } else { self }
    }
}
