//! Guests of both kinds: the list, one in short, its state, its configuration.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Code, Error, Result,
    insight::estate::{Guest, GuestKind},
    pve::{NodeName, Params, Vmid, loose},
    render::{Answer, Page, Table, units},
    tools::{Ctx, args::OneGuest, validate},
};

/// Kind of guest.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Qemu,
    Lxc,
}

/// Arguments of `pve_list_vms`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct List {
    /// Part of name or VMID; `*` for anything.
    name: Option<String>,
    tag: Option<String>,
    pool: Option<String>,
    node: Option<NodeName>,
    status: Option<String>,
    r#type: Option<Kind>,
    template: Option<bool>,
    /// `-` before a field sorts downwards.
    sort: Option<String>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
    #[schemars(range(min = 0))]
    offset: Option<usize>,
    /// More columns: cpu, cpus, mem, maxmem, disk, maxdisk, uptime, tags, pool, template, lock, ha.
    fields: Option<Vec<String>>,
}

/// A column of the guest list.
struct Field {
    /// What it is called in `fields` and `sort`.
    name: &'static str,
    /// What it is called in the answer, with its unit.
    column: &'static str,
    value: fn(&Guest) -> Value,
}

const FIELDS: &[Field] = &[
    Field { name: "vmid", column: "vmid", value: |g| g.vmid.get().into() },
    Field { name: "name", column: "name", value: |g| g.name.clone().into() },
    Field { name: "type", column: "type", value: |g| g.kind.as_str().into() },
    Field { name: "node", column: "node", value: |g| (&*g.node).into() },
    Field { name: "status", column: "status", value: |g| g.status.as_str().into() },
    Field {
        name: "cpu",
        column: "cpu_percent",
        value: |g| g.cpu.map(|c| (c * 1000.0).round() / 10.0).into(),
    },
    Field { name: "cpus", column: "cpus", value: |g| g.maxcpu.into() },
    Field { name: "mem", column: "mem_bytes", value: |g| g.mem.into() },
    Field { name: "maxmem", column: "maxmem_bytes", value: |g| g.maxmem.into() },
    Field { name: "disk", column: "disk_bytes", value: |g| g.disk.into() },
    Field { name: "maxdisk", column: "maxdisk_bytes", value: |g| g.maxdisk.into() },
    Field { name: "uptime", column: "uptime_s", value: |g| g.uptime.into() },
    Field { name: "tags", column: "tags", value: |g| g.tags().join(";").into() },
    Field { name: "pool", column: "pool", value: |g| g.pool.as_deref().into() },
    Field { name: "template", column: "template", value: |g| g.template.into() },
    Field { name: "lock", column: "lock", value: |g| g.lock.clone().into() },
    Field { name: "ha", column: "ha", value: |g| g.hastate.clone().into() },
];

/// Columns that are always there.
const DEFAULT_FIELDS: usize = 5;

fn field(name: &str, argument: &str) -> Result<&'static Field> {
    FIELDS.iter().find(|f| f.name == name || f.column == name).ok_or_else(|| {
        let names: Vec<&str> = FIELDS.iter().map(|f| f.name).collect();
        let known = format!("known: {}", names.join(", "));
        let hint = match validate::nearest(name, names.into_iter()) {
            Some(near) => format!("did you mean {near}? {known}"),
            None => known,
        };
        Error::argument(format!("argument `{argument}` names no field {name:?}"))
            .hint(hint)
            .with("argument", argument)
    })
}

/// Refuses a filter that can fit nothing, which an empty list would not tell.
async fn filters_exist(ctx: Ctx<'_>, args: &List) -> Result<()> {
    let known = ["running", "stopped", "paused", "suspended", "unknown"];
    if let Some(status) = &args.status
        && !known.contains(&status.to_lowercase().as_str())
    {
        return Err(Error::argument(format!("there is no status {status:?}"))
            .hint(format!("known: {}", known.join(", ")))
            .with("argument", "status"));
    }
    if let Some(node) = &args.node {
        ctx.node(node.as_str()).await?;
    }
    if let Some(pool) = &args.pool {
        let pools = ctx.get(&["pools"]).await?;
        let ids: Vec<&str> =
            loose::rows(&pools).iter().filter_map(|p| loose::str(p, "poolid")).collect();
        if !ids.contains(&pool.as_str()) {
            return Err(Error::new(Code::NotFound, format!("there is no pool {pool:?}"))
                .hint(format!("pools: {}", ids.join(", "))));
        }
    }
    Ok(())
}

