//! Nodes: list, status, series, services, packages, network, time, hardware.

use serde_json::{Map, Value, json};

use super::Route;
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;
use crate::state::config::digest;
use crate::state::node::Node;
use crate::state::rrd::{self, noise};

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/nodes", list),
    ("GET", "/nodes/{node}/status", status),
    ("GET", "/nodes/{node}/version", version),
    ("GET", "/nodes/{node}/rrddata", series),
    ("GET", "/nodes/{node}/services", services),
    ("GET", "/nodes/{node}/services/{service}/state", service),
    ("GET", "/nodes/{node}/apt/update", |c| Ok(json!(node(c).updates).into())),
    ("GET", "/nodes/{node}/apt/versions", |c| Ok(json!(node(c).versions).into())),
    ("GET", "/nodes/{node}/apt/repositories", |c| Ok(node(c).repositories.clone().into())),
    ("GET", "/nodes/{node}/dns", |c| Ok(json!(node(c).dns).into())),
    ("PUT", "/nodes/{node}/dns", set_dns),
    ("GET", "/nodes/{node}/hosts", hosts),
    ("POST", "/nodes/{node}/hosts", set_hosts),
    ("GET", "/nodes/{node}/time", time),
    ("PUT", "/nodes/{node}/time", set_time),
    ("GET", "/nodes/{node}/config", config),
    ("PUT", "/nodes/{node}/config", set_config),
    ("GET", "/nodes/{node}/subscription", |c| Ok(json!(node(c).subscription).into())),
    ("GET", "/nodes/{node}/certificates/info", |c| Ok(json!(node(c).certificates).into())),
    ("GET", "/nodes/{node}/disks/list", disks),
    ("GET", "/nodes/{node}/disks/lvm", |_| Ok(json!({"leaf": 0, "children": []}).into())),
    ("GET", "/nodes/{node}/disks/lvmthin", |_| Ok(json!([]).into())),
    ("GET", "/nodes/{node}/disks/directory", |_| Ok(json!([]).into())),
    ("GET", "/nodes/{node}/disks/zfs", |_| Err(Failure::died("zfsutils-linux not installed"))),
    ("GET", "/nodes/{node}/disks/smart", smart),
    ("GET", "/nodes/{node}/hardware/pci", |c| Ok(json!(node(c).pci).into())),
    ("GET", "/nodes/{node}/hardware/usb", |c| Ok(json!(node(c).usb).into())),
    ("GET", "/nodes/{node}/netstat", netstat),
    ("GET", "/nodes/{node}/aplinfo", |c| {
        Ok(c.state.documents.get("aplinfo").cloned().unwrap_or(json!([])).into())
    }),
    ("GET", "/nodes/{node}/ceph/status", super::cluster::no_ceph),
];

/// The node of the call; the proxy made sure that it is there.
pub(super) fn node<'a>(c: &'a Call<'_>) -> &'a Node {
    static NONE: std::sync::LazyLock<Node> = std::sync::LazyLock::new(Node::default);
    c.state.nodes.get(&c.node()).unwrap_or(&NONE)
}

fn node_mut<'a>(c: &'a mut Call<'_>) -> Result<&'a mut Node, Failure> {
    let name = c.node();
    c.state
        .nodes
        .get_mut(&name)
        .ok_or_else(|| Failure::died(format!("no such cluster node '{name}'")))
}

/// What the guests on a node use: part of its CPUs, bytes of memory.
fn guests_use(c: &Call<'_>, node: &Node) -> (f64, f64) {
    let running = c.state.guests.values().filter(|g| g.node == node.name && g.running());
    running.fold((0.0, 0.0), |(cpu, mem), g| {
        let live = g.live(c.now()).unwrap_or_default();
        let share = g.cpus(node.cpus) as f64 / node.cpus.max(1) as f64;
        (cpu + live.cpu * share, mem + live.mem as f64)
    })
}

/// A node's present figures: part of its CPUs, bytes of memory, uptime.
fn figures(c: &Call<'_>, node: &Node) -> (f64, u64, i64) {
    let (cpu, mem) = guests_use(c, node);
    let shake = 0.9 + 0.2 * noise(&node.name, c.now().div_euclid(10));
    let cpu = ((node.base_cpu + cpu) * shake).clamp(0.0, 1.0);
    let mem = (node.base_mem as f64 + mem).min(node.mem as f64 * 0.985) as u64;
    (cpu, mem, (c.now() - node.boot).max(0))
}

