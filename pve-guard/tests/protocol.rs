//! Both directions of the protocol, as its users call them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test code")]

use proptest::prelude::*;
use pve_guard::protocol::{
    Code, ExecDone, Hello, Input, MAX_CHUNK, PctExec, Refused, Reply, Request, Verb,
};
use serde_json::json;

#[path = "../fuzz/check.rs"]
mod fuzz;
use fuzz::check;

#[test]
fn every_file_of_the_fuzz_corpus_is_dealt_with() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/protocol");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        check(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files >= 26);
}

fn verb() -> impl Strategy<Value = Verb> {
    let name = || "[a-z0-9._:=;-]{1,40}";
    let argv = proptest::collection::vec("[^\u{0}]{0,20}", 0..8).prop_map(|mut argv| {
        argv.insert(0, "true".into());
        argv
    });
    let exec = (
        100..1_000_000_000_i64,
        proptest::option::of(name()),
        argv,
        1..10_000_u64,
        0..10_000_u64,
        any::<bool>(),
    )
        .prop_map(|(vmid, hostname, argv, timeout_s, max_output, stdin)| {
            Verb::PctExec(PctExec { vmid, hostname, argv, timeout_s, max_output, stdin })
        });
    prop_oneof![
        Just(Verb::Hello),
        Just(Verb::KernelList),
        exec,
        any::<bool>().prop_map(|refresh| Verb::UpgradeSimulate { refresh }),
        name().prop_map(|plan| Verb::UpgradeStart { plan }),
        proptest::option::of(name()).prop_map(|cursor| Verb::UpgradeStatus { cursor }),
        (name(), any::<bool>())
            .prop_map(|(version, next_boot)| Verb::KernelPin { version, next_boot }),
        any::<bool>().prop_map(|next_boot| Verb::KernelUnpin { next_boot }),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_dealt_with(data in proptest::collection::vec(any::<u8>(), 0..300)) {
        check(&data);
    }

    #[test]
    fn any_spoilt_request_is_dealt_with(verb in verb(), at in any::<prop::sample::Index>(), byte: u8) {
        let request = Request { id: "a".into(), node: Some("pve1".into()), verb };
        let mut line = request.to_line().unwrap().into_bytes();
        let at = at.index(line.len());
        line[at] = byte;
        check(&line);
    }

    #[test]
    fn a_request_is_read_as_it_was_written(id in "[!-~]{1,30}", verb in verb()) {
        let request = Request { id, node: Some("pve1".into()), verb };
        let line = request.to_line().unwrap();
        prop_assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
        prop_assert_eq!(Request::parse(line.trim_end_matches('\n').as_bytes()).unwrap(), request);
    }

    #[test]
    fn input_and_output_are_read_as_they_were_written(data in proptest::collection::vec(any::<u8>(), 0..1000)) {
        for input in [Input::Data(data.clone()), Input::End, Input::Cancel] {
            prop_assert_eq!(Input::parse(input.to_line().trim_end().as_bytes()).unwrap(), input);
        }
        for reply in [Reply::Stdout(data.clone()), Reply::Stderr(data)] {
            prop_assert_eq!(Reply::parse(reply.to_line().trim_end().as_bytes()).unwrap(), reply);
        }
    }
}

#[test]
fn the_client_cannot_write_what_the_guard_would_refuse() {
    let exec = PctExec {
        vmid: 200,
        hostname: None,
        argv: vec!["true".into()],
        timeout_s: 1,
        max_output: 0,
        stdin: false,
    };
    let request = |exec: PctExec| Request {
        id: "a".into(),
        node: Some("pve1".into()),
        verb: Verb::PctExec(exec),
    };
    let code = |request: Request| request.to_line().unwrap_err().code;
    assert_eq!(code(request(PctExec { vmid: 99, ..exec.clone() })), Code::Argument);
    assert_eq!(code(request(PctExec { argv: vec!["-x".into()], ..exec.clone() })), Code::Argument);
    let hostname = Some("web\nx".into());
    assert_eq!(code(request(PctExec { hostname, ..exec.clone() })), Code::BadRequest);
    assert_eq!(code(Request { node: None, ..request(exec) }), Code::BadRequest);
}

#[test]
fn chunks_are_at_most_64_kib() {
    let fits = Input::Data(vec![0; MAX_CHUNK]);
    assert_eq!(Input::parse(fits.to_line().trim_end().as_bytes()).unwrap(), fits);
    let line = Input::Data(vec![0; MAX_CHUNK + 1]).to_line();
    assert!(Input::parse(line.trim_end().as_bytes()).is_err());
}

#[test]
fn replies_that_are_none_are_no_replies() {
    for line in [
        "",
        "{}",
        "[]",
        "null",
        r#"{"stdout":null}"#,
        r#"{"stdout":"!"}"#,
        r#"{"stdout":"YQ==","stderr":"YQ=="}"#,
        r#"{"stdout":"YQ==","stdout":"YQ=="}"#,
        r#"{"done":1}"#,
        r#"{"done":{"a":1,"a":2}}"#,
        r#"{"refused":{"code":"busy"}}"#,
        r#"{"refused":{"message":"x"}}"#,
        r#"{"finished":{}}"#,
        r#"{"done":{}} x"#,
    ] {
        assert!(Reply::parse(line.as_bytes()).is_err(), "{line}");
    }
}

#[test]
fn a_newer_guard_is_understood() {
    let line = br#"{"refused":{"code":"from_the_future","message":"m","hint":"h"}}"#;
    let refused = Refused { code: Code::Unknown, message: "m".into(), hint: "h".into() };
    assert_eq!(Reply::parse(line).unwrap(), Reply::Refused(refused));
    let done: ExecDone = serde_json::from_value(json!({
        "exit_code": 0, "signal": null, "timed_out": false, "cancelled": false,
        "stdout_bytes": 1, "stderr_bytes": 2, "truncated": false, "background": 0,
        "duration_ms": 3, "something_new": [1],
    }))
    .unwrap();
    assert_eq!((done.exit_code, done.duration_ms), (Some(0), 3));
    let hello = json!({ "version": "9", "protocols": [1, 2] });
    assert!(serde_json::from_value::<Hello>(hello).is_err(), "but nothing may be missing");
}
