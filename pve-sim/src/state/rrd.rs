//! Figures over time: a deterministic function of the object and the moment,
//! so that a series is the same however often it is asked for.

use serde_json::{Map, Value, json};

use super::guest::{Guest, Kind};
use super::node::Node;

/// The live figures of a guest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// Part of its CPUs, 0 to 1.
    pub cpu: f64,
    /// Bytes of memory.
    pub mem: u64,
    /// Bytes of the root file system (containers).
    pub disk: u64,
    /// Bytes received since the start.
    pub net_in: u64,
    /// Bytes sent since the start.
    pub net_out: u64,
    /// Bytes read since the start.
    pub read: u64,
    /// Bytes written since the start.
    pub written: u64,
    /// Seconds since the start.
    pub uptime: i64,
}

/// 0 to 1, the same for the same name and slot.
pub(crate) fn noise(name: &str, slot: i64) -> f64 {
    let bytes = name.bytes().chain(slot.to_le_bytes());
    let hash = bytes
        .fold(0xCBF2_9CE4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3));
    // Neighbouring slots differ in few bits: mix them well.
    let mixed = (hash ^ (hash >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let top = u32::try_from((mixed ^ (mixed >> 29)) >> 32).unwrap_or(0);
    f64::from(top) / f64::from(u32::MAX)
}

/// A factor around 1: a daily wave with noise of about 5 minutes.
fn wave(name: &str, t: i64) -> f64 {
    let day = (t.rem_euclid(86_400)) as f64 / 86_400.0 * std::f64::consts::TAU;
    let swing = 1.0 - 0.35 * (day + 0.6).cos();
    swing * (0.8 + 0.4 * noise(name, t.div_euclid(300)))
}

pub(crate) fn guest_figures(guest: &Guest, now: i64, uptime: i64) -> Figures {
    let name = format!("guest/{}", guest.vmid);
    let load = &guest.load;
    let since = uptime.max(0) as f64;
    let paused = guest.run.as_ref().is_some_and(|r| r.paused);
    let cpu = if paused { 0.0 } else { (load.cpu * wave(&name, now)).clamp(0.0, 1.0) };
    Figures {
        cpu,
        mem: (guest.max_mem() as f64
            * (load.mem * (0.97 + 0.06 * noise(&name, now.div_euclid(60)))).min(1.0))
            as u64,
        disk: (guest.max_disk() as f64 * load.disk) as u64,
        net_in: (load.net.0 * since) as u64,
        net_out: (load.net.1 * since) as u64,
        read: (load.io.0 * since) as u64,
        written: (load.io.1 * since) as u64,
        uptime: uptime.max(0),
    }
}

/// Step in seconds and number of points of a time frame.
pub(crate) fn frame(name: &str) -> (i64, i64) {
    match name {
        "day" => (60, 1440),
        "week" => (1800, 336),
        "month" => (1800, 1440),
        "year" => (21_600, 1440),
        "decade" => (604_800, 520),
        _ => (60, 60),
    }
}

/// The moments of a time frame that ends now.
pub(crate) fn moments(timeframe: &str, now: i64) -> Vec<i64> {
    let (step, count) = frame(timeframe);
    let last = now.div_euclid(step) * step;
    (0..count).rev().map(|n| last - n * step).collect()
}

fn at(time: i64) -> Map<String, Value> {
    let mut point = Map::new();
    point.insert("time".to_owned(), json!(time));
    point
}

/// A guest's series; before it existed a point holds only its time.
pub(crate) fn guest_series(guest: &Guest, timeframe: &str, now: i64, cpus: u64) -> Vec<Value> {
    let name = format!("guest/{}", guest.vmid);
    let load = guest.load;
    let point = |t: i64| {
        let mut p = at(t);
        if t < guest.created {
            return Value::Object(p);
        }
        let mut put = |k: &str, v: Value| {
            p.insert(k.to_owned(), v);
        };
        put("maxcpu", json!(cpus));
        put("maxmem", json!(guest.max_mem()));
        put("maxdisk", json!(guest.max_disk()));
        put(
            "disk",
            json!(if guest.kind == Kind::Lxc {
                (guest.max_disk() as f64 * load.disk) as u64
            } else {
                0
            }),
        );
        if guest.run.as_ref().is_some_and(|r| t >= r.since) {
            let f = guest_figures(guest, t, 0);
            put("cpu", json!(f.cpu));
            put("mem", json!(f.mem as f64));
            if guest.kind == Kind::Qemu {
                put("memhost", json!(f.mem as f64 * 1.03));
            }
            for (key, mean) in [
                ("netin", load.net.0),
                ("netout", load.net.1),
                ("diskread", load.io.0),
                ("diskwrite", load.io.1),
            ] {
                put(key, json!(mean * wave(&format!("{name}/{key}"), t)));
            }
            let stall = load.pressure * wave(&format!("{name}/psi"), t);
            for (key, value) in [
                ("pressurecpusome", f.cpu * 4.0),
                ("pressurecpufull", f.cpu * 2.0),
                ("pressureiosome", stall * 0.5),
                ("pressureiofull", stall * 0.3),
                ("pressurememorysome", stall),
                ("pressurememoryfull", stall * 0.6),
            ] {
                put(key, json!(value));
            }
        }
        Value::Object(p)
    };
    moments(timeframe, now).into_iter().map(point).collect()
}

/// A node's series.
pub(crate) fn node_series(
    node: &Node,
    timeframe: &str,
    now: i64,
    guests_cpu: f64,
    guests_mem: f64,
) -> Vec<Value> {
    let name = format!("node/{}", node.name);
    let point = |t: i64| {
        let mut p = at(t);
        if t < node.installed || (!node.online && t > node.boot) {
            return Value::Object(p);
        }
        let w = wave(&name, t);
        let cpu = ((node.base_cpu + guests_cpu) * w).clamp(0.002, 1.0);
        let mem = (node.base_mem as f64 + guests_mem * (0.98 + 0.04 * noise(&name, t / 300)))
            .min(node.mem as f64);
        for (key, value) in [
            ("maxcpu", json!(node.cpus)),
            ("cpu", json!(cpu)),
            ("iowait", json!(cpu * 0.03)),
            ("loadavg", json!(cpu * node.cpus as f64)),
            ("memtotal", json!(node.mem)),
            ("memused", json!(mem)),
            ("memavailable", json!(node.mem as f64 - mem)),
            ("arcsize", json!(0)),
            ("swaptotal", json!(node.swap)),
            ("swapused", json!(node.swap_used)),
            ("roottotal", json!(node.root)),
            ("rootused", json!(node.root_used as f64)),
            ("netin", json!(2.4e6 * wave(&format!("{name}/in"), t))),
            ("netout", json!(3.1e6 * wave(&format!("{name}/out"), t))),
            ("pressurecpusome", json!(cpu * 3.0)),
            ("pressureiosome", json!(cpu * 1.5)),
            ("pressureiofull", json!(cpu * 0.8)),
            ("pressurememorysome", json!(0.0)),
            ("pressurememoryfull", json!(0.0)),
        ] {
            p.insert(key.to_owned(), value);
        }
        Value::Object(p)
    };
    moments(timeframe, now).into_iter().map(point).collect()
}

/// A storage's series: it grows by a steady number of bytes a second.
pub(crate) fn storage_series(
    total: u64,
    used_now: u64,
    growth: f64,
    born: i64,
    timeframe: &str,
    now: i64,
) -> Vec<Value> {
    let point = |t: i64| {
        let mut p = at(t);
        if t >= born {
            let used = (used_now as f64 - growth * (now - t) as f64).max(0.0);
            p.insert("total".to_owned(), json!(total as f64));
            p.insert("used".to_owned(), json!(used.min(total as f64)));
        }
        Value::Object(p)
    };
    moments(timeframe, now).into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_spread_and_stable() {
        let values: Vec<f64> = (0..1000).map(|n| noise("guest/100", n)).collect();
        let mean = values.iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        assert!(values.iter().any(|v| *v < 0.05) && values.iter().any(|v| *v > 0.95));
        assert_eq!(noise("guest/100", 7), noise("guest/100", 7));
        assert_ne!(noise("guest/100", 7), noise("guest/101", 7));
    }
}
