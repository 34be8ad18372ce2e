//! Each way to trust a node, right and wrong.

use std::time::Duration;

use crate::{
    Code, Error,
    config::{Config, HostPort, Pin, Tls},
    pve::{
        ApiPath, Client, Params,
        testing::{Identity, Node, closed_port, data},
        tls::fetch_fingerprint,
    },
};

async fn node() -> Node {
    Node::start(|_| data(1.into())).await
}

async fn try_with(node: &Node, tls: Tls) -> Result<(), Error> {
    try_config(Config { tls, max_retries: 0, ..node.config() }).await
}

async fn try_config(config: Config) -> Result<(), Error> {
    let path = ApiPath::parse("/version").unwrap();
    Client::new(&config).unwrap().get(&path, &Params::new()).await.map(|_| ())
}

fn pin(host: Option<&str>, sha256: [u8; 32]) -> Pin {
    Pin { host: host.map(str::to_owned), sha256 }
}

fn pins(fingerprints: Vec<Pin>) -> Tls {
    Tls { fingerprints, ..Tls::default() }
}

#[tokio::test]
async fn pins_decide_alone() {
    let node = node().await;
    let right = node.identity.sha256();
    let wrong = [7; 32];
    let cases = [
        (vec![pin(None, right)], true),
        (vec![pin(None, wrong)], false),
        (vec![pin(None, wrong), pin(None, right)], true),
        (vec![pin(Some("127.0.0.1"), right)], true),
        (vec![pin(Some("127.0.0.2"), right)], false),
        (vec![pin(Some("127.0.0.2"), right), pin(None, right)], true),
        (vec![pin(Some("127.0.0.2"), right), pin(Some("127.0.0.1"), wrong)], false),
    ];
    for (list, good) in cases {
        let result = try_with(&node, pins(list.clone())).await;
        assert_eq!(result.is_ok(), good, "{list:?}: {result:?}");
    }
    let error = try_with(&node, pins(vec![pin(None, wrong)])).await.unwrap_err();
    assert_eq!(error.code, Code::TlsPinMismatch);
    assert!(error.message.contains(&Pin::fingerprint(&right)), "{error}");
    assert!(error.message.contains(&Pin::fingerprint(&wrong)), "{error}");
    assert!(error.hint.contains("proxmox-mcp fingerprint"), "{error}");
    assert_eq!(error.details["seen"], Pin::fingerprint(&right));
    assert_eq!(error.details["expected"][0], Pin::fingerprint(&wrong));
    assert!(node.seen().iter().all(|s| s.header("authorization").is_some()));
}

#[tokio::test]
async fn a_wrong_pin_is_not_outvoted_by_ca_file_or_insecure() {
    let node = node().await;
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, &node.identity.pem).unwrap();
    let tls = Tls { fingerprints: vec![pin(None, [7; 32])], ca_file: Some(ca), insecure: true };
    assert_eq!(try_with(&node, tls).await.unwrap_err().code, Code::TlsPinMismatch);
    assert!(node.seen().is_empty(), "nothing may be sent to an unknown node");
}

#[tokio::test]
async fn with_a_pin_neither_name_nor_expiry_matter() {
    let identity = Identity::made(&["elsewhere.example.org"], |params| {
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
    });
    let sha256 = identity.sha256();
    let node = Node::start_as(identity, |_| data(1.into())).await;
    try_with(&node, pins(vec![pin(None, sha256)])).await.unwrap();
}

#[tokio::test]
async fn a_copied_certificate_without_its_key_is_found_out_in_every_mode() {
    let real = node().await;
    let thief = Node::start_as(real.identity.stolen(), |_| data(1.into())).await;
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, &real.identity.pem).unwrap();
    let cases = [
        (pins(vec![pin(None, real.identity.sha256())]), Code::TlsPinMismatch),
        (Tls { ca_file: Some(ca), ..Tls::default() }, Code::TlsUntrusted),
        (Tls { insecure: true, ..Tls::default() }, Code::TlsUntrusted),
    ];
    for (tls, code) in cases {
        try_with(&real, tls.clone()).await.unwrap();
        let error = try_with(&thief, tls).await.unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains("does not own its key"), "{error}");
    }
    assert!(thief.seen().is_empty(), "nothing may be sent to the thief");
}

