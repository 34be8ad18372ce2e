//! From a new guest to one that can be reached: its steps, and what stands when one fails.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cloudinit;
use crate::{
    Code, Error, Result,
    insight::estate::{Guest, GuestKind, GuestStatus},
    pve::{Params, Vmid, loose},
    render::Answer,
    safety::{Class, Facts, Method, Operation, classify},
    tools::{
        Ctx, Progress, Round,
        change::{AskedTask, Sent, Submitted, on_guest},
        session::Underway,
    },
};

/// A pause between looks at the guest's addresses.
const LOOK: Duration = Duration::from_secs(2);

/// What is done with a guest once it is there.
#[derive(Debug, Default)]
pub struct After {
    /// Cloud-init and other options.
    pub cloudinit: cloudinit::Wanted,
    pub options: Params,
    /// Whether it is started.
    pub start: bool,
    /// Whether an address is waited for.
    pub address: bool,
}

impl After {
    /// Whether the new guest stays as it is.
    pub fn is_nothing(&self) -> bool {
        self.cloudinit.is_empty() && self.options.is_empty() && !self.start && !self.address
    }

    /// Refuses what cannot go together.
    ///
    /// # Errors
    /// `invalid_argument`.
    pub fn check(&self, kind: GuestKind, asked: &AskedTask) -> Result<()> {
        if self.address && !self.start {
            return Err(Error::argument("`wait_address` needs `start`"));
        }
        if kind == GuestKind::Lxc && !self.cloudinit.is_empty() {
            return Err(Error::argument("a container has no cloud-init")
                .hint("its addresses are set by pve_nic_set"));
        }
        if !self.is_nothing() && asked.wait == Some(false) {
            return Err(Error::argument("what comes after the guest is made needs `wait`")
                .hint("leave `wait` out, or make the guest only"));
        }
        Ok(())
    }

    /// The calls that follow, for a guest with this configuration.
    ///
    /// # Errors
    /// `invalid_argument` for values that are none.
    pub fn calls(&self, guest: &Guest, config: &Value) -> Result<Vec<(&'static str, Operation)>> {
        let mut calls = Vec::new();
        let (mut params, gone) = self.cloudinit.params(config)?;
        for (name, value) in self.options.iter() {
            params.set(name, value.clone());
        }
        if !gone.is_empty() {
            params = params.with("delete", gone.join(","));
        }
        if !params.is_empty() {
            let method = if guest.kind == GuestKind::Qemu { Method::Post } else { Method::Put };
            params = params.with_some("digest", loose::text(config, "digest"));
            calls.push(("configure", on_guest(method, guest, &["config"], params)?));
        }
        if self.start {
            calls.push((
                "start",
                on_guest(Method::Post, guest, &["status", "start"], Params::new())?,
            ));
        }
        Ok(calls)
    }

    /// Whether a later step needs a confirmation that cannot be there: nothing
    /// is made for a step that would then be refused. `config` is what the new
    /// guest will begin with.
    ///
    /// # Errors
    /// The refusal that the step would meet.
    pub async fn foresee(
        &self,
        ctx: Ctx<'_>,
        guest: &Guest,
        config: &Value,
        asked: &AskedTask,
        named: bool,
    ) -> Result<()> {
        if asked.dry_run == Some(true) {
            return Ok(());
        }
        for (step, call) in self.calls(guest, config)? {
            if classify(&call, &Facts::default()).class != Class::Critical || step == "start" {
                continue;
            }
            let mut trial = asked.asked();
            trial.dry_run = Some(true);
            if let Err(error) = ctx.submit(call.clone(), &trial).await
                && matches!(
                    error.code,
                    Code::ReadOnly
                        | Code::FlagDisabled
                        | Code::VmidDenied
                        | Code::NodeDenied
                        | Code::SelfLockout
                )
            {
                return Err(error.with("step", step));
            }
            let path = call.path.as_str();
            if asked.confirm.as_deref() != Some(path) {
                let hint = if named {
                    format!("repeat the call with `confirm` set to {path}")
                } else {
                    format!(
                        "repeat the call with `confirm` set to {path}, and with `newid` {}",
                        guest.vmid
                    )
                };
                return Err(Error::new(
                    Code::ConfirmRequired,
                    "the logins that cloud-init would set need a confirmation",
                )
                .hint(hint)
                .with("confirm", path)
                .with("vmid", guest.vmid.get())
                .with("step", step));
            }
        }
        Ok(())
    }

