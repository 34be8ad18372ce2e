use serde_json::{Value, json};

use super::*;
use crate::safety::{facts::Table, rules, testing::operation};

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

/// The rows of the field cases, C and CE, and their kinds in other spellings.
#[test]
fn field_cases() {
    let q = "/nodes/pve1/qemu/100";
    let l = "/nodes/pve1/lxc/200";
    for (call, params, want) in [
        // C01
        (
            "POST /nodes/pve1/%73tatus".to_owned(),
            json!({"command": "reboot"}),
            "CRITICAL NODE_POWER",
        ),
        (
            "POST /nodes/pve1%2Fstatus".to_owned(),
            json!({"command": "reboot"}),
            "CRITICAL NODE_POWER",
        ),
        (
            "POST nodes/pve1/status".to_owned(),
            json!({"command": "shutdown"}),
            "CRITICAL NODE_POWER",
        ),
        ("POST /api2/json/nodes/pve1/status".to_owned(), json!({}), "CRITICAL NODE_POWER"),
        // W11 to W13
        ("GET /nodes/pve1%2Fqemu%2F100%2Fagent%2Fget-users".to_owned(), json!({}), "READ"),
        (
            "GET /nodes/pve1%2Fqemu%2F100%2Fagent%2Ffile-read".to_owned(),
            json!({}),
            "NEVER endpoint_refused",
        ),
        (
            "PUT /nodes/pve1%2Fqemu%2F100/config".to_owned(),
            json!({"args": "-x"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        // C09, C11
        (format!("PUT {q}/config"), json!({"delete": "net0"}), "DESTRUCTIVE"),
        (format!("PUT {q}/config"), json!({"delete": "description, scsi1"}), "DESTRUCTIVE"),
        (format!("PUT {q}/config"), json!({"delete": ["description", "lock"]}), "DESTRUCTIVE"),
        (format!("PUT {q}/config"), json!({"delete": "protection"}), "DESTRUCTIVE"),
        (format!("PUT {q}/config"), json!({"delete": "description"}), "WRITE"),
        (format!("PUT {q}/config"), json!({"description": "x\ny"}), "WRITE"),
        (format!("PUT {q}/config"), json!({"delete": "unused0"}), "CRITICAL VOLUME_DELETE"),
        (
            format!("PUT {l}/config"),
            json!({"delete": "description;unused12"}),
            "CRITICAL VOLUME_DELETE",
        ),
        (format!("POST {q}/config"), json!({"delete": "a\u{0}unused0"}), "CRITICAL VOLUME_DELETE"),
        (format!("POST {q}/config"), json!({"delete": "vmstate"}), "CRITICAL VOLUME_DELETE"),
        (
            format!("PUT {q}/config"),
            json!({"delete": "scsi1", "force": "Yes"}),
            "CRITICAL VOLUME_DELETE",
        ),
        // C12
        (format!("PUT {q}/unlink"), json!({"idlist": "scsi1"}), "DESTRUCTIVE"),
        (format!("PUT {q}/unlink"), json!({"idlist": "scsi1", "force": "off"}), "DESTRUCTIVE"),
        (
            format!("PUT {q}/unlink"),
            json!({"idlist": "scsi1", "force": "tRue"}),
            "CRITICAL VOLUME_DELETE",
        ),
        (
            format!("PUT {q}/unlink"),
            json!({"idlist": "scsi1", "force": [1]}),
            "CRITICAL VOLUME_DELETE",
        ),
        (
            format!("PUT {q}/unlink"),
            json!({"idlist": "scsi1", "force": "maybe"}),
            "invalid_argument",
        ),
        // C13
        (format!("POST {q}/agent"), json!({"command": "shutdown"}), "DESTRUCTIVE"),
        (format!("POST {q}/agent"), json!({"command": "suspend-disk"}), "DESTRUCTIVE"),
        (format!("POST {q}/agent"), json!({"command": "fsfreeze-freeze"}), "DESTRUCTIVE"),
        (format!("POST {q}/agent"), json!({"command": "frobnicate"}), "DESTRUCTIVE"),
        (format!("POST {q}/agent"), json!({}), "DESTRUCTIVE"),
        (format!("POST {q}/agent"), json!({"command": ["ping"]}), "WRITE"),
        (format!("POST {q}/agent"), json!({"command": "ping"}), "WRITE"),
        (format!("POST {q}/agent"), json!({"command": "exec"}), "NEVER endpoint_refused"),
        // C15, CE14
        (format!("POST {q}/status/shutdown"), json!({"forceStop": "on"}), "DESTRUCTIVE"),
        (format!("POST {q}/status/stop"), json!({"overrule-shutdown": 1}), "DESTRUCTIVE"),
        (format!("POST {q}/status/stop"), json!({"forceStop": 1}), "DESTRUCTIVE"),
        (format!("POST {q}/status/reset"), json!({"skiplock": true}), "DESTRUCTIVE"),
        (format!("POST {q}/status/suspend"), json!({"todisk": 1}), "DESTRUCTIVE"),
        (format!("POST {q}/status/start"), json!({}), "WRITE"),
        (format!("POST {q}/status/start"), json!({"skiplock": "yes"}), "DESTRUCTIVE"),
        (format!("POST {q}/status/start"), json!({"stateuri": "tcp"}), "NEVER endpoint_refused"),
        (format!("POST {q}/status/start"), json!({"force-cpu": "x"}), "NEVER endpoint_refused"),
        (format!("POST {q}/status/resume"), json!({"nocheck": "ON"}), "NEVER endpoint_refused"),
        (format!("POST {q}/status/resume"), json!({"nocheck": "no"}), "WRITE"),
        (format!("POST {q}/status/stop"), json!({"keepActive": 0}), "NEVER endpoint_refused"),
        // C23, CE36 (nobody to ask: the retention may delete)
        ("POST /nodes/pve1/vzdump".to_owned(), json!({"vmid": 100, "remove": 0}), "WRITE"),
        ("POST /nodes/pve1/vzdump".to_owned(), json!({"vmid": 100}), "CRITICAL VOLUME_DELETE"),
        (
            "POST /nodes/pve1/vzdump".to_owned(),
            json!({"vmid": 100, "remove": "False", "mode": "stop"}),
            "DESTRUCTIVE",
        ),
        (
            "POST /nodes/pve1/vzdump".to_owned(),
            json!({"remove": 0, "prune-backups": "keep-last=1"}),
            "CRITICAL VOLUME_DELETE",
        ),
        (
            "POST /nodes/pve1/vzdump".to_owned(),
            json!({"remove": 0, "script": "/x"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (
            "POST /nodes/pve1/vzdump".to_owned(),
            json!({"remove": 0, "tmpdir": "/x"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (
            "POST /nodes/pve1/vzdump".to_owned(),
            json!({"remove": 0, "stop": "on"}),
            "CRITICAL JOBS_AND_NOTIFICATIONS",
        ),
        ("POST /nodes/pve1/vzdump".to_owned(), json!({"stdout": 1}), "NEVER endpoint_refused"),
        // C27
        (format!("PUT {l}/config"), json!({"mp0": "/etc,mp=/x"}), "CRITICAL GUEST_HOST_ACCESS"),
        (
            format!("PUT {l}/config"),
            json!({"mp0": "mp=/x,volume=/etc"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (
            format!("PUT {l}/config"),
            json!({"mp255": "backup=1,ro=0,volume=/etc,mp=/x"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (format!("PUT {l}/config"), json!({"mp0": "local-lvm:8,mp=/data"}), "WRITE"),
        (
            format!("PUT {l}/config"),
            json!({"mp0": "/etc,volume=local-lvm:8,mp=/x"}),
            "invalid_argument",
        ),
        (
            format!("PUT {l}/config"),
            json!({"rootfs": "local-lvm:8,idmap=passthrough"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        // C29, CE16, CE17
        (format!("PUT {q}/config"), json!({"lock": "backup"}), "DESTRUCTIVE"),
        (
            format!("PUT {q}/config"),
            json!({"hostpci0": "host=0000:01:00"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (format!("PUT {q}/config"), json!({"ivshmem": "size=32"}), "CRITICAL GUEST_HOST_ACCESS"),
        (format!("PUT {q}/config"), json!({"usb0": "spice"}), "WRITE"),
        (format!("PUT {q}/config"), json!({"usb1": "host=SPICE,usb3=yes"}), "WRITE"),
        (
            format!("PUT {q}/config"),
            json!({"usb0": "host=1234:5678"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (format!("PUT {q}/config"), json!({"usb0": "mapping=stick"}), "CRITICAL GUEST_HOST_ACCESS"),
        (
            format!("PUT {q}/config"),
            json!({"usb0": "spice,mapping=stick"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (format!("PUT {q}/config"), json!({"serial0": "socket"}), "WRITE"),
        (format!("PUT {q}/config"), json!({"serial0": "/dev/ttyS0"}), "CRITICAL GUEST_HOST_ACCESS"),
        (format!("PUT {q}/config"), json!({"rng0": "source=/dev/urandom,max_bytes=1024"}), "WRITE"),
        (
            format!("PUT {q}/config"),
            json!({"rng0": "max_bytes=1024,source=/dev/hwrng"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (format!("POST {q}/config"), json!({"virtiofs3": "data"}), "CRITICAL GUEST_HOST_ACCESS"),
        (format!("PUT {q}/config"), json!({"new_option": 1}), "CRITICAL UNKNOWN"),
        (format!("PUT {q}/config"), json!({"Args": "-x"}), "CRITICAL UNKNOWN"),
        (
            format!("PUT {l}/config"),
            json!({"lxc.apparmor.profile": "unconfined"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        // CE22
        (format!("PUT {q}/config"), json!({"sshkeys": "x"}), "CRITICAL GUEST_CREDENTIALS"),
        (format!("PUT {q}/config"), json!({"ipconfig0": "ip=dhcp"}), "WRITE"),
        (format!("PUT {q}/config"), json!({"nameserver": "192.0.2.1"}), "WRITE"),
        (format!("PUT {q}/cloudinit"), json!({}), "WRITE"),
        (
            format!("PUT {q}/config"),
            json!({"smbios1": "serial=ZHM9bm9jbG91ZA==,base64=1"}),
            "CRITICAL GUEST_CREDENTIALS",
        ),
        // CE25, CE26, C07
        (format!("PUT {l}/config"), json!({"features": "nesting=1"}), "CRITICAL GUEST_HOST_ACCESS"),
        (format!("PUT {l}/config"), json!({"features": "nesting=0,keyctl=0"}), "WRITE"),
        (format!("PUT {l}/config"), json!({"features": "keyctl=on"}), "CRITICAL GUEST_HOST_ACCESS"),
        (format!("PUT {l}/config"), json!({"features": "mount=nfs"}), "CRITICAL GUEST_HOST_ACCESS"),
        (
            format!("PUT {l}/config"),
            json!({"dev0": "/dev/dri/card0"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (format!("PUT {l}/config"), json!({"cmode": "shell"}), "CRITICAL GUEST_CREDENTIALS"),
        (format!("PUT {l}/config"), json!({"env": "A=1"}), "CRITICAL GUEST_CREDENTIALS"),
        (format!("PUT {l}/config"), json!({"unprivileged": 1}), "CRITICAL PRIVILEGED_CONTAINER"),
        (
            "POST /nodes/pve1/lxc".to_owned(),
            json!({"vmid": 300, "ostemplate": "local:vztmpl/d.tar", "unprivileged": 1}),
            "WRITE",
        ),
        (
            "POST /nodes/pve1/lxc".to_owned(),
            json!({"vmid": 300, "ostemplate": "local:vztmpl/d.tar", "unprivileged": "YES"}),
            "WRITE",
        ),
        (
            "POST /nodes/pve1/lxc".to_owned(),
            json!({"vmid": 300, "ostemplate": "local:vztmpl/d.tar", "unprivileged": true, "features": "nesting=1"}),
            "WRITE",
        ),
        (
            "POST /nodes/pve1/lxc".to_owned(),
            json!({"vmid": 300, "ostemplate": "local:vztmpl/d.tar"}),
            "CRITICAL PRIVILEGED_CONTAINER",
        ),
        (
            "POST /nodes/pve1/lxc".to_owned(),
            json!({"vmid": 300, "ostemplate": "local:vztmpl/d.tar", "unprivileged": "False"}),
            "CRITICAL PRIVILEGED_CONTAINER",
        ),
        (
            "POST /nodes/pve1/lxc".to_owned(),
            json!({"vmid": 300, "ostemplate": "local:vztmpl/d.tar", "unprivileged": "OFF"}),
            "CRITICAL PRIVILEGED_CONTAINER",
        ),
        (
            "POST /nodes/pve1/lxc".to_owned(),
            json!({"vmid": 300, "ostemplate": "/tmp/x.tar", "unprivileged": 1}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (
            "POST /nodes/pve1/lxc".to_owned(),
            json!({"vmid": 300, "ostemplate": "local:vztmpl/d.tar", "unprivileged": 1, "force": "yes"}),
            "CRITICAL GUEST_RESTORE_OVERWRITE",
        ),
        ("POST /nodes/pve1/qemu".to_owned(), json!({"vmid": 300, "scsi0": "local-lvm:8"}), "WRITE"),
        ("POST /nodes/pve1/qemu".to_owned(), json!({"vmid": 300, "ha-managed": 1}), "CRITICAL HA"),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "template": "on"}),
            "CRITICAL GUEST_TEMPLATE",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "archive": "local:backup/vzdump-qemu-101-x.vma"}),
            "CRITICAL GUEST_RESTORE_OVERWRITE GUEST_HOST_ACCESS",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "sshkeys": "x", "scsi0": "a:0,import-from=local:import/d.qcow2"}),
            "WRITE",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "sshkeys": "x", "scsi0": "a:0,import-from=a:vm-101-disk-0"}),
            "CRITICAL GUEST_CREDENTIALS",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "scsi0": "a:vm-101-disk-0"}),
            "CRITICAL GUEST_CREDENTIALS",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "scsi0": "import-from=a:vm-101-disk-0,file=a:0"}),
            "DESTRUCTIVE",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "cdrom": "cdrom"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "ide2": "local:iso/d.iso,media=cdrom"}),
            "WRITE",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "sata0": "size=1G,volume=/dev/sda"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "sata0": "a:0,import-from=/root/x.raw"}),
            "CRITICAL GUEST_HOST_ACCESS",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "sata0": "a:8,file=/dev/sda"}),
            "invalid_argument",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "sata0": "a:8,cache=unsafe"}),
            "DESTRUCTIVE",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "sata0": "a:8,backup=No"}),
            "DESTRUCTIVE",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "scsi0": "a:8,new-key=1"}),
            "CRITICAL UNKNOWN",
        ),
        (
            "POST /nodes/pve1/qemu".to_owned(),
            json!({"vmid": 300, "node": "pve2"}),
            "invalid_argument",
        ),
        ("POST /nodes/pve1/qemu".to_owned(), json!({"vmid": 300, "node": "pve1"}), "WRITE"),
        // CE28, CE30, CE31, CE32, CE34
        (
            format!("POST {q}/move_disk"),
            json!({"disk": "scsi0", "storage": "a", "delete": "on"}),
            "DESTRUCTIVE",
        ),
        (format!("POST {q}/move_disk"), json!({"disk": "scsi0", "storage": "a"}), "WRITE"),
        (
            format!("POST {q}/move_disk"),
            json!({"disk": "scsi0", "target-vmid": "101"}),
            "DESTRUCTIVE",
        ),
        (format!("POST {q}/move_disk"), json!({"disk": "scsi0", "target-vmid": 100}), "WRITE"),
        (format!("POST {q}/clone"), json!({"newid": 300, "full": 0}), "WRITE"),
        (format!("POST {q}/template"), json!({}), "CRITICAL GUEST_TEMPLATE"),
        (format!("DELETE {q}/snapshot/s1"), json!({}), "DESTRUCTIVE"),
        (format!("POST {q}/snapshot/s1/rollback"), json!({}), "DESTRUCTIVE"),
        (format!("DELETE {q}"), json!({}), "CRITICAL GUEST_DELETE"),
        // CE37, CE39, CE40, CE43
        (
            "POST /cluster/backup".to_owned(),
            json!({"schedule": "daily", "all": 1, "remove": 0}),
            "WRITE",
        ),
        ("PUT /cluster/backup/j1".to_owned(), json!({"enabled": "NO"}), "DESTRUCTIVE"),
        ("PUT /cluster/backup/j1".to_owned(), json!({"comment": "x"}), "WRITE"),
        (
            "PUT /cluster/backup/j1".to_owned(),
            json!({"prune-backups": "keep-last=3"}),
            "CRITICAL VOLUME_DELETE",
        ),
        (
            "DELETE /nodes/pve1/storage/s/prunebackups".to_owned(),
            json!({}),
            "CRITICAL VOLUME_DELETE",
        ),
        (
            "DELETE /nodes/pve1/storage/s/content/s:100%2fvm-100-disk-0.raw".to_owned(),
            json!({}),
            "CRITICAL VOLUME_DELETE",
        ),
        (
            "DELETE /nodes/pve1/storage/s/content/s:100/vm-100-disk-0.raw".to_owned(),
            json!({}),
            "CRITICAL VOLUME_DELETE",
        ),
        (
            "POST /nodes/pve1/storage/s/download-url".to_owned(),
            json!({"url": "http://127.1/x"}),
            "NEVER target_refused",
        ),
        (
            "POST /nodes/pve1/storage/s/download-url".to_owned(),
            json!({"url": "http://pve1:8006/x"}),
            "NEVER target_refused",
        ),
        (
            "GET /nodes/pve1/query-url-metadata".to_owned(),
            json!({"url": "https://example.test/x.iso"}),
            "WRITE",
        ),
        (
            "GET /nodes/pve1/query-url-metadata".to_owned(),
            json!({"url": "file:///etc/passwd"}),
            "NEVER target_refused",
        ),
        (
            "GET /nodes/pve1/query-url-metadata".to_owned(),
            json!({"url": "https://u:p@example.test/x.iso"}),
            "NEVER target_refused",
        ),
        (
            "GET /nodes/pve1/query-url-metadata".to_owned(),
            json!({"url": "http://example.test\\@127.0.0.1/"}),
            "NEVER target_refused",
        ),
        (
            "GET /nodes/pve1/query-url-metadata".to_owned(),
            json!({"url": "http:127.0.0.1"}),
            "NEVER target_refused",
        ),
        (
            "GET /nodes/pve1/query-oci-repo-tags".to_owned(),
            json!({"reference": "127.0.0.1:5000/x"}),
            "NEVER target_refused",
        ),
        (
            "GET /nodes/pve1/query-oci-repo-tags".to_owned(),
            json!({"reference": "docker.io/library/debian"}),
            "WRITE",
        ),
        ("GET /nodes/pve1/scan/nfs".to_owned(), json!({"server": "0"}), "NEVER target_refused"),
        (
            "GET /nodes/pve1/scan/iscsi".to_owned(),
            json!({"portal": "[::1]:3260"}),
            "NEVER target_refused",
        ),
        ("GET /nodes/pve1/scan/pbs".to_owned(), json!({"server": "nas.example.test"}), "WRITE"),
        (
            "GET /cluster/acme/tos".to_owned(),
            json!({"directory": "https://169.254.169.254/d"}),
            "NEVER target_refused",
        ),
        ("GET /cluster/acme/tos".to_owned(), json!({}), "WRITE"),
        (
            "POST /cluster/sdn/dns".to_owned(),
            json!({"url": "http://[::ffff:127.0.0.1]:85"}),
            "NEVER target_refused",
        ),
        (
            "POST /cluster/notifications/endpoints/webhook".to_owned(),
            json!({"url": "http://localhost:85/x"}),
            "NEVER target_refused",
        ),
        (
            "PUT /access/domains/ldap".to_owned(),
            json!({"server1": "127.0.0.1"}),
            "NEVER target_refused",
        ),
        // CE49, CE54
        (
            "POST /storage".to_owned(),
            json!({"storage": "x", "type": "dir", "path": "/mnt/x"}),
            "CRITICAL STORAGE_DEFINITIONS",
        ),
        (
            "POST /storage".to_owned(),
            json!({"storage": "x", "type": "dir", "path": "/mnt/../etc"}),
            "CRITICAL STORAGE_DEFINITIONS GUEST_HOST_ACCESS",
        ),
        (
            "POST /storage".to_owned(),
            json!({"storage": "x", "type": "dir", "path": "/mnt2"}),
            "CRITICAL STORAGE_DEFINITIONS GUEST_HOST_ACCESS",
        ),
        (
            "PUT /storage/x".to_owned(),
            json!({"prune-backups": "keep-all=1"}),
            "CRITICAL STORAGE_DEFINITIONS",
        ),
        (
            "PUT /storage/x".to_owned(),
            json!({"delete": "nodes,prune-backups"}),
            "CRITICAL STORAGE_DEFINITIONS VOLUME_DELETE",
        ),
        (
            "POST /nodes/pve1/services/pveproxy/restart".to_owned(),
            json!({}),
            "CRITICAL CRITICAL_SERVICES",
        ),
        (
            "POST /nodes/pve1/services/systemd-journald/reload".to_owned(),
            json!({}),
            "CRITICAL CRITICAL_SERVICES",
        ),
        ("POST /nodes/pve1/services/postfix/reload".to_owned(), json!({}), "WRITE"),
        (
            "POST /nodes/pve1/services/postfix/restart".to_owned(),
            json!({}),
            "CRITICAL CRITICAL_SERVICES",
        ),
        ("POST /nodes/pve1/services/spiceproxy/restart".to_owned(), json!({}), "DESTRUCTIVE"),
        ("POST /nodes/pve1/services/pveproxy/start".to_owned(), json!({}), "WRITE"),
        // C33, C34, CE66, CE67
        ("PUT /nodes/pve1/network".to_owned(), json!({}), "CRITICAL NODE_NETWORK"),
        ("DELETE /nodes/pve1/network".to_owned(), json!({}), "DESTRUCTIVE"),
        ("DELETE /nodes/pve1/network/vmbr0".to_owned(), json!({}), "CRITICAL NODE_NETWORK"),
        ("PUT /cluster/sdn".to_owned(), json!({}), "CRITICAL SDN_APPLY"),
        ("POST /cluster/sdn/rollback".to_owned(), json!({}), "DESTRUCTIVE"),
        (format!("PUT {q}/firewall/options"), json!({"enable": "off"}), "DESTRUCTIVE"),
        (format!("PUT {q}/firewall/options"), json!({"dhcp": 1}), "WRITE"),
        (
            format!("POST {q}/firewall/rules"),
            json!({"type": "in", "action": "ACCEPT"}),
            "DESTRUCTIVE",
        ),
        (
            format!("POST {q}/firewall/rules"),
            json!({"type": "in", "action": "ACCEPT", "dport": "443"}),
            "WRITE",
        ),
        (format!("POST {q}/firewall/rules"), json!({"type": "out", "action": "ACCEPT"}), "WRITE"),
        (format!("PUT {q}/firewall/rules/0"), json!({"moveto": 3}), "DESTRUCTIVE"),
        (
            format!("POST {q}/firewall/ipset/ipfilter-net0"),
            json!({"cidr": "192.0.2.1"}),
            "DESTRUCTIVE",
        ),
        (format!("POST {q}/firewall/ipset/web"), json!({"cidr": "192.0.2.1"}), "WRITE"),
        (
            "POST /cluster/firewall/ipset/management".to_owned(),
            json!({"cidr": "192.0.2.1"}),
            "CRITICAL CLUSTER_FIREWALL",
        ),
        // several categories
        (
            format!("PUT {q}/config"),
            json!({"args": "x", "template": 1, "sshkeys": "k"}),
            "CRITICAL GUEST_TEMPLATE GUEST_CREDENTIALS GUEST_HOST_ACCESS",
        ),
        (
            "PUT /cluster/options".to_owned(),
            json!({"webauthn": "id=x"}),
            "CRITICAL CLUSTER_OPTIONS ACCESS_CONTROL",
        ),
        ("POST /pools".to_owned(), json!({"poolid": "p"}), "WRITE"),
        ("PUT /pools".to_owned(), json!({"poolid": "p", "vms": "100"}), "CRITICAL ACCESS_CONTROL"),
        ("PUT /pools".to_owned(), json!({"poolid": "p", "comment": "x"}), "WRITE"),
        ("POST /nodes/pve1/stopall".to_owned(), json!({"vms": ""}), "invalid_argument"),
        ("POST /nodes/pve1/stopall".to_owned(), json!({"vms": ", ;"}), "invalid_argument"),
        ("POST /nodes/pve1/stopall".to_owned(), json!({}), "CRITICAL NODE_STOPALL"),
        (
            "POST /nodes/pve1/startall".to_owned(),
            json!({"vms": "100"}),
            "CRITICAL CLUSTER_BULK_ACTIONS",
        ),
    ] {
        assert_eq!(blind(&call, params.clone()), want, "{call} {params}");
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
