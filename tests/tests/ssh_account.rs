//! The account that the script makes on a node, and what its key can do there:
//! real sshd and sudo, OpenSSH's own clients as the attacker.
#![cfg(target_os = "linux")]

use std::{fs, os::unix::fs::MetadataExt, process::Output};

use e2e::{
    desk::Desk,
    node::{Node, finish},
};

const HELLO: &str = "{\"v\":1,\"id\":\"t\",\"verb\":\"hello\"}\n";
const DEST: &str = "proxmox-mcp@127.0.0.1";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether the far side was the guard, answering a request.
fn is_hello(output: &Output) -> bool {
    text(&output.stdout).starts_with("{\"done\":{\"version\":")
}

/// Whether the far side was the guard, to which what it read was no request.
fn is_bad_request(output: &Output) -> bool {
    let text = text(&output.stdout);
    text.starts_with("{\"refused\":{\"code\":\"bad_request\"") && text.lines().count() == 1
}

#[test]
fn the_script_makes_the_account_once_and_takes_it_away_again() {
    let Some(node) = Node::start("pve1") else { return };
    let sshd = node.sshd(&["ed25519"], &[]);
    let desk = Desk::new(&sshd);
    desk.told(&["ssh-setup", "--yes", "--append-env"]);
    let script = desk.told(&["ssh-account"]);
    let state = "cat /etc/passwd /etc/shadow /etc/group | sort; ls -a /home; \
                 find /etc/sudoers.d /var/lib -path /var/lib/dpkg -prune -o \
                 -printf '%p %U %G %m\n' | sort";
    let before = node.sh(state);

    let first = node.script(&script, &[]);
    assert!(first.status.success(), "{first:?}");
    let made = node.sh(state);
    let again = node.script(&script, &[]);
    assert!(again.status.success(), "{again:?}");
    assert_eq!(node.sh(state), made, "the second run changes nothing");
    for line in text(&again.stdout).lines() {
        assert!(line.starts_with("unchanged: ") || line.starts_with("done"), "{line}");
    }

    let passwd = node.sh("getent passwd proxmox-mcp");
    let fields: Vec<_> = passwd.trim().split(':').collect();
    assert_eq!(fields[5..], ["/var/lib/proxmox-mcp", "/bin/sh"], "{passwd}");
    assert_eq!(node.sh("getent shadow proxmox-mcp | cut -d: -f2").trim(), "*");
    assert_eq!(node.sh("id -nG proxmox-mcp").trim(), "proxmox-mcp", "no group of note");

    let key = desk.read("ssh/id_ed25519.pub");
    let line = format!("restrict,from=\"127.0.0.1\",command=\"sudo -n /usr/sbin/pve-guard\" {key}");
    let keys = "/var/lib/proxmox-mcp/.ssh/authorized_keys";
    assert_eq!(fs::read_to_string(node.path(keys)).unwrap(), line);
    for (path, mode) in [
        ("/var/lib/proxmox-mcp", 0o755),
        ("/var/lib/proxmox-mcp/.ssh", 0o755),
        (keys, 0o644),
        ("/etc/sudoers.d/pve-guard", 0o440),
    ] {
        let found = fs::metadata(node.path(path)).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (0, 0, mode), "{path}");
    }

    let undo = node.script(&desk.told(&["ssh-account", "--remove"]), &[]);
    assert!(undo.status.success(), "{undo:?}");
    assert_eq!(node.sh(state), before, "nothing is left");
    // The script undoes itself as well, and does not mind that nothing is there.
    assert!(node.script(&script, &["--remove"]).status.success());
    assert_eq!(node.sh(state), before);
}

#[test]
fn an_account_of_somebody_else_is_left_alone() {
    let Some(node) = Node::start("pve1") else { return };
    let sshd = node.sshd(&["ed25519"], &[]);
    let desk = Desk::new(&sshd);
    desk.told(&["ssh-setup", "--yes", "--append-env"]);
    node.sh("useradd --system --home-dir /srv proxmox-mcp");
    let before = node.sh("cat /etc/passwd; ls -a /etc/sudoers.d");
    for args in [&["ssh-account"][..], &["ssh-account", "--remove"]] {
        let output = node.script(&desk.told(args), &[]);
        assert!(!output.status.success(), "{output:?}");
        assert!(text(&output.stderr).contains("error: "), "{output:?}");
        assert_eq!(node.sh("cat /etc/passwd; ls -a /etc/sudoers.d"), before);
    }
    let other = node.script(&desk.told(&["ssh-account", "--name", "pve-helper"]), &[]);
    assert!(other.status.success(), "{other:?}");
    assert!(is_hello(&desk.ssh_with(&["pve-helper@127.0.0.1"], HELLO)));
}

