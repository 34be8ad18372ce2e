//! The running simulator and its handle.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::clock::{Clock, Time};
use crate::estate::Estate;
use crate::fault::Fault;
use crate::seen::Seen;
use crate::server::{self, Record, Shared, lock};
use crate::state::State;
use crate::wire::tls;

/// How a simulator is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// What it holds.
    pub estate: Estate,
    /// Where it listens; port 0 takes a free one.
    pub bind: SocketAddr,
    /// Its time.
    pub clock: Clock,
    /// How long a 401 is held back. The real server takes 3 s; the default here
    /// is none, so that tests do not wait.
    pub auth_delay: Duration,
    /// Guests whose agent is a real `qemu-ga`, by its socket.
    pub agent_sockets: Vec<(u32, PathBuf)>,
    /// How long tasks take, as a multiple of the built-in durations (fractions
    /// of a second to a few seconds). 0 ends every task at once.
    pub task_pace: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            estate: Estate::sample(),
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            clock: Clock::Real,
            auth_delay: Duration::ZERO,
            agent_sockets: Vec::new(),
            task_pace: 1.0,
        }
    }
}

/// A running server. Dropping it stops the server and its connections.
pub struct Sim {
    shared: Arc<Shared>,
    addr: SocketAddr,
    _stop: watch::Sender<()>,
}

impl Sim {
    /// Starts a server on the current Tokio runtime.
    ///
    /// # Errors
    /// When the address cannot be bound, no certificate could be made, or a guest
    /// that is to have an agent has none.
    pub async fn start(options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind(options.bind).await?;
        let addr = listener.local_addr()?;
        let identity = tls::make()?;
        let time = Time::new(options.clock);
        let mut state = options.estate.build(time.now_ms());
        state.tasks.pace = options.task_pace.max(0.0);
        for (vmid, socket) in options.agent_sockets {
            let agent = state.guests.get_mut(&vmid).and_then(|guest| guest.agent.as_mut());
            let none = || io::Error::other(format!("guest {vmid} has no agent"));
            agent.ok_or_else(none)?.socket = Some(socket);
        }
        state.set_certificate(&identity.fingerprint, &identity.leaf_pem, &identity.ca_pem);
        let shared = Arc::new(Shared {
            identity,
            time,
            state: state.into(),
            faults: Vec::new().into(),
            seen: Record::default().into(),
            auth_delay: options.auth_delay,
        });
        let (stop, stopped) = watch::channel(());
        tokio::spawn(server::run(listener, Arc::clone(&shared), stopped));
        Ok(Self { shared, addr, _stop: stop })
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its URL, e.g. `https://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("https://{}", self.addr)
    }

    /// SHA-256 of its certificate's DER: upper-case hex with colons, as Proxmox VE shows it.
    pub fn fingerprint(&self) -> String {
        self.shared.identity.fingerprint.clone()
    }

    /// PEM of the CA that signed its certificate.
    pub fn ca_pem(&self) -> &str {
        &self.shared.identity.ca_pem
    }

    /// Token id and secret of one of the estate's identities: `admin` (everything,
    /// not root), `readonly` and `none`; in the recorded estate `root_full`,
    /// `admin`, `auditor` (also `readonly`), `vmop`, `none` and `sep`.
    pub fn token(&self, who: &str) -> Option<(String, String)> {
        lock(&self.shared.state).access.known_token(who)
    }

    /// The requests (at most the newest 10,000) since the start or the last
    /// [`Sim::clear_requests`], oldest first.
    pub fn requests(&self) -> Vec<Seen> {
        lock(&self.shared.seen).all()
    }

    /// Forgets the requests seen so far.
    pub fn clear_requests(&self) {
        lock(&self.shared.seen).clear();
    }

    /// Adds a fault; of several that match, the one added first is taken.
    pub fn inject(&self, fault: Fault) {
        lock(&self.shared.faults).push(fault);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        lock(&self.shared.faults).clear();
    }

    /// Moves the estate's time on; tasks that end meanwhile end.
    pub fn advance(&self, by: Duration) {
        self.shared.time.advance(by);
        self.with_state(|_| ());
    }

    /// The estate's time, milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        self.shared.time.now_ms()
    }

    /// Runs a closure on the estate, to look at it or to edit it. Tasks that
    /// are due are ended first.
    pub fn with_state<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        let mut state = lock(&self.shared.state);
        state.settle(self.shared.time.now_ms());
        f(&mut state)
    }

    /// A handle that can be cloned into other tasks.
    pub fn handle(&self) -> Handle {
        Handle { shared: Arc::clone(&self.shared) }
    }
}

/// Looks at and edits the estate of a running [`Sim`] from anywhere.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    /// As [`Sim::with_state`].
    pub fn with_state<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        let mut state = lock(&self.shared.state);
        state.settle(self.shared.time.now_ms());
        f(&mut state)
    }

    /// As [`Sim::inject`].
    pub fn inject(&self, fault: Fault) {
        lock(&self.shared.faults).push(fault);
    }

    /// As [`Sim::requests`].
    pub fn requests(&self) -> Vec<Seen> {
        lock(&self.shared.seen).all()
    }
}
