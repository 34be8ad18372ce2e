//! Where a guest of a given size fits best, with the reasons.

use serde::Serialize;

use super::estate::{Estate, GuestKind, Node, Part, Storage};

/// The guest to be placed.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Virtual machine or container.
    pub kind: GuestKind,
    /// Memory in bytes.
    pub memory: u64,
    /// Cores.
    pub cores: f64,
    /// Disk in bytes; 0 for none.
    pub disk: u64,
    /// On this storage only.
    pub storage: Option<String>,
    /// Not on these nodes.
    pub not_on: Vec<String>,
}

/// A node, and how well it suits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Node name.
    pub node: String,
    /// Whether the guest can be there.
    pub fits: bool,
    /// 0 to 100, of what is left when it is there; 0 where it does not fit.
    pub score: u8,
    /// The storage for its disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Why, with the numbers.
    pub reasons: Vec<String>,
}

/// All nodes, the best first; equal ones by name.
#[must_use]
pub fn placement(estate: &Estate, wanted: &Wanted) -> Part<Vec<Candidate>> {
    let nodes = match &estate.nodes {
        Part::Known(nodes) => nodes,
        Part::Unknown(why) => return Part::Unknown(why.clone()),
    };
    let mut found: Vec<Candidate> = nodes.iter().map(|n| candidate(estate, wanted, n)).collect();
    found.sort_by(|a, b| (b.fits, b.score, &a.node).cmp(&(a.fits, a.score, &b.node)));
    Part::Known(found)
}

fn candidate(estate: &Estate, wanted: &Wanted, node: &Node) -> Candidate {
    let mut found = Candidate {
        node: node.name.clone(),
        fits: false,
        score: 0,
        storage: None,
        reasons: Vec::new(),
    };
    match judge(estate, wanted, node, &mut found) {
        Ok(score) => {
            found.fits = true;
            found.score = score;
        }
        // What stands in the way is all there is to say.
        Err(why) => found.reasons = vec![why],
    }
    found
}

fn judge(
    estate: &Estate,
    wanted: &Wanted,
    node: &Node,
    found: &mut Candidate,
) -> Result<u8, String> {
    let name = &node.name;
    if !node.online {
        return Err("it is offline".to_owned());
    }
    if wanted.not_on.contains(name) {
        return Err("it is excluded".to_owned());
    }
    let resting = |e: &&super::estate::HaEntry| {
        e.kind == "lrm" && e.node == *name && e.status.contains("maintenance")
    };
    if estate.ha.rows().iter().any(|entry| resting(&entry)) {
        return Err("it is in maintenance mode".to_owned());
    }
    let (memory_left, total) = memory(wanted, node, &mut found.reasons)?;
    let cpu_left = cpu(wanted, node, &mut found.reasons)?;
    let disk_left = disk(estate, wanted, node, found)?;
    promised(estate, wanted, node, total, &mut found.reasons);
    // Memory cannot be stretched, processors can, a disk can be moved.
    let score = 0.5 * memory_left + 0.3 * cpu_left + 0.2 * disk_left;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok((score * 100.0).round().clamp(0.0, 100.0) as u8)
}

/// The share of memory that is left with the guest there.
fn memory(wanted: &Wanted, node: &Node, reasons: &mut Vec<String>) -> Result<(f64, u64), String> {
    let total = node.maxmem.ok_or("its memory cannot be seen")?;
    let (free, how) = match (node.mem_available, node.mem) {
        (Some(available), _) => (available, "available, cache not counted"),
        (None, Some(used)) => (total.saturating_sub(used), "free"),
        (None, None) => return Err("its memory in use cannot be seen".to_owned()),
    };
    let left = free.checked_sub(wanted.memory).ok_or_else(|| {
        format!("{} GiB of memory {how}, {} GiB wanted", gib(free), gib(wanted.memory))
    })?;
    reasons.push(format!("{} of {} GiB of memory {how}", gib(free), gib(total)));
    Ok((share(left, total), total))
}

