//! The three nodes of the sample company, and who may do what there.

use serde_json::{Value, json};

use super::build::{DAY, GIB, HOUR, map, services, uuid_of};
use crate::state::node::{JournalLine, Node};
use crate::state::{State, access::User};

struct Spec {
    name: &'static str,
    ip: &'static str,
    id: u32,
    cpus: u64,
    mem_gib: u64,
    up_days: i64,
    kernel: &'static str,
    model: &'static str,
}

const NODES: [Spec; 3] = [
    Spec {
        name: "pve1",
        ip: "10.20.0.11",
        id: 1,
        cpus: 32,
        mem_gib: 256,
        up_days: 41,
        kernel: "6.17.4-2-pve",
        model: "Intel(R) Xeon(R) Silver 4314 CPU @ 2.40GHz",
    },
    Spec {
        name: "pve2",
        ip: "10.20.0.12",
        id: 2,
        cpus: 32,
        mem_gib: 256,
        up_days: 41,
        kernel: "6.17.4-2-pve",
        model: "Intel(R) Xeon(R) Silver 4314 CPU @ 2.40GHz",
    },
    Spec {
        name: "pve3",
        ip: "10.20.0.13",
        id: 3,
        cpus: 24,
        mem_gib: 128,
        up_days: 187,
        kernel: "6.17.2-1-pve",
        model: "Intel(R) Xeon(R) Silver 4310 CPU @ 2.10GHz",
    },
];

pub(super) fn fill(state: &mut State) {
    state.cluster = Some("blaufeld".to_owned());
    for spec in &NODES {
        let node = node(state.born, spec);
        state.nodes.insert(spec.name.to_owned(), node);
    }
    access(state);
    state.options = map(
        json!({"keyboard": "de", "console": "html5", "description": "Blaufeld Logistik, Rechenzentrum Köln\n",
        "migration": {"type": "secure", "network": "10.20.1.0/24"}, "max_workers": 4}),
    );
    let totem = json!({"cluster_name": "blaufeld", "config_version": "7", "ip_version": "ipv4-6", "link_mode": "passive",
        "secauth": "on", "version": "2", "interface": {"0": {"linknumber": "0"}}});
    state.documents.insert("/cluster/config/totem".to_owned(), totem);
    let gpu = json!([{"id": "gpu-a2", "description": "NVIDIA A2", "map": ["id=10de:25b6,iommugroup=41,node=pve1,path=0000:17:00.0"]}]);
    state.documents.insert("/cluster/mapping/pci".to_owned(), gpu);
    notifications(state);
    let appliance = |template: &str, os: &str, headline: &str| {
        json!({"template": template, "package": template.split('_').next(), "os": os, "section": "system", "type": "lxc",
            "headline": headline, "version": "1", "source": "http://download.proxmox.com", "architecture": "amd64"})
    };
    state.documents.insert(
        "aplinfo".to_owned(),
        json!([
            appliance(
                "debian-13-standard_13.1-2_amd64.tar.zst",
                "debian-13",
                "Debian 13 Trixie (standard)"
            ),
            appliance(
                "ubuntu-24.04-standard_24.04-2_amd64.tar.zst",
                "ubuntu-24.04",
                "Ubuntu 24.04 Noble (standard)"
            ),
            appliance(
                "alpine-3.22-default_20250617_amd64.tar.xz",
                "alpine",
                "LXC default image for alpine 3.22"
            ),
        ]),
    );
}

pub(super) fn notifications(state: &mut State) {
    let targets = json!([{"name": "mail-to-root", "type": "sendmail", "origin": "builtin",
        "comment": "Send mails to root@pam's email address"}]);
    let matchers = json!([{"name": "default-matcher", "mode": "all", "origin": "builtin", "target": ["mail-to-root"],
        "comment": "Route all notifications to mail-to-root"}]);
    let plugins = json!([{"plugin": "standalone", "type": "standalone", "digest": "da39a3ee5e6b4b0d3255bfef95601890afd80709"}]);
    for (path, value) in [("targets", targets), ("matchers", matchers)] {
        state.documents.insert(format!("/cluster/notifications/{path}"), value);
    }
    state.documents.insert("/cluster/acme/plugins".to_owned(), plugins);
}

