//! Programs that write the file which an option or a place among their words names.

use super::{
    walk::Walk,
    words::Arg,
    wrappers::{has_long, value_of},
};
use crate::safety::Flag;

/// Which of the words that are no options are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    None,
    /// The one at this place, from 0.
    At(usize),
    Last,
    All,
}

/// Where a program writes.
struct Output {
    names: &'static [&'static str],
    short: &'static [char],
    long: &'static [&'static str],
    place: Place,
}

const fn output(
    names: &'static [&'static str],
    short: &'static [char],
    long: &'static [&'static str],
    place: Place,
) -> Output {
    Output { names, short, long, place }
}

const OUTPUTS: &[Output] = &[
    output(
        &["curl"],
        &['D', 'c'],
        &[
            "dump-header",
            "cookie-jar",
            "trace",
            "trace-ascii",
            "stderr",
            "etag-save",
            "hsts",
            "alt-svc",
            "libcurl",
        ],
        Place::None,
    ),
    output(
        &["wget"],
        &['o', 'a'],
        &["output-file", "append-output", "save-cookies", "hsts-file", "rejected-log", "warc-file"],
        Place::None,
    ),
    output(&["aria2c"], &['d', 'o', 'l'], &["dir", "out", "log", "save-session"], Place::None),
    output(&["axel", "http", "https", "lwp-download"], &['o'], &["output"], Place::None),
    output(&["iconv", "shuf", "yq", "jo", "zstd"], &['o'], &["output"], Place::None),
    output(&["uudecode", "uuencode"], &['o'], &["output-file"], Place::None),
    output(
        &["gcc", "cc", "g++", "c++", "clang", "clang++", "ld", "as", "tcc", "rustc", "nasm"],
        &['o'],
        &["output"],
        Place::None,
    ),
    output(&["objcopy", "dpkg-deb"], &[], &[], Place::Last),
    output(
        &["dos2unix", "unix2dos", "recode", "convmv", "mmv", "prename", "setfattr"],
        &[],
        &[],
        Place::All,
    ),
    output(&["strip", "chrpath", "patchelf", "upx"], &['o'], &[], Place::All),
    output(&["csplit"], &['f'], &["prefix"], Place::None),
    output(
        &["script"],
        &['O', 'I', 'B', 'T'],
        &["log-out", "log-in", "log-io", "log-timing"],
        Place::At(0),
    ),
    output(&["mktemp"], &['p'], &["tmpdir"], Place::All),
    output(&["ar"], &[], &["output"], Place::At(1)),
    output(&["xxd", "uniq"], &[], &[], Place::At(1)),
    output(&["fallocate"], &[], &[], Place::Last),
    output(&["ddrescue", "gddrescue"], &[], &[], Place::At(1)),
    output(&["ntfsclone"], &['o', 'O'], &["output", "overwrite"], Place::None),
    output(&["mcopy", "ffmpeg", "convert", "magick", "wkhtmltopdf", "lz4"], &[], &[], Place::Last),
    output(&["htpasswd", "htdigest"], &[], &[], Place::At(0)),
    output(&["tcpdump", "tshark", "dumpcap"], &['w'], &[], Place::None),
    output(&["strace", "ltrace", "time", "perf"], &['o'], &["output"], Place::None),
    output(&["pg_dump", "pg_dumpall"], &['f'], &["file"], Place::None),
    output(&["mysqldump", "mariadb-dump"], &['r', 'T'], &["result-file", "tab"], Place::None),
    output(&["mongodump"], &['o'], &["out", "archive"], Place::None),
    output(&["ssh-keygen"], &['f'], &[], Place::None),
    output(&["keytool"], &[], &["keystore", "file"], Place::None),
    output(&["zip", "rar"], &[], &[], Place::At(0)),
    output(&["unsquashfs", "cabextract", "unrar"], &['d'], &["dest", "directory"], Place::None),
    output(&["mksquashfs"], &[], &[], Place::At(1)),
    output(
        &["genisoimage", "mkisofs", "xorriso", "xorrisofs", "pandoc", "dot"],
        &['o'],
        &["output"],
        Place::None,
    ),
    output(&["crudini", "ini-file"], &[], &["output"], Place::At(0)),
    output(&["grub-mkconfig", "grub2-mkconfig"], &['o'], &["output"], Place::None),
];

