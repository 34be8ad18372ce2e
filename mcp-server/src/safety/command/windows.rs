//! Texts for the shells of Windows.

use super::{Finding, winpaths, words::Arg};
use crate::safety::Flag;

/// Programs that only Windows has, and what those of them are that run what they are given.
const PROGRAMS: [&str; 14] = [
    "wmic", "vssadmin", "wbadmin", "msiexec", "netsh", "schtasks", "bcdedit", "diskpart",
    "taskkill", "wevtutil", "fsutil", "reg", "net", "sc",
];
const RUNNERS: [&str; 18] = [
    "cmd",
    "powershell",
    "pwsh",
    "wscript",
    "cscript",
    "mshta",
    "rundll32",
    "regsvr32",
    "wmic",
    "schtasks",
    "forfiles",
    "bash",
    "msbuild",
    "wsl",
    "at",
    "psexec",
    "runas",
    "start",
];
/// Words by which those only look.
const LOOKS: [&str; 13] = [
    "query",
    "queryex",
    "qc",
    "/query",
    "list",
    "get",
    "view",
    "show",
    "statistics",
    "/?",
    "export",
    "el",
    "gl",
];

/// A program of Windows with its arguments; answers whether this is one.
pub(super) fn argv(path: &str, args: &[Arg], found: &mut Finding) -> bool {
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit(['\\', '/']).next().unwrap_or_default();
    let ends = [".exe", ".com", ".bat", ".cmd", ".ps1", ".vbs", ".msi"];
    let bare = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let ended = bare.len() < name.len();
    let only_there = PROGRAMS.contains(&bare)
        || RUNNERS.contains(&bare) && !matches!(bare, "bash" | "pwsh" | "at" | "start" | "wsl");
    if !(ended || path.contains('\\') || only_there) {
        return false;
    }
    // Samba has a `net` of its own.
    let second = args.first().map_or("", |a| a.text.as_str());
    let samba = bare == "net"
        && !ended
        && matches!(second, "ads" | "rpc" | "rap" | "conf" | "cache" | "join");
    if samba || bare == "reg" && !ended && second.starts_with('-') {
        return false;
    }
    let whole: Vec<&str> =
        std::iter::once(bare).chain(args.iter().map(|a| a.text.as_str())).collect();
    let script = ended && !name.ends_with(".exe") && !name.ends_with(".msi");
    let asks = args.first().is_some_and(|a| LOOKS.contains(&a.text.to_ascii_lowercase().as_str()));
    if script || RUNNERS.contains(&bare) && !(asks && bare == "schtasks") {
        found.add(Flag::ExecShell, &format!("{bare} runs what it is given"));
    }
    if !(asks && PROGRAMS.contains(&bare)) {
        named(&whole.join(" "), None, found);
    }
    true
}

/// A text for `cmd` or PowerShell: it is not parsed, so it is code that cannot
/// be looked into; what is plainly named in it is found all the same.
pub(super) fn text(text: &str, cwd: Option<&str>, stdin: Option<&[u8]>, found: &mut Finding) {
    found.add(Flag::ExecShell, "a text for cmd or PowerShell");
    named(text, cwd, found);
    given(text, cwd, stdin, found);
}

/// What a shell that the command starts is given as its input.
fn given(text: &str, cwd: Option<&str>, stdin: Option<&[u8]>, found: &mut Finding) {
    let Some(stdin) = stdin else { return };
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !(c.is_ascii_alphanumeric() || "-$".contains(c)));
    let shells = ["cmd", "powershell", "pwsh", "iex", "invoke-expression", "$input"];
    if words.any(|word| shells.contains(&word)) {
        named(&String::from_utf8_lossy(stdin), cwd, found);
    }
}

/// A program with its arguments in Windows: what is plainly named in it, and
/// code where the program is one that runs some.
#[must_use]
pub fn list(argv: &[String], cwd: Option<&str>, stdin: Option<&[u8]>) -> Finding {
    let mut found = Finding::default();
    let program = argv.first().map(|p| p.to_ascii_lowercase()).unwrap_or_default();
    let program = program.rsplit(['\\', '/']).next().unwrap_or_default();
    if RUNNERS.contains(&program.trim_end_matches(".exe").trim_end_matches([' ', '.']))
        || [".cmd", ".bat", ".ps1", ".vbs", ".js"].iter().any(|kind| program.ends_with(kind))
    {
        found.add(Flag::ExecShell, "it runs what it is given");
    }
    // An argument is a path as a whole, whatever stands in it.
    if let Some(path) = argv.iter().find(|arg| is_secret(arg, cwd)) {
        found.secret = Some(path.clone());
    }
    let whole = argv.join(" ");
    named(&whole, cwd, &mut found);
    given(&whole, cwd, stdin, &mut found);
    found
}

/// Whether a word names a file with secrets, also from the directory where it is run.
fn is_secret(word: &str, cwd: Option<&str>) -> bool {
    // An option that carries a path: /from:C:\x, -Path:C:\x, --file=C:\x.
    let value = word.split_once(['=', ':']).map(|(_, value)| value);
    let all = [Some(word), value.filter(|v| v.len() > 1)];
    all.into_iter().flatten().any(|path| {
        let below = cwd.map(|cwd| format!("{cwd}\\{path}"));
        path.len() > 2
            && (winpaths::secret(path).is_some()
                || below.is_some_and(|path| winpaths::secret(&path).is_some()))
    })
}

