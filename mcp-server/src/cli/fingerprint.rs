//! `fingerprint`: what certificate the node shows, as a line for `.env`.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::{
    Global,
    out::{Exit, Ran},
    setup,
};
use crate::{
    Code, Error,
    config::{HostPort, Tls},
    pve::tls::{CertificateFacts, fetch_fingerprint},
};

/// Longest wait for a host.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Arguments of `fingerprint`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp fingerprint
  proxmox-mcp fingerprint pve1.example.com:8006")]
pub struct Fingerprint {
    /// The hosts; without one those of PROXMOX_HOST
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,
}

impl Fingerprint {
    /// Asks each host for its certificate; nothing else is sent, least of all the token.
    ///
    /// # Errors
    /// `config` without a host, and why a host could not be asked.
    pub fn run(&self, global: &Global) -> Ran {
        let loaded = setup::load(global.variables()?)?;
        let hosts = if self.hosts.is_empty() {
            loaded.config.hosts.clone()
        } else {
            self.hosts.iter().map(|h| HostPort::parse(h)).collect::<Result<_, _>>()?
        };
        if hosts.is_empty() {
            return Err(Error::new(Code::Config, "PROXMOX_HOST is not set")
                .hint("set it, or name the host: proxmox-mcp fingerprint pve1.example.com")
                .into());
        }
        let mut seen = Vec::new();
        for host in hosts {
            let facts = setup::block_on(fetch_fingerprint(&host, TIMEOUT))??;
            seen.push((host, facts));
        }
        let line = env_line(&seen);
        let differing =
            seen.iter().filter(|(host, facts)| differs(&loaded.config.tls, host, facts));
        let differing: Vec<String> = differing.map(|(host, _)| host.to_string()).collect();
        let out = global.out();
        if out.json {
            let hosts: Vec<Value> =
                seen.iter().map(|(h, f)| describe(&loaded.config.tls, h, f)).collect();
            out.value(&json!({"hosts": hosts, "env": line}))?;
        } else {
            out.text(&text(&seen, &line))?;
        }
        if differing.is_empty() {
            return Ok(Exit::Well);
        }
        Err(Error::new(
            Code::TlsPinMismatch,
            format!("{} shows another certificate than the pinned one", differing.join(", ")),
        )
        .hint("renewed? compare with the node's own before you change PROXMOX_TLS_FINGERPRINT")
        .into())
    }
}

/// One fingerprint for one host; several are bound to theirs.
fn env_line(seen: &[(HostPort, CertificateFacts)]) -> String {
    let value = match seen {
        [(_, facts)] => facts.sha256.clone(),
        several => {
            let bound: Vec<String> = several
                .iter()
                .map(|(host, facts)| format!("{}={}", host.host, facts.sha256))
                .collect();
            bound.join(",")
        }
    };
    format!("PROXMOX_TLS_FINGERPRINT={value}")
}

/// Whether something is pinned for a host, and not this.
fn differs(tls: &Tls, host: &HostPort, facts: &CertificateFacts) -> bool {
    pinned(tls, host, facts) == Some(false)
}

/// Whether this is pinned for a host; `None` where nothing is.
fn pinned(tls: &Tls, host: &HostPort, facts: &CertificateFacts) -> Option<bool> {
    let mut pins = tls
        .fingerprints
        .iter()
        .filter(|p| p.host.as_ref().is_none_or(|h| host.is_host(h)))
        .peekable();
    pins.peek()?;
    Some(pins.any(|pin| crate::config::Pin::fingerprint(&pin.sha256) == facts.sha256))
}

fn describe(tls: &Tls, host: &HostPort, seen: &CertificateFacts) -> Value {
    let facts = &seen.facts;
    json!({
        "host": host.to_string(),
        "sha256": seen.sha256,
        "subject": facts.subject,
        "issuer": facts.issuer,
        "not_before": facts.not_before.map(|t| t.to_string()),
        "not_after": facts.not_after.map(|t| t.to_string()),
        "pinned": pinned(tls, host, seen),
    })
}

fn text(seen: &[(HostPort, CertificateFacts)], line: &str) -> String {
    let mut text = String::new();
    for (host, seen) in seen {
        text.push_str(&format!("{host}\n  SHA-256  {}\n", seen.sha256));
        let facts = &seen.facts;
        let until = facts.not_after.map(|t| t.to_string());
        for (name, value) in
            [("subject ", &facts.subject), ("issuer  ", &facts.issuer), ("until   ", &until)]
        {
            if let Some(value) = value {
                text.push_str(&format!("  {name} {value}\n"));
            }
        }
    }
    text.push_str(
        "\nCompare it on the node, or the first one who answers is trusted:\n  openssl x509 -noout \
         -fingerprint -sha256 -in /etc/pve/local/pve-ssl.pem\n  (pveproxy-ssl.pem in its place, \
         where there is one)\n\nThen put this into .env:\n",
    );
    text.push_str(line);
    text
}
