//! The estate as an inventory for other programs: stable order, versioned form.

use std::collections::BTreeMap;

use serde::Serialize;

use super::estate::{Estate, Guest, Part, Setup, Storage, unique};
use crate::pve::{
    Vmid,
    config_line::{Disk, Nic},
};

/// Name of the form.
pub const SCHEMA: &str = "proxmox-mcp/inventory";
/// Version of the form: raised when a member changes its meaning or goes away.
pub const VERSION: u32 = 1;

/// The inventory. Two estates that are alike give the same bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inventory {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// [`VERSION`].
    pub version: u32,
    /// Name of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// By name.
    pub nodes: Vec<InventoryNode>,
    /// By VMID.
    pub guests: Vec<InventoryGuest>,
    /// By id and node; shared ones once.
    pub storages: Vec<InventoryStorage>,
    /// What could not be seen, so that what is missing is not taken for gone.
    pub unknown: Vec<String>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InventoryNode {
    /// Name.
    pub name: String,
    /// Whether the cluster sees it.
    pub online: bool,
    /// Cores.
    pub cores: Option<u64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Version of Proxmox VE.
    pub version: Option<String>,
    /// The kernel it runs.
    pub kernel: Option<String>,
}

/// A guest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InventoryGuest {
    /// Number.
    pub vmid: Vmid,
    /// Name.
    pub name: String,
    /// `qemu` or `lxc`.
    pub kind: &'static str,
    /// Node.
    pub node: String,
    /// `running`, `stopped` …
    pub status: &'static str,
    /// Whether it is a template.
    pub template: bool,
    /// Case folded, sorted.
    pub tags: Vec<String>,
    /// Pool.
    pub pool: Option<String>,
    /// Cores.
    pub cores: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Addresses without prefix, sorted, without loopback and link-local ones.
    pub addresses: Vec<String>,
    /// Disks and mount points; absent where the configuration was not seen.
    pub disks: Option<Vec<InventoryDisk>>,
    /// Network interfaces; absent where the configuration was not seen.
    pub nics: Option<Vec<InventoryNic>>,
}

/// A disk or mount point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InventoryDisk {
    /// Name in the configuration.
    pub slot: String,
    /// Volume id; absent for a path of the host.
    pub volume: Option<String>,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
    /// Where a container mounts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InventoryNic {
    /// Name in the configuration.
    pub slot: String,
    /// MAC address.
    pub mac: Option<String>,
    /// Bridge or virtual network.
    pub bridge: Option<String>,
    /// VLAN.
    pub vlan: Option<u16>,
}

/// A storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InventoryStorage {
    /// Storage id.
    pub id: String,
    /// Node; absent for a shared storage.
    pub node: Option<String>,
    /// Type.
    pub kind: String,
    /// Kinds of content, sorted.
    pub content: Vec<String>,
    /// Size in bytes.
    pub total_bytes: Option<u64>,
}

/// Makes the inventory. `addresses` are those that agents and containers tell.
#[must_use]
pub fn inventory(estate: &Estate, addresses: &BTreeMap<Vmid, Vec<String>>) -> Inventory {
    let mut guests: Vec<InventoryGuest> =
        estate.guests.rows().iter().map(|g| guest(estate, addresses, g)).collect();
    guests.sort_by_key(|guest| guest.vmid);
    let nodes = estate.nodes.rows().iter().map(|node| InventoryNode {
        name: node.name.clone(),
        online: node.online,
        cores: node.maxcpu,
        memory_bytes: node.maxmem,
        version: node.version.clone(),
        kernel: node.kernel.clone(),
    });
    Inventory {
        schema: SCHEMA,
        version: VERSION,
        cluster: estate.cluster.known().and_then(|cluster| cluster.name.clone()),
        nodes: nodes.collect(),
        storages: unique(estate.storages.rows()).into_iter().map(storage).collect(),
        unknown: unknown(estate, &guests),
        guests,
    }
}

fn guest(
    estate: &Estate,
    addresses: &BTreeMap<Vmid, Vec<String>>,
    guest: &Guest,
) -> InventoryGuest {
    let setup = estate.configs.get(&guest.vmid).and_then(Part::known);
    InventoryGuest {
        vmid: guest.vmid,
        name: guest.name.clone(),
        kind: guest.kind.as_str(),
        node: guest.node.to_string(),
        status: guest.status.as_str(),
        template: guest.template,
        tags: guest.tags(),
        pool: guest.pool.as_ref().map(ToString::to_string),
        cores: guest.maxcpu,
        memory_bytes: guest.maxmem,
        addresses: told(addresses.get(&guest.vmid), setup),
        disks: setup.map(|setup| setup.disks.iter().map(disk).collect()),
        nics: setup.map(|setup| setup.nics.iter().map(nic).collect()),
    }
}

/// What the guest tells, and the fixed addresses of a container.
fn told(addresses: Option<&Vec<String>>, setup: Option<&Setup>) -> Vec<String> {
    let fixed = setup.into_iter().flat_map(|setup| &setup.nics).flat_map(|nic| [&nic.ip, &nic.ip6]);
    let all = addresses.into_iter().flatten().chain(fixed.flatten());
    // Words such as `dhcp` are no addresses.
    let mut found: Vec<std::net::IpAddr> = all
        .filter_map(|text| text.split(['/', '%']).next()?.parse().ok())
        .filter(|address: &std::net::IpAddr| !is_local(address))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.iter().map(ToString::to_string).collect()
}

