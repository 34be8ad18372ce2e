//! Reading storages: definitions, space, content, series.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::Route;
use crate::api::call::{Answer, Call};
use crate::api::failure::Failure;
use crate::state::State;
use crate::state::config::digest;
use crate::state::rrd;
use crate::state::storage::{Storage, Volume};

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/storage", definitions),
    ("GET", "/storage/{storage}", definition),
    ("GET", "/nodes/{node}/storage", on_node),
    ("GET", "/nodes/{node}/storage/{storage}/status", status),
    ("GET", "/nodes/{node}/storage/{storage}/rrddata", series),
    ("GET", "/nodes/{node}/storage/{storage}/content", content),
    ("GET", "/nodes/{node}/storage/{storage}/content/{volume}", volume),
    ("GET", "/nodes/{node}/storage/{storage}/file-restore/list", files),
];

const SEE: [&str; 2] = ["Datastore.Audit", "Datastore.AllocateSpace"];

pub(super) fn file_digest(state: &State) -> String {
    let all = state
        .storages
        .values()
        .map(|s| format!("{}{:?}{}{:?}", s.id, s.content, s.disabled, s.options));
    digest(all)
}

/// A definition as `/storage` shows it.
pub(super) fn show(state: &State, storage: &Storage) -> Map<String, Value> {
    let mut map = storage.options.clone();
    map.insert("storage".to_owned(), json!(storage.id));
    map.insert("type".to_owned(), json!(storage.kind));
    map.insert("content".to_owned(), json!(storage.content.join(",")));
    map.insert("digest".to_owned(), json!(file_digest(state)));
    if storage.shared && !matches!(storage.kind.as_str(), "nfs" | "cifs" | "pbs" | "rbd" | "cephfs")
    {
        map.insert("shared".to_owned(), json!(1));
    }
    if storage.disabled {
        map.insert("disable".to_owned(), json!(1));
    }
    if !storage.nodes.is_empty() {
        map.insert("nodes".to_owned(), json!(storage.nodes.join(",")));
    }
    map
}

fn definitions(c: &mut Call<'_>) -> Answer {
    let wanted = c.text("type");
    let rows = c
        .state
        .storages
        .values()
        .filter(|s| wanted.as_deref().is_none_or(|w| w == s.kind))
        .filter(|s| c.may(&format!("/storage/{}", s.id), &SEE))
        .map(|s| Value::Object(show(c.state, s)))
        .collect();
    Ok(Value::Array(rows).into())
}

fn definition(c: &mut Call<'_>) -> Answer {
    let id = c.need("storage");
    let storage = c.state.storages.get(&id).ok_or_else(|| missing(&id))?;
    Ok(Value::Object(show(c.state, storage)).into())
}

pub(super) fn missing(id: &str) -> Failure {
    Failure::died(format!("storage '{id}' does not exist"))
}

/// Rows of `/cluster/resources`.
pub(super) fn resources(c: &Call<'_>) -> Vec<Value> {
    let mut rows = Vec::new();
    for (node, info) in &c.state.nodes {
        for s in c.state.storages.values().filter(|s| s.on(node) && !s.disabled) {
            if !c.may(&format!("/storage/{}", s.id), &SEE) {
                continue;
            }
            let space = s.space_on(node);
            let up = info.online && !space.offline;
            let mut row = Map::new();
            for (name, value) in [
                ("id", json!(format!("storage/{node}/{}", s.id))),
                ("type", json!("storage")),
                ("storage", json!(s.id)),
                ("node", json!(node)),
                ("plugintype", json!(s.kind)),
                ("content", json!(s.content.join(","))),
                ("shared", json!(u8::from(s.shared))),
                ("status", json!(if up { "available" } else { "unknown" })),
            ] {
                row.insert(name.to_owned(), value);
            }
            if up {
                row.insert("maxdisk".to_owned(), json!(space.total));
                row.insert("disk".to_owned(), json!(space.used_at(c.state.born, c.now())));
            }
            rows.push(Value::Object(row));
        }
    }
    rows
}

/// The status of a storage on a node.
fn state_on(c: &Call<'_>, s: &Storage, node: &str) -> Map<String, Value> {
    let space = s.space_on(node);
    let active = !space.offline && !s.disabled;
    let (total, used) =
        if active { (space.total, space.used_at(c.state.born, c.now())) } else { (0, 0) };
    let mut map = Map::new();
    for (name, value) in [
        ("type", json!(s.kind)),
        ("content", json!(s.content.join(","))),
        ("shared", json!(u8::from(s.shared))),
        ("enabled", json!(u8::from(!s.disabled))),
        ("active", json!(u8::from(active))),
        ("total", json!(total)),
        ("used", json!(used)),
        ("avail", json!(total - used)),
    ] {
        map.insert(name.to_owned(), value);
    }
    map
}

