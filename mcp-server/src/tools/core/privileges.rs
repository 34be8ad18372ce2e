//! What a token can do, told by what it is needed for.

use serde_json::{Map, Value, json};

use crate::{config::Mode, pve::error::role_with};

/// Something that a person wants to do, and the privileges that Proxmox asks for it.
struct Task {
    what: &'static str,
    root: &'static str,
    privileges: &'static [&'static str],
}

const fn task(what: &'static str, root: &'static str, privileges: &'static [&'static str]) -> Task {
    Task { what, root, privileges }
}

const READING: &[Task] = &[
    task("see guests", "/vms", &["VM.Audit"]),
    task("see nodes, tasks and the cluster", "/nodes", &["Sys.Audit"]),
    task("see storages and volumes", "/storage", &["Datastore.Audit"]),
];

/// Backups are shown only to those who could make them.
const BACKUPS: &[Task] = &[
    task("see backups of guests", "/vms", &["VM.Backup"]),
    task("see backups on storages", "/storage", &["Datastore.AllocateSpace"]),
];

const CHANGING: &[Task] = &[
    task("start and stop guests", "/vms", &["VM.PowerMgmt"]),
    task("take snapshots and roll back", "/vms", &["VM.Snapshot", "VM.Snapshot.Rollback"]),
    task("make and delete guests", "/vms", &["VM.Allocate"]),
    task("clone guests", "/vms", &["VM.Clone"]),
    task("migrate guests", "/vms", &["VM.Migrate"]),
    task("back guests up", "/vms", &["VM.Backup"]),
    task("change options of guests", "/vms", &["VM.Config.Options"]),
    task("change CPU and memory of guests", "/vms", &["VM.Config.CPU", "VM.Config.Memory"]),
    task("change disks of guests", "/vms", &["VM.Config.Disk"]),
    task("change network cards of guests", "/vms", &["VM.Config.Network"]),
    task("set cloud-init", "/vms", &["VM.Config.Cloudinit"]),
    task("put volumes on storages", "/storage", &["Datastore.AllocateSpace"]),
    task("upload images and templates", "/storage", &["Datastore.AllocateTemplate"]),
    task("define storages", "/storage", &["Datastore.Allocate"]),
    task("connect guests to bridges", "/sdn", &["SDN.Use"]),
    task("define virtual networks", "/sdn", &["SDN.Allocate"]),
    task("manage pools", "/pool", &["Pool.Allocate"]),
    task("configure nodes and HA", "/", &["Sys.Modify"]),
    task("reboot nodes", "/nodes", &["Sys.PowerMgmt"]),
    task("manage users and permissions", "/access", &["User.Modify", "Permissions.Modify"]),
];

/// The agent's privileges have other names in Proxmox VE 8 and 9, and asking
/// for one that a release does not know is an error there.
const AGENT_9: &[Task] = &[
    task("ask guest agents", "/vms", &["VM.GuestAgent.Audit"]),
    task("run commands in VMs", "/vms", &["VM.GuestAgent.Unrestricted"]),
];
const AGENT_8: &[Task] =
    &[task("ask guest agents and run commands in VMs", "/vms", &["VM.Monitor"])];

/// The steps of a check: reading, which has to be there, and in write mode what
/// of the changes the token could not do.
pub fn steps(permissions: &Value, release: &str, mode: Mode) -> Vec<Value> {
    let major: u32 = release.split('.').next().and_then(|n| n.parse().ok()).unwrap_or(9);
    let agent = if major >= 9 { AGENT_9 } else { AGENT_8 };
    let reading = missing(permissions, READING);
    let mut steps = vec![if reading.is_empty() {
        json!({"step": "privileges", "ok": true, "detail": "can see guests, nodes and storages"})
    } else {
        json!({
            "step": "privileges", "ok": false, "missing": reading,
            "detail": format!("the token cannot {}", list(&reading)),
            "hint": "pveum acl modify / --tokens 'USER@REALM!NAME' --roles PVEAuditor; a token with \
                     privilege separation has only what is given to the token itself",
        })
    }];
    let mut lacking = missing(permissions, BACKUPS);
    if mode == Mode::Write {
        lacking.extend(missing(permissions, CHANGING));
        lacking.extend(missing(permissions, agent));
    }
    if !lacking.is_empty() {
        steps.push(json!({
            "step": "further privileges", "ok": true, "missing": lacking,
            "detail": format!("the token cannot {}", list(&lacking)),
            "hint": "`proxmox-mcp init` prints the role with everything that the tools can use",
        }));
    }
    steps
}

