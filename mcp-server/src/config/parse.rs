//! The kinds of values that variables have. Each says what is wrong; where it
//! stood and what is allowed is added by the loader.

use std::{net::IpAddr, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::SignedDuration;

use super::HostPort;
use crate::{
    Code, Error, Result,
    pve::NodeName,
    tools::{Group, validate::nearest},
};

pub(super) fn bad(message: impl Into<String>) -> Error {
    Error::new(Code::Config, message)
}

/// The members of a list parted by commas; an empty one is an error.
pub fn members(text: &str) -> Result<Vec<&str>> {
    let list: Vec<&str> = text.split(',').map(str::trim).collect();
    if list.iter().any(|m| m.is_empty()) {
        return Err(bad("a member of the list is empty (a comma too many)"));
    }
    Ok(list)
}

/// On or off, in the words of `critical.env`.
pub fn switch(text: &str) -> Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" | "yes" | "enabled" => Ok(true),
        "off" | "0" | "false" | "no" | "disabled" => Ok(false),
        _ => Err(bad(format!("{text:?} is neither on nor off"))),
    }
}

/// One of some words, in any case.
pub fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T> {
    words
        .iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(text))
        .map(|(_, value)| *value)
        .ok_or_else(|| {
            let near = nearest(text, words.iter().map(|(word, _)| *word));
            let near = near.map(|n| format!("; did you mean {n}?")).unwrap_or_default();
            bad(format!("{text:?} is not one of the words{near}"))
        })
}

/// A number within bounds.
pub fn number<T>(text: &str, from: T, to: T) -> Result<T>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    text.parse::<T>()
        .ok()
        .filter(|n| (&from..=&to).contains(&n) && !text.starts_with('+'))
        .ok_or_else(|| bad(format!("{text:?} is not a whole number from {from} to {to}")))
}

/// A length of time: `15` (seconds), `15s`, `1m30s`, `500 ms`.
pub fn duration(text: &str, from: Duration, to: Duration) -> Result<Duration> {
    let seconds = text.bytes().all(|b| b.is_ascii_digit());
    let read = if seconds {
        text.parse().ok().map(Duration::from_secs)
    } else {
        text.parse::<SignedDuration>().ok().and_then(|d| Duration::try_from(d).ok())
    };
    let read = read.ok_or_else(|| bad(format!("{text:?} is not a length of time")))?;
    if read < from || read > to {
        return Err(bad(format!("{text:?} is not between {from:?} and {to:?}")));
    }
    Ok(read)
}

/// A number of bytes: `65536`, `64 KiB`, `1MiB`.
pub fn bytes(text: &str, from: usize, to: usize) -> Result<usize> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kib" => Some(1024),
        "m" | "mib" => Some(1024 * 1024),
        _ => None,
    };
    let read = digits.parse::<usize>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f));
    let read = read.ok_or_else(|| bad(format!("{text:?} is not a number of bytes")))?;
    if read < from || read > to {
        return Err(bad(format!("{text:?} is not between {from} and {to} bytes")));
    }
    Ok(read)
}

