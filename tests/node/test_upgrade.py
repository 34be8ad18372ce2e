"""Upgrades from a local repository, really run."""

import http.server
import subprocess
import threading

from guard import request
from machine import wait_until

HOLD = """
import fcntl, select, sys
lock = open('/var/lib/dpkg/lock-frontend', 'a')
fcntl.lockf(lock, fcntl.LOCK_EX)
print('held', flush=True)
select.select([sys.stdin], [], [], {seconds})
"""


def use(machine, guard, repository):
    """Makes this the node's only source, and fetches its list."""
    machine.write("/etc/apt/sources.list.d/local.list", f"deb [trusted=yes] file:/srv/{repository} ./\n")
    answer = guard.ask(request("upgrade-simulate", refresh=True))
    return answer.done


def start(guard, plan):
    return guard.ask(request("upgrade-start", plan=plan["plan"]))


def status(guard, cursor=None):
    fields = {"cursor": cursor} if cursor else {}
    return guard.ask(request("upgrade-status", **fields)).done


def finished(guard):
    wait_until("the upgrade has ended", lambda: status(guard)["state"] != "running", 90)
    return status(guard)


def version(machine, package):
    return machine.sh(f"dpkg-query -W -f '${{Version}}' {package}")


def hold_lock(machine, seconds):
    """Another package manager; ends after a time, or when its input does."""
    process = subprocess.Popen(machine.command("python3", "-c", HOLD.format(seconds=seconds)),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    return process


def test_no_upgrade_was_ever_started(machine, guard, deb):
    guard.policy(("refresh = false", "refresh = true"), ("lock_wait_s = 60", "lock_wait_s = 3"))
    assert status(guard)["state"] == "never"


def test_a_vital_package_that_would_go_stops_it(machine, guard, deb):
    plan = use(machine, guard, "vital")
    assert not plan["proxmox_ve_stays"], plan
    assert [problem["kind"] for problem in plan["problems"]] == ["vital_removed"], plan
    refused = start(guard, plan).refused
    assert refused["code"] == "preflight" and "proxmox-ve" in refused["message"], refused
    assert version(machine, "tconf") == "1.0"


def test_a_held_lock_is_waited_for_and_named(machine, guard, deb):
    plan = use(machine, guard, "good")
    holder = hold_lock(machine, 1000)
    refused = start(guard, plan).refused
    assert refused["code"] == "busy" and "(python3)" in refused["message"], refused
    assert holder.poll() is None, "the holder is left alone"
    holder.stdin.close()
    holder.wait()


def test_local_configuration_stays_and_is_named(machine, guard, deb):
    machine.write("/etc/tconf-changed", "mine\n")
    machine.path("/etc/tconf-deleted").unlink()
    plan = use(machine, guard, "good")
    assert [change["name"] for change in plan["upgrade"]] == ["tconf"], plan
    assert [change["name"] for change in plan["install"]] == ["tnew"], plan
    holder = hold_lock(machine, 1)
    started = start(guard, plan)
    holder.wait()
    assert started.done["unit"] == "pve-guard-upgrade.service", started.lines
    end = finished(guard)
    assert (end["state"], end["result"], end["exit_code"]) == ("succeeded", "success", 0), end
    assert end["invocation_id"] == started.done["invocation_id"]
    assert machine.read("/etc/tconf-changed") == "mine\n"
    assert not machine.path("/etc/tconf-deleted").exists()
    assert machine.read("/etc/tconf-plain") == "version 1.1\n"
    assert end["kept_conffiles"] == ["/etc/tconf-changed", "/etc/tconf-deleted"], end
    assert any("Setting up tconf" in line for line in end["lines"]), end["lines"]
    again = status(guard, end["cursor"])
    assert again["lines"] == [] and again["cursor"] == end["cursor"], again
    assert not machine.path("/var/lib/pve-guard/lists").exists()


def test_what_has_changed_since_is_not_run(machine, guard, deb):
    plan = use(machine, guard, "slow")
    use(machine, guard, "daemon")
    assert start(guard, plan).refused["code"] == "plan_changed"
    assert start(guard, {"plan": "x"}).refused["code"] == "argument"


def test_a_cut_connection_and_a_restart_of_sshd_do_not_touch_it(machine, guard, deb):
    machine.sh("touch /run/hold")
    plan = use(machine, guard, "slow")
    session = guard.session().send(request("upgrade-start", plan=plan["plan"]))
    session.line()
    session.cut()
    follower = guard.session().send(request("upgrade-status"))
    assert follower.answer().done["state"] == "running"
    assert start(guard, plan).refused["code"] == "busy", "one at a time"
    assert guard.ask(request("kernel-pin", version="6.8.12-9-pve")).refused["code"] == "busy"
    machine.sh("systemctl restart ssh.service")
    machine.sh("rm /run/hold")
    wait_until("sshd is back", lambda: guard.ssh_run("true").returncode == 2)
    end = finished(guard)
    assert end["state"] == "succeeded", end
    assert version(machine, "tslow") == "1.1"


def test_a_daemon_that_a_package_starts_survives_the_unit(machine, guard, deb):
    plan = use(machine, guard, "daemon")
    start(guard, plan)
    assert finished(guard)["state"] == "succeeded"
    machine.sh("systemctl stop pve-guard-upgrade.service")
    assert machine.sh("pgrep -fc 'sleep 98765$'") == "1"
    machine.sh("pkill -f 'sleep 98765$'")
    assert status(guard)["state"] == "succeeded", "also when systemd has forgotten the unit"


def test_a_package_that_fails_is_a_failure_and_blocks_the_next(machine, guard, deb):
    plan = use(machine, guard, "broken")
    start(guard, plan)
    end = finished(guard)
    assert (end["state"], end["result"], end["exit_code"]) == ("failed", "exit-code", 100), end
    plan = use(machine, guard, "good")
    assert "half_configured" in [problem["kind"] for problem in plan["problems"]], plan
    assert start(guard, plan).refused["code"] == "preflight"
    machine.sh("dpkg --remove --force-remove-reinstreq tbroken")


class Unauthorized(http.server.BaseHTTPRequestHandler):
    """Answers as the enterprise repository does without a subscription."""

    def do_GET(self):
        self.send_response(401, "Unauthorized")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def test_a_repository_that_answers_401_stops_it_until_that_is_mended(machine, guard, deb):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Unauthorized) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        machine.write("/etc/apt/sources.list.d/enterprise.sources",
                      f"Types: deb\nURIs: http://127.0.0.1:{server.server_port}/debian/pve\n"
                      "Suites: trixie\nComponents: pve-enterprise\n")
        refused = guard.ask(request("upgrade-simulate", refresh=True)).refused
        server.shutdown()
    assert refused["code"] == "preflight", refused
    for part in ("401", f"127.0.0.1:{server.server_port}", "/etc/apt/sources.list.d/enterprise.sources", "status 100"):
        assert part in refused["message"], (part, refused)
    plan = guard.ask(request("upgrade-simulate")).done
    assert "repository" in [problem["kind"] for problem in plan["problems"]], plan
    assert start(guard, plan).refused["code"] == "preflight"
    machine.path("/etc/apt/sources.list.d/enterprise.sources").unlink()
    plan = guard.ask(request("upgrade-simulate", refresh=True)).done
    assert "repository" not in [problem["kind"] for problem in plan["problems"]], plan


