//! Users, tokens, groups, roles and entries against the simulated estate.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, dead_code)] // helpers of tests count as no tests

mod estate;

use estate::{Estate, cell};
use serde_json::{Value, json};

#[tokio::test]
async fn who_is_there() {
    let e = Estate::new().await;
    let users = e.ok("pve_list_users", json!({})).await;
    assert_eq!(cell(&users, "userid", "jmueller@pve", "groups"), "betrieb");
    assert_eq!(cell(&users, "userid", "mcp@pve", "tokens"), 1);
    let some = e.ok("pve_list_users", json!({"group": "betrieb"})).await;
    assert_eq!(some["total"], 1);
    let tokens = e.ok("pve_list_tokens", json!({})).await;
    assert_eq!(cell(&tokens, "token", "mcp@pve!full", "privsep"), false);
    assert_eq!(e.refused("pve_list_tokens", json!({"userid": "nope@pve"})).await.0, "not_found");
    let groups = e.ok("pve_list_groups", json!({})).await;
    assert_eq!(cell(&groups, "group", "betrieb", "users"), "jmueller@pve");
    let role = e.ok("pve_list_roles", json!({"role": "PVEVMUser"})).await;
    assert!(role["privileges"].as_array().unwrap().contains(&json!("VM.PowerMgmt")), "{role}");
    assert!(e.refused("pve_list_roles", json!({"role": "PVEVMUsr"})).await.1.contains("PVEVMUser"));
    let acl = e.ok("pve_list_acl", json!({"path": "/pool/entwicklung"})).await;
    assert_eq!(cell(&acl, "who", "aweiss@pve", "role"), "PVEVMUser");
    assert_eq!(cell(&acl, "who", "betrieb", "path"), "/", "what stands above holds here too");
    let elsewhere = e.ok("pve_list_acl", json!({"path": "/storage/local"})).await;
    assert!(!elsewhere.to_string().contains("aweiss"), "{elsewhere}");
    let realms = e.ok("pve_list_realms", json!({})).await;
    assert_eq!(cell(&realms, "realm", "pam", "type"), "pam");
}

#[tokio::test]
async fn why_someone_may_not_and_what_would_do() {
    let e = Estate::new().await;
    let may = e.ok("pve_permissions", json!({"userid": "aweiss@pve", "path": "/pool/entwicklung", "privileges": ["VM.PowerMgmt"]})).await;
    assert_eq!(may["allowed"], true, "{may}");
    let not = e.ok("pve_permissions", json!({"userid": "aweiss@pve", "path": "/storage/local", "privileges": ["Datastore.AllocateSpace"]})).await;
    assert_eq!(not["allowed"], false);
    assert!(not["because"].to_string().contains("no entry on /storage/local"), "{not}");
    let roles = &not["roles_that_would_do"][0]["roles"];
    assert_eq!(roles[0], "PVEDatastoreUser", "the smallest first: {roles}");
    assert!(not["how"].as_str().unwrap().contains("users=aweiss@pve"));
    let own = e.ok("pve_permissions", json!({})).await;
    assert!(own["held"].to_string().contains("Sys.Modify"), "{own}");
    // The same question by the API's own words.
    let call = e
        .ok(
            "pve_permissions",
            json!({"userid": "aweiss@pve", "call": "POST /nodes/pve1/qemu/100/status/start"}),
        )
        .await;
    assert_eq!(
        (&call["allowed"], &call["checks"][0]["path"]),
        (&json!(false), &json!("/vms/100")),
        "{call}"
    );
    assert_eq!(call["checks"][0]["lacks"], json!(["VM.PowerMgmt"]));
    let role = e
        .ok(
            "pve_permissions",
            json!({"role": "PVEAuditor", "privileges": ["VM.Audit", "VM.Backup"]}),
        )
        .await;
    assert_eq!((&role["enough"], &role["lacks"]), (&json!(false), &json!(["VM.Backup"])), "{role}");
    for (arguments, code, words) in [
        (
            json!({"userid": "aweiss@pve", "path": "/vms", "privileges": ["VM.PowerMgm"]}),
            "invalid_argument",
            "VM.PowerMgmt",
        ),
        (json!({"userid": "aweiss@pve", "privileges": ["VM.Audit"]}), "invalid_argument", "path"),
        (json!({"userid": "aweiss"}), "not_found", "realm"),
        (json!({"userid": "nope@pve"}), "not_found", "nope@pve"),
        (json!({"call": "start 100"}), "invalid_argument", "start"),
        (json!({"role": "PVEAuditor", "userid": "aweiss@pve"}), "invalid_argument", "only one"),
        (json!({"path": "vms"}), "invalid_argument", "path"),
    ] {
        let (found, text) = e.refused("pve_permissions", arguments.clone()).await;
        assert_eq!(found, code, "{arguments}: {text}");
        assert!(text.contains(words), "{arguments}: {text}");
    }
}

