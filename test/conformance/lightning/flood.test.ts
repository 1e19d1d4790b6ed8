import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type EmbeddedLightning, startEmbeddedLightning } from '../../../dev/lightning/lightning.ts';
import { defineEndpoint, type Endpoint } from '../../../src/catalogue/endpoint.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { offeredBy, proofHeader } from '../../support/lightning/lightning-buyer.ts';
import { type NodeServer, SECRETS, startNodeServer } from '../../support/lightning/lightning-node-servers.ts';
import { type LightningService, startLightningService } from '../../support/lightning/lightning-service.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { call } from '../../support/service/service.ts';

/** Clients that never pay ask for as much as they can get. Clients that mean to pay must still be served. */
const moody = moodyEndpoint();
const large = endpointOf('/test/large', async () => 'x'.repeat(400_000));
/** Its runs end when the test lets them. */
const held = heldEndpoint();

function endpointOf(path: `/${string}`, run: () => Promise<string>) {
  const endpoint: Endpoint<Sources> = defineEndpoint({
    path,
    access: 'paid',
    priceUsd: '0.0005',
    label: 'Flooded',
    summary: 'Answers as the test says.',
    notFor: null,
    tags: '',
    ofChain: false,
    params: z.object({ tag: z.string().default('none') }),
    result: z.strictObject({ text: z.string() }),
    example: { params: {}, result: { text: 'x' } },
    run: async () => ({ text: await run() }),
  });
  return { endpoint, path: `/v1/lightning${path}` };
}

function heldEndpoint() {
  const held: (() => void)[] = [];
  let [begun, wanted, reached] = [0, 0, () => {}];
  const run = () =>
    new Promise<string>((done) => {
      held.push(() => done('held'));
      begun += 1;
      if (begun === wanted) reached();
    });
  return {
    ...endpointOf('/test/held', run),
    running: () => held.length,
    /** Resolves when this many runs have begun in total. */
    hasBegun: (runs: number) =>
      new Promise<void>((resolve) => {
        [wanted, reached] = [runs, resolve];
        if (begun >= runs) resolve();
      }),
    /** Ends the runs that are under way. */
    release: () => {
      for (const done of held.splice(0)) done();
    },
    reset: () => {
      begun = 0;
      wanted = 0;
    },
  };
}

let lightning: EmbeddedLightning;
/** A node that only signs invoices, where nothing is paid. Two real nodes would need long for hundreds. */
let node: NodeServer;
const fastNode = () => ({
  LIGHTNING_RECEIVER: 'phoenixd',
  LIGHTNING_NODE_URL: node.url,
  LIGHTNING_NODE_KEY: node.key,
  PHOENIXD_PASSWORD: SECRETS.phoenixd,
});
/** Moved only by the tests, so that counts per minute do not depend on the machine's speed. */
let nowMs = 0;
const clock: Clock = { ...systemClock, nowMs: () => nowMs };

beforeAll(async () => {
  lightning = await startEmbeddedLightning();
  node = await startNodeServer('phoenixd', clock);
});
afterAll(async () => {
  await node.stop();
  await lightning.stop();
});
beforeEach(() => {
  // A minute of the clock has just begun, as close to the nodes' own time as possible.
  nowMs = Math.ceil(Date.now() / 60_000) * 60_000;
  held.reset();
});

const range = (count: number): number[] => Array.from({ length: count }, (_, at) => at);
const greedy = (count: number): string[] => range(count).map((at) => `127.0.1.${at + 1}`);
const HONEST = '127.0.2.1';
/** How long an honest client waits before it asks again. */
const PAUSE_MS = 3000;

let tag = 0;
const fresh = (path = moody.path) => `${path}?tag=f${++tag}`;
const codeOf = (answer: { body: string }) => (JSON.parse(answer.body) as { code: string }).code;

