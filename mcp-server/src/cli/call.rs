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
    app::App,
    tools::{self, Tool, registry},
};

/// Arguments of `call`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp call pve_list_vms --status running --fields name --fields tags
  proxmox-mcp call pve_guest_details '{\"vmid\": 100}' --json
  proxmox-mcp call pve_list_vms --help      shows the tool's arguments")]
pub struct Call {
    /// The tool's name; `proxmox-mcp tools` lists them
    tool: String,
    /// The arguments as one JSON object, and single ones as --key value, which win
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "JSON|--key value")]
    rest: Vec<String>,
}

impl Call {
    /// Calls the tool and prints its answer.
    ///
    /// # Errors
    /// What the configuration or the tool says.
    pub fn run(&self, global: &Global) -> Ran {
        let loaded = setup::load(global.variables()?)?;
        let tool = registry::all().iter().find(|t| t.name == self.tool);
        let Some(tool) = tool else {
            return Err(unknown(&self.tool, &loaded.config).into());
        };
        let matches = match command(tool).try_get_matches_from(&self.rest) {
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
        setup::complete(&loaded.config)?;
        let app = App::new(loaded.config)?;
        let answer = match setup::call(&app, tool.name, Value::Object(arguments)) {
            Ok(answer) => answer,
            Err(error) => return Ok(super::out::report(&Failure::Error(error), out)),
        };
        show::answer(out, &answer)?;
        Ok(Exit::Well)
    }
}

/// Ids that no tool's argument has.
const JSON: &str = " json";
const AS_JSON: &str = " as json";

fn command(tool: &'static Tool) -> Command {
    let command = Command::new(tool.name)
        .bin_name(format!("proxmox-mcp call {}", tool.name))
        .no_binary_name(true)
        .about(tool.description)
        .after_help(format!("Example:\n  {}", tool_args::example(tool)))
        .arg(clap::Arg::new(JSON).value_name("JSON").help("The arguments as one JSON object"));
    let json = clap::Arg::new(AS_JSON).action(clap::ArgAction::SetTrue);
    let command = tool_args::flags(command, tool, None);
    // What the schema requires may stand in the JSON; the tool's own check says what is missing.
    command
        .mut_args(|arg| arg.required(false))
        .arg(json.long("json").help("Print the structured answer as JSON"))
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

fn unknown(name: &str, config: &crate::config::Config) -> Error {
    let near = tools::validate::nearest(name, tools::registered(config).map(|t| t.name));
    let error = Error::argument(format!("there is no tool {name:?}"));
    match near {
        Some(near) => error.hint(format!("did you mean {near}? `proxmox-mcp tools` lists them")),
        None => error.hint("`proxmox-mcp tools` lists them"),
    }
}
