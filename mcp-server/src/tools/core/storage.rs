//! Storages and what is on them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Code, Error, Result,
    insight::estate::GuestKind,
    pve::{NodeName, Params, Vmid, loose},
    render::{Answer, Page, Table, units},
    tools::Ctx,
};

/// Arguments of `pve_list_storage`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct List {
    node: Option<NodeName>,
    /// As images, rootdir, backup, iso, vztmpl.
    content: Option<String>,
}

/// One storage on one node. The same name on two nodes is two storages unless it is shared.
struct Place {
    node: String,
    row: Value,
}

/// Storages of the nodes asked; what could not be asked is said.
async fn places(ctx: Ctx<'_>, node: Option<&NodeName>) -> Result<(Vec<Place>, Vec<String>)> {
    let nodes = match node {
        Some(node) => vec![ctx.node(node.as_str()).await?],
        None => ctx.node_names().await?,
    };
    let asked = nodes.iter().map(|n| async move { (n, ctx.get(&["nodes", n, "storage"]).await) });
    let (mut found, mut missing, mut failed) = (Vec::new(), Vec::new(), None);
    for (node, answer) in futures::future::join_all(asked).await {
        match answer {
            Ok(rows) => found.extend(
                loose::rows(&rows).iter().map(|r| Place { node: node.clone(), row: r.clone() }),
            ),
            Err(e) => {
                missing.push(format!("node {node}: {}", e.message));
                failed = Some(e);
            }
        }
    }
    if let Some(error) = failed
        && found.is_empty()
        && missing.len() == nodes.len()
    {
        return Err(error);
    }
    found.sort_by_key(|p| (loose::text(&p.row, "storage"), p.node.clone()));
    Ok((found, missing))
}

impl Place {
    fn name(&self) -> String {
        loose::text(&self.row, "storage").unwrap_or_default()
    }

    fn shared(&self) -> bool {
        loose::flag(&self.row, "shared")
    }

    fn holds(&self, content: &str) -> bool {
        loose::text(&self.row, "content").unwrap_or_default().split(',').any(|c| c == content)
    }

    /// Why nothing can be read from it now.
    fn off(&self) -> Option<&'static str> {
        if self.row.get("enabled").is_some() && !loose::flag(&self.row, "enabled") {
            return Some("disabled");
        }
        (self.row.get("active").is_some() && !loose::flag(&self.row, "active"))
            .then_some("not active")
    }
}

/// `pve_list_storage`
pub async fn list(ctx: Ctx<'_>, args: List) -> Result<Answer> {
    let (mut found, missing) = places(ctx, args.node.as_ref()).await?;
    if let Some(content) = &args.content {
        found.retain(|p| p.holds(content));
    }
    let columns = [
        "storage",
        "node",
        "type",
        "state",
        "used_bytes",
        "total_bytes",
        "used_percent",
        "shared",
        "content",
    ];
    let table = Table::new(columns)
        .fill(found.iter(), Page::new(None, None), |p| {
            let (used, total) = (loose::uint(&p.row, "used"), loose::uint(&p.row, "total"));
            vec![
                p.name().into(),
                p.node.clone().into(),
                loose::text(&p.row, "type").into(),
                p.off().unwrap_or("available").into(),
                used.into(),
                total.into(),
                used.zip(total).filter(|(_, t)| *t > 0).map(|(u, t)| units::percent(u, t)).into(),
                p.shared().into(),
                loose::text(&p.row, "content").into(),
            ]
        })
        .missing(missing);
    Ok(table.into_answer("storages (a shared one stands once for each node)"))
}

/// Arguments of `pve_storage_content`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Content {
    storage: String,
    node: Option<NodeName>,
    /// images, rootdir, iso, vztmpl, backup, snippets, import
    content: Option<String>,
    vmid: Option<Vmid>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
    #[schemars(range(min = 0))]
    offset: Option<usize>,
}