async function withShop(env: Record<string, string>, run: (shop: LightningService) => Promise<void>): Promise<void> {
  const catalogue = [moody.endpoint, large.endpoint, held.endpoint];
  // The service's own limits, which the embedded node's environment turns off.
  const limits = { LIGHTNING_INVOICES_PER_MINUTE: '30', LIGHTNING_INVOICES_TOTAL_PER_MINUTE: '600' };
  const shop = await startLightningService(lightning, { catalogue, clock, env: { ...limits, ...env } });
  try {
    await run(shop);
  } finally {
    held.release();
    await shop.stop();
  }
}

/** Asks for an invoice up to three times. True when one came. */
async function getsOffer({ origin }: LightningService, from: string): Promise<boolean> {
  for (let tries = 0; tries < 3; tries++) {
    if ((await call(origin, fresh(), { from })).status === 402) return true;
  }
  return false;
}

/** Asks, pays and presents the proof. */
async function buy({ origin }: LightningService, from: string): Promise<void> {
  const path = fresh();
  const requirement = offeredBy(await call(origin, path, { from }));
  const header = proofHeader(requirement, await lightning.pay(requirement.extra.invoice));
  const answer = await call(origin, path, { from, headers: { 'payment-signature': header } });
  expect(answer.status).toBe(200);
}

/** The share of an honest client's calls that was served: it calls every few seconds for a minute, each time after a flood. */
async function servedDuring(shop: LightningService, flood: () => Promise<unknown>): Promise<number> {
  const calls = Math.floor(60_000 / PAUSE_MS);
  let served = 0;
  for (let at = 0; at < calls; at++) {
    await flood();
    if (await getsOffer(shop, HONEST)) served += 1;
    nowMs += PAUSE_MS;
  }
  return served / calls;
}

/** Flooding clients, and the invoices a minute of all. In both lanes an equal share is just enough for the honest client's calls of a minute. */
const [CROWD, TOTAL] = process.env.SLOW ? ([20, 600] as const) : ([8, 250] as const);

describe('an honest client is served in 95 % of its calls, within three tries', () => {
  test(`while ${CROWD} clients ask for invoices as fast as they may`, () =>
    withShop({ ...fastNode(), LIGHTNING_INVOICES_TOTAL_PER_MINUTE: `${TOTAL}` }, async (shop) => {
      const statuses = new Map<number, number>();
      const flood = async (from: string) => {
        const { status } = await call(shop.origin, fresh(), { from });
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      };
      const served = await servedDuring(shop, () =>
        Promise.all(greedy(CROWD).flatMap((from) => range(2).map(() => flood(from)))),
      );
      expect(served).toBeGreaterThanOrEqual(0.95);
      // They got what was left: four fifths of all less those of the honest client. All calls are in one minute of the clock.
      expect(statuses.get(402)).toBeGreaterThan(0.6 * TOTAL);
      expect(statuses.get(402)).toBeLessThanOrEqual(0.8 * TOTAL);
      expect(statuses.get(429)).toBeGreaterThan(TOTAL / 3);
    }));

  test('while one client’s large replies fill the reply quota', () =>
    withShop({ ...fastNode(), REPLY_STORE_MB: '4' }, async (shop) => {
      const statuses = new Set<number>();
      const flood = async () => {
        statuses.add((await call(shop.origin, fresh(large.path), { from: '127.0.1.1' })).status);
      };
      expect(await servedDuring(shop, flood)).toBeGreaterThanOrEqual(0.95);
      expect(statuses).toEqual(new Set([402, 503]));
    }));
});

