//! Git: what it throws away, and the ways it runs other programs.

use super::{
    variables::{harmless, harmless_ssh},
    walk::Walk,
    words::Arg,
    wrappers::{after_options, has_long, value_of},
};
use crate::safety::Flag;

/// Settings that name no program.
const PLAIN: [&str; 24] = [
    "user.",
    "color.",
    "advice.",
    "safe.",
    "init.defaultbranch",
    "log.",
    "gc.",
    "pull.",
    "push.",
    "fetch.",
    "commit.",
    "http.",
    "https.",
    "core.quotepath",
    "core.autocrlf",
    "core.abbrev",
    "core.compression",
    "core.filemode",
    "core.eol",
    "submodule.recurse",
    "remote.",
    "branch.",
    "merge.conflictstyle",
    "status.",
];

/// Whether a setting makes git run a program of one's own.
fn runs(key: &str, value: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let plain = PLAIN.iter().any(|p| key.starts_with(p))
        && !["uploadpack", "receivepack", "vcs", "proxy", "askpass", "template"]
            .iter()
            .any(|part| key.contains(part));
    let quiet = match key.as_str() {
        "core.sshcommand" => harmless_ssh(value),
        "credential.helper" => matches!(value.split(' ').next(), Some("store" | "cache" | "")),
        "core.pager" | "core.editor" | "sequence.editor" => harmless(value),
        _ => false,
    };
    !plain && !quiet
}

impl Walk<'_> {
    pub(super) fn git(&mut self, args: &[Arg]) {
        let at = after_options(args, "Cc", &["git-dir", "work-tree", "namespace", "config-env"]);
        let options = args.get(..at).unwrap_or_default();
        let settings = options.windows(2).filter(|w| matches!(w, [c, _] if c.text == "-c"));
        let sets = settings.filter_map(|w| w.last()).any(|s| {
            let (key, value) = s.text.split_once('=').unwrap_or((&s.text, "true"));
            s.unknown || runs(key, value)
        });
        let glued = options.iter().any(|o| o.text.len() > 2 && o.text.starts_with("-c"));
        if sets
            || glued
            || options.iter().any(|o| o.text.starts_with("--exec-path="))
            || has_long(options, "config-env")
            || args.iter().any(|a| a.text.starts_with("ext::"))
        {
            self.found.add(Flag::ExecShell, "git with a program of its own");
        }
        let Some((verb, rest)) = args.get(at..).and_then(<[Arg]>::split_first) else { return };
        let verb = verb.text.as_str();
        let plain: Vec<&Arg> = rest.iter().filter(|a| !a.is_option()).collect();
        let first = plain.first().map_or("", |a| a.text.as_str());
        let has = |words: &[&str]| rest.iter().any(|a| words.contains(&a.text.as_str()));
        let letter = |c: char| {
            rest.iter().any(|a| a.is_option() && !a.text.starts_with("--") && a.text.contains(c))
        };
        let starts = |p: &str| rest.iter().any(|a| a.text.starts_with(p));
        let long = |name: &str| has_long(rest, name);
        let runs_program = match verb {
            "submodule" => has(&["foreach"]),
            "bisect" => first == "run",
            "filter-branch" | "difftool" | "mergetool" | "instaweb" | "daemon" | "shell" => true,
            "rebase" => letter('x') || long("exec"),
            "grep" => starts("-O") || long("open-files-in-pager"),
            "clone" | "fetch" | "pull" | "ls-remote" | "fetch-pack" => {
                let sets = value_of(rest, 'c', "config");
                let sets = sets.filter(|_| verb == "clone").is_some_and(|s| {
                    let (key, value) = s.text.split_once('=').unwrap_or((&s.text, "true"));
                    runs(key, value)
                });
                sets || long("upload-pack") || verb == "clone" && (starts("-u") || long("template"))
            }
            "push" | "send-pack" => long("receive-pack") || long("exec"),
            "archive" => long("exec") || long("remote"),
            "config" => {
                let from = usize::from(first == "set");
                match plain.get(from..) {
                    Some([key, value, ..]) if key.text.contains('.') => {
                        value.unknown || runs(&key.text, &value.text)
                    }
                    _ => false,
                }
            }
            _ => false,
        };
        if runs_program {
            self.found.add(Flag::ExecShell, &format!("git {verb} runs a program"));
        }
        let deletes = match verb {
            "clean" => !(letter('n') || long("dry-run")),
            "reset" => has(&["--hard", "--merge"]),
            "rm" => !has(&["--cached", "-n", "--dry-run"]),
            "branch" => letter('D') || long("delete") && long("force"),
            "stash" => matches!(first, "drop" | "clear"),
            "checkout" | "switch" => {
                has(&["--", ".", "--discard-changes"]) || letter('f') || long("force")
            }
            "restore" => !long("staged") || long("worktree"),
            "worktree" => matches!(first, "remove" | "prune"),
            "push" => {
                letter('f')
                    || letter('d')
                    || long("force")
                    || long("delete")
                    || long("mirror")
                    || long("prune")
                    || plain.iter().any(|a| a.text.starts_with([':', '+']))
            }
            "reflog" => matches!(first, "expire" | "delete"),
            "update-ref" | "tag" => letter('d') || long("delete"),
            "filter-repo" => true,
            "gc" | "prune" => starts("--prune") || verb == "prune" && !letter('n'),
            _ => false,
        };
        if deletes {
            self.found.add(Flag::ExecDelete, &format!("git {verb} throws away"));
        }
        let writes = [
            "pull",
            "checkout",
            "switch",
            "reset",
            "merge",
            "rebase",
            "apply",
            "am",
            "clean",
            "restore",
            "stash",
            "init",
            "cherry-pick",
            "revert",
            "rm",
            "mv",
        ];
        if verb == "clone" || verb == "init" && !plain.is_empty() {
            if let Some(target) = plain.get(usize::from(verb == "clone")) {
                self.writes(target);
            }
        } else if writes.contains(&verb) {
            let dir = value_of(options, 'C', "work-tree").unwrap_or_else(|| Arg::literal("."));
            // Where it runs by chance is no place that it was told to write to.
            if self.resolved(&dir).is_some_and(|d| d != "/") {
                self.writes(&dir);
            }
        }
    }
}