#[tokio::test]
async fn privilege_separation_is_explained_where_it_bites() {
    let e = Estate::new().await;
    e.change("pve_token_set", json!({"userid": "jmueller@pve", "token": "ci"})).await;
    let not = e
        .ok(
            "pve_permissions",
            json!({"userid": "jmueller@pve!ci", "path": "/vms/100", "privileges": ["VM.Audit"]}),
        )
        .await;
    assert_eq!(not["allowed"], false);
    assert!(not["because"].to_string().contains("privilege separation"), "{not}");
    assert!(not["how"].as_str().unwrap().contains("tokens=jmueller@pve!ci"));
    e.change(
        "pve_acl_set",
        json!({"path": "/vms", "roles": ["PVEAuditor"], "tokens": ["jmueller@pve!ci"]}),
    )
    .await;
    let may = e
        .ok(
            "pve_permissions",
            json!({"userid": "jmueller@pve!ci", "path": "/vms/100", "privileges": ["VM.Audit"]}),
        )
        .await;
    assert_eq!(may["allowed"], true, "{may}");
}

#[tokio::test]
async fn a_secret_goes_into_a_file_and_nowhere_else() {
    let e = Estate::new().await;
    let dry = e
        .ok("pve_token_set", json!({"userid": "aweiss@pve", "token": "ci", "dry_run": true}))
        .await;
    assert_eq!(dry["status"], "dry_run");
    let files = || std::fs::read_dir(e.dir.path().join("config")).map_or(0, Iterator::count);
    assert_eq!(files(), 0, "a dry run leaves no file");
    let (code, _) =
        e.refused("pve_token_set", json!({"userid": "aweiss@pve", "token": "ci"})).await;
    assert_eq!((code.as_str(), files()), ("confirm_required", 0), "and neither does a refusal");
    let made = e.change("pve_token_set", json!({"userid": "aweiss@pve", "token": "ci", "comment": "CI", "expires": "2033-05-18"})).await;
    assert_eq!(
        (&made["did"], &made["after"]["privsep"]),
        (&json!("created"), &json!(true)),
        "{made}"
    );
    assert!(made["note"].as_str().unwrap().contains("privilege separation"));
    let path = made["secret_file"].as_str().unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let secret = text.lines().find_map(|l| l.strip_prefix("PROXMOX_TOKEN_SECRET=")).unwrap();
    assert!(text.contains("PROXMOX_TOKEN_ID=aweiss@pve!ci\n"));
    assert_eq!(secret.len(), 36);
    assert!(!made.to_string().contains(secret), "{made}");
    let log = e.ok("pve_audit_log", json!({})).await;
    assert!(!log.to_string().contains(secret));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let same = e
        .ok("pve_token_set", json!({"userid": "aweiss@pve", "token": "ci", "comment": "CI"}))
        .await;
    assert_eq!(same["status"], "no_change");
    let changed = e
        .change("pve_token_set", json!({"userid": "aweiss@pve", "token": "ci", "privsep": false}))
        .await;
    assert_eq!(
        (&changed["did"], changed.get("secret_file")),
        (&json!("updated"), None),
        "{changed}"
    );
    let gone = e.change("pve_token_delete", json!({"userid": "aweiss@pve", "token": "ci"})).await;
    assert_eq!(gone["before"]["comment"], "CI");
    for (arguments, code) in [
        (json!({"userid": "aweiss@pve", "token": "1x"}), "invalid_argument"),
        (json!({"userid": "aweiss", "token": "ci"}), "invalid_argument"),
        (json!({"userid": "nope@pve", "token": "ci"}), "not_found"),
        (json!({"userid": "aweiss@pve", "token": "ci", "must_exist": true}), "not_found"),
        (json!({"userid": "aweiss@pve", "token": "ci", "regenerate": true}), "not_found"),
        (json!({"userid": "aweiss@pve", "token": "ci", "expires": "soon"}), "invalid_argument"),
    ] {
        assert_eq!(e.refused("pve_token_set", arguments.clone()).await.0, code, "{arguments}");
    }
}

