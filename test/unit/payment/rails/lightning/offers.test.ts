import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { NotFound, Unavailable } from '../../../../../src/errors.ts';
import { decodeInvoice } from '../../../../../src/payment/lightning/bolt11.ts';
import { openReply } from '../../../../../src/payment/lightning/kept-replies.ts';
import { BENCH_NOW, refusal } from '../../../../support/lightning/issuer-bench.ts';
import { openRailBench, type RailBench } from '../../../../support/lightning/rail-bench.ts';

let bench: RailBench;
const open = async (...choices: Parameters<typeof openRailBench>) => {
  await bench?.close();
  bench = await openRailBench(...choices);
};
beforeEach(async () => {
  bench = await openRailBench();
});
afterEach(() => bench.close());

const refused = (tag = 'a', more: Parameters<RailBench['order']>[1] = {}) =>
  refusal(bench.offers(bench.order(tag, more)));
const invoices = () => bench.node.invoices.length;

describe('an offer', () => {
  test('is an invoice for an answer that exists, at the price in sats, bound to this very request', async () => {
    const order = bench.order('a');
    const { header, body, requirement, paymentHash } = await bench.ask(order);
    const { accepts, error, resource, priceUsd, btcUsd, ...rest } = JSON.parse(body);
    expect(JSON.parse(Buffer.from(header, 'base64').toString())).toEqual({ accepts, error, resource, ...rest });
    // 0.016 USD at 64,000 USD a bitcoin.
    expect(accepts).toEqual([expect.objectContaining({ amount: '25000', payTo: bench.node.key, scheme: 'exact' })]);
    expect([priceUsd, btcUsd, error, resource.url]).toEqual([
      '0.016',
      '64000',
      'Payment required',
      'https://api.example.com',
    ]);
    expect(requirement.extra.requestHash).toBe(Buffer.from(order.binding.hash).toString('hex'));
    expect(decodeInvoice(requirement.extra.invoice)?.paymentHash).toEqual(new Uint8Array(paymentHash));
    expect(bench.handler.runs).toEqual(['a']);
    const { invoice } = await bench.offers(order);
    expect(invoice).toMatchObject({ amountMsat: 25_000n, payTo: bench.node.key, expiresAt: BENCH_NOW + 300 });
  });

  test('is on disk with its sealed reply, until a minute after the last moment at which its proof can be valid', async () => {
    const order = bench.order('a');
    const { paymentHash } = await bench.ask(order);
    const key = { network: 'lnbtc:000000000019d6689c085ae165831e93', paymentHash };
    expect(await bench.real.findInvoice(key)).toEqual({
      ...key,
      requestHash: Buffer.from(order.binding.hash),
      amountMsat: 25_000n,
      payTo: Buffer.from(bench.node.key, 'hex'),
      issuedAt: BENCH_NOW * 1000,
      forgetAt: (BENCH_NOW + 300 + 60 + 60) * 1000,
    });
    const kept = await bench.real.keptReply(key);
    expect(kept && openReply(kept, order.binding, paymentHash)?.toString()).toBe('{"text":"answer to a"}');
  });

  test('frees the space of its reply when its invoice is forgotten, and not before', async () => {
    // Its reply has 22 bytes, and 28 more of the seal; half of the store is for offers, a fifth of that for buyers.
    await open({ quotaBytes: 250 });
    await bench.ask(bench.order('a'));
    expect(await refused('b', { client: '192.0.2.2' })).toBe('none');
    expect(await refused('c', { client: '192.0.2.3' })).toBe('503 reply_store_full 30');
    await bench.clock.advance(419_999);
    expect(await refused('c', { client: '192.0.2.3' })).toBe('503 reply_store_full 30');
    await bench.clock.advance(1);
    expect(await refused('c', { client: '192.0.2.3' })).toBe('none');
  });
});

test('a new client for which only the newcomers’ part is left runs at a reserved place', async () => {
  const turns = { running: 2, waiting: 2, waitingPerClient: 1, reserved: { running: 1, waiting: 2 } };
  await open({ limits: { client: 0, total: 10 }, turns });
  const strangers = Array.from({ length: 8 }, (_, at) => `198.51.100.${at + 1}`);
  const [holder = '', ...others] = strangers;
  for (const client of others) expect(await refused('a', { client })).toBe('none');
  // The last of the eight has the one place that is not reserved.
  const held = Promise.withResolvers<string>();
  bench.handler.run = (tag) => (tag === 'held' ? held.promise : Promise.resolve('answer'));
  const holding = refused('held', { client: holder });
  expect(await refused('b', { client: '192.0.2.77' })).toBe('none');
  // The part is one in ten.
  const denied = '192.0.2.78';
  for (let at = 0; at < 4; at++)
    expect(await refused('c', { client: denied })).toMatch('429 exact_lnbtc_invoice_issuance_denied');
  // A limit is no fault of ours: who asks on against it is new no longer.
  expect(bench.newcomers.asks(denied)).toBe(false);
  held.resolve('answer');
  expect(await holding).toBe('none');
});