fn node(born: i64, spec: &Spec) -> Node {
    let mut node = Node {
        name: spec.name.to_owned(),
        ip: spec.ip.to_owned(),
        id: spec.id,
        online: true,
        cpus: spec.cpus,
        sockets: if spec.cpus > 24 { 2 } else { 1 },
        cpu_model: spec.model.to_owned(),
        mem: spec.mem_gib * GIB,
        base_mem: 5 * GIB,
        base_cpu: 0.02,
        swap: 8 * GIB,
        swap_used: 0,
        root: 94 * GIB,
        root_used: (11 + u64::from(spec.id) * 2) * GIB,
        boot: born - spec.up_days * DAY - 5 * HOUR,
        installed: born - 720 * DAY,
        kernel: spec.kernel.to_owned(),
        efi: true,
        version: "9.2.11".to_owned(),
        level: "c".to_owned(),
        fingerprint: fingerprint(spec.name),
        hosts: "127.0.0.1 localhost.localdomain localhost\n10.20.0.11 pve1.blaufeld.example pve1\n\
                10.20.0.12 pve2.blaufeld.example pve2\n10.20.0.13 pve3.blaufeld.example pve3\n"
            .to_owned(),
        timezone: "UTC".to_owned(),
        dns: map(
            json!({"search": "blaufeld.example", "dns1": "10.20.10.53", "dns2": "10.20.10.54"}),
        ),
        ..Node::default()
    };
    services(&mut node);
    network(&mut node, spec);
    packages(&mut node);
    certificates(&mut node, born);
    hardware(&mut node);
    journal(&mut node, born);
    node.subscription = map(
        json!({"status": "active", "level": "c", "productname": "Proxmox VE Community Subscription 2 CPUs/year",
        "key": format!("pve2c-{}", &uuid_of(spec.name)[..10]), "regdate": "2025-02-11 00:00:00", "nextduedate": "2027-02-11",
        "serverid": uuid_of(&format!("server{}", spec.name)).replace('-', "").to_uppercase(), "sockets": node.sockets,
        "checktime": born - 7 * HOUR, "url": "https://www.proxmox.com/en/proxmox-virtual-environment/pricing"}),
    );
    node
}

fn fingerprint(name: &str) -> String {
    let text = format!("{}{}", uuid_of(&format!("cert-{name}")), uuid_of(&format!("cert2-{name}")))
        .replace('-', "")
        .to_uppercase();
    let bytes: Vec<&str> = (0..32).filter_map(|n| text.get(n * 2..n * 2 + 2)).collect();
    bytes.join(":")
}

fn network(node: &mut Node, spec: &Spec) {
    let eth = |priority: u32| json!({"type": "eth", "method": "manual", "method6": "manual", "families": ["inet"], "priority": priority, "active": 1, "exists": 1});
    for (name, value) in [
        ("eno1", eth(3)),
        ("eno2", eth(4)),
        (
            "bond0",
            json!({"type": "bond", "method": "manual", "method6": "manual", "families": ["inet"], "priority": 5, "active": 1,
            "autostart": 1, "bond_mode": "802.3ad", "bond_miimon": "100", "bond_xmit_hash_policy": "layer3+4", "slaves": "eno1 eno2"}),
        ),
        (
            "vmbr0",
            json!({"type": "bridge", "method": "static", "method6": "manual", "families": ["inet"], "priority": 6, "active": 1,
            "autostart": 1, "address": spec.ip, "netmask": "24", "cidr": format!("{}/24", spec.ip), "gateway": "10.20.0.1",
            "bridge_ports": "bond0", "bridge_stp": "off", "bridge_fd": "0", "bridge_vlan_aware": 1, "bridge_vids": "2-4094"}),
        ),
        (
            "vmbr1",
            json!({"type": "bridge", "method": "static", "method6": "manual", "families": ["inet"], "priority": 7, "active": 1,
            "autostart": 1, "address": format!("10.20.1.{}", spec.id + 10), "netmask": "24",
            "cidr": format!("10.20.1.{}/24", spec.id + 10), "bridge_ports": "enp65s0", "bridge_stp": "off", "bridge_fd": "0",
            "comments": "Migration und Replikation\n"}),
        ),
    ] {
        let mut value = map(value);
        value.insert("iface".to_owned(), json!(name));
        node.network.insert(name.to_owned(), value);
    }
}

