//! A machine like a Proxmox VE node, on loopback: Debian's own files in a layer
//! of their own, real sshd and sudo, the built guard, and a stand-in for `pct`.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    os::unix::{fs::PermissionsExt, net::UnixDatagram, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tempfile::TempDir;

use crate::{built, eventually, repository};

/// What the containers of the node are like.
const CONTAINER: &str =
    "arch: amd64\nhostname: web\nunprivileged: 1\nrootfs: local-lvm:vm-200-disk-0,size=8G\n";
/// What `dpkg` says of the package by which the guard knows Proxmox VE.
const MANAGER: &str = "\nPackage: pve-manager\nStatus: install ok installed\n\
    Maintainer: nobody\nArchitecture: all\nVersion: 9.2.0\nDescription: stand-in\n";

/// A running node. Everything on it ends when it is dropped.
pub struct Node {
    holder: Child,
    pid: u32,
    journal: Arc<Mutex<Vec<String>>>,
    gone: Arc<AtomicBool>,
    _folder: TempDir,
}

/// A running sshd of a node.
pub struct Sshd {
    /// Where it listens, on loopback.
    pub port: u16,
    child: Child,
    log: PathBuf,
}

impl Node {
    /// A node of that name, with the guard, its shipped policy and container
    /// 200 («web»). `None`, with the reason printed, where it cannot be made
    /// and nothing insists.
    ///
    /// # Panics
    /// When it cannot be made although the variable `CI` says that it must.
    pub fn start(name: &str) -> Option<Self> {
        let needs = ["debootstrap", "unshare", "nsenter", "ssh"];
        let missing: Vec<_> = needs.iter().filter(|program| !is_installed(program)).collect();
        let why = if !is_root() {
            "this needs root".to_owned()
        } else if missing.is_empty() {
            return Some(Self::make(name));
        } else {
            format!("these are missing: {missing:?} (scripts/setup --all installs them)")
        };
        assert!(std::env::var_os("CI").is_none(), "{why}");
        println!("skipped: {why}");
        None
    }

    fn make(name: &str) -> Self {
        let scripts = repository().join("tests/ssh");
        let root = Command::new(scripts.join("root")).stderr(Stdio::inherit()).output().unwrap();
        assert!(root.status.success(), "the file tree of the node cannot be made");
        let root = String::from_utf8(root.stdout).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut holder = Command::new("unshare")
            .args(["--mount", "--pid", "--uts", "--fork", "--kill-child"])
            .arg(scripts.join("enter"))
            .args([root.trim(), folder.path().to_str().unwrap(), name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "the node does not start");
        let children = format!("/proc/{0}/task/{0}/children", holder.id());
        let pid = fs::read_to_string(children).unwrap().trim().parse().unwrap();
        let (journal, gone) = (Arc::default(), Arc::default());
        let node = Self { holder, pid, journal, gone, _folder: folder };
        node.furnish(name);
        node
    }

    fn furnish(&self, name: &str) {
        let repository = repository();
        self.write(&format!("/etc/pve/nodes/{name}/lxc/200.conf"), CONTAINER, 0o640);
        let policy = fs::read_to_string(repository.join("packaging/deb/policy.toml")).unwrap();
        self.write("/etc/pve-guard/policy.toml", &policy, 0o644);
        let pct = fs::read_to_string(repository.join("tests/ssh/pct")).unwrap();
        self.write("/usr/sbin/pct", &pct, 0o755);
        let guard = self.path("/usr/sbin/pve-guard");
        fs::copy(built("pve-guard"), &guard).unwrap();
        fs::set_permissions(&guard, fs::Permissions::from_mode(0o755)).unwrap();
        let status = self.path("/var/lib/dpkg/status");
        fs::OpenOptions::new()
            .append(true)
            .open(status)
            .unwrap()
            .write_all(MANAGER.as_bytes())
            .unwrap();
        fs::create_dir_all(self.path("/var/log")).unwrap();
        self.listen_as_journal();
    }

    /// The guard changes nothing on a node without a journal.
    fn listen_as_journal(&self) {
        let socket = UnixDatagram::bind(self.path("/run/systemd/journal/socket")).unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        let (journal, gone) = (self.journal.clone(), self.gone.clone());
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 20];
            while !gone.load(Ordering::Relaxed) {
                if let Ok(count) = socket.recv(&mut buffer) {
                    let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                    journal.lock().unwrap().push(text);
                }
            }
        });
    }

    /// What the system journal was given so far.
    pub fn journal(&self) -> String {
        self.journal.lock().unwrap().join("\n")
    }

    /// The first process of the node, as this machine counts.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where a file of the node is for this process.
    pub fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.pid))
    }

    /// Writes a file of the node, and the folders that it needs.
    pub fn write(&self, path: &str, text: &str, mode: u32) {
        let place = self.path(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, text).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A command that will run on the node, as root.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid.to_string(), "--mount", "--pid", "--uts", "--root"]);
        command.args(["--wd", "--", program]).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C.UTF-8");
        command
    }

    /// Runs a shell script on the node, as root, with arguments.
    pub fn script(&self, script: &str, args: &[&str]) -> Output {
        let mut command = self.command("sh");
        command.args(["-s", "--"]).args(args);
        finish(command, script.as_bytes())
    }

    /// Runs a shell script on the node and gives what it prints.
    ///
    /// # Panics
    /// When it fails.
    pub fn sh(&self, script: &str) -> String {
        let output = self.script(script, &[]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// How many processes on the node have this in their command line.
    pub fn count(&self, needle: &str) -> usize {
        let output = self.command("pgrep").args(["--full", "--count", needle]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
    }

    /// A host key of the node, as it stands in its `.pub` file.
    pub fn host_key(&self, kind: &str) -> String {
        fs::read_to_string(self.path(&format!("/etc/ssh/ssh_host_{kind}_key.pub"))).unwrap()
    }

    /// Starts sshd with Debian's own configuration, these host keys (`ed25519`,
    /// `ecdsa`, `rsa`, or another name in /etc/ssh), and further options.
    pub fn sshd(&self, keys: &[&str], options: &[&str]) -> Sshd {
        let listen = "127.0.0.1";
        let port = TcpListener::bind((listen, 0)).unwrap().local_addr().unwrap().port();
        let log = format!("/var/log/sshd-{port}");
        let mut command = self.command("/usr/sbin/sshd");
        command.args(["-D", "-E", &log, "-p", &port.to_string()]);
        command.args(["-o", &format!("ListenAddress={listen}"), "-o", "LogLevel=VERBOSE"]);
        command.args(["-o", &format!("PidFile=/run/sshd-{port}.pid")]);
        for key in keys {
            command.args(["-o", &format!("HostKey=/etc/ssh/ssh_host_{key}_key")]);
        }
        for option in options {
            command.args(["-o", option]);
        }
        let child = command.process_group(0).spawn().unwrap();
        let sshd = Sshd { port, child, log: self.path(&log) };
        eventually("sshd listens", || TcpStream::connect((listen, port)).is_ok());
        sshd
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

impl Sshd {
    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command with this input to its end.
pub fn finish(mut command: Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // One that ends without reading everything is fine.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t0\t"))
}

fn is_installed(program: &str) -> bool {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .any(|dir| Path::new(dir).join(program).exists())
}
