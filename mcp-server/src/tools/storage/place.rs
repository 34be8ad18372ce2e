//! Where a storage and its volumes are reached.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    Code, Error, Result,
    pve::{NodeName, Vmid, loose},
    render::units,
    safety::volume,
    tools::Ctx,
};

/// Whether a storage on a node holds a kind of content (`images`, `backup` …).
fn takes(row: &Value, content: &str) -> bool {
    loose::str(row, "content").unwrap_or_default().split(',').any(|c| c == content)
}

/// Why a storage cannot be used on a node now.
fn off(row: &Value) -> Option<&'static str> {
    if row.get("enabled").is_some() && !loose::flag(row, "enabled") {
        return Some("disabled");
    }
    (row.get("active").is_some() && !loose::flag(row, "active")).then_some("not active")
}

/// The names of the storages of a node that hold a kind of content.
fn names<'a>(rows: &'a Value, content: &str) -> Vec<&'a str> {
    let fit = loose::rows(rows).iter().filter(|r| takes(r, content) && off(r).is_none());
    fit.filter_map(|r| loose::str(r, "storage")).collect()
}

/// A storage of a node, when it can take this content now.
///
/// # Errors
/// `not_found`, `conflict` for one that is off, `invalid_argument` for one that
/// holds other things; each names those that would do.
pub async fn holding(ctx: Ctx<'_>, node: &str, storage: &str, content: &str) -> Result<Value> {
    let rows = ctx.get(&["nodes", node, "storage"]).await?;
    let others = names(&rows, content).join(", ");
    let hint = format!("storages on {node} that hold {content}: {others}");
    let Some(row) = loose::rows(&rows).iter().find(|r| loose::str(r, "storage") == Some(storage))
    else {
        return Err(Error::new(
            Code::NotFound,
            format!("there is no storage {storage:?} on {node}"),
        )
        .hint(hint));
    };
    if !takes(row, content) {
        return Err(Error::argument(format!("storage {storage} does not hold {content}"))
            .hint(hint)
            .with("argument", "storage"));
    }
    match off(row) {
        Some(why) => {
            Err(Error::new(Code::Conflict, format!("storage {storage} is {why} on {node}"))
                .hint(hint))
        }
        None => Ok(row.clone()),
    }
}

/// The storage meant: the one named, or the only one of the node that holds this.
///
/// # Errors
/// As [`holding`]; `invalid_argument` where several could be meant.
pub async fn chosen(
    ctx: Ctx<'_>,
    node: &str,
    storage: Option<&str>,
    content: &str,
) -> Result<Value> {
    if let Some(storage) = storage {
        return holding(ctx, node, storage, content).await;
    }
    let rows = ctx.get(&["nodes", node, "storage"]).await?;
    match names(&rows, content).as_slice() {
        [only] => holding(ctx, node, only, content).await,
        several => Err(Error::argument("argument `storage` is missing")
            .hint(format!("storages on {node} that hold {content}: {}", several.join(", ")))
            .with("argument", "storage")),
    }
}

/// Nodes on which a storage can be used now, and whether they all see the same.
async fn nodes_of(ctx: Ctx<'_>, storage: &str) -> Result<(Vec<String>, bool)> {
    let nodes = ctx.node_names().await?;
    let asked = nodes.iter().map(|n| async move { (n, ctx.get(&["nodes", n, "storage"]).await) });
    let (mut usable, mut shared, mut why, mut failed) = (Vec::new(), true, None, None);
    for (node, answer) in futures::future::join_all(asked).await {
        let rows: Arc<Value> = match answer {
            Ok(rows) => rows,
            Err(error) => {
                failed = Some(error);
                continue;
            }
        };
        let row = loose::rows(&rows).iter().find(|r| loose::str(r, "storage") == Some(storage));
        let Some(row) = row else { continue };
        match off(row) {
            Some(off) => why = Some(format!("storage {storage} is {off} on {node}")),
            None => {
                shared &= loose::flag(row, "shared");
                usable.push(node.clone());
            }
        }
    }
    match (usable.is_empty(), why, failed) {
        (false, _, _) => Ok((usable, shared)),
        (true, Some(why), _) => Err(Error::new(Code::Conflict, why)),
        (true, None, Some(error)) => Err(error),
        (true, None, None) => {
            Err(Error::new(Code::NotFound, format!("there is no storage {storage:?}"))
                .hint("pve_list_storage lists them"))
        }
    }
}

/// The node through which a storage is used: the one named, any of a shared one.
///
/// # Errors
/// `not_found`, and `invalid_argument` for a storage that is another one on each node.
pub async fn node_of(ctx: Ctx<'_>, storage: &str, node: Option<&NodeName>) -> Result<String> {
    if let Some(node) = node {
        return ctx.node(node.as_str()).await;
    }
    let (nodes, shared) = nodes_of(ctx, storage).await?;
    match nodes.as_slice() {
        [first, ..] if shared => Ok(first.clone()),
        [only] => Ok(only.clone()),
        several => Err(Error::argument("argument `node` is missing")
            .hint(format!("{storage} is another storage on each of: {}", several.join(", ")))
            .with("argument", "node")),
    }
}

