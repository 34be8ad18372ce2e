//! Proxmox calendar events (`mon..fri 02:00`, `*/15`, `*-*-01 04:00`), in UTC.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::api::call::{Answer, Call};

/// A parsed event: which weekdays, dates and times it fires at. An empty list means any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    days: Vec<i8>,
    years: Vec<Span>,
    months: Vec<Span>,
    month_days: Vec<Span>,
    hours: Vec<Span>,
    minutes: Vec<Span>,
    seconds: Vec<Span>,
}

/// A value, a range or a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from: i64,
    to: i64,
    step: i64,
}

const WORDS: [(&str, &str); 8] = [
    ("minutely", "*:*:00"),
    ("hourly", "*:00:00"),
    ("daily", "*-*-* 00:00:00"),
    ("weekly", "mon *-*-* 00:00:00"),
    ("monthly", "*-*-01 00:00:00"),
    ("quarterly", "*-01,04,07,10-01 00:00:00"),
    ("semiannually", "*-01,07-01 00:00:00"),
    ("semi-annually", "*-01,07-01 00:00:00"),
];
const YEARLY: &str = "*-01-01 00:00:00";
const DAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Parses an event; the message is worded like the real one's.
pub(crate) fn parse(text: &str) -> Result<Event, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err("unable to parse calendar event - event is empty\n".to_owned());
    }
    let trimmed = trimmed.strip_suffix(" UTC").unwrap_or(trimmed);
    if let Some((_, long)) = WORDS.iter().find(|(w, _)| *w == trimmed) {
        return parse(long);
    }
    if trimmed == "yearly" || trimmed == "annually" {
        return parse(YEARLY);
    }
    let fail =
        |at: &str, why: &str| Err(format!("unable to parse calendar event at '{at}' - {why}\n"));
    let mut event = Event {
        days: Vec::new(),
        years: Vec::new(),
        months: Vec::new(),
        month_days: Vec::new(),
        hours: Vec::new(),
        minutes: Vec::new(),
        seconds: vec![Span { from: 0, to: 0, step: 1 }],
    };
    let mut rest = trimmed;
    if rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        match weekdays(rest) {
            None => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                return fail(rest.get(..end).unwrap_or(rest), "Context(\"weekday\")");
            }
            Some((days, left)) => {
                event.days = days;
                rest = left;
            }
        }
        match rest.strip_prefix(' ') {
            Some(left) => rest = left.trim_start(),
            None if rest.is_empty() => {}
            None => return fail(rest, "Nom(Eof)"),
        }
    }
    let mut timed = false;
    if !rest.is_empty() {
        if let Some(left) = date(rest, &mut event) {
            rest = left;
            if let Some(left) =
                rest.strip_prefix(' ').and_then(|r| time(r.trim_start(), &mut event))
            {
                rest = left;
                timed = true;
            }
        } else if let Some(left) = time(rest, &mut event) {
            rest = left;
            timed = true;
        } else {
            return fail(rest, "Context(\"date or time specification\")");
        }
    }
    if !rest.is_empty() {
        return fail(rest, "Nom(Eof)");
    }
    if !timed {
        let zero = vec![Span { from: 0, to: 0, step: 1 }];
        event.hours.clone_from(&zero);
        event.minutes = zero;
    }
    Ok(event)
}

fn weekdays(text: &str) -> Option<(Vec<i8>, &str)> {
    let mut all = Vec::new();
    let mut rest = text;
    loop {
        let (from, left) = weekday(rest)?;
        rest = left;
        match rest.strip_prefix("..").and_then(weekday) {
            Some((to, left)) => {
                rest = left;
                all.extend(from..=to);
            }
            None => all.push(from),
        }
        match rest.strip_prefix(',') {
            Some(left) if weekday(left).is_some() => rest = left,
            _ => return Some((all, rest)),
        }
    }
}

