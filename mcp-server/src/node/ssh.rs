//! Links over libssh2: exactly the pinned host key, a deadline at every stage.
//!
//! libssh2 is used without blocking throughout, on a small runtime of the
//! link's own, so that every stage can be given up and input, output and
//! deadlines are waited for together.

use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    time::Duration,
};

use secrecy::ExposeSecret;
use ssh2::{BlockDirections, Channel, ErrorCode, MethodType, Session};
use tokio::{
    io::Interest,
    net::TcpStream,
    runtime::Runtime,
    time::{Instant, sleep_until, timeout},
};

use super::{
    host_key::HostKey,
    key_file::PrivateKey,
    known_hosts::Pins,
    link::{Connector, Exit, Failure, Link, Output, Step, Streams},
    target::Target,
};
use crate::{Error, Result, config::HostPort};

const REACH: Duration = Duration::from_secs(10);
const KEY_EXCHANGE: Duration = Duration::from_secs(15);
const LOGIN: Duration = Duration::from_secs(20);
const OPEN: Duration = Duration::from_secs(10);
const CLOSE: Duration = Duration::from_secs(5);
/// How long an abandoned command may take to end: the guard gives its command
/// 5 s between TERM and KILL.
const ABANDONED: Duration = Duration::from_secs(8);
/// How long the peer may take to accept a packet that is half sent.
const STUCK: Duration = Duration::from_secs(30);
const KEEP_ALIVE_S: u32 = 15;
const BUFFER: usize = 32 * 1024;
/// The stream of standard error (RFC 4254, section 5.2).
const STDERR: i32 = 1;

/// What is asked for. The key's line in authorized_keys forces the guard in its
/// place; where it does not, the answer says so.
pub const NOT_FORCED: &str = "echo proxmox-mcp: this key is not bound to pve-guard";

/// «Would block», as libssh2 says it.
const EAGAIN: ErrorCode = ErrorCode::Session(-37);

/// Connects to one node by libssh2.
#[derive(Debug, Clone)]
pub struct Ssh2 {
    /// Where to, as whom, and what is trusted.
    pub target: Target,
}

impl Connector for Ssh2 {
    fn connect(&self) -> Result<Box<dyn Link>> {
        let key = PrivateKey::read(&self.target.key)?;
        let runtime = runtime()?;
        let wire = runtime.block_on(log_in(&self.target, &key))?;
        Ok(Box::new(SshLink { wire, runtime }))
    }
}

/// What a node shows to somebody who asks for its key the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The host key; nothing vouches for it yet.
    pub key: HostKey,
    /// The address that this machine comes from.
    pub local: SocketAddr,
}

/// Asks a server for its host key without logging in. Blocks.
///
/// # Errors
/// `ssh_failed` at `reach` or `key exchange`.
pub fn show_host_key(address: &HostPort) -> Result<Shown> {
    runtime()?.block_on(async {
        let stream = reach(address).await?;
        let local = stream.local_addr().map_err(|e| Step::Reach.failed(e.to_string()))?;
        let wire = Wire::handshake(stream, address, &HostKey::all_algorithms()).await?;
        Ok(Shown { key: wire.host_key()?, local })
    })
}

fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::internal(format!("no runtime for SSH: {e}")))
}

async fn reach(address: &HostPort) -> Result<TcpStream> {
    let hint = "check that the node is up, that PROXMOX_SSH_PORT and PROXMOX_SSH_NODES are \
                right, and that its firewall lets this machine through";
    let fault = |why: String| {
        let place = super::known_hosts::name_of(address);
        Step::Reach.failed(format!("no SSH connection to {place}: {why}")).hint(hint)
    };
    let connect = TcpStream::connect((address.host.as_str(), address.port));
    let stream = match timeout(REACH, connect).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(e)) => return Err(fault(e.to_string())),
        Err(_) => return Err(fault(format!("no answer within {} s", REACH.as_secs()))),
    };
    let keep_alive = socket2::TcpKeepalive::new().with_time(Duration::from_secs(15));
    let set = stream
        .set_nodelay(true)
        .and_then(|()| socket2::SockRef::from(&stream).set_tcp_keepalive(&keep_alive));
    set.map_err(|e| fault(e.to_string()))?;
    Ok(stream)
}

