//! Programs that run another program: which words of theirs are that program.

use super::{
    walk::{Input, Walk},
    words::Arg,
};
use crate::safety::Flag;

/// How a wrapper is read.
struct Wrapper {
    name: &'static str,
    /// Short options that take a value.
    short: &'static str,
    /// Long options that take a value as the next word.
    long: &'static [&'static str],
    /// Words before the program that are its own.
    operands: usize,
    /// Whether `NAME=value` may stand before the program.
    assigns: bool,
}

const fn plain(name: &'static str, short: &'static str, operands: usize) -> Wrapper {
    Wrapper { name, short, long: &[], operands, assigns: false }
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        name: "sudo",
        short: "ugpCRTrtUDh",
        long: &[
            "user",
            "group",
            "prompt",
            "close-from",
            "chroot",
            "role",
            "type",
            "host",
            "other-user",
            "chdir",
            "command-timeout",
        ],
        operands: 0,
        assigns: true,
    },
    Wrapper { name: "doas", short: "uC", long: &[], operands: 0, assigns: true },
    Wrapper { name: "pkexec", short: "", long: &["user"], operands: 0, assigns: false },
    Wrapper {
        name: "env",
        short: "uCS",
        long: &["unset", "chdir", "split-string"],
        operands: 0,
        assigns: true,
    },
    plain("nohup", "", 0),
    plain("setsid", "", 0),
    Wrapper { name: "nice", short: "n", long: &["adjustment"], operands: 0, assigns: false },
    Wrapper {
        name: "ionice",
        short: "cn",
        long: &["class", "classdata"],
        operands: 0,
        assigns: false,
    },
    plain("chrt", "TPD", 1),
    plain("taskset", "", 1),
    Wrapper {
        name: "timeout",
        short: "ks",
        long: &["kill-after", "signal"],
        operands: 1,
        assigns: false,
    },
    Wrapper {
        name: "stdbuf",
        short: "ioe",
        long: &["input", "output", "error"],
        operands: 0,
        assigns: false,
    },
    Wrapper { name: "time", short: "fo", long: &["format", "output"], operands: 0, assigns: false },
    plain("builtin", "", 0),
    plain("exec", "a", 0),
    plain("command", "", 0),
    plain("busybox", "", 0),
    plain("toybox", "", 0),
    Wrapper {
        name: "unshare",
        short: "SGR",
        long: &["setuid", "setgid", "root", "wd", "map-user", "map-group", "propagation"],
        operands: 0,
        assigns: false,
    },
    Wrapper {
        name: "nsenter",
        short: "tSG",
        long: &["target", "setuid", "setgid"],
        operands: 0,
        assigns: false,
    },
    Wrapper {
        name: "chroot",
        short: "",
        long: &["userspec", "groups"],
        operands: 1,
        assigns: false,
    },
    plain("strace", "eopsuPESaIOxXb", 0),
    plain("ltrace", "eopsunlaADw", 0),
    Wrapper {
        name: "systemd-run",
        short: "puEtMHG",
        long: &[
            "unit",
            "property",
            "description",
            "slice",
            "uid",
            "gid",
            "nice",
            "working-directory",
            "setenv",
            "on-active",
            "on-boot",
            "on-calendar",
            "machine",
            "service-type",
        ],
        operands: 0,
        assigns: false,
    },
    Wrapper {
        name: "systemd-inhibit",
        short: "",
        long: &["what", "who", "why", "mode"],
        operands: 0,
        assigns: false,
    },
    plain("setpriv", "", 0),
    plain("setarch", "", 1),
    plain("linux64", "", 0),
    plain("linux32", "", 0),
    plain("prlimit", "p", 0),
    plain("numactl", "NmpCi", 0),
    plain("cgexec", "g", 0),
    plain("fakeroot", "", 0),
    plain("unbuffer", "", 0),
    plain("rlwrap", "", 0),
    plain("dbus-run-session", "", 0),
    plain("ssh-agent", "at", 0),
    plain("faketime", "", 1),
    plain("proxychains", "f", 0),
    plain("catchsegv", "", 0),
    plain("not", "", 0),
    plain("chpst", "ubUenlmdofprtcP", 0),
    plain("setuidgid", "", 1),
    plain("gosu", "", 1),
    plain("su-exec", "", 1),
    plain("tini", "", 0),
    plain("dumb-init", "", 0),
];

