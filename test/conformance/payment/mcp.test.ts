import { createHash } from 'node:crypto';
import { x402Client } from '@x402/core/client';
import type { PaymentRequirements } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { bindMcp } from '../../../src/payment/lightning/binding.ts';
import { decodeInvoice } from '../../../src/payment/lightning/bolt11.ts';
import { presentProof, proofHeader } from '../../support/lightning/lightning-buyer.ts';
import { seed, seededRandom } from '../../support/random.ts';
import { HANDLERS_WAIT, latchedEndpoint } from '../../support/service/latch.ts';
import { callMessage, connectClient, demandOf, MCP_HEADERS, postMessage, textOf } from '../../support/service/mcp.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { call, type Service, startService } from '../../support/service/service.ts';
import { balanceOf, decoded, newBuyer, present } from '../../support/usdc/buyer.ts';
import { headerOf } from '../../support/usdc/payments.ts';

const moody = moodyEndpoint();
const latch = latchedEndpoint('/test/latch', '0.0005');
/** The same, sold for bitcoin only. */
const sats = { ...moody.endpoint, path: '/test/sats', onlyOn: 'lightning' } as const;
const TOOL = 'paid_test_moody';
const LATCH_TOOL = 'paid_test_latch';
const SATS_TOOL = 'paid_test_sats';
const ESTIMATE = 'paid_fees_estimate';
const PRICE = 500n;

let network: EmbeddedNetwork;
let service: Service;
let mcp: Awaited<ReturnType<typeof connectClient>>;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ lightning: true });
  const sold = [...catalogue, moody.endpoint, latch.endpoint, sats];
  service = await startService(network, { env: HANDLERS_WAIT, catalogue: sold });
  mcp = await connectClient(service.origin, '/mcp?schemas=full');
  // From here on the client checks every result, failures too, against the listed schemas.
  await mcp.client.listTools();
});
afterAll(async () => {
  await mcp.close();
  await service.stop();
  await network.stop();
});
beforeEach(() => {
  moody.recover();
});

let tag = 0;
/** Arguments that were never used before. */
const fresh = () => ({ tag: `t${++tag}` });

/** A buyer with the stock client, who pays what a result demands. */
async function newPayer() {
  const { address, privateKey } = await newBuyer(network);
  const signer = privateKeyToAccount(bytesToHex(privateKey));
  const client = new x402Client().register('eip155:5042', new ExactEvmScheme(signer)).setSpendControls({
    allowedAssets: [{ network: 'eip155:5042', asset: network.usdc, maxAmountPerPayment: '5000' }],
  });
  return {
    balance: () => balanceOf(network, address),
    /** A payment for a call that is not presented yet. */
    async pay(name: string, given: Record<string, unknown>) {
      const payment = await client.createPaymentPayload(demandOf(await mcp.call(name, given)));
      return { 'x402/payment': payment };
    },
  };
}

const receiptOf = (result: { _meta?: Record<string, unknown> | undefined }) => result._meta?.['x402/payment-response'];

