//! Paths of Windows: the one spelling that the file tools work with, and the
//! many in which a command or a caller can name a file that holds secrets.

use super::paths::could_fit;
use crate::safety::Flag;

/// Longest path, in bytes: what a script of the agent has room for, and four
/// times what most programs of Windows take.
const LONGEST: usize = 1024;

/// Why a path is not taken.
pub type Why = &'static str;

/// Whether a path can only be meant for Windows.
#[must_use]
pub fn is_windows(path: &str) -> bool {
    let bytes = path.as_bytes();
    let drive = bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.get(1) == Some(&b':');
    drive || path.starts_with('\\') || path.starts_with("//") || path.starts_with("/??/")
}

/// The one spelling of a path from a drive on: `C:\a\b`. Either slash, `.` and
/// `..`, and the prefixes `\\?\`, `\\.\` and `\??\` before a drive are folded.
///
/// # Errors
/// Why it names no file on a drive, or would name another one than it says.
pub fn canonical(path: &str) -> Result<String, Why> {
    if path.len() > LONGEST {
        return Err("is longer than 1024 bytes");
    }
    if path.chars().any(char::is_control) {
        return Err("has a control character");
    }
    let path = path.replace('/', "\\");
    let prefix = ["\\\\?\\", "\\\\.\\", "\\??\\"].iter().find_map(|p| path.strip_prefix(p));
    let rest = prefix.unwrap_or(&path);
    let mut chars = rest.chars();
    let (drive, colon) = (chars.next(), chars.next());
    let Some(drive) = drive.filter(|c| c.is_ascii_alphabetic() && colon == Some(':')) else {
        return Err(match path.starts_with("\\\\") || path.starts_with("\\??") {
            true => "is a path of the network or of a device, not of a drive",
            false => "is not absolute: it names no drive",
        });
    };
    let Some(rest) = rest.get(2..).and_then(|rest| rest.strip_prefix('\\')) else {
        return Err("is relative to the directory that its drive happens to be in");
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split('\\') {
        match part {
            "" => {}
            // What Windows folds it takes as a name behind such a prefix.
            "." | ".." if prefix.is_some() => return Err("has `.` or `..` behind a prefix"),
            "." => {}
            ".." => drop(parts.pop()),
            part => {
                good(part)?;
                parts.push(part);
            }
        }
    }
    Ok(format!("{}:\\{}", drive.to_ascii_uppercase(), parts.join("\\")))
}

/// Whether a part of a path is a name that Windows takes as it stands.
fn good(part: &str) -> Result<(), Why> {
    if part.contains(':') {
        return Err("names a stream of a file");
    }
    if part.contains(['"', '<', '>', '|', '*', '?']) {
        return Err("has a character that no name in Windows has");
    }
    if part.ends_with(['.', ' ']) {
        return Err("has a name that ends in a dot or a blank, which Windows drops");
    }
    let stem = part.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let numbered = |base: &str| {
        stem.strip_prefix(base).is_some_and(|n| n.chars().count() == 1 && !n.contains('0'))
    };
    let device = matches!(stem.as_str(), "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
        || (numbered("com") || numbered("lpt"))
            && stem.chars().last().is_some_and(|c| c.is_numeric());
    if device { Err("names a device") } else { Ok(()) }
}

/// Files with secrets, by the last parts of their paths; `*` stands for any
/// characters. A text that is a pattern itself counts where it could fit.
const SECRETS: [(&[&str], &str); 42] = [
    (&["config", "sam"], HASHES),
    (&["config", "security"], HASHES),
    (&["config", "system"], HASHES),
    (&["config", "sam.*"], HASHES),
    (&["config", "security.*"], HASHES),
    (&["config", "system.*"], HASHES),
    (&["regback", "sam*"], HASHES),
    (&["regback", "security*"], HASHES),
    (&["regback", "system*"], HASHES),
    (&["repair", "sam*"], HASHES),
    (&["repair", "security*"], HASHES),
    (&["repair", "system*"], HASHES),
    (&["ntds.dit"], HASHES),
    (&["unattend.xml"], ANSWERS),
    (&["unattend.txt"], ANSWERS),
    (&["unattended.xml"], ANSWERS),
    (&["unattend-original.xml"], ANSWERS),
    (&["autounattend.xml"], ANSWERS),
    (&["sysprep", "sysprep.*"], ANSWERS),
    (&["panther", "*unattend*.xml"], ANSWERS),
    (&["ssh", "ssh_host_*_key"], "the private key of the SSH server"),
    (&[".ssh", "id_*"], SSH),
    (&[".ssh", "*.pem"], SSH),
    (&[".ssh", "*.key"], SSH),
    (&["users", "*", ".ssh"], "the directory of private SSH keys"),
    (&["consolehost_history.txt"], "a history of commands"),
    (&["psreadline", "*_history.txt"], "a history of commands"),
    (&["preferences", "groups", "groups.xml"], STORED),
    (&["user data", "*", "login data"], STORED),
    (&["profiles", "*", "logins.json"], STORED),
    (&["profiles", "*", "key4.db"], STORED),
    (&[".aws", "credentials"], STORED),
    (&[".docker", "config.json"], STORED),
    (&[".kube", "config"], STORED),
    (&[".git-credentials"], STORED),
    (&["_netrc"], STORED),
    (&[".netrc"], STORED),
    (&["postgresql", "pgpass.conf"], STORED),
    (&["hiberfil.sys"], MEMORY),
    (&["pagefile.sys"], MEMORY),
    (&["lsass*.dmp"], MEMORY),
    (&["windows", "memory.dmp"], MEMORY),
];

/// Directories with secrets, as they stand anywhere in a path.
const STORES: [(&[&str], &str); 8] = [
    (&["microsoft", "protect"], DPAPI),
    (&["microsoft", "credentials"], DPAPI),
    (&["microsoft", "vault"], DPAPI),
    (&["microsoft", "crypto", "rsa"], DPAPI),
    (&["microsoft", "crypto", "dss"], DPAPI),
    (&["microsoft", "crypto", "keys"], DPAPI),
    (&["microsoft", "crypto", "systemkeys"], DPAPI),
    (&["microsoft", "ngc"], DPAPI),
];

const HASHES: &str = "password hashes of Windows";
const ANSWERS: &str = "an answer file of the setup, which can hold passwords";
const SSH: &str = "a private SSH key";
const STORED: &str = "stored credentials";
const MEMORY: &str = "memory of the system, with what it knows";
const DPAPI: &str = "keys and credentials that Windows keeps";

/// Why a path of Windows names secrets, where it does. The prefix does not
/// matter: a drive, a device, a share or a shadow copy lead to the same files.
#[must_use]
pub fn secret(path: &str) -> Option<&'static str> {
    let parts = parts(path);
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let ends = |rule: &[&str]| {
        let from = parts.len().checked_sub(rule.len());
        from.and_then(|from| parts.get(from..)).is_some_and(|tail| fits(tail, rule))
    };
    let named = SECRETS.iter().find(|(rule, _)| ends(rule)).map(|(_, why)| *why);
    let public = parts.last().is_some_and(|name| name.ends_with(".pub"));
    let stored = STORES.iter().find(|(rule, _)| parts.windows(rule.len()).any(|w| fits(w, rule)));
    named.filter(|_| !public).or(stored.map(|(_, why)| *why)).or_else(|| key(parts.last()?))
}

/// A file that usually holds a private key, by its name.
fn key(name: &str) -> Option<&'static str> {
    let (stem, kind) = name.rsplit_once('.')?;
    let public = ["fullchain", "chain", "cert", "ca", "cacert", "ca-bundle", "ca-cert", "dhparam"];
    let private = match kind {
        "key" | "p12" | "pfx" | "ppk" | "keytab" | "kdbx" => true,
        "pem" => !public.contains(&stem.trim_end_matches(|c: char| c.is_ascii_digit())),
        _ => false,
    };
    (private && !stem.contains('*')).then_some("a file that usually holds a private key")
}

