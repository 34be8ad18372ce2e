//! `kernel-unpin`: let the newest kernel boot again.

use crate::client::Client;
use crate::kernels::{self, Pins};
use crate::lock;
use crate::protocol::{Kernels, Refused};

pub(super) fn run(next_boot: bool, client: &mut Client) -> Result<Kernels, Refused> {
    let _held = super::only_one(lock::NODE_CHANGE)?;
    let before = kernels::pins(client)?;
    let wanted =
        if next_boot { Pins { next_boot: None, ..before.clone() } } else { Pins::default() };
    let args: &[&str] =
        if next_boot { &["kernel", "unpin", "--next-boot"] } else { &["kernel", "unpin"] };
    kernels::change_pins(args, &wanted, &before, client)
}
