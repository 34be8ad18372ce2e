//! What an approval is bound to: the request, and the object as it was shown.

use serde_json::{Map, Value, json};

use super::{Class, Method, Operation, api::API, conditions::Call, judge::Judgement, live};
use crate::{
    config::Config,
    pve::{Params, loose},
};

/// Objects without a variable of their own at the end of their path.
const WHOLE: [&str; 9] = [
    "/cluster/options",
    "/cluster/sdn",
    "/cluster/firewall/options",
    "/nodes/{node}/config",
    "/nodes/{node}/dns",
    "/nodes/{node}/hosts",
    "/nodes/{node}/network",
    "/nodes/{node}/firewall/options",
    "/nodes/{node}/apt/repositories",
];

/// Members that differ from one second to the next.
const RESTLESS: [&str; 20] = [
    "cpu",
    "mem",
    "memhost",
    "uptime",
    "disk",
    "diskread",
    "diskwrite",
    "netin",
    "netout",
    "used",
    "avail",
    "used_fraction",
    "localtime",
    "time",
    "last_sync",
    "last_try",
    "next_sync",
    "duration",
    "fail_count",
    "pid",
];

/// The text whose digest a yes holds for. Asks for what it needs.
#[must_use]
pub fn bound(
    op: &Operation,
    judgement: &Judgement,
    call: Option<&Call<'_>>,
    impact: &[String],
    config: &Config,
) -> String {
    let vmids: Vec<u32> = judgement.touched.vmids.iter().map(|v| v.get()).collect();
    let params = judgement.class.params.as_ref().map(Params::to_json).unwrap_or_default();
    json!({
        "method": op.method.as_str(),
        "path": op.path.as_str(),
        "params": params,
        "class": judgement.class.class_text(),
        "vmids": vmids,
        "object": call.map(object),
        // What was shown to hang on it: staged changes, guests that run, backups that go.
        "impact": impact,
        "host": config.hosts.iter().map(|h| h.host.as_str()).collect::<Vec<_>>(),
    })
    .to_string()
}

/// What tells an object from what it was, and from another with its number.
fn object(call: &Call<'_>) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|v| !v.is_null()) {
            object.insert(key.to_owned(), value);
        }
    };
    if let Some(config) = call.config() {
        put("digest", config.get("digest").cloned());
        // `meta` holds the time of creation, `vmgenid` and `smbios1` ids of their own.
        for key in ["name", "hostname", "meta", "vmgenid", "smbios1", "lock"] {
            put(key, config.get(key).cloned());
        }
    }
    put(
        "guest",
        live::describe(call).map(|mut guest| {
            // Load and uptime are not part of what was agreed to, but whether it runs is.
            if let Some(map) = guest.as_object_mut() {
                map.retain(|k, _| {
                    matches!(k.as_str(), "vmid" | "kind" | "name" | "node" | "status")
                });
            }
            guest
        }),
    );
    put("snapshot", snapshot_time(call));
    put("source", archive(call));
    put("stored", stored(call));
    object
}

/// When the named snapshot was taken.
fn snapshot_time(call: &Call<'_>) -> Option<Value> {
    let (node, kind, vmid) = (call.variable("node")?, call.kind()?, call.variable("vmid")?);
    let name = call.variable("snapname")?;
    let list = call.facts.ask(&["nodes", node, kind, vmid, "snapshot"], Params::new()).ok()?;
    let row = loose::rows(list).iter().find(|r| loose::str(r, "name") == Some(name))?;
    row.get("snaptime").cloned()
}

/// The archive that a guest is made from: its size and time.
fn archive(call: &Call<'_>) -> Option<Value> {
    let node = call.variable("node")?;
    let volume = call.params.text("archive").or_else(|| call.params.text("ostemplate"))?;
    let (storage, _) = volume.split_once(':')?;
    let found =
        call.facts.ask(&["nodes", node, "storage", storage, "content", volume], Params::new());
    let found = found.ok()?;
    Some(
        json!({"size": found.get("size"), "ctime": found.get("ctime"), "notes": found.get("notes")}),
    )
}

/// The stored object that a change replaces or removes, whole.
fn stored(call: &Call<'_>) -> Option<Value> {
    let template = call.endpoint.template;
    if call.config().is_some() && template.contains("{vmid}") && !template.contains("/firewall/") {
        return None;
    }
    let one =
        call.method != Method::Post && template.ends_with('}') && !template.contains("/tasks/");
    let reads = call.endpoint.action(Method::Get).is_some_and(|a| a.rule.is_none());
    if !reads || !(one || WHOLE.contains(&template)) {
        return None;
    }
    let segments: Vec<&str> = call.path.segments().collect();
    let answer = call.facts.ask(&segments, Params::new()).ok()?;
    let mut kept = steady(answer);
    // The digest is of the whole file, in which others may change meanwhile.
    if let Value::Object(map) = &mut kept
        && one
    {
        map.remove("digest");
    }
    Some(kept)
}

/// A value without what differs from one second to the next.
fn steady(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(steady).collect(),
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !RESTLESS.contains(&key.as_str()) && !key.starts_with("pressure"))
            .map(|(key, value)| (key.clone(), steady(value)))
            .collect(),
        other => other.clone(),
    }
}

/// Whether a change needs more than `confirm`, and whether that has to be a person.
#[must_use]
pub fn needs_approval(judgement: &Judgement, config: &Config) -> bool {
    judgement.class.class > Class::Read
        && (judgement.class.class >= config.approval_scope || judgement.class.may_cut_access)
}

/// The call of an operation, with the parameters that were judged.
#[must_use]
pub fn call_of<'a>(
    op: &'a Operation,
    params: &'a Params,
    facts: &'a super::Facts,
) -> Option<Call<'a>> {
    let endpoint = API.find(&op.path)?;
    let action = endpoint.action(op.method)?;
    Some(Call { method: op.method, path: &op.path, endpoint, action, params, facts })
}
