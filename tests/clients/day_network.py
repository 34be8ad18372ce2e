"""A day's work on networks, nodes and access, through the official Python SDK: day_network.py MODE BINARY."""

import asyncio
import sys

from day import day, shown, table

FLAGS = [
    "NODE_NETWORK", "CLUSTER_FIREWALL", "ACCESS_CONTROL", "APT_REPOSITORIES", "CRITICAL_SERVICES", "SDN_APPLY",
    "NODE_POWER",
]


async def bridge(d) -> None:
    """A VLAN bridge is prepared, reviewed and reverted."""
    before = await d.rows("pve_list_interfaces", node="pve2")
    await d.change(
        "pve_interface_set", grave="vmbr7", node="pve2", iface="vmbr7", type="bridge", bridge_vlan_aware=True,
        must_not_exist=True,
    )
    review = await d.ask("pve_list_interfaces", node="pve2")
    assert "vmbr7" in shown(review["pending"]), review
    await d.change("pve_network_revert", node="pve2")
    after = await d.ask("pve_list_interfaces", node="pve2")
    assert "pending" not in after and table(after) == before, after


async def firewall(d) -> None:
    """A security group is made and used by a guest."""
    await d.change("pve_firewall_group_set", grave="tagweb", group="tagweb", comment="Tagwerk")
    await d.change(
        "pve_firewall_rule_set", grave="tagweb", group="tagweb", type="in", action="ACCEPT", proto="tcp", dport="443",
    )
    rules = await d.rows("pve_firewall_rules", group="tagweb")
    assert [(r["action"], r["proto"], r["dport"]) for r in rules] == [("ACCEPT", "tcp", "443")], rules
    before = await d.rows("pve_firewall_rules", vmid=100)
    await d.change("pve_firewall_rule_set", vmid=100, type="group", action="tagweb", enable=True)
    listed = await d.ask("pve_firewall_rules", vmid=100)
    rule = next(r for r in table(listed) if r["type"] == "group")
    assert rule["action"] == "tagweb" and rule["enable"], rule
    # What is in use, or still has rules, does not go; nor does a rule by a stale list.
    failed, data = await d.raw("pve_firewall_group_delete", {"group": "tagweb", "confirm": "/cluster/firewall/groups/tagweb"})
    assert failed, data
    await d.refused("pve_firewall_rule_delete", "digest_changed", vmid=100, pos=rule["pos"], digest="0" * 40)
    await d.change("pve_firewall_rule_delete", vmid=100, pos=rule["pos"], digest=listed["digest"])
    assert await d.rows("pve_firewall_rules", vmid=100) == before
    listed = await d.ask("pve_firewall_rules", group="tagweb")
    await d.change("pve_firewall_rule_delete", grave="tagweb", group="tagweb", pos=0, digest=listed["digest"])
    await d.change("pve_firewall_group_delete", grave="tagweb", group="tagweb")


async def access(d) -> None:
    """A user with a role on a pool, a token of theirs, and a question about what it may do."""
    user = "tagwerk@pve"
    await d.change("pve_user_set", grave=user, userid=user, comment="Tagwerk", must_not_exist=True)
    await d.change("pve_acl_set", grave="PVEVMUser", path="/pool/entwicklung", roles=["PVEVMUser"], users=[user])
    acl = await d.rows("pve_list_acl", who=user)
    assert len(acl) == 1 and acl[0]["path"] == "/pool/entwicklung" and acl[0]["role"] == "PVEVMUser", acl
    made = await d.change("pve_token_set", grave="hilfe", userid=user, token="hilfe", privsep=True)
    tokens = await d.rows("pve_list_tokens", userid=user)
    assert len(tokens) == 1, (made, tokens)
    # Guest 118 is in the pool, 100 is not; the token has nothing of its own.
    for who, path, wanted in [
        (user, "/vms/118", True), (user, "/vms/100", False), (f"{user}!hilfe", "/vms/118", False),
    ]:
        asked = {"userid": who, "path": path, "privileges": ["VM.PowerMgmt"]}
        answer = await d.ask("pve_permissions", **asked)
        assert answer["allowed"] is wanted, f"{asked}: {answer}"
        lacks = [p for check in answer["checks"] for p in check["lacks"]]
        assert lacks == ([] if wanted else ["VM.PowerMgmt"]), f"{asked}: {answer}"
    await d.change("pve_token_delete", grave="hilfe", userid=user, token="hilfe")
    await d.change(
        "pve_acl_set", grave="PVEVMUser", path="/pool/entwicklung", roles=["PVEVMUser"], users=[user], delete=True,
    )
    assert not await d.rows("pve_list_acl", who=user)
    await d.change("pve_user_delete", grave=user, userid=user)
    assert user not in shown(await d.rows("pve_list_users"))


