use serde_json::{Value, json};

use crate::safety::{facts::Table, testing::impact};

/// A guest's options: now, and staged.
fn nics(slots: &[(&str, Option<&str>, Option<&str>)]) -> Value {
    let row = |(slot, now, next): &(&str, Option<&str>, Option<&str>)| {
        let text = |bridge: &str| format!("virtio=BC:24:11:00:00:01,bridge={bridge},firewall=1");
        let mut row = json!({"key": slot});
        if let Some(bridge) = now {
            row["value"] = text(bridge).into();
        }
        if let Some(bridge) = next {
            row["pending"] = text(bridge).into();
        }
        row
    };
    slots.iter().map(row).collect()
}

/// pve1: two ports in a bond under `vmbr0` with a VLAN interface that holds an address; an Open
/// vSwitch bridge with its own port; a bridge that only looks like a VLAN of the first. pve2 has a
/// `vmbr0` of its own.
fn estate() -> Table {
    let guest = |vmid: u32, node: &str| json!({"type": "qemu", "vmid": vmid, "node": node});
    let mut table = Table::new()
        .with("/cluster/status", json!([
            {"type": "cluster", "name": "c", "nodes": 2, "quorate": 1},
            {"type": "node", "name": "pve1", "ip": "192.0.2.1", "local": 1, "online": 1},
            {"type": "node", "name": "pve2", "ip": "192.0.2.2", "online": 1},
        ]))
        .with("/nodes/pve1/network", json!([
            {"iface": "eno1", "type": "eth"},
            {"iface": "eno2", "type": "eth"},
            {"iface": "eno4", "type": "eth"},
            {"iface": "bond0", "type": "bond", "slaves": "eno1 eno2"},
            {"iface": "vmbr0", "type": "bridge", "bridge_ports": "bond0", "cidr": "192.0.2.1/24", "address": "192.0.2.1", "gateway": "192.0.2.254"},
            {"iface": "vmbr0.20", "type": "vlan", "cidr6": "2001:db8::1/64"},
            {"iface": "backup", "type": "vlan", "vlan-raw-device": "bond0", "vlan-id": 30, "address": "198.51.100.7"},
            {"iface": "vmbr5", "type": "OVSBridge", "ovs_ports": "mgmt"},
            {"iface": "obond", "type": "OVSBond", "ovs_bonds": "eno4 eno5", "ovs_bridge": "vmbr5"},
            {"iface": "mgmt", "type": "OVSIntPort", "ovs_bridge": "vmbr5"},
            {"iface": "eno3", "type": "OVSPort", "ovs_bridge": "vmbr5"},
            {"iface": "vmbr0v77", "type": "bridge", "bridge_ports": "eno9.77"},
        ]))
        .with("/nodes/pve2/network", json!([{"iface": "vmbr0", "type": "bridge"}]))
        .with("/cluster/sdn/zones", json!([
            {"zone": "far", "type": "vlan", "bridge": "vmbr0", "nodes": "pve2"},
            {"zone": "lan", "type": "vlan", "bridge": "vmbr0", "ipam": "pve", "controller": "c1"},
            {"zone": "own", "type": "simple"},
        ]))
        .with("/cluster/sdn/vnets", json!([
            {"vnet": "office", "zone": "lan"}, {"vnet": "lab", "zone": "own"}, {"vnet": "there", "zone": "far"},
        ]));
    let mut rows = Vec::new();
    for (vmid, node, options) in [
        (100, "pve1", nics(&[("net0", Some("vmbr0"), None)])),
        (101, "pve2", nics(&[("net0", Some("vmbr0"), None)])),
        (102, "pve1", nics(&[("net0", Some("vmbr0v20"), None)])),
        (103, "pve1", nics(&[("net1", Some("vmbr0.20"), None)])),
        (104, "pve1", nics(&[("net0", Some("vmbr9"), Some("vmbr0"))])),
        (105, "pve1", nics(&[("net0", Some("vmbr0"), Some("vmbr9"))])),
        (106, "pve1", nics(&[("net0", Some("office"), None)])),
        (107, "pve1", nics(&[("net0", Some("vmbr5"), None)])),
        (108, "pve1", nics(&[("net0", Some("vmbr0v77"), None)])),
        (109, "pve1", nics(&[("net0", Some("vmbr05"), None), ("network", Some("vmbr0"), None)])),
        (110, "pve1", nics(&[("net3", None, Some("office"))])),
    ] {
        rows.push(guest(vmid, node));
        table = table.with(&format!("/nodes/{node}/qemu/{vmid}/pending"), options);
    }
    // One whose options cannot be read.
    rows.push(guest(111, "pve1"));
    table.with("/cluster/resources?type=vm", rows.into())
}