#[tokio::test]
async fn a_ca_file_vouches_for_its_own_and_for_the_right_name() {
    let folder = tempfile::tempdir().unwrap();
    let with = |pem: &str| {
        let file = folder.path().join(format!("{}.pem", pem.len()));
        std::fs::write(&file, pem).unwrap();
        Tls { ca_file: Some(file), ..Tls::default() }
    };
    let good = node().await;
    try_with(&good, with(&good.identity.pem)).await.unwrap();

    let other =
        Identity::new(&["127.0.0.1", "a-much-longer-name-that-makes-another-file.example.org"]);
    let error = try_with(&good, with(&other.pem)).await.unwrap_err();
    assert_eq!(error.code, Code::TlsUntrusted);
    assert!(error.message.contains(&Pin::fingerprint(&good.identity.sha256())), "{error}");

    let named = Identity::new(&["pve1.example.org"]);
    let elsewhere = Node::start_as(named, |_| data(1.into())).await;
    let error = try_with(&elsewhere, with(&elsewhere.identity.pem)).await.unwrap_err();
    assert_eq!(
        (error.code, error.message.contains("another host name")),
        (Code::TlsUntrusted, true)
    );

    let old = Identity::made(&["127.0.0.1"], |p| p.not_after = rcgen::date_time_ymd(2001, 1, 1));
    let old = Node::start_as(old, |_| data(1.into())).await;
    let error = try_with(&old, with(&old.identity.pem)).await.unwrap_err();
    assert_eq!((error.code, error.message.contains("expired")), (Code::TlsUntrusted, true));
}

#[tokio::test]
async fn a_ca_file_that_is_none_is_told_at_the_first_call() {
    let node = node().await;
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "not a certificate").unwrap();
    let broken = folder.path().join("broken.pem");
    std::fs::write(&broken, "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n")
        .unwrap();
    for file in [empty, broken, folder.path().join("absent.pem")] {
        let tls = Tls { ca_file: Some(file.clone()), ..Tls::default() };
        let error = try_with(&node, tls).await.unwrap_err();
        assert_eq!(error.code, Code::Config, "{error}");
        assert!(error.message.contains(&file.display().to_string()), "{error}");
    }
}

#[tokio::test]
async fn the_system_store_does_not_vouch_for_a_self_signed_node_and_insecure_needs_nothing() {
    let node = node().await;
    let error = try_with(&node, Tls::default()).await.unwrap_err();
    // A system without any CA says so instead.
    assert!(matches!(error.code, Code::TlsUntrusted | Code::Config), "{error}");
    assert!(error.hint.contains("proxmox-mcp fingerprint"), "{error}");
    try_with(&node, Tls { insecure: true, ..Tls::default() }).await.unwrap();
}

#[tokio::test]
async fn an_ipv6_host_is_reached_and_its_pin_found() {
    let Ok(listener) = tokio::net::TcpListener::bind("[::1]:0").await else {
        println!("skipped: no IPv6 loopback");
        return;
    };
    let node = Node::listen(listener, Identity::new(&["::1"]), |_| data(1.into()));
    assert_eq!(node.host.host, "::1");
    for host in ["::1", "[::1]", "0:0:0:0:0:0:0:1"] {
        try_with(&node, pins(vec![pin(Some(host), node.identity.sha256())])).await.unwrap();
    }
}

#[tokio::test]
async fn the_fingerprint_is_read_without_a_request() {
    let node = node().await;
    let seen = fetch_fingerprint(&node.host, Duration::from_secs(5)).await.unwrap();
    assert_eq!(seen.sha256, Pin::fingerprint(&node.identity.sha256()));
    assert_eq!(seen.sha256.len(), 95);
    assert!(seen.facts.not_after.is_some() && seen.facts.subject.is_some());
    assert!(node.seen().is_empty());
}

#[tokio::test]
async fn the_fingerprint_of_a_host_that_is_not_one() {
    let limit = Duration::from_millis(300);
    let error = fetch_fingerprint(&closed_port().await, limit).await.unwrap_err();
    assert_eq!(error.code, Code::Unreachable, "{error}");

    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = HostPort { host: "127.0.0.1".into(), port: silent.local_addr().unwrap().port() };
    let error = fetch_fingerprint(&host, limit).await.unwrap_err();
    assert_eq!(error.code, Code::Timeout, "{error}");

    let thief = Node::start_as(node().await.identity.stolen(), |_| data(1.into())).await;
    assert!(fetch_fingerprint(&thief.host, Duration::from_secs(5)).await.is_err());
}
