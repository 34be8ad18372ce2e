//! Waiting for a task: its status, and only the new lines of its log.

use std::{future::Future, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Client, Params, Upid, loose,
    task::{Log, TaskReport, TaskStatus},
};
use crate::{Code, Error, Result};

/// First pause between two looks, and the longest.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);
/// Lines asked for at once.
const PAGE: u64 = 500;
/// Pages read at one look; what a chatty task writes beyond is skipped to its end.
const PAGES: u32 = 4;

/// What waiting came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Waited {
    /// The task ended.
    Ended(Box<TaskReport>),
    /// The time was over; the task goes on.
    StillRunning,
    /// The caller cancelled the wait; the task goes on.
    Cancelled,
}

/// News of a task that runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Lines that its log got since the last news.
    pub lines: Vec<String>,
    /// How far it is, 0 to 100, where the log tells.
    pub percent: Option<f64>,
}

impl Client {
    /// How a task stands now, without its log.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn task_status(&self, upid: &Upid) -> Result<TaskStatus> {
        let status = self.get_fresh(&upid.path("status")?, &Params::new()).await?;
        Ok(TaskStatus::of(&status))
    }

    /// Waits until a task ends, for at most `timeout`. `on_progress` hears of
    /// new lines of its log. Neither the end of the time nor cancelling touches
    /// the task.
    ///
    /// # Errors
    /// As [`Client::get`], when the node's answers fail for good; a failed task
    /// is no error here (see [`TaskReport::into_result`]).
    pub async fn wait(
        &self,
        upid: &Upid,
        timeout: Duration,
        mut on_progress: impl FnMut(Progress),
        cancel: &CancellationToken,
    ) -> Result<Waited> {
        let end = Instant::now() + timeout;
        let mut log = Log::default();
        let mut pause = FIRST;
        loop {
            let look = async {
                let status = self.task_status(upid).await?;
                // A log that cannot be read takes nothing from the status.
                let lines = self.new_lines(upid, &mut log).await.unwrap_or_default();
                Ok::<_, Error>((status, lines))
            };
            let Some(looked) = until(look, end, cancel).await else {
                return Ok(given_up(cancel));
            };
            match looked {
                Ok((status, lines)) => {
                    if !lines.is_empty() {
                        pause = FIRST;
                        on_progress(Progress { lines, percent: log.percent });
                    }
                    if !status.running {
                        self.forget();
                        return Ok(Waited::Ended(Box::new(report(upid, status, log))));
                    }
                }
                // The node may be busy with the very task; the next look tells.
                Err(error) if matches!(error.code, Code::Timeout | Code::Unreachable) => {
                    tracing::debug!(%upid, %error, "task could not be looked at");
                }
                Err(error) => return Err(error),
            }
            if until(tokio::time::sleep(pause), end, cancel).await.is_none() {
                return Ok(given_up(cancel));
            }
            pause = (pause * 3 / 2).min(LONGEST);
        }
    }

    async fn new_lines(&self, upid: &Upid, log: &mut Log) -> Result<Vec<String>> {
        let path = upid.path("log")?;
        let mut lines = Vec::new();
        for page in 1..=PAGES {
            let params = Params::new().with("start", log.next).with("limit", PAGE);
            let answer = self.answer(&path, &params).await?;
            let rows = loose::rows(&answer.data);
            lines.extend(log.take(rows));
            if (rows.len() as u64) < PAGE {
                break;
            }
            let total = answer.total.unwrap_or(0);
            if page == PAGES && total > log.next + PAGE {
                log.next = total - PAGE;
            }
        }
        Ok(lines)
    }
}

fn report(upid: &Upid, status: TaskStatus, log: Log) -> TaskReport {
    let failed = !status.ok;
    TaskReport {
        upid: upid.clone(),
        warning_lines: log.warnings,
        first_error: log.first_error.filter(|_| failed),
        log_tail: if failed { log.tail.into() } else { Vec::new() },
        status,
    }
}

/// Runs until the end of the time or a cancellation; `None` for both.
async fn until<T>(
    work: impl Future<Output = T>,
    end: Instant,
    cancel: &CancellationToken,
) -> Option<T> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        done = work => Some(done),
        () = tokio::time::sleep_until(end) => None,
    }
}

fn given_up(cancel: &CancellationToken) -> Waited {
    if cancel.is_cancelled() { Waited::Cancelled } else { Waited::StillRunning }
}
