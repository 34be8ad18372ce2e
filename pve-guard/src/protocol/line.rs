//! The lines after the request: input from the client, replies from the guard.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{MAX_CHUNK, MAX_LINE, Progress, Refused, json as strict};

/// A line that the client sends while a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// `{"stdin":"<base64>"}`: bytes for the command, at most [`MAX_CHUNK`].
    Data(Vec<u8>),
    /// `{"stdin":null}`: the command's input ends here.
    End,
    /// `{"cancel":true}`: end the command.
    Cancel,
}

/// A line that the guard sends.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// `{"stdout":"<base64>"}`
    Stdout(Vec<u8>),
    /// `{"stderr":"<base64>"}`
    Stderr(Vec<u8>),
    /// `{"progress":{…}}`
    Progress(Progress),
    /// `{"done":{…}}`: the last line. The verb says which answer it holds.
    Done(Value),
    /// `{"refused":{…}}`: the last line.
    Refused(Refused),
}

/// A line that is not one of the protocol; the text says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine(pub String);

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadLine {}

impl Input {
    /// The line, with its line feed.
    #[must_use]
    pub fn to_line(&self) -> String {
        let value = match self {
            Input::Data(bytes) => json!({ "stdin": STANDARD.encode(bytes) }),
            Input::End => json!({ "stdin": null }),
            Input::Cancel => json!({ "cancel": true }),
        };
        format!("{value}\n")
    }

    /// Reads one line, without its line feed.
    ///
    /// # Errors
    /// The line is none of the three forms, or carries too much.
    pub fn parse(line: &[u8]) -> Result<Self, BadLine> {
        match single(line)? {
            (key, Value::String(text)) if key == "stdin" => decode(&text).map(Input::Data),
            (key, Value::Null) if key == "stdin" => Ok(Input::End),
            (key, Value::Bool(true)) if key == "cancel" => Ok(Input::Cancel),
            (key, _) => Err(BadLine(format!("{key:?} is no input line"))),
        }
    }
}

impl Reply {
    /// Whether nothing may follow.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        matches!(self, Reply::Done(_) | Reply::Refused(_))
    }

    /// The line, with its line feed.
    #[must_use]
    pub fn to_line(&self) -> String {
        let value = match self {
            Reply::Stdout(bytes) => json!({ "stdout": STANDARD.encode(bytes) }),
            Reply::Stderr(bytes) => json!({ "stderr": STANDARD.encode(bytes) }),
            Reply::Progress(progress) => json!({ "progress": progress }),
            Reply::Done(answer) => json!({ "done": answer }),
            Reply::Refused(refused) => json!({ "refused": refused }),
        };
        format!("{value}\n")
    }

    /// Reads one line, without its line feed.
    ///
    /// # Errors
    /// The line is none of the five forms.
    pub fn parse(line: &[u8]) -> Result<Self, BadLine> {
        let inner = |error: serde_json::Error| BadLine(error.to_string());
        match single(line)? {
            (key, Value::String(text)) if key == "stdout" => decode(&text).map(Reply::Stdout),
            (key, Value::String(text)) if key == "stderr" => decode(&text).map(Reply::Stderr),
            (key, value @ Value::Object(_)) => match key.as_str() {
                "progress" => serde_json::from_value(value).map(Reply::Progress).map_err(inner),
                "done" => Ok(Reply::Done(value)),
                "refused" => serde_json::from_value(value).map(Reply::Refused).map_err(inner),
                _ => Err(BadLine(format!("{key:?} is no reply"))),
            },
            (key, _) => Err(BadLine(format!("{key:?} is no reply"))),
        }
    }
}

/// The one key and value of a line.
fn single(line: &[u8]) -> Result<(String, Value), BadLine> {
    if line.len() > MAX_LINE {
        return Err(BadLine(format!("a line is longer than {MAX_LINE} bytes")));
    }
    let value = strict::parse(line).map_err(|error| BadLine(error.to_string()))?;
    let Value::Object(object) = value else {
        return Err(BadLine("a line is not a JSON object".into()));
    };
    let mut pairs = object.into_iter();
    match (pairs.next(), pairs.next()) {
        (Some(pair), None) => Ok(pair),
        _ => Err(BadLine("a line does not hold exactly one key".into())),
    }
}

fn decode(text: &str) -> Result<Vec<u8>, BadLine> {
    let bytes = STANDARD.decode(text).map_err(|error| BadLine(format!("not base64: {error}")))?;
    if bytes.len() > MAX_CHUNK {
        return Err(BadLine(format!("a line carries more than {MAX_CHUNK} bytes")));
    }
    Ok(bytes)
}