/// Goes the way up to an authenticated session.
async fn log_in(target: &Target, key: &PrivateKey) -> Result<Wire> {
    let pins = &target.pins;
    if pins.keys.is_empty() {
        return Err(not_pinned(target));
    }
    let stream = reach(&target.address).await?;
    let offered = HostKey::algorithms(&pins.keys);
    let wire = match Wire::handshake(stream, &target.address, &offered).await {
        Ok(wire) => wire,
        Err(error) => return Err(explain_key_exchange(target, error).await),
    };
    // Nothing of ours has been said yet: the key decides whether it will be.
    let shown = wire.host_key()?;
    if !pins.keys.contains(&shown) || pins.revoked.contains(&shown) {
        return Err(target.shows(&shown));
    }
    wire.authenticate(target, key).await?;
    Ok(wire)
}

/// A key exchange also fails when the node has no key of the pinned type, so
/// what it has is asked for; no login follows.
async fn explain_key_exchange(target: &Target, error: Error) -> Error {
    let again = async {
        let stream = reach(&target.address).await?;
        Wire::handshake(stream, &target.address, &HostKey::all_algorithms()).await?.host_key()
    };
    match again.await {
        Ok(shown) if !target.pins.keys.iter().any(|key| key.kind() == shown.kind()) => {
            target.shows(&shown)
        }
        _ => error,
    }
}

impl Target {
    fn shows(&self, shown: &HostKey) -> Error {
        wrong_host_key(&self.place(), &self.pins, &self.pinned_in, shown)
    }
}

fn not_pinned(target: &Target) -> Error {
    Step::HostKey
        .failed(format!("no host key is pinned for {}", target.place()))
        .hint("run `proxmox-mcp ssh-setup` (for a further node: with --node NAME --host ADDR)")
}

/// Refuses a host key that is not the pinned one, showing both.
#[must_use]
pub fn wrong_host_key(place: &str, pins: &Pins, pinned_in: &str, shown: &HostKey) -> Error {
    let Pins { keys, revoked } = pins;
    let list = |keys: &[HostKey]| {
        let each = keys.iter().map(|key| format!("{} {}", key.kind(), key.fingerprint()));
        each.collect::<Vec<_>>().join(", ")
    };
    let what = if revoked.contains(shown) { "a revoked host key" } else { "another host key" };
    let message = format!(
        "{place} shows {what}: pinned is {}, shown is {}; nothing was sent and nothing was written",
        list(keys),
        list(std::slice::from_ref(shown)),
    );
    Step::HostKey
        .failed(message)
        .hint(format!(
            "somebody may stand between, or the node was installed anew. On the node's own \
             console run `ssh-keygen -lf {}`; only if it prints the shown fingerprint, take the \
             old key out of {pinned_in} and run `proxmox-mcp ssh-setup` again",
            shown.usual_file(),
        ))
        .with("pinned", keys.iter().map(HostKey::fingerprint).collect::<Vec<_>>())
        .with("shown", shown.fingerprint())
}

/// A session and its socket.
struct Wire {
    session: Session,
    stream: TcpStream,
}

impl Drop for Wire {
    /// Cuts the connection first: freeing a channel or a session that still
    /// has one can wait for the peer.
    fn drop(&mut self) {
        let _ = socket2::SockRef::from(&self.stream).shutdown(std::net::Shutdown::Both);
    }
}

impl Wire {
    /// Exchanges keys, offering only the given host key algorithms.
    async fn handshake(stream: TcpStream, address: &HostPort, offered: &str) -> Result<Self> {
        let fault = |why: &dyn std::fmt::Display| {
            let place = super::known_hosts::name_of(address);
            Step::KeyExchange
                .failed(format!("no SSH key exchange with {place}: {why}"))
                .hint("check that the port is sshd's, and look into the node's journal of ssh")
        };
        let socket = socket2::SockRef::from(&stream).try_clone().map_err(|e| fault(&e))?;
        let session = Session::new().map_err(|e| fault(&e))?;
        let mut wire = Self { session, stream };
        wire.session.set_tcp_stream(socket);
        wire.session.set_blocking(false);
        wire.session.method_pref(MethodType::HostKey, offered).map_err(|e| fault(&e))?;
        let mut session = wire.session.clone();
        wire.within(KEY_EXCHANGE, || session.handshake()).await.map_err(|e| fault(&e))?;
        Ok(wire)
    }

    fn host_key(&self) -> Result<HostKey> {
        let (blob, _) = self
            .session
            .host_key()
            .ok_or_else(|| Step::HostKey.failed("the node showed no host key"))?;
        HostKey::from_blob(blob).map_err(|e| Step::HostKey.failed(e.message))
    }

