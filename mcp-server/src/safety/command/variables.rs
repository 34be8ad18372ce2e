//! Variables of the environment that decide which program is run.

use super::run::is_standard;

/// Variables that name code or options for a program that is not named in the command.
const CODE: [&str; 40] = [
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "PERLLIB",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_OPTIONS",
    "NODE_PATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "GCONV_PATH",
    "GIT_CONFIG",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_EXTERNAL_DIFF",
    "TAR_OPTIONS",
    "MAKEFLAGS",
    "LESSOPEN",
    "LESSCLOSE",
    "ZDOTDIR",
    "FPATH",
    "GREP_OPTIONS",
    "BORG_PASSCOMMAND",
    "OPENSSL_CONF",
    "RSYNC_CONNECT_PROG",
    "CURL_HOME",
    "PSQLRC",
    "APT_CONFIG",
];
/// Programs that a variable may name without harm.
const SHOWING: [&str; 6] = ["cat", "less", "more", "most", "bat", "true"];
const EDITING: [&str; 11] =
    ["vi", "vim", "nvim", "nano", "emacs", "ed", "joe", "micro", "mcedit", "view", "vim.basic"];

/// Whether a variable with this value decides what is run; `None` is a value
/// that cannot be known.
pub(super) fn decides(name: &str, value: Option<&str>) -> bool {
    if value == Some("") && name != "PATH" {
        return false;
    }
    if name == "PATH" {
        // What is not known is most often the former path.
        return value.is_some_and(|v| v.split(':').any(|dir| !is_standard(dir)));
    }
    if name == "LESS" {
        return value.is_none_or(|v| v.contains(['+', '!']));
    }
    if name == "PS4" {
        return value.is_none_or(|v| v.contains("$(") || v.contains('`'));
    }
    if name == "SHELL" {
        return value.is_none_or(|v| v.rsplit_once('/').is_none_or(|(dir, _)| !is_standard(dir)));
    }
    if name.starts_with("LD_")
        || name.starts_with("DYLD_")
        || name.starts_with("BASH_FUNC_")
        || name.starts_with("GIT_CONFIG_")
        || CODE.contains(&name)
    {
        return true;
    }
    let ends = |ends: &[&str]| ends.iter().any(|e| name.ends_with(e));
    if ends(&["_RSH", "GIT_SSH", "_SSH_COMMAND"]) {
        return !value.is_some_and(harmless_ssh);
    }
    if ends(&["PAGER", "EDITOR"]) || matches!(name, "VISUAL" | "BROWSER" | "FCEDIT") {
        return !value.is_some_and(harmless);
    }
    ends(&["_COMMAND", "_ASKPASS"])
}

/// Whether a text for a shell runs nothing but a plain pager or editor.
pub(super) fn harmless(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let Some(program) = words.next() else { return true };
    let Some(name) = bare(program) else { return false };
    let mut options = words;
    let letters = |o: &str| {
        o.strip_prefix('-').is_some_and(|o| o.chars().all(|c| c.is_ascii_alphabetic() || c == '-'))
    };
    (SHOWING.contains(&name) || EDITING.contains(&name))
        // An editor's options can run what they say.
        && if SHOWING.contains(&name) { options.all(letters) } else { options.next().is_none() }
}

/// Whether a text for a shell runs `ssh` with nothing in it that runs another program.
pub(super) fn harmless_ssh(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let runs = ["command", "pkcs11", "provider", "match", "include"];
    let signs = [';', '|', '&', '$', '`', '<', '>', '(', '\n', '\u{fffd}'];
    let mut words = text.split_whitespace();
    words.next().and_then(bare) == Some("ssh")
        && !text.contains(signs)
        // Another configuration can name any program.
        && !words.any(|w| w.starts_with("-F"))
        && !runs.iter().any(|r| lower.contains(r))
}

/// The name of a program in one of the directories of the system.
fn bare(program: &str) -> Option<&str> {
    match program.rsplit_once('/') {
        Some((dir, name)) => is_standard(dir).then_some(name),
        None => Some(program),
    }
}
