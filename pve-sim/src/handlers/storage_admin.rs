//! Changes of storages: definitions, volumes, downloads and uploads.

use serde_json::{Map, Value, json};

use super::Route;
use super::disks::drop_volume;
use super::storages::{file_digest, parse_name, sees, usable, volume_id};
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;
use crate::api::multipart::Upload;
use crate::api::params;
use crate::state::guest::parse_size;
use crate::state::storage::{Space, Storage, Volume};

pub(crate) const ROUTES: &[Route] = &[
    ("POST", "/storage", add),
    ("PUT", "/storage/{storage}", set),
    ("DELETE", "/storage/{storage}", delete),
    ("POST", "/nodes/{node}/storage/{storage}/content", allocate),
    ("PUT", "/nodes/{node}/storage/{storage}/content/{volume}", update_volume),
    ("DELETE", "/nodes/{node}/storage/{storage}/content/{volume}", delete_volume),
    ("POST", "/nodes/{node}/storage/{storage}/download-url", download),
    ("POST", "/nodes/{node}/storage/{storage}/upload", upload),
    ("GET", "/nodes/{node}/query-url-metadata", url_metadata),
    ("POST", "/nodes/{node}/aplinfo", appliance),
];

const MODIFIED: &str = "detected modified configuration - file changed by other user? Try again.";

/// Puts the given settings into a definition.
fn fill(c: &Call<'_>, storage: &mut Storage) {
    for name in c.list("delete") {
        match name.as_str() {
            "disable" => storage.disabled = false,
            "nodes" => storage.nodes.clear(),
            "shared" => storage.shared = false,
            _ => {
                storage.options.remove(&name);
            }
        }
    }
    for (name, value) in &c.params {
        match name.as_str() {
            "storage" | "type" | "delete" | "digest" | "password" | "encryption-key" => {}
            "content" => storage.content = params::split_list(&params::text(value)),
            "nodes" => storage.nodes = params::split_list(&params::text(value)),
            "disable" => storage.disabled = params::text(value) == "1",
            "shared" => storage.shared = params::text(value) == "1",
            _ => {
                storage.options.insert(name.clone(), Value::String(params::text(value)));
            }
        }
    }
}

fn add(c: &mut Call<'_>) -> Answer {
    const GIB: u64 = 1 << 30;
    let (id, kind) = (c.need("storage"), c.need("type"));
    if c.state.storages.contains_key(&id) {
        return Err(Failure::died(format!(
            "create storage failed: storage ID '{id}' already defined"
        )));
    }
    let shared = matches!(kind.as_str(), "nfs" | "cifs" | "pbs" | "rbd" | "cephfs" | "iscsi");
    let mut storage = Storage { id: id.clone(), kind: kind.clone(), shared, ..Storage::default() };
    fill(c, &mut storage);
    if storage.content.is_empty() {
        storage.content = vec![if kind == "pbs" { "backup" } else { "images" }.to_owned()];
    }
    let space = Space { total: 500 * GIB, used: GIB, ..Space::default() };
    if storage.shared {
        storage.space.push(("*".to_owned(), space));
    } else {
        storage.space = c.state.nodes.keys().map(|n| (n.clone(), space)).collect();
    }
    c.state.storages.insert(id.clone(), storage);
    Ok(json!({"storage": id, "type": kind}).into())
}

fn set(c: &mut Call<'_>) -> Answer {
    let id = c.need("storage");
    if c.text("digest").is_some_and(|given| given != file_digest(c.state)) {
        return Err(Failure::died(MODIFIED));
    }
    let found = c.state.storages.get(&id).cloned();
    let mut storage = found.ok_or_else(|| {
        Failure::died(format!("update storage failed: storage '{id}' does not exist"))
    })?;
    fill(c, &mut storage);
    let kind = storage.kind.clone();
    c.state.storages.insert(id.clone(), storage);
    Ok(json!({"storage": id, "type": kind}).into())
}

fn delete(c: &mut Call<'_>) -> Answer {
    let id = c.need("storage");
    let gone = c.state.storages.remove(&id);
    gone.ok_or_else(|| {
        Failure::died(format!("delete storage failed: storage '{id}' does not exist"))
    })?;
    done()
}

