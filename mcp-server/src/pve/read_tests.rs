//! Reads against nodes that answer well, badly, late, or not at all.

use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json as value};

use super::testing::{
    Act, Make, Node, SECRET, Seen, answer, closed_port, config, data, json, nodes,
};
use crate::{
    Code, Error,
    config::{Config, HostPort},
    pve::{ApiPath, Client, Params, Vmid},
};

async fn get(client: &Client, path: &str) -> Result<Arc<Value>, Error> {
    client.get(&ApiPath::parse(path).unwrap(), &Params::new()).await
}

/// A node that does these acts one after the other, then the last one again.
async fn in_turn(acts: Vec<Make>) -> Node {
    let turn = AtomicUsize::new(0);
    Node::start(move |_| {
        let at = turn.fetch_add(1, Ordering::SeqCst);
        acts[at.min(acts.len() - 1)]()
    })
    .await
}

#[tokio::test]
async fn a_read_as_it_goes_over_the_wire() {
    let node = Node::start(|_| data(value!([{"vmid": 100}]))).await;
    let path = ApiPath::parse("/cluster/resources").unwrap();
    let params = Params::new().with("type", "vm").with("x", "a=b; c&d");
    let rows = node.client().get(&path, &params).await.unwrap();
    assert_eq!(*rows, value!([{"vmid": 100}]));
    let seen = &node.seen()[0];
    assert_eq!(seen.method, "GET");
    assert_eq!(seen.target, "/api2/json/cluster/resources?type=vm&x=a%3Db%3B%20c%26d");
    assert_eq!(seen.header("authorization").unwrap(), format!("PVEAPIToken=mcp@pve!full={SECRET}"));
    assert_eq!((seen.body.as_str(), seen.header("transfer-encoding")), ("", None));
    assert_eq!(seen.header("cookie"), None);
}

#[tokio::test]
async fn a_get_that_is_no_plain_read_is_not_sent() {
    let node = Node::start(|_| data(1.into())).await;
    let client = node.client();
    for path in [
        "/nodes/pve1/qemu/100/agent/file-read",
        "/nodes/pve1/qemu/100/agent/exec-status",
        "/nodes/pve1/qemu/100/vncwebsocket",
        "/nodes/pve1/query-url-metadata",
        "/no/such/path",
    ] {
        assert_eq!(get(&client, path).await.unwrap_err().code, Code::Internal, "{path}");
    }
    assert!(node.seen().is_empty(), "{:?}", node.seen());
}

#[tokio::test]
async fn reads_share_one_kept_alive_connection() {
    let node = Node::start(|_| data(1.into())).await;
    let client = node.client();
    for id in 0..10 {
        get(&client, &format!("/pools/p{id}")).await.unwrap();
    }
    assert!(node.seen().iter().all(|s| s.connection == 0));
    assert_eq!(node.seen().len(), 10);
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let cases: Vec<(&str, Make)> = vec![
        ("502", || answer("502 Bad Gateway", "text/html", "<html>nginx</html>")),
        ("503", || answer("503 Service Unavailable", "text/plain", "")),
        ("504", || answer("504 Gateway Timeout", "text/plain", "")),
        ("595", || answer("595 No route to host", "text/plain", "")),
        ("596", || answer("596 Connection reset by peer", "text/plain", "")),
        ("closed before the answer", || Act::WriteAndClose(Vec::new())),
        ("closed within the answer", || {
            Act::WriteAndClose(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"da".to_vec())
        }),
    ];
    // All at once, since each waits between its attempts.
    let cases = cases.into_iter().map(async |(name, act)| {
        let node = in_turn(vec![act, act, || data(1.into())]).await;
        let found = get(&node.client(), "/version").await;
        assert_eq!(found.unwrap_or_else(|e| panic!("{name}: {e}")).as_i64(), Some(1), "{name}");
        assert_eq!(node.seen().len(), 3, "{name}");

        let node = in_turn(vec![act]).await;
        get(&node.client(), "/version").await.unwrap_err();
        assert_eq!(node.seen().len(), 3, "{name}: the first attempt and two more");
    });
    futures::future::join_all(cases).await;
}

