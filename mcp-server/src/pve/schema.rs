//! The node's own description of its API (`/pve-docs/api-viewer/apidoc.js`).
//!
//! The file is JavaScript that begins with one JSON array; 4 MB of it. What is
//! kept is a compact tree with each text once.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::schema_text::{check, outline, short};
use crate::{Code, Error, Result, safety::Method};

/// What stands before the array.
const BEFORE: &str = "const apiSchema = ";

/// The API of one node.
#[derive(Debug)]
pub struct Schema {
    roots: Vec<Node>,
}

/// A path of the API and what it offers.
#[derive(Debug, Deserialize)]
pub struct Node {
    path: Arc<str>,
    #[serde(default)]
    children: Vec<Node>,
    #[serde(default)]
    info: BTreeMap<String, MethodInfo>,
}

/// One method of a path.
#[derive(Debug, Deserialize)]
#[serde(from = "RawMethod")]
pub struct MethodInfo {
    /// What it does.
    pub description: Arc<str>,
    /// Parameters by name; an indexed one as `net[n]`.
    pub parameters: BTreeMap<Arc<str>, Parameter>,
    /// Who may call it.
    pub permissions: Arc<str>,
    /// What it answers, in outline.
    pub returns: Arc<str>,
    /// Whether API tokens may call it.
    pub allowtoken: bool,
}

/// One parameter of a method.
#[derive(Debug)]
pub struct Parameter {
    /// `string`, `integer`, `number`, `boolean` or `array`.
    pub kind: Arc<str>,
    /// Whether it may be left out.
    pub optional: bool,
    /// What it means, cut short.
    pub description: Option<Arc<str>>,
    /// The parts of a property string, or another hint at the form.
    pub typetext: Option<Arc<str>>,
    /// Name of a format.
    pub format: Option<Arc<str>>,
    /// Pattern of the text.
    pub pattern: Option<Arc<str>>,
    /// The values allowed.
    pub values: Vec<Arc<str>>,
    /// Value when left out, as it would be written.
    pub default: Option<Arc<str>>,
    /// Smallest number.
    pub minimum: Option<f64>,
    /// Largest number.
    pub maximum: Option<f64>,
    /// Longest text.
    pub max_length: Option<u64>,
    /// Another parameter that it needs.
    pub requires: Option<Arc<str>>,
}

/// A path of the API as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Path with its variables, for example `/nodes/{node}/qemu/{vmid}`.
    pub path: Arc<str>,
    /// Methods that it has.
    pub methods: Vec<Method>,
    /// How many paths are directly below it.
    pub children: usize,
}

impl Schema {
    /// Reads the file of a node, strictly.
    ///
    /// # Errors
    /// `bad_answer` when it does not begin as it should or its array is not JSON.
    pub fn parse(file: &str) -> Result<Self> {
        let bad = |why: String| {
            Error::new(
                Code::BadAnswer,
                format!("the node's API description is not understood: {why}"),
            )
            .hint("is the package pve-docs installed on the node, and nothing else in between?")
        };
        let array = file
            .trim_start_matches('\u{feff}')
            .trim_start()
            .strip_prefix(BEFORE)
            .ok_or_else(|| bad(format!("it does not begin with {BEFORE:?}")))?;
        let mut documents = serde_json::Deserializer::from_str(array).into_iter::<Vec<Node>>();
        let mut roots = match documents.next() {
            Some(Ok(roots)) => roots,
            Some(Err(e)) => return Err(bad(e.to_string())),
            None => return Err(bad("it is empty".to_owned())),
        };
        let behind = array.get(documents.byte_offset()..).unwrap_or_default();
        if !behind.trim_start().starts_with(';') {
            return Err(bad("no `;` closes the array".to_owned()));
        }
        let mut texts = HashSet::new();
        roots.iter_mut().for_each(|node| node.share_texts(&mut texts));
        Ok(Self { roots })
    }

