// A session with the official TypeScript clients, over stdio and HTTP: the SDK of version 1, which speaks the
// revisions with a handshake, and the client of version 2, which speaks both families.
//
//     node client.mjs PROGRAM DATABASE URL TOKEN
//
// It fails at the first thing that is not as expected, and prints a line for each session that held.

import { Client as Older } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OlderStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OlderHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [program, database, url, token] = process.argv.slice(2);

function check(what, condition) {
  if (!condition) throw new Error(`not as expected: ${what}`);
}

async function session(title, client, transport) {
  await client.connect(transport);
  check("server", client.getServerVersion().name === "indelible");
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  check(`tools ${names}`, names.includes("read_query") && names.includes("append_event"));
  const read = await client.callTool({ name: "read_query", arguments: { query: "SELECT 1 AS one" } });
  check(`read ${JSON.stringify(read)}`, !read.isError && read.content[0].text === "one\n1\n# 1 rows");
  const query = "DELETE FROM memory_events";
  const refused = await client.callTool({ name: "read_query", arguments: { query } });
  check(`refused ${JSON.stringify(refused)}`, refused.isError && refused._meta["indelible/code"] === "REFUSED");
  const uris = (await client.listResources()).resources.map((resource) => resource.uri);
  check(`resources ${uris}`, uris.includes("sqlite://schema"));
  const schema = await client.readResource({ uri: "sqlite://schema" });
  check("schema", schema.contents[0].text.length > 0);
  await client.close();
  console.log(`${title}: ok`);
}

const info = { name: "client.mjs", version: "0" };
const started = { command: program, args: ["--db", database], stderr: "ignore" };
const headers = { requestInit: { headers: { Authorization: `Bearer ${token}` } } };
await session("TypeScript SDK 1, stdio", new Older(info), new OlderStdio(started));
await session("TypeScript SDK 1, HTTP", new Older(info), new OlderHttp(new URL(url), headers));
for (const mode of ["legacy", "auto", { pin: "2026-07-28" }]) {
  const client = () => new Client(info, { versionNegotiation: { mode } });
  const named = typeof mode === "string" ? mode : mode.pin;
  await session(`TypeScript client 2, stdio, ${named}`, client(), new StdioClientTransport(started));
  const http = new StreamableHTTPClientTransport(new URL(url), headers);
  await session(`TypeScript client 2, HTTP, ${named}`, client(), http);
}
