//! `call TOOL`: any tool from the terminal.

use clap::{Args, Command};
use serde_json::{Map, Value};

use super::{
    Global,
    out::{Exit, Failure, Ran},
    setup, show, tool_args,
};
use crate::{
    Error,
    tools::{self, Tool, registry},
};

/// Arguments of `call`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp call pve_list_vms --status running --fields name --fields tags
  proxmox-mcp call pve_guest_details '{\"vmid\": 100}' --json
  proxmox-mcp call pve_list_vms --help      shows the tool's arguments")]
pub struct Call {
    /// The tool's name, then its arguments: as one JSON object, or single ones as --key value,
    /// which win. Options of this program, except --json, stand before the name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    #[arg(value_names = ["TOOL", "JSON|--key value"])]
    words: Vec<String>,
}

impl Call {
    /// Calls the tool and prints its answer.
    ///
    /// # Errors
    /// What the configuration or the tool says.
    pub fn run(&self, global: &Global) -> Ran {
        let (name, rest) = self.words.split_first().ok_or_else(|| Error::argument("no tool"))?;
        let Some(tool) = registry::all().iter().find(|t| t.name == name) else {
            return Err(unknown(name).into());
        };
        let matches = match command(tool).try_get_matches_from(rest) {
            Ok(matches) => matches,
            Err(error) => return super::usage(&error),
        };
        let mut arguments = match matches.get_one::<String>(JSON) {
            Some(json) => object(json)?,
            None => Map::new(),
        };
        arguments.extend(tool_args::arguments(&matches, tool));
        let mut out = global.out();
        out.json |= matches.get_flag(AS_JSON);
        let outcome = global
            .variables()
            .and_then(setup::app)
            .and_then(|app| setup::call(&app, tool.name, Value::Object(arguments)));
        let answer = match outcome {
            Ok(answer) => answer,
            Err(error) => return Ok(super::out::report(&Failure::Error(error), out)),
        };
        show::answer(out, &answer)?;
        Ok(Exit::Well)
    }
}

/// Ids that no tool's argument has.
const JSON: &str = "arguments as JSON";
const AS_JSON: &str = "answer as JSON";

fn command(tool: &'static Tool) -> Command {
    let command = Command::new(tool.name)
        .bin_name(format!("proxmox-mcp call {}", tool.name))
        .no_binary_name(true)
        .about(tool.description)
        .after_help(format!("Example:\n  {}", tool_args::example(tool)))
        .arg(clap::Arg::new(JSON).value_name("JSON").help("The arguments as one JSON object"));
    let command = tool_args::flags(command, tool, None);
    // What the schema requires may stand in the JSON; the tool's own check says what is missing.
    let command = command.mut_args(|arg| arg.required(false));
    let as_json = clap::Arg::new(AS_JSON).long("json").action(clap::ArgAction::SetTrue);
    command.arg(as_json.help("Print the structured answer as JSON"))
}

fn object(json: &str) -> Result<Map<String, Value>, Error> {
    match serde_json::from_str(json) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Error::argument("the arguments are JSON, but not an object")
            .hint("write them as '{\"vmid\": 100}', or as --vmid 100")),
        Err(e) => Err(Error::argument(format!("the arguments are not JSON: {e}"))
            .hint("write them as '{\"vmid\": 100}' between single quotes, or as --vmid 100")),
    }
}

fn unknown(name: &str) -> Error {
    let near = tools::validate::nearest(name, registry::all().iter().map(|t| t.name));
    let error = Error::argument(format!("there is no tool {name:?}"));
    match near {
        Some(near) => error.hint(format!("did you mean {near}? `proxmox-mcp tools` lists them")),
        None => error.hint("`proxmox-mcp tools` lists them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No tool's argument collides with ours, and every help can be made.
    #[test]
    fn every_tool_has_a_command_line() {
        for tool in registry::all() {
            let mut command = command(tool);
            command.clone().debug_assert();
            let help = command.render_help().to_string();
            assert!(help.contains(&format!("proxmox-mcp call {}", tool.name)), "{help}");
        }
    }
}