fn package(name: &str, old: &str, new: &str, origin: &str, section: &str) -> Value {
    json!({"Package": name, "Title": name, "Description": name, "OldVersion": old, "Version": new, "Origin": origin,
        "Section": section, "Priority": "optional", "Arch": "amd64"})
}

fn packages(node: &mut Node) {
    let behind = node.name == "pve3";
    if behind {
        node.updates = vec![
            package("proxmox-kernel-6.17", "6.17.2-1", "6.17.4-2", "Proxmox", "admin"),
            package("pve-manager", "9.2.11", "9.2.12", "Proxmox", "admin"),
            package("qemu-server", "9.2.6", "9.2.7", "Proxmox", "admin"),
            package("libpve-common-perl", "9.2.1", "9.2.2", "Proxmox", "perl"),
            package("openssl", "3.5.1-1", "3.5.4-1~deb13u1", "Debian-Security", "utils"),
            package("libssl3t64", "3.5.1-1", "3.5.4-1~deb13u1", "Debian-Security", "libs"),
        ];
    } else {
        node.updates = vec![package("libc6", "2.41-12", "2.41-12+deb13u1", "Debian", "libs")];
    }
    let running = node.kernel.clone();
    let kernel = running.trim_end_matches("-pve").to_owned();
    let mut versions = vec![
        package("proxmox-ve", "9.2.0", "9.2.0", "Proxmox", "admin"),
        package(
            "pve-manager",
            "9.2.11",
            if behind { "9.2.12" } else { "9.2.11" },
            "Proxmox",
            "admin",
        ),
        package("proxmox-kernel-helper", "9.0.4", "9.0.4", "Proxmox", "admin"),
        package(
            "proxmox-kernel-6.17",
            &kernel,
            if behind { "6.17.4-2" } else { &kernel },
            "Proxmox",
            "admin",
        ),
        package("proxmox-kernel-6.17.2-1-pve-signed", "6.17.2-1", "6.17.2-1", "Proxmox", "admin"),
        package("qemu-server", "9.2.6", if behind { "9.2.7" } else { "9.2.6" }, "Proxmox", "admin"),
        package("pve-qemu-kvm", "10.0.2-4", "10.0.2-4", "Proxmox", "admin"),
        package("lxc-pve", "6.0.5-1", "6.0.5-1", "Proxmox", "admin"),
        package("corosync", "3.1.9-pve2", "3.1.9-pve2", "Proxmox", "admin"),
        package("proxmox-backup-client", "4.0.14-1", "4.0.14-1", "Proxmox", "admin"),
    ];
    // The newer kernel is on the disk of every node; pve3 has not booted it.
    versions.push(package(
        "proxmox-kernel-6.17.4-2-pve-signed",
        "6.17.4-2",
        "6.17.4-2",
        "Proxmox",
        "admin",
    ));
    for v in &mut versions {
        let name = v.get("Package").and_then(Value::as_str).unwrap_or("").to_owned();
        if let Value::Object(map) = v {
            map.insert("CurrentState".to_owned(), json!("Installed"));
            if name == "proxmox-ve" {
                map.insert("RunningKernel".to_owned(), json!(running));
            }
            if name == "pve-manager" {
                map.insert("ManagerVersion".to_owned(), json!("9.2.11/14a22df3a1b2c3d4"));
            }
        }
    }
    node.versions = versions;
    node.repositories = repositories();
}

