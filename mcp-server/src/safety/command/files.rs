//! Programs that write the files that they are given.

use super::{walk::Walk, words::Arg, wrappers::value_of};
use crate::safety::Flag;

impl Walk<'_> {
    pub(super) fn tar(&mut self, args: &[Arg]) {
        let has = |p: &str| args.iter().any(|a| a.text.starts_with(p));
        if has("--checkpoint-action")
            || has("--to-command")
            || has("--use-compress-program")
            || has("-I")
            || has("--rsh-command")
            || has("--info-script")
            || has("--new-volume-script")
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
        if args.iter().any(|a| a.text.starts_with("--delete") || a.text == "--remove-source-files")
        {
            self.found.add(Flag::ExecDelete, "rsync deletes");
        }
        let shell = Self::option(args, &["e", "rsh"]);
        let harmless = shell.is_none_or(|s| s.text == "ssh" || s.text.starts_with("ssh "));
        if !harmless || args.iter().any(|a| a.text.starts_with("--rsync-path")) {
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
                if name == "mv" {
                    self.writes_all(args);
                }
                if name == "cp" && args.iter().any(|a| a.text == "/dev/null") {
                    self.found.add(Flag::ExecDelete, "empties a file");
                }
                if name == "scp"
                    && args.iter().any(|a| a.text.contains("ProxyCommand") || a.text == "-S")
                {
                    self.found.add(Flag::ExecShell, "scp that runs a program");
                }
            }
            "wget" => {
                let file = value_of(args, 'O', "output-document");
                let dir = value_of(args, 'P', "directory-prefix");
                // Without a name it is that of the address, here.
                self.writes(&file.or(dir).unwrap_or_else(|| Arg::literal(".")));
                if has("--use-askpass") {
                    self.found.add(Flag::ExecShell, "wget that runs a program");
                }
            }
            "curl" => {
                let dir = value_of(args, '\0', "output-dir");
                let file = value_of(args, 'o', "output");
                for file in [&file, &dir].into_iter().flatten() {
                    self.writes(file);
                }
                let named = has("--remote-name")
                    || args.iter().any(|a| {
                        a.is_option() && !a.text.starts_with("--") && a.text.contains('O')
                    });
                if named && dir.is_none() {
                    self.writes(&Arg::literal("."));
                }
            }
            "unzip" | "7z" => {
                let dir = value_of(args, 'd', "\0");
                let looks = ["-l", "-t", "-v", "-Z", "-p", "-c"].iter().any(|o| has(o));
                if dir.is_some() || !looks {
                    self.writes(&dir.unwrap_or_else(|| Arg::literal(".")));
                }
            }
            "openssl" => {
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
                if has("--compress-program") {
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
            "mktemp" => {}
            // The first word of these is a mode or an owner, not a file.
            "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" | "setcap" => {
                let paths: Vec<Arg> =
                    args.iter().filter(|a| !a.is_option()).skip(1).cloned().collect();
                for path in &paths {
                    self.writes(path);
                }
                if name == "chmod"
                    && args.iter().any(|a| {
                        a.text.contains("+s") || a.text.starts_with("4") && a.text.len() == 4
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
