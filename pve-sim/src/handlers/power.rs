//! Starting, stopping and the like. Much of what goes wrong shows only in the task.

use super::Route;
use super::guests::missing;
use crate::api::call::{Answer, Call};
use crate::api::failure::Failure;
use crate::state::State;
use crate::state::guest::{Guest, Kind};
use crate::state::task::{self, Plan};

pub(crate) const ROUTES: &[Route] = &[
    ("POST", "/nodes/{node}/qemu/{vmid}/status/start", |c| start(c, Kind::Qemu)),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/stop", |c| stop(c, Kind::Qemu)),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/shutdown", |c| shutdown(c, Kind::Qemu)),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/reboot", |c| reboot(c, Kind::Qemu)),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/reset", reset),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/suspend", |c| suspend(c, Kind::Qemu)),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/resume", |c| resume(c, Kind::Qemu)),
    ("POST", "/nodes/{node}/lxc/{vmid}/status/start", |c| start(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/lxc/{vmid}/status/stop", |c| stop(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/lxc/{vmid}/status/shutdown", |c| shutdown(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/lxc/{vmid}/status/reboot", |c| reboot(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/lxc/{vmid}/status/suspend", |c| suspend(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/lxc/{vmid}/status/resume", |c| resume(c, Kind::Lxc)),
    ("POST", "/nodes/{node}/startall", |c| all(c, "startall", true)),
    ("POST", "/nodes/{node}/stopall", |c| all(c, "stopall", false)),
    ("POST", "/nodes/{node}/suspendall", |c| all(c, "suspendall", false)),
    ("POST", "/cluster/bulk-action/guest/start", |c| bulk(c, "start", true)),
    ("POST", "/cluster/bulk-action/guest/shutdown", |c| bulk(c, "shutdown", false)),
];

/// How long each takes, milliseconds.
const START: i64 = 500;
const STOP: i64 = 250;
const SHUTDOWN: i64 = 900;

/// The lock of a guest as an error.
pub(super) fn lock_error(guest: &Guest) -> Option<String> {
    guest.lock().map(|l| format!("{} is locked ({l})", guest.kind.short()))
}

/// The guest for a change that has to find it unlocked.
pub(super) fn unlocked<'a>(
    state: &'a mut State,
    node: &str,
    vmid: u32,
    kind: Kind,
) -> Result<&'a mut Guest, String> {
    let found = state.guests.get_mut(&vmid).filter(|g| g.kind == kind && g.node == node);
    let guest = found.ok_or_else(|| missing(kind, node, vmid))?;
    match lock_error(guest) {
        Some(text) => Err(text),
        None => Ok(guest),
    }
}

fn running(c: &Call<'_>, kind: Kind) -> bool {
    c.state
        .guests
        .get(&c.vmid())
        .is_some_and(|g| g.kind == kind && g.node == c.node() && g.running())
}

/// Whether the HA manager decides over a guest.
fn managed(c: &Call<'_>) -> bool {
    c.state.guests.get(&c.vmid()).is_some_and(|g| c.state.ha_state(g).is_some())
}

/// Asks the HA manager, which carries it out a little later.
fn ask_ha(c: &mut Call<'_>, kind: Kind, wanted: &'static str) -> Answer {
    let (node, vmid) = (c.node(), c.vmid());
    let task = if wanted == "started" { "hastart" } else { "hastop" };
    let sid = format!("{}:{vmid}", kind.short().to_lowercase());
    c.spawn(task, &vmid.to_string(), 200, move |state, now| {
        if let Some(resource) = state.ha_resources.get_mut(&sid) {
            resource.insert("state".to_owned(), wanted.into());
        }
        let what = if wanted == "started" { "start" } else { "shutdown" };
        let plan =
            Plan::new(&node.clone(), &kind.task(what), &vmid.to_string(), START, move |s, now| {
                if wanted == "started" {
                    do_start(s, &node, vmid, kind, now)
                } else {
                    do_stop(s, &node, vmid, kind)
                }
            });
        task::start(state, "root@pam", now, plan);
        Ok(vec![format!("Requesting HA {what} for {} {vmid}", kind.short())])
    })
}

fn do_start(
    state: &mut State,
    node: &str,
    vmid: u32,
    kind: Kind,
    now: i64,
) -> Result<Vec<String>, String> {
    let pid = state.tasks.pid();
    let guest = unlocked(state, node, vmid, kind)?;
    if guest.template() {
        let article = if kind == Kind::Qemu { "vm" } else { "CT" };
        return Err(format!("you can't start a {article} if it's a template"));
    }
    if guest.running() {
        return Err(format!("{} {vmid} already running", kind.short()));
    }
    guest.start(now.div_euclid(1000), pid);
    Ok(Vec::new())
}

fn do_stop(state: &mut State, node: &str, vmid: u32, kind: Kind) -> Result<Vec<String>, String> {
    unlocked(state, node, vmid, kind)?.stop();
    Ok(Vec::new())
}

fn start(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid) = (c.node(), c.vmid());
    if kind == Kind::Lxc && running(c, kind) {
        return Err(Failure::died(format!("CT {vmid} already running")));
    }
    if managed(c) {
        return ask_ha(c, kind, "started");
    }
    c.spawn(&kind.task("start"), &vmid.to_string(), START, move |s, now| {
        do_start(s, &node, vmid, kind, now)
    })
}

