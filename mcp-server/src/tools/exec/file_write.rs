//! Files of guests, written: the new content stands whole and checked beside
//! the old before it takes its place, or the old stays.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    allow,
    inside::{Given, Reply, Way, agent, found},
    place_of,
};
use crate::{
    Code, Error, Result,
    pve::Vmid,
    render::Answer,
    safety::{
        Deed, Flag, command,
        deed::{NewFile, Place, Step, directory_of},
        files::{random_hex, sha256_of},
        redact::MASK,
    },
    tools::{
        Ctx,
        change::Asked,
        deeds::{Allowed, Doing},
    },
};

/// Longest content, in bytes.
const MAX_CONTENT: usize = 16 << 20;
/// Bytes of one piece for the agent: 61,440 characters as base64, which is its limit.
const PIECE: usize = 46_080;
/// Seconds for the script that writes.
const WRITING: u64 = 120;

/// Arguments of `pve_guest_file_write`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Write {
    vmid: Vmid,
    path: String,
    content: Option<String>,
    content_base64: Option<String>,
    append: Option<bool>,
    #[schemars(regex(pattern = "^[0-7]{3,4}$"))]
    mode: Option<String>,
    /// `user` or `user:group`.
    owner: Option<String>,
    create_dirs: Option<bool>,
    if_sha256: Option<String>,
    /// Writes to where a symbolic link leads.
    follow: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_guest_file_write`
pub async fn write(ctx: Ctx<'_>, args: Write) -> Result<Answer> {
    let place = ctx.place(args.vmid).await?;
    let way = Way::to(ctx, &place).await;
    let (path, good) = place_of(&args.path, "path", &way);
    let windows = command::is_windows(&path) && !path.starts_with('/');
    let (file, content) = checked(&args, path, windows)?;
    let able = good.and_then(|()| way.as_ref().map_err(Clone::clone)?.runs());
    let deed = |file: NewFile| Deed::FileWrite { place: place.clone(), file };
    if args.asked.dry_run == Some(true) || able.is_err() {
        return match allow(ctx, deed(file), &args.asked, able).await? {
            Allowed::DryRun(answer) => Ok(answer),
            Allowed::Leave(_) => Err(Error::internal("a dry run was let through")),
        };
    }
    let way = way?;
    // The name that was given is judged too, a system file's before anything is
    // done in the guest; what is agreed to is the real one.
    let tried = Asked { dry_run: Some(true), ..Asked::default() };
    let guarded = !categories(&file.path).is_empty();
    let confirmed = args.asked.confirm.as_ref() == Some(&file.path);
    let same = |real: &str| match windows {
        true => real.to_lowercase() == file.path.to_lowercase(),
        false => real == file.path,
    };
    if guarded && !confirmed && args.follow != Some(true) {
        // What is not confirmed is refused here, before the guest is looked into.
        allow(ctx, deed(file), &args.asked, Ok(())).await?;
        return Err(Error::internal("a system file was let through without confirmation"));
    }
    if guarded {
        allow(ctx, deed(file.clone()), &tried, Ok(())).await?;
    }
    let real = find(ctx, &way, &place, &args, &file.path).await?;
    let real = if same(&real) { file.path.clone() } else { real };
    if real != file.path {
        led_elsewhere(&args, &file.path, &real)?;
        if !guarded {
            allow(ctx, deed(file.clone()), &tried, Ok(())).await?;
        }
    }
    let file = NewFile { path: real, ..file };
    let doing = match allow(ctx, deed(file.clone()), &args.asked, Ok(())).await? {
        Allowed::DryRun(answer) => return Ok(answer),
        Allowed::Leave(doing) => doing,
    };
    let name = random_hex(8)?;
    let mut written = put(ctx, &way, &place, &doing, &file, content, &name).await;
    if let Err(error) = &written
        && error.code == Code::OutcomeUnknown
    {
        match look(ctx, &way, &place, &doing, &file).await {
            Some(seen) => written = Ok(seen),
            // What is under way yet finds its pieces gone, and leaves the file as it is.
            None if matches!(way, Way::Agent(_)) => clear(ctx, &way, &place, &doing, &name).await,
            None => {}
        }
    }
    let told = doing.told();
    let warning = doing.finish(&written.as_ref().map(Written::record).map_err(Clone::clone));
    Ok(answer(&place, &args, file, written?, told, warning))
}

/// The file as it is to be, and its content.
fn checked(args: &Write, path: String, windows: bool) -> Result<(NewFile, Vec<u8>)> {
    let bad = |name: &str, why: String| Err(Error::argument(why).with("argument", name));
    let ends = |c: char| c == '/' || windows && c == '\\';
    if args.path.ends_with(ends) {
        return bad("path", format!("{:?} names a directory", args.path));
    }
    if args.path.split(ends).any(|part| part == ".." || part == ".") {
        return bad("path", format!("{:?} goes round by `.` or `..`", args.path));
    }
    let content = match (&args.content, &args.content_base64) {
        (Some(text), None) if text.contains(MASK) => {
            let why =
                format!("`content` holds {MASK:?}, which stands in answers for a masked secret");
            return Err(Error::argument(why)
                .hint(
                    "put the secret itself in its place, or change the file by a command; where \
                     the characters are meant, give the content as `content_base64`",
                )
                .with("argument", "content"));
        }
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(coded)) => {
            let coded: String = coded.split_ascii_whitespace().collect();
            match STANDARD.decode(coded) {
                Ok(bytes) => bytes,
                Err(error) => {
                    return bad(
                        "content_base64",
                        format!("`content_base64` is not base64: {error}"),
                    );
                }
            }
        }
        _ => {
            return bad("content", "give either `content` or `content_base64`".to_owned());
        }
    };
    if content.len() > MAX_CONTENT {
        let why = format!("the content has {} bytes, and {MAX_CONTENT} are taken", content.len());
        return bad("content", why);
    }
    for (name, given) in [("mode", &args.mode), ("owner", &args.owner)] {
        if windows && given.is_some() {
            return Err(Error::argument(format!("`{name}` means nothing in Windows"))
                .hint("a file that is replaced keeps its rights, and a new one takes those of its directory; icacls by pve_vm_exec changes them")
                .with("argument", name));
        }
    }
    let octal = |mode: &String| {
        (3..=4).contains(&mode.len()) && mode.bytes().all(|b| (b'0'..=b'7').contains(&b))
    };
    if let Some(mode) = args.mode.as_ref().filter(|mode| !octal(mode)) {
        return bad("mode", format!("`mode` is three or four octal digits, not {mode:?}"));
    }
    if let Some(owner) = args.owner.as_ref().filter(|owner| !is_owner(owner)) {
        return bad("owner", format!("`owner` is `user` or `user:group`, not {owner:?}"));
    }
    let if_sha256 = args.if_sha256.as_ref().map(|hash| hash.to_ascii_lowercase());
    let hash = |h: &String| h.len() == 64 && h.bytes().all(|b| b.is_ascii_hexdigit());
    if if_sha256.as_ref().is_some_and(|h| !hash(h)) {
        return bad("if_sha256", "`if_sha256` is not 64 hexadecimal digits".to_owned());
    }
    let file = NewFile {
        path,
        sha256: sha256_of(&content),
        bytes: content.len() as u64,
        append: args.append == Some(true),
        mode: args.mode.clone(),
        owner: args.owner.clone(),
        create_dirs: args.create_dirs == Some(true),
        if_sha256,
    };
    Ok((file, content))
}

/// Names that a guest can have, and no option among them.
fn is_owner(owner: &str) -> bool {
    let name = |name: &str| {
        !name.is_empty()
            && name.len() <= 64
            && !name.starts_with(['-', '.'])
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-@$\\".contains(&b))
    };
    match owner.split_once(':') {
        Some((user, group)) => name(user) && name(group),
        None => name(owner),
    }
}

/// Where the file really is: links of its directories resolved, and its own with `follow`.
async fn find(ctx: Ctx<'_>, way: &Way, place: &Place, args: &Write, path: &str) -> Result<String> {
    let deed = Deed::FileList { place: place.clone(), path: directory_of(path).to_owned() };
    let doing = match allow(ctx, deed, &Asked::default(), Ok(())).await? {
        Allowed::DryRun(_) => return Err(Error::internal("this was no dry run")),
        Allowed::Leave(doing) => doing,
    };
    let (follow, make) = (args.follow == Some(true), args.create_dirs == Some(true));
    let step = Step::Place { path, follow, make };
    let reply = way.run(ctx, place, &doing, &step, Given::default()).await;
    let real = reply.and_then(|reply| reply.path(place, path));
    doing.finish(&real.as_ref().map(|real| json!({"leads_to": real})).map_err(Clone::clone));
    real
}

/// A path leads to another file than it names: only where that was asked for,
/// and never to a file that is guarded more than the one that was named.
fn led_elsewhere(args: &Write, path: &str, real: &str) -> Result<()> {
    let refused = |hint: &str| {
        Err(Error::argument(format!("{:?} leads to {real:?}", args.path))
            .hint(hint)
            .with("argument", "path")
            .with("path", real))
    };
    if args.follow != Some(true) {
        return refused("give that path, or set follow");
    }
    if categories(real).is_subset(&categories(path)) {
        return Ok(());
    }
    refused("that is a system file: name it itself")
}

/// What a write to this path would need.
fn categories(path: &str) -> std::collections::BTreeSet<Flag> {
    let argv = ["tee".to_owned(), "--".to_owned(), path.to_owned()];
    let mut all = command::classify(&command::Command::Argv(&argv), None, None).categories;
    if command::is_windows(path) {
        all.extend(command::windows_written(path));
    }
    all
}

/// What was written.
#[derive(Debug)]
struct Written {
    bytes: u64,
    sha256: String,
    created: Option<bool>,
}

impl Written {
    fn record(&self) -> Value {
        json!({"bytes": self.bytes, "sha256": self.sha256, "created": self.created})
    }

    /// `created|replaced BYTES SHA256`
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let created = words.next()? == "created";
        let bytes = words.next()?.parse().ok()?;
        Some(Self { bytes, sha256: words.next()?.to_owned(), created: Some(created) })
    }
}

async fn put(
    ctx: Ctx<'_>,
    way: &Way,
    place: &Place,
    doing: &Doing,
    file: &NewFile,
    content: Vec<u8>,
    name: &str,
) -> Result<Written> {
    let mut given = Given { timeout_s: WRITING, ..Given::default() };
    let pieces = matches!(way, Way::Agent(_));
    if pieces {
        if let Err(error) = send(ctx, way, place, doing, name, &content).await {
            clear(ctx, way, place, doing, name).await;
            return Err(unchanged(error));
        }
    } else {
        given.stdin = Some(content);
    }
    match way.run(ctx, place, doing, &Step::Write { name, pieces }, given).await? {
        Reply::Done(line, _) => Written::read(&line)
            .ok_or_else(|| Error::internal(format!("the guest answered {line:?}"))),
        other => Err(found(other, place.vmid, &file.path)),
    }
}

/// Carries the content into a directory of its own in the guest, piece by piece.
async fn send(
    ctx: Ctx<'_>,
    way: &Way,
    place: &Place,
    doing: &Doing,
    name: &str,
    content: &[u8],
) -> Result<()> {
    let room = match way.run(ctx, place, doing, &Step::Room { name }, Given::default()).await? {
        Reply::Done(_, told) if way.windows() => Some(String::from_utf8_lossy(&told).into_owned()),
        Reply::Done(..) => None,
        other => return Err(found(other, place.vmid, "the directory for temporary files")),
    };
    for (number, piece) in content.chunks(PIECE).enumerate() {
        if ctx.session.cancelled().is_cancelled() {
            return Err(Error::new(Code::Cancelled, "the call was cancelled"));
        }
        let permit = doing.leave().agent_piece(name, room.as_deref(), number, piece)?;
        ctx.app.pve.send(permit).await.map_err(|error| refused(error, place))?;
    }
    Ok(())
}

/// Why the agent did not take a piece.
fn refused(error: Error, place: &Place) -> Error {
    let text = error.message.to_lowercase();
    let full = ["not enough space", "no space left", "disk is full"];
    match full.iter().any(|said| text.contains(said)) {
        true => {
            let word = Reply::Failed("full".to_owned(), error.message);
            found(word, place.vmid, "the directory for temporary files")
        }
        false => agent::explain(place, error),
    }
}

/// Takes the pieces away again; what cannot be taken away lies in /tmp.
async fn clear(ctx: Ctx<'_>, way: &Way, place: &Place, doing: &Doing, name: &str) {
    let given = Given { timeout_s: 10, ..Given::default() };
    if let Err(error) = way.run(ctx, place, doing, &Step::Clear { name }, given).await {
        tracing::warn!(%error, vmid = place.vmid.get(), name, "pieces of a file were left");
    }
}

/// An error on the way to the file, before anything of it was touched.
fn unchanged(mut error: Error) -> Error {
    if error.code == Code::OutcomeUnknown {
        error.code = Code::Conflict;
    }
    error.message = format!("the content did not arrive whole: {}", error.message);
    error.hint("the file is as it was; call again").with("unchanged", true)
}

/// Looks whether the file became what it was to become, where nobody knows.
async fn look(
    ctx: Ctx<'_>,
    way: &Way,
    place: &Place,
    doing: &Doing,
    file: &NewFile,
) -> Option<Written> {
    if file.append {
        return None;
    }
    let seen = way.run(ctx, place, doing, &Step::State, Given::default()).await;
    let Ok(Reply::Done(line, _)) = seen else { return None };
    let (bytes, sha256) = line.split_once(' ')?;
    (sha256 == file.sha256).then(|| Written {
        bytes: bytes.parse().unwrap_or(file.bytes),
        sha256: sha256.to_owned(),
        created: None,
    })
}

fn answer(
    place: &Place,
    args: &Write,
    file: NewFile,
    written: Written,
    mut told: Map<String, Value>,
    warning: Option<String>,
) -> Answer {
    let mut out = Map::new();
    out.insert("status".into(), "done".into());
    out.insert("vmid".into(), place.vmid.get().into());
    out.insert("path".into(), args.path.clone().into());
    if file.path != args.path {
        out.insert("real_path".into(), file.path.into());
    }
    out.append(&mut told);
    out.insert("bytes".into(), written.bytes.into());
    out.insert("sha256".into(), written.sha256.into());
    out.insert("created".into(), written.created.into());
    if file.append {
        out.insert("appended".into(), file.bytes.into());
    }
    let mut notes: Vec<String> = warning.into_iter().collect();
    if written.created.is_none() {
        notes.push("the answer was lost; the file was looked at and has the new content".into());
    }
    if !notes.is_empty() {
        out.insert("notes".into(), notes.into());
    }
    let heading = format!("written in {} {} ({})", place.kind.noun(), place.vmid, place.name);
    Answer::new(out).heading(heading)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(change: impl FnOnce(&mut Write)) -> Result<(NewFile, Vec<u8>)> {
        let mut args = Write {
            vmid: Vmid::new(101).unwrap(),
            path: "/srv/x".to_owned(),
            content: Some("a=1\n".to_owned()),
            content_base64: None,
            append: None,
            mode: None,
            owner: None,
            create_dirs: None,
            if_sha256: None,
            follow: None,
            asked: Asked::default(),
        };
        change(&mut args);
        let (path, good) = place_of(&args.path, "path", &Err(Error::internal("no agent")));
        let windows = command::is_windows(&path) && !path.starts_with('/');
        good.and_then(|()| checked(&args, path, windows))
    }

    #[test]
    fn what_cannot_be_written_is_refused_before_anything_is_sent() {
        let (file, content) = given(|_| {}).unwrap();
        assert_eq!((file.bytes, content.as_slice()), (4, &b"a=1\n"[..]));
        let both = given(|a| (a.content, a.content_base64) = (None, Some(" YT0x\nCg== ".into())));
        assert_eq!(both.unwrap().1, b"a=1\n");
        type Change = fn(&mut Write);
        let bad: [(&str, Change); 21] = [
            ("path", |a| a.path = "srv/x".into()),
            ("path", |a| a.path = "-rf".into()),
            ("path", |a| a.path = "/srv/x/".into()),
            ("path", |a| a.path = "/srv/../etc/x".into()),
            ("path", |a| a.path = "/a\0b".into()),
            ("path", |a| a.path = format!("/{}", "x".repeat(4096))),
            ("content", |a| a.content = None),
            ("content", |a| a.content_base64 = Some("YQ==".into())),
            ("content_base64", |a| (a.content, a.content_base64) = (None, Some("%%".into()))),
            ("mode", |a| a.mode = Some("u+s".into())),
            ("mode", |a| a.mode = Some("77777".into())),
            ("owner", |a| a.owner = Some("--reference=/etc/shadow".into())),
            ("owner", |a| a.owner = Some("a;id".into())),
            ("if_sha256", |a| a.if_sha256 = Some("abc".into())),
            ("path", |a| a.path = r"C:\x\".into()),
            ("path", |a| a.path = r"C:\x\..\y".into()),
            ("path", |a| a.path = r"C:y".into()),
            ("path", |a| a.path = r"\\server\x\y".into()),
            ("path", |a| a.path = r"C:\x:y".into()),
            ("mode", |a| (a.path, a.mode) = (r"C:\x".into(), Some("644".into()))),
            ("owner", |a| (a.path, a.owner) = (r"C:\x".into(), Some("bob".into()))),
        ];
        for (argument, change) in bad {
            let error = given(change).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{error}");
            assert_eq!(error.details["argument"], argument, "{error}");
        }
        for owner in ["root", "www-data:www-data", "1000:1000", "DOM\\user", "svc$"] {
            assert!(is_owner(owner), "{owner}");
        }
    }

    #[test]
    fn a_piece_is_as_long_as_the_agent_takes() {
        assert_eq!(STANDARD.encode(vec![0; PIECE]).len(), 61_440);
    }
}
