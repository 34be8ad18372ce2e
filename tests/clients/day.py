"""What the scripts of a day's work share: a server in write mode, a person, and what is expected."""

import json
import os
import subprocess
import tempfile
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult


def table(data: dict) -> list[dict]:
    """The rows of a table, each with the names of its columns."""
    return [dict(zip(data["columns"], row, strict=True)) for row in data["rows"]]


class Day:
    """A client with a person before it, who says yes and whose forms are kept."""

    def __init__(self, client: Client, forms: list[str]) -> None:
        self.client, self.forms = client, forms
        # What was changed, in order: the audit log has to tell the same.
        self.story: list[str] = []

    async def raw(self, tool: str, arguments: dict) -> tuple[bool, dict]:
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result.structured_content, dict), f"{tool}: no structured content"
        return bool(result.is_error), result.structured_content

    async def ask(self, tool: str, **arguments) -> dict:
        failed, data = await self.raw(tool, arguments)
        assert not failed, f"{tool} {arguments}: {data}"
        return data

    async def refused(self, tool: str, code: str, **arguments) -> dict:
        failed, data = await self.raw(tool, arguments)
        assert failed and data["error"]["code"] == code, f"{tool} {arguments}: not {code}: {data}"
        assert data["error"]["hint"], f"{tool} {arguments}: no hint"
        return data["error"]

    async def change(self, tool: str, grave: str | None = None, **arguments) -> dict:
        """Makes a change. `grave` is what the person's form has to name, and
        means that the change has to be confirmed and approved first."""
        before = len(self.forms)
        if grave is not None:
            error = await self.refused(tool, "confirm_required", **arguments)
            assert len(self.forms) == before, f"{tool}: asked a person before it was confirmed"
            arguments["confirm"] = error["confirm"]
            # What is confirmed holds for the VMID that it was said of.
            if "vmid" not in arguments or tool == "pve_guest_clone":
                arguments |= {"newid": error["vmid"]} if "vmid" in error else {}
        data = await self.ask(tool, **arguments)
        assert data["status"] == "done", f"{tool} {arguments}: {data}"
        task = data.get("task")
        assert task is None or task["ok"], f"{tool}: {task}"
        asked = self.forms[before:]
        if grave is None:
            assert not asked, f"{tool}: asked for what needs no approval: {asked}"
        else:
            assert len(asked) == 1 and grave in asked[0], f"{tool}: no {grave!r} in {asked}"
        self.story.append(tool)
        return data

    async def rows(self, tool: str, **arguments) -> list[dict]:
        return table(await self.ask(tool, **arguments))

    async def config(self, vmid: int) -> dict:
        return (await self.ask("pve_vm_config", vmid=vmid))["config"]

    async def exists(self, vmid: int) -> bool:
        return any(row["vmid"] == vmid for row in await self.rows("pve_list_vms", limit=200))


@asynccontextmanager
async def day(binary: str, mode: str, flags: list[str]):
    """A day on the sample estate with these flags; at its end the audit log is held against it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        critical, log = place / "critical.env", place / "audit.log"
        critical.write_text("".join(f"PROXMOX_ALLOW_{flag}=true\n" for flag in flags), encoding="utf-8")
        critical.chmod(0o600)
        settings = {
            "HOME": os.environ["HOME"],
            "PROXMOX_MODE": "write",
            "PROXMOX_CRITICAL_FILE": str(critical),
            "PROXMOX_APPROVAL": "human",
            "PROXMOX_AUDIT_LOG": str(log),
        }
        forms: list[str] = []

        async def person(_context, params) -> ElicitResult:
            forms.append(params.message)
            fields = params.requested_schema["properties"]
            return ElicitResult(action="accept", content=dict.fromkeys(fields, True))

        server = StdioServerParameters(command=binary, args=["serve", "--demo"], env=settings)
        async with Client(server, mode=mode, elicitation_callback=person, read_timeout_seconds=90) as client:
            today = Day(client, forms)
            yield today
            await told(today)
        recorded(binary, log, settings, today.story)


async def told(today: Day) -> None:
    """The log, asked over the protocol, has the changes in the order they were made."""
    records = list(reversed(await today.rows("pve_audit_log", limit=500)))
    # A tool of several steps has sent several requests in a row.
    sent = [tool for tool, _ in groupby(r["tool"] for r in records if r["outcome"] == "sent")]
    story = [tool for tool, _ in groupby(today.story)]
    assert sent == story, f"the audit log tells another story:\n{sent}\n{story}"


def recorded(binary: str, log: Path, settings: dict, story: list[str]) -> None:
    """The log on disk is whole, and can be searched."""

    def run(*args: str) -> subprocess.CompletedProcess:
        return subprocess.run([binary, "audit", *args], env=settings, capture_output=True, text=True, check=False)

    verified = run("verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    for tool in set(story):
        found = run("search", tool)
        assert found.returncode == 0 and tool in found.stdout, f"{tool}: {found.stdout}{found.stderr}"
    # A changed letter is found out.
    text = log.read_text(encoding="utf-8")
    log.write_text(text.replace(story[0], story[0].upper(), 1), encoding="utf-8")
    assert run("verify").returncode != 0, "a record that was changed is not noticed"


def shown(data) -> str:
    return json.dumps(data, ensure_ascii=False)
