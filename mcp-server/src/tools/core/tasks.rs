//! Tasks: what Proxmox is doing and has done.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Error, Result,
    pve::{
        ApiPath, NodeName, Params, Upid, Vmid, loose,
        task::{self, TaskStatus},
    },
    render::{Answer, Page, Table, units},
    tools::{Ctx, Progress, change::WAIT},
};

/// Arguments of `pve_list_tasks`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct List {
    node: Option<NodeName>,
    vmid: Option<Vmid>,
    /// As vzdump, qmstart, aptupdate.
    r#type: Option<String>,
    user: Option<String>,
    errors: Option<bool>,
    running: Option<bool>,
    /// RFC 3339 or epoch seconds.
    since: Option<String>,
    #[schemars(range(min = 1, max = 5_000))]
    limit: Option<usize>,
    #[schemars(range(min = 0))]
    offset: Option<usize>,
}

/// Tasks that are listed unless asked otherwise: a UPID makes each row long.
const DEFAULT_TASKS: usize = 40;

/// `pve_list_tasks`
pub async fn list(ctx: Ctx<'_>, args: List) -> Result<Answer> {
    if let Some(vmid) = args.vmid {
        ctx.may_see(vmid)?;
    }
    let nodes = match &args.node {
        Some(node) => vec![ctx.node(node.as_str()).await?],
        None => ctx.node_names().await?,
    };
    let mut page = Page::new(args.limit, args.offset);
    if !page.asked {
        page.limit = DEFAULT_TASKS;
    }
    let since = args.since.as_deref().map(epoch).transpose()?;
    let most = page.offset.saturating_add(page.limit).saturating_add(1);
    let mut params = Params::new().with("limit", most);
    params = params.with("source", if args.running == Some(true) { "active" } else { "all" });
    params = params.with_some("vmid", args.vmid).with_some("typefilter", args.r#type.as_deref());
    params = params.with_some("userfilter", args.user.as_deref()).with_some("since", since);
    if args.errors == Some(true) {
        params = params.with("errors", 1);
    }
    let asked = nodes.iter().map(|node| {
        let params = params.clone();
        async move { (node, ctx.get_with(&["nodes", node, "tasks"], params).await) }
    });
    let (mut rows, mut missing, mut failed) = (Vec::new(), Vec::new(), None);
    for (node, answer) in futures::future::join_all(asked).await {
        match answer {
            Ok(answer) => rows.extend(loose::rows(&answer).iter().cloned()),
            Err(e) => {
                missing.push(format!("node {node}: {}", e.message));
                failed = Some(e);
            }
        }
    }
    if let Some(error) = failed
        && missing.len() == nodes.len()
    {
        return Err(error);
    }
    rows.retain(|row| {
        let vmid = loose::text(row, "id").and_then(|id| Vmid::parse(&id).ok());
        vmid.is_none_or(|vmid| ctx.sees(vmid))
    });
    rows.sort_by_key(|r| std::cmp::Reverse(loose::int(r, "starttime")));
    let columns = ["start", "duration_s", "node", "type", "id", "user", "status", "upid"];
    let table = Table::new(columns).fill(rows.iter(), page, row).missing(missing);
    Ok(table.into_answer(if rows.len() >= most { "or more tasks" } else { "tasks" }))
}

fn row(task: &Value) -> Vec<Value> {
    let start = loose::int(task, "starttime");
    let end = loose::int(task, "endtime");
    vec![
        start.map(units::time).into(),
        end.zip(start).map(|(e, s)| e - s).into(),
        loose::text(task, "node").into(),
        loose::text(task, "type").into(),
        loose::text(task, "id").into(),
        loose::text(task, "user").into(),
        match (loose::text(task, "status"), end) {
            (Some(status), _) => status,
            (None, None) => "running".to_owned(),
            (None, Some(_)) => "unknown".to_owned(),
        }
        .into(),
        loose::text(task, "upid").into(),
    ]
}

/// Seconds since 1970 from what a caller wrote.
pub fn epoch(text: &str) -> Result<i64> {
    if let Ok(seconds) = text.parse::<i64>() {
        return Ok(seconds);
    }
    text.parse::<jiff::Timestamp>().map(|t| t.as_second()).map_err(|_| {
        Error::argument(format!("argument `since` is no time: {text:?}"))
            .hint("as 2026-11-30T12:00:00+01:00, or seconds since 1970")
            .with("argument", "since")
    })
}

/// Arguments of `pve_task_status`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Status {
    upid: String,
    /// At most 45 s unless `timeout_s` says more.
    wait: Option<bool>,
    #[schemars(range(min = 1, max = 86_400))]
    timeout_s: Option<u64>,
}