def test_a_repository_that_has_become_another_release_stops_it(machine, guard, deb):
    use(machine, guard, "good")
    release = machine.read("/srv/good/Release")
    machine.write("/srv/good/Release", release.replace("Suite: local", "Suite: next"))
    refused = guard.ask(request("upgrade-simulate", refresh=True)).refused
    assert refused["code"] == "preflight" and "changed its 'Suite' value" in refused["message"], refused
    plan = guard.ask(request("upgrade-simulate")).done
    assert "repository" in [problem["kind"] for problem in plan["problems"]], plan
    # Fetched again, it is what it is.
    use(machine, guard, "good")


def test_too_little_room_stops_it_before_anything_is_fetched(machine, guard, deb):
    plan = use(machine, guard, "good")
    machine.sh("mkdir -p /boot.real && cp /boot/vmlinuz-* /boot.real/ && "
               "mount -t tmpfs -o size=2m tmpfs /boot && cp /boot.real/vmlinuz-* /boot/ && "
               "head -c 900000 /dev/zero > /boot/initrd.img-6.8.12-10-pve")
    try:
        plan = guard.ask(request("upgrade-simulate")).done
        problem = next(problem for problem in plan["problems"] if problem["kind"] == "space")
        assert "/boot has" in problem["message"], problem
        assert start(guard, plan).refused["code"] == "preflight"
    finally:
        machine.sh("umount /boot")


def test_mixed_sources_are_refused(machine, guard, deb):
    machine.write("/etc/apt/sources.list.d/other.sources",
                  "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: trixie bookworm\nComponents: main\n")
    refused = guard.ask(request("upgrade-simulate")).refused
    assert refused["code"] == "preflight" and "bookworm" in refused["message"], refused
    machine.path("/etc/apt/sources.list.d/other.sources").unlink()


def test_a_restart_of_the_node_in_between_is_never_a_success(machine, guard, deb):
    machine.sh("touch /run/hold")
    machine.sh("dpkg --remove tslow && dpkg --purge tslow")
    machine.sh("cd /tmp && rm -rf old && mkdir -p old/DEBIAN old/usr/share/tslow && "
               "printf 'Package: tslow\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: T <t@example.test>\\n"
               "Description: t\\n' > old/DEBIAN/control && echo 1.0 > old/usr/share/tslow/version && "
               "dpkg-deb -b old old.deb && dpkg -i old.deb")
    plan = use(machine, guard, "slow")
    assert start(guard, plan).done
    wait_until("dpkg is in the middle", lambda: "half-configured" in machine.sh(
        "dpkg-query -W -f '${Status}' tslow"))
    machine.power_cut()
    machine.boot()
    machine.run("systemctl", "start", "ssh.service")
    wait_until("sshd is back", lambda: guard.ssh_run("true").returncode == 2)
    now = status(guard)
    assert now["state"] == "unknown" and now["result"] is None, now
    assert "restarted" in now["message"], now
    refused = start(guard, plan).refused
    assert refused["code"] in ("preflight", "plan_changed"), refused
    machine.sh("dpkg --configure -a")
