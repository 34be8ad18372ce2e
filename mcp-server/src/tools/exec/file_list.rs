//! Directories of guests.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    allow,
    inside::{Given, Reply, Way, found},
    place_of,
};
use crate::{
    Error, Result,
    pve::Vmid,
    render::{Answer, Table, units},
    safety::{Deed, deed::Step, files::random_hex},
    tools::{Ctx, args::Paged, change::Asked, deeds::Allowed},
};

/// Most bytes of a listing: some thirty thousand entries.
const ROOM: u64 = 4 << 20;
/// How often a path may lead elsewhere than it did a moment ago.
const TRIES: u32 = 3;

/// Arguments of `pve_guest_file_list`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct List {
    vmid: Vmid,
    path: String,
    follow: Option<bool>,
    #[serde(flatten)]
    page: Paged,
}

/// One entry of a directory.
#[derive(Debug, PartialEq)]
struct Entry {
    name: String,
    kind: &'static str,
    size: Option<u64>,
    mode: String,
    owner: String,
    modified: Option<i64>,
    target: Option<String>,
}

/// `pve_guest_file_list`
pub async fn list(ctx: Ctx<'_>, args: List) -> Result<Answer> {
    let place = ctx.place(args.vmid).await?;
    let way = Way::to(ctx, &place).await;
    let (path, good) = place_of(&args.path, "path", &way);
    let able = good.and_then(|()| way.as_ref().map_err(Clone::clone)?.runs());
    // What no name in the guest can have foreseen.
    let mark = random_hex(12)?;
    let mut real = path.clone();
    let mut tries = 0;
    loop {
        let deed = Deed::FileList { place: place.clone(), path: real.clone() };
        let doing = match allow(ctx, deed, &Asked::default(), able.clone()).await? {
            Allowed::DryRun(_) => return Err(Error::internal("a read is no dry run")),
            Allowed::Leave(doing) => doing,
        };
        let way = way.as_ref().map_err(Clone::clone)?;
        let step = Step::List { path: &path, follow: args.follow == Some(true), mark: &mark };
        let given = Given { room: ROOM, ..Given::default() };
        let reply = way.run(ctx, &place, &doing, &step, given).await;
        if let Ok(Reply::Leads(to)) = &reply
            && tries < TRIES
        {
            doing.finish(&Ok(json!({"leads_to": to})));
            real.clone_from(to);
            tries += 1;
            continue;
        }
        let listing = reply.and_then(|reply| match reply {
            Reply::Done(_, body) if way.windows() => Ok(windows_entries(&body)),
            Reply::Done(_, body) => Ok(entries(&body, &mark)),
            other => Err(found(other, args.vmid, &args.path)),
        });
        let ended = listing.as_ref().map(|(all, _)| json!({"entries": all.len()}));
        doing.finish(&ended.map_err(Clone::clone));
        let (all, whole) = listing?;
        let answer = table(&args, all, whole, way.windows()).with("vmid", args.vmid.get());
        let answer = answer.with("path", args.path.clone());
        return Ok(match real == path {
            true => answer,
            false => answer.with("real_path", real),
        });
    }
}

fn table(args: &List, all: Vec<Entry>, whole: bool, windows: bool) -> Answer {
    // What stands in the place of owner and mode in Windows.
    let (mode, owner) = if windows { ("attributes", "created") } else { ("mode", "owner") };
    let columns = ["name", "type", "size_bytes", mode, owner, "modified", "target"];
    let table = Table::new(columns).fill(all.into_iter(), args.page.page(), |e| {
        vec![
            e.name.into(),
            e.kind.into(),
            e.size.into(),
            e.mode.into(),
            e.owner.into(),
            e.modified.map(units::time).map_or(Value::Null, Value::from),
            e.target.into(),
        ]
    });
    let missing = (!whole).then(|| "the directory has more entries than are read".to_owned());
    table.missing(missing).into_answer("entries")
}

/// The entries of a listing by name, and whether it came whole.
fn entries(body: &[u8], mark: &str) -> (Vec<Entry>, bool) {
    let mut records = split(body, mark.as_bytes());
    records.remove(0);
    let links = records.last().and_then(|last| last.strip_prefix(b"L"));
    let whole = links.is_some();
    let targets = links.map(targets).unwrap_or_default();
    // Without its end the last record can be cut.
    records.pop();
    let mut all: Vec<Entry> =
        records.into_iter().filter_map(|record| entry(record, &targets)).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    (all, whole)
}

fn split<'a>(mut body: &'a [u8], mark: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = body.windows(mark.len()).position(|w| w == mark) {
        let (head, tail) = body.split_at(at);
        parts.push(head);
        body = tail.get(mark.len()..).unwrap_or_default();
    }
    parts.push(body);
    parts
}

/// Where links lead, by their names.
fn targets(body: &[u8]) -> BTreeMap<&[u8], &[u8]> {
    let parts: Vec<&[u8]> = body.split(|b| *b == 0).collect();
    parts
        .chunks_exact(2)
        .filter_map(|pair| match pair {
            [name, target] => Some((*name, target.strip_suffix(b"\n").unwrap_or(target))),
            _ => None,
        })
        .collect()
}