/// Where the words after the options begin.
pub(super) fn after_options(args: &[Arg], short: &str, long: &[&str]) -> usize {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if text == "--" {
            return at + 1;
        }
        if let Some(name) = text.strip_prefix("--") {
            at += if !name.contains('=') && long.contains(&name) { 2 } else { 1 };
        } else if arg.is_option() {
            let takes = text.chars().last().is_some_and(|c| short.contains(c));
            // `-uroot` carries its value in itself.
            let glued = text.chars().skip(1).position(|c| short.contains(c));
            let last = text.chars().count().saturating_sub(2);
            at += if takes && glued == Some(last) { 2 } else { 1 };
        } else {
            return at;
        }
    }
    at
}

/// The value of an option in any of its spellings: `-o X`, `-oX`, `-xo X`,
/// `--output X`, `--output=X`.
pub(super) fn value_of(args: &[Arg], short: char, long: &str) -> Option<Arg> {
    for (at, arg) in args.iter().enumerate() {
        let text = arg.text.as_str();
        if let Some(rest) = text.strip_prefix("--") {
            match rest.strip_prefix(long) {
                Some("") => return args.get(at + 1).cloned(),
                Some(value) if value.starts_with('=') => {
                    let text = value.trim_start_matches('=').to_owned();
                    return Some(Arg { text, unknown: arg.unknown });
                }
                _ => {}
            }
        } else if arg.is_option()
            && let Some((_, value)) = text.split_once(short)
        {
            if value.is_empty() {
                return args.get(at + 1).cloned();
            }
            return Some(Arg { text: value.to_owned(), unknown: arg.unknown });
        }
    }
    None
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

impl Walk<'_> {
    /// Follows a wrapper to the program in it; answers whether this is one.
    pub(super) fn wrapper(&mut self, name: &str, args: &[Arg], input: &Input) -> bool {
        match name {
            "xargs" => self.xargs(args),
            "parallel" => self.parallel(args),
            "su" | "runuser" => self.su(args, input),
            "watch" => self.watch(args),
            "flock" => self.flock(args, input),
            "script" => self.with_text(args, &["c", "command"], input),
            "eval" => self.eval(args, input),
            "trap" => self.eval(args.get(..1).unwrap_or_default(), &Input::Nothing),
            "find" => self.find(args),
            "env" if self.split_string(args, input) => {}
            "command" if args.iter().any(|a| matches!(a.text.as_str(), "-v" | "-V")) => {}
            "busybox" | "toybox" if args.first().is_none_or(Arg::is_option) => {}
            "docker" | "podman" | "nerdctl" | "kubectl" | "lxc-attach" | "ip" | "machinectl"
            | "incus" | "lxc" | "pct" => return self.inside_another(name, args, input),
            name if name.starts_with("ld-linux")
                || name.starts_with("ld-musl")
                || name == "ld.so" =>
            {
                let at = after_options(args, "", &["library-path", "preload", "argv0"]);
                self.rest(args, at, input);
            }
            name => {
                let Some(wrapper) = WRAPPERS.iter().find(|w| w.name == name) else { return false };
                self.plain_wrapper(wrapper, args, input);
            }
        }
        true
    }

    fn plain_wrapper(&mut self, wrapper: &Wrapper, args: &[Arg], input: &Input) {
        let own = |a: &Arg, short: char, long: &str| {
            a.text == format!("--{long}")
                || a.is_option() && !a.text.starts_with("--") && a.text.contains(short)
        };
        let mut at = after_options(args, wrapper.short, wrapper.long);
        let options = args.get(..at).unwrap_or_default();
        if wrapper.name == "sudo" && options.iter().any(|a| own(a, 'e', "edit")) {
            for path in args.get(at..).unwrap_or_default() {
                self.writes(path);
            }
            return;
        }
        if wrapper.name == "chroot" {
            self.cwd = Some("/".to_owned());
        }
        at += wrapper.operands;
        while wrapper.assigns && args.get(at).is_some_and(|a| is_assignment(&a.text)) {
            let name = args.get(at).map(|a| a.text.clone()).unwrap_or_default();
            if name.starts_with("LD_") || name.starts_with("BASH_ENV") {
                self.found.add(Flag::ExecShell, "a variable decides what is run");
            }
            at += 1;
        }
        let login = matches!(wrapper.name, "sudo" | "doas")
            && options.iter().any(|a| own(a, 'i', "login") || own(a, 's', "shell"));
        if args.get(at).is_none()
            && (login || matches!(wrapper.name, "chroot" | "unshare" | "nsenter"))
        {
            self.shell_input(input);
            return;
        }
        if wrapper.name == "ionice"
            || wrapper.name == "prlimit"
            || wrapper.name == "taskset"
            || wrapper.name == "chrt"
        {
            // With -p they change a process that runs.
            if options.iter().any(|a| a.text.contains('p') && !a.text.starts_with("--")) {
                return;
            }
        }
        self.rest(args, at, input);
    }

    /// Runs what stands from a place on.
    fn rest(&mut self, args: &[Arg], at: usize, input: &Input) {
        let rest = args.get(at..).unwrap_or_default();
        if !rest.is_empty() {
            self.run(rest, input);
        }
    }

    /// A shell that reads what it runs from its input.
    pub(super) fn shell_input(&mut self, input: &Input) {
        match input {
            Input::Nothing => {}
            Input::Text(text) => self.text(text, &Input::Nothing),
            Input::Unknown => self.found.add(Flag::ExecShell, "a shell that reads what it runs"),
        }
    }

    fn eval(&mut self, args: &[Arg], input: &Input) {
        if args.iter().any(|a| a.unknown) {
            self.found.add(Flag::ExecShell, "text that is put together while it runs");
        }
        let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        self.text(&text.join(" "), input);
    }

    /// The value of an option, glued to it or as the next word.
    pub(super) fn option<'a>(args: &'a [Arg], names: &[&str]) -> Option<&'a Arg> {
        let at = args.iter().position(|a| {
            names.iter().any(|n| {
                let long = n.len() > 1 && a.text == format!("--{n}");
                // A cluster of short options may end with it: -lc.
                let short = n.len() == 1
                    && a.is_option()
                    && !a.text.starts_with("--")
                    && a.text.ends_with(n);
                long || short
            })
        })?;
        args.get(at + 1)
    }

    fn with_text(&mut self, args: &[Arg], names: &[&str], input: &Input) {
        if let Some(text) = Self::option(args, names).cloned() {
            self.eval(&[text], input);
        } else if let Some(text) = args.iter().find_map(|a| a.text.strip_prefix("--command=")) {
            let text = Arg::literal(text);
            self.eval(&[text], input);
        }
    }

    fn su(&mut self, args: &[Arg], input: &Input) {
        let text = Self::option(args, &["c", "command", "session-command"]).cloned();
        if let Some(text) = text {
            return self.eval(&[text], input);
        }
        if let Some(text) = args.iter().find_map(|a| a.text.strip_prefix("--command=")) {
            let text = Arg::literal(text);
            return self.eval(&[text], input);
        }
        if let Some(at) = args.iter().position(|a| a.text == "--") {
            return self.rest(args, at + 1, input);
        }
        let at = after_options(args, "ugGsw", &["user", "group", "shell"]);
        let named = args.get(..at).unwrap_or_default().iter().any(|a| a.text.starts_with("-u"));
        if named && args.len() > at {
            return self.rest(args, at, input);
        }
        self.shell_input(input);
    }

    fn watch(&mut self, args: &[Arg]) {
        let at = after_options(args, "nq", &["interval", "equexit"]);
        let rest = args.get(at..).unwrap_or_default().to_vec();
        self.eval(&rest, &Input::Nothing);
    }

    fn flock(&mut self, args: &[Arg], input: &Input) {
        let at = after_options(args, "wE", &["timeout", "wait", "conflict-exit-code"]) + 1;
        let rest = args.get(at..).unwrap_or_default().to_vec();
        match rest.split_first() {
            Some((c, text)) if matches!(c.text.as_str(), "-c" | "--command") => {
                self.eval(text, input)
            }
            Some(_) => self.run(&rest, input),
            None => {}
        }
    }

    /// `env -S 'program argument'`.
    fn split_string(&mut self, args: &[Arg], input: &Input) -> bool {
        for (at, arg) in args.iter().enumerate() {
            if !arg.is_option() && !is_assignment(&arg.text) {
                return false;
            }
            let glued = arg
                .text
                .strip_prefix("--split-string=")
                .or_else(|| arg.text.strip_prefix("-S").filter(|t| !t.is_empty()));
            let separate = matches!(arg.text.as_str(), "-S" | "--split-string" | "-vS" | "-iS");
            let text = if separate { args.get(at + 1).map(|a| a.text.as_str()) } else { glued };
            if let Some(text) = text {
                let skip = at + 1 + usize::from(separate);
                let mut words: Vec<Arg> = text.split_whitespace().map(Arg::literal).collect();
                words.extend(args.get(skip..).unwrap_or_default().iter().cloned());
                if words.first().is_some_and(|w| is_assignment(&w.text) || w.is_option()) {
                    words.insert(0, Arg::literal("env"));
                }
                self.run(&words, input);
                return true;
            }
        }
        false
    }

    /// A program whose arguments come from elsewhere.
    fn with_holes(&mut self, words: &[Arg], hole: &str, adds: bool) {
        let mut words: Vec<Arg> = words
            .iter()
            .map(|w| {
                if hole.is_empty() || !w.text.contains(hole) {
                    return w.clone();
                }
                Arg { text: w.text.replace(hole, "\u{fffd}"), unknown: true }
            })
            .collect();
        if adds {
            words.push(Arg::unknown());
        }
        self.run(&words, &Input::Unknown);
    }

    fn xargs(&mut self, args: &[Arg]) {
        let at = after_options(
            args,
            "aEIiLlnPsd",
            &[
                "arg-file",
                "delimiter",
                "max-lines",
                "max-args",
                "max-procs",
                "replace",
                "max-chars",
                "process-slot-var",
            ],
        );
        let rest = args.get(at..).unwrap_or_default().to_vec();
        if rest.is_empty() {
            return;
        }
        let replace = Self::option(args.get(..at).unwrap_or_default(), &["I", "replace"]);
        let hole = replace.map_or("{}", |a| a.text.as_str()).to_owned();
        self.with_holes(&rest, &hole, true);
    }

    fn parallel(&mut self, args: &[Arg]) {
        let at = after_options(
            args,
            "jaSI",
            &["jobs", "arg-file", "sshlogin", "delay", "retries", "timeout"],
        );
        let rest: Vec<Arg> = args
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take_while(|a| !a.text.starts_with(":::"))
            .cloned()
            .collect();
        match rest.as_slice() {
            [] => self.found.add(Flag::ExecShell, "commands that are read while it runs"),
            [text] => {
                let text = Arg::literal(&text.text.replace("{}", "\u{fffd}"));
                self.eval(&[text], &Input::Unknown);
            }
            words => self.with_holes(words, "{}", true),
        }
    }

    fn find(&mut self, args: &[Arg]) {
        if args.iter().any(|a| a.text == "-delete") {
            self.found.add(Flag::ExecDelete, "find -delete");
        }
        let starts: Vec<&Arg> = args.iter().take_while(|a| !a.is_option()).collect();
        for (at, arg) in args.iter().enumerate() {
            match arg.text.as_str() {
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let words: Vec<Arg> = args
                        .get(at + 1..)
                        .unwrap_or_default()
                        .iter()
                        .take_while(|a| !matches!(a.text.as_str(), ";" | "+"))
                        .cloned()
                        .collect();
                    self.with_holes(&words, "{}", false);
                    self.found_by(args, &starts);
                    // What is found below a system directory is a system file.
                    let program = words.first().map(|w| w.text.clone()).unwrap_or_default();
                    let changes = matches!(
                        program.as_str(),
                        "chmod"
                            | "chown"
                            | "chgrp"
                            | "sed"
                            | "mv"
                            | "cp"
                            | "rm"
                            | "tee"
                            | "truncate"
                    );
                    if changes {
                        for start in &starts {
                            self.writes(start);
                        }
                    }
                }
                "-fprint" | "-fprintf" | "-fls" | "-fprint0" => {
                    if let Some(path) = args.get(at + 1).cloned() {
                        self.writes(&path);
                    }
                }
                _ => {}
            }
        }
    }

    /// What `find` hands to a program: the directory itself, or the name that is looked for in it.
    fn found_by(&mut self, args: &[Arg], starts: &[&Arg]) {
        let name = Self::option(args, &["name"]).or_else(|| {
            let at = args.iter().position(|a| matches!(a.text.as_str(), "-name" | "-iname"))?;
            args.get(at + 1)
        });
        let name = name.map(|n| n.text.clone());
        for start in starts {
            self.reads(start);
            if let Some(name) = &name {
                self.reads(&Arg::literal(&format!("{}/{name}", start.text)));
            }
        }
    }

    /// Programs that run something in another namespace, where the command says so.
    fn inside_another(&mut self, name: &str, args: &[Arg], input: &Input) -> bool {
        let words: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        let after = |verb: &str| words.iter().position(|w| *w == verb).map(|p| p + 1);
        let at = match name {
            "ip" => {
                let Some(at) = after("exec").filter(|_| words.contains(&"netns")) else {
                    return false;
                };
                at + 1
            }
            "kubectl" | "lxc-attach" | "incus" | "lxc" | "pct" => {
                let runs = name == "lxc-attach" || words.contains(&"exec");
                let Some(at) = after("--").filter(|_| runs) else { return false };
                at
            }
            "machinectl" => {
                let Some(at) = after("shell") else { return false };
                at + 1
            }
            _ => {
                let Some(verb) = words.iter().position(|w| *w == "exec") else { return false };
                let rest = args.get(verb + 1..).unwrap_or_default();
                // `docker compose exec SERVICE` and `docker exec CONTAINER` are read alike.
                let options = after_options(
                    rest,
                    "uwe",
                    &["user", "workdir", "env", "env-file", "detach-keys", "index"],
                );
                verb + 1 + options + 1
            }
        };
        // The files in there are not this guest's.
        self.apart(|walk| walk.rest(args, at, input));
        true
    }
}
