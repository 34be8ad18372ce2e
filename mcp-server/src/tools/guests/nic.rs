//! Network interfaces: one key changes and all others stay.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{config::change, disk::word};
use crate::{
    Code, Error, Result,
    insight::estate::GuestKind,
    pve::{
        Params, Vmid,
        config_line::{Line, Nic},
        loose,
    },
    render::Answer,
    tools::{Ctx, change::AskedTask, outcome::Did},
};

/// A network card of a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    Virtio,
    E1000,
    E1000e,
    Rtl8139,
    Vmxnet3,
}

/// What an interface is to be; what is not named stays as it is.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
pub struct Wanted {
    pub bridge: Option<String>,
    /// VLAN; 0 takes it away.
    #[schemars(range(min = 0, max = 4094))]
    pub tag: Option<u16>,
    pub firewall: Option<bool>,
    pub mac: Option<String>,
    /// Of a VM.
    pub model: Option<Model>,
    /// Container: address/prefix, dhcp, manual.
    pub ip: Option<String>,
    pub gw: Option<String>,
    /// The same, or auto.
    pub ip6: Option<String>,
    pub gw6: Option<String>,
    pub name: Option<String>,
    pub link_down: Option<bool>,
    #[schemars(range(min = 0, max = 65535))]
    pub mtu: Option<u32>,
    /// MB/s; 0 takes the limit away.
    #[schemars(range(min = 0))]
    pub rate: Option<f64>,
}

impl Wanted {
    /// Refuses what the kind of guest does not have, and values that are none.
    fn check(&self, kind: GuestKind) -> Result<()> {
        let wrong = |name: &str, value: &str, hint: &str| {
            Err(Error::argument(format!("`{name}` cannot be {value:?}"))
                .hint(hint)
                .with("argument", name))
        };
        let only: &[(&str, bool)] = match kind {
            GuestKind::Lxc => &[("model", self.model.is_some())],
            GuestKind::Qemu => &[
                ("ip", self.ip.is_some()),
                ("gw", self.gw.is_some()),
                ("ip6", self.ip6.is_some()),
                ("gw6", self.gw6.is_some()),
                ("name", self.name.is_some()),
            ],
        };
        if let Some((name, _)) = only.iter().find(|(_, given)| *given) {
            let hint = match kind {
                GuestKind::Qemu => "a VM's addresses are set inside it, or by pve_cloudinit_set",
                GuestKind::Lxc => "a container's interfaces are veth pairs without a card model",
            };
            let noun = kind.noun();
            return Err(Error::argument(format!("an interface of a {noun} has no `{name}`"))
                .hint(hint)
                .with("argument", *name));
        }
        if let Some(mac) = &self.mac
            && !is_mac(mac)
        {
            return wrong("mac", mac, "as BC:24:11:00:00:01; the first octet is even");
        }
        if let Some(bridge) = &self.bridge
            && !is_name(bridge)
        {
            return wrong("bridge", bridge, "as vmbr0, or the name of a vnet");
        }
        if let Some(name) = &self.name
            && (!is_name(name) || name.len() > 15)
        {
            return wrong("name", name, "as eth0; at most 15 characters");
        }
        for (name, value, words, v6) in [
            ("ip", &self.ip, &["dhcp", "manual"][..], false),
            ("ip6", &self.ip6, &["auto", "dhcp", "manual"][..], true),
        ] {
            if let Some(value) = value
                && !words.contains(&value.as_str())
                && !is_cidr(value, v6)
            {
                let hint = format!("an address with its prefix, or {}", words.join(", "));
                return wrong(name, value, &hint);
            }
        }
        for (name, value, v6) in [("gw", &self.gw, false), ("gw6", &self.gw6, true)] {
            if let Some(value) = value
                && !value.is_empty()
                && !is_address(value, v6)
            {
                return wrong(name, value, "an address without a prefix; empty takes it away");
            }
        }
        Ok(())
    }

