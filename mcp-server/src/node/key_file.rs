//! The private key: read after a look at who else can, made where there is none.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use secrecy::{ExposeSecret, SecretString};
use ssh_key::{LineEnding, private::Ed25519Keypair};

use super::files;
use crate::{Code, Error, Result};

/// What stands behind the key in `authorized_keys`.
const COMMENT: &str = "proxmox-mcp";

/// A private key as it stands in its file, usable as it is.
#[derive(Debug)]
pub struct PrivateKey {
    /// The text of the file.
    pub pem: SecretString,
}

impl PrivateKey {
    /// Reads a private key, after a look at who else can read it.
    ///
    /// # Errors
    /// `config` when the file is missing, readable by others than its owner,
    /// no private key, or protected by a passphrase.
    pub fn read(path: &Path) -> Result<Self> {
        let fault = |e: std::io::Error| {
            Error::new(Code::Config, format!("the SSH key {} cannot be read: {e}", path.display()))
                .hint("run `proxmox-mcp ssh-setup`, or set PROXMOX_SSH_KEY")
        };
        let mut file = File::open(path).map_err(fault)?;
        private(path, &file.metadata().map_err(fault)?)?;
        let mut pem = String::new();
        file.read_to_string(&mut pem).map_err(fault)?;
        usable(path, &pem)?;
        Ok(Self { pem: pem.into() })
    }

    /// The public half, as a line of `authorized_keys` without options. Types
    /// that cannot be derived here are read from the `.pub` file beside it.
    ///
    /// # Errors
    /// `config` when there is neither.
    pub fn public(&self, path: &Path) -> Result<String> {
        if let Ok(key) = ssh_key::PrivateKey::from_openssh(self.pem.expose_secret()) {
            return openssh(key.public_key().clone());
        }
        let beside = format!("{}.pub", path.display());
        let text = fs::read_to_string(&beside).map_err(|e| {
            Error::new(Code::Config, format!("{beside} cannot be read: {e}"))
                .hint(format!("make it: ssh-keygen -y -f {} > {beside}", path.display()))
        })?;
        let words: Vec<_> = text.split_ascii_whitespace().take(2).collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || "+/=-@.".contains(c);
        if words.len() == 2 && words.iter().all(|word| word.chars().all(plain)) {
            return Ok(format!("{} {COMMENT}", words.join(" ")));
        }
        Err(Error::new(Code::Config, format!("{beside} is not a public key")))
    }
}

/// Makes a key where there is none; `true` when it was made.
///
/// # Errors
/// `config` when the file cannot be written, or the one there is cannot be used.
pub fn make(path: &Path) -> Result<bool> {
    if fs::symlink_metadata(path).is_ok() {
        return PrivateKey::read(path).map(|_| false);
    }
    let (private, public) = generate()?;
    files::write_private(path, private.expose_secret())?;
    files::write_private(Path::new(&format!("{}.pub", path.display())), &format!("{public}\n"))?;
    Ok(true)
}

/// A fresh ed25519 key: the text of its file, and its public half.
fn generate() -> Result<(SecretString, String)> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|e| Error::internal(format!("no random bytes: {e}")))?;
    let pair = Ed25519Keypair::from_seed(&seed);
    let fault = |e: ssh_key::Error| Error::internal(format!("the key cannot be written: {e}"));
    let mut key = ssh_key::PrivateKey::from(pair);
    key.set_comment(COMMENT);
    let text = key.to_openssh(LineEnding::LF).map_err(fault)?;
    Ok((text.as_str().to_owned().into(), openssh(key.public_key().clone())?))
}

fn openssh(mut key: ssh_key::PublicKey) -> Result<String> {
    key.set_comment(COMMENT);
    key.to_openssh().map_err(|e| Error::internal(format!("the key cannot be written: {e}")))
}

/// libssh2 calls an encrypted key «unsupported format», so it is told apart here.
fn usable(path: &Path, pem: &str) -> Result<()> {
    let encrypted = pem.contains("BEGIN ENCRYPTED PRIVATE KEY")
        || pem.contains("Proc-Type: 4,ENCRYPTED")
        || ssh_key::PrivateKey::from_openssh(pem).is_ok_and(|key| key.is_encrypted());
    if encrypted {
        return Err(Error::new(
            Code::Config,
            format!("the SSH key {} is protected by a passphrase", path.display()),
        )
        .hint(
            "nobody is there to type it: use a key without one, made for this alone \
             (`proxmox-mcp ssh-setup` makes it)",
        ));
    }
    if !pem.contains("PRIVATE KEY-----") {
        let public = pem.starts_with("ssh-") || pem.starts_with("ecdsa-");
        let what = if public { "is a public key" } else { "is not a private key" };
        return Err(Error::new(Code::Config, format!("{} {what}", path.display()))
            .hint("PROXMOX_SSH_KEY names the private half"));
    }
    Ok(())
}

#[cfg(unix)]
fn private(path: &Path, metadata: &fs::Metadata) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    if metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    let mode = metadata.mode() & 0o777;
    Err(Error::new(
        Code::Config,
        format!("the SSH key {} has mode {mode:04o}: others can use it", path.display()),
    )
    .hint(format!("chmod 600 {}", path.display())))
}

#[cfg(not(unix))]
fn private(_path: &Path, _metadata: &fs::Metadata) -> Result<()> {
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const LOCKED: &str = include_str!("../../tests/data/locked_key");

    fn read(text: &str, mode: u32) -> Result<PrivateKey> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("id");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        PrivateKey::read(&path)
    }

    #[test]
    fn only_a_plain_key_that_nobody_else_can_read_is_taken() {
        let (plain, _) = generate().unwrap();
        read(plain.expose_secret(), 0o600).unwrap();
        read(plain.expose_secret(), 0o400).unwrap();
        let legacy = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAA==\n";
        let cases = [
            (plain.expose_secret(), 0o640, "has mode 0640"),
            (plain.expose_secret(), 0o604, "has mode 0604"),
            (plain.expose_secret(), 0o620, "has mode 0620"),
            (LOCKED, 0o600, "is protected by a passphrase"),
            (legacy, 0o600, "is protected by a passphrase"),
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----\n", 0o600, "passphrase"),
            ("ssh-ed25519 AAAA me@here\n", 0o600, "is a public key"),
            ("", 0o600, "is not a private key"),
        ];
        for (text, mode, wanted) in cases {
            let error = read(text, mode).unwrap_err();
            assert!(error.message.contains(wanted), "{error}");
            assert!(!error.hint.is_empty());
        }
        let error = PrivateKey::read(Path::new("/nonexistent/id")).unwrap_err();
        assert!(error.to_string().contains("ssh-setup"), "{error}");
    }

    #[test]
    fn a_key_is_made_once_and_its_public_half_is_the_same_from_both_sides() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ssh/id_ed25519");
        assert!(make(&path).unwrap());
        assert!(!make(&path).unwrap());
        let public = PrivateKey::read(&path).unwrap().public(&path).unwrap();
        assert!(public.starts_with("ssh-ed25519 AAAAC3") && public.ends_with(" proxmox-mcp"));
        let beside = fs::read_to_string(folder.path().join("ssh/id_ed25519.pub")).unwrap();
        assert_eq!(beside.trim_end(), public);
        let other = folder.path().join("ssh/other");
        make(&other).unwrap();
        assert_ne!(fs::read(&other).unwrap(), fs::read(&path).unwrap());
    }
}
