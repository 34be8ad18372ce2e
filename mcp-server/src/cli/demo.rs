//! `demo` and `serve --demo`: the sample estate, in this process.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use futures::{FutureExt, future::BoxFuture};
use pve_sim::Sim;
use serde_json::{Value, json};

use super::{
    Global, log,
    out::{Exit, Out, Ran},
    serve::runtime,
    show,
    terminal::Terminal,
};
use crate::{
    Code, Error, Result,
    app::App,
    config::{self, CONFIG_DIR, Sources},
    mcp,
    render::Answer,
    tools::{self, Asked, Form, Session},
};

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  proxmox-mcp demo")]
pub struct Demo {}

impl Demo {
    /// Shows the tour.
    ///
    /// # Errors
    /// When the estate does not start or a step of the tour fails.
    pub fn run(&self, global: &Global) -> Ran {
        let out = global.out();
        runtime()?.block_on(async {
            // The tour makes one change, and asks for it as it would ask about a graver one.
            let mut variables = global.variables()?;
            for (name, value) in [
                ("PROXMOX_MODE", "write"),
                ("PROXMOX_APPROVAL", "auto"),
                ("PROXMOX_APPROVAL_SCOPE", "write"),
            ] {
                variables.insert(name.to_owned(), value.to_owned());
            }
            let estate = Estate::start(variables, true).await?;
            tour(&estate.app, out).await
        })
    }
}

/// Serves MCP on the sample estate until the client leaves.
///
/// # Errors
/// When the estate does not start.
pub fn serve(args: BTreeMap<String, String>) -> Result<Exit> {
    runtime()?.block_on(async {
        let estate = Estate::start(args, false).await?;
        mcp::serve_stdio(estate.app.clone()).await?;
        Ok(Exit::Well)
    })
}

/// The simulator, an application that is connected to it, and a directory that goes with them.
struct Estate {
    app: Arc<App>,
    _sim: Sim,
    _directory: Scratch,
}

impl Estate {
    /// Starts the estate. Mode, groups and limits come from the environment as
    /// always; where to connect, and the directory, are the estate's own.
    async fn start(mut args: BTreeMap<String, String>, quiet: bool) -> Result<Self> {
        let failed = |what: &str, e: &dyn std::fmt::Display| {
            Error::internal(format!("the sample estate does not start: {what}: {e}"))
                .hint("it needs a free port on the loopback address, and a temporary directory")
        };
        let sim =
            Sim::start(pve_sim::Options::default()).await.map_err(|e| failed("simulator", &e))?;
        let (id, secret) =
            sim.token("admin").ok_or_else(|| failed("token", &"it has no token named admin"))?;
        let directory = Scratch::new().map_err(|e| failed("directory", &e))?;
        let own = [
            (CONFIG_DIR, directory.0.display().to_string()),
            ("PROXMOX_HOST", sim.addr().to_string()),
            ("PROXMOX_TOKEN_ID", id),
            ("PROXMOX_TOKEN_SECRET", secret),
            ("PROXMOX_TLS_FINGERPRINT", sim.fingerprint()),
        ];
        args.extend(own.map(|(name, value)| (name.to_owned(), value)));
        let loaded = config::load(&Sources::of_process(args))?;
        log::start(&loaded.config, loaded.origin.contains_key("LOG_LEVEL"), quiet);
        Ok(Self { app: App::new(loaded.config)?, _sim: sim, _directory: directory })
    }
}

