//! What arrived: every request as the server saw it.

use serde_json::{Map, Value};

/// One request as it arrived.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The method as sent, e.g. `POST`.
    pub method: String,
    /// The request target as sent: path and query, nothing decoded.
    pub target: String,
    /// The path, percent-decoded once, without the query, e.g. `/api2/json/version`.
    pub path: String,
    /// Header names (as sent) and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body; empty when the connection was cut before it was read.
    pub body: Vec<u8>,
    /// Query and body parameters as the API understood them (the query wins).
    /// A parameter that was sent several times is an array.
    pub params: Map<String, Value>,
    /// The status that was answered; `None` when no answer was sent.
    pub status: Option<u16>,
}

impl Seen {
    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// The path below `/api2/json`, with `//` kept, e.g. `/nodes/pve1/status`.
    pub fn api_path(&self) -> &str {
        self.path.strip_prefix("/api2/json").unwrap_or(&self.path)
    }

    /// The body as text, bad UTF-8 replaced.
    pub fn body_text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A parameter as text: strings as they are, numbers and booleans printed.
    pub fn param(&self, name: &str) -> Option<String> {
        self.params.get(name).map(crate::api::params::text)
    }
}
