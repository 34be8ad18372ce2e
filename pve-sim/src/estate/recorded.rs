//! The estate of the recordings: one node `pve`, five VMs, two containers, six tokens.

use serde_json::json;

use super::build::{DAY, GIB, HOUR, map, services, space, storage};
use super::nodes::{notifications, repositories};
use crate::state::State;
use crate::state::access::User;
use crate::state::config::Config;
use crate::state::firewall::Firewall;
use crate::state::guest::{Agent, Guest, Kind, Load};
use crate::state::node::{JournalLine, Node};
use crate::state::storage::Volume;
use crate::state::task::Past;

pub(super) fn build(now_ms: i64) -> State {
    let mut state = State::new(now_ms, "pve");
    let node = node(state.born);
    state.nodes.insert("pve".to_owned(), node);
    let content = "images,rootdir,vztmpl,iso,backup,snippets,import";
    storage(
        &mut state,
        "local",
        "dir",
        content,
        json!({"path": "/var/lib/vz", "prune-backups": "keep-all=1"}),
        false,
    );
    space(&mut state, "local", "pve", 25_185_042_432, 2_396_000_256, 0.0);
    notifications(&mut state);
    access(&mut state);
    guests(&mut state);
    volumes(&mut state);
    configured(&mut state);
    history(&mut state);
    state
}

fn node(born: i64) -> Node {
    let mut node = Node {
        name: "pve".to_owned(),
        ip: "10.77.0.2".to_owned(),
        online: true,
        cpus: 2,
        sockets: 1,
        cpu_model: "Intel(R) Xeon(R) Processor".to_owned(),
        mem: 25_276_510_208,
        base_mem: 2 * GIB,
        base_cpu: 0.3,
        root: 25_185_042_432,
        root_used: 2_396_000_256,
        boot: born - HOUR,
        installed: born - HOUR,
        kernel: "6.17.2-1-pve".to_owned(),
        version: "9.2.11".to_owned(),
        fingerprint: "1E:5B:85:D5:FC:4F:8E:DB:31:DE:93:86:85:45:F5:F6:C6:A5:E1:03:B3:9E:B0:77:93:9E:42:BA:B1:AA:4A:2E".to_owned(),
        hosts: "127.0.0.1 localhost.localdomain localhost\n10.77.0.2 pve.example.test pve\n".to_owned(),
        timezone: "Etc/UTC".to_owned(),
        dns: map(json!({"search": "example.test", "dns1": "10.0.2.3"})),
        repositories: sources(),
        ..Node::default()
    };
    services(&mut node);
    for (name, value) in [
        (
            "eth0",
            json!({"type": "eth", "method": "manual", "method6": "manual", "families": ["inet"], "priority": 3, "active": 1}),
        ),
        (
            "vmbr0",
            json!({"type": "bridge", "method": "static", "method6": "manual", "families": ["inet"], "priority": 4, "active": 1,
            "autostart": 1, "address": "10.77.0.2", "netmask": "24", "cidr": "10.77.0.2/24", "gateway": "10.77.0.1",
            "bridge_ports": "eth0", "bridge_stp": "off", "bridge_fd": "0"}),
        ),
    ] {
        let mut value = map(value);
        value.insert("iface".to_owned(), json!(name));
        node.network.insert(name.to_owned(), value);
    }
    let package = |name: &str, old: &str, new: &str| {
        json!({"Package": name, "Title": name, "Description": name, "OldVersion": old, "Version": new, "Origin": "Proxmox",
            "Section": "admin", "Priority": "optional", "Arch": "amd64"})
    };
    node.updates = vec![
        package("proxmox-kernel-6.17", "6.17.2-1", "6.17.4-2"),
        package("pve-manager", "9.2.11", "9.2.12"),
    ];
    for (name, version, key, value) in [
        ("proxmox-ve", "9.2.0", "RunningKernel", "6.17.2-1-pve"),
        ("pve-manager", "9.2.11", "ManagerVersion", "9.2.11/14a22df3a1b2c3d4"),
    ] {
        let mut row = map(package(name, version, version));
        row.insert("CurrentState".to_owned(), json!("Installed"));
        row.insert(key.to_owned(), json!(value));
        node.versions.push(row.into());
    }
    let pem = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";
    let certificate = |file: &str, days: i64, san: serde_json::Value| {
        map(
            json!({"filename": file, "subject": "/OU=PVE Cluster Node/O=Proxmox Virtual Environment/CN=pve.example.test",
            "issuer": "/CN=Proxmox Virtual Environment/O=PVE Cluster Manager CA", "notbefore": born - DAY, "notafter": born + days * DAY,
            "san": san, "public-key-type": "rsaEncryption", "public-key-bits": 2048, "fingerprint": node.fingerprint, "pem": pem}),
        )
    };
    node.certificates = vec![
        certificate("pve-root-ca.pem", 3650, json!([])),
        certificate(
            "pve-ssl.pem",
            730,
            json!(["127.0.0.1", "localhost", "pve", "pve.example.test"]),
        ),
    ];
    node.disks = vec![
        json!({"devpath": "/dev/vda", "model": "unknown", "vendor": "0x1af4", "serial": "unknown", "size": 274_877_906_944_u64,
        "wearout": "N/A", "health": "UNKNOWN", "type": "unknown", "gpt": 0, "rpm": -1, "osdid": -1, "osdid-list": null, "wwn": "unknown"}),
    ];
    node.pci = vec![
        json!({"id": "0000:00:03.0", "class": "0x020000", "vendor": "0x1af4", "vendor_name": "Red Hat, Inc.", "device": "0x1041",
        "device_name": "Virtio 1.0 network device", "subsystem_vendor": "0x1af4", "subsystem_vendor_name": "Red Hat, Inc.",
        "subsystem_device": "0x1041", "iommugroup": -1}),
    ];
    node.subscription = map(
        json!({"status": "notfound", "serverid": "stub", "message": "There is no subscription key",
        "url": "https://www.proxmox.com/en/proxmox-virtual-environment/pricing"}),
    );
    node.journal = (0..12)
        .map(|n| JournalLine {
            time: born - HOUR + n * 60,
            program: "pvedaemon[282]".to_owned(),
            priority: 6,
            text: format!("starting server ({n})"),
        })
        .collect();
    node
}