fn on_node(c: &mut Call<'_>) -> Answer {
    let node = c.node();
    let (only, kinds, enabled) = (c.text("storage"), c.list("content"), c.flag("enabled"));
    let mut rows = Vec::new();
    for s in c.state.storages.values().filter(|s| s.on(&node)) {
        let fits = only.as_deref().is_none_or(|o| o == s.id)
            && (kinds.is_empty() || kinds.iter().any(|k| s.takes(k)))
            && !(enabled && s.disabled)
            && c.may(&format!("/storage/{}", s.id), &SEE);
        if !fits {
            continue;
        }
        let mut row = state_on(c, s, &node);
        row.insert("storage".to_owned(), json!(s.id));
        let total = row.get("total").and_then(Value::as_f64).unwrap_or(0.0);
        let used = row.get("used").and_then(Value::as_f64).unwrap_or(0.0);
        if total > 0.0 {
            row.insert("used_fraction".to_owned(), json!(used / total));
        }
        rows.push(Value::Object(row));
    }
    Ok(Value::Array(rows).into())
}

/// The storage of a call, if it is on the node and can be used.
pub(super) fn usable<'a>(state: &'a State, id: &str, node: &str) -> Result<&'a Storage, Failure> {
    let storage = state.storages.get(id).ok_or_else(|| missing(id))?;
    if storage.disabled {
        return Err(Failure::died(format!("storage '{id}' is disabled")));
    }
    if !storage.on(node) {
        return Err(Failure::died(format!("storage '{id}' is not available on node '{node}'")));
    }
    if storage.space_on(node).offline {
        return Err(Failure::died(format!("storage '{id}' is not online")));
    }
    Ok(storage)
}

fn status(c: &mut Call<'_>) -> Answer {
    let (id, node) = (c.need("storage"), c.node());
    let storage = c.state.storages.get(&id).ok_or_else(|| missing(&id))?;
    if !storage.on(&node) {
        return Err(Failure::died(format!("storage '{id}' is not available on node '{node}'")));
    }
    Ok(Value::Object(state_on(c, storage, &node)).into())
}

fn series(c: &mut Call<'_>) -> Answer {
    let (id, node) = (c.need("storage"), c.node());
    let storage = c.state.storages.get(&id).ok_or_else(|| missing(&id))?;
    let space = storage.space_on(&node);
    let now = c.now();
    let used = space.used_at(c.state.born, now);
    let since = c.state.nodes.get(&node).map_or(c.state.born, |n| n.installed);
    let rows =
        rrd::storage_series(space.total, used, space.growth, since, &c.need("timeframe"), now);
    Ok(Value::Array(rows).into())
}

/// A volume as the content list shows it.
pub(super) fn show_volume(v: &Volume) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    put("volid", json!(v.volid()));
    put("content", json!(v.content));
    put("format", json!(v.format));
    put("size", json!(v.size));
    put("ctime", json!(v.ctime));
    if let Some(vmid) = v.vmid {
        put("vmid", json!(vmid));
    }
    if matches!(v.content.as_str(), "images" | "rootdir") {
        put("parent", json!(v.parent));
        if let Some(used) = v.used {
            put("used", json!(used));
        }
    }
    if let Some(subtype) = v.subtype {
        put("subtype", json!(subtype));
    }
    if let Some(notes) = &v.notes {
        put("notes", json!(notes));
    }
    if v.protected {
        put("protected", json!(1));
    }
    if let Some(state) = &v.verification {
        put(
            "verification",
            json!({"state": state, "upid": "UPID:pbs:0000A1B2:0C3D4E5F:00000001:verify:store:root@pam:"}),
        );
    }
    map
}

/// Whether the caller may see a volume, by what it is.
pub(super) fn sees(c: &Call<'_>, v: &Volume) -> bool {
    let storage = format!("/storage/{}", v.storage);
    match v.content.as_str() {
        "iso" | "vztmpl" => true,
        "backup" => {
            let own = v.vmid.is_some_and(|id| c.may(&format!("/vms/{id}"), &["VM.Backup"]));
            (own && c.may(&storage, &["Datastore.AllocateSpace"]))
                || c.may(&storage, &["Datastore.Allocate"])
        }
        "images" | "rootdir" => {
            let own = v.vmid.is_some_and(|id| c.may(&format!("/vms/{id}"), &["VM.Config.Disk"]));
            own || c.may(&storage, &["Datastore.Allocate"])
        }
        _ => c.may(&storage, &["Datastore.Allocate", "Datastore.AllocateTemplate"]),
    }
}

fn content(c: &mut Call<'_>) -> Answer {
    let (id, node) = (c.need("storage"), c.node());
    usable(c.state, &id, &node)?;
    let (kind, vmid) = (c.text("content"), c.int("vmid"));
    let rows = c
        .state
        .volumes
        .iter()
        .filter(|v| v.storage == id && v.seen_from(&node))
        .filter(|v| kind.as_deref().is_none_or(|k| k == v.content))
        .filter(|v| vmid.is_none_or(|id| v.vmid.is_none_or(|own| i64::from(own) == id)))
        .filter(|v| vmid.is_none() || v.vmid.is_some() || v.content == "snippets")
        .filter(|v| sees(c, v))
        .map(|v| Value::Object(show_volume(v)))
        .collect();
    Ok(Value::Array(rows).into())
}

