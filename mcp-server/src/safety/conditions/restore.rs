//! Guests made from backups, and guests that move others.

use serde_json::Value;

use super::{Call, Param};
use crate::{
    pve::{Params, loose},
    safety::{api::indexed, facts::no_such_endpoint, volume},
};

/// The backup or template that a guest is made from.
fn archive<'a>(call: &Call<'a>) -> Option<&'a str> {
    call.params.text("archive").or_else(|| call.params.text("ostemplate"))
}

/// Whether the guest is made from a backup.
pub fn is_restore(call: &Call<'_>) -> bool {
    call.params.has("archive")
        || call.params.flag("restore") == Some(true)
        || archive(call).is_some_and(|a| a.contains(":backup/") || a.contains("vzdump-"))
}

/// The configuration that a backup holds, line by line; `None` when it cannot be read.
fn archive_config<'a>(call: &Call<'a>) -> Option<&'a str> {
    let (node, archive) = (call.variable("node")?, archive(call)?);
    let question = Params::new().with("volume", archive);
    call.facts.ask(&["nodes", node, "vzdump", "extractconfig"], question).ok()?.as_str()
}

/// Key and value of each line of a configuration.
fn lines(config: &str) -> impl Iterator<Item = (&str, &str)> {
    config
        .lines()
        .filter_map(|line| line.split_once([':', '=']))
        .map(|(key, value)| (key.trim(), value.trim()))
}

/// Whether the backup says of itself that it is an unprivileged container: before its first
/// section, and nowhere something else.
pub fn archive_is_unprivileged(call: &Call<'_>) -> bool {
    let Some(config) = archive_config(call) else { return false };
    let own: Vec<&str> =
        config.lines().take_while(|line| !line.trim_start().starts_with('[')).collect();
    let own = own.join("\n");
    let mut said = lines(&own).filter(|(key, _)| *key == "unprivileged").peekable();
    said.peek().is_some() && said.all(|(_, value)| value == "1")
}

/// The backup's own configuration opens the host, or cannot be read.
pub fn brings_host_access(call: &Call<'_>, _param: &Param<'_>) -> bool {
    if !is_restore(call) {
        return false;
    }
    // What holds no line is no configuration.
    let config = archive_config(call).filter(|config| lines(config).next().is_some());
    let Some(config) = config else { return true };
    lines(config).any(|(key, value)| {
        // A value without a name may stand at any place.
        let named = |names: &[&str]| {
            value.split(',').map(str::trim).any(|part| match part.split_once('=') {
                Some((name, value)) => {
                    names.contains(&name.trim()) && volume::on_host(value.trim())
                }
                None => volume::on_host(part),
            })
        };
        let spice = |part: &str| {
            let host = part.trim().strip_prefix("host=").unwrap_or(part.trim());
            host.eq_ignore_ascii_case("spice")
                || host.split_once('=').is_some_and(|(n, _)| n == "usb3")
        };
        match indexed(key).unwrap_or(key) {
            "args" | "hookscript" | "hostpci" | "virtiofs" | "dev" | "parallel" | "ivshmem" => true,
            "usb" => !value.split(',').all(spice),
            "serial" => value != "socket",
            "mp" | "rootfs" => named(&["volume"]),
            "ide" | "sata" | "scsi" | "virtio" | "efidisk" | "tpmstate" => {
                named(&["file", "volume"])
            }
            other => other.starts_with("lxc."),
        }
    })
}

/// The new guest holds data of another one.
pub fn copies_guest(call: &Call<'_>) -> bool {
    let imports = |param: Param<'_>| {
        let parts = param.parts(call);
        parts.get("import-from").is_some_and(|source| !volume::owners(source).is_empty())
    };
    call.params.has("archive")
        || ["ide", "sata", "scsi", "virtio", "efidisk", "tpmstate"]
            .iter()
            .any(|base| call.given(base).any(imports))
}

/// A restore onto a guest that exists, or of which it is not known that it does not.
pub fn over_existing(call: &Call<'_>) -> bool {
    is_restore(call) && call.vmid().is_none_or(|vmid| call.facts.guest_exists(vmid) != Some(false))
}

/// A new container that is not said to be unprivileged.
pub fn privileged_create(call: &Call<'_>) -> bool {
    call.params.flag("restore") != Some(true) && call.params.flag("unprivileged") != Some(true)
}

/// A restored container that is privileged, by order or by its backup.
pub fn privileged_restore(call: &Call<'_>) -> bool {
    if call.params.flag("restore") != Some(true) {
        return false;
    }
    match call.params.flag("unprivileged") {
        Some(unprivileged) => !unprivileged,
        None => !archive_is_unprivileged(call),
    }
}

/// The guest stands in a rule that keeps guests together, or that cannot be known.
pub fn moves_others(call: &Call<'_>) -> bool {
    companions(call).is_none_or(|sids| !sids.is_empty())
}

/// The HA ids of the guests that a move takes along; `None` when it cannot be known.
pub fn companions(call: &Call<'_>) -> Option<Vec<String>> {
    let vmid = call.variable("sid").or_else(|| call.variable("vmid"))?;
    companions_of(call, vmid)
}

/// As [`companions`], for a guest by its VMID or HA id.
pub fn companions_of(call: &Call<'_>, guest: &str) -> Option<Vec<String>> {
    let number = |sid: &str| sid.rsplit(':').next().unwrap_or_default().to_owned();
    let vmid = number(guest);
    let rules = match call.facts.ask(&["cluster", "ha", "rules"], Params::new()) {
        Ok(rules) => loose::rows(rules),
        // Releases before 9 have groups, and no rules.
        Err(error) if no_such_endpoint(&error) => return Some(Vec::new()),
        Err(_) => return None,
    };
    let mut others = Vec::new();
    for rule in rules {
        let together = loose::str(rule, "type") == Some("resource-affinity")
            && loose::str(rule, "affinity") != Some("negative")
            && !loose::flag(rule, "disable");
        let members = members(rule);
        if together && members.iter().any(|sid| number(sid) == vmid) {
            others.extend(members.into_iter().filter(|sid| number(sid) != vmid));
        }
    }
    Some(others)
}

/// The resources of an HA rule.
pub fn members(rule: &Value) -> Vec<String> {
    match rule.get("resources") {
        Some(Value::Array(items)) => {
            items.iter().filter_map(|i| i.as_str().map(str::to_owned)).collect()
        }
        Some(Value::String(text)) => {
            crate::pve::params::split_list(text).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}
