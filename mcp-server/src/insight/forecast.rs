//! When something runs full: a straight line through its history.

use serde::Serialize;
use serde_json::Value;

use crate::pve::loose;

/// Fewer points than this say nothing.
const LEAST_POINTS: usize = 7;
/// A shorter history says nothing either, in seconds.
const LEAST_SPAN: i64 = 24 * 3600;
/// How much of the movement the line must explain.
const LEAST_FIT: f64 = 0.3;
/// Later than this is no date, in days.
const HORIZON: f64 = 3650.0;
const DAY: f64 = 86_400.0;

/// A value at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Seconds since 1970.
    pub time: i64,
    /// Bytes.
    pub used: f64,
}

/// A history of use, and the size at its end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// In order of time.
    pub points: Vec<Point>,
    /// Size in bytes.
    pub total: Option<f64>,
}

impl Series {
    /// From an `rrddata` answer, by the names of its members: `used` and `total` of
    /// a storage, `memused` and `memtotal` or `rootused` and `roottotal` of a node.
    /// Points without a value, which the answer is full of, are left out.
    #[must_use]
    pub fn read(rrd: &Value, used: &str, total: &str) -> Self {
        let mut series = Self::default();
        for row in loose::rows(rrd) {
            let (Some(time), Some(used)) = (loose::int(row, "time"), loose::float(row, used))
            else {
                continue;
            };
            series.points.push(Point { time, used });
            series.total = loose::float(row, total).or(series.total);
        }
        series.points.sort_by_key(|point| point.time);
        series.points.dedup_by_key(|point| point.time);
        series
    }
}

/// What the history says of the future.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Outlook {
    /// It runs full at a date.
    #[serde(rename = "date")]
    Date,
    /// It does not, as it goes now.
    #[serde(rename = "no date")]
    NoDate,
    /// There is too little history.
    #[serde(rename = "not enough data")]
    NotEnoughData,
}

/// When something runs full, with what that rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// Whether there is a date.
    pub outlook: Outlook,
    /// Days until it is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<f64>,
    /// That moment, seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_at: Option<i64>,
    /// In plain words.
    pub why: String,
    /// Bytes a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth_bytes_per_day: Option<i64>,
    /// How much of the movement the line explains, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r2: Option<f64>,
    /// Points of history.
    pub points: usize,
    /// Days of history.
    pub span_days: f64,
    /// In use at its end, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<i64>,
    /// Size at its end, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<i64>,
}

/// Draws the line.
#[must_use]
pub fn forecast(series: &Series) -> Forecast {
    let points = &series.points;
    let span = points.first().zip(points.last()).map_or(0, |(a, b)| b.time - a.time);
    let last = points.last().copied();
    let mut found = Forecast {
        outlook: Outlook::NotEnoughData,
        days: None,
        full_at: None,
        why: String::new(),
        growth_bytes_per_day: None,
        r2: None,
        points: points.len(),
        span_days: round(seconds(span) / DAY, 10.0),
        used_bytes: last.map(|p| whole(p.used)),
        total_bytes: series.total.map(whole),
    };
    let (Some(last), Some(total)) = (last, series.total.filter(|total| *total > 0.0)) else {
        found.why = "there is no history, or no size".to_owned();
        return found;
    };
    if points.len() < LEAST_POINTS || span < LEAST_SPAN {
        found.why = format!(
            "{} points over {} days; at least {LEAST_POINTS} over one day are needed",
            points.len(),
            found.span_days
        );
        return found;
    }
    let fit = Fit::of(points);
    let growth = fit.slope * DAY;
    found.growth_bytes_per_day = Some(whole(growth));
    found.r2 = Some(round(fit.r2, 1000.0));
    found.outlook = Outlook::NoDate;
    let left = total - last.used;
    let days = left / growth;
    if left <= 0.0 {
        found.outlook = Outlook::Date;
        found.days = Some(0.0);
        found.full_at = Some(last.time);
        found.why = "it is full now".to_owned();
    } else if growth <= 0.0 {
        found.why = "it does not grow".to_owned();
    } else if fit.r2 < LEAST_FIT {
        found.why = format!("it has no clear trend (r² {:.2})", fit.r2);
    } else if days > HORIZON {
        found.why = format!("at this pace it takes more than {} years", (HORIZON / 365.0).round());
    } else {
        found.outlook = Outlook::Date;
        found.days = Some(round(days, 10.0));
        found.full_at = Some(last.time.saturating_add(whole(days * DAY)));
        found.why = format!(
            "{:.0} % in use, growing {:.1} GiB a day (r² {:.2})",
            last.used / total * 100.0,
            growth / f64::from(1 << 30),
            fit.r2
        );
    }
    found
}

/// The line of least squares.
struct Fit {
    /// Bytes a second.
    slope: f64,
    r2: f64,
}

