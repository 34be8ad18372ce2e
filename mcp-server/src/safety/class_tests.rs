use serde_json::{Value, json};

use super::*;
use crate::safety::{facts::Table, rules, testing::operation};

#[path = "class_field_cases.rs"]
mod field_cases;

/// The class with its categories, `NEVER` with its code, or the code of a refused parameter.
fn told(found: &Classification) -> String {
    if let Some(never) = &found.never {
        return format!("NEVER {}", never.code.as_str());
    }
    if let Err(error) = &found.params {
        return error.code.as_str().to_owned();
    }
    let categories: Vec<_> = found.categories.iter().map(|f| f.category()).collect();
    [found.class.as_str(), &categories.join(" ")].join(" ").trim().to_owned()
}

/// With nobody to ask.
fn blind(call: &str, params: Value) -> String {
    told(&classify(&operation(call, params), &Facts::default()))
}

/// With a node that answers from a table.
fn seeing(state: &Table, call: &str, params: Value) -> String {
    let op = operation(call, params);
    let mut facts = Facts::default();
    let found = futures::executor::block_on(facts.settle(state, |facts| classify(&op, facts)));
    told(&found)
}

#[test]
fn every_write_method_of_the_api_has_a_class_of_its_own() {
    let mut writes = 0;
    for endpoint in API.endpoints() {
        for method in [Method::Post, Method::Put, Method::Delete] {
            if let Some(action) = endpoint.action(method) {
                assert!(action.rule.is_some(), "{} {}", method.as_str(), endpoint.template);
                writes += 1;
            }
        }
    }
    assert_eq!(writes, 328, "the table has every write of the API description");
}

#[test]
fn every_row_of_the_table_is_reached() {
    for row in rules::paths() {
        let endpoint = API.endpoints().find(|e| e.template == row.path);
        let action = endpoint.and_then(|e| e.action(row.method));
        assert!(action.is_some_and(|a| a.rule.is_some_and(|r| std::ptr::eq(r, row))), "{row:?}");
    }
    for row in rules::params() {
        let reached = API.endpoints().any(|e| {
            Method::ALL
                .iter()
                .filter_map(|m| e.action(*m))
                .any(|a| a.param_rules.iter().any(|r| std::ptr::eq(*r, row)))
        });
        assert!(reached, "{row:?}");
    }
}

#[test]
fn what_the_api_does_not_have_is_critical() {
    for (call, want) in [
        ("GET /nodes/pve1/secrets", "CRITICAL UNKNOWN"),
        ("POST /nodes/pve1/secrets", "CRITICAL UNKNOWN"),
        ("PUT /nodes/pve1/status", "CRITICAL UNKNOWN"),
        ("DELETE /version", "CRITICAL UNKNOWN"),
        ("POST /nodes/pve1/qemu/100/status/hibernate", "CRITICAL UNKNOWN"),
        ("GET /Nodes/pve1/status", "CRITICAL UNKNOWN"),
        ("GET /nodes/pve1/STATUS", "CRITICAL UNKNOWN"),
        ("GET /nodes/pve1/status;x", "CRITICAL UNKNOWN"),
        ("PUT /nodes/pve1/qemu/100/agent/exec", "NEVER endpoint_refused"),
        ("GET /nodes/pve1/lxc/200/agent/file-read", "NEVER endpoint_refused"),
        ("POST /nodes/pve1/qemu/100/some/new/termproxy", "NEVER endpoint_refused"),
        ("GET /version", "READ"),
        ("GET /nodes/localhost/status", "READ"),
        ("GET /cluster/resources", "READ"),
        ("GET /cluster/sdn/dry-run", "READ"),
        ("GET /nodes/pve1/storage/s/content/s:iso/x.iso", "READ"),
        ("GET /nodes/pve1/storage/s/prunebackups", "READ"),
    ] {
        assert_eq!(blind(call, Value::Null), want, "{call}");
    }
}