/// A node's row of `/nodes`.
pub(super) fn row(c: &Call<'_>, node: &Node) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    put("id", json!(format!("node/{}", node.name)));
    put("node", json!(node.name));
    put("type", json!("node"));
    put("level", json!(node.level));
    put("status", json!(if node.online { "online" } else { "offline" }));
    put("ssl_fingerprint", json!(node.fingerprint));
    if node.online && c.may(&format!("/nodes/{}", node.name), &["Sys.Audit"]) {
        let (cpu, mem, uptime) = figures(c, node);
        put("cpu", json!(cpu));
        put("maxcpu", json!(node.cpus));
        put("mem", json!(mem));
        put("maxmem", json!(node.mem));
        put("disk", json!(node.root_used));
        put("maxdisk", json!(node.root));
        put("uptime", json!(uptime));
    }
    map
}

fn list(c: &mut Call<'_>) -> Answer {
    let rows = c.state.nodes.values().map(|n| Value::Object(row(c, n))).collect();
    Ok(Value::Array(rows).into())
}

fn version(c: &mut Call<'_>) -> Answer {
    let version = &node(c).version;
    let release = &c.state.version.1;
    Ok(json!({"release": release, "version": version, "repoid": "14a22df3a1b2c3d4"}).into())
}

fn status(c: &mut Call<'_>) -> Answer {
    let n = node(c);
    let (cpu, mem, uptime) = figures(c, n);
    let load = cpu * n.cpus as f64;
    let kernel = format!("#1 SMP PREEMPT_DYNAMIC PMX {}", n.kernel.trim_end_matches("-pve"));
    let loads = [load * 1.1 + 0.05, load + 0.04, load * 0.9 + 0.03].map(|l| format!("{l:.2}"));
    let boot = if n.efi {
        json!({"mode": "efi", "secureboot": 0})
    } else {
        json!({"mode": "legacy-bios"})
    };
    Ok(json!({
        "uptime": uptime, "cpu": cpu, "wait": cpu * 0.02, "idle": 0,
        "loadavg": loads,
        "kversion": format!("Linux {} {kernel}", n.kernel),
        "current-kernel": {"sysname": "Linux", "release": n.kernel, "version": kernel, "machine": "x86_64"},
        "pveversion": format!("pve-manager/{}/14a22df3a1b2c3d4", n.version),
        "cpuinfo": {"cpus": n.cpus, "cores": n.cpus / 2 / n.sockets.max(1) * n.sockets.max(1), "sockets": n.sockets,
            "model": n.cpu_model, "mhz": "2900.000", "hvm": "1", "user_hz": 100, "family": "6", "vendor": "GenuineIntel",
            "flags": "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 vmx aes avx avx2"},
        "memory": {"total": n.mem, "used": mem, "free": (n.mem - mem) / 2, "available": n.mem - mem},
        "swap": {"total": n.swap, "used": n.swap_used, "free": n.swap - n.swap_used},
        "rootfs": {"total": n.root, "used": n.root_used, "free": n.root - n.root_used,
            "avail": (n.root - n.root_used) / 100 * 95},
        "ksm": {"shared": 0},
        "boot-info": boot,
    })
    .into())
}

fn series(c: &mut Call<'_>) -> Answer {
    let n = node(c);
    let (cpu, mem) = guests_use(c, n);
    Ok(Value::Array(rrd::node_series(n, &c.need("timeframe"), c.now(), cpu, mem)).into())
}

fn services(c: &mut Call<'_>) -> Answer {
    Ok(Value::Array(node(c).services.values().cloned().map(Value::Object).collect()).into())
}

fn service(c: &mut Call<'_>) -> Answer {
    let found = node(c).services.get(&c.need("service")).cloned();
    Ok(found.map_or(Value::Null, Value::Object).into())
}

const MODIFIED: &str = "detected modified configuration - file changed by other user? Try again.";

fn hosts(c: &mut Call<'_>) -> Answer {
    let n = node(c);
    Ok(json!({"data": n.hosts, "digest": digest([&n.hosts])}).into())
}

fn set_hosts(c: &mut Call<'_>) -> Answer {
    let (data, given) = (c.need("data"), c.text("digest"));
    let n = node_mut(c)?;
    if given.is_some_and(|g| g != digest([&n.hosts])) {
        return Err(Failure::died(MODIFIED));
    }
    n.hosts = data;
    done()
}

