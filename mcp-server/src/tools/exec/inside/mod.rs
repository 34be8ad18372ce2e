//! The way into a guest: a container's through the guard of its node, a VM's
//! through its agent. Files and services are reached by fixed scripts for the
//! guest's own shell; whatever varies reaches them as arguments or input.

use crate::{
    Code, Error, Result,
    pve::GuestKind,
    safety::deed::{Place, Step},
    tools::{Ctx, deeds::Doing},
};

pub(super) mod agent;
pub(super) mod container;
pub(super) mod output;
mod reply;

pub(super) use reply::{Reply, found};

/// How a program in a guest ended.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// Absent where a signal ended it, or where it has not ended.
    pub exit_code: Option<i64>,
    pub signal: Option<i64>,
    pub stdout: output::Stream,
    pub stderr: output::Stream,
    pub timed_out: bool,
    pub duration_ms: u64,
    /// Processes that it left running, where that is known.
    pub background: Option<u32>,
    /// The process as the agent numbers it.
    pub pid: Option<i64>,
    /// The guest went down or started anew before the end was told.
    pub guest_down: Option<&'static str>,
    /// What else the reader should know.
    pub notes: Vec<String>,
}

/// What a step is given.
#[derive(Debug)]
pub(super) struct Given {
    /// Its input. Only a container takes some.
    pub stdin: Option<Vec<u8>>,
    /// Seconds until it is ended.
    pub timeout_s: u64,
    /// Most bytes of its output.
    pub room: u64,
}

impl Default for Given {
    fn default() -> Self {
        Self { stdin: None, timeout_s: 60, room: 64 << 10 }
    }
}

/// How to reach a guest.
#[derive(Debug)]
pub(super) enum Way {
    /// Through the guard.
    Guard,
    /// Through the agent, which tells this of itself.
    Agent(agent::Agent),
}

impl Way {
    /// Finds out how a guest is reached, and whether it can be now.
    pub async fn to(ctx: Ctx<'_>, place: &Place) -> Result<Self> {
        match place.kind {
            GuestKind::Lxc => Ok(Self::Guard),
            GuestKind::Qemu => agent::Agent::ready(ctx, place).await.map(Self::Agent),
        }
    }

    /// Whether Windows runs in it.
    pub const fn windows(&self) -> bool {
        matches!(self, Self::Agent(agent) if agent.windows)
    }

    /// Whether programs can be run in it.
    ///
    /// # Errors
    /// `agent_unavailable` with the reason and what mends it.
    pub fn runs(&self) -> Result<()> {
        match self {
            Self::Guard => Ok(()),
            Self::Agent(agent) => agent.may("guest-exec"),
        }
    }

    /// Whether an error of a step says that the guest cannot run it at all:
    /// it has no shell, or one that did not understand it.
    pub fn has_no_tools(&self, error: &Error) -> bool {
        matches!(self, Self::Agent(_))
            && (error.details.get("reason").is_some_and(|r| r == reply::NO_TOOLS)
                || agent::may_be_missing(error))
    }

    /// Does a step in the guest, to its end.
    ///
    /// # Errors
    /// What the way there met; `outcome_unknown` for a step that did not end.
    pub async fn run(
        &self,
        ctx: Ctx<'_>,
        place: &Place,
        doing: &Doing,
        step: &Step<'_>,
        given: Given,
    ) -> Result<Reply> {
        let name = step.name();
        let ran = match self {
            Self::Guard => container::step(ctx, doing, step, given).await?,
            Self::Agent(agent) => {
                agent::step(ctx, place, doing, step, agent.windows, &given).await?
            }
        };
        if ran.timed_out || ran.guest_down.is_some() {
            let why = ran.guest_down.unwrap_or("it did not end in time");
            return Err(Error::new(
                Code::OutcomeUnknown,
                format!("{name} in guest {}: {why}", place.vmid),
            )
            .hint("look at the object in the guest before anything is repeated")
            .with("pid", ran.pid));
        }
        Reply::read(name, place, self.windows(), &ran)
    }
}
