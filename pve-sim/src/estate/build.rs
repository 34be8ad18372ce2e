//! Small builders that the estates share.

use serde_json::{Map, Value, json};

use crate::state::State;
use crate::state::access::uuid;
use crate::state::config::{Config, digest};
use crate::state::guest::{Agent, Guest, Kind, Load, Snapshot, parse_size};
use crate::state::node::Node;
use crate::state::rrd::noise;
use crate::state::storage::{Space, Storage, Volume};

pub(super) const GIB: u64 = 1 << 30;
pub(super) const TIB: u64 = 1 << 40;
pub(super) const HOUR: i64 = 3600;
pub(super) const DAY: i64 = 86_400;

/// A JSON object's map.
pub(super) fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// A UUID that belongs to a name.
pub(super) fn uuid_of(name: &str) -> String {
    let hex = digest([name]);
    let bytes: Vec<u8> = (0..16)
        .filter_map(|n| hex.get(n * 2..n * 2 + 2))
        .filter_map(|h| u8::from_str_radix(h, 16).ok())
        .collect();
    uuid(&bytes)
}

/// A MAC address with Proxmox's own prefix that belongs to a name.
pub(super) fn mac_of(name: &str) -> String {
    let hex = digest([name]).to_uppercase();
    let part = |n: usize| hex.get(n..n + 2).unwrap_or("00").to_owned();
    format!("BC:24:11:{}:{}:{}", part(0), part(2), part(4))
}

const SERVICES: [(&str, &str, &str); 19] = [
    ("chrony", "chrony, an NTP client/server", "running"),
    ("corosync", "Corosync Cluster Engine", "running"),
    ("cron", "Regular background program processing daemon", "running"),
    ("ksmtuned", "Kernel Samepage Merging (KSM) Tuning Daemon", "running"),
    ("lxcfs", "FUSE filesystem for LXC", "running"),
    ("postfix", "Postfix Mail Transport Agent", "running"),
    ("proxmox-firewall", "Proxmox nftables firewall", "running"),
    ("pve-cluster", "The Proxmox VE cluster filesystem", "running"),
    ("pve-firewall", "Proxmox VE firewall", "running"),
    ("pve-ha-crm", "PVE Cluster HA Resource Manager Daemon", "running"),
    ("pve-ha-lrm", "PVE Local HA Resource Manager Daemon", "running"),
    ("pve-lxc-syscalld", "Proxmox VE LXC Syscall Daemon", "running"),
    ("pvedaemon", "PVE API Daemon", "running"),
    ("pvefw-logger", "Proxmox VE firewall logger", "running"),
    ("pveproxy", "PVE API Proxy Server", "running"),
    ("pvescheduler", "Proxmox VE scheduler", "running"),
    ("pvestatd", "PVE Status Daemon", "running"),
    ("spiceproxy", "PVE SPICE Proxy Server", "running"),
    ("sshd", "OpenBSD Secure Shell server", "running"),
];

/// The services of a node, all as they should be.
pub(super) fn services(node: &mut Node) {
    for (name, desc, state) in SERVICES {
        let service = json!({"service": name, "name": name, "desc": desc, "state": state, "active-state": "active",
            "unit-state": "enabled"});
        node.services.insert(name.to_owned(), map(service));
    }
}

/// A storage with its space.
pub(super) fn storage(
    state: &mut State,
    id: &str,
    kind: &str,
    content: &str,
    options: Value,
    shared: bool,
) {
    let storage = Storage {
        id: id.to_owned(),
        kind: kind.to_owned(),
        content: content.split(',').map(str::to_owned).collect(),
        shared,
        options: map(options),
        ..Storage::default()
    };
    state.storages.insert(id.to_owned(), storage);
}

/// Space of a storage on a node, `*` for a shared one.
pub(super) fn space(state: &mut State, id: &str, node: &str, total: u64, used: u64, growth: f64) {
    if let Some(s) = state.storages.get_mut(id) {
        s.space.push((node.to_owned(), Space { total, used, growth, offline: false }));
    }
}

/// Builds one guest.
pub(super) struct Make {
    guest: Guest,
    born: i64,
    run_for: Option<i64>,
    storage: String,
    pool: Option<String>,
}