fn allocate(c: &mut Call<'_>) -> Answer {
    let (id, node, vmid, now) = (c.need("storage"), c.node(), c.vmid(), c.now());
    let storage = usable(c.state, &id, &node)?;
    let files = storage.files();
    let file = c.need("filename");
    let size = c.need("size");
    // A plain number is KiB.
    let size = size.parse::<u64>().map_or_else(|_| parse_size(&size).unwrap_or(0), |kib| kib << 10);
    let format = c
        .text("format")
        .or_else(|| file.rsplit_once('.').map(|(_, e)| e.to_owned()))
        .unwrap_or_else(|| "raw".to_owned());
    let name = if files { format!("{vmid}/{file}") } else { file };
    if c.state.volume(&node, &format!("{id}:{name}")).is_some() {
        return Err(Failure::died(format!("disk image '{name}' already exists")));
    }
    let mut v = Volume::new(&id, &name, "images", &format, size, now);
    v.node = c.state.volume_node(&id, &node);
    v.vmid = Some(vmid);
    v.used = Some(196_608);
    let volid = v.volid();
    c.state.volumes.push(v);
    Ok(Value::String(volid).into())
}

/// The volume of a path, its storage checked.
fn target(c: &Call<'_>) -> Result<(String, String), Failure> {
    let (id, node) = (c.need("storage"), c.node());
    let volid = volume_id(&id, &c.need("volume"));
    let (owner, name) = volid.split_once(':').unwrap_or(("", ""));
    let storage = usable(c.state, owner, &node)?;
    parse_name(storage, name)?;
    Ok((node, volid))
}

fn update_volume(c: &mut Call<'_>) -> Answer {
    let (node, volid) = target(c)?;
    let there = c.state.volume(&node, &volid).filter(|v| sees(c, v)).is_some();
    if !there {
        return Err(Failure::died(format!("volume '{volid}' does not exist")));
    }
    let (notes, protected) = (c.text("notes"), c.switch("protected"));
    if let Some(v) = c.state.volumes.iter_mut().find(|v| v.seen_from(&node) && v.volid() == volid) {
        if let Some(notes) = notes {
            v.notes = Some(notes).filter(|n| !n.is_empty());
        }
        if let Some(on) = protected {
            v.protected = on;
        }
    }
    done()
}

