//! Canonical API paths: what Proxmox will route, and nothing else.
//!
//! The server percent-decodes the whole path once and splits it afterwards, so
//! that is done here first; every check looks at the result, and exactly the
//! result is sent. What a URL library could change on the way (`.`, `..`, empty
//! segments, `?`, `#`, a backslash) is refused, never repaired.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{Code, Error, Result};

/// Everything but the unreserved characters of RFC 3986.
const ENCODE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Longest path, in bytes, as written and in canonical form.
const MAX_BYTES: usize = 1024;

/// The formatters of `pve-http-server`: first segments that are no API path.
const FORMATTERS: [&str; 6] = ["json", "extjs", "html", "htmljs", "png", "spiceconfig"];

/// A path as Proxmox will route it: one leading slash, decoded, no trailing slash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiPath {
    text: String,
    /// Number of segments; the last may hold slashes (a volume, a CIDR).
    count: usize,
}

impl ApiPath {
    /// Reads what a caller wrote and refuses what is not canonical. A leading
    /// `/api2/json` is taken off once, a missing leading slash is added.
    ///
    /// # Errors
    /// `path_refused`.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > MAX_BYTES {
            return Err(refused(text, format!("it is longer than {MAX_BYTES} bytes")));
        }
        if text.contains("://") {
            return Err(refused(text, "it has a scheme or host")
                .hint("give the API path alone, for example /nodes/pve1/status"));
        }
        let decoded = decode(text)?;
        if decoded.contains("://") {
            return Err(refused(text, "it has a scheme or host"));
        }
        let bare = decoded.strip_prefix('/').unwrap_or(&decoded);
        let mut parts: Vec<&str> = bare.split('/').collect();
        if let [first, second, ..] = parts.as_slice()
            && first.eq_ignore_ascii_case("api2")
        {
            if (*first, *second) != ("api2", "json") {
                return Err(refused(text, "only the formatter /api2/json is spoken"));
            }
            parts.drain(..2);
        }
        Self::build(text, &parts)
    }

    /// Builds a path from segments, each of which is one segment of the result
    /// (a slash inside is allowed only in a storage volume and a firewall CIDR).
    /// Segments are taken as they are: nothing in them is decoded.
    ///
    /// # Errors
    /// `path_refused` for a segment that could not stand alone.
    pub fn of(segments: &[&str]) -> Result<Self> {
        let text = segments.join("/");
        if let Some(segment) = segments.iter().find(|s| s.contains('%')) {
            return Err(refused(segment, "a segment has a percent sign"));
        }
        let parts: Vec<&str> = text.split('/').collect();
        let path = Self::build(&text, &parts)?;
        if path.count != segments.len() {
            return Err(refused(&text, "a segment has a slash"));
        }
        Ok(path)
    }

    /// Checks decoded parts and joins them.
    fn build(given: &str, parts: &[&str]) -> Result<Self> {
        let first = parts.first().copied().unwrap_or_default();
        if first.is_empty() && parts.len() < 2 {
            return Err(refused(given, "it is empty")
                .hint("an API path looks like /nodes/pve1/qemu/100/config"));
        }
        if first.contains([':', '@', '.']) {
            return Err(refused(given, "it begins with a scheme or host"));
        }
        if first.eq_ignore_ascii_case("api2") || FORMATTERS.contains(&first) {
            return Err(refused(given, "it has a second prefix or a formatter"));
        }
        for part in parts {
            check(part).map_err(|why| refused(given, why))?;
        }
        let text = format!("/{}", parts.join("/"));
        if text.len() > MAX_BYTES {
            return Err(refused(given, format!("it is longer than {MAX_BYTES} bytes")));
        }
        let count = swallowed(parts).map_or(parts.len(), |n| parts.len().min(n));
        Ok(Self { text, count })
    }

    /// The canonical text, for example `/nodes/pve1/qemu/100/config`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The segments, decoded; a storage volume or a firewall CIDR is one, slashes and all.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.text.splitn(self.count + 1, '/').skip(1)
    }

    /// The path as it goes on the wire, percent-encoded, without `/api2/json`.
    #[must_use]
    pub fn encoded(&self) -> String {
        let mut out = String::with_capacity(self.text.len() + 16);
        for segment in self.segments() {
            out.push('/');
            out.extend(utf8_percent_encode(segment, ENCODE));
        }
        out
    }
}

impl std::fmt::Display for ApiPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.text.fmt(f)
    }
}

/// How many segments a path has whose last one takes the whole rest.
fn swallowed(parts: &[&str]) -> Option<usize> {
    match parts {
        ["nodes", _, "storage", _, "content", ..] => Some(6),
        ["cluster", "firewall", "ipset", ..] => Some(5),
        ["nodes", _, "qemu" | "lxc", _, "firewall", "ipset", ..] => Some(8),
        _ => None,
    }
}

