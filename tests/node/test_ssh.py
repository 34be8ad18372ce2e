"""The way in: one key, one command, one program."""

import json

from guard import ACCOUNT, request

HELLO = {"v": 1, "id": "a", "verb": "hello"}


def test_hello_through_sshd_and_sudo(machine, guard, deb):
    answer = guard.ask(HELLO)
    assert answer.status == 0
    done = answer.done
    assert done["node"] == "pve1" and done["pve_manager"] == "9.2.11", done
    assert "test_programs" not in done, "a release has no override of programs"
    sha256 = machine.sh("sha256sum /usr/sbin/pve-guard").split()[0]
    assert done["sha256"] == sha256


def test_no_command_and_every_other_command_are_the_guard(machine, guard, deb):
    for args in ([], ["bash"], ["sudo -n id"], ["/usr/sbin/pve-guard --version"], ["-t", "bash"]):
        done = guard.ssh_run(*args)
        assert done.returncode == 2, (args, done)
        assert "uid=" not in done.stdout and "usage: pve-guard" in done.stderr, (args, done)


def test_no_terminal_no_sftp_and_no_forwarding(machine, guard, deb):
    done = guard.ssh_run("-tt", "bash")
    assert "PTY allocation request failed" in done.stderr and "uid=" not in done.stdout, done
    done = guard.ssh_run("-s", "sftp")
    assert done.returncode == 2 and "bad_request" in done.stdout, done
    done = guard.ssh_run("-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1", "x")
    assert done.returncode == 255, done


def test_sudo_permits_the_bare_program_alone(machine, guard, deb):
    def as_account(*args):
        return machine.run("setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups",
                           "sudo", "-n", *args, check=False)
    listed = as_account("-l").stdout
    commands = [line for line in listed.splitlines() if "NOPASSWD" in line]
    assert len(commands) == 1 and commands[0].strip().endswith('/usr/sbin/pve-guard ""'), listed
    for args in (["/usr/sbin/pve-guard", "--version"], ["/usr/sbin/pve-guard", "policy", "check"],
                 ["/usr/sbin/pve-guard", "--upgrade-unit", "0" * 64], ["/bin/sh"],
                 ["LD_PRELOAD=/x", "/usr/sbin/pve-guard"], ["-E", "/usr/sbin/pve-guard"],
                 ["-u", "#1", "/usr/sbin/pve-guard"]):
        assert as_account(*args).returncode == 1, args


def test_every_request_is_in_both_records(machine, guard, deb):
    guard.ask(request("kernel-pin", version="x", next_boot=False))
    line = json.loads(machine.read("/var/log/pve-guard/guard.log").splitlines()[-1])
    assert (line["account"], line["address"], line["code"]) == (ACCOUNT, "127.0.0.1", "verb_denied")
    found = machine.sh("journalctl -o json SYSLOG_IDENTIFIER=pve-guard PVE_GUARD_VERB=kernel-pin -n 1")
    record = json.loads(found)
    assert record["PVE_GUARD_ADDRESS"] == "127.0.0.1" and record["PRIORITY"] == "4", record


def test_another_node_is_refused(machine, guard, deb):
    answer = guard.ask({**request("kernel-list"), "node": "pve2"})
    assert answer.refused["code"] == "wrong_node" and answer.status == 1
