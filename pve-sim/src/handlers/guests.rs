//! Reading guests: lists, status, configuration, pending changes, series, interfaces.

use serde_json::{Map, Value, json};

use super::Route;
use crate::api::call::{Answer, Call};
use crate::api::failure::Failure;
use crate::api::{propstring, schema};
use crate::state::State;
use crate::state::config::typed;
use crate::state::guest::{Guest, Kind, indexed};
use crate::state::rrd;

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/nodes/{node}/qemu", |c| list(c, Kind::Qemu)),
    ("GET", "/nodes/{node}/lxc", |c| list(c, Kind::Lxc)),
    ("GET", "/nodes/{node}/qemu/{vmid}/status/current", |c| current(c, Kind::Qemu)),
    ("GET", "/nodes/{node}/lxc/{vmid}/status/current", |c| current(c, Kind::Lxc)),
    ("GET", "/nodes/{node}/qemu/{vmid}/config", |c| config(c, Kind::Qemu)),
    ("GET", "/nodes/{node}/lxc/{vmid}/config", |c| config(c, Kind::Lxc)),
    ("GET", "/nodes/{node}/qemu/{vmid}/pending", |c| pending(c, Kind::Qemu)),
    ("GET", "/nodes/{node}/lxc/{vmid}/pending", |c| pending(c, Kind::Lxc)),
    ("GET", "/nodes/{node}/qemu/{vmid}/rrddata", |c| series(c, Kind::Qemu)),
    ("GET", "/nodes/{node}/lxc/{vmid}/rrddata", |c| series(c, Kind::Lxc)),
    ("GET", "/nodes/{node}/qemu/{vmid}/feature", |c| feature(c, Kind::Qemu)),
    ("GET", "/nodes/{node}/lxc/{vmid}/feature", |c| feature(c, Kind::Lxc)),
    ("GET", "/nodes/{node}/lxc/{vmid}/interfaces", interfaces),
];

/// The parameters that give a guest's options their types.
pub(super) fn options(kind: Kind) -> &'static Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    schema::parameters("PUT", &format!("/nodes/n/{}/100/config", kind.name())).unwrap_or(&EMPTY)
}

/// The error for a guest that is not there, as its configuration file's absence.
pub(super) fn missing(kind: Kind, node: &str, vmid: u32) -> String {
    format!("Configuration file 'nodes/{node}/{}/{vmid}.conf' does not exist", kind.folder())
}

/// The guest of a call, if it is of this kind and on this node.
pub(super) fn find<'a>(
    state: &'a State,
    node: &str,
    vmid: u32,
    kind: Kind,
) -> Result<&'a Guest, Failure> {
    let found = state.guests.get(&vmid).filter(|g| g.kind == kind && g.node == node);
    found.ok_or_else(|| Failure::died(missing(kind, node, vmid)))
}

fn of_call<'a>(c: &'a Call<'_>, kind: Kind) -> Result<&'a Guest, Failure> {
    find(c.state, &c.node(), c.vmid(), kind)
}

fn node_cpus(state: &State, guest: &Guest) -> u64 {
    state.nodes.get(&guest.node).map_or(1, |n| n.cpus)
}

/// Two digits after the point, as the real figures have.
fn cents(v: f64) -> f64 {
    (v * 100.0).round() / 100.0
}

/// The figures that lists and status share.
fn figures(c: &Call<'_>, guest: &Guest) -> Map<String, Value> {
    let cpus = guest.cpus(node_cpus(c.state, guest));
    let live = guest.live(c.now()).unwrap_or_default();
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    put("vmid", json!(guest.vmid));
    put("name", json!(guest.name()));
    put("status", json!(guest.status()));
    put("cpus", json!(cpus));
    put("cpu", json!(live.cpu));
    put("mem", json!(live.mem));
    put("maxmem", json!(guest.max_mem()));
    put("maxdisk", json!(guest.max_disk()));
    put("netin", json!(live.net_in));
    put("netout", json!(live.net_out));
    put("uptime", json!(live.uptime));
    if let Some(tags) = guest.config.get("tags") {
        put("tags", json!(tags));
    }
    if let Some(lock) = guest.lock() {
        put("lock", json!(lock));
    }
    if guest.template() {
        put("template", json!(1));
    }
    if let Some(run) = &guest.run {
        put("pid", json!(run.pid));
    }
    let stall = guest.load.pressure;
    let pressure = [
        ("pressurecpusome", live.cpu * 4.0),
        ("pressurecpufull", live.cpu * 2.0),
        ("pressureiosome", stall * 0.5),
        ("pressureiofull", stall * 0.3),
        ("pressurememorysome", stall),
        ("pressurememoryfull", stall * 0.6),
    ];
    match guest.kind {
        Kind::Qemu => {
            put("disk", json!(0));
            put("memhost", json!((live.mem as f64 * 1.03) as u64));
            if guest.running() {
                put("diskread", json!(live.read));
                put("diskwrite", json!(live.written));
                for (name, value) in pressure {
                    put(name, json!(cents(value)));
                }
            }
        }
        Kind::Lxc => {
            put("type", json!("lxc"));
            put("disk", json!(live.disk));
            put("diskread", json!(live.read));
            put("diskwrite", json!(live.written));
            put("maxswap", json!(guest.max_swap()));
            put("swap", json!(0));
            if guest.running() {
                for (name, value) in pressure {
                    put(name, json!(format!("{value:.2}")));
                }
            }
        }
    }
    map
}