    /// Puts what is wanted into a line.
    ///
    /// # Errors
    /// `invalid_argument` for what the kind of guest does not have, and values that are none.
    pub fn apply(&self, kind: GuestKind, nic: &Nic) -> Result<Line> {
        self.check(kind)?;
        let mut line = match self.model.and_then(word) {
            Some(model) if model != nic.model => nic.with_model(&model)?,
            _ => nic.line.clone(),
        };
        if let Some(mac) = &self.mac {
            let key = match kind {
                GuestKind::Lxc => "hwaddr".to_owned(),
                GuestKind::Qemu => {
                    // The address stands at the model's own key, or at macaddr.
                    let model = self.model.and_then(word).unwrap_or_else(|| nic.model.clone());
                    if line.get(&model).is_some() { model } else { "macaddr".to_owned() }
                }
            };
            line.set(&key, &mac.to_ascii_uppercase())?;
        }
        let flag = |on: Option<bool>| on.map(|on| u8::from(on).to_string());
        for (key, value) in [
            ("bridge", self.bridge.clone()),
            ("firewall", flag(self.firewall)),
            ("ip", self.ip.clone()),
            ("gw", self.gw.clone()),
            ("ip6", self.ip6.clone()),
            ("gw6", self.gw6.clone()),
            ("name", self.name.clone()),
            ("link_down", flag(self.link_down).filter(|v| v == "1")),
            ("tag", self.tag.filter(|t| *t > 0).map(|t| t.to_string())),
            ("mtu", self.mtu.filter(|m| *m > 0).map(|m| m.to_string())),
            ("rate", self.rate.filter(|r| *r > 0.0).map(|r| r.to_string())),
        ] {
            match value {
                Some(value) if value.is_empty() => {
                    line.remove(key);
                }
                Some(value) => line.set(key, &value)?,
                None => {}
            }
        }
        for (key, gone) in [
            ("tag", self.tag == Some(0)),
            ("mtu", self.mtu == Some(0)),
            ("rate", self.rate == Some(0.0)),
            ("link_down", self.link_down == Some(false)),
        ] {
            if gone {
                line.remove(key);
            }
        }
        // A gateway belongs to a fixed address.
        for (ip, gw, given) in [("ip", "gw", &self.ip), ("ip6", "gw6", &self.ip6)] {
            if given.as_deref().is_some_and(|ip| !ip.contains('/')) && line.get(ip).is_some() {
                line.remove(gw);
            }
        }
        Ok(line)
    }

    /// The line of an interface that is new.
    ///
    /// # Errors
    /// As [`Wanted::apply`]; `invalid_argument` without a bridge.
    pub fn new_line(&self, kind: GuestKind, slot: &str, firewall: bool) -> Result<Line> {
        if self.bridge.is_none() {
            return Err(
                Error::argument("a new interface needs `bridge`").with("argument", "bridge")
            );
        }
        let number = slot.strip_prefix("net").unwrap_or("0");
        let empty = match kind {
            GuestKind::Qemu => self.model.and_then(word).unwrap_or_else(|| "virtio".to_owned()),
            GuestKind::Lxc => format!("name=eth{number}"),
        };
        let Some(nic) = Nic::parse(kind, slot, &empty) else {
            return Err(Error::argument(format!("{slot:?} is no slot of an interface"))
                .hint("net0 to net31")
                .with("argument", "slot"));
        };
        let wanted = Self { firewall: self.firewall.or(firewall.then_some(true)), ..self.clone() };
        wanted.apply(kind, &nic)
    }
}

/// `AA:BB:CC:DD:EE:FF` of a single station.
fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let hex = |p: &&str| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit());
    let even =
        parts.first().and_then(|p| u8::from_str_radix(p, 16).ok()).is_some_and(|n| n % 2 == 0);
    parts.len() == 6 && parts.iter().all(hex) && even
}

fn is_name(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !text.is_empty() && text.bytes().all(word)
}

/// Whether a text is an address of the family.
pub fn is_address(text: &str, v6: bool) -> bool {
    if v6 {
        text.parse::<std::net::Ipv6Addr>().is_ok()
    } else {
        text.parse::<std::net::Ipv4Addr>().is_ok()
    }
}

/// Whether a text is an address with its prefix.
pub fn is_cidr(text: &str, v6: bool) -> bool {
    let Some((address, prefix)) = text.split_once('/') else { return false };
    let most = if v6 { 128 } else { 32 };
    let plain = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
    is_address(address, v6) && plain && prefix.parse::<u8>().is_ok_and(|n| n <= most)
}

/// Whether a new interface gets the firewall: where the cluster's is on, and
/// where that cannot be seen.
pub async fn firewall_is_on(ctx: Ctx<'_>) -> bool {
    let options = ctx.get(&["cluster", "firewall", "options"]).await;
    options.map_or(true, |options| loose::flag(&options, "enable"))
}

