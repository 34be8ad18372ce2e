//! The requests of good calls, to the letter.

use crate::world::{all_good, good};
use serde_json::json;

#[tokio::test]
async fn what_is_sent() {
    all_good(vec![
        good(
            "pve_disk_add",
            json!({"vmid": 120, "storage": "local-lvm", "size": "32G", "iothread": true, "discard": true}),
            r#"POST /nodes/pve1/qemu/120/config {"scsi1":"local-lvm:32,discard=on,iothread=1"}"#,
        ),
        good(
            "pve_disk_add",
            json!({"vmid": 213, "storage": "local-lvm", "size": "512M", "mount": "/data", "backup": true}),
            r#"PUT /nodes/pve3/lxc/213/config {"mp0":"local-lvm:0.5,mp=/data,backup=1"}"#,
        ),
        good(
            "pve_disk_resize",
            json!({"vmid": 100, "disk": "scsi0", "size": "+8G"}),
            r#"PUT /nodes/pve1/qemu/100/resize {"disk":"scsi0","size":"+8G"}"#,
        ),
        good(
            "pve_disk_resize",
            json!({"vmid": 200, "disk": "rootfs", "size": "12G"}),
            r#"PUT /nodes/pve1/lxc/200/resize {"disk":"rootfs","size":"12G"}"#,
        ),
        good(
            "pve_disk_move",
            json!({"vmid": 122, "disk": "scsi0", "storage": "nfs-images", "format": "qcow2"}),
            r#"POST /nodes/pve3/qemu/122/move_disk {"disk":"scsi0","format":"qcow2","storage":"nfs-images"}"#,
        ),
        good(
            "pve_disk_detach",
            json!({"vmid": 106, "disk": "scsi1"}),
            r#"POST /nodes/pve3/qemu/106/config {"delete":"scsi1"}"#,
        ),
        good(
            "pve_disk_detach",
            json!({"vmid": 118, "disk": "unused0", "delete": true}),
            r#"POST /nodes/pve1/qemu/118/config {"delete":"unused0"}"#,
        ),
        good(
            "pve_nic_set",
            json!({"vmid": 213, "bridge": "vmbr0", "tag": 7, "ip": "dhcp"}),
            r#"PUT /nodes/pve3/lxc/213/config {"net1":"name=eth1,bridge=vmbr0,firewall=1,ip=dhcp,tag=7"}"#,
        ),
        good(
            "pve_nic_delete",
            json!({"vmid": 114, "slot": "net1"}),
            r#"POST /nodes/pve1/qemu/114/config {"delete":"net1"}"#,
        ),
        good(
            "pve_guest_template",
            json!({"vmid": 122}),
            "POST /nodes/pve3/qemu/122/template {}",
        ),
        good(
            "pve_vm_agent_command",
            json!({"vmid": 100, "command": "ping"}),
            "POST /nodes/pve1/qemu/100/agent/ping {}",
        ),
        good(
            "pve_vm_agent_command",
            json!({"vmid": 100, "command": "trim"}),
            "POST /nodes/pve1/qemu/100/agent/fstrim {}",
        ),
        good(
            "pve_pool_create",
            json!({"pool": "kunden", "comment": "Kunden & Co"}),
            r#"POST /pools {"comment":"Kunden & Co","poolid":"kunden"}"#,
        ),
        good(
            "pve_pool_update",
            json!({"pool": "buero", "add_vmids": [115]}),
            r#"PUT /pools {"poolid":"buero","vms":"115"}"#,
        ),
        good(
            "pve_pool_update",
            json!({"pool": "buero", "remove_vmids": [117]}),
            r#"PUT /pools {"delete":"1","poolid":"buero","vms":"117"}"#,
        ),
        good(
            "pve_ha_resource_set",
            json!({"vmid": 213, "state": "stopped", "max_restart": 2}),
            r#"POST /cluster/ha/resources {"max_restart":"2","sid":"ct:213","state":"stopped"}"#,
        ),
    ])
    .await;
}
