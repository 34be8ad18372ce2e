//! Services of a node.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Code, Error, Result,
    pve::{NodeName, Params, loose},
    render::{Answer, Page, Table},
    safety::Method,
    tools::{
        Ctx,
        across::{members, named},
        args::MaybeNode,
        change::AskedTask,
        outcome::{operation, told},
        validate,
    },
};

/// Whether a service's state is not what its unit asks for.
fn is_ill(service: &Value) -> bool {
    let active = loose::str(service, "active-state").or_else(|| loose::str(service, "state"));
    let wanted = loose::str(service, "unit-state") == Some("enabled");
    match active {
        Some("failed") => true,
        Some("inactive" | "dead") => wanted,
        _ => false,
    }
}

/// `pve_list_services`
pub async fn list(ctx: Ctx<'_>, args: MaybeNode) -> Result<Answer> {
    let across = ctx.across(args.node.as_ref(), &["services"], Params::new()).await?;
    let mut rows: Vec<(&str, &Value)> = across.rows().collect();
    rows.sort_by_key(|(node, s)| ((*node).to_owned(), !is_ill(s), loose::text(s, "service")));
    let ill = rows.iter().filter(|(_, s)| is_ill(s)).count();
    let columns = ["node", "service", "state", "active", "unit", "description"];
    let table = Table::new(columns)
        .fill(rows.iter(), Page { limit: usize::MAX, ..Page::new(None, None) }, |(node, s)| {
            vec![
                (*node).into(),
                loose::text(s, "service").or_else(|| loose::text(s, "name")).into(),
                loose::text(s, "state").into(),
                loose::text(s, "active-state").into(),
                loose::text(s, "unit-state").into(),
                loose::text(s, "desc").into(),
            ]
        })
        .missing(across.missing.clone());
    let things = if ill == 0 {
        "services".to_owned()
    } else {
        format!("services, {ill} not as they should be")
    };
    Ok(table.into_answer(&things).with("not_well", ill))
}

/// What can be done with a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Start,
    Stop,
    Restart,
    Reload,
}

impl Action {
    const fn as_str(self) -> &'static str {
        match self {
            Action::Start => "start",
            Action::Stop => "stop",
            Action::Restart => "restart",
            Action::Reload => "reload",
        }
    }
}

/// Arguments of `pve_service_control`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Control {
    node: Option<NodeName>,
    service: String,
    action: Action,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_service_control`
pub async fn control(ctx: Ctx<'_>, args: Control) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let list = ["nodes", &node, "services"];
    let all = ctx.fresh(&list, Params::new()).await?;
    let name = args.service.trim_end_matches(".service");
    let Some(now) = named(&all, "service", name) else {
        let names: Vec<String> =
            loose::rows(&all).iter().filter_map(|s| loose::text(s, "service")).collect();
        let error = Error::new(
            Code::NotFound,
            format!("node {node} has no service {name:?} that can be controlled here"),
        );
        return Err(match validate::nearest(name, names.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error.hint(format!("there are: {}", names.join(", "))),
        });
    };
    let before = state(now);
    let running = loose::str(now, "state") == Some("running");
    let idle = match args.action {
        Action::Start => running,
        Action::Stop => loose::str(now, "active-state") == Some("inactive"),
        Action::Restart | Action::Reload => false,
    };
    if idle {
        return Ok(Answer::new(
            json!({"status": "no_change", "node": node, "service": name, "before": before}),
        )
        .heading(format!(
            "{name} of {node} is {} already",
            if running { "running" } else { "stopped" }
        )));
    }
    let path = ["nodes", &node, "services", name, args.action.as_str()];
    let done = ctx.run(operation(Method::Post, &path, Params::new())?, &args.asked).await?;
    let after = async {
        let all = ctx.fresh(&list, Params::new()).await;
        all.ok().and_then(|all| named(&all, "service", name).map(state)).unwrap_or(Value::Null)
    };
    Ok(told(done, before, after, format!("{} {name} of {node}", args.action.as_str())).await)
}

fn state(service: &Value) -> Value {
    members(service, &["desc", "name", "service"])
}
