//! The one table of tools. Lists, documentation, command line and permission
//! rules are derived from it.

use std::sync::OnceLock;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::{Ctx, access, backup, core, exec, guests, network, node, storage};
use crate::{
    Result,
    config::{Config, Mode},
    pve::NodeName,
    render::Answer,
};

/// Groups of tools (`PROXMOX_TOOLSETS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Always registered.
    Core,
    /// Guests, snapshots, pools, HA, replication.
    Guests,
    /// Backups and their jobs.
    Backup,
    /// Storages and volumes.
    Storage,
    /// Interfaces, firewall, SDN.
    Network,
    /// Node administration.
    Node,
    /// Users, tokens, permissions.
    Access,
    /// Commands and files inside guests.
    Exec,
}

impl Group {
    /// Every group.
    pub const ALL: [Group; 8] = [
        Group::Core,
        Group::Guests,
        Group::Backup,
        Group::Storage,
        Group::Network,
        Group::Node,
        Group::Access,
        Group::Exec,
    ];

    /// The group's name in `PROXMOX_TOOLSETS`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Group::Core => "core",
            Group::Guests => "guests",
            Group::Backup => "backup",
            Group::Storage => "storage",
            Group::Network => "network",
            Group::Node => "node",
            Group::Access => "access",
            Group::Exec => "exec",
        }
    }
}

/// What a tool needs to be registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads: any mode.
    Read,
    /// Changes: mode write.
    Write,
    /// Over SSH to pve-guard, reading.
    GuardRead,
    /// Over SSH to pve-guard, changing: mode write.
    GuardWrite,
    /// Inside guests: mode write and `PROXMOX_EXEC=enabled`.
    Exec,
    /// Reads in read-only mode, everything in write mode (`pve_api_call`).
    ByMode,
}

/// How a tool behaves, where it differs from the protocol's defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// Can lose data or service.
    pub destructive: bool,
    /// Twice is the same as once.
    pub idempotent: bool,
}

/// One tool.
pub struct Tool {
    /// The name, which never changes meaning.
    pub name: &'static str,
    /// A title for people.
    pub title: &'static str,
    /// One sentence: what it is for, and when to take it rather than its neighbour.
    pub description: &'static str,
    /// Its group.
    pub group: Group,
    /// What it needs.
    pub access: Access,
    /// How it behaves.
    pub hints: Hints,
    /// Runs it on checked arguments.
    pub run: for<'a> fn(Ctx<'a>, Value) -> BoxFuture<'a, Result<Answer>>,
    pub(super) make_schema: fn() -> Map<String, Value>,
    pub(super) schema: OnceLock<Map<String, Value>>,
}

impl Tool {
    /// The normalised argument schema.
    pub fn schema(&self) -> &Map<String, Value> {
        self.schema.get_or_init(self.make_schema)
    }

    /// Whether the tool is registered under a configuration.
    #[must_use]
    pub fn is_registered(&self, config: &Config) -> bool {
        let write = config.mode == Mode::Write;
        let access = match self.access {
            Access::Read | Access::ByMode => true,
            Access::Write => write,
            Access::Exec => write && config.exec,
            Access::GuardRead => config.ssh.is_set_up(),
            Access::GuardWrite => write && config.ssh.is_set_up(),
        };
        let group = self.group == Group::Core
            || config
                .toolsets
                .as_ref()
                .is_none_or(|names| names.iter().any(|n| n == self.group.as_str()));
        access && group
    }

    /// Whether the tool only reads under a configuration.
    #[must_use]
    pub fn is_read_only(&self, config: &Config) -> bool {
        match self.access {
            Access::Read | Access::GuardRead => true,
            Access::ByMode => config.mode == Mode::ReadOnly,
            Access::Write | Access::GuardWrite | Access::Exec => false,
        }
    }

    /// What has to be set for the tool to be registered.
    #[must_use]
    pub fn needs(&self, config: &Config) -> String {
        let mut needs = Vec::new();
        if matches!(self.access, Access::Write | Access::Exec | Access::GuardWrite)
            && config.mode != Mode::Write
        {
            needs.push("PROXMOX_MODE=write".to_owned());
        }
        if self.access == Access::Exec && !config.exec {
            needs.push("PROXMOX_EXEC=enabled".to_owned());
        }
        if matches!(self.access, Access::GuardRead | Access::GuardWrite) && !config.ssh.is_set_up()
        {
            needs.push("SSH to pve-guard (proxmox-mcp ssh-setup)".to_owned());
        }
        let grouped = config
            .toolsets
            .as_ref()
            .is_some_and(|names| !names.iter().any(|n| n == self.group.as_str()));
        if grouped && self.group != Group::Core {
            needs.push(format!("{} in PROXMOX_TOOLSETS", self.group.as_str()));
        }
        if needs.is_empty() {
            return String::new();
        }
        format!("needs {}", needs.join(" and "))
    }
}

/// A row of the table.
macro_rules! tool {
    ($group:ident $access:ident $function:path, $args:ty, $name:literal, $title:literal, $description:literal $(, $hint:ident)*) => {
        Tool {
            name: $name,
            title: $title,
            description: $description,
            group: Group::$group,
            access: Access::$access,
            hints: hints(&[$(stringify!($hint)),*]),
            run: |ctx, arguments| {
                Box::pin(async move {
                    let node = arguments.get("node").cloned();
                    match parse::<$args>(arguments) {
                        Ok(arguments) => $function(ctx, arguments).await,
                        Err(error) => Err(of_the_cluster(ctx, node, error).await),
                    }
                })
            },
            make_schema: super::schema::of::<$args>,
            schema: std::sync::OnceLock::new(),
        }
    };
}
pub(super) use tool;

