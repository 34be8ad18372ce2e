//! The endpoints that this version knows: paths, methods, and what kind of
//! value each parameter takes. The table is `api.txt`, made by
//! `scripts/generate-api-table`.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    Method,
    rules::{self, ParamRule, PathRule},
};
use crate::pve::ApiPath;

static TABLE: &str = include_str!("api.txt");

/// The table, parsed once.
pub static API: LazyLock<Api> = LazyLock::new(|| Api::read(TABLE));

/// What kind of value a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `1 on yes true` or `0 off no false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Text.
    Text,
    /// A list in a string, parted by comma, semicolon, blanks or NUL.
    List,
    /// A true array, with the property format of its members where they have one.
    Array(Option<usize>),
    /// A property string; the number of its format.
    Property(usize),
}

/// The keys of a property string.
#[derive(Debug)]
pub struct Format {
    /// Its name in the table, for messages.
    pub name: &'static str,
    /// Key and kind; an alias has the key that it stands for.
    keys: Vec<(&'static str, Key)>,
    /// The key of a value without one.
    pub default_key: Option<&'static str>,
}

/// A key of a property string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A key of its own.
    Is(Kind),
    /// Another name of a key.
    Alias(&'static str),
}

impl Format {
    /// Looks a key up.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<Key> {
        self.keys.iter().find(|(key, _)| *key == name).map(|(_, key)| *key)
    }
}

/// One path template with its methods.
#[derive(Debug)]
pub struct Endpoint {
    /// For example `/nodes/{node}/qemu/{vmid}/config`.
    pub template: &'static str,
    methods: [Option<Action>; 4],
}

/// One method of an endpoint.
#[derive(Debug)]
pub struct Action {
    /// Names and kinds; `net[n]` stands for every number.
    params: Vec<(&'static str, Kind)>,
    /// The row of the rule table, `None` for a plain read.
    pub rule: Option<&'static PathRule>,
    /// The rows that look at parameters.
    pub param_rules: Vec<&'static ParamRule>,
}

impl Action {
    /// The kind of a parameter; `None` when the API description does not have it.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<Kind> {
        let find = |wanted: &str| self.params.iter().find(|(n, _)| *n == wanted).map(|(_, k)| *k);
        find(name).or_else(|| {
            let base = indexed(name)?;
            self.params
                .iter()
                .find(|(n, _)| n.strip_suffix("[n]") == Some(base))
                .map(|(_, kind)| *kind)
        })
    }

    /// The known parameter that looks most like a name.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&'static str> {
        self.params
            .iter()
            .map(|(known, _)| (strsim::jaro_winkler(name, known), *known))
            .filter(|(score, _)| *score > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, known)| known)
    }
}

/// `net` of `net0`: a name that ends in digits, without them.
#[must_use]
pub fn indexed(name: &str) -> Option<&str> {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (base.len() < name.len() && !base.is_empty()).then_some(base)
}

impl Endpoint {
    /// What a method does here; `None` when the path does not have it.
    #[must_use]
    pub fn action(&self, method: Method) -> Option<&Action> {
        self.methods.get(method as usize)?.as_ref()
    }

    /// The value that a path has for `{name}`.
    #[must_use]
    pub fn variable<'p>(&self, name: &str, path: &'p ApiPath) -> Option<&'p str> {
        let place =
            self.template.split('/').skip(1).position(|s| {
                s.strip_prefix('{').and_then(|s| s.strip_suffix('}')) == Some(name)
            })?;
        path.segments().nth(place)
    }

    /// The names of the path's variables.
    pub fn variables(&self) -> impl Iterator<Item = &'static str> {
        self.template.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}'))
    }
}

#[derive(Debug, Default)]
struct Node {
    fixed: HashMap<&'static str, usize>,
    variable: Option<usize>,
    endpoint: Option<usize>,
}

/// Everything that is known.
#[derive(Debug)]
pub struct Api {
    endpoints: Vec<Endpoint>,
    nodes: Vec<Node>,
    formats: Vec<Format>,
}