impl Make {
    fn new(state: &State, vmid: u32, kind: Kind, node: &str, name: &str, config: Config) -> Self {
        let mut config = config;
        config.set(if kind == Kind::Qemu { "name" } else { "hostname" }, name);
        let guest = Guest::new(vmid, kind, node, config, state.born - 400 * DAY);
        Self { guest, born: state.born, run_for: None, storage: "local-lvm".to_owned(), pool: None }
    }

    /// A virtual machine with one NIC.
    pub(super) fn vm(
        state: &State,
        vmid: u32,
        node: &str,
        name: &str,
        cores: u64,
        mem_mib: u64,
    ) -> Self {
        let mut config = Config::from_pairs([
            ("boot", "order=scsi0;net0"),
            ("cpu", "x86-64-v2-AES"),
            ("numa", "0"),
            ("ostype", "l26"),
            ("scsihw", "virtio-scsi-single"),
            ("sockets", "1"),
        ]);
        config.set("cores", cores.to_string());
        config.set("memory", mem_mib.to_string());
        config.set("smbios1", format!("uuid={}", uuid_of(&format!("smbios{vmid}"))));
        config.set("vmgenid", uuid_of(&format!("gen{vmid}")));
        config.set("meta", format!("creation-qemu=10.0.2,ctime={}", state.born - 400 * DAY));
        let mac = mac_of(&format!("{vmid}/0"));
        config.set("net0", format!("virtio={mac},bridge=vmbr0,firewall=1"));
        Self::new(state, vmid, Kind::Qemu, node, name, config)
    }

    /// An unprivileged container with one NIC.
    pub(super) fn ct(
        state: &State,
        vmid: u32,
        node: &str,
        name: &str,
        cores: u64,
        mem_mib: u64,
    ) -> Self {
        let mut config = Config::from_pairs([
            ("arch", "amd64"),
            ("ostype", "debian"),
            ("swap", "512"),
            ("unprivileged", "1"),
        ]);
        config.set("cores", cores.to_string());
        config.set("memory", mem_mib.to_string());
        config.set("features", "nesting=1");
        let mac = mac_of(&format!("{vmid}/0"));
        config.set(
            "net0",
            format!("name=eth0,bridge=vmbr0,firewall=1,hwaddr={mac},ip=dhcp,type=veth"),
        );
        Self::new(state, vmid, Kind::Lxc, node, name, config)
    }

    /// An option of the configuration.
    pub(super) fn set(mut self, key: &str, value: &str) -> Self {
        self.guest.config.set(key, value);
        self
    }

    /// Without an option.
    pub(super) fn unset(mut self, key: &str) -> Self {
        self.guest.config.remove(key);
        self
    }

    pub(super) fn tags(self, tags: &str) -> Self {
        self.set("tags", tags)
    }

    pub(super) fn notes(self, notes: &str) -> Self {
        self.set("description", notes)
    }

    pub(super) fn pool(mut self, pool: &str) -> Self {
        self.pool = Some(pool.to_owned());
        self
    }

    /// The storage of the disks that follow.
    pub(super) fn on(mut self, storage: &str) -> Self {
        self.storage = storage.to_owned();
        self
    }

    /// A disk or mount point.
    pub(super) fn disk(mut self, key: &str, size: &str, options: &str) -> Self {
        let n = self.guest.disks().len();
        let name = volume_name(&self.storage, &self.guest, n);
        let more = if options.is_empty() { String::new() } else { format!(",{options}") };
        let iothread = if key.starts_with("scsi") { ",iothread=1" } else { "" };
        self.guest.config.set(key, format!("{}:{name}{more}{iothread},size={size}", self.storage));
        self
    }

    /// In which VLAN its NIC is.
    pub(super) fn vlan(mut self, tag: u16) -> Self {
        let nic = self.guest.config.get("net0").unwrap_or("").to_owned();
        self.guest.config.set("net0", format!("{nic},tag={tag}"));
        self
    }

    pub(super) fn load(mut self, cpu: f64, mem: f64) -> Self {
        self.guest.load.cpu = cpu;
        self.guest.load.mem = mem;
        self
    }

    pub(super) fn with_load(mut self, change: impl FnOnce(&mut Load)) -> Self {
        change(&mut self.guest.load);
        self
    }

