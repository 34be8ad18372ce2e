//! Changes: on the wire, once, and told truly when nobody knows.

use std::time::Duration;

use serde_json::{Value, json as value};

use super::testing::{Act, Make, Node, Seen, answer, closed_port, data, json, nodes};
use crate::{
    Code, Error,
    config::Config,
    pve::{ApiPath, Client, Params},
    safety::{Method, Operation},
};

fn operation(method: Method, path: &str, params: Params) -> Operation {
    Operation { method, path: ApiPath::parse(path).unwrap(), params }
}

async fn send(client: &Client, operation: Operation) -> Result<Value, Error> {
    client.inner.transmit(&operation).await
}

/// A node with pve1 and pve2 that answers a change as said.
async fn node(act: impl Fn() -> Act + Send + Sync + 'static) -> Node {
    Node::start(move |seen: &Seen| match (seen.method.as_str(), seen.target.as_str()) {
        ("GET", "/api2/json/nodes") => nodes(&["pve1", "pve2"]),
        ("GET", t) if t.starts_with("/api2/json/nodes/pve1/tasks") => data(value!([
            {"upid": "UPID:pve1:00000001:00000001:6B0CC19F:qmstart:100:mcp@pve!full:", "type": "qmstart", "id": "100", "starttime": 1_795_998_111, "user": "mcp@pve", "tokenid": "full", "status": "OK"},
            {"upid": "UPID:pve1:00000002:00000002:6B0CC1A0:qmstart:100:root@pam:", "type": "qmstart", "id": "100", "starttime": 1_795_998_112, "user": "root@pam"},
            {"upid": "UPID:pve1:00000003:00000003:6B0CC1A1:qmstop:100:mcp@pve!full:", "type": "qmstop", "id": "100", "starttime": 1_795_998_113, "user": "mcp@pve", "tokenid": "full"},
        ])),
        ("GET", t) if t.ends_with("/config") => {
            data(value!({"cores": 4, "memory": "2048", "scsi0": "local:a,iothread=1,size=8G", "digest": "x"}))
        }
        ("GET", "/api2/json/cluster/resources?type=vm") => {
            data(value!([{"type": "qemu", "vmid": 100, "node": "pve2"}]))
        }
        ("GET", _) => data(value!([])),
        _ => act(),
    })
    .await
}

fn changes(node: &Node) -> Vec<Seen> {
    node.seen().into_iter().filter(|s| s.method != "GET").collect()
}

fn start() -> Operation {
    operation(Method::Post, "/nodes/pve1/qemu/100/status/start", Params::new())
}

fn set_cores() -> Operation {
    let params = Params::new()
        .with("cores", 4)
        .with("memory", 4096)
        .with("scsi0", "local:a,iothread=1")
        .with("delete", "tags")
        .with("digest", "x");
    operation(Method::Put, "/nodes/pve1/qemu/100/config", params)
}

#[tokio::test]
async fn parameters_go_where_proxmox_reads_them() {
    let node = node(|| data("UPID:x".into())).await;
    let client = node.client();
    let params = || {
        let several = ["touch", "/a,b c"];
        Params::new().with_many("command", several).with("text", "a=b;c&d +\u{fc}\n")
    };
    for method in [Method::Post, Method::Put, Method::Delete] {
        send(&client, operation(method, "/nodes/pve1/qemu/100/x", params())).await.unwrap();
    }
    send(&client, operation(Method::Put, "/nodes/pve1/qemu/100/x", Params::new())).await.unwrap();
    send(
        &client,
        operation(
            Method::Get,
            "/nodes/pve1/qemu/100/agent/exec-status",
            Params::new().with("pid", 7),
        ),
    )
    .await
    .unwrap();
    let encoded = "command=touch&command=%2Fa%2Cb%20c&text=a%3Db%3Bc%26d%20%2B%C3%BC%0A";
    let seen = changes(&node);
    for put_or_post in &seen[..2] {
        assert_eq!(put_or_post.target, "/api2/json/nodes/pve1/qemu/100/x");
        assert_eq!(put_or_post.body, encoded);
        assert_eq!(put_or_post.header("content-type"), Some("application/x-www-form-urlencoded"));
        assert_eq!(put_or_post.header("content-length").unwrap(), encoded.len().to_string());
    }
    assert_eq!(seen[2].target, format!("/api2/json/nodes/pve1/qemu/100/x?{encoded}"));
    assert_eq!((seen[2].body.as_str(), seen[2].header("content-type")), ("", None));
    assert_eq!((seen[3].body.as_str(), seen[3].header("content-length")), ("", Some("0")));
    assert_eq!(
        node.seen().last().unwrap().target,
        "/api2/json/nodes/pve1/qemu/100/agent/exec-status?pid=7"
    );
    assert!(node.seen().iter().all(|s| s.header("transfer-encoding").is_none()));
}

