//! Changes: sent once, and an honest answer when nobody knows whether they arrived.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};

use super::{
    ApiPath, Params, Upid,
    cache::Cache,
    client::{Answer, Inner, parse},
    config_line::Line,
    error, loose,
    read::Failures,
    times,
    transport::{Failure, Reply},
    upload::{Attached, Upload},
};
use crate::{
    Code, Error, Result,
    config::HostPort,
    safety::{Method, Operation, redact},
};

/// The largest body that pveproxy takes in an ordinary call, in bytes.
const MAX_BODY: usize = 512 << 10;
/// Longest look-around after an unknown outcome.
const LOOK_AROUND: Duration = Duration::from_secs(10);
/// Tasks shown after an unknown outcome.
const SHOWN_TASKS: usize = 5;

/// Forgets the kept answers when a change ends, however it ends.
struct Changing<'a>(&'a Cache<Answer>);

impl<'a> Changing<'a> {
    fn new(cache: &'a Cache<Answer>) -> Self {
        cache.forget();
        Self(cache)
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.forget();
    }
}

impl Inner {
    /// Sends an operation once. The caller holds a permit for it.
    pub(super) async fn transmit(self: &Arc<Self>, operation: &Operation) -> Result<Value> {
        self.transmit_with(operation, None).await
    }

    /// As [`Inner::transmit`], with a file in the place of the body.
    pub(super) async fn transmit_file(
        self: &Arc<Self>,
        operation: &Operation,
        file: Arc<Upload>,
    ) -> Result<Value> {
        let attached = Attached::new(file, &operation.params)?;
        self.transmit_with(operation, Some(attached)).await
    }

