//! Reads: over the hosts in turn, again after a pause, within twice the time-out.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    ApiPath, Params,
    client::{Answer, Inner, parse},
    error, loose,
    schema::Schema,
    times,
    transport::{Failure, Reply, Request},
};
use crate::{Code, Error, Result, safety::Method};

/// A far node that took this long will take it again.
const NOT_WORTH_REPEATING: Duration = Duration::from_secs(10);

/// What one round over the hosts came to.
enum Round<T> {
    Done(T),
    /// Another attempt may do better.
    Again(Error),
    /// Another attempt would answer the same.
    Final(Error),
}

impl Inner {
    /// The end of a read that begins now: twice its time-out, whatever happens within.
    pub fn end_of_read(&self, path: &ApiPath) -> Instant {
        Instant::now() + times::of_read(path.as_str(), self.config.timeout) * 2
    }

    /// A read with all its attempts, over by `end`.
    pub async fn fetch(&self, path: &ApiPath, params: &Params, end: Instant) -> Result<Answer> {
        let timeout = times::of_read(path.as_str(), self.config.timeout);
        let request = self.request(Method::Get, path, params, timeout);
        self.attempts(&request, path.as_str(), end, parse).await
    }

    /// Reads the API description; it is public, so the token stays here.
    pub async fn read_schema(&self) -> Result<Arc<Schema>> {
        let path = "/pve-docs/api-viewer/apidoc.js";
        let request = Request {
            method: Method::Get,
            target: path.to_owned(),
            body: None,
            timeout: times::of_read(path, self.config.timeout),
            file: None,
            authorized: false,
        };
        let read = |_: &_, reply: &Reply| Schema::parse(&String::from_utf8_lossy(&reply.body));
        let end = Instant::now() + request.timeout * 2;
        self.attempts(&request, path, end, read).await.map(Arc::new)
    }

    async fn attempts<T>(
        &self,
        request: &Request,
        path: &str,
        end: Instant,
        understand: impl Fn(&crate::config::HostPort, &Reply) -> Result<T>,
    ) -> Result<T> {
        let mut attempt = 0;
        loop {
            let error = match self.round(request, path, end, &understand).await {
                Round::Done(value) => return Ok(value),
                Round::Final(error) => return Err(error),
                Round::Again(error) => error,
            };
            let pause = times::pause(attempt);
            // A rest too short for an answer would only replace a telling error.
            let too_late = Instant::now() + pause + request.timeout / 10 >= end;
            if too_late || attempt >= self.config.max_retries {
                return Err(error);
            }
            tracing::debug!(path, %error, attempt, "read is tried again");
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    async fn round<T>(
        &self,
        request: &Request,
        path: &str,
        end: Instant,
        understand: &impl Fn(&crate::config::HostPort, &Reply) -> Result<T>,
    ) -> Round<T> {
        let transport = match self.transport().await {
            Ok(transport) => transport,
            Err(error) => return Round::Final(error),
        };
        let mut failures = Failures::default();
        let mut minority = None;
        for (at, host) in self.hosts.in_order() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let begun = Instant::now();
            let request = Request { timeout: request.timeout.min(left), ..request.clone() };
            let reply = match transport.send(host, &request).await {
                Ok(reply) => reply,
                Err(failure) => {
                    self.hosts.failed(at);
                    failures.add(host.to_string(), failure.error());
                    continue;
                }
            };
            if reply.status < 300 {
                if says_no_quorum(path, &reply) {
                    // What it shows of the others is old: another host may know better.
                    self.hosts.failed(at);
                    minority = minority.or_else(|| understand(host, &reply).ok());
                    continue;
                }
                self.hosts.answered(at);
                return understand(host, &reply).map_or_else(Round::Final, Round::Done);
            }
            let error = error::of_reply(self.call(Method::Get, path, host), &reply);
            match reply.status {
                502..=504 => self.hosts.failed(at),
                596 if error::never_arrived(596, &reply.reason) => return Round::Final(error),
                595 | 596 if begun.elapsed() < NOT_WORTH_REPEATING => {}
                _ if error::without_quorum(&error) => self.hosts.failed(at),
                _ => return Round::Final(error),
            }
            failures.add(host.to_string(), error);
        }
        match minority {
            Some(value) => Round::Done(value),
            None => failures.into_round(),
        }
    }
}

/// Whether a host says of itself that it is without a majority of its cluster.
fn says_no_quorum(path: &str, reply: &Reply) -> bool {
    if path != "/cluster/status" {
        return false;
    }
    let answer: serde_json::Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let rows = answer.get("data").map_or(&[][..], loose::rows);
    rows.iter().any(|row| {
        loose::str(row, "type") == Some("cluster")
            && loose::some(row, "quorate").is_some()
            && !loose::flag(row, "quorate")
    })
}

/// The failures of one round, to be told as one.
#[derive(Default)]
pub(super) struct Failures(Vec<(String, Error)>);

impl Failures {
    pub fn add(&mut self, host: String, error: Error) {
        tracing::debug!(host, %error, "host could not be used");
        self.0.push((host, error));
    }

    /// The weightiest failure; when several hosts were tried, `hosts` tells of each.
    pub fn into_error(self) -> Error {
        let tried: Vec<serde_json::Value> = self
            .0
            .iter()
            .map(|(host, e)| {
                serde_json::json!({"host": host, "code": e.code.as_str(), "message": e.message})
            })
            .collect();
        let worst = self.0.into_iter().map(|(_, e)| e).min_by_key(|e| weight(e.code));
        let error = worst.unwrap_or_else(|| {
            Error::new(Code::Timeout, "the time was over before a host could be asked")
        });
        if tried.len() > 1 { error.with("hosts", tried) } else { error }
    }

    fn into_round<T>(self) -> Round<T> {
        let error = self.into_error();
        let again = matches!(error.code, Code::Unreachable | Code::Timeout | Code::ProxyFailed)
            || error.details.contains_key("http_status") && error.code == Code::BadAnswer;
        if again { Round::Again(error) } else { Round::Final(error) }
    }
}

/// What a person should hear of first: a wrong certificate, then what a node
/// said, then hosts that are away.
fn weight(code: Code) -> u8 {
    match code {
        Code::TlsPinMismatch => 0,
        Code::TlsUntrusted => 1,
        Code::Unreachable => 4,
        Code::Timeout => 3,
        _ => 2,
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error()
    }
}
