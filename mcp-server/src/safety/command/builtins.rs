//! What the shell itself does: directories, variables, and the ways its own commands run others.

use super::{
    variables,
    walk::{Input, Walk},
    words::{Arg, UNKNOWN},
};
use crate::safety::Flag;

/// The shell's names for what it reads.
pub(super) const OWN_INPUT: [&str; 4] =
    ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/proc/thread-self/fd/0"];

impl Walk<'_> {
    /// Runs a command of the shell itself; answers whether this is one.
    pub(super) fn builtin(&mut self, name: &str, args: &[Arg], input: &Input) -> bool {
        let mut plain = args.iter().filter(|a| !a.is_option());
        match name {
            "cd" | "pushd" | "chdir" => match plain.next() {
                Some(dir) if !dir.unknown && dir.text != "-" => self.cwd = self.resolved(dir),
                Some(dir) if !dir.unknown || dir.text.starts_with('\u{fffd}') => self.cwd = None,
                // `${d:-/etc}`: it may be the one that is named.
                Some(dir) => self.cwd = self.resolved(dir),
                None => self.cwd = self.variable("HOME"),
            },
            "popd" => self.cwd = None,
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                self.indexes(args);
                for arg in plain {
                    if let Some((name, value)) = arg.text.split_once('=') {
                        self.search_path(name, &Arg { text: value.to_owned(), ..*arg });
                        let value = (!arg.unknown).then(|| value.to_owned());
                        self.assign(name, value);
                    }
                }
            }
            "read" => {
                self.indexes(args);
                let names: Vec<String> = plain.map(|a| a.text.clone()).collect();
                self.read(&names, input);
            }
            "unset" | "getopts" => {
                self.indexes(args);
                for name in plain {
                    self.set(&name.text, None);
                }
            }
            "let" | "test" | "[" => self.indexes(args),
            "printf" => {
                if let Some(at) = args.iter().position(|a| a.text == "-v") {
                    self.indexes(args);
                    let rest = args.get(at + 2..).unwrap_or_default();
                    let value = match super::output::of(&words("printf", rest), input) {
                        Input::Text(text) => Some(text),
                        Input::Nothing | Input::Unknown => None,
                    };
                    if let Some(name) = args.get(at + 1) {
                        self.assign(&name.text, value);
                    }
                }
            }
            "mapfile" | "readarray" => {
                self.indexes(args);
                if let Some(text) = Self::option(args, &["C"]).cloned() {
                    self.eval(&[text], &Input::Nothing);
                }
                if let Some(name) = args.last() {
                    self.set(&name.text, None);
                }
            }
            "set" => {
                let at = args.iter().position(|a| a.text == "--").map(|at| at + 1).or_else(|| {
                    args.iter().position(|a| !a.is_option() && !a.text.starts_with('+'))
                });
                // `set -o pipefail` names an option.
                let names_option = args.iter().any(|a| a.is_option() && a.text.ends_with('o'));
                if let Some(at) = at
                    && (!names_option || args.iter().any(|a| a.text == "--"))
                {
                    self.positional = args.get(at..).map(<[Arg]>::to_vec);
                }
            }
            "shift" => self.positional = None,
            "source" | "." => match plain.next() {
                Some(path) if OWN_INPUT.contains(&path.text.as_str()) => self.shell_input(input),
                _ => self.found.add(Flag::ExecShell, name),
            },
            "hash" => {
                if let Some(path) = Self::option(args, &["p"]).cloned() {
                    self.run(&[path], input);
                }
            }
            "compgen" | "complete" => {
                if let Some(text) = Self::option(args, &["C"]).cloned() {
                    self.eval(&[text], &Input::Nothing);
                }
            }
            "enable" if args.iter().any(|a| a.text.starts_with("-f")) => {
                self.found.add(Flag::ExecShell, "loads code into the shell");
            }
            "bind" if args.iter().any(|a| a.text == "-x") => {
                self.found.add(Flag::ExecShell, "a key that runs a program");
            }
            "fc" if !args.iter().any(|a| a.text.starts_with("-l")) => {
                self.found.add(Flag::ExecShell, "runs what was run before");
            }
            "alias" => {
                for arg in args {
                    if let Some((_, text)) = arg.text.split_once('=') {
                        self.inner(text);
                    }
                }
            }
            _ => return false,
        }
        true
    }

    /// Gives a variable its value; one that decides what is run is told.
    pub(super) fn assign(&mut self, name: &str, value: Option<String>) {
        let name = name.trim_end_matches('+');
        // Arithmetic, `${x@P}` and prompts run what stands in a value.
        if value.as_deref().is_some_and(|v| v.contains("$(") || v.contains('`')) {
            self.found.add(Flag::ExecShell, "a value that holds a command");
        }
        if variables::decides(name, value.as_deref()) {
            self.found.add(Flag::ExecShell, &format!("{name} decides what is run"));
        }
        self.set(name, value);
    }

    /// What is searched before a former path that cannot be known.
    pub(super) fn search_path(&mut self, name: &str, value: &Arg) {
        let first = value.text.split(UNKNOWN).next().unwrap_or_default().trim_end_matches(':');
        let before = value.unknown && name == "PATH" && !first.is_empty();
        if before && variables::decides(name, Some(first)) {
            self.found.add(Flag::ExecShell, "PATH decides what is run");
        }
    }

    /// An index is arithmetic, and a substitution in it runs even where quotes kept it whole.
    pub(super) fn indexes(&mut self, args: &[Arg]) {
        let runs =
            |a: &Arg| a.text.contains('[') && (a.text.contains("$(") || a.text.contains('`'));
        if args.iter().any(runs) {
            self.found.add(Flag::ExecShell, "a command inside an index");
        }
    }

    /// `read a b`: one name takes all that is read, of several only the last may be more.
    fn read(&mut self, names: &[String], input: &Input) {
        let (Input::Text(text), [only]) = (input, names) else {
            for name in names {
                self.set(name, None);
            }
            return;
        };
        // A loop reads the lines one by one: each is as good as any.
        let text: Vec<&str> = text.split_whitespace().collect();
        self.set(only, Some(text.join(" ")));
    }
}

fn words(name: &str, args: &[Arg]) -> Vec<Arg> {
    std::iter::once(Arg::literal(name)).chain(args.iter().cloned()).collect()
}
