//! From a request target to the path of a call: decoded exactly once, before
//! it is split.

use percent_encoding::percent_decode;

/// A raw target holds one character per byte, so that nothing is lost.
/// What a target asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A call: formatter, path below it (`/` kept as sent), raw query, and
    /// whether the target was a whole URL.
    Api { format: String, path: String, query: String, absolute: bool },
    /// The schema that the API viewer loads.
    ApiDoc,
}

/// Why a target is refused before it is a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    BadRequest,
    InvalidUrl,
    NoSuchUri,
    NoSuchFile(String),
}

/// The bytes of a text that holds one character per byte.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    text.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

/// Percent-decodes to one character per byte, as Perl does; `%zz` stays.
fn decode(text: &str) -> String {
    percent_decode(&bytes(text)).map(char::from).collect()
}

/// The decoded path of a target as a person reads it.
pub(crate) fn readable(target: &str) -> String {
    let path = target.split(['?', '#']).next().unwrap_or("");
    percent_decode(&bytes(path)).decode_utf8_lossy().into_owned()
}

pub(crate) fn split(target: &str) -> Result<Target, Refused> {
    let target = target.split('#').next().unwrap_or("");
    let (raw, query) = target.split_once('?').unwrap_or((target, ""));
    let mut raw = raw.to_owned();
    let mut absolute = false;
    for scheme in ["http://", "https://"] {
        if let Some(rest) = raw.strip_prefix(scheme) {
            absolute = true;
            raw = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/").to_owned();
        }
    }
    if !raw.starts_with('/') && raw.split('/').next().unwrap_or("").contains('@') {
        return Err(Refused::InvalidUrl);
    }
    // What stands after two slashes at the start is a host to a URI parser.
    if let Some(rest) = raw.strip_prefix("//") {
        raw = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/").to_owned();
    }
    let path = decode(&raw);
    if path.contains('\r') {
        return Err(Refused::BadRequest);
    }
    if path == "/pve-docs/api-viewer/apidoc.js" {
        return Ok(Target::ApiDoc);
    }
    let Some(rest) = path.strip_prefix("/api2") else {
        return Err(Refused::NoSuchFile(path));
    };
    let rest = rest.strip_suffix('\n').unwrap_or(rest);
    let inner = rest.trim_start_matches('/');
    let end = inner.find('/').unwrap_or(inner.len());
    let (format, path) = inner.split_at(end);
    let lower = |c: char| c.is_ascii_lowercase();
    let word = format.starts_with(lower) && format.len() > 1;
    let word = word && format.chars().all(|c| lower(c) || c.is_ascii_digit());
    // In the real pattern `.` stops at a line end.
    if inner.len() == rest.len() || !word || path.contains('\n') {
        return Err(Refused::NoSuchUri);
    }
    Ok(Target::Api {
        format: format.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        absolute,
    })
}

/// The components of a path, empty ones dropped.
pub(crate) fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|s| !s.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(target: &str) -> Result<(String, String), Refused> {
        match split(target)? {
            Target::Api { format, path, .. } => Ok((format, path)),
            Target::ApiDoc => Ok(("doc".to_owned(), String::new())),
        }
    }

    #[test]
    fn decoded_once_before_splitting() {
        for (target, path) in [
            ("/api2/json/nodes/pve/%73tatus", "/nodes/pve/status"),
            ("/api2%2fjson%2fversion", "/version"),
            ("/%61pi2/json/version", "/version"),
            ("/api2//json/version", "/version"),
            ("/api2/json/nodes/pve/status%252f", "/nodes/pve/status%2f"),
            ("/api2/json/nodes/pve/status%zz", "/nodes/pve/status%zz"),
            ("/api2/json/nodes/pve/status%0a", "/nodes/pve/status"),
            ("/api2/json/nodes/pve/status#frag", "/nodes/pve/status"),
            ("http://evil/api2/json/version", "/version"),
        ] {
            assert_eq!(api(target), Ok(("json".to_owned(), path.to_owned())), "{target}");
        }
    }

    #[test]
    fn refused() {
        for (target, refused) in [
            ("/api2/json/x%0d", Refused::BadRequest),
            ("/api2/json/nodes/pve%0a/status", Refused::NoSuchUri),
            ("/api2", Refused::NoSuchUri),
            ("/api2x/json/version", Refused::NoSuchUri),
            ("/api2json/version", Refused::NoSuchUri),
            ("/api2/JSON/version", Refused::NoSuchUri),
            ("/API2/json/version", Refused::NoSuchFile("/API2/json/version".to_owned())),
            ("//api2/json/version", Refused::NoSuchFile("/json/version".to_owned())),
            ("@evil/api2/json/version", Refused::InvalidUrl),
        ] {
            assert_eq!(api(target), Err(refused), "{target}");
        }
    }
}
