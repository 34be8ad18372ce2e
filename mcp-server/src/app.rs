//! What every call shares: configuration, the client, what is masked.

use std::sync::{Arc, Mutex, PoisonError};

use secrecy::ExposeSecret;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{Error, Result, config::Config, insight::estate::Guest, pve::Client};

/// One running server, or one run of the command line.
pub struct App {
    /// The configuration, read once at the start.
    pub config: Config,
    /// The way to Proxmox.
    pub pve: Client,
    /// Fires when the server is about to end.
    pub closing: CancellationToken,
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
        Ok(Arc::new(Self {
            config,
            pve,
            closing: CancellationToken::new(),
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

/// Masks this server's own secrets wherever they occur inside other text.
#[derive(Debug)]
pub struct Redactor {
    secrets: Vec<secrecy::SecretString>,
}

impl Redactor {
    /// From the secrets of a configuration.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let secrets = config.token.iter().map(|t| t.secret.clone());
        let secrets = secrets.chain(config.http.token.clone());
        Self { secrets: secrets.filter(|s| s.expose_secret().len() >= 8).collect() }
    }

    /// Text without this server's secrets.
    #[must_use]
    pub fn text(&self, text: &str) -> Option<String> {
        let mut found = None::<String>;
        for secret in &self.secrets {
            let current = found.as_deref().unwrap_or(text);
            if current.contains(secret.expose_secret()) {
                found = Some(current.replace(secret.expose_secret(), "***"));
            }
        }
        found
    }

    /// Masks inside a value, in place.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(s) => {
                if let Some(masked) = self.text(s) {
                    *s = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|v| self.value(v)),
            Value::Object(map) => map.values_mut().for_each(|v| self.value(v)),
            _ => {}
        }
    }

    /// Masks inside an error, in place.
    pub fn error(&self, error: &mut Error) {
        for text in [&mut error.message, &mut error.hint] {
            if let Some(masked) = self.text(text) {
                *text = masked;
            }
        }
        for value in error.details.values_mut() {
            self.value(value);
        }
    }
}
