//! Leave to do one deed: it gives out the permits that the deed needs, and no others.

use pve_guard::protocol::Verb;

use super::{Deed, GuardPermit, GuestKind, Permit, Place};
use crate::{
    Error, Result,
    pve::{ApiPath, Params},
    safety::{Method, Operation, Trail},
};

/// Leave to do one deed. Only the gate makes one.
///
/// Of a command it gives out exactly what was judged. Files and services take
/// several steps: for those it gives out commands in that one guest, and which
/// they are is up to the tool.
///
/// ```compile_fail
/// use proxmox_mcp::safety::{Deed, Leave, Trail};
///
/// fn a_tool_that_permits_itself(deed: Deed, trail: Trail) -> Leave {
///     Leave { deed, trail }
/// }
/// ```
#[derive(Debug)]
pub struct Leave {
    deed: Deed,
    trail: Trail,
}

impl Leave {
    pub(super) fn new(deed: Deed, trail: Trail) -> Self {
        Self { deed, trail }
    }

    /// What may be done.
    #[must_use]
    pub const fn deed(&self) -> &Deed {
        &self.deed
    }

    /// What the record of the outcome hangs on.
    #[must_use]
    pub fn trail(&self) -> Trail {
        self.trail.clone()
    }

    /// A request to the guard of the node that is meant.
    ///
    /// # Errors
    /// `internal` for a request that is not part of this deed.
    pub fn guard(&self, verb: Verb) -> Result<GuardPermit> {
        let agreed = match (&self.deed, &verb) {
            (Deed::Command { place, run }, Verb::PctExec(exec)) => {
                in_container(place, exec.vmid)
                    && exec.argv == run.argv(false)?
                    && exec.stdin == run.stdin.is_some()
            }
            (
                Deed::FileRead { place, .. }
                | Deed::FileList { place, .. }
                | Deed::FileWrite { place, .. }
                | Deed::Service { place, .. },
                Verb::PctExec(exec),
            ) => in_container(place, exec.vmid),
            (Deed::UpgradeRefresh { .. }, Verb::UpgradeSimulate { refresh: true }) => true,
            (Deed::UpgradeStart { plan, .. }, Verb::UpgradeStart { plan: wanted }) => {
                plan == wanted
            }
            (
                Deed::KernelPin { version, next_boot, .. },
                Verb::KernelPin { version: wanted, next_boot: once },
            ) => version == wanted && next_boot == once,
            (Deed::KernelUnpin { next_boot, .. }, Verb::KernelUnpin { next_boot: once }) => {
                next_boot == once
            }
            _ => false,
        };
        if !agreed {
            return Err(Error::internal(format!(
                "{} is not what was agreed to",
                verb.name().as_str()
            )));
        }
        GuardPermit::grant(self.deed.node().clone(), verb)
    }

    /// A question to the guest agent: how a command stands.
    ///
    /// # Errors
    /// `internal` for a deed that is not in a VM.
    pub fn agent_status(&self, pid: u64) -> Result<Permit> {
        self.agent_get("exec-status", Params::new().with("pid", pid))
    }

    /// A question to the guest agent: a part of the file that is to be read.
    /// The bytes come as base64.
    ///
    /// # Errors
    /// `internal` for a deed that reads no file of a VM.
    pub fn agent_read(&self, offset: u64, count: u64) -> Result<Permit> {
        let Deed::FileRead { path, .. } = &self.deed else {
            return Err(Error::internal("reading a file is not part of this"));
        };
        let params = Params::new()
            .with("file", path)
            .with("offset", offset)
            .with("count", count)
            .with_bool("decode", false);
        self.agent_get("file-read", params)
    }

    fn agent_get(&self, call: &str, params: Params) -> Result<Permit> {
        let place = self.deed.place().filter(|p| p.kind == GuestKind::Qemu);
        let Some(place) = place else {
            return Err(Error::internal("this is not in a VM"));
        };
        let vmid = place.vmid.to_string();
        let path = ApiPath::of(&["nodes", place.node.as_str(), "qemu", &vmid, "agent", call])?;
        Ok(Permit::new(Operation { method: Method::Get, path, params }, self.trail.clone()))
    }

    /// A call of the guest agent: `exec`.
    ///
    /// # Errors
    /// `internal` for a call that is not part of this deed.
    pub fn agent(&self, call: &str, params: Params) -> Result<Permit> {
        let place = self.deed.place().filter(|p| p.kind == GuestKind::Qemu);
        let (Some(place), "exec") = (place, call) else {
            return Err(Error::internal(format!("agent {call} is not part of this")));
        };
        if let Deed::Command { run, .. } = &self.deed {
            let argv = params.get("command").map(|v| v.values().to_vec()).unwrap_or_default();
            if call != "exec" || argv != run.argv(true)? {
                return Err(Error::internal("the command is not what was agreed to"));
            }
            let input = run.stdin.as_deref().map(as_code_points);
            if params.text("input-data") != input.as_deref() {
                return Err(Error::internal("the input is not what was agreed to"));
            }
        }
        let vmid = place.vmid.to_string();
        let path = ApiPath::of(&["nodes", place.node.as_str(), "qemu", &vmid, "agent", call])?;
        let operation = Operation { method: Method::Post, path, params };
        Ok(Permit::new(operation, self.trail.clone()))
    }
}

fn in_container(place: &Place, vmid: i64) -> bool {
    place.kind == GuestKind::Lxc && i64::from(place.vmid.get()) == vmid
}

/// Bytes as the agent calls take them: one character of U+0000 to U+00FF each.
#[must_use]
pub fn as_code_points(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(*b)).collect()
}
