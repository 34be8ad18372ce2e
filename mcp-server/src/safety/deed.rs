//! What is done inside a guest, or by a node's guard: no call of the API says
//! by itself what it does, so it is judged by what it carries.

use serde_json::{Value, json};

use super::{
    Class, Classification, Facts, Flag, Permit, Trail,
    command::{self, Command},
    guests::{self, Touched},
    judge::{self, Judgement},
    lockout, nodes,
    redact::Redactor,
    shown::{quoted, whole},
    subject::{Judged, Seal, Shown, Subject},
};
use crate::{
    Code, Error, Result,
    config::{Config, Mode},
    node::GuardPermit,
    pve::{ApiPath, GuestKind, NodeName, Vmid, loose},
};

mod leave;
mod run;
mod script;
mod windows;

pub use leave::{Leave, Limits, exec_params};
pub use run::{Program, Run, Shell};
pub use script::{Step, System, directory_of};

/// The guest in which something is done, as it was found right before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The node it is on.
    pub node: NodeName,
    /// VM or container.
    pub kind: GuestKind,
    /// Its VMID.
    pub vmid: Vmid,
    /// Its name; for a container its hostname.
    pub name: String,
}

/// New content of a file in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Absolute path.
    pub path: String,
    /// SHA-256 of the content that is sent, in hexadecimal.
    pub sha256: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Whether it goes behind what is there.
    pub append: bool,
    /// Permissions in octal, as for chmod.
    pub mode: Option<String>,
    /// `user` or `user:group`, as for chown.
    pub owner: Option<String>,
    /// Whether missing directories are made.
    pub create_dirs: bool,
    /// SHA-256 that the present content must have.
    pub if_sha256: Option<String>,
}

/// Something that is done by a guest's own means or by a node's guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// A command in a guest.
    Command {
        /// Where.
        place: Place,
        /// What.
        run: Run,
    },
    /// How a command stands that was left running in a VM.
    CommandStatus {
        /// Where.
        place: Place,
        /// The process as the guest agent numbers it.
        pid: i64,
    },
    /// The content of a file in a guest.
    FileRead {
        /// Where.
        place: Place,
        /// Absolute path.
        path: String,
    },
    /// The names in a directory of a guest.
    FileList {
        /// Where.
        place: Place,
        /// Absolute path.
        path: String,
    },
    /// New content for a file in a guest.
    FileWrite {
        /// Where.
        place: Place,
        /// What.
        file: NewFile,
    },
    /// A service of a guest.
    Service {
        /// Where.
        place: Place,
        /// The service.
        service: String,
        /// `status`, `start`, `stop` or `restart`.
        action: &'static str,
    },
    /// The package lists of a node are fetched, and an upgrade simulated on them.
    UpgradeRefresh {
        /// The node.
        node: NodeName,
    },
    /// A node is upgraded.
    UpgradeStart {
        /// The node.
        node: NodeName,
        /// SHA-256 of the transaction that was simulated.
        plan: String,
        /// The transaction in words, for the form.
        details: Vec<String>,
    },
    /// A kernel is pinned for the next boots.
    KernelPin {
        /// The node.
        node: NodeName,
        /// The version.
        version: String,
        /// Only for the next boot.
        next_boot: bool,
    },
    /// The pin is taken away.
    KernelUnpin {
        /// The node.
        node: NodeName,
        /// Only that of the next boot.
        next_boot: bool,
    },
}

impl Deed {
    /// The node on which it is done.
    #[must_use]
    pub const fn node(&self) -> &NodeName {
        match self {
            Deed::Command { place, .. }
            | Deed::CommandStatus { place, .. }
            | Deed::FileRead { place, .. }
            | Deed::FileList { place, .. }
            | Deed::FileWrite { place, .. }
            | Deed::Service { place, .. } => &place.node,
            Deed::UpgradeRefresh { node }
            | Deed::UpgradeStart { node, .. }
            | Deed::KernelPin { node, .. }
            | Deed::KernelUnpin { node, .. } => node,
        }
    }

    /// The guest in which it is done.
    #[must_use]
    pub const fn place(&self) -> Option<&Place> {
        match self {
            Deed::Command { place, .. }
            | Deed::CommandStatus { place, .. }
            | Deed::FileRead { place, .. }
            | Deed::FileList { place, .. }
            | Deed::FileWrite { place, .. }
            | Deed::Service { place, .. } => Some(place),
            _ => None,
        }
    }

