//! Programs that run another program: which words of theirs are that program.

use super::{
    variables,
    walk::{Input, Walk},
    words::Arg,
    wraps::{WRAPPERS, Wrapper},
};
use crate::safety::Flag;

/// Where the words after the options begin.
pub(super) fn after_options(args: &[Arg], short: &str, long: &[&str]) -> usize {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if text == "--" {
            return at + 1;
        }
        if let Some(name) = text.strip_prefix("--") {
            // GNU programs take a name cut short.
            let takes = long.iter().any(|l| *l == name || name.len() >= 3 && l.starts_with(name));
            at += if !name.contains('=') && takes { 2 } else { 1 };
        } else if arg.is_option() {
            let cluster = text.chars().skip(1).all(|c| c.is_ascii_alphabetic());
            let takes = cluster && text.chars().last().is_some_and(|c| short.contains(c));
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
            let (name, value) = match rest.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (rest, None),
            };
            if !is_long(name, long) {
                continue;
            }
            match value {
                None => return args.get(at + 1).cloned(),
                Some(value) => {
                    return Some(Arg { text: value.to_owned(), unknown: arg.unknown });
                }
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

/// Whether this is the name of a long option, perhaps cut short as GNU programs allow it.
fn is_long(name: &str, long: &str) -> bool {
    name == long || name.len() >= 3 && long.starts_with(name)
}

/// Whether a long option stands among the arguments, in full or cut short.
pub(super) fn has_long(args: &[Arg], long: &str) -> bool {
    args.iter().any(|a| {
        a.text.strip_prefix("--").is_some_and(|n| is_long(n.split('=').next().unwrap_or(n), long))
    })
}

/// Whether a word before a program sets a variable; `env` takes any name.
fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && !name.starts_with('-') && !name.contains(['/', ' '])
    })
}

