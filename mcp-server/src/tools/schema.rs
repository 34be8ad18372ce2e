//! Argument schemas, evened out once for all tools so that every client takes them:
//! no `$ref`, `$schema`, integer formats, `["integer","null"]`, or top-level combinators.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

use crate::pve::Vmid;

/// The normalised schema of an argument struct.
#[must_use]
pub fn of<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|s| s.meta_schema = None);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let types = match schema.as_object_mut().and_then(|map| map.remove("$defs")) {
        Some(Value::Object(types)) => types,
        _ => Map::new(),
    };
    inline(&mut schema, &types);
    normalise(&mut schema);
    let mut map = match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    map.remove("title");
    map.remove("description");
    map.entry("type").or_insert_with(|| "object".into());
    map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    map.insert("additionalProperties".to_owned(), false.into());
    map
}

/// A text, or a list of texts.
pub(super) fn text_or_list(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
    })
}

/// A schema as clients are told it: what the server checks all the same and no caller needs to
/// hear goes. Unknown names within an argument, a count below one, a VMID that cannot be and a
/// wait of more than a day are refused whatever is listed.
#[must_use]
pub fn listed(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut schema = schema.clone();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return schema };
    for (name, property) in properties {
        let Value::Object(map) = property else { continue };
        if name == "timeout_s" {
            map.remove("maximum");
        }
        refer(map);
        shorten(property);
    }
    schema
}

/// An argument that is described "As another tool takes it" names its members, and leaves the
/// rest to that tool.
fn refer(map: &mut Map<String, Value>) {
    let Some(words) = map.get("description").and_then(Value::as_str) else { return };
    let Some(words) = words.starts_with("As pve_").then(|| words.trim_end_matches('.')) else {
        return;
    };
    let inner = map.get("items").and_then(Value::as_object).unwrap_or(map);
    let Some(Value::Object(members)) = inner.get("properties") else { return };
    let words = format!("{words}: {}.", names(members));
    map.insert("description".to_owned(), words.into());
    map.remove("properties");
    if let Some(Value::Object(items)) = map.get_mut("items") {
        items.remove("properties");
    }
}

/// Names of members, those of lists and objects within them in brackets.
fn names(members: &Map<String, Value>) -> String {
    let one = |(name, schema): (&String, &Value)| {
        let within = [schema.pointer("/items/properties"), schema.get("properties")];
        match within.into_iter().flatten().find_map(Value::as_object) {
            Some(inner) => format!("{name} ({})", names(inner)),
            None => name.clone(),
        }
    };
    members.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Takes out what [`listed`] leaves out everywhere.
fn shorten(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    map.remove("additionalProperties");
    if map.get("maximum").and_then(Value::as_u64) == Some(Vmid::MAX.into()) {
        map.remove("minimum");
        map.remove("maximum");
    }
    if map.get("minimum").and_then(Value::as_f64).is_some_and(|least| least == 0.0 || least == 1.0)
    {
        map.remove("minimum");
    }
    inside(map, &mut shorten);
}

/// Every schema right inside a schema.
fn inside(map: &mut Map<String, Value>, visit: &mut impl FnMut(&mut Value)) {
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(&mut *visit);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            visit(inner);
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(items)) = map.get_mut(key) {
            items.iter_mut().for_each(&mut *visit);
        }
    }
}

/// Puts a type in the place of each reference to it, without the type's own words: they are
/// for readers of the source, an argument's own are for callers.
fn inline(schema: &mut Value, types: &Map<String, Value>) {
    let Value::Object(map) = schema else { return };
    let name = map.get("$ref").and_then(Value::as_str);
    if let Some(Value::Object(found)) =
        name.and_then(|n| n.strip_prefix("#/$defs/")).and_then(|n| types.get(n))
    {
        let mut found = found.clone();
        found.remove("description");
        map.remove("$ref");
        for (key, value) in found {
            map.entry(key).or_insert(value);
        }
    }
    inside(map, &mut |inner| inline(inner, types));
}

