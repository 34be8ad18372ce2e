//! What every call shares: configuration, the client, what is masked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    Code, Error, Result,
    config::{Config, Mode},
    insight::estate::Guest,
    node::Guard,
    pve::Client,
    safety::{Gate, Trail, redact::Redactor, undo::Undo},
};

/// One running server, or one run of the command line.
pub struct App {
    /// The configuration, read once at the start.
    pub config: Config,
    /// The way to Proxmox.
    pub pve: Client,
    /// The way to the guards of the nodes.
    pub guard: Guard,
    /// Fires when the server is about to end.
    pub closing: CancellationToken,
    /// The gate that every change passes.
    pub gate: Gate,
    /// Former states, for `pve_undo`.
    pub undo: Undo,
    /// Changes that are on their way now, by the number of their record.
    in_flight: Mutex<BTreeMap<u64, Trail>>,
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
            guard: Guard::new(&config),
            config,
            pve,
            closing: CancellationToken::new(),
            gate,
            undo,
            redactor,
            in_flight: Mutex::default(),
            guests: Mutex::new(None),
        }))
    }

    /// Records the start of a server that may change things, with the flags that are on.
    pub fn started(&self) {
        if self.config.mode != Mode::Write {
            return;
        }
        if let Err(error) = self.gate.started() {
            tracing::warn!(%error, "the start was not recorded; changes will be refused");
        }
    }

    /// A warning where `critical.env` is not what it was at the start, which still holds.
    #[must_use]
    pub fn flags_changed(&self) -> Option<String> {
        let file = &self.config.critical_file;
        let now = std::fs::read(file).ok().map(|text| crate::safety::files::sha256_of(&text));
        (now != self.config.critical_sha256).then(|| {
            format!(
                "{} has changed since the start: what was read then holds until the server starts anew",
                file.display()
            )
        })
    }

    /// A change is on its way.
    pub fn sending(&self, trail: &Trail) {
        self.flying().insert(trail.id, trail.clone());
    }

    /// What became of a change that was on its way is recorded.
    ///
    /// # Errors
    /// `audit_unavailable`: the change was made all the same.
    pub fn sent(&self, trail: &Trail, result: &Result<Value>) -> Result<()> {
        self.flying().remove(&trail.id);
        self.gate.sent(trail, result)
    }

    /// Records what was still on its way when the server ended: it may have arrived.
    pub fn abandon(&self) {
        for trail in std::mem::take(&mut *self.flying()).into_values() {
            let ended = Error::new(Code::OutcomeUnknown, "the server ended before the answer came");
            if let Err(error) = self.gate.sent(&trail, &Err(ended)) {
                tracing::warn!(%error, "an unanswered change was not recorded");
            }
        }
    }

    fn flying(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Trail>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
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
