//! The pinned host key: what is accepted, and what is refused before login.
#![cfg(target_os = "linux")]

use std::net::TcpListener;

use e2e::{
    desk::Desk,
    node::{Node, Sshd},
};
use proxmox_mcp::{
    Code, Error,
    config::Config,
    node::{Guard, HostKey},
    pve::NodeName,
};

fn hello(config: &Config, node: Option<&str>) -> Result<String, Error> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let node = node.map(|name| NodeName::parse(name).unwrap());
    runtime.block_on(Guard::new(config).hello(node.as_ref())).map(|hello| hello.node)
}

fn pinned(desk: &Desk, sshd: &Sshd, key: &str) -> Config {
    let mut config = desk.config();
    config.ssh.port = sshd.port;
    config.ssh.host_key = Some(HostKey::parse(key).unwrap().to_string());
    config
}

fn fingerprint(key: &str) -> String {
    HostKey::parse(key).unwrap().fingerprint()
}

/// Refused at the host key, both keys shown, and no login was tried.
fn assert_refused(error: &Error, sshd: &Sshd, pinned: &str, shown: &str) {
    assert_eq!(error.code, Code::SshFailed, "{error}");
    assert_eq!(error.details["step"], "host key", "{error}");
    for key in [pinned, shown] {
        assert!(error.message.contains(&fingerprint(key)), "{error}");
    }
    assert!(error.hint.contains("ssh-keygen -lf /etc/ssh/ssh_host_"), "{error}");
    let log = sshd.log();
    assert!(!log.contains("publickey") && !log.contains("proxmox-mcp"), "a login was tried: {log}");
}

