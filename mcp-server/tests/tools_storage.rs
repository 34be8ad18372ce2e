//! Tools of the group storage against the simulated cluster.

#![allow(clippy::unwrap_used)]

mod world;

use serde_json::json;
use world::{World, all_bad, all_good, good};

#[tokio::test]
async fn what_is_sent() {
    all_good(vec![
        good(
            "pve_storage_set",
            json!({"storage": "nas2", "type": "nfs", "content": ["backup", "iso"], "nodes": ["pve1"], "options": {"server": "10.20.1.41", "export": "/tank/two"}}),
            r#"POST /storage {"content":"backup,iso","export":"/tank/two","nodes":"pve1","server":"10.20.1.41","storage":"nas2","type":"nfs"}"#,
        ),
        good(
            "pve_storage_set",
            json!({"storage": "nfs-images", "content": ["images", "iso", "vztmpl", "import"], "disable": false}),
            r#"PUT /storage/nfs-images {"content":"images,iso,vztmpl,import","disable":"0"}"#,
        ),
        good("pve_storage_delete", json!({"storage": "nfs-images"}), "DELETE /storage/nfs-images {}"),
        good(
            "pve_download_url",
            json!({"url": "https://images.example.test/d/small-13.iso", "storage": "nfs-images", "content": "iso"}),
            r#"POST /nodes/pve1/storage/nfs-images/download-url {"content":"iso","filename":"small-13.iso","url":"https://images.example.test/d/small-13.iso"}"#,
        ),
        good(
            "pve_volume_delete",
            json!({"volid": "nfs-images:iso/virtio-win-0.1.271.iso"}),
            "DELETE /nodes/pve1/storage/nfs-images/content/nfs-images:iso/virtio-win-0.1.271.iso {}",
        ),
    ])
    .await;
}

