//! How the backups of the last 90 days went, guest by guest: what the backup
//! tasks of all nodes say, and for runs over several guests their logs.

use std::collections::BTreeMap;

use futures::{StreamExt, future::BoxFuture, stream};
use jiff::{civil::DateTime, tz::TimeZone};

use crate::{
    insight::estate::{Estate, Task},
    pve::{Params, Vmid, loose},
    tools::Ctx,
};

/// How far back, days.
pub const DAYS: i64 = 90;
/// How many logs of runs over several guests are read, the newest first.
const MOST_LOGS: usize = 1_000;
/// How many lines of one log, and how many tasks of a node.
const MOST: u32 = 20_000;
/// How many reads are under way at once.
const AT_ONCE: usize = 16;

/// One guest's part in one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Seconds since 1970.
    pub start: i64,
    /// How long it took, seconds, where that is known.
    pub seconds: Option<i64>,
    /// Why it failed.
    pub failure: Option<String>,
}

/// What is known of the runs.
#[derive(Debug, Default)]
pub struct History {
    /// The runs of each guest, oldest first.
    pub runs: BTreeMap<Vmid, Vec<Run>>,
    /// What could not be seen.
    pub missing: Vec<String>,
}

impl History {
    /// How many of the runs of these guests were good, and how many there were.
    pub fn good_of(&self, guests: impl IntoIterator<Item = Vmid>) -> (usize, usize) {
        let mut sum = (0, 0);
        for run in guests.into_iter().filter_map(|vmid| self.runs.get(&vmid)).flatten() {
            sum.0 += usize::from(run.failure.is_none());
            sum.1 += 1;
        }
        sum
    }
}

/// Good runs in percent with one decimal; none where there were no runs.
#[allow(clippy::cast_precision_loss)]
pub fn percent((good, all): (usize, usize)) -> Option<f64> {
    (all > 0).then(|| (good as f64 / all as f64 * 1000.0).round() / 10.0)
}

/// Reads the history; the estate has nodes, rights and time zones already.
pub async fn read(ctx: Ctx<'_>, estate: &Estate) -> History {
    let mut out = History::default();
    let since = estate.now - DAYS * 86_400;
    let names: Vec<String> = estate.nodes.rows().iter().map(|n| n.name.to_string()).collect();
    let mut lists: Vec<BoxFuture<'_, Result<Vec<Task>, String>>> = Vec::new();
    for name in names.clone() {
        if estate.is_offline(&name) {
            out.missing.push(format!("backup tasks of {name}: the node is offline"));
            continue;
        }
        lists.push(Box::pin(async move {
            let params = Params::new()
                .with("typefilter", "vzdump")
                .with("since", since)
                .with("source", "archive")
                .with("limit", MOST);
            let rows = ctx.get_with(&["nodes", &name, "tasks"], params).await;
            let tasks = rows.map(|rows| Task::list(&rows));
            tasks.map_err(|e| format!("backup tasks of {name}: {}", e.message))
        }));
    }
    let mut tasks: Vec<Task> = Vec::new();
    for list in stream::iter(lists).buffered(AT_ONCE).collect::<Vec<_>>().await {
        match list {
            Ok(list) => tasks.extend(list),
            Err(why) => out.missing.push(why),
        }
    }
    if let Some(rights) = estate.rights.known() {
        let blind = |n: &String| !rights.has(&format!("/nodes/{n}"), "Sys.Audit");
        let blind: Vec<String> = names.into_iter().filter(blind).collect();
        if !blind.is_empty() {
            let nodes = blind.join(", ");
            out.missing
                .push(format!("backup tasks of other users on {nodes}: the token lacks Sys.Audit"));
        }
    }
    tasks.retain(|t| t.kind == "vzdump" && !t.running() && t.start >= since);
    tasks.sort_by_key(|task| std::cmp::Reverse(task.start));
    let (single, several): (Vec<Task>, Vec<Task>) =
        tasks.into_iter().partition(|t| t.vmid().is_some());
    for task in single {
        let run = Run {
            start: task.start,
            seconds: task.end.map(|end| end - task.start),
            failure: task.failure().map(str::to_owned),
        };
        if let Some(vmid) = task.vmid() {
            out.runs.entry(vmid).or_default().push(run);
        }
    }
    let unread = several.len().saturating_sub(MOST_LOGS);
    if unread > 0 {
        out.missing.push(format!("{unread} older runs: only the newest {MOST_LOGS} are read"));
    }
    let mut logs: Vec<BoxFuture<'_, _>> = Vec::new();
    for task in several.into_iter().take(MOST_LOGS) {
        logs.push(Box::pin(async move {
            let path = ["nodes", &task.node, "tasks", &task.upid, "log"];
            let rows = ctx.get_with(&path, Params::new().with("limit", MOST)).await;
            let lines = rows.map(|rows| {
                loose::rows(&rows).iter().filter_map(|r| loose::text(r, "t")).collect::<Vec<_>>()
            });
            (task, lines)
        }));
    }
    let mut lost = 0_usize;
    for (task, lines) in stream::iter(logs).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await {
        match lines {
            Ok(lines) => {
                for (vmid, run) in of_log(&task, &lines, &estate.zone(&task.node)) {
                    out.runs.entry(vmid).or_default().push(run);
                }
            }
            Err(_) => lost += 1,
        }
    }
    if lost > 0 {
        out.missing.push(format!("the logs of {lost} runs"));
    }
    for runs in out.runs.values_mut() {
        runs.sort_by_key(|run| run.start);
    }
    out
}

