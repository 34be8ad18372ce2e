//! The Proxmox VE API: paths, parameters, the HTTP client, tasks, errors.

pub mod client;
pub mod id;
pub mod loose;
pub mod params;
pub mod path;
pub mod task;

pub use client::Client;
pub use id::{NodeName, Vmid};
pub use params::{ParamValue, Params};
pub use path::ApiPath;
pub use task::Upid;
