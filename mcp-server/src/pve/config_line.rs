//! Lines of guest configurations: `local-lvm:vm-100-disk-0,iothread=1,size=32G`.
//!
//! Proxmox replaces such a value whole, so a change of one key has to keep all
//! others, known to us or not, in their order.

use std::fmt::Write as _;

use super::guest::GuestKind;
use crate::{Error, Result};

/// A property string: `value,key=value,…`, where a value without a key
/// belongs to the default key. Prints back exactly as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    default_key: Option<&'static str>,
    /// Key and value; a value of the default key that was written bare has no key.
    parts: Vec<(Option<String>, String)>,
}

impl Line {
    /// Reads a property string; every text is one.
    #[must_use]
    pub fn parse(text: &str, default_key: Option<&'static str>) -> Self {
        let is_key = |key: &str| {
            key.starts_with(|c: char| c.is_ascii_alphabetic())
                && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        let part = |part: &str| match part.split_once('=') {
            Some((key, value)) if is_key(key) => (Some(key.to_owned()), value.to_owned()),
            _ => (None, part.to_owned()),
        };
        let parts = if text.is_empty() { Vec::new() } else { text.split(',').map(part).collect() };
        Self { default_key, parts }
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.parts.iter().position(|(k, _)| match k {
            Some(k) => k == key,
            None => self.default_key == Some(key),
        })
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.parts.get(self.position(key)?).map(|(_, value)| value.as_str())
    }

    /// A switch; absent is `None`.
    #[must_use]
    pub fn flag(&self, key: &str) -> Option<bool> {
        super::params::boolean(self.get(key)?)
    }

    /// Every key with its value, in order; a bare value has the default key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let default = self.default_key.unwrap_or_default();
        self.parts.iter().map(move |(k, v)| (k.as_deref().unwrap_or(default), v.as_str()))
    }

    /// Sets one key in its place, or at the end.
    ///
    /// # Errors
    /// `invalid_argument` for a value that would end the key's part: a comma or
    /// a control character.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        if value.contains(',') || value.chars().any(char::is_control) {
            return Err(Error::argument(format!("{key} cannot hold a comma or control character")));
        }
        match self.position(key).and_then(|at| self.parts.get_mut(at)) {
            Some(part) => value.clone_into(&mut part.1),
            None if self.default_key == Some(key) => self.parts.insert(0, (None, value.to_owned())),
            None => self.parts.push((Some(key.to_owned()), value.to_owned())),
        }
        Ok(())
    }

    /// Removes a key; whether it was there.
    pub fn remove(&mut self, key: &str) -> bool {
        let at = self.position(key);
        at.map(|at| self.parts.remove(at)).is_some()
    }

    /// The line as it may be written: without `size`, which Proxmox keeps
    /// itself and which a stale value would contradict.
    #[must_use]
    pub fn to_write(&self) -> String {
        let mut line = self.clone();
        line.remove("size");
        line.to_string()
    }

    /// Whether every key of this line has the same value in another.
    #[must_use]
    pub fn is_within(&self, other: &Line) -> bool {
        self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, (key, value)) in self.parts.iter().enumerate() {
            if i > 0 {
                f.write_char(',')?;
            }
            if let Some(key) = key {
                write!(f, "{key}=")?;
            }
            f.write_str(value)?;
        }
        Ok(())
    }
}

/// Bytes of `32G`, `528K`, `1.5T` or a bare number.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    let (number, shift) = match text.char_indices().last()? {
        (at, 'K' | 'k') => (text.get(..at)?, 10),
        (at, 'M' | 'm') => (text.get(..at)?, 20),
        (at, 'G' | 'g') => (text.get(..at)?, 30),
        (at, 'T' | 't') => (text.get(..at)?, 40),
        _ => (text, 0),
    };
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    whole.checked_add((fraction * f64::from(shift).exp2()) as u64)
}

/// What a slot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiskRole {
    /// A VM's disk.
    Disk,
    /// A CD-ROM drive, empty or not.
    CdRom,
    /// The cloud-init drive.
    CloudInit,
    /// Stored EFI variables.
    Efi,
    /// Stored TPM state.
    Tpm,
    /// A container's root.
    RootFs,
    /// A container's further volume, or a bind mount of the host.
    MountPoint,
    /// A volume that was detached and kept.
    Unused,
}

/// What is behind a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A volume of a storage.
    Volume {
        /// Storage id.
        storage: String,
        /// Name within the storage, for example `vm-100-disk-0`.
        name: String,
    },
    /// A path or device of the host.
    HostPath(String),
    /// An empty drive.
    Empty,
}

