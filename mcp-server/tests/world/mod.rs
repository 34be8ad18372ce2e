//! A simulated cluster with this server before it, in write mode.

// Helpers of tests count as no tests; each test takes what it needs.
#![allow(dead_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::{path::PathBuf, sync::Arc};

use proxmox_mcp::{
    Error,
    app::App,
    config::{ApiToken, Config, Dirs, HostPort, Mode, Pin},
    safety::{Flag, Flags},
    tools::{Silent, call},
};
use pve_sim::{Options, Sim};
use serde_json::{Value, json};

/// A simulator and the server that speaks to it.
pub struct World {
    pub sim: Sim,
    pub app: Arc<App>,
    pub folder: tempfile::TempDir,
}

impl World {
    /// The sample estate, every flag on, tasks that end at once.
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// The same, with the configuration changed.
    pub async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let sim = Sim::start(Options { task_pace: 0.0, ..Options::default() }).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| -> PathBuf { folder.path().join(name) };
        let mut config = Config::minimal(Dirs { config: place("config"), state: place("state") });
        std::fs::create_dir_all(place("config")).unwrap();
        std::fs::create_dir_all(place("state")).unwrap();
        let (id, secret) = sim.token("admin").unwrap();
        config.hosts =
            vec![HostPort { host: sim.addr().ip().to_string(), port: sim.addr().port() }];
        config.token = Some(ApiToken { id, secret: secret.into() });
        config.tls.fingerprints = vec![Pin::parse(&sim.fingerprint()).unwrap()];
        config.mode = Mode::Write;
        let mut flags = Flags::default();
        for flag in Flag::ALL {
            flags.set(*flag, "enabled");
        }
        config.flags = flags;
        change(&mut config);
        let app = App::new(config).unwrap();
        Self { sim, app, folder }
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Error> {
        let answer = call(&self.app, tool, arguments, &Silent("test")).await;
        answer.map(|a| a.structured)
    }

    /// Calls a tool, and once more with the text that it asks to confirm.
    pub async fn confirmed(&self, tool: &str, arguments: Value) -> Result<Value, Error> {
        match self.call(tool, arguments.clone()).await {
            Err(error) if error.details.contains_key("confirm") => {
                let mut again = arguments;
                again["confirm"] = error.details["confirm"].clone();
                self.call(tool, again).await
            }
            other => other,
        }
    }

    /// The changes that were sent since the last time, as `POST /path {"a":"b"}`.
    pub fn sent(&self) -> Vec<String> {
        let seen = self.sim.requests();
        self.sim.clear_requests();
        seen.iter()
            .filter(|r| r.method != "GET")
            .map(|r| {
                // Where a fault answered, nobody has read the body yet.
                let named = if r.params.is_empty() { form(&r.body) } else { r.params.clone() };
                let params: Value =
                    named.into_iter().filter(|(name, _)| name.as_str() != "digest").collect();
                format!("{} {} {params}", r.method, r.api_path())
            })
            .collect()
    }

    /// Whether the last change carried a digest.
    pub fn with_digest(&self) -> bool {
        let seen = self.sim.requests();
        seen.iter()
            .rev()
            .find(|r| r.method != "GET")
            .is_some_and(|r| r.params.contains_key("digest"))
    }

    /// A guest's option as the simulator holds it.
    pub fn option(&self, vmid: u32, key: &str) -> Option<String> {
        self.sim.with_state(|s| s.guests.get(&vmid)?.config.get(key).map(str::to_owned))
    }
}

/// The fields of a form.
fn form(body: &[u8]) -> serde_json::Map<String, Value> {
    let text = |t: &str| {
        let t = t.replace('+', " ");
        percent_encoding::percent_decode_str(&t).decode_utf8_lossy().into_owned()
    };
    let body = String::from_utf8_lossy(body);
    let fields = body.split('&').filter_map(|field| field.split_once('='));
    fields.map(|(name, value)| (text(name), text(value).into())).collect()
}

/// One case of a table: what is called, and what is sent for it.
pub struct Case {
    pub tool: &'static str,
    pub arguments: Value,
    pub sent: &'static str,
    pub status: &'static str,
}

/// A good case.
pub fn good(tool: &'static str, arguments: Value, sent: &'static str) -> Case {
    Case { tool, arguments, sent, status: "done" }
}

/// Runs good cases one after the other in a world of their own each: a dry run
/// sends nothing and shows the same request, then exactly that is sent.
pub async fn all_good(cases: Vec<Case>) {
    for case in cases {
        let world = World::new().await;
        let mut dry = case.arguments.clone();
        dry["dry_run"] = json!(true);
        let shown = world.call(case.tool, dry).await;
        let name = format!("{} {}", case.tool, case.arguments);
        let shown = shown.unwrap_or_else(|e| panic!("{name}, dry: {e} {:?}", e.details));
        assert_eq!(shown["status"], "dry_run", "{name}: {shown}");
        assert_eq!(world.sent(), Vec::<String>::new(), "{name}: a dry run sends nothing");
        let done = world.confirmed(case.tool, case.arguments.clone()).await;
        let done = done.unwrap_or_else(|e| panic!("{name}: {e} {:?}", e.details));
        assert_eq!(done["status"], case.status, "{name}: {done}");
        let sent = world.sent();
        assert_eq!(sent, [case.sent], "{name}");
        let request = &done["request"];
        let path = case.sent.split(' ').nth(1).unwrap();
        assert_eq!(request["path"], path, "{name}");
        assert_eq!(shown["request"], *request, "{name}: the dry run showed what was sent");
    }
}

/// Runs bad cases in one world: each is refused with this code and words, and nothing is sent.
pub async fn all_bad(world: &World, cases: &[(&str, Value, &str, &str)]) {
    for (tool, arguments, code, words) in cases {
        let name = format!("{tool} {arguments}");
        match world.confirmed(tool, arguments.clone()).await {
            Ok(answer) => panic!("{name} was taken: {answer}"),
            Err(error) => {
                let text = format!("{error} {:?}", error.details);
                assert_eq!(error.code.as_str(), *code, "{name}: {text}");
                assert!(text.contains(words), "{name}: {text}");
            }
        }
        assert_eq!(world.sent(), Vec::<String>::new(), "{name} sent something");
    }
}
