//! Programs for texts that can run others or write files: awk, sed, editors.

use super::{walk::Walk, words::Arg};
use crate::safety::Flag;

impl Walk<'_> {
    pub(super) fn awk(&mut self, args: &[Arg]) {
        let runs = |t: &str| {
            t.contains("system(")
                || t.contains("system (")
                || t.contains("getline") && t.contains('|')
                || t.contains("| \"")
                || t.contains("|\"")
                || t.contains("|&")
                || t.contains("print |")
                || t.contains("@load")
        };
        if args.iter().any(|a| runs(&a.text) || a.unknown && a.text.chars().count() == 1) {
            self.found.add(Flag::ExecShell, "awk that runs a program");
        }
        for arg in args {
            if let Some((_, rest)) =
                arg.text.split_once("> \"").or_else(|| arg.text.split_once(">\""))
            {
                let path = rest.split('"').next().unwrap_or_default().to_owned();
                self.writes(&Arg::literal(&path));
            }
        }
        if args.iter().any(|a| matches!(a.text.as_str(), "-f" | "--file")) {
            self.found.add(Flag::ExecShell, "a script for awk");
        }
    }

    pub(super) fn sed(&mut self, args: &[Arg]) {
        let mut scripts: Vec<String> = Vec::new();
        let mut files: Vec<Arg> = Vec::new();
        let explicit = args.iter().any(|a| {
            matches!(a.text.as_str(), "-e" | "--expression" | "-f" | "--file")
                || a.text.starts_with("-e")
        });
        let mut skip = false;
        for (at, arg) in args.iter().enumerate() {
            if skip {
                skip = false;
                continue;
            }
            match arg.text.as_str() {
                "-e" | "--expression" => {
                    scripts.extend(args.get(at + 1).map(|a| a.text.clone()));
                    skip = true;
                }
                "-f" | "--file" => {
                    self.found.add(Flag::ExecShell, "a script for sed");
                    skip = true;
                }
                _ if arg.is_option() => {}
                _ if scripts.is_empty() && !explicit => scripts.push(arg.text.clone()),
                _ => files.push(arg.clone()),
            }
        }
        for script in &scripts {
            let trimmed = script.trim();
            // `e` runs a line, `s///e` what it replaced, `w` writes a file.
            let commands = trimmed.split([';', '\n', '}', '{']).map(str::trim);
            let runs = commands.clone().any(|c| {
                let bare = c
                    .trim_start_matches(|ch: char| ch.is_ascii_digit() || ",$!".contains(ch))
                    .trim_start();
                bare == "e"
                    || bare.starts_with("e ")
                    || (bare.starts_with('s') && bare.len() > 3 && {
                        let delimiter = bare.chars().nth(1).unwrap_or('/');
                        let flags = bare.rsplit(delimiter).next().unwrap_or_default();
                        flags.len() < 6 && flags.contains('e')
                    })
            });
            if runs {
                self.found.add(Flag::ExecShell, "sed that runs a program");
            }
            if let Some(at) = trimmed.find("w /") {
                let path = trimmed.get(at + 2..).unwrap_or_default().to_owned();
                self.writes(&Arg::literal(&path));
            }
        }
        let in_place = args.iter().any(|a| {
            a.text.starts_with("--in-place")
                || a.is_option() && !a.text.starts_with("--") && a.text.contains('i')
        });
        if in_place {
            for file in &files {
                self.writes(file);
            }
        }
    }

    pub(super) fn editor(&mut self, name: &str, args: &[Arg]) {
        let runs = args.iter().any(|a| {
            let t = a.text.as_str();
            t.contains(":!")
                || t.starts_with("+!")
                || t.starts_with("!")
                || t.contains("system(")
                || t == "--eval"
                || t == "-S"
                || t == "--cmd"
                || t.starts_with("+") && t.contains("!")
        });
        if runs {
            self.found.add(Flag::ExecShell, &format!("{name} runs a program"));
        }
        if name != "view" {
            self.writes_all(args);
        }
    }
}
