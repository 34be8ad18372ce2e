//! What the fuzz targets check, kept here so that their corpus is replayed by
//! an ordinary test: every function panics when a property does not hold.

use serde_json::Value;

use super::{
    Facts, Flag, Method, Operation,
    api::API,
    class::classify,
    command::{self, Command, Finding, Shell},
    propstring::PropString,
    shown::quoted,
    volume,
};
use crate::pve::{ApiPath, Params};

/// Longest path that is taken, in bytes.
const LONGEST_PATH: usize = 1024;

/// Class and refusal of an operation that nobody was asked about.
fn told(op: &Operation) -> String {
    let found = classify(op, &Facts::default());
    let categories: Vec<_> = found.categories.iter().map(|f| f.category()).collect();
    let refused = found.params.as_ref().err().map(|e| e.code.as_str());
    format!("{} {categories:?} {refused:?}", found.class_text())
}

/// A path is refused, or its canonical form is a fixed point, survives the
/// wire, and is classified as one thing.
pub fn path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(path) = ApiPath::parse(text) else { return };
    let again = ApiPath::parse(path.as_str());
    assert_eq!(again.as_ref(), Ok(&path), "the canonical form is a fixed point");
    let wire = path.encoded();
    // Escapes can make it longer than a path that is written may be.
    if wire.len() <= LONGEST_PATH {
        assert_eq!(ApiPath::parse(&wire), Ok(path.clone()), "the wire form means the same");
    }
    assert!(wire.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%".contains(&b)));
    let parts: Vec<&str> = path.as_str().split('/').skip(1).collect();
    assert!(parts.iter().all(|p| !p.is_empty() && *p != "." && *p != ".."));
    let segments: Vec<&str> = path.segments().collect();
    assert_eq!(ApiPath::of(&segments), Ok(path.clone()), "segments build the same path");
    for method in Method::ALL {
        let op = Operation { method, path: path.clone(), params: Params::new() };
        let encoded: String = text.bytes().map(|b| format!("%{b:02x}")).collect();
        if let Ok(other) = ApiPath::parse(&encoded) {
            // What held no escape means the same when all of it is escaped.
            if !text.contains('%') {
                assert_eq!(other, path);
            }
        }
        let _ = told(&op);
    }
}

/// Parameters as JSON after a method and path on the first line: what is sent
/// is what was judged, and judging it again changes nothing.
pub fn params(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (call, json) = text.split_once('\n').unwrap_or(("PUT /nodes/n/qemu/100/config", text));
    let Some((method, path)) = call.split_once(' ') else { return };
    let (Some(method), Ok(path)) = (Method::parse(method), ApiPath::parse(path)) else { return };
    let Ok(value) = serde_json::from_str::<Value>(json) else { return };
    let Ok(params) = Params::from_json(&value) else { return };
    assert_eq!(Params::from_json(&params.to_json()), Ok(params.clone()), "JSON and back");
    let op = Operation { method, path, params };
    if let Ok(sent) = classify(&op, &Facts::default()).params {
        let again = Operation { params: sent.clone(), ..op.clone() };
        assert_eq!(told(&op), told(&again), "the normal form is judged the same");
        let second = classify(&again, &Facts::default()).params;
        assert_eq!(second, Ok(sent.clone()), "the normal form is a fixed point");
        let encoded = sent.encoded();
        assert!(encoded.bytes().all(|b| b.is_ascii_alphanumeric() || b"&=-._~%".contains(&b)));
    }
}

/// A property string after the number of its format: what was read means the
/// same when it is written in any order with every key.
pub fn property(data: &[u8]) {
    let Some((number, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Some(format) = API.format(usize::from(*number)) else { return };
    let _ = (volume::owners(text), quoted(text));
    let Ok(parts) = PropString::parse(format, text) else { return };
    let mut pairs: Vec<(String, String)> =
        parts.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    pairs.reverse();
    let written: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let again = PropString::parse(format, &written.join(",")).unwrap_or_default();
    for (key, value) in &pairs {
        assert_eq!(again.get(key), Some(value.as_str()), "{key}");
    }
}

/// Longest text of the target for commands, in bytes: what is longer shows nothing more.
const LONGEST_COMMAND: usize = 4096;

/// A text for a shell in a guest: judging it ends, and neither a shell around it nor a command
/// behind it makes it look like less than it is.
pub fn command(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.len() > LONGEST_COMMAND || text.contains('\0') {
        return;
    }
    let judged = |command: &Command<'_>| {
        let found = command::classify(command, None, None);
        assert!(!found.reasons.iter().any(|why| why.starts_with(command::BROKEN)), "{found:?}");
        found
    };
    let of = |text: &str| judged(&Command::Text { text, shell: Shell::Sh });
    let plain = of(text);
    let around = of(&format!("sh -c '{}'", text.replace('\'', "'\\''")));
    assert!(!is_less(&around, &plain), "sh -c: {plain:?}, {around:?}");
    // A backslash at the end would make the semicolon a part of the word.
    if !text.ends_with('\\') {
        let followed = of(&format!("{text}; true"));
        assert!(!is_less(&followed, &plain), "; true: {plain:?}, {followed:?}");
    }
    let argv = ["sh", "-c", text].map(str::to_owned);
    let words = judged(&Command::Argv(&argv));
    assert!(!is_less(&words, &plain), "argv: {plain:?}, {words:?}");
    for shell in [Shell::Cmd, Shell::PowerShell] {
        let found = judged(&Command::Text { text, shell });
        assert!(found.categories.contains(&Flag::ExecShell), "{found:?}");
    }
}

/// Whether something is missing that code which cannot be looked into does not stand for.
fn is_less(found: &Finding, than: &Finding) -> bool {
    !found.categories.contains(&Flag::ExecShell)
        && (!found.categories.is_superset(&than.categories)
            || found.secret.is_none() && than.secret.is_some())
}