/// A guest's row of `/cluster/resources`.
pub(super) fn resource(c: &Call<'_>, guest: &Guest) -> Value {
    let live = guest.live(c.now()).unwrap_or_default();
    let online = c.state.nodes.get(&guest.node).is_some_and(|n| n.online);
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    put("id", json!(format!("{}/{}", guest.kind.name(), guest.vmid)));
    put("type", json!(guest.kind.name()));
    put("vmid", json!(guest.vmid));
    put("node", json!(guest.node));
    put("status", json!(if online { guest.status() } else { "unknown" }));
    put("template", json!(u8::from(guest.template())));
    if let Some(pool) = c.state.pool_of(guest.vmid) {
        put("pool", json!(pool));
    }
    if let Some(tags) = guest.config.get("tags") {
        put("tags", json!(tags));
    }
    if let Some(lock) = guest.lock() {
        put("lock", json!(lock));
    }
    if let Some(ha) = c.state.ha_state(guest) {
        put("hastate", json!(ha));
    }
    if online {
        put("name", json!(guest.name()));
        put("maxcpu", json!(guest.cpus(node_cpus(c.state, guest))));
        put("cpu", json!(live.cpu));
        put("maxmem", json!(guest.max_mem()));
        put("mem", json!(live.mem));
        put(
            "memhost",
            json!(if guest.kind == Kind::Qemu { (live.mem as f64 * 1.03) as u64 } else { 0 }),
        );
        put("maxdisk", json!(guest.max_disk()));
        put("disk", json!(if guest.kind == Kind::Lxc { live.disk } else { 0 }));
        put("diskread", json!(live.read));
        put("diskwrite", json!(live.written));
        put("netin", json!(live.net_in));
        put("netout", json!(live.net_out));
        put("uptime", json!(live.uptime));
    }
    Value::Object(map)
}

fn list(c: &mut Call<'_>, kind: Kind) -> Answer {
    let node = c.node();
    let full = c.flag("full");
    let mut rows = Vec::new();
    for guest in c.state.guests.values().filter(|g| g.kind == kind && g.node == node) {
        if !c.may(&format!("/vms/{}", guest.vmid), &["VM.Audit"]) {
            continue;
        }
        let mut map = figures(c, guest);
        if full && kind == Kind::Qemu {
            map.insert("qmpstatus".to_owned(), json!(qmp_status(guest)));
        }
        rows.push(Value::Object(map));
    }
    Ok(Value::Array(rows).into())
}

fn qmp_status(guest: &Guest) -> &'static str {
    match &guest.run {
        Some(run) if run.paused => "paused",
        Some(_) => "running",
        None => "stopped",
    }
}

fn current(c: &mut Call<'_>, kind: Kind) -> Answer {
    let guest = of_call(c, kind)?;
    let mut map = figures(c, guest);
    if kind == Kind::Qemu {
        map.insert("qmpstatus".to_owned(), json!(qmp_status(guest)));
        let display = guest.config.get("vga");
        if guest.running() {
            running_vm(c, guest, &mut map);
        }
        if display.is_none_or(|d| !d.contains("serial")) && guest.config.has("vga") {
            let clipboard = display.and_then(|d| propstring::get(d, "clipboard"));
            map.insert("clipboard".to_owned(), json!(clipboard));
        }
        if guest.config.get("agent").is_some_and(|a| a.starts_with('1') || a.contains("enabled=1"))
        {
            map.insert("agent".to_owned(), json!(1));
        }
        if guest.config.iter().any(|(k, _)| indexed(k, "serial")) {
            map.insert("serial".to_owned(), json!(1));
        }
        if display.is_some_and(|d| d.contains("qxl")) {
            map.insert("spice".to_owned(), json!(1));
        }
    }
    let ha = match c.state.ha_state(guest) {
        Some(state) => {
            let sid = format!("{}:{}", guest.kind.short().to_lowercase(), guest.vmid);
            let mut own = c.state.ha_resources.get(&sid).cloned().unwrap_or_default();
            own.insert("managed".to_owned(), json!(1));
            own.entry("state").or_insert_with(|| json!(state));
            Value::Object(own)
        }
        None => json!({"managed": 0}),
    };
    map.insert("ha".to_owned(), ha);
    Ok(Value::Object(map).into())
}

