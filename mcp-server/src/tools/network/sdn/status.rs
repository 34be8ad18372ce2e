//! What there is, and what of it is pending.

use serde_json::{Map, Value, json};

use super::pending;
use crate::{
    Result,
    pve::{Params, loose},
    render::{Answer, Page, Table},
    tools::{Ctx, across::members, args::None as NoArgs},
};

fn everything() -> Page {
    Page { limit: usize::MAX, ..Page::new(None, None) }
}

/// The value that an object has after applying: the pending one where there is one.
fn next(row: &Value, key: &str) -> Option<String> {
    let waiting = row.get("pending").and_then(|p| loose::text(p, key));
    match waiting.as_deref() {
        Some("deleted") => None,
        Some(_) => waiting,
        None => loose::text(row, key),
    }
}

/// `new`, `changed`, `deleted`, or nothing where nothing is pending.
fn state(row: &Value) -> Value {
    loose::text(row, "state").into()
}

/// The settings of an object after applying, but for those with a column.
fn others(row: &Value, columns: &[&str]) -> Value {
    let mut all = Map::new();
    let waiting = row.get("pending").unwrap_or(&Value::Null);
    for (key, value) in [row, waiting].into_iter().filter_map(Value::as_object).flatten() {
        let told = columns.contains(&key.as_str())
            || matches!(key.as_str(), "digest" | "pending" | "state" | "type");
        if !told && !value.is_null() {
            all.insert(key.clone(), value.clone());
        }
    }
    all.retain(|_, v| v != "deleted");
    if all.is_empty() { Value::Null } else { Value::Object(all) }
}

/// `pve_sdn_status`
pub async fn status(ctx: Ctx<'_>, _: NoArgs) -> Result<Answer> {
    let (zones, vnets, controllers, ipams, nodes) = futures::join!(
        ctx.get_with(&["cluster", "sdn", "zones"], pending()),
        ctx.get_with(&["cluster", "sdn", "vnets"], pending()),
        ctx.get_with(&["cluster", "sdn", "controllers"], pending()),
        ctx.get(&["cluster", "sdn", "ipams"]),
        ctx.get_with(&["cluster", "resources"], Params::new().with("type", "sdn")),
    );
    let (zones, vnets) = (zones?, vnets?);
    let mut missing = Vec::new();
    let mut waiting = 0;
    let mut count = |rows: &Value| {
        waiting += loose::rows(rows).iter().filter(|r| loose::some(r, "state").is_some()).count();
    };
    count(&zones);
    count(&vnets);
    let names: Vec<&str> =
        loose::rows(&vnets).iter().filter_map(|v| loose::str(v, "vnet")).collect();
    let reads = names.iter().map(|vnet| async move {
        (*vnet, ctx.get_with(&["cluster", "sdn", "vnets", vnet, "subnets"], pending()).await)
    });
    let mut subnets = Vec::new();
    for (vnet, rows) in futures::future::join_all(reads).await {
        match rows {
            Ok(rows) => {
                count(&rows);
                subnets.extend(loose::rows(&rows).iter().map(|s| (vnet, s.clone())));
            }
            Err(error) => missing.push(format!("subnets of {vnet}: {}", error.message)),
        }
    }
    if let Ok(rows) = &controllers {
        count(rows);
    }
    let zone_rows = Table::new(["zone", "type", "pending", "settings"]).fill(
        loose::rows(&zones).iter(),
        everything(),
        |z| {
            vec![
                loose::text(z, "zone").into(),
                loose::text(z, "type").into(),
                state(z),
                others(z, &["zone"]),
            ]
        },
    );
    let vnet_rows = Table::new(["vnet", "zone", "tag", "alias", "pending", "settings"]).fill(
        loose::rows(&vnets).iter(),
        everything(),
        |v| {
            vec![
                loose::text(v, "vnet").into(),
                next(v, "zone").into(),
                next(v, "tag").into(),
                next(v, "alias").into(),
                state(v),
                others(v, &["vnet", "zone", "tag", "alias"]),
            ]
        },
    );
    let subnet_rows = Table::new(["subnet", "vnet", "gateway", "pending", "settings"]).fill(
        subnets.iter(),
        everything(),
        |(vnet, s)| {
            let known = ["subnet", "cidr", "vnet", "gateway", "id", "network", "mask", "zone"];
            let cidr = next(s, "cidr").or_else(|| loose::text(s, "subnet"));
            vec![
                cidr.into(),
                (*vnet).into(),
                next(s, "gateway").into(),
                state(s),
                others(s, &known),
            ]
        },
    );
    let broken: Vec<Value> = nodes
        .iter()
        .flat_map(|rows| loose::rows(rows))
        .filter(|r| loose::str(r, "status").is_some_and(|s| !matches!(s, "ok" | "available")))
        .map(|r| json!({"node": loose::text(r, "node"), "sdn": loose::text(r, "sdn"), "status": loose::text(r, "status")}))
        .collect();
    let listed = |rows: &Result<std::sync::Arc<Value>>| {
        rows.as_ref().map_or(Value::Null, |rows| {
            loose::rows(rows).iter().map(|r| members(r, &["digest"])).collect()
        })
    };
    let mut out = json!({
        "zones": zone_rows.into_value(),
        "vnets": vnet_rows.into_value(),
        "subnets": subnet_rows.into_value(),
        "controllers": listed(&controllers),
        "ipams": listed(&ipams),
        "pending": waiting,
        "not_well": broken,
    });
    if let (Value::Object(map), false) = (&mut out, missing.is_empty()) {
        map.insert("partial".into(), true.into());
        map.insert("missing".into(), missing.into());
    }
    let heading = match waiting {
        0 => "nothing is pending".to_owned(),
        n => format!("{n} objects wait for pve_sdn_apply"),
    };
    Ok(Answer::new(out).heading(heading).untrusted(&["vnets", "controllers"]))
}
