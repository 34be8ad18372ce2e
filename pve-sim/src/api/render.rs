//! Answers in the formats the real one has.

use serde_json::{Map, Value, json};

use super::call::Reply;
use super::failure::Failure;
use crate::wire::http::{Response, reason_bytes};

/// The formatters that exist.
pub(crate) const FORMATS: [&str; 6] = ["json", "extjs", "html", "htmljs", "png", "spiceconfig"];

const JSON: &str = "application/json;charset=UTF-8";

fn body(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn wrap(reply: &Reply) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("data".to_owned(), reply.data.clone());
    map.extend(reply.beside.clone());
    map
}

pub(crate) fn reply(format: &str, path: &str, reply: Reply) -> Response {
    let always_gzip = reply.always_gzip;
    let mut response = match format {
        "html" => Response::text(200, "OK", "text/html;charset=UTF-8", &page(path, &wrap(&reply))),
        "htmljs" => {
            let mut map = wrap(&reply);
            map.insert("success".to_owned(), json!(1));
            let text = escape(&Value::Object(map).to_string());
            Response::text(200, "OK", "text/html;charset=UTF-8", &text)
        }
        "png" => Response::text(200, "OK", "image/png", ""),
        "spiceconfig" => Response::text(
            200,
            "OK",
            "application/x-virt-viewer;charset=UTF-8",
            &viewer(&reply.data),
        ),
        "extjs" => {
            let mut map = wrap(&reply);
            map.insert("success".to_owned(), json!(1));
            json_response(200, "OK", &Value::Object(map))
        }
        _ => json_response(200, "OK", &Value::Object(wrap(&reply))),
    };
    response.always_gzip = always_gzip;
    response
}

pub(crate) fn failure(format: &str, path: &str, failure: &Failure) -> Response {
    if failure.bare {
        return Response::empty(failure.status, &failure.message);
    }
    let end = if failure.newline { "\n" } else { "" };
    let mut map = Map::new();
    map.insert("data".to_owned(), Value::Null);
    map.insert("message".to_owned(), Value::String(format!("{}{end}", failure.message)));
    if !failure.errors.is_empty() {
        map.insert("errors".to_owned(), Value::Object(failure.errors.clone()));
    }
    if format == "extjs" {
        map.insert("success".to_owned(), json!(0));
        map.insert("status".to_owned(), json!(failure.status));
        return json_response(200, "OK", &Value::Object(map));
    }
    if format == "html" {
        let page = page(path, &map);
        return Response::text(failure.status, &failure.message, "text/html;charset=UTF-8", &page);
    }
    json_response(failure.status, &failure.message, &Value::Object(map))
}

fn json_response(status: u16, reason: &str, value: &Value) -> Response {
    Response {
        status,
        reason: reason_bytes(reason),
        content_type: Some(JSON.to_owned()),
        body: body(value),
        ..Response::default()
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn page(path: &str, map: &Map<String, Value>) -> String {
    let text = serde_json::to_string_pretty(map).unwrap_or_default();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n  <head>\n    <meta charset=\"utf-8\">\n    \
         <title>Proxmox VE API</title>\n  </head>\n  <body>\n    <h1>{}</h1>\n    <pre>{}</pre>\n  </body>\n</html>\n",
        escape(path),
        escape(&text)
    )
}

fn viewer(data: &Value) -> String {
    let mut out = "[virt-viewer]\n".to_owned();
    if let Value::Object(map) = data {
        for (name, value) in map {
            out.push_str(&format!("{name}={}\n", super::params::text(value)));
        }
    }
    out
}