/// The share of cores that is left with all of the guest's at work.
fn cpu(wanted: &Wanted, node: &Node, reasons: &mut Vec<String>) -> Result<f64, String> {
    let (Some(cores), Some(used)) = (node.maxcpu, node.cpu) else {
        reasons.push("its processors cannot be seen".to_owned());
        return Ok(0.0);
    };
    #[allow(clippy::cast_precision_loss)]
    let cores = cores as f64;
    if wanted.cores > cores {
        return Err(format!("it has {cores} cores, {} wanted", wanted.cores));
    }
    reasons.push(format!("{:.0} % of {cores} cores in use", used * 100.0));
    Ok(((cores * (1.0 - used) - wanted.cores) / cores).max(0.0))
}

/// The share of the storage that is left, and the storage.
fn disk(
    estate: &Estate,
    wanted: &Wanted,
    node: &Node,
    found: &mut Candidate,
) -> Result<f64, String> {
    if wanted.disk == 0 && wanted.storage.is_none() {
        return Ok(1.0);
    }
    let content = if wanted.kind == GuestKind::Qemu { "images" } else { "rootdir" };
    let storages = match &estate.storages {
        Part::Known(storages) => storages,
        Part::Unknown(why) => return Err(format!("its storages cannot be seen: {why}")),
    };
    let mut suitable: Vec<(u64, &Storage)> = storages
        .iter()
        .filter(|s| s.node == node.name && s.usable() && s.holds(content))
        .filter(|s| wanted.storage.as_ref().is_none_or(|id| *id == s.id))
        .filter_map(|s| Some((s.total?.saturating_sub(s.used?), s)))
        .collect();
    suitable.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.id.cmp(&b.1.id)));
    let Some((free, storage)) = suitable.first() else {
        return Err(match &wanted.storage {
            Some(id) => format!("storage {id} is not usable there for {content}"),
            None => format!("it has no usable storage for {content}"),
        });
    };
    let left = free.checked_sub(wanted.disk).ok_or_else(|| {
        format!("{} GiB free on {}, {} GiB wanted", gib(*free), storage.id, gib(wanted.disk))
    })?;
    found.storage = Some(storage.id.clone());
    found.reasons.push(format!("{} GiB free on {}", gib(*free), storage.id));
    Ok(share(left, storage.total.unwrap_or(0)))
}

/// Says when guests were promised more memory than there is.
fn promised(estate: &Estate, wanted: &Wanted, node: &Node, total: u64, reasons: &mut Vec<String>) {
    let running = estate.guests.rows().iter().filter(|g| *g.node == *node.name && g.uptime > 0);
    let promised: u64 = running.filter_map(|guest| guest.maxmem).sum();
    let all = promised.saturating_add(wanted.memory);
    if all > total {
        reasons.push(format!(
            "with it, running guests may take {} GiB of its {} GiB of memory",
            gib(all),
            gib(total)
        ));
    }
}

fn gib(bytes: u64) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let gib = bytes as f64 / f64::from(1 << 30);
    (gib * 10.0).round() / 10.0
}