/// A volume that is there.
#[derive(Debug, Clone)]
pub struct Volume {
    /// The node through which it is reached.
    pub node: String,
    /// Its storage.
    pub storage: String,
    /// `storage:name`.
    pub volid: String,
    /// The row of the content list.
    pub row: Value,
}

impl Volume {
    /// Looks a volume up. What is not in the list is not there: Proxmox itself
    /// answers that a missing volume was deleted.
    ///
    /// # Errors
    /// `not_found`, `vmid_denied` for a hidden guest's, `invalid_argument` for
    /// a name without a storage or one that is on several nodes.
    pub async fn find(ctx: Ctx<'_>, volid: &str, node: Option<&NodeName>) -> Result<Self> {
        let storage = match volid.split_once(':') {
            Some((storage, name)) if !storage.is_empty() && !name.is_empty() => storage,
            _ => {
                return Err(Error::argument(format!("{volid:?} is not a volume id"))
                    .hint("as pve_storage_content shows it: storage:name")
                    .with("argument", "volid"));
            }
        };
        if let Some(owner) = volume::owner(volid) {
            ctx.may_see(owner)?;
        }
        let (nodes, shared) = match node {
            Some(node) => (vec![ctx.node(node.as_str()).await?], false),
            None => nodes_of(ctx, storage).await?,
        };
        let mut found: Vec<Self> = Vec::new();
        let mut failed = None;
        for node in &nodes {
            let rows = match ctx.get(&["nodes", node, "storage", storage, "content"]).await {
                Ok(rows) => rows,
                Err(error) => {
                    failed = Some(error);
                    continue;
                }
            };
            let row = loose::rows(&rows).iter().find(|r| loose::str(r, "volid") == Some(volid));
            found.extend(row.map(|row| Self {
                node: node.clone(),
                storage: storage.to_owned(),
                volid: volid.to_owned(),
                row: row.clone(),
            }));
            if shared {
                break;
            }
        }
        match (found.pop(), found.is_empty(), failed) {
            (Some(volume), true, _) => Ok(volume),
            (Some(_), false, _) => Err(Error::argument("argument `node` is missing")
                .hint(format!("{volid} is on several of: {}", nodes.join(", ")))
                .with("argument", "node")),
            (None, _, Some(error)) => Err(error),
            (None, _, None) => Err(Error::new(Code::NotFound, format!("there is no {volid}"))
                .hint("pve_storage_content and pve_list_backups list volumes")),
        }
    }

    /// The segments of its path.
    pub fn segments(&self) -> [&str; 6] {
        ["nodes", &self.node, "storage", &self.storage, "content", &self.volid]
    }

    /// What it holds: `images`, `rootdir`, `iso`, `vztmpl`, `backup`, `snippets`, `import`.
    pub fn content(&self) -> &str {
        loose::str(&self.row, "content").unwrap_or_default()
    }

    /// Whether it is a backup.
    pub fn is_backup(&self) -> bool {
        self.content() == "backup"
    }

    /// The guest that it belongs to.
    pub fn owner(&self) -> Option<Vmid> {
        let listed = loose::uint(&self.row, "vmid").and_then(|n| Vmid::new(n).ok());
        listed.or_else(|| volume::owner(&self.volid))
    }

    /// A backup.
    ///
    /// # Errors
    /// `invalid_argument` for anything else.
    pub fn backup(self) -> Result<Self> {
        if self.is_backup() {
            return Ok(self);
        }
        Err(Error::argument(format!("{} is no backup but {}", self.volid, self.content()))
            .hint("pve_list_backups lists backups; for other volumes take pve_volume_delete or pve_volume_update")
            .with("argument", "volid"))
    }

    /// What is said of it in answers.
    pub fn to_json(&self) -> Value {
        summary(&self.row)
    }

    /// The same, as it is now; `exists` is false where it is gone.
    pub async fn now(&self, ctx: Ctx<'_>) -> Value {
        ctx.app.pve.forget();
        let path = ["nodes", &self.node, "storage", &self.storage, "content"];
        match ctx.get(&path).await {
            Ok(rows) => loose::rows(&rows)
                .iter()
                .find(|r| loose::str(r, "volid") == Some(&self.volid))
                .map_or(json!({"exists": false}), summary),
            Err(_) => Value::Null,
        }
    }
}

/// A row of a content list by fixed names.
pub fn summary(row: &Value) -> Value {
    let mut out = json!({
        "volid": loose::text(row, "volid"),
        "content": loose::text(row, "content"),
        "size_bytes": loose::uint(row, "size"),
        "time": loose::int(row, "ctime").map(units::time),
        "vmid": loose::uint(row, "vmid"),
        "protected": loose::flag(row, "protected"),
        "notes": loose::text(row, "notes"),
    });
    if let Value::Object(map) = &mut out {
        map.retain(|key, value| !value.is_null() && (key != "protected" || value == true));
    }
    out
}
