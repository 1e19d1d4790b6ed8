import { describe, expect, test } from 'vitest';
import {
  CLIENTS_PER_SITE,
  type ClientWindows,
  countClient,
  countSharedClient,
  createMinuteWindows,
  type MinuteWindows,
  openClientWindows,
  type SharedWindows,
} from '../../../../src/lib/limits/count.ts';
import { createManualClock } from '../../../support/manual-clock.ts';

const network = (n: number) => `2001:db8:7:${n.toString(16)}::/64`;
const LIMIT = 3;

/** Both ways of counting: here, and where it takes a while. */
const WAYS = {
  here: (windows: ClientWindows<MinuteWindows>) => async (client: string) => countClient(LIMIT, windows, client),
  elsewhere: ({ clients, sites }: ClientWindows<MinuteWindows>) => {
    const later = (of: MinuteWindows): SharedWindows => ({
      count: async (client) => of.count(client),
      takeBack: async (client) => of.takeBack(client),
    });
    return (client: string) => countSharedClient(LIMIT, { clients: later(clients), sites: later(sites) }, client);
  },
};

describe.each(Object.entries(WAYS))('a limit that is counted %s', (_where, way) => {
  const clock = createManualClock(0);
  const opened = () => {
    const windows = openClientWindows(() => createMinuteWindows(clock), 'calls');
    return { windows, count: way(windows) };
  };

  test('limits an IPv4 client by its own count only', async () => {
    const { windows, count } = opened();
    const seen = [await count('192.0.2.1'), await count('192.0.2.1'), await count('192.0.2.1')];
    expect(seen.map(({ of, limit, left }) => [of, limit, left])).toEqual([
      ['client', 3, 2],
      ['client', 3, 1],
      ['client', 3, 0],
    ]);
    expect(await count('192.0.2.1')).toEqual({ of: 'client', limit: 3, left: -1, resetSeconds: 60 });
    expect(await count('192.0.2.2')).toMatchObject({ left: 2 });
    // Counted once each, and in no site.
    expect(windows.clients.count('192.0.2.1').count).toBe(5);
  });

  test('limits all /64s of a /48 together to four clients’ calls, and counts a neighbouring /48 separately', async () => {
    const { count } = opened();
    for (let n = 0; n < LIMIT * CLIENTS_PER_SITE; n++) expect((await count(network(n))).left).toBeGreaterThanOrEqual(0);
    expect(await count(network(99))).toEqual({ of: 'site', limit: 12, left: -1, resetSeconds: 60 });
    expect(await count('2001:db8:8:0::/64')).toMatchObject({ of: 'client', left: 2 });
  });

  test('reports the limit with fewer calls left: the client’s, until its neighbours have used more', async () => {
    const { count } = opened();
    expect(await count(network(0))).toEqual({ of: 'client', limit: 3, left: 2, resetSeconds: 60 });
    for (let n = 1; n < 10; n++) await count(network(n));
    // Two of twelve are left to all, and this client has three of its own.
    expect(await count(network(10))).toMatchObject({ of: 'site', limit: 12, left: 1 });
  });

  test('reports the limit that lasts longer when both have the same number of calls left', async () => {
    const { count } = opened();
    for (const n of [0, 1, 2, 3]) await count(network(n));
    await clock.advance(20_000);
    for (const n of [4, 5, 6, 7, 8]) await count(network(n));
    // The site's tenth call of twelve and the client's first of three; the site's count is 20 s old.
    expect(await count(network(9))).toEqual({ of: 'client', limit: 3, left: 2, resetSeconds: 60 });
    await clock.advance(40_000);
    for (let n = 10; n < 20; n++) await count(network(n));
    // Another minute of the site's, which has now the client's own second call as its eleventh.
    expect(await count(network(9))).toEqual({ of: 'site', limit: 12, left: 1, resetSeconds: 60 });
  });

  test('reports the client’s limit when both are equal, and when the site’s lasts longer but has more calls left', async () => {
    const { count } = opened();
    for (let n = 0; n < 9; n++) await count(network(n));
    expect(await count(network(9))).toEqual({ of: 'client', limit: 3, left: 2, resetSeconds: 60 });
    await clock.advance(20_000);
    await count(network(10));
    await clock.advance(40_000);
    // The site’s minute begins anew, and the client’s goes on for 20 s.
    await count(network(11));
    expect(await count(network(10))).toEqual({ of: 'client', limit: 3, left: 1, resetSeconds: 20 });
  });

  test('counts nothing for the site of a client that is over its own limit', async () => {
    const { windows, count } = opened();
    for (let n = 0; n < 20; n++) await count(network(0));
    expect(windows.sites.count('2001:db8:7::/48').count).toBe(LIMIT + 1);
  });
});

test('windows of clients and of sites are kept apart, so that many clients do not evict a site’s window', () => {
  const names: string[] = [];
  const { clients, sites } = openClientWindows((name) => names.push(name), 'calls');
  expect([clients, sites, new Set(names).size]).toEqual([1, 2, 2]);
  const clock = createManualClock(0);
  const windows = openClientWindows(() => createMinuteWindows(clock, 2), 'calls');
  for (let n = 0; n < 12; n++) expect(countClient(LIMIT, windows, network(n)).left).toBeGreaterThanOrEqual(0);
  expect(countClient(LIMIT, windows, network(12)).left).toBe(-1);
});
