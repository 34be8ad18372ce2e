//! The protocol of a real `qemu-ga`, spoken to its socket: one connection a
//! call, begun by a synchronisation, one line of JSON each way.

use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::agent::latin1;
use crate::api::call::{Answer, done};
use crate::api::failure::Failure;

/// What the agent answered: what it returns, or its own error object.
pub(super) type Said = Result<Value, Value>;

/// Runs one command.
///
/// An agent that cannot be reached or does not answer is one that is not running.
pub(super) fn run(
    socket: &Path,
    vmid: u32,
    command: &str,
    arguments: &Value,
) -> Result<Said, Failure> {
    exchange(socket, command, arguments).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Failure::died(format!("VM {vmid} qga command '{command}' failed - got timeout"))
        }
        _ => Failure::died("QEMU guest agent is not running"),
    })
}

/// As [`run`], for calls whose answer is a failure where the agent's is one.
fn must(socket: &Path, vmid: u32, command: &str, arguments: &Value) -> Result<Value, Failure> {
    run(socket, vmid, command, arguments)?.map_err(|error| {
        let desc = error.get("desc").and_then(Value::as_str).unwrap_or("no reason");
        Failure::died(format!("Agent error: {desc}"))
    })
}

/// Starts a program by a real agent.
pub(super) fn start(socket: &Path, vmid: u32, argv: &[String], input: &[u8]) -> Answer {
    let (program, args) = argv.split_first().map_or(("", &[][..]), |(p, a)| (p.as_str(), a));
    let mut arguments = json!({"path": program, "arg": args, "capture-output": true});
    if let Value::Object(map) = &mut arguments
        && !input.is_empty()
    {
        map.insert("input-data".to_owned(), json!(STANDARD.encode(input)));
    }
    match run(socket, vmid, "guest-exec", &arguments)? {
        Ok(started) => Ok(json!({"pid": started.get("pid")}).into()),
        // The curly quotes in what the agent says of it break the real answer.
        Err(error) => match error.get("desc").and_then(Value::as_str) {
            Some(desc) if desc.is_ascii() => Err(Failure::died(format!("Agent error: {desc}"))),
            _ => Err(Failure::proxy(596, "Broken pipe")),
        },
    }
}

/// How a program of a real agent stands; its output comes as one character a byte.
pub(super) fn status_by(socket: &Path, vmid: u32, pid: u32) -> Answer {
    let mut status = must(socket, vmid, "guest-exec-status", &json!({"pid": pid}))?;
    if let Value::Object(map) = &mut status {
        for (name, value) in map.iter_mut() {
            if let Value::Bool(on) = value {
                *value = json!(u8::from(*on));
            } else if name.ends_with("-data")
                && let Some(bytes) = value.as_str().and_then(|text| STANDARD.decode(text).ok())
            {
                *value = json!(latin1(&bytes));
            }
        }
        for (data, cut) in [("out-data", "out-truncated"), ("err-data", "err-truncated")] {
            if map.contains_key(data) {
                map.entry(cut).or_insert(json!(0));
            }
        }
    }
    Ok(status.into())
}

/// Reads a file by a real agent, as Proxmox VE does: in pieces of at most 1 MiB.
pub(super) fn read_by(
    socket: &Path,
    vmid: u32,
    path: &str,
    from: usize,
    count: usize,
) -> Result<(Vec<u8>, bool), Failure> {
    const PIECE: usize = 1 << 20;
    let agent = |command: &str, arguments: Value| must(socket, vmid, command, &arguments);
    let handle = agent("guest-file-open", json!({"path": path, "mode": "r"}))?;
    let read = || {
        if from > 0 {
            agent("guest-file-seek", json!({"handle": handle, "offset": from, "whence": "set"}))?;
        }
        let mut bytes = Vec::new();
        while bytes.len() < count {
            let most = (count - bytes.len()).min(PIECE);
            let part = agent("guest-file-read", json!({"handle": handle, "count": most}))?;
            let text = part.get("buf-b64").and_then(Value::as_str).unwrap_or_default();
            let more = STANDARD.decode(text).unwrap_or_default();
            let end = part.get("eof").and_then(Value::as_bool).unwrap_or(true) || more.is_empty();
            bytes.extend(more);
            if end {
                return Ok((bytes, false));
            }
        }
        Ok((bytes, true))
    };
    let done = read();
    agent("guest-file-close", json!({"handle": handle}))?;
    done
}

pub(super) fn write_by(socket: &Path, vmid: u32, path: &str, bytes: &[u8]) -> Answer {
    let agent = |command: &str, arguments: Value| must(socket, vmid, command, &arguments);
    let handle = agent("guest-file-open", json!({"path": path, "mode": "wb"}))?;
    let written =
        agent("guest-file-write", json!({"handle": handle, "buf-b64": STANDARD.encode(bytes)}));
    agent("guest-file-close", json!({"handle": handle}))?;
    written.and_then(|_| done())
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(unix)]
fn exchange(socket: &Path, command: &str, arguments: &Value) -> io::Result<Said> {
    use std::os::unix::net::UnixStream;

    /// As Proxmox VE waits for an agent, and a little.
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut stream = io::BufReader::new(stream);
    let id = std::process::id();
    // What an earlier caller left half sent ends at this byte.
    stream.get_mut().write_all(b"\xff")?;
    send(stream.get_mut(), "guest-sync-delimited", &json!({"id": id}))?;
    let mut skipped = Vec::new();
    io::BufRead::read_until(&mut stream, 0xff, &mut skipped)?;
    if answer(&mut stream)? != Ok(json!(id)) {
        return Err(bad("out of step"));
    }
    send(stream.get_mut(), command, arguments)?;
    answer(&mut stream)
}

#[cfg(not(unix))]
fn exchange(_: &Path, _: &str, _: &Value) -> io::Result<Said> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

fn send(to: &mut impl Write, command: &str, arguments: &Value) -> io::Result<()> {
    writeln!(to, "{}", json!({"execute": command, "arguments": arguments}))
}

fn answer(from: &mut impl io::BufRead) -> io::Result<Said> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut said: Value = serde_json::from_slice(&line).map_err(|_| bad("no JSON"))?;
    match said.get_mut("error") {
        Some(error) => Ok(Err(error.take())),
        None => said.get_mut("return").map(|r| Ok(r.take())).ok_or_else(|| bad("no answer")),
    }
}
