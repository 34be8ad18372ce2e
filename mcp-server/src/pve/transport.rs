//! One HTTP attempt at one host: what came back, or how far it got.

use std::{error::Error as _, io, io::Read as _, time::Duration};

use reqwest::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, LOCATION,
};
use secrecy::ExposeSecret;

use super::{tls, upload::Attached};
use crate::{
    Code, Error, Result,
    config::{ApiToken, Config, HostPort},
    safety::Method,
};

/// Largest answer that is read, in bytes, after unpacking.
const MAX_ANSWER: usize = 64 << 20;
/// pveproxy closes a connection that idles for 5 s; one that we drop first
/// cannot be closed under a request.
const IDLE: Duration = Duration::from_secs(3);
/// Longest wait for a connection; fail-over must stay quick.
const CONNECT: Duration = Duration::from_secs(5);

/// What is sent.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub method: Method,
    /// Encoded path from the root of the server, with its query.
    pub target: String,
    /// Form-encoded body; `None` for GET and DELETE.
    pub body: Option<String>,
    pub timeout: Duration,
    /// A file that is streamed in the place of the body.
    pub file: Option<Attached>,
    /// Whether the token goes along (public documents need none).
    pub authorized: bool,
}

/// What came back, whatever it says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    pub status: u16,
    /// Reason phrase as it was sent; Proxmox puts its message there.
    pub reason: String,
    pub content_type: String,
    /// Where a redirect points to; it is never followed.
    pub location: Option<String>,
    pub body: Vec<u8>,
}

/// Why nothing usable came back.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// No connection was made: the request certainly did not arrive.
    NotSent(Error),
    /// It was sent, or may have been.
    Sent(Error),
}

impl Failure {
    pub fn error(self) -> Error {
        match self {
            Self::NotSent(error) | Self::Sent(error) => error,
        }
    }
}

/// The HTTP side of one cluster.
pub(crate) struct Transport {
    /// Keeps connections alive; for reads.
    pooled: reqwest::Client,
    /// A connection for each request; a change never rides on one that the
    /// node may be closing at that moment.
    fresh: reqwest::Client,
    authorization: Option<HeaderValue>,
}

impl Transport {
    /// Reads the CA file or system store, where one is needed, and sets HTTP up.
    ///
    /// # Errors
    /// `config` for an unreadable CA file or a token that no header can carry.
    pub fn new(config: &Config) -> Result<Self> {
        let tls = tls::client_config(&config.tls)?;
        let build = |idle: usize| {
            reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .https_only(true)
                .http1_only()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
                .user_agent(concat!("proxmox-mcp/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT.min(config.timeout.mul_f32(0.8)))
                .pool_idle_timeout(IDLE)
                .pool_max_idle_per_host(idle)
                .build()
                .map_err(|e| Error::internal(format!("HTTP cannot be set up: {e}")))
        };
        Ok(Self {
            pooled: build(16)?,
            fresh: build(0)?,
            authorization: config.token.as_ref().map(authorization).transpose()?,
        })
    }

    /// Sends once and reads the whole answer within the request's time-out.
    pub async fn send(&self, host: &HostPort, request: &Request) -> Result<Reply, Failure> {
        let client = if request.method == Method::Get { &self.pooled } else { &self.fresh };
        let url = format!("https://{}{}", host.authority(), request.target);
        let url = exact_url(&url, &request.target).map_err(Failure::NotSent)?;
        let method = match request.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
            Method::Delete => reqwest::Method::DELETE,
        };
        let mut out = client.request(method, url).timeout(request.timeout);
        if request.authorized
            && let Some(value) = &self.authorization
        {
            out = out.header(AUTHORIZATION, value.clone());
        }
        if let Some(body) = &request.body {
            // hyper leaves the length of an empty body out; a proxy may insist on it.
            out = out
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .header(CONTENT_LENGTH, body.len())
                .body(body.clone());
        }
        if let Some(file) = &request.file {
            out = file.put_into(out).await.map_err(Failure::NotSent)?;
        }
        let failed = |e: reqwest::Error| failure(host, request.timeout, &e);
        let mut response = out.send().await.map_err(failed)?;
        let header = |name| {
            let value = response.headers().get(name).map(HeaderValue::as_bytes);
            value.map(|v| String::from_utf8_lossy(v).into_owned())
        };
        let mut reply = Reply {
            status: response.status().as_u16(),
            reason: reason(&response),
            content_type: header(CONTENT_TYPE).unwrap_or_default(),
            location: header(LOCATION),
            body: Vec::new(),
        };
        let packed = header(CONTENT_ENCODING).is_some_and(|e| e.eq_ignore_ascii_case("gzip"));
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if reply.body.len() + chunk.len() > MAX_ANSWER {
                return Err(Failure::Sent(too_large(host)));
            }
            reply.body.extend_from_slice(&chunk);
        }
        if packed {
            reply.body = unpack(host, &reply.body).map_err(Failure::Sent)?;
        }
        Ok(reply)
    }
}

