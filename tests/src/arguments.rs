//! Arguments that every tool takes, found out from the estate and the tool's own schema.

use serde_json::{Map, Value, json};

use crate::{Estate, Server};

/// The tools that a server lists.
pub fn listed(server: &mut Server) -> Vec<Value> {
    let answer = server.request("tools/list", json!({}));
    answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

/// A tool's name.
pub fn name(tool: &Value) -> &str {
    tool["name"].as_str().expect("a tool has a name")
}

/// The least that a tool needs: its required arguments, naming things that the estate has.
///
/// # Panics
/// For a required argument that this function does not know yet.
pub fn least(estate: &Estate, tool: &Value) -> Value {
    let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
    let values = required.iter().filter_map(Value::as_str).map(|name| {
        let value = plausible(estate, name)
            .unwrap_or_else(|| panic!("what may stand in {name:?} of {}?", self::name(tool)));
        (name.to_owned(), value)
    });
    Value::Object(values.collect::<Map<_, _>>())
}

/// Calls a tool with the least that it needs: what its schema requires, and a node
/// where it says that there are several.
pub fn call_least(estate: &Estate, server: &mut Server, tool: &Value) -> Value {
    let mut arguments = least(estate, tool);
    let result = server.call(name(tool), arguments.clone());
    let missing = &result["structuredContent"]["error"]["argument"];
    match missing.as_str().and_then(|m| Some((m, plausible(estate, m)?))) {
        Some((argument, value)) => {
            arguments[argument] = value;
            server.call(name(tool), arguments)
        }
        None => result,
    }
}

/// Something that exists in the estate, for an argument of this name.
pub fn plausible(estate: &Estate, argument: &str) -> Option<Value> {
    estate.sim().with_state(|state| {
        Some(match argument {
            "vmid" => json!(state.guests.keys().next()?),
            "node" => json!(state.nodes.keys().next()?),
            "storage" => json!(state.storages.keys().next()?),
            "pool" | "poolid" => json!(state.pools.keys().next()?),
            "upid" => json!(state.tasks.all.first()?.upid()),
            "volid" => {
                let backup = state.volumes.iter().find(|v| v.content == "backup")?;
                json!(format!("{}:{}", backup.storage, backup.name))
            }
            "path" => json!("/nodes"),
            "method" => json!("GET"),
            _ => return None,
        })
    })
}
