//! Programs that write the files that they are given.

use super::{
    variables::harmless_ssh,
    walk::Walk,
    words::Arg,
    wrappers::{has_long, value_of},
};
use crate::safety::Flag;

impl Walk<'_> {
    pub(super) fn tar(&mut self, args: &[Arg]) {
        let has = |p: &str| args.iter().any(|a| a.text.starts_with(p));
        let packs =
            ["gzip", "pigz", "zstd", "zstdmt", "xz", "pixz", "bzip2", "pbzip2", "lbzip2", "lz4"];
        let packer = |text: &str| {
            let mut words = text.split_whitespace();
            words.next().is_some_and(|w| packs.contains(&w))
                && words.all(|w| w.starts_with('-') || w.chars().all(|c| c.is_ascii_digit()))
        };
        let shows = ["dot", "echo", "bell", "totals", "sleep", "wait"];
        let harmless = |value: Option<Arg>, fits: &dyn Fn(&str) -> bool| {
            value.is_none_or(|v| !v.unknown && fits(&v.text))
        };
        let cluster = |letter: char| {
            args.iter().enumerate().any(|(at, a)| {
                let cluster = a.text.trim_start_matches('-');
                (a.is_option() && !a.text.starts_with("--") || at == 0 && !a.text.starts_with('-'))
                    && cluster.chars().all(|c| c.is_ascii_alphabetic())
                    && cluster.contains(letter)
            })
        };
        let glued = args.iter().any(|a| a.text.len() > 2 && a.text.starts_with("-I"));
        // The option before it in the alphabet is its prefix.
        let actions = args.iter().enumerate().filter(|(_, a)| a.text.starts_with("--checkpoint-"));
        let mut actions = actions.map(|(at, a)| match a.text.split_once('=') {
            Some((_, action)) => action.to_owned(),
            None => args.get(at + 1).map(|a| a.text.clone()).unwrap_or_default(),
        });
        if actions.any(|action| !shows.iter().any(|s| action.starts_with(s)))
            || !harmless(value_of(args, '\0', "use-compress-program"), &packer)
            || (glued || cluster('I'))
                && !value_of(args, 'I', "\0").is_some_and(|v| packer(&v.text))
            || cluster('F')
            || ["to-command", "rsh-command", "rmt-command", "info-script", "new-volume-script"]
                .iter()
                .any(|long| has_long(args, long))
        {
            self.found.add(Flag::ExecShell, "tar that runs a program");
        }
        if has("--remove-files") {
            self.found.add(Flag::ExecDelete, "tar removes files");
        }
        // A cluster of letters may come first without its dash: `tar xzf a.tgz`.
        let letters = |letter: char| {
            args.iter().enumerate().any(|(at, a)| {
                let cluster = a.is_option() && !a.text.starts_with("--");
                (cluster || at == 0 && !a.text.starts_with('-')) && a.text.contains(letter)
            })
        };
        let dir = value_of(args, 'C', "directory");
        if letters('x') || has("--extract") || has("--get") {
            self.writes(&dir.unwrap_or_else(|| Arg::literal(".")));
            return;
        }
        if let Some(file) = value_of(args, 'f', "file") {
            self.writes(&file);
        }
        // Names are looked for in the directory that is gone to.
        if let Some(dir) = dir {
            for name in args.iter().filter(|a| !a.is_option() && !a.text.starts_with('/')) {
                self.reads(&Arg::literal(&format!("{}/{}", dir.text, name.text)));
            }
        }
    }

    pub(super) fn rsync(&mut self, args: &[Arg]) {
        let tries = args.iter().any(|a| {
            let letters = a.text.trim_start_matches('-');
            a.text == "--dry-run"
                || a.is_option()
                    && !a.text.starts_with("--")
                    // What is glued to an option is no letter of a cluster.
                    && !letters.starts_with(['e', 'T', 'f', 'B', 'M'])
                    && letters.chars().all(|c| c.is_ascii_alphabetic())
                    && letters.contains('n')
        });
        let deletes = |a: &Arg| a.text.starts_with("--del") || a.text.starts_with("--remove-s");
        if !tries && args.iter().any(deletes) {
            self.found.add(Flag::ExecDelete, "rsync deletes");
        }
        let shell = value_of(args, 'e', "rsh");
        let harmless = shell.is_none_or(|s| harmless_ssh(&s.text));
        if !harmless || has_long(args, "rsync-path") {
            self.found.add(Flag::ExecShell, "rsync that runs a program");
        }
        self.last_written(args);
    }

    pub(super) fn last_written(&mut self, args: &[Arg]) {
        let target = args.iter().rfind(|a| !a.is_option()).cloned();
        // host:path is another machine's.
        if let Some(target) =
            target.filter(|t| !t.text.split('/').next().unwrap_or_default().contains(':'))
        {
            self.writes(&target);
        }
    }

    pub(super) fn writes_all(&mut self, args: &[Arg]) {
        let paths: Vec<Arg> = args.iter().filter(|a| !a.is_option()).cloned().collect();
        for path in &paths {
            self.writes(path);
        }
    }

    /// Programs that write the files that they are given.
    pub(super) fn files(&mut self, name: &str, args: &[Arg]) {
        let has = |start: &str| args.iter().any(|a| a.text.starts_with(start));
        match name {
            "cp" | "mv" | "ln" | "install" | "scp" | "link" => {
                match value_of(args, 't', "target-directory") {
                    Some(target) => self.writes(&target),
                    None => self.last_written(args),
                }
                let mode = value_of(args, 'm', "mode").filter(|_| name == "install");
                if mode.is_some_and(|m| m.text.starts_with(['2', '4', '6']) && m.text.len() == 4) {
                    self.found
                        .add(Flag::ExecSystemFiles, "a file that runs with its owner's rights");
                }
                if name == "install" && has("--strip-program") {
                    self.found.add(Flag::ExecShell, "install that runs a program");
                }
                if name == "mv" {
                    self.writes_all(args);
                }
                if name != "link" && args.iter().any(|a| a.text == "/dev/null") {
                    self.found.add(Flag::ExecDelete, "empties a file");
                }
                let runs = |a: &Arg| {
                    a.text.to_ascii_lowercase().contains("command")
                        || a.text.starts_with("-S")
                        || a.text.starts_with("-F")
                };
                if name == "scp" && args.iter().any(runs) {
                    self.found.add(Flag::ExecShell, "scp that runs a program");
                }
            }
            "wget" => {
                let file = value_of(args, 'O', "output-document");
                let dir = value_of(args, 'P', "directory-prefix");
                if value_of(args, '\0', "method")
                    .is_some_and(|m| m.text.eq_ignore_ascii_case("delete"))
                {
                    self.found.add(Flag::ExecDelete, "asks a server to delete");
                }
                // Without a name it is that of the address, here.
                if !has_long(args, "spider") && !has("-V") {
                    self.writes_to(&file.or(dir).unwrap_or_else(|| Arg::literal(".")));
                }
                if has("--use-askpass") {
                    self.found.add(Flag::ExecShell, "wget that runs a program");
                }
            }
            "curl" => {
                let method = value_of(args, 'X', "request");
                if method.is_some_and(|m| m.text.eq_ignore_ascii_case("delete")) {
                    self.found.add(Flag::ExecDelete, "asks a server to delete");
                }
                let dir = value_of(args, '\0', "output-dir");
                let file = value_of(args, 'o', "output");
                for file in [&file, &dir].into_iter().flatten() {
                    self.writes_to(file);
                }
                let named = has("--remote-name")
                    || args.iter().any(|a| {
                        a.is_option() && !a.text.starts_with("--") && a.text.contains('O')
                    });
                if named && dir.is_none() {
                    self.writes(&Arg::literal("."));
                }
            }
            "7z" | "7za" | "7zr" | "7zz" => {
                let verb = args.first().map_or("", |a| a.text.as_str());
                let dir = args.iter().find_map(|a| a.text.strip_prefix("-o"));
                match verb {
                    "x" | "e" => self.writes(&Arg::literal(dir.unwrap_or("."))),
                    "d" => self.found.add(Flag::ExecDelete, "deletes from an archive"),
                    "a" | "u" | "rn" => self.writes_all(args.get(1..2).unwrap_or_default()),
                    _ => {}
                }
                if args.iter().any(|a| a.text == "-sdel") {
                    self.found.add(Flag::ExecDelete, "removes what it packed");
                }
            }
            "cpio" => {
                if let Some(dir) = value_of(args, 'D', "directory") {
                    self.writes(&dir);
                } else if args.iter().any(|a| a.is_option() && a.text.contains(['i', 'p'])) {
                    self.writes(&Arg::literal("."));
                }
                self.writes_all(args);
            }
            "unzip" => {
                let dir = value_of(args, 'd', "\0");
                let looks = ["-l", "-t", "-v", "-Z", "-p", "-c"].iter().any(|o| has(o));
                if dir.is_some() || !looks {
                    self.writes(&dir.unwrap_or_else(|| Arg::literal(".")));
                }
            }
            "openssl" => {
                let loads = ["-engine", "-provider-path", "-provider"];
                if args.windows(2).any(|w| {
                    matches!(w, [o, v] if loads.contains(&o.text.as_str()) && v.text.contains('/'))
                }) {
                    self.found.add(Flag::ExecShell, "openssl that loads code");
                }
                for (at, _) in args
                    .iter()
                    .enumerate()
                    .filter(|(_, a)| matches!(a.text.as_str(), "-out" | "-keyout" | "-CAserial"))
                {
                    if let Some(file) = args.get(at + 1) {
                        self.writes(file);
                    }
                }
            }
            "sort" | "gpg" => {
                if let Some(file) = value_of(args, 'o', "output") {
                    self.writes(&file);
                }
                if has_long(args, "compress-program") {
                    self.found.add(Flag::ExecShell, "sort that runs a program");
                }
            }
            "gzip" | "gunzip" | "xz" | "bzip2"
                if args.iter().any(|a| {
                    matches!(
                        a.text.as_str(),
                        "-c" | "-l" | "-t" | "-k" | "--stdout" | "-dc" | "-cd"
                    )
                }) => {}
            "sftp" => self.found.add(Flag::ExecShell, "sftp does what its input says"),
            "split" if args.iter().any(|a| a.text.starts_with("--filter")) => {
                self.found.add(Flag::ExecShell, "split that runs a program");
            }
            "tee" | "sponge" => {
                let files: Vec<Arg> = args.iter().filter(|a| !a.is_option()).cloned().collect();
                for file in &files {
                    self.writes_to(file);
                }
            }
            "mktemp" => {}
            // The first word of these is a mode or an owner, not a file.
            "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" | "setcap" => {
                // The mode can look like an option: chmod -x, chattr -i.
                let mode = |a: &Arg| {
                    a.text
                        .strip_prefix('-')
                        .is_some_and(|m| !m.is_empty() && m.chars().all(|c| "rwxXst".contains(c)))
                };
                let first = name != "chattr" && !args.iter().any(mode);
                let paths: Vec<Arg> = args
                    .iter()
                    .filter(|a| !a.is_option() && !a.text.starts_with(['+', '=']))
                    .skip(usize::from(
                        first && !args.iter().any(|a| a.text.starts_with(['+', '='])),
                    ))
                    .cloned()
                    .collect();
                for path in &paths {
                    self.writes(path);
                }
                if name == "setcap" {
                    self.found.add(
                        Flag::ExecSystemFiles,
                        "a file that runs with more rights than its caller",
                    );
                }
                if name == "chmod"
                    && args.iter().any(|a| {
                        a.text.contains("+s")
                            || a.text.starts_with(['2', '4', '6']) && a.text.len() == 4
                    })
                {
                    self.found
                        .add(Flag::ExecSystemFiles, "a file that runs with its owner's rights");
                }
            }
            _ => self.writes_all(args),
        }
    }
}
