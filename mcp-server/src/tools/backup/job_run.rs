//! Running a stored job now: what the schedule would do, on every node that has its guests.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::jobs::{existing, selected};
use crate::{
    Code, Error, Result,
    insight::{coverage::covering, estate::BackupJob},
    pve::{NodeName, Params, loose},
    render::Answer,
    safety::{Method, Operation},
    tools::{
        Ctx,
        change::{Asked, AskedTask, Submitted},
        outcome::operation,
    },
};

/// Arguments of `pve_backup_job_run`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Run {
    id: String,
    node: Option<NodeName>,
    /// Deletes older ones, as the schedule does.
    remove: Option<bool>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// Members of a job that are about when it runs, not how.
const SCHEDULING: [&str; 14] = [
    "id",
    "type",
    "enabled",
    "schedule",
    "next-run",
    "comment",
    "node",
    "dow",
    "starttime",
    "repeat-missed",
    "digest",
    "remove",
    "prune-backups",
    "maxfiles",
];

/// The parameters of one run.
fn params(job: &Value, remove: bool) -> Result<Params> {
    let mut params = Params::new().with_bool("remove", remove);
    for (name, value) in job.as_object().into_iter().flatten() {
        let retention = remove && matches!(name.as_str(), "prune-backups" | "maxfiles");
        if SCHEDULING.contains(&name.as_str()) && !retention {
            continue;
        }
        let text = match value {
            Value::Object(parts) => {
                let part = |k: &String| Some(format!("{k}={}", loose::text(value, k)?));
                parts.keys().filter_map(part).collect::<Vec<_>>().join(",")
            }
            Value::Array(items) => {
                params = params.with_many(name, items.iter().filter_map(Value::as_str));
                continue;
            }
            _ => match loose::text(job, name) {
                Some(text) => text,
                None => continue,
            },
        };
        params = params.with(name, text);
    }
    Ok(params)
}

/// `pve_backup_job_run`
pub async fn run(ctx: Ctx<'_>, args: Run) -> Result<Answer> {
    let stored = existing(ctx, &args.id).await?;
    let Some(mut job) = BackupJob::list(&Value::Array(vec![stored.clone()])).pop() else {
        return Err(Error::new(Code::BadAnswer, "the job cannot be read"));
    };
    // A job that is switched off can be run by hand.
    job.enabled = true;
    let jobs = [job];
    let guests = ctx.guests().await?;
    let takes = |node: &str| {
        guests
            .iter()
            .any(|g| &*g.node == node && !g.template && covering(&jobs, g).next().is_some())
    };
    let nodes: Vec<String> = match &args.node {
        Some(node) => vec![ctx.node(node.as_str()).await?],
        None => ctx.node_names().await?,
    };
    let nodes: Vec<String> = nodes.into_iter().filter(|n| takes(n)).collect();
    if nodes.is_empty() {
        return Err(Error::new(
            Code::Conflict,
            format!("job {} takes no guest that is there", args.id),
        )
        .hint("pve_backup_coverage shows which guests are in which job"));
    }
    let remove = args.remove == Some(true);
    if remove && nodes.len() > 1 {
        return Err(Error::argument("with `remove` a job is run on one node at a time")
            .hint(format!("each run is confirmed by itself: give `node`, of {}", nodes.join(", ")))
            .with("argument", "node"));
    }
    let params = params(&stored, remove)?;
    let calls: Vec<Operation> = nodes
        .iter()
        .map(|node| operation(Method::Post, &["nodes", node, "vzdump"], params.clone()))
        .collect::<Result<_>>()?;
    let heading = format!(
        "job {} ({}) on {}",
        args.id,
        jobs.first().map(|j| selected(&j.selection)).unwrap_or_default(),
        nodes.join(", ")
    );
    if let [only] = calls.as_slice() {
        let done = ctx.run(only.clone(), &args.asked).await?;
        return Ok(match done {
            Submitted::DryRun(answer) => answer,
            Submitted::Sent(sent) => sent.into_answer(heading),
        });
    }
    several(ctx, &nodes, calls, &args.asked, heading).await
}

/// One run after another node by node: each is started, then all are waited for.
async fn several(
    ctx: Ctx<'_>,
    nodes: &[String],
    calls: Vec<Operation>,
    asked: &AskedTask,
    heading: String,
) -> Result<Answer> {
    for call in calls.iter().filter(|_| asked.dry_run != Some(true)) {
        // A yes is for one node, and a call that has to begin anew for the next would send the
        // first again.
        let trial = Asked { dry_run: Some(true), ..asked.asked() };
        if let Submitted::DryRun(plan) = ctx.submit(call.clone(), &trial).await?
            && plan.structured.get("needs_approval") == Some(&Value::Bool(true))
        {
            return Err(Error::argument(
                "each node's run is approved by itself, and nothing was sent",
            )
            .hint(format!("give `node`, of {}", nodes.join(", ")))
            .with("argument", "node"));
        }
    }
    let mut runs: Vec<Value> = Vec::new();
    let mut sent = Vec::new();
    for (node, call) in nodes.iter().zip(calls) {
        match ctx.submit(call, &asked.asked()).await {
            Ok(Submitted::DryRun(answer)) => runs.push(answer.structured),
            Ok(Submitted::Sent(one)) => sent.push((node, one)),
            Err(error) => {
                let started: Vec<&String> = sent.iter().map(|(node, _)| *node).collect();
                return Err(error.with("node", node.as_str()).with("started_on", json!(started)));
            }
        }
    }
    if sent.is_empty() {
        let class = runs.first().and_then(|r| r.get("class")).cloned().unwrap_or(Value::Null);
        let out = json!({"status": "dry_run", "class": class, "runs": runs});
        return Ok(Answer::new(out).heading(heading));
    }
    let class = sent.first().and_then(|(_, s)| s.answer.get("class")).cloned();
    let (mut status, mut failed) = ("done", Vec::new());
    for (node, one) in sent {
        match ctx.finish(*one, asked.patience()).await {
            Ok(one) => {
                if one.answer.get("status").is_some_and(|s| s == "started") {
                    status = "started";
                }
                runs.push(Value::Object(one.answer));
            }
            Err(error) => {
                failed.push(node.clone());
                runs.push(error.to_json());
            }
        }
    }
    if !failed.is_empty() {
        return Err(Error::new(
            Code::TaskFailed,
            format!("the backup failed on {}", failed.join(", ")),
        )
        .hint("`runs` has each node's task with the end of its log")
        .with("runs", runs));
    }
    let out = json!({"status": status, "class": class, "runs": runs});
    Ok(Answer::new(out).heading(heading))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_by_hand_keeps_older_backups_unless_asked() {
        let job = json!({
            "id": "nightly", "type": "vzdump", "enabled": 1, "schedule": "21:00", "next-run": 5,
            "storage": "nas", "mode": "snapshot", "vmid": "100,101", "compress": "zstd",
            "prune-backups": {"keep-last": "3"}, "notes-template": "{{guestname}}",
            "repeat-missed": 0, "exclude-path": ["/tmp", "/var/cache"], "node": "pve1",
        });
        let plain = params(&job, false).unwrap().to_json();
        assert_eq!(
            plain,
            json!({
                "remove": "0", "storage": "nas", "mode": "snapshot", "vmid": "100,101",
                "compress": "zstd", "notes-template": "{{guestname}}",
                "exclude-path": ["/tmp", "/var/cache"],
            })
        );
        let asked = params(&job, true).unwrap().to_json();
        assert_eq!(
            (&asked["remove"], &asked["prune-backups"]),
            (&"1".into(), &"keep-last=3".into())
        );
    }
}
