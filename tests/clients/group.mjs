// A session with the official TypeScript clients on a group of primitives, over HTTP with a key.
//
//     node group.mjs URL KEY
//
// It fails at the first thing that is not as expected, and prints a line for each session that held.

import { Client as Older } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OlderHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, key] = process.argv.slice(2);

function check(what, condition) {
  if (!condition) throw new Error(`not as expected: ${what}`);
}

async function session(title, client, transport) {
  await client.connect(transport);
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  check(`tools ${names}`, names.join() === "primitive_list,kv_get,kv_set");
  await client.callTool({ name: "kv_set", arguments: { key: title, value: 7 } });
  const read = await client.callTool({ name: "kv_get", arguments: { key: title } });
  check(`kv_get ${JSON.stringify(read)}`, read.structuredContent.data.value === 7);
  await client.close();
  console.log(`${title}: ok`);
}

const info = { name: "group.mjs", version: "0" };
const headers = { requestInit: { headers: { Authorization: `Bearer ${key}` } } };
await session("TypeScript SDK 1, a group over HTTP", new Older(info), new OlderHttp(new URL(url), headers));
for (const mode of ["legacy", "auto", { pin: "2026-07-28" }]) {
  const named = typeof mode === "string" ? mode : mode.pin;
  const client = new Client(info, { versionNegotiation: { mode } });
  const http = new StreamableHTTPClientTransport(new URL(url), headers);
  await session(`TypeScript client 2, a group over HTTP, ${named}`, client, http);
}
