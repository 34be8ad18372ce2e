//! The QEMU guest agent of a VM.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    Code, Error, Result,
    insight::estate::{Guest, GuestKind, GuestStatus},
    pve::{GuestConfig, Params, Vmid, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        args::OneGuest,
        change::{Asked, Submitted, on_guest},
        core::title,
    },
};

/// A VM; containers have no agent.
fn only_vms(guest: &Guest) -> Result<()> {
    if guest.kind == GuestKind::Qemu {
        return Ok(());
    }
    Err(Error::argument(format!("guest {} is a container: only VMs have an agent", guest.vmid))
        .hint("pve_guest_network and pve_guest_details show what a container tells by itself"))
}

const STOPPED: &str = "vm stopped: pve_guest_start starts it";

/// `pve_vm_agent_status`
pub async fn status(ctx: Ctx<'_>, args: OneGuest) -> Result<Answer> {
    let (guest, config) = ctx.guest_get(args.vmid, &["config"], Params::new()).await?;
    only_vms(&guest)?;
    let configured = GuestConfig::new(guest.kind, &config).agent();
    let running = guest.status == GuestStatus::Running;
    let mut out = Map::new();
    out.insert("vmid".into(), guest.vmid.get().into());
    out.insert("name".into(), guest.name.clone().into());
    out.insert("configured".into(), configured.into());
    out.insert("status".into(), guest.status.as_str().into());
    let asked = match (configured, running) {
        (false, _) => Err("agent disabled: set `agent` to 1 (pve_guest_config_set), stop and start the VM, and install qemu-guest-agent in it".to_owned()),
        (true, false) => Err(STOPPED.to_owned()),
        (true, true) => {
            let info = ctx.get_below(&guest, &["agent", "info"], Params::new()).await;
            info.map_err(|e| {
                if e.message.contains("agent is not running") {
                    "agent not running: it does not answer; install and start qemu-guest-agent in the guest"
                        .to_owned()
                } else if e.message.contains("is not running") {
                    STOPPED.to_owned()
                } else {
                    e.message
                }
            })
        }
    };
    out.insert("answers".into(), asked.is_ok().into());
    match asked {
        Ok(info) => {
            let info = info.get("result").unwrap_or(&info);
            put(&mut out, "version", loose::text(info, "version"));
            let off = switched_off(info);
            if is_frozen(&off) {
                let what = "its file systems are frozen: pve_vm_agent_command thaw ends that, and \
                            so does the end of the backup or snapshot that froze them";
                out.insert("frozen".into(), true.into());
                out.insert("note".into(), what.into());
            }
            put(&mut out, "disabled_commands", Some(off).filter(|o| !o.is_empty()));
            told_by_agent(ctx, &guest, &mut out).await;
        }
        Err(why) => put(&mut out, "why", Some(why)),
    }
    let untrusted = ["os", "hostname", "filesystems", "users", "unknown"];
    Ok(Answer::new(out).heading(title(&guest)).untrusted(&untrusted))
}

/// Commands that an agent's information says are switched off.
pub fn switched_off(info: &Value) -> Vec<String> {
    loose::rows(info.get("supported_commands").unwrap_or(&Value::Null))
        .iter()
        .filter(|c| c.get("enabled").is_some() && !loose::flag(c, "enabled"))
        .filter_map(|c| loose::text(c, "name"))
        .collect()
}

/// Whether an agent with these commands switched off has frozen file systems:
/// it does hardly anything then but thaw them.
pub fn is_frozen(off: &[String]) -> bool {
    let off = |name: &str| off.iter().any(|n| n == name);
    off("guest-exec") && off("guest-get-osinfo") && !off("guest-fsfreeze-thaw")
}

fn put(out: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        out.insert(key.to_owned(), value.into());
    }
}