impl Fit {
    fn of(points: &[Point]) -> Self {
        let start = points.first().map_or(0, |p| p.time);
        #[allow(clippy::cast_precision_loss)]
        let n = points.len() as f64;
        let pairs = || points.iter().map(|p| (seconds(p.time - start), p.used));
        let (sum_x, sum_y) = pairs().fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
        let (mean_x, mean_y) = (sum_x / n, sum_y / n);
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for (x, y) in pairs() {
            xx += (x - mean_x).powi(2);
            xy += (x - mean_x) * (y - mean_y);
            yy += (y - mean_y).powi(2);
        }
        let slope = if xx > 0.0 { xy / xx } else { 0.0 };
        let r2 = if xx > 0.0 && yy > 0.0 { xy * xy / (xx * yy) } else { 0.0 };
        Self { slope, r2 }
    }
}

#[allow(clippy::cast_precision_loss)]
fn seconds(n: i64) -> f64 {
    n as f64
}

#[allow(clippy::cast_possible_truncation)]
fn whole(n: f64) -> i64 {
    n.round() as i64
}

fn round(n: f64, steps: f64) -> f64 {
    (n * steps).round() / steps
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GIB: f64 = 1_073_741_824.0;

    /// `n` points a day apart, by `used` in GiB of 500.
    fn series(n: i64, used: impl Fn(i64) -> f64) -> Series {
        let rows: Vec<Value> = (0..n)
            .map(|i| json!({"time": 1_796_040_000 + i * 86_400, "used": used(i) * GIB, "total": 500.0 * GIB}))
            .collect();
        Series::read(&json!(rows), "used", "total")
    }

    #[test]
    fn ten_gib_a_day_and_a_hundred_left_are_ten_days() {
        let found = forecast(&series(21, |i| 200.0 + 10.0 * i as f64));
        assert_eq!((found.outlook, found.days, found.r2), (Outlook::Date, Some(10.0), Some(1.0)));
        assert_eq!(found.growth_bytes_per_day, Some(10 * (1 << 30)));
        assert_eq!(found.full_at, Some(1_796_040_000 + 30 * 86_400));
        assert_eq!(found.why, "80 % in use, growing 10.0 GiB a day (r² 1.00)");
    }

    #[test]
    fn noise_on_a_rising_line_keeps_the_date() {
        let noise = [3.0, -4.0, 1.0, -2.0, 4.0, -3.0, 2.0];
        let found = forecast(&series(21, |i| 200.0 + 10.0 * i as f64 + noise[i as usize % 7]));
        let days = found.days.unwrap();
        assert!((9.0..=11.0).contains(&days), "{days}");
    }

    #[test]
    fn flat_falling_and_wandering_have_no_date() {
        let wander = [0.0, 30.0, -20.0, 10.0, -30.0, 25.0, 5.0];
        type Case = (&'static str, Box<dyn Fn(i64) -> f64>, &'static str);
        let cases: [Case; 5] = [
            ("flat", Box::new(|_| 300.0), "it does not grow"),
            ("falling", Box::new(|i| 300.0 - i as f64), "it does not grow"),
            ("wandering", Box::new(move |i| 300.0 + wander[i as usize % 7]), "it "),
            (
                "slow",
                Box::new(|i| 300.0 + 0.01 * i as f64),
                "at this pace it takes more than 10 years",
            ),
            ("saw", Box::new(|i| if i % 2 == 0 { 300.0 } else { 301.0 }), "it "),
        ];
        for (name, used, why) in cases {
            let found = forecast(&series(30, used));
            assert_eq!(
                (found.outlook, found.days, found.full_at),
                (Outlook::NoDate, None, None),
                "{name}"
            );
            assert!(found.why.starts_with(why), "{name}: {}", found.why);
        }
    }

    #[test]
    fn too_little_history() {
        for n in [0, 1, 6] {
            let found = forecast(&series(n, |i| 200.0 + 10.0 * i as f64));
            assert_eq!(found.outlook, Outlook::NotEnoughData, "{n}");
        }
        assert_eq!(forecast(&series(7, |i| 200.0 + 10.0 * i as f64)).outlook, Outlook::Date);
        // An hour of minutes is not a trend.
        let rows: Vec<Value> =
            (0..60).map(|i| json!({"time": i * 60, "used": i, "total": 1000})).collect();
        let found = forecast(&Series::read(&json!(rows), "used", "total"));
        assert_eq!(found.outlook, Outlook::NotEnoughData);
        assert_eq!(json!(found)["outlook"], "not enough data");
    }

    #[test]
    fn full_now_is_no_days() {
        let found = forecast(&series(10, |_| 500.0));
        assert_eq!((found.outlook, found.days), (Outlook::Date, Some(0.0)));
    }

    #[test]
    fn gaps_text_and_disorder_in_the_answer_are_read() {
        let rows = json!([
            {"time": 300, "used": "30", "total": "90"}, {"time": 100, "used": 10, "total": 80}, {"time": 200},
            {"time": 100, "used": 10, "total": 80}, {"used": 5},
        ]);
        let series = Series::read(&rows, "used", "total");
        assert_eq!(
            series.points,
            [Point { time: 100, used: 10.0 }, Point { time: 300, used: 30.0 }]
        );
        assert_eq!(Series::read(&json!(null), "used", "total"), Series::default());
        assert_eq!(series.total, Some(80.0));
    }
}
