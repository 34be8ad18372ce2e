//! A guest's options.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Code, Error, Result,
    insight::estate::{Guest, GuestKind},
    pve::{Params, Vmid, loose},
    render::Answer,
    safety::{Method, Operation},
    tools::{
        Ctx,
        change::{AskedTask, Submitted, on_guest},
        core::title,
    },
};

/// Arguments of `pve_guest_config_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
    vmid: Vmid,
    /// As {"cores": 4, "onboot": true}.
    set: Option<Map<String, Value>>,
    delete: Option<Vec<String>>,
    /// Drops their pending change.
    revert: Option<Vec<String>>,
    digest: Option<String>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_guest_config_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    let guest = ctx.guest_now(args.vmid).await?;
    let mut keys: Vec<String> = args.set.iter().flatten().map(|(k, _)| k.clone()).collect();
    let named: Vec<&String> =
        args.delete.iter().flatten().chain(args.revert.iter().flatten()).collect();
    if keys.is_empty() && named.is_empty() {
        return Err(Error::argument("nothing to change: give `set`, `delete` or `revert`"));
    }
    for (word, list) in [("delete", &args.delete), ("revert", &args.revert)] {
        if let Some(odd) = list.iter().flatten().find(|name| !is_option_name(name)) {
            return Err(Error::argument(format!("`{word}` names no option: {odd:?}"))
                .with("argument", word));
        }
    }
    if let Some(both) = keys.iter().find(|k| named.contains(k)) {
        return Err(Error::argument(format!("option {both} is both set and deleted or reverted")));
    }
    let mut params = Params::from_json(&Value::Object(args.set.unwrap_or_default()))?;
    for (word, list) in [("delete", &args.delete), ("revert", &args.revert)] {
        if let Some(list) = list.as_ref().filter(|l| !l.is_empty()) {
            params = params.with(word, list.join(","));
            keys.extend(list.iter().cloned());
        }
    }
    change(ctx, &guest, params, &keys, args.digest, &args.asked).await
}

/// A name such as `net0` or `ostype`: what could end a list is none.
fn is_option_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Sends one change of a guest's configuration with its digest, and answers
/// with the options before and after. VMs take it as a task where a disk is
/// touched, which only the asynchronous call tells truly.
pub async fn change(
    ctx: Ctx<'_>,
    guest: &Guest,
    params: Params,
    keys: &[String],
    digest: Option<String>,
    asked: &AskedTask,
) -> Result<Answer> {
    let now = ctx.get_below(guest, &["config"], Params::new()).await?;
    let current = loose::text(&now, "digest");
    if let (Some(given), Some(current)) = (&digest, &current)
        && given != current
    {
        return Err(Error::new(
            Code::DigestChanged,
            "the configuration has changed since it was read",
        )
        .hint("read it again with pve_vm_config, and decide again")
        .with("digest", current.clone()));
    }
    let params = params.with_some("digest", digest.or(current));
    let method = if guest.kind == GuestKind::Qemu { Method::Post } else { Method::Put };
    let operation: Operation = on_guest(method, guest, &["config"], params)?;
    let before = pick(&now, keys);
    match ctx.run(operation, asked).await? {
        Submitted::DryRun(answer) => Ok(answer.with("before", before).untrusted(&["before"])),
        Submitted::Sent(sent) => {
            ctx.app.pve.forget();
            let after = ctx.get_below(guest, &["config"], Params::new()).await;
            let after = after.map_or(Value::Null, |now| pick(&now, keys));
            let sent = sent.with("before", before).with("after", after);
            let waiting = pending(ctx, guest, keys).await;
            Ok(sent
                .with("pending_restart", waiting)
                .into_answer(format!("options of {}", title(guest)))
                .untrusted(&["before", "after"]))
        }
    }
}

/// The named options that wait for the guest's next start.
async fn pending(ctx: Ctx<'_>, guest: &Guest, keys: &[String]) -> Value {
    let Ok(rows) = ctx.get_below(guest, &["pending"], Params::new()).await else {
        return Value::Null;
    };
    let waiting: Vec<String> = loose::rows(&rows)
        .iter()
        .filter(|r| r.get("pending").is_some() || loose::flag(r, "delete"))
        .filter_map(|r| loose::text(r, "key"))
        .filter(|k| keys.contains(k))
        .collect();
    if waiting.is_empty() { Value::Null } else { json!(waiting) }
}

/// The named options of a configuration; one that is not set is `null`.
fn pick(config: &Value, keys: &[String]) -> Value {
    keys.iter()
        .map(|k| (k.clone(), config.get(k).cloned().unwrap_or(Value::Null)))
        .collect::<Map<_, _>>()
        .into()
}

/// Arguments of `pve_guest_tags_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Tags {
    vmid: Vmid,
    tags: Option<Vec<String>>,
    add: Option<Vec<String>>,
    remove: Option<Vec<String>>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_guest_tags_set`
pub async fn tags(ctx: Ctx<'_>, args: Tags) -> Result<Answer> {
    let guest = ctx.guest_now(args.vmid).await?;
    if args.tags.is_none() && args.add.is_none() && args.remove.is_none() {
        return Err(Error::argument("nothing to change: give `tags`, `add` or `remove`"));
    }
    let now = ctx.get_below(&guest, &["config"], Params::new()).await?;
    let old = loose::str(&now, "tags").map(loose::tags).unwrap_or_default();
    let mut new = match args.tags {
        Some(tags) => tags.iter().flat_map(|t| loose::tags(t)).collect(),
        None => old.clone(),
    };
    new.extend(args.add.iter().flatten().flat_map(|t| loose::tags(t)));
    let gone: Vec<String> = args.remove.iter().flatten().flat_map(|t| loose::tags(t)).collect();
    new.retain(|t| !gone.contains(t));
    new.sort();
    new.dedup();
    if let Some(odd) = new.iter().find(|t| !is_tag(t)) {
        return Err(Error::argument(format!("{odd:?} cannot be a tag"))
            .hint("letters, digits, `_` and, not first, `-`, `+` and `.`"));
    }
    if new == old {
        return Ok(Answer::new(json!({"status": "no_change", "vmid": args.vmid, "tags": old})));
    }
    let params = if new.is_empty() {
        Params::new().with("delete", "tags")
    } else {
        Params::new().with("tags", new.join(";"))
    };
    change(ctx, &guest, params, &["tags".to_owned()], None, &args.asked).await
}

/// `pve-tag` of the API: `[a-z0-9_][a-z0-9_\-\+\.]*`, case folded.
fn is_tag(tag: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.starts_with(word) && tag.chars().all(|c| word(c) || matches!(c, '-' | '+' | '.'))
}