impl Walk<'_> {
    /// Follows a wrapper to the program in it; answers whether this is one.
    pub(super) fn wrapper(&mut self, name: &str, args: &[Arg], input: &Input) -> bool {
        match name {
            "xargs" => self.xargs(args, input),
            "fd" | "fdfind" => self.fd(args),
            "parallel" | "sem" => self.parallel(args),
            "setarch" => self.setarch(args, input),
            "newgrp" => self.bare_shell(input),
            "su" | "runuser" => self.su(args, input),
            "watch" => self.watch(args),
            "flock" => self.flock(args, input),
            "script" | "scriptlive" => {
                self.outputs("script", args);
                self.with_text(args, &["c", "command"], input);
                if let Some(at) = args.iter().position(|a| a.text == "--") {
                    self.rest(args, at + 1, input);
                }
            }
            "eval" => self.eval(args, input),
            "trap" => {
                let text: Vec<Arg> =
                    args.iter().filter(|a| a.text != "--").take(1).cloned().collect();
                self.eval(&text, &Input::Nothing);
            }
            "capsh" => {
                if let Some(at) = args.iter().position(|a| matches!(a.text.as_str(), "--" | "==")) {
                    self.shell("bash", args.get(at + 1..).unwrap_or_default(), input);
                }
            }
            "sg" => {
                let text: Vec<Arg> =
                    args.iter().skip(1).filter(|a| a.text != "-c").cloned().collect();
                self.eval(&text, input);
            }
            "perf" => self.perf(args, input),
            "hyperfine" => {
                for text in args.iter().filter(|a| !a.is_option()).cloned() {
                    self.eval(&[text], &Input::Nothing);
                }
            }
            "start-stop-daemon" => self.start_stop(args, input),
            // Their options are too many to tell where the program begins.
            "bwrap" | "proot" | "firejail" | "systemd-nspawn" | "distrobox" | "toolbox"
            | "gdbserver" | "runcon" | "watchexec" | "nodemon" | "pdsh" | "pssh"
            | "parallel-ssh" | "autossh" | "pipexec" | "schroot" | "flatpak-spawn"
            | "nixos-enter" | "vzctl" => {
                if !args.iter().all(|a| matches!(a.text.as_str(), "--version" | "--help")) {
                    self.found.add(Flag::ExecShell, &format!("{name} runs what it is given"));
                }
            }
            "find" => self.find(args),
            "minikube" if args.first().is_none_or(|a| a.text != "kubectl") => return false,
            "systemd-notify" => {
                if let Some(at) = args.iter().position(|a| a.text == ";") {
                    self.rest(args, at + 1, input);
                }
            }
            "xtables-nft-multi" | "xtables-legacy-multi" => self.rest(args, 0, input),
            "env" if self.split_string(args, input) => {}
            "command" if args.iter().any(|a| matches!(a.text.as_str(), "-v" | "-V")) => {}
            "systemd-run" if self.run_unit(args) => {}
            "busybox" | "toybox"
                if args.first().is_none_or(|a| a.is_option() && a.text != "--") =>
            {
                if args.iter().any(|a| a.text == "--install") {
                    self.found.add(Flag::ExecSystemFiles, "installs its programs");
                }
            }
            "kubectl" | "oc" | "lxc-attach" | "ip" | "machinectl" | "incus" | "lxc" | "pct" => {
                return self.inside_another(name, args, input);
            }
            name if name.starts_with("ld-linux")
                || name.starts_with("ld-musl")
                || name == "ld.so" =>
            {
                let at = after_options(args, "", &["library-path", "preload", "argv0", "audit"]);
                let loads = |a: &Arg| {
                    ["--preload", "--library-path", "--audit"].iter().any(|o| a.text.starts_with(o))
                };
                if args.iter().take(at).any(loads) {
                    self.found.add(Flag::ExecShell, "a library that is loaded before the program");
                }
                self.rest(args, at, input);
            }
            name => {
                let Some(wrapper) = WRAPPERS.iter().find(|w| w.name == name) else { return false };
                // What these change stays: they run the shell's own.
                if matches!(name, "command" | "builtin") {
                    self.plain_wrapper(wrapper, args, input);
                    return true;
                }
                // What it changes, such as the directory, is the program's alone.
                self.apart(|walk| walk.plain_wrapper(wrapper, args, input));
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
        // `-o '|program'`.
        let pipes = |a: &Arg| a.text.starts_with(['|', '!']) || a.text.contains("=|");
        if wrapper.name == "strace" && args.iter().any(pipes) {
            self.found.add(Flag::ExecShell, "strace that runs a program");
        }
        if wrapper.name == "chroot" {
            self.cwd = Some("/".to_owned());
        }
        let dir = match wrapper.name {
            "env" => value_of(options, 'C', "chdir"),
            "sudo" => value_of(options, 'D', "chdir"),
            _ => None,
        };
        if let Some(dir) = dir {
            self.cwd = self.resolved(&dir);
        }
        at += wrapper.operands;
        // `env -` clears the environment.
        at += usize::from(wrapper.name == "env" && args.get(at).is_some_and(|a| a.text == "-"));
        while wrapper.assigns && args.get(at).is_some_and(|a| is_assignment(&a.text)) {
            if let Some(arg) = args.get(at)
                && let Some((name, value)) = arg.text.split_once('=')
                && variables::decides(name, (!arg.unknown).then_some(value))
            {
                self.found.add(Flag::ExecShell, &format!("{name} decides what is run"));
            }
            at += 1;
        }
        let login = matches!(wrapper.name, "sudo" | "doas")
            && options.iter().any(|a| own(a, 'i', "login") || own(a, 's', "shell"));
        if args.get(at).is_none()
            && (login || matches!(wrapper.name, "chroot" | "unshare" | "nsenter"))
        {
            self.bare_shell(input);
            return;
        }
        // What is loaded before the program, or a shell instead of one.
        if wrapper.name == "systemd-run" && options.iter().any(|a| own(a, 'S', "shell")) {
            self.found.add(Flag::ExecShell, "a shell that is told later what to run");
        }
        if wrapper.name == "prlimit" {
            let limit = |a: &Arg| a.text.chars().all(|c| c.is_ascii_digit() || c == ':');
            at += usize::from(args.get(at).is_some_and(limit));
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
    pub(super) fn rest(&mut self, args: &[Arg], at: usize, input: &Input) {
        let rest = args.get(at..).unwrap_or_default();
        if !rest.is_empty() {
            self.run(rest, input);
        }
    }

    /// A shell that reads what it runs from its input.
    pub(super) fn shell_input(&mut self, input: &Input) {
        match input {
            Input::Nothing => {}
            Input::Text(text) => drop(self.text(text, &Input::Nothing)),
            Input::Unknown => self.found.add(Flag::ExecShell, "a shell that reads what it runs"),
        }
    }

    pub(super) fn eval(&mut self, args: &[Arg], input: &Input) {
        if args.iter().any(|a| a.unknown) {
            self.found.add(Flag::ExecShell, "text that is put together while it runs");
        }
        let args = args.strip_prefix(&[Arg::literal("--")]).unwrap_or(args);
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

    /// `perf stat PROGRAM`; its other verbs only look.
    fn perf(&mut self, args: &[Arg], input: &Input) {
        let Some((verb, args)) = args.split_first() else { return };
        if matches!(verb.text.as_str(), "stat" | "record" | "trace" | "mem" | "c2c" | "kvm") {
            let at = after_options(args, "eopFcCtIiGdmgru", &["event", "output", "pid", "tid"]);
            self.rest(args, at, input);
        }
    }

    fn start_stop(&mut self, args: &[Arg], input: &Input) {
        self.found.add(Flag::ExecServices, "start-stop-daemon");
        // --start is no short form of --startas.
        let names = ["-a", "--startas", "-x", "--exec"];
        let program = args.iter().enumerate().find_map(|(at, arg)| {
            let (name, value) = arg.text.split_once('=').unwrap_or((&arg.text, ""));
            let value = if value.is_empty() {
                args.get(at + 1).cloned()
            } else {
                Some(Arg::literal(value))
            };
            value.filter(|_| names.contains(&name))
        });
        if let Some(program) = program {
            let at = args.iter().position(|a| a.text == "--").map_or(args.len(), |at| at + 1);
            let mut words = vec![program];
            words.extend(args.get(at..).unwrap_or_default().iter().cloned());
            self.run(&words, input);
        }
    }

    /// Programs that a unit's properties name; the unit's own is found as with any wrapper.
    fn run_unit(&mut self, args: &[Arg]) -> bool {
        for arg in args {
            let text = arg.text.trim_start_matches("--property=").trim_start_matches("-p");
            if let Some((name, value)) = text.split_once('=')
                && name.starts_with("Exec")
            {
                let value = value.trim_start_matches(|c: char| "-@:+!|".contains(c));
                self.eval(&[Arg { text: value.to_owned(), unknown: arg.unknown }], &Input::Nothing);
            }
        }
        false
    }

    fn with_text(&mut self, args: &[Arg], names: &[&str], input: &Input) {
        if let Some(text) = Self::option(args, names).cloned() {
            self.eval(&[text], input);
        } else if let Some(text) = args.iter().find_map(|a| {
            let glued = a.text.strip_prefix("-c").filter(|t| !t.is_empty());
            a.text.strip_prefix("--command=").or(glued)
        }) {
            let text = Arg::literal(text);
            self.eval(&[text], input);
        }
    }

    fn su(&mut self, args: &[Arg], input: &Input) {
        // The last of several holds; each is as good as any.
        let texts: Vec<Arg> = (0..args.len())
            .filter_map(|from| {
                Self::option(args.get(from..=from + 1)?, &["c", "command", "session-command"])
            })
            .cloned()
            .collect();
        if !texts.is_empty() {
            return texts.into_iter().for_each(|text| self.eval(&[text], input));
        }
        if let Some(text) = args.iter().find_map(|a| a.text.strip_prefix("--command=")) {
            let text = Arg::literal(text);
            return self.eval(&[text], input);
        }
        if let Some(at) = args.iter().position(|a| a.text == "--") {
            return self.rest(args, at + 1, input);
        }
        let at = after_options(args, "ugGsw", &["user", "group", "shell"]);
        let named = args
            .get(..at)
            .unwrap_or_default()
            .iter()
            .any(|a| a.text.starts_with("-u") || a.text.starts_with("--user"));
        if named && args.len() > at {
            return self.rest(args, at, input);
        }
        self.bare_shell(input);
    }

    /// `setarch [ARCH] [OPTIONS] PROGRAM`.
    fn setarch(&mut self, args: &[Arg], input: &Input) {
        let own = usize::from(args.first().is_some_and(|a| !a.is_option()));
        let rest = args.get(own..).unwrap_or_default();
        self.rest(rest, after_options(rest, "p", &["pid"]), input);
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
                .strip_prefix("--s")
                .and_then(|rest| rest.split_once('=').map(|(_, text)| text))
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
}
