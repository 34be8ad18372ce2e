//! What QEMU on a node can do, and cloud-init of a VM.

use serde_json::{Value, json};

use super::Route;
use super::guests::{find, options};
use crate::api::call::{Answer, Call};
use crate::api::propstring;
use crate::state::config::typed;
use crate::state::guest::{Guest, Kind, indexed};

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "/nodes/{node}/capabilities", |_| Ok(json!([{"name": "qemu"}]).into())),
    ("GET", "/nodes/{node}/capabilities/qemu", |_| {
        Ok(json!([{"name": "cpu"}, {"name": "cpu-flags"}, {"name": "machines"}, {"name": "migration"}]).into())
    }),
    ("GET", "/nodes/{node}/capabilities/qemu/cpu", models),
    ("GET", "/nodes/{node}/capabilities/qemu/machines", machines),
    ("GET", "/cluster/qemu/cpu-flags", flags),
    ("GET", "/nodes/{node}/qemu/{vmid}/cloudinit", pending),
    ("GET", "/nodes/{node}/qemu/{vmid}/cloudinit/dump", dump),
    ("PUT", "/nodes/{node}/qemu/{vmid}/cloudinit", |c| {
        find(c.state, &c.node(), c.vmid(), Kind::Qemu).map(|_| Value::Null.into())
    }),
    ("GET", "/nodes/{node}/report", report),
];

fn models(_: &mut Call<'_>) -> Answer {
    const MODELS: [(&str, &str); 12] = [
        ("host", "default"),
        ("kvm64", "default"),
        ("qemu64", "default"),
        ("max", "default"),
        ("x86-64-v2-AES", "default"),
        ("x86-64-v3", "default"),
        ("x86-64-v4", "default"),
        ("Haswell", "GenuineIntel"),
        ("Skylake-Server-v5", "GenuineIntel"),
        ("SapphireRapids", "GenuineIntel"),
        ("EPYC-Rome", "AuthenticAMD"),
        ("EPYC-Genoa", "AuthenticAMD"),
    ];
    let row = |(name, vendor): &(&str, &str)| json!({"name": name, "vendor": vendor, "custom": 0});
    Ok(MODELS.iter().map(row).collect::<Value>().into())
}

fn machines(_: &mut Call<'_>) -> Answer {
    let mut rows = Vec::new();
    for version in ["10.0+pve1", "10.0", "9.2+pve1", "9.2", "9.1", "9.0", "8.2", "8.1"] {
        for kind in ["i440fx", "q35"] {
            let mut row =
                json!({"id": format!("pc-{kind}-{version}"), "type": kind, "version": version});
            let changes = match version {
                "10.0+pve1" => {
                    Some("Set host_mtu vNIC option even with default value for migration compat.")
                }
                "9.2+pve1" => Some("Disables S3/S4 power states by default."),
                _ => None,
            };
            if let (Value::Object(map), Some(changes)) = (&mut row, changes) {
                map.insert("changes".to_owned(), json!(changes));
            }
            rows.push(row);
        }
    }
    Ok(Value::Array(rows).into())
}

fn flags(_: &mut Call<'_>) -> Answer {
    const FLAGS: [(&str, &str); 4] = [
        ("nested-virt", "Nested virtualization: svm of AMD CPUs, vmx of Intel CPUs."),
        ("aes", "AES instructions."),
        ("pcid", "Process-context identifiers."),
        ("md-clear", "Tells the guest that MDS can be mitigated."),
    ];
    let row = |(name, text): &(&str, &str)| json!({"name": name, "description": text, "supported-on": []});
    Ok(FLAGS.iter().map(row).collect::<Value>().into())
}

fn is_cloudinit(key: &str) -> bool {
    indexed(key, "ipconfig")
        || [
            "cicustom",
            "cipassword",
            "citype",
            "ciupgrade",
            "ciuser",
            "nameserver",
            "searchdomain",
            "sshkeys",
        ]
        .contains(&key)
}

fn pending(c: &mut Call<'_>) -> Answer {
    let guest = find(c.state, &c.node(), c.vmid(), Kind::Qemu)?;
    let schema = options(Kind::Qemu);
    let hidden = |key: &str, value: &str| {
        if key == "cipassword" { json!("**********") } else { typed(schema, key, value) }
    };
    let rows = guest
        .config
        .iter()
        .filter(|(k, _)| is_cloudinit(k))
        .map(|(k, v)| json!({"key": k, "value": hidden(k, v)}));
    Ok(rows.collect::<Value>().into())
}

fn dump(c: &mut Call<'_>) -> Answer {
    let guest = find(c.state, &c.node(), c.vmid(), Kind::Qemu)?;
    Ok(Value::String(match c.need("type").as_str() {
        "user" => user_data(guest),
        "network" => network_data(guest),
        _ => format!("instance-id: {}\n", guest.digest()),
    })
    .into())
}

fn user_data(guest: &Guest) -> String {
    let name = guest.name();
    let mut text =
        format!("#cloud-config\nhostname: {name}\nmanage_etc_hosts: true\nfqdn: {name}\n");
    if let Some(user) = guest.config.get("ciuser") {
        text.push_str(&format!("user: {user}\n"));
    }
    text.push_str("chpasswd:\n  expire: False\nusers:\n  - default\npackage_upgrade: true\n");
    text
}

fn network_data(guest: &Guest) -> String {
    let mut text = "version: 1\nconfig:\n".to_owned();
    for (key, nic) in guest.nics() {
        let n = key.trim_start_matches("net");
        let mac = Guest::mac(&nic).unwrap_or_default().to_lowercase();
        text.push_str(&format!(
            "    - type: physical\n      name: eth{n}\n      mac_address: '{mac}'\n      subnets:\n"
        ));
        let ip = guest.config.get(&format!("ipconfig{n}")).and_then(|i| propstring::get(i, "ip"));
        match ip.as_deref() {
            Some("dhcp") | None => text.push_str("      - type: dhcp4\n"),
            Some(cidr) => {
                text.push_str(&format!("      - type: static\n        address: '{cidr}'\n"))
            }
        }
    }
    text
}

fn report(c: &mut Call<'_>) -> Answer {
    let node = c.node();
    let guests = c.state.guests.values().filter(|g| g.node == node).count();
    Ok(Value::String(format!(
        "==== general system info ====\n\n# hostname\n{node}\n\n# guests\n{guests}\n"
    ))
    .into())
}
