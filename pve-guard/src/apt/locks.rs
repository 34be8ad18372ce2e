//! The locks of apt and dpkg: waited for, never broken.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::lock::{self, Holder};
use crate::node;
use crate::protocol::{Code, Refused};

const FILES: [&str; 4] = [
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
];
const GLANCE: Duration = Duration::from_millis(250);

/// Waits until no other package manager runs. `watch` is called while it
/// waits, the first time with who holds what; it says whether to go on.
///
/// # Errors
/// `busy`, with process number and name of the holder, when it takes longer
/// than `wait_s` seconds or is not to go on.
pub(crate) fn wait_until_free(
    wait_s: u64,
    watch: &mut dyn FnMut(Option<&str>) -> bool,
) -> Result<(), Refused> {
    let deadline = Instant::now() + Duration::from_secs(wait_s);
    let mut told = false;
    loop {
        let holder = holder()
            .map_err(|error| Refused::new(Code::Internal, format!("locks of dpkg: {error}")))?;
        let Some((file, holder)) = holder else { return Ok(()) };
        let who = format!("{file} is held by process {} ({})", holder.pid, holder.name);
        let go_on = watch((!told).then_some(who.as_str()));
        told = true;
        if !go_on || Instant::now() >= deadline {
            return Err(Refused::new(Code::Busy, format!("{who}; waited for up to {wait_s} s"))
                .hint("it is left alone; try again when it has ended"));
        }
        sleep(GLANCE);
    }
}

fn holder() -> io::Result<Option<(&'static str, Holder)>> {
    for file in FILES {
        if let Some(holder) = lock::record_holder(&node::at(file))? {
            return Ok(Some((file, holder)));
        }
    }
    Ok(None)
}
