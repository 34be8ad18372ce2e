//! `pve_guest_file_write`: a temporary file beside the old one, then a rename.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    agent::MAX_INPUT,
    inside::{Ended, absolute, failed, script},
};
use crate::{
    Code, Error, Result,
    pve::{GuestKind, Vmid},
    render::Answer,
    safety::{
        Deed,
        deed::{NewFile, Place},
        files::sha256_of,
    },
    tools::{
        Ctx,
        change::Asked,
        deeds::{Allowed, Doing},
    },
};

/// Most bytes that are written at once.
const MOST: usize = 16 << 20;

/// Tells the real path and whether the file is there: path, follow, create_dirs.
const LOOK: &str = r#"p=$1
if [ -h "$p" ]; then [ "$2" = 1 ] || exit 45; p=$(readlink -f "$p"); fi
d=${p%/*}; [ -n "$d" ] || d=/
[ -d "$p" ] && exit 42
if [ -e "$p" ] && [ ! -f "$p" ]; then exit 43; fi
if [ ! -d "$d" ] && [ "$3" != 1 ]; then exit 47; fi
if [ -e "$p" ]; then echo 1; else echo 0; fi
if [ -d "$d" ]; then r=$(readlink -f "$d"); [ "$r" = / ] && r=; printf '%s\n' "$r/${p##*/}"; else printf '%s\n' "$p"; fi"#;
/// Makes the temporary file: path, temporary, append, create_dirs, if_sha256.
const BEGIN: &str = r#"p=$1; d=${p%/*}; [ -n "$d" ] || d=/
if [ -n "$5" ]; then
  [ -f "$p" ] || exit 46
  s=$(sha256sum < "$p") && [ "${s%% *}" = "$5" ] || exit 46
fi
if [ ! -d "$d" ]; then [ "$4" = 1 ] || exit 47; mkdir -p -- "$d" || exit 1; fi
umask 077; set -C
: > "$2" || exit 48
set +C
if [ "$3" = 1 ] && [ -f "$p" ]; then cat -- "$p" >> "$2" || { rm -f -- "$2"; exit 1; }; fi"#;
/// Puts a piece behind it: temporary.
const PIECE: &str = r#"cat >> "$1" || { rm -f -- "$1"; exit 1; }"#;
/// Checks it and puts it in place: path, temporary, sha256 or nothing, mode, owner, if_sha256.
const END: &str = r#"fail() { rm -f -- "$t"; exit "$1"; }
p=$1; t=$2
s=$(sha256sum < "$t") || fail 1
s=${s%% *}
if [ -n "$3" ] && [ "$s" != "$3" ]; then echo 'the content did not arrive whole' >&2; fail 1; fi
if [ -f "$p" ]; then
  o=$(stat -c %u:%g -- "$p") && chown "$o" -- "$t" || fail 1
  m=$(stat -c %a -- "$p") && chmod "$m" -- "$t" || fail 1
else
  chmod 644 -- "$t" || fail 1
fi
if [ -n "$5" ]; then chown "$5" -- "$t" || fail 1; fi
if [ -n "$4" ]; then chmod "$4" -- "$t" || fail 1; fi
if [ -n "$6" ]; then
  n=$(sha256sum < "$p") && [ "${n%% *}" = "$6" ] || fail 46
fi
sync -- "$t" 2>/dev/null || sync
[ -d "$p" ] && fail 42
mv -f -- "$t" "$p" || fail 1
printf '%s\n' "$s"
wc -c < "$p""#;
const DROP: &str = r#"rm -f -- "$1""#;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Write {
    vmid: Vmid,
    path: String,
    content: Option<String>,
    content_base64: Option<String>,
    append: Option<bool>,
    #[schemars(regex(pattern = "^[0-7]{3,4}$"))]
    mode: Option<String>,
    #[schemars(regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$"))]
    owner: Option<String>,
    create_dirs: Option<bool>,
    if_sha256: Option<String>,
    follow: Option<bool>,
    dry_run: Option<bool>,
    confirm: Option<String>,
    approval_code: Option<String>,
}

fn content_of(args: &Write) -> Result<Vec<u8>> {
    let bytes = match (&args.content, &args.content_base64) {
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(text)) => STANDARD
            .decode(text.trim())
            .map_err(|e| Error::argument(format!("content_base64 is not base64: {e}")))?,
        _ => return Err(Error::argument("give content or content_base64, one of the two")),
    };
    if bytes.len() > MOST {
        return Err(Error::argument(format!("the content is longer than {MOST} bytes"))
            .hint("write it in parts with append"));
    }
    Ok(bytes)
}

