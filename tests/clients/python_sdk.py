"""Drives the server with the official Python SDK: python_sdk.py MODE SCENARIO BINARY."""

import asyncio
import json
import os
import sys

from mcp import Client, MCPError, StdioServerParameters

EXPECTED_VERSION = {"auto": "2026-07-28", "legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


def check(step: dict, result) -> None:
    what = f"{step['tool']} {json.dumps(step.get('arguments'))}"
    data = result.structured_content
    text = "".join(block.text for block in result.content if block.type == "text")
    assert text.strip(), f"{what}: no text"
    assert isinstance(data, dict), f"{what}: no structured content"
    if code := step.get("code"):
        assert result.is_error, f"{what}: not an error: {text[:300]}"
        assert data["error"]["code"] == code, f"{what}: {data['error']}"
        assert data["error"]["hint"], f"{what}: no hint"
        assert data["error"]["message"] in text, f"{what}: the message is not in the text"
        return
    assert not result.is_error, f"{what}: {text[:300]}"
    for column in step.get("columns", []):
        assert column in data["columns"], f"{what}: no column {column} in {data['columns']}"
    for key in step.get("keys", []):
        assert key in data, f"{what}: no {key} in {list(data)}"
    if rows := step.get("rows"):
        assert len(data["rows"]) == rows, f"{what}: {len(data['rows'])} rows"
    if "rows" in data:
        assert data["shown"] == len(data["rows"]) <= data["total"], what
        assert all(len(row) == len(data["columns"]) for row in data["rows"]), what


async def main(mode: str, scenario: str, binary: str) -> None:
    with open(scenario, encoding="utf-8") as file:
        steps = json.load(file)
    # The SDK passes a short list of variables on; HOME is one of them.
    server = StdioServerParameters(command=binary, args=["serve", "--demo"], env={"HOME": os.environ["HOME"]})
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        assert client.protocol_version == EXPECTED_VERSION[mode], client.protocol_version
        # A client that adopts a version without asking has seen neither name nor instructions.
        if mode != "2026-07-28":
            assert client.server_info.name == "proxmox-mcp", client.server_info
            assert 0 < len(client.instructions or "") <= 1600, "instructions under 400 tokens"
        tools = (await client.list_tools()).tools
        names = [tool.name for tool in tools]
        assert len(set(names)) == len(names) and "pve_overview" in names, names
        for step in steps:
            try:
                result = await client.call_tool(step["tool"], step.get("arguments"))
            except MCPError as error:
                assert error.code == step.get("protocol_error"), f"{step}: {error!r}"
                continue
            assert "protocol_error" not in step, f"{step}: answered {result}"
            check(step, result)
        many = await asyncio.gather(*(client.call_tool("pve_list_vms", {"limit": n}) for n in range(1, 17)))
        assert [r.structured_content["shown"] for r in many] == list(range(1, 17)), "answers got mixed up"
    print(f"protocol {EXPECTED_VERSION[mode]}, {len(names)} tools, {len(steps) + 16} calls")


asyncio.run(main(*sys.argv[1:]))