fn missing(permissions: &Value, tasks: &[Task]) -> Vec<Value> {
    let paths = permissions.as_object();
    let has = |root: &str, privilege: &str| {
        paths.into_iter().flatten().any(|(path, held)| {
            below(path, root)
                && held.as_object().is_some_and(|h: &Map<_, _>| h.contains_key(privilege))
        })
    };
    let mut out = Vec::new();
    for task in tasks {
        for privilege in task.privileges {
            if !has(task.root, privilege) {
                out.push(json!({
                    "for": task.what, "privilege": privilege, "path": task.root,
                    "role": role_with(privilege),
                }));
            }
        }
    }
    out
}

/// Whether a grant on `path` reaches something of `root`: it stands on it, above
/// it or below it; rights on guests also come by pools.
fn below(path: &str, root: &str) -> bool {
    path == "/"
        || root == "/"
        || path == root
        || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
        || (matches!(root, "/vms" | "/storage") && path.starts_with("/pool/"))
}

fn list(missing: &[Value]) -> String {
    let mut parts: Vec<String> = missing
        .iter()
        .map(|m| {
            let text = |key: &str| m.get(key).and_then(Value::as_str).unwrap_or_default();
            format!("{} ({} on {})", text("for"), text("privilege"), text("path"))
        })
        .collect();
    parts.dedup();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(steps: &[Value], step: &str) -> Vec<String> {
        steps
            .iter()
            .filter(|s| s["step"] == step)
            .flat_map(|s| s["missing"].as_array().into_iter().flatten())
            .map(|m| m["privilege"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn nothing_is_missing_where_everything_is_held() {
        let all: Map<String, Value> = READING
            .iter()
            .chain(BACKUPS)
            .chain(CHANGING)
            .chain(AGENT_9)
            .flat_map(|t| t.privileges)
            .map(|p| ((*p).to_owned(), 1.into()))
            .collect();
        let steps = steps(&json!({"/": all}), "9.2.11", Mode::Write);
        assert_eq!(steps.len(), 1);
        assert_eq!(steps[0]["ok"], true);
    }

    #[test]
    fn what_is_missing_is_named_by_what_it_is_for_and_by_the_release() {
        let auditor = json!({"/": {"VM.Audit": 1, "Sys.Audit": 1, "Datastore.Audit": 1}});
        let nine = steps(&auditor, "9.2.11", Mode::Write);
        assert!(of(&nine, "privileges").is_empty());
        let lacking = of(&nine, "further privileges");
        assert!(lacking.contains(&"VM.GuestAgent.Audit".to_owned()));
        assert!(!lacking.contains(&"VM.Monitor".to_owned()));
        let eight = of(&steps(&auditor, "8.4.1", Mode::Write), "further privileges");
        assert!(eight.contains(&"VM.Monitor".to_owned()));
        assert!(!eight.iter().any(|p| p.starts_with("VM.GuestAgent")));
        let read = of(&steps(&auditor, "9.2.11", Mode::ReadOnly), "further privileges");
        assert_eq!(read, ["VM.Backup", "Datastore.AllocateSpace"]);
        let none = steps(&json!({}), "9.2.11", Mode::ReadOnly);
        assert_eq!(none[0]["ok"], false);
        assert!(none[0]["detail"].as_str().unwrap().contains("see guests (VM.Audit on /vms)"));
        let pool = json!({"/pool/x": {"VM.Audit": 0}, "/nodes/a": {"Sys.Audit": 1}, "/storage/s": {"Datastore.Audit": 1}});
        assert_eq!(steps(&pool, "9.0", Mode::ReadOnly)[0]["ok"], true);
    }
}
