//! Programs and what they do, by their arguments.

use super::{
    Finding, paths,
    reads::{NESTED, VERBS, Verbs},
    sql,
    walk::{Input, Walk},
    words::Arg,
    wrappers::after_options,
};
use crate::safety::Flag;

/// Directories of programs that the system brings along.
const STANDARD: [&str; 10] = [
    "/bin",
    "/usr/bin",
    "/sbin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/snap/bin",
    "/usr/games",
    "/usr/libexec",
    "/etc/init.d",
];
/// Shells: `-c` has a text, a first word is a script, else the input is run.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "fish"];
/// Interpreters: whatever they run cannot be looked into.
const INTERPRETERS: [&str; 17] = [
    "python",
    "python2",
    "python3",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "php",
    "lua",
    "tclsh",
    "expect",
    "deno",
    "bun",
    "guile",
    "R",
    "Rscript",
    "osascript",
];
/// Programs that name files without reading them.
const NAMES_ONLY: [&str; 33] = [
    "echo",
    "printf",
    "ls",
    "stat",
    "test",
    "[",
    "touch",
    "chmod",
    "chown",
    "chgrp",
    "rm",
    "mkdir",
    "rmdir",
    "du",
    "realpath",
    "readlink",
    "basename",
    "dirname",
    "shred",
    "unlink",
    "tee",
    "getfacl",
    "setfacl",
    "find",
    "ssh-keygen",
    "chattr",
    "lsattr",
    "restorecon",
    "ssh",
    "ssh-add",
    "id",
    "cd",
    "which",
];