fn access(state: &mut State) {
    let access = &mut state.access;
    access.add_token("root_full", "root@pam", "full", false);
    access.add_token("sep", "root@pam", "sep", true);
    access.add_token("admin", "admin1@pve", "adm", false);
    access.add_token("auditor", "auditor@pve", "audit", false);
    access.add_token("vmop", "vmop@pve", "op", false);
    access.add_token("none", "nobody@pve", "none", false);
    access.known.insert("readonly".to_owned(), ("auditor@pve".to_owned(), "audit".to_owned()));
    access.grant("/", "admin1@pve", "Administrator");
    access.grant("/", "auditor@pve", "PVEAuditor");
    access.grant("/vms/100", "vmop@pve", "PVEVMUser");
    let mut lead = User::default();
    lead.texts.insert("comment".to_owned(), "test lead".to_owned());
    lead.texts.insert("email".to_owned(), "lead@example.test".to_owned());
    access.users.insert("lead@pve".to_owned(), lead);
    if let Some(root) = access.users.get_mut("root@pam") {
        root.password = Some("pve-test-pw1".to_owned());
    }
}

fn guests(state: &mut State) {
    let born = state.born;
    let mut add = |vmid: u32, kind: Kind, pairs: &[(&str, &str)]| {
        let guest = Guest::new(
            vmid,
            kind,
            "pve",
            Config::from_pairs(pairs.iter().copied()),
            born - HOUR / 2,
        );
        state.guests.insert(vmid, guest);
    };
    add(
        100,
        Kind::Qemu,
        &[
            ("boot", "order=scsi0;net0"),
            ("cores", "1"),
            ("description", "héllo wörld — ünïcode ✓\nsecond line"),
            ("kvm", "0"),
            ("memory", "128"),
            ("meta", "creation-qemu=10.0.13,ctime=1795996245"),
            ("name", "web"),
            ("net0", "virtio=BC:24:11:54:18:62,bridge=vmbr0"),
            ("onboot", "0"),
            ("ostype", "l26"),
            ("protection", "0"),
            ("scsi0", "local:100/vm-100-disk-0.qcow2,size=2G"),
            ("scsihw", "virtio-scsi-pci"),
            ("smbios1", "uuid=347cc570-32cc-4cc9-bdee-e0afb184a796"),
            ("tags", "a;b;c"),
            ("vga", "std"),
            ("vmgenid", "9e82431c-b5ba-4640-83bc-7422b61ca0f7"),
        ],
    );
    add(
        101,
        Kind::Qemu,
        &[
            ("agent", "1"),
            ("boot", "order=scsi0"),
            ("kvm", "0"),
            ("memory", "128"),
            ("meta", "creation-qemu=10.0.13,ctime=1795996245"),
            ("name", "db"),
            ("scsi0", "local:101/vm-101-disk-0.qcow2,size=1G"),
            ("smbios1", "uuid=3891bf7d-b50d-4a71-b190-a3fcf8d30294"),
            ("vmgenid", "c20c1643-d3a4-43b6-91d7-7c86d90d367d"),
        ],
    );
    add(
        102,
        Kind::Qemu,
        &[
            ("boot", "order=scsi0"),
            ("kvm", "0"),
            ("memory", "64"),
            ("meta", "creation-qemu=10.0.13,ctime=1795996424"),
            ("name", "tmpl"),
            ("scsi0", "local:102/base-102-disk-1.qcow2,size=1G"),
            ("smbios1", "uuid=099a0e1d-20ba-4a5c-81c9-0d4968db7391"),
            ("template", "1"),
            ("vmgenid", "04d55de0-e6b1-43f4-8062-c5a625e4c511"),
        ],
    );
    add(
        103,
        Kind::Qemu,
        &[
            ("agent", "1"),
            ("kvm", "0"),
            ("memory", "256"),
            ("meta", "creation-qemu=10.0.13,ctime=1795996500"),
            ("name", "agentvm"),
            ("net0", "virtio=BC:24:11:0A:0B:0C,bridge=vmbr0"),
            ("onboot", "1"),
            ("serial0", "socket"),
            ("smbios1", "uuid=5a0e1d09-20ba-4a5c-81c9-0d4968db7392"),
            ("vga", "serial0"),
            ("vmgenid", "14d55de0-e6b1-43f4-8062-c5a625e4c512"),
        ],
    );
    add(
        104,
        Kind::Qemu,
        &[
            ("boot", "order=net0"),
            ("meta", "creation-qemu=10.0.13,ctime=1795996246"),
            ("net0", "virtio=BC:24:11:7D:EE:01,bridge=nope"),
            ("smbios1", "uuid=6a0e1d09-20ba-4a5c-81c9-0d4968db7393"),
            ("vmgenid", "24d55de0-e6b1-43f4-8062-c5a625e4c513"),
        ],
    );
    add(
        200,
        Kind::Lxc,
        &[
            ("arch", "amd64"),
            ("hostname", "ct200"),
            ("memory", "256"),
            ("net0", "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:D8:6D:F2,ip=10.77.0.20/24,type=veth"),
            ("onboot", "1"),
            ("ostype", "debian"),
            ("rootfs", "local:200/vm-200-disk-0.raw,size=1G"),
            ("swap", "0"),
            ("unprivileged", "1"),
        ],
    );
    add(
        201,
        Kind::Lxc,
        &[
            ("arch", "amd64"),
            ("hostname", "ct201"),
            ("memory", "64"),
            ("ostype", "debian"),
            ("rootfs", "local:201/base-201-disk-0.raw,size=512M"),
            ("swap", "512"),
            ("template", "1"),
            ("unprivileged", "1"),
        ],
    );
    for vmid in [103, 200] {
        let pid = state.tasks.pid();
        if let Some(guest) = state.guests.get_mut(&vmid) {
            guest.start(born - 600, pid);
            guest.load = Load { cpu: 0.1, mem: 0.8, disk: 0.22, ..Load::default() };
        }
    }
    if let Some(guest) = state.guests.get_mut(&103) {
        guest.agent = Some(Agent {
            os: "Debian GNU/Linux 13 (trixie)".to_owned(),
            kernel: "6.12.48+deb13-amd64".to_owned(),
            addresses: vec!["10.77.0.30/24".to_owned()],
            filesystems: vec![("/".to_owned(), "vda1".to_owned(), GIB, GIB / 3)],
            ..Agent::default()
        });
    }
    // Has no ACPI to hear a shutdown with.
    for vmid in [100, 101] {
        if let Some(guest) = state.guests.get_mut(&vmid) {
            guest.stubborn = true;
        }
    }
}

