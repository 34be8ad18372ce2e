//! How long a call may take, and when to try again.

use std::time::Duration;

use super::error::is_content;
use crate::safety::Method;

/// Listing a storage may take a node long.
const LISTING: Duration = Duration::from_secs(40);
/// A configuration write waits for locks and slow storage before it answers.
const CHANGE: Duration = Duration::from_secs(60);
/// A `PROXMOX_TIMEOUT` below this is meant for every call, however slow its kind.
const FORCED_BELOW: Duration = Duration::from_secs(5);

/// The time-out of one attempt of a read.
pub(crate) fn of_read(path: &str, configured: Duration) -> Duration {
    let slow = is_content(path) || path.contains("/disks/") || path.contains("/scan/");
    at_least(if slow { LISTING } else { Duration::ZERO }, configured)
}

/// The time-out of a change. Power actions only fork a task and answer at once.
pub(crate) fn of_change(method: Method, path: &str, configured: Duration) -> Duration {
    let forks = method == Method::Post && path.contains("/status/");
    at_least(if forks { Duration::ZERO } else { CHANGE }, configured)
}

fn at_least(floor: Duration, configured: Duration) -> Duration {
    if configured < FORCED_BELOW { configured } else { configured.max(floor) }
}

/// The pause before a further attempt: 0.2 s, doubled each time up to 2 s,
/// then somewhere between half and one and a half of that, so that many
/// clients do not come back at once.
pub(crate) fn pause(attempt: u32) -> Duration {
    let full = Duration::from_millis(200).saturating_mul(1 << attempt.min(8));
    let share = getrandom::u32().map_or(0.5, |n| f64::from(n) / f64::from(u32::MAX));
    full.min(Duration::from_secs(2)).mul_f64(0.5 + share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_kinds_of_calls_get_more_time() {
        let s = Duration::from_secs;
        let reads = [
            ("/nodes/pve1/status", 15, 15),
            ("/nodes/pve1/storage/local/content", 15, 40),
            ("/nodes/pve1/storage/local/content", 50, 50),
            ("/nodes/pve1/storage/local/content", 1, 1),
            ("/nodes/pve1/storage/local/status", 15, 15),
            ("/nodes/pve1/disks/list", 15, 40),
        ];
        for (path, configured, wanted) in reads {
            assert_eq!(of_read(path, s(configured)), s(wanted), "{path} {configured}");
        }
        let changes = [
            (Method::Put, "/nodes/pve1/qemu/100/config", 15, 60),
            (Method::Put, "/nodes/pve1/qemu/100/config", 90, 90),
            (Method::Put, "/nodes/pve1/qemu/100/config", 1, 1),
            (Method::Post, "/nodes/pve1/qemu/100/status/start", 15, 15),
        ];
        for (method, path, configured, wanted) in changes {
            assert_eq!(of_change(method, path, s(configured)), s(wanted), "{path} {configured}");
        }
    }

    #[test]
    fn pauses_grow_and_stay_bounded() {
        for _ in 0..50 {
            let ms = |n| pause(n).as_millis();
            assert!((100..=300).contains(&ms(0)), "{}", ms(0));
            assert!((200..=600).contains(&ms(1)));
            assert!((1000..=3000).contains(&ms(40)));
        }
    }
}
