//! Asking the person over the protocol: a form during the call in the older
//! eras, and an input-required result with sealed state in the newer.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
        InputRequest, InputRequiredResult, InputResponses, ProtocolVersion, RequestStateCodec,
        SealOptions,
    },
    service::{Peer, RequestContext},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::tools::{Asked, Form, Round};

/// How long a form waits for an answer.
const PATIENCE: Duration = Duration::from_secs(300);
/// The name of our one form among the input requests of a call.
const KEY: &str = "approval";

/// What is sealed into the request state: what the person was asked, and what
/// the call had done before it asked.
#[derive(Serialize, Deserialize)]
struct Sealed {
    digest: String,
    done: Option<Value>,
}

/// Seals request states; the key lives as long as the process.
pub struct Sealer(Option<RequestStateCodec>);

impl Sealer {
    /// A sealer with a fresh key. Without a source of randomness nothing is
    /// sealed, so nothing is approved that way.
    pub fn new() -> Self {
        let mut key = [0_u8; 32];
        let codec =
            getrandom::fill(&mut key).ok().and_then(|()| RequestStateCodec::try_new(key).ok());
        Self(codec)
    }
}

/// The way to the person in one call.
pub struct Asking {
    peer: Peer<RoleServer>,
    forms: bool,
    rounds: bool,
    /// Tool, arguments and client, to which a state is bound.
    bound_to: Vec<u8>,
    responses: Option<InputResponses>,
    state: Option<String>,
    /// The answer that the client brought was for a form of this round.
    used: AtomicBool,
    wanted: Mutex<Option<InputRequiredResult>>,
    /// The caller no longer waits.
    cancelled: CancellationToken,
    /// The server is about to end.
    closing: CancellationToken,
}

impl Asking {
    /// From a call and its context.
    pub fn new(
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        closing: CancellationToken,
    ) -> Self {
        let forms = context.client_capabilities().and_then(|c| c.elicitation).is_some_and(|e| {
            // Naming neither kind means forms.
            e.form.is_some() || e.url.is_none()
        });
        let rounds = context
            .protocol_version()
            .is_some_and(|v| v.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let client = context.client_info().map(|c| (c.name, c.version));
        let bound = json!([request.name, request.arguments, client]);
        Self {
            peer: context.peer.clone(),
            forms,
            rounds,
            bound_to: Sha256::digest(bound.to_string().as_bytes()).to_vec(),
            responses: request.input_responses.clone(),
            state: request.request_state.clone(),
            used: AtomicBool::new(false),
            wanted: Mutex::new(None),
            cancelled: context.ct.clone(),
            closing,
        }
    }

    /// Whether the client shows forms.
    pub fn can_ask(&self) -> bool {
        self.forms
    }

    /// Whether the client brings the answer to a form that it was given before.
    pub fn is_answering(&self) -> bool {
        self.rounds && self.responses.as_ref().is_some_and(|r| r.contains_key(KEY))
    }

    /// The result that asks the client to show the form and call again.
    pub fn take_wanted(&self) -> Option<InputRequiredResult> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Where this call begins.
    pub fn round(&self, sealer: &Sealer) -> Round {
        if !self.rounds || self.state.is_none() {
            return Round::First;
        }
        match self.opened(sealer) {
            Some(Sealed { done: Some(done), .. }) => Round::From(done),
            Some(Sealed { done: None, .. }) => Round::First,
            None => Round::Lost,
        }
    }

    /// What the client brought back, if it is ours, of this call and fresh.
    fn opened(&self, sealer: &Sealer) -> Option<Sealed> {
        sealer.0.as_ref()?.open_json_with(self.state.as_ref()?, &self.bound_to).ok()
    }

    /// Asks, in the way of the client's era. `done` is what the call has done
    /// already and must not do again.
    pub async fn ask_after(&self, sealer: &Sealer, form: &Form, done: Option<Value>) -> Asked {
        if !self.forms {
            return Asked::Unable;
        }
        if self.rounds { self.ask_in_rounds(sealer, form, done) } else { self.ask_now(form).await }
    }

    fn ask_in_rounds(&self, sealer: &Sealer, form: &Form, done: Option<Value>) -> Asked {
        let Some(codec) = &sealer.0 else { return Asked::Unable };
        // A call that can go on where it was may ask once more after its answer was used.
        let next = done.is_some() && self.used.load(Ordering::Relaxed);
        if let Some(answer) = self.responses.as_ref().and_then(|r| r.get(KEY)).filter(|_| !next) {
            return match self.opened(sealer) {
                Some(sealed) if sealed.digest == form.digest => {
                    self.used.store(true, Ordering::Relaxed);
                    serde_json::from_value(answer.clone())
                        .map_or(Asked::Cancelled, |result: ElicitResult| judge(&result))
                }
                _ => Asked::Expired,
            };
        }
        let sealed = Sealed { digest: form.digest.clone(), done };
        let options = SealOptions::new().associated_data(&self.bound_to).ttl(PATIENCE);
        let (Ok(state), Some(params)) = (codec.seal_json_with(&sealed, &options), params(form))
        else {
            return Asked::Unable;
        };
        let requests =
            [(KEY.to_owned(), InputRequest::Elicitation(ElicitRequest::new(params)))].into();
        let wanted = InputRequiredResult::new(Some(requests), Some(state));
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = Some(wanted);
        Asked::Later
    }

    async fn ask_now(&self, form: &Form) -> Asked {
        let Some(params) = params(form) else { return Asked::Unable };
        let asked = self.peer.create_elicitation_with_timeout(params, Some(PATIENCE));
        let answered = tokio::select! {
            answered = asked => answered,
            () = self.cancelled.cancelled() => return Asked::Cancelled,
            () = self.closing.cancelled() => return Asked::Cancelled,
        };
        match answered {
            Ok(result) => judge(&result),
            Err(rmcp::ServiceError::Timeout { .. }) => Asked::Expired,
            Err(error) => {
                tracing::debug!(%error, "the form was not answered");
                Asked::Cancelled
            }
        }
    }
}

/// A yes is an accepted form whose one field says yes: a client that accepts
/// by itself with nothing filled in has asked nobody.
fn judge(result: &ElicitResult) -> Asked {
    match result.action {
        ElicitationAction::Accept => {
            let approve = result.content.as_ref().and_then(|c| c.get("approve"));
            if approve == Some(&Value::Bool(true)) { Asked::Yes } else { Asked::No }
        }
        ElicitationAction::Decline => Asked::No,
        // Closed, or something newer that is no yes.
        _ => Asked::Cancelled,
    }
}

fn params(form: &Form) -> Option<ElicitRequestParams> {
    let schema = json!({
        "type": "object",
        "properties": {"approve": {
            "type": "boolean", "title": "Send this change to Proxmox",
            "description": "yes sends exactly what is shown above, once", "default": false,
        }},
        "required": ["approve"],
    });
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: form.text.clone(),
        requested_schema: serde_json::from_value(schema).ok()?,
    })
}
