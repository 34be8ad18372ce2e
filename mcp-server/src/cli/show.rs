//! An answer as a command prints it: JSON, tables for a person, or the tools' own text in a pipe.

use anstyle::{AnsiColor, Style};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets::NOTHING};
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
        out.text(&for_person(out, &answer.heading, &answer.structured))
    } else {
        out.text(&answer.text())
    }
}

/// The heading, then members one a line and tables as tables.
#[must_use]
pub fn for_person(out: Out, heading: &str, value: &Value) -> String {
    let mut text = String::new();
    if !heading.is_empty() {
        text.push_str(heading);
        text.push('\n');
    }
    match value {
        Value::Object(map) => members(&mut text, out, map, 0),
        other => text.push_str(&cell("", other)),
    }
    text.trim_end().to_owned() + "\n"
}

/// What is wrong or well: a mark in its colour, what it is, what shows it, what to do.
#[must_use]
pub fn finding(out: Out, mark: &str, what: &str, evidence: &str, next: &str) -> String {
    let colour = match mark {
        "ok" => AnsiColor::Green,
        "FAIL" | "critical" => AnsiColor::Red,
        "warning" => AnsiColor::Yellow,
        _ => AnsiColor::Cyan,
    };
    let style = Style::new().fg_color(Some(colour.into())).bold();
    let mut text = format!("{}  {what}\n", out.paint(style, &format!("{mark:<8}")));
    if !evidence.is_empty() {
        text.push_str(&format!("{:10}{evidence}\n", ""));
    }
    if !next.is_empty() {
        text.push_str(&format!("{:10}-> {next}\n", ""));
    }
    text
}

fn members(text: &mut String, out: Out, map: &Map<String, Value>, depth: usize) {
    if let (Some(Value::Array(columns)), Some(Value::Array(rows))) =
        (map.get("columns"), map.get("rows"))
    {
        let names: Vec<&str> = columns.iter().map(|c| c.as_str().unwrap_or_default()).collect();
        let rows = rows.iter().map(|r| r.as_array().map_or(&[][..], Vec::as_slice));
        table(text, out, &names, rows);
    }
    let indent = "  ".repeat(depth);
    for (key, value) in map {
        match (key.as_str(), value) {
            ("columns" | "rows" | "untrusted", _) => {}
            ("total" | "shown", _) if map.contains_key("columns") => {}
            ("next", offset) if map.contains_key("columns") => {
                text.push_str(&format!("more with --offset {offset}\n"));
            }
            ("findings", Value::Array(items)) => {
                for item in items {
                    let part = |key: &str| item.get(key).map(|v| cell(key, v)).unwrap_or_default();
                    let (mark, what) = (part("severity"), part("what"));
                    text.push_str(&finding(out, &mark, &what, &part("evidence"), &part("next")));
                }
            }
            (_, Value::Object(inner)) if inner.is_empty() => {}
            (_, Value::Object(inner)) => {
                text.push_str(&format!("{indent}{}:\n", title(key)));
                members(text, out, inner, depth + 1);
            }
            (_, Value::Array(items)) if !items.is_empty() && items.iter().all(Value::is_object) => {
                text.push_str(&format!("\n{indent}{}:\n", title(key)));
                objects(text, out, items);
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
fn objects(text: &mut String, out: Out, items: &[Value]) {
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
    table(text, out, &names, rows.iter().map(Vec::as_slice));
}

fn table<'a>(text: &mut String, out: Out, names: &[&str], rows: impl Iterator<Item = &'a [Value]>) {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = out.width {
        table.set_width(width);
    }
    table.set_header(names.iter().map(|name| title(name).to_uppercase()));
    for row in rows {
        table.add_row(names.iter().zip(row).map(|(name, value)| {
            let aligned =
                if value.is_number() { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(cell(name, value)).set_alignment(aligned)
        }));
    }
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
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

    fn out(width: Option<u16>) -> Out {
        Out { json: false, terminal: true, width, colour: false }
    }

    #[test]
    fn a_list_is_a_table_with_units() {
        let value = json!({
            "columns": ["vmid", "name", "mem_bytes", "uptime_s", "cpu_percent", "tags"],
            "rows": [[100, "web", 1_610_612_736, 90_061, 12.5, ["a", "b"]], [101, null, 0, 0, 0, []]],
            "total": 9, "shown": 2, "next": 2,
        });
        let text = for_person(out(Some(80)), "2 of 9 guests", &value);
        for part in ["2 of 9 guests\n", "1.5 GiB", "1d 1h", "CPU %", "a, b", "more with --offset 2"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("_bytes") && !text.contains("total"), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    }

    #[test]
    fn findings_are_lines_of_their_own() {
        let value = json!({"findings": [{
            "severity": "warning", "code": "x", "what": "Storage nfs is nearly full",
            "evidence": {"percent": 90.1, "used_bytes": 1024}, "next": "Free space",
        }]});
        assert_eq!(
            for_person(out(Some(80)), "", &value),
            "warning   Storage nfs is nearly full\n          percent 90.1, used 1 KiB\n          -> Free space\n"
        );
        let coloured = Out { colour: true, ..out(None) };
        assert!(for_person(coloured, "", &value).starts_with("\u{1b}[1m\u{1b}[33mwarning"));
    }

    #[test]
    fn members_and_lists_of_objects() {
        let value = json!({
            "node": "pve1", "ok": true, "empty": [], "notes": "a\nstatus: approved",
            "usage": {"mem_bytes": 1024, "net_in_bytes_s": 2048},
            "disks": [{"id": "scsi0", "size_bytes": 1024}, {"id": "scsi1", "ro": true}],
        });
        let text = for_person(out(None), "", &value);
        for part in [
            "node: pve1\n",
            "ok: yes\n",
            "empty: none\n",
            "  | status: approved\n",
            "usage:\n  mem: 1 KiB\n  net in/s: 2 KiB\n",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(text.contains("scsi1") && text.contains("SIZE"), "{text}");
    }
}
