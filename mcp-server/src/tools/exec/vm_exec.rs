//! Commands in VMs.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Command, allow, directory,
    inside::{Way, agent, container::is_down},
    only, told,
};
use crate::{
    Code, Error, Result,
    pve::{GuestKind, Vmid},
    render::Answer,
    safety::{
        Deed,
        deed::{self, Place, Program, Run},
    },
    tools::{Ctx, change::Asked, deeds::Allowed},
};

/// The shell for a command that is given as text.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shell {
    Sh,
    Cmd,
    Powershell,
}

/// Arguments of `pve_vm_exec`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Exec {
    vmid: Vmid,
    #[schemars(schema_with = "crate::tools::schema::text_or_list")]
    #[serde(default)]
    command: Option<Command>,
    shell: Option<Shell>,
    stdin: Option<String>,
    cwd: Option<String>,
    #[schemars(range(min = 1, max = 3600))]
    timeout_s: Option<u64>,
    #[schemars(range(min = 1024, max = 16_777_216))]
    max_output: Option<u64>,
    /// Instead of `command`.
    #[schemars(range(min = 1))]
    pid: Option<i64>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_vm_exec`
pub async fn exec(ctx: Ctx<'_>, args: Exec) -> Result<Answer> {
    let place = ctx.place(args.vmid).await?;
    only(&place, GuestKind::Qemu, "pve_ct_exec")?;
    match args.pid {
        Some(pid) => status(ctx, place, pid, args).await,
        None => command(ctx, place, args).await,
    }
}

async fn command(ctx: Ctx<'_>, place: Place, args: Exec) -> Result<Answer> {
    let Some(command) = args.command else {
        return Err(Error::argument("argument `command` is missing").with("argument", "command"));
    };
    let way = Way::to(ctx, &place).await;
    // Without an answer of the agent nobody knows; the guest's name for its shell decides then.
    let windows = way.as_ref().is_ok_and(Way::windows);
    let shell = match args.shell {
        Some(Shell::Sh) => deed::Shell::Sh,
        Some(Shell::Cmd) => deed::Shell::Cmd,
        Some(Shell::Powershell) => deed::Shell::PowerShell,
        None if windows => deed::Shell::Cmd,
        None => deed::Shell::Sh,
    };
    let program = command.program(shell)?;
    let for_windows = match &program {
        Program::Text { shell, .. } => *shell != deed::Shell::Sh,
        Program::Argv(_) => windows,
    };
    let run = Run {
        program,
        cwd: directory(args.cwd, for_windows)?,
        windows: for_windows,
        stdin: args.stdin.map(String::into_bytes),
        timeout_s: args.timeout_s.unwrap_or(ctx.app.config.exec_timeout.as_secs()),
        max_output: args.max_output.unwrap_or(ctx.app.config.exec_max_output as u64),
    };
    agent::fits(&run)?;
    let able = way.as_ref().map_err(Clone::clone).and_then(Way::runs);
    let deed = Deed::Command { place: place.clone(), run: run.clone() };
    let doing = match allow(ctx, deed, &args.asked, able).await? {
        Allowed::DryRun(answer) => return Ok(answer),
        Allowed::Leave(doing) => doing,
    };
    let mut ran = agent::run(ctx, &place, &doing, &run).await;
    let power = doing.told().get("category").is_some_and(|c| c == "EXEC_POWER");
    if let Ok(ran) = &mut ran
        && power
        && ran.guest_down.is_none()
        && is_down(ctx, &place).await
    {
        ran.guest_down = Some("the guest went down");
    }
    told::answer(ctx, &place, doing, ran)
}

/// How a command stands that was left running.
async fn status(ctx: Ctx<'_>, place: Place, pid: i64, args: Exec) -> Result<Answer> {
    if args.command.is_some() || args.stdin.is_some() || args.cwd.is_some() {
        return Err(Error::new(
            Code::InvalidArgument,
            "`pid` asks for a command that runs already",
        )
        .hint("leave `command`, `stdin` and `cwd` away, or leave `pid` away")
        .with("argument", "pid"));
    }
    let deed = Deed::CommandStatus { place: place.clone(), pid };
    let doing = match allow(ctx, deed, &args.asked, Ok(())).await? {
        Allowed::DryRun(answer) => return Ok(answer),
        Allowed::Leave(doing) => doing,
    };
    let patience = args.timeout_s.unwrap_or(1);
    let limit = args.max_output.unwrap_or(ctx.app.config.exec_max_output as u64);
    let ran = agent::follow(ctx, &place, &doing, pid, patience, limit).await;
    told::answer(ctx, &place, doing, ran)
}
