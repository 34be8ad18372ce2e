//! Programs that change disks, partitions and file systems.

use super::{walk::Walk, words::Arg};
use crate::safety::Flag;

impl Walk<'_> {
    pub(super) fn disk(&mut self, name: &str, args: &[Arg]) {
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
            "badblocks" => !args.iter().any(|a| a.is_option() && a.text.contains(['w', 'n'])),
            "debugfs" => !has(&["-w"]),
            "e2label" | "swaplabel" | "fatlabel" => plain < 2,
            "mount" => lists_mounts(args),
            "partx" | "kpartx" => has(&["-s", "--show", "-l"]),
            "fstrim" => has(&["-n", "--dry-run"]),
            "lvm" => matches!(first, "pvs" | "vgs" | "lvs" | "version" | "fullreport"),
            "iscsiadm" => !has(&["--login", "-l", "--logout", "-u", "-o"]),
            "xfs_fsr" | "e4defrag" => has(&["-c"]),
            _ => has(&["--version", "--help"]),
        };
        if !looks {
            self.found.add(Flag::ExecDisks, name);
            let subvolume = name == "btrfs" && has(&["delete", "del"]);
            if subvolume || matches!(name, "lvremove" | "vgremove" | "pvremove") {
                self.found.add(Flag::ExecDelete, name);
            }
        }
    }

    pub(super) fn dd(&mut self, args: &[Arg]) {
        let measures = args.iter().any(|a| a.text == "of=/dev/null");
        for arg in args {
            if arg.text == "if=/dev/null" {
                self.found.add(Flag::ExecDelete, "empties a file");
            }
            // A whole disk is read past the rights of all its files.
            if !measures && arg.text.strip_prefix("if=").is_some_and(super::outputs::is_disk) {
                self.found.add(Flag::ExecDisks, "dd reads a disk");
            }
            let out = ["of=", "hof=", "ofs=", "wipe="];
            if let Some(path) = out.iter().find_map(|name| arg.text.strip_prefix(name)) {
                let target = Arg { text: path.to_owned(), unknown: arg.unknown };
                if target.unknown {
                    self.found.add(Flag::ExecDisks, "dd to where it cannot be known");
                }
                self.writes(&target);
            }
        }
    }
}

/// Whether `mount` only lists what is mounted.
fn lists_mounts(args: &[Arg]) -> bool {
    let mut value = false;
    args.iter().all(|a| {
        let of_former = std::mem::take(&mut value);
        value = a.text == "-t";
        of_former
            || value
            || matches!(a.text.as_str(), "-l" | "-v" | "-h" | "-V" | "--help" | "--version")
            || a.text == "--show-labels"
    })
}