/// The categories of writing a path of Windows.
#[must_use]
pub fn written(path: &str) -> Vec<Flag> {
    let parts = parts(path);
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
        return Vec::new();
    };
    let keys = ["authorized_keys", "administrators_authorized_keys"];
    if keys.iter().any(|name| part_fits(last, name))
        && parts.iter().any(|p| part_fits(p, ".ssh") || part_fits(p, "ssh"))
    {
        return vec![Flag::ExecUsers];
    }
    let system = [
        "windows",
        "program files",
        "program files (x86)",
        "programdata",
        "boot",
        "efi",
        "recovery",
        "system volume information",
        "bootmgr",
        "boot.ini",
        "pagefile.sys",
        "hiberfil.sys",
        "autoexec.bat",
    ];
    // What runs at the next logon, or in the next shell.
    let begun: [&[&str]; 4] = [
        &["start menu", "programs", "startup"],
        &["windowspowershell", "*profile.ps1"],
        &["powershell", "*profile.ps1"],
        &["ntuser.dat"],
    ];
    let begins = begun.iter().any(|rule| parts.windows(rule.len()).any(|w| fits(w, rule)));
    if begins || system.iter().any(|name| part_fits(first, name)) {
        return vec![Flag::ExecSystemFiles];
    }
    Vec::new()
}