/// What the agent tells about the inside, and why it does not tell the rest.
async fn told_by_agent(ctx: Ctx<'_>, guest: &Guest, out: &mut Map<String, Value>) {
    let ask = async |what: &str| {
        let answer = ctx.get_below(guest, &["agent", what], Params::new()).await;
        let answer = answer.map_err(|error| error.message)?;
        let result = answer.get("result").cloned().unwrap_or(Value::Null);
        // An agent's own error comes with HTTP 200.
        match result.get("error") {
            None => Ok(result),
            Some(error) if loose::str(error, "class") == Some("CommandNotFound") => {
                Err("not supported by this agent".to_owned())
            }
            Some(error) => Err(loose::text(error, "desc").unwrap_or_else(|| error.to_string())),
        }
    };
    let (os, host, files, zone, users) = futures::join!(
        ask("get-osinfo"),
        ask("get-host-name"),
        ask("get-fsinfo"),
        ask("get-timezone"),
        ask("get-users"),
    );
    let mut unknown = Map::new();
    let mut known = |name: &str, answer: Result<Value, String>| {
        answer.map_err(|why| unknown.insert(name.to_owned(), why.into())).ok()
    };
    let (os, host, files, zone, users) = (
        known("os", os),
        known("hostname", host),
        known("filesystems", files),
        known("timezone", zone),
        known("users", users),
    );
    put(out, "unknown", Some(unknown).filter(|u| !u.is_empty()));
    if let Some(os) = os {
        let text = |key| loose::text(&os, key);
        put(out, "os", text("pretty-name").or_else(|| text("name")));
        put(out, "kernel", text("kernel-release"));
    }
    put(out, "hostname", host.and_then(|h| loose::text(&h, "host-name")));
    put(out, "timezone", zone.and_then(|z| loose::text(&z, "zone")));
    if let Some(files) = files {
        let rows: Vec<Value> = loose::rows(&files)
            .iter()
            .map(|f| {
                json!({
                    "mount": loose::text(f, "mountpoint"), "type": loose::text(f, "type"),
                    "used_bytes": loose::uint(f, "used-bytes"),
                    "total_bytes": loose::uint(f, "total-bytes"),
                })
            })
            .collect();
        put(out, "filesystems", Some(rows));
    }
    if let Some(users) = users {
        let names: Vec<String> =
            loose::rows(&users).iter().filter_map(|u| loose::text(u, "user")).collect();
        put(out, "users", Some(names));
    }
}

/// A command of the agent that is no program in the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Command {
    #[serde(rename = "ping")]
    Ping,
    #[serde(rename = "trim")]
    Trim,
    #[serde(rename = "freeze")]
    Freeze,
    #[serde(rename = "thaw")]
    Thaw,
    #[serde(rename = "freeze-status")]
    FreezeStatus,
    #[serde(rename = "shutdown")]
    Shutdown,
    #[serde(rename = "suspend-ram")]
    SuspendRam,
    #[serde(rename = "suspend-disk")]
    SuspendDisk,
    #[serde(rename = "suspend-hybrid")]
    SuspendHybrid,
}

impl Command {
    /// The last segment of its path.
    const fn segment(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Trim => "fstrim",
            Self::Freeze => "fsfreeze-freeze",
            Self::Thaw => "fsfreeze-thaw",
            Self::FreezeStatus => "fsfreeze-status",
            Self::Shutdown => "shutdown",
            Self::SuspendRam => "suspend-ram",
            Self::SuspendDisk => "suspend-disk",
            Self::SuspendHybrid => "suspend-hybrid",
        }
    }
}

/// Arguments of `pve_vm_agent_command`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Run {
    vmid: Vmid,
    command: Command,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_vm_agent_command`
pub async fn command(ctx: Ctx<'_>, args: Run) -> Result<Answer> {
    let guest = ctx.guest_now(args.vmid).await?;
    only_vms(&guest)?;
    let config = ctx.get_below(&guest, &["config"], Params::new()).await?;
    let unable =
        |why: String| Error::new(Code::AgentUnavailable, why).with("vmid", args.vmid.get());
    if !GuestConfig::new(guest.kind, &config).agent() {
        return Err(unable(format!("the agent of guest {} is not enabled", guest.vmid)));
    }
    if guest.status == GuestStatus::Stopped {
        return Err(
            unable(format!("guest {} does not run", guest.vmid)).hint("pve_guest_start starts it")
        );
    }
    let word = args.command.segment();
    let call = on_guest(Method::Post, &guest, &["agent", word], Params::new())?;
    let sent = match ctx.submit(call, &args.asked).await? {
        Submitted::DryRun(answer) => return Ok(answer),
        Submitted::Sent(sent) => sent,
    };
    let result = sent.data.get("result").cloned().unwrap_or(Value::Null);
    // The agent's own refusal comes with HTTP 200.
    if let Some(error) = result.get("error") {
        let why = loose::text(error, "desc").unwrap_or_else(|| error.to_string());
        return Err(unable(format!("the agent refused {word}: {why}"))
            .hint("the agent in the guest may be too old, or have the command switched off"));
    }
    let note = match args.command {
        Command::Freeze => Some("the guest writes nothing until pve_vm_agent_command thaw"),
        Command::Shutdown => {
            Some("the agent was asked; pve_vm_status shows whether the guest is down")
        }
        _ => None,
    };
    let empty = result.as_object().is_some_and(Map::is_empty);
    let sent = sent.with("result", if empty { Value::Null } else { result }).with("note", note);
    Ok(sent.into_answer(format!("{word} in {}", title(&guest))).untrusted(&["result"]))
}
