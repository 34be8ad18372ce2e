//! The pinned host keys of further nodes: `ssh/known_hosts`.

use std::{fs, io, path::Path};

use super::{HostKey, files};
use crate::{Code, Error, Result, config::HostPort};

/// The keys that a known_hosts file pins for one address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    /// Any of these is accepted.
    pub keys: Vec<HostKey>,
    /// None of these is, whatever else says so.
    pub revoked: Vec<HostKey>,
}

/// How an address is written in known_hosts: `host`, or `[host]:port` for
/// another port than 22, in lower case.
#[must_use]
pub fn name_of(address: &HostPort) -> String {
    let host = address.host.to_ascii_lowercase();
    if address.port == 22 { host } else { format!("[{host}]:{}", address.port) }
}

/// Reads the pins of `address`; a missing file pins nothing.
///
/// # Errors
/// `config` when the file cannot be read, when others can write to it, or when
/// a line that concerns this address holds no valid key.
pub fn read(path: &Path, address: &HostPort) -> Result<Pins> {
    match fs::read_to_string(path) {
        Ok(text) => {
            files::only_owner_writes(path)?;
            parse(&text, address).map_err(|e| Error {
                message: format!("{}: {}", path.display(), e.message),
                code: Code::Config,
                ..e
            })
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Pins::default()),
        Err(e) => Err(Error::new(Code::Config, format!("{}: {e}", path.display()))),
    }
}

/// The pins of `address` in the text of a known_hosts file. Names are compared
/// whole, patterns with `*`, `?` or `!` pin nothing. A revoked key is revoked
/// for every address.
fn parse(text: &str, address: &HostPort) -> Result<Pins> {
    let name = name_of(address);
    let mut pins = Pins::default();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (marker, rest) = match line.strip_prefix('@').and_then(|l| l.split_once(' ')) {
            Some((marker, rest)) => (Some(marker), rest.trim_start()),
            None => (None, line),
        };
        let (names, key) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        let bad = |e: Error| Error { message: format!("line {number}: {}", e.message), ..e };
        match marker {
            Some("revoked") => pins.revoked.push(HostKey::parse(key).map_err(bad)?),
            // A certificate authority vouches for many keys: that is no pin.
            Some(_) => {}
            None if names.starts_with("|1|") => {
                if let Ok(key) = HostKey::parse(key)
                    && hashed_name_is(line, &name, &key)
                {
                    pins.keys.push(key);
                }
            }
            None if names.split(',').any(|n| n.eq_ignore_ascii_case(&name)) => {
                pins.keys.push(HostKey::parse(key).map_err(bad)?);
            }
            None => {}
        }
    }
    Ok(pins)
}

/// Whether a line with a hashed name (`HashKnownHosts yes`) is about `name`.
fn hashed_name_is(line: &str, name: &str, key: &HostKey) -> bool {
    let check = || {
        let mut hosts = ssh2::Session::new()?.known_hosts()?;
        hosts.read_str(line, ssh2::KnownHostFileKind::OpenSSH)?;
        Ok::<_, ssh2::Error>(hosts.check(name, key.blob()))
    };
    matches!(check(), Ok(ssh2::CheckResult::Match))
}

/// The line that pins `key` for `address`.
#[must_use]
pub fn line_for(address: &HostPort, key: &HostKey) -> String {
    format!("{} {key}\n", name_of(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "ssh-ed25519 \
        AAAAC3NzaC1lZDI1NTE5AAAAIKKaf1FbaEtrwOUqhbZd8iTXpvZTnBLsW3c64OoGIGUX";
    const B: &str = "ssh-ed25519 \
        AAAAC3NzaC1lZDI1NTE5AAAAIP2wBvzuqJwRHrP6rjWFpnjHQ2AO+nGo0R1YuD1HCOVU";

    fn at(host: &str, port: u16) -> HostPort {
        HostPort { host: host.into(), port }
    }

    fn keys(text: &str, address: &HostPort) -> Vec<String> {
        parse(text, address).unwrap().keys.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_ports_and_addresses_of_both_kinds() {
        let text = format!(
            "# comment\n\npve1,192.0.2.11 {A}\n[192.0.2.12]:2222 {B} comment\n\
             [2001:db8::1]:2222 {A}\n2001:db8::2\t{B}\n"
        );
        let cases = [
            (at("192.0.2.11", 22), vec![A]),
            (at("PVE1", 22), vec![A]),
            (at("192.0.2.12", 2222), vec![B]),
            (at("2001:db8::1", 2222), vec![A]),
            (at("2001:DB8::2", 22), vec![B]),
            // Another port is another server.
            (at("192.0.2.11", 2222), vec![]),
            (at("192.0.2.12", 22), vec![]),
            (at("192.0.2.1", 22), vec![]),
        ];
        for (address, wanted) in cases {
            assert_eq!(keys(&text, &address), wanted, "{address:?}");
        }
    }

    #[test]
    fn hashed_names_are_found() {
        // Made by `ssh-keygen -H` from "[192.0.2.12]:2222".
        let text = include_str!("../../tests/data/known_hosts.hashed");
        assert_eq!(keys(text, &at("192.0.2.12", 2222)), [A]);
        assert_eq!(keys(text, &at("192.0.2.12", 22)), Vec::<String>::new());
        assert_eq!(keys(text, &at("192.0.2.13", 2222)), Vec::<String>::new());
    }

    #[test]
    fn patterns_and_authorities_pin_nothing_and_revoked_keys_stay_known() {
        let text =
            format!("* {A}\n192.0.2.* {A}\n@cert-authority 192.0.2.11 {A}\n@revoked other {B}\n");
        let pins = parse(&text, &at("192.0.2.11", 22)).unwrap();
        assert!(pins.keys.is_empty());
        assert_eq!(pins.revoked, [HostKey::parse(B).unwrap()]);
    }

    #[test]
    fn a_broken_line_of_this_address_is_an_error_with_its_number() {
        let text = format!("other nonsense\npve1 {A}x!\n");
        let error = parse(&text, &at("pve1", 22)).unwrap_err();
        assert!(error.message.starts_with("line 2: "), "{error}");
        assert!(parse(&text, &at("pve2", 22)).unwrap().keys.is_empty());
    }

    #[test]
    fn a_written_line_is_read_back() {
        let key = HostKey::parse(A).unwrap();
        for address in [at("pve1", 22), at("2001:db8::1", 2222)] {
            assert_eq!(keys(&line_for(&address, &key), &address), [A]);
        }
    }
}
