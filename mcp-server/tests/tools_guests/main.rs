//! Tools of the group guests against the simulated cluster.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../world/mod.rs"]
mod world;

mod disks;
mod making;
mod options;
mod place;
mod refused;
mod sent;

/// A public key with characters that need care on their way.
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+a/b= eva@home";
