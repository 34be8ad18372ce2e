//! Who asks: for the journal alone, nothing is decided by it.

use std::fs;

use nix::unistd::getppid;

/// Most processes to go up in search of sudo: sudo itself and its monitor.
const GENERATIONS: usize = 3;

/// The account and address that a request came from, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// `SUDO_USER`, else `root`.
    pub(crate) account: String,
    /// First word of the `SSH_CONNECTION` that sudo was started with.
    pub(crate) address: String,
}

impl Caller {
    /// Reads the own environment and that of the sudo above.
    pub(crate) fn find() -> Self {
        let account = std::env::var("SUDO_USER").ok().filter(|name| is_plain(name));
        Self {
            account: account.unwrap_or_else(|| "root".into()),
            address: address().unwrap_or_else(|| "unknown".into()),
        }
    }
}

/// Whether sudo started this process.
pub(crate) fn by_sudo() -> bool {
    std::env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("SUDO_"))
}

/// sudo takes `SSH_CONNECTION` out of what it passes on, but has it itself.
fn address() -> Option<String> {
    let mut pid = getppid().as_raw();
    for _ in 0..GENERATIONS {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        if name.trim() != "sudo" {
            return None;
        }
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let connection = environment
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(b"SSH_CONNECTION="));
        if let Some(connection) = connection {
            let text = String::from_utf8_lossy(connection);
            return text.split(' ').next().filter(|word| is_plain(word)).map(str::to_owned);
        }
        pid = parent(pid)?;
    }
    None
}

fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.len() <= 256 && word.chars().all(|c| c.is_ascii_graphic())
}

/// Whether this process has all the rights it needs.
pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root() || cfg!(feature = "test-programs")
}

/// The id that owns the guard's files: root.
pub(crate) fn owner() -> u32 {
    if cfg!(feature = "test-programs") { nix::unistd::geteuid().as_raw() } else { 0 }
}
