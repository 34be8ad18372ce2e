//! One API call: from the bytes of a request to the bytes of an answer, in the
//! order in which pveproxy and pvedaemon look at it.

pub(crate) mod apidoc;
pub(crate) mod call;
pub(crate) mod failure;
pub(crate) mod formats;
pub(crate) mod login;
pub(crate) mod multipart;
pub(crate) mod params;
pub(crate) mod path;
pub(crate) mod permit;
pub(crate) mod propstring;
pub(crate) mod render;
pub(crate) mod schema;
pub(crate) mod verify;

use serde_json::{Map, Value};

use crate::seen::Seen;
use crate::state::State;
use crate::wire::http::{Head, Response};

use call::{Call, Reply};
use failure::Failure;
use login::Login;
use multipart::Upload;
use path::Target;

/// A request whose body was read.
pub(crate) struct Incoming<'a> {
    pub(crate) head: &'a Head,
    pub(crate) body: &'a [u8],
}

/// What is known of a request before its body is read.
pub(crate) fn seen(head: &Head) -> Seen {
    Seen {
        method: head.method.clone(),
        target: String::from_utf8_lossy(&path::bytes(&head.target)).into_owned(),
        path: path::readable(&head.target),
        headers: head.headers.clone(),
        ..Seen::default()
    }
}

/// Answers one request; also the parameters as understood, for the record.
pub(crate) fn answer(
    state: &mut State,
    incoming: &Incoming<'_>,
    now_ms: i64,
) -> (Response, Map<String, Value>) {
    let mut params = Map::new();
    let response = match route(state, incoming, now_ms, &mut params) {
        Ok(response) | Err(response) => response,
    };
    (response, params)
}

/// A JSON error as an injected fault gives it.
pub(crate) fn failure_response(status: u16, message: &str) -> Response {
    render::failure("json", "", &Failure::new(status, message))
}

const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

fn route(
    state: &mut State,
    incoming: &Incoming<'_>,
    now_ms: i64,
    seen_params: &mut Map<String, Value>,
) -> Result<Response, Response> {
    let head = incoming.head;
    let plain = |status: u16, text: &str| Response::text(status, text, "text/html", text);
    if !METHODS.contains(&head.method.as_str()) {
        return Err(Response::empty(501, &format!("method '{}' not available", head.method)));
    }
    // A target with a blank makes the request line fall apart.
    if let Some((first, _)) = head.target.split_once(' ') {
        return Err(Response::empty(501, &format!("method '{first}' not available")));
    }
    if let Some(version) = head.version.strip_prefix("HTTP/").filter(|v| !v.starts_with("1.")) {
        return Err(plain(506, &format!("http protocol version {version} not supported")));
    }
    if head.header("transfer-encoding").is_some_and(|t| t.eq_ignore_ascii_case("chunked")) {
        return Err(plain(501, "chunked transfer encoding not supported"));
    }
    let reads = matches!(head.method.as_str(), "GET" | "DELETE");
    if reads && head.content_length() > 0 {
        return Err(plain(501, &format!("Unexpected content for method '{}'", head.method)));
    }
    let target = path::split(&head.target).map_err(|refused| match refused {
        path::Refused::BadRequest => Response::empty(400, "Bad Request"),
        path::Refused::InvalidUrl => plain(400, "invalid url"),
        path::Refused::NoSuchUri => plain(501, "no such uri"),
        path::Refused::NoSuchFile(name) => {
            let text = format!("no such file '{name}'\n");
            Response::text(500, &text, "text/html", &text)
        }
    })?;
    let Target::Api { format, path, query, absolute } = target else {
        return apidoc::serve(&head.method);
    };

    let mut data = params::from_query(&query);
    let kind = head.header("content-type").unwrap_or("");
    let mut upload = None;
    let from_body = if kind.starts_with("multipart/form-data") && path.ends_with("/upload") {
        match multipart::parse(kind, incoming.body) {
            Some((fields, file)) => {
                upload = Some(file);
                Ok(fields)
            }
            None => Err("upload failed - unable to parse the body\n".to_owned()),
        }
    } else {
        params::from_body(head.header("content-type"), incoming.body)
    };
    let body = match from_body {
        Ok(body) => body,
        Err(text) => {
            let status = if text.starts_with("upload 'Content-Type") { 506 } else { 500 };
            return Err(Response::text(status, &text, "text/html", &text));
        }
    };
    // The query wins over the body.
    for (name, value) in body {
        data.entry(name).or_insert(value);
    }
    seen_params.clone_from(&data);

    if !render::FORMATS.contains(&format.as_str()) {
        return Err(plain(501, &format!("no formatter for uri {path}, {format}")));
    }
    let login = login::check(state, head, &path, now_ms.div_euclid(1000))?;
    // What has to be sent on to a worker cannot be a whole URL.
    let sent_on =
        || schema::find(&head.method, &path::segments(&path)).is_some_and(|(e, _)| e.protected);
    if absolute && sent_on() {
        return Err(plain(400, "invalid proxy uri"));
    }
    let request = Request { method: &head.method, path: &path, data, upload };
    let result = perform(state, &login, request, now_ms);
    Ok(match result {
        Ok(reply) => render::reply(&format, &path, reply),
        Err(failure) => render::failure(&format, &path, &failure),
    })
}

/// A call before it is routed.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) data: Map<String, Value>,
    pub(crate) upload: Option<Upload>,
}

/// Routes, checks and carries out one call.
pub(crate) fn perform(
    state: &mut State,
    login: &Login,
    request: Request<'_>,
    now_ms: i64,
) -> Result<Reply, Failure> {
    let Request { method, path, mut data, upload } = request;
    state.settle(now_ms);
    let segments = path::segments(path);
    let missing = || Failure::not_implemented(method, path);
    let (endpoint, vars) = schema::find(method, &segments).ok_or_else(missing)?;
    let handler = endpoint.handler.ok_or_else(missing)?;

    for (name, value) in vars {
        match data.get(&name) {
            Some(given) if params::text(given) != value => {
                let text = "duplicate parameter (already defined in URI) with conflicting values!";
                return Err(Failure::parameter(&name, text));
            }
            _ => {
                data.insert(name, Value::String(value));
            }
        }
    }
    if login.is_anonymous() && !endpoint.open_to_world() {
        return Err(Failure::unauthorized("No ticket"));
    }
    permit::check(state, login, endpoint, &data)?;
    if endpoint.proxied
        && let Some(node) = data.get("node").map(params::text)
    {
        let node = state.resolve_node(&node)?;
        data.insert("node".to_owned(), Value::String(node));
    }
    verify::check(endpoint, &mut data)?;
    if let Some(name) = data.keys().find(|n| endpoint.root_only(n))
        && !login.is_root_ticket()
    {
        return Err(Failure::parameter(&name.clone(), "Only root may use this option."));
    }
    let mut call = Call { state, login, params: data, upload, now_ms };
    let result = handler(&mut call);
    result.map_err(|failure| failure.through_worker(endpoint.protected))
}
