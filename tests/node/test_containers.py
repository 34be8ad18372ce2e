"""Commands in real containers, and the end of everything they start."""

import time

from guard import exec_request, request
from machine import wait_until

# Leaves its parent in every way there is, and ignores TERM.
SCATTER = """
trap '' TERM HUP
(setsid sh -c 'trap "" TERM; while :; do sleep 4711; done' &)
(env -i /bin/setsid /bin/sh -c 'trap "" TERM; while :; do /bin/sleep 4711; done' &)
sleep 4711 &
echo ready
while :; do sleep 1; done
"""


def sleepers(machine, seconds=4711):
    return machine.sh(f"pgrep -fc 'sleep {seconds}$' || true")



def test_a_command_in_each_container(machine, guard, deb):
    for vmid, hostname in ((200, "web"), (201, "tiny")):
        answer = guard.ask(exec_request(vmid, "sh", "-c", "id -u; exit 7", hostname=hostname))
        assert answer.done["exit_code"] == 7 and answer.text() == "0\n", answer.lines
        assert "notes" not in answer.done, "this kernel gives audit sessions"
        refused = guard.ask(exec_request(vmid, "true", hostname="other")).refused
        assert refused["code"] == "not_found", refused


def test_arguments_and_environment_are_what_the_guard_made(machine, guard, deb):
    words = ["a b", "", "it's", '"q"', "$x", "ü", "-n", "a;id", "$(id)", "x\ny"]
    answer = guard.ask(exec_request(201, "printf", "[%s]", *words))
    assert answer.text() == "".join(f"[{word}]" for word in words)
    names = {line.split("=")[0] for line in guard.ask(exec_request(201, "env")).text().splitlines()}
    assert {"PATH", "HOME", "LANG", "PVE_GUARD_RUN"} <= names, names
    assert not any(name.startswith(("SSH_", "SUDO_", "PROXMOX_")) for name in names), names


def test_input_output_and_their_sizes(machine, guard, deb):
    session = guard.session().send(exec_request(201, "cat", stdin=True))
    session.send({"stdin": "aGVsbG8A/w=="}, {"stdin": None})
    answer = session.answer()
    assert answer.done["exit_code"] == 0 and answer.done["stdout_bytes"] == 7, answer.lines
    answer = guard.ask(exec_request(200, "head", "-c", "10000000", "/dev/zero", max_output=1000))
    done = answer.done
    assert (done["stdout_bytes"], done["truncated"]) == (10000000, True), done


def test_a_timed_out_tree_is_gone_and_the_container_thawed(machine, guard, deb):
    for vmid in (200, 201):
        done = guard.ask(exec_request(vmid, "sh", "-c", SCATTER, timeout_s=1)).done
        assert done["timed_out"] and done["duration_ms"] >= 6000, done
        assert sleepers(machine) == "0"
        assert machine.sh(f"cat /sys/fs/cgroup/lxc/{vmid}/cgroup.freeze") == "0"
        assert guard.ask(exec_request(vmid, "true")).done["exit_code"] == 0


def test_a_cut_connection_ends_the_tree(machine, guard, deb):
    session = guard.session().send(exec_request(201, "sh", "-c", SCATTER))
    assert "stdout" in session.line()
    session.cut()
    wait_until("all of it has ended", lambda: sleepers(machine) == "0", 30)


def test_a_fork_bomb_does_not_outrun_the_end(machine, guard, deb):
    # Twenty chains, each link of which leaves its parent and starts the next.
    chain = """export b='setsid sh -c "sleep 0.02; eval \\"\\$b\\"" link &'"""
    script = f"{chain}; for n in 1 2 3 4 5 6 7 8 9 10; do eval \"$b\"; eval \"$b\"; done; echo ready; sleep 4711"
    for vmid in (200, 201):
        session = guard.session().send(exec_request(vmid, "sh", "-c", script))
        assert "stdout" in session.line()
        wait_until("it multiplies", lambda: int(machine.sh("pgrep -fc ' link$' || true")) >= 5)
        session.send({"cancel": True})
        assert session.answer().done["cancelled"]
        assert machine.sh("pgrep -fc ' link$' || true") == "0"
        assert sleepers(machine) == "0"