/// The volume id of a path: `local:iso/x.iso`, or `iso/x.iso` of the storage there.
pub(super) fn volume_id(storage: &str, text: &str) -> String {
    if text.contains(':') { text.to_owned() } else { format!("{storage}:{text}") }
}

/// What the directory plugins do with a name that is none of theirs.
pub(super) fn parse_name(storage: &Storage, name: &str) -> Result<(), Failure> {
    if !storage.files() {
        return Ok(());
    }
    let (head, rest) = name.split_once('/').unwrap_or((name, ""));
    let tail = rest.rsplit('/').next().unwrap_or("");
    let good = match head {
        "iso" => tail.to_lowercase().ends_with(".iso") || tail.to_lowercase().ends_with(".img"),
        "vztmpl" => tail.contains(".tar"),
        "backup" => tail.starts_with("vzdump-"),
        "snippets" | "import" => !tail.is_empty(),
        vmid => vmid.bytes().all(|b| b.is_ascii_digit()) && !vmid.is_empty(),
    };
    if good && !rest.contains("..") && !rest.is_empty() && !rest.contains('/') {
        Ok(())
    } else {
        Err(Failure::died(format!("unable to parse directory volume name '{name}'")))
    }
}

fn volume(c: &mut Call<'_>) -> Answer {
    let (id, node) = (c.need("storage"), c.node());
    let volid = volume_id(&id, &c.need("volume"));
    let (owner, name) = volid.split_once(':').unwrap_or(("", ""));
    let storage = usable(c.state, owner, &node)?;
    parse_name(storage, name)?;
    let found = c.state.volume(&node, &volid).filter(|v| sees(c, v));
    let Some(v) = found else {
        return Err(Failure::died(format!("volume_size_info on '{volid}' failed - no format")));
    };
    let mut map = Map::new();
    map.insert("path".to_owned(), json!(path_of(storage, v)));
    map.insert("size".to_owned(), json!(v.size));
    map.insert("used".to_owned(), json!(v.used.unwrap_or(v.size)));
    map.insert("format".to_owned(), json!(v.format));
    if v.content == "backup" {
        if let Some(notes) = &v.notes {
            map.insert("notes".to_owned(), json!(notes));
        }
        if v.protected {
            map.insert("protected".to_owned(), json!(1));
        }
    }
    Ok(Value::Object(map).into())
}

fn path_of(storage: &Storage, v: &Volume) -> String {
    if !storage.files() {
        return format!("/dev/{}/{}", storage.id, v.name);
    }
    let base = storage.options.get("path").and_then(Value::as_str).unwrap_or("/mnt/pve");
    match v.name.split_once('/') {
        Some(("iso", file)) => format!("{base}/template/iso/{file}"),
        Some(("vztmpl", file)) => format!("{base}/template/cache/{file}"),
        Some(("backup", file)) => format!("{base}/dump/{file}"),
        Some(("snippets", file)) => format!("{base}/snippets/{file}"),
        _ => format!("{base}/images/{}", v.name),
    }
}

/// Files in a backup, which only a backup server can list.
fn files(c: &mut Call<'_>) -> Answer {
    let (id, node) = (c.need("storage"), c.node());
    let storage = usable(c.state, &id, &node)?;
    if storage.kind != "pbs" {
        return Err(Failure::died(format!("storage '{id}' does not support file-restore")));
    }
    let volid = volume_id(&id, &c.need("volume"));
    let found = c.state.volume(&node, &volid).filter(|v| v.content == "backup" && sees(c, v));
    let v = found.ok_or_else(|| Failure::died(format!("volume '{volid}' does not exist")))?;
    // Paths come encoded, the root as a slash.
    let given = c.need("filepath");
    let path = STANDARD.decode(&given).map_or(given, |b| String::from_utf8_lossy(&b).into_owned());
    let path = path.trim_matches('/').to_owned();
    let archive = if v.subtype == Some("lxc") { "root.pxar.didx" } else { "drive-scsi0.img.fidx" };
    let entries: &[(&str, &str)] = match path.as_str() {
        "" => &[],
        p if p == archive && v.subtype == Some("qemu") => &[("part", "v")],
        p if p == archive || p.ends_with("/part/1") => &[("etc", "d"), ("home", "d"), ("var", "d")],
        p if p.ends_with("/part") => &[("1", "v")],
        p if p.ends_with("/etc") => &[("hostname", "f"), ("fstab", "f")],
        _ => &[],
    };
    let row = |full: &str, text: &str, kind: &str| {
        let mut row = json!({"filepath": STANDARD.encode(full), "text": text, "type": kind, "leaf": u8::from(kind == "f"),
            "mtime": v.ctime - 86_400});
        if let (Value::Object(map), "f") = (&mut row, kind) {
            map.insert("size".to_owned(), json!(412));
        }
        row
    };
    if path.is_empty() {
        return Ok(json!([row(&format!("/{archive}"), archive, "v")]).into());
    }
    let rows = entries.iter().map(|(name, kind)| row(&format!("/{path}/{name}"), name, kind));
    Ok(rows.collect::<Value>().into())
}
