//! The reference of all tools as Markdown: the same wherever it is made, so that the copy in
//! `docs/tools.md` can be held against it.

use serde_json::{Map, Value};

use crate::tools::{Access, Group, Tool, registry};

const HEAD: &str = "# Tools

Every tool of `proxmox-mcp`, written by `proxmox-mcp tools --markdown`. `proxmox-mcp tools` lists
those that your configuration registers.

- **class**: what the worst call of the tool can be. `read` is there in every mode; `write` and
  `destructive` need `PROXMOX_MODE=write`; `guard` needs SSH to `pve-guard` (`guard, write` and write
  mode); `exec` needs write mode and `PROXMOX_EXEC=enabled`; `any` reads, and in write mode changes.
  A call that is CRITICAL needs its flag, its `confirm` and its approval beside
  ([configuration](configuration.md)).
- **arguments**: those in brackets may be left out. Every change also takes `dry_run`, `confirm`
  and, with `PROXMOX_APPROVAL=code`, `approval_code`; what starts a task also `wait` and `timeout_s`.
- The headings are the names for `PROXMOX_TOOLSETS`; `core` is always there.
";

/// Arguments that the introduction explains.
const COMMON: [&str; 5] = ["dry_run", "confirm", "approval_code", "wait", "timeout_s"];

/// The whole reference, or one group's.
#[must_use]
pub fn markdown(group: Option<&str>) -> String {
    let mut text = String::from(HEAD);
    for group in Group::ALL.into_iter().filter(|g| group.is_none_or(|name| name == g.as_str())) {
        text.push_str(&format!(
            "\n## {}\n\n| tool | class | arguments | what it is for |\n| --- | --- | --- | --- |\n",
            group.as_str()
        ));
        for tool in registry::all().iter().filter(|t| t.group == group) {
            text.push_str(&format!(
                "| `{}` | {} | {} | {} |\n",
                tool.name,
                class(tool),
                arguments(tool.schema()),
                tool.description.replace('|', "\\|")
            ));
        }
    }
    text
}

/// The worst that a tool can do, in a word or two.
const fn class(tool: &Tool) -> &'static str {
    match tool.access {
        Access::Read => "read",
        Access::Write if tool.hints.destructive => "destructive",
        Access::Write => "write",
        Access::GuardRead => "guard",
        Access::GuardWrite => "guard, write",
        Access::Exec => "exec",
        Access::ByMode => "any",
    }
}

fn arguments(schema: &Map<String, Value>) -> String {
    let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let properties = schema.get("properties").and_then(Value::as_object);
    let names: Vec<String> =
        properties
            .into_iter()
            .flat_map(Map::keys)
            .filter(|name| !COMMON.contains(&name.as_str()) || required.iter().any(|r| r == *name))
            .map(|name| {
                if required.iter().any(|r| r == name) { name.clone() } else { format!("[{name}]") }
            })
            .collect();
    names.join(", ")
}
