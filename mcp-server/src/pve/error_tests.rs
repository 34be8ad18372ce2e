//! What real answers mean.

use serde_json::{Value, json};

use super::*;

fn host() -> HostPort {
    HostPort { host: "pve1".into(), port: 8006 }
}

fn call<'a>(host: &'a HostPort, method: Method, path: &'a str) -> Call<'a> {
    Call { method, path, host, token_id: "mcp@pve!full" }
}

fn reply(status: u16, reason: &str, body: Value) -> Reply {
    let content_type = "application/json;charset=UTF-8".to_owned();
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Reply { status, reason: reason.to_owned(), content_type, location: None, body }
}

/// The usual refusal: the message in the body, its first line as the reason.
fn said(status: u16, text: &str) -> Reply {
    reply(status, text, json!({"data": null, "message": format!("{text}\n")}))
}

fn of(method: Method, path: &str, reply: &Reply) -> Error {
    of_reply(call(&host(), method, path), reply)
}

#[test]
fn phrases_of_the_real_api() {
    use Code::*;
    let cases = [
        ("VM is locked (backup)", Locked),
        ("CT is locked (snapshot-delete)", Locked),
        ("can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout", Locked),
        ("can't remove VM 100 - protection mode enabled", Protected),
        ("can't remove CT 210 - protection mode enabled", Protected),
        ("checksum mismatch (file change by other user?)", DigestChanged),
        ("detected modified configuration - file changed by other user? Try again.", DigestChanged),
        ("unable to create VM 100 - VM 100 already exists on node 'pve'", Conflict),
        ("unable to create VM 110: config file already exists", Conflict),
        ("CT 200 already exists on node 'pve'", Conflict),
        ("create storage failed: storage ID 'st2' already defined", Conflict),
        ("CT 210 already running", Conflict),
        ("CT 210 not running", Conflict),
        ("VM 101 not running", Conflict),
        ("VM 100 is running - destroy failed", Conflict),
        ("unable to destroy CT 200 - container is running", Conflict),
        ("delete pool failed: pool 'p1' is not empty (contains VM 100)", Conflict),
        ("cluster not ready - no quorum?", Conflict),
        ("Configuration file 'nodes/pve/qemu-server/999.conf' does not exist", NotFound),
        ("storage 'nope' does not exist", NotFound),
        ("no such user ('nope@pve')", NotFound),
        ("no such cluster node 'other'", NotFound),
        ("no such IPSet 'set1'", NotFound),
        ("no rule at position 99", NotFound),
        ("resource 'vm:999' does not exist in cluster", NotFound),
        (
            "hostname lookup 'nope' failed - failed to get address info for: nope: Name or service not known",
            NotFound,
        ),
        ("Only root may use this option.", Forbidden),
        ("only root can set 'lock' config", Forbidden),
        ("No QEMU guest agent configured", AgentUnavailable),
        ("QEMU guest agent is not running", AgentUnavailable),
        ("VM 103 qga command 'guest-exec' failed - got timeout", AgentUnavailable),
        ("cannot index groups: ha groups have been migrated to rules", ApiError),
        ("storage 'st2' is disabled", ApiError),
        ("binary not installed: /usr/bin/ceph-mon", ApiError),
        ("no options specified", ApiError),
    ];
    for (text, code) in cases {
        let error = of(Method::Put, "/nodes/pve/qemu/100/config", &said(500, text));
        assert_eq!(error.code, code, "{text}");
        assert_eq!(error.message, text);
        assert_eq!(error.details["http_status"], 500);
        // The same when a proxy dropped the reason, or the body.
        let body = json!({"data": null, "message": text});
        let no_reason = reply(500, "Internal Server Error", body);
        assert_eq!(of(Method::Put, "/x", &no_reason).message, text);
        let no_body = reply(500, text, Value::Null);
        assert_eq!(of(Method::Put, "/x", &no_body).message, text);
    }
    let agent = "/nodes/pve/qemu/101/agent/ping";
    let error = of(Method::Post, agent, &said(500, "VM 101 is not running"));
    assert_eq!(error.code, AgentUnavailable);
}

#[test]
fn details_say_what_it_was_about() {
    let error = of(Method::Put, "/x", &said(500, "VM is locked (backup)"));
    assert_eq!(error.details["lock"], "backup");
    let text = "Configuration file 'nodes/pve2/lxc/999.conf' does not exist";
    let error = of(Method::Get, "/x", &said(500, text));
    assert_eq!((&error.details["node"], &error.details["vmid"]), (&json!("pve2"), &json!(999)));
}

