//! Programs that run another for what they find or read: find, fd, xargs, parallel.

use super::{
    paths,
    walk::{Input, Walk},
    words::Arg,
    wrappers::{after_options, has_long, value_of},
};
use crate::safety::Flag;

/// Most lines of known input that a program is run for one by one.
const MOST_LINES: usize = 32;

impl Walk<'_> {
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

    pub(super) fn xargs(&mut self, args: &[Arg], input: &Input) {
        let at = after_options(
            args,
            // -i, -l and -e take their value glued or not at all.
            "aEILnPsdSRJ",
            &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"],
        );
        let rest = args.get(at..).unwrap_or_default().to_vec();
        if rest.is_empty() {
            return;
        }
        let options = args.get(..at).unwrap_or_default();
        let replace = value_of(options, 'I', "replace");
        let hole = replace.as_ref().map_or("{}", |a| a.text.as_str()).to_owned();
        let elsewhere =
            options.iter().any(|a| a.text.starts_with("-a")) || has_long(options, "arg-file");
        match input {
            // What printed nothing that is known may have printed anything.
            Input::Text(text) if !elsewhere && !text.trim().is_empty() => {
                let lines: Vec<&str> = match replace {
                    Some(_) => text.lines().take(MOST_LINES).collect(),
                    None => vec![text],
                };
                for line in lines {
                    let mut words: Vec<Arg> = rest.clone();
                    if replace.is_some() {
                        for word in &mut words {
                            word.text = word.text.replace(&hole, line.trim());
                        }
                    } else {
                        let parts = line.split(|c: char| c.is_whitespace() || c == '\0');
                        words.extend(parts.filter(|w| !w.is_empty()).map(Arg::literal));
                    }
                    self.run(&words, &Input::Unknown);
                }
            }
            _ => {
                if let Some((dirs, unnamed)) = self.listed.take() {
                    if rest.first().is_some_and(|w| changes_files(&w.text)) {
                        dirs.iter().for_each(|dir| self.writes(dir));
                    }
                    if unnamed {
                        let dirs: Vec<&Arg> = dirs.iter().collect();
                        self.found_unnamed(&dirs, &rest);
                    }
                }
                self.with_holes(&rest, &hole, true);
            }
        }
    }

    /// `fd PATTERN -x PROGRAM`.
    pub(super) fn fd(&mut self, args: &[Arg]) {
        let runs = ["-x", "-X", "--exec", "--exec-batch"];
        if let Some(at) = args.iter().position(|a| runs.contains(&a.text.as_str())) {
            let words = args.get(at + 1..).unwrap_or_default().to_vec();
            self.with_holes(&words, "{}", true);
        }
    }

    pub(super) fn parallel(&mut self, args: &[Arg]) {
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

    pub(super) fn find(&mut self, args: &[Arg]) {
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
                    let reads = words.first().is_some_and(|w| !super::run::only_names(&w.text));
                    if reads && let Some(path) = self.secret_found(args) {
                        self.reads(&Arg::literal(path));
                    }
                    if searched(args).is_empty() && !of_other_kind(args) {
                        self.found_unnamed(&starts, &words);
                    }
                    // What is found below a system directory is a system file.
                    let program = words.first().map(|w| w.text.clone()).unwrap_or_default();
                    let changes = changes_files(&program);
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

    /// What `find` hands to a program: the directory itself, or what is looked for below it.
    fn found_by(&mut self, args: &[Arg], starts: &[&Arg]) {
        for start in starts {
            self.reads(start);
            if let Some(name) = searched(args).first() {
                self.reads(&Arg::literal(&format!("{}/{name}", start.text)));
            }
        }
    }

    /// A file with secrets that `find` would come upon by the name that it looks for.
    fn secret_found(&self, args: &[Arg]) -> Option<&'static str> {
        let names = searched(args);
        if names.is_empty() {
            return None;
        }
        let starts: Vec<String> =
            args.iter().take_while(|a| !a.is_option()).filter_map(|a| self.resolved(a)).collect();
        paths::SAMPLES.into_iter().find(|sample| {
            let below = |start: &String| {
                let rest = sample.strip_prefix(start.as_str());
                start == "/" || rest.is_some_and(|r| r.is_empty() || r.starts_with('/'))
            };
            let name = sample.rsplit('/').next().unwrap_or_default();
            (starts.is_empty() || starts.iter().any(below))
                && names.iter().any(|n| {
                    // A lone star is no search for anything.
                    !n.trim_matches('*').is_empty()
                        && (paths::matches(n, name) || n.contains('/') && paths::matches(n, sample))
                })
        })
    }

    /// What `find` prints, where it looks for a file with secrets.
    pub(super) fn find_prints(&mut self, words: &[Arg]) -> Input {
        let args = words.get(1..).unwrap_or_default();
        if !of_other_kind(args) {
            let dirs = args.iter().take_while(|a| !a.is_option()).cloned().collect();
            self.listed = Some((dirs, searched(args).is_empty()));
        }
        match self.secret_found(args) {
            Some(path) => Input::Text(path.to_owned()),
            None => Input::Unknown,
        }
    }
}

/// Whether `find` looks for what is no plain file.
fn of_other_kind(args: &[Arg]) -> bool {
    args.windows(2).any(|w| matches!(w, [t, k] if t.text == "-type" && !k.text.contains('f')))
}

/// The names and paths that `find` looks for.
fn searched(args: &[Arg]) -> Vec<String> {
    let tests = [
        "-name",
        "-iname",
        "-path",
        "-wholename",
        "-ipath",
        "-regex",
        "-iregex",
        "-samefile",
        "-inum",
    ];
    let pairs = args.iter().zip(args.iter().skip(1));
    pairs
        .filter(|(test, _)| tests.contains(&test.text.as_str()))
        .map(|(_, name)| name.text.clone())
        .collect()
}

/// Programs that change the files that they are handed.
fn changes_files(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    matches!(
        name,
        "chmod"
            | "chown"
            | "chgrp"
            | "sed"
            | "mv"
            | "cp"
            | "rm"
            | "tee"
            | "truncate"
            | "touch"
            | "ln"
            | "install"
            | "chattr"
            | "setfacl"
            | "perl"
            | "dos2unix"
            | "rename"
            | "shred"
    )
}