/// `pve_guest_file_write`
pub async fn write(ctx: Ctx<'_>, args: Write) -> Result<Answer> {
    absolute(&args.path)?;
    if args.path.ends_with('/') {
        return Err(Error::argument(format!("{:?} names a directory", args.path)));
    }
    let content = content_of(&args)?;
    let place = ctx.place(args.vmid).await?;
    let file = NewFile {
        path: args.path.clone(),
        sha256: sha256_of(&content),
        bytes: content.len() as u64,
        append: args.append == Some(true),
        mode: args.mode.clone(),
        owner: args.owner.clone(),
        create_dirs: args.create_dirs == Some(true),
        if_sha256: args.if_sha256.as_ref().map(|s| s.to_ascii_lowercase()),
    };
    let asked = Asked {
        dry_run: args.dry_run,
        confirm: args.confirm.clone(),
        approval_code: args.approval_code.clone(),
    };
    let deed = Deed::FileWrite { place: place.clone(), file: file.clone() };
    let doing = match ctx.allow(deed, &asked).await? {
        Allowed::DryRun(answer) => return Ok(answer),
        Allowed::Leave(doing) => doing,
    };
    let mut answer = doing.told();
    let follow = args.follow == Some(true);
    let written = put(ctx, &doing, &place, &file, follow, &content).await;
    let record = written.as_ref().map(|w| json!({"sha256": w.sha256})).map_err(Clone::clone);
    let warning = doing.finish(&record);
    let written = written?;
    answer.insert("status".into(), "done".into());
    answer.insert("path".into(), written.path.into());
    answer.insert("bytes".into(), written.bytes.into());
    answer.insert("sha256".into(), written.sha256.into());
    answer.insert("created".into(), written.created.into());
    if let Some(warning) = warning {
        answer.insert("warnings".into(), vec![warning].into());
    }
    Ok(Answer::new(answer).heading(format!("{} in guest {}", args.path, place.vmid)))
}

/// A file that was written.
struct Written {
    path: String,
    bytes: u64,
    sha256: String,
    created: bool,
}

async fn put(
    ctx: Ctx<'_>,
    doing: &Doing,
    place: &Place,
    file: &NewFile,
    follow: bool,
    content: &[u8],
) -> Result<Written> {
    let flag = |on: bool| if on { "1" } else { "0" };
    let step = async |text: &str, values: &[&str], stdin: Option<Vec<u8>>| -> Result<Ended> {
        let ended = script(ctx, doing, place, text, values, stdin, 16 * 1024).await?;
        if ended.exit_code == Some(0) { Ok(ended) } else { Err(failed(&ended, &file.path)) }
    };
    let dirs = flag(file.create_dirs);
    let looked = step(LOOK, &[&file.path, flag(follow), dirs], None).await?;
    let text = String::from_utf8_lossy(&looked.stdout).into_owned();
    let (there, real) = text.trim_end_matches('\n').split_once('\n').unwrap_or(("0", ""));
    let real = if real.is_empty() { file.path.as_str() } else { real };
    // A directory that is a link would have led past what was agreed to.
    if real != file.path && !follow {
        return Err(Error::argument(format!("{:?} leads to {real:?}", file.path))
            .hint("give that path, or set follow")
            .with("path", real));
    }
    if real != file.path && heavier(real, &file.path) {
        return Err(Error::argument(format!("{:?} leads to {real:?}", file.path))
            .hint("that is a system file: name it itself")
            .with("path", real));
    }
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|e| Error::internal(format!("no random bytes: {e}")))?;
    let (dir, name) = real.rsplit_once('/').unwrap_or(("", real));
    let short: String = name.chars().take(60).collect();
    let temporary = format!("{dir}/.{short}.{:016x}", u64::from_be_bytes(random));
    let expected = file.if_sha256.as_deref().unwrap_or_default();
    step(BEGIN, &[real, &temporary, flag(file.append), dirs, expected], None).await?;
    let filled = async {
        let size = match place.kind {
            GuestKind::Lxc => MOST,
            GuestKind::Qemu => MAX_INPUT,
        };
        for piece in content.chunks(size) {
            step(PIECE, &[&temporary], Some(piece.to_vec())).await?;
        }
        let whole = if file.append { "" } else { file.sha256.as_str() };
        let mode = file.mode.as_deref().unwrap_or_default();
        let owner = file.owner.as_deref().unwrap_or_default();
        step(END, &[real, &temporary, whole, mode, owner, expected], None).await
    };
    let ended = match filled.await {
        Ok(ended) => ended,
        Err(error) => {
            // What is half there goes away, unless it may just have been put in place.
            let dropped = step(DROP, &[&temporary], None).await;
            let kept = dropped.is_err().then(|| temporary.clone());
            let error = if error.code == Code::OutcomeUnknown {
                error.hint("the file is the old or the new one, whole; read its sha256")
            } else {
                error
            };
            return Err(error.with("temporary_left", kept));
        }
    };
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let mut lines = text.lines();
    Ok(Written {
        path: real.to_owned(),
        sha256: lines.next().unwrap_or_default().to_owned(),
        bytes: lines.next().and_then(|n| n.trim().parse().ok()).unwrap_or(file.bytes),
        created: there == "0",
    })
}

/// Whether a path where a link leads belongs to the system, and the link does not.
fn heavier(real: &str, named: &str) -> bool {
    let flags = |path: &str| {
        let argv = ["tee".to_owned(), "--".to_owned(), path.to_owned()];
        let command = crate::safety::command::Command::Argv(&argv);
        crate::safety::command::classify(&command, None, None).categories
    };
    !flags(real).is_subset(&flags(named))
}
