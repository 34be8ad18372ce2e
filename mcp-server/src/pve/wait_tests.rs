//! Waiting for tasks.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json as value};
use tokio_util::sync::CancellationToken;

use super::testing::{Act, Node, Seen, data, json, nodes};
use crate::{
    Code,
    pve::{Upid, task},
};

const UPID: &str = "UPID:pve1:00001553:0002C0B2:6B0CBA55:vzdump:100:mcp@pve!full:";

/// A node whose task runs for some looks, writing two lines at each, then ends so.
async fn node(looks: usize, end: Value) -> Node {
    let looked = AtomicUsize::new(0);
    Node::start(move |seen: &Seen| {
        let target = seen.target.as_str();
        let now = looked.load(Ordering::SeqCst);
        if target == "/api2/json/nodes" {
            return nodes(&["pve1"]);
        }
        if target.ends_with("/status") {
            let now = looked.fetch_add(1, Ordering::SeqCst);
            let running = value!({"status": "running", "upid": UPID});
            return data(if now < looks { running } else { end.clone() });
        }
        let query = target.split_once('?').unwrap().1;
        let number = |name: &str| -> usize {
            let value = query.split('&').find_map(|p| p.strip_prefix(&format!("{name}=")));
            value.unwrap().parse().unwrap()
        };
        let all: Vec<Value> = (1..=now * 2)
            .map(|n| match n {
                2 => value!({"n": n, "t": "WARN: old kernel"}),
                3 => value!({"n": n, "t": "ERROR: disk full"}),
                n => value!({"n": n, "t": format!("INFO: {}% done", n * 10)}),
            })
            .collect();
        let page: Vec<Value> =
            all.iter().skip(number("start")).take(number("limit")).cloned().collect();
        let page = if all.is_empty() { vec![value!({"n": 1, "t": "no content"})] } else { page };
        json("200 OK", &value!({"data": page, "total": all.len().max(1)}).to_string())
    })
    .await
}

fn stopped(exit: &str) -> Value {
    value!({"status": "stopped", "exitstatus": exit})
}

async fn wait(
    node: &Node,
    timeout: Duration,
    cancelled: CancellationToken,
) -> (Result<task::TaskStatus, crate::Error>, Vec<(String, Option<f64>)>) {
    let mut told = Vec::new();
    let upid = Upid::parse(UPID).unwrap();
    let tell = |line: &str, percent| told.push((line.to_owned(), percent));
    let end = task::wait(&node.client(), &upid, timeout, tell, cancelled).await;
    (end, told)
}

#[tokio::test]
async fn each_line_is_told_once_and_the_end_is_known() {
    let node = node(2, stopped("OK")).await;
    let (end, told) = wait(&node, Duration::from_secs(30), CancellationToken::new()).await;
    let end = end.unwrap();
    assert!(end.done() && end.ok());
    assert_eq!(end.to_json()["exitstatus"], "OK");
    assert!(end.log_tail.is_empty() && end.first_error.is_none());
    let lines: Vec<&str> = told.iter().map(|(l, _)| l.as_str()).collect();
    assert_eq!(
        lines,
        [
            "INFO: 10% done",
            "WARN: old kernel",
            "ERROR: disk full",
            "INFO: 40% done",
            "INFO: 50% done",
            "INFO: 60% done"
        ]
    );
    assert_eq!(told.last().unwrap().1, Some(60.0));
    let asked = node.asked();
    assert!(asked.iter().any(|a| a.contains("/log?limit=500&start=4")), "{asked:?}");
}

#[tokio::test]
async fn warnings_are_success_and_everything_else_is_not() {
    let cases = [
        (stopped("WARNINGS: 1"), true, 1, "WARNINGS: 1"),
        (stopped("VM is locked (backup)"), false, 0, "VM is locked (backup)"),
        (value!({"status": "stopped"}), false, 0, "unexpected status"),
    ];
    for (end, ok, warnings, exit) in cases {
        let node = node(1, end).await;
        let (end, _) = wait(&node, Duration::from_secs(30), CancellationToken::new()).await;
        let upid = Upid::parse(UPID).unwrap();
        for end in [end.unwrap(), task::status(&node.client(), &upid).await.unwrap()] {
            let told = end.to_json();
            assert_eq!((&told["done"], &told["ok"]), (&value!(true), &value!(ok)), "{exit}");
            assert_eq!((end.warnings(), end.exitstatus()), (warnings, exit));
            assert_eq!(end.warning_lines, ["WARN: old kernel"], "{exit}");
            assert_eq!(end.first_error.is_some(), !ok, "{exit}");
            assert_eq!(end.log_tail.is_empty(), ok, "{exit}");
        }
    }
}

#[tokio::test]
async fn neither_the_end_of_the_time_nor_cancelling_touches_the_task() {
    let node = node(usize::MAX, stopped("OK")).await;
    let (end, _) = wait(&node, Duration::from_millis(300), CancellationToken::new()).await;
    let end = end.unwrap();
    assert!(!end.done() && !end.ok());
    assert_eq!(end.to_json()["done"], false);

    let cancelled = CancellationToken::new();
    let later = cancelled.clone();
    let (end, _) = tokio::join!(wait(&node, Duration::from_secs(600), cancelled), async move {
        tokio::task::yield_now().await;
        later.cancel();
    })
    .0;
    let error = end.unwrap_err();
    assert_eq!((error.code, error.hint.contains("goes on")), (Code::Cancelled, true), "{error}");
    assert!(node.seen().iter().all(|s| s.method == "GET"));
}

#[tokio::test]
async fn a_task_that_nobody_knows_is_an_error() {
    let node = Node::start(|seen: &Seen| match seen.target.as_str() {
        "/api2/json/nodes" => nodes(&["pve1"]),
        _ => json("500 no such task", r#"{"message":"no such task\n"}"#),
    })
    .await;
    let (end, _) = wait(&node, Duration::from_secs(30), CancellationToken::new()).await;
    assert_eq!(end.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn pages_of_a_log_from_the_start_or_the_newest() {
    let long = Node::start(|seen: &Seen| -> Act {
        if seen.target == "/api2/json/nodes" {
            return nodes(&["pve1"]);
        }
        let (_, query) = seen.target.split_once('?').unwrap();
        let numbers: Vec<usize> =
            query.split('&').map(|p| p.split_once('=').unwrap().1.parse().unwrap()).collect();
        let (limit, start) = (numbers[0], numbers[1]);
        let rows: Vec<Value> =
            (start + 1..=50).take(limit).map(|n| value!({"n": n, "t": format!("l{n}")})).collect();
        json("200 OK", &value!({"data": rows, "total": 50}).to_string())
    })
    .await;
    let upid = Upid::parse(UPID).unwrap();
    let client = long.client();
    let page = task::log(&client, &upid, None, 3).await.unwrap();
    assert_eq!(
        (page.lines.as_slice(), page.start, page.total),
        (&["l48", "l49", "l50"].map(String::from)[..], 47, 50)
    );
    let page = task::log(&client, &upid, Some(0), 2).await.unwrap();
    assert_eq!((page.lines.as_slice(), page.start), (&["l1", "l2"].map(String::from)[..], 0));
    let empty = node(0, stopped("OK")).await;
    let page = task::log(&empty.client(), &upid, None, 10).await.unwrap();
    assert_eq!((page.lines.len(), page.start, page.total), (0, 0, 0));
}
