//! `kernel-list`: the installed kernels and which of them will boot.

use crate::client::Client;
use crate::kernels;
use crate::protocol::{Kernels, Refused};

pub(super) fn run(client: &mut Client) -> Result<Kernels, Refused> {
    kernels::answer(kernels::pins(client)?)
}
