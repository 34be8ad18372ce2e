//! What a statement for a database does, by its words.

use super::Finding;
use crate::safety::Flag;

/// Finds what a text for `mysql`, `psql` and the like does.
pub(super) fn statement(text: &str, found: &mut Finding) {
    let lower = text.to_ascii_lowercase();
    for line in lower.lines().flat_map(|l| l.split(';')) {
        if runs_program(line.trim()) {
            found.add(Flag::ExecShell, "a statement that runs a program or reads others");
        }
    }
    if lower.contains("\\!") || lower.contains("\\copy") {
        found.add(Flag::ExecShell, "a statement that runs a program or writes a file");
    }
    let plain = without_strings(&lower).unwrap_or(lower);
    for one in plain.split(';') {
        single(one, found);
    }
}

/// Commands of the clients themselves.
fn runs_program(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    let piped = |names: &[&str]| names.contains(&first) && line.contains('|');
    matches!(
        first,
        "system"
            | "source"
            | "pager"
            | "edit"
            | "tee"
            | "\\."
            | "\\i"
            | "\\ir"
            | "\\include"
            | "\\include_relative"
            | "\\e"
            | "\\edit"
            | "\\ef"
            | "\\ev"
            | "\\p"
            | "\\t"
            | "\\gexec"
            | "\\setenv"
            | ".shell"
            | ".system"
            | ".load"
            | ".read"
            | ".sh"
            | ".sy"
            | ".excel"
            | ".www"
            | "\\w"
            | "\\write"
    ) && !(matches!(first, "\\p" | "\\t") && line.split_whitespace().count() < 2)
        || piped(&["\\o", "\\out", "\\g", "\\gx", ".import", ".output", ".once", "\\w"])
}

fn single(statement: &str, found: &mut Finding) {
    let words: Vec<&str> = statement
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
        .collect();
    let has = |word: &str| words.contains(&word);
    let pair = |a: &[&str], b: &[&str]| {
        words.windows(2).any(|w| matches!(w, [x, y] if a.contains(x) && b.contains(y)))
    };
    let first = words.first().copied().unwrap_or_default();
    let calls = [
        "pg_read_file",
        "pg_read_binary_file",
        "pg_write_file",
        "lo_export",
        "lo_import",
        "sys_exec",
        "sys_eval",
        "xp_cmdshell",
        "load_extension",
        "dblink_exec",
        "writefile",
        "edit",
    ];
    if calls.iter().any(|c| has(c))
        || has("outfile")
        || has("dumpfile")
        || first == "copy" && has("program")
        || words.iter().any(|w| w.starts_with("plpy") || w.starts_with("plperl") || *w == "plsh")
    {
        found.add(Flag::ExecShell, "a statement that runs a program or writes a file");
    }
    if has("pg_terminate_backend") || has("pg_cancel_backend") || has("pg_reload_conf") {
        found.add(Flag::ExecServices, "a statement that ends connections");
    }
    if matches!(first, "shutdown" | "kill")
        || pair(&["stop", "start"], &["slave", "replica", "group_replication"])
    {
        found.add(Flag::ExecServices, "a statement that stops a service");
    }
    if pair(&["reset"], &["master", "slave", "replica", "binary"])
        || pair(&["purge"], &["binary", "master"])
    {
        found.add(Flag::ExecDelete, "a statement that deletes logs");
    }
    if matches!(first, "select" | "show" | "describe" | "desc" | "values" | "pragma" | "table") {
        return;
    }
    // A function of that name cuts numbers.
    let empties = statement.match_indices("truncate").any(|(at, word)| {
        let rest = statement.get(at + word.len()..).unwrap_or_default();
        !rest.trim_start().starts_with('(')
    });
    if has("drop")
        || has("truncate") && empties
        || pair(&["delete"], &["from"])
        || first == "delete"
    {
        found.add(Flag::ExecDelete, "a statement that deletes data");
    }
    if pair(&["create", "alter", "drop", "rename"], &["user", "role"])
        || has("grant")
        || has("revoke")
        || pair(&["set"], &["password"])
    {
        found.add(Flag::ExecUsers, "a statement about accounts or rights");
    }
}

/// The text without what stands in quotes; `None` where the dialects differ about where that ends,
/// or where a string may be run.
fn without_strings(text: &str) -> Option<String> {
    let runs = ["prepare", "execute", "immediate", "$$", "\\'", "\\\"", "/*!", "--", "#", "/*"];
    if runs.iter().any(|sign| text.contains(sign)) {
        return None;
    }
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if matches!(c, '\'' | '"' | '`') {
            loop {
                match chars.next() {
                    None => return None,
                    Some(end) if end == c => break,
                    Some(_) => {}
                }
            }
            plain.push_str(" '' ");
        } else {
            plain.push(c);
        }
    }
    Some(plain)
}

/// Finds what a text for MongoDB's shell does.
pub(super) fn script(text: &str, found: &mut Finding) {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let has = |names: &[&str]| words.iter().any(|w| names.contains(w));
    if has(&[
        "load",
        "run",
        "runprogram",
        "require",
        "child_process",
        "eval",
        "process",
        "function",
    ]) {
        found.add(Flag::ExecShell, "a script that runs other code");
    }
    if has(&[
        "drop",
        "dropdatabase",
        "dropcollection",
        "dropindex",
        "dropindexes",
        "deletemany",
        "deleteone",
        "remove",
        "findoneanddelete",
        "bulkwrite",
    ]) {
        found.add(Flag::ExecDelete, "a script that deletes data");
    }
    if has(&["shutdownserver", "shutdown", "stepdown"]) {
        found.add(Flag::ExecServices, "a script that stops the server");
    }
    if words.iter().any(|w| {
        ["createuser", "dropuser", "updateuser", "changeuserpassword", "grantrole", "revokerole"]
            .iter()
            .any(|name| w.starts_with(name))
    }) {
        found.add(Flag::ExecUsers, "a script about accounts");
    }
}
