"""The exec tools of the built server against the booted node: a real container with systemd."""

import base64
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

from measure import Server  # noqa: E402

MIB = 1 << 20


class World:
    """A server that knows the container by a simulated API and reaches it on the node."""

    def __init__(self, guard):
        self.sim = subprocess.Popen([pathlib.Path(guard.mcp).with_name("pve-sim")],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        known = json.loads(self.sim.stdout.readline())
        self.server = Server([guard.mcp, "serve"], {
            "PATH": "/usr/bin:/bin", "HOME": str(guard.machine.work),
            "PROXMOX_MCP_CONFIG_DIR": str(guard.config), "PROXMOX_MODE": "write",
            "PROXMOX_EXEC": "enabled", "PROXMOX_HOST": known["url"].partition("://")[2],
            "PROXMOX_TOKEN_ID": known["token_id"], "PROXMOX_TOKEN_SECRET": known["token_secret"],
            "PROXMOX_TLS_FINGERPRINT": known["fingerprint"]})
        self.server.open()
        # The container of the node is called web, and the guard insists on the name.
        self.ok("pve_guest_config_set", vmid=200, set={"hostname": "web"})

    def call(self, tool, **arguments):
        return self.server.request("tools/call", {"name": tool, "arguments": arguments})

    def ok(self, tool, **arguments):
        result = self.call(tool, **arguments)
        assert not result.get("isError"), f"{tool}: {str(result)[:600]}"
        return result["structuredContent"]

    def close(self):
        self.server.close()
        self.sim.stdin.close()
        self.sim.wait()


def told(what, size, begin):
    """For the reader: no test depends on it."""
    print(f"        {what}: {size // MIB} MiB in {time.perf_counter() - begin:.2f} s")


def test_commands_files_and_services_by_the_tools(machine, guard, deb):
    world = World(guard)
    try:
        ran = world.ok("pve_ct_exec", vmid=200, command="id -u; cat /etc/hostname; exit 7")
        assert (ran["exit_code"], ran["stdout"]) == (7, "0\nweb\n"), ran
        ran = world.ok("pve_ct_exec", vmid=200, command=["sleep", "30"], timeout_s=1)
        assert ran["timed_out"], ran
        assert machine.sh("pgrep -fc 'sleep 30$' || true") == "0"

        content = os.urandom(MIB)
        begin = time.perf_counter()
        made = world.ok("pve_guest_file_write", vmid=200, path="/root/one",
                        content_base64=base64.b64encode(content).decode(), mode="600")
        told("written", MIB, begin)
        assert made["sha256"] == hashlib.sha256(content).hexdigest(), made
        # The container's root is nobody on the node.
        on_node = machine.sh("stat -c '%u:%g %a %s' /var/lib/lxc/200/rootfs/root/one")
        assert on_node == f"100000:100000 600 {MIB}", on_node

        world.ok("pve_ct_exec", vmid=200,
                 command=["dd", "if=/dev/urandom", "of=/root/ten", "bs=1M", "count=10"])
        begin = time.perf_counter()
        read = world.ok("pve_guest_file_read", vmid=200, path="/root/ten", length=10 * MIB)
        told("read", 10 * MIB, begin)
        wanted = machine.sh("sha256sum /var/lib/lxc/200/rootfs/root/ten").split()[0]
        assert read["sha256"] == wanted and not read["truncated"], {**read, "content_base64": ""}
        assert hashlib.sha256(base64.b64decode(read["content_base64"])).hexdigest() == wanted

        names = {row[0] for row in world.ok("pve_guest_file_list", vmid=200, path="/root")["rows"]}
        assert {"one", "ten"} <= names, names
        found = world.ok("pve_guest_service", vmid=200, service="systemd-journald", action="status")
        assert "active" in json.dumps(found), found
    finally:
        world.close()
