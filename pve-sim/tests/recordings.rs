//! The recorded exchanges of the real API code, replayed against the simulator:
//! same status, same reason, same shape. Needs the folder of recordings:
//! `../shared/recordings` next to the workspace, or the one named by `PVE_RECORDINGS`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "the helpers of a test may do what its body may"
)]

mod replay;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pve_sim::{Clock, Estate, Options, Sim};
use replay::client::{Answer, Client};
use replay::{fixture, shape};
use serde_json::Value;

/// Rows that have to be covered. Raise it when more are.
const COVERED_AT_LEAST: usize = 1287;
/// When the recordings were made.
const THEN: i64 = 1_795_998_120;

const FILES: [&str; 14] = [
    "01-reads",
    "10-writes-vm",
    "11-writes-vm2",
    "12-writes-misc",
    "13-apt-tasks",
    "20-routing",
    "21-routing2",
    "30-agent",
    "31-agent2",
    "40-encoding",
    "41-auth-permissions",
    "42-http",
    "43-execute",
    "50-schedules",
];

fn folder() -> Option<PathBuf> {
    let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/recordings");
    let folder = std::env::var_os("PVE_RECORDINGS").map_or(default, PathBuf::from);
    folder.is_dir().then_some(folder)
}

fn text<'a>(row: &'a Value, name: &str) -> Option<&'a str> {
    row.get(name).and_then(Value::as_str)
}

/// One file's replay: what the recording called something, and what it is called here.
struct Replay {
    sim: Sim,
    client: Client,
    /// Recorded task ids, digests and tickets, and ours.
    names: Vec<(String, String)>,
    /// Recorded process ids in guests, and ours.
    pids: BTreeMap<String, String>,
}

#[derive(Default)]
struct Tally {
    covered: usize,
    missed: BTreeMap<String, usize>,
    lines: Vec<String>,
}

#[tokio::test]
async fn the_recordings_are_covered() {
    let Some(folder) = folder() else {
        println!("skipped: no recordings here; name their folder in PVE_RECORDINGS");
        return;
    };
    let mut tally = Tally::default();
    let mut total = 0;
    for file in FILES {
        let Ok(content) = std::fs::read_to_string(folder.join(format!("{file}.jsonl"))) else {
            continue;
        };
        let rows: Vec<Value> = content.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let before = tally.covered;
        let options = Options {
            estate: Estate::recorded(),
            clock: Clock::Driven(THEN),
            ..Options::default()
        };
        let sim = Sim::start(options).await.unwrap();
        sim.with_state(|s| fixture::before(file, s, THEN));
        let client = Client::new(&sim);
        let mut replay = Replay { sim, client, names: Vec::new(), pids: BTreeMap::new() };
        for (n, row) in rows.iter().enumerate() {
            replay.row(file, n, row, &mut tally).await;
        }
        total += rows.len();
        println!("{file}: {} of {}", tally.covered - before, rows.len());
    }
    if std::env::var_os("PVE_RECORDINGS_VERBOSE").is_some() {
        for line in &tally.lines {
            println!("{line}");
        }
    }
    println!("{} of {total} recordings covered", tally.covered);
    for (why, count) in &tally.missed {
        println!("  not covered, {why}: {count}");
    }
    assert!(tally.covered >= COVERED_AT_LEAST, "only {} rows are covered", tally.covered);
}

impl Replay {
    async fn row(&mut self, file: &str, n: usize, row: &Value, tally: &mut Tally) {
        let label = text(row, "label").unwrap_or("");
        self.pass_time(row);
        let now = self.sim.now_ms() / 1000;
        self.sim.with_state(|s| fixture::by_hand(file, label, s, now));
        let Some(answer) = self.request(row, label).await else {
            *tally.missed.entry("cannot be sent again".to_owned()).or_default() += 1;
            return;
        };
        let verdict = judge(row, &answer, &self.names);
        self.learn(row, &answer);
        match verdict {
            None => tally.covered += 1,
            Some((why, detail)) => {
                *tally.missed.entry(why).or_default() += 1;
                let (method, path) =
                    (text(row, "method").unwrap_or(""), text(row, "path").unwrap_or(""));
                let params = row.get("params").cloned().unwrap_or_default();
                tally
                    .lines
                    .push(format!("{file}:{n} {label} | {method} {path} {params}\n    {detail}"));
            }
        }
    }