    /// What it is called in records.
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        match self {
            Deed::Command { .. } => "EXEC",
            Deed::CommandStatus { .. } => "EXEC-STATUS",
            Deed::FileRead { .. } => "FILE-READ",
            Deed::FileList { .. } => "FILE-LIST",
            Deed::FileWrite { .. } => "FILE-WRITE",
            Deed::Service { .. } => "SERVICE",
            Deed::UpgradeRefresh { .. } => "UPGRADE-SIMULATE",
            Deed::UpgradeStart { .. } => "UPGRADE-START",
            Deed::KernelPin { .. } => "KERNEL-PIN",
            Deed::KernelUnpin { .. } => "KERNEL-UNPIN",
        }
    }

    /// A path in the form of the API's that names the object.
    fn path(&self) -> Result<ApiPath> {
        let node = self.node().as_str();
        let Some(place) = self.place() else {
            let what = match self {
                Deed::KernelPin { .. } | Deed::KernelUnpin { .. } => "kernel",
                _ => "upgrade",
            };
            return ApiPath::of(&["nodes", node, what]);
        };
        let vmid = place.vmid.to_string();
        let kind = place.kind.as_str();
        match place.kind {
            GuestKind::Qemu => ApiPath::of(&["nodes", node, kind, &vmid, "agent", "exec"]),
            GuestKind::Lxc => ApiPath::of(&["nodes", node, kind, &vmid, "exec"]),
        }
    }

    /// The exact text that confirms it where it is CRITICAL.
    fn confirm(&self) -> String {
        match self {
            Deed::Command { run, .. } => run.text(),
            Deed::CommandStatus { pid, .. } => pid.to_string(),
            Deed::FileRead { path, .. } | Deed::FileList { path, .. } => path.clone(),
            Deed::FileWrite { file, .. } => file.path.clone(),
            Deed::Service { service, action, .. } => format!("{action} {service}"),
            Deed::UpgradeStart { plan, .. } => plan.clone(),
            Deed::KernelPin { version, .. } => version.clone(),
            Deed::UpgradeRefresh { node } | Deed::KernelUnpin { node, .. } => node.to_string(),
        }
    }

    /// What it carries, for records and answers.
    fn params(&self) -> Value {
        match self {
            Deed::Command { run, .. } => run.params(),
            Deed::CommandStatus { pid, .. } => json!({"pid": pid}),
            Deed::FileRead { path, .. } | Deed::FileList { path, .. } => json!({"path": path}),
            Deed::FileWrite { file, .. } => json!({
                "path": file.path, "bytes": file.bytes, "sha256": file.sha256,
                "append": file.append, "mode": file.mode, "owner": file.owner,
                "create_dirs": file.create_dirs, "if_sha256": file.if_sha256,
            }),
            Deed::Service { service, action, .. } => json!({"service": service, "action": action}),
            Deed::UpgradeRefresh { .. } => json!({"refresh": true}),
            Deed::UpgradeStart { plan, .. } => json!({"plan": plan}),
            Deed::KernelPin { version, next_boot, .. } => {
                json!({"version": version, "next_boot": next_boot})
            }
            Deed::KernelUnpin { next_boot, .. } => json!({"next_boot": next_boot}),
        }
    }

    /// Lines of the form: everything that is run or written, whole.
    fn lines(&self, redactor: &Redactor) -> Vec<String> {
        match self {
            Deed::Command { run, .. } => {
                let text = run.text();
                let masked = redactor.text(&text).unwrap_or(text);
                let mut lines = vec![format!("Command ({}): {}", run.how(), whole(&masked))];
                if let Some(cwd) = &run.cwd {
                    lines.push(format!("In directory: {}", whole(cwd)));
                }
                if let Some(stdin) = &run.stdin {
                    let text = String::from_utf8_lossy(stdin);
                    let masked = redactor.text(&text).unwrap_or_else(|| text.into_owned());
                    // To a shell it is the command.
                    lines.push(format!("Input ({} bytes): {}", stdin.len(), whole(&masked)));
                }
                lines.push(format!("Ends after: {} s", run.timeout_s));
                lines
            }
            Deed::CommandStatus { pid, .. } => vec![format!("How process {pid} stands")],
            Deed::FileRead { path, .. } => vec![format!("File: {}", whole(path))],
            Deed::FileList { path, .. } => vec![format!("Directory: {}", whole(path))],
            Deed::FileWrite { file, .. } => {
                let how = if file.append { "goes behind what is there" } else { "replaces it" };
                let mut lines = vec![
                    format!("File: {}", whole(&file.path)),
                    format!("Content: {} bytes, SHA-256 {}, {how}", file.bytes, file.sha256),
                ];
                for (word, value) in [("Permissions", &file.mode), ("Owner", &file.owner)] {
                    lines.extend(value.iter().map(|v| format!("{word}: {}", quoted(v))));
                }
                lines
            }
            Deed::Service { service, action, .. } => {
                vec![format!("Service: {action} {}", whole(service))]
            }
            Deed::UpgradeRefresh { node } => {
                vec![format!("The package lists of {node} are fetched from its repositories")]
            }
            Deed::UpgradeStart { node, plan, details } => {
                let mut lines = vec![format!("Upgrade of {node}, plan {plan}")];
                lines.extend(details.iter().cloned());
                lines
            }
            Deed::KernelPin { node, version, next_boot } => {
                let when = if *next_boot { "at its next boot only" } else { "from now on" };
                vec![format!("{node} boots kernel {} {when}", quoted(version))]
            }
            Deed::KernelUnpin { node, next_boot } => {
                let what = if *next_boot { "The pin for the next boot" } else { "Every pin" };
                vec![format!("{what} of {node} is taken away: the newest kernel boots")]
            }
        }
    }

    /// How it could be undone.
    const fn undo(&self) -> &'static str {
        match self {
            Deed::FileRead { .. } | Deed::FileList { .. } | Deed::CommandStatus { .. } => {
                "nothing is changed"
            }
            Deed::Service { .. } => "start or stop the service again",
            Deed::UpgradeRefresh { .. } => "nothing is installed; the lists are newer afterwards",
            Deed::UpgradeStart { .. } => "no undo: packages are not taken back",
            Deed::KernelPin { .. } => "pve_kernel_unpin, or pin the former version again",
            Deed::KernelUnpin { .. } => "pve_kernel_pin with the version that was pinned",
            Deed::Command { .. } | Deed::FileWrite { .. } => {
                "no undo by this server: a snapshot or a backup brings the guest's former state back"
            }
        }
    }

    /// The class, by what is run or written.
    fn class(&self) -> Classification {
        let mut class = Classification::none();
        match self {
            Deed::Command { run, .. } => {
                class.class = Class::Write;
                let stdin = run.stdin.as_deref();
                let found = command::classify(&run.command(), run.cwd.as_deref(), stdin);
                apply(&mut class, found);
                if let (true, Program::Argv(argv)) = (run.windows, &run.program) {
                    apply(&mut class, command::windows_list(argv, run.cwd.as_deref(), stdin));
                }
            }
            Deed::FileRead { path, .. } => {
                if let Some(why) = command::secret_path(path, None) {
                    class.never = Some(secret(path, why));
                }
            }
            Deed::FileList { .. } | Deed::CommandStatus { .. } => {}
            Deed::FileWrite { file, .. } => {
                class.class = Class::Write;
                // What a shell would need for it says what it is.
                let argv = ["tee".to_owned(), "--".to_owned(), file.path.clone()];
                let found = command::classify(&Command::Argv(&argv), None, None);
                apply(&mut class, command::Finding { secret: None, ..found });
                // Set-uid, set-gid, sticky: the first of four digits.
                if file
                    .mode
                    .as_deref()
                    .is_some_and(|m| m.len() > 3 && m.starts_with(['2', '4', '6', '7', '3', '5']))
                {
                    let why = "a file that runs with its owner's rights".to_owned();
                    class.critical(Flag::ExecSystemFiles, why);
                }
                if command::is_windows(&file.path) {
                    for flag in command::windows_written(&file.path) {
                        class.critical(flag, flag.explanation().trim_end_matches('.').to_owned());
                    }
                }
            }
            Deed::Service { action: "status", .. } => {}
            Deed::Service { service, action, .. } => {
                class.critical(Flag::ExecServices, format!("{action} of {}", quoted(service)));
                // A target can be the end of the system.
                let argv = ["systemctl".to_owned(), (*action).to_owned(), service.clone()];
                let found = command::classify(&Command::Argv(&argv), None, None);
                apply(&mut class, command::Finding { secret: None, ..found });
            }
            Deed::UpgradeRefresh { .. } => class.class = Class::Write,
            Deed::UpgradeStart { node, .. } => {
                class.critical(Flag::NodeUpgrade, format!("the packages of {node} are upgraded"));
            }
            Deed::KernelPin { node, .. } | Deed::KernelUnpin { node, .. } => {
                class.critical(Flag::NodeBootConfig, format!("which kernel {node} boots"));
            }
        }
        class
    }

    fn check(
        &self,
        config: &Config,
        class: &Classification,
        touched: &Touched,
        guest: Option<&Value>,
    ) -> Result<()> {
        if let Some(never) = &class.never {
            return Err(never.clone());
        }
        if config.mode == Mode::ReadOnly {
            return Err(Error::new(Code::ReadOnly, "the server is read-only")
                .hint("the owner of this server allows changes with PROXMOX_MODE=write"));
        }
        if let Some(place) = self.place() {
            if !config.exec {
                return Err(Error::new(
                    Code::FlagDisabled,
                    "commands and files inside guests are off",
                )
                .hint("the owner of this server turns them on with PROXMOX_EXEC=enabled")
                .with("flag", "PROXMOX_EXEC"));
            }
            lockout::check_guest(config, place.vmid, guest)?;
        }
        guests::check(config, touched)?;
        judge::flags(config, class)?;
        nodes::check_one(config, self.node().as_str())
    }
}

