//! Looking at tasks and waiting for them: status, and only the new lines of the log.

use std::{future::Future, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Client, Params, Upid, loose,
    task::{Log, TaskStatus},
};
use crate::{Code, Error, Result};

/// First pause between two looks, and the longest.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);
/// Lines asked for at once.
const PAGE: u64 = 500;
/// Pages read at one look; what a chatty task writes beyond is skipped to its end.
const PAGES: u32 = 4;

/// How a task stands now; when it failed or warned, with what its log says.
///
/// # Errors
/// As [`Client::get`].
pub async fn status(client: &Client, upid: &Upid) -> Result<TaskStatus> {
    let now = look(client, upid).await?;
    if !now.done() || (now.ok() && now.warnings() == 0) {
        return Ok(now);
    }
    let mut log = Log::default();
    // A log that cannot be read takes nothing from the status.
    let _ = new_lines(client, upid, &mut log).await;
    Ok(now.with_log(log))
}

/// Waits until a task ends, for at most `timeout`, and tells of each new line
/// of its log with the percentage it is at. A status that is not done means
/// that the time was over; the task goes on.
///
/// # Errors
/// `cancelled`, which does not touch the task either, and as [`Client::get`]
/// when the node's answers fail for good. A failed task is no error here.
pub async fn wait(
    client: &Client,
    upid: &Upid,
    timeout: Duration,
    mut tell: impl FnMut(&str, Option<f64>),
    cancelled: CancellationToken,
) -> Result<TaskStatus> {
    let end = Instant::now() + timeout;
    let mut log = Log::default();
    let mut pause = FIRST;
    loop {
        let looking = async {
            let now = look(client, upid).await?;
            let lines = new_lines(client, upid, &mut log).await.unwrap_or_default();
            Ok::<_, Error>((now, lines))
        };
        let Some(looked) = until(looking, end, &cancelled).await else {
            return given_up(upid, log, &cancelled);
        };
        match looked {
            Ok((now, lines)) => {
                if !lines.is_empty() {
                    pause = FIRST;
                    lines.iter().for_each(|line| tell(line, log.percent));
                }
                if now.done() {
                    // The lists may show what the task has made since they were kept.
                    client.forget();
                    return Ok(now.with_log(log));
                }
            }
            // The node may be busy with the very task; the next look tells.
            Err(error) if matches!(error.code, Code::Timeout | Code::Unreachable) => {
                tracing::debug!(%upid, %error, "task could not be looked at");
            }
            Err(error) => return Err(error),
        }
        if until(tokio::time::sleep(pause), end, &cancelled).await.is_none() {
            return given_up(upid, log, &cancelled);
        }
        pause = (pause * 3 / 2).min(LONGEST);
    }
}

/// Lines of a task's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    /// The lines, without control characters.
    pub lines: Vec<String>,
    /// Number of the first one, counted from 0.
    pub start: usize,
    /// How many lines the log has.
    pub total: usize,
}

/// Reads lines of a task's log from `start` on (counted from 0), or the newest.
///
/// # Errors
/// As [`Client::get`].
pub async fn log(
    client: &Client,
    upid: &Upid,
    start: Option<usize>,
    limit: usize,
) -> Result<LogPage> {
    let path = upid.path("log")?;
    let read = |start: usize, limit: usize| {
        let params = Params::new().with("start", start).with("limit", limit);
        let path = &path;
        async move { client.answer(path, &params).await }
    };
    let count = |answer: &super::Answer| {
        let total = answer.total.and_then(|t| usize::try_from(t).ok());
        total.unwrap_or_else(|| loose::rows(&answer.data).len())
    };
    let start = match start {
        Some(start) => start,
        None => count(&read(0, 1).await?).saturating_sub(limit),
    };
    let answer = read(start, limit).await?;
    let mut taken = Log { next: start as u64, ..Log::default() };
    let lines = taken.take(loose::rows(&answer.data));
    // A log without lines is shown as one that says "no content".
    let total = if lines.is_empty() && start == 0 { 0 } else { count(&answer) };
    Ok(LogPage { lines, start, total })
}

async fn look(client: &Client, upid: &Upid) -> Result<TaskStatus> {
    let answer = client.get_fresh(&upid.path("status")?, &Params::new()).await?;
    Ok(TaskStatus::of(&answer))
}

async fn new_lines(client: &Client, upid: &Upid, log: &mut Log) -> Result<Vec<String>> {
    let path = upid.path("log")?;
    let mut lines = Vec::new();
    for page in 1..=PAGES {
        let params = Params::new().with("start", log.next).with("limit", PAGE);
        let answer = client.answer(&path, &params).await?;
        let rows = loose::rows(&answer.data);
        lines.extend(log.take(rows));
        if (rows.len() as u64) < PAGE {
            break;
        }
        let total = answer.total.unwrap_or(0);
        if page == PAGES - 1 && total > log.next + PAGE {
            log.next = total - PAGE;
        }
    }
    Ok(lines)
}

/// Runs until the end of the time or a cancellation; `None` for both.
async fn until<T>(
    work: impl Future<Output = T>,
    end: Instant,
    cancelled: &CancellationToken,
) -> Option<T> {
    tokio::select! {
        biased;
        () = cancelled.cancelled() => None,
        done = work => Some(done),
        () = tokio::time::sleep_until(end) => None,
    }
}

fn given_up(upid: &Upid, log: Log, cancelled: &CancellationToken) -> Result<TaskStatus> {
    if cancelled.is_cancelled() {
        return Err(Error::new(Code::Cancelled, format!("no longer waiting for {upid}"))
            .hint("the task itself goes on; pve_task_stop stops it")
            .with("upid", upid.as_str()));
    }
    Ok(TaskStatus::default().with_log(log))
}
