"""Speaks with the guard, over SSH as the account, or by sudo on the node."""

import base64
import json
import subprocess

from machine import wait_until

ACCOUNT = "proxmox-mcp"


def request(verb, **fields):
    return {"v": 1, "id": "node-test", "verb": verb, "node": "pve1", **fields}


def exec_request(vmid, *argv, **fields):
    return request("pct-exec", vmid=vmid, argv=list(argv),
                   **{"timeout_s": 60, "max_output": 100000, "stdin": False, **fields})


class Answer:
    def __init__(self, lines, status, stderr):
        self.lines, self.status, self.stderr = lines, status, stderr

    @property
    def done(self):
        assert self.lines and "done" in self.lines[-1], f"not done: {self.lines} {self.stderr}"
        return self.lines[-1]["done"]

    @property
    def refused(self):
        assert self.lines and "refused" in self.lines[-1], f"not refused: {self.lines} {self.stderr}"
        return self.lines[-1]["refused"]

    def text(self, stream="stdout"):
        parts = (base64.b64decode(line[stream]) for line in self.lines if stream in line)
        return b"".join(parts).decode()


class Session:
    """One running guard; its input stays open until it is closed here."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def send(self, *lines):
        for line in lines:
            self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()
        return self

    def line(self):
        return json.loads(self.process.stdout.readline())

    def answer(self):
        lines = [json.loads(line) for line in self.process.stdout]
        status = self.process.wait(120)
        return Answer(lines, status, self.process.stderr.read().decode())

    def cut(self):
        """As if the network were gone: no word of good-bye."""
        self.process.kill()
        self.process.wait()


class Guard:
    def __init__(self, machine, mcp):
        self.machine = machine
        self.mcp = mcp
        self.config = machine.work / "config"
        self.key = self.config / "ssh/id_ed25519"
        self.known = machine.work / "known_hosts"

    def told(self, *args):
        """What `proxmox-mcp` says on the person's machine."""
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.machine.work),
                       "PROXMOX_MCP_CONFIG_DIR": str(self.config)}
        done = subprocess.run([self.mcp, *args], env=environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60)
        assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
        return done.stdout

    def join(self):
        """The printed steps, to the letter."""
        node = self.machine
        node.write("/etc/ssh/sshd_config.d/test.conf",
                   f"Port {node.port}\nListenAddress 127.0.0.1\nPasswordAuthentication no\n")
        node.run("systemctl", "start", "ssh.service")
        wait_until("sshd listens", lambda: node.sh(f"ss -Hltn sport = :{node.port}"))
        self.config.mkdir(mode=0o700)
        settings = self.config / ".env"
        settings.write_text(f"PROXMOX_HOST=127.0.0.1\nPROXMOX_SSH_PORT={node.port}\n")
        settings.chmod(0o600)
        host_key = " ".join(node.read("/etc/ssh/ssh_host_ed25519_key.pub").split()[:2])
        self.known.write_text(f"[127.0.0.1]:{node.port} {host_key}\n")
        fingerprint = node.sh("ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub").split()[1]
        self.told("ssh-setup", "--host-key", fingerprint, "--append-env")
        node.run("sh", "-s", input=self.told("ssh-account"))
        wait_until("sshd lets us in", lambda: self.ssh_run("true").returncode == 2)

    def leave(self):
        self.machine.run("sh", "-s", input=self.told("ssh-account", "--remove"))

    def ssh_command(self, *args):
        """Options, and last the remote command, if there is to be one."""
        return ["ssh", "-F", "none", "-p", str(self.machine.port), "-i", str(self.key),
                "-o", f"UserKnownHostsFile={self.known}", "-o", "HostKeyAlgorithms=ssh-ed25519",
                "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", *args[:-1],
                f"{ACCOUNT}@127.0.0.1", *args[-1:]]

    def ssh_run(self, *args):
        return subprocess.run(self.ssh_command(*args), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)

    def session(self):
        return Session(self.ssh_command("anything"))

    def ask(self, message):
        return self.session().send(message).answer()

    def policy(self, *changes):
        """Rewrites the shipped policy."""
        text = self.machine.read("/etc/pve-guard/policy.toml")
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        self.machine.write("/etc/pve-guard/policy.toml", text)
        self.machine.run("pve-guard", "policy", "check")
