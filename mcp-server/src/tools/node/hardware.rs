//! What a node is made of: disks, PCI and USB devices, certificates.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Error, Result,
    pve::{NodeName, Params, loose},
    render::{Answer, Page, Table, units},
    tools::{Ctx, across::members, args::MaybeNode},
};

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Fewer days than this are told in the heading.
const SOON: i64 = 30;
/// A disk with less of its life left, in percent, is told in the heading.
const WORN: f64 = 20.0;

fn everything() -> Page {
    Page { limit: usize::MAX, ..Page::new(None, None) }
}

/// `pve_list_certificates`
pub async fn certificates(ctx: Ctx<'_>, args: MaybeNode) -> Result<Answer> {
    let across = ctx.across(args.node.as_ref(), &["certificates", "info"], Params::new()).await?;
    let mut rows: Vec<(&str, &Value)> = across.rows().collect();
    rows.sort_by_key(|(_, c)| loose::int(c, "notafter"));
    let now = units::now();
    let days = |c: &Value| loose::int(c, "notafter").map(|end| (end - now).div_euclid(DAY));
    let soon = rows.iter().filter(|(_, c)| days(c).is_some_and(|d| d < SOON)).count();
    let columns =
        ["node", "file", "days_left", "expires", "subject", "issuer", "names", "fingerprint"];
    let table = Table::new(columns)
        .fill(rows.iter(), everything(), |(node, c)| {
            let names: Vec<String> = loose::rows(c.get("san").unwrap_or(&Value::Null))
                .iter()
                .filter_map(|n| n.as_str().map(str::to_owned))
                .collect();
            vec![
                (*node).into(),
                loose::text(c, "filename").into(),
                days(c).into(),
                loose::int(c, "notafter").map(units::time).into(),
                loose::text(c, "subject").into(),
                loose::text(c, "issuer").into(),
                names.join(" ").into(),
                loose::text(c, "fingerprint").into(),
            ]
        })
        .missing(across.missing.clone());
    let things = match soon {
        0 => "certificates".to_owned(),
        n => format!("certificates, {n} with fewer than {SOON} days left"),
    };
    Ok(table.into_answer(&things).untrusted(&["rows"]))
}

/// Arguments of `pve_list_disks`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Disks {
    node: Option<NodeName>,
    /// As /dev/sda.
    disk: Option<String>,
    unused: Option<bool>,
}

/// `pve_list_disks`
pub async fn disks(ctx: Ctx<'_>, args: Disks) -> Result<Answer> {
    if let Some(disk) = &args.disk {
        return smart(ctx, args.node.as_ref(), disk).await;
    }
    let params = Params::new().with_some("type", args.unused.filter(|u| *u).map(|_| "unused"));
    let across = ctx.across(args.node.as_ref(), &["disks", "list"], params).await?;
    let mut rows: Vec<(&str, &Value)> = across.rows().collect();
    rows.sort_by_key(|(node, d)| ((*node).to_owned(), loose::text(d, "devpath")));
    let failing = rows.iter().filter(|(_, d)| is_failing(d)).count();
    let worn =
        rows.iter().filter(|(_, d)| loose::float(d, "wearout").is_some_and(|w| w < WORN)).count();
    let columns = [
        "node",
        "disk",
        "type",
        "model",
        "serial",
        "size_bytes",
        "used_for",
        "health",
        "life_left_percent",
    ];
    let table = Table::new(columns)
        .fill(rows.iter(), everything(), |(node, d)| {
            let known = |key: &str| loose::text(d, key).filter(|t| t != "unknown");
            vec![
                (*node).into(),
                loose::text(d, "devpath").into(),
                known("type").into(),
                known("model").into(),
                known("serial").into(),
                loose::uint(d, "size").into(),
                loose::text(d, "used").into(),
                loose::text(d, "health").into(),
                // "N/A" where the disk does not tell.
                loose::float(d, "wearout").into(),
            ]
        })
        .missing(across.missing.clone());
    let mut things = "disks".to_owned();
    if failing > 0 {
        things.push_str(&format!(", {failing} failing"));
    }
    if worn > 0 {
        things.push_str(&format!(", {worn} worn"));
    }
    Ok(table.into_answer(&things))
}

/// A SMART verdict that is no good one; a disk that says nothing is not failing.
fn is_failing(disk: &Value) -> bool {
    loose::text(disk, "health").is_some_and(|h| !matches!(h.as_str(), "PASSED" | "OK" | "UNKNOWN"))
}

async fn smart(ctx: Ctx<'_>, node: Option<&NodeName>, disk: &str) -> Result<Answer> {
    let form = disk.strip_prefix("/dev/").is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'/')
    });
    if !form {
        return Err(Error::argument(format!("argument `disk` cannot be {disk:?}"))
            .hint("a device, as /dev/sda or /dev/nvme0n1")
            .with("argument", "disk"));
    }
    let node = ctx.node_or_only(node).await?;
    let params = Params::new().with("disk", disk);
    let found = ctx.get_with(&["nodes", &node, "disks", "smart"], params).await?;
    let attributes: Vec<Value> = loose::rows(found.get("attributes").unwrap_or(&Value::Null))
        .iter()
        .map(|a| {
            json!({
                "id": loose::text(a, "id").map(|i| i.trim().to_owned()),
                "name": loose::text(a, "name"),
                "value": loose::int(a, "value"),
                "worst": loose::int(a, "worst"),
                "threshold": loose::int(a, "threshold"),
                "raw": loose::text(a, "raw"),
                "fail": loose::text(a, "fail").filter(|f| f != "-"),
            })
        })
        .collect();
    let health = loose::text(&found, "health");
    let heading =
        format!("{disk} of {node}: {}", health.clone().unwrap_or_else(|| "unknown".to_owned()));
    Ok(Answer::new(json!({
        "node": node, "disk": disk, "health": health, "type": loose::text(&found, "type"),
        "attributes": attributes, "text": loose::text(&found, "text"),
    }))
    .heading(heading)
    .untrusted(&["text"]))
}

