//! Leave to do one deed: it gives out the permits that the deed needs, and no others.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use pve_guard::protocol::{PctExec, Verb};

use super::{
    Deed, GuardPermit, GuestKind, Permit, Place,
    script::{self, Step, System},
    windows,
};
use crate::{
    Error, Result,
    pve::{ApiPath, NodeName, Params},
    safety::{Method, Operation, Trail},
};

/// Leave to do one deed. Only the gate makes one.
///
/// Of a command it gives out exactly what was judged. Files and services take
/// several steps: for those it gives out the fixed scripts of [`Step`], each with
/// the file or service that was judged, and no command of any other kind.
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

/// What a step in a container may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Seconds until it is ended.
    pub timeout_s: u64,
    /// Most bytes of each of its two outputs that are kept.
    pub max_output: u64,
    /// Whether it is given input.
    pub stdin: bool,
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

    /// A step in a container.
    ///
    /// # Errors
    /// `internal` for a step that is not part of this deed.
    pub fn guard_step(&self, step: &Step<'_>, within: Limits) -> Result<GuardPermit> {
        let place = self.deed.place().filter(|place| place.kind == GuestKind::Lxc);
        let Some(place) = place else {
            return Err(Error::internal("this is not in a container"));
        };
        let exec = PctExec {
            vmid: i64::from(place.vmid.get()),
            // A VMID can be given to another container at any time.
            hostname: (!place.name.is_empty()).then(|| place.name.clone()),
            argv: step.argv(&self.deed, System::Container)?,
            timeout_s: within.timeout_s,
            max_output: within.max_output,
            stdin: within.stdin,
        };
        GuardPermit::grant(place.node.clone(), Verb::PctExec(exec))
    }

    /// A question to the guest agent: how a command stands, asked of the node
    /// where the VM is by now.
    ///
    /// # Errors
    /// `internal` for a deed that is not in a VM.
    pub fn agent_status(&self, node: &NodeName, pid: i64) -> Result<Permit> {
        self.agent_call_on(node, Method::Get, "exec-status", Params::new().with("pid", pid))
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
        self.agent_call(Method::Get, "file-read", params)
    }

    /// The start of the command by the guest agent, with exactly its input.
    ///
    /// # Errors
    /// `internal` for a deed that is no command in a VM; `invalid_argument`
    /// for one that the agent does not take.
    pub fn agent_exec(&self) -> Result<Permit> {
        let Deed::Command { run, .. } = &self.deed else {
            return Err(Error::internal("a command is not part of this"));
        };
        self.agent_call(Method::Post, "exec", exec_params(&run.argv(true)?, run.stdin.as_deref()))
    }

    /// A step in a VM, by the guest agent.
    ///
    /// # Errors
    /// `internal` for a step that is not part of this deed.
    pub fn agent_step(&self, step: &Step<'_>, windows: bool) -> Result<Permit> {
        let system = if windows { System::Windows } else { System::Vm };
        let argv = step.argv(&self.deed, system)?;
        self.agent_call(Method::Post, "exec", exec_params(&argv, None))
    }

    /// A piece of the file that is to be written, for the room of that name;
    /// Windows has told where that is.
    ///
    /// # Errors
    /// `internal` for a deed that writes no file of a VM, or for another place.
    pub fn agent_piece(
        &self,
        name: &str,
        room: Option<&str>,
        number: usize,
        piece: &[u8],
    ) -> Result<Permit> {
        // Only in a room that this deed can have made.
        Step::Room { name }.argv(&self.deed, System::Vm)?;
        let file = match room {
            None => format!("{}/{number:05}.piece", script::room(name)),
            Some(room) if windows::is_room(room, name) => format!("{room}\\{number:05}.piece"),
            Some(room) => return Err(Error::internal(format!("{room:?} is no room for pieces"))),
        };
        let params = Params::new()
            .with("file", file)
            .with("content", STANDARD.encode(piece))
            .with_bool("encode", false);
        self.agent_call(Method::Post, "file-write", params)
    }

    fn agent_call(&self, method: Method, call: &str, params: Params) -> Result<Permit> {
        self.agent_call_on(self.deed.node(), method, call, params)
    }

    fn agent_call_on(
        &self,
        node: &NodeName,
        method: Method,
        call: &str,
        params: Params,
    ) -> Result<Permit> {
        let place = self.deed.place().filter(|place| place.kind == GuestKind::Qemu);
        let Some(place) = place else {
            return Err(Error::internal("this is not in a VM"));
        };
        let vmid = place.vmid.to_string();
        let path = ApiPath::of(&["nodes", node.as_str(), "qemu", &vmid, "agent", call])?;
        Ok(Permit::new(Operation { method, path, params }, self.trail.clone()))
    }
}

/// The parameters by which the guest agent starts a program.
#[must_use]
pub fn exec_params(argv: &[String], stdin: Option<&[u8]>) -> Params {
    Params::new().with_many("command", argv).with_some("input-data", stdin.map(as_code_points))
}

fn in_container(place: &Place, vmid: i64) -> bool {
    place.kind == GuestKind::Lxc && i64::from(place.vmid.get()) == vmid
}

/// Bytes as the agent calls take them: one character of U+0000 to U+00FF each.
#[must_use]
pub fn as_code_points(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(*b)).collect()
}
