//! `tools`: the registered tools, and what they cost.

use clap::{Args, builder::PossibleValuesParser};
use serde_json::{Value, json};

use super::{
    Global,
    out::{Exit, Ran},
    reference, setup, show,
};
use crate::{
    config::Config,
    mcp,
    render::{Page, Table},
    tools::{Access, Group, Tool, registered},
};

/// Bytes of JSON that make a token, near enough to compare.
const BYTES_PER_TOKEN: usize = 4;

/// Arguments of `tools`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proxmox-mcp tools
  proxmox-mcp tools --group guests --json
  proxmox-mcp tools --markdown > docs/tools.md")]
pub struct Tools {
    /// Print the reference of every tool there is, registered or not, as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Only this group
    #[arg(long, value_parser = PossibleValuesParser::new(Group::ALL.map(Group::as_str)))]
    group: Option<String>,
}

impl Tools {
    /// Lists them; nothing is connected.
    ///
    /// # Errors
    /// `config`.
    pub fn run(&self, global: &Global) -> Ran {
        let out = global.out();
        if self.markdown {
            out.text(&reference::markdown(self.group.as_deref()))?;
            return Ok(Exit::Well);
        }
        let config = setup::load(global.variables()?)?.config;
        let tools: Vec<&Tool> = registered(&config)
            .filter(|t| self.group.as_ref().is_none_or(|g| g == t.group.as_str()))
            .collect();
        let sizes: Vec<usize> = tools.iter().map(|t| tokens(t, &config)).collect();
        if out.json {
            let list: Vec<Value> = tools.iter().map(|t| describe(t, &config)).collect();
            let total: usize = sizes.iter().sum();
            out.value(&json!({"tools": list, "total": tools.len(), "tokens": total}))?;
        } else {
            let rows = tools.iter().zip(&sizes);
            let page = Page::new(Some(tools.len()), None);
            let table = Table::new(["name", "group", "class", "tokens", "title"]);
            let table = table.fill(rows, page, |(tool, tokens)| {
                vec![
                    tool.name.into(),
                    tool.group.as_str().into(),
                    class(tool, &config).into(),
                    (*tokens).into(),
                    tool.title.into(),
                ]
            });
            let heading = format!("tools, {} tokens", sizes.iter().sum::<usize>());
            show::answer(out, &table.into_answer(&heading))?;
        }
        Ok(Exit::Well)
    }
}

/// What a tool can do under a configuration, in a word.
fn class(tool: &Tool, config: &Config) -> &'static str {
    if tool.is_read_only(config) {
        return "read";
    }
    match tool.access {
        Access::Exec => "exec",
        Access::ByMode => "any",
        _ if tool.hints.destructive => "destructive",
        _ => "write",
    }
}

/// A tool as the protocol lists it.
fn wire(tool: &Tool, config: &Config) -> Value {
    serde_json::to_value(mcp::listed(tool, config)).unwrap_or_default()
}

fn tokens(tool: &Tool, config: &Config) -> usize {
    wire(tool, config).to_string().len().div_ceil(BYTES_PER_TOKEN)
}

fn describe(tool: &Tool, config: &Config) -> Value {
    let mut value = wire(tool, config);
    if let Value::Object(map) = &mut value {
        map.insert("group".to_owned(), tool.group.as_str().into());
        map.insert("class".to_owned(), class(tool, config).into());
        map.insert("tokens".to_owned(), tokens(tool, config).into());
    }
    value
}
