use serde_json::{Value, json};

use super::*;
use crate::{
    insight::estate::{Estate, Part},
    pve::GuestKind,
};

const MIB: f64 = 1_048_576.0;

fn guest(row: Value) -> Guest {
    let mut all = json!({"type": "qemu", "vmid": 104, "node": "pve1", "name": "shop", "status": "running",
        "cpu": 0.1, "maxcpu": 2, "mem": 100, "maxmem": 1000, "uptime": 5000});
    all.as_object_mut().unwrap().extend(row.as_object().unwrap().clone());
    Guest::list(&json!([all])).remove(0)
}

fn neighbour(vmid: u64, storage: &str, mib: f64) -> Neighbour {
    let vmid = Vmid::new(vmid).unwrap();
    Neighbour { vmid, name: "dump".into(), storage: storage.into(), bytes_per_s: mib * MIB }
}

fn patient(guest: &Guest) -> Patient<'_> {
    Patient {
        guest,
        status: None,
        setup: None,
        bytes_per_s: Some(MIB),
        agent_answers: None,
        node: None,
        node_online: true,
        storages: &[],
        neighbours: &[],
        tasks: &[],
    }
}

fn says(found: &Diagnosis) -> Vec<&str> {
    found.statements.iter().map(|s| s.says.as_str()).collect()
}

#[test]
fn io_pressure_and_the_guest_that_causes_it_come_first() {
    let guest = guest(json!({"cpu": 0.95}));
    let status = json!({"pressureiosome": 60, "pressureiofull": "41.5", "pressurecpusome": "2.00", "pressurememorysome": 0});
    let neighbours = [neighbour(103, "nvme", 12.0), neighbour(105, "nvme", 180.0)];
    let found =
        diagnose(&Patient { status: Some(&status), neighbours: &neighbours, ..patient(&guest) });
    assert_eq!(
        says(&found),
        [
            "I/O pressure: it waited for its disks 60 % of the time; storage nvme is kept busy by guest 105 dump \
             (180 MiB/s, 93 % of its traffic)",
            "It uses 95 % of its 2 cores: it has too few, or runs wild",
        ]
    );
    assert_eq!(
        json!(found.statements[0].evidence),
        json!({"pressureiosome": 60.0, "pressureiofull": 41.5, "neighbour": 105, "neighbour_mib_per_s": 180.0, "storage": "nvme"})
    );
}

#[test]
fn a_neighbour_is_blamed_only_when_it_does_most() {
    let guest = guest(json!({}));
    let status = json!({"pressureiosome": "20.00"});
    let cases: [(&[Neighbour], f64); 3] = [
        (&[neighbour(105, "nvme", 180.0)], 200.0),
        (&[neighbour(105, "nvme", 5.0)], 0.0),
        (&[neighbour(105, "a", 50.0), neighbour(106, "a", 49.0), neighbour(107, "a", 48.0)], 0.0),
    ];
    for (neighbours, own) in cases {
        let found = diagnose(&Patient {
            status: Some(&status),
            neighbours,
            bytes_per_s: Some(own * MIB),
            ..patient(&guest)
        });
        assert_eq!(says(&found), ["I/O pressure: it waited for its disks 20 % of the time"]);
    }
}

#[test]
fn each_area_speaks_with_its_numbers() {
    let running = guest(json!({"mem": 980, "lock": "backup", "disk": 96, "maxdisk": 100}));
    let setup = Setup::read(
        GuestKind::Qemu,
        &json!({"agent": "1", "net0": "virtio=AA:BB,bridge=vmbr0,link_down=1"}),
    );
    let status = json!({"pressurecpusome": 30, "pressurememorysome": 25});
    let node = json!({"wait": 0.3, "cpu": "0.97", "memory": {"total": 100, "available": 5}, "swap": {"used": 2e9}});
    let mut estate = Estate::new(0);
    estate.read_resources(Ok(&json!([
        {"type": "storage", "storage": "thin", "node": "pve1", "status": "available", "disk": 97, "maxdisk": 100},
        {"type": "storage", "storage": "nas", "node": "pve1", "status": "unknown", "shared": 1},
    ])));
    let storages: Vec<&Storage> = estate.storages.rows().iter().collect();
    estate.tasks = Part::Known(Vec::new());
    let tasks = Task::list(&json!([
        {"upid": "u1", "node": "pve1", "type": "vzdump", "id": "104", "starttime": 1_796_040_000},
        {"upid": "u2", "node": "pve1", "type": "qmigrate", "id": "104", "starttime": 5, "endtime": 6, "status": "aborted"},
        {"upid": "u3", "node": "pve1", "type": "qmstart", "id": "104", "starttime": 1, "endtime": 2, "status": "old"},
    ]));
    let tasks: Vec<&Task> = tasks.iter().collect();
    let found = diagnose(&Patient {
        status: Some(&status),
        setup: Some(&setup),
        agent_answers: Some(false),
        node: Some(&node),
        storages: &storages,
        tasks: &tasks,
        ..patient(&running)
    });
    let lines: Vec<String> =
        found.statements.iter().map(|s| format!("{} {}: {}", s.weight, s.area, s.says)).collect();
    assert_eq!(
        lines,
        [
            "95 storage: Storage nas, on which it has disks, does not answer",
            "85 storage: Storage thin on pve1, on which it has disks, is 97 % full",
            "80 task: Its last task, qmigrate, failed: aborted",
            "75 disk: Its root disk is 96 % full",
            "72 network: Its interface net0 is unplugged (link_down=1)",
            "70 lock: VM 104 shop is locked (backup): most actions are refused until that ends",
            "65 task: A task works on it: vzdump since 2026-11-30T12:00:00Z",
            "63 memory: Memory pressure: it waited for memory 25 % of the time",
            "62 cpu: CPU pressure: it waited for a processor 30 % of the time",
            "58 io: Node pve1 waits for disks 30 % of its time",
            "58 node: Node pve1 uses 97 % of its processors",
            "57 node: Node pve1 has 95 % of its memory in use, not counting cache",
            "55 memory: 98 % of its memory is in use",
            "50 agent: Its guest agent is switched on but does not answer: it may hang inside, or the agent is not installed",
            "35 node: Node pve1 has 1907.3 MiB swapped out",
        ]
    );
    assert!(found.statements.iter().all(|s| !s.evidence.is_empty()));
    assert_eq!(found.unknown, Vec::<&str>::new());
}

#[test]
fn a_guest_that_is_down() {
    let stopped = guest(json!({"status": "stopped", "cpu": 1, "mem": 1000}));
    assert_eq!(says(&diagnose(&patient(&stopped))), ["VM 104 shop is stopped"]);
    let gone = guest(json!({"status": "unknown"}));
    let found = diagnose(&Patient { node_online: false, ..patient(&gone) });
    assert_eq!(says(&found), ["VM 104 shop is down because its node pve1 is offline"]);
}

#[test]
fn nothing_found_says_what_was_not_seen() {
    let guest = guest(json!({}));
    let found = diagnose(&patient(&guest));
    assert_eq!(says(&found), ["VM 104 shop is running and nothing that was seen stands out"]);
    assert_eq!(found.unknown, ["status", "configuration", "node", "storages"]);
}
