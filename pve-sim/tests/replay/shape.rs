//! Whether two JSON documents have the same shape: the same members of the same types.

use std::collections::BTreeMap;

use serde_json::Value;

/// Members whose presence depends on the moment, on the machine, or on how long
/// something has run, in the real one, too.
const OPTIONAL: &[&str] = &[
    "pressurecpusome",
    "pressurecpufull",
    "pressureiosome",
    "pressureiofull",
    "pressurememorysome",
    "pressurememoryfull",
    "diskread",
    "diskwrite",
    "running-machine",
    "running-qemu",
];

/// Members whose value is the API's word, not a figure of the moment.
const WORDS: &[&str] = &[
    "exitstatus",
    "status",
    "qmpstatus",
    "type",
    "state",
    "running",
    "mark",
    "quorate",
    "privsep",
    "exited",
    "exitcode",
    "signal",
    "out-data",
    "err-data",
    "hasFeature",
    "pending",
    "delete",
    "next-run",
    "timestamp",
    "utc",
];

/// Documents that describe the machine of the recordings, not the API.
fn machine(path: &str) -> bool {
    const MACHINE: [&str; 8] = [
        "rrddata",
        "/apt/",
        "/report",
        "/metrics/export",
        "/access/permissions",
        "/cpu-flags",
        "/capabilities/",
        "/certificates/info",
    ];
    MACHINE.iter().any(|m| path.contains(m))
}

/// What differs, as text; `None` when the shapes are the same.
pub fn differs(path: &str, recorded: &Value, ours: &Value) -> Option<String> {
    compare("$", recorded, ours, machine(path))
}

fn word(name: &str) -> bool {
    WORDS.contains(&name)
}

fn kind(v: &Value) -> &'static str {
    match v {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn compare(at: &str, recorded: &Value, ours: &Value, loose: bool) -> Option<String> {
    match (recorded, ours) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                match b.get(name) {
                    Some(own)
                        if word(name)
                            && !loose
                            && value != own
                            && !value.is_object()
                            && !value.is_array() =>
                    {
                        return Some(format!("{at}.{name} is {own} and not {value}"));
                    }
                    Some(own) => {
                        if let Some(text) = compare(&format!("{at}.{name}"), value, own, loose) {
                            return Some(text);
                        }
                    }
                    None if loose || OPTIONAL.contains(&name.as_str()) => {}
                    None => return Some(format!("{at}.{name} is missing")),
                }
            }
            let extra = b.keys().find(|n| !a.contains_key(*n) && !OPTIONAL.contains(&n.as_str()));
            extra.filter(|_| !loose).map(|n| format!("{at}.{n} is not in the recording"))
        }
        (Value::Array(a), Value::Array(b)) => list(at, a, b, loose),
        (Value::String(a), Value::String(b)) if a.starts_with("UPID:") => {
            let what = |u: &str| u.split(':').skip(5).map(str::to_owned).collect::<Vec<_>>();
            (what(a) != what(b)).then(|| format!("{at} is {b} and not {a}"))
        }
        (a, b) if kind(a) == kind(b) => None,
        (a, b) => Some(format!("{at} is {} and not {}", kind(b), kind(a))),
    }
}

/// The members that the rows of a list have: type, and whether all have it.
fn columns(rows: &[Value]) -> BTreeMap<&str, (&'static str, bool)> {
    let mut columns = BTreeMap::new();
    for row in rows.iter().filter_map(Value::as_object) {
        for (name, value) in row {
            columns.entry(name.as_str()).or_insert((kind(value), true));
        }
    }
    for (name, column) in &mut columns {
        column.1 = rows.iter().filter_map(Value::as_object).all(|r| r.contains_key(*name));
    }
    columns
}

fn list(at: &str, a: &[Value], b: &[Value], loose: bool) -> Option<String> {
    if a.is_empty() != b.is_empty() {
        return Some(format!("{at} has {} rows and not {}", b.len(), a.len()));
    }
    let (first, own) = (a.first()?, b.first()?);
    if kind(first) != kind(own) {
        return Some(format!("{at}[] is {} and not {}", kind(own), kind(first)));
    }
    if !first.is_object() {
        return None;
    }
    let (theirs, ours) = (columns(a), columns(b));
    for (name, (kind, all)) in &theirs {
        match ours.get(name) {
            Some((own, _)) if own == kind || *kind == "null" || *own == "null" => {}
            Some((own, _)) => return Some(format!("{at}[].{name} is {own} and not {kind}")),
            None if *all && !loose && !OPTIONAL.contains(name) => {
                return Some(format!("{at}[].{name} is missing"));
            }
            None => {}
        }
    }
    let extra =
        ours.iter().find(|(n, (_, all))| *all && !theirs.contains_key(*n) && !OPTIONAL.contains(n));
    extra.filter(|_| !loose).map(|(n, _)| format!("{at}[].{n} is not in the recording"))
}