async def node(d) -> None:
    """A repository is switched and switched back, a service restarted, a reboot looked at."""
    first = await d.ask("pve_apt_repositories", node="pve3")
    entry = next(r for r in table(first) if "trixie-updates" in r["suites"])
    where = {"node": "pve3", "path": entry["path"], "index": entry["index"]}
    for enabled in [not entry["enabled"], entry["enabled"]]:
        digest = (await d.ask("pve_apt_repositories", node="pve3"))["digest"]
        await d.change("pve_apt_repository_set", grave="repositories", **where, enabled=enabled, digest=digest)
        now = await d.rows("pve_apt_repositories", node="pve3")
        switched = [r for r in now if (r["path"], r["index"]) == (entry["path"], entry["index"])]
        assert [r["enabled"] for r in switched] == [enabled], now
    assert table(await d.ask("pve_apt_repositories", node="pve3")) == table(first)

    await d.change("pve_service_control", grave="chrony", node="pve3", service="chrony", action="restart")
    services = await d.rows("pve_list_services", node="pve3")
    assert next(s for s in services if s["service"] == "chrony")["active"] == "active", services

    running = [v["vmid"] for v in await d.rows("pve_list_vms", node="pve3", status="running", limit=200)]
    look = await d.ask("pve_node_power", node="pve3", command="reboot", dry_run=True)
    assert look["status"] == "dry_run", look
    assert running and all(str(vmid) in shown(look["preflight"]) for vmid in running), look
    nodes = await d.rows("pve_list_nodes")
    assert all(n["status"] == "online" for n in nodes), nodes


async def sdn(d) -> None:
    """A zone, a vnet and a subnet are made and applied, and go again."""

    async def pending(what: str) -> dict:
        status = await d.ask("pve_sdn_status")
        return {next(iter(r.values())): r["pending"] for r in table(status[what])}

    await d.change("pve_sdn_zone_set", zone="tagzone", type="simple")
    await d.change("pve_sdn_vnet_set", vnet="tagnet", zone="tagzone")
    await d.change("pve_sdn_subnet_set", vnet="tagnet", subnet="10.77.0.0/24", gateway="10.77.0.1")
    assert (await pending("zones"))["tagzone"] == "new"
    assert (await pending("vnets"))["tagnet"] == "new"
    await d.change("pve_sdn_apply", grave="/cluster/sdn")
    assert (await pending("zones"))["tagzone"] is None
    assert "10.77.0.1" in shown((await d.ask("pve_sdn_status"))["subnets"])
    await d.change("pve_sdn_subnet_delete", vnet="tagnet", subnet="10.77.0.0/24")
    await d.change("pve_sdn_vnet_delete", vnet="tagnet")
    await d.change("pve_sdn_zone_delete", zone="tagzone")
    await d.change("pve_sdn_apply", grave="/cluster/sdn")
    assert "tagzone" not in await pending("zones") and "tagnet" not in await pending("vnets")


async def main(mode: str, binary: str) -> None:
    changes = approved = 0
    # A person is asked only so often a minute by one server: each part has its own.
    for part in (bridge, firewall, access, node, sdn):
        async with day(binary, mode, FLAGS) as d:
            await part(d)
        changes, approved = changes + len(d.story), approved + len(d.forms)
    print(f"{changes} changes, {approved} approved by a person, told in order by the audit log")


asyncio.run(main(*sys.argv[1:]))
