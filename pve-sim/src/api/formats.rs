//! The named formats of the schema. A format that is not here lets everything pass.

use regex_lite::Regex;

use super::params::split_list;

/// Checks a value against a named format; the message as the real one words it.
pub(crate) fn check(format: &str, value: &str) -> Result<(), String> {
    if let Some(one) = format.strip_suffix("-list") {
        return split_list(value).iter().try_for_each(|v| check(one, v));
    }
    if let Some(one) = format.strip_suffix("-opt") {
        return if value.is_empty() { Ok(()) } else { check(one, value) };
    }
    let ok = |fits: bool, text: &str| if fits { Ok(()) } else { Err(text.to_owned()) };
    let like = |pattern: &str| Regex::new(pattern).is_ok_and(|r| r.is_match(value));
    match format {
        "pve-node" => ok(is_node(value), "value does not look like a valid node name"),
        "pve-vmid" => ok(like("^[1-9][0-9]{2,8}$"), "value does not look like a valid VM ID"),
        "pve-configid" => {
            ok(like("^[A-Za-z][A-Za-z0-9_-]+$"), &format!("invalid configuration ID '{value}'"))
        }
        "pve-storage-id" => {
            let long = value.len() > 1;
            ok(
                long && like(r"^[A-Za-z][A-Za-z0-9._-]*[A-Za-z0-9]$"),
                &format!("storage ID '{value}' contains illegal characters"),
            )
        }
        "dns-name" => {
            let label = "[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?";
            ok(
                like(&format!(r"^{label}(\.{label})*$")),
                "value does not look like a valid DNS name",
            )
        }
        "ipv4" => ok(
            value.parse::<std::net::Ipv4Addr>().is_ok(),
            "value does not look like a valid IPv4 address",
        ),
        "ipv6" => ok(
            value.parse::<std::net::Ipv6Addr>().is_ok(),
            "value does not look like a valid IPv6 address",
        ),
        "ip" => ok(
            value.parse::<std::net::IpAddr>().is_ok(),
            "value does not look like a valid IP address",
        ),
        "CIDR" => ok(is_cidr(value), "value does not look like a valid CIDR network"),
        "mac-addr" => ok(
            like("^[a-fA-F0-9][02468aceACE][:]([a-fA-F0-9]{2}:){4}[a-fA-F0-9]{2}$"),
            "value does not look like a valid unicast MAC address",
        ),
        "pve-iface" => ok(
            like("^[a-zA-Z][a-zA-Z0-9_]{1,20}([:.][0-9]+)?$"),
            &format!("invalid network interface name '{value}'"),
        ),
        "pve-poolid" => ok(
            like("^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+){0,2}$"),
            &format!("pool name '{value}' contains invalid characters"),
        ),
        "pve-roleid" => ok(
            like("^[A-Za-z0-9._-]+$"),
            &format!("role name '{value}' contains invalid characters"),
        ),
        "pve-groupid" => ok(
            like("^[A-Za-z0-9._-]+$"),
            &format!("group name '{value}' contains invalid characters"),
        ),
        "pve-priv" => {
            ok(crate::state::access::is_privilege(value), &format!("invalid privilege '{value}'"))
        }
        "pve-tag" => ok(
            like("^[a-zA-Z0-9_][a-zA-Z0-9_.+-]*$"),
            &format!("invalid characters in tag '{value}'"),
        ),
        "pve-calendar-event" => crate::handlers::calendar::parse(value)
            .map(|_| ())
            .map_err(|e| format!("invalid calendar event '{value}' - {e}")),
        "email" => ok(like("^[^@ ]+@[^@ ]+$"), "value does not look like a valid email address"),
        _ => Ok(()),
    }
}

fn is_node(value: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !value.is_empty()
        && value.chars().all(inner)
        && !value.starts_with('-')
        && !value.ends_with('-')
}

fn is_cidr(value: &str) -> bool {
    let Some((ip, bits)) = value.split_once('/') else { return false };
    let max = match ip.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|b| b <= max)
}
