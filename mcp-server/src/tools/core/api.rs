//! Any endpoint: what it would be, what it takes, and calling it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    Result,
    pve::{ApiPath, Params, loose},
    render::{Answer, Page, Table},
    safety::{Facts, Fresh, Method, Operation, classify as classify_call, explain},
    tools::{
        Ctx,
        access::secret::Waiting,
        change::{AskedTask, Submitted},
    },
};

/// A JSON object of parameters.
type Object = Map<String, Value>;

/// Arguments of `pve_classify_operation`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Classify {
    method: String,
    /// As /nodes/pve1/qemu/100/config.
    path: String,
    params: Option<Object>,
}

/// `pve_classify_operation`
pub async fn classify(ctx: Ctx<'_>, args: Classify) -> Result<Answer> {
    let params = Value::Object(args.params.unwrap_or_default());
    let state = Fresh(&ctx.app.pve);
    let told = explain(&args.method, &args.path, &params, &ctx.app.config, &state).await;
    Ok(Answer::new(told.to_json()))
}

/// Arguments of `pve_api_explore`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Explore {
    /// `/` unless said.
    path: Option<String>,
    #[schemars(range(min = 1, max = 5))]
    depth: Option<u32>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<usize>,
    #[schemars(range(min = 0))]
    offset: Option<usize>,
}

/// `pve_api_explore`
pub async fn explore(ctx: Ctx<'_>, args: Explore) -> Result<Answer> {
    let path = below(args.path.as_deref().unwrap_or("/"))?;
    let depth = args.depth.unwrap_or(1) as usize;
    let schema = ctx.app.pve.schema().await?;
    let found = schema.list(&path, depth)?;
    let page = Page::new(args.limit, args.offset);
    let table = Table::new(["path", "methods", "children"]).fill(found.iter(), page, |row| {
        let methods = row.methods.iter().map(|m| with_class(*m, &row.path));
        let methods: Vec<String> = methods.collect();
        vec![(&*row.path).into(), methods.join(" ").into(), row.children.into()]
    });
    let own = schema.find(&path).map(|node| {
        node.methods().map(|m| with_class(m, node.path())).collect::<Vec<_>>().join(" ")
    });
    let answer = table.into_answer(&format!("paths below {path}"));
    Ok(match own.filter(|own| !own.is_empty()) {
        Some(own) => answer.with("methods_of_the_path", own),
        None => answer,
    })
}

/// The path that a caller means, `/` for all of them.
fn below(path: &str) -> Result<String> {
    let bare = path.trim_matches('/');
    if bare.is_empty() || bare == "api2/json" {
        return Ok("/".to_owned());
    }
    Ok(ApiPath::parse(path.trim_end_matches('/'))?.as_str().to_owned())
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
    let path = below(&args.path)?;
    let schema = ctx.app.pve.schema().await?;
    let methods = match &args.method {
        Some(method) => vec![Method::read(method)?],
        None => schema.find(&path).map(|node| node.methods().collect()).unwrap_or_default(),
    };
    // Where nothing is found, asking for one method tells why.
    let methods = if methods.is_empty() { vec![Method::Get] } else { methods };
    let mut out = Map::new();
    for method in methods {
        let (node, info) = schema.method(&path, method)?;
        out.insert("path".into(), node.path().into());
        let mut told = info.to_json();
        if let Value::Object(map) = &mut told {
            map.insert("class".into(), class_of(method, node.path()).into());
        }
        out.insert(method.as_str().to_owned(), told);
    }
    Ok(Answer::new(out))
}

/// `POST:CRITICAL`; a plain read is only `GET`.
fn with_class(method: Method, path: &str) -> String {
    match class_of(method, path) {
        "READ" => method.as_str().to_owned(),
        class => format!("{}:{class}", method.as_str()),
    }
}

/// The class of a call without parameters, which can only raise it.
fn class_of(method: Method, path: &str) -> &'static str {
    let Ok(path) = ApiPath::parse(path) else { return "UNKNOWN" };
    let operation = Operation { method, path, params: Params::new() };
    classify_call(&operation, &Facts::default()).class_text()
}

/// Arguments of `pve_api_call`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Call {
    method: String,
    /// As /nodes/pve1/qemu/100/config.
    path: String,
    params: Option<Object>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_api_call`
pub async fn call(ctx: Ctx<'_>, args: Call) -> Result<Answer> {
    let operation = match read(&args) {
        Ok(operation) => operation,
        Err(error) => {
            ctx.refused(&args.method, &args.path, &args.asked.asked(), &error);
            return Err(error);
        }
    };
    let path = operation.path.clone();
    // A new token's secret is delivered once, into a file, as by pve_token_set.
    let token = new_token(&operation);
    let waiting = match &token {
        Some(id) if args.asked.dry_run != Some(true) => {
            Some(Waiting::new(&ctx.app.config.dirs.config, id)?)
        }
        _ => None,
    };
    let ran = ctx.run(operation, &args.asked).await;
    let mut secret_file = None;
    if let Some(waiting) = waiting {
        let secret = match &ran {
            Ok(Submitted::Sent(sent)) => loose::text(&sent.data, "value"),
            _ => None,
        };
        match (token, secret) {
            (Some(id), Some(secret)) => {
                secret_file = Some(waiting.fill(&id, &secret)?.display().to_string());
            }
            _ => waiting.drop_it(),
        }
    }
    match ran? {
        Submitted::DryRun(answer) => Ok(answer),
        Submitted::Sent(mut sent) => {
            if let Some(file) = secret_file {
                sent.answer.insert("secret_file".into(), file.into());
            }
            let mut data = std::mem::take(&mut sent.data);
            ctx.app.redactor().value(Some(&path), &mut data);
            sent.answer.insert("data".into(), data);
            let heading = format!("{} {path}", args.method.to_ascii_uppercase());
            Ok(sent.into_answer(heading).untrusted(&["data"]))
        }
    }
}

/// The full id of the token that a call makes or gives a new secret.
fn new_token(operation: &Operation) -> Option<String> {
    let segments: Vec<&str> = operation.path.segments().collect();
    let ["access", "users", user, "token", name] = segments.as_slice() else { return None };
    let makes = operation.method == Method::Post || operation.params.has("regenerate");
    makes.then(|| format!("{user}!{name}"))
}

/// The operation that a caller wrote.
fn read(args: &Call) -> Result<Operation> {
    let path = ApiPath::parse(&args.path)?;
    let method = Method::read(&args.method)?;
    let params = Params::from_json(&Value::Object(args.params.clone().unwrap_or_default()))?;
    Ok(Operation { method, path, params })
}
