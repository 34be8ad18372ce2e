// Drives the server with the official TypeScript SDKs: ts_sdk.mjs v1|v2 MODE SCENARIO BINARY.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const [sdk, mode, scenario, binary] = process.argv.slice(2);
const steps = JSON.parse(readFileSync(scenario, 'utf8'));
const modern = mode !== 'legacy';

const { Client, StdioClientTransport } =
  sdk === 'v1'
    ? {
        ...(await import('@modelcontextprotocol/sdk/client/index.js')),
        ...(await import('@modelcontextprotocol/sdk/client/stdio.js')),
      }
    : {
        ...(await import('@modelcontextprotocol/client')),
        ...(await import('@modelcontextprotocol/client/stdio')),
      };

function check(step, result) {
  const what = `${step.tool} ${JSON.stringify(step.arguments)}`;
  const data = result.structuredContent;
  const text = result.content.filter((block) => block.type === 'text').map((block) => block.text).join('');
  assert.ok(text.trim(), `${what}: no text`);
  assert.equal(typeof data, 'object', `${what}: no structured content`);
  if (step.code) {
    assert.ok(result.isError, `${what}: not an error: ${text.slice(0, 300)}`);
    assert.equal(data.error.code, step.code, what);
    assert.ok(data.error.hint, `${what}: no hint`);
    assert.ok(text.includes(data.error.message), `${what}: the message is not in the text`);
    return;
  }
  assert.ok(!result.isError, `${what}: ${text.slice(0, 300)}`);
  for (const column of step.columns ?? []) assert.ok(data.columns.includes(column), `${what}: no column ${column}`);
  for (const key of step.keys ?? []) assert.ok(key in data, `${what}: no ${key}`);
  if (step.rows) assert.equal(data.rows.length, step.rows, what);
}

const client = new Client(
  { name: 'ts-check', version: '1' },
  sdk === 'v2' && modern ? { versionNegotiation: { mode: mode === 'auto' ? 'auto' : { pin: mode } } } : {},
);
await client.connect(
  new StdioClientTransport({ command: binary, args: ['serve', '--demo'], env: { HOME: process.env.HOME }, stderr: 'inherit' }),
);
assert.equal(client.getServerVersion().name, 'proxmox-mcp');
assert.ok(client.getInstructions().length <= 1600, 'instructions under 400 tokens');
const version = sdk === 'v2' ? client.getNegotiatedProtocolVersion() : '2025-11-25';
assert.equal(version, modern ? '2026-07-28' : '2025-11-25');

const { tools } = await client.listTools();
const names = tools.map((tool) => tool.name);
assert.ok(names.includes('pve_overview'));
for (const step of steps) {
  let result;
  try {
    result = await client.callTool({ name: step.tool, arguments: step.arguments });
  } catch (error) {
    assert.equal(error.code, step.protocol_error, `${step.tool}: ${error}`);
    continue;
  }
  assert.ok(!('protocol_error' in step), `${step.tool}: answered ${JSON.stringify(result)}`);
  check(step, result);
}
const limits = Array.from({ length: 16 }, (_, i) => i + 1);
const many = await Promise.all(limits.map((limit) => client.callTool({ name: 'pve_list_vms', arguments: { limit } })));
assert.deepEqual(many.map((result) => result.structuredContent.shown), limits, 'answers got mixed up');
await client.close();
console.log(`protocol ${version}, ${names.length} tools, ${steps.length + 16} calls`);
