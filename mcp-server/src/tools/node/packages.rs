//! Packages of nodes: what could be updated, and what is installed.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Result,
    pve::{NodeName, Params, loose},
    render::{Answer, Page, Table},
    safety::Method,
    tools::{
        Ctx,
        change::AskedTask,
        outcome::{operation, switch, told},
    },
};

/// Arguments of `pve_list_updates`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Updates {
    node: Option<NodeName>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
    #[schemars(range(min = 0))]
    offset: Option<usize>,
}

fn is_security(package: &Value) -> bool {
    let origin = loose::text(package, "Origin").unwrap_or_default().to_lowercase();
    let suite = loose::text(package, "Suite").unwrap_or_default().to_lowercase();
    origin.contains("security") || suite.contains("security")
}

fn is_kernel(package: &Value) -> bool {
    loose::str(package, "Package")
        .is_some_and(|p| p.starts_with("proxmox-kernel-") || p.starts_with("pve-kernel-"))
        && loose::str(package, "Package") != Some("proxmox-kernel-helper")
}

/// `pve_list_updates`
pub async fn updates(ctx: Ctx<'_>, args: Updates) -> Result<Answer> {
    let across = ctx.across(args.node.as_ref(), &["apt", "update"], Params::new()).await?;
    let mut rows: Vec<(&str, &Value)> = across.rows().collect();
    rows.sort_by_key(|(node, p)| {
        (!is_security(p), !is_kernel(p), (*node).to_owned(), loose::text(p, "Package"))
    });
    let security = rows.iter().filter(|(_, p)| is_security(p)).count();
    let mut kernel: Vec<&str> =
        rows.iter().filter(|(_, p)| is_kernel(p)).map(|(node, _)| *node).collect();
    kernel.dedup();
    let by_node: Vec<Value> = across
        .answers
        .iter()
        .map(|(node, rows)| json!({"node": node, "updates": loose::rows(rows).len()}))
        .collect();
    let kernel = json!(kernel);
    let columns = ["node", "package", "installed", "available", "origin", "security"];
    let page = Page::new(args.limit, args.offset);
    let table = Table::new(columns)
        .fill(rows.iter(), page, |(node, p)| {
            vec![
                (*node).into(),
                loose::text(p, "Package").into(),
                loose::text(p, "OldVersion").into(),
                loose::text(p, "Version").into(),
                loose::text(p, "Origin").into(),
                is_security(p).into(),
            ]
        })
        .missing(across.missing.clone());
    Ok(table
        .into_answer(&format!("updates, {security} of them for security"))
        .with("security", security)
        .with("new_kernel_on", kernel)
        .with("by_node", by_node)
        .with("note", "as of the last refresh of the lists; pve_apt_refresh makes a new one"))
}

/// Arguments of `pve_package_versions`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Versions {
    node: Option<NodeName>,
    package: Option<String>,
}

/// `pve_package_versions`
pub async fn versions(ctx: Ctx<'_>, args: Versions) -> Result<Answer> {
    let across = ctx.across(args.node.as_ref(), &["apt", "versions"], Params::new()).await?;
    let running: Vec<Value> = across
        .answers
        .iter()
        .map(|(node, rows)| {
            let find = |key: &str| loose::rows(rows).iter().find_map(|p| loose::text(p, key));
            json!({"node": node, "kernel": find("RunningKernel"), "manager": find("ManagerVersion")})
        })
        .collect();
    let part = args.package.as_deref().map(str::to_lowercase);
    let mut rows: Vec<(&str, &Value)> = across
        .rows()
        .filter(|(_, p)| {
            let name = loose::text(p, "Package").unwrap_or_default();
            part.as_ref().is_none_or(|part| name.to_lowercase().contains(part))
        })
        .collect();
    // One package of all nodes stands together: a difference is seen at once.
    rows.sort_by_key(|(node, p)| (loose::text(p, "Package"), (*node).to_owned()));
    let differ = differing(&rows);
    let mut shown: Vec<(String, &Value)> = Vec::new();
    for (node, package) in &rows {
        let same = shown.last_mut().filter(|(_, p)| {
            ["Package", "OldVersion", "Version", "CurrentState"]
                .iter()
                .all(|key| loose::text(p, key) == loose::text(package, key))
        });
        match same {
            Some((nodes, _)) => *nodes = format!("{nodes} {node}"),
            None => shown.push(((*node).to_owned(), package)),
        }
    }
    let table = Table::new(["package", "installed", "available", "state", "nodes"])
        .fill(shown.iter(), Page { limit: usize::MAX, ..Page::new(None, None) }, |(nodes, p)| {
            let state = loose::text(p, "CurrentState");
            let installed = state.as_deref().is_none_or(|s| s == "Installed");
            let old = loose::text(p, "OldVersion").filter(|_| installed);
            let new = loose::text(p, "Version");
            let available = new.clone().filter(|new| Some(new) != old.as_ref());
            vec![
                loose::text(p, "Package").into(),
                old.or(new.filter(|_| installed)).into(),
                available.into(),
                state.into(),
                nodes.clone().into(),
            ]
        })
        .missing(across.missing.clone());
    Ok(table.into_answer("packages").with("running", running).with("differ_between_nodes", differ))
}

/// Packages that are installed in different versions on different nodes.
fn differing(rows: &[(&str, &Value)]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for pair in rows.windows(2) {
        let [(_, a), (_, b)] = pair else { continue };
        let name = loose::text(a, "Package");
        if name == loose::text(b, "Package")
            && loose::text(a, "OldVersion") != loose::text(b, "OldVersion")
            && let Some(name) = name
            && names.last() != Some(&name)
        {
            names.push(name);
        }
    }
    names
}

/// Arguments of `pve_apt_refresh`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Refresh {
    node: Option<NodeName>,
    notify: Option<bool>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_apt_refresh`
pub async fn refresh(ctx: Ctx<'_>, args: Refresh) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let list = ["nodes", &node, "apt", "update"];
    let before = count(ctx, &list).await;
    let params = switch(Params::new(), "notify", args.notify);
    let done = ctx.run(operation(Method::Post, &list, params)?, &args.asked).await?;
    Ok(told(done, before, count(ctx, &list), format!("package lists of {node}")).await)
}

async fn count(ctx: Ctx<'_>, list: &[&str]) -> Value {
    let rows = ctx.fresh(list, Params::new()).await;
    rows.map_or(Value::Null, |rows| json!({"updates": loose::rows(&rows).len()}))
}
