//! Any endpoint: what it would be, what it takes, and calling it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Code, Error, Result,
    pve::{ApiPath, Params},
    render::Answer,
    tools::Ctx,
};

/// A JSON object of parameters.
type Object = Map<String, Value>;

/// Arguments of `pve_classify_operation`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Classify {
    /// GET, POST, PUT or DELETE.
    method: String,
    /// As /nodes/pve1/qemu/100/config.
    path: String,
    params: Option<Object>,
}

/// `pve_classify_operation`
pub async fn classify(ctx: Ctx<'_>, args: Classify) -> Result<Answer> {
    let _ = (ctx, args.method, args.path, args.params);
    Err(Error::internal("not connected yet"))
}

/// Arguments of `pve_api_explore`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Explore {
    /// `/` unless said.
    path: Option<String>,
    #[schemars(range(min = 1, max = 5))]
    depth: Option<u32>,
}

/// `pve_api_explore`
pub async fn explore(ctx: Ctx<'_>, args: Explore) -> Result<Answer> {
    let _ = (ctx, args.path, args.depth);
    Err(Error::internal("not connected yet"))
}

/// Arguments of `pve_api_schema`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Schema {
    path: String,
    /// All methods of the path unless said.
    method: Option<String>,
}

/// `pve_api_schema`
pub async fn schema(ctx: Ctx<'_>, args: Schema) -> Result<Answer> {
    let _ = (ctx, args.path, args.method);
    Err(Error::internal("not connected yet"))
}

/// Arguments of `pve_api_call`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Call {
    /// GET, POST, PUT or DELETE.
    method: String,
    /// As /nodes/pve1/qemu/100/config.
    path: String,
    params: Option<Object>,
    dry_run: Option<bool>,
    /// The exact text that the refusal names.
    confirm: Option<String>,
    approval_code: Option<String>,
}

/// `pve_api_call`
pub async fn call(ctx: Ctx<'_>, args: Call) -> Result<Answer> {
    let path = ApiPath::parse(&args.path)?;
    if !args.method.eq_ignore_ascii_case("GET") {
        let _ = (args.dry_run, args.confirm, args.approval_code);
        return Err(Error::new(Code::ReadOnly, "this server is read-only"));
    }
    let params = Params::from_json(&Value::Object(args.params.unwrap_or_default()))?;
    let data = ctx.read(&path, &params).await?;
    let request = json!({"method": "GET", "path": path.as_str(), "params": params.to_json()});
    Ok(Answer::new(json!({"status": "done", "class": "READ", "category": null, "request": request, "data": &*data}))
        .untrusted(&["data"]))
}
