//! Programs that show secrets without naming the file that holds them.

use super::{
    paths,
    walk::{Input, Walk},
    words::Arg,
    wrappers::value_of,
};

/// Programs that look through whole directories for a text.
const SEARCHERS: [&str; 10] =
    ["grep", "egrep", "fgrep", "zgrep", "rgrep", "ugrep", "rg", "ag", "ack", "ack-grep"];
/// Programs that show what is in the files that they are handed.
const SHOWING: [&str; 22] = [
    "cat", "tac", "nl", "head", "tail", "less", "more", "bat", "strings", "xxd", "od", "hexdump",
    "base64", "base32", "cut", "sort", "uniq", "awk", "gawk", "sed", "zcat", "dd",
];

impl Walk<'_> {
    /// Tells a program that shows secrets by what it is asked for.
    pub(super) fn leaks(&mut self, name: &str, args: &[Arg], input: &Input) {
        if self.found.secret.is_some() {
            return;
        }
        let has = |words: &[&str]| args.iter().any(|a| words.contains(&a.text.as_str()));
        let starts = |word: &str| args.iter().any(|a| a.text.starts_with(word));
        let whole: Vec<&str> =
            args.iter().filter(|a| !a.is_option()).map(|a| a.text.as_str()).collect();
        let what = match name {
            "ps" if shows_environment(args) => "the environment of processes",
            "wg" => match whole.as_slice() {
                ["showconf", ..] | ["show", _, "private-key" | "preshared-keys" | "dump"] => {
                    "the keys of WireGuard"
                }
                _ => return,
            },
            "gpg" | "gpg2" if starts("--export-secret") => "a private key",
            "pdbedit" if cluster(args, 'w') || has(&["--smbpasswd-style"]) => "password hashes",
            "nmcli" if has(&["-s", "--show-secrets"]) => "the secrets of connections",
            "rclone"
                if whole.starts_with(&["config", "show"])
                    || whole.starts_with(&["config", "dump"]) =>
            {
                "stored credentials"
            }
            "cloud-init"
                if whole.first() == Some(&"query")
                    && has(&["userdata", "vendordata", "-a", "--all", "-u"]) =>
            {
                "cloud-init user data"
            }
            "kubectl" | "oc" => {
                let raw = whole.contains(&"config") && has(&["--raw"]);
                let secret = |w: &&str| {
                    matches!(*w, "secret" | "secrets")
                        || w.starts_with("secret/")
                        || w.starts_with("secrets/")
                };
                let shown = starts("-o") || starts("--output") || starts("--template");
                if !(raw || whole.contains(&"get") && whole.iter().any(secret) && shown) {
                    return;
                }
                "the secrets of a cluster"
            }
            "ceph" if whole.first() == Some(&"auth") => match whole.get(1) {
                Some(
                    &("get" | "ls" | "list" | "export" | "print-key" | "get-key" | "print_key"),
                ) => "the keys of a cluster",
                _ => return,
            },
            "curl" | "wget" | "http" => match whole.iter().find_map(|a| secret_address(a)) {
                Some(what) => what,
                None => return,
            },
            "diff" | "colordiff" if recursive(name, args) && !cluster(args, 'q') => {
                return self.covered(&whole);
            }
            "cpio" | "tar" | "bsdtar" | "rsync" | "zip" | "pax" => {
                let listed = name == "cpio"
                    || starts("-T")
                    || starts("--files-from")
                    || has(&["-@", "-"])
                    || cluster(args, 'T');
                if let (Input::Text(text), true) = (input, listed) {
                    for line in text.split(['\n', '\0']).filter(|l| !l.is_empty()) {
                        self.reads(&Arg::literal(line.trim()));
                    }
                }
                return;
            }
            name if SEARCHERS.contains(&name) => return self.searches(name, args),
            _ => return,
        };
        self.found.secret = Some(what.to_owned());
    }

    /// A search through directories that hold secrets, which shows what it finds.
    fn searches(&mut self, name: &str, args: &[Arg]) {
        let named = ["files-with-matches", "files-without-match", "count", "quiet", "silent"];
        let only_names = ['l', 'L', 'c', 'q'].iter().any(|c| cluster(args, *c))
            || args.iter().any(|a| {
                a.text
                    .strip_prefix("--")
                    .is_some_and(|n| named.iter().any(|long| n.len() >= 3 && long.starts_with(n)))
            });
        if only_names || !recursive(name, args) {
            return;
        }
        // What is looked into is narrowed to names, of which none is one of a secret.
        let narrowed = match name {
            "rg" | "ag" | "ack" | "ack-grep" => {
                let types = ["-t", "--type", "-g", "--glob", "-G"];
                args.iter()
                    .any(|a| types.iter().any(|t| a.text.starts_with(t)) && !a.text.contains('!'))
            }
            _ => value_of(args, '\0', "include")
                .is_some_and(|i| !i.unknown && paths::secret_below("/", &[i.text]).is_none()),
        };
        if narrowed {
            return;
        }
        let given = args.iter().any(|a| {
            a.text.starts_with("--regexp")
                || a.text.starts_with("--file=")
                || cluster(std::slice::from_ref(a), 'e')
        });
        let valued = "efABCmdDgtG";
        let mut plain = Vec::new();
        let mut skip = false;
        for arg in args {
            let takes = std::mem::take(&mut skip);
            if arg.is_option() {
                skip = !arg.text.starts_with("--")
                    && arg.text.len() == 2
                    && arg.text.ends_with(|c| valued.contains(c));
            } else if !takes {
                plain.push(arg.text.as_str());
            }
        }
        let dirs = plain.get(usize::from(!given)..).unwrap_or_default();
        if dirs.is_empty() {
            let here = self.cwd.clone().unwrap_or_default();
            return self.covered(&[here.as_str()]);
        }
        self.covered(dirs);
    }

    /// Directories that are shown with all that is in them.
    fn covered(&mut self, dirs: &[&str]) {
        let found = dirs.iter().find_map(|dir| {
            let dir = self.resolved(&Arg::literal(dir))?;
            paths::secret_below(&dir, &[])
        });
        if let Some(path) = found {
            self.found.secret = Some(path.to_owned());
        }
    }

    /// `find DIR -exec PROGRAM {}` without any name that is looked for.
    pub(super) fn found_unnamed(&mut self, starts: &[&Arg], words: &[Arg]) {
        let Some(program) = words.first() else { return };
        let name = program.text.rsplit('/').next().unwrap_or_default();
        let args = words.get(1..).unwrap_or_default();
        let names = ['l', 'L', 'c', 'q'].iter().any(|c| cluster(args, *c));
        if SHOWING.contains(&name) || SEARCHERS.contains(&name) && !names {
            let dirs: Vec<&str> = starts.iter().map(|s| s.text.as_str()).collect();
            self.covered(if dirs.is_empty() { &["."] } else { &dirs });
        }
    }
}

