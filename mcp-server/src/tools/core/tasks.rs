//! Tasks: what Proxmox is doing and has done.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Code, Error, Result,
    pve::{NodeName, Params, Upid, Vmid, Waited, loose},
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
    /// Only what failed.
    errors: Option<bool>,
    running: Option<bool>,
    /// RFC 3339, or seconds since 1970.
    since: Option<String>,
    #[schemars(range(min = 1, max = 5_000))]
    limit: Option<usize>,
    #[schemars(range(min = 0))]
    offset: Option<usize>,
}

/// `pve_list_tasks`
pub async fn list(ctx: Ctx<'_>, args: List) -> Result<Answer> {
    if let Some(vmid) = args.vmid {
        ctx.may_see(vmid)?;
    }
    let nodes = match &args.node {
        Some(node) => vec![ctx.node(node.as_str()).await?],
        None => ctx.node_names().await?,
    };
    let page = Page::new(args.limit, args.offset);
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
    /// Waits until it has ended, 45 s unless `timeout_s` says more.
    wait: Option<bool>,
    #[schemars(range(min = 1, max = 86_400))]
    timeout_s: Option<u64>,
}

/// `pve_task_status`
pub async fn status(ctx: Ctx<'_>, args: Status) -> Result<Answer> {
    let upid = visible(ctx, &args.upid)?;
    let patience = args.timeout_s.map_or(WAIT, Duration::from_secs);
    let patience = if args.wait == Some(true) { patience } else { Duration::ZERO };
    let state = follow(ctx, &upid, patience).await?;
    let mut out = json!({
        "upid": upid.as_str(), "node": upid.node, "type": upid.kind, "id": upid.id,
        "user": upid.user, "start": units::time(upid.starttime),
    });
    let heading = if !loose::flag(&state, "done") {
        "the task is running"
    } else if loose::flag(&state, "ok") {
        "the task ended well"
    } else {
        "the task failed"
    };
    if let (Value::Object(map), Value::Object(state)) = (&mut out, state) {
        map.extend(state);
    }
    Ok(Answer::new(out).heading(heading).untrusted(&[
        "exitstatus",
        "log_tail",
        "warning_lines",
        "first_error",
    ]))
}

/// A task whose guest may be read.
fn visible(ctx: Ctx<'_>, text: &str) -> Result<Upid> {
    let upid = Upid::parse(text)?;
    if let Ok(vmid) = Vmid::parse(&upid.id) {
        ctx.may_see(vmid)?;
    }
    Ok(upid)
}

/// How a task stands after at most `patience`, as it is shown in answers:
/// `done`, `ok`, `exitstatus`, `warnings`, and of a failed one the end of its log.
/// The caller hears the lines of its log in between.
///
/// # Errors
/// What the reads answer, and `cancelled` when the caller no longer waits.
pub async fn follow(ctx: Ctx<'_>, upid: &Upid, patience: Duration) -> Result<Value> {
    if patience.is_zero() {
        let now = ctx.app.pve.task_status(upid).await?;
        if now.running {
            return Ok(json!({"done": false, "ok": null, "exitstatus": null, "warnings": 0}));
        }
    }
    let tell = |news: crate::pve::Progress| {
        if let Some(message) = news.lines.last() {
            ctx.session.progress(Progress { message: message.clone(), percent: news.percent });
        }
    };
    // A task that has ended still needs one look at its log.
    let patience = patience.max(Duration::from_secs(5));
    let cancelled = ctx.session.cancelled();
    match ctx.app.pve.wait(upid, patience, tell, &cancelled).await? {
        Waited::Ended(report) => {
            let mut state = json!({
                "done": true, "ok": report.status.ok,
                "exitstatus": report.status.exitstatus, "warnings": report.status.warnings,
            });
            if let Value::Object(map) = &mut state {
                for (key, lines) in
                    [("warning_lines", &report.warning_lines), ("log_tail", &report.log_tail)]
                {
                    if !lines.is_empty() {
                        map.insert(key.to_owned(), json!(lines));
                    }
                }
                if let Some(line) = &report.first_error {
                    map.insert("first_error".to_owned(), json!(line));
                }
            }
            Ok(state)
        }
        Waited::StillRunning => {
            Ok(json!({"done": false, "ok": null, "exitstatus": null, "warnings": 0}))
        }
        Waited::Cancelled => {
            tracing::info!(%upid, "wait cancelled, task continues");
            Err(Error::new(Code::Cancelled, "the wait was cancelled; the task goes on")
                .hint("pve_task_stop stops the task itself")
                .with("upid", upid.as_str()))
        }
    }
}

/// Arguments of `pve_task_log`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Log {
    upid: String,
    /// First line, from 0; the newest lines unless said.
    #[schemars(range(min = 0))]
    start: Option<u64>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u64>,
}

/// `pve_task_log`
pub async fn log(ctx: Ctx<'_>, args: Log) -> Result<Answer> {
    let upid = visible(ctx, &args.upid)?;
    let path = upid.path("log")?;
    let limit = args.limit.unwrap_or(100);
    let ask = |start: u64, limit: u64| {
        let params = Params::new().with("start", start).with("limit", limit);
        let path = path.clone();
        async move { ctx.app.pve.answer(&path, &params).await }
    };
    let start = match args.start {
        Some(start) => start,
        None => ask(0, 1).await?.total.unwrap_or(0).saturating_sub(limit),
    };
    let found = ask(start, limit).await?;
    let lines: Vec<String> =
        loose::rows(&found.data).iter().filter_map(|row| loose::text(row, "t")).collect();
    let shown = lines.len() as u64;
    let end = start + shown;
    let total = found.total.unwrap_or(end);
    let mut out = json!({"lines": lines, "start": start, "shown": shown, "total": total});
    if end < total
        && let Value::Object(map) = &mut out
    {
        map.insert("next".into(), end.into());
    }
    let heading = format!("lines {start} to {end} of {total}");
    Ok(Answer::new(out).heading(heading).untrusted(&["lines"]))
}
