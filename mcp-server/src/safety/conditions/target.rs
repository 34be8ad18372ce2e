//! Addresses that a node must not be sent to: itself, its link, metadata services.
//! Only what is written is judged; a name is resolved by the node.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Call, Param};
use crate::pve::{Params, loose};

/// A URL or host that must not be contacted, or a URL that is not plain http(s).
pub fn bad(call: &Call<'_>, param: &Param<'_>) -> bool {
    let url = matches!(param.name, "url" | "directory");
    param
        .value
        .values()
        .iter()
        .any(|text| judge(call, text, url).is_err() || is_neighbour(call, text))
}

/// A URL or host on the node itself, on its link, or of a metadata service.
pub fn inner(call: &Call<'_>, param: &Param<'_>) -> bool {
    param.value.values().iter().any(|text| judge(call, text, false) == Err(Why::Inner))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Scheme,
    Credentials,
    Inner,
}

fn judge(call: &Call<'_>, text: &str, strict_url: bool) -> Result<(), Why> {
    // Blanks and control characters are dropped by some URL parsers.
    let text: String = text.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
    // What a backslash means in a URL depends on who reads it.
    if text.contains('\\') {
        return Err(Why::Inner);
    }
    // A template is filled in by the node: what host it names cannot be known.
    if text.contains("{{") || text.contains("}}") {
        return Err(Why::Inner);
    }
    // Some readers take `http:host` for `http://host`.
    let web = |head: &str| matches!(head.to_ascii_lowercase().as_str(), "http" | "https");
    let (scheme, rest) = match (text.split_once("://"), text.split_once(':')) {
        (Some((scheme, rest)), _) => (Some(scheme.to_ascii_lowercase()), rest.to_owned()),
        (None, Some((head, rest))) if web(head) => {
            (Some(head.to_ascii_lowercase()), rest.to_owned())
        }
        _ => (None, text.trim_start_matches('/').to_owned()),
    };
    let web = matches!(scheme.as_deref(), Some("http" | "https"));
    let authority = rest.trim_start_matches('/').split(['/', '?', '#']).next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if forbidden(host) || is_node(call, host) {
        return Err(Why::Inner);
    }
    if user.is_some() {
        return Err(Why::Credentials);
    }
    if !web && (strict_url || scheme.is_some()) {
        return Err(Why::Scheme);
    }
    Ok(())
}

/// The host of `host`, `host:port`, `[v6]:port` or a bare IPv6 address.
fn bare_host(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match host.split_once(':') {
        Some((name, rest)) if !rest.contains(':') => name,
        _ => host,
    }
}

/// Whether a URL or host names a node of this cluster, by name or address, as far as it is known.
fn is_neighbour(call: &Call<'_>, text: &str) -> bool {
    let Ok(status) = call.facts.ask(&["cluster", "status"], Params::new()) else { return false };
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = bare_host(authority).trim_end_matches('.');
    let same = |known: &str| {
        let address = |t: &str| t.parse::<IpAddr>().ok();
        known.eq_ignore_ascii_case(host) || address(known).is_some_and(|a| address(host) == Some(a))
    };
    loose::rows(status)
        .iter()
        .filter(|row| loose::str(row, "type") == Some("node"))
        .any(|row| ["name", "ip"].iter().any(|key| loose::str(row, key).is_some_and(same)))
}

fn is_node(call: &Call<'_>, host: &str) -> bool {
    let name = bare_host(host).trim_end_matches('.');
    call.variable("node").is_some_and(|node| name.eq_ignore_ascii_case(node))
}

/// Whether a host is the machine itself, its link, unspecified, or a metadata
/// service, in any spelling that a resolver accepts.
fn forbidden(host: &str) -> bool {
    // Characters that a resolver may fold into digits or dots (full-width forms
    // and the like), and encoded ones, cannot be judged, so they do not pass.
    if !host.is_ascii() || host.contains('%') && !host.contains(':') {
        return true;
    }
    let name = bare_host(host).trim_end_matches('.').to_ascii_lowercase();
    let name = name.split('%').next().unwrap_or_default();
    if name.is_empty() {
        return true;
    }
    let loopback_name =
        matches!(name, "localhost" | "ip6-localhost" | "ip6-loopback" | "localhost.localdomain")
            || name.ends_with(".localhost")
            || matches!(name, "metadata" | "metadata.google.internal" | "instance-data");
    loopback_name
        || name.parse::<Ipv6Addr>().is_ok_and(forbidden_v6)
        // Leading zeros mean octal to some resolvers and nothing to others.
        || [number as fn(&str) -> Option<u64>, decimal]
            .into_iter()
            .any(|read| inet_aton(name, read).is_some_and(forbidden_v4))
}

