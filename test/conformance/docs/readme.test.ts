import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { blocksOf, commandsOf, readText } from '../../support/documents.ts';
import { type Examples, openExamples } from '../../support/service/shown-code.ts';
import { decoded, newBuyer, present } from '../../support/usdc/buyer.ts';

const readme = readText('README.md');
const SHOWN_ORIGIN = 'http://127.0.0.1:4021';
const PATH = '/v1/paid/chain/wallet?address=0x3600000000000000000000000000000000000000';
const [challenge, receipt, body] = blocksOf(readme, 'json').map((block) => JSON.parse(block));

let examples: Examples;
beforeAll(async () => {
  examples = await openExamples();
});
afterAll(() => examples?.stop());

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

test.skipIf(spawnSync('curl', ['--version']).status !== 0)(
  'the README’s curl prints the 402 that the README shows, except for the address and the seller',
  async () => {
    const { service, network } = examples;
    const command = commandsOf(readme).find((line) => line.startsWith('curl ')) ?? '';
    expect(command).toContain(`${SHOWN_ORIGIN}${PATH}`);
    const { stdout } = await promisify(execFile)('sh', ['-c', command.replace(SHOWN_ORIGIN, service.origin)]);
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

test('a paid call is answered with the receipt and the body that the README shows, member by member', async () => {
  const { service, network } = examples;
  const buyer = await newBuyer(network);
  const answer = await present(service.origin, PATH, await buyer.sign(service.origin, PATH));
  expect(answer.status).toBe(200);
  expect(shapeOf(decoded(answer, 'payment-response'))).toEqual(shapeOf(receipt));
  expect(shapeOf(JSON.parse(answer.body))).toEqual(shapeOf(body));
  expect(receipt).toMatchObject({ success: true, network: challenge.accepts[0].network, amount: '2000' });
});