pub(super) fn repositories() -> Value {
    let repo = |uri: &str, suite: &str, components: &[&str]| json!({"Types": ["deb"], "URIs": [uri], "Suites": [suite], "Components": components, "Enabled": 1, "FileType": "sources"});
    let file = |path: &str, repositories: Vec<Value>| json!({"path": path, "file-type": "sources", "repositories": repositories, "digest": vec![17; 32]});
    json!({
        "digest": format!("{}{}", uuid_of("repos").replace('-', ""), uuid_of("repos2").replace('-', "")),
        "errors": [],
        "files": [
            file("/etc/apt/sources.list.d/debian.sources", vec![
                repo("http://deb.debian.org/debian", "trixie", &["main", "contrib"]),
                repo("http://deb.debian.org/debian", "trixie-updates", &["main", "contrib"]),
                repo("http://security.debian.org/debian-security", "trixie-security", &["main", "contrib"]),
            ]),
            file("/etc/apt/sources.list.d/pve-enterprise.sources", vec![
                repo("https://enterprise.proxmox.com/debian/pve", "trixie", &["pve-enterprise"]),
            ]),
        ],
        "infos": [],
        "standard-repos": [
            {"handle": "enterprise", "name": "Enterprise", "status": 1, "description":
                "The default repository, for nodes with a subscription."},
            {"handle": "no-subscription", "name": "No-Subscription", "description": "For testing and non-production use."},
            {"handle": "test", "name": "Test", "description": "The newest packages, for test labs."},
        ],
    })
}

fn certificates(node: &mut Node, born: i64) {
    let name = node.name.clone();
    let host = format!("{name}.blaufeld.example");
    let ca = json!({"filename": "pve-root-ca.pem", "subject": "/CN=Proxmox Virtual Environment/O=PVE Cluster Manager CA",
        "issuer": "/CN=Proxmox Virtual Environment/O=PVE Cluster Manager CA", "notbefore": born - 720 * DAY,
        "notafter": born + 2930 * DAY, "san": [], "public-key-type": "rsaEncryption", "public-key-bits": 4096,
        "fingerprint": fingerprint("ca"), "pem": "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"});
    let own = json!({"filename": "pve-ssl.pem", "subject": format!("/OU=PVE Cluster Node/O=Proxmox Virtual Environment/CN={host}"),
        "issuer": "/CN=Proxmox Virtual Environment/O=PVE Cluster Manager CA", "notbefore": born - 330 * DAY,
        "notafter": born + 400 * DAY, "san": ["127.0.0.1", "localhost", node.ip, name, host], "public-key-type": "rsaEncryption",
        "public-key-bits": 2048, "fingerprint": node.fingerprint, "pem": "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"});
    node.certificates = vec![map(ca), map(own)];
    // A certificate of the company's own CA that nobody renewed.
    if name == "pve2" {
        let custom = json!({"filename": "pveproxy-ssl.pem", "subject": format!("/CN={host}"), "issuer": "/CN=Blaufeld Issuing CA 2",
            "notbefore": born - 354 * DAY, "notafter": born + 11 * DAY, "san": [host], "public-key-type": "rsaEncryption",
            "public-key-bits": 2048, "fingerprint": fingerprint("custom"),
            "pem": "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"});
        node.certificates.push(map(custom));
    }
}

