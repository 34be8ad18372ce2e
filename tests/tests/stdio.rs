//! The server's standard input and output: what it answers to lines that are no
//! requests, to requests of the wrong shape, and to both protocol eras.

use e2e::{Estate, LATEST, LEGACY, Server, initialize, new_era};
use serde_json::{Value, json};

fn serve(estate: &Estate) -> Server {
    Server::start(estate.command().arg("serve"))
}

/// Answers a ping; what else came meanwhile and was not asked for.
fn still_there(server: &mut Server) -> Vec<Value> {
    let before = server.unasked().len();
    let answer = server.request("ping", json!({}));
    assert_eq!(answer["result"], json!({}), "{answer}");
    server.unasked().iter().skip(before).cloned().collect()
}

/// The error that a line without an id gets: exactly one, and the server goes on.
fn refused_line(server: &mut Server, what: &str, line: &[u8], code: i64) {
    server.send_raw(&[line, b"\n"].concat());
    let answer = server.answer(&Value::Null);
    assert_eq!(answer["error"]["code"], json!(code), "{what}: {answer}");
    assert!(answer["error"]["message"].is_string(), "{what}: {answer}");
    assert!(answer.get("id").is_some(), "{what}: the id is null, not absent: {answer}");
    let others = still_there(server);
    assert!(others.is_empty(), "{what}: one answer, not also {others:?}");
}

#[test]
fn lines_that_are_no_requests_get_one_error_without_an_id() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    let deep_array = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let deep_params = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"pve_list_vms","arguments":{}{}}}}}"#,
        r#"{"a":"#.repeat(5_000),
        "}".repeat(5_000)
    );
    let ping = br#"{"jsonrpc":"2.0","id":9001,"method":"ping"}"#;
    let cases: Vec<(&str, Vec<u8>, i64)> = vec![
        ("cut short", br#"{"jsonrpc":"2.0","id":"#.to_vec(), -32700),
        ("words", b"hello there".to_vec(), -32700),
        (
            "brackets that do not match",
            br#"{"jsonrpc":"2.0","id":1,"method":"ping"]"#.to_vec(),
            -32700,
        ),
        ("two messages on one line", [&ping[..], ping].concat(), -32700),
        ("trailing words", [&ping[..], b" x"].concat(), -32700),
        ("a bare number that is none", b"01".to_vec(), -32700),
        ("single quotes", b"{'jsonrpc':'2.0','id':1,'method':'ping'}".to_vec(), -32700),
        ("a NUL", b"{\"jsonrpc\":\"2.0\",\0\"id\":1,\"method\":\"ping\"}".to_vec(), -32700),
        (
            "bad UTF-8 in a string",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}".to_vec(),
            -32700,
        ),
        ("bad UTF-8 alone", b"\xc3\x28".to_vec(), -32700),
        ("a surrogate in UTF-8", b"\"\xed\xa0\x80\"".to_vec(), -32700),
        ("an array too deep", deep_array, -32700),
        ("parameters too deep", deep_params.into_bytes(), -32700),
        ("a batch", [b"[", &ping[..], b"]"].concat(), -32600),
        ("an empty batch", b"[]".to_vec(), -32600),
        ("a batch of nonsense", b"[1,2]".to_vec(), -32600),
    ];
    for (what, line, code) in cases {
        refused_line(&mut server, what, &line, code);
    }
    assert_eq!(server.finish(), Vec::<Value>::new(), "nothing comes late");
}

/// Answers to bad lines stand in the order of the lines, before what is asked after them.
#[test]
fn errors_keep_their_place() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    for _ in 0..50 {
        server.send_raw(b"{ not json\n[]\n");
        server.send(&json!({ "jsonrpc": "2.0", "id": "after", "method": "ping" }));
        let order: Vec<Value> =
            (0..3).filter_map(|_| server.next()).map(|m| m["error"]["code"].clone()).collect();
        assert_eq!(order, [json!(-32700), json!(-32600), Value::Null]);
    }
}

