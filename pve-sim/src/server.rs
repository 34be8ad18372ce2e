//! The connections: accept, read, find a fault, call the API, write.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::api::{self, Incoming};
use crate::clock::Time;
use crate::fault::{self, Effect, Fault};
use crate::seen::Seen;
use crate::state::State;
use crate::wire::http::{Head, MAX_BODY, Response, Wire};
use crate::wire::tls::Identity;

/// pveproxy closes a connection after this many requests, or this long idle.
const KEEP_ALIVE_REQUESTS: usize = 100;
const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(5);
/// So many requests are kept for a look at them.
const KEPT_REQUESTS: usize = 10_000;
/// An upload may be this large.
const MAX_UPLOAD: usize = 1 << 30;

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) identity: Identity,
    pub(crate) time: Time,
    pub(crate) state: Mutex<State>,
    pub(crate) faults: Mutex<Vec<Fault>>,
    pub(crate) seen: Mutex<Record>,
    pub(crate) auth_delay: Duration,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic in a test's closure must not take the server down with it.
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Shared {
    fn note(&self, id: usize, change: impl FnOnce(&mut Seen)) {
        let mut record = lock(&self.seen);
        if let Some(at) = id.checked_sub(record.gone)
            && let Some(seen) = record.kept.get_mut(at)
        {
            change(seen);
        }
    }
}

/// The requests seen; the oldest go when there are too many.
#[derive(Default)]
pub(crate) struct Record {
    gone: usize,
    kept: VecDeque<Seen>,
}

impl Record {
    /// Adds one and gives its number.
    fn add(&mut self, seen: Seen) -> usize {
        if self.kept.len() >= KEPT_REQUESTS {
            self.kept.pop_front();
            self.gone += 1;
        }
        self.kept.push_back(seen);
        self.gone + self.kept.len() - 1
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        self.kept.iter().cloned().collect()
    }

    pub(crate) fn clear(&mut self) {
        self.gone += self.kept.len();
        self.kept.clear();
    }
}

/// Accepts until the stop channel closes.
pub(crate) async fn run(listener: TcpListener, shared: Arc<Shared>, mut stop: watch::Receiver<()>) {
    loop {
        tokio::select! {
            _ = stop.changed() => return,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let shared = Arc::clone(&shared);
                let mut stop = stop.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = stop.changed() => {}
                        // A broken connection is the peer's matter.
                        _ = connection(stream, &shared) => {}
                    }
                });
            }
        }
    }
}

async fn connection(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut first = [0_u8; 1];
    if stream.peek(&mut first).await? == 1 && first != [0x16] {
        return plain(stream).await;
    }
    let tls = shared.identity.acceptor.accept(stream).await?;
    serve(Wire::new(tls), shared).await
}

/// Plain HTTP on the TLS port: sent on to https, as pveproxy does.
async fn plain(stream: TcpStream) -> io::Result<()> {
    let mut wire = Wire::new(stream);
    if let Some(head) = wire.head().await? {
        let host = head.header("host").unwrap_or("localhost").to_owned();
        let status = if head.method == "GET" { 301 } else { 308 };
        let mut response = Response::empty(status, "Moved Permanently");
        response.extra.push(("Location".to_owned(), format!("https://{host}{}", head.target)));
        wire.write(&response.encode("", false)).await?;
    }
    wire.close().await;
    Ok(())
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut wire: Wire<S>,
    shared: &Shared,
) -> io::Result<()> {
    for n in 1..=KEEP_ALIVE_REQUESTS {
        let head = match tokio::time::timeout(KEEP_ALIVE_IDLE, wire.head()).await {
            Ok(Ok(Some(head))) => head,
            _ => break,
        };
        let seen = api::seen(&head);
        let path = seen.api_path().to_owned();
        let at = lock(&shared.seen).add(seen);
        let keep = exchange(&mut wire, shared, head, &path, at, n < KEEP_ALIVE_REQUESTS).await?;
        if !keep {
            break;
        }
    }
    wire.close().await;
    Ok(())
}

