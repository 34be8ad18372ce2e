//! The firewall's log.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::place::{Place, guest_place};
use crate::{
    Error, Result,
    pve::{ApiPath, NodeName, Params, Vmid, loose},
    render::Answer,
    tools::{Ctx, core::epoch},
};

/// Arguments of `pve_firewall_log`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Log {
    node: Option<NodeName>,
    vmid: Option<Vmid>,
    /// RFC 3339 or epoch seconds.
    since: Option<String>,
    until: Option<String>,
    contains: Option<String>,
    #[schemars(range(min = 1, max = 5_000))]
    limit: Option<u64>,
}

/// Lines unless the caller says otherwise.
const LINES: u64 = 100;
/// Lines that are looked through for a text.
const LOOKED_AT: u64 = 5_000;

/// `pve_firewall_log`
pub async fn log(ctx: Ctx<'_>, args: Log) -> Result<Answer> {
    let place = match (args.vmid, &args.node) {
        (Some(_), Some(_)) => {
            return Err(Error::argument("only one of `node` and `vmid` can be meant"));
        }
        (Some(vmid), None) => guest_place(&ctx.guest(vmid).await?),
        (None, node) => Place::of_node(&ctx.node_or_only(node.as_ref()).await?),
    };
    let limit = args.limit.unwrap_or(LINES);
    let span = Params::new()
        .with_some("since", args.since.as_deref().map(epoch).transpose()?)
        .with_some("until", args.until.as_deref().map(epoch).transpose()?);
    let path = ApiPath::of(&place.below(&["log"]))?;
    // The log is read from its beginning: the newest lines are found by the count of all.
    let first = ctx.app.pve.answer(&path, &span.clone().with("limit", 1)).await?;
    let total = first.total.unwrap_or_else(|| loose::rows(&first.data).len() as u64);
    let want = if args.contains.is_some() { LOOKED_AT } else { limit };
    let start = total.saturating_sub(want);
    let params = span.with("start", start).with("limit", want);
    let rows = ctx.read(&path, &params).await?;
    let word = args.contains.as_deref().map(str::to_lowercase);
    let mut lines: Vec<String> = loose::rows(&rows)
        .iter()
        .filter_map(|r| loose::text(r, "t"))
        .filter(|t| t != "no content")
        .filter(|t| word.as_ref().is_none_or(|w| t.to_lowercase().contains(w)))
        .collect();
    let fit = usize::try_from(limit).unwrap_or(usize::MAX);
    let left_out = lines.len().saturating_sub(fit);
    lines.drain(..left_out);
    let heading = format!("{} of {total} lines of the firewall log of {}", lines.len(), place.name);
    let mut answer = Answer::new(serde_json::json!({"lines": lines, "total": total}));
    if start > 0 && word.is_some() {
        answer = answer.with("looked_at", total - start);
    }
    if left_out > 0 {
        answer = answer.with("left_out", Value::from(left_out));
    }
    Ok(answer.heading(heading).untrusted(&["lines"]))
}