impl Source {
    fn parse(text: &str) -> Self {
        match text.split_once(':') {
            _ if text.starts_with('/') => Self::HostPath(text.to_owned()),
            Some((storage, name)) => {
                Self::Volume { storage: storage.to_owned(), name: name.to_owned() }
            }
            None if matches!(text, "none" | "") => Self::Empty,
            None => Self::HostPath(text.to_owned()),
        }
    }

    /// `storage:name`, for a volume.
    #[must_use]
    pub fn volume_id(&self) -> Option<String> {
        match self {
            Self::Volume { storage, name } => Some(format!("{storage}:{name}")),
            _ => None,
        }
    }
}

/// A disk, drive or mount point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Key in the configuration, for example `scsi0`.
    pub slot: String,
    /// What it is for.
    pub role: DiskRole,
    /// What is behind it.
    pub source: Source,
    /// Size in bytes, where the configuration says it.
    pub size: Option<u64>,
    /// Where a container mounts it.
    pub mount: Option<String>,
    /// Whether backups hold it.
    pub backed_up: bool,
    /// The whole line.
    pub line: Line,
}

impl Disk {
    /// Reads one key of a guest's configuration; `None` when it is no disk.
    #[must_use]
    pub fn parse(kind: GuestKind, slot: &str, text: &str) -> Option<Self> {
        let key = if kind == GuestKind::Lxc { "volume" } else { "file" };
        let line = Line::parse(text, Some(key));
        let source = Source::parse(line.get(key).unwrap_or_default());
        let role = disk_role(kind, slot, &line)?;
        let backed_up = match role {
            DiskRole::RootFs | DiskRole::Efi | DiskRole::Tpm => true,
            DiskRole::Disk => line.flag("backup") != Some(false),
            DiskRole::MountPoint => {
                line.flag("backup") == Some(true) && source.volume_id().is_some()
            }
            DiskRole::CdRom | DiskRole::CloudInit | DiskRole::Unused => false,
        };
        Some(Self {
            slot: slot.to_owned(),
            role,
            source,
            size: line.get("size").and_then(size),
            mount: if role == DiskRole::RootFs {
                Some("/".to_owned())
            } else {
                line.get("mp").map(str::to_owned)
            },
            backed_up,
            line,
        })
    }
}

fn disk_role(kind: GuestKind, slot: &str, line: &Line) -> Option<DiskRole> {
    let number = slot.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let bus = slot.strip_suffix(number)?;
    if number.is_empty() {
        return (kind == GuestKind::Lxc && bus == "rootfs").then_some(DiskRole::RootFs);
    }
    if !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    match (kind, bus) {
        (_, "unused") => Some(DiskRole::Unused),
        (GuestKind::Lxc, "mp") => Some(DiskRole::MountPoint),
        (GuestKind::Qemu, "efidisk") => Some(DiskRole::Efi),
        (GuestKind::Qemu, "tpmstate") => Some(DiskRole::Tpm),
        (GuestKind::Qemu, "ide" | "sata" | "scsi" | "virtio") => {
            let file = line.get("file").unwrap_or_default();
            Some(if line.get("media") != Some("cdrom") {
                DiskRole::Disk
            } else if file.ends_with(":cloudinit") || file.contains("-cloudinit") {
                DiskRole::CloudInit
            } else {
                DiskRole::CdRom
            })
        }
        _ => None,
    }
}

/// Models of VM network cards that may stand as the key of the MAC address.
const NIC_MODELS: &[&str] = &[
    "e1000",
    "e1000-82540em",
    "e1000-82544gc",
    "e1000-82545em",
    "e1000e",
    "i82551",
    "i82557b",
    "i82559er",
    "ne2k_isa",
    "ne2k_pci",
    "pcnet",
    "rtl8139",
    "virtio",
    "vmxnet3",
];

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nic {
    /// Key in the configuration, for example `net0`.
    pub slot: String,
    /// Card model of a VM, interface name in a container.
    pub model: String,
    /// MAC address.
    pub mac: Option<String>,
    /// Bridge or virtual network.
    pub bridge: Option<String>,
    /// VLAN tag.
    pub tag: Option<u16>,
    /// Whether the guest firewall filters it.
    pub firewall: bool,
    /// Whether its link is down.
    pub link_down: bool,
    /// IPv4 of a container: address with prefix, `dhcp` or `manual`.
    pub ip: Option<String>,
    /// IPv6 of a container: address with prefix, `auto`, `dhcp` or `manual`.
    pub ip6: Option<String>,
    /// The whole line.
    pub line: Line,
}

