//! `kernel-pin`: choose the kernel that boots, from now on or once.

use crate::client::Client;
use crate::kernels;
use crate::lock;
use crate::protocol::{Code, Kernels, Refused};

pub(super) fn run(version: &str, next_boot: bool, client: &mut Client) -> Result<Kernels, Refused> {
    let installed = kernels::installed()
        .map_err(|error| Refused::new(Code::Internal, format!("/boot: {error}")))?;
    if !installed.iter().any(|release| release == version) {
        return Err(Refused::new(Code::NotFound, format!("kernel {version:?} is not installed"))
            .hint(format!("installed: {}", installed.join(", "))));
    }
    let _held = super::only_one(lock::NODE_CHANGE)?;
    let before = kernels::pins(client)?;
    let mut wanted = before.clone();
    let mut args = vec!["kernel", "pin", version];
    if next_boot {
        wanted.next_boot = Some(version.to_owned());
        args.push("--next-boot");
    } else {
        wanted.pinned = Some(version.to_owned());
    }
    kernels::change_pins(&args, &wanted, &before, client)
}
