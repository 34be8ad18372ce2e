//! The way to pve-guard on a node: SSH, the protocol, and the onboarding.

pub mod account;
mod answer;
mod files;
pub mod guard;
mod host_key;
mod key_file;
mod known_hosts;
mod link;
mod pool;
mod ssh;
mod target;

pub use guard::{Event, Guard, GuardPermit, Io};
pub use host_key::HostKey;
pub use link::{Connector, Exit, Failure, Link, Output, Step, Streams};
pub use pool::{Exec, MAX_LINKS, Pool};
