//! Argument schemas, evened out once for all tools so that every client takes them:
//! no `$ref`, `$schema`, integer formats, `["integer","null"]`, or top-level combinators.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

/// The normalised schema of an argument struct.
#[must_use]
pub fn of<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
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
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(normalise);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            normalise(inner);
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(items)) = map.get_mut(key) {
            items.iter_mut().for_each(normalise);
        }
    }
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

    #[test]
    fn schemas_are_plain() {
        assert_eq!(
            Value::Object(of::<Args>()),
            json!({
                "type": "object",
                "properties": {
                    "n": {"description": "How many.", "type": "integer", "minimum": 0},
                    "kind": {"type": "string", "enum": ["lxc", "qemu"]},
                    "inner": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 255}}},
                    "list": {"type": "array", "items": {"type": "string"}},
                    "need": {"type": "boolean"}
                },
                "required": ["need"],
                "additionalProperties": false
            })
        );
    }
}
