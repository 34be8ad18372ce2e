//! What pending changes of a node's network would do, and what of it could cut
//! the way in.
//!
//! Proxmox gives the configuration as it would be, and a unified diff against
//! the one that runs. The way in is the address by which this server, or the
//! node that passes its calls on, reaches the node: the interface that carries
//! it, what that one stands on, and the gateway.

use std::{collections::BTreeSet, net::IpAddr};

use serde_json::{Value, json};

use crate::pve::loose;

/// How this server comes to a node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WayIn {
    /// The node's addresses that are used.
    pub addresses: Vec<IpAddr>,
    /// The interfaces that carry them and those that they stand on.
    pub interfaces: BTreeSet<String>,
    /// Gateways in the node's configuration.
    pub gateways: Vec<String>,
}

/// Lines of a stanza that a change adds and removes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    /// The interface; empty where the diff does not show which.
    pub iface: String,
    /// Lines that go.
    pub removed: Vec<String>,
    /// Lines that come.
    pub added: Vec<String>,
}

/// The review of what is pending.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Review {
    /// Interface by interface.
    pub changes: Vec<Change>,
    /// Each thing that could cut the way in, in plain words.
    pub may_cut: Vec<String>,
}

impl WayIn {
    /// From the configuration's rows and the addresses that are used.
    pub fn of(rows: &[Value], addresses: Vec<IpAddr>) -> Self {
        let mut way = Self { addresses, ..Self::default() };
        let mut next: Vec<String> = Vec::new();
        for row in rows {
            let own = addresses_of(row);
            let used = own.iter().any(|a| way.addresses.contains(a));
            if let (true, Some(iface)) = (used, loose::text(row, "iface")) {
                next.push(iface);
            }
            for key in ["gateway", "gateway6"] {
                if let Some(gateway) = loose::text(row, key) {
                    // Who comes from another network comes by the gateway.
                    next.extend(loose::text(row, "iface"));
                    way.gateways.push(gateway);
                }
            }
        }
        while let Some(iface) = next.pop() {
            if !way.interfaces.insert(iface.clone()) {
                continue;
            }
            let row = rows.iter().find(|r| loose::str(r, "iface") == Some(&iface));
            for key in [
                "bridge_ports",
                "slaves",
                "ovs_ports",
                "ovs_bonds",
                "vlan-raw-device",
                "ovs_bridge",
            ] {
                let below = row.and_then(|r| loose::text(r, key)).unwrap_or_default();
                next.extend(below.split([' ', ',']).filter(|p| !p.is_empty()).map(str::to_owned));
            }
            // `vmbr0.10` and `bond0.20` are VLANs of what stands before the dot.
            if let Some((base, _)) = iface.rsplit_once('.') {
                next.push(base.to_owned());
            }
        }
        way
    }

    /// As a member of an answer.
    pub fn to_json(&self) -> Value {
        json!({
            "addresses": self.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "interfaces": self.interfaces,
            "gateways": self.gateways,
        })
    }
}

/// The addresses of an interface.
pub fn addresses_of(row: &Value) -> Vec<IpAddr> {
    ["cidr", "cidr6", "address", "address6"]
        .iter()
        .filter_map(|key| loose::text(row, key))
        .filter_map(|text| text.split('/').next()?.parse().ok())
        .collect()
}

impl Review {
    /// Reads a diff against the rows of the configuration that it leads to.
    pub fn of(diff: &str, rows: &[Value], way: &WayIn) -> Self {
        let changes = changes(diff, rows);
        let may_cut = dangers(&changes, rows, way);
        Self { changes, may_cut }
    }

    /// The changes as rows of an answer.
    pub fn to_json(&self, way: &WayIn) -> Value {
        self.changes
            .iter()
            .map(|c| {
                json!({
                    "iface": if c.iface.is_empty() { "?" } else { &c.iface },
                    "change": c.kind(),
                    "removed": c.removed,
                    "added": c.added,
                    "way_in": way.interfaces.contains(&c.iface),
                })
            })
            .collect()
    }
}

impl Change {
    fn has(lines: &[String], word: &str) -> bool {
        lines.iter().any(|l| l.split_whitespace().next() == Some(word))
    }

    fn kind(&self) -> &'static str {
        match (Self::has(&self.removed, "iface"), Self::has(&self.added, "iface")) {
            (false, true) => "new",
            (true, false) => "removed",
            _ => "changed",
        }
    }

    fn words<'c>(lines: &'c [String], key: &'c str) -> impl Iterator<Item = &'c str> {
        lines.iter().filter_map(move |l| {
            let mut words = l.split_whitespace();
            (words.next() == Some(key)).then(|| words.next().unwrap_or_default())
        })
    }
}

