//! JSON lines on standard input and output. The library answers nothing to
//! lines that are no message; this thin layer in front of it does.

use std::io;

use rmcp::{
    RoleServer,
    model::{ClientRequest, JsonRpcMessage},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{StdioReader, StdioWriter, Transport, stdio_pipes},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

/// Longest line that is taken, in bytes.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// JSON-RPC: the line is not JSON.
const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the line is JSON but no request.
const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the parameters of a known method are of the wrong shape.
const INVALID_PARAMS: i64 = -32602;

/// Methods whose requests the library types; one that it then does not
/// recognise had parameters of the wrong shape.
const KNOWN_METHODS: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/templates/list",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// Lines that wait for a client that reads slowly, before reading stops, too.
const QUEUE: usize = 64;

/// A line on its way out, and who wants to know that it is written.
struct Outgoing {
    line: Vec<u8>,
    written: Option<oneshot::Sender<io::Result<()>>>,
}

/// The transport.
pub struct Stdio {
    reader: BufReader<StdioReader>,
    queue: mpsc::Sender<Outgoing>,
    line: Vec<u8>,
    /// The answer to a line that is no message, until the queue has taken it.
    refusal: Option<Vec<u8>>,
    /// The rest of a line that was too long is being dropped.
    skipping: bool,
    /// A session was opened; before that the library takes requests only.
    opened: bool,
    ended: bool,
    closing: CancellationToken,
}

/// What one line is.
enum Line {
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    Nothing,
    Wrong { id: Value, code: i64, message: String },
}

impl Stdio {
    /// `closing` fires when the input ends, `stop` when the output is gone.
    pub fn new(closing: CancellationToken, stop: CancellationToken) -> Self {
        let (reader, writer) = stdio_pipes();
        let (queue, lines) = mpsc::channel(QUEUE);
        tokio::spawn(write_all(writer, lines, stop));
        Self {
            reader: BufReader::with_capacity(64 * 1024, reader),
            queue,
            line: Vec::new(),
            refusal: None,
            skipping: false,
            opened: false,
            ended: false,
            closing,
        }
    }

    /// Reads on until a whole line is in `self.line`. `Ok(false)` is the end of
    /// input; `Err` is a line that is too long. May be cancelled at any await:
    /// what was read stays.
    async fn read_line(&mut self) -> Result<bool, ()> {
        loop {
            let chunk = match self.reader.fill_buf().await {
                Ok([]) | Err(_) => {
                    self.ended = true;
                    return Ok(!self.line.is_empty());
                }
                Ok(chunk) => chunk,
            };
            let end = chunk.iter().position(|b| *b == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            let used = part.len() + usize::from(end.is_some());
            let fits = self.line.len() + part.len() <= MAX_LINE;
            if fits && !self.skipping {
                self.line.extend_from_slice(part);
            }
            self.reader.consume(used);
            let was_skipping = self.skipping;
            self.skipping = (was_skipping || !fits) && end.is_none();
            if !fits && !was_skipping {
                self.line.clear();
                return Err(());
            }
            if end.is_some() && !was_skipping {
                return Ok(true);
            }
        }
    }

    fn judge(&mut self, line: &[u8]) -> Line {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            return Line::Nothing;
        }
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) => {
                let message = format!("parse error: {error}");
                return Line::Wrong { id: Value::Null, code: PARSE_ERROR, message };
            }
        };
        if value.is_array() {
            let message = "batches are not part of this protocol".to_owned();
            return Line::Wrong { id: Value::Null, code: INVALID_REQUEST, message };
        }
        let method = value.get("method").and_then(Value::as_str).map(str::to_owned);
        let id = value.get("id").cloned().unwrap_or(Value::Null);
        let opens = match method.as_deref() {
            Some("initialize") => true,
            Some("server/discover" | "ping") => false,
            _ => value.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some(),
        };
        let is_request = method.is_some() && !id.is_null();
        let is_known = method.as_deref().is_some_and(|m| KNOWN_METHODS.contains(&m));
        let params = value.get("params").map(Value::is_object);
        // The library takes a list request with a cursor of the wrong type as one without.
        let cursor = value.pointer("/params/cursor");
        let bad_cursor = cursor.is_some_and(|c| !c.is_string() && !c.is_null());
        let wrong_shape = |id: Value| Line::Wrong {
            id,
            code: INVALID_PARAMS,
            message: format!(
                "parameters of {} have the wrong shape",
                method.as_deref().unwrap_or_default()
            ),
        };
        match serde_json::from_value::<RxJsonRpcMessage<RoleServer>>(value) {
            Ok(JsonRpcMessage::Request(request))
                if is_known
                    && (bad_cursor
                        || matches!(request.request, ClientRequest::CustomRequest(_))) =>
            {
                wrong_shape(id)
            }
            // The library ends a session that opens with anything but a request.
            Ok(message) if !self.opened && !matches!(message, JsonRpcMessage::Request(_)) => {
                Line::Nothing
            }
            Ok(message) => {
                self.opened |= opens;
                Line::Message(Box::new(message))
            }
            // A notification of ours to understand or not: there is no one to answer.
            Err(_) if method.is_some() && !is_request => Line::Nothing,
            Err(_) => {
                let id = if id.is_string() || id.is_number() { id } else { Value::Null };
                // The library takes no request at all whose parameters are a list or a scalar.
                if is_known && params == Some(false) && !id.is_null() {
                    return wrong_shape(id);
                }
                let message = "not a JSON-RPC 2.0 request".to_owned();
                Line::Wrong { id, code: INVALID_REQUEST, message }
            }
        }
    }

    /// Prepares the answer to a line that is no message. It goes out before the next
    /// line is read, so that it stands in its place among the answers.
    fn refuse(&mut self, id: &Value, code: i64, message: &str) {
        let answer =
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
        self.refusal = Some(answer.to_string().into_bytes());
    }

    /// Hands over a prepared answer. May be cancelled: what was not handed over stays.
    async fn hand_over(&mut self) {
        if self.refusal.is_none() {
            return;
        }
        if let Ok(place) = self.queue.reserve().await
            && let Some(line) = self.refusal.take()
        {
            place.send(Outgoing { line, written: None });
        }
        self.refusal = None;
    }
}

