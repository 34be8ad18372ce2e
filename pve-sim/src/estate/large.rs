//! Large estates for measuring: many plain guests over some nodes.

use serde_json::json;

use super::build::{DAY, GIB, Make, TIB, map, services, space, storage};
use super::nodes::{notifications, repositories};
use crate::state::State;
use crate::state::node::Node;

pub(super) fn build(now_ms: i64, guests: usize, nodes: usize) -> State {
    let mut state = State::new(now_ms, "node1");
    state.cluster = (nodes > 1).then(|| "large".to_owned());
    storage(&mut state, "local", "dir", "iso,vztmpl,backup", json!({"path": "/var/lib/vz"}), false);
    storage(
        &mut state,
        "local-lvm",
        "lvmthin",
        "images,rootdir",
        json!({"thinpool": "data", "vgname": "pve"}),
        false,
    );
    for n in 1..=nodes {
        let name = format!("node{n}");
        let node = node(state.born, &name, n);
        state.nodes.insert(name.clone(), node);
        space(&mut state, "local", &name, 400 * GIB, 90 * GIB, 0.0);
        space(&mut state, "local-lvm", &name, 60 * TIB, 21 * TIB, 0.0);
    }
    notifications(&mut state);
    let access = &mut state.access;
    access.add_token("admin", "mcp@pve", "full", false);
    access.add_token("readonly", "audit@pve", "read", false);
    access.add_token("none", "nobody@pve", "none", false);
    access.grant("/", "mcp@pve", "Administrator");
    access.grant("/", "audit@pve", "PVEAuditor");
    for n in 0..guests {
        guest(&mut state, n, nodes);
    }
    state
}

fn node(born: i64, name: &str, n: usize) -> Node {
    let low = n % 250 + 1;
    let mut node = Node {
        name: name.to_owned(),
        ip: format!("10.0.{}.{low}", n / 250),
        id: u32::try_from(n).unwrap_or(1),
        online: true,
        cpus: 128,
        sockets: 2,
        cpu_model: "AMD EPYC 9354 32-Core Processor".to_owned(),
        mem: TIB,
        base_mem: 12 * GIB,
        base_cpu: 0.02,
        swap: 8 * GIB,
        root: 400 * GIB,
        root_used: 90 * GIB,
        boot: born - 60 * DAY,
        installed: born - 500 * DAY,
        kernel: "6.17.4-2-pve".to_owned(),
        efi: true,
        version: "9.2.11".to_owned(),
        timezone: "UTC".to_owned(),
        repositories: repositories(),
        dns: map(json!({"search": "example.test", "dns1": "10.0.0.1"})),
        ..Node::default()
    };
    services(&mut node);
    node
}

fn guest(state: &mut State, n: usize, nodes: usize) {
    let vmid = 100 + u32::try_from(n).unwrap_or(0);
    let node = format!("node{}", n % nodes + 1);
    let name = format!("guest-{vmid}");
    let container = n % 3 == 2;
    let make = if container {
        Make::ct(state, vmid, &node, &name, 2, 2048).disk("rootfs", "16G", "")
    } else {
        Make::vm(state, vmid, &node, &name, 4, 4096).disk("scsi0", "32G", "discard=on")
    };
    let make = make
        .tags(if n.is_multiple_of(2) { "production" } else { "test" })
        .load(0.05 + (n % 17) as f64 / 60.0, 0.5);
    if n % 10 == 9 { make.done(state) } else { make.up(DAY * (1 + (n % 50) as i64)).done(state) }
}