fn apply(class: &mut Classification, found: command::Finding) {
    for flag in found.categories {
        class.critical(flag, flag.explanation().trim_end_matches('.').to_owned());
    }
    class.reasons.extend(found.reasons);
    if let Some(path) = found.secret {
        class.never = Some(secret(&path, "it holds secrets"));
    }
}

fn secret(path: &str, why: &str) -> Error {
    Error::new(Code::EndpointRefused, format!("{} is not read: {why}", quoted(path)))
        .hint("secrets of a guest stay in the guest; this catches mistakes and is no boundary")
        .with("path", path)
}

/// Whether the guest is where it was found, and runs.
fn live(place: &Place, facts: &Facts) -> Result<()> {
    let Some(row) = facts.guest(place.vmid) else { return Ok(()) };
    let node = loose::str(row, "node").unwrap_or_default();
    if node != place.node.as_str() {
        return Err(Error::new(
            Code::GuestMoved,
            format!("guest {} is on {node} now, not on {}", place.vmid, place.node),
        )
        .hint("call again")
        .with("node", node));
    }
    match loose::str(row, "status") {
        None | Some("running" | "unknown") => Ok(()),
        Some(status) => Err(Error::new(
            Code::Conflict,
            format!("{} {} is {status}, so nothing can run in it", place.kind.noun(), place.vmid),
        )
        .hint("start it with pve_guest_start, or resume it with pve_guest_resume")
        .with("status", status)),
    }
}