fn volumes(state: &mut State) {
    let born = state.born;
    for (name, content, format, size, used, vmid) in [
        ("100/vm-100-disk-0.qcow2", "images", "qcow2", 2 * GIB, Some(532_480), Some(100)),
        ("101/vm-101-disk-0.qcow2", "images", "qcow2", GIB, Some(331_776), Some(101)),
        ("102/base-102-disk-0.qcow2", "images", "qcow2", GIB, Some(331_776), Some(102)),
        ("102/base-102-disk-1.qcow2", "images", "qcow2", GIB, Some(331_776), Some(102)),
        ("200/vm-200-disk-0.raw", "rootdir", "raw", GIB, Some(264_486_912), Some(200)),
        ("201/base-201-disk-0.raw", "rootdir", "raw", GIB / 2, Some(17_334_272), Some(201)),
        ("snippets/tiny.img", "snippets", "snippet", 4_422_424, None, None),
        (
            "vztmpl/debian-13-standard_13.1-2_amd64.tar.zst",
            "vztmpl",
            "tzst",
            67_927_978,
            None,
            None,
        ),
    ] {
        let mut v = Volume::new("local", name, content, format, size, born - HOUR / 2);
        v.node = Some("pve".to_owned());
        v.vmid = vmid;
        v.used = used;
        state.volumes.push(v);
    }
}