    async fn authenticate(&self, target: &Target, key: &PrivateKey) -> Result<()> {
        let pem = key.pem.expose_secret();
        let attempt = || self.session.userauth_pubkey_memory(&target.user, None, pem, None);
        let Err(error) = self.within(LOGIN, attempt).await else {
            self.session.set_keepalive(false, KEEP_ALIVE_S);
            return Ok(());
        };
        let local = self.stream.local_addr().map(|a| a.ip().to_string()).unwrap_or_default();
        let message = format!(
            "{} does not let {} in with the key {}: {error}",
            target.place(),
            target.user,
            target.key.display(),
        );
        Err(Step::Login.failed(message).hint(format!(
            "run what `proxmox-mcp ssh-account` prints on the node; its from= must name the \
             address that the node sees this machine come from (here it is {local})"
        )))
    }

    /// Repeats a call of libssh2 until it is through, for at most `limit`.
    async fn within<T>(
        &self,
        limit: Duration,
        mut call: impl FnMut() -> Result<T, ssh2::Error>,
    ) -> Result<T, Fault> {
        let repeat = async {
            loop {
                match call() {
                    Err(e) if e.code() == EAGAIN => self.blocked().await?,
                    other => return other.map_err(Fault::Ssh),
                }
            }
        };
        timeout(limit, repeat).await.unwrap_or(Err(Fault::Late(limit)))
    }

    /// Tries a call once; `None` when it has to wait for the peer. A packet
    /// that is half on its way is finished first, since libssh2 takes no other
    /// call meanwhile.
    async fn attempt<T>(
        &self,
        mut call: impl FnMut() -> io::Result<T>,
    ) -> Result<Option<T>, Fault> {
        loop {
            match call() {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let directions = self.session.block_directions();
                    self.used_up(&directions);
                    if !matches!(directions, BlockDirections::Outbound | BlockDirections::Both) {
                        return Ok(None);
                    }
                    let ready = timeout(STUCK, self.stream.ready(Interest::WRITABLE)).await;
                    ready.map_err(|_| Fault::Late(STUCK))?.map_err(Fault::Io)?;
                }
                other => return other.map(Some).map_err(Fault::Io),
            }
        }
    }

    /// Waits until the socket allows what libssh2 last waited for.
    async fn blocked(&self) -> Result<(), Fault> {
        let directions = self.session.block_directions();
        self.used_up(&directions);
        let interest = match directions {
            BlockDirections::Outbound => Interest::WRITABLE,
            BlockDirections::Both => Interest::READABLE | Interest::WRITABLE,
            BlockDirections::Inbound | BlockDirections::None => Interest::READABLE,
        };
        self.stream.ready(interest).await.map(drop).map_err(Fault::Io)
    }

    /// libssh2 has met the end of what the socket had: forgets the readiness
    /// that was seen before, so that only a new one wakes us.
    fn used_up(&self, directions: &BlockDirections) {
        let forget = |interest| {
            let _ = self.stream.try_io(interest, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
        };
        if matches!(directions, BlockDirections::Inbound | BlockDirections::Both) {
            forget(Interest::READABLE);
        }
        if matches!(directions, BlockDirections::Outbound | BlockDirections::Both) {
            forget(Interest::WRITABLE);
        }
    }

    /// Whether the peer has not closed the connection, as far as is known here.
    fn is_open(&self) -> bool {
        let socket = socket2::SockRef::from(&self.stream);
        match socket.peek(&mut [std::mem::MaybeUninit::uninit(); 1]) {
            Ok(count) => count > 0,
            Err(e) => e.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

/// Why a call of libssh2 did not go through.
#[derive(Debug)]
enum Fault {
    Ssh(ssh2::Error),
    Io(io::Error),
    Late(Duration),
    Withdrawn,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Ssh(e) => f.write_str(e.message()),
            Fault::Io(e) => e.fmt(f),
            Fault::Withdrawn => f.write_str("it was taken back before it was sent"),
            Fault::Late(limit) => write!(f, "no answer within {} s", limit.as_secs()),
        }
    }
}

struct SshLink {
    wire: Wire,
    runtime: Runtime,
}

impl Link for SshLink {
    fn exec(&mut self, streams: &mut Streams) -> Result<Exit, Failure> {
        self.runtime.block_on(exec(&self.wire, streams))
    }

    fn keep_alive(&mut self) -> bool {
        self.wire.is_open() && self.wire.session.keepalive_send().is_ok()
    }
}

async fn exec(wire: &Wire, streams: &mut Streams) -> Result<Exit, Failure> {
    let mut channel = open(wire).await.map_err(|error| Failure { error, sent: false })?;
    let end = Run { wire, channel: &mut channel }.pump(streams).await;
    let sent = streams.start.has_begun();
    let failure = |fault: Fault| {
        let error = Step::Guard.failed(format!("the connection was lost: {fault}"));
        Failure { error, sent }
    };
    end.map_err(failure)?;
    wire.within(CLOSE, || channel.close()).await.map_err(failure)?;
    wire.within(CLOSE, || channel.wait_close()).await.map_err(failure)?;
    // The signal must be read first: with one, the status is 0.
    let signal = channel.exit_signal().ok().and_then(|s| s.exit_signal);
    Ok(Exit { signal, status: channel.exit_status().unwrap_or_default() })
}

/// Opens a channel and starts the forced command on it.
async fn open(wire: &Wire) -> Result<Channel> {
    let fault = |why: &dyn std::fmt::Display| {
        Step::ForcedCommand
            .failed(format!("the node opens no channel for a command: {why}"))
            .hint("look into the node's journal of ssh; MaxSessions 0 would do this")
    };
    if !wire.is_open() {
        return Err(fault(&"the connection is closed"));
    }
    let opened = wire.within(OPEN, || wire.session.channel_session()).await;
    let mut channel = opened.map_err(|e| fault(&e))?;
    wire.within(OPEN, || channel.exec(NOT_FORCED)).await.map_err(|e| fault(&e))?;
    Ok(channel)
}

/// One running command.
struct Run<'a> {
    wire: &'a Wire,
    channel: &'a mut Channel,
}

