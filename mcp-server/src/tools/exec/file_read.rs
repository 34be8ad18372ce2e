//! Files of guests, read.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    MAX_PATH, allow,
    inside::{Given, Reply, Way, agent, found, output::exact},
    place_of,
};
use crate::{
    Code, Error, Result,
    pve::{Vmid, loose},
    render::Answer,
    safety::{
        Deed,
        deed::{Place, Step},
        files::sha256_of,
    },
    tools::{
        Ctx,
        change::Asked,
        deeds::{Allowed, Doing},
    },
};

/// Bytes that are read unless asked otherwise.
const LENGTH: u64 = 64 << 10;
/// Most bytes at once from a VM: a node waits 30 s for an answer of its agent.
const FROM_VM: u64 = 4 << 20;
/// Room for what stands before the content.
const HEAD: u64 = MAX_PATH as u64 + 64;
/// How often a path may lead elsewhere than it did a moment ago.
const TRIES: u32 = 3;

/// Arguments of `pve_guest_file_read`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Read {
    vmid: Vmid,
    path: String,
    #[schemars(range(min = 0))]
    offset: Option<u64>,
    #[schemars(range(min = 1, max = 16_000_000))]
    length: Option<u64>,
    follow: Option<bool>,
}

/// What was read.
struct Piece {
    bytes: Vec<u8>,
    /// Of the whole file, where the guest tells.
    size: Option<u64>,
    /// There is more behind it.
    more: bool,
    /// Where the path leads was not seen.
    unseen: bool,
}

/// `pve_guest_file_read`
pub async fn read(ctx: Ctx<'_>, args: Read) -> Result<Answer> {
    let place = ctx.place(args.vmid).await?;
    let way = Way::to(ctx, &place).await;
    let (path, good) = place_of(&args.path, "path", &way);
    let (piece, real) = match &way {
        Ok(Way::Agent(agent)) if agent.may("guest-exec").is_err() => {
            let able = good.and_then(|()| agent.may("guest-file-open")).and_then(|()| plain(&path));
            let doing = judged(ctx, &place, &path, able).await?;
            (by_agent(ctx, &place, doing, &args).await?, None)
        }
        _ => by_script(ctx, &place, &way, &args, &path, good).await?,
    };
    Ok(told(ctx, &place, &args, real, piece))
}

async fn judged(ctx: Ctx<'_>, place: &Place, path: &str, able: Result<()>) -> Result<Box<Doing>> {
    let deed = Deed::FileRead { place: place.clone(), path: path.to_owned() };
    match allow(ctx, deed, &Asked::default(), able).await? {
        Allowed::Leave(doing) => Ok(doing),
        Allowed::DryRun(_) => Err(Error::internal("a read is no dry run")),
    }
}

impl Read {
    fn offset(&self) -> u64 {
        self.offset.unwrap_or(0)
    }

    fn length(&self, way: &Way) -> u64 {
        let length = self.length.unwrap_or(LENGTH);
        if matches!(way, Way::Guard) { length } else { length.min(FROM_VM) }
    }
}

/// By a script of ours. Where the path leads is judged as if that had been asked for.
async fn by_script(
    ctx: Ctx<'_>,
    place: &Place,
    way: &Result<Way>,
    args: &Read,
    path: &str,
    good: Result<()>,
) -> Result<(Piece, Option<String>)> {
    let able = good.and_then(|()| way.as_ref().map(drop).map_err(Clone::clone));
    let mut real = path.to_owned();
    let mut tries = 0;
    loop {
        let doing = judged(ctx, place, &real, able.clone()).await?;
        let way = way.as_ref().map_err(Clone::clone)?;
        let length = args.length(way);
        let step = Step::Read {
            path,
            follow: args.follow == Some(true),
            offset: args.offset(),
            // One byte more tells whether there is more, also where a file has no size.
            count: length + 1,
        };
        let given = Given { room: length + 1 + HEAD, ..Given::default() };
        match way.run(ctx, place, &doing, &step, given).await {
            Ok(Reply::Leads(to)) if tries < TRIES => {
                doing.finish(&Ok(json!({"leads_to": to})));
                real = to;
                tries += 1;
            }
            // A guest without the small tools has its agent yet.
            Err(error) if way.has_no_tools(&error) && plain(path).is_ok() => {
                return by_agent(ctx, place, doing, args).await.map(|piece| (piece, None));
            }
            other => {
                let piece = other.and_then(|reply| split(reply, args, length));
                finish(doing, &piece);
                return Ok((piece?, Some(real).filter(|real| *real != path)));
            }
        }
    }
}

