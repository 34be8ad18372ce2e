//! A sample estate, an app that may do everything, and calls that are checked
//! by what was sent and what was answered.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::{path::PathBuf, sync::Arc};

use proxmox_mcp::{
    Error,
    app::App,
    config::{ApiToken, Approval, Config, Dirs, HostPort, Mode, Pin},
    render::Answer,
    safety::Flag,
    tools::{self, Silent},
};
use pve_sim::{Options, Sim};
use serde_json::{Value, json};

/// The estate and the way to it.
pub struct Estate {
    pub sim: Sim,
    pub app: Arc<App>,
    pub dir: tempfile::TempDir,
}

impl Estate {
    /// Write mode, all flags on, `confirm` is enough.
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// The same with something else in the configuration.
    pub async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let sim = Sim::start(Options { task_pace: 0.0, ..Options::default() }).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| -> PathBuf { dir.path().join(name) };
        let mut config = Config::minimal(Dirs { config: at("config"), state: at("state") });
        let (id, secret) = sim.token("admin").unwrap();
        config.hosts =
            vec![HostPort { host: sim.addr().ip().to_string(), port: sim.addr().port() }];
        config.token = Some(ApiToken { id, secret: secret.into() });
        config.tls.fingerprints = vec![Pin::parse(&sim.fingerprint()).unwrap()];
        config.mode = Mode::Write;
        config.approval = Approval::Confirm;
        for flag in Flag::ALL {
            config.flags.set(*flag, "enabled");
        }
        change(&mut config);
        let app = App::new(config).unwrap();
        Self { sim, app, dir }
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, Error> {
        tools::call(&self.app, tool, arguments, &Silent("test")).await
    }

    /// Calls a tool that has to answer.
    pub async fn ok(&self, tool: &str, arguments: Value) -> Value {
        match self.call(tool, arguments.clone()).await {
            Ok(answer) => answer.structured,
            Err(error) => panic!("{tool} {arguments}: {error:?}"),
        }
    }

    /// Calls a tool that has to refuse, and answers its code and its whole text.
    pub async fn refused(&self, tool: &str, arguments: Value) -> (String, String) {
        match self.call(tool, arguments.clone()).await {
            Ok(answer) => panic!("{tool} {arguments} answered {}", answer.structured),
            Err(error) => (error.code.as_str().to_owned(), error.to_json().to_string()),
        }
    }

    /// Makes a change, with the text that has to be confirmed.
    pub async fn change(&self, tool: &str, arguments: Value) -> Value {
        let mut arguments = arguments;
        match self.call(tool, arguments.clone()).await {
            Ok(answer) => return answer.structured,
            Err(error) if error.code.as_str() == "confirm_required" => {
                let confirm = error.to_json()["error"]["confirm"].clone();
                assert!(confirm.is_string(), "{error:?}");
                arguments["confirm"] = confirm;
            }
            Err(error) => panic!("{tool} {arguments}: {error:?}"),
        }
        self.ok(tool, arguments).await
    }

    /// Changes that reached Proxmox since the last time: method, path, parameters.
    pub fn sent(&self) -> Vec<Value> {
        let seen: Vec<Value> = self
            .sim
            .requests()
            .iter()
            .filter(|r| r.method != "GET")
            .map(|r| json!([r.method, r.api_path(), r.params]))
            .collect();
        self.sim.clear_requests();
        seen
    }
}

/// The value of a column in the first row for which `key` is `value`.
pub fn cell(table: &Value, key: &str, value: &str, column: &str) -> Value {
    let columns: Vec<&str> =
        table["columns"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
    let at = |name: &str| {
        columns.iter().position(|c| *c == name).unwrap_or_else(|| panic!("{name} in {columns:?}"))
    };
    let (key, column) = (at(key), at(column));
    let rows = table["rows"].as_array().unwrap();
    let row =
        rows.iter().find(|r| r[key] == value).unwrap_or_else(|| panic!("{value} in {rows:?}"));
    row[column].clone()
}