#[test]
fn a_line_over_16_mib_gets_one_error_and_the_next_line_is_read() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    let head = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"pve_list_vms","arguments":{"name":""#;
    let line = format!("{head}{}\"}}}}}}\n", "y".repeat(17 << 20));
    refused_line(&mut server, "17 MiB", line.trim_end().as_bytes(), -32700);

    // What is long and within the limit is read whole.
    let name = "y".repeat(4 << 20);
    let error = server.refused("pve_list_vms", json!({ "no_such": name }));
    assert_eq!(error["code"], "invalid_argument");
    assert!(error.to_string().len() < 10_000, "the error does not carry it all back");
}

#[test]
fn messages_that_ask_nothing_do_no_harm() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    for line in [
        "",
        "   ",
        "\r",
        "{}",
        "null",
        "42",
        r#""ping""#,
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/no_such"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":424242}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":"x"}"#,
    ] {
        server.send_raw(format!("{line}\n").as_bytes());
        for answer in still_there(&mut server) {
            // `jsonrpc` is looser in some clients; every other line is answered with an error, if at all.
            let fine = answer["error"]["code"].is_i64() || line.contains(r#""1.0""#);
            assert!(fine, "{line:?}: {answer}");
        }
    }
    // Line ends of other systems.
    server.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"crlf\",\"method\":\"ping\"}\r\n");
    assert_eq!(server.answer(&json!("crlf"))["result"], json!({}));
    assert!(server.finish().iter().all(|m| m.get("result").is_none()));
}

#[test]
fn parameters_of_the_wrong_shape_are_invalid_params() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    for (method, params) in [
        ("tools/call", json!({ "name": "pve_list_vms", "arguments": "x" })),
        ("tools/call", json!({ "name": "pve_list_vms", "arguments": [] })),
        ("tools/call", json!({ "name": "pve_list_vms", "arguments": 5 })),
        ("tools/call", json!({ "name": "pve_list_vms", "arguments": true })),
        ("tools/call", json!({ "name": 5 })),
        ("tools/call", json!({ "name": null })),
        ("tools/call", json!({ "arguments": {} })),
        ("tools/call", json!({})),
        ("tools/call", json!([])),
        ("tools/call", json!("x")),
        ("tools/call", json!({ "name": "no_such_tool", "arguments": {} })),
        ("tools/list", json!("x")),
        ("tools/list", json!([1])),
        ("tools/list", json!({ "cursor": 5 })),
        ("initialize", json!({})),
        ("initialize", json!({ "protocolVersion": 3, "capabilities": {}, "clientInfo": {} })),
    ] {
        let answer = server.request(method, params.clone());
        assert_eq!(answer["error"]["code"], json!(-32602), "{method} {params}: {answer}");
    }
    server.send(&json!({ "jsonrpc": "2.0", "id": "none", "method": "tools/call" }));
    assert_eq!(server.answer(&json!("none"))["error"]["code"], json!(-32602));
    for method in ["no/such", "tools/no_such", "", "rpc.discover", "Ping"] {
        let answer = server.request(method, json!({}));
        assert_eq!(answer["error"]["code"], json!(-32601), "{method}: {answer}");
    }
    assert_eq!(estate.arrived(), Vec::<String>::new(), "nothing of it left the process");
}

#[test]
fn ids_come_back_as_they_were_sent() {
    let estate = Estate::sample();
    let mut server = Server::open(estate.command().arg("serve"));
    for id in [
        json!("abc"),
        json!(""),
        json!("1"),
        json!("Prüf-日本-🦀"),
        json!(0),
        json!(-5),
        json!(9_007_199_254_740_991_i64),
        json!("x".repeat(1000)),
    ] {
        server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        assert_eq!(server.answer(&id)["result"], json!({}), "{id}");
        server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "pve_list_vms", "arguments": { "limit": 1 } } }));
        assert!(server.answer(&id)["result"].is_object(), "{id}");
        server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "no/such" }));
        assert_eq!(server.answer(&id)["error"]["code"], json!(-32601), "{id}");
    }
}

#[test]
fn before_initialize_a_request_is_refused_and_the_server_goes_on() {
    let estate = Estate::sample();
    let mut server = serve(&estate);
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/no_such" }));
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "pve_list_vms", "arguments": {} })),
        ("no/such", json!({})),
    ] {
        let answer = server.request(method, params);
        assert!(answer["error"]["code"].is_i64(), "{method}: {answer}");
    }
    server.send_raw(b"{ not json\n");
    assert_eq!(server.answer(&Value::Null)["error"]["code"], json!(-32700));
    assert_eq!(estate.arrived(), Vec::<String>::new(), "nothing of it left the process");

    server.initialize(LEGACY);
    assert!(server.ok("pve_list_vms", json!({}))["rows"].is_array());
    server.finish();
}