    /// Does what follows after a guest was made; each step that is done is told.
    ///
    /// # Errors
    /// The first that a step answers, with what stands now.
    pub async fn run(
        &self,
        ctx: Ctx<'_>,
        vmid: Vmid,
        made: Sent,
        first: &'static str,
        asked: &AskedTask,
    ) -> Result<Answer> {
        let steps = vec![json!({"step": first, "status": "done"})];
        self.go_on(ctx, Made { vmid, answer: made.answer, steps }, asked).await
    }

    /// The same, where an earlier round of the call may have done some of it.
    ///
    /// # Errors
    /// As [`After::run`].
    pub async fn go_on(&self, ctx: Ctx<'_>, made: Made, asked: &AskedTask) -> Result<Answer> {
        let vmid = made.vmid;
        if !self.is_nothing() && made.answer.get("status").is_some_and(|s| s == "started") {
            let note = "the guest is still being made; its other steps were not begun";
            return Ok(made.told().with("note", note));
        }
        let underway = Underway::new(ctx.session, json!(made));
        let later = Ctx { session: &underway, ..ctx };
        let mut made = made;
        let outcome = self.each(later, &underway, &mut made, asked).await;
        let stands = standing(ctx, vmid).await;
        match outcome {
            Ok(addresses) => {
                let mut answer = made.told().with("after", stands);
                if self.address {
                    let none = addresses.is_empty();
                    answer = answer.with("addresses", addresses);
                    if none {
                        answer = answer.with("status", "started").with(
                            "note",
                            "no address was seen in time; pve_guest_network shows it when it is there",
                        );
                    }
                }
                Ok(answer.untrusted(&["after", "addresses"]))
            }
            Err((step, error)) => Err(alone(step, error)
                .with("step", step)
                .with("steps_done", made.steps)
                .with("vmid", vmid.get())
                .with("after", stands)
                .with(
                    "note",
                    format!("guest {vmid} was made and stands; pve_guest_delete removes it"),
                )),
        }
    }

    async fn each(
        &self,
        ctx: Ctx<'_>,
        underway: &Underway<'_>,
        made: &mut Made,
        asked: &AskedTask,
    ) -> std::result::Result<Vec<String>, (&'static str, Error)> {
        if self.is_nothing() {
            return Ok(Vec::new());
        }
        let begun = Instant::now();
        let found = async {
            let guest = ctx.guest_now(made.vmid).await?;
            let config = ctx.get_below(&guest, &["config"], Params::new()).await?;
            let calls = self.calls(&guest, &config)?;
            Ok((guest, calls))
        };
        let (guest, calls) = found.await.map_err(|e| ("configure", e))?;
        for (step, call) in calls {
            if made.steps.iter().any(|done| done.get("step").is_some_and(|s| s == step)) {
                continue;
            }
            ctx.session.progress(Progress {
                message: format!("{step} guest {}", made.vmid),
                percent: None,
            });
            let done = ctx.run(call, asked).await.map_err(|e| (step, e))?;
            if let Submitted::Sent(sent) = done {
                let status = sent.answer.get("status").cloned().unwrap_or(Value::Null);
                made.steps.push(
                    json!({"step": step, "status": status, "request": sent.answer.get("request")}),
                );
                underway.did(json!(made));
            }
        }
        if !self.address {
            return Ok(Vec::new());
        }
        let end = begun + asked.patience().unwrap_or_default();
        loop {
            let seen = addresses(ctx, &guest).await;
            if !seen.is_empty() || Instant::now() >= end {
                made.steps.push(json!({"step": "address", "status": if seen.is_empty() { "waiting" } else { "done" }}));
                return Ok(seen);
            }
            let cancelled = ctx.session.cancelled();
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = cancelled.cancelled() => return Err(("address", Error::new(Code::Cancelled, "nobody waits for the address any more"))),
            }
        }
    }
}

/// A guest that was made, by this call or an earlier round of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Made {
    /// Its VMID.
    pub vmid: Vmid,
    /// The answer so far.
    answer: Map<String, Value>,
    /// The steps that are done.
    steps: Vec<Value>,
}

impl Made {
    /// What an earlier round of this call has made. A form ends a call, and its
    /// client repeats it with the person's answer: nothing is made a second time.
    ///
    /// # Errors
    /// `approval_expired` where it cannot be known what earlier rounds did.
    pub fn before(ctx: Ctx<'_>) -> Result<Option<Self>> {
        match ctx.session.round() {
            Round::First => Ok(None),
            Round::From(done) => serde_json::from_value(done)
                .map(Some)
                .map_err(|_| Error::internal("what an earlier round did cannot be read")),
            Round::Lost => Err(Error::new(
                Code::ApprovalExpired,
                "the answer came too late, or was for something else; nothing was sent",
            )
            .hint("pve_list_vms shows whether the guest was made; if not, make the call anew")),
        }
    }