describe('a new client is served', () => {
  test('in its turn, after the wait that its answer names, while 30 others that keep asking have all but the reserve', () =>
    withShop({ ...fastNode(), LIGHTNING_INVOICES_TOTAL_PER_MINUTE: '30' }, async (shop) => {
      // The minute's ordinary invoices, and the first portion of those for newcomers: each of the 30 came new once.
      for (const _ of range(8)) await Promise.all(greedy(30).map((from) => call(shop.origin, fresh(), { from })));
      const early = await call(shop.origin, fresh(), { from: HONEST });
      expect([early.status, codeOf(early)]).toEqual([429, 'exact_lnbtc_invoice_issuance_denied']);
      nowMs += Number(early.headers['retry-after']) * 1000;
      const flood = await Promise.all(greedy(30).map((from) => call(shop.origin, fresh(), { from })));
      expect(new Set(flood.map(({ status }) => status))).toEqual(new Set([429]));
      expect((await call(shop.origin, fresh(), { from: HONEST })).status).toBe(402);
    }));
});

describe('a client that has paid is served', () => {
  test('while 40 others have all invoices except the reserve, of which a client that comes at the same moment gets none', () =>
    withShop({ LIGHTNING_INVOICES_TOTAL_PER_MINUTE: '40' }, async (shop) => {
      await buy(shop, HONEST);
      nowMs += 60_000;
      for (const _ of range(2)) await Promise.all(greedy(40).map((from) => call(shop.origin, fresh(), { from })));
      const late = await call(shop.origin, fresh(), { from: '127.0.3.1' });
      expect([late.status, codeOf(late)]).toEqual([429, 'exact_lnbtc_invoice_issuance_denied']);
      expect(Number(late.headers['retry-after'])).toBeGreaterThan(0);
      for (const _ of range(4)) expect(await getsOffer(shop, HONEST)).toBe(true);
    }));

  test('while 20 others have every place for handlers, because a paid retry needs no place', () =>
    withShop({ LIGHTNING_INVOICES_PER_MINUTE: '0', LIGHTNING_INVOICES_TOTAL_PER_MINUTE: '0' }, async (shop) => {
      await buy(shop, HONEST);
      const path = fresh();
      const requirement = offeredBy(await call(shop.origin, path, { from: '127.0.3.1' }));
      const header = proofHeader(requirement, await lightning.pay(requirement.extra.invoice));

      const flood = greedy(20).map((from) => call(shop.origin, fresh(held.path), { from }));
      await held.hasBegun(16);
      const waits = call(shop.origin, fresh(), { from: '127.0.3.2' });
      expect(await getsOffer(shop, HONEST)).toBe(true);
      const paid = await call(shop.origin, path, { from: '127.0.3.1', headers: { 'payment-signature': header } });
      expect(paid.status).toBe(200);
      expect(held.running()).toBe(16);

      held.release();
      await held.hasBegun(20);
      held.release();
      expect((await Promise.all(flood)).map(({ status }) => status)).toEqual(Array(20).fill(402));
      expect((await waits).status).toBe(402);
    }));
});

test('offers run their handlers at 16 places, clients take turns, and a client beyond the queue is refused at once', () =>
  withShop({ ...fastNode(), LIGHTNING_INVOICES_PER_MINUTE: '60' }, async (shop) => {
    const ask = (from: string, path = fresh(held.path)) => call(shop.origin, path, { from });
    // One client can use half of the places, six more of its calls wait, and the next are refused.
    const alone = range(30).map(() => ask('127.0.1.1'));
    await held.hasBegun(8);
    const refused = await Promise.any(alone);
    expect([refused.status, codeOf(refused), refused.headers['retry-after']]).toEqual([503, 'offers_busy', '2']);
    expect(JSON.parse(refused.body)).toMatchObject({ charged: false });
    expect(held.running()).toBe(8);
    // The next client gets its answer while all of those wait.
    expect((await ask(HONEST, fresh())).status).toBe(402);
    held.release();
    await held.hasBegun(14);
    held.release();
    const statuses = (await Promise.all(alone)).map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(14).fill(402), ...Array(16).fill(503)]);
    // Refused calls were not counted: of sixty this minute, fourteen are used.
    const more = [];
    for (const _ of range(50)) more.push((await ask('127.0.1.1', fresh())).status);
    expect(more.filter((status) => status === 402)).toHaveLength(46);
  }));