/// A directory for its owner alone that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let base = std::env::temp_dir();
        // Someone else may have taken a name; making it is what claims it.
        let mut last = None;
        for n in 0..100 {
            let path = base.join(format!("proxmox-mcp-demo-{}-{n}", std::process::id()));
            match builder.create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(e) => last = Some(e),
            }
        }
        Err(last.unwrap_or_else(|| std::io::ErrorKind::AlreadyExists.into()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The steps of the tour, each one call of a tool.
async fn tour(app: &Arc<App>, out: Out) -> Ran {
    if out.json {
        return as_json(app, out).await;
    }
    out.text(
        "A made-up company with three nodes and about forty guests lives in this process for a\n\
         moment. This is what an assistant sees of it, tool by tool.\n\n",
    )?;
    step(out, 1, "How is the estate?", "pve_overview", &json!({}))?;
    print(out, &call(app, "pve_overview", json!({})).await?)?;

    step(out, 2, "What needs attention?", "pve_needs_attention", &json!({}))?;
    let attention = call(app, "pve_needs_attention", json!({})).await?;
    print(out, &attention)?;

    let arguments = json!({"vmid": a_guest(app, &attention).await?});
    step(out, 3, "Tell me about one guest", "pve_guest_details", &arguments)?;
    print(out, &call(app, "pve_guest_details", arguments).await?)?;

    let change = refused_change(app).await?;
    step(out, 4, "Reboot a node", "pve_api_call", &change)?;
    match call(app, "pve_api_call", change).await {
        Err(error) => out.text(&format!("refused: {error}\n\n"))?,
        Ok(_) => return Err(Error::internal("a change that must be refused was not").into()),
    }
    let change = a_change(app, &attention).await?;
    let dry = with_dry_run(&change);
    step(out, 5, "What would starting this guest do?", "pve_guest_start", &dry)?;
    print(out, &call(app, "pve_guest_start", dry).await?)?;

    step(out, 6, "Start it", "pve_guest_start", &change)?;
    out.text("The person at the client is asked first; in this tour the answer is yes:\n")?;
    let person = Visitor { out };
    print(out, &tools::call(app, "pve_guest_start", change, &person).await?)?;
    out.text(&connect(&program()))?;
    Ok(Exit::Well)
}

async fn as_json(app: &Arc<App>, out: Out) -> Ran {
    let change = refused_change(app).await?;
    let refusal = match call(app, "pve_api_call", change.clone()).await {
        Err(error) => error.to_json(),
        Ok(_) => return Err(Error::internal("a change that must be refused was not").into()),
    };
    let attention = call(app, "pve_needs_attention", json!({})).await?;
    let vmid = a_guest(app, &attention).await?;
    let start = a_change(app, &attention).await?;
    let dry_run = call(app, "pve_guest_start", with_dry_run(&start)).await?;
    let approved = tools::call(app, "pve_guest_start", start, &Visitor { out }).await?;
    out.value(&json!({
        "pve_overview": call(app, "pve_overview", json!({})).await?.structured,
        "pve_needs_attention": attention.structured,
        "pve_guest_details": call(app, "pve_guest_details", json!({"vmid": vmid})).await?.structured,
        "refused": {"pve_api_call": change, "answer": refusal},
        "dry_run": dry_run.structured,
        "approved": approved.structured,
        "connect": [program(), "serve", "--demo"],
    }))?;
    Ok(Exit::Well)
}

async fn call(app: &Arc<App>, tool: &str, arguments: Value) -> Result<Answer> {
    tools::call(app, tool, arguments, &Terminal::new()).await
}

/// A guest worth a look: one that needs attention, else one that runs.
async fn a_guest(app: &Arc<App>, attention: &Answer) -> Result<Value> {
    let findings = attention.structured.get("findings").and_then(Value::as_array);
    if let Some(vmid) = findings.into_iter().flatten().find_map(|f| f.get("vmid")) {
        return Ok(vmid.clone());
    }
    let guests = call(app, "pve_list_vms", json!({"status": "running", "limit": 1})).await?;
    cell(&guests.structured, "vmid")
        .ok_or_else(|| Error::new(Code::NotFound, "the sample estate has no running guest"))
}

/// Starting a guest that should run and does not: of the findings, else any that is stopped.
async fn a_change(app: &Arc<App>, attention: &Answer) -> Result<Value> {
    let findings = attention.structured.get("findings").and_then(Value::as_array);
    let stopped = findings.into_iter().flatten().find(|finding| {
        finding.get("code").and_then(Value::as_str).is_some_and(|c| c.ends_with("_stopped"))
    });
    if let Some(vmid) = stopped.and_then(|finding| finding.get("vmid")) {
        return Ok(json!({"vmid": vmid}));
    }
    let arguments = json!({"status": "stopped", "template": false, "limit": 1});
    let guests = call(app, "pve_list_vms", arguments).await?;
    cell(&guests.structured, "vmid")
        .map(|vmid| json!({"vmid": vmid}))
        .ok_or_else(|| Error::new(Code::NotFound, "the sample estate has no stopped guest"))
}

fn with_dry_run(arguments: &Value) -> Value {
    let mut arguments = arguments.clone();
    if let Some(map) = arguments.as_object_mut() {
        map.insert("dry_run".to_owned(), true.into());
    }
    arguments
}

/// Whoever watches the tour: is shown the form, and says yes.
struct Visitor {
    out: Out,
}

impl Session for Visitor {
    fn ask<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Asked> {
        if !self.out.json {
            let lines: Vec<String> = form.text.lines().map(|line| format!("   | {line}")).collect();
            let _ = self.out.text(&format!("{}\n   > yes\n", lines.join("\n")));
        }
        std::future::ready(Asked::Yes).boxed()
    }

    fn can_ask(&self) -> bool {
        true
    }

    fn client(&self) -> String {
        "the tour".to_owned()
    }
}

/// The reboot of a node: CRITICAL, so that mode, flag or `confirm` stands in its way.
async fn refused_change(app: &Arc<App>) -> Result<Value> {
    let nodes = call(app, "pve_list_nodes", json!({})).await?;
    let node = cell(&nodes.structured, "node");
    let node = node.as_ref().and_then(Value::as_str).unwrap_or("pve1");
    Ok(json!({
        "method": "POST", "path": format!("/nodes/{node}/status"), "params": {"command": "reboot"},
    }))
}

/// The first row's value in a column of a table.
fn cell(table: &Value, column: &str) -> Option<Value> {
    let columns = table.get("columns")?.as_array()?;
    let index = columns.iter().position(|c| c == column)?;
    table.get("rows")?.get(0)?.get(index).cloned()
}

fn step(out: Out, n: u8, question: &str, tool: &str, arguments: &Value) -> std::io::Result<()> {
    let bold = anstyle::Style::new().bold();
    let title = out.paint(bold, &format!("{n}. {question}"));
    let arguments = if arguments == &json!({}) { String::new() } else { format!(" {arguments}") };
    out.text(&format!("{title}\n   {tool}{arguments}\n"))
}

fn print(out: Out, answer: &Answer) -> std::io::Result<()> {
    out.text(&show::for_person(out, &answer.heading, &answer.structured))?;
    out.text("")
}

/// This program as a client has to call it.
fn program() -> String {
    std::env::current_exe()
        .ok()
        .filter(|path| path.exists())
        .map_or_else(|| "proxmox-mcp".to_owned(), |path| quoted(&path))
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/\\:._-+".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

fn connect(program: &str) -> String {
    format!(
        "Connect a client to the same estate:\n\n  \
         Claude Code      claude mcp add proxmox-demo -- {program} serve --demo\n  \
         other clients    {{\"mcpServers\": {{\"proxmox-demo\": {{\"command\": {}, \"args\": [\"serve\", \
         \"--demo\"]}}}}}}\n\n\
         Then ask it: \"What needs attention in my Proxmox estate?\"\n\n\
         Your own Proxmox:  {program} init\n",
        Value::from(program.trim_matches('\''))
    )
}