    async fn transmit_with(
        self: &Arc<Self>,
        operation: &Operation,
        file: Option<Attached>,
    ) -> Result<Value> {
        let Operation { method, path, params } = operation;
        let reads = *method == Method::Get;
        let timeout = if reads {
            times::of_read(path.as_str(), self.config.timeout)
        } else {
            times::of_change(*method, path.as_str(), self.config.timeout)
        };
        let mut request = self.request(*method, path, params, timeout);
        if let Some(file) = file {
            request.timeout = timeout.saturating_add(file.time());
            request.body = None;
            request.file = Some(file);
        }
        let size = request.body.as_ref().map_or(0, String::len);
        if size > MAX_BODY {
            return Err(Error::argument(format!(
                "the call is {size} bytes long, and a node takes at most {MAX_BODY}"
            ))
            .hint("send less at once; files go up by pve_upload")
            .with("bytes", size));
        }
        let end = Instant::now() + request.timeout;
        self.check_node_of(path, end).await?;
        let transport = self.transport().await?;
        let _changing = (!reads).then(|| Changing::new(&self.cache));
        let mut attempt = 0;
        loop {
            let mut failures = Failures::default();
            for (at, host) in self.hosts.in_order() {
                match transport.send(host, &request).await {
                    Ok(reply) => {
                        self.hosts.answered(at);
                        let outcome = self.outcome(operation, host, &reply).await;
                        if outcome.as_ref().is_err_and(error::without_quorum) {
                            self.hosts.failed(at);
                        }
                        return outcome;
                    }
                    Err(Failure::NotSent(error)) => {
                        self.hosts.failed(at);
                        failures.add(host.to_string(), error);
                    }
                    Err(Failure::Sent(error)) if reads => return Err(error),
                    Err(Failure::Sent(error)) => return Err(self.unknown(operation, error).await),
                }
            }
            let error = failures.into_error();
            let pause = times::pause(attempt);
            let again = matches!(error.code, Code::Unreachable | Code::Timeout);
            if !again || attempt >= self.config.max_retries || Instant::now() + pause >= end {
                return Err(if reads { error } else { error.with("sent", false) });
            }
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    async fn outcome(
        self: &Arc<Self>,
        operation: &Operation,
        host: &HostPort,
        reply: &Reply,
    ) -> Result<Value> {
        let reads = operation.method == Method::Get;
        if reply.status < 300 {
            return match parse(host, reply) {
                Ok(answer) => Ok(Arc::unwrap_or_clone(answer.data)),
                Err(error) if reads => Err(error),
                Err(error) => Err(self.unknown(operation, error).await),
            };
        }
        let call = self.call(operation.method, operation.path.as_str(), host);
        let mut error = error::of_reply(call, reply);
        // Proxmox repeats what it does not like.
        mask_given(&mut error, operation);
        let on_the_way = matches!(reply.status, 502..=504 | 595..=599);
        if on_the_way && !reads && !error::never_arrived(reply.status, &reply.reason) {
            return Err(self.unknown(operation, error).await);
        }
        let end = Instant::now() + LOOK_AROUND;
        Err(self.explain_missing(&operation.path, error, end).await.0)
    }

    /// The change may or may not have been made: says so, and attaches what
    /// helps to find out.
    async fn unknown(self: &Arc<Self>, operation: &Operation, cause: Error) -> Error {
        let seen = self.look_around(operation).await;
        let mut error = Error::new(
            Code::OutcomeUnknown,
            format!(
                "{} {} may or may not have been done: {}",
                operation.method.as_str(),
                operation.path,
                cause.message
            ),
        )
        .hint(match in_words(&seen) {
            None => "it was sent once and is not sent again; before repeating it, look at the \
                     object and at pve_list_tasks"
                .to_owned(),
            Some(shown) => format!(
                "it was sent once and is not sent again; before repeating it, look at what the \
                 node shows now: {shown}"
            ),
        })
        .with("path", operation.path.as_str())
        .with("method", operation.method.as_str())
        .with("cause", json!({"code": cause.code.as_str(), "message": cause.message}));
        if let Some(status) = cause.details.get("http_status") {
            error = error.with("http_status", status.clone());
        }
        error.details.extend(seen);
        error
    }

    /// One read of the configuration that was to be written, and the newest
    /// tasks of this token there.
    async fn look_around(self: &Arc<Self>, operation: &Operation) -> Map<String, Value> {
        let mut seen = Map::new();
        let end = Instant::now() + LOOK_AROUND;
        let path = operation.path.as_str();
        if path.ends_with("/config") && operation.method == Method::Put {
            if let Ok(now) = self.fetch(&operation.path, &Params::new(), end).await {
                seen.insert("config".into(), compare(&operation.params, &now.data));
            }
            return seen;
        }
        if let Ok(tasks) = self.own_tasks(operation, end).await {
            seen.insert("newest_tasks".into(), tasks.into());
        }
        seen
    }

    async fn own_tasks(&self, operation: &Operation, end: Instant) -> Result<Vec<Value>> {
        let mut segments = operation.path.segments();
        let node = (segments.next() == Some("nodes")).then(|| segments.next()).flatten();
        let in_path = segments.nth(1).map(str::to_owned);
        let vmid = in_path
            .filter(|id| id.bytes().all(|b| b.is_ascii_digit()))
            .or_else(|| operation.params.uint("vmid").map(|id| id.to_string()));
        let answer = match node {
            Some(node) => {
                let path = ApiPath::of(&["nodes", node, "tasks"])?;
                let params = Params::new()
                    .with("source", "all")
                    .with("limit", 50)
                    .with_some("vmid", vmid.as_deref());
                self.fetch(&path, &params, end).await?
            }
            None => self.fetch(&ApiPath::parse("/cluster/tasks")?, &Params::new(), end).await?,
        };
        let own = |row: &&Value| {
            let upid = loose::str(row, "upid").and_then(|u| Upid::parse(u).ok());
            upid.is_some_and(|upid| upid.user() == self.token_id())
        };
        let mut rows: Vec<&Value> = loose::rows(&answer.data).iter().filter(own).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(loose::int(row, "starttime")));
        let shown = rows.into_iter().take(SHOWN_TASKS).map(|row| {
            json!({
                "upid": row.get("upid"),
                "type": row.get("type"),
                "id": row.get("id"),
                "status": loose::str(row, "status").unwrap_or("running"),
                "started": loose::int(row, "starttime")
                    .and_then(|s| jiff::Timestamp::from_second(s).ok())
                    .map(|t| t.to_string()),
            })
        });
        Ok(shown.collect())
    }
}

/// Which of the sent parameters the configuration shows now (names alone:
/// values may be secret).
fn compare(sent: &Params, now: &Value) -> Value {
    let as_sent = sent.to_json();
    let (shown, differ): (Vec<&str>, Vec<&str>) = sent
        .iter()
        .map(|(name, _)| name)
        .filter(|name| !matches!(*name, "digest" | "revert" | "skiplock" | "force"))
        .partition(|name| match *name {
            "delete" => sent.members("delete").all(|gone| loose::some(now, gone).is_none()),
            // Proxmox adds keys of its own (size) and keeps an order of its own.
            _ => {
                let line = |of| Line::parse(&loose::text(of, name).unwrap_or_default(), Some(""));
                line(&as_sent).is_within(&line(now))
            }
        });
    json!({"as_sent": shown, "otherwise": differ})
}
/// What was seen after an unknown outcome, for who reads the text alone.
fn in_words(seen: &Map<String, Value>) -> Option<String> {
    let tasks = seen.get("newest_tasks").map(loose::rows).unwrap_or_default();
    let tasks: Vec<String> = tasks
        .iter()
        .map(|task| {
            let text = |key: &str| loose::text(task, key).unwrap_or_default();
            format!(
                "{} ({})",
                text("upid"),
                loose::text(task, "status").unwrap_or("running".into())
            )
        })
        .collect();
    match (tasks.is_empty(), seen.get("config"), seen.contains_key("newest_tasks")) {
        (false, ..) => Some(format!("its newest tasks are {}", tasks.join(", "))),
        (true, Some(config), _) => Some(format!("the configuration is {config}")),
        (true, None, true) => Some("it has no task by this token".to_owned()),
        (true, None, false) => None,
    }
}

/// Takes the secrets that were sent out of what was answered to them.
fn mask_given(error: &mut Error, operation: &Operation) {
    let secret = |name: &str| redact::is_secret(operation.path.as_str(), name);
    let given = operation.params.iter().filter(|(name, _)| secret(name));
    for value in given.flat_map(|(_, value)| value.values()).filter(|v| v.len() > 2) {
        redact::mask_in_error(error, value);
    }
}