fn stop(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid) = (c.node(), c.vmid());
    if kind == Kind::Lxc && !running(c, kind) {
        return Err(Failure::died(format!("CT {vmid} not running")));
    }
    if managed(c) {
        return ask_ha(c, kind, "stopped");
    }
    c.spawn(&kind.task("stop"), &vmid.to_string(), STOP, move |s, _| do_stop(s, &node, vmid, kind))
}

fn shutdown(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid) = (c.node(), c.vmid());
    if kind == Kind::Lxc && !running(c, kind) {
        return Err(Failure::died(format!("CT {vmid} not running")));
    }
    if managed(c) {
        return ask_ha(c, kind, "stopped");
    }
    let force = c.flag("forceStop");
    let deaf = c.state.guests.get(&vmid).is_some_and(|g| g.stubborn && g.running());
    let takes = if deaf { c.int("timeout").unwrap_or(60) * 1000 } else { SHUTDOWN };
    c.spawn(&kind.task("shutdown"), &vmid.to_string(), takes, move |s, _| {
        let guest = unlocked(s, &node, vmid, kind)?;
        if guest.stubborn && guest.running() && !force {
            return Err("VM quit/powerdown failed - got timeout".to_owned());
        }
        guest.stop();
        let forced = guest.stubborn && force;
        Ok(if forced {
            vec!["VM still running - terminating now with SIGTERM".to_owned()]
        } else {
            Vec::new()
        })
    })
}

/// The error for what only a running guest can do.
fn not_running(c: &Call<'_>, kind: Kind) -> Result<(), Failure> {
    super::guests::find(c.state, &c.node(), c.vmid(), kind)?;
    if running(c, kind) {
        return Ok(());
    }
    Err(Failure::died(format!("{} {} not running", kind.short(), c.vmid())))
}

fn reboot(c: &mut Call<'_>, kind: Kind) -> Answer {
    not_running(c, kind)?;
    let (node, vmid) = (c.node(), c.vmid());
    c.spawn(&kind.task("reboot"), &vmid.to_string(), SHUTDOWN + START, move |s, now| {
        let pid = s.tasks.pid();
        let guest = unlocked(s, &node, vmid, kind)?;
        if guest.stubborn {
            return Err("VM quit/powerdown failed - got timeout".to_owned());
        }
        guest.stop();
        guest.start(now.div_euclid(1000), pid);
        Ok(Vec::new())
    })
}

fn reset(c: &mut Call<'_>) -> Answer {
    not_running(c, Kind::Qemu)?;
    let (node, vmid) = (c.node(), c.vmid());
    // The process goes on: its age stays, and pending changes stay pending.
    c.spawn("qmreset", &vmid.to_string(), 60, move |s, _| {
        unlocked(s, &node, vmid, Kind::Qemu).map(|_| Vec::new())
    })
}

