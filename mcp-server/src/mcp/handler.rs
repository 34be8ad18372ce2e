//! The `rmcp` handler: lists the registered tools and calls them.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
        Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
        Tool as McpTool, ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use super::{GRACE, approval::Sealer, instructions, session::McpSession};
use crate::{
    Code, Error,
    app::App,
    config::{Approval, Config},
    render::Answer,
    tools::{self, Tool, schema},
};

/// How long a client may keep the list of tools, in milliseconds: it changes
/// only with the configuration, which is read at the start.
const LIST_TTL_MS: u64 = 3_600_000;

/// Serves one client.
#[derive(Clone)]
pub struct Handler {
    app: Arc<App>,
    sealer: Arc<Sealer>,
}

impl Handler {
    /// A handler over the shared application.
    #[must_use]
    pub fn new(app: Arc<App>) -> Self {
        Self { app, sealer: Arc::new(Sealer::new()) }
    }

    async fn run(&self, name: &str, arguments: Value, session: &McpSession) -> CallToolResult {
        let call = tools::call(&self.app, name, arguments, session);
        let closing = async {
            self.app.closing.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        let outcome = tokio::select! {
            outcome = call => outcome,
            () = closing => Err(Error::new(Code::Cancelled, "the server is ending")
                .hint("a task that was started goes on in Proxmox; pve_list_tasks shows it")),
        };
        match outcome {
            Ok(answer) => success(answer),
            Err(error) => failure(&error),
        }
    }
}

fn success(answer: Answer) -> CallToolResult {
    let text = answer.text();
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(answer.structured);
    result
}

fn failure(error: &Error) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(error.to_string())]);
    result.structured_content = Some(error.to_json());
    result
}

/// A tool as the protocol lists it. Hints that equal the protocol's defaults
/// are left out, but readOnly never is, and destructive never on a change.
#[must_use]
pub fn listed(tool: &Tool, config: &Config) -> McpTool {
    let read_only = tool.is_read_only(config);
    // Names, notes and logs that others wrote come back: `openWorld` stays at its default.
    let mut hints = ToolAnnotations::new().read_only(read_only);
    hints = hints.destructive(!read_only && tool.hints.destructive);
    if tool.hints.idempotent && !read_only {
        hints = hints.idempotent(true);
    }
    let mut schema = schema::listed(tool.schema());
    if config.approval != Approval::Code
        && let Some(Value::Object(properties)) = schema.get_mut("properties")
    {
        // Codes are given out only where they are asked for.
        properties.shift_remove("approval_code");
    }
    McpTool::new(tool.name, tool.description, Arc::new(schema))
        .with_title(tool.title)
        .with_annotations(hints)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new("proxmox-mcp", env!("CARGO_PKG_VERSION"))
                    .with_title("Proxmox VE"),
            )
            .with_instructions(instructions::text(&self.app.config))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let config = &self.app.config;
        let tools = tools::registered(config).map(|t| listed(t, config)).collect();
        let mut result = ListToolsResult::with_all_items(tools);
        result.ttl_ms = Some(LIST_TTL_MS);
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<McpTool> {
        let config = &self.app.config;
        tools::registered(config).find(|t| t.name == name).map(|t| listed(t, config))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Err(error) = tools::find(&self.app, &request.name) {
            let data = json!({"hint": error.advice()});
            return Err(ErrorData::invalid_params(error.message, Some(data)));
        }
        let session =
            McpSession::new(&request, &context, self.sealer.clone(), self.app.closing.clone());
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        let result = self.run(&request.name, arguments, &session).await;
        Ok(match session.take_wanted() {
            Some(wanted) => wanted.into(),
            None => result.into(),
        })
    }
}