fn share(part: u64, whole: u64) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const GIB: u64 = 1 << 30;

    fn node(name: &str, used: u64, cpu: f64) -> Value {
        json!({"type": "node", "node": name, "status": "online", "cpu": cpu, "maxcpu": 16,
               "mem": used * GIB, "maxmem": 64 * GIB})
    }

    fn storage(node: &str, used: u64, content: &str) -> Value {
        json!({"type": "storage", "storage": "thin", "node": node, "status": "available", "content": content,
               "disk": used * GIB, "maxdisk": 1000 * GIB})
    }

    fn wanted() -> Wanted {
        Wanted {
            kind: GuestKind::Qemu,
            memory: 8 * GIB,
            cores: 4.0,
            disk: 100 * GIB,
            storage: None,
            not_on: Vec::new(),
        }
    }

    fn ask(rows: &Value, wanted: &Wanted, prepare: impl FnOnce(&mut Estate)) -> Vec<String> {
        let mut estate = Estate::new(0);
        estate.read_resources(Ok(rows));
        prepare(&mut estate);
        placement(&estate, wanted)
            .rows()
            .iter()
            .map(|c| format!("{} {} {}: {}", c.node, c.fits, c.score, c.reasons.join("; ")))
            .collect()
    }

    #[test]
    fn the_node_with_most_left_comes_first_and_says_why() {
        let rows = json!([
            node("pve1", 40, 0.5), storage("pve1", 100, "images"),
            node("pve2", 16, 0.25), storage("pve2", 100, "images,rootdir"),
            node("pve3", 60, 0.0), storage("pve3", 0, "images"),
            {"type": "node", "node": "pve4", "status": "offline"},
        ]);
        assert_eq!(
            ask(&rows, &wanted(), |_| {}),
            [
                "pve2 true 62: 48 of 64 GiB of memory free; 25 % of 16 cores in use; 900 GiB free on thin",
                "pve1 true 36: 24 of 64 GiB of memory free; 50 % of 16 cores in use; 900 GiB free on thin",
                "pve3 false 0: 4 GiB of memory free, 8 GiB wanted",
                "pve4 false 0: it is offline",
            ]
        );
    }

    #[test]
    fn memory_that_is_only_cache_is_not_in_the_way() {
        let rows = json!([node("pve1", 60, 0.1), storage("pve1", 0, "images")]);
        let found = ask(&rows, &wanted(), |estate| {
            let status =
                json!({"memory": {"total": 64 * GIB, "used": 60 * GIB, "available": 50 * GIB}});
            estate.read_node_status("pve1", Ok(&status));
        });
        assert_eq!(
            found,
            [
                "pve1 true 70: 50 of 64 GiB of memory available, cache not counted; 10 % of 16 cores in use; \
              1000 GiB free on thin"
            ]
        );
    }

    #[test]
    fn equal_nodes_stand_in_order_of_name() {
        let mut rows = vec![node("pve2", 10, 0.1), node("pve10", 10, 0.1), node("pve1", 10, 0.1)];
        let simple = Wanted { disk: 0, ..wanted() };
        let names = |rows: &Vec<Value>| -> Vec<String> {
            ask(&json!(rows), &simple, |_| {})
                .iter()
                .map(|l| l[..l.find(' ').unwrap()].to_owned())
                .collect()
        };
        assert_eq!(names(&rows), ["pve1", "pve10", "pve2"]);
        rows.reverse();
        assert_eq!(names(&rows), ["pve1", "pve10", "pve2"]);
    }

    #[test]
    fn what_stands_in_the_way_is_said() {
        let rows = json!([node("pve1", 10, 0.1), storage("pve1", 950, "images")]);
        let cases = [
            (Wanted { not_on: vec!["pve1".into()], ..wanted() }, "it is excluded"),
            (Wanted { cores: 20.0, ..wanted() }, "it has 16 cores, 20 wanted"),
            (wanted(), "50 GiB free on thin, 100 GiB wanted"),
            (Wanted { kind: GuestKind::Lxc, ..wanted() }, "it has no usable storage for rootdir"),
            (
                Wanted { storage: Some("fast".into()), ..wanted() },
                "storage fast is not usable there for images",
            ),
        ];
        for (wanted, why) in cases {
            assert_eq!(ask(&rows, &wanted, |_| {}), [format!("pve1 false 0: {why}")]);
        }
        let found = ask(&rows, &Wanted { disk: 0, ..wanted() }, |estate| {
            estate.read_ha(Ok(&json!([
                {"type": "lrm", "id": "lrm:pve1", "node": "pve1", "status": "pve1 (maintenance mode, Mon)"},
            ])));
        });
        assert_eq!(found, ["pve1 false 0: it is in maintenance mode"]);
    }

    #[test]
    fn promises_beyond_the_memory_are_told() {
        let rows = json!([
            node("pve1", 10, 0.1),
            {"type": "qemu", "vmid": 100, "node": "pve1", "status": "running", "uptime": 5, "maxmem": 60 * GIB},
            {"type": "qemu", "vmid": 101, "node": "pve1", "status": "stopped", "uptime": 0, "maxmem": 60 * GIB},
        ]);
        let found = ask(&rows, &Wanted { disk: 0, ..wanted() }, |_| {});
        assert!(
            found[0].ends_with("with it, running guests may take 68 GiB of its 64 GiB of memory"),
            "{found:?}"
        );
    }

    #[test]
    fn a_node_that_cannot_be_seen_is_not_called_empty() {
        let rows = json!([{"type": "node", "node": "pve1", "status": "online"}]);
        let found = ask(&rows, &Wanted { disk: 0, ..wanted() }, |_| {});
        assert_eq!(found, ["pve1 false 0: its memory cannot be seen"]);
    }
}
