import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { parseHTML } from 'linkedom';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blocksOf, commandsOf, readText } from '../../support/documents.ts';
import { priceOf } from '../../support/prices.ts';
import { type Examples, openExamples } from '../../support/service/shown-code.ts';
import { decoded, newBuyer, present } from '../../support/usdc/buyer.ts';

// Runs the code on the landing page, in the README and in the reference as they show it. All buy from one service.

const run = promisify(execFile);
const tools = {
  curl: spawnSync('curl', ['--version']).status === 0,
  python: spawnSync('python3', ['-c', 'import urllib.request']).status === 0,
};
const env = { PATH: process.env.PATH, NO_PROXY: '*' };

let examples: Examples;
beforeAll(async () => {
  examples = await openExamples();
});
afterAll(() => examples?.stop());

describe('on the landing page', () => {
  const ENTITIES: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };

  /** The text of a code block on the landing page, as a reader would copy it. */
  async function shown(id: string): Promise<string> {
    const { body } = await examples.service.get('/');
    const markup = new RegExp(`<code id="${id}">([\\s\\S]*?)</code>`).exec(body)?.[1] ?? '';
    return markup.replace(/<[^>]+>/g, '').replace(/&\w+;|&#39;/g, (entity) => ENTITIES[entity] ?? entity);
  }

  test('the ten lines of TypeScript buy a call, and the printed hash is its transfer', async () => {
    const code = await shown('pay-typescript');
    expect(code.trim().split('\n')).toHaveLength(10);
    await examples.expectPurchase(code);
  });

  describe.skipIf(!tools.curl)(`curl${tools.curl ? '' : ' (skipped: it is not installed)'}`, () => {
    test('as documented shows the terms of the 402', async () => {
      const { network } = examples;
      const { stdout } = await run('sh', ['-c', await shown('ask-curl')]);
      const [requirement] = JSON.parse(stdout).accepts;
      expect(requirement).toMatchObject({
        scheme: 'exact',
        network: `eip155:${network.chainId}`,
        asset: network.usdc.toLowerCase(),
        amount: String(priceOf('/chain/wallet').units),
        payTo: network.seller,
      });
    });
  });

  describe.skipIf(!tools.python)(`Python${tools.python ? '' : ' (skipped: it is not installed)'}`, () => {
    test('as documented reads a free route with its standard library', async () => {
      const file = examples.write('read.py', await shown('read-python'));
      const fees = async () => JSON.parse((await examples.service.get('/v1/fees')).body);
      await expect.poll(async () => (await fees()).baseFee).not.toBeNull();
      const { stdout } = await run('python3', [file], { env });
      expect(stdout.trim()).toMatch(/^\d+(\.\d+)? gwei at block \d+$/);
    });
  });
});

