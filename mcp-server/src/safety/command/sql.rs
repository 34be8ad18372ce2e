//! What a statement for a database does, by its words.

use super::Finding;
use crate::safety::Flag;

/// Finds what a text for `mysql`, `psql` and the like does.
pub(super) fn statement(text: &str, found: &mut Finding) {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
        .collect();
    let has = |word: &str| words.contains(&word);
    let pair = |a: &[&str], b: &[&str]| {
        words.windows(2).any(|w| matches!(w, [x, y] if a.contains(x) && b.contains(y)))
    };
    if lower.contains("\\!")
        || lower.contains("\\copy")
        || has("program")
        || has("sys_exec")
        || has("xp_cmdshell")
        || lower.starts_with("system ")
        || lower.contains("outfile")
    {
        found.add(Flag::ExecShell, "a statement that runs a program or writes a file");
    }
    if has("drop")
        || has("truncate")
        || pair(&["delete"], &["from"])
        || has("flushall")
        || has("flushdb")
        || has("dropdatabase")
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
