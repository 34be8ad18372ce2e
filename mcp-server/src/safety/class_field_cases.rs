//! The rows of the field cases that concern classes, in many spellings.

use serde_json::json;

use super::*;

/// The rows of the field cases, C and CE, and their kinds in other spellings.
#[test]
fn every_case_has_its_class() {
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
