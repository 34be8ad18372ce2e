//! What the end-to-end tests share: the built binaries, a small MCP client that
//! sees every byte, and a simulated estate with a configuration that points at it.

#![allow(clippy::should_implement_trait)]

mod arguments;
mod binaries;
#[cfg(target_os = "linux")]
pub mod desk;
mod estate;
#[cfg(target_os = "linux")]
pub mod guest;
#[cfg(target_os = "linux")]
pub mod node;
mod server;
#[cfg(target_os = "linux")]
pub mod world;

pub use arguments::{call_least, least, listed, name, plausible};
pub use binaries::{built, repository};
pub use estate::Estate;
pub use server::{LATEST, LEGACY, LIMIT, Server, initialize, new_era};

/// Waits until something holds.
///
/// # Panics
/// When it does not within [`LIMIT`].
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + LIMIT;
    while !holds() {
        assert!(std::time::Instant::now() < until, "not within {LIMIT:?}: {what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
