"""Kernel pins, with and without a list of EFI partitions."""

from guard import request

OLD, NEW = "6.8.12-9-pve", "6.8.12-10-pve"


def pin(version, next_boot=False):
    return request("kernel-pin", version=version, next_boot=next_boot)


def test_allowing_the_verbs(machine, guard, deb):
    guard.policy(*[(f'# "{verb}",', f'"{verb}",') for verb in ("kernel-pin", "kernel-unpin", "upgrade-start")])
    done = guard.ask(request("kernel-list")).done
    assert done["installed"] == [OLD, NEW] and done["newest"] == NEW and done["pinned"] is None, done


def test_pins_take_effect_in_both_worlds(machine, guard, deb):
    for esps, loader in (("", "/etc/default/grub.d/proxmox-kernel-pin.cfg"), ("1111-AAAA\n", "/esp-loader.conf")):
        if esps:
            machine.write("/etc/kernel/proxmox-boot-uuids", esps)
        done = guard.ask(pin(OLD)).done
        assert (done["pinned"], done["next_boot"]) == (OLD, None), done
        assert OLD in machine.read(loader)
        done = guard.ask(pin(NEW, True)).done
        assert (done["pinned"], done["next_boot"]) == (OLD, NEW), done
        assert NEW in machine.read(loader)
        done = guard.ask(request("kernel-unpin", next_boot=False)).done
        assert (done["pinned"], done["next_boot"]) == (None, None), done


def test_a_pin_that_fails_is_taken_back(machine, guard, deb):
    assert guard.ask(pin(OLD)).status == 0
    machine.write("/skip-refresh", "")
    refused = guard.ask(pin(NEW)).refused
    machine.path("/skip-refresh").unlink()
    assert refused["code"] == "internal" and "skipping" in refused["message"], refused
    assert machine.read("/etc/kernel/proxmox-boot-pin").strip() == OLD
    assert guard.ask(pin("9.9.9-1-pve")).refused["code"] == "not_found"
    assert guard.ask(request("kernel-unpin")).status == 0
    machine.path("/etc/kernel/proxmox-boot-uuids").unlink()
