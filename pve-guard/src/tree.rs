//! Everything that a command started, wherever it has gone.
//!
//! A child of a child can leave its parent (double fork, `setsid`) and then
//! has the container's init as parent, so ancestry does not find it. What
//! finds it: the audit session, which is new for every run, is inherited and
//! cannot be changed from inside a container; and an environment variable with
//! a random value, for kernels without audit. The container's cgroup is frozen
//! while they are looked for, so that they cannot outrun it.
//!
//! Work that was handed to the container's own init is not found.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::{lock, node, sys};

/// The variable that marks what a run started.
const MARKER: &str = "PVE_GUARD_RUN";
/// What the kernel shows for "no session" and "no user".
const UNSET: &str = "4294967295";
/// How long a cgroup may take to freeze.
const FREEZE_WAIT: Duration = Duration::from_secs(2);
/// How often KILL is sent to what is still there.
const KILL_ROUNDS: u32 = 60;

/// The marks of one run.
pub(crate) struct Tree {
    own: i32,
    session: Option<String>,
    marker: String,
    cgroup: Option<PathBuf>,
}

/// What a look is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Counting: one mark is enough.
    Quick,
    /// Ending: either mark.
    Thorough,
}

impl Tree {
    /// Gives this process, and so all it will start, new marks. `cgroup` is
    /// the folder of the container's cgroup.
    pub(crate) fn begin(cgroup: Option<PathBuf>) -> io::Result<Self> {
        Ok(Self {
            own: nix::unistd::getpid().as_raw(),
            session: new_session(),
            marker: node::random_word()?,
            cgroup: cgroup.filter(|dir| dir.join("cgroup.freeze").exists()),
        })
    }

    /// The variable that everything started must have.
    pub(crate) fn variable(&self) -> (&'static str, &str) {
        (MARKER, &self.marker)
    }

    /// Whether the kernel gave an audit session.
    pub(crate) const fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// How many processes are there.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.find(Look::Quick).len()).unwrap_or(u32::MAX)
    }

    /// Asks all of them to end.
    pub(crate) fn terminate(&self) {
        let _frozen = self.freeze();
        for pid in self.find(Look::Thorough) {
            self.signal(pid, Signal::SIGTERM);
        }
    }

    /// Ends all of them; says how many are left nevertheless.
    pub(crate) fn kill(&self) -> usize {
        let mut left = 0;
        for _ in 0..KILL_ROUNDS {
            let frozen = self.freeze();
            let found = self.find(Look::Thorough);
            left = found.len();
            for pid in found {
                self.signal(pid, Signal::SIGKILL);
            }
            drop(frozen);
            if left == 0 {
                break;
            }
            sleep(Duration::from_millis(50));
        }
        left
    }

    fn find(&self, look: Look) -> Vec<i32> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| *pid != self.own && self.holds(*pid, look) && is_alive(*pid))
            .collect()
    }

    fn holds(&self, pid: i32, look: Look) -> bool {
        if let Some(session) = &self.session {
            let found = fs::read_to_string(format!("/proc/{pid}/sessionid"));
            if found.is_ok_and(|found| found.trim() == session) {
                return true;
            }
            if look == Look::Quick {
                return false;
            }
        }
        let wanted = format!("{MARKER}={}", self.marker);
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
    }

    /// Looks once more after the process is held, since its number may have
    /// been given to another one.
    fn signal(&self, pid: i32, signal: Signal) {
        if let Ok(pidfd) = sys::pidfd_open(pid)
            && self.holds(pid, Look::Thorough)
        {
            // Fails only when it has just ended.
            let _ = sys::pidfd_signal(&pidfd, signal);
        }
    }

    fn freeze(&self) -> Option<Frozen> {
        Frozen::new(self.cgroup.as_deref()?)
    }
}

/// A cgroup that stands still as long as this value lives.
struct Frozen {
    switch: PathBuf,
    _lock: lock::Held,
}

impl Frozen {
    fn new(cgroup: &Path) -> Option<Self> {
        let name = cgroup.file_name()?.to_string_lossy();
        let switch = cgroup.join("cgroup.freeze");
        let held = lock::hold(&format!("freeze-{name}")).ok()?;
        if fs::read_to_string(&switch).ok()?.trim() == "1" {
            // Somebody else froze it, and will thaw it.
            return None;
        }
        fs::write(&switch, "1").ok()?;
        let frozen = Self { switch, _lock: held };
        let deadline = Instant::now() + FREEZE_WAIT;
        while Instant::now() < deadline {
            let events = fs::read_to_string(cgroup.join("cgroup.events")).unwrap_or_default();
            if events.lines().any(|line| line == "frozen 1") {
                break;
            }
            sleep(Duration::from_millis(2));
        }
        Some(frozen)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = fs::write(&self.switch, "0");
    }
}

/// Opens a new audit session, with the login user unchanged where there is one.
fn new_session() -> Option<String> {
    let read = |name: &str| {
        fs::read_to_string(format!("/proc/self/{name}")).map(|text| text.trim().to_owned())
    };
    let before = read("sessionid").ok()?;
    let user = match read("loginuid").ok()? {
        user if user != UNSET => user,
        _ => std::env::var("SUDO_UID")
            .ok()
            .filter(|uid| uid.parse::<u32>().is_ok())
            .unwrap_or_else(|| "0".into()),
    };
    fs::write("/proc/self/loginuid", user).ok()?;
    let after = read("sessionid").ok()?;
    (after != before && after != UNSET).then_some(after)
}

/// Whether the process still runs. One whose first thread has ended looks
/// like a dead one, but for the number of its threads.
fn is_alive(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name in parentheses may hold anything; the fields follow the last one.
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next().unwrap_or_default();
    let threads = fields.nth(16).and_then(|n| n.parse::<u32>().ok()).unwrap_or(1);
    !matches!(state, "Z" | "X") || threads > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_no_process_is_not() {
        assert!(is_alive(std::process::id().cast_signed()));
        assert!(!is_alive(i32::MAX));
    }
}
