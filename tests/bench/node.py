#!/usr/bin/env python3
"""Measures the guard and the SSH way to it on a node of loopback and prints a table.

Standard library only; run by scripts/bench, which builds what is measured. The node is that of the
end-to-end tests (tests/src/world.rs): real sshd and sudo, the static guard, and a stand-in for
`pct` that runs the program.

What stands in the table, medians:
  start to hello   from starting the guard to its answer; nsenter, which puts it there, is in it
  memory           peak of the guard while a command runs
  program          `pct exec` of the same command by root on the node itself
  warm             the tool call over a connection that is there, less the program
  new connection   the same for a server that has none yet, and by OpenSSH's client, less the program
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from measure import Server, table

# A kilobyte is 1,024 bytes in /proc.
MIB = 1 << 20


def nsenter(node, *argv):
    return ["nsenter", "--target", str(node["pid"]), "--mount", "--pid", "--uts", "--root", "--wd", "--",
            *argv]


def median_ms(runs, job):
    took = []
    for _ in range(runs):
        begin = time.perf_counter()
        job()
        took.append((time.perf_counter() - begin) * 1000)
    return statistics.median(took)



def hello(node):
    """The guard's answer to hello, in ms from its start."""
    took = []
    for _ in range(node["runs"]):
        begin = time.perf_counter()
        with subprocess.Popen(nsenter(node, "/usr/sbin/pve-guard"), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, bufsize=0) as guard:
            guard.stdin.write(b'{"v":1,"id":"bench","verb":"hello"}\n')
            line = guard.stdout.readline()
            took.append((time.perf_counter() - begin) * 1000)
            if "done" not in json.loads(line):
                raise RuntimeError(f"hello: {line[:300]}")
    return statistics.median(took)


def request(node, argv):
    return json.dumps({"v": 1, "id": "bench", "verb": "pct-exec", "node": "pve1", "vmid": node["vmid"],
                       "argv": argv, "timeout_s": 60, "max_output": 4096, "stdin": False}).encode() + b"\n"


def memory(node):
    """Peak resident memory of the guard while a command runs, in MiB."""
    with subprocess.Popen(nsenter(node, "/usr/sbin/pve-guard"), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, bufsize=0) as guard:
        guard.stdin.write(request(node, ["sh", "-c", "echo on; sleep 5"]))
        line = guard.stdout.readline()
        if "stdout" not in json.loads(line):
            raise RuntimeError(f"pct-exec: {line[:300]}")
        with open(f"/proc/{guard.pid}/task/{guard.pid}/children") as children:
            pid = children.read().split()[0]
        with open(f"/proc/{pid}/status") as status:
            peak = [line.split()[1] for line in status if line.startswith("VmHWM")]
        guard.stdin.write(b'{"cancel":true}\n')
        guard.stdout.read()
    return int(peak[0]) * 1024 / MIB


def by_openssh(node):
    """One command by a connection of OpenSSH's client."""
    ssh = node["ssh"]
    command = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR",
               "-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-i", ssh["key"],
               "-p", str(ssh["port"]), f"{ssh['account']}@127.0.0.1"]
    # Input stays open until the answer: its end would end the command.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as client:
        client.stdin.write(request(node, ["true"]))
        line = client.stdout.readline()
        if "done" not in json.loads(line):
            raise RuntimeError(f"ssh: {line[:300]}")


def call(server, node):
    result = server.request("tools/call", {"name": "pve_ct_exec",
                                           "arguments": {"vmid": node["vmid"], "command": ["true"]}})
    if result.get("isError"):
        raise RuntimeError(f"pve_ct_exec: {str(result)[:300]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, help="the proxmox-mcp to measure")
    parser.add_argument("--sim", required=True, help="the pve-sim that knows the node's container")
    parser.add_argument("--node", required=True, help="the program that makes the node")
    parser.add_argument("--runs", type=int, default=101)
    options = parser.parse_args()

    made = subprocess.Popen([options.node], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    sim = subprocess.Popen([options.sim], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        line = made.stdout.readline()
        if not line.startswith(b"{"):
            print(f"guard and SSH: not measured, {line.decode().strip() or 'no node can be made here'}")
            return
        node = json.loads(line) | {"runs": options.runs}
        known = json.loads(sim.stdout.readline())
        env = {"PATH": os.environ["PATH"], **node["env"],
               "PROXMOX_HOST": known["url"].partition("://")[2],
               "PROXMOX_TOKEN_ID": known["token_id"], "PROXMOX_TOKEN_SECRET": known["token_secret"],
               "PROXMOX_TLS_FINGERPRINT": known["fingerprint"]}

        def fresh():
            server = Server([options.binary, "serve"], env)
            server.open()
            return server

        run = lambda *argv: subprocess.run(nsenter(node, *argv), check=True)
        way = median_ms(options.runs, lambda: run("/usr/bin/true"))
        pct = ["/usr/sbin/pct", "exec", str(node["vmid"]), "--keep-env", "1", "--", "true"]
        program = max(median_ms(options.runs, lambda: run(*pct)) - way, 0)

        server = fresh()
        for _ in range(5):
            call(server, node)
        warm = median_ms(options.runs, lambda: call(server, node)) - program
        server.close()

        cold = []
        for _ in range(max(options.runs // 5, 3)):
            server = fresh()
            cold.append(median_ms(1, lambda: call(server, node)))
            server.close()
        cold = statistics.median(cold) - program
        openssh = median_ms(max(options.runs // 5, 3), lambda: by_openssh(node)) - program

        table(["guard and SSH", "measured", "target"], [
            ["guard, start to hello", f"{hello(node):.1f} ms", "under 5 ms"],
            ["guard, peak memory with a command", f"{memory(node):.1f} MiB", "under 4 MB"],
            ["program by itself", f"{program:.1f} ms", ""],
            ["warm connection, over the program", f"{warm:.1f} ms", "under 15 ms"],
            ["new connection of a new server, over the program",
             f"{cold:.1f} ms, {cold / warm:.1f} × warm", "over 5 × warm"],
            ["new connection of OpenSSH's client, over the program",
             f"{openssh:.1f} ms, {openssh / warm:.1f} × warm", ""],
        ])
    finally:
        for process in made, sim:
            process.stdin.close()
            process.wait()


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"error: {error}")