/// The changed lines by the stanza in which they stand. Comments that begin the
/// file are Proxmox's own; a comment elsewhere belongs to the stanza above it.
fn changes(diff: &str, rows: &[Value]) -> Vec<Change> {
    let mut all: Vec<Change> = Vec::new();
    let mut iface = String::new();
    for line in diff.lines() {
        if line.starts_with("---") || line.starts_with("+++") {
            continue;
        }
        if line.starts_with("@@") {
            iface.clear();
            continue;
        }
        let mark = line.chars().next().unwrap_or(' ');
        let text = line.get(1..).unwrap_or_default().trim();
        let mut words = text.split_whitespace();
        match (words.next(), words.next()) {
            (Some("iface"), Some(name)) => name.clone_into(&mut iface),
            // `auto` stands right before the stanza that it starts.
            (Some("auto" | "allow-hotplug"), Some(name)) => name.clone_into(&mut iface),
            (Some("source" | "source-directory"), _) => iface.clear(),
            (Some(_), _) if iface.is_empty() => {
                if let Some(name) = owner(text, rows) {
                    iface = name;
                }
            }
            _ => {}
        }
        if !matches!(mark, '+' | '-') || text.is_empty() {
            continue;
        }
        if iface.is_empty() && text.starts_with('#') {
            continue;
        }
        let at = match all.iter().position(|c| c.iface == iface) {
            Some(at) => at,
            None => {
                all.push(Change { iface: iface.clone(), ..Change::default() });
                all.len() - 1
            }
        };
        if let Some(change) = all.get_mut(at) {
            if mark == '+' { &mut change.added } else { &mut change.removed }.push(text.to_owned());
        }
    }
    // A line that only moved is no change.
    for change in &mut all {
        let added = change.added.clone();
        change.added.retain(|l| !change.removed.contains(l));
        change.removed.retain(|l| !added.contains(l));
    }
    all.retain(|c| !c.added.is_empty() || !c.removed.is_empty());
    all
}

/// The interface whose settings hold a line, where only one does.
fn owner(text: &str, rows: &[Value]) -> Option<String> {
    let (key, value) = text.split_once(char::is_whitespace)?;
    let keys: &[&str] = match key {
        "address" => &["cidr", "cidr6", "address", "address6"],
        "gateway" => &["gateway", "gateway6"],
        "bridge-ports" => &["bridge_ports"],
        "bond-slaves" => &["slaves"],
        "vlan-raw-device" => &["vlan-raw-device"],
        "mtu" => &["mtu"],
        "bridge-vids" => &["bridge_vids"],
        _ => return None,
    };
    let mut holders = rows
        .iter()
        .filter(|r| keys.iter().any(|k| loose::text(r, k).is_some_and(|v| v == value.trim())));
    let found = holders.next()?;
    if holders.next().is_some() {
        return None;
    }
    loose::text(found, "iface")
}

fn dangers(changes: &[Change], rows: &[Value], way: &WayIn) -> Vec<String> {
    let mut found = Vec::new();
    let present: Vec<IpAddr> = rows.iter().flat_map(addresses_of).collect();
    for address in &way.addresses {
        let told_off = changes.iter().any(|c| {
            Change::words(&c.removed, "address")
                .any(|a| a.split('/').next().and_then(|a| a.parse().ok()) == Some(*address))
        });
        if !present.contains(address) && (told_off || !changes.is_empty()) {
            found.push(format!(
                "no interface has {address} any more, by which this node is reached"
            ));
        }
    }
    for change in changes {
        let name = if change.iface.is_empty() {
            "an interface that the diff does not name"
        } else {
            &change.iface
        };
        for gateway in Change::words(&change.removed, "gateway") {
            found.push(format!("{name} loses the gateway {gateway}"));
        }
        for gateway in Change::words(&change.added, "gateway") {
            found.push(format!("{name} gets the gateway {gateway}"));
        }
        let own = way.interfaces.contains(&change.iface);
        let unknown = change.iface.is_empty()
            && change.removed.iter().chain(&change.added).any(|l| !l.starts_with('#'));
        if change.kind() == "removed" && own {
            found.push(format!("{name} goes, over which this node is reached"));
        } else if own || unknown {
            for (lines, verb) in [(&change.removed, "loses"), (&change.added, "gets")] {
                for line in lines.iter().filter(|l| matters(l)) {
                    found.push(format!("{name} {verb} `{line}`"));
                }
            }
        }
    }
    found
}