describe('in the README', () => {
  const readme = readText('README.md');
  /** Where the demo that made the shown answers was. */
  const SHOWN_ORIGIN = 'http://127.0.0.1:4021';
  const PATH = '/v1/paid/chain/wallet?address=0x3600000000000000000000000000000000000000';
  const [challenge, receipt, body] = blocksOf(readme, 'json').map((block) => JSON.parse(block));

  /** The names and types of an answer's members. Null stands for any type, because an unknown value is null. */
  const shapeOf = (value: object): string[] =>
    Object.entries(value)
      .map(([name, member]) => `${name}: ${member === null ? 'object' : typeof member}`)
      .sort();

  test('the README’s ten lines buy a call, and the printed hash is its transfer', async () => {
    const [code = ''] = blocksOf(readme, 'ts');
    expect(code.trim().split('\n').length).toBeLessThanOrEqual(10);
    await examples.expectPurchase(code, { ORIGIN: examples.service.origin });
  });

  test.skipIf(!tools.curl)(
    'the README’s curl prints the 402 that the README shows, except for the address and the seller',
    async () => {
      const { service, network } = examples;
      const command = commandsOf(readme).find((line) => line.includes('payment-required')) ?? '';
      expect(command).toContain(`"$ORIGIN${PATH}"`);
      expect(challenge.resource.url).toBe(`${SHOWN_ORIGIN}${PATH}`);
      const { stdout } = await run('sh', ['-c', command], { env: { ...env, ORIGIN: service.origin } });
      const { extensions, ...printed } = JSON.parse(stdout);
      expect(Object.keys(extensions).sort()).toEqual(['bazaar', 'payment-identifier']);
      const [requirement] = challenge.accepts;
      expect(printed).toEqual({
        ...challenge,
        resource: { ...challenge.resource, url: `${service.origin}${PATH}` },
        accepts: [{ ...requirement, payTo: network.seller }],
      });
    },
  );

  /** The members that an answer says it misses, without the one that is missing while the collector is a block behind. */
  const missingIn = ({ missing }: { missing: { field: string }[] }) =>
    missing.flatMap(({ field }) => (field === 'activity' ? [] : [field])).sort();

  test('a paid call is answered with the receipt and the body that the README shows, member by member', async () => {
    const { service, network } = examples;
    const buyer = await newBuyer(network);
    const answer = await present(service.origin, PATH, await buyer.sign(service.origin, PATH));
    expect(answer.status).toBe(200);
    expect(shapeOf(decoded(answer, 'payment-response'))).toEqual(shapeOf(receipt));
    expect(shapeOf(JSON.parse(answer.body))).toEqual(shapeOf(body));
    expect(missingIn(JSON.parse(answer.body))).toEqual(missingIn(body));
    expect(receipt).toMatchObject({
      success: true,
      network: challenge.accepts[0].network,
      amount: String(priceOf('/chain/wallet').units),
    });
  });
});

// Of a priced route, of a free one, and of one that takes a body.
describe('in the reference', () => {
  const PRICED = 'paidChainWallet';
  let shown: (id: string) => string;
  beforeAll(async () => {
    const { document } = parseHTML((await examples.service.get('/docs')).body);
    shown = (id) => document.getElementById(id)?.textContent ?? '';
  });

  test('the TypeScript of a priced route buys it, and the printed hash is its transfer', async () => {
    await examples.expectPurchase(shown(`${PRICED}-typescript`));
  });

  const inPython = async (id: string) =>
    (await run('python3', [examples.write(`${id}.py`, shown(id))], { env })).stdout;
  const inShell = async (id: string) => (await run('sh', ['-c', shown(id)], { env })).stdout;

  describe.skipIf(!tools.curl)(`curl${tools.curl ? '' : ' (skipped: it is not installed)'}`, () => {
    test('shows the terms of a priced route', async () => {
      expect(JSON.parse(await inShell(`${PRICED}-curl`)).accepts[0]).toMatchObject({
        amount: String(priceOf('/chain/wallet').units),
        payTo: examples.network.seller,
      });
    });

    test('reads a free route and posts a body', async () => {
      expect(JSON.parse(await inShell('priceList-curl')).routes.length).toBeGreaterThan(20);
      expect(await inShell('mcp-curl')).toContain('market_search');
    });
  });

  describe.skipIf(!tools.python)(`Python${tools.python ? '' : ' (skipped: it is not installed)'}`, () => {
    test('prints what a priced route costs', async () => {
      expect(await inPython(`${PRICED}-python`)).toMatch(
        new RegExp(
          `^${priceOf('/chain/wallet').units} base units of 0x36\\w+ on eip155:5042 to ${examples.network.seller}`,
          'i',
        ),
      );
    });

    test('reads a free route and posts a body', async () => {
      expect(await inPython('priceList-python')).toMatch(/^200 \{/);
      expect(await inPython('mcp-python')).toContain('market_search');
      expect(await inPython('facilitatorSettle-python')).toMatch(/^200 .*"success":false/);
    });
  });

  test('the TypeScript of a free route and of one with a body runs as it is', async () => {
    for (const [id, answer] of [
      ['priceList', /^200 \{/],
      ['mcp', /market_search/],
    ] as const) {
      const { stdout } = await run(process.execPath, [examples.write(`${id}.ts`, shown(`${id}-typescript`))], { env });
      expect(stdout).toMatch(answer);
    }
  });
});
