//! What goes wrong between the server and Proxmox during a read: each fault gives
//! an error with code and hint within the time-out, and the server goes on.

use std::net::TcpListener;
use std::time::Duration;

use e2e::{Estate, Server};
use pve_sim::{Effect, Fault};
use serde_json::{Value, json};

/// A call that needs nothing else first.
fn version() -> (&'static str, Value) {
    ("pve_api_call", json!({ "method": "GET", "path": "/version" }))
}

#[test]
fn every_fault_is_a_clear_error_and_the_server_goes_on() {
    let estate = Estate::sample();
    estate.configure(&[
        ("PROXMOX_TIMEOUT", "1"),
        ("PROXMOX_MAX_RETRIES", "1"),
        ("PROXMOX_CACHE_TTL", "0"),
    ]);
    let mut server = Server::open(estate.command().arg("serve"));
    let drip = Effect::Drip { chunk: 1, every: Duration::from_millis(400) };
    for (what, effect, codes) in [
        ("no answer", Effect::NeverAnswer { apply: false }, &["timeout"][..]),
        ("a late answer", Effect::Latency(Duration::from_secs(600)), &["timeout"]),
        ("a dripping answer", drip, &["timeout"]),
        (
            "cut before the answer",
            Effect::CutAfterBody { apply: true },
            &["unreachable", "bad_answer"],
        ),
        ("cut in the answer", Effect::CutInAnswer, &["unreachable", "bad_answer"]),
        ("bytes that are not HTTP", Effect::Garbage, &["bad_answer"]),
        ("JSON that ends early", Effect::BrokenJson, &["bad_answer"]),
        ("a web page", Effect::Html(200), &["bad_answer"]),
        ("a proxy's web page", Effect::Html(502), &["bad_answer"]),
        ("a proxy's login page", Effect::Html(403), &["bad_answer", "forbidden"]),
        ("401", Effect::unauthorized(), &["unauthorized"]),
        ("401 for the id", Effect::Status(401, "no such token 'x'".into()), &["unauthorized"]),
        (
            "403",
            Effect::Status(403, "Permission check failed (/, Sys.Audit)".into()),
            &["forbidden"],
        ),
        ("500", Effect::Error(500, "storage 'x' does not exist".into()), &["not_found"]),
        ("500 of another kind", Effect::Error(500, "it went wrong".into()), &["api_error"]),
        ("501", Effect::Status(501, "Method 'GET /x' not implemented".into()), &["not_found"]),
        ("595", Effect::no_route(), &["proxy_failed"]),
        ("596", Effect::broken_pipe(), &["proxy_failed"]),
        ("599", Effect::Status(599, "Too many redirections".into()), &["proxy_failed"]),
        ("503", Effect::Status(503, "Service Unavailable".into()), &["bad_answer"]),
    ] {
        estate.sim().inject(Fault::new(effect).path("/version").always());
        let (tool, arguments) = version();
        let error = server.refused(tool, arguments);
        let code = error["code"].as_str().unwrap_or_default();
        assert!(codes.contains(&code), "{what}: {error}");
        assert!(!error.to_string().contains(estate.secret()), "{what}: {error}");
        estate.sim().clear_faults();
        let (tool, arguments) = version();
        let after = server.ok(tool, arguments);
        assert!(after["data"]["version"].is_string(), "after {what}: {after}");
    }
    server.finish();
}

#[test]
fn a_fault_that_passes_is_not_seen() {
    let estate = Estate::sample();
    estate.configure(&[("PROXMOX_CACHE_TTL", "0")]);
    let mut server = Server::open(estate.command().arg("serve"));
    for (what, effect) in [
        ("a late answer", Effect::Latency(Duration::from_millis(300))),
        ("503", Effect::Status(503, "Service Unavailable".into())),
        ("595", Effect::no_route()),
        ("a cut connection", Effect::CutBeforeBody),
    ] {
        estate.sim().inject(Fault::new(effect).path("/version"));
        let (tool, arguments) = version();
        let answer = server.ok(tool, arguments);
        assert!(answer["data"]["version"].is_string(), "{what}: {answer}");
    }
}

#[test]
fn a_bad_token_is_not_tried_again() {
    let estate = Estate::sample();
    estate.configure(&[("PROXMOX_TOKEN_SECRET", "00000000-0000-4000-8000-000000000000")]);
    let mut server = Server::open(estate.command().arg("serve"));
    let (tool, arguments) = version();
    let error = server.refused(tool, arguments);
    assert_eq!(error["code"], "unauthorized");
    let tries = estate.arrived().into_iter().filter(|line| line.contains("/version")).count();
    assert_eq!(tries, 1, "a 401 is held back for three seconds and must not be repeated");
}

