"""The booted node: a layer above the kept root, systemd as process 1."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time


def wait_until(what, is_so, seconds=60):
    """Waits for a condition; a test has no other way to wait."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}")
        time.sleep(0.05)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def own_cgroup(name):
    """A cgroup of the unified hierarchy for one boot: all that a node leaves
    there goes with it."""
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        if line.split()[2] == "cgroup2":
            folder = pathlib.Path(line.split()[1]) / name
            folder.mkdir()
            return folder
    raise AssertionError("this machine has no unified cgroup hierarchy")


def remove_cgroup(folder):
    for child, _, _ in os.walk(folder, topdown=False):
        wait_until(f"{child} is empty", lambda: removed(child), 10)


def removed(folder):
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


class Machine:
    """One node. Its files are below `root`, also while it is off."""

    def __init__(self, base):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="pve-node-"))
        for name in ("upper", "layer", "root"):
            (self.work / name).mkdir()
        self.root = self.work / "root"
        subprocess.run(
            ["mount", "-t", "overlay", "overlay", "-o",
             f"lowerdir={base},upperdir={self.work}/upper,workdir={self.work}/layer", self.root],
            check=True)
        self.nspawn = None
        self.init = None
        self.boots = 0
        self.port = free_port()

    def boot(self):
        self.boots += 1
        self.cgroup = own_cgroup(f"{self.work.name}-{self.boots}")
        environment = {**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
        self.console = open(self.work / "console", "ab")
        self.nspawn = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "-D", self.root, "--boot", "--register=no",
             "--keep-unit", "--capability=all", "--machine=pve1", "--hostname=pve1",
             "--link-journal=no"],
            env=environment, stdin=subprocess.DEVNULL, stdout=self.console,
            stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=lambda: (self.cgroup / "cgroup.procs").write_text(str(os.getpid())))
        wait_until("process 1 is there", self._find_init)
        wait_until("the node has started", self._is_up, 120)

    def _find_init(self):
        children = pathlib.Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children")
        for child in children.read_text().split():
            try:
                if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                    self.init = int(child)
                    return True
            except FileNotFoundError:
                pass
        assert self.nspawn.poll() is None, "the node did not start"
        return False

    def _is_up(self):
        said = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return said in ("running", "degraded")

    def command(self, *args):
        """A command line that enters the running node."""
        return ["nsenter", "-t", str(self.init), "-m", "-u", "-i", "-n", "-p", "-C",
                "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", *map(str, args)]

    def run(self, *args, check=True, **options):
        """Runs a program in the node as root."""
        done = subprocess.run(self.command(*args), text=True, capture_output=True,
                              timeout=120, **options)
        assert not check or done.returncode == 0, f"{args}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def sh(self, script, check=True):
        return self.run("sh", "-c", script, check=check).stdout.strip()

    def power_cut(self):
        """Off in the middle of everything."""
        os.kill(self.init, signal.SIGKILL)
        self.nspawn.wait(60)
        self.nspawn = None
        remove_cgroup(self.cgroup)

    def stop(self):
        if self.nspawn and self.nspawn.poll() is None:
            self.power_cut()
        subprocess.run(["umount", "-l", self.root], check=True)
        shutil.rmtree(self.work, ignore_errors=True)

    # Files of the node, as its root sees them.

    def path(self, path):
        return self.root / path.lstrip("/")

    def write(self, path, text, mode=0o644):
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).write_text(text)
        self.path(path).chmod(mode)

    def read(self, path):
        return self.path(path).read_text()
