//! The token's secret is planted wherever an answer could carry it, and then
//! looked for in everything that comes out.

use std::path::Path;

use e2e::{Estate, Server, call_least, listed};
use pve_sim::{Effect, Fault};
use serde_json::json;

/// Every file below a folder but the configuration that we wrote ourselves.
fn written(dir: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(dir).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            written(&path, found);
        } else if path.file_name().is_none_or(|n| n != ".env") {
            let bytes = std::fs::read(&path).expect("a file");
            found.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
}

#[test]
fn an_echoed_authorization_header_reaches_nobody() {
    let estate = Estate::sample();
    let secret = estate.secret().to_owned();
    assert!(secret.len() > 20, "there is something to look for");
    let (id, _) = estate.sim().token("admin").expect("a token");
    let echo = format!("bad header Authorization: PVEAPIToken={id}={secret}");
    for (what, effect) in [
        ("an error body", Effect::Error(500, echo.clone())),
        ("a reason phrase", Effect::Status(500, echo.clone())),
        ("a refusal", Effect::Status(401, echo.clone())),
        ("a lack of rights", Effect::Error(403, echo.clone())),
        ("a failed proxy", Effect::Status(596, echo)),
    ] {
        estate.sim().clear_faults();
        estate.sim().inject(Fault::new(effect).always());
        estate.configure(&[("PROXMOX_AUDIT_READS", "on"), ("PROXMOX_MAX_RETRIES", "0")]);
        let mut command = estate.command();
        command.arg("serve").env("LOG_LEVEL", "trace");
        let mut server = Server::open(&mut command);
        let tools = listed(&mut server);
        for tool in &tools {
            call_least(&estate, &mut server, tool);
        }
        server.call(
            "pve_api_call",
            json!({ "method": "GET", "path": "/version", "params": { "x": secret } }),
        );
        server.call("pve_list_vms", json!({ "name": secret }));
        server.finish();
        let output = server.output();
        assert!(output.len() > 1000, "something came out");
        for (place, text) in [("standard output", output), ("standard error", server.stderr())] {
            if let Some(at) = text.find(&secret) {
                let start = text[..at].char_indices().rev().nth(200).map_or(0, |(i, _)| i);
                panic!("{what}: the secret is on {place}: …{}", &text[start..at]);
            }
        }
        let mut files = Vec::new();
        written(estate.home(), &mut files);
        for (path, text) in files {
            assert!(!text.contains(&secret), "{what}: the secret is in {path}");
        }
    }
}
