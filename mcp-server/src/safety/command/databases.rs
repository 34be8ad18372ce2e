//! Clients of databases.

use super::{
    sql,
    walk::{Input, Walk},
    words::Arg,
};
use crate::safety::Flag;

impl Walk<'_> {
    pub(super) fn redis(&mut self, args: &[Arg]) {
        let upper: Vec<String> = args.iter().map(|a| a.text.to_ascii_uppercase()).collect();
        let has = |words: &[&str]| upper.iter().any(|u| words.contains(&u.as_str()));
        if has(&["FLUSHALL", "FLUSHDB", "DEL", "UNLINK"]) {
            self.found.add(Flag::ExecDelete, "redis-cli deletes keys");
        }
        if has(&["SHUTDOWN"]) {
            self.found.add(Flag::ExecServices, "redis-cli shutdown");
        }
        if has(&["EVAL", "MODULE", "--EVAL"]) || has(&["CONFIG"]) && has(&["SET"]) {
            self.found.add(Flag::ExecShell, "redis-cli runs code or changes where it writes");
        }
    }

    pub(super) fn database(&mut self, name: &str, args: &[Arg], input: &Input) {
        let mut texts: Vec<String> = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            let next = args.get(at + 1).map(|a| a.text.clone());
            match arg.text.as_str() {
                "-e" | "-c" | "--execute" | "--command" | "--eval" | "--query" | "-q" => {
                    texts.extend(next)
                }
                "-f" | "--file" | "-i" if matches!(name, "psql" | "cqlsh") => {
                    self.found.add(Flag::ExecShell, "statements from a file");
                }
                text => {
                    let glued = ["--execute=", "--command=", "--eval=", "--query="]
                        .iter()
                        .find_map(|p| text.strip_prefix(p))
                        .or_else(|| text.strip_prefix("-e").filter(|t| !t.is_empty()))
                        .or_else(|| {
                            text.strip_prefix("-c").filter(|t| !t.is_empty() && name == "psql")
                        });
                    texts.extend(glued.map(str::to_owned));
                }
            }
        }
        if name == "sqlite3" {
            texts.extend(args.iter().filter(|a| !a.is_option()).skip(1).map(|a| a.text.clone()));
        }
        if args.iter().any(|a| a.unknown && a.text.chars().count() > 1 && texts.contains(&a.text)) {
            self.found.add(Flag::ExecShell, "a statement that is put together while it runs");
        }
        match input {
            Input::Text(text) => texts.push(text.clone()),
            Input::Unknown if texts.is_empty() => {
                self.found.add(Flag::ExecShell, "statements that are read while it runs");
            }
            _ => {}
        }
        for text in texts {
            sql::statement(&text, self.found);
            if text.trim_start().starts_with(".shell") || text.trim_start().starts_with(".system") {
                self.found.add(Flag::ExecShell, "a statement that runs a program");
            }
        }
    }
}
