//! One guest over time, on the network, and in its snapshots.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::guests::title;
use crate::{
    Result,
    insight::estate::{Guest, GuestStatus},
    pve::{GuestKind, Params, Vmid, loose},
    render::{Answer, Page, Table, units},
    tools::{
        Ctx,
        args::{OneGuest, Timeframe},
    },
};

/// Arguments of `pve_vm_metrics`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Metrics {
    vmid: Vmid,
    timeframe: Option<Timeframe>,
    max: Option<bool>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
}

/// `pve_vm_metrics`
pub async fn metrics(ctx: Ctx<'_>, args: Metrics) -> Result<Answer> {
    let span = args.timeframe.unwrap_or(Timeframe::Hour);
    let params = series(span, args.max);
    let (guest, points) = ctx.guest_get(args.vmid, &["rrddata"], params).await?;
    let columns: &[(&str, &str)] = &[
        ("cpu", "cpu_percent"),
        ("mem", "mem_bytes"),
        ("maxmem", "maxmem_bytes"),
        ("disk", "disk_bytes"),
        ("netin", "net_in_bytes_s"),
        ("netout", "net_out_bytes_s"),
        ("diskread", "disk_read_bytes_s"),
        ("diskwrite", "disk_write_bytes_s"),
        ("pressurecpusome", "pressure_cpu_some"),
        ("pressureiosome", "pressure_io_some"),
        ("pressurememorysome", "pressure_memory_some"),
    ];
    Ok(points_answer(&points, columns, args.limit, &title(&guest)))
}

/// Parameters of a time series.
pub fn series(span: Timeframe, max: Option<bool>) -> Params {
    let function = if max == Some(true) { "MAX" } else { "AVERAGE" };
    Params::new().with("timeframe", span.as_str()).with("cf", function)
}

/// A time series: a summary of every column, and the newest points. Points
/// that hold nothing but a time are left out.
pub fn points_answer(
    points: &Value,
    columns: &[(&str, &str)],
    limit: Option<usize>,
    heading: &str,
) -> Answer {
    let filled: Vec<&Value> = loose::rows(points)
        .iter()
        .filter(|p| columns.iter().any(|(key, _)| loose::float(p, key).is_some()))
        .collect();
    let used: Vec<&(&str, &str)> = columns
        .iter()
        .filter(|(key, _)| filled.iter().any(|p| loose::float(p, key).is_some()))
        .collect();
    let mut summary = Map::new();
    for (key, column) in &used {
        let values: Vec<f64> =
            filled.iter().filter_map(|p| loose::float(p, key)).map(|v| scaled(key, v)).collect();
        if let Some(summed) = summarise(&values) {
            summary.insert((*column).to_owned(), summed);
        }
    }
    let mut page = Page::new(limit, None);
    if limit.is_none() {
        page.limit = 24;
    }
    let newest = filled.len().saturating_sub(page.limit);
    let names = std::iter::once("time").chain(used.iter().map(|(_, column)| *column));
    let shown = filled.get(newest..).unwrap_or_default();
    let table = Table::new(names).fill(shown.iter(), Page { offset: 0, ..page }, |point| {
        let time = loose::int(point, "time").map(units::time);
        let cells = used.iter().map(|(key, _)| {
            loose::float(point, key).map_or(Value::Null, |v| number(scaled(key, v)))
        });
        std::iter::once(Value::from(time)).chain(cells).collect()
    });
    let mut value = table.into_value();
    if let Value::Object(map) = &mut value {
        map.insert("total".into(), filled.len().into());
        map.insert("summary".into(), summary.into());
    }
    Answer::new(value).heading(format!(
        "{heading}: newest {} of {} points",
        shown.len(),
        filled.len()
    ))
}

fn summarise(values: &[f64]) -> Option<Value> {
    let newest = *values.last()?;
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    #[allow(clippy::cast_precision_loss)]
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(
        json!({"now": number(newest), "mean": number(mean), "min": number(min), "max": number(max)}),
    )
}

/// CPU and I/O wait come as shares of 1; the columns are percent.
fn scaled(key: &str, value: f64) -> f64 {
    if matches!(key, "cpu" | "iowait") { value * 100.0 } else { value }
}

/// Two decimals for small numbers, none for large ones.
#[allow(clippy::cast_possible_truncation)]
fn number(value: f64) -> Value {
    if value.abs() >= 1000.0 && value.abs() < 9e15 {
        return (value.round() as i64).into();
    }
    let rounded = (value * 100.0).round() / 100.0;
    if rounded.fract() == 0.0 { (rounded as i64).into() } else { rounded.into() }
}