/// `pve_list_vms`
pub async fn list(ctx: Ctx<'_>, args: List) -> Result<Answer> {
    let mut fields: Vec<&Field> = FIELDS.iter().take(DEFAULT_FIELDS).collect();
    for name in args.fields.iter().flatten() {
        let found = field(name, "fields")?;
        if !fields.iter().any(|f| f.name == found.name) {
            fields.push(found);
        }
    }
    let sort = match args.sort.as_deref() {
        Some(sort) => {
            let down = sort.starts_with('-');
            Some((field(sort.trim_start_matches('-'), "sort")?, down))
        }
        None => None,
    };
    filters_exist(ctx, &args).await?;
    let all = ctx.guests().await?;
    let filter = Filter::new(&args);
    let mut guests: Vec<&Guest> = all.iter().filter(|g| filter.takes(g)).collect();
    match sort {
        Some((field, down)) => {
            guests.sort_by(|a, b| {
                let order = compare(&(field.value)(a), &(field.value)(b));
                if down { order.reverse() } else { order }
            });
        }
        None if !all.is_sorted_by_key(|g| g.vmid) => guests.sort_by_key(|g| g.vmid),
        None => {}
    }
    let page = Page::new(args.limit, args.offset);
    let mut table = Table::new(fields.iter().map(|f| f.column))
        .fill(guests.iter(), page, |g| fields.iter().map(|f| (f.value)(g)).collect());
    table = table.missing(offline_nodes(ctx).await);
    if all.is_empty() {
        let why = ctx.nothing_visible().await;
        if why.code == crate::Code::Forbidden {
            table = table.missing([format!("{}. {}", why.message, why.hint)]);
        }
    }
    Ok(table.into_answer("guests"))
}

/// Nodes that are offline: what is shown of their guests is the last that was known.
async fn offline_nodes(ctx: Ctx<'_>) -> Vec<String> {
    let Ok(nodes) = ctx.get(&["nodes"]).await else { return Vec::new() };
    loose::rows(&nodes)
        .iter()
        .filter(|n| loose::str(n, "status") == Some("offline"))
        .filter_map(|n| loose::text(n, "node"))
        .map(|n| format!("node {n} is offline: its guests may be missing or out of date"))
        .collect()
}

struct Filter<'a> {
    args: &'a List,
    name: Option<String>,
    tag: Option<String>,
    status: Option<String>,
}

impl<'a> Filter<'a> {
    fn new(args: &'a List) -> Self {
        let lower = |text: &Option<String>| text.as_ref().map(|t| t.to_lowercase());
        Self { args, name: lower(&args.name), tag: lower(&args.tag), status: lower(&args.status) }
    }

    fn takes(&self, guest: &Guest) -> bool {
        let args = self.args;
        let name = self.name.as_ref().is_none_or(|wanted| {
            like(wanted, &guest.name.to_lowercase()) || *wanted == guest.vmid.to_string()
        });
        name && self.tag.as_ref().is_none_or(|tag| guest.has_tag(tag))
            && args.pool.as_deref().is_none_or(|pool| guest.pool.as_deref() == Some(pool))
            && args.node.as_ref().is_none_or(|node| &*guest.node == node.as_str())
            && self.status.as_ref().is_none_or(|status| status == guest.status.as_str())
            && args.template.is_none_or(|template| guest.template == template)
            && args.r#type.is_none_or(|kind| match kind {
                Kind::Qemu => guest.kind == GuestKind::Qemu,
                Kind::Lxc => guest.kind == GuestKind::Lxc,
            })
    }
}