/// Copies of a hive, which hold what its file does.
fn copies_hive(words: &[&str]) -> bool {
    let hive = |word: &&str| {
        let word = word.replace(['/', ':'], "\\");
        let rest = ["hklm\\", "hkey_local_machine\\", "registry\\", "hklm\\\\"]
            .iter()
            .find_map(|root| word.strip_prefix(root))
            .map(|rest| rest.trim_matches('\\'));
        rest.is_some_and(|rest| {
            ["sam", "security"].iter().any(|h| {
                rest.strip_prefix(h).is_some_and(|more| more.is_empty() || more.starts_with('\\'))
            }) || rest == "system"
        })
    };
    words.iter().any(|word| {
        matches!(
            *word,
            "save"
                | "export"
                | "reg"
                | "reg.exe"
                | "get-itemproperty"
                | "gp"
                | "gci"
                | "get-childitem"
                | "query"
        )
    }) && words.iter().any(hive)
}

/// What is plainly named in a text.
fn named(text: &str, cwd: Option<&str>, found: &mut Finding) {
    let lower = text.to_ascii_lowercase();
    // Words as they stand, those in quotes whole, and with what cmd and PowerShell take away.
    let bare = lower.replace(['"', '\'', '^', '`'], "");
    let ends = |c: char| "\"'".contains(c) || "|&<>();,".contains(c);
    let word = |c: char| c.is_whitespace() || ends(c);
    let loose = |c: char| c.is_whitespace() || "|&<>();,@{}".contains(c);
    let mut pieces = lower.split(word).chain(lower.split(ends)).chain(bare.split(loose));
    if let Some(piece) = pieces.find(|piece| is_secret(piece.trim(), cwd)) {
        found.secret.get_or_insert_with(|| piece.trim().to_owned());
    }
    let plain: Vec<&str> = bare.split(loose).filter(|w| !w.is_empty()).collect();
    if copies_hive(&plain) {
        found.secret.get_or_insert_with(|| "a registry hive with password hashes".to_owned());
    }
    let words: Vec<&str> =
        lower.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.')).collect();
    let plain = |word: &str| -> String {
        let kinds = [".exe", ".com", ".cmd", ".bat"];
        kinds.iter().find_map(|kind| word.strip_suffix(kind)).unwrap_or(word).to_owned()
    };
    let has = |names: &[&str]| words.iter().any(|w| names.contains(&plain(w).as_str()));
    let net = |what: &[&str]| {
        words.windows(2).any(
            |w| matches!(w, [n, v] if matches!(*n, "net" | "net.exe" | "net1") && what.contains(v)),
        )
    };
    if has(&["stop-computer", "restart-computer", "shutdown", "psshutdown"]) {
        found.add(Flag::ExecPower, "shuts down or restarts");
    }
    if has(&[
        "remove-item",
        "del",
        "erase",
        "rd",
        "rmdir",
        "ri",
        "rm",
        "clear-content",
        "cipher",
        "clear-recyclebin",
    ]) || has(&["vssadmin", "wbadmin", "shadowcopy", "wevtutil", "fsutil"])
        && has(&["delete", "cl", "clear-log", "deletejournal"])
    {
        found.add(Flag::ExecDelete, "deletes files");
    }
    if has(&[
        "stop-service",
        "start-service",
        "restart-service",
        "set-service",
        "new-service",
        "remove-service",
        "suspend-service",
        "sc",
        "taskkill",
        "stop-process",
    ]) || net(&["stop", "start"])
    {
        found.add(Flag::ExecServices, "starts or stops services");
    }
    if has(&[
        "new-localuser",
        "set-localuser",
        "remove-localuser",
        "add-localgroupmember",
        "remove-localgroupmember",
        "disable-localuser",
        "enable-localuser",
        "new-aduser",
        "set-adaccountpassword",
    ]) || net(&["user", "localgroup", "accounts"])
    {
        found.add(Flag::ExecUsers, "changes accounts");
    }
    if has(&[
        "format",
        "diskpart",
        "format-volume",
        "clear-disk",
        "initialize-disk",
        "new-partition",
        "remove-partition",
        "resize-partition",
        "set-disk",
        "chkdsk",
    ]) {
        found.add(Flag::ExecDisks, "changes disks");
    }
    if has(&[
        "netsh",
        "new-netipaddress",
        "set-netipaddress",
        "remove-netipaddress",
        "disable-netadapter",
        "enable-netadapter",
        "new-netfirewallrule",
        "set-netfirewallrule",
        "set-netfirewallprofile",
        "set-dnsclientserveraddress",
        "remove-netroute",
        "new-netroute",
    ]) {
        found.add(Flag::ExecNetwork, "changes the network");
    }
    if has(&[
        "install-package",
        "uninstall-package",
        "msiexec",
        "winget",
        "choco",
        "install-windowsfeature",
        "add-windowsfeature",
        "remove-windowsfeature",
        "install-module",
        "dism",
        "wusa",
    ]) {
        found.add(Flag::ExecPackages, "installs or removes software");
    }
    if has(&[
        "reg",
        "set-itemproperty",
        "new-itemproperty",
        "remove-itemproperty",
        "bcdedit",
        "takeown",
        "icacls",
    ]) {
        found.add(Flag::ExecSystemFiles, "changes the registry or system files");
    }
}