describe('in USDC, the official clients', () => {
  test('list the tools, call a free one and buy a priced one, which moves exactly its price', async () => {
    const { tools } = await mcp.client.listTools();
    // The search over the market comes in addition.
    expect(tools).toHaveLength(service.deps.listed.length + 1);
    expect(tools.map(({ name }) => name)).toContain('market_search');
    const free = await mcp.call('free_fees_estimate', { gas: 50_000 });
    expect(free.isError).toBeUndefined();
    expect(free.structuredContent).toMatchObject({ gas: 50_000 });

    const payer = await newPayer();
    const [before, seller] = [await payer.balance(), await balanceOf(network, network.seller)];
    const bought = await mcp.call(ESTIMATE, { gas: 50_000 }, await payer.pay(ESTIMATE, { gas: 50_000 }));
    expect(bought.isError).toBeUndefined();
    expect(JSON.parse(textOf(bought))).toEqual(bought.structuredContent);
    expect(bought.structuredContent).toMatchObject({ gas: 50_000, source: { name: expect.any(String) } });
    const price = service.deps.listed.find(({ path, access }) => path === '/fees/estimate' && access === 'paid')!
      .price!;
    expect(receiptOf(bought)).toMatchObject({ success: true, amount: String(price.units), network: 'eip155:5042' });
    expect(await payer.balance()).toBe(before - price.units);
    expect(await balanceOf(network, network.seller)).toBe(seller + price.units);
    const { transaction } = receiptOf(bought) as { transaction: string };
    expect(await network.rpc('eth_getTransactionReceipt', [transaction])).toMatchObject({ status: '0x1' });
  });

  test('get the same bytes and receipt for the same payment, over tools and over HTTP, and pay once', async () => {
    const payer = await newPayer();
    const before = await payer.balance();
    const given = fresh();
    const meta = await payer.pay(TOOL, given);
    const first = await mcp.call(TOOL, given, meta);
    expect(first.isError).toBeUndefined();
    const again = await mcp.call(TOOL, given, meta);
    expect([textOf(again), receiptOf(again)]).toEqual([textOf(first), receiptOf(first)]);
    const path = `/v1/paid/test/moody?tag=${given.tag}`;
    const route = await present(service.origin, path, { header: headerOf(meta['x402/payment']) });
    expect([route.status, route.body]).toEqual([200, textOf(first)]);
    expect(decoded(route, 'payment-response')).toEqual(receiptOf(first));
    expect(await payer.balance()).toBe(before - PRICE);
  });

  test('are refused when they replay a payment for another request, for another tool or from another address', async () => {
    const payer = await newPayer();
    const given = fresh();
    const meta = await payer.pay(TOOL, given);
    expect((await mcp.call(TOOL, given, meta)).isError).toBeUndefined();
    const [before, runs] = [await payer.balance(), moody.runs()];
    for (const [name, args] of [
      [TOOL, fresh()],
      [ESTIMATE, {}],
    ] as const) {
      const refused = await mcp.call(name, args, meta);
      expect(refused.isError).toBe(true);
      expect(demandOf(refused)).toMatchObject({ error: 'payment_already_used', accepts: [{ scheme: 'exact' }] });
    }
    const elsewhere = await postMessage(service.origin, callMessage(TOOL, given, meta), '127.0.0.2');
    expect(JSON.parse(elsewhere.body).result.structuredContent.error).toBe('payment_already_used');
    expect([await payer.balance(), moody.runs()]).toEqual([before, runs]);
  });

  test('are not charged for a failure, and the same payment then buys', async () => {
    const payer = await newPayer();
    const before = await payer.balance();
    const fails = await payer.pay('paid_selftest_fail', {});
    expect(await mcp.call('paid_selftest_fail', {}, fails)).toMatchObject({
      isError: true,
      structuredContent: { code: 'selftest_failed', charged: false, status: 500 },
    });
    const given = fresh();
    const meta = await payer.pay(TOOL, given);
    expect((await mcp.call(TOOL, { nonsense: 1 }, meta)).structuredContent).toMatchObject({ code: 'bad_parameter' });
    moody.fail();
    expect((await mcp.call(TOOL, given, meta)).structuredContent).toMatchObject({ code: 'upstream_failed' });
    expect(await payer.balance()).toBe(before);
    moody.recover();
    expect((await mcp.call(TOOL, given, meta)).isError).toBeUndefined();
    expect(await payer.balance()).toBe(before - PRICE);
  });

  test('who disconnect before the settlement are not charged', async () => {
    const payer = await newPayer();
    const before = await payer.balance();
    const given = fresh();
    const meta = await payer.pay(LATCH_TOOL, given);
    latch.close();
    const started = latch.started();
    const gone = new AbortController();
    const body = JSON.stringify(callMessage(LATCH_TOOL, given, meta));
    const asked = fetch(`${service.origin}/mcp`, { method: 'POST', headers: MCP_HEADERS, body, signal: gone.signal });
    await started;
    gone.abort();
    await expect(asked).rejects.toThrow();
    await expect.poll(async () => (await service.deps.payments.ledger.countByState()).reserved).toBe(0);
    latch.open();
    // The reservation is released, and the payment then buys another answer, because nothing was taken for the abandoned call.
    const other = fresh();
    expect((await mcp.call(LATCH_TOOL, other, meta)).structuredContent).toMatchObject(other);
    expect(await payer.balance()).toBe(before - PRICE);
    expect(demandOf(await mcp.call(LATCH_TOOL, given, meta)).error).toBe('payment_already_used');
  });

  test('who present one payment many times at once pay once and see one answer', async () => {
    const payer = await newPayer();
    const before = await payer.balance();
    const given = fresh();
    const meta = await payer.pay(TOOL, given);
    const runs = moody.runs();
    const results = await Promise.all(Array.from({ length: 16 }, () => mcp.call(TOOL, given, meta)));
    const served = results.filter(({ isError }) => !isError);
    expect(served.length).toBeGreaterThan(0);
    expect(new Set(served.map(textOf)).size).toBe(1);
    for (const { isError, structuredContent } of results) {
      if (isError) expect(['payment_in_flight', undefined]).toContain(structuredContent?.code);
    }
    expect(moody.runs()).toBe(runs + 1);
    expect(await payer.balance()).toBe(before - PRICE);
  });

  test('get x402’s own reason and a new offer for a refused payment', async () => {
    const payer = await newPayer();
    const before = await payer.balance();
    const given = fresh();
    const { 'x402/payment': payment } = await payer.pay(TOOL, given);
    const forged = { ...payment, payload: { ...payment.payload, signature: `0x${'11'.repeat(65)}` } };
    const cheap = { ...payment, accepted: { ...payment.accepted, amount: '1' } };
    for (const [wrong, error] of [
      [forged, 'invalid_exact_evm_signature'],
      [cheap, 'No matching payment requirements'],
      [{ ...payment, x402Version: 1 }, 'invalid_x402_version'],
      ['e30=', 'invalid_payload'],
    ] as const) {
      const refused = await mcp.call(TOOL, given, { 'x402/payment': wrong });
      expect(demandOf(refused)).toMatchObject({ error, accepts: [{ amount: '500' }] });
    }
    expect(await payer.balance()).toBe(before);
  });
});