/// Lines that have no effect on whether packets get through, or are told already.
fn matters(line: &str) -> bool {
    !line.starts_with('#') && !matches!(line.split_whitespace().next(), Some("gateway") | None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Value> {
        vec![
            json!({"iface": "eno1", "type": "eth"}),
            json!({"iface": "eno2", "type": "eth"}),
            json!({"iface": "bond0", "type": "bond", "slaves": "eno1 eno2"}),
            json!({"iface": "vmbr0", "type": "bridge", "bridge_ports": "bond0", "cidr": "10.20.0.11/24",
                "address": "10.20.0.11", "gateway": "10.20.0.1"}),
            json!({"iface": "vmbr1", "type": "bridge", "bridge_ports": "", "cidr": "10.20.1.11/24"}),
        ]
    }

    fn way(rows: &[Value]) -> WayIn {
        WayIn::of(rows, vec!["10.20.0.11".parse().unwrap()])
    }

    #[test]
    fn the_way_in_is_all_that_its_interface_stands_on() {
        let found = way(&rows());
        let names: Vec<&str> = found.interfaces.iter().map(String::as_str).collect();
        assert_eq!(names, ["bond0", "eno1", "eno2", "vmbr0"]);
        assert_eq!(found.gateways, ["10.20.0.1"]);
        let vlan =
            vec![json!({"iface": "eno1.20", "cidr": "192.0.2.7/24"}), json!({"iface": "eno1"})];
        let found = WayIn::of(&vlan, vec!["192.0.2.7".parse().unwrap()]);
        assert!(found.interfaces.contains("eno1"));
    }

    #[test]
    fn a_new_bridge_cuts_nothing() {
        // As Proxmox VE 9.2 writes it, with its own head of the file.
        let diff = "--- /etc/network/interfaces\t2026-11-29 23:43:45.145049355 +0000\n\
            +++ /etc/network/interfaces.new\t2026-11-30 00:12:29.216518633 +0000\n\
            @@ -1,3 +1,14 @@\n+# network interface settings; autogenerated\n+# Please do NOT modify this file directly, unless you know what\n+#\n+\n auto lo\n iface lo inet loopback\n \n\
            @@ -11,4 +22,11 @@\n \tbridge-stp off\n \tbridge-fd 0\n \n+auto vmbr2\n+iface vmbr2 inet manual\n+\tbridge-ports none\n+\tbridge-stp off\n+#test\n+\n source /etc/network/interfaces.d/*\n";
        let mut after = rows();
        after.push(json!({"iface": "vmbr2", "type": "bridge", "bridge_ports": ""}));
        let review = Review::of(diff, &after, &way(&after));
        assert_eq!(review.changes.len(), 1, "{review:?}");
        assert_eq!(review.changes[0].iface, "vmbr2");
        assert_eq!(review.changes[0].kind(), "new");
        assert!(review.changes[0].added.contains(&"#test".to_owned()));
        assert_eq!(review.may_cut, Vec::<String>::new());
    }

    #[test]
    fn what_could_cut_the_way_in_is_named() {
        let cases = [
            (
                "another address",
                "@@ -1 +1 @@\n iface vmbr0 inet static\n-\taddress 10.20.0.11/24\n+\taddress 10.20.0.99/24\n",
                3,
                json!({"cidr": "10.20.0.99/24", "address": "10.20.0.99"}),
                "10.20.0.11",
            ),
            (
                "another gateway",
                "@@ -1 +1 @@\n iface vmbr0 inet static\n-\tgateway 10.20.0.1\n+\tgateway 10.20.0.254\n",
                3,
                json!({"gateway": "10.20.0.254"}),
                "loses the gateway 10.20.0.1",
            ),
            (
                "another port",
                "@@ -1 +1 @@\n iface vmbr0 inet static\n-\tbridge-ports bond0\n+\tbridge-ports eno3\n",
                3,
                json!({"bridge_ports": "eno3"}),
                "vmbr0 loses `bridge-ports bond0`",
            ),
            (
                "a slave of the bond below",
                "@@ -1 +1 @@\n iface bond0 inet manual\n-\tbond-slaves eno1 eno2\n+\tbond-slaves eno1\n",
                2,
                json!({"slaves": "eno1"}),
                "bond0 gets `bond-slaves eno1`",
            ),
            (
                "a stanza that the diff does not name",
                "@@ -9,3 +9,3 @@\n \tbridge-stp off\n-\tmtu 1500\n+\tmtu 9000\n",
                3,
                json!({}),
                "does not name",
            ),
        ];
        for (name, diff, at, change, words) in cases {
            let mut after = rows();
            let way = way(&after);
            for (key, value) in change.as_object().unwrap() {
                after[at][key] = value.clone();
            }
            let review = Review::of(diff, &after, &way);
            assert!(review.may_cut.iter().any(|m| m.contains(words)), "{name}: {review:?}");
        }
    }

    #[test]
    fn what_is_elsewhere_cuts_nothing() {
        let diff = "@@ -1 +1 @@\n iface vmbr1 inet static\n-\taddress 10.20.1.11/24\n+\taddress 10.20.1.12/24\n";
        let mut after = rows();
        let way = way(&after);
        after[4]["cidr"] = json!("10.20.1.12/24");
        assert_eq!(Review::of(diff, &after, &way).may_cut, Vec::<String>::new());
    }

    #[test]
    fn a_diff_that_starts_in_the_middle_finds_its_stanza_by_its_settings() {
        let diff = "@@ -11,3 +11,4 @@\n \taddress 10.20.1.11/24\n \tbridge-stp off\n+\tmtu 9000\n";
        let review = Review::of(diff, &rows(), &way(&rows()));
        assert_eq!(review.changes[0].iface, "vmbr1");
        assert_eq!(review.may_cut, Vec::<String>::new());
    }
}