#[tokio::test]
async fn what_cannot_pass_is_not_tried_again_and_is_told_apart() {
    let cases: Vec<(Make, Code)> = vec![
        (|| answer("401 Authentication failed!", "text/plain", ""), Code::Unauthorized),
        (
            || {
                json(
                    "403 Permission check failed (/, Sys.Audit)",
                    r#"{"data":null,"message":"Permission check failed (/, Sys.Audit)\n"}"#,
                )
            },
            Code::Forbidden,
        ),
        (|| json("500 oops", r#"{"data":null,"message":"something odd\n"}"#), Code::ApiError),
        (|| json("501 Method 'GET /version' not implemented", "{}"), Code::NotFound),
        (
            || json("400 Parameter verification failed.", r#"{"errors":{"x":"bad"}}"#),
            Code::InvalidArgument,
        ),
        (|| answer("200 OK", "text/html", "<html><body>login</body></html>"), Code::BadAnswer),
        (|| answer("200 OK", "application/json", "{\"data\": "), Code::BadAnswer),
        (|| answer("200 OK", "application/json", "[1]"), Code::BadAnswer),
        (|| answer("200 OK", "application/json", "{\"success\":1}"), Code::BadAnswer),
        (|| answer("404 Not Found", "text/html", "<html>nginx</html>"), Code::BadAnswer),
        (|| Act::WriteAndClose(b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec()), Code::BadAnswer),
        (
            || {
                answer(
                    "596 error:0A000086:SSL routines::certificate verify failed",
                    "text/plain",
                    "",
                )
            },
            Code::ProxyFailed,
        ),
    ];
    for (at, (act, code)) in cases.into_iter().enumerate() {
        let node = in_turn(vec![act]).await;
        let error = get(&node.client(), "/version").await.unwrap_err();
        assert_eq!(error.code, code, "{at}: {error}");
        assert!(!error.hint.is_empty() || code == Code::ApiError, "{at}: {error}");
        assert_eq!(node.seen().len(), 1, "{at}: {error}");
        assert!(!format!("{error} {error:?}").contains(SECRET), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Node::start(|_| data(1.into())).await;
    let to = format!("https://{}/api2/json/version", elsewhere.host);
    let node = Node::start(move |_| {
        Act::Write(
            format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n").into(),
        )
    })
    .await;
    let client =
        Client::new(&Config { hosts: vec![node.host.clone()], ..config(&[&node, &elsewhere]) });
    let error = get(&client.unwrap(), "/version").await.unwrap_err();
    assert_eq!(
        (error.code, error.message.contains("127.0.0.1")),
        (Code::BadAnswer, true),
        "{error}"
    );
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn silence_and_dripping_end_with_the_time_out() {
    for act in [|| Act::Silence, || Act::Drip] as [Make; 2] {
        let node = in_turn(vec![act]).await;
        let config =
            Config { timeout: Duration::from_millis(300), max_retries: 5, ..node.config() };
        let error = get(&Client::new(&config).unwrap(), "/version").await.unwrap_err();
        assert_eq!(error.code, Code::Timeout, "{error}");
        // Twice the time-out is the end, whatever the number of retries.
        assert!(node.seen().len() <= 3, "{}", node.seen().len());
    }
}

#[tokio::test]
async fn a_port_that_takes_connections_and_never_speaks() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let node = Node::start(|_| data(1.into())).await;
    let host = HostPort { host: "127.0.0.1".into(), port: silent.local_addr().unwrap().port() };
    let config = Config { hosts: vec![host], timeout: Duration::from_millis(200), ..node.config() };
    let error = get(&Client::new(&config).unwrap(), "/version").await.unwrap_err();
    assert_eq!(error.code, Code::Timeout, "{error}");
}

#[tokio::test]
async fn a_port_that_speaks_something_else() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = HostPort { host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() };
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            use tokio::io::AsyncWriteExt as _;
            let _ = tcp.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\nplain HTTP here").await;
        }
    });
    let node = Node::start(|_| data(1.into())).await;
    let config = Config { hosts: vec![host], ..node.config() };
    let error = get(&Client::new(&config).unwrap(), "/version").await.unwrap_err();
    assert_eq!(error.code, Code::BadAnswer, "{error}");
    assert!(error.message.contains("TLS"), "{error}");
}

#[tokio::test]
async fn nobody_listens_and_names_that_do_not_resolve() {
    let node = Node::start(|_| data(1.into())).await;
    let config = Config { hosts: vec![closed_port().await], ..node.config() };
    let error = get(&Client::new(&config).unwrap(), "/version").await.unwrap_err();
    assert_eq!(error.code, Code::Unreachable, "{error}");
    assert!(error.message.contains(&config.hosts[0].to_string()), "{error}");

    let host = HostPort { host: "no-such-host.invalid".into(), port: 8006 };
    let config = Config { hosts: vec![host], max_retries: 0, ..node.config() };
    let error = get(&Client::new(&config).unwrap(), "/version").await.unwrap_err();
    assert_eq!(
        (error.code, error.message.contains("resolved")),
        (Code::Unreachable, true),
        "{error}"
    );
}

fn gzip(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

fn packed(body: Vec<u8>) -> Act {
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend(body);
    Act::Write(bytes)
}

#[tokio::test]
async fn packed_answers_are_unpacked_within_bounds() {
    let node = in_turn(vec![
        || packed(gzip(r#"{"data":["line"],"success":1}"#)),
        || packed(b"\x1f\x8b damaged".to_vec()),
        || packed(gzip(&" ".repeat((64 << 20) + 1))),
    ])
    .await;
    let client = node.client();
    assert_eq!(*get(&client, "/cluster/log").await.unwrap(), value!(["line"]));
    for what in ["damaged", "more than"] {
        let error = get(&client, "/cluster/log").await.unwrap_err();
        assert_eq!(error.code, Code::BadAnswer);
        assert!(error.message.contains(what), "{error}");
    }
}

#[tokio::test]
async fn another_host_of_the_cluster_stands_in() {
    let good = Node::start(|_| data("good".into())).await;
    let refused = closed_port().await;
    let mut config = good.config();
    config.hosts.insert(0, refused);
    let client = Client::new(&config).unwrap();
    assert_eq!(*get(&client, "/version").await.unwrap(), value!("good"));
    assert_eq!(client.host().unwrap(), good.host, "the host that failed is asked last now");
    assert_eq!(good.seen().len(), 1, "no second attempt was needed");

    for status in ["503 Service Unavailable", "595 Connection refused", "502 Bad Gateway"] {
        let bad = Node::start(move |_| answer(status, "text/plain", "")).await;
        let client =
            Client::new(&Config { max_retries: 0, ..super::testing::config(&[&bad, &good]) });
        assert_eq!(*get(&client.unwrap(), "/version").await.unwrap(), value!("good"), "{status}");
    }
    let lone = Node::start(|_| {
        json(
            "500 cluster not ready - no quorum?",
            r#"{"message":"cluster not ready - no quorum?\n"}"#,
        )
    })
    .await;
    let client = Client::new(&super::testing::config(&[&lone, &good])).unwrap();
    assert_eq!(*get(&client, "/version").await.unwrap(), value!("good"));
    let client = lone.client();
    let error = get(&client, "/version").await.unwrap_err();
    assert_eq!(error.code, Code::Conflict, "{error}");
    assert!(error.hint.contains("majority"), "{error}");
}

#[tokio::test]
async fn a_host_with_a_wrong_certificate_gets_nothing_and_is_told_of_first() {
    let (good, bad) =
        (Node::start(|_| data(1.into())).await, Node::start(|_| data(2.into())).await);
    let mut config = good.config();
    config.hosts.insert(0, bad.host.clone());
    let client = Client::new(&config).unwrap();
    assert_eq!(get(&client, "/version").await.unwrap().as_i64(), Some(1));
    assert!(bad.seen().is_empty());

    config.hosts = vec![closed_port().await, bad.host.clone()];
    let error = get(&Client::new(&config).unwrap(), "/version").await.unwrap_err();
    assert_eq!(error.code, Code::TlsPinMismatch, "{error}");
    let hosts = error.details["hosts"].as_array().unwrap();
    assert_eq!((hosts.len(), &hosts[0]["code"]), (2, &value!("unreachable")));
}

#[tokio::test]
async fn lists_are_kept_and_states_are_not() {
    let node = Node::start(|_| data(value!([]))).await;
    let client = node.client();
    for _ in 0..3 {
        get(&client, "/cluster/resources").await.unwrap();
        get(&client, "/cluster/tasks").await.unwrap();
    }
    let count = |what: &str| node.asked().iter().filter(|a| a.ends_with(what)).count();
    assert_eq!((count("/cluster/resources"), count("/cluster/tasks")), (1, 3));
    client.get_fresh(&ApiPath::parse("/cluster/resources").unwrap(), &Params::new()).await.unwrap();
    assert_eq!(count("/cluster/resources"), 2);
    client.forget();
    get(&client, "/cluster/resources").await.unwrap();
    assert_eq!(count("/cluster/resources"), 3);

    let client = Client::new(&Config { cache_ttl: Duration::ZERO, ..node.config() }).unwrap();
    get(&client, "/version").await.unwrap();
    get(&client, "/version").await.unwrap();
    assert_eq!(count("/version"), 2, "a time of zero keeps nothing");
}

#[tokio::test]
async fn identical_reads_at_the_same_time_are_one_request() {
    let node = Node::start(|_| data(1.into())).await;
    let client = node.client();
    let reads = (0..16).map(|_| get(&client, "/cluster/tasks"));
    for found in futures::future::join_all(reads).await {
        found.unwrap();
    }
    assert_eq!(node.seen().len(), 1);
}

#[tokio::test]
async fn a_wrong_node_name_never_leaves_the_house() {
    let node = Node::start(|_| nodes(&["pve1", "pve2"])).await;
    let client = node.client();
    for (name, meant) in [
        ("pve1.example.test", Some("pve1")),
        ("PVE2", Some("pve2")),
        ("pve3", Some("pve")),
        ("192.0.2.10", None),
    ] {
        let error = get(&client, &format!("/nodes/{name}/status")).await.unwrap_err();
        assert_eq!(error.code, Code::NotFound, "{error}");
        match meant {
            Some(meant) => {
                assert!(error.hint.contains(&format!("did you mean {meant}")), "{error}")
            }
            None => assert!(!error.hint.contains("did you mean"), "{error}"),
        }
        assert!(error.hint.contains("pve1, pve2"), "{error}");
    }
    assert!(node.asked().is_empty(), "{:?}", node.asked());
    get(&client, "/nodes/localhost/status").await.unwrap();
    get(&client, "/nodes/pve2/status").await.unwrap();
    let lists = node.seen().iter().filter(|s| s.target == "/api2/json/nodes").count();
    get(&client, "/nodes/pve1/status").await.unwrap();
    assert_eq!(node.seen().iter().filter(|s| s.target == "/api2/json/nodes").count(), lists);
}

#[tokio::test]
async fn a_node_list_that_may_not_be_read_stands_in_no_way() {
    let node = Node::start(|seen: &Seen| match seen.target.as_str() {
        "/api2/json/nodes" => json("403 Permission check failed", "{}"),
        _ => data(1.into()),
    })
    .await;
    get(&node.client(), "/nodes/pve7/status").await.unwrap();
}

fn moved(seen: &Seen) -> Act {
    let missing = |node: &str| {
        let text = format!("Configuration file 'nodes/{node}/qemu-server/100.conf' does not exist");
        json(
            &format!("500 {text}"),
            &value!({"data": null, "message": format!("{text}\n")}).to_string(),
        )
    };
    match seen.target.as_str() {
        "/api2/json/nodes" => nodes(&["pve1", "pve2"]),
        "/api2/json/cluster/resources?type=vm" => {
            data(value!([{"type": "qemu", "vmid": "100", "node": "pve2", "status": "running"}]))
        }
        t if t.starts_with("/api2/json/nodes/pve2/qemu/100") => data(value!({"name": "web"})),
        t if t.contains("/pve1/") => missing("pve1"),
        _ => missing("pve2"),
    }
}

#[tokio::test]
async fn a_guest_that_moved_is_read_where_it_is_now() {
    let node = Node::start(moved).await;
    let client = node.client();
    let config = get(&client, "/nodes/pve1/qemu/100/config").await.unwrap();
    assert_eq!(config["name"], "web");
    let reads = node.asked();
    assert_eq!(reads.iter().filter(|r| r.contains("/qemu/100/config")).count(), 2, "{reads:?}");

    let error = get(&client, "/nodes/pve1/qemu/999/config").await.unwrap_err();
    assert_eq!(error.code, Code::NotFound, "{error}");
    let guest = client.guest(Vmid::new(100).unwrap()).await.unwrap();
    assert_eq!((guest.node.as_str(), guest.vmid.get()), ("pve2", 100));
    let error = client.guest(Vmid::new(999).unwrap()).await.unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

#[tokio::test]
async fn a_guest_of_the_other_kind_is_told() {
    let node = Node::start(|seen: &Seen| {
        if seen.target.contains("/lxc/100") {
            let text = "Configuration file 'nodes/pve2/lxc/100.conf' does not exist";
            return json(&format!("500 {text}"), &value!({"message": text}).to_string());
        }
        moved(seen)
    })
    .await;
    let error = get(&node.client(), "/nodes/pve2/lxc/100/config").await.unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert!(error.message.contains("100 is a VM on pve2"), "{error}");
}

#[tokio::test]
async fn the_api_description_is_read_once_and_without_the_token() {
    let node = Node::start(|_| {
        answer(
            "200 OK",
            "application/javascript",
            "const apiSchema = [{\"path\":\"/version\",\"text\":\"version\",\"info\":{\"GET\":{}}}]\n;\n",
        )
    })
    .await;
    let client = node.client();
    for _ in 0..2 {
        assert!(client.schema().await.unwrap().find("/version").is_some());
    }
    let seen = node.seen();
    assert_eq!((seen.len(), seen[0].target.as_str()), (1, "/pve-docs/api-viewer/apidoc.js"));
    assert_eq!(seen[0].header("authorization"), None);
}

#[test]
fn a_client_without_host_or_token_says_what_is_missing() {
    let nowhere = std::path::PathBuf::from("/nonexistent");
    let dirs = crate::config::Dirs { config: nowhere.clone(), state: nowhere };
    let mut config = Config::minimal(dirs);
    for missing in ["PROXMOX_HOST", "PROXMOX_TOKEN_ID"] {
        let error = Client::new(&config).err().unwrap();
        assert_eq!((error.code, error.message.contains(missing)), (Code::Config, true), "{error}");
        config.hosts = vec![HostPort { host: "pve1".into(), port: 8006 }];
    }
}
