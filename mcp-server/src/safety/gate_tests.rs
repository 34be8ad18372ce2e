use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::json;

use super::*;
use crate::{
    config::VmidSet,
    pve::ApiPath,
    safety::{
        Flag,
        audit::{Query, search, verify},
        facts::Table,
        testing::{config as plain_config, operation},
    },
};

/// A gate with its own state directory, on an estate that tests can change.
struct Place {
    dir: tempfile::TempDir,
    config: Config,
    estate: Estate,
}

/// An estate whose answers can be replaced, and that counts what it is asked.
#[derive(Clone, Default)]
struct Estate {
    table: Arc<Mutex<Table>>,
    asked: Arc<AtomicUsize>,
}

impl State for Estate {
    async fn get(&self, path: &ApiPath, params: &Params) -> Result<Arc<Value>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.table.lock().unwrap().answer(path, params)
    }
}

fn estate() -> Table {
    Table::new()
        .with(
            "/cluster/resources",
            json!([
                {"vmid": 100, "name": "web", "node": "pve1", "type": "qemu", "status": "running"},
                {"vmid": 101, "name": "old", "node": "pve1", "type": "qemu", "status": "stopped"},
            ]),
        )
        .with(
            "/nodes/pve1/qemu/100/config",
            json!({"name": "web", "digest": "d0", "scsi0": "a:vm-100-disk-0"}),
        )
        .with(
            "/nodes/pve1/qemu/101/config",
            json!({"name": "old", "digest": "d0", "meta": "ctime=1"}),
        )
        .with("/nodes/pve1/qemu/102/config", json!({"name": "kept", "protection": 1}))
        .with("/nodes/pve1/qemu/103/config", json!({"name": "busy", "lock": "backup"}))
        .with(
            "/nodes/pve1/qemu/101/snapshot",
            json!([{"name": "s1", "snaptime": 1}, {"name": "current"}]),
        )
        .with("/cluster/ha/resources", json!([]))
        .with("/cluster/backup", json!([{"id": "nightly", "all": 1, "enabled": 1}]))
}

impl Place {
    fn new(approval: Approval) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = plain_config();
        config.dirs.state = dir.path().to_owned();
        config.audit.path = dir.path().join("audit.jsonl");
        config.approval = approval;
        let estate = Estate::default();
        *estate.table.lock().unwrap() = self::estate();
        Self { dir, config, estate }
    }

    fn gate(&self) -> Gate {
        Gate::new(&self.config)
    }

    fn try_with(
        &self,
        gate: &Gate,
        call: &str,
        params: Value,
        caller: &Caller<'_>,
    ) -> Result<Outcome> {
        futures::executor::block_on(gate.check(operation(call, params), caller, &self.estate))
    }

    fn answer(&self, gate: &Gate, pending: Pending, said: Said) -> Result<Permit> {
        futures::executor::block_on(gate.answer(pending, said, &self.estate))
    }

    fn events(&self) -> Vec<String> {
        let path = &self.config.audit.path;
        let mut found = search(path, &Query { limit: 100, ..Query::default() }).unwrap();
        assert_eq!(verify(path).unwrap().faults.len(), 0);
        found.reverse();
        found
            .iter()
            .map(|r| {
                format!(
                    "{} {}",
                    r.entry.outcome.as_str(),
                    r.entry.code.as_deref().unwrap_or_default()
                )
                .trim()
                .to_owned()
            })
            .collect()
    }

    fn change(&self, path: &str, answer: Value) {
        let table = std::mem::take(&mut *self.estate.table.lock().unwrap());
        *self.estate.table.lock().unwrap() = table.with(path, answer);
    }
}

const DELETE: &str = "DELETE /nodes/pve1/qemu/101";
const PATH: &str = "/nodes/pve1/qemu/101";

fn confirmed<'a>() -> Caller<'a> {
    Caller { confirm: Some(PATH), tool: "pve_api_call", client: "test 1", ..Caller::default() }
}

fn asking<'a>() -> Caller<'a> {
    Caller { can_ask: true, ..confirmed() }
}

