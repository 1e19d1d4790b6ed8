import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ToolCall } from '../../../cli/port.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { buyerIn, LIMITS, newFolder, wordOf } from '../../support/cli/open-buyer.ts';
import { type Examples, openExamples } from '../../support/service/shown-code.ts';
import { balanceOf } from '../../support/usdc/buyer.ts';

// The buyer's port buys a tool of `/mcp` as it buys a route, for `percall mcp`.

let examples: Examples;
beforeAll(async () => {
  examples = await openExamples({ lightning: true, channels: true });
  await untilChannelsAreOffered(`${examples.service.origin}/v1/paid/fees/estimate`);
});
afterAll(() => examples?.stop());

const tool = (path: string, gas: number): ToolCall => ({
  kind: 'tool',
  server: new URL(path, examples.service.origin),
  name: 'paid_fees_estimate',
  arguments: { gas },
});
const usdc = async () => balanceOf(examples.network, examples.network.buyer.address);

/** A buyer with both wallets, and a record of its own. */
function shop() {
  const { network } = examples;
  const env = { BUYER_PRIVATE_KEY: network.buyer.privateKey, PAYER_URL: network.lightning?.payUrl };
  return buyerIn(newFolder(), { env, rpcUrl: network.rpcUrl });
}

test.each([
  ['in USDC', '/mcp', null, 'exact'],
  ['over a channel', '/mcp', 'channel', 'channel'],
  ['in sats', '/mcp/lightning', null, 'lightning'],
] as const)('a tool is bought %s, and its result is the answer', async (_how, path, via, way) => {
  const buyer = shop();
  const outcome = await buyer.pay(tool(path, 70_001), { ...LIMITS, via, maxDeposit: 1_000_000n });
  expect(
    wordOf(outcome),
    JSON.stringify(outcome, (_name, value) => String(value)),
  ).toBe('answered');
  if (outcome.kind !== 'answered') return;
  expect(outcome.payment).toMatchObject({ way, state: 'arrived' });
  expect(JSON.parse(outcome.answer.body.toString()).structuredContent).toMatchObject({ gas: 70_001 });
  // Until it is delivered, the same call has the same answer, and asks nobody.
  const before = await usdc();
  const again = await buyer.pay(tool(path, 70_001), { ...LIMITS, via });
  expect(again).toMatchObject({ kind: 'answered', payment: { id: outcome.payment?.id } });
  outcome.delivered();
  expect([await usdc(), buyer.open()]).toEqual([before, []]);
});

test('a tool’s arguments are judged before anything is paid, and a free tool is free', async () => {
  const [buyer, before] = [shop(), await usdc()];
  const bad = { ...tool('/mcp', 1), arguments: { gas: 'many' } };
  expect(wordOf(await buyer.pay(bad, LIMITS))).toBe('failed');
  const free = await buyer.pay({ ...tool('/mcp', 70_002), name: 'free_fees_estimate' }, LIMITS);
  expect(free).toMatchObject({ kind: 'answered', payment: null });
  expect([await usdc(), buyer.history()]).toEqual([before, []]);
});
