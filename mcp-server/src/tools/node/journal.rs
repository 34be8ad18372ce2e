//! The journal of a node.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Error, Result,
    pve::{NodeName, Params, loose},
    render::{ANSWER_BUDGET, Answer},
    tools::{Ctx, core::epoch},
};

/// Arguments of `pve_node_journal`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Journal {
    node: Option<NodeName>,
    /// RFC 3339 or epoch seconds.
    since: Option<String>,
    until: Option<String>,
    /// As `corosync`.
    unit: Option<String>,
    contains: Option<String>,
    #[schemars(range(min = 1, max = 5_000))]
    limit: Option<usize>,
}

/// Lines unless the caller says otherwise.
const LINES: usize = 100;
/// Lines that are looked through for a unit or a text.
const LOOKED_AT: usize = 5_000;

/// `pve_node_journal`
pub async fn journal(ctx: Ctx<'_>, args: Journal) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let limit = args.limit.unwrap_or(LINES);
    let since = args.since.as_deref().map(epoch).transpose()?;
    let until = args.until.as_deref().map(epoch).transpose()?;
    if let (Some(since), Some(until)) = (since, until)
        && since > until
    {
        return Err(Error::argument("`since` is after `until`").with("argument", "since"));
    }
    let filtered = args.unit.is_some() || args.contains.is_some();
    let mut params = Params::new().with_some("since", since).with_some("until", until);
    // A span is read whole; else the newest lines are enough.
    if since.is_none() {
        params = params.with("lastentries", if filtered { LOOKED_AT } else { limit });
    }
    let rows = ctx.get_with(&["nodes", &node, "journal"], params).await?;
    let all: Vec<&str> =
        loose::rows(&rows).iter().filter_map(Value::as_str).filter(|l| !is_cursor(l)).collect();
    let looked_at = all.len();
    let word = args.contains.as_deref().map(str::to_lowercase);
    let mut lines: Vec<&str> = all
        .into_iter()
        .filter(|l| args.unit.as_deref().is_none_or(|unit| is_of(l, unit)))
        .filter(|l| word.as_ref().is_none_or(|w| l.to_lowercase().contains(w)))
        .collect();
    let found = lines.len();
    lines.drain(..found.saturating_sub(limit));
    if args.limit.is_none() {
        fit(&mut lines);
    }
    let shown = lines.len();
    let mut out = json!({"node": node, "lines": lines, "found": found, "shown": shown});
    if let (Value::Object(map), true) = (&mut out, filtered) {
        map.insert("looked_at".into(), looked_at.into());
    }
    let heading = format!("{shown} of {found} journal lines of {node}, oldest first");
    Ok(Answer::new(out).heading(heading).untrusted(&["lines"]))
}

/// The first and the last row say where in the journal they stand.
fn is_cursor(line: &str) -> bool {
    line.starts_with("s=") && line.contains(";i=") && line.contains(";b=")
}

/// Whether a line comes from a program or unit: `Nov 30 00:22:20 pve1 corosync[1602]: …`.
fn is_of(line: &str, unit: &str) -> bool {
    let unit = unit.strip_suffix(".service").unwrap_or(unit);
    let Some(source) = line.split_whitespace().nth(4) else { return false };
    let source = source.trim_end_matches(':');
    source.split('[').next().is_some_and(|name| name == unit)
}

/// The newest lines that fit an answer.
fn fit(lines: &mut Vec<&str>) {
    let mut bytes = 0;
    let keep = lines
        .iter()
        .rev()
        .take_while(|line| {
            bytes += line.len() + 4;
            bytes < ANSWER_BUDGET - 1_000
        })
        .count();
    lines.drain(..lines.len() - keep);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_from_cursors_and_by_their_program() {
        let cursor = "s=65f96f15d318411fadd7882a5aeca5c4;i=870;b=c74fa7ff;m=dc9897d3;t=66;x=1e";
        assert!(is_cursor(cursor));
        let line = "Nov 30 00:22:20 pve1 pveproxy[277]: s=1 and pvedaemon[1]: no cursor";
        assert!(!is_cursor(line));
        for (unit, want) in
            [("pveproxy", true), ("pveproxy.service", true), ("pvedaemon", false), ("pve", false)]
        {
            assert_eq!(is_of(line, unit), want, "{unit}");
        }
        assert!(is_of("Nov 30 00:22:20 pve1 kernel: oops", "kernel"));
    }

    #[test]
    fn the_newest_lines_stay() {
        let long = "x".repeat(crate::render::ANSWER_BUDGET / 2);
        let all = ["old", long.as_str(), long.as_str(), "new"];
        let mut lines = all.to_vec();
        fit(&mut lines);
        assert!(lines.len() < all.len() && all.ends_with(&lines), "{} lines", lines.len());
        assert_eq!(lines.last(), Some(&"new"));
    }
}