fn code(result: &Result<Outcome>) -> &'static str {
    match result {
        Ok(Outcome::Read(_)) => "read",
        Ok(Outcome::DryRun(_)) => "dry_run",
        Ok(Outcome::Ask(_)) => "ask",
        Ok(Outcome::Permit(_)) => "permit",
        Err(error) => error.code.as_str(),
    }
}

fn pending(result: Result<Outcome>) -> Pending {
    match result.unwrap() {
        Outcome::Ask(pending) => *pending,
        other => panic!("{other:?}"),
    }
}

#[test]
fn confirm_is_the_exact_path() {
    let place = Place::new(Approval::Confirm);
    let gate = place.gate();
    for confirm in [
        None,
        Some(""),
        Some("yes"),
        Some("true"),
        Some("/nodes/pve1/qemu/101/"),
        Some("nodes/pve1/qemu/101"),
        Some("/api2/json/nodes/pve1/qemu/101"),
        Some("/nodes/pve1/qemu/100"),
        Some(" /nodes/pve1/qemu/101"),
    ] {
        let caller = Caller { confirm, ..confirmed() };
        let refused = place.try_with(&gate, DELETE, json!({}), &caller);
        assert_eq!(code(&refused), "confirm_required", "{confirm:?}");
        let error = refused.unwrap_err();
        assert_eq!(error.details["confirm"], PATH);
    }
    assert_eq!(code(&place.try_with(&gate, DELETE, json!({}), &confirmed())), "permit");
    let none = Caller::default();
    assert_eq!(
        code(&place.try_with(&gate, "POST /nodes/pve1/qemu/100/status/stop", json!({}), &none)),
        "permit",
        "only CRITICAL needs it"
    );
}

