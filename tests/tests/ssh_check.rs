//! Where on the way to the guard something is wrong, and what to do: each
//! step of the way broken on its own.
#![cfg(target_os = "linux")]

use std::{fs, io::Write, net::TcpListener, os::unix::fs::PermissionsExt};

use e2e::{desk::Desk, node::Node};
use proxmox_mcp::{
    config::Config,
    node::{CheckStep, check},
};

const STEPS: [&str; 10] = [
    "ssh key",
    "reach",
    "key exchange",
    "host key",
    "login",
    "forced command",
    "sudo",
    "guard",
    "policy",
    "program",
];

fn steps(config: &Config) -> Vec<CheckStep> {
    tokio::runtime::Runtime::new().unwrap().block_on(check(config))
}

/// Every step before `name` is well, that one is not, and none follows.
fn assert_fails_at(config: &Config, name: &str, hint: &str) {
    let steps = steps(config);
    let names: Vec<_> = steps.iter().map(|step| step.name.as_str()).collect();
    let until = STEPS.iter().position(|step| *step == name).unwrap();
    assert_eq!(names, STEPS[..=until], "{steps:?}");
    for step in &steps {
        assert_eq!(step.ok, step.name != name, "{step:?}");
        assert_eq!(step.hint.is_empty(), step.ok, "{step:?}");
    }
    let last = steps.last().unwrap();
    assert!(last.hint.contains(hint), "{last:?}");
}

#[test]
fn the_step_that_is_broken_is_named() {
    let Some(node) = Node::start("pve1") else { return };
    let sshd = node.sshd(&["ed25519"], &["PerSourcePenalties=no"]);
    let desk = Desk::joined(&node, &sshd);
    let config = desk.config();

    let well = steps(&config);
    let names: Vec<_> = well.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, STEPS, "{well:?}");
    assert!(well.iter().all(|step| step.ok && !step.detail.is_empty()), "{well:?}");
    let detail = |name: &str| &well.iter().find(|step| step.name == name).unwrap().detail;
    assert!(detail("guard").contains("pve1"), "{well:?}");
    assert!(detail("policy").contains("pct-exec") && detail("program").contains("9.2.0"));

    // On this side.
    let key = &config.ssh.key;
    let mode = |bits| fs::set_permissions(key, fs::Permissions::from_mode(bits)).unwrap();
    mode(0o640);
    assert_fails_at(&config, "ssh key", "chmod 600");
    mode(0o600);
    let mut other = config.clone();
    other.ssh.key = desk.path("nothing");
    assert_fails_at(&other, "ssh key", "ssh-setup");

    // On the way.
    let mut other = config.clone();
    other.ssh.port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    assert_fails_at(&other, "reach", "PROXMOX_SSH_PORT");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    other.ssh.port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    assert_fails_at(&other, "key exchange", "port");
    let mut other = config.clone();
    other.ssh.user = "somebody".into();
    assert_fails_at(&other, "login", "ssh-account");

    // On the node.
    let keys = "/var/lib/proxmox-mcp/.ssh/authorized_keys";
    let line = fs::read_to_string(node.path(keys)).unwrap();
    node.write(keys, &line.replace("127.0.0.1", "192.0.2.1"), 0o644);
    assert_fails_at(&config, "login", "127.0.0.1");
    let free = line.split_once("pve-guard\" ").unwrap().1;
    node.write(keys, free, 0o644);
    assert_fails_at(&config, "forced command", "ssh-account");
    node.write(keys, &line, 0o644);
    node.sh("usermod -s /usr/sbin/nologin proxmox-mcp");
    assert_fails_at(&config, "forced command", "ssh-account");
    node.sh("usermod -s /bin/sh proxmox-mcp");

    let rule = "/etc/sudoers.d/pve-guard";
    let text = fs::read_to_string(node.path(rule)).unwrap();
    node.sh(&format!("rm {rule}"));
    assert_fails_at(&config, "sudo", "ssh-account");
    node.write(rule, &text.replace("NOPASSWD: ", ""), 0o440);
    assert_fails_at(&config, "sudo", "ssh-account");
    node.write(rule, &text, 0o440);
    node.sh("mv /usr/bin/sudo /usr/bin/sudo.away");
    assert_fails_at(&config, "sudo", "apt install sudo");
    node.sh("mv /usr/bin/sudo.away /usr/bin/sudo");

    node.sh("mv /usr/sbin/pve-guard /usr/sbin/away");
    assert_fails_at(&config, "guard", "ssh-guard");
    node.sh("mv /usr/sbin/away /usr/sbin/pve-guard");
    node.sh("chmod 666 /etc/pve-guard/policy.toml");
    assert_fails_at(&config, "policy", "pve-guard policy check");
    node.sh("chmod 644 /etc/pve-guard/policy.toml");
    node.sh("sed -i s/pve-manager/other/ /var/lib/dpkg/status");
    assert_fails_at(&config, "program", "Proxmox VE");
}
