import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { newFolder } from '../../support/cli/open-buyer.ts';
import { walletHere } from '../../support/cli/wallet-here.ts';
import { fencedBlocks } from '../../support/documents.ts';
import { CHILD_ENV } from '../../support/service/child-env.ts';
import { textsOf } from '../../support/service/mcp.ts';
import { programFile } from '../../support/service/programs.ts';
import { type Examples, openExamples } from '../../support/service/shown-code.ts';
import { balanceOf } from '../../support/usdc/buyer.ts';

// The program as a host's configuration starts it: a command, its words and its environment. The host is the official
// client over standard input and output, as it comes.

let examples: Examples;
beforeAll(async () => {
  examples = await openExamples({ lightning: true, channels: true });
  await untilChannelsAreOffered(`${examples.service.origin}/v1/paid/fees/estimate`);
});
afterAll(() => examples?.stop());

/** The entry of a host's configuration file that docs/clients.md shows first. */
interface Entry {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}
const blocks = fencedBlocks('docs/clients.md').filter(({ language }) => language === 'json');
const shown: Entry = JSON.parse(blocks[0]?.code ?? '').mcpServers.percall;

interface Configured {
  readonly folder: string;
  /** Behind the seller. */
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

test('the configuration files of docs/clients.md start one command, with the key in a file', () => {
  expect(shown.args).toEqual(['--yes', expect.stringMatching(/\.tgz$/), 'mcp', 'https://api.example']);
  expect(JSON.parse(blocks[1]?.code ?? '').servers.percall).toEqual({ type: 'stdio', ...shown });
  expect([blocks.length, Object.keys(shown.env)]).toEqual([2, ['BUYER_PRIVATE_KEY_FILE']]);
});

/** The server as a host starts it, from an entry of its configuration file. */
async function startHost({ folder, words, env }: Configured) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    // The tarball's program, as it is built for tests.
    args: [programFile('percall'), ...shown.args.slice(2, -1), examples.service.origin, ...words],
    env: { ...CHILD_ENV, PERCALL_DIR: join(folder, '.percall'), ...env },
    stderr: 'pipe',
  });
  const said: Buffer[] = [];
  transport.stderr?.on('data', (part: Buffer) => said.push(part));
  const client = new Client({ name: 'host', version: '1' });
  // A line of anything but the protocol is such an error.
  const faults: Error[] = [];
  client.onerror = (error) => faults.push(error);
  await client.connect(transport as never);
  onTestFinished(() => client.close());
  return {
    client,
    faults,
    stderr: () => Buffer.concat(said).toString(),
    call: async (name: string, given: Record<string, unknown> = {}) =>
      (await client.callTool({ name, arguments: given })) as CallToolResult,
  };
}

const usdc = async () => balanceOf(examples.network, examples.network.buyer.address);

/** The key in a file, as the configuration has it. */
function keys(folder: string): Record<string, string> {
  const file = join(folder, 'key');
  writeFileSync(file, `${examples.network.buyer.privateKey}\n`, { mode: 0o600 });
  return {
    ...Object.fromEntries(Object.keys(shown.env).map((name) => [name, file])),
    RPC_URL: examples.network.rpcUrl,
  };
}

test.each([
  ['in USDC', [], keys, 'exact', ['--day', '1']],
  ['over a channel', ['--channel'], keys, 'channel', ['--day', '1']],
  [
    'in sats',
    [],
    () => ({ PAYER_URL: examples.network.lightning?.payUrl ?? '' }),
    'lightning',
    ['--sats', '--day', '1000'],
  ],
] as const)(
  'a host buys a tool %s, within a budget, and gets its answer as data',
  async (_how, words, env, way, budget) => {
    const folder = newFolder();
    await walletHere(['budget', ...budget], folder);
    const before = await usdc();
    const { client, call, stderr, faults } = await startHost({
      folder,
      words,
      env: env(folder),
    });
    const { tools } = await client.listTools();
    expect(tools.slice(0, 3).map(({ name }) => name)).toEqual(['search', 'balance', 'receipts']);
    const listed = tools.find(({ name }) => name === 'paid_fees_estimate');
    expect(listed?.description, stderr()).toMatch(/^Price: 0\.0005 USD a call as listed; more is not paid/);
    expect(listed?.inputSchema.properties).toHaveProperty('gas');

    const answer = await call('paid_fees_estimate', { gas: 70_001 });
    const [mark = '', data = ''] = textsOf(answer);
    expect(answer.isError, `${mark}\n${stderr()}`).toBeUndefined();
    expect(mark).toContain('is data from');
    expect(JSON.parse(data)).toMatchObject({ gas: 70_001 });
    expect(answer._meta?.['percall/payment']).toMatchObject({ way });

    expect(textsOf(await call('balance'))[0]).toContain('of it is spent');
    expect(textsOf(await call('receipts'))[0]).toContain('"state":"answered"');
    expect(textsOf(await call('search', { q: 'fees' }))[0]).toContain('/v1/paid/fees/');
    const [bought] = JSON.parse((await walletHere(['history', '--json'], folder)).stdout);
    expect(bought).toMatchObject({ state: 'answered', way });
    expect(faults).toEqual([]);
    const paid = before - (await usdc());
    expect(paid).toBe({ exact: 500n, channel: 1_000_000n, lightning: 0n }[way]);
  },
);

test('without a budget a host that cannot ask gets no payment, and its free tools still', async () => {
  const folder = newFolder();
  const before = await usdc();
  const { call, client } = await startHost({ folder, words: [], env: keys(folder) });
  await client.listTools();
  const refused = await call('paid_fees_estimate', { gas: 70_002 });
  expect(refused).toMatchObject({ isError: true });
  expect(textsOf(refused)[0]).toContain('percall wallet budget --day 1');
  const free = await call('free_fees_estimate', { gas: 70_003 });
  expect(JSON.parse(textsOf(free)[1] ?? '')).toHaveProperty('gas');
  expect([await usdc(), existsSync(join(folder, '.percall/answers'))]).toEqual([before, false]);
});
