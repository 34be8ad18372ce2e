//! pve-guard: the root helper on a Proxmox VE node.
//!
//! A fixed set of verbs and nothing else. One request comes as a JSON line on
//! standard input, the answer goes as JSON lines to standard output. The
//! [`protocol`] module is all that the client side needs, and builds anywhere;
//! the rest is the guard itself, and Linux alone.

pub mod protocol;

#[cfg(target_os = "linux")]
mod apt;
#[cfg(target_os = "linux")]
mod caller;
#[cfg(target_os = "linux")]
mod cli;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod container;
#[cfg(target_os = "linux")]
mod debian;
#[cfg(target_os = "linux")]
mod journal;
#[cfg(target_os = "linux")]
mod kernels;
#[cfg(target_os = "linux")]
mod lock;
#[cfg(target_os = "linux")]
mod node;
#[cfg(target_os = "linux")]
mod policy;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod verbs;

#[cfg(target_os = "linux")]
pub use cli::run;