/// What QEMU itself tells of a running machine.
fn running_vm(c: &Call<'_>, guest: &Guest, map: &mut Map<String, Value>) {
    let live = guest.live(c.now()).unwrap_or_default();
    let mut nics = Map::new();
    for (n, (name, _)) in guest.nics().into_iter().enumerate() {
        let part = if n == 0 { 1 } else { 0 };
        let tap = format!("tap{}i{}", guest.vmid, name.trim_start_matches("net"));
        nics.insert(tap, json!({"netin": live.net_in * part, "netout": live.net_out * part}));
    }
    map.insert("nics".to_owned(), Value::Object(nics));
    let balloon = guest.config.get("balloon") != Some("0");
    if balloon && guest.config.get("kvm") != Some("0") {
        map.insert("balloon".to_owned(), json!(guest.max_mem()));
        if guest.agent.is_some() {
            map.insert("freemem".to_owned(), json!(guest.max_mem().saturating_sub(live.mem)));
            map.insert(
                "ballooninfo".to_owned(),
                json!({"actual": guest.max_mem(), "max_mem": guest.max_mem(),
                "free_mem": guest.max_mem().saturating_sub(live.mem), "total_mem": guest.max_mem(),
                "last_update": c.now()}),
            );
        }
    }
    map.insert("running-machine".to_owned(), json!("pc-i440fx-10.0+pve1"));
    map.insert("running-qemu".to_owned(), json!("10.0.13"));
}

fn config(c: &mut Call<'_>, kind: Kind) -> Answer {
    let guest = of_call(c, kind)?;
    let schema = options(kind);
    let mut map = match c.text("snapshot").filter(|s| s != "current") {
        Some(name) => {
            let snapshot = guest.snapshots.iter().find(|s| s.name == name);
            let snapshot = snapshot
                .ok_or_else(|| Failure::died(format!("snapshot '{name}' does not exist")))?;
            snapshot_config(snapshot, kind)
        }
        None => {
            let mut map = guest.config.typed(schema);
            if !c.flag("current") {
                // Pending values stand for the present ones.
                for (key, value) in &guest.pending {
                    match value {
                        Some(v) => map.insert(key.clone(), typed(schema, key, v)),
                        None => map.remove(key),
                    };
                }
            }
            if let Some(parent) = &guest.parent {
                map.insert("parent".to_owned(), json!(parent));
            }
            map
        }
    };
    map.insert("digest".to_owned(), json!(guest.digest()));
    if kind == Kind::Lxc {
        raw_lxc(&mut map);
    }
    Ok(Value::Object(map).into())
}

/// `lxc.` lines of a container are shown as a list of pairs.
fn raw_lxc(map: &mut Map<String, Value>) {
    let raw: Vec<(String, Value)> = map
        .iter()
        .filter(|(k, _)| k.starts_with("lxc."))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    if raw.is_empty() {
        return;
    }
    for (key, _) in &raw {
        map.remove(key);
    }
    map.insert(
        "lxc".to_owned(),
        Value::Array(raw.into_iter().map(|(k, v)| json!([k, v])).collect()),
    );
}

/// A snapshot's configuration with its own keys.
pub(super) fn snapshot_config(
    snapshot: &crate::state::guest::Snapshot,
    kind: Kind,
) -> Map<String, Value> {
    let mut map = snapshot.config.typed(options(kind));
    map.insert("snaptime".to_owned(), json!(snapshot.time));
    map.remove("description");
    if !snapshot.description.is_empty() {
        map.insert("description".to_owned(), json!(snapshot.description));
    }
    if let Some(parent) = &snapshot.parent {
        map.insert("parent".to_owned(), json!(parent));
    }
    map
}

fn pending(c: &mut Call<'_>, kind: Kind) -> Answer {
    let guest = of_call(c, kind)?;
    let schema = options(kind);
    let mut rows = Vec::new();
    for (key, value) in guest.config.iter() {
        let mut row = Map::new();
        row.insert("key".to_owned(), json!(key));
        row.insert("value".to_owned(), typed(schema, key, value));
        match guest.pending.iter().find(|(k, _)| k == key).map(|(_, v)| v) {
            Some(Some(next)) => row.insert("pending".to_owned(), typed(schema, key, next)),
            Some(None) => row.insert("delete".to_owned(), json!(1)),
            None => None,
        };
        rows.push(Value::Object(row));
    }
    for (key, value) in guest.pending.iter().filter(|(k, _)| !guest.config.has(k)) {
        if let Some(value) = value {
            rows.push(json!({"key": key, "pending": typed(schema, key, value)}));
        }
    }
    rows.push(json!({"key": "digest", "value": guest.digest()}));
    Ok(Value::Array(rows).into())
}

