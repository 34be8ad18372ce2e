//! Tools of the group backup against the simulated cluster.

#![allow(clippy::unwrap_used)]

mod world;

use pve_sim::{Effect, Fault};
use serde_json::{Value, json};
use world::{World, all_bad, all_good, good};

/// A backup of a guest on a storage, as the estate has it; the newest.
fn backup(world: &World, storage: &str, vmid: u32) -> String {
    world.sim.with_state(|s| {
        let mut all: Vec<_> = s
            .volumes
            .iter()
            .filter(|v| v.storage == storage && v.content == "backup" && v.vmid == Some(vmid))
            .collect();
        all.sort_by_key(|v| v.ctime);
        all.last().unwrap().volid()
    })
}

#[tokio::test]
async fn what_is_sent() {
    all_good(vec![
        good(
            "pve_backup_create",
            json!({"vmid": 100, "storage": "nfs-backup"}),
            r#"POST /nodes/pve1/vzdump {"compress":"zstd","remove":"0","storage":"nfs-backup","vmid":"100"}"#,
        ),
        good(
            "pve_backup_create",
            json!({"vmid": 200, "storage": "pbs-main", "mode": "suspend", "notes": "before\nupgrade", "protected": true}),
            r#"POST /nodes/pve1/vzdump {"mode":"suspend","notes-template":"before\\nupgrade","protected":"1","remove":"0","storage":"pbs-main","vmid":"200"}"#,
        ),
        good(
            "pve_backup_create",
            json!({"vmid": 100, "storage": "nfs-backup", "prune_backups": "keep-last=3", "compress": "0"}),
            r#"POST /nodes/pve1/vzdump {"compress":"0","prune-backups":"keep-last=3","remove":"1","storage":"nfs-backup","vmid":"100"}"#,
        ),
        good(
            "pve_backup_job_set",
            json!({"id": "weekly", "schedule": "sat 03:00", "storage": "pbs-main", "vmids": [115, "200"], "mode": "snapshot"}),
            r#"POST /cluster/backup {"id":"weekly","mode":"snapshot","schedule":"sat 03:00","storage":"pbs-main","vmid":"115,200"}"#,
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_backup_is_told_with_what_it_leaves_out() {
    let world = World::new().await;
    let done = world.call("pve_backup_create", json!({"vmid": 104, "storage": "pbs-main"})).await;
    let done = done.unwrap();
    assert_eq!(done["task"]["ok"], true, "{done}");
    let left_out = done["not_in_backup"][0].as_str().unwrap();
    assert!(left_out.starts_with("scsi1 (600 GiB): backup=0"), "{left_out}");
    let (before, after) = (&done["before"]["newest_backup"], &done["after"]["newest_backup"]);
    assert_ne!(before["volid"], after["volid"], "{done}");
    assert!(after["volid"].as_str().unwrap().starts_with("pbs-main:backup/vm/104/"), "{done}");
    let older = world.sim.with_state(|s| {
        s.volumes.iter().filter(|v| v.vmid == Some(104) && v.content == "backup").count()
    });
    assert!(older > 1, "older backups stay");
}

#[tokio::test]
async fn a_failed_backup_is_no_backup() {
    let world = World::new().await;
    // Locked by another backup: only the task says so.
    let error = world.call("pve_backup_create", json!({"vmid": 116, "storage": "pbs-main"})).await;
    let error = error.unwrap_err();
    assert_eq!(error.code.as_str(), "task_failed", "{error}");
    assert!(error.details["task"]["log_tail"].to_string().contains("locked"), "{error:?}");
    // H06: the text says why, too: the exit status is no more than `job errors`.
    let text = error.to_string();
    assert!(
        text.contains("job errors") && text.contains("ERROR: Backup of VM 116 failed"),
        "{text}"
    );
}

#[tokio::test]
async fn what_is_refused_here() {
    let world = World::new().await;
    let volume = backup(&world, "pbs-main", 100);
    world.sim.with_state(|s| {
        let v = s.volumes.iter_mut().find(|v| v.volid() == volume).unwrap();
        v.protected = true;
    });
    all_bad(
        &world,
        &[
            ("pve_backup_create", json!({"vmid": 9999}), "not_found", "9999"),
            ("pve_backup_create", json!({"vmid": 100}), "invalid_argument", "nfs-backup, pbs-main"),
            ("pve_backup_create", json!({"vmid": 100, "storage": "local-lvm"}), "invalid_argument", "does not hold backup"),
            ("pve_backup_create", json!({"vmid": 100, "storage": "nas"}), "not_found", "nfs-backup"),
            ("pve_backup_create", json!({"vmid": 100, "storage": "pbs-main", "mode": "fast"}), "invalid_argument", "snapshot, suspend, stop"),
            ("pve_backup_create", json!({"vmid": 100, "storage": "pbs-main", "remove": false, "prune_backups": "keep-last=1"}), "invalid_argument", "remove"),
            ("pve_backup_create", json!({"vmid": 100, "storage": "pbs-main", "note": "x"}), "invalid_argument", "did you mean `notes`"),
            ("pve_backup_job_set", json!({"schedule": "25 o'clock", "storage": "pbs-main", "all": true}), "invalid_argument", "schedule"),
            ("pve_backup_job_set", json!({"schedule": "daily", "storage": "pbs-main"}), "invalid_argument", "vmids"),
            ("pve_backup_job_set", json!({"schedule": "daily", "storage": "pbs-main", "all": true, "vmids": [100]}), "invalid_argument", "one of"),
            ("pve_backup_job_set", json!({"id": "none", "comment": "x", "must_exist": true}), "not_found", "none"),
            ("pve_backup_job_set", json!({"schedule": "daily", "storage": "pbs-main", "vmids": []}), "invalid_argument", "empty"),
            ("pve_backup_job_delete", json!({"id": ".."}), "not_found", "jobs"),
            ("pve_backup_job_run", json!({"id": "nope"}), "not_found", "nope"),
            ("pve_backup_restore", json!({"volid": volume, "vmid": 101}), "conflict", "exists already"),
            ("pve_backup_restore", json!({"volid": volume, "vmid": 200, "force": true}), "conflict", "the backup is of a VM"),
            ("pve_backup_restore", json!({"volid": volume, "vmid": 100, "force": true}), "conflict", "running"),
            ("pve_backup_restore", json!({"volid": volume, "force": true}), "invalid_argument", "say which"),
            ("pve_backup_restore", json!({"volid": "nfs-images:iso/virtio-win-0.1.271.iso"}), "invalid_argument", "is no backup"),
            ("pve_backup_delete", json!({"volid": volume}), "protected", "protected"),
            ("pve_backup_delete", json!({"volid": "local-lvm:vm-104-disk-0"}), "invalid_argument", "is no backup"),
            ("pve_backup_delete", json!({"volid": "pbs-main:backup/vm/100/1999-01-01T00:00:00Z"}), "not_found", "there is no"),
            ("pve_backup_delete", json!({"volid": ".."}), "invalid_argument", "volume id"),
            ("pve_backup_delete", json!({"volid": "..:x"}), "not_found", "storage"),
            ("pve_backup_delete", json!({"volid": "pbs-main:backup/../../x"}), "not_found", "there is no"),
            ("pve_backup_prune", json!({"storage": "pbs-main", "keep_last": 0}), "invalid_argument", "at least one"),
            ("pve_backup_prune", json!({"storage": "local-lvm", "node": "pve1", "keep_last": 1}), "invalid_argument", "does not hold backup"),
        ],
    )
    .await;
}

#[tokio::test]
async fn deleting_and_protecting_one() {
    let world = World::new().await;
    let volume = backup(&world, "nfs-backup", 117);
    let answer = world.call("pve_backup_delete", json!({"volid": volume})).await.unwrap_err();
    assert_eq!(answer.code.as_str(), "confirm_required", "{answer}");
    let path = format!("/nodes/pve1/storage/nfs-backup/content/{volume}");
    assert_eq!(answer.details["confirm"], path);

    let done = world.call("pve_backup_protect", json!({"volid": volume})).await.unwrap();
    assert_eq!((&done["class"], &done["after"]["protected"]), (&"WRITE".into(), &true.into()));
    assert_eq!(world.sent(), [format!(r#"PUT {path} {{"protected":"1"}}"#)]);
    let again = world.call("pve_backup_protect", json!({"volid": volume})).await.unwrap();
    assert_eq!(again["status"], "no_change");
    let off = world.confirmed("pve_backup_protect", json!({"volid": volume, "protected": false}));
    assert_eq!(off.await.unwrap()["class"], "DESTRUCTIVE");

    let gone = world.confirmed("pve_backup_delete", json!({"volid": volume})).await.unwrap();
    assert_eq!((&gone["status"], &gone["after"]), (&"done".into(), &json!({"exists": false})));
    assert!(gone["before"]["size_bytes"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn pruning_shows_what_would_go() {
    let world = World::new().await;
    let ask = json!({"storage": "nfs-backup", "vmid": 117, "keep_last": 1});
    let error = world.call("pve_backup_prune", ask.clone()).await.unwrap_err();
    assert_eq!(error.code.as_str(), "confirm_required", "{error}");
    let would = error.details["before"]["would_go"].as_array().unwrap().clone();
    assert!(!would.is_empty());
    assert_eq!(error.details["before"]["kept"], 1);
    assert!(world.sent().is_empty());
    let kept = backup(&world, "nfs-backup", 117);
    assert!(would.iter().all(|v| v["volid"] != kept && v["vmid"] == 117 && v["time"].is_string()));

    let done = world.confirmed("pve_backup_prune", ask).await.unwrap();
    assert_eq!(
        world.sent(),
        [
            r#"DELETE /nodes/pve1/storage/nfs-backup/prunebackups {"prune-backups":"keep-last=1","vmid":"117"}"#
        ]
    );
    assert_eq!(done["before"]["would_go"].as_array().unwrap(), &would);
    assert_eq!(done["after"]["would_go"], json!([]));
    let again = world
        .call("pve_backup_prune", json!({"storage": "nfs-backup", "vmid": 117, "keep_last": 1}));
    assert_eq!(again.await.unwrap()["status"], "no_change");
}

#[tokio::test]
async fn restoring_to_a_new_vmid_and_over_a_guest() {
    let world = World::new().await;
    let volume = backup(&world, "pbs-main", 100);
    let free = world.sim.with_state(|s| s.next_id());
    let done = world.call("pve_backup_restore", json!({"volid": volume})).await.unwrap();
    assert_eq!(
        world.sent(),
        [format!(r#"POST /nodes/pve1/qemu {{"archive":"{volume}","unique":"1","vmid":"{free}"}}"#)]
    );
    assert_eq!((&done["vmid"], &done["class"]), (&free.into(), &"WRITE".into()), "{done}");
    assert_eq!(
        (&done["archive"]["type"], &done["archive"]["name"]),
        (&"qemu".into(), &"web-01".into())
    );
    assert_eq!(done["after"]["status"], "stopped", "not started unless asked");

    // Over an existing guest: its own category, and the whole thing confirmed.
    let volume = backup(&world, "nfs-backup", 213);
    let ask = json!({"volid": volume, "vmid": 213, "force": true});
    let error = world.call("pve_backup_restore", ask.clone()).await.unwrap_err();
    assert_eq!(error.details["category"], "GUEST_RESTORE_OVERWRITE", "{error:?}");
    let done = world.confirmed("pve_backup_restore", ask).await.unwrap();
    assert_eq!(
        world.sent(),
        [format!(
            r#"POST /nodes/pve3/lxc {{"force":"1","ostemplate":"{volume}","restore":"1","vmid":"213"}}"#
        )]
    );
    assert_eq!(done["before"]["name"], "radius", "{done}");

    // A `force` with nothing to overwrite overwrites nothing.
    let ask = json!({"volid": volume, "vmid": 777, "force": true, "unprivileged": true});
    let done = world.call("pve_backup_restore", ask).await.unwrap();
    assert_eq!(done["class"], "WRITE", "{done}");
    assert!(!world.sent()[0].contains("force"));
}

#[tokio::test]
async fn a_privileged_backup_says_so_first() {
    let world = World::new().await;
    let volume = backup(&world, "nfs-backup", 208);
    let error = world.call("pve_backup_restore", json!({"volid": volume})).await.unwrap_err();
    assert_eq!(error.code.as_str(), "confirm_required", "{error}");
    assert_eq!(error.details["archive"]["unprivileged"], false, "{error:?}");
    assert!(error.details["category"].as_str().is_some_and(|c| c == "PRIVILEGED_CONTAINER"));
}

#[tokio::test]
async fn two_restores_at_once_get_two_vmids() {
    let world = World::new().await;
    let volume = backup(&world, "pbs-main", 200);
    let one = || world.call("pve_backup_restore", json!({"volid": volume}));
    let (a, b, c) = futures::join!(one(), one(), one());
    let mut ids: Vec<Value> = [a, b, c].into_iter().map(|r| r.unwrap()["vmid"].clone()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
}

#[tokio::test]
async fn jobs() {
    let world = World::new().await;
    let listed = world.call("pve_list_backup_jobs", json!({})).await.unwrap();
    let columns: Vec<&str> =
        listed["columns"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
    for column in ["id", "schedule", "next_run", "guests", "storage"] {
        assert!(columns.contains(&column), "{columns:?}");
    }
    assert!(listed["rows"].as_array().unwrap().len() >= 2, "{listed}");
    let next = columns.iter().position(|c| *c == "next_run").unwrap();
    let enabled = columns.iter().position(|c| *c == "enabled").unwrap();
    for row in listed["rows"].as_array().unwrap() {
        assert_eq!(row[next].is_string(), row[enabled] == true, "{row}");
    }

    let made = world
        .call(
            "pve_backup_job_set",
            json!({"schedule": "21:00", "storage": "pbs-main", "all": true}),
        )
        .await;
    // Its storage keeps everything, so that its runs delete nothing.
    let made = made.unwrap();
    assert_eq!((&made["did"], &made["after"]["schedule"]), (&"created".into(), &"21:00".into()));
    let id = made["after"]["id"].as_str().unwrap().to_owned();
    world.sent();
    let set = world
        .confirmed(
            "pve_backup_job_set",
            json!({"id": id, "schedule": "22:30", "comment": "später"}),
        )
        .await
        .unwrap();
    assert_eq!(
        (&set["did"], &set["before"]["schedule"], &set["after"]["schedule"]),
        (&"updated".into(), &"21:00".into(), &"22:30".into())
    );
    assert_eq!(
        world.sent(),
        [format!(r#"PUT /cluster/backup/{id} {{"comment":"später","schedule":"22:30"}}"#)]
    );
    let not =
        world.call("pve_backup_job_set", json!({"id": id, "comment": "x", "must_not_exist": true}));
    assert_eq!(not.await.unwrap_err().code.as_str(), "conflict");
    let gone = world.confirmed("pve_backup_job_delete", json!({"id": id})).await.unwrap();
    assert_eq!(
        (&gone["class"], &gone["after"]),
        (&"DESTRUCTIVE".into(), &json!({"exists": false}))
    );
    assert_eq!(world.sent(), [format!("DELETE /cluster/backup/{id} {{}}")]);
}

#[tokio::test]
async fn a_job_is_run_on_the_nodes_that_have_its_guests() {
    let world = World::new().await;
    let ask = json!({"id": "two", "schedule": "sat", "storage": "pbs-main", "vmids": [100, 103]});
    world.call("pve_backup_job_set", ask).await.unwrap();
    world.sent();
    let done = world.call("pve_backup_job_run", json!({"id": "two"})).await.unwrap();
    assert_eq!(done["status"], "done", "{done}");
    assert_eq!(
        world.sent(),
        [
            r#"POST /nodes/pve1/vzdump {"remove":"0","storage":"pbs-main","vmid":"100,103"}"#,
            r#"POST /nodes/pve3/vzdump {"remove":"0","storage":"pbs-main","vmid":"100,103"}"#,
        ]
    );
    assert_eq!(done["runs"].as_array().unwrap().len(), 2);
    let one = world.call("pve_backup_job_run", json!({"id": "two", "node": "pve3"})).await.unwrap();
    assert_eq!(one["task"]["ok"], true, "{one}");
    assert_eq!(world.sent().len(), 1);
}

#[tokio::test]
async fn coverage_never_says_none_for_what_it_cannot_see() {
    let world = World::new().await;
    let all = world.call("pve_backup_coverage", json!({"limit": 200})).await.unwrap();
    let columns: Vec<&str> =
        all["columns"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
    let at = |name: &str| columns.iter().position(|c| *c == name).unwrap();
    let row = |vmid: u32| {
        let rows = all["rows"].as_array().unwrap();
        rows.iter().find(|r| r[0] == vmid).unwrap_or_else(|| panic!("no {vmid}: {all}")).clone()
    };
    assert_eq!(row(115)[at("cover")], "not", "{}", row(115));
    assert_eq!(row(104)[at("cover")], "partly", "{}", row(104));
    assert!(row(104)[at("disks_left_out")].as_str().unwrap().contains("scsi1: backup=0"));
    assert!(row(100)[at("last_backup")].is_string(), "{}", row(100));
    let gaps =
        world.call("pve_backup_coverage", json!({"gaps": true, "limit": 200})).await.unwrap();
    assert!(gaps["total"].as_u64() < all["total"].as_u64(), "{gaps}");
    let one = world.call("pve_backup_coverage", json!({"vmid": 115})).await.unwrap();
    assert_eq!((&one["total"], &one["guests_by_state"]["not"]), (&1.into(), &1.into()));

    world.sim.inject(
        Fault::new(Effect::Error(403, "Permission check failed (/, Sys.Audit)\n".into()))
            .path("/cluster/backup")
            .always(),
    );
    let blind = World::call(&world, "pve_backup_coverage", json!({"vmid": 115})).await;
    world.app.pve.forget();
    let blind = match blind {
        Ok(_) => world.call("pve_backup_coverage", json!({"vmid": 115})).await.unwrap(),
        Err(e) => panic!("{e}"),
    };
    assert_eq!(blind["rows"][0][at("cover")], "unknown", "{blind}");
}

#[tokio::test]
async fn contents_of_both_kinds_of_storage() {
    let world = World::new().await;
    let file = backup(&world, "nfs-backup", 117);
    let seen = world.call("pve_backup_contents", json!({"volid": file})).await.unwrap();
    assert_eq!(seen["config"]["name"], "zeiterfassung", "{seen}");
    assert!(seen["files_unknown"].as_str().unwrap().contains("Backup Server"));
    assert!(world.sent().is_empty());
    let pbs = backup(&world, "pbs-main", 200);
    let seen = world.call("pve_backup_contents", json!({"volid": pbs})).await.unwrap();
    assert_eq!(seen["config"]["hostname"], "dns-01", "{seen}");
    assert!(seen["files"]["rows"].as_array().is_some_and(|r| !r.is_empty()), "{seen}");
}

#[tokio::test]
async fn in_read_only_mode_contents_come_without_files() {
    let world = World::with(|c| c.mode = proxmox_mcp::config::Mode::ReadOnly).await;
    let pbs = backup(&world, "pbs-main", 200);
    let seen = world.call("pve_backup_contents", json!({"volid": pbs})).await.unwrap();
    assert!(seen["files_unknown"].as_str().unwrap().contains("PROXMOX_MODE=write"), "{seen}");
    let error = world.call("pve_backup_create", json!({"vmid": 100})).await.unwrap_err();
    assert!(error.to_string().contains("PROXMOX_MODE=write"), "{error}");
}

/// C23: a storage with a retention deletes older backups with each new one, unless
/// the call says that it shall not. pve_backup_create says so, and needs nobody.
#[tokio::test]
async fn only_a_backup_that_prunes_needs_a_confirmation() {
    let world = World::new().await;
    let kept =
        world.call("pve_api_call", json!({"method": "GET", "path": "/storage/nfs-backup"})).await;
    assert_eq!(kept.unwrap()["data"]["prune-backups"], "keep-daily=7,keep-weekly=4");
    let backups = || {
        world.sim.with_state(|s| {
            let own = |v: &&pve_sim::state::storage::Volume| {
                v.storage == "nfs-backup" && v.content == "backup" && v.vmid == Some(117)
            };
            s.volumes.iter().filter(own).count()
        })
    };
    let before = backups();
    let done = world.call("pve_backup_create", json!({"vmid": 117, "storage": "nfs-backup"})).await;
    let done = done.unwrap();
    assert_eq!(
        (&done["class"], &done["request"]["params"]["remove"]),
        (&"WRITE".into(), &"0".into())
    );
    assert_eq!(backups(), before + 1, "no older one went");
    world.sent();

    let vzdump = "/nodes/pve1/vzdump";
    for (tool, arguments, class) in [
        (
            "pve_backup_create",
            json!({"vmid": 117, "storage": "nfs-backup", "remove": true}),
            "CRITICAL",
        ),
        ("pve_backup_create", json!({"vmid": 117, "storage": "pbs-main", "remove": true}), "WRITE"),
        (
            "pve_api_call",
            json!({"method": "POST", "path": vzdump, "params": {"vmid": 117, "storage": "nfs-backup"}}),
            "CRITICAL",
        ),
        (
            "pve_api_call",
            json!({"method": "POST", "path": vzdump, "params": {"vmid": 117, "storage": "pbs-main"}}),
            "WRITE",
        ),
    ] {
        let mut dry = arguments.clone();
        dry["dry_run"] = json!(true);
        let shown = world.call(tool, dry).await.unwrap();
        assert_eq!(shown["class"], class, "{tool} {arguments}: {shown}");
        if class == "CRITICAL" {
            assert_eq!(shown["category"], "VOLUME_DELETE", "{tool} {arguments}: {shown}");
            let error = world.call(tool, arguments.clone()).await.unwrap_err();
            assert_eq!(error.code.as_str(), "confirm_required", "{tool} {arguments}: {error}");
        }
        assert_eq!(world.sent(), Vec::<String>::new(), "{tool} {arguments}");
    }
}

/// W5, W6: a backup tool deletes backups only, within the VMID lists, and an
/// overwrite is its own category.
#[tokio::test]
async fn a_backup_tool_reaches_no_other_volume_and_no_other_guest() {
    let world = World::with(|c| {
        c.allowed_vmids = Some(proxmox_mcp::config::VmidSet::parse("100,700-710").unwrap());
    })
    .await;
    let foreign = backup(&world, "nfs-backup", 117);
    all_bad(
        &world,
        &[
            (
                "pve_backup_delete",
                json!({"volid": "local-lvm:vm-104-disk-0"}),
                "invalid_argument",
                "no backup",
            ),
            ("pve_backup_delete", json!({"volid": foreign, "dry_run": true}), "vmid_denied", "117"),
            ("pve_backup_protect", json!({"volid": foreign}), "vmid_denied", "117"),
            ("pve_backup_restore", json!({"volid": foreign}), "vmid_denied", "117"),
            (
                "pve_backup_restore",
                json!({"volid": backup(&world, "pbs-main", 100), "vmid": 101}),
                "conflict",
                "exists already",
            ),
            ("pve_volume_delete", json!({"volid": "local-lvm:vm-118-disk-2"}), "conflict", "118"),
        ],
    )
    .await;
}

/// The rows of a table by the names of their columns.
fn rows(table: &Value) -> Vec<serde_json::Map<String, Value>> {
    let columns = table["columns"].as_array().unwrap();
    let named = |row: &Value| {
        let cells = row.as_array().unwrap().iter().cloned();
        columns.iter().map(|c| c.as_str().unwrap().to_owned()).zip(cells).collect()
    };
    table["rows"].as_array().unwrap().iter().map(named).collect()
}

/// H01, H03: six guests, each in the state that its job and its disks give it.
#[tokio::test]
async fn h01_coverage_of_guests_and_disks() {
    let world = World::new().await;
    let all = world.call("pve_backup_coverage", json!({"limit": 200})).await.unwrap();
    let all = rows(&all);
    for (vmid, cover, state, jobs, reason) in [
        (100, "covered", "ok", "prod-nightly", ""),
        (104, "partly", "partly", "prod-nightly", "scsi1"),
        (106, "covered", "overdue", "prod-nightly", ""),
        (115, "not", "not", "", "in no backup job"),
        (122, "not", "not", "", "job dev-old is disabled"),
        (208, "partly", "partly", "office-evening", "mp0"),
    ] {
        let row = all.iter().find(|r| r["vmid"] == vmid).unwrap();
        let got = (&row["cover"], &row["state"], &row["jobs"]);
        assert_eq!(got, (&cover.into(), &state.into(), &jobs.into()), "{row:?}");
        assert!(row["reason"].as_str().unwrap_or_default().contains(reason), "{row:?}");
    }
    let one = world.call("pve_backup_coverage", json!({"vmid": 104})).await.unwrap();
    assert_eq!(
        one["disks"],
        json!([
            {"disk": "scsi0", "cover": "covered"},
            {"disk": "scsi1", "cover": "not", "reason": "backup=0"},
        ]),
        "{one}"
    );
    assert!(one.get("missing").is_none(), "nothing was missing: {one}");
}

/// H04: how each guest's runs of the last 90 days went, by the logs of the jobs.
#[tokio::test]
async fn h04_the_rate_of_the_last_90_days() {
    let world = World::new().await;
    let all =
        world.call("pve_backup_coverage", json!({"history": true, "limit": 200})).await.unwrap();
    let whole = all["last_90_days"].clone();
    let all = rows(&all);
    let row = |vmid: u32| all.iter().find(|r| r["vmid"] == vmid).unwrap();
    let (well, ill) = (row(100), row(106));
    assert_eq!((&well["last_status"], &well["success_percent_90d"]), (&"OK".into(), &100.0.into()));
    assert!(well["last_start"].is_string() && well["last_duration"].is_string(), "{well:?}");
    assert!(well["runs_90d"].as_u64().unwrap() >= 7, "{well:?}");
    assert!(ill["last_status"].as_str().unwrap().contains("timed out"), "{ill:?}");
    let rate = ill["success_percent_90d"].as_f64().unwrap();
    let runs = ill["runs_90d"].as_f64().unwrap();
    let good = (runs * rate / 100.0).round();
    assert!(good < runs && (100.0 * good / runs - rate).abs() < 0.06, "{ill:?}");
    assert_eq!(
        (&row(115)["runs_90d"], &row(115)["success_percent_90d"]),
        (&0.into(), &json!(null))
    );
    // The whole is the sum of the rows.
    let sum: u64 = all.iter().map(|r| r["runs_90d"].as_u64().unwrap()).sum();
    assert_eq!(whole["runs"], sum, "{whole}");
    assert!(whole["failed"].as_u64().unwrap() > 0 && world.sent().is_empty(), "{whole}");

    // A node that does not answer is missing, and said to be.
    world.sim.inject(
        Fault::new(Effect::Error(595, "No route to host".into()))
            .path("/nodes/pve3/tasks")
            .always(),
    );
    world.app.pve.forget();
    let less = world.call("pve_backup_coverage", json!({"history": true})).await.unwrap();
    assert!(less["missing"].to_string().contains("backup tasks of pve3"), "{}", less["missing"]);
}
