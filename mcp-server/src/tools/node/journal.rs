//! The journal of a node.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Error, Result,
    pve::{NodeName, Params, loose},
    render::{ANSWER_BUDGET, Answer},
    safety::Method,
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
    /// 3 is errors and worse, 4 warnings too.
    #[schemars(range(min = 0, max = 7))]
    priority: Option<u8>,
    contains: Option<String>,
    #[schemars(range(min = 1, max = 5_000))]
    limit: Option<usize>,
}

/// Lines unless the caller says otherwise.
const LINES: usize = 100;
/// Lines that are looked through for a unit or a text.
const LOOKED_AT: usize = 5_000;
/// How far before `until` is looked, in seconds: the last lines, without asking for years of them.
const BEFORE: [i64; 3] = [3_600, 86_400, 30 * 86_400];

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
    let filters = Filters::of(ctx, &node, &args).await?;
    let by_us = filters.unit.is_some() || filters.word.is_some();
    let rows = match (since, until) {
        // A span is read whole.
        (Some(since), _) => {
            let span = filters.params.clone().with("since", since).with_some("until", until);
            ctx.get_with(&["nodes", &node, "journal"], span).await?
        }
        // The newest lines cannot be asked for together with an end.
        (None, Some(until)) => before(ctx, &node, &filters, until, limit).await?,
        (None, None) => {
            let newest = if by_us { LOOKED_AT } else { limit };
            let params = filters.params.clone().with("lastentries", newest);
            ctx.get_with(&["nodes", &node, "journal"], params).await?
        }
    };
    let looked_at = lines(&rows).count();
    let mut lines: Vec<&str> = lines(&rows).filter(|line| filters.takes(line)).collect();
    let found = lines.len();
    lines.drain(..found.saturating_sub(limit));
    if args.limit.is_none() {
        fit(&mut lines);
    }
    let shown = lines.len();
    let mut out = json!({"node": node, "lines": lines, "found": found, "shown": shown});
    if let (Value::Object(map), true) = (&mut out, by_us) {
        map.insert("looked_at".into(), looked_at.into());
    }
    let heading = format!("{shown} of {found} journal lines of {node}, oldest first");
    Ok(Answer::new(out).heading(heading).untrusted(&["lines"]))
}

/// What lines are wanted: what the node picks out itself, and what is left to us.
struct Filters {
    params: Params,
    unit: Option<String>,
    word: Option<String>,
}

impl Filters {
    /// Nodes pick out a program and a priority by themselves since their API has these
    /// parameters; before that the program is looked for here, and a priority cannot be.
    async fn of(ctx: Ctx<'_>, node: &str, args: &Journal) -> Result<Self> {
        let word = args.contains.as_deref().map(str::to_lowercase);
        let unit = args.unit.as_deref().map(|u| u.strip_suffix(".service").unwrap_or(u).to_owned());
        let mut filters = Self { params: Params::new(), unit, word };
        if filters.unit.is_none() && args.priority.is_none() {
            return Ok(filters);
        }
        let schema = ctx.app.pve.schema().await;
        let path = format!("/nodes/{node}/journal");
        let knows = |name: &str| {
            let method = schema.as_ref().ok().and_then(|s| s.method(&path, Method::Get).ok());
            method.is_some_and(|(_, info)| info.parameters.contains_key(name))
        };
        if let Some(priority) = args.priority {
            if let Err(error) = &schema {
                return Err(error.clone());
            }
            if !knows("priority") {
                return Err(Error::argument("this release of Proxmox VE cannot pick by priority")
                    .hint("take `unit` or `contains`")
                    .with("argument", "priority"));
            }
            filters.params = filters.params.with("priority", priority);
        }
        let plain = |unit: &str| {
            !unit.is_empty()
                && unit.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.@:-".contains(&b))
        };
        if let Some(unit) = filters.unit.take_if(|unit| plain(unit) && knows("service")) {
            filters.params = filters.params.with("service", unit);
        }
        Ok(filters)
    }

    fn takes(&self, line: &str) -> bool {
        self.unit.as_deref().is_none_or(|unit| is_of(line, unit))
            && self.word.as_ref().is_none_or(|word| line.to_lowercase().contains(word))
    }
}

/// The lines up to a moment, from as far before it as it takes to find enough.
async fn before(
    ctx: Ctx<'_>,
    node: &str,
    filters: &Filters,
    until: i64,
    limit: usize,
) -> Result<Arc<Value>> {
    let mut rows = Arc::new(Value::Null);
    for span in BEFORE {
        let params = filters
            .params
            .clone()
            .with("since", until.saturating_sub(span).max(0))
            .with("until", until);
        rows = ctx.get_with(&["nodes", node, "journal"], params).await?;
        if lines(&rows).filter(|line| filters.takes(line)).count() >= limit {
            break;
        }
    }
    Ok(rows)
}

fn lines(rows: &Value) -> impl Iterator<Item = &str> {
    loose::rows(rows).iter().filter_map(Value::as_str).filter(|line| !is_cursor(line))
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