/// `pve_guest_network`
pub async fn network(ctx: Ctx<'_>, args: OneGuest) -> Result<Answer> {
    let guest = ctx.guest(args.vmid).await?;
    let (configured, seen) = match guest.kind {
        GuestKind::Lxc => futures::join!(
            ctx.get_below(&guest, &["config"], Params::new()),
            ctx.get_below(&guest, &["interfaces"], Params::new()),
        ),
        GuestKind::Qemu => futures::join!(
            ctx.get_below(&guest, &["config"], Params::new()),
            ctx.get_below(&guest, &["agent", "network-get-interfaces"], Params::new()),
        ),
    };
    let mut out = Map::new();
    out.insert("vmid".into(), guest.vmid.get().into());
    out.insert("name".into(), guest.name.clone().into());
    match configured {
        Ok(config) => {
            let lines: Vec<Value> = config
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(k, _)| {
                    let rest = k.strip_prefix("net").or_else(|| k.strip_prefix("ipconfig"));
                    rest.is_some_and(|n| n.parse::<u8>().is_ok())
                })
                .map(|(k, v)| json!({"slot": k, "line": v}))
                .collect();
            out.insert("configured".into(), lines.into());
        }
        Err(e) => {
            out.insert("configured_unknown".into(), e.message.into());
        }
    }
    match seen {
        Ok(answer) => match interfaces(&guest, &answer) {
            Ok(found) => {
                out.insert("interfaces".into(), found.into());
            }
            Err(why) => {
                out.insert("interfaces_unknown".into(), why.into());
            }
        },
        Err(e) => {
            let why = agent_state(&guest, &e.message);
            out.insert("interfaces_unknown".into(), why.into());
        }
    }
    Ok(Answer::new(out).heading(title(&guest)).untrusted(&["interfaces"]))
}

/// Why the agent does not answer, in few words (cases F05 of the field list).
fn agent_state(guest: &Guest, message: &str) -> String {
    if guest.status != GuestStatus::Running {
        return format!("the guest is {}", guest.status.as_str());
    }
    if guest.kind == GuestKind::Lxc {
        return message.to_owned();
    }
    if message.contains("No QEMU guest agent configured") {
        return "agent disabled: set agent=1 in the VM's options and install qemu-guest-agent in it"
            .to_owned();
    }
    if message.contains("agent is not running") {
        return "agent not running: install and start qemu-guest-agent in the guest".to_owned();
    }
    message.to_owned()
}

/// Interfaces with their addresses, from either source. An agent can answer
/// with an error object and HTTP 200.
fn interfaces(guest: &Guest, answer: &Value) -> std::result::Result<Vec<Value>, String> {
    if guest.kind == GuestKind::Lxc {
        return Ok(loose::rows(answer).iter().map(container_interface).collect());
    }
    let result = answer.get("result").unwrap_or(answer);
    if let Some(error) = result.get("error") {
        let class = loose::text(error, "class").unwrap_or_default();
        return Err(if class == "CommandNotFound" {
            "not supported by this agent".to_owned()
        } else {
            loose::text(error, "desc").unwrap_or(class)
        });
    }
    Ok(loose::rows(result).iter().map(agent_interface).collect())
}

fn agent_interface(interface: &Value) -> Value {
    let addresses: Vec<String> = loose::rows(interface.get("ip-addresses").unwrap_or(&Value::Null))
        .iter()
        .filter_map(|a| {
            let address = loose::text(a, "ip-address")?;
            Some(match loose::int(a, "prefix") {
                Some(prefix) => format!("{address}/{prefix}"),
                None => address,
            })
        })
        .collect();
    json!({
        "interface": loose::text(interface, "name"),
        "mac": loose::text(interface, "hardware-address"),
        "addresses": addresses,
    })
}

fn container_interface(interface: &Value) -> Value {
    let mut addresses: Vec<String> =
        ["inet", "inet6"].iter().filter_map(|key| loose::text(interface, key)).collect();
    if addresses.is_empty() {
        addresses = loose::rows(interface.get("ip-addresses").unwrap_or(&Value::Null))
            .iter()
            .filter_map(|a| {
                let address = loose::text(a, "ip-address")?;
                Some(match loose::int(a, "prefix") {
                    Some(prefix) => format!("{address}/{prefix}"),
                    None => address,
                })
            })
            .collect();
    }
    json!({
        "interface": loose::text(interface, "name"),
        "mac": loose::text(interface, "hwaddr").or_else(|| loose::text(interface, "hardware-address")),
        "addresses": addresses,
    })
}