/// An error about how a node is named, with the names that there really are.
pub(super) async fn of_the_cluster(
    ctx: Ctx<'_>,
    node: Option<Value>,
    error: crate::Error,
) -> crate::Error {
    let about_node = error.details.get("argument").is_some_and(|name| name == "node");
    let Some(given) = node.as_ref().and_then(Value::as_str).filter(|_| about_node) else {
        return error;
    };
    // Where the cluster cannot be asked, the short name is the best guess.
    let Ok(names) = ctx.node_names().await else { return error };
    let short = given.split('.').next().unwrap_or(given);
    let hint = match names.iter().find(|name| name.eq_ignore_ascii_case(short)) {
        Some(name) => format!("did you mean {name}? {}", NodeName::RULE),
        None => format!("nodes: {}; {}", names.join(", "), NodeName::RULE),
    };
    error.hint(hint)
}

/// Hints by name; a name that is none does not compile into anything and fails a test.
pub(super) const fn hints(names: &[&str]) -> Hints {
    let mut found = Hints { destructive: false, idempotent: false };
    let mut i = 0;
    while i < names.len() {
        #[allow(clippy::indexing_slicing)]
        match names[i].as_bytes() {
            b"destructive" => found.destructive = true,
            b"idempotent" => found.idempotent = true,
            _ => {}
        }
        i += 1;
    }
    found
}

pub(super) fn parse<T: serde::de::DeserializeOwned>(arguments: Value) -> Result<T> {
    T::deserialize(&arguments).map_err(|e| {
        // serde keeps the message of an error only; a wrong node is told with its hint.
        let node = arguments.get("node").and_then(Value::as_str).map(crate::pve::NodeName::parse);
        match node {
            Some(Err(error)) => error.with("argument", "node"),
            _ => crate::Error::argument(e.to_string()),
        }
    })
}

/// Every tool there is, in the order in which they are listed.
#[must_use]
pub fn all() -> &'static [Tool] {
    static ALL: OnceLock<Vec<Tool>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut tools = Vec::new();
        tools.extend(core::tools());
        tools.extend(guests::tools());
        tools.extend(backup::tools());
        tools.extend(storage::tools());
        tools.extend(network::tools());
        tools.extend(node::tools());
        tools.extend(access::tools());
        tools.extend(exec::tools());
        tools
    })
}

/// The tools that are registered under a configuration.
pub fn registered(config: &Config) -> impl Iterator<Item = &'static Tool> {
    all().iter().filter(|t| t.is_registered(config))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::Code;

    /// Every schema inside a schema.
    fn walk<'a>(schema: &'a Value, visit: &mut impl FnMut(&'a Map<String, Value>)) {
        let Some(map) = schema.as_object() else { return };
        visit(map);
        for property in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
            walk(property.1, visit);
        }
        if let Some(items) = map.get("items") {
            walk(items, visit);
        }
    }

    #[test]
    fn names_fit_every_client() {
        let mut seen = BTreeSet::new();
        for tool in all() {
            assert!(seen.insert(tool.name), "{} stands twice", tool.name);
            assert!(tool.name.starts_with("pve_"), "{}", tool.name);
            assert!(
                tool.name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit()),
                "{}",
                tool.name
            );
            // With the longest prefix a client puts before it, and the strictest limit on both.
            assert!("mcp__plugin_proxmox_proxmox__".len() + tool.name.len() <= 64, "{}", tool.name);
            assert!("proxmox".len() + tool.name.len() <= 59, "{}", tool.name);
            assert!(!tool.title.is_empty() && !tool.description.is_empty(), "{}", tool.name);
        }
    }

    #[test]
    fn schemas_are_plain_and_closed() {
        for tool in all() {
            let schema = Value::Object(tool.schema().clone());
            let text = schema.to_string();
            for word in ["$ref", "$schema", "$defs", "\"null\"", "\"default\":null"] {
                assert!(!text.contains(word), "{} has {word}: {text}", tool.name);
            }
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            for word in ["oneOf", "anyOf", "allOf", "not"] {
                assert!(schema.get(word).is_none(), "{} has {word}", tool.name);
            }
            walk(&schema, &mut |map| {
                assert!(map.get("format").is_none(), "{} has a format: {map:?}", tool.name);
                assert!(map.get("type").is_none_or(Value::is_string), "{}: {map:?}", tool.name);
            });
        }
    }

    #[test]
    fn hints_are_known_words() {
        let source = include_str!("core/mod.rs");
        for line in source.lines().filter(|l| l.trim_end().ends_with("),")) {
            let Some((_, tail)) = line.rsplit_once('"') else { continue };
            for word in
                tail.trim_end_matches("),").split(',').map(str::trim).filter(|w| !w.is_empty())
            {
                assert!(["destructive", "idempotent"].contains(&word), "{word} in {line}");
            }
        }
    }

    #[derive(Debug, serde::Deserialize)]
    struct Args {
        #[allow(dead_code)]
        node: Option<NodeName>,
    }

    #[test]
    fn a_full_host_name_is_refused_with_the_short_one() {
        for (given, meant) in [
            ("pve1.example.com", Some("pve1")),
            ("pve1.lan.", Some("pve1")),
            ("192.0.2.10", None),
            ("pve1/../x.y", None),
            ("pve1.x/../y", None),
            ("", None),
        ] {
            let error = parse::<Args>(json!({ "node": given })).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{given}: {error}");
            let want = meant.map(|m| format!("did you mean {m}?"));
            let told = error.hint.contains("did you mean");
            assert_eq!(told, want.is_some(), "{given}: {error}");
            assert!(want.is_none_or(|w| error.hint.contains(&w)), "{given}: {error}");
        }
        assert!(parse::<Args>(json!({ "node": "pve1" })).is_ok());
    }
}