fn series(c: &mut Call<'_>, kind: Kind) -> Answer {
    let guest = of_call(c, kind)?;
    let cpus = guest.cpus(node_cpus(c.state, guest));
    Ok(Value::Array(rrd::guest_series(guest, &c.need("timeframe"), c.now(), cpus)).into())
}

/// Whether every disk lies where snapshots can be made.
pub(super) fn can_snapshot(state: &State, guest: &Guest) -> bool {
    guest.disks().iter().all(|(_, value)| {
        let volid = value.split(',').next().unwrap_or("");
        let Some((storage, _)) = volid.split_once(':') else { return false };
        let Some(storage) = state.storages.get(storage) else { return false };
        match storage.kind.as_str() {
            "lvmthin" | "zfspool" | "rbd" | "btrfs" => true,
            "dir" | "nfs" | "cifs" => volid.ends_with(".qcow2"),
            _ => false,
        }
    })
}

fn feature(c: &mut Call<'_>, kind: Kind) -> Answer {
    let guest = of_call(c, kind)?;
    let has = match c.need("feature").as_str() {
        "snapshot" => can_snapshot(c.state, guest),
        "clone" => guest.template(),
        _ => true,
    };
    let mut map = Map::new();
    map.insert("hasFeature".to_owned(), json!(u8::from(has)));
    if kind == Kind::Qemu {
        let nodes: Vec<&String> =
            c.state.nodes.iter().filter(|(_, n)| n.online).map(|(name, _)| name).collect();
        map.insert("nodes".to_owned(), json!(nodes));
    }
    Ok(Value::Object(map).into())
}

/// What DHCP gives a guest that was made here.
pub(super) fn lease(vmid: u32) -> String {
    format!("10.20.40.{}/24", 100 + vmid % 100)
}

/// The link-local address that belongs to a MAC address.
pub(super) fn link_local(mac: &str) -> String {
    let bytes: Vec<u8> = mac.split(':').filter_map(|b| u8::from_str_radix(b, 16).ok()).collect();
    match bytes.as_slice() {
        [a, b, c, d, e, f] => {
            let groups = [
                u16::from_be_bytes([a ^ 2, *b]),
                u16::from_be_bytes([*c, 0xFF]),
                u16::from_be_bytes([0xFE, *d]),
                u16::from_be_bytes([*e, *f]),
            ];
            let [g, h, i, j] = groups;
            std::net::Ipv6Addr::new(0xFE80, 0, 0, 0, g, h, i, j).to_string()
        }
        _ => String::new(),
    }
}

fn interfaces(c: &mut Call<'_>) -> Answer {
    let guest = of_call(c, Kind::Lxc)?;
    if !guest.running() {
        return Ok(Value::Null.into());
    }
    let address = |ip: &str, prefix: &str, kind: &str| json!({"ip-address": ip, "prefix": prefix, "ip-address-type": kind});
    let mut rows = vec![json!({
        "name": "lo", "hwaddr": "00:00:00:00:00:00", "hardware-address": "00:00:00:00:00:00",
        "inet": "127.0.0.1/8", "inet6": "::1/128",
        "ip-addresses": [address("127.0.0.1", "8", "inet"), address("::1", "128", "inet6")],
    })];
    for (_, nic) in guest.nics() {
        let mac = Guest::mac(&nic).unwrap_or_default().to_lowercase();
        let local = link_local(&mac);
        let ip = propstring::get(&nic, "ip").unwrap_or_default();
        let known = guest.agent.as_ref().and_then(|a| a.addresses.first().cloned());
        let leased = || (ip == "dhcp").then(|| lease(guest.vmid));
        let own = Some(ip.clone()).filter(|ip| ip.contains('/')).or(known).or_else(leased);
        let mut addresses = Vec::new();
        let mut row = Map::new();
        row.insert(
            "name".to_owned(),
            json!(propstring::get(&nic, "name").unwrap_or_else(|| "eth0".to_owned())),
        );
        row.insert("hwaddr".to_owned(), json!(mac));
        row.insert("hardware-address".to_owned(), json!(mac));
        if let Some(cidr) = &own
            && let Some((ip, prefix)) = cidr.split_once('/')
        {
            row.insert("inet".to_owned(), json!(cidr));
            addresses.push(address(ip, prefix, "inet"));
        }
        row.insert("inet6".to_owned(), json!(format!("{local}/64")));
        addresses.push(address(&local, "64", "inet6"));
        row.insert("ip-addresses".to_owned(), Value::Array(addresses));
        rows.push(Value::Object(row));
    }
    Ok(Value::Array(rows).into())
}