impl Run<'_> {
    /// Carries input and output until the far side has said everything.
    async fn pump(&mut self, streams: &mut Streams) -> Result<(), Fault> {
        let mut deadline = Instant::now() + streams.limit;
        let mut late = streams.limit;
        let mut buffer = vec![0; BUFFER];
        let mut piece: Option<(Vec<u8>, usize)> = None;
        let mut input_open = true;
        let mut end_sent = false;
        let mut heard = true;
        loop {
            let mut moved = false;
            for id in [0, STDERR] {
                let mut stream = self.channel.stream(id);
                let read = self.wire.attempt(|| stream.read(&mut buffer)).await?;
                let bytes = read.and_then(|n| buffer.get(..n)).unwrap_or_default();
                if bytes.is_empty() {
                    continue;
                }
                moved = true;
                let output = if id == 0 { Output::Stdout } else { Output::Stderr };
                if heard {
                    let deliver = streams.output.send(output(bytes.to_vec()));
                    let until = timeout(deadline - Instant::now(), deliver).await;
                    // A closed channel shows below.
                    let _ = until.map_err(|_| Fault::Late(late))?;
                }
            }
            if let Some((bytes, at)) = &mut piece {
                let rest = bytes.get(*at..).unwrap_or_default();
                match self.wire.attempt(|| self.channel.write(rest)).await {
                    Ok(None) => {}
                    Ok(Some(count)) => {
                        moved = true;
                        *at += count;
                        if *at >= bytes.len() {
                            piece = None;
                        }
                    }
                    // The command ended without reading everything.
                    Err(_) if self.channel.eof() => piece = None,
                    Err(fault) => return Err(fault),
                }
            } else if !input_open && !end_sent {
                let sent = self.wire.attempt(|| self.channel.send_eof().map_err(Into::into));
                end_sent = sent.await?.is_some();
                moved |= end_sent;
            }
            if moved {
                if Instant::now() >= deadline {
                    return Err(Fault::Late(late));
                }
                continue;
            }
            if self.channel.eof() {
                return Ok(());
            }
            let wants_input = piece.is_none() && input_open;
            tokio::select! {
                ready = self.wire.blocked() => ready?,
                next = streams.input.recv(), if wants_input => match next {
                    Some(bytes) if streams.start.begin() => piece = Some((bytes, 0)),
                    Some(_) => return Err(Fault::Withdrawn),
                    None => input_open = false,
                },
                () = streams.output.closed(), if heard => {
                    heard = false;
                    input_open = false;
                    piece = None;
                    late = ABANDONED;
                    deadline = deadline.min(Instant::now() + ABANDONED);
                }
                () = sleep_until(deadline) => return Err(Fault::Late(late)),
                () = tokio::time::sleep(Duration::from_secs(u64::from(KEEP_ALIVE_S))) => {
                    self.wire.session.keepalive_send().map_err(Fault::Ssh)?;
                }
            }
        }
    }
}
