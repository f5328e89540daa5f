// The official TypeScript SDK drives haft: list, changes of the list, call, progress, approvals through the client, cancel.
//
// drive.mjs MODULES HAFT FOLDER stdio|http legacy|2026-07-28 [URL TOKEN]

import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, haft, folder, way, mode, url, token] = process.argv.slice(2);
const require = createRequire(path.join(modules, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const work = path.join(folder, 'work');
const asked = [];
let answer = { decision: "approve" };
const changes = [];

const negotiation = mode === 'legacy' ? { mode: 'legacy' } : { mode: { pin: mode } };
const client = new Client(
  { name: 'typescript-sdk', version: '1' },
  {
    capabilities: { elicitation: {} },
    versionNegotiation: negotiation,
    listChanged: { tools: { onChanged: (error, tools) => changes.push(error ?? tools) } }
  }
);
client.setRequestHandler('elicitation/create', async (request) => {
  asked.push(request.params.message);
  return answer ? { action: 'accept', content: answer } : { action: 'decline' };
});
const transport =
  way === 'stdio'
    ? new StdioClientTransport({
        command: haft,
        args: ['--set', 'tools.approval.denylist=[]', 'mcp', '--approvals', 'client'],
        cwd: work,
        env: { HOME: folder, PATH: '/usr/bin:/bin' },
        stderr: 'inherit'
      })
    : new StreamableHTTPClientTransport(new URL(url), {
        requestInit: { headers: { Authorization: `Bearer ${token}` } }
      });
await client.connect(transport);
const code = (result) => result._meta?.['haft/error']?.code;

const tools = await client.listTools();
assert(tools.tools.some((tool) => tool.name === 'read_file'));

const read = await client.callTool({ name: 'read_file', arguments: { path: 'notes.txt' } });
assert.equal(read.structuredContent.content, 'hello\n');
const wrong = await client.callTool({ name: 'read_file', arguments: { path: [7] } });
assert.equal(code(wrong), 'VALIDATION_FAILED');

const file = { path: `ts-${way}-${mode}.txt`, content: 'written' };
answer = null;
const denied = await client.callTool({ name: 'write_file', arguments: file });
assert.equal(code(denied), 'CONFIRMATION_DENIED');
assert(!fs.existsSync(path.join(work, file.path)));
answer = { decision: "approve" };
const progress = [];
// The SDK forgets a progress report that it reads together with the answer, so one try may see none.
for (let attempt = 1; attempt <= 5 && progress.length === 0; attempt += 1) {
  const target = `${attempt}-${file.path}`;
  const written = await client.callTool(
    { name: 'write_file', arguments: { ...file, path: target } },
    { onprogress: (report) => progress.push(report.message) }
  );
  assert(!written.isError, JSON.stringify(written));
  assert.equal(fs.readFileSync(path.join(work, target), 'utf8'), 'written');
  assert.equal(asked.length, attempt + 1);
}
assert(progress.some((message) => message.includes('waiting for approval')), JSON.stringify(progress));

const resource = await client.readResource({ uri: 'haft://tools/read_file' });
assert(resource.contents[0].text.includes('"read_file"'));

const before = Date.now();
const stop = new AbortController();
setTimeout(() => stop.abort(), 1500);
await assert.rejects(
  client.callTool({ name: 'run_command', arguments: { command: 'sleep 28' } }, { signal: stop.signal })
);
const again = await client.callTool({ name: 'read_file', arguments: { path: 'notes.txt' } });
assert(!again.isError);
assert(Date.now() - before < 20000);

// Another process switches a tool off; the client hears of it.
const told = async (command, there) => {
  const env = { HOME: folder, PATH: '/usr/bin:/bin' };
  execFileSync(haft, ['tools', command, 'get_metrics'], { env, cwd: work });
  const until = Date.now() + 20000;
  const isSo = (tools) => Array.isArray(tools) && tools.some((tool) => tool.name === 'get_metrics') === there;
  while (!isSo(changes.at(-1))) {
    assert(Date.now() < until, `nobody told of ${command}: ${changes.length}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};
await told('disable', false);
await told('enable', true);
await client.close();
console.log('driven');