test('a client whose offers failed through our fault still counts as new, and one whose own requests failed does not', async () => {
  const failing = async (client: string, error: Error) => {
    bench.handler.run = () => Promise.reject(error);
    for (let at = 0; at < 4; at++) expect(await refused('a', { client })).not.toBe('none');
    return bench.newcomers.asks(client);
  };
  expect(await failing('192.0.2.8', new Unavailable('chain_busy', 'no more requests now'))).toBe(true);
  expect(await failing('192.0.2.9', new NotFound('nothing there'))).toBe(false);
});

test('a client whose handler ran without an answer no longer counts as new, like one that got an offer', async () => {
  bench.handler.run = () => Promise.reject(new NotFound('nothing there'));
  expect(await refused('a', { client: '192.0.2.10' })).toMatch('404');
  await bench.clock.advance(60_000);
  expect(bench.newcomers.asks('192.0.2.10')).toBe(false);
});

test('a client that was refused because the reply store is full still counts as new', async () => {
  await open({ quotaBytes: 1 });
  for (let at = 0; at < 4; at++) expect(await refused('a', { client: '192.0.2.11' })).toBe('503 reply_store_full 30');
  expect(bench.newcomers.asks('192.0.2.11')).toBe(true);
});

test('a client that got an offer no longer counts as new', async () => {
  expect(await refused('a')).toBe('none');
  expect(bench.newcomers.asks('192.0.2.1')).toBe(false);
});

describe('no offer is made', () => {
  const untouched = () => expect([invoices(), bench.handler.runs]).toEqual([0, []]);

  test('for an endpoint without a price', async () => {
    const { price: _none, ...free } = bench.endpoint;
    expect(await refused('a', { endpoint: { ...free, price: null } })).toBe('/test/rail has no price');
    untouched();
  });

  test('without a node', async () => {
    await open({ hasNode: false });
    const offer = bench.offers(bench.order('a'));
    await expect(offer).rejects.toMatchObject({ message: 'This service has no Lightning node to be paid on.' });
    expect(await refused()).toBe('503 lightning_unavailable 300');
    untouched();
  });

  test('while the node is away, and no client is counted for it', async () => {
    await open({ limits: { client: 1, total: 0 } });
    await bench.node.setFault('500');
    const found = await refused();
    expect(found).toMatch('503 lightning_unavailable');
    const asked = bench.node.received.length;
    await bench.clock.advance(60_000);
    // The client had its one invoice of the last minute; now the node's failure is reported before anything is counted.
    for (let at = 0; at < 3; at++) expect(await refused()).toMatch('503 lightning_unavailable');
    expect(bench.handler.runs).toEqual(['a']);
    expect(bench.node.received.slice(asked).filter(({ url }) => url === '/createinvoice')).toEqual([]);
  });

  test('when the reply does not fit in the store, and no client is counted for it', async () => {
    await open({ quotaBytes: 1000, limits: { client: 1, total: 0 } });
    bench.quota.set({ all: 1000, offered: 0 });
    expect([await refused(), await refused()]).toEqual(['503 reply_store_full 30', '503 reply_store_full 30']);
    untouched();
    bench.quota.set({ all: 0, offered: 0 });
    expect(await refused()).toBe('none');
  });

  test('above the issuance limits', async () => {
    await open({ limits: { client: 1, total: 0 } });
    expect([await refused(), await refused()]).toEqual(['none', '429 exact_lnbtc_invoice_issuance_denied 40']);
    expect([invoices(), bench.handler.runs]).toEqual([1, ['a']]);
  });

  test('without a rate, and no client is counted for it', async () => {
    await open({ limits: { client: 1, total: 0 } });
    const { current } = bench.rates;
    bench.rates.current = async () => Promise.reject(new Unavailable('btc_rate_unavailable', 'none', 5));
    expect([await refused(), await refused()]).toEqual(['503 btc_rate_unavailable 5', '503 btc_rate_unavailable 5']);
    untouched();
    bench.rates.current = current;
    expect(await refused()).toBe('none');
  });

  test('for a request that the handler does not answer, which counts because the handler has run', async () => {
    await open({ limits: { client: 2, total: 0 } });
    bench.handler.run = async () => Promise.reject(new NotFound('nothing there'));
    expect([await refused(), await refused()]).toEqual(['404 not_found undefined', '404 not_found undefined']);
    expect(await refused()).toBe('429 exact_lnbtc_invoice_issuance_denied 40');
    expect([invoices(), bench.handler.runs]).toEqual([0, ['a', 'a']]);
  });

  test('for a reply that is larger than the space that is left', async () => {
    await open({ quotaBytes: 1000 });
    bench.handler.run = async () => 'x'.repeat(400);
    expect(await refused()).toBe('503 reply_store_full 30');
    expect(invoices()).toBe(0);
    // With its seal it has 28 bytes more, and 11 of JSON.
    bench.handler.run = async () => 'x'.repeat(400 - 28 - 11 + 1);
    expect(await refused()).toBe('503 reply_store_full 30');
    bench.handler.run = async () => 'x'.repeat(400 - 28 - 11);
    expect(await refused()).toBe('none');
    expect(await bench.real.bodyBytes()).toBe(400);
  });

  test('when the node makes no invoice, and the space of the reply is freed', async () => {
    await open({ quotaBytes: 130 });
    bench.node.twist = { amountMsat: 1n };
    expect(await refused()).toContain('503 lightning_unavailable');
    expect(await bench.real.bodyBytes()).toBe(0);
    expect(() => bench.quota.take({ client: '192.0.2.1', isBuyer: true }, 60)).not.toThrow();
  });

  test('when the reply cannot be stored, and its space is freed', async () => {
    await open({ quotaBytes: 130 });
    bench.faults.recordInvoice = async () => Promise.reject(new Error('disk full'));
    expect(await refused()).toBe('disk full');
    expect(() => bench.quota.take({ client: '192.0.2.1', isBuyer: true }, 60)).not.toThrow();
  });
});

