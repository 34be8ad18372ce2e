//! What a person is shown, and what their yes holds for.

use super::*;

#[test]
fn a_yes_is_for_what_was_shown_to_hang_on_it() {
    let running = |ids: &[u32]| -> Value {
        ids.iter()
            .map(|id| json!({"vmid": id, "node": "pve1", "type": "qemu", "status": "running"}))
            .collect()
    };
    let zones = "/cluster/sdn/zones?pending=1";
    let prune = "/nodes/pve1/storage/s/prunebackups?prune-backups=keep-last%3D1&vmid=100";
    let backup = |id: u32, mark: &str| json!({"volid": format!("s:backup/{id}"), "mark": mark});
    for (call, params, path, then, now, shown) in [
        (
            "PUT /cluster/sdn",
            json!({}),
            zones,
            json!([{"zone": "first", "state": "new"}]),
            json!([{"zone": "first", "state": "new"}, {"zone": "evil", "state": "new"}]),
            "\"first\" \"new\"",
        ),
        (
            "DELETE /nodes/pve1/storage/s/prunebackups",
            json!({"prune-backups": "keep-last=1", "vmid": 100}),
            prune,
            json!([backup(1, "remove"), backup(2, "keep")]),
            json!([backup(1, "remove"), backup(2, "remove"), backup(3, "keep")]),
            "backup \"s:backup/1\" goes",
        ),
        (
            "PUT /storage/s",
            json!({"disable": 1}),
            "/storage/s",
            json!({"storage": "s", "type": "dir", "digest": "d0"}),
            json!({"storage": "s", "type": "dir", "nodes": "pve1", "digest": "d1"}),
            "Request: PUT",
        ),
        (
            "PUT /storage/s",
            json!({"disable": 1}),
            "/storage/s",
            json!({"storage": "s", "type": "dir"}),
            json!({"storage": "s", "type": "dir", "nodes": "pve1"}),
            "Request: PUT",
        ),
        (
            "POST /nodes/pve1/stopall",
            json!({}),
            "/cluster/resources",
            running(&[100]),
            running(&[100, 112]),
            "1 running guests: 100",
        ),
    ] {
        let place = Place::new(Approval::Human);
        let gate = place.gate();
        place.change(path, then);
        let path_of = call.split_once(' ').unwrap().1;
        let caller = Caller { confirm: Some(path_of), ..asking() };
        let form = pending(place.try_with(&gate, call, params.clone(), &caller));
        assert!(form.text.contains(shown), "{}", form.text);
        place.change(path, now);
        let refused = place.answer(&gate, form, Said::Yes);
        assert_eq!(refused.unwrap_err().code, Code::ApprovalExpired, "{call}");
        let form = pending(place.try_with(&gate, call, params.clone(), &caller));
        assert!(place.answer(&gate, form, Said::Yes).is_ok(), "{call}");
    }
}

#[test]
fn a_yes_stays_good_when_another_object_of_the_same_file_changes() {
    let place = Place::new(Approval::Human);
    let gate = place.gate();
    let storage = |digest: &str| json!({"storage": "s", "type": "dir", "digest": digest});
    for call in ["PUT /storage/s", "DELETE /storage/s"] {
        place.change("/storage/s", storage("d0"));
        let params = if call.starts_with("PUT") { json!({"disable": 1}) } else { json!({}) };
        let caller = Caller { confirm: Some("/storage/s"), ..asking() };
        let form = pending(place.try_with(&gate, call, params, &caller));
        place.change("/storage/s", storage("d1"));
        assert!(place.answer(&gate, form, Said::Yes).is_ok(), "{call}");
    }
}

#[test]
fn how_to_undo_is_told_for_what_is_done() {
    use crate::safety::{Method, impact::undo_hint};
    for (method, template, want) in [
        (Method::Post, "/access/users", "delete it again"),
        (Method::Post, "/access/users/{userid}/token/{tokenid}", "delete it again"),
        (Method::Post, "/cluster/sdn/zones", "delete it again"),
        (Method::Post, "/nodes/{node}/qemu/{vmid}/firewall/rules", "delete it again"),
        (Method::Put, "/access/users/{userid}", "set the former values again"),
        (
            Method::Put,
            "/nodes/{node}/qemu/{vmid}/resize",
            "no undo: a disk grows and never shrinks",
        ),
        (Method::Post, "/nodes/{node}/qemu/{vmid}/status/suspend", "resume the guest"),
        (
            Method::Post,
            "/nodes/{node}/services/{service}/restart",
            "none is needed: the service runs on",
        ),
        (Method::Post, "/nodes/{node}/qemu/{vmid}/snapshot", "delete the snapshot"),
        (Method::Post, "/nodes/{node}/apt/update", "none is needed"),
    ] {
        assert_eq!(undo_hint(method, template), want, "{template}");
    }
}

#[test]
fn what_a_raw_call_destroys_is_looked_at_as_well() {
    let place = Place::new(Approval::Confirm);
    let gate = place.gate();
    place.change(
        "/cluster/resources",
        json!([
            {"vmid": 100, "node": "pve1", "type": "qemu", "status": "running"},
            {"vmid": 102, "node": "pve1", "type": "qemu", "status": "stopped"},
            {"vmid": 212, "node": "pve1", "type": "lxc", "status": "running"},
        ]),
    );
    place.change(
        "/nodes/pve1/lxc/212/config",
        json!({"hostname": "c", "rootfs": "a:vm-212-disk-0"}),
    );
    let content = "DELETE /nodes/pve1/storage/a/content";
    for (call, params, want) in [
        // In use, in both spellings; protected; of no guest; not in use any more.
        (format!("{content}/a:vm-100-disk-0"), json!({}), "conflict"),
        (format!("{content}/vm-100-disk-0"), json!({}), "conflict"),
        (format!("{content}/a:vm-102-disk-0"), json!({}), "protected"),
        (format!("{content}/a:vm-999-disk-0"), json!({}), "permit"),
        (format!("{content}/a:vm-100-disk-7"), json!({}), "permit"),
        // A guest that is replaced.
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 100, "archive": "a:b", "force": 1}),
            "conflict",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 102, "archive": "a:b", "force": "on"}),
            "protected",
        ),
        // A container that runs, whatever is forced.
        ("DELETE /nodes/pve1/lxc/212".to_owned(), json!({"force": 1}), "conflict"),
    ] {
        let path = call.split_once(' ').unwrap().1;
        let caller = Caller { confirm: Some(path), ..Caller::default() };
        let result = place.try_with(&gate, &call, params.clone(), &caller);
        assert_eq!(code(&result), want, "{call} {params}");
    }
}
