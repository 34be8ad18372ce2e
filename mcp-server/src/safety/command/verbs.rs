//! Programs that are told by a verb what to do, by the table of `reads.rs`.

use super::{managed::noun_looks, reads::Verbs, walk::Walk, words::Arg, wrappers::after_options};
use crate::safety::Flag;

impl Walk<'_> {
    pub(super) fn verbs(&mut self, table: &Verbs, name: &str, args: &[Arg]) {
        let values: &[&str] = match name {
            "systemctl" => &[
                "host",
                "machine",
                "type",
                "state",
                "lines",
                "output",
                "property",
                "message",
                "what",
                "kill-whom",
                "kill-value",
                "signal",
                "job-mode",
                "when",
                "root",
                "image",
                "preset-mode",
                "boot-loader-menu",
                "boot-loader-entry",
                "reboot-argument",
                "timestamp",
            ],
            "kubectl" | "helm" | "oc" => &["namespace", "context", "kubeconfig", "cluster"],
            _ => &[],
        };
        let short = match name {
            "systemctl" => "HMtnop",
            "kubectl" | "helm" | "oc" => "n",
            "apt" | "apt-get" => "ot",
            "pg_ctl" => "DlowtU",
            "virsh" => "cdkKlq",
            "rabbitmqctl" => "npt",
            "supervisorctl" => "cspu",
            "varnishadm" => "nSTt",
            "ldapdelete" | "ldapmodify" | "ldapadd" => "DwHhpfySPxY",
            "ceph" | "rbd" | "rados" => "cnkmp",
            "portsnap" | "freebsd-update" => "bdfkrstv",
            _ => "",
        };
        self.options_that_run(name, args);
        let tries = |a: &Arg| {
            matches!(a.text.as_str(), "--help" | "--dry-run" | "--simulate" | "--just-print")
                || a.text.starts_with("--dry-run=") && a.text != "--dry-run=none"
        };
        // Behind a verb it can be the version of what is asked for.
        let asks = args.first().is_some_and(|a| a.text == "--version");
        if asks || args.iter().any(tries) {
            return;
        }
        let simulates = args.iter().any(|a| {
            matches!(a.text.as_str(), "-s" | "-h" | "-sV" | "-Vs" | "--no-act" | "--print-uris")
                || a.text == "--recon"
        });
        if simulates && matches!(name, "apt" | "apt-get" | "aptitude") {
            return;
        }
        let at = after_options(args, short, values);
        let word = args.get(at).or_else(|| args.first());
        let Some(word) = word else {
            if !table.bare || name == "yarn" {
                self.found.add(table.flag, name);
            }
            return;
        };
        let looks = |w: &Arg| !w.unknown && table.looks.contains(&w.text.as_str());
        if looks(word) || args.first().is_some_and(|a| table.looks.contains(&a.text.as_str())) {
            return self.looks_deeper(name, table, args, at);
        }
        if table.looks.is_empty() || args.iter().all(Arg::is_option) && table.bare {
            return;
        }
        if let Some(flags) = self.own_flags(name, &word.text, args) {
            for flag in flags {
                self.found.add(*flag, &format!("{name} {}", word.text));
            }
            return;
        }
        let power = [
            "reboot",
            "poweroff",
            "halt",
            "kexec",
            "soft-reboot",
            "suspend",
            "hibernate",
            "hybrid-sleep",
            "suspend-then-hibernate",
            "sleep",
            "switch-root",
            "rescue",
            "emergency",
            "exit",
            "default",
        ];
        if name == "systemctl" {
            let target = args.iter().any(|a| {
                [
                    "reboot.target",
                    "poweroff.target",
                    "halt.target",
                    "rescue.target",
                    "emergency.target",
                    "kexec.target",
                    "runlevel0.target",
                    "runlevel6.target",
                    "ctrl-alt-del.target",
                    "systemd-reboot.service",
                    "systemd-poweroff.service",
                    "systemd-halt.service",
                    "shutdown.target",
                    "suspend.target",
                    "hibernate.target",
                    "hybrid-sleep.target",
                    "sleep.target",
                    "systemd-suspend.service",
                    "rescue.service",
                    "emergency.service",
                ]
                .contains(&a.text.as_str())
                    // `isolate` adds the ending itself.
                    || word.text == "isolate" && power.contains(&a.text.as_str())
                    || matches!(word.text.as_str(), "start" | "restart")
                        && matches!(
                            a.text.as_str(),
                            "rescue"
                                | "emergency"
                                | "systemd-reboot"
                                | "systemd-poweroff"
                                | "systemd-halt"
                                | "systemd-suspend"
                                | "systemd-hibernate"
                                | "systemd-kexec"
                                | "runlevel0.target"
                        )
            });
            if power.contains(&word.text.as_str()) || target {
                return self.found.add(Flag::ExecPower, &format!("systemctl {}", word.text));
            }
        }
        if name == "pct" || word.unknown {
            self.found.add(Flag::ExecShell, "a verb that is put together while it runs");
        }
        if runs_scripts(name, &word.text) {
            return self.found.add(Flag::ExecShell, &format!("{name} runs a program of its own"));
        }
        self.found.add(table.flag, &format!("{name} {}", word.text));
    }

    /// Verbs that only look, but for what stands behind them.
    pub(super) fn looks_deeper(&mut self, name: &str, table: &Verbs, args: &[Arg], at: usize) {
        let second = args.get(at + 1).map(|a| a.text.as_str()).unwrap_or_default();
        let verb = args.get(at).map(|a| a.text.as_str()).unwrap_or_default();
        if noun_looks(name, verb, second) == Some(false) {
            let deletes = ["rm", "delete", "destroy", "purge", "remove"];
            if deletes.contains(&second) {
                self.found.add(Flag::ExecDelete, &format!("{name} {verb} {second}"));
            }
            self.found.add(table.flag, &format!("{name} {verb} {second}"));
            return;
        }
        let changes = match (name, verb) {
            ("dnf" | "yum" | "dnf5" | "microdnf" | "tdnf", "history") => {
                matches!(second, "undo" | "redo" | "rollback" | "replay" | "store")
            }
            ("dnf" | "yum" | "dnf5" | "microdnf" | "tdnf", "group" | "module") => {
                !matches!(second, "list" | "info" | "summary" | "provides" | "")
            }
            ("kubectl" | "oc", "rollout") => !matches!(second, "status" | "history"),
            ("npm" | "pip" | "pip3" | "kubectl" | "oc" | "helm", "config") => {
                matches!(
                    second,
                    "set" | "delete" | "edit" | "set-context" | "use-context" | "unset"
                )
            }
            ("npm", "audit") => second == "fix",
            ("dnf" | "yum" | "dnf5", "versionlock") => {
                matches!(second, "add" | "delete" | "clear" | "exclude")
            }
            ("conda" | "mamba", "env") => {
                matches!(second, "create" | "remove" | "update")
            }
            ("ufw", "app") => !matches!(second, "list" | "info"),
            _ => false,
        };
        if changes {
            self.found.add(table.flag, &format!("{name} {verb} {second}"));
        }
    }

    /// Options that make a program with verbs run another one.
    fn options_that_run(&mut self, name: &str, args: &[Arg]) {
        let lower = |a: &Arg| a.text.to_ascii_lowercase();
        let runs = match name {
            "apt" | "apt-get" | "aptitude" => args.iter().any(|a| {
                let text = lower(a);
                ["-invoke", "dir::bin", "::proxy-auto-detect", "dpkg::"]
                    .iter()
                    .any(|part| text.contains(part) && !text.contains("dpkg::options"))
                    || matches!(a.text.as_str(), "-c" | "--config-file")
            }),
            "helm" => args.iter().any(|a| a.text.starts_with("--post-renderer")),
            "snap" | "flatpak" => args.first().is_some_and(|a| a.text == "run"),
            _ => false,
        };
        if runs {
            self.found.add(Flag::ExecShell, &format!("{name} runs a program that is named to it"));
        }
    }

    /// The categories of a verb that are not its program's.
    fn own_flags(&self, name: &str, verb: &str, args: &[Arg]) -> Option<&'static [Flag]> {
        use Flag::{ExecDelete, ExecDisks, ExecServices, ExecUsers};
        let operands = args.iter().filter(|a| !a.is_option()).count();
        let has = |words: &[&str]| args.iter().any(|a| words.contains(&a.text.as_str()));
        match (name, verb) {
            ("zfs", "destroy" | "rollback") | ("zpool", "destroy" | "labelclear") => {
                Some(&[ExecDelete, ExecDisks])
            }
            // Without a name it lists what could be imported.
            ("zpool", "import") if operands == 1 && !has(&["-a"]) => Some(&[]),
            ("rbd", "rm" | "remove" | "trash" | "mv") | ("rados", "rm" | "purge" | "rmpool") => {
                Some(&[ExecDelete, ExecDisks])
            }
            ("rpm-ostree" | "bootc", _) if has(&["--reboot", "-r", "--apply"]) => {
                Some(&[Flag::ExecPackages, Flag::ExecPower])
            }
            ("transactional-update", "reboot") => Some(&[Flag::ExecPower]),
            ("transactional-update", "shell" | "run") => Some(&[Flag::ExecShell]),
            ("doveadm", "expunge" | "purge") => Some(&[ExecDelete]),
            ("kubeadm", "reset") | ("lxc" | "incus", "delete" | "rm") => {
                Some(&[ExecDelete, ExecServices])
            }
            ("pg_dropcluster" | "lxc-destroy", _) => Some(&[ExecDelete, ExecServices]),
            ("ldapdelete", _) => Some(&[ExecDelete, ExecUsers]),
            ("samba-tool", "delete") => Some(&[ExecDelete, ExecUsers]),
            ("snapper" | "timeshift", "delete" | "rm" | "--delete") => {
                Some(&[ExecDelete, ExecDisks])
            }
            ("kubectl" | "oc", "delete") | ("helm", "uninstall" | "delete" | "del" | "un") => {
                Some(&[ExecDelete, ExecServices])
            }
            (
                "virsh",
                "undefine" | "vol-delete" | "vol-wipe" | "pool-delete" | "snapshot-delete",
            ) => Some(&[ExecDelete, ExecServices]),
            ("rabbitmqctl", "purge_queue" | "delete_queue" | "delete_vhost") => Some(&[ExecDelete]),
            ("rabbitmqctl", "reset" | "force_reset") => Some(&[ExecDelete, ExecServices]),
            ("rabbitmqctl", verb)
                if ["user", "password", "permission"].iter().any(|part| verb.contains(part)) =>
            {
                Some(&[ExecUsers])
            }
            _ => None,
        }
    }
}

/// Whether a verb of a package manager runs what a project says.
fn runs_scripts(name: &str, verb: &str) -> bool {
    match name {
        // Any other word is a script of the project.
        "yarn" | "pnpm" => !matches!(
            verb,
            "add"
                | "remove"
                | "rm"
                | "install"
                | "i"
                | "upgrade"
                | "up"
                | "update"
                | "global"
                | "import"
                | "dedupe"
                | "link"
                | "unlink"
                | "rebuild"
                | "rb"
                | "prune"
                | "cache"
                | "set"
                | "policies"
                | "store"
                | "fetch"
                | "init"
                | "publish"
                | "pack"
                | "login"
                | "logout"
        ),
        "npm" | "composer" | "uv" | "pipx" | "conda" | "mamba" => matches!(
            verb,
            "run"
                | "start"
                | "stop"
                | "restart"
                | "exec"
                | "test"
                | "t"
                | "run-script"
                | "dlx"
                | "x"
        ),
        "cargo" => matches!(
            verb,
            "run" | "r" | "test" | "t" | "build" | "b" | "bench" | "check" | "c" | "clippy" | "doc"
        ),
        _ => false,
    }
}