#[test]
fn a_rule_that_sudo_cannot_read_is_not_left_behind() {
    let Some(node) = Node::start("pve1") else { return };
    let sshd = node.sshd(&["ed25519"], &[]);
    let desk = Desk::new(&sshd);
    desk.told(&["ssh-setup", "--yes", "--append-env"]);
    node.write("/etc/sudoers.d/broken", "this is no rule\n", 0o440);
    let output = node.script(&desk.told(&["ssh-account"]), &[]);
    assert!(!output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("visudo"), "{output:?}");
    assert!(!node.path("/etc/sudoers.d/pve-guard").exists());
}

#[test]
fn the_key_runs_the_guard_and_nothing_else() {
    let Some(node) = Node::start("pve1") else { return };
    let sshd = node.sshd(&["ed25519"], &["AcceptEnv=*", "PermitUserEnvironment=yes"]);
    let desk = Desk::joined(&node, &sshd);

    // Whatever is asked for, the guard reads its request from the input.
    for args in [
        &[DEST][..],
        &[DEST, "bash -i"],
        &[DEST, "id; touch /tmp/marker"],
        &[DEST, "sudo -n sh -c 'touch /tmp/marker'"],
        &["-T", DEST, "/usr/sbin/pve-guard policy check"],
        // A subsystem that sshd does not have, and one that it has.
        &["-s", DEST, "sftp"],
        // The environment is not the key's business.
        &["-o", "SetEnv=LD_PRELOAD=/tmp/x.so PATH=/tmp BASH_ENV=/tmp/x SUDO_ASKPASS=/tmp/x", DEST],
        &["-o", "SetEnv=SSH_ORIGINAL_COMMAND=x \"LC_ALL=$(touch /tmp/marker)\"", DEST, "env"],
    ] {
        let output = desk.ssh_with(args, HELLO);
        assert!(is_hello(&output), "{args:?}: {output:?}");
        let output = desk.ssh_with(args, "id\n");
        assert!(is_bad_request(&output), "{args:?}: {output:?}");
    }
    // No terminal, also for one who insists.
    let output = desk.ssh_with(&["-tt", DEST, "bash"], HELLO);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(text(&output.stderr).contains("PTY allocation request failed"), "{output:?}");

    // No files.
    let file = desk.path("file");
    fs::write(&file, "x").unwrap();
    let place = file.to_str().unwrap().to_owned();
    let marker = format!("{DEST}:/tmp/marker");
    let attempts = [
        ("scp", vec![place.clone(), marker.clone()]),
        ("scp", vec!["-O".into(), place.clone(), marker]),
        ("scp", vec![format!("{DEST}:/etc/passwd"), place]),
        ("sftp", vec!["-b".into(), "-".into(), DEST.into()]),
    ];
    // At once, as the guard waits ten seconds for a request each time.
    std::thread::scope(|scope| {
        for (program, args) in &attempts {
            let mut command = desk.ssh(program);
            command.args(args);
            scope.spawn(move || {
                let output = finish(command, b"put /etc/passwd /tmp/marker\n");
                assert!(!output.status.success(), "{program} {args:?}: {output:?}");
            });
        }
    });
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");

    // No forwarding: neither a port in or out, nor the agent, nor a tunnel.
    let port = sshd.port;
    for args in [
        vec!["-W".to_owned(), format!("127.0.0.1:{port}"), DEST.to_owned()],
        vec![
            "-o".into(),
            "ExitOnForwardFailure=yes".into(),
            "-N".into(),
            "-R".into(),
            "0:127.0.0.1:22".into(),
            DEST.into(),
        ],
        vec![
            "-o".into(),
            "ExitOnForwardFailure=yes".into(),
            "-N".into(),
            "-w".into(),
            "any:any".into(),
            DEST.into(),
        ],
    ] {
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let output = desk.ssh_with(&args, "");
        assert!(!output.status.success(), "{args:?}: {output:?}");
        assert!(!text(&output.stdout).contains("SSH-2.0"), "{args:?}: {output:?}");
    }
    assert!(!node.path("/tmp/marker").exists(), "nothing of it ran");
}

