import { afterEach, describe, expect, test } from 'vitest';
import { createDiscovery, type Discovery } from '../../../src/discovery/discovery.ts';
import type { Listing } from '../../../src/discovery/entry.ts';
import { NO_CATALOGUE } from '../../../src/discovery/foreign-catalogue.ts';
import { searchParams } from '../../../src/discovery/search.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { listing, NETWORK, ownListings } from './world.ts';

const OWN = ownListings().length;
const stopping: Discovery[] = [];
afterEach(async () => {
  for (const discovery of stopping.splice(0)) await discovery.stop();
});

/** Sources that a test changes. The versions of `market` and `catalogue` show the change. */
function world() {
  const clock = createManualClock(1_800_000_000_000);
  const state = {
    market: [] as Listing[],
    catalogue: [] as Listing[],
    marketVersion: 0,
    catalogueVersion: 0,
    online: new Set<string>(),
    ready: true,
    readiness: 0,
    readAtMs: null as number | null,
  };
  const errors: unknown[] = [];
  const discovery = createDiscovery({
    own: ownListings(),
    market: {
      version: () => state.marketVersion,
      listings: () => state.market,
      isOnline: (url) => state.online.has(url),
    },
    catalogue: {
      ...NO_CATALOGUE,
      version: () => state.catalogueVersion,
      listings: () => state.catalogue,
      readAtMs: () => state.readAtMs,
    },
    readsCatalogue: () => false,
    network: NETWORK,
    isReady: async () => {
      state.readiness += 1;
      if (state.ready) return true;
      throw new Error('the ledger is gone');
    },
    clock,
    log: { error: (fields) => errors.push(fields) },
  });
  stopping.push(discovery);
  const ask = (query: Record<string, string> = {}) => discovery.search(searchParams.parse(query));
  return { clock, state, errors, discovery, ask };
}

const tides = (n: number) =>
  listing({ url: `https://tides${n}.example/x`, description: 'Tides', source: 'market', priceUsd: `0.0${n}` });

describe('the running search', () => {
  test('answers before it was started, from the sources that it has', async () => {
    const { ask } = world();
    expect(await ask({ q: 'wallet balance' })).toMatchObject({ searched: { ownRoutes: OWN }, catalogueReadAt: null });
  });

  test('sees the sources’ present lists after a refresh, and every caller meanwhile gets an answer', async () => {
    const { state, discovery, ask } = world();
    await discovery.start();
    state.market = [tides(1)];
    state.marketVersion += 1;
    const asked = Promise.all(Array.from({ length: 20 }, () => ask({ q: 'tides' })));
    await discovery.refresh();
    expect((await asked).map(({ searched }) => searched.ownRoutes)).toEqual(Array(20).fill(OWN));
    expect((await ask({ q: 'tides' })).results.map(({ host }) => host)).toEqual(['tides1.example']);
  });

  test('notices a change by itself, one search later', async () => {
    const { state, discovery, ask } = world();
    await discovery.start();
    state.catalogue = [{ ...tides(2), entry: { ...tides(2).entry, source: 'catalogue' } }];
    state.catalogueVersion += 1;
    state.readAtMs = 1_799_999_999_999;
    await ask();
    await discovery.refresh();
    expect(await ask({ q: 'tides' })).toMatchObject({
      count: 1,
      catalogueReadAt: 1_799_999_999,
      searched: { catalogue: 1 },
    });
  });

  test('includes a change that comes while the index is built', async () => {
    const { state, discovery, ask } = world();
    state.market = [tides(1)];
    state.marketVersion = 1;
    const refreshed = discovery.refresh();
    state.market = [tides(1), tides(2)];
    state.marketVersion = 2;
    await refreshed;
    expect((await ask({ q: 'tides' })).count).toBe(2);
  });

  test('a source that throws leaves the old index in place, and is logged', async () => {
    const { state, discovery, errors, ask } = world();
    await discovery.start();
    state.market = [{ entry: { ...tides(1).entry, url: 'no address' }, keywords: '' }];
    state.marketVersion += 1;
    await discovery.refresh();
    expect(errors).toHaveLength(1);
    expect((await ask({ q: 'wallet' })).count).toBeGreaterThan(0);
  });

  test('online: ours while ready, the market’s by their calls, the catalogue’s while listed', async () => {
    const { state, discovery, clock, ask } = world();
    state.market = [tides(1), tides(2)];
    state.catalogue = [listing({ url: 'https://c.example/x' })];
    state.online.add('https://tides2.example/x');
    await discovery.start();
    const online = async () =>
      Object.fromEntries((await ask({ limit: '50' })).results.map(({ host, online: is }) => [host, is]));
    const others = { 'tides1.example': false, 'tides2.example': true, 'c.example': true };
    expect(await online()).toEqual({ 'percall.example': true, ...others });
    state.ready = false;
    await clock.advance(5000);
    await ask();
    await new Promise((done) => setImmediate(done));
    expect(await online()).toEqual({ 'percall.example': false, ...others });
  });

  test('reads its own readiness at most every five seconds', async () => {
    const { state, discovery, clock, ask } = world();
    await discovery.start();
    for (let n = 0; n < 100; n++) await ask();
    expect(state.readiness).toBe(1);
    await clock.advance(5000);
    for (let n = 0; n < 100; n++) await ask();
    expect(state.readiness).toBe(2);
  });

  test('stops while its index is being built, and twice', async () => {
    const { state, discovery } = world();
    state.marketVersion += 1;
    void discovery.refresh();
    await discovery.stop();
    await discovery.stop();
  });
});