/// Package sources of the machine of the recordings: a folder on it, and a mirror that is switched off.
fn sources() -> serde_json::Value {
    let mut all = repositories();
    let mirror = json!({"path": "/etc/apt/sources.list", "file-type": "list", "digest": vec![189; 32], "repositories": [
        {"Types": ["deb"], "URIs": ["http://mirror.example.test/debian"], "Suites": ["trixie"], "Components": ["main", "contrib"],
            "Enabled": 0, "FileType": "list"}]});
    let local = json!({"path": "/etc/apt/sources.list.d/pve-test.list", "file-type": "list", "digest": vec![202; 32], "repositories": [
        {"Types": ["deb"], "URIs": ["file:/srv/repo"], "Suites": ["./"], "Enabled": 1, "FileType": "list",
            "Options": [{"Key": "trusted", "Values": ["yes"]}]}]});
    if let Some(map) = all.as_object_mut() {
        map.insert("files".to_owned(), json!([mirror, local]));
        map.insert("infos".to_owned(), json!([{"path": "/etc/apt/sources.list", "index": 0, "kind": "origin", "message": "Debian"}]));
    }
    all
}

fn configured(state: &mut State) {
    state.options = map(json!({"keyboard": "en-us", "description": "ds\n"}));
    if let Some(node) = state.nodes.get_mut("pve") {
        node.config = map(json!({"description": "node ✓\n"}));
    }
    let mut cluster = Firewall {
        rules: vec![map(json!({"type": "in", "action": "DROP", "enable": 0}))],
        options: map(json!({"enable": 0, "policy_in": "DROP"})),
        ..Firewall::default()
    };
    cluster.aliases.insert("lan".to_owned(), map(json!({"cidr": "10.1.0.0/16"})));
    state.firewalls.insert("cluster".to_owned(), cluster);
    state.firewalls.insert("group/web".to_owned(), Firewall::default());
    let web = Firewall {
        rules: vec![map(
            json!({"type": "in", "action": "ACCEPT", "macro": "SSH", "enable": 1, "log": "nolog"}),
        )],
        options: map(json!({"enable": 1, "dhcp": 1})),
        ..Firewall::default()
    };
    state.firewalls.insert("guest/100".to_owned(), web);
    let mut backup = Volume::new(
        "local",
        "backup/vzdump-lxc-200-2026_11_30-00_12_34.tar.zst",
        "backup",
        "tar.zst",
        67_885_162,
        state.born - 560,
    );
    backup.node = Some("pve".to_owned());
    backup.vmid = Some(200);
    backup.subtype = Some("lxc");
    backup.notes = Some("ct200".to_owned());
    backup.config = state
        .guests
        .get(&200)
        .map(|g| g.config.iter().map(|(k, v)| format!("{k}: {v}\n")).collect());
    state.volumes.push(backup);
}

