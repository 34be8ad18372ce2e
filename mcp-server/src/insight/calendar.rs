//! Calendar events: the schedules of backup, replication and other jobs.
//!
//! Proxmox VE reads a subset of systemd's calendar events, with corners of its
//! own: `25:00` is "minute 25 of every hour" because an hour that cannot be
//! read leaves the first number to the minutes, `mon-fri` and `~` are unknown,
//! and a range never runs backwards except over weekdays. What is accepted
//! here is what a node accepts.

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::{AmbiguousOffset, TimeZone},
};

use crate::{Error, Result};

mod parse;

/// Years are searched this far ahead; the Gregorian calendar repeats after that.
const HORIZON_YEARS: i16 = 400;
/// The first year a schedule cannot name.
const YEARS_END: i16 = 2200;

/// A schedule as a node would run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    /// Ends with `UTC`: not in the node's own zone.
    utc: bool,
    /// Years it runs in; empty means every year.
    years: Vec<Steps>,
    /// Bit n is month n, 1 to 12. Bit 0 can be set and never comes.
    months: u64,
    /// Bit n is day n of the month, 1 to 31.
    days: u64,
    /// Bit 0 is Monday.
    weekdays: u64,
    hours: u64,
    minutes: u64,
    seconds: u64,
}

/// One member of a list: a number, a range, or every so many from a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Steps {
    from: u32,
    to: u32,
    step: u32,
}

impl Steps {
    fn contains(self, n: u32) -> bool {
        (self.from..=self.to).contains(&n) && (n - self.from).is_multiple_of(self.step)
    }
}

impl Calendar {
    /// Reads a schedule such as `daily`, `mon..fri 22:30`, `*-*-01 04:00` or `*/15`.
    /// Blanks around it are ignored, as the node does.
    ///
    /// # Errors
    /// `invalid_argument` with the text from which on it cannot be read.
    pub fn parse(text: &str) -> Result<Self> {
        parse::event(text.trim()).map_err(|rest| {
            let cause = if rest.is_empty() && !text.trim().is_empty() {
                format!("the schedule {text:?} ends too early")
            } else if rest.is_empty() {
                "the schedule is empty".to_owned()
            } else {
                format!("the schedule {text:?} cannot be read from {rest:?} on")
            };
            Error::argument(cause)
                .hint("schedules look like 21:00, mon..fri 22:30, sat 03:00, *-*-01 04:00, */15")
        })
    }

    /// The first run after a moment, both in seconds since 1970, in the zone of
    /// the node that runs the job. `None` when there is none any more.
    ///
    /// A time that the clock jumps over in spring is left out, as the node
    /// does; one that comes twice in autumn is run the first time.
    #[must_use]
    pub fn next_after(&self, epoch: i64, zone: &TimeZone) -> Option<i64> {
        let zone = if self.utc { &TimeZone::UTC } else { zone };
        let mut from = zone.to_datetime(Timestamp::from_second(epoch.checked_add(1)?).ok()?);
        loop {
            let at = self.next_civil(from)?;
            let found = zone.to_ambiguous_timestamp(at);
            if matches!(found.offset(), AmbiguousOffset::Gap { .. }) {
                from = at.checked_add(jiff::SignedDuration::from_secs(1)).ok()?;
                continue;
            }
            let first = found.earlier().ok()?.as_second();
            return if first > epoch { Some(first) } else { Some(found.later().ok()?.as_second()) };
        }
    }

    /// The mean time between two runs, in seconds. `None` for a schedule that
    /// runs at most once.
    #[must_use]
    pub fn interval(&self) -> Option<i64> {
        let years: Vec<i16> = if self.years.is_empty() {
            // 28 years hold every pairing of weekday, date and leap year.
            (2001..=2028).collect()
        } else {
            (1970..YEARS_END).filter(|y| self.has_year(*y)).collect()
        };
        let (mut span, mut matching) = (0_i64, 0_i64);
        for year in years {
            let mut date = Date::new(year, 1, 1).ok()?;
            while date.year() == year {
                span += 1;
                matching += i64::from(self.has_date(date));
                date = date.tomorrow().ok()?;
            }
        }
        let per_day = [self.hours, self.minutes, self.seconds]
            .iter()
            .map(|set| i64::from(set.count_ones()))
            .product::<i64>();
        let runs = matching * per_day;
        (runs > 1).then(|| span * 86_400 / runs)
    }

    /// How many runs were due after `since` and no later than `now`, counted up to `most`.
    #[must_use]
    pub fn runs_between(&self, since: i64, now: i64, most: usize, zone: &TimeZone) -> usize {
        std::iter::successors(self.next_after(since, zone), |at| self.next_after(*at, zone))
            .take(most)
            .take_while(|at| *at <= now)
            .count()
    }

    fn has_year(&self, year: i16) -> bool {
        self.years.is_empty()
            || u32::try_from(year).is_ok_and(|y| self.years.iter().any(|s| s.contains(y)))
    }

    fn has_date(&self, date: Date) -> bool {
        has(self.months, date.month())
            && has(self.days, date.day())
            && has(self.weekdays, date.weekday().to_monday_zero_offset())
    }

    /// The first matching wall-clock time at or after `from`.
    fn next_civil(&self, from: DateTime) -> Option<DateTime> {
        let mut date = self.next_date(from.date())?;
        if date == from.date() {
            let (hour, minute, second) = (from.hour(), from.minute(), from.second());
            if let Some((h, m, s)) = self.next_time(hour, minute, second) {
                return Some(date.at(h, m, s, 0));
            }
            date = self.next_date(date.tomorrow().ok()?)?;
        }
        let (h, m, s) = self.next_time(0, 0, 0)?;
        Some(date.at(h, m, s, 0))
    }

    fn next_date(&self, from: Date) -> Option<Date> {
        let mut date = from;
        while date.year() - from.year() <= HORIZON_YEARS {
            if !self.has_year(date.year()) {
                date = date.last_of_year().tomorrow().ok()?;
            } else if !has(self.months, date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
            } else if self.has_date(date) {
                return Some(date);
            } else {
                date = date.tomorrow().ok()?;
            }
        }
        None
    }

    /// The first matching time of a day at or after the one given.
    fn next_time(&self, hour: i8, minute: i8, second: i8) -> Option<(i8, i8, i8)> {
        let (first_minute, first_second) = (at_least(self.minutes, 0)?, at_least(self.seconds, 0)?);
        if has(self.hours, hour) {
            let this_minute = has(self.minutes, minute).then(|| at_least(self.seconds, second));
            if let Some(second) = this_minute.flatten() {
                return Some((hour, minute, second));
            }
            if let Some(minute) = at_least(self.minutes, minute + 1) {
                return Some((hour, minute, first_second));
            }
        }
        at_least(self.hours, hour + 1).map(|hour| (hour, first_minute, first_second))
    }
}

impl std::str::FromStr for Calendar {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

fn has(set: u64, n: i8) -> bool {
    at_least(set, n) == Some(n)
}

/// The smallest member that is not below `n`.
fn at_least(set: u64, n: i8) -> Option<i8> {
    let above = set.checked_shr(u32::try_from(n).ok()?)?;
    (above != 0).then(|| n + i8::try_from(above.trailing_zeros()).unwrap_or(0))
}

#[cfg(test)]
mod tests;