/// Arguments of `pve_nic_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
    vmid: Vmid,
    /// As net0; the next free one unless said.
    slot: Option<String>,
    #[serde(flatten)]
    wanted: Wanted,
    digest: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// How many interfaces a guest can have.
const MOST: u32 = 32;

/// `pve_nic_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    let guest = ctx.guest_now(args.vmid).await?;
    let config = ctx.get_below(&guest, &["config"], Params::new()).await?;
    let slot = match &args.slot {
        None => super::disk::slot(&config, None, ("net", MOST))?,
        Some(slot) => {
            let number = slot.strip_prefix("net").and_then(|n| n.parse::<u32>().ok());
            if !number.is_some_and(|n| n < MOST && *slot == format!("net{n}")) {
                return Err(Error::argument(format!("{slot:?} is no slot of an interface"))
                    .hint("net0 to net31")
                    .with("argument", "slot"));
            }
            slot.clone()
        }
    };
    let old = loose::text(&config, &slot);
    let nic = old.as_deref().and_then(|text| Nic::parse(guest.kind, &slot, text));
    let what = format!("interface {slot} of guest {}", guest.vmid);
    let did = Did::of(nic.is_some(), args.must_exist, args.must_not_exist, &what)?;
    let line = match &nic {
        Some(nic) => args.wanted.apply(guest.kind, nic)?,
        None => {
            let firewall = firewall_is_on(ctx).await;
            args.wanted.new_line(guest.kind, &slot, firewall)?
        }
    };
    let line = line.to_string();
    if old.as_deref() == Some(line.as_str()) && args.asked.dry_run != Some(true) {
        return Ok(Answer::new(json!({
            "status": "no_change", "vmid": guest.vmid, "slot": slot, "before": {&slot: line},
        })));
    }
    let params = Params::new().with(&slot, line);
    let answer = change(ctx, &guest, params, &[slot], args.digest, &args.asked).await?;
    Ok(did.tell(answer))
}

/// Arguments of `pve_nic_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Delete {
    vmid: Vmid,
    slot: String,
    digest: Option<String>,
    #[serde(flatten)]
    asked: AskedTask,
}

/// `pve_nic_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let guest = ctx.guest_now(args.vmid).await?;
    let config = ctx.get_below(&guest, &["config"], Params::new()).await?;
    let nics: Vec<&str> = config
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| Nic::parse(guest.kind, key, "").is_some())
        .map(|(key, _)| key.as_str())
        .collect();
    if !nics.contains(&args.slot.as_str()) {
        return Err(Error::new(
            Code::NotFound,
            format!("guest {} has no interface {:?}", guest.vmid, args.slot),
        )
        .hint(format!("interfaces: {}", nics.join(", ")))
        .with("argument", "slot"));
    }
    let params = Params::new().with("delete", &args.slot);
    change(ctx, &guest, params, &[args.slot], args.digest, &args.asked).await
}

