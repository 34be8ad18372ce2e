//! Which program a word is, and the programs that run others' code: shells and interpreters.

use super::{
    builtins::OWN_INPUT,
    paths,
    walk::{Input, Walk},
    words::{Arg, UNKNOWN},
    wrappers::after_options,
};
use crate::safety::Flag;

/// Directories of programs that the system brings along.
const STANDARD: [&str; 10] = [
    "/bin",
    "/usr/bin",
    "/sbin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/snap/bin",
    "/usr/games",
    "/usr/libexec",
    "/etc/init.d",
];
/// Whether a directory is one of those of the system.
pub(super) fn is_standard(dir: &str) -> bool {
    STANDARD.contains(&dir) || dir.is_empty()
}

/// Shells: `-c` has a text, a first word is a script, else the input is run.
const SHELLS: [&str; 20] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "fish", "csh", "tcsh", "yash",
    "posh", "oksh", "loksh", "hush", "elvish", "osh", "ysh", "ion",
];
/// Interpreters: whatever they run cannot be looked into.
const INTERPRETERS: [&str; 50] = [
    "python",
    "python2",
    "python3",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "php",
    "lua",
    "tclsh",
    "expect",
    "deno",
    "bun",
    "guile",
    "R",
    "Rscript",
    "osascript",
    "luajit",
    "pypy",
    "jruby",
    "ipython",
    "ts-node",
    "tsx",
    "gjs",
    "qjs",
    "raku",
    "julia",
    "octave",
    "sbcl",
    "clisp",
    "ghci",
    "runghc",
    "scala",
    "groovy",
    "elixir",
    "ocaml",
    "racket",
    "wish",
    "irb",
    "pry",
    "nu",
    "xonsh",
    "swipl",
    "ghc",
    "gforth",
    "csi",
    "gsi",
    "janet",
    "fennel",
    "dart",
];
/// Endings of scripts, which are one's own wherever they lie.
const SCRIPTS: [&str; 7] = [".sh", ".bash", ".py", ".pl", ".rb", ".php", ".js"];
/// Programs that name files without reading them.
const NAMES_ONLY: [&str; 41] = [
    "echo",
    "printf",
    "ls",
    "stat",
    "test",
    "[",
    "touch",
    "chmod",
    "chown",
    "chgrp",
    "rm",
    "mkdir",
    "rmdir",
    "du",
    "realpath",
    "readlink",
    "basename",
    "dirname",
    "shred",
    "unlink",
    "tee",
    "getfacl",
    "setfacl",
    "find",
    "ssh-keygen",
    "chattr",
    "lsattr",
    "restorecon",
    "ssh",
    "ssh-add",
    "id",
    "cd",
    "which",
    "file",
    "namei",
    "tree",
    "pwd",
    "dpkg",
    "rpm",
    "htpasswd",
    "htdigest",
];

/// Whether a program names files without reading them.
pub(super) fn only_names(program: &str) -> bool {
    NAMES_ONLY.contains(&program)
}