impl Nic {
    /// Reads one key of a guest's configuration; `None` when it is no interface.
    #[must_use]
    pub fn parse(kind: GuestKind, slot: &str, text: &str) -> Option<Self> {
        let number = slot.strip_prefix("net")?;
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let (line, model, mac) = match kind {
            GuestKind::Lxc => {
                let line = Line::parse(text, None);
                let (name, mac) = (line.get("name").map(str::to_owned), line.get("hwaddr"));
                let mac = mac.map(str::to_owned);
                (line, name, mac)
            }
            GuestKind::Qemu => {
                let line = Line::parse(text, Some("model"));
                let short = line.iter().find(|(key, _)| NIC_MODELS.contains(key));
                let short = short.map(|(model, mac)| (model.to_owned(), mac.to_owned()));
                let model = line.get("model").map(str::to_owned);
                let mac = line.get("macaddr").map(str::to_owned);
                match short {
                    Some((model, mac)) => (line, Some(model), Some(mac)),
                    None => (line, model, mac),
                }
            }
        };
        let text = |key| line.get(key).map(str::to_owned);
        Some(Self {
            slot: slot.to_owned(),
            model: model.unwrap_or_default(),
            mac: mac.map(|m| m.to_ascii_uppercase()),
            bridge: text("bridge"),
            tag: line.get("tag").and_then(|t| t.parse().ok()),
            firewall: line.flag("firewall") == Some(true),
            link_down: line.flag("link_down") == Some(true),
            ip: text("ip"),
            ip6: text("ip6"),
            line,
        })
    }

