//! The way to pve-guard on a node: SSH, the protocol, and the onboarding.

pub mod account;
mod answer;
mod check;
mod files;
pub mod guard;
mod host_key;
mod key_file;
mod known_hosts;
mod link;
pub mod onboarding;
pub mod package;
mod pool;
mod ssh;
mod target;

pub use check::{CheckStep, check};
pub use guard::{Event, Guard, GuardPermit, Io, OnEvent};
pub use host_key::HostKey;
pub use link::{Connector, Exit, Failure, Link, Output, Start, Step, Streams};
pub use pool::{Exec, MAX_LINKS, Pool};
