//! This node: where its files are, its name, its kernel.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

/// The programs of the node that the guard runs. There are no others.
pub(crate) mod program {
    pub(crate) const PCT: &str = "/usr/sbin/pct";
    pub(crate) const APT_GET: &str = "/usr/bin/apt-get";
    pub(crate) const SYSTEMD_RUN: &str = "/usr/bin/systemd-run";
    pub(crate) const SYSTEMCTL: &str = "/usr/bin/systemctl";
    pub(crate) const JOURNALCTL: &str = "/usr/bin/journalctl";
    pub(crate) const BOOT_TOOL: &str = "/usr/sbin/proxmox-boot-tool";
    /// The guard itself, for the unit of an upgrade.
    pub(crate) const GUARD: &str = "/usr/sbin/pve-guard";
}

/// Lock files; gone after a restart of the node.
pub(crate) const RUN_DIR: &str = "/run/pve-guard";
/// What has to survive a restart: the result of an upgrade.
pub(crate) const STATE_DIR: &str = "/var/lib/pve-guard";
/// The guard's own record of requests.
pub(crate) const LOG_DIR: &str = "/var/log/pve-guard";

/// `PATH` of everything that the guard runs.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where this absolute path really is.
#[cfg(not(feature = "test-programs"))]
pub(crate) fn at(path: &str) -> PathBuf {
    PathBuf::from(path)
}

/// Where this absolute path really is: below the test's folder, if it names one.
#[cfg(feature = "test-programs")]
pub(crate) fn at(path: &str) -> PathBuf {
    match std::env::var_os("PVE_GUARD_TEST_ROOT") {
        Some(root) => PathBuf::from(root).join(path.trim_start_matches('/')),
        None => PathBuf::from(path),
    }
}

/// The node's name as Proxmox has it: the host name up to its first dot.
pub(crate) fn name() -> io::Result<String> {
    let host = first_line("/proc/sys/kernel/hostname")?;
    Ok(host.split('.').next().unwrap_or_default().to_owned())
}

/// Release of the running kernel.
pub(crate) fn kernel() -> io::Result<String> {
    first_line("/proc/sys/kernel/osrelease")
}

/// An id that is new for every boot.
pub(crate) fn boot_id() -> io::Result<String> {
    first_line("/proc/sys/kernel/random/boot_id")
}

/// A random word that nobody else knows.
pub(crate) fn random_word() -> io::Result<String> {
    // Of the real kernel also in tests: two runs must never share one.
    Ok(fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}

fn first_line(path: &str) -> io::Result<String> {
    Ok(fs::read_to_string(at(path))?.lines().next().unwrap_or_default().trim().to_owned())
}

/// Makes a directory that only root can enter, if there is none.
pub(crate) fn private_dir(path: &str) -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let dir = at(path);
    match fs::DirBuilder::new().mode(0o700).create(&dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(dir),
    }
}

/// Lower-case hexadecimal SHA-256.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// That of everything that can be read; never more than a piece in memory.
pub(crate) fn sha256_of(mut reader: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        match reader.read(&mut piece)? {
            0 => return Ok(hex(&digest.finalize())),
            length => digest.update(piece.get(..length).unwrap_or_default()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
