//! `pve_guest_file_read`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, json};

use super::inside::{absolute, failed, put_bytes, script};
use crate::{
    Error, Result,
    pve::Vmid,
    render::{Answer, clean},
    safety::{Deed, files::sha256_of},
    tools::{Ctx, change::Asked, deeds::Allowed},
};

/// How much is read unless asked otherwise, in bytes.
const LENGTH: u64 = 64 * 1024;

/// Tells size and real path, or why it cannot be read: path, follow.
const LOOK: &str = r#"p=$1
if [ -h "$p" ] && [ "$2" != 1 ]; then exit 45; fi
[ -e "$p" ] || exit 41
[ -d "$p" ] && exit 42
[ -f "$p" ] || exit 43
[ -r "$p" ] || exit 44
wc -c < "$p" && readlink -f "$p""#;
/// Reads a part: path, first byte from 1, length.
const READ: &str = r#"[ -f "$1" ] || exit 41
tail -c "+$2" -- "$1" | head -c "$3""#;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Read {
    vmid: Vmid,
    path: String,
    offset: Option<u64>,
    #[schemars(range(min = 1, max = 8_388_608))]
    length: Option<u64>,
    follow: Option<bool>,
}

/// `pve_guest_file_read`
pub async fn read(ctx: Ctx<'_>, args: Read) -> Result<Answer> {
    absolute(&args.path)?;
    let place = ctx.place(args.vmid).await?;
    let asked = Asked::default();
    let leave = |path: &str| Deed::FileRead { place: place.clone(), path: path.to_owned() };
    let Allowed::Leave(doing) = ctx.allow(leave(&args.path), &asked).await? else {
        return Err(Error::internal("a read is no dry run"));
    };
    let follow = if args.follow == Some(true) { "1" } else { "0" };
    let looked = script(ctx, &doing, &place, LOOK, &[&args.path, follow], None, 16 * 1024).await;
    let looked = looked.and_then(|ended| match ended.exit_code {
        Some(0) => Ok(ended),
        _ => Err(failed(&ended, &args.path)),
    });
    doing.finish(&looked.as_ref().map(super::inside::Ended::record).map_err(Clone::clone));
    let looked = looked?;
    let text = String::from_utf8_lossy(&looked.stdout).into_owned();
    let (size, real) = text.trim_end_matches('\n').split_once('\n').unwrap_or((text.trim(), ""));
    let size: u64 = size.trim().parse().unwrap_or(0);
    let real = if real.is_empty() { args.path.as_str() } else { real };
    // Where a link led is judged as if it had been asked for.
    let Allowed::Leave(doing) = ctx.allow(leave(real), &asked).await? else {
        return Err(Error::internal("a read is no dry run"));
    };
    let offset = args.offset.unwrap_or(0);
    let length = args.length.unwrap_or(LENGTH);
    let (first, count) = ((offset + 1).to_string(), length.to_string());
    let most = length + 1024;
    let part = script(ctx, &doing, &place, READ, &[real, &first, &count], None, most).await;
    let part = part.and_then(|ended| match ended.exit_code {
        Some(0) => Ok(ended),
        _ => Err(failed(&ended, &args.path)),
    });
    doing.finish(&part.as_ref().map(super::inside::Ended::record).map_err(Clone::clone));
    let content = part?.stdout;
    let end = offset + content.len() as u64;
    let mut out = Map::new();
    out.insert("path".into(), real.into());
    // Characters that answers show in another way would make it another content.
    let exact = std::str::from_utf8(&content).is_ok_and(|text| clean(text) == text);
    if exact {
        put_bytes(&mut out, "content", &content);
    } else {
        out.insert("content_base64".into(), STANDARD.encode(&content).into());
    }
    out.insert("size".into(), size.into());
    let whole = offset == 0 && end >= size;
    if whole {
        out.insert("sha256".into(), sha256_of(&content).into());
    }
    out.insert("truncated".into(), (end < size).into());
    out.insert("next_offset".into(), if end < size { json!(end) } else { json!(null) });
    Ok(Answer::new(out)
        .heading(format!("{real} in guest {}", place.vmid))
        .untrusted(&["content", "content_base64"]))
}