describe('handlers of offers', () => {
  /** Runs wait until they are let go on, and from then on none does. */
  function hold() {
    const waiting: (() => void)[] = [];
    bench.handler.run = (tag) => new Promise((done) => waiting.push(() => done(tag)));
    return () => {
      bench.handler.run = async (tag) => tag;
      for (const go of waiting) go();
    };
  }
  /** Until all that can be done without the network is done. */
  const settled = () => new Promise(setImmediate);
  const begun = (runs: number) => expect.poll(() => bench.handler.runs.length).toBe(runs);

  test('run at their places, and a client that may not wait is refused and not counted', async () => {
    await open({ turns: { running: 1, waiting: 1, waitingPerClient: 1 }, limits: { client: 2, total: 0 } });
    const letAllGo = hold();
    const first = refused('a');
    await begun(1);
    const second = refused('b', { client: '192.0.2.2' });
    await settled();
    const third = bench.offers(bench.order('c', { client: '192.0.2.3' }));
    await expect(third).rejects.toMatchObject({
      status: 503,
      code: 'offers_busy',
      retryAfterSeconds: 2,
      charged: false,
      message: 'Too many offers are being made now; nothing was charged. Try again shortly.',
    });
    for (let at = 0; at < 3; at++) expect(await refused('c', { client: '192.0.2.3' })).toBe('503 offers_busy 2');
    // It was told to wait: who asks on is new no longer.
    expect(bench.newcomers.asks('192.0.2.3')).toBe(false);
    letAllGo();
    expect([await first, await second]).toEqual(['none', 'none']);
    expect([await refused('c', { client: '192.0.2.3' }), await refused('d', { client: '192.0.2.3' })]).toEqual([
      'none',
      'none',
    ]);
    expect(bench.handler.runs).toEqual(['a', 'b', 'c', 'd']);
  });

  test('do not run for a client that leaves while it waits, and it is not counted', async () => {
    await open({ turns: { running: 1, waiting: 1, waitingPerClient: 1 }, limits: { client: 1, total: 0 } });
    const letAllGo = hold();
    const first = refused('a');
    await begun(1);
    const leaves = new AbortController();
    const second = refused('b', { client: '192.0.2.2', signal: leaves.signal });
    await settled();
    leaves.abort(new Error('gone'));
    expect(await second).toBe('499 client_gone undefined');
    letAllGo();
    await first;
    expect(await refused('c', { client: '192.0.2.2' })).toBe('none');
    expect(bench.handler.runs).toEqual(['a', 'c']);
  });

  test('read the chain before those of others for a client that may use a reserve', async () => {
    const ranks: string[] = [];
    const run = async (rank: string) => {
      ranks.push(rank);
      return Buffer.from('{"text":"answer"}');
    };
    bench.buyers.add('192.0.2.2');
    for (const client of ['192.0.2.2', '192.0.2.3']) expect(await refused('a', { client, run })).toBe('none');
    expect(ranks).toEqual(['offer', 'admit']);
  });

  test('of a client that has paid lately run at the reserved places', async () => {
    const reserved = { running: 1, waiting: 0 };
    await open({ turns: { running: 2, waiting: 0, waitingPerClient: 1, reserved } });
    const letAllGo = hold();
    const first = refused('a');
    await begun(1);
    expect(await refused('b', { client: '192.0.2.2' })).toBe('503 offers_busy 2');
    bench.buyers.add('192.0.2.2');
    const second = refused('b', { client: '192.0.2.2' });
    await begun(2);
    letAllGo();
    expect([await first, await second]).toEqual(['none', 'none']);
  });
});

test('a client that paid within the hour may use the reserves of invoices and of reply space', async () => {
  await open({ limits: { client: 0, total: 5 }, quotaBytes: 1000 });
  for (const client of ['192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.5'])
    expect(await refused('a', { client })).toBe('none');
  expect(await refused('b')).toBe('429 exact_lnbtc_invoice_issuance_denied 40');
  bench.buyers.add('192.0.2.1');
  expect(await refused('b')).toBe('none');
  await bench.clock.advance(60_000);
  // Of the five hundred for offers two hundred and fifty are taken; a hundred more are for buyers alone.
  bench.handler.run = async () => 'x'.repeat(200 - 39);
  expect(await refused('c', { client: '192.0.2.2' })).toBe('503 reply_store_full 30');
  expect(await refused('c')).toBe('none');
});
