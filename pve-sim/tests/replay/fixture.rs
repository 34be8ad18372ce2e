//! What was there when each recording began, and what was done by hand in between.

use pve_sim::State;
use pve_sim::state::guest::{Guest, Kind};

/// The estate as it was at the beginning of a file.
pub fn before(file: &str, state: &mut State, now: i64) {
    match file {
        "10-writes-vm" => {
            for vmid in [100, 101, 102, 103, 104] {
                state.guests.remove(&vmid);
            }
            state.volumes.retain(|v| !matches!(v.vmid, Some(100..=104)));
        }
        "11-writes-vm2" => {
            vm(state, 100, |g| {
                g.config.set("tags", "prod;web");
                g.config.set("scsi0", "local:100/vm-100-disk-0.qcow2,size=1G");
                g.config.remove("protection");
                g.start(now - 60, 5589);
            });
            vm(state, 102, |g| {
                g.config.remove("template");
                g.config.set("scsi0", "local:102/vm-102-disk-1.qcow2,size=1G");
            });
            for v in &mut state.volumes {
                v.name = v.name.replace("base-102-disk-1", "vm-102-disk-1");
            }
        }
        "41-auth-permissions" => {
            vm(state, 101, |g| g.config.set("name", "123"));
            state.tasks.all.retain(|t| t.user != "vmop@pve!op");
            // The task that the auditor reads the log of.
            for task in state.tasks.all.iter_mut().filter(|t| t.kind == "qmstart" && t.id == "103")
            {
                (task.pid, task.pstart, task.start_ms) = (0x1B4E, 0x38AE4, 0x6B0C_BC5A * 1000);
            }
        }
        "30-agent" => vm(state, 103, |g| {
            if let Some(agent) = g.agent.as_mut() {
                agent.filesystems.clear();
            }
        }),
        "13-apt-tasks" => {
            if let Some(node) = state.nodes.get_mut("pve") {
                node.updates.clear();
            }
        }
        _ => {}
    }
    if matches!(file, "12-writes-misc" | "13-apt-tasks") {
        state.tasks.all.retain(|t| t.id != "9999");
    }
    if !matches!(file, "01-reads" | "13-apt-tasks") {
        // The backup and the network's objects came with the later recordings.
        state.volumes.retain(|v| v.content != "backup");
        state.firewalls.clear();
        state.options.clear();
        if file == "41-auth-permissions" {
            state.options.insert("description".to_owned(), "".into());
        }
        if let Some(node) = state.nodes.get_mut("pve") {
            node.config.clear();
        }
        for id in [200, 201] {
            if !("12".."14").contains(&file) {
                vm(state, id, |g| {
                    g.config.remove("onboot");
                });
            }
        }
    }
}

/// What was done on the node itself right before a row.
pub fn by_hand(file: &str, label: &str, state: &mut State, now: i64) {
    match (file, label) {
        ("30-agent", "exec single string with space") => vm(state, 103, |g| {
            g.stop();
            g.start(now, 6001);
        }),
        ("11-writes-vm2", "start locked") => vm(state, 100, |g| g.set_lock("backup", now)),
        ("11-writes-vm2", "make template") => vm(state, 100, Guest::unlock),
        _ => {}
    }
}

fn vm(state: &mut State, vmid: u32, change: impl FnOnce(&mut Guest)) {
    if let Some(guest) = state.guests.get_mut(&vmid) {
        assert!(matches!(guest.kind, Kind::Qemu | Kind::Lxc));
        change(guest);
    }
}