/// `MODE SIZE MTIME UID GID USER:GROUP/./NAME` and a line feed.
fn entry(record: &[u8], targets: &BTreeMap<&[u8], &[u8]>) -> Option<Entry> {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    let at = record.windows(3).position(|w| w == b"/./")?;
    let (head, name) = (record.get(..at)?, record.get(at + 1..)?);
    let head = String::from_utf8_lossy(head);
    let mut words = head.split(' ');
    let mode = u32::from_str_radix(words.next()?, 16).ok()?;
    let size: u64 = words.next()?.parse().ok()?;
    let modified = words.next()?.parse().ok();
    let (uid, gid, user, group) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let known = |name: &str, id: &str| match name {
        "" | "UNKNOWN" | "?" => id.to_owned(),
        name => name.to_owned(),
    };
    let kind = match mode & 0o170_000 {
        0o100_000 => "file",
        0o040_000 => "directory",
        0o120_000 => "link",
        0o010_000 => "fifo",
        0o140_000 => "socket",
        0o020_000 => "char",
        0o060_000 => "block",
        _ => "other",
    };
    Some(Entry {
        kind,
        size: (kind == "file").then_some(size),
        mode: format!("{:04o}", mode & 0o7777),
        owner: format!("{}:{}", known(user, uid), known(group, gid)),
        modified,
        target: targets.get(name).map(|t| readable(t)),
        name: readable(name.strip_prefix(b"./").unwrap_or(name)),
    })
}

/// The entries of a directory of Windows by name, and whether they came whole.
fn windows_entries(body: &[u8]) -> (Vec<Entry>, bool) {
    let text = String::from_utf8_lossy(body);
    let (rows, whole) = match text.strip_suffix("END") {
        Some(rows) => (rows, true),
        // Without its end the last row can be cut.
        None => (text.rsplit_once('\n').map_or("", |(rows, _)| rows), false),
    };
    let mut all: Vec<Entry> = rows.lines().filter_map(windows_entry).collect();
    all.sort_by_cached_key(|entry| entry.name.to_lowercase());
    (all, whole)
}

/// `KIND ATTRIBUTES SIZE MODIFIED CREATED NAME TARGET`, parted by TAB; times in seconds.
fn windows_entry(row: &str) -> Option<Entry> {
    let mut fields = row.split('\t');
    let kind = match fields.next()? {
        "file" => "file",
        "directory" => "directory",
        "link" => "link",
        _ => return None,
    };
    let attributes: u32 = fields.next()?.parse().ok()?;
    let size = fields.next()?.parse().ok();
    let modified = fields.next()?.parse().ok();
    let created = fields.next()?.parse().ok();
    let name = fields.next()?.to_owned();
    let target = fields.next().filter(|t| !t.is_empty()).map(str::to_owned);
    // As `attrib` shows them.
    let letters =
        [(1, 'R'), (2, 'H'), (4, 'S'), (0x20, 'A'), (0x800, 'C'), (0x4000, 'E'), (0x1000, 'O')];
    Some(Entry {
        kind,
        size: size.filter(|_| kind == "file"),
        mode: letters.iter().filter(|(bit, _)| attributes & bit != 0).map(|(_, c)| *c).collect(),
        owner: created.map(units::time).unwrap_or_default(),
        modified,
        target,
        name,
    })
}

/// A name as text; bytes that are no text show as `\xNN`.
fn readable(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_kind_are_kept_apart() {
        let body = b"MKM81a4 12 1700000000 0 0 root root/./a\nb c\n\
            MKM41ed 4096 1700000001 0 5 root UNKNOWN/./.hid den\n\
            MKMa1ff 3 1700000002 7 8 UNKNOWN adm/./l\xff\n\
            MKM81ed 1 x 0 0 root root/./MK -rf\n\
            MKML./l\xff\0../to\n\n\0";
        let (all, whole) = entries(body, "MKM");
        assert!(whole);
        let names: Vec<&str> = all.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, [".hid den", "MK -rf", "a\nb c", "l\\xff"]);
        assert_eq!(all[3].target.as_deref(), Some("../to\n"));
        assert_eq!((all[3].kind, all[3].mode.as_str()), ("link", "0777"));
        assert_eq!(all[3].owner, "7:adm");
        assert_eq!(
            (all[0].kind, all[0].owner.as_str(), all[0].size),
            ("directory", "root:5", None)
        );
        assert_eq!((all[2].size, all[2].modified), (Some(12), Some(1_700_000_000)));
        assert_eq!(all[1].modified, None);

        let (cut, whole) = entries(&body[..60], "MKM");
        assert!(!whole);
        assert_eq!(cut.len(), 1, "{cut:?}");
        assert_eq!(entries(b"MKML", "MKM"), (Vec::new(), true));
        assert_eq!(entries(b"", "MKM"), (Vec::new(), false));
    }

    #[test]
    fn a_directory_of_windows_is_read() {
        let body = "file\t33\t12\t1700000000\t1600000000\tb x.txt\t\n\
            directory\t22\t1\t1700000000\t1600000000\tÄ\t\n\
            link\t1040\t1\t1700000000\t1600000000\ta\tC:\\x\nEND";
        let (all, whole) = windows_entries(body.as_bytes());
        assert!(whole);
        let names: Vec<_> = all.iter().map(|e| (e.name.as_str(), e.kind, e.size)).collect();
        let want = [("a", "link", None), ("b x.txt", "file", Some(12)), ("Ä", "directory", None)];
        assert_eq!(names, want);
        assert_eq!((all[1].mode.as_str(), all[2].mode.as_str()), ("RA", "HS"));
        assert_eq!(all[0].target.as_deref(), Some("C:\\x"));
        let (cut, whole) = windows_entries(&body.as_bytes()[..60]);
        assert!(!whole && cut.len() == 1, "{cut:?}");
    }
}
