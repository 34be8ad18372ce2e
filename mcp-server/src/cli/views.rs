//! Read-only views: each is one tool, printed for a shell, cron or CI.

use clap::{ArgMatches, Command};
use serde_json::Value;

use super::{
    Global,
    out::{Exit, Ran},
    setup, show, tool_args,
};
use crate::{
    Error, Result,
    app::App,
    tools::{Tool, registry},
};

/// A command that is one tool.
pub struct View {
    /// The command.
    pub name: &'static str,
    /// The tool.
    pub tool: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// An example.
    pub example: &'static str,
    /// The argument that needs no flag.
    pub positional: Option<&'static str>,
}

/// Every view.
pub static VIEWS: &[View] = &[
    View {
        name: "status",
        tool: "pve_overview",
        about: "The whole estate in one answer; exit 1 when a node is offline",
        example: "proxmox-mcp status",
        positional: None,
    },
    View {
        name: "attention",
        tool: "pve_needs_attention",
        about: "What needs a person's attention, worst first; exit 1 when a node is offline",
        example: "proxmox-mcp attention --json | jq '.total'",
        positional: None,
    },
    View {
        name: "guests",
        tool: "pve_list_vms",
        about: "Guests (VMs and containers)",
        example: "proxmox-mcp guests --status running --sort=-mem --limit 10",
        positional: None,
    },
    View {
        name: "nodes",
        tool: "pve_list_nodes",
        about: "Nodes with state, load and uptime; exit 1 when one is offline",
        example: "proxmox-mcp nodes",
        positional: None,
    },
    View {
        name: "storage",
        tool: "pve_list_storage",
        about: "Storages with fill, type and content, for each node",
        example: "proxmox-mcp storage --node pve1",
        positional: None,
    },
    View {
        name: "backups",
        tool: "pve_list_backups",
        about: "Backups on all storages, newest first",
        example: "proxmox-mcp backups --vmid 100",
        positional: None,
    },
    View {
        name: "tasks",
        tool: "pve_list_tasks",
        about: "Tasks, newest first",
        example: "proxmox-mcp tasks --limit 20",
        positional: None,
    },
    View {
        name: "task",
        tool: "pve_task_status",
        about: "One task's state; exit 1 when it failed",
        example: "proxmox-mcp task UPID:pve1:000A1B2C:0123ABCD:67A0C3F2:vzdump:100:root@pam: --wait",
        positional: Some("upid"),
    },
    View {
        name: "snapshots",
        tool: "pve_list_snapshots",
        about: "A guest's snapshots as a tree, with age",
        example: "proxmox-mcp snapshots 100",
        positional: Some("vmid"),
    },
    View {
        name: "firewall",
        tool: "pve_firewall_rules",
        about: "Firewall rules: the cluster's, or a node's, guest's, group's or vnet's",
        example: "proxmox-mcp firewall --vmid 100",
        positional: None,
    },
    View {
        name: "services",
        tool: "pve_list_services",
        about: "Services of the nodes, those that are not as they should be first",
        example: "proxmox-mcp services --node pve1",
        positional: None,
    },
    View {
        name: "updates",
        tool: "pve_list_updates",
        about: "Packages that can be updated, security and kernels first",
        example: "proxmox-mcp updates --json | jq '.total'",
        positional: None,
    },
    View {
        name: "permissions",
        tool: "pve_permissions",
        about: "What a user or token may do, and why not more",
        example: "proxmox-mcp permissions --userid anna@pve --path /vms/100",
        positional: None,
    },
];

impl View {
    /// The view of a command's name.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static View> {
        VIEWS.iter().find(|v| v.name == name)
    }

    fn tool(&self) -> Option<&'static Tool> {
        registry::all().iter().find(|t| t.name == self.tool)
    }

    /// The command; its flags are made only when it is asked for.
    #[must_use]
    pub fn command(&'static self) -> Command {
        Command::new(self.name)
            .about(self.about)
            .after_help(format!("Example:\n  {}", self.example))
            .defer(|command| {
                let view = View::of(command.get_name());
                match view.and_then(|v| Some((v, v.tool()?))) {
                    Some((view, tool)) => tool_args::flags(command, tool, view.positional),
                    None => command,
                }
            })
    }

    /// Calls the tool and prints its answer.
    ///
    /// # Errors
    /// What the configuration or the tool says.
    pub fn run(&self, matches: &ArgMatches, global: &Global) -> Ran {
        let tool = self.tool().ok_or_else(|| Error::internal(format!("no tool {}", self.tool)))?;
        let arguments = Value::Object(tool_args::arguments(matches, tool));
        let app = setup::app(global.variables()?)?;
        let answer = setup::call(&app, self.tool, arguments)?;
        show::answer(global.out(), &answer)?;
        Ok(self.judge(&app, &answer.structured)?)
    }

    /// Whether what was seen is well.
    fn judge(&self, app: &std::sync::Arc<App>, answer: &Value) -> Result<Exit> {
        let well = match self.name {
            "status" | "attention" => {
                let nodes = setup::call(app, "pve_list_nodes", Value::Null)?;
                all_online(&nodes.structured)
            }
            "nodes" => all_online(answer),
            "task" => !is(answer, "done", true) || is(answer, "ok", true),
            _ => true,
        };
        Ok(if well { Exit::Well } else { Exit::Failed })
    }
}

fn is(answer: &Value, key: &str, value: bool) -> bool {
    answer.get(key).and_then(Value::as_bool) == Some(value)
}

/// Whether every row of a table of nodes says `online`.
fn all_online(table: &Value) -> bool {
    let list = |key: &str| table.get(key).and_then(Value::as_array).into_iter().flatten();
    let Some(column) = list("columns").position(|c| c == "status") else { return true };
    list("rows").all(|row| row.get(column).is_none_or(|status| status == "online"))
}
