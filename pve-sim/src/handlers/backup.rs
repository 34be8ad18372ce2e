//! Backup jobs, and which guests they cover.

use serde_json::{Map, Value, json};

use super::{Route, calendar};
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;
use crate::api::params::{self, split_list};
use crate::api::propstring;
use crate::state::State;
use crate::state::guest::{Guest, Kind};

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/cluster/backup", list),
    ("POST", "/cluster/backup", create),
    ("GET", "/cluster/backup/{id}", read),
    ("PUT", "/cluster/backup/{id}", update),
    ("DELETE", "/cluster/backup/{id}", delete),
    ("GET", "/cluster/backup/{id}/included_volumes", included),
    ("GET", "/cluster/backup-info", |_| Ok(json!([{"subdir": "not-backed-up"}]).into())),
    ("GET", "/cluster/backup-info/not-backed-up", not_backed_up),
];

type Job = Map<String, Value>;

/// The guests of a job: by number, by pool, or all but some.
pub(crate) fn guests_of<'a>(state: &'a State, job: &Job) -> Vec<&'a Guest> {
    let get = |name: &str| job.get(name).map(params::text).unwrap_or_default();
    let node = get("node");
    let on_node = |g: &&Guest| node.is_empty() || g.node == node;
    if job.get("all").is_some_and(|a| params::text(a) == "1") {
        let exclude = split_list(&get("exclude"));
        let kept = |g: &&Guest| !exclude.contains(&g.vmid.to_string());
        return state.guests.values().filter(kept).filter(on_node).collect();
    }
    let pool = get("pool");
    if !pool.is_empty() {
        let ids = state.pools.get(&pool).map(|p| p.guests.clone()).unwrap_or_default();
        return state.guests.values().filter(|g| ids.contains(&g.vmid)).filter(on_node).collect();
    }
    let ids = split_list(&get("vmid"));
    state.guests.values().filter(|g| ids.contains(&g.vmid.to_string())).filter(on_node).collect()
}

