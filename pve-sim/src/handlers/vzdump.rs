//! Making backups, and deciding which old ones go.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::Route;
use super::backup::guests_of;
use super::disks::drop_volume;
use super::power::lock_error;
use super::storages::{missing, sees, usable};
use crate::api::call::{Answer, Call};
use crate::api::failure::Failure;
use crate::api::{params, propstring};
use crate::state::State;
use crate::state::guest::{Guest, Kind};
use crate::state::storage::Volume;
use crate::state::task::Plan;

pub(crate) const ROUTES: &[Route] = &[
    ("POST", "/nodes/{node}/vzdump", backup),
    ("GET", "/nodes/{node}/vzdump/defaults", defaults),
    ("GET", "/nodes/{node}/vzdump/extractconfig", extract),
    ("GET", "/nodes/{node}/storage/{storage}/prunebackups", preview),
    ("DELETE", "/nodes/{node}/storage/{storage}/prunebackups", prune),
];

/// One guest takes this long, milliseconds.
const EACH_MS: i64 = 1500;

fn backup(c: &mut Call<'_>) -> Answer {
    let (node, now) = (c.node(), c.now());
    if !["vmid", "all", "pool"].iter().any(|k| c.params.contains_key(*k)) {
        return Err(Failure::parameter("vmid", "property is missing"));
    }
    for name in ["tmpdir", "dumpdir", "script"] {
        if c.params.contains_key(name) && !c.login.is_root_ticket() {
            return Err(Failure::parameter(name, "Only root may set this option."));
        }
    }
    let storage = c.text("storage").unwrap_or_else(|| "local".to_owned());
    let target = c.state.storages.get(&storage).ok_or_else(|| missing(&storage))?;
    if !target.takes("backup") {
        return Err(Failure::died(format!("storage '{storage}' does not support backups")));
    }
    c.demand(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    let given = c.list("vmid");
    let mut ids: Vec<u32> = given.iter().filter_map(|v| v.parse().ok()).collect();
    if ids.is_empty() {
        let mut job = c.params.clone();
        job.insert("node".to_owned(), json!(node));
        ids = guests_of(c.state, &job).iter().map(|g| g.vmid).collect();
        ids.retain(|id| c.may(&format!("/vms/{id}"), &["VM.Backup"]));
    }
    for id in &ids {
        c.demand(&format!("/vms/{id}"), &["VM.Backup"])?;
    }
    // A guest of another node is another node's work.
    ids.retain(|id| c.state.guests.get(id).is_none_or(|g| g.node == node));
    let order = Order {
        node: node.clone(),
        storage,
        notes: c.text("notes-template"),
        protect: c.flag("protected"),
        prune: c.switch("remove") != Some(false),
        keep: c.text("prune-backups"),
    };
    let options: Vec<String> = c
        .params
        .iter()
        .filter(|(k, _)| !matches!(k.as_str(), "node" | "vmid"))
        .map(|(k, v)| format!("--{k} {}", params::text(v)))
        .collect();
    let log = vec![format!(
        "INFO: starting new backup job: vzdump {} {}",
        given.join(" "),
        options.join(" ")
    )];
    let id = if given.len() == 1 { given.concat() } else { String::new() };
    let mut locked = Vec::new();
    for vmid in &ids {
        if let Some(guest) = c.state.guests.get_mut(vmid).filter(|g| g.lock().is_none()) {
            guest.set_lock("backup", now);
            locked.push(*vmid);
        }
    }
    let takes = EACH_MS * i64::try_from(ids.len().max(1)).unwrap_or(1);
    let plan = Plan::new(&node, "vzdump", &id, takes, move |s, end| run(s, &order, &ids, end));
    c.start(plan.log(&log).holding(locked))
}

struct Order {
    node: String,
    storage: String,
    notes: Option<String>,
    protect: bool,
    prune: bool,
    keep: Option<String>,
}

fn run(state: &mut State, order: &Order, ids: &[u32], end: i64) -> Result<Vec<String>, String> {
    let now = end.div_euclid(1000);
    let mut log = Vec::new();
    let mut failed = false;
    for vmid in ids {
        match one(state, order, *vmid, now) {
            Ok(lines) => log.extend(lines),
            Err(text) => {
                failed = true;
                log.push(format!("ERROR: Backup of VM {vmid} failed - {text}"));
                let at = TimeZone::UTC.to_datetime(Timestamp::from_second(now).unwrap_or_default());
                log.push(format!("INFO: Failed at {}", at.strftime("%Y-%m-%d %H:%M:%S")));
            }
        }
    }
    if failed {
        log.push("INFO: Backup job finished with errors".to_owned());
        log.push("job errors".to_owned());
        return Err(log.join("\n"));
    }
    log.push("INFO: Backup job finished successfully".to_owned());
    Ok(log)
}

fn one(state: &mut State, order: &Order, vmid: u32, now: i64) -> Result<Vec<String>, String> {
    let guest = state.guests.get(&vmid).filter(|g| g.node == order.node);
    let guest = guest.ok_or_else(|| format!("unable to find VM '{vmid}'"))?.clone();
    if let Some(text) = lock_error(&guest) {
        return Err(text);
    }
    usable(state, &order.storage, &order.node).map_err(|f| f.message)?;
    let mut log = vec![format!("INFO: Starting Backup of VM {vmid} ({})", guest.kind.name())];
    let volume = volume(state, order, &guest, now);
    log.push(format!("INFO: creating archive '{}'", volume.volid()));
    state.use_space(&order.storage, &order.node, i64::try_from(volume.size).unwrap_or(0));
    state.volumes.push(volume);
    if order.prune {
        let own = state
            .storages
            .get(&order.storage)
            .and_then(|s| s.options.get("prune-backups"))
            .map(params::text);
        let keep = order.keep.clone().or(own).unwrap_or_else(|| "keep-all=1".to_owned());
        for (volid, _) in marks(state, &order.storage, &order.node, Some(vmid), None, &keep)
            .into_iter()
            .filter(|(_, m)| *m == "remove")
        {
            log.push(format!("INFO: prune older backups: removing backup '{volid}'"));
            drop_volume(state, &order.node, &volid);
        }
    }
    log.push(format!("INFO: Finished Backup of VM {vmid} (00:00:01)"));
    Ok(log)
}

fn volume(state: &State, order: &Order, guest: &Guest, now: i64) -> Volume {
    let stamp = Timestamp::from_second(now).unwrap_or_default();
    let pbs = state.storages.get(&order.storage).is_some_and(|s| s.kind == "pbs");
    let (short, ext) = if guest.kind == Kind::Qemu { ("vm", "vma.zst") } else { ("ct", "tar.zst") };
    let (name, format) = if pbs {
        let time = stamp.strftime("%Y-%m-%dT%H:%M:%SZ");
        (format!("backup/{short}/{}/{time}", guest.vmid), format!("pbs-{short}"))
    } else {
        let time = stamp.strftime("%Y_%m_%d-%H_%M_%S");
        (format!("backup/vzdump-{}-{}-{time}.{ext}", guest.kind.name(), guest.vmid), ext.to_owned())
    };
    let mut v = Volume::new(
        &order.storage,
        &name,
        "backup",
        &format,
        guest.max_disk() / 4 + (64 << 20),
        now,
    );
    v.node = state.volume_node(&order.storage, &order.node);
    v.vmid = Some(guest.vmid);
    v.subtype = Some(guest.kind.name());
    v.notes = order.notes.as_ref().map(|n| {
        n.replace("{{guestname}}", &guest.name())
            .replace("{{vmid}}", &guest.vmid.to_string())
            .replace("{{node}}", &order.node)
    });
    v.protected = order.protect;
    v.config = Some(
        guest.config.iter().map(|(k, v)| format!("{k}: {}\n", v.replace('\n', "%0A"))).collect(),
    );
    v
}

fn defaults(c: &mut Call<'_>) -> Answer {
    let given = c.text("storage");
    if let Some(storage) = &given
        && !c.may(&format!("/storage/{storage}"), &["Datastore.Audit"])
    {
        c.demand(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    }
    let storage = given.unwrap_or_else(|| "local".to_owned());
    let own = c.state.storages.get(&storage).ok_or_else(|| missing(&storage))?;
    // The storage's own retention comes before the defaults of vzdump.
    let retention = own.options.get("prune-backups").map(params::text);
    let mut map = json!({"all": 0, "bwlimit": 0, "compress": "0", "dumpdir": "/var/lib/vz/dump", "fleecing": {"enabled": 0}, "ionice": 7,
        "lockwait": 180, "mailnotification": "always", "mode": "snapshot", "notification-mode": "auto", "performance":
        {"max-workers": 16, "pbs-entries-max": 1_048_576}, "pigz": 0, "prune-backups": "keep-all=1", "quiet": 0, "remove": 1,
        "stdexcludes": 1, "stop": 0, "stopwait": 10, "zstd": 1});
    if let Value::Object(map) = &mut map {
        map.insert("storage".to_owned(), json!(storage));
        if let Some(retention) = retention {
            map.insert("prune-backups".to_owned(), json!(retention));
        }
    }
    Ok(map.into())
}

fn extract(c: &mut Call<'_>) -> Answer {
    let (node, volid) = (c.node(), c.need("volume"));
    let (storage, name) = volid.split_once(':').unwrap_or(("", ""));
    let info = usable(c.state, storage, &node)?;
    super::storages::parse_name(info, name)?;
    let found = c.state.volume(&node, &volid).filter(|v| sees(c, v));
    let v = found.ok_or_else(|| Failure::died(format!("volume '{volid}' does not exist")))?;
    match &v.config {
        Some(text) => Ok(Value::String(text.clone()).into()),
        None => Err(Failure::died(format!("could not extract configuration from '{volid}'"))),
    }
}

/// What pruning would do with each backup: `keep`, `remove` or `protected`.
fn marks(
    state: &State,
    storage: &str,
    node: &str,
    vmid: Option<u32>,
    kind: Option<&str>,
    keep: &str,
) -> Vec<(String, &'static str)> {
    let mut all: Vec<&Volume> = state
        .volumes
        .iter()
        .filter(|v| v.storage == storage && v.content == "backup" && v.seen_from(node))
        .filter(|v| vmid.is_none_or(|id| v.vmid == Some(id)))
        .filter(|v| kind.is_none_or(|k| v.subtype == Some(k)))
        .collect();
    all.sort_by_key(|v| std::cmp::Reverse(v.ctime));
    let guests: BTreeSet<(Option<u32>, Option<&str>)> =
        all.iter().map(|v| (v.vmid, v.subtype)).collect();
    let mut out = Vec::new();
    for group in guests {
        let own: Vec<&&Volume> = all.iter().filter(|v| (v.vmid, v.subtype) == group).collect();
        let kept =
            kept(&own.iter().filter(|v| !v.protected).map(|v| v.ctime).collect::<Vec<_>>(), keep);
        for v in own {
            let mark = if v.protected {
                "protected"
            } else if kept.contains(&v.ctime) {
                "keep"
            } else {
                "remove"
            };
            out.push((v.volid(), mark));
        }
    }
    out
}

/// The times (newest first) that the rules keep.
fn kept(times: &[i64], keep: &str) -> BTreeSet<i64> {
    let number =
        |name: &str| propstring::get(keep, name).and_then(|v| v.parse::<usize>().ok()).unwrap_or(0);
    if number("keep-all") == 1 {
        return times.iter().copied().collect();
    }
    let mut kept: BTreeSet<i64> = times.iter().copied().take(number("keep-last")).collect();
    let rules: [(&str, &str); 5] = [
        ("keep-hourly", "%Y-%m-%d %H"),
        ("keep-daily", "%Y-%m-%d"),
        ("keep-weekly", "%G-%V"),
        ("keep-monthly", "%Y-%m"),
        ("keep-yearly", "%Y"),
    ];
    for (rule, format) in rules {
        let name = |t: i64| {
            let at = TimeZone::UTC.to_datetime(Timestamp::from_second(t).unwrap_or_default());
            at.strftime(format).to_string()
        };
        // A period that something is kept of already counts for nothing.
        let mut covered: BTreeSet<String> = kept.iter().map(|t| name(*t)).collect();
        let mut left = number(rule);
        for t in times {
            if left == 0 {
                break;
            }
            if covered.insert(name(*t)) {
                kept.insert(*t);
                left -= 1;
            }
        }
    }
    kept
}

fn plan(c: &Call<'_>) -> Result<Vec<(String, &'static str)>, Failure> {
    let (storage, node) = (c.need("storage"), c.node());
    let info = usable(c.state, &storage, &node)?;
    let own = info.options.get("prune-backups").map(params::text);
    let keep = c.text("prune-backups").or(own).unwrap_or_else(|| "keep-all=1".to_owned());
    let vmid = c.text("vmid").and_then(|v| v.parse().ok());
    Ok(marks(c.state, &storage, &node, vmid, c.text("type").as_deref(), &keep))
}

fn preview(c: &mut Call<'_>) -> Answer {
    let node = c.node();
    let mut rows = Vec::new();
    for (volid, mark) in plan(c)? {
        let Some(v) = c.state.volume(&node, &volid) else { continue };
        let mut row = Map::new();
        row.insert("volid".to_owned(), json!(volid));
        row.insert("ctime".to_owned(), json!(v.ctime));
        row.insert("mark".to_owned(), json!(mark));
        row.insert("type".to_owned(), json!(v.subtype.unwrap_or("unknown")));
        if let Some(vmid) = v.vmid {
            row.insert("vmid".to_owned(), json!(vmid));
        }
        rows.push(Value::Object(row));
    }
    Ok(Value::Array(rows).into())
}

fn prune(c: &mut Call<'_>) -> Answer {
    let (storage, node) = (c.need("storage"), c.node());
    if !c.may(&format!("/storage/{storage}"), &["Datastore.Allocate"]) {
        c.demand(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
        let vmid = c.text("vmid").ok_or_else(|| {
            Failure::forbidden(&format!("/storage/{storage}, Datastore.Allocate"))
        })?;
        c.demand(&format!("/vms/{vmid}"), &["VM.Backup"])?;
    }
    let plan = plan(c)?;
    let id = match c.text("vmid") {
        Some(vmid) => format!("{vmid}@{storage}"),
        None => storage,
    };
    c.spawn("prunebackups", &id, 400, move |state, _| {
        let mut log = Vec::new();
        for (volid, mark) in plan {
            log.push(format!("{mark:<10} {volid}"));
            if mark == "remove" {
                drop_volume(state, &node, &volid);
            }
        }
        Ok(log)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_rules() {
        let day = 86_400;
        let noon = 20_000 * day + day / 2;
        let times: Vec<i64> = (0..10).map(|n| noon - n * day).collect();
        for (rule, count) in [
            ("keep-all=1", 10),
            ("keep-last=3", 3),
            ("keep-daily=4", 4),
            ("keep-last=1,keep-daily=2", 3),
            ("", 0),
        ] {
            assert_eq!(kept(&times, rule).len(), count, "{rule}");
        }
        let twice = [noon, noon - 60, noon - day];
        assert_eq!(kept(&twice, "keep-daily=2"), [noon, noon - day].into());
    }
}
