//! Programs that keep backups, copies and keys: what they delete and where they restore to.

use super::{walk::Walk, words::Arg, wrappers::value_of};
use crate::safety::Flag;

impl Walk<'_> {
    /// Answers whether this is one of them.
    pub(super) fn store(&mut self, name: &str, args: &[Arg]) -> bool {
        let has = |words: &[&str]| args.iter().any(|a| words.contains(&a.text.as_str()));
        let dry = has(&["--dry-run", "-n", "--list", "-l"]);
        let deletes: &[&str] = match name {
            "restic" => &["forget", "prune"],
            "borg" => &["prune", "delete"],
            "rclone" => &[
                "sync",
                "purge",
                "delete",
                "deletefile",
                "rmdir",
                "rmdirs",
                "move",
                "moveto",
                "cleanup",
                "dedupe",
                "bisync",
            ],
            "etcdctl" => &["del", "rm", "rmdir"],
            "consul" => &["delete"],
            "mongorestore" => &["--drop"],
            "pg_restore" => &["-c", "--clean"],
            "duplicity" => &[
                "remove-older-than",
                "remove-all-but-n-full",
                "remove-all-inc-of-but-n-full",
                "cleanup",
            ],
            "postsuper" => &["-d"],
            "exim" | "exim4" => &["-Mrm"],
            _ => return false,
        };
        if has(deletes) && !dry {
            self.found.add(Flag::ExecDelete, &format!("{name} deletes"));
        }
        match name {
            "restic" if has(&["restore"]) && !dry => {
                if let Some(target) = value_of(args, 't', "target") {
                    self.writes(&target);
                }
            }
            "borg" if has(&["extract"]) && !dry => self.writes(&Arg::literal(".")),
            "rclone" if has(&["copy", "copyto", "sync", "move", "moveto"]) => {
                self.last_written(args);
            }
            "consul" if has(&["leave", "reload"]) => {
                self.found.add(Flag::ExecServices, "consul changes the service");
            }
            // Without a database it prints the statements.
            "pg_restore" if !dry && value_of(args, 'd', "dbname").is_some() => {
                self.found.add(Flag::ExecShell, "statements from a file");
            }
            _ => {}
        }
        let runs = |a: &Arg| {
            a.text.contains("sftp.command=")
                || a.text.starts_with("--rsh")
                || a.text.starts_with("--content-from-command")
                || a.text.starts_with("--paths-from-command")
                || a.text.contains("${run")
                || name.starts_with("exim") && a.text.starts_with("-C")
        };
        if args.iter().any(runs) {
            self.found.add(Flag::ExecShell, &format!("{name} that runs a program"));
        }
        if args.iter().any(|a| a.text.starts_with("--password-command")) {
            self.found.add(Flag::ExecShell, "a program that tells the password");
        }
        true
    }
}
