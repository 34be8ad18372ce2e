//! Which guests and disks the backup jobs cover, and how old the last good backup is.

use futures::{StreamExt, future::BoxFuture, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::history::{self, History, percent};
use crate::{
    Result,
    insight::{
        attention::{Finding, attention},
        coverage::{Cover, DiskCover, GuestCover, coverage as covers},
        estate::{Backup, Estate, Guest, Part},
    },
    pve::{Params, Vmid},
    render::{Answer, Page, Table, units},
    tools::Ctx,
};

/// How many reads are under way at once.
const AT_ONCE: usize = 16;

/// Arguments of `pve_backup_coverage`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Coverage {
    vmid: Option<Vmid>,
    /// Only guests with one.
    gaps: Option<bool>,
    /// Also how the runs of the last 90 days went.
    history: Option<bool>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
    #[schemars(range(min = 0))]
    offset: Option<usize>,
}

/// `pve_backup_coverage`
pub async fn coverage(ctx: Ctx<'_>, args: Coverage) -> Result<Answer> {
    if let Some(vmid) = args.vmid {
        ctx.guest(vmid).await?;
    }
    let estate = read(ctx, args.vmid).await?;
    let all = attention(&estate, usize::MAX);
    let rows: Vec<GuestCover> = match covers(&estate) {
        Part::Known(rows) => rows,
        Part::Unknown(_) => Vec::new(),
    };
    let mut lines: Vec<Line<'_>> = Vec::new();
    for row in rows.into_iter().filter(|r| args.vmid.is_none_or(|v| v == r.vmid)) {
        let Some(guest) = estate.guest(row.vmid) else { continue };
        let finding = all.findings.iter().find(|f| {
            f.vmid == Some(row.vmid) && matches!(f.code, "backup_overdue" | "never_backed_up")
        });
        let state = state(&estate, &row, guest, finding);
        lines.push(Line { guest, last: newest(&estate, row.vmid), state, row });
    }
    let count = |state: &str| lines.iter().filter(|l| l.state == state).count();
    let states = ["ok", "partly", "overdue", "never", "not", "unknown"];
    let counts: Vec<(&str, usize)> =
        states.iter().map(|s| (*s, count(s))).filter(|(_, n)| *n > 0).collect();
    if args.gaps == Some(true) {
        lines.retain(|l| l.state != "ok");
    }
    let history = match args.history {
        Some(true) => Some(history::read(ctx, &estate).await),
        _ => None,
    };
    let rate = history.as_ref().map(|h| h.good_of(lines.iter().map(|l| l.row.vmid)));
    let mut columns = vec![
        "vmid",
        "name",
        "node",
        "cover",
        "state",
        "jobs",
        "last_backup",
        "age",
        "last_size_bytes",
        "last_storage",
        "reason",
        "disks_left_out",
    ];
    if history.is_some() {
        columns.extend([
            "last_status",
            "last_start",
            "last_duration",
            "last_verified",
            "runs_90d",
            "success_percent_90d",
        ]);
    }
    // What is not looked for here is not missing either.
    let unseen = all.unknown.iter().filter(|u| {
        u.what != "failed backup tasks" && (u.what.contains("backup") || u.what.contains("guest"))
    });
    let table = Table::new(columns)
        .fill(lines.iter(), Page::new(args.limit, args.offset), |line| {
            let mut cells = line.cells();
            cells.extend(history.iter().flat_map(|h| line.past(h)));
            cells
        })
        .missing(
            unseen
                .map(|u| format!("{}: {}", u.what, u.why))
                .chain(history.iter().flat_map(|h| h.missing.clone())),
        );
    let answer = table.into_answer("guests and their backups");
    let counts: serde_json::Map<String, Value> =
        counts.into_iter().map(|(s, n)| (s.to_owned(), n.into())).collect();
    let mut answer = answer.with("guests_by_state", counts);
    if let Some((good, all)) = rate {
        let percent = percent((good, all));
        answer = answer.with(
            "last_90_days",
            json!({"runs": all, "failed": all - good, "success_percent": percent}),
        );
    }
    // One guest is told disk by disk.
    Ok(match lines.first() {
        Some(line) if args.vmid.is_some() => answer.with("disks", disks(&line.row)),
        _ => answer,
    })
}

/// Each disk of a guest with its cover and, where it has one, the reason.
fn disks(row: &GuestCover) -> Value {
    row.disks.iter().map(|d| json!(d)).collect::<Vec<_>>().into()
}

/// One guest on its way into the table.
struct Line<'a> {
    guest: &'a Guest,
    row: GuestCover,
    last: Option<(&'a str, &'a Backup)>,
    state: &'static str,
}