fn lines(call: &str) -> String {
    impact(&estate(), call, json!({})).join("\n")
}

#[test]
fn a_bridge_has_its_guests_by_every_name_and_no_others() {
    let told = lines("DELETE /nodes/pve1/network/vmbr0");
    for line in [
        "interfaces that hang on it: \"vmbr0.20\" (vlan)",
        "the node's address \"192.0.2.1/24\" is on \"vmbr0\"",
        "the node's address \"2001:db8::1/64\" is on \"vmbr0.20\"",
        "the cluster knows the node by that address",
        "the node's way out to \"192.0.2.254\" is on \"vmbr0\"",
        "SDN zones on it: \"lan\"",
        "vnets of these zones: \"office\"",
        "5 guests have a NIC on it: 100, 102, 103, 105, 106",
        "2 guests have a NIC on it once they next start: 104, 110",
        "guests whose NICs cannot be seen: 111",
    ] {
        assert!(told.lines().any(|l| l == line), "{line} is not in\n{told}");
    }
}

#[test]
fn what_lies_below_takes_along_what_is_above() {
    for (iface, above) in [
        ("bond0", "\"vmbr0\" (bridge), \"backup\" (vlan), \"vmbr0.20\" (vlan)"),
        ("eno1", "\"bond0\" (bond), \"vmbr0\" (bridge), \"backup\" (vlan), \"vmbr0.20\" (vlan)"),
    ] {
        let told = lines(&format!("DELETE /nodes/pve1/network/{iface}"));
        let line = format!("interfaces that hang on it: {above}");
        assert!(told.lines().any(|l| l == line), "{line} is not in\n{told}");
        assert!(told.contains("\"198.51.100.7\" is on \"backup\""), "{told}");
        assert!(told.contains("have a NIC on it: 100, 102, 103, 105, 106"), "{told}");
    }
    let told = lines("DELETE /nodes/pve1/network/eno4");
    let above = "interfaces that hang on it: \"obond\" (OVSBond), \"vmbr5\" (OVSBridge), \"mgmt\" (OVSIntPort)";
    assert!(told.contains(above) && told.contains("have a NIC on it: 107"), "{told}");
    let told = lines("PUT /nodes/pve1/network/eno3");
    assert!(
        told.contains("interfaces that hang on it: \"vmbr5\" (OVSBridge), \"mgmt\" (OVSIntPort)"),
        "{told}"
    );
    assert!(told.contains("1 guests have a NIC on it: 107"), "{told}");
    let told = lines("DELETE /nodes/pve1/network/eno9");
    assert!(told.contains("1 guests have a NIC on it: 108"), "by `eno9.77`: {told}");
    // The node that answers, by its other name.
    assert!(
        lines("DELETE /nodes/localhost/network/vmbr0")
            .contains("have a NIC on it: 100, 102, 103, 105, 106")
    );
}

#[test]
fn vnets_zones_and_what_zones_use_have_guests_too() {
    for call in [
        "DELETE /cluster/sdn/vnets/office",
        "POST /cluster/sdn/vnets/office/firewall/rules",
        "DELETE /cluster/sdn/zones/lan",
        "DELETE /cluster/sdn/controllers/c1",
        "DELETE /cluster/sdn/ipams/pve",
    ] {
        let told = lines(call);
        assert!(told.contains("1 guests have a NIC on it: 106"), "{call}: {told}");
        assert!(told.contains("once they next start: 110"), "{call}: {told}");
    }
    assert!(lines("DELETE /cluster/sdn/controllers/c2").contains("no zone uses it"));
    assert!(lines("DELETE /cluster/sdn/zones/none").contains("no vnet is in it"));
}

#[test]
fn what_cannot_be_seen_of_a_network_is_told() {
    let told = impact(&Table::new(), "DELETE /nodes/pve1/network/vmbr0", json!({})).join("\n");
    for part in ["interfaces that hang on it", "SDN zones on it", "guests on it"] {
        assert!(told.contains(&format!("{part}: cannot be seen")), "{part}: {told}");
    }
}
