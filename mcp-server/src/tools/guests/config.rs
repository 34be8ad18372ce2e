//! A guest's options.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Code, Error, Result,
    insight::estate::{Guest, GuestKind},
    pve::{
        Params, Vmid,
        config_line::{Line, size},
        loose,
    },
    render::Answer,
    safety::{Method, Operation, redact::MASK},
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
    /// As {"cores": 4}; an object changes parts of a line: {"scsi1": {"backup": false}}.
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
    keep_masked(ctx, &guest, args.set.as_ref()).await?;
    let (set, digest) = lines(ctx, &guest, args.set.unwrap_or_default(), args.digest).await?;
    let mut params = Params::from_json(&Value::Object(set))?;
    for (word, list) in [("delete", &args.delete), ("revert", &args.revert)] {
        if let Some(list) = list.as_ref().filter(|l| !l.is_empty()) {
            params = params.with(word, list.join(","));
            keys.extend(list.iter().cloned());
        }
    }
    change(ctx, &guest, params, &keys, digest, &args.asked).await
}

/// Refuses a text with masks for an option that holds what they stand for: it would be lost.
async fn keep_masked(ctx: Ctx<'_>, guest: &Guest, set: Option<&Map<String, Value>>) -> Result<()> {
    let masked = |(_, value): &(&String, &Value)| value.as_str().is_some_and(|v| v.contains(MASK));
    let given: Vec<(&String, &Value)> = set.into_iter().flatten().filter(masked).collect();
    if given.is_empty() {
        return Ok(());
    }
    let now = ctx.get_below(guest, &["config"], Params::new()).await?;
    for (name, _) in given {
        let present = loose::text(&now, name).unwrap_or_default();
        if ctx.app.redactor().text(&present).is_some() {
            return Err(Error::argument(format!(
                "`{name}` holds what was shown as {MASK}, and writing that would lose it"
            ))
            .hint("change it by hand, or leave the option out")
            .with("argument", name.as_str()));
        }
    }
    Ok(())
}

/// What is set, with each line whole: Proxmox replaces lines, so what was not
/// named is taken from the present one, whose digest then goes along.
async fn lines(
    ctx: Ctx<'_>,
    guest: &Guest,
    mut set: Map<String, Value>,
    digest: Option<String>,
) -> Result<(Map<String, Value>, Option<String>)> {
    let is_line = |name: &str, value: &Value| {
        value.is_object()
            || is_disk(name) && value.as_str().is_some_and(|line| line.contains("size="))
    };
    if !set.iter().any(|(name, value)| is_line(name, value)) {
        return Ok((set, digest));
    }
    let now = ctx.get_below(guest, &["config"], Params::new()).await?;
    for (name, value) in &mut set {
        let present = loose::text(&now, name).unwrap_or_default();
        let whole = match value {
            Value::Object(parts) => merged(name, &present, parts)?,
            Value::String(line) if is_disk(name) => without_size(name, &present, line)?,
            _ => continue,
        };
        *value = whole.into();
    }
    Ok((set, digest.or_else(|| loose::text(&now, "digest"))))
}

