//! Hosts as people write them: `pve1`, `pve1:8006`, `[2001:db8::1]:8006`, `https://pve1:8006`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::HostPort;
use crate::{Code, Error, Result};

/// The port on which pveproxy listens.
const DEFAULT_PORT: u16 = 8006;

impl HostPort {
    /// Reads one host: a name or address, an optional port (8006 without), an
    /// optional `https://` before and one `/` behind. An IPv6 address needs
    /// brackets only when a port follows.
    ///
    /// # Errors
    /// `config` for a path, another scheme, a login, a port outside 1 to 65535
    /// and anything that is neither a DNS name nor an address.
    pub fn parse(text: &str) -> Result<Self> {
        let rest = without_scheme(text.trim())?;
        if rest.contains('@') {
            // Not echoed: what stands before the @ may be a password.
            return Err(bad("a host carries a login (something before an @)"));
        }
        if rest.is_empty() {
            return Err(bad("a host is empty"));
        }
        if let Some(at) = rest.find(['/', '?', '#', '\\']) {
            let path = rest.get(at..).unwrap_or_default();
            return Err(bad(format!("host {rest:?} carries a path ({path:?})")));
        }
        let (host, port) = split_port(rest)?;
        let port = port.map_or(Ok(DEFAULT_PORT), |p| parse_port(rest, p))?;
        Ok(Self { host: parse_host(rest, host)?, port })
    }

    /// Host and port as they stand in a URL, an IPv6 address in brackets.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Whether a name or address (brackets allowed) means the same host.
    #[must_use]
    pub fn is_host(&self, other: &str) -> bool {
        same_host(&self.host, other)
    }
}

impl std::fmt::Display for HostPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.authority())
    }
}

/// Whether two spellings name the same host: addresses by value, names without case.
#[must_use]
pub(crate) fn same_host(one: &str, other: &str) -> bool {
    let bare = |t: &str| t.trim().trim_start_matches('[').trim_end_matches(']').to_owned();
    let (one, other) = (bare(one), bare(other));
    match (one.parse::<IpAddr>(), other.parse::<IpAddr>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => one.eq_ignore_ascii_case(&other),
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(Code::Config, message)
        .hint("a host looks like pve1.example.org, pve1:8006, [2001:db8::1]:8006 or https://pve1:8006, nothing behind it")
}

fn without_scheme(text: &str) -> Result<&str> {
    let Some((scheme, rest)) = text.split_once("://") else { return Ok(text) };
    if !scheme.eq_ignore_ascii_case("https") {
        return Err(bad(format!(
            "{scheme:?} is not a scheme Proxmox speaks; it speaks https alone"
        )));
    }
    Ok(rest.strip_suffix('/').unwrap_or(rest))
}

fn split_port(text: &str) -> Result<(&str, Option<&str>)> {
    if let Some(inner) = text.strip_prefix('[') {
        let (host, behind) = inner
            .split_once(']')
            .ok_or_else(|| bad(format!("host {text:?} opens a bracket and does not close it")))?;
        if host.parse::<Ipv6Addr>().is_err() {
            return Err(bad(format!("{host:?} is not an IPv6 address")));
        }
        return match behind.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if behind.is_empty() => Ok((host, None)),
            None => Err(bad(format!("host {text:?} has {behind:?} behind the bracket"))),
        };
    }
    match text.matches(':').count() {
        0 => Ok((text, None)),
        1 => Ok(text.split_once(':').map_or((text, None), |(h, p)| (h, Some(p)))),
        _ if text.parse::<Ipv6Addr>().is_ok() => Ok((text, None)),
        _ => Err(bad(format!("{text:?} is neither host:port nor an IPv6 address"))),
    }
}

fn parse_port(whole: &str, port: &str) -> Result<u16> {
    let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(n) if digits && n > 0 => Ok(n),
        _ => Err(bad(format!("host {whole:?}: {port:?} is not a port (1 to 65535)"))),
    }
}

fn parse_host(whole: &str, host: &str) -> Result<String> {
    if let Ok(address) = host.parse::<Ipv6Addr>() {
        return Ok(address.to_string());
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok(address.to_string());
    }
    let host = host.to_ascii_lowercase();
    let label_ok = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // A last label of digits is a mistyped address (192.0.2.300, or an address as one number).
    let last = host.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x");
    if host.len() > 253 || !host.split('.').all(label_ok) || numeric {
        return Err(bad(format!("host {whole:?} is neither a DNS name nor an address")));
    }
    Ok(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        let cases = [
            ("2001:db8::1", "2001:db8::1", 8006),
            ("[2001:db8::1]", "2001:db8::1", 8006),
            ("[2001:db8::1]:8443", "2001:db8::1", 8443),
            ("https://[2001:DB8::1]:8443/", "2001:db8::1", 8443),
            ("::1", "::1", 8006),
            ("pve1", "pve1", 8006),
            ("PVE1.Example.Org", "pve1.example.org", 8006),
            ("pve1:443", "pve1", 443),
            ("192.0.2.10", "192.0.2.10", 8006),
            ("192.0.2.10:65535", "192.0.2.10", 65535),
            ("https://pve1:8006", "pve1", 8006),
            ("HTTPS://pve1", "pve1", 8006),
            ("  pve1:8006 ", "pve1", 8006),
            ("my_node", "my_node", 8006),
        ];
        for (text, host, port) in cases {
            let found = HostPort::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!((found.host.as_str(), found.port), (host, port), "{text}");
            assert_eq!(HostPort::parse(&found.to_string()).unwrap(), found, "{text}");
        }
    }

    #[test]
    fn refuses_the_rest_and_says_why() {
        let cases = [
            ("", "empty"),
            ("https://", "empty"),
            ("pve1:0", "not a port"),
            ("pve1:99999", "not a port"),
            ("pve1:+80", "not a port"),
            ("pve1:", "not a port"),
            ("[::1]:", "not a port"),
            ("https://pve1:8006/x", "path"),
            ("https://pve1:8006/api2/json", "path"),
            ("https://pve1:8006/#v1:0", "path"),
            ("pve1/", "path"),
            ("http://pve1", "https alone"),
            ("ssh://pve1", "https alone"),
            ("[::1", "close"),
            ("[::1]8006", "behind the bracket"),
            ("[pve1]:8006", "not an IPv6"),
            ("2001:db8:::1", "neither"),
            ("pve1:8006:8006", "neither"),
            ("192.0.2.300", "neither"),
            ("2130706433", "neither"),
            ("0x7f000001", "neither"),
            ("-pve1", "neither"),
            ("pve..example", "neither"),
            ("pvé1", "neither"),
            ("pve 1", "neither"),
        ];
        for (text, why) in cases {
            let e = HostPort::parse(text).expect_err(text);
            assert_eq!(e.code, Code::Config, "{text:?}");
            assert!(e.message.contains(why), "{text:?}: {}", e.message);
            assert!(!e.hint.is_empty());
        }
    }

    #[test]
    fn a_login_is_not_repeated() {
        let error = HostPort::parse("https://root:hunter2@pve1:8006").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn the_same_host_in_other_spellings() {
        let host = HostPort::parse("[2001:db8::1]").unwrap();
        assert!(host.is_host("2001:0db8::0001") && host.is_host("[2001:db8::1]"));
        assert!(HostPort::parse("pve1").unwrap().is_host("PVE1"));
        assert!(!host.is_host("2001:db8::2"));
    }
}
