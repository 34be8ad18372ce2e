//! `pve_ct_exec` and `pve_vm_exec`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inside::{self, Job};
use crate::{
    Error, Result,
    pve::{GuestKind, Params, Vmid, loose},
    render::Answer,
    safety::{
        Deed,
        deed::{Place, Program, Run, Shell},
    },
    tools::{Ctx, change::Asked, deeds::Allowed},
};

/// A command as it is given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Given {
    Text(String),
    Argv(Vec<String>),
}

/// The shell for a text.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum By {
    Sh,
    Cmd,
    PowerShell,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Exec {
    vmid: Vmid,
    #[schemars(schema_with = "crate::tools::schema::text_or_list")]
    command: Given,
    shell: Option<By>,
    stdin: Option<String>,
    cwd: Option<String>,
    #[schemars(range(min = 1, max = 3_600))]
    timeout_s: Option<u64>,
    #[schemars(range(min = 1024, max = 16_777_216))]
    max_output: Option<u64>,
    dry_run: Option<bool>,
    confirm: Option<String>,
    approval_code: Option<String>,
}

/// `pve_ct_exec`
pub async fn in_container(ctx: Ctx<'_>, args: Exec) -> Result<Answer> {
    let place = ctx.place(args.vmid).await?;
    of_kind(&place, GuestKind::Lxc)?;
    if matches!(args.shell, Some(By::Cmd | By::PowerShell)) {
        return Err(Error::argument("a container has no shell of Windows"));
    }
    exec(ctx, args, place, Shell::Sh).await
}

/// `pve_vm_exec`
pub async fn in_vm(ctx: Ctx<'_>, args: Exec) -> Result<Answer> {
    let place = ctx.place(args.vmid).await?;
    of_kind(&place, GuestKind::Qemu)?;
    let shell = match args.shell {
        Some(By::Sh) => Shell::Sh,
        Some(By::Cmd) => Shell::Cmd,
        Some(By::PowerShell) => Shell::PowerShell,
        None if matches!(args.command, Given::Argv(_)) => Shell::Sh,
        None if is_windows(ctx, &place).await => Shell::Cmd,
        None => Shell::Sh,
    };
    exec(ctx, args, place, shell).await
}

fn of_kind(place: &Place, wanted: GuestKind) -> Result<()> {
    if place.kind == wanted {
        return Ok(());
    }
    let (is, tool) = match place.kind {
        GuestKind::Qemu => ("a VM", "pve_vm_exec"),
        GuestKind::Lxc => ("a container", "pve_ct_exec"),
    };
    Err(Error::argument(format!("guest {} is {is}", place.vmid)).hint(format!("take {tool}")))
}

/// Whether the agent says that the guest is Windows.
pub(super) async fn is_windows(ctx: Ctx<'_>, place: &Place) -> bool {
    let vmid = place.vmid.to_string();
    let segments = ["nodes", place.node.as_str(), "qemu", &vmid, "agent", "get-osinfo"];
    let info = ctx.get_with(&segments, Params::new()).await;
    info.is_ok_and(|info| {
        let result = info.get("result").unwrap_or(&info);
        loose::str(result, "id") == Some("mswindows")
    })
}

async fn exec(ctx: Ctx<'_>, args: Exec, place: Place, shell: Shell) -> Result<Answer> {
    let config = &ctx.app.config;
    let program = match args.command {
        Given::Text(text) if text.trim().is_empty() => {
            return Err(Error::argument("the command is empty"));
        }
        Given::Text(text) => Program::Text { text, shell },
        Given::Argv(argv) if argv.first().is_none_or(String::is_empty) => {
            return Err(Error::argument("the command is empty"));
        }
        Given::Argv(argv) => Program::Argv(argv),
    };
    let most = config.exec_max_output as u64;
    let run = Run {
        program,
        cwd: args.cwd,
        stdin: args.stdin.map(String::into_bytes),
        timeout_s: args.timeout_s.unwrap_or(config.exec_timeout.as_secs()),
        max_output: args.max_output.map_or(most, |wanted| wanted.min(16 << 20)),
    };
    let job = Job {
        argv: run.argv(place.kind == GuestKind::Qemu)?,
        stdin: run.stdin.clone(),
        timeout_s: run.timeout_s,
        max_output: run.max_output,
        tells: true,
    };
    let asked =
        Asked { dry_run: args.dry_run, confirm: args.confirm, approval_code: args.approval_code };
    let deed = Deed::Command { place: place.clone(), run };
    let doing = match ctx.allow(deed, &asked).await? {
        Allowed::DryRun(answer) => return Ok(answer),
        Allowed::Leave(doing) => doing,
    };
    let mut answer = doing.told();
    let ended = inside::run(ctx, &doing, &place, job).await;
    let record = ended.as_ref().map(inside::Ended::record).map_err(Clone::clone);
    let warning = doing.finish(&record);
    let ended = ended?;
    answer.insert("status".into(), "done".into());
    answer.insert("vmid".into(), place.vmid.get().into());
    answer.insert("node".into(), place.node.as_str().into());
    answer.extend(ended.to_json());
    if let Some(warning) = warning {
        answer.insert("warnings".into(), vec![warning].into());
    }
    let untrusted = ["stdout", "stderr", "stdout_base64", "stderr_base64"];
    Ok(Answer::new(answer)
        .heading(format!("{} {} on {}", place.kind.noun(), place.vmid, place.node))
        .untrusted(&untrusted))
}
