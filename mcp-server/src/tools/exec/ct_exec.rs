//! Commands in containers.

use pve_guard::protocol::{MAX_ARGS, MAX_ARGV_BYTES};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Command, allow, directory, inside::container, only, told};
use crate::{
    Error, Result,
    pve::{GuestKind, Vmid},
    render::Answer,
    safety::{
        Deed,
        deed::{Run, Shell},
    },
    tools::{Ctx, change::Asked, deeds::Allowed},
};

/// Arguments of `pve_ct_exec`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Exec {
    vmid: Vmid,
    #[schemars(schema_with = "crate::tools::schema::text_or_list")]
    command: Command,
    stdin: Option<String>,
    cwd: Option<String>,
    #[schemars(range(min = 1, max = 3600))]
    timeout_s: Option<u64>,
    #[schemars(range(min = 1024, max = 16_777_216))]
    max_output: Option<u64>,
    #[serde(flatten)]
    asked: Asked,
}

/// Whether the guard takes so many arguments, and so long ones; told before a person is asked.
fn fits(run: &Run) -> Result<()> {
    let argv = run.argv(false)?;
    let bytes: usize = argv.iter().map(String::len).sum();
    if argv.len() > MAX_ARGS || bytes > MAX_ARGV_BYTES {
        return Err(Error::argument(format!(
            "`command` has {} arguments of {bytes} bytes, and pve-guard takes {MAX_ARGS} of {MAX_ARGV_BYTES}",
            argv.len()
        ))
        .hint("pass the larger part as `stdin`")
        .with("argument", "command"));
    }
    Ok(())
}

/// `pve_ct_exec`
pub async fn exec(ctx: Ctx<'_>, args: Exec) -> Result<Answer> {
    let place = ctx.place(args.vmid).await?;
    only(&place, GuestKind::Lxc, "pve_vm_exec")?;
    let run = Run {
        program: args.command.program(Shell::Sh)?,
        cwd: directory(args.cwd, false)?,
        windows: false,
        stdin: args.stdin.map(String::into_bytes),
        timeout_s: args.timeout_s.unwrap_or(ctx.app.config.exec_timeout.as_secs()),
        max_output: args.max_output.unwrap_or(ctx.app.config.exec_max_output as u64),
    };
    fits(&run)?;
    let deed = Deed::Command { place: place.clone(), run: run.clone() };
    let doing = match allow(ctx, deed, &args.asked, Ok(())).await? {
        Allowed::DryRun(answer) => return Ok(answer),
        Allowed::Leave(doing) => doing,
    };
    let ran = container::run(ctx, &place, &doing, &run).await;
    told::answer(ctx, &place, doing, ran)
}