#[tokio::test]
async fn what_is_refused_here() {
    let world = World::new().await;
    let backup = world.sim.with_state(|s| {
        s.volumes.iter().find(|v| v.storage == "pbs-main" && v.content == "backup").unwrap().volid()
    });
    let iso = "nfs-images:iso/virtio-win-0.1.271.iso";
    let url = "https://images.example.test/small.iso";
    all_bad(
        &world,
        &[
            ("pve_storage_set", json!({"storage": "new"}), "invalid_argument", "needs `type`"),
            ("pve_storage_set", json!({"storage": "new", "type": "floppy"}), "invalid_argument", "zfspool"),
            ("pve_storage_set", json!({"storage": "..", "type": "dir"}), "path_refused", ".."),
            ("pve_storage_set", json!({"storage": "local-lvm", "type": "dir"}), "conflict", "lvmthin"),
            ("pve_storage_set", json!({"storage": "nfs-images", "options": {"server": "10.0.0.1"}}), "conflict", "10.20.1.40"),
            ("pve_storage_set", json!({"storage": "local-lvm", "disable": true, "digest": "0".repeat(40)}), "digest_changed", "changed"),
            ("pve_storage_set", json!({"storage": "local-lvm", "disable": true, "must_not_exist": true}), "conflict", "exists"),
            ("pve_storage_set", json!({"storage": "nope", "type": "dir", "must_exist": true}), "not_found", "nope"),
            ("pve_storage_set", json!({"storage": "x1", "type": "dir", "options": {"content": "iso"}}), "invalid_argument", "argument of its own"),
            ("pve_storage_delete", json!({"storage": "nope"}), "not_found", "nope"),
            ("pve_storage_delete", json!({"storage": "../access/users/root@pam"}), "path_refused", "no names"),
            ("pve_download_url", json!({"url": "ftp://x.example.test/x.iso", "storage": "nfs-images", "content": "iso"}), "invalid_argument", "http"),
            ("pve_download_url", json!({"url": "file:///etc/x.iso", "storage": "nfs-images", "content": "iso"}), "invalid_argument", "http"),
            ("pve_download_url", json!({"url": url, "storage": "nfs-images", "content": "iso", "filename": "../x.iso"}), "invalid_argument", "file name"),
            ("pve_download_url", json!({"url": url, "storage": "nfs-images", "content": "iso", "filename": "x.qcow2"}), "invalid_argument", "endings"),
            ("pve_download_url", json!({"url": url, "storage": "nfs-images", "content": "iso", "checksum": "abc"}), "invalid_argument", "checksum"),
            ("pve_download_url", json!({"url": url, "storage": "pbs-main", "content": "iso"}), "invalid_argument", "does not hold iso"),
            ("pve_download_url", json!({"url": url, "storage": "local", "content": "iso"}), "invalid_argument", "another storage on each"),
            ("pve_download_url", json!({"url": "http://127.0.0.1/x1.iso", "storage": "nfs-images", "content": "iso"}), "target_refused", "itself"),
            ("pve_download_url", json!({"url": "http://[::1]/x1.iso", "storage": "nfs-images", "content": "iso"}), "target_refused", "itself"),
            ("pve_appliance_download", json!({"template": "plan9", "storage": "nfs-images"}), "not_found", "plan9"),
            ("pve_volume_delete", json!({"volid": backup}), "invalid_argument", "pve_backup_delete"),
            ("pve_volume_delete", json!({"volid": "local-lvm:vm-118-disk-0"}), "conflict", "gitlab"),
            ("pve_volume_delete", json!({"volid": "nfs-images:iso/nope.iso"}), "not_found", "there is no"),
            ("pve_volume_delete", json!({"volid": "nfs-images:iso/../../x.iso"}), "not_found", "there is no"),
            ("pve_volume_update", json!({"volid": iso, "notes": "x"}), "invalid_argument", "backups only"),
            ("pve_volume_update", json!({"volid": backup}), "invalid_argument", "nothing to change"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_download_is_told_by_what_is_there_then() {
    let world = World::new().await;
    let ask = json!({"url": "https://images.example.test/small.qcow2", "storage": "local", "node": "pve2", "content": "import"});
    // Without a checksum an image to import is not what was approved.
    let done = world.call("pve_download_url", ask).await.unwrap();
    assert_eq!(
        (&done["class"], &done["unchecked"]),
        (&"DESTRUCTIVE".into(), &true.into()),
        "{done}"
    );
    assert_eq!(done["before"], json!({"exists": false}));
    assert_eq!(done["after"]["volid"], "local:import/small.qcow2");

    let bad = json!({"url": "https://images.example.test/missing.iso", "storage": "nfs-images", "content": "iso"});
    let error = world.call("pve_download_url", bad).await.unwrap_err();
    assert_eq!(error.code.as_str(), "task_failed", "{error}");
    assert!(error.message.contains("exit code 8"), "{error}");

    let sum = json!({"url": "https://images.example.test/small2.iso", "storage": "nfs-images", "content": "iso", "checksum": "0".repeat(64)});
    let error = world.call("pve_download_url", sum).await.unwrap_err();
    assert!(error.message.contains("checksum mismatch"), "{error}");
    let sent = world.sent().pop().unwrap();
    assert!(sent.contains(r#""checksum-algorithm":"sha256""#), "{sent}");
}

#[tokio::test]
async fn appliances_by_the_beginning_of_their_name() {
    let world = World::new().await;
    let names: Vec<String> = world.sim.with_state(|s| {
        let list =
            s.documents.get("aplinfo").and_then(|l| l.as_array().cloned()).unwrap_or_default();
        list.iter().map(|t| t["template"].as_str().unwrap().to_owned()).collect()
    });
    let there: Vec<String> =
        world.sim.with_state(|s| s.volumes.iter().map(|v| v.name.clone()).collect());
    let name = names.iter().find(|n| !there.contains(&format!("vztmpl/{n}"))).unwrap();
    let done = world
        .call("pve_appliance_download", json!({"template": name, "storage": "nfs-images"}))
        .await;
    let done = done.unwrap();
    assert_eq!(done["after"]["volid"], format!("nfs-images:vztmpl/{name}"), "{done}");
    assert_eq!(
        world.sent(),
        [format!(r#"POST /nodes/pve1/aplinfo {{"storage":"nfs-images","template":"{name}"}}"#)]
    );
    let again =
        world.call("pve_appliance_download", json!({"template": name, "storage": "nfs-images"}));
    assert_eq!(again.await.unwrap()["status"], "no_change");
}

#[tokio::test]
async fn storages_are_made_changed_and_deleted() {
    let world = World::new().await;
    let ask = json!({"storage": "scratch", "type": "dir", "content": ["images"], "options": {"path": "/mnt/scratch"}});
    let made = world.confirmed("pve_storage_set", ask).await.unwrap();
    assert_eq!(
        (&made["did"], &made["category"]),
        (&"created".into(), &"STORAGE_DEFINITIONS".into())
    );
    assert_eq!(made["after"]["type"], "dir", "{made}");
    let same = json!({"storage": "scratch", "type": "dir", "options": {"path": "/mnt/scratch"}});
    assert_eq!(world.call("pve_storage_set", same).await.unwrap()["status"], "no_change");
    let set = json!({"storage": "scratch", "content": ["images", "backup"], "prune_backups": "keep-all=1"});
    let set = world.confirmed("pve_storage_set", set).await.unwrap();
    assert_eq!(set["did"], "updated", "{set}");
    assert!(world.with_digest(), "an update carries the digest");
    let gone = world.confirmed("pve_storage_delete", json!({"storage": "scratch"})).await.unwrap();
    assert_eq!(gone["after"], json!({"exists": false}), "{gone}");
}

#[tokio::test]
async fn notes_and_protection_of_a_backup() {
    let world = World::new().await;
    let backup = world.sim.with_state(|s| {
        s.volumes
            .iter()
            .find(|v| v.storage == "nfs-backup" && v.content == "backup")
            .unwrap()
            .volid()
    });
    let done = world
        .call(
            "pve_volume_update",
            json!({"volid": backup, "notes": "Grüße\nzweite Zeile", "protected": true}),
        )
        .await
        .unwrap();
    assert_eq!(done["after"]["notes"], "Grüße\nzweite Zeile", "{done}");
    assert_eq!(done["after"]["protected"], true);
    let same = world.call("pve_volume_update", json!({"volid": backup, "protected": true}));
    assert_eq!(same.await.unwrap()["status"], "no_change");
}

#[tokio::test]
async fn flags_and_lists_hold_for_these_tools_too() {
    let world = World::with(|c| c.flags = proxmox_mcp::safety::Flags::default()).await;
    for (tool, arguments, code) in [
        ("pve_storage_delete", json!({"storage": "nfs-images", "dry_run": true}), "flag_disabled"),
        (
            "pve_volume_delete",
            json!({"volid": "nfs-images:iso/virtio-win-0.1.271.iso"}),
            "flag_disabled",
        ),
    ] {
        let error = world.call(tool, arguments).await.unwrap_err();
        assert_eq!(error.code.as_str(), code, "{tool}: {error}");
        assert!(error.details.contains_key("flag"), "{error:?}");
    }
    assert!(world.sent().is_empty());
}

#[tokio::test]
async fn an_upload_is_streamed_whole_with_length_and_checksum() {
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().to_owned();
    // Larger than a call that is no upload may be, and no multiple of a chunk.
    let content: Vec<u8> = (0..700_001_u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(up.join("own.iso"), &content).unwrap();
    let world = World::with(move |c| c.upload_dir = Some(up)).await;
    let ask = json!({"file": "own.iso", "storage": "nfs-images", "content": "iso"});
    let mut dry = ask.clone();
    dry["dry_run"] = json!(true);
    let shown = world.call("pve_upload", dry).await.unwrap();
    assert_eq!(
        (&shown["status"], &shown["bytes"]),
        (&"dry_run".into(), &700_001.into()),
        "{shown}"
    );
    assert!(world.sent().is_empty());

    let done = world.call("pve_upload", ask.clone()).await.unwrap();
    assert_eq!((&done["status"], &done["class"]), (&"done".into(), &"WRITE".into()), "{done}");
    assert_eq!(done["before"], json!({"exists": false}));
    assert_eq!(
        (&done["after"]["volid"], &done["after"]["size_bytes"]),
        (&"nfs-images:iso/own.iso".into(), &700_001.into())
    );
    let seen = world.sim.requests().into_iter().find(|r| r.method == "POST").unwrap();
    let length: usize = seen.header("content-length").unwrap().parse().unwrap();
    assert_eq!(length, seen.body.len());
    assert!(seen.header("transfer-encoding").is_none());
    assert!(seen.body.windows(content.len()).any(|w| w == content), "every byte arrived");
    assert_eq!(seen.param("checksum").as_deref(), done["sha256"].as_str());
    assert_eq!(seen.param("checksum-algorithm").as_deref(), Some("sha256"));

    // The same name again would overwrite what is there.
    let again = world.call("pve_upload", ask).await.unwrap();
    assert_eq!(again["class"], "DESTRUCTIVE", "{again}");
}

#[tokio::test]
async fn uploads_that_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    std::fs::create_dir(&up).unwrap();
    std::fs::write(folder.path().join("secret.iso"), "x").unwrap();
    std::fs::write(up.join("own.iso"), "x").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path().join("secret.iso"), up.join("link.iso")).unwrap();
    let secret = folder.path().join("secret.iso");
    let world = World::with(move |c| c.upload_dir = Some(up)).await;
    let ask = |file: &str| json!({"file": file, "storage": "nfs-images", "content": "iso"});
    all_bad(
        &world,
        &[
            ("pve_upload", ask("../secret.iso"), "upload_refused", "no file below"),
            ("pve_upload", ask("link.iso"), "upload_refused", "link"),
            ("pve_upload", ask(secret.to_str().unwrap()), "upload_refused", "no file below"),
            ("pve_upload", ask("nope.iso"), "upload_refused", "there is no file"),
            ("pve_upload", json!({"file": "own.iso", "storage": "nfs-images", "content": "vztmpl"}), "invalid_argument", "endings"),
            ("pve_upload", json!({"file": "own.iso", "filename": "a/b.iso", "storage": "nfs-images", "content": "iso"}), "invalid_argument", "file name"),
            ("pve_upload", json!({"file": "own.iso", "storage": "pbs-main", "content": "iso"}), "invalid_argument", "does not hold iso"),
            ("pve_upload", json!({"file": "own.iso", "storage": "nfs-images", "content": "iso", "checksum": "0".repeat(64)}), "upload_refused", "checksum"),
        ],
    )
    .await;
    let without = World::new().await;
    all_bad(&without, &[("pve_upload", ask("own.iso"), "upload_refused", "PROXMOX_UPLOAD_DIR")])
        .await;
}