/// `pve_storage_content`
pub async fn content(ctx: Ctx<'_>, args: Content) -> Result<Answer> {
    if let Some(vmid) = args.vmid {
        ctx.may_see(vmid)?;
    }
    let (found, missing) = places(ctx, args.node.as_ref()).await?;
    let mut named: Vec<&Place> = found.iter().filter(|p| p.name() == args.storage).collect();
    if named.is_empty() {
        let mut names: Vec<String> = found.iter().map(Place::name).collect();
        names.dedup();
        return Err(Error::new(Code::NotFound, format!("there is no storage {:?}", args.storage))
            .hint(format!("storages: {}", names.join(", "))));
    }
    if named.iter().all(|p| p.shared()) {
        // Every node shows the same: one that can be read is enough.
        named.sort_by_key(|p| p.off().is_some());
        named.truncate(1);
    }
    let params =
        Params::new().with_some("content", args.content.as_deref()).with_some("vmid", args.vmid);
    let volumes = volumes(ctx, named.iter().copied(), &params, missing).await?;
    let several = named.len() > 1;
    let mut columns = vec!["volid", "content", "format", "size_bytes", "vmid", "created", "notes"];
    if several {
        columns.insert(0, "node");
    }
    let table = Table::new(columns)
        .fill(volumes.rows.iter(), Page::new(args.limit, args.offset), |(node, v)| {
            let mut row = vec![
                loose::text(v, "volid").into(),
                loose::text(v, "content").into(),
                loose::text(v, "format").into(),
                loose::uint(v, "size").into(),
                loose::uint(v, "vmid").filter(|n| *n > 0).into(),
                loose::int(v, "ctime").map(units::time).into(),
                loose::text(v, "notes").map(|n| first_line(&n)).into(),
            ];
            if several {
                row.insert(0, node.clone().into());
            }
            row
        })
        .missing(volumes.missing);
    Ok(table.into_answer(&format!("volumes on {}", args.storage)))
}

struct Volumes {
    rows: Vec<(String, Value)>,
    missing: Vec<String>,
}

/// Reads several storages at once; one that is off or fails is said, the others are shown.
async fn volumes(
    ctx: Ctx<'_>,
    places: impl Iterator<Item = &Place>,
    params: &Params,
    mut missing: Vec<String>,
) -> Result<Volumes> {
    let mut asked = Vec::new();
    for place in places {
        if let Some(why) = place.off() {
            missing.push(format!("storage {} on {}: {why}", place.name(), place.node));
            continue;
        }
        let (node, name) = (place.node.clone(), place.name());
        asked.push(async move {
            let answer =
                ctx.get_with(&["nodes", &node, "storage", &name, "content"], params.clone()).await;
            (node, name, answer)
        });
    }
    let count = asked.len();
    let (mut rows, mut failed): (Vec<(String, Value)>, Vec<Error>) = (Vec::new(), Vec::new());
    for (node, name, answer) in futures::future::join_all(asked).await {
        let answer: Result<Arc<Value>> = answer;
        match answer {
            Ok(answer) => {
                rows.extend(loose::rows(&answer).iter().map(|v| (node.clone(), v.clone())))
            }
            Err(e) => {
                missing.push(format!("storage {name} on {node}: {}", e.message));
                failed.push(e);
            }
        }
    }
    if count > 0 && failed.len() == count && count == 1 {
        return Err(failed.remove(0));
    }
    Ok(Volumes { rows, missing })
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= 80 && line.len() == text.trim_end().len() {
        return line.to_owned();
    }
    format!("{}…", line.chars().take(80).collect::<String>())
}

/// Arguments of `pve_list_backups`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Backups {
    vmid: Option<Vmid>,
    storage: Option<String>,
    node: Option<NodeName>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
    #[schemars(range(min = 0))]
    offset: Option<usize>,
}

/// `pve_list_backups`
pub async fn backups(ctx: Ctx<'_>, args: Backups) -> Result<Answer> {
    if let Some(vmid) = args.vmid {
        ctx.may_see(vmid)?;
    }
    let (found, missing) = places(ctx, args.node.as_ref()).await?;
    if let Some(storage) = &args.storage
        && missing.is_empty()
        && !found.iter().any(|p| p.name() == *storage)
    {
        let names: std::collections::BTreeSet<String> = found.iter().map(Place::name).collect();
        let names: Vec<String> = names.into_iter().collect();
        return Err(Error::new(Code::NotFound, format!("there is no storage {storage:?}"))
            .hint(format!("storages: {}", names.join(", "))));
    }
    let mut taken: Vec<&Place> = Vec::new();
    for place in &found {
        let wanted = args.storage.as_ref().is_none_or(|s| *s == place.name());
        let seen = place.shared()
            && place.off().is_none()
            && taken.iter().any(|t| t.shared() && t.off().is_none() && t.name() == place.name());
        if wanted && place.holds("backup") && !seen {
            taken.push(place);
        }
    }
    // A shared storage that one node can read is not missing because another cannot.
    let readable: Vec<String> =
        taken.iter().filter(|p| p.shared() && p.off().is_none()).map(|p| p.name()).collect();
    taken.retain(|p| p.off().is_none() || !p.shared() || !readable.contains(&p.name()));
    let params = Params::new().with("content", "backup").with_some("vmid", args.vmid);
    let mut volumes = volumes(ctx, taken.into_iter(), &params, missing).await?;
    volumes.rows.sort_by_key(|(_, v)| std::cmp::Reverse(loose::int(v, "ctime")));
    if let Some(why) = backups_invisible(ctx).await {
        volumes.missing.push(why);
    }
    let columns = [
        "vmid",
        "time",
        "age",
        "size_bytes",
        "storage",
        "node",
        "protected",
        "verified",
        "notes",
        "volid",
    ];
    let table = Table::new(columns)
        .fill(volumes.rows.iter(), Page::new(args.limit, args.offset), |(node, v)| {
            let volid = loose::text(v, "volid").unwrap_or_default();
            let storage = volid.split(':').next().unwrap_or_default().to_owned();
            let verified = v.get("verification").and_then(|v| loose::text(v, "state"));
            vec![
                loose::uint(v, "vmid").into(),
                loose::int(v, "ctime").map(units::time).into(),
                loose::int(v, "ctime").map(super::guest_views::age).into(),
                loose::uint(v, "size").into(),
                storage.into(),
                node.clone().into(),
                loose::flag(v, "protected").into(),
                verified.into(),
                loose::text(v, "notes").map(|n| first_line(&n)).into(),
                volid.into(),
            ]
        })
        .missing(volumes.missing);
    Ok(table.into_answer("backups"))
}

