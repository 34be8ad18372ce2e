//! Stopping a task.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    Result,
    pve::{ApiPath, Params, Upid},
    render::Answer,
    safety::{Method, Operation},
    tools::{
        Ctx,
        change::{Asked, Submitted},
    },
};

/// Arguments of `pve_task_stop`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Stop {
    upid: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_task_stop`
pub async fn stop(ctx: Ctx<'_>, args: Stop) -> Result<Answer> {
    let upid = Upid::parse(&args.upid)?;
    let before = ctx.app.pve.task_status(&upid).await?;
    if !before.running && args.asked.dry_run != Some(true) {
        return Ok(Answer::new(
            json!({"status": "no_change", "task": json!(before), "note": "the task has ended already"}),
        ));
    }
    let path = ApiPath::of(&["nodes", upid.node.as_str(), "tasks", &upid.to_string()])?;
    let operation = Operation { method: Method::Delete, path, params: Params::new() };
    match ctx.submit(operation, &args.asked).await? {
        Submitted::DryRun(answer) => Ok(answer.with("before", json!(before))),
        Submitted::Sent(sent) => {
            let after = ctx.app.pve.task_status(&upid).await.map(|t| json!(t)).ok();
            Ok(sent
                .with("before", json!(before))
                .with("after", after)
                .into_answer("stopping the task"))
        }
    }
}
