//! What every call shares: configuration, the client, what is masked.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    Result,
    config::Config,
    insight::estate::Guest,
    pve::Client,
    safety::{Gate, redact::Redactor, undo::Undo},
};

/// One running server, or one run of the command line.
pub struct App {
    /// The configuration, read once at the start.
    pub config: Config,
    /// The way to Proxmox.
    pub pve: Client,
    /// Fires when the server is about to end.
    pub closing: CancellationToken,
    /// The gate that every change passes.
    pub gate: Gate,
    /// Former states, for `pve_undo`.
    pub undo: Undo,
    redactor: Redactor,
    guests: Mutex<Option<Parsed>>,
}

/// The guests of one answer of `cluster/resources`, so that it is read once.
type Parsed = (Arc<Value>, Arc<Vec<Guest>>);

impl App {
    /// Puts everything together; nothing is connected yet.
    ///
    /// # Errors
    /// `config` where the configuration lacks host or token.
    pub fn new(config: Config) -> Result<Arc<Self>> {
        let pve = Client::new(&config)?;
        let redactor = Redactor::new(&config);
        let gate = Gate::new(&config);
        let undo = Undo::new(&config.dirs.state);
        Ok(Arc::new(Self {
            config,
            pve,
            closing: CancellationToken::new(),
            gate,
            undo,
            redactor,
            guests: Mutex::new(None),
        }))
    }

    /// What masks secrets on the way out.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The guests in an answer of `cluster/resources`, parsed once per answer.
    pub fn guests_of(&self, resources: &Arc<Value>) -> Arc<Vec<Guest>> {
        let mut kept = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((answer, guests)) = kept.as_ref()
            && Arc::ptr_eq(answer, resources)
        {
            return guests.clone();
        }
        let guests = Arc::new(Guest::list(resources));
        *kept = Some((resources.clone(), guests.clone()));
        guests
    }
}
