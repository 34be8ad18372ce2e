//! `pve_guest_file_list`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::inside::{Ended, absolute, failed, script};
use crate::{
    Error, Result,
    pve::Vmid,
    render::{Answer, Page, Table, units},
    safety::Deed,
    tools::{Ctx, change::Asked, deeds::Allowed},
};

/// Tells each name with what stat says, parted by NUL: path, most entries.
const LIST: &str = r#"[ -e "$1" ] || exit 41
[ -d "$1" ] || exit 43
cd -- "$1" || exit 44
n=0
for f in * .[!.]* ..?*; do
  [ -e "$f" ] || [ -h "$f" ] || continue
  n=$((n+1))
  [ "$n" -le "$2" ] || continue
  l=; [ -h "$f" ] && l=$(readlink -- "$f")
  s=$(stat -c '%f %s %a %u %g %Y' -- "$f") || continue
  printf '%s\0%s\0%s\0' "$f" "$s" "$l"
done
printf '%s\0' "$n""#;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct List {
    vmid: Vmid,
    path: String,
    #[schemars(range(min = 1, max = 5_000))]
    limit: Option<usize>,
}

/// `pve_guest_file_list`
pub async fn list(ctx: Ctx<'_>, args: List) -> Result<Answer> {
    absolute(&args.path)?;
    let place = ctx.place(args.vmid).await?;
    let deed = Deed::FileList { place: place.clone(), path: args.path.clone() };
    let Allowed::Leave(doing) = ctx.allow(deed, &Asked::default()).await? else {
        return Err(Error::internal("a read is no dry run"));
    };
    let limit = args.limit.unwrap_or(500);
    let most = limit.to_string();
    let ended = script(ctx, &doing, &place, LIST, &[&args.path, &most], None, 4 << 20).await;
    let ended = ended.and_then(|ended| match ended.exit_code {
        Some(0) => Ok(ended),
        Some(super::inside::NO_FILE) => {
            Err(Error::argument(format!("{:?} is not a directory", args.path)))
        }
        _ => Err(failed(&ended, &args.path)),
    });
    doing.finish(&ended.as_ref().map(Ended::record).map_err(Clone::clone));
    let ended = ended?;
    let mut parts: Vec<String> = ended
        .stdout
        .split(|b| *b == 0)
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect();
    parts.pop();
    let total = parts.pop().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
    let mut rows: Vec<&[String]> = parts.chunks_exact(3).collect();
    rows.sort_by(|a, b| a.first().cmp(&b.first()));
    let columns = ["name", "type", "size_bytes", "mode", "owner", "modified", "target"];
    let page = Page::new(Some(limit), None);
    let table = Table::new(columns).fill(rows.into_iter(), page, row_of);
    let answer = Answer::new(table.into_value())
        .heading(format!("{} in guest {}", args.path, place.vmid))
        .with("total", total);
    Ok(answer.untrusted(&["rows"]))
}

fn row_of(row: &[String]) -> Vec<Value> {
    let [name, stat, target] = row else { return Vec::new() };
    let fields: Vec<&str> = stat.split(' ').collect();
    let field = |at: usize| fields.get(at).copied().unwrap_or_default();
    let kind = match u32::from_str_radix(field(0), 16).unwrap_or(0) & 0o170_000 {
        0o100_000 => "file",
        0o040_000 => "directory",
        0o120_000 => "link",
        0o020_000 | 0o060_000 => "device",
        0o010_000 => "pipe",
        0o140_000 => "socket",
        _ => "other",
    };
    vec![
        name.clone().into(),
        kind.into(),
        field(1).parse::<u64>().ok().into(),
        field(2).into(),
        format!("{}:{}", field(3), field(4)).into(),
        field(5).parse::<i64>().ok().map(units::time).into(),
        (!target.is_empty()).then(|| target.clone()).into(),
    ]
}
