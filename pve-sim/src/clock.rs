//! The time of the estate: the machine's own, or one that a test drives.

use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where the simulator takes its time from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// The machine's clock. [`crate::Sim::advance`] moves the estate ahead of it.
    #[default]
    Real,
    /// A clock that starts at this Unix time (seconds) and moves only by
    /// [`crate::Sim::advance`].
    Driven(i64),
}

/// A running clock.
pub(crate) struct Time {
    clock: Clock,
    ahead: Mutex<Duration>,
}

impl Time {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, ahead: Mutex::new(Duration::ZERO) }
    }

    pub(crate) fn advance(&self, by: Duration) {
        let mut ahead = self.ahead.lock().unwrap_or_else(|e| e.into_inner());
        *ahead += by;
    }

    /// Milliseconds since the Unix epoch.
    pub(crate) fn now_ms(&self) -> i64 {
        let ahead = *self.ahead.lock().unwrap_or_else(|e| e.into_inner());
        let base = match self.clock {
            Clock::Real => millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
            Clock::Driven(start) => start.saturating_mul(1000),
        };
        base.saturating_add(millis(ahead))
    }
}

pub(crate) fn millis(d: Duration) -> i64 {
    i64::try_from(d.as_millis()).unwrap_or(i64::MAX)
}
