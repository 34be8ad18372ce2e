"""A day's work on guests, through the official Python SDK: day_guests.py MODE BINARY."""

import asyncio
import sys

from day import day


async def main(mode: str, binary: str) -> None:
    flags = ["GUEST_DELETE", "GUEST_CREDENTIALS", "VOLUME_DELETE"]
    async with day(binary, mode, flags) as d:
        # A container from a template.
        templates = await d.rows("pve_list_templates")
        template = next(t["id"] for t in templates if str(t["id"]).startswith("nfs-images:vztmpl/debian"))
        made = await d.change(
            "pve_ct_create", template=template, node="pve1", hostname="tagwerk", storage="local-lvm", size="8G",
            nics=[{"bridge": "vmbr0", "ip": "dhcp"}],
        )
        ct = made["vmid"]
        config = await d.config(ct)
        assert config["unprivileged"] == 1 and config["hostname"] == "tagwerk", config
        assert (await d.ask("pve_vm_status", vmid=ct))["status"] == "stopped"
        first = config["net0"]

        # A second disk, and a NIC in a VLAN; the first NIC stays as it is.
        await d.change("pve_disk_add", vmid=ct, storage="local-lvm", size="4G", mount="/srv")
        await d.change("pve_nic_set", vmid=ct, bridge="vmbr0", tag=30, ip="dhcp", name="eth1")
        config = await d.config(ct)
        assert "mp=/srv" in config["mp0"] and "size=4G" in config["mp0"], config
        assert "tag=30" in config["net1"] and "name=eth1" in config["net1"], config
        assert config["net0"] == first, config

        await d.change("pve_guest_start", vmid=ct)
        assert (await d.ask("pve_vm_status", vmid=ct))["status"] == "running"

        # A snapshot, something that breaks, and back.
        await d.change("pve_snapshot_create", vmid=ct, name="gut", description="vor dem Umbau")
        await d.change("pve_guest_config_set", vmid=ct, set={"memory": 64, "description": "kaputt"})
        assert (await d.config(ct))["memory"] == 64
        await d.change("pve_snapshot_rollback", vmid=ct, name="gut", start=True)
        config = await d.config(ct)
        assert config["memory"] == 512, config
        # Proxmox keeps the description of now.
        assert config["description"].strip() == "kaputt", config
        assert (await d.ask("pve_vm_status", vmid=ct))["status"] == "running"

        # A backup, and the same guest under a new VMID.
        saved = await d.change("pve_backup_create", vmid=ct, storage="nfs-backup", notes="Tagwerk")
        backups = await d.rows("pve_list_backups", vmid=ct)
        assert len(backups) == 1, (saved, backups)
        volid = backups[0]["volid"]
        restored = await d.change("pve_backup_restore", volid=volid, node="pve1", storage="local-lvm")
        copy = restored["vmid"]
        assert copy != ct, restored
        config = await d.config(copy)
        assert config["hostname"] == "tagwerk" and config["unprivileged"] == 1, config
        assert "mp=/srv" in config["mp0"] and f"vm-{copy}-" in config["mp0"], config

        # The copy goes to another node, and grows there.
        await d.change("pve_guest_migrate", vmid=copy, target="pve2")
        details = next(v for v in await d.rows("pve_list_vms", limit=200) if v["vmid"] == copy)
        assert details["node"] == "pve2", details
        await d.change("pve_disk_resize", vmid=copy, disk="rootfs", size="+2G")
        assert "size=10G" in (await d.config(copy))["rootfs"]
        await d.refused("pve_disk_resize", "conflict", vmid=copy, disk="rootfs", size="4G")

        # A VM from a template, with a login of its own.
        clone = await d.change(
            "pve_guest_clone", grave="CRITICAL", vmid=900, name="tagwerk-vm", full=True,
            cloudinit={"user": "kim", "addresses": [{"ip": "10.20.40.77/24", "gw": "10.20.40.1"}]}, start=True,
            wait_address=True,
        )
        vm = clone["vmid"]
        # Made once, also where the form for its login ended the call in between.
        assert [step["step"] for step in clone["steps"]] == ["clone", "configure", "start", "address"], clone
        assert clone["addresses"] == ["10.20.40.77"], clone
        copies = [v for v in await d.rows("pve_list_vms", limit=200) if v["name"] == "tagwerk-vm"]
        assert [v["vmid"] for v in copies] == [vm], copies
        config = await d.config(vm)
        assert config["name"] == "tagwerk-vm" and config["ciuser"] == "kim", config
        assert config["ipconfig0"] == "ip=10.20.40.77/24,gw=10.20.40.1", config
        assert (await d.ask("pve_vm_status", vmid=vm))["status"] == "running"

        # Its disk moves while it runs; what was set on it stays.
        await d.change("pve_disk_move", vmid=vm, disk="scsi0", storage="local-lvm", delete=False)
        config = await d.config(vm)
        assert config["scsi0"].startswith("local-lvm:") and "iothread=1" in config["scsi0"], config
        assert config["unused0"].startswith("nfs-images:"), config

        # Everything goes again; a stale VMID, or one that runs, does not.
        await d.refused("pve_guest_delete", "conflict", vmid=vm, expect_name="web-01")
        for vmid, name in [(vm, "tagwerk-vm"), (ct, "tagwerk"), (copy, "tagwerk")]:
            if vmid != copy:
                await d.change("pve_guest_stop", vmid=vmid)
            await d.change("pve_guest_delete", grave=str(vmid), vmid=vmid, expect_name=name)
            assert not await d.exists(vmid), vmid
        await d.change("pve_backup_delete", grave=volid, volid=volid, node="pve1")
        assert not await d.rows("pve_list_backups", vmid=ct)
    print(f"{len(d.story)} changes, {len(d.forms)} approved by a person, told in order by the audit log")


asyncio.run(main(*sys.argv[1:]))