/// `pve_list_snapshots`
pub async fn snapshots(ctx: Ctx<'_>, args: OneGuest) -> Result<Answer> {
    let (guest, rows) = ctx.guest_get(args.vmid, &["snapshot"], Params::new()).await?;
    let current = loose::rows(&rows).iter().find(|s| loose::str(s, "name") == Some("current"));
    let now_at = current.and_then(|c| loose::text(c, "parent"));
    let all: Vec<&Value> = real_snapshots(&rows).collect();
    let ordered = tree(&all);
    let table = Table::new(["name", "parent", "depth", "time", "age", "memory", "description"])
        .fill(ordered.iter(), Page { limit: usize::MAX, ..Page::new(None, None) }, |(depth, s)| {
            vec![
                loose::text(s, "name").into(),
                loose::text(s, "parent").into(),
                (*depth).into(),
                loose::int(s, "snaptime").map(units::time).into(),
                loose::int(s, "snaptime").map(age).into(),
                loose::flag(s, "vmstate").into(),
                loose::text(s, "description").map(|d| d.trim_end().to_owned()).into(),
            ]
        });
    let mut answer = table.into_answer(&format!("snapshots of {}", title(&guest)));
    if let Some(parent) = now_at {
        answer = answer.with("current_state_follows", parent);
    }
    Ok(answer)
}

/// Snapshots without the entry `current`, which is none.
pub fn real_snapshots(rows: &Value) -> impl Iterator<Item = &Value> {
    loose::rows(rows).iter().filter(|s| loose::str(s, "name").is_some_and(|n| n != "current"))
}

/// Parents before their children, each with its depth; one whose parent is
/// gone stands at the top.
fn tree<'a>(all: &[&'a Value]) -> Vec<(usize, &'a Value)> {
    let known = |name: &str| all.iter().any(|s| loose::str(s, "name") == Some(name));
    let mut out = Vec::new();
    let roots = all.iter().filter(|s| loose::str(s, "parent").is_none_or(|p| !known(p)));
    let mut stack: Vec<(usize, &'a Value)> = roots.map(|s| (0, *s)).collect();
    stack.sort_by_key(|(_, s)| std::cmp::Reverse(loose::int(s, "snaptime")));
    while let Some((depth, snapshot)) = stack.pop() {
        // A parent loop cannot make the list longer than it is.
        if out.len() >= all.len() {
            break;
        }
        out.push((depth, snapshot));
        let name = loose::str(snapshot, "name");
        let mut children: Vec<_> = all
            .iter()
            .filter(|s| name.is_some() && loose::str(s, "parent") == name)
            .map(|s| (depth + 1, *s))
            .collect();
        children.sort_by_key(|(_, s)| std::cmp::Reverse(loose::int(s, "snaptime")));
        stack.extend(children);
    }
    // Snapshots that only a loop of parents leads to are shown all the same.
    for snapshot in all {
        if !out.iter().any(|(_, s)| std::ptr::eq(*s, *snapshot)) {
            out.push((0, *snapshot));
        }
    }
    out
}

/// How long ago a time was.
pub fn age(epoch: i64) -> String {
    units::duration(u64::try_from(units::now() - epoch).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_stand_under_their_parents() {
        let rows = json!([
            {"name": "c", "parent": "b", "snaptime": 3},
            {"name": "a", "snaptime": 1},
            {"name": "current", "parent": "c"},
            {"name": "b", "parent": "a", "snaptime": "2"},
            {"name": "b2", "parent": "a", "snaptime": 4},
            {"name": "lost", "parent": "gone", "snaptime": 5},
            {"name": "x", "parent": "y", "snaptime": 6},
            {"name": "y", "parent": "x", "snaptime": 7},
        ]);
        let all: Vec<&Value> = real_snapshots(&rows).collect();
        let got: Vec<(usize, &str)> =
            tree(&all).into_iter().map(|(d, s)| (d, s["name"].as_str().unwrap())).collect();
        assert_eq!(got, [(0, "a"), (1, "b"), (2, "c"), (1, "b2"), (0, "lost"), (0, "x"), (0, "y")]);
    }

    #[test]
    fn series_leave_out_empty_points() {
        let points = json!([
            {"time": 60, "cpu": 0.5, "mem": "1048576"},
            {"time": 120},
            {"time": 180, "cpu": 0.25, "mem": 2097152},
        ]);
        let answer = points_answer(
            &points,
            &[("cpu", "cpu_percent"), ("mem", "mem_bytes"), ("disk", "disk_bytes")],
            None,
            "x",
        );
        assert_eq!(answer.structured["columns"], json!(["time", "cpu_percent", "mem_bytes"]));
        assert_eq!(
            answer.structured["rows"][1],
            json!(["1970-01-01T00:03:00+00:00", 25, 2_097_152])
        );
        assert_eq!(
            answer.structured["summary"]["cpu_percent"],
            json!({"now": 25, "mean": 37.5, "min": 25, "max": 50})
        );
    }
}