fn finish(doing: Box<Doing>, piece: &Result<Piece>) {
    let ended = piece.as_ref().map(|p| json!({"bytes": p.bytes.len()})).map_err(Clone::clone);
    doing.finish(&ended);
}

fn split(reply: Reply, args: &Read, length: u64) -> Result<Piece> {
    match reply {
        Reply::Done(size, mut bytes) => {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let more = bytes.len() > length;
            bytes.truncate(length);
            let end = args.offset() + bytes.len() as u64;
            // Files of the kernel say 0 and have content.
            let seen = !bytes.is_empty();
            let size = size.parse().ok().map(|size: u64| if seen { size.max(end) } else { size });
            let size = if more { size.filter(|size| *size > end) } else { size };
            Ok(Piece { bytes, size, more, unseen: false })
        }
        other => Err(found(other, args.vmid, &args.path)),
    }
}

/// A path that the agent's own calls survive.
fn plain(path: &str) -> Result<()> {
    if path.is_empty() || path.contains('\0') || path.len() > MAX_PATH {
        return Err(Error::argument(format!("{path:?} is no path")).with("argument", "path"));
    }
    if path.chars().any(|c| u32::from(c) > 0xff) {
        return Err(Error::argument(format!(
            "{path:?} has a character above U+00FF, which would stop the guest agent"
        ))
        .with("argument", "path"));
    }
    Ok(())
}

/// By the agent's own call: it follows links, and cannot say where they lead.
async fn by_agent(ctx: Ctx<'_>, place: &Place, doing: Box<Doing>, args: &Read) -> Result<Piece> {
    let length = args.length.unwrap_or(LENGTH).min(FROM_VM);
    // One byte more tells whether there is more.
    let permit = doing.leave().agent_read(args.offset(), length + 1);
    let piece = match permit {
        Ok(permit) => ctx.app.pve.send(permit).await.map_err(|e| refused(e, place, &args.path)),
        Err(error) => Err(error),
    };
    let piece = piece.and_then(|answer| {
        let content: String =
            loose::str(&answer, "content").unwrap_or_default().split_whitespace().collect();
        let mut bytes = STANDARD.decode(content).map_err(|_| {
            Error::new(Code::BadAnswer, "the content is not base64, as was asked for")
        })?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let more = bytes.len() > length || loose::flag(&answer, "truncated");
        bytes.truncate(length);
        let size = (!more).then_some(args.offset() + bytes.len() as u64);
        Ok(Piece { bytes, size, more, unseen: true })
    });
    finish(doing, &piece);
    piece
}

/// Why the agent did not give a file.
fn refused(error: Error, place: &Place, path: &str) -> Error {
    let text = error.message.to_lowercase();
    let word = [
        ("no such file", "missing"),
        ("cannot find", "missing"),
        ("is a directory", "directory"),
        ("permission denied", "denied"),
        ("access is denied", "denied"),
    ];
    match word.iter().find(|(said, _)| text.contains(said)) {
        Some((_, word)) => {
            found(Reply::Failed((*word).to_owned(), String::new()), place.vmid, path)
        }
        None => agent::explain(place, error),
    }
}

fn told(ctx: Ctx<'_>, place: &Place, args: &Read, real: Option<String>, piece: Piece) -> Answer {
    let mut out = Map::new();
    let offset = args.offset();
    let next = offset + piece.bytes.len() as u64;
    out.insert("vmid".into(), place.vmid.get().into());
    out.insert("path".into(), args.path.clone().into());
    if let Some(real) = real {
        out.insert("real_path".into(), real.into());
    }
    out.insert("size".into(), piece.size.into());
    out.insert("offset".into(), offset.into());
    out.insert("bytes".into(), piece.bytes.len().into());
    exact(&piece.bytes, &mut out, ctx.app.redactor());
    if offset == 0 && !piece.more {
        out.insert("sha256".into(), sha256_of(&piece.bytes).into());
    }
    out.insert("truncated".into(), piece.more.into());
    out.insert("next_offset".into(), if piece.more { next.into() } else { Value::Null });
    let mut warnings = Vec::new();
    if out.contains_key("masked") {
        warnings.push(
            "secrets in the content are masked: writing it back would write the mask in their place",
        );
    }
    if piece.unseen {
        warnings.push("read by the agent itself, which does not tell whether the path is a link");
    }
    if !warnings.is_empty() {
        out.insert("warnings".into(), warnings.into());
    }
    let heading = match piece.size {
        Some(size) => format!("{} of {size} bytes", piece.bytes.len()),
        None => format!("{} bytes", piece.bytes.len()),
    };
    Answer::new(out)
        .heading(format!("{heading} of a file in {} {}", place.kind.noun(), place.vmid))
        .untrusted(&["content", "content_base64"])
}
