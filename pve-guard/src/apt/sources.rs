//! The package sources: all of one Debian release, that of this node.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::node;
use crate::protocol::{Code, Refused};

const MAIN: &str = "/etc/apt/sources.list";
const PARTS: &str = "/etc/apt/sources.list.d";
/// Names of Debian releases; a suite of another name says nothing about one.
const CODENAMES: [&str; 8] =
    ["stretch", "buster", "bullseye", "bookworm", "trixie", "forky", "duke", "sid"];
/// Names that mean another release from one day to the next.
const MOVING: [&str; 4] = ["oldstable", "stable", "testing", "unstable"];

/// One suite of one enabled entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) file: String,
    pub(super) uri: String,
    pub(super) suite: String,
}

impl Source {
    /// The Debian release that the suite belongs to.
    fn release(&self) -> Option<&str> {
        let name = self.suite.split(['-', '/']).next()?;
        let of_debian =
            self.uri.contains("debian.org") || self.uri.trim_end_matches('/').ends_with("/debian");
        (CODENAMES.contains(&name) || MOVING.contains(&name) && of_debian).then_some(name)
    }
}

/// Refuses sources of several releases, or of another than the node's.
pub(super) fn check() -> Result<(), Refused> {
    let sources = read().map_err(|error| {
        Refused::new(Code::Preflight, format!("the package sources cannot be read: {error}"))
    })?;
    judge(&sources, codename().as_deref())
}

fn judge(sources: &[Source], here: Option<&str>) -> Result<(), Refused> {
    let releases: BTreeSet<&str> = sources.iter().filter_map(Source::release).collect();
    let named = || {
        let rows: BTreeSet<String> = sources
            .iter()
            .filter(|source| source.release().is_some())
            .map(|source| format!("{}: {}", source.file, source.suite))
            .collect();
        rows.into_iter().collect::<Vec<_>>().join(", ")
    };
    if releases.len() > 1 {
        return Err(Refused::new(
            Code::Preflight,
            format!("the package sources mix releases: {}", named()),
        )
        .hint("let every source name the release that this node has"));
    }
    match (releases.first(), here) {
        (Some(release), Some(here)) if *release != here => Err(Refused::new(
            Code::Preflight,
            format!("this node is {here}, and its package sources are not: {}", named()),
        )
        .hint(
            "going to another release is done by hand, with Proxmox's own guide and check program",
        )),
        _ => Ok(()),
    }
}

fn codename() -> Option<String> {
    let text = fs::read_to_string(node::at("/etc/os-release")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    Some(value.trim_matches('"').to_owned())
}

/// Every enabled entry for binary packages.
pub(super) fn read() -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut files = vec![MAIN.to_owned()];
    if let Ok(entries) = fs::read_dir(node::at(PARTS)) {
        let mut names: Vec<_> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        files.extend(names.iter().map(|name| format!("{PARTS}/{name}")));
    }
    for file in files {
        let one_line = Path::new(&file).extension().is_some_and(|ext| ext == "list");
        let stanzas = Path::new(&file).extension().is_some_and(|ext| ext == "sources");
        if !one_line && !stanzas {
            continue;
        }
        let text = match fs::read_to_string(node::at(&file)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let found = if stanzas { parse_stanzas(&text) } else { parse_lines(&text) };
        sources.extend(found.into_iter().map(|(uri, suite)| Source {
            file: file.clone(),
            uri,
            suite,
        }));
    }
    Ok(sources)
}

/// `deb [options] uri suite component…`
fn parse_lines(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some(rest) = line.strip_prefix("deb").filter(|r| r.starts_with([' ', '\t', '[']))
        else {
            continue;
        };
        let rest = match rest.trim_start().strip_prefix('[') {
            Some(options) => options.split_once(']').map_or("", |(_, rest)| rest),
            None => rest,
        };
        let mut words = rest.split_ascii_whitespace();
        if let (Some(uri), Some(suite)) = (words.next(), words.next()) {
            found.push((uri.to_owned(), suite.to_owned()));
        }
    }
    found
}

/// Stanzas of `Key: value`, as in deb822 (sources.list(5)).
fn parse_stanzas(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.lines().chain([""]) {
        if line.trim().is_empty() {
            found.extend(from_stanza(&fields));
            fields.clear();
        } else if line.starts_with('#') {
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((key, value)) = line.split_once(':') {
            fields.push((key.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    found
}

fn from_stanza(fields: &[(String, String)]) -> Vec<(String, String)> {
    let field = |wanted: &str| {
        fields.iter().find(|(key, _)| key == wanted).map_or("", |(_, value)| value.as_str())
    };
    let off = ["no", "false", "0", "off", "without", "disable"];
    let disabled = off.iter().any(|word| field("enabled").eq_ignore_ascii_case(word));
    if disabled || !field("types").split_ascii_whitespace().any(|word| word == "deb") {
        return Vec::new();
    }
    let suites = field("suites").split_ascii_whitespace();
    suites
        .flat_map(|suite| {
            let uris = field("uris").split_ascii_whitespace();
            uris.map(|uri| (uri.to_owned(), suite.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(pairs: Vec<(String, String)>) -> Vec<Source> {
        pairs
            .into_iter()
            .map(|(uri, suite)| Source { file: "/etc/apt/x".into(), uri, suite })
            .collect()
    }

    #[test]
    fn both_formats_are_read_and_what_is_off_is_not() {
        let lines = "# deb http://a bookworm main\ndeb [arch=amd64 signed-by=/k] http://a trixie main # x\n\
                     deb-src http://a bookworm main\ndeb\thttp://b trixie-updates main\n";
        assert_eq!(
            parse_lines(lines),
            [("http://a", "trixie"), ("http://b", "trixie-updates")]
                .map(|(uri, suite)| (uri.to_owned(), suite.to_owned()))
        );
        let stanzas = "Types: deb\nURIs: http://a\nSuites: trixie\n trixie-updates\nComponents: main\n\n\
                       Types: deb\n# note\nURIs: http://b\nSuites: bookworm\nEnabled: No\n\n\
                       Types: deb-src\nURIs: http://c\nSuites: bookworm\n";
        assert_eq!(
            parse_stanzas(stanzas),
            [("http://a", "trixie"), ("http://a", "trixie-updates")]
                .map(|(uri, suite)| (uri.to_owned(), suite.to_owned()))
        );
    }

    #[test]
    fn only_this_release_is_upgraded_from() {
        let debian = "http://deb.debian.org/debian";
        let pve = "http://download.proxmox.com/debian/pve";
        let cases: [(&[(&str, &str)], bool); 8] = [
            (&[(debian, "trixie"), (debian, "trixie-updates"), (pve, "trixie")], true),
            (&[(debian, "trixie"), (pve, "bookworm")], false),
            (&[(debian, "bookworm"), (pve, "bookworm")], false),
            (&[(debian, "trixie"), (debian, "bookworm/updates")], false),
            (&[(debian, "stable")], false),
            (&[(debian, "trixie"), ("https://example.test/repo", "stable")], true),
            (&[(debian, "trixie"), (debian, "testing")], false),
            (&[("file:/srv/repo", "./")], true),
        ];
        for (pairs, fine) in cases {
            let pairs = pairs.iter().map(|(u, s)| ((*u).to_owned(), (*s).to_owned())).collect();
            let judged = judge(&sources(pairs), Some("trixie"));
            assert_eq!(judged.is_ok(), fine, "{judged:?}");
        }
    }
}
