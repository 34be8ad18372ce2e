//! The Proxmox VE API: paths, parameters, the HTTP client, tasks, errors.

mod cache;
pub mod client;
pub mod config_line;
pub mod error;
mod estate;
pub mod guest;
mod hosts;
pub mod id;
pub mod loose;
pub mod params;
pub mod path;
mod read;
pub mod schema;
mod schema_text;
mod send;
pub mod task;
mod times;
pub mod tls;
mod transport;
pub mod upload;
mod wait;
pub mod x509;

pub use client::{Answer, Client};
pub use guest::{GuestConfig, GuestKind, GuestRef};
pub use id::{NodeName, Vmid};
pub use params::{ParamValue, Params};
pub use path::ApiPath;
pub use schema::Schema;
pub use task::{TaskStatus, Upid};
pub use upload::Upload;

#[cfg(test)]
mod read_tests;
#[cfg(test)]
mod send_tests;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tls_tests;
#[cfg(test)]
mod wait_tests;