    /// The line with another card model and the same MAC address.
    ///
    /// # Errors
    /// `invalid_argument` for a model that Proxmox does not have.
    pub fn with_model(&self, model: &str) -> Result<Line> {
        if !NIC_MODELS.contains(&model) {
            return Err(Error::argument(format!("{model:?} is not a network card model"))
                .hint(format!("models are {}", NIC_MODELS.join(", "))));
        }
        let mut line = self.line.clone();
        for (key, value) in &mut line.parts {
            match key.as_deref() {
                Some(k) if NIC_MODELS.contains(&k) => *key = Some(model.to_owned()),
                Some("model") | None => model.clone_into(value),
                _ => {}
            }
        }
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(text: &str) -> Line {
        Line::parse(text, Some("file"))
    }

    #[test]
    fn one_key_changes_and_all_others_stay() {
        let net = "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,queues=4,unheard-of=x";
        let cases: &[(&str, &str, Option<&str>, &str)] = &[
            (
                net,
                "tag",
                Some("10"),
                "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,queues=4,unheard-of=x,tag=10",
            ),
            (
                net,
                "bridge",
                Some("vmbr1"),
                "virtio=BC:24:11:00:00:01,bridge=vmbr1,firewall=1,queues=4,unheard-of=x",
            ),
            (net, "firewall", None, "virtio=BC:24:11:00:00:01,bridge=vmbr0,queues=4,unheard-of=x"),
            ("a:b,ssd=1", "file", Some("c:d"), "c:d,ssd=1"),
            ("file=a:b,ssd=1", "file", Some("c:d"), "file=c:d,ssd=1"),
            ("ssd=1", "file", Some("c:d"), "c:d,ssd=1"),
            ("", "file", Some("c:d"), "c:d"),
        ];
        for (before, key, value, after) in cases {
            let mut line = line(before);
            match value {
                Some(value) => line.set(key, value).unwrap(),
                None => assert!(line.remove(key)),
            }
            assert_eq!(line.to_string(), *after);
        }
        for bad in ["vmbr0,args=x", "a\nb", "a\0"] {
            assert!(line(net).set("bridge", bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn size_is_never_written_back() {
        let text = "local-lvm:vm-100-disk-0,iothread=1,size=32G,ssd=1";
        assert_eq!(line(text).to_write(), "local-lvm:vm-100-disk-0,iothread=1,ssd=1");
    }

    #[test]
    fn sizes() {
        let cases = [
            ("32G", Some(32 << 30)),
            ("528K", Some(528 << 10)),
            ("4M", Some(4 << 20)),
            ("1.5T", Some(3 << 39)),
            ("1024", Some(1024)),
            ("", None),
            ("G", None),
            ("-1G", None),
            ("1e3G", None),
            ("99999999999999999999T", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(size(text), bytes, "{text}");
        }
    }

    #[test]
    fn slots_of_both_kinds() {
        use DiskRole::{CdRom, CloudInit, Efi, MountPoint, RootFs, Tpm, Unused};
        use GuestKind::{Lxc, Qemu};
        let cases = [
            (Qemu, "scsi0", "local-lvm:vm-1-disk-0,size=8G", Some((DiskRole::Disk, true))),
            (Qemu, "scsi0", "local-lvm:vm-1-disk-0,backup=0", Some((DiskRole::Disk, false))),
            (Qemu, "ide2", "none,media=cdrom", Some((CdRom, false))),
            (Qemu, "ide2", "local:iso/a.iso,media=cdrom,size=4M", Some((CdRom, false))),
            (Qemu, "ide0", "local-lvm:vm-1-cloudinit,media=cdrom", Some((CloudInit, false))),
            (Qemu, "efidisk0", "local-lvm:vm-1-disk-1,efitype=4m", Some((Efi, true))),
            (Qemu, "tpmstate0", "local-lvm:vm-1-disk-2,version=v2.0", Some((Tpm, true))),
            (Qemu, "unused3", "local-lvm:vm-1-disk-9", Some((Unused, false))),
            (Qemu, "scsihw", "virtio-scsi-single", None),
            (Qemu, "net0", "virtio=AA,bridge=vmbr0", None),
            (Qemu, "mp0", "x:y,mp=/z", None),
            (Lxc, "rootfs", "local-lvm:vm-2-disk-0,size=8G", Some((RootFs, true))),
            (Lxc, "mp0", "local-lvm:vm-2-disk-1,mp=/data,size=1G", Some((MountPoint, false))),
            (Lxc, "mp0", "local-lvm:vm-2-disk-1,mp=/data,backup=1", Some((MountPoint, true))),
            (Lxc, "mp1", "/srv,mp=/srv,backup=1", Some((MountPoint, false))),
            (Lxc, "scsi0", "local-lvm:vm-2-disk-1", None),
        ];
        for (kind, slot, text, wanted) in cases {
            let disk = Disk::parse(kind, slot, text);
            assert_eq!(disk.as_ref().map(|d| (d.role, d.backed_up)), wanted, "{slot} {text}");
            if let Some(disk) = disk {
                assert_eq!(disk.line.to_string(), text);
            }
        }
        let disk = Disk::parse(Lxc, "mp1", "/srv,mp=/data").unwrap();
        assert_eq!(disk.source, Source::HostPath("/srv".into()));
        assert_eq!(disk.mount.as_deref(), Some("/data"));
    }

    #[test]
    fn network_interfaces_of_both_kinds() {
        let text = "virtio=bc:24:11:54:18:62,bridge=vmbr0,tag=30,firewall=1,link_down=1";
        let nic = Nic::parse(GuestKind::Qemu, "net0", text).unwrap();
        assert_eq!((nic.model.as_str(), nic.mac.as_deref()), ("virtio", Some("BC:24:11:54:18:62")));
        assert_eq!((nic.tag, nic.firewall, nic.link_down), (Some(30), true, true));
        assert_eq!(
            nic.with_model("e1000").unwrap().to_string(),
            "e1000=bc:24:11:54:18:62,bridge=vmbr0,tag=30,firewall=1,link_down=1"
        );
        assert!(nic.with_model("ne3k").is_err());

        let long =
            Nic::parse(GuestKind::Qemu, "net1", "model=e1000e,macaddr=AA:BB,bridge=b").unwrap();
        assert_eq!((long.model.as_str(), long.mac.as_deref()), ("e1000e", Some("AA:BB")));
        let bare = Nic::parse(GuestKind::Qemu, "net1", "virtio,bridge=b").unwrap();
        assert_eq!((bare.model.as_str(), bare.mac), ("virtio", None));

        let text = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:D8:6D:F2,ip=10.77.0.20/24,type=veth";
        let nic = Nic::parse(GuestKind::Lxc, "net0", text).unwrap();
        assert_eq!((nic.model.as_str(), nic.ip.as_deref()), ("eth0", Some("10.77.0.20/24")));
        assert_eq!(nic.mac.as_deref(), Some("BC:24:11:D8:6D:F2"));
        assert!(Nic::parse(GuestKind::Qemu, "netmask", "x").is_none());
    }

    proptest! {
        #[test]
        fn prints_back_what_it_read(text in "[ -~é\\n]{0,60}") {
            prop_assert_eq!(Line::parse(&text, Some("file")).to_string(), text.clone());
            prop_assert_eq!(Line::parse(&text, None).to_string(), text);
        }

        #[test]
        fn what_was_set_is_read_and_nothing_else_changes(
            text in "[a-z0-9=:,/-]{0,40}",
            key in "[a-z]{1,6}",
            value in "[a-zA-Z0-9:/._-]{0,12}",
        ) {
            let before = Line::parse(&text, Some("file"));
            let mut after = before.clone();
            after.set(&key, &value).unwrap();
            prop_assert_eq!(after.get(&key), Some(value.as_str()));
            for (other, old) in before.iter().filter(|(k, _)| *k != key) {
                let _ = old;
                prop_assert_eq!(after.get(other), before.get(other));
            }
        }

        #[test]
        fn sizes_never_panic(text in "\\PC{0,24}") {
            let _ = size(&text);
        }
    }
}
