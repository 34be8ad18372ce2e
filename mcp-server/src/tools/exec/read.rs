//! `pve_guest_file_read`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, json};

use super::{
    agent::explained,
    inside::{self, Job, absolute, failed, put_bytes, script},
};
use crate::{
    Code, Error, Result,
    pve::{GuestKind, Vmid, loose},
    render::{Answer, clean},
    safety::{Deed, deed::Place, files::sha256_of},
    tools::{
        Ctx,
        change::Asked,
        deeds::{Allowed, Doing},
    },
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
    if place.kind == GuestKind::Qemu {
        return in_vm(ctx, &args, *doing, &place).await;
    }
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
    Ok(told(&place, real, &content, offset, Some(size)))
}

/// By the agent itself, which needs no program in the guest. It follows links
/// and tells no size: what the whole is, is known where the end was reached.
async fn in_vm(ctx: Ctx<'_>, args: &Read, doing: Doing, place: &Place) -> Result<Answer> {
    let (offset, length) = (args.offset.unwrap_or(0), args.length.unwrap_or(LENGTH));
    let doing = match real_path(ctx, &doing, place, &args.path).await {
        Some(real) if real != args.path => {
            let looked: Result<serde_json::Value> = Ok(json!({"path": real}));
            doing.finish(&looked);
            if args.follow != Some(true) {
                return Err(Error::argument(format!("{:?} leads to {real:?}", args.path))
                    .hint("give that path, or set follow")
                    .with("path", real));
            }
            let deed = Deed::FileRead { place: place.clone(), path: real };
            match ctx.allow(deed, &Asked::default()).await? {
                Allowed::Leave(doing) => *doing,
                Allowed::DryRun(_) => return Err(Error::internal("a read is no dry run")),
            }
        }
        _ => doing,
    };
    let read = ctx.app.pve.send(doing.agent_read(offset, length)?).await;
    let read = read.map_err(|error| {
        let message = &error.message;
        if message.contains("No such file") {
            Error::new(Code::NotFound, format!("there is no {:?} in the guest", args.path))
                .with("path", args.path.clone())
        } else if message.contains("Is a directory") {
            Error::argument(format!("{:?} is a directory", args.path))
                .hint("pve_guest_file_list lists it")
        } else {
            explained(error, place)
        }
    });
    let read = read.and_then(|read| {
        let text = loose::text(&read, "content").unwrap_or_default();
        let content = STANDARD.decode(text.replace(['\n', '\r'], "")).map_err(|e| {
            Error::new(Code::BadAnswer, format!("the agent's content is not base64: {e}"))
        })?;
        Ok((content, loose::flag(&read, "truncated")))
    });
    doing.finish(&read.as_ref().map(|_| json!({})).map_err(Clone::clone));
    let (content, more) = read?;
    // A count that was reached may or may not have been the end.
    let open = more || content.len() as u64 >= length;
    let size = (!open).then(|| offset + content.len() as u64);
    Ok(told(place, &args.path, &content, offset, size))
}

/// Where a path leads in the VM, where the guest can tell.
async fn real_path(ctx: Ctx<'_>, doing: &Doing, place: &Place, path: &str) -> Option<String> {
    let argv = ["readlink", "-f", "--", path].map(str::to_owned).to_vec();
    let job = Job { argv, stdin: None, timeout_s: 10, max_output: 16 * 1024, tells: false };
    let ended = inside::run(ctx, doing, place, job).await.ok()?;
    let text = String::from_utf8(ended.stdout).ok()?;
    let real = text.strip_suffix('\n').unwrap_or(&text);
    (ended.exit_code == Some(0) && real.starts_with('/')).then(|| real.to_owned())
}

fn told(place: &Place, path: &str, content: &[u8], offset: u64, size: Option<u64>) -> Answer {
    let end = offset + content.len() as u64;
    let cut = size.is_none_or(|size| end < size);
    let mut out = Map::new();
    out.insert("path".into(), path.into());
    // Characters that answers show in another way would make it another content.
    let exact = std::str::from_utf8(content).is_ok_and(|text| clean(text) == text);
    if exact {
        put_bytes(&mut out, "content", content);
    } else {
        out.insert("content_base64".into(), STANDARD.encode(content).into());
    }
    out.insert("size".into(), json!(size));
    if offset == 0 && !cut {
        out.insert("sha256".into(), sha256_of(content).into());
    }
    out.insert("truncated".into(), cut.into());
    out.insert("next_offset".into(), if cut { json!(end) } else { json!(null) });
    Answer::new(out)
        .heading(format!("{path} in guest {}", place.vmid))
        .untrusted(&["content", "content_base64"])
}
