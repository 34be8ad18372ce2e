//! What this server was asked to change: its log, what hangs on an object, undo.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::tasks::epoch;
use crate::{
    Code, Error, Result,
    pve::{ApiPath, NodeName, Params, Vmid},
    render::{Answer, Page, Table},
    safety::{
        Class, Method, Operation,
        api::API,
        audit::{self, Query, Record},
        impact,
        undo::Kept,
    },
    tools::{
        Ctx,
        change::{AskedTask, Submitted},
        hidden::Shown,
    },
};

/// Arguments of `pve_audit_log`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Log {
    /// RFC 3339 or epoch seconds.
    since: Option<String>,
    #[schemars(range(min = 1, max = 5_000))]
    limit: Option<usize>,
    tool: Option<String>,
    /// READ, WRITE, DESTRUCTIVE, CRITICAL
    class: Option<String>,
    vmid: Option<Vmid>,
    /// refused, dry_run, sending, sent, ended, failed, unknown
    outcome: Option<String>,
}

/// `pve_audit_log`
pub async fn log(ctx: Ctx<'_>, args: Log) -> Result<Answer> {
    let config = &ctx.app.config.audit;
    if !config.enabled {
        return Err(Error::new(Code::NotFound, "no audit log is kept")
            .hint("its owner can set PROXMOX_AUDIT_ENABLED=on"));
    }
    let query = Query {
        since: args.since.as_deref().map(epoch).transpose()?,
        tool: args.tool,
        class: args.class,
        vmid: args.vmid.map(Vmid::get),
        outcome: args.outcome,
        text: None,
        limit: args.limit.unwrap_or(50),
    };
    let found = audit::search(&config.path, &query)
        .map_err(|e| Error::new(Code::Config, format!("the audit log cannot be read: {e}")))?;
    let seen: Vec<Record> = found
        .into_iter()
        .filter(|r| {
            r.entry.vmids.iter().all(|n| Vmid::new(u64::from(*n)).is_ok_and(|vmid| ctx.sees(vmid)))
        })
        .collect();
    Ok(table(&seen))
}

/// Records as a table, newest first as they come.
pub fn table(records: &[Record]) -> Answer {
    let columns = [
        "id", "time", "outcome", "tool", "class", "category", "method", "path", "params", "code",
        "reason", "approval", "upid", "client", "of",
    ];
    let page = Page { offset: 0, limit: usize::MAX, asked: false };
    Table::new(columns)
        .fill(records.iter(), page, |r| {
            let e = &r.entry;
            vec![
                r.seq.into(),
                r.time.clone().into(),
                e.outcome.as_str().into(),
                e.tool.clone().into(),
                e.class.clone().into(),
                e.category.clone().into(),
                e.method.clone().into(),
                e.path.clone().into(),
                if e.params.is_null() { Value::Null } else { e.params.to_string().into() },
                e.code.clone().into(),
                e.reason.clone().into(),
                e.approval.clone().into(),
                e.upid.clone().into(),
                e.client.clone().into(),
                e.of.into(),
            ]
        })
        .into_answer("records")
}

/// Arguments of `pve_impact`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Impact {
    vmid: Option<Vmid>,
    node: Option<NodeName>,
    storage: Option<String>,
    /// API path of any other object, as /nodes/N/network/vmbr0 or /pools/P.
    path: Option<String>,
}

