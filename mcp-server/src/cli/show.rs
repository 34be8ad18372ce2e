//! An answer as a command prints it: JSON, tables for a person, or the tools' own text in a pipe.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets::UTF8_HORIZONTAL_ONLY};
use serde_json::{Map, Value};

use super::out::Out;
use crate::render::{Answer, units};

/// Prints an answer.
///
/// # Errors
/// When standard output cannot be written.
pub fn answer(out: Out, answer: &Answer) -> std::io::Result<()> {
    if out.json {
        out.value(&answer.structured)
    } else if out.terminal {
        out.text(&for_person(&answer.heading, &answer.structured, out.width))
    } else {
        out.text(&answer.text())
    }
}

/// The heading, then members one a line and tables as tables.
#[must_use]
pub fn for_person(heading: &str, value: &Value, width: Option<u16>) -> String {
    let mut text = String::new();
    if !heading.is_empty() {
        text.push_str(heading);
        text.push('\n');
    }
    match value {
        Value::Object(map) => members(&mut text, map, 0, width),
        other => text.push_str(&cell("", other)),
    }
    text.trim_end().to_owned() + "\n"
}

fn members(text: &mut String, map: &Map<String, Value>, depth: usize, width: Option<u16>) {
    if let (Some(Value::Array(columns)), Some(Value::Array(rows))) =
        (map.get("columns"), map.get("rows"))
    {
        let names: Vec<&str> = columns.iter().map(|c| c.as_str().unwrap_or_default()).collect();
        table(
            text,
            &names,
            rows.iter().map(|r| r.as_array().map_or(&[][..], Vec::as_slice)),
            width,
        );
    }
    let indent = "  ".repeat(depth);
    for (key, value) in map {
        match (key.as_str(), value) {
            ("columns" | "rows" | "untrusted", _) => {}
            ("total" | "shown", _) if map.contains_key("columns") => {}
            ("next", offset) if map.contains_key("columns") => {
                text.push_str(&format!("more with --offset {offset}\n"));
            }
            (_, Value::Object(inner)) if inner.is_empty() => {}
            (_, Value::Object(inner)) => {
                text.push_str(&format!("{indent}{}:\n", title(key)));
                members(text, inner, depth + 1, width);
            }
            (_, Value::Array(items)) if !items.is_empty() && items.iter().all(Value::is_object) => {
                text.push_str(&format!("{indent}{}:\n", title(key)));
                objects(text, items, width);
            }
            (_, Value::Array(items)) if items.is_empty() => {
                text.push_str(&format!("{indent}{}: none\n", title(key)));
            }
            (_, Value::String(long)) if long.contains('\n') => {
                text.push_str(&format!("{indent}{}:\n", title(key)));
                for line in long.lines() {
                    text.push_str(&format!("{indent}  | {line}\n"));
                }
            }
            _ => text.push_str(&format!("{indent}{}: {}\n", title(key), cell(key, value))),
        }
    }
}

/// Objects become the rows of a table whose columns are all their members.
fn objects(text: &mut String, items: &[Value], width: Option<u16>) {
    let mut names: Vec<&str> = Vec::new();
    for key in items.iter().filter_map(Value::as_object).flat_map(Map::keys) {
        if !names.contains(&key.as_str()) {
            names.push(key);
        }
    }
    let rows: Vec<Vec<Value>> = items
        .iter()
        .map(|item| names.iter().map(|n| item.get(*n).cloned().unwrap_or_default()).collect())
        .collect();
    table(text, &names, rows.iter().map(Vec::as_slice), width);
}

fn table<'a>(
    text: &mut String,
    names: &[&str],
    rows: impl Iterator<Item = &'a [Value]>,
    width: Option<u16>,
) {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = width {
        table.set_width(width);
    }
    table.set_header(names.iter().map(|name| title(name)));
    for row in rows {
        table.add_row(names.iter().zip(row).map(|(name, value)| {
            let aligned =
                if value.is_number() { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(cell(name, value)).set_alignment(aligned)
        }));
    }
    text.push_str(&table.trim_fmt());
    text.push('\n');
}

/// A column's or member's name without its unit, which the values then carry.
fn title(name: &str) -> String {
    let bare = [("_bytes_s", "/s"), ("_bytes", ""), ("_percent", " %"), ("_s", "")]
        .iter()
        .find_map(|(unit, shown)| Some(format!("{}{shown}", name.strip_suffix(unit)?)));
    bare.unwrap_or_else(|| name.to_owned()).replace('_', " ")
}

/// A value in one line, sizes and durations in units that people read.
fn cell(name: &str, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(s) => s.replace(['\n', '\t'], " "),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| cell(name, item)).collect();
            items.join(", ")
        }
        Value::Object(map) => {
            let parts: Vec<String> =
                map.iter().map(|(k, v)| format!("{} {}", title(k), cell(k, v))).collect();
            parts.join(", ")
        }
        Value::Number(n) => match n.as_u64() {
            Some(n) if name.ends_with("_bytes") || name.ends_with("_bytes_s") => units::bytes(n),
            Some(n) if name.ends_with("_s") => units::duration(n),
            _ => n.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_a_table_with_units() {
        let value = json!({
            "columns": ["vmid", "name", "mem_bytes", "uptime_s", "cpu_percent", "tags"],
            "rows": [[100, "web", 1_610_612_736, 90_061, 12.5, ["a", "b"]], [101, null, 0, 0, 0, []]],
            "total": 9, "shown": 2, "next": 2,
        });
        let text = for_person("2 of 9 guests", &value, Some(80));
        for part in ["2 of 9 guests\n", "1.5 GiB", "1d 1h", "cpu %", "a, b", "more with --offset 2"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("mem_bytes") && !text.contains("total"), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    }

    #[test]
    fn members_and_lists_of_objects() {
        let value = json!({
            "node": "pve1", "ok": true, "empty": [], "notes": "a\nstatus: approved",
            "usage": {"mem_bytes": 1024, "net_in_bytes_s": 2048},
            "disks": [{"id": "scsi0", "size_bytes": 1024}, {"id": "scsi1", "ro": true}],
        });
        let text = for_person("", &value, None);
        for part in [
            "node: pve1\n",
            "ok: yes\n",
            "empty: none\n",
            "  | status: approved\n",
            "usage:\n  mem: 1 KiB\n  net in/s: 2 KiB\n",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(text.contains("scsi1") && text.contains("size"), "{text}");
    }
}
