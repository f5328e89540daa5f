// The same echo, on the official TypeScript SDK, for crates/haft-mcp/benches/stdio.rs.
//
// echo.mjs MODULES

import path from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(path.join(process.argv[2], 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { McpServer } = await load('@modelcontextprotocol/sdk/server/mcp.js');
const { StdioServerTransport } = await load('@modelcontextprotocol/sdk/server/stdio.js');
const { z } = await load('zod');

const server = new McpServer({ name: 'echo', version: '1' });
server.registerTool('echo', { description: 'Says it again', inputSchema: { text: z.string() } }, async ({ text }) => ({
  content: [{ type: 'text', text }]
}));
await server.connect(new StdioServerTransport());
