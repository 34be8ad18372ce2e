//! Host keys: parsed, compared byte for byte, shown by fingerprint.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// Types of host keys that can be pinned, the best first, each with the
/// signature algorithms to offer for it.
const TYPES: &[(&str, &str)] = &[
    ("ssh-ed25519", "ssh-ed25519"),
    ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256"),
    ("ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384"),
    ("ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521"),
    ("ssh-rsa", "rsa-sha2-512,rsa-sha2-256"),
];

/// A node's public host key: type and exact bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostKey {
    kind: &'static str,
    blob: Vec<u8>,
}

impl HostKey {
    /// Reads `type base64`, as in a `.pub` file; a comment may follow.
    ///
    /// # Errors
    /// `invalid_argument` when the type is not one that can be pinned, or the
    /// key is not of the type that it claims.
    pub fn parse(text: &str) -> Result<Self> {
        let mut words = text.split_ascii_whitespace();
        let (Some(kind), Some(encoded)) = (words.next(), words.next()) else {
            return Err(Error::argument("a host key is written as its type and base64")
                .hint("for example: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI…"));
        };
        let blob = STANDARD
            .decode(encoded)
            .map_err(|_| Error::argument("the host key is not valid base64"))?;
        let key = Self::from_blob(&blob)?;
        if key.kind != kind {
            return Err(Error::argument(format!(
                "the host key says {kind} but its bytes are of type {}",
                key.kind
            )));
        }
        Ok(key)
    }

    /// Reads the bytes as they go over the wire (RFC 4253, section 6.6).
    ///
    /// # Errors
    /// `invalid_argument` when the bytes do not begin with a known type.
    pub fn from_blob(blob: &[u8]) -> Result<Self> {
        let name = blob
            .split_first_chunk::<4>()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_be_bytes(*length) as usize))
            .filter(|(_, rest)| !rest.is_empty())
            .map(|(name, _)| name)
            .ok_or_else(|| Error::argument("the host key is cut short"))?;
        let kind = TYPES.iter().find(|(kind, _)| kind.as_bytes() == name).map(|(kind, _)| *kind);
        kind.map(|kind| Self { kind, blob: blob.to_vec() }).ok_or_else(|| {
            let known: Vec<_> = TYPES.iter().map(|(kind, _)| *kind).collect();
            Error::argument(format!("host keys of type {:?} cannot be pinned", lossy(name)))
                .hint(format!("pin one of: {}", known.join(", ")))
        })
    }

    /// The type, for example `ssh-ed25519`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.kind
    }

    /// The exact bytes.
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// `SHA256:` and base64 without padding, as `ssh-keygen -l` prints it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(&self.blob)))
    }

    /// The file on a Debian node that holds this key's public half.
    #[must_use]
    pub fn usual_file(&self) -> &'static str {
        match self.kind {
            "ssh-ed25519" => "/etc/ssh/ssh_host_ed25519_key.pub",
            "ssh-rsa" => "/etc/ssh/ssh_host_rsa_key.pub",
            _ => "/etc/ssh/ssh_host_ecdsa_key.pub",
        }
    }

    /// What to offer to a server so that it can only answer with one of `keys`.
    #[must_use]
    pub fn algorithms<'a>(keys: impl IntoIterator<Item = &'a HostKey>) -> String {
        let kinds: Vec<_> = keys.into_iter().map(HostKey::kind).collect();
        Self::join(|kind| kinds.contains(&kind))
    }

    /// What to offer to a server that is asked for its key the first time.
    #[must_use]
    pub fn all_algorithms() -> String {
        Self::join(|_| true)
    }

    fn join(wanted: impl Fn(&str) -> bool) -> String {
        let chosen: Vec<_> = TYPES.iter().filter(|(kind, _)| wanted(kind)).collect();
        chosen.iter().map(|(_, names)| *names).collect::<Vec<_>>().join(",")
    }
}

impl std::fmt::Display for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, STANDARD.encode(&self.blob))
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..64).unwrap_or(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED: &str = "ssh-ed25519 \
        AAAAC3NzaC1lZDI1NTE5AAAAIKKaf1FbaEtrwOUqhbZd8iTXpvZTnBLsW3c64OoGIGUX";

    #[test]
    fn a_key_is_read_and_written_the_same() {
        let key = HostKey::parse(&format!("{ED} root@pve1")).unwrap();
        assert_eq!(key.to_string(), ED);
        assert_eq!(HostKey::from_blob(key.blob()).unwrap(), key);
        // What `ssh-keygen -l` prints for this key.
        assert_eq!(key.fingerprint(), "SHA256:gfVQ2AKqqClGJG1o6lUxcbpdyJjegKwSWLbFE5i7xJg");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let rsa_name = ED.replacen("ssh-ed25519", "ssh-rsa", 1);
        let cases = [
            "",
            "ssh-ed25519",
            "ssh-ed25519 !!!",
            "ssh-ed25519 AAAA",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
            "ssh-dss AAAAB3NzaC1kc3MAAAAB",
            "SHA256:gfVQ2AKqqClGJG1o6lUxcbpdyJjegKwSWLbFE5i7xJg",
            &rsa_name,
        ];
        for text in cases {
            assert!(HostKey::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_the_pinned_types_are_offered() {
        let key = HostKey::parse(ED).unwrap();
        assert_eq!(HostKey::algorithms([&key]), "ssh-ed25519");
        assert!(HostKey::all_algorithms().starts_with("ssh-ed25519,ecdsa-sha2-nistp256,"));
        assert!(!HostKey::all_algorithms().split(',').any(|name| name == "ssh-rsa"));
    }
}
