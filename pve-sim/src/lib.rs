//! A simulated Proxmox VE API: an HTTPS server on loopback that behaves like
//! pve-manager 9.2, with a made-up estate that is always alive.
//!
//! It is the estate behind `proxmox-mcp demo` and the test double of the
//! workspace. It speaks HTTP/1.1 over real TLS, checks tokens and privileges,
//! verifies parameters with the schema of the real API, runs tasks over time,
//! and answers 501 for whatever it does not have.
//!
//! ```no_run
//! # async fn f() -> std::io::Result<()> {
//! let sim = pve_sim::Sim::start(pve_sim::Options::default()).await?;
//! println!("{} {}", sim.url(), sim.fingerprint());
//! # Ok(()) }
//! ```

mod api;
mod clock;
mod estate;
mod fault;
mod handlers;
mod seen;
mod server;
mod sim;
pub mod state;
mod wire;

pub use clock::Clock;
pub use estate::Estate;
pub use fault::{Effect, Fault};
pub use seen::Seen;
pub use sim::{Options, Sim};
pub use state::State;
