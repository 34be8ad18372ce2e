//! Programs that work on containers, and those that run a program inside one.

use super::{
    paths,
    walk::{Input, Walk},
    words::Arg,
    wrappers::after_options,
};
use crate::safety::Flag;

/// What stands before the verb of Docker, and has verbs of its own.
const NOUNS: [&str; 25] = [
    "container",
    "image",
    "volume",
    "network",
    "system",
    "builder",
    "buildx",
    "compose",
    "node",
    "service",
    "stack",
    "context",
    "config",
    "secret",
    "pod",
    "machine",
    "plugin",
    "manifest",
    "swarm",
    "images",
    "containers",
    "tasks",
    "snapshots",
    "namespaces",
    "leases",
];
/// Verbs of Docker that only look, or change nothing of note.
const LOOKS: [&str; 31] = [
    "ps",
    "images",
    "logs",
    "inspect",
    "stats",
    "top",
    "info",
    "version",
    "port",
    "events",
    "history",
    "diff",
    "search",
    "wait",
    "ls",
    "list",
    "df",
    "config",
    "convert",
    "show",
    "save",
    "export",
    "tag",
    "push",
    "du",
    "exists",
    "pods",
    "inspecti",
    "inspectp",
    "statsp",
    "imagefsinfo",
];

impl Walk<'_> {
    /// Programs that run something in another namespace, where the command says so.
    pub(super) fn inside_another(&mut self, name: &str, args: &[Arg], input: &Input) -> bool {
        let words: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        let after = |verb: &str| words.iter().position(|w| *w == verb).map(|p| p + 1);
        let at = match name {
            "ip" => {
                let Some(at) =
                    after("exec").filter(|_| words.contains(&"netns") || words.contains(&"vrf"))
                else {
                    return false;
                };
                // With -all it runs in each, and no name stands there.
                let each = words.iter().take(at).any(|w| matches!(*w, "-all" | "-a"));
                let at = at + usize::from(!each);
                at + usize::from(words.get(at) == Some(&"--"))
            }
            "lxc-attach" if !words.contains(&"--") => after_options(
                args,
                "nsePpfgoLv",
                &["name", "arch", "elevated-privileges", "namespaces"],
            ),
            "machinectl" => {
                let Some(at) = after("shell") else { return false };
                at + 1
            }
            _ => {
                let runs = name == "lxc-attach" || words.contains(&"exec");
                let Some(at) = after("--").filter(|_| runs) else { return false };
                at
            }
        };
        // The files in there are not this guest's.
        self.apart(|walk| walk.rest(args, at, input));
        true
    }

    /// Docker and what is called like it.
    pub(super) fn docker(&mut self, name: &str, args: &[Arg], input: &Input) {
        let compose = name.ends_with("-compose");
        let (short, long): (&str, &[&str]) = if compose {
            ("fp", &["file", "project-name", "profile", "env-file", "project-directory"])
        } else if matches!(name, "crictl" | "ctr") {
            ("nart", &["namespace", "address", "runtime-endpoint", "image-endpoint", "timeout"])
        } else {
            ("Hlc", &["context", "host", "log-level", "config", "url", "connection", "root"])
        };
        let mut at = after_options(args, short, long);
        if args.iter().take(at).any(|a| matches!(a.text.as_str(), "--help" | "--version" | "-v")) {
            return;
        }
        let Some(mut verb) = args.get(at).map(|a| a.text.clone()) else { return };
        let mut noun = String::new();
        // `docker images` is a verb, `ctr images` a noun.
        let is_noun = NOUNS.contains(&verb.as_str()) && !(name != "ctr" && verb == "images");
        if !compose && is_noun {
            let rest = args.get(at + 1..).unwrap_or_default();
            if verb == "compose" {
                return self.docker("docker-compose", rest, input);
            }
            at += 1 + after_options(rest, "", &["builder"]);
            let Some(next) = args.get(at) else { return };
            noun = std::mem::replace(&mut verb, next.text.clone());
        }
        let args = args.get(at + 1..).unwrap_or_default();
        let has = |words: &[&str]| args.iter().any(|a| words.contains(&a.text.as_str()));
        if has(&["--help"]) && !matches!(verb.as_str(), "exec" | "run") {
            return;
        }
        let say = format!("{name} {noun} {verb}");
        let mut add = |flag: Flag| self.found.add(flag, &say);
        match (noun.as_str(), verb.as_str()) {
            (_, "exec") => {
                let options = after_options(
                    args,
                    "uwe",
                    &["user", "workdir", "env", "env-file", "detach-keys", "index"],
                );
                self.apart(|walk| walk.rest(args, options + 1, input));
            }
            ("swarm", _) => add(Flag::ExecServices),
            (_, look) if LOOKS.contains(&look) => {}
            (_, "cp") => {
                let paths: Vec<&Arg> = args.iter().filter(|a| !a.is_option()).collect();
                if let Some(target) = paths.last() {
                    // Inside a container the same places are the system's.
                    let inside = target.text.split_once(':').map(|(_, path)| path.to_owned());
                    let path = inside.unwrap_or_else(|| target.text.clone());
                    self.writes(&Arg { text: path, unknown: target.unknown });
                }
            }
            (_, "build" | "bake") => add(Flag::ExecShell),
            (_, "rmi")
            | ("image" | "volume" | "builder" | "buildx" | "system" | "container", "prune")
            | ("image" | "volume" | "buildx" | "manifest" | "context", "rm" | "remove") => {
                add(Flag::ExecDelete);
            }
            (_, "down") if !has(&["-v", "--volumes", "--rmi"]) => add(Flag::ExecServices),
            (_, "rm" | "remove" | "prune" | "down") => {
                add(Flag::ExecDelete);
                add(Flag::ExecServices);
            }
            (_, "run" | "create") => {
                add(Flag::ExecServices);
                if args.iter().any(reaches_out) || mounts(args).any(|m| reaches_file(&m)) {
                    add(Flag::ExecShell);
                }
            }
            _ => add(Flag::ExecServices),
        }
    }
}

