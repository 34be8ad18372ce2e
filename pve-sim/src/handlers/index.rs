//! Directory listings: what the real API names below a path.

use serde_json::{Value, json};

use super::Route;
use crate::api::call::{Answer, Call};

macro_rules! listing {
    ($key:literal: $($name:literal)+) => {
        |_: &mut Call<'_>| -> Answer { Ok(Value::Array(vec![$(json!({$key: $name})),+]).into()) }
    };
}

/// `GET` of inner paths.
pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/", listing!("subdir": "version" "cluster" "nodes" "storage" "access" "pools")),
    (
        "GET",
        "/cluster",
        listing!("name": "acme" "backup" "backup-info" "bulk-action" "ceph" "config" "firewall" "ha"
        "jobs" "log" "mapping" "metrics" "notifications" "nextid" "options" "qemu" "replication" "resources" "status"
        "tasks" "sdn"),
    ),
    ("GET", "/cluster/ha", listing!("id": "status" "resources" "groups" "rules")),
    ("GET", "/cluster/sdn", listing!("id": "vnets" "zones" "controllers" "ipams" "dns" "fabrics")),
    (
        "GET",
        "/cluster/firewall",
        listing!("name": "aliases" "rules" "options" "groups" "ipset" "macros" "refs"),
    ),
    (
        "GET",
        "/cluster/notifications/endpoints",
        listing!("name": "gotify" "sendmail" "smtp" "webhook"),
    ),
    ("GET", "/cluster/config", listing!("name": "nodes" "totem" "join" "qdevice" "apiversion")),
    ("GET", "/cluster/bulk-action/guest", listing!("name": "start" "shutdown" "migrate" "suspend")),
    ("GET", "/cluster/mapping", listing!("name": "dir" "pci" "usb")),
    (
        "GET",
        "/access",
        listing!("subdir": "users" "groups" "roles" "acl" "domains" "openid" "tfa" "ticket" "password"),
    ),
    ("GET", "/access/openid", listing!("subdir": "auth-url" "login")),
    (
        "GET",
        "/nodes/{node}",
        listing!("name": "aplinfo" "apt" "capabilities" "ceph" "certificates" "config" "disks"
        "dns" "firewall" "hardware" "hosts" "journal" "lxc" "network" "qemu" "query-url-metadata" "replication"
        "report" "rrddata" "scan" "sdn" "services" "status" "storage" "subscription" "syslog" "tasks" "time" "version"
        "vzdump"),
    ),
    (
        "GET",
        "/nodes/{node}/services/{service}",
        listing!("subdir": "state" "start" "stop" "restart" "reload"),
    ),
    ("GET", "/nodes/{node}/apt", listing!("id": "changelog" "repositories" "update" "versions")),
    (
        "GET",
        "/nodes/{node}/disks",
        listing!("name": "list" "initgpt" "smart" "lvm" "lvmthin" "directory" "wipedisk"
        "zfs"),
    ),
    ("GET", "/nodes/{node}/certificates", listing!("name": "acme" "custom" "info")),
    ("GET", "/nodes/{node}/hardware", listing!("type": "pci" "usb")),
    ("GET", "/nodes/{node}/scan", listing!("method": "cifs" "iscsi" "lvm" "nfs" "pbs" "zfs")),
    ("GET", "/nodes/{node}/firewall", listing!("name": "rules" "options" "log")),
    ("GET", "/nodes/{node}/tasks/{upid}", listing!("name": "log" "status")),
    (
        "GET",
        "/nodes/{node}/qemu/{vmid}",
        listing!("subdir": "config" "cloudinit" "pending" "status" "unlink"
        "vncproxy" "termproxy" "migrate" "resize" "move" "rrd" "rrddata" "monitor" "agent" "snapshot" "spiceproxy"
        "sendkey" "firewall" "mtunnel" "remote_migrate"),
    ),
    (
        "GET",
        "/nodes/{node}/qemu/{vmid}/status",
        listing!("subdir": "current" "start" "stop" "reset" "shutdown"
        "suspend" "reboot"),
    ),
    (
        "GET",
        "/nodes/{node}/qemu/{vmid}/firewall",
        listing!("name": "rules" "aliases" "ipset" "refs" "options"),
    ),
    (
        "GET",
        "/nodes/{node}/lxc/{vmid}/firewall",
        listing!("name": "rules" "aliases" "ipset" "refs" "options"),
    ),
    (
        "GET",
        "/nodes/{node}/qemu/{vmid}/agent",
        listing!("name": "exec" "exec-status" "file-read" "file-write"
        "fsfreeze-freeze" "fsfreeze-status" "fsfreeze-thaw" "fstrim" "get-fsinfo" "get-host-name"
        "get-memory-block-info" "get-memory-blocks" "get-osinfo" "get-time" "get-timezone" "get-users" "get-vcpus"
        "info" "network-get-interfaces" "ping" "set-user-password" "shutdown" "suspend-disk" "suspend-hybrid"
        "suspend-ram"),
    ),
    (
        "GET",
        "/nodes/{node}/lxc/{vmid}",
        listing!("subdir": "config" "pending" "status" "vncproxy" "termproxy"
        "vncwebsocket" "spiceproxy" "migrate" "clone" "rrd" "rrddata" "firewall" "snapshot" "resize" "interfaces"),
    ),
    (
        "GET",
        "/nodes/{node}/lxc/{vmid}/status",
        listing!("subdir": "current" "start" "stop" "shutdown" "migrate"),
    ),
];