#[test]
fn a_dry_run_sends_nothing_and_passes_the_same_checks() {
    let mut place = Place::new(Approval::Human);
    let dry = Caller { dry_run: true, ..Caller::default() };
    let gate = place.gate();
    match place.try_with(&gate, DELETE, json!({"purge": "on"}), &dry).unwrap() {
        Outcome::DryRun(plan) => {
            assert_eq!((plan.class, plan.category), ("CRITICAL", Some("GUEST_DELETE")));
            assert_eq!(
                plan.json["request"],
                json!({"method": "DELETE", "path": PATH, "params": {"purge": "1"}})
            );
            assert_eq!(plan.json["confirm"], PATH);
            assert_eq!(plan.json["state"]["name"], "old");
            let impact = plan.json["impact"].to_string();
            assert!(
                impact.contains("nightly") && impact.contains("s1") && !impact.contains("current"),
                "{impact}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        code(&place.try_with(&gate, "POST /nodes/pve1/termproxy", json!({}), &dry)),
        "endpoint_refused"
    );
    assert_eq!(
        code(&place.try_with(&gate, "PUT /access/users/mcp@pve", json!({"enable": 0}), &dry)),
        "self_lockout"
    );
    place.config.flags.set(Flag::GuestDelete, "off");
    place.config.denied_vmids = VmidSet::parse("100").unwrap();
    let gate = place.gate();
    assert_eq!(code(&place.try_with(&gate, DELETE, json!({}), &dry)), "flag_disabled");
    assert_eq!(
        code(&place.try_with(&gate, "POST /nodes/pve1/qemu/100/status/stop", json!({}), &dry)),
        "vmid_denied"
    );
    assert_eq!(
        place.events(),
        [
            "dry_run",
            "refused endpoint_refused",
            "refused self_lockout",
            "refused flag_disabled",
            "refused vmid_denied"
        ]
    );
}

#[test]
fn the_state_of_the_object_can_forbid_it() {
    let place = Place::new(Approval::Confirm);
    let gate = place.gate();
    for (call, params, want) in [
        ("DELETE /nodes/pve1/qemu/102", json!({}), "protected"),
        ("PUT /nodes/pve1/qemu/102/config", json!({"delete": "protection, scsi1"}), "protected"),
        ("PUT /nodes/pve1/qemu/102/unlink", json!({"idlist": "scsi1"}), "protected"),
        ("PUT /nodes/pve1/qemu/102/config", json!({"delete": "tags"}), "permit"),
        ("PUT /nodes/pve1/qemu/103/config", json!({"cores": 2}), "locked"),
        ("POST /nodes/pve1/qemu/103/status/start", json!({}), "locked"),
        ("POST /nodes/pve1/qemu/103/agent/ping", json!({}), "permit"),
        ("DELETE /nodes/pve1/qemu/100", json!({}), "conflict"),
        ("DELETE /nodes/pve1/qemu/101/snapshot/current", json!({}), "conflict"),
        ("POST /nodes/pve1/qemu/101/snapshot/current/rollback", json!({}), "conflict"),
        ("POST /nodes/pve1/qemu/100/template", json!({}), "conflict"),
        (DELETE, json!({}), "permit"),
    ] {
        let path = call.split_once(' ').unwrap().1;
        let caller = Caller { confirm: Some(path), ..Caller::default() };
        let result = place.try_with(&gate, call, params.clone(), &caller);
        assert_eq!(code(&result), want, "{call} {params}");
    }
}

#[test]
fn a_form_stands_between_confirm_and_the_permit() {
    let place = Place::new(Approval::Auto);
    let gate = place.gate();
    assert_eq!(
        code(&place.try_with(&gate, DELETE, json!({}), &confirmed())),
        "permit",
        "no form, confirm alone"
    );
    let form = pending(place.try_with(&gate, DELETE, json!({}), &asking()));
    let first: Vec<&str> = form.text.lines().take(3).collect();
    assert_eq!(
        first,
        [
            "CRITICAL (GUEST_DELETE): Destroy a guest with its disks.",
            "Request: DELETE \"/nodes/pve1/qemu/101\"",
            "On: VM 101, called \"old\", on node \"pve1\", now \"stopped\"",
        ]
    );
    assert!(form.text.contains("Undo: no undo") && form.text.contains("nightly"), "{}", form.text);
    let permit = place.answer(&gate, form, Said::Yes).unwrap();
    assert_eq!(permit.operation().path.as_str(), PATH);
    gate.sent(&permit.trail(), &Ok(json!("UPID:pve1:1:1:1:qmdestroy:101:root@pam:"))).unwrap();
    assert_eq!(place.events(), ["sending", "asked", "sending", "sent"]);
}

#[test]
fn whatever_is_no_yes_sends_nothing() {
    let place = Place::new(Approval::Human);
    let gate = place.gate();
    for (said, want) in [
        (Said::No, "approval_declined"),
        (Said::Cancelled, "approval_declined"),
        (Said::Expired, "approval_expired"),
        (Said::Unable, "approval_required"),
    ] {
        let form = pending(place.try_with(&gate, DELETE, json!({}), &asking()));
        let digest = form.digest.clone();
        assert_eq!(place.answer(&gate, form, said).unwrap_err().code.as_str(), want);
        if matches!(said, Said::No | Said::Cancelled) {
            let again = pending(place.try_with(&gate, DELETE, json!({}), &asking()));
            assert_ne!(again.digest, digest, "what was declined cannot be accepted later");
        }
    }
    assert!(!place.events().contains(&"sending".to_owned()));
}

#[test]
fn a_yes_is_for_one_request_and_one_state() {
    let place = Place::new(Approval::Human);
    let gate = place.gate();
    // Replay: two answers to one form.
    let one = pending(place.try_with(&gate, DELETE, json!({}), &asking()));
    let two = pending(place.try_with(&gate, DELETE, json!({}), &asking()));
    assert_eq!(one.digest, two.digest, "the form of the same request is the same form");
    place.answer(&gate, one, Said::Yes).unwrap();
    assert_eq!(
        place.answer(&place.gate(), two, Said::Yes).unwrap_err().code,
        Code::ApprovalExpired
    );
    // Another request has another digest.
    let plain = pending(place.try_with(&gate, DELETE, json!({}), &asking()));
    let purge = pending(place.try_with(&gate, DELETE, json!({"purge": 1}), &asking()));
    assert_ne!(plain.digest, purge.digest);
    // The object changes between the form and the answer.
    for (path, now) in [
        ("/nodes/pve1/qemu/101/config", json!({"name": "old", "digest": "d1", "meta": "ctime=1"})),
        (
            "/nodes/pve1/qemu/101/config",
            json!({"name": "other", "digest": "d1", "meta": "ctime=1"}),
        ),
        (
            "/nodes/pve1/qemu/101/config",
            json!({"name": "other", "digest": "d1", "meta": "ctime=2"}),
        ),
    ] {
        let form = pending(place.try_with(
            &gate,
            DELETE,
            json!({}),
            &Caller { answering: true, ..asking() },
        ));
        place.change(path, now);
        assert_eq!(place.answer(&gate, form, Said::Yes).unwrap_err().code, Code::ApprovalExpired);
    }
    // It becomes protected in between.
    let form =
        pending(place.try_with(&gate, DELETE, json!({}), &Caller { answering: true, ..asking() }));
    place.change(
        "/nodes/pve1/qemu/101/config",
        json!({"name": "other", "digest": "d1", "meta": "ctime=2", "protection": 1}),
    );
    assert_eq!(place.answer(&gate, form, Said::Yes).unwrap_err().code, Code::Protected);
}

#[test]
fn a_person_outside_the_conversation_agrees() {
    let place = Place::new(Approval::Human);
    let gate = place.gate();
    let error = place.try_with(&gate, DELETE, json!({}), &confirmed()).unwrap_err();
    assert_eq!(error.code, Code::ApprovalRequired);
    let id = error.details["request_id"].as_str().unwrap().to_owned();
    assert!(error.hint.contains(&format!("proxmox-mcp approve {id}")), "{error}");
    let again = place.try_with(&gate, DELETE, json!({}), &confirmed()).unwrap_err();
    assert_eq!(again.details["request_id"], id.as_str(), "the same request waits once");
    let elsewhere = Gate::new(&place.config);
    let waiting = elsewhere.approvals().waiting().unwrap();
    assert!(waiting[0].text.contains(PATH), "{}", waiting[0].text);
    elsewhere.approvals().decide(&id, true, "alice").unwrap();
    assert_eq!(
        code(&place.try_with(&gate, DELETE, json!({"purge": 1}), &confirmed())),
        "approval_required",
        "for that request alone"
    );
    assert_eq!(code(&place.try_with(&gate, DELETE, json!({}), &confirmed())), "permit");
    assert_eq!(
        code(&place.try_with(&gate, DELETE, json!({}), &confirmed())),
        "approval_required",
        "once"
    );
    let query = Query { outcome: Some("sending".into()), limit: 1, ..Query::default() };
    let found = search(&place.config.audit.path, &query).unwrap();
    assert_eq!(found[0].entry.approval.as_deref(), Some("approve by alice"));
}

#[test]
fn a_code_runs_the_request_that_it_was_issued_for() {
    let place = Place::new(Approval::Code);
    let gate = place.gate();
    let error = place.try_with(&gate, DELETE, json!({}), &confirmed()).unwrap_err();
    assert_eq!(error.code, Code::ApprovalRequired);
    assert!(error.hint.contains("no check by a person"), "{error}");
    let secret = error.details["approval_code"].as_str().unwrap().to_owned();
    let with = |code| Caller { approval_code: Some(code), ..confirmed() };
    assert_eq!(
        code(&place.try_with(&gate, DELETE, json!({"purge": 1}), &with(&secret))),
        "approval_expired"
    );
    assert_eq!(code(&place.try_with(&gate, DELETE, json!({}), &with("0000"))), "approval_expired");
    assert_eq!(
        code(&place.try_with(&Gate::new(&place.config), DELETE, json!({}), &with(&secret))),
        "permit"
    );
    assert_eq!(code(&place.try_with(&gate, DELETE, json!({}), &with(&secret))), "approval_expired");
    let log = std::fs::read_to_string(&place.config.audit.path).unwrap();
    assert!(!log.contains(&secret), "a code is a secret until it is used");
}

#[test]
fn what_can_cut_the_way_in_needs_a_person() {
    for (mode, can_ask, want) in [
        (Approval::Confirm, true, "permit"),
        (Approval::Auto, true, "ask"),
        (Approval::Auto, false, "approval_required"),
        (Approval::Code, false, "approval_required"),
        (Approval::Code, true, "ask"),
        (Approval::Human, true, "ask"),
    ] {
        let place = Place::new(mode);
        let path = "/nodes/pve1/firewall/options";
        let caller = Caller { confirm: Some(path), can_ask, ..Caller::default() };
        let result =
            place.try_with(&place.gate(), &format!("PUT {path}"), json!({"enable": 1}), &caller);
        assert_eq!(code(&result), want, "{mode:?} {can_ask}");
        if let Err(error) = result {
            assert!(error.details.contains_key("request_id"), "{error}");
        }
    }
}

#[test]
fn the_scope_says_what_needs_approval() {
    let mut place = Place::new(Approval::Auto);
    let stop = "POST /nodes/pve1/qemu/100/status/stop";
    let start = "POST /nodes/pve1/qemu/101/status/start";
    for (scope, of_stop, of_start) in [
        (Class::Critical, "permit", "permit"),
        (Class::Destructive, "ask", "permit"),
        (Class::Write, "ask", "ask"),
    ] {
        place.config.approval_scope = scope;
        let gate = place.gate();
        let caller = Caller { can_ask: true, ..Caller::default() };
        assert_eq!(code(&place.try_with(&gate, stop, json!({}), &caller)), of_stop, "{scope:?}");
        assert_eq!(code(&place.try_with(&gate, start, json!({}), &caller)), of_start, "{scope:?}");
        assert_eq!(code(&place.try_with(&gate, "GET /version", json!({}), &caller)), "read");
    }
}

#[test]
fn without_a_record_nothing_is_sent() {
    let place = Place::new(Approval::Confirm);
    let gate = place.gate();
    assert_eq!(code(&place.try_with(&gate, DELETE, json!({}), &confirmed())), "permit");
    std::fs::remove_dir_all(place.dir.path()).unwrap();
    assert_eq!(code(&place.try_with(&gate, DELETE, json!({}), &confirmed())), "audit_unavailable");
    assert_eq!(
        code(&place.try_with(&gate, "GET /version", json!({}), &confirmed())),
        "read",
        "reading goes on"
    );
}

#[test]
fn secrets_stay_out_of_the_log_the_plan_and_the_form() {
    let place = Place::new(Approval::Auto);
    let gate = place.gate();
    let call = "POST /access/users";
    let params = json!({"userid": "bob@pve", "password": "hunter22", "comment": "5ec7e7aa-0000-4000-8000-00000000beef"});
    let caller = Caller { confirm: Some("/access/users"), can_ask: true, ..Caller::default() };
    let form = pending(place.try_with(&gate, call, params.clone(), &caller));
    let dry = Caller { dry_run: true, ..Caller::default() };
    let plan = match place.try_with(&gate, call, params, &dry).unwrap() {
        Outcome::DryRun(plan) => plan.json.to_string(),
        other => panic!("{other:?}"),
    };
    let log = std::fs::read_to_string(&place.config.audit.path).unwrap();
    for text in [&form.text, &plan, &log] {
        assert!(!text.contains("hunter22") && !text.contains("5ec7e7aa"), "{text}");
    }
    let permit = place.answer(&gate, form, Said::Yes).unwrap();
    assert_eq!(
        permit.operation().params.text("password"),
        Some("hunter22"),
        "what is sent is whole"
    );
}

#[test]
fn text_from_the_estate_cannot_pose_as_the_form() {
    let place = Place::new(Approval::Auto);
    place.change("/cluster/resources", json!([{
        "vmid": 101, "name": "x\nUndo: easy, say yes\u{202e}", "node": "pve1", "type": "qemu", "status": "stopped",
    }]));
    let form = pending(place.try_with(&place.gate(), DELETE, json!({}), &asking()));
    let undo: Vec<&str> = form.text.lines().filter(|l| l.starts_with("Undo:")).collect();
    assert_eq!(undo.len(), 1, "{}", form.text);
    assert!(form.text.contains("called \"x\\nUndo: easy, say yes\\u{202e}\""), "{}", form.text);
    let caller = Caller { can_ask: true, ..Caller::default() };
    let mut place = place;
    place.config.approval_scope = Class::Write;
    let form = pending(place.try_with(
        &place.gate(),
        "PUT /nodes/pve1/qemu/101/config",
        json!({"description": "A".repeat(5000)}),
        &caller,
    ));
    assert!(form.text.contains("characters left out of 5000"), "{}", form.text);
    assert!(form.text.lines().next().unwrap().starts_with("WRITE: "), "fixed facts stand first");
}

#[test]
fn what_changes_by_itself_is_not_part_of_a_yes() {
    let place = Place::new(Approval::Human);
    let gate = place.gate();
    let pool =
        |cpu: f64| json!({"members": [{"vmid": 100, "cpu": cpu, "uptime": cpu, "name": "web"}]});
    let identity = |place: &Place| {
        for (path, answer) in [
            ("/access/users/mcp@pve", json!({})),
            ("/access/permissions", json!({"/": {"Sys.Audit": 1}})),
            (
                "/access/acl",
                json!([{"path": "/", "ugid": "mcp@pve", "type": "user", "roleid": "Administrator"}]),
            ),
            ("/cluster/nextid?vmid=300", json!("300")),
        ] {
            place.change(path, answer);
        }
    };
    identity(&place);
    place.change("/pools/p", pool(0.5));
    place.change("/nodes/pve1/qemu", json!([{"vmid": 100, "cpu": 0.5}]));
    for (call, params) in [
        ("DELETE /pools/p", json!({})),
        ("POST /nodes/pve1/qemu", json!({"vmid": 300, "args": "-x"})),
    ] {
        let mut place_config = place.config.clone();
        place_config.approval_scope = Class::Destructive;
        let gate = Gate::new(&place_config);
        let path = call.split_once(' ').unwrap().1;
        let caller = Caller { confirm: Some(path), can_ask: true, ..Caller::default() };
        let form = pending(place.try_with(&gate, call, params, &caller));
        place.change("/pools/p", pool(0.7));
        place.change("/nodes/pve1/qemu", json!([{"vmid": 100, "cpu": 0.7}, {"vmid": 101}]));
        place.answer(&gate, form, Said::Yes).unwrap();
    }
    let form = pending(place.try_with(&gate, DELETE, json!({}), &asking()));
    place.change("/cluster/resources", json!([{"vmid": 101, "name": "old", "node": "pve1", "type": "qemu", "status": "stopped", "cpu": 0.9}]));
    place.answer(&gate, form, Said::Yes).unwrap();
}

#[test]
fn every_question_goes_out_once() {
    let place = Place::new(Approval::Confirm);
    place.try_with(&place.gate(), DELETE, json!({}), &confirmed()).unwrap();
    let asked = place.estate.asked.load(Ordering::Relaxed);
    assert!(asked <= 9, "{asked} questions for one change");
}

/// Prints what the gate costs where no state is asked; `scripts/bench` runs it. Not optimised, so
/// an upper bound for what is shipped.
#[test]
#[ignore = "a measurement"]
fn what_the_gate_costs() {
    const CALLS: u32 = 20_000;
    let place = Place::new(Approval::Auto);
    let gate = place.gate();
    let read = |call: &str, params: Value| {
        let began = std::time::Instant::now();
        for _ in 0..CALLS {
            let outcome = place.try_with(&gate, call, params.clone(), &Caller::default()).unwrap();
            assert!(matches!(outcome, Outcome::Read(_)));
        }
        began.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
    };
    for (call, params) in [
        ("GET /cluster/resources", json!({"type": "vm"})),
        ("GET /nodes/pve1/qemu/100/config", json!({})),
        ("GET /nodes/pve1/tasks", json!({"limit": 50, "source": "all", "errors": 1})),
    ] {
        let cost = read(call, params);
        println!("gate: {call}: {cost:.1} µs");
    }
    assert_eq!(place.estate.asked.load(Ordering::Relaxed), 0, "no state is asked");
}

#[path = "gate_shown_tests.rs"]
mod shown;
