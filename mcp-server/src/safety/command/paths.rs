//! Files of a guest that hold secrets, and files that the system stands on.

use super::winpaths;
use crate::safety::Flag;

/// Secrets in their usual places: what a pattern is held against.
pub(super) const SAMPLES: [&str; 22] = [
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
    let path = folded(&path);
    let path = without_groups(&path);
    if path.contains(['*', '?', '[', '{']) {
        let some = SAMPLES.iter().any(|sample| fits(&path, sample));
        return some.then_some("the pattern can name secrets");
    }
    named(&path)
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

fn named(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or_default();
    if matches!(path, "/etc/shadow" | "/etc/gshadow" | "/etc/shadow-" | "/etc/gshadow-")
        || path.starts_with("/var/backups/") && name.contains("shadow")
    {
        return Some("password hashes");
    }
    if path.starts_with("/etc/ssh/ssh_host_") && name.ends_with("_key") {
        return Some("the private key of the SSH server");
    }
    if name.starts_with("id_") && !name.ends_with(".pub") && path.contains("/.ssh/") {
        return Some("a private SSH key");
    }
    if path.contains("/.ssh/") && (name.ends_with(".pem") || name.ends_with(".key")) {
        return Some("a private SSH key");
    }
    if path == "/root/.ssh" || path.starts_with("/home/") && path.ends_with("/.ssh") {
        return Some("the directory of private SSH keys");
    }
    if path.starts_with("/proc/") && name == "environ" {
        return Some("the environment of a process");
    }
    if path.starts_with("/var/lib/cloud/") && name.starts_with("user-data")
        || name == "instance-data-sensitive.json"
        || path.starts_with("/var/lib/cloud/") && name.starts_with("vendor-data")
    {
        return Some("cloud-init user data, which can hold passwords");
    }
    let histories = [
        ".bash_history",
        ".zsh_history",
        ".ash_history",
        ".sh_history",
        ".python_history",
        ".mysql_history",
        ".psql_history",
        ".rediscli_history",
        ".lesshst",
        ".history",
        "fish_history",
    ];
    if histories.contains(&name) {
        return Some("a history of commands");
    }
    let private = ["/etc/ssl/private/", "/etc/pki/tls/private/"];
    if private.iter().any(|p| path.starts_with(p)) {
        return Some("a private key");
    }
    let key = [".key", ".pem", ".p12", ".pfx", ".keytab"].iter().any(|e| name.ends_with(e));
    let public = ["/etc/ssl/certs/", "/usr/", "/etc/ca-certificates/", "/etc/pki/ca-trust/"];
    let names = ["fullchain", "chain", "cert", "ca", "cacert", "ca-bundle", "ca-cert", "dhparam"];
    let stem =
        name.split('.').next().unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit());
    let public = public.iter().any(|p| path.starts_with(p))
        || name.ends_with(".pem") && names.contains(&stem)
        || path.starts_with("/proc/")
        || path.starts_with("/sys/");
    if key && !public {
        return Some("a file that usually holds a private key");
    }
    if matches!(
        name,
        ".pgpass" | ".netrc" | ".my.cnf" | ".git-credentials" | ".vault-token" | "krb5.keytab"
    ) || path.ends_with("/.aws/credentials")
        || path.ends_with("/.docker/config.json")
        || path.ends_with("/.kube/config")
    {
        return Some("stored credentials");
    }
    None
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
            let end = rest.iter().skip(1).position(|c| *c == ']').map(|p| p + 2);
            end.is_some_and(|end| glob(rest.get(end..).unwrap_or_default(), after))
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
        return if harmless { Vec::new() } else { vec![Flag::ExecDisks] };
    }
    if below(&["/proc/self/fd"]) {
        return Vec::new();
    }
    if below(&["/proc/sys/net"]) {
        return vec![Flag::ExecSystemFiles, Flag::ExecNetwork];
    }
    if path == "/proc/sysrq-trigger" {
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
