//! Managers of packages that are not told by a verb what to do.

use super::{walk::Walk, words::Arg};
use crate::safety::Flag;

impl Walk<'_> {
    /// Answers whether this is one of them.
    pub(super) fn packages(&mut self, name: &str, args: &[Arg]) -> bool {
        let has = |wanted: &[&str]| args.iter().any(|a| wanted.contains(&a.text.as_str()));
        let starts = |wanted: &str| args.iter().any(|a| a.text.starts_with(wanted));
        let cluster = |c: char| {
            args.iter().any(|a| a.is_option() && !a.text.starts_with("--") && a.text.contains(c))
        };
        let mut add = |flag: Flag| self.found.add(flag, name);
        match name {
            "dpkg" => {
                if starts("--pre-invoke") || starts("--post-invoke") || starts("--status-logger") {
                    add(Flag::ExecShell);
                }
                let looks = [
                    "-l",
                    "-L",
                    "-S",
                    "-s",
                    "-c",
                    "-I",
                    "-p",
                    "-V",
                    "--list",
                    "--listfiles",
                    "--search",
                    "--status",
                    "--contents",
                    "--info",
                    "--get-selections",
                    "--print-architecture",
                    "--audit",
                    "-C",
                    "--verify",
                    "--print-avail",
                    "--compare-versions",
                    "--print-foreign-architectures",
                    "--version",
                    "--help",
                ];
                // What changes something counts, whatever stands beside it.
                let changes = ["-i", "-r", "-P", "-A", "-a", "-B"];
                let long = ["--install", "--remove", "--purge", "--unpack", "--configure"];
                let changes = has(&changes) || has(&long) || starts("--set-") || starts("--force");
                if changes || !has(&looks) && !args.is_empty() {
                    add(Flag::ExecPackages);
                }
            }
            "rpm" => {
                let runs = |a: &Arg| a.text.contains("%(") || a.text.contains("%{lua");
                if args.iter().any(runs) || starts("--pipe") {
                    add(Flag::ExecShell);
                }
                let changes = ["-e", "-U", "-F", "-i"].iter().any(|o| starts(o))
                    || [
                        "--erase",
                        "--install",
                        "--upgrade",
                        "--freshen",
                        "--import",
                        "--rebuilddb",
                    ]
                    .iter()
                    .any(|o| starts(o));
                let looks = cluster('q')
                    || cluster('V')
                    || starts("--query")
                    || starts("--verify")
                    || has(&["--version", "--eval", "-K", "--checksig"])
                    || args.is_empty();
                if changes || !looks {
                    add(Flag::ExecPackages);
                }
            }
            "pacman" => {
                let looks = cluster('Q')
                    || cluster('F')
                    || cluster('T')
                    || has(&["--query", "--files", "--deptest"])
                    || args.iter().any(|a| {
                        a.text.starts_with("-S")
                            && (a.text.contains('s')
                                || a.text.contains('p')
                                || a.text.contains('i')
                                || a.text.contains('l'))
                            && !a.text.contains('y')
                    });
                if !looks && !args.is_empty() {
                    add(Flag::ExecPackages);
                }
            }
            "unattended-upgrade" | "unattended-upgrades" if has(&["--dry-run", "--help"]) => {}
            "do-release-upgrade" if has(&["-c", "--check-dist-upgrade-only", "--version"]) => {}
            // It restarts the services that use what was replaced.
            "needrestart"
                if has(&["-b", "-p", "-l", "-rl"])
                    || args
                        .windows(2)
                        .any(|w| matches!(w, [r, l] if r.text == "-r" && l.text == "l")) => {}
            "needrestart" => add(Flag::ExecServices),
            "emerge"
                if cluster('p')
                    || cluster('s')
                    || has(&["--pretend", "--search", "--info", "--searchdesc"]) => {}
            "nix-env" if cluster('q') || starts("--query") => {}
            "tasksel" if starts("--list") || starts("--task-packages") || starts("--task-desc") => {
            }
            "nala"
            | "urpmi"
            | "urpme"
            | "slackpkg"
            | "pamac"
            | "port"
            | "rustup"
            | "nuget"
            | "cabal"
            | "opam"
            | "subscription-manager"
            | "leapp"
            | "package-cleanup"
            | "softwareupdate"
            | "SUSEConnect"
            | "pro"
            | "ua"
            | "dkms"
            | "ubuntu-drivers"
            | "canonical-livepatch"
            | "ostree"
            | "pacman-key"
            | "debootstrap"
            | "syspatch"
            | "sysupgrade"
            | "installpkg"
            | "removepkg"
            | "upgradepkg"
            | "kernel-install"
            | "mise"
            | "asdf" => {
                let looks = [
                    "list",
                    "search",
                    "show",
                    "status",
                    "info",
                    "policy",
                    "history",
                    "--list",
                    "-l",
                    "--list-keys",
                    "-Si",
                    "identity",
                    "facts",
                    "log",
                    "config",
                    "refs",
                    "devices",
                    "help",
                    "security-status",
                    "contents",
                    "installed",
                    "outdated",
                    "inspect",
                    "which",
                    "current",
                ];
                let simulated = has(&["--dry-run", "-s", "--simulate"]);
                if !args.is_empty() && !has(&looks) && !simulated
                    || matches!(name, "syspatch" | "sysupgrade") && !has(&["-c", "-l"])
                {
                    add(Flag::ExecPackages);
                }
            }
            "emerge"
            | "nix-channel"
            | "nix-collect-garbage"
            | "dpkg-reconfigure"
            | "add-apt-repository"
            | "apt-add-repository"
            | "do-release-upgrade"
            | "unattended-upgrade"
            | "unattended-upgrades"
            | "tasksel"
            | "easy_install"
            | "xbps-install"
            | "xbps-remove"
            | "nix-env"
            | "makepkg"
            | "yay"
            | "paru"
            | "cpan"
            | "cpanm"
            | "gdebi"
            | "alien"
            | "luarocks"
            | "pkg_add"
            | "pkg_delete" => add(Flag::ExecPackages),
            _ => return false,
        }
        true
    }
}
