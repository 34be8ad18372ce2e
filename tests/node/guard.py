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
    def __init__(self, machine):
        self.machine = machine
        self.key = machine.work / "key"
        self.known = machine.work / "known_hosts"

    def make_account(self):
        """What the printed script does, step by step."""
        node = self.machine
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        public = self.key.with_suffix(".pub").read_text().strip()
        node.run("useradd", "--system", "--create-home", "--shell", "/bin/sh", "--password", "*", ACCOUNT)
        line = f'restrict,from="127.0.0.1",command="sudo -n /usr/sbin/pve-guard" {public}\n'
        node.write(f"/home/{ACCOUNT}/.ssh/authorized_keys", line)
        rule = node.read("/usr/share/pve-guard/sudoers").replace("@ACCOUNT@", ACCOUNT)
        node.write("/etc/sudoers.d/pve-guard", rule, 0o440)
        node.run("visudo", "-c")
        node.write("/etc/ssh/sshd_config.d/test.conf",
                   f"Port {node.port}\nListenAddress 127.0.0.1\nPasswordAuthentication no\n")
        node.run("systemctl", "start", "ssh.service")
        host_key = node.read("/etc/ssh/ssh_host_ed25519_key.pub").split()[:2]
        self.known.write_text(f"[127.0.0.1]:{node.port} {' '.join(host_key)}\n")
        wait_until("sshd answers", lambda: self.ssh_run("true").returncode == 2)

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