/// One request and its answer. `false` ends the connection.
async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    shared: &Shared,
    head: Head,
    path: &str,
    at: usize,
    may_keep: bool,
) -> io::Result<bool> {
    let effect = fault::take(&mut lock(&shared.faults), &head.method, path);
    if effect == Some(Effect::CutBeforeBody) {
        return Ok(false);
    }
    let length = head.content_length();
    let limit = if path.ends_with("/upload") { MAX_UPLOAD } else { MAX_BODY };
    if length > limit {
        let response = Response::text(501, "for data too large", "text/html", "for data too large");
        shared.note(at, |s| s.status = Some(501));
        wire.write(&response.encode("", false)).await?;
        return Ok(false);
    }
    let body = wire.body(length).await?;
    shared.note(at, |s| s.body.clone_from(&body));
    let accept = head.header("accept-encoding").unwrap_or("").to_owned();
    let wants_close = head.header("connection").is_some_and(|c| c.eq_ignore_ascii_case("close"))
        || head.version != "HTTP/1.1";
    let call = || {
        let incoming = Incoming { head: &head, body: &body };
        let now = shared.time.now_ms();
        let (response, params) = api::answer(&mut lock(&shared.state), &incoming, now);
        shared.note(at, |s| s.params = params);
        response
    };

    let mut pace = None;
    let mut cut = false;
    let response = match effect {
        None => call(),
        Some(Effect::Latency(d)) => {
            let response = call();
            tokio::time::sleep(d).await;
            response
        }
        Some(Effect::CutBeforeBody) => return Ok(false),
        Some(Effect::CutAfterBody { apply }) => {
            if apply {
                call();
            }
            return Ok(false);
        }
        Some(Effect::NeverAnswer { apply }) => {
            if apply {
                call();
            }
            std::future::pending::<()>().await;
            return Ok(false);
        }
        Some(Effect::CutInAnswer) => {
            cut = true;
            call()
        }
        Some(Effect::Status(status, reason)) => Response::empty(status, &reason),
        Some(Effect::StatusAfter(status, reason)) => {
            call();
            Response::empty(status, &reason)
        }
        Some(Effect::Error(status, message)) => api::failure_response(status, &message),
        Some(Effect::Answer(body)) => {
            Response::text(200, "OK", "application/json;charset=UTF-8", &body)
        }
        Some(Effect::Html(status)) => {
            Response::text(status, "Bad Gateway", "text/html", &proxy_page(status))
        }
        Some(Effect::Garbage) => {
            wire.write(b"\x16\x03\x01 this is not HTTP \xff\xfe\r\n\r\n").await?;
            return Ok(false);
        }
        Some(Effect::BrokenJson) => {
            let mut response = call();
            response.body.truncate(response.body.len().saturating_sub(3));
            response
        }
        Some(Effect::Drip { chunk, every }) => {
            pace = Some((chunk.max(1), every));
            call()
        }
        Some(Effect::Huge(bytes)) => {
            call();
            let body = format!("{{\"data\":\"{}\"}}", "x".repeat(bytes));
            Response::text(200, "OK", "application/json;charset=UTF-8", &body)
        }
    };

    if response.status == 401 && !shared.auth_delay.is_zero() {
        tokio::time::sleep(shared.auth_delay).await;
    }
    let status = response.status;
    let keep = may_keep && status < 400 && !wants_close;
    let bytes = response.encode(&accept, keep);
    if cut {
        wire.write(bytes.get(..bytes.len() / 2).unwrap_or(&[])).await?;
        return Ok(false);
    }
    shared.note(at, |s| s.status = Some(status));
    match pace {
        None => wire.write(&bytes).await?,
        Some((chunk, every)) => {
            for piece in bytes.chunks(chunk) {
                wire.write(piece).await?;
                tokio::time::sleep(every).await;
            }
        }
    }
    Ok(keep)
}

fn proxy_page(status: u16) -> String {
    format!(
        "<!DOCTYPE html>\n<html><head><title>{status} Bad Gateway</title></head>\n<body>\n\
         <center><h1>{status} Bad Gateway</h1></center>\n<hr><center>nginx</center>\n</body></html>\n"
    )
}