#[tokio::test]
async fn a_user_with_a_role_on_a_pool_and_all_undone() {
    let e = Estate::new().await;
    let role = e
        .change(
            "pve_role_set",
            json!({"role": "Bediener", "privileges": ["VM.PowerMgmt", "VM.Audit"]}),
        )
        .await;
    assert_eq!(
        (&role["did"], &role["after"]["privileges"]),
        (&json!("created"), &json!(["VM.Audit", "VM.PowerMgmt"])),
        "{role}"
    );
    let more = e
        .change(
            "pve_role_set",
            json!({"role": "Bediener", "privileges": ["VM.Console"], "append": true}),
        )
        .await;
    assert_eq!(more["after"]["privileges"], json!(["VM.Audit", "VM.Console", "VM.PowerMgmt"]));
    let group =
        e.change("pve_group_set", json!({"group": "schicht", "comment": "Schichtdienst"})).await;
    assert_eq!(group["did"], "created");
    let user = e.change("pve_user_set", json!({"userid": "kara@pve", "groups": ["schicht"], "comment": "neu", "expires": "2033-05-18"})).await;
    assert_eq!(
        (&user["did"], &user["after"]["groups"]),
        (&json!("created"), &json!(["schicht"])),
        "{user}"
    );
    let note = user["note"].as_str().unwrap();
    assert!(
        note.contains("password") && !note.contains("***"),
        "nothing of it is a secret: {note}"
    );
    e.sent();
    let changed = e.change("pve_user_set", json!({"userid": "kara@pve", "enable": false})).await;
    assert_eq!(
        (&changed["did"], &changed["after"]["enable"]),
        (&json!("updated"), &json!(0)),
        "{changed}"
    );
    assert_eq!(e.sent(), [json!(["PUT", "/access/users/kara@pve", {"enable": "0"}])]);
    let acl = e
        .change(
            "pve_acl_set",
            json!({"path": "/pool/entwicklung", "roles": ["Bediener"], "groups": ["schicht"]}),
        )
        .await;
    assert_eq!(
        (&acl["did"], &acl["after"][0]["role"]),
        (&json!("set"), &json!("Bediener")),
        "{acl}"
    );
    let same = e
        .ok(
            "pve_acl_set",
            json!({"path": "/pool/entwicklung", "roles": ["Bediener"], "groups": ["schicht"]}),
        )
        .await;
    assert_eq!(same["status"], "no_change");
    let gone = e.change("pve_acl_set", json!({"path": "/pool/entwicklung", "roles": ["Bediener"], "groups": ["schicht"], "delete": true})).await;
    assert_eq!((&gone["did"], &gone["after"]), (&json!("deleted"), &json!([])), "{gone}");
    for (tool, arguments) in [
        ("pve_user_delete", json!({"userid": "kara@pve"})),
        ("pve_group_delete", json!({"group": "schicht"})),
        ("pve_role_delete", json!({"role": "Bediener"})),
    ] {
        assert_eq!(e.change(tool, arguments.clone()).await["status"], "done", "{tool}");
        assert_eq!(e.refused(tool, arguments).await.0, "not_found", "{tool}");
    }
}

