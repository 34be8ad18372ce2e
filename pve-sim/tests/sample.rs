//! The sample estate shows everything that a person should be told of.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the helpers of a test may do what its body may"
)]

use std::collections::BTreeSet;

use pve_sim::state::guest::Kind;
use pve_sim::{Clock, Estate, Options, Sim, State};

const DAY: i64 = 86_400;
const NOW: i64 = 1_800_000_000;

async fn sample() -> Sim {
    Sim::start(Options { clock: Clock::Driven(NOW), ..Options::default() }).await.unwrap()
}

#[tokio::test]
async fn it_has_what_it_is_for() {
    let sim = sample().await;
    sim.with_state(|s| {
        assert_eq!(s.nodes.keys().collect::<Vec<_>>(), ["pve1", "pve2", "pve3"]);
        assert!((38..=46).contains(&s.guests.len()), "{} guests", s.guests.len());
        let finds: [(&str, bool); 16] = [
            ("a guest in no job", uncovered(s).contains(&115)),
            ("an overdue backup", newest_backup(s, 106) < NOW - 5 * DAY),
            ("a fresh backup", newest_backup(s, 102) > NOW - 2 * DAY),
            (
                "a failed job",
                s.tasks
                    .all
                    .iter()
                    .any(|t| t.kind == "vzdump" && t.exit.as_deref() == Some("job errors")),
            ),
            ("a 96-day-old snapshot", s.guests[&118].snapshots[0].time == NOW - 96 * DAY),
            (
                "a stopped production guest",
                !s.guests[&112].running() && s.guests[&112].config.on("onboot"),
            ),
            ("a storage that is full in 9 days", fills_in(s, "nfs-backup") == 9),
            (
                "a guest short of memory",
                s.guests[&102].load.mem > 0.95 && s.guests[&102].load.pressure > 10.0,
            ),
            ("a VM without agent", !s.guests[&110].config.has("agent")),
            (
                "a privileged container",
                s.guests[&208].kind == Kind::Lxc && !s.guests[&208].config.on("unprivileged"),
            ),
            (
                "a node with a pending kernel",
                s.nodes["pve3"].updates.iter().any(|u| u["Package"] == "proxmox-kernel-6.17"),
            ),
            ("a certificate about to expire", expires(s, "pve2") < NOW + 14 * DAY),
            ("a replication error", s.replication["109-0"]["_state"]["fail_count"] == 14),
            (
                "an orphaned disk",
                s.volumes.iter().any(|v| {
                    v.vmid.is_some_and(|id| !s.guests.contains_key(&id)) && v.content == "images"
                }),
            ),
            (
                "a locked guest with its age",
                s.guests[&116].locked_since.is_some_and(|t| t < NOW - 9 * 3600),
            ),
            (
                "notes that give orders",
                s.guests[&115].config.get("description").unwrap().contains("IGNORE ALL PREVIOUS"),
            ),
        ];
        for (what, there) in finds {
            assert!(there, "{what}");
        }
    });
}

/// Guests that no job that is switched on takes.
fn uncovered(s: &State) -> BTreeSet<u32> {
    let mut left: BTreeSet<u32> = s.guests.keys().copied().collect();
    for job in s.backup_jobs.values().filter(|j| j["enabled"] == 1) {
        if let Some(pool) = job.get("pool").and_then(|p| p.as_str()) {
            left.retain(|id| !s.pools[pool].guests.contains(id));
        }
        let ids = job.get("vmid").and_then(|v| v.as_str()).unwrap_or("").to_owned();
        left.retain(|id| !ids.split(',').any(|i| i == id.to_string()));
    }
    left
}

fn newest_backup(s: &State, vmid: u32) -> i64 {
    let own = s.volumes.iter().filter(|v| v.content == "backup" && v.vmid == Some(vmid));
    own.map(|v| v.ctime).max().unwrap_or(0)
}

fn fills_in(s: &State, storage: &str) -> i64 {
    let space = s.storages[storage].space_on("pve1");
    ((space.total - space.used) as f64 / space.growth / DAY as f64).round() as i64
}

fn expires(s: &State, node: &str) -> i64 {
    s.nodes[node].certificates.iter().filter_map(|c| c["notafter"].as_i64()).min().unwrap()
}

/// Disks have volumes, volumes have storages, backups lie in the past, pools hold real guests.
#[tokio::test]
async fn it_is_consistent() {
    for estate in [Estate::sample(), Estate::recorded(), Estate::large(60, 3)] {
        let sim = Sim::start(Options { estate, clock: Clock::Driven(NOW), ..Options::default() })
            .await
            .unwrap();
        sim.with_state(|s| {
            for guest in s.guests.values() {
                assert!(s.nodes.contains_key(&guest.node), "{}", guest.vmid);
                for (key, value) in guest.disks() {
                    let volid = value.split(',').next().unwrap();
                    let volume = s.volume(&guest.node, volid);
                    assert!(volume.is_some(), "{} {key} {volid}", guest.vmid);
                    assert_eq!(volume.unwrap().vmid, Some(guest.vmid));
                }
                assert!(guest.created <= NOW);
            }
            for v in &s.volumes {
                assert!(s.storages.contains_key(&v.storage), "{}", v.volid());
                assert!(v.ctime <= NOW, "{} lies in the future", v.volid());
            }
            for pool in s.pools.values() {
                assert!(pool.guests.iter().all(|id| s.guests.contains_key(id)));
            }
            let upids: BTreeSet<String> = s.tasks.all.iter().map(|t| t.upid()).collect();
            assert_eq!(upids.len(), s.tasks.all.len(), "task ids are unique");
            assert!(s.tasks.all.iter().all(|t| t.end_ms <= NOW * 1000), "what is over is over");
        });
    }
}