#[tokio::test]
async fn a_change_never_rides_on_an_old_connection() {
    let node = node(|| data(Value::Null)).await;
    let client = node.client();
    for _ in 0..3 {
        send(&client, start()).await.unwrap();
    }
    let mut connections: Vec<usize> = node.seen().iter().map(|s| s.connection).collect();
    connections.sort_unstable();
    connections.dedup();
    assert_eq!(connections.len(), node.seen().len(), "a connection for each");
}

#[tokio::test]
async fn what_is_too_large_stays_here() {
    let node = node(|| data(Value::Null)).await;
    let large = Params::new().with("content", "x".repeat(512 << 10));
    let error =
        send(&node.client(), operation(Method::Post, "/nodes/pve1/x", large)).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert_eq!(error.details["bytes"], (512 << 10) + 8);
    let fits = Params::new().with("content", "x".repeat((512 << 10) - 8));
    send(&node.client(), operation(Method::Post, "/nodes/pve1/x", fits)).await.unwrap();
    assert_eq!(changes(&node).len(), 1);
}

#[tokio::test]
async fn what_may_have_arrived_is_sent_once_and_told() {
    let cases: Vec<(&str, Make)> = vec![
        ("silence", || Act::Silence),
        ("drip", || Act::Drip),
        ("closed", || Act::WriteAndClose(Vec::new())),
        ("cut", || Act::WriteAndClose(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_vec())),
        ("garbage", || Act::WriteAndClose(b"garbage\r\n\r\n".to_vec())),
        ("web page", || answer("200 OK", "text/html", "<html>")),
        ("502", || answer("502 Bad Gateway", "text/html", "<html>")),
        ("503", || answer("503 Service Unavailable", "text/plain", "")),
        ("504", || answer("504 Gateway Timeout", "text/plain", "")),
        ("596", || answer("596 Broken pipe", "text/plain", "")),
        ("596", || answer("596 Connection timed out", "text/plain", "")),
        ("597", || answer("597 x", "text/plain", "")),
    ];
    let cases = cases.into_iter().map(async |(name, act)| {
        let node = node(act).await;
        let config = Config { timeout: Duration::from_millis(500), ..node.config() };
        let client = Client::new(&config).unwrap();
        let error = send(&client, start()).await.unwrap_err();
        assert_eq!(error.code, Code::OutcomeUnknown, "{name}: {error}");
        assert_eq!(changes(&node).len(), 1, "{name}: sent once");
        assert!(error.details.contains_key("cause"), "{name}");
        let tasks = error.details["newest_tasks"].as_array().unwrap();
        let upids: Vec<&str> = tasks.iter().map(|t| t["type"].as_str().unwrap()).collect();
        assert_eq!(upids, ["qmstop", "qmstart"], "{name}: those of this token, newest first");
        assert_eq!(tasks[0]["status"], "running");
        assert!(!error.message.contains("down"), "{name}: {error}");
    });
    futures::future::join_all(cases).await;
}

#[tokio::test]
async fn an_unknown_configuration_write_is_compared_once() {
    let node = node(|| Act::Silence).await;
    let config = Config { timeout: Duration::from_millis(500), ..node.config() };
    let error = send(&Client::new(&config).unwrap(), set_cores()).await.unwrap_err();
    assert_eq!(error.code, Code::OutcomeUnknown, "{error}");
    let seen = node.seen();
    let count = |method: &str| {
        seen.iter().filter(|s| s.method == method && s.target.ends_with("/config")).count()
    };
    assert_eq!((count("PUT"), count("GET")), (1, 1));
    assert_eq!(error.details["config"]["as_sent"], value!(["cores", "delete", "scsi0"]));
    assert_eq!(error.details["config"]["otherwise"], value!(["memory"]));
}