fn suspend(c: &mut Call<'_>, kind: Kind) -> Answer {
    not_running(c, kind)?;
    let (node, vmid) = (c.node(), c.vmid());
    let to_disk = c.flag("todisk");
    let name = kind.task("suspend");
    c.spawn(&name, &vmid.to_string(), if to_disk { 2000 } else { 100 }, move |s, now| {
        let guest = unlocked(s, &node, vmid, kind)?;
        if to_disk {
            guest.run = None;
            guest.set_lock("suspended", now.div_euclid(1000));
        } else if let Some(run) = guest.run.as_mut() {
            run.paused = true;
        }
        Ok(Vec::new())
    })
}

fn resume(c: &mut Call<'_>, kind: Kind) -> Answer {
    let (node, vmid) = (c.node(), c.vmid());
    let guest = super::guests::find(c.state, &node, vmid, kind)?;
    let from_disk = guest.lock() == Some("suspended");
    if !from_disk {
        not_running(c, kind)?;
    }
    c.spawn(&kind.task("resume"), &vmid.to_string(), 100, move |s, now| {
        let pid = s.tasks.pid();
        let Some(guest) = s.guests.get_mut(&vmid).filter(|g| g.node == node) else {
            return Err(missing(kind, &node, vmid));
        };
        if guest.lock() == Some("suspended") {
            guest.unlock();
            guest.start(now.div_euclid(1000), pid);
        } else if let Some(run) = guest.run.as_mut() {
            run.paused = false;
        }
        Ok(Vec::new())
    })
}

/// Starting or stopping many guests.
struct Bulk {
    /// Only guests of this node.
    node: Option<String>,
    /// Only these; empty for all that it concerns.
    only: Vec<u32>,
    start: bool,
    /// Also guests that do not start on boot.
    force: bool,
    /// Warn of guests that are already as they should be.
    warn: bool,
}

impl Bulk {
    fn concerns(&self, guest: &Guest) -> bool {
        let here = self.node.as_ref().is_none_or(|n| guest.node == *n);
        let named = if self.only.is_empty() {
            !self.start || self.force || guest.config.on("onboot")
        } else {
            self.only.contains(&guest.vmid)
        };
        here && named && !guest.template()
    }

    fn run(&self, state: &mut State, now: i64) -> Vec<String> {
        let mut lines = Vec::new();
        let concerned: Vec<(u32, Kind, String, bool)> = state
            .guests
            .values()
            .filter(|g| self.concerns(g))
            .map(|g| (g.vmid, g.kind, g.node.clone(), g.running()))
            .collect();
        for (vmid, kind, node, running) in concerned {
            let noun = kind.short();
            if running == self.start {
                let word = if self.start { "already" } else { "not" };
                lines.extend(self.warn.then(|| format!("WARN: {noun} {vmid} is {word} running")));
                continue;
            }
            let what = if self.start { "Starting" } else { "Stopping" };
            lines.push(format!("{what} {noun} {vmid}"));
            let result = if self.start {
                do_start(state, &node, vmid, kind, now)
            } else {
                do_stop(state, &node, vmid, kind)
            };
            lines.extend(result.err());
        }
        lines
    }
}

fn ids(c: &Call<'_>, name: &str) -> Vec<u32> {
    c.list(name).iter().filter_map(|v| v.parse().ok()).collect()
}

fn all(c: &mut Call<'_>, kind: &'static str, start: bool) -> Answer {
    let node = c.node();
    let only = ids(c, "vms");
    let force = c.flag("force");
    if only.is_empty() {
        c.demand("/vms", &["VM.PowerMgmt"])?;
    }
    for vmid in &only {
        c.demand(&format!("/vms/{vmid}"), &["VM.PowerMgmt"])?;
    }
    let bulk = Bulk { node: Some(node), only, start, force, warn: false };
    c.spawn(kind, "", START, move |s, now| Ok(bulk.run(s, now)))
}

fn bulk(c: &mut Call<'_>, what: &'static str, start: bool) -> Answer {
    let only = ids(c, "vms");
    for vmid in &only {
        c.demand(&format!("/vms/{vmid}"), &["VM.PowerMgmt"])?;
    }
    let node = c.state.local.clone();
    let bulk = Bulk { node: None, only, start, force: true, warn: true };
    c.start(Plan::new(
        &node,
        &format!("bulk-{what}"),
        "",
        START,
        move |s, now| Ok(bulk.run(s, now)),
    ))
}