impl Walk<'_> {
    /// Runs a program with its arguments.
    pub(super) fn program_run(&mut self, words: &[Arg], input: &Input) {
        let Some((first, args)) = words.split_first() else { return };
        if first.unknown {
            self.found.add(Flag::ExecShell, "a program whose name is put together while it runs");
            return;
        }
        let path = first.text.as_str();
        let Some(name) = self.program_name(path) else {
            self.found.add(Flag::ExecShell, &format!("{path} is a program or script of its own"));
            self.mentions("", args);
            return;
        };
        let name = name.as_str();
        self.mentions(name, args);
        if path.starts_with("/etc/init.d/") {
            if args.first().is_none_or(|a| a.text != "status") {
                self.found.add(Flag::ExecServices, &format!("{path} starts or stops a service"));
            }
            return;
        }
        if self.wrapper(name, args, input) {
            return;
        }
        if SHELLS.contains(&name) {
            return self.shell(args, input);
        }
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        if INTERPRETERS.contains(&name) || INTERPRETERS.contains(&bare) {
            return self.interpreter(name, args, input);
        }
        self.named(name, args, input);
    }

    /// The bare name of a program; `None` for one outside the system's directories.
    fn program_name(&self, path: &str) -> Option<String> {
        if !path.contains('/') {
            return Some(path.to_owned());
        }
        let path = self.resolved(&Arg::literal(path))?;
        let (dir, name) = path.rsplit_once('/')?;
        let loader = name.starts_with("ld-linux") || name.starts_with("ld-musl");
        (loader || STANDARD.contains(&dir)).then(|| name.to_owned())
    }

    /// Files with secrets that the arguments name.
    fn mentions(&mut self, program: &str, args: &[Arg]) {
        if NAMES_ONLY.contains(&program) || self.found.secret.is_some() {
            return;
        }
        for arg in args {
            // A relative name, where it is the whole argument or behind an option.
            if !arg.is_option() {
                self.reads(arg);
            }
            let behind = arg.text.split_once('=').map(|(_, value)| value);
            let glued =
                arg.text.get(2..).filter(|_| arg.is_option() && !arg.text.starts_with("--"));
            for part in [behind, glued].into_iter().flatten().filter(|p| !p.is_empty()) {
                self.reads(&Arg::literal(part));
            }
            // An absolute name anywhere in it.
            let inside = |c: char| c.is_alphanumeric() || "._/*?~-[]{},+@".contains(c);
            for piece in arg.text.split(|c| !inside(c)) {
                for start in ["/", "~/"] {
                    if let Some(at) = piece.find(start) {
                        let piece = piece.get(at..).unwrap_or_default();
                        if paths::secret_path(piece, None).is_some() && self.found.secret.is_none()
                        {
                            self.found.secret = Some(piece.to_owned());
                        }
                    }
                }
            }
        }
    }

    fn shell(&mut self, args: &[Arg], input: &Input) {
        let text = Self::option(args, &["c"]).or_else(|| {
            // -c may stand first in a cluster: -cx TEXT.
            let at = args
                .iter()
                .position(|a| a.is_option() && !a.text.starts_with("--") && a.text.contains('c'))?;
            args.get(at + 1)
        });
        if let Some(text) = text.cloned() {
            if text.unknown {
                self.found.add(Flag::ExecShell, "text that is put together while it runs");
            }
            return self.apart(|walk| walk.text(&text.text, input));
        }
        let at = after_options(args, "oO", &["rcfile", "init-file"]);
        if args.iter().any(|a| matches!(a.text.as_str(), "--version" | "--help")) {
            return;
        }
        let reads_input = args.iter().any(|a| a.text == "-s");
        match args.get(at) {
            Some(script) if script.text == "/dev/stdin" || script.text == "-" => {
                self.shell_input(input)
            }
            Some(script) if !reads_input => {
                self.found.add(Flag::ExecShell, &format!("the script {}", script.text));
            }
            _ => self.apart(|walk| walk.shell_input(input)),
        }
    }

    fn interpreter(&mut self, name: &str, args: &[Arg], input: &Input) {
        let asks = |a: &Arg| {
            matches!(
                a.text.as_str(),
                "-V" | "--version" | "-v" | "-h" | "--help" | "-i" | "-m" | "-l"
            )
        };
        match args.first() {
            None if *input == Input::Nothing => return,
            Some(only) if args.len() == 1 && asks(only) && only.text != "-m" => return,
            _ => {}
        }
        if name.starts_with("python")
            && args.first().is_some_and(|a| a.text == "-m")
            && args.get(1).is_some_and(|a| a.text == "pip")
        {
            let rest: Vec<Arg> = args.get(1..).unwrap_or_default().to_vec();
            return self.run(&rest, input);
        }
        self.found.add(Flag::ExecShell, &format!("code for {name}"));
    }

    fn verbs(&mut self, table: &Verbs, name: &str, args: &[Arg]) {
        let values: &[&str] = match name {
            "docker" | "podman" => &["context", "host", "log-level", "config"],
            "systemctl" => &["host", "machine", "type", "state", "lines", "output", "property"],
            "kubectl" | "helm" | "oc" => &["namespace", "context", "kubeconfig", "cluster"],
            _ => &[],
        };
        let short = match name {
            "docker" => "Hl",
            "systemctl" => "HMtnop",
            "kubectl" | "helm" | "oc" => "n",
            "apt" | "apt-get" => "ot",
            "pg_ctl" => "DlowtU",
            "mysqladmin" | "mariadb-admin" => "uhP",
            "docker-compose" | "podman-compose" => "fp",
            "supervisorctl" => "cspu",
            _ => "",
        };
        if args.iter().any(|a| {
            matches!(
                a.text.as_str(),
                "--help" | "--version" | "--dry-run" | "--simulate" | "--just-print"
            )
        }) {
            return;
        }
        let simulates = args.iter().any(|a| a.text == "-s" || a.text == "-h");
        if simulates && matches!(name, "apt" | "apt-get" | "aptitude") {
            return;
        }
        let at = after_options(args, short, values);
        let word = args.get(at).or_else(|| args.first());
        let Some(word) = word else {
            if !table.bare {
                self.found.add(table.flag, name);
            }
            return;
        };
        let looks = |w: &Arg| !w.unknown && table.looks.contains(&w.text.as_str());
        if looks(word) || args.first().is_some_and(|a| table.looks.contains(&a.text.as_str())) {
            return self.looks_deeper(name, table, args, at);
        }
        if table.looks.is_empty() || args.iter().all(Arg::is_option) && table.bare {
            return;
        }
        // A noun with a verb of its own: `docker volume ls`.
        let nested = NESTED.iter().find(|(n, _)| *n == name).map(|(_, verbs)| *verbs);
        if let (Some(verbs), Some(second)) = (nested, args.get(at + 1))
            && matches!(
                word.text.as_str(),
                "volume"
                    | "network"
                    | "image"
                    | "container"
                    | "system"
                    | "compose"
                    | "node"
                    | "service"
                    | "stack"
                    | "context"
                    | "buildx"
                    | "manifest"
                    | "secret"
                    | "config"
                    | "history"
                    | "group"
                    | "pod"
                    | "machine"
                    | "plugin"
            )
            && verbs.contains(&second.text.as_str())
        {
            return;
        }
        let deletes = matches!(
            name,
            "docker" | "podman" | "nerdctl" | "docker-compose" | "kubectl" | "oc" | "helm"
        ) && args.iter().any(|a| {
            matches!(
                a.text.as_str(),
                "rm" | "rmi" | "prune" | "delete" | "uninstall" | "-v" | "--volumes"
            )
        }) && !args.iter().any(|a| matches!(a.text.as_str(), "run" | "create"));
        if deletes {
            self.found.add(Flag::ExecDelete, &format!("{name} deletes"));
        }
        let power = [
            "reboot",
            "poweroff",
            "halt",
            "kexec",
            "soft-reboot",
            "suspend",
            "hibernate",
            "hybrid-sleep",
            "suspend-then-hibernate",
            "rescue",
            "emergency",
            "exit",
            "default",
        ];
        if name == "systemctl" {
            let target = args.iter().any(|a| {
                [
                    "reboot.target",
                    "poweroff.target",
                    "halt.target",
                    "rescue.target",
                    "emergency.target",
                    "kexec.target",
                    "runlevel0.target",
                    "runlevel6.target",
                ]
                .contains(&a.text.as_str())
            });
            if power.contains(&word.text.as_str()) || target {
                return self.found.add(Flag::ExecPower, &format!("systemctl {}", word.text));
            }
        }
        if name == "pct" || word.unknown {
            self.found.add(Flag::ExecShell, "a verb that is put together while it runs");
        }
        if matches!(name, "npm" | "yarn" | "pnpm" | "cargo" | "composer")
            && matches!(
                word.text.as_str(),
                "run" | "start" | "exec" | "test" | "run-script" | "dlx" | "x"
            )
        {
            return self.found.add(Flag::ExecShell, &format!("{name} runs a program of its own"));
        }
        self.found.add(table.flag, &format!("{name} {}", word.text));
    }

    /// Verbs that only look, but for what stands behind them.
    fn looks_deeper(&mut self, name: &str, table: &Verbs, args: &[Arg], at: usize) {
        let second = args.get(at + 1).map(|a| a.text.as_str()).unwrap_or_default();
        let verb = args.get(at).map(|a| a.text.as_str()).unwrap_or_default();
        let changes = match (name, verb) {
            ("dnf" | "yum", "history") => {
                matches!(second, "undo" | "redo" | "rollback" | "userinstalled")
            }
            ("dnf" | "yum", "group") => !matches!(second, "list" | "info" | "summary" | ""),
            ("npm" | "pip" | "pip3" | "kubectl" | "helm", "config") => {
                matches!(
                    second,
                    "set" | "delete" | "edit" | "set-context" | "use-context" | "unset"
                )
            }
            ("npm", "audit") => second == "fix",
            ("ufw", "app") => !matches!(second, "list" | "info"),
            _ => false,
        };
        if changes {
            self.found.add(table.flag, &format!("{name} {verb} {second}"));
        }
    }

    fn named(&mut self, name: &str, args: &[Arg], input: &Input) {
        let has = |wanted: &[&str]| args.iter().any(|a| wanted.contains(&a.text.as_str()));
        let starts = |wanted: &str| args.iter().any(|a| a.text.starts_with(wanted));
        let cluster = |c: char| {
            args.iter().any(|a| a.is_option() && !a.text.starts_with("--") && a.text.contains(c))
        };
        let plain = || args.iter().filter(|a| !a.is_option());
        let count = plain().count();
        if matches!(name, "cd" | "pushd") {
            return match plain().next() {
                Some(dir) if !dir.unknown => self.cwd = self.resolved(dir),
                Some(_) => self.cwd = None,
                None => self.cwd = Some("/root".to_owned()),
            };
        }
        if let Some(table) = VERBS.iter().find(|t| t.names.contains(&name)) {
            self.verbs(table, name, args);
            if matches!(name, "docker" | "podman") && has(&["cp"]) {
                plain().for_each(drop);
            }
            return;
        }
        let mut add = |flag: Flag| self.found.add(flag, name);
        match name {
            // Power.
            "shutdown" if has(&["-c"]) => {}
            "shutdown" | "reboot" | "poweroff" | "halt" | "rtcwake" | "pm-suspend"
            | "pm-hibernate" | "openrc-shutdown" | "kexec" => add(Flag::ExecPower),
            "init" | "telinit" if count > 0 => add(Flag::ExecPower),
            "loginctl" if has(&["poweroff", "reboot", "suspend", "hibernate", "halt"]) => {
                add(Flag::ExecPower)
            }
            "loginctl"
                if starts("terminate")
                    || starts("kill")
                    || starts("enable-")
                    || starts("disable-") =>
            {
                add(Flag::ExecUsers);
            }
            // Packages.
            "dpkg" => {
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
                if !has(&looks) && !args.is_empty() {
                    add(Flag::ExecPackages);
                }
            }
            "rpm"
                if !(cluster('q')
                    || cluster('V')
                    || starts("--query")
                    || starts("--verify")
                    || has(&["--version", "--eval", "-K", "--checksig"])
                    || args.is_empty()) =>
            {
                add(Flag::ExecPackages);
            }
            "pacman" => {
                let looks = cluster('Q')
                    || cluster('F')
                    || cluster('T')
                    || args.iter().any(|a| {
                        a.text.starts_with("-S")
                            && (a.text.contains('s')
                                || a.text.contains('i')
                                || a.text.contains('l'))
                            && !a.text.contains('y')
                    });
                if !looks && !args.is_empty() {
                    add(Flag::ExecPackages);
                }
            }
            "dpkg-reconfigure"
            | "add-apt-repository"
            | "apt-add-repository"
            | "do-release-upgrade"
            | "unattended-upgrade"
            | "unattended-upgrades"
            | "tasksel"
            | "easy_install"
            | "emerge"
            | "opkg"
            | "xbps-install"
            | "xbps-remove"
            | "nix-env"
            | "makepkg"
            | "yay"
            | "paru"
            | "cpan"
            | "cpanm"
            | "needrestart"
            | "gdebi"
            | "alien"
            | "luarocks"
            | "pkg"
            | "pkg_add" => add(Flag::ExecPackages),
            // Deleting.
            "rm" | "rmdir" | "unlink" | "shred" | "srm" | "wipe" | "truncate" | "tmpreaper"
            | "tmpwatch" | "dropdb" | "fdupes"
                if name != "fdupes" || cluster('d') =>
            {
                add(Flag::ExecDelete);
                self.writes_all(args);
            }
            "fdupes" => {}
            "journalctl" if starts("--vacuum") || has(&["--rotate", "--flush"]) => {
                add(Flag::ExecDelete)
            }
            "logrotate" if !has(&["-d", "--debug"]) => add(Flag::ExecDelete),
            "git" => self.git(args),
            "redis-cli" => self.redis(args),
            "dropuser" | "createuser" => add(Flag::ExecUsers),
            "mysql" | "mariadb" | "psql" | "sqlite3" | "mongosh" | "mongo" | "cqlsh"
            | "clickhouse-client" => {
                self.database(name, args, input);
            }
            // Services.
            "service" => {
                let looks = has(&["status", "--status-all", "--help"]) || args.is_empty();
                if !looks {
                    add(Flag::ExecServices);
                }
            }
            "rc-service" | "sv" | "invoke-rc.d"
                if !has(&["status", "--list", "-l", "--exists"]) =>
            {
                add(Flag::ExecServices)
            }
            "update-rc.d" | "rc" | "openrc" | "s6-rc" | "start-stop-daemon" | "kill" | "pkill"
            | "killall" | "killall5" | "pg_ctlcluster" | "svc" | "telinit-service" => {
                if name == "kill" && (has(&["-l", "-L"]) || args.iter().any(|a| a.text == "-0")) {
                    return;
                }
                if name == "kill" && plain().any(|a| a.text == "1") {
                    add(Flag::ExecPower);
                }
                add(Flag::ExecServices);
            }
            "chkconfig" if !has(&["--list"]) => add(Flag::ExecServices),
            "fuser" if cluster('k') => add(Flag::ExecServices),
            "nginx" if has(&["-s"]) || args.is_empty() => add(Flag::ExecServices),
            "consul" | "nomad" | "vault" if has(&["leave", "stop", "reload", "delete", "seal"]) => {
                add(Flag::ExecServices)
            }
            // Disks.
            name if name.starts_with("mkfs") || name.starts_with("fsck") && !cluster('n') => {
                add(Flag::ExecDisks)
            }
            "mkswap" | "wipefs" | "blkdiscard" | "fstrim" | "growpart" | "partprobe" | "mke2fs"
            | "resize2fs" | "xfs_growfs" | "ntfsresize" | "sfdisk" | "sgdisk" | "cfdisk"
            | "gdisk" | "fdisk" | "parted" | "tune2fs" | "e2fsck" | "xfs_repair" | "xfs_admin"
            | "swapon" | "swapoff" | "losetup" | "mdadm" | "btrfs" | "blockdev" | "hdparm"
            | "badblocks" | "debugfs" | "e2label" | "swaplabel" | "umount" | "mount"
            | "mkdosfs" | "pvcreate" | "pvremove" | "pvmove" | "pvresize" | "pvchange"
            | "vgcreate" | "vgremove" | "vgextend" | "vgreduce" | "vgchange" | "vgrename"
            | "vgmerge" | "vgsplit" | "vgimport" | "vgexport" | "lvcreate" | "lvremove"
            | "lvextend" | "lvresize" | "lvreduce" | "lvchange" | "lvconvert" | "lvrename"
            | "zerofree" | "partx" | "kpartx" | "fatlabel" | "mount.cifs" | "mount.nfs"
            | "qemu-nbd" | "quotaon" | "quotaoff" | "setquota" | "edquota" | "smartctl"
            | "sdparm" | "bcachefs" | "lvm" | "nbd-client" | "iscsiadm" | "reiserfsck"
            | "xfs_fsr" | "e4defrag" => self.disk(name, args),
            "dd" => self.dd(args),
            "zfs-auto-snapshot" => add(Flag::ExecDisks),
            // Users.
            "passwd" if has(&["-S", "--status"]) => {}
            "chage" if has(&["-l", "--list"]) => {}
            "pdbedit" if cluster('L') => {}
            "useradd" | "usermod" | "userdel" | "adduser" | "deluser" | "groupadd" | "groupmod"
            | "groupdel" | "addgroup" | "delgroup" | "gpasswd" | "passwd" | "chpasswd"
            | "chgpasswd" | "chage" | "chsh" | "chfn" | "newusers" | "vipw" | "vigr" | "visudo"
            | "smbpasswd" | "pdbedit" | "faillock" | "pam-auth-update" | "authselect"
            | "ssh-copy-id" | "lid" | "newgidmap" | "pwconv" | "grpconv" | "usermod.shadow" => {
                if name == "visudo" && cluster('c') {
                    return;
                }
                add(Flag::ExecUsers);
            }
            // Network.
            "ip" => self.ip(args),
            "ifconfig" if count > 1 => add(Flag::ExecNetwork),
            "iptables" | "ip6tables" | "iptables-legacy" | "iptables-nft" | "ebtables"
            | "arptables" => {
                let looks = [
                    "-L",
                    "-S",
                    "-C",
                    "--list",
                    "--list-rules",
                    "--check",
                    "--version",
                    "-V",
                    "-h",
                ];
                let clusters = args.iter().any(|a| {
                    a.text.starts_with("-L")
                        || a.text.starts_with("-nL")
                        || a.text.starts_with("-vL")
                        || a.text.starts_with("-nvL")
                        || a.text.starts_with("-vnL")
                });
                if !(has(&looks) || clusters || args.is_empty()) || has(&["-Z", "--zero"]) {
                    add(Flag::ExecNetwork);
                }
            }
            "firewall-cmd" => {
                let looks = starts("--list")
                    || starts("--get")
                    || starts("--state")
                    || starts("--query")
                    || starts("--info")
                    || starts("--check-config")
                    || args.is_empty();
                let changes = starts("--add")
                    || starts("--remove")
                    || starts("--set")
                    || starts("--reload")
                    || starts("--complete-reload")
                    || starts("--new")
                    || starts("--delete")
                    || starts("--change")
                    || starts("--panic")
                    || starts("--runtime")
                    || starts("--direct")
                    || starts("--load");
                if !looks || changes {
                    add(Flag::ExecNetwork);
                }
            }
            "nmcli" => self.nmcli(args),
            "tc" | "bridge"
                if has(&[
                    "add", "del", "delete", "change", "replace", "set", "flush", "append",
                ]) =>
            {
                add(Flag::ExecNetwork);
            }
            "ethtool"
                if has(&[
                    "-s",
                    "-K",
                    "-A",
                    "-L",
                    "-G",
                    "-C",
                    "-p",
                    "--set",
                    "-r",
                    "-E",
                    "--change",
                    "--offload",
                ]) =>
            {
                add(Flag::ExecNetwork)
            }
            "ifup"
            | "ifdown"
            | "ifreload"
            | "iptables-restore"
            | "ip6tables-restore"
            | "dhclient"
            | "dhcpcd"
            | "wg-quick"
            | "netfilter-persistent"
            | "iptables-apply"
            | "wpa_cli"
            | "udhcpc"
            | "vconfig"
            | "ovs-ofctl"
            | "ifenslave"
            | "shorewall"
            | "nmtui"
            | "pvesh-network" => add(Flag::ExecNetwork),
            "iw" if has(&["set", "connect", "disconnect", "add", "del"]) => add(Flag::ExecNetwork),
            "ping" if cluster('f') => add(Flag::ExecNetwork),
            // System files.
            "sysctl" => {
                let sets = args.iter().any(|a| a.text.contains('=') && !a.text.starts_with("--"))
                    || has(&["-w", "-p", "--system", "--load", "--write"])
                    || starts("-p")
                    || starts("--load");
                if sets {
                    add(Flag::ExecSystemFiles);
                }
            }
            "modprobe" if has(&["-n", "--dry-run", "-c", "--showconfig", "-D"]) => {}
            "crontab" if has(&["-l"]) => {}
            "hwclock" if !has(&["-w", "--systohc", "-s", "--hctosys", "--set"]) => {}
            "modprobe"
            | "rmmod"
            | "insmod"
            | "depmod"
            | "update-grub"
            | "update-grub2"
            | "grub-install"
            | "grub2-install"
            | "grub-set-default"
            | "grub-reboot"
            | "grubby"
            | "update-initramfs"
            | "dracut"
            | "mkinitcpio"
            | "mkinitfs"
            | "locale-gen"
            | "update-locale"
            | "hwclock"
            | "update-ca-certificates"
            | "update-ca-trust"
            | "ldconfig"
            | "setenforce"
            | "setsebool"
            | "chcon"
            | "restorecon"
            | "aa-enforce"
            | "aa-complain"
            | "aa-disable"
            | "crontab"
            | "proxmox-boot-tool"
            | "efibootmgr"
            | "bootctl"
            | "systemd-tmpfiles"
            | "sysusers"
            | "dpkg-divert"
            | "dpkg-statoverride"
            | "ntpdate"
            | "chronyc"
            | "a2enmod"
            | "a2dismod"
            | "a2ensite"
            | "a2dissite"
            | "lpadmin"
            | "postconf"
            | "postmap"
            | "newaliases" => {
                let looks = (name == "efibootmgr" && (args.is_empty() || has(&["-v"])))
                    || (name == "bootctl" && (args.is_empty() || has(&["status", "list"])))
                    || (name == "chronyc"
                        && !has(&["makestep", "online", "offline", "add", "delete", "shutdown"]))
                    || (name == "postconf" && !has(&["-e", "-M", "-X"]) && !starts("-e"))
                    || (name == "ldconfig" && has(&["-p"]))
                    || (name == "proxmox-boot-tool" && has(&["status", "list"]));
                if !looks {
                    add(Flag::ExecSystemFiles);
                }
            }
            "hostname" if count > 0 && !has(&["-f", "-i", "-I", "-s", "-d", "--fqdn"]) => {
                add(Flag::ExecSystemFiles)
            }
            "date" if has(&["-s", "--set"]) || starts("--set=") => add(Flag::ExecSystemFiles),
            // Code that cannot be looked into.
            "source" | "." => add(Flag::ExecShell),
            "at" | "batch" if !has(&["-l", "-d", "-r"]) => add(Flag::ExecShell),
            "make" | "cmake" | "ninja" | "ansible" | "ansible-playbook" | "puppet"
            | "chef-client" | "salt-call" | "terraform" | "pwsh" | "powershell"
            | "powershell.exe" | "cmd" | "cmd.exe" | "gdb" | "java" | "go" | "screen" | "tmux"
            | "socat" | "ncat" | "nc" | "netcat" | "bpftrace" | "wine" | "mono" | "dotnet"
            | "erl" | "iex" | "jshell" | "npx" | "bunx" | "run-parts" | "mkpasswd-script" => {
                self.code(name, args);
            }
            "ssh" | "mosh" | "rsh" | "telnet" if count > 1 => add(Flag::ExecShell),
            "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => self.awk(args),
            "sed" | "gsed" => self.sed(args),
            "vi" | "vim" | "nvim" | "ex" | "view" | "nano" | "ed" | "emacs" | "joe" | "micro"
            | "mcedit" => self.editor(name, args),
            "tar" | "bsdtar" => self.tar(args),
            "rsync" => self.rsync(args),
            // Files.
            "tee" | "sponge" | "touch" | "mkdir" | "chmod" | "chown" | "chgrp" | "setfacl"
            | "chattr" | "mknod" | "mkfifo" | "install" | "cp" | "mv" | "ln" | "link" | "scp"
            | "sftp" | "patch" | "unzip" | "7z" | "cpio" | "wget" | "curl" | "gunzip" | "gzip"
            | "xz" | "bzip2" | "split" | "sort" | "rename" | "setcap" | "mktemp" | "openssl"
            | "gpg" => {
                self.files(name, args);
            }
            _ => {}
        }
    }

    fn writes_all(&mut self, args: &[Arg]) {
        let paths: Vec<Arg> = args.iter().filter(|a| !a.is_option()).cloned().collect();
        for path in &paths {
            self.writes(path);
        }
    }

    fn code(&mut self, name: &str, args: &[Arg]) {
        let asks = args.len() == 1
            && args.first().is_some_and(|a| {
                matches!(
                    a.text.as_str(),
                    "--version"
                        | "-version"
                        | "version"
                        | "-V"
                        | "ls"
                        | "list-sessions"
                        | "-ls"
                        | "-list"
                        | "--help"
                        | "env"
                )
            });
        let probes = matches!(name, "nc" | "ncat" | "netcat")
            && args.iter().any(|a| a.is_option() && a.text.contains('z'));
        if asks || probes {
            return;
        }
        self.found.add(Flag::ExecShell, &format!("{name} runs what it is given"));
        if matches!(name, "pwsh" | "powershell" | "powershell.exe" | "cmd" | "cmd.exe") {
            let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
            windows(&text.join(" "), self.found);
        }
    }

    fn git(&mut self, args: &[Arg]) {
        if args.iter().any(|a| {
            a.text.contains("alias.") && a.text.contains('!')
                || a.text.starts_with("core.") && a.text.contains('=')
                || a.text == "--upload-pack"
                || a.text.starts_with("ext::")
        }) {
            self.found.add(Flag::ExecShell, "git with a program of its own");
        }
        let verb = args.get(after_options(args, "Cc", &["git-dir", "work-tree", "namespace"]));
        let hard = args.iter().any(|a| a.text == "--hard");
        match verb.map(|v| v.text.as_str()) {
            Some("clean")
                if !args.iter().any(|a| matches!(a.text.as_str(), "-n" | "--dry-run")) =>
            {
                self.found.add(Flag::ExecDelete, "git clean");
            }
            Some("reset") if hard => self.found.add(Flag::ExecDelete, "git reset --hard"),
            Some("rm") => self.found.add(Flag::ExecDelete, "git rm"),
            _ => {}
        }
    }

    fn redis(&mut self, args: &[Arg]) {
        let upper: Vec<String> = args.iter().map(|a| a.text.to_ascii_uppercase()).collect();
        let has = |words: &[&str]| upper.iter().any(|u| words.contains(&u.as_str()));
        if has(&["FLUSHALL", "FLUSHDB", "DEL", "UNLINK"]) {
            self.found.add(Flag::ExecDelete, "redis-cli deletes keys");
        }
        if has(&["SHUTDOWN"]) {
            self.found.add(Flag::ExecServices, "redis-cli shutdown");
        }
        if has(&["EVAL", "MODULE", "--EVAL"]) || has(&["CONFIG"]) && has(&["SET"]) {
            self.found.add(Flag::ExecShell, "redis-cli runs code or changes where it writes");
        }
    }

    fn database(&mut self, name: &str, args: &[Arg], input: &Input) {
        let mut texts: Vec<String> = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            let next = args.get(at + 1).map(|a| a.text.clone());
            match arg.text.as_str() {
                "-e" | "-c" | "--execute" | "--command" | "--eval" | "--query" | "-q" => {
                    texts.extend(next)
                }
                "-f" | "--file" | "-i" if matches!(name, "psql" | "cqlsh") => {
                    self.found.add(Flag::ExecShell, "statements from a file");
                }
                text => {
                    let glued = ["--execute=", "--command=", "--eval=", "--query="]
                        .iter()
                        .find_map(|p| text.strip_prefix(p))
                        .or_else(|| text.strip_prefix("-e").filter(|t| !t.is_empty()))
                        .or_else(|| {
                            text.strip_prefix("-c").filter(|t| !t.is_empty() && name == "psql")
                        });
                    texts.extend(glued.map(str::to_owned));
                }
            }
        }
        if name == "sqlite3" {
            texts.extend(args.iter().filter(|a| !a.is_option()).skip(1).map(|a| a.text.clone()));
        }
        if args.iter().any(|a| a.unknown && a.text.chars().count() > 1 && texts.contains(&a.text)) {
            self.found.add(Flag::ExecShell, "a statement that is put together while it runs");
        }
        match input {
            Input::Text(text) => texts.push(text.clone()),
            Input::Unknown if texts.is_empty() => {
                self.found.add(Flag::ExecShell, "statements that are read while it runs");
            }
            _ => {}
        }
        for text in texts {
            sql::statement(&text, self.found);
            if text.trim_start().starts_with(".shell") || text.trim_start().starts_with(".system") {
                self.found.add(Flag::ExecShell, "a statement that runs a program");
            }
        }
    }

    fn disk(&mut self, name: &str, args: &[Arg]) {
        let has = |wanted: &[&str]| args.iter().any(|a| wanted.contains(&a.text.as_str()));
        let first = args.iter().find(|a| !a.is_option()).map_or("", |a| a.text.as_str());
        let plain = args.iter().filter(|a| !a.is_option()).count();
        let looks = match name {
            "fdisk" | "sfdisk" | "gdisk" | "cfdisk" => {
                has(&["-l", "--list", "-d", "--dump", "-s", "-V", "-v", "--json", "-J"])
            }
            "sgdisk" => has(&["-p", "--print", "-i", "--info", "-v", "--verify"]),
            "parted" => {
                args.iter().any(|a| {
                    a.text == "print"
                        || a.text == "-l"
                        || a.text == "--list"
                        || a.text.ends_with(" print")
                }) && !has(&["mklabel", "mkpart", "rm", "resizepart", "set", "mktable"])
            }
            "wipefs" => {
                !(has(&["-a", "--all", "-o", "--offset", "-af", "-fa"])
                    || args.iter().any(|a| a.text.starts_with("--offset")))
            }
            "tune2fs" | "xfs_admin" => has(&["-l", "-u"]),
            "e2fsck" | "xfs_repair" => has(&["-n"]),
            "swapon" => has(&["--show", "-s", "--summary"]) || args.is_empty(),
            "losetup" => {
                args.is_empty()
                    || has(&["-a", "-l", "--list", "--all", "-f", "--find", "-j"]) && plain == 0
            }
            "mdadm" => {
                has(&["--detail", "-D", "--examine", "-E", "--query", "-Q"])
                    || args.iter().any(|a| {
                        a.text == "--monitor"
                            || a.text.starts_with("-D")
                            || a.text.starts_with("-E")
                    })
            }
            "btrfs" => {
                let words: Vec<&str> =
                    args.iter().filter(|a| !a.is_option()).map(|a| a.text.as_str()).collect();
                matches!(
                    words.as_slice(),
                    ["filesystem" | "fi", "show" | "df" | "usage" | "du", ..]
                        | ["subvolume" | "sub", "list" | "show" | "get-default", ..]
                        | ["device", "stats" | "usage", ..]
                        | ["scrub" | "balance", "status", ..]
                        | ["qgroup", "show", ..]
                        | ["property", "get" | "list", ..]
                        | []
                )
            }
            "blockdev" => args.iter().any(|a| a.text.starts_with("--get") || a.text == "--report"),
            "hdparm" => !args.iter().any(|a| {
                a.is_option()
                    && !matches!(a.text.as_str(), "-i" | "-I" | "-t" | "-T" | "-tT" | "-C" | "-g")
            }),
            "smartctl" => {
                !(has(&["-t", "-s", "-X", "-o", "-S"])
                    || args
                        .iter()
                        .any(|a| a.text.starts_with("--test") || a.text.starts_with("--smart=")))
            }
            "badblocks" => !has(&["-w", "-n"]),
            "debugfs" => !has(&["-w"]),
            "e2label" | "swaplabel" | "fatlabel" => plain < 2,
            "mount" => plain == 0 || has(&["--help", "-V"]),
            "partx" => has(&["-s", "--show", "-l"]),
            "fstrim" => has(&["-n", "--dry-run"]),
            "lvm" => matches!(first, "pvs" | "vgs" | "lvs" | "version" | "fullreport"),
            "iscsiadm" => !has(&["--login", "-l", "--logout", "-u", "-o"]),
            "xfs_fsr" | "e4defrag" => has(&["-c"]),
            _ => has(&["--version", "--help"]),
        };
        if !looks {
            self.found.add(Flag::ExecDisks, name);
            if matches!(name, "lvremove" | "vgremove" | "pvremove") {
                self.found.add(Flag::ExecDelete, name);
            }
        }
    }

    fn dd(&mut self, args: &[Arg]) {
        for arg in args {
            if let Some(path) = arg.text.strip_prefix("of=") {
                let target = Arg { text: path.to_owned(), unknown: arg.unknown };
                if target.unknown {
                    self.found.add(Flag::ExecDisks, "dd to where it cannot be known");
                }
                self.writes(&target);
            }
        }
    }

    fn ip(&mut self, args: &[Arg]) {
        let changes = [
            "add", "del", "delete", "set", "flush", "change", "replace", "append", "prepend",
            "restore", "up", "down", "a", "d",
        ];
        let words: Vec<&str> =
            args.iter().filter(|a| !a.is_option()).map(|a| a.text.as_str()).collect();
        // `ip a` is `ip addr`; a verb stands behind the object.
        let verb = words.get(1).copied().unwrap_or_default();
        let abbreviated = ["add", "delete", "set", "flush", "change", "replace", "append"]
            .iter()
            .any(|full| verb.len() >= 2 && full.starts_with(verb));
        if changes.contains(&verb)
            || abbreviated
            || args.iter().any(|a| matches!(a.text.as_str(), "-b" | "-batch"))
        {
            self.found.add(Flag::ExecNetwork, &format!("ip {}", words.join(" ")));
        }
    }

    fn nmcli(&mut self, args: &[Arg]) {
        let changes = [
            "up",
            "down",
            "add",
            "modify",
            "mod",
            "delete",
            "del",
            "edit",
            "clone",
            "import",
            "reload",
            "load",
            "off",
            "on",
            "connect",
            "disconnect",
            "reapply",
            "set",
            "hotspot",
            "hostname",
            "migrate",
        ];
        let from =
            after_options(args, "fgtmc", &["fields", "get-values", "mode", "colors", "wait"]);
        if args
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take(4)
            .any(|a| changes.contains(&a.text.as_str()))
        {
            self.found.add(Flag::ExecNetwork, "nmcli changes the network");
        }
    }

    fn awk(&mut self, args: &[Arg]) {
        let runs = |t: &str| {
            t.contains("system(")
                || t.contains("system (")
                || t.contains("getline") && t.contains('|')
                || t.contains("| \"")
                || t.contains("|\"")
                || t.contains("|&")
                || t.contains("print |")
                || t.contains("@load")
        };
        if args.iter().any(|a| runs(&a.text) || a.unknown && a.text.chars().count() == 1) {
            self.found.add(Flag::ExecShell, "awk that runs a program");
        }
        for arg in args {
            if let Some((_, rest)) =
                arg.text.split_once("> \"").or_else(|| arg.text.split_once(">\""))
            {
                let path = rest.split('"').next().unwrap_or_default().to_owned();
                self.writes(&Arg::literal(&path));
            }
        }
        if args.iter().any(|a| matches!(a.text.as_str(), "-f" | "--file")) {
            self.found.add(Flag::ExecShell, "a script for awk");
        }
    }

    fn sed(&mut self, args: &[Arg]) {
        let mut scripts: Vec<String> = Vec::new();
        let mut files: Vec<Arg> = Vec::new();
        let explicit = args.iter().any(|a| {
            matches!(a.text.as_str(), "-e" | "--expression" | "-f" | "--file")
                || a.text.starts_with("-e")
        });
        let mut skip = false;
        for (at, arg) in args.iter().enumerate() {
            if skip {
                skip = false;
                continue;
            }
            match arg.text.as_str() {
                "-e" | "--expression" => {
                    scripts.extend(args.get(at + 1).map(|a| a.text.clone()));
                    skip = true;
                }
                "-f" | "--file" => {
                    self.found.add(Flag::ExecShell, "a script for sed");
                    skip = true;
                }
                _ if arg.is_option() => {}
                _ if scripts.is_empty() && !explicit => scripts.push(arg.text.clone()),
                _ => files.push(arg.clone()),
            }
        }
        for script in &scripts {
            let trimmed = script.trim();
            // `e` runs a line, `s///e` what it replaced, `w` writes a file.
            let commands = trimmed.split([';', '\n', '}', '{']).map(str::trim);
            let runs = commands.clone().any(|c| {
                let bare = c
                    .trim_start_matches(|ch: char| ch.is_ascii_digit() || ",$!".contains(ch))
                    .trim_start();
                bare == "e"
                    || bare.starts_with("e ")
                    || (bare.starts_with('s') && bare.len() > 3 && {
                        let delimiter = bare.chars().nth(1).unwrap_or('/');
                        let flags = bare.rsplit(delimiter).next().unwrap_or_default();
                        flags.len() < 6 && flags.contains('e')
                    })
            });
            if runs {
                self.found.add(Flag::ExecShell, "sed that runs a program");
            }
            if let Some(at) = trimmed.find("w /") {
                let path = trimmed.get(at + 2..).unwrap_or_default().to_owned();
                self.writes(&Arg::literal(&path));
            }
        }
        let in_place = args.iter().any(|a| {
            a.text.starts_with("--in-place")
                || a.is_option() && !a.text.starts_with("--") && a.text.contains('i')
        });
        if in_place {
            for file in &files {
                self.writes(file);
            }
        }
    }

    fn editor(&mut self, name: &str, args: &[Arg]) {
        let runs = args.iter().any(|a| {
            let t = a.text.as_str();
            t.contains(":!")
                || t.starts_with("+!")
                || t.starts_with("!")
                || t.contains("system(")
                || t == "--eval"
                || t == "-S"
                || t == "--cmd"
                || t.starts_with("+") && t.contains("!")
        });
        if runs {
            self.found.add(Flag::ExecShell, &format!("{name} runs a program"));
        }
        if name != "view" {
            self.writes_all(args);
        }
    }

    fn tar(&mut self, args: &[Arg]) {
        let has = |p: &str| args.iter().any(|a| a.text.starts_with(p));
        if has("--checkpoint-action")
            || has("--to-command")
            || has("--use-compress-program")
            || has("-I")
            || has("--rsh-command")
            || has("--info-script")
            || has("--new-volume-script")
        {
            self.found.add(Flag::ExecShell, "tar that runs a program");
        }
        if has("--remove-files") {
            self.found.add(Flag::ExecDelete, "tar removes files");
        }
        let mode =
            args.first().map(|a| a.text.trim_start_matches('-').to_owned()).unwrap_or_default();
        let extracts = has("--extract")
            || has("--get")
            || has("-x")
            || mode.contains('x') && !mode.contains('c');
        if extracts {
            let dir = Self::option(args, &["C", "directory"]).cloned().or_else(|| {
                args.iter().find_map(|a| a.text.strip_prefix("--directory=")).map(Arg::literal)
            });
            let here = Arg::literal(".");
            self.writes(&dir.unwrap_or(here));
        } else if let Some(file) = Self::option(args, &["f", "file"]).cloned() {
            self.writes(&file);
        }
    }

    fn rsync(&mut self, args: &[Arg]) {
        if args.iter().any(|a| a.text.starts_with("--delete") || a.text == "--remove-source-files")
        {
            self.found.add(Flag::ExecDelete, "rsync deletes");
        }
        let shell = Self::option(args, &["e", "rsh"]);
        let harmless = shell.is_none_or(|s| s.text == "ssh" || s.text.starts_with("ssh "));
        if !harmless || args.iter().any(|a| a.text.starts_with("--rsync-path")) {
            self.found.add(Flag::ExecShell, "rsync that runs a program");
        }
        self.last_written(args);
    }

    fn last_written(&mut self, args: &[Arg]) {
        let target = args.iter().rfind(|a| !a.is_option()).cloned();
        // host:path is another machine's.
        if let Some(target) =
            target.filter(|t| !t.text.split('/').next().unwrap_or_default().contains(':'))
        {
            self.writes(&target);
        }
    }

    /// Programs that write the files that they are given.
    fn files(&mut self, name: &str, args: &[Arg]) {
        let valued = |names: &[&str]| Self::option(args, names).cloned();
        match name {
            "cp" | "mv" | "ln" | "install" | "scp" | "link" => {
                let target = valued(&["t", "target-directory"]).or_else(|| {
                    args.iter()
                        .find_map(|a| a.text.strip_prefix("--target-directory="))
                        .map(Arg::literal)
                });
                match target {
                    Some(target) => self.writes(&target),
                    None => self.last_written(args),
                }
                if name == "mv" {
                    self.writes_all(args);
                }
                if name == "scp" {
                    let runs =
                        args.iter().any(|a| a.text.contains("ProxyCommand") || a.text == "-S");
                    if runs {
                        self.found.add(Flag::ExecShell, "scp that runs a program");
                    }
                }
            }
            "wget" => {
                for file in [valued(&["O", "output-document"]), valued(&["P", "directory-prefix"])]
                    .into_iter()
                    .flatten()
                {
                    self.writes(&file);
                }
                if let Some(file) = args.iter().find_map(|a| {
                    a.text
                        .strip_prefix("--output-document=")
                        .or_else(|| a.text.strip_prefix("-O").filter(|t| !t.is_empty()))
                }) {
                    self.writes(&Arg::literal(file));
                }
                if args.iter().any(|a| a.text.starts_with("--use-askpass")) {
                    self.found.add(Flag::ExecShell, "wget that runs a program");
                }
            }
            "curl" => {
                for file in
                    [valued(&["o", "output"]), valued(&["output-dir"])].into_iter().flatten()
                {
                    self.writes(&file);
                }
            }
            "unzip" | "7z" => {
                if let Some(dir) = valued(&["d"]) {
                    self.writes(&dir);
                }
            }
            "openssl" => {
                if let Some(at) =
                    args.iter().position(|a| matches!(a.text.as_str(), "-out" | "-keyout"))
                    && let Some(file) = args.get(at + 1).cloned()
                {
                    self.writes(&file);
                }
            }
            "sort" | "gpg" => {
                if let Some(file) = valued(&["o", "output"]) {
                    self.writes(&file);
                }
                if args.iter().any(|a| a.text.starts_with("--compress-program")) {
                    self.found.add(Flag::ExecShell, "sort that runs a program");
                }
            }
            "gzip" | "gunzip" | "xz" | "bzip2"
                if args.iter().any(|a| {
                    matches!(
                        a.text.as_str(),
                        "-c" | "-l" | "-t" | "-k" | "--stdout" | "-dc" | "-cd"
                    )
                }) => {}
            "sftp" => self.found.add(Flag::ExecShell, "sftp does what its input says"),
            "split" if args.iter().any(|a| a.text.starts_with("--filter")) => {
                self.found.add(Flag::ExecShell, "split that runs a program");
            }
            "mktemp" => {}
            // The first word of these is a mode or an owner, not a file.
            "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" | "setcap" => {
                let paths: Vec<Arg> =
                    args.iter().filter(|a| !a.is_option()).skip(1).cloned().collect();
                for path in &paths {
                    self.writes(path);
                }
                if name == "chmod"
                    && args.iter().any(|a| {
                        a.text.contains("+s") || a.text.starts_with("4") && a.text.len() == 4
                    })
                {
                    self.found
                        .add(Flag::ExecSystemFiles, "a file that runs with its owner's rights");
                }
            }
            _ => self.writes_all(args),
        }
    }
}

/// A text for `cmd` or PowerShell: it is not parsed, so it is code that cannot
/// be looked into; what is plainly named in it is found all the same.
pub(super) fn windows(text: &str, found: &mut Finding) {
    found.add(Flag::ExecShell, "a text for cmd or PowerShell");
    let lower = text.to_ascii_lowercase();
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