impl Walk<'_> {
    /// Runs a program with its arguments.
    pub(super) fn program_run(&mut self, words: &[Arg], input: &Input) {
        let Some((first, args)) = words.split_first() else { return };
        if first.unknown {
            self.found.add(Flag::ExecShell, "a program whose name is put together while it runs");
            return;
        }
        let path = first.text.as_str();
        // `{fd}>file program`, `time -v program`: what stands before is no program to every shell.
        let descriptor = path.strip_prefix('{').and_then(|p| p.strip_suffix('}'));
        let skipped = descriptor.is_some_and(|d| {
            !d.is_empty() && d.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        if (skipped || first.is_option() || path == "--") && !args.is_empty() {
            return self.program_run(args, input);
        }
        if path.len() > 2 && path.contains(['*', '?', '[']) {
            self.found.add(Flag::ExecShell, "a program that a pattern names");
            return;
        }
        if !path.is_ascii() {
            self.found.add(Flag::ExecShell, "a program whose name is not what it looks like");
            return;
        }
        if super::windows::argv(path, args, self.found) {
            return;
        }
        let name = self.program_name(path);
        // `=name` is a program that zsh looks up.
        let own = path.starts_with('=') && path.len() > 1;
        let Some(name) = name.filter(|n| !own && !SCRIPTS.iter().any(|s| n.ends_with(s))) else {
            self.found.add(Flag::ExecShell, &format!("{path} is a program or script of its own"));
            self.mentions("", args);
            return;
        };
        let name = match name.as_str() {
            name if name.starts_with("busybox") => "busybox",
            name if name.starts_with("toybox") => "toybox",
            name => name,
        };
        let asks = matches!(args, [only] if matches!(only.text.as_str(), "--help" | "--version"));
        if asks && !path.contains("/init.d/") && !self.is_function(name) {
            return;
        }
        let open = ["git", "ip", "tar", "dd"].contains(&name);
        if open && args.first().is_some_and(|a| a.text.chars().all(|c| c == UNKNOWN) && a.unknown) {
            self.found.add(Flag::ExecShell, "a verb that is put together while it runs");
        }
        self.mentions(name, args);
        self.leaks(name, args, input);
        if path.starts_with("/etc/init.d/") {
            if args.first().is_none_or(|a| a.text != "status") {
                self.found.add(Flag::ExecServices, &format!("{path} starts or stops a service"));
            }
            return;
        }
        if self.builtin(name, args, input) || self.wrapper(name, args, input) {
            return;
        }
        if SHELLS.contains(&name) {
            return self.shell(name, args, input);
        }
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let name = if bare == "pip" { bare } else { name };
        if INTERPRETERS.contains(&name) || INTERPRETERS.contains(&bare) {
            return self.interpreter(name, args, input);
        }
        self.named(name, args, input);
    }

    /// The bare name of a program; `None` for one outside the system's directories.
    fn program_name(&self, path: &str) -> Option<String> {
        if !path.contains('/') {
            return Some(path.to_owned());
        }
        let path = self.resolved(&Arg::literal(path))?;
        let (dir, name) = path.rsplit_once('/')?;
        let loader = name.starts_with("ld-linux") || name.starts_with("ld-musl");
        (loader || STANDARD.contains(&dir)).then(|| name.to_owned())
    }

    /// Files with secrets that the arguments name.
    fn mentions(&mut self, program: &str, args: &[Arg]) {
        let shows_key = program == "ssh-keygen" && args.iter().any(|a| a.text == "-y");
        if NAMES_ONLY.contains(&program) && !shows_key || self.found.secret.is_some() {
            return;
        }
        let skipped = unread(program, args);
        for (place, arg) in args.iter().enumerate() {
            if skipped.contains(&place) {
                continue;
            }
            // A relative name, where it is the whole argument or behind an option.
            if !arg.is_option() {
                self.reads(arg);
            }
            let behind = arg.text.split_once('=').map(|(_, value)| value);
            let glued =
                arg.text.get(2..).filter(|_| arg.is_option() && !arg.text.starts_with("--"));
            for part in behind.into_iter().flat_map(|b| b.split(',')) {
                self.reads(&Arg::literal(part));
            }
            for part in [behind, glued].into_iter().flatten().filter(|p| !p.is_empty()) {
                self.reads(&Arg::literal(part));
            }
            // An absolute name anywhere in it.
            let inside = |c: char| c.is_alphanumeric() || "._/*?~-[]{},+@".contains(c);
            for piece in arg.text.split(|c| !inside(c)) {
                for start in ["/", "~/"] {
                    if let Some(at) = piece.find(start) {
                        let piece = piece.get(at..).unwrap_or_default();
                        if paths::secret_path(piece, None).is_some() && self.found.secret.is_none()
                        {
                            self.found.secret = Some(piece.to_owned());
                        }
                    }
                }
            }
        }
    }

    pub(super) fn shell(&mut self, name: &str, args: &[Arg], input: &Input) {
        if name == "fish" {
            // What it runs before what it was asked for.
            let first = Self::option(args, &["C", "init-command"]).cloned();
            let glued = args.iter().find_map(|a| {
                let text = a.text.strip_prefix("--command=");
                text.or_else(|| a.text.strip_prefix("--init-command=")).map(Arg::literal)
            });
            for text in first.into_iter().chain(glued) {
                self.apart(|walk| walk.eval(&[text], input));
            }
        }
        // -c may stand anywhere in a cluster: -lc TEXT, -cx TEXT.
        let at = args
            .iter()
            .position(|a| a.is_option() && !a.text.starts_with("--") && a.text.contains('c'))
            .or_else(|| args.iter().position(|a| name == "fish" && a.text == "--command"));
        // More options may stand before the text: -c -x TEXT, -c -- TEXT.
        let at = at.map(|at| {
            let more = args.get(at + 1..).unwrap_or_default();
            let option = |a: &&Arg| {
                (a.is_option() || a.text.len() > 1 && a.text.starts_with('+')) && a.text != "--"
            };
            let skipped = more.iter().take_while(option).count();
            at + skipped + usize::from(more.get(skipped).is_some_and(|a| a.text == "--"))
        });
        if let Some(at) = at
            && let Some(text) = args.get(at + 1).cloned()
        {
            if text.unknown {
                self.found.add(Flag::ExecShell, "text that is put together while it runs");
            }
            // The words behind it are its parameters, from $0 on.
            let parameters = args.get(at + 3..).unwrap_or_default().to_vec();
            return self.apart(|walk| {
                walk.positional = Some(parameters);
                walk.text(&text.text, input);
            });
        }
        let at = after_options(args, "oO", &["rcfile", "init-file"]);
        if args.iter().any(|a| matches!(a.text.as_str(), "--version" | "--help")) {
            return;
        }
        // It reads the script and runs nothing of it.
        let reads = args.iter().take(at).any(|a| matches!(a.text.as_str(), "-n" | "-nv"));
        if reads && name != "fish" {
            return;
        }
        let reads_input = args.iter().any(|a| a.text == "-s");
        match args.get(at) {
            Some(script) if script.text == "-" && args.len() > at + 1 => {
                self.found.add(Flag::ExecShell, "a script");
            }
            Some(script) if OWN_INPUT.contains(&script.text.as_str()) || script.text == "-" => {
                self.shell_input(input)
            }
            Some(script) if !reads_input => {
                self.found.add(Flag::ExecShell, &format!("the script {}", script.text));
            }
            _ => self.bare_shell(input),
        }
    }

    /// A shell that is given nothing to do: it reads what it runs, and a person may type that.
    pub(super) fn bare_shell(&mut self, input: &Input) {
        if *input == Input::Nothing {
            self.found.add(Flag::ExecShell, "a shell that is told later what to run");
        }
        self.apart(|walk| walk.shell_input(input));
    }

    fn interpreter(&mut self, name: &str, args: &[Arg], input: &Input) {
        let words: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        let python = name.starts_with("py");
        match words.as_slice() {
            [] if *input == Input::Nothing => return,
            ["-V" | "--version" | "-h" | "--help"] => return,
            ["-v"] if !python => return,
            ["-i" | "-m" | "--ini" | "--ri" | "-v"] if name.starts_with("php") => return,
            // They check what is written and run nothing of it.
            ["-l", _] if name.starts_with("php") => return,
            ["--check" | "-c", _] if matches!(name, "node" | "nodejs" | "ruby") => return,
            ["-m", "json.tool" | "py_compile", ..] if python => return,
            ["-m", "pip", ..] if python => {
                let rest: Vec<Arg> = args.get(1..).unwrap_or_default().to_vec();
                return self.run(&rest, input);
            }
            _ => {}
        }
        // -i edits the files that are named.
        if name.starts_with("perl") || name.starts_with("ruby") {
            let edits = args
                .iter()
                .any(|a| a.is_option() && !a.text.starts_with("--") && a.text.contains('i'));
            if edits {
                self.writes_all(args);
            }
        }
        self.found.add(Flag::ExecShell, &format!("code for {name}"));
    }
}

/// Which of the arguments are written and not read: the last of those that copy, and what openssl
/// puts out.
fn unread(program: &str, args: &[Arg]) -> Vec<usize> {
    match program {
        "cp" | "mv" | "install" | "ln" | "scp" | "rsync" => {
            // All of them are read where the directory is an option's value.
            let named = args.iter().any(|a| {
                a.text.starts_with("--t")
                    || a.is_option() && !a.text.starts_with("--") && a.text.contains('t')
            });
            let plain: Vec<usize> =
                args.iter().enumerate().filter(|(_, a)| !a.is_option()).map(|(at, _)| at).collect();
            let makes = program == "install" && args.iter().any(|a| a.text == "-d");
            match plain.as_slice() {
                all if makes => all.to_vec(),
                [_, .., last] if !named => vec![*last],
                _ => Vec::new(),
            }
        }
        "openssl" => {
            let out = |a: &Arg| matches!(a.text.as_str(), "-out" | "-keyout" | "-CAserial");
            args.iter().enumerate().filter(|(_, a)| out(a)).map(|(at, _)| at + 1).collect()
        }
        _ => Vec::new(),
    }
}
