//! What a handler gets, and what it gives back.

use serde_json::{Map, Value};

use super::failure::Failure;
use super::login::Login;
use super::multipart::Upload;
use super::{params, permit};
use crate::state::State;
use crate::state::task::{self, Plan};

/// A handler of one method of one endpoint.
pub(crate) type Handler = fn(&mut Call<'_>) -> Answer;
/// What a handler gives back.
pub(crate) type Answer = Result<Reply, Failure>;

/// A call whose parameters passed the schema and whose privileges were checked.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) login: &'a Login,
    pub(crate) params: Map<String, Value>,
    /// The file of an upload.
    pub(crate) upload: Option<Upload>,
    /// Milliseconds since the Unix epoch.
    pub(crate) now_ms: i64,
}

/// A good answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    pub(crate) data: Value,
    /// What stands beside `data`: `total`, `changes`, `success`.
    pub(crate) beside: Map<String, Value>,
    /// The journal is always compressed.
    pub(crate) always_gzip: bool,
}

impl From<Value> for Reply {
    fn from(data: Value) -> Self {
        Self { data, ..Self::default() }
    }
}

impl Reply {
    /// With one member beside `data`.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.beside.insert(name.to_owned(), value.into());
        self
    }
}

/// `data: null`.
pub(crate) fn done() -> Answer {
    Ok(Value::Null.into())
}

impl Call<'_> {
    /// Seconds since the Unix epoch.
    pub(crate) fn now(&self) -> i64 {
        self.now_ms.div_euclid(1000)
    }

    /// A parameter as text, if given.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.params.get(name).filter(|v| !v.is_null()).map(params::text)
    }

    /// A parameter that the schema or the path guarantees.
    pub(crate) fn need(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }

    /// An integer parameter.
    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|t| t.trim_start_matches('+').parse().ok())
    }

    /// A boolean parameter; `false` when absent.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.text(name).is_some_and(|t| t == "1")
    }

    /// A boolean parameter, `None` when absent.
    pub(crate) fn switch(&self, name: &str) -> Option<bool> {
        self.text(name).map(|t| t == "1")
    }

    /// A list parameter: an array, or a string parted by commas, semicolons or blanks.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        match self.params.get(name) {
            Some(Value::Array(items)) => items.iter().map(params::text).collect(),
            Some(value) => params::split_list(&params::text(value)),
            None => Vec::new(),
        }
    }

    /// The guest's number in the path or the parameters.
    pub(crate) fn vmid(&self) -> u32 {
        self.text("vmid").and_then(|t| t.parse().ok()).unwrap_or(0)
    }

    pub(crate) fn node(&self) -> String {
        self.need("node")
    }

    /// Whether the caller has any of these privileges there.
    pub(crate) fn may(&self, path: &str, any: &[&str]) -> bool {
        permit::any(self.state, self.login, path, any)
    }

    /// 403 unless the caller has all of these privileges there.
    pub(crate) fn demand(&self, path: &str, all: &[&str]) -> Result<(), Failure> {
        for privilege in all {
            if !self.may(path, &[privilege]) {
                return Err(Failure::forbidden(&format!("{path}, {privilege}")));
            }
        }
        Ok(())
    }
}

impl Call<'_> {
    /// Starts a task on the node of the call; the answer is its id.
    pub(crate) fn spawn(
        &mut self,
        kind: &str,
        id: &str,
        takes_ms: i64,
        work: impl FnOnce(&mut State, i64) -> Result<Vec<String>, String> + Send + 'static,
    ) -> Answer {
        let node = self.node();
        self.start(Plan::new(&node, kind, id, takes_ms, work))
    }

    /// Starts a planned task; the answer is its id.
    pub(crate) fn start(&mut self, plan: Plan) -> Answer {
        let user = self.login.full();
        let upid = task::start(self.state, &user, self.now_ms, plan);
        Ok(Value::String(upid).into())
    }

    /// Starts a task that fails at once with this text.
    pub(crate) fn spawn_failing(
        &mut self,
        kind: &str,
        id: &str,
        text: impl Into<String>,
    ) -> Answer {
        let text = text.into();
        self.spawn(kind, id, 40, move |_, _| Err(text))
    }
}
