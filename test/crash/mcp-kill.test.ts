import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { expect, onTestFinished, test } from 'vitest';
import { wordsOf } from '../support/cli/mcp-host.ts';
import { KEY, newFolder } from '../support/cli/open-buyer.ts';
import { startToolSeller, text } from '../support/cli/tool-seller.ts';
import { walletHere } from '../support/cli/wallet-here.ts';
import { CHILD_ENV } from '../support/service/child-env.ts';
import { programFile } from '../support/service/programs.ts';

// `percall mcp` itself, killed with kill -9 while a seller has the payment and the host waits for the answer.

test('a server that is killed in a payment: the next one presents the same payment, and the host has its answer', async () => {
  const [seller, folder] = [await startToolSeller(), newFolder()];
  await walletHere(['budget', '--day', '0.002'], folder, { PERCALL_DIR: folder });
  async function host() {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [programFile('percall'), 'mcp', seller.origin],
      env: { ...CHILD_ENV, PERCALL_DIR: folder, BUYER_PRIVATE_KEY: KEY },
      stderr: 'ignore',
    });
    const client = new Client({ name: 'host', version: '1' });
    await client.connect(transport as never);
    onTestFinished(() => client.close());
    const call = async () => (await client.callTool({ name: 'thing', arguments: { q: 'a' } })) as CallToolResult;
    return { transport, call };
  }
  const [asked, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  seller.answer = async () => {
    asked.resolve();
    await free.promise;
    return text('the answer');
  };
  const first = await host();
  const lost = first.call();
  const failed = expect(lost).rejects.toThrow('Connection closed');
  await asked.promise;
  process.kill(first.transport.pid ?? 0, 'SIGKILL');
  await failed;
  free.resolve();
  // The budget has room for one payment alone.
  const second = await host();
  expect(wordsOf(await second.call())).toBe('the answer');
  expect(new Set(seller.presented.map(({ nonce }) => nonce)).size).toBe(1);
  expect(wordsOf(await second.call())).toContain('above-budget');
  expect(seller.presented).toHaveLength(2);
});