#[test]
fn the_key_works_from_one_address_and_no_other_key_works() {
    let Some(node) = Node::start("pve1") else { return };
    let sshd = node.sshd(&["ed25519"], &["PerSourcePenalties=no"]);
    let desk = Desk::joined(&node, &sshd);
    assert!(is_hello(&desk.ssh_with(&[DEST], HELLO)));
    let elsewhere = desk.ssh_with(&["-b", "127.0.0.2", DEST], HELLO);
    assert!(!elsewhere.status.success() && elsewhere.stdout.is_empty(), "{elsewhere:?}");
    assert!(text(&elsewhere.stderr).contains("Permission denied"), "{elsewhere:?}");
    // Another key of the same machine.
    let other = Desk::new(&sshd);
    other.told(&["ssh-setup", "--yes"]);
    let output = other.ssh_with(&[DEST], HELLO);
    assert!(text(&output.stderr).contains("Permission denied"), "{output:?}");
}

#[test]
fn sudo_lets_the_account_run_one_command_and_nothing_around_it() {
    let Some(node) = Node::start("pve1") else { return };
    let sshd = node.sshd(&["ed25519"], &[]);
    let _desk = Desk::joined(&node, &sshd);
    let rule = fs::read_to_string(node.path("/etc/sudoers.d/pve-guard")).unwrap();
    assert!(!rule.contains(['*', '?', '[']), "no pattern: {rule}");
    assert!(!rule.contains("SETENV") && !rule.contains("env_keep"), "{rule}");
    let listed = node.sh("sudo -l -U proxmox-mcp");
    let commands: Vec<_> = listed.lines().filter(|l| l.trim_start().starts_with('(')).collect();
    assert_eq!(commands, ["    (root) NOPASSWD: /usr/sbin/pve-guard \"\""], "{listed}");

    // As the account itself, should somebody ever get that far.
    let as_account = |command: &str| {
        let script = format!(
            "cd /; exec setpriv --reuid proxmox-mcp --regid proxmox-mcp --clear-groups \
             env -i PATH=/usr/sbin:/usr/bin:/bin sh -c \"$1\" <<'IN'\n{HELLO}IN\n"
        );
        node.script(&script, &[command])
    };
    let well = as_account("sudo -n /usr/sbin/pve-guard");
    assert!(is_hello(&well), "{well:?}");
    for command in [
        "sudo -n /usr/sbin/pve-guard --extra",
        "sudo -n /usr/sbin/pve-guard policy check",
        "sudo -n /usr/sbin/pve-guard ''",
        "sudo -n /usr/sbin/pve-guardx",
        "sudo -n /usr/sbin/../sbin/pve-guard policy check",
        "sudo -n sh -c id",
        "sudo -n LD_PRELOAD=/tmp/x.so /usr/sbin/pve-guard",
        "LD_PRELOAD=/tmp/x.so sudo -nE /usr/sbin/pve-guard",
        "sudo -n --preserve-env=PATH /usr/sbin/pve-guard",
        "sudo -n -u proxmox-mcp id",
        "sudo -n -g root /usr/sbin/pve-guard",
        "sudo -n -R / /usr/sbin/pve-guard",
        "sudo -n -D /tmp /usr/sbin/pve-guard",
        "sudo -n -e /etc/passwd",
        "sudo -n -s",
        "sudo -n -i",
    ] {
        let output = as_account(command);
        assert!(!output.status.success(), "{command}: {output:?}");
        assert!(output.stdout.is_empty(), "{command}: {output:?}");
    }
    // The account cannot change what binds it.
    for command in [
        "echo x >> /var/lib/proxmox-mcp/.ssh/authorized_keys",
        "mv /var/lib/proxmox-mcp/.ssh /var/lib/proxmox-mcp/ssh",
        "touch /var/lib/proxmox-mcp/.profile",
        "touch /var/lib/proxmox-mcp/.ssh/rc",
        "cat /etc/sudoers.d/pve-guard",
        "cat /var/log/pve-guard/guard.log",
    ] {
        let output = as_account(command);
        assert!(!output.status.success() && output.stdout.is_empty(), "{command}: {output:?}");
    }
}