/// Whether a name holds the wanted part; with `*` the whole name has to fit.
fn like(wanted: &str, name: &str) -> bool {
    if !wanted.contains('*') {
        return name.contains(wanted);
    }
    let mut rest = name;
    let parts: Vec<&str> = wanted.split('*').collect();
    let last = parts.len() - 1;
    for (i, part) in parts.iter().enumerate() {
        if i == 0 {
            let Some(after) = rest.strip_prefix(part) else { return false };
            rest = after;
        } else if i == last {
            return rest.ends_with(part);
        } else {
            let Some(at) = rest.find(part) else { return false };
            rest = rest.get(at + part.len()..).unwrap_or_default();
        }
    }
    true
}

/// Numbers by size, text by letter, absent last.
fn compare(a: &Value, b: &Value) -> std::cmp::Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0))
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Null, Value::Null) => std::cmp::Ordering::Equal,
        (Value::Null, _) => std::cmp::Ordering::Greater,
        (_, Value::Null) => std::cmp::Ordering::Less,
        _ => std::cmp::Ordering::Equal,
    }
}

/// `pve_vm_status`
pub async fn status(ctx: Ctx<'_>, args: OneGuest) -> Result<Answer> {
    let (guest, now) = ctx.guest_get(args.vmid, &["status", "current"], Params::new()).await?;
    Ok(Answer::new(state(&guest, &now)).heading(title(&guest)))
}

/// `guest 100 web (qemu on pve1)`
pub fn title(guest: &Guest) -> String {
    format!("guest {} ({} on {})", guest.vmid, guest.kind.as_str(), guest.node)
}

/// A guest's state from `status/current`, by fixed names with units.
fn state(guest: &Guest, now: &Value) -> Map<String, Value> {
    let mut out = identity(guest);
    out.insert(
        "status".into(),
        loose::text(now, "status").unwrap_or_else(|| guest.status.as_str().to_owned()).into(),
    );
    let qmp = loose::text(now, "qmpstatus");
    if qmp.is_some() && qmp != loose::text(now, "status") {
        put(&mut out, "qmp_status", qmp);
    }
    put(&mut out, "uptime_s", loose::uint(now, "uptime"));
    put(&mut out, "cpu_percent", loose::float(now, "cpu").map(|c| (c * 1000.0).round() / 10.0));
    put(&mut out, "cpus", loose::float(now, "cpus"));
    for (key, column) in [
        ("mem", "mem_bytes"),
        ("maxmem", "maxmem_bytes"),
        ("memhost", "mem_host_bytes"),
        ("swap", "swap_bytes"),
        ("maxswap", "maxswap_bytes"),
        ("disk", "disk_bytes"),
        ("maxdisk", "maxdisk_bytes"),
        ("netin", "net_in_bytes"),
        ("netout", "net_out_bytes"),
        ("diskread", "disk_read_bytes"),
        ("diskwrite", "disk_write_bytes"),
        ("balloon", "balloon_bytes"),
    ] {
        put(&mut out, column, loose::uint(now, key));
    }
    for key in [
        "pressurecpusome",
        "pressurecpufull",
        "pressureiosome",
        "pressureiofull",
        "pressurememorysome",
        "pressurememoryfull",
    ] {
        put(&mut out, key, loose::float(now, key));
    }
    put(&mut out, "lock", loose::text(now, "lock"));
    put(&mut out, "tags", loose::str(now, "tags").map(|t| loose::tags(t).join(";")));
    if let Some(ha) = now.get("ha")
        && loose::flag(ha, "managed")
    {
        put(&mut out, "ha", loose::text(ha, "state").or_else(|| Some("managed".to_owned())));
    }
    if now.get("agent").is_some() {
        out.insert("agent_enabled".into(), loose::flag(now, "agent").into());
    }
    for (key, column) in [("running-machine", "machine"), ("running-qemu", "qemu_version")] {
        put(&mut out, column, loose::text(now, key));
    }
    if loose::flag(now, "template") {
        out.insert("template".into(), true.into());
    }
    out
}