#[test]
fn exactly_the_pinned_key_of_the_pinned_type_is_accepted() {
    let Some(node) = Node::start("pve1") else { return };
    // The server prefers other types than the one that is pinned.
    let all = node.sshd(&["rsa", "ecdsa", "ed25519"], &["PerSourcePenalties=no"]);
    let desk = Desk::joined(&node, &all);
    let keys = ["rsa", "ecdsa", "ed25519"].map(|kind| (kind, node.host_key(kind)));
    for (kind, key) in &keys {
        assert_eq!(hello(&pinned(&desk, &all, key), None).unwrap(), "pve1", "{kind}");
    }

    // A server that has the right type, and another key of it.
    node.sh("ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_new_key");
    let changed = node.sshd(&["new", "rsa"], &["PerSourcePenalties=no"]);
    let (old, new) = (&keys[2].1, node.host_key("new"));
    let (env, folder) = (desk.read(".env"), desk.path("ssh"));
    let files = || std::fs::read_dir(&folder).unwrap().count();
    let count = files();
    let error = hello(&pinned(&desk, &changed, old), None).unwrap_err();
    assert_refused(&error, &changed, old, &new);
    // Nor is it pinned by the way, also not by the command that pins.
    let port = format!("PROXMOX_SSH_PORT={}", changed.port);
    let again = desk.run(&["--set", &port, "ssh-setup", "--yes", "--append-env"]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    let text = String::from_utf8_lossy(&again.stderr);
    assert!(text.contains(&fingerprint(old)) && text.contains(&fingerprint(&new)), "{text}");
    assert_eq!((desk.read(".env"), files()), (env, count), "nothing was written");

    // A server that has only other types, with which a login would succeed.
    let other = node.sshd(&["rsa"], &["PerSourcePenalties=no"]);
    let error = hello(&pinned(&desk, &other, old), None).unwrap_err();
    assert_refused(&error, &other, old, &keys[0].1);
    hello(&pinned(&desk, &other, &keys[0].1), None).unwrap();

    // Nothing pinned at all.
    let mut nothing = pinned(&desk, &all, old);
    nothing.ssh.host_key = None;
    let error = hello(&nothing, None).unwrap_err();
    assert_eq!(error.details["step"], "host key");
    assert!(error.hint.contains("ssh-setup"), "{error}");
}

#[test]
fn further_nodes_have_their_own_addresses_and_keys() {
    let Some(one) = Node::start("pve1") else { return };
    let Some(two) = Node::start("pve2") else { return };
    two.sh("rm /etc/ssh/ssh_host_ed25519_key*; ssh-keygen -q -A");
    let v6 = TcpListener::bind("[::1]:0").is_ok();
    let options: &[&str] = if v6 {
        &["PerSourcePenalties=no", "ListenAddress=::1"]
    } else {
        &["PerSourcePenalties=no"]
    };
    let first = one.sshd(&["ed25519"], options);
    let second = two.sshd(&["ed25519"], options);
    let desk = Desk::joined(&one, &first);
    let at = |host: &str, sshd: &Sshd| format!("{host}:{}", sshd.port);
    let setup = |name: &str, host: &str| {
        desk.told(&["ssh-setup", "--node", name, "--host", host, "--yes", "--append-env"])
    };
    setup("pve2", &at("127.0.0.1", &second));
    assert!(two.script(&desk.told(&["ssh-account"]), &[]).status.success());
    assert_eq!(hello(&desk.config(), Some("pve1")).unwrap(), "pve1");
    assert_eq!(hello(&desk.config(), Some("pve2")).unwrap(), "pve2");
    let line = format!("[127.0.0.1]:{} {}", second.port, two.host_key("ed25519"));
    let line = line.rsplit_once(' ').unwrap().0.to_owned();
    assert_eq!(desk.read("ssh/known_hosts").trim(), line);

    // Again, and nothing changes.
    let (env, known) = (desk.read(".env"), desk.read("ssh/known_hosts"));
    setup("pve2", &at("127.0.0.1", &second));
    assert_eq!((desk.read(".env"), desk.read("ssh/known_hosts")), (env, known));

    // A name that leads to another node: nothing is done there.
    let mut swapped = desk.config();
    let pve3 = NodeName::parse("pve3").unwrap();
    swapped.ssh.nodes.push((pve3, swapped.ssh.nodes[0].1.clone()));
    let error = hello(&swapped, Some("pve3")).unwrap_err();
    assert_eq!(
        (error.code, &error.details["guard_code"]),
        (Code::GuardRefused, &"wrong_node".into())
    );
    assert!(error.message.contains("pve2") && error.message.contains("pve3"), "{error}");

    if v6 {
        setup("pve2", &at("[::1]", &second));
        assert!(
            desk.read("ssh/known_hosts").contains(&format!("[::1]:{} ssh-ed25519", second.port))
        );
        let script = desk.told(&["ssh-account"]).replace("127.0.0.1", "127.0.0.1,::1");
        assert!(two.script(&script, &[]).status.success());
        assert_eq!(hello(&desk.config(), Some("pve2")).unwrap(), "pve2");
    }
}

#[test]
fn a_key_is_pinned_only_on_somebody_s_word() {
    let Some(node) = Node::start("pve1") else { return };
    let sshd = node.sshd(&["ed25519"], &["PerSourcePenalties=no"]);
    let print = node.sh("ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub | cut -d' ' -f2");
    let print = print.trim();

    let silent = Desk::new(&sshd);
    let output = silent.run(&["ssh-setup", "--append-env"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains(print), "the fingerprint is shown");
    assert!(!silent.read(".env").contains("HOST_KEY"));

    let wrong = silent.run(&["ssh-setup", "--append-env", "--host-key", "SHA256:AAAA"]);
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    assert!(!silent.read(".env").contains("HOST_KEY"));

    let printed = silent.told(&["ssh-setup", "--host-key", print]);
    assert!(printed.contains("PROXMOX_SSH_ALLOWED_IP=127.0.0.1"), "{printed}");
    assert!(!silent.read(".env").contains("HOST_KEY"), "only printed");

    silent.told(&["ssh-setup", "--host-key", print, "--append-env"]);
    let key = node.host_key("ed25519");
    let key = key.rsplit_once(' ').unwrap().0;
    let env = silent.read(".env");
    assert!(env.contains(&format!("PROXMOX_SSH_HOST_KEY={key}\n")), "{env}");
    let private = silent.read("ssh/id_ed25519");
    silent.told(&["ssh-setup", "--append-env"]);
    assert_eq!((silent.read(".env"), silent.read("ssh/id_ed25519")), (env, private));
}
