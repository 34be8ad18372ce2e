use serde_json::json;

use super::{reading::*, *};

fn log(dir: &Path) -> Audit {
    Audit { path: Some(dir.join("audit.jsonl")), max_size: MAX_SIZE }
}

fn record(tool: &str, vmid: u32) -> Record {
    json!({"tool": tool, "vmids": [vmid], "class": "WRITE", "code": "read_only"}).as_object().unwrap().clone()
}

fn faults(audit: &Audit) -> Vec<String> {
    verify(audit.path().unwrap()).unwrap().faults.into_iter().map(|f| f.what).collect()
}

#[test]
fn the_chain_holds_and_the_files_are_the_owners() {
    let dir = tempfile::tempdir().unwrap();
    files::private_dir(&dir.path().join("state")).unwrap();
    let audit = log(&dir.path().join("state"));
    for n in 1..=3 {
        audit.write(Event::Done, record("pve_guest_start", 100 + n)).unwrap();
    }
    let found = verify(audit.path().unwrap()).unwrap();
    assert_eq!((found.records, found.faults.len()), (3, 0));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(audit.path().unwrap()), mode(&dir.path().join("state"))), (0o600, 0o700));
    }
}

#[test]
fn changed_missing_and_torn_records_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let audit = log(dir.path());
    let path = audit.path().unwrap().to_owned();
    for n in 1..=4 {
        audit.write(Event::Done, record("t", n)).unwrap();
    }
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let rewrite = |text: String| fs::write(&path, text).unwrap();

    rewrite(whole.replacen("\"vmids\":[2]", "\"vmids\":[9]", 1));
    assert_eq!(faults(&audit), ["record 2 was changed after it was written"]);
    rewrite(format!("{}\n{}\n{}\n", lines[0], lines[2], lines[3]));
    assert_eq!(faults(&audit), ["record 1 is followed by 3: some are missing"]);
    rewrite(format!("{}\n{}\n{}\n", lines[1], lines[2], lines[3]));
    assert_eq!(faults(&audit), ["the log begins with record 2: older files are missing"]);
    rewrite(format!("{}\n{}\n{}\n", lines[0], lines[1], lines[2]));
    assert_eq!(faults(&audit), ["the log ends with record 3, and 4 were written"]);
    rewrite(whole.replacen("\"vmids\":[4]", "\"vmids\":[5]", 1));
    assert_eq!(faults(&audit), ["record 4 was changed after it was written"]);
    fs::remove_file(&path).unwrap();
    assert_eq!(faults(&audit), ["the log is empty or gone, and 4 records were written"]);

    rewrite(whole[..whole.len() - 20].to_owned());
    audit.write(Event::Done, record("t", 5)).unwrap();
    let found = faults(&audit);
    assert_eq!(found[0], "the record is torn or no record");
    assert!(fs::read_to_string(&path).unwrap().lines().last().unwrap().contains("\"seq\":5"));
}

#[test]
fn a_full_file_is_put_aside_and_the_chain_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit { max_size: 500, ..log(dir.path()) };
    for n in 1..=20 {
        audit.write(Event::Done, record("t", n)).unwrap();
    }
    let found = verify(audit.path().unwrap()).unwrap();
    assert!(found.files.len() > 5, "{:?}", found.files);
    assert_eq!((found.records, found.faults.len()), (20, 0));
    let (newest, total) = search(audit.path().unwrap(), &Filter::default(), 3).unwrap();
    let seqs: Vec<u64> = newest.iter().map(|r| r["seq"].as_u64().unwrap()).collect();
    assert_eq!((seqs, total), (vec![20, 19, 18], 20));
    fs::remove_file(&found.files[2]).unwrap();
    assert_eq!(faults(&audit).len(), 1);
}

#[test]
fn many_writers_keep_one_chain() {
    let dir = tempfile::tempdir().unwrap();
    let audit = log(dir.path());
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let audit = audit.clone();
            scope.spawn(move || {
                for n in 0..25 {
                    audit.write(Event::Done, record("t", writer * 100 + n)).unwrap();
                }
            });
        }
    });
    let found = verify(audit.path().unwrap()).unwrap();
    assert_eq!((found.records, found.faults.len()), (100, 0));
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("a").join("b").join("audit.jsonl");
    let audit = Audit { path: Some(gone), max_size: MAX_SIZE };
    assert_eq!(audit.write(Event::Sending, Record::new()).unwrap_err().code, Code::AuditUnavailable);
    let is_dir = Audit { path: Some(dir.path().to_owned()), max_size: MAX_SIZE };
    assert_eq!(is_dir.write(Event::Sending, Record::new()).unwrap_err().code, Code::AuditUnavailable);
    let vanished = log(dir.path());
    vanished.write(Event::Sending, Record::new()).unwrap();
    dir.close().unwrap();
    assert_eq!(vanished.write(Event::Sending, Record::new()).unwrap_err().code, Code::AuditUnavailable);
    let off = Audit { path: None, max_size: MAX_SIZE };
    off.write(Event::Sending, Record::new()).unwrap();
}

#[test]
fn a_search_finds_by_tool_guest_class_outcome_time_and_text() {
    let dir = tempfile::tempdir().unwrap();
    let audit = log(dir.path());
    audit.write(Event::Refused, record("pve_guest_stop", 100)).unwrap();
    audit.write(Event::Done, record("pve_guest_start", 101)).unwrap();
    let count = |filter: Filter| search(audit.path().unwrap(), &filter, 10).unwrap().1;
    assert_eq!(count(Filter { tool: Some("pve_guest_stop".into()), ..Filter::default() }), 1);
    assert_eq!(count(Filter { vmid: Some(101), ..Filter::default() }), 1);
    assert_eq!(count(Filter { class: Some("write".into()), ..Filter::default() }), 2);
    assert_eq!(count(Filter { outcome: Some("refused".into()), ..Filter::default() }), 1);
    assert_eq!(count(Filter { outcome: Some("read_only".into()), ..Filter::default() }), 2);
    assert_eq!(count(Filter { text: Some("GUEST_ST".into()), ..Filter::default() }), 2);
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3600);
    assert_eq!(count(Filter { since: Some(later), ..Filter::default() }), 0);
}
