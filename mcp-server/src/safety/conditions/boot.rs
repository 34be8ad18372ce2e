//! What a guest boots from.

use super::{Call, Now, Param};
use crate::safety::{api::indexed, propstring::PropString};

/// One place in a boot order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Device {
    /// A drive or interface by its key.
    Key(String),
    /// The legacy letter of a kind: c disk, d medium, n network.
    Letter(char),
}

/// The devices of a `boot` option in order.
fn order(parts: &PropString) -> Vec<Device> {
    if let Some(order) = parts.get("order") {
        return order
            .split(';')
            .filter(|d| !d.is_empty())
            .map(|d| Device::Key(d.to_owned()))
            .collect();
    }
    parts.get("legacy").unwrap_or("cdn").chars().map(Device::Letter).collect()
}

/// What an entry of the order is: something foreign, the disk that boots now, or another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Foreign,
    BootsNow,
    Other,
}

/// Whether a drive holds a medium, by the parameters of this call or else by the present configuration.
fn is_medium(call: &Call<'_>, key: &str) -> Option<bool> {
    let text = match call.params.text(key) {
        Some(text) => text.to_owned(),
        None => match call.now(key) {
            Now::Is(text) => text,
            Now::Absent => return Some(false),
            Now::Unknown => return None,
        },
    };
    let parts = call.parts(key, &text);
    Some(parts.is("media", "cdrom") || parts.volume().is_some_and(|v| v.contains(":iso/")))
}

/// The disk that boots now; `None` when it cannot be known or there is none.
fn boots_now(call: &Call<'_>) -> Option<Device> {
    let now = match call.now("boot") {
        Now::Unknown => return None,
        Now::Absent => PropString::default(),
        Now::Is(text) => call.parts("boot", &text),
    };
    let bootdisk = match call.now("bootdisk") {
        Now::Is(disk) => Some(disk),
        Now::Unknown | Now::Absent => None,
    };
    order(&now).into_iter().find_map(|device| match device {
        Device::Key(key) if indexed(&key) == Some("net") => None,
        Device::Key(key) => (is_medium(call, &key) == Some(false)).then_some(Device::Key(key)),
        Device::Letter('c') => Some(bootdisk.clone().map_or(Device::Letter('c'), Device::Key)),
        Device::Letter(_) => None,
    })
}

/// A network device or a medium would boot before the disk that boots now.
pub fn foreign_first(call: &Call<'_>, param: &Param<'_>) -> bool {
    if !changes(call, param) {
        return false;
    }
    if param.name == "bootdisk" {
        return param.text().is_none_or(|key| is_medium(call, key) != Some(false));
    }
    let disk = boots_now(call);
    let role = |device: &Device| match device {
        Device::Letter('n' | 'd') => Role::Foreign,
        Device::Letter('c') => Role::BootsNow,
        Device::Letter(_) => Role::Other,
        found if Some(found) == disk.as_ref() => Role::BootsNow,
        Device::Key(key) if indexed(key) == Some("net") => Role::Foreign,
        Device::Key(key) => match is_medium(call, key) {
            Some(false) => Role::Other,
            Some(true) | None => Role::Foreign,
        },
    };
    order(&param.parts(call)).iter().map(role).find(|r| *r != Role::Other) == Some(Role::Foreign)
}

/// The order is not the present one, or that cannot be known.
pub fn changes(call: &Call<'_>, param: &Param<'_>) -> bool {
    match call.now(param.name) {
        Now::Unknown => true,
        Now::Absent => true,
        Now::Is(now) if param.name == "boot" => {
            order(&call.parts("boot", &now)) != order(&param.parts(call))
        }
        Now::Is(now) => param.text() != Some(now.as_str()),
    }
}