impl Line<'_> {
    /// How the guest's runs went.
    fn past(&self, history: &History) -> [Value; 6] {
        let runs = history.runs.get(&self.row.vmid).map_or(&[][..], Vec::as_slice);
        let last = runs.last();
        let status = last.map(|run| run.failure.clone().unwrap_or_else(|| "OK".to_owned()));
        let seconds = last.and_then(|run| u64::try_from(run.seconds?).ok());
        [
            status.into(),
            last.map(|run| units::time(run.start)).into(),
            seconds.map(units::duration).into(),
            self.last.map(|(_, b)| b.verified).into(),
            runs.len().into(),
            percent(history.good_of([self.row.vmid])).into(),
        ]
    }

    fn cells(&self) -> Vec<Value> {
        let out = |d: &&DiskCover| d.cover == Cover::Not && self.row.cover == Cover::Partly;
        let left_out: Vec<String> = self
            .row
            .disks
            .iter()
            .filter(out)
            .map(|d| format!("{}: {}", d.disk, d.reason.as_deref().unwrap_or("not covered")))
            .collect();
        let age = |b: &Backup| units::duration(u64::try_from(units::now() - b.ctime).unwrap_or(0));
        vec![
            self.row.vmid.get().into(),
            self.guest.name.clone().into(),
            (&*self.guest.node).into(),
            json!(self.row.cover),
            self.state.into(),
            self.row.jobs.join(" ").into(),
            self.last.map(|(_, b)| units::time(b.ctime)).into(),
            self.last.map(|(_, b)| age(b)).into(),
            self.last.map(|(_, b)| b.size).into(),
            self.last.map(|(storage, _)| storage).into(),
            self.row.reason.clone().into(),
            left_out.join("; ").into(),
        ]
    }
}

/// What a guest is in, in one word. A guest whose backups cannot be seen is
/// never said to have none.
fn state(
    estate: &Estate,
    row: &GuestCover,
    guest: &Guest,
    finding: Option<&Finding>,
) -> &'static str {
    match (row.cover, finding.map(|f| f.code)) {
        (Cover::Unknown, _) => "unknown",
        (Cover::Not, _) => "not",
        (_, Some("never_backed_up")) => "never",
        (_, Some(_)) => "overdue",
        (Cover::Covered | Cover::Partly, None) => {
            if newest(estate, row.vmid).is_none() && hidden(estate, guest, row) {
                "unknown"
            } else if row.cover == Cover::Partly {
                "partly"
            } else {
                "ok"
            }
        }
    }
}

/// Whether backups of a guest could be there without being seen.
fn hidden(estate: &Estate, guest: &Guest, row: &GuestCover) -> bool {
    let Some(rights) = estate.rights.known() else { return true };
    let jobs = estate.jobs.rows().iter().filter(|job| row.jobs.contains(&job.id));
    jobs.into_iter().any(|job| {
        let read = estate
            .content
            .iter()
            .any(|(key, part)| key.storage == job.storage && part.known().is_some());
        !read || rights.hides_backups(guest, &job.storage).is_some()
    })
}

/// The newest good backup of a guest, and on which storage it is.
fn newest(estate: &Estate, vmid: Vmid) -> Option<(&str, &Backup)> {
    let all = estate.content.iter().filter_map(|(key, part)| Some((key, part.known()?)));
    all.flat_map(|(key, content)| content.backups.iter().map(|b| (key.storage.as_str(), b)))
        .filter(|(_, backup)| backup.vmid == vmid && !backup.broken)
        .max_by_key(|(_, backup)| backup.ctime)
}

/// What a read was for.
enum What {
    Content(String, String),
    Config(Box<Guest>),
    Time(String),
}

/// Reads what coverage needs: jobs, the guests' disks, backups, rights, time zones.
async fn read(ctx: Ctx<'_>, only: Option<Vmid>) -> Result<Estate> {
    let mut estate = Estate::new(units::now());
    let (resources, rights, jobs) = futures::join!(
        ctx.get(&["cluster", "resources"]),
        ctx.get(&["access", "permissions"]),
        ctx.get(&["cluster", "backup"]),
    );
    let shown = resources?;
    estate.read_resources(Ok(&shown));
    estate.read_rights(rights.as_deref());
    estate.read_jobs(jobs.as_deref());
    let mut reads: Vec<BoxFuture<'_, _>> = Vec::new();
    for key in estate.content_to_read() {
        let holds = |s: &&crate::insight::estate::Storage| s.id == key.storage && s.holds("backup");
        if estate.storages.rows().iter().find(holds).is_none() {
            continue;
        }
        reads.push(Box::pin(async move {
            let path = ["nodes", &key.node, "storage", &key.storage, "content"];
            let answer = ctx.get_with(&path, Params::new().with("content", "backup")).await;
            (What::Content(key.node.clone(), key.storage.clone()), answer)
        }));
    }
    for node in estate.nodes.rows().iter().filter(|n| !estate.is_offline(&n.name)) {
        let node = node.name.to_string();
        reads.push(Box::pin(async move {
            let answer = ctx.get(&["nodes", &node, "time"]).await;
            (What::Time(node), answer)
        }));
    }
    let wanted = |g: &&Guest| only.is_none_or(|v| v == g.vmid) && !estate.is_offline(&g.node);
    for guest in estate.guests.rows().iter().filter(wanted).cloned() {
        reads.push(Box::pin(async move {
            let answer = ctx.get_below(&guest, &["config"], Params::new()).await;
            (What::Config(Box::new(guest)), answer)
        }));
    }
    let answers: Vec<_> = stream::iter(reads).buffer_unordered(AT_ONCE).collect().await;
    for (what, answer) in &answers {
        let answer = answer.as_deref();
        match what {
            What::Content(node, storage) => estate.read_content(node, storage, answer),
            What::Config(guest) => estate.read_config(guest.vmid, guest.kind, answer),
            What::Time(node) => estate.read_time(node, answer),
        }
    }
    Ok(estate)
}
