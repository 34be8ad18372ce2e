//! Which program a word is, and the programs that run others' code: shells and interpreters.

use super::{
    paths,
    walk::{Input, Walk},
    words::Arg,
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
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "fish"];
/// Interpreters: whatever they run cannot be looked into.
const INTERPRETERS: [&str; 17] = [
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
];
/// Programs that name files without reading them.
const NAMES_ONLY: [&str; 33] = [
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
];

impl Walk<'_> {
    /// Runs a program with its arguments.
    pub(super) fn program_run(&mut self, words: &[Arg], input: &Input) {
        let Some((first, args)) = words.split_first() else { return };
        if first.unknown {
            self.found.add(Flag::ExecShell, "a program whose name is put together while it runs");
            return;
        }
        let path = first.text.as_str();
        if path.len() > 2 && path.contains(['*', '?', '[']) {
            self.found.add(Flag::ExecShell, "a program that a pattern names");
            return;
        }
        let Some(name) = self.program_name(path) else {
            self.found.add(Flag::ExecShell, &format!("{path} is a program or script of its own"));
            self.mentions("", args);
            return;
        };
        let name = name.as_str();
        self.mentions(name, args);
        if path.starts_with("/etc/init.d/") {
            if args.first().is_none_or(|a| a.text != "status") {
                self.found.add(Flag::ExecServices, &format!("{path} starts or stops a service"));
            }
            return;
        }
        if self.wrapper(name, args, input) {
            return;
        }
        if SHELLS.contains(&name) {
            return self.shell(args, input);
        }
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
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
        for arg in args {
            // A relative name, where it is the whole argument or behind an option.
            if !arg.is_option() {
                self.reads(arg);
            }
            let behind = arg.text.split_once('=').map(|(_, value)| value);
            let glued =
                arg.text.get(2..).filter(|_| arg.is_option() && !arg.text.starts_with("--"));
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

    fn shell(&mut self, args: &[Arg], input: &Input) {
        let text = Self::option(args, &["c"]).or_else(|| {
            // -c may stand first in a cluster: -cx TEXT.
            let at = args
                .iter()
                .position(|a| a.is_option() && !a.text.starts_with("--") && a.text.contains('c'))?;
            args.get(at + 1)
        });
        if let Some(text) = text.cloned() {
            if text.unknown {
                self.found.add(Flag::ExecShell, "text that is put together while it runs");
            }
            return self.apart(|walk| walk.text(&text.text, input));
        }
        let at = after_options(args, "oO", &["rcfile", "init-file"]);
        if args.iter().any(|a| matches!(a.text.as_str(), "--version" | "--help")) {
            return;
        }
        let reads_input = args.iter().any(|a| a.text == "-s");
        match args.get(at) {
            Some(script) if script.text == "/dev/stdin" || script.text == "-" => {
                self.shell_input(input)
            }
            Some(script) if !reads_input => {
                self.found.add(Flag::ExecShell, &format!("the script {}", script.text));
            }
            _ => self.apart(|walk| walk.shell_input(input)),
        }
    }

    fn interpreter(&mut self, name: &str, args: &[Arg], input: &Input) {
        let asks = |a: &Arg| {
            matches!(
                a.text.as_str(),
                "-V" | "--version" | "-v" | "-h" | "--help" | "-i" | "-m" | "-l"
            )
        };
        match args.first() {
            None if *input == Input::Nothing => return,
            Some(only) if args.len() == 1 && asks(only) && only.text != "-m" => return,
            _ => {}
        }
        if name.starts_with("python")
            && args.first().is_some_and(|a| a.text == "-m")
            && args.get(1).is_some_and(|a| a.text == "pip")
        {
            let rest: Vec<Arg> = args.get(1..).unwrap_or_default().to_vec();
            return self.run(&rest, input);
        }
        self.found.add(Flag::ExecShell, &format!("code for {name}"));
    }
}
