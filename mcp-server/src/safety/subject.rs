//! What can be put before the gate, and what is found out about it.

use serde_json::{Value, json};

use super::{
    Class, Facts, Flag, Operation, Permit, Trail,
    binding::{bound, call_of},
    impact,
    judge::{Judgement, judge},
    live,
    redact::Redactor,
};
use crate::{Result, config::Config};

/// A change that the gate can judge: an [`Operation`] of the API, or a
/// [`Deed`](super::Deed) inside a guest or by a node's guard.
pub trait Subject: Sized + Send + Sync {
    /// What lets it be done, once.
    type Leave;
    /// Whether what only reads passes without leave and without a record.
    const READS_PASS: bool;

    /// Runs the checks over what is known so far.
    fn judge(&self, config: &Config, facts: &Facts) -> Judged;

    /// How it is told in answers, forms and records, secrets masked.
    fn shown(&self, judged: &Judged, redactor: &Redactor) -> Shown;

    /// As it was judged, which is what will be done.
    ///
    /// # Errors
    /// What cannot be read in it.
    fn settled(self, judged: &Judged) -> Result<Self>;

    /// The leave for it. Only the gate calls this.
    fn leave(self, trail: Trail, _: Seal) -> Self::Leave;
}

/// Nobody outside of this room can make one, so nobody else can make a leave.
#[derive(Debug)]
pub struct Seal(());

impl Seal {
    /// For the gate.
    pub(super) const fn new() -> Self {
        Self(())
    }
}

/// What was found out about a subject.
#[derive(Debug)]
pub struct Judged {
    /// Class, categories, guests touched, and the first refusal.
    pub judgement: Judgement,
    /// What the state of the object itself forbids.
    pub live: Result<()>,
    /// The exact text that `confirm` has to be, where one is needed.
    pub confirm: Option<String>,
    /// The present state of the guest.
    pub state: Option<Value>,
    /// What hangs on it, one line each.
    pub impact: Vec<String>,
    /// How to undo it.
    pub undo: String,
    /// The text whose digest a yes holds for.
    pub bound: String,
}

impl Judged {
    /// With a judgement and nothing else.
    #[must_use]
    pub fn of(judgement: Judgement) -> Self {
        Self {
            judgement,
            live: Ok(()),
            confirm: None,
            state: None,
            impact: Vec::new(),
            undo: String::new(),
            bound: String::new(),
        }
    }
}

/// How a subject is told.
#[derive(Debug, Clone)]
pub struct Shown {
    /// HTTP method, or `EXEC`, or a verb of the guard.
    pub method: &'static str,
    /// Canonical path, or one in the same form that names the object.
    pub path: String,
    /// Masked parameters.
    pub params: Value,
    /// Lines of the form that stand for the parameters, where those are better told in words.
    pub lines: Vec<String>,
}

impl Shown {
    /// `method`, `path` and `params`, as answers tell them.
    #[must_use]
    pub fn request(&self) -> Value {
        json!({"method": self.method, "path": self.path, "params": self.params})
    }
}

/// Whether a node is started anew.
fn restarts_node(op: &Operation) -> bool {
    let node = matches!(op.path.segments().collect::<Vec<_>>().as_slice(), ["nodes", _, "status"]);
    node && op.params.text("command") == Some("reboot")
}

impl Subject for Operation {
    type Leave = Permit;
    const READS_PASS: bool = true;

    fn judge(&self, config: &Config, facts: &Facts) -> Judged {
        let judgement = judge(self, config, facts);
        // Nothing more is asked for what is refused, or is only read.
        if judgement.refusal.is_some() || judgement.class.class == Class::Read {
            return Judged::of(judgement);
        }
        let params = judgement.class.params.clone().unwrap_or_default();
        let call = call_of(self, &params, facts);
        let impact = call
            .as_ref()
            .filter(|_| judgement.class.class > Class::Write)
            .map(impact::lines)
            .unwrap_or_default();
        let agreed = call.as_ref().map(|call| impact::agreed(call, &impact)).unwrap_or_default();
        Judged {
            live: call.as_ref().map_or(Ok(()), live::check),
            confirm: judgement.confirm(&self.path).map(str::to_owned),
            state: call.as_ref().and_then(live::describe),
            undo: if restarts_node(self) {
                "the node starts again by itself".to_owned()
            } else if judgement.class.categories.contains(&Flag::VolumeDelete) {
                "no undo: the data is gone".to_owned()
            } else {
                impact::undo_hint(self.method, judgement.class.template.unwrap_or_default())
                    .to_owned()
            },
            bound: bound(self, &judgement, call.as_ref(), &agreed, config),
            impact,
            judgement,
        }
    }

    fn shown(&self, judged: &Judged, redactor: &Redactor) -> Shown {
        let params = judged.judgement.class.params.as_ref().unwrap_or(&self.params);
        let mut params = params.to_json();
        redactor.value(Some(&self.path), &mut params);
        Shown {
            method: self.method.as_str(),
            path: self.path.as_str().to_owned(),
            params,
            lines: Vec::new(),
        }
    }

    fn settled(self, judged: &Judged) -> Result<Self> {
        let params = judged.judgement.class.params.clone()?;
        Ok(Operation { params, ..self })
    }

    fn leave(self, trail: Trail, _: Seal) -> Permit {
        Permit::new(self, trail)
    }
}