fn is_local(address: &std::net::IpAddr) -> bool {
    match address {
        std::net::IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.is_unspecified(),
        std::net::IpAddr::V6(v6) => {
            v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unspecified()
        }
    }
}

fn disk(disk: &Disk) -> InventoryDisk {
    InventoryDisk {
        slot: disk.slot.clone(),
        volume: disk.source.volume_id(),
        size_bytes: disk.size,
        mount: disk.mount.clone(),
    }
}

fn nic(nic: &Nic) -> InventoryNic {
    InventoryNic {
        slot: nic.slot.clone(),
        mac: nic.mac.clone(),
        bridge: nic.bridge.clone(),
        vlan: nic.tag,
    }
}

fn storage(storage: &Storage) -> InventoryStorage {
    let mut content = storage.content.clone();
    content.sort();
    InventoryStorage {
        id: storage.id.clone(),
        node: (!storage.shared).then(|| storage.node.clone()),
        kind: storage.plugin.clone(),
        content,
        total_bytes: storage.total,
    }
}

fn unknown(estate: &Estate, guests: &[InventoryGuest]) -> Vec<String> {
    let parts = [
        ("guests", estate.guests.why()),
        ("nodes", estate.nodes.why()),
        ("storages", estate.storages.why()),
    ];
    let mut lines: Vec<String> =
        parts.iter().filter_map(|(what, why)| Some(format!("{what}: {}", (*why)?))).collect();
    let unseen = guests.iter().filter(|guest| guest.disks.is_none()).count();
    if unseen > 0 {
        lines.push(format!("disks and interfaces of {unseen} guests"));
    }
    lines.extend(estate.offline().map(|node| format!("node {node}: offline")));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::insight::fixture::{GIB, build, healthy, vmid};

    fn api() -> serde_json::Value {
        let mut api = healthy();
        api["configs"]["101"]["net0"] =
            json!("name=eth0,bridge=vmbr0,hwaddr=bc:24:11:00:00:01,ip=10.0.0.5/24,ip6=dhcp,tag=20");
        api
    }

    fn addresses() -> BTreeMap<Vmid, Vec<String>> {
        let of = |list: &[&str]| list.iter().map(|a| (*a).to_owned()).collect();
        BTreeMap::from([
            (
                vmid(100),
                of(&["fe80::1%eth0", "10.0.0.20", "127.0.0.1", "::1", "10.0.0.3", "2001:db8::7"]),
            ),
            (vmid(101), of(&["10.0.0.5/24"])),
        ])
    }

    #[test]
    fn guests_have_addresses_tags_and_disks() {
        let found = serde_json::to_value(inventory(&build(&api()), &addresses())).unwrap();
        assert_eq!(
            (&found["schema"], &found["version"]),
            (&json!("proxmox-mcp/inventory"), &json!(1))
        );
        assert_eq!(
            found["guests"][0],
            json!({
                "vmid": 100, "name": "db", "kind": "qemu", "node": "pve1", "status": "running", "template": false,
                "tags": ["db", "prod"], "pool": null, "cores": 4.0, "memory_bytes": 4 * GIB,
                "addresses": ["10.0.0.3", "10.0.0.20", "2001:db8::7"],
                "disks": [{"slot": "scsi0", "volume": "local-lvm:vm-100-disk-0", "size_bytes": 8 * GIB}],
                "nics": [],
            })
        );
        assert_eq!(found["guests"][1]["addresses"], json!(["10.0.0.5"]));
        assert_eq!(
            found["guests"][1]["nics"],
            json!([{"slot": "net0", "mac": "BC:24:11:00:00:01", "bridge": "vmbr0", "vlan": 20}])
        );
        let storages: Vec<_> =
            found["storages"].as_array().unwrap().iter().map(|s| &s["node"]).collect();
        assert_eq!(storages, [&json!("pve1"), &json!("pve2"), &json!(null)]);
        assert_eq!(found["unknown"], json!([]));
    }

    #[test]
    fn the_order_of_the_answers_does_not_show() {
        let mut other = api();
        other["resources"].as_array_mut().unwrap().reverse();
        for row in other["resources"].as_array_mut().unwrap() {
            if row["content"].is_string() {
                let mut parts: Vec<&str> = row["content"].as_str().unwrap().split(',').collect();
                parts.reverse();
                row["content"] = json!(parts.join(","));
            }
        }
        let text = |api| serde_json::to_string(&inventory(&build(&api), &addresses())).unwrap();
        assert_eq!(text(api()), text(other));
    }

    #[test]
    fn what_was_not_seen_is_absent_and_named() {
        let mut api = api();
        api["configs"]["100"] = json!({"error": "the token lacks VM.Audit"});
        api["resources"][1]["status"] = json!("offline");
        let found = inventory(&build(&api), &BTreeMap::new());
        assert_eq!((&found.guests[0].disks, &found.guests[0].nics), (&None, &None));
        assert_eq!(found.unknown, ["disks and interfaces of 1 guests", "node pve2: offline"]);
    }
}