/// Backups are filtered out one by one where the token lacks the rights, so an
/// empty list may mean "not visible" (the server asks for both privileges).
pub async fn backups_invisible(ctx: Ctx<'_>) -> Option<String> {
    let permissions = ctx.get(&["access", "permissions"]).await.ok()?;
    let paths = permissions.as_object()?;
    let has = |privilege: &str, roots: &[&str]| {
        paths.iter().any(|(path, p)| {
            roots.iter().any(|r| path == "/" || path.starts_with(r)) && p.get(privilege).is_some()
        })
    };
    let mut lacking = Vec::new();
    if !has("VM.Backup", &["/vms", "/pool"]) {
        lacking.push("VM.Backup on /vms");
    }
    if !has("Datastore.AllocateSpace", &["/storage", "/pool"])
        && !has("Datastore.Allocate", &["/storage"])
    {
        lacking.push("Datastore.AllocateSpace on /storage");
    }
    (!lacking.is_empty()).then(|| {
        format!(
            "backups may be unknown (not visible to this token): it lacks {}",
            lacking.join(" and ")
        )
    })
}

/// What a template is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TemplateKind {
    /// Guest templates, to clone.
    Guest,
    /// Container templates.
    Vztmpl,
    /// ISO images.
    Iso,
}

/// Arguments of `pve_list_templates`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Templates {
    kind: Option<TemplateKind>,
    node: Option<NodeName>,
}

/// `pve_list_templates`
pub async fn templates(ctx: Ctx<'_>, args: Templates) -> Result<Answer> {
    let wants = |kind| args.kind.is_none_or(|k| k == kind);
    let mut rows: Vec<Vec<Value>> = Vec::new();
    if wants(TemplateKind::Guest) {
        let guests = ctx.guests().await?;
        let here = |node: &str| args.node.as_ref().is_none_or(|n| n.as_str() == node);
        for guest in guests.iter().filter(|g| g.template && here(&g.node)) {
            let kind = if guest.kind == GuestKind::Lxc { "container" } else { "VM" };
            rows.push(vec![
                "guest".into(),
                guest.vmid.get().into(),
                format!("{} ({kind})", guest.name).into(),
                (&*guest.node).into(),
                guest.maxdisk.into(),
            ]);
        }
    }
    let mut missing = Vec::new();
    for (kind, content) in [(TemplateKind::Vztmpl, "vztmpl"), (TemplateKind::Iso, "iso")] {
        if !wants(kind) {
            continue;
        }
        let (found, lacking) = places(ctx, args.node.as_ref()).await?;
        let mut taken: Vec<&Place> = Vec::new();
        for place in found.iter().filter(|p| p.holds(content) && p.off().is_none()) {
            if !(place.shared() && taken.iter().any(|t| t.name() == place.name())) {
                taken.push(place);
            }
        }
        let params = Params::new().with("content", content);
        let volumes = volumes(ctx, taken.into_iter(), &params, lacking).await?;
        missing = volumes.missing;
        for (node, v) in &volumes.rows {
            let volid = loose::text(v, "volid").unwrap_or_default();
            let name = volid.rsplit('/').next().unwrap_or_default().to_owned();
            let size = loose::uint(v, "size");
            rows.push(vec![
                content.into(),
                volid.into(),
                name.into(),
                node.clone().into(),
                size.into(),
            ]);
        }
    }
    let table = Table::new(["kind", "id", "name", "node", "size_bytes"])
        .fill(rows.into_iter(), Page::new(None, None), |row| row)
        .missing(missing);
    Ok(table.into_answer("templates and images"))
}