#[test]
fn a_missing_privilege_is_named_with_a_role_that_has_it() {
    let cases = [
        ("(/vms/999, VM.Audit)", "/vms/999", "VM.Audit", "PVEAuditor"),
        ("(/vms/100, VM.PowerMgmt)", "/vms/100", "VM.PowerMgmt", "PVEVMUser"),
        ("(/vms/100, VM.Config.Memory)", "/vms/100", "VM.Config.Memory", "PVEVMAdmin"),
        ("(/nodes/pve, Sys.Modify)", "/nodes/pve", "Sys.Modify", "Administrator"),
        ("(/nodes/pve, Sys.Syslog)", "/nodes/pve", "Sys.Syslog", "PVESysAdmin"),
        ("(, Sys.Audit)", "/", "Sys.Audit", "PVEAuditor"),
        (
            "(/storage/local, Datastore.Audit|Datastore.AllocateSpace)",
            "/storage/local",
            "Datastore.Audit|Datastore.AllocateSpace",
            "PVEAuditor",
        ),
    ];
    for (text, path, privilege, role) in cases {
        let text = format!("Permission check failed {text}");
        let error = of(Method::Get, "/x", &said(403, &text));
        assert_eq!(error.code, Code::Forbidden, "{text}");
        assert_eq!(error.details["path"], path);
        assert_eq!(error.details["privilege"], privilege);
        assert_eq!(error.details["role"], role);
        assert!(error.hint.contains(role) && error.message.contains(privilege), "{error}");
        assert_eq!(error.hint.contains("does not exist"), path.starts_with("/vms/"), "{error}");
    }
    for text in [
        "Permission check failed (user != root@pam)",
        "Permission check failed (URI '/access/password' not available with API token, need proper ticket.\n)",
    ] {
        let error = of(Method::Get, "/x", &said(403, text));
        assert_eq!(error.code, Code::Forbidden);
        assert!(error.hint.contains("no API token can do it"), "{error}");
    }
    assert_eq!(of(Method::Post, "/x", &said(403, "Permission check failed")).code, Code::Forbidden);
}

#[test]
fn field_errors_name_the_fields() {
    let errors =
        json!({"net0": "invalid format - bridge: missing\n", "cores": "type check failed"});
    let body =
        json!({"message": "Parameter verification failed.\n", "errors": errors, "data": null});
    let error = of(Method::Put, "/x", &reply(400, "Parameter verification failed.", body));
    assert_eq!(error.code, Code::InvalidArgument);
    assert!(error.message.contains("net0: invalid format - bridge: missing"), "{error}");
    assert_eq!(error.details["errors"]["cores"], "type check failed");

    let text = "400 Parameter verification failed.\nid: No such job 'job1'";
    let error = of(Method::Delete, "/cluster/backup/job1", &said(500, text));
    assert_eq!(error.code, Code::NotFound, "{error}");
    assert_eq!(error.details["errors"]["id"], "No such job 'job1'");
    assert!(error.message.starts_with("Parameter verification failed."), "{error}");
}

#[test]
fn a_token_that_is_not_accepted() {
    let cases = [
        ("Authentication failed!", "did not accept token mcp@pve!full"),
        ("No ticket", "did not accept token mcp@pve!full"),
        ("no such token 'full' for user 'mcp@pve'", "knows no token mcp@pve!full"),
        ("no such user ('mcp@pve')", "knows no token mcp@pve!full"),
        ("invalid token value!", "secret of token mcp@pve!full is wrong"),
        ("token 'full' access expired", "has expired"),
        ("user 'mcp@pve' is disabled", "disabled"),
    ];
    for (reason, wanted) in cases {
        let error = of(Method::Get, "/version", &reply(401, reason, Value::Null));
        assert_eq!(error.code, Code::Unauthorized);
        assert!(error.message.contains(wanted), "{reason}: {error}");
        assert!(!error.hint.is_empty());
    }
}

