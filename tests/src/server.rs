//! A small MCP client over stdio that sends and sees raw lines.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The newest protocol revision, without `initialize`.
pub const LATEST: &str = "2026-07-28";
/// The newest revision that opens with `initialize`.
pub const LEGACY: &str = "2025-11-25";
/// How long a test waits for something that must happen before it fails.
pub const LIMIT: Duration = Duration::from_secs(30);

/// A running server. Every line on its standard output must be one JSON-RPC
/// message; anything else fails the test.
pub struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    waiting: Vec<Value>,
    next_id: u64,
    output: Vec<u8>,
}

/// The parameters of `initialize` for a protocol revision.
pub fn initialize(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": { "name": "e2e", "version": "1" },
    })
}

/// Parameters with the `_meta` that every request of the 2026-07-28 era carries.
pub fn new_era(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": LATEST,
        "io.modelcontextprotocol/clientInfo": { "name": "e2e", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

impl Server {
    /// Starts a command as a server.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            loop {
                let mut line = Vec::new();
                match stdout.read_until(b'\n', &mut line) {
                    Ok(n) if n > 0 && sender.send(line).is_ok() => {}
                    _ => break,
                }
            }
        });
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&stderr);
        let mut pipe = child.stderr.take().expect("stderr is a pipe");
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n @ 1..) = pipe.read(&mut piece) {
                sink.lock().expect("stderr").extend_from_slice(&piece[..n]);
            }
        });
        let (waiting, output) = (Vec::new(), Vec::new());
        Self { child, stdin, lines, stderr, waiting, next_id: 0, output }
    }

    /// Starts and opens with `initialize` of the [`LEGACY`] revision.
    pub fn open(command: &mut Command) -> Self {
        let mut server = Self::start(command);
        server.initialize(LEGACY);
        server
    }

    /// Opens with `initialize`; the result.
    pub fn initialize(&mut self, version: &str) -> Value {
        let answer = self.request("initialize", initialize(version));
        let result = answer.get("result").unwrap_or_else(|| panic!("initialize: {answer}")).clone();
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        result
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).unwrap_or_else(|e| {
            panic!("writing to the server: {e}; stderr: {}", self.stderr());
        });
    }

    /// Sends one message on one line.
    pub fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    /// Sends a request and returns its id.
    pub fn send_request(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Sends a tool call and returns its id.
    pub fn send_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send_request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Sends a request and waits for its whole answer.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params);
        self.answer(&json!(id))
    }

    /// Calls a tool; its result (an error of the tool is a result too).
    ///
    /// # Panics
    /// When the answer is a protocol error.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send_call(tool, arguments);
        self.result(id)
    }

    /// The result of a request that was sent.
    ///
    /// # Panics
    /// When the answer is a protocol error.
    pub fn result(&mut self, id: u64) -> Value {
        let answer = self.answer(&json!(id));
        answer.get("result").unwrap_or_else(|| panic!("protocol error: {answer}")).clone()
    }

    /// The structured content of a tool call that must not be an error.
    pub fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone());
        assert_ne!(result["isError"], json!(true), "{tool} {arguments}: {result}");
        result["structuredContent"].clone()
    }

    /// The `error` object of a tool call that must be an error, with code,
    /// message and hint, and with the message in its text.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone());
        let what = format!("{tool} {arguments}: {result}");
        assert_eq!(result["isError"], json!(true), "{what}");
        let error = result["structuredContent"]["error"].clone();
        for field in ["code", "message", "hint"] {
            assert!(error[field].as_str().is_some_and(|s| !s.is_empty()), "no {field}: {what}");
        }
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(error["message"].as_str().unwrap_or("?")), "{what}");
        error
    }

    /// The next answer with this id, in whatever order they come.
    pub fn answer(&mut self, id: &Value) -> Value {
        let is_it = |m: &Value| m.get("id") == Some(id) && m.get("method").is_none();
        if let Some(at) = self.waiting.iter().position(is_it) {
            return self.waiting.remove(at);
        }
        loop {
            let message = self.next().unwrap_or_else(|| {
                panic!("no answer to {id}; waiting: {:?}; stderr: {}", self.waiting, self.stderr())
            });
            if is_it(&message) {
                return message;
            }
            self.waiting.push(message);
        }
    }

    /// The next message; `None` when the server closed its output.
    ///
    /// # Panics
    /// When nothing comes within [`LIMIT`], or what comes is not JSON-RPC.
    pub fn next(&mut self) -> Option<Value> {
        let line = match self.lines.recv_timeout(LIMIT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("nothing within {LIMIT:?}; stderr: {}", self.stderr())
            }
        };
        self.output.extend_from_slice(&line);
        let text = std::str::from_utf8(&line).expect("output is UTF-8");
        assert!(text.ends_with('\n') && !text.ends_with("\r\n"), "line end of {text:?}");
        let message: Value = serde_json::from_str(text)
            .unwrap_or_else(|e| panic!("not JSON on standard output: {e}: {text:?}"));
        assert_eq!(message["jsonrpc"], json!("2.0"), "{text}");
        Some(message)
    }

    /// Messages that came and were not asked for.
    pub fn unasked(&self) -> &[Value] {
        &self.waiting
    }

    /// Everything that was read from standard output.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// What the server wrote on standard error so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().expect("stderr")).into_owned()
    }

    /// Closes the server's standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Stops reading the server's standard output: the pipe breaks with its next line but one.
    pub fn close_stdout(&mut self) {
        let (_, nothing) = channel();
        self.lines = nothing;
    }

    /// Waits for the end of the process.
    ///
    /// # Panics
    /// When it still runs after `limit`.
    pub fn exit(&mut self, limit: Duration) -> ExitStatus {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                return status;
            }
            assert!(Instant::now() < until, "runs after {limit:?}; stderr: {}", self.stderr());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Closes standard input, waits for the end, and returns every message that still came.
    pub fn finish(&mut self) -> Vec<Value> {
        self.close_stdin();
        let mut rest = std::mem::take(&mut self.waiting);
        while let Some(message) = self.next() {
            rest.push(message);
        }
        let status = self.exit(LIMIT);
        assert!(status.success(), "{status}; stderr: {}", self.stderr());
        rest
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone in most tests.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