/// Decodes percent-encoding once and refuses what must not stand in either form.
fn decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
        match (digit(rest.next()), digit(rest.next())) {
            #[allow(clippy::cast_possible_truncation)]
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => return Err(refused(text, "a percent sign is not followed by two digits")),
        }
    }
    let decoded =
        String::from_utf8(bytes).map_err(|_| refused(text, "it is not UTF-8 when decoded"))?;
    // A literal percent sign is in no name that Proxmox accepts.
    if decoded.contains('%') {
        return Err(refused(text, "it is encoded twice"));
    }
    Ok(decoded)
}

/// Whether a decoded part may stand between two slashes.
fn check(part: &str) -> std::result::Result<(), &'static str> {
    if part.is_empty() {
        return Err("it has an empty segment or a trailing slash");
    }
    if part == "." || part == ".." {
        return Err("`.` and `..` are no names");
    }
    if part.contains(['?', '#']) {
        return Err("it has a ? or #; parameters are given apart from the path");
    }
    if part.contains('\\') {
        return Err("it has a backslash");
    }
    if part.chars().any(char::is_control) {
        return Err("it has a control character");
    }
    if part.chars().any(hidden) {
        return Err("it has an invisible character");
    }
    if part.starts_with(' ') || part.ends_with(' ') {
        return Err("a segment begins or ends with a blank");
    }
    Ok(())
}

