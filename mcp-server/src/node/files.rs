//! Files of the configuration directory: who may read and write them.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::Path,
};

use secrecy::SecretString;

use crate::{Code, Error, Result};

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

/// Checks that nobody but the owner can change what is trusted.
///
/// # Errors
/// `config` when group or others may write.
#[cfg(unix)]
pub fn only_owner_writes(path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    match fs::metadata(path) {
        Ok(found) if found.mode() & 0o022 != 0 => Err(Error::new(
            Code::Config,
            format!("{} can be changed by others than its owner", path.display()),
        )
        .hint(format!("chmod go-w {}", path.display()))),
        _ => Ok(()),
    }
}

/// Checks that nobody but the owner can change what is trusted.
///
/// # Errors
/// None on this system.
#[cfg(not(unix))]
pub fn only_owner_writes(_path: &Path) -> Result<()> {
    Ok(())
}

/// Writes a file that its owner alone can read, whole or not at all.
///
/// # Errors
/// `config` with the system's reason.
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    let fault = |e: std::io::Error| {
        Error::new(Code::Config, format!("{} cannot be written: {e}", path.display()))
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder).map_err(fault)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = folder.join(name);
    // A leftover of a run that was cut would keep its mode.
    match fs::remove_file(&fresh) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(fault(e)),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&fresh).map_err(fault)?;
    file.write_all(text.as_bytes()).map_err(fault)?;
    file.sync_all().map_err(fault)?;
    fs::rename(&fresh, path).map_err(fault)
}

fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(all(test, unix))]
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
        read(&plain, 0o600).unwrap();
        read(&plain, 0o400).unwrap();
        let legacy = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAA==\n";
        let cases = [
            (&plain, 0o640, "has mode 0640"),
            (&plain, 0o604, "has mode 0604"),
            (&plain, 0o620, "has mode 0620"),
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
    fn a_written_file_is_private_and_replaces_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ssh/known_hosts");
        write_private(&path, "one\n").unwrap();
        write_private(&path, "two\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(only_owner_writes(&path).is_err());
    }
}
