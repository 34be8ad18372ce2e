//! Cluster and nodes: quorum, offline, certificates, disks, kernels, memory, HA, replication.

use std::collections::BTreeMap;

use super::{Finding, Look, age, days, moment, percent};
use crate::insight::estate::{Estate, Node, Part, Replication, release_numbers};

const DAY: i64 = 86_400;
/// A certificate is reported this long before its end.
const CERTIFICATE_DAYS: i64 = 30;
/// And is urgent this long before.
const CERTIFICATE_URGENT_DAYS: i64 = 3;
/// Life left of a solid-state disk, in percent.
const LIFE_LEFT: f64 = 10.0;
const MEMORY_SHARE: f64 = 0.95;

pub(super) fn look(look: &mut Look<'_>) {
    cluster(look);
    match &look.estate.nodes {
        Part::Known(nodes) => nodes.iter().for_each(|node| one_node(look, node)),
        Part::Unknown(why) => look.cannot_see("nodes", why.clone()),
    }
    high_availability(look);
}

fn cluster(look: &mut Look<'_>) {
    match &look.estate.cluster {
        Part::Unknown(why) => look.cannot_see("quorum", why.clone()),
        Part::Known(cluster) if cluster.quorate == Some(false) => {
            let name = cluster.name.as_deref().unwrap_or_default();
            let what =
                format!("The cluster {name} has no quorum: nothing can be changed or started");
            look.found(
                Finding::critical("quorum_lost", what)
                    .with("nodes_online", cluster.online)
                    .with("nodes", cluster.members)
                    .next("Bring nodes back or mend the cluster network; `pvecm status` on a node"),
            );
        }
        Part::Known(_) => {}
    }
}

fn one_node(look: &mut Look<'_>, node: &Node) {
    let estate = look.estate;
    let name = node.name.as_str();
    if !node.online {
        let guests = estate.guests.rows().iter().filter(|g| *g.node == *name).count();
        look.found(
            Finding::critical("node_offline", format!("Node {name} is offline"))
                .of_node(name)
                .with("guests", guests)
                .next("Check its power and network; pve_cluster_status shows who still sees it"),
        );
        look.cannot_see(format!("everything on node {name}"), "the node is offline");
        return;
    }
    if let (Some(used), Some(total)) = (node.mem, node.maxmem) {
        #[allow(clippy::cast_precision_loss)]
        let share = if total == 0 { 0.0 } else { used as f64 / total as f64 };
        if share >= MEMORY_SHARE {
            let what = format!("Node {name} is short of memory: {} % in use", percent(share));
            look.found(
                Finding::warning("node_memory", what)
                    .of_node(name)
                    .with("mem_bytes", used)
                    .with("maxmem_bytes", total)
                    .next("Move guests away or give them less; pve_list_vms sorted by mem"),
            );
        }
    }
    per_node(look, name, "certificates", |e| &e.certificates, certificates);
    per_node(
        look,
        name,
        "disk health",
        |e| &e.disks,
        |look, name, disks| {
            disks.iter().for_each(|disk| disk_health(look, name, disk));
        },
    );
    per_node(look, name, "updates", |e| &e.updates, updates);
    per_node(
        look,
        name,
        "replication",
        |e| &e.replication,
        |look, name, jobs| {
            jobs.iter().for_each(|job| replication(look, name, job));
        },
    );
}

