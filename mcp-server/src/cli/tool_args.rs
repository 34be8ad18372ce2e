//! A tool's arguments as flags of a command, made from the tool's schema.

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser};
use serde_json::{Map, Value};

use crate::tools::Tool;

/// Adds a flag for each argument of a tool; `positional` names one that needs no flag.
#[must_use]
pub fn flags(command: Command, tool: &'static Tool, positional: Option<&str>) -> Command {
    let schema = tool.schema();
    let required: Vec<&str> = list(schema, "required").iter().filter_map(Value::as_str).collect();
    properties(schema).fold(command, |command, (name, property)| {
        let arg = Arg::new(name).required(required.contains(&name));
        let arg = if positional == Some(name) {
            arg.value_name(upper(name))
        } else {
            arg.long(dashed(name)).value_name(value_name(property))
        };
        command.arg(kind(arg, property, positional.is_some()).help(help(property)))
    })
}

/// The arguments that were given, ready for the tool's own check.
#[must_use]
pub fn arguments(matches: &ArgMatches, tool: &'static Tool) -> Map<String, Value> {
    let mut found = Map::new();
    for (name, property) in properties(tool.schema()) {
        let Ok(Some(values)) = matches.try_get_many::<String>(name) else { continue };
        let mut values: Vec<Value> = values.map(|v| Value::from(v.as_str())).collect();
        // One occurrence may be a whole list, `a,b` or `["a","b"]`: the tool's check reads it.
        let value = match values.len() {
            1 => values.swap_remove(0),
            _ => Value::Array(values),
        };
        if !(is_list(property) && value == Value::Array(Vec::new())) {
            found.insert(name.to_owned(), value);
        }
    }
    found
}

/// An example of a call on the command line: what is required, with a word in its place.
#[must_use]
pub fn example(tool: &'static Tool) -> String {
    let required = list(tool.schema(), "required").iter().filter_map(Value::as_str);
    let flags: Vec<String> = required
        .map(|name| {
            let property = properties(tool.schema()).find(|(n, _)| *n == name).map(|(_, p)| p);
            let value = match (name, property.and_then(first_allowed)) {
                (_, Some(word)) => word.to_owned(),
                ("vmid", _) => "100".to_owned(),
                ("node", _) => "pve1".to_owned(),
                ("method", _) => "GET".to_owned(),
                ("path", _) => "/cluster/resources".to_owned(),
                (other, _) => other.to_ascii_uppercase(),
            };
            format!(" --{} {value}", name.replace('_', "-"))
        })
        .collect();
    format!("proxmox-mcp call {}{}", tool.name, flags.concat())
}

fn properties(schema: &Map<String, Value>) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
    let all = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(name, property)| Some((name.as_str(), property.as_object()?)))
}

fn list<'a>(schema: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_list(property: &Map<String, Value>) -> bool {
    property.get("type").is_some_and(|t| t == "array")
}

fn first_allowed(property: &Map<String, Value>) -> Option<&str> {
    list(property, "enum").first().and_then(Value::as_str)
}

fn kind(arg: Arg, property: &'static Map<String, Value>, beside_positional: bool) -> Arg {
    let words: Vec<&'static str> =
        list(property, "enum").iter().filter_map(Value::as_str).collect();
    if !words.is_empty() {
        return arg.value_parser(PossibleValuesParser::new(words));
    }
    match property.get("type").and_then(Value::as_str) {
        // Beside a positional, `--wait UPID` must not take the UPID for its value.
        Some("boolean") => {
            arg.num_args(0..=1).default_missing_value("true").require_equals(beside_positional)
        }
        Some("array") => arg.action(ArgAction::Append),
        _ => arg.allow_hyphen_values(true),
    }
}

fn value_name(property: &Map<String, Value>) -> &'static str {
    match property.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => "N",
        Some("boolean") => "BOOL",
        Some("array") => "LIST",
        Some("object") => "JSON",
        _ => "TEXT",
    }
}

/// What the schema says in words and bounds.
fn help(property: &Map<String, Value>) -> String {
    let mut parts = Vec::new();
    if let Some(words) = property.get("description").and_then(Value::as_str) {
        parts.push(words.trim_end_matches('.').to_owned());
    }
    let bound = |key: &str| property.get(key).map(ToString::to_string);
    match (bound("minimum"), bound("maximum")) {
        (Some(from), Some(to)) => parts.push(format!("{from} to {to}")),
        (Some(from), None) => parts.push(format!("at least {from}")),
        (None, Some(to)) => parts.push(format!("at most {to}")),
        (None, None) => {}
    }
    parts.join("; ")
}

/// Clap keeps names for the whole run; there are a few, once.
fn dashed(name: &str) -> &'static str {
    name.replace('_', "-").leak()
}

fn upper(name: &str) -> &'static str {
    name.to_ascii_uppercase().leak()
}