fn forbidden_v4(ip: Ipv4Addr) -> bool {
    ip.is_loopback()
        || ip.is_link_local()
        || ip.octets()[0] == 0
        || ip.is_broadcast()
        || ip.is_multicast()
        // Metadata services outside the link-local block.
        || matches!(ip.octets(), [100, 100, 100, 200] | [192, 0, 0, 192] | [168, 63, 129, 16])
}

fn forbidden_v6(ip: Ipv6Addr) -> bool {
    let s = ip.segments();
    #[allow(clippy::cast_possible_truncation)]
    let v4 = |high: u16, low: u16| {
        forbidden_v4(Ipv4Addr::new((high >> 8) as u8, high as u8, (low >> 8) as u8, low as u8))
    };
    ip.is_loopback()
        || ip.is_unspecified()
        || ip.is_multicast()
        || s[0] & 0xffc0 == 0xfe80
        || s[..4] == [0xfd00, 0xec2, 0, 0]
        || match s {
            // An IPv4 address in one of its IPv6 clothes.
            [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => v4(high, low),
            [0, 0, 0, 0, 0xffff, 0, high, low] => v4(high, low),
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
            [0x2002, high, low, ..] => v4(high, low),
            _ => false,
        }
}

/// An IPv4 address as `inet_aton` takes it: one to four numbers, decimal, octal
/// or hexadecimal, the last filling the rest.
fn inet_aton(text: &str, number: fn(&str) -> Option<u64>) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = text.split('.').map(number).collect::<Option<_>>()?;
    let (last, heads) = parts.split_last()?;
    if heads.len() > 3 || heads.iter().any(|n| *n > 255) {
        return None;
    }
    let head = heads.iter().fold(0u64, |all, n| all << 8 | n);
    let room = 8 * (4 - u32::try_from(heads.len()).ok()?);
    // A resolver that wraps a number that is too large would be led astray; we wrap too.
    let value = (head << room) | (last & ((1u64 << room) - 1));
    u32::try_from(value).ok().map(Ipv4Addr::from)
}

fn number(text: &str) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return if hex.is_empty() { Some(0) } else { u64::from_str_radix(hex, 16).ok() };
    }
    if text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()) {
        return u64::from_str_radix(text, 8).or_else(|_| text.parse()).ok();
    }
    decimal(text)
}

fn decimal(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::forbidden;

    #[test]
    fn every_spelling_of_an_inner_address() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:85",
            "127.1",
            "127.0.1",
            "127.255.255.254",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0x7F.0x0.0x0.0x1",
            "0177.0.0.1",
            "017700000001",
            "0177.1",
            "00000177.0.0.1",
            "127.0.0.1.",
            "0",
            "0.0.0.0",
            "0x0",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "LocalHost:8006",
            "a.localhost",
            "ip6-localhost",
            "",
            "[::1]",
            "[::1]:85",
            "::1",
            "0:0:0:0:0:0:0:1",
            "[0000:0000::0001]",
            "::",
            "[::]",
            "[::ffff:127.0.0.1]",
            "::ffff:7f00:1",
            "[::127.0.0.1]",
            "[64:ff9b::127.0.0.1]",
            "[2002:7f00:1::]",
            "[::ffff:0:127.0.0.1]",
            "169.254.169.254",
            "0xa9fea9fe",
            "2852039166",
            "169.254.1",
            "0251.0376.0251.0376",
            "[fe80::1]",
            "fe80::1%eth0",
            "[fe80::1%25eth0]:80",
            "[::ffff:169.254.169.254]",
            "[fd00:ec2::254]",
            "100.100.100.200",
            "192.0.0.192",
            "metadata.google.internal",
            "255.255.255.255",
            "224.0.0.1",
            "１２７.0.0.1",
            "①②⑦.0.0.1",
            "127。0。0。1",
            "ⓛocalhost",
            "%31%32%37.0.0.1",
            "4294967296",
            "0127.0.0.1",
            "00.0.0.0",
        ] {
            assert!(forbidden(host), "{host}");
        }
        for host in [
            "192.0.2.10",
            "download.proxmox.com",
            "10.0.0.5:8007",
            "nas1",
            "nas1.example.test",
            "[2001:db8::1]",
            "2001:db8::1",
            "128.0.0.1",
            "126.0.0.1",
            "1.127.0.0",
            "localhost.example.test",
            "169.253.1.1",
            "127-0-0-1.example",
        ] {
            assert!(!forbidden(host), "{host}");
        }
    }
}