fn list(c: &mut Call<'_>) -> Answer {
    let now = c.now();
    let rows = c
        .state
        .backup_jobs
        .values()
        .map(|job| {
            let mut row = job.clone();
            let next = job
                .get("schedule")
                .and_then(Value::as_str)
                .and_then(|s| calendar::next_run(s, now));
            if let Some(next) = next {
                row.insert("next-run".to_owned(), json!(next));
            }
            Value::Object(row)
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn no_such(id: &str) -> Failure {
    Failure::parameter("id", format!("No such job '{id}'"))
}

fn read(c: &mut Call<'_>) -> Answer {
    let id = c.need("id");
    let job = c.state.backup_jobs.get(&id).ok_or_else(|| no_such(&id))?;
    Ok(Value::Object(job.clone()).into())
}

/// Values as the job's file keeps them: numbers for what is one, lists as text.
fn stored(name: &str, value: &Value) -> Value {
    let text = params::text(value);
    match name {
        "enabled" | "all" | "remove" | "protected" | "repeat-missed" | "quiet" | "stdexcludes"
        | "bwlimit" | "maxfiles" | "zstd" | "pigz" | "ionice" | "lockwait" | "stopwait" => {
            text.parse::<i64>().map_or(Value::String(text), Value::from)
        }
        "prune-backups" | "fleecing" | "performance" => {
            let parts = propstring::parts(&text);
            Value::Object(parts.into_iter().map(|(k, v)| (k, Value::String(v))).collect())
        }
        "vmid" | "exclude" => Value::String(split_list(&text).join(",")),
        _ => Value::String(text),
    }
}

/// Checks that need more than the schema.
fn verify(c: &Call<'_>, job: &Job) -> Result<(), Failure> {
    if let Some(storage) = job.get("storage").map(params::text)
        && !c.state.storages.contains_key(&storage)
    {
        return Err(super::storages::missing(&storage));
    }
    let chosen = ["vmid", "all", "pool"].iter().any(|k| job.contains_key(*k));
    if !chosen {
        return Err(Failure::parameter("vmid", "property is missing"));
    }
    Ok(())
}

fn create(c: &mut Call<'_>) -> Answer {
    let taken = c.state.backup_jobs.len();
    let id = c.text("id").unwrap_or_else(|| format!("backup-{:08x}-{:04x}", c.now(), taken));
    if c.state.backup_jobs.contains_key(&id) {
        return Err(Failure::died(format!("Job '{id}' already exists")));
    }
    let mut job = Job::new();
    job.insert("id".to_owned(), json!(id));
    job.insert("type".to_owned(), json!("vzdump"));
    for (name, value) in &c.params {
        job.insert(name.clone(), stored(name, value));
    }
    job.insert("id".to_owned(), json!(id));
    job.entry("enabled").or_insert(json!(1));
    verify(c, &job)?;
    c.state.backup_jobs.insert(id, job);
    done()
}

fn update(c: &mut Call<'_>) -> Answer {
    let id = c.need("id");
    let mut job = c.state.backup_jobs.get(&id).cloned().ok_or_else(|| no_such(&id))?;
    for name in c.list("delete") {
        job.remove(&name);
    }
    for (name, value) in &c.params {
        if name != "id" && name != "delete" {
            job.insert(name.clone(), stored(name, value));
        }
    }
    // One way of choosing guests replaces the others.
    for (given, others) in
        [("vmid", ["all", "pool"]), ("all", ["vmid", "pool"]), ("pool", ["vmid", "all"])]
    {
        if c.params.contains_key(given) {
            for other in others.iter().filter(|o| !c.params.contains_key(**o)) {
                job.remove(*other);
            }
        }
    }
    verify(c, &job)?;
    c.state.backup_jobs.insert(id, job);
    done()
}

fn delete(c: &mut Call<'_>) -> Answer {
    let id = c.need("id");
    match c.state.backup_jobs.remove(&id) {
        Some(_) => done(),
        // The real one passes its own message on as text.
        None => Err(Failure::died(format!(
            "400 Parameter verification failed.\nid: No such job '{id}'"
        ))),
    }
}

fn included(c: &mut Call<'_>) -> Answer {
    let id = c.need("id");
    let job = c.state.backup_jobs.get(&id).ok_or_else(|| no_such(&id))?;
    let mut rows = Vec::new();
    for guest in guests_of(c.state, job) {
        let volumes: Vec<Value> =
            guest.disks().iter().map(|(key, value)| volume(guest, key, value)).collect();
        let mut row = Map::new();
        row.insert("id".to_owned(), json!(guest.vmid));
        row.insert("type".to_owned(), json!(guest.kind.name()));
        row.insert("leaf".to_owned(), json!(0));
        if let Some(name) = guest.own_name() {
            row.insert("name".to_owned(), json!(name));
        }
        row.insert("children".to_owned(), Value::Array(volumes));
        rows.push(Value::Object(row));
    }
    Ok(json!({"children": rows}).into())
}

fn volume(guest: &Guest, key: &str, value: &str) -> Value {
    let set = propstring::get(value, "backup");
    let (included, reason) = match (guest.kind, key, set.as_deref()) {
        (Kind::Lxc, "rootfs", _) => (1, "rootfs"),
        (Kind::Lxc, _, Some("1")) => (1, "enabled"),
        (Kind::Lxc, _, Some(_)) => (0, "disabled"),
        (Kind::Lxc, _, None) => (0, "not a volume"),
        (Kind::Qemu, _, Some("0" | "no")) => (0, "backup=no"),
        (Kind::Qemu, "efidisk0", _) if guest.config.get("bios") != Some("ovmf") => {
            (0, "efidisk but no OMVF BIOS")
        }
        (Kind::Qemu, ..) => (1, "backup=yes"),
    };
    let name = value.split(',').next().unwrap_or("");
    json!({"id": format!("{}:{key}", guest.vmid), "name": name, "leaf": 1, "included": included, "reason": reason})
}

fn not_backed_up(c: &mut Call<'_>) -> Answer {
    let mut covered: Vec<u32> = Vec::new();
    // A disabled job counts as coverage in the real one, too.
    for job in c.state.backup_jobs.values() {
        covered.extend(guests_of(c.state, job).iter().map(|g| g.vmid));
    }
    let mut rows = Vec::new();
    for guest in c.state.guests.values().filter(|g| !covered.contains(&g.vmid)) {
        if !c.may(&format!("/vms/{}", guest.vmid), &["VM.Audit"]) {
            continue;
        }
        let mut row = Map::new();
        row.insert("vmid".to_owned(), json!(guest.vmid));
        row.insert("type".to_owned(), json!(guest.kind.name()));
        if let Some(name) = guest.own_name() {
            row.insert("name".to_owned(), json!(name));
        }
        rows.push(Value::Object(row));
    }
    Ok(Value::Array(rows).into())
}