#[test]
fn versions_are_negotiated() {
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", LEGACY),
        ("1999-01-01", LEGACY),
        ("", LEGACY),
        ("latest", LEGACY),
    ] {
        let estate = Estate::sample();
        let mut server = serve(&estate);
        let result = server.initialize(asked);
        assert_eq!(result["protocolVersion"], given, "asked for {asked:?}: {result}");
        assert_eq!(result["serverInfo"]["name"], "proxmox-mcp");
        assert!(result["capabilities"]["tools"].is_object(), "{result}");
        let instructions = result["instructions"].as_str().expect("instructions");
        assert!((100..1600).contains(&instructions.len()), "under 400 tokens: {instructions}");
        assert!(server.ok("pve_list_vms", json!({ "limit": 1 }))["rows"].is_array(), "{asked:?}");
    }
}

#[test]
fn the_stateless_era_needs_no_opening() {
    let estate = Estate::sample();
    let mut server = serve(&estate);
    let tools = server.request("tools/list", new_era(json!({})));
    let result = &tools["result"];
    assert!(result["tools"].as_array().is_some_and(|t| t.len() > 20), "{tools}");
    assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string(), "cache hints: {tools}");
    assert_eq!(result["resultType"], "complete");

    let found = server.request("server/discover", new_era(json!({})));
    let versions = found["result"]["supportedVersions"].to_string();
    assert!(versions.contains(LATEST), "{found}");
    let identity = &found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(identity["name"], "proxmox-mcp", "{found}");

    let call = json!({ "name": "pve_list_vms", "arguments": { "limit": 2 } });
    let answer = server.request("tools/call", new_era(call));
    assert_eq!(answer["result"]["structuredContent"]["shown"], 2, "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");

    let bad =
        server.request("tools/call", new_era(json!({ "name": "pve_list_vms", "arguments": 1 })));
    assert_eq!(bad["error"]["code"], json!(-32602), "{bad}");
    let unknown = server.request("tools/call", new_era(json!({ "name": "no_such_tool" })));
    assert_eq!(unknown["error"]["code"], json!(-32602), "{unknown}");
    let mut strange = new_era(json!({}));
    strange["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let refused = server.request("tools/list", strange);
    assert!(refused["error"]["code"].is_i64(), "an unknown revision is refused: {refused}");
    server.finish();
}

#[test]
fn discover_then_initialize_on_the_same_pipe() {
    let estate = Estate::sample();
    let mut server = serve(&estate);
    let found = server.request("server/discover", new_era(json!({})));
    assert!(found["result"].is_object(), "{found}");
    let opened = server.request("initialize", initialize(LEGACY));
    assert_eq!(opened["result"]["protocolVersion"], LEGACY, "{opened}");
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert!(server.ok("pve_list_vms", json!({}))["rows"].is_array());
    server.finish();
}

#[test]
fn only_protocol_on_standard_output_at_the_loudest_level() {
    for level in ["trace", "TRACE", "debug"] {
        let estate = Estate::sample();
        estate.configure(&[("PROXMOX_NO_SUCH", "1")]);
        let mut command = estate.command();
        command.arg("serve").env("LOG_LEVEL", level).env("RUST_LOG", "trace");
        let mut server = Server::open(&mut command);
        server.request("tools/list", json!({}));
        for n in 0..20 {
            let tool = ["pve_list_vms", "pve_overview", "pve_list_nodes", "pve_node_status"][n % 4];
            server.call(tool, json!({}));
        }
        server.send_raw(b"{ not json\n");
        // `next` of the harness fails on any line that is not JSON-RPC.
        server.finish();
        let log = server.stderr();
        assert!(log.contains("PROXMOX_NO_SUCH"), "the unknown variable is told: {log}");
        assert!(log.contains("pve_list_vms"), "{level} logs calls: {log}");
        assert!(!log.contains("not json"), "no message of the client is in the log: {log}");
        assert!(!log.contains(estate.secret()), "the secret is in the log of {level}");
    }
}