/// `pve_list_hardware`
pub async fn devices(ctx: Ctx<'_>, args: MaybeNode) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let (pci, usb) = (["nodes", &node, "hardware", "pci"], ["nodes", &node, "hardware", "usb"]);
    let (pci, usb) = futures::join!(ctx.get(&pci), ctx.get(&usb));
    let mut missing = Vec::new();
    if let (Err(pci), Err(_)) = (&pci, &usb) {
        return Err(pci.clone());
    }
    let mut list = |kind: &str, rows: Result<std::sync::Arc<Value>>| match rows {
        Ok(rows) => rows,
        Err(error) => {
            missing.push(format!("{kind}: {}", error.message));
            std::sync::Arc::new(Value::Array(Vec::new()))
        }
    };
    let (pci, usb) = (list("PCI", pci), list("USB", usb));
    let pci_table = Table::new(["id", "class", "vendor", "device", "iommu_group", "mdev"]).fill(
        loose::rows(&pci).iter(),
        everything(),
        |d| {
            let name = |name: &str, id: &str| loose::text(d, name).or_else(|| loose::text(d, id));
            vec![
                loose::text(d, "id").into(),
                loose::text(d, "class").map(|c| class(&c)).into(),
                name("vendor_name", "vendor").into(),
                name("device_name", "device").into(),
                // -1 without an IOMMU: such a device cannot be passed through.
                loose::int(d, "iommugroup").filter(|g| *g >= 0).into(),
                loose::flag(d, "mdev").into(),
            ]
        },
    );
    let usb_table = Table::new(["id", "path", "manufacturer", "product", "speed_mbit", "serial"])
        .fill(loose::rows(&usb).iter(), everything(), |d| {
            let id = loose::text(d, "vendid").zip(loose::text(d, "prodid"));
            let path = loose::text(d, "busnum").zip(loose::text(d, "usbpath"));
            vec![
                id.map(|(v, p)| format!("{v}:{p}")).into(),
                path.map(|(bus, port)| format!("{bus}-{port}")).into(),
                loose::text(d, "manufacturer").into(),
                loose::text(d, "product").into(),
                loose::float(d, "speed").into(),
                loose::text(d, "serial").into(),
            ]
        });
    let heading =
        format!("{} PCI and {} USB devices of {node}", pci_table.total(), usb_table.total());
    let mut out =
        json!({"node": node, "pci": pci_table.into_value(), "usb": usb_table.into_value()});
    if let (Value::Object(map), false) = (&mut out, missing.is_empty()) {
        map.insert("partial".into(), true.into());
        map.insert("missing".into(), missing.into());
    }
    Ok(Answer::new(out).heading(heading))
}

/// PCI classes that people look for, by the first two digits.
fn class(code: &str) -> String {
    let digits = code.trim_start_matches("0x");
    let name = match digits.get(..2) {
        Some("01") => "storage",
        Some("02") => "network",
        Some("03") => "display",
        Some("04") => "multimedia",
        Some("0b") => "processor",
        Some("0c") => "serial bus",
        Some("12") => "accelerator",
        _ => return code.to_owned(),
    };
    format!("{name} ({code})")
}

/// `pve_node_settings`
pub async fn settings(ctx: Ctx<'_>, args: MaybeNode) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let at = |name: &'static str| {
        let node = node.clone();
        async move { ctx.get(&["nodes", &node, name]).await }
    };
    let (dns, hosts, time, subscription, config) =
        futures::join!(at("dns"), at("hosts"), at("time"), at("subscription"), at("config"));
    if let (Err(error), Err(_), Err(_), Err(_)) = (&dns, &hosts, &time, &subscription) {
        return Err(error.clone());
    }
    let mut missing = Vec::new();
    let mut take = |name: &str, value: Result<std::sync::Arc<Value>>| match value {
        Ok(value) => Some(value),
        Err(error) => {
            missing.push(format!("{name}: {}", error.message));
            None
        }
    };
    let dns = take("dns", dns).map(|d| {
        let servers: Vec<String> =
            ["dns1", "dns2", "dns3"].iter().filter_map(|k| loose::text(&d, k)).collect();
        json!({"search": loose::text(&d, "search"), "servers": servers})
    });
    let hosts = take("hosts", hosts);
    let time = take("time", time).map(|t| {
        json!({"time_zone": loose::text(&t, "timezone"), "time": loose::int(&t, "time").map(units::time)})
    });
    let subscription = take("subscription", subscription)
        .map(|s| members(&s, &["key", "serverid", "signature", "url", "checktime", "regdate"]));
    let config = take("config", config).map(|c| members(&c, &["digest"]));
    let mut out = json!({
        "node": node,
        "dns": dns,
        "time": time,
        "subscription": subscription,
        "config": config,
        "hosts": hosts.as_deref().and_then(|h| loose::text(h, "data")),
        "hosts_digest": hosts.as_deref().and_then(|h| loose::text(h, "digest")),
    });
    if let (Value::Object(map), false) = (&mut out, missing.is_empty()) {
        map.insert("partial".into(), true.into());
        map.insert("missing".into(), missing.into());
    }
    Ok(Answer::new(out).heading(format!("settings of {node}")).untrusted(&["hosts", "config"]))
}