    /// Finds a path, whether written with variables or with their values.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Node> {
        let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
        find(&self.roots, &segments)
    }

    /// The paths below one (`/` for all), down to `depth` levels, in order.
    ///
    /// # Errors
    /// `not_found` when the node has no such path.
    pub fn list(&self, path: &str, depth: usize) -> Result<Vec<Listed>> {
        let below = if path.trim_matches('/').is_empty() {
            &self.roots
        } else {
            &self.find(path).ok_or_else(|| no_path(path))?.children
        };
        let mut out = Vec::new();
        collect(below, depth, &mut out);
        Ok(out)
    }

    /// One method of a path.
    ///
    /// # Errors
    /// `not_found` when the node has no such path, or not this method; it says which it has.
    pub fn method(&self, path: &str, method: Method) -> Result<(&Node, &MethodInfo)> {
        let node = self.find(path).ok_or_else(|| no_path(path))?;
        let info = node.info.get(method.as_str()).ok_or_else(|| {
            let has: Vec<&str> = node.info.keys().map(String::as_str).collect();
            let has = if has.is_empty() { "none of its own".to_owned() } else { has.join(", ") };
            Error::new(Code::NotFound, format!("{} has no {}", node.path, method.as_str()))
                .hint(format!("its methods: {has}"))
        })?;
        Ok((node, info))
    }
}

fn no_path(path: &str) -> Error {
    Error::new(Code::NotFound, format!("this node's API has no path {path}"))
        .hint("pve_api_explore lists the paths, beginning with /")
}

fn find<'a>(nodes: &'a [Node], segments: &[&str]) -> Option<&'a Node> {
    let (first, rest) = segments.split_first()?;
    // A literal segment wins over a variable, and only a leaf that stands for
    // a volume or network may take a slash along.
    let literal = nodes.iter().find(|n| n.segment() == *first);
    let variable = || nodes.iter().find(|n| n.segment().starts_with('{'));
    let go_on = |node: &'a Node| {
        let swallows = matches!(node.segment(), "{volume}" | "{cidr}") && node.children.is_empty();
        if rest.is_empty() || swallows { Some(node) } else { find(&node.children, rest) }
    };
    literal.and_then(go_on).or_else(|| variable().and_then(go_on))
}

fn collect(nodes: &[Node], depth: usize, out: &mut Vec<Listed>) {
    if depth == 0 {
        return;
    }
    for node in nodes {
        out.push(Listed {
            path: Arc::clone(&node.path),
            methods: node.methods().collect(),
            children: node.children.len(),
        });
        collect(&node.children, depth - 1, out);
    }
}

impl Node {
    /// Path with its variables.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    fn segment(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The methods that the path has.
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        let all = [Method::Get, Method::Post, Method::Put, Method::Delete];
        all.into_iter().filter(|m| self.info.contains_key(m.as_str()))
    }

    fn share_texts(&mut self, texts: &mut HashSet<Arc<str>>) {
        share(texts, &mut self.path);
        for info in self.info.values_mut() {
            share(texts, &mut info.description);
            share(texts, &mut info.permissions);
            share(texts, &mut info.returns);
            let parameters = std::mem::take(&mut info.parameters);
            info.parameters = parameters
                .into_iter()
                .map(|(mut name, mut p)| {
                    share(texts, &mut name);
                    share(texts, &mut p.kind);
                    p.values.iter_mut().for_each(|v| share(texts, v));
                    p.values.shrink_to_fit();
                    let optional = [
                        &mut p.description,
                        &mut p.typetext,
                        &mut p.format,
                        &mut p.pattern,
                        &mut p.default,
                    ];
                    optional.into_iter().flatten().for_each(|t| share(texts, t));
                    (name, p)
                })
                .collect();
        }
        self.children.shrink_to_fit();
        self.children.iter_mut().for_each(|child| child.share_texts(texts));
    }
}