/// `pve_task_status`
pub async fn status(ctx: Ctx<'_>, args: Status) -> Result<Answer> {
    let upid = visible(ctx, &args.upid)?;
    let now = if args.wait == Some(true) {
        wait(ctx, &upid, args.timeout_s.map_or(WAIT, Duration::from_secs)).await?
    } else {
        task::status(&ctx.app.pve, &upid).await?
    };
    let mut out = json!({
        "upid": upid.as_str(), "node": upid.node(), "type": upid.kind(), "id": upid.id(),
        "user": upid.user(), "start": units::time(upid.start()),
    });
    if let (Value::Object(map), Value::Object(state)) = (&mut out, now.to_json()) {
        map.extend(state);
    }
    let heading = match (now.done(), now.ok()) {
        (false, _) => "the task is running",
        (true, true) => "the task ended well",
        (true, false) => "the task failed",
    };
    Ok(Answer::new(out).heading(heading).untrusted(&[
        "exitstatus",
        "log_tail",
        "warning_lines",
        "first_error",
    ]))
}

/// Waits for a task; the caller hears the lines of its log in between.
///
/// # Errors
/// `cancelled` when the caller no longer waits: the task itself goes on.
pub async fn wait(ctx: Ctx<'_>, upid: &Upid, patience: Duration) -> Result<TaskStatus> {
    let shows = may_read_log(ctx, upid).is_ok();
    let tell = |line: &str, percent: Option<f64>| {
        let message = if shows { line.to_owned() } else { "the task goes on".to_owned() };
        ctx.session.progress(Progress { message, percent });
    };
    task::wait(&ctx.app.pve, upid, patience, tell, ctx.session.cancelled()).await
}

/// Whether the log may be read: that of a task about several guests names each of them.
fn may_read_log(ctx: Ctx<'_>, upid: &Upid) -> Result<()> {
    let path = ApiPath::of(&["nodes", upid.node(), "tasks", &upid.to_string(), "log"])?;
    ctx.may_read(&path, &Params::new())
}

/// A task whose guest may be read.
fn visible(ctx: Ctx<'_>, text: &str) -> Result<Upid> {
    let upid = Upid::parse(text)?;
    if let Some(vmid) = upid.vmid() {
        ctx.may_see(vmid)?;
    }
    Ok(upid)
}

/// Arguments of `pve_task_log`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Log {
    upid: String,
    /// From 0; the newest lines unless said.
    #[schemars(range(min = 0))]
    start: Option<usize>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
}

/// `pve_task_log`
pub async fn log(ctx: Ctx<'_>, args: Log) -> Result<Answer> {
    let upid = visible(ctx, &args.upid)?;
    may_read_log(ctx, &upid)?;
    let found = task::log(&ctx.app.pve, &upid, args.start, args.limit.unwrap_or(100)).await?;
    let shown = found.lines.len();
    let end = found.start + shown;
    let heading = format!("lines {} to {end} of {}", found.start, found.total);
    let mut out = json!({
        "lines": found.lines, "start": found.start, "shown": shown, "total": found.total,
    });
    if end < found.total
        && let Value::Object(map) = &mut out
    {
        map.insert("next".into(), end.into());
    }
    Ok(Answer::new(out).heading(heading).untrusted(&["lines"]))
}
