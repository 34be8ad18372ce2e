//! What a backup holds.

use base64::{Engine, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Code, Error, Result,
    config::Mode,
    pve::{NodeName, Params, loose},
    render::{Answer, Page, Table, units},
    safety::Method,
    tools::{
        Ctx,
        change::{Asked, Submitted},
        outcome::operation,
        storage::place::Volume,
    },
};

/// Arguments of `pve_backup_contents`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Contents {
    volid: String,
    node: Option<NodeName>,
    /// A directory in it, as shown.
    path: Option<String>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
    #[schemars(range(min = 0))]
    offset: Option<usize>,
}

/// The configuration in a backup, as `key: value` lines; a snapshot's section ends it.
pub fn options(text: &str) -> Map<String, Value> {
    let own = text.lines().take_while(|line| !line.starts_with('['));
    let pairs = own.filter(|line| !line.starts_with('#')).filter_map(|l| l.split_once(':'));
    pairs.map(|(k, v)| (k.trim().to_owned(), Value::from(v.trim()))).collect()
}

/// Reads the configuration out of a backup.
///
/// # Errors
/// What the node answers.
pub async fn configuration(ctx: Ctx<'_>, backup: &Volume) -> Result<Map<String, Value>> {
    let params = Params::new().with("volume", &backup.volid);
    let path = ["nodes", &backup.node, "vzdump", "extractconfig"];
    let text = ctx.get_with(&path, params).await?;
    text.as_str()
        .map(options)
        .ok_or_else(|| Error::new(Code::BadAnswer, "the configuration in the backup is no text"))
}

/// `pve_backup_contents`
pub async fn contents(ctx: Ctx<'_>, args: Contents) -> Result<Answer> {
    let backup = Volume::find(ctx, &args.volid, args.node.as_ref()).await?.backup()?;
    let mut out = json!({"backup": backup.to_json()});
    if let Value::Object(map) = &mut out {
        match configuration(ctx, &backup).await {
            Ok(config) => map.insert("config".into(), config.into()),
            Err(e) => map.insert("config_unknown".into(), e.message.into()),
        };
        match files(ctx, &backup, &args).await? {
            Ok(table) => map.insert("files".into(), table),
            Err(why) => map.insert("files_unknown".into(), why.into()),
        };
    }
    let answer = Answer::new(out).heading(format!("contents of {}", backup.volid));
    Ok(answer.untrusted(&["config", "files"]))
}

/// Whether the storage can list files: those of a backup server can.
fn lists_files(backup: &Volume) -> bool {
    loose::str(&backup.row, "format").is_some_and(|f| f.starts_with("pbs-"))
}

/// The files of one directory, or why they cannot be told. Proxmox starts a
/// small machine for that, so that it counts as a change and passes the gate.
async fn files(
    ctx: Ctx<'_>,
    backup: &Volume,
    args: &Contents,
) -> Result<std::result::Result<Value, String>> {
    if !lists_files(backup) {
        let why = "files are listed only for backups on a Proxmox Backup Server";
        return Ok(Err(why.to_owned()));
    }
    if ctx.app.config.mode != Mode::Write {
        let why = "listing files starts a restore VM on the node, which needs PROXMOX_MODE=write";
        return Ok(Err(why.to_owned()));
    }
    let path = match args.path.as_deref().map(|p| p.trim_end_matches('/')) {
        None | Some("") => "/".to_owned(),
        Some(path) if path.starts_with('/') => STANDARD.encode(path),
        Some(path) => STANDARD.encode(format!("/{path}")),
    };
    let params = Params::new().with("volume", &backup.volid).with("filepath", path);
    let segments = ["nodes", &backup.node, "storage", &backup.storage, "file-restore", "list"];
    let call = operation(Method::Get, &segments, params)?;
    let data = match ctx.submit(call, &Asked::default()).await? {
        Submitted::Sent(sent) => sent.data,
        Submitted::DryRun(answer) => return Ok(Ok(answer.structured)),
    };
    let name = |row: &Value| {
        let bytes = STANDARD.decode(loose::str(row, "filepath")?).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let table = Table::new(["path", "type", "size_bytes", "time"]).fill(
        loose::rows(&data).iter(),
        Page::new(args.limit, args.offset),
        |row| {
            vec![
                name(row).or_else(|| loose::text(row, "text")).into(),
                kind(loose::str(row, "type").unwrap_or_default()).into(),
                loose::uint(row, "size").into(),
                loose::int(row, "mtime").map(units::time).into(),
            ]
        },
    );
    Ok(Ok(table.into_value()))
}

/// What the letters of a backup's catalog stand for.
fn kind(letter: &str) -> &str {
    match letter {
        "d" => "directory",
        "f" => "file",
        "l" => "symlink",
        "h" => "hardlink",
        "b" | "c" => "device",
        "p" => "fifo",
        "s" => "socket",
        "v" => "archive",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_end_where_snapshots_begin() {
        let text = "#notes: not an option\nhostname: web\nnet0: name=eth0,hwaddr=BC:24:11:00:00:01\nlxc.idmap: u 0 100000 65536\n\n[before]\nhostname: old\n";
        let got = options(text);
        assert_eq!(got["hostname"], "web");
        assert_eq!(got["net0"], "name=eth0,hwaddr=BC:24:11:00:00:01");
        assert_eq!(got["lxc.idmap"], "u 0 100000 65536");
        assert_eq!(got.len(), 3);
    }
}