#[test]
fn a_huge_answer_does_not_end_the_server() {
    let estate = Estate::sample();
    estate.configure(&[("PROXMOX_CACHE_TTL", "0")]);
    let mut server = Server::open(estate.command().arg("serve"));
    estate.sim().inject(Fault::new(Effect::Huge(96 << 20)).path("/version").always());
    let (tool, arguments) = version();
    let result = server.call(tool, arguments);
    assert!(
        result.to_string().len() < 200_000,
        "an answer stays small: {}",
        result.to_string().len()
    );
    estate.sim().clear_faults();
    let (tool, arguments) = version();
    server.ok(tool, arguments);
}

#[test]
fn certificates_are_checked() {
    let other = Estate::sample();
    let wrong_pin = other.sim().fingerprint();
    let estate = Estate::sample();
    let ca = estate.home().join("ca.pem");
    std::fs::write(&ca, estate.sim().ca_pem()).expect("CA file");
    let other_ca = estate.home().join("other.pem");
    std::fs::write(&other_ca, other.sim().ca_pem()).expect("CA file");
    let (ca, other_ca) = (ca.display().to_string(), other_ca.display().to_string());
    let none = ("PROXMOX_TLS_FINGERPRINT", "");
    let lower = estate.sim().fingerprint().to_lowercase().replace(':', "");
    let both = format!("{wrong_pin},{}", estate.sim().fingerprint());
    for (what, variables, code) in [
        (
            "the wrong pin",
            vec![("PROXMOX_TLS_FINGERPRINT", wrong_pin.as_str())],
            Some("tls_pin_mismatch"),
        ),
        ("the system store", vec![none], Some("tls_untrusted")),
        (
            "the wrong CA",
            vec![none, ("PROXMOX_TLS_CA_FILE", other_ca.as_str())],
            Some("tls_untrusted"),
        ),
        ("the right CA", vec![none, ("PROXMOX_TLS_CA_FILE", ca.as_str())], None),
        ("a pin in lower case", vec![("PROXMOX_TLS_FINGERPRINT", lower.as_str())], None),
        ("two pins", vec![("PROXMOX_TLS_FINGERPRINT", both.as_str())], None),
        ("no check", vec![none, ("PROXMOX_TLS_INSECURE", "true")], None),
        (
            "a wrong pin beside no check",
            vec![("PROXMOX_TLS_FINGERPRINT", wrong_pin.as_str()), ("PROXMOX_TLS_INSECURE", "true")],
            Some("tls_pin_mismatch"),
        ),
    ] {
        estate.configure(&variables);
        estate.sim().clear_requests();
        let mut server = Server::open(estate.command().arg("serve"));
        let (tool, arguments) = version();
        let Some(code) = code else {
            server.ok(tool, arguments);
            continue;
        };
        let error = server.refused(tool, arguments);
        assert_eq!(error["code"], code, "{what}: {error}");
        assert_eq!(estate.arrived(), Vec::<String>::new(), "{what}: the token was sent");
        if code == "tls_pin_mismatch" {
            // Both are named, so that a renewed certificate can be told from a stranger's.
            let text = error.to_string();
            assert!(text.contains(&estate.sim().fingerprint()), "{what}: {text}");
        }
    }
}

#[test]
fn nobody_there() {
    let estate = Estate::sample();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = listener.local_addr().expect("its address").to_string();
    drop(listener);
    // A port where something answers that is no TLS.
    let plain = TcpListener::bind("127.0.0.1:0").expect("a port");
    let not_tls = plain.local_addr().expect("its address").to_string();
    std::thread::spawn(move || {
        use std::io::Write;
        for stream in plain.incoming().flatten() {
            let _ = (&stream).write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    for (what, host, codes) in [
        ("a closed port", closed.as_str(), &["unreachable"][..]),
        ("a name that does not resolve", "no-such-host.invalid", &["unreachable"]),
        (
            "something that is no TLS",
            not_tls.as_str(),
            &["unreachable", "bad_answer", "tls_untrusted"],
        ),
    ] {
        estate.configure(&[("PROXMOX_HOST", host), ("PROXMOX_TIMEOUT", "5")]);
        let mut server = Server::open(estate.command().arg("serve"));
        assert!(server.request("tools/list", json!({}))["result"].is_object(), "{what}");
        let (tool, arguments) = version();
        let error = server.refused(tool, arguments);
        let code = error["code"].as_str().unwrap_or_default();
        assert!(codes.contains(&code), "{what}: {error}");
        server.finish();
    }
}