/// The parts of a path below its drive, as Windows compares them: in lower
/// case, without a stream, and without the dots and blanks that it drops.
fn parts(path: &str) -> Vec<String> {
    let path = path.replace('\\', "/").to_ascii_lowercase();
    let mut parts: Vec<String> = Vec::new();
    for part in path.split('/') {
        // A drive, also one that a name follows at once.
        let part = match part.as_bytes() {
            [letter, b':', ..] if parts.is_empty() && letter.is_ascii_alphabetic() => {
                part.get(2..).unwrap_or_default()
            }
            _ => part,
        };
        let part = part.split(':').next().unwrap_or_default();
        if part.trim_end() == ".." {
            parts.pop();
            continue;
        }
        let part = part.trim_end_matches(['.', ' ']);
        // What begins a path below a prefix or in a variable is its root.
        let root = matches!(part, "?" | "??" | "globalroot" | "device" | "global" | "unc")
            || part.starts_with("harddiskvolume")
            || part.starts_with("volume{")
            || part.len() == 2 && part.ends_with('$');
        if root {
            parts.clear();
        } else if !part.is_empty() {
            parts.push(part.to_owned());
        }
    }
    parts
}

/// Whether the parts fit a rule one by one. What is nothing but a pattern fits
/// everywhere, so the first of them has to be more than that.
fn fits(parts: &[&str], rule: &[&str]) -> bool {
    let says = |part: &&str| {
        let stem = part.rsplit_once('.').map_or(*part, |(stem, kind)| {
            // Behind a leading dot is the name itself.
            if stem.is_empty() { kind } else { stem }
        });
        stem.chars().any(char::is_alphanumeric)
    };
    parts.len() == rule.len()
        && parts.first().is_some_and(says)
        && parts.iter().zip(rule).all(|(part, rule)| part_fits(part, rule))
}

fn part_fits(part: &str, rule: &str) -> bool {
    could_fit(rule, part)
        || is_short(part, rule)
        || part.contains(['*', '?', '[']) && meets(part, rule)
}

/// Whether a pattern can fit a name for which a rule may be a pattern too.
fn meets(pattern: &str, rule: &str) -> bool {
    // A rule's own pattern stands for some name; the shortest will do.
    could_fit(pattern, rule) || could_fit(pattern, &rule.replace('*', "x"))
}

/// Whether a part is the short name, as of DOS, that Windows gives to a name
/// like this: `CONSOL~1.TXT`, or with a hash once there are many of them.
fn is_short(part: &str, rule: &str) -> bool {
    let (stem, kind) = part.rsplit_once('.').unwrap_or((part, ""));
    let Some((start, number)) = stem.rsplit_once('~') else { return false };
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit() || b == b'?' || b == b'*') {
        return false;
    }
    let rule = rule.trim_start_matches('.');
    let (long, long_kind) = rule.rsplit_once('.').unwrap_or((rule, ""));
    let plain = |text: &str| -> String {
        let kept = text.chars().filter(|c| !matches!(c, ' ' | '.'));
        kept.map(|c| if "+,;=[]".contains(c) { '_' } else { c }).collect()
    };
    let (long, long_kind) = (plain(long), plain(long_kind));
    let kind_fits =
        long_kind.contains('*') || kind == long_kind.chars().take(3).collect::<String>();
    let begin = |count: usize| long.chars().take(count).collect::<String>();
    let six = could_fit(&begin(6), start);
    let hashed = start.chars().count() == 6
        && start.chars().skip(2).all(|c| c.is_ascii_hexdigit())
        && could_fit(&begin(2), &start.chars().take(2).collect::<String>());
    kind_fits && (six || hashed)
}

#[cfg(test)]
#[path = "winpaths_tests.rs"]
mod tests;
