//! One value becomes an answer: compact structured content and the same as text.

mod clean;
mod table;
mod text;
pub mod units;

pub use clean::{clean, clean_value};
pub use table::{Page, Table};

use serde_json::{Map, Value};

/// Most bytes that either part of an answer has unless more was asked for.
pub const ANSWER_BUDGET: usize = 25_000;

/// What a tool answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The whole answer as a JSON object, sufficient by itself.
    pub structured: Value,
    /// A line of ours above the text, such as `12 of 40 guests`.
    pub heading: String,
}

impl Answer {
    /// An answer of an object; anything else is wrapped as `{"value": …}`.
    #[must_use]
    pub fn new(value: impl serde::Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        let structured = if value.is_object() {
            value
        } else {
            Value::Object(Map::from_iter([("value".to_owned(), value)]))
        };
        Self { structured, heading: String::new() }
    }

    /// Sets the line above the text.
    #[must_use]
    pub fn heading(mut self, heading: impl Into<String>) -> Self {
        self.heading = heading.into();
        self
    }

    /// Names the members whose text comes from the estate: whoever reads the
    /// answer must take it as data, never as instructions.
    #[must_use]
    pub fn untrusted(mut self, members: &[&str]) -> Self {
        if let Value::Object(map) = &mut self.structured {
            let present: Vec<Value> =
                members.iter().filter(|m| map.contains_key(**m)).map(|m| Value::from(*m)).collect();
            if !present.is_empty() {
                map.insert("untrusted".to_owned(), Value::Array(present));
            }
        }
        self
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Value::Object(map) = &mut self.structured {
            map.insert(key.to_owned(), value.into());
        }
        self
    }

    /// The same as text: our heading, then the value.
    #[must_use]
    pub fn text(&self) -> String {
        text::of(&self.heading, &self.structured)
    }
}