/// The guests of a run over several, as vzdump writes its log.
fn of_log(task: &Task, lines: &[String], zone: &TimeZone) -> Vec<(Vmid, Run)> {
    let mut out: Vec<(Vmid, Run)> = Vec::new();
    let mut open: Option<(Vmid, i64)> = None;
    let unfinished = |(vmid, start): (Vmid, i64)| {
        let failure = Some(task.failure().unwrap_or("its end is not in the log").to_owned());
        (vmid, Run { start, seconds: None, failure })
    };
    for line in lines {
        let info = line.strip_prefix("INFO: ").unwrap_or_default();
        if let Some((vmid, _)) = info.strip_prefix("Starting Backup of VM ").and_then(number) {
            out.extend(open.take().map(unfinished));
            open = Some((vmid, task.start));
        } else if let (Some(at), Some((_, start))) =
            (info.strip_prefix("Backup started at "), &mut open)
        {
            let at = at.trim().parse::<DateTime>().ok().and_then(|at| zone.to_timestamp(at).ok());
            *start = at.map_or(*start, |at| at.as_second());
        } else if let Some((vmid, rest)) =
            info.strip_prefix("Finished Backup of VM ").and_then(number)
        {
            let start = open.take().filter(|o| o.0 == vmid).map_or(task.start, |o| o.1);
            out.push((vmid, Run { start, seconds: duration(rest), failure: None }));
        } else if let Some((vmid, rest)) =
            line.strip_prefix("ERROR: Backup of VM ").and_then(number)
        {
            let start = open.take().filter(|o| o.0 == vmid).map_or(task.start, |o| o.1);
            let why = rest.trim_start().trim_start_matches("failed - ").to_owned();
            out.push((vmid, Run { start, seconds: None, failure: Some(why) }));
        }
    }
    out.extend(open.map(unfinished));
    out
}

/// A VMID and what follows it.
fn number(text: &str) -> Option<(Vmid, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((Vmid::parse(digits).ok()?, rest))
}

/// Seconds of ` (01:02:03)`.
fn duration(text: &str) -> Option<i64> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    inner.split(':').try_fold(0, |sum, part| Some(sum * 60 + part.parse::<i64>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_tells_each_guest() {
        let task = Task {
            upid: "U".into(),
            node: "pve1".into(),
            kind: "vzdump".into(),
            id: String::new(),
            user: "root@pam".into(),
            start: 1_000,
            end: Some(9_000),
            status: Some("job errors".into()),
        };
        let lines: Vec<String> = [
            "INFO: starting new backup job: vzdump --all 1",
            "INFO: Starting Backup of VM 100 (qemu)",
            "INFO: Backup started at 2026-11-30 02:10:00",
            "INFO: Finished Backup of VM 100 (01:02:03)",
            "INFO: Starting Backup of VM 101 (lxc)",
            "ERROR: Backup of VM 101 failed - no space left on device",
            "INFO: Failed at 2026-11-30 03:00:00",
            "INFO: Starting Backup of VM 102 (qemu)",
            "INFO: Finished Backup of VM 999999999999 (00:00:01)",
        ]
        .map(str::to_owned)
        .to_vec();
        let vmid = |n| Vmid::new(n).unwrap();
        let run = |start, seconds, failure: Option<&str>| Run {
            start,
            seconds,
            failure: failure.map(str::to_owned),
        };
        assert_eq!(
            of_log(&task, &lines, &TimeZone::UTC),
            [
                (vmid(100), run(1_796_004_600, Some(3_723), None)),
                (vmid(101), run(1_000, None, Some("no space left on device"))),
                (vmid(102), run(1_000, None, Some("job errors"))),
            ]
        );
    }

    #[test]
    fn rates() {
        for (counts, want) in [((0, 0), None), ((1, 3), Some(33.3)), ((3, 3), Some(100.0))] {
            assert_eq!(percent(counts), want);
        }
    }
}
