//! Programs that are told by a verb what to do, by the table of `reads.rs`.

use super::{
    reads::{NESTED, Verbs},
    walk::Walk,
    words::Arg,
    wrappers::after_options,
};
use crate::safety::Flag;

impl Walk<'_> {
    pub(super) fn verbs(&mut self, table: &Verbs, name: &str, args: &[Arg]) {
        let values: &[&str] = match name {
            "docker" | "podman" => &["context", "host", "log-level", "config"],
            "systemctl" => &["host", "machine", "type", "state", "lines", "output", "property"],
            "kubectl" | "helm" | "oc" => &["namespace", "context", "kubeconfig", "cluster"],
            _ => &[],
        };
        let short = match name {
            "docker" => "Hl",
            "systemctl" => "HMtnop",
            "kubectl" | "helm" | "oc" => "n",
            "apt" | "apt-get" => "ot",
            "pg_ctl" => "DlowtU",
            "mysqladmin" | "mariadb-admin" => "uhP",
            "docker-compose" | "podman-compose" => "fp",
            "supervisorctl" => "cspu",
            _ => "",
        };
        if args.iter().any(|a| {
            matches!(
                a.text.as_str(),
                "--help" | "--version" | "--dry-run" | "--simulate" | "--just-print"
            )
        }) {
            return;
        }
        let simulates = args.iter().any(|a| a.text == "-s" || a.text == "-h");
        if simulates && matches!(name, "apt" | "apt-get" | "aptitude") {
            return;
        }
        let at = after_options(args, short, values);
        let word = args.get(at).or_else(|| args.first());
        let Some(word) = word else {
            if !table.bare {
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
        // A noun with a verb of its own: `docker volume ls`.
        let nested = NESTED.iter().find(|(n, _)| *n == name).map(|(_, verbs)| *verbs);
        if let (Some(verbs), Some(second)) = (nested, args.get(at + 1))
            && matches!(
                word.text.as_str(),
                "volume"
                    | "network"
                    | "image"
                    | "container"
                    | "system"
                    | "compose"
                    | "node"
                    | "service"
                    | "stack"
                    | "context"
                    | "buildx"
                    | "manifest"
                    | "secret"
                    | "config"
                    | "history"
                    | "group"
                    | "pod"
                    | "machine"
                    | "plugin"
            )
            && verbs.contains(&second.text.as_str())
        {
            return;
        }
        let deletes = matches!(
            name,
            "docker" | "podman" | "nerdctl" | "docker-compose" | "kubectl" | "oc" | "helm"
        ) && args.iter().any(|a| {
            matches!(
                a.text.as_str(),
                "rm" | "rmi" | "prune" | "delete" | "uninstall" | "-v" | "--volumes"
            )
        }) && !args.iter().any(|a| matches!(a.text.as_str(), "run" | "create"));
        if deletes {
            self.found.add(Flag::ExecDelete, &format!("{name} deletes"));
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
                ]
                .contains(&a.text.as_str())
            });
            if power.contains(&word.text.as_str()) || target {
                return self.found.add(Flag::ExecPower, &format!("systemctl {}", word.text));
            }
        }
        if name == "pct" || word.unknown {
            self.found.add(Flag::ExecShell, "a verb that is put together while it runs");
        }
        if matches!(name, "npm" | "yarn" | "pnpm" | "cargo" | "composer")
            && matches!(
                word.text.as_str(),
                "run" | "start" | "exec" | "test" | "run-script" | "dlx" | "x"
            )
        {
            return self.found.add(Flag::ExecShell, &format!("{name} runs a program of its own"));
        }
        self.found.add(table.flag, &format!("{name} {}", word.text));
    }

    /// Verbs that only look, but for what stands behind them.
    pub(super) fn looks_deeper(&mut self, name: &str, table: &Verbs, args: &[Arg], at: usize) {
        let second = args.get(at + 1).map(|a| a.text.as_str()).unwrap_or_default();
        let verb = args.get(at).map(|a| a.text.as_str()).unwrap_or_default();
        let changes = match (name, verb) {
            ("dnf" | "yum", "history") => {
                matches!(second, "undo" | "redo" | "rollback" | "userinstalled")
            }
            ("dnf" | "yum", "group") => !matches!(second, "list" | "info" | "summary" | ""),
            ("npm" | "pip" | "pip3" | "kubectl" | "helm", "config") => {
                matches!(
                    second,
                    "set" | "delete" | "edit" | "set-context" | "use-context" | "unset"
                )
            }
            ("npm", "audit") => second == "fix",
            ("ufw", "app") => !matches!(second, "list" | "info"),
            _ => false,
        };
        if changes {
            self.found.add(table.flag, &format!("{name} {verb} {second}"));
        }
    }
}
