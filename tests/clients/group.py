"""A session with the official Python client on a group of primitives, over HTTP with a key, in both families of revisions.

    group.py URL KEY

It fails at the first thing that is not as expected, and prints a line for each session that held.
"""

import asyncio
import sys

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


def check(what, condition):
    if not condition:
        raise SystemExit(f"group.py: not as expected: {what}")


async def session(url, key, mode):
    headers = {"Authorization": f"Bearer {key}"}
    over_http = streamable_http_client(url, http_client=create_mcp_http_client(headers=headers))
    async with Client(over_http, mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        check(f"tools {names}", names == ["primitive_list", "kv_get", "kv_set"])
        wrote = await client.call_tool("kv_set", {"key": mode, "value": {"by": "Python"}})
        check(f"kv_set {wrote}", not wrote.is_error)
        read = await client.call_tool("kv_get", {"key": mode})
        check(f"kv_get {read}", read.structured_content["data"]["value"] == {"by": "Python"})
        forbidden = await client.call_tool("kv_delete", {"key": mode})
        check(f"kv_delete {forbidden}", forbidden.is_error and forbidden.meta["indelible/code"] == "FORBIDDEN_TOOL")


async def main(url, key):
    for mode in ("legacy", "auto", "2026-07-28"):
        await session(url, key, mode)
        print(f"Python SDK, a group over HTTP, {mode}: ok")


asyncio.run(main(*sys.argv[1:]))