/// The estate of the tests: VM 100 with a disk, an ISO image and a firewalled
/// interface, an unprivileged container 200 and a privileged one, 201.
fn estate() -> Table {
    Table::new()
        .with("/nodes/pve1/qemu/100/config", json!({
            "scsi0": "local-lvm:vm-100-disk-0,size=32G", "ide2": "local:iso/d.iso,media=cdrom",
            "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,tag=5", "boot": "order=scsi0;ide2;net0",
            "agent": "1", "name": "web", "citype": "nocloud",
        }))
        .with("/nodes/pve1/lxc/200/config", json!({
            "unprivileged": 1, "rootfs": "local-lvm:vm-200-disk-0,size=8G", "mp0": "local-lvm:vm-200-disk-1,mp=/data,backup=1",
            "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,ip=dhcp",
        }))
        .with("/nodes/pve1/lxc/201/config", json!({"rootfs": "local-lvm:vm-201-disk-0,size=8G"}))
        .with("/cluster/resources", json!([{"vmid": 100}, {"vmid": "200"}, {"vmid": 201}]))
        .with("/cluster/nextid?vmid=300", json!("300"))
        .with("/nodes/pve1/vzdump/defaults?storage=keep", json!({"prune-backups": "keep-all=1"}))
        .with("/nodes/pve1/vzdump/defaults?storage=prune", json!({"prune-backups": "keep-last=1"}))
        .with("/nodes/pve1/vzdump/extractconfig?volume=local%3Abackup%2Fvzdump-qemu-101-x.vma",
            json!("name: web\nscsi0: local-lvm:vm-101-disk-0,size=1G\n"))
        .with("/nodes/pve1/vzdump/extractconfig?volume=local%3Abackup%2Fvzdump-qemu-102-x.vma", json!("args: -x\n"))
        .with("/nodes/pve1/vzdump/extractconfig?volume=local%3Abackup%2Fvzdump-lxc-200-x.tar",
            json!("unprivileged: 1\nrootfs: a:vm-200-disk-0\n"))
        .with("/nodes/pve1/vzdump/extractconfig?volume=local%3Abackup%2Fvzdump-lxc-201-x.tar",
            json!("arch: amd64\nmp0: /etc,mp=/x\n"))
        .with("/access/acl", json!([{"path": "/pool/prod/", "ugid": "ops@pve", "type": "user", "roleid": "PVEVMUser"}]))
        .with("/cluster/ha/rules", json!([
            {"rule": "r1", "type": "resource-affinity", "affinity": "positive", "resources": "vm:100,ct:200"},
            {"rule": "r2", "type": "resource-affinity", "affinity": "negative", "resources": "ct:201,vm:101"},
        ]))
        .with(
            "/cluster/status",
            json!([{"type": "node", "name": "pve1", "ip": "192.0.2.1"}, {"type": "node", "name": "pve2", "ip": "2001:db8::2"}]),
        )
        .with("/nodes/pve1/storage/local/content", json!([{"volid": "local:iso/d.iso"}]))
        .with("/storage/keep", json!({"prune-backups": "keep-all=1"}))
        .with("/storage/prune", json!({"prune-backups": "keep-last=1"}))
}