/// The header `PVEAPIToken=ID=SECRET`, marked so that it is never shown.
fn authorization(token: &ApiToken) -> Result<HeaderValue> {
    let text = format!("PVEAPIToken={}={}", token.id, token.secret.expose_secret());
    let mut value = HeaderValue::from_str(&text).map_err(|_| {
        Error::new(Code::Config, "the API token holds characters that no header can carry")
            .hint("check PROXMOX_TOKEN_ID and PROXMOX_TOKEN_SECRET for blanks or line ends")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Parses a URL and makes sure that the parser left the target as it was: the
/// checks judged exactly this path.
fn exact_url(url: &str, target: &str) -> Result<reqwest::Url> {
    let parsed = reqwest::Url::parse(url)
        .map_err(|e| Error::internal(format!("no URL can be made for {target}: {e}")))?;
    let whole = match parsed.query() {
        Some(query) => format!("{}?{query}", parsed.path()),
        None => parsed.path().to_owned(),
    };
    if whole != target {
        return Err(Error::new(Code::PathRefused, "the path would be changed on its way")
            .hint("use the canonical form of the path"));
    }
    Ok(parsed)
}

fn reason(response: &reqwest::Response) -> String {
    let phrase = response.extensions().get::<hyper::ext::ReasonPhrase>();
    phrase.map_or_else(
        || response.status().canonical_reason().unwrap_or_default().to_owned(),
        |p| String::from_utf8_lossy(p.as_bytes()).into_owned(),
    )
}

fn too_large(host: &HostPort) -> Error {
    Error::new(Code::BadAnswer, format!("{host} answered more than {} MiB", MAX_ANSWER >> 20))
        .hint("ask for less: filter, limit, or a smaller range")
}

/// pveproxy packs some answers (the journal) though nobody asked for it.
fn unpack(host: &HostPort, packed: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    let limit = u64::try_from(MAX_ANSWER).unwrap_or(u64::MAX).saturating_add(1);
    flate2::read::MultiGzDecoder::new(packed).take(limit).read_to_end(&mut body).map_err(|e| {
        Error::new(Code::BadAnswer, format!("the packed answer of {host} is damaged: {e}"))
    })?;
    if body.len() > MAX_ANSWER {
        return Err(too_large(host));
    }
    Ok(body)
}

/// Turns the library's error into ours, and says how far the request got.
fn failure(host: &HostPort, timeout: Duration, error: &reqwest::Error) -> Failure {
    let connecting = error.is_connect();
    let at = |error| if connecting { Failure::NotSent(error) } else { Failure::Sent(error) };
    if let Some(tls) = find::<rustls::Error>(error) {
        return at(tls_error(host, tls));
    }
    if error.is_timeout() {
        let text = if connecting {
            format!("{host} took no connection in time")
        } else {
            format!("no whole answer from {host} within {} s", timeout.as_secs_f32())
        };
        return at(Error::new(Code::Timeout, text)
            .hint("check that the node is up and not overloaded; PROXMOX_TIMEOUT sets the limit"));
    }
    if connecting {
        let why = if error.is_dns() {
            "the name cannot be resolved".to_owned()
        } else {
            innermost(error)
        };
        return at(Error::new(Code::Unreachable, format!("no connection to {host}: {why}")).hint(
            "check PROXMOX_HOST, that the node is up, and that port 8006 is open from here",
        ));
    }
    if let Some(http) = find::<hyper::Error>(error)
        && (http.is_parse() || http.is_parse_too_large())
    {
        return at(Error::new(Code::BadAnswer, format!("{host} does not answer in HTTP: {http}"))
            .hint("check the port; pveproxy listens on 8006"));
    }
    at(Error::new(
        Code::Unreachable,
        format!("{host} closed the connection before the answer was whole ({})", innermost(error)),
    )
    .hint("check pveproxy on the node, and any proxy in between"))
}

fn tls_error(host: &HostPort, error: &rustls::Error) -> Error {
    if let Some(distrust) = tls::distrust_in(error) {
        return distrust.to_error(host);
    }
    Error::new(Code::BadAnswer, format!("{host} does not speak TLS as a node does: {error}"))
        .hint("check the port; pveproxy listens on 8006")
}

/// The error and its causes, outermost first. An `io::Error` hides what it
/// wraps from `source`, so that is looked into.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = Cause<'_>> {
    fn next<'a>(current: &Cause<'a>) -> Option<Cause<'a>> {
        let current: Cause<'a> = *current;
        match current.downcast_ref::<io::Error>() {
            Some(io) => io.get_ref().map(|inner| inner as Cause<'a>),
            None => current.source(),
        }
    }
    std::iter::successors(error.source(), next)
}

type Cause<'a> = &'a (dyn std::error::Error + 'static);

/// The first cause of a kind.
fn find<T: std::error::Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// The last cause: the one that says something, and never the URL.
fn innermost(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| "the connection failed".to_owned(), ToString::to_string)
}
