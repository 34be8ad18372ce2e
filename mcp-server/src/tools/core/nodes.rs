//! Nodes.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::guest_views::{points_answer, series};
use crate::{
    Result,
    pve::{NodeName, loose},
    render::{Answer, Page, Table, units},
    tools::{
        Ctx,
        args::{MaybeNode, None as NoArgs, Timeframe},
    },
};

/// `pve_list_nodes`
pub async fn list(ctx: Ctx<'_>, _: NoArgs) -> Result<Answer> {
    let nodes = ctx.get(&["nodes"]).await?;
    let mut rows: Vec<&Value> = loose::rows(&nodes).iter().collect();
    rows.sort_by_key(|n| loose::text(n, "node"));
    let missing: Vec<String> = rows
        .iter()
        .filter(|n| loose::str(n, "status") != Some("online"))
        .map(|n| {
            let state = loose::text(n, "status").unwrap_or_else(|| "unknown".to_owned());
            format!("node {} is {state}", loose::text(n, "node").unwrap_or_default())
        })
        .collect();
    let columns = [
        "node",
        "status",
        "cpu_percent",
        "cpus",
        "mem_bytes",
        "maxmem_bytes",
        "mem_percent",
        "rootfs_percent",
        "uptime_s",
    ];
    let table = Table::new(columns)
        .fill(rows.iter(), Page { limit: usize::MAX, ..Page::new(None, None) }, |n| {
            let share = |part: &str, whole: &str| -> Option<f64> {
                Some(units::percent(loose::uint(n, part)?, loose::uint(n, whole)?))
            };
            vec![
                loose::text(n, "node").into(),
                loose::text(n, "status").into(),
                loose::float(n, "cpu").map(|c| (c * 1000.0).round() / 10.0).into(),
                loose::uint(n, "maxcpu").into(),
                loose::uint(n, "mem").into(),
                loose::uint(n, "maxmem").into(),
                share("mem", "maxmem").into(),
                share("disk", "maxdisk").into(),
                loose::uint(n, "uptime").into(),
            ]
        })
        .missing(missing);
    Ok(table.into_answer("nodes"))
}

/// `pve_node_status`
pub async fn status(ctx: Ctx<'_>, args: MaybeNode) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let now = ctx.get(&["nodes", &node, "status"]).await?;
    let mut out = Map::new();
    out.insert("node".into(), node.clone().into());
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(key.to_owned(), value);
        }
    };
    put("version", loose::text(&now, "pveversion").map(Value::from));
    let kernel = now.get("current-kernel").and_then(|k| loose::text(k, "release"));
    put("kernel", kernel.or_else(|| loose::text(&now, "kversion")).map(Value::from));
    put("boot_mode", now.get("boot-info").and_then(|b| loose::text(b, "mode")).map(Value::from));
    let secure = now.get("boot-info").filter(|b| b.get("secureboot").is_some());
    put("secure_boot", secure.map(|b| loose::flag(b, "secureboot").into()));
    put("uptime_s", loose::uint(&now, "uptime").map(Value::from));
    let cpu = loose::float(&now, "cpu").map(|c| (c * 1000.0).round() / 10.0);
    put("cpu_percent", cpu.map(Value::from));
    let wait = loose::float(&now, "wait").map(|c| (c * 1000.0).round() / 10.0);
    put("io_wait_percent", wait.map(Value::from));
    let load: Vec<f64> = loose::rows(now.get("loadavg").unwrap_or(&Value::Null))
        .iter()
        .filter_map(|l| l.as_f64().or_else(|| l.as_str()?.parse().ok()))
        .collect();
    put("load", (!load.is_empty()).then(|| load.into()));
    if let Some(info) = now.get("cpuinfo") {
        put("cpu_model", loose::text(info, "model").map(Value::from));
        put("cpus", loose::uint(info, "cpus").map(Value::from));
        put("sockets", loose::uint(info, "sockets").map(Value::from));
    }
    for (member, name) in [("memory", "mem"), ("swap", "swap"), ("rootfs", "rootfs")] {
        if let Some(space) = now.get(member) {
            let (used, total) = (loose::uint(space, "used"), loose::uint(space, "total"));
            put(&format!("{name}_used_bytes"), used.map(Value::from));
            put(&format!("{name}_total_bytes"), total.map(Value::from));
            let share = used.zip(total).map(|(u, t)| units::percent(u, t));
            put(&format!("{name}_percent"), share.map(Value::from));
        }
    }
    let ksm = now.get("ksm").and_then(|k| loose::uint(k, "shared"));
    put("ksm_shared_bytes", ksm.map(Value::from));
    Ok(Answer::new(out).heading(format!("node {node}")))
}

/// Arguments of `pve_node_metrics`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Metrics {
    node: Option<NodeName>,
    timeframe: Option<Timeframe>,
    max: Option<bool>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
}

/// `pve_node_metrics`
pub async fn metrics(ctx: Ctx<'_>, args: Metrics) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let span = args.timeframe.unwrap_or(Timeframe::Hour);
    let points = ctx.get_with(&["nodes", &node, "rrddata"], series(span, args.max)).await?;
    let columns: &[(&str, &str)] = &[
        ("cpu", "cpu_percent"),
        ("iowait", "io_wait_percent"),
        ("loadavg", "load"),
        ("memused", "mem_used_bytes"),
        ("memtotal", "mem_total_bytes"),
        ("memavailable", "mem_available_bytes"),
        ("arcsize", "zfs_arc_bytes"),
        ("swapused", "swap_used_bytes"),
        ("rootused", "root_used_bytes"),
        ("roottotal", "root_total_bytes"),
        ("netin", "net_in_bytes_s"),
        ("netout", "net_out_bytes_s"),
        ("pressurecpusome", "pressure_cpu_some"),
        ("pressureiosome", "pressure_io_some"),
        ("pressurememorysome", "pressure_memory_some"),
    ];
    Ok(points_answer(&points, columns, args.limit, &format!("node {node}")))
}