#[test]
fn the_state_of_the_estate_decides() {
    let state = estate();
    let (q, l, p) = (
        "PUT /nodes/pve1/qemu/100/config",
        "PUT /nodes/pve1/lxc/200/config",
        "PUT /nodes/pve1/lxc/201/config",
    );
    for (call, params, want) in [
        (q, json!({"scsi1": "local-lvm:8"}), "WRITE"),
        (q, json!({"scsi0": "local-lvm:vm-100-disk-0,iothread=1"}), "WRITE"),
        (q, json!({"scsi0": "iothread=1,volume=local-lvm:vm-100-disk-0"}), "WRITE"),
        (q, json!({"scsi0": "local-lvm:8"}), "DESTRUCTIVE"),
        (q, json!({"scsi1": "local-lvm:vm-101-disk-0"}), "CRITICAL GUEST_CREDENTIALS"),
        (
            q,
            json!({"scsi1": "local-zfs:base-100-disk-0/vm-101-disk-0"}),
            "CRITICAL GUEST_CREDENTIALS",
        ),
        (q, json!({"scsi1": "local:101/vm-100-disk-5.raw"}), "CRITICAL GUEST_CREDENTIALS"),
        (q, json!({"unused0": "local-lvm:vm-101-disk-0"}), "CRITICAL GUEST_CREDENTIALS"),
        (q, json!({"ide2": "local:iso/d.iso,media=cdrom"}), "WRITE"),
        (q, json!({"cdrom": "local:iso/d.iso"}), "WRITE"),
        (q, json!({"cdrom": "local:iso/evil.iso"}), "CRITICAL GUEST_CREDENTIALS"),
        (q, json!({"ide2": "media=CDROM,file=local:iso/evil.iso"}), "CRITICAL GUEST_CREDENTIALS"),
        (q, json!({"ide0": "local:iso/d.iso"}), "CRITICAL GUEST_CREDENTIALS"),
        (q, json!({"ide2": "none,media=cdrom"}), "DESTRUCTIVE"),
        (q, json!({"ide0": "local-lvm:cloudinit"}), "WRITE"),
        (
            q,
            json!({"net0": "virtio=bc:24:11:00:00:01,bridge=vmbr0,firewall=on,tag=5,rate=10"}),
            "WRITE",
        ),
        (q, json!({"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=5"}), "DESTRUCTIVE"),
        (q, json!({"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1"}), "DESTRUCTIVE"),
        (q, json!({"net0": "virtio,bridge=vmbr0,firewall=1,tag=5"}), "DESTRUCTIVE"),
        (q, json!({"net1": "virtio,bridge=vmbr0"}), "WRITE"),
        (q, json!({"net1": "virtio,bridge=vmbr0,trunks=1-4094"}), "DESTRUCTIVE"),
        (q, json!({"boot": "order=scsi0;ide2;net0"}), "WRITE"),
        (q, json!({"boot": "order=scsi0;net0"}), "DESTRUCTIVE"),
        (q, json!({"boot": "order=net0;scsi0"}), "CRITICAL GUEST_CREDENTIALS"),
        (q, json!({"boot": "order=ide2;scsi0"}), "CRITICAL GUEST_CREDENTIALS"),
        (q, json!({"boot": "order=net0"}), "CRITICAL GUEST_CREDENTIALS"),
        (q, json!({"boot": "ncd"}), "CRITICAL GUEST_CREDENTIALS"),
        (q, json!({"boot": "legacy=cdn"}), "DESTRUCTIVE"),
        (q, json!({"bootdisk": "ide2"}), "CRITICAL GUEST_CREDENTIALS"),
        (q, json!({"bootdisk": "scsi1"}), "DESTRUCTIVE"),
        (q, json!({"agent": "enabled=1,fstrim_cloned_disks=1"}), "WRITE"),
        (q, json!({"agent": "0"}), "DESTRUCTIVE"),
        (q, json!({"agent": "no"}), "DESTRUCTIVE"),
        (q, json!({"agent": "1,guest-fsfreeze=off"}), "DESTRUCTIVE"),
        (q, json!({"agent": "1,freeze-fs-on-backup=0"}), "DESTRUCTIVE"),
        (q, json!({"agent": "1,type=isa"}), "DESTRUCTIVE"),
        (q, json!({"citype": "nocloud"}), "WRITE"),
        (q, json!({"citype": "configdrive2"}), "DESTRUCTIVE"),
        (q, json!({"startup": "order=1,up=3600"}), "WRITE"),
        (q, json!({"startup": "1,down=3601"}), "DESTRUCTIVE"),
        (l, json!({"features": "nesting=1"}), "WRITE"),
        (p, json!({"features": "nesting=1"}), "CRITICAL GUEST_HOST_ACCESS"),
        (l, json!({"mp0": "local-lvm:vm-200-disk-1,mp=/data,backup=1"}), "WRITE"),
        (l, json!({"mp0": "local-lvm:vm-200-disk-1,mp=/data"}), "DESTRUCTIVE"),
        (l, json!({"mp1": "local-lvm:4,mp=/more,backup=0"}), "WRITE"),
        (l, json!({"mp1": "local-lvm:vm-201-disk-0,mp=/more"}), "CRITICAL GUEST_CREDENTIALS"),
        (
            l,
            json!({"net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,ip=dhcp,firewall=1"}),
            "WRITE",
        ),
        (
            l,
            json!({"net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,ip=192.0.2.7/24"}),
            "DESTRUCTIVE",
        ),
        (
            "POST /nodes/pve1/qemu",
            json!({"vmid": 300, "archive": "local:backup/vzdump-qemu-101-x.vma"}),
            "WRITE",
        ),
        (
            "POST /nodes/pve1/qemu",
            json!({"vmid": 100, "archive": "local:backup/vzdump-qemu-101-x.vma"}),
            "CRITICAL GUEST_RESTORE_OVERWRITE",
        ),
        (
            "POST /nodes/pve1/qemu",
            json!({"vmid": 300, "archive": "local:backup/vzdump-qemu-102-x.vma"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (
            "POST /nodes/pve1/qemu",
            json!({"vmid": 300, "archive": "local:backup/vzdump-qemu-101-x.vma", "ciuser": "x"}),
            "CRITICAL GUEST_CREDENTIALS",
        ),
        (
            "POST /nodes/pve1/lxc",
            json!({"vmid": 300, "restore": 1, "ostemplate": "local:backup/vzdump-lxc-200-x.tar"}),
            "WRITE",
        ),
        (
            "POST /nodes/pve1/lxc",
            json!({"vmid": 300, "restore": 1, "ostemplate": "local:backup/vzdump-lxc-200-x.tar", "unprivileged": "no"}),
            "CRITICAL PRIVILEGED_CONTAINER",
        ),
        (
            "POST /nodes/pve1/lxc",
            json!({"vmid": 300, "restore": 1, "ostemplate": "local:backup/vzdump-lxc-200-x.tar", "password": "x"}),
            "CRITICAL GUEST_CREDENTIALS",
        ),
        (
            "POST /nodes/pve1/lxc",
            json!({"vmid": 300, "restore": 1, "ostemplate": "local:backup/vzdump-lxc-201-x.tar"}),
            "CRITICAL PRIVILEGED_CONTAINER GUEST_HOST_ACCESS",
        ),
        ("POST /nodes/pve1/vzdump", json!({"vmid": 100, "storage": "keep"}), "WRITE"),
        (
            "POST /nodes/pve1/vzdump",
            json!({"vmid": 100, "storage": "prune"}),
            "CRITICAL VOLUME_DELETE",
        ),
        (
            "POST /nodes/pve1/vzdump",
            json!({"vmid": 100, "storage": "prune", "remove": "no"}),
            "WRITE",
        ),
        ("POST /cluster/backup", json!({"storage": "keep", "all": 1}), "WRITE"),
        ("POST /cluster/backup", json!({"storage": "prune", "all": 1}), "DESTRUCTIVE"),
        ("PUT /cluster/backup/j", json!({"remove": "on", "comment": "x"}), "DESTRUCTIVE"),
        ("PUT /pools", json!({"poolid": "prod", "vms": 100}), "CRITICAL ACCESS_CONTROL"),
        ("PUT /pools", json!({"poolid": "prod/web", "vms": 100}), "CRITICAL ACCESS_CONTROL"),
        ("PUT /pools", json!({"poolid": "production", "vms": 100}), "WRITE"),
        ("PUT /pools/test", json!({"vms": 100, "delete": "true"}), "DESTRUCTIVE"),
        ("POST /nodes/pve1/qemu/100/clone", json!({"newid": 300, "pool": "prod"}), "DESTRUCTIVE"),
        ("POST /nodes/pve1/qemu/100/migrate", json!({"target": "pve2"}), "CRITICAL HA"),
        ("POST /cluster/ha/resources/ct:200/migrate", json!({"node": "pve2"}), "CRITICAL HA"),
        ("POST /cluster/ha/resources/200/relocate", json!({"node": "pve2"}), "CRITICAL HA"),
        ("POST /nodes/pve1/lxc/201/migrate", json!({"target": "pve2"}), "WRITE"),
        (
            "POST /nodes/pve1/lxc/201/migrate",
            json!({"target": "pve2", "restart": 1}),
            "DESTRUCTIVE",
        ),
        (
            "POST /nodes/pve1/storage/local/download-url",
            json!({"url": "https://e.test/x", "filename": "new.iso", "content": "iso"}),
            "WRITE",
        ),
        (
            "POST /nodes/pve1/storage/local/download-url",
            json!({"url": "https://e.test/x", "filename": "../d.iso", "content": "iso"}),
            "DESTRUCTIVE",
        ),
        (
            "POST /nodes/pve1/storage/local/download-url",
            json!({"url": "https://e.test/x", "filename": "n.tar", "content": "vztmpl"}),
            "DESTRUCTIVE",
        ),
        (
            "GET /nodes/pve1/query-url-metadata",
            json!({"url": "https://192.0.2.1:8006/x"}),
            "NEVER target_refused",
        ),
        (
            "GET /nodes/pve1/query-url-metadata",
            json!({"url": "https://[2001:DB8:0::2]/x"}),
            "NEVER target_refused",
        ),
        (
            "GET /nodes/pve1/query-url-metadata",
            json!({"url": "https://PVE2./x"}),
            "NEVER target_refused",
        ),
        ("GET /nodes/pve1/query-url-metadata", json!({"url": "https://192.0.2.10/x"}), "WRITE"),
        (
            "POST /nodes/pve1/storage/local/upload",
            json!({"filename": "d.iso", "content": "iso"}),
            "DESTRUCTIVE",
        ),
    ] {
        assert_eq!(seeing(&state, call, params.clone()), want, "{call} {params}");
    }
}

#[test]
fn what_is_sent_is_what_was_judged() {
    let found = classify(
        &operation(
            "PUT /nodes/pve1/qemu/100/config",
            json!({"onboot": "YES", "delete": ["tags", "net0;x"], "vmid": 100, "cores": [2]}),
        ),
        &Facts::default(),
    );
    assert_eq!(
        found.params.unwrap().to_json(),
        json!({"onboot": "1", "delete": "tags,net0,x", "cores": "2"})
    );
}

#[test]
fn changes_that_can_cut_the_way_in_are_marked() {
    for (call, params, want) in [
        ("PUT /nodes/pve1/firewall/options", json!({"enable": 1}), true),
        (
            "POST /cluster/firewall/rules",
            json!({"type": "in", "action": "DROP", "dport": "8006"}),
            true,
        ),
        ("POST /cluster/firewall/ipset/management", json!({"cidr": "192.0.2.1"}), true),
        ("POST /cluster/firewall/ipset/web", json!({"cidr": "192.0.2.1"}), false),
        ("POST /cluster/firewall/ipset", json!({"name": "x", "rename": "Management"}), true),
        ("PUT /cluster/firewall/aliases/local_network", json!({"cidr": "192.0.2.0/24"}), true),
        ("PUT /nodes/pve1/network", json!({}), true),
        ("DELETE /nodes/pve1/network", json!({}), false),
        ("POST /nodes/pve1/certificates/custom", json!({}), true),
        ("POST /nodes/pve1/services/sshd/stop", json!({}), true),
        ("POST /nodes/pve1/services/chrony/stop", json!({}), false),
        ("POST /nodes/pve1/hosts", json!({"data": "x"}), true),
        ("DELETE /cluster/config/nodes/pve1", json!({}), true),
        ("GET /nodes/pve1/network", json!({}), false),
        ("POST /nodes/pve1/qemu/100/status/stop", json!({}), false),
    ] {
        assert_eq!(
            classify(&operation(call, params), &Facts::default()).may_cut_access,
            want,
            "{call}"
        );
    }
}

/// Bypasses that an outsider found; each stays shut.
#[test]
fn bypasses_that_were_found_once() {
    let q = "/nodes/pve1/qemu/112";
    for (call, params, want) in [
        (format!("PUT {q}/unlink"), json!({"idlist": "unused0"}), "CRITICAL VOLUME_DELETE"),
        (format!("PUT {q}/unlink"), json!({"idlist": "scsi1;Unused3"}), "CRITICAL VOLUME_DELETE"),
        (
            format!("PUT {q}/config"),
            json!({"scsi30": "nfs:900/base-900-disk-0.qcow2/112/vm-112-disk-0.qcow2"}),
            "CRITICAL GUEST_CREDENTIALS",
        ),
    ] {
        assert_eq!(blind(&call, params.clone()), want, "{call} {params}");
    }
    for url in [
        "http://127.0.0.{{ x }}/",
        "http://{{ secrets.h }}/x",
        "{{ secrets.u }}",
        "http:127.0.0.1",
        "HTTPS:localhost/x",
    ] {
        let params = json!({"name": "w", "url": url, "method": "post"});
        let told = blind("POST /cluster/notifications/endpoints/webhook", params);
        assert_eq!(told, "NEVER target_refused", "{url}");
    }
}
