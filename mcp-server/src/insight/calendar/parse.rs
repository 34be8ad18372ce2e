//! The grammar of calendar events.
//!
//! ```text
//! event    = word | [weekdays] [date] [time]        ["UTC"]
//! weekdays = day [".." day] {"," day [".." day]}
//! date     = [list "-"] list "-" list
//! time     = [list ":"] list [":" list]
//! list     = "*" ["/" step] | part {"," part}
//! part     = number [".." number] ["/" step]
//! ```
//!
//! An optional piece that cannot be read is taken as absent, and then the rest
//! has to make sense without it.

use super::{Calendar, Steps, YEARS_END};

/// What is left to read.
type Rest<'a> = &'a str;

const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The range of numbers a field knows: first that `*` starts with, first that is too large.
#[derive(Clone, Copy)]
struct Field {
    first: u32,
    end: u32,
}

const YEAR: Field = Field { first: 0, end: YEARS_END.unsigned_abs() as u32 };
const MONTH: Field = Field { first: 1, end: 13 };
const DAY: Field = Field { first: 1, end: 32 };
const HOUR: Field = Field { first: 0, end: 24 };
const MINUTE: Field = Field { first: 0, end: 60 };

/// Reads a whole event; the error is the text that could not be read.
pub(super) fn event(text: &str) -> Result<Calendar, Rest<'_>> {
    let (text, utc) = match text.strip_suffix("UTC") {
        Some(before) => (before.trim_end_matches(' '), true),
        None => (text, false),
    };
    let mut found = Calendar {
        utc,
        years: Vec::new(),
        months: bits(&[all(MONTH)]),
        days: bits(&[all(DAY)]),
        weekdays: bits(&[all(Field { first: 0, end: 7 })]),
        hours: 1,
        minutes: 1,
        seconds: 1,
    };
    if word(text, &mut found) {
        return Ok(found);
    }
    let mut rest = text;
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let (set, after) = weekdays(text)?;
        found.weekdays = set;
        rest = blanks(after);
    }
    if let Some((years, months, days, after)) = date(rest) {
        // `*` and "not said" are both the empty list.
        found.years = years;
        found.months = months;
        found.days = days;
        rest = blanks(after);
    }
    if let Some((hours, minutes, seconds, after)) = time(rest) {
        found.hours = hours;
        found.minutes = minutes;
        found.seconds = seconds;
        rest = after;
    }
    // Nothing read at all leaves the text itself, which is then the error.
    if rest.is_empty() && !text.is_empty() { Ok(found) } else { Err(rest) }
}

/// The named schedules; whether `text` is one. Only lower case counts.
fn word(text: &str, event: &mut Calendar) -> bool {
    let every_hour = bits(&[all(HOUR)]);
    match text {
        "minutely" => (event.hours, event.minutes) = (every_hour, bits(&[all(MINUTE)])),
        "hourly" => event.hours = every_hour,
        "daily" => {}
        "weekly" => event.weekdays = 1,
        "monthly" => event.days = 1 << 1,
        "quarterly" => (event.months, event.days) = (1 << 1 | 1 << 4 | 1 << 7 | 1 << 10, 1 << 1),
        "semiannually" | "semi-annually" => (event.months, event.days) = (1 << 1 | 1 << 7, 1 << 1),
        "yearly" | "annually" => (event.months, event.days) = (1 << 1, 1 << 1),
        _ => return false,
    }
    true
}

fn weekdays(text: &str) -> Result<(u64, Rest<'_>), Rest<'_>> {
    let (mut set, mut rest) = weekday_range(text).ok_or(text)?;
    while let Some((more, after)) = rest.strip_prefix(',').and_then(weekday_range) {
        set |= more;
        rest = after;
    }
    Ok((set, rest))
}

/// A weekday or a range; a range may run over Sunday.
fn weekday_range(text: &str) -> Option<(u64, Rest<'_>)> {
    let (from, rest) = weekday(text)?;
    match rest.strip_prefix("..").and_then(weekday) {
        Some((to, rest)) if from <= to => Some((bits(&[Steps { from, to, step: 1 }]), rest)),
        Some((to, rest)) => {
            let (start, end) = (Steps { from, to: 6, step: 1 }, Steps { from: 0, to, step: 1 });
            Some((bits(&[start, end]), rest))
        }
        None => Some((1 << from, rest)),
    }
}

fn weekday(text: &str) -> Option<(u32, Rest<'_>)> {
    let (name, rest) = split_while(text, |c| c.is_ascii_alphabetic());
    let name = name.to_ascii_lowercase();
    (0..).zip(WEEKDAYS).find_map(|(n, full)| {
        (name == full || full.get(..3) == Some(name.as_str())).then_some((n, rest))
    })
}

type DateSets<'a> = (Vec<Steps>, u64, u64, Rest<'a>);

