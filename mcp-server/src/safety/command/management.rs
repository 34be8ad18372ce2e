//! Programs that manage machines and clusters in ways of their own.

use super::{walk::Walk, words::Arg};
use crate::safety::Flag;

impl Walk<'_> {
    /// Answers whether this is one of them.
    pub(super) fn management(&mut self, name: &str, args: &[Arg]) -> bool {
        let has = |words: &[&str]| args.iter().any(|a| words.contains(&a.text.as_str()));
        let starts = |word: &str| args.iter().any(|a| a.text.starts_with(word));
        let mut add = |flag: Flag| self.found.add(flag, name);
        match name {
            "ipmitool" | "ipmi-power" | "ipmi-chassis" => {
                let power = ["on", "off", "cycle", "reset", "soft", "diag"];
                if has(&["power", "chassis", "mc", "bmc"]) && has(&power)
                    || starts("--off")
                    || starts("--cycle")
                    || starts("--reset")
                {
                    add(Flag::ExecPower);
                }
                if has(&["sel"]) && has(&["clear", "delete"]) {
                    add(Flag::ExecDelete);
                }
                if has(&["user"]) && has(&["set", "priv", "enable", "disable"]) {
                    add(Flag::ExecUsers);
                }
                if has(&["lan"]) && has(&["set", "alert"]) {
                    add(Flag::ExecNetwork);
                }
                if has(&["raw", "exec", "shell"]) {
                    add(Flag::ExecShell);
                }
            }
            "cloud-init" => {
                if has(&["clean"]) {
                    add(Flag::ExecSystemFiles);
                    if has(&["--reboot", "-r"]) {
                        add(Flag::ExecPower);
                    }
                }
                if has(&["init", "modules", "single", "boot-hook"]) {
                    add(Flag::ExecShell);
                }
            }
            "semanage" => {
                if !(has(&["-l", "--list", "-E", "--extract", "export", "-h"]) || args.is_empty()) {
                    add(Flag::ExecSystemFiles);
                }
            }
            "pfctl" => {
                let looks =
                    args.iter().any(|a| a.text.starts_with("-s") || a.text.starts_with("-vs"));
                let tries = starts("-n");
                if !(looks || tries || args.is_empty()) {
                    add(Flag::ExecNetwork);
                }
            }
            "augtool" | "crudini" => {
                if has(&[
                    "set", "rm", "ins", "mv", "clear", "setm", "save", "--set", "--del", "--merge",
                ]) || starts("-s")
                    || starts("--autosave")
                {
                    add(Flag::ExecSystemFiles);
                }
                if name == "augtool" && (starts("-f") || starts("--file")) {
                    add(Flag::ExecShell);
                }
            }
            "incrontab" => {
                if !has(&["-l", "--list"]) {
                    add(Flag::ExecSystemFiles);
                }
            }
            "grub-mkconfig" | "grub2-mkconfig" => {
                if starts("-o") || starts("--output") {
                    add(Flag::ExecSystemFiles);
                }
            }
            "influx" => {
                let text =
                    args.iter().map(|a| a.text.to_ascii_lowercase()).collect::<Vec<_>>().join(" ");
                if text.contains("drop ") || text.contains("delete") {
                    add(Flag::ExecDelete);
                }
            }
            "qemu-img" => {
                let verb = args.first().map_or("", |a| a.text.as_str());
                let target = args.iter().rfind(|a| !a.is_option()).cloned();
                if matches!(
                    verb,
                    "convert" | "create" | "dd" | "commit" | "rebase" | "resize" | "amend"
                ) {
                    let out =
                        args.iter().find_map(|a| a.text.strip_prefix("of=")).map(Arg::literal);
                    if let Some(target) = out.or(target) {
                        self.writes(&target);
                    }
                }
            }
            "ipa" => {
                let verb = args.iter().find(|a| !a.is_option()).map_or("", |a| a.text.as_str());
                let looks = ["-find", "-show", "-status"].iter().any(|end| verb.ends_with(end));
                if !(looks || matches!(verb, "" | "ping" | "env" | "help")) {
                    add(Flag::ExecUsers);
                    if verb.ends_with("-del") {
                        add(Flag::ExecDelete);
                    }
                }
            }
            "pcs" | "crm" | "crmsh" | "qm" | "pct" | "pvesh" | "pvecm" | "pveum" | "pvesm"
            | "pveceph" | "ha-manager" | "pvesr" | "vzdump" | "qmrestore" | "pvenode" => {
                return self.cluster_tool(name, args);
            }
            "nodetool" => {
                let looks = [
                    "status",
                    "info",
                    "ring",
                    "tpstats",
                    "version",
                    "compactionstats",
                    "netstats",
                    "describecluster",
                    "tablestats",
                    "cfstats",
                    "gossipinfo",
                    "listsnapshots",
                    "gcstats",
                    "proxyhistograms",
                    "getendpoints",
                    "tablehistograms",
                    "help",
                ];
                if !args.is_empty() && !has(&looks) {
                    add(Flag::ExecServices);
                }
                if has(&["clearsnapshot", "decommission", "removenode", "assassinate"]) {
                    add(Flag::ExecDelete);
                }
            }
            "aws" | "gcloud" | "gsutil" | "az" | "doctl" | "hcloud" | "linode-cli" | "oci"
            | "mc" | "s3cmd" | "s5cmd" | "b2" | "swift" | "openstack" | "kind" | "minikube"
            | "k3d" | "vagrant" | "buildah" | "skopeo" | "eksctl" | "wp" | "drush" | "occ"
            | "scw" | "pulumi" | "heroku" | "flyctl" | "fly" => {
                let deletes = |a: &Arg| {
                    let word = a.text.trim_start_matches("--");
                    ["rm", "rb", "del", "erase", "purge", "prune", "reset", "sql-drop"]
                        .contains(&word)
                        || ["delete", "destroy", "remove", "terminate"]
                            .iter()
                            .any(|verb| word.starts_with(verb))
                        || word.ends_with(":delete")
                };
                if args.iter().any(deletes) {
                    add(Flag::ExecDelete);
                }
            }
            "exportfs" => {
                if args.iter().any(|a| !matches!(a.text.as_str(), "-v" | "-s")) {
                    add(Flag::ExecDisks);
                }
            }
            "trash-put" | "trash" | "trash-empty" => add(Flag::ExecDelete),
            "runit-init" | "fastboot" | "s2ram" | "s2disk" | "s2both" | "zzz" | "ZZZ"
            | "systemd-sleep" | "systemd-shutdown" => add(Flag::ExecPower),
            "skill" | "snice" | "slay" => add(Flag::ExecServices),
            "lpasswd" | "pwunconv" | "grpunconv" | "cppw" | "cpgr" | "systemd-sysusers"
            | "luseradd" | "lusermod" | "luserdel" | "gitlab-rails" => {
                add(if name == "gitlab-rails" { Flag::ExecShell } else { Flag::ExecUsers });
            }
            "homectl" | "authconfig" | "pam_tally2" => {
                let looks = ["list", "inspect", "--test", "--probe", "-u", "--user"];
                let resets = starts("--reset") || starts("-r") || has(&["--update", "--updateall"]);
                let verb = args.first().map_or("", |a| a.text.as_str());
                if resets || name == "homectl" && !looks.contains(&verb) && !args.is_empty() {
                    add(Flag::ExecUsers);
                }
            }
            "ipvsadm"
            | "conntrack"
            | "mii-tool"
            | "macchanger"
            | "iwconfig"
            | "csf"
            | "resolvconf"
            | "firewall-offline-cmd"
            | "ss"
            | "vtysh"
            | "birdc"
            | "birdcl"
            | "wicked"
            | "ipsec"
            | "swanctl"
            | "cscli"
            | "openvpn" => self.network_tool(name, args),
            "fsfreeze" | "xfs_freeze" | "sg_format" | "vgcfgrestore" | "pivot_root" | "megacli"
            | "MegaCli64" | "storcli" | "storcli64" | "perccli" | "newfs" | "gpart"
            | "targetcli" | "zramctl" | "vdo" | "stratis" | "fusermount" | "fusermount3"
            | "sshfs" | "arcconf" | "ssacli" | "hpssacli" | "tw_cli" => {
                let looks =
                    ["show", "status", "list", "-l", "--list", "report", "ls", "stats", "get"];
                let queries = args.iter().any(|a| a.text.to_ascii_lowercase().contains("info"))
                    || args.iter().any(|a| looks.contains(&a.text.to_ascii_lowercase().as_str()));
                if !(args.is_empty() || queries) {
                    add(Flag::ExecDisks);
                    if has(&["destroy", "remove", "delete", "del"]) {
                        add(Flag::ExecDelete);
                    }
                }
            }
            "telnetd" | "inetd" | "xinetd" | "tcpsvd" | "udpsvd" | "uvx" | "nix-shell"
            | "gcore" | "lftp" | "smbclient" | "emacsclient" | "vimdiff" | "rvim" | "rview"
            | "stunnel"
                if !args.is_empty() =>
            {
                let command = ["-c", "-e", "-f", "-l", "-L", "--run"];
                let runs = matches!(name, "uvx" | "nix-shell" | "gcore" | "stunnel" | "telnetd");
                if runs || args.iter().any(|a| command.iter().any(|o| a.text.starts_with(o))) {
                    add(Flag::ExecShell);
                }
            }
            "nix" => match args.first().map_or("", |a| a.text.as_str()) {
                "run" | "shell" | "develop" | "bundle" => add(Flag::ExecShell),
                "profile" if has(&["install", "remove", "upgrade", "rollback", "add"]) => {
                    add(Flag::ExecPackages);
                }
                _ => {}
            },
            "hg" | "svn" => {
                let sets = |a: &Arg| a.text.starts_with("--config");
                if args.iter().any(sets) {
                    add(Flag::ExecShell);
                }
            }
            "tex" | "pdftex" | "pdflatex" | "xelatex" | "lualatex" | "latex" => {
                if starts("-shell-escape")
                    || starts("--shell-escape")
                    || args.iter().any(|a| a.text.contains("write18"))
                {
                    add(Flag::ExecShell);
                }
            }
            "nginx" | "sshd" | "apache2" | "httpd" | "dnsmasq" | "rsyslogd"
                if has(&["-c", "-f", "-C", "-g"]) && !has(&["-t", "-T"]) =>
            {
                add(Flag::ExecServices);
                add(Flag::ExecShell);
            }
            "net" => {
                if has(&["join", "leave", "setauthuser", "add", "delete"]) {
                    add(Flag::ExecUsers);
                }
            }
            _ => return false,
        }
        true
    }

    /// Tools of a cluster or of Proxmox that run inside the guest.
    fn cluster_tool(&mut self, name: &str, args: &[Arg]) -> bool {
        let words: Vec<&str> =
            args.iter().filter(|a| !a.is_option()).map(|a| a.text.as_str()).collect();
        let verb = words.first().copied().unwrap_or_default();
        let second = words.get(1).copied().unwrap_or_default();
        let looks = [
            "list",
            "ls",
            "status",
            "config",
            "show",
            "get",
            "pending",
            "showcmd",
            "df",
            "cpusets",
            "listsnapshot",
            "nodes",
            "usage",
            "help",
            "version",
            "path",
            "resources",
            "groupconfig",
            "rulesconfig",
            "permissions",
            "cibadmin",
            "quorum",
            "property",
        ];
        let changes = [
            "set",
            "delete",
            "del",
            "remove",
            "create",
            "add",
            "update",
            "enable",
            "disable",
            "standby",
            "unstandby",
            "move",
            "ban",
            "cleanup",
            "restart",
            "migrate",
        ];
        if verb.is_empty() || looks.contains(&verb) && !changes.contains(&second) {
            return true;
        }
        let flag = match name {
            "pveum" if !matches!(second, "list" | "permissions") => Flag::ExecUsers,
            "pveum" => return true,
            "pvesh" => Flag::ExecShell,
            "pvesm" | "pveceph" => Flag::ExecDisks,
            _ => Flag::ExecServices,
        };
        self.found.add(flag, &format!("{name} {verb}"));
        if ["destroy", "delete", "delnode", "delsnapshot", "remove", "purge"]
            .iter()
            .any(|d| verb == *d || second == *d)
        {
            self.found.add(Flag::ExecDelete, &format!("{name} {verb}"));
        }
        true
    }

    /// Tools of the network of which few words change something.
    fn network_tool(&mut self, name: &str, args: &[Arg]) {
        let has = |words: &[&str]| args.iter().any(|a| words.contains(&a.text.as_str()));
        let starts = |word: &str| args.iter().any(|a| a.text.starts_with(word));
        let plain = args.iter().filter(|a| !a.is_option()).count();
        let changes = match name {
            "ipvsadm" => {
                !(args.is_empty() || starts("-L") || starts("-l") || starts("-S") || starts("-Ln"))
            }
            "conntrack" => {
                has(&["-F", "-D", "-U", "-I", "--flush", "--delete", "--update", "--create"])
            }
            "mii-tool" => starts("-r") || starts("-F") || starts("-R") || starts("-A"),
            "macchanger" => !(args.is_empty() || has(&["-s", "--show", "-l"])),
            "iwconfig" => plain > 1,
            "csf" => {
                !(args.is_empty()
                    || starts("-l")
                    || starts("-g")
                    || starts("-h")
                    || starts("-v")
                    || starts("-t"))
            }
            "resolvconf" => has(&["-u", "-a", "-d"]),
            "firewall-offline-cmd" => [
                "--add",
                "--remove",
                "--set",
                "--new",
                "--delete",
                "--change",
                "--enable",
                "--disable",
            ]
            .iter()
            .any(|o| starts(o)),
            "ss" => has(&["-K", "--kill"]),
            "vtysh" => args.iter().any(|a| {
                a.text.starts_with("conf")
                    || a.text.starts_with("clear")
                    || a.text.starts_with("write")
            }),
            "birdc" | "birdcl" => {
                has(&["configure", "disable", "enable", "restart", "reload", "down", "graceful"])
            }
            "wicked" => has(&["ifup", "ifdown", "ifreload"]),
            "ipsec" => has(&[
                "start",
                "stop",
                "restart",
                "reload",
                "update",
                "up",
                "down",
                "rereadall",
                "purge",
            ]),
            "swanctl" => {
                starts("--load")
                    || starts("--initiate")
                    || starts("--terminate")
                    || starts("-i")
                    || starts("-t")
            }
            "cscli" => has(&["delete", "add", "remove", "upgrade", "install"]),
            _ => plain > 0 || !args.is_empty(),
        };
        if changes {
            self.found.add(Flag::ExecNetwork, name);
        }
        let scripts = ["--up", "--down", "--route-up", "--plugin", "--tls-verify", "--config"];
        if name == "openvpn" && scripts.iter().any(|o| starts(o)) {
            self.found.add(Flag::ExecShell, "openvpn can run what it is told");
        }
    }
}
