"""The .deb: installed, upgraded, removed, purged."""

import subprocess
import tempfile

POLICY = "/etc/pve-guard/policy.toml"


def install(machine, deb):
    machine.path("/root/pve-guard.deb").write_bytes(open(deb, "rb").read())
    machine.before = listing(machine)
    machine.run("dpkg", "-i", "/root/pve-guard.deb")


def listing(machine):
    """Every file that a package could leave behind."""
    found = machine.sh("find /etc /usr /var/lib /var/log /run -xdev "
                       "\\( -path /var/lib/dpkg -o -path /var/lib/lxc -o -path '/var/lib/apt*' "
                       "-o -path /var/log/journal -o -path '/run/systemd' -o -path /run/udev \\) -prune -o -print")
    return {line for line in found.splitlines() if "pve-guard" in line or "proxmox-mcp" in line}


def newer(deb):
    """The same package with a higher version and another policy inside."""
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["dpkg-deb", "-R", deb, f"{work}/p"], check=True)
        subprocess.run(["sed", "-i", "s/^Version: .*/Version: 99.0/", f"{work}/p/DEBIAN/control"], check=True)
        with open(f"{work}/p{POLICY}", "a") as policy:
            policy.write("# a newer policy\n")
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", f"{work}/p", f"{work}/new.deb"],
                       check=True, stdout=subprocess.DEVNULL)
        return open(f"{work}/new.deb", "rb").read()


def test_files_are_where_they_belong(machine, guard, deb):
    for path, mode in (("/usr/sbin/pve-guard", "755 root root"), (POLICY, "644 root root"),
                       ("/etc/pve-guard", "755 root root"), ("/usr/share/pve-guard/sudoers", "644 root root"),
                       ("/var/log/pve-guard", "700 root root"), ("/var/log/pve-guard/guard.log", "600 root root"),
                       ("/var/lib/pve-guard", "700 root root"), ("/run/pve-guard", "700 root root")):
        assert machine.sh(f"stat -c '%a %U %G' {path}") == mode, path
    assert "not a dynamic" in machine.sh("ldd /usr/sbin/pve-guard 2>&1 || true") or \
        "statically" in machine.sh("ldd /usr/sbin/pve-guard 2>&1 || true")
    assert machine.sh("dpkg --verify pve-guard || true").split()[-1:] in ([], [POLICY])


def test_an_upgrade_keeps_the_policy(machine, guard, deb):
    before = machine.read(POLICY)
    assert "allowed" in machine.sh("pve-guard policy check")
    machine.path("/root/newer.deb").write_bytes(newer(deb))
    machine.run("dpkg", "--force-confold", "-i", "/root/newer.deb")
    assert machine.read(POLICY) == before
    assert guard.ask({"v": 1, "id": "a", "verb": "hello"}).status == 0


def test_removing_keeps_the_policy_and_purging_leaves_nothing(machine, guard, deb):
    machine.run("dpkg", "--remove", "pve-guard")
    assert machine.path(POLICY).exists() and not machine.path("/usr/sbin/pve-guard").exists()
    machine.run("dpkg", "--purge", "pve-guard")
    guard.leave()
    assert listing(machine) <= machine.before, listing(machine) - machine.before
