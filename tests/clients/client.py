"""A session with the official Python client, over stdio and HTTP, in both families of revisions.

    client.py PROGRAM DATABASE URL TOKEN

It fails at the first thing that is not as expected, and prints a line for each session that held.
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


def check(what, condition):
    if not condition:
        raise SystemExit(f"client.py: not as expected: {what}")


async def session(server, mode, revision):
    async with Client(server, mode=mode) as client:
        check(f"revision {client.protocol_version}", client.protocol_version == revision)
        # A client that is set to 2026-07-28 asks nobody who they are.
        named = client.server_info.name if client.server_info else None
        check(f"server {named}", named == ("indelible" if mode != revision else None))
        names = [tool.name for tool in (await client.list_tools()).tools]
        check(f"tools {names}", "read_query" in names and "append_event" in names)
        read = await client.call_tool("read_query", {"query": "SELECT 1 AS one"})
        check(f"read {read}", not read.is_error and read.content[0].text == "one\n1\n# 1 rows")
        refused = await client.call_tool("read_query", {"query": "DELETE FROM memory_events"})
        check(f"refused {refused}", refused.is_error and refused.meta["indelible/code"] == "REFUSED")
        uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
        check(f"resources {uris}", "sqlite://schema" in uris)
        schema = await client.read_resource("sqlite://schema")
        check(f"schema {schema}", len(schema.contents[0].text) > 0)


async def main(program, database, url, token):
    def over_http():
        headers = {"Authorization": f"Bearer {token}"}
        return streamable_http_client(url, http_client=create_mcp_http_client(headers=headers))

    modes = (("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28"))
    for mode, revision in modes:
        await session(StdioServerParameters(command=program, args=["--db", database]), mode, revision)
        print(f"Python SDK, stdio, {mode}: ok")
        await session(over_http(), mode, revision)
        print(f"Python SDK, HTTP, {mode}: ok")


asyncio.run(main(*sys.argv[1:]))
