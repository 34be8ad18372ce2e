//! proxmox-mcp: lets an AI assistant operate Proxmox VE, safely.
//!
//! The way of a call is one line: `mcp` (protocol) -> `tools` (arguments to an
//! operation) -> `safety` (operation to permit or refusal) -> `pve` (permit to
//! HTTP) -> `render` (answer). `ARCHITECTURE.md` is the map.

pub mod app;
pub mod cli;
pub mod config;
pub mod error;
pub mod insight;
pub mod mcp;
pub mod node;
pub mod pve;
pub mod render;
pub mod safety;
pub mod tools;

pub use error::{Code, Error, Result};
