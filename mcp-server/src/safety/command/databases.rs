//! Clients of databases.

use super::{
    sql,
    walk::{Input, Walk},
    words::Arg,
    wrappers::after_options,
};
use crate::safety::Flag;

impl Walk<'_> {
    pub(super) fn redis(&mut self, args: &[Arg], input: &Input) {
        let mut words: Vec<String> = args.iter().map(|a| a.text.to_ascii_uppercase()).collect();
        let streams = ["--LATENCY", "--SCAN", "--STAT", "--BIGKEYS", "--MEMKEYS", "--HOTKEYS"];
        match input {
            Input::Text(text) => {
                words.extend(text.split_whitespace().map(str::to_ascii_uppercase));
            }
            Input::Unknown
                if args.iter().all(Arg::is_option)
                    && !words.iter().any(|w| streams.iter().any(|s| w.starts_with(s))) =>
            {
                self.found.add(Flag::ExecShell, "commands that are read while it runs");
            }
            _ => {}
        }
        let has = |names: &[&str]| words.iter().any(|w| names.contains(&w.as_str()));
        if has(&["FLUSHALL", "FLUSHDB", "DEL", "UNLINK"]) {
            self.found.add(Flag::ExecDelete, "redis-cli deletes keys");
        }
        if has(&["SHUTDOWN", "FAILOVER", "REPLICAOF", "SLAVEOF"]) {
            self.found.add(Flag::ExecServices, "redis-cli changes the service");
        }
        if has(&["ACL"]) && has(&["SETUSER", "DELUSER"]) {
            self.found.add(Flag::ExecUsers, "redis-cli changes accounts");
        }
        if has(&["EVAL", "EVALSHA", "FCALL", "MODULE", "--EVAL", "--PIPE"])
            || has(&["CONFIG"]) && has(&["SET"])
        {
            self.found.add(Flag::ExecShell, "redis-cli runs code or changes where it writes");
        }
    }

    pub(super) fn mysqladmin(&mut self, args: &[Arg]) {
        let long = ["user", "host", "port", "socket", "sleep", "count"];
        let at = after_options(args, "uhPSic", &long);
        let verb = args.get(at).map_or("", |a| a.text.as_str());
        let flag = match verb {
            "" | "status" | "ping" | "version" | "processlist" | "variables"
            | "extended-status" | "create" | "debug" => return,
            "drop" => Flag::ExecDelete,
            "password" | "old-password" => Flag::ExecUsers,
            _ => Flag::ExecServices,
        };
        self.found.add(flag, &format!("mysqladmin {verb}"));
    }

    pub(super) fn database(&mut self, name: &str, args: &[Arg], input: &Input) {
        let mut texts: Vec<String> = Vec::new();
        let mongo = name.starts_with("mongo");
        if mongo && args.iter().any(|a| a.text.ends_with(".js"))
            || args.iter().any(|a| a.text.starts_with("--pager=") || a.text == "-init")
        {
            self.found.add(Flag::ExecShell, &format!("{name} runs other code"));
        }
        for (at, arg) in args.iter().enumerate() {
            let next = args.get(at + 1).map(|a| a.text.clone());
            match arg.text.as_str() {
                "-e" | "-c" | "-cmd" | "--cmd" | "--execute" | "--command" | "--eval"
                | "--query" | "-q" => texts.extend(next),
                text if matches!(name, "psql" | "cqlsh")
                    && (text.starts_with("-f") || text.starts_with("--file")) =>
                {
                    self.found.add(Flag::ExecShell, "statements from a file");
                }
                // A cluster of letters of which the last takes the statement: -Ne TEXT, -Atc TEXT.
                text if ends_cluster(name, text) => texts.extend(next),
                text => {
                    let glued = ["--execute=", "--command=", "--eval=", "--query="]
                        .iter()
                        .find_map(|p| text.strip_prefix(p))
                        .or_else(|| {
                            text.strip_prefix("-e").filter(|t| !t.is_empty() && name != "psql")
                        })
                        .or_else(|| {
                            text.strip_prefix("-c").filter(|t| !t.is_empty() && name == "psql")
                        })
                        .or_else(|| in_cluster(name, text));
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
            if mongo {
                sql::script(&text, self.found);
                continue;
            }
            sql::statement(&text, self.found);
            // Commands of sqlite3 that write a file.
            for line in text.lines() {
                let mut words = line.split_whitespace();
                let command = words.next().unwrap_or_default();
                if matches!(command, ".output" | ".once" | ".backup" | ".save" | ".clone" | ".log")
                    && let Some(path) = words.last()
                {
                    self.writes(&Arg::literal(path.trim_matches(['\'', '"'])));
                }
            }
        }
    }
}

/// The letter that takes a statement.
fn letter(name: &str) -> Option<char> {
    match name {
        "psql" => Some('c'),
        "mysql" | "mariadb" | "cqlsh" => Some('e'),
        _ => None,
    }
}

/// Letters of a cluster that take no value, before the one of the statement.
fn before(name: &str, text: &str) -> Option<usize> {
    let letter = letter(name)?;
    let cluster = text.strip_prefix('-').filter(|t| !t.starts_with('-'))?;
    let at = cluster.find(letter)?;
    let head = cluster.get(..at)?;
    let switches = if name == "psql" { "AtXqxazbneEsSw1" } else { "NBsrtvEqfHXCANLnb" };
    (at > 0 && head.chars().all(|c| switches.contains(c))).then_some(at + 1)
}

fn ends_cluster(name: &str, text: &str) -> bool {
    before(name, text).is_some_and(|at| text.len() == at + 1)
}

fn in_cluster<'t>(name: &str, text: &'t str) -> Option<&'t str> {
    before(name, text).and_then(|at| text.get(at + 1..)).filter(|rest| !rest.is_empty())
}