/// Options that let a container reach into the guest.
fn reaches_out(arg: &Arg) -> bool {
    let text = arg.text.as_str();
    let caps = ["=ALL", "=SYS_ADMIN", "=SYS_PTRACE", "=SYS_MODULE", "=CAP_SYS_ADMIN"];
    matches!(text, "--privileged" | "--privileged=true" | "--pid=host" | "host:" | "--userns=host")
        || text.starts_with("--pid=h")
        || text.starts_with("--cap-add") && caps.iter().any(|c| text.ends_with(c))
}

/// What the options bind into a container.
fn mounts(args: &[Arg]) -> impl Iterator<Item = String> + '_ {
    args.iter().enumerate().filter_map(|(at, arg)| {
        let next = || args.get(at + 1).map(|a| a.text.clone());
        match arg.text.as_str() {
            "-v" | "--volume" | "--mount" => next(),
            "--pid" => next().map(|_| "/:/".to_owned()),
            text => ["--volume=", "--mount=", "-v"]
                .iter()
                .find_map(|p| text.strip_prefix(p))
                .map(str::to_owned),
        }
    })
}

/// Whether a mount gives away the system, the runtime's socket, or a file of the system to write.
fn reaches_file(mount: &str) -> bool {
    let field = |names: &[&str]| {
        mount.split(',').find_map(|f| f.split_once('=').filter(|(n, _)| names.contains(n)))
    };
    let source = match field(&["source", "src"]) {
        Some((_, source)) => source,
        None => mount.split(':').next().unwrap_or_default(),
    };
    if !source.starts_with('/') {
        return false;
    }
    let source = paths::folded(source);
    let read_only = mount.ends_with(":ro") || mount.contains(",ro") || mount.contains("readonly");
    source == "/"
        || source.ends_with(".sock")
        || matches!(
            source.as_str(),
            "/etc" | "/root" | "/proc" | "/home" | "/dev" | "/run" | "/var/run"
        )
        || !read_only && !paths::written(&source).is_empty()
}