describe('over Lightning,', () => {
  const LIGHTNING = { 'percall/rail': 'lightning' };
  const offeredBy = (result: Awaited<ReturnType<typeof mcp.call>>) => {
    const [requirement] = demandOf(result).accepts as (PaymentRequirements & { extra: { invoice: string } })[];
    if (!requirement) throw new Error('nothing is offered');
    return requirement;
  };
  const hashOf = (name: string, given?: object, path = '/mcp') => {
    const binding = bindMcp({ server: `${service.origin}${path}`, name, ...(given && { arguments: given }) });
    return Buffer.from(binding!.hash).toString('hex');
  };
  const hold = (accepted: unknown, preimage: string) => ({
    'x402/payment': { x402Version: 2, accepted, payload: { preimage } },
  });
  /** Asks, pays, and keeps the proof. */
  async function pay(name: string, given: Record<string, unknown>) {
    const requirement = offeredBy(await mcp.call(name, given, LIGHTNING));
    const preimage = await network.lightning!.pay(requirement.extra.invoice);
    const paymentHash = createHash('sha256').update(Buffer.from(preimage, 'hex')).digest('hex');
    return { requirement, preimage, paymentHash, meta: hold(requirement, preimage) };
  }

  test('nothing is offered without being asked for: no invoice is made and no handler runs', async () => {
    const [bytes, runs] = [await service.deps.lightningStore.bodyBytes(), moody.runs()];
    const { accepts } = demandOf(await mcp.call(TOOL, fresh()));
    expect(accepts.map(({ asset }) => asset)).toEqual([network.usdc]);
    expect([await service.deps.lightningStore.bodyBytes(), moody.runs()]).toEqual([bytes, runs]);
  });

  test('a client that asks is offered an invoice that binds the tool and its arguments, and USDC beside it', async () => {
    const given = fresh();
    const demand = demandOf(await mcp.call(TOOL, given, LIGHTNING));
    expect(demand.accepts.map(({ asset }) => asset)).toEqual(['BTC', network.usdc]);
    expect(demand.accepts[0]).toEqual({
      scheme: 'exact',
      network: network.lightning!.network,
      asset: 'BTC',
      amount: '1000',
      payTo: network.lightning!.nodeId,
      maxTimeoutSeconds: 300,
      extra: {
        assetTransferMethod: 'bolt11',
        paymentFlow: 'upfront',
        invoice: expect.any(String),
        requestHash: hashOf(TOOL, given),
        requestBindingProfile: 'mcp:1',
        requestBindingParams: { server: `${service.origin}/mcp`, metadata: [] },
      },
    });
    const { invoice } = (demand.accepts[0] as unknown as { extra: { invoice: string } }).extra;
    const [bound] = decodeInvoice(invoice)!.descriptionHashes;
    expect(Buffer.from(bound!).toString('hex')).toBe(hashOf(TOOL, given));
  });

  test('a paid call is answered, the same proof gets the same bytes, and the claim is noted as delivered', async () => {
    const given = fresh();
    const { meta, paymentHash } = await pay(TOOL, given);
    const first = await mcp.call(TOOL, given, meta);
    expect(first.isError).toBeUndefined();
    expect(first.structuredContent).toMatchObject(given);
    expect(receiptOf(first)).toEqual({ success: true, transaction: paymentHash, network: network.lightning!.network });
    expect(textOf(await mcp.call(TOOL, given, meta))).toBe(textOf(first));
    const state = async () =>
      JSON.parse((await call(service.origin, `/v1/payments/${paymentHash}`)).body).payments[0].state;
    await expect.poll(state).toBe('delivered');
  });

  test('a proof buys its own call only, and no other arguments, no other tool and not the route', async () => {
    const given = { tag: '7000' };
    const { meta, requirement, preimage } = await pay(TOOL, given);
    const elsewhere = async () => [
      demandOf(await mcp.call(TOOL, fresh(), meta)).error,
      demandOf(await mcp.call(SATS_TOOL, given, meta)).error,
      // The same value in another form is another request, like another spelling of a URL.
      demandOf(await mcp.call(TOOL, { tag: Number(given.tag) }, meta)).error,
      decoded(
        await presentProof(service.origin, `/v1/lightning/test/moody?tag=${given.tag}`, {
          header: proofHeader(requirement, preimage),
        }),
        'payment-required',
      ).error,
    ];
    const mismatch = Array(4).fill('invalid_exact_lnbtc_request_mismatch');
    expect(await elsewhere()).toEqual(mismatch);
    expect((await mcp.call(TOOL, given, meta)).isError).toBeUndefined();
    expect(await elsewhere()).toEqual(Array(4).fill('duplicate_settlement'));
  });

  test('a client at the address of Lightning is asked for sats without a word in _meta, and its proof is good there alone', async () => {
    const sats = await connectClient(service.origin, '/mcp/lightning');
    const given = fresh();
    const asked = await sats.call(TOOL, given);
    expect(textOf(asked)).toMatch(
      /^paid_test_moody is not paid for yet, [^.]*\. It costs 1 sat over Lightning \(0\.0005 USD\)/,
    );
    const requirement = offeredBy(asked);
    expect(requirement.extra).toMatchObject({
      requestHash: hashOf(TOOL, given, '/mcp/lightning'),
      requestBindingParams: { server: `${service.origin}/mcp/lightning` },
    });
    const meta = hold(requirement, await network.lightning!.pay(requirement.extra.invoice));
    expect(demandOf(await mcp.call(TOOL, given, meta)).error).toBe('invalid_exact_lnbtc_request_mismatch');
    const bought = await sats.call(TOOL, given, meta);
    expect([bought.isError, bought.structuredContent]).toMatchObject([undefined, given]);
    const { tools } = await sats.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['market_search', 'free_fees', TOOL, SATS_TOOL]),
    );
    await sats.close();
  });

  test('a refused proof gets its reason and a new invoice', async () => {
    const given = fresh();
    const requirement = offeredBy(await mcp.call(TOOL, given, LIGHTNING));
    const refused = await mcp.call(TOOL, given, hold(requirement, '00'.repeat(32)));
    expect(demandOf(refused).error).toBe('invalid_exact_lnbtc_preimage_hash_mismatch');
    expect(receiptOf(refused)).toMatchObject({ success: false });
    expect(offeredBy(refused).asset).toBe('BTC');
    expect(offeredBy(refused).extra.invoice).not.toBe(requirement.extra.invoice);
  });

  test('bad arguments and a failing handler are reported before any payment', async () => {
    const bytes = await service.deps.lightningStore.bodyBytes();
    expect((await mcp.call(TOOL, { nonsense: 1 }, LIGHTNING)).structuredContent).toMatchObject({
      code: 'bad_parameter',
    });
    moody.fail();
    expect((await mcp.call(TOOL, fresh(), LIGHTNING)).structuredContent).toMatchObject({ code: 'upstream_failed' });
    expect(await service.deps.lightningStore.bodyBytes()).toBe(bytes);
  });

  test('a handler that fails after the payment does not cost the buyer the call', async () => {
    const given = fresh();
    const { meta } = await pay(TOOL, given);
    moody.fail();
    const result = await mcp.call(TOOL, given, meta);
    expect(result.isError).toBeUndefined();
    expect(result.structuredContent).toMatchObject(given);
  });

  test('a tool that is sold for bitcoin only offers Lightning without being asked, and takes no USDC', async () => {
    const given = fresh();
    expect(demandOf(await mcp.call(SATS_TOOL, given)).accepts.map(({ asset }) => asset)).toEqual(['BTC']);
    const payer = await newPayer();
    const before = await payer.balance();
    const refused = await mcp.call(SATS_TOOL, given, await payer.pay(TOOL, given));
    expect(demandOf(refused)).toMatchObject({ error: 'No matching payment requirements', accepts: [{ asset: 'BTC' }] });
    expect(await payer.balance()).toBe(before);
    const { meta } = await pay(SATS_TOOL, given);
    expect((await mcp.call(SATS_TOOL, given, meta)).structuredContent).toMatchObject(given);
  });
});