/// `pve_impact`
pub async fn impact(ctx: Ctx<'_>, args: Impact) -> Result<Answer> {
    let (what, method, path, params) = match (args.vmid, &args.node, &args.storage, &args.path) {
        (Some(vmid), None, None, None) => {
            let guest = ctx.guest(vmid).await?;
            let id = vmid.to_string();
            let path = ApiPath::of(&["nodes", &guest.node, guest.kind.as_str(), &id])?;
            (super::title(&guest), Method::Delete, path, Params::new())
        }
        (None, Some(node), None, None) => {
            let node = ctx.node(node.as_str()).await?;
            let path = ApiPath::of(&["nodes", &node, "status"])?;
            let params = Params::new().with("command", "shutdown");
            (format!("node {node}"), Method::Post, path, params)
        }
        (None, None, Some(storage), None) => {
            let path = ApiPath::of(&["storage", storage])?;
            (format!("storage {storage}"), Method::Delete, path, Params::new())
        }
        (None, None, None, Some(path)) => {
            let path = ApiPath::parse(path)?;
            let vmid = API.find(&path).and_then(|e| e.variable("vmid", &path));
            if let Some(vmid) = vmid.and_then(|v| Vmid::parse(v).ok()) {
                ctx.may_see(vmid)?;
            }
            (path.to_string(), strongest(&path)?, path, Params::new())
        }
        _ => {
            let which = "name one object: vmid, node, storage or path";
            return Err(Error::argument(which).with("argument", "vmid"));
        }
    };
    let operation = Operation { method, path, params };
    let mut lines = impact::of(&operation, &Shown(ctx)).await;
    if lines.is_empty() {
        lines.push("nothing is known to hang on it".to_owned());
    }
    if ctx.app.config.read_allowed_only {
        lines.push("guests that PROXMOX_READ_VMIDS hides are not counted".to_owned());
    }
    Ok(Answer::new(json!({"object": what, "depends_on_it": lines}))
        .heading(format!("what hangs on {what}")))
}

/// The change of an object that most hangs on: its removal, where there is one.
fn strongest(path: &ApiPath) -> Result<Method> {
    let endpoint = API.find(path);
    [Method::Delete, Method::Put, Method::Post]
        .into_iter()
        .find(|method| endpoint.is_some_and(|e| e.action(*method).is_some()))
        .ok_or_else(|| {
            Error::new(Code::NotFound, format!("no object that can be changed is at {path}"))
                .hint("pve_api_explore lists the paths")
        })
}

/// Arguments of `pve_undo`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Undo {
    #[schemars(range(min = 1))]
    audit_id: u64,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_undo`
pub async fn undo(ctx: Ctx<'_>, args: Undo) -> Result<Answer> {
    let kept = match ctx.app.undo.find(args.audit_id) {
        Ok(kept) => kept,
        Err(error) => {
            find_by_step(ctx, args.audit_id).ok_or_else(|| explain(ctx, args.audit_id, error))?
        }
    };
    let path = ApiPath::parse(&kept.path)?;
    let now = ctx.app.pve.get_fresh(&path, &Params::new()).await?;
    let inverse = kept.inverse(&now)?;
    let limits = kept.limits(&now);
    match ctx.run(inverse, &args.asked).await? {
        Submitted::DryRun(answer) => {
            Ok(answer.with("undoes", args.audit_id).with("limits", limits))
        }
        Submitted::Sent(sent) => Ok(sent
            .with("undoes", args.audit_id)
            .with("limits", limits)
            .into_answer(format!("undone: {path}"))),
    }
}

/// The state that a call replaced, by any record of that call: later steps
/// name the one that sent it.
fn find_by_step(ctx: Ctx<'_>, id: u64) -> Option<Kept> {
    let query = Query { limit: 5_000, ..Query::default() };
    let records = audit::search(&ctx.app.config.audit.path, &query).ok()?;
    let sending = records.iter().find(|r| r.seq == id)?.entry.of?;
    ctx.app.undo.find(sending).ok()
}

/// Says why there is no undo, and what would come nearest.
fn explain(ctx: Ctx<'_>, id: u64, error: Error) -> Error {
    let query = Query { limit: 5_000, ..Query::default() };
    let records = audit::search(&ctx.app.config.audit.path, &query).unwrap_or_default();
    let Some(record) = records.iter().find(|r| r.seq == id) else {
        return Error::new(Code::NotFound, format!("the audit log has no record {id}"))
            .hint("pve_audit_log lists the records with their ids");
    };
    let class = record.entry.class.as_deref().unwrap_or_default();
    let what = format!(
        "{} {}",
        record.entry.method.as_deref().unwrap_or_default(),
        record.entry.path.as_deref().unwrap_or_default()
    );
    let nearest = record
        .entry
        .path
        .as_deref()
        .and_then(|p| ApiPath::parse(p).ok())
        .zip(record.entry.method.as_deref().and_then(Method::parse))
        .map_or_else(
            || error.hint.clone(),
            |(path, method)| impact::nearest(method, &path).to_owned(),
        );
    let lost = if class == Class::Read.as_str() {
        "it changed nothing"
    } else {
        "its former state is not kept"
    };
    Error::new(Code::NotFound, format!("there is no undo for {what}: {lost}")).hint(nearest)
}