fn history(state: &mut State) {
    let now = state.born;
    let mut past = |kind: &str, id: &str, user: &str, ago: i64, exit: &str, log: &[&str]| {
        let log = log.iter().map(|l| (*l).to_owned()).collect();
        let start = now - ago;
        state.tasks.past(Past { node: "pve", kind, id, user, start, seconds: 1, exit, log });
    };
    let full = "root@pam!full";
    past("qmdestroy", "110", full, 1656, "OK", &["purging VM 110 from related configurations.."]);
    past("qmstart", "103", "root@pam", 1400, "OK", &[]);
    past("qmstart", "100", "vmop@pve!op", 1019, "OK", &[]);
    past(
        "vzcreate",
        "210",
        full,
        607,
        "WARNINGS: 1",
        &["WARN: Systemd 257 detected. You may need to enable nesting."],
    );
    past(
        "vzcreate",
        "211",
        full,
        605,
        "unable to create CT 211 - volume 'local:vztmpl/nope.tar.zst' does not exist",
        &[
            "Formatting '/var/lib/vz/images/211/vm-211-disk-0.raw', fmt=raw size=1073741824 preallocation=off",
            "Creating filesystem with 262144 4k blocks and 65536 inodes",
            "Filesystem UUID: df4ee28c-3668-4e44-b7f6-1d4dd3503c31",
        ],
    );
    past(
        "vzdump",
        "777",
        full,
        558,
        "job errors",
        &[
            "INFO: starting new backup job: vzdump 777 --storage local --node pve",
            "ERROR: Backup of VM 777 failed - unable to find VM '777'",
            "INFO: Failed at 2026-11-30 00:12:42",
            "INFO: Backup job finished with errors",
        ],
    );
    past(
        "qmstart",
        "9999",
        full,
        91,
        "Configuration file 'nodes/pve/qemu-server/9999.conf' does not exist",
        &[],
    );
    past("qmstop", "100", "root@pam", 63, "OK", &[]);
    past("startall", "", "root@pam", 9, "OK", &[]);
    for (ago, msg) in
        [(41, "starting cluster log"), (9, "starting task startall"), (1, "end task startall: OK")]
    {
        state.note(now - ago, "root@pam", "pve-guests", msg.to_owned());
    }
}