describe('a hostile tool call', () => {
  const RUNS = process.env.SLOW ? 5000 : 30;
  const random = seededRandom('mcp');
  const below = (limit: number) => Math.floor(random() * limit);
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
  const deep = (depth: number) => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`);
  const NAMES = ['__proto__', 'constructor', 'toString', 'length', 'then', 'tag', 'id', 'name', 'x402/payment', ''];
  const LEAVES: readonly (() => unknown)[] = [
    () => pick([null, true, -0, 1e308, 2 ** 53, '', '\ud800', '\u0000', 'eip155:5042', 'lnbtc:1']),
    () => 'x'.repeat(below(3000)),
    () => deep(1 + below(4000)),
    () => JSON.parse('{"__proto__":{"isError":false},"toJSON":1,"valueOf":null}'),
  ];
  /** Any JSON, with names that are hard for programs. */
  const anything = (depth = 0): unknown => {
    const kind = depth > 3 ? 0 : below(3);
    if (kind === 0) return pick(LEAVES)();
    const parts = Array.from({ length: below(4) }, () => anything(depth + 1));
    return kind === 1 ? parts : Object.fromEntries(parts.map((part) => [pick(NAMES), part]));
  };
  const names = () => pick([TOOL, SATS_TOOL, ESTIMATE, 'free_network', 'free_health', 'constructor', '__proto__', '']);

  test(`never gets a 5xx, an unexplained failure or a hang (seed ${seed})`, async () => {
    const given = fresh();
    const { accepts } = demandOf(await mcp.call(TOOL, given, { 'percall/rail': 'lightning' }));
    const payment = () => ({
      x402Version: pick([2, 2, 2, 1, '2', anything()]),
      accepted: pick([...accepts, { ...accepts[below(2)], extra: anything() }, anything()]),
      payload: pick([
        { preimage: anything() },
        { preimage: '00'.repeat(32) },
        { authorization: anything() },
        anything(),
      ]),
      extensions: anything(),
    });
    const meta = () =>
      pick([{ 'x402/payment': payment() }, { 'x402/payment': anything() }, { 'percall/rail': anything() }, anything()]);
    const message = (): unknown => {
      const params = { name: pick([names(), anything()]), arguments: pick([given, given, anything()]), _meta: meta() };
      const method = pick([
        'tools/call',
        'tools/call',
        'tools/call',
        'tools/list',
        'initialize',
        'tasks/get',
        anything(),
      ]);
      return pick([
        { jsonrpc: '2.0', id: pick([1, 'a']), method, params },
        { ...callMessage(names(), given), params: anything() },
        anything(),
      ]);
    };
    for (let run = 0; run < RUNS; run++) {
      const text = JSON.stringify(message());
      const body = below(10) === 0 ? text.slice(below(text.length)) : text;
      const answer = await postMessage(service.origin, body);
      expect([answer.status < 500, body.slice(0, 2000)]).toEqual([true, expect.anything()]);
      expect([answer.body.includes('"internal"'), body.slice(0, 2000)]).toEqual([false, expect.anything()]);
    }
    expect((await mcp.call('free_fees_estimate', {})).isError).toBeUndefined();
    // Nothing of it remains: a name that every object has is no tool.
    await expect(mcp.call('constructor')).rejects.toThrow('Unknown tool');
  });
});