fn hardware(node: &mut Node) {
    let disk = |path: &str, model: &str, size: u64, wear: Value, used: &str, health: &str| {
        json!({"devpath": path, "model": model, "vendor": "ATA", "serial": uuid_of(&format!("{}{path}", node.name))[..12].to_uppercase(),
            "size": size, "wearout": wear, "used": used, "health": health, "type": "ssd", "gpt": 1, "rpm": 0, "osdid": -1,
            "osdid-list": null, "wwn": format!("0x5{}", &uuid_of(path).replace('-', "")[..15]), "by_id_link": format!("/dev/disk/by-id/ata-{model}")})
    };
    let worn = if node.name == "pve3" { json!(9) } else { json!(91) };
    node.disks = vec![
        disk("/dev/sda", "SAMSUNG_MZ7L3480", 480 * 1_000_000_000, json!(97), "BIOS boot", "PASSED"),
        disk("/dev/sdb", "SAMSUNG_MZ7L3480", 480 * 1_000_000_000, json!(97), "BIOS boot", "PASSED"),
        disk("/dev/nvme0n1", "SAMSUNG_MZQL23T8", 3840 * 1_000_000_000, worn, "LVM", "PASSED"),
    ];
    node.pci = vec![
        json!({"id": "0000:17:00.0", "class": "0x030200", "vendor": "0x10de", "vendor_name": "NVIDIA Corporation", "device": "0x25b6",
            "device_name": "GA107GL [A2 / A16]", "subsystem_vendor": "0x10de", "subsystem_vendor_name": "NVIDIA Corporation",
            "subsystem_device": "0x157e", "iommugroup": 41}),
        json!({"id": "0000:65:00.0", "class": "0x020000", "vendor": "0x15b3", "vendor_name": "Mellanox Technologies",
            "device": "0x1015", "device_name": "MT27800 Family [ConnectX-5]", "subsystem_vendor": "0x15b3", "iommugroup": 52}),
    ];
    node.usb = vec![
        json!({"busnum": 1, "devnum": 3, "port": 2, "level": 1, "class": 9, "speed": "480", "usbpath": "2",
        "vendid": "0557", "prodid": "2419", "manufacturer": "ATEN", "product": "Virtual Hub"}),
    ];
}

fn journal(node: &mut Node, born: i64) {
    let lines = [
        (9 * HOUR, "pvescheduler[1822]", 6, "<root@pam> starting task vzdump"),
        (8 * HOUR, "pvestatd[1744]", 4, "status update time (6.214 seconds)"),
        (5 * HOUR, "corosync[1602]", 6, "[KNET  ] link: host: 3 link: 0 is down"),
        (5 * HOUR - 4, "corosync[1602]", 6, "[KNET  ] rx: host: 3 link: 0 is up"),
        (3 * HOUR, "kernel", 3, "ata3.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen"),
        (2 * HOUR, "pvedaemon[1790]", 6, "<root@pam> successful auth for user 'jmueller@pve'"),
        (900, "systemd[1]", 6, "Started Cleanup of Temporary Directories."),
        (60, "pvestatd[1744]", 6, "status update finished"),
    ];
    node.journal = lines
        .into_iter()
        .map(|(ago, program, priority, text)| JournalLine {
            time: born - ago,
            program: program.to_owned(),
            priority,
            text: text.to_owned(),
        })
        .collect();
}

fn access(state: &mut State) {
    let access = &mut state.access;
    let user = |first: &str, last: &str, comment: &str| {
        let mut user = User::default();
        for (k, v) in [("firstname", first), ("lastname", last), ("comment", comment)] {
            user.texts.insert(k.to_owned(), v.to_owned());
        }
        user.texts.insert(
            "email".to_owned(),
            format!(
                "{}@blaufeld.example",
                last.to_lowercase().replace('ü', "ue").replace('ß', "ss")
            ),
        );
        user
    };
    for (id, first, last, comment) in [
        ("jmueller@pve", "Jörg", "Müller", "Betrieb"),
        ("aweiss@pve", "Anna", "Weiß", "Entwicklung"),
        ("backup@pbs", "", "Sicherung", "only for the backup server"),
    ] {
        access.users.insert(id.to_owned(), user(first, last, comment));
    }
    access.groups.insert(
        "betrieb".to_owned(),
        crate::state::access::Group {
            comment: "Betrieb Köln".to_owned(),
            users: vec!["jmueller@pve".to_owned()],
        },
    );
    access.add_token("admin", "mcp@pve", "full", false);
    access.add_token("readonly", "audit@pve", "read", false);
    access.add_token("none", "nobody@pve", "none", false);
    access.grant("/", "mcp@pve", "Administrator");
    access.grant("/", "audit@pve", "PVEAuditor");
    access.grant("/", "@betrieb", "PVEAdmin");
    access.grant("/pool/entwicklung", "aweiss@pve", "PVEVMUser");
}
