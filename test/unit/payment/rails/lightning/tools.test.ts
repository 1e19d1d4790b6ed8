import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BadParameter } from '../../../../../src/errors.ts';
import type { QuotedTools, ToolOrder } from '../../../../../src/payment/call.ts';
import type { LightningOrder } from '../../../../../src/payment/lightning/offers.ts';
import { createLightningTools } from '../../../../../src/payment/lightning/rail.ts';
import { MAINNET } from '../../../../../src/payment/lightning/terms.ts';
import { decodePayment } from '../../../../../src/payment/protocols/x402/http.ts';
import { PaymentRefused } from '../../../../../src/payment/refusal.ts';
import { openRailBench, type RailBench } from '../../../../support/lightning/rail-bench.ts';

const SERVER = 'https://api.example.com/mcp';
const signal = new AbortController().signal;
let bench: RailBench;
let tools: QuotedTools<null, LightningOrder<null>>;

beforeEach(async () => {
  bench = await openRailBench();
  tools = createLightningTools<null>({ offers: bench.offers, redeem: bench.redeemed, network: MAINNET.id });
});
afterEach(() => bench.close());

/** A call of the bench's endpoint as a tool. */
const call = (more: Partial<ToolOrder<null>> = {}): ToolOrder<null> => ({
  endpoint: bench.endpoint,
  params: { tag: 'a' },
  server: SERVER,
  name: 'test_rail',
  arguments: { tag: 'a' },
  meta: {},
  url: 'mcp://tool/test_rail',
  client: '192.0.2.1',
  signal,
  ...more,
});
const sell = (of: ToolOrder<null>, header: string) =>
  tools.sell(tools.bind(of), decodePayment(header)).then(
    ({ body }) => Buffer.from(body).toString(),
    (error: unknown) => (error instanceof PaymentRefused ? error.reason : error),
  );

describe('a tool call that is paid over Lightning', () => {
  test('is bound as the scheme writes it: the server, the tool and the arguments as they came', () => {
    const { binding, ...order } = tools.bind(call({ arguments: { tag: 'a', z: [1, 'é'] } }));
    const canonical =
      '{"arguments":{"tag":"a","z":[1,"é"]},"domain":"x402:exact:lnbtc:bolt11:mcp:1","metadata":[],' +
      `"method":"tools/call","name":"test_rail","server":"${SERVER}"}`;
    expect(binding).toEqual({
      profile: 'mcp:1',
      params: { server: SERVER, metadata: [] },
      canonical,
      hash: createHash('sha256').update(canonical).digest(),
    });
    const { endpoint, params, url, client } = call();
    expect(order).toEqual({ endpoint, params, url, client, identity: null, signal });
  });

  test('buys its answer with an invoice for this very call, and nothing for another', async () => {
    const { header, key } = await bench.buy(tools.bind(call()));
    for (const other of [{ arguments: { tag: 'b' } }, { name: 'test_other' }, { server: 'https://b.example.com/mcp' }])
      expect(await sell(call(other), header)).toBe('invalid_exact_lnbtc_request_mismatch');
    expect(await sell(call(), header)).toBe('{"text":"answer to a"}');
    expect((await bench.real.findClaim(key))?.grant?.state).toBe('claimed');
  });

  test('is quoted the price of its endpoint', async () => {
    const { requirement, priceUsd } = await tools.quote(tools.bind(call()));
    expect([requirement.amount, requirement.network, priceUsd]).toEqual(['25000', MAINNET.id, '0.016']);
  });

  test.each<[string, Partial<ToolOrder<null>>]>([
    ['arguments that are no text of Unicode', { arguments: { tag: '\ud800' } }],
    ['arguments that are no object', { arguments: ['a'] }],
    ['a `_meta` that is no object', { meta: null }],
  ])('is refused before an invoice is made where it has %s', (_, more) => {
    expect(() => tools.bind(call(more))).toThrow(
      new BadParameter([{ path: 'arguments', message: 'these arguments cannot be bound into an invoice' }]),
    );
    expect(bench.node.invoices).toEqual([]);
  });

  test('and refused has a receipt that says why, on the network of the rail', () => {
    expect(tools.refusalReceipt(new PaymentRefused('duplicate_settlement'))).toEqual({
      success: false,
      errorReason: 'duplicate_settlement',
      transaction: '',
      network: MAINNET.id,
    });
  });
});
