//! Software-defined networks: zones, vnets, subnets. Changes wait until they
//! are applied to the whole cluster.

pub mod apply;
mod object;
pub mod status;
pub mod subnet;
pub mod vnet;
pub mod zone;

use crate::pve::Params;

const ROOT: [&str; 2] = ["cluster", "sdn"];

fn pending() -> Params {
    Params::new().with("pending", 1)
}
