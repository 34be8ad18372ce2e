//! Stopping a task.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    Result,
    pve::{ApiPath, Params, Upid, task},
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
    let before = task::status(&ctx.app.pve, &upid).await?;
    if before.done() && args.asked.dry_run != Some(true) {
        return Ok(Answer::new(
            json!({"status": "no_change", "task": before.to_json(), "note": "the task has ended already"}),
        ));
    }
    let path = ApiPath::of(&["nodes", upid.node(), "tasks", &upid.to_string()])?;
    let operation = Operation { method: Method::Delete, path, params: Params::new() };
    match ctx.submit(operation, &args.asked).await? {
        Submitted::DryRun(answer) => Ok(answer.with("before", before.to_json())),
        Submitted::Sent(sent) => {
            let after = task::status(&ctx.app.pve, &upid).await.map(|t| t.to_json()).ok();
            Ok(sent
                .with("before", before.to_json())
                .with("after", after)
                .into_answer("stopping the task"))
        }
    }
}
