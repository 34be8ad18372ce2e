//! The map of the estate: nodes, bridges, guests and storages, as data and as Mermaid.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde::Serialize;

use super::estate::{Estate, Guest, GuestKind, Part, Setup};
use crate::pve::config_line::Nic;

/// With more guests than this, those on the same bridge and VLAN are drawn as one.
const MOST_GUESTS: usize = 80;

/// What a point of the map is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PointKind {
    /// A node of the cluster.
    Node,
    /// A bridge or virtual network on a node.
    Bridge,
    /// A guest.
    Guest,
    /// Several guests drawn as one.
    Group,
    /// A storage.
    Storage,
}

/// A point of the map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Its name in the map; made of kind and numbers only.
    pub id: String,
    /// What it is.
    pub kind: PointKind,
    /// What is written on it.
    pub label: String,
}

/// A line of the map.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Link {
    /// Where it starts.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// What is written on it, for example `VLAN 20`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
}

/// The map, in an order that depends on names and numbers alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// Points.
    pub points: Vec<Point>,
    /// Lines.
    pub links: Vec<Link>,
    /// Whether guests are drawn in groups.
    pub grouped: bool,
    /// What could not be seen.
    pub unknown: Vec<String>,
}

/// Draws the map; `storages` adds storages and the guests' disks on them.
#[must_use]
pub fn topology(estate: &Estate, storages: bool) -> Topology {
    let mut map = Map::default();
    if let Some(why) = estate.nodes.why() {
        map.unknown.push(format!("nodes: {why}"));
    }
    if let Some(why) = estate.guests.why() {
        map.unknown.push(format!("guests: {why}"));
    }
    let mut guests: Vec<&Guest> = estate.guests.rows().iter().collect();
    guests.sort_by_key(|guest| guest.vmid);
    let grouped = guests.len() > MOST_GUESTS;
    let mut nodes: BTreeSet<&str> = guests.iter().map(|guest| &*guest.node).collect();
    nodes.extend(estate.nodes.rows().iter().map(|node| node.name.as_str()));
    for node in nodes {
        let offline = if estate.is_offline(node) { " (offline)" } else { "" };
        let id = map.point(PointKind::Node, node, format!("{node}{offline}"));
        let here: Vec<&Guest> = guests.iter().copied().filter(|g| *g.node == *node).collect();
        for (bridge, wires) in bridges(estate, &here) {
            let from = match &bridge {
                Some(name) => {
                    let bridge =
                        map.point(PointKind::Bridge, &format!("{node}/{name}"), name.clone());
                    map.link(&id, &bridge, String::new());
                    bridge
                }
                None => id.clone(),
            };
            draw(&mut map, &from, &wires, grouped);
        }
        if storages {
            disks(&mut map, estate, node, &id, &here, grouped);
        }
    }
    let unseen =
        guests.iter().filter(|g| estate.configs.get(&g.vmid).and_then(Part::known).is_none());
    let unseen = unseen.count();
    if unseen > 0 {
        map.unknown.push(format!("network and disks of {unseen} guests"));
    }
    Topology { points: map.points, links: map.links, grouped, unknown: map.unknown }
}

#[derive(Default)]
struct Map {
    points: Vec<Point>,
    links: Vec<Link>,
    ids: BTreeMap<(PointKind, String), String>,
    unknown: Vec<String>,
}

impl Map {
    /// The id of a point; it is made when it is not there yet. Ids are numbered,
    /// so that no name can break the text.
    fn point(&mut self, kind: PointKind, key: &str, label: String) -> String {
        let key = (kind, key.to_owned());
        if let Some(id) = self.ids.get(&key) {
            return id.clone();
        }
        let letter = match kind {
            PointKind::Node => "n",
            PointKind::Bridge => "b",
            PointKind::Guest => "g",
            PointKind::Group => "m",
            PointKind::Storage => "s",
        };
        let number = match kind {
            PointKind::Guest => key.1.clone(),
            _ => self.ids.keys().filter(|(k, _)| *k == kind).count().to_string(),
        };
        let id = format!("{letter}{number}");
        self.ids.insert(key, id.clone());
        self.points.push(Point { id: id.clone(), kind, label });
        id
    }

    fn link(&mut self, from: &str, to: &str, label: String) {
        let link = Link { from: from.to_owned(), to: to.to_owned(), label };
        if !self.links.contains(&link) {
            self.links.push(link);
        }
    }
}

/// A guest and what is written on its line.
type Wire<'a> = (String, &'a Guest);