    /// Tasks end between the rows, but not before they were seen running.
    fn pass_time(&self, row: &Value) {
        let task = text(row, "path").is_some_and(|p| p.contains("/tasks/"));
        let running = task && row.pointer("/body/data/status").is_some_and(|s| s == "running");
        let not_yet = row.pointer("/body/data/exited").is_some_and(|e| *e == 0);
        let stops = text(row, "label").is_some_and(|l| l == "stop task");
        if !running && !not_yet && !stops {
            self.sim.advance(Duration::from_secs(90));
        }
    }

    /// The text with our names in place of the recorded ones.
    fn ours(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (theirs, ours) in &self.names {
            out = out.replace(theirs, ours).replace(&encoded(theirs), &encoded(ours));
        }
        if let Some((head, pid)) = out.split_once("exec-status?pid=")
            && let Some(own) = self.pids.get(pid)
        {
            out = format!("{head}exec-status?pid={own}");
        }
        out
    }

    async fn request(&self, row: &Value, label: &str) -> Option<Answer> {
        let method = text(row, "method")?;
        let mut path = self.ours(text(row, "path")?);
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
        let mut version = "HTTP/1.1";
        let (full, secret) = self.sim.token("root_full")?;
        let good = format!("PVEAPIToken={full}={secret}");
        let cookie =
            self.names.iter().find(|(t, _)| t.starts_with("PVE:")).map(|(_, ours)| ours.clone());
        let mut body = self.ours(text(row, "request_body").unwrap_or("")).into_bytes();
        let by_ticket = label.contains("ticket") && !label.contains("login")
            || label.starts_with("execute") && text(row, "token").is_none();
        match label {
            "space instead of =" => add("Authorization", format!("PVEAPIToken {full}={secret}")),
            "percent-encoded token" => add(
                "Authorization",
                format!("PVEAPIToken={}", encoded(&format!("{full}={secret}"))),
            ),
            "empty header" => add("Authorization", String::new()),
            "bad cookie" => add("Cookie", "PVEAuthCookie=bad".to_owned()),
            "good token + bad cookie (cookie wins)" => {
                add("Authorization", good.clone());
                add("Cookie", "PVEAuthCookie=bad".to_owned());
            }
            _ if by_ticket => {
                add("Cookie", format!("PVEAuthCookie={}", encoded(&cookie?)));
                if label != "ticket without CSRF" {
                    let csrf = self.names.iter().find(|(t, _)| {
                        t.starts_with("6B0CBD8F:") || t.contains(":") && t.len() == 52
                    });
                    add(
                        "CSRFPreventionToken",
                        csrf.map(|(_, ours)| ours.clone()).unwrap_or_default(),
                    );
                }
            }
            _ => {
                if let Some(token) = text(row, "token") {
                    add("Authorization", self.token(token)?);
                }
            }
        }
        match label {
            "AE gzip" => add("Accept-Encoding", "gzip".to_owned()),
            "AE deflate" => add("Accept-Encoding", "deflate".to_owned()),
            "Accept application/json" => add("Accept", "application/json".to_owned()),
            "HTTP/2.0 line" => version = "HTTP/2.0",
            "Transfer-Encoding chunked" => add("Transfer-Encoding", "chunked".to_owned()),
            "X-HTTP-Method-Override" => add("X-HTTP-Method-Override", "PUT".to_owned()),
            "9k header" => add("X-Long", "a".repeat(9000)),
            "70 headers" => (0..70).for_each(|n| add(&format!("X-{n}"), "1".to_owned())),
            ">512k body" => body = format!("description={}", "x".repeat(600_000)).into_bytes(),
            "GET with body" | "DELETE with body" if body.is_empty() => body = b"a=b".to_vec(),
            _ => {}
        }
        if let Some(kind) = text(row, "request_content_type") {
            add("Content-Type", kind.to_owned());
        }
        // What the recorder shortened is made again.
        if let Some(params) = row.get("params").and_then(Value::as_object) {
            for (name, value) in params {
                let long = value.as_str().and_then(|v| {
                    v.strip_prefix('<')?.strip_suffix(" characters>")?.parse::<usize>().ok()
                });
                if let Some(count) = long {
                    let rest: Vec<String> = params
                        .iter()
                        .filter(|(k, _)| *k != name)
                        .flat_map(|(k, v)| match v {
                            Value::Array(items) => items
                                .iter()
                                .map(|i| format!("{k}={}", encoded(i.as_str().unwrap())))
                                .collect(),
                            other => vec![format!(
                                "{k}={}",
                                encoded(other.as_str().unwrap_or(&other.to_string()))
                            )],
                        })
                        .collect();
                    body = format!("{}&{name}={}", rest.join("&"), "x".repeat(count)).into_bytes();
                }
            }
            // Reads give their parameters beside the path in some of the files.
            if method == "GET" && !path.contains('?') && !params.is_empty() {
                let query: Vec<String> = params
                    .iter()
                    .map(|(k, v)| format!("{k}={}", encoded(v.as_str().unwrap_or(&v.to_string()))))
                    .collect();
                path = format!("{path}?{}", query.join("&"));
            }
        }
        if !body.is_empty() || text(row, "request_content_type").is_some() {
            add("Content-Length", body.len().to_string());
        }
        Some(self.client.send(&format!("{method} {path} {version}"), &headers, &body).await)
    }

