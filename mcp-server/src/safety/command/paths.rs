//! Files of a guest that hold secrets, and files that the system stands on.

use super::{secrets::named, winpaths, words::UNKNOWN};
use crate::safety::Flag;

/// Secrets in their usual places: what a pattern is held against.
pub(super) const SAMPLES: [&str; 24] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/root/.ssh/id_rsa",
    "/root/.ssh/id_ed25519",
    "/root/.ssh/id_ecdsa",
    "/home/user/.ssh/id_rsa",
    "/home/user/.ssh/id_ed25519",
    "/root/.bash_history",
    "/home/user/.bash_history",
    "/root/.zsh_history",
    "/proc/1/environ",
    "/proc/self/environ",
    "/var/lib/cloud/instance/user-data.txt",
    "/var/lib/cloud/instances/i-1/user-data.txt",
    "/run/cloud-init/instance-data-sensitive.json",
    "/etc/ssl/private/server.key",
    "/etc/ssl/private/server.pem",
    "/etc/letsencrypt/live/site/privkey.pem",
    "/etc/letsencrypt/archive/site/privkey1.pem",
];

/// Most stars or braces of a pattern that is held against a name.
const MOST_MARKS: usize = 5;

/// Folds `//`, `.` and `..`, and the ways round to the root.
#[must_use]
pub fn folded(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
        // /proc/PID/root is the root, and so most often is /proc/PID/cwd.
        match parts.as_slice() {
            ["proc", _, "root" | "cwd"] | ["proc", _, "task", _, "root" | "cwd"] => parts.clear(),
            _ => {}
        }
    }
    format!("/{}", parts.join("/"))
}

/// Why a path names secrets, where it does. `cwd` is for relative paths;
/// patterns that could name a secret count.
#[must_use]
pub fn secret_path(path: &str, cwd: Option<&str>) -> Option<&'static str> {
    if winpaths::is_windows(path) {
        let found = winpaths::secret(path);
        // With a slash in it, it can be meant for either system.
        if found.is_some() || !path.contains('/') {
            return found;
        }
    }
    let path = match path.strip_prefix("~/") {
        Some(rest) => format!("/root/{rest}"),
        None if path.starts_with('/') => path.to_owned(),
        None => format!("{}/{path}", cwd.unwrap_or("/")),
    };
    let path = without_holes(&without_groups(&folded(&path)));
    if let Some(why) = named(&path) {
        return Some(why);
    }
    let path = as_any_user(&path);
    let some =
        path.contains(['*', '?', '[', '{']) && SAMPLES.iter().any(|sample| fits(&path, sample));
    some.then_some("the pattern can name secrets")
}

/// Whose home it is makes no difference to the samples.
fn as_any_user(path: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    if let ["", "home", user, _, ..] = parts.as_mut_slice()
        && !user.contains(['*', '?', '[', '{'])
    {
        *user = "user";
    }
    parts.join("/")
}

/// Parts of a name that cannot be known as patterns: `/etc/${x}shadow`. A name of which nothing is
/// known stays as it is, since it could be any.
pub(super) fn without_holes(path: &str) -> String {
    if !path.contains(UNKNOWN) {
        return path.to_owned();
    }
    let parts = path.split('/').map(|part| match part.trim_matches(UNKNOWN) {
        "" => part.to_owned(),
        _ => part.replace(UNKNOWN, "*"),
    });
    parts.collect::<Vec<String>>().join("/")
}

/// A file with secrets below a directory that is shown whole, of those that one of the names fits
/// where there are any.
pub(super) fn secret_below(dir: &str, names: &[String]) -> Option<&'static str> {
    let shown = ["/etc/", "/root/", "/home/", "/proc/"];
    let mut parts = dir.trim_matches('/').split('/');
    // Whose home it is makes no difference.
    let home = parts.next() == Some("home") && parts.next().is_some();
    let rest: Vec<&str> = parts.collect();
    let dir = if home { format!("/home/user/{}", rest.join("/")) } else { format!("{dir}/") };
    let dir = folded(&dir);
    SAMPLES.into_iter().filter(|sample| shown.iter().any(|top| sample.starts_with(top))).find(
        |sample| {
            let below = dir == "/"
                || sample.strip_prefix(dir.as_str()).is_some_and(|rest| rest.starts_with('/'));
            let name = sample.rsplit('/').next().unwrap_or_default();
            below && (names.is_empty() || names.iter().any(|n| matches(n, name)))
        },
    )
}

/// A group of alternatives, `@(a|b)`, as the pattern that fits at least as much.
fn without_groups(path: &str) -> String {
    let mut plain = String::new();
    let mut chars = path.chars().peekable();
    while let Some(c) = chars.next() {
        if "@+?*!".contains(c) && chars.peek() == Some(&'(') {
            plain.push('*');
            chars.by_ref().find(|c| *c == ')');
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Whether a pattern of a shell could name a path.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<&str>, Vec<&str>) =
        (pattern.split('/').collect(), path.split('/').collect());
    if let Some(place) = pattern.iter().position(|p| *p == "**") {
        return path.len() >= place
            && pattern.iter().zip(&path).take(place).all(|(p, s)| part_fits(p, s));
    }
    pattern.len() == path.len() && pattern.iter().zip(&path).all(|(p, s)| part_fits(p, s))
}

/// Whether a pattern fits a text as a whole.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    glob(&pattern, &text)
}

/// Whether a pattern could fit a name, as far as that is found out soon: every
/// way to fit is tried, and with many stars or braces that would take for ever.
pub(super) fn could_fit(pattern: &str, text: &str) -> bool {
    let mut marks: Vec<char> = pattern.chars().collect();
    marks.dedup_by(|a, b| *a == '*' && *b == '*');
    let many = |mark: char| marks.iter().filter(|c| **c == mark).count() > MOST_MARKS;
    many('*') || many('{') || matches(&String::from_iter(&marks), text)
}