fn normalise(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    map.remove("$schema");
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    flatten_optional(map);
    flatten_variants(map);
    let number = map.get("type").is_some_and(|t| t == "integer" || t == "number");
    if number {
        map.remove("format");
    }
    // What serde would pass over in silence is an unknown argument.
    if map.contains_key("properties") {
        map.entry("additionalProperties").or_insert(false.into());
    }
    inside(map, &mut normalise);
}

/// `{"type":["integer","null"]}` and `{"anyOf":[X,{"type":"null"}]}` become X: an
/// argument that may be absent need not say that it may be null.
fn flatten_optional(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|t| t != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            map.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.retain(|v| !v.is_null());
    }
    let Some(Value::Array(options)) = map.get_mut("anyOf") else { return };
    options.retain(|o| o.get("type") != Some(&Value::from("null")));
    if let [Value::Object(one)] = options.as_slice() {
        let one = one.clone();
        map.remove("anyOf");
        for (key, value) in one {
            map.entry(key).or_insert(value);
        }
    }
}

/// Described variants, `oneOf` of constants, become a plain `enum`.
fn flatten_variants(map: &mut Map<String, Value>) {
    let Some(Value::Array(options)) = map.get("oneOf") else { return };
    let mut values = Vec::new();
    for option in options {
        match (option.get("const"), option.get("enum")) {
            (Some(value), _) => values.push(value.clone()),
            (None, Some(Value::Array(several))) => values.extend(several.iter().cloned()),
            _ => return,
        }
    }
    map.remove("oneOf");
    map.insert("type".to_owned(), "string".into());
    map.insert("enum".to_owned(), Value::Array(values));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Inner {
        a: Option<u8>,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code)]
    enum Kind {
        /// A VM.
        Qemu,
        Lxc,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Args {
        /// How many.
        n: Option<u32>,
        kind: Option<Kind>,
        inner: Option<Inner>,
        list: Option<Vec<String>>,
        need: bool,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Told {
        vmid: crate::pve::Vmid,
        #[schemars(range(min = 1, max = 86_400))]
        timeout_s: Option<u64>,
        #[schemars(range(min = 1, max = 31))]
        slot: Option<u8>,
        /// As pve_other takes it.
        inner: Option<Inner>,
        /// As pve_other takes them.
        several: Option<Vec<Outer>>,
        own: Option<Inner>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Outer {
        /// Words.
        b: bool,
        inner: Vec<Inner>,
    }

    #[test]
    fn what_is_listed_says_nothing_twice() {
        let whole = of::<Told>();
        assert_eq!(whole["properties"]["vmid"]["maximum"], Vmid::MAX);
        assert_eq!(whole["properties"]["inner"]["additionalProperties"], false);
        assert_eq!(
            Value::Object(listed(&whole)),
            json!({
                "type": "object",
                "properties": {
                    "vmid": {"type": "integer"},
                    "timeout_s": {"type": "integer"},
                    "slot": {"type": "integer", "maximum": 31},
                    "inner": {"type": "object", "description": "As pve_other takes it: a."},
                    "several": {"type": "array", "items": {"type": "object", "required": ["b", "inner"]},
                        "description": "As pve_other takes them: b, inner (a)."},
                    "own": {"type": "object", "properties": {"a": {"type": "integer", "maximum": 255}}}
                },
                "required": ["vmid"],
                "additionalProperties": false
            })
        );
    }

    #[test]
    fn schemas_are_plain() {
        assert_eq!(
            Value::Object(of::<Args>()),
            json!({
                "type": "object",
                "properties": {
                    "n": {"description": "How many.", "type": "integer", "minimum": 0},
                    "kind": {"type": "string", "enum": ["lxc", "qemu"]},
                    "inner": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 255}},
                        "additionalProperties": false},
                    "list": {"type": "array", "items": {"type": "string"}},
                    "need": {"type": "boolean"}
                },
                "required": ["need"],
                "additionalProperties": false
            })
        );
    }
}
