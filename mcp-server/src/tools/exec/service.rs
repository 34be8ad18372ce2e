//! `pve_guest_service`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::inside::{Ended, script};
use crate::{
    Code, Error, Result,
    pve::Vmid,
    render::Answer,
    safety::Deed,
    tools::{Ctx, change::Asked, deeds::Allowed},
};

/// Does it by what the guest has, and tells how it stands: action, service.
const SERVICE: &str = r#"a=$1; s=$2; r=0
if command -v systemctl >/dev/null 2>&1 && [ -d /run/systemd/system ]; then
  echo manager=systemd
  if [ "$(systemctl show -p LoadState --value -- "$s" 2>/dev/null)" = not-found ]; then exit 41; fi
  if [ "$a" != status ]; then systemctl --no-ask-password "$a" -- "$s" || r=$?; fi
  systemctl show -p ActiveState -p SubState -p UnitFileState -p Result -p MainPID -- "$s"
  if [ "$r" != 0 ]; then echo ---; journalctl -u "$s" -n 15 --no-pager -o cat 2>/dev/null; fi
elif command -v rc-service >/dev/null 2>&1; then
  echo manager=openrc
  rc-service --exists "$s" || exit 41
  if [ "$a" != status ]; then rc-service "$s" "$a" >&2 || r=$?; fi
  echo "ActiveState=$(rc-service "$s" status 2>&1 | tail -n 1 | sed 's/.*status: //')"
elif [ -x "/etc/init.d/$s" ]; then
  echo manager=init
  if [ "$a" != status ]; then "/etc/init.d/$s" "$a" >&2 || r=$?; fi
  if "/etc/init.d/$s" status >/dev/null 2>&1; then echo ActiveState=active; else echo ActiveState=inactive; fi
else
  exit 43
fi
exit $([ "$r" = 0 ] && echo 0 || echo 40)"#;
/// The service did not do what was asked.
const UNWILLING: i64 = 40;

#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Status,
    Start,
    Stop,
    Restart,
}

impl Action {
    const fn as_str(self) -> &'static str {
        match self {
            Action::Status => "status",
            Action::Start => "start",
            Action::Stop => "stop",
            Action::Restart => "restart",
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Service {
    vmid: Vmid,
    #[schemars(regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,127}$"))]
    service: String,
    action: Action,
    dry_run: Option<bool>,
    confirm: Option<String>,
    approval_code: Option<String>,
}

/// `pve_guest_service`
pub async fn service(ctx: Ctx<'_>, args: Service) -> Result<Answer> {
    let place = ctx.place(args.vmid).await?;
    let asked =
        Asked { dry_run: args.dry_run, confirm: args.confirm, approval_code: args.approval_code };
    let action = args.action.as_str();
    let deed = Deed::Service { place: place.clone(), service: args.service.clone(), action };
    let doing = match ctx.allow(deed, &asked).await? {
        Allowed::DryRun(answer) => return Ok(answer),
        Allowed::Leave(doing) => doing,
    };
    let mut answer = doing.told();
    let values = [action, args.service.as_str()];
    let ended = script(ctx, &doing, &place, SERVICE, &values, None, 64 * 1024).await;
    let ended = ended.and_then(|ended| match ended.exit_code {
        Some(0 | UNWILLING) => Ok(ended),
        Some(super::inside::MISSING) => {
            Err(Error::new(Code::NotFound, format!("the guest has no service {}", args.service))
                .with("service", args.service.clone()))
        }
        Some(super::inside::NO_FILE) => {
            Err(Error::argument("the guest has neither systemd, OpenRC nor /etc/init.d")
                .hint("take pve_ct_exec or pve_vm_exec"))
        }
        _ => Err(super::inside::failed(&ended, &args.service)),
    });
    doing.finish(&ended.as_ref().map(Ended::record).map_err(Clone::clone));
    let ended = ended?;
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let (fields, log) = text.split_once("---\n").unwrap_or((&text, ""));
    let fields: Map<String, serde_json::Value> = fields
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter_map(|(key, value)| {
            let key = match key {
                "manager" => "manager",
                "ActiveState" => "active",
                "SubState" => "state",
                "UnitFileState" => "enabled",
                "Result" => "result",
                "MainPID" => "main_pid",
                _ => return None,
            };
            Some((key.to_owned(), value.into()))
        })
        .collect();
    if ended.exit_code == Some(UNWILLING) {
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        return Err(Error::new(
            Code::TaskFailed,
            format!("{action} of {} failed: {}", args.service, said.trim()),
        )
        .hint("the service's last lines are in log_tail")
        .with("log_tail", log.lines().map(str::to_owned).collect::<Vec<_>>())
        .with("service", fields));
    }
    answer.insert("status".into(), "done".into());
    answer.insert("vmid".into(), place.vmid.get().into());
    answer.insert("service".into(), args.service.clone().into());
    answer.extend(fields);
    Ok(Answer::new(answer).heading(format!("{} in guest {}", args.service, place.vmid)))
}