#[tokio::test]
async fn a_refusal_is_a_refusal() {
    let cases: Vec<(Make, Code)> = vec![
        (
            || json("500 VM is locked (backup)", r#"{"message":"VM is locked (backup)\n"}"#),
            Code::Locked,
        ),
        (
            || {
                json(
                    "403 Permission check failed (/vms/100, VM.PowerMgmt)",
                    r#"{"message":"Permission check failed (/vms/100, VM.PowerMgmt)\n"}"#,
                )
            },
            Code::Forbidden,
        ),
        (|| answer("401 Authentication failed!", "text/plain", ""), Code::Unauthorized),
        (|| answer("595 No route to host", "text/plain", ""), Code::ProxyFailed),
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
        (|| json("501 Method 'POST /x' not implemented", "{}"), Code::NotFound),
        (|| json("500 checksum mismatch (file change by other user?)", "{}"), Code::DigestChanged),
    ];
    for (act, code) in cases {
        let node = node(act).await;
        let error = send(&node.client(), start()).await.unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert_eq!(changes(&node).len(), 1, "{error}");
    }
}

#[tokio::test]
async fn another_host_is_taken_only_when_nothing_was_sent() {
    let good = node(|| data("UPID:x".into())).await;
    let mut config = good.config();
    config.hosts.insert(0, closed_port().await);
    assert_eq!(send(&Client::new(&config).unwrap(), start()).await.unwrap(), "UPID:x");
    assert_eq!(changes(&good).len(), 1);

    let cutting = node(|| Act::WriteAndClose(Vec::new())).await;
    let config = super::testing::config(&[&cutting, &good]);
    let error = send(&Client::new(&config).unwrap(), start()).await.unwrap_err();
    assert_eq!(error.code, Code::OutcomeUnknown, "{error}");
    assert_eq!((changes(&cutting).len(), changes(&good).len()), (1, 1));

    let config = Config { hosts: vec![closed_port().await], ..good.config() };
    let error =
        send(&Client::new(&config).unwrap(), operation(Method::Post, "/pools", Params::new()))
            .await
            .unwrap_err();
    assert_eq!(
        (error.code, &error.details["sent"]),
        (Code::Unreachable, &value!(false)),
        "{error}"
    );
}

#[tokio::test]
async fn a_node_without_quorum_is_asked_last_and_the_change_is_not_repeated() {
    let text = "cluster not ready - no quorum?";
    let lone =
        node(move || json(&format!("500 {text}"), &value!({"message": text}).to_string())).await;
    let good = node(|| data("UPID:x".into())).await;
    let client = Client::new(&super::testing::config(&[&lone, &good])).unwrap();
    let error = send(&client, start()).await.unwrap_err();
    assert_eq!((error.code, changes(&good).len()), (Code::Conflict, 0), "{error}");
    assert_eq!(send(&client, start()).await.unwrap(), "UPID:x");
    assert_eq!((changes(&lone).len(), changes(&good).len()), (1, 1));
}

#[tokio::test]
async fn kept_answers_go_with_a_change_whatever_becomes_of_it() {
    for act in [|| data(Value::Null), || json("500 no", "{}"), || Act::WriteAndClose(Vec::new())]
        as [Make; 3]
    {
        let node = node(act).await;
        let client = node.client();
        let list = || async {
            let path = ApiPath::parse("/cluster/status").unwrap();
            client.get(&path, &Params::new()).await.unwrap();
            node.asked().iter().filter(|a| a.ends_with("/cluster/status")).count()
        };
        assert_eq!((list().await, list().await), (1, 1));
        let _ = send(&client, start()).await;
        assert_eq!(list().await, 2);
    }
}

#[tokio::test]
async fn a_guest_that_moved_is_not_followed_by_a_change() {
    let missing = "Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist";
    let node =
        node(move || json(&format!("500 {missing}"), &value!({"message": missing}).to_string()))
            .await;
    let error = send(&node.client(), set_cores()).await.unwrap_err();
    assert_eq!(
        (error.code, &error.details["node"]),
        (Code::GuestMoved, &value!("pve2")),
        "{error}"
    );
    assert!(error.message.contains("guest 100 is now on pve2"), "{error}");
    assert_eq!(changes(&node).len(), 1);
}

#[tokio::test]
async fn a_change_on_an_unknown_node_is_not_sent() {
    let node = node(|| data(Value::Null)).await;
    let path = "/nodes/pve1.example.test/qemu/100/status/start";
    let error =
        send(&node.client(), operation(Method::Post, path, Params::new())).await.unwrap_err();
    assert_eq!(error.code, Code::NotFound, "{error}");
    assert!(changes(&node).is_empty());
}
