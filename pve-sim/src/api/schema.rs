//! The endpoints of the real API: a tree of paths with parameters, types and
//! the privilege each method checks, from the data that is built in.

use std::collections::HashMap;
use std::io::Read;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use serde_json::{Map, Value};

use super::call::Handler;
use crate::handlers;

/// One method of one path.
pub(crate) struct Endpoint {
    pub(crate) parameters: Map<String, Value>,
    pub(crate) permissions: Option<Value>,
    /// Handled by the privileged worker.
    pub(crate) protected: bool,
    /// Sent on to the node in the path.
    pub(crate) proxied: bool,
    /// Unknown parameters are refused.
    pub(crate) strict: bool,
    /// `None`: known to the real API, not simulated.
    pub(crate) handler: Option<Handler>,
}

impl Endpoint {
    /// Whether it answers without a login.
    pub(crate) fn open_to_world(&self) -> bool {
        self.permissions.as_ref().and_then(|p| p.get("user")).is_some_and(|u| u == "world")
    }

    /// Parameters that only root's own login may use.
    pub(crate) fn root_only(&self, name: &str) -> bool {
        name == "skiplock" && self.parameters.contains_key(name)
    }
}

#[derive(Default)]
struct Node {
    children: HashMap<String, Node>,
    /// The variable child and its name.
    variable: Option<(String, Box<Node>)>,
    methods: HashMap<String, Endpoint>,
}

static TREE: LazyLock<Node> = LazyLock::new(load);

/// Variables that swallow the rest of the path, slashes and all.
const GREEDY: [&str; 2] = ["volume", "cidr"];

fn inflate(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    // Built-in data; a test reads all of it.
    let _ = GzDecoder::new(data).read_to_end(&mut out);
    out
}

fn load() -> Node {
    let data = inflate(include_bytes!("../../data/endpoints.json.gz"));
    let paths: Map<String, Value> = serde_json::from_slice(&data).unwrap_or_default();
    let handlers = handlers::table();
    let mut root = Node::default();
    for (path, methods) in paths {
        let mut node = &mut root;
        for segment in path.split('/').filter(|s| !s.is_empty()) {
            node = match segment.strip_prefix('{').and_then(|s| s.strip_suffix('}')) {
                Some(name) => {
                    &mut node.variable.get_or_insert_with(|| (name.to_owned(), Box::default())).1
                }
                None => node.children.entry(segment.to_owned()).or_default(),
            };
        }
        let Value::Object(methods) = methods else { continue };
        for (method, info) in methods {
            let handler = handlers.get(&(method.as_str(), path.as_str())).copied();
            node.methods.insert(method, endpoint(info, handler));
        }
    }
    let index = endpoint(Value::Object(Map::new()), handlers.get(&("GET", "/")).copied());
    let index = Endpoint { permissions: Some(serde_json::json!({"user": "all"})), ..index };
    root.methods.insert("GET".to_owned(), index);
    root
}

fn endpoint(mut info: Value, handler: Option<Handler>) -> Endpoint {
    let mut take = |name: &str| info.get_mut(name).map(Value::take);
    let parameters = match take("parameters") {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    Endpoint {
        parameters,
        permissions: take("permissions"),
        protected: take("protected").is_some(),
        proxied: take("proxyto").is_some(),
        strict: take("strict").is_some(),
        handler,
    }
}

/// The endpoint of a path and the path's variables.
pub(crate) fn find(
    method: &str,
    segments: &[&str],
) -> Option<(&'static Endpoint, Vec<(String, String)>)> {
    let mut node = &*TREE;
    let mut vars = Vec::new();
    let mut rest = segments;
    while let Some((segment, tail)) = rest.split_first() {
        if let Some(child) = node.children.get(*segment) {
            node = child;
            rest = tail;
        } else {
            let (name, child) = node.variable.as_ref()?;
            node = child;
            // In the real one a variable is `\S+`.
            if segment.contains(|c: char| c.is_ascii_whitespace()) {
                return None;
            }
            if GREEDY.contains(&name.as_str()) {
                vars.push((name.clone(), rest.join("/")));
                rest = &[];
            } else {
                vars.push((name.clone(), (*segment).to_owned()));
                rest = tail;
            }
        }
    }
    Some((node.methods.get(method)?, vars))
}

/// The parameters of an endpoint, for typed output of what was put in there.
pub(crate) fn parameters(method: &str, path: &str) -> Option<&'static Map<String, Value>> {
    let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    find(method, &segments).map(|(e, _)| &e.parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handler_belongs_to_a_real_endpoint() {
        for (method, path) in handlers::table().keys() {
            let plain = path.replace(['{', '}'], "");
            let segments: Vec<&str> = plain.split('/').filter(|s| !s.is_empty()).collect();
            let found = find(method, &segments);
            assert!(found.is_some_and(|(e, _)| e.handler.is_some()), "{method} {path}");
        }
    }

    #[test]
    fn a_volume_takes_the_rest_of_the_path() {
        let path = ["nodes", "pve", "storage", "local", "content", "local:iso", "x.iso"];
        let (_, vars) = find("GET", &path).unwrap();
        assert!(vars.contains(&("volume".to_owned(), "local:iso/x.iso".to_owned())));
    }
}