fn part_fits(pattern: &str, part: &str) -> bool {
    // A leading dot has to be written.
    !(part.starts_with('.') && pattern.starts_with(['*', '?', '['])) && could_fit(pattern, part)
}

fn glob(pattern: &[char], part: &[char]) -> bool {
    match (pattern.split_first(), part.split_first()) {
        (None, None) => true,
        (Some(('*', rest)), _) => {
            glob(rest, part) || part.split_first().is_some_and(|(_, after)| glob(pattern, after))
        }
        (Some(('?', rest)), Some((_, after))) => glob(rest, after),
        // A set counts as any character: what is in it is not looked at.
        (Some(('[', rest)), Some((_, after))) => {
            // Which bracket ends it depends on classes in it: each may.
            let ends = rest.iter().enumerate().skip(1).filter(|(_, c)| **c == ']');
            ends.into_iter().any(|(end, _)| glob(rest.get(end + 1..).unwrap_or_default(), after))
        }
        // Braces inside a pattern that the shell would have parted.
        (Some(('{', rest)), _) => {
            let Some(end) = rest.iter().position(|c| *c == '}') else { return false };
            let inside: String = rest.iter().take(end).collect();
            let tail = rest.get(end + 1..).unwrap_or_default();
            inside.split(',').any(|choice| {
                let whole: Vec<char> = choice.chars().chain(tail.iter().copied()).collect();
                glob(&whole, part)
            })
        }
        (Some((p, rest)), Some((c, after))) => p == c && glob(rest, after),
        _ => false,
    }
}

/// The categories of writing a path.
#[must_use]
pub fn written(path: &str) -> Vec<Flag> {
    let below = |dirs: &[&str]| {
        dirs.iter().any(|d| path == *d || path.strip_prefix(d).is_some_and(|r| r.starts_with('/')))
    };
    if below(&["/dev"]) {
        let quiet =
            ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full"];
        let harmless = quiet.contains(&path)
            || below(&["/dev/fd", "/dev/shm", "/dev/pts", "/dev/tcp", "/dev/udp"]);
        if path.starts_with("/dev/watchdog") {
            return vec![Flag::ExecPower];
        }
        return if harmless { Vec::new() } else { vec![Flag::ExecDisks] };
    }
    if below(&["/proc/self/fd"]) {
        return Vec::new();
    }
    if below(&["/proc/sys/net"]) {
        return vec![Flag::ExecSystemFiles, Flag::ExecNetwork];
    }
    if matches!(path, "/proc/sysrq-trigger" | "/sys/power/state" | "/sys/power/disk") {
        return vec![Flag::ExecPower];
    }
    if path.ends_with("/.ssh/authorized_keys") || path.ends_with("/.ssh/authorized_keys2") {
        return vec![Flag::ExecUsers];
    }
    let users = [
        "/etc/passwd",
        "/etc/shadow",
        "/etc/group",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/sudoers.d",
        "/etc/doas.conf",
    ];
    if below(&users) {
        return vec![Flag::ExecSystemFiles, Flag::ExecUsers];
    }
    if is_start_file(path) {
        return vec![Flag::ExecSystemFiles];
    }
    let system = [
        "/etc",
        "/usr",
        "/boot",
        "/efi",
        "/lib",
        "/lib32",
        "/lib64",
        "/bin",
        "/sbin",
        "/proc",
        "/sys",
        "/root/.ssh",
        "/var/spool/cron",
        "/var/lib/dpkg",
        "/var/lib/rpm",
        "/var/lib/apt",
        "/var/lib/systemd",
        "/lost+found",
        "/run/systemd",
        "/run/udev",
        "/var/spool/at",
        "/forcefsck",
        "/fastboot",
        "/.autorelabel",
    ];
    // Programs that people put there themselves are theirs.
    if below(&["/usr/local/share", "/usr/src"]) {
        return Vec::new();
    }
    if path == "/" || below(&system) {
        return vec![Flag::ExecSystemFiles];
    }
    Vec::new()
}

/// Files that run by themselves: at a login, by a user's service manager, by git.
fn is_start_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let shells = [
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".xprofile",
        ".xsessionrc",
    ];
    let below = ["/.config/systemd/", "/.config/autostart/", "/.config/fish/", "/.git/hooks/"];
    let ssh = ["/.ssh/rc", "/.ssh/config", "/.ssh/environment"];
    shells.contains(&name)
        || below.iter().any(|dir| path.contains(dir))
        || ssh.iter().any(|file| path.ends_with(file))
}

/// The categories of writing what a pattern of a shell names: what its first part can mean counts.
#[must_use]
pub fn written_by_pattern(path: &str) -> Vec<Flag> {
    const ROOTS: [&str; 14] = [
        "etc", "usr", "boot", "efi", "lib", "lib32", "lib64", "bin", "sbin", "proc", "sys", "dev",
        "root", "var",
    ];
    let (first, rest) = path.trim_start_matches('/').split_once('/').unwrap_or((path, ""));
    if !first.contains(['*', '?', '[', '{']) {
        return written(path);
    }
    let mut all: Vec<Flag> = Vec::new();
    let first = first.trim_start_matches('/');
    let fit = |root: &&str| part_fits(first, root) && !(*root == "dev" && rest.is_empty());
    for root in ROOTS.into_iter().filter(fit) {
        let found = written(&format!("/{root}/{rest}"));
        all.extend(found.into_iter().filter(|f| !all.contains(f)).collect::<Vec<_>>());
    }
    all
}