    fn token(&self, name: &str) -> Option<String> {
        let who = match name {
            "audit" => "auditor",
            "root_sep" => "sep",
            other => other,
        };
        Some(match self.sim.token(who) {
            Some((id, secret)) => format!("PVEAPIToken={id}={secret}"),
            None => format!("PVEAPIToken={name}"),
        })
    }

    /// Remembers which of our names stand for the recorded ones.
    fn learn(&mut self, row: &Value, answer: &Answer) {
        let own = answer.json();
        for pointer in [
            "/data",
            "/data/digest",
            "/data/pid",
            "/data/ticket",
            "/data/CSRFPreventionToken",
            "/data/0/digest",
            "/data/0/upid",
            "/data/0/volid",
            "/data/value",
        ] {
            let (theirs, ours) =
                (row.get("body").and_then(|b| b.pointer(pointer)), own.pointer(pointer));
            match (theirs, ours) {
                (Some(Value::String(t)), Some(Value::String(o))) if t != o && t.len() >= 20 => {
                    self.names.insert(0, (t.clone(), o.clone()));
                }
                (Some(Value::Number(t)), Some(Value::Number(o))) => {
                    self.pids.insert(t.to_string(), o.to_string());
                }
                _ => {}
            }
        }
    }
}

/// Percent-encoded as a careful client does it.
fn encoded(text: &str) -> String {
    let keep = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes()
        .map(|b| if keep(b) { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

/// A reason or message with the control characters that recorders drop, and our names, taken out.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect::<String>().trim().to_owned()
}

/// Why a row is not covered; `None` when it is.
fn judge(row: &Value, answer: &Answer, names: &[(String, String)]) -> Option<(String, String)> {
    let path = text(row, "path").unwrap_or("");
    let status = row.get("status").and_then(Value::as_u64).unwrap_or(0);
    let got = String::from_utf8_lossy(&answer.body);
    let got = got.chars().take(300).collect::<String>();
    if u64::from(answer.status) != status {
        let why = if answer.status == 501 { "not simulated (501)" } else { "another status" };
        return Some((
            why.to_owned(),
            format!("{status} recorded, {} {} here: {got}", answer.status, answer.reason),
        ));
    }
    if status == 0 {
        return None;
    }
    let mut reason = text(row, "reason").unwrap_or("").to_owned();
    for (theirs, ours) in names {
        reason = reason.replace(theirs, ours);
    }
    if plain(&reason) != plain(&answer.reason) {
        return Some((
            "another reason".to_owned(),
            format!("{reason:?} recorded, {:?} here", answer.reason),
        ));
    }
    match row.get("body") {
        Some(body) if !body.is_null() => {
            let own = answer.json();
            for name in ["message", "errors"] {
                if body.get(name) != own.get(name) {
                    let (a, b) = (body.get(name), own.get(name));
                    return Some((
                        format!("another {name}"),
                        format!("{a:?} recorded, {b:?} here"),
                    ));
                }
            }
            shape::differs(path, body, &own)
                .map(|text| ("another shape".to_owned(), format!("{text}: {got}")))
        }
        _ => {
            let text = text(row, "body_text").unwrap_or("");
            let binary =
                text.contains('\u{FFFD}') || text.starts_with('x') || path.contains("/png/");
            let page = text.starts_with("<!DOCTYPE")
                || text.starts_with("{&quot;")
                || text.starts_with("[virt-viewer]");
            let fits = if binary {
                true
            } else if page {
                got.starts_with(
                    text.split('\n').next().unwrap_or("").split("data").next().unwrap_or(""),
                )
            } else {
                plain(text) == plain(&got)
            };
            (!fits).then(|| ("another text".to_owned(), format!("{text:?} recorded, {got:?} here")))
        }
    }
}