/// The guests of a node by bridge; those without one, or whose network is not
/// seen, hang on the node itself.
fn bridges<'a>(
    estate: &'a Estate,
    guests: &[&'a Guest],
) -> BTreeMap<Option<String>, Vec<Wire<'a>>> {
    let mut found: BTreeMap<Option<String>, Vec<Wire<'_>>> = BTreeMap::new();
    for guest in guests {
        let setup = estate.configs.get(&guest.vmid).and_then(Part::known);
        let nics: &[Nic] = setup.map_or(&[], |setup: &Setup| &setup.nics);
        for nic in nics.iter().filter(|nic| nic.bridge.is_some()) {
            found.entry(nic.bridge.clone()).or_default().push((wire(nic), guest));
        }
        if !nics.iter().any(|nic| nic.bridge.is_some()) {
            let label = if setup.is_none() { "network unknown" } else { "" };
            found.entry(None).or_default().push((label.to_owned(), guest));
        }
    }
    found
}

fn wire(nic: &Nic) -> String {
    let mut label = match (nic.tag, nic.line.get("trunks")) {
        (Some(tag), _) => format!("VLAN {tag}"),
        (None, Some(trunks)) => format!("VLANs {trunks}"),
        (None, None) => String::new(),
    };
    if nic.link_down {
        label.push_str(if label.is_empty() { "unplugged" } else { ", unplugged" });
    }
    label
}

fn draw(map: &mut Map, from: &str, wires: &[Wire<'_>], grouped: bool) {
    if !grouped {
        for (label, guest) in wires {
            let to = map.point(PointKind::Guest, &guest.vmid.to_string(), title(guest));
            map.link(from, &to, label.clone());
        }
        return;
    }
    let mut groups: BTreeMap<&str, Vec<&Guest>> = BTreeMap::new();
    for (label, guest) in wires {
        groups.entry(label).or_default().push(guest);
    }
    for (label, guests) in groups {
        let to = map.point(PointKind::Group, &format!("{from}/{label}"), members(&guests));
        map.link(from, &to, label.to_owned());
    }
}

fn title(guest: &Guest) -> String {
    let title = format!("{} {}", guest.vmid, guest.name);
    title.trim_end().to_owned()
}

/// `12 VMs, 1 container`
fn members(guests: &[&Guest]) -> String {
    let of = |kind| guests.iter().filter(|guest| guest.kind == kind).count();
    [(of(GuestKind::Qemu), "VM"), (of(GuestKind::Lxc), "container")]
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, noun)| format!("{n} {noun}{}", if *n == 1 { "" } else { "s" }))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Lines from guests to the storages of their disks; of a group, from the node.
fn disks(map: &mut Map, estate: &Estate, node: &str, id: &str, guests: &[&Guest], grouped: bool) {
    for guest in guests {
        let Some(setup) = estate.configs.get(&guest.vmid).and_then(Part::known) else { continue };
        for disk in &setup.disks {
            let Some(volume) = disk.source.volume_id() else { continue };
            let Some((name, _)) = volume.split_once(':') else { continue };
            let shared = estate.storages.rows().iter().any(|s| s.id == name && s.shared);
            let (key, label) = if shared {
                (name.to_owned(), name.to_owned())
            } else {
                (format!("{node}/{name}"), format!("{name} on {node}"))
            };
            let to = map.point(PointKind::Storage, &key, label);
            let from = if grouped { id.to_owned() } else { format!("g{}", guest.vmid) };
            map.link(&from, &to, String::new());
        }
    }
}

impl Topology {
    /// The map as Mermaid text.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut text = String::from("flowchart LR\n");
        for point in &self.points {
            let (open, close) = match point.kind {
                PointKind::Node => ("[[", "]]"),
                PointKind::Bridge => ("{{", "}}"),
                PointKind::Guest | PointKind::Group => ("[", "]"),
                PointKind::Storage => ("[(", ")]"),
            };
            let _ = writeln!(text, "  {}{open}\"{}\"{close}", point.id, escape(&point.label));
        }
        for link in &self.links {
            let label = if link.label.is_empty() {
                String::new()
            } else {
                format!("|\"{}\"|", escape(&link.label))
            };
            let _ = writeln!(text, "  {} -->{label} {}", link.from, link.to);
        }
        text
    }
}

