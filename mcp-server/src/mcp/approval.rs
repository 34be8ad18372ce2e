//! Asking the person over the protocol: a form during the call in the older
//! eras, and an input-required result with sealed state in the newer.

use std::{sync::Mutex, time::Duration};

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

use crate::tools::{Asked, Form};

/// How long a form waits for an answer.
const PATIENCE: Duration = Duration::from_secs(300);
/// The name of our one form among the input requests of a call.
const KEY: &str = "approval";

/// What is sealed into the request state: what the person was asked.
#[derive(Serialize, Deserialize)]
struct Sealed {
    digest: String,
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
            wanted: Mutex::new(None),
            cancelled: context.ct.clone(),
            closing,
        }
    }

    /// Whether the client shows forms.
    pub fn can_ask(&self) -> bool {
        self.forms
    }

    /// Whether a form ends the call, and the client calls again with the answer.
    pub fn asks_by_repeating(&self) -> bool {
        self.rounds
    }

    /// Whether the client brings the answer to a form that it was given before.
    pub fn is_answering(&self) -> bool {
        self.rounds && self.responses.as_ref().is_some_and(|r| r.contains_key(KEY))
    }

    /// The result that asks the client to show the form and call again.
    pub fn take_wanted(&self) -> Option<InputRequiredResult> {
        self.wanted.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }

    /// Asks, in the way of the client's era.
    pub async fn ask(&self, sealer: &Sealer, form: &Form) -> Asked {
        if !self.forms {
            return Asked::Unable;
        }
        if self.rounds { self.ask_in_rounds(sealer, form) } else { self.ask_now(form).await }
    }

    fn ask_in_rounds(&self, sealer: &Sealer, form: &Form) -> Asked {
        let Some(codec) = &sealer.0 else { return Asked::Unable };
        if let Some(answer) = self.responses.as_ref().and_then(|r| r.get(KEY)) {
            let opened = self
                .state
                .as_ref()
                .and_then(|s| codec.open_json_with::<Sealed>(s, &self.bound_to).ok());
            return match opened {
                Some(sealed) if sealed.digest == form.digest => {
                    serde_json::from_value(answer.clone())
                        .map_or(Asked::Cancelled, |result: ElicitResult| judge(&result))
                }
                _ => Asked::Expired,
            };
        }
        let sealed = Sealed { digest: form.digest.clone() };
        let options = SealOptions::new().associated_data(&self.bound_to).ttl(PATIENCE);
        let (Ok(state), Some(params)) = (codec.seal_json_with(&sealed, &options), params(form))
        else {
            return Asked::Unable;
        };
        let requests =
            [(KEY.to_owned(), InputRequest::Elicitation(ElicitRequest::new(params)))].into();
        let wanted = InputRequiredResult::new(Some(requests), Some(state));
        *self.wanted.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(wanted);
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
