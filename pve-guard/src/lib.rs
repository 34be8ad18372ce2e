//! pve-guard: the root helper on a Proxmox VE node.
//!
//! A fixed set of verbs and nothing else. One request comes as a JSON line on
//! standard input, the answer goes as JSON lines to standard output. The
//! [`protocol`] module is all that the client side needs, and builds anywhere.

pub mod protocol;
