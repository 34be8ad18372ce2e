//! A node made of stand-ins, and the built guard run on it.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test code")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub const GUARD: &str = env!("CARGO_BIN_EXE_pve-guard");

pub const POLICY: &str = r#"
verbs = ["hello", "pct-exec", "upgrade-simulate", "upgrade-start", "upgrade-status",
         "kernel-list", "kernel-pin", "kernel-unpin"]
[containers]
allow = "100-999"
deny = "666"
[limits]
timeout_s = 100
max_output = 200000
max_input = 100000
commands = 64
[programs]
never = ["reboot", "/usr/bin/forbidden"]
[upgrade]
refresh = true
lock_wait_s = 1
"#;

const JOURNAL: &str = "run/systemd/journal/socket";

/// Behaves as `pct exec` does: no shell, the command's own status, and its
/// arguments and environment as they come.
const PCT: &str = r#"#!/bin/sh
root=${0%/usr/sbin/pct}
if [ "$1" = status ]; then cat "$root/status-of-$2" 2>/dev/null || echo "status: running"; exit 0; fi
printf '%s\0' "$@" >"$root/pct-argv"
echo x >>"$root/pct-runs"
[ "$1 $3 $4 $5" = "exec --keep-env 1 --" ] || exit 255
shift 5
exec "$@"
"#;

/// A root folder with everything that the guard looks at.
pub struct Node {
    root: tempfile::TempDir,
    journaled: Arc<Mutex<Vec<String>>>,
}

impl Node {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let journal_dir = root.path().join("run/systemd/journal");
        fs::create_dir_all(&journal_dir).unwrap();
        let journal = UnixDatagram::bind(journal_dir.join("socket")).unwrap();
        let node = Self { root, journaled: Arc::default() };
        let records = Arc::clone(&node.journaled);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 20];
            while let Ok(length) = journal.recv(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                if text == "close" {
                    break;
                }
                records.lock().unwrap().push(text);
            }
        });
        node.write("etc/pve-guard/policy.toml", POLICY);
        node.write("proc/sys/kernel/hostname", "pve1.example.test\n");
        node.write("proc/sys/kernel/osrelease", "7.0.2-6-pve\n");
        node.write("proc/sys/kernel/random/boot_id", "boot-1\n");
        node.write("proc/net/unix", "");
        node.write("etc/os-release", "VERSION_CODENAME=trixie\n");
        node.write("etc/apt/sources.list", "deb http://deb.debian.org/debian trixie main\n");
        node.write("var/lib/dpkg/status", PACKAGES);
        for dir in ["run", "var/lib", "var/log", "var/lib/apt/lists/partial", "boot"] {
            fs::create_dir_all(node.path(dir)).unwrap();
        }
        node.container(200, "hostname: web\nunprivileged: 1\n");
        node.program("usr/sbin/pct", PCT);
        node
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_default()
    }

    pub fn program(&self, path: &str, text: &str) {
        self.write(path, text);
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn policy(&self, from: &str, to: &str) {
        assert!(POLICY.contains(from));
        self.write("etc/pve-guard/policy.toml", &POLICY.replace(from, to));
    }

    pub fn container(&self, vmid: u32, config: &str) {
        self.write(&format!("etc/pve/nodes/pve1/lxc/{vmid}.conf"), config);
    }

    /// How often `pct exec` was run.
    pub fn runs(&self) -> usize {
        self.read("pct-runs").lines().count()
    }

    pub fn pct_argv(&self) -> Vec<String> {
        let text = self.read("pct-argv");
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    pub fn close_journal(&self) {
        fs::remove_file(self.path(JOURNAL)).unwrap();
    }

    /// Records that have come to the system journal, as text.
    pub fn journaled(&self, count: usize) -> Vec<String> {
        eventually("the records are there", || self.journaled.lock().unwrap().len() >= count);
        self.journaled.lock().unwrap().clone()
    }

    /// Records of the guard's own file.
    pub fn log(&self) -> Vec<Value> {
        let text = self.read("var/log/pve-guard/guard.log");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(GUARD);
        command
            .env_clear()
            .env("PVE_GUARD_TEST_ROOT", self.root.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts the guard and leaves its input open.
    pub fn start(&self) -> Guard {
        Guard::of(self.command().spawn().unwrap())
    }

    /// Sends bytes, keeps the input open and waits for the answer.
    pub fn send(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let mut guard = self.start();
        guard.send(bytes);
        guard.finish()
    }

    /// Sends one request.
    pub fn ask(&self, request: &Value) -> Answer {
        self.send(format!("{request}\n"))
    }

    /// Sends one request that is to be answered with `done`.
    pub fn done(&self, request: &Value) -> Value {
        let answer = self.ask(request);
        assert_eq!(answer.status, 0, "{answer:?}");
        answer.done()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Lets the thread that plays the journal end.
        let _ = UnixDatagram::unbound().unwrap().send_to(b"close", self.path(JOURNAL));
    }
}

/// A few packages that dpkg knows.
pub const PACKAGES: &str = "\
Package: bash
Essential: yes
Status: install ok installed
Version: 5.2-1

Package: pve-manager
Status: install ok installed
Version: 9.2.11

Package: proxmox-ve
Status: install ok installed
Version: 9.2.0
";

/// A running guard.
pub struct Guard {
    pub child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

/// Everything that came back.
#[derive(Debug)]
pub struct Answer {
    pub lines: Vec<Value>,
    pub stderr: String,
    pub status: i32,
}

impl Guard {
    pub fn of(mut child: Child) -> Self {
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        // A guard that hangs must not hang the tests.
        let pid = child.id();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(60));
            if fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c == "pve-guard\n") {
                let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
            }
        });
        Self { child, stdin, stdout }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // A guard that has refused already reads no more.
        let _ = self.stdin.as_mut().unwrap().write_all(bytes.as_ref());
    }

    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    pub fn close_output(&mut self) {
        self.stdout = None;
    }

    /// The next line that comes.
    pub fn line(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// Waits for the end, the input still open.
    pub fn finish(mut self) -> Answer {
        let mut lines = Vec::new();
        if let Some(stdout) = self.stdout.take() {
            for line in stdout.lines() {
                let line = line.unwrap();
                lines.push(
                    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}")),
                );
            }
        }
        let status = self.child.wait().unwrap();
        let mut stderr = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            use std::io::Read as _;
            let _ = pipe.read_to_string(&mut stderr);
        }
        drop(self.stdin);
        Answer { lines, stderr, status: code(status) }
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(-1)
}

