//! Texts for the shells of Windows.

use super::{Finding, paths};
use crate::safety::Flag;

/// A text for `cmd` or PowerShell: it is not parsed, so it is code that cannot
/// be looked into; what is plainly named in it is found all the same.
pub(super) fn text(text: &str, found: &mut Finding) {
    found.add(Flag::ExecShell, "a text for cmd or PowerShell");
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
    ]) {
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