/// Several interfaces of a new guest, as parameters `net0`, `net1` …
///
/// # Errors
/// As [`Wanted::new_line`].
pub fn new_nics(
    params: Params,
    kind: GuestKind,
    wanted: &[Wanted],
    firewall: bool,
) -> Result<Params> {
    let mut params = params;
    for (n, nic) in wanted.iter().enumerate() {
        let slot = format!("net{n}");
        let line = nic.new_line(kind, &slot, firewall)?;
        params = params.with(&slot, line);
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn wanted(value: Value) -> Wanted {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_not_named_stays() {
        let vm = "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,queues=4";
        let ct = "name=eth0,bridge=vmbr0,firewall=1,gw=10.0.0.1,hwaddr=BC:24:11:00:00:02,ip=10.0.0.5/24,type=veth";
        for (kind, before, change, after) in [
            (
                GuestKind::Qemu,
                vm,
                json!({"tag": 10}),
                "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,queues=4,tag=10",
            ),
            (
                GuestKind::Qemu,
                vm,
                json!({"model": "e1000"}),
                "e1000=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,queues=4",
            ),
            (
                GuestKind::Qemu,
                vm,
                json!({"mac": "bc:24:11:00:00:09"}),
                "virtio=BC:24:11:00:00:09,bridge=vmbr0,firewall=1,queues=4",
            ),
            (
                GuestKind::Qemu,
                vm,
                json!({"model": "e1000", "mac": "bc:24:11:00:00:09"}),
                "e1000=BC:24:11:00:00:09,bridge=vmbr0,firewall=1,queues=4",
            ),
            (
                GuestKind::Qemu,
                "virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=5,link_down=1",
                json!({"tag": 0, "link_down": false}),
                "virtio=BC:24:11:00:00:01,bridge=vmbr0",
            ),
            (
                GuestKind::Lxc,
                ct,
                json!({"bridge": "vmbr1"}),
                "name=eth0,bridge=vmbr1,firewall=1,gw=10.0.0.1,hwaddr=BC:24:11:00:00:02,ip=10.0.0.5/24,type=veth",
            ),
            (
                GuestKind::Lxc,
                ct,
                json!({"ip": "dhcp"}),
                "name=eth0,bridge=vmbr0,firewall=1,hwaddr=BC:24:11:00:00:02,ip=dhcp,type=veth",
            ),
        ] {
            let nic = Nic::parse(kind, "net0", before).unwrap();
            assert_eq!(
                wanted(change.clone()).apply(kind, &nic).unwrap().to_string(),
                after,
                "{change}"
            );
        }
    }

    #[test]
    fn new_interfaces() {
        let line = |kind, value, firewall| {
            wanted(value).new_line(kind, "net2", firewall).map(|l| l.to_string())
        };
        assert_eq!(
            line(GuestKind::Qemu, json!({"bridge": "vmbr0"}), true).unwrap(),
            "virtio,bridge=vmbr0,firewall=1"
        );
        assert_eq!(
            line(GuestKind::Qemu, json!({"bridge": "vmbr0"}), false).unwrap(),
            "virtio,bridge=vmbr0"
        );
        assert_eq!(
            line(GuestKind::Qemu, json!({"bridge": "vmbr0", "firewall": false, "model": "e1000", "mac": "bc:24:11:00:00:01"}), true).unwrap(),
            "e1000,bridge=vmbr0,firewall=0,macaddr=BC:24:11:00:00:01".replace(",bridge=vmbr0,firewall=0,macaddr=BC:24:11:00:00:01", ",macaddr=BC:24:11:00:00:01,bridge=vmbr0,firewall=0")
        );
        assert_eq!(
            line(GuestKind::Lxc, json!({"bridge": "vmbr0", "ip": "dhcp", "tag": 7}), true).unwrap(),
            "name=eth2,bridge=vmbr0,firewall=1,ip=dhcp,tag=7"
        );
        assert!(line(GuestKind::Lxc, json!({"ip": "dhcp"}), true).is_err());
    }

    #[test]
    fn hostile_values_are_refused() {
        let vm =
            Nic::parse(GuestKind::Qemu, "net0", "virtio=BC:24:11:00:00:01,bridge=vmbr0").unwrap();
        let ct = Nic::parse(GuestKind::Lxc, "net0", "name=eth0,bridge=vmbr0").unwrap();
        for (kind, nic, value) in [
            (GuestKind::Qemu, &vm, json!({"bridge": "vmbr0,firewall=0"})),
            (GuestKind::Qemu, &vm, json!({"bridge": "vmbr0\nargs: x"})),
            (GuestKind::Qemu, &vm, json!({"bridge": ""})),
            (GuestKind::Qemu, &vm, json!({"mac": "BD:24:11:00:00:01"})),
            (GuestKind::Qemu, &vm, json!({"mac": "BC:24:11:00:00:01,bridge=x"})),
            (GuestKind::Qemu, &vm, json!({"ip": "dhcp"})),
            (GuestKind::Lxc, &ct, json!({"model": "virtio"})),
            (GuestKind::Lxc, &ct, json!({"ip": "10.0.0.1"})),
            (GuestKind::Lxc, &ct, json!({"ip": "10.0.0.1/33"})),
            (GuestKind::Lxc, &ct, json!({"ip": "10.0.0.1/+8"})),
            (GuestKind::Lxc, &ct, json!({"ip": "auto"})),
            (GuestKind::Lxc, &ct, json!({"ip6": "10.0.0.1/24"})),
            (GuestKind::Lxc, &ct, json!({"gw": "10.0.0.0/8"})),
            (GuestKind::Lxc, &ct, json!({"name": "eth0,hwaddr=x"})),
        ] {
            assert!(wanted(value.clone()).apply(kind, nic).is_err(), "{value}");
        }
    }
}
