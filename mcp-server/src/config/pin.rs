//! Certificate fingerprints as Proxmox, browsers and openssl print them.

use super::{HostPort, Pin};
use crate::{Code, Error, Result};

impl Pin {
    /// Reads `AB:CD:…` or `abcd…` (32 bytes), also with a prefix such as
    /// `SHA256 Fingerprint=`, and `host=fingerprint` for one host alone.
    ///
    /// # Errors
    /// `config` for anything else, with a word about shorter hashes.
    pub fn parse(text: &str) -> Result<Self> {
        let (before, digits) = text.rsplit_once('=').unwrap_or(("", text));
        let digits = digits.trim();
        let lower = before.trim().to_ascii_lowercase();
        let host = match lower.as_str() {
            "" | "sha256 fingerprint" | "sha-256 fingerprint" | "sha256" => None,
            _ => Some(HostPort::parse(before.trim())?.host),
        };
        let digits =
            ["sha256:", "SHA256:"].iter().find_map(|p| digits.strip_prefix(p)).unwrap_or(digits);
        Ok(Self { host, sha256: bytes(digits)? })
    }

    /// The fingerprint as Proxmox prints it: upper-case pairs parted by colons.
    #[must_use]
    pub fn fingerprint(sha256: &[u8; 32]) -> String {
        let pairs: Vec<String> = sha256.iter().map(|b| format!("{b:02X}")).collect();
        pairs.join(":")
    }
}

impl std::fmt::Display for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(host) = &self.host {
            write!(f, "{host}=")?;
        }
        f.write_str(&Self::fingerprint(&self.sha256))
    }
}

fn bytes(text: &str) -> Result<[u8; 32]> {
    let bad = |why: &str| {
        Error::new(Code::Config, format!("{text:?} is not a SHA-256 fingerprint{why}"))
            .hint("`proxmox-mcp fingerprint` shows the node's")
    };
    let pairs: Vec<&str> = if text.contains(':') {
        text.split(':').collect()
    } else if text.is_ascii() {
        (0..text.len()).step_by(2).filter_map(|i| text.get(i..(i + 2).min(text.len()))).collect()
    } else {
        Vec::new()
    };
    let read: Option<Vec<u8>> = pairs
        .iter()
        .map(|p| {
            let digits = p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit());
            digits.then(|| u8::from_str_radix(p, 16).ok()).flatten()
        })
        .collect();
    match read {
        Some(bytes) if bytes.len() == 20 => Err(bad(", it is a SHA-1 one")),
        Some(bytes) => bytes
            .try_into()
            .map_err(|b: Vec<u8>| bad(&format!(": it has {} bytes and not 32", b.len()))),
        None => Err(bad("")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_spelling_is_one_fingerprint() {
        let colons = (0..32).map(|i| format!("{i:02X}")).collect::<Vec<_>>().join(":");
        let plain = colons.replace(':', "").to_lowercase();
        for (text, host) in [
            (colons.clone(), None),
            (colons.to_lowercase(), None),
            (plain.clone(), None),
            (format!("sha256 Fingerprint={colons}"), None),
            (format!("SHA256:{plain}"), None),
            (format!("pve1={colons}"), Some("pve1")),
            (format!("pve1:8006 = {plain}"), Some("pve1")),
            (format!("[2001:db8::1]:8006={colons}"), Some("2001:db8::1")),
            (format!("2001:db8::1={colons}"), Some("2001:db8::1")),
        ] {
            let pin = Pin::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(pin.host.as_deref(), host, "{text}");
            assert_eq!(pin.sha256.to_vec(), (0..32).collect::<Vec<u8>>(), "{text}");
        }
        let bound = Pin::parse(&format!("pve1={plain}")).unwrap();
        assert_eq!(bound.to_string(), format!("pve1={colons}"));
    }

    #[test]
    fn everything_else_is_refused() {
        let colons = vec!["AA"; 32].join(":");
        for (text, message) in [
            (vec!["AA"; 20].join(":"), "SHA-1"),
            (vec!["AA"; 31].join(":"), "31 bytes"),
            (vec!["AA"; 33].join(":"), "33 bytes"),
            (colons.replace("AA", "A"), "not a SHA-256"),
            (colons.replacen("AA", "+A", 1), "not a SHA-256"),
            ("x".repeat(64), "not a SHA-256"),
            ("ü".repeat(32), "not a SHA-256"),
            (String::new(), "not 32"),
            (format!("a/b={colons}"), "carries a path"),
        ] {
            let error = Pin::parse(&text).unwrap_err();
            assert_eq!(error.code, Code::Config);
            assert!(error.message.contains(message), "{text}: {error}");
        }
    }
}