impl Api {
    fn read(text: &'static str) -> Self {
        let mut api =
            Self { endpoints: Vec::new(), nodes: vec![Node::default()], formats: Vec::new() };
        let mut shared: HashMap<&str, &str> = HashMap::new();
        for line in text.lines() {
            if let Some(format) = line.strip_prefix('@') {
                api.formats.push(read_format(format));
            } else if let Some((number, params)) =
                line.strip_prefix('$').and_then(|l| l.split_once(' '))
            {
                shared.insert(number, params);
            } else if line.starts_with('/') {
                api.insert(line);
            } else if let Some(line) = line.strip_prefix(' ') {
                let (name, params) = line.split_once(' ').unwrap_or((line, ""));
                let params =
                    params.strip_prefix('$').and_then(|n| shared.get(n)).copied().unwrap_or(params);
                let params = api.read_params(params);
                if let (Some(method), Some(endpoint)) =
                    (Method::parse(name), api.endpoints.last_mut())
                {
                    let (rule, param_rules) = rules::of(method, endpoint.template);
                    if let Some(slot) = endpoint.methods.get_mut(method as usize) {
                        *slot = Some(Action { params, rule, param_rules });
                    }
                }
            }
        }
        api
    }

    fn insert(&mut self, template: &'static str) {
        let mut at = 0;
        for part in template.split('/').skip(1) {
            let next = self.nodes.len();
            let Some(node) = self.nodes.get_mut(at) else { return };
            let slot = if part.starts_with('{') {
                *node.variable.get_or_insert(next)
            } else {
                *node.fixed.entry(part).or_insert(next)
            };
            if slot == next {
                self.nodes.push(Node::default());
            }
            at = slot;
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.endpoint = Some(self.endpoints.len());
        }
        self.endpoints.push(Endpoint { template, methods: [const { None }; 4] });
    }

    fn read_params(&self, text: &'static str) -> Vec<(&'static str, Kind)> {
        let mut out = Vec::new();
        for group in text.split(' ') {
            let Some((code, names)) = group.split_once('=') else { continue };
            let kind = match code.split_once(':') {
                Some(("a", format)) => Kind::Array(self.format_number(format)),
                Some((_, format)) => self.format_number(format).map_or(Kind::Text, Kind::Property),
                None => kind_of(code),
            };
            out.extend(names.split(',').map(|name| (name, kind)));
        }
        out
    }

    fn format_number(&self, name: &str) -> Option<usize> {
        self.formats.iter().position(|f| f.name == name)
    }

    /// The endpoint that Proxmox would route a path to. A fixed name goes before
    /// a variable, as in its router.
    #[must_use]
    pub fn find(&self, path: &ApiPath) -> Option<&Endpoint> {
        let mut node = self.nodes.first()?;
        for segment in path.segments() {
            let next = node.fixed.get(segment).copied().or(node.variable)?;
            node = self.nodes.get(next)?;
        }
        self.endpoints.get(node.endpoint?)
    }

    /// A property format by its number.
    #[must_use]
    pub fn format(&self, number: usize) -> Option<&Format> {
        self.formats.get(number)
    }

    /// All endpoints in order of path.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter()
    }

    /// Whether any property format has a key of this name.
    #[must_use]
    pub fn any_format_has(&self, key: &str) -> bool {
        self.formats.iter().any(|f| f.key(key).is_some())
    }
}

fn kind_of(code: &str) -> Kind {
    match code {
        "b" => Kind::Boolean,
        "i" => Kind::Integer,
        "n" => Kind::Number,
        "l" => Kind::List,
        "a" => Kind::Array(None),
        _ => Kind::Text,
    }
}

fn read_format(text: &'static str) -> Format {
    let (name, keys) = text.split_once(' ').unwrap_or((text, ""));
    let mut format = Format { name, keys: Vec::new(), default_key: None };
    for key in keys.split(' ') {
        if let Some((alias, of)) = key.split_once('>') {
            format.keys.push((alias, Key::Alias(of)));
        } else if let Some((key, code)) = key.split_once('=') {
            let name = key.trim_end_matches('*');
            if name.len() < key.len() {
                format.default_key = Some(name);
            }
            format.keys.push((name, Key::Is(kind_of(code))));
        }
    }
    format
}