impl Subject for Deed {
    type Leave = Leave;
    const READS_PASS: bool = false;

    fn judge(&self, config: &Config, facts: &Facts) -> Judged {
        let mut class = self.class();
        match self.path() {
            Ok(path) => judge::protect(&path, config, &mut class),
            Err(error) => class.never = Some(error),
        }
        let place = self.place();
        let touched =
            Touched { vmids: place.map(|p| p.vmid).into_iter().collect(), ..Touched::default() };
        let guest = place.and_then(|p| {
            facts.guest_config(p.node.as_str(), p.kind.as_str(), &p.vmid.to_string()).ok()
        });
        let refusal = self.check(config, &class, &touched, guest).err();
        let row = place.and_then(|p| facts.guest(p.vmid));
        let status = row.and_then(|r| loose::text(r, "status"));
        let state = place.map(|p| {
            json!({"vmid": p.vmid.get(), "kind": p.kind.as_str(), "name": p.name,
                "node": p.node.as_str(), "status": status})
        });
        let object: serde_json::Map<String, Value> =
            ["name", "hostname", "meta", "vmgenid", "smbios1"]
                .into_iter()
                .filter_map(|key| Some((key.to_owned(), guest?.get(key)?.clone())))
                .collect();
        let bound = json!({
            "verb": self.verb(), "node": self.node().as_str(), "guest": state,
            "object": object, "params": self.params(), "confirm": self.confirm(),
            "class": class.class_text(),
            "host": config.hosts.iter().map(|h| h.host.as_str()).collect::<Vec<_>>(),
        });
        let critical = class.class == Class::Critical && class.never.is_none();
        Judged {
            live: place.map_or(Ok(()), |place| live(place, facts)),
            confirm: critical.then(|| self.confirm()),
            state,
            impact: Vec::new(),
            undo: self.undo().to_owned(),
            bound: bound.to_string(),
            judgement: Judgement { class, touched, refusal },
        }
    }

    fn shown(&self, _: &Judged, redactor: &Redactor) -> Shown {
        let mut params = self.params();
        redactor.value(None, &mut params);
        Shown {
            method: self.verb(),
            path: self.path().map(|p| p.as_str().to_owned()).unwrap_or_default(),
            params,
            lines: self.lines(redactor),
        }
    }

    fn settled(self, _: &Judged) -> Result<Self> {
        Ok(self)
    }

    fn leave(self, trail: Trail, _: Seal) -> Leave {
        Leave::new(self, trail)
    }
}

#[cfg(test)]
#[path = "deed_tests.rs"]
mod tests;
