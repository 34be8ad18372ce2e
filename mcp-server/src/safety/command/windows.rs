//! Texts for the shells of Windows.

use super::{Finding, paths, words::Arg};
use crate::safety::Flag;

/// Programs that only Windows has, and what those of them are that run what they are given.
const PROGRAMS: [&str; 14] = [
    "wmic", "vssadmin", "wbadmin", "msiexec", "netsh", "schtasks", "bcdedit", "diskpart",
    "taskkill", "wevtutil", "fsutil", "reg", "net", "sc",
];
const RUNNERS: [&str; 12] = [
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
    let only_there =
        PROGRAMS.contains(&bare) || RUNNERS.contains(&bare) && !matches!(bare, "bash" | "pwsh");
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
        words(&whole.join(" "), found);
    }
    true
}

/// A text for `cmd` or PowerShell: it is not parsed, so it is code that cannot
/// be looked into; what is plainly named in it is found all the same.
pub(super) fn text(text: &str, found: &mut Finding) {
    found.add(Flag::ExecShell, "a text for cmd or PowerShell");
    words(text, found);
}

/// What is plainly named in a text.
fn words(text: &str, found: &mut Finding) {
    let lower = text.to_ascii_lowercase();
    for piece in lower.split(|c: char| c.is_whitespace() || "\"';,()".contains(c)) {
        if paths::secret_path(piece, None).is_some() {
            found.secret = Some(piece.to_owned());
        }
    }
    let words: Vec<&str> =
        lower.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.')).collect();
    let has = |names: &[&str]| words.iter().any(|w| names.contains(&w.trim_end_matches(".exe")));
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
