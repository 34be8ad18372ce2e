//! One backup of one guest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Error, Result,
    insight::estate::{Guest, Setup},
    pve::{Params, Vmid, loose},
    render::{Answer, units},
    safety::Method,
    tools::{
        Ctx,
        change::AskedTask,
        core::title,
        outcome::{operation, switch, told},
        storage::place::{self, summary},
    },
};

/// What happens to a running guest meanwhile.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Snapshot,
    Suspend,
    Stop,
}

/// How a backup is packed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub enum Compress {
    #[serde(rename = "0")]
    None,
    #[serde(rename = "gzip")]
    Gzip,
    #[serde(rename = "lzo")]
    Lzo,
    #[serde(rename = "zstd")]
    Zstd,
}

/// A word of an enumeration as Proxmox writes it.
pub fn word(value: impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// Arguments of `pve_backup_create`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Create {
    vmid: Vmid,
    storage: Option<String>,
    mode: Option<Mode>,
    compress: Option<Compress>,
    notes: Option<String>,
    protected: Option<bool>,
    /// Then deletes older ones by the retention.
    remove: Option<bool>,
    /// As keep-last=3,keep-daily=7.
    prune_backups: Option<String>,
    #[schemars(range(min = 0))]
    bwlimit: Option<u64>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// Longest note, in characters (`notes-template`).
const LONGEST_NOTE: usize = 1024;

/// A note as vzdump's template reads it: one line, with `\n` and `\\` written out.
pub fn template(notes: &str) -> Result<String> {
    let text = notes.replace('\\', "\\\\").replace("\r\n", "\\n").replace(['\n', '\r'], "\\n");
    if text.chars().count() > LONGEST_NOTE {
        return Err(Error::argument(format!(
            "`notes` is longer than {LONGEST_NOTE} characters, line ends counting twice"
        ))
        .with("argument", "notes"));
    }
    Ok(text)
}

/// `pve_backup_create`
pub async fn create(ctx: Ctx<'_>, args: Create) -> Result<Answer> {
    let guest = ctx.guest_now(args.vmid).await?;
    let target = place::chosen(ctx, &guest.node, args.storage.as_deref(), "backup").await?;
    let storage = loose::text(&target, "storage").unwrap_or_default();
    if args.prune_backups.is_some() && args.remove == Some(false) {
        return Err(Error::argument("`prune_backups` does nothing with `remove` false")
            .hint("leave one of the two out"));
    }
    let remove = args.remove.unwrap_or(args.prune_backups.is_some());
    // A backup server packs by itself; elsewhere Proxmox would pack nothing.
    let pack = (loose::str(&target, "type") != Some("pbs")).then_some(Compress::Zstd);
    let params = Params::new()
        .with("vmid", args.vmid)
        .with("storage", &storage)
        .with_bool("remove", remove)
        .with_some("mode", args.mode.and_then(word))
        .with_some("compress", args.compress.or(pack).and_then(word))
        .with_some("notes-template", args.notes.as_deref().map(template).transpose()?)
        .with_some("prune-backups", args.prune_backups)
        .with_some("bwlimit", args.bwlimit);
    let params = switch(params, "protected", args.protected);
    let before = newest(ctx, &guest, &storage).await;
    let left_out = left_out(ctx, &guest).await;
    let call = operation(Method::Post, &["nodes", &guest.node, "vzdump"], params)?;
    let done = ctx.run(call, &args.asked).await?;
    let after = async {
        ctx.app.pve.forget();
        newest(ctx, &guest, &storage).await
    };
    let heading = format!("backup of {} to {storage}", title(&guest));
    let answer = told(done, before, after, heading).await;
    Ok(if left_out.is_empty() { answer } else { answer.with("not_in_backup", left_out) })
}

/// The newest backup of a guest on a storage, and how old it is.
async fn newest(ctx: Ctx<'_>, guest: &Guest, storage: &str) -> Value {
    let params = Params::new().with("content", "backup").with("vmid", guest.vmid);
    let path = ["nodes", &*guest.node, "storage", storage, "content"];
    let Ok(rows) = ctx.get_with(&path, params).await else { return Value::Null };
    let own = |r: &&Value| loose::uint(r, "vmid") == Some(u64::from(guest.vmid.get()));
    match loose::rows(&rows).iter().filter(own).max_by_key(|r| loose::int(r, "ctime")) {
        Some(row) => json!({"newest_backup": summary(row)}),
        None => json!({"newest_backup": null}),
    }
}

/// Disks of the guest that a backup does not hold, with the reason.
async fn left_out(ctx: Ctx<'_>, guest: &Guest) -> Vec<String> {
    let Ok(config) = ctx.get_below(guest, &["config"], Params::new()).await else {
        return Vec::new();
    };
    let setup = Setup::read(guest.kind, &config);
    let missing =
        setup.disks.iter().filter_map(|d| Some((d, setup.left_out(d)?, d.size.unwrap_or(0))));
    missing
        .map(|(disk, why, size)| match size {
            0 => format!("{}: {why}", disk.slot),
            size => format!("{} ({}): {why}", disk.slot, units::bytes(size)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_one_line_for_vzdump() {
        for (notes, want) in [
            ("plain", "plain"),
            ("two\nlines", "two\\nlines"),
            ("dos\r\nlines", "dos\\nlines"),
            ("C:\\new", "C:\\\\new"),
        ] {
            assert_eq!(template(notes).unwrap(), want);
        }
        assert!(template(&"x".repeat(1025)).is_err());
        assert!(template(&"\n".repeat(513)).is_err());
    }
}
