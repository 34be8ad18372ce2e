#!/usr/bin/env python3
"""Measures MCP servers over stdio against one simulated estate and prints a table.

Standard library only; run by scripts/bench, which builds what is measured.

What stands in the table, for each server:
  start      from starting the process to the answer of `initialize`, median, in ms
  RSS        resident memory of the process and its children, in MiB
  calls/s    the list of all guests, one call at a time and 16 in flight
  bytes      compact JSON of a result; "text" and "structured" are its two parts

Other servers join the same run by --also FILE, a JSON list of
  {"name", "command": [...], "env": {...}, "tool", "arguments"}
in which {url}, {host}, {port}, {token_id}, {token_user}, {token_name}, {token_secret} and
{fingerprint} are filled in.
"""

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import time

PROTOCOL = "2025-11-25"
WIDTH = 16
LARGEST = 20


class Server:
    """A running server: raw lines out, raw lines in, one thread."""

    def __init__(self, command, env):
        self.born = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=env, bufsize=0)
        self.pieces = []
        self.lines = []
        self.ids = 0

    def send(self, method, params, notify=False):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if not notify:
            self.ids += 1
            message["id"] = self.ids
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def line(self, limit=60.0):
        """The next line, as bytes."""
        while not self.lines:
            if not select.select([self.process.stdout], [], [], limit)[0]:
                raise RuntimeError(f"no answer within {limit:g} s")
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            if not piece:
                raise RuntimeError("the server ended")
            if b"\n" in piece:
                first, *middle, last = piece.split(b"\n")
                self.lines = [b"".join(self.pieces) + first, *middle]
                self.pieces = [last]
            else:
                self.pieces.append(piece)
        return self.lines.pop(0)

    def answer(self):
        """The next line that answers a request, as bytes; notifications are passed over."""
        while True:
            line = self.line()
            if b'"result"' in line or b'"error"' in line:
                return line

    def request(self, method, params):
        self.send(method, params)
        message = json.loads(self.answer())
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def open(self):
        """Initializes; the milliseconds since the process was started."""
        self.request("initialize", {"protocolVersion": PROTOCOL, "capabilities": {},
                                    "clientInfo": {"name": "bench", "version": "1"}})
        took = (time.perf_counter() - self.born) * 1000
        self.send("notifications/initialized", {}, notify=True)
        return took

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def memory(self):
        """RSS of the process and its descendants, MiB."""
        parents = {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/stat") as stat:
                    parent = int(stat.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(entry))
        todo, pages = [self.process.pid], 0
        while todo:
            pid = todo.pop()
            todo += parents.get(pid, [])
            try:
                with open(f"/proc/{pid}/statm") as statm:
                    pages += int(statm.read().split()[1])
            except OSError:
                pass
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def load(self, tool, arguments, calls, width, seconds):
        """Keeps `width` calls in flight; calls a second."""
        params = {"name": tool, "arguments": arguments}
        begin = time.perf_counter()
        for _ in range(width):
            self.send("tools/call", params)
        sent, done = width, 0
        while done < sent:
            line = self.answer()
            if b'"isError":true' in line or b'"isError": true' in line or b'"error":{"code":-' in line:
                raise RuntimeError(f"a call failed: {line[:300]}")
            done += 1
            if sent < calls and time.perf_counter() - begin < seconds:
                self.send("tools/call", params)
                sent += 1
        return done / (time.perf_counter() - begin)


def size(value):
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def parts(result):
    """Bytes of the two parts of a tool result."""
    text = sum(len(block.get("text", "").encode()) for block in result.get("content", []))
    return text, size(result["structuredContent"]) if "structuredContent" in result else 0


def measure(spec, env, runs, calls, seconds):
    """One row of the table."""
    starts = []
    for _ in range(runs):
        server = Server(spec["command"], env)
        starts.append(server.open())
        server.close()
    server = Server(spec["command"], env)
    server.open()
    row = {"name": spec["name"], "start_ms": statistics.median(starts)}
    listed = server.request("tools/list", {})
    time.sleep(0.5)
    row["rss_start"] = server.memory()
    row["tools"], row["tools_bytes"] = len(listed["tools"]), size(listed)
    result = server.request("tools/call", {"name": spec["tool"], "arguments": spec["arguments"]})
    if result.get("isError"):
        raise RuntimeError(f"{spec['tool']}: {str(result)[:300]}")
    row["text"], row["structured"] = parts(result)
    row["one"] = server.load(spec["tool"], spec["arguments"], calls, 1, seconds)
    row["many"] = server.load(spec["tool"], spec["arguments"], calls, WIDTH, seconds)
    row["rss_load"] = server.memory()
    server.close()
    return row


def answers(command, env, names):
    """Bytes of common answers of our own server, as rows."""
    server = Server(command, env)
    server.open()
    first = server.request("tools/call", {"name": "pve_list_vms", "arguments": {"limit": 1}})
    table = first["structuredContent"]
    vmid = table["rows"][0][table["columns"].index("vmid")]
    rows = []
    for tool, arguments in names:
        arguments = {key: vmid if value == "VMID" else value for key, value in arguments.items()}
        result = server.request("tools/call", {"name": tool, "arguments": arguments})
        rows.append((f"{tool} {json.dumps(arguments) if arguments else ''}".strip(), result))
    server.close()
    return rows


def listings(command, env, settings):
    """Bytes of our own `tools/list` under each of some settings, as rows, and the last list's tools."""
    rows, tools = [], []
    for name, variables in settings:
        server = Server(command, env | variables)
        server.open()
        listed = server.request("tools/list", {})
        server.close()
        tools = sorted(((size(tool), tool["name"]) for tool in listed["tools"]), reverse=True)
        median = statistics.median_low(each for each, _ in tools)
        rows.append((f"tools/list, {name} ({len(tools)} tools)", size(listed), median))
    return rows, tools


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "|".join(" --- " for _ in head) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def machine():
    with open("/proc/cpuinfo") as info:
        models = [line.partition(":")[2].strip() for line in info if line.startswith("model name")]
    cpus = len(os.sched_getaffinity(0))
    return f"{cpus} × {models[0] if models else 'unknown CPU'}, Linux {os.uname().release}"


def fill(value, known):
    if isinstance(value, str):
        for key, text in known.items():
            value = value.replace("{" + key + "}", text)
        return value
    if isinstance(value, list):
        return [fill(item, known) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, known) for key, item in value.items()}
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, help="the proxmox-mcp to measure")
    parser.add_argument("--sim", required=True, help="the pve-sim to measure against")
    parser.add_argument("--config-dir", required=True, help="an empty folder for its configuration")
    parser.add_argument("--guests", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=21, help="starts of each server")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=10, help="limit of each load")
    parser.add_argument("--also", help="a JSON file with other servers")
    options = parser.parse_args()

    sim = subprocess.Popen([options.sim, "--guests", str(options.guests)],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        known = json.loads(sim.stdout.readline())
        authority = known["url"].partition("://")[2]
        known["host"], _, known["port"] = authority.rpartition(":")
        known["token_user"], _, known["token_name"] = known["token_id"].partition("!")
        os.makedirs(options.config_dir, mode=0o700, exist_ok=True)
        path = os.path.join(options.config_dir, ".env")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as env_file:
            env_file.write(f"PROXMOX_HOST={authority}\n"
                           f"PROXMOX_TOKEN_ID={known['token_id']}\n"
                           f"PROXMOX_TOKEN_SECRET={known['token_secret']}\n"
                           f"PROXMOX_TLS_FINGERPRINT={known['fingerprint']}\n")
        base = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        ours = {"name": "proxmox-mcp", "command": [options.binary, "serve"], "tool": "pve_list_vms",
                "arguments": {"limit": options.guests},
                "env": {"PROXMOX_MCP_CONFIG_DIR": options.config_dir}}
        servers = [ours]
        if options.also:
            with open(options.also) as also:
                servers += fill(json.load(also), known)

        rows = [measure(spec, base | spec.get("env", {}), options.runs, options.calls, options.seconds)
                for spec in servers]
        print(f"{time.strftime('%Y-%m-%d')}, {machine()}, {options.guests} guests, "
              f"load {os.getloadavg()[0]:.1f}\n")
        table(["server", "start, ms", "RSS after tools/list, MiB", "calls/s, 1 at a time",
               f"calls/s, {WIDTH} in flight", "RSS then, MiB", "text, bytes", "structured, bytes"],
              [[r["name"], f"{r['start_ms']:.1f}", f"{r['rss_start']:.1f}", f"{r['one']:.1f}",
                f"{r['many']:.1f}", f"{r['rss_load']:.1f}", f"{r['text']:,}", f"{r['structured']:,}"]
               for r in rows])
        lists, largest = listings(ours["command"], base | ours["env"], [
            ("read-only, core alone", {"PROXMOX_TOOLSETS": "core"}),
            ("read-only", {}),
            ("write mode without exec", {"PROXMOX_MODE": "write"})])
        table(["list", "bytes", "tokens", "tool in the middle, bytes"],
              [[name, f"{whole:,}", f"{whole // 4:,}", f"{median:,}"]
               for name, whole, median in lists])
        print(f"The {LARGEST} largest tools:\n")
        table(["tool", "bytes", "tokens"],
              [[name, f"{each:,}", f"{each // 4:,}"] for each, name in largest[:LARGEST]])
        sizes = [[f"tools/list of {r['name']} ({r['tools']} tools)", f"{r['tools_bytes']:,}",
                  f"{r['tools_bytes'] // 4:,}", "", ""] for r in rows]
        common = [("pve_list_vms", {}), ("pve_overview", {}), ("pve_needs_attention", {}),
                  ("pve_guest_details", {"vmid": "VMID"}), ("pve_vm_config", {"vmid": "VMID"}),
                  ("pve_list_storage", {}), ("pve_list_tasks", {}), ("pve_list_backups", {})]
        for name, result in answers(ours["command"], base | ours["env"], common):
            text, structured = parts(result)
            note = " (error)" if result.get("isError") else ""
            sizes.append([name + note, f"{size(result):,}", f"{size(result) // 4:,}", f"{text:,}",
                          f"{structured:,}"])
        table(["answer", "bytes", "tokens", "text, bytes", "structured, bytes"], sizes)
    finally:
        sim.stdin.close()
        sim.wait()


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, OSError) as error:
        sys.exit(f"error: {error}")
