//! Small files that belong to the owner alone: the audit log, approvals, undo states.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Makes a directory, and those above it, for the owner alone.
///
/// # Errors
/// What the system says.
pub fn private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// How to open files that only the owner may read.
#[must_use]
pub fn private() -> OpenOptions {
    #[allow(unused_mut)]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes a new file that nobody else has written. False when it is there already.
///
/// # Errors
/// What the system says.
pub fn create_new(path: &Path, content: &[u8]) -> io::Result<bool> {
    match private().write(true).create_new(true).open(path) {
        Ok(mut file) => {
            file.write_all(content)?;
            file.sync_data()?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Replaces a file in one step.
///
/// # Errors
/// What the system says.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(name);
    let mut file = private().write(true).create(true).truncate(true).open(&new)?;
    file.write_all(content)?;
    file.sync_data()?;
    std::fs::rename(&new, path)
}

/// A file that is locked against every other process until it is dropped.
///
/// # Errors
/// What the system says.
pub fn locked(path: &Path) -> io::Result<File> {
    let file = private().read(true).write(true).create(true).truncate(false).open(path)?;
    file.lock()?;
    Ok(file)
}

/// Random bytes in hexadecimal.
///
/// # Errors
/// `internal` where the system has no source of randomness.
pub fn random_hex(bytes: usize) -> crate::Result<String> {
    let mut buffer = vec![0; bytes];
    getrandom::fill(&mut buffer)
        .map_err(|e| crate::Error::internal(format!("no source of randomness: {e}")))?;
    Ok(hex(&buffer))
}

/// Bytes in hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// SHA-256 of a text, in hexadecimal.
#[must_use]
pub fn sha256(text: &str) -> String {
    sha256_of(text.as_bytes())
}

/// SHA-256 of bytes, in hexadecimal.
#[must_use]
pub fn sha256_of(bytes: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};
    hex(&Sha256::digest(bytes))
}
