//! Programs and what they do, by their arguments.

use super::{
    managed::MANAGED,
    reads::VERBS,
    walk::{Input, Walk},
    words::Arg,
};
use crate::safety::Flag;

impl Walk<'_> {
    pub(super) fn named(&mut self, name: &str, args: &[Arg], input: &Input) {
        let has = |wanted: &[&str]| args.iter().any(|a| wanted.contains(&a.text.as_str()));
        let starts = |wanted: &str| args.iter().any(|a| a.text.starts_with(wanted));
        let cluster = |c: char| {
            args.iter().any(|a| a.is_option() && !a.text.starts_with("--") && a.text.contains(c))
        };
        let plain = || args.iter().filter(|a| !a.is_option());
        let count = plain().count();
        self.outputs(name, args);
        if let Some(table) = VERBS.iter().chain(MANAGED).find(|t| t.names.contains(&name)) {
            return self.verbs(table, name, args);
        }
        if self.packages(name, args) || self.store(name, args) || self.management(name, args) {
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
            "logrotate" if !has(&["-d", "--debug"]) => {
                add(Flag::ExecDelete);
                // A configuration can name scripts.
                if !plain().all(|a| a.text.starts_with("/etc/logrotate")) {
                    add(Flag::ExecShell);
                }
            }
            "git" => self.git(args),
            "redis-cli" | "valkey-cli" => self.redis(args, input),
            "mysqladmin" | "mariadb-admin" => self.mysqladmin(args),
            "docker" | "podman" | "nerdctl" | "docker-compose" | "podman-compose" | "crictl"
            | "ctr" => {
                self.docker(name, args, input);
            }
            "dropuser" | "createuser" => add(Flag::ExecUsers),
            "mysql" | "mariadb" | "psql" | "sqlite3" | "mongosh" | "mongo" | "cqlsh"
            | "clickhouse-client" => {
                self.database(name, args, input);
            }
            // Services.
            "service" => {
                let verb = args.get(1).map(|a| a.text.as_str());
                let looks = verb == Some("status") || has(&["--status-all", "--help"]);
                if !looks && !args.is_empty() {
                    add(Flag::ExecServices);
                }
            }
            "rc-service" | "sv" | "invoke-rc.d"
                if !["--query", "status", "--list", "-l", "--exists"]
                    .iter()
                    .any(|verb| args.iter().take(2).any(|a| a.text == *verb)) =>
            {
                add(Flag::ExecServices)
            }
            "rc" | "openrc" if has(&["reboot", "shutdown", "single"]) => {
                add(Flag::ExecPower);
                add(Flag::ExecServices);
            }
            "update-rc.d" | "rc" | "openrc" | "s6-rc" | "start-stop-daemon" | "kill" | "pkill"
            | "killall" | "killall5" | "pg_ctlcluster" | "svc" | "telinit-service" => {
                if name == "kill" && (has(&["-l", "-L"]) || args.iter().any(|a| a.text == "-0")) {
                    return;
                }
                let first = matches!(name, "pkill" | "killall")
                    && plain().any(|a| matches!(a.text.as_str(), "systemd" | "init"));
                if first {
                    add(Flag::ExecPower);
                }
                let everything = args.len() > 1 && args.last().is_some_and(|a| a.text == "-1");
                if name == "kill" && (everything || plain().any(|a| a.text == "1")) {
                    add(Flag::ExecPower);
                }
                add(Flag::ExecServices);
            }
            "chkconfig" if !has(&["--list"]) => add(Flag::ExecServices),
            "fuser" if cluster('k') => add(Flag::ExecServices),
            "nginx" if has(&["-s"]) || args.is_empty() => add(Flag::ExecServices),
            "rndc" if !has(&["status", "-h"]) => add(Flag::ExecServices),
            "fail2ban-client" => self.fail2ban(args),
            "busctl" | "dbus-send" | "gdbus" | "qdbus" => self.bus(name, args),
            "nomad" | "vault" if has(&["leave", "stop", "reload", "delete", "seal"]) => {
                add(Flag::ExecServices);
                if has(&["delete"]) {
                    add(Flag::ExecDelete);
                }
            }
            // Disks.
            name if name.starts_with("mkfs")
                || name.starts_with("fsck") && !cluster('n') && !cluster('N') =>
            {
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
            "dd" | "dcfldd" | "dc3dd" | "sg_dd" | "busybox-dd" => self.dd(args),
            "zfs-auto-snapshot" => add(Flag::ExecDisks),
            // Users.
            "passwd" if has(&["-S", "--status"]) => {}
            "chage" if has(&["-l", "--list"]) => {}
            "pdbedit" if cluster('L') => {}
            "faillock" if !starts("--reset") => {}
            "useradd" | "usermod" | "userdel" | "adduser" | "deluser" | "groupadd" | "groupmod"
            | "groupdel" | "addgroup" | "delgroup" | "gpasswd" | "passwd" | "chpasswd"
            | "chgpasswd" | "chage" | "chsh" | "chfn" | "newusers" | "vipw" | "vigr" | "visudo"
            | "smbpasswd" | "pdbedit" | "faillock" | "pam-auth-update" | "authselect"
            | "ssh-copy-id" | "lid" | "newgidmap" | "pwconv" | "grpconv" | "usermod.shadow" => {
                if name == "visudo" && cluster('c') {
                    return;
                }
                add(Flag::ExecUsers);
                let home = ["-r", "--remove", "-rf", "-fr", "--remove-home", "--remove-all-files"];
                if matches!(name, "userdel" | "deluser") && has(&home) {
                    add(Flag::ExecDelete);
                }
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
                    || starts("--passthrough")
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
                if ["--set", "--reset", "--change", "--flash", "--negotiate", "--coalesce"]
                    .iter()
                    .any(|o| starts(o)) =>
            {
                add(Flag::ExecNetwork)
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
            "iptables-restore" | "ip6tables-restore" if has(&["--test", "-t"]) => {}
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
                if sets && args.iter().any(|a| a.text.starts_with("net") && a.text.contains('=')) {
                    add(Flag::ExecNetwork);
                }
            }
            "grubby" if starts("--info") || starts("--default") => {}
            "run-parts" if has(&["--test", "--list"]) => {}
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
                    || (name.starts_with("dpkg-")
                        && has(&["--list", "--truename", "--listpackage"]))
                    || (name == "proxmox-boot-tool" && has(&["status", "list"]));
                if !looks {
                    add(Flag::ExecSystemFiles);
                }
                if name == "crontab" && has(&["-r"])
                    || name == "systemd-tmpfiles" && has(&["--clean", "--remove", "--purge"])
                {
                    add(Flag::ExecDelete);
                }
            }
            "certbot" => {
                if has(&["certificates", "plugins", "show_account", "--dry-run", "--version"]) {
                    return;
                }
                add(Flag::ExecSystemFiles);
                if has(&["delete", "revoke"]) {
                    add(Flag::ExecDelete);
                }
                if has(&["--nginx", "--apache"]) {
                    add(Flag::ExecServices);
                }
                if starts("--pre-hook") || starts("--post-hook") || starts("--deploy-hook") {
                    add(Flag::ExecShell);
                }
            }
            "hostname" if count > 0 && !has(&["-f", "-i", "-I", "-s", "-d", "--fqdn"]) => {
                add(Flag::ExecSystemFiles)
            }
            "date" if has(&["-s", "--set"]) || starts("--set=") => add(Flag::ExecSystemFiles),
            // Code that cannot be looked into.
            "at" | "batch" if has(&["-l", "-d", "-r", "-c"]) => {}
            "at" | "batch" => match input {
                Input::Text(text) if !starts("-f") => drop(self.text(text, &Input::Nothing)),
                _ => add(Flag::ExecShell),
            },
            "tcpdump" if starts("-z") => add(Flag::ExecShell),
            "nmap" => {
                let path = |a: &Arg| a.text.contains('/') || a.unknown;
                let scripts = args.iter().any(|a| a.text.starts_with("--script") && path(a))
                    || args.windows(2).any(|w| {
                        matches!(w, [option, value] if option.text == "--script" && path(value))
                    });
                if scripts || has(&["--interactive"]) {
                    add(Flag::ExecShell);
                }
            }
            "m4" | "dc" | "ftp" if matches!(input, Input::Text(text) if text.contains(['!', '`']) || text.contains("syscmd")) => {
                add(Flag::ExecShell)
            }
            "m4" | "gnuplot" | "dc" if count > 0 || *input == Input::Unknown => {
                add(Flag::ExecShell)
            }
            "make" | "cmake" | "ninja" | "ansible" | "ansible-playbook" | "puppet"
            | "chef-client" | "salt-call" | "terraform" | "pwsh" | "powershell"
            | "powershell.exe" | "cmd" | "cmd.exe" | "gdb" | "java" | "go" | "screen" | "tmux"
            | "socat" | "ncat" | "nc" | "netcat" | "bpftrace" | "wine" | "mono" | "dotnet"
            | "erl" | "iex" | "jshell" | "poetry" | "pipenv" | "bundle" | "rake" | "rails"
            | "tox" | "pytest" | "mvn" | "gradle" | "ant" | "just" | "scons" | "bazel"
            | "meson" | "npx" | "bunx" | "run-parts" | "mkpasswd-script" => {
                self.code(name, args);
            }
            "ssh" | "mosh" | "rsh" | "telnet"
                if count > 0
                    || args.iter().any(|a| a.text.to_ascii_lowercase().contains("command=")) =>
            {
                add(Flag::ExecShell);
            }
            "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => self.awk(args),
            "sed" | "gsed" => self.sed(args),
            "sudoedit" => self.writes_all(args),
            "less" | "more" | "most"
                if args.iter().any(|a| a.text.starts_with('+') && a.text.contains(['!', '|'])) =>
            {
                add(Flag::ExecShell);
            }
            "man" if starts("-H") || starts("--pager") || starts("-P") || starts("--html") => {
                add(Flag::ExecShell)
            }
            "zip" if starts("-TT") || starts("--unzip-command") => add(Flag::ExecShell),
            "getent" if has(&["shadow", "gshadow"]) => {
                self.found.secret = Some("/etc/shadow".to_owned());
            }
            "vim.tiny" | "vim.basic" | "vim.nox" | "vim.gtk3" => self.editor("vim", args, input),
            "vi" | "vim" | "nvim" | "ex" | "view" | "nano" | "ed" | "emacs" | "joe" | "micro"
            | "mcedit" => self.editor(name, args, input),
            "tar" | "bsdtar" => self.tar(args),
            "rsync" => self.rsync(args),
            // Files.
            "tee" | "sponge" | "touch" | "mkdir" | "chmod" | "chown" | "chgrp" | "setfacl"
            | "chattr" | "mknod" | "mkfifo" | "install" | "cp" | "mv" | "ln" | "link" | "scp"
            | "sftp" | "patch" | "unzip" | "7z" | "7za" | "7zr" | "7zz" | "cpio" | "wget"
            | "curl" | "gunzip" | "gzip" | "xz" | "bzip2" | "split" | "sort" | "rename"
            | "setcap" | "mktemp" | "openssl" | "gpg" => {
                self.files(name, args);
            }
            _ => self.unknown_program(name, args),
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
            super::windows::text(&text.join(" "), None, None, self.found);
        }
    }

    /// Calls over the system's bus.
    fn bus(&mut self, name: &str, args: &[Arg]) {
        let looks = [
            "list",
            "tree",
            "introspect",
            "status",
            "monitor",
            "capture",
            "get-property",
            "--help",
            "--version",
            "help",
        ];
        let verb = args.iter().find(|a| !a.is_option()).map_or("", |a| a.text.as_str());
        if name == "busctl" && looks.contains(&verb) || args.is_empty() {
            return;
        }
        let powers = ["Reboot", "PowerOff", "Halt", "Suspend", "Hibernate", "KExec", "SoftReboot"];
        let power = args
            .iter()
            .any(|a| powers.iter().any(|p| a.text == *p || a.text.ends_with(&format!(".{p}"))));
        if power {
            self.found.add(Flag::ExecPower, "asks the system to go down");
        } else {
            self.found.add(Flag::ExecShell, "a call over the bus that cannot be looked into");
        }
    }
}