    /// An agent that answers, with this address.
    pub(super) fn agent(mut self, os: &str, kernel: &str, address: &str) -> Self {
        if self.guest.kind == Kind::Qemu {
            self.guest.config.set("agent", "1");
        }
        let size = self.guest.max_disk();
        let used = (size as f64 * 0.42) as u64;
        let windows = os.contains("Windows");
        let root = if windows { "C:\\" } else { "/" };
        self.guest.agent = Some(Agent {
            os: os.to_owned(),
            kernel: kernel.to_owned(),
            addresses: vec![address.to_owned()],
            filesystems: vec![(root.to_owned(), "sda1".to_owned(), size, used)],
            files: [("/etc/hostname".to_owned(), format!("{}\n", self.guest.name()).into_bytes())]
                .into(),
            windows,
            ..Agent::default()
        });
        self
    }

    /// A Debian inside that answers, with this address.
    pub(super) fn debian(self, address: &str) -> Self {
        self.agent("Debian GNU/Linux 13 (trixie)", "6.12.48+deb13-amd64", address)
    }

    /// Runs since so many seconds.
    pub(super) fn up(mut self, seconds: i64) -> Self {
        self.run_for = Some(seconds);
        self
    }

    /// Made so many days ago.
    pub(super) fn age(mut self, days: i64) -> Self {
        self.guest.created = self.born - days * DAY;
        self
    }

    /// A snapshot of so many seconds ago, on top of the last one.
    pub(super) fn snapshot(mut self, name: &str, seconds: i64, description: &str) -> Self {
        self.guest.snapshots.push(Snapshot {
            name: name.to_owned(),
            parent: self.guest.parent.clone(),
            time: self.born - seconds,
            description: description.to_owned(),
            vmstate: false,
            config: self.guest.config.for_snapshot(),
        });
        self.guest.parent = Some(name.to_owned());
        self
    }

    /// Locked since so many seconds.
    pub(super) fn locked(mut self, lock: &str, seconds: i64) -> Self {
        let since = self.born - seconds;
        self.guest.set_lock(lock, since);
        self
    }

    pub(super) fn edit(mut self, change: impl FnOnce(&mut Guest)) -> Self {
        change(&mut self.guest);
        self
    }

    /// Adds it to the estate, with its volumes.
    pub(super) fn done(self, state: &mut State) {
        let Self { mut guest, born, run_for, pool, .. } = self;
        for (_, value) in guest.disks() {
            add_volume(state, &guest, &value);
        }
        if let Some(seconds) = run_for {
            let pid = state.tasks.pid();
            guest.start(born - seconds, pid);
        }
        if let Some(pool) = pool {
            state.pools.entry(pool).or_default().guests.push(guest.vmid);
        }
        state.guests.insert(guest.vmid, guest);
    }
}

fn volume_name(storage: &str, guest: &Guest, n: usize) -> String {
    let kind = if guest.template() { "base" } else { "vm" };
    let vmid = guest.vmid;
    match storage {
        s if s.starts_with("nfs") || s == "local" => {
            let ext = if guest.kind == Kind::Qemu { "qcow2" } else { "raw" };
            format!("{vmid}/{kind}-{vmid}-disk-{n}.{ext}")
        }
        s if s.starts_with("zfs") && guest.kind == Kind::Lxc => format!("subvol-{vmid}-disk-{n}"),
        _ => format!("{kind}-{vmid}-disk-{n}"),
    }
}

fn add_volume(state: &mut State, guest: &Guest, value: &str) {
    let mut parts = value.split(',');
    let Some((storage, name)) = parts.next().and_then(|v| v.split_once(':')) else { return };
    let size =
        value.split(',').find_map(|p| p.strip_prefix("size=")).and_then(parse_size).unwrap_or(0);
    let content = if guest.kind == Kind::Qemu { "images" } else { "rootdir" };
    let format = match name.rsplit_once('.') {
        Some((_, ext)) => ext.to_owned(),
        None if name.starts_with("subvol") => "subvol".to_owned(),
        None => "raw".to_owned(),
    };
    let mut v = Volume::new(storage, name, content, &format, size, guest.created);
    v.node = state.volume_node(storage, &guest.node);
    v.vmid = Some(guest.vmid);
    v.used = (format == "qcow2").then(|| (size as f64 * (0.3 + 0.4 * noise(name, 0))) as u64);
    state.volumes.push(v);
}