def test_what_stays_on_purpose_is_counted(machine, guard, deb):
    answer = guard.ask(exec_request(201, "sh", "-c", "setsid sleep 4712 & echo started"))
    assert answer.done["background"] == 1 and not answer.done["timed_out"], answer.done
    assert sleepers(machine, 4712) == "1"
    machine.sh("pkill -f 'sleep 4712$'")


def test_work_handed_to_the_containers_init_is_out_of_reach(machine, guard, deb):
    script = "systemd-run --quiet --collect sleep 4713; exec sleep 4714"
    done = guard.ask(exec_request(200, "sh", "-c", script, timeout_s=3)).done
    assert done["timed_out"], done
    assert sleepers(machine, 4714) == "0"
    assert sleepers(machine, 4713) == "1", "the manual says so"
    machine.sh("pkill -f 'sleep 4713$'")


def test_another_command_in_the_same_container_is_left_alone(machine, guard, deb):
    other = guard.session().send(exec_request(201, "sh", "-c", "echo here; sleep 4715; true"))
    other.line()
    assert guard.ask(exec_request(201, "sh", "-c", SCATTER, timeout_s=1)).done["timed_out"]
    assert sleepers(machine, 4715) == "1"
    other.send({"cancel": True})
    assert other.answer().done["cancelled"]


def test_a_container_that_was_frozen_stays_so(machine, guard, deb):
    session = guard.session().send(exec_request(201, "sh", "-c", "echo here; sleep 4716"))
    session.line()
    machine.sh("echo 1 > /sys/fs/cgroup/lxc/201/cgroup.freeze")
    session.send({"cancel": True})
    assert session.answer().done["cancelled"]
    assert machine.sh("cat /sys/fs/cgroup/lxc/201/cgroup.freeze") == "1"
    machine.sh("echo 0 > /sys/fs/cgroup/lxc/201/cgroup.freeze")
    assert sleepers(machine, 4716) == "0"


def test_kinds_that_reach_the_node_are_refused(machine, guard, deb):
    path = "/etc/pve/nodes/pve1/lxc/201.conf"
    good = machine.read(path)
    for extra in ("unprivileged: 0\n", "mp0: /srv,mp=/srv\n", "lxc.cap.keep: sys_admin\n"):
        machine.write(path, good + extra)
        assert guard.ask(exec_request(201, "true")).refused["code"] == "policy", extra
    machine.write(path, good)


def test_a_stopped_container_is_told_apart(machine, guard, deb):
    machine.run("lxc-stop", "-n", "201", "-k")
    assert guard.ask(exec_request(201, "true")).refused["code"] == "not_running"
    machine.run("lxc-start", "-n", "201")
    wait_until("it runs again", lambda: guard.ask(exec_request(201, "true")).lines[-1].get("done"))


def test_without_the_journal_nothing_is_run(machine, guard, deb):
    machine.sh("mv /run/systemd/journal/socket /run/systemd/journal/away")
    try:
        assert guard.ask(exec_request(201, "true")).refused["code"] == "journal_unavailable"
        assert guard.ask({"v": 1, "id": "a", "verb": "hello"}).status == 0
    finally:
        machine.sh("mv /run/systemd/journal/away /run/systemd/journal/socket")


def test_many_at_once(machine, guard, deb):
    started = time.monotonic()
    sessions = [guard.session().send(exec_request(201, "sh", "-c", f"sleep 1; echo {n}")) for n in range(8)]
    answers = [session.answer() for session in sessions]
    assert [answer.text() for answer in answers] == [f"{n}\n" for n in range(8)]
    assert time.monotonic() - started < 60


def test_a_status_of_the_pin_verbs_is_denied_by_the_shipped_policy(machine, guard, deb):
    for verb, fields in (("kernel-pin", {"version": "6.8.12-9-pve"}), ("kernel-unpin", {}),
                         ("upgrade-start", {"plan": "0" * 64}), ("upgrade-simulate", {"refresh": True})):
        assert guard.ask(request(verb, **fields)).refused["code"] == "verb_denied", verb