#[test]
fn what_stands_between_two_nodes() {
    let content = "/nodes/pve2/storage/nas1/content";
    let cases = [
        (595, "No route to host", "/nodes/pve2/status", "down or cut off"),
        (595, "Connection refused", "/nodes/pve2/status", "down or cut off"),
        (
            596,
            "error:0A000086:SSL routines::certificate verify failed",
            "/nodes/PVE2/status",
            "not ours",
        ),
        (596, "Connection timed out", "/nodes/pve2/qemu/100/agent/info", "30 s"),
        (596, "Connection timed out", content, "`content` or `vmid`"),
        (596, "Broken pipe", "/nodes/pve2/qemu/100/agent/exec", "may have been done"),
    ];
    for (status, reason, path, hint) in cases {
        let error = of(Method::Get, path, &reply(status, reason, Value::Null));
        assert_eq!(error.code, Code::ProxyFailed);
        assert!(error.hint.contains(hint), "{error}");
        assert!(error.message.to_lowercase().contains("node pve2"), "{error}");
    }
    let error = of(Method::Get, content, &reply(596, "Connection timed out", Value::Null));
    assert!(error.hint.contains("nas1"), "{error}");
    let here = of(Method::Get, "/cluster/tasks", &reply(596, "Broken pipe", Value::Null));
    assert!(here.message.contains("another node"), "{here}");
}

#[test]
fn web_pages_are_not_quoted() {
    let page = Reply {
        status: 403,
        reason: "Forbidden".into(),
        content_type: "text/html".into(),
        location: None,
        body: b"<html>Authorization: PVEAPIToken=leaked</html>".to_vec(),
    };
    for status in [400, 403, 404, 500] {
        let error = of(Method::Get, "/version", &Reply { status, ..page.clone() });
        assert_eq!(error.code, Code::BadAnswer, "{status}");
        assert!(!error.to_json().to_string().contains("leaked"));
        assert!(error.hint.contains("proxy"), "{error}");
    }
}

#[test]
fn texts_from_the_network_are_one_short_clean_line() {
    let cases = [
        ("two\nlines", "two"),
        ("  blanks \n", "blanks"),
        ("bell\u{7} and \u{1b}[31mred\u{1b}[0m", "bell and [31mred[0m"),
        (
            "Wide character in subroutine entry at /usr/share/perl5/PVE/API2/Qemu/Agent.pm line 624.",
            "Wide character in subroutine entry",
        ),
        ("", ""),
    ];
    for (text, wanted) in cases {
        assert_eq!(clean(text), wanted);
    }
    let long = clean(&"ü".repeat(5000));
    assert!(long.chars().count() <= MAX_TEXT + 1 && long.ends_with('…'));
}

#[test]
fn the_size_limit_of_a_call() {
    let error = of(Method::Post, "/x", &reply(501, "for data too large", Value::Null));
    assert_eq!(error.code, Code::InvalidArgument);
    let error = of(Method::Get, "/foo", &said(501, "Method 'GET /foo' not implemented"));
    assert_eq!(error.code, Code::NotFound);
    assert!(
        error.message.contains("GET /foo") && error.hint.contains("pve_api_explore"),
        "{error}"
    );
}

/// Every failure that was recorded from the real API gets a code, a text and
/// never an `internal`; what is a refusal there is no `outcome_unknown` here.
#[test]
fn every_recorded_failure_is_understood() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/recordings");
    let folder = std::env::var("PVE_RECORDINGS").unwrap_or_else(|_| folder.to_owned());
    let Ok(files) = std::fs::read_dir(&folder) else {
        println!("skipped: no {folder}");
        return;
    };
    let mut failures = 0;
    for file in
        files.map(|f| f.unwrap().path()).filter(|f| f.extension().is_some_and(|e| e == "jsonl"))
    {
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let status = row["status"].as_u64().unwrap_or(0);
            let path = row["path"].as_str().unwrap_or_default();
            let Some(path) = path.strip_prefix("/api2/json/").filter(|_| status >= 400) else {
                continue;
            };
            let reason = row["reason"].as_str().unwrap_or_default();
            let answer = reply(u16::try_from(status).unwrap(), reason, row["body"].clone());
            let error = of(Method::Get, &format!("/{path}"), &answer);
            failures += 1;
            let allowed = match status {
                401 => matches!(error.code, Code::Unauthorized),
                403 => matches!(error.code, Code::Forbidden),
                400 => matches!(error.code, Code::InvalidArgument),
                501 => matches!(error.code, Code::NotFound | Code::InvalidArgument),
                596 => matches!(error.code, Code::ProxyFailed),
                _ => !matches!(error.code, Code::Internal | Code::BadAnswer),
            };
            assert!(allowed && !error.message.is_empty(), "{}: {line}", error);
            assert!(!error.message.contains("/usr/share/perl5") && !error.message.contains('\n'));
        }
    }
    assert!(failures > 100, "{failures} failures were recorded");
}