/// Judges one part of a node, or says that it cannot be seen.
pub(super) fn per_node<'a, T: 'a>(
    look: &mut Look<'a>,
    node: &str,
    what: &str,
    part: impl Fn(&'a Estate) -> &'a BTreeMap<String, Part<T>>,
    judge: impl Fn(&mut Look<'a>, &str, &'a T),
) {
    match part(look.estate).get(node) {
        Some(Part::Known(value)) => judge(look, node, value),
        Some(Part::Unknown(why)) => look.cannot_see_of(what, node.to_owned(), why.clone()),
        None => look.cannot_see_of(what, node.to_owned(), "not read"),
    }
}

fn certificates(
    look: &mut Look<'_>,
    node: &str,
    certificates: &Vec<crate::insight::estate::Certificate>,
) {
    let now = look.estate.now;
    for certificate in certificates {
        let Some(end) = certificate.not_after else { continue };
        let left = end - now;
        if left >= CERTIFICATE_DAYS * DAY {
            continue;
        }
        let file = &certificate.file;
        let finding = if left < 0 {
            let what = format!("Certificate {file} of {node} ended {} ago", age(-left));
            Finding::critical("certificate_expired", what)
        } else {
            let what = format!("Certificate {file} of {node} ends in {}", age(left));
            if left < CERTIFICATE_URGENT_DAYS * DAY {
                Finding::critical("certificate_expiring", what)
            } else {
                Finding::warning("certificate_expiring", what)
            }
        };
        let mend = match file.as_str() {
            "pveproxy-ssl.pem" => "Renew it: order it again by ACME, or upload a new one",
            _ => "Renew it on the node with `pvecm updatecerts --force`",
        };
        look.found(
            finding
                .of_node(node)
                .with("days_left", days(left))
                .with("ends", moment(look.estate, node, end))
                .next(format!("{mend}; then update a pinned fingerprint")),
        );
    }
}

fn disk_health(look: &mut Look<'_>, node: &str, disk: &crate::insight::estate::NodeDisk) {
    let (device, model) = (&disk.device, disk.model.trim());
    let good = ["PASSED", "OK", "UNKNOWN", ""];
    if !good.iter().any(|good| disk.health.trim().eq_ignore_ascii_case(good)) {
        let what = format!("Disk {device} of {node} says of itself: {}", disk.health);
        look.found(
            Finding::critical("disk_failing", what)
                .of_node(node)
                .with("model", model)
                .next(format!("Back up what is on it and replace it; `smartctl -a {device}`")),
        );
    }
    // Proxmox's wearout counts down: 100 is new.
    if let Some(left) = disk.life_left.filter(|left| *left <= LIFE_LEFT) {
        let what = format!("Disk {device} of {node} is worn: {left} % of its life left");
        look.found(
            Finding::warning("disk_worn", what)
                .of_node(node)
                .with("life_left_percent", left)
                .with("model", model)
                .next("Plan its replacement"),
        );
    }
}

fn updates(look: &mut Look<'_>, node: &str, updates: &crate::insight::estate::Updates) {
    match &updates.kernels {
        Part::Known(kernels) => {
            let newest = kernels.newest.as_deref().unwrap_or_default();
            if release_numbers(newest) > release_numbers(&kernels.running) {
                let what = format!("Node {node} has not started its newest kernel {newest} yet");
                look.found(
                    Finding::warning("kernel_not_booted", what)
                        .of_node(node)
                        .with("running", kernels.running.as_str())
                        .with("newest", newest)
                        .next("Plan a reboot; pve_kernel_list shows which kernel comes next, where SSH is set up"),
                );
            }
        }
        Part::Unknown(why) => look.cannot_see_of("kernels", node.to_owned(), why.clone()),
    }
    match &updates.pending {
        Part::Known(pending) if !pending.is_empty() => {
            let n = pending.len();
            let what =
                format!("Node {node}: {n} package update{} pending", if n == 1 { "" } else { "s" });
            look.found(
                Finding::info("updates_pending", what)
                    .of_node(node)
                    .with("packages", n)
                    .next(format!("pve_list_updates node={node}")),
            );
        }
        Part::Known(_) => {}
        Part::Unknown(why) => look.cannot_see_of("updates", node.to_owned(), why.clone()),
    }
}

fn replication(look: &mut Look<'_>, node: &str, job: &Replication) {
    let error = job.error.as_deref().map(str::trim_end);
    if job.disabled || (error.is_none() && job.fail_count == 0) {
        return;
    }
    let estate = look.estate;
    let (id, target) = (&job.id, &job.target);
    let what = format!("Replication {id} from {node} to {target} fails");
    let mut finding = Finding::warning("replication_error", what)
        .with("fail_count", job.fail_count)
        .next("Read the cause; pve_replication_status shows all jobs of the guest");
    if let Some(error) = error {
        finding = finding.with("error", error);
    }
    finding = match job.last_sync {
        Some(at) => finding
            .with("last_sync", moment(estate, node, at))
            .with("last_sync_age_days", days(estate.now - at)),
        None => finding.with("last_sync", "never"),
    };
    finding.vmid = job.guest;
    look.found(finding.of_node(node));
}

fn high_availability(look: &mut Look<'_>) {
    let entries = match &look.estate.ha {
        Part::Known(entries) => entries,
        Part::Unknown(why) => return look.cannot_see("high availability", why.clone()),
    };
    for entry in entries {
        let (id, node, state) = (&entry.id, &entry.node, &entry.state);
        match entry.kind.as_str() {
            "service" if matches!(state.as_str(), "error" | "fence" | "recovery") => {
                let id = id.strip_prefix("service:").unwrap_or(id);
                let what = format!("High availability: {id} on {node} is in state {state}");
                let mend = if state == "error" {
                    "Mend the cause, then set its HA state to disabled and back to started"
                } else {
                    "Its node is being fenced; wait, and check that node"
                };
                let mut finding = Finding::critical("ha_error", what)
                    .with("state", state.as_str())
                    .next(format!("{mend}; pve_ha_status"));
                finding.vmid = entry.vmid();
                look.found(finding.of_node(node));
            }
            // "pve3 (old timestamp - dead?, Mon Nov 30 …)"
            "lrm" | "master" if entry.status.contains("dead") => {
                let what =
                    format!("High availability: the {} of {node} does not report", entry.kind);
                look.found(
                    Finding::warning("ha_silent", what)
                        .of_node(node)
                        .with("status", entry.status.as_str())
                        .next("Check pve-ha-lrm and pve-ha-crm on that node; pve_ha_status"),
                );
            }
            _ => {}
        }
    }
}
