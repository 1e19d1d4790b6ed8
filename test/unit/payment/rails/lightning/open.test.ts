import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineEndpoint } from '../../../../../src/catalogue/endpoint.ts';
import { loadConfig } from '../../../../../src/config.ts';
import type { Sqlite } from '../../../../../src/lib/sqlite-file.ts';
import { createLightning } from '../../../../../src/payment/lightning/open.ts';
import { createLightningCheckout, quoteAccepts } from '../../../../../src/payment/lightning/rail.ts';
import { MAINNET, TESTNET } from '../../../../../src/payment/lightning/terms.ts';
import { decodePayment } from '../../../../../src/payment/protocols/x402/http.ts';
import { PaymentRefused } from '../../../../../src/payment/refusal.ts';
import type { LightningStore } from '../../../../../src/store/ports/lightning.ts';
import { createUpstreams, type Upstreams } from '../../../../../src/upstream/client/client.ts';
import { wordsOfRefusal } from '../../../../../src/wiring/surfaces.ts';
import { openTestLedger, storesOf } from '../../../../support/ledger/fresh-ledger.ts';
import { type LightningRequirement, proofHeader } from '../../../../support/lightning/lightning-buyer.ts';
import { type NodeServer, SECRETS, startNodeServer } from '../../../../support/lightning/lightning-node-servers.ts';
import { grantOf, invoiceOf, keyOf, NOON } from '../../../../support/lightning/lightning-rows.ts';
import { createManualClock, type ManualClock } from '../../../../support/manual-clock.ts';
import { askOf, runningWith } from '../../../../support/payment/call.ts';
import { PATHS, TICKERS } from '../../../../support/upstream/rates.ts';
import { type Replay, startReplay } from '../../../../support/upstream/replay.ts';