fn weekday(text: &str) -> Option<(i8, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let lower = word.to_ascii_lowercase();
    let at = DAYS.iter().position(|d| *d == lower || d.get(..3) == Some(lower.as_str()))?;
    Some((i8::try_from(at).ok()?, rest))
}

/// `[year-]month-day`; what follows it, or `None` when there is no date.
fn date<'a>(text: &'a str, event: &mut Event) -> Option<&'a str> {
    let with_year = |event: &mut Event| {
        let (years, rest) = spans(text, 1970, 9999)?;
        let (months, rest) = spans(rest.strip_prefix('-')?, 1, 12)?;
        let (days, rest) = spans(rest.strip_prefix('-')?, 1, 31)?;
        (event.years, event.months, event.month_days) = (years, months, days);
        Some(rest)
    };
    if let Some(rest) = with_year(event) {
        return Some(rest);
    }
    let (months, rest) = spans(text, 1, 12)?;
    let (days, rest) = spans(rest.strip_prefix('-')?, 1, 31)?;
    (event.months, event.month_days) = (months, days);
    Some(rest)
}

/// `[hour:]minute[:second]`; what follows it, or `None` when there is no time.
fn time<'a>(text: &'a str, event: &mut Event) -> Option<&'a str> {
    let hour = spans(text, 0, 23).and_then(|(h, rest)| Some((h, rest.strip_prefix(':')?)));
    let (hours, rest) = hour.unwrap_or((Vec::new(), text));
    let (minutes, rest) = spans(rest, 0, 59)?;
    (event.hours, event.minutes) = (hours, minutes);
    match rest.strip_prefix(':').and_then(|r| spans(r, 0, 59)) {
        Some((seconds, rest)) => {
            event.seconds = seconds;
            Some(rest)
        }
        None => Some(rest),
    }
}

/// A list of values within limits; the empty list is any.
fn spans(text: &str, min: i64, max: i64) -> Option<(Vec<Span>, &str)> {
    let mut all = Vec::new();
    let mut any = false;
    let mut rest = text;
    loop {
        let (span, left) = span(rest, min, max)?;
        any |= span.is_none();
        all.extend(span);
        rest = left;
        match rest.strip_prefix(',') {
            Some(left) if span_starts(left) => rest = left,
            _ => break,
        }
    }
    if any {
        all.clear();
    }
    Some((all, rest))
}

fn span_starts(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '*')
}

fn span(text: &str, min: i64, max: i64) -> Option<(Option<Span>, &str)> {
    let (from, mut rest) = match text.strip_prefix('*') {
        Some(rest) => (None, rest),
        None => {
            let (n, rest) = number(text)?;
            if n < min || n > max {
                return None;
            }
            (Some(n), rest)
        }
    };
    let mut to = None;
    if let (Some(from), Some((n, left))) = (from, rest.strip_prefix("..").and_then(number)) {
        if n > max || n < from {
            return None;
        }
        to = Some(n);
        rest = left;
    }
    if let Some((step, left)) = rest.strip_prefix('/').and_then(number) {
        if step < 1 {
            return None;
        }
        let from = from.unwrap_or(min);
        return Some((Some(Span { from, to: to.unwrap_or(max), step }), left));
    }
    Some((from.map(|from| Span { from, to: to.unwrap_or(from), step: 1 }), rest))
}