/// Names of guests are anybody's text: whatever Mermaid or HTML would read is
/// written as its number.
fn escape(label: &str) -> String {
    let mut text = String::with_capacity(label.len());
    for c in label.chars() {
        match c {
            '"' | '#' | '<' | '>' | '&' | '`' | '\\' | '{' | '}' | '[' | ']' | '(' | ')' | '|'
            | ';' | '%' => {
                let _ = write!(text, "#{};", u32::from(c));
            }
            c if c.is_control() => text.push(' '),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pve::Vmid;

    fn estate(resources: &Value, configs: &[(u64, GuestKind, Value)]) -> Estate {
        let mut estate = Estate::new(0);
        estate.read_resources(Ok(resources));
        for (vmid, kind, config) in configs {
            estate.read_config(Vmid::new(*vmid).unwrap(), *kind, Ok(config));
        }
        estate
    }

    fn small(reversed: bool) -> Estate {
        let mut rows = vec![
            json!({"type": "node", "node": "pve1", "status": "online"}),
            json!({"type": "node", "node": "pve2", "status": "offline"}),
            json!({"type": "qemu", "vmid": 100, "node": "pve1", "name": "a\"]; click x \"<b>`#&"}),
            json!({"type": "lxc", "vmid": 101, "node": "pve1", "name": "dns"}),
            json!({"type": "qemu", "vmid": 102, "node": "pve2", "name": "lost"}),
            json!({"type": "qemu", "vmid": 103, "node": "pve1", "name": "alone"}),
            json!({"type": "storage", "storage": "nas", "node": "pve1", "shared": 1, "status": "available"}),
        ];
        if reversed {
            rows.reverse();
        }
        estate(
            &json!(rows),
            &[
                (
                    100,
                    GuestKind::Qemu,
                    json!({"net1": "virtio=AA:BB,bridge=vmbr1,trunks=5;6", "net0": "virtio=AA:BC,bridge=vmbr0,tag=20",
                           "scsi0": "thin:vm-100-disk-0", "scsi1": "nas:100/vm-100-disk-1.raw"}),
                ),
                (
                    101,
                    GuestKind::Lxc,
                    json!({"net0": "name=eth0,bridge=vmbr0,link_down=1", "rootfs": "thin:vm-101-disk-0"}),
                ),
                (103, GuestKind::Qemu, json!({"scsi0": "none,media=cdrom"})),
            ],
        )
    }

    #[test]
    fn node_bridge_and_guest_with_its_vlan() {
        let map = topology(&small(false), false);
        assert_eq!(
            map.mermaid(),
            "flowchart LR\n\
             \x20 n0[[\"pve1\"]]\n\
             \x20 g103[\"103 alone\"]\n\
             \x20 b0{{\"vmbr0\"}}\n\
             \x20 g100[\"100 a#34;#93;#59; click x #34;#60;b#62;#96;#35;#38;\"]\n\
             \x20 g101[\"101 dns\"]\n\
             \x20 b1{{\"vmbr1\"}}\n\
             \x20 n1[[\"pve2 #40;offline#41;\"]]\n\
             \x20 g102[\"102 lost\"]\n\
             \x20 n0 --> g103\n\
             \x20 n0 --> b0\n\
             \x20 b0 -->|\"VLAN 20\"| g100\n\
             \x20 b0 -->|\"unplugged\"| g101\n\
             \x20 n0 --> b1\n\
             \x20 b1 -->|\"VLANs 5#59;6\"| g100\n\
             \x20 n1 -->|\"network unknown\"| g102\n"
        );
        assert_eq!(map.unknown, ["network and disks of 1 guests"]);
    }

    #[test]
    fn the_order_of_the_answer_does_not_matter() {
        assert_eq!(topology(&small(false), true), topology(&small(true), true));
    }

    #[test]
    fn storages_stand_once_when_shared() {
        let map = topology(&small(false), true);
        let storages: Vec<&str> = map
            .points
            .iter()
            .filter(|p| p.kind == PointKind::Storage)
            .map(|p| p.label.as_str())
            .collect();
        assert_eq!(storages, ["thin on pve1", "nas"]);
        assert!(map.links.contains(&Link {
            from: "g100".into(),
            to: "s1".into(),
            label: String::new()
        }));
    }

    #[test]
    fn more_than_eighty_guests_are_grouped() {
        let of = |n: u64| {
            let mut rows = vec![json!({"type": "node", "node": "pve1", "status": "online"})];
            let mut configs = Vec::new();
            for vmid in 100..100 + n {
                let kind = if vmid % 2 == 0 { GuestKind::Qemu } else { GuestKind::Lxc };
                rows.push(
                    json!({"type": kind.as_str(), "vmid": vmid, "node": "pve1", "name": "x"}),
                );
                let tag = if vmid < 110 { 10 } else { 20 };
                configs.push((
                    vmid,
                    kind,
                    json!({"net0": format!("virtio=AA,bridge=vmbr0,tag={tag}")}),
                ));
            }
            topology(&estate(&json!(rows), &configs), false)
        };
        let map = of(81);
        assert!(map.grouped);
        assert_eq!(
            map.mermaid(),
            "flowchart LR\n\
             \x20 n0[[\"pve1\"]]\n\
             \x20 b0{{\"vmbr0\"}}\n\
             \x20 m0[\"5 VMs, 5 containers\"]\n\
             \x20 m1[\"36 VMs, 35 containers\"]\n\
             \x20 n0 --> b0\n\
             \x20 b0 -->|\"VLAN 10\"| m0\n\
             \x20 b0 -->|\"VLAN 20\"| m1\n"
        );
        let map = of(80);
        assert!(!map.grouped);
        assert_eq!(map.points.iter().filter(|p| p.kind == PointKind::Guest).count(), 80);
    }
}