fn cluster(args: &[Arg], letter: char) -> bool {
    args.iter().any(|a| a.is_option() && !a.text.starts_with("--") && a.text.contains(letter))
}

/// The directories of a search that prints the names of what it finds.
pub(super) fn lists(words: &[Arg]) -> Option<Vec<Arg>> {
    let (_, args) = words.split_first()?;
    let names = cluster(args, 'l') || args.iter().any(|a| a.text.starts_with("--files-with"));
    names.then(|| args.iter().filter(|a| !a.is_option()).skip(1).cloned().collect())
}

/// Whether a search goes into directories.
fn recursive(name: &str, args: &[Arg]) -> bool {
    matches!(name, "rgrep" | "rg" | "ag" | "ack" | "ack-grep")
        || cluster(args, 'r')
        || cluster(args, 'R')
        || args.iter().any(|a| {
            a.text.starts_with("--rec")
                || a.text.starts_with("--deref")
                || a.text == "--directories=recurse"
        })
        || args.windows(2).any(|w| matches!(w, [d, r] if d.text == "-d" && r.text == "recurse"))
}

/// `ps e`, `ps auxe`: an `e` among the letters of BSD.
fn shows_environment(args: &[Arg]) -> bool {
    let mut of_option = false;
    args.iter().any(|a| {
        let value = std::mem::replace(
            &mut of_option,
            matches!(
                a.text.as_str(),
                "-o" | "-p"
                    | "-u"
                    | "-C"
                    | "-g"
                    | "-t"
                    | "-q"
                    | "-s"
                    | "-U"
                    | "-G"
                    | "o"
                    | "p"
                    | "U"
                    | "t"
            ),
        );
        !value
            && !a.text.starts_with('-')
            && a.text.contains('e')
            && a.text.chars().all(|c| "aAxXuUlLjvsmhHSTwrcefgnk".contains(c))
    })
}

/// An address at which a cloud, or this machine, tells secrets.
fn secret_address(address: &str) -> Option<&'static str> {
    let lower = address.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("file:") {
        let path = rest.trim_start_matches('/');
        let path = path.strip_prefix("localhost/").unwrap_or(path);
        let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
        return paths::secret_path(&format!("/{path}"), None);
    }
    let host = ["169.254.169.254", "metadata.google.internal", "[fd00:ec2::254]"];
    let secret = ["user-data", "userdata", "security-credentials", "/token", "vendor-data"];
    (host.iter().any(|h| lower.contains(h)) && secret.iter().any(|s| lower.contains(s)))
        .then_some("user data or credentials of a cloud")
}