fn delete_volume(c: &mut Call<'_>) -> Answer {
    let (node, volid) = target(c)?;
    let storage = volid.split(':').next().unwrap_or("").to_owned();
    let found = c.state.volume(&node, &volid).cloned();
    let full = c.may(&format!("/storage/{storage}"), &["Datastore.Allocate"]);
    if !full {
        match found
            .as_ref()
            .and_then(|v| v.vmid)
            .filter(|_| found.as_ref().is_some_and(|v| v.content == "backup"))
        {
            Some(vmid) => {
                c.demand(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
                c.demand(&format!("/vms/{vmid}"), &["VM.Backup"])?;
            }
            None => c.demand(&format!("/storage/{storage}"), &["Datastore.Allocate"])?,
        }
    }
    let owner = found.as_ref().and_then(|v| v.vmid);
    let id = owner.map_or_else(|| storage.clone(), |vmid| format!("{vmid}@{storage}"));
    let used = c
        .state
        .guests
        .values()
        .find(|g| g.disks().iter().any(|(_, v)| super::disks::volume_of(v) == volid));
    if let Some(guest) = used {
        let text = format!(
            "cannot remove image, a guest with VMID '{}' exists!\nYou can delete the image from the guest's hardware pane",
            guest.vmid
        );
        return Err(Failure::died(text));
    }
    let protected = found.is_some_and(|v| v.protected);
    c.spawn("imgdel", &id, 200, move |state, _| {
        if protected {
            return Err(format!("cannot delete protected backup '{volid}'"));
        }
        drop_volume(state, &node, &volid);
        Ok(vec![format!("Removed volume '{volid}'")])
    })
}

/// A file name without any folder.
fn base_name(name: &str) -> String {
    name.rsplit('/')
        .next()
        .unwrap_or("")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' })
        .collect()
}

fn content_folder(content: &str) -> &str {
    match content {
        "import" => "import",
        "vztmpl" => "vztmpl",
        _ => "iso",
    }
}

/// What a URL would give: the made-up network has a few files. The size, or the error of the download.
fn fetch(url: &str) -> Result<u64, String> {
    let rest = url.split_once("://").map_or(url, |(_, r)| r);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let name = path.rsplit('/').next().unwrap_or("");
    if host.ends_with(":1") {
        return Err(format!(
            "download failed: Connecting to {host}... failed: Connection refused."
        ));
    }
    if name.starts_with("x.") || name.contains("missing") || name.is_empty() {
        return Err("download failed: exit code 8".to_owned());
    }
    Ok(if name.starts_with("small") { 100_000 } else { 629_145_600 })
}

fn download(c: &mut Call<'_>) -> Answer {
    let (id, node, now) = (c.need("storage"), c.node(), c.now());
    let content = c.need("content");
    let storage = usable(c.state, &id, &node)?;
    if !storage.takes(&content) {
        return Err(Failure::died(format!(
            "storage '{id}' is not configured for content-type '{content}'"
        )));
    }
    let (url, checksum) = (c.need("url"), c.text("checksum"));
    if checksum.is_some() != c.params.contains_key("checksum-algorithm") {
        return Err(Failure::parameter(
            "checksum-algorithm",
            "missing property required by 'checksum'",
        ));
    }
    let file = base_name(&c.need("filename"));
    let volid_name = format!("{}/{file}", content_folder(&content));
    let shown = file.clone();
    c.spawn("download", &shown, 1200, move |state, _| {
        let size = fetch(&url)?;
        if let Some(expected) = checksum {
            // The made-up files have made-up sums: only one that a test chose is right.
            let own = crate::state::config::digest([&url]);
            if expected != own {
                return Err(format!("checksum mismatch: got '{own}' != expect '{expected}'"));
            }
        }
        let format = if content == "vztmpl" { "tzst" } else { "iso" };
        let mut v = Volume::new(&id, &volid_name, &content, format, size, now);
        v.node = state.volume_node(&id, &node);
        state.volumes.retain(|o| !(o.volid() == v.volid() && o.seen_from(&node)));
        state.volumes.push(v);
        Ok(vec![
            format!("downloading {url} to {file}"),
            "download finished successfully".to_owned(),
        ])
    })
}

fn upload(c: &mut Call<'_>) -> Answer {
    let (id, node, now) = (c.need("storage"), c.node(), c.now());
    let content = c.need("content");
    let storage = usable(c.state, &id, &node)?;
    if !storage.takes(&content) {
        return Err(Failure::died(format!(
            "storage '{id}' is not configured for content-type '{content}'"
        )));
    }
    let file = base_name(&c.need("filename"));
    let Some(Upload { size, sha256 }) = c.upload.take() else {
        return Err(Failure::died("temporary file '/var/tmp/pveupload' does not exist"));
    };
    let expected = c.text("checksum");
    c.spawn("imgcopy", "", 300, move |state, _| {
        if let Some(expected) = expected.filter(|e| *e != sha256) {
            return Err(format!("checksum mismatch: got '{sha256}' != expect '{expected}'"));
        }
        let name = format!("{}/{file}", content_folder(&content));
        let format = if content == "vztmpl" { "tzst" } else { "iso" };
        let mut v = Volume::new(&id, &name, &content, format, size, now);
        v.node = state.volume_node(&id, &node);
        state.volumes.retain(|o| !(o.volid() == v.volid() && o.seen_from(&node)));
        state.volumes.push(v);
        Ok(vec![
            format!("target node: {node}"),
            format!("file size is: {size}"),
            "finished file import successfully".to_owned(),
        ])
    })
}

fn url_metadata(c: &mut Call<'_>) -> Answer {
    let url = c.need("url");
    let size =
        fetch(&url).map_err(|_| Failure::died("invalid server response: '404 Not Found'"))?;
    let mut map = Map::new();
    map.insert("filename".to_owned(), json!(base_name(&url)));
    map.insert("size".to_owned(), json!(size));
    map.insert("mimetype".to_owned(), json!("application/x-iso9660-image"));
    Ok(Value::Object(map).into())
}

fn appliance(c: &mut Call<'_>) -> Answer {
    let (id, node, template, now) = (c.need("storage"), c.node(), c.need("template"), c.now());
    usable(c.state, &id, &node)?;
    let list =
        c.state.documents.get("aplinfo").and_then(Value::as_array).cloned().unwrap_or_default();
    let known = list.iter().any(|t| t.get("template").is_some_and(|n| *n == template));
    if !known {
        return Err(Failure::parameter("template", "no such template"));
    }
    let shown = template.clone();
    c.spawn("download", &shown, 1200, move |state, _| {
        let mut v =
            Volume::new(&id, &format!("vztmpl/{template}"), "vztmpl", "tzst", 123_731_847, now);
        v.node = state.volume_node(&id, &node);
        state.volumes.retain(|o| !(o.volid() == v.volid() && o.seen_from(&node)));
        state.volumes.push(v);
        Ok(vec![
            format!("downloading http://download.proxmox.com/images/system/{template}"),
            "download finished successfully".to_owned(),
        ])
    })
}