#[tokio::test]
async fn nobody_locks_this_server_out() {
    let e = Estate::new().await;
    for (tool, arguments) in [
        ("pve_user_set", json!({"userid": "mcp@pve", "enable": false})),
        ("pve_user_set", json!({"userid": "mcp@pve", "expires": "2026-01-01"})),
        ("pve_user_delete", json!({"userid": "mcp@pve"})),
        ("pve_user_delete", json!({"userid": "root@pam"})),
        ("pve_token_delete", json!({"userid": "mcp@pve", "token": "full"})),
        ("pve_token_set", json!({"userid": "mcp@pve", "token": "full", "regenerate": true})),
        (
            "pve_acl_set",
            json!({"path": "/", "roles": ["Administrator"], "users": ["mcp@pve"], "delete": true}),
        ),
        (
            "pve_acl_set",
            json!({"path": "/vms/100", "roles": ["NoAccess"], "users": ["mcp@pve"], "dry_run": true}),
        ),
    ] {
        assert_eq!(
            e.refused(tool, arguments.clone()).await.0,
            "self_lockout",
            "{tool} {arguments}"
        );
    }
    assert_eq!(e.sent(), Vec::<Value>::new());
}

#[tokio::test]
async fn accounts_that_cannot_be_meant() {
    let e = Estate::new().await;
    for (tool, arguments, code, words) in [
        ("pve_user_set", json!({"userid": "kara"}), "invalid_argument", "realm"),
        ("pve_user_set", json!({"userid": "kara@nope"}), "not_found", "realm"),
        ("pve_user_set", json!({"userid": "kara@pve", "groups": ["nope"]}), "not_found", "nope"),
        (
            "pve_user_set",
            json!({"userid": "aweiss@pve", "comment": "x", "must_not_exist": true}),
            "conflict",
            "exists",
        ),
        (
            "pve_user_set",
            json!({"userid": "aweiss@pve", "append": true}),
            "invalid_argument",
            "append",
        ),
        (
            "pve_role_set",
            json!({"role": "R1", "privileges": ["VM.Monitr"]}),
            "invalid_argument",
            "VM.Monitr",
        ),
        (
            "pve_role_set",
            json!({"role": "PVEAuditor", "privileges": ["VM.Audit"]}),
            "conflict",
            "built in",
        ),
        ("pve_role_delete", json!({"role": "PVEAuditor"}), "conflict", "built in"),
        (
            "pve_acl_set",
            json!({"path": "vms", "roles": ["PVEAuditor"], "users": ["aweiss@pve"]}),
            "invalid_argument",
            "path",
        ),
        (
            "pve_acl_set",
            json!({"path": "/vms", "roles": ["PVEAuditr"], "users": ["aweiss@pve"]}),
            "not_found",
            "PVEAuditor",
        ),
        (
            "pve_acl_set",
            json!({"path": "/vms", "roles": ["PVEAuditor"]}),
            "invalid_argument",
            "users",
        ),
        (
            "pve_acl_set",
            json!({"path": "/vms", "roles": ["PVEAuditor"], "tokens": ["aweiss@pve"]}),
            "invalid_argument",
            "in full",
        ),
        ("pve_group_set", json!({"group": "a b"}), "invalid_argument", "letters"),
    ] {
        let (found, text) = e.refused(tool, arguments.clone()).await;
        assert_eq!(found, code, "{tool} {arguments}: {text}");
        assert!(text.contains(words), "{tool} {arguments}: {text}");
    }
    assert_eq!(e.sent(), Vec::<Value>::new());
}