fn share(texts: &mut HashSet<Arc<str>>, text: &mut Arc<str>) {
    if let Some(same) = texts.get(text) {
        *text = Arc::clone(same);
    } else {
        texts.insert(Arc::clone(text));
    }
}

impl MethodInfo {
    /// As JSON for an answer, with only what says something.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let parameters: Map<String, Value> =
            self.parameters.iter().map(|(name, p)| (name.to_string(), p.to_json())).collect();
        let mut out = json!({
            "description": &*self.description,
            "parameters": parameters,
            "permissions": &*self.permissions,
            "returns": &*self.returns,
        });
        if let (false, Some(out)) = (self.allowtoken, out.as_object_mut()) {
            out.insert("allowtoken".into(), false.into());
        }
        out
    }
}

impl Parameter {
    /// As JSON for an answer, with only what says something.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                out.insert(key.to_owned(), value);
            }
        };
        let text = |t: &Option<Arc<str>>| t.as_deref().map(Value::from);
        put("type", Some(Value::from(&*self.kind)));
        put("optional", self.optional.then_some(true.into()));
        let values: Vec<Value> = self.values.iter().map(|v| Value::from(&**v)).collect();
        put("enum", (!values.is_empty()).then_some(values.into()));
        put("default", text(&self.default));
        put("minimum", self.minimum.map(number));
        put("maximum", self.maximum.map(number));
        put("maxLength", self.max_length.map(Value::from));
        put("format", text(&self.format));
        put("pattern", text(&self.pattern));
        put("requires", text(&self.requires));
        put("typetext", text(&self.typetext));
        put("description", text(&self.description));
        Value::Object(out)
    }
}

/// A whole number without its `.0`.
fn number(n: f64) -> Value {
    #[allow(clippy::cast_possible_truncation)]
    if n.fract() == 0.0 && n.abs() < 9e15 { Value::from(n as i64) } else { Value::from(n) }
}

/// A method as the file has it.
#[derive(Deserialize)]
struct RawMethod {
    #[serde(default)]
    description: Value,
    #[serde(default)]
    parameters: RawParameters,
    #[serde(default)]
    permissions: Value,
    #[serde(default)]
    returns: Value,
    #[serde(default)]
    allowtoken: Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawParameters {
    properties: BTreeMap<Arc<str>, Map<String, Value>>,
}

impl From<RawMethod> for MethodInfo {
    fn from(raw: RawMethod) -> Self {
        let wrapped = json!({"allowtoken": raw.allowtoken});
        let properties = raw.parameters.properties.into_iter();
        Self {
            description: short(raw.description.as_str().unwrap_or_default()).into(),
            parameters: properties
                .map(|(name, p)| (name, Parameter::from(&Value::Object(p))))
                .collect(),
            permissions: check(&raw.permissions).into(),
            returns: outline(&raw.returns).into(),
            allowtoken: super::loose::flag(&wrapped, "allowtoken"),
        }
    }
}

impl From<&Value> for Parameter {
    fn from(raw: &Value) -> Self {
        use super::loose::{flag, float, str, text, uint};
        let kind = str(raw, "type").unwrap_or("string");
        let cut = |key| str(raw, key).map(|t| short(t).into());
        // `<boolean>` and `<string>` repeat the type; a range repeats the limits.
        let typetext = str(raw, "typetext").filter(|t| t.contains('=') || t.contains('['));
        let values = raw.get("enum").and_then(Value::as_array).into_iter().flatten();
        let values = values.filter_map(Value::as_str).map(Arc::from).collect();
        Self {
            kind: kind.into(),
            optional: flag(raw, "optional"),
            description: cut("description"),
            typetext: typetext.map(Arc::from),
            format: str(raw, "format").map(Arc::from),
            pattern: str(raw, "pattern").map(Arc::from),
            values,
            default: text(raw, "default").map(Arc::from),
            minimum: float(raw, "minimum"),
            maximum: float(raw, "maximum"),
            max_length: uint(raw, "maxLength"),
            requires: str(raw, "requires").map(Arc::from),
        }
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