impl Answer {
    fn last(&self) -> &Value {
        self.lines.last().unwrap_or_else(|| panic!("no answer: {self:?}"))
    }

    pub fn done(&self) -> Value {
        assert!(self.last().get("done").is_some(), "{self:?}");
        self.last()["done"].clone()
    }

    /// The code of the refusal; nothing else may have come.
    pub fn refused(&self) -> &str {
        let code = self.last()["refused"]["code"].as_str();
        code.unwrap_or_else(|| panic!("not refused: {self:?}"))
    }

    pub fn message(&self) -> &str {
        self.last()["refused"]["message"].as_str().unwrap()
    }

    pub fn hint(&self) -> &str {
        self.last()["refused"]["hint"].as_str().unwrap()
    }

    /// All bytes of one stream.
    pub fn stream(&self, name: &str) -> Vec<u8> {
        use base64::Engine as _;
        let engine = base64::engine::general_purpose::STANDARD;
        let chunks = self.lines.iter().filter_map(|line| line.get(name)?.as_str());
        chunks.flat_map(|chunk| engine.decode(chunk).unwrap()).collect()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.stream(name)).unwrap()
    }
}

/// A request of `pct-exec`.
pub fn exec(argv: &[&str]) -> Value {
    json!({
        "v": 1, "id": "test", "verb": "pct-exec", "node": "pve1", "vmid": 200,
        "argv": argv, "timeout_s": 50, "max_output": 100_000, "stdin": false
    })
}

/// The same with one field changed.
pub fn with(mut request: Value, field: &str, value: impl Into<Value>) -> Value {
    request[field] = value.into();
    request
}

/// A request without fields of its own.
pub fn verb(name: &str) -> Value {
    json!({ "v": 1, "id": "test", "verb": name, "node": "pve1" })
}

/// A word that stands in no other command line of this machine.
pub fn token() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("token-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Processes whose command line holds this word.
pub fn alive(token: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(token))
        })
        .collect()
}

/// Waits until something is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ends what a test left running on purpose.
pub fn end(token: &str) {
    for pid in alive(token) {
        let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
    }
}