fn identity(guest: &Guest) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("vmid".into(), guest.vmid.get().into());
    out.insert("name".into(), guest.name.clone().into());
    out.insert("type".into(), guest.kind.as_str().into());
    out.insert("node".into(), (&*guest.node).into());
    out
}

fn put(out: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        out.insert(key.to_owned(), value.into());
    }
}

/// Which configuration.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// As the running guest has it.
    #[default]
    Current,
    /// Only what differs: running, and after the next start.
    Pending,
}

/// Arguments of `pve_vm_config`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Config {
    vmid: Vmid,
    view: Option<View>,
    snapshot: Option<String>,
}

/// `pve_vm_config`
pub async fn config(ctx: Ctx<'_>, args: Config) -> Result<Answer> {
    if let (Some(View::Pending), None) = (args.view, &args.snapshot) {
        let (guest, rows) = ctx.guest_get(args.vmid, &["pending"], Params::new()).await?;
        let changes = pending(&rows);
        return Ok(Answer::new(with(identity(&guest), "pending", changes))
            .heading(title(&guest))
            .untrusted(&["pending"]));
    }
    let params = match &args.snapshot {
        Some(name) => Params::new().with("snapshot", name),
        None => Params::new().with("current", 1),
    };
    let (guest, config) = ctx.guest_get(args.vmid, &["config"], params).await?;
    let mut out = identity(&guest);
    put(&mut out, "snapshot", args.snapshot);
    put(&mut out, "digest", loose::text(&config, "digest"));
    out.insert("config".into(), readable(&config));
    Ok(Answer::new(out).heading(title(&guest)).untrusted(&["config"]))
}

/// A configuration without what stands beside it, in a steady order.
fn readable(config: &Value) -> Value {
    let mut keys: Vec<(&String, &Value)> = config
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(k, v)| *k != "digest" && !v.is_null() && v.as_str() != Some(""))
        .collect();
    keys.sort_by(|a, b| natural(a.0).cmp(&natural(b.0)));
    keys.into_iter().map(|(k, v)| (k.clone(), v.clone())).collect::<Map<_, _>>().into()
}

/// `net10` after `net9`.
fn natural(key: &str) -> (&str, u64) {
    let name = key.trim_end_matches(|c: char| c.is_ascii_digit());
    (name, key.get(name.len()..).and_then(|n| n.parse().ok()).unwrap_or(0))
}

/// What differs between the running guest and its next start.
fn pending(rows: &Value) -> Vec<Value> {
    loose::rows(rows)
        .iter()
        .filter_map(|row| {
            let key = loose::text(row, "key")?;
            let deleted = loose::flag(row, "delete");
            let after = row.get("pending");
            if after.is_none() && !deleted {
                return None;
            }
            let mut change = Map::new();
            change.insert("key".into(), key.into());
            change.insert("now".into(), row.get("value").cloned().unwrap_or(Value::Null));
            let after =
                if deleted { json!("(removed)") } else { after.cloned().unwrap_or(Value::Null) };
            change.insert("after_restart".into(), after);
            Some(Value::Object(change))
        })
        .collect()
}

fn with(mut map: Map<String, Value>, key: &str, value: impl Into<Value>) -> Map<String, Value> {
    map.insert(key.to_owned(), value.into());
    map
}