/// Programs that only look at a device that they are given.
const DEVICE_READERS: [&str; 47] = [
    "lsblk",
    "blkid",
    "file",
    "ls",
    "stat",
    "df",
    "findmnt",
    "udevadm",
    "dumpe2fs",
    "xfs_info",
    "hexdump",
    "xxd",
    "od",
    "head",
    "tail",
    "cat",
    "pv",
    "iostat",
    "lsof",
    "fuser",
    "test",
    "[",
    "cmp",
    "sha256sum",
    "sha1sum",
    "md5sum",
    "b2sum",
    "readlink",
    "realpath",
    "du",
    "tree",
    "basename",
    "dirname",
    "echo",
    "printf",
    "zdb",
    "lsscsi",
    "e2freefrag",
    "filefrag",
    "grep",
    "awk",
    "strings",
    "wc",
    "lshw",
    "inxi",
    "sg_inq",
    "sg_logs",
];

impl Walk<'_> {
    /// Files that a program writes by its options, beside what else it does.
    pub(super) fn outputs(&mut self, name: &str, args: &[Arg]) {
        if name == "curl" && (value_of(args, 'K', "config").is_some()) {
            self.found.add(Flag::ExecShell, "curl does what a file says");
        }
        if matches!(name, "yq" | "xmlstarlet")
            && args.iter().any(|a| matches!(a.text.as_str(), "-i" | "--inplace" | "-L"))
        {
            self.writes_all(args);
        }
        if name == "zip" && (args.iter().any(|a| a.text == "-m") || has_long(args, "move")) {
            self.found.add(Flag::ExecDelete, "zip removes what it packed");
        }
        if name.starts_with("partclone.") {
            for value in [value_of(args, 'o', "output"), value_of(args, 'O', "overwrite")] {
                value.iter().for_each(|path| self.writes_to(path));
            }
        }
        let Some(output) = OUTPUTS.iter().find(|o| o.names.contains(&name)) else { return };
        // It shows, checks or changes a list of hosts.
        if name == "ssh-keygen" {
            if args.iter().any(|a| a.text == "-A") {
                self.found.add(Flag::ExecSystemFiles, "makes the keys of the SSH server");
            }
            if args.iter().any(|a| a.text.starts_with("-D")) {
                self.found.add(Flag::ExecShell, "ssh-keygen that loads code");
            }
        }
        let shows = ["-l", "-y", "-e", "-L", "-F", "-B"];
        if name == "ssh-keygen" && args.iter().any(|a| shows.iter().any(|o| a.text.starts_with(o)))
        {
            return;
        }
        if name == "htpasswd" && args.iter().any(|a| a.is_option() && a.text.contains('n')) {
            return;
        }
        let short = output.short.iter().map(|c| value_of(args, *c, "\0"));
        let long = output.long.iter().map(|l| value_of(args, '\0', l));
        let named: Vec<Arg> = short.chain(long).flatten().collect();
        for path in &named {
            self.writes(path);
        }
        let plain: Vec<&Arg> = args.iter().filter(|a| !a.is_option()).collect();
        match output.place {
            Place::None => {}
            Place::At(place) => plain.get(place).into_iter().for_each(|path| self.writes(path)),
            Place::Last => plain.last().into_iter().for_each(|path| self.writes(path)),
            Place::All => plain.into_iter().for_each(|path| self.writes(path)),
        }
    }

    /// A program of which nothing is known: where it is told to put something out, and disks.
    pub(super) fn unknown_program(&mut self, name: &str, args: &[Arg]) {
        let reads = DEVICE_READERS.contains(&name) || name.starts_with("fsck");
        for arg in args {
            let value = arg.text.split_once('=').map_or(arg.text.as_str(), |(_, value)| value);
            if !reads && is_disk(value) {
                self.found.add(Flag::ExecDisks, &format!("{name} is given {value}"));
            }
        }
        if reads || OUTPUTS.iter().any(|o| o.names.contains(&name)) {
            return;
        }
        let long = [
            "output",
            "outfile",
            "output-file",
            "out",
            "dest",
            "destination",
            "log-file",
            "logfile",
        ];
        let values = [value_of(args, 'o', "\0")]
            .into_iter()
            .chain(long.iter().map(|l| value_of(args, '\0', l)))
            .flatten();
        for path in values.filter(|v| v.text.starts_with('/')).collect::<Vec<_>>() {
            self.writes(&path);
        }
    }
}

/// Whether a path is a disk, a part of one, or what is made of disks.
pub(super) fn is_disk(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/") else { return false };
    let letters =
        ["sd", "vd", "xvd", "hd", "nvme", "mmcblk", "md", "dm-", "loop", "sr", "nbd", "rbd", "zd"];
    ["mapper/", "disk/", "zvol/", "md/", "block/"].iter().any(|dir| name.starts_with(dir))
        || letters.iter().any(|l| {
            name.strip_prefix(l).is_some_and(|rest| {
                !rest.is_empty()
                    && rest.len() <= 8
                    && rest.bytes().all(|b| b.is_ascii_alphanumeric())
            })
        })
}
