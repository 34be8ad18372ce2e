//! Services of guests.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    allow,
    inside::{Given, Reply, Way, found},
};
use crate::{
    Code, Error, Result,
    pve::Vmid,
    render::Answer,
    safety::{
        Deed,
        deed::{Place, Step},
    },
    tools::{
        Ctx,
        change::Asked,
        deeds::{Allowed, Doing},
    },
};

/// What is done with a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Status,
    Start,
    Stop,
    Restart,
}

impl Action {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
        }
    }
}

/// Arguments of `pve_guest_service`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Control {
    vmid: Vmid,
    service: String,
    action: Option<Action>,
    #[schemars(range(min = 1, max = 3600))]
    timeout_s: Option<u64>,
    #[serde(flatten)]
    asked: Asked,
}

/// Seconds that a service may take to start or stop: systemd gives up after 90.
const PATIENCE: u64 = 100;

/// `pve_guest_service`
pub async fn control(ctx: Ctx<'_>, args: Control) -> Result<Answer> {
    let place = ctx.place(args.vmid).await?;
    let action = args.action.unwrap_or(Action::Status);
    let way = Way::to(ctx, &place).await;
    named(&args.service, way.as_ref().is_ok_and(Way::windows))?;
    let able = way.as_ref().map_err(Clone::clone).and_then(Way::runs);
    let deed = Deed::Service {
        place: place.clone(),
        service: args.service.clone(),
        action: action.as_str(),
    };
    let doing = match allow(ctx, deed, &args.asked, able).await? {
        Allowed::DryRun(answer) => return Ok(answer),
        Allowed::Leave(doing) => doing,
    };
    let way = way?;
    let patience = args.timeout_s.unwrap_or(PATIENCE);
    let state = ask(ctx, &way, &place, &doing, &args.service, patience).await;
    let told = doing.told();
    let warning = doing.finish(&state.as_ref().map(State::record).map_err(Clone::clone));
    answer(&place, &args, action, state?, told, warning)
}

/// A service's name, and nothing that a tool could take for an option or a pattern.
fn named(service: &str, windows: bool) -> Result<()> {
    // A name of Windows has nearly any character, and reaches no shell.
    let good = |c: char| match windows {
        true => !c.is_control() && !"/\\*?".contains(c),
        false => c.is_alphanumeric() || "@:_.-\\ ".contains(c),
    };
    if service.trim().is_empty()
        || service.len() > 255
        || service.starts_with(['-', ' '])
        || !service.chars().all(good)
    {
        return Err(Error::argument(format!("{service:?} is no name of a service"))
            .hint(match windows {
                true => "name one service as Windows does, for example W32Time or MSSQL$SQLEXPRESS",
                false => "name one service as the guest does, for example nginx or ssh.service",
            })
            .with("argument", "service"));
    }
    Ok(())
}

/// What a guest tells of a service.
#[derive(Debug, PartialEq)]
struct State {
    manager: String,
    /// How the start, stop or restart ended.
    code: i64,
    fields: BTreeMap<String, String>,
    /// What the service manager said.
    said: String,
    log: Vec<String>,
}

async fn ask(
    ctx: Ctx<'_>,
    way: &Way,
    place: &Place,
    doing: &Doing,
    service: &str,
    patience: u64,
) -> Result<State> {
    let given = Given { timeout_s: patience, ..Given::default() };
    match way.run(ctx, place, doing, &Step::Service, given).await? {
        Reply::Done(head, body) => State::read(&head, &String::from_utf8_lossy(&body))
            .ok_or_else(|| Error::internal("the guest's answer about the service makes no sense"))
            .and_then(|state| {
                if state.field("LoadState") == Some("not-found") {
                    return Err(missing(way, place, service));
                }
                Ok(state)
            }),
        Reply::Failed(word, _) if word == "missing" => Err(missing(way, place, service)),
        other => Err(found(other, place.vmid, service)),
    }
}

fn missing(way: &Way, place: &Place, service: &str) -> Error {
    let why = format!("guest {} has no service {service:?}", place.vmid);
    Error::new(Code::NotFound, why).hint(match way.windows() {
        true => "`sc query state= all` by pve_vm_exec lists them",
        false => {
            "`systemctl list-units --type=service --all` by pve_ct_exec or pve_vm_exec lists them"
        }
    })
}

