//! Bytes, durations and times as people read them, and times as programs do.

/// A size in binary units with at most one decimal: `1.5 GiB`.
#[must_use]
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    #[allow(clippy::cast_precision_loss)]
    let mut size = n as f64;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or("B");
    if unit == 0 || (size * 10.0).round() % 10.0 == 0.0 {
        format!("{size:.0} {name}")
    } else {
        format!("{size:.1} {name}")
    }
}

/// A duration in seconds by its two largest units: `3d 4h`, `12m 5s`.
#[must_use]
pub fn duration(seconds: u64) -> String {
    let parts = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")].into_iter().scan(
        seconds,
        |rest, (n, u)| {
            let count = *rest / n;
            *rest %= n;
            Some((count, u))
        },
    );
    let text: Vec<String> = parts
        .skip_while(|(n, _)| *n == 0)
        .take(2)
        .filter(|(n, _)| *n > 0)
        .map(|(n, u)| format!("{n}{u}"))
        .collect();
    if text.is_empty() { "0s".to_owned() } else { text.join(" ") }
}

/// Seconds since 1970 as RFC 3339 with offset, or an empty string where that is no date.
#[must_use]
pub fn time(epoch: i64) -> String {
    jiff::Timestamp::from_second(epoch)
        .map(|t| t.display_with_offset(jiff::tz::Offset::UTC).to_string())
        .unwrap_or_default()
}

/// Now, RFC 3339 with milliseconds and offset.
#[must_use]
pub fn time_ms() -> String {
    let now = jiff::Timestamp::now();
    let rounded = now.round(jiff::Unit::Millisecond).unwrap_or(now);
    format!("{:.3}", rounded.display_with_offset(jiff::tz::Offset::UTC))
}

/// Seconds since 1970, now.
#[must_use]
pub fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// A share as a percentage with at most one decimal; 0 where the whole is 0.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    (part as f64 / whole as f64 * 1000.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(1 << 30), "1 GiB");
        assert_eq!(duration(0), "0s");
        assert_eq!(duration(90_061), "1d 1h");
        assert_eq!(duration(86_400), "1d");
        assert_eq!(duration(86_401), "1d");
        assert_eq!(duration(725), "12m 5s");
        assert_eq!(time(1_796_040_000), "2026-11-30T12:00:00+00:00");
        assert_eq!(percent(1, 3).to_string(), "33.3");
        assert_eq!(percent(1, 0).to_string(), "0");
    }
}
