//! A client over the protocol, as a tool sees it.

use futures::future::BoxFuture;
use rmcp::{
    RoleServer,
    model::{CallToolRequestParams, InputRequiredResult, ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::approval::{Asking, Sealer};
use crate::tools::{Asked, Form, Progress, Round, Session};

/// One call of one client.
pub struct McpSession {
    asking: Asking,
    sealer: std::sync::Arc<Sealer>,
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    cancelled: CancellationToken,
    client: String,
    /// Progress goes out in order and never holds up the tool.
    queue: Option<tokio::sync::mpsc::UnboundedSender<Progress>>,
}

impl McpSession {
    /// From the context of a request.
    pub fn new(
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        sealer: std::sync::Arc<Sealer>,
        closing: CancellationToken,
    ) -> Self {
        let client = context.client_info().map_or_else(
            || "unknown client".to_owned(),
            |info| format!("{} {}", info.name, info.version),
        );
        let mut session = Self {
            asking: Asking::new(request, context, closing),
            sealer,
            peer: context.peer.clone(),
            token: context.meta.get_progress_token(),
            cancelled: context.ct.clone(),
            client,
            queue: None,
        };
        session.start();
        session
    }

    /// What the client has to ask the person before it calls again.
    pub fn take_wanted(&self) -> Option<InputRequiredResult> {
        self.asking.take_wanted()
    }

    fn start(&mut self) {
        let Some(token) = self.token.clone() else { return };
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<Progress>();
        let peer = self.peer.clone();
        tokio::spawn(async move {
            // The protocol wants values that only grow; a task's own percentage may not.
            let mut value = 0.0_f64;
            while let Some(progress) = receiver.recv().await {
                value = progress.percent.filter(|p| *p > value).unwrap_or(value + 0.001);
                let mut note = ProgressNotificationParam::new(token.clone(), value)
                    .with_message(progress.message);
                if progress.percent.is_some() {
                    note = note.with_total(100.0);
                }
                if peer.notify_progress(note).await.is_err() {
                    return;
                }
            }
        });
        self.queue = Some(sender);
    }
}

impl Session for McpSession {
    fn progress(&self, progress: Progress) {
        if let Some(queue) = &self.queue {
            let _ = queue.send(progress);
        }
    }

    fn cancelled(&self) -> CancellationToken {
        self.cancelled.clone()
    }

    fn ask<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Asked> {
        Box::pin(self.asking.ask_after(&self.sealer, form, None))
    }

    fn can_ask(&self) -> bool {
        self.asking.can_ask()
    }

    fn ask_after<'a>(&'a self, form: &'a Form, done: Value) -> BoxFuture<'a, Asked> {
        Box::pin(self.asking.ask_after(&self.sealer, form, Some(done)))
    }

    fn round(&self) -> Round {
        self.asking.round(&self.sealer)
    }

    fn is_answering(&self) -> bool {
        self.asking.is_answering()
    }

    fn client(&self) -> String {
        self.client.clone()
    }
}