/// Writes lines in the order of the queue until it ends or the output is gone, and then fires `stop`.
async fn write_all(
    mut writer: StdioWriter,
    mut lines: mpsc::Receiver<Outgoing>,
    stop: CancellationToken,
) {
    while let Some(Outgoing { mut line, written }) = lines.recv().await {
        if !line.is_empty() {
            line.push(b'\n');
        }
        let result = match writer.write_all(&line).await {
            Ok(()) => writer.flush().await,
            Err(error) => Err(error),
        };
        let failed = result.is_err();
        if let Some(written) = written {
            // Whoever waited may have given up.
            let _ = written.send(result);
        }
        if failed {
            stop.cancel();
            return;
        }
    }
}

/// Queues a line and waits until it is written; an empty one only waits for those before it.
async fn write(queue: mpsc::Sender<Outgoing>, line: Vec<u8>) -> io::Result<()> {
    let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
    let (written, done) = oneshot::channel();
    queue.send(Outgoing { line, written: Some(written) }).await.map_err(|_| gone())?;
    done.await.map_err(|_| gone())?
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let queue = self.queue.clone();
        async move { write(queue, serde_json::to_vec(&item)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.hand_over().await;
            if self.ended {
                self.closing.cancel();
                return None;
            }
            match self.read_line().await {
                Ok(true) => {
                    let mut line = std::mem::take(&mut self.line);
                    let judged = self.judge(&line);
                    line.clear();
                    // A large line is not kept as a buffer for the small ones after it.
                    if line.capacity() <= 1024 * 1024 {
                        self.line = line;
                    }
                    match judged {
                        Line::Message(message) => return Some(*message),
                        Line::Nothing => {}
                        Line::Wrong { id, code, message } => self.refuse(&id, code, &message),
                    }
                }
                Ok(false) => {}
                Err(()) => self.refuse(
                    &Value::Null,
                    PARSE_ERROR,
                    "parse error: the line is longer than 16 MiB",
                ),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        write(self.queue.clone(), Vec::new()).await
    }
}