/// Blanks other than the plain one, and characters that change how text is shown.
fn hidden(c: char) -> bool {
    (c.is_whitespace() && c != ' ')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The refusal of a path; the path itself is quoted with everything escaped and cut.
fn refused(text: &str, why: impl Into<String>) -> Error {
    let shown: String = text.chars().take(120).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    Error::new(
        Code::PathRefused,
        format!("the path \"{}{more}\" is refused: {}", shown.escape_debug(), why.into()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        ApiPath::parse(text).map(|p| p.to_string()).unwrap_or_else(|e| {
            assert_eq!(e.code, Code::PathRefused);
            "refused".to_owned()
        })
    }

    #[test]
    fn hostile_spellings_are_refused() {
        for text in [
            "",
            "/",
            "//",
            "/api2",
            "/api2/json",
            "/api2/json/",
            "api2/json",
            "/nodes/",
            "/nodes//pve1",
            "//nodes",
            "/nodes/pve1/status/",
            "/nodes/pve1/status//",
            "/nodes/./status",
            "/nodes/../access/users",
            "/nodes/pve1/qemu/100/snapshot/..",
            "/nodes/%2e%2e/access",
            "/nodes/%2E./access",
            "/nodes/.%2e/x",
            "/nodes/pve1/%2e",
            "/nodes/pve1/%2f/status",
            "/nodes%2F%2Fpve1",
            "/nodes/pve1%2f",
            "/nodes/pve1/status?command=reboot",
            "/nodes/pve1/status%3Fcommand=reboot",
            "/nodes/pve1/status#x",
            "/nodes/pve1/status%23x",
            "/access/users#",
            "/nodes/pve1/%2573tatus",
            "/nodes/pve1/100%25",
            "/nodes/%25%32%65",
            "/nodes/pve1/%zz",
            "/nodes/pve1/%",
            "/nodes/pve1/%4",
            "/nodes/pve1/%+1",
            "/nodes/pve1/status%0a",
            "/nodes/pve1/status%0d",
            "/nodes/pve1/status%00",
            "/nodes/pve1/st\tatus",
            "/nodes/pve1/status\n",
            "/nodes/pve1/\u{7f}",
            "/nodes/pve1/\u{85}",
            "/nodes/pve1/%ff",
            "/nodes/pve1/%c0%af",
            "/nodes/pve1/%ed%a0%80",
            "/nodes\\pve1",
            "/nodes%5cpve1",
            "\\nodes\\pve1",
            "https://evil.example/api2/json/version",
            "http://pve1:8006/api2/json/nodes",
            "https%3A%2F%2Fevil/x",
            "HTTPS://pve1/nodes",
            "//evil.example/nodes",
            "pve1.example.test/api2/json/nodes",
            "pve1:8006/nodes",
            "root@pve1/nodes",
            "javascript:nodes",
            "/api2/extjs/nodes",
            "/api2/html/nodes",
            "/api2/png/nodes",
            "/api2/htmljs/x",
            "/api2/spiceconfig/x",
            "/api2/nodes",
            "/API2/json/nodes",
            "/Api2/Json/nodes",
            "/api2/JSON/nodes",
            "api2%2fextjs%2fnodes",
            "/api2/json/api2/json/nodes",
            "/api2/json/json/nodes",
            "json/nodes/pve1",
            "/json/nodes",
            "extjs/nodes",
            "/nodes/pve1/ status",
            "/nodes/pve1/status%20",
            " /nodes",
            "/nodes/pve1/st\u{200b}atus",
            "/nodes/pve1/\u{202e}sutats",
            "/nodes/pve1/a\u{a0}b",
            "\u{feff}/nodes",
            "/nodes/pve1/storage/local/content/local:iso/../../x",
            "/nodes/pve1/storage/local/content/local:iso//x",
            "/nodes/pve1/storage/../content/..",
            "/cluster/firewall/ipset/a/10.0.0.0/",
        ] {
            assert_eq!(canonical(text), "refused", "{text:?}");
        }
        assert_eq!(canonical(&format!("/nodes/{}", "a".repeat(1018))), "refused");
        assert_eq!(canonical(&"a".repeat(1024)), "refused", "the slash that is added counts");
        assert_ne!(canonical(&format!("/nodes/{}", "a".repeat(1017))), "refused");
    }

    #[test]
    fn what_is_decoded_is_what_is_seen() {
        for (text, want) in [
            ("/nodes/pve1/%73tatus", "/nodes/pve1/status"),
            ("/nodes/pve1%2Fstatus", "/nodes/pve1/status"),
            ("/%6eodes/pve1", "/nodes/pve1"),
            ("nodes/pve1/status", "/nodes/pve1/status"),
            ("/api2/json/nodes/pve1", "/nodes/pve1"),
            ("api2/json/nodes", "/nodes"),
            ("/api2%2fjson%2Fnodes", "/nodes"),
            ("/%61pi2/json/nodes", "/nodes"),
            ("/access/users/alice%40pve/token/a", "/access/users/alice@pve/token/a"),
            (
                "/nodes/pve1/tasks/UPID%3Apve1%3A0001%3A%3A%3Aqmstart%3A100%3Aroot%40pam%21full%3A",
                "/nodes/pve1/tasks/UPID:pve1:0001:::qmstart:100:root@pam!full:",
            ),
            (
                "/nodes/pve1/storage/local/content/local%3Aiso%2Fx.iso",
                "/nodes/pve1/storage/local/content/local:iso/x.iso",
            ),
            (
                "/nodes/pve1/storage/local/content/local:iso/x.iso",
                "/nodes/pve1/storage/local/content/local:iso/x.iso",
            ),
            (
                "/cluster/firewall/ipset/management/10.0.0.0%2f8",
                "/cluster/firewall/ipset/management/10.0.0.0/8",
            ),
            ("/nodes/localhost/status", "/nodes/localhost/status"),
            ("/pools/Prüf", "/pools/Prüf"),
        ] {
            assert_eq!(canonical(text), want, "{text:?}");
            assert_eq!(canonical(want), want, "the canonical form is a fixed point");
        }
    }

    #[test]
    fn the_wire_form_keeps_one_segment_one() {
        for (text, wire, last) in [
            (
                "/nodes/pve1/storage/local/content/local:iso/x.iso",
                "/nodes/pve1/storage/local/content/local%3Aiso%2Fx.iso",
                "local:iso/x.iso",
            ),
            (
                "/cluster/firewall/ipset/m/fd00::/8",
                "/cluster/firewall/ipset/m/fd00%3A%3A%2F8",
                "fd00::/8",
            ),
            (
                "/nodes/n/lxc/200/firewall/ipset/m/10.0.0.0/8",
                "/nodes/n/lxc/200/firewall/ipset/m/10.0.0.0%2F8",
                "10.0.0.0/8",
            ),
            ("/access/users/a@pve/token/t", "/access/users/a%40pve/token/t", "t"),
            ("/access/users/a%21@pve", "/access/users/a%21%40pve", "a!@pve"),
            ("/nodes/n/x/a~b-c_d.e", "/nodes/n/x/a~b-c_d.e", "a~b-c_d.e"),
        ] {
            let path = ApiPath::parse(text).unwrap();
            assert_eq!(path.encoded(), wire);
            assert_eq!(path.segments().last(), Some(last));
            assert_eq!(
                ApiPath::parse(&path.encoded()).unwrap(),
                path,
                "the wire form means the same"
            );
        }
    }

    #[test]
    fn segments_of_tools_cannot_leave_their_place() {
        for bad in [
            "..",
            ".",
            "",
            "a/b",
            "../access/users",
            "x/../../access/users?a=",
            "a?b",
            "a#b",
            "%2e%2e",
            "a\\b",
            "a\n",
        ] {
            for path in [
                vec!["nodes", "n", "qemu", "100", "snapshot", bad],
                vec!["nodes", bad, "status"],
                vec!["pools", bad],
                vec!["nodes", "n", "storage", bad, "content"],
            ] {
                assert_eq!(ApiPath::of(&path).unwrap_err().code, Code::PathRefused, "{path:?}");
            }
        }
        let volume =
            ApiPath::of(&["nodes", "n", "storage", "s", "content", "s:iso/x y.iso"]).unwrap();
        assert_eq!(volume.encoded(), "/nodes/n/storage/s/content/s%3Aiso%2Fx%20y.iso");
        assert!(
            ApiPath::of(&["nodes", "n", "storage", "s", "content", "s:../x"]).is_ok(),
            "one part, no dot segment"
        );
        assert!(ApiPath::of(&["nodes", "n", "storage", "s", "content", "s:a/../x"]).is_err());
    }
}