/// Hosts of one cluster, each once.
pub fn hosts(text: &str) -> Result<Vec<HostPort>> {
    let mut hosts = Vec::new();
    for member in members(text)? {
        let host = HostPort::parse(member)?;
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    Ok(hosts)
}

/// `all`, or tool groups.
pub fn toolsets(text: &str) -> Result<Option<Vec<String>>> {
    let mut chosen = Vec::new();
    let mut all = false;
    for member in members(text)? {
        let name = member.to_ascii_lowercase();
        all |= name == "all";
        if name != "all" && !Group::ALL.iter().any(|g| g.as_str() == name) {
            let near = nearest(&name, Group::ALL.iter().map(|g| g.as_str()));
            let near = near.map(|n| format!("; did you mean {n}?")).unwrap_or_default();
            return Err(bad(format!("{member:?} is not a tool group{near}")));
        }
        if !chosen.contains(&name) {
            chosen.push(name);
        }
    }
    Ok((!all).then_some(chosen))
}

/// Node names.
pub fn nodes(text: &str) -> Result<Vec<NodeName>> {
    members(text)?.into_iter().map(|m| NodeName::parse(m).map_err(as_config)).collect()
}

/// `node=address` pairs; `port` is for addresses that name none.
pub fn node_addresses(text: &str, port: u16) -> Result<Vec<(NodeName, HostPort)>> {
    let mut pairs: Vec<(NodeName, HostPort)> = Vec::new();
    for member in members(text)? {
        let (node, address) = member
            .split_once('=')
            .ok_or_else(|| bad(format!("{member:?} is not a pair node=address")))?;
        let node = NodeName::parse(node.trim()).map_err(as_config)?;
        if pairs.iter().any(|(known, _)| *known == node) {
            return Err(bad(format!("node {node} is named twice")));
        }
        let mut place = HostPort::parse(address.trim())?;
        if !names_port(address.trim()) {
            place.port = port;
        }
        pairs.push((node, place));
    }
    Ok(pairs)
}

/// Whether a host was written with its port; a bare IPv6 address has none.
fn names_port(host: &str) -> bool {
    let host = host.rsplit_once("://").map_or(host, |(_, rest)| rest);
    host.contains("]:") || host.matches(':').count() == 1
}

/// Path patterns: `*` for one segment, `**` at the end for the rest.
pub fn path_patterns(text: &str) -> Result<Vec<String>> {
    members(text)?.into_iter().map(path_pattern).collect()
}

fn path_pattern(text: &str) -> Result<String> {
    let path = text.strip_prefix("/api2/json").filter(|p| p.starts_with('/')).unwrap_or(text);
    let path = path.strip_prefix('/').unwrap_or(path);
    let segments: Vec<&str> = path.split('/').collect();
    let last = segments.len().saturating_sub(1);
    for (i, segment) in segments.iter().enumerate() {
        let wrong = match *segment {
            "" | "." | ".." => true,
            "**" => i != last,
            "*" => false,
            other => {
                other.contains("**")
                    || other.contains(['?', '#', '\\', '%'])
                    || other.chars().any(|c| c.is_control() || c.is_whitespace())
            }
        };
        if wrong {
            return Err(bad(format!("{text:?} is not a path pattern (segment {segment:?})")));
        }
    }
    Ok(format!("/{path}"))
}

/// The login name of a Unix account.
pub fn account(text: &str) -> Result<String> {
    let first = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let rest = text
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'));
    if first && rest && text.len() <= 32 {
        return Ok(text.to_owned());
    }
    Err(bad(format!("{text:?} is not the name of a Unix account")))
}

/// An SSH host key as it stands in `/etc/ssh/ssh_host_*_key.pub`; a comment is dropped.
pub fn host_key(text: &str) -> Result<String> {
    const TYPES: [&str; 5] = [
        "ssh-ed25519",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "ssh-rsa",
    ];
    let mut words = text.split_whitespace();
    let (kind, key) = match (words.next(), words.next()) {
        (Some(kind), Some(key)) => (kind, key),
        _ => return Err(bad("this is not a host key (type and base64)")),
    };
    if !TYPES.contains(&kind) {
        return Err(bad(format!("{kind:?} is not a type of host key")));
    }
    // The blob repeats its type, so a cut or mixed-up key shows.
    let blob = STANDARD.decode(key).map_err(|_| bad("the host key's base64 cannot be read"))?;
    let prefix = u32::try_from(kind.len()).unwrap_or(0).to_be_bytes();
    let fits = blob.starts_with(&prefix)
        && blob.get(4..).is_some_and(|b| b.starts_with(kind.as_bytes()))
        && blob.len() > kind.len() + 8;
    if !fits {
        return Err(bad(format!("the host key is not whole, or not of type {kind}")));
    }
    Ok(format!("{kind} {key}"))
}

/// An address or network for `from=` in `authorized_keys`.
pub fn source_address(text: &str) -> Result<String> {
    if text.parse::<IpAddr>().is_ok() || text.parse::<ipnet::IpNet>().is_ok() {
        return Ok(text.to_owned());
    }
    Err(bad(format!("{text:?} is not an IP address or network")))
}

/// `Host` headers: names or addresses, with or without a port.
pub fn host_headers(text: &str) -> Result<Vec<String>> {
    members(text)?.into_iter().map(|m| HostPort::parse(m).map(|_| m.to_ascii_lowercase())).collect()
}

/// `Origin` headers: scheme and host.
pub fn origins(text: &str) -> Result<Vec<String>> {
    members(text)?
        .into_iter()
        .map(|m| {
            let lower = m.to_ascii_lowercase();
            let rest = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"));
            match rest.map(HostPort::parse) {
                Some(Ok(_)) if !lower.ends_with('/') => Ok(lower),
                _ => Err(bad(format!("{m:?} is not an origin"))),
            }
        })
        .collect()
}

fn as_config(error: Error) -> Error {
    Error { code: Code::Config, ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<T: std::fmt::Debug>(result: Result<T>) -> String {
        match result {
            Ok(value) => format!("{value:?}"),
            Err(e) => {
                assert_eq!(e.code, Code::Config);
                format!("refused: {}", e.message)
            }
        }
    }

    #[test]
    fn durations() {
        let read = |t| shown(duration(t, Duration::from_millis(100), Duration::from_secs(300)));
        for (text, value) in [
            ("15", "15s"),
            ("15s", "15s"),
            ("15 s", "15s"),
            ("1m30s", "90s"),
            ("2 minutes", "120s"),
            ("500ms", "500ms"),
            ("PT5M", "300s"),
        ] {
            assert_eq!(read(text), value, "{text}");
        }
        for text in
            ["", "0", "301", "-1", "-5s", "fast", "15 eggs", "1e2", "99999999999999999999", "+5"]
        {
            assert!(read(text).starts_with("refused"), "{text}");
        }
    }

    #[test]
    fn sizes() {
        let read = |t| shown(bytes(t, 1024, 16 << 20));
        for (text, value) in [
            ("65536", "65536"),
            ("64KiB", "65536"),
            ("64 kib", "65536"),
            ("64k", "65536"),
            ("1MiB", "1048576"),
            ("16m", "16777216"),
            ("2048 B", "2048"),
        ] {
            assert_eq!(read(text), value, "{text}");
        }
        for text in [
            "",
            "0",
            "1",
            "17M",
            "-1",
            "64KB x",
            "1.5M",
            "k",
            "99999999999999999999999",
            "18446744073709551615m",
        ] {
            assert!(read(text).starts_with("refused"), "{text}");
        }
    }

    #[test]
    fn numbers_and_switches() {
        for text in ["0", "65536", "+22", "22x", "", " 22", "0x16", "2_2"] {
            assert!(shown(number::<u16>(text, 1, 65535)).starts_with("refused"), "{text}");
        }
        assert_eq!(shown(number::<u16>("65535", 1, 65535)), "65535");
        for (text, value) in [("ON", "true"), ("Enabled", "true"), ("0", "false"), ("no", "false")]
        {
            assert_eq!(shown(switch(text)), value, "{text}");
        }
        for text in ["", "2", "maybe", "enable"] {
            assert!(shown(switch(text)).starts_with("refused"), "{text}");
        }
    }

    #[test]
    fn lists_of_groups() {
        for (text, value) in [
            ("all", "None"),
            ("guests, ALL", "None"),
            ("guests,Backup", r#"Some(["guests", "backup"])"#),
            ("core,core", r#"Some(["core"])"#),
            ("gests", "refused: \"gests\" is not a tool group; did you mean guests?"),
            ("guests,,node", "refused: a member of the list is empty (a comma too many)"),
        ] {
            assert_eq!(shown(toolsets(text)), value, "{text}");
        }
    }

    #[test]
    fn patterns_of_paths() {
        for (text, value) in [
            ("/nodes/*/qemu/100/**", r#"["/nodes/*/qemu/100/**"]"#),
            ("nodes/pve1, /pools/**", r#"["/nodes/pve1", "/pools/**"]"#),
            ("/api2/json/pools", r#"["/pools"]"#),
            ("**", r#"["/**"]"#),
        ] {
            assert_eq!(shown(path_patterns(text)), value, "{text}");
        }
        for text in [
            "/", "", "//x", "/x/", "/a/../b", "/./a", "/**/x", "/a**", "/a?b", "/a#b", "/a%2fb",
            "/a b", "/a\\b", "/a,",
        ] {
            assert!(shown(path_patterns(text)).starts_with("refused"), "{text}");
        }
    }

    #[test]
    fn keys_and_addresses() {
        let key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEh0lYGi8tq0VhZ3PnFVNLQWQSYqY2Ed6SYEdUYnVpbN";
        assert_eq!(shown(host_key(&format!("{key} root@pve1"))), format!("{key:?}"));
        let rsa = key.replacen("ed25519", "rsa", 1);
        for text in
            ["", "ssh-ed25519", "ssh-dss AAAA", "ssh-ed25519 AAAA", "ssh-ed25519 !!!!", &rsa]
        {
            assert!(shown(host_key(text)).starts_with("refused"), "{text}");
        }
        for text in ["192.0.2.7", "2001:db8::7", "192.0.2.0/24", "2001:db8::/64"] {
            assert_eq!(shown(source_address(text)), format!("{text:?}"));
        }
        for text in ["pve1", "192.0.2", "192.0.2.0/33", "*", "192.0.2.7,pve"] {
            assert!(shown(source_address(text)).starts_with("refused"), "{text}");
        }
        for text in ["proxmox-mcp", "_ops", "a1"] {
            assert_eq!(shown(account(text)), format!("{text:?}"));
        }
        for text in ["", "Root", "1a", "a b", "-a", "a;b", &"a".repeat(33)] {
            assert!(shown(account(text)).starts_with("refused"), "{text}");
        }
        let pairs =
            node_addresses("pve1=192.0.2.1, pve2=[2001:db8::2]:2222,c=h:8006,d=2001:db8::8006", 22)
                .unwrap();
        let ports: Vec<u16> = pairs.iter().map(|(_, address)| address.port).collect();
        assert_eq!(ports, [22, 2222, 8006, 22]);
        for text in ["pve1", "pve1=", "pve1=a,pve1=b", "pve_1=a", "=a"] {
            assert!(shown(node_addresses(text, 22)).starts_with("refused"), "{text}");
        }
        assert_eq!(
            shown(origins("https://A.example, http://127.0.0.1:3000").map(|v| v.join(" "))),
            "\"https://a.example http://127.0.0.1:3000\""
        );
        for text in ["a.example", "https://", "https://a/b", "https://a/", "ftp://a", "null", "*"] {
            assert!(shown(origins(text)).starts_with("refused"), "{text}");
        }
        assert_eq!(shown(hosts("pve1, pve2:443,pve1:8006").map(|v| v.len())), "2");
    }
}