const MINIMUM = { NETWORK: 'arc', SELLER_ADDRESS: `0x${'5e'.repeat(20)}`, RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` };
const MINUTE_MS = 60_000;

let clock: ManualClock;
let node: NodeServer;
let upstreams: Upstreams;
let db: Sqlite;
let store: LightningStore;
let folder: string;
let warned: string[];
const opened: { stop(): Promise<void> }[] = [];

beforeEach(async () => {
  // Requests have no time-out: an exchange's is three seconds, and a pause of the machine is no fault of the exchange.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] });
  clock = createManualClock(NOON);
  node = await startNodeServer('phoenixd', clock);
  warned = [];
  const log = { warn: () => {} };
  upstreams = createUpstreams({ clock, userAgent: 'percall/test', log: log as never });
  folder = mkdtempSync(join(tmpdir(), 'percall-rail-'));
  db = openTestLedger(join(folder, 'ledger.db'));
  store = storesOf(db).lightning;
});
afterEach(async () => {
  for (const one of opened.splice(0)) await one.stop();
  vi.useRealTimers();
  await upstreams.close();
  await node.stop();
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(
  env: Record<string, string> = {},
  more: Partial<Parameters<typeof createLightning>[0]> = {},
): ReturnType<typeof createLightning> {
  const selling = { LIGHTNING_RECEIVER: 'phoenixd', LIGHTNING_NODE_URL: node.url, PHOENIXD_PASSWORD: SECRETS.phoenixd };
  const config = loadConfig({ ...MINIMUM, ...selling, ...env });
  const log = {
    info: () => {},
    // The node watch reports what the node's connection allows.
    warn: ({ receiver, leases = '' }: Record<string, unknown>, message: string) => {
      if (receiver === undefined) warned.push(`${message} ${leases}`.trim());
    },
    error: () => {},
  };
  const rail = createLightning({
    config,
    store,
    upstreams,
    clock,
    bootId: 'boot',
    log,
    ...more,
  });
  opened.push(rail);
  return rail;
}

describe('the Lightning rail', () => {
  test('sells on the configured network, through the node that answers', async () => {
    const rail = open();
    expect([rail.network, rail.payTo(), rail.status().ok]).toEqual([MAINNET, null, false]);
    await rail.start();
    expect([rail.payTo(), rail.status()]).toEqual([node.key, { ok: true }]);
    expect(open({ LIGHTNING_NETWORK: 'testnet' }).network).toBe(TESTNET);
  });

  test('opens no node where none is configured', async () => {
    const rail = open({ LIGHTNING_RECEIVER: 'none' });
    await rail.start();
    expect([rail.payTo(), rail.status()]).toEqual([null, { ok: true, detail: 'no node configured' }]);
    expect(node.received).toEqual([]);
  });

  test('releases the leases of dead processes at the start, where no other process can be alive', async () => {
    for (const name of ['a', 'b', 'c']) {
      await store.claim(grantOf(name));
      await store.takeLease(keyOf(name), name === 'c' ? 'boot:1' : 'dead:1', NOON, NOON + MINUTE_MS);
    }
    const isFree = (name: string) => store.takeLease(keyOf(name), 'other:1', NOON, NOON + 1);
    await open({}, { isAlone: false }).start();
    expect([await isFree('a'), warned]).toEqual([false, []]);
    await open().start();
    expect(warned).toEqual(['released the leases of a process that died 2']);
    expect([await isFree('a'), await isFree('b'), await isFree('c')]).toEqual([true, true, false]);
  });
});

describe('a checkout of the rail', () => {
  const endpoint = defineEndpoint({
    path: '/test/rail',
    access: 'paid',
    priceUsd: '0.016',
    label: 'Rail',
    summary: 'Answers with its tag.',
    notFor: null,
    tags: '',
    ofChain: false,
    params: z.object({ tag: z.string() }),
    result: z.strictObject({ text: z.string() }),
    example: { params: { tag: 'a' }, result: { text: 'a' } },
    run: async ({ tag }: { tag: string }) => ({ text: tag }),
  });
  /** Two that agree are enough. */
  let exchanges: Replay;
  beforeEach(async () => {
    exchanges = await startReplay({
      [PATHS.coinbase]: { body: JSON.stringify({ price: '64000' }) },
      [PATHS.kraken]: { body: JSON.stringify(TICKERS.kraken('64000')) },
    });
  });
  afterEach(() => exchanges.stop());

  /** An order whose invoice is paid, and its requirement; `present` shows the proof. */
  async function bought(env: Record<string, string>) {
    const { url } = exchanges;
    const rates = { UPSTREAM_COINBASE_URL: url, UPSTREAM_KRAKEN_URL: url, UPSTREAM_BITSTAMP_URL: url };
    const rail = open({ ...rates, ...env });
    await rail.start();
    const checkout = createLightningCheckout(endpoint, {
      rail: rail.rail,
      running: runningWith(null),
      network: rail.network.id,
      publicOrigin: 'https://api.example.com',
      words: wordsOfRefusal,
      write: quoteAccepts,
    });
    const target = { kind: 'http', method: 'GET', url: '/v1/lightning/test/rail?tag=a', hasBody: false } as const;
    const order = checkout.read(askOf({ target, query: { tag: 'a' }, client: '192.0.2.1' }));
    const preimage = Buffer.alloc(32, 7);
    const paymentHash = createHash('sha256').update(preimage).digest();
    node.twist = { paymentHash };
    const [requirement] = (await checkout.demand(order)) as unknown as [LightningRequirement];
    node.pay(paymentHash);
    const credential = decodePayment(proofHeader(requirement, preimage.toString('hex')));
    const present = () =>
      checkout.sell(order, credential).then(
        async ({ body: answer, onSent }) => {
          await onSent?.();
          return Buffer.from(answer).toString();
        },
        (error: unknown) => (error instanceof PaymentRefused ? error.reason : error),
      );
    return { present, requirement };
  }

  test('keeps which route was sold, by its listed path, for the operator’s reports', async () => {
    const { present } = await bought({});
    await present();
    expect(db.prepare('SELECT route FROM lightning_claims').all()).toEqual([{ route: '/v1/lightning/test/rail' }]);
  });

  test('sells an answer for sats at the exchanges’ rate, and redelivers it as long as replies are kept', async () => {
    const { present, requirement } = await bought({ REDELIVERY_SECONDS: '100' });
    expect(requirement).toMatchObject({ amount: '25000', payTo: node.key, network: MAINNET.id });
    expect(await present()).toBe('{"text":"a"}');
    await clock.advance(99_999);
    expect(await present()).toBe('{"text":"a"}');
    await clock.advance(1);
    expect(await present()).toBe('duplicate_settlement');
  });

  test('asks the node for the payment where others have its key', async () => {
    const { present } = await bought({ LIGHTNING_NODE_SHARED: 'true' });
    node.received.splice(0);
    expect(await present()).toBe('{"text":"a"}');
    expect(node.received.map(({ url }) => url)).toEqual([expect.stringMatching(/^\/payments\/incoming\//)]);
  });
});

describe('maintenance of the Lightning rail', () => {
  const isKept = async (name: string) => (await store.findInvoice(keyOf(name))) !== null;
  /** Until a turn of the timer has done what it does. */
  const turn = async () => {
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    await new Promise(setImmediate);
  };

  test('deletes what has expired, at the start and each minute, until it stops', async () => {
    await store.recordInvoice(invoiceOf('old', { forgetAt: NOON }), Buffer.from('x'));
    await store.recordInvoice(invoiceOf('next', { forgetAt: NOON + 1 }), Buffer.from('x'));
    await store.recordInvoice(invoiceOf('last', { forgetAt: NOON + 2 }), Buffer.from('x'));
    const rail = open();
    await rail.start();
    expect([await isKept('old'), await isKept('next')]).toEqual([false, true]);
    await clock.advance(1);
    expect(await isKept('next')).toBe(true);
    await vi.advanceTimersByTimeAsync(MINUTE_MS - 1);
    expect(await isKept('next')).toBe(true);
    await vi.advanceTimersByTimeAsync(1);
    await expect.poll(() => isKept('next')).toBe(false);
    await rail.stop();
    await clock.advance(1);
    await turn();
    expect(await isKept('last')).toBe(true);
  });

  test('is left to another process where this one runs no maintenance, but this one still counts its replies', async () => {
    await store.recordInvoice(invoiceOf('old', { forgetAt: NOON }), Buffer.from('x'));
    const counted = vi.spyOn(store, 'offeredBytes');
    await open({}, { runsMaintenance: () => false }).start();
    expect(await isKept('old')).toBe(true);
    expect(counted).toHaveBeenCalledTimes(1);
  });

  test('that fails is logged, and the next round tries again', async () => {
    const { prune } = store;
    store.prune = async () => Promise.reject(new Error('disk'));
    await open().start();
    expect(warned).toEqual(['old invoices were not pruned']);
    store.prune = prune;
    await store.recordInvoice(invoiceOf('old', { forgetAt: NOON }), Buffer.from('x'));
    await turn();
    await expect.poll(() => isKept('old')).toBe(false);
  });

  test('is waited for at the end, and runs once at a time', async () => {
    const ends = Promise.withResolvers<void>();
    const rail = open();
    await rail.start();
    let prunes = 0;
    store.prune = () => {
      prunes += 1;
      return ends.promise;
    };
    await turn();
    await turn();
    expect(prunes).toBe(1);
    let hasStopped = false;
    const stopping = rail.stop().then(() => {
      hasStopped = true;
    });
    await new Promise(setImmediate);
    expect(hasStopped).toBe(false);
    ends.resolve();
    await stopping;
  });

  test('counts what the reply store holds when the service starts', async () => {
    await store.recordInvoice(invoiceOf('a', { forgetAt: NOON + MINUTE_MS }), Buffer.alloc(600_000));
    const rail = open({ REPLY_STORE_MB: '1' });
    await rail.start();
    const order = { client: '192.0.2.1', endpoint: { price: { usd: '1', units: 1n } } };
    const refused = rail.rail.offer(order as unknown as Parameters<typeof rail.rail.offer>[0], false);
    await expect(refused).rejects.toMatchObject({ code: 'reply_store_full' });
  });
});
