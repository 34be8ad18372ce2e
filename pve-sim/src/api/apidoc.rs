//! `/pve-docs/api-viewer/apidoc.js`: the schema of the endpoints that are here,
//! in the form in which a node serves it.

use std::io::Read;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value};

use crate::handlers;
use crate::wire::http::Response;

static DOCUMENT: LazyLock<String> = LazyLock::new(build);

pub(crate) fn serve(method: &str) -> Result<Response, Response> {
    if method != "GET" {
        return Err(Response::empty(501, &format!("method '{method}' not available")));
    }
    Ok(Response::text(200, "OK", "application/javascript", &DOCUMENT))
}

fn build() -> String {
    let mut text = String::new();
    // Built-in data; a test reads all of it.
    let _ = GzDecoder::new(include_bytes!("../../data/apidoc.js.gz").as_slice())
        .read_to_string(&mut text);
    let start = text.find('[').unwrap_or(0);
    let mut stream =
        serde_json::Deserializer::from_str(text.get(start..).unwrap_or("")).into_iter();
    let tree: Vec<Value> = stream.next().and_then(Result::ok).unwrap_or_default();
    let kept: Vec<Value> = tree.into_iter().filter_map(prune).collect();
    let mut out = b"const apiSchema = ".to_vec();
    let mut serializer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(b"   "));
    // Writing to memory cannot fail.
    let _ = kept.serialize(&mut serializer);
    out.extend_from_slice(b"\n;\n\nlet method2cmd = {\n    GET: 'get',\n    POST: 'create',\n    PUT: 'set',\n    DELETE: 'delete',\n};\n");
    String::from_utf8(out).unwrap_or_default()
}

/// A node of the tree without the methods that are not here; `None` when nothing is left.
fn prune(node: Value) -> Option<Value> {
    let Value::Object(mut node) = node else { return None };
    let path = node.get("path").and_then(Value::as_str).unwrap_or("").to_owned();
    let children: Vec<Value> = match node.remove("children") {
        Some(Value::Array(c)) => c.into_iter().filter_map(prune).collect(),
        _ => Vec::new(),
    };
    if let Some(Value::Object(info)) = node.remove("info") {
        let table = handlers::table();
        let kept: Map<String, Value> = info
            .into_iter()
            .filter(|(m, _)| table.contains_key(&(m.as_str(), path.as_str())))
            .collect();
        if !kept.is_empty() {
            node.insert("info".to_owned(), Value::Object(kept));
        }
    }
    if children.is_empty() && !node.contains_key("info") {
        return None;
    }
    node.insert("leaf".to_owned(), Value::from(u8::from(children.is_empty())));
    if !children.is_empty() {
        node.insert("children".to_owned(), Value::Array(children));
    }
    node.sort_keys();
    Some(Value::Object(node))
}
