//! Reading requests and writing answers, with pveproxy's limits.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// pveproxy drops a connection whose headers reach this size or number.
const MAX_HEADER_BYTES: usize = 8 * 1024;
const MAX_HEADERS: usize = 64;
const MAX_REQUEST_LINE: usize = 64 * 1024;
/// The largest body outside of uploads.
pub(crate) const MAX_BODY: usize = 512 * 1024;

/// The head of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) version: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    pub(crate) fn content_length(&self) -> usize {
        self.header("content-length").and_then(|v| v.trim().parse().ok()).unwrap_or(0)
    }
}

/// An answer, before it is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Bytes of the reason phrase; the real server puts any text there.
    pub(crate) reason: Vec<u8>,
    pub(crate) content_type: Option<String>,
    pub(crate) body: Vec<u8>,
    /// Sent compressed even when the client did not ask (the journal is).
    pub(crate) always_gzip: bool,
    pub(crate) extra: Vec<(String, String)>,
}

impl Response {
    /// An answer with no body.
    pub(crate) fn empty(status: u16, reason: &str) -> Self {
        Self { status, reason: reason_bytes(reason), ..Self::default() }
    }

    pub(crate) fn text(status: u16, reason: &str, content_type: &str, body: &str) -> Self {
        Self {
            status,
            reason: reason_bytes(reason),
            content_type: Some(content_type.to_owned()),
            body: body.as_bytes().to_vec(),
            ..Self::default()
        }
    }

    /// The bytes as they go on the wire.
    pub(crate) fn encode(mut self, accept_encoding: &str, keep_alive: bool) -> Vec<u8> {
        let mut encoding = None;
        if !self.body.is_empty() {
            if self.always_gzip || accept_encoding.contains("gzip") {
                self.body = gzip(&self.body);
                encoding = Some("gzip");
            } else if accept_encoding.contains("deflate") {
                self.body = deflate(&self.body);
                encoding = Some("deflate");
            }
        }
        let mut out = format!("HTTP/1.1 {} ", self.status).into_bytes();
        out.extend_from_slice(&self.reason);
        let connection = if keep_alive { "Keep-Alive" } else { "close" };
        out.extend_from_slice(
            format!(
                "\r\nCache-Control: max-age=0\r\nConnection: {connection}\r\nPragma: no-cache\r\n\
                 Server: pve-api-daemon/3.0\r\nContent-Length: {}\r\n",
                self.body.len()
            )
            .as_bytes(),
        );
        if let Some(t) = &self.content_type {
            out.extend_from_slice(format!("Content-Type: {t}\r\n").as_bytes());
        }
        if let Some(e) = encoding {
            out.extend_from_slice(format!("Content-Encoding: {e}\r\n").as_bytes());
        }
        for (name, value) in &self.extra {
            out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.body);
        out
    }
}

/// The first line of a message as a reason phrase: one byte for a character up
/// to U+00FF, as the real server writes it.
pub(crate) fn reason_bytes(message: &str) -> Vec<u8> {
    let line = message.lines().next().unwrap_or("");
    let mut out = Vec::with_capacity(line.len());
    for c in line.chars() {
        match u8::try_from(u32::from(c)) {
            Ok(b'\r') => out.push(b' '),
            Ok(b) => out.push(b),
            Err(_) => out.push(b'?'),
        }
    }
    out
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut e = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory cannot fail.
    let _ = e.write_all(body);
    e.finish().unwrap_or_default()
}

fn deflate(body: &[u8]) -> Vec<u8> {
    let mut e = ZlibEncoder::new(Vec::new(), Compression::fast());
    let _ = e.write_all(body);
    e.finish().unwrap_or_default()
}

/// A connection with its read buffer.
pub(crate) struct Wire<S> {
    stream: S,
    buf: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, buf: Vec::new() }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        let mut chunk = [0_u8; 8192];
        let n = self.stream.read(&mut chunk).await?;
        self.buf.extend_from_slice(chunk.get(..n).unwrap_or(&[]));
        Ok(n)
    }

    /// The next head; `None` when the peer closed, or sent more than pveproxy takes.
    pub(crate) async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some(end) = find(&self.buf, b"\r\n\r\n") {
                let rest = self.buf.split_off(end + 4);
                let head = std::mem::replace(&mut self.buf, rest);
                return Ok(parse_head(&head));
            }
            let line_end = find(&self.buf, b"\r\n");
            let too_long = match line_end {
                Some(at) => self.buf.len() - at > MAX_HEADER_BYTES + 4,
                None => self.buf.len() > MAX_REQUEST_LINE,
            };
            if too_long || self.fill().await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Exactly `length` bytes of body.
    pub(crate) async fn body(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buf.len() < length {
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = self.buf.split_off(length);
        Ok(std::mem::replace(&mut self.buf, rest))
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Ends the connection in order, so that the peer reads what was sent.
    pub(crate) async fn close(mut self) {
        let _ = self.stream.shutdown().await;
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

fn parse_head(bytes: &[u8]) -> Option<Head> {
    let text: String = bytes.iter().map(|&b| char::from(b)).collect();
    let mut lines = text.split("\r\n");
    let line = lines.next()?;
    let (method, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (target, version) = rest.rsplit_once(' ').unwrap_or((rest, ""));
    let mut head = Head {
        method: method.to_owned(),
        target: target.to_owned(),
        version: version.to_owned(),
        headers: Vec::new(),
    };
    let mut size = 0;
    for l in lines.filter(|l| !l.is_empty()) {
        size += l.len() + 2;
        let (name, value) = l.split_once(':').unwrap_or((l, ""));
        head.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    (size < MAX_HEADER_BYTES && head.headers.len() < MAX_HEADERS).then_some(head)
}
