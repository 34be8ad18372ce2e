//! Files of a guest whose content is secret.

/// Endings that copies of a file are given.
const COPIES: [&str; 12] = [
    "-",
    "~",
    ".bak",
    ".old",
    ".orig",
    ".org",
    ".save",
    ".backup",
    ".copy",
    ".dpkg-old",
    ".rpmsave",
    ".rpmnew",
];
/// Histories and what editors keep, beside everything that is called `.…_history`.
const HISTORIES: [&str; 5] = [".history", ".histfile", ".lesshst", ".viminfo", "fish_history"];
/// Files of stored credentials, by their name alone.
const CREDENTIALS: [&str; 18] = [
    ".pgpass",
    ".netrc",
    ".my.cnf",
    ".mylogin.cnf",
    ".git-credentials",
    ".vault-token",
    "krb5.keytab",
    ".smbcredentials",
    ".npmrc",
    ".pypirc",
    ".htpasswd",
    "ldap.secret",
    "pam_ldap.secret",
    "sasl_passwd",
    "opasswd",
    "secrets.tdb",
    "passdb.tdb",
    "ipsec.secrets",
];
/// Whole files and directories (with a slash at their end) of credentials, wherever a root lies.
const STORES: [&str; 28] = [
    "/.aws/credentials",
    "/.docker/config.json",
    "/.kube/config",
    "/.azure/",
    "/.gnupg/private-keys-v1.d/",
    "/.gnupg/secring.gpg",
    "/.config/gcloud/",
    "/.config/rclone/rclone.conf",
    "/.config/gh/hosts.yml",
    "/etc/ssl/private/",
    "/etc/pki/tls/private/",
    "/etc/pve/priv/",
    "/etc/corosync/authkey",
    "/etc/wireguard/",
    "/etc/ppp/chap-secrets",
    "/etc/ppp/pap-secrets",
    "/etc/ipsec.d/private/",
    "/etc/swanctl/private/",
    "/etc/mysql/debian.cnf",
    "/etc/exim4/passwd.client",
    "/etc/rancher/k3s/k3s.yaml",
    "/etc/NetworkManager/system-connections/",
    "/acme.json",
    "/etc/credstore/",
    "/etc/credstore.encrypted/",
    "/run/credentials/",
    "/var/lib/samba/private/",
    "/var/lib/rancher/k3s/server/token",
];

/// Why a folded path names secrets, where it does.
pub(super) fn named(path: &str) -> Option<&'static str> {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = COPIES.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let copied = stem.len() < name.len();
    if matches!(stem, "shadow" | "gshadow") && (dir.ends_with("/etc") || copied || is_apart(dir))
        || path.starts_with("/var/backups/") && name.contains("shadow")
    {
        return Some("password hashes");
    }
    if dir.ends_with("/etc/ssh") && stem.starts_with("ssh_host_") && stem.ends_with("_key") {
        return Some("the private key of the SSH server");
    }
    if path.contains("/.ssh/") && !path.contains("/.ssh/config.d/") && !is_public_ssh(name) {
        return Some("a private SSH key");
    }
    if path == "/root/.ssh" || path.starts_with("/home/") && name == ".ssh" {
        return Some("the directory of private SSH keys");
    }
    if dir.ends_with("/etc/dropbear") && name.ends_with("_host_key") {
        return Some("the private key of the SSH server");
    }
    if path.starts_with("/proc/") && name == "environ" {
        return Some("the environment of a process");
    }
    if path.starts_with("/proc/") && matches!(name, "mem" | "kcore")
        || matches!(path, "/dev/mem" | "/dev/kmem")
    {
        return Some("memory, with all that is in it");
    }
    let cloud = path.contains("/var/lib/cloud/");
    if cloud
        && (["user-data", "vendor-data"].iter().any(|n| name.starts_with(n))
            || name == "obj.pkl"
            || name == "cloud-config.txt")
        || name == "instance-data-sensitive.json"
    {
        return Some("cloud-init user data, which can hold passwords");
    }
    if HISTORIES.contains(&stem) || stem.starts_with('.') && stem.ends_with("_history") {
        return Some("a history of commands");
    }
    if is_private_key(path, dir, name) {
        return Some("a file that usually holds a private key");
    }
    let kubernetes = dir.ends_with("/etc/kubernetes") && name.ends_with(".conf");
    let wireless = dir.ends_with("/etc/wpa_supplicant") && name.ends_with(".conf");
    if CREDENTIALS.contains(&stem) || kubernetes || wireless || is_stored(path) {
        return Some("stored credentials");
    }
    None
}

/// Whether a directory is none that a name without a path means by chance.
fn is_apart(dir: &str) -> bool {
    ["/tmp", "/var", "/mnt", "/srv", "/media", "/backup", "/dev/shm"]
        .iter()
        .any(|top| dir == *top || dir.strip_prefix(top).is_some_and(|r| r.starts_with('/')))
}

/// Files beside the keys that anybody may read.
fn is_public_ssh(name: &str) -> bool {
    name.is_empty()
        || name.ends_with(".pub")
        || ["authorized_keys", "known_hosts", "config", "environment", "rc"]
            .iter()
            .any(|public| name.starts_with(public))
}

fn is_private_key(path: &str, dir: &str, name: &str) -> bool {
    let ends = [".key", ".pem", ".p12", ".pfx", ".keytab", ".jks", ".private", ".priv"];
    let public = ["/etc/ssl/certs/", "/usr/", "/etc/ca-certificates/", "/etc/pki/ca-trust/"];
    let names = [
        "fullchain",
        "chain",
        "cert",
        "ca",
        "cacert",
        "ca-bundle",
        "ca-cert",
        "dhparam",
        "public",
        "pub",
        "pubkey",
        "crl",
    ];
    let stem =
        name.split('.').next().unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit());
    let harmless = public.iter().any(|p| path.starts_with(p))
        || name.ends_with(".pem") && names.contains(&stem)
        || name.contains(".pub.")
        || ["/proc", "/sys"].iter().any(|top| dir.starts_with(top));
    ends.iter().any(|e| name.ends_with(e)) && !harmless
}

fn is_stored(path: &str) -> bool {
    STORES.iter().any(|store| match store.strip_suffix('/') {
        // The directory itself is only listed.
        Some(_) => path.find(store).is_some_and(|at| path.len() > at + store.len()),
        None => path.ends_with(store),
    }) && !path.ends_with(".pub")
}
