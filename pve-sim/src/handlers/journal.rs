//! A node's journal, and the same as the older syslog call.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Route, nodes::node};
use crate::api::call::{Answer, Call, Reply};
use crate::api::failure::Failure;
use crate::state::node::JournalLine;

pub(crate) const ROUTES: &[Route] =
    &[("GET", "/nodes/{node}/journal", journal), ("GET", "/nodes/{node}/syslog", syslog)];

/// `Nov 30 00:22:20`.
fn stamp(seconds: i64) -> String {
    let at = Timestamp::from_second(seconds).unwrap_or_default();
    at.strftime("%b %d %H:%M:%S").to_string()
}

fn shown(node: &str, line: &JournalLine) -> String {
    format!("{} {node} {}: {}", stamp(line.time), line.program, line.text)
}

/// The syslog identifier: the program without its process id.
fn identifier(line: &JournalLine) -> &str {
    line.program.split('[').next().unwrap_or_default()
}

/// The unit that a line is of.
fn unit(line: &JournalLine) -> String {
    match identifier(line) {
        "systemd" => "init.scope".to_owned(),
        "kernel" => String::new(),
        other => format!("{other}.service"),
    }
}

/// `3` is that level and what is more severe, `2..4` a range; levels are 0 (emerg) to 7 (debug).
fn levels(text: &str) -> Option<std::ops::RangeInclusive<u8>> {
    match text.split_once("..") {
        Some((low, high)) => Some(low.parse().ok()?..=high.parse().ok()?),
        None => Some(0..=text.parse().ok()?),
    }
}

/// Shell patterns with `*` and `?`.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((b'*', more)), rest) => {
            glob(more, text) || rest.is_some_and(|(_, text)| glob(pattern, text))
        }
        (Some((b'?', more)), Some((_, text))) => glob(more, text),
        (Some((want, more)), Some((got, text))) => want == got && glob(more, text),
        (Some(_), None) => false,
    }
}

/// Where a line stands in the journal: the simulated lines are one a microsecond at most.
fn cursor(at: usize, line: Option<&JournalLine>) -> String {
    let time = line.map_or(0, |line| line.time);
    format!(
        "s=65f96f15d318411fadd7882a5aeca5c4;i={at:x};b=c74fa7ff78634786a97671c2823e7c2c;t={time:x}"
    )
}

fn place(cursor: &str) -> Option<usize> {
    let at = cursor.split(';').find_map(|part| part.strip_prefix("i="))?;
    usize::from_str_radix(at, 16).ok()
}

fn journal(c: &mut Call<'_>) -> Answer {
    if ["structured", "identifiers", "units"].iter().any(|name| c.flag(name)) {
        return Err(Failure::not_implemented("GET", "/nodes/{node}/journal?structured"));
    }
    let (since, until) = (c.int("since"), c.int("until"));
    let start = c.text("startcursor").and_then(|text| place(&text));
    let end = c.text("endcursor").and_then(|text| place(&text));
    let last = c.int("lastentries").filter(|n| *n > 0).and_then(|n| usize::try_from(n).ok());
    let levels = c.text("priority").filter(|text| !text.is_empty()).and_then(|t| levels(&t));
    let (service, wanted) = (c.text("service"), c.text("unit"));
    let kernel = c.flag("kernel");
    let n = node(c);
    let mut lines: Vec<(usize, &JournalLine)> = n
        .journal
        .iter()
        .enumerate()
        .filter(|(at, line)| {
            since.is_none_or(|s| line.time >= s)
                && until.is_none_or(|u| line.time <= u)
                && start.is_none_or(|s| *at > s)
                && end.is_none_or(|e| *at < e)
        })
        .filter(|(_, line)| levels.as_ref().is_none_or(|l| l.contains(&line.priority)))
        .filter(|(_, line)| {
            service.as_ref().is_none_or(|s| glob(s.as_bytes(), identifier(line).as_bytes()))
        })
        .filter(|(_, line)| {
            wanted.as_ref().is_none_or(|u| {
                let of = unit(line);
                of == *u || of.strip_suffix(".service") == Some(u.as_str())
            })
        })
        .filter(|(_, line)| !kernel || identifier(line) == "kernel")
        .collect();
    if let Some(last) = last {
        lines = lines.split_off(lines.len().saturating_sub(last));
    }
    let edge = |found: Option<&(usize, &JournalLine)>| {
        json!(found.map_or_else(|| cursor(0, None), |(at, line)| cursor(*at, Some(line))))
    };
    let mut all = vec![edge(lines.first())];
    all.extend(lines.iter().map(|(_, line)| json!(shown(&n.name, line))));
    all.push(edge(lines.last()));
    Ok(Reply { always_gzip: true, ..Reply::from(Value::Array(all)) }.with("success", 1))
}

/// `2026-11-30 10:00:00`, or less of it.
fn moment(text: &str) -> Option<i64> {
    let full = match text.len() {
        10 => format!("{text} 00:00:00"),
        16 => format!("{text}:00"),
        _ => text.to_owned(),
    };
    format!("{}Z", full.replace(' ', "T")).parse::<Timestamp>().ok().map(|at| at.as_second())
}

fn syslog(c: &mut Call<'_>) -> Answer {
    let service = c.text("service");
    let since = c.text("since").and_then(|text| moment(&text));
    let until = c.text("until").and_then(|text| moment(&text));
    let n = node(c);
    let lines: Vec<String> = n
        .journal
        .iter()
        .filter(|line| since.is_none_or(|s| line.time >= s) && until.is_none_or(|u| line.time <= u))
        .map(|line| shown(&n.name, line))
        .filter(|l| service.as_deref().is_none_or(|s| l.contains(s)))
        .collect();
    let total = lines.len();
    let start = usize::try_from(c.int("start").unwrap_or(0)).unwrap_or(0);
    let limit = usize::try_from(c.int("limit").unwrap_or(50)).unwrap_or(50);
    let rows: Vec<Value> = lines
        .into_iter()
        .enumerate()
        .skip(start)
        .take(limit)
        .map(|(n, t)| json!({"n": n + 1, "t": t}))
        .collect();
    Ok(Reply::from(Value::Array(rows)).with("total", total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_patterns() {
        assert_eq!(levels("3"), Some(0..=3));
        assert_eq!(levels("2..4"), Some(2..=4));
        for (pattern, text, fits) in [
            ("pve*", "pvedaemon", true),
            ("pve?aemon", "pvedaemon", true),
            ("pve", "pvedaemon", false),
            ("*", "", true),
            ("*d", "corosync", false),
        ] {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} on {text}");
        }
    }

    #[test]
    fn moments_of_the_older_call() {
        for (text, seconds) in [
            ("1970-01-02", Some(86_400)),
            ("1970-01-01 00:01", Some(60)),
            ("1970-01-01 00:01:05", Some(65)),
            ("yesterday", None),
        ] {
            assert_eq!(moment(text), seconds, "{text}");
        }
    }
}
