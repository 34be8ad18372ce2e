//! The commands that make a user, a role and a token on a node.
//!
//! Releases differ in their privileges, and one that a release does not know
//! makes the whole command fail: Proxmox VE 9 has `VM.GuestAgent.*` and
//! `VM.Replicate` where 8 had `VM.Monitor`.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// What a token may be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Looking, and nothing else.
    Read,
    /// Everything that the tools can do.
    Full,
}

/// A release by what its privileges are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Proxmox VE 9.
    Nine,
    /// Proxmox VE 8.
    Eight,
}

const READ: &[&str] = &[
    "Datastore.Audit",
    "Mapping.Audit",
    "Pool.Audit",
    "SDN.Audit",
    "Sys.Audit",
    "Sys.Syslog",
    "VM.Audit",
];

const FULL: &[&str] = &[
    "Datastore.Allocate",
    "Datastore.AllocateSpace",
    "Datastore.AllocateTemplate",
    "Datastore.Audit",
    "Group.Allocate",
    "Mapping.Audit",
    "Mapping.Modify",
    "Mapping.Use",
    "Permissions.Modify",
    "Pool.Allocate",
    "Pool.Audit",
    "Realm.Allocate",
    "Realm.AllocateUser",
    "SDN.Allocate",
    "SDN.Audit",
    "SDN.Use",
    "Sys.AccessNetwork",
    "Sys.Audit",
    "Sys.Console",
    "Sys.Incoming",
    "Sys.Modify",
    "Sys.PowerMgmt",
    "Sys.Syslog",
    "User.Modify",
    "VM.Allocate",
    "VM.Audit",
    "VM.Backup",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Cloudinit",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.Console",
    "VM.Migrate",
    "VM.PowerMgmt",
    "VM.Snapshot",
    "VM.Snapshot.Rollback",
];

/// The privileges of a role.
#[must_use]
pub fn privileges(purpose: Use, release: Release) -> Vec<&'static str> {
    let (common, own): (&[&str], &[&str]) = match (purpose, release) {
        (Use::Read, Release::Nine) => (READ, &["VM.GuestAgent.Audit"]),
        // VM.Monitor is more than looking: it reaches into the guest.
        (Use::Read, Release::Eight) => (READ, &[]),
        (Use::Full, Release::Nine) => (
            FULL,
            &[
                "VM.GuestAgent.Audit",
                "VM.GuestAgent.FileRead",
                "VM.GuestAgent.FileSystemMgmt",
                "VM.GuestAgent.FileWrite",
                "VM.GuestAgent.Unrestricted",
                "VM.Replicate",
            ],
        ),
        (Use::Full, Release::Eight) => (FULL, &["VM.Monitor"]),
    };
    common.iter().chain(own).copied().collect()
}

/// The commands, to be run as root on one node of the cluster.
#[must_use]
pub fn commands(purpose: Use, release: Release) -> [String; 4] {
    let (role, token, user) = match purpose {
        Use::Read => ("ProxmoxMCPRead", "read", "mcp-read@pve"),
        Use::Full => ("ProxmoxMCP", "full", "mcp@pve"),
    };
    [
        format!("pveum role add {role} --privs '{}'", privileges(purpose, release).join(" ")),
        format!("pveum user add {user} --comment 'proxmox-mcp'"),
        format!("pveum acl modify / --users {user} --roles {role}"),
        format!("pveum user token add {user} {token} --privsep 0"),
    ]
}

/// What `init` prints.
#[must_use]
pub fn text() -> String {
    let mut text = String::from(
        "A token is made on a node, as root (`pveversion` shows the release). The last command of\n\
         each block shows the secret once.\n",
    );
    for (purpose, title) in [
        (Use::Read, "Read-only: looking at everything"),
        (Use::Full, "Full use: with PROXMOX_MODE=write"),
    ] {
        for (release, name) in [(Release::Nine, "9"), (Release::Eight, "8")] {
            let _ = write!(text, "\n# {title}, Proxmox VE {name}\n");
            for command in commands(purpose, release) {
                text.push_str(&command);
                text.push('\n');
            }
        }
    }
    text.push_str(
        "\nA read-only token does not see backups: Proxmox shows them only with VM.Backup and\n\
         Datastore.AllocateSpace, which also allow making them. Add those two to the role if\n\
         backups are to be watched.\n\n\
         Then:\n\
         1. put PROXMOX_HOST, PROXMOX_TOKEN_ID and PROXMOX_TOKEN_SECRET into .env;\n\
         2. `proxmox-mcp fingerprint` shows the certificate; compare it and put it into .env;\n\
         3. `proxmox-mcp check` tries everything out.\n",
    );
    text
}

/// The same for programs.
#[must_use]
pub fn as_json() -> Value {
    json!({
        "read_only": {"pve9": commands(Use::Read, Release::Nine), "pve8": commands(Use::Read, Release::Eight)},
        "full": {"pve9": commands(Use::Full, Release::Nine), "pve8": commands(Use::Full, Release::Eight)},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_only_asked_for_privileges_that_it_knows() {
        for purpose in [Use::Read, Use::Full] {
            let nine = privileges(purpose, Release::Nine);
            let eight = privileges(purpose, Release::Eight);
            assert!(!nine.contains(&"VM.Monitor"));
            assert!(nine.iter().any(|p| p.starts_with("VM.GuestAgent.")));
            assert!(!eight.iter().any(|p| p.starts_with("VM.GuestAgent.") || *p == "VM.Replicate"));
        }
        assert!(privileges(Use::Full, Release::Eight).contains(&"VM.Monitor"));
    }

    /// Looking is looking: nothing in the read-only role changes anything.
    #[test]
    fn the_read_only_role_only_looks() {
        for release in [Release::Nine, Release::Eight] {
            for privilege in privileges(Use::Read, release) {
                assert!(privilege.ends_with(".Audit") || privilege == "Sys.Syslog", "{privilege}");
            }
        }
    }

    /// What the node's own Administrator role holds, where a recording of one is at hand.
    #[test]
    fn full_use_is_what_an_administrator_has() {
        let folder = std::env::var_os("PVE_RECORDINGS").map_or_else(
            || std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/recordings"),
            std::path::PathBuf::from,
        );
        let Ok(text) = std::fs::read_to_string(folder.join("01-reads.jsonl")) else {
            println!("skipped: no recordings in {}", folder.display());
            return;
        };
        let roles = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(|r| r["path"] == "/api2/json/access/roles" && r["status"] == 200)
            .unwrap();
        let role = |name: &str| {
            let all = roles["body"]["data"].as_array().unwrap();
            let role = all.iter().find(|r| r["roleid"] == name).unwrap();
            let mut privileges: Vec<String> =
                role["privs"].as_str().unwrap().split(',').map(str::to_owned).collect();
            privileges.sort();
            privileges
        };
        let mut ours = privileges(Use::Full, Release::Nine);
        ours.sort_unstable();
        assert_eq!(ours, role("Administrator"));
        let auditor = role("PVEAuditor");
        assert!(auditor.iter().all(|p| privileges(Use::Read, Release::Nine).contains(&p.as_str())));
    }
}