fn set_dns(c: &mut Call<'_>) -> Answer {
    let mut params = c.params.clone();
    params.remove("node");
    params.remove("delete");
    node_mut(c)?.dns = params;
    done()
}

fn time(c: &mut Call<'_>) -> Answer {
    let now = c.now();
    Ok(json!({"time": now, "localtime": now, "timezone": node(c).timezone}).into())
}

fn set_time(c: &mut Call<'_>) -> Answer {
    const KNOWN: [&str; 9] = [
        "UTC",
        "Etc/UTC",
        "Europe/Vienna",
        "Europe/Berlin",
        "Europe/Zurich",
        "Europe/London",
        "America/New_York",
        "America/Los_Angeles",
        "Asia/Tokyo",
    ];
    let zone = c.need("timezone");
    if !KNOWN.contains(&zone.as_str()) {
        return Err(Failure::parameter("timezone", "No such timezone"));
    }
    node_mut(c)?.timezone = zone;
    done()
}

fn config(c: &mut Call<'_>) -> Answer {
    let n = node(c);
    let mut map = n.config.clone();
    let printed = Value::Object(n.config.clone()).to_string();
    map.insert("digest".to_owned(), json!(digest([printed])));
    if let Some(property) = c.text("property") {
        map.retain(|k, _| *k == property || k == "digest");
    }
    Ok(Value::Object(map).into())
}

fn set_config(c: &mut Call<'_>) -> Answer {
    let params = c.params.clone();
    let delete = c.list("delete");
    let n = node_mut(c)?;
    for name in delete {
        n.config.remove(&name);
    }
    for (name, value) in params {
        match name.as_str() {
            "node" | "delete" | "digest" => {}
            // Notes end in a line end.
            "description" => {
                let text = crate::api::params::text(&value);
                n.config.insert(name, json!(format!("{text}\n")));
            }
            _ => {
                n.config.insert(name, value);
            }
        }
    }
    done()
}

fn disks(c: &mut Call<'_>) -> Answer {
    let kind = c.text("type");
    let rows = node(c).disks.iter().filter(|d| match kind.as_deref() {
        Some("unused") => d.get("used").is_none(),
        _ => true,
    });
    Ok(Value::Array(rows.cloned().collect()).into())
}

fn smart(c: &mut Call<'_>) -> Answer {
    let path = c.need("disk");
    let disk = node(c).disks.iter().find(|d| d.get("devpath").is_some_and(|p| *p == path));
    let disk = disk.ok_or_else(|| Failure::died("not a valid block device"))?;
    let health = disk.get("health").cloned().unwrap_or_default();
    let life = disk.get("wearout").and_then(Value::as_f64);
    if path.starts_with("/dev/nvme") {
        let used = life.map_or_else(|| "0".to_owned(), |life| format!("{:.0}", 100.0 - life));
        let text = format!(
            "\nSMART/Health Information (NVMe Log 0x02)\nCritical Warning:                   0x00\n\
             Temperature:                        38 Celsius\n\
             Available Spare:                    100%\n\
             Available Spare Threshold:          10%\n\
             Percentage Used:                    {used}%\n\
             Media and Data Integrity Errors:    0\n"
        );
        return Ok(json!({"health": health, "type": "text", "text": text}).into());
    }
    let attribute = |id: &str, name: &str, value: f64, threshold: u8, raw: &str| {
        json!({"id": id, "name": name, "value": value, "normalized": value, "worst": value,
            "threshold": threshold, "flags": "-O--CK", "fail": "-", "raw": raw})
    };
    let mut attributes = vec![
        attribute("  5", "Reallocated_Sector_Ct", 100.0, 10, "0"),
        attribute("197", "Current_Pending_Sector", 100.0, 0, "0"),
    ];
    if let Some(life) = life {
        attributes.insert(1, attribute("177", "Wear_Leveling_Count", life, 0, "41"));
    }
    Ok(json!({"health": health, "type": "ata", "attributes": attributes}).into())
}

fn netstat(c: &mut Call<'_>) -> Answer {
    let name = c.node();
    let mut rows = Vec::new();
    for guest in c.state.guests.values().filter(|g| g.node == name) {
        let Some(live) = guest.live(c.now()) else { continue };
        for (nic, _) in guest.nics() {
            rows.push(
                json!({"vmid": guest.vmid.to_string(), "dev": nic, "in": live.net_in.to_string(),
                "out": live.net_out.to_string()}),
            );
        }
    }
    Ok(Value::Array(rows).into())
}