    fn told(self) -> Answer {
        let answer = Answer::new(self.answer).heading(format!("guest {}", self.vmid));
        if self.steps.len() > 1 { answer.with("steps", self.steps) } else { answer }
    }
}

/// The error of a step that needs a person elsewhere: to repeat the call would
/// make another guest, so the step is to be made by a call of its own.
fn alone(step: &str, error: Error) -> Error {
    if !matches!(error.code, Code::ApprovalExpired | Code::ApprovalRequired) {
        return error;
    }
    let tools = match step {
        "start" => "pve_guest_start",
        _ => "pve_cloudinit_set or pve_guest_config_set, then pve_guest_start",
    };
    let hint = format!(
        "{}; the guest is there, do not make it again: continue with {tools}",
        error.advice()
    );
    error.hint(hint)
}

/// The guest in few words, as it is now.
async fn standing(ctx: Ctx<'_>, vmid: Vmid) -> Value {
    match ctx.guest_now(vmid).await {
        Ok(g) => json!({
            "vmid": vmid, "name": g.name, "type": g.kind.as_str(), "node": &*g.node,
            "status": g.status.as_str(),
        }),
        Err(error) if error.code == Code::NotFound => json!({"exists": false}),
        Err(_) => Value::Null,
    }
}

/// Addresses by which others reach the guest: none of the loopback or the link.
async fn addresses(ctx: Ctx<'_>, guest: &Guest) -> Vec<String> {
    let below: &[&str] = match guest.kind {
        GuestKind::Qemu => &["agent", "network-get-interfaces"],
        GuestKind::Lxc => &["interfaces"],
    };
    let Ok(answer) = ctx.get_below(guest, below, Params::new()).await else { return Vec::new() };
    let rows = answer.get("result").unwrap_or(&answer);
    let mut found = Vec::new();
    for interface in loose::rows(rows) {
        let listed = interface.get("ip-addresses").map_or(&[][..], |a| loose::rows(a));
        let named = listed.iter().filter_map(|a| loose::text(a, "ip-address"));
        let short = ["inet", "inet6"].into_iter().filter_map(|k| loose::text(interface, k));
        for address in named.chain(short) {
            let bare = address.split('/').next().unwrap_or_default().to_owned();
            if reachable(&bare) && !found.contains(&bare) {
                found.push(bare);
            }
        }
    }
    found
}

fn reachable(address: &str) -> bool {
    match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(ip)) => {
            !ip.is_loopback() && !ip.is_link_local() && !ip.is_unspecified()
        }
        Ok(std::net::IpAddr::V6(ip)) => {
            !ip.is_loopback() && !ip.is_unicast_link_local() && !ip.is_unspecified()
        }
        Err(_) => false,
    }
}

/// The guest that will be there, for the paths of what follows.
pub fn future_guest(vmid: Vmid, kind: GuestKind, node: &str) -> Guest {
    Guest {
        vmid,
        kind,
        node: node.into(),
        name: String::new(),
        status: GuestStatus::Stopped,
        template: false,
        raw_tags: String::new(),
        pool: None,
        cpu: None,
        maxcpu: None,
        mem: None,
        maxmem: None,
        memhost: None,
        disk: None,
        maxdisk: None,
        uptime: 0,
        lock: None,
        hastate: None,
    }
}

/// What a dry run says of the calls that would follow.
///
/// # Errors
/// As [`After::calls`].
pub fn told_ahead(after: &After, guest: &Guest, config: &Value) -> Result<Vec<Value>> {
    let calls = after.calls(guest, config)?;
    Ok(calls
        .into_iter()
        .map(|(step, call)| {
            let mut out = Map::new();
            out.insert("step".into(), step.into());
            out.insert("method".into(), call.method.as_str().into());
            out.insert("path".into(), call.path.as_str().into());
            out.insert("params".into(), call.params.to_json());
            out.insert("class".into(), classify(&call, &Facts::default()).class.as_str().into());
            Value::Object(out)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::reachable;

    #[test]
    fn addresses_that_others_reach() {
        for (address, good) in [
            ("10.0.0.5", true),
            ("2001:db8::5", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("169.254.1.1", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
            ("not an address", false),
        ] {
            assert_eq!(reachable(address), good, "{address}");
        }
    }
}
