//! A guest with a real QEMU guest agent: Debian's `qemu-ga` as a process of its
//! own, in a layer of mounts that is lost in the end, with its socket where the
//! simulator speaks to it.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixStream, process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use pve_sim::Options;
use tempfile::TempDir;

use crate::{Estate, eventually};

const PROGRAM: &str = "/usr/sbin/qemu-ga";
/// What the guest's own programs come before: `/usr/local/bin`.
const PATH: &str = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What is written to outlives an agent; beside it a small place, and one that is read-only.
const MOUNTS: &str = "set -e
    mount --bind \"$1/srv\" /srv
    mount --bind \"$1/tmp\" /tmp
    shift
    mkdir -p /srv/small /srv/fixed
    mount -t tmpfs -o size=256k tmpfs /srv/small
    mount -t tmpfs tmpfs /srv/fixed
    echo old >/srv/fixed/file
    mount -o remount,ro /srv/fixed
    mount -t tmpfs -o mode=755 tmpfs /usr/local/bin
    mount -t tmpfs -o mode=755 tmpfs /run
    cd /
    exec \"$@\"";

/// A guest whose agent runs; both end when it is dropped.
pub struct Guest {
    holder: Child,
    folder: TempDir,
    options: Vec<String>,
}

impl Guest {
    /// A guest whose agent has these options. `None`, with the reason printed,
    /// where it cannot be made and nothing insists.
    ///
    /// # Panics
    /// When it cannot be made although `E2E_ALL` or `CI` says that it must.
    pub fn start(options: &[&str]) -> Option<Self> {
        let root = fs::read_to_string("/proc/self/status")
            .unwrap_or_default()
            .lines()
            .any(|line| line.starts_with("Uid:\t0\t0\t"));
        let why = match (root, PathBuf::from(PROGRAM).exists()) {
            (false, _) => "this needs root",
            (true, false) => "qemu-ga is missing (scripts/setup --all installs it)",
            (true, true) => {
                // Not below /tmp, which is the guest's own.
                let folder = tempfile::tempdir_in("/var/tmp").unwrap();
                for name in ["srv", "tmp"] {
                    fs::create_dir(folder.path().join(name)).unwrap();
                }
                let options = options.iter().map(ToString::to_string).collect();
                let holder = launch(&folder, &options);
                let guest = Self { holder, folder, options };
                guest.wait();
                return Some(guest);
            }
        };
        let must = ["CI", "E2E_ALL"].iter().any(|name| std::env::var_os(name).is_some());
        assert!(!must, "{why}");
        println!("skipped: {why}");
        None
    }

    fn wait(&self) {
        eventually("the agent listens", || UnixStream::connect(self.socket()).is_ok());
    }

    /// Where its agent listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// The sample estate, whose VM 100 has this agent.
    pub fn estate(&self) -> Estate {
        Estate::start(Options { agent_sockets: vec![(100, self.socket())], ..Options::default() })
    }

    /// Where a file of the guest is for this process. What is below `/srv` and
    /// `/tmp` is there without the agent too.
    pub fn path(&self, path: &str) -> PathBuf {
        let lasts = ["/srv/small", "/srv/fixed"].iter().all(|place| !path.starts_with(place))
            && ["/srv", "/tmp"].iter().any(|place| path.starts_with(place));
        match lasts {
            true => self.folder.path().join(&path[1..]),
            false => PathBuf::from(format!("/proc/{}/root{path}", self.pid())),
        }
    }

    /// Makes a program of the guest's own, before all others of that name.
    pub fn program(&self, name: &str, text: &str) {
        let path = self.path(&format!("/usr/local/bin/{name}"));
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The agent's process.
    pub fn pid(&self) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.holder.id());
        fs::read_to_string(children).unwrap().trim().parse().unwrap()
    }

    /// Ends the agent at once, and everything that it started.
    pub fn kill(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }

    /// Starts the agent anew; `/srv` and `/tmp` are as they were.
    pub fn restart(&mut self) {
        self.kill();
        let _ = fs::remove_file(self.socket());
        self.holder = launch(&self.folder, &self.options);
        self.wait();
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.kill();
    }
}

fn launch(folder: &TempDir, options: &Vec<String>) -> Child {
    let folder = folder.path();
    let log = fs::File::create(folder.join("log")).unwrap();
    Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["sh", "-c", MOUNTS, "sh"])
        .arg(folder)
        .args([PROGRAM, "--method=unix-listen"])
        .arg("--path")
        .arg(folder.join("socket"))
        .arg("--statedir")
        .arg(folder)
        .arg("--pidfile")
        .arg(folder.join("pid"))
        .args(options)
        .env_clear()
        .env("PATH", PATH)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0)
        .spawn()
        .unwrap()
}