fn number(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

fn hits(spans: &[Span], value: i64) -> bool {
    spans.is_empty()
        || spans.iter().any(|s| value >= s.from && value <= s.to && (value - s.from) % s.step == 0)
}

fn first_from(spans: &[Span], from: i64, max: i64) -> Option<i64> {
    (from..=max).find(|v| hits(spans, *v))
}

impl Event {
    fn on(&self, date: Date) -> bool {
        let day = date.weekday().to_monday_zero_offset();
        (self.days.is_empty() || self.days.contains(&day))
            && hits(&self.years, i64::from(date.year()))
            && hits(&self.months, i64::from(date.month()))
            && hits(&self.month_days, i64::from(date.day()))
    }

    /// The first time of day at or after this one (hour, minute, second).
    fn time_from(&self, from: (i64, i64, i64)) -> Option<(i64, i64, i64)> {
        let mut hour = first_from(&self.hours, from.0, 23)?;
        let (mut minute_from, mut second_from) =
            if hour == from.0 { (from.1, from.2) } else { (0, 0) };
        loop {
            if let Some(minute) = first_from(&self.minutes, minute_from, 59) {
                if minute != minute_from {
                    second_from = 0;
                }
                if let Some(second) = first_from(&self.seconds, second_from, 59) {
                    return Some((hour, minute, second));
                }
                minute_from = minute + 1;
                second_from = 0;
                if minute_from <= 59 {
                    continue;
                }
            }
            hour = first_from(&self.hours, hour + 1, 23)?;
            (minute_from, second_from) = (0, 0);
        }
    }

    /// The first moment after this one, Unix seconds; `None` when there is none in 30 years.
    pub(crate) fn next(&self, after: i64) -> Option<i64> {
        let start = TimeZone::UTC.to_datetime(Timestamp::from_second(after + 1).ok()?);
        let mut date = start.date();
        let mut from =
            (i64::from(start.hour()), i64::from(start.minute()), i64::from(start.second()));
        for _ in 0..(30 * 366) {
            if self.on(date)
                && let Some((h, m, s)) = self.time_from(from)
            {
                let small = |v: i64| i8::try_from(v).unwrap_or(0);
                let moment =
                    DateTime::from_parts(date, jiff::civil::time(small(h), small(m), small(s), 0));
                return TimeZone::UTC.to_timestamp(moment).ok().map(Timestamp::as_second);
            }
            date = date.tomorrow().ok()?;
            from = (0, 0, 0);
        }
        None
    }
}

/// `Tue Dec  1 00:00:00 2026`.
fn ctime(seconds: i64) -> String {
    let Ok(t) = Timestamp::from_second(seconds) else { return String::new() };
    let t = TimeZone::UTC.to_datetime(t);
    let day = match t.weekday() {
        Weekday::Monday => "Mon",
        Weekday::Tuesday => "Tue",
        Weekday::Wednesday => "Wed",
        Weekday::Thursday => "Thu",
        Weekday::Friday => "Fri",
        Weekday::Saturday => "Sat",
        Weekday::Sunday => "Sun",
    };
    let month = t.strftime("%b");
    format!(
        "{day} {month} {:>2} {:02}:{:02}:{:02} {}",
        t.day(),
        t.hour(),
        t.minute(),
        t.second(),
        t.year()
    )
}

/// `GET /cluster/jobs/schedule-analyze`.
pub(crate) fn analyze(c: &mut Call<'_>) -> Answer {
    let Ok(event) = parse(&c.need("schedule")) else { return Ok(json!([]).into()) };
    let mut at = c.int("starttime").unwrap_or_else(|| c.now());
    let mut all = Vec::new();
    for _ in 0..c.int("iterations").unwrap_or(10) {
        let Some(next) = event.next(at) else { break };
        all.push(json!({"timestamp": next, "utc": ctime(next)}));
        at = next;
    }
    Ok(Value::Array(all).into())
}

/// The next time a schedule fires after this moment, Unix seconds.
pub(crate) fn next_run(schedule: &str, after: i64) -> Option<i64> {
    parse(schedule).ok()?.next(after)
}

/// The times at which a schedule fired in the days before a moment, newest first.
pub(crate) fn runs_before(schedule: &str, now: i64, days: i64) -> Vec<i64> {
    let mut runs = Vec::new();
    let mut at = now - days * 86_400;
    while let Some(next) = next_run(schedule, at).filter(|n| *n <= now) {
        runs.push(next);
        at = next;
    }
    runs.reverse();
    runs
}
