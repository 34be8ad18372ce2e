//! Applying what is pending.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ROOT, pending};
use crate::{
    Result,
    pve::{Params, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        change::AskedTask,
        outcome::{operation, told},
    },
};

/// Arguments of `pve_sdn_apply`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Apply {
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_sdn_apply`
pub async fn apply(ctx: Ctx<'_>, args: Apply) -> Result<Answer> {
    let waiting = waiting(ctx).await?;
    let done = ctx.run(operation(Method::Put, &ROOT, Params::new())?, &args.asked).await?;
    let after = async { waiting_left(ctx).await.map_or(Value::Null, |n| json!({"pending": n})) };
    let before = json!({"pending": waiting});
    Ok(told(done, before, after, "networks of the whole cluster").await)
}

async fn waiting_left(ctx: Ctx<'_>) -> Result<usize> {
    Ok(waiting(ctx).await?.len())
}

/// What is pending, whole: applying takes all of it, whoever staged it.
async fn waiting(ctx: Ctx<'_>) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    let mut take = |kind: &str, key: &str, rows: &Value| {
        for row in loose::rows(rows).iter().filter(|r| loose::some(r, "state").is_some()) {
            found.push(json!({
                "kind": kind, "id": loose::text(row, key), "change": loose::text(row, "state"),
                "settings": row.get("pending"),
            }));
        }
    };
    let zones = ctx.fresh(&["cluster", "sdn", "zones"], pending()).await?;
    take("zone", "zone", &zones);
    let vnets = ctx.fresh(&["cluster", "sdn", "vnets"], pending()).await?;
    take("vnet", "vnet", &vnets);
    for vnet in loose::rows(&vnets).iter().filter_map(|v| loose::str(v, "vnet")) {
        if let Ok(rows) = ctx.fresh(&["cluster", "sdn", "vnets", vnet, "subnets"], pending()).await
        {
            take("subnet", "subnet", &rows);
        }
    }
    if let Ok(rows) = ctx.fresh(&["cluster", "sdn", "controllers"], pending()).await {
        take("controller", "controller", &rows);
    }
    Ok(found)
}