impl State {
    /// `MANAGER CODE`, then `NAME=VALUE` lines, then what was said, then log lines, parted by
    /// empty lines.
    fn read(head: &str, body: &str) -> Option<Self> {
        let (manager, code) = head.trim().split_once(' ')?;
        let body = body.replace("\r\n", "\n");
        let (fields, rest) = body.split_once("\n\n").unwrap_or((&body, ""));
        let fields = fields
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let (said, log) = rest.split_once("\n\n").unwrap_or((rest, ""));
        Some(Self {
            manager: manager.to_owned(),
            code: code.trim().parse().ok()?,
            fields,
            said: said.trim().to_owned(),
            log: log.lines().filter(|l| !l.trim().is_empty()).map(str::to_owned).collect(),
        })
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The state in a word.
    fn active(&self) -> String {
        match (self.manager.as_str(), self.field("Status")) {
            // As rc-service and scripts of init end when asked for the status.
            ("init", Some("0")) => "active".to_owned(),
            ("init", _) => "inactive".to_owned(),
            ("openrc", Some("0")) => "active".to_owned(),
            ("openrc", Some("3")) => "inactive".to_owned(),
            ("openrc", Some("32")) => "failed".to_owned(),
            ("openrc", Some(code)) => format!("unknown ({code})"),
            _ => match self.field("ActiveState") {
                Some("Running") => "active".to_owned(),
                Some("Stopped") => "inactive".to_owned(),
                Some("StartPending") => "activating".to_owned(),
                Some("StopPending") => "deactivating".to_owned(),
                Some(state) => state.to_lowercase(),
                None => "unknown".to_owned(),
            },
        }
    }

    fn enabled(&self) -> Option<String> {
        let state = self.field("UnitFileState")?;
        Some(match state {
            "Automatic" => "enabled".to_owned(),
            state => state.to_lowercase(),
        })
    }

    fn record(&self) -> Value {
        json!({"code": self.code, "active": self.active()})
    }
}

fn answer(
    place: &Place,
    args: &Control,
    action: Action,
    state: State,
    mut told: Map<String, Value>,
    warning: Option<String>,
) -> Result<Answer> {
    let active = state.active();
    let wanted = match action {
        Action::Status => true,
        Action::Start | Action::Restart => active != "failed" && active != "inactive",
        Action::Stop => active != "active",
    };
    if action != Action::Status && !(state.code == 0 && wanted) {
        let said = if state.said.is_empty() { active.clone() } else { state.said.clone() };
        let what = format!("{} of {} failed: {said}", action.as_str(), args.service);
        return Err(Error::new(Code::TaskFailed, what)
            .hint("the service's last lines are in log_tail")
            .with("vmid", place.vmid.get())
            .with("service", args.service.clone())
            .with("manager", state.manager)
            .with("active", active)
            .with("exit_code", state.code)
            .with("log_tail", state.log));
    }
    let mut out = Map::new();
    out.insert("status".into(), "done".into());
    out.insert("vmid".into(), place.vmid.get().into());
    out.insert("service".into(), args.service.clone().into());
    out.insert("action".into(), action.as_str().into());
    out.append(&mut told);
    out.insert("manager".into(), state.manager.clone().into());
    out.insert("active".into(), active.clone().into());
    out.insert("enabled".into(), state.enabled().into());
    for (key, field) in [
        ("name", "Name"),
        ("state", "SubState"),
        ("description", "Description"),
        ("since", "ActiveEnterTimestamp"),
        ("result", "Result"),
    ] {
        if let Some(value) = state.field(field) {
            out.insert(key.into(), value.into());
        }
    }
    if let Some(pid) = state.field("MainPID").and_then(|p| p.parse::<u64>().ok()).filter(|p| *p > 0)
    {
        out.insert("main_pid".into(), pid.into());
    }
    if !state.said.is_empty() {
        out.insert("said".into(), state.said.into());
    }
    if !state.log.is_empty() {
        out.insert("log".into(), state.log.into());
    }
    if let Some(warning) = warning {
        out.insert("warnings".into(), vec![warning].into());
    }
    let heading = format!("{} in {} {}: {active}", args.service, place.kind.noun(), place.vmid);
    Ok(Answer::new(out).heading(heading).untrusted(&["said", "log", "description"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guest_tells_of_a_service_is_read() {
        let body = "LoadState=loaded\nActiveState=failed\nSubState=failed\nUnitFileState=enabled\n\
            Description=A = b\n\nJob for x.service failed.\n\n2026-01-01 x[1]: no\n2026-01-01 bye\n";
        let state = State::read("systemd 1", body).unwrap();
        assert_eq!((state.active().as_str(), state.code), ("failed", 1));
        assert_eq!(state.enabled().as_deref(), Some("enabled"));
        assert_eq!(state.field("Description"), Some("A = b"));
        assert_eq!(state.said, "Job for x.service failed.");
        assert_eq!(state.log.len(), 2);
        for (code, active) in [("0", "active"), ("3", "inactive"), ("32", "failed")] {
            let state =
                State::read("openrc 0", &format!("Status={code}\nUnitFileState=disabled\n\n\n\n"));
            assert_eq!(state.unwrap().active(), active);
        }
        let windows =
            "ActiveState=Running\r\nUnitFileState=Automatic\r\nDescription=Spooler\r\n\r\n\r\n";
        let state = State::read("windows 0\r", windows).unwrap();
        assert_eq!(
            (state.active().as_str(), state.enabled().as_deref()),
            ("active", Some("enabled"))
        );
    }

    /// D05: a name is never an option, a pattern or a second command.
    #[test]
    fn names_that_are_none_are_refused() {
        for name in
            ["nginx", "ssh.service", "getty@tty1.service", "Windows Update", "dev-sda1.device"]
        {
            assert!(named(name, false).is_ok() && named(name, true).is_ok(), "{name}");
        }
        for name in
            ["", "--user", "-H", "a;id", "*", "a\nb", "$(id)", "a'b", "../x", " x", "a|b", "a/b"]
        {
            assert_eq!(named(name, false).unwrap_err().code, Code::InvalidArgument, "{name:?}");
        }
        for name in ["MSSQL$SQLEXPRESS", "it's \"x\" & (y)", "größe 日"] {
            assert!(named(name, true).is_ok(), "{name}");
        }
        for name in ["", " ", "-x", "a*", "?", "a/b", "a\\b", "a\nb"] {
            assert_eq!(named(name, true).unwrap_err().code, Code::InvalidArgument, "{name:?}");
        }
    }
}
