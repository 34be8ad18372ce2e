//! What the groups network, node and access share: one question to several
//! nodes, and reads that decide about a change.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Map, Value};

use super::Ctx;
use crate::{
    Code, Error, Result,
    pve::{ApiPath, NodeName, Params, loose},
};

/// What nodes answered, and what was not seen.
pub struct Across {
    /// The answers, by node.
    pub answers: Vec<(String, Arc<Value>)>,
    /// `node NAME: why`, for each that did not answer.
    pub missing: Vec<String>,
}

impl Across {
    /// The rows of all answers, each with its node.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.answers
            .iter()
            .flat_map(|(node, rows)| loose::rows(rows).iter().map(move |row| (node.as_str(), row)))
    }
}

impl Ctx<'_> {
    /// Asks one node, or each of them where none is named. A node that does
    /// not answer is told as missing, unless it was the one named, or none did.
    ///
    /// # Errors
    /// `not_found` for an unknown node, and what the read answers.
    pub async fn across(
        self,
        node: Option<&NodeName>,
        below: &[&str],
        params: Params,
    ) -> Result<Across> {
        let nodes = match node {
            Some(name) => vec![self.node(name.as_str()).await?],
            None => self.node_names().await?,
        };
        let asked = nodes.into_iter().map(|node| {
            let params = params.clone();
            async move {
                let mut segments = vec!["nodes", node.as_str()];
                segments.extend(below);
                let answer = self.get_with(&segments, params).await;
                (node, answer)
            }
        });
        let mut across = Across { answers: Vec::new(), missing: Vec::new() };
        let mut first = None;
        for (node, answer) in join_all(asked).await {
            match answer {
                Ok(answer) => across.answers.push((node, answer)),
                Err(error) => {
                    across.missing.push(format!("node {node}: {}", error.message));
                    first.get_or_insert(error);
                }
            }
        }
        match first {
            Some(error) if across.answers.is_empty() => Err(error),
            _ => Ok(across),
        }
    }

    /// Reads what is there now, never from the kept answers.
    ///
    /// # Errors
    /// As [`Ctx::get`].
    pub async fn fresh(self, segments: &[&str], params: Params) -> Result<Arc<Value>> {
        let path = ApiPath::of(segments)?;
        self.may_read(&path, &params)?;
        self.shown(&path, self.app.pve.get_fresh(&path, &params).await?).await
    }
}

/// The digest to send: the one that the caller saw, which has to be the present one.
///
/// # Errors
/// `digest_changed` when what the caller saw is not what is there.
pub fn same_digest(
    seen: Option<String>,
    now: Option<String>,
    what: &str,
    read_again: &str,
) -> Result<Option<String>> {
    if let (Some(seen), Some(now)) = (&seen, &now)
        && seen != now
    {
        return Err(Error::new(Code::DigestChanged, format!("{what} changed since it was read"))
            .hint(format!("read it again with {read_again}, and decide again"))
            .with("digest", now.clone()));
    }
    Ok(seen.or(now))
}

/// A row of a list by the name that it carries.
pub fn named<'v>(rows: &'v Value, key: &str, name: &str) -> Option<&'v Value> {
    loose::rows(rows).iter().find(|row| loose::str(row, key) == Some(name))
}

/// The members that say something, without those left out.
pub fn members(row: &Value, without: &[&str]) -> Value {
    let Some(map) = row.as_object() else { return Value::Null };
    map.iter()
        .filter(|(key, value)| {
            !without.contains(&key.as_str()) && !value.is_null() && value.as_str() != Some("")
        })
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}

/// Whether two values say the same, however Proxmox or a caller typed them.
pub fn same(old: Option<&Value>, new: &str) -> bool {
    let old = match old {
        Some(Value::String(s)) => s.trim_end().to_owned(),
        Some(Value::Bool(b)) => u8::from(*b).to_string(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    old == new.trim_end()
}

/// `no_change`, for a `_set` that would change nothing.
pub fn unchanged(before: Value) -> crate::render::Answer {
    crate::render::Answer::new(serde_json::json!({"status": "no_change", "before": before}))
        .heading("nothing to change")
        .untrusted(&["before"])
}