/// `pve_guest_details`
pub async fn details(ctx: Ctx<'_>, args: OneGuest) -> Result<Answer> {
    let (guest, now) = ctx.guest_get(args.vmid, &["status", "current"], Params::new()).await?;
    let (config, changes, snapshots) = futures::join!(
        ctx.get_below(&guest, &["config"], Params::new().with("current", 1)),
        ctx.get_below(&guest, &["pending"], Params::new()),
        ctx.get_below(&guest, &["snapshot"], Params::new()),
    );
    let mut out = state(&guest, &now);
    put(&mut out, "pool", guest.pool.as_deref());
    let mut missing = Vec::new();
    match config {
        Ok(config) => describe(&mut out, &guest, &config),
        Err(e) => missing.push(format!("configuration: {}", e.message)),
    }
    match changes {
        Ok(rows) => {
            let changes = pending(&rows);
            if !changes.is_empty() {
                out.insert("pending".into(), changes.into());
            }
        }
        Err(e) => missing.push(format!("pending changes: {}", e.message)),
    }
    match snapshots {
        Ok(rows) => {
            let names: Vec<Value> = super::guest_views::real_snapshots(&rows)
                .map(|s| {
                    json!({
                        "name": loose::text(s, "name"),
                        "age": loose::int(s, "snaptime").map(super::guest_views::age),
                    })
                })
                .collect();
            out.insert("snapshots".into(), names.into());
        }
        Err(e) => missing.push(format!("snapshots: {}", e.message)),
    }
    if !missing.is_empty() {
        out.insert("partial".into(), true.into());
        out.insert("missing".into(), missing.into());
    }
    Ok(Answer::new(out).heading(title(&guest)).untrusted(&["notes", "pending"]))
}

/// What a configuration says that a person asks about.
fn describe(out: &mut Map<String, Value>, guest: &Guest, config: &Value) {
    put(out, "os", loose::text(config, "ostype"));
    put(out, "onboot", Some(loose::flag(config, "onboot")));
    put(out, "protection", Some(loose::flag(config, "protection")));
    if guest.kind == GuestKind::Lxc {
        put(out, "unprivileged", Some(loose::flag(config, "unprivileged")));
        put(out, "features", loose::text(config, "features"));
    } else {
        for key in ["cpu", "machine", "bios", "boot", "agent"] {
            put(out, key, loose::text(config, key));
        }
    }
    put(out, "cores", loose::int(config, "cores"));
    put(out, "memory_mib", loose::int(config, "memory"));
    let mut disks = Vec::new();
    let mut networks = Vec::new();
    let members: Vec<(&String, &Value)> = config.as_object().into_iter().flatten().collect();
    let mut members = members;
    members.sort_by(|a, b| natural(a.0).cmp(&natural(b.0)));
    for (key, value) in members {
        let Some(text) = value.as_str() else { continue };
        match natural(key).0 {
            "scsi" | "virtio" | "sata" | "ide" | "efidisk" | "tpmstate" | "rootfs" | "mp"
            | "unused" => {
                disks.push(json!({"slot": key, "line": text}));
            }
            "net" | "ipconfig" => networks.push(json!({"slot": key, "line": text})),
            _ => {}
        }
    }
    out.insert("disks".into(), disks.into());
    out.insert("network".into(), networks.into());
    put(out, "digest", loose::text(config, "digest"));
    put(out, "notes", loose::text(config, "description"));
    put(out, "created", created(config));
}

/// When a VM was made, which its `meta` line says (`creation-qemu=10.0.2,ctime=1795996245`).
fn created(config: &Value) -> Option<String> {
    let meta = loose::str(config, "meta")?;
    let epoch = meta.split(',').find_map(|p| p.strip_prefix("ctime="))?.parse().ok()?;
    Some(units::time(epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_by_part_or_pattern() {
        for (wanted, name, want) in [
            ("web", "my-web-01", true),
            ("web", "db", false),
            ("web*", "web-01", true),
            ("web*", "my-web", false),
            ("*-01", "web-01", true),
            ("w*b*1", "web-01", true),
            ("w*b*2", "web-01", false),
            ("*", "", true),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(like(wanted, name), want, "{wanted} {name}");
        }
    }

    #[test]
    fn pending_shows_only_differences() {
        let rows = json!([
            {"key": "cores", "value": 2, "pending": 4},
            {"key": "memory", "value": "512"},
            {"key": "net1", "value": "x", "delete": 1},
        ]);
        assert_eq!(
            Value::from(pending(&rows)),
            json!([
                {"key": "cores", "now": 2, "after_restart": 4},
                {"key": "net1", "now": "x", "after_restart": "(removed)"},
            ])
        );
    }
}
