//! What is done in a guest or by a node's guard, on its way: through the gate,
//! done, and recorded however it ends.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Ctx,
    change::{Asked, dry_run},
};
use crate::{
    Code, Error, Result,
    app::App,
    node::GuardPermit,
    pve::Vmid,
    render::Answer,
    safety::{Deed, Fresh, Leave, Outcome, deed::Place},
};

/// What the gate made of a deed.
pub enum Allowed {
    /// Nothing is done: what would be.
    DryRun(Answer),
    /// It may be done.
    Leave(Box<Doing>),
}

/// A deed that may be done. What became of it is recorded once: by
/// [`Doing::finish`], or as unknown when the call ends before that.
pub struct Doing {
    app: Arc<App>,
    leave: Leave,
    finished: bool,
}

impl Doing {
    /// A request to the guard, as the leave allows it.
    ///
    /// # Errors
    /// `internal` for what is not part of the deed.
    pub fn guard(&self, verb: pve_guard::protocol::Verb) -> Result<GuardPermit> {
        self.leave.guard(verb)
    }

    /// What may be done.
    pub const fn leave(&self) -> &Leave {
        &self.leave
    }

    /// Class and category, as answers tell them, with the number of the record.
    pub fn told(&self) -> serde_json::Map<String, Value> {
        let trail = self.leave.trail();
        let mut told = serde_json::Map::new();
        told.insert("class".into(), trail.class.into());
        told.insert("category".into(), trail.category.into());
        if trail.id > 0 {
            told.insert("audit_id".into(), trail.id.into());
        }
        told
    }

    /// Records how it ended. Answers a warning where that could not be recorded.
    pub fn finish(mut self, result: &Result<Value>) -> Option<String> {
        self.finished = true;
        self.app.sent(&self.leave.trail(), result).err().map(|error| error.message)
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let ended = Error::new(Code::OutcomeUnknown, "the call ended before its answer came");
        if let Err(error) = self.app.sent(&self.leave.trail(), &Err(ended)) {
            tracing::warn!(%error, "the end of a command was not recorded");
        }
    }
}

impl Ctx<'_> {
    /// Puts a deed before the gate.
    ///
    /// # Errors
    /// The gate's refusal.
    pub async fn allow(self, deed: Deed, asked: &Asked) -> Result<Allowed> {
        let client = self.session.client();
        let caller = self.caller(&client, asked);
        let state = Fresh(&self.app.pve);
        let leave = match self.app.gate.check(deed, &caller, &state).await? {
            Outcome::Permit(leave) => *leave,
            Outcome::DryRun(plan) => return Ok(Allowed::DryRun(self.warned(dry_run(*plan)))),
            Outcome::Read(_) => return Err(Error::internal("a deed is never a plain read")),
            Outcome::Ask(pending) => {
                let said = self.ask(&pending.text, &pending.digest).await?;
                self.app.gate.answer(*pending, said, &state).await?
            }
        };
        self.app.sending(&leave.trail());
        Ok(Allowed::Leave(Box::new(Doing { app: self.app.clone(), leave, finished: false })))
    }

    /// The guest in which something is to be done, as it is now.
    ///
    /// # Errors
    /// `not_found`, `vmid_denied`.
    pub async fn place(self, vmid: Vmid) -> Result<Place> {
        let guest = self.guest_now(vmid).await?;
        Ok(Place {
            node: crate::pve::NodeName::parse(&guest.node)?,
            kind: guest.kind,
            vmid,
            name: guest.name.clone(),
        })
    }
}