/// A line with some of its parts changed; `null` takes one out.
fn merged(name: &str, present: &str, parts: &Map<String, Value>) -> Result<String> {
    let mut line = Line::parse(present, default_key(name));
    for (key, value) in parts {
        let odd = |what: &str| {
            Error::argument(format!("{key:?} of {name} {what}")).with("argument", "set")
        };
        if !is_option_name(key) {
            return Err(odd("is no part of a line"));
        }
        if is_disk(name) && key == "size" {
            return Err(odd("is not set: it follows the volume")
                .hint("pve_disk_resize makes a disk larger"));
        }
        let text = match value {
            Value::Null => {
                line.remove(key);
                continue;
            }
            Value::Bool(on) => u8::from(*on).to_string(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            _ => return Err(odd("is no single value")),
        };
        line.set(key, &text)?;
    }
    Ok(if is_disk(name) { line.to_write() } else { line.to_string() })
}

/// A disk's line as it may be written. A size that says what the disk has is
/// left out; another one would be a resize, which this is not.
fn without_size(name: &str, present: &str, wanted: &str) -> Result<String> {
    let key = default_key(name);
    let (now, line) = (Line::parse(present, key), Line::parse(wanted, key));
    let bytes = |line: &Line| line.get("size").and_then(size);
    let source = |line: &Line| key.and_then(|k| line.get(k)).map(str::to_owned);
    if source(&now) == source(&line) && bytes(&now) != bytes(&line) {
        return Err(Error::argument(format!(
            "{name} has {}, and its line does not change that",
            now.get("size").unwrap_or("another size")
        ))
        .hint("pve_disk_resize makes a disk larger; leave `size` out here")
        .with("argument", "set"));
    }
    Ok(line.to_write())
}

/// An option's name without its number.
fn bare(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

fn is_disk(name: &str) -> bool {
    matches!(default_key(name), Some("file" | "volume"))
}

/// The key that a value without one belongs to, as the API's formats have it.
fn default_key(name: &str) -> Option<&'static str> {
    Some(match bare(name) {
        "scsi" | "virtio" | "sata" | "ide" | "efidisk" | "tpmstate" => "file",
        "rootfs" | "mp" => "volume",
        "agent" => "enabled",
        "vga" | "machine" => "type",
        "cpu" => "cputype",
        "memory" => "current",
        "watchdog" => "model",
        "hostpci" | "usb" => "host",
        "rng" => "source",
        "startup" => "order",
        _ => return None,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_lines() {
        let disk = "local-lvm:vm-1-disk-0,discard=on,iothread=1,size=32G";
        for (name, present, parts, want) in [
            (
                "scsi0",
                disk,
                json!({"backup": false}),
                Some("local-lvm:vm-1-disk-0,discard=on,iothread=1,backup=0"),
            ),
            ("scsi0", disk, json!({"iothread": null}), Some("local-lvm:vm-1-disk-0,discard=on")),
            ("scsi0", disk, json!({"size": "64G"}), None),
            ("scsi0", disk, json!({"cache": "none,backup=0"}), None),
            ("scsi0", disk, json!({"cache,x": "none"}), None),
            ("scsi0", disk, json!({"cache": ["none"]}), None),
            (
                "net0",
                "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1",
                json!({"mtu": 9000}),
                Some("virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,mtu=9000"),
            ),
            (
                "agent",
                "1,fstrim_cloned_disks=1",
                json!({"enabled": false}),
                Some("0,fstrim_cloned_disks=1"),
            ),
            ("startup", "order=2,up=30", json!({"up": 60}), Some("order=2,up=60")),
            (
                "mp0",
                "local-lvm:vm-1-disk-1,mp=/srv,size=8G",
                json!({"backup": true}),
                Some("local-lvm:vm-1-disk-1,mp=/srv,backup=1"),
            ),
            ("features", "", json!({"nesting": 1}), Some("nesting=1")),
        ] {
            let line = merged(name, present, parts.as_object().unwrap());
            assert_eq!(line.ok().as_deref(), want, "{name} {parts}");
        }
    }

    #[test]
    fn a_size_is_never_written() {
        let disk = "local-lvm:vm-1-disk-0,iothread=1,size=32G";
        for (wanted, want) in [
            ("local-lvm:vm-1-disk-0,size=32G", Some("local-lvm:vm-1-disk-0")),
            ("local-lvm:vm-1-disk-0,size=32768M,ssd=1", Some("local-lvm:vm-1-disk-0,ssd=1")),
            ("local-lvm:vm-1-disk-0,size=64G", None),
            ("local-lvm:vm-1-disk-0,size=", None),
            ("local-lvm:vm-1-disk-5,size=64G", Some("local-lvm:vm-1-disk-5")),
        ] {
            assert_eq!(without_size("scsi0", disk, wanted).ok().as_deref(), want, "{wanted}");
        }
    }
}