fn date(text: &str) -> Option<DateSets<'_>> {
    let whole = || {
        let (years, rest) = list(text, YEAR)?;
        let (months, rest) = list(rest.strip_prefix('-')?, MONTH)?;
        let (days, rest) = list(rest.strip_prefix('-')?, DAY)?;
        Some((years, months, days, rest))
    };
    let short = || {
        let (months, rest) = list(text, MONTH)?;
        let (days, rest) = list(rest.strip_prefix('-')?, DAY)?;
        Some((Vec::new(), months, days, rest))
    };
    let (years, months, days, rest) = whole().or_else(short)?;
    Some((years, or_all(&months, MONTH), or_all(&days, DAY), rest))
}

fn time(text: &str) -> Option<(u64, u64, u64, Rest<'_>)> {
    let hour = list(text, HOUR).and_then(|(hours, rest)| Some((hours, rest.strip_prefix(':')?)));
    let (hours, rest) = hour.unwrap_or((Vec::new(), text));
    let (minutes, rest) = list(rest, MINUTE)?;
    let second = rest.strip_prefix(':').and_then(|rest| list(rest, MINUTE));
    let (seconds, rest) = match second {
        Some((seconds, rest)) => (or_all(&seconds, MINUTE), rest),
        None => (1, rest),
    };
    Some((or_all(&hours, HOUR), or_all(&minutes, MINUTE), seconds, rest))
}

/// A list of a field's values; empty stands for "every".
fn list(text: &str, field: Field) -> Option<(Vec<Steps>, Rest<'_>)> {
    if let Some(rest) = text.strip_prefix('*') {
        let Some(step) = rest.strip_prefix('/') else { return Some((Vec::new(), rest)) };
        let (step, rest) = number(step, field)?;
        return (step > 0).then(|| (vec![Steps { step, ..all(field) }], rest));
    }
    let (first, mut rest) = part(text, field)?;
    let mut found = vec![first];
    while let Some((more, after)) = rest.strip_prefix(',').and_then(|rest| part(rest, field)) {
        found.push(more);
        rest = after;
    }
    Some((found, rest))
}

fn part(text: &str, field: Field) -> Option<(Steps, Rest<'_>)> {
    let (from, rest) = number(text, field)?;
    let end = rest.strip_prefix("..").and_then(|rest| number(rest, field));
    let (to, rest) = end.map_or((None, rest), |(to, rest)| (Some(to), rest));
    if to.is_some_and(|to| to < from) {
        return None;
    }
    match rest.strip_prefix('/') {
        Some(step) => {
            let (step, rest) = number(step, field)?;
            // A step of nothing never leaves the start.
            let to = if step == 0 { from } else { to.unwrap_or(field.end - 1) };
            Some((Steps { from, to, step: step.max(1) }, rest))
        }
        None => Some((Steps { from, to: to.unwrap_or(from), step: 1 }, rest)),
    }
}

fn number(text: &str, field: Field) -> Option<(u32, Rest<'_>)> {
    let (digits, rest) = split_while(text, |c| c.is_ascii_digit());
    digits.parse().ok().filter(|n| *n < field.end).map(|n| (n, rest))
}

fn split_while(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn blanks(text: &str) -> Rest<'_> {
    text.trim_start_matches([' ', '\t'])
}

fn all(field: Field) -> Steps {
    Steps { from: field.first, to: field.end - 1, step: 1 }
}

fn or_all(list: &[Steps], field: Field) -> u64 {
    if list.is_empty() { bits(&[all(field)]) } else { bits(list) }
}

/// The values of a small field as bits.
fn bits(list: &[Steps]) -> u64 {
    (0..64).filter(|n| list.iter().any(|s| s.contains(*n))).fold(0, |set, n| set | 1 << n)
}
